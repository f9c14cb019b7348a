"""Figure 2b: error against CPU time on Mountain Car with RBFs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd_lab.chart import DASHED, SOLID, Axis, Chart, curve
from tlstd_lab.claims import Claim, Finding, below
from tlstd_lab.panel import Panel, Results, Scale, best, pick, seeds, specs
from tlstd_lab.questions.figure_2.curves import (
    LARGE,
    LEGEND,
    LSTD,
    PRINTED,
    SIZES,
    SMALL,
    TD,
    Method,
    by_seed,
    candidates,
    least_squares,
    tuned_estimator,
    worded,
)
from tlstd_lab.questions.figure_2.panel_a import CarRBFSamples
from tlstd_lab.spec import RunSpec
from tlstd_lab.statistics import OverRuns, interval

TIMED_SAMPLES = {"smoke": (200, 500), "quick": (100, 200, 500, 1000, 2000, 4000)}
TIMED_SAMPLES["paper"] = TIMED_SAMPLES["quick"]
"""Of LSTD and t-LSTD; TD has twice the last of them too."""

BUDGETS = 25
"""CPU times that errors are compared at."""


class Line(NamedTuple):
    """A method, as printed or (as TD and LSTD always are) with its best parameters."""

    method: Method
    tuned: bool = True


class CarRBFTime(Panel):
    """Figure 2b."""

    name = "2b"
    title = "RMSE against CPU time, Mountain Car, RBFs"
    caption = (
        "CPU time of learning from 100 to 8,000 (TD) or 4,000 samples and of solving once; each point learns anew, "
        "data generation is not timed, one BLAS thread, timed runs run alone. k=r; LSTD is solved by an SVD. α and λ "
        "of TD, and the cut-off of LSTD at λ=0, are chosen on other seeds; t-LSTD has λ=0 and the cut-off 0.01 (solid) "
        "or its best ones (dashed)."
    )
    size = (3.4, 3.0)
    problem = CarRBFSamples.problem
    """The sweeps of LSTD and t-LSTD are those of figure 2a."""

    def td_samples(self, scale: Scale) -> tuple[int, ...]:
        """Return TD's numbers of samples."""
        samples = pick(TIMED_SAMPLES, scale)
        return (*samples, 2 * samples[-1])

    def td_candidates(self, scale: Scale) -> list[list[RunSpec]]:
        """Return TD's sweep with as many samples as it is given here."""
        found = []
        for runs in candidates(self.problem, scale, TD):
            longer = runs[0].plain_settings() | {"samples": self.td_samples(scale)}
            found.append(specs("curve", longer, [spec.seed for spec in runs]))
        return found

    def lstd_candidates(self, scale: Scale) -> list[list[RunSpec]]:
        """Return LSTD's sweep at λ=0, the only one for which the paper's faster implementation worked."""
        return [runs for runs in candidates(self.problem, scale, LSTD) if runs[0].settings["estimator"]["lambda_"] == 0]

    def tuning(self, scale: Scale) -> list[RunSpec]:
        """Return the sweeps of TD and LSTD, and that of t-LSTD with the large rank."""
        groups = [*self.td_candidates(scale), *self.lstd_candidates(scale), *candidates(self.problem, scale, LARGE)]
        return by_seed(spec for runs in groups for spec in runs)

    def lines(self, results: Results) -> dict[Line, list[RunSpec]]:
        """Return the timed runs of each line."""
        scale, samples = results.scale, pick(TIMED_SAMPLES, results.scale)
        chosen = {
            Line(TD): best(results, self.td_candidates(scale))["estimator"],
            Line(LSTD): best(results, self.lstd_candidates(scale))["estimator"],
            Line(LARGE, tuned=False): least_squares(LARGE, PRINTED),
            Line(SMALL, tuned=False): least_squares(SMALL, PRINTED),
            Line(LARGE): tuned_estimator(results, self.problem, LARGE),
        }
        length = self.td_samples(scale)[-1]
        found = {}
        for line, estimator in chosen.items():
            counts = self.td_samples(scale) if line.method == TD else samples
            timed = {"problem": self.problem, "estimator": estimator, "samples": counts, "length": length}
            found[line] = specs("budget", timed, seeds(pick(SIZES, scale).runs), timed=True)
        return found

    def runs(self, results: Results) -> list[RunSpec]:
        """Return the timed runs."""
        return by_seed(spec for runs in self.lines(results).values() for spec in runs)

    def chart(self, results: Results) -> Chart:
        """Return mean RMSE against mean CPU time."""
        series = []
        for (method, tuned), runs in self.lines(results).items():
            label = f"{method}, {worded(runs[0].plain_settings()['estimator'])}"
            seconds, dash = results.column(runs, "seconds").mean(axis=0), DASHED if tuned and method != TD else SOLID
            look: dict[str, Any] = {"colour": method.colour, "marker": method.marker, "dash": dash}
            series.append(curve(seconds, results.column(runs, "rmse"), label, **look))
        return Chart(series, Axis("CPU seconds", log=True), Axis("RMSE", log=True), legend=LEGEND)

    def claims(self) -> Sequence[Claim]:
        """Return what section 5 and the caption say of this panel."""
        return (
            Claim(
                "2b-td-lstd",
                "section 5, figure 2b",
                "For a given CPU time TD has a lower error than LSTD.",
                lambda results: self._lower(results, Line(TD), 1.0),
            ),
            Claim(
                "2b-tlstd-lstd",
                "caption of figure 2b",
                "For a given CPU time t-LSTD (r=100) has a much lower error than LSTD.",
                lambda results: self._lower(results, Line(LARGE, tuned=False), 0.67),
            ),
            Claim(
                "2b-matches-td",
                "caption of figure 2b",
                "For a given CPU time t-LSTD (r=100) has nearly TD's error.",
                self._matches,
            ),
            Claim(
                "2b-run-time",
                "section 5, figure 2b",
                "t-LSTD (r=100) needs about TD's CPU time for the same error: fewer samples make up for costlier ones.",
                self._run_time,
            ),
        )

    def points(self, results: Results, line: Line) -> tuple[FloatArray, FloatArray]:
        """CPU seconds and RMSE of a line, each (runs, points)."""
        runs = self.lines(results)[line]
        return results.column(runs, "seconds"), results.column(runs, "rmse")

    def _lower(self, results: Results, line: Line, bound: float) -> Finding:
        lstd, other = self.points(results, Line(LSTD)), self.points(results, line)
        number = interval(errors_in_time, *other, *lstd)
        sooner = _times(_time_to_first, *other, *lstd)
        verdict = below(number, bound, partly=1.0)
        if verdict == "not" and below(sooner, 1.0) == "reproduced":
            verdict = "partly"
        note = f"CPU time until LSTD's first error, over LSTD's: {sooner}; {_costs((line.method, other), (LSTD, lstd))}"
        if not line.tuned:
            tuned = interval(errors_in_time, *self.points(results, Line(line.method)), *lstd)
            note += f"; with t-LSTD's best λ and cut-off: {tuned}"
        return Finding(
            verdict, number, f"RMSE of {line.method} over LSTD's, mean over the CPU times for which LSTD has any", note
        )

    def _matches(self, results: Results) -> Finding:
        td = self.points(results, Line(TD))
        number = interval(errors_in_time, *self.points(results, Line(LARGE, tuned=False)), *td)
        tuned = interval(errors_in_time, *self.points(results, Line(LARGE)), *td)
        small = interval(errors_in_time, *self.points(results, Line(SMALL, tuned=False)), *td)
        later = "TD's last error stands for later times"
        note = f"with t-LSTD's best λ and cut-off: {tuned}; r={SMALL.rank}: {small}. {later}"
        what = "RMSE of t-LSTD over TD's, mean over the CPU times for which both have any"
        return Finding(below(number, 1.1, partly=1.5), number, what, note)

    def _run_time(self, results: Results) -> Finding:
        td, t_lstd = self.points(results, Line(TD)), self.points(results, Line(LARGE, tuned=False))
        number = _times(_time_to_common, *t_lstd, *td)
        tuned = _times(_time_to_common, *self.points(results, Line(LARGE)), *td)
        note = f"with t-LSTD's best λ and cut-off: {tuned}; {_costs((LARGE, t_lstd), (TD, td))}"
        what = "CPU time of t-LSTD over TD's until the lowest error that both reach"
        return Finding(below(number, 2.0, partly=5.0), number, what, note)


def errors_in_time(a_seconds: FloatArray, a_rmse: FloatArray, b_seconds: FloatArray, b_rmse: FloatArray) -> float:
    """Mean error of one method over that of another, averaged over CPU times for which both have an answer.

    The times are spaced evenly in their logarithm from the later first answer to the later last one; what a method
    reaches with its last sample stands from then on.
    """
    a, b = _mean_curve(a_seconds, a_rmse), _mean_curve(b_seconds, b_rmse)
    times = np.linspace(max(a[0][0], b[0][0]), max(a[0][-1], b[0][-1]), BUDGETS)
    return float(np.interp(times, *a).mean() / np.interp(times, *b).mean())


def _mean_curve(seconds: FloatArray, rmse: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Logarithm of the mean times (made rising) and mean errors."""
    return np.log(np.maximum.accumulate(seconds.mean(axis=0))), np.minimum(rmse, 1e6).mean(axis=0)


def _time_to(level: float, curve: tuple[FloatArray, FloatArray]) -> float:
    """Logarithm of the time at which a curve first comes down to a level; infinite if it does not."""
    times, errors = curve
    reached = np.flatnonzero(errors <= level)
    if reached.size == 0:
        return np.inf
    i = int(reached[0])
    if i == 0:
        return float(times[0])
    share = (errors[i - 1] - level) / (errors[i - 1] - errors[i])
    return float(times[i - 1] + share * (times[i] - times[i - 1]))


def _times(statistic: Callable[..., float], *samples: FloatArray) -> OverRuns:
    """The interval of a ratio of times; what lies between or beyond infinite draws is infinite."""
    found = interval(statistic, *samples)
    value, low, high = (np.inf if np.isnan(x) else x for x in found[:3])
    return OverRuns(value, low, high, found.runs)


def _time_to_first(a_seconds: FloatArray, a_rmse: FloatArray, b_seconds: FloatArray, b_rmse: FloatArray) -> float:
    """Time of a until b's first error, over b's."""
    a, b = _mean_curve(a_seconds, a_rmse), _mean_curve(b_seconds, b_rmse)
    return float(np.exp(_time_to(float(b[1][0]), a) - b[0][0]))


def _time_to_common(a_seconds: FloatArray, a_rmse: FloatArray, b_seconds: FloatArray, b_rmse: FloatArray) -> float:
    """Time of a until the lowest error that both reach, over that of b."""
    a, b = _mean_curve(a_seconds, a_rmse), _mean_curve(b_seconds, b_rmse)
    level = float(max(a[1].min(), b[1].min()))
    return float(np.exp(_time_to(level, a) - _time_to(level, b)))


def _costs(*costs: tuple[Method, tuple[FloatArray, FloatArray]]) -> str:
    """Last times and errors of methods in words."""
    ends = [
        f"{method} {seconds.mean(axis=0)[-1]:.2g} s, {errors.mean(axis=0)[-1]:.3g}"
        for method, (seconds, errors) in costs
    ]
    return f"CPU time and RMSE of all samples: {'; '.join(ends)}"
