"""What a row of the benchmark is given, and what it gives: lines with a number, its spread and a target."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from tlstd_lab.bench.timing import Clock, Side, Times, interleaved, ratios

Value = TypeVar("Value")
Unit: TypeAlias = Literal["×", "slope", "GB", "modules"]


class Target(NamedTuple):
    """A bound on a line's median.

    >>> str(Target(">=", 60.0)), Target(">=", 60.0).met(59.0)
    ('≥ 60', False)
    """

    sign: Literal[">=", "<="]
    number: float

    def met(self, value: float) -> bool:
        """Whether the value keeps to the bound."""
        return value >= self.number if self.sign == ">=" else value <= self.number

    def __str__(self) -> str:
        return f"{'≥' if self.sign == '>=' else '≤'} {self.number:g}"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table."""

    what: str
    against: str
    values: tuple[float, ...]
    """Of every repeat."""
    target: Target | None = None
    unit: Unit = "×"
    note: str = ""
    times: tuple[Times, ...] = ()

    @property
    def median(self) -> float:
        """Median of the values."""
        return float(median(self.values))

    @property
    def reached(self) -> bool | None:
        """Whether the target is met; None if there is none."""
        return None if self.target is None else self.target.met(self.median)

    def plain(self) -> dict[str, Any]:
        """The line as JSON holds it."""
        return {
            "what": self.what,
            "against": self.against,
            "unit": self.unit,
            "median": self.median,
            "low": min(self.values),
            "high": max(self.values),
            "values": list(self.values),
            "target": None if self.target is None else list(self.target),
            "reached": self.reached,
            "note": self.note,
            "times": [{"name": t.name, "steps": t.steps, "cpu": list(t.cpu), "wall": list(t.wall)} for t in self.times],
        }


@dataclass
class Bench:
    """What every row is given: how large to be, a stopwatch, and a place for what figures need."""

    quick: bool = False
    cpu: Clock = time.process_time
    wall: Clock = time.perf_counter
    timed: float = 0.0
    """CPU seconds inside the timed parts so far; the rest of a row is set-up, warm-up and compilation."""
    data: dict[str, Any] = field(default_factory=dict)
    """What goes into the row's JSON besides its lines."""

    @property
    def repeats(self) -> int:
        """How often each side is timed."""
        return 2 if self.quick else 5

    def size(self, full: Value, quick: Value) -> Value:
        """The first in a full run, the second in a quick one."""
        return quick if self.quick else full

    def time(self, *sides: Side, repeats: int | None = None) -> list[Times]:
        """Time the sides in turn."""
        times = interleaved(sides, repeats or self.repeats, cpu=self.cpu, wall=self.wall)
        self.timed += sum(sum(t.cpu) for t in times)
        return times

    def compare(self, ours: Side, theirs: Side) -> tuple[Times, Times]:
        """Time two sides in turn."""
        first, second = self.time(ours, theirs)
        return first, second


Row: TypeAlias = Callable[[Bench], Sequence[Line]]
"""A row of the benchmark. The first sentence of its docstring is its title."""


def title(row: Row) -> str:
    """What the row measures, in a sentence."""
    return (row.__doc__ or "").strip().split("\n")[0].rstrip(".")


def speed_up(ours: Times, theirs: Times, target: float | None = None, *, note: str = "") -> Line:
    """How many times as fast ours is, to be at least ``target``."""
    bound = None if target is None else Target(">=", target)
    return Line(
        ours.name, theirs.name, ratios(theirs, ours), bound, note=_with_times(note, ours, theirs), times=(ours, theirs)
    )


def cost(ours: Times, theirs: Times, target: float | None = None, *, note: str = "") -> Line:
    """How many times as long ours takes, to be at most ``target``."""
    bound = None if target is None else Target("<=", target)
    return Line(
        ours.name, theirs.name, ratios(ours, theirs), bound, note=_with_times(note, ours, theirs), times=(ours, theirs)
    )


def _with_times(note: str, ours: Times, theirs: Times) -> str:
    times = f"{duration(ours.per_step)} against {duration(theirs.per_step)}"
    return f"{times}; {note}" if note else times


def duration(seconds: float) -> str:
    """A time with two or three digits.

    >>> duration(0.000171), duration(2.5e-7), duration(12.34)
    ('171 µs', '0.25 µs', '12.3 s')
    """
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs" if seconds >= 1e-5 else f"{seconds / 1e-6:.2g} µs"
