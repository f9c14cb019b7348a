"""Values of a policy that did not act, without knowing who did: action values by least squares (LSTDQ).

With x_t = φ(s_t, a_t) and x′_t = Σ_a π(a|s_{t+1}) φ(s_{t+1}, a), A w = b is that of LSTD(0): what was done next does
not matter, so that no probabilities of the behaviour are needed. λ is 0, because logged traces are not the target
policy's, and for the same reason nothing may be chosen by logged returns: the dimension is chosen by
‖b_k - A_k w‖ for held-out folds k, in the norm of the inverse feature covariance: the projected Bellman error there.

A small dimension has values near to 0, and few steps for each feature choose a small one. So a constant c_a for each
action is not regularised: it is solved for first, and the Krylov space is that of what these constants leave over.

M. G. Lagoudakis, R. Parr, "Least-squares policy iteration", Journal of Machine Learning Research 4, 2003.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, cg

from tlstd.core.arrays import FloatArray, IntArray, Matrix
from tlstd.core.units import safe_unit
from tlstd.data import held_out
from tlstd.data.transitions import Transitions
from tlstd.evaluation.policies import Target
from tlstd.features.base import FeatureMap
from tlstd.features.constant import Constant
from tlstd.features.states import encoded
from tlstd.krylov.arnoldi import Arnoldi
from tlstd.krylov.choice import fixed_dimension
from tlstd.logs.log import Log

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
PIECE = 250_000
"""Steps of a log that are encoded at once."""
SMALLEST = 1e-10
"""Singular values of the constants' system, relative to the largest, that count as 0."""
DENSE = 3_000
"""Features seen up to which the covariance is decomposed; beyond, its systems are solved by conjugate gradients."""


def action_transitions(
    log: Log,
    features: FeatureMap,
    target: Target,
    gamma: float,
    n_actions: int,
    offsets: FloatArray | None = None,
) -> Transitions:
    """Transitions of state-action features for discrete actions: x_t = φ(s_t, a_t), x′_t as in the module's header.

    Where the target is a table, cut-off episodes lose their last step: the table does not have its next state. The
    table of a piece that goes on has one more row, for the state after it. ``offsets`` (n_actions,) are taken off the
    values: rewards are r - c_a + γ Σ_a′ π(a′|s′) c_a′. Where the target has a ``support``, x′ is the sum over the
    supported actions, and what the others are worth is part of the reward.
    """
    steps = log.transitions(features, gamma)
    base = sp.csr_array(steps.store)
    assert log.actions is not None
    kept, probabilities = chances(log, steps, target, n_actions)
    probabilities, beyond = target.valued(base, probabilities)
    rows, next_rows, discounts = steps.rows[kept], steps.next_rows[kept], steps.discounts[kept]
    actions, rewards = log.actions[rows].astype(np.int64), steps.rewards[kept]
    if offsets is not None:
        rewards = rewards - offsets[actions] + discounts * (probabilities @ offsets)[next_rows]
    if beyond is not None:
        rewards = rewards + discounts * beyond[next_rows]
    return Transitions(
        shifted(base[rows], actions, n_actions),
        rewards,
        expected(base, probabilities)[next_rows],
        discounts=discounts,
        trace_discounts=steps.trace_discounts[kept],
    )


def chances(log: Log, steps: Transitions, target: Target, n_actions: int) -> tuple[slice | IntArray, FloatArray]:
    """The steps of a log whose next state's actions are known, and the target's probabilities of all actions.

    The latter (B, n_actions) are in the states of ``steps.store``: 0 where a table does not have the state.
    """
    final = needed_finals(log)
    if target.table is None:
        seen = np.concatenate([log.observations, log.final[final]]) if final.size else log.observations
        return slice(None), target.probabilities(seen, n_actions)
    known, size = len(log), steps.store.shape[0]
    order = np.arange(known)
    if log.goes_on and final.size and len(target.table) > known:  # the state after the piece comes last
        order = np.append(order, size - 1)
    probabilities = np.zeros((size, n_actions))
    probabilities[order, : target.table.shape[1]] = target.table[: order.size]
    return np.flatnonzero(np.isin(steps.next_rows, order) | (steps.discounts == 0.0)), probabilities


def joint_transitions(
    log: Log, features: FeatureMap, target: Target, gamma: float, offsets: FloatArray | None = None
) -> Transitions:
    """The same for continuous actions: features of state and action side by side, x′ the mean over draws."""
    final = needed_finals(log)
    assert log.actions is not None
    states = log.states
    X = encoded(features, np.hstack([states, log.actions]))
    seen = np.concatenate([log.observations, log.final[final]]) if final.size else log.observations
    all_states = seen.reshape(len(seen), -1).astype(np.float64)
    drawn = target.draws(seen, log.actions.shape[1])
    mean = mean_features(features, all_states, drawn)
    plain = log.transitions(Constant(), gamma)  # who follows whom, and the discounts
    c = 0.0 if offsets is None else float(offsets[0])
    return Transitions(
        X[plain.rows],
        plain.rewards - (1.0 - plain.discounts) * c,
        mean[plain.next_rows],
        discounts=plain.discounts,
        trace_discounts=plain.trace_discounts,
    )


def mean_features(features: FeatureMap, states: FloatArray, drawn: Sequence[FloatArray]) -> Matrix:
    """Features of states (M, D) and actions side by side, the mean over draws of the actions."""
    rows = [encoded(features, np.hstack([states, actions])) for actions in drawn]
    mean: Matrix = rows[0] if len(rows) == 1 else sum(row / len(rows) for row in rows)
    return mean


def constants(log: Log, target: Target, gamma: float, n_actions: int) -> FloatArray:
    """A value c_a for each action (one for all, if actions are continuous): LSTDQ with these constants as features.

    An action that was never taken has the value of the best constant for all.
    """
    assert log.actions is not None
    size = 1 if log.actions.ndim == 2 else n_actions
    A, b, ends, start = np.zeros((size, size)), np.zeros(size), 0.0, 0
    for piece in log.pieces(PIECE):
        part, start = target.of_rows(start, start + len(piece)), start + len(piece)
        if size == 1:
            steps = piece.transitions(Constant(), gamma)
            X = X_next = np.ones((len(steps), 1))
        else:
            steps = action_transitions(piece, Constant(), part, gamma, n_actions)
            X, X_next = (matrix.toarray() for matrix in (steps.X, steps.X_next))  # type: ignore[union-attr]
        A += X.T @ (X - steps.discounts[:, None] * X_next)
        b += X.T @ steps.rewards
        ends += float((1.0 - steps.discounts).sum())
    if not ends > 0.0:
        return np.zeros(size)
    c = np.full(size, float(b.sum()) / ends)
    taken = np.flatnonzero(A.diagonal())
    c[taken] += np.linalg.lstsq(A[np.ix_(taken, taken)], (b - A @ c)[taken], rcond=SMALLEST)[0]
    return c


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
    unit = safe_unit(steps.rewards)
    rewards = steps.rewards / unit
    paths = [_path(X, D, rewards, np.flatnonzero(dealt.fold != fold)) for fold in np.unique(dealt.fold)]
    held = [_rows(X, D, rewards, np.flatnonzero(dealt.fold == fold)) for fold in np.unique(dealt.fold)]
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
    return Residuals(DIMENSIONS[best], True, DIMENSIONS[: len(scores)], scores * unit**2, note)


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
