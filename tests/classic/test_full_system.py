from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tests.helpers import batch_lstd, dense, random_transitions
from tlstd.classic.full_system import FullSystem
from tlstd.classic.lstd_system import check_memory
from tlstd.core.arrays import FloatArray
from tlstd.data.batch import Batch
from tlstd.data.transitions import Transitions
from tlstd.errors import CapacityError


def system(n_features: int, **changes: Any) -> FullSystem:
    options: dict[str, Any] = {
        "lambda_": 0.7,
        "beta": None,
        "replacing": False,
        "n_targets": 1,
        "memory_limit": 1 << 30,
    }
    return FullSystem(n_features, **(options | changes))


def in_features(s: FullSystem) -> tuple[FloatArray, FloatArray]:
    """The averaged system in the order of the features."""
    A, b = s.averaged()
    full_A, full_b = np.zeros((s.n_features, s.n_features)), np.zeros((s.n_features, b.shape[1]))
    full_A[np.ix_(s.seen.ids, s.seen.ids)], full_b[s.seen.ids] = A, b
    return full_A, full_b


def assert_system(s: FullSystem, steps: Transitions, **options: Any) -> None:
    A, b = batch_lstd(steps, s.lambda_, beta=s.beta, replacing=s.replacing)
    found_A, found_b = in_features(s)
    assert_allclose(found_A, A, rtol=1e-10, atol=1e-12 * np.abs(A).max(initial=1e-300), **options)
    assert_allclose(found_b, b, rtol=1e-10, atol=1e-12 * np.abs(b).max(initial=1e-300), **options)


BETAS = [None, 1e-300, 1e-17, 0.01, 0.9, 0.999999, 1.0 - 2.0**-53]


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("density", [0.1, 1.0], ids=["sparse", "dense"])
@pytest.mark.parametrize("cuts", [[], [1], [128], list(range(1, 200, 7))], ids=len)
def test_however_the_stream_is_cut(beta: float | None, density: float, cuts: list[int]) -> None:
    steps = random_transitions(
        np.random.default_rng(0), n_features=20, n_steps=200, density=density, n_targets=2, off_policy=True
    )
    s = system(20, beta=beta, n_targets=2)
    for start, stop in zip([0, *cuts], [*cuts, 200], strict=True):
        s.append(Batch.from_transitions(steps[start:stop]))
        if start % 3 == 0:
            s.averaged()  # reading is not learning
    assert s.n_samples == 200
    assert s.n == 20
    assert s._is_dense == (density == 1.0)
    assert_system(s, steps)


@pytest.mark.parametrize("beta", [0.3, 0.9, 0.999999])
def test_forgetting_for_a_long_time(beta: float) -> None:
    """The scale is multiplied out again and again; after this nothing of the beginning is left."""
    for density in (0.2, 1.0):
        steps = random_transitions(np.random.default_rng(1), n_features=10, n_steps=1500, density=density)
        s = system(10, beta=beta)
        s.append(Batch.from_transitions(steps))
        assert_system(s, steps)


def test_replacing() -> None:
    steps = random_transitions(
        np.random.default_rng(2), n_features=15, n_steps=400, density=0.2, off_policy=True, sparse=True
    )
    s = system(15, replacing=True)
    s.append(Batch.from_transitions(steps))
    assert_system(s, steps)
    A, _ = batch_lstd(steps, 0.7)
    assert np.abs(in_features(s)[0] - A).max() > 1e-3


def test_first_sample_decides_between_dense_and_sparse() -> None:
    rng = np.random.default_rng(3)
    for first, rest in ((0.0, 1.0), (0.1, 1.0), (1.0, 0.1)):
        parts = [
            random_transitions(rng, n_features=12, n_steps=n, density=d, sparse=d < 1.0, terminate=0.0, truncate=0.0)
            for n, d in ((1, first), (200, rest))
        ]
        s = system(12)
        for part in parts:
            s.append(Batch.from_transitions(part))
        listed = [t for part in parts for t in part]
        together = Transitions(
            np.array([dense(t.x) for t in listed]),
            np.array([t.reward for t in listed]),
            np.array([dense(t.x_next) for t in listed]),
            discounts=[t.discount for t in listed],
            trace_discounts=[t.trace_discount for t in listed],
        )
        assert_system(s, together)


def test_features_appear_one_by_one() -> None:
    rng = np.random.default_rng(4)
    n = 60
    X, X_next = np.zeros((n, n)), np.zeros((n, n))
    for t in range(n):
        X[t, t], X_next[t, : t // 2] = 1.0, rng.random(t // 2)
    steps = Transitions(X, rng.random(n), X_next, discounts=np.full(n, 0.9), trace_discounts=np.full(n, 0.9))
    s = system(n)
    for i in range(n):
        s.append(Batch.from_transitions(steps[i : i + 1]))
        assert s.n == i + 1
    assert_system(s, steps)


def test_nothing() -> None:
    s = system(5)
    s.append(Batch.from_transitions(random_transitions(np.random.default_rng(0), n_features=5, n_steps=0)))
    A, b = s.averaged()
    assert (A.shape, b.shape, s.n_samples) == ((0, 0), (0, 1), 0)
    zeros = Transitions(
        np.zeros((3, 5)), np.ones(3), np.zeros((3, 5)), discounts=np.ones(3), trace_discounts=np.ones(3)
    )
    s.append(Batch.from_transitions(zeros))
    assert (s.n, s.n_samples) == (0, 3)


@pytest.mark.parametrize("scale", [1e-150, 1e-100, 1e90])
def test_scales(scale: float) -> None:
    for density in (0.2, 1.0):
        steps = random_transitions(np.random.default_rng(5), n_features=6, n_steps=100, density=density)
        assert isinstance(steps.store, np.ndarray)
        assert isinstance(steps.next_store, np.ndarray)
        steps.store[:] *= scale
        steps.next_store[:] *= scale
        for beta in (None, 0.9):
            s = system(6, beta=beta)
            s.append(Batch.from_transitions(steps))
            assert_system(s, steps)


class TestCapacity:
    def test_check_memory(self) -> None:
        check_memory(10, 1, 800)
        with pytest.raises(CapacityError, match="10 distinct features"):
            check_memory(10, 1, 799)
        with pytest.raises(CapacityError):
            check_memory(10, 2, 800)
        with pytest.raises(CapacityError):
            check_memory(2**62, 1, 8 << 30)

    @pytest.mark.parametrize("density", [0.05, 1.0])
    def test_counts_features_that_would_be_seen(self, density: float) -> None:
        steps = random_transitions(np.random.default_rng(0), n_features=100, n_steps=40, density=density, sparse=True)
        s = system(100, memory_limit=8 * 60 * 60)
        if density == 1.0:
            with pytest.raises(CapacityError):
                s.check_capacity(Batch.from_transitions(steps[:1]))
            return
        s.check_capacity(Batch.from_transitions(steps[:2]))
        s.append(Batch.from_transitions(steps[:2]))
        before = in_features(s)
        with pytest.raises(CapacityError):
            s.check_capacity(Batch.from_transitions(steps[2:]))
        assert_array_equal(in_features(s)[0], before[0])
        s.check_capacity(Batch.from_transitions(steps[:2]))

    def test_growth_stays_within_the_limit(self) -> None:
        """Room for features to come is made only as far as the limit allows."""
        s = system(1000, memory_limit=8 * 110 * 110)
        for i in range(110):
            x = np.zeros((1, 1000))
            x[0, i] = 1.0
            step = Transitions(x, [1.0], np.zeros((1, 1000)), discounts=[0.0], trace_discounts=[0.0])
            s.check_capacity(Batch.from_transitions(step))
            s.append(Batch.from_transitions(step))
            assert s._A.nbytes <= s.memory_limit
        assert s.n == 110
