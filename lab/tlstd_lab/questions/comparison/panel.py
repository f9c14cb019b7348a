"""Panels: the error of every estimator over the best one's, on every problem."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache, partial
from typing import Any, ClassVar

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd_lab.chart import MARKERS, Axis, Chart, Legend, Rule, Series, cases, points, sequence
from tlstd_lab.claims import BEYOND, Claim, Finding, below
from tlstd_lab.panel import Panel, Results, Scale, pick
from tlstd_lab.problems import PROBLEMS
from tlstd_lab.questions.comparison.methods import ENERGY, ENTRIES, OFF_POLICY, ROSTER, UNTUNED, reason
from tlstd_lab.questions.contest.methods import CHEAP, REPEATED, SLOW, SLOWEST, Effort, Method
from tlstd_lab.questions.contest.panel import Contest
from tlstd_lab.spec import RunSpec
from tlstd_lab.statistics import interval

GROUPS: dict[str, tuple[str, ...]] = {
    "small processes": ("walk", "boyan", "spiral"),
    "off-policy": OFF_POLICY,
    "Mountain Car": ("car-tiles", "car-tiles-valley", "car-rbf", "car-rbf-valley"),
    "energy": ENERGY,
    "Pendulum": ("pendulum-tiles", "pendulum-rbf"),
}
"""All learning problems, and processes with known values."""
SAMPLES: dict[str, tuple[int, ...]] = {
    "smoke": (50, 100),
    "quick": (250, 1_000, 4_000),
    "paper": (250, 1_000, 4_000, 10_000),
}
FEW = 1_000
"""Samples of slow methods with RBFs and on energy, and of the slowest ones on all but the small processes."""
SHOWN = 10.0
"""Largest ratio of errors that the figures tell apart: off-policy some are 200."""
EXACT = 0.01
"""Share of the error of zero below which errors are as good as none: without noise they are rounding."""
RUNS: dict[str, dict[int, tuple[int, int]]] = {
    "smoke": dict.fromkeys((CHEAP, REPEATED, SLOW, SLOWEST), (1, 1)),
    "quick": {CHEAP: (5, 2), REPEATED: (5, 1), SLOW: (5, 1), SLOWEST: (5, 1)},
    "paper": {CHEAP: (30, 3), REPEATED: (30, 3), SLOW: (10, 2), SLOWEST: (5, 1)},
}
"""Runs, and streams of the sweeps, by scale and by how expensive a method is."""


class Field(Contest):
    """All estimators on one problem: the contest's runs, with another roster."""

    roster: ClassVar[Mapping[str, Method]] = ROSTER
    apart = False

    def __init__(self, problem: str) -> None:
        self.problem = problem

    def methods(self, scale: Scale) -> list[str]:
        """Return who takes part."""
        return [name for name in self.roster if reason(name, self.problem) is None]

    def every(self, scale: Scale) -> tuple[int, ...]:
        """Return the numbers of samples."""
        return pick(SAMPLES, scale)

    def samples(self, scale: Scale, name: str) -> tuple[int, ...]:
        """Return the numbers of samples that a method is given: fewer where it takes milliseconds a sample."""
        few = tuple(n for n in self.every(scale) if n <= FEW)
        return few if self.is_slow(name) else self.every(scale)

    def is_slow(self, name: str) -> bool:
        """Return whether a method gets no more than ``FEW`` samples here."""
        effort, kind = self.roster[name].effort, self.problem.partition("-")
        return self.problem in PROBLEMS and (effort == SLOWEST or (effort == SLOW and "tiles" not in kind[2]))

    def effort(self, scale: Scale, name: str) -> Effort:
        """Return how many runs a method is given."""
        entry = ENTRIES[name.removesuffix(UNTUNED)]
        runs, streams = pick(RUNS, scale)[entry.effort]
        tries = entry.tries.of(self.problem)
        tries = pick({"smoke": 2, "quick": tries, "paper": 2 * tries}, scale)
        return Effort(runs, 0, streams, tries)

    def zero(self, results: Results) -> float:
        """Return the RMSE of predicting 0; a diverged run counts as twice that."""
        return _zero(self, results)

    def errors(self, results: Results, name: str, n: int) -> FloatArray:
        """Return the errors of a method's runs after n samples, at least ``EXACT`` of that of zero."""
        errors = self.column(results, name, "rmse")[:, self.samples(results.scale, name).index(n)]
        return np.asarray(np.maximum(errors, EXACT * self.zero(results)))

    def best(self, results: Results, n: int) -> FloatArray:
        """Return the errors of whoever has the least mean after n samples."""
        some = [name for name in self.methods(results.scale) if n in self.samples(results.scale, name)]
        return min((self.errors(results, name, n) for name in some), key=lambda errors: float(errors.mean()))


@lru_cache(maxsize=64)
def _zero(here: Field, results: Results) -> float:
    name = "TD" + UNTUNED
    (group,) = here.groups(results, name)
    return float(results[here.runs_of(results, name, group, timed=False)[0]].columns["zero"][0])


@cache
def field(problem: str) -> Field:
    """The field of a problem, made once."""
    return Field(problem)


class _Comparison(Panel):
    """Shared by both panels."""

    ending: ClassVar[str]
    """Of the names of those that are shown."""
    size = (5.2, 4.6)

    def problems(self, scale: Scale) -> list[str]:
        """Return the problems, few for a look whether it runs."""
        if scale == "smoke":
            return ["car-tiles", "walk", "baird"]
        return [p for group in GROUPS.values() for p in group]

    def tuning(self, scale: Scale) -> list[RunSpec]:
        """Return the sweeps."""
        return [spec for problem in self.problems(scale) for spec in field(problem).tuning(scale)]

    def runs(self, results: Results) -> list[RunSpec]:
        """Return the runs of all, problem by problem."""
        return [spec for problem in self.problems(results.scale) for spec in field(problem).runs(results)]

    @staticmethod
    def all_have(scale: Scale) -> int:
        """Return the largest number of samples that everybody is given."""
        return max(n for n in pick(SAMPLES, scale) if n <= FEW)

    def chart(self, results: Results) -> Chart:
        """Return a row per estimator, a symbol per kind of problem."""
        n, series, names = self.all_have(results.scale), [], list(ENTRIES)
        for number, (group, problems) in enumerate(GROUPS.items()):
            x, y = [], []
            for problem in (p for p in problems if p in self.problems(results.scale)):
                least = field(problem).best(results, n).mean()
                for place, name in enumerate(names):
                    if reason(name, problem) is None:
                        over = field(problem).errors(results, name + self.ending, n).mean() / least
                        x.append(min(float(over), SHOWN))
                        y.append(place + 0.13 * (number - 2))
            look: dict[str, Any] = {"marker": MARKERS[number], "joined": False, "size": 3.5, "hollow": True}
            series.append(Series(group, sequence(number, len(GROUPS)), points(x, y), **look))
        ticks = [(tick, f"{tick:g}") for tick in (1.0, 1.5, 2.0, 3.0, 5.0)] + [(SHOWN, f"≥ {SHOWN:g}")]
        x_axis = Axis(f"RMSE after {n:,} samples, over the best", log=True, low=0.95, high=1.05 * SHOWN, ticks=ticks)
        return Chart(series, x_axis, cases(range(len(names)), names), (Rule("x", 1.0),), legend=Legend("below", 5, 6.0))

    def ratio(self, results: Results, ours: str, theirs: str, n: int, bound: float = 1.0) -> Finding:
        """Return the geometric mean over on-policy problems of one error over another, decided below ``bound``.

        Every kind of problem weighs the same, with however many variants. Baird's counterexample was made to defeat
        one kind of method, and would decide every mean by itself.
        """
        on_policy = [p for p in self.problems(results.scale) if p not in OFF_POLICY]
        shared = [p for p in on_policy if all(reason(m, p) is None for m in (ours, theirs))]
        mine, others = (np.array([field(p).errors(results, m, n) for p in shared]).T for m in (ours, theirs))
        number = interval(partial(geometric_mean, weights=weights(shared)), mine, others)
        singly = ", ".join(f"{p} {r:.3g}" for p, r in zip(shared, mine.mean(axis=0) / others.mean(axis=0), strict=True))
        what = f"RMSE of {ours} over that of {theirs} after {n:,} samples, geometric mean over {len(shared)} problems"
        return Finding(below(number, bound), number, what, singly)

    def last(self, ours: str, theirs: str, bound: float = 1.0) -> Callable[[Results], Finding]:
        """Return the rule that decides by this ratio after all samples."""
        return lambda results: self.ratio(results, ours, theirs, pick(SAMPLES, results.scale)[-1], bound)


def weights(problems: Sequence[str]) -> FloatArray:
    """Of problems in a mean: each kind of them weighs the same, and within a kind each problem.

    Example
    -------
    >>> weights(["walk", "energy", "energy-day", "pendulum-rbf"]).round(3)
    array([0.333, 0.167, 0.167, 0.333])
    """
    kinds = [next(kind for kind, some in GROUPS.items() if problem in some) for problem in problems]
    return np.array([1.0 / (len(set(kinds)) * kinds.count(kind)) for kind in kinds])


def geometric_mean(mine: FloatArray, others: FloatArray, weights: FloatArray) -> float:
    """Of mean errors (runs, problems) over those of another method.

    Example
    -------
    >>> geometric_mean(np.array([[1.0, 6.0], [3.0, 10.0]]), np.array([[1.0, 1.0], [1.0, 1.0]]), np.array([0.5, 0.5]))
    4.0
    """
    return float(np.exp(weights @ np.log(mine.mean(axis=0) / others.mean(axis=0))))


_ABOUT = (
    "All learning problems of the laboratory and five small processes. Whoever is tuned is so on other seeds, for each "
    "number of samples by itself, by up to 64 settings from the usual one on, fewer where a try takes long. In means "
    "every kind of problem weighs the same. Ratios of 10 and more are drawn at 10. A diverged run counts as twice the "
    "error of zero, and one below a hundredth of that as a hundredth. Not run: LSTD, LinearDyna and ForgetfulLSTD on "
    "energy (n² numbers), TrueOnlineTD and SwiftTD off-policy (no ratios). Paper scale: 5 to 30 runs, up to 10,000 "
    "samples, twice as many settings."
)
KRYLOV = "KrylovLSTD"


class Tuned(_Comparison):
    """Everybody tuned."""

    name, ending = "comparison", ""
    title = "Every estimator, tuned on other seeds"
    caption = "Error over that of the best of all, tuned or not. " + _ABOUT

    def claims(self) -> Sequence[Claim]:
        """Return how methods without a step size that are not tuned stand against those that are."""
        untuned = KRYLOV + UNTUNED
        return (
            Claim(
                "comparison-steps",
                BEYOND,
                'On-policy KrylovLSTD, "auto", has a lower error than TD, tuned, in the mean over problems.',
                self.last(untuned, "TD"),
            ),
            Claim(
                "comparison-replay",
                BEYOND,
                'On-policy KrylovLSTD, "auto", has a lower error than Replay, tuned, in the mean over problems.',
                self.last(untuned, "Replay"),
            ),
            Claim(
                "comparison-truncated",
                BEYOND,
                'On-policy KrylovLSTD, "auto", has a lower error than TLSTD, tuned, in the mean over problems.',
                self.last(untuned, "TLSTD"),
            ),
            Claim(
                "comparison-swift",
                BEYOND,
                "On-policy SwiftTD, tuned, has a lower error than TrueOnlineTD, tuned, in the mean over problems.",
                self.last("SwiftTD", "TrueOnlineTD"),
            ),
            Claim(
                "comparison-sa",
                BEYOND,
                "As its publication says, LSTDSA comes near LSTD: on-policy and both tuned, within a tenth of its "
                "error in the mean over problems.",
                self.last("LSTDSA", "LSTD", bound=1.1),
            ),
        )


class Untuned(_Comparison):
    """Everybody as it comes."""

    name, ending = "comparison-untuned", UNTUNED
    title = "Every estimator, as it comes"
    caption = (
        "As beside, with the constructor's values, and where it has none with one rule for all problems: steps of "
        "0.1/‖x‖², λ=0.9, ranks and dimensions of 40, eight passes. " + _ABOUT
    )

    def claims(self) -> Sequence[Claim]:
        """Return who is best when nothing is tuned."""
        others = tuple(name + UNTUNED for name in ENTRIES if not name.startswith(KRYLOV) and self._everywhere(name))
        return (
            Claim(
                "comparison-untuned-krylov",
                BEYOND,
                "On-policy and with nothing tuned KrylovLSTD has a lower error than each of the estimators that can be "
                "run on all problems, in the mean over problems.",
                lambda results: self._each(results, KRYLOV + UNTUNED, others),
            ),
            Claim(
                "comparison-untuned-swift",
                BEYOND,
                "On-policy and with nothing tuned SwiftTD has a lower error than TD and TrueOnlineTD with steps of "
                "0.1/‖x‖², in the mean over problems.",
                lambda results: self._each(results, "SwiftTD" + UNTUNED, ("TD" + UNTUNED, "TrueOnlineTD" + UNTUNED)),
            ),
        )

    @staticmethod
    def _everywhere(name: str) -> bool:
        return all(reason(name, problem) is None for group in GROUPS.values() for problem in group)

    def _each(self, results: Results, ours: str, theirs: Sequence[str]) -> Finding:
        """Decide by the one that comes closest."""
        found = {name: self.ratio(results, ours, name, self.all_have(results.scale)) for name in theirs}
        name = max(found, key=lambda name: found[name].number.value)
        note = "; ".join(f"{other}: {finding.number}" for other, finding in found.items())
        return Finding(found[name].verdict, found[name].number, found[name].what, note)
