"""Forgetful LSTD(λ) and linear Dyna: loops over samples that change a model in full and plan with it.

Vectors are in row coordinates, one per step and side: x_t has the entries ``indptr[t]:indptr[t+1]`` of ``rows`` and
``vals``. Matrices have room beyond the n rows in use. ``columns`` are α_t, γ_{t+1}, γ_t λ (not for Dyna), ρ_t and the
rewards (N, m). ``progress`` counts the samples and the rows that they have reached; it changes at the end of a step.
``values`` (N, m) gets the value of each x_{t+1} right after its step, if it has rows.
"""

from __future__ import annotations

import numpy as np

from tlstd.core.jit import kernel, part


@part
def _dot(vectors, t, w, c):
    """wᵀx of vector t, for column c of w."""
    indptr, rows, vals = vectors
    total = 0.0
    for e in range(indptr[t], indptr[t + 1]):
        total += vals[e] * w[rows[e], c]
    return total


@part
def _row_times(M, i, n, w, c):
    """M[i, :n] w[:n, c], in four sums, so that an addition does not wait for the last."""
    p, q, r, s = 0.0, 0.0, 0.0, 0.0
    for j in range(0, n - 3, 4):
        p += M[i, j] * w[j, c]
        q += M[i, j + 1] * w[j + 1, c]
        r += M[i, j + 2] * w[j + 2, c]
        s += M[i, j + 3] * w[j + 3, c]
    for j in range(n - n % 4, n):
        p += M[i, j] * w[j, c]
    return (p + q) + (r + s)


@part
def _combine(vectors, t, M, n, out):
    """out[:n] = xᵀM for vector t."""
    indptr, rows, vals = vectors
    for j in range(n):
        out[j] = 0.0
    for e in range(indptr[t], indptr[t + 1]):
        for j in range(n):
            out[j] += vals[e] * M[rows[e], j]


@part
def _reach(vectors, t, reached):
    indptr, rows, _ = vectors
    for e in range(indptr[t], indptr[t + 1]):
        reached = max(reached, rows[e] + 1)
    return reached


@part
def _finish(x, x_next, t, discount, w, values, progress):
    """Count a step, the rows that it has reached, and write its value."""
    reached = _reach(x, t, progress[1])
    if discount != 0.0:
        reached = _reach(x_next, t, reached)
    for c in range(values.shape[1] if values.shape[0] else 0):
        values[t, c] = _dot(x_next, t, w, c)
    progress[0] += 1
    progress[1] = reached


@part
def _forget(x, t, forget, M, n, scratch):
    """M[:n, :n] ← (I - β x xᵀ) M for vector t; in place."""
    indptr, rows, vals = x
    _combine(x, t, M, n, scratch)
    for e in range(indptr[t], indptr[t + 1]):
        for j in range(n):
            M[rows[e], j] -= forget * vals[e] * scratch[j]


@part
def _advance(x, t, decay, rho, beta, e):
    """e ← ρ (γ_t λ (I - βρ x xᵀ) e + x) for vector t; in place."""
    indptr, rows, vals = x
    fade, along = rho * decay, _dot(x, t, e, 0)
    for i in range(e.shape[0]):
        e[i, 0] = fade * e[i, 0] if abs(fade * e[i, 0]) >= 1e-300 else 0.0
    for k in range(indptr[t], indptr[t + 1]):
        e[rows[k], 0] += vals[k] * (rho - fade * beta * rho * along)


@kernel
def forgetful(x, x_next, columns, beta, n_plans, A, d, e, w, n, progress, values):
    """Forgetful LSTD(λ) with ``n_plans`` steps w ← w + α (d - A w) after each sample; in place."""
    alphas, discounts, decays, rhos, rewards = columns
    indptr, rows, vals = x
    next_indptr, next_rows, next_vals = x_next
    m = w.shape[1]
    scratch = np.zeros(max(n, m))
    residual = np.zeros((n, m))
    for t in range(alphas.size):
        rho, discount = rhos[t], discounts[t]
        _advance(x, t, decays[t], rho, beta, e)
        _forget(x, t, beta * rho, A, n, scratch)
        _forget(x, t, beta * rho, d, m, scratch)
        for i in range(n):
            z = e[i, 0]
            if z != 0.0:
                for k in range(indptr[t], indptr[t + 1]):
                    A[i, rows[k]] += z * vals[k]
                for k in range(next_indptr[t], next_indptr[t + 1] if discount != 0.0 else next_indptr[t]):
                    A[i, next_rows[k]] -= discount * z * next_vals[k]
                for c in range(m):
                    d[i, c] += z * rewards[t, c]
        for _ in range(n_plans):
            for i in range(n):
                for c in range(m):
                    residual[i, c] = d[i, c] - _row_times(A, i, n, w, c)
            for i in range(n):
                for c in range(m):
                    w[i, c] += alphas[t] * residual[i, c]
        _finish(x, x_next, t, discount, w, values, progress)


@kernel
def dyna(x, x_next, columns, beta, drawn, F, b, w, n, progress, values):
    """Linear Dyna: a TD step, a step of the model, and steps of planning for the rows ``drawn[t]``, -1 for none.

    Row i of F (n, n) is what is expected of γx′ after feature i. In place.
    """
    alphas, discounts, rhos, rewards = columns
    indptr, rows, vals = x
    next_indptr, next_rows, next_vals = x_next
    m = w.shape[1]
    expected = np.zeros(max(n, m))
    for t in range(alphas.size):
        rho, discount = rhos[t], discounts[t]
        for c in range(m):
            after = discount * _dot(x_next, t, w, c) if discount != 0.0 else 0.0
            delta = rewards[t, c] + after - _dot(x, t, w, c)
            surprise = rewards[t, c] - _dot(x, t, b, c)
            for k in range(indptr[t], indptr[t + 1]):
                w[rows[k], c] += alphas[t] * rho * delta * vals[k]
                b[rows[k], c] += beta * rho * surprise * vals[k]
        _combine(x, t, F, n, expected)
        for k in range(indptr[t], indptr[t + 1]):
            for j in range(n):
                F[rows[k], j] -= beta * rho * vals[k] * expected[j]
            for j in range(next_indptr[t], next_indptr[t + 1] if discount != 0.0 else next_indptr[t]):
                F[rows[k], next_rows[j]] += beta * rho * vals[k] * discount * next_vals[j]
        for i in drawn[t]:
            if i < 0:
                continue
            for c in range(m):
                w[i, c] += alphas[t] * (b[i, c] + _row_times(F, i, n, w, c) - w[i, c])
        _finish(x, x_next, t, discount, w, values, progress)
