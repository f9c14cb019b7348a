"""Which features have been seen, and the row that each of them has in the factors."""

from __future__ import annotations

import numpy as np

from tlstd.container import Saved, State
from tlstd.kernels import sparse as kernels
from tlstd.types import FloatArray, IntArray


class SeenFeatures:
    """Gives a row to each feature id on its first appearance, in order.

    An open-addressing hash table (about 50 bytes a seen feature): the number of features that *could* appear does
    not matter.

    Example
    -------
    >>> seen = SeenFeatures()
    >>> seen.insert(np.array([70_000_000_000, 4, 70_000_000_000]))
    >>> len(seen), seen.ids
    (2, array([70000000000,           4]))
    >>> seen.find(np.array([4, 5]))
    array([ 1, -1])
    """

    def __init__(self) -> None:
        self.keys: IntArray = np.full(64, -1, dtype=np.int64)
        self.table_rows: IntArray = np.zeros(64, dtype=np.int64)
        self.all_ids: IntArray = np.zeros(32, dtype=np.int64)
        self.counter: IntArray = np.zeros(1, dtype=np.int64)

    def __len__(self) -> int:
        return int(self.counter[0])

    @property
    def ids(self) -> IntArray:
        """The feature ids in order of their rows."""
        return self.all_ids[: len(self)]

    @property
    def arrays(self) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """What the kernels take: keys, rows, ids and the counter (all changed in place by them)."""
        return self.keys, self.table_rows, self.all_ids, self.counter

    def reserve(self, n_new: int) -> None:
        """Make room for ``n_new`` further features, so that a kernel can insert them."""
        needed = len(self) + n_new
        if needed > self.all_ids.size:
            grown = np.zeros(max(needed, self.all_ids.size * 3 // 2), dtype=np.int64)
            grown[: len(self)] = self.ids
            self.all_ids = grown
        if 2 * needed > self.keys.size:
            self._rebuild(1 << int(2 * needed - 1).bit_length())

    def _rebuild(self, size: int) -> None:
        """Make the table anew, with ``size`` places, from the ids."""
        keys, table_rows = np.full(size, -1, dtype=np.int64), np.zeros(size, dtype=np.int64)
        kernels.insert_ids(keys, table_rows, np.empty_like(self.all_ids), 0, self.ids)
        self.__dict__.update(keys=keys, table_rows=table_rows)

    def mend(self) -> None:
        """Forget features whose insertion was interrupted."""
        self._rebuild(self.keys.size)

    def count(self, csr: tuple[IntArray, IntArray, FloatArray], picked: IntArray) -> tuple[int, int]:
        """Entries in the picked rows of CSR arrays, and an upper bound on the features among them without a row."""
        return kernels.count_ids(self.keys, csr[0], csr[1], picked)  # type: ignore[no-any-return]

    def count_with(self, ids: IntArray) -> int:
        """How many features would have a row if ``ids`` were inserted."""
        return len(self) + int(np.unique(ids[self.find(ids) < 0]).size)

    def insert(self, ids: IntArray) -> None:
        """Give a row to each of ``ids`` that has none, in order of first appearance."""
        new = ids[self.find(ids) < 0]
        self.reserve(np.unique(new).size)
        self.counter[0] = kernels.insert_ids(self.keys, self.table_rows, self.all_ids, len(self), new)

    def find(self, ids: IntArray) -> IntArray:
        """Rows of ``ids``; -1 where a feature was never seen."""
        rows = np.empty(ids.size, dtype=np.int64)
        kernels.find_rows(self.keys, self.table_rows, ids, rows)
        return rows

    def state(self) -> State:
        """What :meth:`restore` takes: the ids; the table follows from them."""
        return {"ids": self.ids}

    def restore(self, saved: Saved, n_features: int) -> None:
        """Take over a saved state, if it can be one with ids below ``n_features``; only of fresh objects."""
        ids = saved.integers("ids", None, low=0, high=n_features - 1)
        self.insert(ids)
        if len(self) != ids.size:
            raise saved.error("ids", "has a feature twice")
