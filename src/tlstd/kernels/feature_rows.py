"""Feature ids to rows, by a table of all ids or by hashing. Row 0 stands for features that were never seen.

``slots`` is an open-addressing table, its size twice a power of 2: id and row of slot i at 2i and 2i + 1, the row 0
where a slot is free.
"""

from __future__ import annotations

import numpy as np

from tlstd.kernels.jit import kernel


@kernel
def find_direct(row_of, ids, out):
    """Write the row of each id to ``out``. Returns how many have none."""
    missing = 0
    for i in range(ids.size):
        row = row_of[np.uint64(ids[i])]
        out[i] = row
        missing += int(row == 0)
    return missing


@kernel
def _slot(slots, key):
    """Position of ``key``, or of the free slot for it."""
    # two rounds of multiply and shift: every bit of the id reaches the bits that are kept
    h = np.uint64(key)
    h = (h ^ (h >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    h = (h ^ (h >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    mask = np.uint64(slots.size - 2)
    at = (h ^ (h >> np.uint64(33))) & mask
    while slots[at + np.uint64(1)] != 0 and slots[at] != key:
        at = (at + np.uint64(2)) & mask
    return at


@kernel
def find_hashed(slots, ids, out):
    """As :func:`find_direct`, by hashing."""
    missing = 0
    for i in range(ids.size):
        row = slots[_slot(slots, ids[i]) + np.uint64(1)]
        out[i] = row
        missing += int(row == 0)
    return missing


@kernel
def insert_hashed(slots, ids, first_row):
    """Give the rows ``first_row``, ``first_row + 1``, … to the ids, which are different and have none."""
    for i in range(ids.size):
        at = _slot(slots, ids[i])
        slots[at] = ids[i]
        slots[at + np.uint64(1)] = first_row + i
