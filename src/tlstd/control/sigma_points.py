"""Sigma-point policy iteration: the steps are summarised once, whatever the policies, and never looked at again.

LSTDQ needs E[x xᵀ], E[x r] and E[γ x φ_π(f′)ᵀ], where x = φ(s, a), f′ are the features of the next state, and φ_π(f′)
has f′ in the block of the action that π takes: only the last depends on the policy, and a greedy policy is a function
of f′ alone. Kept are the moments of (f′, x), weighted by γ: C = E[γ x f′ᵀ], M = E[γ f′f′ᵀ] and the means. The
expectation of the nonlinear φ_π is taken over sigma points u_j of f′, each with the x_j that belongs to it:

    E[γ x φ_π(f′)ᵀ] ≈ Σ_j x_j φ_π(u_j)ᵀ.

With L Lᵀ = M the points are the columns u_j of L, and x_j those of C L⁻ᵀ: the first d columns of the Cholesky factor of
the joint second moments of (f′, x); the others have u = 0. (φ_π is homogeneous, so that weights go into the points.)
Σ_j u_j u_jᵀ = M and Σ_j x_j u_jᵀ = C hold exactly. With one feature for each state M is diagonal, the points are the
states, and the sum is that of all steps: LSPI, exactly. That is ``about="zero"``. With ``about="mean"`` the points are
those of a Gaussian: mean ± √d times the columns of the factor of the covariance, with the regression of x on f′.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.linalg.lapack import dpstrf

from tlstd.control.iteration import Iteration, Loop, PolicyIteration, start_weights
from tlstd.control.policies import GreedyPolicy, action_values
from tlstd.control.steps import ActionSteps, action_steps, constant_value
from tlstd.core import parameters
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.lu import solve_lu
from tlstd.core.svd import solve_truncated
from tlstd.data.transitions import Transitions
from tlstd.errors import CapacityError
from tlstd.features.combine import StateAction
from tlstd.logs.log import Log

PIECE = 250_000
"""Steps of a log that are encoded at once."""
LARGEST = 20_000
"""Features of states and actions, up to which dense matrices are made of them."""

About: TypeAlias = Literal["zero", "mean"]


def sigma_point_policy_iteration(
    data: Log | Transitions,
    features: StateAction,
    *,
    gamma: float | None = None,
    about: About = "mean",
    ridge: float = 1e-6,
    rcond: float = 1e-4,
    start: ArrayLike | GreedyPolicy | None = None,
    actions: ArrayLike | None = None,
    center: bool = True,
    max_iterations: int = 20,
    tolerance: float = 1e-9,
    on_iteration: Callable[[Iteration], None] | None = None,
) -> PolicyIteration:
    """Policy iteration whose iterations cost the same for any number of steps (SPPI).

    The steps are read once, for first and second moments of features; the expectation under each policy is then taken
    over sigma points: a policy is asked what it does there, not where the data are.

    Parameters
    ----------
    data, features, gamma, start, actions, center, max_iterations, tolerance, on_iteration
        As in :func:`policy_iteration`. The best policy is the best by its own estimate.
    about : "zero" or "mean"
        Sigma points of the second moments, d of them, or of a Gaussian about the mean, 2d. With one feature a state
        "zero" is exact, the same as LSPI with this regularisation; with others "mean" is the better approximation.
    ridge : float >= 0
        η in units of the mean ‖x‖², added to the diagonal of A.
    rcond : float in [0, 1)
        Singular values at or below ``rcond`` times the largest are not inverted, where A + ηI is singular to rounding.

    Notes
    -----
    Time O(N · nnz²) once and O((n_actions · d)³) an iteration, memory O((n_actions · d)²), for d features.

    References
    ----------
    Bowling, Geramifard, Wingate: Sigma point policy iteration. AAMAS 2008. Built from what its abstract says (moments
    that do not depend on the policy, a Gaussian, sigma points, equal to LSPI for tables); the choice of the points is
    ours.

    Example
    -------
    >>> from tlstd import Log, OneHot, StateAction
    >>> places, moves = [0, 1, 1, 0, 0, 1], [1, 0, 1, 0, 1, 1]
    >>> log = Log.from_arrays(places, [0.0, 1.0, 2.0, 0.0, 0.0, 2.0], actions=moves, n_observations=2)
    >>> found = sigma_point_policy_iteration(log, StateAction(OneHot([0], [1]), 2), gamma=0.9, about="zero")
    >>> found.stopped, found.policy([0, 1])
    ('converged', array([1, 1]))
    """
    parameters.choice("about", about, get_args(About))
    options = parameters.real("ridge", ridge, low=0.0, high=1e100), parameters.real("rcond", rcond, low=0.0, high=1.0)
    pieces = [data] if not isinstance(data, Log) or len(data) == 0 else data.pieces(PIECE)
    steps = [action_steps(piece, features, gamma, actions) for piece in pieces]
    offset = constant_value(steps) if parameters.flag("center", center) else 0.0
    moments = _of_pieces([some.about(offset) for some in steps])
    ranges = [some.possible() for some in steps]
    evaluator = SigmaPoints(moments, about, *options)
    loop = Loop(
        evaluator,
        lambda policy, weights: offset + moments.start_value(weights, policy),
        parameters.integer("max_iterations", max_iterations),
        parameters.real("tolerance", tolerance, low=0.0, high=1.0),
        on_iteration,
        possible=(min(low for low, _ in ranges), max(high for _, high in ranges)),
    )
    loop.run(start_weights(start, features))
    return loop.result(features, "its own estimate", 0.0, actions)


@dataclass(frozen=True, eq=False)
class Moments:
    """What is kept of the steps, over the features that occur; means over all of them."""

    used: IntArray
    """(d,): the features of states that occur."""
    n_features: int
    """Of states, all."""
    n_actions: int
    S: FloatArray
    """E[x xᵀ] (n, n), n = n_actions · d"""
    b: FloatArray
    """E[x r] (n,)"""
    M: FloatArray
    """E[γ f′f′ᵀ] (d, d)"""
    C: FloatArray
    """E[γ x f′ᵀ] (n, d)"""
    mean: FloatArray
    """E[γ f′] (d,)"""
    x_mean: FloatArray
    """E[γ x] (n,)"""
    weight: float
    """E[γ]"""
    starts: sp.csr_array

    def start_value(self, weights: FloatArray, policy: FloatArray | None) -> float:
        """Mean value of the start states."""
        Q = action_values(weights, self.starts, self.n_actions)
        if policy is None:
            return float(Q.mean())
        chosen = action_values(policy, self.starts, self.n_actions).argmax(axis=1)
        return float(Q[np.arange(chosen.size), chosen].mean())


def _of_pieces(pieces: list[ActionSteps]) -> Moments:
    """The moments of steps that come in pieces."""
    n_actions, d = pieces[0].n_actions, pieces[0].X_next.shape[1]
    occurring = [np.unique(piece.X.indices % d) for piece in pieces]
    occurring += [np.unique(piece.X_next[piece.discounts > 0.0].indices) for piece in pieces]
    used = np.unique(np.concatenate(occurring))
    n = n_actions * used.size
    if n > LARGEST:
        raise CapacityError(
            f"{n:,} features of states and actions occur, more than {LARGEST:,}: use fewer, or policy_iteration with "
            "KrylovLSTD"
        )
    columns = (np.arange(n_actions)[:, None] * d + used).ravel()
    sums = [_sums(piece, columns, used) for piece in pieces]
    count = sum(len(piece) for piece in pieces)
    S, b, M, C, mean, x_mean, weight = (sum(parts) / count for parts in zip(*sums, strict=True))
    starts = sp.csr_array(sp.vstack([piece.starts for piece in pieces]))
    return Moments(used, d, n_actions, S, b, M, C, mean, x_mean, float(weight), starts)


def _sums(piece: ActionSteps, columns: IntArray, used: IntArray) -> tuple[FloatArray, ...]:
    X, F, gamma = piece.X[:, columns], piece.X_next[:, used], piece.discounts
    weighted = sp.csr_array(F * gamma[:, None])
    return (
        (X.T @ X).toarray(),
        X.T @ piece.rewards,
        (F.T @ weighted).toarray(),
        (X.T @ weighted).toarray(),
        F.T @ gamma,
        X.T @ gamma,
        gamma.sum(),
    )


class SigmaPoints:
    """Action values by sigma points of the next state's features."""

    def __init__(self, moments: Moments, about: About, ridge: float, rcond: float) -> None:
        self.moments, self.rcond = moments, rcond
        self.ridge = ridge * float(np.trace(moments.S))
        self.U, self.X = _about_zero(moments) if about == "zero" else _about_mean(moments)

    def asked(self, weights: FloatArray) -> IntArray:
        """The greedy actions at the sigma points."""
        moments = self.moments
        W = weights.reshape(moments.n_actions, moments.n_features)[:, moments.used]
        chosen: IntArray = (self.U.T @ W.T).argmax(axis=1)
        return chosen

    def fit(self, chosen: IntArray | None) -> FloatArray:
        """Solve (E[x xᵀ] - Σ_j x_j φ_π(u_j)ᵀ + ηI) w = E[x r]."""
        moments = self.moments
        d, n = moments.used.size, moments.b.size
        A = moments.S.copy()
        for action in range(moments.n_actions):
            block = slice(action * d, (action + 1) * d)
            if chosen is None:
                A[:, block] -= (self.X @ self.U.T) / moments.n_actions
            else:
                at = chosen == action
                A[:, block] -= self.X[:, at] @ self.U[:, at].T
        A[np.diag_indices(n)] += self.ridge
        b = moments.b[:, None]
        w = solve_lu(A, b)
        if w is None:
            w = solve_truncated(A, b, rcond=self.rcond)
        weights = np.zeros((moments.n_actions, moments.n_features))
        weights[:, moments.used] = w.reshape(moments.n_actions, d)
        return weights.ravel()


def _about_zero(moments: Moments) -> tuple[FloatArray, FloatArray]:
    """Points (d, k) and what belongs to them (n, k), of the second moments."""
    return _factors(moments.M, moments.C)


def _about_mean(moments: Moments) -> tuple[FloatArray, FloatArray]:
    """The same of a Gaussian: mean ± √k times the columns of the factor of the covariance, each of weight 1/(2k)."""
    if not moments.weight > 0.0:
        return np.zeros((moments.used.size, 0)), np.zeros((moments.b.size, 0))
    mean, x_mean = moments.mean / moments.weight, moments.x_mean / moments.weight
    L, K = _factors(
        moments.M / moments.weight - np.outer(mean, mean), moments.C / moments.weight - np.outer(x_mean, mean)
    )
    if L.shape[1] == 0:  # all next features are the same
        return mean[:, None], x_mean[:, None] * moments.weight
    k = L.shape[1]
    U = mean[:, None] + np.sqrt(k) * np.hstack([L, -L])
    X = x_mean[:, None] + np.sqrt(k) * np.hstack([K, -K])
    return U, X * (moments.weight / (2 * k))


def _factors(M: FloatArray, C: FloatArray) -> tuple[FloatArray, FloatArray]:
    """L (d, k) with L Lᵀ = M, by Cholesky with pivoting, and K (n, k) with K Lᵀ = C; k is the rank of M to rounding."""
    R, pivots, k, _ = dpstrf(M, lower=0)
    order = pivots - 1
    R = np.triu(R[:k])
    L = np.zeros((M.shape[0], k))
    L[order] = R.T
    # C Pᵀ = K R, so K = C_k R_k⁻¹ for the k leading columns
    K = scipy.linalg.solve_triangular(R[:, :k], C[:, order[:k]].T, trans="T", lower=False).T
    return L, K
