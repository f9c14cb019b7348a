"""One question of many parts: answered together as one by one; what carries an answer, and the point of least error."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.evaluation.logs import Decisions, random_decisions, simulated
from tlstd import Log
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.errors import InvalidInputError, InvalidParameterError, TlstdError
from tlstd.evaluation import Question, Report, difference, evaluate
from tlstd.evaluation.evaluate import answers
from tlstd.evaluation.report import best_row
from tlstd.features.constant import Constant

GAMMA = 0.9
HALF = np.full((8, 2), 0.5)


def process(ends: float = 0.2) -> Decisions:
    return random_decisions(np.random.default_rng(3), 8, 2, 3, ends)


def logged(seed: int = 0, n_steps: int = 1_200, *, known: bool = True, ends: float = 0.2, limit: int = 100) -> Log:
    return simulated(process(ends), HALF, np.random.default_rng(seed), n_steps, limit, known=known)


def mostly(share: float) -> Any:
    """A policy that takes the first action with this probability."""

    def policy(states: IntArray) -> FloatArray:
        return np.tile([share, 1.0 - share], (len(states), 1))

    return policy


def truth(share: float, gamma: float = GAMMA) -> float:
    policy = np.tile([share, 1.0 - share], (8, 1))
    return float((policy * process().action_values(policy, gamma)).sum(axis=1).mean())


def told(report: Report) -> dict[str, Any]:
    """What a report says, without the seconds."""
    whole: dict[str, Any] = json.loads(report.to_json())
    for row in whole["estimators"]:
        del row["seconds"]
    return whole


def alike(one: Any, other: Any) -> None:
    """The same but for rounding."""
    assert type(one) is type(other)
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            alike(one[key], other[key])
    elif isinstance(one, list):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            alike(a, b)
    elif isinstance(one, float):
        assert one == pytest.approx(other, rel=1e-6, abs=1e-9)
    else:
        assert one == other


# --- several at once --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("features", ["auto", Constant()])
def test_many_parts_are_answered_as_one_by_one(features: Any) -> None:
    log = logged(0, 500)
    rewards = np.random.default_rng(1).standard_normal(len(log))
    segment = np.arange(0, log.n_episodes, 2)
    question = Question(
        gammas=(0.5, GAMMA), policies=("logged", mostly(0.6)), starts=(None, "all", [0, 3]), rewards=(None, rewards),
        segments=(None, segment), features=features,
    )  # fmt: skip
    together = answers(question, log)
    assert len(together) == 2 * 2 * 3 * 2 * 2
    alone = []
    for policy in question.policies:
        for gamma in question.gammas:
            for start in question.starts:
                for own in question.rewards:
                    for part in question.segments:
                        some = log if own is None else replace(log, rewards=np.asarray(own))
                        some = some if part is None else some.select(np.asarray(part))
                        alone.append(evaluate(some, gamma=gamma, policy=policy, start=start, features=features))
    for one, same in zip(together, alone, strict=True):
        assert one.rung == same.rung
        alike(told(one), told(same))
    assert len({one.value for one in together}) > 0.9 * len(together)


def test_a_table_beside_a_function_where_every_state_is_seen_once() -> None:
    """Rows of features of the log's steps are not those of its states in order, although they are as many."""
    rng = np.random.default_rng(0)
    states = rng.permutation(40)
    log = Log.from_arrays(
        states, states + 0.0, actions=rng.integers(0, 2, 40), probabilities=np.full(40, 0.5), discrete=True,
        terminated=np.ones(40, dtype=np.bool_),
    )  # fmt: skip
    question = Question(gammas=(0.5,), policies=(mostly(0.6)(states), mostly(0.6), "logged"))
    for one, policy in zip(answers(question, log), question.policies, strict=True):
        same = evaluate(log, gamma=0.5, policy=policy)
        assert one.value == pytest.approx(same.value)
        assert_allclose(one.fit.regularised(one.case.sets[0]), same.fit.regularised(same.case.sets[0]))
        assert one.fit.regularised(one.case.sets[0]).std() > 1.0


def test_other_rewards_need_as_many_numbers_as_there_are_steps() -> None:
    with pytest.raises(InvalidInputError, match="rewards has 3 numbers: the log has"):
        answers(Question(gammas=(0.9,), rewards=(np.ones(3),)), logged())


def test_the_share_of_all_that_is_done_rises_to_one() -> None:
    told: list[tuple[str, float]] = []
    answers(Question(gammas=(0.5, 0.9), policies=("logged", mostly(0.6))), logged(), lambda *one: told.append(one))
    shares = [share for _, share in told]
    assert shares == sorted(shares)
    assert (shares[-1], told[-1][0]) == (1.0, "done")
    assert len({text for text, _ in told}) > 4


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"gammas": (0.9, 1.5)}, "gamma is 1.5"),
        ({"starts": ("last",)}, "start is 'last'"),
        ({"features": "stripes"}, "features is 'stripes'"),
        ({"level": 0.0}, "level is 0"),
        ({"cost": "no"}, "cost is 'no'"),
        ({"estimators": ()}, "estimators is empty"),
        ({"estimators": ("per-decision IS",)}, "estimators is 'per-decision IS'"),
        ({"probabilities": "guess"}, "probabilities is 'guess'"),
        ({"returns": (1.0, 0.0)}, "the lower number first"),
        ({"returns": (0.0, 1.0), "reward_range": (0.0, 1.0)}, "pass one"),
    ],
)
def test_questions_that_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidParameterError, match=words):
        Question(**({"gammas": (0.9,)} | options))


def test_a_question_describes_itself() -> None:
    """For comparison with later runs: functions by name and file, arrays by their contents."""
    one = Question(gammas=(0.9,), policies=(mostly, np.ones((3, 2)) / 2), rewards=(np.ones(3),)).described()
    other = Question(gammas=(0.9,), policies=(mostly, np.eye(2)[[0, 1, 0]]), rewards=(np.ones(3),)).described()
    assert one["rewards"] == other["rewards"]
    assert one["policies"][0]["name"].endswith("test_question:mostly")
    assert one["policies"][1] != other["policies"][1]
    assert json.dumps(one)


# --- what carries -----------------------------------------------------------------------------------------------------


def test_doubly_robust_carries_from_ten_effective_episodes() -> None:
    """Which rung it is follows from weights, never from rewards."""
    for share, n_steps in ((0.6, 1_200), (0.9, 300), (0.95, 150), (0.5, 40), (0.99, 100)):
        log = logged(0, n_steps)
        found = evaluate(log, gamma=GAMMA, policy=mostly(share))
        other = evaluate(replace(log, rewards=-100.0 * log.rewards**2), gamma=GAMMA, policy=mostly(share))
        assert other.case.effective == found.case.effective
        carries = found.case.effective >= 10
        assert (found.rung == other.rung == "doubly robust") == carries
        assert carries or found.rows[0].name == "LSTDQ"
        assert any("effective sample size of 10" in note for note in found.notes)
        assert abs(found.interval().value - truth(share)) < 5.0 * found.interval().half_width


def test_effective_sample_sizes_on_both_sides_of_ten_were_tried() -> None:
    sizes = [
        evaluate(logged(0, n), gamma=GAMMA, policy=mostly(s)).case.effective for s, n in ((0.6, 1_200), (0.99, 100))
    ]
    assert sizes[0] > 10 > sizes[1]


def test_without_probabilities_action_values_and_then_refusal() -> None:
    log = logged(known=False)
    found = evaluate(log, gamma=GAMMA, policy=mostly(0.9))
    assert (found.rung, [row.name for row in found.rows]) == ("action values", ["LSTDQ"])
    assert truth(0.9) in found.interval(level=0.999)
    one_action = replace(log, actions=np.zeros(len(log), dtype=np.int64))
    refused = evaluate(one_action, gamma=GAMMA, policy=mostly(0.1), returns=(-5.0, 5.0))
    assert refused.rung == "refusal"
    assert np.isnan(refused.value)
    assert refused.light == "red"
    assert "action 1 in state" in refused.trust["silence"].sentence
    assert json.loads(refused.to_json())["value"] is None


def test_estimated_probabilities_are_never_the_answer() -> None:
    log = logged(known=False)
    plain = evaluate(log, gamma=GAMMA, policy=mostly(0.6))
    found = evaluate(log, gamma=GAMMA, policy=mostly(0.6), probabilities="estimate")
    assert found.case.effective > 10
    assert (found.rung, found.value) == (plain.rung, plain.value)
    assert any("doubly robust is not the answer" in note.lower() for note in found.notes)
    known = evaluate(logged(known=True), gamma=GAMMA, policy=mostly(0.6), probabilities="estimate")
    assert known.rung == "doubly robust"  # they are not needed there


# --- the point of least error -----------------------------------------------------------------------------------------


def test_the_best_estimate_is_the_answer_or_agrees_with_it() -> None:
    log = logged(2, 400)
    for policy in ("logged", mostly(0.7)):
        found = evaluate(log, gamma=GAMMA, policy=policy)
        row = next(row for row in found.rows if row.name == found.best_by)
        assert found.best_estimate == row.value
        own, answer = row.middle, found.rows[0].middle
        assert own is not None
        assert answer is not None
        assert own.standard_error <= answer.standard_error
        assert ("Best estimate: " in str(found)) == (found.best_by != found.rows[0].name)


def test_what_is_off_the_answer_is_not_the_best_estimate() -> None:
    """One feature for all states, and start states that are better: least squares is certain, and wrong."""
    rng = np.random.default_rng(0)
    rewards = np.zeros((300, 5))
    rewards[:, 0] = 2.0 + rng.standard_normal(300)
    ended = np.tile(np.arange(5) == 4, 300)
    found = evaluate(
        Log.from_arrays(rng.standard_normal((1_500, 1)), rewards.ravel(), terminated=ended),
        gamma=0.9,
        features=Constant(),
    )
    assert found.best_by == "mean of returns"
    assert best_row([found.rows[1]]).name == "KrylovLSTD"


# --- small and odd ----------------------------------------------------------------------------------------------------


def test_tables_words_and_functions_say_the_same() -> None:
    log = logged(1)
    policy = mostly(0.6)
    table = evaluate(log, gamma=GAMMA, policy=policy(log.observations))
    function = evaluate(log, gamma=GAMMA, policy=policy)
    assert table.rung == function.rung == "doubly robust"
    assert table.value == pytest.approx(function.value, abs=0.05)
    words = Log.from_arrays(
        log.observations, log.rewards, actions=np.array(["left", "right"])[log.actions], terminated=log.terminated,
        truncated=log.truncated, episodes=np.repeat(np.arange(log.n_episodes), np.diff(log.episodes)), discrete=True,
        probabilities=log.probabilities,
    )  # fmt: skip
    left = evaluate(words, gamma=GAMMA, policy=lambda states: np.full(len(states), "left"))
    zero = evaluate(words, gamma=GAMMA, policy=lambda states: np.zeros(len(states), dtype=int))
    assert left.value == zero.value


def test_continuous_actions() -> None:
    """A function draws actions; densities of the logged ones give ratios."""
    rng = np.random.default_rng(0)
    states, noise = rng.standard_normal((600, 1)), rng.standard_normal((600, 1))
    actions = 0.5 * states + noise
    log = Log.from_arrays(
        states, states[:, 0] + actions[:, 0], actions=actions, terminated=np.ones(600, dtype=np.bool_),
        probabilities=np.exp(-0.5 * noise[:, 0] ** 2) / np.sqrt(2 * np.pi),
    )  # fmt: skip
    found = evaluate(log, gamma=0.5, policy=lambda x: 0.5 * x + 1.0, features="columns")
    assert found.rung == "action values"
    assert found.value == pytest.approx(1.0 + 1.5 * states.mean(), abs=1e-6)
    density = np.exp(-0.5 * (noise[:, 0] - 0.1) ** 2) / np.sqrt(2 * np.pi)
    shifted = evaluate(log, gamma=0.5, policy=density)
    assert shifted.rung == "doubly robust"
    assert shifted.value == pytest.approx(0.1, abs=0.3)
    with pytest.raises(InvalidInputError, match="not estimated"):
        evaluate(replace(log, probabilities=None), gamma=0.5, policy=density, probabilities="estimate")


def test_continuous_actions_of_which_the_log_has_none() -> None:
    """The same observation everywhere, and actions that are far from all logged ones: an answer, or a refusal."""
    rng = np.random.default_rng(0)
    log = Log.from_arrays(
        np.full((20, 3), 2.5), np.ones(20), actions=rng.standard_normal((20, 2)), terminated=np.arange(20) % 2 == 1
    )
    found = evaluate(log, gamma=0.5, policy=lambda states: np.full((len(states), 2), 1e3))
    assert found.light == "red"
    assert np.isfinite(found.rows[0].value)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_logs_of_a_few_steps(n: int) -> None:
    """An answer without an interval, or with a wide one, and red; a number comes out in any case."""
    ended = Log.from_arrays(np.arange(n), np.ones(n), terminated=np.arange(n) == n - 1, discrete=True)
    found = evaluate(ended, gamma=0.5)
    assert found.rung == "least squares"
    assert found.light == "red"
    assert np.isfinite(found.rows[0].value)
    returned = evaluate(ended, gamma=0.5, estimators="mean of returns")
    assert returned.value == pytest.approx((1.0 - 0.5**n) / 0.5)
    assert returned.interval_or_none is None
    assert "no interval" in str(returned)
    each = Log.from_arrays(np.arange(n), np.ones(n), terminated=np.ones(n, dtype=np.bool_), discrete=True)
    assert evaluate(each, gamma=1.0).value == pytest.approx(1.0)


def test_constant_rewards_have_no_noise() -> None:
    log = replace(logged(), rewards=np.ones(len(logged())))
    found = evaluate(log, gamma=0.0)
    assert found.value == pytest.approx(1.0)
    assert found.interval().half_width < 1e-6
    zero = evaluate(replace(log, rewards=np.zeros(len(log))), gamma=GAMMA, policy=mostly(0.6))
    assert zero.value == pytest.approx(0.0, abs=1e-12)
    assert "nan" not in str(zero).lower()


def test_what_is_not_a_number_is_refused() -> None:
    for rewards in ([np.nan, 1.0], [1.0, np.inf]):
        with pytest.raises(InvalidInputError, match=r"reward is (missing|inf) in row .*on_nan='drop'"):
            evaluate({"obs": [0.0, 1.0, 2.0], "reward": [*rewards, 1.0], "terminated": [0, 1, 1]}, gamma=0.9)
    with pytest.raises(InvalidInputError, match="no steps"):
        evaluate(logged()[:0], gamma=0.9)
    log = logged()
    before = log.rewards.copy(), log.observations.copy()
    with pytest.raises(TlstdError):
        evaluate(log, gamma=0.9, policy=lambda states: np.ones((len(states), 2)))
    assert_allclose(log.rewards, before[0])
    assert_allclose(log.observations, before[1])


def test_costs_change_words_and_not_numbers() -> None:
    log, best = logged(0, 3_000), process().rewards.argmax(axis=1)
    acted, other = (evaluate(log, policy=p, gamma=GAMMA) for p in ("logged", lambda states: best[states]))
    costs, fewer = (evaluate(log, policy=p, gamma=GAMMA, cost=True) for p in ("logged", lambda states: best[states]))
    assert (costs.value, fewer.value) == (acted.value, other.value)
    reward, cost = other.compared(acted).comparison, fewer.compared(costs).comparison
    assert reward is not None
    assert cost is not None
    assert reward.decided
    assert {reward.better, cost.better} == {other.policy_name, "the logged policy"}
    assert "smaller costs" in cost.verdict
    assert any("costs, as told" in note for note in costs.notes)
    with pytest.raises(InvalidInputError, match="cost="):
        other.compared(costs)


def test_difference_is_known_better_than_two_intervals() -> None:
    log = logged(3)
    one, two = (evaluate(log, gamma=GAMMA, policy=mostly(s)) for s in (0.55, 0.6))
    found = difference(two, one)
    assert found.value == pytest.approx(two.value - one.value)
    assert found.standard_error < 0.5 * one.interval().standard_error
    assert abs(found.value - (truth(0.6) - truth(0.55))) < 4.0 * found.standard_error
    assert difference(one, two).value == pytest.approx(-found.value)
    with pytest.raises(InvalidInputError, match="same episodes"):
        difference(one, evaluate(logged(4), gamma=GAMMA, policy=mostly(0.6)))
