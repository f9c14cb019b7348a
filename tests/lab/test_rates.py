"""The sample clock and the tasks that measure time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tlstd_lab.learning import curve
from tlstd_lab.problems import stream
from tlstd_lab.questions.figure_3 import task as rates
from tlstd_lab.questions.figure_3.task import Reading, SampleClock, follow, part_of

from tlstd.errors import InvalidParameterError

PROBLEM = "car-tiles"
TD: dict[str, Any] = {"class": "TD", "lambda_": 0.9, "step_size": 0.01}


class Watch:
    """A timer that goes on only when told."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_slow_learner_loses_what_comes_while_it_is_busy() -> None:
    # blocks are complete at 1, 2, 3, ... s. The learner takes 1.5, 0.5, 3.5 and 1 s, and 0.25 s for a reading:
    #   block 0 at 1, until 2.5 (1 is lost); block 2 at 3, until 3.5; due at 3.5: read until 3.75;
    #   block 3 at 4, until 7.5 (4, 5, 6 are lost); due at 5: read when free, until 7.75;
    #   block 7 at 8, until 9; block 8 at 9 would be complete at 9 = due: it is taken, 1 s, until 10; read until 10.25
    watch, costs, heard = Watch(), iter([1.5, 0.5, 3.5, 1.0, 1.0]), []

    def learn(block: int, gap: bool) -> None:
        heard.append((block, gap))
        watch.now += next(costs)

    def read() -> None:
        watch.now += 0.25

    readings = list(follow(SampleClock(1.0), [3.5, 5.0, 9.0], learn, read, watch))
    assert heard == [(0, False), (2, True), (3, False), (7, True), (8, False)]
    assert readings == [
        Reading(3.75, 2.25, 2, 1),
        Reading(7.75, 6.0, 3, 4),
        Reading(10.25, 8.25, 5, 5),  # blocks 1, 4, 5, 6 and 9, which came at 10
    ]


def test_a_fast_learner_loses_nothing_and_waits() -> None:
    heard = []
    clock = SampleClock(1000.0)
    readings = list(follow(clock, [0.1, 0.2], lambda block, gap: heard.append((block, gap)), lambda: None, Watch()))
    assert heard == [(block, False) for block in range(200)]
    assert readings == [Reading(0.1, 0.0, 100, 0), Reading(0.2, 0.0, 200, 0)]


def test_exactly_as_fast_as_samples_come() -> None:
    watch = Watch()

    def learn(block: int, gap: bool) -> None:
        watch.now += 0.1

    *_, last = follow(SampleClock(10.0), [100.0], learn, lambda: None, watch)
    assert (last.n_taken, last.n_lost) == (1000, 0)


def test_the_caller_may_take_its_time_between_readings() -> None:
    watch, seconds = Watch(), []
    for reading in follow(SampleClock(1.0), [1.5, 2.5], lambda block, gap: None, lambda: None, watch):
        watch.now += 1e6
        seconds.append(reading.seconds)
    assert seconds == [1.5, 2.5]


def test_a_rate_must_be_positive() -> None:
    with pytest.raises(InvalidParameterError, match="rate"):
        SampleClock(0.0)


def test_a_gap_cuts_the_trace_and_leaves_the_stream_alone() -> None:
    steps = stream(PROBLEM, 50, 0)
    before = steps.trace_discounts.copy()
    assert part_of(steps, 10, 20, True).trace_discounts[0] == 0.0
    np.testing.assert_array_equal(part_of(steps, 10, 20, False).trace_discounts, before[10:20])
    np.testing.assert_array_equal(steps.trace_discounts, before)


def test_without_losses_it_is_the_learning_curve() -> None:
    settings = {"problem": PROBLEM, "estimator": TD, "rate": 1, "block": 10, "seconds": [100, 200, 300]}
    columns = rates.rates(settings, seed=3)
    plain = curve({"problem": PROBLEM, "estimator": TD, "samples": [100, 200, 300]}, seed=3)
    np.testing.assert_allclose(columns["rmse"], plain["rmse"], rtol=1e-12)
    np.testing.assert_array_equal(columns["learned"], plain["samples"])
    np.testing.assert_array_equal(columns["lost"], 0)
    assert (np.diff(columns["busy"]) > 0.0).all()


def test_with_losses_fewer_samples_are_learned() -> None:
    due = np.array([0.0001, 0.001])
    settings = {"problem": PROBLEM, "estimator": TD, "rate": 10**7, "block": 10, "seconds": due.tolist()}
    columns = rates.rates(settings, seed=3)
    assert (columns["lost"] > 0).all()
    assert (columns["learned"] >= 10).all()
    assert (columns["learned"] + columns["lost"] >= 10**7 * due).all()
    assert (columns["seconds"] >= due).all()


@pytest.mark.parametrize("each", [False, True])
def test_run_time(each: bool) -> None:
    settings = {"problem": PROBLEM, "estimator": TD, "steps": 40, "each": each}
    columns = rates.runtime(settings, seed=3)
    assert columns["steps"].tolist() == [40]
    assert 0.0 < columns["seconds"][0] < 10.0
