"""One state at a time: cosines in random directions, and leaves of trees."""

from __future__ import annotations

import math

import numpy as np

from tlstd.core.jit import kernel


@kernel
def waves(state, low, high, centre, scale, directions, phases, size, out):
    """Write size·cos(wᵀu + b) to ``out``, and 1 at its end; whether the state is a number.

    ``directions`` is (D, n). Sums are taken column by column, as by NumPy, so that rounding is the same.
    """
    n = phases.size
    for i in range(n):
        out[i] = phases[i]
    for j in range(state.size):
        s = state[j]
        if np.isnan(s):
            return False
        u = (min(max(s, low[j]), high[j]) - centre[j]) / scale[j]
        for i in range(n):
            out[i] += u * directions[j, i]
    for i in range(n):
        out[i] = math.cos(out[i]) * size
    out[n] = 1.0
    return True


@kernel
def leaves(state, columns, thresholds, out):
    """Write the indices of the leaves to ``out``, tree by tree; whether the state is a number."""
    for j in range(state.size):
        if np.isnan(state[j]):
            return False
    n_trees, depth = columns.shape
    for t in range(n_trees):
        leaf = t
        for level in range(depth):
            leaf = 2 * leaf + (state[columns[t, level]] > thresholds[t, level])
        out[t] = leaf
    return True
