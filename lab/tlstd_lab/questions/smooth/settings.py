"""What the panels with smooth features share: methods, sizes, sweeps.

As in figure 3 t-LSTD has λ=1 and LSTD, Krylov LSTD and the grids of iLSTD λ=0.9. The cut-off of t-LSTD is the paper's
0.01 and the library's 10⁻⁴. TD, true-online TD and iLSTD are tuned as in the contest: step size, λ and decay, for each
number of samples by itself, and once more for the whole curve.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd_lab.chart import COLOURS, DASH_DOT, DASHED, DOTTED, SOLID, Axis, Chart, Dash, Legend, Note, Rule, Series
from tlstd_lab.panel import Results, Scale, pick, seeds, specs
from tlstd_lab.questions.contest.methods import (
    ALPHAS,
    CHEAP,
    DECAYS,
    FEW,
    LAMBDAS,
    REPEATED,
    RIDGES,
    SLOW,
    SLOWEST,
    Effort,
    Method,
    filled,
)
from tlstd_lab.questions.contest.methods import METHODS as CONTEST
from tlstd_lab.questions.contest.panel import Contest
from tlstd_lab.questions.figure_3.settings import COORDINATES, RANKS, SMALL_RANKS, M, floor
from tlstd_lab.questions.figure_3.settings import DECAYS as GRID_DECAYS
from tlstd_lab.spec import RunSpec

PROBLEM = "energy-fourier"
PAPERS, OURS = "0.01", "1e-4"
"""Cut-offs: that of the paper, and the library's."""
EVERY = ", every sample"
"""Names of methods that truncate after every sample."""
EXPONENTS = tuple(range(-11, 0))
"""Of two, the paper's α₀; here in units of 1/‖x‖²."""

SAMPLES: dict[str, tuple[int, ...]] = {
    "smoke": (100, 200),
    "quick": (200, 500, 1_000, 2_000),
    "paper": (200, 400, 600, 800, 1_000, 2_000, 4_000, 7_000, 10_000),
}
EFFORTS: dict[Scale, tuple[Effort, ...]] = {
    "smoke": (Effort(1, 1, 1, 2),) * 4,
    "quick": (Effort(5, 1, 2, 40), Effort(3, 0, 1, 1), Effort(3, 1, 1, 8), Effort(3, 1, 1, 1)),
    "paper": (Effort(30, 3, 3, 400), Effort(5, 0, 1, 1), Effort(30, 3, 2, 90), Effort(10, 3, 1, 1)),
}
"""By scale: everybody, side questions, iLSTD, and LSTD with a chosen ridge."""


class Size(NamedTuple):
    """What the side questions have."""

    few: int
    """Runs."""
    tuning: int
    """Runs per candidate of a grid."""
    short: int
    """Samples of iLSTD's grids."""
    window: tuple[int, ...]
    """Successive numbers of samples, at which smoothness is measured."""
    windows: int
    """Runs of them."""
    exponents: tuple[int, ...]
    seconds: dict[int, float]
    """How long samples come, by rate."""
    rates: int
    """Runs with samples at a rate."""


SIZES: dict[str, Size] = {
    "smoke": Size(
        1, 1, 200, tuple(range(150, 153)), 1, (-5, -3), {25: 8.0, 1_000: 0.2, 10_000: 0.02, 100_000: 0.01}, 1
    ),
    "quick": Size(
        3,
        1,
        1_000,
        tuple(range(1_000, 1_011)),
        3,
        (-9, -5, -1),
        {25: 40.0, 1_000: 1.0, 10_000: 0.2, 100_000: 0.05},
        3,
    ),
    "paper": Size(
        5,
        3,
        2_000,
        tuple(range(1_000, 1_101)),
        10,
        EXPONENTS,
        {25: 200.0, 1_000: 5.0, 10_000: 2.0, 100_000: 0.25},
        10,
    ),
}


def name_of(rank: int, cutoff: str = PAPERS) -> str:
    """The method's name in ``METHODS``."""
    return f"t-LSTD, r={rank}, {cutoff}"


def _tlstd(rank: int, cutoff: str, dash: Dash, marker: str = "", effort: int = CHEAP, **more: Any) -> Method:
    settings = {"class": "TLSTD", "rank": rank, "lambda_": 1.0, "rcond": float(cutoff)} | more
    colour = COLOURS["t-LSTD"] if cutoff == OURS else COLOURS["ATD"]
    return Method(f"t-LSTD, r={rank}, cut-off {cutoff}", colour, settings, dash=dash, marker=marker, effort=effort)


_DASHES = dict(zip(RANKS, (DOTTED, DASH_DOT, SOLID, DASHED), strict=True))
_LSTD = {"class": "LSTD", "lambda_": 0.9}
METHODS: dict[str, Method] = {
    "TD": CONTEST["TD"],
    "true-online TD": CONTEST["true-online TD"],
    "iLSTD": Method(
        f"iLSTD, m={M}, tuned",
        COLOURS["iLSTD"],
        {"class": "ILSTD", "coordinates_per_step": M},
        {"alpha": ALPHAS, "lambda_": LAMBDAS, "n0": DECAYS},
        {"alpha": (2.0**-4, 0.25), "lambda_": (0.4, 0.9), "n0": (1_000,)},
        effort=SLOW,
        marker="^",
        samples=(100, 200, 500, 600, 1_000, 2_000, 4_000, 10_000),
    ),
    **{
        name_of(rank, cutoff): _tlstd(rank, cutoff, _DASHES[rank], "o" if rank == 40 else "")
        for cutoff in (PAPERS, OURS)
        for rank in RANKS
    },
    **{name_of(rank): _tlstd(rank, PAPERS, DOTTED, effort=REPEATED) for rank in SMALL_RANKS},
    **{name_of(rank) + EVERY: _tlstd(rank, PAPERS, DOTTED, effort=REPEATED, buffer_size=1) for rank in (5, 40)},
    "LSTD": Method("LSTD, cut-off 1e-4", COLOURS["LSTD"], _LSTD | {"rcond": 1e-4}),
    "LSTD, ridge": Method(
        "LSTD, ridge chosen",
        COLOURS["LSTD"],
        _LSTD,
        choose={"ridge": RIDGES},
        effort=SLOWEST,
        dash=DASHED,
        samples=FEW,
    ),
    "Krylov LSTD": CONTEST["Krylov LSTD"],
}
"""By name; everybody has effort 0, side questions 1 (``REPEATED``)."""
SIDE = [name for name, method in METHODS.items() if method.effort == REPEATED]
MAIN = [name for name in METHODS if name not in SIDE]
"""Everybody in figure 3b's place."""


def ilstd(alpha: float, n0: float | None, m: int = M) -> dict[str, Any]:
    """iLSTD of the grids; with a constant step size if there is no N₀."""
    step_size = alpha if n0 is None else [alpha, n0]
    return {"class": "ILSTD", "lambda_": 0.9, "step_size": step_size, "coordinates_per_step": m}


class Smooth(Contest):
    """Shared by all panels."""

    problem = PROBLEM
    roster: ClassVar[Mapping[str, Method]] = METHODS
    size = (3.4, 3.6)

    def methods(self, scale: Scale) -> list[str]:
        """Return who takes part."""
        return MAIN

    def every(self, scale: Scale) -> tuple[int, ...]:
        """Return the numbers of samples."""
        return pick(SAMPLES, scale)

    def effort(self, scale: Scale, name: str) -> Effort:
        """Return how many runs a method is given."""
        return EFFORTS[scale][self.roster[name].effort]

    def sweep(self, scale: Scale, name: str) -> RunSpec:
        """Return the run that tunes a method, for each number of samples and for the whole curve."""
        spec = super().sweep(scale, name)
        return RunSpec(spec.task, {**spec.plain_settings(), "curve": True}, spec.seed)

    def tuned(self, results: Results, name: str) -> dict[str, Any]:
        """Return the estimator that was best over the whole curve."""
        method = self.roster[name]
        if not method.axes:
            return dict(method.estimator)
        columns = results[self.sweep(results.scale, name)].columns
        return filled(method.estimator, {axis: float(columns[axis][-1]) for axis in method.axes})

    def zero(self, results: Results) -> float:
        """Return the RMSE of predicting 0; a diverged run counts as twice that."""
        (group,) = self.groups(results, name_of(40))
        return float(results[self.runs_of(results, name_of(40), group, timed=False)[0]].columns["zero"][0])

    def learn(
        self, scale: Scale, estimator: Mapping[str, Any], samples: Sequence[int], runs: int, *, tuning: bool = False
    ) -> list[RunSpec]:
        """Return runs of side questions."""
        settings = {
            "problem": self.problem,
            "estimator": dict(estimator),
            "samples": samples,
            "length": max(self.every(scale)[-1], samples[-1]),
        }
        return specs("contest", settings, seeds(runs, tuning=tuning))

    def limited(self, results: Results, runs: Sequence[RunSpec]) -> FloatArray:
        """Return the errors of runs, up to twice that of zero."""
        return np.minimum(results.column(runs, "rmse"), 2.0 * self.zero(results))

    def short(self, scale: Scale) -> tuple[int, ...]:
        """Return the numbers of samples of iLSTD's grids."""
        return tuple(n for n in self.every(scale) if n <= pick(SIZES, scale).short)

    def grid(
        self, scale: Scale, n0s: Sequence[float | None] = GRID_DECAYS, m: int = M, *, coarse: bool = False
    ) -> list[list[RunSpec]]:
        """Return candidates of iLSTD on the paper's grid."""
        size = pick(SIZES, scale)
        one = m != M
        exponents = (-5, -3, -1) if coarse else size.exponents
        return [
            self.learn(scale, ilstd(2.0**e, n0, m), self.short(scale), 1 if one else size.tuning, tuning=True)
            for n0 in n0s
            for e in exponents
        ]

    def candidates(self, scale: Scale, m: int) -> list[list[RunSpec]]:
        """Return candidates for an m: the whole grid for the smallest, and m=50, a coarser one for others."""
        return self.grid(scale, GRID_DECAYS, m, coarse=m not in (COORDINATES[0], M))

    def td_grid(self, scale: Scale) -> list[list[RunSpec]]:
        """Return TD on the same grid."""
        size = pick(SIZES, scale)
        return [
            self.learn(
                scale,
                {"class": "TD", "lambda_": 0.9, "step_size": 2.0**e},
                self.short(scale),
                size.tuning,
                tuning=True,
            )
            for e in size.exponents
        ]

    def with_floor(self, series: Sequence[Series], x: Axis, legend: Legend) -> Chart:
        """Return the chart of errors against x, with the least error that any features of the observations allow."""
        rule = Rule("y", floor(), "#777777", width=1.0)
        note = Note("floor of time-blind features", 0.99, 1.03 * floor(), "end")
        return Chart(series, x, Axis("RMSE", log=True), (rule,), (note,), legend)
