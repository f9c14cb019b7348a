"""Beyond the paper: do ATD and "t-LSTD, then TD" remove the truncation bias, and when should one switch?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd_lab.chart import COLOURS, MARKERS, Axis, Chart, Rule, curve, sequence
from tlstd_lab.claims import Claim, Finding, below
from tlstd_lab.panel import Panel, Results, Scale, best, pick, seeds, specs
from tlstd_lab.spec import RunSpec
from tlstd_lab.statistics import ratio_of_means

PROBLEM, RANK, LAMBDA = "car-tiles", 30, 1.0
SAMPLES = {
    "smoke": (200, 500),
    "quick": (500, 1000, 2000, 5000, 10_000),
    "paper": (500, 1000, 2000, 5000, 10_000, 20_000, 30_000),
}
RUNS = {"smoke": 1, "quick": 3, "paper": 8}
TUNING = {"smoke": 1, "quick": 2, "paper": 3}
ATD_RUNS, ATD_TUNING = 3, 1
"""At paper scale: 25 seconds each."""
STEP_SIZES = {"smoke": (0.01,), "quick": (0.01, 0.03, 0.1), "paper": (0.001, 0.003, 0.01, 0.03, 0.1)}
SWITCHES = {
    "smoke": (100, 300),
    "quick": (200, 500, 1000, 2000, 5000),
    "paper": (100, 200, 500, 1000, 2000, 5000, 10_000),
}

Estimator = Mapping[str, Any]
T_LSTD: Estimator = {"class": "TLSTD", "rank": RANK, "lambda_": LAMBDA}


def td(step_size: float) -> Estimator:
    """TD with a constant step size."""
    return {"class": "TD", "lambda_": LAMBDA, "step_size": step_size}


def atd(eta: float) -> Estimator:
    """ATD whose TD part has the step size eta."""
    return {"class": "ATD", "rank": RANK, "lambda_": LAMBDA, "step_size": [1.0, 0], "eta": eta}


def handover(step_size: float, after: int | None = None) -> Estimator:
    """t-LSTD, then TD: after so many samples, or when its weights have settled."""
    rule: dict[str, Any] = {"settled": 0.3} if after is None else {"after": after}
    return {"class": "Handover", "first": T_LSTD, "second": td(step_size)} | rule


class _Switching(Panel):
    """What both panels share: runs, and the step size of each method."""

    tuned: ClassVar[tuple[str, ...]]
    """Methods whose step size is chosen."""

    def method_runs(self, scale: Scale, estimator: Estimator, *, tuning: bool = False) -> list[RunSpec]:
        """Return the runs of one estimator."""
        settings = {"problem": PROBLEM, "estimator": estimator, "samples": pick(SAMPLES, scale)}
        runs = pick(TUNING if tuning else RUNS, scale)
        if scale == "paper" and estimator["class"] == "ATD":
            runs = ATD_TUNING if tuning else ATD_RUNS
        return specs("curve", settings, seeds(runs, tuning=tuning))

    def candidates(self, scale: Scale, method: str) -> list[list[RunSpec]]:
        """Return the sweep of a method's step size."""
        make = {"TD": td, "ATD": atd, "t-LSTD, then TD": handover}[method]
        return [self.method_runs(scale, make(step), tuning=True) for step in pick(STEP_SIZES, scale)]

    def tuning(self, scale: Scale) -> list[RunSpec]:
        """Return all sweeps."""
        return [spec for method in self.tuned for runs in self.candidates(scale, method) for spec in runs]

    def chosen(self, results: Results, method: str) -> Estimator:
        """Return a method with its best step size."""
        if method == "t-LSTD":
            return T_LSTD
        if method == "LSTD":
            return {"class": "LSTD", "lambda_": LAMBDA}
        found: Estimator = best(results, self.candidates(results.scale, method))["estimator"]
        return found

    def errors(self, results: Results, estimator: Estimator) -> FloatArray:
        """Return the curves of an estimator, a row per run."""
        return results.column(self.method_runs(results.scale, estimator), "rmse")


class Bias(_Switching):
    """Learning curves."""

    name = "bias"
    title = "Removing the truncation bias"
    caption = (
        f"Mountain Car, 1,000 tiles, rank {RANK}, λ={LAMBDA:g}. Step sizes by sweeps on other seeds. TD takes over "
        "when t-LSTD's weights have settled. Paper scale: 8 runs, of ATD 3 (its step size by one stream)."
    )
    methods = ("t-LSTD", "TD", "ATD", "t-LSTD, then TD", "LSTD")
    tuned = ("TD", "ATD", "t-LSTD, then TD")

    def runs(self, results: Results) -> list[RunSpec]:
        """Return the runs of all methods."""
        return [
            spec for method in self.methods for spec in self.method_runs(results.scale, self.chosen(results, method))
        ]

    def chart(self, results: Results) -> Chart:
        """Return errors against samples."""
        samples = pick(SAMPLES, results.scale)
        series = [
            curve(samples, self.errors(results, self.chosen(results, method)), method, COLOURS[method], marker=marker)
            for method, marker in zip(self.methods, MARKERS, strict=False)
        ]
        return Chart(series, Axis("samples", log=True), Axis("RMSE", log=True))

    def claims(self) -> Sequence[Claim]:
        """Return whether the bias goes, and whether it pays before that."""
        return (
            Claim(
                "bias-removed",
                "section 6, suggested",
                "Switching from t-LSTD to TD removes the truncation bias: in the end the error is TD's.",
                lambda results: self._against_td(results, -1, 1.1),
            ),
            Claim(
                "bias-early",
                "section 6, suggested",
                "t-LSTD with a very small rank still helps early learning when TD takes over.",
                lambda results: self._against_td(results, 1, 1.0),
            ),
        )

    def _against_td(self, results: Results, point: int, bound: float) -> Finding:
        errors = {method: self.errors(results, self.chosen(results, method))[:, point] for method in self.methods}
        number = ratio_of_means(errors["t-LSTD, then TD"], errors["TD"])
        count = pick(SAMPLES, results.scale)[point]
        note = ", ".join(f"{method} {values.mean():.3g}" for method, values in errors.items())
        what = f"RMSE of t-LSTD, then TD over TD's after {count:,} samples"
        return Finding(below(number, bound), number, what, note)


class Switch(_Switching):
    """When to switch."""

    name = "switch"
    title = "When to hand over from t-LSTD to TD"
    caption = "As panel bias: errors at several times against the number of samples after which TD takes over."
    tuned = ("TD", "t-LSTD, then TD")

    def chosen_step(self, results: Results) -> float:
        """Return the step size that was best for the handover."""
        step: float = self.chosen(results, "t-LSTD, then TD")["second"]["step_size"]
        return step

    def runs(self, results: Results) -> list[RunSpec]:
        """Return handovers after several numbers of samples, and TD alone."""
        step = self.chosen_step(results)
        switches = [handover(step, after) for after in pick(SWITCHES, results.scale)]
        estimators = [self.chosen(results, "TD"), *switches]
        shown = [spec for estimator in estimators for spec in self.method_runs(results.scale, estimator)]
        return shown + [spec for e in switches for spec in self.method_runs(results.scale, e, tuning=True)]

    def chart(self, results: Results) -> Chart:
        """Return one line per time at which the error is measured; TD alone is dotted."""
        step, switches = self.chosen_step(results), pick(SWITCHES, results.scale)
        samples, series = pick(SAMPLES, results.scale), []
        curves = np.array([self.errors(results, handover(step, after)) for after in switches])  # (switch, run, time)
        alone = self.errors(results, self.chosen(results, "TD")).mean(axis=0)
        shown = list(range(len(samples)))[:: 2 if len(samples) > 4 else 1]
        for i, point in enumerate(shown):
            label, colour = f"after {samples[point]:,} samples", sequence(i, len(shown) + 1)
            rules = (Rule("y", alone[point], width=0.9),)
            series.append(curve(switches, curves[:, :, point].T, label, colour, marker=MARKERS[i], rules=rules))
        y = Axis("RMSE (dotted: TD alone)", log=True)
        return Chart(series, Axis("handed over after (samples)", log=True), y)

    def claims(self) -> Sequence[Claim]:
        """Return whether there is a time to switch that pays."""
        statement = "There is a time to switch from t-LSTD to TD that beats TD alone."
        return (Claim("switch-pays", "section 6, suggested", statement, self._pays),)

    def _pays(self, results: Results) -> Finding:
        step, switches = self.chosen_step(results), pick(SWITCHES, results.scale)
        alone = self.errors(results, self.chosen(results, "TD")).mean(axis=1)
        candidates = [self.method_runs(results.scale, handover(step, a), tuning=True) for a in switches]
        after = int(best(results, candidates)["estimator"]["after"])
        number = ratio_of_means(self.errors(results, handover(step, after)).mean(axis=1), alone)
        note = f"the best of {len(switches)} times on other seeds; step size {step:g}, TD with its own"
        return Finding(below(number, 1.0), number, f"mean RMSE of a handover after {after:,} samples over TD's", note)
