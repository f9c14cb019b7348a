"""The problems: a log and a question each, and the true answer.

All true values are closed forms, dense solves or quadratures of ``processes.py``; none is estimated.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tlstd import Log
from tlstd.core.arrays import FloatArray
from tlstd_lab.measurements.answers import processes as made
from tlstd_lab.measurements.answers.processes import (
    Finite,
    Gain,
    Linear,
    Offers,
    Policy,
    Steered,
    Steps,
    acting,
    no_action,
    of_table,
    offering,
    random_process,
    rolled,
    steered,
    turning,
)

COMPLETE = "logged, complete"
CUT = "logged, cut off"
STREAMS = "logged, streams and all states"
KNOWN = "another policy, with probabilities"
UNKNOWN = "another policy, without probabilities"
GROUPS = (COMPLETE, CUT, STREAMS, KNOWN, UNKNOWN)
BOUNDS = frozenset({UNKNOWN})
"""Groups whose intervals have room for what the log does not show: their coverage has no upper limit."""

EPISODES = (50, 200, 2000)
STEPS = (2_000, 8_000, 30_000)
"""Sizes of streams."""

Made = tuple[Log, dict[str, Any]]
"""A log, and the options of ``evaluate``."""


class Problem(NamedTuple):
    """Logs, what is asked of them, and the true answer."""

    number: int
    """Of the seeds; it stays when problems are added."""
    name: str
    words: str
    group: str
    make: Callable[[int, np.random.Generator], Made]
    truth: float
    check: Callable[[int, np.random.Generator], FloatArray]
    """Values of so many independent rollouts of what is asked; their mean is the true answer."""
    sizes: tuple[int, ...] = EPISODES
    slow: bool = False
    """Whether the quick form leaves out the largest size."""


def discounted(steps: Steps, gamma: float) -> FloatArray:
    """The return of each episode."""
    starts = np.flatnonzero(np.diff(steps.episodes, prepend=-1))
    ends = [*starts[1:].tolist(), len(steps.episodes)]
    return np.array([steps.rewards[a:b] @ gamma ** np.arange(b - a) for a, b in zip(starts, ends, strict=True)])


def togo(rewards: FloatArray, starts: Any, gamma: float) -> FloatArray:
    """The return from each row on, to the end of its episode; ``starts``: first rows, and the number of rows."""
    found = rewards.astype(np.float64)
    for a, b in pairwise(list(starts)):
        for t in range(b - 2, a - 1, -1):
            found[t] += gamma * found[t + 1]
    return found


def _returns(world: Any, policy: Policy, gamma: float) -> Callable[[int, np.random.Generator], FloatArray]:
    return lambda n, rng: discounted(rolled(world, policy, n, rng), gamma)


def _all_returns(world: Any, policy: Policy, gamma: float) -> Callable[[int, np.random.Generator], FloatArray]:
    """Per episode the sum of returns from all of its states, linearised as a share of all states."""

    def check(n: int, rng: np.random.Generator) -> FloatArray:
        steps = rolled(world, policy, n, rng)
        starts = [*np.flatnonzero(np.diff(steps.episodes, prepend=-1)).tolist(), len(steps.episodes)]
        sums, counts = np.add.reduceat(togo(steps.rewards, starts, gamma), starts[:-1]), np.diff(starts)
        mean = sums.sum() / counts.sum()
        found: FloatArray = mean + (sums - mean * counts) / counts.mean()
        return found

    return check


def _uniform(n: int, n_actions: int = 2) -> FloatArray:
    return np.full((n, n_actions), 1.0 / n_actions)


def _tabular(process: Finite, policy: FloatArray, n: int, rng: np.random.Generator, limit: Any = made.LONGEST) -> Steps:
    return rolled(process, of_table(policy), n, rng, limit)


def _table(policy: FloatArray) -> Callable[[Any], FloatArray]:
    return lambda states: policy[states]


# --- the logged policy ----------------------------------------------------------------------------------------------


def _numbered(
    number: int, name: str, words: str, process: Finite, gamma: float, *, see: Any = None, limit: Any = None,
    group: str = COMPLETE, sizes: tuple[int, ...] = EPISODES, slow: bool = False,
) -> Problem:  # fmt: skip
    """Episodes of a finite process under the uniform policy; seen as numbers of states, or through ``see``."""
    n_states, n_actions = process.rewards.shape
    policy = _uniform(n_states, n_actions)

    def make(n: int, rng: np.random.Generator) -> Made:
        limits = made.LONGEST if limit is None else limit(n, rng) if callable(limit) else limit
        steps = _tabular(process, policy, n, rng, limits)
        numbers = {"n_observations": n_states} if see is None else {}
        return steps.log(see, **numbers), {"gamma": gamma}

    check = _returns(process, of_table(policy), gamma)
    return Problem(number, name, words, group, make, process.value(policy, gamma), check, sizes, slow)


def _customers(number: int, name: str, words: str, group: str, exported: bool) -> Problem:
    """Stage, loyalty and the customer's age, which does not matter; ``exported``: cut off at a random time."""
    process, gamma = made.journeys(), 0.95
    policy = _uniform(len(process.P), 1)

    def make(n: int, rng: np.random.Generator) -> Made:
        limits = rng.integers(2, 16, size=n) if exported else made.LONGEST
        steps = _tabular(process, policy, n, rng, limits)
        age = rng.normal(45.0, 15.0, n)[steps.episodes]

        def columns(states: Any) -> FloatArray:
            return np.column_stack([*np.divmod(states, made.LOYALTIES), age])

        return steps.log(columns), {"gamma": gamma}

    check = _returns(process, of_table(policy), gamma)
    return Problem(number, name, words, group, make, process.value(policy, gamma), check)


def _turning(
    number: int, name: str, words: str, D: int, gamma: float, *, ends: float = 0.1, limit: int = made.LONGEST,
    group: str = COMPLETE, slow: bool = False,
) -> Problem:  # fmt: skip
    """Episodes of columns that turn into each other, without actions."""
    process, policy = turning(D, ends), no_action(D)

    def make(n: int, rng: np.random.Generator) -> Made:
        return rolled(process, policy.act, n, rng, limit).log(), {"gamma": gamma}

    return Problem(number, name, words, group, make, process.value(policy, gamma), _returns(process, policy.act, gamma))


def _logged() -> list[Problem]:
    garnet = random_process(1, 12)
    return [
        _numbered(0, "numbers", "12 numbered states", garnet, 0.9),
        _turning(1, "plane", "two columns", 2, 0.95, slow=True),
        _turning(2, "columns", "ten columns", 10, 0.95, slow=True),
        _numbered(
            3, "categories", "three integer columns (shop)", made.inventory(), 0.95, see=made.in_columns
        ),
        _numbered(
            4, "pixels", "8 × 8 pixels, sparse reward", made.pixels(), 0.95, see=lambda s: np.eye(64)[s], slow=True
        ),
        _numbered(5, "tails", "12 states, log-normal rewards", random_process(2, 12, made.heavy, positive=True), 0.9),
        _numbered(6, "losses", "12 states, rare large losses", made.losses(), 0.9),
        _customers(7, "journeys", "customer journeys", COMPLETE, exported=False),
        _numbered(8, "limit-short", "12 states, time limit of 6", garnet, 0.9, limit=6, group=CUT),
        _numbered(
            9, "limit-long", "12 states, γ = 0.98, time limit of 30", random_process(4, 12, ends=0.02), 0.98, limit=30,
            group=CUT, sizes=(50, 200, 1500),
        ),
        _customers(10, "exported", "customer journeys, cut off at random", CUT, exported=True),
        _turning(
            11, "plane-limit", "two columns, time limit of 10", 2, 0.95, ends=0.03, limit=10, group=CUT, slow=True
        ),
    ]  # fmt: skip


# --- streams and all states -----------------------------------------------------------------------------------------


def _stream(number: int) -> Problem:
    """One stream of 12 numbered states; the mean value of the states as the stream has them."""
    process, gamma, policy = random_process(5, 12, ends=0.0), 0.9, _uniform(12)
    share = process.stationary(policy)

    def make(n: int, rng: np.random.Generator) -> Made:
        states, rewards = made.stream_of_states(process, policy, n, rng)
        return Log.from_arrays(states[:-1], rewards, next_observations=states[1:], n_observations=12), {"gamma": gamma}

    from_share = Finite(process.P, process.rewards, first=share)
    truth = float(share @ process.values(policy, gamma))
    check = _returns(from_share, of_table(policy), gamma)
    return Problem(number, "stream", "one stream, 12 states", STREAMS, make, truth, check, STEPS)


def _sensors(number: int) -> Problem:
    """One stream of four columns."""
    process, gamma, policy = turning(4, 0.0), 0.9, no_action(4)

    def make(n: int, rng: np.random.Generator) -> Made:
        states, rewards = made.stream_of_columns(process, n, rng)
        return Log.from_arrays(states[:-1], rewards, next_observations=states[1:]), {"gamma": gamma}

    spread = process.stationary(policy)

    class Later(Linear):
        """The same, from states as the stream has them."""

        def start(self, n: int, rng: np.random.Generator) -> FloatArray:
            return rng.multivariate_normal(np.zeros(4), spread, size=n)

    later = Later(process.A, process.B, 0.0, process.noise)
    truth = process.value(policy, gamma, spread)
    check = _returns(later, policy.act, gamma)
    return Problem(number, "sensors", "one stream, four columns", STREAMS, make, truth, check, STEPS, slow=True)


def _all_states() -> list[Problem]:
    """The mean value of all states of episodes, not only of the first ones."""
    gamma, garnet, policy = 0.9, random_process(1, 12), _uniform(12)
    plane, still = turning(2), no_action(2)

    def numbers(n: int, rng: np.random.Generator) -> Made:
        log = _tabular(garnet, policy, n, rng).log(n_observations=12)
        return log, {"gamma": gamma, "start": "all"}

    def columns(n: int, rng: np.random.Generator) -> Made:
        return rolled(plane, still.act, n, rng).log(), {"gamma": gamma, "start": "all"}

    of_numbers = float(garnet.visited(policy) @ garnet.values(policy, gamma))
    of_columns = plane.value(still, gamma, plane.visited(still))
    return [
        Problem(
            14, "all-numbers", "all states, 12 numbered states", STREAMS, numbers, of_numbers,
            _all_returns(garnet, of_table(policy), gamma),
        ),
        Problem(
            15, "all-plane", "all states, two columns", STREAMS, columns, of_columns,
            _all_returns(plane, still.act, gamma), slow=True,
        ),
    ]  # fmt: skip


# --- another policy -------------------------------------------------------------------------------------------------


def _another(
    number: int, name: str, words: str, process: Finite, logged: FloatArray, asked: FloatArray, gamma: float,
    known: bool, *, sizes: tuple[int, ...] = EPISODES, **options: Any,
) -> Problem:  # fmt: skip
    """Another policy of a finite process, seen as numbers of states."""

    def make(n: int, rng: np.random.Generator) -> Made:
        steps = _tabular(process, logged, n, rng)
        log = steps.log(known=known, actions=steps.actions, n_observations=len(process.P))
        return log, {"gamma": gamma, "policy": _table(asked), **options}

    check = _returns(process, of_table(asked), gamma)
    group = KNOWN if known else UNKNOWN
    return Problem(number, name, words, group, make, process.value(asked, gamma), check, sizes)


def _offers(number: int) -> Problem:
    """A bandit whose contexts are five columns."""
    world = Offers()
    logged = offering(np.array([0.3, 0.0, -0.3, 0.0, 0.2]))
    theta = np.array([-0.3, 0.8, 0.3, 0.0, 0.2])

    def make(n: int, rng: np.random.Generator) -> Made:
        steps = rolled(world, acting(logged), n, rng)
        log = steps.log(known=True, actions=steps.actions)
        return log, {"gamma": 0.0, "policy": offering(theta)}

    check = _returns(world, acting(offering(theta)), 0.0)
    words = "bandit, five columns, policies close"
    return Problem(number, "bandit-mild", words, KNOWN, make, world.value(theta), check, slow=True)


def _steered(number: int, name: str, words: str, steering: float, known: bool) -> Problem:
    """Three columns and two actions, logged at random."""
    world, gamma = Steered(), 0.9

    def make(n: int, rng: np.random.Generator) -> Made:
        steps = rolled(world, acting(steered(0.0)), n, rng)
        log = steps.log(known=known, actions=steps.actions)
        return log, {"gamma": gamma, "policy": steered(steering)}

    check = _returns(world, acting(steered(steering)), gamma)
    group = KNOWN if known else UNKNOWN
    return Problem(number, name, words, group, make, world.value(steering, gamma), check, slow=True)


def _gains(number: int, name: str, words: str, noise: float) -> Problem:
    """Continuous actions: another gain of a controlled system; with ``noise``, and the densities in the log.

    A function gives draws of such a policy and no densities, so that there are no ratios.
    """
    A, B = np.array([[0.95, 0.2], [0.0, 0.9]]), np.array([[0.0], [0.4]])
    world, gamma, logged = Linear(A, B, 0.15, 0.2), 0.9, Gain(np.array([[0.2, 0.3]]), 0.5)
    asked = Gain(np.array([[0.35, 0.4]]), noise)

    def make(n: int, rng: np.random.Generator) -> Made:
        steps = rolled(world, logged.act, n, rng)
        log = steps.log(known=noise > 0.0, actions=steps.actions)
        draws = np.random.default_rng(rng.integers(2**32))
        return log, {"gamma": gamma, "policy": lambda states: asked.act(states, draws)[0]}

    check = _returns(world, asked.act, gamma)
    return Problem(number, name, words, UNKNOWN, make, world.value(asked, gamma), check, slow=True)


def _other() -> list[Problem]:
    half, near, far = _uniform(12), np.tile([0.65, 0.35], (12, 1)), np.tile([0.95, 0.05], (12, 1))
    garnet, short = random_process(1, 12), random_process(6, 12, ends=0.2)
    rewarded = random_process(3, 12, made.heavy, ends=1.0, positive=True)
    many = random_process(8, 12, lambda rng, means: means + rng.standard_normal(len(means)), ends=1.0, n_actions=4)
    usual, rare = np.tile([0.55, 0.3, 0.1, 0.05], (12, 1)), np.tile([0.05, 0.05, 0.1, 0.8], (12, 1))
    patients, treated, better = made.clinic()
    return [
        _offers(16),
        _another(17, "bandit-strong", "bandit, 12 contexts, policies far apart", many, usual, rare, 0.0, True),
        _another(18, "bandit-tails", "bandit, 12 contexts, log-normal rewards", rewarded, half, near, 0.0, True),
        _another(19, "near", "12 states, policies close", garnet, half, near, 0.9, True),
        _another(20, "far", "12 states, short episodes, policies far apart", short, half, far, 0.9, True),
        _another(
            21, "near-long", "12 states, long episodes, policies close", random_process(9, 12, ends=0.02), half,
            np.tile([0.55, 0.45], (12, 1)), 0.97, True, sizes=(50, 200, 700),
        ),
        _steered(22, "steered-near", "three columns, policies close", 0.5, True),
        _steered(23, "steered-far", "three columns, policies far apart", 3.0, True),
        _another(25, "unknown", "12 states, dense log", garnet, half, near, 0.9, False),
        _another(
            26, "clinic", "100 states, 24 actions, range given", patients, treated, better, 0.99, False,
            returns=(0.0, 1.0),
        ),
        _steered(27, "unknown-near", "three columns, policies close", 0.5, False),
        _steered(28, "unknown-far", "three columns, policies far apart", 3.0, False),
        _gains(24, "gains-random", "continuous actions, random policy, densities logged", 0.45),
        _gains(29, "gains", "continuous actions", 0.0),
    ]  # fmt: skip


@cache
def problems() -> dict[str, Problem]:
    """All of them, by name."""
    return {one.name: one for one in [*_logged(), _stream(12), _sensors(13), *_all_states(), *_other()]}
