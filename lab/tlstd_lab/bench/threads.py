"""Rows of BLAS threads: what t-LSTD's limit spares a user whose machine is busy with something else."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from statistics import median
from typing import Any, cast
from unittest import mock

from threadpoolctl import threadpool_limits

from tlstd.core import threads
from tlstd_lab.bench import problems
from tlstd_lab.bench.problems import warmed, whole
from tlstd_lab.bench.row import Bench, Line, cost, speed_up
from tlstd_lab.bench.timing import Side, Times, ratios

_SPIN = "import time\nend = time.monotonic() + 300\nwhile time.monotonic() < end: pass"


def blas_threads(bench: Bench) -> list[Line]:
    """t-LSTD with two BLAS threads on a busy machine: as it is, with its own limit lifted, and with one thread."""
    lines = []
    for problem in (problems.energy(bench.quick), problems.tiles(bench.quick)):
        warm = warmed(problem)
        part = problem.stream[warm.start : warm.start + whole(bench.size(320, 40), warm.buffer)]
        side = problems.many(f"t-LSTD, {problem.name}, BLAS set to two threads", warm.model, part)
        with busy(bench.size(os.cpu_count() or 1, 1)):
            ours, lifted, one = bench.time(
                side._replace(prepare=partial(_within, side.prepare, _two_threads)),
                Side("without t-LSTD's own limit", side.steps, partial(_within, side.prepare, _two_threads, no_limit)),
                Side("BLAS set to one", side.steps, side.prepare),
            )
        lines.append(cost(ours, one, 1.5, note=_by_wall(ours, one)))
        lines.append(speed_up(ours, lifted, note=_by_wall(lifted, ours)))
    return lines


def _by_wall(above: Times, below: Times) -> str:
    return f"by the clock on the wall {median(ratios(above, below, wall=True)):.2f}×"


def _two_threads() -> AbstractContextManager[Any]:
    return cast(AbstractContextManager[Any], threadpool_limits(limits=2, user_api="blas"))


def _within(
    prepare: Callable[[], Callable[[], object]], *contexts: Callable[[], AbstractContextManager[Any]]
) -> Callable[[], object]:
    """What is prepared, done within the contexts."""
    action = prepare()

    def done() -> None:
        with ExitStack() as stack:
            for context in contexts:
                stack.enter_context(context())
            action()

    return done


@contextmanager
def no_limit() -> Iterator[None]:
    """Within this, the library's own limits on BLAS threads do nothing."""

    def unlimited(operations: float = 0.0) -> AbstractContextManager[Any]:
        return nullcontext()

    users = [m for m in list(sys.modules.values()) if getattr(m, "one_thread", None) is threads.one_thread]
    patches = [mock.patch.object(module, "one_thread", unlimited) for module in users]
    for patch in patches:
        patch.start()
    try:
        yield
    finally:
        for patch in patches:
            patch.stop()


@contextmanager
def busy(n_processes: int) -> Iterator[None]:
    """So many other processes that compute without pause (and end by themselves after some minutes)."""
    processes = [subprocess.Popen([sys.executable, "-c", _SPIN]) for _ in range(n_processes)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()
