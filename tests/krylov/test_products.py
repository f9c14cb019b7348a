"""The parts of a product with the LSTD matrix, on tiny arrays that can be checked by hand, and at random."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from tlstd.krylov.kernels import products as kernels

NO_FOLDS = (np.zeros(0, dtype=np.int16), np.zeros(0, dtype=np.int16), np.zeros(0), np.zeros(0, dtype=np.bool_))


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("valued", [False, True])
def test_gather_and_scatter_are_products_with_the_rows(k: int, valued: bool) -> None:
    rng = np.random.default_rng(0)
    X = np.where(rng.random((9, 20)) < 0.4, rng.standard_normal((9, 20)) if valued else 1.0, 0.0)
    X[4] = 0.0  # a row without entries
    csr = sp.csr_array(X)
    ptr, pos, val = csr.indptr.astype(np.int32), csr.indices.astype(np.int32), csr.data if valued else None
    V, P = rng.standard_normal((20, k + 1)), np.full((9, k + 1), 7.0)
    kernels.gather(ptr, pos, val, V, 1, (0,) * k, P)
    np.testing.assert_allclose(P[:, 1:], X @ V[:, 1:], atol=1e-14)
    assert (P[:, 0] == 7.0).all()
    rows, S, out = np.array([2, 4, 8], dtype=np.int32), rng.standard_normal((3, k + 1)), np.ones((20, k + 1))
    kernels.scatter(ptr, pos, val, rows, S, 1, (0,) * k, out)
    np.testing.assert_allclose(out[:, 1:], 1.0 + X[rows].T @ S[:, 1:], atol=1e-14)
    assert (out[:, 0] == 1.0).all()


def test_scalars_backwards_by_hand() -> None:
    """λ = 0.5, two samples of which the second carries g = 0.8: s₂ = 2(0.1·3 + 1) = 2.6, s₁ = 1(0.2·4 + 0.4 s₂)."""
    D, carry = np.array([[4.0], [3.0]]), np.array([1.0])
    arrays = np.array([0.5, 0.8]), np.array([1.0, 2.0]), np.array([0.2, 0.1])
    kernels.follow_back(D, *arrays, 0.5, NO_FOLDS, carry)
    np.testing.assert_allclose(D, [[0.8 + 0.4 * 2.6], [2.6]], rtol=1e-15)
    np.testing.assert_allclose(carry, 0.25 * D[0])


def test_scalars_forwards_by_hand() -> None:
    """Rows 0 -> 1 -> end: q₁ = 1(0.25·4 + 2) = 3, q₂ = 2(0.4·3 + 5) = 12.4; row 1 is left by one and reached by two."""
    P, C, carry = np.array([[2.0], [5.0]]), np.zeros((2, 1)), np.array([4.0])
    rows = np.array([0, 1], dtype=np.int32), np.array([1, -1], dtype=np.int32)
    arrays = np.array([0.9, 0.0]), np.array([0.5, 0.8]), np.array([1.0, 2.0]), np.array([0.2, 0.1])
    kernels.follow_forward(P, *rows, *arrays, 0.5, NO_FOLDS, carry, C)
    np.testing.assert_allclose(carry, [12.4], rtol=1e-15)
    np.testing.assert_allclose(C, [[0.2 * 3.0], [0.1 * 12.4 - 0.9 * 0.2 * 3.0]], rtol=1e-15)


def test_traces_by_hand() -> None:
    """λ = 0.5: q₁ = 1(0.25·4 + 2) = 3, q₂ = 2(0.4·3 + 5) = 12.4; where the trace is cut q₂ = 2·5."""
    P, row = np.array([[2.0], [5.0]]), np.array([0, 1], dtype=np.int32)
    for cut, last in (([False, False], 12.4), ([False, True], 10.0)):
        out, carry = np.empty((2, 1)), np.array([4.0])
        kernels.follow_traces(P, row, np.array([0.5, 0.8]), np.array([1.0, 2.0]), 0.5, np.array(cut), carry, out)
        np.testing.assert_allclose(out, [[3.0], [last]], rtol=1e-15)
        np.testing.assert_allclose(carry, [last], rtol=1e-15)


def test_folds_and_cuts_by_hand() -> None:
    masks = (
        np.array([0, 1], dtype=np.int16),
        np.array([0, 1], dtype=np.int16),
        np.array([2.0, 3.0]),
        np.array([False, True]),
    )
    D, carry, ones = np.full((2, 2), 5.0), np.ones(2), np.ones(2)
    kernels.follow_back(D, ones, ones, ones, 1.0, masks, carry)
    np.testing.assert_array_equal(D, [[0.0, 15.0], [11.0, 1.0]])  # nothing is carried over the cut
    np.testing.assert_array_equal(carry, D[0])


def test_differences_do_not_bootstrap_from_an_end() -> None:
    P, D = np.array([[1.0, 2.0], [10.0, 20.0]]), np.zeros((2, 2))
    rows = np.array([0, 1], dtype=np.int32), np.array([1, -1], dtype=np.int32)
    kernels.differences(P, *rows, np.array([0.5, 0.0]), D)
    np.testing.assert_array_equal(D, [[-4.0, -8.0], [10.0, 20.0]])


def test_trace_factors_by_hand() -> None:
    out = np.empty(2)
    before = kernels.trace_factors(np.array([0.8, 0.5]), np.array([3.0, 2.0]), 0.5, out)
    np.testing.assert_allclose(out, [2.0 * 0.25 * 3.0, 2.0])
    assert before == pytest.approx(2.0 * 0.25 * 3.0 * 0.4)
