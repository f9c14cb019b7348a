"""Replay against a loop over the samples, written out, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import tlstd
from tests.helpers import random_transitions
from tlstd import TD, Decay, InvalidInputError, InvalidParameterError, Replay, Transitions, TrueOnlineTD
from tlstd.core.arrays import FloatArray

LEARNERS: dict[str, Callable[..., Any]] = {
    "TD": lambda n, **more: TD(n, step_size=0.05, lambda_=0.8, **more),
    "replacing": lambda n, **more: TD(n, step_size=Decay(0.1, 20), lambda_=0.8, trace="replacing", **more),
    "true online": lambda n, **more: TrueOnlineTD(n, step_size=0.05, lambda_=0.8, **more),
}


def episodes(n: int, n_features: int, *, seed: int, sparse: bool, **more: Any) -> Transitions:
    density = 0.15 if sparse else 1.0
    rng = np.random.default_rng(seed)
    return random_transitions(rng, n_features=n_features, n_steps=n, density=density, sparse=sparse, **more)


def written_out(learner: Any, steps: Transitions, passes: int, seed: int) -> FloatArray:
    """The weights after the first pass in order and further ones over shuffled episodes, sample by sample."""
    of_episodes: list[list[int]] = []
    for t in range(len(steps)):
        if t == 0 or steps.trace_discounts[t] == 0.0:
            of_episodes.append([])
        of_episodes[-1].append(t)
    order = range(len(of_episodes))
    for number in range(passes):
        if number:
            order = np.random.default_rng([seed, number]).permutation(len(of_episodes)).tolist()
        for e in order:
            for t in of_episodes[e]:
                learner.update(steps[t])
    weights: FloatArray = learner.weights
    return weights


@pytest.mark.parametrize(
    ("name", "sparse"),
    [("TD", False), ("TD", True), ("replacing", True), ("true online", False), ("true online", True)],
)
def test_is_the_loop_written_out(name: str, sparse: bool) -> None:
    steps = episodes(150, 20, seed=1, sparse=sparse, off_policy=name == "TD")
    model = Replay(LEARNERS[name](20), passes=4, seed=7)
    model.update_many(steps[:60])
    model.predict(np.ones(20))
    for t in range(60, 70):
        model.update(steps[t])
    model.update_many(steps[70:])
    assert model.n_updates == 150
    assert_allclose(model.weights, written_out(LEARNERS[name](20), steps, 4, 7), rtol=1e-12, atol=1e-13)
    other = Replay(LEARNERS[name](20), passes=4, seed=8)
    other.update_many(steps)
    assert np.abs(other.weights - model.weights).max() > 1e-6  # the order matters


@pytest.mark.parametrize("name", LEARNERS)
def test_one_pass_is_the_learner(name: str) -> None:
    steps = episodes(10_000, 30, seed=2, sparse=True)  # more than one chunk
    once, model = LEARNERS[name](30), Replay(LEARNERS[name](30), passes=1)
    once.update_many(steps)
    model.update_many(steps)
    assert_allclose(model.weights, once.weights, rtol=1e-12, atol=1e-13)


def test_several_targets() -> None:
    steps = episodes(80, 6, seed=3, sparse=False, n_targets=2)
    model = Replay(LEARNERS["TD"](6, n_targets=2), passes=3)
    model.update_many(steps)
    assert_allclose(model.weights, written_out(LEARNERS["TD"](6, n_targets=2), steps, 3, 0), rtol=1e-12, atol=1e-13)


def test_saved_with_a_learner_that_started_from_weights(tmp_path: Path) -> None:
    steps = episodes(90, 8, seed=4, sparse=False)
    learner = LEARNERS["TD"](8)
    learner.start_from(np.arange(8.0))
    model = Replay(learner, passes=2, seed=3)
    assert_array_equal(model.weights, np.arange(8.0))
    model.update_many(steps[:50])
    model.save(tmp_path / "model")
    again = tlstd.load(tmp_path / "model")
    for m in (model, again):
        m.update_many(steps[50:])
    assert_array_equal(model.weights, again.weights)
    expected = LEARNERS["TD"](8)
    expected.start_from(np.arange(8.0))
    assert_allclose(again.weights, written_out(expected, steps, 2, 3), rtol=1e-12, atol=1e-13)


def test_refuses() -> None:
    used = TD(3, step_size=0.1, lambda_=0.0)
    used.update_many(episodes(5, 3, seed=5, sparse=False))
    for learner, words in (
        (tlstd.LSTD(3, lambda_=0.0), "learner is LSTD: pass TD"),
        (used, "has learned from 5 samples"),
    ):
        with pytest.raises(InvalidParameterError, match=words):
            Replay(learner, passes=2)  # type: ignore[arg-type]
    for passes in (0, 10**9):
        with pytest.raises(InvalidParameterError, match=f"passes is {passes}"):
            Replay(LEARNERS["TD"](3), passes=passes)
    with pytest.raises(InvalidInputError, match="replacing traces are for sparse"):
        Replay(LEARNERS["replacing"](3), passes=2).update_many(episodes(5, 3, seed=5, sparse=False))
