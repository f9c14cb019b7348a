"""The problems: how a data set is drawn, what is asked, and the true values."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tlstd import TileCoder, Transitions, boyan_chain, random_walk
from tlstd.core.arrays import FloatArray, IntArray, Matrix
from tlstd.data.transitions import trace_discounts
from tlstd.domains.mdp import MarkovRewardProcess
from tlstd.evaluation import Asked
from tlstd_lab.processes import garnet, garnet_off_policy
from tlstd_lab.questions.coverage import episodes
from tlstd_lab.questions.coverage.episodes import After, Episodes, mean_return, play

Draw = Callable[[int, np.random.Generator], tuple[Transitions, Asked]]
"""From a number of episodes to their steps, and to the start states."""

STATES, ACTIONS, BRANCHING, TERMINATION, GAMMA, NOISE = 20, 2, 3, 0.05, 0.95, 1.0
"""Of the Garnets."""
CUT = 10
"""Steps after which episodes are cut off, where they are."""
STREAM = 20
"""Steps of a stream without episodes for each episode of the others."""
ROLLOUTS = 40_000
"""Episodes behind a true value that has no closed form."""


class Problem(NamedTuple):
    """One problem, its true values known."""

    draw: Draw
    lambda_: float
    start: float
    """The mean value of the start states."""
    state: Matrix
    """Features (1, n) of a single state."""
    value: float
    """Its value."""
    on_policy: bool = True


def problem(name: str, seed: int, rollouts: int = ROLLOUTS) -> Problem:
    """The problem of this name; random ones are drawn from the seed.

    ``rollouts``: episodes behind the true value of the single state, where it has no closed form.
    """
    kind, _, variant = name.partition("-")
    if kind == "garnet":
        return _action_values(seed) if variant == "q" else _garnet(variant, seed)
    if kind == "pole":
        return _pole(variant, rollouts)
    if kind == "car":
        return _car(rollouts)
    return _of_process(random_walk(9, gamma=GAMMA) if kind == "walk" else boyan_chain(), 0.9)


# --- closed forms ---------------------------------------------------------------------------------------------------


def _garnet(variant: str, seed: int) -> Problem:
    rng = np.random.default_rng([seed, 1, 0])
    size: Any = (STATES, ACTIONS, BRANCHING, 8 if variant == "few" else STATES, rng)
    more: Any = {"gamma": GAMMA, "termination": 0.0 if variant == "stream" else TERMINATION, "reward_noise": NOISE}
    if variant == "off":
        return _of_process(garnet_off_policy(*size, **more), 0.5)._replace(on_policy=False)
    process = garnet(*size, **more)
    if variant == "stream":
        return _of_stream(process)
    return _of_process(process, 0.9, truncate_after=CUT if variant == "cut" else None)


def _of_process(process: MarkovRewardProcess, lambda_: float, truncate_after: int | None = None) -> Problem:
    values, one = process.values(), process.n_states // 3
    mean_length = float(process.start @ np.linalg.solve(np.eye(process.n_states) - process.P, np.ones(len(values))))

    def draw(n_episodes: int, rng: np.random.Generator) -> tuple[Transitions, Asked]:
        begin, size = rng.bit_generator.state, int(1.3 * n_episodes * mean_length) + 100
        while True:
            rng.bit_generator.state = begin  # a longer stream begins as the shorter one
            steps = process.sample(size, rng, truncate_after=truncate_after)
            first = np.flatnonzero(steps.trace_discounts == 0.0)
            if first.size > n_episodes:
                kept, first = steps[: first[n_episodes]], first[:n_episodes]
                return kept, Asked(kept.X[first], first)
            size *= 2

    return Problem(draw, lambda_, float(process.start @ values), process.X[[one]], float(values[one]))


def _of_stream(process: MarkovRewardProcess) -> Problem:
    """One stream without end; asked for is the mean over all its states."""
    values, one = process.values(), process.n_states // 3

    def draw(n_episodes: int, rng: np.random.Generator) -> tuple[Transitions, Asked]:
        steps = process.sample(STREAM * n_episodes, rng)
        return steps, Asked(steps.X, np.arange(len(steps)))

    return Problem(draw, 0.9, float(process.state_distribution() @ values), process.X[[one]], float(values[one]))


class Decisions:
    """A Garnet with actions taken at random, and another policy that is asked for, with values in closed form."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng([seed, 2, 0])
        self.P = np.zeros((STATES, ACTIONS, STATES))
        for s in range(STATES):
            for a in range(ACTIONS):
                self.P[s, a, rng.permutation(STATES)[:BRANCHING]] = rng.dirichlet(np.ones(BRANCHING))
        self.rewards = rng.standard_normal((STATES, ACTIONS))
        self.target: FloatArray = rng.dirichlet(np.ones(ACTIONS), STATES)
        self.acted = np.full((STATES, ACTIONS), 1.0 / ACTIONS)

    def values(self, policy: FloatArray) -> FloatArray:
        """(STATES,): of a policy (STATES, ACTIONS)."""
        going_on = (1.0 - TERMINATION) * np.einsum("sa,sat->st", policy, self.P)
        found: FloatArray = np.linalg.solve(np.eye(STATES) - GAMMA * going_on, (policy * self.rewards).sum(axis=1))
        return found

    def play(self, n_episodes: int, rng: np.random.Generator) -> Episodes:
        """Episodes of random actions, from random states."""
        bounds = self.P.cumsum(axis=2)

        def start(n: int, rng: np.random.Generator) -> IntArray:
            return rng.integers(0, STATES, n)

        def step(states: NDArray[Any], rng: np.random.Generator) -> After:
            actions = rng.integers(0, ACTIONS, states.size)
            after = (rng.random((states.size, 1)) > bounds[states, actions]).sum(axis=1)
            noisy = self.rewards[states, actions] + NOISE * rng.standard_normal(states.size)
            return After(actions, noisy, np.minimum(after, STATES - 1), rng.random(states.size) < TERMINATION)

        return play(start, step, n_episodes, 1_000, rng)

    def expected(self, states: IntArray) -> sp.csr_array:
        """Σ_a π(a|s) φ(s, a) of the policy asked for."""
        columns = ACTIONS * states[:, None] + np.arange(ACTIONS)
        pointers = np.arange(0, ACTIONS * states.size + 1, ACTIONS)
        shape = (states.size, ACTIONS * STATES)
        return sp.csr_array((self.target[states].ravel(), columns.ravel(), pointers), shape=shape)

    def of_actions(self, found: Episodes) -> tuple[Transitions, Asked]:
        """Episodes for LSTDQ, one feature for each state and action, and their start states."""
        taken = ACTIONS * found.states + found.actions
        n = taken.size
        X = sp.csr_array((np.ones(n), taken, np.arange(n + 1)), shape=(n, ACTIONS * STATES))
        steps = Transitions(X, found.rewards, self.expected(found.next_states), **_discounts(found, GAMMA))
        return steps, Asked(self.expected(found.states[found.first]), found.first)

    def of_states(self, found: Episodes) -> tuple[Transitions, Asked]:
        """Episodes for the policy that acted, one feature for each state, and their start states."""
        steps = _encoded(found, lambda states: np.eye(STATES)[states], GAMMA, None)
        return steps, Asked(steps.X[found.first], found.first)


def _action_values(seed: int) -> Problem:
    """LSTDQ: one feature for each state and action, a policy that did not act, and no ratios."""
    made, one = Decisions(seed), STATES // 3
    values = made.values(made.target)

    def draw(n_episodes: int, rng: np.random.Generator) -> tuple[Transitions, Asked]:
        return made.of_actions(made.play(n_episodes, rng))

    state = made.expected(np.array([one]))
    return Problem(draw, 0.0, float(values.mean()), state, float(values[one]), on_policy=False)


# --- rollouts -------------------------------------------------------------------------------------------------------


def _discounts(found: Episodes, gamma: float) -> dict[str, FloatArray]:
    ends = np.zeros(found.rewards.size, dtype=np.bool_)
    ends[found.last] = True
    return {
        "discounts": np.where(found.terminated, 0.0, gamma),
        "trace_discounts": trace_discounts(ends, gamma),
    }


def _encoded(found: Episodes, encode: Callable[[Any], Any], gamma: float, rhos: FloatArray | None) -> Transitions:
    n = found.rewards.size
    store = encode(np.concatenate([found.states, found.next_states[found.last]]))
    next_rows = np.arange(1, n + 1)
    next_rows[found.last] = n + np.arange(found.first.size)
    return Transitions.from_rows(store, np.arange(n), found.rewards, next_rows, **_discounts(found, gamma), rhos=rhos)


@cache
def _car(rollouts: int) -> Problem:
    """Mountain Car with slips, 4 tilings of 8 × 8, episodes of at most 300 steps."""
    gamma, tiles = 0.99, TileCoder([-1.2, -0.07], [0.6, 0.07], tiles=8, tilings=4)
    one = np.array([[-0.5, 0.0]])

    def draw(n_episodes: int, rng: np.random.Generator) -> tuple[Transitions, Asked]:
        found = play(episodes.car_starts, episodes.car_step, n_episodes, 300, rng)
        steps = _encoded(found, tiles.encode_many, gamma, None)
        return steps, Asked(steps.X[found.first], found.first)

    rng = np.random.default_rng(0)
    start = mean_return(episodes.car_starts, episodes.car_step, 10 * ROLLOUTS, gamma, rng)
    value = mean_return(lambda n, _: np.tile(one, (n, 1)), episodes.car_step, rollouts, gamma, rng)
    return Problem(draw, 0.9, start, tiles.encode_many(one), value)


@cache
def _pole(variant: str, rollouts: int) -> Problem:
    """CartPole, at most 100 steps, features of the pole's angle and speed; "off" and "coarse" with ratios.

    4 tilings of 6 × 6, but for "off": monomials up to degree 6. In the limit of many episodes LSTD's value of the start
    states is then 0.05 off the true one; with tiles and ratios ("coarse") 0.12. Where the cart is matters only at the
    ends of its track, which few episodes reach.
    """
    gamma, ratios = 0.95, variant in ("off", "coarse")
    behaviour, target = episodes.pole_policy(2.0 if ratios else 4.0), episodes.pole_policy(4.0)
    acted, asked = episodes.pole_step(behaviour), episodes.pole_step(target)
    tiles = TileCoder([-0.21, -2.0], [0.21, 2.0], tiles=6, tilings=4)
    one = np.array([[0.0, 0.0, 0.05, 0.0]])

    def encode(states: FloatArray) -> Matrix:
        return monomials(states) if variant == "off" else tiles.encode_many(states[:, 2:])

    def draw(n_episodes: int, rng: np.random.Generator) -> tuple[Transitions, Asked]:
        found = play(episodes.pole_starts, acted, n_episodes, 100, rng)
        p, q = target(found.states), behaviour(found.states)
        rhos = np.where(found.actions == 1, p / q, (1.0 - p) / (1.0 - q)) if ratios else None
        steps = _encoded(found, encode, gamma, rhos)
        return steps, Asked(steps.X[found.first], found.first)

    rng = np.random.default_rng(0)
    start = mean_return(episodes.pole_starts, asked, 10 * ROLLOUTS, gamma, rng)
    value = mean_return(lambda n, _: np.tile(one, (n, 1)), asked, rollouts, gamma, rng)
    return Problem(draw, 0.5 if ratios else 0.9, start, encode(one), value, on_policy=not ratios)


def monomials(states: FloatArray) -> FloatArray:
    """Of the pole's angle and speed, up to degree 6."""
    lean, speed = states[:, 2] / 0.21, states[:, 3] / 2.0
    return np.column_stack([lean**i * speed**j for i in range(7) for j in range(7 - i)])
