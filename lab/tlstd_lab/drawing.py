"""One look for all figures: colours by method, bands over runs, type that is readable at column width."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tlstd.types import FloatArray
from tlstd_lab.statistics import mean_band

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

COLOURS = {
    "TD": "#0072B2",
    "true-online TD": "#56B4E9",
    "iLSTD": "#E69F00",
    "LSTD": "#000000",
    "t-LSTD": "#D55E00",
    "ATD": "#CC79A7",
    "t-LSTD, then TD": "#009E73",
}
"""By method: the palette of Okabe and Ito, which the colour-blind can tell apart."""

SEQUENCE = ("#440154", "#3b528b", "#21918c", "#5ec962", "#b8a100", "#d95f02")
"""For values of one quantity, in order of brightness."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X")

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


def curve(axes: Axes, x: ArrayLike, runs: FloatArray, label: str, **style: Any) -> None:
    """Mean of runs (runs, points) against x, with its 95% bootstrap band where there are several runs.

    Points where a run has diverged are left out.
    """
    at, runs = np.asarray(x, dtype=np.float64), np.asarray(runs, dtype=np.float64)
    middle, low, high = mean_band(runs)
    good = np.isfinite(middle)
    style = {"marker": "o"} | style
    (line,) = axes.plot(at[good], middle[good], label=label, **style)
    if len(runs) > 1:
        axes.fill_between(at[good], low[good], high[good], color=line.get_color(), alpha=0.2, linewidth=0)


def sequence(number: int, count: int) -> str:
    """The colour of value ``number`` of ``count`` values in order."""
    return SEQUENCE[round(number * (len(SEQUENCE) - 1) / max(count - 1, 1))]


def logarithmic(axes: Axes, which: str) -> None:
    """Make the axes named in ``which`` ("x", "y" or "xy") logarithmic, with plain numbers at 1, 2 and 5 per decade."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for letter in which:
        axis = axes.xaxis if letter == "x" else axes.yaxis
        (axes.set_xscale if letter == "x" else axes.set_yscale)("log")
        low, high = axes.get_xlim() if letter == "x" else axes.get_ylim()
        decades = np.log10(high / low)
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if decades < 3.0 else (1.0,)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}" if value < 1e6 else f"{value:.0e}"))
        axis.set_minor_formatter(NullFormatter())


def output_folder(documentation: str | None) -> Path:
    """Read ``--out`` from the command line of an experiment whose module has this documentation."""
    parser = argparse.ArgumentParser(description=(documentation or "").split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("docs/figures"), help="folder for what is written")
    folder: Path = parser.parse_args().out
    return folder
