"""Charts as vector graphics, tables, and the data behind the pointer: the numbers of the page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd.page.markup import Html, element, join
from tlstd_lab.chart import Axis, Chart, Point, Rule, Series
from tlstd_lab.report.colours import Palette

WIDTH, HEIGHT = 480, 320
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 10, 48
"""Of the drawing, and what is kept free around its axes, in the SVG's units."""

DIGITS = 4
"""Of the numbers in tables and beside the pointer."""

LETTER = 6.4
"""Width to reserve for a letter of a tick."""

STROKE = 1.9
"""Width of a line that is 1.2 points wide on paper."""

MARKER = 3.0
"""Points of a marker on paper that has its usual size here."""

# --- places and words -----------------------------------------------------------------------------------------------


def left(chart: Chart) -> float:
    """Where the axes begin: further in if the ticks are words."""
    longest = max((len(words) for _, words in chart.y.ticks), default=0)
    return max(float(LEFT), 14.0 + LETTER * longest) if chart.y.wordy else float(LEFT)


def across(chart: Chart, value: float) -> float:
    """Where a value of the lower axis stands in the drawing."""
    return left(chart) + chart.x.at(value) * (WIDTH - left(chart) - RIGHT)


def above(chart: Chart, value: float) -> float:
    """Where a value of the left axis stands in the drawing."""
    return HEIGHT - BOTTOM - chart.y.at(value) * (HEIGHT - TOP - BOTTOM)


def nearest(axis: Axis, value: float) -> int:
    """The number of the tick that is nearest to a value."""
    return min(range(len(axis.ticks)), key=lambda i: abs(axis.ticks[i][0] - value))


def case(axis: Axis, index: int) -> str:
    """What a tick is called apart from its neighbours.

    Example
    -------
    >>> axis = Axis("", ticks=((0.0, "at rest, λ=1"), (1.0, "λ=0")), alone={1.0: "at rest, λ=0"})
    >>> case(axis, 0), case(axis, 1)
    ('at rest, λ=1', 'at rest, λ=0')
    """
    value, words = axis.ticks[index]
    return axis.alone.get(value, words)


def text(axis: Axis, value: float) -> str:
    """A value as it is shown; what stands for zero on a logarithmic axis is zero."""
    if axis.wordy:
        return case(axis, nearest(axis, value))
    return "0" if (value, "0") in axis.ticks else number(value)


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


# --- the drawing ----------------------------------------------------------------------------------------------------


def svg(chart: Chart, name: str, title: str, palette: Palette) -> Html:
    """Return the drawing. Colours are classes of ``palette``; ``name`` is the id of what it is clipped to."""
    start, right, bottom = left(chart), WIDTH - RIGHT, HEIGHT - BOTTOM
    parts: list[Html] = [
        element(
            "defs",
            element(
                "clipPath",
                element("rect", x=_short(start), y=TOP, width=_short(right - start), height=bottom - TOP),
                id=name,
            ),
        )
    ]
    for value, words in chart.x.ticks:
        x = _short(across(chart, value))
        parts += [element("line", class_="grid", x1=x, x2=x, y1=TOP, y2=bottom)]
        parts += [element("text", words, class_="tick", x=x, y=bottom + 18, text_anchor="middle")]
    kind = "tick wordy" if chart.y.wordy else "tick"
    for value, words in chart.y.ticks:
        y = above(chart, value)
        parts += [element("line", class_="grid", x1=_short(start), x2=right, y1=_short(y), y2=_short(y))]
        parts += [element("text", words, class_=kind, x=_short(start - 8), y=_short(y + 4.5), text_anchor="end")]
    parts.append(element("path", class_="frame", d=f"M{_short(start)} {TOP}V{bottom}H{right}"))
    middle = (start + right) / 2
    parts.append(element("text", chart.x.label, class_="label", x=_short(middle), y=HEIGHT - 7, text_anchor="middle"))
    turned = f"translate(15 {(TOP + bottom) / 2}) rotate(-90)"
    parts.append(element("text", chart.y.label, class_="label", transform=turned, text_anchor="middle"))
    inside = [_rule(chart, rule, palette, owner) for rule, owner in _rules(chart)]
    inside += [_band(chart, i, palette) for i in range(len(chart.series))]  # no line is under another's band
    inside += [_series(chart, i, palette) for i in range(len(chart.series))]
    parts.append(element("g", *inside, clip_path=f"url(#{name})"))
    for note in chart.notes:
        place = _short(start + note.across * (right - start)), _short(above(chart, note.y))
        parts.append(element("text", note.words, class_="note", x=place[0], y=place[1], text_anchor=note.anchor))
    ends = {"x1": _short(start), "x2": right, "y1": 0, "y2": 0} if chart.y.wordy else {"y1": TOP, "y2": bottom}
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
    scales = [" (logarithmic)" if axis.log else "" for axis in (chart.x, chart.y)]
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


def _rules(chart: Chart) -> Iterator[tuple[Rule, int | None]]:
    """All rules, with the number of the series that they belong to."""
    for index, one in enumerate(chart.series):
        yield from ((rule._replace(colour=one.colour), index) for rule in one.rules)
    yield from ((rule, None) for rule in chart.rules)


def _rule(chart: Chart, rule: Rule, palette: Palette, owner: int | None) -> Html:
    if rule.axis == "y":
        y = _short(above(chart, rule.value))
        ends: dict[str, object] = {"x1": _short(left(chart)), "x2": WIDTH - RIGHT, "y1": y, "y2": y}
    else:
        x = _short(across(chart, rule.value))
        ends = {"x1": x, "x2": x, "y1": TOP, "y2": HEIGHT - BOTTOM}
    dashes = " ".join(_short(1.3 * length) for length in rule.dash) or None
    look = f"rule {palette(rule.colour)}"
    return element("line", class_=look, stroke_dasharray=dashes, data_series=owner, **ends)


def _series(chart: Chart, index: int, palette: Palette) -> Html:
    series = chart.series[index]
    seen = _seen(chart, series)
    parts = []
    if series.joined and len(seen) > 1:
        d = "M" + "L".join(f"{_short(x)} {_short(y)}" for _, x, y in seen)
        width = _short(STROKE * series.width / 1.2)
        parts.append(element("path", class_="line", d=d, stroke_width=width, stroke_dasharray=_dashes(series)))
    else:
        parts += [bar for point, _, _ in seen for bar in _bars(chart, point)]
    if series.marker:
        size = series.size / MARKER
        parts += [_symbol(series.marker, x, y, series.hollow, size) for _, x, y in seen[:: series.every]]
    parts += [
        _symbol(mark.marker, across(chart, mark.x), above(chart, mark.y), mark.hollow, 1.5) for mark in series.marks
    ]
    return element("g", *parts, class_=f"series {palette(series.colour)}", data_series=index)


def _seen(chart: Chart, series: Series) -> list[tuple[Point, float, float]]:
    """The points that have a place in the drawing, and where."""
    points = [(point, across(chart, point.x), above(chart, point.y)) for point in series.points]
    return [(point, x, y) for point, x, y in points if math.isfinite(x) and math.isfinite(y)]


def _band(chart: Chart, index: int, palette: Palette) -> Html:
    """The intervals of a line; nothing if it has none."""
    series = chart.series[index]
    points = [point for point, _, _ in _seen(chart, series)]
    if not series.joined or len(points) < 2 or not series.has_intervals:
        return Html()
    band = element("path", class_="band", d=_outline(chart, points))
    return element("g", band, class_=palette(series.colour), data_series=index)


def _outline(chart: Chart, points: Sequence[Point]) -> str:
    """The outline of the intervals; what has no place on a logarithmic axis is at its lower end."""

    def corner(point: Point, value: float | None) -> str:
        y = above(chart, chart.y.low if value is None else value)
        y = y if math.isfinite(y) else 2.0 * HEIGHT
        return f"{_short(across(chart, point.x))} {_short(min(max(y, -HEIGHT), 2.0 * HEIGHT))}"

    there = [corner(point, point.high) for point in points]
    back = [corner(point, point.low) for point in reversed(points)]
    return "M" + "L".join(there + back) + "Z"


def _bars(chart: Chart, point: Point) -> list[Html]:
    """Error bars of one point."""
    made = []
    for one, other in (
        ((point.x, point.low), (point.x, point.high)),
        ((point.x_low, point.y), (point.x_high, point.y)),
    ):
        if None not in one and None not in other:
            (x1, y1), (x2, y2) = (
                (across(chart, float(x or 0.0)), above(chart, float(y or 0.0))) for x, y in (one, other)
            )
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


# --- numbers --------------------------------------------------------------------------------------------------------


def _values(chart: Chart, point: Point) -> tuple[str, str]:
    """Where a point stands on the axes, as it is shown."""
    x, y = text(chart.x, point.x), text(chart.y, point.y)
    return x + spread(point.x_low, point.x_high), y + spread(point.low, point.high)


def data(chart: Chart) -> dict[str, Any]:
    """Return what the page's script needs to show values: along which axis, its label, and points.

    A point has its place in the drawing along that axis, and as text where that is and its value there. Cases are read
    one after the other: a line may have the same value in several.
    """

    def read(point: Point) -> list[object]:
        x, y = _values(chart, point)
        if chart.y.wordy:
            return [round(above(chart, chart.y.ticks[nearest(chart.y, point.y)][0]), 1), y, x]
        return [round(across(chart, point.x), 1), x, y]

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
        columns = [{nearest(chart.y, point.y): _values(chart, point)[0] for point in one.points} for one in named]
        head = ["case", *(f"{one.name}: {chart.x.label}" for one in named)]
        rows = [[case(chart.y, i), *(column.get(i, "") for column in columns)] for i in range(len(chart.y.ticks))]
    elif len(places) <= 1.5 * longest:
        by_place = [{point.x: _values(chart, point)[1] for point in one.points} for one in named]
        head = [chart.x.label, *(one.name for one in named)]
        rows = [[text(chart.x, x), *(column.get(x, "") for column in by_place)] for x in places]
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
            number(rule.value) + (f" (with {chart.series[owner].name})" if owner is not None else "")
            for rule, owner in _rules(chart)
            if rule.axis == axis
        ]
        if texts:
            said.append(element("p", f"Lines across at {label}: {'; '.join(texts)}."))
    marks = [
        f"{'★' if mark.marker == '*' else '×' if mark.marker == 'x' else mark.marker} of {one.name}: "
        f"{text(chart.x, mark.x)}, {text(chart.y, mark.y)}"
        for one in chart.series
        for mark in one.marks
    ]
    if marks:
        said.append(element("p", f"Marks ({chart.x.label}; {chart.y.label}): {'; '.join(marks)}."))
    return said
