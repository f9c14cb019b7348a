"""Many episodes at once: all of them take their next step together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlstd.core.arrays import FloatArray, IntArray

Step = Callable[[NDArray[Any], np.random.Generator], "After"]
Start = Callable[[int, np.random.Generator], NDArray[Any]]


class After(NamedTuple):
    """What one step of several episodes brings."""

    actions: IntArray
    rewards: FloatArray
    states: NDArray[Any]
    ended: NDArray[np.bool_]


class Episodes(NamedTuple):
    """Steps of episodes, one episode after the other."""

    states: NDArray[Any]
    actions: IntArray
    rewards: FloatArray
    next_states: NDArray[Any]
    terminated: NDArray[np.bool_]
    first: IntArray
    """(E,): the first step of each episode."""

    @property
    def last(self) -> IntArray:
        """(E,): the last step of each episode."""
        return np.append(self.first[1:], self.rewards.size) - 1


def play(start: Start, step: Step, n: int, limit: int, rng: np.random.Generator) -> Episodes:
    """``n`` episodes of at most ``limit`` steps."""
    states = start(n, rng)
    going = np.arange(n)
    found: list[tuple[Any, ...]] = []
    for _ in range(limit):
        now = states[going]
        next_ = step(now, rng)
        found.append((going, now, next_.actions, next_.rewards, next_.states, next_.ended))
        states[going] = next_.states
        going = going[~next_.ended]
        if not going.size:
            break
    episode, *columns = (np.concatenate(column) for column in zip(*found, strict=True))
    order = np.argsort(episode, kind="stable")
    first = np.flatnonzero(np.diff(episode[order], prepend=-1))
    before, actions, rewards, after, ended = (column[order] for column in columns)
    return Episodes(before, actions, rewards, after, ended, first)


def mean_return(start: Start, step: Step, n: int, gamma: float, rng: np.random.Generator, limit: int = 2_000) -> float:
    """The mean discounted return of ``n`` episodes; what comes after ``limit`` steps is left out."""
    states, total, discount = start(n, rng), 0.0, 1.0
    for _ in range(limit):
        after = step(states, rng)
        total += discount * float(after.rewards.sum())
        states, discount = after.states[~after.ended], discount * gamma
        if not states.size:
            break
    return total / n


# --- Mountain Car with noise ----------------------------------------------------------------------------------------

SLIPS = 0.3
"""Share of steps in which the car does something at random."""


def car_starts(n: int, rng: np.random.Generator) -> FloatArray:
    """Anywhere left of the goal."""
    return np.column_stack([rng.uniform(-1.2, 0.5, n), rng.uniform(-0.07, 0.07, n)])


def car_step(states: NDArray[Any], rng: np.random.Generator) -> After:
    """Energy pumping, but for slips; -1 a step, until the goal."""
    x, v = states.T
    actions = np.where(v >= 0.0, 1, -1)
    slips = rng.random(x.size) < SLIPS
    actions = np.where(slips, rng.integers(-1, 2, x.size), actions)
    v = np.clip(v + 0.001 * actions - 0.0025 * np.cos(3.0 * x), -0.07, 0.07)
    x = np.clip(x + v, -1.2, 0.6)
    v = np.where(x <= -1.2, 0.0, v)
    return After(actions, -np.ones(x.size), np.column_stack([x, v]), x >= 0.5)


# --- CartPole -------------------------------------------------------------------------------------------------------


def pole_starts(n: int, rng: np.random.Generator) -> FloatArray:
    """Nearly upright, in the middle."""
    return rng.uniform(-0.05, 0.05, (n, 4))


def pole_policy(sharpness: float) -> Callable[[NDArray[Any]], FloatArray]:
    """The probability of a push to the right, larger where the pole leans or falls to the right."""

    def right(states: NDArray[Any]) -> FloatArray:
        lean: FloatArray = states[:, 2] + 0.3 * states[:, 3]
        return 1.0 / (1.0 + np.exp(-sharpness * lean))

    return right


def pole_step(right: Callable[[NDArray[Any]], FloatArray]) -> Step:
    """CartPole-v1's equations without its time limit; 1 for every step."""

    def step(states: NDArray[Any], rng: np.random.Generator) -> After:
        x, speed, angle, turning = states.T
        actions = (rng.random(x.size) < right(states)).astype(np.int64)
        force, sine, cosine = np.where(actions == 1, 10.0, -10.0), np.sin(angle), np.cos(angle)
        push = (force + 0.05 * turning**2 * sine) / 1.1
        turned = (9.8 * sine - cosine * push) / (0.5 * (4.0 / 3.0 - 0.1 * cosine**2 / 1.1))
        moved = push - 0.05 * turned * cosine / 1.1
        after = np.column_stack(
            [x + 0.02 * speed, speed + 0.02 * moved, angle + 0.02 * turning, turning + 0.02 * turned]
        )
        ended = (np.abs(after[:, 0]) > 2.4) | (np.abs(after[:, 2]) > 12.0 * np.pi / 180.0)
        return After(actions, np.ones(x.size), after, ended)

    return step
