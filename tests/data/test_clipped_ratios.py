"""V-trace's clipped ratios, for any estimator: ``Transitions.clip_ratios``."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tlstd_lab.processes.garnet import garnet_off_policy

from tests.helpers import dense, random_transitions
from tlstd.classic.lstd import LSTD
from tlstd.classic.td import TD
from tlstd.core.arrays import FloatArray
from tlstd.data.transitions import Transitions
from tlstd.errors import InvalidInputError
from tlstd.krylov.krylov_lstd import KrylovLSTD


def literal_v_trace(steps: Transitions, alpha: float, lambda_: float, rho: float, c: float) -> FloatArray:
    """Online V-trace with λ: e ← γ_t λ min(c̄, ρ_{t-1}) e + x_t, w ← w + α min(ρ̄, ρ_t) δ_t e."""
    w, e, before = np.zeros(steps.n_features), np.zeros(steps.n_features), 1.0
    for t in steps:
        x, x_next = dense(t.x), dense(t.x_next)
        e = t.trace_discount * lambda_ * min(c, before) * e + x
        delta = t.reward + t.discount * (x_next @ w) - x @ w
        w, before = w + alpha * min(rho, t.rho) * delta * e, t.rho
    return w


@pytest.mark.parametrize(("rho", "c"), [(1.0, 1.0), (1.2, 0.7), (np.inf, 1.0), (0.5, 0.1), (np.inf, np.inf)])
def test_td_with_clipped_ratios_is_v_trace(rho: float, c: float) -> None:
    steps = random_transitions(np.random.default_rng(1), n_features=10, n_steps=200, off_policy=True, density=0.4)
    model = TD(10, step_size=0.02, lambda_=0.8)
    model.update_many(steps.clip_ratios(rho, c))
    expected = literal_v_trace(steps, 0.02, 0.8, rho, c)
    assert_allclose(model.weights, expected, atol=1e-12 * np.abs(expected).max())
    pieces = TD(10, step_size=0.02, lambda_=0.8)
    pieces.update_many(steps[:77].clip_ratios(rho, c))
    pieces.update_many(steps[77:].clip_ratios(rho, c, before=steps.rhos[76]))
    assert_allclose(pieces.weights, expected, atol=1e-12 * np.abs(expected).max())


def test_least_squares_end_at_the_clipped_solution() -> None:
    """A = Xᵀ D (I - γλC)⁻¹ (R - γ P_ρ) X: C, P_ρ and R = diag(P_ρ 1) average over the behaviour's actions, clipped."""
    process, gamma, lambda_, rho, c = (
        garnet_off_policy(12, 3, 3, 5, np.random.default_rng(2), gamma=0.9),
        0.9,
        0.7,
        1.5,
        0.8,
    )
    ratios = process.target / process.behaviour
    weigh = [process.behaviour * np.minimum(ratios, limit) for limit in (rho, c)]
    P_rho, C = (np.einsum("sa,sat->st", shares, process._action_P) for shares in weigh)
    rewards = (weigh[0] * process._action_rewards).sum(axis=1)
    before = process.X.T @ np.diag(process.state_distribution()) @ np.linalg.inv(np.eye(12) - gamma * lambda_ * C)
    A, b = before @ (np.diag(weigh[0].sum(axis=1)) - gamma * P_rho) @ process.X, before @ rewards
    solution = np.linalg.solve(A, b)
    steps = process.sample(400_000, np.random.default_rng(0))
    clipped = LSTD(5, lambda_=lambda_)
    clipped.update_many(steps.clip_ratios(rho, c))
    size = np.abs(solution).max()
    assert np.abs(clipped.weights - solution).max() < 0.03 * size
    assert np.abs(process.solution(lambda_) - solution).max() > 0.1 * size  # clipping changes it
    krylov = KrylovLSTD(5, lambda_=lambda_, dimension=5)
    krylov.update_many(steps[:20_000].clip_ratios(rho, c))
    same = LSTD(5, lambda_=lambda_)
    same.update_many(steps[:20_000].clip_ratios(rho, c))
    assert_allclose(krylov.weights, same.weights, atol=1e-6 * size)


def test_with_features_of_all_states_it_is_the_value_of_the_policy_in_between() -> None:
    process = garnet_off_policy(6, 3, 3, 6, np.random.default_rng(3), gamma=0.8)
    between = np.minimum(process.target, 0.9 * process.behaviour)
    between /= between.sum(axis=1, keepdims=True)
    P = np.einsum("sa,sat->st", between, process._action_P)
    values = np.linalg.solve(np.eye(6) - 0.8 * P, (between * process._action_rewards).sum(axis=1))
    for trace in (None, 0.4):
        model = LSTD(6, lambda_=0.5)
        model.update_many(process.sample(200_000, np.random.default_rng(0)).clip_ratios(0.9, trace))
        assert np.abs(process.X @ model.weights - values).max() < 0.03 * np.abs(values).max()


def test_columns_and_what_is_refused() -> None:
    steps = random_transitions(np.random.default_rng(1), n_features=3, n_steps=50, off_policy=True)
    same = steps.clip_ratios(1.0)
    assert same.trace_discounts is not None
    assert_array_equal(same.trace_discounts, steps.trace_discounts)
    assert same.store is steps.store
    assert steps.rhos.max() > 1.0 >= same.rhos.max()  # the steps themselves are as they were
    assert len(steps[:0].clip_ratios(1.0, 0.5)) == 0
    for arguments in ((0.0, None), (np.nan, None), (1.0, 2.0), (1.0, 0.0), (1.0, np.nan)):
        with pytest.raises(InvalidInputError, match="clip"):
            steps.clip_ratios(*arguments)
