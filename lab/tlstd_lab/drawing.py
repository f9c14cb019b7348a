"""Charts drawn with matplotlib, in one look: type that is readable at column width."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tlstd_lab.chart import Axis, Chart, Rule, Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STYLE: Any = {
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8,
    "legend.fontsize": 6.5,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.2,
    "lines.markersize": 3,
    "legend.frameon": False,
    "pdf.fonttype": 42,
}

MARK_AREAS = {"*": 45.0, "x": 22.0}
"""Of single marks, in square points; others have 25."""


def draw(chart: Chart, axes: Axes) -> None:
    """Draw a chart on axes, under :data:`STYLE`."""
    for one in chart.series:
        _series(one, axes)
    for rule in chart.rules:
        _rule(rule, rule.colour, axes)
    for note in chart.notes:
        side = {"start": "left", "middle": "center", "end": "right"}[note.anchor]
        axes.text(note.across, note.y, note.words, fontsize=6, ha=side, transform=axes.get_yaxis_transform())
    _axis(chart.x, axes, "x")
    _axis(chart.y, axes, "y")
    _legend(chart, axes)


def _look(one: Series) -> dict[str, Any]:
    return {
        "label": one.label,
        "color": one.colour,
        "linestyle": (0, one.dash) if one.dash else "-" if one.joined else "",
        "linewidth": one.width,
        "marker": one.marker or None,
        "markersize": one.size,
        "markevery": one.every,
        "markerfacecolor": "white" if one.hollow else one.colour,
    }


def _series(one: Series, axes: Axes) -> None:
    x, y, low, high, x_low, x_high = np.array(one.points, dtype=np.float64).reshape(-1, 6).T  # what is None is nan
    axes.plot(x, y, **_look(one))
    if one.joined and one.has_intervals:
        axes.fill_between(x, low, high, color=one.colour, alpha=0.2, linewidth=0)
    elif not one.joined:
        axes.vlines(x, low, high, color=one.colour, linewidth=one.width)
        axes.hlines(y, x_low, x_high, color=one.colour, linewidth=one.width)
    for mark in one.marks:
        ring: Any = {} if mark.marker == "x" else {"edgecolors": one.colour}
        fill = "white" if mark.hollow else one.colour
        area = MARK_AREAS.get(mark.marker, 25.0)
        axes.scatter([mark.x], [mark.y], area, c=fill, marker=mark.marker, zorder=5, linewidths=0.8, **ring)
    for rule in one.rules:
        _rule(rule, one.colour, axes)


def _rule(rule: Rule, colour: str, axes: Axes) -> None:
    line = axes.axhline if rule.axis == "y" else axes.axvline
    line(rule.value, color=colour, linestyle=(0, rule.dash) if rule.dash else "-", linewidth=rule.width)


def _axis(axis: Axis, axes: Axes, which: str) -> None:
    from matplotlib.ticker import FixedLocator, NullFormatter

    axes.set(**{f"{which}label": axis.label, f"{which}scale": "log" if axis.log else "linear"})
    axes.set(**{f"{which}lim": (axis.low, axis.high)})
    side = axes.xaxis if which == "x" else axes.yaxis
    side.set_ticks([value for value, _ in axis.ticks], labels=[words for _, words in axis.ticks])
    side.set_minor_locator(FixedLocator([float(value) for value in axis.minor]))
    side.set_minor_formatter(NullFormatter())


def _legend(chart: Chart, axes: Axes) -> None:
    from matplotlib.lines import Line2D

    legend = chart.legend
    layout: dict[str, Any] = {"loc": legend.place}
    if legend.place == "below":
        middle = 0.3 if chart.y.wordy else 0.45
        layout = {"loc": "upper center", "bbox_to_anchor": (middle, -0.18), "columnspacing": 1.0, "handlelength": 3.0}
    elif legend.lift:
        layout["bbox_to_anchor"] = (0.0, legend.lift)
    handles = [Line2D([], [], **_look(key.look)) for key in chart.keys]
    axes.legend(handles=handles, ncols=legend.columns, fontsize=legend.size, **layout)


def output_folder(documentation: str | None) -> Path:
    """Read ``--out`` from the command line of an experiment whose module has this documentation."""
    parser = argparse.ArgumentParser(description=(documentation or "").split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("docs/figures"), help="folder for what is written")
    folder: Path = parser.parse_args().out
    return folder
