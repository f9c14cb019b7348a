"""A row: one promise, on whom it is tried, and how."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tlstd_lab.campaign.faults import Task


def estimators() -> list[str]:
    """The entries of the registry."""
    from tlstd.estimators.registry import ESTIMATORS

    return list(ESTIMATORS)


@dataclass(frozen=True, kw_only=True)
class Row:
    """One promise.

    Attributes
    ----------
    promise : str
        In words, for the table.
    unit : str
        What is counted.
    target : int
        How many of them are wanted for a release: of each subject, or, if ``shared``, of all together.
    subjects : callable
        The names of what is tried: estimators, streams, kinds of files.
    task : callable
        ``task(subject, seed, folder)`` prepares everything and returns the function that makes one try, by its number
        and nothing else; it raises where the promise is broken. The folder is the subject's own and is kept.
    each : int
        What one try counts for.
    seconds : float
        After which a try counts as hanging.
    megabytes : int, optional
        Memory that a try may take beyond what is there before.
    checked : bool
        Whether kernels check their indices.
    fresh : bool
        In a new process, because children use polars, whose threads do not survive a fork.
    alone : bool
        In a new process and without forking, because the task itself has threads, servers or a browser.
    chain : bool
        Whether each try goes on from what the one before has left in the folder: the first failure is the last try.
    evidence : callable, optional
        ``evidence(subject, seed, number)``: the files, by name, that a failed try was about.
    """

    promise: str
    unit: str
    target: int
    task: Callable[[str, int, Path], Task]
    subjects: Callable[[], list[str]] = estimators
    shared: bool = False
    each: int = 1
    seconds: float = 30.0
    megabytes: int | None = None
    checked: bool = True
    fresh: bool = False
    alone: bool = False
    chain: bool = False
    evidence: Callable[[str, int, int], dict[str, bytes]] | None = None

    def tries(self, at_most: int | None = None) -> int:
        """Tries of each subject that make up the target, or so many of what is counted."""
        wanted = -(-self.target // len(self.subjects())) if self.shared else self.target
        return -(-min(wanted, wanted if at_most is None else at_most) // self.each)
