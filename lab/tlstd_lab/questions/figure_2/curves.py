"""Learning curves of TD, LSTD and t-LSTD with two ranks: what figures 2 and B share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd_lab.chart import COLOURS, DASHED, DOTTED, SOLID, Axis, Chart, Legend, curve
from tlstd_lab.panel import Panel, Results, Scale, best, pick, seeds, specs
from tlstd_lab.problems import problem
from tlstd_lab.spec import RunSpec
from tlstd_lab.statistics import OverRuns, interval, ratio_of_means


class Method(NamedTuple):
    """TD, LSTD, or t-LSTD with a rank.

    Example
    -------
    >>> str(LARGE), str(TD), LARGE.colour
    ('t-LSTD r=100', 'TD', '#D55E00')
    """

    name: str
    rank: int | None = None
    marker: str = "o"

    def __str__(self) -> str:
        return self.name if self.rank is None else f"{self.name} r={self.rank}"

    @property
    def colour(self) -> str:
        """The method's own, in a light tone for the small rank."""
        return "#F0A56E" if self == SMALL else COLOURS[self.name]


TD, LSTD = Method("TD"), Method("LSTD", marker="D")
SMALL, LARGE = Method("t-LSTD", 30, "^"), Method("t-LSTD", 100, "s")
"""The ranks that the paper calls too small and large enough."""

PRINTED = {"lambda_": 0.0, "rcond": 0.01}
"""t-LSTD as the caption and Algorithm 4 have it."""

LEGEND = Legend("below", 2, 5.2)


class Size(NamedTuple):
    """How much is run at a scale."""

    samples: tuple[int, ...]
    runs: int
    td_seeds: int
    """That α and λ of TD are chosen on."""
    exponents: tuple[int, ...]
    """i of α = 0.1·2^(i−7)/active."""
    td_lambdas: tuple[float, ...]
    seeds: int
    """That λ and the cut-off of LSTD and t-LSTD are chosen on."""
    lambdas: tuple[float, ...]
    rconds: tuple[float, ...]


SIZES = {
    "smoke": Size((200, 500), 1, 1, (6, 8), (0.9, 1.0), 1, (0.0,), (0.01,)),
    "quick": Size(
        (100, 200, 500, 1000, 2000, 5000),
        4,
        2,
        tuple(range(3, 13)),
        (0.0, 0.5, 0.8, 0.9, 0.95, 0.99, 1.0),
        2,
        (0.0, 0.9, 1.0),
        (1e-2, 1e-4),
    ),
    "paper": Size(
        (100, 200, 500, 1000, 2000, 5000),
        30,
        5,
        tuple(range(13)),
        (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.93, 0.95, 0.97, 0.99, 1.0),
        3,
        (0.0, 0.5, 0.9, 1.0),
        (1e-1, 1e-2, 1e-3, 1e-4),
    ),
}


def step_size(name: str, exponent: int) -> float:
    """α number ``exponent`` of the published grid, divided by the number of active features (‖x‖² for RBFs).

    ‖x‖² is rounded, so that the runs have the same keys on every machine.
    """
    return 0.1 * 2.0 ** (exponent - 7) / round(problem(name).square_length, 2)


def by_seed(runs: Iterable[RunSpec]) -> list[RunSpec]:
    """The runs of one stream together: only the last streams are kept."""
    return sorted(runs, key=lambda spec: spec.seed)


def worded(estimator: Mapping[str, Any]) -> str:
    """λ and the cut-off or the step size of an estimator's settings, in words."""
    words = [f"λ={estimator['lambda_']:g}"]
    if "rcond" in estimator:
        words.append(f"cut-off {estimator['rcond']:g}")
    if "step_size" in estimator:
        words.append(f"α={estimator['step_size']:.2g}")
    return ", ".join(words)


def apart(a: FloatArray, b: FloatArray) -> OverRuns:
    """The largest factor between two mean curves."""

    def factor(a: FloatArray, b: FloatArray) -> float:
        ratios = a.mean(axis=0) / b.mean(axis=0)
        return float(np.maximum(ratios, 1.0 / ratios).max())

    return interval(factor, a, b)


def curve_ratio(a: FloatArray, b: FloatArray) -> OverRuns:
    """Average of one set of curves over that of another: below 1, the first is the lower."""
    return ratio_of_means(a.mean(axis=1), b.mean(axis=1))


@lru_cache(maxsize=64)
def candidates(name: str, scale: Scale, method: Method) -> tuple[list[RunSpec], ...]:
    """The runs on a problem that the parameters of a method are chosen by."""
    s = pick(SIZES, scale)
    if method == TD:
        estimators: list[dict[str, Any]] = [
            {"class": "TD", "lambda_": lambda_, "step_size": step_size(name, i)}
            for lambda_ in s.td_lambdas
            for i in s.exponents
        ]
        chosen_on = seeds(s.td_seeds, tuning=True)
    else:
        grid = [{"lambda_": lambda_, "rcond": rcond} for lambda_ in s.lambdas for rcond in s.rconds]
        estimators = [least_squares(method, values) for values in grid]
        chosen_on = seeds(s.seeds, tuning=True)
    return tuple(specs("curve", settings(name, scale, e), chosen_on) for e in estimators)


@lru_cache(maxsize=64)
def tuned_estimator(results: Results, name: str, method: Method) -> Mapping[str, Any]:
    """Settings of the method that were best on its tuning seeds."""
    found: Mapping[str, Any] = best(results, candidates(name, results.scale, method))["estimator"]
    return found


def settings(name: str, scale: Scale, estimator: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a learning curve."""
    return {"problem": name, "estimator": estimator, "samples": pick(SIZES, scale).samples}


def least_squares(method: Method, values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of LSTD, or of t-LSTD with its rank and k = r."""
    if method == LSTD:
        return {"class": "LSTD", **values}
    return {"class": "TLSTD", "rank": method.rank, "buffer_size": method.rank, **values}


class Curves(Panel):
    """RMSE against samples: TD, LSTD, and t-LSTD with two ranks, each with its best parameters and as printed."""

    problem: ClassVar[str]
    size = (3.4, 3.2)

    def tuning(self, scale: Scale) -> list[RunSpec]:
        """Return the sweeps of all methods."""
        methods = (TD, LSTD, SMALL, LARGE)
        return by_seed(spec for m in methods for runs in candidates(self.problem, scale, m) for spec in runs)

    def tuned(self, results: Results, method: Method) -> list[RunSpec]:
        """Return the reported runs of a method with its best parameters."""
        return self._reported(results.scale, tuned_estimator(results, self.problem, method))

    def printed(self, scale: Scale, method: Method) -> list[RunSpec]:
        """Return the reported runs of LSTD or t-LSTD with λ=0 and the cut-off 0.01."""
        return self._reported(scale, least_squares(method, PRINTED))

    def _reported(self, scale: Scale, estimator: Mapping[str, Any]) -> list[RunSpec]:
        return specs("curve", settings(self.problem, scale, estimator), seeds(pick(SIZES, scale).runs))

    def runs(self, results: Results) -> list[RunSpec]:
        """Return the runs of all lines."""
        wanted = self.tuned(results, TD)
        for method in (LSTD, SMALL, LARGE):
            wanted += self.tuned(results, method) + self.printed(results.scale, method)
        return by_seed(wanted)

    def errors(self, results: Results, method: Method, *, printed: bool = False) -> FloatArray:
        """RMSE of a method, (runs, points)."""
        runs = self.printed(results.scale, method) if printed else self.tuned(results, method)
        return results.column(runs, "rmse")

    def chosen(self, results: Results, method: Method) -> str:
        """Return the best parameters of a method in words."""
        estimator = tuned_estimator(results, self.problem, method)
        exponents = pick(SIZES, results.scale).exponents
        ends = {step_size(self.problem, exponents[0]), step_size(self.problem, exponents[-1])}
        return worded(estimator) + (" (end of the grid)" if estimator.get("step_size") in ends else "")

    def chart(self, results: Results) -> Chart:
        """Return the mean curves."""
        samples, same = pick(SIZES, results.scale).samples, worded(PRINTED)
        lines = (LSTD, LARGE, SMALL)
        series = [curve(samples, self.errors(results, TD), f"TD, {self.chosen(results, TD)}", TD.colour)]
        for method in lines:
            errors, label = self.errors(results, method), f"{method}, {self.chosen(results, method)}"
            series.append(curve(samples, errors, label, method.colour, marker=method.marker, dash=DASHED))
        for method in lines:
            errors, dash = self.errors(results, method, printed=True), DOTTED if method == LSTD else SOLID
            series.append(curve(samples, errors, f"{method}, {same}", method.colour, marker=method.marker, dash=dash))
        return Chart(series, Axis("samples", log=True), Axis("RMSE", log=True), legend=LEGEND)

    def half(self, scale: Scale) -> int:
        """Index of the last point in the first half of the samples."""
        samples = pick(SIZES, scale).samples
        return max(i for i, count in enumerate(samples) if count <= samples[-1] / 2)
