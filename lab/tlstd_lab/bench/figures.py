"""The benchmark's figures, drawn from what ``bench.json`` holds: nothing is measured again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from tlstd.core.figures import new_figure, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tlstd_lab.bench.report import Report

BLUE, ORANGE, GREEN, PINK, SKY, GREY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "0.45"
LOOKS = {
    "TLSTD": (BLUE, "o"),
    "TD": (GREY, "x"),
    "TrueOnlineTD": ("0.1", "+"),
    "ILSTD": (PINK, "v"),
    "LSTD": (ORANGE, "s"),
    "ATD": (GREEN, "^"),
    "KrylovLSTD": ("#117733", "P"),
}
"""Colour and marker of an estimator."""
GROWTH = ("growth-features", "growth-rank", "growth-active", "growth-samples")
NAMES = ("bench.png", "bench_growth.png", "bench_trade_off.png")
"""The files that :func:`draw` may write."""


def draw(report: Report, folder: Path) -> list[Path]:
    """Draw every figure for which the report has something, into the folder; returns their files."""
    rows = report["rows"]
    lines = [(name, line) for name, row in rows.items() for line in row["lines"] if line["target"] and _is_ratio(line)]
    grown = [name for name in (*GROWTH, "growth-buffer") if name in rows]
    traded = [name for name in ("trade-off-car", "trade-off-energy") if name in rows]
    ratios, growth, trade_off = NAMES
    figures: list[tuple[str, bool, Callable[[Path], None]]] = [
        (ratios, bool(lines), lambda path: _draw_ratios(lines, path)),
        (growth, bool(grown), lambda path: _draw_growth({n: rows[n]["data"] for n in grown}, path)),
        (trade_off, bool(traded), lambda path: _draw_trade_off([rows[n]["data"] for n in traded], path)),
    ]
    paths = []
    for name, wanted, drawing in figures:
        if wanted:
            drawing(folder / name)
            paths.append(folder / name)
    return paths


def _is_ratio(line: dict[str, Any]) -> bool:
    return bool(line["unit"] == "×")


def _style(estimator: str, *, first: bool = True) -> dict[str, Any]:
    """The look of an estimator, whatever its rank; of a lighter colour for its higher ranks."""
    colour, marker = LOOKS[estimator]
    return {"color": colour if first else SKY, "marker": marker, "markersize": 5}


# --- ratios and their targets ---------------------------------------------------------------------------------------


def _draw_ratios(lines: list[tuple[str, dict[str, Any]]], path: Path) -> None:
    """How far each ratio is on the good side of its target: 1 is the target, further right is better."""
    figure = new_figure(9.0, 1.0 + 0.27 * len(lines))
    axis = figure.subplots()
    for y, (_, line) in enumerate(reversed(lines)):
        sign, bound = line["target"]
        margins = np.array([line["low"], line["median"], line["high"]]) / bound
        low, middle, high = np.sort(margins if sign == ">=" else 1.0 / margins)
        colour = BLUE if line["reached"] else ORANGE
        axis.plot([low, high], [y, y], color=colour, linewidth=2)
        axis.plot(middle, y, "o" if line["reached"] else "D", color=colour, markersize=6)
        sense = "≥" if sign == ">=" else "≤"
        axis.annotate(
            f"{line['median']:.3g}× ({sense} {bound:g})",
            (1.01, y),
            xycoords=("axes fraction", "data"),
            va="center",
            fontsize=8,
        )
    axis.axvline(1.0, color="0.6", linewidth=1, zorder=0)
    axis.set_xscale("log")
    axis.set_ylim(-0.6, len(lines) - 0.4)
    labels = [f"{line['what']} / {line['against']}" for _, line in reversed(lines)]
    axis.set_yticks(range(len(lines)), labels=labels, fontsize=8)
    axis.set_xlabel("times better than the target (bars: lowest to highest)")
    axis.grid(axis="y", color="0.93")
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
    save(figure, path)


# --- growth ---------------------------------------------------------------------------------------------------------


def _draw_growth(data: dict[str, dict[str, Any]], path: Path) -> None:
    """Time per step above, memory below; for the buffer, errors below."""
    figure = new_figure(3.1 * len(data), 5.6)
    axes = figure.subplots(2, len(data), squeeze=False, sharex="col")
    for (name, row), (above, below) in zip(data.items(), axes.T, strict=True):
        if name == "growth-buffer":
            _draw_buffer(row, above, below)
        else:
            _draw_curves(row, above, below)
        for axis in (above, below):
            axis.spines[["top", "right"]].set_visible(False)
            axis.set_xscale("log")
    axes[0, 0].set_ylabel("CPU time per step (µs)")
    axes[1, 0].set_ylabel("memory (MB)")
    save(figure, path)


def _draw_curves(row: dict[str, Any], above: Axes, below: Axes) -> None:
    points = np.array(row["points"], dtype=float)
    for name, curve in row["curves"].items():
        style = _style(curve["estimator"])
        seconds = 1e6 * np.array([median(repeats) for repeats in curve["seconds"]])
        above.plot(points, seconds, label=_with_slope(name, points, seconds), **style)
        megabytes = 1e-6 * np.array(curve["bytes"])
        below.plot(points, megabytes, label=_with_slope(name, points, megabytes), **style)
        if curve["estimator"] == "TLSTD":
            for exponent in sorted(set(row["theory"]["time"])):
                _guide(above, points, seconds, exponent)
            _guide(below, points, megabytes, row["theory"]["memory"])
    below.set_xlabel(row["label"], fontsize=9)
    for axis in (above, below):
        axis.set_yscale("log")
        low, high = axis.get_ylim()
        axis.set_ylim(low / 1.5, high * 2.0 ** len(axis.get_lines()))
        axis.legend(frameon=False, fontsize=7, loc="upper left")


def _with_slope(name: str, x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> str:
    """The name with the slope over all points and, if that is another one, over the last three."""
    every, last = (np.polyfit(np.log(x[part]), np.log(y[part]), 1)[0] for part in (slice(None), slice(-3, None)))
    end = f" ({last:.2f} at the end)" if abs(last - every) > 0.1 else ""
    return f"{name}: slope {every:.2f}{end}"


def _guide(axis: Axes, x: np.ndarray[Any, Any], y: np.ndarray[Any, Any], exponent: float) -> None:
    """What the theory says, through the last point."""
    axis.plot(
        x, y[-1] * (x / x[-1]) ** exponent, "--", color="0.6", linewidth=1, zorder=0, label=f"theory: {exponent:g}"
    )


def _draw_buffer(row: dict[str, Any], above: Axes, below: Axes) -> None:
    buffer = row["buffer"]
    above.plot(
        buffer, 1e6 * np.array(row["seconds"]), color=BLUE, marker="o", markersize=5, label=f"tiles, rank {row['rank']}"
    )
    other = row["energy"]
    label = f"energy-like, rank {other['rank']}"
    above.plot(other["buffer"], 1e6 * np.array(other["seconds"]), color=SKY, marker="D", markersize=5, label=label)
    above.set_yscale("log")
    above.set_ylim(top=3.0 * above.get_ylim()[1])
    _plain_ticks(above)
    relative = np.array(row["rmse"]) / row["rmse_of_the_best"]
    below.plot(buffer, relative, color=ORANGE, marker="s", markersize=5, label="RMSE")
    below.plot(buffer, row["distance"], color=GREEN, marker="^", markersize=5, label="‖A − UΣVᵀ‖")
    below.axhline(1.0, color="0.6", linewidth=1, linestyle="--")
    below.set_ylabel("error over that of the best factors", fontsize=9)
    below.set_xlabel(f"buffer (below: tiles, rank {row['rank']}, λ=1)", fontsize=9)
    for axis in (above, below):
        axis.axvline(row["rank"], color="0.8", linewidth=1, zorder=0, label="rank")
        axis.axvline(row["default"], color="0.5", linewidth=1, linestyle=":", zorder=0, label="default buffer")
        axis.legend(frameon=False, fontsize=7, loc="upper right" if axis is above else "best")


def _plain_ticks(axis: Axes) -> None:
    """Numbers at 1, 2, 5 times powers of ten on the upright axis."""
    from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

    low, high = axis.get_ylim()
    ticks = [m * 10.0**e for e in range(-3, 7) for m in (1, 2, 3, 5, 7)]
    axis.yaxis.set_major_locator(FixedLocator([tick for tick in ticks if low <= tick <= high]))
    axis.yaxis.set_minor_locator(NullLocator())
    axis.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))


# --- error against time ---------------------------------------------------------------------------------------------


def _draw_trade_off(data: list[dict[str, Any]], path: Path) -> None:
    figure = new_figure(6.0 * len(data), 3.8)
    axes = figure.subplots(1, len(data), squeeze=False)[0]
    for row, axis in zip(data, axes, strict=True):
        seen: set[str] = set()
        for name, curve in row["curves"].items():
            style = _style(curve["estimator"], first=curve["estimator"] not in seen)
            seen.add(curve["estimator"])
            axis.plot(curve["seconds"], curve["rmse"], label=name, **style)
        axis.set(xscale="log", yscale="log", xlabel="CPU time of learning and reading (s)", title=row["name"])
        axis.set_ylim(top=min(axis.get_ylim()[1], 2.2 * row["standard_deviation"]))
        _plain_ticks(axis)
        axis.axhline(row["standard_deviation"], color="0.7", linewidth=1, linestyle=":")
        axis.spines[["top", "right"]].set_visible(False)
        axis.legend(frameon=False, fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes[0].set_ylabel("RMSE (dotted: of the mean)")
    save(figure, path)
