"""Intervals, influence and differences of what was evaluated from a log."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.evaluation.logs import Decisions, random_decisions, simulated
from tlstd import Log
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.errors import InvalidInputError, InvalidParameterError
from tlstd.evaluation import Report, difference, evaluate, log_intervals
from tlstd.evaluation.log_intervals import learned_rows

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


def test_start_states_and_single_ones(process: Decisions, on_policy: Report) -> None:
    values = truth(process, BEHAVIOUR)
    found, returns = on_policy.interval(), on_policy.interval(kind="returns")
    for each in (found, returns, on_policy.interval(kind="debiased"), on_policy.interval(kind="plug-in")):
        assert abs(each.value - values.mean()) < 3.5 * each.standard_error
        assert "start states" in each.covers
    assert 0.5 < found.standard_error / returns.standard_error < 1.2
    inside = [values[s] in on_policy.interval([s], level=0.999) for s in range(12)]
    assert all(inside)
    single = on_policy.interval([3])
    assert "start states" not in single.covers
    assert single.half_width < on_policy.interval([3], level=0.99).half_width


def test_other_policies_with_and_without_ratios(
    process: Decisions, with_ratios: Report, action_values: Report
) -> None:
    values = truth(process, TARGET)
    for evaluation in (with_ratios, action_values):
        found = evaluation.interval()
        assert abs(found.value - values.mean()) < 3.5 * found.standard_error
        assert found.standard_error < 0.5
        with pytest.raises(InvalidInputError, match="the logged policy"):
            evaluation.interval(kind="returns")


def test_action_values_are_the_same_beside_ratios(log: Log, action_values: Report) -> None:
    """Debiased, with their interval, whether they are the answer or not."""
    both = evaluate(log, gamma=GAMMA, policy=target, estimators=["KrylovLSTD", "LSTDQ"])
    assert [row.name for row in both.rows] == ["KrylovLSTD with ratios", "LSTDQ"]
    assert both.rows[1].interval == action_values.rows[0].interval
    assert both.rows[1].value == action_values.value


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


def test_episodes_are_named_as_in_the_log(log: Log, on_policy: Report) -> None:
    found = on_policy.influence()
    assert found.names == tuple(log.ids)
    name, moved = found.most_influential(1)[0]
    assert abs(moved) == np.abs(found.contributions).max()
    assert log.ids.index(name) == int(np.abs(found.contributions).argmax())
    assert found.factors.size == len(log)


def test_steps_without_a_next_observation_are_left_out() -> None:
    """Of seven episodes the second has one step whose next observation is not known: no influence, and no name."""
    episodes = [0, 0, 1, *np.repeat(np.arange(2, 7), 2)]
    flags = [0, 1, 0, *[0, 1] * 5]
    log = Log.from_arrays([0, 1, 0, *[0, 1] * 5], np.ones(13), episodes=episodes, terminated=flags, discrete=True)
    evaluation = evaluate(log, gamma=0.5, estimators=["KrylovLSTD"])
    assert evaluation.fitted is not None
    assert learned_rows(evaluation.fitted).tolist() == [0, 1, *range(3, 13)]
    assert evaluation.influence().names == (0, 2, 3, 4, 5, 6)
    assert evaluation.interval().n_groups == 6


def test_a_table_loses_the_last_steps_of_cut_episodes(log: Log) -> None:
    evaluation = evaluate(log, gamma=GAMMA, policy=TARGET[log.observations], estimators=["LSTDQ"])
    assert evaluation.fitted is not None
    rows = learned_rows(evaluation.fitted)
    assert rows.size == evaluation.model.model.n_updates == len(log) - log.truncated.sum()
    assert not log.truncated[rows].any()
    assert evaluation.influence().names is not None


@pytest.mark.parametrize("name", ["on_policy", "with_ratios", "action_values"])
def test_large_logs_by_a_sample(name: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The adjoint system of a quarter of the steps, used on all: nearly the same value and width."""
    evaluation: Report = request.getfixturevalue(name)
    exact = evaluation.interval()
    monkeypatch.setattr(log_intervals, "SAMPLED", 1_000)
    monkeypatch.setattr(log_intervals, "SAMPLE", 1_500)
    assert evaluation.fitted is not None
    found = log_intervals.interval_for(evaluation.fitted, None, 0.95, "auto")
    assert found.kind == "sampled"
    assert found.n_groups == exact.n_groups
    assert abs(found.value - exact.value) < 0.5 * exact.standard_error
    assert found.standard_error == pytest.approx(exact.standard_error, rel=0.2)


def test_the_answer_comes_with_its_interval(log: Log) -> None:
    evaluation = evaluate(log, gamma=GAMMA, estimators=["KrylovLSTD", "TD"], level=0.8)
    first, second = evaluation.rows
    assert first.interval == evaluation.interval(level=0.8)
    assert second.interval is None
    assert "80% interval" in evaluation.table
    assert "covers chance: which episodes and start states" in str(evaluation)
    assert evaluation.fitted is not None
    assert evaluation.value == first.interval.value != evaluation.fitted.mean("start states")
    assert f"debiased from {evaluation.fitted.mean('start states'):.5g}" in first.note
    whole = evaluate(log, gamma=0.1, estimators=["KrylovLSTD", "mean of returns"])  # returns are seen to their end
    assert whole.rows[0].interval is not None
    assert whole.rows[0].interval.kind == "returns"
    assert evaluation.interval(kind="bootstrap").kind == "bootstrap"
    with pytest.raises(InvalidParameterError, match="level"):
        evaluate(log, gamma=GAMMA, level=0.0)


def test_what_is_refused(on_policy: Report) -> None:
    with pytest.raises(InvalidParameterError, match="kind"):
        on_policy.interval(kind="t")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="shape"):
        on_policy.interval([[1.0, 2.0]])
    with pytest.raises(InvalidInputError, match="log"):
        Report(on_policy.rows, on_policy.model, (), GAMMA, "nothing").interval()


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
