"""Rows of LSTD's sums and of tile coding, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from tlstd.classic.lstd import LSTD
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.domains.base import Domain
from tlstd.domains.energy_storage import EnergyStorage
from tlstd.domains.mountain_car import MountainCar
from tlstd.features.tile_coding import TileCoder
from tlstd.streams.simulated import trajectory
from tlstd_lab.bench import problems
from tlstd_lab.bench.row import Bench, Line, speed_up
from tlstd_lab.bench.timing import Side


def lstd(bench: Bench) -> list[Line]:
    """LSTD on Mountain Car's tiles, update_many, against NumPy's outer products."""
    problem = problems.tiles(bench.quick)
    stream, d = problem.stream, problem.n_features
    model = LSTD(d, lambda_=problem.lambda_)
    model.update_many(stream[: problem.warm])
    part = stream[problem.warm : problem.warm + bench.size(4_000, 100)]
    few = part[: bench.size(200, 20)]
    X, X_next = few.X.toarray(), few.X_next.toarray()  # type: ignore[union-attr]
    A, b, z = np.zeros((d, d)), np.zeros(d), np.zeros(d)

    def accumulate() -> None:
        trace = z
        for x, reward, x_next, discount, trace_discount in zip(
            X, few.rewards, X_next, few.discounts, few.trace_discounts, strict=True
        ):
            trace = trace_discount * problem.lambda_ * trace + x
            A[:] += np.outer(trace, x - discount * x_next)
            b[:] += reward * trace

    ours = problems.many("LSTD, tiles, update_many", model, part)
    return [speed_up(*bench.compare(ours, Side("NumPy: A += outer(z, d)", len(few), lambda: accumulate)), 20.0)]


def tile_coding(bench: Bench) -> list[Line]:
    """TileCoder.encode_many against NumPy state by state (Mountain Car, EnergyStorage)."""
    settings: tuple[tuple[Domain, list[int], int], ...] = (
        (MountainCar(), [10, 10], 10),
        (EnergyStorage(), [5, 5, 10, 5], 32),
    )
    lines = []
    for domain, tiles, tilings in settings:
        coder = TileCoder(domain.low, domain.high, tiles=tiles, tilings=tilings, bias=True)
        states = domain.observe(trajectory(domain, n_steps=bench.size(100_000, 1_000), seed=0).states)
        few = states[: bench.size(2_000, 100)]
        encode = partial(coder.encode_many, states)
        name = f"encode_many, {domain.name}, {tilings} tilings"
        ours = Side(name, len(states), lambda encode=encode: encode)  # type: ignore[misc]
        theirs = Side("NumPy, state by state", len(few), partial(_encode_each, coder, few))
        lines.append(speed_up(*bench.compare(ours, theirs), 50.0))
    return lines


def _encode_each(coder: TileCoder, states: FloatArray) -> Callable[[], None]:
    encode = numpy_encoder(coder)

    def action() -> None:
        for state in states:
            encode(state)

    return action


def numpy_encoder(coder: TileCoder) -> Callable[[FloatArray], IntArray]:
    """The formula of :class:`~tlstd.TileCoder` in NumPy: from one state to its active features, all tilings at once."""
    tiles = np.array(coder.tiles)
    tilings = np.arange(coder.tilings)
    shifts = tilings[:, None] / (coder.tilings * tiles)
    strides = np.append(np.cumprod(tiles[:0:-1])[::-1], 1)
    offsets = tilings * tiles.prod()
    bias = [coder.n_features - 1] if coder.bias else []
    low, span = coder.low, coder.high - coder.low

    def encode(state: FloatArray) -> IntArray:
        u = np.clip((state - low) / span, 0.0, 1.0)
        coordinates = ((u + shifts) * (tiles - 1)).astype(np.int64)
        return np.append(offsets + coordinates @ strides, bias).astype(np.int64)

    return encode
