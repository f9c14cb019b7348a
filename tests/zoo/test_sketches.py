"""LSTD with random projections and with a left-sided sketch, against dense algebra with S written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.krylov.literal_system import literal_system, random_steps, seen_features
from tlstd import LSTD, ProjectedLSTD, SketchedLSTD, Transition
from tlstd.core.arrays import FloatArray
from tlstd.data.vectors import SparseVector
from tlstd.errors import CapacityError, InvalidParameterError
from tlstd.zoo.sketch import Sketch

MASK = (1 << 64) - 1


def mix(h: int) -> int:
    """SplitMix64's finaliser."""
    h = ((h ^ (h >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    h = ((h ^ (h >> 27)) * 0x94D049BB133111EB) & MASK
    return h ^ (h >> 31)


def written_out(rows: int, ids: list[int], nonzeros: int, seed: int) -> FloatArray:
    """The columns ``ids`` of S, by Python's integers."""
    S = np.zeros((rows, len(ids)))
    for i, j in enumerate(ids):
        column = mix((mix(seed) + j) & MASK)
        for k in range(nonzeros):
            h = mix((column + k * 0x9E3779B97F4A7C15) & MASK)
            first, last = k * rows // nonzeros, (k + 1) * rows // nonzeros
            S[first + ((h >> 32) * (last - first) >> 32), i] = (1.0 if h & 1 else -1.0) / np.sqrt(nonzeros)
    return S


@pytest.mark.parametrize(("rows", "nonzeros", "seed"), [(7, 3, 0), (5, 5, 2**63 - 1), (1, 1, 4), (40, 1, 9)])
def test_the_matrix_is_the_one_described(rows: int, nonzeros: int, seed: int) -> None:
    ids = [0, 1, 2, 2**40, 2**62]
    csr = np.arange(len(ids) + 1), np.array(ids), np.ones(len(ids))
    S, expected = Sketch(rows, nonzeros, seed), written_out(rows, ids, nonzeros, seed)
    assert_allclose(S.project(csr, np.arange(len(ids))).T, expected, rtol=1e-15)
    Y = np.random.default_rng(0).standard_normal((rows, 2))
    assert_allclose(S.lift(np.array(ids), Y), expected.T @ Y, atol=1e-14)
    assert_allclose((expected**2).sum(axis=0), 1.0)


def test_inner_products_are_kept_in_the_mean() -> None:
    """Over seeds, SᵀS has the mean I and, beside the diagonal, the variance 1/r, for neighbouring ids and seeds."""
    grams = np.array([(S := written_out(25, list(range(6)), 3, seed)).T @ S for seed in range(2_000)])
    beside = ~np.eye(6, dtype=bool)
    assert np.abs(grams.mean(axis=0) - np.eye(6)).max() < 4.5 * np.sqrt(1 / 25 / 2_000)
    assert_allclose((grams[:, beside] ** 2).mean(), 1 / 25, rtol=0.05)


def test_one_sample_by_hand() -> None:
    """With one row S is a sign: x = 2, r = 3 at an end, so that SASᵀ = 4, Sb = ±6 and w = 6 / 4."""
    step = Transition(SparseVector([5], [2.0], 10), 3.0, SparseVector([6], [1.0], 10), discount=0.0, trace_discount=0.0)
    for model in (ProjectedLSTD(10, 1, lambda_=0.5), SketchedLSTD(10, 1, lambda_=0.5)):
        model.update(step)
        assert_allclose(model.weights, [0, 0, 0, 0, 0, 1.5, 0, 0, 0, 0])
        assert model.n_seen == 1  # features of a terminal next row have no weight


@pytest.mark.parametrize(
    ("kind", "ratios", "nonzeros", "beta"),
    [("binary", False, None, None), ("valued", True, 1, 0.02), ("dense", True, 8, None), ("dense", False, 3, 0.3)],
)
def test_against_dense_algebra(kind: str, ratios: bool, nonzeros: int | None, beta: float | None) -> None:
    """For all at once, and in pieces of one step and of several blocks."""
    steps = random_steps(np.random.default_rng([len(kind), ratios]), 700, kind=kind, ratios=ratios, n_targets=2)
    A, b = literal_system(steps, 0.7, beta=beta)
    S = written_out(8, list(range(30)), nonzeros or 4, 3)
    seen = np.isin(np.arange(30), seen_features(steps))[:, None]
    options: dict[str, Any] = {"lambda_": 0.7, "nonzeros": nonzeros, "seed": 3, "rcond": 1e-10, "n_targets": 2}
    expected: list[tuple[Any, FloatArray]] = [
        (lambda: ProjectedLSTD(30, 8, beta=beta, **options), S.T @ np.linalg.pinv(S @ A @ S.T, rcond=1e-10) @ S @ b)
    ]
    if beta is None:
        expected.append((lambda: SketchedLSTD(30, 8, **options), np.linalg.pinv(S @ A, rcond=1e-10) @ S @ b))
    for make, weights in expected:
        whole, pieces = make(), make()
        whole.update_many(steps)
        for t in steps[:9]:
            pieces.update(t)
        pieces.update_many([steps[9:300], steps[300:]])
        for model in (whole, pieces):
            assert_allclose(model.weights, weights * seen, atol=1e-9 * np.abs(weights).max())


@pytest.mark.parametrize("make", [ProjectedLSTD, SketchedLSTD])
def test_with_as_many_dimensions_as_features_it_is_lstd(make: Any) -> None:
    """S of full column rank loses nothing, as long as no singular value is cut off."""
    steps = random_steps(np.random.default_rng(1), 400, kind="valued", n_features=10)
    model, lstd = make(10, 60, lambda_=0.5, rcond=1e-12), LSTD(10, lambda_=0.5, rcond=0.0)
    for each in (model, lstd):
        each.update_many(steps)
    assert_allclose(model.weights, lstd.weights, rtol=1e-6)


def test_any_number_of_features() -> None:
    """Memory is that of the system and of the features seen."""
    model = ProjectedLSTD(2**62, 30, lambda_=0.9)
    for t in range(50):
        x, x_next = (SparseVector([7, (t + i) * 10**16], [1.0, 1.0], 2**62) for i in (0, 1))
        model.update(Transition(x, 1.0, x_next, discount=0.9, trace_discount=0.9 * (t > 0)))
    assert model.n_seen == 52
    assert model.nbytes < 60_000
    assert np.isfinite(model.predict(x))


def test_refusals_change_nothing() -> None:
    for make in (ProjectedLSTD, SketchedLSTD):
        with pytest.raises(InvalidParameterError, match="nonzeros is 5 with dimension=4: it must be at most that"):
            make(9, 4, lambda_=0.5, nonzeros=5)
        with pytest.raises(InvalidParameterError, match=r"rcond is 1\.0: it must lie in \[0, 1\)"):
            make(9, 4, lambda_=0.5, rcond=1.0)  # all singular values would be cut off
    steps = random_steps(np.random.default_rng(0), 40)
    model = SketchedLSTD(30, 10, lambda_=0.5, memory_limit=8 * 10 * 20)
    with pytest.raises(CapacityError, match="lower dimension, or raise memory_limit"):
        model.update_many(steps)
    assert (model.n_updates, model.n_seen) == (0, 0)
