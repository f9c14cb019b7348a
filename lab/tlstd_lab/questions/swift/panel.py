"""Panel: the error of SwiftTD and of true-online TD over seven decades of their parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd_lab.chart import COLOURS, DASHED, DOTTED, SOLID, Axis, Chart, Legend, curve
from tlstd_lab.claims import BEYOND, Claim, Finding, above, below
from tlstd_lab.panel import Panel, Results, Scale, pick, seeds, specs
from tlstd_lab.spec import RunSpec
from tlstd_lab.statistics import interval

SAMPLES = {"smoke": 100, "quick": 4_000, "paper": 4_000}
PROBLEMS = {"walk": SOLID, "car-tiles": DASHED, "energy": DOTTED}
DECADES = tuple(range(-3, 4))
USUAL: dict[str, Any] = {"class": "SwiftTD", "lambda_": 0.9}
GRIDS: dict[str, list[dict[str, Any]]] = {
    "meta step size": [USUAL | {"meta_step_size": 10.0 ** (k - 3)} for k in DECADES],
    "initial step size": [USUAL | {"initial_step_size": 10.0 ** (k - 4)} for k in DECADES],
    "step size": [{"class": "TrueOnlineTD", "lambda_": 0.9, "step_size": 10.0 ** (k - 1)} for k in DECADES],
}
"""What is varied. SwiftTD's step sizes begin at most at its bound, 0.1; those of true-online TD are divided by ‖x‖²."""
LOOKS = {
    "meta step size": ("SwiftTD, meta step size", COLOURS["SwiftTD"]),
    "initial step size": ("SwiftTD, first step size", COLOURS["Krylov LSTD"]),
    "step size": ("true-online TD, step size", COLOURS["true-online TD"]),
}
PARTS: dict[str, Mapping[str, float]] = {
    "step sizes not optimised": {"meta_step_size": 0.0},
    "no bound": {"rate_bound": 1.0},
    "no decay": {"step_size_decay": 1.0},
}


class Swift(Panel):
    """Error over that of zero against the parameter."""

    name = "swift"
    title = "SwiftTD over seven decades of its parameters"
    caption = (
        "RMSE after 4,000 samples over that of zero, on the random walk (solid), Mountain Car's tiles (dashed) and "
        "energy storage (dotted), λ=0.9; diverged runs count as 2. Decades from a meta step size of 10⁻³, a first step "
        "size of 10⁻⁴, and 0.1/‖x‖² for true-online TD. SwiftTD was published on Atari games, which are not here."
    )
    size = (3.6, 3.4)

    def runs_of(self, scale: Scale, problem: str, estimator: Mapping[str, Any]) -> list[RunSpec]:
        """Return the runs of a setting on a problem."""
        settings = {"problem": problem, "estimator": dict(estimator), "samples": (pick(SAMPLES, scale),)}
        return specs("contest", settings, seeds(pick({"smoke": 1, "quick": 10, "paper": 30}, scale)))

    def runs(self, results: Results) -> list[RunSpec]:
        """Return all."""
        settings = [setting for grid in GRIDS.values() for setting in grid]
        settings += [USUAL, *(USUAL | dict(part) for part in PARTS.values())]
        unique = {spec.key: spec for p in PROBLEMS for s in settings for spec in self.runs_of(results.scale, p, s)}
        return list(unique.values())

    def errors(self, results: Results, problem: str, estimator: Mapping[str, Any]) -> FloatArray:
        """Return the errors of the runs over that of zero, at most 2."""
        runs = self.runs_of(results.scale, problem, estimator)
        rmse, zero = (results.column(runs, name)[:, 0] for name in ("rmse", "zero"))
        return np.asarray(np.minimum(rmse / zero, 2.0))

    def over_grid(self, results: Results, problem: str, grid: str) -> FloatArray:
        """Return the errors of all values of a parameter, (runs, values)."""
        return np.array([self.errors(results, problem, setting) for setting in GRIDS[grid]]).T

    def chart(self, results: Results) -> Chart:
        """Return a line per parameter and problem."""
        series = [
            curve(DECADES, self.over_grid(results, problem, grid), label, colour, kind=problem, dash=dash, marker="")
            for grid, (label, colour) in LOOKS.items()
            for problem, dash in PROBLEMS.items()
        ]
        return Chart(series, Axis("decades"), Axis("RMSE over that of zero", log=True), legend=Legend("below", 2, 5.6))

    def claims(self) -> Sequence[Claim]:
        """Return what the publication says of its parameters and parts, on problems that it does not have."""
        return (
            Claim(
                "swift-meta",
                BEYOND,
                "Over seven decades SwiftTD loses less by its meta step size than true-online TD by its step size.",
                self._range("meta step size"),
            ),
            Claim(
                "swift-initial",
                BEYOND,
                "Over seven decades SwiftTD loses less by its first step size than true-online TD by its step size.",
                self._range("initial step size"),
            ),
            Claim(
                "swift-parts",
                BEYOND,
                "Each of SwiftTD's three parts lowers its error: optimised step sizes, the bound, and the decay.",
                self._parts,
            ),
        )

    def _range(self, grid: str) -> Callable[[Results], Finding]:
        def judge(results: Results) -> Finding:
            swift, other = (
                [self.over_grid(results, problem, which) for problem in PROBLEMS] for which in (grid, "step size")
            )
            number = interval(lambda *e: float(np.mean([loss(a) / loss(b) for a, b in pairs(e)])), *swift, *other)
            words = [
                f"{problem}: {loss(a):.3g} of at best {a.mean(axis=0).min():.3g}, and {loss(b):.3g} of "
                f"{b.mean(axis=0).min():.3g}"
                for problem, a, b in zip(PROBLEMS, swift, other, strict=True)
            ]
            what = "error over the best of all values, geometric mean, over the same of true-online TD"
            return Finding(below(number, 1.0), number, what, "; ".join(words))

        return judge

    def _parts(self, results: Results) -> Finding:
        whole = [self.errors(results, problem, USUAL) for problem in PROBLEMS]
        found, notes = {}, []
        for words, part in PARTS.items():
            without = [self.errors(results, problem, USUAL | dict(part)) for problem in PROBLEMS]
            found[words] = interval(mean_ratio, *without, *whole)
            singly = ", ".join(
                f"{p} {a.mean() / b.mean():.3g}" for p, a, b in zip(PROBLEMS, without, whole, strict=True)
            )
            notes.append(f"{words}: {found[words]} ({singly})")
        least = min(found, key=lambda words: found[words].value)
        what = f"RMSE without over with it, geometric mean of problems, {least}: the least"
        return Finding(above(found[least], 1.0), found[least], what, "; ".join(notes))


def pairs(arrays: Sequence[FloatArray]) -> list[tuple[FloatArray, FloatArray]]:
    """Each of the first half of the arrays with its partner in the second half."""
    n = len(arrays) // 2
    return list(zip(arrays[:n], arrays[n:], strict=True))


def mean_ratio(*errors: FloatArray) -> float:
    """Geometric mean over problems of the first half's mean errors over those of the second half."""
    return float(np.exp(np.mean([np.log(a.mean() / b.mean()) for a, b in pairs(errors)])))


def loss(errors: FloatArray) -> float:
    """How much worse than the best value the values of a parameter are, in the geometric mean, of (runs, values).

    Example
    -------
    >>> round(loss(np.array([[1.0, 4.0], [3.0, 4.0]])), 9)   # means of 2 and 4
    1.414213562
    """
    means = errors.mean(axis=0)
    return float(np.exp(np.log(means / means.min()).mean()))
