"""Beyond the paper: subspaces by chance and by the data, and sketches on one side, after Pan et al. (2017)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd_lab.chart import COLOURS, Axis, Chart, Legend, curve
from tlstd_lab.claims import BEYOND, Claim, Finding, above
from tlstd_lab.panel import Panel, Results, Scale, pick, seeds, specs
from tlstd_lab.spec import RunSpec
from tlstd_lab.statistics import ratio_of_means

SIZES = {"smoke": (5, 10), "quick": (25, 50, 100, 200), "paper": (25, 50, 100, 200, 400)}
SAMPLES = {"smoke": 200, "quick": 2_000, "paper": 5_000}
METHODS = {
    "random projections": ("ProjectedLSTD", "dimension", "#0072B2", "s"),
    "left-sided sketch": ("SketchedLSTD", "dimension", "#E69F00", "^"),
    "t-LSTD": ("TLSTD", "rank", COLOURS["t-LSTD"], "o"),
}
CLAIMED = 50
"""The size of the claims: that of the publication."""


class _Sketches(Panel):
    """Shared by both kinds of features."""

    problem: ClassVar[str]
    what: ClassVar[str]
    size = (3.2, 2.8)

    def runs_of(self, scale: Scale, method: str, size: int) -> list[RunSpec]:
        """Return the runs of a method of one size; a sketch has another seed in every run."""
        class_name, parameter, _, _ = METHODS[method]
        estimator: dict[str, Any] = {"class": class_name, parameter: size, "lambda_": 0.9}
        found = []
        for seed in seeds(pick({"smoke": 1, "quick": 4, "paper": 30}, scale)):
            own = {} if method == "t-LSTD" else {"seed": seed}
            settings = {"problem": self.problem, "estimator": estimator | own, "samples": (pick(SAMPLES, scale),)}
            found += specs("curve", settings, range(seed, seed + 1))
        return found

    def runs(self, results: Results) -> list[RunSpec]:
        """Return all methods and sizes."""
        sizes = pick(SIZES, results.scale)
        return [spec for method in METHODS for size in sizes for spec in self.runs_of(results.scale, method, size)]

    def errors(self, results: Results, method: str, size: int) -> FloatArray:
        """RMSE of the runs, (runs,)."""
        errors: FloatArray = results.column(self.runs_of(results.scale, method, size), "rmse")[:, 0]
        return errors

    def chart(self, results: Results) -> Chart:
        """Return a line with a band for each method."""
        sizes, series = pick(SIZES, results.scale), []
        for method, (_, _, colour, marker) in METHODS.items():
            errors = np.array([self.errors(results, method, size) for size in sizes]).T
            series.append(curve(sizes, errors, method, colour, marker=marker))
        return Chart(series, Axis("dimension, rank", log=True), Axis("RMSE", log=True), legend=Legend("below", 3, 6.0))

    def claims(self) -> Sequence[Claim]:
        """Return what is said of sketches on both sides and on one, and of subspaces that the data choose."""
        return (
            Claim(
                f"{self.name}-left",
                BEYOND,
                f"{self.what}, random projections to 50 dimensions have more error than a left-sided sketch of 50.",
                lambda results: self._over(results, "random projections", "left-sided sketch"),
            ),
            Claim(
                f"{self.name}-data",
                BEYOND,
                f"{self.what}, random projections to 50 dimensions have more error than t-LSTD of rank 50.",
                lambda results: self._over(results, "random projections", "t-LSTD"),
            ),
        )

    def _over(self, results: Results, method: str, other: str) -> Finding:
        sizes = pick(SIZES, results.scale)
        size = CLAIMED if CLAIMED in sizes else sizes[-1]
        number = ratio_of_means(*(self.errors(results, m, size) for m in (method, other)))
        return Finding(above(number, 1.0), number, f"RMSE of {method} over that of {other}, size {size}")


class CarTiles(_Sketches):
    """1,000 tiles."""

    name, problem, what = "sketches-car-tiles", "car-tiles", "With Mountain Car's tiles"
    title = "Sketches and rank, Mountain Car, tiles"
    caption = "1,000 tile features, λ=0.9, γ=0.99; each run has a sketch of its own."


class CarRBF(_Sketches):
    """1,024 radial basis functions."""

    name, problem, what = "sketches-car-rbf", "car-rbf", "With Mountain Car's RBFs"
    title = "Sketches and rank, Mountain Car, RBFs"
    caption = "1,024 radial basis functions, λ=0.9, γ=0.99; each run has a sketch of its own."
