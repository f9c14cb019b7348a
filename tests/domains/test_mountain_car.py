from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from tlstd.domains import mountain_car
from tlstd.errors import InvalidInputError, InvalidParameterError
from tlstd.types import FloatArray


class Affine:
    """1, position, velocity; counts the states it encodes."""

    n_features = 3
    n_encoded = 0

    def encode_many(self, states: FloatArray, /) -> FloatArray:
        self.n_encoded += len(states)
        return np.column_stack([np.ones(len(states)), states])


def still(states: FloatArray) -> NDArray[np.int64]:
    """Never pushes, so that a car in the valley never gets out."""
    return np.zeros(len(states), dtype=np.int64)


def scalar_step(x: float, v: float, a: int) -> tuple[float, float, bool]:
    """The dynamics once more, one car and plain floats."""
    at_goal = x >= 0.5
    v = min(max(v + a * 0.001 - 0.0025 * math.cos(3 * x), -0.07), 0.07)
    x = min(max(x + v, -1.2), 0.6)
    if x == -1.2:
        v = 0.0
    return x, v, at_goal or x >= 0.5


def scalar_value(x: float, v: float, gamma: float) -> float:
    value, weight, done = 0.0, 1.0, False
    while not done:
        x, v, done = scalar_step(x, v, 1 if v >= 0 else -1)
        value -= weight
        weight *= gamma
    return value


@pytest.mark.parametrize(
    ("state", "action", "next_state", "terminated"),
    [
        ((-0.5, 0.0), 1, (-0.499176843004, 0.000823156996), False),  # 0.001 − 0.0025 · 0.0707372017
        ((-0.5, 0.0), 0, (-0.500176843004, -0.000176843004), False),
        ((-0.5, 0.0), -1, (-0.501176843004, -0.001176843004), False),
        ((-0.9, 0.07), 1, (-0.83, 0.07), False),  # velocity clipped
        ((-1.19, -0.07), -1, (-1.2, 0.0), False),  # the left wall stops the car
        ((0.45, 0.07), 1, (0.52, 0.07), True),  # reaches the goal
        ((0.59, 0.07), 1, (0.6, 0.07), True),  # position clipped
        ((0.55, -0.07), -1, (0.48, -0.07), True),  # starts beyond the goal: one step, though it rolls out
    ],
)
def test_steps(state: tuple[float, float], action: int, next_state: tuple[float, float], terminated: bool) -> None:
    states, rewards, ended = mountain_car.step([state], [action])
    assert_allclose(states, [next_state], atol=1e-12)
    assert_array_equal(rewards, [-1.0])
    assert_array_equal(ended, [terminated])


def test_steps_agree_with_plain_floats() -> None:
    rng = np.random.default_rng(0)
    states, actions = mountain_car.random_states(300, rng), rng.integers(-1, 2, 300)
    next_states, _, terminated = mountain_car.step(states, actions)
    for i, ((x, v), action) in enumerate(zip(states.tolist(), actions.tolist(), strict=True)):
        x_next, v_next, ended = scalar_step(x, v, action)
        assert_allclose(next_states[i], [x_next, v_next], rtol=0, atol=1e-15)
        assert terminated[i] == ended
    assert terminated.any()
    assert (next_states[:, 0] == -1.2).any()


def test_random_states_fill_the_box() -> None:
    states = mountain_car.random_states(10_000, np.random.default_rng(0))
    assert_allclose(states.min(axis=0), [-1.2, -0.07], atol=1e-3)
    assert_allclose(states.max(axis=0), [0.6, 0.07], atol=1e-3)
    half_range = np.array([0.9, 0.07])
    assert np.all(np.abs(states.mean(axis=0) - [-0.3, 0.0]) < 4.0 * half_range / np.sqrt(3 * 10_000))
    assert_array_equal(mountain_car.random_states(10, np.random.default_rng(0)), states[:10])


def test_grid() -> None:
    states = mountain_car.grid(20)
    assert states.shape == (400, 2)
    assert_allclose(states[0], [-1.2 + 1.7 / 40, -0.07 + 0.14 / 40], rtol=1e-14)
    assert_allclose(states[1] - states[0], [0.0, 0.14 / 20], atol=1e-15)
    assert_allclose(states[20] - states[0], [1.7 / 20, 0.0], atol=1e-15)
    assert_allclose(states[-1], [0.5 - 1.7 / 40, 0.07 - 0.14 / 40], rtol=1e-14)


class TestTrueValues:
    def test_agree_with_a_scalar_loop(self) -> None:
        states = np.vstack([mountain_car.grid(6), [[0.55, -0.07], [-1.2, 0.0]]])
        for gamma in (0.0, 0.9, 0.99, 1.0):
            expected = [scalar_value(x, v, gamma) for x, v in states.tolist()]
            assert_allclose(mountain_car.true_values(states, gamma), expected, rtol=1e-12)

    def test_satisfy_bellman_on_the_grid(self) -> None:
        states = mountain_car.grid()
        next_states, rewards, terminated = mountain_car.step(states, mountain_car.energy_pumping(states))
        bootstrapped = np.where(terminated, 0.0, mountain_car.true_values(next_states))
        assert_allclose(mountain_car.true_values(states), rewards + 0.99 * bootstrapped, rtol=1e-12)

    def test_endless_rollouts_are_cut_within_the_tolerance(self) -> None:
        for tolerance in (1e-3, 1e-9):
            value = mountain_car.true_values([[-0.5, 0.0]], 0.95, policy=still, tolerance=tolerance)
            assert 0.0 < value[0] + 20.0 <= tolerance

    def test_endless_rollouts_without_discount_are_refused(self) -> None:
        with pytest.raises(
            InvalidParameterError, match="gamma is 1 but the policy does not reach the goal from 1 of 2"
        ):
            mountain_car.true_values([[-0.5, 0.0], [0.5, 0.0]], 1.0, policy=still)


class TestRecord:
    @pytest.mark.parametrize("episode_cap", [None, 30])
    @pytest.mark.parametrize("n_steps", [1, 2, 50, 3000])
    def test_stream_is_that_of_single_steps(self, n_steps: int, episode_cap: int | None) -> None:
        features = Affine()
        stream = mountain_car.record(n_steps, features, np.random.default_rng(0), gamma=0.9, episode_cap=episode_cap)
        assert len(stream) == n_steps
        starts = iter(mountain_car.random_states(n_steps, np.random.default_rng(0)))
        length, n_episodes = 0, 0
        state = np.empty(2)
        for t, transition in enumerate(stream):
            if length == 0:
                state = next(starts)
                n_episodes += 1
            assert_array_equal(transition.x, [1.0, *state])
            following, reward, terminated = mountain_car.step(state[None], mountain_car.energy_pumping(state[None]))
            assert_array_equal(transition.x_next, [1.0, *following[0]])
            assert transition.reward == reward[0] == -1.0
            assert transition.discount == (0.0 if terminated[0] else 0.9)
            assert transition.trace_discount == (0.0 if length == 0 else 0.9)
            state = following[0]
            length = 0 if terminated[0] or length + 1 == episode_cap else length + 1
            assert t < n_steps
        # every state encoded and stored once
        assert features.n_encoded == stream.store.shape[0] == n_steps + n_episodes
        assert stream.next_store is stream.store

    def test_trajectory_flags(self) -> None:
        path = mountain_car.trajectory(3000, np.random.default_rng(0), episode_cap=30)
        ends = np.flatnonzero(path.terminated | path.truncated)
        lengths = np.diff(ends, prepend=-1)
        assert lengths.max() == 30
        assert not (path.terminated & path.truncated).any()
        assert_array_equal(lengths[path.truncated[ends]][:-1], 30)
        assert ends[-1] == 2999
        assert path.truncated.sum() > 20
        assert_array_equal(path.terminated, (path.states[path.rows + 1, 0] >= 0.5) | (path.states[path.rows, 0] >= 0.5))

    def test_a_longer_stream_begins_with_the_shorter(self) -> None:
        short = mountain_car.trajectory(700, np.random.default_rng(3))
        long = mountain_car.trajectory(5000, np.random.default_rng(3))
        assert_array_equal(short.states[short.rows], long.states[long.rows[:700]])
        assert_array_equal(short.terminated, long.terminated[:700])

    def test_a_policy_that_never_arrives_fills_the_stream(self) -> None:
        def cautious(states: FloatArray) -> NDArray[np.int64]:
            return -mountain_car.energy_pumping(states)

        path = mountain_car.trajectory(5000, np.random.default_rng(0), policy=cautious)
        assert path.truncated.sum() == 1
        assert len(path.rows) == 5000


def test_bad_arguments() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(InvalidInputError, match=r"states have shape \(2,\)"):
        mountain_car.step([0.0, 0.0], [1])
    with pytest.raises(InvalidInputError, match="states contain nan"):
        mountain_car.step([[0.0, np.nan]], [1])
    with pytest.raises(InvalidInputError, match=r"actions have shape \(2,\)"):
        mountain_car.step([[0.0, 0.0]], [1, 1])
    with pytest.raises(InvalidInputError, match=r"actions contain 2\.0"):
        mountain_car.step([[0.0, 0.0]], [2])
    with pytest.raises(InvalidParameterError, match=r"gamma is 1\.01"):
        mountain_car.true_values([[0.0, 0.0]], 1.01)
    with pytest.raises(InvalidParameterError, match=r"tolerance is 0\.0"):
        mountain_car.true_values([[0.0, 0.0]], tolerance=0.0)
    with pytest.raises(InvalidParameterError, match="n is 0"):
        mountain_car.grid(0)
    with pytest.raises(InvalidParameterError, match="n_steps is 0"):
        mountain_car.record(0, Affine(), rng)
    with pytest.raises(InvalidParameterError, match="episode_cap is 0"):
        mountain_car.record(5, Affine(), rng, episode_cap=0)
    with pytest.raises(InvalidParameterError, match=r"gamma is -0\.1"):
        mountain_car.record(5, Affine(), rng, gamma=-0.1)


def test_features_of_the_wrong_shape() -> None:
    class Wrong(Affine):
        n_features = 4

    with pytest.raises(InvalidInputError, match=r"encode_many returned shape \(\d+, 3\) .* n_features=4"):
        mountain_car.record(5, Wrong(), np.random.default_rng(0))
