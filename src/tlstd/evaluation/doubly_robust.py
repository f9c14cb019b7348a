"""The value of another policy from whole episodes: weighted doubly robust, with action values of other episodes."""

from __future__ import annotations

import numpy as np

from tlstd.core.arrays import FloatArray, IntArray, Matrix
from tlstd.data.transitions import Transitions
from tlstd.evaluation.episode_values import episode_value
from tlstd.evaluation.fitted import Fitted
from tlstd.evaluation.importance import episode_folds
from tlstd.evaluation.influence import Asked
from tlstd.evaluation.kernels import returns as kernels
from tlstd.evaluation.log_intervals import learned_rows
from tlstd.evaluation.reference import part
from tlstd.evaluation.rungs import DOUBLY_ROBUST
from tlstd.evaluation.whole_episodes import WholeEpisodes, between, of_starts
from tlstd.krylov.krylov_lstd import KrylovLSTD

ENOUGH = 40
"""Effective sample size of the final weights from which the answer can stand on them (``docs/trust.md``)."""


def doubly_robust(fitted: Fitted, rhos: FloatArray) -> WholeEpisodes | None:
    """The weighted doubly robust value of the start states; None if no step leaves one.

    Parameters
    ----------
    fitted : Fitted
        Action values of the policy asked for, by LSTDQ. Those of a step come from a model with the same settings that
        has learned from other episodes.
    rhos : (N,)
        Importance ratios of the steps of its log.
    """
    log, rows, steps = fitted.log, learned_rows(fitted), fitted.transitions()
    starts = np.flatnonzero(np.isin(rows, log.start_rows))
    if not starts.size:
        return None
    begins, ends = of_starts(steps, starts)
    own = fitted.start_features("start states")
    asked = np.isin(log.start_rows, rows)
    q, v_next, v = _held_out(fitted, steps, own.X[asked], starts)
    some = between(begins, ends)
    behind_last = np.cumsum(ends - begins)
    first = behind_last - (ends - begins)
    values, ratios, discounts = np.zeros(some.size), rhos[rows[some]], steps.discounts[some]
    values[first] = v + own.offsets[asked]  # elsewhere offsets are part of the rewards
    found = episode_value(behind_last, steps.rewards[some], discounts, values, v_next[some], q[some], ratios)
    weights = _of_tails(behind_last, first, discounts, ratios)
    cut = np.flatnonzero(weights > 0.0)
    worth = weights[cut] * v_next[ends[cut] - 1]
    X_cut: Matrix = steps.X_next[ends[cut] - 1]
    cuts = Asked(np.asarray(weights[cut] @ X_cut).reshape(1, -1)) if cut.size else None
    episodes = np.searchsorted(log.episodes, rows[starts], side="right") - 1
    carries = starts.size == log.start_rows.size >= 2 and found.effective >= ENOUGH
    note = f"{starts.size:,} episodes, by their final weights worth {found.effective:,.0f}"
    added, size = float(worth.sum()), float(np.abs(worth).sum())
    return WholeEpisodes(
        found, episodes, log.n_episodes, DOUBLY_ROBUST.name, note, carries, behind=added, size=size, cuts=cuts
    )


def _held_out(
    fitted: Fitted, steps: Transitions, X_first: Matrix, starts: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """q (N,), v′ (N,), and v of the first states, by models of other episodes; all without the constants of actions."""
    folds = episode_folds(steps)
    q, v_next, v = np.zeros(len(steps)), np.zeros(len(steps)), np.zeros(starts.size)
    for fold in np.unique(folds.fold).tolist():
        mine = folds.fold == fold
        model = KrylovLSTD(steps.n_features, lambda_=0.0, dimension=fitted.dimension)
        model.update_many(part(steps, ~mine, folds.cut))
        held, here = part(steps, mine, folds.cut), mine[starts]
        q[mine], v_next[mine] = model.predict(held.X), model.predict(held.X_next)
        if here.any():
            v[here] = model.predict(X_first[here])
    return q, v_next, v


def _of_tails(ends: IntArray, first: IntArray, discounts: FloatArray, ratios: FloatArray) -> FloatArray:
    """(G,): what the value behind the last step of each episode counts for: discounted, weighted, over all weights."""
    longest = int((ends - first).max())
    sums, weights = np.zeros(longest), np.zeros(longest)
    kernels.add_up(ends, discounts, ratios, np.zeros(discounts.size), sums, weights)
    own = np.multiply.reduceat(discounts, first) * np.multiply.reduceat(ratios, first)
    total = weights[ends - first - 1]
    found: FloatArray = np.divide(own, total, out=np.zeros(own.size), where=total > 0.0)
    return found
