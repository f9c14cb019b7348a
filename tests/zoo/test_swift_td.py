from __future__ import annotations

import importlib
import importlib.util
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from tests.estimators.streams import ON_POLICY, assert_weights, learned_in_pieces
from tests.helpers import dense, pairwise, random_transitions
from tlstd.classic.true_online_td import TrueOnlineTD
from tlstd.core.arrays import FloatArray
from tlstd.data.transitions import Transition, Transitions
from tlstd.data.vectors import SparseVector
from tlstd.domains.random_walk import random_walk
from tlstd.errors import InvalidInputError, InvalidParameterError
from tlstd.zoo.swift_td import SwiftTD


def literal_swift(
    steps: Transitions, lambda_: float, alpha: float, theta: float, eta: float, epsilon: float
) -> tuple[FloatArray, FloatArray]:
    """SwiftTD in dense NumPy, one line per line of the algorithm: weights and step sizes."""
    w, h, h_old, z, p, z_bar = np.zeros((6, steps.n_features))
    beta = np.full(steps.n_features, np.log(alpha))
    v_old: Any = 0.0
    for t in steps:
        x, x_next, g = dense(t.x), dense(t.x_next), t.trace_discount * lambda_
        z, p, z_bar = g * z, g * p, g * z_bar
        v, v_next = w @ x, w @ x_next
        v_old, h_old = (v, h) if g == 0.0 else (v_old, h_old)
        v_delta = v - v_old
        delta = t.reward + t.discount * v_next - v_old
        rate, overlap = np.exp(beta) @ x**2, z @ x
        z_delta = min(1.0, eta / rate if rate else 1.0) * np.exp(beta) * x
        z = z + z_delta * (1.0 - overlap)
        p = p + h_old * x
        z_bar = z_bar + z_delta * (1.0 - overlap - z_bar * x)
        h_temp = h - h_old * x * (z - z_delta) - h * z_delta * x
        if rate > eta:
            active = x != 0.0
            h_temp, h, z_bar = (np.where(active, 0.0, kept) for kept in (h_temp, h, z_bar))
            beta = beta + np.log(epsilon) * x**2
        w = w + delta * z - z_delta * v_delta
        beta = beta + theta / np.exp(beta) * (delta - v_delta) * p
        beta = np.clip(beta, np.log(1e-10), np.log(eta))
        h_old, h = h, h_temp + delta * z_bar - z_delta * v_delta
        v_old = v_next
    return w, np.exp(beta)


def one_stream(X: FloatArray, rewards: FloatArray, *, gamma: float) -> Transitions:
    """A stream that does not end, of sparse features."""
    never = np.zeros(len(rewards), dtype=np.bool_)
    matrix = sp.csr_array(X)
    return Transitions.from_arrays(matrix[:-1], rewards, matrix[1:], terminated=never, truncated=never, gamma=gamma)


CASES = {
    "gentle": (0.7, 0.01, 1e-3, 0.1, 0.9),
    "the bound is met": (0.9, 0.1, 1e-2, 0.1, 0.9),
    "large meta steps": (0.8, 0.02, 0.3, 0.5, 0.99),
    "no trace": (0.0, 0.05, 1e-2, 0.2, 0.5),
    "no decay of the trace": (1.0, 0.01, 1e-3, 0.1, 1.0),
}


def made(n_features: int, case: str, trace_cutoff: float = 0.0) -> SwiftTD:
    lambda_, alpha, theta, eta, epsilon = CASES[case]
    return SwiftTD(
        n_features,
        lambda_=lambda_,
        initial_step_size=alpha,
        meta_step_size=theta,
        rate_bound=eta,
        step_size_decay=epsilon,
        trace_cutoff=trace_cutoff,
    )


KINDS = [kind for kind, options in ON_POLICY.items() if "n_targets" not in options]


@pytest.mark.parametrize(("kind", "case"), pairwise(KINDS, CASES))
def test_it_is_the_algorithm(kind: str, case: str) -> None:
    steps = random_transitions(np.random.default_rng(1), n_features=12, n_steps=150, **ON_POLICY[kind])
    weights, step_sizes = literal_swift(steps, *CASES[case])
    for model in learned_in_pieces(partial(made, 12, case), steps):
        assert_weights(model, weights)
        seen = model.step_sizes
        assert_allclose(seen.values, step_sizes[seen.indices], rtol=1e-9)


def test_one_step_by_hand() -> None:
    model = SwiftTD(2, lambda_=0.5, initial_step_size=0.1, meta_step_size=0.0, rate_bound=0.2)
    model.update(Transition([1.0, 0.0], 2.0, [0.0, 1.0], discount=0.9, trace_discount=0.0))
    assert_allclose(model.weights, [0.2, 0.0])  # E = 0.1 < η: z = 0.1 x, δ = 2
    model.update(Transition([0.0, 2.0], 0.0, [0.0, 0.0], discount=0.0, trace_discount=0.9))
    # E = 0.4 > η, so z^δ = ½ · 0.1 · 2 = 0.1; v = v' of the step before = 0, so δ = 0
    assert_allclose(model.weights, [0.2, 0.0])
    assert_allclose(model.step_sizes.values, [0.1, 0.1 * 0.99**4])
    model.update(Transition([1.0, 0.0], 1.0, [0.0, 0.0], discount=0.0, trace_discount=0.9))
    # T = 0.45² · 0.1 · 1, z = 0.45² · 0.1 + 0.1 (1 - T); v_old = 0 but v = 0.2: δ = 1, less 0.1 · 0.2
    overlap = 0.45**2 * 0.1
    assert_allclose(model.weights, [0.2 + overlap + 0.1 * (1.0 - overlap) - 0.02, 0.45 * 0.1])


def test_without_meta_steps_it_is_true_online_td() -> None:
    steps = random_transitions(np.random.default_rng(3), n_features=9, n_steps=300, density=0.3, sparse=True)
    model = SwiftTD(9, lambda_=0.8, initial_step_size=1e-3, meta_step_size=0.0, rate_bound=1.0, trace_cutoff=0.0)
    other = TrueOnlineTD(9, step_size=1e-3, lambda_=0.8)
    model.update_many(steps)
    other.update_many(steps)
    assert_weights(model, other.weights)


def test_the_cutoff_costs_no_more_than_it_says() -> None:
    steps = random_walk(51, gamma=0.95).sample(3_000, np.random.default_rng(0), sparse=True)
    exact, cut = made(51, "gentle"), made(51, "gentle", trace_cutoff=1e-6)
    exact.update_many(steps)
    cut.update_many(steps)
    assert 0.0 < np.abs(exact.weights - cut.weights).max() < 1e-5


def test_step_sizes_find_the_features_that_matter() -> None:
    """A feature that tells the reward and 20 that are noise: α grows where it helps and shrinks elsewhere."""
    rng = np.random.default_rng(0)
    X = (rng.random((20_001, 21)) < 0.2).astype(float)
    steps = one_stream(X, X[:-1, 0] + 0.1 * rng.standard_normal(20_000), gamma=0.0)
    model = SwiftTD(21, lambda_=0.0)
    model.update_many(steps)
    found = model.step_sizes.values
    assert found[0] > 1.5 * model.initial_step_size
    assert found[1:].max() < 0.95 * model.initial_step_size
    assert abs(model.weights[0] - 1.0) < 0.05
    assert np.abs(model.weights[1:]).max() < 0.05


def test_bad_parameters_and_ratios_are_refused() -> None:
    with pytest.raises(InvalidParameterError, match=r"initial_step_size is 0\.5 but rate_bound is 0\.1"):
        SwiftTD(3, lambda_=0.9, initial_step_size=0.5)
    model = SwiftTD(3, lambda_=0.9)
    x = SparseVector([0], [1.0], 3)
    with pytest.raises(InvalidInputError, match="on-policy"):
        model.update(Transition(x, 1.0, x, discount=0.9, trace_discount=0.9, rho=2.0))
    assert model.n_updates == 0


@pytest.mark.long
@pytest.mark.skipif(importlib.util.find_spec("swifttd") is None, reason="uv run --with swifttd==0.2.0 pytest -m long")
def test_it_is_the_authors_package_until_the_bound_is_met() -> None:
    """Binary features, one stream; the package has 32 bits, so 10⁻⁴ of the weights."""
    swifttd = importlib.import_module("swifttd")
    rng = np.random.default_rng(0)
    X = (rng.random((3_001, 30)) < 0.1).astype(float)
    rewards = X[:-1] @ rng.standard_normal(30) + 0.1 * rng.standard_normal(3_000)
    gamma, lambda_, alpha, theta, eta = 0.9, 0.8, 1e-3, 1e-3, 1.0
    theirs = swifttd.SwiftTDBinaryFeatures(30, lambda_, alpha, gamma, 1e-8, eta, 0.99, theta, 1e-10)
    theirs.step(np.flatnonzero(X[0]).tolist(), 0.0)
    for x, reward in zip(X[1:], rewards, strict=True):
        theirs.step(np.flatnonzero(x).tolist(), reward)
    settings = {"initial_step_size": alpha, "meta_step_size": theta, "rate_bound": eta, "trace_cutoff": 1e-8}
    model = SwiftTD(30, lambda_=lambda_, **settings)
    model.update_many(one_stream(X, rewards, gamma=gamma))
    weights = np.array([theirs.predict([i]) for i in range(30)])
    assert_allclose(model.weights, weights, atol=1e-4 * np.abs(weights).max())
