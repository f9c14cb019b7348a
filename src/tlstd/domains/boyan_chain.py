"""Boyan's chain: interpolating features that can represent the values exactly."""

from __future__ import annotations

import numpy as np

from tlstd.core import parameters
from tlstd.domains.mdp import MarkovRewardProcess
from tlstd.errors import InvalidParameterError


def boyan_chain(n_states: int = 13, *, gamma: float = 1.0) -> MarkovRewardProcess:
    """Boyan's chain, the first test problem of LSTD(λ), in any size.

    State i stands i places before the end. From i >= 2 the walker jumps one or two places, with probability ½ each
    and reward −3; from 1 it moves to 0 with reward −2; from 0 the episode terminates with reward 0. It starts at
    the far end. At γ=1 the value of state i is −2i. There is one feature for every fourth state, first the one of
    the far end, and the states between interpolate linearly, so the weights are −2i at those states.

    State 0 has features of its own and is therefore a state here, left by one last step of reward 0. Texts that end
    the episode upon entering it have the same values, but visit it not at all.

    Parameters
    ----------
    n_states : int
        4 (m − 1) + 1 for m >= 2 features; Boyan's chain has 13 states and 4 features.
    gamma : float in [0, 1]

    Returns
    -------
    MarkovRewardProcess
        Row i is state i.

    References
    ----------
    J. A. Boyan, "Least-squares temporal difference learning", ICML 1999 (Machine Learning 49, 2002).

    Example
    -------
    >>> chain = boyan_chain()
    >>> chain.n_states, chain.n_features
    (13, 4)
    >>> chain.X[[12, 11, 0]]
    array([[1.  , 0.  , 0.  , 0.  ],
           [0.75, 0.25, 0.  , 0.  ],
           [0.  , 0.  , 0.  , 1.  ]])
    >>> chain.values().round(9)[[12, 11, 1]]
    array([-24., -22.,  -2.])
    """
    if parameters.integer("n_states", n_states, low=5) % 4 != 1:
        raise InvalidParameterError(
            f"n_states is {n_states}: Boyan's chain has 4 (m − 1) + 1 states for m >= 2 features, e.g. 5, 13 or 101"
        )
    P = np.zeros((n_states, n_states))
    P[1, 0] = 1.0
    jumping = np.arange(2, n_states)
    P[jumping, jumping - 1] = P[jumping, jumping - 2] = 0.5
    rewards = np.full(n_states, -3.0)
    rewards[:2] = 0.0, -2.0
    start = np.zeros(n_states)
    start[-1] = 1.0

    anchors = np.arange(n_states - 1, -1, -4)
    X = np.maximum(0.0, 1.0 - np.abs(np.arange(n_states)[:, None] - anchors) / 4.0)
    return MarkovRewardProcess(P, rewards, X, gamma=gamma, start=start, name=f"Boyan chain, {n_states} states")
