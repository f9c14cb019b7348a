"""Every registered estimator keeps the contract of ``tlstd.checks``, with no exceptions."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tlstd.checks import CHECKS, check_estimator
from tlstd.errors import InvalidParameterError
from tlstd.estimators.registry import ESTIMATORS
from tlstd.estimators.tlstd import TLSTD
from tlstd.types import FloatArray, Transition, Transitions


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_contract(name: str, check: Callable[[Any], None]) -> None:
    check(ESTIMATORS[name])


OPTIONS: dict[str, dict[str, Any]] = {
    "forgetting": {"beta": 0.02},
    "short buffer": {"buffer_size": 8},
    "long buffer": {"buffer_size": 50},
    "cut off at 0.01": {"rcond": 0.01},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_contract_of_options(name: str) -> None:
    check_estimator(lambda n, **more: TLSTD(n, 7, lambda_=0.9, **OPTIONS[name], **more))


# Broken estimators: each check must be able to fail.


class Forgetful(TLSTD):
    """Ignores every tenth sample when they come one by one."""

    def update(self, transition: Transition) -> None:
        if self.n_updates % 10 != 9:
            super().update(transition)
        else:
            self.n_updates += 1


class Leaky(TLSTD):
    """Keeps all data."""

    def update_many(self, transitions: Transitions) -> None:
        super().update_many(transitions)
        self.__dict__.setdefault("log", []).append(np.array(transitions.rewards))


class Hasty(TLSTD):
    """Counts before it checks."""

    def update(self, transition: Transition) -> None:
        self.n_updates += 1
        super().update(transition)
        self.n_updates -= 1


class Endless(TLSTD):
    """Takes a termination for a truncation."""

    def update_many(self, transitions: Transitions) -> None:
        columns = {"discounts": np.full(len(transitions), 0.9), "trace_discounts": transitions.trace_discounts}
        super().update_many(Transitions(transitions.X, transitions.rewards, transitions.X_next, **columns))


class Traceful(TLSTD):
    """Never empties its trace."""

    def update(self, transition: Transition) -> None:
        t = transition
        super().update(Transition(t.x, t.reward, t.x_next, discount=t.discount, trace_discount=0.9, rho=t.rho))


class Credulous(TLSTD):
    """Does not look at the data before learning."""

    def update_many(self, transitions: Transitions) -> None:
        for i in range(len(transitions)):
            super().update(transitions[i])


class Belated(TLSTD):
    """Predicts with the weights from before the step."""

    def update_and_predict(self, transitions: Transitions) -> FloatArray:
        values = []
        for t in transitions:
            values.append(self.predict(t.x_next))
            self.update(t)
        return np.array(values)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (Forgetful, "repeated update"),
        (Leaky, "larger"),
        (Hasty, "n_updates"),
        (Endless, "termination"),
        (Traceful, "trace"),
        (Credulous, "update_many with"),
        (Belated, "update and predict in turn"),
    ],
)
def test_contract_catches(broken: type[TLSTD], message: str) -> None:
    failures = []
    for check in CHECKS:
        try:
            check(lambda n, **more: broken(n, 7, lambda_=0.9, **more))
        except AssertionError as error:
            failures.append(str(error))
    assert any(message in failure for failure in failures), failures


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"n_features": 0}, "0"),
        ({"n_features": 3.0}, "3.0"),
        ({"rank": 11}, "11"),
        ({"rank": 0}, "0"),
        ({"rank": True}, "True"),
        ({"lambda_": -0.1}, "-0.1"),
        ({"lambda_": 1.1}, "1.1"),
        ({"lambda_": float("nan")}, "nan"),
        ({"lambda_": "0.5"}, "'0.5'"),
        ({"beta": 0.0}, "0.0"),
        ({"beta": 1.0}, "1.0"),
        ({"beta": -0.5}, "-0.5"),
        ({"rcond": -1e-3}, "-0.001"),
        ({"buffer_size": 0}, "0"),
        ({"trace": "dutch"}, "'dutch'"),
        ({"n_targets": 0}, "0"),
    ],
)
def test_bad_parameters_are_named(arguments: dict[str, Any], named: str) -> None:
    good: dict[str, Any] = {"n_features": 10, "rank": 3, "lambda_": 0.5}
    with pytest.raises(InvalidParameterError) as caught:
        TLSTD(**{**good, **arguments})
    (parameter,) = arguments
    assert parameter in str(caught.value)
    assert named in str(caught.value)
