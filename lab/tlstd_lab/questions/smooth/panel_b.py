"""Figure 3b with smooth features: error against samples, by method."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd_lab.chart import Axis, Chart, Legend, curve
from tlstd_lab.claims import BEYOND, Claim, Finding
from tlstd_lab.panel import Results, Scale, best, pick
from tlstd_lab.questions.contest.tuning import mean_of_curve
from tlstd_lab.questions.figure_3 import rules
from tlstd_lab.questions.figure_3.settings import COORDINATES, MORE, RANKS, M, by_seed, flat
from tlstd_lab.questions.figure_3.settings import DECAYS as GRID_DECAYS
from tlstd_lab.questions.smooth.settings import MAIN, OURS, PAPERS, SIZES, Smooth, name_of
from tlstd_lab.spec import RunSpec
from tlstd_lab.statistics import OverRuns, interval, ratio_of_means

AT = 1_000
"""Samples up to which "early" is, and at which smoothness is measured."""
CUTOFFS = {PAPERS: ("", "the paper's cut-off"), OURS: ("-cutoff", "the cut-off 10⁻⁴")}
"""What claims are called with each."""
SHOWN = [name for name in MAIN if name not in [name_of(rank) for rank in RANKS if rank != 40]]
"""Other ranks with the paper's cut-off are in 3a's place."""


class Methods(Smooth):
    """Figure 3b."""

    name = "smooth-3b"
    title = "Figure 3b with random Fourier features"
    caption = (
        "Energy storage with 500 random Fourier features of the four observations instead of 40,001 tiles: one map for "
        "all runs, fitted to 1,000 observations of a stream that no run has. TD, true-online TD and iLSTD are tuned on "
        "other seeds for each number of samples by itself (α, λ, constant or decaying steps; until no neighbour is "
        "better or the tries are used up); t-LSTD has λ=1, LSTD and Krylov LSTD λ=0.9. A diverged run counts as twice "
        "the error of zero. Paper scale: 30 runs; LSTD with a ridge chosen by held-out data 10; side questions on "
        "iLSTD 5, of 2,000 samples."
    )
    size = (3.6, 4.2)

    def tuning(self, scale: Scale) -> list[RunSpec]:
        """Return the sweeps and the grids of the claims on step sizes."""
        wanted = flat(self.grid(scale, (*GRID_DECAYS, None))) + flat(self.td_grid(scale))
        for m in COORDINATES:
            wanted += flat(self.candidates(scale, m))
        return super().tuning(scale) + by_seed(wanted)

    def other_m(self, results: Results, m: int, *, own: bool) -> list[RunSpec]:
        """iLSTD with another m, and what is best for m=50 or for itself."""
        scale = results.scale
        estimator = self.tuned(results, "iLSTD")
        if own and m in COORDINATES[:-1]:
            estimator = best(results, self.candidates(scale, m))["estimator"]
        return self.learn(scale, estimator | {"coordinates_per_step": m}, self.short(scale), pick(SIZES, scale).few)

    def with_step_of(self, results: Results, m: int) -> list[RunSpec]:
        """The smallest m with the step size that was best of ``m`` on the grid."""
        estimator = best(results, self.candidates(results.scale, m))["estimator"]
        few = pick(SIZES, results.scale).few
        return self.learn(
            results.scale, estimator | {"coordinates_per_step": COORDINATES[0]}, self.short(results.scale), few
        )

    def window_runs(self, results: Results, method: str) -> list[RunSpec]:
        """Errors after successive samples, with the setting for as many as :data:`AT`."""
        size, samples = pick(SIZES, results.scale), self.samples(results.scale, method)
        at = AT if AT in samples else samples[-1]
        (estimator,) = (group.estimator for group in self.groups(results, method) if at in group.samples)
        return self.learn(results.scale, estimator, size.window, size.windows)

    def runs(self, results: Results) -> list[RunSpec]:
        """Return the curves, and what the claims need beside them."""
        wanted = super().runs(results)
        for m in (*COORDINATES, MORE):
            wanted += self.other_m(results, m, own=False) + self.other_m(results, m, own=True)
        for m in (COORDINATES[0], M):
            wanted += self.with_step_of(results, m)
        for method in ("TD", "iLSTD", name_of(40, PAPERS), name_of(40, OURS)):
            wanted += self.window_runs(results, method)
        return by_seed(wanted)

    def chart(self, results: Results) -> Chart:
        """Return a line per method, and the floor."""
        series = []
        for name in SHOWN:
            method = self.roster[name]
            look = {"dash": method.dash, "marker": method.marker, "size": 2.5, "width": 1.0}
            errors = self.column(results, name, "rmse")
            series.append(curve(self.samples(results.scale, name), errors, method.label, method.colour, **look))
        return self.with_floor(series, Axis("samples"), Legend("below", 2, 5.6))

    def claims(self) -> Sequence[Claim]:
        """Return the claims of figure 3b and section 5; those on t-LSTD with either cut-off."""
        made = []
        for cutoff, (suffix, words) in CUTOFFS.items():
            here = f"With smooth features and {words} "
            for key, statement, judge in (
                ("level", "rank 40 comes to almost TD's error after significantly fewer samples", self._level),
                ("outperforms", "rank 40 is better than both TD and iLSTD", self._outperforms),
                ("early", "t-LSTD's error falls significantly faster at first", self._early),
                ("smooth", "t-LSTD's error is less smooth over time than TD's and iLSTD's", self._smooth),
            ):
                made.append(
                    Claim(f"{self.name}-{key}{suffix}", BEYOND, f"{here}{statement} (3b-{key}).", judge(cutoff))
                )
        for key, statement, rule in (
            ("true-online", "true-online TD does very much as TD does", self._true_online),
            ("m", "iLSTD hardly depends on the number of coordinates m", self._m),
            ("step-by-m", "the best step size of iLSTD differs with m", self._step_by_m),
            ("fifty", "m=50 is large enough for iLSTD", self._fifty),
            ("step-size", "iLSTD depends much on the step size", self._step_size),
            ("diverges", "without a carefully chosen decay of the step size iLSTD diverges", self._diverges),
        ):
            made.append(Claim(f"{self.name}-{key}", BEYOND, f"With smooth features {statement} (3b-{key}).", rule))
        return made

    def _curve(self, results: Results, method: str, last: float = np.inf) -> FloatArray:
        """Mean error of each run over its curve, up to ``last`` samples."""
        samples = self.samples(results.scale, method)
        kept = sum(n <= last for n in samples)
        kept = kept if kept > 1 else len(samples)
        return mean_of_curve(self.column(results, method, "rmse")[:, :kept], samples[:kept])

    def _level(self, cutoff: str) -> Callable[[Results], Finding]:
        def judge(results: Results) -> Finding:
            samples = self.every(results.scale)
            td = self.column(results, "TD", "rmse")
            ruling, said = rules.comes_level(self.column(results, name_of(40, cutoff), "rmse"), td, samples)
            others = [
                ratio_of_means(self.column(results, name_of(rank, cutoff), "rmse")[:, -1], td[:, -1]) for rank in RANKS
            ]
            note = f"{said}; by rank: " + ", ".join(f"r={r} {ratio}" for r, ratio in zip(RANKS, others, strict=True))
            return Finding(*ruling, f"RMSE of t-LSTD over TD's after {samples[-1]:,} samples", note)

        return judge

    def _outperforms(self, cutoff: str) -> Callable[[Results], Finding]:
        def judge(results: Results) -> Finding:
            ours = self._curve(results, name_of(40, cutoff))
            names = ("TD", "iLSTD", "LSTD", "Krylov LSTD")
            ratios = {name: ratio_of_means(ours, self._curve(results, name)) for name in names}
            ruling, worse = rules.outperforms({name: ratios[name] for name in names[:2]})
            finals = {name: self.column(results, name, "rmse")[:, -1] for name in (name_of(40, cutoff), *names)}
            note = (
                "over the whole curve "
                + ", ".join(f"against {name} {ratio}" for name, ratio in ratios.items())
                + "; final RMSE: "
                + ", ".join(f"{name} {errors.mean():.0f}" for name, errors in finals.items())
                + f". Sweeps: {self.all_swept(results)}"
            )
            return Finding(*ruling, f"mean RMSE of t-LSTD over that of {worse}, the better competitor", note)

        return judge

    def all_swept(self, results: Results) -> str:
        """Say where sweeps ended, and what was best after all samples."""
        words = []
        for name in ("TD", "true-online TD", "iLSTD"):
            columns = results[self.sweep(results.scale, name)].columns
            inside, at = columns["inside"], len(self.samples(results.scale, name)) - 1
            n0 = f"N₀={columns['n0'][at]:g}" if columns["n0"][at] else "constant"
            words.append(
                f"{name} settled for {int(inside[:-1].sum())} of {len(inside) - 1} numbers of samples, "
                f"{int(columns['tried'][0])} settings tried (at the end α=2^{np.log2(columns['alpha'][at]):g}/‖x‖², "
                f"λ={columns['lambda_'][at]:g}, {n0})"
            )
        return "; ".join(words)

    def _early(self, cutoff: str) -> Callable[[Results], Finding]:
        def judge(results: Results) -> Finding:
            ours = self._curve(results, name_of(40, cutoff), AT)
            number = ratio_of_means(ours, self._curve(results, "TD", AT))
            others = {"iLSTD": ratio_of_means(ours, self._curve(results, "iLSTD", AT))}
            note = "the same ratio against " + ", ".join(f"{name}: {ratio}" for name, ratio in others.items())
            words = f"mean RMSE of t-LSTD over TD's up to {AT:,} samples"
            return Finding(rules.faster_early(number, others), number, words, note)

        return judge

    def _smooth(self, cutoff: str) -> Callable[[Results], Finding]:
        def judge(results: Results) -> Finding:
            names = {"t-LSTD": name_of(40, cutoff), "TD": "TD", "iLSTD": "iLSTD"}
            rough = {
                word: rules.roughness(self.limited(results, self.window_runs(results, name)))
                for word, name in names.items()
            }
            ratios = {other: ratio_of_means(rough["t-LSTD"], rough[other]) for other in ("TD", "iLSTD")}
            ruling, least = rules.rougher(ratios)
            window = pick(SIZES, results.scale).window
            note = f"over {window[0]:,} to {window[-1]:,} samples, the mean change taken off: " + ", ".join(
                f"{word} {value.mean():.2g}" for word, value in rough.items()
            )
            return Finding(*ruling, f"mean change of RMSE from sample to sample, t-LSTD's over {least}'s", note)

        return judge

    def _true_online(self, results: Results) -> Finding:
        number = ratio_of_means(self._curve(results, "true-online TD"), self._curve(results, "TD"))
        return Finding(rules.alike(number), number, "mean RMSE of true-online TD over TD's, each tuned")

    def _by_m(self, results: Results, *, own: bool, ms: Sequence[int] = COORDINATES) -> FloatArray:
        """Mean error of every run (runs, m)."""
        samples = self.short(results.scale)
        columns = [mean_of_curve(self.limited(results, self.other_m(results, m, own=own)), samples) for m in ms]
        return np.stack(columns, axis=1)

    def _m(self, results: Results) -> Finding:
        parts, rulings = [], []
        for own, words in ((False, "what is best for m=50"), (True, "each m's own step size, λ=0.9")):
            errors = self._by_m(results, own=own)
            rulings.append(rules.indifferent(errors))
            by_m = ", ".join(f"m={m}: {e:.0f}" for m, e in zip(COORDINATES, errors.mean(axis=0), strict=True))
            parts.append(f"{words}: {rulings[-1].number} ({by_m})")
        return Finding(*rulings[0], "largest over smallest mean RMSE, m from 10 to 50", "; ".join(parts))

    def _step_by_m(self, results: Results) -> Finding:
        samples = self.short(results.scale)
        by_step = {m: self.with_step_of(results, m) for m in (COORDINATES[0], M)}
        means = {m: mean_of_curve(self.limited(results, runs), samples) for m, runs in by_step.items()}
        number = ratio_of_means(means[M], means[COORDINATES[0]])
        steps = {m: runs[0].settings["estimator"]["step_size"] for m, runs in by_step.items()}
        note = "; ".join(f"best of m={m}: α₀=2^{np.log2(alpha):g}/‖x‖², N₀={n0:g}" for m, (alpha, n0) in steps.items())
        what = (
            f"mean RMSE of m={COORDINATES[0]} with the best step size of m={M} over that with its own "
            "(reproduced above 1.02)"
        )
        return Finding(rules.differs(number), number, what, note)

    def _fifty(self, results: Results) -> Finding:
        errors = self._by_m(results, own=False, ms=(*COORDINATES, MORE))
        number = ratio_of_means(errors[:, -2], errors[:, -1])
        before = ratio_of_means(errors[:, -3], errors[:, -2])
        note = f"m=40 over m=50: {before}"
        return Finding(rules.large_enough(number), number, f"mean RMSE with m={M} over that with m={MORE}", note)

    def _grid_means(self, results: Results, candidates: list[list[RunSpec]]) -> FloatArray:
        """Mean error of every run of a grid (runs, candidates)."""
        results.load(flat(candidates))
        samples = self.short(results.scale)
        return np.stack([mean_of_curve(self.limited(results, runs), samples) for runs in candidates], axis=1)

    def _step_size(self, results: Results) -> Finding:
        scale = results.scale
        found = {n: rules.share_near_best(self._grid_means(results, self.grid(scale, [n]))) for n in GRID_DECAYS}
        td = rules.share_near_best(self._grid_means(results, self.td_grid(scale)))
        n0 = best(results, self.grid(scale))["estimator"]["step_size"][1]
        note = (
            ", ".join(f"N₀={n}: {value}" for n, value in found.items())
            + f"; TD with a constant step on the same grid: {td}; measured on the tuning seeds"
        )
        what = f"share of the step sizes within 20% of the best, N₀={n0} (reproduced below 0.5)"
        return Finding(rules.sensitive(found[n0], td), found[n0], what, note)

    def _diverges(self, results: Results) -> Finding:
        scale, limit = results.scale, 2.0 * self.zero(results)

        def blown(n0: int | None) -> OverRuns:
            candidates = self.grid(scale, [n0])
            results.load(flat(candidates))
            finals = [results.column(runs, "rmse")[:, -1] >= limit for runs in candidates]
            return interval(lambda b: float(b.mean()), np.stack(finals, axis=1).astype(np.float64))

        shares: dict[int | None, OverRuns] = {n0: blown(n0) for n0 in (*GRID_DECAYS, None)}
        chosen = float((self.column(results, "iLSTD", "rmse")[:, -1] >= limit).mean())
        constant = float(self._grid_means(results, self.grid(scale, [None])).mean(axis=0).min())
        decayed = float(self._grid_means(results, self.grid(scale)).mean(axis=0).min())
        ruling = rules.needs_decay(shares, chosen, constant, decayed)
        note = (
            "with a decay: "
            + ", ".join(f"N₀={n0}: {shares[n0].value:.2g}" for n0 in GRID_DECAYS)
            + f"; reported runs: {chosen:.2g}; mean RMSE on the tuning seeds with the best constant step {constant:.0f}"
            f", with the best decayed one {decayed:.0f}"
        )
        return Finding(*ruling, "share of constant step sizes with an error above twice that of zero", note)
