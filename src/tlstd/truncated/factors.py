"""A ≈ U diag(sigma) Vᵀ, kept orthonormal under block updates."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from tlstd.core.arrays import FloatArray
from tlstd.core.file_format import Saved, State
from tlstd.core.growing import slices
from tlstd.core.qr import cholesky_qr, deviation
from tlstd.core.svd import svd
from tlstd.truncated.basis import Basis

_CHUNK = 512
ORTHOGONALITY = 1e-13
"""Deviation max|UᵀU - I| above which both factors are re-orthonormalised."""

MAX_ORTHOGONALITY_BOUND = 1e-13
"""Deviation that may have built up, by a bound for each compression, before it is measured. (That takes as long as half
a compression's tall product.)"""

BROKEN = 1e-10
"""Deviation that no factor has that was saved by this library."""


class Factors:
    """U diag(sigma) Vᵀ of rank at most ``rank``; U and V (n, r) have a row for each feature seen at the last update.

    They lie in memory row by row, without gaps: BLAS may add up in another order where rows are further apart, and
    results would depend on more than the numbers (on whether the model was saved and loaded, for one).
    """

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.U: FloatArray = np.zeros((0, 0))
        self.sigma: FloatArray = np.zeros(0)
        self.V: FloatArray = np.zeros((0, 0))
        self.orthogonality_bound = 0.0  # how far from orthonormal they may have become since that was measured

    def replaced(
        self, left: Basis, right: Basis, L: FloatArray, sigma: FloatArray, R: FloatArray
    ) -> tuple[Factors, list[tuple[FloatArray, FloatArray]]]:
        """L diag(sigma) Rᵀ, given in the coordinates of bases that extend U and V, as a new object.

        And what :meth:`orthonormalise` returned, if that was needed.
        """
        other = Factors(self.rank)
        other.U, other.sigma, other.V = left.expand(L), sigma, right.expand(R)  # Algorithm 2, lines 5 and 6
        bound = self.orthogonality_bound + max(left.orthogonality_loss(L), right.orthogonality_loss(R))
        if bound > MAX_ORTHOGONALITY_BOUND:
            return other, other.orthonormalise()
        other.orthogonality_bound = bound
        return other, []

    def orthogonality_error(self) -> float:
        """max(max|UᵀU - I|, max|VᵀV - I|). O(n r²)."""
        return max(deviation(self.U.T @ self.U), deviation(self.V.T @ self.V))

    def orthonormalise(self) -> list[tuple[FloatArray, FloatArray]]:
        """Restore orthonormal columns without changing the product U diag(sigma) Vᵀ, in place.

        A Cholesky QR of both factors (they are nearly orthonormal, so it is accurate), whose triangles are *folded
        back*: with U = Q_u R_u and V = Q_v R_v the new factors come from the SVD of R_u diag(sigma) R_vᵀ. Dropping the
        triangles instead would change A.

        Returns the pairs of matrices, in turn, by which anything else that is held in the coordinates of U and V has to
        be multiplied from the left and, transposed, from the right.
        """
        changes: list[tuple[FloatArray, FloatArray]] = []
        for _ in range(3):
            G_left, G_right = self.U.T @ self.U, self.V.T @ self.V
            if max(deviation(G_left), deviation(G_right)) <= ORTHOGONALITY:
                break
            self.U, R_left, to_Q_left = _triangles(self.U, G_left)
            self.V, R_right, to_Q_right = _triangles(self.V, G_right)
            L, self.sigma, Rt = svd((R_left * self.sigma) @ R_right.T)
            _multiply(self.U, to_Q_left @ L)
            _multiply(self.V, to_Q_right @ Rt.T)
            changes.append((L.T @ R_left, Rt @ R_right))
        return changes

    def state(self) -> State:
        """What :meth:`restore` takes."""
        return {"U": self.U, "sigma": self.sigma, "V": self.V, "doubt": self.orthogonality_bound}

    def restore(self, saved: Saved, n: int) -> None:
        """Take over a saved state, if it can be one with at most ``n`` rows; only of fresh objects."""
        sigma = saved.floats("sigma", None, low=0.0)
        if sigma.size > self.rank:
            raise saved.error("sigma", f"has {sigma.size} entries where rank is {self.rank}")
        if (sigma[1:] > sigma[:-1]).any():
            raise saved.error("sigma", "does not fall")
        U = saved.floats("U", None, sigma.size, low=-2.0, high=2.0)
        if not sigma.size <= U.shape[0] <= n:
            raise saved.error("U", f"has {U.shape[0]} rows, which does not go with {n} features seen")
        V = saved.floats("V", U.shape[0], sigma.size, low=-2.0, high=2.0)
        self.orthogonality_bound = saved.real("doubt", low=0.0, high=MAX_ORTHOGONALITY_BOUND)
        self.U, self.sigma, self.V = np.ascontiguousarray(U), sigma, np.ascontiguousarray(V)
        if not self.orthogonality_error() <= BROKEN:
            raise saved.error("U", "or V does not have orthonormal columns")


def _multiply(U: FloatArray, M: FloatArray) -> None:
    """U ← U M for a square M, in place: no second tall matrix."""
    buffer = np.empty((min(_CHUNK, U.shape[0]), M.shape[1]))
    for rows in slices(U.shape[0], _CHUNK):
        U[rows] = np.matmul(U[rows], M, out=buffer[: U[rows].shape[0]])


def _triangles(U: FloatArray, G: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """U′, R and M of a QR of U, with Gram matrix G: U = Q R and U′ M = Q.

    By Cholesky, with U′ = U; a factor too far from orthonormal for that gets a Householder QR.
    """
    triangles = cholesky_qr(G)
    if triangles is not None:
        return U, *triangles
    Q, R = scipy.linalg.qr(U, mode="economic", check_finite=False)
    return np.ascontiguousarray(Q), R, np.eye(U.shape[1])
