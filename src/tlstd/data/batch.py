"""One form for what estimators are given: raw columns of one or many transitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from tlstd.core.arrays import FloatArray, IntArray, locked
from tlstd.data.kernels import sparse as kernels
from tlstd.data.kernels import transitions as checks
from tlstd.data.transitions import Transition, Transitions
from tlstd.data.vectors import SparseVector, Vector

CSRArrays: TypeAlias = tuple[IntArray, IntArray, FloatArray]
Rows: TypeAlias = "CSRArrays | FloatArray"
Number = TypeVar("Number", np.float64, np.int64)

DENSE_FRACTION = 0.25
"""Share of non-zero features from which vectors are kept as dense rows."""


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Transitions ``i`` from row ``rows[i]`` of ``x`` to row ``next_rows[i]`` of ``x_next``; rewards are (N, m).

    Two things, on purpose: :class:`~tlstd.data.transitions.Transitions` is what users have, and is checked, sliced,
    pickled and printed. A batch is what the engine works on: the raw arrays that kernels take, of one or of many
    transitions, never checked, made by estimators only, and forgotten when they have learned from it.
    """

    x: Rows
    rows: IntArray
    x_next: Rows
    next_rows: IntArray
    rewards: FloatArray
    discounts: FloatArray
    trace_discounts: FloatArray
    rhos: FloatArray

    @classmethod
    def from_transition(cls, t: Transition) -> Batch:
        """A batch of one, copied: vectors are read-only. A dense and a sparse side are both made sparse."""
        if isinstance(t.x, np.ndarray) and isinstance(t.x_next, np.ndarray):
            x: Rows = plain(t.x[None, :])
            x_next: Rows = plain(t.x_next[None, :])
        else:
            x, x_next = _one_row(t.x), _one_row(t.x_next)
        zero = np.zeros(1, dtype=np.int64)
        reward = np.array([[t.reward]]) if isinstance(t.reward, float) else plain(t.reward[None, :])
        numbers = np.array([t.discount, t.trace_discount, t.rho])
        return cls(x, zero, x_next, zero, reward, numbers[:1], numbers[1:2], numbers[2:])

    @classmethod
    def from_transitions(cls, t: Transitions) -> Batch:
        """All columns; features are not copied, other columns only where they are strided or read-only."""
        stores = (t.store,) if t.store is t.next_store else (t.store, t.next_store)
        sides: list[Rows] = [
            lent(m) if isinstance(m, np.ndarray) else (lent(m.indptr), lent(m.indices), lent(m.data)) for m in stores
        ]
        if isinstance(sides[0], tuple) != isinstance(sides[-1], tuple):
            sides = [_as_csr(side) for side in sides]
        rewards = t.rewards[:, None] if t.rewards.ndim == 1 else t.rewards
        columns: Any = (t.rows, t.next_rows, rewards, t.discounts, t.trace_discounts, t.rhos)
        rows, next_rows, *numbers = [c if c.flags.carray else c.copy() for c in columns]  # see ``plain``
        return cls(sides[0], rows, sides[-1], next_rows, *numbers)

    def __len__(self) -> int:
        return self.rows.size

    def part(self, start: int, stop: int) -> Batch:
        """Transitions ``start:stop``, as views."""
        if start == 0 and stop >= self.rows.size:
            return self
        s = slice(start, stop)
        columns = (self.rewards[s], self.discounts[s], self.trace_discounts[s], self.rhos[s])
        return Batch(self.x, self.rows[s], self.x_next, self.next_rows[s], *columns)

    def sparse(self) -> tuple[CSRArrays, IntArray, CSRArrays, IntArray]:
        """Both sides as CSR arrays with the rows to take from them. Dense rows are scanned for their non-zeros."""
        if isinstance(self.x, tuple) and isinstance(self.x_next, tuple):
            return self.x, self.rows, self.x_next, self.next_rows
        every = np.arange(len(self))
        x = kernels.dense_to_csr(self.x, self.rows)
        return x, every, kernels.dense_to_csr(self.x_next, self.next_rows), every

    def dense(self, ids: IntArray) -> tuple[FloatArray, FloatArray]:
        """Both sides as (N, len(ids)) arrays with the columns of the features ``ids``."""
        return _dense(self.x, self.rows, ids), _dense(self.x_next, self.next_rows, ids)

    def next_vector(self, n_features: int) -> Vector:
        """x_next of the first transition."""
        if not isinstance(self.x_next, tuple):
            vector: FloatArray = self.x_next[self.next_rows[0]]
            return vector
        indices, values = row_arrays(self.x_next, self.next_rows[0])
        return SparseVector._trusted(indices.copy(), values.copy(), n_features)

    def lengths_if_sound(self, n_features: int) -> FloatArray | None:
        """Lengths of the vectors x if these are sparse transitions that all are as they should be, or None.

        One pass over what is in use. After None, ``Transitions.check`` has to say what is wrong, if anything is.
        """
        if not (isinstance(self.x, tuple) and isinstance(self.x_next, tuple)):
            return None
        lengths = np.empty(self.rows.size)
        columns = (self.rewards, self.discounts, self.trace_discounts, self.rhos)
        sides = (self.x, self.rows, self.x_next, self.next_rows, self.x is self.x_next)
        return lengths if checks.are_sound(*sides, columns, n_features, lengths) else None

    def follow_trace(
        self, lambda_: float, bound: float, limit: float, lengths: FloatArray | None = None
    ) -> tuple[int, float, float]:
        """First step at which the trace's length could exceed ``limit`` (-1 if none), its bound after and at most.

        ``lengths`` are those of the vectors x, if they are known.
        """
        decays = self.trace_discounts * lambda_
        lengths = self.lengths() if lengths is None else lengths
        return checks.follow_lengths(lengths, decays, self.rhos, bound, limit)  # type: ignore[no-any-return]

    def lengths(self) -> FloatArray:
        """Lengths of the vectors x."""
        lengths = np.empty(len(self))
        if isinstance(self.x, tuple):
            checks.sparse_lengths(self.x[0], self.x[2], self.rows, lengths)
        else:
            checks.dense_lengths(self.x, self.rows, lengths)
        return lengths

    def is_dense(self, n_features: int) -> bool:
        """Whether the first x has so many non-zeros that vectors are better kept as dense rows."""
        return self.part(0, 1).most_active() >= max(2.0, DENSE_FRACTION * n_features)

    def most_active(self) -> int:
        """Largest number of non-zeros among the vectors x."""
        csr, rows, _, _ = self.sparse()
        return int((csr[0][rows + 1] - csr[0][rows]).max(initial=0))

    def ids(self) -> IntArray:
        """Feature ids of all non-zeros of both sides, with repeats; those of terminal next rows do not count."""
        x, rows, x_next, next_rows = self.sparse()
        return np.concatenate([entries(x, rows), entries(x_next, next_rows[self.discounts != 0.0])])

    def ids_in_order(self) -> IntArray:
        """The same step by step, so that rows for new features do not depend on how a stream is cut."""
        x, rows, x_next, next_rows = self.sparse()
        counts = x[0][rows + 1] - x[0][rows], (x_next[0][next_rows + 1] - x_next[0][next_rows]) * (self.discounts != 0)
        steps = np.concatenate([np.repeat(np.arange(len(self)), count) for count in counts])
        ordered: IntArray = self.ids()[np.argsort(steps, kind="stable")]
        return ordered


def entries(csr: CSRArrays, picked: IntArray) -> IntArray:
    """Column indices of the picked rows' entries, one row after the other."""
    return packed(csr, picked)[1]


def packed(csr: CSRArrays, picked: IntArray) -> CSRArrays:
    """The picked rows, one after the other, as CSR arrays of their own."""
    size = checks.entries(csr[0], picked)
    indptr, indices, data = np.zeros(picked.size + 1, dtype=np.int64), np.empty(size, dtype=np.int64), np.empty(size)
    checks.copy_picked(*csr, picked, indptr, indices, data, 0)
    return indptr, indices, data


def row_arrays(csr: CSRArrays, row: int) -> tuple[IntArray, FloatArray]:
    """Indices and values of one row, as views."""
    indptr, indices, data = csr
    entries = slice(indptr[row], indptr[row + 1])
    return indices[entries], data[entries]


def vector_arrays(x: Vector) -> tuple[IntArray, FloatArray]:
    """Indices and values of the non-zeros of a vector, read-only: kernels are compiled for one kind of array."""
    if isinstance(x, SparseVector):
        return x.indices, x.values
    indices = np.flatnonzero(x)
    return locked(indices), locked(x[indices])


class _Lender:
    """Whoever makes an array of it gets the memory of another, without its lock."""

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array  # which lives as long as the view does
        self.__array_interface__ = {**array.__array_interface__, "data": (array.ctypes.data, False)}


def lent(array: NDArray[Number]) -> NDArray[Number]:
    """The array, or a view of a read-only one that is not, for kernels that only read: no copy, no other kind."""
    return array if array.flags.writeable else np.asarray(_Lender(array))


def plain(column: NDArray[Number]) -> NDArray[Number]:
    """The column, or a copy if it is strided or read-only: every loop would have to be compiled once more for it."""
    return column if column.flags.carray else column.copy()


def _one_row(x: Vector) -> CSRArrays:
    indices, values = vector_arrays(x)
    return np.array([0, indices.size]), plain(indices), plain(values)


def _as_csr(rows: Rows) -> CSRArrays:
    if isinstance(rows, tuple):
        return rows
    arrays: CSRArrays = kernels.dense_to_csr(rows, np.arange(rows.shape[0]))
    return arrays


def _dense(rows: Rows, picked: IntArray, ids: IntArray) -> FloatArray:
    if isinstance(rows, tuple):
        indptr, indices, data = rows
        out = np.zeros((picked.size, ids.size))
        position = np.empty(ids.size, dtype=np.int64)
        position[ids] = np.arange(ids.size)
        for i, row in enumerate(picked):
            entries = slice(indptr[row], indptr[row + 1])
            out[i, position[indices[entries]]] = data[entries]
        return out
    taken: FloatArray = rows[picked]
    in_order = picked.size > 1 and np.array_equal(ids, np.arange(ids.size))  # a look that one row does not pay for
    return taken if in_order else taken[:, ids]
