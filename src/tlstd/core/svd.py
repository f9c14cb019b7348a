"""Dense SVD that always answers, and the solutions one can read off it."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from scipy.linalg.lapack import dgesdd, dgesvd, dtrtrs

from tlstd.core.arrays import FloatArray

EPS = float(np.finfo(np.float64).eps)
SMALL = 120
"""Size of a matrix below which all its singular values are found as fast as some."""
SMALLEST = float(np.finfo(np.float64).tiny)
"""Singular values up to here are never inverted: the inverse would overflow."""


def svd(K: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Thin SVD ``K = L diag(sigma) Rt`` by divide and conquer, by QR iteration should that fail to converge.

    All NaN if K is not finite, or if that does not converge either.
    """
    N, M = K.shape
    k = min(N, M)
    if k == 0:
        return np.zeros((N, 0)), np.zeros(0), np.zeros((0, M))
    info = 1
    if np.isfinite(K).all():
        L, sigma, Rt, info = dgesdd(K, full_matrices=0)  # the bare call: small problems are mostly overhead
        if info:
            L, sigma, Rt, info = dgesvd(K, full_matrices=0)
    return (np.full((N, k), np.nan), np.full(k, np.nan), np.full((k, M), np.nan)) if info else (L, sigma, Rt)


def solve_triangle(R: FloatArray, B: FloatArray, *, transposed: bool = False) -> FloatArray:
    """R⁻¹ B, or R⁻ᵀ B, for an upper triangular R; without SciPy's checks.

    >>> solve_triangle(np.array([[2.0, 1.0], [0.0, 1.0]]), np.array([[4.0], [2.0]]))
    array([[1.],
           [2.]])
    """
    if R.shape[0] == 0:
        return np.zeros(B.shape)
    X: FloatArray = dtrtrs(R, B, trans=int(transposed))[0]
    return X


def leading_svd(K: FloatArray, rank: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """At least the leading ``rank`` triplets of the SVD of K (N, M), as :func:`svd` returns them.

    Where few of many are wanted: an eigenbasis of K Kᵀ finds the leading left subspace in half the time of an SVD. K is
    then *projected* onto it, and the SVD of that small matrix is exact to rounding; so the square only decides where to
    cut. Its rounding errors are those of an error of ε σ₁²/σ_r in K, so it is used if σ_r >= 1e-3 σ₁; otherwise, and
    for small problems, this is :func:`svd`.

    >>> L, sigma, Rt = leading_svd(np.diag(np.arange(200.0, 0.0, -1.0)), 3)
    >>> L.shape, sigma, Rt.shape
    ((200, 3), array([200., 199., 198.]), (3, 200))
    """
    N = K.shape[0]
    if N < SMALL or 2 * rank > N or rank == 0:
        return svd(K)
    largest = float(np.abs(K).max())
    if not 0.0 < largest < np.inf:
        return svd(K)
    scaled = K * 2.0 ** -np.frexp(largest)[1]  # exact; squares of tiny numbers would vanish
    squares, basis = scipy.linalg.eigh(scaled @ scaled.T, driver="evd", overwrite_a=True, check_finite=False)
    if not squares[N - rank] > 1e-6 * squares[-1]:
        return svd(K)
    basis = basis[:, N - rank :]
    Q, R = scipy.linalg.qr(K.T @ basis, mode="economic", overwrite_a=True, check_finite=False)
    L, sigma, Rt = svd(R.T)
    return basis @ L, sigma, Rt @ Q.T


def inverse_factors(sigma: FloatArray, *, rcond: float, rank: int | None = None, tikhonov: float = 0.0) -> FloatArray:
    """What each singular value is replaced by when the system is solved: 1/σ, σ/(σ²+η), or 0.

    Only the leading ``rank`` values above ``rcond * sigma[0]`` count (Algorithm 4 of the paper); ``tikhonov`` is the η
    of its section 3.

    >>> inverse_factors(np.array([2.0, 1.0, 1e-9]), rcond=1e-4)
    array([0.5, 1. , 0. ])
    """
    factors = np.zeros_like(sigma)
    if sigma.size and sigma[0] > 0.0:
        kept = int(np.count_nonzero(sigma > max(rcond * sigma[0], SMALLEST)))
        kept = min(kept, sigma.size if rank is None else rank)
        if not tikhonov:
            factors[:kept] = 1.0 / sigma[:kept]
            return factors
        with np.errstate(over="ignore"):  # η/σ beyond the largest number: the factor is 0
            # 1/(σ + η/σ) = σ/(σ²+η), without squaring a large or a tiny number
            factors[:kept] = 1.0 / (sigma[:kept] + tikhonov / sigma[:kept])
    return factors


def solve_truncated(A: FloatArray, b: FloatArray, *, rcond: float, tikhonov: float = 0.0) -> FloatArray:
    """Solve ``A w = b`` (b: (n, m)) with the singular values at or below ``rcond * sigma[0]`` left out.

    With ``tikhonov`` = η > 0: the (AᵀA + ηI)⁻¹Aᵀb of the paper's section 3. O(n³).

    >>> solve_truncated(np.diag([2.0, 1e-9]), np.ones((2, 1)), rcond=1e-4)
    array([[0.5],
           [0. ]])
    """
    if A.size == 0:
        return np.zeros((A.shape[1], b.shape[1]))
    U, sigma, Vt = svd(A)
    w: FloatArray = Vt.T @ (inverse_factors(sigma, rcond=rcond, tikhonov=tikhonov)[:, None] * (U.T @ b))
    return w
