"""Solutions by LU factorisation."""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dgecon, dgetrf, dgetrs

from tlstd.core.arrays import FloatArray
from tlstd.core.svd import EPS
from tlstd.core.threads import one_thread


def solve_lu(A: FloatArray, b: FloatArray) -> FloatArray | None:
    """Solve ``A w = b`` (b: (n, m)) by LU with pivoting, or None where A is singular to rounding. O(n³).

    Singular is what has no LU, an estimated condition of 1/ε or more, or a solution that is not finite.

    >>> solve_lu(np.array([[0.0, 2.0], [1.0, 0.0]]), np.array([[4.0], [3.0]]))
    array([[3.],
           [2.]])
    >>> solve_lu(np.ones((2, 2)), np.ones((2, 1))) is None
    True
    """
    n = A.shape[0]
    if n == 0:
        return np.zeros(b.shape)
    norm = float(np.abs(A).sum(axis=0).max())
    if not 0.0 < norm < np.inf:
        return None
    with one_thread(0.7 * n**3):
        lu, pivots, info = dgetrf(A)
        if info or not dgecon(lu, norm)[0] > EPS:
            return None
        w: FloatArray = dgetrs(lu, pivots, b)[0]
    return w if np.isfinite(w).all() else None
