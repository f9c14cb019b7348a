"""Checks of support: whether the log has anything like the start states, and like what the policy would do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.evaluation.policies import Target
from tlstd.evaluation.rungs import ACTION_VALUES
from tlstd.evaluation.silence import REFUSED
from tlstd.evaluation.trust.evidence import Evidence
from tlstd.evaluation.trust.neighbours import MOST_QUERIES, Neighbours, thinned
from tlstd.evaluation.trust.predictions import unchecked
from tlstd.evaluation.trust.verdict import Check, graded, percent
from tlstd.features.states import encoded

SOME, MANY = 0.05, 0.2
"""Shares of start states that are far from the log."""
SIMILAR = 100
"""Logged states around one, among which the policy's actions are looked for; in a small log a twentieth of it."""
EXPECTED = 3.0
"""How often the policy would have taken an action among similar states that the log never shows there."""
LITTLE, MUCH = 0.1, 0.5
"""Shares of the policy's future behind actions that the log does not show."""


def starts(evidence: Evidence) -> Check:
    """The share of start states that are far from everything logged."""
    every = evidence.starts.observations
    asked, own = every[thinned(len(every), MOST_QUERIES)], evidence.starts.rows is not None
    far = np.zeros(len(asked), dtype=np.bool_) if own else _far_states(evidence, asked)
    share = float(far.mean())
    state = graded(share > SOME, share > MANY)
    sentence = "The start states are the log's own"
    if not own:
        sentence = f"{percent(share)} of the start states are far from every logged state"
        if state != "green":
            sentence += ": their values are made up by the features. Log episodes from there, or ask for other states"
    return Check(
        "starts",
        "Start states like those logged",
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
    log = evidence.log
    if log.discrete:
        return ~np.isin(asked, log.observations)
    near = Neighbours(log.states, np.repeat(np.arange(log.n_episodes), np.diff(log.episodes)))
    rows = asked.reshape(len(asked), -1).astype(np.float64)
    X = encoded(evidence.features, rows)
    far = near.far(rows)
    if sp.issparse(X):
        seen = np.zeros(X.shape[1])
        seen[np.unique(sp.csr_array(evidence.steps.X).indices)] = 1.0
        size = np.abs(sp.csr_array(X))
        far |= size @ (1.0 - seen) > 0.5 * np.asarray(size.sum(axis=1)).ravel()
    return far


def actions(evidence: Evidence) -> Check:
    """The share of the policy's future that lies behind actions which the log never shows."""
    target, why = evidence.target, None
    per_step = at_start = 0.0
    if target is None:
        why = "The policy asked for is the one that acted: it did what it does"
    elif target.logged is not None:
        why = "Only the probabilities of logged actions are known: what else the policy would do is not"
    else:
        per_step, at_start = _unsupported(evidence, target)
    beyond = 1.0 - (1.0 - at_start) / (1.0 + per_step * evidence.horizon)
    state = graded(beyond > LITTLE, beyond > MUCH)
    sentence = (
        f"{percent(per_step)} of what the policy would do is not in the log near the state where it would do it, and "
        f"{percent(beyond)} of its future lies behind such an action"
    )
    if state != "green":
        sentence += ". Log a policy that tries these actions, or ask about one that is closer to the logged one"
    return Check(
        "actions",
        "Actions like those logged",
        state if why is None or target is None else "unchecked",
        beyond if why is None else None,
        "share of the policy's discounted future behind an action that the log does not show",
        f"more than {percent(LITTLE)}",
        f"more than {percent(MUCH)}",
        f"An action is not shown where none of {SIMILAR} similar states has it although the policy would have taken it "
        f"{EXPECTED:g} times (by the rule of three, the log then takes it less often than the policy with 95% "
        "confidence). With probability p a step, p·H/(1 + p·H) of a future of H steps lies behind the first one.",
        f"{why or sentence}.",
        {} if why else {"per_step": per_step, "at_start": at_start},
    )


def silence(evidence: Evidence) -> Check:
    """How much of the answer is the worth of actions that the log does not have."""
    found, answer = evidence.answer.silence, evidence.answer
    name, title = "silence", "Worth of actions that the log does not have"
    if found is None and (answer.rung != ACTION_VALUES.name or evidence.sample.values.kind != "actions"):
        return unchecked(name, title, "The answer does not rest on values of discrete actions.")
    if found is None and evidence.n_steps > len(evidence.whole):
        return unchecked(name, title, "Missing actions were looked for in a part of the log only.")
    if found is None:
        state, sentence = "green", "The log has every action that the policy takes"
    else:
        state = graded(not found.limits.given, found.refuses)
        sentence = found.sentence
        if found.refuses:
            sentence += ". No value can stand on that: log these actions, or ask about a policy that takes them less"
        elif not found.limits.given:
            sentence += (
                f". They count as worth {found.limits}, the range of returns in the log, which is an assumption: give "
                "the range (returns=, --returns)"
            )
    return Check(
        name,
        title,
        state,
        0.0 if found is None else found.mass,
        "discounted probability that the policy takes an action that the log does not have",
        "any, where the range of returns was not given",
        f"an interval wider than {percent(REFUSED)} of the range of returns because of them",
        "What was never logged is worth anything in the range of returns, and the interval has room for all of it. The "
        "range in the log may be too narrow for actions that it does not have.",
        f"{sentence}.",
        {} if found is None else found.to_dict(),
    )


def _unsupported(evidence: Evidence, target: Target) -> tuple[float, float]:
    """Probability, in a logged state and in a start state, of an action that is not in the log there."""
    log = evidence.log
    assert log.actions is not None
    rows = thinned(len(log), MOST_QUERIES)
    find: Callable[[NDArray[Any], IntArray | None], float]
    find = _Continuous(evidence, target) if log.actions.ndim == 2 else _Discrete(evidence, target)
    asked = evidence.starts
    some = thinned(len(asked.observations), MOST_QUERIES)
    if target.table is not None and asked.rows is None:  # what it does in given states is not known
        return find(log.observations[rows], rows), 0.0
    start_rows = None if asked.rows is None else asked.rows[some]
    return find(log.observations[rows], rows), find(asked.observations[some], start_rows)


class _Continuous:
    """States and actions side by side, far from every logged pair."""

    def __init__(self, evidence: Evidence, target: Target) -> None:
        log = evidence.log
        assert log.actions is not None
        self.target, self.size = target, log.actions.shape[1]
        group = np.repeat(np.arange(log.n_episodes), np.diff(log.episodes))
        self.near = Neighbours(np.hstack([log.states, log.actions]), group)

    def __call__(self, observations: NDArray[Any], rows: IntArray | None) -> float:
        states = observations.reshape(len(observations), -1).astype(np.float64)
        drawn = self.target.draws(observations, self.size)
        return float(np.mean([self.near.far(np.hstack([states, actions])).mean() for actions in drawn]))


class _Discrete:
    """Actions that none of the similar states in the log has."""

    def __init__(self, evidence: Evidence, target: Target) -> None:
        log, self.target = evidence.log, target
        assert log.actions is not None
        self.taken = log.actions.astype(np.int64)
        self.n_actions = evidence.n_actions
        self.k = min(SIMILAR, max(1, len(log) // 20))
        self.near = None if log.discrete else Neighbours(log.states, np.zeros(len(log), dtype=np.int64))
        if log.n_observations is not None:
            self.counts = np.zeros((log.n_observations, self.n_actions))
            np.add.at(self.counts, (log.observations, self.taken), 1.0)

    def __call__(self, observations: NDArray[Any], rows: IntArray | None) -> float:
        chances = self._chances(observations, rows)
        counts = self._around(observations)
        n = counts.sum(axis=1, keepdims=True)
        missing = (counts == 0.0) & (chances * np.maximum(n, EXPECTED) >= EXPECTED * (n > 0))
        missing &= chances > 0.0
        return float((chances * missing).sum(axis=1).mean())

    def _chances(self, observations: NDArray[Any], rows: IntArray | None) -> FloatArray:
        if self.target.table is None:
            return self.target.probabilities(observations, self.n_actions)
        assert rows is not None
        table = np.zeros((len(rows), self.n_actions))
        table[:, : self.target.table.shape[1]] = self.target.table[rows]
        return table

    def _around(self, observations: NDArray[Any]) -> FloatArray:
        """How often each action was taken in similar states."""
        if self.near is None:
            known = np.minimum(observations, len(self.counts) - 1)
            counts: FloatArray = np.where((observations < len(self.counts))[:, None], self.counts[known], 0.0)
            return counts
        states = observations.reshape(len(observations), -1).astype(np.float64)
        around = self.taken[self.near.nearest(states, min(self.k, len(self.near.rows)))]
        return np.stack([(around == a).sum(axis=1) for a in range(self.n_actions)], axis=1).astype(np.float64)
