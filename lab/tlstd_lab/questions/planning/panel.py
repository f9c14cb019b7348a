"""Beyond the paper: a model of one step and of several, after van Seijen and Sutton (2015)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from tlstd.core.arrays import FloatArray
from tlstd_lab.chart import COLOURS, DASHED, Axis, Chart, Legend, curve, sequence
from tlstd_lab.claims import BEYOND, Claim, Finding, above, below
from tlstd_lab.panel import Panel, Results, Scale, best, pick, seeds, specs
from tlstd_lab.spec import RunSpec
from tlstd_lab.statistics import ratio_of_means

STATES = 19
SAMPLES = {
    "smoke": (100, 300),
    "quick": (200, 500, 1_000, 2_000, 5_000, 10_000),
    "paper": (200, 500, 1_000, 2_000, 5_000, 10_000, 30_000),
}
RATES = (0.003, 0.01, 0.03, 0.1, 0.3)
"""α = β of every method that has them."""
PLANS = 10
TUNED: dict[str, dict[str, Any]] = {
    "linear Dyna": {"class": "LinearDyna", "planning_steps": PLANS},
    "forgetful LSTD(0)": {"class": "ForgetfulLSTD", "planning_steps": PLANS, "lambda_": 0.0},
    "forgetful LSTD(0), 1 step": {"class": "ForgetfulLSTD", "planning_steps": 1, "lambda_": 0.0},
    "forgetful LSTD(0.9)": {"class": "ForgetfulLSTD", "planning_steps": PLANS, "lambda_": 0.9},
    "TD(0.9)": {"class": "TD", "lambda_": 0.9},
}
SOLVED = {f"LSTD({lambda_:g})": {"class": "LSTD", "lambda_": lambda_, "rcond": 1e-6} for lambda_ in (0.0, 0.9)}


class _Planning(Panel):
    """Shared by both kinds of features."""

    group: ClassVar[int]
    size = (3.6, 3.1)

    def runs_of(self, scale: Scale, estimator: dict[str, Any], numbers: range) -> list[RunSpec]:
        """Return the runs of an estimator."""
        settings = {"states": STATES, "group": self.group, "samples": pick(SAMPLES, scale), "estimator": estimator}
        return specs("planning", settings, numbers)

    def candidates(self, scale: Scale, method: str) -> list[list[RunSpec]]:
        """Return the sweep over α = β."""
        numbers = seeds(pick({"smoke": 1, "quick": 5, "paper": 10}, scale), tuning=True)
        rates = [{"step_size": rate} | ({} if method == "TD(0.9)" else {"beta": rate}) for rate in RATES]
        return [self.runs_of(scale, TUNED[method] | rate, numbers) for rate in rates]

    def tuning(self, scale: Scale) -> list[RunSpec]:
        """Return the sweeps."""
        return [spec for method in TUNED for runs in self.candidates(scale, method) for spec in runs]

    def chosen(self, results: Results, method: str) -> list[RunSpec]:
        """Return the runs with the rate that was best on other seeds; of LSTD, which has none, all."""
        numbers = seeds(pick({"smoke": 1, "quick": 20, "paper": 100}, results.scale))
        if method in SOLVED:
            return self.runs_of(results.scale, SOLVED[method], numbers)
        return specs("planning", best(results, self.candidates(results.scale, method)), numbers)

    def runs(self, results: Results) -> list[RunSpec]:
        """Return all methods."""
        return [spec for method in (*TUNED, *SOLVED) for spec in self.chosen(results, method)]

    def chart(self, results: Results) -> Chart:
        """Return a line with a band for each method."""
        series = []
        for number, method in enumerate((*TUNED, *SOLVED)):
            runs, label = self.chosen(results, method), method
            look: dict[str, Any] = {"dash": DASHED if "(0)" in method else (), "marker": "os^Dv<>"[number]}
            if method in TUNED:
                label += f", α={runs[0].plain_settings()['estimator']['step_size']:g}"
            own = COLOURS["LSTD"] if method in SOLVED else COLOURS.get(method[:2], sequence(number, len(TUNED)))
            series.append(curve(pick(SAMPLES, results.scale), results.column(runs, "rmse"), label, own, **look))
        return Chart(series, Axis("samples", log=True), Axis("RMSE", log=True), legend=Legend("below", 2, 6.0))

    def errors(self, results: Results, method: str, at: int) -> FloatArray:
        """RMSE at one of the numbers of samples, (runs,)."""
        errors: FloatArray = results.column(self.chosen(results, method), "rmse")[:, at]
        return errors


class Tabular(_Planning):
    """A feature for each state: what follows depends on the features alone."""

    name, group = "planning-tabular", 1
    title = "Planning, random walk, a feature a state"
    caption = "19 states, γ=1, rewards of -1 and 1 at the ends; α=β tuned on other seeds, 10 planning steps a sample."

    def claims(self) -> Sequence[Claim]:
        """Return what the publication says of such problems, as far as it can be asked here."""
        return (
            Claim(
                "planning-tabular-steps",
                BEYOND,
                "Planning saves samples: after 500, ten gradient steps a sample have a smaller error than one.",
                self._steps,
            ),
            Claim(
                "planning-tabular-multistep",
                BEYOND,
                "Where features are the state, the multi-step model of forgetful LSTD(0.9) costs at most a quarter "
                "more error than linear Dyna's in the end.",
                self._multistep,
            ),
        )

    def _steps(self, results: Results) -> Finding:
        number = ratio_of_means(*(self.errors(results, f"forgetful LSTD(0){k}", 1) for k in (", 1 step", "")))
        return Finding(above(number, 1.0), number, "RMSE with one planning step over that with ten, λ=0, 500 samples")

    def _multistep(self, results: Results) -> Finding:
        number = ratio_of_means(*(self.errors(results, name, -1) for name in ("forgetful LSTD(0.9)", "linear Dyna")))
        return Finding(below(number, 1.25), number, "RMSE of forgetful LSTD(0.9) over that of linear Dyna, at the end")


class Groups(_Planning):
    """One feature for four states: what follows depends on more than the features."""

    name, group = "planning-groups", 4
    title = "Planning, random walk, a feature for four states"
    caption = "As beside, with one feature for four neighbouring states."

    def claims(self) -> Sequence[Claim]:
        """Return the publication's claim for its method."""
        return (
            Claim(
                "planning-groups-multistep",
                BEYOND,
                "Where features hide the state, linear Dyna ends with half as much error again as forgetful LSTD(0.9), "
                "whose model is a multi-step one, or with more.",
                self._multistep,
            ),
            Claim(
                "planning-groups-lstd",
                BEYOND,
                "There it ends with no more than a quarter more error than LSTD(0.9).",
                self._lstd,
            ),
        )

    def _multistep(self, results: Results) -> Finding:
        number = ratio_of_means(*(self.errors(results, name, -1) for name in ("linear Dyna", "forgetful LSTD(0.9)")))
        verdict = above(number, 1.5, partly=1.1)
        return Finding(verdict, number, "RMSE of linear Dyna over that of forgetful LSTD(0.9), at the end")

    def _lstd(self, results: Results) -> Finding:
        number = ratio_of_means(*(self.errors(results, name, -1) for name in ("forgetful LSTD(0.9)", "LSTD(0.9)")))
        return Finding(below(number, 1.25), number, "RMSE of forgetful LSTD(0.9) over that of LSTD(0.9), at the end")
