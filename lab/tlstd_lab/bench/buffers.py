"""Rows of the buffer's length: what it does to the cost, and what to the error."""

from __future__ import annotations

from statistics import median

import numpy as np

from tlstd.classic.lstd import LSTD
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.data.transitions import Transitions
from tlstd.domains.mountain_car import MountainCar
from tlstd.evaluation import true_values
from tlstd.features.tile_coding import TileCoder
from tlstd.streams.simulated import record
from tlstd.truncated.tlstd import TLSTD
from tlstd_lab.bench import problems
from tlstd_lab.bench.problems import whole
from tlstd_lab.bench.row import Bench, Line, cost
from tlstd_lab.bench.timing import Times, ratios

LAMBDA = 1.0


def buffer(bench: Bench) -> list[Line]:
    """The buffer's length on Mountain Car's tiles: time per step, RMSE, and distance of the factors to A.

    RMSE and distance are those of the best factors (of all of A, cut once to the rank) if the number is 1; means over
    seeds.
    """
    rank, n_steps = bench.size((50, 6_000), (5, 400))
    sizes = bench.size((5, 12, 25, 50, 100, 200, 400, 800), (3, 5, 10))
    car = MountainCar()
    coder = TileCoder(car.low, car.high, tiles=10, tilings=10)
    truth, X = true_values(car, car.grid()), coder.encode_many(car.grid())
    seeds = range(bench.size(3, 1))
    streams = [record(car, None, coder, n_steps=n_steps, seed=seed) for seed in seeds]
    exact = [_Exact(stream, rank) for stream in streams]
    default = TLSTD(coder.n_features, rank, lambda_=LAMBDA)
    default.update_many(streams[0][:1])

    times, errors, distances = {}, {}, {}
    for size in sorted({*sizes, rank, default.buffer_capacity}):
        models = [TLSTD(coder.n_features, rank, lambda_=LAMBDA, buffer_size=size) for _ in seeds]
        for model, stream in zip(models, streams, strict=True):
            model.update_many(stream)
        errors[size] = float(np.mean([_rmse(model.predict(X), truth) for model in models]))
        distances[size] = float(np.mean([e.distance(model) for e, model in zip(exact, models, strict=True)]))
        times[size] = _time(bench, coder.n_features, rank, size, streams[0])
    energy = problems.energy(bench.quick)
    others = {size: _time(bench, energy.n_features, energy.rank, size, energy.stream) for size in sizes[-6:]}
    best = float(np.mean([_rmse(X @ e.weights, truth) for e in exact]))
    bench.data = {
        "rank": rank,
        "buffer": list(times),
        "seconds": [t.per_step for t in times.values()],
        "rmse": list(errors.values()),
        "rmse_of_the_best": best,
        "distance": list(distances.values()),
        "default": default.buffer_capacity,
        "energy": {"rank": energy.rank, "buffer": list(others), "seconds": [t.per_step for t in others.values()]},
    }
    k = default.buffer_capacity
    return [
        Line(
            f"t-LSTD, tiles, time with the default buffer of {k}",
            f"with one of the rank, {rank}",
            (median(ratios(times[k], times[rank])),),
            times=(times[k], times[rank]),
        ),
        Line("RMSE, default buffer", "a buffer of the rank", (errors[k] / errors[rank],), note=f"{errors[k]:.2f}"),
        Line("RMSE, default buffer", "the best factors", (errors[k] / best,), note=f"{errors[k]:.2f}, {best:.2f}"),
        Line("‖A − UΣVᵀ‖, default buffer", "the best factors", (distances[k],), note=f"k=r: {distances[rank]:.3f}"),
    ]


def many_active(bench: Bench) -> list[Line]:
    """The default buffer with 128 active features, rank 40: time per step and memory against eight times the rank."""
    active, rank, size = bench.size((128, 40, 320), (64, 25, 200))
    stream = problems.scattered(100_000, bench.size(1_600, 420), active=active, seen=5_120)
    lengths = [TLSTD(stream.n_features, rank, lambda_=0.9, buffer_size=given) for given in (None, size)]
    sides, memory = [], []
    for model in lengths:
        model.update_many(stream[:1])
        k = model.buffer_capacity
        warm = whole(bench.size(640, 200), k)
        model.update_many(stream[1 : warm - 1])
        memory.append(1e-6 * model.nbytes)
        model.update_many(stream[warm - 1 : warm])
        part = stream[warm : warm + whole(bench.size(640, 200), k)]
        sides.append(problems.many(f"t-LSTD, {active} active, buffer of {k}", model, part))
    default, longer = bench.time(*sides)
    held = (
        f"{memory[0]:.3g} against {memory[1]:.3g} MB when full, {16e-6 * lengths[0].n_seen * rank:.2g} in the factors"
    )
    return [
        cost(default, longer),
        Line(f"{default.name}, memory", longer.name, (memory[0] / memory[1],), note=held),
    ]


def _time(bench: Bench, d: int, rank: int, size: int, stream: Transitions) -> Times:
    """Time of a few buffers after the first 1,600 samples."""
    model = TLSTD(d, rank, lambda_=LAMBDA, buffer_size=size)
    warm = whole(bench.size(1_600, 50), size)
    model.update_many(stream[:warm])
    part = stream[warm : warm + whole(bench.size(800, 20), size)]
    return bench.time(problems.many(f"buffer of {size}", model, part))[0]


def _rmse(values: FloatArray, truth: FloatArray) -> float:
    return float(np.sqrt(np.mean((values - truth) ** 2)))


class _Exact:
    """All of A, and what the best factors of the rank make of it."""

    def __init__(self, stream: Transitions, rank: int) -> None:
        model = LSTD(stream.n_features, lambda_=LAMBDA)
        model.update_many(stream)
        ids, A, b = model.system()
        self.A = _spread(ids, A, stream.n_features)
        U, sigma, Vt = np.linalg.svd(A)
        self.best = float(np.sqrt((sigma[rank:] ** 2).sum()))
        kept = sigma[:rank] > 1e-4 * sigma[0]
        inverse = np.where(kept, 1.0 / sigma[:rank], 0.0)
        self.weights = np.zeros(stream.n_features)
        self.weights[ids] = Vt[:rank].T @ (inverse * (U[:, :rank].T @ b[:, 0]))

    def distance(self, model: TLSTD) -> float:
        """‖A − UΣVᵀ‖ (Frobenius) over the least possible."""
        ids, U, sigma, V = model.factors()
        return float(np.linalg.norm(self.A - _spread(ids, (U * sigma) @ V.T, self.A.shape[0]))) / self.best


def _spread(ids: IntArray, A: FloatArray, n_features: int) -> FloatArray:
    """A over the features seen as a matrix over all."""
    out = np.zeros((n_features, n_features))
    out[np.ix_(ids, ids)] = A
    return out
