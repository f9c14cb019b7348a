"""The streams that rows share, and models that have learned the first part of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from functools import cache, partial
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from tlstd.core.arrays import FloatArray
from tlstd.data.transitions import Transition, Transitions
from tlstd.data.vectors import SparseVector, Vector
from tlstd.domains.energy_storage import EnergyStorage
from tlstd.domains.mountain_car import MountainCar
from tlstd.estimators.base import LinearEstimator
from tlstd.features.rbf import RBF
from tlstd.features.tile_coding import TileCoder
from tlstd.streams.simulated import record
from tlstd.truncated.tlstd import TLSTD, Reads
from tlstd_lab.bench.one_projection import OneProjectionTLSTD
from tlstd_lab.bench.timing import Side
from tlstd_lab.energy_programme import optimal_policy
from tlstd_lab.reference import ReferenceTLSTD


class Problem(NamedTuple):
    """A stream with t-LSTD's parameters for it."""

    name: str
    stream: Transitions
    rank: int
    lambda_: float
    warm: int
    """Samples after which costs have settled."""
    part: int
    """About how many samples to time at once."""

    @property
    def n_features(self) -> int:
        """d."""
        return self.stream.n_features


@cache
def energy(quick: bool) -> Problem:
    """EnergyStorage, near-optimal policy: 32 tilings and a bias, λ = 1 (γ = 0.8). 30,000 features seen when warm."""
    domain = EnergyStorage()
    tiles, tilings = ([3, 3, 4, 3], 8) if quick else ([5, 5, 10, 5], 32)
    coder = TileCoder(domain.low, domain.high, tiles=tiles, tilings=tilings, bias=True)
    stream = record(domain, optimal_policy(domain), coder, n_steps=700 if quick else 12_000, seed=0)
    return Problem("energy-like", stream, 5 if quick else 40, 1.0, *((200, 80) if quick else (6_000, 1_280)))


@cache
def tiles(quick: bool) -> Problem:
    """Mountain Car, 10 tilings of 10 × 10 tiles."""
    car = MountainCar()
    coder = TileCoder(car.low, car.high, tiles=10, tilings=10)
    stream = record(car, None, coder, n_steps=700 if quick else 6_000, seed=0)
    return Problem("tiles", stream, 5 if quick else 50, 0.9, *((200, 80) if quick else (2_000, 1_280)))


@cache
def rbf(quick: bool) -> Problem:
    """Mountain Car, 32 × 32 Gaussians: dense features."""
    car = MountainCar()
    features = RBF(car.low, car.high, grid=8 if quick else 32, width=0.12)
    stream = record(car, None, features, n_steps=400 if quick else 3_000, seed=0)
    return Problem("RBFs", stream, 5 if quick else 100, 0.9, *((100, 40) if quick else (1_000, 500)))


def scattered(n_features: int, n_steps: int, *, active: int, seen: int, seed: int = 0) -> Transitions:
    """Random binary features: ``active`` at a time, ``seen`` in all, spread evenly over ``n_features``; γ = 0.9.

    >>> bool(scattered(10**9, 5, active=3, seen=12).X.indices.max() < 10**9)
    True
    """
    rng = np.random.default_rng(seed)
    width, stride = seen // active, n_features // seen
    ids = (rng.integers(0, width, (n_steps + 1, active)) + width * np.arange(active)) * stride
    X = sp.csr_array(
        (np.ones(ids.size), ids.ravel(), np.arange(0, ids.size + 1, active)), shape=(n_steps + 1, n_features)
    )
    return Transitions.from_episodes([(X, rng.standard_normal(n_steps), False)], gamma=0.9)


# --- models ---------------------------------------------------------------------------------------------------------


class Warm(NamedTuple):
    """A model that has learned the first samples of a problem, up to the end of a buffer."""

    model: TLSTD
    start: int
    """How many samples it has learned."""
    buffer: int
    """Samples in its buffer when that is full."""


def warmed(problem: Problem, *, buffer_size: int | None = None, reads: Reads = "exact") -> Warm:
    """TLSTD after ``problem.warm`` samples and what is missing to the end of a buffer."""
    model = TLSTD(problem.n_features, problem.rank, lambda_=problem.lambda_, buffer_size=buffer_size, reads=reads)
    model.update_many(problem.stream[:1])
    buffer = model.buffer_capacity
    start = whole(problem.warm, buffer)
    model.update_many(problem.stream[1:start])
    return Warm(model, start, buffer)


def core_shape(warm: Warm, problem: Problem) -> tuple[int, int]:
    """Rows and columns of the core of the last read before a compression."""
    model = deepcopy(warm.model)
    model.update_many(problem.stream[warm.start : warm.start + warm.buffer - 1])
    return model.core_shape


def whole(count: int, buffer: int) -> int:
    """``count`` rounded up to whole buffers."""
    return -(-count // buffer) * buffer


def many(name: str, model: LinearEstimator, part: Transitions) -> Side:
    """``update_many`` of a copy of the model."""
    return Side(name, len(part), lambda: partial(deepcopy(model).update_many, part))


def many_read(name: str, model: LinearEstimator, part: Transitions) -> Side:
    """``update_and_predict`` of a copy of the model."""
    return Side(name, len(part), lambda: partial(deepcopy(model).update_and_predict, part))


def stepwise(name: str, model: LinearEstimator, part: Transitions, *, read: bool) -> Side:
    """``update`` of a copy of the model, sample by sample, with a prediction after each if ``read``."""
    samples = list(part)
    learn = _update_and_predict if read else _update
    return Side(name, len(samples), lambda: partial(learn, deepcopy(model), samples))


def _update(model: LinearEstimator, samples: Iterable[Transition]) -> None:
    for sample in samples:
        model.update(sample)


def _update_and_predict(model: LinearEstimator, samples: Iterable[Transition]) -> None:
    for sample in samples:
        model.update(sample)
        model.predict(sample.x)


# --- dense baselines ------------------------------------------------------------------------------------------------


def reference(problem: Problem, *, mini_batch: bool, buffers: int) -> Side:
    """The dense reference, going on through the stream: its cost is the same wherever it is, once it has its rank.

    With ``mini_batch`` its k = r, otherwise k = 1 and the solution is read after every sample.
    """
    model = ReferenceTLSTD(problem.n_features, problem.rank, lambda_=problem.lambda_, mini_batch=mini_batch)

    def step(x: FloatArray, reward: float, x_next: FloatArray, discount: float, trace_discount: float) -> None:
        model.update(x, reward, x_next, discount=discount, trace_discount=trace_discount)
        if not mini_batch:
            float(x @ model.weights)

    name = "dense reference, k=r" if mini_batch else "dense reference, k=1, read at every step"
    return _onwards(name, problem, buffers, step)


def one_projection(problem: Problem, *, buffers: int) -> Side:
    """:class:`~tlstd_lab.bench.one_projection.OneProjectionTLSTD` (k = r), going on through the stream."""
    model = OneProjectionTLSTD(problem.n_features, problem.rank, lambda_=problem.lambda_)

    def step(x: FloatArray, reward: float, x_next: FloatArray, discount: float, trace_discount: float) -> None:
        model.update(x, reward, x_next, discount=discount, trace=trace_discount)

    return _onwards("one projection in NumPy, k=r", problem, buffers, step)


def _onwards(name: str, problem: Problem, buffers: int, step: Callable[..., None]) -> Side:
    """A dense learner on the next samples of the stream at every repeat, after two buffers."""
    size = buffers * problem.rank
    position = iter(range(2 * problem.rank, len(problem.stream), size))

    def learn(part: Transitions) -> Callable[[], None]:
        samples = [(_dense(t.x), float(t.reward), _dense(t.x_next), t.discount, t.trace_discount) for t in part]

        def action() -> None:
            for sample in samples:
                step(*sample)

        return action

    def prepare() -> Callable[[], None]:
        start = next(position)
        return learn(problem.stream[start : start + size])

    learn(problem.stream[: 2 * problem.rank])()
    return Side(name, size, prepare)


def _dense(x: Vector) -> FloatArray:
    return x.toarray() if isinstance(x, SparseVector) else x
