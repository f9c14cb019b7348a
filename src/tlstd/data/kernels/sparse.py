"""Sparse vectors in row coordinates: hashing feature ids to rows, inner products, scatters.

A set of sparse vectors is three arrays as in CSR: vector ``i`` has its entries at ``indptr[i]:indptr[i+1]`` of
``rows`` and ``vals``. ``scratch`` arguments are zero on entry and zero again on return.
"""

from __future__ import annotations

import numpy as np

from tlstd.core.jit import kernel, part

# --- feature id -> row --------------------------------------------------------------------------------------------
#
# An index is (table, slots, ids, counter): ``ids`` by row, ``counter[0]`` of them. Of each feature row + 1 is stored, 0
# for none: in ``table`` for every id, or, where that is empty, in ``slots``, an open-addressing hash table of twice a
# power of 2 numbers: id and row + 1 of slot i at 2i and 2i + 1.


@part
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


@part
def _row_of(index, key):
    """Row of an id, which is given one if it has none; in place."""
    table, slots, ids, counter = index
    if table.size:
        if table[np.uint64(key)] == 0:
            ids[counter[0]] = key
            counter[0] += 1
            table[np.uint64(key)] = counter[0]
        return np.int64(table[np.uint64(key)]) - 1
    at = _slot(slots, key)
    if slots[at + np.uint64(1)] == 0:
        ids[counter[0]] = key
        counter[0] += 1
        slots[at], slots[at + np.uint64(1)] = key, counter[0]
    return np.int64(slots[at + np.uint64(1)]) - 1


@part
def _place(index, key):
    """Row + 1 of an id, 0 if it has none."""
    table, slots, _, _ = index
    return np.int64(table[np.uint64(key)] if table.size else slots[_slot(slots, key) + np.uint64(1)])


@part
def _room(index):
    """How many features there may be before the index has to be made larger."""
    table, slots, ids, _ = index
    return ids.size if table.size else min(ids.size, slots.size // 4)


@part
def _known(index, ids, next_ids):
    """How many of the ids have a row, if that may matter for whether there is room for them; otherwise 0."""
    if index[3][0] + ids.size + next_ids.size <= _room(index):
        return 0
    count = 0
    for e in range(ids.size):
        count += int(_place(index, ids[e]) > 0)
    for e in range(next_ids.size):
        count += int(_place(index, next_ids[e]) > 0)
    return count


@kernel
def insert_ids(index, new_ids, first):
    """Give a row to each of ``new_ids`` from ``first`` on that has none, in order; in place.

    Returns the place of the first for which there is no room, their number if there is none.
    """
    counter, room = index[3], _room(index)
    for i in range(first, new_ids.size):
        if counter[0] >= room and _place(index, new_ids[i]) == 0:
            return i
        _row_of(index, new_ids[i])
    return new_ids.size


@kernel
def find_ids(table, slots, wanted, offset, out):
    """Write row + 1 - ``offset`` of each wanted id to ``out``, with 0 for row + 1 of those that have none.

    Returns how many these are.
    """
    missing = 0
    if table.size:
        for i in range(wanted.size):
            place = table[np.uint64(wanted[i])]
            out[i] = np.int64(place) - offset
            missing += int(place == 0)
    else:
        for i in range(wanted.size):
            found = slots[_slot(slots, wanted[i]) + np.uint64(1)]
            out[i] = np.int64(found) - offset
            missing += int(found == 0)
    return missing


# --- transitions -> vectors ---------------------------------------------------------------------------------------


@part
def _normalise(vals, start, stop):
    """Scale ``vals[start:stop]`` to unit length in place; returns the length (0 and zeros if it vanishes)."""
    largest = 0.0
    for e in range(start, stop):
        largest = max(largest, abs(vals[e]))
    if largest < 1e-150:  # squares of such entries underflow, and so would every product with them
        for e in range(start, stop):
            vals[e] = 0.0
        return 0.0
    total = 0.0
    for e in range(start, stop):
        total += (vals[e] / largest) ** 2
    length = largest * np.sqrt(total)
    for e in range(start, stop):
        vals[e] /= length
    return length


@part
def _replaced(vals, rows, start, stop, decay, rho, trace, stamps, clock):
    """Turn x into x̃ = x - decay·z on the support of x and move the replacing trace on; all in place.

    The trace is ``clock[1] * trace[row]`` where ``stamps[row] == clock[0]`` and 0 elsewhere, so that decay and reset
    cost nothing per entry.
    """
    epoch, scale = clock[0], clock[1]
    before = decay * scale
    new_scale = before * rho
    new_epoch = epoch
    for e in range(start, stop):
        row, x = rows[e], vals[e]
        if stamps[row] == epoch:
            vals[e] = x - before * trace[row]
        trace[row] = x
        stamps[row] = -1.0  # its new value follows below
    if new_scale == 0.0:
        new_epoch, new_scale = epoch + 1.0, 1.0
    elif not 1e-100 < new_scale < 1e100:
        for i in range(trace.size):
            if stamps[i] != -1.0:
                trace[i] *= new_scale
        new_scale = 1.0
    for e in range(start, stop):
        row = rows[e]
        trace[row] = rho * trace[row] / new_scale
        stamps[row] = new_epoch
    clock[0], clock[1] = new_epoch, new_scale


@kernel
def append_transitions(
    x_csr, x_picked, next_csr, next_picked, discounts, decays, rhos, seen, left, right, first, trace_state, n_buffered
):
    """Append transitions to the two buffers: x (or x̃) on the left, d = x - γ x_next on the right; in place.

    Vectors are stored in row coordinates and scaled to unit length, their lengths beside them. ``n_buffered`` is raised
    here only where nothing is left to be done for samples that have changed a replacing trace.
    """
    x_indptr, x_indices, x_data = x_csr
    n_indptr, n_indices, n_data = next_csr
    l_indptr, l_rows, l_vals, l_norms = left
    r_indptr, r_rows, r_vals, r_norms = right
    replacing, trace, stamps, clock = trace_state
    for t in range(x_picked.size):
        i = first + t
        p, p_end = x_indptr[x_picked[t]], x_indptr[x_picked[t] + 1]
        start = l_indptr[i]
        end = start
        for e in range(p, p_end):
            l_rows[end] = _row_of(seen, x_indices[e])
            l_vals[end] = x_data[e]
            end += 1
        l_indptr[i + 1] = end
        if replacing:
            _replaced(l_vals, l_rows, start, end, decays[t], rhos[t], trace, stamps, clock)
        # d = x - γ x_next: merge two sorted lists of ids
        q, q_end = n_indptr[next_picked[t]], n_indptr[next_picked[t] + 1]
        if discounts[t] == 0.0:
            q_end = q
        out = r_indptr[i]
        here = p
        while here < p_end or q < q_end:
            if q >= q_end or (here < p_end and x_indices[here] < n_indices[q]):
                value, row = x_data[here], l_rows[start + here - p]
                here += 1
            elif here >= p_end or n_indices[q] < x_indices[here]:
                value = -discounts[t] * n_data[q]
                row = _row_of(seen, n_indices[q])
                q += 1
            else:
                value, row = x_data[here] - discounts[t] * n_data[q], l_rows[start + here - p]
                here += 1
                q += 1
            if value != 0.0:
                r_rows[out] = row
                r_vals[out] = value
                out += 1
        r_indptr[i + 1] = out
        l_norms[i] = _normalise(l_vals, start, end)
        r_norms[i] = _normalise(r_vals, r_indptr[i], out)
    if replacing and first > 0:
        n_buffered[0] = first + x_picked.size


@kernel
def append_one(x_ids, x_vals, next_ids, next_vals, index, left, right, columns, at, step, lambda_, bound, limit):
    """As :func:`append_transitions`, for the sample ``at`` with one reward and an accumulating trace, if there is room.

    Returns the bound of the trace's length after it, which was ``bound`` before; -1.0, with nothing changed, if that
    would exceed ``limit`` or an array would have to be longer.
    """
    decays, rhos, rewards = columns
    reward, discount, trace_discount, rho = step
    n, n_next, total = x_ids.size, next_ids.size, 0.0
    for e in range(n):
        total += x_vals[e] * x_vals[e]
    decay = trace_discount * lambda_
    longest = rho * (decay * bound + np.sqrt(total))  # as in kernels.transitions.follow_lengths
    has_room = left[0][at] + n <= left[1].size and right[0][at] + n + n_next <= right[1].size
    has_room &= index[3][0] + n + n_next <= _room(index) + _known(index, x_ids, next_ids)
    if not (has_room and longest <= limit):
        return -1.0
    decays[at], rhos[at], rewards[at, 0] = decay, rho, reward
    x, x_next = (np.array([0, n]), x_ids, x_vals), (np.array([0, n_next]), next_ids, next_vals)
    row, none = np.zeros(1, dtype=np.int64), np.empty(0)
    scalars = np.full(1, discount), decays[at : at + 1], rhos[at : at + 1]
    append_transitions(x, row, x_next, row, *scalars, index, left, right, at, (False, none, none, none), row)
    return longest


@kernel
def append_sample(x_ids, x_vals, next_ids, next_vals, index, rows, columns, at, step, lambda_, bound, limit):
    """Write one sample, the one with the number ``at``, to a chunk of a ``SampleStore``, in place, if there is room.

    ``rows`` is (ptr, pos, val), the last one empty while all values are 1. As in ``SampleStore.append``, x is stored
    only if it is not the next row of the sample before, and x_next only if the discount is not 0.

    Returns the bound of the trace's length after this sample, whose bound was ``bound`` before, and the two rows.
    Instead of the bound -1.0, with nothing changed, if it would exceed ``limit``, if there is no room, or if there are
    values other than 1 without a place for them.
    """
    ids, counter = index[2:]
    ptr, pos, val = rows
    row, next_row, rewards, discounts, trace_discounts = columns
    reward, discount, trace_discount, rho = step
    n, n_next, total, ones = x_ids.size, 0 if discount == 0.0 else next_ids.size, 0.0, True
    for e in range(n):
        total += x_vals[e] * x_vals[e]
        ones &= x_vals[e] == 1.0
    for e in range(n_next):
        ones &= next_vals[e] == 1.0
    longest = rho * (trace_discount * lambda_ * bound + np.sqrt(total))  # as in kernels.transitions.follow_lengths
    n_rows = 1 + max(row[at - 1], next_row[at - 1])
    last, end = next_row[at - 1], ptr[n_rows]
    same = last >= 0 and ptr[last + 1] - ptr[last] == n
    if same:
        for e in range(n):
            there = ptr[last] + e
            same &= ids[pos[there]] == x_ids[e] and (1.0 if val.size == 0 else val[there]) == x_vals[e]
    n_entries = n_next if same else n + n_next
    length = min(row.size, next_row.size, rewards.shape[0], discounts.size, trace_discounts.size)
    has_room = at < length and n_rows + 2 < ptr.size and end + n_entries <= pos.size
    has_room &= ones if val.size == 0 else end + n_entries <= val.size
    has_room &= counter[0] + n + n_next <= _room(index) + _known(index, x_ids, next_ids[:n_next])
    if not (has_room and longest <= limit):
        return -1.0, -1, -1
    if not same:
        last = n_rows
        for e in range(n):
            pos[end] = _row_of(index, x_ids[e])
            if val.size:
                val[end] = x_vals[e]
            end += 1
        n_rows += 1
        ptr[n_rows] = end
    row[at], next_row[at] = last, -1
    if discount != 0.0:
        next_row[at] = n_rows
        for e in range(n_next):
            pos[end] = _row_of(index, next_ids[e])
            if val.size:
                val[end] = next_vals[e]
            end += 1
        ptr[n_rows + 1] = end
    rewards[at, 0], discounts[at], trace_discounts[at] = reward, discount, trace_discount
    return longest, row[at], next_row[at]


# --- values wᵀx of one sparse vector, added to ``out`` (m,) -------------------------------------------------------
#
# Plain sums in the order of the entries: the same on every machine, whatever BLAS it has. ``places`` is the table of an
# index, or its slots where it is hashed. Features that have no row, or one past the end of the weights, count as zero.


@part
def _found(places, hashed, key):
    """Row of an id, -1 if it has none."""
    return np.int64(places[_slot(places, key) + np.uint64(1) if hashed else np.uint64(key)]) - 1


@kernel
def add_weights(ids, vals, places, hashed, W, out):
    """out += Wᵀx."""
    for e in range(ids.size):
        row = _found(places, hashed, ids[e])
        if 0 <= row < W.shape[0]:
            for c in range(out.size):
                out[c] += vals[e] * W[row, c]


@kernel
def add_factored(ids, vals, places, hashed, B, C, out):
    """out += Cᵀ(Bᵀx), for the weights B C that were never formed."""
    Btx = np.zeros(B.shape[1])
    for e in range(ids.size):
        row = _found(places, hashed, ids[e])
        if 0 <= row < B.shape[0]:
            for j in range(Btx.size):
                Btx[j] += vals[e] * B[row, j]
    for j in range(Btx.size):
        for c in range(out.size):
            out[c] += Btx[j] * C[j, c]


@kernel
def add_combined(ids, vals, places, hashed, indptr, rows, entries, head, picked, C, scratch, out):
    """out += Σ_a (s_i · x) C[a] for i = picked[a]; s_0 is ``head`` if that has entries."""
    x_rows, on_head = np.empty(ids.size, dtype=np.int64), 0.0
    for e in range(ids.size):
        row = x_rows[e] = _found(places, hashed, ids[e])
        if row >= 0:
            scratch[row] = vals[e]
        if 0 <= row < head.size:
            on_head += vals[e] * head[row]
    for a in range(picked.size):
        i, total = picked[a], 0.0
        if i == 0 and head.size:
            total = on_head
        else:
            for e in range(indptr[i], indptr[i + 1]):
                total += entries[e] * scratch[rows[e]]
        for c in range(out.size):
            out[c] += total * C[a, c]
    for e in range(ids.size):
        if x_rows[e] >= 0:
            scratch[x_rows[e]] = 0.0


@kernel
def add_listed(ids, vals, known, W, out):
    """out += Wᵀx for weights of the features ``known``, which rise, as the ids do."""
    row = 0
    for e in range(ids.size):
        high = known.size
        while row < high:
            middle = (row + high) // 2
            if known[middle] < ids[e]:
                row = middle + 1
            else:
                high = middle
        if row < known.size and known[row] == ids[e]:
            for c in range(out.size):
                out[c] += vals[e] * W[row, c]


@kernel
def listed_values(indptr, ids, vals, known, W, out):
    """Write the values (N, m) of the rows of a CSR matrix, as :func:`add_listed`."""
    for i in range(indptr.size - 1):
        entries = slice(indptr[i], indptr[i + 1])
        out[i] = 0.0
        add_listed(ids[entries], vals[entries], known, W, out[i])


@kernel
def projected_value(ids, vals, places, hashed, n, table, first, y):
    """xᵀR y of a sparse vector, R columns of ``table`` (n, k) from ``first`` on; the sums are BLAS' own, as NumPy's."""
    R, known, count = np.empty((ids.size, y.size)), np.empty(ids.size), 0
    for e in range(ids.size):
        row = _found(places, hashed, ids[e])
        if 0 <= row < n:
            for j in range(y.size):
                R[count, j] = table[row, first + j]
            known[count] = vals[e]
            count += 1
    if count == 1:
        return known[0] * np.dot(R[0], y)
    return np.dot(known[:count], np.dot(R[:count], y))


# --- traces and repeats -------------------------------------------------------------------------------------------


@kernel
def traces_from_features(decays, rhos, has_head, S):
    """Turn coordinates of the vectors s_j, rows of S (k, size), into those of the traces; in place.

    z_j = ρ_j (decay_j z_{j-1} + s_j). With a head, s_0 is z_0 itself (what came before the block and ρ are already in
    it).
    """
    for j in range(rhos.size):
        rho = 1.0 if j == 0 and has_head else rhos[j]
        g = rhos[j] * decays[j]
        for c in range(S.shape[1]):
            S[j, c] *= rho
        if j > 0:
            for c in range(S.shape[1]):
                S[j, c] += g * S[j - 1, c]


@kernel
def traces_from_features_adjoint(decays, rhos, has_head, B):
    """Turn coefficients of the traces z_j, rows of B (k, m), into those of the vectors s_j; in place.

    The transpose of :func:`traces_from_features`.
    """
    k = rhos.size
    for j in range(k - 2, -1, -1):
        g = rhos[j + 1] * decays[j + 1]
        for c in range(B.shape[1]):
            B[j, c] += g * B[j + 1, c]
    for j in range(k):
        rho = 1.0 if j == 0 and has_head else rhos[j]
        for c in range(B.shape[1]):
            B[j, c] *= rho


@kernel
def find_repeats(vectors, first, last, table, same_as):
    """Write to ``same_as``, for each of the vectors ``first:last``, the first vector that equals it (or itself).

    ``table`` (size a power of 2, more than ``last``) has the first vectors by the hash of their entries, -1 where it is
    free; changed in place.
    """
    indptr, rows, vals = vectors
    mask = table.size - 1
    for j in range(first, last):
        length = indptr[j + 1] - indptr[j]
        h = np.uint64(length)
        for e in range(indptr[j], indptr[j + 1]):
            h = (h ^ np.uint64(rows[e])) * np.uint64(0xFF51AFD7ED558CCD)
            h ^= h >> np.uint64(29)
        slot = np.int64(h & np.uint64(mask))
        while table[slot] >= 0:
            i = table[slot]
            same = indptr[i + 1] - indptr[i] == length
            e = 0
            while same and e < length:
                same = rows[indptr[i] + e] == rows[indptr[j] + e] and vals[indptr[i] + e] == vals[indptr[j] + e]
                e += 1
            if same:
                break
            slot = (slot + 1) & mask
        if table[slot] < 0:
            table[slot] = j
        same_as[j] = table[slot]


# --- inner products and scatters ----------------------------------------------------------------------------------


@kernel
def gram(vectors, same_as, first, last, lists, G):
    """Fill rows and columns ``first:last`` of the Gram matrix G of the vectors ``0:last``.

    Only pairs of entries that meet in a row are touched: ``lists`` has the last entry of each row (-1 if there is
    none), and for each entry the one before it in its row and its vector. A vector that equals an earlier one
    (``same_as``) is not listed; its products are copied.
    """
    indptr, rows, vals = vectors
    last_in, before, owner = lists
    for j in range(first, last):
        if same_as[j] == j:
            for i in range(j + 1):
                G[i, j] = 0.0
            for e in range(indptr[j], indptr[j + 1]):
                G[j, j] += vals[e] * vals[e]
                f = last_in[rows[e]]
                while f >= 0:
                    G[owner[f], j] += vals[e] * vals[f]
                    f = before[f]
            for e in range(indptr[j], indptr[j + 1]):
                before[e] = last_in[rows[e]]
                owner[e] = j
                last_in[rows[e]] = e
            for i in range(j):
                G[i, j] = G[same_as[i], j]
                G[j, i] = G[i, j]
        else:
            for i in range(j):
                G[i, j] = G[i, same_as[j]]
                G[j, i] = G[i, j]
            G[j, j] = G[same_as[j], same_as[j]]


@kernel
def dots(indptr, rows, vals, first, last, B, n_rows, n_cols, out):
    """out[j] = s_jᵀ B[:n_rows, :n_cols] for the vectors ``first:last``; rows of -1 or past ``n_rows`` count as zero."""
    for j in range(first, last):
        for c in range(n_cols):
            out[j, c] = 0.0
        for e in range(indptr[j], indptr[j + 1]):
            row, value = rows[e], vals[e]
            if 0 <= row < n_rows:
                for c in range(n_cols):
                    out[j, c] += value * B[row, c]


@kernel
def scatter(indptr, rows, vals, picked, M, n_cols, Y):
    """Y += Σ_i s_{picked[i]} M[i]ᵀ, in place."""
    for i in range(picked.size):
        for e in range(indptr[picked[i]], indptr[picked[i] + 1]):
            row, value = rows[e], vals[e]
            for c in range(n_cols):
                Y[row, c] += value * M[i, c]


@kernel
def combination_residuals(indptr, rows, vals, wanted, picked, M, scratch, out):
    """out[j] = ‖s_{wanted[j]} - Σ_i M[i, j] s_{picked[i]}‖, over the non-zeros alone."""
    for j in range(wanted.size):
        w = wanted[j]
        for e in range(indptr[w], indptr[w + 1]):
            scratch[rows[e]] = vals[e]
        for i in range(picked.size):
            if M[i, j] != 0.0:
                for e in range(indptr[picked[i]], indptr[picked[i] + 1]):
                    scratch[rows[e]] -= M[i, j] * vals[e]
        total = 0.0
        for e in range(indptr[w], indptr[w + 1]):
            total += scratch[rows[e]] ** 2
            scratch[rows[e]] = 0.0
        for i in range(picked.size):
            if M[i, j] != 0.0:
                for e in range(indptr[picked[i]], indptr[picked[i] + 1]):
                    total += scratch[rows[e]] ** 2
                    scratch[rows[e]] = 0.0
        out[j] = np.sqrt(total)


# --- a basis that grows by one vector at a time: coordinates have a row per vector ----------------------------------


@kernel
def project_on_picked(picked, products, u, e, on_U, on_E, on_Q, q):
    """Coordinates ``q``, written, on the picked directions of a vector with these inner products with S_J, U and E."""
    for a in range(q.size):
        i = picked[a]
        total = products[a]
        for c in range(u.size):
            total -= on_U[i, c] * u[c]
        for c in range(e.size):
            total -= on_E[i, c] * e[c]
        for b in range(a):
            total -= on_Q[i, b] * q[b]
        q[a] = total / on_Q[i, a]


@kernel
def sort_in(j, picked, m, gram, on_U, on_E, on_Q):
    """Write the coordinates of vector j on the m picked directions to ``on_Q[j]``; returns its squared residual."""
    products = np.empty(m)
    for a in range(m):
        products[a] = gram[picked[a], j]
    project_on_picked(picked, products, on_U[j], on_E[j], on_U, on_E, on_Q, on_Q[j, :m])
    left = gram[j, j]
    for c in range(on_U.shape[1]):
        left -= on_U[j, c] * on_U[j, c]
    for c in range(on_E.shape[1]):
        left -= on_E[j, c] * on_E[j, c]
    for a in range(m):
        left -= on_Q[j, a] * on_Q[j, a]
    return left


@kernel
def back_substitute(picked, on_Q, q):
    """Turn coordinates on the directions into coefficients on the picked vectors, in place."""
    for a in range(q.size - 1, -1, -1):
        q[a] /= on_Q[picked[a], a]
        for b in range(a):
            q[b] -= on_Q[picked[a], b] * q[a]


@kernel
def subtract_picked(picked, on_S, rows, out):
    """out -= Σ_a on_S[a] rows[picked[a]], in place."""
    for a in range(on_S.size):
        for c in range(out.size):
            out[c] -= on_S[a] * rows[picked[a], c]


@kernel
def dense_to_csr(X, picked):
    """The non-zeros of the picked rows of a dense matrix, as CSR arrays."""
    count = 0
    for i in picked:
        for j in range(X.shape[1]):
            if X[i, j] != 0.0:
                count += 1
    indptr = np.zeros(picked.size + 1, dtype=np.int64)
    indices = np.empty(count, dtype=np.int64)
    data = np.empty(count)
    end = 0
    for t in range(picked.size):
        for j in range(X.shape[1]):
            if X[picked[t], j] != 0.0:
                indices[end] = j
                data[end] = X[picked[t], j]
                end += 1
        indptr[t + 1] = end
    return indptr, indices, data


@kernel
def row_squares(ptr, val, rows, out):
    """out[t] = ‖x_t‖², with x_t in row ``rows[t]``."""
    for t in range(rows.size):
        start, stop = ptr[rows[t]], ptr[rows[t] + 1]
        if val is None:
            out[t] = stop - start
        else:
            total = 0.0
            for e in range(start, stop):
                total += val[e] * val[e]
            out[t] = total
