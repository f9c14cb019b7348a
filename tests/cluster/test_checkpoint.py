"""Rounds that are kept belong to one question: another one never gets them."""

from __future__ import annotations

import importlib
import inspect
import json
import sys
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest

from tests.cluster.logs import LOG as WALK
from tests.cluster.logs import ask, in_files, numbers
from tlstd.cluster.evaluate import answers_of_files
from tlstd.errors import StateError
from tlstd.evaluation.question import Question
from tlstd.evaluation.report import Report
from tlstd.features import RBF

LOG = WALK.with_columns(
    other=pl.col("reward") * 3.0 + 8.0, half=pl.lit(0.5), observation_0=pl.col("obs_1"), observation_1=pl.col("obs_0")
)


def chosen(states: np.ndarray, share: float) -> np.ndarray:
    """The second action so often."""
    return np.tile([1.0 - share, share], (len(states), 1))


class Kept(NamedTuple):
    """A folder with the rounds of a question."""

    files: Path
    folder: Path
    question: dict[str, Any]
    answer: Report

    def again(self, **other: Any) -> Report:
        """The same question but for these arguments, with the folder."""
        return ask(**self.question | {"checkpoint": self.folder} | other)


@pytest.fixture(autouse=True)
def few_steps_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than 500 steps are a large log, of which 400 are a sample."""
    monkeypatch.setattr("tlstd.cluster.evaluate.GATHERED", 500)
    monkeypatch.setattr("tlstd.cluster.evaluate.SAMPLE", 400)


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    """Of a policy, so that ratios matter."""
    (files := tmp_path / "log").mkdir()
    source = in_files(LOG, files, 3)
    asked: dict[str, Any] = {"source": source, "gamma": 0.9, "estimators": ("KrylovLSTD",)}
    asked |= {"columns": {"observation": ["obs_0", "obs_1"]}, "policy": partial(chosen, share=0.9)}
    folder = tmp_path / "rounds"
    return Kept(files, folder, asked, ask(**asked, checkpoint=folder))


def other_rewards(kept: Kept) -> dict[str, Any]:
    path = kept.files / "part-1.parquet"
    pl.read_parquet(path).with_columns(pl.col("reward") * 3.0 + 8.0).write_parquet(path)
    return {}


def one_other_number(kept: Kept) -> dict[str, Any]:
    path = kept.files / "part-2.parquet"
    frame = pl.read_parquet(path)
    rewards = frame["reward"].to_numpy().copy()
    rewards[0] += 1e-9
    frame.with_columns(reward=rewards).write_parquet(path)
    return {}


def other_probabilities(kept: Kept) -> dict[str, Any]:
    path = kept.files / "part-0.parquet"
    pl.read_parquet(path).with_columns(probability=pl.col("probability") * 0.8).write_parquet(path)
    return {}


def other_actions(kept: Kept) -> dict[str, Any]:
    path = kept.files / "part-0.parquet"
    pl.read_parquet(path).with_columns(action=1 - pl.col("action")).write_parquet(path)
    return {}


def fewer_files(kept: Kept) -> dict[str, Any]:
    return {"source": [str(kept.files / f"part-{i}.parquet") for i in (0, 2)]}


OTHERS: dict[str, Callable[[Kept], dict[str, Any]]] = {
    "rewards": other_rewards,
    "one number": one_other_number,
    "probabilities": other_probabilities,
    "actions": other_actions,
    "files": fewer_files,
    "gamma": lambda kept: {"gamma": 0.8},
    "reward column": lambda kept: {"columns": {"observation": ["obs_0", "obs_1"], "reward": "other"}},
    "observation columns": lambda kept: {"columns": {"observation": ["obs_1", "obs_0"]}},
    "preset": lambda kept: {"preset": "flat"},
    "policy": lambda kept: {"policy": partial(chosen, share=0.2)},
    "logged policy": lambda kept: {"policy": None},
    "start": lambda kept: {"start": "all"},
    "start states": lambda kept: {"start": [[0.5, 0.5]]},
    "features": lambda kept: {"features": "columns"},
    "feature map": lambda kept: {"features": RBF([-2.0, -2.0], [2.0, 2.0], grid=3, width=1.0)},
    "estimators": lambda kept: {"estimators": ("LSTDQ",)},
    "missing numbers": lambda kept: {"options": {"on_nan": "drop"}},
    "damaged files": lambda kept: {"on_error": "skip"},
    "level": lambda kept: {"level": 0.5},
    "cost": lambda kept: {"cost": True},
}


@pytest.mark.parametrize("other", OTHERS)
def test_another_question(kept: Kept, other: str) -> None:
    """It is refused, and has its own answer in a folder of its own; the first one goes on where it was."""
    change = OTHERS[other](kept)
    with pytest.raises(StateError, match=r"keeps rounds of another question \(.*\): name another folder"):
        kept.again(**change)
    fresh = kept.again(**change, checkpoint=kept.folder.parent / "fresh")
    assert numbers(fresh) == numbers(kept.again(**change, checkpoint=None))


def test_the_same_question(kept: Kept) -> None:
    """Nothing is computed again, whatever way the same is asked in; the numbers are the same."""
    before = {path.name: path.stat().st_mtime_ns for path in kept.folder.iterdir()}
    for change in (
        {},
        {"estimators": ["KrylovLSTD"]},
        {"policy": partial(chosen, share=0.9), "level": np.float64(0.95)},
    ):
        found = kept.again(**change)
        assert found.notes[-1].startswith(f"{len(before) - 1} rounds of before")
        assert numbers(found) == numbers(kept.answer)
    spilled = kept.again(spill=kept.folder.parent / "spilled")
    assert numbers(spilled) == numbers(kept.answer)
    assert {path.name: path.stat().st_mtime_ns for path in kept.folder.iterdir()} == before


def test_a_policy_whose_module_was_edited(kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name is the same; what it says is not."""
    monkeypatch.syspath_prepend(tmp_path)
    folder = tmp_path / "of a module"

    def asked(share: float) -> Report:
        text = (
            f"import numpy as np\n\ndef acts(states):\n    return np.tile([{1 - share}, {share}], (len(states), 1))\n"
        )
        (tmp_path / "edited_policy.py").write_text(text)
        sys.modules.pop("edited_policy", None)
        importlib.invalidate_caches()
        monkeypatch.setattr("sys.dont_write_bytecode", True)
        return kept.again(policy=importlib.import_module("edited_policy").acts, checkpoint=folder)

    first = asked(0.75)
    assert numbers(asked(0.75)) == numbers(first)
    with pytest.raises(StateError, match=r"another question \(policies\)"):
        asked(0.25)


def test_a_policy_that_is_another_one_without_a_word(kept: Kept) -> None:
    """One that depends on what no argument shows: the files are then encoded otherwise."""
    shares = [0.75]

    def hidden(states: np.ndarray) -> np.ndarray:
        return chosen(states, shares[0])

    folder = kept.folder.parent / "hidden"
    first = kept.again(policy=hidden, checkpoint=folder)
    assert numbers(kept.again(policy=hidden, checkpoint=folder)) == numbers(first)
    shares[0] = 0.25
    with pytest.raises(StateError, match=r"another question \(.*contents of the files.*\)"):
        kept.again(policy=hidden, checkpoint=folder)


def test_rounds_of_two_questions_in_one_folder(kept: Kept) -> None:
    """As two commands leave them that were started at once: each round is used for its own question only."""
    other = {"columns": {"observation": ["obs_0", "obs_1"], "reward": "other"}}
    second = kept.folder.parent / "second"
    expected = kept.again(**other, checkpoint=second)
    for path in kept.folder.glob("*.npy"):
        (second / path.name).write_bytes(path.read_bytes())
    found = kept.again(**other, checkpoint=second)
    assert numbers(found) == numbers(expected)
    assert "of before" not in found.notes[-1]


def test_a_folder_without_rounds_is_of_no_question(kept: Kept, tmp_path: Path) -> None:
    """A command that was refused before its first round can be corrected."""
    folder = tmp_path / "new"
    with pytest.raises(ValueError, match="no column"):
        kept.again(columns={"reward": "nothing"}, checkpoint=folder)
    assert numbers(kept.again(checkpoint=folder)) == numbers(kept.answer)


def test_no_argument_is_forgotten(kept: Kept) -> None:
    """Each is part of the question, or says where and how it is computed."""
    where = {"source", "client", "storage", "checkpoint", "spill", "report", "question"}
    others = set(inspect.signature(answers_of_files).parameters) - where
    told = json.loads((kept.folder / "question.json").read_text())
    assert others | {each.name for each in fields(Question)} <= set(told)


def test_it_goes_on_after_a_stop(kept: Kept) -> None:
    """What was computed is not computed again."""
    folder, said = kept.folder.parent / "stopped", []

    def stop(text: str, share: float) -> None:
        said.append(text)
        if text.startswith("round 12"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kept.again(checkpoint=folder, report=stop)
    before = {path.name: path.stat().st_mtime_ns for path in folder.glob("*.npy")}
    assert len(before) == 12
    found = kept.again(checkpoint=folder)
    assert found.notes[-1].startswith("12 rounds of before, kept in ")
    assert numbers(found) == numbers(kept.answer)
    assert all((folder / name).stat().st_mtime_ns == when for name, when in before.items())


def test_all_rows_of_another_policy(kept: Kept) -> None:
    """Action values, then ratios: what is known only later is added to the question, and compared the next time."""
    folder = kept.folder.parent / "all rows"
    first = kept.again(estimators=None, checkpoint=folder)
    again = kept.again(estimators=None, checkpoint=folder)
    assert {row.name for row in first.rows} >= {"LSTDQ", "KrylovLSTD with ratios"}
    assert "rounds of before" in again.notes[-1]
    assert numbers(again) == numbers(first)
