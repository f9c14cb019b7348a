"""Timing two ways of doing the same thing in turn, so that what else the machine does falls on both."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple, TypeVar

T = TypeVar("T")
Clock = Callable[[], float]


class Side(NamedTuple):
    """One side of a comparison."""

    name: str
    steps: int
    """What its times are divided by."""
    prepare: Callable[[], Callable[[], object]]
    """Called before every repeat and not timed; returns what is timed."""


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of every repeat of one side, by two clocks."""

    name: str
    steps: int
    cpu: tuple[float, ...]
    wall: tuple[float, ...]

    @property
    def per_step(self) -> float:
        """Median CPU time of a step in seconds."""
        return median(self.cpu) / self.steps


def timed(call: Callable[[], T]) -> tuple[float, T]:
    """CPU time of a call in seconds, and what it returned."""
    begin = time.process_time()
    found = call()
    return time.process_time() - begin, found


def interleaved(
    sides: Sequence[Side], repeats: int, *, cpu: Clock = time.process_time, wall: Clock = time.perf_counter
) -> list[Times]:
    """Time the sides in turn: first, second, …, then again, every other round in reverse.

    Before that each is run once without being timed, so that compiling, and filling caches, is left out.

    Parameters
    ----------
    sides : the sides
    repeats : int >= 1
    cpu, wall : clocks in seconds
        The first is what ratios are taken of.

    Returns
    -------
    list of Times, in the order of the sides

    Example
    -------
    >>> ticks = iter(range(100))
    >>> def clock():
    ...     return float(next(ticks))
    >>> (times,) = interleaved([Side("nothing", 2, lambda: lambda: None)], 3, cpu=clock, wall=lambda: 0.0)
    >>> times.cpu, times.per_step
    ((1.0, 1.0, 1.0), 0.5)
    """
    for side in sides:
        side.prepare()()
    seconds: dict[int, list[tuple[float, float]]] = {i: [] for i in range(len(sides))}
    for repeat in range(repeats):
        order = range(len(sides)) if repeat % 2 == 0 else reversed(range(len(sides)))
        for i in order:
            action = sides[i].prepare()
            wall_begin, cpu_begin = wall(), cpu()
            action()
            cpu_end, wall_end = cpu(), wall()
            seconds[i].append((cpu_end - cpu_begin, wall_end - wall_begin))
    return [
        Times(side.name, side.steps, tuple(c for c, _ in seconds[i]), tuple(w for _, w in seconds[i]))
        for i, side in enumerate(sides)
    ]


def ratios(above: Times, below: Times, *, wall: bool = False) -> tuple[float, ...]:
    """Time per step of the first over that of the second, repeat by repeat.

    >>> ratios(Times("a", 1, (4.0, 9.0), (0.0, 0.0)), Times("b", 2, (4.0, 6.0), (0.0, 0.0)))
    (2.0, 3.0)
    """
    pairs = zip(above.wall, below.wall, strict=True) if wall else zip(above.cpu, below.cpu, strict=True)
    return tuple((a / above.steps) / (b / below.steps) for a, b in pairs)
