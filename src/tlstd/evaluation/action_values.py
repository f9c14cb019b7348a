"""Transitions of action values: how a value function goes on learning from a log for a target policy (LSTDQ).

x_t = φ(s_t, a_t) and x′_t = Σ_a π(a|s_{t+1}) φ(s_{t+1}, a).

M. G. Lagoudakis, R. Parr, "Least-squares policy iteration", Journal of Machine Learning Research 4, 2003.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from tlstd.core.arrays import FloatArray, IntArray, Matrix
from tlstd.data.transitions import Transitions
from tlstd.evaluation.policies import Target
from tlstd.features.base import FeatureMap
from tlstd.features.constant import Constant
from tlstd.features.states import encoded
from tlstd.logs.log import Log

PIECE = 250_000
"""Steps of a log that are encoded at once."""


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
    values: rewards are r - c_a + γ Σ_a′ π(a′|s′) c_a′.
    """
    steps = log.transitions(features, gamma)
    base = sp.csr_array(steps.store)
    assert log.actions is not None
    kept, probabilities = chances(log, steps, target, n_actions)
    rows, next_rows, discounts = steps.rows[kept], steps.next_rows[kept], steps.discounts[kept]
    actions, rewards = log.actions[rows].astype(np.int64), steps.rewards[kept]
    if offsets is not None:
        rewards = rewards - offsets[actions] + discounts * (probabilities @ offsets)[next_rows]
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
