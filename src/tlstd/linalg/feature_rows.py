"""The row that each feature has in a table of weights, found in one look."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tlstd.container import Saved, State
from tlstd.errors import CapacityError
from tlstd.kernels import td as kernels
from tlstd.types import IntArray

RowArray = NDArray[np.uint32]

_ALWAYS_DIRECT = 1 << 14
"""Number of features up to which all of them have a place in a table (64 KiB)."""

_MAX_ROWS = (1 << 32) - 2


class FeatureRows:
    """Gives a row (1, 2, …) to each feature id; row 0 stands for all features that have none.

    Rows are found in an array with a place for each of the ``n_features`` features where that takes no more memory than
    a hash table of those that have a row, and in the hash table otherwise: 16 to 32 bytes for each of them, and twice
    that if there may be more than 2**32 features.

    Example
    -------
    >>> rows = FeatureRows(70_000_000_001)
    >>> rows.insert(np.array([70_000_000_000, 4, 70_000_000_000]))
    >>> len(rows), rows.ids
    (2, array([          4, 70000000000]))
    >>> rows.find(np.array([4, 5, 70_000_000_000]))[0]
    array([1, 0, 2], dtype=uint32)
    """

    def __init__(self, n_features: int) -> None:
        self.n_features = n_features
        self._count = 0
        self._ids: IntArray = np.zeros(32, dtype=np.int64)
        self._row_of: RowArray | None
        self._slots: NDArray[np.uint32] | NDArray[np.uint64]
        self._rebuild(64)

    def __len__(self) -> int:
        return self._count

    @property
    def ids(self) -> IntArray:
        """The feature ids in order of their rows, without row 0."""
        return self._ids[: self._count]

    @property
    def table(self) -> tuple[NDArray[np.uint32] | NDArray[np.uint64], bool]:
        """What kernels find rows in, and whether that is by hashing."""
        return (self._slots, True) if self._row_of is None else (self._row_of, False)

    def find(self, ids: IntArray) -> tuple[RowArray, int]:
        """Rows of ``ids``, which lie in [0, n_features), and how many of them have none."""
        rows = np.empty(ids.size, dtype=np.uint32)
        if self._row_of is not None:
            return rows, int(kernels.find_direct(self._row_of, ids, rows))
        return rows, int(kernels.find_hashed(self._slots, ids, rows))

    def insert(self, ids: IntArray) -> None:
        """Give a row to each of ``ids`` that has none, in rising order."""
        new = np.unique(ids)
        rows, missing = self.find(new)
        if not missing:
            return
        new = new[rows == 0]
        count = self._count + new.size
        if count > _MAX_ROWS:
            raise CapacityError(f"{count} features would have a weight: {_MAX_ROWS} is the largest number possible")
        self._reserve(count)
        self._ids[self._count : count] = new
        if self._row_of is not None:
            self._row_of[new] = np.arange(self._count + 1, count + 1)
        else:
            kernels.insert_hashed(self._slots, new, self._count + 1)
        self._count = count

    def _reserve(self, count: int) -> None:
        """Make room for ``count`` features in all."""
        if count > self._ids.size:
            grown = np.zeros(max(count, min(self._ids.size * 3 // 2, self.n_features)), dtype=np.int64)
            grown[: self._count] = self.ids
            self._ids = grown
        if self._row_of is None and 4 * count > self._slots.size:
            self._rebuild(1 << int(2 * count - 1).bit_length())

    def _empty_slots(self, size: int) -> NDArray[np.uint32] | NDArray[np.uint64]:
        if self.n_features <= 1 << 32:
            return np.zeros(2 * size, dtype=np.uint32)
        return np.zeros(2 * size, dtype=np.uint64)

    def _rebuild(self, size: int) -> None:
        """Make the table anew from the ids: ``size`` slots, or a place for each feature where that is smaller."""
        slots, row_of = self._empty_slots(size), None
        if self.n_features <= max(_ALWAYS_DIRECT, slots.nbytes // 4):
            slots, row_of = slots[:0].copy(), np.zeros(self.n_features, dtype=np.uint32)
            row_of[self.ids] = np.arange(1, self._count + 1)
        else:
            kernels.insert_hashed(slots, self.ids, 1)
        self.__dict__.update(_slots=slots, _row_of=row_of)

    def mend(self) -> None:
        """Forget features whose insertion was interrupted."""
        self._rebuild(max(64, self._slots.size // 2))

    def state(self) -> State:
        """What :meth:`restore` takes: the ids; the rest follows from them."""
        return {"ids": self.ids}

    def restore(self, saved: Saved) -> None:
        """Take over a saved state, if it can be one; only of fresh objects."""
        ids = saved.integers("ids", None, low=0, high=self.n_features - 1)
        if np.unique(ids).size != ids.size:
            raise saved.error("ids", "has a feature twice")
        self._reserve(ids.size)
        self._ids[: ids.size] = ids
        self._count = ids.size
        if self._row_of is not None:
            self._row_of[ids] = np.arange(1, ids.size + 1)
        else:
            kernels.insert_hashed(self._slots, ids, 1)
