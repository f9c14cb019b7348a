"""Beyond the paper: constant β against the running average 1/t when rewards or dynamics change half-way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd_lab.chart import COLOURS, DASHED, Axis, Chart, Legend, Rule, curve
from tlstd_lab.claims import BEYOND, Claim, Finding, Verdict, above, below
from tlstd_lab.panel import Panel, Results, Scale, best, pick, seeds, specs
from tlstd_lab.spec import RunSpec
from tlstd_lab.statistics import ratio_of_means

ORDER: tuple[Verdict, ...] = ("reproduced", "partly", "not")
"""From the best verdict to the worst."""
BETAS = (1e-4, 3e-4, 1e-3, 3e-3)
ALPHAS = (0.003, 0.01, 0.03, 0.1, 0.3)
COMMON = {"lambda_": 0.9, "rcond": 1e-3}
METHODS: dict[str, dict[str, Any]] = {
    "LSTD": {"class": "LSTD", **COMMON},
    "t-LSTD": {"class": "TLSTD", "rank": 50, **COMMON},
    "Krylov LSTD": {"class": "KrylovLSTD", "reads": "stream", "lambda_": 0.9},
}
MARKERS = {"LSTD": "s", "t-LSTD": "o", "Krylov LSTD": "P"}


class _Tracking(Panel):
    """Shared by both kinds of change."""

    change: ClassVar[str]
    methods: ClassVar[tuple[str, ...]] = ("LSTD", "t-LSTD")
    lengths: ClassVar[dict[str, tuple[int, int]]] = {"smoke": (300, 1), "quick": (5_000, 10), "paper": (10_000, 20)}
    """Samples before and after the change, and measurements in each half."""
    streams: ClassVar[dict[str, int]] = {"smoke": 1, "quick": 2, "paper": 5}
    """That β and the step size are chosen on."""
    size = (3.4, 2.9)

    def settings(self, scale: Scale, estimator: dict[str, Any]) -> dict[str, Any]:
        """Return the settings of a run at a scale."""
        half, points = pick(self.lengths, scale)
        return {"change": self.change, "estimator": estimator, "half": half, "points": points}

    def candidates(self, scale: Scale, method: str) -> list[list[RunSpec]]:
        """Return the sweep over β, or over TD's step size."""
        if method == "TD":
            estimators = [{"class": "TD", "lambda_": 0.9, "step_size": alpha} for alpha in self.alphas(scale)]
        else:
            estimators = [METHODS[method] | {"beta": beta} for beta in BETAS]
        runs = pick(self.streams, scale)
        return [specs("tracking", self.settings(scale, e), seeds(runs, tuning=True)) for e in estimators]

    def alphas(self, scale: Scale) -> tuple[float, ...]:
        """Return TD's step sizes, to be divided by ‖x‖²."""
        return ALPHAS

    def tuning(self, scale: Scale) -> list[RunSpec]:
        """Return the sweeps."""
        return [spec for m in (*self.methods, "TD") for runs in self.candidates(scale, m) for spec in runs]

    def averaged(self, scale: Scale, method: str) -> list[RunSpec]:
        """All samples weigh the same."""
        return specs("tracking", self.settings(scale, METHODS[method]), self._seeds(scale))

    def forgetting(self, results: Results, method: str) -> list[RunSpec]:
        """β, or TD's step size, as chosen on other seeds."""
        chosen = best(results, self.candidates(results.scale, method))
        return specs("tracking", chosen, self._seeds(results.scale))

    def _seeds(self, scale: Scale) -> range:
        return seeds(pick({"smoke": 1, "quick": 4, "paper": 10}, scale))

    def runs(self, results: Results) -> list[RunSpec]:
        """Return the methods of least squares with both kinds of weights, and TD."""
        wanted = self.forgetting(results, "TD")
        for method in self.methods:
            wanted += self.averaged(results.scale, method) + self.forgetting(results, method)
        return wanted

    def chart(self, results: Results) -> Chart:
        """Return the errors against the current truth; the change is where the line stands."""
        samples, series = results[self.averaged(results.scale, "LSTD")[0]].columns["samples"], []
        for method in self.methods:
            marker, colour, runs = MARKERS[method], COLOURS[method], self.forgetting(results, method)
            beta = runs[0].plain_settings()["estimator"]["beta"]
            errors = results.column(self.averaged(results.scale, method), "rmse")
            look = {"dash": DASHED, "marker": marker, "hollow": True}
            series.append(curve(samples, errors, f"{method}, 1/t", colour, **look))
            errors = results.column(runs, "rmse")
            series.append(curve(samples, errors, f"{method}, β={beta:g}", colour, marker=marker))
        runs = self.forgetting(results, "TD")
        label = f"TD, α={runs[0].plain_settings()['estimator']['step_size']:g}/‖x‖²"
        series.append(curve(samples, results.column(runs, "rmse"), label, COLOURS["TD"], marker="^"))
        x, y = Axis("samples (the change: dotted)"), Axis("RMSE against current values", log=True)
        change = Rule("x", self.settings(results.scale, {})["half"])
        return Chart(series, x, y, (change,), legend=Legend("below", 3, 5.8))

    def claims(self) -> Sequence[Claim]:
        """Return what the results decide."""
        what = f"When {self.change} change"
        return (
            Claim(
                f"{self.name}-t-LSTD", BEYOND, f"{what}, t-LSTD with constant β follows and with 1/t does not.", self._t
            ),
            Claim(
                f"{self.name}-LSTD",
                BEYOND,
                f"{what}, LSTD with constant β follows and with 1/t does not.",
                lambda results: self._follows(results, "LSTD"),
            ),
            Claim(f"{self.name}-cost", BEYOND, "Before the change, constant β costs accuracy.", self._cost),
            Claim(
                f"{self.name}-rank",
                BEYOND,
                f"{what}, t-LSTD of rank 50 follows as well as LSTD (256 RBFs), both with constant β.",
                lambda results: self._like_lstd(results, "t-LSTD"),
            ),
            Claim(
                f"{self.name}-TD",
                BEYOND,
                f"{what}, LSTD with constant β ends up with a smaller error than TD at its best constant step size.",
                self._td,
            ),
        )

    def _errors(self, results: Results, runs: list[RunSpec], half: int) -> FloatArray:
        """Error at the end of the first or second half, mean of the last fifth of its points, (runs,)."""
        points = self.settings(results.scale, {})["points"]
        errors = results.column(runs, "rmse")[:, half * points : (half + 1) * points]
        return np.asarray(errors[:, -max(1, points // 5) :].mean(axis=1))

    def _t(self, results: Results) -> Finding:
        return self._follows(results, "t-LSTD")

    def _follows(self, results: Results, method: str) -> Finding:
        """Follows: back to the error before the change. Does not: half as much again as what follows."""
        constant, average = self.forgetting(results, method), self.averaged(results.scale, method)
        left = ratio_of_means(self._errors(results, average, 1), self._errors(results, constant, 1))
        back = ratio_of_means(self._errors(results, constant, 1), self._errors(results, constant, 0))
        verdict = max(above(left, 1.5, partly=1.1), below(back, 1.5, partly=2.0), key=ORDER.index)
        beta = constant[0].plain_settings()["estimator"]["beta"]
        note = f"β={beta:g}: its error after the change over that before it: {back}"
        return Finding(verdict, left, "RMSE at the end, 1/t over constant β", note)

    def _cost(self, results: Results) -> Finding:
        found = {
            method: ratio_of_means(
                self._errors(results, self.forgetting(results, method), 0),
                self._errors(results, self.averaged(results.scale, method), 0),
            )
            for method in self.methods
        }
        note = "; ".join(f"{method}: {ratio}" for method, ratio in found.items())
        return Finding(above(found["t-LSTD"], 1.0), found["t-LSTD"], "RMSE before the change, t-LSTD, β over 1/t", note)

    def _like_lstd(self, results: Results, method: str) -> Finding:
        ends = [self._errors(results, self.forgetting(results, name), 1) for name in (method, "LSTD")]
        ratio = ratio_of_means(*ends)
        return Finding(below(ratio, 1.1, partly=1.5), ratio, f"RMSE at the end, {method} over LSTD")

    def _td(self, results: Results) -> Finding:
        ends = {m: self._errors(results, self.forgetting(results, m), 1) for m in ("LSTD", "t-LSTD", "TD")}
        ratio = ratio_of_means(ends["LSTD"], ends["TD"])
        note = f"t-LSTD over TD: {ratio_of_means(ends['t-LSTD'], ends['TD'])}"
        return Finding(below(ratio, 1.0), ratio, "RMSE at the end, LSTD over TD", note)


class Rewards(_Tracking):
    """Steps left of the valley become more expensive, the others free."""

    name = "tracking-rewards"
    title = "Mountain Car, rewards change half-way"
    caption = (
        "Mountain Car, 16×16 RBFs of width 0.12, γ=0.99, λ=0.9, cut-off 10⁻³; half-way, steps come to cost 2 left of "
        "x=−0.5 and 0 right of it instead of 1. β and TD's α are chosen on other seeds by the mean error over the "
        "whole stream."
    )
    change = "rewards"


class Dynamics(_Tracking):
    """The engine loses half its force."""

    name = "tracking-dynamics"
    title = "Mountain Car, dynamics change half-way"
    caption = (
        "Mountain Car, 16×16 RBFs of width 0.12, γ=0.99, λ=0.9, cut-off 10⁻³; half-way, the engine loses half its "
        "force. β and TD's α are chosen on other seeds by the mean error over the whole stream."
    )
    change = "dynamics"


class _Krylov(_Tracking):
    """The same with Krylov LSTD, whose β are slow: half the samples, and two streams to choose them on."""

    methods = ("LSTD", "Krylov LSTD")
    lengths: ClassVar[dict[str, tuple[int, int]]] = _Tracking.lengths | {"paper": (5_000, 10)}
    streams: ClassVar[dict[str, int]] = _Tracking.streams | {"paper": 2}

    def alphas(self, scale: Scale) -> tuple[float, ...]:
        """Return TD's step sizes, at paper scale enough that the best is inside."""
        return (*ALPHAS, 1.0, 3.0) if scale == "paper" else ALPHAS

    def claims(self) -> Sequence[Claim]:
        """Return what the results decide."""
        what = f"When {self.change} change"
        return (
            Claim(
                f"{self.name}-follows",
                BEYOND,
                f"{what}, Krylov LSTD, a solution at every step, with constant β follows and with 1/t does not.",
                lambda results: self._follows(results, "Krylov LSTD"),
            ),
            Claim(
                f"{self.name}-LSTD",
                BEYOND,
                f"{what}, Krylov LSTD follows as well as LSTD (256 RBFs), both with constant β.",
                lambda results: self._like_lstd(results, "Krylov LSTD"),
            ),
        )


_KRYLOV = (
    " Krylov LSTD has a solution at every step, and no cut-off. Paper scale: 10,000 samples in all, 10 runs; β and α "
    "are chosen on 2 streams."
)


class KrylovRewards(_Krylov):
    """Rewards, with Krylov LSTD."""

    name = "tracking-krylov-rewards"
    title = "Rewards change half-way, Krylov LSTD"
    caption = Rewards.caption + _KRYLOV
    change = "rewards"


class KrylovDynamics(_Krylov):
    """Dynamics, with Krylov LSTD."""

    name = "tracking-krylov-dynamics"
    title = "Dynamics change half-way, Krylov LSTD"
    caption = Dynamics.caption + _KRYLOV
    change = "dynamics"
