from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tests.helpers import batch_lstd, dense, random_transitions
from tlstd.classic.kernels import lstd as kernels
from tlstd.classic.recursive_inverse import LIMITS, RecursiveInverse, dgemv
from tlstd.classic.recursive_system import RecursiveSystem
from tlstd.core.arrays import FloatArray
from tlstd.data.batch import Batch
from tlstd.data.transitions import Transition, Transitions
from tlstd.errors import CapacityError


def add(inverse: RecursiveInverse, z: FloatArray, d: FloatArray, weight: float) -> None:
    """A += weight · z dᵀ, with no right-hand side."""
    matrices = inverse._A, inverse._P, np.zeros((z.size, 1))
    difference, products = (d, np.flatnonzero(d), d[d != 0.0]), (np.empty(z.size), np.empty(z.size))
    kernels.recursive_step(dgemv(), *matrices, z, difference, np.zeros(1), weight, products, LIMITS, inverse.progress)


class TestInverse:
    @pytest.mark.parametrize("diagonal", [1e-3, 1.0, 1e3])
    def test_is_the_dense_inverse(self, diagonal: float) -> None:
        for seed in range(5):
            rng = np.random.default_rng(seed)
            inverse, A = RecursiveInverse(diagonal), diagonal * np.eye(6)
            inverse.grow(6, 1.0)
            for _ in range(40):
                z, d, weight = rng.standard_normal(6), rng.standard_normal(6), rng.random()
                z[rng.random(6) < 0.3] = 0.0
                A += weight * np.outer(z, d)
                add(inverse, z, d, weight)
                if not inverse.healthy:
                    inverse.solve(np.ones((6, 1)), 1e-8)
            assert inverse.healthy
            assert_allclose(inverse.A, A, rtol=1e-13, atol=1e-13)
            scale = np.abs(np.linalg.inv(A)).max()
            assert_allclose(inverse.P, np.linalg.inv(A), rtol=1e-8, atol=1e-9 * scale)

    def test_grows(self) -> None:
        rng = np.random.default_rng(0)
        inverse, A = RecursiveInverse(2.0), np.zeros((0, 0))
        for n in (1, 1, 2, 5, 6, 7, 20):
            inverse.grow(n, 0.5)
            bigger = 4.0 * np.eye(n)
            bigger[: A.shape[0], : A.shape[0]] = A
            A = bigger
            z, d = rng.standard_normal(n), rng.standard_normal(n)
            add(inverse, z, d, 0.7)
            A += 0.7 * np.outer(z, d)
            b = rng.standard_normal((n, 2))
            assert_allclose(inverse.A, A, rtol=1e-13)
            assert inverse.healthy
            assert_allclose(inverse.P, np.linalg.inv(A), rtol=1e-9, atol=1e-10)
            assert_allclose(inverse.solve(b, 1e-8), np.linalg.solve(A, b), rtol=1e-9, atol=1e-10)

    def test_rescale(self) -> None:
        rng = np.random.default_rng(1)
        inverse = RecursiveInverse(1.0)
        inverse.grow(4, 1.0)
        add(inverse, rng.standard_normal(4), rng.standard_normal(4), 1.0)
        A, b = inverse.A.copy(), rng.standard_normal((4, 1))
        kernels.recursive_rescale(inverse._A, inverse._P, np.zeros((4, 1)), 1e-50, np.ones(1))
        assert_allclose(inverse.A, 1e-50 * A)
        assert_allclose(inverse.solve(1e-50 * b, 1e-8), np.linalg.solve(A, b), rtol=1e-10)

    @pytest.mark.parametrize("diagonal", [1e-12, 1e-10, 1e-8, 1e-6, 1e-4])
    def test_a_small_initial_diagonal_costs_no_digits(self, diagonal: float) -> None:
        """P starts at 1/ε and is rounded there; a solution is not."""
        for seed in range(10):
            rng = np.random.default_rng(seed)
            n = 12
            inverse, A = RecursiveInverse(diagonal), diagonal * np.eye(n)
            inverse.grow(n, 1.0)
            for _ in range(60):
                x, x_next = rng.standard_normal(n), rng.standard_normal(n)
                add(inverse, x, x - 0.9 * x_next, 1.0)
                A += np.outer(x, x - 0.9 * x_next)
            b = rng.standard_normal((n, 2))
            expected = np.linalg.solve(A, b)
            assert_allclose(inverse.solve(b, 1e-4), expected, rtol=0.0, atol=1e-10 * np.abs(expected).max())

    @pytest.mark.parametrize("delta", [1e-2, 1e-4, 1e-5, 1.1e-6, 1e-6, 1e-7, 1e-9, 1e-12, 1e-16, 0.0])
    @pytest.mark.parametrize("read", [False, True])
    def test_past_a_singular_matrix(self, delta: float, read: bool) -> None:
        """A passes at a relative distance δ of a singular matrix, and is well conditioned again afterwards."""
        rng = np.random.default_rng(2)
        n = 4
        inverse, A = RecursiveInverse(1.0), np.eye(n)
        inverse.grow(n, 1.0)
        z = rng.standard_normal(n)
        d = rng.standard_normal(n)
        d *= (-1.0 + delta) / (d @ z)  # 1 + dᵀz = δ
        for step in range(20):
            add(inverse, z, d, 1.0)
            A += np.outer(z, d)
            b = rng.standard_normal((n, 1))
            if read or step == 19:
                w = inverse.solve(b, 1e-4)
                assert np.isfinite(w).all()
                if np.linalg.cond(A) < 1e4:
                    assert_allclose(w, np.linalg.solve(A, b), rtol=1e-9, atol=1e-9)
            z, d = rng.standard_normal(n), rng.standard_normal(n)
        assert inverse.healthy

    def test_a_singular_matrix_is_solved_with_the_cut_off(self) -> None:
        inverse = RecursiveInverse(1.0)
        inverse.grow(2, 1.0)
        add(inverse, np.array([1.0, 0.0]), np.array([-1.0, 0.0]), 1.0)  # A = diag(0, 1)
        assert not inverse.healthy
        assert_allclose(inverse.solve(np.ones((2, 1)), 1e-4), [[0.0], [1.0]], atol=1e-15)
        assert not inverse.healthy
        add(inverse, np.array([1.0, 0.0]), np.array([0.5, 0.0]), 1.0)  # A = diag(0.5, 1)
        assert_allclose(inverse.solve(np.ones((2, 1)), 1e-4), [[2.0], [1.0]], rtol=1e-12)
        assert inverse.healthy

    def test_features_of_different_units(self) -> None:
        """Badly scaled is not badly conditioned: the recursion resumes."""
        scale = np.array([1e-8, 1.0, 1e9])
        rng = np.random.default_rng(3)
        inverse, A = RecursiveInverse(1.0), np.eye(3)
        inverse.grow(3, 1.0)
        inverse.progress[1] = 0
        for _ in range(30):
            z, d = scale * rng.standard_normal(3), scale * rng.standard_normal(3)
            add(inverse, z, d, 1.0)
            A += np.outer(z, d)
        b = A @ (1.0 / scale)[:, None]
        assert_allclose(inverse.solve(b, 1e-4)[:, 0], 1.0 / scale, rtol=1e-6)
        assert inverse.healthy

    def test_a_worn_out_inverse_is_replaced(self) -> None:
        rng = np.random.default_rng(4)
        inverse = RecursiveInverse(1.0)
        inverse.grow(5, 1.0)
        for _ in range(30):
            add(inverse, rng.standard_normal(5), rng.standard_normal(5), 1.0)
        b = rng.standard_normal((5, 2))
        for damage in (1e-9, 1e-4, 0.5, np.inf, np.nan):
            inverse.P[1, 2] *= 1.0 + damage
            assert_allclose(inverse.solve(b, 1e-4), np.linalg.solve(inverse.A, b), rtol=1e-9)
            assert inverse.healthy

    def test_zero_right_hand_sides(self) -> None:
        inverse = RecursiveInverse(1.0)
        assert inverse.solve(np.zeros((0, 2)), 1e-4).shape == (0, 2)
        inverse.grow(3, 1.0)
        b = np.zeros((3, 2))
        assert_allclose(inverse.solve(b, 1e-4), b)
        b[:, 1] = 1.0
        assert_allclose(inverse.solve(b, 1e-4), b)


def system(n_features: int, **changes: Any) -> RecursiveSystem:
    options: dict[str, Any] = {"lambda_": 0.7, "beta": None, "replacing": False, "n_targets": 1}
    options |= {"memory_limit": 1 << 30, "initial_diagonal": 1.0}
    return RecursiveSystem(n_features, **(options | changes))


def initial_diagonal(steps: Transitions, epsilon: float, beta: float | None) -> FloatArray:
    """What is left, at the end, of the ε that each feature brings at its first appearance."""
    diagonal = np.zeros(steps.n_features)
    for t in steps:
        seen_now = (dense(t.x) != 0.0) | (dense(t.x_next) != 0.0)
        diagonal[seen_now & (diagonal == 0.0)] = epsilon
        diagonal *= 1.0 if beta is None else 1.0 - beta
    return np.diag(diagonal) / (len(steps) if beta is None else 1.0)


class TestSystem:
    @pytest.mark.parametrize("beta", [None, 1e-17, 0.01, 0.5, 0.9, 0.999999])
    @pytest.mark.parametrize("replacing", [False, True])
    def test_against_the_dense_loop(self, beta: float | None, replacing: bool) -> None:
        steps = random_transitions(
            np.random.default_rng(0),
            n_features=9,
            n_steps=150,
            density=0.3,
            n_targets=2,
            off_policy=True,
            sparse=True,
        )
        s = system(9, beta=beta, replacing=replacing, n_targets=2, initial_diagonal=0.5)
        for part in (steps[:1], steps[1:60], steps[60:]):
            s.append(Batch.from_transitions(part))
        A, b = batch_lstd(steps, 0.7, beta=beta, replacing=replacing)
        A += initial_diagonal(steps, 0.5, beta)
        found_A, found_b = s.averaged()
        ids = s.seen.ids
        assert_allclose(found_A, A[np.ix_(ids, ids)], rtol=1e-10, atol=1e-13)
        assert_allclose(found_b, b[ids], rtol=1e-10, atol=1e-13)
        if np.linalg.cond(A) < 1e9:
            expected = np.linalg.solve(A, b)[ids]
            assert_allclose(s.solve(1e-12), expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())

    def test_denominator_exactly_zero(self) -> None:
        """One feature, ε = 1, x = 1, x_next = 2, γ = 1: A = 1 + 1·(1 - 2) = 0."""
        s = system(1, lambda_=0.0)
        s.append(Batch.from_transition(Transition([1.0], 1.0, [2.0], discount=1.0, trace_discount=0.0)))
        assert_allclose(s.solve(1e-4), [[0.0]])
        s.append(Batch.from_transition(Transition([1.0], 1.0, [0.0], discount=1.0, trace_discount=0.0)))
        assert_allclose(s.solve(1e-4), [[2.0]], rtol=1e-14)
        for _ in range(100):
            s.append(Batch.from_transition(Transition([1.0], 1.0, [0.0], discount=1.0, trace_discount=0.0)))
        assert_allclose(s.solve(1e-4), [[102.0 / 101.0]], rtol=1e-12)

    def test_values_where_the_recursion_has_no_answer(self) -> None:
        """The same feature: A = 0, 1, 2 - 1, 1 + 1 after the steps, b = 1, 2, 3, 4; a terminal step has a value too."""
        x, x_next = np.ones((4, 1)), np.array([[2.0], [3.0], [2.0], [5.0]])
        discounts = np.array([1.0, 0.0, 0.5, 0.0])
        steps = Transitions(x, np.ones(4), x_next, discounts=discounts, trace_discounts=np.zeros(4))
        s, values = system(1, lambda_=0.0), np.full((4, 1), np.nan)
        s.append(Batch.from_transitions(steps), values, 1e-4)
        assert_allclose(values[:, 0], [0.0, 3.0 * 2.0 / 1.0, 2.0 * 3.0 / 1.0, 5.0 * 4.0 / 2.0], rtol=1e-14)
        assert s.inverse.healthy

    def test_samples_without_features(self) -> None:
        s, values = system(3), np.full((2, 1), np.nan)
        nothing = np.zeros((2, 3))
        steps = Transitions(nothing, np.ones(2), nothing, discounts=np.ones(2), trace_discounts=np.ones(2))
        s.append(Batch.from_transitions(steps), values, 1e-4)
        assert s.n_samples == 2
        assert_allclose(values, 0.0)

    def test_long_batches_are_cut_so_that_they_can_be_interrupted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """At most so many entries of A at once; the same to the bit."""
        steps = random_transitions(np.random.default_rng(4), n_features=9, n_steps=300, density=0.4, sparse=True)
        whole, cut = system(9), system(9)
        values, cut_values = np.zeros((300, 1)), np.zeros((300, 1))
        whole.append(Batch.from_transitions(steps), values, 1e-4)
        monkeypatch.setattr("tlstd.classic.recursive_system._WORK", 7 * 19**2)
        lengths, follow = [], cut.inverse.follow

        def noted(*arguments: Any, **options: Any) -> tuple[int, bool]:
            done, solved = follow(*arguments, **options)
            lengths.append(done)
            return done, solved

        monkeypatch.setattr(cut.inverse, "follow", noted)
        cut.append(Batch.from_transitions(steps), cut_values, 1e-4)
        assert sum(lengths) == 300
        assert max(lengths) == 7
        assert_allclose(cut_values, values, rtol=1e-10, atol=1e-11 * np.abs(values).max())
        for a, b in ((whole.inverse.A, cut.inverse.A), (whole.inverse.P, cut.inverse.P), (whole.b, cut.b)):
            assert_array_equal(a, b)

    @pytest.mark.long
    @pytest.mark.parametrize("beta", [0.01, 0.9])
    @pytest.mark.parametrize("read", [False, True])
    def test_forgetting_a_feature_that_never_comes_back(self, beta: float, read: bool) -> None:
        """Up to 100,000 steps later that feature weighs (1 - β)^t = 0, and everything is finite without a warning."""
        rng = np.random.default_rng(0)
        s = system(3, beta=beta, lambda_=0.5)
        first = Transition([1.0, 1.0, 1.0], 1.0, [0.0, 0.0, 0.5], discount=0.9, trace_discount=0.0)
        s.append(Batch.from_transition(first))
        n = 1_000 if read or beta == 0.01 else 20_000
        X = np.zeros((n, 3))
        X[:, :2] = rng.standard_normal((n, 2))
        ones = np.ones(n)
        steps = Transitions(X, X[:, 0] - X[:, 1], np.zeros((n, 3)), discounts=ones, trace_discounts=0.0 * ones)
        for _ in range(5):
            batch = Batch.from_transitions(steps)
            for start in range(0, n, 50 if read else n):
                s.append(batch.part(start, start + (50 if read else n)))
                w = s.solve(1e-4)
                assert np.isfinite(w).all()
        assert_allclose(w[:2], [[1.0], [-1.0]], rtol=1e-6)
        again = Transition([0.0, 0.0, 2.0], 6.0, [0.0, 0.0, 0.0], discount=0.9, trace_discount=0.0)
        for _ in range(30):
            s.append(Batch.from_transition(again))
        assert_allclose(s.solve(1e-12), [[1.0], [-1.0], [3.0]], rtol=1e-6)

    def test_many_steps_do_not_wear_it_out(self) -> None:
        steps = random_transitions(np.random.default_rng(1), n_features=6, n_steps=3_000, off_policy=True)
        for beta in (None, 0.05):
            s = system(6, beta=beta)
            s.append(Batch.from_transitions(steps))
            A, b = batch_lstd(steps, 0.7, beta=beta)
            A += initial_diagonal(steps, 1.0, beta)
            assert_allclose(s.solve(1e-4), np.linalg.solve(A, b), rtol=1e-9, atol=1e-10)

    @pytest.mark.parametrize("scale", [1e-120, 1e-30, 1e40, 1e99])
    def test_scales(self, scale: float) -> None:
        """No overflow and no warning; where the samples outweigh ε = 1 by far, their solution."""
        steps = random_transitions(np.random.default_rng(2), n_features=5, n_steps=80)
        assert isinstance(steps.store, np.ndarray)
        assert isinstance(steps.next_store, np.ndarray)
        A, b = batch_lstd(steps, 0.7)
        steps.store[:] *= scale
        steps.next_store[:] *= scale
        for beta in (None, 0.9):
            s = system(5, beta=beta)
            for t in steps:
                s.append(Batch.from_transition(t))
            w = s.solve(1e-10)
            assert np.isfinite(w).all()
            if scale > 1.0 and beta is None:
                assert_allclose(w * scale, np.linalg.solve(A, b), rtol=1e-8, atol=1e-9)

    def test_capacity(self) -> None:
        steps = random_transitions(np.random.default_rng(3), n_features=100, n_steps=5, density=0.2, sparse=True)
        n = np.unique(Batch.from_transitions(steps).ids()).size
        system(100, memory_limit=16 * n * n).check_capacity(Batch.from_transitions(steps))
        with pytest.raises(CapacityError):
            system(100, memory_limit=16 * n * n - 1).check_capacity(Batch.from_transitions(steps))
