from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tlstd_lab.processes.garnet import garnet_off_policy

from tests.estimators.streams import STREAMS, assert_weights, learned_in_pieces
from tests.helpers import dense, pairwise, random_transitions
from tlstd.core.arrays import FloatArray
from tlstd.data.transitions import Transition, Transitions
from tlstd.data.vectors import SparseVector
from tlstd.estimators.step_sizes import Decay, StepSize, as_schedule
from tlstd.zoo.gradient_td import GTD2, TDC, TDRC


def literal_gradient_td(
    steps: Transitions, step_size: StepSize, lambda_: float, *, ratio: float = 1.0, kappa: float = 0.0, second: bool
) -> FloatArray:
    """TDC, GTD2 (``second``) and TDRC (κ > 0) in dense NumPy, one line per equation; (d, m)."""
    W, H, z = *np.zeros((2, steps.n_features, steps.n_targets)), np.zeros(steps.n_features)
    for t, alpha in zip(steps, as_schedule(step_size).values(1, len(steps)), strict=True):
        x, x_next = dense(t.x), dense(t.x_next)
        z = t.rho * (t.trace_discount * lambda_ * z + x)
        delta = t.reward + t.discount * (x_next @ W) - x @ W
        correction = t.discount * (1.0 - lambda_) * np.outer(x_next, z @ H)
        towards = np.outer(x, x @ H) if second else np.outer(z, delta)
        change = np.outer(z, delta) - np.outer(x, x @ H) - kappa * H
        W, H = W + alpha * (towards - correction), H + ratio * alpha * change
    return W


MODELS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "GTD2": (partial(GTD2, step_size_ratio=2.0), {"ratio": 2.0, "second": True}),
    "TDC": (partial(TDC, step_size_ratio=0.5), {"ratio": 0.5, "second": False}),
    "TDRC": (TDRC, {"kappa": 1.0, "second": False}),
    "TDRC, strong": (
        partial(TDRC, regularization=60.0, step_size_ratio=2.0),
        {"ratio": 2.0, "kappa": 60.0, "second": False},
    ),
}


@pytest.mark.parametrize(("name", "kind", "lambda_"), pairwise(MODELS, STREAMS, (0.0, 0.5, 1.0)))
def test_it_is_the_algorithm(name: str, kind: str, lambda_: float) -> None:
    make, options = MODELS[name]
    steps = random_transitions(np.random.default_rng(2), n_features=12, n_steps=120, **STREAMS[kind])
    step_size = Decay(0.01, 50.0)
    expected = literal_gradient_td(steps, step_size, lambda_, **options)
    fresh = partial(make, 12, step_size=step_size, lambda_=lambda_, n_targets=steps.n_targets)
    for model in learned_in_pieces(fresh, steps):
        assert_weights(model, expected)


def test_one_step_by_hand() -> None:
    """δ = 2 moves TDC and h; in the second step z·h = 0.5 · 0.2 + 0 and h·x = 0 take their part."""
    first = Transition([1.0, 0.0], 2.0, [0.0, 1.0], discount=0.8, trace_discount=0.0)
    second = Transition([0.0, 1.0], 1.0, [1.0, 0.0], discount=0.8, trace_discount=0.8)
    tdc, gtd2, tdrc = (make(2, step_size=0.1, lambda_=0.5) for make in (TDC, GTD2, TDRC))
    for model in (tdc, gtd2, tdrc):
        model.update(first)
    assert_allclose(tdc.weights, [0.2, 0.0])
    assert_allclose(gtd2.weights, [0.0, 0.0])  # h was 0
    for model in (tdc, gtd2, tdrc):
        model.update(second)
    # z = (0.4, 1), z·h = 0.08; δ = 1 + 0.8 · 0.2 = 1.16 (1 for GTD2), the correction is 0.8 · 0.5 · 0.08 on feature 0
    assert_allclose(tdc.weights, [0.2 + 0.1 * (0.4 * 1.16 - 0.032), 0.1 * 1.16])
    assert_allclose(tdrc.weights, tdc.weights)  # κ has only touched an h of 0
    assert_allclose(gtd2.weights, [-0.1 * 0.032, 0.0])


def test_a_strongly_regularised_h_never_overflows_its_scale() -> None:
    """(1 - β κ) = 0 empties h at every step, and smaller ones go through many rescalings: both are TD to rounding."""
    steps = random_transitions(np.random.default_rng(5), n_features=8, n_steps=400, density=0.3, sparse=True)
    for kappa in (10.0, 9.9, 19.0):
        model = TDRC(8, step_size=0.1, lambda_=0.4, regularization=kappa)
        model.update_many(steps)
        assert_weights(model, literal_gradient_td(steps, 0.1, 0.4, kappa=kappa, second=False))


@pytest.mark.parametrize("name", ["GTD2", "TDC", "TDRC"])
def test_it_ends_at_the_fixed_point_off_policy(name: str) -> None:
    process = garnet_off_policy(20, 3, 3, 6, np.random.default_rng(6), gamma=0.9)
    model = MODELS[name][0](6, step_size=Decay(0.05, 2_000.0), lambda_=0.3)
    model.update_many(process.sample(100_000, np.random.default_rng(0)))
    solution = process.solution(0.3)
    assert np.abs(model.weights - solution).max() < 0.15 * np.abs(solution).max()


def test_features_of_the_next_state_have_weights() -> None:
    """The correction reaches a feature that was never active in an x, also one by one."""
    x, x_next = SparseVector([3], [1.0], 2**40), SparseVector([2**39], [1.0], 2**40)
    model = TDC(2**40, step_size=0.1, lambda_=0.0)
    for _ in range(3):
        model.update(Transition(x, 1.0, x_next, discount=0.9, trace_discount=0.0))
    assert model.n_seen == 2
    assert model.sparse_weights.indices.tolist() == [3, 2**39]
    assert model.predict(x_next) < 0.0
