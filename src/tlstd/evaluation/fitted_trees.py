"""Values by boosted trees that are fitted to r + γ v(s'), with no feature map."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from tlstd.core import parameters
from tlstd.core.arrays import FloatArray, as_floats, check_unit
from tlstd.core.units import power_of_two
from tlstd.errors import InvalidInputError
from tlstd.features.leaves import DEPTH, N_BINS, RATE, RIDGE, Grower, Leaves, Tree, of_trees
from tlstd.features.states import as_observations, as_states

N_START, N_TREES = 40, 160


def fitted_trees(
    states: ArrayLike,
    rewards: ArrayLike,
    next_states: ArrayLike,
    discounts: ArrayLike,
    *,
    start: ArrayLike | None = None,
    n_start: int = N_START,
    n_trees: int = N_TREES,
    depth: int = DEPTH,
    rate: float = RATE,
    ridge: float = RIDGE,
    n_bins: int = N_BINS,
) -> Leaves:
    """Values of states by boosted trees, each grown on what r + γ v(s') says beyond the values v of those before it.

    Fitted value evaluation grows all trees again in every sweep. Here every tree is a sweep, so that the same number of
    sweeps takes as long as growing the trees once. The first ones may be grown on returns, where they are known.

    Parameters
    ----------
    states, next_states : (N, D)
        After a termination the next state is not looked at.
    rewards : (N,)
    discounts : (N,)
        γ of each step; 0 where the episode terminated.
    start : (N,), optional
        Discounted returns, or other guesses of the values of ``states``. The first ``n_start`` trees are grown on them.
    n_start, n_trees : int
        Trees that are grown on ``start``, and on r + γ v(s').
    depth, rate, ridge, n_bins
        As in :meth:`tlstd.Leaves.fit`.

    Returns
    -------
    Leaves
        Its ``values`` are those of states, and its features are the leaves. The time is that of
        :meth:`tlstd.Leaves.fit` for as many trees.

    References
    ----------
    D. Ernst, P. Geurts, L. Wehenkel, "Tree-based batch mode reinforcement learning", JMLR 6, 2005.

    Example
    -------
    A walk on three places; the last step pays 1, and γ is 0.9.

    >>> place = np.tile([0.0, 1.0, 2.0], 200)[:, None]
    >>> rewards, discounts = np.tile([0.0, 0.0, 1.0], 200), np.tile([0.9, 0.9, 0.0], 200)
    >>> trees = fitted_trees(place, rewards, place + 1.0, discounts, start=np.tile([0.81, 0.9, 1.0], 200))
    >>> trees.values([[0.0], [1.0], [2.0]]).round(2)
    array([0.81, 0.9 , 1.  ])
    """
    x = as_observations(states)
    n, D = x.shape
    after = as_states(next_states, D, with_nan=True)
    if len(after) != n:
        raise InvalidInputError(f"next_states have shape {after.shape}: pass one per state, {x.shape}")
    r, gamma = _numbers(rewards, "rewards", n), _numbers(discounts, "discounts", n)
    check_unit(gamma, "discounts")
    guess = None if start is None else _numbers(start, "start", n)
    goes_on = np.flatnonzero(gamma)
    after, gamma = np.asfortranarray(as_states(after[goes_on], D)), gamma[goes_on]
    n_start = 0 if guess is None else parameters.integer("n_start", n_start, low=0, high=2**20)
    n_trees = parameters.integer("n_trees", n_trees, low=0, high=2**20)
    rate = parameters.real("rate", rate, low=0.0, high=1.0, open_low=True)
    unit = power_of_two(r, () if guess is None else guess)
    r = r / unit
    grower = Grower(x, None, depth=depth, ridge=ridge, n_bins=n_bins)
    if guess is None:  # the number c whose errors r + γc - c are 0 on average
        rest = n - math.fsum(gamma)
        base = math.fsum(r) / rest if rest > 0.0 else 0.0
    else:
        guess = guess / unit
        base = grower.mean(guess)
    values, next_values = np.full(n, base), np.full(goes_on.size, base)
    trees: list[Tree] = []
    for k in range(n_start + n_trees):
        if guess is not None and k < n_start:
            targets = guess
        else:
            targets = r.copy()
            targets[goes_on] += gamma * next_values
        tree = grower.tree(targets - values)
        if tree is not None:
            trees.append(tree.times(rate))
            values += trees[-1].means[tree.leaf]
            next_values += trees[-1].of(after)
        elif k >= n_start:
            break
    return of_trees(trees, grower.depth, n_columns=D, base=base, unit=unit)


def _numbers(given: ArrayLike, name: str, n: int) -> FloatArray:
    array = as_floats(given, name, 1)
    if array.size != n:
        raise InvalidInputError(f"{name} has {array.size} numbers: pass one per state, {n}")
    return array
