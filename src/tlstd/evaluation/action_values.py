"""Values of a policy that did not act, without knowing who did: action values by least squares (LSTDQ).

With x_t = φ(s_t, a_t) and x′_t = Σ_a π(a|s_{t+1}) φ(s_{t+1}, a), A w = b is that of LSTD(0): what was done next does
not matter, so that no probabilities of the behaviour are needed. λ is 0, because logged traces are not the target
policy's, and for the same reason nothing may be chosen by logged returns: the dimension is chosen by
‖b_k - A_k w‖ for held-out folds k, in the norm of the inverse feature covariance: the projected Bellman error there.

M. G. Lagoudakis, R. Parr, "Least-squares policy iteration", Journal of Machine Learning Research 4, 2003.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, cg

from tlstd.estimators.krylov_lstd import KrylovLSTD
from tlstd.evaluation.policies import Target
from tlstd.features.base import FeatureMap
from tlstd.features.states import encoded
from tlstd.linalg import held_out
from tlstd.linalg.krylov import Arnoldi
from tlstd.linalg.krylov_choice import fixed_dimension
from tlstd.logs.log import Log
from tlstd.types import FloatArray, IntArray, Matrix, Transitions

FOLDS = 5
DIMENSIONS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 65, 80, 100, 125, 150, 200, 250, 300)
"""Krylov dimensions that are compared."""
AT_LEAST = 80
"""Dimension before which the search does not end: where rewards are the same everywhere, small ones have the residual
of no values at all, and larger ones a larger residual before they have a smaller one."""
WORSE = 3
"""Dimensions in a row that are worse than the best, after which the search ends."""
COVARIANCE_RIDGE = 1e-3
"""Added to the feature covariance, in units of the mean ‖x‖²."""
DENSE = 3_000
"""Features seen up to which the covariance is decomposed; beyond, its systems are solved by conjugate gradients."""


def action_transitions(log: Log, features: FeatureMap, target: Target, gamma: float, n_actions: int) -> Transitions:
    """Transitions of state-action features for discrete actions: x_t = φ(s_t, a_t), x′_t as in the module's header.

    Where the target is a table, cut-off episodes lose their last step: the table does not have its next state. The
    table of a piece that goes on has one more row, for the state after it.
    """
    steps = log.transitions(features, gamma)
    base = sp.csr_array(steps.store)
    final = needed_finals(log)
    assert log.actions is not None
    kept: slice | IntArray = slice(None)
    if target.table is not None:
        known = len(log)
        order = np.arange(known)
        if log.goes_on and final.size and len(target.table) > known:  # the state after the piece comes last
            order = np.append(order, base.shape[0] - 1)
        probabilities = np.zeros((base.shape[0], n_actions))
        probabilities[order, : target.table.shape[1]] = target.table[: order.size]
        kept = np.flatnonzero(np.isin(steps.next_rows, order) | (steps.discounts == 0.0))
    else:
        seen = np.concatenate([log.observations, log.final[final]]) if final.size else log.observations
        probabilities = target.probabilities(seen, n_actions)
    rows, next_rows = steps.rows[kept], steps.next_rows[kept]
    X = shifted(base[rows], log.actions[rows].astype(np.int64), n_actions)
    X_next = expected(base, probabilities)[next_rows]
    return Transitions(
        X,
        steps.rewards[kept],
        X_next,
        discounts=steps.discounts[kept],
        trace_discounts=steps.trace_discounts[kept],
    )


def joint_transitions(log: Log, features: FeatureMap, target: Target, gamma: float) -> Transitions:
    """The same for continuous actions: features of state and action side by side, x′ the mean over draws."""
    final = needed_finals(log)
    assert log.actions is not None
    states = log.states
    X = encoded(features, np.hstack([states, log.actions]))
    seen = np.concatenate([log.observations, log.final[final]]) if final.size else log.observations
    all_states = seen.reshape(len(seen), -1).astype(np.float64)
    drawn = target.draws(seen, log.actions.shape[1])
    mean = mean_features(features, all_states, drawn)
    plain = log.transitions(_Nothing(), gamma)  # who follows whom, and the discounts
    return Transitions(
        X[plain.rows],
        plain.rewards,
        mean[plain.next_rows],
        discounts=plain.discounts,
        trace_discounts=plain.trace_discounts,
    )


def mean_features(features: FeatureMap, states: FloatArray, drawn: Sequence[FloatArray]) -> Matrix:
    """Features of states (M, D) and actions side by side, the mean over draws of the actions."""
    rows = [encoded(features, np.hstack([states, actions])) for actions in drawn]
    mean: Matrix = rows[0] if len(rows) == 1 else sum(row / len(rows) for row in rows)
    return mean


class _Nothing:
    """No features: one that is always 1."""

    n_features = 1

    def encode(self, state: object) -> FloatArray:
        """A one."""
        return np.ones(1)

    def encode_many(self, states: FloatArray) -> FloatArray:
        """A one for each."""
        return np.ones((len(states), 1))


def needed_finals(log: Log) -> IntArray:
    """Episodes whose final observation is bootstrapped from, in the order of ``log.transitions``."""
    last = log.episodes[1:] - 1
    return np.flatnonzero(~log.terminated[last] & log.has_final)


def shifted(X: sp.csr_array, actions: IntArray, n_actions: int) -> sp.csr_array:
    """Features of states (N, d) in the blocks of their actions, (N, n_actions · d), as in :class:`StateAction`."""
    d = X.shape[1]
    offset = np.repeat(actions * d, np.diff(X.indptr))
    return sp.csr_array((X.data, X.indices + offset, X.indptr), shape=(X.shape[0], n_actions * d))


def expected(X: sp.csr_array, probabilities: FloatArray) -> sp.csr_array:
    """Σ_a π(a|s) φ(s, a) for every row."""
    blocks = [sp.csr_array(X * probabilities[:, [a]]) for a in range(probabilities.shape[1])]
    both = sp.csr_array(sp.hstack(blocks, format="csr"))
    both.eliminate_zeros()
    return both


class Residuals(NamedTuple):
    """Which dimension was chosen for action values, and by which residuals."""

    dimension: int
    decided: bool
    dimensions: tuple[int, ...]
    scores: FloatArray
    """Mean over folds of ‖b_k - A_k w‖², in the norm of the inverse covariance."""
    note: str


def choose_dimension(steps: Transitions) -> Residuals:
    """The Krylov dimension by held-out residuals, of action values with λ = 0.

    The largest one within one standard error (over folds, of the difference) of the least: too small a dimension
    leaves out what is far from any reward, an error in one direction, where too large a one adds noise.

    Five folds of episodes. Cost: a Krylov path for each fold, and a solution with the feature covariance for each
    dimension and fold.
    """
    dealt = held_out.make_folds(steps.discounts, steps.trace_discounts, FOLDS)
    fixed = fixed_dimension(len(steps))
    if dealt.n_folds < 2 or dealt.n_groups < held_out.FEWEST_GROUPS:
        why = f"Nothing was chosen: there are only {dealt.n_groups} episodes or blocks."
        return Residuals(fixed, False, (), np.zeros(0), why)
    X, X_next = sp.csr_array(steps.X), sp.csr_array(steps.X_next)
    D = sp.csr_array(X - X_next * steps.discounts[:, None])
    seen = np.unique(X.indices)
    X, D = X[:, seen], D[:, seen]
    inverse = _Covariance(X)
    paths = [_path(X, D, steps.rewards, np.flatnonzero(dealt.fold != fold)) for fold in np.unique(dealt.fold)]
    held = [_rows(X, D, steps.rewards, np.flatnonzero(dealt.fold == fold)) for fold in np.unique(dealt.fold)]
    squares: list[list[float]] = []
    for m in DIMENSIONS:
        squares.append([])
        for arnoldi, (X_k, D_k, r_k) in zip(paths, held, strict=True):
            arnoldi.extend(m)
            errors = r_k - D_k @ arnoldi.paths[0].solution(m)
            squares[-1].append(inverse.square(X_k.T @ errors / errors.size))
        scores = np.mean(squares, axis=1)
        worse = len(scores) - 1 - int(scores.argmin())
        if (m >= AT_LEAST and worse >= WORSE) or all(arnoldi.paths[0].finished for arnoldi in paths):
            break
    largest_first = np.array(squares)[::-1].T
    best = len(scores) - 1 - held_out.within_one_standard_error(largest_first)
    note = f"Held-out residuals of {len(steps):,} steps, {dealt}."
    return Residuals(DIMENSIONS[best], True, DIMENSIONS[: len(scores)], scores, note)


def _rows(
    X: sp.csr_array, D: sp.csr_array, rewards: FloatArray, chosen: IntArray
) -> tuple[sp.csr_array, sp.csr_array, FloatArray]:
    return X[chosen], D[chosen], rewards[chosen]


def _path(X: sp.csr_array, D: sp.csr_array, rewards: FloatArray, chosen: IntArray) -> Arnoldi:
    """The Krylov path of A = XᵀD/N and b = Xᵀr/N of some rows; nothing of size d × d is formed."""
    some, differences, r = _rows(X, D, rewards, chosen)
    transposed = sp.csr_array(some.T)
    return Arnoldi(lambda V, _: transposed @ (differences @ V) / r.size, (transposed @ r / r.size)[:, None])


class _Covariance:
    """C = XᵀX/N + ηI, as the norm gᵀC⁻¹g."""

    def __init__(self, X: sp.csr_array) -> None:
        n, d = X.shape
        self.X, self.n = X, n
        self.ridge = COVARIANCE_RIDGE * float((X.data**2).sum()) / n
        self.factor = None
        if d <= DENSE:
            C = (X.T @ X).toarray() / n
            C[np.diag_indices(d)] += self.ridge
            self.factor = scipy.linalg.cho_factor(C)

    def square(self, g: FloatArray) -> float:
        """gᵀC⁻¹g."""
        if self.factor is not None:
            return float(g @ scipy.linalg.cho_solve(self.factor, g))
        apply = LinearOperator(
            (g.size, g.size), matvec=lambda v: self.X.T @ (self.X @ v) / self.n + self.ridge * v, dtype=np.float64
        )
        solution, _ = cg(apply, g, rtol=1e-3, maxiter=200)
        return float(g @ solution)


def fit_action_values(steps: Transitions, dimension: int | None = None) -> tuple[KrylovLSTD, Residuals | None]:
    """A model of action values, of a given dimension or of the one that :func:`choose_dimension` finds."""
    choice = None
    if dimension is None:
        choice = choose_dimension(steps)
        dimension = choice.dimension
    model = KrylovLSTD(steps.n_features, lambda_=0.0, dimension=dimension)
    model.update_many(steps)
    return model, choice
