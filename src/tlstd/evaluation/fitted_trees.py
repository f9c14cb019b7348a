"""Values by boosted trees that are fitted to r + γ v(s'), with no feature map."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from tlstd.core import parameters
from tlstd.core.arrays import FloatArray, IntArray, as_floats, as_real, check_unit
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
    next_weights: ArrayLike | None = None,
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

    Before every later tree the constant is solved for, so that the errors r + γ v(s') - v(s) are 0 on average. No
    question of a tree reduces such an error, and sweeps alone reduce it slowly where γ is near 1.

    Parameters
    ----------
    states : (N, D)
    next_states : (N, D), or (A, N, D) beside ``next_weights``
        After a termination the next state is not looked at.
    rewards : (N,)
    discounts : (N,)
        γ of each step; 0 where the episode terminated.
    start : (N,), optional
        Discounted returns, or other guesses of the values of ``states``. The first ``n_start`` trees are grown on them.
    next_weights : (A, N), optional
        v(s') is then the sum of the values of A next states, times these. With the action beside the state in every
        row, and the target policy's probabilities as weights, the values are its action values (fitted Q evaluation).
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
    r, gamma = _numbers(rewards, "rewards", n), _numbers(discounts, "discounts", n)
    check_unit(gamma, "discounts")
    after, factors, step = _following(next_states, next_weights, gamma, D)
    guess = None if start is None else _numbers(start, "start", n)
    n_start = 0 if guess is None else parameters.integer("n_start", n_start, low=0, high=2**20)
    n_trees = parameters.integer("n_trees", n_trees, low=0, high=2**20)
    rate = parameters.real("rate", rate, low=0.0, high=1.0, open_low=True)
    unit = power_of_two(r, () if guess is None else guess)
    r = r / unit
    grower = Grower(x, None, depth=depth, ridge=ridge, n_bins=n_bins)
    rest, base = n - math.fsum(factors), 0.0
    trees: list[Tree] = []
    values, next_values = np.zeros(n), np.zeros(step.size)

    def grown(left: FloatArray) -> bool:
        """Grow a tree on what is left of the targets; False if no question reduces it."""
        tree = grower.tree(left)
        if tree is None:
            return False
        trees.append(tree.times(rate))
        np.add(values, trees[-1].means[tree.leaf], out=values)
        np.add(next_values, trees[-1].of(after), out=next_values)
        return True

    if guess is not None:
        guess = guess / unit
        base = grower.mean(guess)
        while len(trees) < n_start and grown(guess - base - values):
            pass
    limit = len(trees) + n_trees
    lost = 1.0 - np.bincount(step, factors, n)  # what a constant of 1 takes from each error
    while n_trees or guess is None:
        errors = r + np.bincount(step, factors * next_values, n) - values
        if rest > 0.0:  # else no constant solves it
            base = math.fsum(errors) / rest
        if len(trees) == limit or not grown(errors - base * lost):
            break
    return of_trees(trees, grower.depth, n_columns=D, base=base, unit=unit)


def _following(
    given: ArrayLike, weights: ArrayLike | None, discounts: FloatArray, D: int
) -> tuple[FloatArray, FloatArray, IntArray]:
    """The next states that count, γ times the weight of each, and the step that it follows."""
    n = discounts.size
    if weights is None:
        after, factors = as_states(given, D, with_nan=True), discounts
        if len(after) != n:
            raise InvalidInputError(f"next_states have shape {after.shape}: pass one per state, ({n}, {D})")
    else:
        w, after = as_floats(weights, "next_weights", 2), as_real(given, "next_states")
        if w.shape[1] != n or after.shape != (*w.shape, D) or not (w >= 0.0).all():
            raise InvalidInputError(
                f"next_weights have shape {w.shape}, and next_states {after.shape}: pass numbers of at least 0 "
                f"(A, {n}), and states (A, {n}, {D})"
            )
        after, factors = after.reshape(-1, D), (discounts * w).ravel()
    counts = np.flatnonzero(factors)
    return np.asfortranarray(as_states(after[counts], D)), factors[counts], counts % n


def _numbers(given: ArrayLike, name: str, n: int) -> FloatArray:
    array = as_floats(given, name, 1)
    if array.size != n:
        raise InvalidInputError(f"{name} has {array.size} numbers: pass one per state, {n}")
    return array
