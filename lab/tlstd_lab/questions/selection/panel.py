"""Beyond the paper: features that say nothing, and an ℓ1 penalty against them, after Kolter and Ng (2009)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd_lab.chart import COLOURS, Axis, Chart, Legend, curve
from tlstd_lab.claims import BEYOND, Claim, Finding, above
from tlstd_lab.panel import Panel, Results, Scale, best, pick, seeds, specs
from tlstd_lab.spec import RunSpec
from tlstd_lab.statistics import ratio_of_means

SAMPLES = 800
NOISE = {"smoke": (0, 20), "quick": (10, 100, 1_000), "paper": (10, 30, 100, 300, 1_000, 2_000)}
PENALTIES = (0.01, 0.03, 0.1, 0.3)
RIDGES = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
METHODS: dict[str, list[dict[str, Any]]] = {
    "LARS-TD": [{"class": "LARSTD", "lambda_": 0.0, "penalty": penalty} for penalty in PENALTIES],
    "LSTD, ridge": [{"class": "LSTD", "lambda_": 0.0, "ridge": ridge} for ridge in RIDGES],
    "Krylov LSTD": [{"class": "KrylovLSTD", "lambda_": 0.0}],
}
LOOKS = {
    "LARS-TD": ("#CC79A7", "o"),
    "LSTD, ridge": (COLOURS["LSTD"], "s"),
    "Krylov LSTD": (COLOURS["Krylov LSTD"], "P"),
}


class Selection(Panel):
    """RMSE against the number of features of noise."""

    name = "selection"
    title = "Noise features, chain of 20 states"
    caption = (
        "800 samples, γ=0.9, λ=0, six features that matter beside those of noise; the penalty and the ridge tuned on "
        "other seeds, for each number by itself."
    )
    size = (3.4, 2.9)

    def runs_of(self, noise: int, estimator: dict[str, Any], numbers: range) -> list[RunSpec]:
        """Return the runs of an estimator."""
        return specs("selection", {"samples": SAMPLES, "noise": (noise,), "estimator": estimator}, numbers)

    def candidates(self, scale: Scale, method: str, noise: int) -> list[list[RunSpec]]:
        """Return the sweep of a method."""
        numbers = seeds(pick({"smoke": 1, "quick": 3, "paper": 10}, scale), tuning=True)
        return [self.runs_of(noise, estimator, numbers) for estimator in METHODS[method]]

    def tuning(self, scale: Scale) -> list[RunSpec]:
        """Return the sweeps."""
        cases = [(method, noise) for method in METHODS for noise in pick(NOISE, scale)]
        return [spec for case in cases for runs in self.candidates(scale, *case) for spec in runs]

    def chosen(self, results: Results, method: str, noise: int) -> list[RunSpec]:
        """Return the runs with the parameter that was best on other seeds."""
        numbers = seeds(pick({"smoke": 1, "quick": 8, "paper": 30}, results.scale))
        return specs("selection", best(results, self.candidates(results.scale, method, noise)), numbers)

    def runs(self, results: Results) -> list[RunSpec]:
        """Return all methods."""
        cases = [(method, noise) for method in METHODS for noise in pick(NOISE, results.scale)]
        return [spec for case in cases for spec in self.chosen(results, *case)]

    def errors(self, results: Results, method: str, noise: int) -> FloatArray:
        """RMSE of the runs, (runs,)."""
        errors: FloatArray = results.column(self.chosen(results, method, noise), "rmse")[:, 0]
        return errors

    def chart(self, results: Results) -> Chart:
        """Return a line with a band for each method."""
        numbers, series = pick(NOISE, results.scale), []
        for method, (colour, marker) in LOOKS.items():
            errors = np.array([self.errors(results, method, noise) for noise in numbers]).T
            series.append(curve(numbers, errors, method, colour, marker=marker))
        x = Axis("features of noise", log=numbers[0] > 0)
        return Chart(series, x, Axis("RMSE", log=True), legend=Legend("below", 3, 6.0))

    def claims(self) -> Sequence[Claim]:
        """Return the publication's claim, of values in place of policies."""
        return (
            Claim(
                "selection-l1",
                BEYOND,
                "With 1,000 features of noise and 800 samples LSTD with a ridge has twice LARS-TD's error, or more.",
                self._l1,
            ),
            Claim(
                "selection-krylov",
                BEYOND,
                "There Krylov LSTD, which is not told of sparsity, has twice the error of LARS-TD, or more.",
                lambda results: self._against(results, "Krylov LSTD"),
            ),
        )

    def _l1(self, results: Results) -> Finding:
        return self._against(results, "LSTD, ridge")

    def _against(self, results: Results, method: str) -> Finding:
        noise = min(1_000, pick(NOISE, results.scale)[-1])
        number = ratio_of_means(*(self.errors(results, m, noise) for m in (method, "LARS-TD")))
        what = f"RMSE of {method} over that of LARS-TD, {noise:,} features of noise"
        return Finding(above(number, 2.0, partly=1.2), number, what)
