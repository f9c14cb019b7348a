"""Figures 3a to 3c: the energy domain. Error against samples by rank and by method, and against time.

The parameters of the domain are ours (``docs/domains.md``): the tables of the benchmark that the paper uses are not
available. t-LSTD has λ=1 and the paper's cut-off 0.01, the others λ=0.9.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tlstd.domains.energy_programme import aliasing_floor
from tlstd.domains.energy_storage import EnergyStorage
from tlstd.experiments import drawing
from tlstd.experiments.claims import Claim, Finding, Verdict, above, below
from tlstd.experiments.panel import Panel, Results, best, pick, seeds, specs
from tlstd.experiments.problems import problem
from tlstd.experiments.spec import RunSpec
from tlstd.experiments.statistics import Interval, interval, ratio_of_means
from tlstd.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RANKS = (5, 20, 40, 60)
SMALL_RANKS = (1, 2, 3)
SHORT_RANKS = (2, 3, 5, 40)
"""Of the short runs that truncate after every sample."""
ACTIVE = (33, 64)
"""What α₀ is divided by: the features that are active, and the number that the paper prints."""
DECAYS = (10, 100, 1000)
"""N₀ of iLSTD's step size."""
COORDINATES = (10, 20, 30, 40, 50)
"""m of iLSTD."""
M = 50
MORE = 100
"""An m beyond the paper's, to see whether 50 is enough."""
RATES = (25, 1000, 10_000, 100_000)
"""Samples per second: the paper's, and some that are too fast for one learner or the other."""
BINDING = 10_000
"""The rate that is drawn beside the paper's."""
METHODS = ("TD", "iLSTD", "t-LSTD")
SMALL_LOSS = 0.02
"""Share of the samples whose loss does not make a learner too slow."""

VARIANTS: dict[str, dict[str, Any]] = {
    "buffer of r samples": {"buffer_size": 40},
    "replacing traces": {"trace": "replacing"},
    "λ=0.9": {"lambda_": 0.9},
    "cut-off 1e-4": {"rcond": 1e-4},
    "rank 200": {"rank": 200},
}
"""t-LSTD otherwise than in figure 3b."""


class Size(NamedTuple):
    """What a scale has."""

    runs: int
    few: int
    """Runs of side questions."""
    tuning: int
    """Runs per candidate of a sweep."""
    samples: tuple[int, ...]
    n_ilstd: int
    """iLSTD's samples."""
    short: int
    """Samples with truncation after each."""
    window: tuple[int, ...]
    """Successive sample counts, at which smoothness is measured."""
    exponents: tuple[int, ...]
    """Of two, α₀ of iLSTD."""
    seconds: dict[int, float]
    """How long samples come, by rate."""
    timed: int
    """Runs of figure 3c."""

    @property
    def ilstd_samples(self) -> tuple[int, ...]:
        """The first of ``samples``."""
        return tuple(count for count in self.samples if count <= self.n_ilstd)


SIZES: dict[str, Size] = {
    "smoke": Size(
        runs=1,
        few=1,
        tuning=1,
        samples=(100, 200, 300, 400),
        n_ilstd=300,
        short=200,
        window=tuple(range(200, 211)),
        exponents=(-5, -3),
        seconds={25: 8.0, 1000: 0.2, BINDING: 0.1, 100_000: 0.05},
        timed=1,
    ),
    "quick": Size(
        runs=5,
        few=2,
        tuning=2,
        samples=tuple(range(200, 4001, 200)),
        n_ilstd=2400,
        short=600,
        window=tuple(range(1000, 1051)),
        exponents=(-11, -9, -7, -5, -3, -1),
        seconds={25: 96.0, 1000: 2.4, BINDING: 1.0, 100_000: 0.5},
        timed=3,
    ),
    "paper": Size(
        runs=30,
        few=5,
        tuning=3,
        samples=tuple(range(200, 10_001, 200)),
        n_ilstd=5000,
        short=2000,
        window=tuple(range(1000, 1101)),
        exponents=tuple(range(-11, 0)),
        seconds={25: 200.0, 1000: 5.0, BINDING: 2.0, 100_000: 1.0},
        timed=10,
    ),
}


@lru_cache
def floor() -> float:
    """The least RMSE of any function of what features see."""
    domain = EnergyStorage()
    return aliasing_floor(domain, domain.policy()).rmse


def limit() -> float:
    """Twice the RMSE of zero: a run with a larger one has diverged, and counts in means as if it had this one."""
    return 2.0 * float(np.sqrt((problem("energy").truth ** 2).mean()))


def tlstd(rank: int = 40, **more: Any) -> dict[str, Any]:
    """t-LSTD as in the paper, but for the buffer."""
    return {"class": "TLSTD", "rank": rank, "lambda_": 1.0, "rcond": 0.01} | more


def td(alpha: float, name: str = "TD") -> dict[str, Any]:
    """TD or true-online TD."""
    return {"class": name, "lambda_": 0.9, "step_size": alpha}


def ilstd(alpha: float, n0: float | None, m: int = M) -> dict[str, Any]:
    """iLSTD; with a constant step size if there is no N₀."""
    step_size = alpha if n0 is None else [alpha, n0]
    return {"class": "ILSTD", "lambda_": 0.9, "step_size": step_size, "coordinates_per_step": m}


def learn(estimator: dict[str, Any], samples: Sequence[int], seeds: Sequence[int]) -> list[RunSpec]:
    """Learning curves, one per seed."""
    return specs("curve", {"problem": "energy", "estimator": estimator, "samples": samples}, seeds)


def by_seed(wanted: list[RunSpec]) -> list[RunSpec]:
    """Runs of one seed side by side, since they share their stream."""
    return sorted(wanted, key=lambda spec: spec.seed)


# --- sweeps ----------------------------------------------------------------------------------------------------------


def td_candidates(scale: str, name: str = "TD", active: Sequence[int] = ACTIVE) -> list[list[RunSpec]]:
    """The whole grid of step sizes, for either number of active features."""
    size = pick(SIZES, scale)
    exponents = size.exponents if scale == "smoke" else range(-11, 0)
    alphas = [2.0**exponent / number for number in active for exponent in exponents]
    return [learn(td(alpha, name), size.samples, seeds(size.tuning, tuning=True)) for alpha in alphas]


def ilstd_candidates(scale: str, n0s: Sequence[float | None] = DECAYS) -> list[list[RunSpec]]:
    """Step sizes and decays for m=50."""
    size = pick(SIZES, scale)
    settings = [(2.0**e / number, n0) for n0 in n0s for number in ACTIVE for e in size.exponents]
    return [learn(ilstd(a, n0), size.ilstd_samples, seeds(size.tuning, tuning=True)) for a, n0 in settings]


def m_candidates(scale: str, m: int) -> list[list[RunSpec]]:
    """A coarser grid for the other m."""
    size = pick(SIZES, scale)
    settings = [(2.0**e / ACTIVE[0], n0) for n0 in (DECAYS if scale == "paper" else DECAYS[1:]) for e in (-5, -3, -1)]
    return [learn(ilstd(a, n0, m), size.ilstd_samples, seeds(1, tuning=True)) for a, n0 in settings]


def flat(candidates: Sequence[Sequence[RunSpec]]) -> list[RunSpec]:
    """All runs of a sweep."""
    return [spec for runs in candidates for spec in runs]


class _Energy(Panel):
    """Shared by figures 3a to 3c."""

    size = (3.4, 2.9)

    def chosen(self, results: Results, method: str) -> dict[str, Any]:
        """Return the estimator with the parameters that were best on the tuning seeds."""
        if method == "t-LSTD":
            return tlstd()
        if method == "iLSTD":
            candidates = ilstd_candidates(results.scale)
        else:
            candidates = td_candidates(results.scale, "TD" if method == "TD" else "TrueOnlineTD")
        estimator: dict[str, Any] = best(results, candidates)["estimator"]
        return estimator

    def curves(self, results: Results, method: str) -> list[RunSpec]:
        """Return the runs of figure 3b."""
        size = pick(SIZES, results.scale)
        samples = size.ilstd_samples if method == "iLSTD" else size.samples
        return learn(self.chosen(results, method), samples, seeds(size.runs))

    def errors(self, results: Results, runs: list[RunSpec]) -> FloatArray:
        """Return the RMSE of each run (runs, points), up to :func:`limit`."""
        return np.minimum(results.column(runs, "rmse"), limit())

    def draw_floor(self, axes: Axes) -> None:
        """Draw the least error that these features allow."""
        axes.axhline(floor(), color="#777777", ls=":", lw=1.0)
        place = axes.get_yaxis_transform()
        axes.text(0.99, 1.03 * floor(), "floor of time-blind features", fontsize=6, ha="right", transform=place)


class Ranks(_Energy):
    """Figure 3a."""

    name = "3a"
    title = "RMSE against samples by rank, energy"
    caption = (
        "t-LSTD, λ=1, on 40,001 tile features (32 tilings and a bias) of the energy domain, γ=0.8, cut-off 0.01. "
        "The domain's parameters are ours. Samples are folded in by the library's default buffer: truncation after "
        "every sample takes n·r² operations each (it is stricter than the paper's k=1), and is compared in shorter "
        "runs (claims' notes). Paper scale: 30 runs; r<5: 5."
    )

    def rank_runs(self, scale: str, rank: int) -> list[RunSpec]:
        """t-LSTD of this rank."""
        size = pick(SIZES, scale)
        return learn(tlstd(rank), size.samples, seeds(size.runs if rank in RANKS else size.few))

    def short_runs(self, scale: str, rank: int, buffer_size: int | None = None) -> list[RunSpec]:
        """Return few samples, with truncation after each or (None) the default buffer."""
        size = pick(SIZES, scale)
        estimator = tlstd(rank) if buffer_size is None else tlstd(rank, buffer_size=buffer_size)
        return learn(estimator, (size.short // 2, size.short), seeds(size.few))

    def runs(self, results: Results) -> list[RunSpec]:
        """Return all ranks, and the short runs."""
        wanted = [spec for rank in RANKS + SMALL_RANKS for spec in self.rank_runs(results.scale, rank)]
        for rank in SHORT_RANKS:
            wanted += self.short_runs(results.scale, rank, 1) + self.short_runs(results.scale, rank)
        return by_seed(wanted)

    def draw(self, axes: Axes, results: Results) -> None:
        """Draw a line per rank, and the floor."""
        samples = pick(SIZES, results.scale).samples
        for number, rank in enumerate((*SMALL_RANKS, *RANKS)):
            errors = results.column(self.rank_runs(results.scale, rank), "rmse")
            small = rank in SMALL_RANKS
            colour = "#999999" if small else drawing.sequence(number - len(SMALL_RANKS), len(RANKS) + 1)
            dashes = {1: ":", 2: "--", 3: "-."}.get(rank, "-")
            label = f"r={rank}"
            drawing.curve(axes, np.array(samples), errors, label, color=colour, ls=dashes, marker="" if small else None)
        self.draw_floor(axes)
        drawing.logarithmic(axes, "y")
        axes.set_xlabel("samples")
        axes.set_ylabel("RMSE")
        axes.legend(ncols=2, loc="lower left", bbox_to_anchor=(0.0, 0.15))

    def claims(self) -> Sequence[Claim]:
        """Return what the caption says of this panel."""
        where = "caption of figure 3a"
        return (
            Claim("3a-rank", where, "t-LSTD's error falls as the rank rises.", self._rank),
            Claim(
                "3a-five",
                where,
                "With rank 5 t-LSTD still converges, to a solution that is somewhat biased.",
                self._five,
            ),
            Claim("3a-less", where, "Below rank 5 the error is significantly larger.", self._less),
        )

    def _final(self, results: Results, rank: int) -> FloatArray:
        return results.column(self.rank_runs(results.scale, rank), "rmse")[:, -1]

    def _short(self, results: Results, rank: int, buffer_size: int | None) -> FloatArray:
        return results.column(self.short_runs(results.scale, rank, buffer_size), "rmse")[:, -1]

    def _rank(self, results: Results) -> Finding:
        errors = {rank: self._final(results, rank) for rank in RANKS}
        number = ratio_of_means(errors[RANKS[-1]], errors[RANKS[0]])
        steps = [ratio_of_means(errors[b], errors[a]) for a, b in pairwise(RANKS)]
        verdict = below(number, 1.0)
        if verdict == "reproduced" and any(step.value >= 1.0 for step in steps):
            verdict = "partly"
        short = {k: ratio_of_means(self._short(results, 40, k), self._short(results, 5, k)) for k in (1, None)}
        note = (
            "RMSE "
            + ", ".join(f"{errors[rank].mean():.0f} at r={rank}" for rank in RANKS)
            + f"; r=40 over r=5 after {pick(SIZES, results.scale).short:,} samples: {short[1]} truncated after every "
            f"sample, {short[None]} with the default buffer"
        )
        return Finding(verdict, number, f"final RMSE at r={RANKS[-1]} over that at r={RANKS[0]}", note)

    def _five(self, results: Results) -> Finding:
        errors = results.column(self.rank_runs(results.scale, 5), "rmse")
        constant = float(problem("energy").truth.std())
        number = interval(lambda e: float(e.mean() / constant), errors[:, -1])
        quarter = max(1, errors.shape[1] // 4)
        change = ratio_of_means(errors[:, -1], errors[:, -1 - quarter])
        levelled = change.low > 0.97 and change.high < 1.03
        verdict: Verdict = below(number, 0.95, partly=1.0) if levelled else "not"
        note = (
            f"the last quarter of the samples changes it by a factor of {change}; at 1 it is no better than the best "
            f"constant (sd of the values {constant:.0f}); the floor is {floor():.0f}"
        )
        return Finding(verdict, number, "final RMSE at r=5 over that of the best constant", note)

    def _less(self, results: Results) -> Finding:
        five = self._final(results, 5)
        few = pick(SIZES, results.scale).few
        ratios = {rank: ratio_of_means(self._final(results, rank), five[:few]) for rank in SMALL_RANKS}
        number = ratios[3]
        verdict = above(number, 1.1)
        if verdict != "reproduced":
            verdict = "partly" if ratios[1].low > 1.1 else "not"
        short = {
            (rank, k): ratio_of_means(self._short(results, rank, k), self._short(results, 5, k))
            for rank in (2, 3)
            for k in (1, None)
        }
        note = (
            ", ".join(f"r={rank}: {ratio}" for rank, ratio in ratios.items())
            + f"; after {pick(SIZES, results.scale).short:,} samples: "
            + ", ".join(
                f"r={r}, {'every sample' if k else 'default buffer'}: {ratio}" for (r, k), ratio in short.items()
            )
        )
        return Finding(verdict, number, "final RMSE at r=3 over that at r=5 (reproduced above 1.1)", note)


class Methods(_Energy):
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

    def tuning(self, scale: str) -> list[RunSpec]:
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

    def printed_td(self, results: Results) -> list[RunSpec]:
        """TD with the best step size of the grid over 64 alone."""
        size = pick(SIZES, results.scale)
        estimator = best(results, td_candidates(results.scale, active=ACTIVE[1:]))["estimator"]
        return learn(estimator, size.samples, seeds(size.runs))

    def window_runs(self, results: Results, method: str) -> list[RunSpec]:
        """Errors after successive samples."""
        size = pick(SIZES, results.scale)
        return learn(self.chosen(results, method), size.window, seeds(min(size.runs, 10)))

    def variant(self, scale: str, name: str) -> list[RunSpec]:
        """t-LSTD with something changed."""
        size = pick(SIZES, scale)
        return learn(tlstd() | VARIANTS[name], size.samples, seeds(size.few))

    def runs(self, results: Results) -> list[RunSpec]:
        """Return the curves, and what the claims need beside them."""
        wanted = [spec for method in (*METHODS, "true-online TD") for spec in self.curves(results, method)]
        wanted += self.printed_td(results)
        for m in (*COORDINATES, MORE):
            wanted += self.other_m(results, m, own=False) + self.other_m(results, m, own=True)
        wanted += [spec for method in METHODS for spec in self.window_runs(results, method)]
        wanted += [spec for name in VARIANTS for spec in self.variant(results.scale, name)]
        return by_seed(wanted)

    def draw(self, axes: Axes, results: Results) -> None:
        """Draw a line per method, and the floor."""
        size = pick(SIZES, results.scale)
        labels = {"iLSTD": f"iLSTD, m={M}", "t-LSTD": "t-LSTD, r=40"}
        for method, marker in zip((*METHODS, "true-online TD"), ("s", "^", "o", None), strict=True):
            samples = size.ilstd_samples if method == "iLSTD" else size.samples
            errors = self._errors(results, method)
            n_diverged = int((errors[:, -1] >= limit()).sum())
            style = {"ls": "--", "lw": 1.0} if marker is None else {}
            label, colour = labels.get(method, method), drawing.COLOURS[method]
            label += f" ({n_diverged} of {len(errors)} runs diverge)" if n_diverged else ""
            drawing.curve(
                axes,
                np.array(samples),
                errors,
                label,
                color=colour,
                marker=marker,
                markevery=max(1, len(samples) // 10),
                **style,
            )
        self.draw_floor(axes)
        drawing.logarithmic(axes, "y")
        axes.set_xlabel("samples")
        axes.set_ylabel("RMSE")
        axes.legend(loc="lower left", bbox_to_anchor=(0.0, 0.12))

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
        number = ratio_of_means(ours[:, -1], theirs[:, -1])
        level = 1.1 * float(theirs[:, -1].mean())
        steps = [first_at(errors.mean(axis=0), level, samples) for errors in (ours, theirs)]
        verdict = below(number, 1.1, partly=1.25)
        if verdict == "reproduced" and steps[0] > 0.5 * steps[1]:
            verdict = "partly"
        words = [f"after {count:,.0f} samples" if np.isfinite(count) else "never" for count in steps]
        note = (
            f"1.1 times TD's final error is reached {words[0]} by t-LSTD and {words[1]} by TD; the same ratio for "
            + self._variants(results, slice(-1, None), theirs)
        )
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
        worse = max(ratios, key=lambda name: ratios[name].value)
        better = sum(ratio.high < 1.0 for ratio in ratios.values())
        verdict: Verdict = "reproduced" if better == 2 else "partly" if better else "not"
        steps = {method: self.chosen(results, method)["step_size"] for method in ("TD", "iLSTD")}
        note = (
            f"over {samples_text(size.samples)} against TD {ratios['TD']}, over {samples_text(size.ilstd_samples)} "
            f"against iLSTD {ratios['iLSTD']}; final RMSE: t-LSTD {ours[:, -1].mean():.0f}, TD {td_[:, -1].mean():.0f}"
            f", iLSTD {il[:, -1].mean():.0f} (t-LSTD then {ours[:, common - 1].mean():.0f}); chosen: TD α="
            f"{steps['TD']:.2g} (grid up to {0.5 / ACTIVE[0]:.2g}), iLSTD α₀={steps['iLSTD'][0]:.2g}, "
            f"N₀={steps['iLSTD'][1]}"
        )
        return Finding(verdict, ratios[worse], f"mean RMSE of t-LSTD over that of {worse}, the better competitor", note)

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
        verdict = below(number, 1.0)
        if verdict == "not" and any(other.high < 1.0 for other in others.values()):
            verdict = "partly"
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
        verdict: Verdict = "reproduced" if number.low > 0.95 and number.high < 1.05 else "not"
        if verdict == "not" and 0.9 < number.value < 1.1:
            verdict = "partly"
        steps = {method: self.chosen(results, method)["step_size"] for method in ("TD", "true-online TD")}
        note = ", ".join(f"{method}: α={step:.2g}" for method, step in steps.items())
        return Finding(verdict, number, "mean RMSE of true-online TD over TD's, each with its best step size", note)

    def _by_m(self, results: Results, *, own: bool, ms: Sequence[int] = COORDINATES) -> FloatArray:
        """Mean error of every run (runs, m)."""
        columns = [self.errors(results, self.other_m(results, m, own=own)).mean(axis=1) for m in ms]
        return np.stack(columns, axis=1)

    def _m(self, results: Results) -> Finding:
        spread: dict[bool, Interval] = {}
        means: dict[bool, FloatArray] = {}
        for own in (False, True):
            errors = self._by_m(results, own=own)
            spread[own] = interval(lambda e: float(e.mean(axis=0).max() / e.mean(axis=0).min()), errors)
            means[own] = errors.mean(axis=0)
        verdict = below(spread[False], 1.1, partly=1.25)
        note = "; ".join(
            f"{words}: {spread[own]} ("
            + ", ".join(f"m={m}: {e:.0f}" for m, e in zip(COORDINATES, means[own], strict=True))
            + ")"
            for own, words in ((False, "step size of m=50"), (True, "step size of each m's own, from a coarser grid"))
        )
        return Finding(verdict, spread[False], "largest over smallest mean RMSE, m from 10 to 50", note)

    def _step_by_m(self, results: Results) -> Finding:
        """All m on the same coarse grid; what the others lose with the best of m=50, on the tuning seed."""
        chosen: dict[int, tuple[float, float]] = {}
        losses: dict[int, float] = {}
        for m in COORDINATES:
            candidates = m_candidates(results.scale, m)
            errors = {
                tuple(runs[0].settings["estimator"]["step_size"]): float(results.column(runs, "rmse").mean())
                for runs in candidates
            }
            chosen[m] = min(errors, key=lambda step: errors[step])
            losses[m] = min(errors.values())
        regret = {}
        for m in COORDINATES[:-1]:
            alpha, n0 = chosen[M]
            runs = learn(ilstd(alpha, n0, m), pick(SIZES, results.scale).ilstd_samples, seeds(1, tuning=True))
            regret[m] = float(results.column(runs, "rmse").mean()) / losses[m]
        worst = max(regret.values())
        differ = len(set(chosen.values())) > 1
        verdict: Verdict = "reproduced" if differ and worst > 1.02 else "partly" if differ else "not"
        note = (
            "best α₀, N₀: "
            + "; ".join(f"m={m} {alpha:.2g}, {n0:g}" for m, (alpha, n0) in chosen.items())
            + "; one tuning seed each, a grid of α₀ of factors of four"
        )
        what = f"mean RMSE with the best step size of m={M} over that with the own, largest (reproduced above 1.02)"
        return Finding(verdict, Interval(worst, worst, worst, 1), what, note)

    def _fifty(self, results: Results) -> Finding:
        errors = self._by_m(results, own=False, ms=(*COORDINATES, MORE))
        number = ratio_of_means(errors[:, -2], errors[:, -1])
        before = ratio_of_means(errors[:, -3], errors[:, -2])
        note = f"m=40 over m=50: {before}; step size of m=50"
        return Finding(below(number, 1.02, partly=1.05), number, f"mean RMSE with m={M} over that with m={MORE}", note)

    def _grid(self, results: Results, candidates: list[list[RunSpec]]) -> FloatArray:
        """Mean error of every run of a sweep (runs, candidates)."""
        results.load(flat(candidates))
        return np.stack([results.column(runs, "rmse").mean(axis=1) for runs in candidates], axis=1)

    def _step_size(self, results: Results) -> Finding:
        def share(errors: FloatArray) -> float:
            means = errors.mean(axis=0)
            return float((means <= 1.2 * means.min()).mean())

        n0 = self.chosen(results, "iLSTD")["step_size"][1]
        found = {n: interval(share, self._grid(results, ilstd_candidates(results.scale, [n]))) for n in DECAYS}
        exponents = pick(SIZES, results.scale).exponents
        td_grid = [
            runs
            for runs in td_candidates(results.scale)
            if any(runs[0].settings["estimator"]["step_size"] == 2.0**e / a for e in exponents for a in ACTIVE)
        ]
        td_share = interval(share, self._grid(results, td_grid))
        number = found[n0]
        verdict = below(number, 0.5)
        if verdict == "not" and number.high < td_share.low:
            verdict = "partly"
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
        number = shares[None]
        verdict: Verdict = "not"
        constants = self._grid(results, ilstd_candidates(results.scale, [None])).mean(axis=0).min()
        decayed = self._grid(results, ilstd_candidates(results.scale)).mean(axis=0).min()
        if number.low > 0.0:  # some constant steps diverge; whether that matters is whether decay is needed
            helps = chosen == 0.0 and constants > 1.1 * decayed
            verdict = "reproduced" if helps and min(shares[n].value for n in DECAYS) < number.value else "partly"
        note = (
            "with a decay: "
            + ", ".join(f"N₀={n0}: {shares[n0].value:.2g}" for n0 in DECAYS)
            + f"; reported runs: {chosen:.2g}; mean RMSE on the tuning seeds with the best constant step "
            f"{constants:.0f}, with the best decayed one {decayed:.0f}"
        )
        return Finding(verdict, number, "share of constant step sizes with an error above twice that of zero", note)

    def _smooth(self, results: Results) -> Finding:
        rough = {method: roughness(self.errors(results, self.window_runs(results, method))) for method in METHODS}
        ratios = {other: ratio_of_means(rough["t-LSTD"], rough[other]) for other in ("TD", "iLSTD")}
        least = min(ratios, key=lambda name: ratios[name].value)
        rougher = sum(ratio.low > 1.0 for ratio in ratios.values())
        verdict: Verdict = "reproduced" if rougher == 2 else "partly" if rougher else "not"
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
        return Finding(
            verdict, ratios[least], f"mean change of RMSE from sample to sample, t-LSTD's over {least}'s", note
        )


class Times(_Energy):
    """Figure 3c."""

    name = "3c"
    title = "RMSE against time at a fixed rate, energy"
    caption = (
        "The learners of figure 3b, given samples at a fixed rate: what comes while a learner is busy is lost, and "
        "its trace then starts anew; a fast learner waits. CPU time with nothing else of this command running, data "
        "generation not counted. At 25 per second (solid) hardly anything is lost, so a rate at which the slower "
        "ones lose much is drawn too (dashed). Paper scale: 10 runs, of 5,000 samples at 25 per second."
    )

    def tuning(self, scale: str) -> list[RunSpec]:
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

    def draw(self, axes: Axes, results: Results) -> None:
        """Draw the methods at the paper's rate and at one that binds."""
        for rate, dashes in ((25, "-"), (BINDING, "--")):
            for method, marker in zip(METHODS, ("s", "^", "o"), strict=True):
                seconds = self._column(results, method, rate, "seconds").mean(axis=0)
                style = {"color": drawing.COLOURS[method], "ls": dashes, "marker": marker, "markersize": 2.5}
                label = method if rate == RATES[0] else f"_{method}"  # the same colour again is not named again
                drawing.curve(axes, seconds, self._column(results, method, rate, "rmse"), label, **style)
            axes.plot([], [], color="#555555", ls=dashes, label=f"{rate:,} samples/s")
        self.draw_floor(axes)
        drawing.logarithmic(axes, "xy")
        axes.set_xlabel("seconds")
        axes.set_ylabel("RMSE")
        axes.legend(ncols=2, loc="lower left", bbox_to_anchor=(0.0, 0.1))

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
        number = interval(lambda s: float(s.mean()), shares[slower, 25])
        verdict: Verdict = "not"
        if number.low > SMALL_LOSS:
            verdict = "reproduced"
        work = {method: float((self._column(results, method, 25, "busy")[:, -1]).mean()) for method in METHODS}
        total = pick(SIZES, results.scale).seconds[25]
        if verdict == "not" and work["TD"] < 0.5 * total:  # the half of the statement that says TD waits
            verdict = "partly"
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
            f"share of the samples that {slower} loses at 25 per second (reproduced above {SMALL_LOSS})",
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
        verdict = above(number, 1.0)
        if verdict == "reproduced" and any(ratio.high < 1.0 for ratio in learned.values()):
            verdict = "partly"
        return Finding(verdict, number, f"samples learned by t-LSTD over iLSTD's at {BINDING:,} per second", note)

    def _solution(self, results: Results) -> Finding:
        ratios = {
            rate: ratio_of_means(*(self._column(results, m, rate, "rmse")[:, -1] for m in ("t-LSTD", "iLSTD")))
            for rate in RATES
        }
        verdict = below(ratios[25], 1.0)
        if verdict == "not" and any(ratio.high < 1.0 for ratio in ratios.values()):
            verdict = "partly"
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
        verdict = below(number, 2.0, partly=5.0)
        note = (
            "µs per sample: "
            + ", ".join(f"{method} {1e6 * seconds.mean():.3g}" for method, seconds in per_sample.items())
            + f"; share lost at 25 per second: {self._share_lost(results, 't-LSTD', 25).mean():.2g}"
        )
        return Finding(verdict, number, f"CPU time per sample of t-LSTD over TD's at {BINDING:,} per second", note)


def first_at(errors: FloatArray, level: float, samples: Sequence[int]) -> float:
    """The first number of samples at which the error is at or below a level; infinite if none is.

    Example
    -------
    >>> first_at(np.array([3.0, 2.0, 1.0]), 2.0, [10, 20, 30])
    20.0
    """
    reached = np.flatnonzero(errors <= level)
    return float(samples[reached[0]]) if reached.size else np.inf


def roughness(errors: FloatArray) -> FloatArray:
    """Mean absolute change from point to point around the mean change of the run (runs, points).

    Example
    -------
    >>> roughness(np.array([[3.0, 2.0, 1.0], [0.0, 2.0, 0.0]]))
    array([0., 2.])
    """
    changes = np.diff(errors, axis=1)
    rough: FloatArray = np.abs(changes - changes.mean(axis=1, keepdims=True)).mean(axis=1)
    return rough


def samples_text(samples: Sequence[int]) -> str:
    """The range in words.

    Example
    -------
    >>> samples_text([200, 5000])
    '200 to 5,000 samples'
    """
    return f"{samples[0]:,} to {samples[-1]:,} samples"
