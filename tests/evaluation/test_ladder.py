"""What an answer stands on: decided by ends, and as good as the mean of returns where that is to be had."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from tests.evaluation.logs import Decisions, random_decisions, simulated
from tlstd import Log
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.evaluation import Report, difference, evaluate, mean_interval
from tlstd.features.constant import Constant

GAMMA = 0.9
HALF = np.full((8, 2), 0.5)


def process(ends: float = 0.2) -> Decisions:
    return random_decisions(np.random.default_rng(3), 8, 2, 3, ends)


def logged(seed: int, n_steps: int = 2_000, limit: int = 1_000) -> Log:
    """Episodes that end by chance, or are cut off at the limit."""
    return simulated(process(), HALF, np.random.default_rng(seed), n_steps, limit, known=True)


def complete(log: Log) -> Log:
    """Its episodes that ended."""
    return log.select(np.flatnonzero(log.terminated[log.episodes[1:] - 1]))


def truth() -> float:
    values = (HALF * process().action_values(HALF, GAMMA)).sum(axis=1)
    return float(values.mean())


def returns(log: Log) -> FloatArray:
    return np.array([log.rewards[a:b] @ GAMMA ** np.arange(b - a) for a, b in pairwise(log.episodes.tolist())])


def test_complete_episodes_have_the_mean_of_returns_whatever_the_features() -> None:
    log = complete(logged(0))
    each = returns(log)
    expected = mean_interval(each)
    for features in ("auto", Constant()):
        found = evaluate(log, gamma=GAMMA, features=features)
        assert (found.rung, found.rows[0].name) == ("mean of returns", "mean of returns")
        assert found.value == pytest.approx(each.mean(), rel=1e-12)
        own = found.interval()
        assert (own.low, own.high, own.degrees) == pytest.approx((expected.low, expected.high, each.size - 1))
        assert own.covers == expected.covers
        assert [row.name for row in found.rows] == ["mean of returns", "KrylovLSTD"]
        assert found.of_model.name == "KrylovLSTD"
        assert found.predict([0]).shape == (1,)


def test_rung_and_assumption_are_told() -> None:
    found = evaluate(complete(logged(0)), gamma=GAMMA)
    assert f"Rung: mean of returns. Assumption: {found.assumption}" in str(found)
    whole = json.loads(found.to_json())
    assert (whole["schema"], whole["rung"], whole["assumption"]) == (3, found.rung, found.assumption)
    about = {check["name"]: check["about"] for check in whole["trust"]["checks"]}
    assert about["episodes"] == about["ends"] == about["stationarity"] == about["influence"] == "answer"
    assert about["residuals"] == about["calibration"] == about["score"] == about["agreement"] == "state values"
    assert whole["best_estimate"] == {"value": found.best_estimate, "by": found.best_by}
    assert set(whole["trust"]["state_values"]) == {"light", "reasons"}


def test_the_rung_is_chosen_by_ends_and_never_by_rewards() -> None:
    log = complete(logged(0, 400))
    cut = simulated(process(), HALF, np.random.default_rng(0), 400, 4)
    stream = Log.from_arrays(log.observations, log.rewards, discrete=True)
    rng = np.random.default_rng(1)
    for one, options, rung in (
        (log, {}, "mean of returns"),
        (cut, {}, "returns with tails"),
        (log, {"start": "all"}, "mean of returns"),
        (cut, {"start": "all"}, "returns with tails"),
        (log, {"start": [0, 1]}, "least squares"),
        (stream, {}, "mean of returns"),
        (stream, {"start": "all"}, "mean of returns"),
        (stream, {"start": "first"}, "least squares"),
        (stream[:5], {}, "least squares"),
        (log.select([0]), {}, "least squares"),
    ):
        for rewards in (one.rewards, 1e3 * rng.standard_normal(len(one)), np.ones(len(one))):
            assert evaluate(replace(one, rewards=rewards), gamma=GAMMA, **options).rung == rung


@pytest.mark.parametrize("limit", [4, 12])
def test_returns_with_tails_cover(limit: int) -> None:
    """The weights' influence counts: by itself what was seen says nothing about how wrong the rest is."""
    found = [evaluate(logged(seed, 800, limit), gamma=GAMMA) for seed in range(60)]
    assert {one.rung for one in found} == {"returns with tails"}
    assert np.mean([truth() in one.interval() for one in found]) >= 0.88
    errors = np.array([one.value - truth() for one in found])
    spread = np.mean([one.interval().standard_error for one in found])
    assert 0.75 < spread / np.sqrt(np.mean(errors**2)) < 1.3
    tails = found[0].case.tails
    assert tails is not None
    assert tails.matter or limit > 4


def test_tails_that_hardly_count_leave_the_mean_of_returns() -> None:
    """Cut off after 60 steps, 0.9⁶⁰ of the weight lies behind: completed, and no matter of the model."""
    log = simulated(process(0.02), HALF, np.random.default_rng(0), 6_000, 60)
    assert log.truncated.any()
    found = evaluate(log, gamma=GAMMA)
    assert found.rung == "mean of returns"
    assert found.case.tails is not None
    assert not found.case.tails.matter
    assert found.trust["tails"].state == "green"
    assert found.value == pytest.approx(returns(log).mean(), abs=0.02 * abs(found.value))
    assert "not features" not in found.interval().covers


def test_names_of_before_and_rows_on_request() -> None:
    log = complete(logged(0, 600))

    def names(found: Report) -> list[str]:
        return [row.name for row in found.rows]

    assert names(evaluate(log, gamma=GAMMA, estimators="Monte Carlo")) == ["mean of returns"]
    assert names(evaluate(log, gamma=GAMMA, estimators=["TD", "returns with tails"])) == ["mean of returns", "TD"]
    compared = evaluate(log, gamma=GAMMA, compare=True)
    assert names(compared) == ["mean of returns", "KrylovLSTD", "LSTD", "t-LSTD", "TD", "fitted trees"]
    assert compared.value == evaluate(log, gamma=GAMMA).value


def test_differences_stand_on_the_returns_too() -> None:
    log = complete(logged(1))
    acted = evaluate(log, gamma=GAMMA)

    def other(states: IntArray) -> FloatArray:
        return np.tile([0.7, 0.3], (len(states), 1))

    for estimators in ("KrylovLSTD", "LSTDQ"):
        asked = evaluate(log, gamma=GAMMA, policy=other, estimators=estimators)
        found = difference(asked, acted)
        assert found.value == pytest.approx(asked.value - acted.value)
        assert found.n_groups == log.n_episodes
        apart = np.hypot(asked.interval().standard_error, acted.interval().standard_error)
        assert 0.0 < found.standard_error < apart
    assert difference(acted, acted).half_width < 1e-6
    with pytest.raises(ValueError, match="same gamma"):
        difference(acted, evaluate(log, gamma=0.8))


def test_ends_at_a_time_limit_that_the_log_tells_apart() -> None:
    """Of the episodes that reach the limit most are cut off, and some end there by chance."""
    log = simulated(process(0.1), HALF, np.random.default_rng(0), 1_200, 6)
    longest = np.diff(log.episodes) == 6
    ended = longest & log.terminated[log.episodes[1:] - 1]
    assert 0.05 * log.n_episodes < ended.sum() < longest.sum() / 2
    trust = evaluate(log, gamma=GAMMA).trust
    assert trust is not None
    assert trust["ends"].state == "green"
