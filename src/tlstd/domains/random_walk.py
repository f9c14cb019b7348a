"""The symmetric random walk between two absorbing ends."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np

from tlstd.core import parameters
from tlstd.core.arrays import FloatArray, as_real
from tlstd.domains.mdp import MarkovRewardProcess
from tlstd.errors import InvalidParameterError

Features: TypeAlias = Literal["tabular", "inverted", "dependent"]


def random_walk(
    n_states: int = 19,
    *,
    gamma: float = 1.0,
    rewards: tuple[float, float] = (-1.0, 1.0),
    features: Features = "tabular",
) -> MarkovRewardProcess:
    """A walker steps left or right with probability ½ each, from the middle, until it falls off an end.

    Only the last step is rewarded: by ``rewards[0]`` on the left and ``rewards[1]`` on the right. At γ=1 the value
    of state i is linear in i: rewards[0] + (rewards[1] − rewards[0]) (i + 1) / (n + 1).

    Parameters
    ----------
    n_states : int
        Odd, at least 3. Sutton & Barto use 5 with rewards (0, 1) and 19 with rewards (−1, 1).
    gamma : float in [0, 1]
    rewards : (left, right)
    features : "tabular", "inverted" or "dependent"
        Each state its own feature; all features but its own (much wrong generalisation); or (n + 1) / 2 features of
        which a run is active: the first, the first two, …, all, …, the last two, the last (values not all
        representable). Rows of the last two have unit length.

    Returns
    -------
    MarkovRewardProcess
        Row i is the i-th state from the left.

    References
    ----------
    R. S. Sutton, A. G. Barto, "Reinforcement Learning", 2nd edition, examples 6.2 and 7.1. Features: R. S. Sutton
    et al., "Fast gradient-descent methods for temporal-difference learning with linear function approximation",
    ICML 2009.

    Example
    -------
    >>> random_walk(5, rewards=(0.0, 1.0)).values().round(4)
    array([0.1667, 0.3333, 0.5 , 0.6667, 0.8333])
    >>> random_walk(5, features="dependent").X.round(2)
    array([[1. , 0. , 0. ],
           [0.71, 0.71, 0. ],
           [0.58, 0.58, 0.58],
           [0. , 0.71, 0.71],
           [0. , 0. , 1. ]])
    """
    if parameters.integer("n_states", n_states, low=3) % 2 == 0:
        raise InvalidParameterError(f"n_states is {n_states}: the walk starts in the middle, so pass an odd integer")
    P = 0.5 * (np.eye(n_states, k=1) + np.eye(n_states, k=-1))
    termination_rewards = np.zeros(n_states)
    ends = as_real(rewards, "rewards", InvalidParameterError)
    if ends.shape != (2,):
        raise InvalidParameterError(f"rewards is {rewards!r}: pass two numbers, of the left and of the right end")
    termination_rewards[[0, -1]] = ends
    start = np.zeros(n_states)
    start[n_states // 2] = 1.0
    return MarkovRewardProcess(
        P,
        np.zeros(n_states),
        _features(features, n_states),
        gamma=gamma,
        start=start,
        termination_rewards=termination_rewards,
        name=f"random walk, {n_states} states, {features} features",
    )


def _features(kind: Features, n: int) -> FloatArray:
    parameters.choice("features", kind, get_args(Features))
    if kind == "tabular":
        return np.eye(n)
    if kind == "inverted":
        inverted: FloatArray = (1.0 - np.eye(n)) / np.sqrt(n - 1)
        return inverted
    middle = n // 2
    state, feature = np.arange(n)[:, None], np.arange(middle + 1)
    active = (feature <= state) & (feature >= state - middle)
    dependent: FloatArray = active / np.sqrt(active.sum(axis=1, keepdims=True))
    return dependent
