"""The row "fitted trees": near the truth for the logged and another policy, on request only, and never the answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tlstd import Log
from tlstd.core.arrays import FloatArray
from tlstd.errors import InvalidInputError
from tlstd.evaluation import Report, evaluate, fitted_row, fitted_trees
from tlstd.evaluation.ladder import Row
from tlstd.page import write_page

NAME = "fitted trees"


def of_trees(found: Report) -> Row:
    return next(row for row in found.rows if row.name == NAME)


def names(found: Report) -> list[str]:
    return [row.name for row in found.rows]


def chain(n: int, *, right: float = 0.5, seed: int = 0, discrete: bool = False, **changes: Any) -> Log:
    """Five places; to the right with a probability, else back by one; the step out of the last one pays 1."""
    rng = np.random.default_rng(seed)
    actions, places, place = (rng.random(n) < right).astype(int), np.empty(n, dtype=int), 0
    ended = np.zeros(n, dtype=np.bool_)
    for t, action in enumerate(actions):
        places[t], place = place, place + 1 if action else max(0, place - 1)
        if place == 5:
            ended[t], place = True, 0
    ended[-1] = True
    columns: dict[str, Any] = {"actions": actions, "terminated": ended, "discrete": discrete}
    columns |= {"probabilities": np.where(actions == 1, right, 1.0 - right)} | changes
    seen = places if discrete else np.column_stack([places, rng.standard_normal(n)])
    return Log.from_arrays(seen, ((places == 4) & (actions == 1)).astype(float), **columns)


def values(right: float, gamma: float) -> FloatArray:
    P = np.zeros((5, 5))
    P[range(5), [0, 0, 1, 2, 3]] = 1.0 - right
    P[range(4), range(1, 5)] = right
    found: FloatArray = np.linalg.solve(np.eye(5) - gamma * P, right * np.eye(5)[4])
    return found


def policy(states: NDArray[Any]) -> FloatArray:
    return np.tile([0.2, 0.8], (len(states), 1))


@pytest.mark.parametrize("discrete", [False, True])
def test_near_the_truth(discrete: bool) -> None:
    log, gamma = chain(6_000, discrete=discrete), 0.9
    for asked, right in ((None, 0.5), (policy, 0.8)):
        found = evaluate(log, gamma=gamma, policy=asked, compare=True)
        row = of_trees(found)
        assert row.value == pytest.approx(values(right, gamma)[0], abs=0.02)
        assert row is found.rows[-1]
        assert row.interval is None
        assert row.rung == ("fitted evaluation", "Boosted trees can represent the values, and have settled.")
        assert row.note == ("200 trees" if asked is None else "640 trees")
        given = np.arange(5) if discrete else np.column_stack([np.arange(5), np.zeros(5)])
        of_given = of_trees(evaluate(log, gamma=gamma, policy=asked, start=given, compare=True))
        assert of_given.value == pytest.approx(values(right, gamma).mean(), abs=0.03)


def test_on_request_only_and_never_the_answer(tmp_path: Any) -> None:
    log = chain(400)
    for asked in (None, policy):
        plain, with_row = (evaluate(log, gamma=0.9, policy=asked, compare=compare) for compare in (False, True))
        assert NAME not in names(plain)
        assert names(with_row)[0] == names(plain)[0]
        assert (with_row.value, with_row.light) == (plain.value, plain.light)
        assert with_row.best_by != NAME
        assert [check.state for check in with_row.trust.checks] == [check.state for check in plain.trust.checks]
        write_page(with_row, tmp_path / "page.html")
        assert "fitted evaluation" in (tmp_path / "page.html").read_text()
    assert names(evaluate(log, gamma=0.9, estimators=[NAME, "KrylovLSTD"])) == ["KrylovLSTD", NAME]
    assert names(evaluate(log, gamma=0.9, policy=policy, estimators=[NAME, "KrylovLSTD"])) == [
        "KrylovLSTD with ratios",
        NAME,
    ]
    with pytest.raises(InvalidInputError, match="only stand beside another row"):
        evaluate(log, gamma=0.9, estimators=NAME)


def test_the_policy_as_a_table() -> None:
    log = chain(600, discrete=True)
    asked: dict[str, Any] = {"gamma": 0.9, "estimators": ["KrylovLSTD", NAME]}
    table = evaluate(log, policy=policy(log.observations), **asked)
    assert of_trees(table).value == pytest.approx(of_trees(evaluate(log, policy=policy, **asked)).value)
    given = evaluate(log, policy=policy(log.observations), start=[1, 2], **asked)
    assert any("the policy is a table" in note for note in given.notes)


def test_streams() -> None:
    """Two sets: all states, and the first one."""
    rng = np.random.default_rng(0)
    states, actions = rng.integers(0, 3, 1_000), rng.integers(0, 2, 1_000)
    log = Log.from_arrays(states, (states == 2) * (1.0 + actions), actions=actions, discrete=True)
    for asked, reward in ((None, 1.5), (policy, 1.8)):
        row = of_trees(evaluate(log, gamma=0.5, policy=asked, compare=True))
        assert list(row.values) == ["all states", "first state"]
        assert row.value == pytest.approx(2.0 * reward / 3.0, abs=0.1)
        assert row.values["first state"] == pytest.approx((states[0] == 2) * reward + reward / 3.0, abs=0.15)


def test_returns_are_taken_where_most_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[Any] = []

    def own(*given: Any, start: Any = None, **options: Any) -> Any:
        taken.append(start)
        return fitted_trees(*given, start=start, **options)

    monkeypatch.setattr(fitted_row, "fitted_trees", own)
    log = chain(400)
    never = Log.from_arrays(
        log.observations,
        log.rewards,
        truncated=log.terminated,
        next_observations=np.roll(log.observations, -1, axis=0),
    )
    asked: dict[str, Any] = {"gamma": 0.99, "estimators": ["KrylovLSTD", NAME]}
    found = evaluate(log, **asked)
    evaluate(never, **asked)
    assert np.array_equal(taken[0], found.case.model.steps.returns)
    assert taken[1] is None


def test_a_sample_of_a_long_log(monkeypatch: pytest.MonkeyPatch) -> None:
    log = chain(2_000)
    monkeypatch.setattr(fitted_row, "MOST_STEPS", 1_000)
    for asked, right in ((None, 0.5), (policy, 0.8)):
        found = evaluate(log, gamma=0.9, policy=asked, compare=True)
        assert of_trees(found).note.endswith(" trees on 1,000 steps")
        assert of_trees(found).value == pytest.approx(values(right, 0.9)[0], abs=0.04)


def test_left_out_with_a_note() -> None:
    n = 200
    rng = np.random.default_rng(0)
    seen, ended = rng.standard_normal((n, 2)), np.arange(n) % 5 == 4
    numbers = Log.from_arrays(seen, seen[:, 0], actions=rng.standard_normal((n, 1)), terminated=ended)
    found = evaluate(numbers, gamma=0.9, policy=lambda states: np.zeros((len(states), 1)), compare=True)
    assert NAME not in names(found)
    assert "Fitted trees were left out: the actions are continuous." in found.notes
    found = evaluate(chain(400), gamma=0.9, policy=np.full(400, 0.5), compare=True)
    assert NAME not in names(found)
    assert any("probabilities of the logged actions alone" in note for note in found.notes)
