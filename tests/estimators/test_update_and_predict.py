"""``update_and_predict`` beyond the contract: which loops are compiled, and the estimators that are made of others."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import tlstd
from tests.helpers import random_transitions
from tlstd import ATD, ILSTD, LSTD, TD, TLSTD, Decay, Handover, KrylovLSTD, Replay, Transitions, TrueOnlineTD
from tlstd.checks import Factory
from tlstd.core.arrays import FloatArray
from tlstd.estimators.base import LinearEstimator
from tlstd.estimators.registry import ESTIMATORS

LOOPS: dict[str, Factory] = {
    **{name: ESTIMATORS[name] for name in ("ForgetfulLSTD", "ILSTD", "LSTD (recursive)", "LinearDyna")},
    **{name: ESTIMATORS[name] for name in ("TD", "TD (replacing)", "TDC", "GTD2", "TDRC", "EmphaticTD")},
    **{name: ESTIMATORS[name] for name in ("TrueOnlineTD", "SwiftTD")},
    "KrylovLSTD (stream)": ESTIMATORS["KrylovLSTD (stream)"],
    "KrylovLSTD (stream, auto)": lambda n: KrylovLSTD(n, lambda_=0.7, reads="stream"),
    "TLSTD (projected)": lambda n: TLSTD(n, 10, lambda_=0.7, buffer_size=1_000, reads="projected"),
    "Handover": lambda n: Handover(
        LSTD(n, lambda_=0.7, solver="recursive"), TD(n, step_size=0.05, lambda_=0.7), after=50
    ),
    "Handover (settled)": lambda n: Handover(
        LSTD(n, lambda_=0.7, solver="recursive"), TrueOnlineTD(n, step_size=0.05, lambda_=0.7), settled=0.5
    ),
    "Replay, one pass": lambda n: Replay(TD(n, step_size=0.05, lambda_=0.7), passes=1),
}
"""Those whose loop over the samples is compiled."""

SOLUTIONS = {
    "ATD": "an SVD of the core, of each step",
    "KrylovLSTD": "passes over all samples",
    "KrylovLSTD (max_samples)": "passes over the samples kept",
    "LARSTD": "a path over all samples",
    "LSTD": "an SVD",
    "LSTD (ridge)": "an LU decomposition",
    "LSTDSA": "passes over all samples",
    "ProjectedLSTD": "an SVD of the projected system",
    "Replay": "all passes but the first, over all samples",
    "SketchedLSTD": "an SVD of the sketched system",
    "TLSTD": "an SVD of the core",
    "TLSTD (full rank)": "an SVD of the core",
    "TLSTD (replacing)": "an SVD of the core",
    "TLSTD (subspace)": "an SVD of the core",
}
"""What a value takes for all others."""


def calls_while(function: Callable[[], object]) -> int:
    """Number of the library's Python functions that are called; what is compiled meanwhile does not count."""
    count, package = 0, os.path.dirname(tlstd.__file__)

    def profile(frame: FrameType, event: str, arg: object) -> None:
        nonlocal count
        count += event == "call" and frame.f_code.co_filename.startswith(package)

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count


def test_every_estimator_is_listed() -> None:
    assert set(ESTIMATORS) - set(LOOPS) == set(SOLUTIONS)


@pytest.mark.parametrize("name", LOOPS)
def test_the_loop_is_compiled(name: str) -> None:
    """Further samples need no further calls, but for new bases and compressions."""
    rng = np.random.default_rng(0)
    steps = random_transitions(rng, n_features=30, n_steps=4_000, density=0.1, sparse=True, terminate=0.1)
    model = LOOPS[name](30)
    model.update_and_predict(steps[:2_000])  # compiles
    assert calls_while(lambda: model.update_and_predict(steps[2_000:])) < 2_000  # less than one a step


def in_turn(model: LinearEstimator, steps: Transitions) -> FloatArray:
    """The slow, obvious loop."""
    values = []
    for t in steps:
        model.update(t)
        values.append(model.predict(t.x_next))
    return np.array(values)


def assert_in_turn(make: Callable[[], LinearEstimator], steps: Transitions) -> None:
    slow, quick = make(), make()
    expected = in_turn(slow, steps)
    cuts = (0, 1, 20, 20, 60, len(steps))
    values = np.concatenate([quick.update_and_predict(steps[a:b]) for a, b in itertools.pairwise(cuts)])
    size = np.abs(expected).max()
    assert 1e-2 < size < 1e3
    assert_allclose(values, expected, rtol=0.0, atol=1e-9 * size)
    assert_allclose(quick.weights, slow.weights, rtol=0.0, atol=1e-9 * np.abs(slow.weights).max())
    assert quick.n_updates == len(steps)


FIRST: dict[str, Callable[..., Any]] = {
    "TLSTD": lambda **more: TLSTD(20, 12, lambda_=0.6, buffer_size=12, **more),
    "projected": lambda **more: TLSTD(20, 12, lambda_=0.6, buffer_size=12, reads="projected", **more),
    "KrylovLSTD": lambda **more: KrylovLSTD(20, lambda_=0.6, dimension=6, reads="stream", **more),
    "TD": lambda **more: TD(20, step_size=0.05, lambda_=0.6, **more),
}
SECOND: dict[str, Callable[..., Any]] = {
    "TD": lambda **more: TD(20, step_size=Decay(0.1, 20), lambda_=0.8, **more),
    "TrueOnlineTD": lambda **more: TrueOnlineTD(20, step_size=0.05, lambda_=0.8, **more),
    "ATD": lambda **more: ATD(20, 8, step_size=Decay(0.05, 10), lambda_=0.8, eta=0.01, **more),
}


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    ("first", "second"), [*zip(FIRST, itertools.cycle(SECOND), strict=False), ("KrylovLSTD", "ATD")]
)
def test_handover(first: str, second: str, sparse: bool) -> None:
    """The handover falls at the end, at the beginning and in the middle of a call, and before the last step."""
    rng = np.random.default_rng(1)
    options: dict[str, Any] = {"n_targets": 2} if second != "TrueOnlineTD" else {}
    density = 0.15 if sparse else 1.0
    steps = random_transitions(
        rng, n_features=20, n_steps=100, density=density, sparse=sparse, terminate=0.1, **options
    )
    steps.rhos = steps.rhos if second == "TrueOnlineTD" else rng.choice([0.5, 1.0, 1.2], 100)
    for after in (1, 21, 100) if sparse else (20, 60, 100):

        def make(after: int = after) -> Handover:
            return Handover(FIRST[first](**options), SECOND[second](**options), after=after)

        assert_in_turn(make, steps)


def test_handover_when_settled() -> None:
    rng = np.random.default_rng(2)
    steps = random_transitions(rng, n_features=20, n_steps=300, density=0.15, sparse=True, terminate=0.1)
    made: list[Handover] = []

    def make() -> Handover:
        made.append(Handover(FIRST["projected"](), SECOND["TrueOnlineTD"](), settled=2.0, patience=13))
        return made[-1]

    assert_in_turn(make, steps)
    assert made[0].handed_over == made[1].handed_over
    assert 13 < (made[0].handed_over or 0) < 300


@pytest.mark.parametrize("passes", [1, 2, 4])
@pytest.mark.parametrize("learner", ["TD", "TrueOnlineTD"])
@pytest.mark.parametrize("sparse", [False, True])
def test_replay(passes: int, learner: str, sparse: bool) -> None:
    rng = np.random.default_rng(3)
    options: dict[str, Any] = {"n_targets": 2} if learner == "TD" else {}
    density = 0.15 if sparse else 1.0
    steps = random_transitions(
        rng, n_features=20, n_steps=100, density=density, sparse=sparse, terminate=0.1, **options
    )
    steps.rhos = steps.rhos if learner == "TrueOnlineTD" else rng.choice([0.5, 1.0, 1.2], 100)
    assert_in_turn(lambda: Replay(SECOND[learner](**options), passes=passes, seed=5), steps)


@pytest.mark.parametrize("trace", ["accumulating", "replacing"])
def test_atd(trace: str) -> None:
    rng = np.random.default_rng(4)
    steps = random_transitions(
        rng, n_features=20, n_steps=100, density=0.15, sparse=True, terminate=0.1, n_targets=2, off_policy=True
    )
    options: dict[str, Any] = {"lambda_": 0.8, "eta": 0.02, "trace": trace, "buffer_size": 9, "n_targets": 2}
    assert_in_turn(lambda: ATD(20, 8, step_size=Decay(0.05, 10), **options), steps)


def test_ilstd_from_given_weights() -> None:
    rng = np.random.default_rng(5)
    steps = random_transitions(rng, n_features=20, n_steps=100, density=0.15, sparse=True, off_policy=True)

    def make() -> ILSTD:
        model = ILSTD(20, step_size=Decay(0.1, 10), lambda_=0.7, coordinates_per_step=3)
        model.start_from(np.linspace(-1.0, 1.0, 20))
        return model

    assert_in_turn(make, steps)
