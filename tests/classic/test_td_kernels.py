from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tlstd.classic.kernels import td as kernels
from tlstd.core.arrays import FloatArray
from tlstd.data.kernels.sparse import dense_to_csr

NO_VALUES = np.zeros((0, 1))


class Stream(NamedTuple):
    X: FloatArray
    X_next: FloatArray
    steps: FloatArray  # α, γ_{t+1}, γ_t λ, ρ, M
    rewards: FloatArray

    def part(self, start: int, stop: int) -> Stream:
        s = slice(start, stop)
        return Stream(self.X[s], self.X_next[s], self.steps[:, s].copy(), self.rewards[s])


def stream(seed: int, *, n: int, d: int, density: float, m: int = 1, off_policy: bool = False) -> Stream:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n + 1, d)) * (rng.random((n + 1, d)) < density)
    X[rng.random(n + 1) < 0.05] = 0.0
    discounts = rng.choice([0.9, 0.9, 0.9, 1.0, 0.5, 0.0], n)
    decays = rng.choice([0.8, 0.8, 0.8, 1.0, 1e-3, 0.0], n)
    rhos = rng.choice([1.0, 0.3, 1.7, 2.5, 0.0], n) if off_policy else np.ones(n)
    alphas, rewards = rng.uniform(0.0, 0.05, n), rng.standard_normal((n, m))
    steps = np.array([alphas, discounts, decays, rhos, rng.choice([1.0, 1.0, 0.4, 2.3, 0.0], n)])
    return Stream(X[:-1].copy(), X[1:].copy(), steps, rewards)


def literal(data: Stream, true_online: bool, replacing: bool) -> tuple[FloatArray, FloatArray, FloatArray]:
    """W (d, m), z (d,) and v_old (m,) by the equations in the module's docstring."""
    d, m = data.X.shape[1], data.rewards.shape[1]
    W, z, v_old = np.zeros((d, m)), np.zeros(d), np.zeros(m)
    for t in range(data.X.shape[0]):
        x, x_next = data.X[t], data.X_next[t]
        alpha, discount, decay, rho, M = data.steps[:, t]
        v, v_next = x @ W, x_next @ W
        if true_online:
            z = decay * z + alpha * x - alpha * decay * (z @ x) * x
            delta = data.rewards[t] + discount * v_next - v
            W = W + np.outer(z, delta + v - v_old) - np.outer(alpha * x, v - v_old)
            v_old = v_next
        else:
            z = rho * ((np.where(x != 0.0, 0.0, decay * z) if replacing else decay * z) + M * x)
            W = W + np.outer(alpha * z, data.rewards[t] + discount * v_next - v)
    return W, z, v_old


class Lazy:
    """The arguments of learn, over ``n_rows`` features, whose rows begin with 1."""

    def __init__(self, n_rows: int, m: int) -> None:
        self.m, self.table = m, np.zeros((n_rows + 1, m + 1))
        self.numbers = np.zeros(2 + 2 * m + (kernels.EPOCHS + 1) * (m + 1))
        self.scale, self.S, self.v_old, epochs = kernels.parts(self.numbers, m)
        self.epochs = epochs.reshape(-1, m + 1)
        self.scale[0] = self.epochs[1, 0] = 1.0
        self.stamps, self.active = np.zeros(n_rows + 1, dtype=np.uint8), np.zeros(n_rows + 1, dtype=np.uint32)
        self.counts = np.array([0, 1, 0])

    @property
    def arrays(self) -> tuple[Any, ...]:
        return self.table.reshape(-1), self.stamps, self.active, self.counts, self.numbers

    def learn(
        self,
        data: Stream,
        *,
        true_online: bool = False,
        replacing: bool = False,
        shared: bool = False,
    ) -> None:
        """With ``shared``, x_next of one step and x of the next are one vector where they are equal."""
        n = data.X.shape[0]
        indptr, ids, vals = dense_to_csr(np.vstack([data.X, data.X_next]), np.arange(2 * n))
        first, second = np.arange(n), np.arange(n, 2 * n)
        if shared:
            follows = (data.X[1:] == data.X_next[:-1]).all(axis=1)
            second[:-1][follows] = first[1:][follows]
        self.learn_rows((indptr, (ids + 1).astype(np.uint32), vals, first, second), data, true_online, replacing)

    def learn_rows(self, vectors: Any, data: Any, true_online: bool, replacing: bool = False) -> None:
        targets: Any = (0,) if self.m == 1 else np.arange(self.m)
        kernels.learn(vectors, data.steps, data.rewards, self.arrays, replacing, true_online, NO_VALUES, targets)
        self.check()

    def check(self) -> None:
        n_active, epoch, _ = self.counts
        on_trace = self.active[:n_active]
        assert 1 <= epoch <= kernels.EPOCHS
        assert np.unique(on_trace).size == on_trace.size
        assert_array_equal(np.flatnonzero(self.stamps), np.sort(on_trace))
        assert self.stamps.max() <= epoch
        assert set(np.flatnonzero(self.table[:, 0])) <= set(on_trace.tolist())
        assert_array_equal(self.table[0], 0.0)
        assert_array_equal(self.epochs[epoch], np.eye(self.m + 1)[0])
        assert_array_equal(self.epochs[0], 0.0)
        assert 1.0 / 64.0 <= self.scale[0] <= 64.0
        assert np.abs(self.z).max() <= self.scale[0] * self.scale[1] * (1.0 + 1e-12) + 1e-300

    @property
    def W(self) -> FloatArray:
        y, U, due = self.table[1:, :1], self.table[1:, 1:], self.epochs[self.stamps[1:]]
        weights: FloatArray = U + y * (due[:, 1:] + due[:, :1] * self.S)
        return weights

    @property
    def z(self) -> FloatArray:
        trace: FloatArray = self.table[1:, 0] * self.epochs[self.stamps[1:], 0] * self.scale[0]
        return trace


def assert_near(found: FloatArray, expected: FloatArray, tolerance: float = 1e-12) -> None:
    assert_allclose(found, expected, rtol=0.0, atol=tolerance * max(np.abs(expected).max(), 1e-3))


ALGORITHMS = pytest.mark.parametrize(
    ("true_online", "replacing"), [(False, False), (False, True), (True, False)], ids=["td", "replacing", "true-online"]
)


class TestSparse:
    @ALGORITHMS
    @pytest.mark.parametrize("seed", range(6))
    def test_against_the_literal_loop(self, seed: int, true_online: bool, replacing: bool) -> None:
        off_policy, m = seed % 2 == 1 and not true_online, 1 + 2 * (seed % 3)
        data = stream(seed, n=300, d=12, density=0.3, m=m, off_policy=off_policy)
        W, z, v_old = literal(data, true_online, replacing)
        assert 0.05 < np.abs(W).max() < 1e3
        lazy = Lazy(12, m)
        for start, stop in ((0, 1), (1, 40), (40, 40), (40, 299), (299, 300)):
            lazy.learn(data.part(start, stop), true_online=true_online, replacing=replacing, shared=seed >= 3)
        assert_near(lazy.W, W)
        assert_near(lazy.z, z)
        if true_online:
            assert_near(lazy.v_old, v_old)

    @ALGORITHMS
    @pytest.mark.parametrize("m", [1, 2])
    @pytest.mark.parametrize("shared", [False, True])
    def test_cuts_do_not_matter_to_the_bit(self, true_online: bool, replacing: bool, m: int, shared: bool) -> None:
        """Nor does whether one vector serves as x_next and then as x."""
        data = stream(3, n=200, d=12, density=0.3, m=m)
        whole, single = Lazy(12, m), Lazy(12, m)
        whole.learn(data, true_online=true_online, replacing=replacing, shared=shared)
        for t in range(200):
            single.learn(data.part(t, t + 1), true_online=true_online, replacing=replacing)
        assert_array_equal(whole.W, single.W)
        assert_array_equal(whole.z, single.z)

    @ALGORITHMS
    @pytest.mark.parametrize("seed", range(3))
    def test_each_of_many_targets_is_as_if_alone(self, seed: int, true_online: bool, replacing: bool) -> None:
        data = stream(seed, n=400, d=15, density=0.2, m=3, off_policy=not true_online)
        together = Lazy(15, 3)
        together.learn(data, true_online=true_online, replacing=replacing)
        for c in range(3):
            alone = Lazy(15, 1)
            alone.learn(
                data._replace(rewards=data.rewards[:, c : c + 1].copy()), true_online=true_online, replacing=replacing
            )
            for name in ("stamps", "counts", "scale"):
                assert_array_equal(getattr(alone, name), getattr(together, name), name)
            for name in ("table", "epochs"):
                assert_array_equal(getattr(alone, name), getattr(together, name)[:, [0, 1 + c]], name)
            assert (alone.S, alone.v_old) == (together.S[c], together.v_old[c])

    @ALGORITHMS
    @pytest.mark.parametrize("m", [1, 2])
    def test_many_epochs_and_settlings(self, true_online: bool, replacing: bool, m: int) -> None:
        """Decays that close an epoch every few steps, entries that are hundreds of epochs old, and no empty trace."""
        data = stream(11, n=3000, d=40, density=0.04, m=m, off_policy=not true_online)
        data.steps[2] = np.random.default_rng(0).choice([0.9, 0.5, 0.02], 3000)
        data.steps[3] = np.maximum(data.steps[3], 0.3)
        lazy = Lazy(40, m)
        lazy.learn(data, true_online=true_online, replacing=replacing, shared=True)
        W, z, _ = literal(data, true_online, replacing)
        assert_near(lazy.W, W)
        assert_near(lazy.z, z)

    @pytest.mark.parametrize("true_online", [False, True])
    def test_unseen_next_features_weigh_nothing(self, true_online: bool) -> None:
        data = stream(0, n=60, d=6, density=0.4)
        data.X[:, 4:] = 0.0  # features 4 and 5 are only ever next
        expected = Lazy(6, 1)
        expected.learn(data, true_online=true_online)
        lazy = Lazy(4, 1)
        indptr, ids, vals = dense_to_csr(np.vstack([data.X, data.X_next]), np.arange(120))
        rows = np.where(ids < 4, ids + 1, 0).astype(np.uint32)
        lazy.learn_rows((indptr, rows, vals, np.arange(60), np.arange(60, 120)), data, true_online)
        assert_array_equal(lazy.W, expected.W[:4])

    @pytest.mark.parametrize("seed", range(4))
    @pytest.mark.parametrize("true_online", [False, True])
    def test_features_and_rewards_of_many_sizes(self, seed: int, true_online: bool) -> None:
        """Twelve decades of features, rewards of 1 and of 1e8: no digits are lost, relative to the largest weight."""
        rng = np.random.default_rng(seed)
        data = stream(seed, n=2000, d=20, density=0.2)
        scale = 10.0 ** rng.uniform(-12, 0, [(1, 20), (2001, 1), (2001, 20), (2001, 20)][seed])
        X = np.vstack([data.X, data.X_next[-1:]]) * scale
        data.rewards[rng.random(2000) < 0.01] *= 1e8
        data = data._replace(X=X[:-1].copy(), X_next=X[1:].copy())
        lazy = Lazy(20, 1)
        lazy.learn(data, true_online=true_online)
        assert_near(lazy.W, literal(data, true_online, False)[0])

    @pytest.mark.parametrize("true_online", [False, True])
    def test_a_large_feature_after_small_ones(self, true_online: bool) -> None:
        """Errors of 1e12 meet features of 1e-10, then errors of 1 a feature of 1: it inherits none of S's rounding."""
        X = np.zeros((12, 2))
        X[:6, 0], X[6:, 1] = 1e-10, 1.0
        rewards = np.where(np.arange(12) < 6, 1e12 / 3.0, 1.0)[:, None]
        ones = np.ones(12)
        data = Stream(X, np.zeros((12, 2)), np.array([0.1 * ones, ones, 0.97 * ones, ones, ones]), rewards)
        lazy = Lazy(2, 1)
        lazy.learn(data, true_online=true_online)
        assert_allclose(lazy.W, literal(data, true_online, False)[0], rtol=1e-13)

    @pytest.mark.parametrize("decay", [0.5, 0.9])
    @pytest.mark.parametrize("true_online", [False, True])
    def test_decayed_entries_leave(self, decay: float, true_online: bool) -> None:
        """Each step brings a new feature; the list ends at ln(CUT) / ln(decay) of them and those of EPOCHS epochs."""
        n = 8000
        steps = np.array([np.full(n, 0.1), np.full(n, 0.9), np.full(n, decay), np.ones(n), np.ones(n)])
        indptr = np.append(np.arange(n + 1), n)  # the last vector is empty
        vectors = (indptr, np.arange(1, n + 1).astype(np.uint32), np.ones(n), np.arange(n), np.full(n, n))
        lazy = Lazy(n, 1)
        lazy.learn_rows(vectors, Stream(np.zeros(0), np.zeros(0), steps, np.ones((n, 1))), true_online)
        per_epoch = np.ceil(-np.log(64.0) / np.log(decay))
        assert lazy.counts[0] <= np.log(kernels.CUT) / np.log(decay) + (kernels.EPOCHS + 1) * per_epoch
        if not true_online:  # every weight is the geometric sum 0.1 (1 + decay + decay² + …), to 64 times rounding
            assert_allclose(lazy.W[: n - 600, 0], 0.1 / (1.0 - decay), rtol=128 * np.finfo(float).eps)

    def test_entries_that_cancel_are_not_listed_twice(self) -> None:
        X = np.array([[1.0, 0.0], [-1.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [1.0, 0.0]])
        ones = np.ones(5)
        data = Stream(X, np.zeros((5, 2)), np.array([0.1 * ones, ones, ones, ones, ones]), np.ones((5, 1)))
        lazy = Lazy(2, 1)
        lazy.learn(data)
        assert lazy.counts[0] == 1
        assert_near(lazy.W, literal(data, False, False)[0])

    @pytest.mark.parametrize("value", [5e-324, 1e-310, 1e-200])
    def test_tiny_features_stay_finite(self, value: float) -> None:
        X = np.full((30, 2), value)
        ones = np.ones(30)
        for true_online in (False, True):
            lazy = Lazy(2, 1)
            lazy.learn(
                Stream(X, X, np.array([ones, 0.9 * ones, 0.5 * ones, ones, ones]), ones[:, None]),
                true_online=true_online,
            )
            assert np.isfinite(lazy.W).all()
            assert_allclose(lazy.W, lazy.W[0, 0])

    def test_settle(self) -> None:
        """Rows 1 and 4 are of epoch 2, row 3 of epoch 1, all in the third; rows 0 and 2 are not on the trace."""
        lazy = Lazy(4, 2)
        lazy.table[:] = np.array([[0, 0, 0], [2, 1, 1], [0, 1, 1], [1e-30, 1, 1], [3, 1, 1]])
        lazy.stamps[:], lazy.active[:3], lazy.S[:] = [0, 2, 0, 1, 2], [4, 1, 3], [1.0, 10.0]
        lazy.epochs[1:4] = [[0.1, 7.0, 7.0], [0.5, 100.0, 0.0], [1.0, 0.0, 0.0]]
        table, stamps, active, _, _ = lazy.arrays
        epochs, S = lazy.epochs.reshape(-1), lazy.S
        assert kernels.settle(table, stamps, active, 3, epochs, 3, S, 0.25, 30.0, 3) == (2, 0.375)
        assert_array_equal(lazy.table[:, 0], [0.0, 0.25, 0.0, 0.0, 0.375])  # y D P
        assert_array_equal(lazy.table[[1, 2, 4], 1:], [[202.0, 11.0], [1.0, 1.0], [302.5, 16.0]])  # U + y (C + D S)
        assert_allclose(lazy.table[3, 1:], 1.0)
        assert_array_equal(S, [0.0, 0.0])
        assert_array_equal(stamps, [0, 1, 0, 0, 1])
        assert_array_equal(active[:2], [4, 1])
        assert_array_equal(lazy.epochs[1], [1.0, 0.0, 0.0])

    @pytest.mark.parametrize("y", [np.inf, np.nan])
    def test_settle_empties_a_trace_that_has_overflowed(self, y: float) -> None:
        lazy = Lazy(1, 1)
        lazy.table[1, 0], lazy.stamps[1], lazy.active[0] = y, 1, 1
        table, stamps, active, _, _ = lazy.arrays
        epochs, S = lazy.epochs.reshape(-1), lazy.S
        assert kernels.settle(table, stamps, active, 1, epochs, 1, S, 0.0, np.inf, 2) == (0, 0.0)
        assert lazy.table[1, 0] == stamps[1] == 0

    def test_factors_of_old_epochs_do_not_become_subnormal(self) -> None:
        lazy = Lazy(1, 1)
        epochs, S = lazy.epochs.reshape(-1), lazy.S
        S[:] = 1.0
        for epoch in range(1, 9):
            kernels.close_epoch(epochs, epoch, S, 1e-60, 2)
            kernels.open_epoch(epochs, epoch + 1, S, 2)
            S[:] = np.inf if epoch == 7 else 1.0
        assert_array_equal(lazy.epochs[1:4, 0] == 0.0, [True, True, True])
        assert lazy.epochs[1, 1] == 1.0  # what comes after it is gone is not its own


class TestDense:
    @pytest.mark.parametrize("true_online", [False, True])
    @pytest.mark.parametrize("seed", range(4))
    def test_against_the_literal_loop(self, seed: int, true_online: bool) -> None:
        m = 1 + 2 * (seed % 2)
        data = stream(seed, n=200, d=9, density=0.8, m=m, off_policy=not true_online)
        W, z, v_old = np.zeros((9, m), order="F"), np.zeros(9), np.zeros(m)
        for start, stop in ((0, 1), (1, 1), (1, 150), (150, 200)):
            part = data.part(start, stop)
            order = np.random.default_rng(seed).permutation(stop - start)
            X, X_next = np.empty_like(part.X), np.empty_like(part.X_next)
            X[order], X_next[order] = part.X, part.X_next
            kernels.learn_dense(
                X,
                order,
                X_next,
                order,
                part.steps,
                part.rewards,
                W.T,
                z,
                v_old,
                np.zeros(3, dtype=np.int64),
                true_online,
                NO_VALUES,
            )
        expected = literal(data, true_online, False)
        assert_near(W, expected[0])
        assert_near(z, expected[1])
        if true_online:
            assert_near(v_old, expected[2])

    def test_traces_do_not_become_subnormal(self) -> None:
        X, one = np.zeros((400, 3)), np.ones(400)
        X[0] = 1.0
        z, every = np.zeros(3), np.arange(400)
        steps = np.array([one, one, 0.1 * one, one, one])
        kernels.learn_dense(
            X,
            every,
            X,
            every,
            steps,
            one[:, None],
            np.zeros((1, 3)),
            z,
            np.zeros(1),
            np.zeros(3, dtype=np.int64),
            False,
            NO_VALUES,
        )
        assert_array_equal(z, 0.0)
