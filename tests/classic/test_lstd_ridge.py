"""LSTD(ridge=...) against dense algebra and Krylov LSTD, and when it is interrupted, saved or singular."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from tests.helpers import interrupted_everywhere
from tests.krylov.literal_system import dense_rows, literal_system, random_steps
from tlstd import LSTD, KrylovLSTD, Transitions, load
from tlstd.core.arrays import FloatArray
from tlstd.core.svd import solve_truncated
from tlstd.errors import InvalidParameterError


def with_bias(steps: Transitions, *, dense: bool = False, at: int = 190) -> Transitions:
    """The same with 0.5 in feature 3 of every vector, and 2 in feature 5 of every x but number ``at``."""
    X, X_next = dense_rows(steps.X), dense_rows(steps.X_next)
    X[:, 3] = X_next[:, 3] = 0.5
    X[:, 5] = X_next[:, 5] = 2.0
    X[at, 5] = 1.0
    form: Any = np.asarray if dense else sp.csr_array
    columns = {"discounts": steps.discounts, "trace_discounts": steps.trace_discounts, "rhos": steps.rhos}
    return Transitions(form(X), steps.rewards + 1.0, form(X_next), **columns)


def ridge_solution(steps: Transitions, lambda_: float, ridge: float, beta: float | None) -> FloatArray:
    """(A + ηD)⁻¹ b written out."""
    A, b = literal_system(steps, lambda_, beta=beta)
    X = dense_rows(steps.X)
    T = X.shape[0]
    weights = np.ones(T) if beta is None else (1.0 - beta) ** np.arange(T - 1.0, -1.0, -1.0)
    eta = ridge * (weights @ (X**2).sum(axis=1)) / weights.sum()
    constant = (X[0] == X).all(axis=0) & (X[0] != 0.0)
    return np.linalg.solve(A + eta * np.diag(~constant), b)


@pytest.mark.parametrize("kind", ["binary", "valued", "dense"])
@pytest.mark.parametrize("ratios", [False, True])
@pytest.mark.parametrize("beta", [None, 0.02, 0.9])
def test_against_dense_algebra_and_krylov(kind: str, ratios: bool, beta: float | None) -> None:
    steps = random_steps(np.random.default_rng([len(kind), ratios]), 200, kind=kind, ratios=ratios, n_targets=2)
    steps = with_bias(steps, dense=kind == "dense")
    expected = ridge_solution(steps, 0.7, 0.05, beta)
    assert np.abs(expected[3]).max() > 1e-3
    options: dict[str, Any] = {"lambda_": 0.7, "beta": beta, "n_targets": 2}
    whole, pieces = (LSTD(30, ridge=0.05, **options) for _ in range(2))
    whole.update_many(steps)
    pieces.update_many(steps[:1])
    for t in steps[1:60]:
        pieces.update(t)
    pieces.update_many(steps[60:])
    krylov = KrylovLSTD(30, ridge=0.05, dimension=30, **options)
    krylov.update_many(steps)
    size = np.abs(expected).max()
    for model in (whole, pieces, krylov):
        np.testing.assert_allclose(model.weights, expected, rtol=0.0, atol=1e-9 * size)
    np.testing.assert_allclose(krylov.predict(steps.X), whole.predict(steps.X), rtol=0.0, atol=1e-9 * size)


def test_replacing_traces() -> None:
    steps = with_bias(random_steps(np.random.default_rng(0), 200))
    model = LSTD(30, lambda_=0.7, trace="replacing", ridge=0.1)
    model.update_many(steps)
    _, A, b = model.system()
    X = dense_rows(steps.X)
    shift = 0.1 * (X**2).sum(axis=1).mean() * (model._system.seen.ids != 3)
    w = np.zeros((30, 1))
    w[model._system.seen.ids] = np.linalg.solve(A + np.diag(shift), b)
    np.testing.assert_allclose(model.weights, w[:, 0], atol=1e-11)


@pytest.mark.parametrize("dense", [False, True])
def test_a_feature_of_next_rows_alone_has_no_weight(dense: bool) -> None:
    X, X_next = np.array([[1.0, 0.0]] * 3), np.array([[0.0, 1.0]] * 3)
    form: Any = np.asarray if dense else sp.csr_array
    half = np.full(3, 0.5)
    model = LSTD(2, lambda_=0.0, ridge=0.25)
    model.update_many(Transitions(form(X), np.ones(3), form(X_next), discounts=half, trace_discounts=half))
    # feature 0 is constant: [[1, -1/2], [0, 1/4]] w = [1, 0]
    np.testing.assert_allclose(model.weights, [1.0, 0.0], atol=1e-15)


def test_singular_systems_are_solved_with_the_cut_off() -> None:
    """Two constant features are one: neither is penalised, and A + ηD has no inverse."""
    steps = random_steps(np.random.default_rng(1), 150, kind="dense", n_features=6)
    X, X_next = np.array(steps.X), np.array(steps.X_next)
    X[:, 1:3] = X_next[:, 1:3] = 1.0
    columns = {"discounts": steps.discounts, "trace_discounts": steps.trace_discounts}
    steps = Transitions(X, steps.rewards, X_next, **columns)
    model = LSTD(6, lambda_=0.5, ridge=0.1, rcond=1e-8)
    model.update_many(steps)
    A, b = literal_system(steps, 0.5)
    shift = 0.1 * (X**2).sum(axis=1).mean() * np.diag([1.0, 0.0, 0.0, 1.0, 1.0, 1.0])
    np.testing.assert_allclose(model.weights, solve_truncated(A + shift, b, rcond=1e-8)[:, 0], atol=1e-10)
    assert model.weights[1] == pytest.approx(model.weights[2])


def test_no_features_at_all() -> None:
    model = LSTD(4, lambda_=0.5, ridge=0.1)
    zeros = np.zeros((3, 4))
    ones = np.ones(3)
    assert (model.weights == 0.0).all()
    model.update_many(Transitions(sp.csr_array(zeros), ones, sp.csr_array(zeros), discounts=ones, trace_discounts=ones))
    assert (model.weights == 0.0).all()
    steps = random_steps(np.random.default_rng(0), 20, n_features=4)
    model.update_many(steps)
    assert np.isfinite(model.weights).all()


@pytest.mark.parametrize("kind", ["valued", "dense"])
def test_saved_and_continued(kind: str, tmp_path: Path) -> None:
    steps = with_bias(random_steps(np.random.default_rng(2), 200, kind=kind), dense=kind == "dense")
    for cut in (0, 1, 80, 130):
        model = LSTD(30, lambda_=0.7, ridge=0.05, beta=0.01)
        model.update_many(steps[:cut])
        model.save(tmp_path / "model")
        twin = load(tmp_path / "model")
        for m in (model, twin):
            m.update_many(steps[cut:])
        np.testing.assert_array_equal(twin.weights, model.weights)


@pytest.mark.parametrize("kind", ["valued", "dense"])
def test_interrupted_anywhere_it_is_the_model_of_a_prefix(kind: str) -> None:
    steps = with_bias(random_steps(np.random.default_rng(3), 150, kind=kind), dense=kind == "dense", at=10)
    found = set()
    for model in interrupted_everywhere(lambda: LSTD(30, lambda_=0.7, ridge=0.05), steps[:20], steps[20:], every=5):
        expected = ridge_solution(steps[: model.n_updates], 0.7, 0.05, None)[:, 0]
        np.testing.assert_allclose(model.weights, expected, atol=1e-9 * np.abs(expected).max())
        found.add(model.n_updates)
    assert {20, 150} <= found


@pytest.mark.parametrize(
    "options",
    [{"ridge": -1.0}, {"ridge": np.nan}, {"solver": "recursive", "ridge": 0.1}, {"tikhonov": 1.0, "ridge": 0.1}],
)
def test_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameterError, match="ridge"):
        LSTD(3, lambda_=0.5, **options)
