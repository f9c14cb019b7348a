"""The measurement of families of features: its true values are right, its logs are fixed, and it continues."""

from __future__ import annotations

import numpy as np
import pytest
from tlstd_lab.measurements.families.problems import COMPARISON, OTHER, PROBLEMS, problem
from tlstd_lab.measurements.families.rivals import fitted, following, realised, sweeps

from tlstd import Log
from tlstd.core.arrays import FloatArray

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


class Means:
    """A regression that knows the mean of each row of inputs."""

    def fit(self, X: FloatArray, y: FloatArray) -> None:
        self.rows, place = np.unique(X, axis=0, return_inverse=True)
        self.means = np.bincount(place.ravel(), y) / np.bincount(place.ravel())

    begin = fit

    def sweeps(self, gamma: float, from_returns: bool) -> int:
        return sweeps(gamma, from_returns)

    def predict(self, X: FloatArray) -> FloatArray:
        known = {row.tobytes(): mean for row, mean in zip(self.rows, self.means, strict=True)}
        return np.array([known.get(row.tobytes(), 0.0) for row in X])


@pytest.mark.parametrize("name", ["boyan", "rooms", "rooms-other"])
def test_fitted_values_are_right_where_the_regression_is_exact(name: str) -> None:
    made = problem(name)
    values = fitted(lambda seed: Means(), made, made.log(0), 0)(made.states)
    assert made.rmse(values) < 0.2 * made.truth.std()


def test_sweeps_settle() -> None:
    assert sweeps(0.8, True) == sweeps(0.8, False) == 21  # 0.8²¹ < 0.01
    assert (sweeps(0.95, True), sweeps(0.95, False), sweeps(1.0, True)) == (40, 90, 40)


def test_returns_and_next_observations_of_a_small_log() -> None:
    log = Log.from_arrays(
        [[0.0], [1.0], [2.0], [3.0]], [1.0, 2.0, 4.0, 8.0], terminated=[0, 1, 0, 0], truncated=[0, 0, 0, 1],
        next_observations=[[1.0], [9.0], [3.0], [7.0]],
    )  # fmt: skip
    returns, complete = realised(log, 0.5)
    assert returns[:2].tolist() == [2.0, 2.0]
    assert complete.tolist() == [True, True, False, False]
    after, known = following(log)
    assert after.ravel().tolist() == [1.0, 9.0, 3.0, 7.0]
    assert known.all()
