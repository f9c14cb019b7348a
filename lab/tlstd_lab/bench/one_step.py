"""Rows of learning while acting: encode, TransitionBuilder.step, update and predict, once a step from Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from tlstd.classic.lstd import LSTD
from tlstd.classic.td import TD
from tlstd.classic.true_online_td import TrueOnlineTD
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.data.transitions import Transition, TransitionBuilder
from tlstd.data.vectors import Vector
from tlstd.domains.mountain_car import MountainCar
from tlstd.estimators.base import LinearEstimator
from tlstd.features.tile_coding import TileCoder
from tlstd.streams.simulated import trajectory
from tlstd.truncated.tlstd import TLSTD
from tlstd_lab.bench import bare_steps
from tlstd_lab.bench.row import Bench, Line, cost, duration
from tlstd_lab.bench.timing import Side

GAMMA, LAMBDA, ALPHA = 0.99, 0.9, 0.01
TILES, TILINGS = 10, 10
MOST = 8.0
"""Times a bare compiled call that the four calls may take."""


class Step(NamedTuple):
    """What the environment says after an action."""

    state: FloatArray
    reward: float
    terminated: bool


class Acting(NamedTuple):
    """Mountain Car under its policy, tile-coded: steps to learn before, and those that are timed, a part of them."""

    coder: TileCoder
    begin: FloatArray
    warm: list[Step]
    steps: list[Step]


def acting(quick: bool) -> Acting:
    """One endless stream: where an episode ends, the next one begins in the same state."""
    car = MountainCar()
    n = 300 if quick else 4_000
    path = trajectory(car, n_steps=n, seed=0)
    ended = path.terminated.tolist()
    states = [path.states[row + 1].copy() for row in path.rows]
    steps = [Step(*step) for step in zip(states, path.rewards.tolist(), ended, strict=True)]
    coder = TileCoder(car.low, car.high, tiles=TILES, tilings=TILINGS)
    return Acting(coder, path.states[0].copy(), steps, steps[n // 2 :])


def _encoded(made: Acting) -> list[Vector]:
    return [made.coder.encode(step.state) for step in made.steps]


def _built(made: Acting, xs: Sequence[Vector]) -> list[Transition]:
    build = TransitionBuilder(GAMMA)
    build.reset(xs[-1])
    out = []
    for x, (_, reward, terminated) in zip(xs, made.steps, strict=True):
        out.append(build.step(reward, x, terminated=terminated))
        if terminated:
            build.reset(x)
    return out


def _updated(model: LinearEstimator, built: Sequence[Transition]) -> None:
    for t in built:
        model.update(t)


def _all(made: Acting, model: LinearEstimator, read: bool) -> list[float]:
    build, values = TransitionBuilder(GAMMA), []
    build.reset(made.coder.encode(made.steps[-1].state))
    for state, reward, terminated in made.steps:
        x = made.coder.encode(state)
        model.update(build.step(reward, x, terminated=terminated))
        if read:
            values.append(model.predict(x))
        if terminated:
            build.reset(x)
    return values


def _warmed(made: Acting, model: LinearEstimator) -> LinearEstimator:
    """The model after the first part, so that all features have been seen."""
    build = TransitionBuilder(GAMMA)
    build.reset(made.coder.encode(made.begin))
    for state, reward, terminated in made.warm:
        x = made.coder.encode(state)
        model.update(build.step(reward, x, terminated=terminated))
        if terminated:
            build.reset(x)
    return model


class Bare:
    """A bare call over the same steps, with its arrays."""

    def __init__(self, made: Acting, call: Callable[..., float], options: tuple[float, ...], *arrays: Any) -> None:
        self.made, self.call, self.options, self.arrays = made, call, options, arrays
        self.box = np.array([made.coder.low, made.coder.high])
        self.ids: IntArray = np.zeros((2, TILINGS), dtype=np.int64)
        self.trace = np.zeros(2)
        self.ids[0] = made.coder.encode(made.steps[-1].state).indices

    def run(self) -> list[float]:
        """Take all steps; returns the values."""
        call, box, ids, trace, arrays, options = self.call, self.box, self.ids, self.trace, self.arrays, self.options
        values = []
        for state, reward, terminated in self.made.steps:
            discount = 0.0 if terminated else GAMMA
            values.append(call(state, box, ids, trace, *arrays, TILES, reward, discount, 1.0, terminated, *options))
        assert min(values) > bare_steps.REFUSED
        return values


def _compared(bench: Bench, made: Acting, name: str, model: LinearEstimator, bare: Bare, *, read: bool = True) -> Line:
    """The four calls (three without ``read``) against the bare call, with the share of each in the note."""
    model, n = _warmed(made, model), len(made.steps)
    xs = _encoded(made)
    built = _built(made, xs)
    ours, theirs, encode, build, update = bench.time(
        Side(name, n, lambda: partial(_all, made, deepcopy(model), read)),
        Side("a bare compiled call", n, lambda: deepcopy(bare).run),
        Side("encode", n, lambda: partial(_encoded, made)),
        Side("build", n, lambda: partial(_built, made, xs)),
        Side("update", n, lambda: partial(_updated, deepcopy(model), built)),
    )
    shares = {side.name: side.per_step for side in (encode, build, update)}
    shares["predict"] = max(0.0, ours.per_step - sum(shares.values()))
    bench.data[name] = shares
    note = ", ".join(f"{part} {duration(seconds)}" for part, seconds in shares.items() if read or part != "predict")
    return cost(ours, theirs, MOST, note=note)


def one_step(bench: Bench) -> list[Line]:
    """Encode, build, update and predict once a step from Python, 10 of 1,000 tiles, against one compiled call."""
    made = acting(bench.quick)
    d = made.coder.n_features
    zeros = partial(np.zeros, d)
    seen = np.unique([x.indices for x in map(made.coder.encode, (step.state for step in made.warm))])
    n, row_of = seen.size, np.zeros(d, dtype=np.int64)
    row_of[seen] = np.arange(n)
    k = len(made.steps) + 1
    entries = 2 * TILINGS * k
    buffers = (
        *(np.zeros(entries, dtype=np.int64) for _ in range(2)),
        *(np.zeros(entries) for _ in range(2)),
        *(np.zeros((2, k + 1), dtype=np.int64), np.zeros((5, k)), np.zeros(1, dtype=np.int64)),
    )
    long_buffer = len(made.warm) + k
    few = made._replace(steps=made.steps[-len(made.steps) // 20 :])  # O(n²) each
    lines = [
        _compared(
            *(bench, made, "TD", TD(d, step_size=ALPHA, lambda_=LAMBDA)),
            Bare(made, bare_steps.td, (ALPHA, LAMBDA), zeros(), zeros()),
        ),
        _compared(
            *(bench, made, "TrueOnlineTD", TrueOnlineTD(d, step_size=ALPHA, lambda_=LAMBDA)),
            Bare(made, bare_steps.true_online_td, (ALPHA, LAMBDA), zeros(), zeros(), np.zeros(1)),
        ),
        _compared(
            *(bench, few, f"LSTD (recursive), {n} seen", LSTD(d, lambda_=LAMBDA, solver="recursive")),
            Bare(few, bare_steps.lstd, (LAMBDA,), np.eye(n), np.eye(n), np.zeros(n), np.zeros(n), row_of),
        ),
        _compared(
            *(bench, made, "TLSTD, without reads", TLSTD(d, 20, lambda_=LAMBDA, buffer_size=long_buffer)),
            Bare(made, bare_steps.buffered, (LAMBDA,), row_of, *buffers),
            read=False,
        ),
    ]
    if find_spec("swift_td") is not None:
        td, built = _warmed(made, TD(d, step_size=ALPHA, lambda_=LAMBDA)), _built(made, _encoded(made))
        learn = Side("TD, update and predict", len(built), lambda: partial(_read, deepcopy(td), built))
        lines.append(cost(*bench.compare(learn, _swift_td(made))))
    return lines


def _read(model: LinearEstimator, built: Sequence[Transition]) -> None:
    for t in built:
        model.update(t)
        model.predict(t.x_next)


def _swift_td(made: Acting) -> Side:
    """A step of SwiftTD's package (``swifttd``, not among the dependencies), which learns and returns a value."""
    package: Any = import_module("swift_td")
    options = {"epsilon": 0.9, "eta": 0.1, "decay": 0.999, "meta_step_size": 1e-3, "eta_min": 1e-6}
    model = package.SwiftTDBinaryFeatures(made.coder.n_features, LAMBDA, ALPHA, GAMMA, **options)
    steps = [(made.coder.encode(step.state).indices.tolist(), step.reward) for step in made.steps]

    def run() -> None:
        for ids, reward in steps:
            model.step(ids, reward)

    return Side("SwiftTD's package, a step with a list of ids", len(steps), lambda: run)
