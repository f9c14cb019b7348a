"""Beyond the paper: how much predictions change from step to step, and what makes them change less."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from tlstd_lab.chart import COLOURS, Axis, Chart, Legend, Series, points
from tlstd_lab.claims import BEYOND, Claim, Finding, Verdict, above, below
from tlstd_lab.panel import Panel, Results, Scale, best, pick, seeds, specs
from tlstd_lab.problems import problem
from tlstd_lab.spec import RunSpec
from tlstd_lab.statistics import OverRuns, bootstrap, ratio_of_means

ORDER: tuple[Verdict, ...] = ("reproduced", "partly", "not")
"""From the best verdict to the worst."""
PLAIN = "t-LSTD"
"""Buffer of r samples, read at every step: the paper's algorithm with k=1."""
LONG = 2
"""Length of the long buffer, in ranks."""
ALPHAS = (0.03, 0.1, 0.3, 1.0)
"""Times the inverse mean of ‖x‖²."""
SMOOTHER = ("long buffer", "long, read rarely", "averaged", "damped", "cut-off 0.01", "ATD")
"""What may be smoother than plain t-LSTD."""
LOOKS: dict[str, tuple[str, str]] = {
    "TD": (COLOURS["TD"], "^"),
    "iLSTD": (COLOURS["iLSTD"], "v"),
    "LSTD": (COLOURS["LSTD"], "s"),
    PLAIN: (COLOURS["t-LSTD"], "o"),
    "long buffer": ("#8c2d04", "D"),
    "long, read rarely": ("#8c2d04", "P"),
    "averaged": ("#009E73", "X"),
    "damped": ("#b8a100", "<"),
    "cut-off 0.01": ("#56B4E9", ">"),
    "ATD": (COLOURS["ATD"], "p"),
}
"""Colour and marker."""


class _Smoothness(Panel):
    """Shared by the problems."""

    problem: ClassVar[str]
    rank: ClassVar[int]
    lambda_: ClassVar[float]
    methods: ClassVar[tuple[str, ...]]
    windows: ClassVar[dict[str, tuple[int, int]]]
    """First and last of the steps that are looked at."""
    size = (3.4, 3.1)

    def settings(self, scale: Scale, method: str) -> dict[str, Any]:
        """Return the settings of a method that has none to be chosen."""
        rank = 10 if scale == "smoke" else self.rank
        plain = {"class": "TLSTD", "rank": rank, "lambda_": self.lambda_, "buffer_size": rank}
        long = {"estimator": plain | {"buffer_size": LONG * rank}}
        start, stop = pick(self.windows, scale)
        atd = {"class": "ATD", "rank": rank, "lambda_": self.lambda_, "step_size": [1.0, 0], "eta": self._alpha(0.01)}
        variants: dict[str, dict[str, Any]] = {
            "LSTD": {"estimator": {"class": "LSTD", "lambda_": self.lambda_, "solver": "recursive"}},
            PLAIN: {"estimator": plain},
            "long buffer": long,
            "long, read rarely": long | {"every": LONG * rank},
            "averaged": {"estimator": plain, "averaged": True},
            "damped": {"estimator": plain, "damping": 0.03},
            "cut-off 0.01": {"estimator": plain | {"rcond": 0.01}},
            "ATD": {"estimator": atd},
        }
        return {"problem": self.problem, "start": start, "stop": stop} | variants.get(method, {})

    def _alpha(self, alpha: float) -> float:
        return alpha / round(problem(self.problem).square_length, 2)

    def candidates(self, scale: Scale, method: str) -> list[list[RunSpec]]:
        """Return the sweep over the step size of TD or iLSTD (m = 50, N₀ = 100)."""
        runs = pick({"smoke": 1, "quick": 1, "paper": 3}, scale)
        swept = []
        for alpha in map(self._alpha, ALPHAS):
            estimator: dict[str, Any] = {"class": "TD", "lambda_": 0.9, "step_size": alpha}
            if method == "iLSTD":
                estimator |= {"class": "ILSTD", "step_size": [alpha, 100], "coordinates_per_step": 50}
            swept.append(
                specs("smoothness", self.settings(scale, method) | {"estimator": estimator}, seeds(runs, tuning=True))
            )
        return swept

    def tuning(self, scale: Scale) -> list[RunSpec]:
        """Return the sweeps of TD and iLSTD: by the mean error over the steps looked at."""
        return [spec for method in ("TD", "iLSTD") for runs in self.candidates(scale, method) for spec in runs]

    def method_runs(self, results: Results, method: str) -> list[RunSpec]:
        """Return the runs of a method."""
        scale = results.scale
        swept = method in ("TD", "iLSTD")
        settings = best(results, self.candidates(scale, method)) if swept else self.settings(scale, method)
        return specs("smoothness", settings, seeds(pick({"smoke": 1, "quick": 2, "paper": 5}, scale)))

    def runs(self, results: Results) -> list[RunSpec]:
        """Return all methods and variants."""
        return [spec for method in self.methods for spec in self.method_runs(results, method)]

    def chart(self, results: Results) -> Chart:
        """Return the error against the change per step, with intervals over runs for both."""
        series = []
        for method in self.methods:
            runs = self.method_runs(results, method)
            x, y = (
                bootstrap(lambda some: some.mean(), results.column(runs, name)[:, 0]) for name in ("change", "rmse")
            )
            colour, marker = LOOKS[method]
            found = points(x[0], y[0], *y[1:], *x[1:])
            series.append(Series(method, colour, found, marker=marker, size=5.0, joined=False, width=0.8))
        x_axis = Axis("change of the predictions per step (relative)", log=True)
        return Chart(series, x_axis, Axis("RMSE"), legend=Legend("below", 3, 5.8))

    def claims(self) -> Sequence[Claim]:
        """Return what the results decide."""
        return (
            Claim(
                f"{self.name}-rougher-TD",
                self.where(),
                "t-LSTD's learning curve and predictions are less smooth than TD's, at TD's best step size.",
                lambda results: self._rougher(results, "TD"),
            ),
            Claim(
                f"{self.name}-rougher-iLSTD",
                self.where(),
                "t-LSTD's learning curve and predictions are less smooth than iLSTD's, at iLSTD's best step size.",
                lambda results: self._rougher(results, "iLSTD"),
            ),
            Claim(
                f"{self.name}-smoother",
                BEYOND,
                "There is a way to halve t-LSTD's change per step without losing more than 5% of its accuracy.",
                self._smoother,
            ),
            Claim(
                f"{self.name}-averaged",
                BEYOND,
                "Averaging the weights read halves t-LSTD's change per step, at no more than 5% of its accuracy.",
                lambda results: self._variant(results, "averaged"),
            ),
            Claim(
                f"{self.name}-damped",
                BEYOND,
                "Damping small singular values halves t-LSTD's change per step, at no more than 5% of its accuracy.",
                lambda results: self._variant(results, "damped"),
            ),
        )

    def where(self) -> str:
        """Where the paper says that t-LSTD is less smooth: of energy storage only."""
        return BEYOND

    def _ratio(self, results: Results, method: str, name: str) -> OverRuns:
        """A column's mean of a method over that of plain t-LSTD."""
        columns = [results.column(self.method_runs(results, m), name)[:, 0] for m in (method, PLAIN)]
        return ratio_of_means(*columns)

    def _rougher(self, results: Results, method: str) -> Finding:
        """Less smooth in both readings: the error's change per step, and that of the predictions."""
        runs = self.method_runs(results, method)
        columns = {
            name: [results.column(some, name)[:, 0] for some in (self.method_runs(results, PLAIN), runs)]
            for name in ("wobble", "change", "wander", "jump")
        }
        found = {name: ratio_of_means(*pair) for name, pair in columns.items()}
        verdicts = {above(found["wobble"], 1.0), above(found["change"], 1.0)}
        verdict: Verdict = verdicts.pop() if len(verdicts) == 1 else "partly"
        note = (
            f"of the predictions: {found['change']}, the largest: {found['jump']}, their sum over the net change: "
            f"{found['wander']}; {_step(runs[0].plain_settings()['estimator']['step_size'])}"
        )
        return Finding(verdict, found["wobble"], f"change of the RMSE per step, t-LSTD over {method}", note)

    def _variant(self, results: Results, method: str) -> Finding:
        change, error = self._ratio(results, method, "change"), self._ratio(results, method, "rmse")
        verdict = max(below(change, 0.5, partly=0.8), below(error, 1.05, partly=1.2), key=ORDER.index)
        return Finding(verdict, change, f"change per step, {method} over plain t-LSTD", f"RMSE: {error}")

    def _smoother(self, results: Results) -> Finding:
        found = {method: self._variant(results, method) for method in SMOOTHER}
        method = min(found, key=lambda m: (ORDER.index(found[m].verdict), found[m].number.value))
        note = "; ".join(f"{m}: change {found[m].number}, {found[m].note}" for m in found)
        return Finding(found[method].verdict, found[method].number, found[method].what, note)


def _step(step_size: float | list[float]) -> str:
    """A step size or a pair α₀, N₀ in words."""
    if isinstance(step_size, list):
        return f"α₀={step_size[0]:.2g}, N₀={step_size[1]:g}"
    return f"α={step_size:.2g}"


class SmoothnessCar(_Smoothness):
    """Mountain Car with RBFs."""

    name = "smoothness-car"
    title = "Change per step, Mountain Car, RBFs"
    caption = (
        "Mountain Car, 1,024 RBFs, rank 50, λ=0.9: root mean square change of the predictions per step over that of "
        "the predictions, and mean RMSE, over steps 2,000 to 2,500 (paper scale). t-LSTD has a buffer of r samples "
        "and is read at every step; variants differ in one thing: a buffer of 2r samples; the same, read once in 2r "
        "steps; the mean of the weights read since the window began; small singular values damped; the paper's "
        "cut-off. LSTD by recursion. TD and iLSTD with the step size of least error."
    )
    problem, rank, lambda_ = "car-rbf", 50, 0.9
    methods = ("TD", "iLSTD", "LSTD", PLAIN, *SMOOTHER)
    windows: ClassVar[dict[str, tuple[int, int]]] = {"smoke": (60, 75), "quick": (1000, 1200), "paper": (2000, 2500)}


class SmoothnessEnergy(_Smoothness):
    """Energy storage, of which the paper says it."""

    name = "smoothness-energy"
    title = "Change per step, energy storage"
    caption = (
        "Energy storage, 40,001 tile features, rank 40, λ=1 (TD and iLSTD: 0.9), steps 5,000 to 5,500 (paper "
        "scale): as for Mountain Car. LSTD is left out: its matrix would be of 28,000 × 28,000."
    )
    problem, rank, lambda_ = "energy", 40, 1.0
    methods = ("TD", "iLSTD", PLAIN, *SMOOTHER)
    windows: ClassVar[dict[str, tuple[int, int]]] = {"smoke": (60, 75), "quick": (2500, 2700), "paper": (5000, 5500)}

    def where(self) -> str:
        """Section 5, of figure 3b."""
        return "section 5, on figure 3b"
