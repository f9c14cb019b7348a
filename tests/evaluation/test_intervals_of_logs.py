"""Intervals, influence and differences of what was evaluated from a log."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.evaluation.logs import Decisions, random_decisions, simulated
from tlstd import Log, TileCoder
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.errors import InvalidInputError, InvalidParameterError
from tlstd.evaluation import Interval, Report, difference, evaluate

GAMMA = 0.9
BEHAVIOUR = np.tile([0.5, 0.5], (12, 1))
TARGET = np.tile([0.8, 0.2], (12, 1))


def target(states: IntArray) -> FloatArray:
    return TARGET[states]


@pytest.fixture(scope="module")
def process() -> Decisions:
    return random_decisions(np.random.default_rng(5), 12, 2, 3, 0.1)


@pytest.fixture(scope="module")
def log(process: Decisions) -> Log:
    """Episodes from random states, cut off after 15 steps."""
    return simulated(process, BEHAVIOUR, np.random.default_rng(0), 4_000, 15, known=True)


@pytest.fixture(scope="module")
def on_policy(log: Log) -> Report:
    return evaluate(log, gamma=GAMMA, estimators=["KrylovLSTD", "mean of returns"])


@pytest.fixture(scope="module")
def with_ratios(log: Log) -> Report:
    return evaluate(log, gamma=GAMMA, policy=target, estimators=["KrylovLSTD"])


@pytest.fixture(scope="module")
def action_values(log: Log) -> Report:
    return evaluate(log, gamma=GAMMA, policy=target, estimators=["LSTDQ"])


def truth(process: Decisions, policy: FloatArray) -> FloatArray:
    values: FloatArray = (policy * process.action_values(policy, GAMMA)).sum(axis=1)
    return values


def of_row(report: Report, name: str) -> Interval:
    """The interval of a row of the table."""
    found = next(row.interval for row in report.rows if row.name == name)
    assert found is not None
    return found


def test_start_states_and_single_ones(process: Decisions, on_policy: Report) -> None:
    values = truth(process, BEHAVIOUR)
    found, returns = of_row(on_policy, "KrylovLSTD"), of_row(on_policy, "returns with tails")
    for each in (found, returns):
        assert abs(each.value - values.mean()) < 3.5 * each.standard_error
        assert "start states" in each.covers
    assert 0.5 < found.standard_error / returns.standard_error < 1.2
    inside = [values[s] in on_policy.interval([s], level=0.999) for s in range(12)]
    assert all(inside)
    single = on_policy.interval([3])
    assert "start states" not in single.covers
    assert single.half_width < on_policy.interval([3], level=0.99).half_width


def test_other_policies_with_and_without_ratios(process: Decisions, with_ratios: Report, action_values: Report) -> None:
    values = truth(process, TARGET)
    for evaluation in (with_ratios, action_values):
        found = evaluation.interval()
        assert abs(found.value - values.mean()) < 3.5 * found.standard_error
        assert found.standard_error < 0.5


def test_action_values_are_the_same_beside_ratios(log: Log, action_values: Report) -> None:
    """Debiased, with their interval, whether they are the answer or not."""
    both = evaluate(log, gamma=GAMMA, policy=target, estimators=["KrylovLSTD", "LSTDQ"])
    assert [row.name for row in both.rows] == ["LSTDQ", "KrylovLSTD with ratios"]
    assert both.rows[0].interval == action_values.rows[0].interval
    assert both.rows[0].value == action_values.value


def test_differences_on_one_log_are_narrower(
    process: Decisions, on_policy: Report, with_ratios: Report, action_values: Report
) -> None:
    expected = truth(process, TARGET).mean() - truth(process, BEHAVIOUR).mean()
    for other in (with_ratios, action_values):
        found = difference(other, on_policy)
        assert abs(found.value - expected) < 3.5 * found.standard_error
        apart = np.hypot(other.interval().standard_error, on_policy.interval().standard_error)
        assert found.standard_error < 0.9 * apart
    of_state = difference(with_ratios, on_policy, states=[4], level=0.5)
    assert of_state.low < of_state.value < of_state.high


def test_episodes_are_named_as_in_the_log(log: Log, on_policy: Report, action_values: Report) -> None:
    for report in (on_policy, action_values):
        found = report.influence()
        assert found.contributions.size == log.n_episodes
        assert found.value == pytest.approx(report.value)
        name, moved = report.most_influential(1)[0]
        assert abs(moved) == np.abs(found.contributions).max()
        assert log.ids.index(name) == int(np.abs(found.contributions).argmax())
        assert len(report.most_influential(7)) == 7


def test_an_episode_without_a_known_next_observation_counts_by_its_start_state() -> None:
    """Of seven episodes the second has one step whose next observation is not known: it is not learned from."""
    episodes = [0, 0, 1, *np.repeat(np.arange(2, 7), 2)]
    flags = [0, 1, 0, *[0, 1] * 5]
    log = Log.from_arrays([0, 1, 0, *[0, 1] * 5], np.ones(13), episodes=episodes, terminated=flags, discrete=True)
    evaluation = evaluate(log, gamma=0.5, estimators=["KrylovLSTD"])
    assert evaluation.fit.steps.kept.tolist() == [0, 1, *range(3, 13)]
    assert evaluation.value == pytest.approx(1.5)
    assert evaluation.influence().contributions.size == 7


def test_a_table_loses_the_last_steps_of_cut_episodes(log: Log) -> None:
    evaluation = evaluate(log, gamma=GAMMA, policy=TARGET[log.observations], estimators=["LSTDQ"])
    rows = evaluation.fit.steps.kept
    assert rows.size == len(log) - log.truncated.sum()
    assert not log.truncated[rows].any()


def test_the_answer_comes_with_its_interval(log: Log) -> None:
    evaluation = evaluate(log, gamma=GAMMA, estimators=["KrylovLSTD", "TD"], level=0.8)
    first, second = evaluation.rows
    assert first.interval == evaluation.interval(level=0.8)
    assert second.interval is None
    assert "80% interval" in evaluation.table
    assert "covers chance: which episodes and start states" in str(evaluation)
    plain = evaluation.predict(log.observations[log.start_rows]).mean()
    assert first.interval is not None
    assert evaluation.value == first.interval.value != plain
    assert first.plain == pytest.approx(plain)
    assert f"debiased from {plain:.5g}" in first.note
    whole = evaluate(log, gamma=0.1, estimators=["KrylovLSTD", "mean of returns"])  # returns are seen to their end
    assert whole.rows[0].interval is not None
    assert whole.rows[0].interval.kind == "returns"
    with pytest.raises(InvalidParameterError, match="level"):
        evaluate(log, gamma=GAMMA, level=0.0)


def test_what_is_refused(on_policy: Report, log: Log) -> None:
    with pytest.raises(InvalidInputError, match="shape"):
        on_policy.interval([[1.0, 2.0]])
    with pytest.raises(InvalidParameterError, match="level"):
        on_policy.interval(level=1.5)
    other = evaluate(log, gamma=0.5, estimators=["KrylovLSTD"])
    with pytest.raises(InvalidInputError, match="same gamma"):
        difference(on_policy, other)


def test_without_noise_the_value_is_inside_and_without_a_future_no_step_is_an_episode() -> None:
    """Every episode is the same: the interval is what rounding leaves. γ = 0 does not make steps of it episodes."""
    n, gamma = 6, 0.9
    places = np.tile(np.arange(n), 20)
    log = Log.from_arrays(places, places == n - 1.0, terminated=places == n - 1, episodes=np.arange(20 * n) // n)
    found = evaluate(log, gamma=gamma, estimators=["KrylovLSTD", "mean of returns"])
    for row in found.rows:
        assert row.interval is not None
        assert gamma ** (n - 1) in row.interval
        assert row.interval.half_width < 1e-6
    noisy = replace(log, rewards=np.random.default_rng(0).standard_normal(20 * n))
    blind = evaluate(noisy, gamma=0.0, estimators=["KrylovLSTD"])
    assert blind.trust is not None
    assert blind.trust["effective"].value == pytest.approx(20.0)


def test_what_was_encoded_for_a_table_is_not_taken_for_states() -> None:
    """As many states as steps: rows of the steps, in the order of the log, are not those of the states in theirs."""
    rng, n = np.random.default_rng(0), 300
    states, actions = rng.permutation(n), rng.integers(0, 2, n)
    log = Log.from_arrays(
        states,
        states / n + 0.3 * actions + 0.1 * rng.standard_normal(n),
        actions=actions,
        terminated=np.ones(n, bool),
        probabilities=np.full(n, 0.5),
        discrete=True,
    )
    asked: Any = {
        "gamma": 0.5,
        "policy": np.column_stack([states / n, 1.0 - states / n]),
        "features": TileCoder([0.0], [float(n)], tiles=6, tilings=3),
    }
    alone = evaluate(log, estimators=["KrylovLSTD"], **asked)
    beside = evaluate(log, estimators=["LSTDQ", "KrylovLSTD"], **asked)
    assert beside.rows[1].value == pytest.approx(alone.value, rel=1e-12)
    assert beside.rows[1].interval == alone.rows[0].interval
