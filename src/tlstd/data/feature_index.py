"""Which features have been seen, and the row that each of them has in factors, matrices and tables of weights."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.file_format import Saved, State
from tlstd.core.growing import enlarged
from tlstd.data.kernels import sparse as kernels
from tlstd.errors import CapacityError

RowArray = NDArray[np.uint32]

Lookup: TypeAlias = "tuple[IntArray, FloatArray, NDArray[np.uint32] | NDArray[np.uint64], bool]"
"""Feature ids and values of a vector, and the table that has the rows of the ids, by hashing or not."""

_ALWAYS_DIRECT = 1 << 14
"""Number of features up to which all of them have a place in a table (64 KiB)."""

_MAX_ROWS = (1 << 32) - 2


class FeatureIndex:
    """Gives a row (0, 1, …) to each of ``n_features`` feature ids on its first appearance, in order: ``ids`` at once.

    Rows are found in an array with a place for each feature where that takes no more memory than a hash table of those
    that have a row, and in the hash table otherwise: 16 to 32 bytes for each of them, and twice that if there may be
    more than 2**32 features.

    Example
    -------
    >>> seen = FeatureIndex(70_000_000_001)
    >>> seen.insert(np.array([70_000_000_000, 4, 70_000_000_000]))
    >>> len(seen), seen.ids
    (2, array([70000000000,           4]))
    >>> seen.find(np.array([4, 5]))
    array([ 1, -1])
    """

    def __init__(self, n_features: int, ids: IntArray | None = None) -> None:
        self.n_features = n_features
        self.all_ids: IntArray = np.zeros(32, dtype=np.int64)
        self.counter: IntArray = np.zeros(1, dtype=np.int64)
        self._table: RowArray
        self._slots: NDArray[np.uint32] | NDArray[np.uint64]
        self._rebuild(64)
        if ids is not None:
            self.insert(ids)

    def __len__(self) -> int:
        return int(self.counter[0])

    @property
    def ids(self) -> IntArray:
        """The feature ids in order of their rows."""
        return self.all_ids[: len(self)]

    @property
    def arrays(self) -> tuple[RowArray, NDArray[np.uint32] | NDArray[np.uint64], IntArray, IntArray]:
        """What the kernels take and change in place: see :func:`tlstd.data.kernels.sparse.insert_ids`."""
        return self._table, self._slots, self.all_ids, self.counter

    def lookup(self, ids: IntArray, values: FloatArray) -> Lookup:
        """A sparse vector and where the rows of its features are found: see ``add_weights`` of the kernels."""
        return (ids, values, self._table, False) if self._table.size else (ids, values, self._slots, True)

    @property
    def table(self) -> tuple[NDArray[np.uint32] | NDArray[np.uint64], bool]:
        """What :func:`tlstd.classic.kernels.td.row_of` looks in, and whether that is by hashing."""
        return (self._table, False) if self._table.size else (self._slots, True)

    def reserve(self, n_new: int) -> None:
        """Make room for ``n_new`` further features, so that a kernel can insert them."""
        needed = min(len(self) + n_new, self.n_features)
        if needed > _MAX_ROWS:
            raise CapacityError(f"{needed} features would have a row: {_MAX_ROWS} is the largest number possible")
        if needed > self.all_ids.size:
            size = min(self.all_ids.size * 3 // 2, self.n_features, _MAX_ROWS)
            self.all_ids = enlarged(self.all_ids, max(needed, size))
        if not self._table.size and 4 * needed > self._slots.size:
            self._rebuild(1 << int(2 * needed - 1).bit_length())

    def _rebuild(self, size: int) -> None:
        """Make the index anew from the ids: ``size`` slots, or a place for each feature where that is smaller."""
        slots: NDArray[np.uint32] | NDArray[np.uint64] = np.zeros(2 * size, dtype=np.uint32)
        if self.n_features > 1 << 32:
            slots = np.zeros(2 * size, dtype=np.uint64)
        table = np.zeros(0, dtype=np.uint32)
        if self.n_features <= max(_ALWAYS_DIRECT, slots.nbytes // 4):
            slots, table = slots[:0].copy(), np.zeros(self.n_features, dtype=np.uint32)
        kernels.insert_ids((table, slots, np.empty_like(self.all_ids), np.zeros(1, dtype=np.int64)), self.ids, 0)
        self.__dict__.update(_slots=slots, _table=table)

    def mend(self) -> None:
        """Forget features whose insertion was interrupted."""
        self._rebuild(max(64, self._slots.size // 2))

    def count_with(self, ids: IntArray) -> int:
        """How many features would have a row if ``ids`` were inserted."""
        return len(self) + int(np.unique(ids[self.find(ids) < 0]).size)

    def insert(self, ids: IntArray) -> None:
        """Give a row to each of ``ids`` that has none, in order of first appearance."""
        done = kernels.insert_ids(self.arrays, ids, 0)
        while done < ids.size:
            self.reserve(1)
            done = kernels.insert_ids(self.arrays, ids, done)

    def find(self, ids: IntArray) -> IntArray:
        """Rows of ``ids``, which lie in [0, n_features); -1 where a feature was never seen."""
        rows = np.empty(ids.size, dtype=np.int64)
        kernels.find_ids(self._table, self._slots, ids, 1, rows)
        return rows

    def places(self, ids: IntArray) -> tuple[RowArray, int]:
        """One more than the rows of ``ids``, and how many have none: for tables whose row 0 stands for all of those."""
        places = np.empty(ids.size, dtype=np.uint32)
        return places, int(kernels.find_ids(self._table, self._slots, ids, 0, places))

    def state(self) -> State:
        """What :meth:`restore` takes: the ids; the index follows from them."""
        return {"ids": self.ids}

    def restore(self, saved: Saved) -> None:
        """Take over a saved state, if it can be one; only of fresh objects."""
        ids = saved.integers("ids", None, low=0, high=self.n_features - 1)
        self.insert(ids)
        if len(self) != ids.size:
            raise saved.error("ids", "has a feature twice")
