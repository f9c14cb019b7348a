"""Figure 3c again, with Krylov LSTD: error against time when samples come at a rate."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd_lab.chart import COLOURS, DASHED, SOLID, Axis, Chart, Legend, curve
from tlstd_lab.claims import BEYOND, Claim, Finding, below
from tlstd_lab.panel import Results, Scale, pick, seeds, specs
from tlstd_lab.questions.figure_3.settings import SIZES, Energy, by_seed, flat, td_candidates
from tlstd_lab.spec import RunSpec
from tlstd_lab.statistics import ratio_of_means

SLOW, FAST = 25, 10_000
"""Samples per second: the paper's rate, and one that is too fast for t-LSTD."""
OURS = "Krylov LSTD"
METHODS = {"TD": "s", "t-LSTD": "o", OURS: "P"}
"""With their markers."""
POINTS = 10
RUNS = {"smoke": 1, "quick": 3, "paper": 10}


class Rates(Energy):
    """Samples at a fixed rate, with a solution at every step."""

    name = "contest-rate"
    title = "Samples at a fixed rate, energy, Krylov LSTD"
    caption = (
        "Figure 3c again with Krylov LSTD's stream: what comes while a learner is busy is lost, and its trace then "
        "starts anew. 25 samples per second (solid) and 10,000 (dashed); TD as chosen for figure 3b, t-LSTD with r=40. "
        "All were timed in the same hour. Paper scale: 10 runs."
    )

    def tuning(self, scale: Scale) -> list[RunSpec]:
        """Return the sweep that TD's step size comes from."""
        return by_seed(flat(td_candidates(scale)))

    def rate_runs(self, results: Results, method: str, rate: int) -> list[RunSpec]:
        """One method at one rate; blocks are what comes in 10 ms."""
        size = pick(SIZES, results.scale)
        stream = {"class": "KrylovLSTD", "reads": "stream", "lambda_": 0.9}
        settings = {
            "problem": "energy",
            "estimator": stream if method == OURS else self.chosen(results, method),
            "rate": rate,
            "block": max(1, rate // 100),
            "seconds": [float(f"{second:.3g}") for second in np.geomspace(0.02, 1.0, POINTS) * size.seconds[rate]],
        }
        return specs("rates", settings, seeds(pick(RUNS, results.scale)), timed=True)

    def runs(self, results: Results) -> list[RunSpec]:
        """Return every method at both rates."""
        return by_seed(
            [s for rate in (SLOW, FAST) for method in METHODS for s in self.rate_runs(results, method, rate)]
        )

    def column(self, results: Results, method: str, rate: int, name: str) -> FloatArray:
        """Return a column of a method's runs, errors up to the limit."""
        runs = self.rate_runs(results, method, rate)
        return self.errors(results, runs) if name == "rmse" else results.column(runs, name)

    def chart(self, results: Results) -> Chart:
        """Return the methods at both rates."""
        series = []
        for rate, dash in ((SLOW, SOLID), (FAST, DASHED)):
            for method, marker in METHODS.items():
                seconds = self.column(results, method, rate, "seconds").mean(axis=0)
                look = {"kind": f"{rate:,} samples/s", "dash": dash, "marker": marker, "size": 2.5}
                errors = self.column(results, method, rate, "rmse")
                series.append(curve(seconds, errors, method, COLOURS[method], **look))
        return self.with_floor(series, Axis("seconds", log=True), Legend("below", 2, 6.0))

    def claims(self) -> Sequence[Claim]:
        """Return what the results decide."""
        statement = "When {:,} samples come per second, Krylov LSTD, solved at every step, has a lower error than TD."
        return tuple(
            Claim(f"{self.name}-{rate}", BEYOND, statement.format(rate), self._judge(rate)) for rate in (SLOW, FAST)
        )

    def _judge(self, rate: int) -> Callable[[Results], Finding]:
        def judge(results: Results) -> Finding:
            errors = {method: self.column(results, method, rate, "rmse") for method in METHODS}
            number = ratio_of_means(errors[OURS].mean(axis=1), errors["TD"].mean(axis=1))
            shares = {}
            for method in METHODS:
                learned, lost = (self.column(results, method, rate, name)[:, -1].mean() for name in ("learned", "lost"))
                shares[method] = lost / (learned + lost)
            end = ratio_of_means(errors[OURS][:, -1], errors["TD"][:, -1])
            words = ", ".join(f"{method} {share:.2g}" for method, share in shares.items())
            note = f"at the end {end}; shares of the samples lost: {words}"
            return Finding(below(number, 1.0), number, "mean RMSE over time of Krylov LSTD over TD's", note)

        return judge
