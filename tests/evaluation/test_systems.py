"""Products with the systems of least squares, against whole matrices made in loops over steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import block_diag

from tests.evaluation.plain import Whole, dense_rows, expected_blocks, in_blocks, random_log, whole
from tlstd import AutoTiles, OneHot
from tlstd.core.arrays import FloatArray
from tlstd.evaluation import steps as module
from tlstd.evaluation.selection import covariance
from tlstd.evaluation.steps import Rows, steps_of
from tlstd.evaluation.systems import WHOLE, ActionSystem, PairSystem, StateSystem, System, gathered
from tlstd.features import Polynomial

GAMMA, LAMBDAS = 0.9, (0.0, 0.5, 1.0)
KINDS = ("states", "ratios", "actions", "pairs", "states, dense", "ratios, dense", "actions, dense")


def made(kind: str, seed: int, discrete: bool) -> tuple[System, FloatArray, FloatArray, FloatArray | None]:
    """A system, with x_t and x'_t of all steps and the ratios."""
    log, rng = random_log(seed, 25, discrete=discrete), np.random.default_rng(seed)
    steps = steps_of(log, GAMMA)
    states = steps.states.reshape(len(steps.states), -1).astype(float)
    features: Any = OneHot([0], [8]) if discrete else AutoTiles.fit(states)
    kind, _, dense = kind.partition(", ")
    if dense:
        features = Polynomial.fit(states)
    rows = Rows.of(features, states)
    X, N = dense_rows(rows), len(steps)
    if kind == "states":
        return StateSystem(steps, rows), X[steps.here], X[steps.after], None
    if kind == "ratios":
        rhos = rng.choice([0.0, 0.4, 1.0, 2.5], N)
        return StateSystem(steps, rows, rhos), X[steps.here], X[steps.after], rhos
    assert log.actions is not None
    actions = log.actions[steps.kept].astype(np.int64)
    if kind == "actions":
        chances = rng.dirichlet(np.ones(3), len(X)) * (rng.random((len(X), 3)) < 0.7)  # some are not supported
        return (
            ActionSystem(steps, rows, actions, chances),
            in_blocks(X[steps.here], actions, 3),
            expected_blocks(X, chances)[steps.after],
            None,
        )
    pairs, behind = rng.standard_normal((N, 5)), rng.standard_normal((len(X), 5))
    cut = N // 3
    ids = np.arange(5)
    both = Rows([pairs[:cut], pairs[cut:]], ids, 5), Rows([behind], ids, 5)
    return PairSystem(steps, *both, np.zeros(len(X))), pairs, behind[steps.after], None


@pytest.fixture(params=[50_000, 7], ids=["one block", "many blocks"])
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(module, "BLOCK", request.param)
    monkeypatch.setattr(module, "PIECE", request.param)
    return int(request.param)


@pytest.mark.parametrize("discrete", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_products_are_those_of_whole_matrices(kind: str, discrete: bool, block: int) -> None:
    """Every column in its own system: each fold held out or none, each λ, all in one call."""
    system, X, X_next, rhos = made(kind, 1, discrete)
    steps, rng = system.steps, np.random.default_rng(0)
    if isinstance(system, (StateSystem, ActionSystem)):
        assert (len(system.rows.blocks) > 1) == (block < system.rows.size)
    assert X.shape == (len(steps), system.n)
    folds = [WHOLE, *steps.folds.tolist()]
    columns = [(fold, lambda_) for fold in folds for lambda_ in LAMBDAS]
    rng.shuffle(columns)
    held, lambdas = [c[0] for c in columns], [c[1] for c in columns]
    V = rng.standard_normal((system.n, len(columns)))
    system.rewards.append(rng.standard_normal(len(steps)))
    sides = [i % 2 for i in range(len(columns))]
    seen: list[FloatArray] = []
    AV, AH = system.matvec(V, held, lambdas, seen), system.rmatvec(V, held, lambdas)
    b = system.b(held, lambdas, sides)
    assert system.dense == bool("dense" in kind or kind == "pairs")
    if not system.dense:
        assert_allclose(seen[0], X @ V, atol=1e-10)
        assert_allclose(seen[1], (X - steps.discounts[:, None] * X_next) @ V, atol=1e-10)
    for c, (fold, lambda_) in enumerate(columns):
        if system.n > 60 and c % 4:
            continue  # loops take long
        expected = whole(steps, X, X_next, lambda_, rhos, fold, system.rewards[sides[c]])
        scale = np.abs(expected.A).max()
        assert_allclose(AV[:, c], expected.A @ V[:, c], atol=1e-10 * scale)
        assert_allclose(AH[:, c], expected.A.T @ V[:, c], atol=1e-10 * scale)
        assert_allclose(b[:, c], expected.b, atol=1e-10 * scale)
        assert_allclose(system.traces(V[:, [c]], [lambda_])[:, 0], expected.Z @ V[:, c], atol=1e-10 * scale)


@pytest.mark.parametrize("kind", KINDS)
def test_the_transpose_is_adjoint(kind: str) -> None:
    """hᵀ(A v) = (Aᵀh)ᵀv, with a diagonal added too."""
    system, _, _, _ = made(kind, 3, True)
    rng = np.random.default_rng(0)
    system.shift = rng.random(system.n)
    for fold in (WHOLE, int(system.steps.folds[0])):
        for lambda_ in LAMBDAS:
            h, v = rng.standard_normal((2, system.n, 1))
            forth = h[:, 0] @ system.matvec(v, [fold], [lambda_])[:, 0]
            assert forth == pytest.approx(system.rmatvec(h, [fold], [lambda_])[:, 0] @ v[:, 0], rel=1e-11)
    plain = system.matvec(v, [WHOLE], [0.5])
    system.shift = None
    assert_allclose(plain - system.matvec(v, [WHOLE], [0.5]), np.random.default_rng(0).random(system.n)[:, None] * v)


@pytest.mark.parametrize("kind", KINDS)
def test_no_argument_is_changed(kind: str) -> None:
    system, _, _, _ = made(kind, 2, True)
    V = np.random.default_rng(0).standard_normal((system.n, 3))
    kept, rewards = V.copy(), system.rewards[0].copy()
    fold = int(system.steps.folds[0])
    for _ in range(2):
        system.matvec(V, [WHOLE, fold, fold], [0.0, 0.5, 1.0])
        system.rmatvec(V, [WHOLE, fold, fold], [0.0, 0.5, 1.0])
        system.b([WHOLE, fold, fold], [0.0, 0.5, 1.0], [0, 0, 0])
        system.traces(V, [0.0, 0.5, 1.0])
    assert_array_equal(V, kept)
    assert_array_equal(system.rewards[0], rewards)


@pytest.mark.parametrize("kind", KINDS)
def test_values_of_rows_and_their_sums(kind: str) -> None:
    """values_sum is the transpose of values: Σ weights_i v(row i) = xᵀw."""
    system, _, X_next, _ = made(kind, 4, True)
    steps, rng = system.steps, np.random.default_rng(0)
    W = rng.standard_normal((system.n, 2))
    assert_allclose(system.values(W, steps.after), X_next @ W, atol=1e-12)
    weights = rng.random(system.n_rows)
    every = system.values(W, np.arange(system.n_rows))
    assert_allclose(system.values_sum(weights) @ W, weights @ every, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_each_step_has_the_weights_that_have_not_seen_it(kind: str) -> None:
    system, X, X_next, _ = made(kind, 5, True)
    steps, rng = system.steps, np.random.default_rng(0)
    folds = np.append(steps.folds, WHOLE)
    W = rng.standard_normal((system.n, folds.size))
    found = system.by_others(W, folds)
    for t in range(len(steps)):
        own = W[:, folds.tolist().index(steps.fold[t])]
        expected = [X[t] @ own, X_next[t] @ own, X[t] @ W[:, -1], X_next[t] @ W[:, -1]]
        assert_allclose(found[t], expected, atol=1e-12)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind in ("actions", "pairs")])
def test_covariance(kind: str, block: int) -> None:
    system, X, _, _ = made(kind, 6, False)
    assert_allclose(block_diag(*covariance(system)), X.T @ X / len(X), atol=1e-12)


@pytest.mark.parametrize("kind", ["states", "pairs"])
def test_only_a_constant_feature_counts_as_constant(kind: str) -> None:
    """Not one whose mean happens to be 1, nor one that is 0."""
    steps = steps_of(random_log(0, 25), GAMMA, distinct=False)
    M, N = len(steps.states), len(steps)
    size = M if kind == "states" else N
    table = np.column_stack([np.ones(size), np.zeros(size), np.where(np.arange(size) % 2, 0.0, 2.0), np.arange(size)])
    table[-1, 2] += size - table[:, 2].sum()
    rows = Rows([table], np.arange(4), 4)
    system: System = StateSystem(steps, rows)
    if kind == "pairs":
        system = PairSystem(steps, rows, Rows([np.ones((M, 4))], np.arange(4), 4), np.zeros(M))
    assert_array_equal(system.constant, [1.0, 0.0, 0.0, 0.0])


def test_sums_by_rows() -> None:
    rng = np.random.default_rng(0)
    for rows in (np.array([0, 2, 5]), np.array([5, 2, 2, 0]), np.array([4, 4]), np.zeros(0, dtype=np.int64)):
        values = rng.standard_normal((rows.size, 2))
        expected = np.zeros((6, 2))
        np.add.at(expected, rows, values)
        assert_allclose(gathered(values, rows, 6), expected)


def test_the_reference_by_hand() -> None:
    """Two steps and an end: z_1 = ρ x_1, z_2 = ρ (γλ z_1 + x_2)."""
    system, _, _, _ = made("states", 0, True)
    steps = steps_of(random_log(0, 25), GAMMA)
    t = int(np.flatnonzero(~steps.begins)[0])
    X = np.eye(len(steps))
    found: Whole = whole(steps, X, X, 0.5, np.full(len(steps), 2.0))
    expected = np.zeros(len(steps))
    expected[[t - 1, t]] = 4.0 * 0.45, 2.0
    assert_allclose(found.Z[t], expected)
    assert system.sizes([WHOLE, 0]).tolist() == [len(steps), (steps.fold != 0).sum()]
