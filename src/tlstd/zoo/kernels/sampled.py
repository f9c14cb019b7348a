"""TD(0) steps for stored samples in a given order, with the average of the weights on the way.

An update Δ of step n is in all weights from step n on. Of the average over the steps ``first`` + 1 to ``last`` it is in
a share of (last - max(n, first + 1) + 1) / (last - first) of them, so that the average too is moved only where x is not
zero.
"""

from __future__ import annotations

from tlstd.core.jit import kernel, part


@part
def _dot(csr, row, w, c):
    indptr, at, vals = csr
    total = 0.0
    for e in range(indptr[row], indptr[row + 1]):
        total += vals[e] * w[at[e], c]
    return total


@kernel
def sampled_steps(x, rows, x_next, next_rows, columns, drawn, alphas, n, first, last, w, mean):
    """w ← w + α ρ δ x for the samples ``drawn``, as the steps n, n + 1, …, and ``mean`` with it; in place.

    ``columns`` are discounts, ratios and rewards (N, m); w and mean are (features, m).
    """
    discounts, rhos, rewards = columns
    indptr, at, vals = x
    for i in range(drawn.size):
        t = drawn[i]
        share = (last - max(n + i, first + 1) + 1) / (last - first)
        row = rows[t]
        for c in range(w.shape[1]):
            after = discounts[t] * _dot(x_next, next_rows[t], w, c) if discounts[t] != 0.0 else 0.0
            delta = rewards[t, c] + after - _dot(x, row, w, c)
            step = alphas[i] * rhos[t] * delta
            for e in range(indptr[row], indptr[row + 1]):
                w[at[e], c] += step * vals[e]
                mean[at[e], c] += share * step * vals[e]
