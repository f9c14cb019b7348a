"""The value of a policy from whole episodes: mean of returns, returns with tails, doubly robust. One formula.

With values v(s) and q(s, a) of other episodes, weights W_t = ρ_0 ⋯ ρ_t and their sums N_t over all episodes,

    V = mean v(s_0) + Σ_t (1/N_t) Σ_i γᵗ W_t (r_{t+1} + γ v(s_{t+1}) - q(s_t, a_t)).

- The logged policy: W = 1 and q = v. The sum telescopes to the mean of returns up to the end or the cut of an episode,
  plus γᵀ v(s_T) where it was cut off.
- v = q = 0: weighted per-decision importance sampling.
- Otherwise: weighted doubly robust. Errors of q count only as far as the weights are noisy, and errors of the weights
  only as far as q is wrong.

An episode that has ended stays in N_t with its last weight, so that long episodes do not count for more.

N. Jiang, L. Li, "Doubly robust off-policy value evaluation", ICML 2016. P. S. Thomas, E. Brunskill, "Data-efficient
off-policy policy evaluation for reinforcement learning", ICML 2016.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.evaluation.influence import standard_error
from tlstd.evaluation.intervals import NOT_COVERED, Interval, interval_about
from tlstd.evaluation.kernels import returns as kernels


class EpisodeValue(NamedTuple):
    """A value, and what each episode has moved it by."""

    value: float
    contributions: FloatArray
    """(G,): the value's influence function at each episode, over G. Their sum is 0 but for rounding."""
    effective: float
    """Episodes of equal weight that would say as much: (Σ W)² / Σ W², W the last weight of each episode."""

    @property
    def standard_error(self) -> float:
        """√(G/(G-1) Σ c²); infinite for one episode."""
        return standard_error(self.contributions)

    @property
    def degrees(self) -> float:
        """Degrees of freedom of the standard error: effective episodes less one."""
        return max(1.0, self.effective - 1.0)

    def interval(self, level: float = 0.95, kind: str = "episodes", limits: str = NOT_COVERED) -> Interval:
        """By Student's t; ``limits`` says what it does not cover."""
        n, error = self.contributions.size, self.standard_error
        return interval_about(self.value, error, self.degrees, level, kind, n, with_starts=True, limits=limits)


def episode_value(
    ends: IntArray,
    rewards: FloatArray,
    discounts: FloatArray,
    values: FloatArray,
    next_values: FloatArray,
    action_values: FloatArray | None = None,
    rhos: FloatArray | None = None,
) -> EpisodeValue:
    """The mean value of the first states of episodes.

    Parameters
    ----------
    ends : (G,) integers
        The number of the step behind the last one of each episode; episodes lie one after the other.
    rewards, discounts : (N,)
        r_{t+1}, and γ_{t+1}: 0 where the episode terminated, γ where it was cut off.
    values, next_values : (N,)
        v(s_t) and v(s_{t+1}) by a model that has learned from other episodes. After a termination v counts as 0.
    action_values : (N,), optional
        q(s_t, a_t) by such a model; v(s_t) if left out.
    rhos : (N,), optional
        Importance ratios of the steps; 1 if left out.

    Returns
    -------
    EpisodeValue
        Cost: two passes over the steps.

    Example
    -------
    The returns of two episodes of two steps, the second of which was cut off in a state that is worth 10.

    >>> from tlstd.evaluation.episode_values import episode_value
    >>> ends, rewards, discounts = np.array([2, 4]), np.array([1.0, 2.0, 1.0, 4.0]), np.array([0.5, 0.0, 0.5, 0.5])
    >>> found = episode_value(ends, rewards, discounts, np.array([3.0, 5.0, 3.0, 5.0]), np.array([5.0, 0.0, 5.0, 10.0]))
    >>> found.value, 0.5 * (1 + 0.5 * 2) + 0.5 * (1 + 0.5 * 4 + 0.25 * 10)
    (3.75, 3.75)
    >>> found.contributions
    array([-0.875,  0.875])
    """
    rhos = np.ones(rewards.size) if rhos is None else rhos
    following = np.where(discounts > 0.0, discounts * next_values, 0.0)
    corrections = rewards + following - (values if action_values is None else action_values)
    begins = np.append(0, ends[:-1])
    longest = int((ends - begins).max(initial=0))
    sums, weights = np.zeros(longest), np.zeros(longest)
    kernels.add_up(ends, discounts, rhos, corrections, sums, weights)
    means = np.divide(sums, weights, out=np.zeros(longest), where=weights > 0.0)
    shares = np.divide(means, weights, out=np.zeros(longest), where=weights > 0.0)
    rest = np.append(np.cumsum(shares[::-1])[::-1], 0.0)
    moved, last = np.empty(ends.size), np.empty(ends.size)
    kernels.contribute(ends, discounts, rhos, corrections, means, weights, rest, moved, last)
    first = values[begins]
    moved += (first - first.mean()) / ends.size
    total, square = float(last.sum()), float(last @ last)
    effective = total * (total / square) if square > 0.0 else 0.0
    return EpisodeValue(float(first.mean() + means.sum()), moved, effective)
