"""Panels: error against samples and against CPU time, on four problems, and who wins."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd_lab.chart import Axis, Chart, Legend, Rule, curve
from tlstd_lab.claims import BEYOND, Claim, Finding, Verdict, below
from tlstd_lab.panel import TUNING_SEED, Panel, Results, Scale, pick, seeds, specs
from tlstd_lab.questions.contest.methods import (
    METHODS,
    NEEDS_THE_MATRIX,
    OURS,
    PASSES,
    SLOW,
    SLOWEST,
    UP_TO_4000,
    Effort,
    Method,
    filled,
)
from tlstd_lab.spec import RunSpec
from tlstd_lab.statistics import OverRuns, interval, ratio_of_means

SAMPLES: dict[str, tuple[int, ...]] = {
    "smoke": (100, 200),
    "quick": (500, 1_000, 2_000),
    "paper": (250, 500, 1_000, 2_000, 4_000, 7_000, 10_000),
}
FROM = 1_000
"""Samples from which on claims are decided."""
TIMES = 40
"""CPU times at which errors are compared."""
RIVALS = {
    "td": ("TD and true-online TD, tuned", ("TD", "true-online TD")),
    "replay": ("TD with replay, tuned", ("replay TD",)),
    "truncated": ("t-LSTD and ATD", ("t-LSTD, r=40", "t-LSTD, r=200", "t-LSTD, chosen", "ATD")),
    "whole": ("methods with all of A", ("iLSTD", "LSTD, cut-off", "LSTD, ridge")),
}
"""Words and methods of each claim."""
STREAM = 1.1
"""What a stream's error may be of that of a batch solution."""


class Group(NamedTuple):
    """Runs of one setting, and the numbers of samples that they stand for."""

    estimator: dict[str, Any]
    samples: tuple[int, ...]


class Contest(Panel):
    """Shared by all problems."""

    problem: str
    roster: ClassVar[Mapping[str, Method]] = METHODS
    """Who may take part."""
    size = (3.4, 3.6)

    timed: ClassVar[bool] = False
    """Whether CPU times are shown."""
    apart: ClassVar[bool] = True
    """Whether these are of runs that have the machine for themselves, and not of those that errors are from."""

    def methods(self, scale: Scale) -> list[str]:
        """Return who takes part."""
        few = self.problem == "energy" or (scale == "smoke" and self.problem != "car-tiles")
        return [name for name in self.roster if not (few and name in NEEDS_THE_MATRIX)]

    def every(self, scale: Scale) -> tuple[int, ...]:
        """Return the numbers of samples."""
        return pick(SAMPLES, scale)

    def effort(self, scale: Scale, name: str) -> Effort:
        """Return how many runs a method is given."""
        return self.roster[name].effort_at(scale)

    def shared(self, scale: Scale) -> bool:
        """Return whether LSTD's candidates share their matrices in runs that are not timed."""
        return False

    def axes(self, scale: Scale, name: str) -> Mapping[str, tuple[float, ...]]:
        """Return what is tuned of a method."""
        return self.roster[name].axes

    def samples(self, scale: Scale, name: str) -> tuple[int, ...]:
        """Return the numbers of samples that a method is given."""
        every, few = self.every(scale), self.roster[name].samples
        return tuple(n for n in every if few is None or n in few) or every[-1:]

    # --- runs --------------------------------------------------------------------------------------------------------

    def sweep(self, scale: Scale, name: str) -> RunSpec:
        """Return the run that tunes a method."""
        method, effort = self.roster[name], self.effort(scale, name)
        settings = {
            "problem": self.problem,
            "estimator": method.estimator,
            "axes": self.axes(scale, name),
            "start": method.start,
            "samples": self.samples(scale, name),
            "streams": effort.streams,
            "tries": effort.tries,
        }
        return RunSpec("tune", settings, TUNING_SEED)

    def tuning(self, scale: Scale) -> list[RunSpec]:
        """Return the sweeps."""
        return [self.sweep(scale, name) for name in self.methods(scale) if self.roster[name].axes]

    def groups(self, results: Results, name: str) -> list[Group]:
        """Return the settings of a method, and for which numbers of samples each was best."""
        method, samples = self.roster[name], self.samples(results.scale, name)
        if not method.axes:
            return [Group(dict(method.estimator), samples)]
        tuned, by_setting = (
            results[self.sweep(results.scale, name)].columns,
            dict[str, tuple[dict[str, Any], list[int]]](),
        )
        for i, n in enumerate(samples):
            made = filled(method.estimator, {axis: float(tuned[axis][i]) for axis in method.axes})
            by_setting.setdefault(json.dumps(made, sort_keys=True), (made, []))[1].append(n)
        return [Group(made, tuple(counts)) for made, counts in by_setting.values()]

    def runs_of(self, results: Results, name: str, group: Group, *, timed: bool) -> list[RunSpec]:
        """Return the reported runs of one setting."""
        method, effort = self.roster[name], self.effort(results.scale, name)
        settings: dict[str, Any] = {
            "problem": self.problem,
            "estimator": group.estimator,
            "samples": group.samples,
            "length": self.every(results.scale)[-1],
        }
        if method.choose:
            settings["choose"] = method.choose
            if self.shared(results.scale) and name in NEEDS_THE_MATRIX and not timed:
                settings["shared"] = True
        return specs("contest", settings, seeds(effort.timed if timed else effort.runs), timed=timed)

    def runs(self, results: Results) -> list[RunSpec]:
        """Return the runs of all methods, and, if times are shown, those that run alone."""
        wanted = [
            spec
            for name in self.methods(results.scale)
            for group in self.groups(results, name)
            for timed in ((False, True) if self.timed else (False,))
            for spec in self.runs_of(results, name, group, timed=timed)
        ]
        return sorted(wanted, key=lambda spec: spec.seed)

    def column(self, results: Results, name: str, column: str) -> FloatArray:
        """Return a column of a method's runs (runs, samples), each number of samples by the setting tuned to it."""
        return _column(self, results, name, column)

    def zero(self, results: Results) -> float:
        """Return the RMSE of predicting 0; a diverged run counts as twice that."""
        (group,) = self.groups(results, OURS[0])
        return float(results[self.runs_of(results, OURS[0], group, timed=False)[0]].columns["zero"][0])

    def chart(self, results: Results) -> Chart:
        """Return a line per method."""
        series = []
        for name in self.methods(results.scale):
            method = self.roster[name]
            look = {"dash": method.dash, "marker": method.marker, "size": 2.5, "width": 1.6 if name in OURS else 1.0}
            errors = self.column(results, name, "rmse")
            series.append(curve(self.samples(results.scale, name), errors, method.label, method.colour, **look))
        return Chart(series, Axis("samples", log=True), Axis("RMSE", log=True), legend=Legend("below", 2, 5.6))

    # --- claims ------------------------------------------------------------------------------------------------------

    def against(self, results: Results, rival: str, column: str = "rmse", ours: str = OURS[0]) -> dict[int, OverRuns]:
        """Return our error over a rival's, by the number of samples."""
        mine, theirs = self.samples(results.scale, ours), self.samples(results.scale, rival)
        errors, others = self.column(results, ours, column), self.column(results, rival, column)
        found = {}
        for n in sorted(set(mine) & set(theirs)):
            if n >= min(FROM, mine[-1]):
                pair = errors[:, mine.index(n)], others[:, theirs.index(n)]
                runs = min(map(len, pair))
                found[n] = ratio_of_means(*(part[:runs] for part in pair))
        return found

    def versus(self, results: Results, rivals: Sequence[str]) -> Finding:
        """Decide whether Krylov LSTD is better than all of these at every number of samples."""
        ratios = {rival: self.against(results, rival) for rival in rivals if rival in self.methods(results.scale)}
        worst = max((ratio for by_n in ratios.values() for ratio in by_n.values()), key=lambda ratio: ratio.value)
        notes = []
        for rival, by_n in ratios.items():
            there = self.against(results, rival, "visited")
            words = ", ".join(f"{n:,}: {r} ({there[n].value:.3g})" for n, r in by_n.items())
            notes.append(f"{self.roster[rival].label}{self.swept(results, rival)}: {words}")
        note = "; ".join(notes) + "; in brackets at states that a stream visits"
        return Finding(below(worst, 1.0), worst, "RMSE of Krylov LSTD over theirs, worst case", note)

    def swept(self, results: Results, name: str) -> str:
        """Say for how many numbers of samples the sweep of a method ended inside its axes, if it has one."""
        if not self.roster[name].axes:
            return ""
        inside = results[self.sweep(results.scale, name)].columns["inside"]
        return f" (best setting inside the sweep for {int(inside.sum())} of {len(inside)} numbers of samples)"

    def streaming(self, results: Results) -> Finding:
        """Decide whether a solution at every step costs accuracy."""
        batch, stream = OURS
        ratios = self.against(results, batch, ours=stream)
        worst = max(ratios.values(), key=lambda ratio: ratio.value)
        note = ", ".join(f"{n:,}: {ratio}" for n, ratio in ratios.items())
        return Finding(below(worst, STREAM), worst, "RMSE of the stream over that of batch solutions, worst case", note)


@lru_cache(maxsize=256)
def _column(here: Contest, results: Results, name: str, column: str) -> FloatArray:
    timed, found = column == "seconds", dict[int, FloatArray]()
    for group in here.groups(results, name):
        values = results.column(here.runs_of(results, name, group, timed=timed and here.apart), column)
        found |= {n: values[:, i] for i, n in enumerate(group.samples)}
    together = np.stack([found[n] for n in here.samples(results.scale, name)], axis=1)
    errors = together if timed else np.minimum(together, 2.0 * here.zero(results))
    errors.flags.writeable = False  # the next who asks gets it too
    return errors


class _Dense(Contest):
    """A problem with RBFs, where everybody needs a hundred times the time: up to 4,000 samples, smaller sweeps."""

    reported: ClassVar[int] = 30

    def shared(self, scale: Scale) -> bool:
        """Return whether LSTD's candidates share their matrices in runs that are not timed."""
        return scale == "paper"

    def every(self, scale: Scale) -> tuple[int, ...]:
        """Return the numbers of samples, at paper scale about those of figure 2."""
        return UP_TO_4000 if scale == "paper" else super().every(scale)

    def effort(self, scale: Scale, name: str) -> Effort:
        """Return how many runs a method is given."""
        usual = super().effort(scale, name)
        if scale != "paper":
            return usual
        runs = {SLOW: 5, SLOWEST: 3}.get(METHODS[name].effort, self.reported)
        streams, tries = {"iLSTD": (1, 8), "replay TD": (2, 40)}.get(name, (usual.streams, usual.tries))
        return Effort(runs, 1 if METHODS[name].effort in (SLOW, SLOWEST) else usual.timed, streams, tries)

    def axes(self, scale: Scale, name: str) -> Mapping[str, tuple[float, ...]]:
        """Return what is tuned of a method, at paper scale with up to 64 passes."""
        axes = super().axes(scale, name)
        return {**axes, "passes": (*PASSES, 64)} if scale == "paper" and "passes" in axes else axes


class _Samples(Contest):
    """Error against samples."""

    def claims(self) -> Sequence[Claim]:
        """Return what the results decide."""
        text = 'From the same samples Krylov LSTD with "auto" has a lower error than {}.'
        made = [
            Claim(f"{self.name}-{key}", BEYOND, text.format(words), lambda results, r=rivals: self.versus(results, r))  # type: ignore[misc]
            for key, (words, rivals) in RIVALS.items()
        ]
        statement = f"With a solution at every step Krylov LSTD has at most {STREAM:g} times the error of a batch one."
        return (*made, Claim(f"{self.name}-stream", BEYOND, statement, self.streaming))


class Time(Contest):
    """Error against CPU time."""

    timed = True

    def chart(self, results: Results) -> Chart:
        """Return a line per method, and the time from which on the claim is decided."""
        series = []
        for name in self.methods(results.scale):
            method, seconds = self.roster[name], self.column(results, name, "seconds").mean(axis=0)
            look = {"dash": method.dash, "marker": method.marker or "o", "size": 2.5}
            look |= {"width": 1.6 if name in OURS else 1.0, "hollow": not method.marker}
            errors = self.column(results, name, "rmse")
            series.append(curve(seconds, errors, method.label, method.colour, **look))
        start = Rule("x", self.first(results))
        return Chart(
            series, Axis("CPU seconds", log=True), Axis("RMSE", log=True), (start,), legend=Legend("below", 2, 5.6)
        )

    def first(self, results: Results) -> float:
        """Twice TD's time for 1,000 samples."""
        samples = self.samples(results.scale, "TD")
        at = samples.index(FROM) if FROM in samples else -1
        return 2.0 * float(self.column(results, "TD", "seconds").mean(axis=0)[at])

    def claims(self) -> Sequence[Claim]:
        """Return what the results decide."""
        statement = (
            "At every CPU time from twice that of TD for 1,000 samples on, Krylov LSTD, from as many samples as it can "
            "solve for in that time, has the lowest error."
        )
        return (Claim(f"{self.name}-wins", BEYOND, statement, self.wins),)

    def at(self, results: Results, seconds: float, names: Sequence[str]) -> tuple[str, FloatArray]:
        """Return the best of some methods within a time, and the errors of its runs."""
        best, least = "nobody", np.full(self.effort(results.scale, OURS[0]).runs, self.zero(results))
        for name in names:
            fits = np.flatnonzero(self.column(results, name, "seconds").mean(axis=0) <= seconds)
            if fits.size:
                errors = self.column(results, name, "rmse")[:, fits[-1]]
                if errors.mean() < least.mean():
                    best, least = name, errors
        return best, least

    def wins(self, results: Results) -> Finding:
        """Decide whether Krylov LSTD has the lowest error."""
        others = [name for name in self.methods(results.scale) if name not in OURS]
        return self.race(results, OURS, others, "Krylov LSTD", "the best other's")

    def race(
        self, results: Results, ours: Sequence[str], others: Sequence[str], our_name: str, their_name: str
    ) -> Finding:
        """Decide by the worst of many CPU times; the note says who wins when, and by how much."""
        last = max(
            float(self.column(results, name, "seconds").mean(axis=0).max()) for name in self.methods(results.scale)
        )
        times, winners, ratios = np.geomspace(self.first(results), last, TIMES), [], []
        for seconds in times:
            one, mine = self.at(results, seconds, ours)
            best, theirs = self.at(results, seconds, others)
            runs = min(len(mine), len(theirs))
            ratio = interval(lambda a, b: float(a.mean() / b.mean()), mine[:runs], theirs[:runs], paired=runs > 1)
            ratios.append(ratio)
            winners.append(one if ratio.high < 1.0 else best if ratio.low > 1.0 else f"{one} or {best}")
        worst = max(ratios, key=lambda ratio: ratio.value)
        won = sum(ratio.high < 1.0 for ratio in ratios)
        verdict: Verdict = "reproduced" if won == TIMES else "partly" if 2 * won >= TIMES else "not"
        what = f"RMSE of {our_name} over {their_name}, worst CPU time"
        return Finding(verdict, worst, what, spans(times, winners, ratios))


def spans(times: FloatArray, winners: Sequence[str], ratios: Sequence[OverRuns]) -> str:
    """Who wins from when on, and our error over that of the best other, there or from the first to the last ratio.

    Example
    -------
    >>> ratios = [OverRuns(2.0, 1.9, 2.1), OverRuns(1.5, 1.4, 1.6), OverRuns(0.9, 0.8, 0.95)]
    >>> spans(np.array([0.01, 0.02, 1.5]), ["TD", "TD", "Krylov LSTD"], ratios)
    'from 10 ms TD: 2 [1.9, 2.1] to 1.5 [1.4, 1.6]; from 1.5 s Krylov LSTD: 0.9 [0.8, 0.95]'
    """
    found, at = [], 0
    for winner, members in groupby(winners):
        end = at + len(list(members))
        words = list(dict.fromkeys(str(ratio) for ratio in (ratios[at], ratios[end - 1])))
        when = f"{times[at]:.2g} s" if times[at] >= 1.0 else f"{1e3 * times[at]:.0f} ms"
        found.append(f"from {when} {winner}: {' to '.join(words)}")
        at = end
    return "; ".join(found)


_CAPTION = (
    "{title}: everybody learns from the same {samples} samples. TD, replay, iLSTD and ATD are tuned on other seeds for "
    "each number of samples by itself (α, λ, constant or decaying steps, 2 to {passes} passes; until no neighbour is "
    "better or the tries are used up); t-LSTD has λ=1 and the cut-off 0.01, LSTD and Krylov LSTD λ=0.9; what is called "
    "chosen is chosen by held-out data from the same samples. A diverged run counts as twice the error of zero. "
    "{more}Paper scale: {runs}"
)
_RUNS = (
    "30 runs; iLSTD (up to 4,000 samples), LSTD with a ridge and t-LSTD of rank 200: 10; ATD (up to 4,000) and other "
    "chosen ones: 5."
)
_DENSE_RUNS = (
    "{} runs; iLSTD, LSTD with a ridge and t-LSTD of rank 200: 5; ATD and other chosen ones: 3. The sweeps of iLSTD "
    "and ATD have 8 tries on one stream."
)
_NO_LSTD = (
    "LSTD does not take part: after 1,000 samples it has seen 13,900 features, a solution takes 44 seconds and 1.5 GB, "
    "and choosing a ridge 26 of them; after 10,000 samples A would have 9.4 GB. "
)
_TIME = " CPU time of learning, choosing and solving once, runs that are timed alone (3; of the slowest methods 1)."


def _caption(title: str, samples: str, passes: int, runs: str, more: str = "") -> str:
    return _CAPTION.format(title=title, samples=samples, passes=passes, runs=runs, more=more)


class Energy(_Samples):
    """Energy storage."""

    name, problem = "contest-energy", "energy"
    title = "All methods, energy"
    caption = _caption("Energy storage, 40,001 tiles", "10,000", 32, _RUNS, _NO_LSTD)


class EnergyTime(Time):
    """Energy storage."""

    name, problem = "contest-energy-time", "energy"
    title = "All methods, energy, CPU time"
    caption = Energy.caption + _TIME


class CarTiles(_Samples):
    """Mountain Car with tiles."""

    name, problem = "contest-car-tiles", "car-tiles"
    title = "All methods, Mountain Car, tiles"
    caption = _caption("Mountain Car, 1,000 tiles", "10,000", 32, _RUNS)


class CarTilesTime(Time):
    """Mountain Car with tiles."""

    name, problem = "contest-car-tiles-time", "car-tiles"
    title = "All methods, Mountain Car, tiles, CPU time"
    caption = CarTiles.caption + _TIME


class CarRBF(_Dense, _Samples):
    """Mountain Car with RBFs."""

    name, problem = "contest-car-rbf", "car-rbf"
    title = "All methods, Mountain Car, RBFs"
    caption = _caption("Mountain Car, 1,024 RBFs", "4,000", 64, _DENSE_RUNS.format(30))


class CarRBFTime(_Dense, Time):
    """Mountain Car with RBFs."""

    name, problem = "contest-car-rbf-time", "car-rbf"
    title = "All methods, Mountain Car, RBFs, CPU time"
    caption = CarRBF.caption + _TIME


class Pendulum(_Dense, _Samples):
    """Pendulum with RBFs."""

    name, problem = "contest-pendulum", "pendulum-rbf"
    reported = 10
    title = "All methods, Pendulum, RBFs"
    caption = _caption("Pendulum, 1,024 RBFs", "4,000", 64, _DENSE_RUNS.format(10))


class PendulumTime(_Dense, Time):
    """Pendulum with RBFs."""

    name, problem = "contest-pendulum-time", "pendulum-rbf"
    reported = 10
    title = "All methods, Pendulum, RBFs, CPU time"
    caption = Pendulum.caption + _TIME
