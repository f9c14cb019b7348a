"""A tiny task that tells what happens to it, and what the tests of the runner share."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tlstd_lab.spec import RunSpec
from tlstd_lab.store import Store

TASK = f"{__name__}:task"
DEADLINE = 120.0


def task(settings: dict[str, Any], seed: int) -> dict[str, NDArray[Any]]:
    """Least squares of random numbers; says so in ``folder/log`` when it begins and ends.

    Seeds from ``hold`` on wait between the two until ``folder/gate`` is there, and if they are ``stubborn`` let no
    other thread of the process run meanwhile; those in ``fail`` raise; those in ``die`` kill their process with
    signal 9.
    """
    folder = Path(settings["folder"])
    note(folder, f"begin {seed} {os.getpid()}")
    if seed in settings.get("fail", []):
        note(folder, f"end {seed} {os.getpid()}")
        raise ValueError(f"seed {seed} does not like it")
    if seed in settings.get("die", []):
        os.kill(os.getpid(), signal.SIGKILL)
    if seed >= settings.get("hold", np.inf):
        if settings.get("stubborn") and not (folder / "gate").exists():
            ctypes.PyDLL(None).sleep(int(DEADLINE))  # as a compiled loop that keeps the interpreter's lock
        until((folder / "gate").exists)
    rng = np.random.default_rng(seed)
    A, b = rng.standard_normal((80, 40)), rng.standard_normal(80)
    note(folder, f"end {seed} {os.getpid()}")
    return {"feature": np.arange(40), "weight": np.linalg.lstsq(A, b, rcond=None)[0]}


def specs(folder: Path, n: int, *, timed: bool = False, **settings: Any) -> list[RunSpec]:
    """n specs of the task that differ in their seeds."""
    return [RunSpec(TASK, {"folder": str(folder), **settings}, seed, timed=timed) for seed in range(n)]


def note(folder: Path, line: str) -> None:
    """Append a line in one write."""
    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(log, f"{line}\n".encode())
    finally:
        os.close(log)


def lines(folder: Path, word: str) -> list[tuple[int, int]]:
    """Seed and process of the log's lines that begin with this word."""
    log = folder / "log"
    entries = [line.split() for line in log.read_text().splitlines()] if log.exists() else []
    return [(int(seed), int(process)) for first, seed, process in entries if first == word]


def begun(folder: Path) -> Counter[int]:
    """How often each seed has begun."""
    return Counter(seed for seed, _ in lines(folder, "begin"))


def ended(folder: Path) -> Counter[int]:
    """How often each seed has ended."""
    return Counter(seed for seed, _ in lines(folder, "end"))


def running(folder: Path) -> list[tuple[int, int]]:
    """Seed and process of the runs that have begun and not ended."""
    return list((Counter(lines(folder, "begin")) - Counter(lines(folder, "end"))).elements())


def contents(store: Store) -> dict[str, dict[str, bytes]]:
    """All that is stored, to the last bit, timings excepted."""
    runs = store.read_many(sorted(store.keys()))
    return {key: {name: column.tobytes() for name, column in run.columns.items()} for key, run in runs.items()}


def until(condition: Callable[[], object]) -> None:
    """Wait; the machine may be slow."""
    deadline = time.monotonic() + DEADLINE
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{condition} did not come true within {DEADLINE} s")
        time.sleep(0.02)
