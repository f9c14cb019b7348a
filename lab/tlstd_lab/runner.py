"""Run specs that are not stored yet: ``python -m tlstd_lab.runner SPECS.json --store FOLDER``.

``SPECS.json`` is a list of runs, each as in :meth:`RunSpec.to_json`. Stopped in whatever way, the same command goes on
where it was. The exit code is 0 if all runs are stored, 1 if some have failed, 130 after Ctrl-C.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tlstd.errors import InvalidParameterError, TlstdError
from tlstd_lab.executors import DaskCluster, Executor, InProcess, LocalProcesses, Outcome
from tlstd_lab.spec import RunSpec
from tlstd_lab.store import Store

if TYPE_CHECKING:
    from rich.console import Console

LINE_EVERY = 10.0
"""Seconds between lines of progress that go to a file."""

MAX_SHOWN = 5
"""Failures whose text is printed."""


@dataclass(frozen=True)
class Failure:
    """A run that has failed, and the text of its exception."""

    spec: RunSpec
    error: str


@dataclass(frozen=True)
class Report:
    """What :func:`run_all` has done: of ``total`` runs ``n_before`` were stored before, ``n_new`` now."""

    store: Path
    total: int
    n_before: int
    n_new: int
    failures: tuple[Failure, ...] = ()
    interrupted: bool = False

    @property
    def complete(self) -> bool:
        """Whether every run is stored."""
        return self.n_before + self.n_new == self.total

    @property
    def exit_code(self) -> int:
        """For the command: 0 complete, 1 failures, 130 interrupted."""
        return 130 if self.interrupted else int(not self.complete)

    def __str__(self) -> str:
        stored = self.n_before + self.n_new
        text = f"{stored} of {self.total} runs are stored in {self.store}, {self.n_new} of them new"
        if self.interrupted:
            text = f"stopped: {text}; the same command continues"
        if self.failures:
            text += f"; {len(self.failures)} failed"
        shown = [f"\nfailed: {failure.spec.to_json()}\n{failure.error}" for failure in self.failures[:MAX_SHOWN]]
        if len(self.failures) > MAX_SHOWN:
            shown.append(f"\n... and {len(self.failures) - MAX_SHOWN} more")
        return "\n".join([text, *shown])


class Tally:
    """How far a campaign is, how fast it goes, and how long it may still take.

    Runs that differ only in their seed are taken to cost the same; those of which none is done yet, what their task's
    other runs cost on average, or else all runs.

    Parameters
    ----------
    specs : sequence of RunSpec
        What is to be run.
    n_before : int
        How many other runs were stored before.
    clock : function
        Seconds, as of :func:`time.monotonic`.

    Example
    -------
    >>> now = 0.0
    >>> specs = [RunSpec("package.module:function", {"rank": 20}, seed=seed) for seed in range(10)]
    >>> tally = Tally(specs, clock=lambda: now)
    >>> print(tally)
    0/10 runs
    >>> now = 4.0
    >>> for spec in specs[:4]:
    ...     tally.add(spec, Outcome(spec.key, seconds=2.0))
    >>> print(tally)
    4/10 runs, 1.00 per second, 0:00:06 left
    """

    def __init__(
        self, specs: Sequence[RunSpec], n_before: int = 0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.total = len(specs) + n_before
        self.n_before = n_before
        self.n_done = 0
        self.n_failed = 0
        self._clock = clock
        self._start = clock()
        self._left = Counter((spec.task, spec.settings, spec.timed) for spec in specs)
        self._costs: defaultdict[object, list[float]] = defaultdict(lambda: [0.0, 0.0])  # runs, seconds

    def add(self, spec: RunSpec, outcome: Outcome) -> None:
        """Count a run that has ended."""
        self.n_done += 1
        self.n_failed += bool(outcome.error)
        self._left[spec.task, spec.settings, spec.timed] -= 1
        for group in ((spec.task, spec.settings, spec.timed), spec.task, None):
            cost = self._costs[group]
            cost[0] += 1
            cost[1] += outcome.seconds

    @property
    def rate(self) -> float:
        """Runs per second since the start."""
        return self.n_done / max(self._clock() - self._start, 1e-9)

    @property
    def seconds_left(self) -> float | None:
        """Estimated time to the end; None before the first run has ended."""
        if not self.n_done:
            return None
        seconds = {False: 0.0, True: 0.0}  # of work, untimed and timed
        for group, number in self._left.items():
            known = next(cost for key in (group, group[0], None) if (cost := self._costs.get(key)))
            seconds[group[2]] += number * known[1] / known[0]
        at_once = max(self._costs[None][1] / max(self._clock() - self._start, 1e-9), 1e-9)  # runs side by side
        return seconds[False] / at_once + seconds[True] / min(at_once, 1.0)

    def __str__(self) -> str:
        text = f"{self.n_before + self.n_done}/{self.total} runs"
        if self.n_failed:
            text += f", {self.n_failed} failed"
        left = self.seconds_left
        if left is None:
            return text
        minutes, seconds = divmod(round(left), 60)
        return f"{text}, {self.rate:.2f} per second, {minutes // 60}:{minutes % 60:02}:{seconds:02} left"


Progress = Callable[[Tally], None]
"""Called at the start and whenever a run has ended."""


def run_all(
    specs: Iterable[RunSpec], store: Store, executor: Executor | None = None, progress: Progress | None = None
) -> Report:
    """Run what is not stored yet and store it.

    Each run is computed once, however often it is named. Runs that are ``timed`` come last, one at a time, with
    nothing else running: in a single local process, or in this one if the executor is :class:`InProcess`. A run that
    fails does not stop the others. Ctrl-C ends the runs under way and returns a report that says so.

    Parameters
    ----------
    specs : iterable of RunSpec
    store : Store
    executor : Executor, optional
        :class:`InProcess` by default.
    progress : function of a Tally, optional
        See :func:`show_progress`.

    Returns
    -------
    Report

    Example
    -------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report = run_all([RunSpec("no.such:task")], Store(folder))
    >>> report.total, report.n_new, len(report.failures), report.exit_code
    (1, 0, 1, 1)
    """
    executor = InProcess() if executor is None else executor
    _check_folder(store.root)
    store.remove_leftovers()
    wanted = {spec.key: spec for spec in specs}
    missing = [spec for key, spec in wanted.items() if not store.has(key)]
    n_before = len(wanted) - len(missing)
    tally = Tally(missing, n_before)
    failures: list[Failure] = []
    interrupted = False
    alone: Executor = executor if isinstance(executor, InProcess) else LocalProcesses(1)
    try:
        if progress is not None:
            progress(tally)
        for some, where in (
            ([spec for spec in missing if not spec.timed], executor),
            ([spec for spec in missing if spec.timed], alone),
        ):
            if not some:
                continue
            with closing(where.run(some, store)) as outcomes:
                for outcome in outcomes:
                    spec = wanted[outcome.key]
                    tally.add(spec, outcome)
                    if outcome.error:
                        failures.append(Failure(spec, outcome.error))
                    if progress is not None:
                        progress(tally)
    except KeyboardInterrupt:
        interrupted = True
    n_new = sum(store.has(spec.key) for spec in missing)
    return Report(store.root, len(wanted), n_before, n_new, tuple(failures), interrupted)


def _check_folder(folder: Path) -> None:
    """Before hours of work, not after."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        writable = os.access(folder, os.W_OK)
    except OSError as error:
        raise InvalidParameterError(f"cannot make the folder {folder} ({error.strerror}): choose another") from None
    if not writable:
        raise InvalidParameterError(f"cannot write to {folder}: choose another folder")


@contextmanager
def show_progress(console: Console | None = None) -> Iterator[Progress]:
    """Show how far a campaign is: a bar in a terminal, else a line every ten seconds; on standard error by default.

    Example
    -------
    >>> from rich.console import Console
    >>> with show_progress(Console()) as progress:
    ...     progress(Tally([RunSpec("package.module:function")], n_before=2))
    2/3 runs
    """
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True) if console is None else console
    if not console.is_terminal:
        yield _lines(console)
        return
    with Bar(SpinnerColumn(), BarColumn(), TextColumn("{task.description}"), console=console) as bar:
        shown = bar.add_task("starting", total=None)

        def show(tally: Tally) -> None:
            bar.update(shown, total=tally.total, completed=tally.n_before + tally.n_done, description=str(tally))

        yield show


def _lines(console: Console) -> Progress:
    """Print the first and the last state, and others now and then."""
    last = -LINE_EVERY

    def show(tally: Tally) -> None:
        nonlocal last
        if not tally.total:
            return
        if time.monotonic() - last >= LINE_EVERY or tally.n_before + tally.n_done == tally.total:
            last = time.monotonic()
            console.print(str(tally), soft_wrap=True)

    return show


def read_specs(path: Path) -> list[RunSpec]:
    """Read a list of runs from a JSON file."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidParameterError(f"cannot read runs from {path} ({error}): give a JSON list of them") from None
    if not isinstance(values, list):
        raise InvalidParameterError(f"{path} holds a {type(values).__name__}: give a JSON list of runs")
    return [RunSpec.from_json(value) for value in values]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tlstd_lab.runner", description="Run what is not stored.")
    parser.add_argument("specs", type=Path, metavar="SPECS.json", help="a JSON list of runs")
    parser.add_argument("--store", type=Path, required=True, metavar="FOLDER", help="folder of the results")
    parser.add_argument("--bundle", type=Path, action="append", default=[], help="results that need not be run")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes; 0 runs in this one")
    parser.add_argument("--cluster", metavar="ADDRESS", help="of a Dask scheduler, instead of local processes")
    options = parser.parse_args(arguments)
    try:
        specs = read_specs(options.specs)
        store = Store(options.store, options.bundle)
        with show_progress() as progress:
            report = run_all(specs, store, choose_executor(options.cluster, options.workers), progress)
    except TlstdError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped; the same command continues", file=sys.stderr)
        return 130
    print(report)
    return report.exit_code


def choose_executor(cluster: str | None, workers: int | None) -> Executor:
    """A Dask cluster by its address, or so many local processes: all cores if None, none but this one if 0."""
    if cluster is not None:
        return DaskCluster(cluster)
    n_workers = os.cpu_count() or 1 if workers is None else workers
    return LocalProcesses(n_workers) if n_workers else InProcess()


if __name__ == "__main__":
    sys.exit(main())
