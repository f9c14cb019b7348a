"""Sets of vectors waiting to be folded into low-rank factors.

Both kinds hold unit vectors S (one per sample, as columns of an n × k matrix that is never formed for the sparse
kind) and their lengths, and offer the same few operations. Vector 0 may be a dense *head*: the trace that reaches
into the block from before it.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from tlstd.kernels import sparse as kernels
from tlstd.types import FloatArray, IntArray


class SparseBlock:
    """Up to ``capacity`` sparse vectors in row coordinates."""

    def __init__(self, capacity: int) -> None:
        self.indptr: IntArray = np.zeros(capacity + 1, dtype=np.int64)
        self.rows: IntArray = np.zeros(0, dtype=np.int64)
        self.vals: FloatArray = np.zeros(0)
        self.norms: FloatArray = np.zeros(capacity)
        self.count = 0
        self.head: FloatArray | None = None
        self._gram: FloatArray = np.zeros((capacity, capacity))
        self._n_gram = 0
        self._products: dict[str, tuple[FloatArray, int]] = {}

    @property
    def arrays(self) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
        """What the kernels write to."""
        return self.indptr, self.rows, self.vals, self.norms

    def reserve(self, nnz: int) -> None:
        """Make room for ``nnz`` further entries."""
        used = int(self.indptr[self.count])
        if used + nnz > self.rows.size:
            size = max(used + nnz, 3 * self.rows.size // 2)
            rows, vals = np.zeros(size, dtype=np.int64), np.zeros(size)
            rows[:used], vals[:used] = self.rows[:used], self.vals[:used]
            self.rows, self.vals = rows, vals

    def clear(self) -> None:
        """Forget all vectors; keep the memory."""
        self.count = self._n_gram = 0
        self._products.clear()
        self.indptr[0] = 0
        self.head = None

    def set_head(self, head: FloatArray) -> None:
        """Replace vector 0 by a dense one."""
        norm = float(np.linalg.norm(head))
        self.head = head / norm if norm > 0.0 else head
        self.norms[0] = norm

    def sparse_first(self, n: int) -> FloatArray:
        """Vector 0 as it was appended, unit length times its norm, as a dense array."""
        x = np.zeros(n)
        x[self.rows[: self.indptr[1]]] = self.vals[: self.indptr[1]] * self.norms[0]
        return x

    def gram(self, scratch: FloatArray) -> FloatArray:
        """SᵀS, (k, k). Only the products of vectors that are new since the last call are computed."""
        if self._n_gram < self.count:
            kernels.gram(self.indptr, self.rows, self.vals, self._n_gram, self.count, scratch, self._gram)
            if self.head is not None:
                column = self._raw_dots(self.head[:, None], self._n_gram)[:, 0]
                if self._n_gram == 0:
                    column[0] = float(self.head @ self.head)
                new = slice(self._n_gram, self.count)
                self._gram[0, new] = self._gram[new, 0] = column[new]
            self._n_gram = self.count
        return self._gram[: self.count, : self.count]

    def products(self, name: str, B: FloatArray) -> FloatArray:
        """SᵀB, (k, m), as :meth:`dots`, for a B that stays the same until :meth:`clear`; once per vector."""
        out, known = self._products.get(name, (np.zeros((self.norms.size, B.shape[1])), 0))
        if known < self.count:
            out[known : self.count] = self.dots(B, known)[known:]
            self._products[name] = out, self.count
        return out[: self.count]

    def dots(self, B: FloatArray, first: int = 0) -> FloatArray:
        """SᵀB, (k, m); rows that B does not have count as zero. Vectors before ``first`` are left out (zero)."""
        out = self._raw_dots(B, first)
        if self.head is not None and first == 0:
            rows = min(self.head.size, B.shape[0])
            out[0] = self.head[:rows] @ B[:rows]
        return out

    def _raw_dots(self, B: FloatArray, first: int) -> FloatArray:
        out = np.zeros((self.count, B.shape[1]))
        kernels.dots(self.indptr, self.rows, self.vals, first, self.count, B, B.shape[0], B.shape[1], out)
        return out

    def add_to(self, Y: FloatArray, picked: IntArray, M: FloatArray) -> None:
        """Y += S[:, picked] M, in place."""
        if self.head is not None:
            for i in np.flatnonzero(picked == 0):
                Y[: self.head.size] += np.multiply.outer(self.head, M[i])
            M, picked = M[picked != 0], picked[picked != 0]
        kernels.scatter(self.indptr, self.rows, self.vals, picked, M, M.shape[1], Y)

    def columns(self, picked: IntArray, n: int) -> FloatArray:
        """S[:, picked] as a dense (n, len(picked)) array."""
        Y = np.zeros((n, picked.size))
        self.add_to(Y, picked, np.eye(picked.size))
        return Y

    def overlaps(self, x_rows: IntArray, x_vals: FloatArray, scratch: FloatArray) -> FloatArray:
        """Sᵀx for one sparse x, (k,)."""
        out = np.zeros(self.count)
        kernels.overlaps(self.indptr, self.rows, self.vals, self.count, x_rows, x_vals, scratch, out)
        return out


class DenseBlock:
    """Up to ``capacity`` dense vectors of n entries, one per row of a matrix."""

    def __init__(self, capacity: int, n: int) -> None:
        self.matrix: FloatArray = np.zeros((capacity, n))
        self.norms: FloatArray = np.zeros(capacity)
        self.count = 0

    def append(self, vectors: FloatArray) -> None:
        """Copy the rows of ``vectors`` in, scaled to unit length."""
        stop = self.count + vectors.shape[0]
        target = self.matrix[self.count : stop]
        largest = np.abs(vectors).max(axis=1)
        vanishing = largest < 1e-150  # squares of such entries underflow, and so would every product with them
        largest[vanishing] = 1.0
        np.divide(vectors, largest[:, None], out=target)
        target[vanishing] = 0.0
        lengths = np.linalg.norm(target, axis=1)
        self.norms[self.count : stop] = lengths * largest
        lengths[vanishing] = 1.0
        target /= lengths[:, None]
        self.count = stop

    def clear(self) -> None:
        """Forget all vectors; keep the memory."""
        self.count = 0

    def set_head(self, head: FloatArray) -> None:
        """Replace vector 0."""
        norm = float(np.linalg.norm(head))
        self.matrix[0] = head / norm if norm > 0.0 else head
        self.norms[0] = norm

    def sparse_first(self, n: int) -> FloatArray:
        """Vector 0 as it was appended, times its norm."""
        first: FloatArray = self.matrix[0, :n] * self.norms[0]
        return first

    def products(self, name: str, B: FloatArray) -> FloatArray:
        """SᵀB, (k, m). (Dense products are not worth keeping.)"""
        del name
        return self.dots(B)

    def dots(self, B: FloatArray) -> FloatArray:
        """SᵀB, (k, m)."""
        out: FloatArray = self.matrix[: self.count, : B.shape[0]] @ B
        return out

    def add_to(self, Y: FloatArray, picked: IntArray, M: FloatArray) -> None:
        """Y += S[:, picked] M, in place."""
        Y += self.matrix[picked].T @ M

    def columns(self, picked: IntArray, n: int) -> FloatArray:
        """S[:, picked] as a (n, len(picked)) array."""
        columns: FloatArray = self.matrix[picked, :n].T.copy()
        return columns


Block: TypeAlias = SparseBlock | DenseBlock
