"""The campaign: the time is shared among rows and subjects, what was done is kept, and it goes on where it was."""

from __future__ import annotations

import tempfile
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tlstd_lab.campaign import registry
from tlstd_lab.campaign.processes import Process
from tlstd_lab.campaign.store import Done, Folder, add, read_failure

PASSES = 8
FIRST = 0.1
"""Of the time, for the first pass, after which it is known what each row still needs."""
LEAST = 2.0
"""Seconds of a share that is worth another pass."""


@dataclass
class State:
    """How far a campaign is.

    Attributes
    ----------
    rows : dict
        The rows with their subjects.
    limits : dict
        Tries of each subject, by row.
    done : dict
        What was done, by row and subject.
    seconds : float
        To be spent in all, by all processes together.
    now : str
        What is being done.
    """

    rows: Mapping[str, Sequence[str]]
    limits: Mapping[str, int]
    done: dict[tuple[str, str], Done]
    seconds: float
    now: str = ""
    failures: list[Path] = field(default_factory=list)

    def of(self, name: str, subject: str) -> Done:
        """What was done to one subject."""
        return self.done.setdefault((name, subject), Done())

    def spent(self, name: str | None = None) -> float:
        """Seconds spent, on one row or on all."""
        return sum(self.of(*unit).seconds for unit in self.units() if name in (None, unit[0]))

    def units(self) -> list[tuple[str, str]]:
        """Rows and subjects."""
        return [(name, subject) for name, subjects in self.rows.items() for subject in subjects]

    def need(self, name: str, subject: str) -> float:
        """Seconds to the target at the rate so far."""
        done = self.of(name, subject)
        return (self.limits[name] - done.tries) * done.seconds / done.tries if done.tries else float("inf")

    def open(self, name: str) -> list[str]:
        """Subjects of a row of which the target is not reached."""
        return [
            subject
            for subject in self.rows[name]
            if not self.of(name, subject).ended and self.of(name, subject).tries < self.limits[name]
        ]


Progress = Callable[[State], None]


class Campaign:
    """Rows tried within a time.

    Parameters
    ----------
    rows : mapping
        Of :func:`registry.chosen`.
    folder : Folder
    seconds : float
        To be spent in all, by all processes together, what the folder has of it included.
    at_most : int, optional
        As many of each subject and row, where the target is more.
    checked : bool
        Whether kernels check their indices, where the row wants that.
    jobs : int
        Processes at the same time.
    progress : callable
        Is told how far it is.
    """

    def __init__(
        self,
        rows: Mapping[str, Sequence[str]],
        folder: Folder,
        seconds: float,
        *,
        at_most: int | None = None,
        checked: bool = True,
        jobs: int = 1,
        progress: Progress = lambda _: None,
    ) -> None:
        done, self.n_others = folder.done()
        limits = {name: registry.row(name).tries(at_most) for name in rows}
        self.state = State(rows, limits, done, seconds)
        self._folder, self._checked, self._jobs, self._progress = folder, checked, jobs, progress
        self._lock = threading.Lock()
        self._own = threading.local()
        self._processes: list[Process] = []
        self._limit = 0.0  # seconds spent when a pass is to end
        self._ends: dict[str, float] = {}  # seconds of rows that are being tried, when they are to end
        self._stopped = False

    def run(self) -> State:
        """Make tries until the targets are reached or the time is over."""
        with self._folder.locked(), ThreadPoolExecutor(self._jobs, thread_name_prefix="campaign") as pool:
            try:
                if self.state.seconds - self.state.spent() > 0.5:
                    self._each(pool, [partial(self._prepare, name) for name in self._open()])
                for number in range(PASSES):
                    if not self._run_once(pool, first=number == 0):
                        break
            finally:  # also after Ctrl-C
                self._stopped = True
                for process in self._processes:
                    process.kill()
        return self.state

    def _open(self) -> list[str]:
        return [name for name in self.state.rows if self.state.open(name)]

    @staticmethod
    def _each(pool: ThreadPoolExecutor, tasks: Sequence[Callable[[], None]]) -> None:
        for task in as_completed([pool.submit(task) for task in tasks]):
            task.result()

    def _prepare(self, name: str) -> None:
        """Compile what a row needs, or load it, before the time counts. (What goes wrong is found by its tries.)"""
        row = registry.row(name)
        if row.fresh or row.alone:
            return
        for subject in self.state.open(name):
            if self._stopped:
                return
            self._say(f"compiling, which is not counted, for {name}: {subject}")
            first = self.state.of(name, subject).tries
            order = self._order(name, subject, 0.0) | {"limit": first}
            deque(self._process(self._checked and row.checked, new=False).batches(order), maxlen=0)

    def _say(self, now: str) -> None:
        with self._lock:
            self.state.now = now
            self._progress(self.state)

    def _run_once(self, pool: ThreadPoolExecutor, *, first: bool) -> bool:
        """Give every open row its share of the time that is left; whether there was something to do.

        Those that need least come first: what they leave goes to all the others.
        """
        state, names = self.state, self._open()
        left = state.seconds - state.spent()
        if not names or left < 0.5 or (not first and left / len(names) < LEAST):
            return False
        self._limit = state.spent() + (FIRST if first else 1.0) * left
        names.sort(key=lambda name: (sum(state.need(name, subject) for subject in state.open(name)), state.spent(name)))
        self._each(pool, [partial(self._run_row, name, names[k:]) for k, name in enumerate(names)])
        return True

    def _run_row(self, name: str, rest: Sequence[str]) -> None:
        """Try the open subjects of one row, each for its part of the row's share."""
        state = self.state
        with self._lock:
            reserved = sum(max(0.0, end - state.spent(other)) for other, end in self._ends.items())
            left = self._limit - state.spent() - reserved
            level = (left + sum(map(state.spent, rest))) / len(rest)
            self._ends[name] = end = min(level, state.spent(name) + left)
        subjects = sorted(state.open(name), key=lambda subject: state.need(name, subject))
        for k, subject in enumerate(subjects):
            share = (end - state.spent(name)) / (len(subjects) - k)
            if self._stopped:
                break
            if share > 0.1 or not state.of(name, subject).tries:
                self._run_unit(name, subject, max(share, 0.1))
        del self._ends[name]

    def _order(self, name: str, subject: str, seconds: float) -> dict[str, Any]:
        return {
            "row": name,
            "subject": subject,
            "seed": self._folder.seed,
            "folder": str(self._folder.work(name, subject)),
            "first": self.state.of(name, subject).tries,
            "limit": self.state.limits[name],
            "seconds": seconds,
        }

    def _run_unit(self, name: str, subject: str, seconds: float) -> None:
        state, row = self.state, registry.row(name)
        done = state.of(name, subject)
        process = self._process(self._checked and row.checked, row.fresh or row.alone)
        for batch in process.batches(self._order(name, subject, seconds)):
            with self._lock:
                if self._stopped:
                    return
                line = self._folder.append(name, subject, batch)
                add(done, line)
                state.failures += [self._folder.path / "failures" / each for each in line["failures"]]
                state.now = f"{name}: {subject}"
                self._progress(state)
        if row.fresh or row.alone:
            process.kill()

    def _process(self, checked: bool, new: bool) -> Process:
        """This thread's process, or a new one."""
        if not hasattr(self._own, "processes"):
            self._own.processes = {}
        found: Process | None = None if new else self._own.processes.get(checked)
        if found is None or not found.alive:
            found = Process(checked)
            with self._lock:
                self._processes.append(found)
            if not new:
                self._own.processes[checked] = found
        return found


def replay(path: Path, *, checked: bool = True) -> tuple[dict[str, Any], str | None]:
    """Make the try of a failure again; the failure, and what happens now, None if nothing."""
    with tempfile.TemporaryDirectory() as folder:
        failure = read_failure(path, Path(folder))
        row = registry.row(failure["row"])
        number = failure["number"]
        process = Process(checked and row.checked)
        try:
            order = {
                "row": failure["row"],
                "subject": failure["subject"],
                "seed": failure["seed"],
                "folder": folder,
                "first": number,
                "limit": number + 1,
                "seconds": 0.0,
            }
            (batch,) = process.batches(order)
        finally:
            process.kill()
    return failure, batch["failures"][0]["words"] if batch["failures"] else None
