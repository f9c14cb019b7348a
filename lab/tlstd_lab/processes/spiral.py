"""The process of Tsitsiklis and Van Roy's spiral: on a curved set of value functions TD diverges on-policy."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tlstd.core.arrays import FloatArray, as_real
from tlstd.domains.mdp import MarkovRewardProcess
from tlstd.errors import InvalidParameterError

START = (100.0, 0.0)
"""Weights of the spiral's point θ = 0."""

_TURN, _GROWTH = 0.75**0.5, 0.05
_A: FloatArray = np.array([100.0, -70.0, -30.0])
_Q: FloatArray = np.array([[1.0, 0.5, 1.5], [1.5, 1.0, 0.5], [0.5, 1.5, 1.0]])  # turns the plane, by √¾ radians a unit
_B: FloatArray = -_Q @ _A / _TURN


def spiral(*, gamma: float = 0.9, weights: ArrayLike | None = None) -> MarkovRewardProcess:
    """Three states in a ring; a step stays or goes to the one before, with probability ½ each.

    The counterexample has one parameter θ and *non-linear* values, V_0 = a = (100, -70, -30) and dV/dθ = (Q + 0.05) V,
    that is V_θ = e^{0.05 θ} (a cos 0.866θ - b sin 0.866θ): a spiral in a plane. There TD's θ grows without bound,
    on-policy, although the true values, 0, are the spiral's centre.

    Estimators here are linear. Their two features, a/100 and b/100, span the same plane, so all values of the spiral
    are within reach, and TD does not diverge: the curve is what makes it. :func:`spiral_weights` has the curve and its
    tangent in these features.

    Rewards are 0. With ``weights`` they are such that the values are X·weights and TD errors are those of the
    original at ``w - weights``, as for :func:`~tlstd.baird`.

    Parameters
    ----------
    gamma : float in [0, 1)
    weights : (2,), optional

    Returns
    -------
    MarkovRewardProcess

    References
    ----------
    J. N. Tsitsiklis, B. Van Roy, "An analysis of temporal-difference learning with function approximation", IEEE
    Transactions on Automatic Control 42, 1997; the starting point is that of H. R. Maei et al., "Convergent
    temporal-difference learning with arbitrary smooth function approximation", NIPS 2009.

    Example
    -------
    >>> A, _ = spiral().system(0.0)
    >>> bool(np.linalg.eigvalsh(A + A.T).min() > 0.0)  # linear TD is stable
    True
    >>> point, tangent = spiral_weights(0.0)
    >>> bool(-tangent @ A @ point > 0.0)  # TD's mean step of θ: outwards
    True
    """
    P = 0.5 * (np.eye(3) + np.roll(np.eye(3), -1, axis=1))
    X = np.column_stack([_A, _B]) / 100.0
    values = np.zeros(3)
    if weights is not None:
        given = as_real(weights, "weights", InvalidParameterError)
        if given.shape != (2,):
            raise InvalidParameterError(f"weights has shape {given.shape}: pass two numbers")
        values = X @ given
    rewards = values[:, None] - gamma * values[None, :]
    return MarkovRewardProcess(P, rewards, X, gamma=gamma, name="the spiral's ring")


def spiral_weights(theta: float) -> tuple[FloatArray, FloatArray]:
    """The weights w(θ) of a point of the spiral, and dw/dθ."""
    cosine, sine = np.cos(_TURN * theta), np.sin(_TURN * theta)
    size = 100.0 * np.exp(_GROWTH * theta)
    point: FloatArray = size * np.array([cosine, -sine])
    tangent: FloatArray = _GROWTH * point + size * _TURN * np.array([-sine, -cosine])
    return point, tangent
