from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from tlstd.core.arrays import FloatArray
from tlstd.domains.mountain_car import MountainCar
from tlstd.errors import InvalidInputError, InvalidParameterError

CAR = MountainCar()


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
    states, rewards, ended = CAR.step([state], [action])
    assert_allclose(states, [next_state], atol=1e-12)
    assert_array_equal(rewards, [-1.0])
    assert_array_equal(ended, [terminated])


def test_steps_agree_with_plain_floats() -> None:
    rng = np.random.default_rng(0)
    states, actions = CAR.start(300, rng), rng.integers(-1, 2, 300)
    next_states, _, terminated = CAR.step(states, actions)
    for i, ((x, v), action) in enumerate(zip(states.tolist(), actions.tolist(), strict=True)):
        x_next, v_next, ended = scalar_step(x, v, action)
        assert_allclose(next_states[i], [x_next, v_next], rtol=0, atol=1e-15)
        assert terminated[i] == ended
    assert terminated.any()
    assert (next_states[:, 0] == -1.2).any()


def test_steps_are_those_of_gymnasium() -> None:
    import gymnasium
    from gymnasium.envs.classic_control.mountain_car import MountainCarEnv

    env = gymnasium.make("MountainCar-v0").unwrapped
    assert isinstance(env, MountainCarEnv)
    car = MountainCar(
        force=env.force,
        gravity=env.gravity,
        goal=env.goal_position,
        goal_velocity=env.goal_velocity,
        low=[env.min_position, -env.max_speed],
        high=[env.max_position, env.max_speed],
    )
    states = car.start(1000, np.random.default_rng(0))
    n_ended = n_walls = n_rolling_out = 0
    for action in (-1, 0, 1):
        next_states, rewards, terminated = car.step(states, np.full(1000, action))
        theirs, observations = np.empty((1000, 2)), np.empty((1000, 2))
        for i, state in enumerate(states.tolist()):
            env.state = tuple(state)
            observations[i], reward, ended, _, _ = env.step(action + 1)
            theirs[i] = env.state
            assert (rewards[i], terminated[i]) == (reward, ended)
            n_ended += ended
            n_walls += env.state[0] == env.min_position
            n_rolling_out += env.state[0] >= env.goal_position and not ended
        assert_allclose(next_states, theirs, rtol=0, atol=1e-16)  # its state is double
        assert_allclose(next_states, observations, rtol=1e-6)  # its observation is single
    assert min(n_ended, n_walls, n_rolling_out) > 20  # all of it happened


def test_the_goal_velocity() -> None:
    car = MountainCar(goal_velocity=0.0)
    rolling_out, arriving, leaving = [0.6, -0.07], [0.45, 0.07], [0.52, -0.07]
    assert_array_equal(car.step([rolling_out, arriving, leaving], [0, 0, 0]).terminated, [False, True, False])
    assert_array_equal(CAR.step([rolling_out, arriving, leaving], [0, 0, 0]).terminated, [True, True, True])


def test_parameters() -> None:
    car = MountainCar(force=0.002, gravity=0.003, goal=1.0, low=[-2.0, -0.1], high=[1.5, 0.2])
    expected = [0.95 + 0.2, 0.2]
    assert_allclose(car.step([[0.95, 0.2]], [1]).states, [expected])
    assert_allclose(car.step([[0.0, 0.0]], [-1]).states, [[-0.005, -0.005]])
    assert_array_equal(car.step([[0.79, 0.2], [0.81, 0.2]], [1, 1]).terminated, [False, True])
    assert_allclose(car.grid(1), [[-0.5, 0.05]])
    with pytest.raises(ValueError, match="read-only"):
        car.low[0] = 0.0


def test_starts_fill_the_box() -> None:
    states = CAR.start(10_000, np.random.default_rng(0))
    assert_allclose(states.min(axis=0), [-1.2, -0.07], atol=1e-3)
    assert_allclose(states.max(axis=0), [0.6, 0.07], atol=1e-3)
    half_range = np.array([0.9, 0.07])
    assert np.all(np.abs(states.mean(axis=0) - [-0.3, 0.0]) < 4.0 * half_range / np.sqrt(3 * 10_000))
    assert_array_equal(CAR.start(10, np.random.default_rng(0)), states[:10])


def test_grid() -> None:
    states = CAR.grid(20)
    assert states.shape == (400, 2)
    assert_allclose(states[0], [-1.2 + 1.7 / 40, -0.07 + 0.14 / 40], rtol=1e-14)
    assert_allclose(states[1] - states[0], [0.0, 0.14 / 20], atol=1e-15)
    assert_allclose(states[20] - states[0], [1.7 / 20, 0.0], atol=1e-15)
    assert_allclose(states[-1], [0.5 - 1.7 / 40, 0.07 - 0.14 / 40], rtol=1e-14)


def test_policy() -> None:
    policy = CAR.policy()
    states = np.array([[-0.5, 0.01], [0.2, 0.0], [-0.5, -0.01]])
    assert not policy.is_random
    assert_array_equal(policy.act(states, np.zeros(3)), [1.0, 1.0, -1.0])
    assert_array_equal(policy.probability(states, np.array([1.0, -1.0, -1.0])), [1.0, 0.0, 1.0])


def test_pictures_differ_with_the_state() -> None:
    pictures = [CAR.draw(np.array(state)) for state in ((-0.5, 0.0), (-0.5, 0.05), (-0.9, 0.0), (0.6, 0.07))]
    for picture in pictures:
        assert picture.shape == (380, 600, 3)
        assert picture.dtype == np.uint8
    changed = [(np.any(picture != pictures[0], axis=2)).mean() for picture in pictures[1:]]
    assert all(0.0005 < share < 0.05 for share in changed)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"force": 0.0}, "force is 0"),
        ({"gravity": math.inf}, "gravity is inf"),
        ({"goal": 0.7}, r"goal is 0\.7: it must lie in \(-1\.2, 0\.6\]"),
        ({"goal_velocity": 0.08}, r"goal_velocity is 0\.08: it must lie in \[-inf, 0\.07\]"),
        ({"low": [0.0]}, "pass finite position and velocity"),
        ({"high": [0.6, -0.07]}, "low must be below high"),
    ],
)
def test_bad_parameters(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameterError, match=message):
        MountainCar(**parameters)


def test_bad_arguments() -> None:
    with pytest.raises(InvalidInputError, match=r"states have shape \(2,\): pass \(N, 2\), position, velocity"):
        CAR.step([0.0, 0.0], [1])
    for states in ([[0.0, 0.0], [0.0]], "ab", [["a", "b"]], [[None, 0.0]]):
        with pytest.raises(InvalidInputError, match="states"):
            CAR.step(states, [1])  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="states contain nan"):
        CAR.step([[0.0, np.nan]], [1])
    with pytest.raises(InvalidInputError, match=r"actions have shape \(2,\)"):
        CAR.step([[0.0, 0.0]], [1, 1])
    with pytest.raises(InvalidInputError, match=r"actions contain 2\.0"):
        CAR.step([[0.0, 0.0]], [2])
    with pytest.raises(InvalidParameterError, match="n is 0"):
        CAR.grid(0)
