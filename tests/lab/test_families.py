"""The measurement of families of features: its true values are right, its logs are fixed, and it continues."""

from __future__ import annotations

import numpy as np
import pytest
from tlstd_lab.measurements.families.problems import COMPARISON, OTHER, PROBLEMS, problem

NEW = [name for name in PROBLEMS if not name.startswith(("energy", "walk", "boyan", "car", "pendulum"))]
"""All but those whose true values other tests have."""
QUICK = [name for name in PROBLEMS if name != "energy-calm" and not name.startswith("pushed")]
"""All but two whose true values take seconds."""
TRIED = 12


@pytest.mark.parametrize(
    "name", [*(pytest.param(name, marks=[pytest.mark.long] * (name not in QUICK)) for name in NEW), "car-other"]
)
def test_true_values_are_means_of_rollouts(name: str) -> None:
    made, rng = problem(name), np.random.default_rng(7)
    assert made.rollouts is not None
    returns = np.array([made.rollouts(rng) for _ in range(TRIED)])
    variances = returns.var(axis=0, ddof=1) / TRIED
    apart = made.truth - made.truth.mean()
    for weights in (np.full(len(apart), 1.0 / len(apart)), apart / (apart @ apart)):  # the mean and the slope
        error = np.sqrt(weights**2 @ variances)
        assert abs(weights @ (returns.mean(axis=0) - made.truth)) < 4.0 * error + 1e-6


@pytest.mark.parametrize("name", QUICK)
def test_logs_are_fixed_by_their_seeds(name: str) -> None:
    made = problem(name)
    first, again, other = (made.log(seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.rewards, again.rewards)
    np.testing.assert_array_equal(first.observations, again.observations)
    assert not np.array_equal(first.observations, other.observations)
    assert made.name == name
    assert made.states.shape == (len(made.truth), first.states.shape[1])
    assert made.rollouts is not None or made.group == COMPARISON


@pytest.mark.parametrize("name", [name for name in QUICK if name.endswith("-other")])
def test_target_policies_are_probabilities(name: str) -> None:
    made = problem(name)
    log = made.log(0)
    assert made.policy is not None
    assert made.group == OTHER
    assert log.actions is not None
    assert set(np.unique(log.actions)) == set(range(made.n_actions))
    chances = made.policy(log.states)
    assert chances.shape == (len(log), made.n_actions)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    assert (chances >= 0.0).all()
