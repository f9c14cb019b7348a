"""Accumulating the LSTD system from sparse transitions, and the Sherman–Morrison step."""

from __future__ import annotations

import numpy as np

from tlstd.kernels.jit import kernel


@kernel
def advance_trace(z, active, n_active, rows, vals, decay, rho, replacing):
    """z ← ρ (decay z + x) (or its replacing form) over the list of active entries, in place; returns its new length.

    Entries that have decayed below 1e-300 leave the list: at the next product they would be subnormal.
    """
    kept = 0
    g = rho * decay
    for i in range(n_active):
        row = active[i]
        z[row] *= g
        if abs(z[row]) < 1e-300:
            z[row] = 0.0
        else:
            active[kept] = row
            kept += 1
    for e in range(rows.size):
        row = rows[e]
        value = rho * vals[e]
        was_zero = z[row] == 0.0
        if replacing:
            z[row] = value
        else:
            z[row] += value
        if was_zero and z[row] != 0.0:
            active[kept] = row
            kept += 1
    return kept


@kernel
def difference(x_rows, x_vals, next_rows, next_vals, discount, scratch, out_rows, out_vals):
    """d = x - γ x_next as rows and values (all rows of both, unsorted); returns how many. ``scratch`` stays zero."""
    count = 0
    for e in range(x_rows.size):
        scratch[x_rows[e]] = 1.0 + count
        out_rows[count] = x_rows[e]
        out_vals[count] = x_vals[e]
        count += 1
    if discount != 0.0:
        for e in range(next_rows.size):
            at = scratch[next_rows[e]]
            if at != 0.0:
                out_vals[int(at) - 1] -= discount * next_vals[e]
            else:
                out_rows[count] = next_rows[e]
                out_vals[count] = -discount * next_vals[e]
                count += 1
    for e in range(x_rows.size):
        scratch[x_rows[e]] = 0.0
    return count


@kernel
def accumulate(A, b, z, active, n_active, d_rows, d_vals, n_d, rewards, weight):
    """A += weight · z dᵀ and b += weight · z rᵀ over the non-zeros, in place. O(nnz(z) · nnz(d))."""
    for i in range(n_active):
        row = active[i]
        scaled = weight * z[row]
        for e in range(n_d):
            A[row, d_rows[e]] += scaled * d_vals[e]
        for c in range(rewards.size):
            b[row, c] += scaled * rewards[c]


@kernel
def accumulate_many(
    x, rows_of_x, x_picked, x_next, rows_of_next, next_picked, discounts, decays, rhos, rewards, weights, system, work
):
    """Run :func:`advance_trace`, :func:`difference` and :func:`accumulate` over many transitions, in place.

    ``rows_of_x`` and ``rows_of_next`` are the row coordinates of the CSR entries of the picked rows, in order. The last
    of ``system`` are ``progress``, numbers of samples and of active entries, and ``scale`` with its new value: they
    change together with A, so that an interruption finds all of it done or nothing.
    """
    A, b, z, active, replacing, progress, scale, new_scale = system
    n_active = progress[1]
    scratch, d_rows, d_vals = work
    p = 0
    q = 0
    for t in range(x_picked.size):
        x_start, x_stop = x[0][x_picked[t]], x[0][x_picked[t] + 1]
        n_start, n_stop = x_next[0][next_picked[t]], x_next[0][next_picked[t] + 1]
        x_rows = rows_of_x[p : p + x_stop - x_start]
        n_rows = rows_of_next[q : q + n_stop - n_start]
        p += x_stop - x_start
        q += n_stop - n_start
        x_vals = x[2][x_start:x_stop]
        n_active = advance_trace(z, active, n_active, x_rows, x_vals, decays[t], rhos[t], replacing)
        n_d = difference(x_rows, x_vals, n_rows, x_next[2][n_start:n_stop], discounts[t], scratch, d_rows, d_vals)
        accumulate(A, b, z, active, n_active, d_rows, d_vals, n_d, rewards[t], weights[t])
    progress[0] += x_picked.size
    progress[1] = n_active
    scale[0] = new_scale


@kernel
def multiply_out(A, b, scale):
    """A *= scale and b *= scale, which becomes 1, in place."""
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            A[i, j] *= scale[0]
        for c in range(b.shape[1]):
            b[i, c] *= scale[0]
    scale[0] = 1.0


@kernel
def traces(X, decays, rhos, z, Z):
    """Z[t] = z_t = ρ_t (decay_t z_{t-1} + X[t]) for dense rows; ``z`` is the trace before, and after, in place."""
    for t in range(X.shape[0]):
        g = rhos[t] * decays[t]
        for j in range(X.shape[1]):
            z[j] = g * z[j] + rhos[t] * X[t, j]
            if abs(z[j]) < 1e-300:
                z[j] = 0.0
            Z[t, j] = z[j]


@kernel
def subtract_outer(P, u, v, n, factor):
    """P[:n, :n] -= factor · u vᵀ, in place."""
    for i in range(n):
        scaled = factor * u[i]
        if scaled != 0.0:
            for j in range(n):
                P[i, j] -= scaled * v[j]


@kernel
def recursive_step(A, P, b, z, new_z, d, rewards, weight, Pz, dP, factor, largest, progress, scale, new_scale):
    """One sample of the recursion, in place and all at once: A += ω z dᵀ, P -= factor · Pz dP, b += ω z rᵀ, z.

    ``progress`` has the number of samples and whether P is followed. It is not if ``factor`` is NaN, and no longer if a
    diagonal entry of P comes up to ``largest``.
    """
    n = z.size
    for i in range(n):
        z[i] = new_z[i]
        scaled = weight * z[i]
        if scaled != 0.0:
            for j in range(n):
                A[i, j] += scaled * d[j]
        for c in range(rewards.size):
            b[i, c] += scaled * rewards[c]
    if progress[1]:
        progress[1] = 0
        if factor == factor:
            subtract_outer(P, Pz, dP, n, factor)
            progress[1] = 1
            for i in range(n):
                if not abs(P[i, i]) < largest:
                    progress[1] = 0
    progress[0] += 1
    scale[0] = new_scale


@kernel
def recursive_rescale(A, P, b, factor, scale):
    """A *= factor, P /= factor, b *= factor and the scale becomes 1, in place and all at once."""
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            A[i, j] *= factor
            P[i, j] /= factor
    for i in range(b.shape[0]):
        for c in range(b.shape[1]):
            b[i, c] *= factor
    scale[0] = 1.0


@kernel
def residual(A, w, b, n, out):
    """out = b - A w over the first n rows and columns of A; returns its largest entry relative to |b| + |A| |w|.

    That ratio is the componentwise backward error of w; infinite if anything is not finite.
    """
    worst = 0.0
    for i in range(n):
        for c in range(b.shape[1]):
            total = b[i, c]
            size = abs(total)
            for j in range(n):
                product = A[i, j] * w[j, c]
                total -= product
                size += abs(product)
            out[i, c] = total
            if not size < np.inf:
                return np.inf
            if size > 0.0:
                worst = max(worst, abs(total) / size)
    return worst
