"""A matrix over the features seen that grows, mostly empty but in clusters, held by pages of its columns."""

from __future__ import annotations

from math import isqrt
from typing import Any

import numpy as np

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.file_format import Saved, State
from tlstd.core.growing import enlarged
from tlstd.errors import CapacityError
from tlstd.zoo.kernels import ilstd as kernels
from tlstd.zoo.kernels.ilstd import PAGE

_TABLE_ITEM = 4
_PAGE_BYTES = 8 * PAGE
_MOST_PAGES = np.iinfo(np.int32).max - 1


class PagedColumns:
    """A (n, n) as columns, each cut into pages of 32 rows of which only those ever written to are stored.

    ``table[j, b]`` is the number of the page with the rows of block b in column j; 0 if it is zero, negative if it is
    reserved but has not been written. ``peaks`` has the largest |entry| of each page, or -1.

    Why neither dense nor CSC. Rows have the order of first appearance, so what is active together lies together, and a
    trace touches runs of rows: with tiles a fraction of the pages is ever written to, and these are well filled. CSC
    would take less memory, but inserting into it costs a merge or a hash per entry; a page costs one look-up per 32
    entries, then runs at the speed of dense columns, and dense features fill all pages. ``tlstd bench ilstd-memory``
    measures what is held.

    The table of page numbers has 4 bytes per page that could be: 1/64 of the dense matrix, which bounds the number of
    features seen at 262,000 for 8 GiB.

    Parameters
    ----------
    memory_limit : int
        Bytes that the table and all pages reserved may take. Pages are stored when they are written, so that less than
        that is held. (While the table grows, its old and its new array exist side by side.)
    """

    def __init__(self, memory_limit: int) -> None:
        self.memory_limit = memory_limit
        self.n_reserved = 0
        self.counts: IntArray = np.array([1, 0])  # the next page's number, and pages written without being reserved
        self.pages: FloatArray = np.zeros((1, PAGE))
        self.peaks: FloatArray = np.zeros(1)
        self._mark = -1
        self.table: np.ndarray[Any, np.dtype[np.int32]] = np.zeros((0, 0), dtype=np.int32)

    @property
    def arrays(self) -> tuple[Any, ...]:
        """What the kernels take."""
        return self.pages, self.table, self.peaks, self.counts

    def check(self, n: int) -> None:
        """Raise :class:`CapacityError` if the table of n columns alone is too large."""
        if _TABLE_ITEM * n * _blocks(n) > self.memory_limit:
            raise self._too_large(n)

    def grow(self, n: int) -> None:
        """Make room in the table for n columns (and rows)."""
        capacity = self.table.shape[0]
        if n > capacity:
            size = max(n, min(capacity * 5 // 4, isqrt(self.memory_limit * PAGE // _TABLE_ITEM)))
            self.table = enlarged(self.table, size, _blocks(size))

    def reserve(self, n: int, *transitions: Any) -> None:
        """Reserve what transitions will add to; nothing has changed if :class:`CapacityError` is raised.

        ``transitions`` are the arguments of :func:`tlstd.zoo.kernels.ilstd.reserve` before ``table``.
        """
        self.n_reserved += int(self.counts[1])
        self.counts[1] = 0
        room = self.memory_limit - _TABLE_ITEM * n * _blocks(n)
        most = min(room // _PAGE_BYTES, _MOST_PAGES)
        if self._mark == -_MOST_PAGES:
            self._mark = -1
            self.table[self.table < 0] = -1
        self._mark -= 1  # so that the marks of this call can be told from all others
        n_reserved = int(kernels.reserve(*transitions, self.table, self.n_reserved, most, self._mark))  # type: ignore[call-arg]
        if n_reserved > most:
            self.table[self.table == self._mark] = 0
            raise self._too_large(n)
        self.n_reserved = n_reserved

    def make_room(self, n: int, n_columns: int) -> None:
        """Make room for writing to all pages of ``n_columns`` of n columns."""
        needed = 1 + min(int(self.counts[0]) - 1 + n_columns * _blocks(n), n * _blocks(n))
        if needed > len(self.pages):
            # in place: a copy of gigabytes, page fault by page fault, costs more than all the updates (measured)
            if not self.pages.flags.owndata:  # unpickled
                self.pages = self.pages.copy()
            length = max(needed, len(self.pages) * 5 // 4)
            self.peaks = enlarged(self.peaks, length)
            self.pages.resize((length, PAGE), refcheck=False)

    def mend(self) -> None:
        """Forget what was reserved but not written: after an interruption part of it belongs to no sample."""
        self.table[self.table < 0] = 0
        self.n_reserved = int(self.counts[0]) - 1
        self.counts[1] = 0

    def toarray(self, n: int) -> FloatArray:
        """The first n rows and columns as a dense (n, n) array."""
        columns = self.pages[np.maximum(self.table[:n, : _blocks(n)], 0)]
        dense: FloatArray = columns.reshape(n, PAGE * _blocks(n))[:, :n].T.copy()
        return dense

    def state(self, n: int) -> State:
        """What :meth:`restore` takes: the pages in order of their numbers, where each belongs, and what is reserved."""
        columns, blocks = np.nonzero(self.table)
        numbers, places = self.table[columns, blocks], columns * _blocks(n) + blocks
        written = np.zeros(self.counts[0], dtype=np.int64)
        written[np.maximum(numbers, 0)] = places
        return {
            "places": written[1:],
            "pages": self.pages[1 : self.counts[0]],
            "reserved": places[numbers < 0],
        }

    def restore(self, saved: Saved, n: int) -> None:
        """Take over a saved state, if it can be one of n rows and columns; only of fresh objects.

        The table may be larger than the file, but what of it is not in the file is never touched.
        """
        count = _blocks(n)
        places, reserved = (saved.integers(name, None, low=0, high=n * count - 1) for name in ("places", "reserved"))
        pages = saved.floats("pages", places.size, PAGE)
        both = np.concatenate([places, reserved])
        if np.unique(both).size != both.size:
            raise saved.error("places", "has a page twice")
        last = pages[places % max(count, 1) == count - 1]
        if last[:, n - (count - 1) * PAGE :].any():
            raise saved.error("pages", f"has entries in rows past {n}")
        try:
            self.check(n)
            self.grow(n)
        except MemoryError as error:
            raise saved.error("places", f"belongs to a matrix that is too large: {error}") from error
        self.counts[:] = 1 + places.size, 0
        self.n_reserved = both.size
        self.pages = np.concatenate([self.pages, pages])
        self.peaks = np.full(len(self.pages), -1.0)
        self.table[places // max(count, 1), places % max(count, 1)] = np.arange(1, self.counts[0])
        self.table[reserved // max(count, 1), reserved % max(count, 1)] = -1

    def _too_large(self, n: int) -> CapacityError:
        return CapacityError(
            f"{n} distinct features need more than memory_limit = {1e-9 * self.memory_limit:.3g} GB for iLSTD's "
            f"matrix: use TLSTD, which needs 16·{n}·rank bytes, or raise memory_limit"
        )


def _blocks(n: int) -> int:
    """Number of pages that n rows are cut into."""
    return -(-n // PAGE)
