"""The basis of [U, S] found one vector after the other, for reading the solution while the buffer fills.

Vector j is sorted in by what came before it alone, so the basis of the first j vectors is that of the first j - 1 and
at most one direction more: it can be kept from read to read, and is the same to the bit whoever read what before. For
that, sums over the block are loops of fixed order, and tall vectors end where the vectors so far end, not where the
features seen by now do.
"""

from __future__ import annotations

import numpy as np

from tlstd.kernels import sparse as kernels
from tlstd.linalg.arrays import enlarged
from tlstd.linalg.basis import DEPENDENT, GRAM_RESOLUTION, VANISHING, Basis
from tlstd.linalg.buffered_vectors import SparseVectors
from tlstd.types import FloatArray, IntArray


class GrowingBasis:
    """A :class:`Basis` of U by a block of sparse vectors that grows with the block.

    Parameters
    ----------
    U : (n_U, r), orthonormal columns
    block : the vectors; those already sorted in must not change
    """

    def __init__(self, U: FloatArray, block: SparseVectors) -> None:
        self.U, self.block = U, block
        self.count = 0  # vectors sorted in
        self._n = U.shape[0]  # rows that they reach
        self._picked: IntArray = np.zeros(0, dtype=np.int64)
        self._n_picked = 0
        self._on_U: FloatArray = np.zeros((0, U.shape[1]))  # coordinates, a row per vector
        self._on_Q: FloatArray = np.zeros((0, 0))
        self._on_E: FloatArray = np.zeros((0, 0))
        self._E: FloatArray = np.zeros((0, 0))

    def basis(self, scratch: FloatArray, n: int) -> Basis:
        """The basis of U and all vectors that the block has by now, over n rows."""
        block, first = self.block, self.count
        if first < block.count:
            self._reserve(min(block.norms.size, max(64, 2 * block.count)))
            self._on_U[first : block.count] = block.products("factor", self.U)[first:]
            gram, same_as = block.gram(n)
            for j in range(first, block.count):
                self._sort_in(j, int(same_as[j]), gram, scratch)
            self.count = block.count
        k, m = self.count, self._n_picked
        self._E = enlarged(self._E, n)
        coordinates = np.hstack([self._on_U[:k], self._on_Q[:k, :m], self._on_E[:k]]).T
        return Basis(self.U, block, self._picked[:m].copy(), coordinates, n, self._E)

    def _reserve(self, size: int) -> None:
        if size > self._picked.size:
            self._picked = enlarged(self._picked, size)
            self._on_U = enlarged(self._on_U, size)
            self._on_Q = enlarged(self._on_Q, size, size)
            self._on_E = enlarged(self._on_E, size)

    def _sort_in(self, j: int, same_as: int, gram: FloatArray, scratch: FloatArray) -> None:
        block = self.block
        if same_as != j:
            for coordinates in (self._on_U, self._on_Q, self._on_E):
                coordinates[j] = coordinates[same_as]
            return
        rows = block.rows[block.indptr[j] : block.indptr[j + 1]]
        self._n = max(self._n, int(rows.max(initial=-1)) + 1)
        if j == 0 and block.head is not None:
            self._n = max(self._n, block.head.size)
        if self._on_E.shape[1]:
            n, e = self._E.shape
            kernels.dots(block.indptr, block.rows, block.vals, j, j + 1, self._E, n, e, self._on_E)
        m = self._n_picked
        left = kernels.sort_in(j, self._picked, m, gram, self._on_U, self._on_E, self._on_Q)
        if block.norms[j] == 0.0:
            return
        on_S = self._on_vectors(self._on_Q[j, :m])
        # the direction is (s - S_J on_S - ...)/√left: an error ε of inner products is multiplied by its square length
        if left > GRAM_RESOLUTION**2 * (1.0 + float(on_S @ on_S)) and self._size < self._n:
            self._on_Q[j, m] = np.sqrt(left)
            self._picked[m] = j
            self._n_picked += 1
        else:
            self._measure(j, on_S, scratch)

    @property
    def _size(self) -> int:
        return int(self.U.shape[1] + self._n_picked + self._on_E.shape[1])

    def _measure(self, j: int, on_S: FloatArray, scratch: FloatArray) -> None:
        """Form what is left of vector j; if it is more than rounding, it is a new direction."""
        block = self.block
        vector, m = np.array([j]), self._n_picked
        head_takes_part = block.head is not None and (j == 0 or bool(on_S[self._picked[:m] == 0].any()))
        if not (head_takes_part or self._on_U[j].any() or self._on_E[j].any()):  # non-zeros only
            residual = np.empty(1)
            vectors = block.indptr, block.rows, block.vals
            kernels.combination_residuals(*vectors, vector, self._picked[:m], on_S[:, None], scratch, residual)
            if residual[0] <= DEPENDENT:
                return
        self._E = enlarged(self._E, self._n)
        x = block.columns(vector, self._n)[:, 0]
        self._subtract(x, self._on_U[j], self._on_Q[j, :m], self._on_E[j])
        if np.sqrt(x @ x) <= DEPENDENT:
            return
        x = block.columns(vector, self._n)[:, 0]
        coordinates = self._project_away(x)
        again = self._project_away(x)
        u, q, e = (a + b for a, b in zip(coordinates, again, strict=True))
        length = float(np.sqrt(x @ x))
        if length > VANISHING and self._size < self._n:
            x /= length
            again = self._project_away(x)
            u, q, e = (a + length * b for a, b in zip((u, q, e), again, strict=True))
            rest = float(np.sqrt(x @ x))
            n_rows, n_E = self._E.shape
            self._E = enlarged(self._E, n_rows, n_E + 1)
            self._E[: x.size, n_E] = x / rest
            self._on_E = enlarged(self._on_E, self._on_E.shape[0], n_E + 1)
            e = np.append(e, length * rest)
        self._on_U[j], self._on_Q[j, :m], self._on_E[j] = u, q, e

    def _project_away(self, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Coordinates of x (n,) in U, Q and E; x loses them, in place."""
        u: FloatArray = self.U.T @ x[: self.U.shape[0]]
        e: FloatArray = self._E[: self._n].T @ x
        q = np.zeros(self._n_picked)
        products = self.block.dots(x[:, None])[self._picked[: q.size], 0]
        kernels.project_on_picked(self._picked, products, u, e, self._on_U, self._on_E, self._on_Q, q)
        self._subtract(x, u, q, e)
        return u, q, e

    def _subtract(self, x: FloatArray, u: FloatArray, q: FloatArray, e: FloatArray) -> None:
        """x (n,) -= U u + Q q + E e, in place."""
        on_S = self._on_vectors(q)
        u, e = u.copy(), e.copy()
        kernels.subtract_picked(self._picked, on_S, self._on_U, u)
        kernels.subtract_picked(self._picked, on_S, self._on_E, e)
        x[: self.U.shape[0]] -= self.U @ u
        if e.size:
            x -= self._E[: self._n] @ e
        self.block.add_to(x[:, None], self._picked[: q.size], -on_S[:, None])

    def _on_vectors(self, q: FloatArray) -> FloatArray:
        """Coefficients on S_J of Q q."""
        on_S = q.copy()
        kernels.back_substitute(self._picked, self._on_Q, on_S)
        return on_S
