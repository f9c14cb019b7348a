"""TD(λ) and its relatives: a loop for sparse features, one for dense ones, one for gradient TD, and rows of features.

Both algorithms move a trace and the weights along it, z ← g z + s x and w ← w + δ z - c x, with g = ρ γ_t λ and

    TD            s = ρ M             δ = α (r + γ_{t+1} v' - v)       c = 0
    true-online   s = α (1 - g z·x)   δ = r + γ_{t+1} v' - v_old       c = α (v - v_old)      v_old ← v'

where v = w·x and v' = w·x'. (Replacing traces: z = s x where x is not zero.) ``steps`` has one line each of α_t,
γ_{t+1}, γ_t λ, ρ_t and the emphasis M_t, which is 1 for TD; rewards are (N, m) for m targets, which share the trace.

Gradient TD has a second set of weights H, which move along the same trace, z ← ρ (γ_t λ z + x), with a step size β of
their own (the fifth line of ``steps``, in place of M) and a regularisation κ. With δ = r + γ_{t+1} v' - v, all from
before the step,

    GTD2          w ← w + α ((h·x) x - γ_{t+1} (1-λ) (z·h) x')
    TDC, TDRC     w ← w + α (δ z - γ_{t+1} (1-λ) (z·h) x')
    all           h ← h + β (δ z - (h·x) x - κ h)

W and H are one table of 2 m columns, and h is kept as σ times its columns, so that -β κ h changes one number. z·h would
be a sum over the trace; it follows from three numbers that are known, s = z·h itself, q = z·z and z·x: ``more`` is σ, q
and the m numbers s.

**Lazy sums.** The decay is one factor for all entries of a trace, and a step moves the weights by one multiple of it.
So the sparse loop keeps z = P y and W = U + y Sᵀ: a decay changes the number P, a step the m numbers S, and only the
rows of x are touched, however long the trace is. Where y changes by Δ, U gives S Δ back. That would lose digits if S
were large against what W has gained by it, so a new *epoch* begins, with P = 1 and S = 0, when P leaves [1/64, 64]
(after about 4 / (1 - γλ) steps), when x is 8 times larger than anything on the trace, and when the trace is emptied.

What the epochs since epoch k did is a factor D_k for y and m sums C_k for U: z = P D_k y and W = U + y (C_k + D_k S)ᵀ
where k is the epoch in which the row was last used. A row catches up (U += C_k y, y *= D_k) when it is used again, and
every ``EPOCHS`` epochs, or when the trace is emptied, :func:`settle` lets all rows of the trace do so. Entries that
have decayed below ``CUT`` times the largest then leave; that is 1e-4 of what rounding costs. The weights are those of
a literal dense loop to rounding, relative to the largest of them.

``vectors`` is (indptr, rows, vals, first, second): x_t is vector ``first[t]`` and x_{t+1} is vector ``second[t]``, with
the entries at ``indptr[i]:indptr[i+1]`` of ``rows`` and ``vals``. Row 0 is that of no feature: its weight is 0.

``values`` (N, m) gets the value of each x_{t+1} right after its step; with no rows nothing is computed. Of ``targets``
only the length counts: a tuple of one, whose length is a constant to the compiler, so that nothing is left of the loops
over targets, or an array of m.

``lazy`` is (table, stamps, active, counts, numbers). A row of ``table`` is y and the m numbers U, one row after the
other in 1-D. ``stamps`` has the epoch of each row, 0 for those that are not on the trace; ``active`` begins with the
rows on it. ``counts`` is how many these are, the present epoch, and the number of samples learned from. ``numbers``
are the few others, see :func:`parts`: P and a bound of abs(y), S, v_old, and ``epochs``, whose row k is D_k and the m
numbers C_k. ``width`` is m + 1, or 2 m + 1.

Rows are given to feature ids by a table of all ids or by hashing. ``slots`` is an open-addressing table, its size twice
a power of 2: id and row of slot i at 2i and 2i + 1, the row 0 where a slot is free.
"""

from __future__ import annotations

import numpy as np

from tlstd.core.jit import inlined, kernel, part

CUT = 1e-20
"""Entries of a sparse trace leave it below this fraction of its largest entry."""

EPOCHS = 32
"""Epochs between two settlings."""

_LONGEST = 1e100  # validation.MAX_MAGNITUDE
_TINY = 1e-300  # below this the next product would be subnormal: slow, and worth nothing


# --- features to rows -------------------------------------------------------------------------------------------------


@part
def _slot(slots, key):
    """Position of ``key``, or of the free slot for it; as in ``data/kernels/sparse.py``, which fills the table."""
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
def row_of(table, hashed, key):
    """The row of one id, 0 if it has none; see :attr:`tlstd.data.feature_index.FeatureIndex.table`."""
    return table[_slot(table, key) + np.uint64(1)] if hashed else table[np.uint64(key)]


# --- sparse features --------------------------------------------------------------------------------------------------


@kernel
def parts(numbers, m):
    """P and the bound of abs(y), S (m,), v_old (m,), and the epochs one after the other; views."""
    return numbers[:2], numbers[2 : 2 + m], numbers[2 + m : 2 + 2 * m], numbers[2 + 2 * m :]


@kernel
def close_epoch(epochs, epoch, S, P, width):
    """What the present epoch did joins what the rows of each epoch have to catch up with; in place."""
    for k in range(width, (epoch + 1) * width, width):
        D = epochs[k]
        if D != 0.0:
            for c in range(width - 1):
                epochs[k + 1 + c] += D * S[c]
            epochs[k] = D * P if D * P >= _TINY else 0.0


@kernel
def open_epoch(epochs, epoch, S, width):
    """Begin an epoch, in which nothing has happened yet."""
    k = epoch * width
    epochs[k] = 1.0
    for c in range(width - 1):
        epochs[k + 1 + c] = 0.0
        S[c] = 0.0


@kernel
def settle(table, stamps, active, n_active, epochs, epoch, S, P, largest, width):
    """All rows catch up, and epoch 1 begins; entries below ``CUT`` leave. Returns how many stay, and the largest.

    Which of them leave could not be predicted, so there is no branch.
    """
    close_epoch(epochs, epoch, S, P, width)
    threshold = max(_TINY, CUT * P * largest)
    kept, largest = 0, 0.0
    for i in range(n_active):
        row = active[i]
        at, k = row * width, stamps[row] * width
        y = table[at]
        table[at + 1] += y * epochs[k + 1]
        for c in range(2, width):
            table[at + c] += y * epochs[k + c]
        z = y * epochs[k]
        stays = abs(z) >= threshold  # not where a trace that had overflowed is emptied
        table[at] = z if stays else 0.0
        stamps[row] = int(stays)
        active[kept] = row
        kept += int(stays)
        largest = max(largest, abs(z))
    open_epoch(epochs, 1, S, width)
    return kept, largest if kept else 0.0


@inlined
def catch_up(rows, start, stop, table, stamps, active, n_active, epochs, epoch, width):
    """Bring the rows at ``start:stop`` to the present epoch and list them; in place. Returns how many are listed.

    Whether a row is listed already could not be predicted, so there is no branch; row 0 is passed over.
    """
    for e in range(start, stop):
        row = rows[e]
        if row != 0:
            at, stamp = row * width, stamps[row]
            k = stamp * width
            y = table[at]
            table[at + 1] += y * epochs[k + 1]
            for c in range(2, width):
                table[at + c] += y * epochs[k + c]
            table[at] = y * epochs[k]
            active[n_active] = row
            n_active += 1 if stamp == 0 else 0
            stamps[row] = epoch
    return n_active


@part
def next_epoch(table, stamps, active, n_active, epochs, epoch, S, P, largest, width):
    """Begin a new epoch, in place. Returns how many rows are listed, the epoch, and the bound of abs(y)."""
    if P == 0.0 or epoch == EPOCHS:
        n_active, largest = settle(table, stamps, active, n_active, epochs, epoch, S, P, largest, width)
        return n_active, 1, largest
    close_epoch(epochs, epoch, S, P, width)
    open_epoch(epochs, epoch + 1, S, width)
    return n_active, epoch + 1, largest * P


@inlined
def value_of_x(rows, vals, start, stop, table, S, v, width):
    """v = w·x of rows that have caught up, into ``v`` (m,). Returns y·x and the largest entry of x.

    Sums over entries are in registers for the first target, here and below.
    """
    for c in range(1, width - 1):
        v[c] = 0.0
    total, overlap, size = 0.0, 0.0, 0.0
    for e in range(start, stop):
        at, value = width * rows[e], vals[e]
        size = max(size, abs(value))
        overlap += value * table[at]
        total += value * table[at + 1]
        for c in range(1, width - 1):
            v[c] += value * table[at + 1 + c]
    v[0] = total
    for c in range(width - 1):
        v[c] += overlap * S[c]
    return overlap, size


@inlined
def value_of_next(rows, vals, start, stop, table, stamps, active, n_active, epochs, epoch, S, v_next, width):
    """v' = w·x' into ``v_next`` (m,), which is 0, and its rows catch up, in place. Returns how many are listed."""
    total, overlap = 0.0, 0.0
    for e in range(start, stop):
        row, value = rows[e], vals[e]
        if row != 0:  # as in catch_up
            at, stamp = width * row, stamps[row]
            k = width * stamp
            y = table[at]
            u = table[at + 1] + y * epochs[k + 1]
            for c in range(1, width - 1):
                table[at + 1 + c] += y * epochs[k + 1 + c]
                v_next[c] += value * table[at + 1 + c]
            y *= epochs[k]
            table[at], table[at + 1] = y, u
            overlap += value * y
            total += value * u
            active[n_active] = row
            n_active += 1 if stamp == 0 else 0
            stamps[row] = epoch
    v_next[0] = total
    for c in range(width - 1):
        v_next[c] += overlap * S[c]
    return n_active


@inlined
def correct(alpha, decay, v, v_next, v_old, correction, m):
    """c = α (v - v_old), then v is the v_old that δ subtracts, and v_old ← v'; in place."""
    for c in range(m):
        if decay == 0.0:  # where the trace starts v_old cancels: better left out
            v_old[c] = v[c]
        correction[c] = alpha * (v[c] - v_old[c])
        v[c] = v_old[c]
        v_old[c] = v_next[c]


@inlined
def move(rows, vals, start, stop, table, share, replacing, S, correction, largest, width):
    """y ← y + share · x, or its replacing form, and w ← w - c x, with w = U + y S as it is; in place.

    Returns the bound of abs(y).
    """
    S_0, correction_0 = S[0], correction[0]
    for e in range(start, stop):
        at, value = width * rows[e], vals[e]
        change = share * value
        y = table[at]
        if replacing:
            change -= y
        y += change
        table[at] = y
        largest = max(largest, abs(y))
        table[at + 1] -= S_0 * change + correction_0 * value
        for c in range(1, width - 1):
            table[at + 1 + c] -= S[c] * change + correction[c] * value
    return largest


@inlined
def value_after(rows, vals, start, stop, table, stamps, epochs, S, values, t, m, width):
    """w·x' as it is after the step, into row ``t`` of ``values``."""
    for c in range(m):
        values[t, c] = 0.0
    for e in range(start, stop):
        at, k = width * rows[e], width * stamps[rows[e]]
        for c in range(m):
            w = table[at + 1 + c] + table[at] * (epochs[k + 1 + c] + epochs[k] * S[c])
            values[t, c] += vals[e] * w


@kernel
def learn(vectors, steps, rewards, lazy, replacing, true_online, values, targets):
    """Learn from sparse transitions, in place. O(nnz m) each, with their share of settling."""
    m, width = len(targets), len(targets) + 1
    indptr, rows, vals, first, second = vectors
    table, stamps, active, counts, numbers = lazy
    scale, S, v_old, epochs = parts(numbers, m)
    n_active, epoch, P, largest = counts[0], counts[1], scale[0], scale[1]
    v, v_next, correction = np.zeros((3, m))
    caught_up = -1  # the vector that is known to be in the present epoch
    for t in range(first.size):
        alpha, discount, decay, rho = steps[0, t], steps[1, t], steps[2, t], steps[3, t]
        start, stop = indptr[first[t]], indptr[first[t] + 1]
        i, j = indptr[second[t]], indptr[second[t] + 1]
        P *= rho * decay
        fresh = not 1.0 / 64.0 <= P <= 64.0
        if fresh:
            n_active, epoch, largest = next_epoch(table, stamps, active, n_active, epochs, epoch, S, P, largest, width)
            P, caught_up = 1.0, -1

        # v = w·x and v' = w·x'
        if caught_up != first[t]:
            n_active = catch_up(rows, start, stop, table, stamps, active, n_active, epochs, epoch, width)
        overlap, size = value_of_x(rows, vals, start, stop, table, S, v, width)
        caught_up = -1
        for c in range(m):
            v_next[c] = 0.0
        if discount != 0.0 or true_online:
            caught_up = second[t]
            n_active = value_of_next(rows, vals, i, j, table, stamps, active, n_active, epochs, epoch, S, v_next, width)

        # z ← g z + s x, with w as it is
        share = alpha * (1.0 - P * overlap) if true_online else rho * steps[4, t]
        if abs(share) * size > 8.0 * P * largest and not fresh:
            n_active, epoch, largest = next_epoch(table, stamps, active, n_active, epochs, epoch, S, P, largest, width)
            n_active = catch_up(rows, start, stop, table, stamps, active, n_active, epochs, epoch, width)
            P, caught_up = 1.0, -1
        share /= P
        if true_online:
            correct(alpha, decay, v, v_next, v_old, correction, m)
        largest = move(rows, vals, start, stop, table, share, replacing, S, correction, largest, width)

        # w ← w + δ z
        for c in range(m):
            delta = rewards[t, c] + discount * v_next[c] - v[c]
            S[c] += (delta if true_online else alpha * delta) * P

        if values.size:
            value_after(rows, vals, i, j, table, stamps, epochs, S, values, t, m, width)
    counts[0], counts[1], scale[0], scale[1] = n_active, epoch, P, largest
    counts[2] += first.size


@inlined
def rows_of_one(x_ids, x_vals, next_ids, next_vals, index, hashed, bound, decay, rho, rows, vals):
    """Write rows and values of one transition's two vectors, one after the other.

    Returns a bound of the trace's length after it, or NaN if a feature of x has no row yet.
    """
    n, total = x_ids.size, 0.0
    for e in range(n):
        rows[e] = row_of(index, hashed, x_ids[e])
        if rows[e] == 0:
            total = np.nan
        vals[e] = x_vals[e]
        total += x_vals[e] * x_vals[e]
    for e in range(next_ids.size):
        rows[n + e] = row_of(index, hashed, next_ids[e])
        vals[n + e] = next_vals[e]
    return rho * (decay * bound + np.sqrt(total))  # as in kernels.transitions.follow_lengths


@kernel
def learn_one(
    x_ids,
    x_vals,
    next_ids,
    next_vals,
    index,
    table,
    stamps,
    active,
    counts,
    numbers,
    bound,
    hashed,
    reward,
    alpha,
    discount,
    trace_discount,
    rho,
    lambda_,
    replacing,
    true_online,
):
    """Learn from one sparse transition with one target, in place, if it is an everyday one. O(nnz).

    Returns False, with nothing changed, if a feature of x has no row yet, or if the trace could become longer than
    ``bound``, which otherwise follows it, may ever be: then the sample has to go another way, where errors are raised.
    """
    n = x_ids.size
    rows, vals = np.empty(n + next_ids.size, dtype=np.uint32), np.empty(n + next_ids.size)
    longest = rows_of_one(
        x_ids, x_vals, next_ids, next_vals, index, hashed, bound[0], trace_discount * lambda_, rho, rows, vals
    )
    if not longest <= _LONGEST:
        return False
    where = np.array([0, n, n + next_ids.size, 0, 1])
    step = np.array([alpha, discount, trace_discount * lambda_, rho, 1.0, reward])
    vectors, lazy = (where[:3], rows, vals, where[3:4], where[4:]), (table, stamps, active, counts, numbers)
    steps, rewards = step[:5].reshape((5, 1)), step[5:].reshape((1, 1))
    learn(vectors, steps, rewards, lazy, replacing, true_online, rewards[:0], (n,))
    bound[0] = longest
    return True


@kernel
def value(ids, vals, index, hashed, table, stamps, numbers):
    """w·x of one sparse vector and one target; the sum is BLAS' own, as that of NumPy."""
    _, S, _, epochs = parts(numbers, 1)
    known, w, n = np.empty(ids.size), np.empty(ids.size), 0
    for e in range(ids.size):
        row = np.int64(row_of(index, hashed, ids[e]))
        if row != 0:
            k = 2 * stamps[row]
            w[n] = table[2 * row + 1] + table[2 * row] * (epochs[k + 1] + epochs[k] * S[0])
            known[n] = vals[e]
            n += 1
    return np.dot(known[:n], w[:n])


# --- gradient TD ------------------------------------------------------------------------------------------------------


@inlined
def shrink(table, epochs, S, more, factor, m, width):
    """h ← factor · h, by its σ alone, in place; returns σ of before. O(d m) once in many steps, else O(1)."""
    sigma = more[0]
    more[0] *= factor
    if not 1e-60 <= abs(more[0]) <= 1e60:  # multiply the columns of h by σ, and begin again with σ = 1
        for at in range(0, table.size, width):
            for c in range(1 + m, width):
                table[at + c] *= more[0]
        for k in range(0, epochs.size, width):
            for c in range(1 + m, width):
                epochs[k + c] *= more[0]
        for c in range(m, width - 1):
            S[c] *= more[0]
        more[0] = 1.0
    return sigma


@inlined
def squares(vals, start, stop, decayed, decay, rho, more):
    """Let z·z follow, in place, where the trace before x is ``decayed`` along x. Returns z·x."""
    square = 0.0
    for e in range(start, stop):
        square += vals[e] * vals[e]
    more[1] = (rho * decay) ** 2 * more[1] + 2.0 * rho * decayed + rho * rho * square
    return decayed + rho * square


@inlined
def gradient_moves(rewards, t, step, lambda_, kappa, second, along, sigma, P, v, v_next, correction, more, m):
    """Turn v and v' into what w and h move along z, x' and x (the last negative), and let z·h follow; in place."""
    alpha, discount, decay, rho, beta = step
    for c in range(m):
        hx = sigma * v[m + c]
        delta = rewards[t, c] + discount * v_next[c] - v[c]
        s = rho * (decay * more[2 + c] + hx)
        v_next[c] = alpha * discount * (1.0 - lambda_) * s
        correction[c] = -alpha * hx if second else 0.0
        correction[m + c] = beta * hx / more[0]
        v[c], v[m + c] = 0.0 if second else alpha * delta * P, beta * delta * P / more[0]
        more[2 + c] = (1.0 - beta * kappa) * s + beta * (delta * more[1] - hx * along)


@kernel
def learn_gradient(vectors, steps, rewards, lazy, more, lambda_, kappa, second, values, targets):
    """Learn from sparse transitions by TDC, or GTD2 if ``second``, in place. O(nnz m) each, as TD.

    All features of x' have a row, unless γ_{t+1} is 0.
    """
    m, width = len(targets), 2 * len(targets) + 1
    indptr, rows, vals, first, next_ = vectors
    table, stamps, active, counts, numbers = lazy
    scale, S, _, epochs = parts(numbers, 2 * m)
    n_active, epoch, P, largest = counts[0], counts[1], scale[0], scale[1]
    v, v_next, correction = np.zeros((3, 2 * m))
    caught_up = -1
    for t in range(first.size):
        step = steps[0, t], steps[1, t], steps[2, t], steps[3, t], steps[4, t]
        _, discount, decay, rho, beta = step
        start, stop, i, j = indptr[first[t]], indptr[first[t] + 1], indptr[next_[t]], indptr[next_[t] + 1]
        P *= rho * decay
        fresh = not 1.0 / 64.0 <= P <= 64.0
        if fresh:
            n_active, epoch, largest = next_epoch(table, stamps, active, n_active, epochs, epoch, S, P, largest, width)
            P, caught_up = 1.0, -1
            if decay * rho == 0.0:
                more[1:] = 0.0

        # v = w·x and h·x, then v' = w·x'
        if caught_up != first[t]:
            n_active = catch_up(rows, start, stop, table, stamps, active, n_active, epochs, epoch, width)
        overlap, size = value_of_x(rows, vals, start, stop, table, S, v, width)
        v_next[:] = 0.0
        caught_up = -1
        if discount != 0.0:
            caught_up = next_[t]
            n_active = value_of_next(rows, vals, i, j, table, stamps, active, n_active, epochs, epoch, S, v_next, width)
        if rho * size > 8.0 * P * largest and not fresh:
            n_active, epoch, largest = next_epoch(table, stamps, active, n_active, epochs, epoch, S, P, largest, width)
            n_active = catch_up(rows, start, stop, table, stamps, active, n_active, epochs, epoch, width)
            overlap, P, caught_up = P * overlap, 1.0, -1

        # z·z, z·x, and by them z·h before and after the step
        along = squares(vals, start, stop, P * overlap, decay, rho, more)
        sigma = shrink(table, epochs, S, more, 1.0 - beta * kappa, m, width)
        gradient_moves(rewards, t, step, lambda_, kappa, second, along, sigma, P, v, v_next, correction, more, m)

        # z ← ρ (γ_t λ z + x) with w and h as they are, then w and h along z, x and x'
        largest = move(rows, vals, start, stop, table, rho / P, False, S, correction, largest, width)
        for c in range(2 * m):
            S[c] += v[c]
        if discount != 0.0 and lambda_ != 1.0:
            for e in range(i, j):
                for c in range(m):
                    table[width * rows[e] + 1 + c] -= v_next[c] * vals[e]
        if values.size:
            value_after(rows, vals, i, j, table, stamps, epochs, S, values, t, m, width)
    counts[0], counts[1], scale[0], scale[1] = n_active, epoch, P, largest
    counts[2] += first.size


@kernel
def learn_gradient_one(
    x_ids,
    x_vals,
    next_ids,
    next_vals,
    index,
    table,
    stamps,
    active,
    counts,
    numbers,
    bound,
    hashed,
    reward,
    step,
    lambda_,
    more,
    kappa,
    second,
):
    """As :func:`learn_one` for :func:`learn_gradient`; ``step`` is (α, γ_{t+1}, γ_t λ, ρ, β)."""
    n = x_ids.size
    rows, vals = np.empty(n + next_ids.size, dtype=np.uint32), np.empty(n + next_ids.size)
    longest = rows_of_one(x_ids, x_vals, next_ids, next_vals, index, hashed, bound[0], step[2], step[3], rows, vals)
    known = longest <= _LONGEST
    for e in range(n, rows.size):
        known &= rows[e] != 0
    if not known:
        return False
    where, steps, rewards = np.array([0, n, rows.size, 0, 1]), np.empty((5, 1)), np.full((1, 1), reward)
    for c in range(5):
        steps[c, 0] = step[c]
    vectors, lazy = (where[:3], rows, vals, where[3:4], where[4:]), (table, stamps, active, counts, numbers)
    learn_gradient(vectors, steps, rewards, lazy, more, lambda_, kappa, second, rewards[:0], (n,))
    bound[0] = longest
    return True


@kernel
def follow_on(discounts, rhos, interests, F, rho, out):
    """Write F_t = ρ_{t-1} γ_t F_{t-1} + i_t of each step to line 0 of ``out``, from column 1 on, and ρ_t to line 1."""
    out[0, 0], out[1, 0] = F, rho
    for t in range(discounts.size):
        factor = rho * discounts[t]
        F = interests[t] + (factor * F if factor != 0.0 else 0.0)
        rho = rhos[t]
        out[0, t + 1], out[1, t + 1] = F, rho


# --- dense features ---------------------------------------------------------------------------------------------------


@kernel
def learn_dense(X, picked, X_next, next_picked, steps, rewards, Wt, z, v_old, counts, true_online, values):
    """Learn from picked rows of dense matrices with accumulating traces, in place; ``Wt`` is (m, d). O(d m) each."""
    for t in range(picked.size):
        x, x_next = X[picked[t]], X_next[next_picked[t]]
        alpha, discount, decay, rho = steps[0, t], steps[1, t], steps[2, t], steps[3, t]
        g = rho * decay
        share = rho * steps[4, t]
        if true_online:
            share = alpha * (1.0 - decay * np.dot(z, x)) if decay != 0.0 else alpha
        for j in range(x.size):
            new = share * x[j] if g == 0.0 else g * z[j] + share * x[j]
            z[j] = 0.0 if abs(new) < _TINY else new
        for c in range(Wt.shape[0]):
            w = Wt[c]
            v, v_next = np.dot(w, x), 0.0
            if discount != 0.0 or true_online:
                v_next = np.dot(w, x_next)
            if true_online:
                old = v if decay == 0.0 else v_old[c]
                correction = alpha * (v - old)
                delta = rewards[t, c] + discount * v_next - old
                for j in range(x.size):
                    w[j] += delta * z[j] - correction * x[j]
                v_old[c] = v_next
            else:
                step = alpha * (rewards[t, c] + discount * v_next - v)
                for j in range(x.size):
                    w[j] += step * z[j]
            if values.size:
                values[t, c] = np.dot(w, x_next)
    counts[2] += picked.size
