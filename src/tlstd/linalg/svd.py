"""Dense SVD that always answers, and the solutions one can read off it."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from tlstd.types import FloatArray

EPS = float(np.finfo(np.float64).eps)
SMALLEST = float(np.finfo(np.float64).tiny)
"""Singular values up to here are never inverted: the inverse would overflow."""


def svd(K: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Thin SVD ``K = L diag(sigma) Rt`` by divide and conquer, by QR iteration should that fail to converge."""
    if min(K.shape) == 0:
        return np.zeros((K.shape[0], 0)), np.zeros(0), np.zeros((0, K.shape[1]))
    try:
        L, sigma, Rt = scipy.linalg.svd(K, full_matrices=False, check_finite=False, lapack_driver="gesdd")
    except np.linalg.LinAlgError:
        L, sigma, Rt = scipy.linalg.svd(K, full_matrices=False, check_finite=False, lapack_driver="gesvd")
    return L, sigma, Rt


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
