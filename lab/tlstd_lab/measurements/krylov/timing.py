"""CPU time on energy storage with 10,000 samples: batch reads, compiled streams, and streams from Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from enum import StrEnum
from functools import partial
from statistics import median
from typing import Any, NamedTuple

from tlstd import TLSTD, KrylovLSTD
from tlstd.core.threads import one_thread
from tlstd.estimators.base import LinearEstimator
from tlstd_lab.bench.timing import Side, Times, interleaved, ratios
from tlstd_lab.measurements.krylov.topic import DIMENSION, ENERGY_SAMPLES, LAMBDA, REPEATS, Data, Topic, sample
from tlstd_lab.measurements.krylov.tuned_td import LARGEST, PAPER
from tlstd_lab.problems import problem
from tlstd_lab.tables import some, table

WARM, PART = 6_400, 320
"""A model of t-LSTD in its steady state: whole buffers stand for all 10,000 samples."""


class Way(StrEnum):
    """What is timed, and its name in ``krylov.json``."""

    TD_PASS = "TD pass"
    TD_SWEEP = "TD sweep"
    BATCH_GIVEN = "batch given"
    BATCH_AUTO = "batch auto"
    TD_COMPILED = "TD compiled"
    STREAM_GIVEN = "stream given"
    STREAM_AUTO = "stream auto"
    TD_PYTHON = "TD Python"
    STREAM_GIVEN_PYTHON = "stream given Python"
    STREAM_AUTO_PYTHON = "stream auto Python"
    TLSTD_PYTHON = "t-LSTD Python"
    TLSTD_SHORT_BUFFER = "t-LSTD Python, buffer 40"


class Target(NamedTuple):
    """Times of one way over those of another, in words, and what they are to be at most."""

    ours: Way
    theirs: Way
    words: str
    against: str
    most: float


TARGETS = (
    Target(Way.BATCH_GIVEN, Way.TD_PASS, "batch, dimension 8", "one TD pass", 2.0),
    Target(Way.BATCH_AUTO, Way.TD_PASS, 'batch, "auto", folds included', "one TD pass", 8.0),
    Target(Way.BATCH_AUTO, Way.TD_SWEEP, "the same", "TD's sweep over the paper's 11 step sizes", 1.0),
    Target(Way.STREAM_GIVEN, Way.TD_COMPILED, "`update_and_predict`, dimension 8", "TD by the same call", 8.0),
    Target(Way.STREAM_AUTO, Way.TD_COMPILED, '`update_and_predict`, "auto"', "TD by the same call", 20.0),
    Target(Way.STREAM_GIVEN_PYTHON, Way.TD_PYTHON, "`update` and `predict`, dimension 8", "TD's", 1.5),
    Target(Way.STREAM_AUTO_PYTHON, Way.TD_PYTHON, '`update` and `predict`, "auto"', "TD's", 1.5),
    *(
        Target(ours, theirs, words, against, 0.1)
        for theirs, against in (
            (Way.TLSTD_PYTHON, "t-LSTD's, rank 40"),
            (Way.TLSTD_SHORT_BUFFER, "t-LSTD's with `buffer_size=40`"),
        )
        for ours, words in (
            (Way.STREAM_GIVEN_PYTHON, "the same, dimension 8"),
            (Way.STREAM_AUTO_PYTHON, 'the same, "auto"'),
        )
    ),
)


def measure() -> Data:
    made, n = problem("energy"), ENERGY_SAMPLES[-1]
    d, stream = made.features.n_features, sample(made, n, 0)
    steps = list(stream)
    td, krylov = partial(LARGEST.model, made), partial(KrylovLSTD, d, lambda_=LAMBDA)
    given = partial(krylov, dimension=DIMENSION)
    x = steps[-1].x_next

    def learn(model: LinearEstimator) -> None:
        model.update_many(stream)
        model.predict(x)

    def sweep() -> None:
        for setting in PAPER:
            learn(setting.model(made))

    def together(model: LinearEstimator) -> None:
        model.update_and_predict(stream)

    def one_by_one(model: LinearEstimator, part: Sequence[Any] = steps) -> None:
        for step in part:
            model.update(step)
            model.predict(step.x_next)

    def side(way: Way, make: Callable[[], LinearEstimator], action: Callable[[LinearEstimator], object]) -> Side:
        return Side(way, 1 if action is learn else n, lambda: partial(action, make()))

    def tlstd(way: Way, buffer_size: int | None) -> Side:
        model = TLSTD(d, 40, lambda_=LAMBDA, buffer_size=buffer_size)
        model.update_many(stream[:WARM])
        return Side(way, PART, lambda: partial(one_by_one, deepcopy(model), steps[WARM : WARM + PART]))

    sides = (
        side(Way.TD_PASS, td, learn),
        Side(Way.TD_SWEEP, 1, lambda: sweep),
        side(Way.BATCH_GIVEN, given, learn),
        side(Way.BATCH_AUTO, krylov, learn),
        side(Way.TD_COMPILED, td, together),
        side(Way.STREAM_GIVEN, partial(given, reads="stream"), together),
        side(Way.STREAM_AUTO, partial(krylov, reads="stream"), together),
        side(Way.TD_PYTHON, td, one_by_one),
        side(Way.STREAM_GIVEN_PYTHON, partial(given, reads="stream"), one_by_one),
        side(Way.STREAM_AUTO_PYTHON, partial(krylov, reads="stream"), one_by_one),
        tlstd(Way.TLSTD_PYTHON, None),
        tlstd(Way.TLSTD_SHORT_BUFFER, 40),
    )
    with one_thread():
        times = interleaved(sides, REPEATS)
    return {"seconds": {t.name: list(t.cpu) for t in times}, "steps": {t.name: t.steps for t in times}}


def in_words(data: Data) -> str:
    times = {way: Times(way, data["steps"][way], tuple(data["seconds"][way]), ()) for way in Way}
    rows = []
    for target in TARGETS:
        values = ratios(times[target.ours], times[target.theirs])
        reached = "yes" if median(values) <= target.most else "**no**"
        rows.append([target.words, target.against, some(values), f"≤ {target.most:g}", reached])
    ms = {way: f"{1e3 * t.per_step:.0f}" for way, t in times.items()}
    us = {way: f"{1e6 * t.per_step:,.{1 if t.per_step < 1e-4 else 0}f}" for way, t in times.items()}
    note = (
        f"In these runs TD took {ms[Way.TD_PASS]} ms for a pass, batch reads {ms[Way.BATCH_GIVEN]} ms (dimension 8) "
        f'and {ms[Way.BATCH_AUTO]} ms ("auto"). A step by `update_and_predict` took {us[Way.TD_COMPILED]} µs with TD, '
        f"{us[Way.STREAM_GIVEN]} and {us[Way.STREAM_AUTO]} µs here; from Python {us[Way.TD_PYTHON]} µs with TD, "
        f"{us[Way.STREAM_GIVEN_PYTHON]} and {us[Way.STREAM_AUTO_PYTHON]} µs here, {us[Way.TLSTD_PYTHON]} µs with "
        f"t-LSTD and {us[Way.TLSTD_SHORT_BUFFER]} µs with its shorter buffer, which is better for reads ({PART} steps "
        f"after {WARM:,} samples stand for all)."
    )
    return f"{table(['', 'against', 'CPU time, ratio', 'target', 'reached'], rows)}\n\n{note}"


TOPIC = Topic("time", measure, in_words)
