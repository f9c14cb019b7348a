"""Workers killed again and again, processes and those of a Dask cluster: no run is lost, none is given up."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tlstd.cluster.clients import local_workers
from tlstd.cluster.evaluate import evaluate_files
from tlstd.evaluation import Question
from tlstd_lab.campaign.faults import Task
from tlstd_lab.campaign.row import Row
from tlstd_lab.executors import DaskCluster, Executor, LocalProcesses
from tlstd_lab.spec import RunSpec
from tlstd_lab.store import Store

RUNS = 10
"""Of one try."""
KILLS = 2
"""Of workers in one try, or while one log is evaluated: fewer than a run has tries."""
EVERY = 5.0
"""Seconds after which one is killed at the next opportunity: the promise is of a kill every ten."""
LASTS = 0.2
"""Seconds that a run takes."""


def run(settings: dict[str, Any], seed: int) -> dict[str, NDArray[Any]]:
    """What a worker computes: a little, after a while."""
    time.sleep(settings.get("seconds", 0.0))
    rng = np.random.default_rng(seed)
    return {"x": np.linalg.lstsq(rng.standard_normal((80, 40)), rng.standard_normal(80), rcond=None)[0]}


class Killer:
    """Kills one of some processes when it is asked, now and then, and at once if it is long ago; a few in each try.

    It is asked when something has been done: by the clock alone, workers on a busy machine would be killed before they
    have started.
    """

    def __init__(self, living: Callable[[], list[int]], chance: float) -> None:
        self.living, self.chance = living, chance
        self.killed, self.apart = 0, 0.0
        self._left, self._last, self._choices = 0, time.monotonic(), random.Random()

    def begin(self, seed: str) -> None:
        """Kill by this seed, as often as may be."""
        self._left, self._choices = KILLS, random.Random(seed)

    def counted(self) -> str:
        """How many were killed since this was asked for last, and the longest time without a kill."""
        said = f"{self.killed} killed, at most {np.ceil(self.apart):.0f} s apart"
        self.killed, self.apart = 0, 0.0
        return said

    def __call__(self, *said: object) -> None:
        """Kill one, perhaps."""
        found, now = self.living(), time.monotonic()
        self.apart = max(self.apart, now - self._last)
        due = self._choices.random() < self.chance or now - self._last > EVERY
        if found and self._left and due:
            with suppress(ProcessLookupError):
                os.kill(self._choices.choice(found), signal.SIGKILL)
                self.killed, self._left, self._last = self.killed + 1, self._left - 1, now


class _Runs:
    """Runs stored by an executor whose workers die."""

    def __init__(self, executor: Executor, living: Callable[[], list[int]], seed: int) -> None:
        self.executor, self.seed = executor, seed
        self.killer = Killer(living, 0.3)

    def __call__(self, number: int) -> str:
        settings = {"seconds": LASTS}
        specs = [RunSpec(f"{__name__}:run", settings, RUNS * number + i) for i in range(RUNS)]
        self.killer.begin(f"{self.seed} {number}")
        with tempfile.TemporaryDirectory() as folder:
            store, outcomes = Store(folder), []
            for outcome in self.executor.run(specs, store):
                outcomes.append(outcome)
                self.killer()
            given_up = [outcome.error for outcome in outcomes if outcome.error]
            assert not given_up, f"given up, with {self.killer.killed} workers killed: {given_up[0]}"
            counts = Counter(outcome.key for outcome in outcomes)
            assert counts == Counter(spec.key for spec in specs), "a run was lost or reported twice"
            for spec in specs:
                expected = run({}, spec.seed)["x"]
                assert np.array_equal(store.read(spec.key).columns["x"], expected), "another result is stored"
            return self.killer.counted()


class _Evaluations:
    """A log in files, evaluated by workers that die: the bits of one process."""

    def __init__(self, client: Any, living: Callable[[], list[int]], seed: int, folder: str) -> None:
        self.client, self.seed, self.killer = client, seed, Killer(living, 0.05)
        for i in range(4):
            _log(i).write_parquet(Path(folder) / f"part-{i}.parquet")
        self.question = Question(gammas=(0.9,), estimators=("KrylovLSTD",))
        self.pattern = str(Path(folder) / "*.parquet")
        self.expected = evaluate_files(self.pattern, question=self.question).value

    def __call__(self, number: int) -> str:
        for i in range(RUNS):
            self.killer.begin(f"{self.seed} {number} {i}")
            question: dict[str, Any] = {"question": self.question, "client": self.client}
            found = evaluate_files(self.pattern, report=self.killer, **question).value
            assert found == self.expected, f"the value is {found!r}, not {self.expected!r}"
        return self.killer.counted()


def _log(number: int) -> pl.DataFrame:
    rng = np.random.default_rng(number)
    n = 300
    return pl.DataFrame(
        {
            "episode": [f"{number} {i // 10}" for i in range(n)],
            "step": [i % 10 for i in range(n)],
            "obs_0": rng.random(n),
            "obs_1": rng.random(n),
            "reward": rng.random(n),
            "terminated": [i % 10 == 9 for i in range(n)],
        }
    )


class _Closing:
    """A task with what has to be closed after it."""

    def __init__(self, task: Task, stack: ExitStack) -> None:
        self.task, self.close = task, stack.close

    def __call__(self, number: int) -> str:
        return self.task(number)


def _task(subject: str, seed: int, folder: Path) -> Task:
    if subject == "processes":
        return _Runs(LocalProcesses(2), lambda: [c.pid for c in multiprocessing.active_children() if c.pid], seed)
    stack = ExitStack()
    client = stack.enter_context(local_workers(2))

    def living() -> list[int]:
        nannies = list(client.cluster.workers.values())
        return [nanny.pid for nanny in nannies if nanny.pid is not None]

    if subject == "Dask":
        return _Closing(_Runs(DaskCluster(client.scheduler.address), living, seed), stack)
    place = stack.enter_context(tempfile.TemporaryDirectory())
    return _Closing(_Evaluations(client, living, seed, place), stack)


ROW = Row(
    promise="workers killed again and again: no run lost, none given up",
    unit="runs",
    target=1_000,
    shared=True,
    subjects=lambda: ["processes", "Dask", "files on Dask"],
    task=_task,
    each=RUNS,
    seconds=300.0,
    checked=False,
    alone=True,
)
