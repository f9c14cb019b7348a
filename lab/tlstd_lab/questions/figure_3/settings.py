"""What figures 3a to 3c share: sizes, estimators and sweeps on the energy domain.

The parameters of the domain are ours (``docs/domains.md``): the tables of the benchmark that the paper uses are not
available. t-LSTD has λ=1 and the paper's cut-off 0.01, the others λ=0.9.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd.domains.energy_storage import EnergyStorage
from tlstd_lab.chart import Axis, Chart, Legend, Note, Rule, Series
from tlstd_lab.energy_programme import aliasing_floor, optimal_policy
from tlstd_lab.panel import Panel, Results, Scale, best, pick, seeds, specs
from tlstd_lab.problems import problem
from tlstd_lab.spec import RunSpec

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
    return aliasing_floor(domain, optimal_policy(domain)).rmse


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


def td_candidates(scale: Scale, name: str = "TD", active: Sequence[int] = ACTIVE) -> list[list[RunSpec]]:
    """The whole grid of step sizes, for either number of active features."""
    size = pick(SIZES, scale)
    exponents = size.exponents if scale == "smoke" else range(-11, 0)
    alphas = [2.0**exponent / number for number in active for exponent in exponents]
    return [learn(td(alpha, name), size.samples, seeds(size.tuning, tuning=True)) for alpha in alphas]


def ilstd_candidates(scale: Scale, n0s: Sequence[float | None] = DECAYS) -> list[list[RunSpec]]:
    """Step sizes and decays for m=50."""
    size = pick(SIZES, scale)
    settings = [(2.0**e / number, n0) for n0 in n0s for number in ACTIVE for e in size.exponents]
    return [learn(ilstd(a, n0), size.ilstd_samples, seeds(size.tuning, tuning=True)) for a, n0 in settings]


def m_candidates(scale: Scale, m: int) -> list[list[RunSpec]]:
    """A coarser grid for the other m, except for the smallest, whose best step size is compared with that of m=50."""
    size = pick(SIZES, scale)
    exponents = size.exponents if m in (COORDINATES[0], M) else (-5, -3, -1)
    settings = [(2.0**e / ACTIVE[0], n0) for n0 in (DECAYS if scale == "paper" else DECAYS[1:]) for e in exponents]
    return [learn(ilstd(a, n0, m), size.ilstd_samples, seeds(1, tuning=True)) for a, n0 in settings]


def flat(candidates: Sequence[Sequence[RunSpec]]) -> list[RunSpec]:
    """All runs of a sweep."""
    return [spec for runs in candidates for spec in runs]


class Energy(Panel):
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

    def with_floor(self, series: Sequence[Series], x: Axis, legend: Legend) -> Chart:
        """Return the chart of errors against x, with the least error that these features allow."""
        rule = Rule("y", floor(), "#777777", width=1.0)
        note = Note("floor of time-blind features", 0.99, 1.03 * floor(), "end")
        return Chart(series, x, Axis("RMSE", log=True), (rule,), (note,), legend)
