"""Beyond the paper: error against the Krylov dimension beside error against the rank, on the same axes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd_lab.chart import COLOURS, DASHED, DOTTED, Axis, Chart, Legend, curve
from tlstd_lab.claims import BEYOND, Claim, Finding, above, below
from tlstd_lab.panel import Panel, Results, Scale, pick, seeds, specs
from tlstd_lab.problems import problem
from tlstd_lab.spec import RunSpec
from tlstd_lab.statistics import interval

DIMENSIONS = (1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 200)
WORST = 10.0
"""Errors are drawn, and count, up to so many times that of zero."""


class _Dimension(Panel):
    """Shared by all problems."""

    size = (3.4, 3.1)

    def dimensions(self, scale: Scale) -> tuple[int, ...]:
        """Return the dimensions, which are also the ranks."""
        return DIMENSIONS[:5] if scale == "smoke" else DIMENSIONS

    @abstractmethod
    def errors(self, results: Results, line: str) -> FloatArray:
        """Return the errors of "residual", "galerkin" or "rank" (runs, dimensions)."""

    @abstractmethod
    def zero(self) -> float:
        """Return the error of predicting 0."""

    def chart(self, results: Results) -> Chart:
        """Return the three lines."""
        x, limit = self.dimensions(results.scale), 2.0 * self.zero()
        lines = (
            ("residual", "Krylov LSTD, least residual", "Krylov LSTD", {"marker": "o"}),
            ("galerkin", "Krylov space, Galerkin", "Krylov LSTD", {"marker": "", "dash": DOTTED}),
            ("rank", "t-LSTD", "t-LSTD", {"marker": "s", "dash": DASHED}),
        )
        series = [
            curve(x, np.minimum(self.errors(results, line), limit), label, COLOURS[method], size=2.5, **look)
            for line, label, method, look in lines
        ]
        y = Axis("RMSE", log=True)
        return Chart(series, Axis("Krylov dimension, rank", log=True), y, legend=Legend("below", 1, 6.0))

    def claims(self) -> Sequence[Claim]:
        """Return what the results decide."""
        return (
            Claim(
                f"{self.name}-best",
                BEYOND,
                "At its best dimension Krylov LSTD has a lower error than t-LSTD at its best rank, both in hindsight.",
                self._best,
            ),
            Claim(
                f"{self.name}-fewer",
                BEYOND,
                "Krylov LSTD has t-LSTD's lowest error with at most half as many dimensions.",
                self._fewer,
            ),
            Claim(
                f"{self.name}-residual",
                BEYOND,
                "The solution of least residual is no worse than the Galerkin solution in the same space, at the best "
                "dimension of each.",
                self._residual,
            ),
            Claim(
                f"{self.name}-safe",
                BEYOND,
                "Galerkin solutions of some dimension are at least twice as wrong as those of least residual.",
                self._safe,
            ),
        )

    def _errors(self, results: Results, line: str) -> FloatArray:
        return np.nan_to_num(np.minimum(self.errors(results, line), WORST * self.zero()), nan=WORST * self.zero())

    def _ratio(self, results: Results, ours: str, theirs: str) -> Any:
        pair = self._errors(results, ours), self._errors(results, theirs)
        runs = min(map(len, pair))
        number = interval(
            lambda a, b: float(a.mean(axis=0).min() / b.mean(axis=0).min()), *(part[:runs] for part in pair)
        )
        at = [self.dimensions(results.scale)[int(part.mean(axis=0).argmin())] for part in pair]
        return number, at

    def _best(self, results: Results) -> Finding:
        number, (m, r) = self._ratio(results, "residual", "rank")
        return Finding(below(number, 1.0), number, "RMSE over t-LSTD's, each at its best", f"dimension {m}, rank {r}")

    def _fewer(self, results: Results) -> Finding:
        x = np.array(self.dimensions(results.scale), dtype=np.float64)

        def share(ours: FloatArray, theirs: FloatArray) -> float:
            means, others = ours.mean(axis=0), theirs.mean(axis=0)
            reached = np.flatnonzero(means <= others.min())
            return float(x[reached[0]] / x[others.argmin()]) if reached.size else float(x[-1])

        pair = self._errors(results, "residual"), self._errors(results, "rank")
        runs = min(map(len, pair))
        number = interval(share, *(part[:runs] for part in pair))
        return Finding(below(number, 0.5001), number, "dimensions needed over the best rank")

    def _residual(self, results: Results) -> Finding:
        number, (m, g) = self._ratio(results, "residual", "galerkin")
        note = f"at dimensions {m} and {g}"
        return Finding(below(number, 1.02), number, "RMSE of least residual over Galerkin's, each at its best", note)

    def _safe(self, results: Results) -> Finding:
        def worst(galerkin: FloatArray, residual: FloatArray) -> float:
            return float((galerkin.mean(axis=0) / residual.mean(axis=0)).max())

        pair = self._errors(results, "galerkin"), self._errors(results, "residual")
        number = interval(worst, *pair)
        at = self.dimensions(results.scale)[int((pair[0].mean(axis=0) / pair[1].mean(axis=0)).argmax())]
        what = "mean RMSE of Galerkin over that of least residual, worst dimension"
        return Finding(
            above(number, 2.0), number, what, f"at dimension {at}; errors count up to {WORST:g} times zero's"
        )


class _OnPolicy(_Dimension):
    """A problem of the laboratory."""

    problem: ClassVar[str]

    def errors(self, results: Results, line: str) -> FloatArray:
        """Return the runs' errors."""
        scale = results.scale
        if line != "rank":
            return results.column(self.paths(scale), line)
        return np.stack([results.column(self.ranked(scale, r), "rmse")[:, -1] for r in self.dimensions(scale)], axis=1)

    def zero(self) -> float:
        """Return the error of predicting 0."""
        return float(np.sqrt(np.mean(problem(self.problem).truth ** 2)))

    def paths(self, scale: Scale) -> list[RunSpec]:
        """Return the runs of the Krylov path."""
        settings = {
            "problem": self.problem,
            "lambda_": 0.9,
            "n_samples": self.n_samples(scale),
            "dimensions": self.dimensions(scale),
        }
        return specs("dimension", settings, seeds(pick({"smoke": 1, "quick": 4, "paper": 30}, scale)))

    def ranked(self, scale: Scale, rank: int) -> list[RunSpec]:
        """t-LSTD of one rank, as in figure 3b."""
        estimator = {"class": "TLSTD", "rank": rank, "lambda_": 1.0, "rcond": 0.01}
        settings = {"problem": self.problem, "estimator": estimator, "samples": [self.n_samples(scale)]}
        return specs("curve", settings, seeds(pick({"smoke": 1, "quick": 1, "paper": 3}, scale)))

    def n_samples(self, scale: Scale) -> int:
        """Return the samples of a run."""
        return pick({"smoke": 200, "quick": 2_000, "paper": 5_000}, scale)

    def runs(self, results: Results) -> list[RunSpec]:
        """Return paths and ranks."""
        scale = results.scale
        wanted = self.paths(scale) + [spec for r in self.dimensions(scale) for spec in self.ranked(scale, r)]
        return sorted(wanted, key=lambda spec: spec.seed)


_CAPTION = (
    "{problem}, 5,000 samples: RMSE by the dimension of the Krylov space (λ=0.9, both solutions from one path) and by "
    "t-LSTD's rank (λ=1, cut-off 0.01). Errors above twice that of zero are drawn there. Paper scale: 30 runs, of "
    "t-LSTD 3."
)


class Energy(_OnPolicy):
    """Energy storage."""

    name, problem = "dimension-energy", "energy"
    title = "By dimension and rank, energy"
    caption = _CAPTION.format(problem="Energy storage, 40,001 tiles")


class CarTiles(_OnPolicy):
    """Mountain Car with tiles."""

    name, problem = "dimension-car-tiles", "car-tiles"
    title = "By dimension and rank, Mountain Car, tiles"
    caption = _CAPTION.format(problem="Mountain Car, 1,000 tiles")


class CarRBF(_OnPolicy):
    """Mountain Car with RBFs."""

    name, problem = "dimension-car-rbf", "car-rbf"
    title = "By dimension and rank, Mountain Car, RBFs"
    caption = _CAPTION.format(problem="Mountain Car, 1,024 RBFs")


class Pendulum(_OnPolicy):
    """Pendulum with RBFs."""

    name, problem = "dimension-pendulum", "pendulum-rbf"
    title = "By dimension and rank, Pendulum, RBFs"
    caption = _CAPTION.format(problem="Pendulum, 1,024 RBFs")


class Garnets(_Dimension):
    """Off-policy."""

    name = "dimension-garnet"
    title = "Error against dimension and rank, off-policy Garnets"
    caption = (
        "Garnets of 500 states, 4 actions and 200 binary features, 50 of them active, 5,000 samples of the uniform "
        "policy, values of a random one, γ=0.95, λ=0: RMSE over the root of the mean squared value, by Krylov "
        "dimension and by the rank to which A is cut once. Each run has a Garnet of its own. Paper scale: 30 runs."
    )

    def errors(self, results: Results, line: str) -> FloatArray:
        """Return the runs' errors."""
        return results.column(self._runs(results.scale), line)

    def zero(self) -> float:
        """Return the error of predicting 0."""
        return 1.0

    def runs(self, results: Results) -> list[RunSpec]:
        """Return a run per Garnet."""
        return self._runs(results.scale)

    def _runs(self, scale: Scale) -> list[RunSpec]:
        settings = {
            "n_states": 500,
            "n_features": 200,
            "n_samples": pick({"smoke": 500, "quick": 5_000, "paper": 5_000}, scale),
            "lambda_": 0.0,
            "dimensions": self.dimensions(scale),
        }
        return specs("dimension-garnet", settings, seeds(pick({"smoke": 1, "quick": 10, "paper": 30}, scale)))
