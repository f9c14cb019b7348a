"""Streams of transitions from a domain and a policy, simulated many episodes at a time.

A stream is a sequence of episodes, each with its own random numbers: episode e starts at the e-th start drawn from the
seed, and everything else that is random in it comes from the e-th child of the seed. So a stream is a function of the
seed alone, however its steps are computed, and a longer stream begins with the shorter one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tlstd.core import parameters
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.parameters import Seed, seed_sequence
from tlstd.data.transitions import Transition, Transitions, trace_discounts
from tlstd.domains.base import Domain, check_domain
from tlstd.domains.policies import Policy, PolicyFunction, as_policy
from tlstd.errors import InvalidParameterError
from tlstd.features.base import FeatureMap, check_map
from tlstd.features.states import encoded_once

_MOST_EPISODES = 1 << 14  # simulated side by side
_EPISODES = 1  # the branch of the tree of seeds for them
_AHEAD = 32  # steps for which random numbers are drawn at once


class Trajectory(NamedTuple):
    """A stream of states: step t goes from ``states[rows[t]]`` to ``states[rows[t] + 1]``."""

    states: FloatArray
    """Episodes one after another, each with its final state: (n_steps + n_episodes, state_size)."""
    rows: IntArray
    actions: FloatArray
    rewards: FloatArray
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    rhos: FloatArray
    """Importance ratios; 1 if the stream is on-policy."""


def record(
    domain: Domain,
    policy: Policy | PolicyFunction | None,
    features: FeatureMap,
    *,
    n_steps: int,
    seed: Seed,
    gamma: float | None = None,
    behaviour: Policy | PolicyFunction | None = None,
    episode_cap: int | None = None,
    starts: ArrayLike | None = None,
) -> Transitions:
    """Record exactly ``n_steps`` transitions, ready for ``update_many``.

    Every state is encoded once and its features are stored once; ``actions`` are kept. Truncated episodes (by a cap,
    or the last one by the length) bootstrap; terminated ones do not.

    Parameters
    ----------
    domain : Domain
    policy : Policy, function from states (N, state_size) to actions (N,), or None for the domain's own
        The policy to evaluate. It sees the whole states, features only what :meth:`Domain.observe` shows.
    features : FeatureMap
    n_steps : int >= 1
    seed : int, SeedSequence or Generator
        For independent streams pass the children of one seed, ``np.random.SeedSequence(0).spawn(n)``.
    gamma : float in [0, 1], optional
        The domain's if left out.
    behaviour : Policy or function, optional
        Who acts, if it is not the policy to evaluate: transitions then have the ratios ρ of the two probabilities.
    episode_cap : int >= 1, optional
        Episodes that have not terminated after this many steps are truncated; the domain's cap if left out.
    starts : (K, state_size), optional
        Where episodes start, in turn, instead of the domain's random starts.

    Example
    -------
    >>> from tlstd import LSTD, TileCoder
    >>> from tlstd.domains.mountain_car import MountainCar
    >>> car = MountainCar()
    >>> tiles = TileCoder(car.low, car.high, tiles=10, tilings=10)
    >>> steps = record(car, None, tiles, n_steps=1000, seed=0)
    >>> len(steps), steps.n_features
    (1000, 1000)
    """
    check_map(features)  # before all the steps, not after
    discount = _discount(domain, gamma)
    path = trajectory(
        domain, policy, n_steps=n_steps, seed=seed, behaviour=behaviour, episode_cap=episode_cap, starts=starts
    )
    return encode(path, features, domain, gamma=discount)


def encode(path: Trajectory, features: FeatureMap, domain: Domain, *, gamma: float | None = None) -> Transitions:
    """Put features to a trajectory of the domain.

    Example
    -------
    >>> from tlstd import Fourier
    >>> from tlstd.domains.mountain_car import MountainCar
    >>> car = MountainCar()
    >>> path = trajectory(car, n_steps=100, seed=0)
    >>> encode(path, Fourier(car.low, car.high, order=3), car).n_features
    16
    """
    check_map(features)
    discount = _discount(domain, gamma)
    return Transitions.from_rows(
        encoded_once(features, domain.observe(path.states)),
        path.rows,
        path.rewards,
        path.rows + 1,
        discounts=np.where(path.terminated, 0.0, discount),
        trace_discounts=trace_discounts(path.terminated | path.truncated, discount),
        rhos=path.rhos,
        actions=path.actions,
    )


def stream(
    domain: Domain,
    policy: Policy | PolicyFunction | None,
    features: FeatureMap,
    *,
    seed: Seed,
    gamma: float | None = None,
    behaviour: Policy | PolicyFunction | None = None,
    episode_cap: int | None = None,
    starts: ArrayLike | None = None,
) -> Iterator[Transition]:
    """Yield the transitions of :func:`record` one by one, without an end and without storing them.

    Every step is simulated and encoded by itself; :func:`record` is much faster.

    Example
    -------
    >>> from tlstd import TD, TileCoder
    >>> from tlstd.domains.mountain_car import MountainCar
    >>> car = MountainCar()
    >>> tiles = TileCoder(car.low, car.high, tiles=10, tilings=10)
    >>> model = TD(tiles.n_features, step_size=0.01, lambda_=0.9)
    >>> for step, transition in zip(range(100), stream(car, None, tiles, seed=0)):
    ...     model.update(transition)
    >>> model.n_updates
    100
    """
    check_map(features)  # at once, not at the first step
    source = _Source(domain, policy, behaviour, seed, episode_cap, starts)
    return _one_by_one(source, features, _discount(domain, gamma))


def trajectory(
    domain: Domain,
    policy: Policy | PolicyFunction | None = None,
    *,
    n_steps: int,
    seed: Seed,
    behaviour: Policy | PolicyFunction | None = None,
    episode_cap: int | None = None,
    starts: ArrayLike | None = None,
) -> Trajectory:
    """Simulate exactly ``n_steps`` steps; parameters as for :func:`record`, which puts features to them.

    Episodes are simulated side by side and laid end to end: the stream is the one that single steps would give (if
    policy and domain round in the same way for one state and for many). A continuing domain is one endless episode.

    Example
    -------
    >>> from tlstd.domains.pendulum import Pendulum
    >>> path = trajectory(Pendulum(), n_steps=1000, seed=0)
    >>> n_episodes = int((path.terminated | path.truncated).sum())
    >>> path.states.shape == (1000 + n_episodes, 3)
    True
    """
    parameters.integer("n_steps", n_steps)
    source = _Source(domain, policy, behaviour, seed, episode_cap, starts)
    blocks: list[_Block] = []
    remaining, first, count = int(n_steps), 0, 1 if domain.continuing else 16
    while remaining > 0:
        blocks.append(_simulate(source, first, count, remaining))
        remaining -= len(blocks[-1].actions)
        first, count = first + count, min(2 * count, _MOST_EPISODES)
    lengths, reached = (np.concatenate([getattr(b, name) for b in blocks]) for name in ("lengths", "reached"))
    last = np.cumsum(lengths) - 1
    terminated, truncated = np.zeros(n_steps, dtype=np.bool_), np.zeros(n_steps, dtype=np.bool_)
    terminated[last], truncated[last] = reached, ~reached
    states, actions, rewards = (np.concatenate([b[i] for b in blocks]) for i in range(3))
    rows = np.arange(n_steps) + np.repeat(np.arange(lengths.size), lengths)  # each episode has one state more
    rhos = source.ratios(states, rows, actions)
    return Trajectory(states, rows, actions, rewards, terminated, truncated, rhos)


class _Source:
    """Where a stream comes from, checked: domain, policies, starts, and the random numbers of every episode."""

    def __init__(
        self,
        domain: Domain,
        policy: Policy | PolicyFunction | None,
        behaviour: Policy | PolicyFunction | None,
        seed: Seed,
        episode_cap: int | None,
        starts: ArrayLike | None,
    ) -> None:
        check_domain(domain)
        self.domain = domain
        self.target = domain.policy() if policy is None else as_policy(policy)
        self.actor = self.target if behaviour is None else as_policy(behaviour)
        cap = domain.episode_cap if episode_cap is None else episode_cap
        self.cap = None if cap is None else parameters.integer("episode_cap", cap)
        self.given = None if starts is None else domain.check_states(starts)
        if self.given is not None and len(self.given) == 0:
            raise InvalidParameterError("starts has no rows: pass at least one state, or leave it out")
        self.root = seed_sequence(seed)
        self.width = domain.noise_size + self.actor.is_random
        self._start_rng = np.random.default_rng(self.root)
        self._n_started = 0

    def start(self, count: int) -> FloatArray:
        """The starts of the next ``count`` episodes."""
        first = self._n_started
        self._n_started += count
        if self.given is not None:
            return self.given[np.arange(first, first + count) % len(self.given)]
        return self.domain.start(count, self._start_rng)

    def numbers(self, episode: int) -> np.random.Generator:
        """The random numbers of an episode: ``width`` for each of its steps."""
        key = (*self.root.spawn_key, _EPISODES, episode)
        return np.random.default_rng(np.random.SeedSequence(self.root.entropy, spawn_key=key))

    def act(self, states: FloatArray, numbers: FloatArray) -> FloatArray:
        """Actions of whoever acts, checked; numbers (N, width)."""
        uniforms = numbers[:, -1] if self.actor.is_random else np.zeros(len(states))
        return self.domain.check_actions(self.actor.act(states, uniforms), len(states))

    def ratios(self, states: FloatArray, rows: IntArray, actions: FloatArray) -> FloatArray:
        """Importance ratios of the actions in the states ``states[rows]``."""
        if self.actor is self.target:
            return np.ones(len(rows))
        here = states[rows]
        probability = self.actor.probability(here, actions)
        if not (probability > 0.0).all():
            action = actions[~(probability > 0.0)][0]
            raise InvalidParameterError(
                f"the behaviour took the action {action} to which it gives no probability: its act() and probability() "
                "do not belong together"
            )
        ratios: FloatArray = self.target.probability(here, actions) / probability
        return ratios


class _Block(NamedTuple):
    """Consecutive episodes end to end."""

    states: FloatArray
    actions: FloatArray
    rewards: FloatArray
    lengths: IntArray
    reached: NDArray[np.bool_]


def _simulate(source: _Source, first: int, count: int, n_steps: int) -> _Block:
    """Episodes ``first`` to ``first + count``, as many as ``n_steps`` steps take (fewer if they are shorter)."""
    starts = source.start(count)
    cap = n_steps if source.cap is None else min(n_steps, int(source.cap))
    if source.domain.continuing and source.cap is None:
        return _simulate_one(source, first, starts[0], n_steps)
    lengths = np.zeros(count, dtype=np.int64)
    reached = np.zeros(count, dtype=np.bool_)
    numbers = _Numbers(source, first, count)
    running, states = np.arange(count), starts
    visited: list[tuple[IntArray, FloatArray, FloatArray, FloatArray]] = []
    for time in range(cap):
        # An episode is not needed once those before it, so far, fill the stream: this bounds the work even if
        # the policy never ends an episode.
        before = np.cumsum(lengths) - lengths
        needed = before[running] < n_steps
        if not needed.all():
            running, states = running[needed], states[needed]
        if running.size == 0:
            break
        noise = numbers.at(time, running)
        actions = source.act(states, noise)
        states, rewards, terminated = source.domain.step_with_noise(
            states, actions, noise[:, : source.domain.noise_size]
        )
        visited.append((running, states, actions, rewards))
        lengths[running] += 1
        reached[running] = terminated
        if terminated.any():
            running, states = running[~terminated], states[~terminated]

    before = np.cumsum(lengths) - lengths
    used = int(np.searchsorted(before, n_steps))  # episodes that begin within the stream
    kept = np.minimum(lengths[:used], n_steps - before[:used])
    reached = reached[:used] & (kept == lengths[:used])
    flat = np.empty((int(kept.sum()) + used, starts.shape[1]))
    flat_actions, flat_rewards = np.empty(int(kept.sum())), np.empty(int(kept.sum()))
    offsets = np.cumsum(kept) - kept
    flat[offsets + np.arange(used)] = starts[:used]
    whole = used == count and bool((kept == lengths).all())
    for time, (episode, after, actions, rewards) in enumerate(visited):
        if not whole:
            inside = episode < used
            inside[inside] = time < kept[episode[inside]]
            episode, after, actions, rewards = episode[inside], after[inside], actions[inside], rewards[inside]
        at = offsets[episode] + time
        flat_actions[at], flat_rewards[at] = actions, rewards
        flat[at + episode + 1] = after
    return _Block(flat, flat_actions, flat_rewards, kept, reached)


def _simulate_one(source: _Source, episode: int, start: FloatArray, n_steps: int) -> _Block:
    """One endless episode."""
    domain = source.domain
    numbers = source.numbers(episode).random((n_steps, source.width)) if source.width else np.zeros((n_steps, 0))
    uniforms = numbers[:, -1] if source.actor.is_random else np.zeros(n_steps)
    states, actions, rewards = domain.simulate(start, source.actor, numbers[:, : domain.noise_size], uniforms)
    return _Block(states, actions, rewards, np.array([n_steps]), np.array([False]))


class _Numbers:
    """The random numbers of a block's episodes, drawn some steps ahead."""

    def __init__(self, source: _Source, first: int, count: int) -> None:
        self._width = source.width
        self._generators = [source.numbers(first + i) for i in range(count)] if source.width else []
        self._ahead: FloatArray = np.zeros((count if source.width else 0, _AHEAD, source.width))

    def at(self, time: int, running: IntArray) -> FloatArray:
        """Numbers (N, width) of the running episodes' step ``time``; to be called for every time in turn."""
        if self._width == 0:
            return np.zeros((running.size, 0))
        if time % _AHEAD == 0:
            for i in running.tolist():
                self._generators[i].random(out=self._ahead[i])
        numbers: FloatArray = self._ahead[running, time % _AHEAD]
        return numbers


def _one_by_one(source: _Source, features: FeatureMap, gamma: float) -> Iterator[Transition]:
    domain, episode = source.domain, 0
    while True:
        states = source.start(1)
        rng = source.numbers(episode)
        x, trace_discount, n_steps = _encoded(features, domain, states), 0.0, 0
        while True:
            numbers = rng.random((1, source.width))
            actions = source.act(states, numbers)
            rho = source.ratios(states, np.zeros(1, dtype=np.int64), actions)[0]
            states, rewards, (terminated,) = domain.step_with_noise(states, actions, numbers[:, : domain.noise_size])
            x_next = _encoded(features, domain, states)
            discount = 0.0 if terminated else gamma
            yield Transition(x, rewards[0], x_next, discount=discount, trace_discount=trace_discount, rho=rho)
            x, trace_discount, n_steps = x_next, gamma, n_steps + 1
            if terminated or n_steps == source.cap:
                break
        episode += 1


def _encoded(features: FeatureMap, domain: Domain, states: FloatArray) -> Any:
    return features.encode(domain.observe(states)[0])


def _discount(domain: Domain, gamma: float | None) -> float:
    check_domain(domain)
    return parameters.real("gamma", domain.gamma if gamma is None else gamma, low=0.0, high=1.0)
