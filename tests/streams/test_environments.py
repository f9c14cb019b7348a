"""Recording environments: every transition happened, and the discounts are right at all ends and joins."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import islice
from typing import Any, Self

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.classic_control.cartpole import CartPoleEnv
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorWrapper
from gymnasium.wrappers import Autoreset, FlattenObservation, TimeLimit, TransformObservation
from numpy.testing import assert_allclose, assert_array_equal

from tlstd import LSTD, Columns, TileCoder, Transition, TransitionBuilder, Transitions
from tlstd.core.arrays import FloatArray
from tlstd.domains import DOMAINS
from tlstd.domains.mountain_car import MountainCar
from tlstd.envs import ENVIRONMENTS
from tlstd.errors import InvalidInputError, InvalidParameterError
from tlstd.streams import from_gymnasium

GAMMA = 0.9
MODES = list(AutoresetMode)
LENGTHS = [(3, 1, 4), (2, 5), (1, 1, 2, 1)]
"""Of the episodes of three environments, in turn."""
ENDINGS = ((True, False), (False, True), (True, True))
"""How episodes end, in turn: terminated, truncated."""

Row = tuple[list[float], float, list[float], float, float, float]


class Counting(gymnasium.Env[Any, Any]):
    """Observations are [number of the environment, episode, step], rewards the numbers of steps.

    Each seed begins with episode 0.
    """

    def __init__(self, number: int = 0, lengths: Sequence[int] = LENGTHS[0]) -> None:
        self.number, self.lengths = number, lengths
        self.observation_space = spaces.Box(0.0, 1e6, (3,), np.float64)
        self.action_space = spaces.Discrete(5)
        self.episode = self.time = self.n_resets = self.n_steps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.n_resets += 1
        self.episode = self.episode + 1 if seed is None else 0
        self.time = 0
        return self.seen(), {}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        length = self.lengths[self.episode % len(self.lengths)]
        assert self.time < length, "a step after the end"
        self.time += 1
        self.n_steps += 1
        terminated, truncated = ENDINGS[self.episode % 3] if self.time == length else (False, False)
        return self.seen(), float(self.time), terminated, truncated, {}

    def seen(self) -> Any:
        return np.array([self.number, self.episode, self.time], dtype=np.float64)


class Reusing(Counting):
    """Writes all observations into one array and all rewards into another."""

    def __init__(self, number: int = 0, lengths: Sequence[int] = LENGTHS[0]) -> None:
        super().__init__(number, lengths)
        self.buffer, self.reward = np.zeros(3), np.zeros(())

    def seen(self) -> Any:
        self.buffer[:] = super().seen()
        return self.buffer

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, self.reward[...], terminated, truncated, info = super().step(action)
        return observation, self.reward, terminated, truncated, info


class Echo(gymnasium.Env[Any, Any]):
    """Episodes of two steps from a random number; the reward is the action."""

    def __init__(self) -> None:
        self.observation_space = spaces.Box(0.0, 1.0, (1,), np.float64)
        self.action_space = spaces.Box(0.0, 1.0, (1,), np.float64)
        self.time = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.time = 0
        return self.np_random.random(1), {}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        self.time += 1
        return self.np_random.random(1), action[0], self.time == 2, False, {}


class Same:
    """Features that are the observation."""

    def __init__(self, n_features: int = 3) -> None:
        self.n_features = n_features

    def encode(self, state: Any, /) -> FloatArray:
        return np.asarray(state, dtype=np.float64)

    def encode_many(self, states: Any, /) -> FloatArray:
        return np.array(states, dtype=np.float64)


def idle(observations: Any) -> Any:
    return np.zeros(observations.shape[:-1], dtype=np.int64)


def sync(
    mode: AutoresetMode | str = "NextStep", kind: Callable[..., gymnasium.Env[Any, Any]] = Counting, **options: Any
) -> SyncVectorEnv:
    makers = [partial(kind, number, lengths) for number, lengths in enumerate(LENGTHS)]
    return SyncVectorEnv(makers, autoreset_mode=mode, **options)


def happened(number: int, lengths: Sequence[int]) -> Iterator[Row]:
    """All that happens in an environment, with ρ = 1."""
    episode = 0
    while True:
        length = lengths[episode % len(lengths)]
        for time in range(length):
            terminates = time + 1 == length and ENDINGS[episode % 3][0]
            here, after = [float(number), float(episode), float(time)], [float(number), float(episode), time + 1.0]
            yield here, time + 1.0, after, 0.0 if terminates else GAMMA, GAMMA if time else 0.0, 1.0
        episode += 1


def row_of(t: Transition) -> Row:
    assert isinstance(t.x, np.ndarray)
    assert isinstance(t.x_next, np.ndarray)
    assert isinstance(t.reward, float)
    return t.x.tolist(), t.reward, t.x_next.tolist(), t.discount, t.trace_discount, t.rho


def rows_of(steps: Transitions) -> list[Row]:
    return [row_of(t) for t in steps]


def check_happened(steps: Transitions, n_steps: int) -> list[int]:
    """Exactly what happened first in each environment, one after another; return how many steps of each."""
    rows = rows_of(steps)
    assert len(rows) == n_steps
    numbers = [int(row[0][0]) for row in rows]
    assert numbers == sorted(numbers)
    counts = [numbers.count(number) for number in range(3)]
    expected = [row for i, count in enumerate(counts) for row in islice(happened(i, LENGTHS[i]), count)]
    assert rows == expected
    n_episodes = len({(row[0][0], row[0][1]) for row in rows})
    assert steps.store.shape[0] == n_steps + n_episodes  # every observation once
    return counts


class TestWhatHappened:
    @pytest.mark.parametrize("n_steps", [1, 2, 3, 4, 5, 50, 500])
    def test_one(self, n_steps: int) -> None:
        env = Counting()
        steps = from_gymnasium(env, idle, Same(), n_steps=n_steps, gamma=GAMMA, seed=0)
        assert rows_of(steps) == list(islice(happened(0, LENGTHS[0]), n_steps))
        check_happened(steps, n_steps)
        assert env.n_steps == n_steps
        assert env.n_resets == len({row[0][1] for row in rows_of(steps)})  # none after the last step

    @pytest.mark.parametrize("n_steps", [1, 2, 3, 4, 7, 50, 500])
    @pytest.mark.parametrize("mode", MODES)
    def test_many(self, mode: AutoresetMode, n_steps: int) -> None:
        counts = check_happened(from_gymnasium(sync(mode), idle, Same(), n_steps=n_steps, gamma=GAMMA, seed=0), n_steps)
        if mode is not AutoresetMode.NEXT_STEP:  # each round moves all; the last one, the first of them
            assert counts == [(n_steps + 2 - i) // 3 for i in range(3)]
        elif n_steps == 500:  # a round is lost after each episode: longer episodes, more steps
            assert counts[1] > counts[0] > counts[2] > 0

    @pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # Python 3.12, of the threads of pytest-xdist
    @pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
    def test_many_in_processes(self, mode: str) -> None:
        makers = [partial(Counting, number, lengths) for number, lengths in enumerate(LENGTHS)]
        env = AsyncVectorEnv(makers, autoreset_mode=mode)
        try:
            check_happened(from_gymnasium(env, idle, Same(), n_steps=100, gamma=GAMMA, seed=0), 100)
        finally:
            env.close()

    @pytest.mark.parametrize("mode", MODES)
    def test_again(self, mode: AutoresetMode) -> None:
        """Recording begins with a reset, wherever the last recording stopped."""
        env = sync(mode)
        for n_steps in range(1, 30):
            check_happened(from_gymnasium(env, idle, Same(), n_steps=n_steps, gamma=GAMMA, seed=0), n_steps)

    def test_expectation_by_hand(self) -> None:
        """The first steps of the second environment, whose episodes have 2 steps, then 5."""
        assert list(islice(happened(1, LENGTHS[1]), 8)) == [
            ([1, 0, 0], 1, [1, 0, 1], 0.9, 0.0, 1.0),
            ([1, 0, 1], 2, [1, 0, 2], 0.0, 0.9, 1.0),  # terminated
            ([1, 1, 0], 1, [1, 1, 1], 0.9, 0.0, 1.0),
            ([1, 1, 1], 2, [1, 1, 2], 0.9, 0.9, 1.0),
            ([1, 1, 2], 3, [1, 1, 3], 0.9, 0.9, 1.0),
            ([1, 1, 3], 4, [1, 1, 4], 0.9, 0.9, 1.0),
            ([1, 1, 4], 5, [1, 1, 5], 0.9, 0.9, 1.0),  # truncated
            ([1, 2, 0], 1, [1, 2, 1], 0.9, 0.0, 1.0),
        ]

    def test_a_policy_sees_what_happens(self) -> None:
        seen: list[list[float]] = []

        def policy(observation: Any) -> int:
            seen.append(observation.tolist())
            return 0

        steps = from_gymnasium(Counting(), policy, Same(), n_steps=30, gamma=GAMMA, seed=0)
        assert seen == [row[0] for row in rows_of(steps)]

    @pytest.mark.parametrize("mode", MODES)
    def test_numbers_as_observations(self, mode: AutoresetMode) -> None:
        """An environment of 6 states: its step."""

        def one_hot(state: Any) -> FloatArray:
            hot: FloatArray = np.equal.outer(state, np.arange(6)).astype(np.float64)
            return hot

        class Table(Same):
            def encode_many(self, states: Any, /) -> FloatArray:
                assert states.shape[1] == 1
                return one_hot(states[:, 0])

        def steps_only(number: int = 0, lengths: Sequence[int] = LENGTHS[0]) -> gymnasium.Env[Any, Any]:
            counting = Counting(number, lengths)
            env: gymnasium.Env[Any, Any] = TransformObservation(counting, lambda o: np.int64(o[2]), spaces.Discrete(6))
            return env

        def check(steps: Transitions, expected: list[Row]) -> None:
            rows = rows_of(steps)
            for row, other in zip(rows, expected, strict=True):
                assert row == (one_hot(other[0][2]).tolist(), other[1], one_hot(other[2][2]).tolist(), *other[3:])

        single = from_gymnasium(steps_only(), lambda _: 0, Table(6), n_steps=40, gamma=GAMMA, seed=0)
        check(single, list(islice(happened(0, LENGTHS[0]), 40)))
        arrays = from_gymnasium(sync(mode), idle, Same(), n_steps=40, gamma=GAMMA, seed=0)
        many = from_gymnasium(sync(mode, steps_only), lambda o: 0 * o, Table(6), n_steps=40, gamma=GAMMA, seed=0)
        check(many, rows_of(arrays))

    def test_matrices_as_observations(self) -> None:
        space = spaces.Box(0.0, 1e6, (3, 1), np.float64)
        env = TransformObservation(Counting(), lambda o: o.reshape(3, 1), space)
        check_happened(from_gymnasium(env, lambda _: 0, Same(), n_steps=20, gamma=GAMMA, seed=0), 20)


class TestWrappers:
    @pytest.mark.parametrize("n_steps", [3, 20])
    def test_time_limits_bootstrap(self, n_steps: int) -> None:
        limited: gymnasium.Env[Any, Any] = TimeLimit(Counting(0, (5, 2)), 3)  # truncated after 3, terminated after 2
        rows = rows_of(from_gymnasium(limited, idle, Same(), n_steps=n_steps, gamma=GAMMA, seed=0))
        expected = list(islice(happened(0, (3, 2)), n_steps))
        for episode in range(0, 8, 2):  # the cut ones
            last: Row = ([0.0, float(episode), 2.0], 3.0, [0.0, float(episode), 3.0], GAMMA, GAMMA, 1.0)
            expected = [last if row[0] == last[0] else row for row in expected]
        assert rows == expected

    def test_time_limits_of_many(self) -> None:
        limited = [partial(lambda i: TimeLimit(Counting(i, (50,)), 4 + i), i) for i in range(3)]
        for mode in MODES:
            steps = from_gymnasium(
                SyncVectorEnv(limited, autoreset_mode=mode), idle, Same(), n_steps=120, gamma=GAMMA, seed=0
            )
            assert_array_equal(steps.discounts, GAMMA)
            for here, reward, after, _, trace_discount, _ in rows_of(steps):
                assert after == [here[0], here[1], here[2] + 1.0]
                assert reward == after[2] <= 4 + here[0]
                assert (trace_discount == 0.0) == (here[2] == 0.0)

    def test_an_environment_that_resets_itself(self) -> None:
        check_happened(from_gymnasium(Autoreset(Counting()), idle, Same(), n_steps=50, gamma=GAMMA, seed=0), 50)

    def test_statistics(self) -> None:
        one = gymnasium.wrappers.RecordEpisodeStatistics(Counting())
        many = gymnasium.wrappers.vector.RecordEpisodeStatistics(sync("SameStep"))
        check_happened(from_gymnasium(one, idle, Same(), n_steps=50, gamma=GAMMA, seed=0), 50)
        check_happened(from_gymnasium(many, idle, Same(), n_steps=50, gamma=GAMMA, seed=0), 50)

    def test_gymnasiums_own_vectors(self) -> None:
        """CartPole in one array: each transition is one step of its dynamics, and episodes hang together."""
        env = gymnasium.make_vec("CartPole-v1", num_envs=4, vectorization_mode="vector_entry_point")

        def lean(observations: Any) -> Any:
            return (observations[..., 2] > 0.0).astype(np.int64)

        steps = from_gymnasium(env, lean, Same(4), n_steps=400, gamma=GAMMA, seed=0)
        single: Any = CartPoleEnv()
        n_ends = 0
        before: Row | None = None
        for row in rows_of(steps):
            single.reset()
            single.state = np.array(row[0])
            after, _, terminated, _, _ = single.step(int(lean(np.array(row[0]))))
            assert_allclose(row[2], after, atol=1e-5)
            assert row[3] == (0.0 if terminated else GAMMA)
            if row[4] > 0.0:
                assert before is not None
                assert before[2] == row[0]
            else:
                assert np.abs(row[0]).max() <= 0.05  # where episodes start
            n_ends += terminated
            before = row
        assert n_ends >= 4
        assert (steps.trace_discounts == 0.0).sum() in range(n_ends, n_ends + 5)


class TestReusedMemory:
    def test_one(self) -> None:
        check_happened(from_gymnasium(Reusing(), idle, Same(), n_steps=50, gamma=GAMMA, seed=0), 50)

    @pytest.mark.parametrize("mode", ["NextStep", "Disabled"])
    def test_many(self, mode: str) -> None:
        """In the mode SAME_STEP, Gymnasium itself loses the final observations of such environments."""
        check_happened(
            from_gymnasium(sync(mode, Reusing, copy=False), idle, Same(), n_steps=50, gamma=GAMMA, seed=0), 50
        )

    @pytest.mark.parametrize("mode", MODES)
    def test_vectors(self, mode: AutoresetMode) -> None:
        """A vector environment that returns the same four arrays at each step."""

        class Overwriting(VectorWrapper[Any, Any, Any, Any, Any]):
            def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
                *arrays, infos = self.env.step(actions)
                if not hasattr(self, "kept"):
                    self.kept = arrays
                for kept, array in zip(self.kept, arrays, strict=True):
                    kept[:] = array
                return (*self.kept, infos)

        env = Overwriting(sync(mode, copy=False))
        check_happened(from_gymnasium(env, idle, Same(), n_steps=50, gamma=GAMMA, seed=0), 50)

    def test_a_policy_that_writes(self) -> None:
        def careless(observation: Any) -> Any:
            action = idle(observation)
            observation[:] = -1.0
            return action

        environments: list[Any] = [Counting(), *(sync(mode) for mode in MODES)]
        for env in environments:
            check_happened(from_gymnasium(env, careless, Same(), n_steps=50, gamma=GAMMA, seed=0), 50)

    def test_little_is_kept(self) -> None:
        from_gymnasium(Counting(), idle, Same(), n_steps=10, gamma=GAMMA)
        tracemalloc.start()
        try:
            from_gymnasium(Counting(), idle, Same(), n_steps=10_000, gamma=GAMMA)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 10_000 * 250  # bytes per step, of which 80 are those of the result


class TestRatios:
    """ρ = 1 + step/10 + action/100; the actions are a function of the observation."""

    @staticmethod
    def policy(observation: Any) -> Any:
        return (observation[..., 1] + observation[..., 2]).astype(np.int64) % 5

    def ratio(self, observation: Any, action: Any) -> Any:
        return 1.0 + observation[..., 2] / 10.0 + action / 100.0

    def check(self, steps: Transitions) -> None:
        here = np.array([row[0] for row in rows_of(steps)])
        assert_array_equal(steps.rhos, self.ratio(here, self.policy(here)))
        assert np.unique(steps.rhos).size > 5

    def test_one(self) -> None:
        self.check(from_gymnasium(Counting(), self.policy, Same(), n_steps=50, gamma=GAMMA, seed=0, ratio=self.ratio))

    @pytest.mark.parametrize("mode", MODES)
    def test_many(self, mode: AutoresetMode) -> None:
        self.check(from_gymnasium(sync(mode), self.policy, Same(), n_steps=90, gamma=GAMMA, seed=0, ratio=self.ratio))

    def test_rows_that_only_reset_need_none(self) -> None:
        def ratio(observations: Any, actions: Any) -> Any:
            last = [LENGTHS[i][int(e) % len(LENGTHS[i])] == t for i, (_, e, t) in enumerate(observations)]
            return np.where(last, np.nan, self.ratio(observations, actions))

        self.check(from_gymnasium(sync(), self.policy, Same(), n_steps=90, gamma=GAMMA, seed=0, ratio=ratio))

    def test_an_array_of_one_is_a_number(self) -> None:
        steps = from_gymnasium(Counting(), idle, Same(), n_steps=5, gamma=GAMMA, ratio=lambda o, a: np.array([0.5]))
        assert_array_equal(steps.rhos, 0.5)

    @pytest.mark.parametrize(
        ("env", "ratio", "message"),
        [
            (Counting, lambda o, a: -1.0, r"rho is -1\.0: an importance ratio is a finite number >= 0"),
            (Counting, lambda o, a: np.nan, "rho is nan"),
            (Counting, lambda o, a: [1.0, 1.0], r"the importance ratio is \[1\.0, 1\.0\]: it has to be one number"),
            (Counting, lambda o, a: "1/2", "the importance ratio is '1/2'"),
            (sync, lambda o, a: [1.0, 1.0, -2.0], r"rho is -2\.0"),
            (sync, lambda o, a: 1.0, r"ratio returned shape \(\) for 3 sub-environments: return one number for each"),
            (sync, lambda o, a: np.ones((3, 1)), r"ratio returned shape \(3, 1\)"),
        ],
    )
    def test_refused(self, env: Any, ratio: Any, message: str) -> None:
        with pytest.raises(InvalidInputError, match=message):
            from_gymnasium(env(), idle, Same(), n_steps=5, gamma=GAMMA, ratio=ratio)


class TestRandomActions:
    @pytest.mark.parametrize("vector", [False, True])
    def test_the_seed_decides(self, vector: bool) -> None:
        def recorded(seed: Any) -> list[Row]:
            env: Any = SyncVectorEnv([Echo, Echo]) if vector else Echo()
            return rows_of(from_gymnasium(env, None, Same(1), n_steps=30, gamma=GAMMA, seed=seed))

        first = recorded(3)
        assert recorded(3) == first
        assert recorded(np.int64(3)) == first
        assert recorded(4)[0] != first[0]
        assert recorded(None)[0] != recorded(None)[0]

    def test_actions_are_independent_of_the_environment(self) -> None:
        pairs = []
        for seed in range(300):
            ((here, reward, *_),) = rows_of(from_gymnasium(Echo(), None, Same(1), n_steps=1, gamma=GAMMA, seed=seed))
            pairs.append([here[0], reward])
        assert abs(np.corrcoef(np.array(pairs).T)[0, 1]) < 0.2

    def test_without_a_seed_the_space_keeps_its_own(self) -> None:
        def actions() -> FloatArray:
            env = Echo()
            env.action_space.seed(5)
            return from_gymnasium(env, None, Same(1), n_steps=20, gamma=GAMMA).rewards

        assert_array_equal(actions(), actions())

    def test_a_policy_leaves_the_space_alone(self) -> None:
        env, other = Echo(), Echo()
        for each in (env, other):
            each.action_space.seed(1)
        from_gymnasium(env, lambda _: np.zeros(1), Same(1), n_steps=20, gamma=GAMMA, seed=2)
        assert_array_equal(env.action_space.sample(), other.action_space.sample())


# --- the library's own environments -----------------------------------------------------------------------------------

POLICIES: dict[str, Callable[[Any], Any]] = {
    "MountainCar": lambda o: np.where(o[..., 1] >= 0.0, 2, 0),
    "Pendulum": lambda o: np.sin(3.0 * o[..., :1] + o[..., 1:]),
    "EnergyStorage": lambda o: np.cos(o[..., :1] + o[..., 2:3]),
}


def by_hand(name: str, features: Any, n_steps: int, seed: int, gamma: float) -> Iterator[Transition]:
    """The transitions of a domain, stepped without Gymnasium."""
    domain, rng, build = DOMAINS[name](), np.random.default_rng(seed), TransitionBuilder(gamma)
    states = domain.start(1, rng)
    build.reset(features.encode(domain.observe(states)[0]))
    time = 0
    for _ in range(n_steps):
        action = POLICIES[name](domain.observe(states)[0])
        actions = domain.action_bounds[1] * action if domain.actions is None else domain.actions[[action]]
        states, rewards, (terminated,) = domain.step(states, actions, rng)
        time += 1
        truncated = time == domain.episode_cap
        x_next = features.encode(domain.observe(states)[0])
        yield build.step(rewards[0], x_next, terminated=bool(terminated), truncated=truncated)
        if terminated or truncated:
            states, time = domain.start(1, rng), 0
            build.reset(features.encode(domain.observe(states)[0]))


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_own_environments_are_their_domains(name: str) -> None:
    size = DOMAINS[name]().low.size
    env = gymnasium.make(f"tlstd/{name}-v0")
    recorded = rows_of(from_gymnasium(env, POLICIES[name], Same(size), n_steps=1000, gamma=0.95, seed=7))
    assert recorded == [row_of(t) for t in by_hand(name, Same(size), 1000, 7, 0.95)]
    n_starts = sum(row[4] == 0.0 for row in recorded)
    assert n_starts == 1 if name == "EnergyStorage" else n_starts >= 5


@cache
def cars_by_hand(seed: int) -> list[Row]:
    return [row_of(t) for t in by_hand("MountainCar", Same(2), 900, seed, 0.95)]


@pytest.mark.parametrize("mode", MODES)
def test_own_environments_side_by_side(mode: AutoresetMode) -> None:
    env = gymnasium.make_vec(
        next(name for name in ENVIRONMENTS if "MountainCar" in name),
        num_envs=3,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": mode},
    )
    steps = from_gymnasium(env, POLICIES["MountainCar"], Same(2), n_steps=900, gamma=0.95, seed=20)
    recorded = rows_of(steps)
    at = 0
    first = int(np.random.SeedSequence(20, spawn_key=(1,)).generate_state(1)[0])
    for i in range(3):
        expected = cars_by_hand(first + i)
        count = next((n for n in range(900 - at) if recorded[at + n] != expected[n]), 900 - at)
        assert count > 250
        at += count
    assert at == 900


def test_neighbouring_seeds_share_nothing() -> None:
    def starts(seed: int | np.random.SeedSequence) -> set[bytes]:
        env = gymnasium.make_vec("CartPole-v1", num_envs=4, vectorization_mode="sync")
        steps = from_gymnasium(env, idle, Same(4), n_steps=400, gamma=GAMMA, seed=seed)
        return {np.asarray(t.x).tobytes() for t in steps if t.trace_discount == 0.0}

    children = np.random.SeedSequence(0).spawn(2)
    runs = [*map(starts, (0, 1, 2)), *map(starts, children)]
    assert starts(0) == runs[0]
    assert len(set().union(*runs)) == sum(len(run) for run in runs)


@pytest.mark.parametrize("lambda_", [0.0, 0.8])
def test_learning(lambda_: float) -> None:
    """LSTD from recorded transitions, at once, and from transitions built step by step."""
    car = MountainCar()
    tiles = TileCoder(car.low, car.high, tiles=5, tilings=4)
    recorded, single = (LSTD(tiles.n_features, lambda_=lambda_) for _ in range(2))
    env = gymnasium.make("tlstd/MountainCar-v0")
    recorded.update_many(from_gymnasium(env, POLICIES["MountainCar"], tiles, n_steps=1000, gamma=0.95, seed=1))
    for transition in by_hand("MountainCar", tiles, 1000, 1, 0.95):
        single.update(transition)
    assert_allclose(recorded.weights, single.weights, rtol=1e-12, atol=1e-12)
    assert np.abs(single.weights).max() > 1.0


@pytest.mark.parametrize("mode", MODES)
def test_learning_from_many(mode: AutoresetMode) -> None:
    recorded, single = LSTD(3, lambda_=0.8), LSTD(3, lambda_=0.8)
    steps = from_gymnasium(sync(mode), idle, Same(), n_steps=200, gamma=GAMMA, seed=0)
    recorded.update_many(steps)
    build = TransitionBuilder(GAMMA)
    for i, count in enumerate(check_happened(steps, 200)):
        for here, reward, after, discount, trace_discount, _ in islice(happened(i, LENGTHS[i]), count):
            if trace_discount == 0.0:
                build.reset(here)
            single.update(build.step(reward, after, terminated=discount == 0.0))
    assert_allclose(recorded.weights, single.weights, rtol=1e-12, atol=1e-12)
    assert np.abs(single.weights).max() > 0.1


# --- misuse -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"env": "CartPole-v1"}, r"env is 'CartPole-v1': pass a Gymnasium environment, e\.g\. gymnasium\.make\("),
        ({"env": None}, r"env is None: .*gymnasium\.make\("),
        ({"env": CartPoleEnv}, r"env is <class .*gymnasium\.make\("),
        ({"env": MountainCar()}, r"gymnasium\.make\("),
        ({"policy": 3}, "policy is 3: pass a function from an observation to an action, or None"),
        ({"policy": MountainCar().policy()}, "policy is .*: pass a function from an observation"),
        ({"features": None}, r"features is None: pass a feature map, e\.g\. tlstd\.TileCoder"),
        ({"n_steps": 0}, "n_steps is 0: it must be an integer >= 1"),
        ({"n_steps": -3}, "n_steps is -3"),
        ({"n_steps": 2.0}, r"n_steps is 2\.0"),
        ({"n_steps": True}, "n_steps is True"),
        ({"gamma": 1.1}, r"gamma is 1\.1: the discount lies in \[0, 1\]"),
        ({"gamma": -0.1}, r"gamma is -0\.1"),
        ({"gamma": np.nan}, "gamma is nan"),
        ({"gamma": "0.9"}, r"gamma is '0\.9'"),
        ({"gamma": None}, "gamma is None"),
        ({"seed": -1}, "seed is -1: it must be an integer >= 0"),
        ({"seed": 0.5}, r"seed is 0\.5"),
        ({"seed": [1, 2]}, r"seed is \[1, 2\]"),
        ({"ratio": 1.0}, r"ratio is 1\.0: pass a function of observation and action, or None"),
    ],
)
@pytest.mark.parametrize("vector", [False, True])
def test_bad_arguments(vector: bool, changes: dict[str, Any], message: str) -> None:
    singles = [Counting(), Counting(1), Counting(2)]
    env: Any = SyncVectorEnv([partial(lambda single: single, single) for single in singles]) if vector else singles[0]
    good: dict[str, Any] = {"env": env, "policy": idle, "features": Same(), "n_steps": 5, "gamma": 0.5, "seed": 0}
    with pytest.raises(InvalidParameterError, match=message):
        from_gymnasium(**{**good, **changes})
    assert not any(single.n_resets for single in singles)


class Structured(Counting):
    """Observations that are no arrays."""

    def __init__(self, space: spaces.Space[Any]) -> None:
        super().__init__()
        self.observation_space = space

    def seen(self) -> Any:
        number, episode, time = super().seen()
        return {"where": np.array([number, episode]), "when": np.array([time])}


PARTS: dict[str, spaces.Space[Any]] = {
    "where": spaces.Box(0.0, 1e6, (2,), np.float64),
    "when": spaces.Box(0.0, 1e6, (1,), np.float64),
}


@pytest.mark.parametrize(
    "space", [spaces.Dict(PARTS), spaces.Tuple(PARTS.values()), spaces.Text(5), spaces.Sequence(PARTS["where"])]
)
@pytest.mark.parametrize("vector", [False, True])
def test_structured_observations_are_refused(space: spaces.Space[Any], vector: bool) -> None:
    single = Structured(space)
    env: Any = SyncVectorEnv([lambda: single]) if vector else single
    wrapper = "vector.FlattenObservation" if vector else "FlattenObservation"
    message = rf"the observation space is {type(space).__name__}.*: wrap the environment in gymnasium\.wrappers\."
    with pytest.raises(InvalidInputError, match=message) as error:
        from_gymnasium(env, lambda _: 0, Same(), n_steps=5, gamma=GAMMA)
    assert str(error.value).endswith(f"gymnasium.wrappers.{wrapper}")
    assert single.n_resets == single.n_steps == 0


def test_structured_observations_may_be_flattened() -> None:
    space = spaces.Dict(PARTS)  # in the order of their names: when, where
    expected = [
        ([t, n, e], r, [t_, n_, e_], *more) for (n, e, t), r, (n_, e_, t_), *more in islice(happened(0, LENGTHS[0]), 40)
    ]
    one = FlattenObservation(Structured(space))
    assert rows_of(from_gymnasium(one, idle, Same(), n_steps=40, gamma=GAMMA, seed=0)) == expected
    many = gymnasium.wrappers.vector.FlattenObservation(SyncVectorEnv([lambda: Structured(space)]))
    assert rows_of(from_gymnasium(many, idle, Same(), n_steps=40, gamma=GAMMA, seed=0)) == expected


class TestFeatures:
    @pytest.mark.parametrize("env", [Counting, sync])
    def test_those_that_do_not_fit_fail_before_the_first_step(self, env: Any) -> None:
        def policy(_: Any) -> Any:
            raise AssertionError("too late")

        with pytest.raises(InvalidInputError, match=r"encode_many returned shape \(1, 3\) for 1 .* n_features=4: retu"):
            from_gymnasium(env(), policy, Same(4), n_steps=5, gamma=GAMMA)
        with pytest.raises(InvalidInputError, match=r"shape \(1, 3\)"):
            from_gymnasium(env(), policy, TileCoder([0, 0], [1, 1], tiles=2, tilings=1), n_steps=5, gamma=GAMMA)

    def test_a_row_for_each_observation(self) -> None:
        class Short(Same):
            def encode_many(self, states: Any, /) -> FloatArray:
                return super().encode_many(states)[:3]

        with pytest.raises(InvalidInputError, match=r"returned shape \(3, 3\) for 7 observations"):
            from_gymnasium(Counting(), idle, Short(), n_steps=5, gamma=GAMMA)


class Quiet(VectorWrapper[Any, Any, Any, Any, Any]):
    """A vector environment that does not say when it resets itself, as those of Gymnasium 1.0."""

    metadata = {}  # noqa: RUF012

    @property
    def unwrapped(self) -> Self:
        return self


class TestEnvironmentsThatDoWrong:
    def test_silence_means_the_next_step(self) -> None:
        check_happened(from_gymnasium(Quiet(sync()), idle, Same(), n_steps=50, gamma=GAMMA, seed=0), 50)

    def test_silence_about_the_same_step(self) -> None:
        with pytest.raises(InvalidInputError, match=r"no autoreset_mode: set env\.metadata\['autoreset_mode'\] = "):
            from_gymnasium(Quiet(sync("SameStep")), idle, Same(), n_steps=50, gamma=GAMMA, seed=0)

    @pytest.mark.parametrize("mode", MODES)
    def test_metadata_of_another(self, mode: AutoresetMode) -> None:
        """Up to Gymnasium 1.3 the metadata are those of the class, with the mode that was used last."""
        env = sync(mode)
        env.metadata["autoreset_mode"] = MODES[(MODES.index(mode) + 1) % 3]
        check_happened(from_gymnasium(env, idle, Same(), n_steps=50, gamma=GAMMA, seed=0), 50)

    @pytest.mark.parametrize("mode", MODES)
    def test_metadata_alone(self, mode: AutoresetMode) -> None:
        env = Quiet(sync(mode))
        for stated in (mode, mode.value):
            env.metadata = {"autoreset_mode": stated}
            check_happened(from_gymnasium(env, idle, Same(), n_steps=50, gamma=GAMMA, seed=0), 50)

    def test_an_unknown_mode(self) -> None:
        env = Quiet(sync())
        env.metadata = {"autoreset_mode": "Sometimes"}
        with pytest.raises(InvalidInputError, match="'Sometimes': one of NextStep, SameStep, Disabled is understood"):
            from_gymnasium(env, idle, Same(), n_steps=50, gamma=GAMMA)

    @pytest.mark.parametrize("loss", ["all", "one", "masked"])
    def test_no_final_observation(self, loss: str) -> None:
        class Losing(VectorWrapper[Any, Any, Any, Any, Any]):
            def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
                *step, infos = self.env.step(actions)
                if loss == "all":
                    infos.pop("final_obs", None)
                elif loss == "one" and "final_obs" in infos:
                    infos["final_obs"][:] = None
                elif "final_obs" in infos:
                    infos["_final_obs"][:] = False
                return (*step, infos)

        with pytest.raises(InvalidInputError, match=r"sub-environment 2 ended .* without infos\['final_obs'\]"):
            from_gymnasium(Losing(sync("SameStep")), idle, Same(), n_steps=50, gamma=GAMMA, seed=0)

    def test_observations_of_two_sizes(self) -> None:
        class Growing(Counting):
            def seen(self) -> Any:
                return super().seen()[: 3 - self.time]

        with pytest.raises(InvalidInputError, match="an observation has 2 numbers and the first one had 3"):
            from_gymnasium(Growing(), idle, Same(), n_steps=5, gamma=GAMMA)

    def test_observations_that_are_not_of_their_space(self) -> None:
        class Lying(Counting):
            def seen(self) -> Any:
                return {"x": 1.0}

        with pytest.raises(InvalidInputError, match="an observation is a dict that is no array of numbers"):
            from_gymnasium(Lying(), lambda _: 0, Same(), n_steps=5, gamma=GAMMA)

    @pytest.mark.parametrize("reward", [[1.0, 2.0], [], "much"])
    def test_rewards_that_are_no_numbers(self, reward: Any) -> None:
        class Odd(Counting):
            def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
                observation, _, *flags, info = super().step(action)
                return (observation, reward, *flags, info)

        with pytest.raises(InvalidInputError, match=r"the reward is .*: it has to be one number"):
            from_gymnasium(Odd(), idle, Same(), n_steps=5, gamma=GAMMA)


def test_actions_are_kept() -> None:
    env = gymnasium.make("CartPole-v1")
    coder = TileCoder([-3.0] * 4, [3.0] * 4, tiles=2, tilings=1)
    taken: list[int] = []

    def policy(observation: Any) -> int:
        taken.append(len(taken) % 2)
        return taken[-1]

    steps = from_gymnasium(env, policy, coder, n_steps=30, gamma=0.9, seed=0)
    assert steps.actions is not None
    assert steps.actions.tolist() == taken
    assert steps[3:9].actions.tolist() == taken[3:9]  # type: ignore[union-attr]
    envs = gymnasium.make_vec("CartPole-v1", num_envs=3)
    many = from_gymnasium(envs, lambda seen: np.arange(3) % 2, coder, n_steps=30, gamma=0.9, seed=0)
    assert many.actions is not None
    assert [int(a) for a in many.actions] == [0] * 10 + [1] * 10 + [0] * 10


def test_actions_that_share_an_array_are_copied() -> None:
    env = gymnasium.make("Pendulum-v1")
    buffer = np.zeros(1, dtype=np.float32)

    def policy(observation: Any) -> Any:
        buffer[0] += 0.01
        return buffer

    steps = from_gymnasium(env, policy, Columns(3), n_steps=5, gamma=0.9, seed=0)
    assert steps.actions is not None
    np.testing.assert_allclose(steps.actions[:, 0], 0.01 * np.arange(1, 6), rtol=1e-5)
