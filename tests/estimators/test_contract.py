"""Every registered estimator keeps the contract of ``tlstd.checks``, and survives the faults of ``tests.faults``."""

import copy
import itertools
import os
import re
import signal
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from types import FrameType
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import tlstd
from tests.estimators.plain import Plain
from tests.faults import children, layouts, reliability
from tests.helpers import random_transitions
from tlstd.checks import CHECKS, Check, ContractError, Factory, behaviour, check_estimator
from tlstd.classic.lstd import LSTD
from tlstd.classic.td import TD
from tlstd.classic.true_online_td import TrueOnlineTD
from tlstd.core import file_format
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.data.batch import Batch
from tlstd.data.transitions import Transition, Transitions
from tlstd.data.vectors import SparseVector, as_vector
from tlstd.errors import BusyError, InvalidInputError, InvalidParameterError
from tlstd.estimators.base import LinearEstimator
from tlstd.estimators.registry import ESTIMATORS
from tlstd.estimators.step_sizes import Decay
from tlstd.truncated.tlstd import TLSTD
from tlstd.zoo.ilstd import ILSTD

CONTRACT: tuple[Check, ...] = (*CHECKS, *layouts.CHECKS)
"""Checks in this process: those of the library, and arrays of every make."""

OF_ALL = {
    *reliability.CHECKS,
    behaviour.check_copies_are_independent,
    behaviour.check_parameters_are_read_only,
} - {reliability.check_exceptions_leave_a_prefix}
"""Checks of what the base class does: locks, copies, threads."""

SAME_CLASS = {
    "GTD2": "TDC",  # a subclass
    "KrylovLSTD (max_samples)": "KrylovLSTD",
    "LSTD (ridge)": "LSTD",
    "TD (replacing)": "TD",
    "TDRC": "TDC",  # of one private class
    "TLSTD (full rank)": "TLSTD",
    "TLSTD (replacing)": "TLSTD",
    "TLSTD (subspace)": "TLSTD",
}
"""Entries of the registry, each with the one of its class for which the checks ``OF_ALL`` are run in its place. Whoever
is not here has all of them, and with ``-m long`` all have."""


def contract(name: str) -> list[Any]:
    """The checks of an entry, those that another one stands in for marked as long."""
    return [
        pytest.param(name, check, marks=pytest.mark.long if name in SAME_CLASS and check in OF_ALL else ())
        for check in CONTRACT
    ]


@pytest.mark.parametrize(
    ("name", "check"),
    [case for name in ESTIMATORS for case in contract(name)],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_contract(name: str, check: Callable[[Any], None]) -> None:
    check(ESTIMATORS[name])


@pytest.mark.parametrize(
    ("name", "stands_in"),
    [
        *((name, True) for name in ESTIMATORS),
        *(pytest.param(name, False, marks=pytest.mark.long) for name in SAME_CLASS),
    ],
)
def test_contract_in_children(name: str, stands_in: bool) -> None:
    """Exceptions, interrupts and threads; what another entry stands in for is left out."""
    left_out = OF_ALL if stands_in and name in SAME_CLASS else set()
    reliability.check_together(ESTIMATORS[name], [c for c in reliability.CHECKS if c not in left_out])


def test_those_that_stand_in_are_of_the_same_class() -> None:
    """They share every method that learns, or reads, or mends; what is different is a parameter."""
    for name, other in SAME_CLASS.items():
        assert other in ESTIMATORS
        assert other not in SAME_CLASS
        classes = [type(ESTIMATORS[each](12)) for each in (name, other)]
        assert issubclass(*classes) or classes[0].__mro__[1] is classes[1].__mro__[1] is not LinearEstimator


ONE_TARGET = {"ILSTD", "Handover (settled)", "SwiftTD"}
ON_POLICY = {"SwiftTD", "TrueOnlineTD"}
START_FROM = {
    "ATD",
    "EmphaticTD",
    "ForgetfulLSTD",
    "GTD2",
    "ILSTD",
    "LinearDyna",
    "TD",
    "TD (replacing)",
    "TDC",
    "TDRC",
    "TrueOnlineTD",
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_nothing_is_passed_over(name: str) -> None:
    """What a check passes over where it is missing is there, but for those that are known not to have it."""
    assert name in ONE_TARGET or ESTIMATORS[name](12, n_targets=3).n_targets == 3
    steps = random_transitions(np.random.default_rng(0), n_features=12, n_steps=9, density=0.1, off_policy=True)
    with pytest.raises(InvalidInputError, match="rho") if name in ON_POLICY else nullcontext():
        ESTIMATORS[name](12).update_many(steps)
    for method in ("save", "update_and_predict", *(["start_from"] if name in START_FROM else [])):
        assert hasattr(ESTIMATORS[name](12), method)


OPTIONS: dict[str, Factory] = {
    "TLSTD, forgetting, short buffer": lambda n, **more: TLSTD(n, 7, lambda_=0.9, beta=0.02, buffer_size=8, **more),
    "TLSTD, cut off, long buffer": lambda n, **more: TLSTD(n, 7, lambda_=0.9, rcond=0.01, buffer_size=50, **more),
    "TD, decay": lambda n, **more: TD(n, step_size=Decay(0.2, 20), lambda_=0.7, **more),
    "TrueOnlineTD, decay": lambda n, **more: TrueOnlineTD(n, step_size=Decay(0.2, 20), lambda_=0.7, **more),
    "ILSTD, all coordinates": lambda n, **more: ILSTD(
        n, step_size=Decay(0.1, 10), lambda_=0.7, coordinates_per_step=12, **more
    ),
}
"""Options that take other ways through the code than the registry's."""


@pytest.mark.parametrize(
    "checks", [{*CONTRACT, *reliability.CHECKS} - OF_ALL, pytest.param(OF_ALL, marks=pytest.mark.long)], ids=len
)
@pytest.mark.parametrize("name", OPTIONS)
def test_contract_of_options(name: str, checks: set[Check]) -> None:
    for check in checks - set(reliability.CHECKS):
        check(OPTIONS[name])
    reliability.check_together(OPTIONS[name], [check for check in reliability.CHECKS if check in checks])


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long if name in SAME_CLASS else ()) for name in ESTIMATORS]
)
def test_nobody_uses_a_model_in_the_middle_of_a_call(name: str) -> None:
    """Reads, copies, saves and updates between any two lines of an update (a signal handler) are refused."""
    steps = random_transitions(np.random.default_rng(0), n_features=12, n_steps=40, density=0.1, sparse=True)
    model, undisturbed = ESTIMATORS[name](12), ESTIMATORS[name](12)
    uses: list[Callable[[], Any]] = [
        lambda: model.predict(steps[0].x),
        lambda: model.weights,
        lambda: model.update(steps[0]),
        lambda: copy.deepcopy(model),
    ]
    package, counts = os.path.dirname(tlstd.__file__), {"lines": 0, "busy": 0}
    times: Counter[tuple[str, int]] = Counter()

    def handler(frame: FrameType, event: str, arg: object) -> Any:
        inside = frame.f_code.co_filename.startswith(package)
        if inside and model._before is not None and event == "line":
            times[frame.f_code.co_filename, frame.f_lineno] += 1
            if times[frame.f_code.co_filename, frame.f_lineno] > 2 * len(uses):  # each use twice at a line
                return handler
            counts["lines"] += 1
            try:
                assert type(model).__name__ in repr(model)
                uses[times[frame.f_code.co_filename, frame.f_lineno] % len(uses)]()
            except BusyError:
                counts["busy"] += 1
        return handler if inside else None

    for m in (undisturbed, model):
        before = sys.gettrace()
        sys.settrace(handler if m is model else before)
        try:
            m.update_many(steps[:25])
            m.update_many(steps[25:])
        finally:
            sys.settrace(before)
    assert counts["busy"] == counts["lines"] > 3
    assert np.array_equal(model.weights, undisturbed.weights)


@pytest.mark.parametrize("name", ["ATD", "TLSTD", "LSTD", "ILSTD", "TD", "Handover"])
def test_mending_may_be_interrupted_too(name: str) -> None:
    steps = random_transitions(np.random.default_rng(0), n_features=12, n_steps=40, density=0.1, sparse=True)
    undisturbed = ESTIMATORS[name](12)
    undisturbed.update_many(steps)
    for first, again in itertools.product(range(20, 260, 60), range(6, 22, 3)):  # lines
        model = ESTIMATORS[name](12)
        model.update_many(steps[:20])
        learning = reliability.Injector(type(model), first, KeyboardInterrupt())
        learning.run(lambda model=model: model.update_many(steps[20:]))  # type: ignore[misc]
        reliability.Injector(type(model), again, MemoryError()).run(lambda model=model: model.weights)  # type: ignore[misc]
        repr(model)
        model.update_many(steps[model.n_updates :])
        assert np.abs(model.weights - undisturbed.weights).max() < 1e-9 * np.abs(undisturbed.weights).max()


def test_a_call_that_a_busy_model_cut_off_is_mended() -> None:
    steps = random_transitions(np.random.default_rng(0), n_features=5, n_steps=40)
    model = TD(5, step_size=lambda t: 0.1 if t < 20 else float(model.weights[0]), lambda_=0.5)
    model.update_many(steps[:10])
    with pytest.raises(BusyError, match="weights was asked for in the middle of another call on this TD"):
        model.update_many(steps[10:])
    assert model.n_updates == 10
    model.update_many(steps[10:15])
    undisturbed = TD(5, step_size=0.1, lambda_=0.5)
    undisturbed.update_many(steps[:15])
    assert np.array_equal(model.weights, undisturbed.weights)


# Broken estimators: each check must be able to fail, and a sound estimator must be able to pass.


def test_contract_of_a_plain_estimator() -> None:
    report = check_estimator(Plain)
    assert report.failed == {}
    assert len(report.passed) + len(report.passed_over) == len(CHECKS)
    assert report.passed_over == {
        "check_update_and_predict": "it has no method update_and_predict",
        "check_targets_are_independent": "the factory does not take n_targets",
        "check_start_from": "it has no method start_from",
        "check_merge": "it is no LinearEstimator, so that models cannot be merged",
    }


class Unsaved(LinearEstimator):
    """TD(0) that keeps the contract and has no ``_state``: it cannot be saved."""

    def __init__(self, n_features: int) -> None:
        super().__init__(n_features, lambda_=0.0, n_targets=1)
        self._w: FloatArray = np.zeros((n_features, 1))

    def _learn(self, batch: Batch) -> None:
        w = self._w
        for t, (x, x_next) in enumerate(zip(*batch.dense(np.arange(self.n_features)), strict=True)):
            delta = batch.rewards[t] + batch.discounts[t] * (x_next @ w) - x @ w
            w = w + 0.05 * batch.rhos[t] * delta * x[:, None]
        self._w = w

    def _solve(self) -> tuple[IntArray, FloatArray]:
        return np.arange(self.n_features), self._w.copy()


def test_an_estimator_without_a_state_is_not_asked_to_be_saved() -> None:
    report = check_estimator(Unsaved)
    assert report.passed_over["check_save_and_load"] == "it has no method _state, so that it cannot be saved"


class Untidy(Plain):
    """Breaks several parts of the contract."""

    def update(self, transition: Transition) -> None:
        super().update(transition)
        self.__dict__.setdefault("log", []).append(np.zeros(100))

    @property
    def sparse_weights(self) -> SparseVector:
        raise KeyError("no weights today")

    def __setattr__(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)


def test_all_failures_are_listed() -> None:
    with pytest.raises(ContractError) as caught:
        check_estimator(Untidy)
    report = caught.value.report
    expected = {"check_sparse_weights", "check_memory_is_bounded", "check_parameters_are_read_only"}
    assert expected <= report.failed.keys()
    assert "check_is_deterministic" in report.passed
    assert all(f"FAILED {name}: {why}" in str(caught.value) for name, why in report.failed.items())
    assert "KeyError ('no weights today') at test_contract.py" in report.failed["check_sparse_weights"]


class Forgetful(Plain):
    """Ignores every tenth sample when they come one by one."""

    def update(self, transition: Transition) -> None:
        if self.n_updates % 10 != 9:
            super().update(transition)
        else:
            self.state = self.state._replace(n=self.n_updates + 1)


class Leaky(Plain):
    """Keeps all data."""

    def update_many(self, transitions: Transitions) -> None:
        super().update_many(transitions)
        self.__dict__.setdefault("log", []).append(np.array(transitions.rewards))


class Hoarding(Leaky):
    """Keeps more than it says."""

    bytes_per_sample = 4


class Hasty(Plain):
    """Counts before it checks."""

    def update(self, transition: Transition) -> None:
        self.state = self.state._replace(n=self.state.n + 1)
        super().update(transition)
        self.state = self.state._replace(n=self.state.n - 1)


class Endless(Plain):
    """Takes a termination for a truncation."""

    def update_many(self, transitions: Transitions) -> None:
        transitions.check()
        columns = {"discounts": np.full(len(transitions), 0.9), "trace_discounts": transitions.trace_discounts}
        super().update_many(Transitions(transitions.X, transitions.rewards, transitions.X_next, **columns))


class Traceful(Plain):
    """Never empties its trace."""

    def update(self, transition: Transition) -> None:
        t = transition
        super().update(Transition(t.x, t.reward, t.x_next, discount=t.discount, trace_discount=0.9, rho=t.rho))


class Credulous(Plain):
    """Does not look at the data before learning."""

    def update_many(self, transitions: Transitions) -> None:
        for i in range(len(transitions)):
            super().update(transitions[i])


class CountsFirst(Plain):
    """Counts a batch before it has learned from it."""

    def update_many(self, transitions: Transitions) -> None:
        transitions.check()
        n = self.state.n + len(transitions)
        self.state = self.state._replace(n=n)
        for t in transitions:
            self.state = self.after(self.state, t)._replace(n=n)
            time.sleep(1e-4)  # so that it is certainly seen


class CountsLast(Plain):
    """Counts a batch when it has learned from it."""

    def update_many(self, transitions: Transitions) -> None:
        transitions.check()
        n = self.state.n
        for t in transitions:
            self.state = self.after(self.state, t)._replace(n=n)
            time.sleep(1e-3)  # so that it is certainly seen
        self.state = self.state._replace(n=n + len(transitions))


class GivesUp(Plain):
    """Does not learn any more after an exception."""

    stuck = False

    def learn(self, steps: list[Transition]) -> None:
        if self.stuck:
            return
        self.stuck = True
        super().learn(steps)
        self.stuck = False


class SavesAnything(Plain):
    """Cut off in mid-batch it is saved as what cannot be loaded."""

    busy = False

    def learn(self, steps: list[Transition]) -> None:
        self.busy = True
        super().learn(steps)
        self.busy = False

    def save(self, path: Any) -> None:
        super().save(path)
        if self.busy:
            with open(path, "r+b") as file:
                file.truncate(100)


class SharedScratch(Plain):
    """All reads use one array."""

    def predict(self, x: Any) -> Any:
        if isinstance(x, SparseVector) or np.ndim(x) != 1:
            return super().predict(x)
        scratch = self.__dict__.setdefault("scratch", np.zeros(self.n_features))
        scratch[:] = self.dense(as_vector(x))
        time.sleep(1e-4)  # so that it is certainly seen
        return float(scratch @ self.state.w)


class LearnsInPlace(Plain):
    """Changes its weights where shallow copies find them."""

    def learn(self, steps: list[Transition]) -> None:
        w = self.state.w
        super().learn(steps)
        w[:] = self.state.w
        self.state = self.state._replace(w=w)


class LimitsBlas(Plain):
    """Sets BLAS to one thread while it learns, and back to what it was when it began."""

    def learn(self, steps: list[Transition]) -> None:
        with threadpool_limits(limits=1, user_api="blas"):
            super().learn(steps)
            time.sleep(1e-3)


class ForgetsItsTrace(Plain):
    """Is pickled without its trace."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "state": self.state._replace(z=np.zeros(self.n_features))}


class Settable(Plain):
    """Its parameters can be set."""

    def __setattr__(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)


class Unkind(Plain):
    """Its parameters cannot be set, with an error that is not the library's."""

    def __setattr__(self, name: str, value: object) -> None:
        if name == "n_features":
            raise AttributeError(name)
        super().__setattr__(name, value)


class ReadsMemory(Plain):
    """Takes numbers in the order in which they lie in memory."""

    def predict(self, x: Any) -> Any:
        if isinstance(x, np.ndarray) and x.ndim == 2:
            x = x.ravel(order="K").reshape(x.shape)
        return super().predict(x)


class ReadsWhatIsThere(Plain):
    """Predicts with what was last read, if that is there, and loses a few digits."""

    @property
    def weights(self) -> FloatArray:
        weights = super().weights
        self.read = np.round(weights, 12)
        return weights

    def predict(self, x: Any) -> Any:
        own = self.__dict__
        return float(self.dense(as_vector(x)) @ own["read"]) if "read" in own and np.ndim(x) < 2 else super().predict(x)


class Belated(Plain):
    """Predicts with the weights from before the step."""

    def update_and_predict(self, transitions: Transitions) -> FloatArray:
        values = []
        for t in transitions:
            values.append(self.predict(t.x_next))
            self.update(t)
        return np.array(values)


class Oblivious(Plain):
    """Ignores importance ratios where it predicts at every step."""

    def update_and_predict(self, transitions: Transitions) -> FloatArray:
        values = []
        for t in transitions:
            self.update(Transition(t.x, t.reward, t.x_next, discount=t.discount, trace_discount=t.trace_discount))
            values.append(self.predict(t.x_next))
        return np.array(values)


class MergesHalfway(LSTD):
    """Adds matrices without their numbers of samples: the average of the first counts twice."""

    def __init__(self, n_features: int, *, n_targets: int = 1) -> None:
        super().__init__(n_features, lambda_=0.7, n_targets=n_targets)

    def _parameters(self) -> dict[str, Any]:
        return {"n_features": self.n_features, "n_targets": self.n_targets}

    def _merged_state(self, other: LSTD) -> file_format.State:
        state = super()._merged_state(other)
        system = dict(state["system"])
        return {"system": system | {"A": system["A"] + self._system.averaged()[0]}}


@pytest.mark.parametrize(
    ("broken", "check", "message"),
    [
        (Forgetful, "update_many_is_repeated_update", "repeated update"),
        (Leaky, "memory_is_bounded", "larger"),
        (Hoarding, "memory_is_bounded", "larger"),
        (Hasty, "bad_input_changes_nothing", "n_updates"),
        (Endless, "truncation_is_not_termination", "termination"),
        (Traceful, "trace_is_forgotten", "trace"),
        (Credulous, "bad_input_changes_nothing", "update_many with"),
        (CountsFirst, "exceptions_leave_a_prefix", "is not the model of the first"),
        (CountsLast, "exceptions_leave_a_prefix", "is not the model of the first"),
        (GivesUp, "exceptions_leave_a_prefix", "going on, it has n_updates"),
        (SavesAnything, "exceptions_leave_a_prefix", "saved over a sound file, it cannot be loaded"),
        (CountsFirst, "interrupts_leave_a_prefix", "is not the model of the first"),
        (CountsLast, "interrupts_leave_a_prefix", "is not the model of the first"),
        (SharedScratch, "concurrent_reads", "is that of no whole update"),
        (CountsLast, "reads_beside_a_writer", "is that of no whole update"),
        (LimitsBlas, "blas_threads_are_as_before", "BLAS had"),
        (LearnsInPlace, "copies_are_independent", "after its copy (copy.copy) has learned"),
        (ForgetsItsTrace, "copies_are_independent", "a copy (copy.copy) changes"),
        (Settable, "parameters_are_read_only", "n_features can be set"),
        (Unkind, "parameters_are_read_only", "not a TlstdError"),
        (ReadsMemory, "layouts", "dense features as Fortran order"),
        (ReadsWhatIsThere, "predict_is_pure_and_linear", "reading weights changes predict"),
        (Belated, "update_and_predict", "update and predict in turn"),
        (Oblivious, "update_and_predict", "update and predict in turn"),
        (MergesHalfway, "merge", "two halves merge into another model"),
    ],
)
def test_contract_catches(broken: Factory, check: str, message: str) -> None:
    (function,) = (f for f in (*CONTRACT, *reliability.CHECKS) if f.__name__ == f"check_{check}")
    with pytest.raises(AssertionError, match=re.escape(message)):
        function(broken)


def test_reads_are_of_whole_models_and_never_of_older_ones() -> None:
    states = np.array([[0.0, 0.0, 1.0], [1.0, 1.0, 1.0], [2.0, 1.0, 1.0]])

    def explain(*values: tuple[Any, list[float]]) -> None:
        reliability.explain_reads([("so", rows, np.array(found)) for rows, found in values], states)

    everything = slice(None)
    explain()
    explain(([0], [0.0]), ([2], [1.0]), ([1], [1.0]), ([], []), (everything, [1.0, 1.0, 1.0]), ([0], [2.0]))
    for wrong in (([0], [0.5]), (everything, [0.0, 1.0, 1.0]), ([2], [np.nan])):
        with pytest.raises(AssertionError, match=r"a read \(so\) .* no whole update"):
            explain(([0], [0.0]), wrong)
    for older in (([0], [0.0]), (everything, [0.0, 0.0, 1.0])):
        with pytest.raises(AssertionError, match="an older model"):
            explain(([1], [1.0]), ([2], [1.0]), older)


def test_crashes_and_hangs_are_caught() -> None:
    def task(i: int) -> str:
        if i == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        if i == 2:
            time.sleep(60.0)
        if i == 3:
            np.ones(1 << 26).sum()
        if i == 4:
            warnings.warn("a warning", stacklevel=1)
        while i == 5:
            pass
        return str(i)

    outcomes = children.run(task, range(7), seconds=0.3, megabytes=100)
    assert [outcome.number for outcome in outcomes] == list(range(7))
    assert [outcome.failed for outcome in outcomes] == [False, True, True, True, True, True, False]
    assert [outcome.words for outcome in outcomes[:3]] == ["0", "died of SIGKILL", "did not end within 0.3 s"]
    assert "MemoryError" in outcomes[3].words
    assert "a warning" in outcomes[4].words
    assert outcomes[5].words == "did not end within 0.3 s"


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
