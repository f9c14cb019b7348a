"""``tlstd evaluate`` with workers."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.cluster.logs import LOG, SHORT, in_files
from tlstd.cli.app import app
from tlstd.cluster.log_shard import LogFile
from tlstd.cluster.part import Part
from tlstd.cluster.plan import plan
from tlstd.errors import InvalidInputError
from tlstd.logs.readers import file_names
from tlstd.logs.reading import Source


def test_plan(tmp_path: Path) -> None:
    """Sizes from one file: steps as there are, memory and traffic as they will be."""
    pattern = in_files(LOG, tmp_path, 4)
    said = CliRunner().invoke(app, ["evaluate", pattern, "--gamma", "0.9", "--plan", "--workers", "2"])
    assert said.exit_code == 0, said.output
    assert "4 files" in said.output
    found = plan([LogFile(name) for name in file_names(pattern)], gamma=0.9, n_workers=2, dimension=10)
    assert abs(found.n_steps - LOG.height) < 0.1 * LOG.height
    assert found.worker_bytes > found.n_steps / 2 * found.bytes_per_step
    assert found.round_bytes == 8 * found.n_features
    assert found.between_workers == found.round_bytes  # 0, 0, 1, 1: the vector to the second
    assert found.to_client == 2 * found.round_bytes  # the sum of each
    assert "10 rounds" in str(found)
    with pytest.raises(InvalidInputError, match="no files"):
        plan([], gamma=0.9)


def test_a_plan_tells_what_is_done_once_from_what_is_done_for_every_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock that stands still but for opening, a minute, and encoding, a second per step."""
    now = 0.0

    def opened(*names: Any) -> Source:
        nonlocal now
        now += 60.0
        return Source(*names)

    def encoded(part: Part, *rest: Any) -> Part:
        nonlocal now
        now += len(part.shard._log)
        return whole(part, *rest)

    whole = Part.encoded
    monkeypatch.setattr("tlstd.cluster.plan.Source", opened)
    monkeypatch.setattr(Part, "encoded", encoded)
    monkeypatch.setattr("tlstd.cluster.plan.perf_counter", lambda: now)
    files = [LogFile(name) for name in file_names(in_files(LOG, tmp_path, 4))]
    found = plan(files, gamma=0.9, n_workers=2)
    assert (found.seconds_to_start, found.seconds_to_read, found.seconds_to_multiply) == (60.0, 1.0, 0.0)
    assert found.seconds == 60.0 + found.n_steps / 2
    assert "60.0 s to start" in str(found)


POLICY = "import numpy as np\n\ndef acts(states):\n    return np.tile([0.1, 0.9], (len(states), 1))\n"


def test_what_workers_can_be_asked_from_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another policy beside, ranges, compared rows: the numbers of one process. Estimated probabilities are refused."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "policy_of_workers.py").write_text(POLICY)
    monkeypatch.setattr("tlstd.cluster.clients.local_workers", lambda n: nullcontext())
    asked = ["evaluate", in_files(SHORT, tmp_path, 3), "--gamma", "0.9", "--json"]
    for options in (
        ["--policy", "policy_of_workers:acts", "--against", "logged"],
        ["--policy", "policy_of_workers:acts", "--returns", "-20", "20"],
        ["--policy", "policy_of_workers:acts", "--rewards", "-2", "2"],
        ["--compare"],
    ):
        here, there = (CliRunner().invoke(app, [*asked, *options, *more]) for more in ([], ["--workers", "2"]))
        assert (here.exit_code, there.exit_code) == (0, 0), there.output
        one, other = json.loads(here.stdout), json.loads(there.stdout)
        assert (one["value"], one["interval"]) == (other["value"], other["interval"])
        assert [row["values"] for row in one["estimators"]] == [row["values"] for row in other["estimators"]]
        assert (one["comparison"] or {}).get("difference") == (other["comparison"] or {}).get("difference")
    said = CliRunner().invoke(app, [*asked, "--estimate", "--workers", "2"])
    assert said.exit_code == 1
    assert "--estimate is for one process" in said.output
