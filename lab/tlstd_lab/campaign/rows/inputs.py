"""Random inputs, valid and not: learned from, or refused with nothing changed."""

from __future__ import annotations

from pathlib import Path

from tlstd.checks.children import Task
from tlstd.classic.lstd import LSTD
from tlstd.estimators.registry import ESTIMATORS
from tlstd.truncated.tlstd import TLSTD
from tlstd_lab.campaign import inputs
from tlstd_lab.campaign.row import Row


def _task(subject: str, seed: int, folder: Path) -> Task:
    factory = ESTIMATORS[subject]
    return inputs.input_task(factory, finite=isinstance(factory(inputs.D), (LSTD, TLSTD)), seed=seed)


ROW = Row(
    promise="any input is learned from, or refused and changes nothing",
    unit="inputs",
    target=1_000_000,
    shared=True,
    task=_task,
    each=inputs.INPUTS,
    seconds=inputs.SECONDS,
)
