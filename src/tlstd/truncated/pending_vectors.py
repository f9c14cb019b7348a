"""Sets of vectors waiting to be folded into the factors.

Both kinds hold unit vectors S (one per sample, as columns of an n × k matrix that is never formed for the sparse
kind) and their lengths, and offer the same few operations. Vector 0 may be a dense *head*: the trace that reaches
into the block from before it.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.file_format import Saved, State
from tlstd.core.growing import enlarged, slices
from tlstd.data.feature_index import Lookup
from tlstd.data.kernels import sparse as kernels

_LONGEST = 1e110
"""Length that no vector reaches whose entries are within the limits of the inputs."""

_UNIT = 1e-10
"""Deviation from length one that no saved unit vector has."""


_FEWEST = 512  # entries for which there is room: the first samples should not make more at every step
_NO_HEAD: FloatArray = np.zeros(0)


class SparseVectors:
    """Up to ``capacity`` sparse vectors in row coordinates."""

    def __init__(self, capacity: int) -> None:
        self.indptr: IntArray = np.zeros(capacity + 1, dtype=np.int64)
        self.rows: IntArray = np.zeros(0, dtype=np.int64)
        self.vals: FloatArray = np.zeros(0)
        self.norms: FloatArray = np.zeros(capacity)
        self.count = 0
        self.head: FloatArray | None = None
        self.gram = Gram()
        self._products: dict[str, tuple[FloatArray, int]] = {}

    @property
    def arrays(self) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
        """What the kernels write to."""
        return self.indptr, self.rows, self.vals, self.norms

    def reserve(self, nnz: int) -> None:
        """Make room for ``nnz`` further entries."""
        needed = int(self.indptr[self.count]) + nnz
        if needed > self.rows.size:
            size = max(needed, self.rows.size * 3 // 2, _FEWEST)
            self.__dict__.update(rows=enlarged(self.rows, size), vals=enlarged(self.vals, size))

    def emptied(self) -> SparseVectors:
        """An empty block with the same memory; this one must not be used any more."""
        other = SparseVectors(0)
        other.indptr, other.rows, other.vals, other.norms = self.arrays
        other.gram = self.gram.emptied(self)
        return other

    def mend(self, count: int) -> None:
        """Be the first ``count`` vectors, with nothing computed from them."""
        self.__dict__.update(count=count, head=self.head if count else None, gram=Gram(), _products={})

    def set_head(self, head: FloatArray) -> None:
        """Replace vector 0 by a dense one."""
        norm = float(np.linalg.norm(head))
        self.head = head / norm if norm > 0.0 else head
        self.norms[0] = norm

    def first_vector(self, n: int) -> FloatArray:
        """Vector 0 as it was appended, unit length times its norm, as a dense array."""
        x = np.zeros(n)
        x[self.rows[: self.indptr[1]]] = self.vals[: self.indptr[1]] * self.norms[0]
        return x

    def nnz(self) -> int:
        """Number of entries of all vectors, without the head."""
        return int(self.indptr[self.count])

    def products(self, name: str, B: FloatArray) -> FloatArray:
        """SᵀB, (k, m), as :meth:`dots`, for a B that stays the same while the buffer fills; once per vector."""
        out, known = self._products.get(name, (np.zeros((0, B.shape[1])), 0))
        if out.shape[0] < self.count:
            out = enlarged(out, min(self.norms.size, 2 * self.count), B.shape[1])
        if known < self.count:
            out[known : self.count] = self.dots(B, known)[known:]
            self._products[name] = out, self.count
        return out[: self.count]

    def dots(self, B: FloatArray, first: int = 0) -> FloatArray:
        """SᵀB, (k, m); rows that B does not have count as zero. Vectors before ``first`` are left out (zero)."""
        out = np.zeros((self.count, B.shape[1]))
        kernels.dots(self.indptr, self.rows, self.vals, first, self.count, B, B.shape[0], B.shape[1], out)
        if self.head is not None and first == 0:
            rows = min(self.head.size, B.shape[0])
            out[0] = self.head[:rows] @ B[:rows]
        return out

    def add_to(self, Y: FloatArray, picked: IntArray, M: FloatArray) -> None:
        """Y += S[:, picked] M, in place."""
        if self.head is not None:
            is_head = picked == 0
            if is_head.any():
                coefficients = M[is_head].sum(axis=0)
                for rows in slices(self.head.size, 2048):
                    Y[rows] += np.multiply.outer(self.head[rows], coefficients)
            M, picked = M[~is_head], picked[~is_head]
        kernels.scatter(self.indptr, self.rows, self.vals, picked, M, M.shape[1], Y)

    def columns(self, picked: IntArray, n: int) -> FloatArray:
        """S[:, picked] as a dense (n, len(picked)) array."""
        Y = np.zeros((n, picked.size))
        self.add_to(Y, picked, np.eye(picked.size))
        return Y

    def add_value(self, x: Lookup, picked: IntArray, M: FloatArray, scratch: FloatArray, out: FloatArray) -> None:
        """out (m,) += xᵀ S[:, picked] M for one sparse x, in place."""
        head = _NO_HEAD if self.head is None else self.head
        kernels.add_combined(*x, self.indptr, self.rows, self.vals, head, picked, M, scratch, out)

    def widen(self, capacity: int) -> None:
        """Make room for ``capacity`` vectors in all."""
        self.__dict__.update(indptr=enlarged(self.indptr, capacity + 1), norms=enlarged(self.norms, capacity))

    def state(self) -> State:
        """What :meth:`restore` takes."""
        used = self.nnz()
        return {
            "indptr": self.indptr[: self.count + 1],
            "rows": self.rows[:used],
            "vals": self.vals[:used],
            "norms": self.norms[: self.count],
            "head": np.zeros(0) if self.head is None else self.head,
        }

    @classmethod
    def restore(cls, saved: Saved, count: int, n: int, *, has_head: bool = False) -> SparseVectors:
        """A block of ``count`` vectors over ``n`` rows from a saved state, if it can be one; with no room for more."""
        self = cls(count)
        rows = saved.integers("rows", None, low=0, high=n - 1)
        indptr = saved.integers("indptr", count + 1, low=0, high=rows.size)
        if indptr[0] != 0 or indptr[-1] != rows.size or (indptr[1:] < indptr[:-1]).any():
            raise saved.error("indptr", f"does not rise from 0 to {rows.size}")
        self.indptr, self.rows, self.count = indptr, rows, count
        self.vals = saved.floats("vals", rows.size, low=-2.0, high=2.0)
        self.norms = saved.floats("norms", count, low=0.0, high=_LONGEST)
        vector = np.repeat(np.arange(count), np.diff(indptr))
        if np.unique(vector * n + rows).size != rows.size:
            raise saved.error("rows", "has a row twice in one vector")
        lengths = np.sqrt(np.bincount(vector, weights=self.vals**2, minlength=count))
        if (np.abs(lengths[lengths > 0.0] - 1.0) > _UNIT).any():
            raise saved.error("vals", "has a vector that is not of length one")
        head = saved.floats("head", None, low=-2.0, high=2.0)
        if not (0 < head.size <= n if has_head else head.size == 0):
            raise saved.error("head", f"has {head.size} entries where {n} features were seen")
        self.head = head if has_head else None
        return self


class DenseVectors:
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
        lengths = np.sqrt((target * target).sum(axis=1))  # as NumPy's norm, which takes twice as long for one row
        self.norms[self.count : stop] = lengths * largest
        lengths[vanishing] = 1.0
        target /= lengths[:, None]
        self.count = stop

    def emptied(self) -> DenseVectors:
        """An empty block with the same memory; this one must not be used any more."""
        other = DenseVectors(0, 0)
        other.matrix, other.norms = self.matrix, self.norms
        return other

    def mend(self, count: int) -> None:
        """Be the first ``count`` vectors."""
        self.count = count

    def set_head(self, head: FloatArray) -> None:
        """Replace vector 0."""
        norm = float(np.linalg.norm(head))
        self.matrix[0] = head / norm if norm > 0.0 else head
        self.norms[0] = norm

    def first_vector(self, n: int) -> FloatArray:
        """Vector 0 as it was appended, times its norm."""
        first: FloatArray = self.matrix[0, :n] * self.norms[0]
        return first

    def nnz(self) -> int:
        """Number of entries of all vectors that are not zero."""
        return int(np.count_nonzero(self.matrix[: self.count]))

    def products(self, name: str, B: FloatArray) -> FloatArray:
        """SᵀB, (k, m). (Dense products are not worth keeping.)"""
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

    def widen(self, capacity: int) -> None:
        """Make room for ``capacity`` vectors in all."""
        matrix = enlarged(self.matrix, capacity)
        self.__dict__.update(matrix=matrix, norms=enlarged(self.norms, capacity))

    def state(self) -> State:
        """What :meth:`restore` takes."""
        return {"matrix": self.matrix[: self.count], "norms": self.norms[: self.count]}

    @classmethod
    def restore(cls, saved: Saved, count: int, n: int) -> DenseVectors:
        """A block of ``count`` vectors of ``n`` entries from a saved state, if it can be one; with no room for more."""
        self = cls(0, n)
        self.matrix = saved.floats("matrix", count, n, low=-2.0, high=2.0)
        self.norms = saved.floats("norms", count, low=0.0, high=_LONGEST)
        self.count = count
        lengths = np.linalg.norm(self.matrix, axis=1)
        if (np.abs(lengths[lengths > 0.0] - 1.0) > _UNIT).any():
            raise saved.error("matrix", "has a vector that is not of length one")
        return self


PendingVectors: TypeAlias = SparseVectors | DenseVectors


class Gram:
    """Inner products of sparse vectors with each other, and which of them are equal; computed once per vector."""

    def __init__(self) -> None:
        none = np.zeros(0, dtype=np.int64)
        self._matrix: FloatArray = np.zeros((0, 0))
        self._n_known = 0
        # for each row the last entry in it, for each entry the one before it in its row, and its vector
        self._lists = none, none, none
        self._same_as: IntArray = none
        self._repeats: IntArray = none  # a hash table

    def emptied(self, vectors: SparseVectors) -> Gram:
        """An empty one with the same memory."""
        other = Gram()
        other._matrix, other._same_as, other._repeats = self._matrix, self._same_as, self._repeats
        other._lists = self._lists
        if self._n_known:
            other._lists[0][vectors.rows[: vectors.indptr[self._n_known]]] = -1
        other._repeats[:] = -1
        return other

    def of(self, vectors: SparseVectors, n: int) -> tuple[FloatArray, IntArray]:
        """SᵀS, (k, k), of vectors over n rows, and for each vector the first that equals it, itself if there is none.

        Only what is new since the last call is computed.
        """
        known, count, arrays = self._n_known, vectors.count, (vectors.indptr, vectors.rows, vectors.vals)
        if known < count:
            self._find_repeats(vectors)
            last, previous, owner = self._lists
            if last.size < n or owner.size < vectors.rows.size:
                size = vectors.rows.size
                self._lists = _lengthened(last, n), _lengthened(previous, size), _lengthened(owner, size)
            if self._matrix.shape[0] < count:
                size = min(vectors.norms.size, 2 * count)
                self._matrix = enlarged(self._matrix[:known, :known], size, size)
            kernels.gram(arrays, self._same_as, known, count, self._lists, self._matrix)
            if vectors.head is not None:
                column = vectors.dots(vectors.head[:, None], known)[:, 0]
                if known == 0:
                    column[0] = float(vectors.head @ vectors.head)
                self._matrix[0, known:count] = self._matrix[known:count, 0] = column[known:]
            self._n_known = count
        return self._matrix[:count, :count], self._same_as[:count]

    def _find_repeats(self, vectors: SparseVectors) -> None:
        """Say of each vector which is the first that equals it."""
        first, size = self._n_known, vectors.norms.size
        if self._repeats.size < 2 * size:
            self._repeats = np.full(1 << (2 * size).bit_length(), -1, dtype=np.int64)
            first = 0
        if self._same_as.size < size:
            self._same_as = _lengthened(self._same_as, size)
        if first == 0 and vectors.head is not None:  # vector 0 is another one than its entries
            self._same_as[0] = 0
            first = 1
        arrays = vectors.indptr, vectors.rows, vectors.vals
        kernels.find_repeats(arrays, first, vectors.count, self._repeats, self._same_as)


def _lengthened(array: IntArray, size: int) -> IntArray:
    """The array itself if it is long enough, otherwise a longer copy, filled up with −1."""
    return array if array.size >= size else enlarged(array, size + size // 3 + _FEWEST // 8, fill=-1)
