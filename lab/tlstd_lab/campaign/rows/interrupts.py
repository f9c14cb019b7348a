"""Ctrl-C at a random moment, and exceptions at lines of the library: what is left is the model of a prefix."""

from __future__ import annotations

from pathlib import Path

from tlstd.estimators.registry import ESTIMATORS
from tlstd_lab.campaign.faults import Task, reliability
from tlstd_lab.campaign.row import Row


def _interrupts(subject: str, seed: int, folder: Path) -> Task:
    return reliability.interrupt_task(ESTIMATORS[subject], seed=seed)


def _exceptions(subject: str, seed: int, folder: Path) -> Task:
    return reliability.exception_task(ESTIMATORS[subject], seed=seed)


INTERRUPTS = Row(
    promise="after Ctrl-C the model is whole, saves, loads and goes on",
    unit="interrupts",
    target=1_000,
    task=_interrupts,
    seconds=reliability.SECONDS,
)
EXCEPTIONS = Row(
    promise="the same after an exception at any line",
    unit="exceptions",
    target=1_000,
    task=_exceptions,
    seconds=reliability.SECONDS,
)
