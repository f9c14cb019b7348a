"""TLSTD(reads="projected") against the projected system written out, and against exact reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tlstd_lab.campaign import inputs

from tests.helpers import interrupted_everywhere
from tests.krylov.literal_system import dense_rows, random_steps
from tlstd import TLSTD, Transitions, load, random_walk
from tlstd.core.arrays import FloatArray
from tlstd.errors import InvalidParameterError
from tlstd.estimators.registry import ESTIMATORS


def written_out(model: TLSTD, steps: Transitions) -> FloatArray:
    """Weights (d, m) after ``steps``, from the state of ``model`` at a compression, by dense sums."""
    system, d = model._system, model.n_features
    second, ids = system.equations, system.seen.ids[: system.factors.U.shape[0]]
    rank = system.factors.sigma.size
    U, V, b, z = np.zeros((d, rank)), np.zeros((d, rank)), np.zeros((d, model.n_targets)), np.zeros(d)
    U[ids], V[ids] = system.factors.U, system.factors.V
    b[ids], z[ids] = (system.b, system.z) if second is None else (second.b, second.z)
    M = np.diag(system.factors.sigma) if second is None else second.G
    L, sigma, Rt = np.linalg.svd(M)
    q = int((sigma > model.rcond * sigma[0]).sum())
    U, V, M = U @ L[:, :q], V @ Rt[:q].T, np.diag(sigma[:q])
    c = U.T @ b
    X, X_next, rewards = (
        dense_rows(steps.X),
        dense_rows(steps.X_next),
        steps.rewards.reshape(len(steps), model.n_targets),
    )
    T = system.n_compressed
    for t in range(len(steps)):
        z = steps.rhos[t] * (steps.trace_discounts[t] * model.lambda_ * z + X[t])
        share = 1.0 / (T + t + 1) if model.beta is None else model.beta
        M = (1.0 - share) * M + share * np.outer(U.T @ z, V.T @ (X[t] - steps.discounts[t] * X_next[t]))
        c = (1.0 - share) * c + share * np.outer(U.T @ z, rewards[t])
    w: FloatArray = V @ np.linalg.solve(M, c)
    return w


@pytest.mark.parametrize("kind", ["binary", "valued", "dense"])
@pytest.mark.parametrize(
    "options",
    [{}, {"beta": 0.02}, {"subspace_lambda": 1.0}, {"rcond": 0.3}, {"subspace_lambda": 0.2, "beta": 0.01}],
    ids=lambda options: " ".join(options) or "plain",
)
def test_against_the_system_written_out(kind: str, options: dict[str, Any]) -> None:
    steps = random_steps(np.random.default_rng(0), 120, kind=kind, ratios=True, n_targets=2)
    model = TLSTD(30, 8, lambda_=0.7, buffer_size=40, reads="projected", n_targets=2, **options)
    model.update_many(steps[:80])
    assert model._system.buffer.count == 0
    at_compression = TLSTD(30, 8, lambda_=0.7, buffer_size=40, n_targets=2, **options)
    at_compression.update_many(steps[:80])
    for n in (0, 1, 7, 39):
        model.update_many(steps[model.n_updates : 80 + n])
        expected = written_out(at_compression, steps[80 : 80 + n])
        np.testing.assert_allclose(model.weights, expected, rtol=0.0, atol=1e-9 * np.abs(expected).max())


def test_reads_are_exact_before_the_first_compression_and_at_full_rank_at_each() -> None:
    steps = random_steps(np.random.default_rng(1), 160, kind="dense", n_features=10)
    projected, exact = (TLSTD(10, 10, lambda_=0.7, buffer_size=40, reads=reads) for reads in ("projected", "exact"))
    for start in range(0, 160, 10):
        for model in (projected, exact):
            model.update_many(steps[start : start + 10])
        # all directions are there from the first compression on
        np.testing.assert_allclose(projected.weights, exact.weights, atol=1e-9)
        assert projected.predict(steps[0].x) == pytest.approx(exact.predict(steps[0].x))


def test_new_directions_wait_for_the_next_compression() -> None:
    """Samples of features that are new since the compression change nothing until the buffer is full."""
    model = TLSTD(4, 4, lambda_=0.0, buffer_size=4, reads="projected")
    old, new = np.eye(4)[[0, 1, 0, 1]], np.eye(4)[[2, 3, 2, 3]]
    zeros = np.zeros(4)
    model.update_many(Transitions(old, np.ones(4), old, discounts=zeros, trace_discounts=zeros))
    for n, expected in ((3, [1, 1, 0, 0]), (1, [1, 1, 1, 1])):
        model.update_many(Transitions(new[:n], np.ones(n), new[:n], discounts=zeros[:n], trace_discounts=zeros[:n]))
        np.testing.assert_allclose(model.weights, expected, atol=1e-12)


@pytest.mark.parametrize("beta", [0.5, 0.9, 1.0 - 1e-9])
def test_strong_forgetting_stays_finite(beta: float) -> None:
    steps = random_steps(np.random.default_rng(2), 700, kind="binary")
    model = TLSTD(30, 5, lambda_=0.5, beta=beta, buffer_size=320, reads="projected")
    values = model.update_and_predict(steps)
    assert np.isfinite(values).all()
    assert np.isfinite(model.weights).all()


@pytest.mark.parametrize("seed", [269, 727, 956])
def test_numbers_too_large_to_follow_are_read_exactly(seed: int) -> None:
    inputs.throw_many(ESTIMATORS["TLSTD (projected)"], np.random.default_rng([0, seed]), finite=True)


def test_what_is_too_large_to_follow_is_saved_without_it(tmp_path: Path) -> None:
    steps = random_steps(np.random.default_rng(3), 60, kind="dense")
    model = TLSTD(30, 6, lambda_=0.7, buffer_size=16, reads="projected")
    model.update_many(steps[:20])
    assert model._stream is not None
    model._stream._made = model._stream._made[0], {20: ()}
    exact = TLSTD(30, 6, lambda_=0.7, buffer_size=16)
    exact.update_many(steps[:20])
    model.save(tmp_path / "model")
    for m in (model, load(tmp_path / "model")):
        np.testing.assert_array_equal(m.weights, exact.weights)
        values = m.update_and_predict(steps[20:])  # up to a compression as they are, then followed again
        assert values[2] == exact_value(steps[:23], steps.X_next[22])
        assert np.isfinite(values).all()


def exact_value(steps: Transitions, x: FloatArray) -> float:
    model = TLSTD(30, 6, lambda_=0.7, buffer_size=16)
    for t in range(20, len(steps)):
        model.update_many(steps[t if model.n_updates else 0 : t + 1])
    return float(model.predict(x))


@pytest.mark.parametrize("kind", ["binary", "dense"])
def test_saved_in_mid_buffer_it_goes_on_to_the_bit(kind: str, tmp_path: Path) -> None:
    steps = random_steps(np.random.default_rng(3), 130, kind=kind, ratios=True)
    for cut in (0, 10, 32, 47, 64, 79):
        model = TLSTD(30, 6, lambda_=0.7, buffer_size=16, reads="projected", subspace_lambda=0.9, beta=0.01)
        model.update_many(steps[:cut])
        model.save(tmp_path / "model")
        twin = load(tmp_path / "model")
        for m in (model, twin):
            m.update_many(steps[cut : cut + 3])
        np.testing.assert_array_equal(twin.weights, model.weights)
        for m in (model, twin):
            m.update_many(steps[cut + 3 :])
        np.testing.assert_array_equal(twin.weights, model.weights)


@pytest.mark.parametrize("every", [149, pytest.param(7, marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", ["binary", "dense"])
def test_interrupted_anywhere_it_is_the_model_of_a_prefix(kind: str, every: int) -> None:
    steps = random_steps(np.random.default_rng(4), 40, kind=kind)

    def make() -> TLSTD:
        return TLSTD(30, 4, lambda_=0.7, buffer_size=8, reads="projected")

    expected = {}
    for n in range(12, 41):
        model = make()
        model.update_many(steps[:12])
        model.update_many(steps[12:n])
        expected[n] = model.weights
    found = set()
    for model in interrupted_everywhere(make, steps[:12], steps[12:], every=every):
        n = model.n_updates
        np.testing.assert_allclose(model.weights, expected[n], atol=1e-9 * np.abs(expected[n]).max())
        model.update_many(steps[n:])
        np.testing.assert_allclose(model.weights, expected[40], atol=1e-9 * np.abs(expected[40]).max())
        found.add(n)
    assert {12, 24, 40} <= found


def test_learns_a_chain() -> None:
    chain = random_walk(n_states=5, gamma=0.9)
    model = TLSTD(5, 5, lambda_=0.9, reads="projected")
    model.update_many(chain.sample(20_000, np.random.default_rng(0)))
    np.testing.assert_allclose(model.predict(chain.X), chain.values(), atol=0.05)


@pytest.mark.parametrize("options", [{"reads": "both"}, {"reads": "projected", "trace": "replacing"}])
def test_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameterError, match="reads"):
        TLSTD(5, 2, lambda_=0.5, **options)
