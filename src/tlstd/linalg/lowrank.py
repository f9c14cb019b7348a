"""A ≈ U diag(sigma) Vᵀ, kept orthonormal under block updates."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from tlstd.linalg.extension import Extension
from tlstd.linalg.svd import svd
from tlstd.types import FloatArray

_CHUNK = 2048
ORTHOGONALITY = 1e-13
"""Deviation max|UᵀU - I| above which both factors are re-orthonormalised."""


class TallFactor:
    """An (n, r) matrix of orthonormal columns, r <= rank, whose rows grow as features are seen."""

    def __init__(self, rank: int) -> None:
        self._array: FloatArray = np.zeros((0, rank))
        self.n_rows = 0
        self.n_columns = 0

    @property
    def matrix(self) -> FloatArray:
        """The factor, (n, r); a view."""
        return self._array[: self.n_rows, : self.n_columns]

    def replace(self, basis: Extension, C: FloatArray) -> None:
        """Become the vectors with coordinates C (basis.size, c) in an extension of this factor. O(n r c), in place."""
        on_U, on_S, on_E = basis.split(C)
        self._grow(basis.n)
        self.transform(on_U)
        matrix = self.matrix
        basis.block.add_to(matrix, basis.picked, on_S)
        if on_E.shape[0]:
            matrix += basis.E @ on_E

    def transform(self, M: FloatArray) -> None:
        """Multiply from the right by M (r, c), in place and in slices of rows: no second tall matrix."""
        r, c = M.shape
        for start in range(0, self.n_rows, _CHUNK):
            rows = self._array[start : min(start + _CHUNK, self.n_rows)]
            rows[:, :c] = rows[:, :r] @ M
        self.n_columns = c

    def gram(self) -> FloatArray:
        """UᵀU."""
        G: FloatArray = self.matrix.T @ self.matrix
        return G

    def triangle(self, G: FloatArray) -> tuple[FloatArray, FloatArray]:
        """R and M of a QR of this factor: it equals Q R, and this factor (as it is on return) times M is Q.

        From the Gram matrix ``G`` by Cholesky; a factor too far from orthonormal for that gets a Householder QR.
        """
        identity = np.eye(self.n_columns)
        if _deviation(G) < 0.5 / max(self.n_columns, 1):  # then no eigenvalue of G is below ½
            R: FloatArray = scipy.linalg.cholesky(G, check_finite=False)
            return R, scipy.linalg.solve_triangular(R, identity, check_finite=False)
        Q, R = scipy.linalg.qr(self.matrix, mode="economic", check_finite=False)
        self.load(Q)
        return R, identity

    def load(self, matrix: FloatArray) -> None:
        """Take over a matrix."""
        self._grow(matrix.shape[0])
        self.n_columns = matrix.shape[1]
        self.matrix[:] = matrix

    def _grow(self, n: int) -> None:
        if n > self._array.shape[0]:
            # a third more than needed: few copies, and old + new + the other factor stay within 3 factors' memory
            array = np.zeros((n + n // 3 if self.n_rows else n, self._array.shape[1]))
            array[: self.n_rows] = self._array[: self.n_rows]
            self._array = array
        self._array[self.n_rows : n] = 0.0
        self.n_rows = n


class LowRank:
    """U diag(sigma) Vᵀ of rank at most ``rank``."""

    def __init__(self, rank: int) -> None:
        self.left, self.right = TallFactor(rank), TallFactor(rank)
        self.sigma: FloatArray = np.zeros(0)

    @property
    def U(self) -> FloatArray:
        """Left singular vectors, (n, r)."""
        return self.left.matrix

    @property
    def V(self) -> FloatArray:
        """Right singular vectors, (n, r)."""
        return self.right.matrix

    def replace(self, left: Extension, L: FloatArray, sigma: FloatArray, right: Extension, R: FloatArray) -> None:
        """Become L diag(sigma) Rᵀ, given in the coordinates of extensions of U and V."""
        self.left.replace(left, L)
        self.right.replace(right, R)
        self.sigma = sigma
        self.orthonormalise()

    def orthogonality_error(self) -> float:
        """max(max|UᵀU - I|, max|VᵀV - I|). O(n r²)."""
        return max(_deviation(self.left.gram()), _deviation(self.right.gram()))

    def orthonormalise(self) -> None:
        """Restore orthonormal columns without changing the product U diag(sigma) Vᵀ.

        A Cholesky QR of both factors (they are nearly orthonormal, so it is accurate), whose triangles are *folded
        back*: with U = Q_u R_u and V = Q_v R_v the new factors come from the SVD of R_u diag(sigma) R_vᵀ. Dropping the
        triangles instead would change A.
        """
        for _ in range(3):
            G_left, G_right = self.left.gram(), self.right.gram()
            if max(_deviation(G_left), _deviation(G_right)) <= ORTHOGONALITY:
                return
            R_left, to_Q_left = self.left.triangle(G_left)
            R_right, to_Q_right = self.right.triangle(G_right)
            L, self.sigma, Rt = svd((R_left * self.sigma) @ R_right.T)
            self.left.transform(to_Q_left @ L)
            self.right.transform(to_Q_right @ Rt.T)


def _deviation(G: FloatArray) -> float:
    if not G.size:
        return 0.0
    return float(np.abs(G - np.eye(G.shape[0])).max())
