from __future__ import annotations

import copy
import math
import pickle
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env
from numpy.testing import assert_allclose, assert_array_equal

from tlstd.core.arrays import FloatArray
from tlstd.domains import DOMAINS
from tlstd.domains.base import Domain, Step
from tlstd.domains.energy_storage import EnergyStorage
from tlstd.domains.environment import DomainEnv, ResetNeededError
from tlstd.domains.mountain_car import MountainCar
from tlstd.domains.pendulum import Pendulum
from tlstd.domains.policies import Deterministic
from tlstd.envs import ENVIRONMENTS
from tlstd.errors import InvalidInputError, InvalidParameterError

NAMES = sorted(DOMAINS)


class Drift(Domain):
    """x moves by the action plus noise and ends beyond 10; the second entry is not observed. No picture."""

    name = "Drift"
    state_names = ("x", "hidden")
    gamma = 0.9
    noise_size = 1
    start_noise_size = 1

    def __init__(self, episode_cap: int | None) -> None:
        self.low, self.high = np.array([0.0]), np.array([20.0])
        self.reward_bound = 1.0
        self.action_bounds = (0.0, 1.0)
        self.episode_cap = episode_cap

    def policy(self) -> Deterministic:
        return Deterministic(lambda states: np.ones(len(states)))

    def _step(self, states: FloatArray, actions: FloatArray, noise: FloatArray) -> Step:
        moved = states + np.column_stack([actions + 0.01 * noise[:, 0], np.ones(len(states))])
        return Step(moved, actions, moved[:, 0] > 10.0)

    def _start(self, noise: FloatArray) -> FloatArray:
        return np.column_stack([0.1 * noise[:, 0], np.zeros(len(noise))])


def made(name: str, **parameters: Any) -> DomainEnv:
    env = gymnasium.make(f"tlstd/{name}-v0", **parameters).unwrapped
    assert isinstance(env, DomainEnv)
    return env


def actions_for(env: DomainEnv, n: int, seed: int = 0) -> list[Any]:
    env.action_space.seed(seed)
    return [env.action_space.sample() for _ in range(n)]


def run(env: gymnasium.Env[Any, Any], actions: Sequence[Any], seed: int | None = None) -> list[Any]:
    """All that an environment returns, flat; episodes that end are followed by new ones."""
    observation, info = env.reset(seed=seed)
    seen: list[Any] = [*observation, *info["state"]]
    for action in actions:
        observation, reward, terminated, truncated, info = env.step(action)
        seen += [*observation, reward, terminated, truncated, *info["state"]]
        if terminated or truncated:
            observation, info = env.reset()
            seen += [*observation, *info["state"]]
    return seen


def test_every_domain_is_registered() -> None:
    assert tuple(f"tlstd/{name}-v0" for name in NAMES) == ENVIRONMENTS
    for name, environment in zip(NAMES, ENVIRONMENTS, strict=True):
        assert gymnasium.spec(environment).max_episode_steps is None  # the environment truncates itself
        assert DOMAINS[name]().name == name
        assert made(name).domain.name == name


@pytest.mark.parametrize("name", NAMES)
def test_gymnasium_finds_nothing(name: str) -> None:
    """Any warning would be an error."""
    check_env(made(name))
    check_env(made(name, render_mode="rgb_array"))


@pytest.mark.parametrize("name", ["Pendulum", "EnergyStorage"])
def test_gymnasium_recommends_to_scale_actions(name: str) -> None:
    with pytest.warns(UserWarning, match="we recommend using a symmetric and normalized space") as caught:
        check_env(made(name, scale_actions=False))
    assert len(caught) == 1


def test_spaces() -> None:
    car, pendulum, storage = made("MountainCar"), made("Pendulum"), made("EnergyStorage")
    assert car.observation_space == spaces.Box(np.array([-1.2, -0.07]), np.array([0.6, 0.07]), dtype=np.float64)
    assert car.action_space == spaces.Discrete(3)
    assert pendulum.observation_space.shape == (2,)
    assert pendulum.action_space == spaces.Box(-1.0, 1.0, (1,), np.float64)
    assert storage.observation_space.shape == (4,)
    assert storage.action_space == spaces.Box(-1.0, 1.0, (1,), np.float64)
    assert made("MountainCar", scale_actions=False).action_space == spaces.Discrete(3)
    assert made("Pendulum", scale_actions=False).action_space == spaces.Box(-2.0, 2.0, (1,), np.float64)
    assert made("EnergyStorage", scale_actions=False).action_space == spaces.Box(-5.0, 5.0, (1,), np.float64)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("MountainCar", {}), ("Pendulum", {}), ("EnergyStorage", {}), ("EnergyStorage", {"charge_efficiency": 0.9})],
)
def test_spaces_hold_all_observations(name: str, parameters: dict[str, Any]) -> None:
    env = made(name, **parameters)
    observation, _ = env.reset(seed=1)
    for action in actions_for(env, 1000):
        assert env.observation_space.contains(observation)
        observation, _, terminated, truncated, info = env.step(action)
        assert env.observation_space.contains(observation)
        assert_array_equal(observation, info["state"][: observation.size])
        if terminated or truncated:
            observation, _ = env.reset()


def test_spaces_hold_a_pendulum_that_turns_over() -> None:
    env = DomainEnv(Pendulum(damping=0.0))
    angle = env.reset(options={"state": [math.pi, 3.0 * math.pi, 0.0]})[0][0]
    n_turns = 0
    for _ in range(100):
        observation = env.step(np.zeros(1))[0]
        assert env.observation_space.contains(observation)
        n_turns += observation[0] < angle
        angle = observation[0]
    assert n_turns > 2


@pytest.mark.parametrize("name", NAMES)
def test_the_seed_decides(name: str) -> None:
    actions = actions_for(made(name), 300)
    first, again, other = (run(made(name), actions, seed) for seed in (7, 7, 8))
    assert_array_equal(first, again)
    assert first[: len(other)] != other[: len(first)]


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_steps_are_those_of_the_domain(name: str, scale: bool) -> None:
    env, domain, rng = made(name, scale_actions=scale), DOMAINS[name](), np.random.default_rng(3)
    factor = {"Pendulum": 2.0, "EnergyStorage": 5.0}.get(name, 1.0) if scale else 1.0
    observation, info = env.reset(seed=3)
    states = domain.start(1, rng)
    for action in actions_for(env, 500):
        assert_array_equal(observation, domain.observe(states)[0], strict=True)
        assert_array_equal(info["state"], states[0], strict=True)
        value = factor * float(action[0]) if domain.actions is None else float(domain.actions[action])
        step = domain.step(states, [value], rng)
        observation, reward, terminated, truncated, info = env.step(action)
        assert (reward, terminated) == (step.rewards[0], step.terminated[0])
        states = step.states
        if terminated or truncated:
            observation, info = env.reset()
            states = domain.start(1, rng)


class TestUnitOfActions:
    """The reward of Drift is its action."""

    @staticmethod
    def meanings(low: float, high: float, actions: Sequence[float], **options: Any) -> list[float]:
        domain = Drift(None)
        domain.action_bounds = (low, high)
        env = DomainEnv(domain, **options)
        values = []
        for action in actions:
            env.reset(seed=0)
            values.append(env.step([action])[1])
        return values

    def test_bounds_that_are_not_symmetric(self) -> None:
        actions = [-1.0, -0.5, 0.0, 0.5, 1.0]
        assert self.meanings(0.0, 1.0, actions) == [0.0, 0.25, 0.5, 0.75, 1.0]
        assert self.meanings(-1.0, 3.0, actions) == [-1.0, 0.0, 1.0, 2.0, 3.0]
        assert self.meanings(0.0, 1.0, [0.0, 0.3, 1.0], scale_actions=False) == [0.0, 0.3, 1.0]
        assert self.meanings(-1.0, 1.0, actions, scale_actions=False) == actions

    def test_symmetric_bounds_are_exact(self) -> None:
        rng = np.random.default_rng(0)
        actions = rng.uniform(-1.0, 1.0, 50).tolist()
        for high in rng.uniform(0.0, 5.0, 20).tolist():
            assert self.meanings(-high, high, actions) == [high * action for action in actions]

    def test_rounding_leaves_no_bounds(self) -> None:
        rng = np.random.default_rng(1)
        for low, high in np.sort(rng.uniform(-1.0, 1.0, (500, 2)) * 10.0 ** rng.uniform(-5.0, 0.0, (500, 2))).tolist():
            bottom, top = self.meanings(low, high, [-1.0, 1.0])  # or the domain would refuse them
            assert_allclose([bottom, top], [low, high], rtol=0, atol=1e-15)

    def test_no_bounds(self) -> None:
        with pytest.raises(InvalidParameterError, match=r"lie in \(0\.0, inf\): pass scale_actions=False"):
            self.meanings(0.0, math.inf, [0.0])
        assert self.meanings(0.0, math.inf, [3.0], scale_actions=False) == [3.0]


class TestEndings:
    def test_the_car_arrives(self) -> None:
        car = MountainCar()
        assert car.actions is not None
        env, policy = DomainEnv(car), car.policy()
        _, info = env.reset(options={"state": [-0.5, 0.0]})
        n_steps, terminated, truncated = 0, False, False
        while not terminated:
            action = np.searchsorted(car.actions, policy.act(info["state"][np.newaxis], np.zeros(1)))[0]
            observation, reward, terminated, truncated, info = env.step(action)
            n_steps += 1
            assert (reward, truncated) == (-1.0, False)
        assert observation[0] >= 0.5
        assert 100 < n_steps < 209

    def test_a_pendulum_without_torque_is_cut_off(self) -> None:
        env = made("Pendulum")
        env.reset(options={"state": [1.0, 0.0, 0.0]})
        ends = [env.step(np.zeros(1))[2:4] for _ in range(200)]
        assert ends == [(False, False)] * 199 + [(False, True)]
        with pytest.raises(ResetNeededError, match=r"has ended: call reset\(\)"):
            env.step(np.zeros(1))
        env.reset(options={"state": [1.0, 0.0, 0.0]})
        assert [env.step(np.zeros(1))[2:4] for _ in range(200)] == ends  # it counts anew

    def test_a_pendulum_that_is_held_terminates(self) -> None:
        domain = Pendulum()
        env, policy = DomainEnv(domain), domain.policy()
        _, info = env.reset(options={"state": [3.1, 0.0, 0.0]})
        for _ in range(20):
            step = env.step(policy.act(info["state"][np.newaxis], np.zeros(1)) / 2.0)
            info = step[4]
        assert step[2:4] == (True, False)
        assert info["state"][2] == 20.0

    def test_the_storage_never_ends(self) -> None:
        env = made("EnergyStorage")
        env.reset(seed=0)
        assert not any(end for _ in range(1000) for end in env.step(np.ones(1))[2:4])

    def test_time_limits(self) -> None:
        limited = gymnasium.make("tlstd/EnergyStorage-v0", max_episode_steps=7)
        limited.reset(seed=0)
        assert [limited.step(np.ones(1))[3] for _ in range(7)] == [False] * 6 + [True]
        assert made("Pendulum", time_limit=1.0).domain.episode_cap == 20
        assert made("Pendulum", time_limit=math.inf).domain.episode_cap is None

    @pytest.mark.parametrize(("cap", "ends"), [(11, (False, True)), (12, (True, False)), (None, (True, False))])
    def test_terminating_in_the_last_step_is_no_truncation(self, cap: int | None, ends: tuple[bool, bool]) -> None:
        env = DomainEnv(Drift(cap), scale_actions=False)
        env.reset(options={"state": [0.0, 0.0]})
        step = [env.step([0.9])[2:4] for _ in range(11 if cap == 11 else 12)]
        assert step[:-1] == [(False, False)] * (len(step) - 1)
        assert step[-1] == ends


class TestReset:
    @pytest.mark.parametrize(
        ("name", "state"),
        [
            ("MountainCar", [0.3, -0.02]),
            ("Pendulum", [math.pi, -1.0, 12.0]),
            ("EnergyStorage", [12.5, 3.0, 44.0, 2.0, 99.0]),
        ],
    )
    def test_starts_where_it_is_told(self, name: str, state: list[float]) -> None:
        env = made(name)
        given = np.array(state)
        observation, info = env.reset(seed=0, options={"state": given})
        given[:] = 0.0  # the environment has its own
        assert_array_equal(info["state"], state)
        assert_array_equal(observation, state[: observation.size])
        step = DOMAINS[name]().step([state], [1.0], np.random.default_rng(0))
        action = {"MountainCar": 2, "Pendulum": [0.5], "EnergyStorage": [0.2]}[name]  # 1 in the domain's unit
        assert_array_equal(env.step(action)[4]["state"], step.states[0])

    def test_no_options_are_random_starts(self) -> None:
        env = made("MountainCar")
        starts = [env.reset(seed=4, options=options)[0] for options in (None, {}, {"state": None})]
        assert_array_equal(starts, np.tile(MountainCar().start(1, np.random.default_rng(4)), (3, 1)))
        assert not np.array_equal(env.reset()[0], starts[0])

    @pytest.mark.parametrize(
        ("name", "options", "message"),
        [
            ("MountainCar", {"start": [0.0, 0.0]}, r"options is .*: pass \{\"state\": \[position, velocity\]\}"),
            ("MountainCar", [0.0, 0.0], "options is"),
            ("MountainCar", {"state": [0.0]}, r"has shape \(1,\): pass \[position, velocity\]"),
            ("MountainCar", {"state": [[0.0, 0.0]]}, r"has shape \(1, 2\)"),
            ("MountainCar", {"state": "top"}, r"options\[\"state\"\] is 'top'"),
            ("MountainCar", {"state": [0.0, math.nan]}, "contain nan"),
            ("MountainCar", {"state": [0.7, 0.0]}, r"has the position 0\.7: it lies in \[-1\.2, 0\.6\]"),
            ("Pendulum", {"state": [4.0, 0.0, 0.0]}, "has the angle 4: it lies in"),
            ("EnergyStorage", {"state": [1.0, 3.0, 44.0, 2.0, 0.5]}, r"a phase of 0\.5"),
        ],
    )
    def test_bad_options(self, name: str, options: Any, message: str) -> None:
        env, other = made(name), made(name)
        env.reset(seed=0)
        other.reset(seed=0)
        with pytest.raises(InvalidInputError, match=message):
            env.reset(seed=1, options=options)
        (action,) = actions_for(env, 1)
        assert_array_equal(env.step(action)[0], other.step(action)[0])  # the episode goes on, and so do the numbers
        assert_array_equal(env.reset()[0], other.reset()[0])


class TestMisuse:
    @pytest.mark.parametrize("action", [3, -1, 1.0, np.array([1]), "left", None])
    def test_an_unknown_index(self, action: Any) -> None:
        env = made("MountainCar")
        env.reset(seed=0)
        with pytest.raises(InvalidInputError, match=r"pass the index, 0 to 2, of \[-1\.0, 0\.0, 1\.0\]"):
            env.step(action)

    @pytest.mark.parametrize(("scale", "high"), [(True, 1), (False, 2)])
    @pytest.mark.parametrize("action", [[2.1], [-2.1], [math.nan], 1.0, [1.0, 1.0], "left", None])
    def test_an_impossible_number(self, action: Any, scale: bool, high: int) -> None:
        env = made("Pendulum", scale_actions=scale)
        env.reset(seed=0)
        with pytest.raises(InvalidInputError, match=rf"pass an array of one number in \[-{high}, {high}\]"):
            env.step(action)

    def test_bounds_are_bounds(self) -> None:
        env = made("Pendulum")
        env.reset(seed=0)
        with pytest.raises(InvalidInputError, match=r"in \[-1, 1\]"):
            env.step([1.00001])

    def test_rounding_is_no_misuse(self) -> None:
        """Single precision and Gymnasium's own wrapper, either of which goes beyond some bounds."""
        n_beyond = 0
        for torque in np.random.default_rng(0).uniform(0.01, 10.0, 100).tolist():
            domain = Pendulum(max_torque=torque)
            own, scaled = DomainEnv(domain, scale_actions=False), DomainEnv(domain)
            narrow, wide = (
                gymnasium.wrappers.RescaleAction(env, np.float64(-high), np.float64(high))
                for env, high in ((own, 1.0), (scaled, torque))
            )
            expected = domain.step([[0.0, 0.0, 0.0]], [torque]).states[0, :2]
            single = np.array([torque], dtype=np.float32)
            n_beyond += float(single[0]) > torque
            for each, action in ((own, single), (narrow, np.ones(1)), (scaled, np.ones(1)), (wide, single)):
                each.reset(options={"state": [0.0, 0.0, 0.0]})
                assert_allclose(each.step(action)[0], expected, rtol=1e-6)
            with pytest.raises(InvalidInputError, match="pass an array of one number"):
                own.step([1.00001 * torque])
        assert n_beyond > 20

    def test_a_refused_action_changes_nothing(self) -> None:
        env, other = made("EnergyStorage"), made("EnergyStorage")
        env.reset(seed=0)
        other.reset(seed=0)
        with pytest.raises(InvalidInputError, match=r"in \[-1, 1\]"):
            env.step([1.2])
        assert_array_equal(env.step(np.zeros(1))[0], other.step(np.zeros(1))[0])

    @pytest.mark.parametrize("action", [2, np.int64(2), np.int32(2), np.array(2)])
    def test_kinds_of_integers(self, action: Any) -> None:
        env = made("MountainCar")
        env.reset(options={"state": [-0.5, 0.0]})
        assert_array_equal(env.step(action)[0], MountainCar().step([[-0.5, 0.0]], [1]).states[0])

    def test_no_state_yet(self) -> None:
        env = DomainEnv("MountainCar", render_mode="rgb_array")
        with pytest.raises(ResetNeededError, match=r"step\(\) was called .*: call reset\(\) first"):
            env.step(0)
        with pytest.raises(gymnasium.error.ResetNeeded, match=r"render\(\) was called"):
            env.render()

    def test_bad_constructions(self) -> None:
        with pytest.raises(InvalidParameterError, match="the domain is 'Acrobot': pass a Domain or one of EnergySto"):
            DomainEnv("Acrobot")
        with pytest.raises(InvalidParameterError, match="pass a Domain or one of"):
            DomainEnv([])  # type: ignore[arg-type]
        with pytest.raises(InvalidParameterError, match="given together with force: pass parameters to its const"):
            DomainEnv(MountainCar(), force=0.002)
        with pytest.raises(InvalidParameterError, match="render_mode is 'human': pass 'rgb_array'"):
            DomainEnv("MountainCar", render_mode="human")
        with pytest.raises(InvalidParameterError, match=r"force is -1\.0"):
            made("MountainCar", force=-1.0)
        with pytest.raises(TypeError, match="unexpected keyword argument 'dampng'"):
            made("Pendulum", dampng=0.1)


class TestPictures:
    @pytest.mark.parametrize("name", NAMES)
    def test_pictures(self, name: str) -> None:
        env = made(name, render_mode="rgb_array")
        _, info = env.reset(seed=0)
        first, again = env.render(), env.render()
        env.reset(seed=1)
        other = env.render()
        assert first is not None
        assert other is not None
        height, width, colours = first.shape
        assert min(height, width) >= 300
        assert colours == 3
        assert first.dtype == np.uint8
        assert len(np.unique(first.astype(np.int64) @ [1, 256, 65_536])) > 10  # not blank
        assert_array_equal(first, again)
        assert_array_equal(first, env.domain.draw(info["state"]))
        assert other.shape == first.shape
        assert not np.array_equal(first, other)

    def test_without_a_mode(self) -> None:
        env = made("MountainCar")
        env.reset(seed=0)
        with pytest.warns(UserWarning, match="pass render_mode='rgb_array'"):
            assert env.render() is None

    def test_a_film(self) -> None:
        env = gymnasium.make("tlstd/Pendulum-v0", render_mode="rgb_array_list")
        env.reset(seed=0)
        env.step(np.ones(1))
        frames = env.render()
        assert isinstance(frames, list)
        assert len(frames) == 2

    def test_a_domain_without_a_picture(self) -> None:
        env = DomainEnv(Drift(5), render_mode="rgb_array")
        env.reset(seed=0)
        with pytest.raises(InvalidInputError, match="Drift has no picture"):
            env.render()


@pytest.mark.parametrize("name", NAMES)
def test_copies_go_on_alike(name: str) -> None:
    env = made(name)
    actions = actions_for(env, 40)
    env.reset(seed=2)
    env.step(actions[0])
    copies = [pickle.loads(pickle.dumps(env)), copy.deepcopy(env)]
    for action in actions[1:]:
        results = [each.step(action) for each in (env, *copies)]
        for result in results[1:]:
            assert_array_equal(result[0], results[0][0])
            assert result[1:4] == results[0][1:4]
        if results[0][2]:
            break
    starts = [each.reset()[0] for each in (env, *copies)]
    assert_array_equal(starts[1:], [starts[0]] * 2)


def test_returned_arrays_belong_to_the_caller() -> None:
    env, other = made("Pendulum"), made("Pendulum")
    observation, info = env.reset(seed=0)
    other.reset(seed=0)
    observation[:] = info["state"][:] = 0.5
    observation, *_, info = env.step(np.ones(1))
    assert_array_equal(observation, other.step(np.ones(1))[0])
    observation[:] = info["state"][:] = 0.5
    assert_array_equal(env.step(np.ones(1))[0], other.step(np.ones(1))[0])


def test_parameters() -> None:
    env = gymnasium.make("tlstd/Pendulum-v0", damping=0.1, render_mode="rgb_array")
    assert env.render_mode == "rgb_array"
    domain = env.get_wrapper_attr("domain")
    assert isinstance(domain, Pendulum)
    assert domain.damping == 0.1
    storage = made("EnergyStorage", capacity=12, price=(10, 20)).domain
    assert isinstance(storage, EnergyStorage)
    assert_array_equal(storage.high[[0, 2]], [12.0, 20.0])
    again = env.spec.make() if env.spec is not None else None  # a spec remembers them
    assert again is not None
    assert again.get_wrapper_attr("domain").damping == 0.1


class TestVectors:
    @pytest.mark.parametrize("name", NAMES)
    def test_are_single_environments_side_by_side(self, name: str) -> None:
        vector = gymnasium.make_vec(f"tlstd/{name}-v0", num_envs=3)
        assert isinstance(vector, gymnasium.vector.SyncVectorEnv)
        singles = [made(name) for _ in range(3)]
        observations, infos = vector.reset(seed=10)
        starts = [single.reset(seed=10 + i) for i, single in enumerate(singles)]
        assert_array_equal(observations, [observation for observation, _ in starts])
        assert_array_equal(infos["state"], [info["state"] for _, info in starts])
        ended = np.zeros(3, dtype=np.bool_)
        vector.action_space.seed(0)
        for _ in range(250):  # beyond the end of Pendulum's episodes
            actions = vector.action_space.sample()
            observations, rewards, terminated, truncated, infos = vector.step(actions)
            for i, single in enumerate(singles):
                if ended[i]:  # the step after the last one is a reset
                    observation, info = single.reset()
                    expected: tuple[Any, ...] = (0.0, False, False)
                else:
                    observation, *expected_list, info = single.step(actions[i])
                    expected = tuple(expected_list)
                assert_array_equal(observations[i], observation)
                assert (rewards[i], terminated[i], truncated[i]) == expected
                assert_array_equal(infos["state"][i], info["state"])
            ended = terminated | truncated

    def test_take_parameters_and_states(self) -> None:
        vector = gymnasium.make_vec("tlstd/Pendulum-v0", num_envs=2, damping=0.0, time_limit=0.1)
        observations, _ = vector.reset(options={"state": [0.0, 1.0, 0.0]})
        assert_array_equal(observations, [[0.0, 1.0]] * 2)
        observations = vector.step(np.zeros((2, 1)))[0]
        expected = Pendulum(damping=0.0).step([[0.0, 1.0, 0.0]], [0.0]).states[0, :2]
        assert_array_equal(observations, [expected] * 2)
        assert vector.step(np.zeros((2, 1)))[3].all()


def python(code: str) -> str:
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_the_registry_is_light() -> None:
    loaded = "print(sorted({'gymnasium', 'matplotlib', 'numba'} & set(sys.modules)))"
    steps = ("import tlstd", "from tlstd.domains import DOMAINS", "DOMAINS['MountainCar']()")
    code = "import sys; " + "; ".join(f"{step}; {loaded}" for step in steps)
    assert python(code).splitlines() == ["[]", "[]", "[]"]


def test_importing_the_module_is_enough() -> None:
    """Gymnasium alone makes environments: it imports the module before the colon. What is not needed is not loaded."""
    code = (
        "import sys, gymnasium\n"
        "env = gymnasium.make('tlstd.envs:tlstd/MountainCar-v0', force=0.002)\n"
        "print(env.reset(options={'state': [-0.5, 0.0]})[0].tolist(), env.step(2)[1])\n"
        "print(sorted({'matplotlib', 'numba'} & set(sys.modules)))\n"
        "import tlstd.envs\n"
        "print(*tlstd.envs.ENVIRONMENTS)\n"
        "print(*(gymnasium.make(name).unwrapped.domain.name for name in tlstd.envs.ENVIRONMENTS))"
    )
    assert {"EnergyStorage", "MountainCar", "Pendulum"} <= set(NAMES)
    names = [" ".join(f"tlstd/{name}-v0" for name in NAMES), " ".join(NAMES)]
    assert python(code).splitlines() == ["[-0.5, 0.0] -1.0", "[]", *names]
