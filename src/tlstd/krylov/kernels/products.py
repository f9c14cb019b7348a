"""Products with the LSTD matrix over stored samples, which is never formed.

With d_t = x_t - γ_{t+1} x_{t+1} and z_t = ρ_t (g_t λ z_{t-1} + x_t), where g_t is the trace discount of sample t,

    A v  = Σ ω_t z_t (d_tᵀv) = Σ x_t s_t      s_t = ρ_t (ω_t d_tᵀv + g_{t+1} λ s_{t+1})     backwards
    Aᵀh  = Σ ω_t d_t (z_tᵀh)                  z_tᵀh = ρ_t (g_t λ z_{t-1}ᵀh + x_tᵀh)         forwards

so that a product is: *gather* p = xᵀv of every stored row, *follow* the scalars, *scatter* every row once.

Rows are CSR: row ``r`` has the positions ``pos[ptr[r]:ptr[r+1]]`` (int32) and the values ``val`` there, or ones where
``val`` is None. Sample ``t`` goes from row ``row[t]`` to row ``next_row[t]``, -1 where its discount is 0. Several
vectors are the columns of a row-major array; ``width`` is a tuple as long as the number of columns that a call works
on, from column ``first`` on: numba compiles one loop for each length, in which the number of columns is a constant.

``masks`` is (fold, numbers, scales, cut): a sample weighs nothing in column c where ``fold[t] == numbers[c]`` and
``scales[c]`` times its weight otherwise, and nothing is on the trace at the beginning of the samples where ``cut`` is
true. An array of length 0 stands for no folds, or no cuts.
"""

from __future__ import annotations

import numpy as np

from tlstd.core.jit import kernel, part

# --- products -------------------------------------------------------------------------------------------------------


@kernel
def gather(ptr, pos, val, V, first, width, P):
    """P[r] = Σ_e val[e] V[pos[e]] for every row r, in the columns from ``first`` on."""
    k = len(width)
    for r in range(P.shape[0]):
        start, stop = ptr[r], ptr[r + 1]
        if k == 1:  # four sums, so that an addition does not wait for the last
            a, b, c, d = 0.0, 0.0, 0.0, 0.0
            e = start
            for _ in range((stop - start) // 4):
                if val is None:
                    a += V[np.uint32(pos[e]), first]
                    b += V[np.uint32(pos[e + 1]), first]
                    c += V[np.uint32(pos[e + 2]), first]
                    d += V[np.uint32(pos[e + 3]), first]
                else:
                    a += val[e] * V[np.uint32(pos[e]), first]
                    b += val[e + 1] * V[np.uint32(pos[e + 1]), first]
                    c += val[e + 2] * V[np.uint32(pos[e + 2]), first]
                    d += val[e + 3] * V[np.uint32(pos[e + 3]), first]
                e += 4
            for i in range(e, stop):
                a += V[np.uint32(pos[i]), first] if val is None else val[i] * V[np.uint32(pos[i]), first]
            P[r, first] = (a + b) + (c + d)
        else:
            p = P[r, first : first + k]
            for c in range(k):
                p[c] = 0.0
            for e in range(start, stop):
                v = V[np.uint32(pos[e]), first : first + k]
                for c in range(k):
                    p[c] += v[c] if val is None else val[e] * v[c]


@kernel
def scatter(ptr, pos, val, rows, S, first, width, out):
    """out[pos[e]] += val[e] S[i] for the entries e of row ``rows[i]``, in the columns from ``first`` on; in place."""
    k = len(width)
    for i in range(rows.size):
        r = rows[i]
        if k == 1:
            s = S[i, first]
            for e in range(ptr[r], ptr[r + 1]):
                out[np.uint32(pos[e]), first] += s if val is None else val[e] * s
        else:
            q = S[i, first : first + k]
            for e in range(ptr[r], ptr[r + 1]):
                o = out[np.uint32(pos[e]), first : first + k]
                for c in range(k):
                    o[c] += q[c] if val is None else val[e] * q[c]


@kernel
def differences(P, row, next_row, discounts, D):
    """D[t] = d_tᵀv = P[row[t]] - γ_{t+1} P[next_row[t]]."""
    for t in range(row.size):
        a, b, discount = row[t], next_row[t], discounts[t]
        for c in range(P.shape[1]):
            D[t, c] = P[a, c] - discount * P[b, c] if b >= 0 else P[a, c]


@kernel
def follow_back(D, trace_discounts, rhos, weights, lambda_, masks, carry):
    """Replace D (what each sample brings: d_tᵀv, or its rewards) by s_t; in place.

    ``carry`` is g_{t+1} λ s_{t+1} of the sample after the last on entry, and that of the first sample on return.
    """
    fold, numbers, scales, cut = masks
    n, k = D.shape
    for t in range(n - 1, -1, -1):
        decay = trace_discounts[t] * lambda_
        if cut.size and cut[t]:
            decay = 0.0
        for c in range(k):
            brought = weights[t] * D[t, c]
            if fold.size:
                brought = 0.0 if fold[t] == numbers[c] else brought * scales[c]
            s = rhos[t] * (brought + carry[c])
            if not abs(s) < np.inf:  # ratios at x = 0, whose product no trace has: it meets nothing but zeros
                s = 0.0
            D[t, c] = s
            carry[c] = decay * s


@kernel
def follow_forward(P, row, next_row, discounts, trace_discounts, rhos, weights, lambda_, masks, carry, C):
    """Add to C[r] what row r is to be multiplied by in Aᵀh; P has xᵀh of the rows, ``carry`` is z_{t-1}ᵀh; in place."""
    fold, numbers, scales, cut = masks
    k = P.shape[1]
    for t in range(row.size):
        a, b, discount = row[t], next_row[t], discounts[t]
        decay = trace_discounts[t] * lambda_
        if cut.size and cut[t]:
            decay = 0.0
        for c in range(k):
            carry[c] = rhos[t] * (decay * carry[c] + P[a, c])
            part = weights[t] * carry[c]
            if fold.size:
                part = 0.0 if fold[t] == numbers[c] else part * scales[c]
            C[a, c] += part
            if b >= 0:
                C[b, c] -= discount * part


@kernel
def follow_traces(P, row, trace_discounts, rhos, lambda_, cut, carry, out):
    """out[t] = z_tᵀh of every sample; P has xᵀh of the rows, ``carry`` is z_{t-1}ᵀh, changed in place."""
    for t in range(row.size):
        decay = 0.0 if cut[t] else trace_discounts[t] * lambda_
        for c in range(P.shape[1]):
            carry[c] = rhos[t] * (decay * carry[c] + P[row[t], c])
            out[t, c] = carry[c]


@kernel
def trace_factors(trace_discounts, rhos, lambda_, out):
    """What each x_t is multiplied by in the trace after the last sample. Returns the factor of the trace before."""
    factor = 1.0
    for t in range(out.size - 1, -1, -1):
        factor *= rhos[t]
        if not factor < np.inf:  # as in follow_back
            factor = 0.0
        out[t] = factor
        factor *= trace_discounts[t] * lambda_
    return factor


@kernel
def count_equal(ptr, pos, val, rows, reference, counts):
    """Count for each feature in how many of the rows it has its value in ``reference``; in place."""
    for t in range(rows.size):
        for e in range(ptr[rows[t]], ptr[rows[t] + 1]):
            value = 1.0 if val is None else val[e]
            counts[pos[e]] += int(value == reference[pos[e]])


# --- storing --------------------------------------------------------------------------------------------------------


@part
def _equal(indptr, indices, data, i, other_indptr, other_indices, other_data, j):
    """Whether rows i and j of two CSR matrices are the same vector."""
    start, other = indptr[i], other_indptr[j]
    count = indptr[i + 1] - start
    if other_indptr[j + 1] - other != count:
        return False
    for e in range(count):
        if indices[start + e] != other_indices[other + e] or data[start + e] != other_data[other + e]:
            return False
    return True


@kernel
def plan_sparse(x, rows, x_next, next_rows, one_store, discounts, tail, tail_row, shared):
    """Find the samples whose x is the next row of the sample before; returns the rows and the entries to be stored.

    ``tail`` is a CSR matrix of which row 0 is the stored next row of the sample before the first, if ``tail_row`` is
    0; there is none if it is -1. ``one_store`` says that both sides are rows of one matrix.
    """
    indptr, indices, data = x
    n_indptr, n_indices, n_data = x_next
    n_rows, n_entries = 0, 0
    for t in range(rows.size):
        i = rows[t]
        if t == 0:
            same = tail_row == 0 and _equal(indptr, indices, data, i, tail[0], tail[1], tail[2], 0)
        else:
            j = next_rows[t - 1]
            same = discounts[t - 1] != 0.0 and (
                (one_store and i == j) or _equal(indptr, indices, data, i, n_indptr, n_indices, n_data, j)
            )
        shared[t] = same
        if not same:
            n_rows += 1
            n_entries += indptr[i + 1] - indptr[i]
        if discounts[t] != 0.0:
            n_rows += 1
            n_entries += n_indptr[next_rows[t] + 1] - n_indptr[next_rows[t]]
    return n_rows, n_entries


@kernel
def plan_dense(X, rows, X_next, next_rows, one_store, discounts, tail, tail_row, shared):
    """As :func:`plan_sparse`, for dense rows; ``tail`` is a vector. Returns the number of rows to be stored, and 0."""
    n_rows = 0
    for t in range(rows.size):
        x = X[rows[t]]
        if t == 0:
            same = tail_row == 0 and np.all(x == tail)
        else:
            j = next_rows[t - 1]
            same = discounts[t - 1] != 0.0 and ((one_store and rows[t] == j) or np.all(x == X_next[j]))
        shared[t] = same
        n_rows += int(not same) + int(discounts[t] != 0.0)
    return n_rows, 0


@kernel
def place_rows(shared, discounts, n_rows, last, row, next_row):
    """Write which stored row each sample has: x in order of appearance, then x_next unless its discount is 0.

    ``n_rows`` rows are there before, ``last`` is the next row of the sample before. Returns the number of rows then.
    """
    for t in range(shared.size):
        if shared[t]:
            row[t] = last
        else:
            row[t] = n_rows
            n_rows += 1
        last = -1
        if discounts[t] != 0.0:
            last = n_rows
            n_rows += 1
        next_row[t] = last
    return n_rows


@kernel
def write_columns(shared, given, n_rows, last, columns, first):
    """Write what is given of samples to the columns of a chunk from ``first`` on; returns whether all ratios are 1."""
    rewards, discounts, trace_discounts, rhos = given
    row, next_row, all_rewards, all_discounts, all_trace_discounts = columns
    n = shared.size
    place_rows(shared, discounts, n_rows, last, row[first : first + n], next_row[first : first + n])
    ones = True
    for t in range(n):
        for c in range(rewards.shape[1]):
            all_rewards[first + t, c] = rewards[t, c]
        all_discounts[first + t] = discounts[t]
        all_trace_discounts[first + t] = trace_discounts[t]
        ones &= rhos[t] == 1.0
    return ones


@kernel
def copy_sparse(x, rows, x_next, next_rows, shared, discounts, ptr, first_row, ids, vals):
    """Copy the rows to be stored: their ends to ``ptr`` from ``first_row`` on, their entries to ``ids`` and ``vals``.

    Returns the number of rows then, the number of entries copied, and whether all their values are 1.
    """
    indptr, indices, data = x
    n_indptr, n_indices, n_data = x_next
    end, r, ones = 0, first_row, True
    base = ptr[first_row]
    for t in range(rows.size):
        if not shared[t]:
            for e in range(indptr[rows[t]], indptr[rows[t] + 1]):
                ids[end] = indices[e]
                vals[end] = data[e]
                ones &= data[e] == 1.0
                end += 1
            r += 1
            ptr[r] = base + end
        if discounts[t] != 0.0:
            for e in range(n_indptr[next_rows[t]], n_indptr[next_rows[t] + 1]):
                ids[end] = n_indices[e]
                vals[end] = n_data[e]
                ones &= n_data[e] == 1.0
                end += 1
            r += 1
            ptr[r] = base + end
    return r, end, ones


@kernel
def copy_dense(X, rows, X_next, next_rows, shared, discounts, out, first_row):
    """Copy the dense rows to be stored to ``out``, from ``first_row`` on."""
    r = first_row
    for t in range(rows.size):
        if not shared[t]:
            for j in range(out.shape[1]):
                out[r, j] = X[rows[t], j]
            r += 1
        if discounts[t] != 0.0:
            for j in range(out.shape[1]):
                out[r, j] = X_next[next_rows[t], j]
            r += 1
