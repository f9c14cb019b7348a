"""Folders of kept rounds: another question is refused, or has the answer that it has without the folder."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tlstd.cluster import evaluate as of_files
from tlstd.core.arrays import FloatArray
from tlstd.errors import StateError
from tlstd.evaluation import Question, Report
from tlstd_lab.campaign.faults import Task, explained
from tlstd_lab.campaign.row import Row
from tlstd_lab.campaign.rows.logs import sound

SUBJECTS = ("arguments", "contents")
STATES = [[0.0, 0.0], [1.0, -1.0], [-2.5, 3.0]]
COLUMNS = {"observation": ["obs_0", "obs_1"], "reward": "reward"}

OF_QUESTION = {"gamma": "gammas", "policy": "policies", "start": "starts"}
"""Arguments of which a question may have several, by their names in it."""

Rng = np.random.Generator
Arguments = dict[str, Any]


def acting(states: FloatArray, share: float) -> FloatArray:
    """Probabilities of the three actions of the log."""
    return np.tile([share, (1.0 - share) / 2, (1.0 - share) / 2], (len(states), 1))


def _question(rng: Rng, folder: Path) -> Arguments:
    """A log in one to four files, and what is asked of it."""
    frame = sound(False).with_columns(other=pl.col("reward") * 3.0 + 8.0)
    cuts = sorted(rng.choice(np.arange(5, frame.height - 4, 5), int(rng.integers(0, 4)), replace=False).tolist())
    names = []
    for i, (a, b) in enumerate(zip([0, *cuts], [*cuts, frame.height], strict=True)):
        names.append(str(folder / f"part-{i}.parquet"))
        frame[a:b].write_parquet(names[-1])
    policies = (None, partial(acting, share=0.5), partial(acting, share=0.25))
    question: Arguments = {"source": names, "gamma": 0.9, "estimators": ("KrylovLSTD",), "columns": COLUMNS}
    return question | {"policy": policies[rng.integers(3)], "start": (None, "all")[rng.integers(2)]}


# --- other questions --------------------------------------------------------------------------------------------------


ARGUMENTS: Mapping[str, Callable[[Rng], Any]] = {
    "gamma": lambda rng: float(rng.choice([0.5, 0.8, 0.95])),
    "columns": lambda rng: COLUMNS | ({"reward": "other"}, {"observation": ["obs_1", "obs_0"]})[rng.integers(2)],
    "preset": lambda rng: "flat",
    "policy": lambda rng: (None, partial(acting, share=0.5), partial(acting, share=0.75))[rng.integers(3)],
    "start": lambda rng: (None, "first", "all", [[0.5, -0.5]], [[float(rng.integers(9)), 0.0]])[rng.integers(5)],
    "features": lambda rng: "columns",
    "level": lambda rng: float(rng.choice([0.5, 0.9])),
    "cost": lambda rng: True,
    "on_error": lambda rng: "skip",
    "options": lambda rng: {"on_nan": "drop"},
}


def _arguments(rng: Rng, question: Arguments) -> Arguments:
    """One to three arguments are others."""
    names = rng.choice(list(ARGUMENTS), int(rng.integers(1, 4)), replace=False).tolist()
    return question | {name: ARGUMENTS[name](rng) for name in names}


def _contents(rng: Rng, question: Arguments) -> Arguments:
    """One column of one file is another one, or one number in it."""
    path = question["source"][rng.integers(len(question["source"]))]
    name = ("reward", "obs_0", "obs_1", "probability")[rng.integers(4)]
    frame = pl.read_parquet(path)
    values = frame[name].to_numpy().copy()
    rows = slice(None) if rng.random() < 0.5 else int(rng.integers(len(values)))
    values[rows] = values[rows] * 0.75 + (0.0 if name == "probability" else 0.125)
    frame.with_columns(pl.Series(name, values)).write_parquet(path)
    return question


def _evaluated(source: Any, *, checkpoint: Path | None = None, **arguments: Any) -> Report:
    """The answer from rounds, however small the log is."""
    kept = {name: arguments.pop(name) for name in ("columns", "preset", "on_error", "options") if name in arguments}
    asked: dict[str, Any] = {
        OF_QUESTION.get(name, name): (of,) if name in OF_QUESTION else of for name, of in arguments.items()
    }
    question = Question(**asked)
    before, of_files.GATHERED = of_files.GATHERED, 0
    try:
        return of_files.evaluate_files(source, question=question, checkpoint=checkpoint, **kept)
    finally:
        of_files.GATHERED = before


def _numbers(found: Report) -> list[float]:
    """All that the answer consists of."""
    row, interval = found.rows[0], found.interval()
    return [*row.values.values(), interval.low, interval.high, *found.predict(STATES)]


def _task(subject: str, seed: int, folder: Path) -> Task:
    other = _arguments if subject == "arguments" else _contents

    def task(number: int) -> str:
        rng = np.random.default_rng([seed, number])
        with tempfile.TemporaryDirectory() as place:
            (logs := Path(place) / "logs").mkdir()
            kept = Path(place) / "rounds"
            question = _question(rng, logs)
            first = _numbers(_evaluated(**question, checkpoint=kept))
            again = _evaluated(**question, checkpoint=kept)
            assert "rounds of before" in again.notes[-1] or "round of before" in again.notes[-1], "computed again"
            assert _numbers(again) == first, "another answer by its own rounds"
            another = other(rng, question)
            changed = [name for name in another if another[name] is not question.get(name)]
            with explained(f"{len(question['source'])} files, of which another {', '.join(changed) or 'content'}"):
                try:
                    found = _numbers(_evaluated(**another, checkpoint=kept))
                except StateError:
                    return "refused"
                assert found == _numbers(_evaluated(**another)), "the answer of another question"
        return "equal"

    return task


ROW = Row(
    promise="rounds that are kept of one question are not taken for another",
    unit="questions",
    target=2_000,
    shared=True,
    subjects=lambda: list(SUBJECTS),
    task=_task,
    checked=False,
    fresh=True,
)
