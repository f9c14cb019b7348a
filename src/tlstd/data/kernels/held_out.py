"""Held-out data: groups of samples dealt into folds, and returns followed backwards within a group.

``first`` is true for the first sample of a group (an episode, or a block of one); groups lie one after the other.
"""

from __future__ import annotations

from tlstd.core.jit import kernel


@kernel
def deal(order, sizes, totals, out):
    """Deal groups in ``order``, each into the fold that has least so far (the first of these). ``totals`` grows."""
    for i in range(order.size):
        fold = 0
        for k in range(1, totals.size):
            if totals[k] < totals[fold]:
                fold = k
        out[order[i]] = fold
        totals[fold] += sizes[order[i]]


@kernel
def follow_tails(discounts, rhos, first, tails, ratios):
    """What the part of a return that a group does not show weighs, and how much a return counts by its ratios.

    tail_t = γ_{t+1} tail_{t+1} and ratio_t = ρ_t ((1 - γ_{t+1}) + γ_{t+1} ratio_{t+1}), both 1 beyond a group's end:
    the mean of ρ_t ρ_{t+1} … over the length of a return that stops with probability 1 - γ at each step.
    """
    tail, ratio = 1.0, 1.0
    for t in range(discounts.size - 1, -1, -1):
        tail *= discounts[t]
        ratio = rhos[t] * ((1.0 - discounts[t]) + discounts[t] * ratio)
        tails[t], ratios[t] = tail, ratio
        if first[t]:
            tail, ratio = 1.0, 1.0


@kernel
def follow_returns(rewards, discounts, rhos, first, v0, v0_next, out):
    """G_t = ρ_t (r_{t+1} + γ_{t+1} G_{t+1}) + (1 - ρ_t) v0(x_t), with v0(x_{t+1}) for G_{t+1} at a group's end.

    ``v0`` and ``v0_next`` are (N, m), or have no rows, and are then zero.
    """
    known, last = v0.shape[0] > 0, True
    for t in range(discounts.size - 1, -1, -1):
        for c in range(rewards.shape[1]):
            beyond = v0_next[t, c] if known else 0.0
            following = beyond if last else out[t + 1, c]
            value = rewards[t, c]
            if discounts[t] != 0.0:  # what follows a termination may be anything
                value += discounts[t] * following
            if rhos[t] != 1.0:
                value = rhos[t] * value + (1.0 - rhos[t]) * (v0[t, c] if known else 0.0)
            out[t, c] = value
        last = first[t]
