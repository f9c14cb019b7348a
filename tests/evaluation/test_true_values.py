from __future__ import annotations

import importlib
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tests.domains import test_mountain_car, test_pendulum
from tlstd.core.arrays import FloatArray
from tlstd.domains.base import Domain, Step
from tlstd.domains.mountain_car import MountainCar
from tlstd.domains.pendulum import Pendulum
from tlstd.domains.policies import Deterministic, EpsilonGreedy
from tlstd.errors import InvalidInputError, InvalidParameterError
from tlstd.evaluation import rollout_values, true_values

CAR, PENDULUM = MountainCar(), Pendulum()


class Lottery(Domain):
    """Pays a uniform number at every step, for ever."""

    name = "Lottery"
    state_names = ("ticket",)
    gamma = 0.5
    noise_size = 1
    continuing = True

    def __init__(self) -> None:
        self.low, self.high = np.zeros(1), np.ones(1)
        self.reward_bound = 1.0
        self.action_bounds = (0.0, 0.0)

    def policy(self) -> Deterministic:
        return Deterministic(still)

    def _step(self, states: FloatArray, actions: FloatArray, noise: FloatArray) -> Step:
        return Step(states, noise[:, 0], np.zeros(len(states), dtype=np.bool_))

    def _start(self, noise: FloatArray) -> FloatArray:
        return np.zeros((len(noise), 1))


class Walk(Domain):
    """One to the left or to the right; ends at 0 with nothing and at 6 with 1."""

    name = "Walk"
    state_names = ("place",)
    gamma = 1.0

    def __init__(self) -> None:
        self.low, self.high = np.array([0.0]), np.array([6.0])
        self.reward_bound = 1.0
        self.actions = np.array([-1.0, 1.0])
        self.action_bounds = (-1.0, 1.0)

    def policy(self) -> EpsilonGreedy:
        return EpsilonGreedy(lambda states: np.ones(len(states)), [-1, 1], epsilon=1.0)

    def _step(self, states: FloatArray, actions: FloatArray, noise: FloatArray) -> Step:
        place = states[:, 0] + actions
        return Step(place[:, np.newaxis], (place == 6.0).astype(np.float64), (place == 0.0) | (place == 6.0))

    def _start(self, noise: FloatArray) -> FloatArray:
        return np.full((len(noise), 1), 3.0)


def still(states: FloatArray) -> FloatArray:
    return np.zeros(len(states))


def scalar_pendulum_value(state: tuple[float, float, float], gamma: float) -> float:
    """One rollout in plain floats; 20 successive steps near upright end it."""
    value, weight, (angle, velocity, held) = 0.0, 1.0, state
    for _ in range(3000):
        torque = float(test_pendulum.act(np.array([[angle, velocity, held]]))[0])
        angle, velocity, held, reward = test_pendulum.scalar_step(angle, velocity, held, torque)
        value += weight * reward
        weight *= gamma
        if held >= 20:
            return value
    raise AssertionError


class TestTrueValues:
    def test_of_cars_agree_with_plain_floats(self) -> None:
        states = np.vstack([CAR.grid(6), [[0.55, -0.07], [-1.2, 0.0]]])
        for gamma in (0.0, 0.9, 0.99, 1.0):
            expected = [test_mountain_car.scalar_value(x, v, gamma) for x, v in states.tolist()]
            assert_allclose(true_values(CAR, states, gamma=gamma), expected, rtol=1e-12)

    @pytest.mark.parametrize("gamma", [0.0, 0.9, 0.99, 1.0])
    def test_of_pendulums_agree_with_plain_floats(self, gamma: float) -> None:
        rng = np.random.default_rng(0)
        states = np.vstack([PENDULUM.grid(3), test_pendulum.random_states(5, rng)])
        expected = [scalar_pendulum_value((a, v, h), gamma) for a, v, h in states.tolist()]
        assert_allclose(true_values(PENDULUM, states, gamma=gamma), expected, rtol=1e-6)

    @pytest.mark.parametrize("domain", [CAR, PENDULUM], ids=lambda domain: domain.name)
    def test_satisfy_bellman_on_the_grid(self, domain: MountainCar | Pendulum) -> None:
        states = domain.grid()
        following, rewards, terminated = domain.step(states, domain.policy().act(states, np.zeros(len(states))))
        bootstrapped = np.where(terminated, 0.0, true_values(domain, following))
        assert_allclose(true_values(domain, states), rewards + 0.99 * bootstrapped, rtol=1e-9, atol=1e-9)

    def test_depend_on_how_long_it_was_held(self) -> None:
        up = -math.pi
        values = true_values(PENDULUM, [[up, 0.0, 0.0], [up, 0.0, 10.0], [up, 0.0, 19.0]])
        expected = [5.0 * (1.0 - 0.99**n) / 0.01 for n in (20, 10, 1)]
        assert_allclose(values, expected, rtol=1e-12)

    def test_do_not_end_where_episodes_are_truncated(self) -> None:
        capped = Pendulum(time_limit=0.5)
        assert capped.episode_cap == 10
        assert_array_equal(true_values(capped, PENDULUM.grid(4)), true_values(PENDULUM, PENDULUM.grid(4)))

    @pytest.mark.parametrize("tolerance", [1e-3, 1e-9])
    def test_cut_rollouts_are_within_the_tolerance(self, tolerance: float) -> None:
        value = true_values(CAR, [[-0.5, 0.0]], policy=still, gamma=0.95, tolerance=tolerance)
        assert 0.9 * tolerance < value[0] + 20.0 <= tolerance * (1 + 1e-9)  # not more steps than needed
        # hanging at rest without torque: −5 at every step
        value = true_values(PENDULUM, [[0.0, 0.0, 0.0]], policy=still, gamma=0.95, tolerance=tolerance)
        assert 0.9 * tolerance < value[0] + 100.0 <= tolerance * (1 + 1e-9)

    def test_at_a_tolerance_that_asks_for_nothing(self) -> None:
        assert_array_equal(true_values(CAR, [[-0.5, 0.0]], tolerance=1e9), [-1.0])

    def test_of_no_states(self) -> None:
        assert true_values(CAR, np.zeros((0, 2))).shape == (0,)

    def test_endless_rollouts_without_discount_are_refused(self) -> None:
        with pytest.raises(InvalidParameterError, match="gamma is 1 but 1 of 2 rollouts do not terminate within 10000"):
            true_values(CAR, [[-0.5, 0.0], [0.5, 0.0]], policy=still, gamma=1.0)

    def test_bad_arguments(self) -> None:
        state = [[0.0, 0.0]]
        with pytest.raises(InvalidParameterError, match=r"gamma is 1\.01"):
            true_values(CAR, state, gamma=1.01)
        with pytest.raises(InvalidParameterError, match=r"tolerance is 0\.0"):
            true_values(CAR, state, tolerance=0.0)
        with pytest.raises(InvalidInputError, match=r"states have shape \(2,\)"):
            true_values(CAR, state[0])
        with pytest.raises(InvalidInputError, match=r"actions contain 0\.5"):
            true_values(CAR, state, policy=lambda states: np.full(len(states), 0.5))
        with pytest.raises(InvalidParameterError, match="the policy is random: use rollout_values"):
            true_values(CAR, state, policy=EpsilonGreedy(CAR.policy(), [-1, 1], 0.1))
        with pytest.raises(InvalidParameterError, match="Lottery has random steps: use rollout_values"):
            true_values(Lottery(), [[0.0]])


class TestRolloutValues:
    def test_of_a_random_domain(self) -> None:
        gamma = 0.9
        estimate = rollout_values(
            Lottery(), [[0.0], [1.0]], n_rollouts=20_000, rng=np.random.default_rng(0), gamma=gamma, tolerance=1e-3
        )
        deviation = math.sqrt(1 / 12 / (1 - gamma**2))
        assert_allclose(estimate.standard_error, deviation / math.sqrt(20_000), rtol=0.03)
        assert np.all(np.abs(estimate.mean - 0.5 / (1 - gamma)) < 4.0 * estimate.standard_error)
        assert estimate.mean[0] != estimate.mean[1]
        assert 0.9e-3 < estimate.truncation_error <= 1e-3
        assert estimate.n_rollouts == 20_000

    def test_of_a_random_policy(self) -> None:
        places = np.arange(1.0, 6.0)
        estimate = rollout_values(Walk(), places[:, np.newaxis], n_rollouts=10_000, rng=np.random.default_rng(1))
        truth = places / 6.0
        assert np.all(np.abs(estimate.mean - truth) < 4.0 * estimate.standard_error)
        assert_allclose(estimate.standard_error, np.sqrt(truth * (1 - truth) / 10_000), rtol=0.05)  # 0 or 1
        assert estimate.truncation_error == 0.0

    def test_of_a_discounted_random_walk(self) -> None:
        step = np.eye(5, k=1) * 0.5 + np.eye(5, k=-1) * 0.5
        truth = np.linalg.solve(np.eye(5) - 0.8 * step, [0.0, 0.0, 0.0, 0.0, 0.5])
        places = np.arange(1.0, 6.0)[:, np.newaxis]
        estimate = rollout_values(Walk(), places, n_rollouts=10_000, rng=np.random.default_rng(2), gamma=0.8)
        assert np.all(np.abs(estimate.mean - truth) < 4.0 * estimate.standard_error)

    def test_where_nothing_is_random(self) -> None:
        states = PENDULUM.grid(4)
        estimate = rollout_values(PENDULUM, states, n_rollouts=3, rng=np.random.default_rng(0))
        assert_allclose(estimate.mean, true_values(PENDULUM, states), rtol=1e-12)
        assert_allclose(estimate.standard_error, 0.0, atol=1e-9)

    @pytest.mark.parametrize(("n_states", "n_rollouts"), [(1, 2), (1, 30), (3, 5), (7, 4), (10, 3)])
    def test_of_many_parts_are_those_of_the_whole(
        self, n_states: int, n_rollouts: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """At γ = 0 returns are the numbers drawn, at most 7 at a time."""
        monkeypatch.setattr(importlib.import_module("tlstd.evaluation.true_values"), "SIDE_BY_SIDE", 7)
        rng = np.random.default_rng(0)
        estimate = rollout_values(Lottery(), np.zeros((n_states, 1)), n_rollouts=n_rollouts, rng=rng, gamma=0.0)
        rng = np.random.default_rng(0)
        rows = []
        for size in [7] * (n_states // 7) + [n_states % 7] * (n_states % 7 > 0):
            parts, left = [], n_rollouts
            while left:
                n = min(7 // size, left)
                parts.append(rng.random((size, n)))
                left -= n
            rows.append(np.hstack(parts))
        returns = np.vstack(rows)
        assert_allclose(estimate.mean, returns.mean(axis=1), rtol=1e-13)
        assert_allclose(estimate.standard_error, returns.std(axis=1, ddof=1) / math.sqrt(n_rollouts), rtol=1e-12)

    def test_bad_arguments(self) -> None:
        rng = np.random.default_rng(0)
        with pytest.raises(InvalidParameterError, match="n_rollouts is 1: it must be an integer >= 2"):
            rollout_values(Lottery(), [[0.0]], n_rollouts=1, rng=rng)
        with pytest.raises(InvalidParameterError, match="gamma is 1 but Lottery never ends: use gamma < 1"):
            rollout_values(Lottery(), [[0.0]], n_rollouts=2, rng=rng, gamma=1.0)
