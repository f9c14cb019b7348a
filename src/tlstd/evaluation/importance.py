"""Means over episodes that were weighted by importance ratios."""

from __future__ import annotations

import numpy as np

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.data import held_out
from tlstd.data.held_out import Folds
from tlstd.data.kernels import held_out as kernels
from tlstd.data.transitions import Transitions

FOLDS = 5


def starts_of(steps: Transitions, start_rows: IntArray) -> IntArray:
    """The transitions that leave one of these rows of their log."""
    return np.flatnonzero(np.isin(steps.rows, start_rows))


def per_decision(steps: Transitions, starts: IntArray, tails: FloatArray) -> tuple[float, float]:
    """Per-decision importance sampling, plain and weighted: the value of the start states.

    Σ_t (Π discounts) ρ_0 ⋯ ρ_t r_{t+1}, averaged over episodes; or with each ρ_0 ⋯ ρ_t divided by the mean of that
    product over all episodes at the same time (those that have ended keep their last one). Where an episode was cut
    off, what is missing has the value ``tails`` (N,) of x_next.

    D. Precup, R. S. Sutton, S. Singh, "Eligibility traces for off-policy policy evaluation", ICML 2000.
    """
    ends = np.append(np.flatnonzero(steps.trace_discounts[1:] == 0.0) + 1, len(steps))
    lengths = ends[np.searchsorted(ends, starts, side="right")] - starts
    longest = int(lengths.max(initial=0)) + 1
    weights, ended, sums, plain = np.zeros(longest), np.zeros(longest + 1), np.zeros(longest), 0.0
    for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
        some = slice(start, start + length)
        ratios = np.cumprod(steps.rhos[some])
        discounts = np.cumprod(steps.discounts[some])
        now = np.append(1.0, discounts[:-1])
        earned = now * ratios * steps.rewards[some]
        rest = discounts[-1] * ratios[-1] * tails[start + length - 1] if discounts[-1] > 0.0 else 0.0
        plain += float(earned.sum() + rest)
        weights[:length] += ratios
        ended[length] += ratios[-1]
        sums[:length] += earned
        sums[length] += rest
    total = weights + np.cumsum(ended)[:longest]
    with np.errstate(divide="ignore", invalid="ignore"):
        weighted = np.where(total > 0.0, sums / total, 0.0)
    return plain / max(1, starts.size), float(weighted.sum())


def effective_episodes(steps: Transitions, starts: IntArray) -> float:
    """Number of equally weighted episodes that would say as much, (Σ W)²/Σ W², W = Σ_t (Π discounts) ρ_0 ⋯ ρ_t.

    L. Kish, "Survey sampling", 1965. Products of ratios over long episodes are nearly all 0, and a few large.
    """
    cut = steps.trace_discounts == 0.0
    cut[:1] = True
    weights, nothing = np.zeros((len(steps), 1)), np.zeros((0, 1))
    kernels.follow_returns(np.ones_like(weights), steps.discounts, steps.rhos, cut, nothing, nothing, weights)
    largest = float(weights[starts].max(initial=0.0))
    if not largest > 0.0:
        return 0.0
    relative = weights[starts, 0] / largest
    return float(relative.sum() ** 2 / (relative @ relative))


def episode_folds(steps: Transitions) -> Folds:
    """Whole episodes, dealt in turn; blocks, if there is but one. Returns go on over blocks."""
    cut = steps.trace_discounts == 0.0
    cut[:1] = True
    group = np.cumsum(cut) - 1
    n_groups = int(group[-1]) + 1
    if n_groups == 1:
        return held_out.make_folds(steps.discounts, steps.trace_discounts, FOLDS)._replace(cut=cut)
    return Folds(group % FOLDS, group, cut, min(FOLDS, n_groups), n_groups, 0)
