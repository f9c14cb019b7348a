"""SwiftTD: true-online TD(λ) with a step size for every feature, adapted by meta-gradient descent. One loop.

A feature that is not on the trace has three numbers, its row of ``rows``: the weight w, the step size α and h = ∂w/∂β
with β = ln α. One that is on the trace has a *slot*, a column of ``slots``, with the lines

    y, q, y_bar     the traces z = P y of w, p = P q of β, and z̄ = P ȳ = ∂z/∂β; P is one number for all
    w, alpha, h     as above, but here
    h_old           h one step ago
    fade            P·fade is the product of all decays since the feature was last active
    u               scratch

A step of the algorithm moves w, α and h of everything on the trace, and α not linearly: nothing can be put off until a
row is read, as :mod:`tlstd.classic.kernels.td` does. So the slots lie side by side, and what is done to all of them are
four loops over a few lines each, which the compiler turns into vector instructions. Decay is the one number P. When it
has fallen below 1/64 the lines are multiplied by it, and features whose fade is below the cutoff leave; all do when the
trace is emptied.

``slot_of`` has the slot of each row, -1 if it has none, and ``row_of`` the row of each slot. Row 0 is that of no
feature: its weight is 0. ``counts`` is how many slots are in use, and the number of samples learned from; ``numbers``
is P and v_old. ``settings`` is (θ, η, ln ε, initial α, cutoff). ``vectors`` and ``values`` are as in
:mod:`tlstd.classic.kernels.td`; ``steps`` has one line each of γ_{t+1} and γ_t λ.
"""

from __future__ import annotations

import numpy as np

from tlstd.core.jit import inlined, kernel, part

LINES = 9
"""Number of lines of ``slots``."""

SMALLEST = 1e-10
"""Step sizes do not fall below this."""

_Y, _Q, _Y_BAR, _W, _ALPHA, _H, _H_OLD, _FADE, _U = range(LINES)
_SMALL = 1.0 / 16.0  # up to here a polynomial of degree 9 is the exponential function, to rounding
_LONGEST = 1e100  # validation.MAX_MAGNITUDE
_TINY = 1e-300  # not 0, which could not be divided by


@part
def put_back(slots, rows, slot_of, row_of, slot):
    """Take a feature off the trace: its numbers go to its row."""
    row = row_of[slot]
    rows[row, 0], rows[row, 1], rows[row, 2] = slots[_W, slot], slots[_ALPHA, slot], slots[_H, slot]
    slot_of[row] = -1


@part
def settle(slots, rows, slot_of, row_of, n, P, cutoff):
    """Multiply the traces by P, in place, and take those off that have faded. Returns how many stay."""
    kept = 0
    for slot in range(n):
        fade = slots[_FADE, slot] * P
        if not fade >= cutoff:
            put_back(slots, rows, slot_of, row_of, slot)
            continue
        for line in range(LINES):
            slots[line, kept] = slots[line, slot]
        slots[_Y, kept] *= P
        slots[_Q, kept] *= P
        slots[_Y_BAR, kept] *= P
        slots[_FADE, kept] = fade
        row_of[kept] = row_of[slot]
        slot_of[row_of[kept]] = kept
        kept += 1
    return kept


@inlined
def take_up(ids, start, stop, slots, rows, slot_of, row_of, n, at):
    """Put the features of x on the trace where they are not yet; their slots go to ``at``. Returns how many are on."""
    for e in range(start, stop):
        row = ids[e]
        slot = slot_of[row]
        if slot < 0:
            slot = n
            n += 1
            slot_of[row], row_of[slot] = slot, row
            for line in range(LINES):
                slots[line, slot] = 0.0
            slots[_W, slot], slots[_ALPHA, slot], slots[_H, slot] = rows[row, 0], rows[row, 1], rows[row, 2]
            slots[_H_OLD, slot] = rows[row, 2]
        at[e - start] = slot
    return n


@inlined
def value_of(ids, vals, start, stop, slots, rows, slot_of):
    """w·x of any vector."""
    total = 0.0
    for e in range(start, stop):
        slot = slot_of[ids[e]]
        total += vals[e] * (slots[_W, slot] if slot >= 0 else rows[ids[e], 0])
    return total


@inlined
def sums_of_x(vals, start, stop, slots, at):
    """v = w·x, the rate of learning Σ α x², and y·x."""
    v, rate, overlap = 0.0, 0.0, 0.0
    for e in range(start, stop):
        slot, value = at[e - start], vals[e]
        v += value * slots[_W, slot]
        rate += slots[_ALPHA, slot] * value * value
        overlap += value * slots[_Y, slot]
    return v, rate, overlap


@inlined
def add_x(vals, start, stop, slots, at, P, overlap, rate, eta, log_decay, shares, changes):
    """Add x to the traces; in place. Writes z^δ to ``shares`` and h^temp - h to ``changes``.

    Where the rate is above η, the trace gets a share of α that brings it to η, step sizes decay, and what had been
    learned about their gradient, which was for other step sizes, is forgotten.
    """
    above = rate > eta
    factor = eta / rate if above else 1.0
    for e in range(start, stop):
        slot, value = at[e - start], vals[e]
        share = factor * slots[_ALPHA, slot] * value  # z^δ
        h, h_old, z_bar = slots[_H, slot], slots[_H_OLD, slot], P * slots[_Y_BAR, slot]
        z = P * slots[_Y, slot] + share * (1.0 - overlap)
        slots[_Y, slot] = z / P
        slots[_Q, slot] += h_old * value / P
        slots[_Y_BAR, slot] = (z_bar + share * (1.0 - overlap - value * z_bar)) / P
        slots[_FADE, slot] = 1.0 / P
        shares[e - start] = share
        changes[e - start] = -h_old * value * (z - share) - h * share * value
        if above:
            slots[_H, slot] = slots[_H_OLD, slot] = slots[_Y_BAR, slot] = changes[e - start] = 0.0
            slots[_ALPHA, slot] = max(_TINY, slots[_ALPHA, slot] * np.exp(log_decay * value * value))


@part
def move_step_sizes(q, alpha, u, n, scale, eta):
    """α ← α exp(scale q / α), between the smallest and η; in place."""
    large = 0
    for i in range(n):
        u[i] = scale * q[i] / alpha[i]
    for i in range(n):
        large += 0 if abs(u[i]) <= _SMALL else 1
    if large:
        for i in range(n):
            if not abs(u[i]) <= _SMALL:
                alpha[i] = eta if u[i] > 700.0 else alpha[i] * np.exp(u[i])
                u[i] = 0.0
    for i in range(n):
        s = u[i]
        tail = s * s * s * s * (1 / 24 + s * (1 / 120 + s * (1 / 720 + s * (1 / 5040 + s * (1 / 40320 + s / 362880)))))
        new = alpha[i] + alpha[i] * (s + (s * s * 0.5 + (s * s * s * (1 / 6) + tail)))
        new = eta if new > eta else new
        alpha[i] = SMALLEST if new < SMALLEST else new


@part
def add_multiple(w, y, n, factor):
    """w ← w + factor y; in place."""
    for i in range(n):
        w[i] += factor * y[i]


@part
def move_gradients(h, h_old, y_bar, n, factor):
    """h_old ← h and h ← h + factor ȳ; in place."""
    for i in range(n):
        h_old[i] = h[i]
        h[i] += factor * y_bar[i]


@kernel
def learn(vectors, steps, rewards, slots, rows, slot_of, row_of, counts, numbers, settings, values, begin):
    """Learn from sparse transitions from step ``begin`` on, in place. O(nnz + trace) each.

    Returns up to where: less than all if there may not be enough slots for the next step.
    """
    indptr, ids, vals, first, second = vectors
    theta, eta, log_decay, _, cutoff = settings
    most = 0
    for t in range(first.size):
        most = max(most, indptr[first[t] + 1] - indptr[first[t]])
    at, shares, changes = np.empty(most, dtype=np.int64), np.empty(most), np.empty(most)
    n = counts[0]
    for t in range(begin, first.size):
        start, stop, i, j = indptr[first[t]], indptr[first[t] + 1], indptr[second[t]], indptr[second[t] + 1]
        if n + stop - start > row_of.size:
            return t
        discount, decay = steps[0, t], steps[1, t]
        P = numbers[0] * decay
        if P < 1.0 / 64.0:
            n = settle(slots, rows, slot_of, row_of, n, P, cutoff if P > 0.0 else np.inf)
            P = 1.0
        n = take_up(ids, start, stop, slots, rows, slot_of, row_of, n, at)
        v, rate, overlap = sums_of_x(vals, start, stop, slots, at)
        v_next = value_of(ids, vals, i, j, slots, rows, slot_of)
        v_old = v if decay == 0.0 else numbers[1]  # where the trace starts it cancels: better left out
        difference = v - v_old  # v^δ
        delta = rewards[t, 0] - v_old
        if discount != 0.0:
            delta += discount * v_next
        add_x(vals, start, stop, slots, at, P, P * overlap, rate, eta, log_decay, shares, changes)
        move_step_sizes(slots[_Q], slots[_ALPHA], slots[_U], n, theta * (delta - difference) * P, eta)
        add_multiple(slots[_W], slots[_Y], n, delta * P)
        move_gradients(slots[_H], slots[_H_OLD], slots[_Y_BAR], n, delta * P)
        for e in range(stop - start):
            slots[_W, at[e]] -= shares[e] * difference
            slots[_H, at[e]] += changes[e] - shares[e] * difference
        numbers[0], numbers[1] = P, v_next
        counts[0] = n
        counts[1] += 1
        if values.size:
            values[t, 0] = value_of(ids, vals, i, j, slots, rows, slot_of)
    return first.size


@kernel
def weights(ids, slots, rows, slot_of, line, out):
    """Write the weights (line 0), step sizes (1) or gradients h (2) of the rows ``ids`` to ``out``."""
    for e in range(ids.size):
        slot = slot_of[ids[e]]
        out[e] = slots[_W + line, slot] if slot >= 0 else rows[ids[e], line]


@kernel
def learn_one(
    x_rows,
    x_vals,
    next_rows,
    next_vals,
    slots,
    rows,
    slot_of,
    row_of,
    counts,
    numbers,
    settings,
    bound,
    reward,
    discount,
    decay,
):
    """Learn from one sparse transition, in place, if it is an everyday one. O(nnz + trace).

    Returns False, with nothing changed, if there may not be enough slots, or if the trace could become longer than
    ``bound``, which otherwise follows it, may ever be: then the sample has to go another way.
    """
    n, total = x_rows.size, 0.0
    for e in range(n):
        total += x_vals[e] * x_vals[e]
    longest = decay * bound[0] + np.sqrt(total)  # as in kernels.transitions.follow_lengths
    if not longest <= _LONGEST or counts[0] + n > row_of.size:
        return False
    ids, vals = np.empty(n + next_rows.size, dtype=np.uint32), np.empty(n + next_rows.size)
    for e in range(n):
        ids[e], vals[e] = x_rows[e], x_vals[e]
    for e in range(next_rows.size):
        ids[n + e], vals[n + e] = next_rows[e], next_vals[e]
    where, step = np.array([0, n, n + next_rows.size, 0, 1]), np.array([discount, decay, reward])
    vectors, steps, rewards = (where[:3], ids, vals, where[3:4], where[4:]), step[:2].reshape((2, 1)), step[2:]
    learn(
        vectors,
        steps,
        rewards.reshape((1, 1)),
        slots,
        rows,
        slot_of,
        row_of,
        counts,
        numbers,
        settings,
        rewards[:0].reshape((0, 1)),
        where[0],
    )
    bound[0] = longest
    return True
