from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest
import scipy.integrate
from numpy.testing import assert_allclose, assert_array_equal

from tlstd.core.arrays import FloatArray
from tlstd.domains.pendulum import Pendulum
from tlstd.errors import InvalidInputError, InvalidParameterError

PENDULUM = Pendulum()
POLICY = PENDULUM.policy()


def scalar_step(angle: float, velocity: float, held: float, torque: float) -> tuple[float, float, float, float]:
    """The dynamics once more, one pendulum and plain floats, the angle turned back after every move."""
    reward = 0.0
    for _ in range(5):
        velocity += 0.01 * (torque - 0.2 * velocity - 9.8 * math.sin(angle))
        velocity = min(max(velocity, -3 * math.pi), 3 * math.pi)
        angle += 0.01 * velocity
        if angle >= math.pi:
            angle -= 2 * math.pi
        elif angle < -math.pi:
            angle += 2 * math.pi
        reward -= math.cos(angle)
    upright = angle >= 7 / 8 * math.pi or angle <= -7 / 8 * math.pi
    return angle, velocity, held + 1 if upright else 0.0, reward


def random_states(n: int, rng: np.random.Generator) -> FloatArray:
    """Uniform over the box, held for up to 19 steps."""
    return np.column_stack([rng.uniform(PENDULUM.low, PENDULUM.high, (n, 2)), rng.integers(0, 20, n)])


def act(states: FloatArray) -> FloatArray:
    return POLICY.act(states, np.zeros(len(states)))


class TestDynamics:
    def test_agree_with_plain_floats(self) -> None:
        rng = np.random.default_rng(0)
        states, torques = random_states(1000, rng), rng.uniform(-2.0, 2.0, 1000)
        step = PENDULUM.step(states, torques)
        expected = np.array([scalar_step(*row) for row in np.column_stack([states, torques]).tolist()])
        assert_allclose(step.states, expected[:, :3], rtol=0, atol=1e-13)
        assert_allclose(step.rewards, expected[:, 3], rtol=0, atol=1e-13)
        assert_array_equal(step.terminated, expected[:, 2] >= 20)
        # all of it happened: turning over, running into the bound of the velocity, ending
        assert (np.abs(step.states[:, 0] - states[:, 0]) > math.pi).any()
        assert (np.abs(step.states[:, 1]) == 3 * math.pi).any()
        assert step.terminated.any()

    @pytest.mark.parametrize("torque", [-2.0, 0.7])
    def test_converge_to_the_differential_equation(self, torque: float) -> None:
        mass, length, gravity, damping = 0.7, 1.3, 9.0, 0.4
        start = np.array([0.8, -1.5])

        def derivative(_: float, y: FloatArray) -> list[float]:
            push = torque - damping * y[1] - mass * gravity * length * math.sin(y[0])
            return [y[1], push / (mass * length**2)]

        exact = scipy.integrate.solve_ivp(derivative, (0.0, 0.5), start, rtol=1e-12, atol=1e-13).y[:, -1]
        errors = []
        for substeps in (50, 500, 5000):
            domain = Pendulum(
                mass=mass,
                length=length,
                gravity=gravity,
                damping=damping,
                time_step=0.5 / substeps,
                substeps=substeps,
            )
            after = domain.step([[*start, 0.0]], [torque]).states[0, :2]
            errors.append(float(np.abs(after - exact).max()))
        assert_allclose(np.divide(errors[1:], errors[:-1]), 0.1, rtol=0.05)  # first order
        assert errors[-1] < 1e-3

    def test_without_damping_and_torque_energy_stays(self) -> None:
        starts = np.array([[0.5, 0.0, 0.0], [2.0, 1.0, 0.0], [-3.0, 4.0, 0.0]])
        drifts = []
        for time_step in (1e-2, 1e-3):
            domain = Pendulum(damping=0.0, time_step=time_step, substeps=round(0.05 / time_step))
            states = starts
            drift = 0.0
            for _ in range(200):  # 10 s
                states = domain.step(states, np.zeros(3)).states
                drift = max(drift, float(np.abs(domain.energy(states) - domain.energy(starts)).max()))
            drifts.append(drift)
        assert drifts[1] < 0.05
        assert_allclose(drifts[1] / drifts[0], 0.1, rtol=0.2)

    def test_damping_takes_energy(self) -> None:
        states = np.array([[2.0, 1.0, 0.0]])
        for _ in range(2000):
            states = PENDULUM.step(states, [0.0]).states
        assert_allclose(states, 0.0, atol=1e-3)

    def test_a_second_upright_ends_the_episode(self) -> None:
        states = np.array([[-math.pi, 0.0, 0.0]])
        for n in range(1, 21):
            states, rewards, terminated = PENDULUM.step(states, act(states))
            assert_array_equal(states[:, 2], [n])
            assert_allclose(rewards, [5.0])
            assert terminated[0] == (n == 20)

    def test_falling_out_of_the_range_starts_the_count_anew(self) -> None:
        edge = math.pi - math.pi / 8
        states = [[edge + 0.01, -1.0, 15.0], [-edge - 0.01, 1.0, 15.0], [edge - 0.01, 1.0, 15.0]]
        assert_array_equal(PENDULUM.step(states, np.zeros(3)).states[:, 2], [0.0, 0.0, 16.0])

    def test_angles_are_turned_back(self) -> None:
        turns = np.array([[0.3 + 2 * math.pi * k, 0.2, 0.0] for k in (-3, -1, 0, 1, 5)])
        step = PENDULUM.step(turns, np.zeros(5))
        assert_allclose(step.states, np.broadcast_to(step.states[2], (5, 3)), rtol=1e-13)
        # within rounding of upright, on both sides: never π itself, and not below −π
        near = math.pi + np.linspace(-40, 40, 401) * 1e-16
        states = np.column_stack([np.concatenate([near, -near]), np.zeros((802, 2))])
        angles = PENDULUM.step(states, np.zeros(802)).states[:, 0]
        assert angles.min() >= -math.pi
        assert angles.max() < math.pi
        assert_allclose(np.abs(angles), math.pi, rtol=1e-14)


class TestPolicy:
    def test_regulator(self) -> None:
        K, S = PENDULUM.regulator()
        assert_allclose(K, [21.885, 9.486], atol=5e-4)  # the older code's
        s12 = 9.8 + math.sqrt(9.8**2 + 50)  # the Riccati equation, entry by entry
        s22 = -0.2 + math.sqrt(0.2**2 + 50 + 2 * s12)
        s11 = s12 * s22 + 0.2 * s12 - 9.8 * s22
        assert_allclose(S, [[s11, s12], [s12, s22]], rtol=1e-10)
        assert_allclose(K, S[1], rtol=1e-12)

    def test_torques(self) -> None:
        states = [
            (0.5, 0.001, 0.0),  # pumps: −20 · 0.001 · (−9.8 cos 0.5 − 9.8)
            (0.5, -0.001, 0.0),
            (0.5, 1.0, 0.0),  # too much for the motor
            (1.0, 9.0, 0.0),  # too fast: brakes
            (3.1, 0.05, 0.0),  # balances: 21.8847 · 0.041593 − 9.48553 · 0.05
            (-3.1, -0.05, 7.0),
            (0.0, 0.0, 0.0),  # at rest hanging down
        ]
        expected = [0.368006, -0.368006, 2.0, -2.0, 0.435968, -0.435968, 2.0]
        assert_allclose(act(np.array(states)), expected, atol=2e-6)

    def test_swings_up_within_ten_seconds(self) -> None:
        states = PENDULUM.start(1000, np.random.default_rng(0))
        states[0] = 0.0  # exactly at rest, hanging down
        ended = np.zeros(1000, dtype=np.int64)
        for n in range(1, 201):
            states, _, terminated = PENDULUM.step(states, act(states))
            ended[(ended == 0) & terminated] = n
        assert PENDULUM.episode_cap == 200
        assert ended.min() == 20
        assert ended.max() <= 200

    def test_stays_up_if_the_episode_goes_on(self) -> None:
        domain = Pendulum(hold_time=math.inf)
        states = domain.start(1000, np.random.default_rng(0))
        for _ in range(240):  # 12 s
            states, _, terminated = domain.step(states, act(states))
            assert not terminated.any()
        held = states[:, 2].copy()
        assert held.min() > 0
        for _ in range(400):
            states, _, _ = domain.step(states, act(states))
        assert_array_equal(states[:, 2], held + 400)
        assert_allclose(np.abs(states[:, 0]), math.pi, atol=1e-9)
        assert_allclose(states[:, 1], 0.0, atol=1e-9)

    def test_can_be_sent_to_another_process(self) -> None:
        policy = pickle.loads(pickle.dumps(POLICY))
        states = random_states(20, np.random.default_rng(0))
        assert_array_equal(policy.act(states, np.zeros(20)), act(states))


@pytest.mark.parametrize("n", [1, 2, 3, 7, 16, 33])
def test_steps_do_not_depend_on_their_company(n: int) -> None:
    states = random_states(200, np.random.default_rng(0))
    together = PENDULUM.step(states, act(states))
    for first in range(0, 200, n):
        part = states[first : first + n]
        for alone, whole in zip(PENDULUM.step(part, act(part)), together, strict=True):
            assert_array_equal(alone, whole[first : first + n])


def test_starts_hang_anywhere_at_rest() -> None:
    states = PENDULUM.start(10_000, np.random.default_rng(0))
    assert_array_equal(states[:, 1:], 0.0)
    assert states[:, 0].min() >= -math.pi
    assert states[:, 0].max() < math.pi
    assert np.abs(states[:, 0].mean()) < 4.0 * math.pi / math.sqrt(3 * 10_000)
    assert_allclose(states[:, 0].std(), math.pi / math.sqrt(3), rtol=0.02)
    assert_array_equal(PENDULUM.start(10, np.random.default_rng(0)), states[:10])


def test_features_see_angle_and_velocity() -> None:
    states = random_states(5, np.random.default_rng(0))
    assert_array_equal(PENDULUM.observe(states), states[:, :2])
    assert_allclose(PENDULUM.low, [-math.pi, -3 * math.pi])
    assert_allclose(PENDULUM.high, [math.pi, 3 * math.pi])


def test_grid() -> None:
    states = PENDULUM.grid(20)
    assert states.shape == (400, 3)
    assert_array_equal(states[:, 2], 0.0)
    assert_allclose(states[0, :2], [-math.pi * 19 / 20, -3 * math.pi * 19 / 20])
    assert_allclose(states[1] - states[0], [0.0, 6 * math.pi / 20, 0.0], atol=1e-14)
    assert_allclose(states[20] - states[0], [2 * math.pi / 20, 0.0, 0.0], atol=1e-14)
    assert_allclose(states[-1], -states[0])


def test_times_are_counted_in_control_steps() -> None:
    domain = Pendulum(time_step=0.02, substeps=3, hold_time=0.1, time_limit=math.inf)
    assert (domain.hold_steps, domain.episode_cap, domain.reward_bound) == (2, None, 3.0)
    assert (PENDULUM.hold_steps, PENDULUM.episode_cap, PENDULUM.reward_bound) == (20, 200, 5.0)


def test_rewards_are_within_their_bound() -> None:
    states = random_states(1000, np.random.default_rng(0))
    rewards = PENDULUM.step(states, act(states)).rewards
    assert np.abs(rewards).max() <= PENDULUM.reward_bound
    assert np.abs(rewards).max() > 4.9


def test_pictures_differ_with_the_state() -> None:
    pictures = [PENDULUM.draw(np.array(s)) for s in ((0.5, 0.0, 0), (0.5, 3.0, 0), (-2.0, 0.0, 0), (3.1, 0.0, 9))]
    for picture in pictures:
        assert picture.shape == (400, 400, 3)
        assert picture.dtype == np.uint8
    changed = [(np.any(picture != pictures[0], axis=2)).mean() for picture in pictures[1:]]
    assert all(0.002 < share < 0.1 for share in changed)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"mass": 0.0}, "mass is 0"),
        ({"length": -1.0}, r"length is -1\.0"),
        ({"gravity": math.inf}, "gravity is inf"),
        ({"damping": -0.1}, r"damping is -0\.1"),
        ({"max_torque": math.nan}, "max_torque is nan"),
        ({"max_speed": 0}, "max_speed is 0"),
        ({"time_step": 0.0}, r"time_step is 0\.0"),
        ({"substeps": 2.5}, r"substeps is 2\.5: it must be an integer >= 1"),
        ({"upright": 4.0}, r"upright is 4\.0"),
        ({"hold_time": 0.0}, r"hold_time is 0\.0: it must lie in \(0, inf\], in seconds; math\.inf for never"),
        ({"time_limit": -1}, "time_limit is -1"),
    ],
)
def test_bad_parameters(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameterError, match=message):
        Pendulum(**parameters)


def test_bad_arguments() -> None:
    with pytest.raises(InvalidInputError, match=r"states have shape \(1, 2\): pass \(N, 3\), angle, velocity, held"):
        PENDULUM.step([[0.0, 0.0]], [0.0])
    with pytest.raises(InvalidInputError, match=r"actions contain 2\.1: they lie in \[-2, 2\]"):
        PENDULUM.step([[0.0, 0.0, 0.0]], [2.1])
    with pytest.raises(InvalidParameterError, match="n is 0"):
        PENDULUM.grid(0)
