"""Mini-batch t-LSTD in dense NumPy as one would write it in a hurry: matrix products, one projection, no repairs.

``tlstd_lab.reference`` projects twice, drops directions that are rounding, and keeps its factors orthonormal.
"""

from __future__ import annotations

import numpy as np

from tlstd.core.arrays import FloatArray


class OneProjectionTLSTD:
    """t-LSTD(λ) with k = r on dense vectors: A = Σ z dᵀ and b = Σ z r, the factors changed at the ends of buffers."""

    def __init__(self, n_features: int, rank: int, *, lambda_: float) -> None:
        self.rank, self.lambda_, self._i = rank, lambda_, 0
        self.U, self.V, self.sigma = np.zeros((n_features, 0)), np.zeros((n_features, 0)), np.zeros(0)
        self.z, self.b = np.zeros(n_features), np.zeros(n_features)
        self._Z, self._D = np.zeros((n_features, rank), order="F"), np.zeros((n_features, rank), order="F")
        self._rewards = np.zeros(rank)

    def update(self, x: FloatArray, reward: float, x_next: FloatArray, *, discount: float, trace: float) -> None:
        """Learn from one transition."""
        self.z = trace * self.lambda_ * self.z + x
        self._Z[:, self._i], self._D[:, self._i], self._rewards[self._i] = self.z, x - discount * x_next, reward
        self._i += 1
        if self._i == self.rank:
            self._fold()

    def _fold(self) -> None:
        c, self._i = self.sigma.size, 0
        self.b += self._Z @ self._rewards
        UtZ, VtD = self.U.T @ self._Z, self.V.T @ self._D
        Q_Z, R_Z = np.linalg.qr(self._Z - self.U @ UtZ)
        Q_D, R_D = np.linalg.qr(self._D - self.V @ VtD)
        K = np.vstack([UtZ, R_Z]) @ np.vstack([VtD, R_D]).T
        K[np.arange(c), np.arange(c)] += self.sigma
        L, sigma, Rt = np.linalg.svd(K)
        L, self.sigma, R = L[:, : self.rank], sigma[: self.rank], Rt[: self.rank].T
        self.U = self.U @ L[:c] + Q_Z @ L[c:]
        self.V = self.V @ R[:c] + Q_D @ R[c:]

    def weights(self, rcond: float = 0.01) -> FloatArray:
        """A⁺b, without singular values below ``rcond`` times the largest."""
        kept = self.sigma > rcond * self.sigma.max(initial=0.0)
        w: FloatArray = self.V[:, kept] @ ((self.U[:, kept].T @ self.b) / self.sigma[kept])
        return w
