"""How the loop ends: converged, in a cycle, at its limit, diverged or interrupted, and what is left then."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tlstd import OneHot, StateAction
from tlstd.control.iteration import Loop
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.errors import InvalidParameterError

FEATURES = StateAction(OneHot([0], [1]), 3)


class Scripted:
    """Policies are numbers: that of action values w is w[0], and the values of policy k are (after[k], k, 0, …)."""

    def __init__(self, after: dict[int, float], interrupt: int = -1) -> None:
        self.after, self.interrupt, self.fitted = after, interrupt, 0

    def asked(self, weights: FloatArray) -> IntArray:
        return np.array([round(weights[0])])

    def fit(self, chosen: IntArray | None) -> FloatArray:
        if self.fitted == self.interrupt:
            raise KeyboardInterrupt
        self.fitted += 1
        number = -1 if chosen is None else int(chosen[0])
        return np.array([self.after[number], float(number), 0.0, 0.0, 0.0, 0.0])


def run(after: dict[int, float], values: dict[int, float] | None = None, **options: Any) -> Any:
    def judge(policy: FloatArray | None, weights: FloatArray) -> float:
        return np.nan if values is None or policy is None else values[round(policy[0])]

    evaluator = Scripted(after, options.pop("interrupt", -1))
    loop = Loop(evaluator, judge, options.pop("max_iterations", 10), 0.0, **options)
    loop.run(None)
    return loop.result(FEATURES, "a script", 0.0, None), evaluator


def test_the_same_policy_twice_is_the_end() -> None:
    found, evaluator = run({-1: 1, 1: 2, 2: 3, 3: 3})
    assert (found.stopped, found.cycle, found.chosen) == ("converged", 1, 4)
    assert evaluator.fitted == 4  # the second time it is known
    assert [entry.weights[1] for entry in found.history] == [-1, 1, 2, 3, 3]


@pytest.mark.parametrize("length", [2, 3])
def test_a_cycle_is_found_and_its_mean_is_tried(length: int) -> None:
    after = {-1: 1.0} | {k: k + 1.0 for k in range(1, length)} | {length: 1.0}
    values = dict.fromkeys(range(1, length + 1), 0.0) | {1: 5.0}
    found, _ = run(after, values)
    assert (found.stopped, found.cycle) == ("cycle", length)
    assert found.policy.weights[0] == 1.0
    assert found.value == 5.0
    mean = found.history[-1].policy
    assert mean[0] == pytest.approx(np.mean(range(1, length + 1)))
    assert f"cycle of {length}" in str(found)
    assert "     mean" in str(found)


def test_weights_that_no_longer_move_are_the_end() -> None:
    evaluator = Scripted({-1: 1, 1: 2, 2: 3, 3: 4, 4: 5})
    loop = Loop(evaluator, lambda policy, weights: np.nan, 10, 0.5)
    loop.run(None)
    assert loop.stopped == "converged"
    assert loop.entries[-1].moved <= 0.5


def test_the_limit() -> None:
    found, _ = run({k: k + 1.0 for k in range(-1, 20)}, max_iterations=3)
    assert (found.stopped, found.cycle, len(found.history)) == ("limit", 0, 4)


def test_what_was_found_before_it_diverged_is_left() -> None:
    found, _ = run({-1: 1, 1: 2, 2: np.inf}, {1: 1.0, 2: 0.0})
    assert found.stopped == "diverged"
    assert found.policy.weights[0] == 1.0
    with pytest.raises(InvalidParameterError, match="no improved policy after 0 evaluation"):
        run({-1: np.nan})


def test_an_interrupt_leaves_what_was_found() -> None:
    after = {k: k + 1.0 for k in range(-1, 20)}
    found, _ = run(after, dict.fromkeys(range(20), 1.0) | {1: 2.0}, interrupt=4)
    assert found.stopped == "interrupted"
    assert [entry.weights[1] for entry in found.history] == [-1, 0, 1, 2]
    assert found.policy.weights[0] == 1.0
    with pytest.raises(KeyboardInterrupt):  # there is nothing to return yet
        run(after, interrupt=1)


def test_every_iteration_is_reported() -> None:
    seen: list[int] = []
    run({-1: 1, 1: 1}, on_iteration=lambda entry: seen.append(entry.number))
    assert seen == [0, 1, 2]


def test_impossible_values_are_the_best_only_among_themselves() -> None:
    after = {-1: 1.0, 1: 2.0, 2: 3.0, 3: 3.0}
    found, _ = run(after, {1: 4.0, 2: 1e9, 3: 3.0}, possible=(0.0, 10.0))
    assert found.policy.weights[0] == 1.0
    assert found.notes[0].startswith("Warning: 1 of 4 policies")
    found, _ = run(after, {1: 40.0, 2: 1e9, 3: 30.0}, possible=(0.0, 10.0))
    assert found.policy.weights[0] == 2.0
