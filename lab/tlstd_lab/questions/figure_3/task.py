"""Tasks that measure time: learning from samples that come at a fixed rate, and the run time of a trajectory.

CPU seconds of the process; data generation and evaluation are not counted, compilation happens before.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from tlstd.core import parameters
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.data.transitions import Transitions
from tlstd_lab.learning import make
from tlstd_lab.problems import problem, stream

WARM_UP = 700
"""Samples that a class learns once per process before it is timed: more than any default buffer."""

_ROUNDING = 1e-9

_warm: set[tuple[str, str]] = set()  # problems and classes that this process has learned with


class SampleClock:
    """Simulated time of a learner to which blocks of samples come at a fixed rate.

    Block i is complete at (i + 1) / ``rate``. A learner that is free then takes it; blocks that come while it is busy
    are lost, and a learner that is too fast waits.

    Example
    -------
    Ten blocks per second, and 0.25 s of work on each: two of three are lost (1, 2, 4, 5, 7, 8, 10 and 11).

    >>> clock = SampleClock(10.0)
    >>> taken = []
    >>> while clock.arrival() < 1.2:
    ...     taken.append(clock.take())
    ...     clock.work(0.25)
    >>> taken, clock.n_lost, round(clock.now, 2)
    ([0, 3, 6, 9], 8, 1.25)
    """

    def __init__(self, rate: float) -> None:
        self.rate = parameters.positive("rate", rate)
        self.now = 0.0
        """Seconds since the first sample was on its way; the learner is free from here on."""
        self.busy = 0.0
        """Seconds of work."""
        self.n_taken = 0
        self._next = 0  # the block after the one that was taken last

    @property
    def n_lost(self) -> int:
        """Blocks that have come by now and were not taken."""
        return self.coming() - self.n_taken

    def coming(self) -> int:
        """Return the block that a learner who is free from now on would be given."""
        return max(self._next, math.ceil(self.now * self.rate - _ROUNDING) - 1)

    def arrival(self) -> float:
        """Return when it is complete: now, or later."""
        return max(self.now, (self.coming() + 1) / self.rate)

    def take(self) -> int:
        """Wait for it and take it; return its number."""
        block = self.coming()
        self.wait(self.arrival())
        self.n_taken += 1
        self._next = block + 1
        return block

    def wait(self, until: float) -> None:
        """Idle, if it is not that late yet."""
        self.now = max(self.now, until)

    def work(self, seconds: float) -> None:
        """Be busy."""
        self.now += seconds
        self.busy += seconds


class Reading(NamedTuple):
    """The state of a clock when a solution had been read."""

    seconds: float
    busy: float
    n_taken: int
    n_lost: int


def follow(
    clock: SampleClock,
    due: Iterable[float],
    learn: Callable[[int, bool], None],
    read: Callable[[], None],
    timer: Callable[[], float] = time.process_time,
) -> Iterator[Reading]:
    """Learn from the blocks that are not lost; read the solution at each of the times that are ``due``, and yield.

    A busy learner reads when it is free again. Reading is work too, so a reading is complete a little after it is due.
    What the caller does between readings is not counted. ``learn`` is given a block's number and whether the one before
    it is missing. ``timer`` says how long work takes.

    Example
    -------
    A learner for whom nothing takes time:

    >>> list(follow(SampleClock(10.0), [0.55], lambda block, gap: None, lambda: None, timer=lambda: 0.0))
    [Reading(seconds=0.55, busy=0.0, n_taken=5, n_lost=0)]
    """
    last = -1
    for time_ in due:
        while clock.arrival() <= time_:
            block = clock.take()
            begin = timer()
            learn(block, block != last + 1)
            clock.work(timer() - begin)
            last = block
        clock.wait(time_)
        begin = timer()
        read()
        clock.work(timer() - begin)
        yield Reading(clock.now, clock.busy, clock.n_taken, clock.n_lost)


def rates(settings: dict[str, Any], seed: int) -> dict[str, IntArray | FloatArray]:
    """RMSE against simulated time where samples come at a fixed rate, and what comes while the learner is busy is lost.

    Settings: ``problem``, ``estimator`` (see :func:`make`), ``rate`` (samples per second), ``block`` (samples handed
    over at once), ``seconds`` (rising; when the solution is read). After a loss the trace starts empty: the states in
    between are not known. Columns: ``seconds`` when each solution was ready, its ``rmse``, samples ``learned`` and
    ``lost`` by then, and ``busy``, the seconds of work. Only times are measured; with equal times all is equal.
    """
    made, block, due = problem(settings["problem"]), settings["block"], settings["seconds"]
    n_blocks = math.floor(settings["rate"] * due[-1] / block + _ROUNDING)
    steps = stream(settings["problem"], n_blocks * block, seed)
    warm_up(settings["problem"], settings["estimator"])
    model = make(settings["estimator"], made.features.n_features)

    def learn(number: int, gap: bool) -> None:
        model.update_many(part_of(steps, number * block, (number + 1) * block, gap))

    def read() -> None:
        model.sparse_weights  # noqa: B018 - solved when read

    readings, errors = [], []
    for reading in follow(SampleClock(settings["rate"] / block), due, learn, read):
        readings.append(reading)
        errors.append(made.rmse(model.predict(made.X)))
    return {
        "seconds": np.array([reading.seconds for reading in readings]),
        "rmse": np.array(errors),
        "learned": np.array([reading.n_taken * block for reading in readings]),
        "lost": np.array([reading.n_lost * block for reading in readings]),
        "busy": np.array([reading.busy for reading in readings]),
    }


def runtime(settings: dict[str, Any], seed: int) -> dict[str, IntArray | FloatArray]:
    """CPU seconds that an estimator takes for a trajectory.

    Settings: ``problem``, ``estimator``, ``steps``, and ``each``: whether samples come one by one and the next state's
    value is predicted after every one of them, or all come at once and the weights are read at the end.
    """
    made = problem(settings["problem"])
    steps = stream(settings["problem"], settings["steps"], seed)
    warm_up(settings["problem"], settings["estimator"])
    model = make(settings["estimator"], made.features.n_features)
    singly = list(steps) if settings["each"] else []
    begin = time.process_time()
    if settings["each"]:
        for step in singly:
            model.update(step)
            model.predict(step.x_next)
    else:
        model.update_many(steps)
        model.sparse_weights  # noqa: B018 - solved when read
    return {"steps": np.array([len(steps)]), "seconds": np.array([time.process_time() - begin])}


def part_of(steps: Transitions, start: int, stop: int, gap: bool) -> Transitions:
    """Steps from ``start`` to ``stop``, with the trace cut before the first if there is a gap."""
    part = steps[start:stop]
    if gap:
        part.trace_discounts = part.trace_discounts.copy()
        part.trace_discounts[0] = 0.0
    return part


def warm_up(name: str, estimator: Mapping[str, Any]) -> None:
    """Have all that a class calls compiled, once per process."""
    key = (name, estimator["class"])
    if key in _warm:
        return
    model = make(estimator, problem(name).features.n_features)
    steps = stream(name, WARM_UP, 0)
    model.update_many(steps[:-1])
    model.sparse_weights  # noqa: B018 - solved when read
    model.update(steps[-1])
    model.predict(steps[-1].x_next)
    _warm.add(key)
