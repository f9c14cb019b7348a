"""iLSTD(λ): the trace, the sums and the coordinate steps, on a matrix held by pages of its columns.

Vectors over the features seen (``z``, ``tops``, ``mu``) have the shape (n_blocks, PAGE): row ``i`` is entry
``[i // PAGE, i % PAGE]``. ``pages[table[j, b]]`` are the rows of block ``b`` in column ``j`` of A; page 0 is zero and
stands for all that were never written.
"""

from __future__ import annotations

from tlstd.kernels.jit import kernel

PAGE = 32
"""Rows in a page (see :mod:`tlstd.linalg.paged_columns` for why)."""

CUT = 1e-16
"""An entry leaves the trace when it has decayed to this fraction of the largest value it had on it."""

_TINY = 1e-300  # below this, the next product would be subnormal, which is slow and worth nothing


@kernel
def advance_trace(z, tops, blocks, n_blocks, listed, rows, vals, decay, rho):
    """z ← ρ (decay z + x), in place; returns the new number of listed blocks.

    ``blocks`` lists the blocks with a non-zero entry, ``listed`` says which they are, ``tops`` has the largest
    |entry| since each entered. Entries below ``CUT`` times that leave: A then misses what rounding would have cost it.
    """
    g = rho * decay
    kept = 0
    for i in range(n_blocks):
        b = blocks[i]
        alive = False
        for k in range(PAGE):
            value = g * z[b, k]
            if abs(value) < max(_TINY, CUT * tops[b, k]):
                z[b, k] = 0.0
                tops[b, k] = 0.0
            else:
                z[b, k] = value
                tops[b, k] = max(tops[b, k], abs(value))
                alive = True
        listed[b] = alive
        if alive:
            blocks[kept] = b
            kept += 1
    for e in range(rows.size):
        value = rho * vals[e]
        if value != 0.0:
            b, k = rows[e] // PAGE, rows[e] % PAGE
            z[b, k] += value
            tops[b, k] = max(tops[b, k], abs(z[b, k]))
            if not listed[b]:
                listed[b] = True
                blocks[kept] = b
                kept += 1
    return kept


@kernel
def difference(x_rows, x_vals, next_rows, next_vals, discount, scratch, out_rows, out_vals):
    """Non-zeros of d = x - γ x_next as rows and values, unsorted; returns how many. ``scratch`` (ints) stays zero."""
    count = 0
    for e in range(x_rows.size):
        count += 1
        scratch[x_rows[e]] = count
        out_rows[count - 1] = x_rows[e]
        out_vals[count - 1] = x_vals[e]
    if discount != 0.0:
        for e in range(next_rows.size):
            at = scratch[next_rows[e]]
            if at != 0:
                out_vals[at - 1] -= discount * next_vals[e]
            else:
                out_rows[count] = next_rows[e]
                out_vals[count] = -discount * next_vals[e]
                count += 1
    for e in range(x_rows.size):
        scratch[x_rows[e]] = 0
    kept = 0
    for e in range(count):
        if out_vals[e] != 0.0:
            out_rows[kept] = out_rows[e]
            out_vals[kept] = out_vals[e]
            kept += 1
    return kept


@kernel
def reserve(x, x_next, discounts, decays, rhos, trace, work, table, n_pages, max_pages):
    """Number the pages that :func:`run` will write to, in ``table``, in place; returns how many are then in use.

    Stops with ``max_pages + 1`` when more would be needed. The trace is followed and put back as it was.
    O(nnz(d) · blocks of z) per transition.
    """
    z, tops, blocks, n_blocks, listed = trace
    scratch, d_rows, d_vals = work
    old_blocks = blocks[: n_blocks[0]].copy()
    old_z, old_tops = z[old_blocks], tops[old_blocks]
    used = n_blocks[0]
    for t in range(discounts.size):
        x_rows, x_vals = x[1][x[0][t] : x[0][t + 1]], x[2][x[0][t] : x[0][t + 1]]
        n_rows, n_vals = x_next[1][x_next[0][t] : x_next[0][t + 1]], x_next[2][x_next[0][t] : x_next[0][t + 1]]
        used = advance_trace(z, tops, blocks, used, listed, x_rows, x_vals, decays[t], rhos[t])
        n_d = difference(x_rows, x_vals, n_rows, n_vals, discounts[t], scratch, d_rows, d_vals)
        for e in range(n_d):
            for i in range(used):
                if table[d_rows[e], blocks[i]] == 0 and n_pages <= max_pages:
                    n_pages += 1
                    table[d_rows[e], blocks[i]] = n_pages - 1
        if n_pages > max_pages:
            break
    for i in range(used):
        z[blocks[i]] = 0.0
        tops[blocks[i]] = 0.0
        listed[blocks[i]] = False
    blocks[: old_blocks.size] = old_blocks
    for i in range(old_blocks.size):
        z[old_blocks[i]] = old_z[i]
        tops[old_blocks[i]] = old_tops[i]
        listed[old_blocks[i]] = True
    return n_pages


@kernel
def _refresh(mu, largest, b):
    """largest[b] = max |mu[b]|, NaN passed over, in place. Four maxima side by side do not wait for each other."""
    m0, m1, m2, m3 = 0.0, 0.0, 0.0, 0.0
    for k in range(0, PAGE, 4):
        v0, v1, v2, v3 = abs(mu[b, k]), abs(mu[b, k + 1]), abs(mu[b, k + 2]), abs(mu[b, k + 3])
        m0 = v0 if v0 > m0 else m0
        m1 = v1 if v1 > m1 else m1
        m2 = v2 if v2 > m2 else m2
        m3 = v3 if v3 > m3 else m3
    largest[b] = max(max(m0, m1), max(m2, m3))


@kernel
def largest_entry(mu, largest, ids, count):
    """Row of the largest |mu| in the first ``count`` blocks, of equal ones that with the lowest id; -1 if all are 0."""
    best = 0.0
    for b in range(count):
        if largest[b] > best:
            best = largest[b]
    found = -1
    if best > 0.0:
        for b in range(count):
            if largest[b] == best:
                for k in range(PAGE):
                    row = b * PAGE + k
                    if abs(mu[b, k]) == best and (found < 0 or ids[row] < ids[found]):
                        found = row
    return found


@kernel
def descend(w, mu, largest, ids, count, pages, table, alpha, n_coordinates):
    """``n_coordinates`` times: j = argmax |μ_j|, w_j += α μ_j, μ -= α μ_j A e_j, in place, over ``count`` blocks."""
    for _ in range(n_coordinates):
        j = largest_entry(mu, largest, ids, count)
        if j < 0:
            return
        step = alpha * mu[j // PAGE, j % PAGE]
        if step == 0.0:
            return  # nothing would change however often it is repeated
        w[j] += step
        for b in range(count):
            page = table[j, b]
            if page != 0:
                for k in range(PAGE):
                    mu[b, k] -= step * pages[page, k]
                _refresh(mu, largest, b)


@kernel
def run(
    x, x_next, rewards, discounts, decays, rhos, alphas, n_coordinates, trace, residual, w, ids, pages, table, work
):
    """iLSTD(λ) over many transitions, in place: A += z dᵀ, μ += z (r - dᵀw), then :func:`descend`.

    Parameters
    ----------
    x, x_next : (indptr, rows, vals)
        Sparse vectors in row coordinates, one per transition.
    trace : (z, tops, blocks, n_blocks (1,), listed)
    residual : (mu, largest |mu| of each block)
    w : (n,)
    ids : (n,), feature ids of the rows
    pages, table : A; :func:`reserve` has numbered every page that is written to
    work : (scratch, d_rows, d_vals)
    """
    z, tops, blocks, n_blocks, listed = trace
    mu, largest = residual
    scratch, d_rows, d_vals = work
    used = n_blocks[0]
    count = (ids.size + PAGE - 1) // PAGE
    for t in range(discounts.size):
        x_rows, x_vals = x[1][x[0][t] : x[0][t + 1]], x[2][x[0][t] : x[0][t + 1]]
        n_rows, n_vals = x_next[1][x_next[0][t] : x_next[0][t + 1]], x_next[2][x_next[0][t] : x_next[0][t + 1]]
        used = advance_trace(z, tops, blocks, used, listed, x_rows, x_vals, decays[t], rhos[t])
        n_d = difference(x_rows, x_vals, n_rows, n_vals, discounts[t], scratch, d_rows, d_vals)
        error = rewards[t]
        for e in range(n_d):
            row, value = d_rows[e], d_vals[e]
            error -= value * w[row]
            for i in range(used):
                b = blocks[i]
                page = table[row, b]
                for k in range(PAGE):
                    pages[page, k] += value * z[b, k]
        for i in range(used):
            b = blocks[i]
            for k in range(PAGE):
                mu[b, k] += error * z[b, k]
            _refresh(mu, largest, b)
        descend(w, mu, largest, ids, count, pages, table, alphas[t], n_coordinates)
    n_blocks[0] = used
