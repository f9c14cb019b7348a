"""Another policy by weighted doubly robust values: known truths, poor features, and when it is the answer."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tests.evaluation.logs import Decisions, random_decisions, simulated
from tlstd import Log
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.evaluation import Report, evaluate
from tlstd.features.constant import Constant

GAMMA = 0.9
BEHAVIOUR = np.full((8, 2), 0.5)
TARGET = np.tile([0.65, 0.35], (8, 1))
FAR = np.tile([1.0, 0.0], (8, 1))


@cache
def process() -> Decisions:
    return random_decisions(np.random.default_rng(3), 8, 2, 3, 0.2)


def logged(seed: int, n_steps: int = 1_000, limit: int = 1_000) -> Log:
    return simulated(process(), BEHAVIOUR, np.random.default_rng(seed), n_steps, limit, known=True)


def target(states: IntArray) -> FloatArray:
    return TARGET[states]


def far(states: IntArray) -> FloatArray:
    return FAR[states]


def truth(policy: FloatArray = TARGET) -> float:
    return float((policy * process().action_values(policy, GAMMA)).sum(axis=1).mean())


def row(found: Report, name: str) -> float:
    return next(each.value for each in found.rows if each.name == name)


def covered(features: object, seeds: range, limit: int) -> tuple[float, float]:
    """Share of the intervals with the truth inside, and the mean standard error over the RMSE."""
    asked = {"policy": target, "features": features, "estimators": ["doubly robust"]}
    found = [evaluate(logged(seed, limit=limit), gamma=GAMMA, **asked) for seed in seeds]  # type: ignore[arg-type]
    assert {each.rung for each in found} == {"doubly robust"}
    errors = np.array([each.value - truth() for each in found])
    width = np.mean([each.interval().standard_error for each in found])
    return float(np.mean([truth() in each.interval() for each in found])), float(width / np.sqrt(np.mean(errors**2)))


@pytest.mark.parametrize(("features", "limit"), [("auto", 1_000), (Constant(), 1_000), ("auto", 5)])
def test_coverage(features: object, limit: int) -> None:
    """Also with one feature for all states, and with episodes that were cut off."""
    share, width = covered(features, range(60), limit)
    assert share >= 0.88
    assert 0.8 < width < 1.3


@pytest.mark.long
@pytest.mark.parametrize(("features", "limit"), [("auto", 1_000), (Constant(), 1_000), ("auto", 5)])
def test_coverage_of_many_logs(features: object, limit: int) -> None:
    share, width = covered(features, range(1_000, 1_400), limit)
    print(f"{features}, limit {limit}: {share:.3f}, standard error over RMSE {width:.2f}")
    assert 0.925 <= share <= 0.98


def test_it_is_the_answer_where_enough_counts() -> None:
    log = logged(0)
    close = evaluate(log, gamma=GAMMA, policy=target)
    assert (close.rung, close.rows[0].name) == ("doubly robust", "doubly robust")
    assert close.case.effective >= 40
    assert any(note.startswith("Doubly robust is the answer") for note in close.notes)
    assert {each.name for each in close.rows[1:]} == {"KrylovLSTD with ratios", "LSTDQ"}
    apart = evaluate(logged(0, 400), gamma=GAMMA, policy=far)
    assert apart.rung == "action values"
    assert any(note.startswith("Doubly robust is not the answer") for note in apart.notes)
    assert "doubly robust" in [each.name for each in apart.rows]


def test_its_light_is_that_of_weights_and_log() -> None:
    found = evaluate(logged(0, 2_000), gamma=GAMMA, policy=target, features=Constant())
    assert found.trust is not None
    about = {check.name: check.about for check in found.trust.checks}
    assert {about[name] for name in ("ratios", "effective", "actions", "episodes", "influence")} == {"answer"}
    assert {about[name] for name in ("residuals", "regularisation", "agreement")} == {"state values"}
    assert found.trust["effective"].value == pytest.approx(found.case.effective)


def test_better_than_weights_alone() -> None:
    """Action values take away noise of returns: the error of weighted importance sampling is larger."""
    names = ["doubly robust", "weighted IS"]
    found = [evaluate(logged(seed), gamma=GAMMA, policy=target, estimators=names) for seed in range(20)]
    errors = [np.sqrt(np.mean([(row(each, name) - truth()) ** 2 for each in found])) for name in names]
    assert errors[0] < errors[1]


def test_tables_and_estimated_probabilities() -> None:
    log = logged(1)
    by_function = evaluate(log, gamma=GAMMA, policy=target)
    by_table = evaluate(log, gamma=GAMMA, policy=TARGET[log.observations])
    assert by_table.rung == "doubly robust"
    assert by_table.value == pytest.approx(by_function.value, abs=0.1 * by_function.interval().half_width)
    taken = evaluate(log, gamma=GAMMA, policy=TARGET[log.observations, log.actions])
    assert "LSTDQ" not in [each.name for each in taken.rows]  # the logged actions alone have no action values
    assert taken.rung == "doubly robust"  # by values of states
    assert taken.value == pytest.approx(by_function.value, abs=by_function.interval().half_width)
    unknown = simulated(process(), BEHAVIOUR, np.random.default_rng(1), 1_000, 1_000, known=False)
    estimated = evaluate(unknown, gamma=GAMMA, policy=target, probabilities="estimate")
    assert estimated.rung == "action values"
    assert "doubly robust" in [each.name for each in estimated.rows]
