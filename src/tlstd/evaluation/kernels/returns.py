"""Weighted, discounted corrections along episodes, which lie one after the other: ``ends[i]`` is behind episode i.

At time t of its episode a step has the weight W_t = ρ_0 ⋯ ρ_t and the discount D_t = γ_1 ⋯ γ_t. An episode that has
ended keeps its last weight in the normalisers N_t = Σ W_t, for as long as the longest one lasts.
"""

from __future__ import annotations

from tlstd.core.jit import kernel


@kernel
def add_up(ends, discounts, rhos, corrections, sums, weights):
    """Add Σ D_t W_t δ_t to ``sums`` and Σ W_t to ``weights``, by time t; both are zero on entry."""
    start = 0
    for i in range(ends.size):
        ratio, discount = 1.0, 1.0
        for t in range(start, ends[i]):
            ratio *= rhos[t]
            sums[t - start] += discount * ratio * corrections[t]
            weights[t - start] += ratio
            discount *= discounts[t]
        for t in range(ends[i] - start, weights.size):
            weights[t] += ratio
        start = ends[i]


@kernel
def contribute(ends, discounts, rhos, corrections, means, weights, rest, out, last):
    """What each episode moves Σ_t m_t by, m_t = Σ D W δ / N_t: Σ_t (D_t W_t δ_t - W_t m_t) / N_t, to ``out``.

    ``rest[t]`` is Σ_{t' >= t} m_t' / N_t', with one 0 behind. The last weight of each episode goes to ``last``.
    """
    start = 0
    for i in range(ends.size):
        ratio, discount, total = 1.0, 1.0, 0.0
        for t in range(start, ends[i]):
            ratio *= rhos[t]
            if weights[t - start] > 0.0:
                total += ratio * (discount * corrections[t] - means[t - start]) / weights[t - start]
            discount *= discounts[t]
        out[i] = total - ratio * rest[ends[i] - start]
        last[i] = ratio
        start = ends[i]
