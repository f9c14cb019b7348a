"""Beyond the paper: error against memory, of samples kept and folded, of ranks, of all of A."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd_lab.chart import COLOURS, Axis, Chart, Legend, curve
from tlstd_lab.claims import BEYOND, Claim, Finding, below
from tlstd_lab.panel import Panel, Results, Scale, pick, seeds, specs
from tlstd_lab.spec import RunSpec
from tlstd_lab.statistics import ratio_of_means

KEPT = (250, 500, 1_000, 2_000, 4_000)
"""Samples that are kept; older ones are folded."""
RANKS = (10, 40, 160)
THOUSAND = 1_000
KRYLOV = {"class": "KrylovLSTD", "lambda_": 0.9}
LINES: dict[str, Mapping[int, Mapping[str, Any]]] = {
    "Krylov LSTD": {n: KRYLOV | {"max_samples": n} for n in KEPT} | {0: KRYLOV},
    "t-LSTD": {r: {"class": "TLSTD", "rank": r, "lambda_": 1.0, "rcond": 0.01} for r in RANKS},
    "TD": {0: {"class": "TD", "lambda_": 0.7, "step_size": [1.0, 1_000]}},
    "LSTD": {0: {"class": "LSTD", "lambda_": 0.9}},
}
"""Estimators by method, each with samples kept (0: all) or rank."""
LABELS = {"Krylov LSTD": "Krylov LSTD, up to all samples kept", "t-LSTD": "t-LSTD, rank 10 to 160"}


class _Memory(Panel):
    """Shared by all problems."""

    problem: ClassVar[str]
    size = (3.4, 3.0)

    def lines(self) -> list[str]:
        """Return who takes part: LSTD where A fits."""
        return [method for method in LINES if not (method == "LSTD" and self.problem == "energy")]

    def line_runs(self, scale: Scale, method: str, size: int) -> list[RunSpec]:
        """Return the runs of one estimator."""
        n = pick({"smoke": 600, "quick": 10_000, "paper": 10_000}, scale)
        settings = {"problem": self.problem, "estimator": LINES[method][size], "n_samples": n}
        return specs("memory", settings, seeds(pick({"smoke": 1, "quick": 2, "paper": 5}, scale)))

    def sizes(self, scale: Scale, method: str) -> list[int]:
        """Return the samples kept or ranks at a scale: no fewer than 500 on energy, where folding 250 takes minutes."""
        sizes = [n for n in LINES[method] if not (n == KEPT[0] and self.problem == "energy")]
        return sizes[1:3] + sizes[-1:] if scale == "smoke" and len(sizes) > 3 else sizes

    def runs(self, results: Results) -> list[RunSpec]:
        """Return all runs."""
        scale = results.scale
        wanted = [
            spec
            for method in self.lines()
            for size in self.sizes(scale, method)
            for spec in self.line_runs(scale, method, size)
        ]
        return sorted(wanted, key=lambda spec: spec.seed)

    def columns(self, results: Results, method: str, column: str) -> FloatArray:
        """Return a column of all estimators of a method (runs, estimators)."""
        scale = results.scale
        parts = [results.column(self.line_runs(scale, method, size), column) for size in self.sizes(scale, method)]
        return np.concatenate(parts, axis=1)

    def chart(self, results: Results) -> Chart:
        """Return the error against megabytes."""
        series = []
        for method, marker in zip(self.lines(), ("P", "o", "s", "D"), strict=False):
            megabytes = self.columns(results, method, "megabytes").mean(axis=0)
            errors, label = self.columns(results, method, "rmse"), LABELS.get(method, method)
            series.append(curve(megabytes, errors, label, COLOURS[method], marker=marker))
        return Chart(series, Axis("megabytes", log=True), Axis("RMSE", log=True), legend=Legend("below", 2, 6.0))

    def claims(self) -> Sequence[Claim]:
        """Return what the results decide."""
        return (
            Claim(
                f"{self.name}-kept",
                BEYOND,
                "With 1,000 samples kept and older ones folded Krylov LSTD has at most 1.12 times the error "
                "that it has with all.",
                self._kept,
            ),
            Claim(
                f"{self.name}-rank",
                BEYOND,
                "In no more memory than t-LSTD of any rank from 10 to 160 takes, Krylov LSTD has a lower error.",
                self._rank,
            ),
        )

    def _kept(self, results: Results) -> Finding:
        sizes, errors = self.sizes(results.scale, "Krylov LSTD"), self.columns(results, "Krylov LSTD", "rmse")
        ratios = {n: ratio_of_means(errors[:, i], errors[:, -1]) for i, n in enumerate(sizes) if n}
        number = ratios[THOUSAND]
        note = ", ".join(f"{n:,}: {ratio}" for n, ratio in ratios.items())
        return Finding(below(number, 1.12), number, "RMSE with 1,000 samples kept over that with all", note)

    def _rank(self, results: Results) -> Finding:
        """The worst of the ranks, each against the largest number of samples that fits into its memory."""
        sizes = {method: self.sizes(results.scale, method) for method in ("Krylov LSTD", "t-LSTD")}
        memory = {method: self.columns(results, method, "megabytes").mean(axis=0) for method in sizes}
        errors = {method: self.columns(results, method, "rmse") for method in sizes}
        ratios, notes = [], []
        for i, rank in enumerate(sizes["t-LSTD"]):
            fits = np.flatnonzero(memory["Krylov LSTD"] <= memory["t-LSTD"][i])
            if not fits.size:
                notes.append(f"rank {rank}: nothing fits into {memory['t-LSTD'][i]:.2g} MB")
                continue
            at = int(fits[np.argmax(memory["Krylov LSTD"][fits])])
            ratios.append(ratio_of_means(errors["Krylov LSTD"][:, at], errors["t-LSTD"][:, i]))
            kept = sizes["Krylov LSTD"][at]
            notes.append(f"rank {rank} ({memory['t-LSTD'][i]:.2g} MB) and {kept or 'all'} kept: {ratios[-1]}")
        if not ratios:  # then the least memory against the most
            ratios.append(ratio_of_means(errors["Krylov LSTD"][:, 0], errors["t-LSTD"][:, -1]))
        worst = max(ratios, key=lambda ratio: ratio.value)
        return Finding(below(worst, 1.0), worst, "RMSE of Krylov LSTD over t-LSTD's, worst rank", "; ".join(notes))


_CAPTION = (
    "{problem}, 10,000 samples: RMSE against what a copy of the model takes. Krylov LSTD keeps {fewest} to 4,000 "
    "samples and folds older ones, or keeps all; the dimension is chosen. TD has α=1/‖x‖² with N₀=1,000, untuned. "
    "Paper scale: 5 runs."
)


class Energy(_Memory):
    """Energy storage."""

    name, problem = "memory-energy", "energy"
    title = "RMSE against memory, energy"
    caption = _CAPTION.format(problem="Energy storage, 40,001 tiles", fewest=500)


class CarTiles(_Memory):
    """Mountain Car with tiles."""

    name, problem = "memory-car-tiles", "car-tiles"
    title = "RMSE against memory, Mountain Car, tiles"
    caption = _CAPTION.format(problem="Mountain Car, 1,000 tiles", fewest=250)


class CarRBF(_Memory):
    """Mountain Car with RBFs."""

    name, problem = "memory-car-rbf", "car-rbf"
    title = "RMSE against memory, Mountain Car, RBFs"
    caption = _CAPTION.format(problem="Mountain Car, 1,024 RBFs", fewest=250)
