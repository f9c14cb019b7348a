"""The value of a policy from whole episodes: mean of returns, returns with tails, doubly robust. One formula.

With values v(s) and q(s, a) of other episodes, weights W_t = ρ_0 ⋯ ρ_t and their sums N_t over all episodes,

    V = mean v(s_0) + Σ_t (1/N_t) Σ_i γᵗ W_t (r_{t+1} + γ v(s_{t+1}) - q(s_t, a_t)).

- The logged policy: W = 1 and q = v. The sum telescopes to the mean of returns up to the end or the cut of an episode,
  plus γᵀ v(s_T) where it was cut off.
- v = q = 0: weighted per-decision importance sampling.
- Otherwise: weighted doubly robust. Errors of q count only as far as the weights are noisy, and errors of the weights
  only as far as q is wrong.

An episode that has ended stays in N_t with its last weight, so that long episodes do not count for more. Weights are
never clipped.

N. Jiang, L. Li, "Doubly robust off-policy value evaluation", ICML 2016. P. S. Thomas, E. Brunskill, "Data-efficient
off-policy policy evaluation for reinforcement learning", ICML 2016.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.units import power_of_two
from tlstd.evaluation.steps import forward


class EpisodeValue(NamedTuple):
    """A value, and what each episode has moved it by."""

    value: float
    contributions: FloatArray
    """(G,): the value's influence function at each episode, over G. Their sum is 0 but for rounding."""
    effective: float
    """Episodes of equal weight that would say as much: of weighted returns (Σ W)² / Σ W², W the last weight of each."""
    shares: FloatArray | None = None
    """(G,): the share of each in all weights, where these differ."""

    @property
    def standard_error(self) -> float:
        """√(G/(G-1) Σ c²); infinite for one episode."""
        return standard_error(self.contributions)

    @property
    def degrees(self) -> float:
        """Degrees of freedom of the standard error: effective episodes less one."""
        return max(1.0, self.effective - 1.0)

    def minus(self, other: EpisodeValue) -> EpisodeValue:
        """The difference of two values of the same episodes."""
        moved = self.contributions - other.contributions
        return EpisodeValue(self.value - other.value, moved - moved.mean(), min(self.effective, other.effective))


def standard_error(contributions: FloatArray) -> float:
    """√(G/(G-1) Σ c_g²) of contributions (G,) about their mean; infinite if there are fewer than two."""
    G, unit = contributions.size, power_of_two(contributions)
    relative = contributions / unit
    return unit * float(np.sqrt(G / (G - 1) * (relative @ relative))) if G > 1 else float("inf")


def degrees(spread: FloatArray) -> float:
    """Satterthwaite's degrees of freedom for a sum over groups of these variances (G,), at least 1.

    >>> degrees(np.ones(10)), degrees(np.array([1.0, 0.0, 0.0]))
    (9.0, 1.0)
    """
    return max(1.0, effective_number(spread) - 1.0) if spread.any() else max(1.0, spread.size - 1.0)


def effective_number(weights: FloatArray) -> float:
    """(Σ w)²/Σ w²: how many equal weights would say as much (Kish, 1965).

    >>> effective_number(np.array([1.0, 1.0, 0.0]))
    2.0
    """
    largest = float(np.abs(weights).max(initial=0.0))
    if not largest > 0.0:
        return 0.0
    relative = weights / largest
    return float(relative.sum() ** 2 / (relative @ relative))


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
        Cost: some passes over the steps.

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
    begins, n = np.append(0, ends[:-1]), ends.size
    lengths, longest = ends - begins, int((ends - begins).max(initial=0))
    time = np.arange(rewards.size) - np.repeat(begins, lengths)
    following = np.where(discounts > 0.0, discounts * next_values, 0.0)
    corrections = rewards + following - (values if action_values is None else action_values)
    D = discounts_until(discounts, begins)
    if rhos is None:  # all weights are 1, and so is their sum for every episode
        moved_by = D * corrections / n
        moved = np.add.reduceat(moved_by, begins)
        total, last = float(moved.sum()), np.ones(n)
        moved = moved - total / n
    else:
        W, last = running_weights(rhos, begins), np.empty(0)
        last = W[ends - 1]
        N = np.bincount(time, W, longest)
        N[1:] += np.cumsum(np.bincount(lengths, last, longest + 1))[1:longest]
        sums = np.bincount(time, D * W * corrections, longest)
        means = np.divide(sums, N, out=np.zeros(longest), where=N > 0.0)
        shares = np.divide(means, N, out=np.zeros(longest), where=N > 0.0)
        rest = np.append(np.cumsum(shares[::-1])[::-1], 0.0)
        inverse = np.divide(1.0, N, out=np.zeros(longest), where=N > 0.0)
        own = W * (D * corrections - means[time]) * inverse[time]
        moved, total = np.add.reduceat(own, begins) - last * rest[lengths], float(means.sum())
    first = values[begins]
    moved = moved + (first - first.mean()) / n
    if rhos is None or not last.any():
        return EpisodeValue(float(first.mean()) + total, moved, effective_number(last))
    shares = last / last.sum()
    left_out = moved / np.maximum(1.0 - shares, 1e-9)  # what the value loses without the episode
    return EpisodeValue(float(first.mean()) + total, left_out - left_out.mean(), effective_number(last), shares)


def visited_value(group: IntArray, n_groups: int, returns: FloatArray) -> EpisodeValue:
    """The mean value of all visited states, from the return of each: a ratio of sums over groups.

    Parameters
    ----------
    group : (N,) integers
        The episode (or block) of each state.
    n_groups : int
    returns : (N,)
        From each state on.

    Example
    -------
    Episodes of one and of three states:

    >>> visited_value(np.array([0, 1, 1, 1]), 2, np.array([4.0, 0.0, 2.0, 2.0])).value
    2.0
    """
    sizes = np.bincount(group, minlength=n_groups).astype(np.float64)
    sums = np.bincount(group, returns, n_groups)
    value = float(sums.sum() / sizes.sum())
    return EpisodeValue(value, (sums - value * sizes) / sizes.sum(), effective_number(sizes))


def discounts_until(discounts: FloatArray, begins: IntArray) -> FloatArray:
    """γ_1 ⋯ γ_t of every step: 1 at the first one of an episode."""
    first, factors = np.zeros(discounts.size), np.append(0.0, discounts[:-1])
    first[begins], factors[begins] = 1.0, 0.0
    return forward(first, factors)


def running_weights(rhos: FloatArray, begins: IntArray) -> FloatArray:
    """ρ_0 ⋯ ρ_t of every step."""
    first, factors = np.zeros(rhos.size), rhos.copy()
    first[begins], factors[begins] = rhos[begins], 0.0
    return forward(first, factors)
