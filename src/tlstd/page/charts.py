"""Figures as vector graphics: drawn here, so that a page needs no other package and no script."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tlstd.evaluation.views import EpisodeTrace, Map
from tlstd.page.markup import Html, element
from tlstd.page.numbers import Scale, number

WIDTH, NARROW = 480, 370
"""Of drawings that stand alone, and of those that stand side by side."""
LEFT, RIGHT, TOP, BOTTOM = 70, 16, 26, 52
"""Kept free around the axes, in the drawing's units."""
LETTER, LONGEST = 9.0, 22
"""Width to reserve for a letter of a name, and letters that are shown of it."""
POINTS = 60
"""Places of a line that can be pointed at."""
ROW = 34
"""Height of a line in a list of values."""
COLOURS = (
    "#440154", "#481a6c", "#472f7d", "#414487", "#39568c", "#31688e", "#2a788e", "#23888e",
    "#1f988b", "#22a884", "#35b779", "#54c568", "#7ad151", "#a5db36", "#d2e21b", "#fde725",
)  # fmt: skip
"""Of maps, the least value first (viridis)."""


class Bar(NamedTuple):
    """A value with an interval, in a list of them."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    strong: bool = False
    faint: bool = False


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _svg(height: float, title: str, *parts: object, width: float = WIDTH) -> Html:
    return element(
        "svg",
        element("title", title),
        *parts,
        class_="chart narrow" if width < WIDTH else "chart",
        viewBox=f"0 0 {_short(width)} {_short(height)}",
        role="img",
        aria_label=title,
    )


def _words(text: str, x: float, y: float, anchor: str = "middle", class_: str = "tick") -> Html:
    return element("text", text, class_=class_, x=_short(x), y=_short(y), text_anchor=anchor)


def _line(class_: str, x1: float, y1: float, x2: float, y2: float) -> Html:
    return element("line", class_=class_, x1=_short(x1), x2=_short(x2), y1=_short(y1), y2=_short(y2))


def _pointed(said: str, *parts: Html, short: str = "", kind: str = "", width: float = WIDTH) -> Html:
    """Parts that say something when they are pointed at or touched: above the drawing, and in the pointer's words."""
    shown = element("text", short or said, class_="said", x=_short(width - RIGHT), y=14, text_anchor="end")
    return element("g", element("title", said), *parts, shown, class_=f"at {kind}".strip())


def _axes(x: Scale, y: Scale, labels: tuple[str, str], *, x_ticks: int = 5) -> list[Html]:
    """Grid, ticks and names of two axes; y runs upwards."""
    parts: list[Html] = []
    for value in x.ticks(x_ticks):
        parts += [_line("grid", x.at(value), y.end, x.at(value), y.start)]
        parts += [_words(number(value), x.at(value), y.start + 18)]
    for value in y.ticks():
        parts += [_line("grid", x.start, y.at(value), x.end, y.at(value))]
        parts += [_words(number(value), x.start - 8, y.at(value) + 4.5, "end")]
    parts.append(element("path", class_="frame", d=f"M{_short(x.start)} {_short(y.end)}V{_short(y.start)}H{x.end:g}"))
    parts.append(_words(labels[0], (x.start + x.end) / 2, y.start + 40, class_="label"))
    turned = f"translate(14 {_short((y.start + y.end) / 2)}) rotate(-90)"
    parts.append(element("text", labels[1], class_="label", transform=turned, text_anchor="middle"))
    return parts


def listed(bars: Sequence[Bar], title: str, label: str, *, band: tuple[float, float] | None = None) -> Html:
    """Values one below the other, with intervals where there are any; ``band`` is shaded over all of them."""
    longest = max(len(bar.name) for bar in bars)
    left = 26.0 + LETTER * min(longest, LONGEST)
    bottom = TOP + ROW * len(bars)
    ends = [end for bar in bars for end in (bar.value, bar.low, bar.high) if end is not None]
    x = Scale.over([*ends, *(band or ())], left, WIDTH - RIGHT - 6)
    parts: list[Html] = []
    if band is not None:
        at = x.at(band[0])
        parts.append(
            element("rect", class_="shade", x=_short(at), y=TOP, width=_short(x.at(band[1]) - at), height=bottom - TOP)
        )
    for value in x.ticks(4):
        parts += [_line("grid", x.at(value), TOP, x.at(value), bottom), _words(number(value), x.at(value), bottom + 18)]
    parts.append(_line("frame", x.start, bottom, x.end, bottom))
    parts.append(_words(label, (x.start + x.end) / 2, bottom + 40, class_="label"))
    for i, bar in enumerate(bars):
        y = TOP + ROW * (i + 0.5)
        name = shortened(bar.name, LONGEST)
        kind = "strong" if bar.strong else "faint" if bar.faint else "plain"
        parts.append(_words(name, left - 14, y + 4.5, "end", f"name {kind}"))
        inside: list[Html] = []
        if bar.low is not None and bar.high is not None and math.isfinite(bar.high - bar.low):
            inside.append(_line("whisker", x.at(bar.low), y, x.at(bar.high), y))
            inside += [_line("whisker", x.at(e), y - 6, x.at(e), y + 6) for e in (bar.low, bar.high)]
        if math.isfinite(bar.value):
            inside.append(element("circle", class_="dot", cx=_short(x.at(bar.value)), cy=_short(y), r=5.5))
        parts.append(_pointed(_said(bar), *inside, short=_said(bar._replace(name=name)), kind=kind))
    return _svg(bottom + BOTTOM, title, *parts)


def _said(bar: Bar) -> str:
    interval = f", from {number(bar.low)} to {number(bar.high)}" if bar.low is not None else ""
    return f"{bar.name}: {number(bar.value)}{interval}"


def calibration(parts: Sequence[dict[str, float]], title: str) -> Html:
    """Realised against predicted values, with the diagonal on which they should lie."""
    ends = [p["realised"] + sign * 2.0 * p["standard_error"] for p in parts for sign in (-1.0, 1.0)]
    both = [*ends, *(p["predicted"] for p in parts)]
    x = Scale.over(both, LEFT, WIDTH - RIGHT)
    y = Scale(x.low, x.high, TOP + 330, TOP)
    made = _axes(x, y, ("predicted", "mean return"))
    made.append(_line("diagonal", x.start, y.start, x.end, y.end))
    for part in parts:
        at, error = x.at(part["predicted"]), 2.0 * part["standard_error"]
        said = f"predicted {number(part['predicted'])}, return {number(part['realised'])} ± {number(error, 2)}"
        low, high = y.at(part["realised"] - error), y.at(part["realised"] + error)
        dot = element("circle", class_="dot", cx=_short(at), cy=_short(y.at(part["realised"])), r=5)
        whole = f"{said} ({part['steps']:,.0f} states)"
        made.append(_pointed(whole, _line("whisker", at, low, at, high), dot, kind="strong"))
    return _svg(y.start + BOTTOM, title, *made)


def along(one: EpisodeTrace, title: str) -> Html:
    """Values and returns along an episode."""
    values = [*one.values.tolist(), *([] if one.returns is None else one.returns.tolist())]
    x = Scale(0.0, max(1.0, float(one.length - 1)), LEFT, NARROW - RIGHT)
    y = Scale.over(values, TOP + 190, TOP)
    made = _axes(x, y, ("step", "value"), x_ticks=4)
    for numbers, kind in ((one.returns, "second"), (one.values, "strong")):
        if numbers is None:
            continue
        known = [
            (x.at(float(t)), y.at(v)) for t, v in zip(one.steps, numbers.tolist(), strict=True) if math.isfinite(v)
        ]
        inside: list[Html] = []
        if len(known) > 1:
            inside.append(
                element("path", class_="line", d="M" + "L".join(f"{_short(a)} {_short(b)}" for a, b in known))
            )
        if len(known) <= 30:
            inside += [element("circle", class_="dot", cx=_short(a), cy=_short(b), r=3) for a, b in known]
        made.append(element("g", *inside, class_=kind))
    return _svg(y.start + BOTTOM, title, *made, *_places(one, x, y), width=NARROW)


def _places(one: EpisodeTrace, x: Scale, y: Scale) -> list[Html]:
    """Strips over the drawing that say value and return at some steps."""
    chosen = np.unique(np.linspace(0, len(one.steps) - 1, POINTS).astype(int)).tolist()
    width, made = (x.end - x.start) / max(1, len(chosen)), []
    for i in chosen:
        at, value = x.at(float(one.steps[i])), float(one.values[i])
        if not math.isfinite(value):
            continue
        later = "" if one.returns is None else f", return {number(float(one.returns[i]))}"
        strip = element(
            "rect", class_="strip", x=_short(at - width / 2), y=TOP, width=_short(width), height=_short(y.start - TOP)
        )
        dot = element("circle", class_="dot", cx=_short(at), cy=_short(y.at(value)), r=4)
        made.append(
            _pointed(f"step {one.steps[i]}: value {number(value)}{later}", strip, dot, kind="strong", width=NARROW)
        )
    return made


def heat(one: Map, low: float, high: float, title: str) -> Html:
    """A map: mean values in cells, with the colours of ``low`` to ``high``; cells without data are left free."""
    side = 270.0
    edges_x, edges_y = one.edges
    x = Scale(float(edges_x[0]), float(edges_x[-1]), LEFT, NARROW - RIGHT)
    y = Scale(float(edges_y[0]), float(edges_y[-1]), TOP + side, TOP)
    made: list[Html] = []
    for i, j in zip(*np.nonzero(one.counts), strict=True):
        a, b = x.at(float(edges_x[i])), x.at(float(edges_x[i + 1]))
        c, d = y.at(float(edges_y[j + 1])), y.at(float(edges_y[j]))
        said = (
            f"{one.columns[0]} {number(float(edges_x[i]), 3)} to {number(float(edges_x[i + 1]), 3)}, {one.columns[1]} "
            f"{number(float(edges_y[j]), 3)} to {number(float(edges_y[j + 1]), 3)}: value "
            f"{number(float(one.values[i, j]))}, {one.counts[i, j]:,} states"
        )
        fill = colour(float(one.values[i, j]), low, high)
        places = {"x": _short(a), "y": _short(c), "width": _short(b - a + 0.4), "height": _short(d - c + 0.4)}
        short = f"value {number(float(one.values[i, j]))}, {one.counts[i, j]:,} states"
        made.append(_pointed(said, element("rect", fill=fill, **places), short=short, width=NARROW))
    frame = _axes(x, y, (shortened(one.columns[0], 26), shortened(one.columns[1], 24)), x_ticks=3)
    lines = [part for part in frame if 'class="grid"' not in part]
    return _svg(y.start + BOTTOM, title, *made, *lines, width=NARROW)


def shortened(text: str, most: int) -> str:
    """A text of at most so many letters; the whole is said at the pointer.

    Example
    -------
    >>> shortened("KrylovLSTD with ratios", 12)
    'KrylovLSTD …'
    """
    return text if len(text) <= most else text[: most - 1] + "…"


def legend(low: float, high: float) -> Html:
    """Which colour is which value."""
    n, left, right = len(COLOURS), 12.0, WIDTH - 12.0
    width = (right - left) / n
    cells = [
        element("rect", x=_short(left + i * width), y=4, width=_short(width + 0.4), height=16, fill=each)
        for i, each in enumerate(COLOURS)
    ]
    marks = [(left, "start", low), ((left + right) / 2, "middle", (low + high) / 2), (right, "end", high)]
    words = [_words(number(value, 3), at, 38, anchor) for at, anchor, value in marks]
    return _svg(46, f"Colours: from {number(low, 3)} to {number(high, 3)}", *cells, *words)


def colour(value: float, low: float, high: float) -> str:
    """The colour of a value; the bright end is that of ``high``, which is the smaller of the two for costs.

    Example
    -------
    >>> colour(0.0, 0.0, 1.0), colour(2.0, 0.0, 1.0), colour(0.0, 1.0, 0.0)
    ('#440154', '#fde725', '#fde725')
    """
    share = (value - low) / (high - low) if high != low else 0.5
    return COLOURS[min(max(int(share * len(COLOURS)), 0), len(COLOURS) - 1)]


def shares(entries: Sequence[tuple[str, float, str]], title: str, label: str) -> Html:
    """Bars from 0, with a text at the end of each."""
    left, bottom = 150.0, TOP + ROW * len(entries)
    x = Scale(0.0, max(0.05, *(share for _, share, _ in entries)) * 1.02, left, WIDTH - 96)
    made: list[Html] = []
    for i, (name, share, text) in enumerate(entries):
        y = TOP + ROW * i
        shown = shortened(name, 14)
        made += [_words(shown, left - 10, y + ROW / 2 + 4.5, "end", "name plain")]
        width = max(1.0, x.at(share) - left)
        bar = element("rect", class_="bar", x=left, y=y + 7, width=_short(width), height=ROW - 14)
        made.append(_pointed(f"{name}: {text}", bar, short=f"{shortened(name, 40)}: {text}", kind="strong"))
        made += [_words(text, left + width + 8, y + ROW / 2 + 4.5, "start")]
    made.append(_line("frame", left, TOP, left, bottom))
    made.append(_words(label, (left + WIDTH - 96) / 2, bottom + 22, class_="label"))
    return _svg(bottom + 34, title, *made)
