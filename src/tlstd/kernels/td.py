"""TD(λ) and true-online TD(λ): one loop for sparse and one for dense features.

Both algorithms move a trace and the weights along it, z ← g z + s x and w ← w + δ z - c x, with g = ρ γ_t λ and

    TD            s = ρ               δ = α (r + γ_{t+1} v' - v)       c = 0
    true-online   s = α (1 - g z·x)   δ = r + γ_{t+1} v' - v_old       c = α (v - v_old)      v_old ← v'

where v = w·x and v' = w·x'. (Replacing traces: z = s x where x is not zero.) ``steps`` has one line each of α_t,
γ_{t+1}, γ_t λ and ρ_t; rewards are (N, m) for m targets, which share the trace.

**Lazy sums.** The decay is one factor for all entries of a trace, and a step moves the weights by one multiple of it.
So the sparse loop keeps z = P y and W = U + y Sᵀ: a decay changes the number P, a step the m numbers S, and only the
rows of x are touched, however long the trace is. Where y changes by Δ, U gives S Δ back. That would lose digits if S
were large against what W has gained by it, so :func:`settle` multiplies everything out when P leaves [1/64, 64] (after
about 4 / (1 - γλ) steps), when x is 8 times larger than anything on the trace, and when the trace is emptied. Entries
that have decayed below ``CUT`` times the largest then leave; that is 1e-4 of what rounding costs. The weights are
those of a literal dense loop to rounding, relative to the largest of them.

``lazy`` is (U (n, m), S (m,), y (n,), listed (n,), active (n,), n_active (1,), scale (2,)): ``active`` begins with the
``n_active`` rows on the trace, ``listed`` marks them, ``scale`` is P and the largest |y| since the last settling.
"""

from __future__ import annotations

import numpy as np

from tlstd.kernels.jit import kernel

CUT = 1e-20
"""Entries of a sparse trace leave it below this fraction of its largest entry."""

_TINY = 1e-300  # below this the next product would be subnormal: slow, and worth nothing


@kernel
def settle(U, S, y, listed, active, n_active, P, largest):
    """Make S zero and P one, in place; entries below ``CUT`` leave. Returns how many stay, and the largest."""
    threshold = max(_TINY, CUT * abs(P) * largest)
    kept, largest = 0, 0.0
    for i in range(n_active):
        row = active[i]
        for c in range(S.size):
            U[row, c] += S[c] * y[row]
        z = P * y[row] if P != 0.0 else 0.0
        if abs(z) < threshold:
            y[row] = 0.0
            listed[row] = False
        else:
            y[row] = z
            active[kept] = row
            kept += 1
            largest = max(largest, abs(z))
    for c in range(S.size):
        S[c] = 0.0
    return kept, largest


@kernel
def learn_sparse(x, x_next, steps, rewards, lazy, v_old, replacing, true_online):
    """Learn from sparse transitions, in place. O(nnz m) each, and O(n_active m) where the sums are settled.

    Vector t of ``x`` = (indptr, rows, vals) has its entries at ``indptr[t]:indptr[t+1]``; rows of -1 in ``x_next`` were
    never seen and have the weight 0. One long function: numba counts references at every call, 0.1 µs per step.
    """
    x_indptr, x_rows, x_vals = x
    n_indptr, n_rows, n_vals = x_next
    U, S, y, listed, active, counter, scale = lazy
    n_active, P, largest = counter[0], scale[0], scale[1]
    m = S.size
    v, v_next, correction = np.zeros(m), np.zeros(m), np.zeros(m)
    for t in range(x_indptr.size - 1):
        alpha, discount, decay, rho = steps[0, t], steps[1, t], steps[2, t], steps[3, t]
        start, stop = x_indptr[t], x_indptr[t + 1]

        # v = w·x and v' = w·x'
        for c in range(m):
            v[c] = 0.0
            v_next[c] = 0.0
        overlap, size = 0.0, 0.0
        for e in range(start, stop):
            row, value = x_rows[e], x_vals[e]
            size = max(size, abs(value))
            overlap += value * y[row]
            for c in range(m):
                v[c] += value * U[row, c]
        if overlap != 0.0:
            for c in range(m):
                v[c] += overlap * S[c]
        if discount != 0.0 or true_online:
            next_overlap = 0.0
            for e in range(n_indptr[t], n_indptr[t + 1]):
                row, value = n_rows[e], n_vals[e]
                if row >= 0:
                    next_overlap += value * y[row]
                    for c in range(m):
                        v_next[c] += value * U[row, c]
            if next_overlap != 0.0:
                for c in range(m):
                    v_next[c] += next_overlap * S[c]

        # z ← g z + s x, with w as it is
        share = alpha * (1.0 - decay * P * overlap) if true_online else rho
        P *= rho * decay
        if not 1.0 / 64.0 <= P <= 64.0 or abs(share) * size > 8.0 * P * largest:
            n_active, largest = settle(U, S, y, listed, active, n_active, P, largest)
            P = 1.0
        share /= P
        if true_online:
            for c in range(m):
                if decay == 0.0:  # where the trace starts v_old cancels: better left out
                    v_old[c] = v[c]
                correction[c] = alpha * (v[c] - v_old[c])
                v[c] = v_old[c]  # what δ subtracts
        for e in range(start, stop):
            row, change = x_rows[e], share * x_vals[e]
            if replacing:
                change -= y[row]
            y[row] += change
            largest = max(largest, abs(y[row]))
            for c in range(m):
                U[row, c] -= S[c] * change + correction[c] * x_vals[e]
            if not listed[row]:
                listed[row] = True
                active[n_active] = row
                n_active += 1

        # w ← w + δ z
        for c in range(m):
            delta = rewards[t, c] + discount * v_next[c] - v[c]
            S[c] += (delta if true_online else alpha * delta) * P
            if true_online:
                v_old[c] = v_next[c]
    counter[0], scale[0], scale[1] = n_active, P, largest


@kernel
def learn_dense(X, picked, X_next, next_picked, steps, rewards, Wt, z, v_old, true_online):
    """Learn from picked rows of dense matrices with accumulating traces, in place; ``Wt`` is (m, d). O(d m) each."""
    for t in range(picked.size):
        x, x_next = X[picked[t]], X_next[next_picked[t]]
        alpha, discount, decay, rho = steps[0, t], steps[1, t], steps[2, t], steps[3, t]
        g = rho * decay
        share = rho
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
