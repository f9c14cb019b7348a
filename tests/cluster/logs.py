"""The log of these tests, how it is cut into files, and how it is asked."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tlstd.cluster.evaluate import evaluate_files
from tlstd.evaluation.question import Question
from tlstd.evaluation.report import Report


def walk(n_episodes: int = 120, seed: int = 0) -> pl.DataFrame:
    """A walk of two numbers with noise; episodes of different length, some cut off; actions with probabilities."""
    rng = np.random.default_rng(seed)
    rows = []
    for episode in range(n_episodes):
        x, y = rng.uniform(-1.0, 1.0, 2)
        for step in range(int(rng.integers(3, 25))):
            action = int(rng.random() < 0.5)
            after = 0.8 * x + (0.3 if action else -0.3) + 0.1 * rng.standard_normal()
            rows.append((f"e{episode}", step, x, y, action, 0.5, x - 0.1 * y, False))
            x, y = after, 0.9 * y + 0.1 * rng.standard_normal()
        rows[-1] = (*rows[-1][:-1], episode % 4 != 0)
    names = ["episode", "step", "obs_0", "obs_1", "action", "probability", "reward", "terminated"]
    return pl.DataFrame(rows, schema=names, orient="row")


def chain(n_episodes: int = 150, seed: int = 0) -> pl.DataFrame:
    """Five discrete states in a row; the last one pays and ends."""
    rng = np.random.default_rng(seed)
    rows: list[tuple[Any, ...]] = []
    for episode in range(n_episodes):
        state = 0
        while state < 5:
            right = int(rng.random() < 0.5)
            after = state + 1 if right else max(0, state - 1)
            rows.append((f"c{episode}", len(rows), state, right, 0.5, float(after == 5), after == 5))
            state = after
    names = ["episode", "step", "observation", "action", "probability", "reward", "terminated"]
    return pl.DataFrame(rows, schema=names, orient="row")


LOG = walk()
SHORT = walk(45)
"""The first episodes of it: nothing but the number of steps is different."""


def in_files(log: pl.DataFrame, folder: Path, n_files: int, *, whole: bool = False) -> str:
    """Written to files of about as many rows, wherever episodes are or with ``whole`` ones; the pattern of names."""
    ends = np.linspace(0, log.height, n_files + 1).astype(int)
    if whole:
        begins = np.append(np.flatnonzero(log["episode"].to_numpy()[1:] != log["episode"].to_numpy()[:-1]) + 1, 0)
        ends = np.array([0, *(int(begins[np.abs(begins - end).argmin()]) for end in ends[1:-1]), log.height])
    for i, (a, b) in enumerate(pairwise(ends)):
        log[a:b].write_parquet(folder / f"part-{i}.parquet")
    return str(folder / "*.parquet")


def question(
    *, gamma: float = 0.9, policy: Any = None, start: Any = None, estimators: Any = None, **others: Any
) -> Question:
    """What is asked."""
    rows = (estimators,) if isinstance(estimators, str) else estimators
    return Question(gammas=(gamma,), policies=(policy,), starts=(start,), estimators=rows, **others)


OF_QUESTION = {"gamma", "policy", "start", "estimators", "features", "level", "cost", "compare", "returns"}
OF_QUESTION |= {"reward_range", "probabilities"}


def ask(source: Any, **options: Any) -> Report:
    """The answer of files."""
    asked = {name: of for name, of in options.items() if name in OF_QUESTION}
    return evaluate_files(
        source, question=question(**asked), **{name: of for name, of in options.items() if name not in OF_QUESTION}
    )


def numbers(found: Report) -> list[Any]:
    """All rows with their intervals, settings and shares of episodes: compared bit by bit."""
    rows = [
        (row.name, tuple(row.values.items()), None if row.interval is None else (row.interval.low, row.interval.high))
        for row in found.rows
    ]
    moved = [tuple(each.contributions.tolist()) for row in found.rows for each in row.found]
    return [*rows, *moved, found.fit.note, *(tuple(W.ravel().tolist()) for W in found.fit.weights)]
