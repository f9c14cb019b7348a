"""iLSTD(λ): the trace, the sums and the coordinate steps, on a matrix held by pages of its columns.

Loops over a page go to ``shape[1]``, which is PAGE: a constant there is unrolled, not vectorised, which is slower.

Vectors over the features seen (``z``, ``tops``, ``mu``) have the shape (n_blocks, PAGE): row ``i`` is entry
``[i // PAGE, i % PAGE]``. ``pages[table[j, b]]`` are the rows of block ``b`` in column ``j`` of A as far as it has been
added up, ``peaks`` the largest |entry| of each page, -1 if that is not known. In the table, 0 stands for a page of
zeros and a negative number for one that is reserved but has not been written yet.

A column is read only when its coordinate is moved, and few ever are. So what a step adds to column j, d_j z, is
written at once only if j was moved lately (:data:`RECENT`); else d_j is noted in the history, beside x, and
:func:`catch_up` adds it when the column is wanted:

    Σ_t d_j(t) z_t = Σ_s c_s ρ_s x_s   with   c_s = d_j(s) + ρ_{s+1} decay_{s+1} c_{s+1}
"""

from __future__ import annotations

import numpy as np

from tlstd.core.jit import kernel, part

PAGE = 32
"""Rows in a page (see :mod:`tlstd.zoo.paged_columns` for why)."""

CUT = 1e-16
"""An entry leaves the trace when it has decayed to this fraction of the largest value it had on it."""

RECENT = 128
"""For how many steps after a coordinate was moved its column is added to at once."""

SMALL = 1024
"""Up to so many features seen, everything is added at once: A fits into the cache."""

DONE, MORE_PAGES, MORE_HISTORY = 0, 1, 2
"""Why :func:`run` came back."""

_TINY = 1e-300  # below this, the next product would be subnormal, which is slow and worth nothing
_UP = 1.0 + 1e-15  # more than the roundings of one bound
_WITHOUT_SIGN, _INFINITY = np.int64(0x7FFFFFFFFFFFFFFF), np.int64(0x7FF0000000000000)


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
def reserve(x, x_next, discounts, decays, rhos, trace, work, table, n_reserved, most, mark):
    """Put ``mark`` in ``table`` for every page that the transitions add to; returns how many then have their room.

    Stops with ``most + 1`` when there would be more. The trace is followed and put back as it was.
    O(nnz(d) · blocks of z) per transition.
    """
    z, tops, blocks, n_blocks, listed = trace
    scratch, d_rows, d_vals = work
    used = n_old = n_blocks[0]
    old_blocks, old_z, old_tops = np.empty_like(blocks[:n_old]), np.empty((n_old, PAGE)), np.empty((n_old, PAGE))
    for i in range(n_old):
        old_blocks[i] = blocks[i]
        for k in range(PAGE):
            old_z[i, k], old_tops[i, k] = z[blocks[i], k], tops[blocks[i], k]
    for t in range(discounts.size):
        x_rows, x_vals = x[1][x[0][t] : x[0][t + 1]], x[2][x[0][t] : x[0][t + 1]]
        n_rows, n_vals = x_next[1][x_next[0][t] : x_next[0][t + 1]], x_next[2][x_next[0][t] : x_next[0][t + 1]]
        used = advance_trace(z, tops, blocks, used, listed, x_rows, x_vals, decays[t], rhos[t])
        n_d = difference(x_rows, x_vals, n_rows, n_vals, discounts[t], scratch, d_rows, d_vals)
        for e in range(n_d):
            for i in range(used):
                if table[d_rows[e], blocks[i]] == 0 and n_reserved <= most:
                    n_reserved += 1
                    table[d_rows[e], blocks[i]] = mark
        if n_reserved > most:
            break
    for i in range(used):
        listed[blocks[i]] = False
        for k in range(PAGE):
            z[blocks[i], k] = tops[blocks[i], k] = 0.0
    for i in range(n_old):
        b = blocks[i] = old_blocks[i]
        listed[b] = True
        for k in range(PAGE):
            z[b, k], tops[b, k] = old_z[i, k], old_tops[i, k]
    return n_reserved


@part
def _refresh(values, bits, largest, largest_bits, b):
    """largest[b] = max |values[b]|, NaN passed over, in place; ``bits`` are the same numbers as integers.

    Without their sign they have the same order, and unlike that of numbers the maximum of integers is vectorised.
    """
    top = np.int64(0)
    for k in range(bits.shape[1]):
        value = bits[b, k] & _WITHOUT_SIGN
        top = value if value > top else top
    largest_bits[b] = top
    if top > _INFINITY:  # there is a NaN
        largest[b] = 0.0
        for k in range(PAGE):
            if abs(values[b, k]) > largest[b]:
                largest[b] = abs(values[b, k])


@part
def add_to_column(pages, table, peaks, counts, j, factor, values, blocks, n_blocks):
    """Add ``factor · values`` to A's column j in the listed blocks, in place; new pages take the next numbers."""
    for i in range(n_blocks):
        b = blocks[i]
        page = table[j, b]
        if page <= 0:
            counts[1] += page == 0
            page = counts[0]
            counts[0] += 1
            table[j, b] = page
        for k in range(pages.shape[1]):
            pages[page, k] += factor * values[b, k]
        peaks[page] = -1.0


# --- what is still to be added --------------------------------------------------------------------------------------


@kernel
def catch_up(j, history, matrix, gather):
    """Add to A's column j, in place, what the history has noted for it.

    From the latest note backwards, c_s is followed until its weight, a product of decays, is below ``CUT``: so far back
    every entry had left the trace. ``gather`` is scratch: (n_blocks, PAGE) zeros and n_blocks times False, which they
    stay, and integers.
    O(active features) per step that is visited.
    """
    _, starts, x_rows, x_vals, decays, latest, earlier, steps, columns, d_vals = history
    total, listed, blocks = gather
    note = latest[j]
    while note >= 0:
        s = steps[note]
        c, weight = 0.0, 0.0
        while True:
            if note >= 0 and steps[note] == s:
                c += d_vals[note]
                weight = 1.0
                columns[note] = -1
                note = earlier[note]
            for e in range(starts[s], starts[s + 1]):
                b = x_rows[e] // PAGE
                total[b, x_rows[e] % PAGE] += c * x_vals[e]
                listed[b] = True
            c *= decays[s]
            weight *= abs(decays[s])
            s -= 1
            if s < 0 or not weight >= CUT:
                break
    latest[j] = -1
    pages, table, peaks, counts = matrix
    n_blocks = 0
    for b in range(listed.size):
        if listed[b]:
            blocks[n_blocks] = b
            n_blocks += 1
    add_to_column(pages, table, peaks, counts, j, 1.0, total, blocks, n_blocks)
    for i in range(n_blocks):
        listed[blocks[i]] = False
        for k in range(total.shape[1]):
            total[blocks[i], k] = 0.0


@kernel
def begin_history(history, z, blocks, n_blocks):
    """Empty the history, of which every note has been added, in place: its step 0 is the trace as it is."""
    sizes, starts, x_rows, x_vals, decays = history[:5]
    n = 0
    for i in range(n_blocks):
        b = blocks[i]
        for k in range(PAGE):
            if z[b, k] != 0.0:
                x_rows[n] = b * PAGE + k
                x_vals[n] = z[b, k]
                n += 1
    starts[0], starts[1], decays[0] = 0, n, 0.0
    sizes[0], sizes[1] = 1, 0


@kernel
def note_step(history, rows, vals, decay, rho):
    """Append z ← ρ (decay z + x) to the history, in place, without what it adds to A."""
    sizes, starts, x_rows, x_vals, decays = history[:5]
    s = sizes[0]
    at = starts[s]
    for e in range(rows.size):
        x_rows[at + e] = rows[e]
        x_vals[at + e] = rho * vals[e]
    starts[s + 1] = at + rows.size
    decays[s] = rho * decay
    sizes[0] = s + 1


@kernel
def note_entry(history, row, value):
    """Note that the latest step adds ``value`` z to A's column ``row``, in place."""
    sizes = history[0]
    latest, earlier, steps, columns, d_vals = history[5:]
    note = sizes[1]
    steps[note], columns[note], d_vals[note] = sizes[0] - 1, row, value
    earlier[note] = latest[row]
    latest[row] = note
    sizes[1] = note + 1


@kernel
def link(history):
    """Make the lists of notes by column from ``columns``, in place; -1 there is a note that has been added."""
    sizes, latest, earlier, columns = history[0], history[5], history[6], history[8]
    latest[:] = -1
    for note in range(sizes[1]):
        if columns[note] >= 0:
            earlier[note] = latest[columns[note]]
            latest[columns[note]] = note


# --- coordinates ----------------------------------------------------------------------------------------------------


@kernel
def largest_entry(mu, largest, ids, count, best):
    """Row of an entry with |mu| = ``best`` in a block with that as its largest, of several that with the lowest id."""
    found = -1
    for b in range(count):
        if largest[b] == best:
            for k in range(PAGE):
                row = b * PAGE + k
                if abs(mu[b, k]) == best and (found < 0 or ids[row] < ids[found]):
                    found = row
    return found


@part
def _highest(largest, count):
    """The block with the largest number, NaN passed over."""
    top = 0
    for b in range(count):
        if not largest[b] <= largest[top]:
            top = b
    return top


@part
def _settle(first, stop, mu, mu_bits, largest, largest_bits, settled, columns, steps, n_moves, pages, table):
    """Take the moves that blocks ``first:stop`` of mu have not seen off them, one after the other, in place.

    :func:`_refresh` is written out: a call would count references to every array, each time.
    """
    for b in range(first, stop):
        changed = False
        for i in range(settled[b], n_moves):
            page = table[columns[i], b]
            if page > 0:
                changed = True
                step = steps[i]
                for k in range(pages.shape[1]):
                    mu[b, k] -= step * pages[page, k]
        settled[b] = n_moves
        if changed:
            highest = np.int64(0)
            for k in range(mu_bits.shape[1]):
                value = mu_bits[b, k] & _WITHOUT_SIGN
                highest = value if value > highest else highest
            largest_bits[b] = highest
            if highest > _INFINITY:
                largest[b] = 0.0
                for k in range(PAGE):
                    if abs(mu[b, k]) > largest[b]:
                        largest[b] = abs(mu[b, k])


@kernel
def descend(w, residual, ids, count, matrix, history, gather, moved, now, moves, alpha, n_coordinates):
    """``n_coordinates`` times: j = argmax |μ_j|, w_j += α μ_j, μ -= α μ_j A e_j, in place, over ``count`` blocks.

    A block of μ is changed only when it may have the largest entry, and at the end; until then ``largest`` has a bound
    for it. Every entry goes through the same operations in the same order as if it were changed at once.
    """
    mu, largest, settled = residual
    mu_bits, largest_bits = mu.view(np.int64), largest.view(np.int64)
    pages, table, peaks, _ = matrix
    page_bits, peak_bits = pages.view(np.int64), peaks.view(np.int64)
    latest = history[5]
    columns, steps = moves
    first = n_moves = np.int64(0)  # not a literal: _settle would be compiled for it
    if count == 0:
        return
    settled[:count] = 0
    top = _highest(largest, count)
    for i in range(n_coordinates):
        if settled[top] < n_moves:
            _settle(top, top + 1, mu, mu_bits, largest, largest_bits, settled, columns, steps, n_moves, pages, table)
        best = largest[top]
        for b in range(count):
            if not largest[b] < best and settled[b] < n_moves:
                _settle(b, b + 1, mu, mu_bits, largest, largest_bits, settled, columns, steps, n_moves, pages, table)
                best = max(best, largest[b])
        j = largest_entry(mu, largest, ids, count, best) if best > 0.0 else -1
        step = alpha * mu[j // PAGE, j % PAGE] if j >= 0 else 0.0
        if step == 0.0:
            break  # nothing would change however often it is repeated
        w[j] += step
        moved[j] = now
        if latest[j] >= 0:
            catch_up(j, history, matrix, gather)
        columns[n_moves], steps[n_moves] = j, step
        n_moves += 1
        if i == n_coordinates - 1:
            break
        if n_moves == columns.size:
            _settle(first, count, mu, mu_bits, largest, largest_bits, settled, columns, steps, n_moves, pages, table)
            settled[:count] = 0
            n_moves = first
            top = _highest(largest, count)
            continue
        size, top = abs(step), 0
        for b in range(count):
            page = table[j, b]
            if page > 0:
                if peaks[page] < 0.0:
                    _refresh(pages, page_bits, peaks, peak_bits, page)
                largest[b] = (largest[b] + size * peaks[page]) * _UP
            if not largest[b] <= largest[top]:
                top = b
    _settle(first, count, mu, mu_bits, largest, largest_bits, settled, columns, steps, n_moves, pages, table)


@part
def _rows_in_use(n, rows):
    """The larger of n and one more than the largest row."""
    for e in range(rows.size):
        n = max(n, rows[e] + 1)
    return n


@part
def _keep_history(history, matrix, gather, trace, n_before, n_seen, n_x, n_most, n):
    """Get the history ready for a step with n_x entries of x and ``n_most`` notes; DONE, or what needs room first.

    n rows, of which ``n_seen`` are in use now, ``n_before`` before the step.
    """
    z, _, blocks, n_blocks, _ = trace
    sizes, starts, latest = history[0], history[1], history[5]
    n_steps, n_old = sizes[0], starts[sizes[0]]
    if (
        n_steps + 1 >= starts.size
        or max(n_old, PAGE * n_blocks[0]) + n_x > history[2].size
        or sizes[1] + n_most > history[6].size
    ):
        return MORE_HISTORY
    if n_steps > 1 and n_old + sizes[1] + n_x + n_most > n_seen * n_seen // PAGE:
        count = (n + PAGE - 1) // PAGE
        for j in range(n):
            if latest[j] >= 0:
                if min(matrix[3][0] + count, 1 + n * count) > matrix[0].shape[0]:
                    return MORE_PAGES
                catch_up(j, history, matrix, gather)
        begin_history(history, z, blocks, n_blocks[0])
    elif n_before <= SMALL:
        begin_history(history, z, blocks, n_blocks[0])
    return DONE


@kernel
def run(first, x, x_next, columns, n_coordinates, trace, residual, w, ids, matrix, history, moved, work, values):
    """iLSTD(λ) over transitions, in place: A += z dᵀ, μ += z (r - dᵀw), then :func:`descend`.

    The history is kept once more than SMALL rows are known and has at most n²/32 entries, n rows known: a tenth of what
    A takes when full. Then every column is caught up with. Whatever is decided depends on the steps so far only, not on
    how the stream is cut into calls.

    Parameters
    ----------
    first : int
        The transition to begin with.
    x, x_next : (indptr, rows, vals)
        Sparse vectors in row coordinates, one per transition.
    columns : (rewards, discounts, decays, rhos, alphas)
    trace : (z, tops, blocks, n_blocks (1,), listed)
    residual : (mu, largest |mu| of each block, integers of that length as scratch)
    w : (n,)
    ids : (n,), feature ids of the rows
    matrix : (pages, table, peaks, (next page, pages written without being reserved))
    history : see :class:`tlstd.zoo.step_history.StepHistory`
    moved : (n,), the step at which each coordinate was moved last
    work : (difference's, catch_up's, descend's, (steps learned, rows so far))
    values : (N, 1), where the value of each x_next right after its step is written, or (0, 1)

    Returns
    -------
    The transition to go on with, and why: DONE, or room is needed for pages or the history.
    """
    rewards, discounts, decays, rhos, alphas = columns
    z, tops, blocks, n_blocks, listed = trace
    mu, largest = residual[0], residual[1]
    mu_bits, largest_bits = mu.view(np.int64), largest.view(np.int64)
    pages, table, peaks, counts = matrix
    (scratch, d_rows, d_vals), gather, moves, progress = work
    count = (ids.size + PAGE - 1) // PAGE
    most_pages = 1 + ids.size * count
    for t in range(first, discounts.size):
        x_rows, x_vals = x[1][x[0][t] : x[0][t + 1]], x[2][x[0][t] : x[0][t + 1]]
        n_rows, n_vals = x_next[1][x_next[0][t] : x_next[0][t + 1]], x_next[2][x_next[0][t] : x_next[0][t + 1]]
        n_seen = _rows_in_use(_rows_in_use(progress[1], x_rows), n_rows)
        n_most = x_rows.size + n_rows.size
        if n_seen > SMALL:
            why = _keep_history(history, matrix, gather, trace, progress[1], n_seen, x_rows.size, n_most, ids.size)
            if why != DONE:
                return t, why
        if min(counts[0] + (n_most + n_coordinates) * count, most_pages) > pages.shape[0]:
            return t, MORE_PAGES
        progress[0] += 1
        progress[1] = n_seen
        now = progress[0]
        used = advance_trace(z, tops, blocks, n_blocks[0], listed, x_rows, x_vals, decays[t], rhos[t])
        n_blocks[0] = used
        if n_seen > SMALL:
            note_step(history, x_rows, x_vals, decays[t], rhos[t])
        n_d = difference(x_rows, x_vals, n_rows, n_vals, discounts[t], scratch, d_rows, d_vals)
        at_once = n_seen <= max(SMALL, 4 * x_rows.size)
        error = rewards[t]
        for e in range(n_d):
            row, value = d_rows[e], d_vals[e]
            error -= value * w[row]
            if at_once or now - moved[row] <= RECENT:
                add_to_column(pages, table, peaks, counts, row, value, z, blocks, used)
            else:
                note_entry(history, row, value)
        for i in range(used):
            b = blocks[i]
            for k in range(z.shape[1]):
                mu[b, k] += error * z[b, k]
            _refresh(mu, mu_bits, largest, largest_bits, b)
        descend(w, residual, ids, count, matrix, history, gather, moved, now, moves, alphas[t], n_coordinates)
        if values.size:
            value = 0.0
            for e in range(n_rows.size):
                value += n_vals[e] * w[n_rows[e]]
            values[t, 0] = value
    return discounts.size, DONE
