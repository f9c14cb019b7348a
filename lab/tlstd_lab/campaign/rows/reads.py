"""Eight threads that read a model, every other time beside one that learns: no read is torn, none is wrong."""

from __future__ import annotations

from pathlib import Path

from tlstd.estimators.registry import ESTIMATORS
from tlstd_lab.campaign.faults import Task, reliability
from tlstd_lab.campaign.row import Row

READERS = 8
READS = 100
"""Of each reader in one try."""
OFTEN = 10
"""Predictions for a vector to each other read, ten times as many as in the check: 25 of 27 reads."""


def _task(subject: str, seed: int, folder: Path) -> Task:
    tasks = [
        reliability.read_task(ESTIMATORS[subject], writer=writer, seed=seed, readers=READERS, reads=READS, often=OFTEN)
        for writer in (True, False)
    ]
    return lambda number: tasks[number % 2](number)


ROW = Row(
    promise="eight readers and a writer: every read is of a whole model",
    unit="reads",
    target=10_000_000,
    shared=True,
    task=_task,
    each=READERS * READS,
    seconds=4 * reliability.SECONDS,
)
