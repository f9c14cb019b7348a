"""A small system LᵀA_t R y = Lᵀb_t followed sample by sample, with its solution up to date at every step.

L and R are fixed bases: a feature has one row of ``table`` (n, k), a vector x the coordinates g = tableᵀx. With the
trace in these coordinates, the left ones are u = leftᵀ(tableᵀz) for a matrix ``left`` (k, m), and the right ones of d
are m of the k coordinates, from ``first`` on. A sample adds w u dᵀ to the matrix M and w u r to the right-hand side c.

``system`` is (M, inverse, c, y): M (m, m) and its inverse by the Sherman-Morrison formula, and the solution y = M⁻¹c,
refined once. ``state`` is (trace, numbers): the trace (k,), and (the weight w of the next sample, samples since M was
last inverted by elimination, 1 if ``inverse`` is one, samples in all). Where a step of the formula divides by almost
0, and every ``RENEWED`` · m samples, M is inverted anew; where it has no inverse, y stays as it was.
"""

from __future__ import annotations

import numpy as np

from tlstd.core.jit import kernel, part

SMALL_DENOMINATOR = 1e-4
"""Below this the inverse is made anew instead of divided."""

RENEWED = 64
"""Samples, in units of m, after which it is made anew in any case."""

_SINGULAR = 1e-14  # pivots up to this share of the largest entry


@kernel
def invert(M, inverse, work):
    """Write the inverse of M by Gauss-Jordan elimination with pivoting; returns whether there is one."""
    m = M.shape[0]
    largest = 0.0
    for i in range(m):
        for j in range(m):
            work[i, j] = M[i, j]
            inverse[i, j] = 1.0 if i == j else 0.0
            largest = max(largest, abs(M[i, j]))
    for j in range(m):
        pivot = j
        for i in range(j + 1, m):
            if abs(work[i, j]) > abs(work[pivot, j]):
                pivot = i
        if not abs(work[pivot, j]) > _SINGULAR * largest:
            return False
        if pivot != j:
            for e in range(m):
                work[j, e], work[pivot, e] = work[pivot, e], work[j, e]
                inverse[j, e], inverse[pivot, e] = inverse[pivot, e], inverse[j, e]
        factor = 1.0 / work[j, j]
        for e in range(m):
            work[j, e] *= factor
            inverse[j, e] *= factor
        for i in range(m):
            if i != j and work[i, j] != 0.0:
                factor = work[i, j]
                for e in range(m):
                    work[i, e] -= factor * work[j, e]
                    inverse[i, e] -= factor * inverse[j, e]
    return True


@kernel
def solve(M, inverse, c, y, rest):
    """y = M⁻¹c by the inverse, refined once; in place."""
    m = c.size
    for i in range(m):
        total = 0.0
        for j in range(m):
            total += inverse[i, j] * c[j]
        y[i] = total
    for i in range(m):
        total = c[i]
        for j in range(m):
            total -= M[i, j] * y[j]
        rest[i] = total
    for i in range(m):
        total = 0.0
        for j in range(m):
            total += inverse[i, j] * rest[j]
        y[i] += total


@kernel
def begin(system, state):
    """Invert M and solve for the first time; in place."""
    M, inverse, c, y = system
    numbers = state[1]
    numbers[1] = 0.0
    numbers[2] = 1.0 if invert(M, inverse, np.empty_like(M)) else 0.0
    if numbers[2] == 1.0:
        solve(M, inverse, c, y, np.empty_like(c))


@kernel
def gather_rows(ptr, pos, val, first, stop, table, G):
    """G[r - first] = tableᵀx of the rows r; as in :mod:`tlstd.krylov.kernels.products`, for any number of columns."""
    k = table.shape[1]
    for r in range(stop - first):
        for c in range(k):
            G[r, c] = 0.0
        for e in range(ptr[first + r], ptr[first + r + 1]):
            p = np.uint32(pos[e])
            if val is None:
                for c in range(k):
                    G[r, c] += table[p, c]
            else:
                for c in range(k):
                    G[r, c] += val[e] * table[p, c]


@part
def times_left(left, trace, u):
    """u = leftᵀ trace, written."""
    for j in range(u.size):
        u[j] = 0.0
    for i in range(trace.size):
        for j in range(u.size):
            u[j] += left[i, j] * trace[i]


@part
def sherman_morrison(inverse, u, d, p, q):
    """p = M⁻¹u and q = M⁻ᵀd, written; returns 1 + dᵀM⁻¹u."""
    m = u.size
    for j in range(m):
        q[j] = 0.0
    for i in range(m):
        total = 0.0
        for j in range(m):
            total += inverse[i, j] * u[j]
            q[j] += inverse[i, j] * d[i]
        p[i] = total
    denominator = 1.0
    for j in range(m):
        denominator += d[j] * p[j]
    return denominator


@kernel
def follow(G, first_row, samples, rhos, target, start, stop, lambda_, growth, bases, system, state, values):
    """Add the samples from ``start`` to ``stop`` of a chunk, in place. Weights grow by a factor ``growth`` a sample.

    ``samples`` is (row, next_row, discounts, trace_discounts, rewards), rewards (N, targets); ``rhos`` is empty if all
    are 1; ``bases`` is (left, first). ``G`` has the coordinates of the rows from ``first_row`` on. If ``values`` is not
    empty, the value of each x_{t+1} right after its step is written there; where ``next_row`` is -1, the coordinates of
    x_{t+1} are taken from the end of G, in order.
    O(k·m + m²) a sample.
    """
    row, next_row, discounts, trace_discounts, rewards = samples
    left, first = bases
    M, inverse, c, y = system
    trace, numbers = state
    k, m = left.shape
    u, d, p, q, rest = np.empty(m), np.empty(m), np.empty(m), np.empty(m), np.empty(m)
    work = np.empty((m, m))
    weight, since, invertible = numbers[0], numbers[1], numbers[2] == 1.0
    ends = G.shape[0] - ((next_row[start:stop] < 0).sum() if values.size else 0)
    for t in range(start, stop):
        a, b, discount, decay = row[t] - first_row, next_row[t] - first_row, discounts[t], trace_discounts[t] * lambda_
        rho = rhos[t] if rhos.size else 1.0
        for i in range(k):
            trace[i] = rho * (decay * trace[i] + G[a, i])
        times_left(left, trace, u)
        for j in range(m):
            d[j] = G[a, first + j] - discount * G[b, first + j] if next_row[t] >= 0 else G[a, first + j]
            u[j] *= weight
        # (M + u dᵀ)⁻¹ = M⁻¹ - M⁻¹u dᵀM⁻¹ / (1 + dᵀM⁻¹u)
        denominator = sherman_morrison(inverse, u, d, p, q) if invertible else 0.0
        since += 1.0
        renew = since >= RENEWED * m or not abs(denominator) > SMALL_DENOMINATOR
        if renew and invertible:  # this solution stays if there is none afterwards
            solve(M, inverse, c, y, rest)
        for i in range(m):
            c[i] += u[i] * rewards[t, target]
            for j in range(m):
                M[i, j] += u[i] * d[j]
        if renew:
            invertible = invert(M, inverse, work)
            since = 0.0
        else:
            for i in range(m):
                factor = p[i] / denominator
                for j in range(m):
                    inverse[i, j] -= factor * q[j]
        weight *= growth
        if invertible and (values.size or t == stop - 1):
            solve(M, inverse, c, y, rest)
        if values.size:
            if next_row[t] < 0:
                b = ends
                ends += 1
            total = 0.0
            for j in range(m):
                total += G[b, first + j] * y[j]
            values[t - start] = total
    numbers[0], numbers[1], numbers[2] = weight, since, 1.0 if invertible else 0.0
    numbers[3] += stop - start


@kernel
def follow_one(rows, row, next_row, step, lambda_, growth, table, bases, system, state):
    """As :func:`follow`, for one sample with ratio 1 by its rows in a chunk: (ptr, pos, val), val empty if all are 1.

    ``step`` is (reward, discount, trace_discount).
    Returns False, with nothing changed, if the table has no rows for some features yet.
    """
    ptr, pos, val = rows
    G = np.zeros((2, table.shape[1]))
    for side in range(2):
        r = row if side == 0 else next_row
        for e in range(ptr[r] if r >= 0 else 0, ptr[r + 1] if r >= 0 else 0):
            p = pos[e]
            if p >= table.shape[0]:
                return False
            for j in range(table.shape[1]):
                G[side, j] += table[p, j] if val.size == 0 else val[e] * table[p, j]
    here = np.zeros(1, dtype=np.int32), np.full(1, 1 if next_row >= 0 else -1, dtype=np.int32)
    samples = (*here, np.full(1, step[1]), np.full(1, step[2]), np.full((1, 1), step[0]))
    zero, none = np.int64(0), np.empty(0)  # not a literal: the loop is compiled once for all who call it
    follow(G, zero, samples, none, zero, zero, zero + 1, lambda_, growth, bases, system, state, none)
    return True
