"""Logs in several files: one file by several names counts once, and times of several units are the same times."""

from __future__ import annotations

import datetime
import os
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tlstd.cluster.evaluate import evaluate_files
from tlstd.errors import InvalidInputError
from tlstd.evaluation import Question
from tlstd_lab.campaign.faults import Task, explained
from tlstd_lab.campaign.row import Row
from tlstd_lab.campaign.rows.logs import CHUNK, answer, sound

QUESTION = Question(gammas=(0.9,), estimators=("KrylovLSTD",))
UNITS: tuple[Any, ...] = ("ms", "us", "ns")
EPOCH = datetime.datetime(2024, 2, 29)
SUBJECTS = ("whole", "in chunks", "workers")

Rng = np.random.Generator
Found = tuple[Any, int]
"""An answer, and how many steps it is from."""


def _found(source: Any, subject: str) -> Found:
    """What a log in files comes to: its transitions, or, by workers, its value and interval."""
    if subject == "workers":
        found = evaluate_files(source, question=QUESTION)
        interval = found.interval()
        return np.array([found.value, interval.low, interval.high]), found.n_steps
    rows, _ = answer(source, CHUNK if subject == "in chunks" else None)
    return rows, len(rows)


def _in_files(
    rng: Rng, frame: pl.DataFrame, folder: Path, change: Callable[[pl.DataFrame], pl.DataFrame]
) -> list[Path]:
    """The table in one to four files of whole episodes, each changed on its own."""
    starts = np.flatnonzero(np.append(True, frame["episode"].to_numpy()[1:] != frame["episode"].to_numpy()[:-1]))
    inside = rng.choice(starts[1:], int(rng.integers(0, 4)), replace=False).tolist()
    paths = []
    for i, (a, b) in enumerate(pairwise([0, *sorted(inside), frame.height])):
        paths.append(folder / f"part-{i}.parquet")
        change(frame[a:b]).write_parquet(paths[-1])
    return paths


# --- names ------------------------------------------------------------------------------------------------------------


def _other_name(rng: Rng, path: Path) -> Any:
    """Another name of a file, or of a folder or pattern that it is in."""
    link = path.parent / f"link-{rng.integers(10**9)}.parquet"
    kind = int(rng.integers(7))
    if kind == 0:
        link.symlink_to(path)
    elif kind == 1:
        os.link(path, link)
    elif kind == 2:
        link = link.with_name(f"copy-{link.name}")
        link.write_bytes(path.read_bytes())  # another file with the same rows
    return [link, link, link, str(path), os.path.relpath(path), path.parent, str(path.parent / "part-*.parquet")][kind]


def _names(subject: str, seed: int, folder: Path) -> Task:
    def task(number: int) -> str:
        rng = np.random.default_rng([seed, number])
        with tempfile.TemporaryDirectory() as place:
            paths = _in_files(rng, sound(bool(rng.integers(2))), Path(place), lambda part: part)
            expected = _found(paths, subject)
            others = [_other_name(rng, paths[rng.integers(len(paths))]) for _ in range(int(rng.integers(1, 4)))]
            with explained(f"{len(paths)} files, and {', '.join(str(other) for other in others)}"):
                try:
                    found = _found([*paths, *others], subject)
                except InvalidInputError:
                    if subject == "in chunks" and any("copy-" in str(other) for other in others):
                        return "refused"  # rows of a copy are not compared
                    raise
                assert found[1] == expected[1], f"{found[1]} steps where there are {expected[1]}"
                assert np.array_equal(found[0], expected[0]), "another answer"
        return "equal"

    return task


# --- units ------------------------------------------------------------------------------------------------------------


def _timed(rng: Rng, part: pl.DataFrame) -> pl.DataFrame:
    """Rewards as durations, multiples of 1/64 s, and steps as times, in units of this file."""
    reward, step = UNITS[rng.integers(1, 3)], UNITS[rng.integers(3)]
    microseconds = (pl.col("reward") * 1e6).round().cast(pl.Int64)
    return part.with_columns(
        reward=microseconds.cast(pl.Duration("us")).cast(pl.Duration(reward)),
        step=(pl.lit(EPOCH) + pl.duration(milliseconds=20 * pl.col("step"))).cast(pl.Datetime(step)),
    )


def _units(subject: str, seed: int, folder: Path) -> Task:
    def task(number: int) -> str:
        rng = np.random.default_rng([seed, number])
        with tempfile.TemporaryDirectory() as place:
            (plain := Path(place) / "plain").mkdir()
            (timed := Path(place) / "timed").mkdir()
            frame = sound(bool(rng.integers(2)))
            cuts = int(rng.integers(2**31))
            expected = _found(_in_files(np.random.default_rng(cuts), frame, plain, lambda part: part), subject)
            paths = _in_files(np.random.default_rng(cuts), frame, timed, lambda part: _timed(rng, part))
            with explained(f"{len(paths)} files with units of their own"):
                found = _found(paths, subject)
                assert np.array_equal(found[0], expected[0]), "another answer"
        return "equal"

    return task


NAMES = Row(
    promise="a file counts once, whatever names lead to it, and so do its rows in a copy",
    unit="logs",
    target=3_000,
    shared=True,
    subjects=lambda: list(SUBJECTS),
    task=_names,
    checked=False,
    fresh=True,
)
UNITS_ROW = Row(
    promise="times of several units are the same seconds, and in the same order",
    unit="logs",
    target=3_000,
    shared=True,
    subjects=lambda: list(SUBJECTS),
    task=_units,
    checked=False,
    fresh=True,
)
