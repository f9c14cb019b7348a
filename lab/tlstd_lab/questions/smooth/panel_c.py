"""Figure 3c with smooth features: error against time, when samples come at a rate."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd_lab.chart import COLOURS, DASHED, SOLID, Axis, Chart, Legend, curve
from tlstd_lab.claims import BEYOND, Claim, Finding, below
from tlstd_lab.panel import Results, Scale, pick, seeds, specs
from tlstd_lab.questions.figure_3 import rules
from tlstd_lab.questions.figure_3.settings import BINDING, RATES, by_seed
from tlstd_lab.questions.smooth.panel_b import CUTOFFS
from tlstd_lab.questions.smooth.settings import OURS, PAPERS, SIZES, Smooth, name_of
from tlstd_lab.spec import RunSpec
from tlstd_lab.statistics import OverRuns, ratio_of_means

METHODS = {
    "TD": ("TD", COLOURS["TD"], "s"),
    "iLSTD": ("iLSTD", COLOURS["iLSTD"], "^"),
    name_of(40, PAPERS): ("t-LSTD, r=40, cut-off 0.01", COLOURS["ATD"], "o"),
    name_of(40, OURS): ("t-LSTD, r=40, cut-off 1e-4", COLOURS["t-LSTD"], "o"),
}
"""Words, colour and marker."""


class Rates(Smooth):
    """Figure 3c."""

    name = "smooth-3c"
    title = "Figure 3c with random Fourier features"
    caption = (
        "Samples at a fixed rate, as in figure 3c, with 500 random Fourier features instead of 40,001 tiles: what "
        "comes while a learner is busy is lost, and its trace then starts anew. TD and iLSTD have what was best over "
        "the whole curve on other seeds. 25 samples per second (solid) and 10,000 (dashed). Paper scale: 10 runs, of "
        "5,000 samples at 25 per second."
    )

    def methods(self, scale: Scale) -> list[str]:
        """Return who takes part."""
        return list(METHODS)

    def rate_runs(self, results: Results, method: str, rate: int) -> list[RunSpec]:
        """One method at one rate; blocks are what comes in 10 ms."""
        size = pick(SIZES, results.scale)
        settings = {
            "problem": self.problem,
            "estimator": self.tuned(results, method),
            "rate": rate,
            "block": max(1, rate // 100),
            "seconds": [float(f"{second:.3g}") for second in np.geomspace(0.02, 1.0, 12) * size.seconds[rate]],
        }
        return specs("smooth-rates", settings, seeds(size.rates), timed=True)

    def runs(self, results: Results) -> list[RunSpec]:
        """Return every method at every rate, and the run that has the error of zero."""
        wanted = by_seed([s for rate in RATES for method in METHODS for s in self.rate_runs(results, method, rate)])
        (group,) = self.groups(results, name_of(40))
        return self.runs_of(results, name_of(40), group, timed=False)[:1] + wanted

    def chart(self, results: Results) -> Chart:
        """Return the methods at the paper's rate and at one that binds."""
        series = []
        for rate, dash in ((RATES[0], SOLID), (BINDING, DASHED)):
            for method, (label, colour, marker) in METHODS.items():
                seconds = self._column(results, method, rate, "seconds").mean(axis=0)
                look = {"kind": f"{rate:,} samples/s", "dash": dash, "marker": marker, "size": 2.5}
                series.append(curve(seconds, self._column(results, method, rate, "rmse"), label, colour, **look))
        return self.with_floor(series, Axis("seconds", log=True), Legend("below", 2, 5.6))

    def claims(self) -> Sequence[Claim]:
        """Return the claims of figure 3c and on cost; those on errors with either cut-off."""
        made = [
            Claim(
                f"{self.name}-slow",
                BEYOND,
                "With smooth features, at 25 samples per second, TD waits at times, and iLSTD and t-LSTD may be too "
                "slow for all samples (3c-slow).",
                self._slow,
            ),
            Claim(
                f"{self.name}-scales",
                BEYOND,
                "With smooth features t-LSTD scales better than iLSTD (3c-scales).",
                self._scales,
            ),
            Claim(
                f"{self.name}-cost",
                BEYOND,
                "With smooth features what t-LSTD gains costs little more computation than TD takes (3c-cost).",
                self._cost,
            ),
        ]
        for cutoff, (suffix, words) in CUTOFFS.items():
            here = f"With smooth features and {words} t-LSTD "
            made += [
                Claim(
                    f"{self.name}-samples{suffix}",
                    BEYOND,
                    f"{here}makes better use of samples than TD (3c-samples).",
                    self._samples(cutoff),
                ),
                Claim(
                    f"{self.name}-solution{suffix}",
                    BEYOND,
                    f"{here}converges to a better solution than iLSTD (3c-solution).",
                    self._solution(cutoff),
                ),
            ]
        return made

    def _column(self, results: Results, method: str, rate: int, name: str) -> FloatArray:
        runs = self.rate_runs(results, method, rate)
        return self.limited(results, runs) if name == "rmse" else results.column(runs, name)

    def _ratios(self, results: Results, pair: tuple[str, str], name: str, *, last: bool) -> dict[int, OverRuns]:
        """One method's column over another's, by rate: the last value, or the mean over time."""
        found = {}
        for rate in RATES:
            columns = [self._column(results, method, rate, name) for method in pair]
            found[rate] = ratio_of_means(*(c[:, -1] if last else c.mean(axis=1) for c in columns))
        return found

    def _share_lost(self, results: Results, method: str, rate: int) -> FloatArray:
        learned, lost = (self._column(results, method, rate, name)[:, -1] for name in ("learned", "lost"))
        return lost / (learned + lost)

    def _finals(self, results: Results, rate: int) -> str:
        finals = {words[0]: self._column(results, name, rate, "rmse")[:, -1].mean() for name, words in METHODS.items()}
        return f"{rate:,}/s " + ", ".join(f"{method} {error:.0f}" for method, error in finals.items())

    def _slow(self, results: Results) -> Finding:
        names = {"TD": "TD", "iLSTD": "iLSTD", "t-LSTD": name_of(40)}
        shares = {(w, rate): self._share_lost(results, n, rate) for w, n in names.items() for rate in RATES}
        slower = max(("iLSTD", "t-LSTD"), key=lambda word: float(shares[word, 25].mean()))
        work = {w: float(self._column(results, n, 25, "busy")[:, -1].mean()) for w, n in names.items()}
        total = pick(SIZES, results.scale).seconds[25]
        note = (
            "shares lost: "
            + "; ".join(
                f"{rate:,}/s " + ", ".join(f"{w} {shares[w, rate].mean():.2g}" for w in names) for rate in RATES
            )
            + f". Seconds of work in {total:g} s at 25/s: "
            + ", ".join(f"{word} {seconds:.2g}" for word, seconds in work.items())
        )
        what = f"share of the samples that {slower} loses at 25 per second (reproduced above {rules.SMALL_LOSS})"
        return Finding(*rules.too_slow(shares[slower, 25], work["TD"], total), what, note)

    def _scales(self, results: Results) -> Finding:
        learned = self._ratios(results, (name_of(40), "iLSTD"), "learned", last=True)
        number = learned[BINDING]
        note = (
            "; ".join(f"{rate:,}/s: {ratio}" for rate, ratio in learned.items())
            + f". Final RMSE: {self._finals(results, BINDING)}; {self._finals(results, RATES[-1])}"
        )
        what = f"samples learned by t-LSTD over iLSTD's at {BINDING:,} per second"
        return Finding(rules.scales(number, learned), number, what, note)

    def _cost(self, results: Results) -> Finding:
        per_sample = {}
        for word, name in {"TD": "TD", "iLSTD": "iLSTD", "t-LSTD": name_of(40)}.items():
            busy, learned = (self._column(results, name, BINDING, column)[:, -1] for column in ("busy", "learned"))
            per_sample[word] = busy / learned
        number = ratio_of_means(per_sample["t-LSTD"], per_sample["TD"])
        note = "µs per sample: " + ", ".join(f"{w} {1e6 * seconds.mean():.3g}" for w, seconds in per_sample.items())
        what = f"CPU time per sample of t-LSTD over TD's at {BINDING:,} per second"
        return Finding(rules.costs_little(number), number, what, note)

    def _samples(self, cutoff: str) -> Callable[[Results], Finding]:
        def judge(results: Results) -> Finding:
            ratios = self._ratios(results, (name_of(40, cutoff), "TD"), "rmse", last=False)
            note = "; ".join(f"{rate:,}/s: {ratio}" for rate, ratio in ratios.items())
            what = "mean RMSE over time of t-LSTD over TD's, 25 per second"
            return Finding(below(ratios[25], 1.0), ratios[25], what, note)

        return judge

    def _solution(self, cutoff: str) -> Callable[[Results], Finding]:
        def judge(results: Results) -> Finding:
            ratios = self._ratios(results, (name_of(40, cutoff), "iLSTD"), "rmse", last=True)
            note = (
                "; ".join(f"{rate:,}/s: {ratio}" for rate, ratio in ratios.items())
                + f". Final RMSE: {self._finals(results, 25)}"
            )
            verdict = rules.better_somewhere(ratios[25], ratios)
            return Finding(verdict, ratios[25], "final RMSE of t-LSTD over iLSTD's, 25 per second", note)

        return judge
