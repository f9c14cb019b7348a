"""Forgetful LSTD(λ) and linear Dyna, against loops over dense matrices, each other, and LSTD."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.helpers import dense
from tests.krylov.literal_system import random_steps
from tlstd import LSTD, TD, Decay, ForgetfulLSTD, LinearDyna, Transition, Transitions, boyan_chain
from tlstd.core.arrays import FloatArray
from tlstd.errors import CapacityError, InvalidParameterError


def literal_forgetful(
    steps: Transitions, alpha: Any, beta: float, lambda_: float, k: int, w: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A, b and w of the publication's loop, with ρ: e, A and b forget along x, then k gradient steps."""
    n = steps.n_features
    A, b, e = np.eye(n) / beta, w / beta, np.zeros(n)
    for number, t in enumerate(steps, 1):
        x, x_next = dense(t.x), dense(t.x_next)
        forget = np.eye(n) - beta * t.rho * np.outer(x, x)
        e = t.rho * (t.trace_discount * lambda_ * forget @ e + x)
        A = forget @ A + np.outer(e, x - t.discount * x_next)
        b = forget @ b + np.outer(e, t.reward)
        for _ in range(k):
            w = w + alpha(number) * (b - A @ w)
    return A, b, w


def literal_dyna(
    steps: Transitions, alpha: float, beta: float, k: int, seed: int, w: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """F, b and w of Algorithm 1, with F and b as columns: F x is the expected γx′, planning by unit vectors."""
    n, blocks = steps.n_features, -(-k // 4)
    F, b = np.zeros((n, n)), w.copy()
    for number, t in enumerate(steps):
        x, x_next = dense(t.x), dense(t.x_next)
        w = w + alpha * t.rho * np.outer(x, t.reward + t.discount * x_next @ w - x @ w)
        F = F + beta * t.rho * np.outer(t.discount * x_next - F @ x, x)
        b = b + beta * t.rho * np.outer(x, t.reward - x @ b)
        for i in np.random.Philox(key=seed, counter=number * blocks).random_raw(k) % np.uint64(n):
            unit = np.eye(n)[int(i)]
            w = w + alpha * np.outer(unit, unit @ b + (F @ unit) @ w - unit @ w)
    return F, b, w


@pytest.mark.parametrize(("kind", "ratios", "k"), [("binary", False, 1), ("valued", True, 3), ("dense", True, 5)])
def test_against_literal_loops(kind: str, ratios: bool, k: int) -> None:
    """From weights other than 0; all at once, and in pieces; with the value of each step's next state."""
    rng = np.random.default_rng([len(kind), ratios])
    steps = random_steps(rng, 150, kind=kind, ratios=ratios, n_targets=2, n_features=15)
    w, decay = rng.standard_normal((15, 2)), Decay(0.03, 50)
    A, b, expected = literal_forgetful(steps, decay.at, 0.03, 0.8, k, w)
    F, c, by_dyna = literal_dyna(steps, 0.03, 0.03, k, 7, w)
    settings: dict[str, Any] = {"beta": 0.03, "planning_steps": k, "n_targets": 2}
    cases: list[tuple[Any, FloatArray]] = [
        (lambda: ForgetfulLSTD(15, step_size=decay, lambda_=0.8, **settings), expected),
        (lambda: LinearDyna(15, step_size=0.03, seed=7, **settings), by_dyna),
    ]
    for make, weights in cases:
        whole, pieces, one_by_one = make(), make(), make()
        for model in (whole, pieces, one_by_one):
            model.start_from(w)
        whole.update_many(steps)
        values = np.concatenate([pieces.update_and_predict(part) for part in (steps[:1], steps[1:40], steps[40:])])
        after = []
        for t in steps[:30]:
            one_by_one.update(t)
            after.append(one_by_one.predict(t.x_next))
        assert_allclose(whole.weights, weights, rtol=1e-9, atol=1e-10)
        assert_allclose(pieces.weights, weights, rtol=1e-9, atol=1e-10)
        assert_allclose(values[:30], after, rtol=1e-9, atol=1e-10)
        ids, matrix, vector = whole.system() if isinstance(whole, ForgetfulLSTD) else whole.model()
        assert_allclose(matrix, (A if isinstance(whole, ForgetfulLSTD) else F.T)[np.ix_(ids, ids)], atol=1e-9)
        assert_allclose(vector, (b if isinstance(whole, ForgetfulLSTD) else c)[ids], atol=1e-9)


def test_one_step_by_hand() -> None:
    """From A = I/β = 10 I: x = (1, 0) makes it [[10, -0.9], [0, 10]] and b = (2, 0), so that w moves by α b."""
    step = Transition([1.0, 0.0], 2.0, [0.0, 1.0], discount=0.9, trace_discount=0.0)
    model = ForgetfulLSTD(2, step_size=0.1, beta=0.1, lambda_=0.5)
    model.update(step)
    assert_allclose(model.system()[1], [[10.0, -0.9], [0.0, 10.0]])
    assert_allclose(model.weights, [0.2, 0.0])
    model.update(Transition([0.0, 1.0], 1.0, [0.0, 0.0], discount=0.0, trace_discount=0.9))
    # e = 0.45 x₀ + x₁; A = [[10, -0.45], [0, 10]], b = (2.45, 1); w += 0.1 (b - A w) = 0.1 (0.45, 1)
    assert_allclose(model.weights, [0.245, 0.1])
    dyna = LinearDyna(2, step_size=0.5, beta=0.1, planning_steps=4, seed=1)
    dyna.update(step)
    draws = np.random.Philox(key=1).random_raw(4) % np.uint64(2)
    assert 0 < draws.sum() < 4
    w = 1.0  # the TD step; then b = (0.2, 0) and F = [[0, 0.09], [0, 0]]
    for i in draws:
        w += 0.5 * (0.2 - w) if i == 0 else 0.0
    assert_allclose(dyna.weights, [w, 0.0])


def test_the_first_step_is_tds_and_lambda_0_is_the_model_of_dyna() -> None:
    """A = (I - F)/β and b = b/β for every stream, so that planning with α = β is a sweep w ← b + F w."""
    steps = random_steps(np.random.default_rng(3), 80, kind="valued", ratios=True, n_features=12)
    forgetful, dyna = (
        ForgetfulLSTD(12, step_size=0.05, beta=0.05, lambda_=0.0),
        LinearDyna(12, step_size=0.1, beta=0.05),
    )
    td = TD(12, step_size=0.05, lambda_=0.0)
    for model in (forgetful, td):
        model.update(steps[0])
    assert_allclose(forgetful.weights, td.weights, atol=1e-14)
    forgetful.update_many(steps[1:-1])
    dyna.update_many(steps)
    before = forgetful.weights.copy()
    forgetful.update_many(steps[-1:])
    (ids, A, b), (same, F, c) = forgetful.system(), dyna.model()
    assert (ids == same).all()
    assert_allclose(0.05 * A, np.eye(ids.size) - F, atol=1e-13)
    assert_allclose(0.05 * b, c, atol=1e-13)
    assert_allclose(forgetful.weights[ids], (c[:, 0] + F @ before[ids]), atol=1e-12)


@pytest.mark.parametrize("make", [ForgetfulLSTD, LinearDyna])
def test_it_ends_at_lstds_solution(make: Any) -> None:
    """With λ=0 and a model that has seen enough: the fixed point of planning is LSTD's, up to the forgetting."""
    chain = boyan_chain()
    steps = chain.sample(20_000, np.random.default_rng(0))
    options = {"lambda_": 0.0} if make is ForgetfulLSTD else {}
    model, lstd = make(4, step_size=0.01, beta=0.01, planning_steps=5, **options), LSTD(4, lambda_=0.0)
    for each in (model, lstd):
        each.update_many(steps)
    assert np.abs(model.weights - lstd.weights).max() < 0.7


def test_refusals_change_nothing() -> None:
    steps = random_steps(np.random.default_rng(0), 40)
    options: dict[str, Any] = {"step_size": 0.1, "beta": 0.1}
    for model in (
        ForgetfulLSTD(30, lambda_=0.5, memory_limit=8 * 100, **options),
        LinearDyna(30, memory_limit=8 * 100, **options),
    ):
        with pytest.raises(CapacityError, match="raise memory_limit"):
            model.update_many(steps)
        assert (model.n_updates, model.n_seen) == (0, 0)
        with pytest.raises(CapacityError, match="raise memory_limit"):
            model.start_from(np.ones(30))
    with pytest.raises(InvalidParameterError, match="planning_steps is 0"):
        LinearDyna(3, planning_steps=0, **options)
