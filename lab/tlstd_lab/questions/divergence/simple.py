"""The small problems of the TDRC paper, with its step sizes: area under the curve of the projected error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd_lab.chart import COLOURS, Axis, Chart, Legend, Rule, Series, points
from tlstd_lab.claims import BEYOND, Claim, Finding, above, below
from tlstd_lab.panel import Panel, Results, Scale, pick, seeds, specs
from tlstd_lab.spec import RunSpec
from tlstd_lab.statistics import OverRuns, ratio_of_means

LENGTHS = {"walk-tabular": 3000, "walk-dependent": 3000, "walk-inverted": 3000, "boyan": 10_000, "baird": 20_000}
EVERY = 100
STEP_SIZES: dict[str, dict[str, float]] = {
    "walk-tabular": {"TD": 2**-5, "TDRC": 2**-5, "TDC": 2**-4, "GTD2": 2**-5},
    "walk-dependent": {"TD": 2**-5, "TDRC": 2**-5, "TDC": 2**-4, "GTD2": 2**-4},
    "walk-inverted": {"TD": 2**-3, "TDRC": 2**-3, "TDC": 2**-3, "GTD2": 2**-3},
    "boyan": {"TD": 2**-4, "TDRC": 2**-4, "TDC": 2**-1, "GTD2": 2**-1},
    "baird": {"TD": 2**-8, "TDRC": 2**-6, "TDC": 2**-8, "GTD2": 2**-8},
}
"""The ones of the authors' parameter study, as published with their code."""
METHODS = ("TD", "TDRC", "TDC", "GTD2")
MARKS = {"TD": "^", "TDRC": "o", "TDC": "s", "GTD2": "D"}
WORDS = {"walk-tabular": "tabular", "walk-dependent": "dependent", "walk-inverted": "inverted", "boyan": "Boyan"}


class Simple(Panel):
    """TD, TDC and GTD2 relative to TDRC."""

    name = "tdrc-simple"
    title = "TDRC's small problems"
    caption = (
        "Mean of the RMSPBE over the stream, relative to that of TDRC: the random walk of five states off-policy with "
        "tabular, dependent and inverted features (3,000 steps), Boyan's chain (10,000) and Baird's counterexample "
        "(20,000); λ=0, step sizes of the authors' parameter study, β=α. TD on Baird's counterexample is off the chart."
    )
    size = (3.4, 2.9)
    runs_by_scale: ClassVar = {"smoke": 1, "quick": 30, "paper": 200}

    def method_runs(self, scale: Scale, process: str, method: str) -> list[RunSpec]:
        """Return the runs of one method on one process."""
        length = pick({"smoke": 300, "quick": LENGTHS[process], "paper": LENGTHS[process]}, scale)
        estimator = {"class": method, "lambda_": 0.0, "step_size": STEP_SIZES[process][method]}
        settings = {"process": process, "estimator": estimator, "steps": length, "every": EVERY}
        return specs("projected-area", settings, seeds(pick(self.runs_by_scale, scale)))

    def runs(self, results: Results) -> list[RunSpec]:
        """Return all of them."""
        return [spec for p in LENGTHS for m in METHODS for spec in self.method_runs(results.scale, p, m)]

    def area(self, results: Results, process: str, method: str) -> FloatArray:
        """Return the mean of the RMSPBE over the stream, of each run."""
        areas = results.column(self.method_runs(results.scale, process, method), "area")
        return np.asarray(np.minimum(areas[:, 0], 1e300))

    def ratio(self, results: Results, process: str, method: str) -> OverRuns:
        """Return the area of a method over that of TDRC."""
        return ratio_of_means(self.area(results, process, method), self.area(results, process, "TDRC"))

    def chart(self, results: Results) -> Chart:
        """Return one group for each process, one symbol for each method."""
        series = []
        for number, method in enumerate(METHODS):
            at, found = [], []
            for place, process in enumerate(LENGTHS):
                ratio = self.ratio(results, process, method)
                if ratio.value < 20.0:
                    at.append(place + 0.15 * (number - 1.5))
                    found.append(ratio)
            columns = ([r.value for r in found], [r.low for r in found], [r.high for r in found])
            shown = points(at, *columns)
            series.append(Series(method, COLOURS[method], shown, marker=MARKS[method], joined=False, size=4.0))
        ticks = tuple((float(i), WORDS.get(process, "Baird")) for i, process in enumerate(LENGTHS))
        x, y = Axis("", ticks=ticks, low=-0.5, high=len(LENGTHS) - 0.5), Axis("area under RMSPBE, relative to TDRC")
        return Chart(series, x, y, (Rule("y", 1.0),), legend=Legend("below", 4, 6.0))

    def claims(self) -> Sequence[Claim]:
        """Return what the publication's figure says."""
        return (
            Claim(
                "tdrc-simple-td",
                BEYOND,
                "As in the TDRC paper, on the four problems where TD converges TDRC's error is within a tenth of TD's.",
                self._like_td,
            ),
            Claim(
                "tdrc-simple-gradient",
                BEYOND,
                "As in the TDRC paper, on all five problems TDRC's error is below GTD2's, and below 1.1 times TDC's.",
                self._gradient,
            ),
            Claim(
                "tdrc-simple-baird",
                BEYOND,
                "As in the TDRC paper, on Baird's counterexample TD diverges and TDRC does not.",
                self._baird,
            ),
        )

    def _like_td(self, results: Results) -> Finding:
        ratios = {p: ratio_of_means(self.area(results, p, "TDRC"), self.area(results, p, "TD")) for p in WORDS}
        name = max(ratios, key=lambda process: ratios[process].value)
        note = "; ".join(f"{WORDS[process]}: {ratio}" for process, ratio in ratios.items())
        return Finding(below(ratios[name], 1.1, partly=1.3), ratios[name], f"TDRC over TD, {WORDS[name]}", note)

    def _gradient(self, results: Results) -> Finding:
        found = {(p, m): self.ratio(results, p, m) for p in LENGTHS for m in ("GTD2", "TDC")}
        scaled = {key: ratio.value * (1.0 if key[1] == "GTD2" else 1.1) for key, ratio in found.items()}
        name = min(scaled, key=lambda key: scaled[key])
        bound = 1.0 if name[1] == "GTD2" else 1.0 / 1.1
        note = "; ".join(f"{WORDS.get(p, 'Baird')}, {m}: {ratio}" for (p, m), ratio in found.items())
        what = f"{name[1]} over TDRC, {WORDS.get(name[0], 'Baird')}: the smallest"
        return Finding(above(found[name], bound, partly=0.8), found[name], what, note)

    def _baird(self, results: Results) -> Finding:
        number = self.ratio(results, "baird", "TD")
        runs = self.method_runs(results.scale, "baird", "TDRC")
        falls = ratio_of_means(results.column(runs, "end")[:, 0], results.column(runs, "start")[:, 0])
        note = f"TDRC's RMSPBE at the end over that at the start: {falls}"
        return Finding(above(number, 1e3), number, "area under TD's RMSPBE over that under TDRC's", note)
