"""A random matrix S (r × d) of few non-zeros a column, computed from feature ids: nothing of it is stored.

The r rows are divided into s blocks as equal as can be, and column j has one entry in each: ±1/√s, in a row that, like
the sign, is given by a hash of (seed, j, block). So a column has length 1, and Sx takes s hashes for each non-zero of
x. With s = r all entries are ±1/√r.

The hash is the finaliser of SplitMix64, twice: h(seed, j, k) = mix(mix(mix(seed) + j) + k φ), where φ is the odd
64-bit integer next to 2⁶⁴ times the golden ratio's fraction. Its highest 32 bits give the row, its lowest the sign.
"""

from __future__ import annotations

import numpy as np

from tlstd.core.jit import kernel, part


@part
def _mix(h):
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


@part
def _column(key, j):
    """The bits from which those of all entries of column j are made; ``key`` is mix(seed)."""
    return _mix(key + np.uint64(j))


@part
def _entry(column, k, s, n_rows):
    """Row and sign of the entry in block ``k``."""
    h = _mix(column + np.uint64(k) * np.uint64(0x9E3779B97F4A7C15))
    first = k * n_rows // s
    size = np.uint64((k + 1) * n_rows // s - first)
    row = first + np.int64(((h >> np.uint64(32)) * size) >> np.uint64(32))
    return row, 1.0 if h & np.uint64(1) else -1.0


@part
def _add(ids, vals, start, stop, key, s, factor, out):
    """out += factor · S x for the vector with the entries ``start:stop``; in place."""
    for e in range(start, stop):
        column, value = _column(key, ids[e]), factor * vals[e] / np.sqrt(s)
        for k in range(s):
            row, sign = _entry(column, k, s, out.size)
            out[row] += sign * value


@kernel
def project(indptr, ids, vals, picked, seed, s, out):
    """out[i] = S x for row ``picked[i]`` of a CSR matrix."""
    key = _mix(np.uint64(seed))
    for i in range(picked.size):
        out[i] = 0.0
        _add(ids, vals, indptr[picked[i]], indptr[picked[i] + 1], key, s, 1.0, out[i])


@kernel
def lift(ids, seed, s, Y, out):
    """out[i] = row ``ids[i]`` of SᵀY, for Y (r, m)."""
    key = _mix(np.uint64(seed))
    for i in range(ids.size):
        column = _column(key, ids[i])
        for c in range(Y.shape[1]):
            out[i, c] = 0.0
        for k in range(s):
            row, sign = _entry(column, k, s, Y.shape[0])
            for c in range(Y.shape[1]):
                out[i, c] += sign * Y[row, c] / np.sqrt(s)


@kernel
def accumulate_left(x, rows, x_at, x_next, next_rows, next_at, columns, seed, s, z, M, b, progress):
    """Add samples to Mᵀ = SA and b = Sb; in place.

    ``x_at`` and ``next_at`` have the rows of M for the entries of the vectors ``rows`` of x and ``next_rows`` of
    x_next, one vector after the other. ``z`` is S times the trace; ``columns`` are discounts, the trace's decays,
    ratios and rewards. ``progress[0]`` counts the samples.
    """
    indptr, ids, vals = x
    next_indptr, _, next_vals = x_next
    discounts, decays, rhos, rewards = columns
    key = _mix(np.uint64(seed))
    at, then = 0, 0
    for t in range(rows.size):
        start, stop = indptr[rows[t]], indptr[rows[t] + 1]
        fade = rhos[t] * decays[t]
        for i in range(z.size):
            z[i] = fade * z[i] if abs(fade * z[i]) >= 1e-300 else 0.0
        _add(ids, vals, start, stop, key, s, rhos[t], z)
        for e in range(start, stop):
            for i in range(z.size):
                M[x_at[at], i] += vals[e] * z[i]
            at += 1
        for e in range(next_indptr[next_rows[t]], next_indptr[next_rows[t] + 1]):
            if discounts[t] != 0.0:
                for i in range(z.size):
                    M[next_at[then], i] -= discounts[t] * next_vals[e] * z[i]
            then += 1
        for c in range(b.shape[1]):
            for i in range(z.size):
                b[i, c] += rewards[t, c] * z[i]
        progress[0] += 1
