"""Tasks run in forked children with a watchdog: whatever a task does to its process, the caller hears of it.

A child is forked from a process in which everything is imported and compiled, so that it starts within milliseconds.
Where there is no ``os.fork`` the tasks run in this process, and a crash or a hang is one.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple, TypeAlias

from tlstd.checks.data import reason

PATIENCE = 5
"""By how much the clock may run ahead of the processor's time before silence is a hang."""

Task: TypeAlias = Callable[[int], str]
"""Called with a number; returns words for the tally, and raises if something is wrong."""


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Put what was done to a model before whatever it raises, and make that an AssertionError."""
    try:
        yield
    except AssertionError as error:
        raise AssertionError(f"{what}: {error}") from error
    except Exception as error:
        raise AssertionError(f"{what}: it raises {type(error).__name__} ({error})") from error


class Outcome(NamedTuple):
    """What became of a task: ``words`` that it returned, or, if it ``failed``, what happened."""

    number: int
    failed: bool
    words: str


def run(task: Task, indices: range, *, seconds: float = 30.0, megabytes: int | None = None) -> list[Outcome]:
    """Call ``task(i)`` for every index in children, one after the other, and return what became of each.

    A task fails by an exception, by a warning, by a crash, and by a hang: more than ``seconds`` of the processor's
    time, or ``PATIENCE`` times as long by the clock, which runs on while other programs are at work. After a crash or
    a hang the next child goes on behind it.

    Parameters
    ----------
    task : callable
    indices : range
    seconds : float
        For one task, of the processor's time.
    megabytes : int, optional
        Memory that a child may take beyond what the caller has; more is a MemoryError.
    """
    if not hasattr(os, "fork"):
        return [attempt(task, index) for index in indices]
    outcomes: list[Outcome] = []
    while len(outcomes) < len(indices):
        outcomes += _run_child(task, indices[len(outcomes) :], seconds, megabytes)
    return outcomes


def _run_child(task: Task, indices: range, seconds: float, megabytes: int | None) -> list[Outcome]:
    """What became of the first tasks: of all of them, or of those up to the one that ended the child."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # that other threads exist; none holds a lock here
        child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            if megabytes is not None:
                _limit_memory(megabytes)
            for index in indices:
                _send(writing, attempt(task, index))
        finally:
            os._exit(0)
    os.close(writing)
    outcomes: list[Outcome] = []
    with os.fdopen(reading, "rb", buffering=0) as pipe:
        try:
            hung = _receive(pipe.fileno(), child, outcomes, seconds, len(indices))
        except BaseException:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise
    if hung:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if len(outcomes) < len(indices):
        end = f"did not end within {seconds:g} s" if hung else f"died of {_cause(status)}"
        outcomes.append(Outcome(indices[len(outcomes)], True, end))
    return outcomes


def attempt(task: Task, index: int) -> Outcome:
    """Call a task in this process; what became of it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return Outcome(index, False, task(index))
    except BaseException as error:
        return Outcome(index, True, reason(error))


def _send(descriptor: int, outcome: Outcome) -> None:
    data = json.dumps(outcome).encode() + b"\n"
    while data:
        data = data[os.write(descriptor, data) :]


def _receive(descriptor: int, child: int, outcomes: list[Outcome], seconds: float, count: int) -> bool:
    """Collect outcomes until the child has no more; returns whether it was silent for too long."""
    pending = b""
    used, clock = _processor_time(child), time.monotonic()
    while len(outcomes) < count:
        ready, _, _ = select.select([descriptor], [], [], min(seconds, 1.0))
        now = _processor_time(child), time.monotonic()
        if not ready:
            if now[0] - used > seconds or now[1] - clock > PATIENCE * seconds:
                return True
            continue
        data = os.read(descriptor, 1 << 16)
        if not data:
            return False
        used, clock = now
        *lines, pending = (pending + data).split(b"\n")
        outcomes += [Outcome(*json.loads(line)) for line in lines]
    return False


def _processor_time(process: int) -> float:
    """Seconds for which a process has been at work; where the system does not say, those of the clock."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:
            numbers = file.read().rpartition(")")[2].split()
    except OSError:
        return time.monotonic()
    return (int(numbers[11]) + int(numbers[12])) / os.sysconf("SC_CLK_TCK")


def _limit_memory(megabytes: int) -> None:
    """Let this process map only so much more memory than it has, where the system says how much that is."""
    import resource  # where there is fork

    with suppress(OSError, ValueError):
        with open("/proc/self/statm", encoding="ascii") as file:
            pages = int(file.read().split()[0])
        limit = pages * resource.getpagesize() + (megabytes << 20)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _cause(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"
