"""Leverage of sparse rows by the inverse of a ridged Gram matrix over some of the columns."""

from __future__ import annotations

from tlstd.core.jit import kernel


@kernel
def add_leverages(starts, columns, values, rows, places, inverse, ridge, out):
    """Set ``out[i]`` to φᵀ(G + ridge·I)⁻¹φ for row ``rows[i]``.

    ``places`` gives the column's place in ``inverse``, or -1 where G has nothing in that column.
    """
    for i in range(rows.size):
        first, last = starts[rows[i]], starts[rows[i] + 1]
        total = 0.0
        for p in range(first, last):
            here = places[columns[p]]
            if here < 0:
                total += values[p] * values[p] / ridge
                continue
            for q in range(first, last):
                there = places[columns[q]]
                if there >= 0:
                    total += values[p] * values[q] * inverse[here, there]
        out[i] = total
