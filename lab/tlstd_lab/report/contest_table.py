"""Write the tables of who does how well, and README's figure, from the committed runs of the contest.

uv run python -m tlstd_lab.report.contest_table     # computes no run; each panel at the best scale that is packed
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd_lab.drawing import STYLE, draw
from tlstd_lab.measurements import fitted
from tlstd_lab.questions.contest.methods import METHODS
from tlstd_lab.questions.contest.panel import Contest
from tlstd_lab.report import claims_page
from tlstd_lab.report.claims_page import ROOT
from tlstd_lab.report.sources import Shown
from tlstd_lab.statistics import ratio_of_means
from tlstd_lab.tables import table, write_tables

PROBLEMS = {
    "contest-energy-time": "energy, 40,001 tiles",
    "contest-car-tiles-time": "Mountain Car, 1,000 tiles",
    "contest-car-rbf-time": "Mountain Car, 1,024 RBFs",
    "contest-pendulum-time": "Pendulum, 1,024 RBFs",
}
"""Panels, and their words."""
FIRST = 1_000
"""Samples of the first error in a cell; the second is after all that the panel has."""
TO_TUNE = {
    "TD": "step size, λ, decay",
    "true-online TD": "step size, λ, decay",
    "replay TD": "step size, λ, decay, passes",
    "iLSTD": "step size, decay",
    "ATD": "rank, step size",
    "t-LSTD, r=40": "rank",
    "t-LSTD, r=200": "rank",
}
"""What a method needs to be told; nothing if it is not here."""
ON_TILES = ("TD", "replay TD", "t-LSTD, r=40", "t-LSTD, r=200", "Krylov LSTD")
"""Methods of README's table and figure."""


class Cell(NamedTuple):
    """What a method reaches on a problem: errors of its runs by number of samples, and CPU seconds for the last."""

    errors: dict[int, FloatArray]
    seconds: float

    def words(self, best: Cell) -> list[str]:
        """The errors, bold where no other is known to be better, with the number of samples where it is another."""
        found, usual = [], (FIRST, max(best.errors))
        for n, errors in self.errors.items():
            runs = min(len(errors), len(best.errors[n]))
            over = ratio_of_means(errors[:runs], best.errors[n][:runs])
            words = f"{errors.mean():.3g}"
            words = f"**{words}**" if over.low <= 1.0 else words
            found.append(words if n in usual else f"{words} ({n:,})")
        return found


def cells(shown: Shown, column: str = "rmse") -> dict[str, Cell]:
    """Of all methods of a panel."""
    contest, results = shown.panel, shown.results
    assert isinstance(contest, Contest)
    found = {}
    for method in contest.methods(results.scale):
        samples = contest.samples(results.scale, method)
        errors, seconds = contest.column(results, method, column), contest.column(results, method, "seconds")
        reached = {n: errors[:, samples.index(n)] for n in (FIRST, samples[-1])}
        found[method] = Cell(reached, float(seconds[:, -1].mean()))
    return found


def best_of(found: dict[str, Cell]) -> Cell:
    """The least errors of all."""
    counts = {n for cell in found.values() for n in cell.errors}
    least = {n: min((c.errors[n] for c in found.values() if n in c.errors), key=np.mean) for n in counts}
    return Cell(least, 0.0)


def duration(seconds: float) -> str:
    """A time in words.

    Example
    -------
    >>> duration(0.0163), duration(2.31), duration(0.4)
    ('16 ms', '2.3 s', '0.40 s')
    """
    if seconds < 0.1:
        return f"{1e3 * seconds:.2g} ms"
    return f"{seconds:.2f} s" if seconds < 1.0 else f"{seconds:.2g} s"


def all_problems(panels: Mapping[str, Shown]) -> str:
    """Every method on every problem."""
    by_problem = {name: cells(panels[name]) for name in PROBLEMS}
    best = {name: best_of(found) for name, found in by_problem.items()}
    rows = []
    for method, settings in METHODS.items():
        words = [
            " · ".join(found[method].words(best[name])) + f", {duration(found[method].seconds)}"
            if method in found
            else "does not fit"
            for name, found in by_problem.items()
        ]
        rows.append([settings.label, *words])
    heads = [f"{words}, {FIRST:,} · {max(best[name].errors):,} samples" for name, words in PROBLEMS.items()]
    return table(["", *heads], rows)


def energy(shown: Shown) -> str:
    """README's table: the problem with 40,001 features, and who makes features of their own."""
    found = cells(shown)
    rows: dict[str, tuple[Cell, str]] = {}
    for method in ON_TILES:
        rows[f"{METHODS[method].label}; tiles"] = found[method], TO_TUNE.get(method, "nothing")
    for name, made in own_features().items():
        errors = np.array(made["rmse"]).T
        reached = dict(zip(found["TD"].errors, errors, strict=True))
        rows[f"{name}; own"] = Cell(reached, made["seconds"][-1]), made["to be told"]
    best = best_of({name: cell for name, (cell, _) in rows.items()})
    lines = [[name, *cell.words(best), duration(cell.seconds), told] for name, (cell, told) in rows.items()]
    lines.insert(2, ["LSTD; tiles", "its matrix has 12.8 GB", "", "", "cut-off"])
    return table(
        ["method; features", f"RMSE, {FIRST:,} samples", f"{max(best.errors):,}", "CPU time", "to be told"], lines
    )


def own_features() -> dict[str, dict[str, Any]]:
    """Errors, times and what is to be told of those who got observations instead of tiles."""
    found: dict[str, dict[str, Any]] = json.loads(fitted.PATH.read_text(encoding="utf-8"))["methods"]
    return found


def draw_energy(panels: Mapping[str, Shown], path: Path) -> None:
    """README's figure: error against samples and against CPU time."""
    labels = [METHODS[method].label for method in ON_TILES]
    with plt.rc_context(STYLE):
        figure, places = plt.subplots(1, 2, figsize=(8.2, 3.8), layout="constrained", sharey=True)
        for name, axes in zip(("contest-energy", "contest-energy-time"), np.ravel(places), strict=True):
            chart = panels[name].panel.chart(panels[name].results)
            draw(replace(chart, series=[one for one in chart.series if one.label in labels], rules=()), axes)
            axes.get_legend().remove()
            for (words, made), colour in zip(own_features().items(), ("#777777", "#aa4499", "#000000"), strict=True):
                errors = np.mean(made["rmse"], axis=0)
                x = made["seconds"] if name.endswith("time") else (FIRST, 10 * FIRST)
                look = {"marker": "*", "markersize": 7 if colour == "#000000" else 5, "linestyle": ":", "color": colour}
                axes.plot(x, errors, label=words.replace("`", ""), **look)
            axes.set_ylim(120, 520)
            axes.set_yticks([150, 200, 300, 500], labels=["150", "200", "300", "500"])
        places[1].set_ylabel("")
        handles, words = places[0].get_legend_handles_labels()
        figure.legend(handles, words, loc="outside lower center", ncols=4)
        figure.savefig(path, dpi=150)
        plt.close(figure)


def main() -> None:
    """Write everything."""
    panels = {shown.panel.name: shown for shown in claims_page.committed(["contest-energy", *PROBLEMS])}
    made = {"contest": all_problems(panels), "contest-energy": energy(panels["contest-energy-time"])}
    write_tables(ROOT / "README.md", {"contest-energy": made["contest-energy"]})
    write_tables(ROOT / "docs" / "which_estimator.md", {"contest": made["contest"]})
    draw_energy(panels, ROOT / "docs" / "figures" / "contest_energy.png")


if __name__ == "__main__":
    main()
