"""Figure B.7: run time of t-LSTD against its rank and of iLSTD against m."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd_lab.chart import COLOURS, DASHED, SOLID, Axis, Chart, curve
from tlstd_lab.claims import Claim, Finding, below
from tlstd_lab.panel import Panel, Results, Scale, pick, seeds, specs
from tlstd_lab.spec import RunSpec
from tlstd_lab.statistics import OverRuns, interval


class Line(NamedTuple):
    """A learner whose size grows."""

    method: Literal["t-LSTD", "iLSTD"]
    each: bool
    """Whether it is read at every step."""

    def __str__(self) -> str:
        return f"{self.method}, read {'at every step' if self.each else 'once'}"

    def estimator(self, number: int) -> dict[str, Any]:
        """The learner; read at every step, t-LSTD has a buffer of r samples, which is the paper's k=1."""
        if self.method == "iLSTD":
            return {"class": "ILSTD", "lambda_": 0.9, "step_size": [1e-3, 100], "coordinates_per_step": number}
        model = {"class": "TLSTD", "rank": number, "lambda_": 1.0, "rcond": 0.01}
        return model | {"buffer_size": number} if self.each else model


LINES = (Line("t-LSTD", False), Line("t-LSTD", True), Line("iLSTD", False), Line("iLSTD", True))


class RunTimes(Panel):
    """Figure B.7."""

    name = "B.7"
    title = "Run time against r and m, energy"
    caption = (
        "CPU time of trajectories of 500 steps in the energy domain (paper scale: 30), each learned from the "
        "beginning, with nothing else of this command running. Solid: all steps at once and the weights read at the "
        "end. Dashed: one by one, with a prediction after every step, for t-LSTD with a buffer of r samples, which "
        "is the paper's k=1 (paper scale: 10 trajectories). iLSTD's step size (α₀=0.001, N₀=100) does not matter "
        "for its time."
    )

    def scale(self, scale: Scale) -> dict[str, Any]:
        """Return trajectories, those of learners that are read at every step, steps, and values of r and m."""
        every = (5, 10, 20, 40, 60, 80, 100)
        return {
            "runs": pick({"smoke": 1, "quick": 5, "paper": 30}, scale),
            "each": pick({"smoke": 1, "quick": 2, "paper": 10}, scale),
            "steps": pick({"smoke": 100, "quick": 500, "paper": 500}, scale),
            "numbers": pick({"smoke": (5, 20), "quick": (5, 10, 20, 50, 100), "paper": every}, scale),
        }

    def line_runs(self, scale: Scale, line: Line, number: int) -> list[RunSpec]:
        """One learner of one size."""
        size = self.scale(scale)
        model = line.estimator(number)
        settings = {"problem": "energy", "estimator": model, "steps": size["steps"], "each": line.each}
        return specs("runtime", settings, seeds(size["each"] if line.each else size["runs"]), timed=True)

    def runs(self, results: Results) -> list[RunSpec]:
        """Return all learners of all sizes."""
        numbers = self.scale(results.scale)["numbers"]
        wanted = [spec for line in LINES for number in numbers for spec in self.line_runs(results.scale, line, number)]
        return sorted(wanted, key=lambda spec: spec.seed)

    def times(self, results: Results, line: Line) -> FloatArray:
        """Return the seconds of each trajectory (runs, numbers)."""
        numbers = self.scale(results.scale)["numbers"]
        columns = [results.column(self.line_runs(results.scale, line, n), "seconds")[:, 0] for n in numbers]
        return np.stack(columns, axis=1)

    def chart(self, results: Results) -> Chart:
        """Return seconds against r or m."""
        size = self.scale(results.scale)
        series = [
            curve(
                size["numbers"],
                self.times(results, line),
                str(line),
                COLOURS[line.method],
                dash=DASHED if line.each else SOLID,
                marker="o" if line.method == "t-LSTD" else "^",
            )
            for line in LINES
        ]
        y = Axis(f"seconds per {size['steps']} steps", log=True)
        return Chart(series, Axis("r (t-LSTD) or m (iLSTD)", log=True), y)

    def claims(self) -> Sequence[Claim]:
        """Return what appendix B says of this panel."""
        return (
            Claim(
                "B.7-scales",
                "appendix B, figure B.7",
                "t-LSTD's run time grows more slowly with the rank than iLSTD's with m.",
                self._scales,
            ),
            Claim(
                "B.7-linear",
                "appendix B, figure B.7",
                "The run times of both grow in proportion to r and to m, or more slowly.",
                self._linear,
            ),
        )

    def slopes(self, results: Results, line: Line) -> OverRuns:
        """Return the exponent of the growth of time."""
        numbers = self.scale(results.scale)["numbers"]
        return interval(lambda times: exponent(numbers, times), self.times(results, line))

    def _scales(self, results: Results) -> Finding:
        numbers = self.scale(results.scale)["numbers"]
        found = {}
        for each in (False, True):
            pair = self.times(results, Line("t-LSTD", each)), self.times(results, Line("iLSTD", each))
            found[each] = interval(lambda ours, theirs: exponent(numbers, ours) - exponent(numbers, theirs), *pair)
        verdict = below(found[True], 0.0)
        if (found[False].high < 0.0) != (verdict == "reproduced"):
            verdict = "partly"
        growth = {
            line: float(np.diff(self.times(results, line).mean(axis=0)[[0, -1]])[0]) / (numbers[-1] - numbers[0])
            for line in LINES
        }
        note = (
            f"read once: {found[False]}; exponents: "
            + ", ".join(f"{line} {self.slopes(results, line)}" for line in LINES)
            + "; ms more per unit of r or m: "
            + ", ".join(f"{line} {1e3 * value:.3g}" for line, value in growth.items())
        )
        return Finding(verdict, found[True], "exponent of t-LSTD's growth minus iLSTD's, read at every step", note)

    def _linear(self, results: Results) -> Finding:
        found = {line: self.slopes(results, line) for line in LINES}
        steepest = max(found, key=lambda line: found[line].value)
        numbers = self.scale(results.scale)["numbers"]
        ends = {line: self.times(results, line).mean(axis=0)[[0, -1]] for line in LINES}
        note = "; ".join(
            f"{line}: {low:.2g} s at {numbers[0]}, {high:.2g} s at {numbers[-1]}" for line, (low, high) in ends.items()
        )
        what = f"largest exponent of the growth of time ({steepest})"
        return Finding(below(found[steepest], 1.1, partly=1.5), found[steepest], what, note)


def exponent(numbers: Sequence[int], times: FloatArray) -> float:
    """The slope of log mean time (runs, numbers) against log number, by least squares.

    Example
    -------
    >>> round(exponent([1, 2, 4], np.array([[1.0, 4.0, 16.0]])), 6)
    2.0
    """
    x = np.log(numbers) - np.log(numbers).mean()
    return float(x @ np.log(times.mean(axis=0)) / (x @ x))
