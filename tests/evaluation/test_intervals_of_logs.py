"""Intervals, influence and differences of what was evaluated from a log."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.evaluation.logs import Decisions, random_decisions, simulated
from tlstd import Log
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.errors import InvalidInputError, InvalidParameterError
from tlstd.evaluation import Report, difference, evaluate

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
    found, model = on_policy.interval(), on_policy.of_model.interval
    assert model is not None
    assert (found.kind, model.kind) == ("returns with tails", "sandwich")
    for each in (found, model):
        assert abs(each.value - values.mean()) < 3.5 * each.standard_error
        assert "start states" in each.covers
    assert 0.5 < model.standard_error / found.standard_error < 1.2
    inside = [values[s] in on_policy.interval([s], level=0.999) for s in range(12)]
    assert all(inside)
    single = on_policy.interval([3])
    assert "start states" not in single.covers
    assert single.half_width < on_policy.interval([3], level=0.99).half_width
    assert on_policy.interval() == on_policy.rows[0].interval


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


def test_episodes_are_named_as_in_the_log(log: Log, on_policy: Report) -> None:
    found = on_policy.influence()
    assert found.contributions.size == log.n_episodes
    assert found.standard_error == pytest.approx(on_policy.interval().standard_error)
    name, moved = on_policy.most_influential(1)[0]
    assert abs(moved) == np.abs(found.contributions).max()
    assert log.ids.index(name) == int(np.abs(found.contributions).argmax())
    assert len(on_policy.most_influential(7)) == 7
    single = on_policy.influence([3])
    assert single.value == pytest.approx(on_policy.interval([3]).value)
    with pytest.raises(InvalidParameterError, match="count is 0"):
        on_policy.most_influential(0)


def test_without_an_episode_the_answer_moves_by_its_influence(log: Log, on_policy: Report) -> None:
    """To first order: an episode less moves the mean by its contribution."""
    (name, moved), *_ = on_policy.most_influential(1)
    rest = log.select(np.array([e for e, own in enumerate(log.ids) if own != name]))
    less = evaluate(rest, gamma=GAMMA, estimators=["KrylovLSTD", "mean of returns"])
    assert less.value - on_policy.value == pytest.approx(-moved, rel=0.25)


def test_steps_without_a_next_observation_are_left_out() -> None:
    """Of seven episodes the second has one step whose next observation is not known: it moves nothing."""
    episodes = [0, 0, 1, *np.repeat(np.arange(2, 7), 2)]
    flags = [0, 1, 0, *[0, 1] * 5]
    log = Log.from_arrays([0, 1, 0, *[0, 1] * 5], np.ones(13), episodes=episodes, terminated=flags, discrete=True)
    found = evaluate(log, gamma=0.5, estimators=["KrylovLSTD"])
    assert found.fit.steps.kept.tolist() == [0, 1, *range(3, 13)]
    assert found.influence().contributions.size == 7
    assert abs(found.influence().contributions[1]) < 1e-9
    assert any("left out" in note for note in found.notes)


def test_a_table_loses_the_last_steps_of_cut_episodes(log: Log) -> None:
    evaluation = evaluate(log, gamma=GAMMA, policy=TARGET[log.observations], estimators=["LSTDQ"])
    rows = evaluation.fit.steps.kept
    assert rows.size == evaluation.model.model.n_updates == len(log) - log.truncated.sum()
    assert not log.truncated[rows].any()
    assert {name for name, _ in evaluation.most_influential(3)} < set(log.ids)


def test_the_answer_comes_with_its_interval(log: Log) -> None:
    evaluation = evaluate(log, gamma=GAMMA, estimators=["KrylovLSTD", "TD"], level=0.8)
    first, second = evaluation.rows
    assert first.interval is not None
    assert first.interval == evaluation.interval(level=0.8)
    assert second.interval is None
    assert "80% interval" in evaluation.table
    assert "covers chance: which episodes and start states" in str(evaluation)
    assert evaluation.value == first.interval.value != first.plain
    assert f"debiased from {first.plain:.5g}" in first.note
    starts = evaluation.predict(log.observations[log.start_rows])
    assert first.plain == pytest.approx(starts.mean())
    whole = evaluate(log, gamma=0.1, estimators=["KrylovLSTD", "mean of returns"])  # returns are seen to their end
    assert whole.interval().kind == "returns"
    for level in (0.0, 1.0, 2.0):
        with pytest.raises(InvalidParameterError, match="level"):
            evaluate(log, gamma=GAMMA, level=level)
        with pytest.raises(InvalidParameterError, match="level"):
            evaluation.interval(level=level)


def test_rows_without_an_interval_say_so(log: Log) -> None:
    found = evaluate(log, gamma=GAMMA, estimators="TD")
    assert found.interval_or_none is None
    assert "interval" not in found.table
    for ask in (found.interval, found.influence, found.most_influential, found.ends):
        with pytest.raises(InvalidInputError, match="leave estimators out"):
            ask()
    assert found.interval([3]).half_width > 0.0


def test_what_is_refused(on_policy: Report) -> None:
    with pytest.raises(InvalidInputError, match="shape"):
        on_policy.interval([[1.0, 2.0]])
    with pytest.raises(InvalidInputError, match="shape"):
        on_policy.predict([])


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
    assert blind.trust["effective"].value == pytest.approx(20.0)


# --- streams ----------------------------------------------------------------------------------------------------------


def moving(seed: int, n: int = 3_000) -> Log:
    """A level that returns to its mean, with two actions that move it."""
    rng, x = np.random.default_rng(seed), np.zeros(n + 1)
    actions = rng.integers(0, 2, n)
    for t in range(n):
        x[t + 1] = 0.8 * x[t] + 0.3 * (actions[t] - 0.5) + 0.5 * rng.standard_normal()
    return Log.from_arrays(x[:n, None], x[:n], actions=actions, probabilities=np.full(n, 0.5))


def test_streams_by_returns_to_go_in_blocks() -> None:
    """Coverage of 0, the mean of all states; blocks that depend on each other are joined."""
    found = [evaluate(moving(seed, 1_000), gamma=0.8, estimators="mean of returns") for seed in range(40)]
    assert {one.rung for one in found} == {"mean of returns"}
    assert {one.interval().kind for one in found} == {"blocks"}
    assert np.mean([0.0 in one.interval() for one in found]) >= 0.88
    assert found[0].assumption.startswith("Stretches of the stream")
    error, spread = np.std([one.value for one in found]), np.mean([one.interval().standard_error for one in found])
    assert 0.7 < spread / error < 1.4


def test_differences_of_policies_on_one_stream() -> None:
    """Of what has the same blocks, and of joined blocks with the blocks that these were made from."""
    log = moving(0)

    def more(states: FloatArray) -> FloatArray:
        return np.tile([0.3, 0.7], (len(states), 1))

    acted, other = evaluate(log, gamma=0.8), evaluate(log, gamma=0.8, policy=more)
    found = difference(other, acted)
    truth = 0.3 * 0.2 * 0.8 / (1.0 - 0.8 * 0.8) / (1.0 - 0.8)
    assert found.value == pytest.approx(other.value - acted.value)
    assert np.isfinite(found.half_width)
    assert abs(found.value - truth) < 4.0 * found.standard_error
    assert difference(acted, acted).half_width < 1e-6
    assert acted.compared(other).comparison is not None


def test_blocks_are_named_by_their_steps() -> None:
    found = evaluate(moving(1), gamma=0.8)
    moved = found.influence()
    names = found.most_influential(moved.contributions.size)
    assert len({name for name, _ in names}) == moved.contributions.size > 5
    first = min(names, key=lambda one: int(str(one[0]).split()[1].replace(",", "")))
    assert str(first[0]).startswith("steps 0 to ")


# --- episodes that belong together ------------------------------------------------------------------------------------


def shared(seed: int, n_clusters: int = 15, size: int = 6) -> tuple[dict[str, Any], list[Any]]:
    """Users with some episodes each, and a reward that all episodes of one user share; the value is 0."""
    rng = np.random.default_rng(seed)
    user = np.repeat(np.arange(n_clusters), size)
    offset = rng.standard_normal(n_clusters)[user]
    n = user.size
    seen = rng.standard_normal((2 * n, 1))
    rewards = np.repeat(offset, 2) + 0.5 * rng.standard_normal(2 * n)
    arrays = {
        "observations": seen, "rewards": rewards, "terminated": np.tile([False, True], n),
        "episodes": np.repeat(np.arange(n), 2), "actions": rng.integers(0, 2, 2 * n),
        "probabilities": np.full(2 * n, 0.5),
    }  # fmt: skip
    return arrays, [f"user {u}" for u in np.repeat(user, 2)]


def test_clusters_widen_intervals_where_rewards_are_shared() -> None:
    arrays, users = shared(0)
    apart, together = Log.from_arrays(**arrays), Log.from_arrays(**arrays, clusters=users)

    def other(states: FloatArray) -> FloatArray:
        return np.tile([0.4, 0.6], (len(states), 1))

    for options in ({}, {"estimators": "KrylovLSTD"}, {"policy": other}, {"policy": other, "estimators": "LSTDQ"}):
        one, two = (evaluate(log, gamma=0.5, **options).interval() for log in (apart, together))
        assert two.half_width > 1.5 * one.half_width
        assert (one.n_groups, two.n_groups) == (90, 15)
    both = difference(evaluate(together, gamma=0.5, policy=other), evaluate(together, gamma=0.5))
    assert both.n_groups == 15
    every = Log.from_arrays(**arrays, clusters=arrays["episodes"])
    assert evaluate(every, gamma=0.5).interval().half_width == pytest.approx(
        evaluate(apart, gamma=0.5).interval().half_width
    )


def test_clusters_cover() -> None:
    """200 logs: with clusters at least 90%, and much less without."""
    inside = np.zeros(2)
    for seed in range(200):
        arrays, users = shared(seed)
        for i, clusters in enumerate((None, users)):
            if clusters is None and seed % 4:
                continue
            log = Log.from_arrays(**arrays, clusters=clusters)
            inside[i] += 0.0 in evaluate(log, gamma=0.5, estimators="mean of returns").interval()
    assert inside[1] >= 0.9 * 200
    assert inside[0] <= 0.75 * 50
