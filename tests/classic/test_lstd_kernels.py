from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tlstd.classic.kernels import lstd as kernels
from tlstd.classic.recursive_inverse import ACCURACY, LIMITS, dgemv
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.data.kernels.sparse import dense_to_csr


def sparse(x: FloatArray) -> tuple[IntArray, FloatArray]:
    rows = np.flatnonzero(x)
    return rows, x[rows]


class TestAdvanceTrace:
    @pytest.mark.parametrize("replacing", [False, True])
    @pytest.mark.parametrize("seed", range(5))
    def test_against_the_dense_formula(self, seed: int, replacing: bool) -> None:
        rng = np.random.default_rng(seed)
        n = 8
        z, expected, active, n_active = np.zeros(n), np.zeros(n), np.full(n, -1), 0
        for _ in range(60):
            x = rng.choice([0.0, 0.0, 0.0, 1.0, -1.0, 0.5], n)
            decay, rho = rng.choice([0.0, 0.5, 1.0, 1e-200]), rng.choice([0.0, 1.0, 2.0])
            n_active = kernels.advance_trace(z, active, n_active, *sparse(x), decay, rho, replacing)
            expected = rho * decay * expected
            expected = np.where(x != 0.0, 0.0, expected) if replacing else expected
            expected = expected + rho * x
            assert_allclose(z, expected, rtol=1e-13, atol=1e-300)
            listed = active[:n_active]
            assert np.unique(listed).size == n_active
            assert set(np.flatnonzero(z)) <= set(listed.tolist())

    def test_entries_that_cancel_are_not_listed_twice(self) -> None:
        z, active, n_active = np.zeros(2), np.zeros(2, dtype=np.int64), 0
        for value in (1.0, -1.0, 1.0, -1.0, 1.0):
            n_active = kernels.advance_trace(z, active, n_active, np.array([0]), np.array([value]), 1.0, 1.0, False)
            assert n_active <= 1
        assert_array_equal(z, [1.0, 0.0])

    @pytest.mark.parametrize("replacing", [False, True])
    def test_products_that_underflow_are_not_listed(self, replacing: bool) -> None:
        z, active, n_active = np.zeros(1), np.zeros(1, dtype=np.int64), 0
        for value in (1.0, 1e-200, 1e-200, 1.0):
            n_active = kernels.advance_trace(
                z, active, n_active, np.array([0]), np.array([value]), 0.0, 1e-200, replacing
            )
            assert n_active <= 1
        assert z[0] == 1e-200

    def test_decayed_entries_leave(self) -> None:
        z, active = np.array([1.0, 0.0]), np.zeros(2, dtype=np.int64)
        n_active, none = 1, (np.zeros(0, dtype=np.int64), np.zeros(0))
        for _ in range(31):
            n_active = kernels.advance_trace(z, active, n_active, *none, 1e-10, 1.0, False)
        assert n_active == 0
        assert_array_equal(z, [0.0, 0.0])


class TestDifference:
    @pytest.mark.parametrize("discount", [0.0, 0.5, 1.0])
    @pytest.mark.parametrize("seed", range(5))
    def test_against_the_dense_formula(self, seed: int, discount: float) -> None:
        rng = np.random.default_rng(seed)
        for density in (0.0, 0.3, 1.0):
            x, x_next = (rng.standard_normal(7) * (rng.random(7) < density) for _ in range(2))
            scratch, rows, vals = np.zeros(7), np.full(14, -1), np.full(14, np.nan)
            count = kernels.difference(*sparse(x), *sparse(x_next), discount, scratch, rows, vals)
            assert np.unique(rows[:count]).size == count
            d = np.zeros(7)
            d[rows[:count]] = vals[:count]
            assert_allclose(d, x - discount * x_next, rtol=1e-15)
            assert (scratch == 0.0).all()
            assert (rows[count:] == -1).all()


def test_accumulate() -> None:
    rng = np.random.default_rng(0)
    A, b, z = rng.standard_normal((6, 6)), rng.standard_normal((6, 2)), np.array([1.0, 0.0, 2.0, 0.0, 0.0, 3.0])
    active, d_rows, d_vals = np.array([5, 0, 2, 4]), np.array([3, 1, 9]), np.array([1.0, -2.0, 9.0])
    d, rewards = np.array([0.0, -2.0, 0.0, 1.0, 0.0, 0.0]), np.array([5.0, 6.0])
    expected = A + 0.5 * np.outer(z, d), b + 0.5 * np.outer(z, rewards)
    kernels.accumulate(A, b, z, active, 3, d_rows, d_vals, 2, rewards, 0.5)
    assert_allclose(A, expected[0], rtol=1e-14)
    assert_allclose(b, expected[1], rtol=1e-14)


@pytest.mark.parametrize("replacing", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_accumulate_many(seed: int, replacing: bool) -> None:
    rng = np.random.default_rng(seed)
    n, k, N = 6, 15, 25
    store, next_store = (rng.standard_normal((k, n)) * (rng.random((k, n)) < 0.4) for _ in range(2))
    store[0] = next_store[1] = 0.0
    picked, next_picked = rng.integers(0, k, N), rng.integers(0, k, N)
    discounts, decays = rng.choice([0.0, 0.9], N), rng.choice([0.0, 0.8], N)
    rhos, weights = rng.choice([0.0, 1.0, 1.5], N), rng.random(N)
    rewards = rng.standard_normal((N, 2))
    A, b, z = np.zeros((n, n)), np.zeros((n, 2)), np.zeros(n)
    progress, scale, active = np.zeros(2, dtype=np.int64), np.ones(1), np.zeros(n, dtype=np.int64)
    every = np.arange(k)
    x, x_next = dense_to_csr(store, every), dense_to_csr(next_store, every)
    place = rng.permutation(n)  # feature -> row
    for part in (slice(0, 1), slice(1, 10), slice(10, 10), slice(10, N)):
        rows, next_rows = (
            place[np.concatenate([np.flatnonzero(S[i]) for i in p[part]] + [np.zeros(0, dtype=np.int64)])]
            for S, p in ((store, picked), (next_store, next_picked))
        )
        kernels.accumulate_many(
            x,
            rows,
            picked[part],
            x_next,
            next_rows,
            next_picked[part],
            discounts[part],
            decays[part],
            rhos[part],
            rewards[part],
            weights[part],
            (A, b, z, active, replacing, progress, scale, 0.5),
            (np.zeros(n), np.zeros(400, dtype=np.int64), np.zeros(400)),
        )
    expected_A, expected_b, trace = np.zeros((n, n)), np.zeros((n, 2)), np.zeros(n)
    for t in range(N):
        before, after = store[picked[t]], next_store[next_picked[t]]
        trace = decays[t] * trace
        if replacing:
            trace[before != 0.0] = 0.0
        trace = rhos[t] * (trace + before)
        expected_A += weights[t] * np.outer(trace, before - discounts[t] * after)
        expected_b += weights[t] * np.outer(trace, rewards[t])
    assert_allclose(z[place], trace, rtol=1e-12, atol=1e-14)
    assert_allclose(A[np.ix_(place, place)], expected_A, rtol=1e-11, atol=1e-13)
    assert_allclose(b[place], expected_b, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("seed", range(3))
def test_traces(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, decays, rhos = rng.standard_normal((20, 5)), rng.choice([0.0, 0.5, 1.0], 20), rng.choice([0.0, 1.0, 1.5], 20)
    X[3:6] = 0.0
    z, Z = rng.standard_normal(5), np.zeros((20, 5))
    trace = z.copy()
    kernels.traces(X[:7], decays[:7], rhos[:7], z, Z[:7])
    kernels.traces(X[7:], decays[7:], rhos[7:], z, Z[7:])
    for t in range(20):
        trace = rhos[t] * (decays[t] * trace + X[t])
        assert_allclose(Z[t], trace, rtol=1e-13, atol=1e-14)
    assert_array_equal(z, Z[-1])


def test_traces_do_not_become_subnormal() -> None:
    z, Z = np.array([1.0]), np.zeros((40, 1))
    kernels.traces(np.zeros((40, 1)), np.full(40, 1e-10), np.ones(40), z, Z)
    assert Z[29, 0] > 0.0
    assert (Z[30:] == 0.0).all()


@pytest.mark.parametrize("n", [0, 1, 3, 5])
def test_subtract_outer(n: int) -> None:
    rng = np.random.default_rng(n)
    P, u, v = rng.standard_normal((5, 5)), rng.standard_normal(5), rng.standard_normal(5)
    u[1] = 0.0
    expected = P.copy()
    expected[:n, :n] -= 0.3 * np.outer(u[:n], v[:n])
    kernels.subtract_outer(P, u, v, n, 0.3)
    assert_allclose(P, expected, rtol=1e-14, atol=1e-15)


class TestResidual:
    def test_against_the_formula(self) -> None:
        rng = np.random.default_rng(0)
        A, w, b = rng.standard_normal((6, 6)), rng.standard_normal((4, 2)), rng.standard_normal((4, 2))
        out = np.empty((4, 2))
        error = kernels.residual(A, w, b, 4, out)
        expected = b - A[:4, :4] @ w
        assert_allclose(out, expected, rtol=1e-13, atol=1e-14)
        assert_allclose(error, (np.abs(expected) / (np.abs(b) + np.abs(A[:4, :4]) @ np.abs(w))).max(), rtol=1e-13)

    def test_a_row_that_is_not_solved_counts_however_small(self) -> None:
        A, w, b = np.diag([1.0, 1e-200]), np.array([[1.0], [0.0]]), np.array([[1.0], [1e-200]])
        assert kernels.residual(A, w, b, 2, np.empty((2, 1))) == 1.0

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_not_finite(self, bad: float) -> None:
        A, b = np.eye(3), np.ones((3, 1))
        w = np.array([[1.0], [bad], [1.0]])
        assert kernels.residual(A, w, b, 3, np.empty((3, 1))) == np.inf

    def test_nothing(self) -> None:
        assert kernels.residual(np.eye(3), np.zeros((0, 2)), np.zeros((0, 2)), 0, np.empty((0, 2))) == 0.0
        assert kernels.residual(np.zeros((2, 2)), np.zeros((2, 1)), np.zeros((2, 1)), 2, np.empty((2, 1))) == 0.0


class TestBackwardError:
    ROUNDING = 1e-14

    def error(self, A: FloatArray, w: FloatArray, b: FloatArray) -> tuple[float, FloatArray]:
        rest = np.empty_like(w)
        return kernels.backward_error(dgemv(), A, w, b, rest, self.ROUNDING), rest

    @pytest.mark.parametrize("n", [1, 2, 3, 7, 40])
    def test_against_the_formula(self, n: int) -> None:
        """A is the corner of a larger matrix."""
        rng = np.random.default_rng(n)
        A, w, b = rng.standard_normal((n + 3, n + 3)), rng.standard_normal((2, n)), rng.standard_normal((n, 2))
        error, rest = self.error(A, w, b)
        expected = b - A[:n, :n] @ w.T
        assert_allclose(rest.T, expected, rtol=1e-13, atol=1e-14)
        assert_allclose(error, (np.abs(expected) / (np.abs(b) + np.abs(A[:n, :n]) @ np.abs(w.T))).max(), rtol=1e-12)

    def test_of_a_solution(self) -> None:
        rng = np.random.default_rng(0)
        A, w = rng.standard_normal((9, 9)), rng.standard_normal((2, 9))
        b = A @ w.T
        assert self.error(A, w, b)[0] < self.ROUNDING
        w[1, 4] *= 1.0 + 1e-9
        assert 1e-12 < self.error(A, w, b)[0] < 1e-8

    def test_products_that_cancel(self) -> None:
        """|A w| is far below |A| |w| in the first row, which is solved to rounding all the same."""
        A, w, b = np.array([[1e10, -1e10], [0.0, 1.0]]), np.array([[1.0, 1.0 + 2e-16]]), np.array([[0.0], [1.0]])
        assert self.error(A, w, b)[0] < self.ROUNDING

    def test_a_row_that_is_not_solved_counts_however_small(self) -> None:
        A, w, b = np.diag([1.0, 1e-200]), np.array([[1.0, 0.0]]), np.array([[1.0], [1e-200]])
        assert self.error(A, w, b)[0] == 1.0

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_not_finite(self, bad: float) -> None:
        assert self.error(np.eye(3), np.array([[1.0, bad, 1.0]]), np.ones((3, 1)))[0] == np.inf


class TestRefine:
    def refined(self, damage: float) -> tuple[bool, float]:
        """Whether a solution by an inverse with an error of ``damage`` is sound, and its error."""
        rng = np.random.default_rng(3)
        A, b = rng.standard_normal((8, 8)) + 4.0 * np.eye(8), rng.standard_normal((8, 2))
        P = np.linalg.inv(A)
        P[2] *= 1.0 + damage
        w, rest = (P @ b).T.copy(), np.empty((2, 8))
        sound = kernels.refine(dgemv(), A, P, b, w, rest, np.empty(8), ACCURACY)
        assert not sound or np.abs(rest.T - (b - A @ w.T)).max() < 1e-14 * np.abs(b).max()
        return sound, float(np.abs(w.T - np.linalg.solve(A, b)).max())

    @pytest.mark.parametrize("damage", [0.0, 1e-12, 1e-6, 1e-3])
    def test_brings_the_digits_back(self, damage: float) -> None:
        sound, error = self.refined(damage)
        assert sound
        assert error < 1e-13

    @pytest.mark.parametrize("damage", [0.7, 10.0, np.nan])
    def test_no_inverse(self, damage: float) -> None:
        assert not self.refined(damage)[0]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("beta", [0.0, 0.05])
@pytest.mark.parametrize("replacing", [False, True])
def test_recursive_run(seed: int, beta: float, replacing: bool) -> None:
    """Against a dense loop; A and P are the corner of larger matrices, and final observations have unknown features."""
    rng = np.random.default_rng(seed)
    n, m, N = 7, 2, 60
    X, X_next = (rng.standard_normal((N, n)) * (rng.random((N, n)) < 0.5) for _ in range(2))
    rewards, rhos = rng.standard_normal((N, m)), rng.uniform(0.5, 1.5, N)
    discounts, fades = rng.choice([0.0, 0.9], N, p=[0.2, 0.8]), rhos * rng.choice([0.0, 0.6], N, p=[0.2, 0.8])
    matrices = np.zeros((n + 2, n + 2)), np.zeros((n + 2, n + 2))
    matrices[0][:n, :n] = matrices[1][:n, :n] = np.eye(n)
    b, z, scale, progress, values = np.zeros((n, m)), np.zeros(n), np.ones(1), np.array([5, 1]), np.zeros((N, m))
    x, x_next = dense_to_csr(X, np.arange(N)), dense_to_csr(X_next, np.arange(N))
    final = np.repeat(discounts == 0.0, np.diff(x_next[0])) & (x_next[1] == 3)
    x_next[1][final] = -1

    A, expected_b, expected_z = np.eye(n), np.zeros((n, m)), np.zeros(n)
    expected = np.zeros((N, m))
    for t in range(N):
        expected_z = fades[t] * expected_z
        if replacing:
            expected_z[X[t] != 0.0] = 0.0
        expected_z += rhos[t] * X[t]
        A = (1.0 - beta) * A + (beta or 1.0) * np.outer(expected_z, X[t] - discounts[t] * X_next[t])
        expected_b = (1.0 - beta) * expected_b + (beta or 1.0) * np.outer(expected_z, rewards[t])
        known = X_next[t] * ((np.arange(n) != 3) | (discounts[t] != 0.0))
        expected[t] = known @ np.linalg.solve(A, expected_b)

    columns, system = (rewards, discounts, fades, rhos), (*matrices, b, z, progress, scale)
    result = kernels.recursive_run(dgemv(), x, x_next, columns, system, beta, replacing, LIMITS, ACCURACY, values)
    assert result == (N, True)
    assert progress[1] == 1
    assert progress[0] == 5 + N
    assert_allclose(values, expected, rtol=1e-9, atol=1e-10 * np.abs(expected).max())
    assert_allclose(matrices[0][:n, :n] * scale, A, rtol=1e-11, atol=1e-12)
    assert_allclose(b * scale, expected_b, rtol=1e-11, atol=1e-12)
    assert_allclose(z, expected_z, rtol=1e-13, atol=1e-14)
    assert_allclose(matrices[1][:n, :n] / scale, np.linalg.inv(A), rtol=1e-8, atol=1e-9)
    assert not matrices[0][n:].any()
    assert not matrices[0][:, n:].any()


def test_rescaling_keeps_the_inverse_an_inverse() -> None:
    rng = np.random.default_rng(0)
    A, b, scale = rng.standard_normal((4, 4)), rng.standard_normal((4, 2)), np.array([1e-51])
    P = np.linalg.inv(A)
    A_scaled, P_scaled, b_scaled = A.copy(), P.copy(), b.copy()
    kernels.recursive_rescale(A_scaled, P_scaled, b_scaled, 1e-51, scale)
    assert_allclose(A_scaled, 1e-51 * A, rtol=1e-14)
    assert_allclose(P_scaled, 1e51 * P, rtol=1e-14)
    assert_allclose(b_scaled, 1e-51 * b, rtol=1e-14)
    assert scale[0] == 1.0
