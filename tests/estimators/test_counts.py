"""Counts that are read beside a thread that learns: those before or after a whole call, never in between."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from tlstd import TD, Handover, Horde, OneHot, Question, Steps, Transitions
from tlstd.core.arrays import FloatArray
from tlstd.estimators.registry import ESTIMATORS

N, BATCHES, D = 300, 6, 12


def steps(seed: int) -> Transitions:
    rng = np.random.default_rng(seed)
    X: FloatArray = np.zeros((N + 1, D))
    X[np.arange(N + 1)[:, None], rng.integers(0, D, (N + 1, 3))] = 1.0
    never = np.zeros(N, dtype=bool)
    return Transitions.from_arrays(X[:-1], rng.standard_normal(N), X[1:], terminated=never, truncated=never, gamma=0.9)


@contextmanager
def reading(read: Callable[[], Any]) -> Iterator[set[Any]]:
    """What a thread sees that reads all the time, from before the block to its end."""
    seen: set[Any] = set()
    begun, done = threading.Event(), threading.Event()

    def follow() -> None:
        while not done.is_set():
            seen.add(read())
            begun.set()
        seen.add(read())

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    try:
        assert begun.wait(60.0)
        yield seen
    finally:
        done.set()
        thread.join(60.0)
        sys.setswitchinterval(before)
    assert not thread.is_alive()


@pytest.mark.parametrize("name", ESTIMATORS)
def test_n_updates_beside_update_many(name: str) -> None:
    batches = [steps(seed) for seed in range(BATCHES)]
    model = ESTIMATORS[name](D)
    with reading(lambda: model.n_updates) as seen:
        for batch in batches:
            model.update_many(batch)
    assert seen <= set(range(0, N * BATCHES + 1, N))
    assert N * BATCHES in seen


@pytest.mark.parametrize("name", ["TD", "TLSTD", "KrylovLSTD", "LSTD", "ILSTD", "Handover"])
def test_n_updates_beside_update_and_predict(name: str) -> None:
    batches = [steps(seed) for seed in range(2)]
    model = ESTIMATORS[name](D)
    with reading(lambda: model.n_updates) as seen:
        for batch in batches:
            model.update_and_predict(batch)
    assert seen <= {0, N, 2 * N}


def test_a_handover_beside_update_many() -> None:
    """The second estimator, and the number of samples at which it took over, are seen after the call."""
    batches = [steps(seed) for seed in range(BATCHES)]
    first, second = TD(D, step_size=0.1, lambda_=0.5), TD(D, step_size=0.01, lambda_=0.5)
    model = Handover(first, second, after=N // 2 + N)
    order: list[tuple[int, bool, bool]] = []

    def read() -> tuple[bool, bool]:
        after, at = model.n_updates, model.handed_over  # a count that is read earlier is never of a later call
        order.append((after, at is not None, model.active is second))
        return order[-1][1:]

    with reading(read):
        for batch in batches:
            model.update_many(batch)
            found = model.handed_over
            assert (found is None) == (model.n_updates < 2 * N) == (model.active is first)
    assert all(not handed or active for _, handed, active in order)
    assert all(handed and active for n, handed, active in order if n >= 2 * N)
    assert {n for n, _, _ in order} <= set(range(0, N * BATCHES + 1, N))


def test_the_count_of_a_horde_beside_update_many() -> None:
    horde = Horde(OneHot([0], [9]), [Question(1.0, g) for g in (0.1, 0.5, 0.9)], TD(10, step_size=0.1, lambda_=0.5))
    path = Steps.along((np.arange(N + 1) % 10)[:, None])
    with reading(lambda: horde.n_updates) as seen:
        for _ in range(BATCHES):
            horde.update_many(path)
    assert seen <= set(range(0, N * BATCHES + 1, N))


def test_a_step_size_may_read_the_count() -> None:
    """In the middle of a call of its own thread there is no whole model to wait for."""
    counts: list[int] = []

    def step_size(t: int) -> float:
        counts.append(model.n_updates)
        return 0.1

    model = TD(D, step_size=step_size, lambda_=0.5)
    model.update_many(steps(0))
    assert counts
    assert model.n_updates == N
