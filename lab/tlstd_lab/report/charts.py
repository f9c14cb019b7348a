"""Panels as vector graphics: what a panel draws on matplotlib's axes, read back as numbers, then written as SVG.

The numbers of the page (its figures, what a pointer or the arrow keys show, and the tables) all come from the
:class:`Chart` that :func:`read` returns, so they are those of the figure that ``tlstd reproduce`` draws.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tlstd.types import FloatArray
from tlstd_lab.report.colours import Palette
from tlstd_lab.report.markup import Html, element, join

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, HEIGHT = 480, 320
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 10, 48
"""Of the drawing, and what is kept free around its axes, in the SVG's units."""

DIGITS = 4
"""Of the numbers in tables and beside the pointer."""

MARKERS = "osDv^<>PXp*x"
"""Those that panels use, by matplotlib's letters."""

RAISED = str.maketrans("0123456789+-−.in", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻·ⁱⁿ")
LOWERED = str.maketrans("0123456789+-−ij", "₀₁₂₃₄₅₆₇₈₉₊₋₋ᵢⱼ")

LETTER = 6.4
"""Width to reserve for a letter of a tick."""

STROKE = 1.9
"""Width of a line that is 1.2 points wide on paper."""

MARKER = 3.0
"""Points of a marker on paper that has its usual size here."""


class Point(NamedTuple):
    """A point with its interval, if it has one, in either direction."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    x_low: float | None = None
    x_high: float | None = None


class Mark(NamedTuple):
    """A single symbol that belongs to a line."""

    marker: str
    x: float
    y: float
    hollow: bool


@dataclass
class Series:
    """A line of the figure: how it looks, its points, and what else is shown or hidden with it."""

    name: str
    colour: str
    dash: tuple[float, ...] = ()
    width: float = 1.2
    marker: str = ""
    every: int = 1
    hollow: bool = False
    joined: bool = True
    size: float = 3.0
    """Of the marker, in points."""
    points: list[Point] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)


class Rule(NamedTuple):
    """A line across the figure at a value of ``axis`` ("x" or "y"), perhaps shown or hidden with a series."""

    axis: str
    value: float
    colour: str
    dash: tuple[float, ...]
    series: int | None


class Note(NamedTuple):
    """Text at a place, in fractions of the axes from the lower left corner."""

    words: str
    across: float
    up: float
    anchor: str


class Axis(NamedTuple):
    """What is along one side: its label, "linear" or "log", its ends (that of the origin first), and ticks."""

    label: str
    scale: str
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]

    @property
    def wordy(self) -> bool:
        """Whether ticks are words, so that values between them mean nothing."""
        return any(letter.isalpha() for _, words in self.ticks for letter in words)

    def tick(self, value: float) -> int:
        """The number of the nearest tick."""
        return min(range(len(self.ticks)), key=lambda i: abs(self.ticks[i][0] - value))

    def case(self, index: int) -> str:
        """What a tick says; if others say the same, with the group that an earlier one names before a comma.

        Example
        -------
        >>> ticks = ((0.0, "as printed, λ=1"), (1.0, "λ=0"), (2.0, "at rest, λ=1"), (3.0, "λ=0"))
        >>> Axis("", "linear", 0.0, 3.0, ticks).case(3)
        'at rest, λ=0'
        """
        said = self.ticks[index][1]
        if [words for _, words in self.ticks].count(said) > 1:
            for _, earlier in reversed(self.ticks[:index]):
                group, comma, _ = earlier.rpartition(", ")
                if comma:
                    return f"{group}, {said}"
        return said

    def text(self, value: float) -> str:
        """A value as it is shown; what stands for zero on a logarithmic axis is zero."""
        if self.wordy:
            return self.case(self.tick(value))
        return "0" if (value, "0") in self.ticks else number(value)

    def at(self, value: float) -> float:
        """Where a value stands, 0 at the low end and 1 at the high one; NaN if it stands nowhere."""
        if self.scale == "log":
            if value <= 0.0:
                return math.nan
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


class Key(NamedTuple):
    """An entry of the legend: what it is called, the series it stands for, and the one that it looks like."""

    label: str
    series: tuple[int, ...]
    look: Series


@dataclass
class Chart:
    """All that a figure shows."""

    x: Axis
    y: Axis
    series: list[Series]
    rules: list[Rule]
    notes: list[Note]
    keys: list[Key]

    @property
    def left(self) -> float:
        """Where the axes begin: further in if the ticks are words."""
        longest = max((len(words) for _, words in self.y.ticks), default=0)
        return max(float(LEFT), 14.0 + LETTER * longest) if self.y.wordy else float(LEFT)

    def across(self, value: float) -> float:
        """Where a value of the lower axis stands in the drawing."""
        return self.left + self.x.at(value) * (WIDTH - self.left - RIGHT)

    def above(self, value: float) -> float:
        """Where a value of the left axis stands in the drawing."""
        return HEIGHT - BOTTOM - self.y.at(value) * (HEIGHT - TOP - BOTTOM)


# --- reading --------------------------------------------------------------------------------------------------------


def plain(words: str) -> str:
    """Text of matplotlib without its mathematics: superscripts and subscripts as such characters.

    Example
    -------
    >>> plain(r"$\\mathdefault{10^{-3}}$"), plain("1e-07"), plain("$σ_i/σ_1$ (dotted: 0.01)")
    ('10⁻³', '10⁻⁷', 'σᵢ/σ₁ (dotted: 0.01)')
    """
    if power := re.fullmatch(r"1e([+-]?\d+)", words):
        return "10" + str(int(power[1])).translate(RAISED)
    if "$" not in words:
        return words
    words = words.replace("$", "").replace(r"\mathdefault", "")
    made, table = "", None
    depth = 0
    for letter in words:
        if letter in "^_" and table is None:
            table, depth = (RAISED if letter == "^" else LOWERED), 0
        elif letter == "{":
            depth += table is not None
        elif letter == "}":
            depth -= table is not None
            table = None if depth <= 0 else table
        elif table is not None:
            made += letter.translate(table)
            table = table if depth else None
        else:
            made += letter
    return made


def read(axes: Axes) -> Chart:
    """Return what has been drawn on axes by lines, bands, error bars, scattered marks, rules and text."""
    from matplotlib.collections import LineCollection, PathCollection, PolyCollection
    from matplotlib.lines import Line2D

    labels = _bar_labels(axes)
    series: list[Series] = []
    proxies: list[Series] = []
    rules: list[Rule] = []
    for artist in axes.get_children():
        if isinstance(artist, Line2D):
            in_data = artist.get_transform().contains_branch_seperately(axes.transData)
            made = _line(artist, labels)
            if not all(in_data):
                axis = "y" if in_data[1] else "x"
                value = float(np.asarray(artist.get_ydata() if in_data[1] else artist.get_xdata(), dtype=float)[0])
                owned = bool(series) and series[-1].colour == made.colour
                rules.append(Rule(axis, value, made.colour, made.dash, len(series) - 1 if owned else None))
            elif made.points and not made.name and not made.joined and series and series[-1].colour == made.colour:
                series[-1].marks += [Mark(made.marker, point.x, point.y, made.hollow) for point in made.points]
            elif made.points:
                series.append(made)
            elif made.name:
                proxies.append(made)
        elif isinstance(artist, PathCollection):
            series[-1].marks += _marks(artist)
        elif isinstance(artist, PolyCollection):
            _add_band(series[-1], artist)
        elif isinstance(artist, LineCollection):
            _add_bars(series[-1], artist)
    keys = _keys(series, proxies)
    return Chart(_axis(axes, "x"), _axis(axes, "y"), series, rules, _notes(axes), keys)


def _line(line: Any, labels: dict[int, str]) -> Series:
    from matplotlib.colors import to_hex

    label = labels.get(id(line), str(line.get_label()))
    marker = str(line.get_marker())
    every = line.get_markevery()
    face = line.get_markerfacecolor()
    xs, ys = (np.asarray(data, dtype=np.float64) for data in (line.get_xdata(), line.get_ydata()))
    return Series(
        name="" if label.startswith("_child") else label,
        colour=to_hex(line.get_color()),
        dash=_dash(line),
        width=float(line.get_linewidth()),
        marker="" if marker in ("", " ", "None") else marker if marker in MARKERS else "o",
        every=every if isinstance(every, int) else 1,
        hollow=isinstance(face, str) and face in ("none", "white"),
        joined=str(line.get_linestyle()) not in ("", " ", "None"),
        size=float(line.get_markersize()),
        points=[Point(float(x), float(y)) for x, y in zip(xs, ys, strict=True) if np.isfinite(y)],
    )


def _dash(line: Any) -> tuple[float, ...]:
    """Lengths of dashes and gaps in widths of the line; none if it is solid."""
    named = {"--": (3.7, 1.6), ":": (1.0, 1.65), "-.": (6.4, 1.6, 1.0, 1.6)}
    _, own = getattr(line, "_unscaled_dash_pattern", (0.0, None))  # a pattern of one's own has no public name
    return tuple(float(length) for length in own or named.get(str(line.get_linestyle()), ()))


def _bar_labels(axes: Axes) -> dict[int, str]:
    """Labels of the lines that belong to error bars, by the line's id: they are kept with the whole."""
    from matplotlib.container import ErrorbarContainer

    return {id(c.lines[0]): str(c.get_label()) for c in axes.containers if isinstance(c, ErrorbarContainer)}


def _add_bars(series: Series, artist: Any) -> None:
    """Add the ends of straight pieces, one per point, to the points that were drawn before them."""
    pieces = artist.get_segments()
    if len(pieces) != len(series.points):
        return
    for i, piece in enumerate(pieces):
        (x0, y0), (x1, y1) = np.asarray(piece, dtype=np.float64)[[0, -1]].tolist()
        ends = {"low": y0, "high": y1} if x0 == x1 and y0 != y1 else {"x_low": x0, "x_high": x1}
        series.points[i] = series.points[i]._replace(**ends)


def _add_band(series: Series, artist: Any) -> None:
    """Add a filled band's ends to the points of the line that was drawn just before it."""
    corners = np.asarray(artist.get_paths()[0].vertices, dtype=np.float64)
    n = (len(corners) - 3) // 2  # the first corner and the turning one are doubled, and the polygon is closed
    one, other = corners[1 : n + 1], corners[n + 2 : 2 * n + 2][::-1]
    if n != len(series.points):
        return
    ends = np.sort(np.column_stack([one[:, 1], other[:, 1]]), axis=1)
    series.points = [
        point._replace(low=float(low), high=float(high)) for point, (low, high) in zip(series.points, ends, strict=True)
    ]


def _marks(artist: Any) -> list[Mark]:
    """Scattered marks of one kind."""
    from matplotlib.colors import to_hex
    from matplotlib.markers import MarkerStyle

    shape = np.asarray(artist.get_paths()[0].vertices)
    marker = "o"
    for letter in MARKERS:
        style = MarkerStyle(letter)
        known = np.asarray(style.get_path().transformed(style.get_transform()).vertices)
        if known.shape == shape.shape and np.allclose(known, shape):
            marker = letter
            break
    faces = artist.get_facecolor()
    hollow = marker != "x" and len(faces) > 0 and to_hex(faces[0]) == "#ffffff"
    return [Mark(marker, float(x), float(y), hollow) for x, y in np.asarray(artist.get_offsets(), dtype=np.float64)]


def _keys(series: list[Series], proxies: list[Series]) -> list[Key]:
    """The legend. A line whose label begins with _ goes with the one of that label; an empty one stands for its dashes.

    Names of series become full: with what their dashes stand for.
    """
    named = [one.name.removeprefix("_") for one in series]
    keys = []
    for label in dict.fromkeys(name for name in named if name):
        members = tuple(i for i, name in enumerate(named) if name == label)
        keys.append(Key(label, members, series[members[0]]))
    for proxy in proxies:
        members = tuple(i for i, one in enumerate(series) if one.dash == proxy.dash)
        keys.append(Key(proxy.name, members, proxy))
    for one, name in zip(series, named, strict=True):
        one.name = ", ".join([name, *(proxy.name for proxy in proxies if proxy.dash == one.dash)])
    return keys


def _axis(axes: Any, which: str) -> Axis:
    axis = axes.xaxis if which == "x" else axes.yaxis
    low, high = (float(end) for end in (axes.get_xlim() if which == "x" else axes.get_ylim()))
    values = [float(value) for value in axis.get_majorticklocs()]
    texts = axis.get_major_formatter().format_ticks(values)
    slack = 1e-9 * abs(high - low)
    inside = (min(low, high) - slack, max(low, high) + slack)
    ticks = tuple((v, plain(t)) for v, t in zip(values, texts, strict=True) if inside[0] <= v <= inside[1] and t)
    return Axis(plain(axis.get_label_text()), axis.get_scale(), low, high, ticks)


def _notes(axes: Axes) -> list[Note]:
    notes = []
    for words in axes.texts:
        place = words.get_transform().transform(words.get_position())
        across, up = axes.transAxes.inverted().transform(place)
        anchor = {"left": "start", "center": "middle", "right": "end"}[words.get_horizontalalignment()]
        notes.append(Note(plain(words.get_text()), float(across), float(up), anchor))
    return notes


# --- writing --------------------------------------------------------------------------------------------------------


def number(value: float | None) -> str:
    """A number as it is shown.

    Example
    -------
    >>> number(1234.5678), number(0.000012345), number(9999.6), number(0.25)
    ('1,235', '1.234e-05', '10,000', '0.25')
    """
    if value is None or not math.isfinite(value):
        return "–"
    few = abs(value) < 10.0**DIGITS - 0.5  # what is rounded to more digits would get an exponent
    return f"{value:,.{DIGITS}g}" if few or abs(value) >= 1e15 else f"{value:,.0f}"


def spread(low: float | None, high: float | None) -> str:
    """An interval as it is shown after its number; nothing if there is none."""
    return "" if low is None or high is None else f" [{number(low)}, {number(high)}]"


def svg(chart: Chart, name: str, title: str, palette: Palette) -> Html:
    """Return the drawing. Colours are classes of ``palette``; ``name`` is the id of what it is clipped to."""
    left, right, bottom = chart.left, WIDTH - RIGHT, HEIGHT - BOTTOM
    parts: list[Html] = [
        element(
            "defs",
            element(
                "clipPath",
                element("rect", x=_short(left), y=TOP, width=_short(right - left), height=bottom - TOP),
                id=name,
            ),
        )
    ]
    for value, words in chart.x.ticks:
        x = _short(chart.across(value))
        parts += [element("line", class_="grid", x1=x, x2=x, y1=TOP, y2=bottom)]
        parts += [element("text", words, class_="tick", x=x, y=bottom + 18, text_anchor="middle")]
    kind = "tick wordy" if chart.y.wordy else "tick"
    for value, words in chart.y.ticks:
        y = chart.above(value)
        parts += [element("line", class_="grid", x1=_short(left), x2=right, y1=_short(y), y2=_short(y))]
        parts += [element("text", words, class_=kind, x=_short(left - 8), y=_short(y + 4.5), text_anchor="end")]
    parts.append(element("path", class_="frame", d=f"M{_short(left)} {TOP}V{bottom}H{right}"))
    middle = (left + right) / 2
    parts.append(element("text", chart.x.label, class_="label", x=_short(middle), y=HEIGHT - 7, text_anchor="middle"))
    turned = f"translate(15 {(TOP + bottom) / 2}) rotate(-90)"
    parts.append(element("text", chart.y.label, class_="label", transform=turned, text_anchor="middle"))
    inside = [_rule(chart, rule, palette) for rule in chart.rules]
    inside += [_band(chart, i, palette) for i in range(len(chart.series))]  # no line is under another's band
    inside += [_series(chart, i, palette) for i in range(len(chart.series))]
    parts.append(element("g", *inside, clip_path=f"url(#{name})"))
    for note in chart.notes:
        place = _short(left + note.across * (right - left)), _short(bottom - note.up * (bottom - TOP))
        parts.append(element("text", note.words, class_="note", x=place[0], y=place[1], text_anchor=note.anchor))
    ends = {"x1": _short(left), "x2": right, "y1": 0, "y2": 0} if chart.y.wordy else {"y1": TOP, "y2": bottom}
    parts.append(element("line", class_="guide", visibility="hidden", **ends))
    return element(
        "svg",
        element("title", title),
        *parts,
        class_="chart",
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_label=f"{title}. {describe(chart)}",
    )


def describe(chart: Chart) -> str:
    """Say in a sentence what a chart has."""
    scales = [" (logarithmic)" if axis.scale == "log" else "" for axis in (chart.x, chart.y)]
    names = "; ".join(one.name for one in chart.series if one.name)
    shown = f"{chart.y.label}{scales[1]} against " if chart.y.label else ""
    return f"{shown}{chart.x.label}{scales[0]}. Lines: {names}."


def swatch(look: Series, palette: Palette) -> Html:
    """Return a piece of a line for the legend."""
    parts = []
    if look.joined:
        parts.append(element("path", class_="line", d="M2 7H34", stroke_width=STROKE, stroke_dasharray=_dashes(look)))
    if look.marker:
        parts.append(_symbol(look.marker, 18.0, 7.0, look.hollow, look.size / MARKER))
    return element("svg", *parts, class_=f"swatch {palette(look.colour)}", viewBox="0 0 36 14", aria_hidden="true")


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _dashes(look: Series) -> str | None:
    width = STROKE * look.width / 1.2
    return " ".join(_short(width * length) for length in look.dash) or None


def _rule(chart: Chart, rule: Rule, palette: Palette) -> Html:
    if rule.axis == "y":
        y = _short(chart.above(rule.value))
        ends: dict[str, object] = {"x1": _short(chart.left), "x2": WIDTH - RIGHT, "y1": y, "y2": y}
    else:
        x = _short(chart.across(rule.value))
        ends = {"x1": x, "x2": x, "y1": TOP, "y2": HEIGHT - BOTTOM}
    dashes = " ".join(_short(1.3 * length) for length in rule.dash) or None
    look = f"rule {palette(rule.colour)}"
    return element("line", class_=look, stroke_dasharray=dashes, data_series=rule.series, **ends)


def _series(chart: Chart, index: int, palette: Palette) -> Html:
    series = chart.series[index]

    def place(x: float, y: float) -> tuple[float, float]:
        return chart.across(x), chart.above(y)

    seen = _seen(chart, series)
    parts = []
    if series.joined and len(seen) > 1:
        d = "M" + "L".join(f"{_short(x)} {_short(y)}" for _, x, y in seen)
        width = _short(STROKE * series.width / 1.2)
        parts.append(element("path", class_="line", d=d, stroke_width=width, stroke_dasharray=_dashes(series)))
    else:
        parts += [bar for point, _, _ in seen for bar in _bars(point, place)]
    if series.marker:
        size = series.size / MARKER
        parts += [_symbol(series.marker, x, y, series.hollow, size) for _, x, y in seen[:: series.every]]
    parts += [_symbol(mark.marker, *place(mark.x, mark.y), mark.hollow, 1.5) for mark in series.marks]
    return element("g", *parts, class_=f"series {palette(series.colour)}", data_series=index)


def _seen(chart: Chart, series: Series) -> list[tuple[Point, float, float]]:
    """The points that have a place in the drawing, and where."""
    points = [(point, chart.across(point.x), chart.above(point.y)) for point in series.points]
    return [(point, x, y) for point, x, y in points if math.isfinite(x) and math.isfinite(y)]


def _band(chart: Chart, index: int, palette: Palette) -> Html:
    """The intervals of a line; nothing if it has none."""
    series = chart.series[index]
    points = [point for point, _, _ in _seen(chart, series)]
    if not series.joined or len(points) < 2 or series.points[0].low is None:
        return Html()
    band = element("path", class_="band", d=_outline(chart, points))
    return element("g", band, class_=palette(series.colour), data_series=index)


def _outline(chart: Chart, points: Sequence[Point]) -> str:
    """The outline of the intervals; what has no place on a logarithmic axis is at its lower end."""

    def corner(point: Point, value: float | None) -> str:
        y = chart.above(chart.y.low if value is None else value)
        y = y if math.isfinite(y) else 2.0 * HEIGHT
        return f"{_short(chart.across(point.x))} {_short(min(max(y, -HEIGHT), 2.0 * HEIGHT))}"

    there = [corner(point, point.high) for point in points]
    back = [corner(point, point.low) for point in reversed(points)]
    return "M" + "L".join(there + back) + "Z"


def _bars(point: Point, place: Callable[[float, float], tuple[float, float]]) -> list[Html]:
    """Error bars of one point."""
    made = []
    for one, other in (
        ((point.x, point.low), (point.x, point.high)),
        ((point.x_low, point.y), (point.x_high, point.y)),
    ):
        if None not in one and None not in other:
            (x1, y1), (x2, y2) = (place(float(x or 0.0), float(y or 0.0)) for x, y in (one, other))
            if all(map(math.isfinite, (x1, y1, x2, y2))):
                made.append(
                    element("path", class_="whisker", d=f"M{_short(x1)} {_short(y1)}L{_short(x2)} {_short(y2)}")
                )
    return made


def _symbol(marker: str, x: float, y: float, hollow: bool, size: float = 1.0) -> Html:
    """A marker as a path around its place."""
    r = 3.1 * size
    look = "dot hollow" if hollow else "dot"
    if marker == "o":
        arc = f"a{r:g} {r:g} 0 1 0"
        return element("path", class_=look, d=f"M{_short(x - r)} {_short(y)}{arc} {2 * r:g} 0{arc} {-2 * r:g} 0z")
    if marker == "x":
        strokes = f"l{2 * r:g} {2 * r:g}m0 {-2 * r:g}l{-2 * r:g} {2 * r:g}"
        return element("path", class_="cross", d=f"M{_short(x - r)} {_short(y - r)}{strokes}")
    d = "M" + "L".join(f"{_short(x + r * right)} {_short(y - r * up)}" for right, up in SHAPES[marker]) + "Z"
    return element("path", class_=look, d=d)


def _star() -> FloatArray:
    angles = np.pi / 2 + np.arange(10) * np.pi / 5
    radii = np.where(np.arange(10) % 2 == 0, 1.4, 0.56)
    return np.column_stack([radii * np.cos(angles), radii * np.sin(angles)])


_PLUS = [(-0.4, 1.1), (0.4, 1.1), (0.4, 0.4), (1.1, 0.4), (1.1, -0.4), (0.4, -0.4)]
_PLUS += [(-x, -y) for x, y in _PLUS]

SHAPES: dict[str, Any] = {
    "s": [(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
    "D": [(0.0, 1.2), (1.2, 0.0), (0.0, -1.2), (-1.2, 0.0)],
    "^": [(0.0, 1.15), (1.1, -0.85), (-1.1, -0.85)],
    "v": [(0.0, -1.15), (1.1, 0.85), (-1.1, 0.85)],
    "<": [(-1.15, 0.0), (0.85, 1.1), (0.85, -1.1)],
    ">": [(1.15, 0.0), (-0.85, 1.1), (-0.85, -1.1)],
    "p": [(1.15 * math.sin(0.4 * math.pi * i), 1.15 * math.cos(0.4 * math.pi * i)) for i in range(5)],
    "P": _PLUS,
    "X": [((x - y) * 0.75, (x + y) * 0.75) for x, y in _PLUS],
    "*": _star(),
}
"""Corners of markers, up is positive."""


def _values(chart: Chart, point: Point) -> tuple[str, str]:
    """Where a point stands on the axes, as it is shown."""
    return chart.x.text(point.x) + spread(point.x_low, point.x_high), chart.y.text(point.y) + spread(
        point.low, point.high
    )


def data(chart: Chart) -> dict[str, Any]:
    """Return what the page's script needs to show values: along which axis, its label, and points.

    A point has its place in the drawing along that axis, and as text where that is and its value there. Cases are read
    one after the other: a line may have the same value in several.
    """

    def read(point: Point) -> list[object]:
        x, y = _values(chart, point)
        if chart.y.wordy:
            return [round(chart.above(chart.y.ticks[chart.y.tick(point.y)][0]), 1), y, x]
        return [round(chart.across(point.x), 1), x, y]

    return {
        "series": [
            {"name": one.name, "points": [read(point) for point, _, _ in _seen(chart, one)]} for one in chart.series
        ],
        "along": "y" if chart.y.wordy else "x",
        "label": chart.y.label if chart.y.wordy else chart.x.label,
    }


def table(chart: Chart, title: str) -> Html:
    """Return the numbers: a row per place if the lines share places (or categories), else a row per point."""
    named = [one for one in chart.series if one.points]
    places = sorted({point.x for one in named for point in one.points})
    longest = max((len(one.points) for one in named), default=0)
    if chart.y.wordy:
        columns = [{chart.y.tick(point.y): _values(chart, point)[0] for point in one.points} for one in named]
        head = ["case", *(f"{one.name}: {chart.x.label}" for one in named)]
        rows = [[chart.y.case(i), *(column.get(i, "") for column in columns)] for i in range(len(chart.y.ticks))]
    elif len(places) <= 1.5 * longest:
        by_place = [{point.x: _values(chart, point)[1] for point in one.points} for one in named]
        head = [chart.x.label, *(one.name for one in named)]
        rows = [[chart.x.text(x), *(column.get(x, "") for column in by_place)] for x in places]
    else:
        head = ["line", chart.x.label, chart.y.label]
        rows = [[one.name, *_values(chart, point)] for one in named for point in one.points]
    body = [
        element("tr", element("th", row[0], scope="row"), *(element("td", cell) for cell in row[1:])) for row in rows
    ]
    words = f"{title}: {chart.y.label or chart.x.label}; in brackets intervals, where there are any"
    made = element(
        "table",
        element("caption", words),
        element("thead", element("tr", *(element("th", cell, scope="col") for cell in head))),
        element("tbody", *body),
        class_="numbers",
    )
    return join(made, *_also(chart))


def _also(chart: Chart) -> list[Html]:
    """What is not on a line: rules across the figure and single marks."""
    said = []
    for axis, label in (("y", chart.y.label), ("x", chart.x.label)):
        texts = [
            number(rule.value) + (f" (with {chart.series[rule.series].name})" if rule.series is not None else "")
            for rule in chart.rules
            if rule.axis == axis
        ]
        if texts:
            said.append(element("p", f"Lines across at {label}: {'; '.join(texts)}."))
    marks = [
        f"{'★' if mark.marker == '*' else '×' if mark.marker == 'x' else mark.marker} of {one.name}: "
        f"{chart.x.text(mark.x)}, {chart.y.text(mark.y)}"
        for one in chart.series
        for mark in one.marks
    ]
    if marks:
        said.append(element("p", f"Marks ({chart.x.label}; {chart.y.label}): {'; '.join(marks)}."))
    return said
