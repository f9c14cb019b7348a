"""Rows of growth: time per step and memory of t-LSTD (and others) against what could make them grow."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np

from tlstd.classic.td import TD
from tlstd.core.arrays import FloatArray
from tlstd.data.transitions import Transitions
from tlstd.domains.mountain_car import MountainCar
from tlstd.estimators.base import LinearEstimator
from tlstd.estimators.step_sizes import Decay
from tlstd.features.tile_coding import TileCoder
from tlstd.streams.simulated import record
from tlstd.truncated.tlstd import TLSTD
from tlstd.zoo.ilstd import ILSTD
from tlstd.zoo.projected_lstd import ProjectedLSTD
from tlstd.zoo.sketched_lstd import SketchedLSTD
from tlstd_lab.bench import problems
from tlstd_lab.bench.problems import scattered, whole
from tlstd_lab.bench.row import Bench, Line, Target, duration

RANK = 20
TLSTD_NAME = "t-LSTD"


@dataclass
class Curve:
    """Cost of one estimator at every point of a row."""

    seconds: list[list[float]] = field(default_factory=list)
    """CPU time per step of every repeat, at each point."""
    memory: list[float] = field(default_factory=list)
    """Bytes, at each point."""
    estimator: str = ""

    def plain(self) -> dict[str, Any]:
        """The curve as JSON holds it."""
        return {"estimator": self.estimator, "seconds": self.seconds, "bytes": self.memory}


def features(bench: Bench) -> list[Line]:
    """Growth with the number of features d, 10³ to 10⁷, of which 1,000 are seen: no growth in theory."""
    sizes = [10**i for i in bench.size((3, 4, 5, 6, 7), (3, 5))]
    warm, part = bench.size((1_280, 640), (100, 40))
    makers: dict[str, Callable[[int], LinearEstimator]] = {
        TLSTD_NAME: lambda d: TLSTD(d, RANK, lambda_=0.9),
        "iLSTD": lambda d: ILSTD(d, step_size=Decay(0.01, 100), lambda_=0.9),
        "TD": lambda d: TD(d, step_size=0.01, lambda_=0.9),
    }
    curves = {name: Curve() for name in makers}
    for d in sizes:
        stream = scattered(d, warm + part, active=10, seen=1_000)
        for name, make in makers.items():
            _measure(bench, curves[name], make(d), stream[:warm], stream[warm:])
    _keep(bench, "features d, 1,000 seen", sizes, curves, time=(0.0, 0.0), memory=0.0)
    return [
        line for name in makers for line in _slopes(name, "d", sizes, curves[name], time=("0", 0.1), memory=("0", 0.1))
    ]


def sketched_features(bench: Bench) -> list[Line]:
    """Growth of LSTD with a sketch with d, 10³ to 10⁷, of which 1,000 are seen: no growth in theory."""
    sizes = [10**i for i in bench.size((3, 5, 7), (3, 5))]
    warm, part = bench.size((1_280, 1_280), (100, 40))
    makers: dict[str, Callable[[int], LinearEstimator]] = {
        "LSTD, random projections": lambda d: ProjectedLSTD(d, 40, lambda_=0.9),
        "LSTD, left-sided sketch": lambda d: SketchedLSTD(d, 40, lambda_=0.9),
    }
    curves = {name: Curve() for name in makers}
    for d in sizes:
        stream = scattered(d, warm + part, active=10, seen=1_000)
        for name, make in makers.items():
            _measure(bench, curves[name], make(d), stream[:warm], stream[warm:])
    _keep(bench, "features d, 1,000 seen, dimension 40", sizes, curves, time=(0.0, 0.0), memory=0.0)
    return [
        line for name in makers for line in _slopes(name, "d", sizes, curves[name], time=("0", 0.1), memory=("0", 0.1))
    ]


def sketched_active(bench: Bench) -> list[Line]:
    """Growth of LSTD with a sketch with the active features of a state, 5 to 500 of 5,000 seen: 1 in theory."""
    counts = bench.size((5, 50, 500), (5, 20))
    warm, part = bench.size((640, 640), (100, 40))
    makers: dict[str, Callable[[], LinearEstimator]] = {
        "LSTD, projections, 40 of 40": lambda: ProjectedLSTD(100_000, 40, lambda_=0.9, nonzeros=40),
        "LSTD, left-sided sketch": lambda: SketchedLSTD(100_000, 40, lambda_=0.9),
    }
    curves = {name: Curve() for name in makers}
    for count in counts:
        stream = scattered(100_000, warm + part, active=count, seen=5_000)
        for name, make in makers.items():
            _measure(bench, curves[name], make(), stream[:warm], stream[warm:])
    _keep(bench, "active features, 5,000 seen, dimension 40", counts, curves, time=(1.0, 1.0), memory=1.0)
    return [
        line
        for name in makers
        for line in _slopes(
            name, "active features", counts, curves[name], time=("1", 1.2), memory=("1 (the batch)", 1.0)
        )
    ]


def rank(bench: Bench) -> list[Line]:
    """Growth with the rank, 5 to 200, on the energy-like stream: between 1 and 2 in theory, memory 1."""
    problem = problems.energy(bench.quick)
    ranks = bench.size((5, 10, 20, 50, 100, 200), (2, 4))
    curve = Curve()
    for r in ranks:
        model = TLSTD(problem.n_features, r, lambda_=problem.lambda_)
        model.update_many(problem.stream[:1])
        buffer = model.buffer_capacity
        warm = whole(bench.size(3_200, 80), buffer)
        part = problem.stream[warm : warm + whole(bench.size(640, 20), buffer)]
        _measure(bench, curve, model, problem.stream[1:warm], part, repeats=bench.size(3, 2))
    _keep(bench, f"rank, energy-like, {model.n_seen:,} seen", ranks, {TLSTD_NAME: curve}, time=(1.0, 2.0), memory=1.0)
    return _slopes(TLSTD_NAME, "the rank", ranks, curve, time=("1 to 2", 2.0), memory=("1", 1.1), last=3)


def active(bench: Bench) -> list[Line]:
    """Growth with the active features of a state, 5 to 500 of 5,000 seen: 1 in theory, memory at most 1."""
    counts = bench.size((5, 10, 20, 50, 100, 200, 500), (5, 20))
    warm, part = bench.size((960, 640), (100, 40))
    curve = Curve()
    for count in counts:
        stream = scattered(100_000, warm + part, active=count, seen=5_000)
        _measure(bench, curve, TLSTD(100_000, RANK, lambda_=0.9), stream[:warm], stream[warm:])
    _keep(bench, "active features, 5,000 seen", counts, {TLSTD_NAME: curve}, time=(1.0, 1.0), memory=1.0)
    name = "active features"
    return _slopes(TLSTD_NAME, name, counts, curve, time=("1", 1.2), memory=("1 (the buffer)", 1.2), last=3)


def samples(bench: Bench) -> list[Line]:
    """Growth with the samples learned, 10³ to 10⁶ of Mountain Car's tiles: no growth in theory."""
    counts = bench.size((1_000, 10_000, 100_000, 1_000_000), (200, 600))
    part = bench.size(2_000, 100)
    car = MountainCar()
    coder = TileCoder(car.low, car.high, tiles=10, tilings=10)
    stream = record(car, None, coder, n_steps=counts[-1] + part, seed=0)
    models: dict[str, LinearEstimator] = {
        TLSTD_NAME: TLSTD(coder.n_features, RANK, lambda_=0.9),
        "TD": TD(coder.n_features, step_size=0.01, lambda_=0.9),
    }
    curves = {name: Curve() for name in models}
    for before, count in zip((0, *counts), counts, strict=False):
        for name, model in models.items():
            model.update_many(stream[before:count])
            _time(bench, curves[name], model, stream[count : count + part])
            curves[name].memory.append(float(model.nbytes))
    _keep(bench, "samples learned, Mountain Car's tiles", counts, curves, time=(0.0, 0.0), memory=0.0)
    return [
        line
        for name in models
        for line in _slopes(name, "the samples", counts, curves[name], time=("0", 0.1), memory=("0", 0.1))
    ]


# --- measuring ------------------------------------------------------------------------------------------------------


def _measure(
    bench: Bench,
    curve: Curve,
    model: LinearEstimator,
    warm: Transitions,
    part: Transitions,
    *,
    repeats: int | None = None,
) -> None:
    """Add a point: peak memory of learning ``warm``, then the time of learning ``part``."""
    deepcopy(model).update_many(warm[:2])  # compiles and imports
    tracemalloc.start()
    model.update_many(warm)
    curve.memory.append(float(max(tracemalloc.get_traced_memory()[1], 1)))
    tracemalloc.stop()
    _time(bench, curve, model, part, repeats=repeats)


def _time(bench: Bench, curve: Curve, model: LinearEstimator, part: Transitions, *, repeats: int | None = None) -> None:
    (times,) = bench.time(problems.many("", model, part), repeats=repeats)
    curve.estimator = type(model).__name__
    curve.seconds.append([seconds / times.steps for seconds in times.cpu])


def _keep(
    bench: Bench,
    label: str,
    points: Sequence[int],
    curves: dict[str, Curve],
    *,
    time: tuple[float, float],
    memory: float,
) -> None:
    """What the figure needs, with the slopes of the theory."""
    bench.data = {
        "label": label,
        "points": list(points),
        "curves": {name: curve.plain() for name, curve in curves.items()},
        "theory": {"time": list(time), "memory": memory},
    }


def slope(x: Sequence[float] | FloatArray, y: Sequence[float] | FloatArray) -> float:
    """Exponent p of the power law y ~ xᵖ that fits best.

    >>> round(slope([1, 10, 100], [2, 200, 20000]), 12)
    2.0
    """
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def _slopes(
    name: str,
    variable: str,
    points: Sequence[int],
    curve: Curve,
    *,
    time: tuple[str, float],
    memory: tuple[str, float],
    last: int | None = None,
) -> list[Line]:
    """Lines of the slopes in time (of every repeat) and in memory, with what theory says and the bound on them.

    With ``last``, of so many points at the end only: before them what does not grow hides what does.
    """
    seconds = [median(point) for point in curve.seconds]
    span = f"{duration(min(seconds))} to {duration(max(seconds))}"
    held = f"{1e-6 * min(curve.memory):.3g} to {1e-6 * max(curve.memory):.3g} MB"
    first = max(0, len(points) - last) if last else 0
    by_repeat = tuple(slope(points[first:], column[first:]) for column in zip(*curve.seconds, strict=True))
    if last:
        variable = f"{variable}, {points[first]} to {points[-1]}"
    return [
        Line(f"{name}, time against {variable}", f"theory: {time[0]}", by_repeat, Target("<=", time[1]), "slope", span),
        Line(
            f"{name}, memory against {variable}",
            f"theory: {memory[0]}",
            (slope(points[first:], curve.memory[first:]),),
            Target("<=", memory[1]),
            "slope",
            held,
        ),
    ]
