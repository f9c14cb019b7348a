"""Write the table and the figure of energy storage with smooth features, beside tiles, from the committed runs.

uv run python -m tlstd_lab.report.smooth_table     # computes no run; 20 seconds
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd_lab.drawing import STYLE, draw
from tlstd_lab.questions.contest.methods import METHODS as ON_TILES
from tlstd_lab.questions.contest.panel import Contest
from tlstd_lab.questions.figure_3.settings import RANKS
from tlstd_lab.questions.smooth.settings import METHODS, OURS, PAPERS, name_of
from tlstd_lab.report import claims_page
from tlstd_lab.report.claims_page import ROOT
from tlstd_lab.report.contest_table import duration
from tlstd_lab.report.sources import Shown
from tlstd_lab.statistics import interval
from tlstd_lab.tables import table, write_tables

SHOWN = (
    "TD",
    "true-online TD",
    "iLSTD",
    *(name_of(rank, OURS) for rank in RANKS),
    name_of(40, PAPERS),
    "LSTD",
    "LSTD, ridge",
    "Krylov LSTD",
)
TILES = {name_of(40, PAPERS): "t-LSTD, r=40"}
"""What a method is called in the contest on tiles, if not the same."""
ALSO_ON_TILES = ("TD", "true-online TD", "iLSTD", name_of(40, PAPERS), "Krylov LSTD")
AT = (1_000, 10_000)
DRAWN = ("TD", "true-online TD", "iLSTD", name_of(40, OURS), name_of(40, PAPERS), "LSTD", "Krylov LSTD")
PANELS = ("contest-energy-time", "smooth-time")
PAPERS_PANELS = ("3a", "3b", "3c")


def errors_at(shown: Shown, name: str, n: int) -> FloatArray | None:
    """Errors of the runs of a method after n samples, if it was given as many."""
    contest, results = shown.panel, shown.results
    assert isinstance(contest, Contest)
    samples = contest.samples(results.scale, name)
    return contest.column(results, name, "rmse")[:, samples.index(n)] if n in samples else None


def in_words(errors: FloatArray | None) -> str:
    """The mean and its interval."""
    if errors is None:
        return ""
    found = interval(lambda e: float(e.mean()), errors)
    return f"{found.value:.0f} [{found.low:.0f}, {found.high:.0f}]"


def comparison(panels: Mapping[str, Shown]) -> str:
    """Errors and CPU time of each method, and its errors on tiles."""
    tiles, smooth = (panels[name] for name in PANELS)
    contest = smooth.panel
    assert isinstance(contest, Contest)
    rows = []
    for name in SHOWN:
        there = TILES.get(name, name)
        on_tiles = [errors_at(tiles, there, n) if name in ALSO_ON_TILES else None for n in AT]
        seconds = contest.column(smooth.results, name, "seconds")[:, -1].mean()
        rows.append(
            [METHODS[name].label]
            + [in_words(errors_at(smooth, name, n)) for n in AT]
            + [duration(float(seconds))]
            + ["" if errors is None else f"{errors.mean():.0f}" for errors in on_tiles]
        )
    heads = ["method", *(f"RMSE, {n:,} samples" for n in AT), f"CPU time, {AT[-1]:,} samples"]
    return table([*heads, *(f"on tiles, {n:,}" for n in AT)], rows)


def verdicts(panels: Mapping[str, Shown]) -> str:
    """Each claim of the paper on energy storage: verdict with tiles, and with smooth features and either cut-off."""
    found = {claim.name: (claim, finding) for shown in panels.values() for claim, finding in shown.judged}
    rows = []
    for name in PAPERS_PANELS:
        for claim, finding in panels[name].judged:
            smooth = [found.get(f"smooth-{claim.name}{suffix}") for suffix in ("", "-cutoff")]
            words = [f"{one[1].verdict}: {one[1].number}" if one else "" for one in smooth]
            there = f"{finding.verdict}: {finding.number}"
            rows.append([f"[{claim.name}](claims.md#{name.lower()})", claim.statement, there, *words])
    return table(["claim", "statement", "tiles", "smooth, cut-off 0.01", "smooth, cut-off 10⁻⁴"], rows)


def draw_both(panels: Mapping[str, Shown], path: Path) -> None:
    """Error against samples with tiles and with smooth features, on the same axes."""
    with plt.rc_context(STYLE):
        figure, places = plt.subplots(1, 2, figsize=(8.2, 3.9), layout="constrained", sharey=True)
        words = ("40,001 tiles (the paper's features)", "500 random Fourier features")
        as_smooth = {METHODS[name].label: METHODS[name] for name in DRAWN}
        as_smooth |= {ON_TILES[TILES.get(name, name)].label: METHODS[name] for name in DRAWN if name in ALSO_ON_TILES}
        for shown, axes, title in zip((panels["contest-energy"], panels["smooth-3b"]), places, words, strict=True):
            chart = shown.panel.chart(shown.results)
            series = [
                replace(one, label=as_smooth[one.label].label, colour=as_smooth[one.label].colour, size=3.0)
                for one in chart.series
                if one.label in as_smooth
            ]
            draw(replace(chart, series=series, x=replace(chart.x, log=False), rules=(), notes=()), axes)
            axes.get_legend().remove()
            axes.set_title(title, loc="left")
            axes.set_xlim(0, 10_200)
            axes.set_xticks(np.arange(0, 10_001, 2_000), labels=[f"{n:,}" for n in range(0, 10_001, 2_000)])
            axes.set_ylim(110, 620)
            axes.set_yticks([120, 150, 200, 300, 400, 600], labels=["120", "150", "200", "300", "400", "600"])
        places[1].set_ylabel("")
        handles, found = places[1].get_legend_handles_labels()
        figure.legend(handles, found, loc="outside lower center", ncols=3)
        figure.savefig(path, dpi=150)
        plt.close(figure)


def main() -> None:
    """Write everything."""
    both = [*PAPERS_PANELS, *(f"smooth-{name}" for name in PAPERS_PANELS)]
    panels = {shown.panel.name: shown for shown in claims_page.committed([*PANELS, "contest-energy", *both])}
    made = {"smooth": comparison(panels), "smooth-claims": verdicts(panels)}
    write_tables(ROOT / "docs" / "experiments.md", made)
    draw_both(panels, ROOT / "docs" / "figures" / "smooth_features.png")


if __name__ == "__main__":
    main()
