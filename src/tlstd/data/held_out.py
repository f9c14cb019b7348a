"""Choosing by held-out data: folds, what held-out states are worth, and scores of predictions.

Pure functions of the columns of a stream. In this order:

1. :func:`make_folds` says which samples belong together (whole episodes, or blocks of long ones) and to which fold;
2. a model of each candidate is fitted to all folds but one, with traces that start empty where ``Folds.cut`` is true;
3. :func:`held_out_targets` has the returns of the states left out. Where it cannot do with the rewards alone
   (:func:`needs_reference`), it takes values of one reference v₀, fitted to the same folds as the candidates;
4. :func:`group_errors` compares predictions with them, :func:`scores` says means and standard errors, :func:`least`
   and :func:`within_one_standard_error` choose.

:func:`tlstd.evaluation.choose` does all of it for any estimator.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.data.kernels import held_out as kernels
from tlstd.data.scores import EXACT as EXACT
from tlstd.data.scores import TIE as TIE
from tlstd.data.scores import group_errors as group_errors
from tlstd.data.scores import least as least
from tlstd.data.scores import scores as scores
from tlstd.data.scores import within_one_standard_error as within_one_standard_error

LARGEST_TAIL = 0.02
"""A return is used as it is if what its group does not show of it weighs no more than this."""
ENOUGH_RETURNS = 0.5
"""Share of the states that must have such a return; otherwise all are bootstrapped."""
ENOUGH_WITH_ENDS = 0.75
"""The same where episodes terminate: leaving out those that were cut off favours what ends soon."""
BLOCK_HORIZONS = 5
"""Horizons (steps until a return's tail weighs ``LARGEST_TAIL``) that a block should have."""
FEWEST_BLOCKS, MOST_BLOCKS = 2, 10
"""Blocks per fold of a stream without episodes: as many as ``BLOCK_HORIZONS`` allows, within these limits."""
FEWEST_EFFECTIVE = 100.0
"""States, counted by their weights and ratios, below which nothing is chosen."""
FEWEST_GROUPS = 4
"""Episodes or blocks below which nothing is chosen."""
_LARGEST_RETURN = 1e150  # its square is finite

BoolArray = NDArray[np.bool_]


class Folds(NamedTuple):
    """Which samples are held out together."""

    fold: IntArray
    """(N,), from 0 to ``n_folds`` - 1."""
    group: IntArray
    """(N,), the number of the episode or block, rising along the stream."""
    cut: BoolArray
    """(N,), true for the first sample of each group: its trace starts empty."""
    n_folds: int
    n_groups: int
    n_blocks: int
    """How many of the groups are blocks of episodes that were too long."""

    def __str__(self) -> str:
        whole = self.n_groups - self.n_blocks
        parts = [f"{whole:,} episode{'s' * (whole != 1)}"] if whole else []
        parts += [f"{self.n_blocks:,} blocks of a stream"] if self.n_blocks else []
        return f"{' and '.join(parts)} in {self.n_folds} folds"


class Reference(NamedTuple):
    """Values by v₀, each sample's by the one whose fit has not seen its fold."""

    values: FloatArray
    """(N, m), of x_t."""
    next_values: FloatArray
    """(N, m), of x_{t+1}; used where a group ends, and nowhere else."""


class Targets(NamedTuple):
    """What predictions for held-out states are compared with."""

    values: FloatArray
    """(N, m)."""
    weights: FloatArray
    """(N,), how much each state counts; 0 for those without a usable return."""
    kind: str
    """"returns" or "bootstrapped"."""
    n_effective: float
    """Number of states that would tell as much if all had the same weight and ratio."""
    why: str | None
    """None, or why nothing can be chosen by these targets."""


# --- folds ----------------------------------------------------------------------------------------------------------


def make_folds(
    discounts: FloatArray, trace_discounts: FloatArray, folds: int, weights: FloatArray | None = None
) -> Folds:
    """Deal a stream into folds of about equal weight: whole episodes, and blocks of those longer than a fold.

    An episode is a stretch from a sample with a trace discount of 0 to the next one. Those with more than 1/``folds``
    of all weight are cut into blocks of equal length, ``BLOCK_HORIZONS`` times the steps after which a return is seen
    but for ``LARGEST_TAIL``, within limits that give ``FEWEST_BLOCKS`` to ``MOST_BLOCKS`` blocks a fold where there is
    nothing but blocks. Groups are dealt in turn, the longest first (by powers of two; in the order of the stream where
    they are equally long), each into the fold that has least. Nothing is random.

    Parameters
    ----------
    discounts, trace_discounts : (N,)
    folds : int >= 2
    weights : (N,) >= 0, optional
        Of the samples, e.g. (1 - β)^(N-1-t); all one if left out.

    Returns
    -------
    Folds
        O(N) time. With few samples some folds may be empty; ``n_folds`` counts the others.

    Example
    -------
    Five episodes of two steps:

    >>> made = make_folds(np.array([0.9, 0.0] * 5), np.array([0.0, 0.9] * 5), folds=2)
    >>> made.fold
    array([0, 0, 1, 1, 0, 0, 1, 1, 0, 0])

    One stream without end:

    >>> made = make_folds(np.full(1000, 0.5), np.full(1000, 0.5), folds=2)
    >>> print(made, np.flatnonzero(made.cut)[:3], np.bincount(made.fold))
    20 blocks of a stream in 2 folds [ 0 50 100] [500 500]
    """
    n = discounts.size
    if n == 0:
        nothing = np.zeros(0, dtype=np.int64)
        return Folds(nothing, nothing, np.zeros(0, dtype=np.bool_), 0, 0, 0)
    weight = np.ones(n) if weights is None else weights
    cut = trace_discounts == 0.0
    cut[0] = True
    starts = np.flatnonzero(cut)
    shares = np.add.reduceat(weight, starts) / weight.sum()
    lengths = np.diff(starts, append=n)
    step = -float(np.log(np.maximum(discounts, LARGEST_TAIL)).mean())  # a termination shows the whole return
    length = block_length(step, _effective(weight), folds)
    long = (shares > 1.0 / folds) & (lengths > length)
    n_blocks = 0
    for start, size in zip(starts[long].tolist(), lengths[long].tolist(), strict=True):
        begins = blocks_of(start, size, length, folds)
        cut[begins] = True
        n_blocks += begins.size
    group = np.cumsum(cut) - 1
    sizes = np.bincount(group, weights=weight)
    n_groups = sizes.size
    with np.errstate(divide="ignore"):
        order = np.argsort(-np.round(np.log2(sizes / sizes.max())), kind="stable")
    of_group = np.zeros(n_groups, dtype=np.int64)
    kernels.deal(order, sizes, np.zeros(folds), of_group)
    return Folds(of_group[group], group, cut, int(np.unique(of_group).size), n_groups, n_blocks)


def block_length(step: float, n: float, folds: int) -> int:
    """Samples in a block of a stream of n samples whose discounts have the mean logarithm -``step``."""
    horizon = -math.log(LARGEST_TAIL) / step if step > 0.0 else math.inf
    return max(
        1, math.floor(min(max(BLOCK_HORIZONS * horizon, n / (MOST_BLOCKS * folds)), n / (FEWEST_BLOCKS * folds)))
    )


def blocks_of(start: int, size: int, length: int, folds: int) -> IntArray:
    """Where the blocks of an episode of ``size`` samples begin, whose first is number ``start``."""
    pieces = math.ceil(size / length)
    pieces -= pieces % folds if pieces >= 2 * folds else 0  # the same number for each fold
    begins: IntArray = start + np.arange(pieces) * size // pieces
    return begins


def _effective(weights: FloatArray) -> float:
    """Kish's number: how many equal weights tell as much."""
    largest = float(weights.max(initial=0.0))
    if not largest > 0.0:
        return 0.0
    relative = weights / largest
    return float(relative.sum() ** 2 / (relative**2).sum())


# --- targets --------------------------------------------------------------------------------------------------------


def needs_reference(discounts: FloatArray, rhos: FloatArray, folds: Folds, weights: FloatArray | None = None) -> bool:
    """Whether targets need values of a reference: off-policy, and where too few returns are seen to their end.

    Example
    -------
    Episodes of three steps, cut off by a time limit:

    >>> discounts, traces = np.full(30, 0.9), np.tile([0.0, 0.9, 0.9], 10)
    >>> needs_reference(discounts, np.ones(30), make_folds(discounts, traces, folds=2))
    True
    >>> needs_reference(0.1 * discounts, np.ones(30), make_folds(0.1 * discounts, traces, folds=2))
    False
    """
    if (rhos != 1.0).any():
        return True
    weight = np.ones(discounts.size) if weights is None else weights
    tails, _ = _tails(discounts, rhos, folds)
    enough = ENOUGH_WITH_ENDS if (discounts == 0.0).any() else ENOUGH_RETURNS
    return bool((weight * (tails <= LARGEST_TAIL)).sum() < enough * weight.sum())


def are_too_few(folds: Folds) -> bool:
    """Whether :func:`held_out_targets` has a reason not to choose whatever the samples are.

    A number of equal weights that tell as much (``n_effective``) is never larger than that of the samples.
    """
    return folds.n_folds < 2 or folds.n_groups < FEWEST_GROUPS or folds.fold.size < FEWEST_EFFECTIVE


def held_out_targets(
    rewards: FloatArray,
    discounts: FloatArray,
    rhos: FloatArray,
    folds: Folds,
    weights: FloatArray | None = None,
    *,
    reference: Reference | None = None,
    largest_tail: float = LARGEST_TAIL,
) -> Targets:
    """The discounted return from each state to the end of its group.

    G_t = ρ_t (r_{t+1} + γ_{t+1} G_{t+1}) + (1 - ρ_t) v₀(x_t). Without a reference (all ρ_t = 1) only those count whose
    tail, the product of the discounts to the group's end, is at most ``largest_tail``. With a reference all count, and
    v₀(x_{t+1}) stands for G_{t+1} at the group's end. Given the state, the mean of G_t is then the target policy's
    value but for tail · (error of v₀), for every v₀ that was not fitted to the group.

    Parameters
    ----------
    rewards : (N, m)
    discounts, rhos : (N,)
    folds : Folds
    weights : (N,) >= 0, optional
        How much each state counts.
    reference : Reference, optional
        Needed if :func:`needs_reference` says so.

    Returns
    -------
    Targets
        O(N m) time. ``why`` is a reason if there is too little to choose by: fewer than ``FEWEST_EFFECTIVE`` states,
        counted by their weights and by their ratios, or returns in fewer than ``FEWEST_GROUPS`` groups.

    Example
    -------
    >>> discounts, traces = np.tile([0.5, 0.5, 0.0], 40), np.tile([0.0, 0.5, 0.5], 40)
    >>> folds = make_folds(discounts, traces, folds=2)
    >>> targets = held_out_targets(np.ones((120, 1)), discounts, np.ones(120), folds)
    >>> targets.values[:3, 0], targets.kind, targets.n_effective, targets.why
    (array([1.75, 1.5 , 1.  ]), 'returns', 120.0, None)
    """
    weight = np.ones(discounts.size) if weights is None else weights
    tails, ratios = _tails(discounts, rhos, folds)
    values = np.zeros(rewards.shape)
    nothing = np.zeros((0, rewards.shape[1]))
    v0, v0_next = (nothing, nothing) if reference is None else reference
    kernels.follow_returns(rewards, discounts, rhos, folds.cut, v0, v0_next, values)
    usable = weight if reference is not None else weight * (tails <= largest_tail)
    sound = (np.abs(values) <= _LARGEST_RETURN).all(axis=1) & np.isfinite(ratios)
    values[~sound], ratios[~sound] = 0.0, 0.0
    usable = np.where(sound, usable, 0.0)
    n_effective = _effective(usable * ratios)
    n_groups = np.unique(folds.group[usable > 0.0]).size
    why = None
    if n_groups < FEWEST_GROUPS or folds.n_folds < 2:
        why = f"there are returns in only {n_groups} episodes or blocks, fewer than {FEWEST_GROUPS}"
    elif n_effective < FEWEST_EFFECTIVE:
        cause = " by their importance ratios" if (rhos != 1.0).any() else ""
        why = f"{np.count_nonzero(usable):,} held-out states count as {n_effective:.0f}{cause}, fewer than " + (
            f"{FEWEST_EFFECTIVE:.0f}"
        )
    return Targets(values, usable, "returns" if reference is None else "bootstrapped", n_effective, why)


def _tails(discounts: FloatArray, rhos: FloatArray, folds: Folds) -> tuple[FloatArray, FloatArray]:
    tails, ratios = np.empty(discounts.size), np.empty(discounts.size)
    kernels.follow_tails(discounts, rhos, folds.cut, tails, ratios)
    return tails, ratios
