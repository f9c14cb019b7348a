"""QR factorisations of tall matrices, with as little work per row as they need."""

from __future__ import annotations

from functools import cache

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.linalg.lapack import dgeqp3, dgeqrf, dorgqr, dormqr, dpotrf

from tlstd.core.arrays import FloatArray, IntArray, locked
from tlstd.core.svd import solve_triangle

_BLOCK = 64  # columns at a time, for which LAPACK needs working space


def pivoted_qr(X: FloatArray, smallest: float, most: int) -> tuple[FloatArray, FloatArray]:
    """Q (n, e) orthonormal and R (e, u) with X ≈ Q R, by columns in order of what is left of them.

    Stops at columns of which at most ``smallest`` is left, and after ``most`` of them. Only the small triangle of an
    ordinary Householder QR is pivoted, which is as stable as pivoting the tall matrix and takes half the time.

    >>> Q, R = pivoted_qr(np.array([[1.0, 2.0], [0.0, 1e-20], [0.0, 0.0]]), 1e-14, 3)
    >>> Q.shape, np.abs(R)
    ((3, 1), array([[1., 2.]]))
    """
    n, u = X.shape
    if n < u:
        Q, R, order = scipy.linalg.qr(X, mode="economic", pivoting=True, check_finite=False)
        kept = _kept(R, smallest, most)
        return np.ascontiguousarray(Q[:, :kept]), R[:kept][:, order.argsort()]
    reflectors, tau, _, _ = dgeqrf(X, lwork=max(1, _BLOCK * u))
    rotation, R, order = _pivoted_triangle(reflectors[:u])
    kept = _kept(R, smallest, most)
    Q = np.zeros((n, kept), order="F")
    Q[:u] = rotation[:, :kept]
    if kept:
        Q, _, _ = dormqr("L", "N", reflectors, tau, Q, max(1, _BLOCK * kept), overwrite_c=1)
    return np.ascontiguousarray(Q), R[:kept][:, order.argsort()]


def _pivoted_triangle(R: FloatArray) -> tuple[FloatArray, FloatArray, IntArray]:
    """Q, R and the order of the columns of an upper triangle, by the bare calls: small problems are mostly overhead."""
    u = R.shape[1]
    if u == 1:  # it is its own
        return np.ones((1, 1)), R, np.zeros(1, dtype=np.int64)
    reflectors, order, tau, _, _ = dgeqp3(_upper(R), lwork=2 * u + (u + 1) * _BLOCK)
    Q, _, _ = dorgqr(reflectors, tau, lwork=_BLOCK * u)
    return Q, _upper(reflectors), order - 1


def _upper(R: FloatArray) -> FloatArray:
    """The upper triangle of a square matrix, zeros below it."""
    return np.where(_below(R.shape[0]), 0.0, R) if R.shape[0] <= _BLOCK else np.triu(R)


@cache  # for small ones, which would take longer to make than to use
def _below(u: int) -> NDArray[np.bool_]:
    return np.tri(u, k=-1, dtype=np.bool_)


def orthonormalised(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Q and R of X (n, e): by Cholesky where the columns are nearly orthonormal already, otherwise by reflections.

    >>> X = np.linalg.qr(np.random.default_rng(0).standard_normal((50, 4)))[0] + 1e-3
    >>> Q, R = orthonormalised(X)
    >>> bool(np.abs(Q.T @ Q - np.eye(4)).max() < 1e-15), bool(np.abs(Q @ R - X).max() < 1e-15)
    (True, True)
    """
    triangles = cholesky_qr(X.T @ X)
    if triangles is not None:
        return X @ triangles[1], triangles[0]
    Q, R = scipy.linalg.qr(X, mode="economic", check_finite=False)
    return Q, R


def cholesky_qr(G: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """R and R⁻¹ of X = Q R from the Gram matrix G = XᵀX, or None if X is too far from orthonormal for that."""
    if not deviation(G) < 0.5 / max(G.shape[0], 1):  # then no eigenvalue of G is below ½
        return None
    R: FloatArray = dpotrf(G, lower=0, clean=1)[0]
    return R, solve_triangle(R, _identity(R.shape[0]))


def deviation(G: FloatArray) -> float:
    """max|G - I|: how far from orthonormal the columns are of which G is the Gram matrix."""
    return float(np.abs(G - _identity(G.shape[0])).max(initial=0.0))


def _identity(u: int) -> FloatArray:
    return _small_identity(u) if u <= _BLOCK else np.eye(u)


@cache
def _small_identity(u: int) -> FloatArray:
    return locked(np.eye(u))


def _kept(R: FloatArray, smallest: float, most: int) -> int:
    return min(most, int(np.count_nonzero(np.abs(R.diagonal()) > smallest)))
