"""What is learned from a log for a question: values of states, with ratios, or of states and actions, per fold."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.errors import InvalidInputError
from tlstd.evaluation import selection as select
from tlstd.evaluation import silence
from tlstd.evaluation.least_squares import LeastSquares, Query, least_squares, units
from tlstd.evaluation.policies import Target
from tlstd.evaluation.selection import Selection
from tlstd.evaluation.silence import Gaps
from tlstd.evaluation.steps import BLOCK, Rows, Steps, steps_of
from tlstd.evaluation.systems import WHOLE, ActionSystem, PairSystem, StateSystem, System, gathered
from tlstd.features.base import FeatureMap
from tlstd.logs.log import Log

Kind: TypeAlias = Literal["states", "actions", "joint"]
SMALLEST = 1e-10
"""Singular values of the constants' system, relative to the largest, that count as 0."""


@dataclass(frozen=True, eq=False)
class Starts:
    """A set of states whose mean value is asked for."""

    name: str
    observations: NDArray[Any]
    """(M, D), or (M,) numbers of states."""
    rows: IntArray | None
    """(M,): their rows in the log; None if the states were given."""
    chances: FloatArray | None = None
    """(M, n_actions): of the policy, where it is a table."""


@dataclass(frozen=True, eq=False)
class Fit:
    """Values that were learned from a log, by all episodes and without each fold."""

    kind: Kind
    system: System
    features: FeatureMap
    selection: Selection
    folds: IntArray
    """That each column of the weights has not seen, ``WHOLE`` last."""
    weights: list[FloatArray]
    """(n, folds + 1) for each right-hand side: rewards, and what unsupported actions bring."""
    target: Target | None
    offsets: FloatArray
    """Constants of the actions (of one, where these are continuous), that are not regularised; 0 for states."""
    beyond: FloatArray
    """(M,): the policy's probability of unsupported actions in each row of features."""
    gaps: Gaps | None
    """These, where actions are discrete."""
    is_table: bool
    policy: FloatArray | None = None
    """(M, n_actions): the policy's probabilities of all discrete actions, whether the log has them or not."""
    worth: float = 0.0
    """Of unsupported actions, in values of single states: the middle of their range."""

    @property
    def steps(self) -> Steps:
        """The steps that were learned from."""
        return self.system.steps

    @property
    def lambda_(self) -> float:
        """λ of the values."""
        return self.selection.whole.lambda_

    @property
    def silent(self) -> bool:
        """Whether the policy takes actions that the log does not have."""
        return len(self.weights) > 1

    @property
    def name(self) -> str:
        """Of its row in a table."""
        if self.kind != "states":
            return "LSTDQ"
        return "KrylovLSTD" if self.system.rhos is None else "KrylovLSTD with ratios"

    @property
    def note(self) -> str:
        """Settings, in words."""
        chosen = self.selection.whole
        unsure = "" if self.selection.decided else " (not chosen)"
        lambda_ = f"λ={chosen.lambda_:g}, " if self.kind == "states" else ""
        return f"{lambda_}dimension {chosen.dimension}{unsure}"

    # --- values -----------------------------------------------------------------------------------------------------

    def own(self, values: FloatArray, fold: IntArray) -> FloatArray:
        """Of (N, folds + 1) numbers those of the column that has not seen each fold."""
        if self.folds.size < 3:
            return values[:, -1]
        chosen: FloatArray = values[np.arange(fold.size), np.searchsorted(self.folds[:-1], fold)]
        return chosen

    def held_out(self, worth: float = 0.0) -> tuple[FloatArray, FloatArray]:
        """Values (N,) of each step's x_t and x'_t by models of other episodes; unsupported actions have a worth."""
        steps, parts = self.steps, []
        for side, own in enumerate(self.weights):
            now, after = self.system.on(own)
            parts.append((self.own(now, steps.fold), self.own(after, steps.fold) + self.extra(steps.after, side)))
        now, after = parts[0]
        if self.silent:
            now, after = now + worth * parts[1][0], after + worth * parts[1][1]
        return now + self.of_taken(), after

    def doubly(self, worth: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """q(s_t, a_t), v(s_t) and v(s_{t+1}) (N,) by models of other episodes, v over *all* actions of the policy.

        Which actions the log has depends on what was done in the step itself, so that v without the others would be
        wrong on average where the step is weighted.
        """
        steps, system = self.steps, self.system
        if not isinstance(system, ActionSystem) or self.policy is None:
            now, after = self.held_out(worth)
            return now, self._own_values() if self.kind == "joint" else now, after
        W = self.weights[0] if not self.silent else self.weights[0] + worth * self.weights[1]
        full = ActionSystem(steps, system.rows, system.actions, self.policy)
        now, after = full.on(W)
        top = self.policy @ self.offsets
        first = self.own(full.mean_of(steps.here, W), steps.fold) + top[steps.here]
        q = self.own(now, steps.fold) + self.offsets[system.actions]
        return q, first, self.own(after, steps.fold) + top[steps.after]

    def _own_values(self) -> FloatArray:
        """v(s_t) of continuous actions."""
        rows = self._behind.times(self.weights[0])[self.steps.here]
        return self.own(rows, self.steps.fold) + self.extra(self.steps.here, 0)

    def of_taken(self) -> FloatArray:
        """(N,): the constants of the actions that were taken."""
        if self.kind == "states":
            return np.zeros(len(self.steps))
        if self.kind == "joint":
            return np.full(len(self.steps), self.offsets[0])
        assert isinstance(self.system, ActionSystem)
        taken: FloatArray = self.offsets[self.system.actions]
        return taken

    def extra(self, rows: IntArray, side: int) -> FloatArray:
        """What comes on top of features times weights for the policy's value in rows of features."""
        if side:
            return self.beyond[rows]
        if self.kind == "actions":
            assert isinstance(self.system, ActionSystem)
            means: FloatArray = (self.system.chances @ self.offsets)[rows]
            return means
        return (1.0 - self.beyond[rows]) * self.offsets[0]

    def query(self, starts: Starts, weights: FloatArray | None = None) -> Query:
        """A set of states as ``least_squares`` takes it; equal weights if left out."""
        steps, n = self.steps, len(starts.observations)
        weights = np.full(n, 1.0 / n) if weights is None else weights
        if starts.rows is None:
            return self._given(starts, weights)
        rows = steps.row_of[starts.rows]
        at = np.minimum(np.searchsorted(steps.kept, starts.rows), len(steps) - 1)
        return self.of_rows(rows, weights, steps.fold[at], units(steps)[0][at])

    def of_rows(self, rows: IntArray, weights: FloatArray, fold: IntArray, unit: IntArray | None) -> Query:
        """The query of rows of the log's own features."""
        system = self.system
        sums = gathered(weights[:, None], rows, system.rows.size if self.kind != "joint" else self._behind.size)
        extras = tuple(self.extra(rows, side) for side in range(len(self.weights)))
        if isinstance(system, ActionSystem):
            x, on = system.mean_features(sums)[:, 0], lambda W: system.mean_of(rows, W)
        else:
            x, on = self._behind.back(sums)[:, 0], lambda W: self._behind.times(W)[rows]
        return Query(x, on, weights, fold, unit, extras)

    @property
    def _behind(self) -> Rows:
        """Rows of features of states, under the policy."""
        return self.system.behind if isinstance(self.system, PairSystem) else self.system.rows

    def _given(self, starts: Starts, weights: FloatArray) -> Query:
        """The query of states that are not the log's."""
        observations = starts.observations
        states = observations.reshape(len(observations), -1).astype(np.float64)
        none, system = np.full(len(states), WHOLE), self.system
        if self.kind == "joint":
            assert self.target is not None and isinstance(system, PairSystem)
            behind = pairs_under(self.features, self.target, observations, self.n_numbers, system)
            x = behind.back(weights[:, None])[:, 0]
            return Query(x, behind.times, weights, none, None, (np.full(len(states), self.offsets[0]),))
        rows = Rows.of(self.features, states).over(system.rows.ids)
        if isinstance(system, ActionSystem):
            assert self.target is not None
            if self.target.function is None and starts.chances is None:
                raise InvalidInputError(
                    "start are states, but the policy is a table of the log's states: pass a function"
                )
            chances = starts.chances
            if chances is None:
                chances = self.target.probabilities(observations, system.n_actions)
            kept = np.zeros((len(states), system.n_actions))
            for a in range(chances.shape[1]):
                some = np.flatnonzero(chances[:, a])
                kept[some, a] = chances[some, a]
                if self.silent and some.size:
                    logged = np.bincount(self.steps.here[system.actions == a], minlength=system.rows.size)
                    own = silence.Support(system.rows, logged.astype(np.float64), self.is_table)
                    kept[some, a] = np.where(own.has(rows, some), chances[some, a], 0.0)
            beyond = chances.sum(axis=1) - kept.sum(axis=1)
            given = ActionSystem(self.steps, rows, system.actions[:0], kept)
            every = np.arange(len(states))
            extras = (kept @ self.offsets, beyond)[: len(self.weights)]
            return Query(
                given.mean_features(weights[:, None])[:, 0],
                lambda W: given.mean_of(every, W),
                weights,
                none,
                None,
                extras,
            )
        return Query(rows.back(weights[:, None])[:, 0], rows.times, weights, none, None, (np.zeros(len(states)),))

    @property
    def n_numbers(self) -> int:
        """Numbers of a continuous action."""
        actions = self.steps.log.actions
        return 0 if actions is None or actions.ndim == 1 else int(actions.shape[1])

    @property
    def rhos(self) -> FloatArray | None:
        """(len(log),): importance ratios of the log's steps; 1 where a step was left out."""
        if self.system.rhos is None:
            return None
        every = np.ones(len(self.steps.log))
        every[self.steps.kept] = self.system.rhos
        return every

    def value(self, query: Query) -> list[LeastSquares]:
        """The debiased value of a query, for each right-hand side."""
        return least_squares(self.system, query, self.folds, self.weights, self.lambda_)

    def regularised(self, states: Starts) -> FloatArray:
        """(M,): the values of single states, by all episodes."""
        query = self.query(states)
        values = query.on(self.weights[0][:, -1:])[:, 0] + query.offsets[0]
        if self.silent:
            values = values + self.worth * (query.on(self.weights[1][:, -1:])[:, 0] + query.offsets[1])
        return values


# --- fitting --------------------------------------------------------------------------------------------------------


def fit_states(
    log: Log, features: FeatureMap, gamma: float, rhos: FloatArray | None = None, rows: Rows | None = None
) -> Fit:
    """Values of states; ``rhos`` (len(log),) are importance ratios, ``rows`` features that are there already."""
    steps = steps_of(log, gamma)
    if not len(steps):
        raise InvalidInputError("the log has no step whose next observation is known: nothing can be learned")
    encoded = Rows.of(features, _columns(steps.states)) if rows is None or rows.size != len(steps.states) else rows
    system = StateSystem(steps, encoded, None if rhos is None else rhos[steps.kept])
    chosen = select.choose(system)
    folds, weights = select.weights(system, chosen)
    nothing = np.zeros(encoded.size)
    return Fit("states", system, features, chosen, folds, [weights], None, np.zeros(1), nothing, None, False)


def fit_actions(log: Log, features: FeatureMap, gamma: float, target: Target, rows: Rows | None = None) -> Fit:
    """Action values of a target policy, for discrete actions."""
    n_actions, known = target.n_actions(log), None
    if target.table is not None:  # whose next states have to be in the log
        last = log.episodes[1:] - 1
        known = np.ones(len(log), dtype=np.bool_)
        known[last[~log.terminated[last]]] = False
    steps = steps_of(log, gamma, distinct=target.table is None, known=known)
    if not len(steps):
        raise InvalidInputError("the log has no step whose next observation is known: nothing can be learned")
    assert log.actions is not None
    encoded = Rows.of(features, _columns(steps.states)) if rows is None or rows.size != len(steps.states) else rows
    chances = np.zeros((encoded.size, n_actions))
    if target.table is not None:
        chances[: len(log), : target.table.shape[1]] = target.table
    else:
        for a in range(0, encoded.size, BLOCK):
            chances[a : a + BLOCK] = target.probabilities(steps.states[a : a + BLOCK], n_actions)
    actions = log.actions[steps.kept].astype(np.int64)
    kept, gaps = silence.supported(encoded, steps, actions, chances)
    beyond = np.bincount(gaps.rows, gaps.weights, encoded.size).astype(np.float64)
    system = ActionSystem(steps, encoded, actions, kept)
    offsets = _constants(system)
    discounts = steps.discounts
    system.rewards = [steps.rewards - offsets[actions] + discounts * (kept @ offsets)[steps.after]]
    if gaps.rows.size:
        system.rewards.append(discounts * beyond[steps.after])
    chosen = select.choose_for_actions(system)
    made = _fitted("actions", system, features, chosen, target, offsets, beyond, gaps, silence.is_table(encoded))
    return replace(made, policy=chances)


def fit_pairs(log: Log, features: FeatureMap, gamma: float, target: Target) -> Fit:
    """Action values of a target policy, for continuous actions: features of state and action side by side."""
    steps = steps_of(log, gamma, distinct=False)
    if not len(steps):
        raise InvalidInputError("the log has no step whose next observation is known: nothing can be learned")
    assert log.actions is not None
    states = _columns(steps.states)
    rows = Rows.of(features, np.hstack([states[steps.here], log.actions[steps.kept]]))
    system = PairSystem(steps, rows, rows)
    behind = system.behind = pairs_under(features, target, steps.states, log.actions.shape[1], system)
    horizon = float((1.0 - steps.discounts).sum())
    offsets = np.array([float(steps.rewards.sum()) / horizon if horizon > 0.0 else 0.0])
    after = offsets[0] * steps.discounts
    system.rewards = [steps.rewards - offsets[0] + after]
    chosen = select.choose_for_actions(system)
    return _fitted("joint", system, features, chosen, target, offsets, np.zeros(behind.size), None, False)


def _fitted(
    kind: Kind, system: System, features: FeatureMap, chosen: Selection, target: Target, offsets: FloatArray,
    beyond: FloatArray, gaps: Gaps | None, table: bool,
) -> Fit:  # fmt: skip
    folds, first = select.weights(system, chosen)
    weights = [first, *(select.weights(system, chosen, side)[1] for side in range(1, len(system.rewards)))]
    return Fit(kind, system, features, chosen, folds, weights, target, offsets, beyond, gaps, table)


def pairs_under(
    features: FeatureMap, target: Target, observations: NDArray[Any], size: int, system: PairSystem
) -> Rows:
    """Mean features (M, d) of states and the actions that the policy draws there, over the system's features."""
    states = _columns(observations)
    drawn = target.draws(observations, size)
    every = [Rows.of(features, np.hstack([states, actions])).over(system.rows.ids) for actions in drawn]
    blocks = []
    for parts in zip(*(rows.blocks for rows in every), strict=True):
        mean = parts[0] if len(parts) == 1 else sum(part / len(parts) for part in parts)
        blocks.append(sp.csr_array(mean) if sp.issparse(mean) else mean)
    return Rows(blocks, system.rows.ids, system.rows.n_features)


def _columns(observations: NDArray[Any]) -> FloatArray:
    """(M, D) numbers, as feature maps take them."""
    return observations.reshape(len(observations), -1).astype(np.float64, copy=False)


def _constants(system: ActionSystem) -> FloatArray:
    """A value c_a for each action: LSTDQ with these constants as features.

    An action that was never taken has the value of the best constant for all.
    """
    steps, size = system.steps, system.n_actions
    A = np.zeros((size, size))
    following = system.chances[steps.after] * steps.discounts[:, None]
    for a, taken in enumerate(system.taken):
        A[a] = -following[taken].sum(axis=0)
        A[a, a] += taken.size
    b = np.bincount(system.actions, steps.rewards, size)
    ends = float(len(steps) - following.sum())
    if not ends > 1e-9 * len(steps):
        return np.zeros(size)
    c = np.full(size, float(b.sum()) / ends)
    taken = np.flatnonzero(A.diagonal())
    c[taken] += np.linalg.lstsq(A[np.ix_(taken, taken)], (b - A @ c)[taken], rcond=SMALLEST)[0]
    return c
