"""Beyond the paper: what held-out data choose against the best choice in hindsight, on all problems."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd_lab.chart import COLOURS, Axis, Chart, Legend, Rule, Series, cases, points
from tlstd_lab.claims import BEYOND, Claim, Finding, below
from tlstd_lab.panel import Panel, Results, Scale, pick, seeds, specs
from tlstd_lab.spec import RunSpec
from tlstd_lab.statistics import OverRuns, interval

PROBLEMS = {
    "energy": "energy",
    "car-tiles": "car, tiles",
    "car-rbf": "car, RBFs",
    "pendulum-tiles": "pendulum, tiles",
    "pendulum-rbf": "pendulum, RBFs",
}
"""Words for each."""
BOUND = 1.1
"""Times the best choice's error that a choice may have."""
DEFAULT = 1e-4
"""LSTD's cut-off if none is given."""


class Choice(NamedTuple):
    """A parameter, and the candidates for it."""

    words: str
    colour: str
    estimator: dict[str, Any]
    values: tuple[float, ...]
    needs_the_matrix: bool = False


CHOICES: dict[str, Choice] = {
    "dimension": Choice("Krylov dimension", COLOURS["Krylov LSTD"], {}, ()),
    "lambda_": Choice("Krylov λ", COLOURS["replay TD"], {"class": "KrylovLSTD"}, (0.0, 0.4, 0.7, 0.9, 0.95, 1.0)),
    "rank": Choice(
        "t-LSTD rank",
        COLOURS["t-LSTD"],
        {"class": "TLSTD", "lambda_": 1.0, "rcond": 0.01},
        (10, 20, 40, 80),
    ),
    "rcond": Choice(
        "LSTD cut-off",
        COLOURS["LSTD"],
        {"class": "LSTD", "lambda_": 0.9},
        (1e-1, 1e-2, 1e-3, DEFAULT, 1e-5, 1e-6),
        needs_the_matrix=True,
    ),
    "ridge": Choice(
        "LSTD ridge",
        COLOURS["ATD"],
        {"class": "LSTD", "lambda_": 0.9},
        (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7),
        needs_the_matrix=True,
    ),
}


class Chosen(Panel):
    """All parameters on all problems."""

    name = "chosen"
    title = "Chosen by held-out data over best in hindsight"
    caption = (
        "Error of what held-out data choose (five folds), over that of the best candidate in hindsight, which needs "
        "the true values: filled at the states of the figures, hollow at states of another stream. Where the two "
        "differ, the figures' grid has states that the stream does not visit, of which data say nothing. 2,000 "
        "samples; LSTD's A does not fit on energy. Paper scale: 5 runs."
    )
    size = (4.2, 5.2)

    def cells(self) -> list[tuple[str, str]]:
        """Return parameter and problem of each line."""
        return [
            (parameter, name)
            for parameter, choice in CHOICES.items()
            for name in PROBLEMS
            if not (choice.needs_the_matrix and name == "energy")
        ]

    def cell_runs(self, scale: Scale, parameter: str, name: str) -> list[RunSpec]:
        """Return the runs of one line."""
        settings: dict[str, Any] = {
            "problem": name,
            "n_samples": pick({"smoke": 300, "quick": 2_000, "paper": 2_000}, scale),
        }
        chosen_on = seeds(pick({"smoke": 1, "quick": 3, "paper": 5}, scale))
        choice = CHOICES[parameter]
        if parameter == "dimension":
            longest = 20 if scale == "smoke" else 300
            return specs("chosen-dimension", settings | {"lambda_": 0.9, "longest": longest}, chosen_on)
        values = choice.values[1:3] if scale == "smoke" else choice.values
        settings |= {"estimator": choice.estimator, "parameter": parameter, "values": values}
        return specs("chosen", settings, chosen_on)

    def runs(self, results: Results) -> list[RunSpec]:
        """Return the runs of all lines."""
        wanted = [spec for cell in self.cells() for spec in self.cell_runs(results.scale, *cell)]
        return sorted(wanted, key=lambda spec: spec.seed)

    def pairs(self, results: Results, parameter: str, name: str, column: str) -> tuple[FloatArray, FloatArray]:
        """Return the errors of the candidate chosen in each run, and of the run's best one."""
        found = []
        for spec in self.cell_runs(results.scale, parameter, name):
            run = results[spec].columns
            errors = np.asarray(run[column], dtype=np.float64)
            found.append((errors[np.argmax(run["chosen"])], errors.min()))
        taken, best = np.array(found).T
        return taken, best

    def ratio(self, results: Results, parameter: str, name: str, column: str) -> OverRuns:
        """Return mean error of what was chosen over that of the best of each run."""
        return interval(lambda a, b: float(a.mean() / b.mean()), *self.pairs(results, parameter, name, column))

    def chart(self, results: Results) -> Chart:
        """Return a line of points per parameter and problem."""
        series: list[Series] = []
        cells = self.cells()
        for parameter, choice in CHOICES.items():
            places = [float(i) for i, (own, _) in enumerate(cells) if own == parameter]
            for column, hollow in (("rmse", False), ("visited", True)):
                found = [self.ratio(results, parameter, name, column) for own, name in cells if own == parameter]
                columns = zip(*((r.value, r.low, r.high) for r in found), strict=True)
                value, low, high = (list(part) for part in columns)
                shift = 0.2 if hollow else -0.1
                at = [place + shift for place in places]
                series.append(
                    Series(
                        choice.words,
                        choice.colour,
                        points(value, at, x_low=low, x_high=high),
                        marker="o",
                        hollow=hollow,
                        joined=False,
                        kind="where a stream goes" if hollow else "",
                    )
                )
        y = cases(range(len(cells)), [PROBLEMS[name] for _, name in cells])
        x = Axis("error over that of the best candidate", log=True)
        return Chart(series, x, y, (Rule("x", 1.0), Rule("x", BOUND)), legend=Legend("below", 2, 6.0))

    def claims(self) -> Sequence[Claim]:
        """Return what the results decide."""
        made = []
        for parameter, choice in CHOICES.items():
            for column, where in (("rmse", "on all states"), ("visited", "where the stream goes")):
                statement = (
                    f"Held-out data choose the {choice.words} within {BOUND - 1:.0%} of the best in hindsight, "
                    f"{where}, on every problem."
                )
                name = f"chosen-{parameter.strip('_')}" + ("-visited" if column == "visited" else "")
                made.append(Claim(name, BEYOND, statement, self._judge(parameter, column)))
        statement = f"LSTD's default cut-off of {DEFAULT:g} is within 25% of the best in hindsight on every problem."
        return (*made, Claim("chosen-default-cutoff", BEYOND, statement, self._default))

    def _judge(self, parameter: str, column: str) -> Callable[[Results], Finding]:
        def judge(results: Results) -> Finding:
            names = [name for own, name in self.cells() if own == parameter]
            ratios = {name: self.ratio(results, parameter, name, column) for name in names}
            return self._worst(ratios, "error of what was chosen over the best in hindsight, worst problem")

        return judge

    def _default(self, results: Results) -> Finding:
        names = [name for own, name in self.cells() if own == "rcond"]
        ratios = {}
        for name in names:
            runs = self.cell_runs(results.scale, "rcond", name)
            values = results[runs[0]].columns["values"]
            at = int(np.argmin(np.abs(np.asarray(values) - DEFAULT)))
            errors = results.column(runs, "rmse")
            ratios[name] = interval(lambda e, at=at: float(e[:, at].mean() / e.min(axis=1).mean()), errors)
        return self._worst(ratios, "error at the default over that of the best cut-off, worst problem", 1.25)

    def _worst(self, ratios: dict[str, OverRuns], what: str, bound: float = BOUND) -> Finding:
        worst = max(ratios.values(), key=lambda ratio: ratio.value)
        note = "; ".join(f"{PROBLEMS[name]}: {ratio}" for name, ratio in ratios.items())
        return Finding(below(worst, bound), worst, what, note)
