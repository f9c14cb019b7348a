"""The figures of ``docs/experiments.md``."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd.core.figures import new_figure, save
from tlstd.diagnostics import picard, plot_picard
from tlstd.domains import boyan_chain, random_walk
from tlstd_lab.processes import garnet
from tlstd_lab.questions.theorem.systems import ORACLES, SEED
from tlstd_lab.questions.theorem.trade_off import SAMPLES

ORANGE, BLUE, GREEN, PURPLE, GREY = "#D55E00", "#0072B2", "#009E73", "#CC79A7", "0.45"


def draw_trade_off(results: dict[str, Any], path: Path) -> None:
    """A row for each oracle, a column for each number of samples."""
    figure = new_figure(6.4, 6.2)
    axes = figure.subplots(len(ORACLES), len(SAMPLES), sharex="row").ravel()
    styles = {
        "error": ("k", "-", 2.0),
        "noise part": (ORANGE, "-.", 1.2),
        "bias part": (BLUE, "--", 1.2),
        "stated": (PURPLE, "-", 1.2),
        "ours": (GREEN, "-", 1.2),
    }
    shown = itertools.product(ORACLES, SAMPLES)
    for axis, (oracle, samples), curves in zip(axes, shown, results.values(), strict=True):
        ranks = np.arange(1, len(curves["error"]) + 1)
        for curve, (colour, style, width) in styles.items():
            label = {"stated": "bound, stated", "ours": "bound, ours"}.get(curve, curve)
            values = np.array(curves[curve])
            axis.plot(ranks, np.where(values > 0.0, values, np.nan), style, color=colour, linewidth=width, label=label)
            if curve in ("error", "stated", "ours"):
                best = int(values.argmin())
                axis.plot(ranks[best], values[best], "o", color=colour, markersize=4)
        axis.set_yscale("log")
        axis.set_title(f"{oracle}, {samples:,} samples", fontsize=9)
        axis.spines[["top", "right"]].set_visible(False)
        finite = np.array(curves["stated"])[np.isfinite(curves["stated"])]
        axis.set_ylim(min(curves["error"]) / 5.0, min(finite.max() * 2.0, 1e5))
    for axis in axes[-len(SAMPLES) :]:
        axis.set_xlabel("rank r")
    for axis in axes[:: len(SAMPLES)]:
        axis.set_ylabel("‖w$_{t,r}$ − w*‖")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False, fontsize=8)
    save(figure, path)


def draw_picard(path: Path) -> dict[str, Any]:
    """|uᵢᵀb| against σᵢ for three oracles at λ=0 and λ=1; returns exponents and constants."""
    garnet_process = garnet(100, 2, 3, 30, np.random.default_rng(SEED), gamma=0.95, features="binary")
    processes = {
        "Boyan chain, 101 states": boyan_chain(101),
        "random walk, 31 states": random_walk(31, features="dependent"),
        "Garnet, 100 states": garnet_process,
    }
    figure = new_figure(7.2, 3.3)
    out: dict[str, Any] = {}
    for axis, (name, process) in zip(figure.subplots(1, 3), processes.items(), strict=True):
        for lambda_, colour in ((0.0, ORANGE), (1.0, BLUE)):
            condition = picard(*process.system(lambda_))
            trend = condition.trend()
            plot_picard(condition, axis, colour=colour, label=f"λ={lambda_:g}: p ≈ {trend.p:.1f}".replace("-", "−"))
            interval = condition.exponents()
            out[f"{name}, λ={lambda_:g}"] = {
                "exponents": None if interval.empty else [interval.low, float(f"{interval.high:.4g}")],
                "smallest C at p=1": float(f"{condition.constant(1.0):.4g}"),
                "trend p": float(f"{trend.p:.3g}"),
                "trend deviation": float(f"{trend.deviation:.3g}"),
                "average exponents": not condition.average_exponents().empty,
            }
        axis.set_title(name, fontsize=9)
        axis.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.22), handletextpad=0.1)
        axis.spines[["top", "right"]].set_visible(False)
    save(figure, path)
    return out


def draw_shares(by_family: dict[str, Any], path: Path) -> None:
    """Three panels over the families: the assumption, the readings, the tightness."""
    names = list(by_family)
    places = np.arange(len(names))[::-1]
    figure = new_figure(7.2, 3.4)
    left, middle, right = figure.subplots(1, 3, sharey=True, width_ratios=(1, 1, 1.4))

    def share(family: str, count: int) -> float:
        return 100.0 * count / float(by_family[family]["cases × ranks"])

    left.barh(places, [share(f, by_family[f]["assumption holds as stated"]) for f in names], 0.6, color=GREY)
    left.set(xlabel="cases × ranks, %", xlim=(0, 100))
    left.set_title("Assumption 1 holds", fontsize=9)
    for reading, offset, colour in (("norm", 0.2, BLUE), ("squared", -0.2, ORANGE)):
        fails = [share(f, by_family[f]["fails with the smallest C"][reading]) for f in names]
        label = f"read as {reading}" + (": never" if max(fails) == 0.0 else "")
        middle.barh(places + offset, fails, 0.36, color=colour, label=label)
    middle.set(xlabel="cases × ranks, %", xlim=(0, 5))
    middle.set_title("stated bound fails", fontsize=9)
    for bound_name, offset, colour, label in (
        ("norm", 0.24, "k", "stated, norm"),
        ("ours, Picard", 0.0, GREEN, "ours, from p and C"),
        ("ours", -0.24, PURPLE, "ours, from w*"),
    ):
        low, median, high = np.array([by_family[f]["bound / error, 5%, 50%, 95%"][bound_name] for f in names]).T
        right.errorbar(
            median, places + offset, xerr=(median - low, high - median), fmt="o", color=colour, markersize=3,
            linewidth=1, label=label,
        )  # fmt: skip
    right.axvline(1.0, color="0.7", linewidth=1)
    right.set(xscale="log", xlabel="1 is perfect")
    right.set_title("bound / error, median and 5–95%", fontsize=9)
    handles = [bars for axis in (middle, right) for bars in axis.get_legend_handles_labels()[0]]
    figure.legend(handles=handles, loc="outside lower center", ncols=5, frameon=False, fontsize=8)
    left.set_yticks(places, labels=names)
    for axis in (left, middle, right):
        axis.spines[["top", "right"]].set_visible(False)
    save(figure, path)


def draw_tikhonov(curves: dict[str, FloatArray], families: dict[str, Any], path: Path) -> None:
    """Bias and error of both against the rank on the two oracles, and ratios of errors over all families."""
    figure = new_figure(7.2, 3.3)
    *panels, last = figure.subplots(1, 3, width_ratios=(1, 1, 1.1))
    for axis, (name, values) in zip(panels, curves.items(), strict=True):
        ranks = np.arange(1, len(values) + 1)
        for i, (colour, label) in enumerate(((BLUE, "truncation"), (ORANGE, "Tikhonov"))):
            axis.plot(ranks, values[:, 2 * i + 1], "-", color=colour, label=f"{label}, error")
            axis.plot(ranks, values[:, 2 * i], ":", color=colour, label=f"{label}, bias")
        axis.set(xlabel="rank r of equal variance", ylim=(0.0, None))
        axis.set_title(name, fontsize=9)
    panels[0].set_ylabel("‖w − w*‖")
    places = np.arange(len(families))[::-1]
    for quantity, offset, colour in (("bias", 0.18, "k"), ("error", -0.18, GREEN)):
        key = f"{quantity} ratio, 5%, 50%, 95%"
        low, median, high = np.array([families[f][key] for f in families]).T
        last.errorbar(
            median, places + offset, xerr=(median - low, high - median), fmt="o", color=colour, markersize=3,
            linewidth=1, label=f"ratio of {quantity}",
        )  # fmt: skip
    last.axvline(1.0, color="0.7", linewidth=1)
    last.set(xscale="log", xlim=(0.2, 2.5))
    last.set_title("Tikhonov / truncation", fontsize=9)
    last.set_xticks([0.25, 0.5, 1.0, 2.0], labels=["¼", "½", "1", "2"])
    last.minorticks_off()
    last.set_yticks(places, labels=list(families), fontsize=8)
    handles = [*panels[0].get_legend_handles_labels()[0], *last.get_legend_handles_labels()[0]]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    for axis in (*panels, last):
        axis.spines[["top", "right"]].set_visible(False)
    save(figure, path)
