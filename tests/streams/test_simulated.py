"""Streams of domains: the same as single steps, determined by their seed, right at the ends of episodes."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from tlstd_lab.energy_programme import greedy

from tlstd.core.arrays import FloatArray
from tlstd.domains.base import Domain, Step
from tlstd.domains.energy_storage import EnergyStorage
from tlstd.domains.mountain_car import MountainCar
from tlstd.domains.pendulum import Pendulum
from tlstd.domains.policies import EpsilonGreedy, Policy
from tlstd.errors import InvalidInputError, InvalidParameterError
from tlstd.features.tile_coding import TileCoder
from tlstd.streams import Trajectory, encode, record, stream, trajectory

CAR, PENDULUM, STORAGE = MountainCar(), Pendulum(), EnergyStorage()
CARELESS = EpsilonGreedy(CAR.policy(), [-1, 0, 1], epsilon=0.2)


class Affine:
    """One and the state; counts what it encodes."""

    def __init__(self, size: int = 2) -> None:
        self.n_features = size + 1
        self.n_encoded = 0

    def encode(self, state: Any, /) -> FloatArray:
        return np.concatenate([[1.0], state])

    def encode_many(self, states: Any, /) -> FloatArray:
        self.n_encoded += len(states)
        return np.column_stack([np.ones(len(states)), states])


class Drift(Domain):
    """A random walk to the right from 0 that ends beyond 5, with random rewards."""

    name = "Drift"
    state_names = ("x",)
    gamma = 0.9
    noise_size = 2
    start_noise_size = 1
    low, high = np.array([0.0]), np.array([7.0])
    reward_bound = 1.0
    action_bounds = (0.0, 1.0)

    def policy(self) -> Policy:
        raise NotImplementedError

    def _step(self, states: FloatArray, actions: FloatArray, noise: FloatArray) -> Step:
        after = states + actions[:, None] * noise[:, :1]
        return Step(after, noise[:, 1], after[:, 0] > 5.0)

    def _start(self, noise: FloatArray) -> FloatArray:
        return noise


SETTINGS: dict[str, tuple[Domain, dict[str, Any]]] = {
    "car": (CAR, {}),
    "capped car": (CAR, {"episode_cap": 30}),
    "random policy": (CAR, {"policy": CARELESS}),
    "off-policy": (CAR, {"behaviour": CARELESS, "episode_cap": 50}),
    "given starts": (CAR, {"starts": [[0.4, 0.06], [-0.5, 0.0], [0.55, -0.01]]}),
    "pendulum": (PENDULUM, {}),
    "random steps": (Drift(), {"policy": lambda states: np.ones(len(states))}),
    "storage": (STORAGE, {"policy": greedy(STORAGE)}),
    "storage in episodes": (STORAGE, {"policy": greedy(STORAGE), "episode_cap": 40}),
    "random storage": (STORAGE, {"policy": EpsilonGreedy(greedy(STORAGE), np.arange(-5.0, 6.0), 0.3)}),
}


def path_of(name: str, n_steps: int, seed: int = 0) -> Trajectory:
    domain, more = SETTINGS[name]
    return trajectory(domain, n_steps=n_steps, seed=seed, **more)


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("n_steps", [1, 2, 400])
def test_recorded_is_one_by_one(name: str, n_steps: int) -> None:
    domain, more = SETTINGS[name]
    more = {"policy": None, **more}
    features = Affine(domain.low.size)
    recorded = record(domain, features=features, n_steps=n_steps, seed=5, gamma=0.7, **more)
    assert len(recorded) == n_steps
    assert features.n_encoded == recorded.store.shape[0]  # every state once
    for ours, single in zip(recorded, stream(domain, features=features, seed=5, gamma=0.7, **more), strict=False):
        assert_array_equal(ours.x, single.x)
        assert_array_equal(ours.x_next, single.x_next)
        for part in ("reward", "discount", "trace_discount", "rho"):
            assert getattr(ours, part) == getattr(single, part), part


@pytest.mark.parametrize("episode_cap", [None, 30])
@pytest.mark.parametrize("n_steps", [1, 50, 3000])
def test_stream_is_that_of_a_literal_loop(n_steps: int, episode_cap: int | None) -> None:
    recorded = record(CAR, None, Affine(), n_steps=n_steps, seed=0, gamma=0.9, episode_cap=episode_cap)
    starts = iter(CAR.start(n_steps, np.random.default_rng(0)))
    length, state = 0, np.empty(2)
    for transition in recorded:
        if length == 0:
            state = next(starts)
        assert_array_equal(transition.x, [1.0, *state])
        following, reward, terminated = CAR.step(state[None], [1.0 if state[1] >= 0.0 else -1.0])
        assert_array_equal(transition.x_next, [1.0, *following[0]])
        assert transition.reward == reward[0] == -1.0
        assert transition.discount == (0.0 if terminated[0] else 0.9)
        assert transition.trace_discount == (0.0 if length == 0 else 0.9)
        state = following[0]
        length = 0 if terminated[0] or length + 1 == episode_cap else length + 1


@pytest.mark.parametrize("name", SETTINGS)
def test_a_longer_stream_begins_with_the_shorter(name: str) -> None:
    short, long = path_of(name, 313), path_of(name, 5000)
    assert_array_equal(short.states[short.rows], long.states[long.rows[:313]])
    assert_array_equal(short.states[short.rows + 1], long.states[long.rows[:313] + 1])
    for part in ("actions", "rewards", "terminated", "rhos"):
        assert_array_equal(getattr(short, part), getattr(long, part)[:313])
    assert_array_equal(short.truncated[:-1], long.truncated[:312])


@pytest.mark.parametrize("name", SETTINGS)
def test_flags_and_rows(name: str) -> None:
    path = path_of(name, 3000)
    domain, more = SETTINGS[name]
    cap = more.get("episode_cap", domain.episode_cap)
    ends = np.flatnonzero(path.terminated | path.truncated)
    assert not (path.terminated & path.truncated).any()
    assert ends[-1] == 2999
    lengths = np.diff(ends, prepend=-1)
    assert len(path.states) == 3000 + ends.size
    assert_array_equal(np.diff(path.rows), 1 + (path.terminated | path.truncated)[:-1])
    if cap is not None:
        assert lengths.max() <= cap
        assert_array_equal(lengths[path.truncated[ends]][:-1], cap)
    else:
        assert path.truncated.sum() <= 1


def test_seeds() -> None:
    a, b, c = (path_of("random policy", 500, seed).states for seed in (0, 0, 1))
    assert_array_equal(a, b)
    assert not np.array_equal(a[:100], c[:100])
    root = np.random.SeedSequence(7)
    children = [trajectory(CAR, CARELESS, n_steps=200, seed=s).states[0] for s in root.spawn(20)]
    assert np.unique(children, axis=0).shape == (20, 2)
    child = root.spawn(1)[0]
    twice = [trajectory(CAR, CARELESS, n_steps=200, seed=child).states for _ in range(2)]
    assert_array_equal(twice[0], twice[1])
    rng = np.random.default_rng(3)
    first, second = (trajectory(CAR, CARELESS, n_steps=200, seed=rng).states for _ in range(2))
    assert not np.array_equal(first[:50], second[:50])
    again = trajectory(CAR, CARELESS, n_steps=200, seed=np.random.default_rng(3)).states
    assert_array_equal(first, again)


def test_episodes_and_starts_have_numbers_of_their_own() -> None:
    path = trajectory(Drift(), lambda states: np.ones(len(states)), n_steps=20_000, seed=0)
    starts = path.states[path.rows[np.concatenate([[0], np.flatnonzero(path.terminated)[:-1] + 1])], 0]
    moves = (path.states[path.rows + 1] - path.states[path.rows])[:, 0]
    for numbers in (path.rewards, moves, starts):
        assert np.unique(numbers).size > 0.99 * numbers.size
        assert abs(numbers.mean() - 0.5) < 5.0 / np.sqrt(12 * numbers.size)
    assert abs(np.corrcoef(path.rewards[1:], path.rewards[:-1])[0, 1]) < 0.05


def test_ratios() -> None:
    path = path_of("off-policy", 4000)
    agrees = path.actions == CAR.policy().function(path.states[path.rows])
    assert_allclose(path.rhos[agrees], 1.0 / (0.8 + 0.2 / 3.0))
    assert_array_equal(path.rhos[~agrees], 0.0)
    assert abs((~agrees).mean() - 0.2 * 2 / 3) < 0.02
    assert abs(path.rhos.mean() - 1.0) < 0.02
    on_policy = path_of("random policy", 100)
    assert_array_equal(on_policy.rhos, 1.0)


def test_a_policy_that_never_arrives_fills_the_stream() -> None:
    path = trajectory(CAR, lambda states: -CAR.policy().act(states, states[:, 0]), n_steps=5000, seed=0)
    assert path.truncated.sum() == 1
    assert len(path.rows) == 5000


def test_features_see_observations_only() -> None:
    tiles = TileCoder(STORAGE.low, STORAGE.high, tiles=[5, 5, 10, 5], tilings=4)
    path = trajectory(STORAGE, greedy(STORAGE), n_steps=300, seed=0)
    steps = encode(path, tiles, STORAGE)
    expected = tiles.encode_many(path.states[:, :4])
    assert (steps.store != sp.csr_array(expected)).nnz == 0
    assert_array_equal(steps.discounts, STORAGE.gamma)
    assert steps.trace_discounts[0] == 0.0
    assert_array_equal(steps.trace_discounts[1:], STORAGE.gamma)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"n_steps": 0}, InvalidParameterError, "n_steps is 0"),
        ({"n_steps": 2.5}, InvalidParameterError, r"n_steps is 2\.5"),
        ({"seed": -1}, InvalidParameterError, "seed is -1"),
        ({"seed": "x"}, InvalidParameterError, "seed is 'x'"),
        ({"gamma": 1.1}, InvalidParameterError, r"gamma is 1\.1"),
        ({"episode_cap": 0}, InvalidParameterError, "episode_cap is 0"),
        ({"starts": [[0.0]]}, InvalidInputError, r"states have shape \(1, 1\)"),
        ({"starts": np.zeros((0, 2))}, InvalidParameterError, "starts has no rows"),
        ({"policy": 3}, InvalidParameterError, "the policy is 3"),
        ({"policy": lambda states: np.full(len(states), 0.5)}, InvalidInputError, r"actions contain 0\.5"),
        ({"policy": lambda states: 1.0}, InvalidInputError, r"actions of shape \(\)"),
    ],
)
def test_refused(changes: dict[str, Any], error: type[Exception], message: str) -> None:
    good: dict[str, Any] = {"policy": None, "n_steps": 10, "seed": 0}
    with pytest.raises(error, match=message):
        record(CAR, features=Affine(), **{**good, **changes})


def test_a_stream_checks_at_once() -> None:
    with pytest.raises(InvalidParameterError, match="episode_cap is 0"):
        stream(CAR, None, Affine(), seed=0, episode_cap=0)


def test_features_of_the_wrong_shape() -> None:
    features = Affine()
    features.n_features = 4
    with pytest.raises(InvalidInputError, match=r"encode_many returned shape \(\d+, 3\) .* n_features=4"):
        record(CAR, None, features, n_steps=5, seed=0)


def test_behaviour_whose_parts_do_not_belong_together() -> None:
    class Wrong(EpsilonGreedy):
        def probability(self, states: FloatArray, actions: FloatArray) -> FloatArray:
            return np.zeros(len(states))

    with pytest.raises(InvalidParameterError, match="do not belong together"):
        trajectory(CAR, None, n_steps=5, seed=0, behaviour=Wrong(CAR.policy(), [-1, 0, 1], 0.5))


def test_an_endless_iterator() -> None:
    assert len(list(islice(stream(CAR, None, Affine(), seed=0), 1000))) == 1000
