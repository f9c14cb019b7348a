"""Policies, and a shard that dies.

Workers of a cluster import this module: what only the tests need is not imported here.
"""

from __future__ import annotations

import os
import signal

import numpy as np

from tlstd.core.arrays import FloatArray


def mostly_right(states: np.ndarray) -> np.ndarray:
    """The other action nine times in ten."""
    return np.tile([0.1, 0.9], (len(states), 1))


def always_right(states: np.ndarray) -> np.ndarray:
    """Numbers of actions."""
    return np.ones(len(states), dtype=np.int64)


def pushing(states: np.ndarray) -> np.ndarray:
    """A continuous action."""
    return -0.5 * np.reshape(states, (len(states), -1))[:, :1]


def die_once(marker: str) -> None:
    """Kill this process, unless somebody has died here before."""
    try:
        open(marker, "x").close()
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


class Deadly:
    """The policy :func:`mostly_right`; the first process that asks it dies, unless it is the one spared."""

    def __init__(self, marker: str, spared: int) -> None:
        self.marker, self.spared = marker, spared

    def __call__(self, states: np.ndarray) -> np.ndarray:
        """Probabilities."""
        if os.getpid() != self.spared:
            die_once(self.marker)
        return mostly_right(states)


class Mortal:
    """A shard whose worker dies the first time that its numbers are asked for."""

    def __init__(self, numbers: FloatArray) -> None:
        self.numbers = numbers

    def times(self, factor: float) -> Mortal:
        """Another one."""
        return Mortal(factor * self.numbers)

    def last_words(self, marker: str) -> FloatArray:
        """The numbers."""
        die_once(marker)
        return self.numbers
