"""Importance sampling, on episodes computed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tlstd import Transitions
from tlstd.evaluation.importance import effective_episodes, per_decision, starts_of
from tlstd.evaluation.policies import fitted_probabilities


def two_episodes(rhos: list[float], ended: bool = True) -> Transitions:
    """Steps 0, 1 of one episode and step 2 of another; rewards 1, 2, 4; γ = ½."""
    return Transitions.from_rows(
        np.eye(3),
        [0, 1, 0],
        [1.0, 2.0, 4.0],
        [1, 2, 2],
        discounts=[0.5, 0.0, 0.0 if ended else 0.5],
        trace_discounts=[0.0, 0.5, 0.0],
        rhos=rhos,
    )


def test_per_decision_by_hand() -> None:
    steps = two_episodes([2.0, 0.5, 1.0])
    starts = starts_of(steps, np.array([0]))
    assert starts.tolist() == [0, 2]
    plain, weighted = per_decision(steps, starts, np.zeros(3))
    assert plain == pytest.approx(((2.0 * 1.0 + 0.5 * 1.0 * 2.0) + 4.0) / 2)
    # at time 0 the weights are 2 and 1; at time 1 they are 1 and, of the episode that has ended, 1
    assert weighted == pytest.approx((2.0 * 1.0 + 1.0 * 4.0) / 3.0 + 0.5 * 1.0 * 2.0 / 2.0)


def test_effective_episodes_by_hand() -> None:
    """Weights ρ_0 + γ ρ_0 ρ_1 = 2 + ½ and 1 of the two episodes."""
    steps = two_episodes([2.0, 0.5, 1.0])
    assert effective_episodes(steps, np.array([0, 2])) == pytest.approx(3.5**2 / (2.5**2 + 1.0))
    assert effective_episodes(two_episodes([0.0, 1.0, 0.0]), np.array([0, 2])) == 0.0


def test_cut_off_episodes_have_the_tail_of_a_model() -> None:
    steps = two_episodes([1.0, 1.0, 1.0], ended=False)
    plain, weighted = per_decision(steps, np.array([0, 2]), np.array([0.0, 0.0, 8.0]))
    assert plain == pytest.approx(((1.0 + 0.5 * 2.0) + (4.0 + 0.5 * 8.0)) / 2)
    assert weighted == pytest.approx(plain)


def test_behaviour_is_found_by_regression() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal(4_000), np.ones(4_000)])
    chance = 1.0 / (1.0 + np.exp(-(2.0 * X[:, 0] - 1.0)))
    actions = (rng.random(4_000) < chance).astype(int)
    found = fitted_probabilities(X, actions, 2)
    assert np.abs(found - np.where(actions == 1, chance, 1.0 - chance)).mean() < 0.02


def test_behaviour_is_found_where_features_are_large() -> None:
    """Their exponentials are beyond all floats."""
    X = np.array([[1e4], [-1e4]] * 50)
    actions = np.array([0, 1] * 50)
    assert fitted_probabilities(X, actions, 2) == pytest.approx(1.0)
