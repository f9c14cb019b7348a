"""Accumulating the LSTD system from sparse transitions, and the Sherman–Morrison step."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from tlstd.core.jit import kernel, part


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


def _multiply(typing_context, gemv, transposed, M, n, v, out):
    """out = M[:n, :n] v, or vᵀ M[:n, :n] if ``transposed``, by the BLAS function dgemv at the address ``gemv``.

    M is in C's order, so for BLAS, which reads it by columns, it is the other way round. n > 0.
    """

    def generate(context, builder, signature, arguments):
        address, transposed, M, n, v, out = arguments
        integer, real, pointer = ir.IntType(64), ir.DoubleType(), ir.IntType(8).as_pointer()

        def at(value):
            return builder.bitcast(cgutils.alloca_once_value(builder, value), pointer)

        def array(position, value):
            return context.make_array(signature.args[position])(context, builder, value)

        def start(position, value):
            return builder.bitcast(array(position, value).data, pointer)

        _, row_length = cgutils.unpack_tuple(builder, array(2, M).shape)
        plain, turned = ir.Constant(integer, ord("T")), ir.Constant(integer, ord("N"))
        how, one, zero = builder.select(transposed, turned, plain), ir.Constant(real, 1.0), ir.Constant(real, 0.0)
        size, step = at(n), at(ir.Constant(integer, 1))  # 64 bits, of which BLAS reads 32 or all
        operands = start(2, M), at(row_length), start(4, v), step, at(zero), start(5, out), step
        function = builder.inttoptr(address, ir.FunctionType(ir.VoidType(), [pointer] * 11).as_pointer())
        builder.call(function, [at(how), size, size, at(one), *operands])
        return context.get_dummy_value()

    return types.void(types.int64, types.boolean, M, types.int64, v, out), generate


multiply: Any = intrinsic(_multiply)


@kernel
def recursive_step(gemv, A, P, b, z, difference, rewards, weight, products, limits, progress):
    """One sample of the recursion, in place: A += ω z dᵀ, b += ω z rᵀ and P -= factor · Pz dP; returns the factor.

    Parameters
    ----------
    gemv : address of dgemv
    difference : (d (n,), rows and values of its non-zeros, in any order)
    products : (Pz, dP), written
    limits : (least size of 1 + ω dᵀPz relative to its terms, size of P's diagonal at which P is given up)
    progress : (samples, whether P is followed)
        P is followed no longer if the formula has no answer (then the factor is NaN) or a diagonal entry is too large.
    """
    n = z.size
    d, d_rows, d_vals = difference
    Pz, dP = products
    factor = np.nan
    if progress[1]:
        change = 0.0
        if n > 0:
            multiply(gemv, False, P, n, z, Pz)
            multiply(gemv, True, P, n, d, dP)
            change = weight * np.dot(d, Pz)
        denominator = 1.0 + change
        if abs(denominator) > limits[0] * max(1.0, abs(change)):
            factor = weight / denominator
    few = 4 * d_rows.size < n
    for i in range(n):
        scaled = weight * z[i]
        if scaled != 0.0:
            if few:
                for e in range(d_rows.size):
                    A[i, d_rows[e]] += scaled * d_vals[e]
            else:
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
                if not abs(P[i, i]) < limits[1]:
                    progress[1] = 0
    progress[0] += 1
    return factor


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


@part
def advance_full_trace(z, rows, vals, fade, rho, replacing):
    """z ← fade z + ρ x (or its replacing form) over all entries, in place; subnormal numbers become 0."""
    for i in range(z.size):
        z[i] *= fade
    for e in range(rows.size):
        if replacing:
            z[rows[e]] = 0.0
        z[rows[e]] += rho * vals[e]
    for i in range(z.size):
        if abs(z[i]) < 1e-300:
            z[i] = 0.0


@kernel
def recursive_run(gemv, x, x_next, columns, system, beta, replacing, limits, accuracy, values):
    """The recursion over transitions, in place, with the value of each x_next right after its step.

    While P is followed, so is w: w += factor (r - dᵀw) Pz. Of A w = b then only the residual is computed, and a value
    is xᵀw + (xᵀP)(b - A w), which takes P's rows of the active features; w is mended (:func:`refine`) when its residual
    is more than rounding. O(n²) per transition.

    Parameters
    ----------
    gemv : address of dgemv
    x, x_next : (indptr, rows, vals)
        Sparse vectors in row coordinates, one per transition. Rows of an x_next that is not bootstrapped from may be
        negative: features without a weight.
    columns : (rewards (N, m), discounts, ρ_t γ_t λ, rhos)
    system : (A, P, b (n, m), z (n,), (samples, whether P is followed), scale (1,))
    beta : weight of a new sample, or 0 if all weigh the same
    limits : see :func:`recursive_step`
    accuracy : see :func:`refine`
    values : (N, m), or (0, m) if they are not wanted

    Returns
    -------
    How many transitions were learned from, and whether the last of them has its value: where P has no answer, it has
    not, and it is the last.
    """
    rewards, discounts, fades, rhos = columns
    A, P, b, z, progress, scale = system
    n, m = b.shape
    n_w = n if values.size else 0
    d, scratch, Pz, dP = np.zeros(n), np.zeros(n), np.empty(n), np.empty(n)
    d_rows, d_vals = np.empty(n, dtype=np.int64), np.empty(n)
    w, rest = np.zeros((m, n_w)), np.zeros((m, n_w))
    if n_w > 0 and progress[1]:
        for c in range(m):
            for i in range(n):
                rest[c, i] = b[i, c]
            multiply(gemv, False, P, n, rest[c], w[c])
    for t in range(discounts.size):
        x_rows, x_vals = x[1][x[0][t] : x[0][t + 1]], x[2][x[0][t] : x[0][t + 1]]
        n_rows, n_vals = x_next[1][x_next[0][t] : x_next[0][t + 1]], x_next[2][x_next[0][t] : x_next[0][t + 1]]
        advance_full_trace(z, x_rows, x_vals, fades[t], rhos[t], replacing)
        n_d = difference(x_rows, x_vals, n_rows, n_vals, discounts[t], scratch, d_rows, d_vals)
        rows, vals = d_rows[:n_d], d_vals[:n_d]
        for e in range(n_d):
            d[rows[e]] = vals[e]
        weight = new_scale = 1.0
        if beta > 0.0:
            new_scale = scale[0] * (1.0 - beta)
            if new_scale < 1e-50:
                recursive_rescale(A, P, b, scale[0], scale)
                new_scale = 1.0 - beta
            weight = beta / new_scale
        factor = recursive_step(gemv, A, P, b, z, (d, rows, vals), rewards[t], weight, (Pz, dP), limits, progress)
        scale[0] = new_scale
        for e in range(n_d):
            d[rows[e]] = 0.0
        if values.size:
            if not progress[1]:
                return t + 1, False
            for c in range(m):
                error = rewards[t, c]
                for e in range(n_d):
                    error -= vals[e] * w[c, rows[e]]
                error *= factor
                for i in range(n_w):
                    w[c, i] += error * Pz[i]
            if n_w > 0 and not refine(gemv, A, P, b, w, rest, Pz, accuracy):
                return t + 1, False
            refined_values(P, w, rest, n_rows, n_vals, values[t])
    return discounts.size, True


@part
def refined_values(P, w, rest, rows, vals, values):
    """values[c] = xᵀ(w + P rest) of target c for a sparse x, without features that have no weight (row -1)."""
    n = rest.shape[1]
    for c in range(values.size):
        value = 0.0
        for e in range(rows.size):
            row = rows[e]
            if row >= 0:
                value += vals[e] * (w[c, row] + np.dot(P[row, :n], rest[c]))
        values[c] = value


@kernel
def refine(gemv, A, P, b, w, rest, scratch, accuracy):
    """w += P (b - A w), in place, until w solves A w = b to rounding or stops to improve; returns whether it is sound.

    Parameters
    ----------
    gemv : address of dgemv
    b : (n, m)
    w, rest : (m, n), the solution so far, and written: b - A w
    scratch : (n,)
    accuracy : (what counts as rounding, what is no solution any more, number of tries)
        Of the error of :func:`backward_error`.
    """
    rounding, worn_out, n_tries = accuracy
    error = backward_error(gemv, A, w, b, rest, rounding)
    for _ in range(n_tries):
        if error < rounding:
            break
        for c in range(w.shape[0]):
            multiply(gemv, False, P, w.shape[1], rest[c], scratch)
            for i in range(w.shape[1]):
                w[c, i] += scratch[i]
        last = error
        error = backward_error(gemv, A, w, b, rest, rounding)
        if not error < 0.5 * last:
            break
    return error < worn_out


@kernel
def backward_error(gemv, A, w, b, rest, rounding):
    """rest = b - A w for w (m, n); returns an upper bound of its largest entry relative to |b| + |A| |w|.

    |A| |w| is computed only in rows where |A w|, which is less, does not show that the entry is below ``rounding``.
    The result is infinite if anything is not finite.
    """
    m, n = w.shape
    worst = 0.0
    for c in range(m):
        multiply(gemv, False, A, n, w[c], rest[c])
        for i in range(n):
            product = rest[c, i]
            total = b[i, c] - product
            rest[c, i] = total
            size = abs(b[i, c]) + abs(product)
            if not abs(total) < rounding * size:
                size = abs(b[i, c])
                for j in range(n):
                    size += abs(A[i, j] * w[c, j])
            if not size < np.inf:
                return np.inf
            if size > 0.0:
                worst = max(worst, abs(total) / size)
    return worst


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
