"""Rewards in other units give the same answer in these units, however small or large the numbers are."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

from tests.cluster.logs import SHORT, in_files
from tests.evaluation.logs import random_decisions, simulated
from tlstd import KrylovLSTD, Log, evaluate, random_walk
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.data.transitions import Transitions
from tlstd.evaluation import Report, choose, difference, score

SCALES = [1e-300, 2.0**-300, 1e-161, 1e-155, 1e-8, 2.0**300, 1e98]
"""Rewards up to 1e100 are accepted."""

BEHAVIOUR = np.tile([0.5, 0.5], (12, 1))


def target(states: IntArray) -> FloatArray:
    return np.tile([0.8, 0.2], (len(states), 1))


QUESTIONS: dict[str, dict[str, Any]] = {
    "logged policy": {"estimators": ["KrylovLSTD", "TD", "mean of returns"]},
    "ratios": {"policy": target, "estimators": ["KrylovLSTD", "weighted IS", "doubly robust"]},
    "action values": {"policy": target, "estimators": ["LSTDQ"]},
    "columns": {"features": "columns", "estimators": ["KrylovLSTD"]},
}


@cache
def log_of(question: str) -> Log:
    if question == "columns":
        return Log.from_frame(SHORT)
    process = random_decisions(np.random.default_rng(5), 12, 2, 3, 0.1)
    return simulated(process, BEHAVIOUR, np.random.default_rng(0), 2_000, 15, known=True)


@cache
def answer(question: str, scale: float = 1.0) -> Report:
    log = log_of(question)
    return evaluate(replace(log, rewards=log.rewards * scale), gamma=0.9, **QUESTIONS[question])


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("question", QUESTIONS)
def test_answers_and_lights(question: str, scale: float) -> None:
    usual, found = answer(question), answer(question, scale)
    assert [row.name for row in found.rows] == [row.name for row in usual.rows]
    for row, same in zip(found.rows, usual.rows, strict=True):
        assert_allclose(row.value / scale, same.value, rtol=1e-9)
        if same.interval is not None:
            assert row.interval is not None
            for bound in ("value", "low", "high", "standard_error"):
                assert_allclose(getattr(row.interval, bound) / scale, getattr(same.interval, bound), rtol=1e-9)
            assert_allclose(row.interval.degrees, same.interval.degrees, rtol=1e-9)
    for check, same_check in zip(found.trust.checks, usual.trust.checks, strict=True):
        assert check.state == same_check.state, check.name
        measured = [np.nan if value is None else value for value in (check.value, same_check.value)]
        assert_allclose(measured[0], measured[1], rtol=1e-6, atol=1e-9, err_msg=check.name)
    assert found.light == usual.light


@pytest.mark.parametrize("scale", [1e-200, 1e98])
def test_all_intervals_differences_and_views(scale: float) -> None:
    usual, found = answer("logged policy"), answer("logged policy", scale)
    for states in (None, [3]):
        one, same = found.interval(states, level=0.8), usual.interval(states, level=0.8)
        assert_allclose([one.low / scale, one.high / scale], [same.low, same.high], rtol=1e-9)
        assert_allclose(one.standard_error / scale, same.standard_error, rtol=1e-9)
    assert found.best_by == usual.best_by
    assert_allclose(found.best_estimate / scale, usual.best_estimate, rtol=1e-9)
    assert_allclose(found.predict(range(12)) / scale, usual.predict(range(12)), rtol=1e-9)
    assert [name for name, _ in found.most_influential()] == [name for name, _ in usual.most_influential()]
    ratios = difference(answer("ratios", scale), found), difference(answer("ratios"), usual)
    assert_allclose([ratios[0].low / scale, ratios[0].degrees], [ratios[1].low, ratios[1].degrees], rtol=1e-9)
    by_column, same_views = answer("columns", scale).views, answer("columns").views
    assert_allclose([m.share for m in by_column.maps], [m.share for m in same_views.maps], rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-200, 1e98])
def test_a_log_in_files(scale: float, tmp_path: Path) -> None:
    from tlstd.cluster.evaluate import evaluate_files  # here: the other tests do without
    from tlstd.evaluation import Question

    found = []
    for s in (1.0, scale):
        folder = tmp_path / str(s)
        folder.mkdir()
        files = in_files(SHORT.with_columns(reward=pl.col("reward") * s), folder, 3)
        interval = evaluate_files(files, question=Question(gammas=(0.9,), estimators=("KrylovLSTD",))).rows[0].interval
        assert interval is not None
        found.append([interval.low / s, interval.high / s, interval.degrees])
    assert_allclose(found[1], found[0], rtol=1e-9)


def walk(scale: float) -> Transitions:
    steps = random_walk(19, gamma=0.95).sample(2_000, np.random.default_rng(0))
    return steps.with_columns(
        rewards=steps.rewards * scale,
        discounts=steps.discounts,
        trace_discounts=steps.trace_discounts,
        rhos=steps.rhos,
    )


@pytest.mark.parametrize("scale", [1e-200, 1e98])
def test_choices_and_scores(scale: float) -> None:
    found = []
    for s in (1.0, scale):
        steps = walk(s)
        choice = choose(lambda lambda_: KrylovLSTD(19, lambda_=lambda_, dimension=6), [0.0, 0.5, 0.9, 1.0], steps)
        model = KrylovLSTD(19, lambda_=0.9)
        model.update_many(steps)
        result = score(model, steps)
        numbers = [result.rmse / s, result.spread / s]
        found.append(([choice.value, choice.simplest, model.chosen_dimension], numbers))
    assert found[0][0] == found[1][0]
    assert_allclose(found[1][1], found[0][1], rtol=1e-9)
