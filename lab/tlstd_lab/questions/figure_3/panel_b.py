"""Figure 3b: error against samples on the energy domain, by method."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd_lab.chart import COLOURS, DASHED, Axis, Chart, Legend, curve
from tlstd_lab.claims import Claim, Finding
from tlstd_lab.panel import Results, Scale, best, pick, seeds
from tlstd_lab.questions.figure_3 import rules
from tlstd_lab.questions.figure_3.settings import (
    ACTIVE,
    COORDINATES,
    DECAYS,
    METHODS,
    MORE,
    SIZES,
    VARIANTS,
    Energy,
    M,
    by_seed,
    flat,
    ilstd_candidates,
    learn,
    limit,
    m_candidates,
    td_candidates,
    tlstd,
)
from tlstd_lab.spec import RunSpec
from tlstd_lab.statistics import interval, ratio_of_means


class Methods(Energy):
    """Figure 3b."""

    name = "3b"
    title = "RMSE against samples by method, energy"
    caption = (
        "TD, true-online TD and iLSTD (m=50) with λ=0.9, t-LSTD with r=40, λ=1 and the library's default buffer, "
        "γ=0.8. Steps 2^-11 to 2^-1 over 33 (active features) and over 64 (as printed), and iLSTD's N₀ of 10, 100, "
        "1000, by the lowest mean of the curve on other seeds. Paper scale: 30 runs of 10,000 samples; iLSTD 5,000, "
        "because its time per sample grows with the features seen; 5 runs of other m. A diverged run counts as "
        "twice the error of zero."
    )

    def tuning(self, scale: Scale) -> list[RunSpec]:
        """Return all sweeps, constant step sizes of iLSTD included."""
        wanted = flat(td_candidates(scale)) + flat(td_candidates(scale, "TrueOnlineTD"))
        wanted += flat(ilstd_candidates(scale, (*DECAYS, None)))
        for m in COORDINATES:
            wanted += flat(m_candidates(scale, m))
        return by_seed(wanted)

    def other_m(self, results: Results, m: int, *, own: bool) -> list[RunSpec]:
        """iLSTD with another m, and the step size of m=50 or one of its ``own``."""
        size = pick(SIZES, results.scale)
        estimator = self.chosen(results, "iLSTD")
        if own and m in COORDINATES[:-1]:
            estimator = best(results, m_candidates(results.scale, m))["estimator"]
        return learn(estimator | {"coordinates_per_step": m}, size.ilstd_samples, seeds(size.few))

    def with_step_of(self, results: Results, m: int) -> list[RunSpec]:
        """The smallest m of iLSTD with the step size that was best of ``m`` on the coarser grid."""
        size = pick(SIZES, results.scale)
        estimator = best(results, m_candidates(results.scale, m))["estimator"]
        return learn(estimator | {"coordinates_per_step": COORDINATES[0]}, size.ilstd_samples, seeds(size.few))

    def printed_td(self, results: Results) -> list[RunSpec]:
        """TD with the best step size of the grid over 64 alone."""
        size = pick(SIZES, results.scale)
        estimator = best(results, td_candidates(results.scale, active=ACTIVE[1:]))["estimator"]
        return learn(estimator, size.samples, seeds(size.runs))

    def window_runs(self, results: Results, method: str) -> list[RunSpec]:
        """Errors after successive samples."""
        size = pick(SIZES, results.scale)
        return learn(self.chosen(results, method), size.window, seeds(min(size.runs, 10)))

    def variant(self, scale: Scale, name: str) -> list[RunSpec]:
        """t-LSTD with something changed."""
        size = pick(SIZES, scale)
        return learn(tlstd() | VARIANTS[name], size.samples, seeds(size.few))

    def runs(self, results: Results) -> list[RunSpec]:
        """Return the curves, and what the claims need beside them."""
        wanted = [spec for method in (*METHODS, "true-online TD") for spec in self.curves(results, method)]
        wanted += self.printed_td(results)
        for m in (*COORDINATES, MORE):
            wanted += self.other_m(results, m, own=False) + self.other_m(results, m, own=True)
        wanted += self.with_step_of(results, M)
        wanted += [spec for method in METHODS for spec in self.window_runs(results, method)]
        wanted += [spec for name in VARIANTS for spec in self.variant(results.scale, name)]
        return by_seed(wanted)

    def chart(self, results: Results) -> Chart:
        """Return a line per method, and the floor."""
        size, series = pick(SIZES, results.scale), []
        labels = {"iLSTD": f"iLSTD, m={M}", "t-LSTD": "t-LSTD, r=40"}
        for method, marker in zip((*METHODS, "true-online TD"), ("s", "^", "o", ""), strict=True):
            samples = size.ilstd_samples if method == "iLSTD" else size.samples
            errors = self._errors(results, method)
            n_diverged = int((errors[:, -1] >= limit()).sum())
            look: dict[str, Any] = {} if marker else {"dash": DASHED, "width": 1.0}
            look |= {"marker": marker, "every": max(1, len(samples) // 10)}
            label = labels.get(method, method)
            label += f" ({n_diverged} of {len(errors)} runs diverge)" if n_diverged else ""
            series.append(curve(samples, errors, label, COLOURS[method], **look))
        return self.with_floor(series, Axis("samples"), Legend("lower left", lift=0.12))

    def claims(self) -> Sequence[Claim]:
        """Return what the caption and section 5 say of this panel."""
        text = "section 5, energy domain"
        return (
            Claim(
                "3b-level",
                "caption of figure 3b",
                "With rank 40 t-LSTD comes to almost TD's error after significantly fewer samples.",
                self._level,
            ),
            Claim("3b-outperforms", text, "With rank 40 t-LSTD is better than both TD and iLSTD.", self._outperforms),
            Claim("3b-early", text, "t-LSTD's error falls significantly faster at first.", self._early),
            Claim("3b-true-online", text, "True-online TD does very much as TD does.", self._true_online),
            Claim("3b-m", text, "iLSTD hardly depends on the number of coordinates m.", self._m),
            Claim("3b-step-by-m", text, "The best step size of iLSTD differs with m.", self._step_by_m),
            Claim("3b-fifty", text, "m=50 is large enough for iLSTD.", self._fifty),
            Claim("3b-step-size", text, "iLSTD depends much on the step size.", self._step_size),
            Claim(
                "3b-diverges", text, "Without a carefully chosen decay of the step size iLSTD diverges.", self._diverges
            ),
            Claim("3b-smooth", text, "t-LSTD's error is less smooth over time than TD's and iLSTD's.", self._smooth),
        )

    def _errors(self, results: Results, method: str) -> FloatArray:
        return self.errors(results, self.curves(results, method))

    def _variants(self, results: Results, points: slice, against: FloatArray) -> str:
        """How t-LSTD with something changed compares on these points."""
        few = pick(SIZES, results.scale).few
        other = against[:few, points].mean(axis=1)
        found = {
            name: ratio_of_means(
                results.column(self.variant(results.scale, name), "rmse")[:, points].mean(axis=1), other
            )
            for name in VARIANTS
        }
        return "t-LSTD with " + ", ".join(f"{name}: {ratio}" for name, ratio in found.items())

    def _level(self, results: Results) -> Finding:
        ours, theirs = self._errors(results, "t-LSTD"), self._errors(results, "TD")
        samples = pick(SIZES, results.scale).samples
        (verdict, number), said = rules.comes_level(ours, theirs, samples)
        note = f"{said}; the same ratio for {self._variants(results, slice(-1, None), theirs)}"
        return Finding(verdict, number, f"RMSE of t-LSTD over TD's after {samples[-1]:,} samples", note)

    def _outperforms(self, results: Results) -> Finding:
        size = pick(SIZES, results.scale)
        common = len(size.ilstd_samples)
        ours = self._errors(results, "t-LSTD")
        td_, il = self._errors(results, "TD"), self._errors(results, "iLSTD")
        ratios = {
            "TD": ratio_of_means(ours.mean(axis=1), td_.mean(axis=1)),
            "iLSTD": ratio_of_means(ours[:, :common].mean(axis=1), il.mean(axis=1)),
        }
        (verdict, number), worse = rules.outperforms(ratios)
        steps = {method: self.chosen(results, method)["step_size"] for method in ("TD", "iLSTD")}
        note = (
            f"over {samples_text(size.samples)} against TD {ratios['TD']}, over {samples_text(size.ilstd_samples)} "
            f"against iLSTD {ratios['iLSTD']}; final RMSE: t-LSTD {ours[:, -1].mean():.0f}, TD {td_[:, -1].mean():.0f}"
            f", iLSTD {il[:, -1].mean():.0f} (t-LSTD then {ours[:, common - 1].mean():.0f}); chosen: TD α="
            f"{steps['TD']:.2g} (grid up to {0.5 / ACTIVE[0]:.2g}), iLSTD α₀={steps['iLSTD'][0]:.2g}, "
            f"N₀={steps['iLSTD'][1]}"
        )
        return Finding(verdict, number, f"mean RMSE of t-LSTD over that of {worse}, the better competitor", note)

    def _early(self, results: Results) -> Finding:
        samples = pick(SIZES, results.scale).ilstd_samples
        early = slice(0, sum(count <= 1000 for count in samples))
        ours, theirs = self._errors(results, "t-LSTD"), self._errors(results, "TD")
        number = ratio_of_means(ours[:, early].mean(axis=1), theirs[:, early].mean(axis=1))
        printed = results.column(self.printed_td(results), "rmse")
        iterated = self._errors(results, "iLSTD")
        others = {
            "TD with α₀ over 64 as printed": ratio_of_means(
                ours[:, early].mean(axis=1), printed[:, early].mean(axis=1)
            ),
            "iLSTD": ratio_of_means(ours[:, early].mean(axis=1), iterated[:, early].mean(axis=1)),
        }
        verdict = rules.faster_early(number, others)
        note = (
            "the same ratio against "
            + ", ".join(f"{name}: {ratio}" for name, ratio in others.items())
            + "; against TD for "
            + self._variants(results, early, theirs)
        )
        return Finding(verdict, number, f"mean RMSE of t-LSTD over TD's up to {samples[early][-1]:,} samples", note)

    def _true_online(self, results: Results) -> Finding:
        number = ratio_of_means(
            self._errors(results, "true-online TD").mean(axis=1), self._errors(results, "TD").mean(axis=1)
        )
        verdict = rules.alike(number)
        steps = {method: self.chosen(results, method)["step_size"] for method in ("TD", "true-online TD")}
        note = ", ".join(f"{method}: α={step:.2g}" for method, step in steps.items())
        return Finding(verdict, number, "mean RMSE of true-online TD over TD's, each with its best step size", note)

    def _by_m(self, results: Results, *, own: bool, ms: Sequence[int] = COORDINATES) -> FloatArray:
        """Mean error of every run (runs, m)."""
        columns = [self.errors(results, self.other_m(results, m, own=own)).mean(axis=1) for m in ms]
        return np.stack(columns, axis=1)

    def _m(self, results: Results) -> Finding:
        rulings: dict[bool, rules.Ruling] = {}
        means: dict[bool, FloatArray] = {}
        for own in (False, True):
            errors = self._by_m(results, own=own)
            rulings[own], means[own] = rules.indifferent(errors), errors.mean(axis=0)
        note = "; ".join(
            f"{words}: {rulings[own].number} ("
            + ", ".join(f"m={m}: {e:.0f}" for m, e in zip(COORDINATES, means[own], strict=True))
            + ")"
            for own, words in ((False, "step size of m=50"), (True, "step size of each m's own, from a coarser grid"))
        )
        return Finding(*rulings[False], "largest over smallest mean RMSE, m from 10 to 50", note)

    def _step_by_m(self, results: Results) -> Finding:
        """What the smallest m loses with the best step size of m=50, both chosen on the same grid by a tuning seed."""
        by_step = {m: self.with_step_of(results, m) for m in (COORDINATES[0], M)}
        number = ratio_of_means(*(self.errors(results, by_step[m]).mean(axis=1) for m in (M, COORDINATES[0])))
        steps = {m: runs[0].settings["estimator"]["step_size"] for m, runs in by_step.items()}
        note = "; ".join(f"best of m={m}: α₀={alpha:.2g}, N₀={n0:g}" for m, (alpha, n0) in steps.items())
        what = (
            f"mean RMSE of m={COORDINATES[0]} with the best step size of m={M} over that with its own "
            "(reproduced above 1.02)"
        )
        return Finding(rules.differs(number), number, what, f"{note}; chosen on one tuning seed")

    def _fifty(self, results: Results) -> Finding:
        errors = self._by_m(results, own=False, ms=(*COORDINATES, MORE))
        number = ratio_of_means(errors[:, -2], errors[:, -1])
        before = ratio_of_means(errors[:, -3], errors[:, -2])
        note = f"m=40 over m=50: {before}; step size of m=50"
        return Finding(rules.large_enough(number), number, f"mean RMSE with m={M} over that with m={MORE}", note)

    def _grid(self, results: Results, candidates: list[list[RunSpec]]) -> FloatArray:
        """Mean error of every run of a sweep (runs, candidates)."""
        results.load(flat(candidates))
        return np.stack([results.column(runs, "rmse").mean(axis=1) for runs in candidates], axis=1)

    def _step_size(self, results: Results) -> Finding:
        n0 = self.chosen(results, "iLSTD")["step_size"][1]
        found = {n: rules.share_near_best(self._grid(results, ilstd_candidates(results.scale, [n]))) for n in DECAYS}
        exponents = pick(SIZES, results.scale).exponents
        td_grid = [
            runs
            for runs in td_candidates(results.scale)
            if any(runs[0].settings["estimator"]["step_size"] == 2.0**e / a for e in exponents for a in ACTIVE)
        ]
        td_share = rules.share_near_best(self._grid(results, td_grid))
        number = found[n0]
        verdict = rules.sensitive(number, td_share)
        note = (
            ", ".join(f"N₀={n}: {value}" for n, value in found.items())
            + f"; TD on the same grid: {td_share}; measured on the tuning seeds"
        )
        return Finding(
            verdict, number, f"share of the step sizes within 20% of the best, N₀={n0} (reproduced below 0.5)", note
        )

    def _diverges(self, results: Results) -> Finding:
        def blown(candidates: list[list[RunSpec]]) -> FloatArray:
            results.load(flat(candidates))
            finals = [results.column(runs, "rmse")[:, -1] >= limit() for runs in candidates]
            return np.stack(finals, axis=1).astype(np.float64)

        shares = {
            n0: interval(lambda b: float(b.mean()), blown(ilstd_candidates(results.scale, [n0])))
            for n0 in (*DECAYS, None)
        }
        chosen = float((self._errors(results, "iLSTD")[:, -1] >= limit()).mean())
        constants = self._grid(results, ilstd_candidates(results.scale, [None])).mean(axis=0).min()
        decayed = self._grid(results, ilstd_candidates(results.scale)).mean(axis=0).min()
        verdict, number = rules.needs_decay(shares, chosen, float(constants), float(decayed))
        note = (
            "with a decay: "
            + ", ".join(f"N₀={n0}: {shares[n0].value:.2g}" for n0 in DECAYS)
            + f"; reported runs: {chosen:.2g}; mean RMSE on the tuning seeds with the best constant step "
            f"{constants:.0f}, with the best decayed one {decayed:.0f}"
        )
        return Finding(verdict, number, "share of constant step sizes with an error above twice that of zero", note)

    def _smooth(self, results: Results) -> Finding:
        rough = {method: rules.roughness(self.errors(results, self.window_runs(results, method))) for method in METHODS}
        ratios = {other: ratio_of_means(rough["t-LSTD"], rough[other]) for other in ("TD", "iLSTD")}
        (verdict, number), least = rules.rougher(ratios)
        window = pick(SIZES, results.scale).window
        common = len(pick(SIZES, results.scale).ilstd_samples)
        printed = results.column(self.printed_td(results), "rmse")[:, :common]
        coarse = {
            method: float(np.abs(np.diff(self._errors(results, method)[:, :common], n=2, axis=1)).mean())
            for method in METHODS
        }
        note = (
            f"over {window[0]:,} to {window[-1]:,} samples, the mean change taken off: "
            + ", ".join(f"{method} {rough[method].mean():.2g}" for method in METHODS)
            + "; mean second difference at the points of the figure: "
            + ", ".join(f"{method} {value:.2g}" for method, value in coarse.items())
            + f", TD with α₀ over 64 {np.abs(np.diff(printed, n=2, axis=1)).mean():.2g}"
        )
        return Finding(verdict, number, f"mean change of RMSE from sample to sample, t-LSTD's over {least}'s", note)


def samples_text(samples: Sequence[int]) -> str:
    """The range in words.

    Example
    -------
    >>> samples_text([200, 5000])
    '200 to 5,000 samples'
    """
    return f"{samples[0]:,} to {samples[-1]:,} samples"
