"""Figure 3c: error against time on the energy domain, when samples come at a rate."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd_lab.chart import COLOURS, DASHED, SOLID, Axis, Chart, Legend, curve
from tlstd_lab.claims import Claim, Finding, below
from tlstd_lab.panel import Results, Scale, pick, seeds, specs
from tlstd_lab.questions.figure_3 import rules
from tlstd_lab.questions.figure_3.settings import (
    BINDING,
    METHODS,
    RATES,
    SIZES,
    Energy,
    by_seed,
    flat,
    ilstd_candidates,
    td_candidates,
)
from tlstd_lab.spec import RunSpec
from tlstd_lab.statistics import ratio_of_means


class Times(Energy):
    """Figure 3c."""

    name = "3c"
    title = "RMSE against time at a fixed rate, energy"
    caption = (
        "The learners of figure 3b, given samples at a fixed rate: what comes while a learner is busy is lost, and "
        "its trace then starts anew; a fast learner waits. CPU time with nothing else of this command running, data "
        "generation not counted. At 25 per second (solid) hardly anything is lost, so a rate at which the slower "
        "ones lose much is drawn too (dashed). Paper scale: 10 runs, of 5,000 samples at 25 per second."
    )

    def tuning(self, scale: Scale) -> list[RunSpec]:
        """Return the sweeps that TD's and iLSTD's parameters come from."""
        return by_seed(flat(td_candidates(scale)) + flat(ilstd_candidates(scale)))

    def rate_runs(self, results: Results, method: str, rate: int) -> list[RunSpec]:
        """One method at one rate; blocks are what comes in 10 ms."""
        size = pick(SIZES, results.scale)
        due = [float(f"{second:.3g}") for second in np.geomspace(0.02, 1.0, 12) * size.seconds[rate]]
        settings = {
            "problem": "energy",
            "estimator": self.chosen(results, method),
            "rate": rate,
            "block": max(1, rate // 100),
            "seconds": due,
        }
        return specs("rates", settings, seeds(size.timed), timed=True)

    def runs(self, results: Results) -> list[RunSpec]:
        """Return every method at every rate."""
        return by_seed([spec for rate in RATES for method in METHODS for spec in self.rate_runs(results, method, rate)])

    def chart(self, results: Results) -> Chart:
        """Return the methods at the paper's rate and at one that binds."""
        series = []
        for rate, dash in ((RATES[0], SOLID), (BINDING, DASHED)):
            for method, marker in zip(METHODS, ("s", "^", "o"), strict=True):
                seconds = self._column(results, method, rate, "seconds").mean(axis=0)
                look = {"kind": f"{rate:,} samples/s", "dash": dash, "marker": marker, "size": 2.5}
                errors = self._column(results, method, rate, "rmse")
                series.append(curve(seconds, errors, method, COLOURS[method], **look))
        return self.with_floor(series, Axis("seconds", log=True), Legend("lower left", 2, lift=0.1))

    def claims(self) -> Sequence[Claim]:
        """Return what the caption and section 5 say of this panel."""
        where = "caption of figure 3c"
        return (
            Claim(
                "3c-slow",
                where,
                "At 25 samples per second TD waits at times, and iLSTD and t-LSTD may be too slow for all samples.",
                self._slow,
            ),
            Claim("3c-samples", where, "t-LSTD makes better use of samples than TD.", self._samples),
            Claim("3c-scales", where, "t-LSTD scales better than iLSTD.", self._scales),
            Claim("3c-solution", where, "t-LSTD converges to a better solution than iLSTD.", self._solution),
            Claim(
                "3c-cost",
                "section 5, energy domain",
                "What t-LSTD gains costs little more computation than TD takes.",
                self._cost,
            ),
        )

    def _column(self, results: Results, method: str, rate: int, name: str) -> FloatArray:
        runs = self.rate_runs(results, method, rate)
        return self.errors(results, runs) if name == "rmse" else results.column(runs, name)

    def _share_lost(self, results: Results, method: str, rate: int) -> FloatArray:
        learned, lost = (self._column(results, method, rate, name)[:, -1] for name in ("learned", "lost"))
        return lost / (learned + lost)

    def _finals(self, results: Results, rate: int) -> str:
        finals = {method: self._column(results, method, rate, "rmse")[:, -1].mean() for method in METHODS}
        return f"{rate:,}/s " + ", ".join(f"{method} {error:.0f}" for method, error in finals.items())

    def _slow(self, results: Results) -> Finding:
        shares = {(m, rate): self._share_lost(results, m, rate) for m in METHODS for rate in RATES}
        slower = max(("iLSTD", "t-LSTD"), key=lambda method: float(shares[method, 25].mean()))
        work = {method: float((self._column(results, method, 25, "busy")[:, -1]).mean()) for method in METHODS}
        total = pick(SIZES, results.scale).seconds[25]
        verdict, number = rules.too_slow(shares[slower, 25], work["TD"], total)
        note = (
            "shares lost: "
            + "; ".join(
                f"{rate:,}/s " + ", ".join(f"{m} {shares[m, rate].mean():.2g}" for m in METHODS) for rate in RATES
            )
            + f". Seconds of work in {total:g} s at 25/s: "
            + ", ".join(f"{method} {seconds:.2g}" for method, seconds in work.items())
            + "; what t-LSTD loses there comes while its buffer is folded in, once in some hundred samples"
        )
        return Finding(
            verdict,
            number,
            f"share of the samples that {slower} loses at 25 per second (reproduced above {rules.SMALL_LOSS})",
            note,
        )

    def _samples(self, results: Results) -> Finding:
        ratios = {
            rate: ratio_of_means(*(self._column(results, m, rate, "rmse").mean(axis=1) for m in ("t-LSTD", "TD")))
            for rate in RATES
        }
        note = "; ".join(f"{rate:,}/s: {ratio}" for rate, ratio in ratios.items())
        return Finding(
            below(ratios[25], 1.0), ratios[25], "mean RMSE over time of t-LSTD over TD's, 25 per second", note
        )

    def _scales(self, results: Results) -> Finding:
        learned = {
            rate: ratio_of_means(*(self._column(results, m, rate, "learned")[:, -1] for m in ("t-LSTD", "iLSTD")))
            for rate in RATES
        }
        number = learned[BINDING]
        note = (
            "; ".join(f"{rate:,}/s: {ratio}" for rate, ratio in learned.items())
            + f". Final RMSE: {self._finals(results, BINDING)}; "
            + self._finals(results, RATES[-1])
        )
        verdict = rules.scales(number, learned)
        return Finding(verdict, number, f"samples learned by t-LSTD over iLSTD's at {BINDING:,} per second", note)

    def _solution(self, results: Results) -> Finding:
        ratios = {
            rate: ratio_of_means(*(self._column(results, m, rate, "rmse")[:, -1] for m in ("t-LSTD", "iLSTD")))
            for rate in RATES
        }
        verdict = rules.better_somewhere(ratios[25], ratios)
        note = (
            "; ".join(f"{rate:,}/s: {ratio}" for rate, ratio in ratios.items())
            + f". Final RMSE: {self._finals(results, 25)}; {self._finals(results, BINDING)}"
        )
        return Finding(verdict, ratios[25], "final RMSE of t-LSTD over iLSTD's, 25 per second", note)

    def _cost(self, results: Results) -> Finding:
        per_sample = {
            method: self._column(results, method, BINDING, "busy")[:, -1]
            / self._column(results, method, BINDING, "learned")[:, -1]
            for method in METHODS
        }
        number = ratio_of_means(per_sample["t-LSTD"], per_sample["TD"])
        verdict = rules.costs_little(number)
        note = (
            "µs per sample: "
            + ", ".join(f"{method} {1e6 * seconds.mean():.3g}" for method, seconds in per_sample.items())
            + f"; share lost at 25 per second: {self._share_lost(results, 't-LSTD', 25).mean():.2g}"
        )
        return Finding(verdict, number, f"CPU time per sample of t-LSTD over TD's at {BINDING:,} per second", note)
