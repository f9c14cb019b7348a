"""Beyond the paper: who diverges on Baird's counterexample, off-policy, and on the spiral, on-policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd_lab.chart import COLOURS, DASHED, GREY, MARKERS, Axis, Chart, Legend, curve
from tlstd_lab.claims import BEYOND, Claim, Finding, above, below
from tlstd_lab.panel import Panel, Results, Scale, pick, seeds, specs
from tlstd_lab.spec import RunSpec
from tlstd_lab.statistics import interval, ratio_of_means

RUNS = {"smoke": 1, "quick": 10, "paper": 50}
HIGHEST = 1e8
"""Of what is drawn: whoever is above is on his way to infinity."""

LEAST_SQUARES: dict[str, dict[str, Any]] = {
    "LSTD": {"class": "LSTD", "lambda_": 0.0},
    "t-LSTD": {"class": "TLSTD", "lambda_": 0.0},
    "Krylov LSTD": {"class": "KrylovLSTD", "lambda_": 0.0},
}


def stepping(alpha: float, *, on_policy: bool, emphatic: float) -> dict[str, dict[str, Any]]:
    """The methods with step sizes."""
    found: dict[str, dict[str, Any]] = {"TD": {"class": "TD", "lambda_": 0.0, "step_size": alpha}}
    if on_policy:
        found["true-online TD"] = {"class": "TrueOnlineTD", "lambda_": 0.0, "step_size": alpha}
        found["SwiftTD"] = {"class": "SwiftTD", "lambda_": 0.0}
    ratio = {} if on_policy else {"step_size_ratio": 10.0}
    for name in ("GTD2", "TDC"):
        found[name] = {"class": name, "lambda_": 0.0, "step_size": alpha / 2.0, **ratio}
    found["TDRC"] = {"class": "TDRC", "lambda_": 0.0, "step_size": alpha}
    found["emphatic TD"] = {"class": "EmphaticTD", "lambda_": 0.0, "step_size": emphatic}
    return found


class _Diverging(Panel):
    """Shared by both processes."""

    process: ClassVar[str]
    methods: ClassVar[dict[str, dict[str, Any]]]
    numbers: ClassVar[dict[str, tuple[int, ...]]]
    size = (3.4, 3.1)

    def method_runs(self, scale: Scale, method: str) -> list[RunSpec]:
        """Return the runs of one method."""
        estimator = dict(self.methods[method])
        if method == "t-LSTD":
            estimator["rank"] = 8 if self.process == "baird" else 2
        settings = {"process": self.process, "estimator": estimator, "samples": list(pick(self.numbers, scale))}
        return specs("stability", settings, seeds(pick(RUNS, scale)))

    def runs(self, results: Results) -> list[RunSpec]:
        """Return those of all methods."""
        return [spec for method in self.methods for spec in self.method_runs(results.scale, method)]

    def chart(self, results: Results) -> Chart:
        """Return the errors of values against samples, cut off at the top."""
        x, series = pick(self.numbers, results.scale), []
        for number, method in enumerate(self.methods):
            errors = np.clip(results.column(self.method_runs(results.scale, method), "rmsve")[:, 1:], 1e-12, HIGHEST)
            look = {"dash": DASHED} if method in LEAST_SQUARES else {}
            marker, colour = MARKERS[number % len(MARKERS)], COLOURS.get(method, GREY)
            series.append(curve(x, errors, method, colour, marker=marker, **look))
        y = Axis("RMS error of values", log=True, low=1e-13, high=2.0 * HIGHEST)
        return Chart(series, Axis("samples", log=True), y, legend=Legend("below", 3, 5.8))

    def growth(self, results: Results, method: str, column: str = "rmsve") -> tuple[FloatArray, FloatArray]:
        """Return the errors of all runs at the end and at the start."""
        errors = results.column(self.method_runs(results.scale, method), column)
        return np.minimum(errors[:, -1], 1e300), errors[:, 0]

    def worst(self, results: Results, methods: Sequence[str], column: str = "rmsve") -> Finding:
        """Return the largest growth among methods that should fall to a hundredth."""
        ratios = {method: ratio_of_means(*self.growth(results, method, column)) for method in methods}
        name = max(ratios, key=lambda method: ratios[method].value)
        verdict = below(ratios[name], 0.01, partly=0.5)
        others = "; ".join(f"{method}: {ratio}" for method, ratio in ratios.items())
        what = "RMS error of values" if column == "rmsve" else "root of the projected error"
        return Finding(verdict, ratios[name], f"{what} at the end over that at the start, {name}", others)


class OnBaird(_Diverging):
    """Off-policy: only there linear TD may diverge."""

    name = "diverging-baird"
    title = "Baird's counterexample"
    caption = (
        "Seven states, eight features, γ=0.99, λ=0; the target's action is taken once in seven times. Step sizes: TD "
        "and TDRC 0.01, GTD2 and TDC 0.005 with β = 10α, emphatic TD 10⁻⁴; least squares as they come. True-online TD "
        "and SwiftTD take no importance ratios. Drawn up to 10⁸ and down to 10⁻¹²."
    )
    process = "baird"
    methods: ClassVar = {**stepping(0.01, on_policy=False, emphatic=1e-4), **LEAST_SQUARES}
    numbers: ClassVar = {
        "smoke": (10, 100),
        "quick": (10, 30, 100, 300, 1000, 3000, 10_000, 30_000),
        "paper": (10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000),
    }

    def claims(self) -> Sequence[Claim]:
        """Return who diverges and who does not."""
        return (
            Claim("baird-td", BEYOND, "On Baird's counterexample TD diverges.", self._td),
            Claim(
                "baird-gradient",
                BEYOND,
                "On Baird's counterexample GTD2, TDC and TDRC bring the error of values down to a hundredth.",
                lambda results: self.worst(results, ("GTD2", "TDC", "TDRC")),
            ),
            Claim(
                "baird-projected",
                BEYOND,
                "On Baird's counterexample GTD2, TDC and TDRC bring the projected Bellman error down to a hundredth.",
                lambda results: self.worst(results, ("GTD2", "TDC", "TDRC"), "rmspbe"),
            ),
            Claim(
                "baird-least-squares",
                BEYOND,
                "On Baird's counterexample LSTD, t-LSTD and Krylov LSTD bring the error down to a hundredth.",
                lambda results: self.worst(results, tuple(LEAST_SQUARES)),
            ),
            Claim(
                "baird-emphatic",
                BEYOND,
                "On samples of Baird's counterexample emphatic TD, which converges in the mean, gets nowhere.",
                self._emphatic,
            ),
        )

    def _td(self, results: Results) -> Finding:
        end, start = self.growth(results, "TD")
        number = interval(lambda a, b: float(np.median(a / b)), end, start)
        return Finding(above(number, 1e3), number, "RMS error of values at the end over that at the start, median")

    def _emphatic(self, results: Results) -> Finding:
        end, start = self.growth(results, "emphatic TD")
        number = interval(lambda a, b: float(np.median(a / b)), end, start)
        return Finding(above(number, 0.5), number, "RMS error of values at the end over that at the start, median")


class OnSpiral(_Diverging):
    """On-policy: only what is not linear diverges."""

    name = "diverging-spiral"
    title = "The spiral"
    caption = (
        "Three states, γ=0.9, λ=0, on-policy. Linear methods have two features that span the plane of the spiral; the "
        "grey line is TD on the spiral itself, one parameter. Step sizes: TD, true-online TD and TDRC 0.1, GTD2 and "
        "TDC 0.05, emphatic TD 0.01, on the spiral 2·10⁻⁶; SwiftTD and least squares as they come. Drawn down to 10⁻¹²."
    )
    process = "spiral"
    methods: ClassVar = {
        **stepping(0.1, on_policy=True, emphatic=0.01),
        **LEAST_SQUARES,
        "TD on the spiral": {"class": "spiral", "step_size": 2e-6},
    }
    numbers: ClassVar = {
        "smoke": (10, 100),
        "quick": (10, 30, 100, 300, 1000, 3000, 10_000),
        "paper": (10, 30, 100, 300, 1000, 3000, 10_000, 30_000),
    }

    def claims(self) -> Sequence[Claim]:
        """Return that linear methods converge, and what the curve does."""
        linear = tuple(method for method in self.methods if method != "TD on the spiral")
        return (
            Claim(
                "spiral-linear",
                BEYOND,
                "On the spiral's process all linear methods bring the error down to a hundredth.",
                lambda results: self.worst(results, linear),
            ),
            Claim("spiral-curve", BEYOND, "On the spiral itself TD diverges, on-policy.", self._curve),
        )

    def _curve(self, results: Results) -> Finding:
        end, start = self.growth(results, "TD on the spiral")
        number = interval(lambda a, b: float(np.median(a / b)), end, start)
        return Finding(above(number, 1e3), number, "RMS error of values at the end over that at the start, median")
