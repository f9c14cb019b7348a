"""Baird's counterexample: off-policy, TD diverges although the values can be represented."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tlstd.core.arrays import as_real
from tlstd.domains.mdp import OffPolicyProcess
from tlstd.errors import InvalidParameterError

START = (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 10.0, 1.0)
"""Weights from which the literature starts, where rewards are 0."""


def baird(*, gamma: float = 0.99, weights: ArrayLike | None = None) -> OffPolicyProcess:
    """Baird's counterexample in the form of Sutton & Barto: seven states, eight features, two actions.

    Action 0 (dashed) leads to one of the states 0 to 5, each with the same probability, action 1 (solid) to state 6.
    The target policy always takes action 1; the behaviour takes it once in seven times, so that all states are visited
    alike. x of state i < 6 is 2 e_i + e_7, that of state 6 is e_6 + 2 e_7.

    Rewards are 0, and so is the value of every state; an estimator that starts at 0 has nothing to learn. Literature
    starts it at ``START``. With ``weights`` rewards are such that the values are X·weights, and every TD error that
    counts is that of the original at ``w - weights``: with ``weights=-np.array(START)`` an estimator that begins at 0
    goes the way of one that begins at ``START`` in the original.

    Parameters
    ----------
    gamma : float in [0, 1)
    weights : (8,), optional

    Returns
    -------
    OffPolicyProcess
        Its A has rank 7: the eighth direction of the weights changes no value.

    References
    ----------
    L. Baird, "Residual algorithms: reinforcement learning with function approximation", ICML 1995, as in R. S. Sutton,
    A. G. Barto, "Reinforcement Learning", 2nd edition, figure 11.1.

    Example
    -------
    >>> process = baird()
    >>> A, _ = process.system(0.0)
    >>> bool(np.linalg.eigvals(A).real.min() < -0.1)  # TD's mean step grows along such a direction
    True
    >>> np.abs(baird(weights=[1, 1, 1, 1, 1, 1, 1, 1]).values() - 3.0).max() < 1e-9
    np.True_
    """
    P = np.zeros((7, 2, 7))
    P[:, 0, :6] = 1.0 / 6.0
    P[:, 1, 6] = 1.0
    X = np.column_stack([np.diag([2.0] * 6 + [1.0]), [1.0] * 6 + [2.0]])
    values = np.zeros(7)
    if weights is not None:
        given = as_real(weights, "weights", InvalidParameterError)
        if given.shape != (8,):
            raise InvalidParameterError(f"weights has shape {given.shape}: pass eight numbers")
        values = X @ given
    rewards = values[:, None] - gamma * P @ values
    return OffPolicyProcess(
        P,
        rewards,
        X,
        target=np.tile([0.0, 1.0], (7, 1)),
        behaviour=np.tile([6.0 / 7.0, 1.0 / 7.0], (7, 1)),
        gamma=gamma,
        name="Baird's counterexample",
    )
