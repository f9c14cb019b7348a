"""Whatever dies, every run is stored once. A Dask cluster is tested in ``test_runner.py``."""

from __future__ import annotations

import multiprocessing
import multiprocessing.spawn
import os
import shutil
import signal
import time
from collections import Counter
from pathlib import Path
from threading import Event, Thread

import numpy as np
import pytest
from tlstd_lab.executors import MAX_TRIES, DaskCluster, Executor, InProcess, LocalProcesses
from tlstd_lab.store import Store

from tests.lab import toy
from tlstd.errors import InvalidParameterError


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "results")


def test_a_killed_worker_costs_a_retry(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("POLARS_MAX_THREADS", raising=False)
    environment = dict(os.environ)

    def kill() -> None:
        toy.until(lambda: len(store.keys()) == 2 and len(toy.running(tmp_path)) == 2)
        os.kill(toy.running(tmp_path)[0][1], signal.SIGKILL)
        (tmp_path / "gate").touch()

    specs = toy.specs(tmp_path, 6, hold=2)
    killer = Thread(target=kill)
    killer.start()
    outcomes = list(LocalProcesses(2).run(specs, store))
    killer.join()
    assert Counter(outcome.key for outcome in outcomes) == Counter(spec.key for spec in specs)
    assert [outcome.error for outcome in outcomes] == [""] * 6
    assert store.keys() == {spec.key for spec in specs}
    assert toy.ended(tmp_path) == Counter(range(6))
    assert sorted(toy.begun(tmp_path).values()) == [1, 1, 1, 1, 1, 2]
    assert dict(os.environ) == environment


def test_a_run_that_always_kills_its_worker_is_given_up(store: Store, tmp_path: Path) -> None:
    (outcome,) = LocalProcesses(2).run(toy.specs(tmp_path, 1, die=[0]), store)
    assert "its worker died 3 times, at last by signal 9" in outcome.error
    assert toy.begun(tmp_path) == Counter([0, 0, 0])


def test_deaths_while_starting_cost_a_run_nothing(store: Store, tmp_path: Path) -> None:
    """More of them than a run has tries; a worker takes tenths of a second to start."""
    killed: set[int] = set()
    done = Event()

    def kill() -> None:
        while len(killed) < 2 * MAX_TRIES and not done.is_set():
            for child in multiprocessing.active_children():
                if child.pid is not None and child.pid not in killed:
                    killed.add(child.pid)
                    os.kill(child.pid, signal.SIGKILL)
            time.sleep(0.005)

    specs = toy.specs(tmp_path, 2)
    killer = Thread(target=kill)
    killer.start()
    outcomes = list(LocalProcesses(1).run(specs, store))
    done.set()
    killer.join()
    assert len(killed) == 2 * MAX_TRIES
    assert [outcome.error for outcome in outcomes] == ["", ""]
    assert store.keys() == {spec.key for spec in specs}
    assert toy.begun(tmp_path) == Counter([0, 1])


def test_workers_that_never_start_are_an_error(store: Store, tmp_path: Path) -> None:
    executable = multiprocessing.spawn.get_executable()
    multiprocessing.set_executable(shutil.which("false") or "false")
    try:
        outcomes = list(LocalProcesses(2).run(toy.specs(tmp_path, 3), store))
    finally:
        multiprocessing.set_executable(executable)
    assert len(outcomes) == 3
    for outcome in outcomes:
        assert "20 workers in a row died before they had begun a run, at last with exit code 1" in outcome.error
        assert "__main__" in outcome.error
    assert toy.begun(tmp_path) == Counter()


def test_who_has_started_goes_on_when_nobody_else_can(store: Store, tmp_path: Path) -> None:
    executable = multiprocessing.spawn.get_executable()
    outcomes = LocalProcesses(2).run(toy.specs(tmp_path, 12), store)
    try:
        collected = [next(outcomes)]
        multiprocessing.set_executable(shutil.which("false") or "false")
        for worker in multiprocessing.active_children()[1:]:
            worker.kill()
        collected += outcomes
    finally:
        multiprocessing.set_executable(executable)
    assert [outcome.error for outcome in collected] == [""] * 12


def test_results_are_the_same_wherever_they_are_computed_and_failures_stop_nothing(tmp_path: Path) -> None:
    executors: list[Executor] = [InProcess(), LocalProcesses(1), LocalProcesses(2)]
    stores = [Store(tmp_path / str(i)) for i in range(len(executors))]
    specs = toy.specs(tmp_path, 5, fail=[1])
    for executor, store in zip(executors, stores, strict=True):
        outcomes = {outcome.key: outcome for outcome in executor.run(specs, store)}
        error = outcomes.pop(specs[1].key).error
        assert "Traceback" in error
        assert "ValueError: seed 1 does not like it" in error
        assert [outcome.error for outcome in outcomes.values()] == [""] * 4
        assert all(outcome.seconds > 0 for outcome in outcomes.values())
    assert len(toy.contents(stores[0])) == 4
    assert all(toy.contents(store) == toy.contents(stores[0]) for store in stores)
    assert toy.begun(tmp_path)[1] == 3  # what raises once would raise again


def test_a_run_stored_meanwhile_is_not_repeated(store: Store, tmp_path: Path) -> None:
    specs = toy.specs(tmp_path, 2)
    outcomes = InProcess().run(specs, store)
    next(outcomes)
    store.write(specs[1], {"weight": np.zeros(1)}, seconds=1)
    assert next(outcomes).error == ""
    assert toy.begun(tmp_path) == Counter([0])


def test_leaving_ends_the_workers(store: Store, tmp_path: Path) -> None:
    outcomes = LocalProcesses(1).run(toy.specs(tmp_path, 3, hold=1), store)
    next(outcomes)
    ((_, worker),) = toy.lines(tmp_path, "end")
    outcomes.close()  # waits for the ends of the processes
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)


def test_bad_parameters_are_refused(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidParameterError, match="n_workers is 0"):
        LocalProcesses(0)
    with pytest.raises(InvalidParameterError, match="no Dask scheduler answers at 'nonsense://nowhere'"):
        next(DaskCluster("nonsense://nowhere").run(toy.specs(tmp_path, 1), store))
    monkeypatch.setattr("tlstd_lab.executors.find_spec", lambda name: None)
    with pytest.raises(InvalidParameterError, match=r"tlstd\[cluster\]"):
        DaskCluster("tcp://host:8786")
