"""LARS-TD against the conditions of its solution, coordinate descent, and paths that end."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from tests.krylov.literal_system import literal_system, random_steps
from tlstd import LARSTD, LSTD, Transition, Transitions
from tlstd.core.arrays import FloatArray
from tlstd.evaluation import choose
from tlstd.zoo.lars_path import LarsPath, lars


def assert_solves(A: FloatArray, b: FloatArray, w: FloatArray, mu: float) -> None:
    """b - A w = μ sign(w) where w is not 0, |b - A w| <= μ elsewhere."""
    residual, size = b - A @ w, np.abs(b).max()
    active = w != 0.0
    assert_allclose(residual[active], mu * np.sign(w[active]), atol=1e-9 * size)
    assert np.abs(residual).max() <= mu + 1e-9 * size


def coordinate_descent(A: FloatArray, b: FloatArray, mu: float) -> FloatArray:
    """The same solution, one weight after the other: w_j is the soft threshold of what the others leave of b_j."""
    w = np.zeros(b.size)
    for _ in range(3_000):
        before = w.copy()
        for j in range(b.size):
            rest = b[j] - A[j] @ w + A[j, j] * w[j]
            w[j] = np.sign(rest) * max(abs(rest) - mu, 0.0) / A[j, j]
        if np.abs(w - before).max() < 1e-14:
            break
    return w


def whole(path: LarsPath, n: int) -> FloatArray:
    w = np.zeros(n)
    w[path.active] = path.weights
    return w


def test_one_feature_by_hand() -> None:
    """x = 2, r = 3 at an end: A = 4, b = 6; with μ = 1.5 the weight is (6 - 1.5) / 4."""
    model = LARSTD(3, penalty=0.25, lambda_=0.9)
    model.update(Transition([0.0, 2.0, 0.0], 3.0, [1.0, 1.0, 1.0], discount=0.0, trace_discount=0.0))
    assert_allclose(model.weights, [0.0, 1.125, 0.0])
    assert_allclose(model.paths[0].penalties, [6.0, 1.5])


@pytest.mark.parametrize(
    ("kind", "lambda_", "ratios"), [("binary", 0.0, False), ("valued", 0.8, True), ("dense", 0, False)]
)
@pytest.mark.parametrize("penalty", [0.6, 0.02])
def test_it_is_the_fixed_point(kind: str, lambda_: float, ratios: bool, penalty: float) -> None:
    steps = random_steps(np.random.default_rng([7, len(kind)]), 900, kind=kind, ratios=ratios, n_targets=2)
    model = LARSTD(30, penalty=penalty, lambda_=lambda_, n_targets=2)
    model.update_many([steps[:400], steps[400:]])
    A, b = literal_system(steps, lambda_)
    for c in (0, 1):
        mu = penalty * np.abs(b[:, c]).max()
        assert model.paths[c].ended == "penalty"
        assert_solves(A, b[:, c], model.weights[:, c], mu)
        assert_allclose(model.weights[:, c], coordinate_descent(A, b[:, c], mu), atol=1e-8)
    assert 0 < np.count_nonzero(model.weights) < 60 or penalty < 0.1


def test_paths_on_which_features_leave() -> None:
    """Matrices with a positive definite symmetric part are P-matrices: every penalty has its solution."""
    left = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        B, skew = rng.standard_normal((2, 25, 25))
        A, b = B @ B.T / 25 + 0.05 * np.eye(25) + 0.3 * (skew - skew.T), rng.standard_normal(25)
        for share in (0.5, 0.1, 0.0):
            path = lars(lambda j, A=A: A[:, j], b, share * np.abs(b).max(), 25)  # type: ignore[misc]
            assert path.ended == "penalty"
            assert_solves(A, b, whole(path, 25), share * np.abs(b).max())
        assert (np.diff(path.penalties) <= 0.0).all()
        left += int((np.diff(path.n_active) < 0).sum())
    assert left > 10


def test_a_path_without_a_penalty_ends_at_lstd() -> None:
    steps = random_steps(np.random.default_rng(5), 800, kind="valued", n_features=10)
    model, lstd = LARSTD(10, penalty=0.0, lambda_=0.5), LSTD(10, lambda_=0.5, rcond=0.0)
    for each in (model, lstd):
        each.update_many(steps)
    assert_allclose(model.weights, lstd.weights, atol=1e-9)


def test_paths_that_end() -> None:
    """At a number of features; where a weight would have to start against its sign; and where A is singular."""
    A, b = np.array([[1.0, 2.0], [2.0, 1.0]]), np.array([1.0, 0.9])
    path = lars(lambda j: A[:, j], b, 0.0, 2)
    assert path.ended == "not a P-matrix"  # Δ = (-1, 1) for the signs (1, -1), from μ = 1 - 1.9/3 on
    assert_allclose(path.penalties, [1.0, 1.0 - 1.9 / 3.0])
    assert_solves(A, b, whole(path, 2), path.penalties[-1])
    path = lars(lambda j: np.eye(4)[j], np.array([4.0, 3.0, 2.0, 1.0]), 0.0, 2)
    assert (path.ended, path.active.tolist(), path.penalties[-1]) == ("features", [0, 1], 2.0)
    assert_allclose(path.weights, [2.0, 1.0])
    path = lars(lambda j: np.zeros(2), b, 0.0, 2)
    assert (path.ended, path.weights.tolist()) == ("singular", [0.0])
    path = lars(lambda j: np.zeros(0), np.zeros(0), 0.0, 2)
    assert (path.ended, path.weights.size) == ("penalty", 0)


def test_of_equal_features_one_is_taken() -> None:
    steps = random_steps(np.random.default_rng(2), 500, kind="dense", n_features=6)
    X, X_next = (np.hstack([np.asarray(side), np.asarray(side)[:, :3]]) for side in (steps.X, steps.X_next))
    columns = {"discounts": steps.discounts, "trace_discounts": steps.trace_discounts}
    twice, once = LARSTD(9, penalty=0.01, lambda_=0.3), LARSTD(6, penalty=0.01, lambda_=0.3)
    twice.update_many(Transitions(X, steps.rewards, X_next, **columns))
    once.update_many(steps)
    assert twice.paths[0].ended == "penalty"
    w = twice.weights.copy()
    assert not (w[:3] * w[6:]).any()
    w[:3] += w[6:]
    assert_allclose(w[:6], once.weights, atol=1e-10)


def test_selection_among_thirty_thousand_features() -> None:
    """Five of 30,000 sparse features make the rewards: they are selected, and held-out data chooses the penalty."""
    rng = np.random.default_rng(0)
    n, d = 3_000, 30_000
    others = sp.csr_array(
        (np.ones(15 * n), rng.integers(0, d - 5, 15 * n), np.arange(0, 15 * n + 1, 15)), shape=(n, d - 5)
    )
    others.sum_duplicates()
    X = sp.csr_array(sp.hstack([sp.csr_array((rng.random((n, 5)) < 0.3).astype(float)), others]))
    rewards = X[:, :5] @ np.array([1.0, -1.0, 2.0, 1.0, -2.0]) + 0.1 * rng.standard_normal(n)
    ends, no = np.ones(n, dtype=bool), np.zeros(n, dtype=bool)
    steps = Transitions.from_arrays(X, rewards, X, terminated=ends, truncated=no, gamma=0.9)
    model = LARSTD(d, penalty=0.1, lambda_=0.0)
    model.update_many(steps)
    assert set(range(5)) <= set(model.sparse_weights.indices.tolist())
    assert np.count_nonzero(np.abs(model.sparse_weights.values) > 0.3) == 5
    chosen = choose(lambda penalty: LARSTD(d, penalty=penalty, lambda_=0.0), [0.9, 0.1], steps, folds=2)
    assert chosen.value == 0.1


def test_the_inverse_is_followed_and_not_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where A is well-conditioned, features that join and leave cost O(k²): no matrix is decomposed."""
    monkeypatch.delattr("tlstd.zoo.lars_path.solve_lu")
    rng = np.random.default_rng(0)
    B, skew = rng.standard_normal((2, 25, 25))
    A, b = B @ B.T / 25 + 0.05 * np.eye(25) + 0.3 * (skew - skew.T), rng.standard_normal(25)
    path = lars(lambda j: A[:, j], b, 0.0, 25)
    assert (np.diff(path.n_active) < 0).any()
    assert_solves(A, b, whole(path, 25), 0.0)
