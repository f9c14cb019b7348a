"""Beyond the paper: energy domains of other parameters. Does the ranking hold, and does the paper's claim anywhere?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tlstd_lab.chart import COLOURS, Axis, Chart, Legend, Series, cases, points
from tlstd_lab.claims import BEYOND, Claim, Finding, below
from tlstd_lab.panel import Panel, Results, Scale, pick
from tlstd_lab.questions.contest.methods import Effort
from tlstd_lab.questions.contest.panel import Contest
from tlstd_lab.spec import RunSpec
from tlstd_lab.statistics import OverRuns, interval, ratio_of_means

INSTANCES = {
    "energy": "as in figure 3",
    "energy-flat": "even demand",
    "energy-day": "demand by the day",
    "energy-calm": "calm prices",
    "energy-jumps": "jumping prices",
    "energy-small": "small storage",
}
"""Words for each problem."""
METHODS = {"TD": "TD", "replay TD": "replay TD", "t-LSTD, r=40": "t-LSTD", "Krylov LSTD": "Krylov LSTD"}
"""Who takes part, and whose colour it has."""
EARLY = 1_000
"""Samples at which the paper says that t-LSTD is ahead."""


class Instance(Contest):
    """The contest on one of them."""

    name = title = caption = "instance"

    def __init__(self, problem: str) -> None:
        self.problem = problem

    def methods(self, scale: Scale) -> list[str]:
        """Return who takes part."""
        return list(METHODS)

    def every(self, scale: Scale) -> tuple[int, ...]:
        """Return the numbers of samples."""
        return pick({"smoke": (100, 200), "quick": (EARLY, 4_000), "paper": (EARLY, 4_000, 10_000)}, scale)

    def effort(self, scale: Scale, name: str) -> Effort:
        """Return few runs: there are many instances."""
        tries = 60 if name == "replay TD" else 120
        return pick(
            {"smoke": Effort(1, 0, 1, 2), "quick": Effort(4, 0, 1, 30), "paper": Effort(10, 0, 2, tries)}, scale
        )


class Instances(Panel):
    """All instances."""

    name = "instances"
    title = "Energy domains of other parameters"
    caption = (
        "RMSE after 10,000 samples of energy domains with other waves of demand, prices and storage (40,001 tiles, the "
        "near-optimal policy of each), over the error of zero. TD and its replay are tuned on other seeds, in each "
        "instance by itself (at most 120 and 60 tries on 2 streams); t-LSTD has r=40 and λ=1. Paper scale: 10 runs."
    )
    size = (3.8, 2.9)

    def parts(self, scale: Scale) -> dict[str, Instance]:
        """Return a contest per instance."""
        return {name: Instance(name) for name in (list(INSTANCES)[:2] if scale == "smoke" else INSTANCES)}

    def tuning(self, scale: Scale) -> list[RunSpec]:
        """Return all sweeps."""
        return [spec for part in self.parts(scale).values() for spec in part.tuning(scale)]

    def runs(self, results: Results) -> list[RunSpec]:
        """Return the runs of all instances."""
        return [spec for part in self.parts(results.scale).values() for spec in part.runs(results)]

    def chart(self, results: Results) -> Chart:
        """Return the errors of each method, instance by instance."""
        series, parts = [], self.parts(results.scale)
        for shift, (method, colour) in zip(np.linspace(-0.25, 0.25, len(METHODS)), METHODS.items(), strict=True):
            found = []
            for part in parts.values():
                errors = part.column(results, method, "rmse")[:, -1] / part.zero(results)
                found.append(interval(lambda e: float(e.mean()), errors))
            value, low, high = zip(*((r.value, r.low, r.high) for r in found), strict=True)
            at = [i + shift for i in range(len(parts))]
            look = {"marker": "o", "joined": False}
            series.append(Series(method, COLOURS[colour], points(value, at, x_low=low, x_high=high), **look))  # type: ignore[arg-type]
        y = cases(range(len(parts)), [INSTANCES[name] for name in parts])
        return Chart(series, Axis("RMSE over that of predicting 0"), y, legend=Legend("below", 2, 6.0))

    def claims(self) -> Sequence[Claim]:
        """Return what the results decide."""
        return (
            Claim(
                "instances-krylov",
                BEYOND,
                "In every instance Krylov LSTD has a lower error than tuned TD, from 1,000 samples on.",
                lambda results: self._every(results, "TD"),
            ),
            Claim(
                "instances-replay",
                BEYOND,
                "In every instance Krylov LSTD has a lower error than tuned TD with replay, from 1,000 samples on.",
                lambda results: self._every(results, "replay TD"),
            ),
            Claim(
                "instances-paper",
                BEYOND,
                "There is an instance in which t-LSTD of rank 40 beats tuned TD, as the paper says of its own.",
                self._paper,
            ),
        )

    def ratios(self, results: Results, ours: str, theirs: str) -> dict[str, dict[int, OverRuns]]:
        """Return one method's error over another's, by instance and number of samples."""
        found = {}
        for name, part in self.parts(results.scale).items():
            pair = [part.column(results, method, "rmse") for method in (ours, theirs)]
            samples = part.samples(results.scale, ours)
            found[name] = {n: ratio_of_means(pair[0][:, i], pair[1][:, i]) for i, n in enumerate(samples)}
        return found

    def _every(self, results: Results, rival: str) -> Finding:
        ratios = self.ratios(results, "Krylov LSTD", rival)
        worst = max((ratio for by_n in ratios.values() for ratio in by_n.values()), key=lambda ratio: ratio.value)
        what = f"RMSE of Krylov LSTD over that of {rival}, worst instance and number of samples"
        return Finding(below(worst, 1.0), worst, what, f"{worded(ratios)}; {self.swept(results, rival)}")

    def swept(self, results: Results, rival: str) -> str:
        """Say in how many instances the sweeps of a method ended inside their axes for every number of samples."""
        scale = results.scale
        inside = [results[part.sweep(scale, rival)].columns["inside"].all() for part in self.parts(scale).values()]
        return f"best settings of {rival} inside the sweeps in {sum(inside)} of {len(inside)} instances"

    def _paper(self, results: Results) -> Finding:
        ratios = self.ratios(results, "t-LSTD, r=40", "TD")
        best = min((ratio for by_n in ratios.values() for ratio in by_n.values()), key=lambda ratio: ratio.value)
        what = "RMSE of t-LSTD, r=40, over that of TD, best instance and number of samples"
        return Finding(below(best, 1.0), best, what, f"{worded(ratios)}; {self.swept(results, 'TD')}")


def worded(ratios: dict[str, dict[int, OverRuns]]) -> str:
    """All ratios in words.

    Example
    -------
    >>> worded({"energy": {1000: OverRuns(0.5, 0.4, 0.6)}})
    'as in figure 3: 1,000: 0.5 [0.4, 0.6]'
    """
    return "; ".join(
        f"{INSTANCES[name]}: " + ", ".join(f"{n:,}: {ratio}" for n, ratio in by_n.items())
        for name, by_n in ratios.items()
    )
