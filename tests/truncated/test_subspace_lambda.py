"""Subspaces from one λ, equations from another: against dense matrices, one block after the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

import tlstd
from tlstd import LSTD, TLSTD, InvalidParameterError, Transitions
from tlstd.core.arrays import FloatArray


def stream(seed: int, n: int, d: int, *, dense: bool, ratios: bool = False) -> Transitions:
    rng = np.random.default_rng(seed)
    X = (
        rng.standard_normal((n + 1, d))
        if dense
        else (rng.random((n + 1, d)) < 0.15) * rng.uniform(0.5, 2.0, (n + 1, d))
    )
    ends = rng.random(n) < 0.05
    discounts = np.where(ends, 0.0, 0.9)
    return Transitions(
        X[:-1] if dense else sp.csr_array(X[:-1]),
        rng.standard_normal(n),
        X[1:] if dense else sp.csr_array(X[1:]),
        discounts=discounts,
        trace_discounts=np.append(0.0, discounts[:-1]),
        rhos=rng.uniform(0.5, 1.5, n) if ratios else None,
    )


def literally(
    steps: Transitions, rank: int, block: int, lambda_: float, subspace_lambda: float, beta: float | None = None
) -> FloatArray:
    """The weights by dense matrices: both systems in full within a block, both projected at its end."""
    d = steps.n_features
    A1, A2, b2 = np.zeros((d, d)), np.zeros((d, d)), np.zeros(d)
    z1, z2 = np.zeros(d), np.zeros(d)
    w = np.zeros(d)
    for i, t in enumerate(steps):
        x, x_next = (v.toarray() if hasattr(v, "toarray") else np.asarray(v) for v in (t.x, t.x_next))
        z1 = t.rho * (t.trace_discount * subspace_lambda * z1 + x)
        z2 = t.rho * (t.trace_discount * lambda_ * z2 + x)
        share = 1.0 / (i + 1) if beta is None else beta
        delta = x - t.discount * x_next
        A1 = (1 - share) * A1 + share * np.outer(z1, delta)
        A2 = (1 - share) * A2 + share * np.outer(z2, delta)
        b2 = (1 - share) * b2 + share * z2 * float(t.reward)
        if (i + 1) % block == 0 or i + 1 == len(steps):
            U, sigma, Vt = np.linalg.svd(A1)
            kept = min(rank, int(np.count_nonzero(sigma > np.finfo(float).eps * sigma[0])))
            U, sigma, V = U[:, :kept], sigma[:kept], Vt[:kept].T
            G = U.T @ A2 @ V
            w = V @ np.linalg.pinv(G, rcond=1e-4) @ (U.T @ b2)
            if (i + 1) % block == 0:
                A1, A2 = (U * sigma) @ V.T, U @ G @ V.T
    return w


@pytest.mark.parametrize("dense", [False, True], ids=["sparse", "dense"])
@pytest.mark.parametrize(("lambda_", "subspace_lambda"), [(0.0, 1.0), (0.5, 0.9), (1.0, 0.0), (0.7, 0.7)])
@pytest.mark.parametrize("options", [{}, {"beta": 0.02}, {"ratios": True}], ids=["", "beta", "ratios"])
def test_against_dense_matrices(dense: bool, lambda_: float, subspace_lambda: float, options: dict[str, Any]) -> None:
    for seed, (n, rank, block) in enumerate([(60, 6, 20), (75, 12, 20), (47, 3, 11)]):
        steps = stream(seed, n, 25, dense=dense, ratios=options.get("ratios", False))
        beta = options.get("beta")
        model = TLSTD(25, rank, lambda_=lambda_, subspace_lambda=subspace_lambda, buffer_size=block, beta=beta)
        model.update_many(steps)
        expected = literally(steps, rank, block, lambda_, subspace_lambda, beta)
        assert_allclose(model.weights, expected, rtol=0.0, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("dense", [False, True], ids=["sparse", "dense"])
def test_full_rank_is_lstd_of_the_second_lambda(dense: bool) -> None:
    steps = stream(3, 400, 20, dense=dense)
    model = TLSTD(20, 20, lambda_=0.3, subspace_lambda=1.0, rcond=0.0)
    lstd = LSTD(20, lambda_=0.3, rcond=0.0)
    for part in (steps[:170], steps[170:]):
        model.update_many(part)
        lstd.update_many(part)
        assert_allclose(model.weights, lstd.weights, rtol=1e-8, atol=1e-9 * np.abs(lstd.weights).max())


def test_equal_lambdas_change_nothing() -> None:
    steps = stream(4, 300, 30, dense=False)
    one, two = (TLSTD(30, 8, lambda_=0.8, subspace_lambda=second, buffer_size=16) for second in (None, 0.8))
    one.update_many(steps)
    two.update_many(steps)
    assert_allclose(two.weights, one.weights, rtol=0.0, atol=1e-9 * np.abs(one.weights).max())


def test_the_subspace_is_that_of_its_own_lambda() -> None:
    steps = stream(5, 300, 30, dense=False)
    one = TLSTD(30, 8, lambda_=0.1, subspace_lambda=0.9, buffer_size=16)
    two = TLSTD(30, 8, lambda_=0.9, buffer_size=16)
    one.update_many(steps)
    two.update_many(steps)
    assert_array_equal(one.singular_values, two.singular_values)


def test_saved_in_mid_buffer_and_read_at_every_step(tmp_path: Path) -> None:
    for dense in (False, True):
        steps = stream(6, 120, 30, dense=dense)
        model = TLSTD(30, 6, lambda_=0.2, subspace_lambda=1.0, buffer_size=25, n_targets=1)
        for t in steps[:65]:
            model.update(t)
            model.predict(t.x)
        model.save(tmp_path / "model")
        other = tlstd.load(tmp_path / "model")
        whole = TLSTD(30, 6, lambda_=0.2, subspace_lambda=1.0, buffer_size=25)
        whole.update_many(steps[:65])
        for t in steps[65:]:
            for m in (model, other, whole):
                m.update(t)
            assert model.predict(t.x) == other.predict(t.x)
        assert_array_equal(model.weights, other.weights)
        assert_allclose(whole.weights, model.weights, rtol=0.0, atol=1e-9 * np.abs(model.weights).max())


def test_replacing_traces_are_refused() -> None:
    with pytest.raises(InvalidParameterError, match=r"subspace_lambda is 1.0 with trace"):
        TLSTD(10, 2, lambda_=0.5, subspace_lambda=1.0, trace="replacing")
    with pytest.raises(InvalidParameterError, match="subspace_lambda"):
        TLSTD(10, 2, lambda_=0.5, subspace_lambda=1.5)
