"""A chart as data: series of points with intervals, rules, notes, axes with limits and ticks, and the legend.

A panel makes a :class:`Chart`; ``drawing.py`` draws it with matplotlib and ``report/charts.py`` writes it as SVG, as a
table and as the data behind the pointer. All numbers of the figure are here, limits and ticks included.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tlstd.core.arrays import FloatArray
from tlstd_lab.statistics import mean_band

COLOURS = {
    "TD": "#0072B2",
    "true-online TD": "#56B4E9",
    "replay TD": "#332288",
    "iLSTD": "#E69F00",
    "LSTD": "#000000",
    "t-LSTD": "#D55E00",
    "ATD": "#CC79A7",
    "Krylov LSTD": "#117733",
    "t-LSTD, then TD": "#009E73",
    "SwiftTD": "#AA4499",
    "GTD2": "#999933",
    "TDC": "#882255",
    "TDRC": "#44AA99",
    "emphatic TD": "#B8860B",
}
"""By method: the palette of Okabe and Ito, which the colour-blind can tell apart."""

SEQUENCE = ("#440154", "#3b528b", "#21918c", "#5ec962", "#b8a100", "#d95f02")
"""For values of one quantity, in order of brightness."""

GREY, LIGHT_GREY = "#555555", "#999999"

MARKERS = ("o", "s", "^", "D", "v", "P", "X")
"""By matplotlib's letters; further ones are "<", ">", "p", "*" and "x"."""

Dash = tuple[float, ...]
"""Lengths of dashes and gaps, in widths of the line; none for a solid line."""
SOLID: Dash = ()
DASHED: Dash = (3.7, 1.6)
DOTTED: Dash = (1.0, 1.65)
DASH_DOT: Dash = (6.4, 1.6, 1.0, 1.6)

MARGIN = 0.05
"""Of an axis, kept free on either side of what is shown."""
MOST_TICKS = 7
MOST_DECADES = 9


class Point(NamedTuple):
    """A point with its interval, if it has one, in either direction."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    x_low: float | None = None
    x_high: float | None = None


class Mark(NamedTuple):
    """A single symbol that belongs to a series."""

    marker: str
    x: float
    y: float
    hollow: bool = False


class Rule(NamedTuple):
    """A line across the figure at a value of one axis, ``"x"`` or ``"y"``; a series' own rule has its colour."""

    axis: str
    value: float
    colour: str = GREY
    dash: Dash = DOTTED
    width: float = 0.8


class Note(NamedTuple):
    """Words that begin, end or are centred (``anchor``) at a fraction of the width and a value of the left axis."""

    words: str
    across: float
    y: float
    anchor: str = "start"


@dataclass(frozen=True)
class Series:
    """A line or points: how they look, where they are, and the marks and rules shown and hidden with them."""

    label: str
    colour: str
    points: Sequence[Point] = ()
    kind: str = ""
    """What its dashes stand for, if the legend says so apart from the label."""
    dash: Dash = SOLID
    width: float = 1.2
    marker: str = ""
    size: float = 3.0
    """Of the marker, in points."""
    every: int = 1
    """Points from one marker to the next."""
    hollow: bool = False
    joined: bool = True
    marks: Sequence[Mark] = ()
    rules: Sequence[Rule] = ()

    @property
    def name(self) -> str:
        """The label, and what the dashes stand for."""
        return ", ".join(words for words in (self.label, self.kind) if words)

    @property
    def has_intervals(self) -> bool:
        """Whether its points have intervals of the left axis."""
        return any(point.low is not None for point in self.points)


Tick = tuple[float, str]


@dataclass(frozen=True)
class Axis:
    """What is along one side: its label, its ends (that of the origin first), and ticks; what is left out is fitted."""

    label: str
    log: bool = False
    low: float = math.nan
    high: float = math.nan
    ticks: Sequence[Tick] = ()
    reverse: bool = False
    minor: Sequence[float] = ()
    """Ticks without words."""
    alone: Mapping[float, str] = field(default_factory=dict)
    """What a tick is called apart from its neighbours, where its words leave out what theirs say."""

    @property
    def wordy(self) -> bool:
        """Whether ticks are words, so that values between them mean nothing."""
        return any(letter.isalpha() for _, words in self.ticks for letter in words)

    def at(self, value: float) -> float:
        """Where a value stands, 0 at the low end and 1 at the high one; NaN if it stands nowhere."""
        if self.log:
            if value <= 0.0:
                return math.nan
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def fitted(self, values: Iterable[float]) -> Axis:
        """The axis with limits a little beyond these values and its ticks, and with ticks, unless given.

        Example
        -------
        >>> made = Axis("rank", log=True, low=1.0).fitted([10.0, 1000.0])
        >>> made.low, round(made.high), [words for _, words in made.ticks]
        (1.0, 1259, ['1', '10', '100', '1,000'])
        """
        shown = (*values, *(value for value, _ in self.ticks))
        usable = [value for value in shown if math.isfinite(value) and (value > 0.0 or not self.log)] or [1.0]
        low, high = min(usable), max(usable)
        if self.log:
            low, high = math.log10(low), math.log10(high)
        if low == high:
            around = 0.5 if self.log or low == 0.0 else 0.5 * abs(low)
            low, high = low - around, high + around
        margin = MARGIN * (high - low)
        ends = [10.0**end if self.log else end for end in (low - margin, high + margin)]
        low, high = (found if math.isnan(own) else own for own, found in zip((self.low, self.high), ends, strict=True))
        slack = 1e-9 * (high - low)
        ticks = self.ticks or (log_ticks(low, high) if self.log else linear_ticks(low, high))
        return replace(
            self,
            low=high if self.reverse else low,
            high=low if self.reverse else high,
            ticks=tuple((value, words) for value, words in ticks if low - slack <= value <= high + slack),
            minor=() if self.ticks or not self.log else tuple(_multiples(range(2, 10), low, high)),
        )


def linear_ticks(low: float, high: float) -> list[Tick]:
    """Multiples of 1, 2 or 5 times a power of ten: as many as fit, at most seven.

    Example
    -------
    >>> [words for _, words in linear_ticks(-0.02, 0.52)], [words for _, words in linear_ticks(10.0, 4190.0)]
    (['0.0', '0.1', '0.2', '0.3', '0.4', '0.5'], ['1,000', '2,000', '3,000', '4,000'])
    """
    exponent = math.floor(math.log10((high - low) / MOST_TICKS))
    for power in (exponent, exponent + 1):
        for factor in (1, 2, 5):
            step, slack = factor * 10.0**power, 1e-9 * (high - low)
            first, last = math.ceil((low - slack) / step), math.floor((high + slack) / step)
            if last - first < MOST_TICKS:
                values = [float(f"{i * step:.12g}") for i in range(first, last + 1)]
                return [(value, f"{value:,.{max(0, -power)}f}".replace("-", "−")) for value in values]
    raise AssertionError("ten times the step has no more ticks than fit")


def log_ticks(low: float, high: float) -> list[Tick]:
    """1, 2 and 5 of every decade, powers of ten alone over three decades and more, and even ticks within a part of one.

    Example
    -------
    >>> [words for _, words in log_ticks(4.0, 120.0)], [words for _, words in log_ticks(1e-7, 2e-3)]
    (['5', '10', '20', '50', '100'], ['10⁻⁷', '10⁻⁶', '10⁻⁵', '10⁻⁴', '10⁻³'])
    """
    few = math.log10(high / low) < 3.0
    values = list(_multiples((1, 2, 5) if few else (1,), low, high))
    if few and len(values) < 2:
        return linear_ticks(low, high)
    values = values[:: math.ceil(len(values) / MOST_DECADES)]
    plain = all(1e-4 <= value < 1e6 for value in values)
    return [(value, f"{value:,g}" if plain else power_of_ten(value)) for value in values]


def power_of_ten(value: float) -> str:
    """A number with one digit before a power of ten.

    Example
    -------
    >>> power_of_ten(1e-7), power_of_ten(2e6)
    ('10⁻⁷', '2·10⁶')
    """
    digit, _, exponent = f"{value:.0e}".partition("e")
    raised = str(int(exponent)).translate(str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻"))
    return ("" if digit == "1" else f"{digit}·") + f"10{raised}"


def _multiples(digits: Iterable[int], low: float, high: float) -> Iterator[float]:
    """These multiples of powers of ten between two numbers."""
    for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1):
        for digit in digits:
            value = float(f"{digit}e{power}")
            if low * (1.0 - 1e-9) <= value <= high * (1.0 + 1e-9):
                yield value


class Key(NamedTuple):
    """An entry of the legend: what it is called, the series it stands for, and one that looks like it."""

    label: str
    series: tuple[int, ...]
    look: Series


class Legend(NamedTuple):
    """How the legend is laid out on paper: ``place`` is "below" the axes, or matplotlib's word for one inside them."""

    place: str = "best"
    columns: int = 1
    size: float = 6.5
    """Of its type, in points."""
    lift: float = 0.0
    """How far up from its place, as a fraction of the axes."""


@dataclass
class Chart:
    """All that a figure shows."""

    series: Sequence[Series]
    x: Axis
    y: Axis
    rules: Sequence[Rule] = ()
    notes: Sequence[Note] = ()
    legend: Legend = field(default_factory=Legend)

    def __post_init__(self) -> None:
        """Fit the axes to all that is shown."""
        shown: dict[str, list[float]] = {"x": [], "y": []}
        for rule in (*self.rules, *(rule for one in self.series for rule in one.rules)):
            shown[rule.axis].append(rule.value)
        for one in self.series:
            for point in one.points:
                shown["x"] += [value for value in (point.x, point.x_low, point.x_high) if value is not None]
                shown["y"] += [value for value in (point.y, point.low, point.high) if value is not None]
            shown["x"] += [mark.x for mark in one.marks]
            shown["y"] += [mark.y for mark in one.marks]
        self.x, self.y = self.x.fitted(shown["x"]), self.y.fitted(shown["y"])

    @property
    def keys(self) -> list[Key]:
        """The legend: an entry for each series, or for each label of those that have a kind; then one for each kind."""
        by_label: dict[tuple[str, int], list[int]] = {}
        for i, one in enumerate(self.series):
            by_label.setdefault((one.label, -1 if one.kind else i), []).append(i)
        keys = [Key(label, tuple(found), self.series[found[0]]) for (label, _), found in by_label.items()]
        for kind in dict.fromkeys(one.kind for one in self.series if one.kind):
            members = tuple(i for i, one in enumerate(self.series) if one.kind == kind)
            keys.append(Key(kind, members, Series(kind, GREY, dash=self.series[members[0]].dash)))
        return keys


# --- what panels build charts from ----------------------------------------------------------------------------------


def points(
    x: ArrayLike,
    y: ArrayLike,
    low: ArrayLike | None = None,
    high: ArrayLike | None = None,
    x_low: ArrayLike | None = None,
    x_high: ArrayLike | None = None,
) -> tuple[Point, ...]:
    """Points from columns; those that have diverged are left out."""
    columns: list[Any] = [
        [None] * np.size(x) if column is None else np.asarray(column, dtype=np.float64).ravel().tolist()
        for column in (x, y, low, high, x_low, x_high)
    ]
    return tuple(Point(*row) for row in zip(*columns, strict=True) if math.isfinite(row[1]))


def curve(x: ArrayLike, runs: FloatArray, label: str, colour: str, **look: Any) -> Series:
    """Mean of runs (runs, points) against x, with its 95% bootstrap band where there are several runs.

    Points where a run has diverged are left out; ``look`` is as in :class:`Series`.

    Example
    -------
    >>> curve([1, 2], np.array([[3.0, 1.0], [5.0, np.inf]]), "TD", COLOURS["TD"]).points
    (Point(x=1.0, y=4.0, low=3.0, high=5.0, x_low=None, x_high=None),)
    """
    runs = np.asarray(runs, dtype=np.float64)
    middle, low, high = mean_band(runs)
    band = (low, high) if len(runs) > 1 else ()
    return Series(label, colour, points(x, middle, *band), **{"marker": "o"} | look)


def sequence(number: int, count: int) -> str:
    """The colour of value ``number`` of ``count`` values in order."""
    return SEQUENCE[round(number * (len(SEQUENCE) - 1) / max(count - 1, 1))]


def cases(places: Sequence[float], words: Sequence[str], alone: Sequence[str] = ()) -> Axis:
    """A left axis of cases in words, the first of them at the top; ``alone``: as they are called apart from others."""
    ticks = tuple(zip(map(float, places), words, strict=True))
    return Axis("", ticks=ticks, reverse=True, alone=dict(zip(map(float, places), alone, strict=False)))
