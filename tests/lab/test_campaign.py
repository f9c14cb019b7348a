"""The campaign: what it counts, what it keeps of a failure, and that a failure can be repeated."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from tlstd_lab import campaign
from typer.testing import CliRunner

from tests.estimators.plain import Plain
from tlstd.cli.app import app
from tlstd.estimators.registry import ESTIMATORS
from tlstd.types import Transition

COUNTS = {"interrupts": 3, "exceptions": 12, "reads": 300, "files": 40, "inputs": 50}


class Broken(Plain):
    """Uses a number from its file as an index, and forgets what it has learned when it is cut off."""

    def learn(self, steps: list[Transition]) -> None:
        if self.n_updates > 10_000:
            raise IndexError(self.n_updates)
        state, self.state = self.state, Plain(self.n_features).state
        for t in steps:
            state = self.after(state, t)
        self.state = state


def test_parts_of_a_sound_and_a_broken_estimator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    factories: dict[str, Any] = {"plain": Plain, "broken": Broken}
    for name, factory in factories.items():
        monkeypatch.setitem(ESTIMATORS, name, factory)
    parts = {
        (name, part): campaign.try_part(name, part, count, 0, None, tmp_path)
        for name in factories
        for part, count in COUNTS.items()
    }
    for part, done in {"interrupts": 3, "exceptions": 12, "reads": 320, "files": 40, "inputs": 60}.items():
        assert parts["plain", part]["done"] == parts["broken", part]["done"] == done
        assert parts["plain", part]["failures"] == []
    assert sum(parts["plain", "files"]["tally"].values()) == 40
    failures = parts["broken", "exceptions"]["failures"]
    assert "n_updates is 0" in failures[0]["words"]
    words = shlex.split(failures[0]["again"])
    assert words[:5] == ["uv", "run", "python", "-m", "tlstd_lab.campaign"]
    again = campaign.try_part("broken", "exceptions", 12, 0, range(int(words[-1]), int(words[-1]) + 1), None)
    assert again["failures"] == failures[:1]
    (first, *_) = parts["broken", "files"]["failures"]
    assert "IndexError" in first["words"]
    assert (tmp_path / first["file"]).read_bytes().startswith(b"\x89TLSTD")


def test_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table; what fails is a line in a file, and the exit code is 1."""
    arguments = ["campaign", "--estimator", "TD", "--unchecked", "--out", str(tmp_path / "out")]
    arguments += [f"--{part}=0" for part in COUNTS if part != "inputs"]
    result = CliRunner().invoke(app, [*arguments, "--inputs=20", "--jobs=2"])
    assert result.exit_code == 0, result.output
    assert "0 of 20" in result.output
    assert (tmp_path / "out" / "failures.jsonl").read_text() == ""
    monkeypatch.setattr(sys, "executable", "/bin/false")
    result = CliRunner().invoke(app, [*arguments, "--inputs=20"])
    assert result.exit_code == 1
    lines = [json.loads(line) for line in (tmp_path / "out" / "failures.jsonl").read_text().splitlines()]
    assert [(line["estimator"], line["part"]) for line in lines] == [("TD", "inputs")]


def test_mistakes_are_named(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["campaign", "--estimator", "TDD", "--out", str(tmp_path)])
    assert result.exit_code == 1
    assert "there is no estimator 'TDD': choose from ATD," in result.output
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(app, ["campaign", "--out", str(tmp_path / "file")])
    assert result.exit_code == 1
    assert "--out" in result.output
