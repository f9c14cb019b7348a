from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tlstd_lab.processes.garnet import garnet_off_policy

from tests.estimators.streams import STREAMS, assert_weights, learned_in_pieces
from tests.helpers import dense, pairwise, random_transitions
from tlstd.classic.td import TD
from tlstd.core.arrays import FloatArray
from tlstd.data.transitions import Transition, Transitions
from tlstd.errors import InvalidInputError
from tlstd.estimators.step_sizes import Decay
from tlstd.zoo.emphatic_td import EmphaticTD


def literal_emphatic_td(steps: Transitions, alphas: FloatArray, lambda_: float, interest: str) -> FloatArray:
    """Emphatic TD(λ) in dense NumPy, one line per equation; (d, m)."""
    W, z, F, rho_before = np.zeros((steps.n_features, steps.n_targets)), np.zeros(steps.n_features), 0.0, 0.0
    for t, alpha in zip(steps, alphas, strict=True):
        x, x_next = dense(t.x), dense(t.x_next)
        i = 1.0 if interest == "all" or t.trace_discount == 0.0 else 0.0
        F = rho_before * t.trace_discount * F + i
        M = lambda_ * i + (1.0 - lambda_) * F
        z = t.rho * (t.trace_discount * lambda_ * z + M * x)
        delta = t.reward + t.discount * (x_next @ W) - x @ W
        W, rho_before = W + alpha * np.outer(z, delta), t.rho
    return W


@pytest.mark.parametrize(("kind", "lambda_", "interest"), pairwise(STREAMS, (0.0, 0.5, 1.0), ("all", "starts")))
def test_it_is_the_algorithm(kind: str, lambda_: float, interest: str) -> None:
    steps = random_transitions(np.random.default_rng(2), n_features=12, n_steps=120, **STREAMS[kind])
    step_size = Decay(0.002, 50.0)
    expected = literal_emphatic_td(steps, step_size.values(1, len(steps)), lambda_, interest)
    options: dict[str, Any] = {
        "step_size": step_size,
        "lambda_": lambda_,
        "interest": interest,
        "n_targets": steps.n_targets,
    }
    for model in learned_in_pieces(partial(EmphaticTD, 12, **options), steps):
        assert_weights(model, expected)


def test_two_steps_by_hand() -> None:
    model = EmphaticTD(2, step_size=0.1, lambda_=0.5)
    model.update(Transition([1.0, 0.0], 2.0, [0.0, 1.0], discount=0.8, trace_discount=0.0, rho=3.0))
    assert_allclose(model.weights, [0.1 * 3.0 * 2.0, 0.0])  # F = M = 1
    model.update(Transition([0.0, 1.0], 1.0, [0.0, 0.0], discount=0.0, trace_discount=0.8))
    # F = 3 · 0.8 + 1 = 3.4, M = 0.5 + 0.5 · 3.4 = 2.2, z = (0.4 · 3, 2.2), δ = 1
    assert_allclose(model.weights, [0.6 + 0.12, 0.22])


def test_with_lambda_1_it_is_td() -> None:
    steps = random_transitions(np.random.default_rng(3), n_features=9, n_steps=200, off_policy=True)
    model, other = EmphaticTD(9, step_size=1e-3, lambda_=1.0), TD(9, step_size=1e-3, lambda_=1.0)
    model.update_many(steps)
    other.update_many(steps)
    assert_weights(model, other.weights)


def test_it_ends_at_the_emphatic_fixed_point() -> None:
    """A = Xᵀ M (I - γλP)⁻¹ (I - γP) X with M = diag(m), mᵀ = dᵀ (I - P_λ)⁻¹, P_λ = I - (I - γλP)⁻¹ (I - γP)."""
    process = garnet_off_policy(20, 3, 3, 6, np.random.default_rng(1), gamma=0.8)
    lambda_, eye = 0.5, np.eye(20)
    decayed = np.linalg.inv(eye - 0.8 * lambda_ * process.P)
    P_lambda = eye - decayed @ (eye - 0.8 * process.P)
    emphasis = np.linalg.solve((eye - P_lambda).T, process.state_distribution())
    A = process.X.T @ np.diag(emphasis) @ (eye - P_lambda) @ process.X
    b = process.X.T @ (emphasis * (decayed @ process.expected_rewards))
    solution = np.linalg.solve(A, b)
    model = EmphaticTD(6, step_size=Decay(0.01, 1_000.0), lambda_=lambda_)
    model.update_many(process.sample(200_000, np.random.default_rng(0)))
    away = np.abs(model.weights - solution).max()
    assert away < 0.05 * np.abs(solution).max()
    assert away < 0.5 * np.abs(model.weights - process.solution(lambda_)).max()


def test_a_follow_on_trace_out_of_bounds_is_refused() -> None:
    model = EmphaticTD(1, step_size=0.1, lambda_=0.0)
    step = Transition([1e-60], 1.0, [1e-60], discount=1.0, trace_discount=1.0, rho=1e40)
    for _ in range(3):
        model.update(step)
    before = model.weights
    with pytest.raises(InvalidInputError, match=r"follow-on trace would reach 1\.0e\+120"):
        model.update(step)
    assert model.n_updates == 3
    assert model.weights == before
