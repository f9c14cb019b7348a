"""What a panel of a figure is: its runs at three scales, its chart, and the claims it decides."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar, get_args

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd.errors import InvalidParameterError
from tlstd_lab.chart import Chart
from tlstd_lab.claims import Claim
from tlstd_lab.spec import RunSpec, Settings
from tlstd_lab.store import Run, Store

T = TypeVar("T")

Scale: TypeAlias = Literal["smoke", "quick", "paper"]
"""How much is run: seconds, minutes, and as published."""

SCALES: tuple[Scale, ...] = get_args(Scale)

TUNING_SEED = 1000
"""First seed of the runs that parameters are chosen by; reported runs have seeds from 0."""


def check_scale(word: str) -> Scale:
    """The scale of this name, if there is such a one."""
    for scale in SCALES:
        if scale == word:
            return scale
    raise InvalidParameterError(f"scale is {word!r}: choose one of {', '.join(SCALES)}")


class Results:
    """Stored runs of one scale, by spec."""

    def __init__(self, store: Store, scale: Scale) -> None:
        self.store, self.scale = store, scale
        self._runs: dict[str, Run] = {}

    def __getitem__(self, spec: RunSpec) -> Run:
        if spec.key not in self._runs:
            self._runs[spec.key] = self.store.read(spec.key)
        return self._runs[spec.key]

    def load(self, specs: Iterable[RunSpec]) -> None:
        """Read many runs at once."""
        self._runs |= self.store.read_many(spec.key for spec in specs if spec.key not in self._runs)

    def column(self, specs: Sequence[RunSpec], name: str) -> FloatArray:
        """One column of runs that differ in their seed, a row per run: (runs, points)."""
        return np.array([self[spec].columns[name] for spec in specs], dtype=np.float64)


class Panel(ABC):
    """One panel: a class attribute each for what it is called, and methods for what it does.

    ``tuning`` are runs by which parameters are chosen (on their own seeds); ``runs`` may look at their results.
    """

    name: ClassVar[str]
    """As in the paper, "2a"; further figures have words."""
    title: ClassVar[str]
    caption: ClassVar[str]
    """What is drawn, how it was made, in our words."""
    size: ClassVar[tuple[float, float]] = (3.4, 2.7)
    """Inches."""

    def tuning(self, scale: Scale) -> list[RunSpec]:
        """Return the runs of the parameter sweeps."""
        return []

    @abstractmethod
    def runs(self, results: Results) -> list[RunSpec]:
        """Return the runs that are shown, with parameters chosen from the results of ``tuning``."""

    @abstractmethod
    def chart(self, results: Results) -> Chart:
        """Return what the panel shows."""

    def claims(self) -> Sequence[Claim]:
        """Return the statements that this panel's results decide."""
        return ()


def seeds(runs: int, *, tuning: bool = False) -> range:
    """Seeds of reported runs, or of those that parameters are chosen by."""
    return range(TUNING_SEED, TUNING_SEED + runs) if tuning else range(runs)


def specs(task: str, settings: Mapping[str, Any], seeds: Iterable[int], *, timed: bool = False) -> list[RunSpec]:
    """The same run with each of the seeds."""
    frozen = Settings(settings)
    return [RunSpec(task, frozen, seed, timed) for seed in seeds]


def best(results: Results, candidates: Sequence[Sequence[RunSpec]], column: str = "rmse") -> dict[str, Any]:
    """Settings of the candidate (runs with several seeds) whose curves are lowest on average over points and runs.

    A candidate of which a run diverged is taken only if there is no other; of such, the one that lost fewest points.
    """
    if not candidates:
        raise InvalidParameterError("there is no candidate to choose from: give at least one")
    for runs in candidates:
        results.load(runs)
    curves = [results.column(runs, column) for runs in candidates]
    scores = [
        (int((~np.isfinite(c)).sum()), float(c[np.isfinite(c)].mean()) if np.isfinite(c).any() else np.inf)
        for c in curves
    ]
    return candidates[scores.index(min(scores))][0].plain_settings()


def pick(by_scale: Mapping[str, T], scale: Scale) -> T:
    """What stands under this scale."""
    return by_scale[scale]
