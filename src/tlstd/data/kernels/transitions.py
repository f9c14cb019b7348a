"""What is checked about sparse vectors and transitions before anything is learned from them, in one pass."""

from __future__ import annotations

import numpy as np

from tlstd.core.jit import kernel

_LARGEST = 1e100  # validation.MAX_MAGNITUDE
_LARGEST_SQUARE = 9e199  # below the square of the largest: rounding cannot hide an entry that is too large


@kernel
def columns_are_sound(rewards, discounts, trace_discounts, rhos):
    """Whether all values are finite and in their ranges; rewards are (N, m)."""
    bad = 0
    for t in range(discounts.size):
        sound = (
            (discounts[t] >= 0.0)
            & (discounts[t] <= 1.0)
            & (trace_discounts[t] >= 0.0)
            & (trace_discounts[t] <= 1.0)
            & (rhos[t] >= 0.0)
            & (rhos[t] <= _LARGEST)
        )
        bad += 0 if sound else 1
    for t in range(rewards.shape[0]):
        for c in range(rewards.shape[1]):
            bad += 0 if abs(rewards[t, c]) <= _LARGEST else 1
    return bad == 0


@kernel
def is_sound_vector(ids, values, size):
    """Whether ids rise within [0, size), and values are finite, not too large and not 0."""
    sound, before = True, -1
    for e in range(ids.size):
        sound &= (ids[e] > before) & (abs(values[e]) <= _LARGEST) & (values[e] != 0.0)
        before = ids[e]
    return sound and before < size


@kernel
def rows_are_sound(csr, rows, n_features, lengths):
    """Whether the picked rows of a CSR matrix hang together; writes the lengths of their vectors.

    False means that something may be wrong, for instance that a square overflows: a slower check has to say.
    """
    indptr, indices, data = csr
    n_rows, n_entries = indptr.size - 1, min(indices.size, data.size)
    sound = True
    for t in range(rows.size):
        i = rows[t]
        if not 0 <= i < n_rows:
            return False
        start, stop = indptr[i], indptr[i + 1]
        if not 0 <= start <= stop <= n_entries:
            return False
        total, before = 0.0, -1
        for e in range(start, stop):
            total += data[e] * data[e]
            sound &= indices[e] > before
            before = indices[e]
        sound &= before < n_features and total <= _LARGEST_SQUARE
        lengths[t] = np.sqrt(total)
    return sound


@kernel
def not_repeated(rows, next_rows):
    """Those of ``next_rows`` that are not in ``rows`` at the following step."""
    out, count, n = np.empty_like(next_rows), 0, rows.size
    for t in range(n):
        out[count] = next_rows[t]
        count += 0 if t + 1 < n and rows[t + 1] == next_rows[t] else 1
    return out[:count]


@kernel
def are_sound(x, rows, x_next, next_rows, one_store, columns, n_features, lengths):
    """Whether transitions between picked rows of CSR matrices are as they should be; writes the lengths of the x's.

    False as in :func:`rows_are_sound`. Of ``one_store`` for both sides, what is x_next and then x is looked at once.
    """
    if not (columns_are_sound(*columns) and rows_are_sound(x, rows, n_features, lengths)):
        return False
    others = not_repeated(rows, next_rows) if one_store else next_rows
    return rows_are_sound(x_next, others, n_features, np.empty(others.size))


@kernel
def sparse_lengths(indptr, data, rows, lengths):
    """Write the lengths of the picked rows of a CSR matrix."""
    for t in range(rows.size):
        total = 0.0
        for e in range(indptr[rows[t]], indptr[rows[t] + 1]):
            total += data[e] * data[e]
        lengths[t] = np.sqrt(total)


@kernel
def dense_lengths(X, rows, lengths):
    """Write the lengths of the picked rows of a dense matrix."""
    for t in range(rows.size):
        total = 0.0
        for j in range(X.shape[1]):
            total += X[rows[t], j] * X[rows[t], j]
        lengths[t] = np.sqrt(total)


@kernel
def follow_lengths(lengths, decays, rhos, bound, limit):
    """Follow an upper bound of the trace's length, given those of the vectors x.

    Returns the index of the first transition at which it exceeds ``limit`` (-1 if none), the bound after the last, and
    the highest on the way.
    """
    highest = bound
    for t in range(lengths.size):
        bound = rhos[t] * (decays[t] * bound + lengths[t])
        if not bound <= limit:
            return t, bound, bound
        highest = max(highest, bound)
    return -1, bound, highest


@kernel
def steps_within(indptr, rows, next_indptr, next_rows, start, limit):
    """End of the longest part of picked CSR rows from ``start`` on with at most ``limit`` entries, or of one step."""
    count = 0
    for t in range(start, rows.size):
        i, j = rows[t], next_rows[t]
        count += indptr[i + 1] - indptr[i] + next_indptr[j + 1] - next_indptr[j]
        if count > limit:
            return max(t, start + 1)
    return rows.size


@kernel
def entries(indptr, picked):
    """Number of entries of the picked CSR rows."""
    count = 0
    for t in range(picked.size):
        count += indptr[picked[t] + 1] - indptr[picked[t]]
    return count


@kernel
def ids_without_row(indptr, ids, rows, wanted, out):
    """Write the ids of the wanted vectors' entries that have row 0 to ``out``; returns how many these are."""
    count = 0
    for i in range(wanted.size):
        if wanted[i]:
            for e in range(indptr[i], indptr[i + 1]):
                if rows[e] == 0:
                    out[count] = ids[e]
                    count += 1
    return count


@kernel
def copy_picked(indptr, indices, data, picked, out_indptr, out_ids, out_vals, first):
    """Append the picked rows of a CSR matrix, as the vectors from ``first`` on, to CSR arrays that have room."""
    end = out_indptr[first]
    for t in range(picked.size):
        for e in range(indptr[picked[t]], indptr[picked[t] + 1]):
            out_ids[end] = indices[e]
            out_vals[end] = data[e]
            end += 1
        out_indptr[first + t + 1] = end
