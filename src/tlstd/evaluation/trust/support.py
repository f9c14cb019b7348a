"""Checks of support: whether the log has anything like the start states, and like the continuous actions asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tlstd.evaluation.rungs import ACTION_VALUES
from tlstd.evaluation.trust.evidence import Evidence, thinned
from tlstd.evaluation.trust.neighbours import MOST_QUERIES, Neighbours
from tlstd.evaluation.trust.verdict import Check, graded, not_applicable, percent
from tlstd.features.states import encoded

SOME, MANY = 0.05, 0.2
"""Shares of start states that are far from the log."""
LITTLE, MUCH = 0.1, 0.5
"""Shares of the policy's future behind actions that the log does not show."""


def starts(evidence: Evidence) -> Check:
    """The share of start states that are far from everything logged."""
    name, title = "starts", "Start states beside those logged"
    if not evidence.single:
        return not_applicable(name, title, "The start states are the log's own.")
    every = evidence.case.sets[0].observations
    far = _far_states(evidence, every[thinned(len(every), MOST_QUERIES)])
    share = float(far.mean())
    state = graded(share > SOME, share > MANY)
    sentence = f"{percent(share)} of the start states are far from every logged state"
    if state != "green":
        sentence += ": their values are made up by the features. Log episodes from there, or ask for other states"
    return Check(
        name,
        title,
        state,
        share,
        "share of start states further from the log than twice the distance within it",
        f"more than {percent(SOME)}",
        f"more than {percent(MANY)}",
        "What is not in the log is not measured: an error in these states enters the answer with their share. Far is "
        "more than twice the 99% quantile of the distances from logged states to those of other episodes.",
        f"{sentence}.",
        {},
    )


def _far_states(evidence: Evidence, asked: NDArray[Any]) -> NDArray[np.bool_]:
    """Far by distance, or by more than half of the features that were never seen."""
    log = evidence.sample
    if log.discrete:
        return ~np.isin(asked, evidence.log.observations)
    near = Neighbours(log.states, np.repeat(np.arange(log.n_episodes), np.diff(log.episodes)))
    rows = asked.reshape(len(asked), -1).astype(np.float64)
    X = encoded(evidence.case.cells, rows)
    far = near.far(rows)
    if sp.issparse(X) and evidence.fit.kind != "joint":
        seen = np.zeros(X.shape[1])
        seen[sp.csr_array(encoded(evidence.case.cells, log.states)).indices] = 1.0
        size = np.abs(sp.csr_array(X))
        far |= size @ (1.0 - seen) > 0.5 * np.asarray(size.sum(axis=1)).ravel()
    return far


def actions(evidence: Evidence) -> Check:
    """The share of the policy's future that lies behind continuous actions which the log never shows."""
    name, title, target, log = (
        "actions",
        "Continuous actions beside those logged",
        evidence.case.target,
        evidence.sample,
    )
    if target is None or target.function is None or not evidence.case.continuous or evidence.rung != ACTION_VALUES.name:
        return not_applicable(name, title, "The answer does not rest on values of continuous actions.")
    assert log.actions is not None
    group = np.repeat(np.arange(log.n_episodes), np.diff(log.episodes))
    near = Neighbours(np.hstack([log.states, log.actions]), group)
    per_step, at_start = (_far(evidence, near, seen) for seen in (log.observations, evidence.starts))
    beyond = 1.0 - (1.0 - at_start) / (1.0 + per_step * evidence.horizon)
    state = graded(beyond > LITTLE, beyond > MUCH)
    sentence = (
        f"{percent(per_step)} of what the policy would do is not in the log near the state where it would do it, and "
        f"{percent(beyond)} of its future lies behind such an action"
    )
    if state != "green":
        sentence += ". Log a policy that tries these actions, or ask about one that is closer to the logged one"
    return Check(
        name,
        title,
        state,
        beyond,
        "share of the policy's discounted future behind an action that the log does not show",
        f"more than {percent(LITTLE)}",
        f"more than {percent(MUCH)}",
        "An action is not shown where state and action side by side are far from every logged pair. With probability p "
        "per step, p·H/(1 + p·H) of a future of H steps lies behind the first one.",
        f"{sentence}.",
        {"per_step": per_step, "at_start": at_start},
    )


def _far(evidence: Evidence, near: Neighbours, observations: NDArray[Any]) -> float:
    target, log = evidence.case.target, evidence.log
    assert target is not None and log.actions is not None
    some = observations[thinned(len(observations), MOST_QUERIES)]
    states = some.reshape(len(some), -1).astype(np.float64)
    drawn = target.draws(some, log.actions.shape[1])
    return float(np.mean([near.far(np.hstack([states, each])).mean() for each in drawn]))
