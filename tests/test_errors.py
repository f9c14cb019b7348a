"""Whatever is passed, the error is one of the library's: it names the value and the remedy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from tlstd_lab.processes.garnet import garnet

from tlstd import (
    RBF,
    TD,
    Concatenate,
    Fourier,
    Handover,
    SparseVector,
    StateAction,
    TileCoder,
    Transition,
    TransitionBuilder,
    Transitions,
    boyan_chain,
    random_walk,
)
from tlstd.domains.energy_storage import EnergyStorage, StoragePolicy, contribution
from tlstd.domains.mdp import MarkovRewardProcess
from tlstd.domains.mountain_car import MountainCar
from tlstd.domains.pendulum import Pendulum
from tlstd.domains.policies import EpsilonGreedy
from tlstd.errors import InvalidInputError, InvalidParameterError, TlstdError
from tlstd.evaluation import rollout_values, true_values
from tlstd.streams import from_gymnasium, record, stream, trajectory


class Stubborn:
    """Cannot be made an array."""

    def __repr__(self) -> str:
        return "Stubborn()"

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("no")


# --- flags ------------------------------------------------------------------------------------------------------------

NO_FLAGS: list[Any] = ["False", "", None, np.nan, 0.5, 1.0, 2, -1, [False], [], {}, np.array([True]), 1j, Stubborn()]


class TestFlags:
    @pytest.mark.parametrize("value", NO_FLAGS, ids=str)
    @pytest.mark.parametrize("name", ["terminated", "truncated"])
    def test_of_a_step(self, name: str, value: Any) -> None:
        build = TransitionBuilder(0.9)
        build.reset([1.0])
        build.step(0.0, [2.0])
        with pytest.raises(InvalidInputError, match=f"{name} is .*: pass True or False"):
            build.step(5.0, [7.0], **{name: value})
        step = build.step(1.0, [3.0])  # nothing has changed
        assert_array_equal(step.x, [2.0])
        assert (step.reward, step.discount, step.trace_discount) == (1.0, 0.9, 0.9)

    @pytest.mark.parametrize("value", [True, 1, np.True_, np.int8(1), np.array(True), np.array(1)], ids=repr)
    def test_that_end_an_episode(self, value: Any) -> None:
        for name, discount in (("terminated", 0.0), ("truncated", 0.9)):
            build = TransitionBuilder(0.9)
            build.reset([1.0])
            assert build.step(0.0, [2.0], **{name: value}).discount == discount
            with pytest.raises(InvalidInputError, match="reset"):
                build.step(0.0, [2.0])

    @pytest.mark.parametrize(
        "value",
        [
            *([0, 0, 2], [0, -1, 0], [0.0, 0.0, 1.0], ["a", "b", "c"], [None, None, True], [np.nan, 0, 0]),
            *(np.array([0, 255, 0], dtype=np.uint8), [True, False], True, [[True], [False], [True]], Stubborn()),
        ],
        ids=str,
    )
    def test_of_logged_steps(self, value: Any) -> None:
        good: dict[str, Any] = {"terminated": [False, False, True], "truncated": [0, 0, 0]}
        for name in good:
            with pytest.raises(InvalidInputError, match=name):
                Transitions.from_arrays(np.eye(3), np.zeros(3), np.eye(3), **(good | {name: value}), gamma=0.9)

    def test_the_bad_one_is_named(self) -> None:
        with pytest.raises(InvalidInputError, match=r"terminated\[2\] is 2: pass True or False"):
            Transitions.from_arrays(
                np.eye(3), np.zeros(3), np.eye(3), terminated=[0, 0, 2], truncated=[0, 0, 0], gamma=0.9
            )

    @pytest.mark.parametrize("value", NO_FLAGS, ids=str)
    def test_of_episodes(self, value: Any) -> None:
        with pytest.raises(InvalidInputError, match=r"terminated of episode 0 is .*: pass True or False"):
            Transitions.from_episodes([(np.eye(2), [1.0], value)], gamma=0.9)

    @pytest.mark.parametrize("bias", ["no", None, 0.0, 2, []])
    def test_of_constructors(self, bias: Any) -> None:
        for make in (
            lambda: TileCoder([0.0], [1.0], tiles=2, tilings=2, bias=bias),
            lambda: RBF([0.0], [1.0], grid=2, width=0.5, bias=bias),
            lambda: Fourier([0.0], [1.0], order=1, bias=bias),
        ):
            with pytest.raises(InvalidParameterError, match=r"bias is .*: pass True or False"):
                make()


# --- environments -----------------------------------------------------------------------------------------------------


class Lying(gymnasium.Env[Any, Any]):
    """Says whatever it is told to say at its third step."""

    observation_space = gymnasium.spaces.Box(0.0, 1.0, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, *said: Any, start: Any = ([0.0], {})) -> None:
        self.said, self.start, self.n_steps = said, start, 0

    def reset(self, **_: Any) -> Any:
        return self.start

    def step(self, action: Any) -> Any:
        self.n_steps += 1
        return self.said if self.n_steps == 3 else (np.zeros(1), 0.0, False, False, {})


class LyingVector(gymnasium.vector.VectorEnv[Any, Any, Any]):
    num_envs = 2
    single_observation_space = gymnasium.spaces.Box(0.0, 1.0, (1,))
    single_action_space = action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, *said: Any) -> None:
        self.said = said

    def reset(self, **_: Any) -> Any:
        return np.zeros((2, 1)), {}

    def step(self, actions: Any) -> Any:
        return self.said


LINE = Fourier([0.0], [1.0], order=1)


class TestEnvironments:
    @pytest.mark.parametrize("value", NO_FLAGS, ids=str)
    def test_flags(self, value: Any) -> None:
        for flags, name in (((value, False), "terminated"), ((False, value), "truncated")):
            env = Lying(np.zeros(1), 0.0, *flags, {})
            with pytest.raises(InvalidInputError, match=f"{name} of the environment is .*: pass True or False"):
                from_gymnasium(env, lambda _: 0, LINE, n_steps=5, gamma=0.9)

    @pytest.mark.parametrize("value", [True, 1, np.True_, np.array(1)], ids=repr)
    def test_flags_that_are_some(self, value: Any) -> None:
        steps = from_gymnasium(Lying(np.zeros(1), 0.0, value, False, {}), None, LINE, n_steps=5, gamma=0.9)
        assert_array_equal(steps.discounts, [0.9, 0.9, 0.0, 0.9, 0.9])

    @pytest.mark.parametrize("value", [[0, 2], [0.0, 1.0], ["a", "b"], True, [True], None, [None, None]], ids=str)
    def test_flags_of_several(self, value: Any) -> None:
        good = np.zeros(2, dtype=bool)
        for flags, name in (((value, good), "terminated"), ((good, value), "truncated")):
            env = LyingVector(np.zeros((2, 1)), np.zeros(2), *flags, {})
            with pytest.raises(InvalidInputError, match=f"{name} of the environment"):
                from_gymnasium(env, lambda _: np.zeros(2), LINE, n_steps=5, gamma=0.9)

    def test_other_interfaces(self) -> None:
        for said, start, words in (
            ((np.zeros(1), 0.0, True, {}), (np.zeros(1), {}), r"step\(\) returned 4 values"),
            ((), (np.zeros(1), {}), r"step\(\) returned 0 values"),
            ((), np.zeros(1), r"reset\(\) returned ndarray"),
            ((), None, r"reset\(\) returned NoneType"),
        ):
            with pytest.raises(InvalidInputError, match=words):
                from_gymnasium(Lying(*said, start=start), lambda _: 0, LINE, n_steps=5, gamma=0.9)

    @pytest.mark.parametrize("reward", ["1", None, [], [1.0, 2.0], {}, 1j, Stubborn()], ids=str)
    def test_rewards(self, reward: Any) -> None:
        with pytest.raises(InvalidInputError, match=r"the reward is .*: it has to be one number"):
            from_gymnasium(Lying(np.zeros(1), reward, False, False, {}), None, LINE, n_steps=5, gamma=0.9)

    @pytest.mark.parametrize("observation", ["a", None, {}, [1j], Stubborn()], ids=str)
    def test_observations(self, observation: Any) -> None:
        with pytest.raises(InvalidInputError, match="observation"):
            from_gymnasium(Lying(observation, 0.0, False, False, {}), None, LINE, n_steps=5, gamma=0.9)

    @pytest.mark.parametrize("action", [np.True_, 0.5, 1.0, np.array([1]), np.ones(2), "left", None, 7], ids=repr)
    def test_actions_of_one(self, action: Any) -> None:
        for name, tiles in (
            ("CartPole-v1", TileCoder([-1.0] * 4, [1.0] * 4, tiles=2, tilings=1)),
            ("tlstd.envs:tlstd/MountainCar-v0", TileCoder([-1.0] * 2, [1.0] * 2, tiles=2, tilings=1)),
        ):
            env = gymnasium.make(name)
            with pytest.raises(TlstdError, match=r"(the policy returned|the action is) .*(return|pass)"):
                from_gymnasium(env, lambda _: action, tiles, n_steps=5, gamma=0.9)

    @pytest.mark.parametrize("action", [True, 0.5, "up", None], ids=repr)
    def test_actions_of_a_number(self, action: Any) -> None:
        tiles = TileCoder([-1.0] * 3, [1.0] * 3, tiles=2, tilings=1)
        with pytest.raises(TlstdError, match=r"the policy returned .* return an action of Box"):
            from_gymnasium(gymnasium.make("Pendulum-v1"), lambda _: action, tiles, n_steps=5, gamma=0.9)

    @pytest.mark.parametrize("actions", [0, [0.5, 0.5, 0.5], np.ones(2), "left", None, [0, 9]], ids=repr)
    def test_actions_of_several(self, actions: Any) -> None:
        env = gymnasium.make_vec("CartPole-v1", num_envs=2, vectorization_mode="sync")
        tiles = TileCoder([-1.0] * 4, [1.0] * 4, tiles=2, tilings=1)
        with pytest.raises(TlstdError, match=r"the policy returned .* return an action of"):
            from_gymnasium(env, lambda _: actions, tiles, n_steps=5, gamma=0.9)

    def test_errors_of_environment_and_policy_are_their_own(self) -> None:
        class Broken(Lying):
            def step(self, action: Any) -> Any:
                raise RuntimeError("the wheel came off")

        with pytest.raises(RuntimeError, match="wheel"):
            from_gymnasium(Broken(), lambda _: 1, LINE, n_steps=5, gamma=0.9)
        with pytest.raises(ZeroDivisionError):
            from_gymnasium(Lying(), lambda _: 1 // 0, LINE, n_steps=5, gamma=0.9)


# --- features, episodes, domains --------------------------------------------------------------------------------------

ODD: list[Any] = [None, "ab", "", b"x", {}, {"a": 1.0}, {1.0}, 1j, object(), lambda: 1.0, Stubborn()]
ODD += [[[1.0], [1.0, 2.0]], ["1", "2"], [None, 1.0], np.array(["a", "b"]), np.array([1, 2], dtype=object)]
ODD += [
    np.ma.array([0.5, 0.5], mask=[True, False]),
    np.datetime64("2020-01-01"),
    sp.csr_array(np.eye(2)),
    3.0,
    np.array(3.0),
]
ODD += [SparseVector([0], [1.0], 2), np.zeros((2, 2, 2))]

BOX: dict[str, Any] = {"low": [0.0, 0.0], "high": [1.0, 1.0]}
TILES, BUMPS = TileCoder(**BOX, tiles=2, tilings=2), RBF(**BOX, grid=2, width=0.5)
MAPS: list[Any] = [TILES, BUMPS, Fourier(**BOX, order=1), Concatenate([TILES, BUMPS])]
CAR, STORAGE, CHAIN = MountainCar(), EnergyStorage(), boyan_chain()
RNG = np.random.default_rng(0)

CALLS: dict[str, Callable[[Any], object]] = {
    **{f"{type(m).__name__}.encode": m.encode for m in MAPS},
    **{f"{type(m).__name__}.encode_many": m.encode_many for m in MAPS},
    "StateAction.encode": lambda odd: StateAction(TILES, 2).encode(odd, 0),
    "StateAction, actions": lambda odd: StateAction(TILES, 2).encode_many([[0.5, 0.5]], odd),
    "TileCoder(low)": lambda odd: TileCoder(odd, [1.0, 1.0], tiles=2, tilings=2),
    "TileCoder(tiles)": lambda odd: TileCoder(**BOX, tiles=odd, tilings=2),
    "RBF(high)": lambda odd: RBF([0.0, 0.0], odd, grid=2, width=0.5),
    "RBF(width)": lambda odd: RBF(**BOX, grid=2, width=odd),
    "Concatenate": Concatenate,
    "Concatenate, columns": lambda odd: Concatenate([(BUMPS, odd)]),
    "from_episodes": lambda odd: Transitions.from_episodes(odd, gamma=0.9),
    "from_episodes, one": lambda odd: Transitions.from_episodes([odd], gamma=0.9),
    "from_episodes, X": lambda odd: Transitions.from_episodes([(odd, [1.0], True)], gamma=0.9),
    "Transition": lambda odd: Transition(odd, 1.0, odd, discount=0.5, trace_discount=0.0),
    "MountainCar(low)": lambda odd: MountainCar(low=odd),
    "MountainCar(start_low)": lambda odd: MountainCar(start_low=odd),
    "EnergyStorage(demand_wave)": lambda odd: EnergyStorage(demand_wave=odd),
    "EnergyStorage(price)": lambda odd: EnergyStorage(price=odd),
    "EnergyStorage(jump)": lambda odd: EnergyStorage(jump=odd),
    "StoragePolicy": lambda odd: StoragePolicy(STORAGE, odd),
    "contribution": lambda odd: contribution(1.0, 1.0, 1.0, 1.0, [1.0], discharge_efficiency=odd),
    "flows": lambda odd: STORAGE.flows(np.ones(5), odd),
    "step, states": lambda odd: CAR.step(odd, [1.0]),
    "step, actions": lambda odd: CAR.step([[0.0, 0.0]], odd),
    "start": lambda odd: CAR.start(3, odd),
    "random_walk(rewards)": lambda odd: random_walk(5, rewards=odd),
    "MarkovRewardProcess(P)": lambda odd: MarkovRewardProcess(odd, [1.0], [[1.0]], gamma=0.9),
    "garnet(policy)": lambda odd: garnet(4, 2, 2, 3, RNG, gamma=0.9, policy=odd),
    "garnet(rng)": lambda odd: garnet(4, 2, 2, 3, odd, gamma=0.9),
    "sample(rng)": lambda odd: CHAIN.sample(5, odd),
    "EpsilonGreedy(actions)": lambda odd: EpsilonGreedy(CAR.policy(), odd, 0.1),
    "rollout_values(rng)": lambda odd: rollout_values(CAR, [[0.4, 0.06]], n_rollouts=2, rng=odd),
    "true_values(domain)": lambda odd: true_values(odd, [[0.4, 0.06]]),
    "trajectory(domain)": lambda odd: trajectory(odd, n_steps=5, seed=0),
    "record(features)": lambda odd: record(CAR, None, odd, n_steps=5, seed=0),
    "stream(features)": lambda odd: stream(CAR, None, odd, seed=0),
}


@pytest.mark.parametrize("name", CALLS)
def test_what_is_refused_is_refused_by_us(name: str) -> None:
    """A few of the odd values are what one function or another takes."""
    n_refused = 0
    for odd in ODD:
        try:
            CALLS[name](odd)
        except TlstdError:
            n_refused += 1
    assert n_refused > len(ODD) - 6


@pytest.mark.parametrize("episode", [(np.eye(2), [1.0]), (np.eye(2), [1.0], True, 0.9), (), np.eye(3), "abc"])
def test_episodes_of_other_than_three_parts(episode: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"episode 1 .*: pass three, \(X, rewards, terminated\)"):
        Transitions.from_episodes([(np.eye(2), [1.0], True), episode], gamma=0.9)


def test_a_handover_after_more_samples_than_can_be_counted() -> None:
    first, second = (TD(2, step_size=0.1, lambda_=0.0) for _ in range(2))
    for options in ({"after": 2**70}, {"settled": 0.3, "patience": 2**70}):
        with pytest.raises(InvalidParameterError, match=f"is {2**70}: it must be an integer from 1 to {2**63 - 1}"):
            Handover(first, second, **options)


@pytest.mark.parametrize("value", [2**63, 2**70])
def test_numbers_that_no_array_holds(value: int) -> None:
    for make in (
        lambda: TD(value, step_size=0.1, lambda_=0.0),
        lambda: Pendulum(substeps=value),
        lambda: StateAction(TILES, value),
        lambda: CHAIN.sample(value, RNG),
    ):
        with pytest.raises(InvalidParameterError, match=str(value)):
            make()


def test_what_can_be_used_still_is() -> None:
    assert_array_equal(TILES.encode(np.array([0.1, 0.2], dtype=np.float32)).indices, TILES.encode((0.1, 0.2)).indices)
    assert TILES.encode([0, 1]).nnz == BUMPS.encode_many([[False, True]]).shape[0] + 1
    assert TileCoder([0], [1], tiles=np.array([3]), tilings=np.int64(2), bias=1).n_features == 7  # type: ignore[arg-type]
