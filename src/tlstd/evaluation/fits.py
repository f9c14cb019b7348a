"""What is learned from a log for a question: values of states, with ratios, or of states and actions, per fold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.errors import InvalidInputError
from tlstd.evaluation import selection as select
from tlstd.evaluation import silence
from tlstd.evaluation.families import Choice, Family, Offer
from tlstd.evaluation.families import of_actions as choose_of_actions
from tlstd.evaluation.families import of_pairs as choose_of_pairs
from tlstd.evaluation.families import of_states as choose_of_states
from tlstd.evaluation.least_squares import LeastSquares, Query, least_squares, units
from tlstd.evaluation.policies import Target
from tlstd.evaluation.selection import Selection
from tlstd.evaluation.silence import Gaps
from tlstd.evaluation.steps import BLOCK, Rows, Steps, columns, steps_of
from tlstd.evaluation.systems import WHOLE, ActionSystem, PairSystem, StateSystem, System
from tlstd.features.base import FeatureMap
from tlstd.logs.log import Log

Kind: TypeAlias = Literal["states", "actions", "joint"]
Offered: TypeAlias = FeatureMap | Offer
"""A map, or families of which one is chosen."""
Kept: TypeAlias = dict[tuple[int, int], tuple[FeatureMap, Rows]]
"""Rows of features of the states of a log, by map and number of states."""
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
    tops: FloatArray
    """(M,): what the constants add to the policy's value in each row of features."""
    beyond: FloatArray
    """(M,): the policy's probability of unsupported actions in each row of features."""
    gaps: Gaps | None
    """These, where actions are discrete."""
    is_table: bool = False
    """Whether each state has one feature."""
    supports: tuple[silence.Support, ...] = ()
    """What the log has of each discrete action."""
    full: System | None = None
    """The system with all actions of the policy, whether the log has them or not."""
    full_tops: FloatArray = field(default_factory=lambda: np.zeros(0))
    """As ``tops``, for it."""
    worth: float = 0.0
    """Of unsupported actions, in values of single states: the middle of their range."""
    cells: FeatureMap | None = None
    """Features by which it is told what the log has of an action, where these are others."""
    choice: Choice | None = None
    """Among families of features, where there was one."""

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

    def held_out(self, worth: float = 0.0) -> tuple[FloatArray, FloatArray]:
        """Values (N,) of each step's x_t and x'_t by models of other episodes; unsupported actions have a worth."""
        after_rows, parts = self.steps.after, []
        for side, own in enumerate(self.weights):
            now, after = self.system.by_others(own, self.folds)[:, :2].T
            parts.append((now, after + self.extra(after_rows, side)))
        now, after = parts[0]
        if self.silent:
            now, after = now + worth * parts[1][0], after + worth * parts[1][1]
        return now + self.of_taken, after

    def doubly(self, worth: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """q(s_t, a_t), v(s_t) and v(s_{t+1}) (N,) by models of other episodes, v over *all* actions of the policy.

        Which actions the log has depends on what was done in the step itself, so that v without the others would be
        wrong on average where the step is weighted.
        """
        steps, W = self.steps, self.weights[0]
        W = W + worth * self.weights[1] if self.silent else W
        system = self.system if self.full is None else self.full
        now, after = system.by_others(W, self.folds)[:, :2].T
        if self.kind == "states":
            return now, now, after
        tops = self.tops if self.full is None else self.full_tops
        first = self.own(system.values(W, steps.here), steps.fold)
        return now + self.of_taken, first + tops[steps.here], after + tops[steps.after]

    def own(self, values: FloatArray, fold: IntArray) -> FloatArray:
        """Of (N, folds + 1) numbers those of the column that has not seen each fold."""
        if self.folds.size < 3:
            return values[:, -1]
        chosen: FloatArray = values[np.arange(fold.size), np.searchsorted(self.folds[:-1], fold)]
        return chosen

    @cached_property
    def of_taken(self) -> FloatArray:
        """(N,): the constants of the actions that were taken."""
        if self.kind == "states":
            return np.zeros(len(self.steps))
        if self.kind == "joint":
            return np.full(len(self.steps), self.offsets[0])
        assert self.steps.log.actions is not None
        taken: FloatArray = self.offsets[self.steps.log.actions[self.steps.kept].astype(np.int64)]
        return taken

    def extra(self, rows: IntArray, side: int) -> FloatArray:
        """What comes on top of features times weights for the policy's value in rows of features."""
        found: FloatArray = self.beyond[rows] if side else self.tops[rows]
        return found

    def query(self, starts: Starts, weights: FloatArray | None = None) -> Query:
        """A set of states as ``least_squares`` takes it; equal weights if left out."""
        steps, n = self.steps, len(starts.observations)
        weights = np.full(n, 1.0 / n) if weights is None else weights
        if starts.rows is None:
            return self._given(starts, weights)
        rows = steps.row_of[starts.rows]
        at = np.minimum(np.searchsorted(steps.kept, starts.rows), len(steps) - 1)
        unit = units(steps)[0][at]
        if not steps.n_blocks:  # their own episodes, also where the step is not among those learned from
            unit = np.searchsorted(steps.log.episodes, starts.rows, side="right") - 1
        return self.of_rows(rows, weights, steps.fold[at], unit)

    def of_rows(self, rows: IntArray, weights: FloatArray, fold: IntArray, unit: IntArray | None) -> Query:
        """The query of rows of the log's own features."""
        system = self.system
        sums = np.bincount(rows, weights, system.n_rows).astype(np.float64)
        extras = tuple(self.extra(rows, side) for side in range(len(self.weights)))
        return Query(system.values_sum(sums), lambda W: system.values(W, rows), weights, fold, unit, extras)

    def _given(self, starts: Starts, weights: FloatArray) -> Query:
        """The query of states that are not the log's."""
        observations, target = starts.observations, self.target
        none = np.full(len(observations), WHOLE)
        if self.kind == "joint":
            assert target is not None
            drawn, beyond = drawn_under(
                self.cells or self.features, target, observations, self.n_numbers, self.supports[0]
            )
            behind = mean_rows(self.features, columns(observations), drawn, self.system.ids)
            extras = ((1.0 - beyond) * self.offsets[0], beyond)[: len(self.weights)]
            return Query(behind.back(weights[:, None])[:, 0], behind.times, weights, none, None, extras)
        rows = Rows.of(self.features, columns(observations)).over(self.system.ids)
        if self.kind == "states":
            return Query(rows.back(weights[:, None])[:, 0], rows.times, weights, none, None, (np.zeros(len(none)),))
        assert target is not None
        chances = starts.chances
        if chances is None:
            if target.function is None:
                raise InvalidInputError(
                    "start are states, but the policy is a table of the log's states: pass a function"
                )
            chances = target.probabilities(observations, self.offsets.size)
        kept = np.zeros((len(none), self.offsets.size))
        seen = rows
        if self.silent and self.cells is not None:
            seen = Rows.of(self.cells, columns(observations)).over(self.supports[0].ids)
        for a in range(chances.shape[1]):
            some = np.flatnonzero(chances[:, a])
            kept[some, a] = chances[some, a]
            if self.silent and some.size:
                kept[some, a] = np.where(self.supports[a].has(seen, some), chances[some, a], 0.0)
        nothing = np.zeros(0, dtype=np.int64)
        given, every = ActionSystem(self.steps, rows, nothing, kept), np.arange(len(none))
        extras = (kept @ self.offsets, chances.sum(axis=1) - kept.sum(axis=1))[: len(self.weights)]
        x = given.values_sum(weights)
        return Query(x, lambda W: given.values(W, every), weights, none, None, extras)

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
    log: Log, features: Offered, gamma: float, rhos: FloatArray | None = None, kept: Kept | None = None
) -> Fit:
    """Values of states; ``rhos`` (len(log),) are importance ratios, ``kept`` rows of features that are there already.

    Of several families of features the one that predicts best is chosen.
    """
    steps = _known(steps_of(log, gamma))
    ratios = None if rhos is None else rhos[steps.kept]
    choice = choose_of_states(_offer(features), steps, ratios)
    own = choice.features
    system = StateSystem(steps, _encoded(choice.family, steps, kept), ratios)
    return replace(of_states(system, own, select.choose(system)), choice=choice)


def of_states(system: System, features: FeatureMap, chosen: Selection) -> Fit:
    """The fit of a system of state values with chosen settings."""
    folds, weights = select.weights(system, chosen)
    nothing = np.zeros(system.n_rows)
    return Fit("states", system, features, chosen, folds, [weights], None, np.zeros(1), nothing, nothing, None)


@dataclass(frozen=True, eq=False)
class Actions:
    """What there is to know of action values before features are chosen; arrays are (N,) or (M, n_actions)."""

    steps: Steps
    actions: IntArray
    """(N,): logged."""
    chances: FloatArray
    """π(a|s) in every state of the steps."""
    kept: FloatArray
    """The same, 0 for actions that the log does not have there."""
    gaps: Gaps
    """These."""
    supports: tuple[silence.Support, ...]
    offsets: FloatArray
    """(n_actions,): constants of the actions."""

    @classmethod
    def of(cls, steps: Steps, rows: Rows, target: Target) -> Actions:
        """Of a policy; by the features of ``rows`` it is told what the log has."""
        log = steps.log
        n_actions = target.n_actions(log)
        chances = chances_of(target, steps, rows.size, n_actions)
        assert log.actions is not None
        actions = log.actions[steps.kept].astype(np.int64)
        supports = silence.supports_of(rows, steps, actions, n_actions)
        kept, gaps = silence.supported(supports, rows, steps, chances)
        offsets = solved_constants(*constants(steps, actions, kept))
        return cls(steps, actions, chances, kept, gaps, tuple(supports), offsets)

    def part(self, some: Steps, places: IntArray, states: IntArray) -> Actions:
        """Of some steps, with their places and those of their states."""
        return replace(
            self, steps=some, actions=self.actions[places], chances=self.chances[states], kept=self.kept[states]
        )

    def system(self, rows: Rows) -> ActionSystem:
        """The system over the actions that the log has."""
        system = ActionSystem(self.steps, rows, self.actions, self.kept)
        set_rewards(system, self.offsets, self.chances)
        return system


def fit_actions(
    log: Log, features: Offered, gamma: float, target: Target, cells: FeatureMap | None = None, kept: Kept | None = None
) -> Fit:
    """Action values of a target policy, for discrete actions; by ``cells`` it is told what the log has of an action."""
    steps = _known(action_steps(log, gamma, target))
    cells = _offer(features).cells if cells is None else cells
    asked = Actions.of(steps, _encoded(Family("cells", "", cells), steps, kept), target)
    choice = choose_of_actions(_offer(features), asked)
    own = choice.features
    rows = _encoded(choice.family, steps, kept)
    system, full = asked.system(rows), ActionSystem(steps, rows, asked.actions, asked.chances)
    chosen = select.choose_for_actions(system)
    fit = of_actions(
        system, own, chosen, target, asked.offsets, asked.kept, asked.chances, asked.gaps, asked.supports, full
    )  # fmt: skip
    return replace(fit, cells=cells, choice=choice)


def of_actions(
    system: System, features: FeatureMap, chosen: Selection, target: Target, offsets: FloatArray, kept: FloatArray,
    chances: FloatArray, gaps: Gaps, supports: Sequence[silence.Support], full: System,
) -> Fit:  # fmt: skip
    """The fit of a system of action values with chosen settings."""
    folds, first = select.weights(system, chosen)
    weights = [first, *(select.weights(system, chosen, side)[1] for side in range(1, len(system.rewards)))]
    beyond = chances.sum(axis=1) - kept.sum(axis=1) if len(weights) > 1 else np.zeros(len(kept))
    return Fit(
        "actions", system, features, chosen, folds, weights, target, offsets, kept @ offsets, beyond, gaps,
        bool(supports) and supports[0].is_table, tuple(supports), full, chances @ offsets,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Pairs:
    """What there is to know of action values of continuous actions before features are chosen."""

    steps: Steps
    actions: FloatArray
    """(N, A): logged."""
    drawn: list[Draw]
    """What the policy does in every state of the steps."""
    beyond: FloatArray
    """(M,): the policy's probability of actions that the log does not have there."""
    support: silence.Support
    offsets: FloatArray
    """(1,): a constant of all actions."""

    @classmethod
    def of(cls, steps: Steps, target: Target, cells: FeatureMap) -> Pairs:
        """Of a policy; by the features ``cells`` of state and action it is told what the log has."""
        assert steps.log.actions is not None
        actions = steps.log.actions[steps.kept]
        rows = Rows.of(cells, np.hstack([columns(steps.states)[steps.here], actions]))
        support = silence.Support.of(rows, np.ones(rows.size), False)
        drawn, beyond = drawn_under(cells, target, steps.states, actions.shape[1], support)
        return cls(steps, actions, drawn, beyond, support, solved_constants(*pair_constants(steps, beyond)))

    def part(self, some: Steps, places: IntArray, states: IntArray) -> Pairs:
        """Of some steps, with their places and those of their states."""
        drawn = [Draw(each.actions[states], each.weights[states]) for each in self.drawn]
        return replace(self, steps=some, actions=self.actions[places], drawn=drawn, beyond=self.beyond[states])

    @property
    def joint(self) -> FloatArray:
        """(N, D + A): states and actions side by side."""
        return np.hstack([columns(self.steps.states)[self.steps.here], self.actions])

    def system(self, features: FeatureMap) -> PairSystem:
        """The system over the actions that the log has."""
        rows = Rows.of(features, self.joint)
        behind = mean_rows(features, columns(self.steps.states), self.drawn, rows.ids)
        system = PairSystem(self.steps, rows, behind, self.beyond)
        set_pair_rewards(system, self.offsets)
        return system


def fit_pairs(log: Log, features: Offered, gamma: float, target: Target, cells: FeatureMap | None = None) -> Fit:
    """Action values of a target policy, for continuous actions: features of state and action side by side."""
    cells = _offer(features).cells if cells is None else cells
    asked = Pairs.of(_known(steps_of(log, gamma, distinct=False)), target, cells)
    choice = choose_of_pairs(_offer(features), asked)
    own = choice.features
    system = asked.system(own)
    chosen = select.choose_for_actions(system)
    fit = of_pairs(system, own, chosen, target, asked.offsets, system.beyond, asked.support)
    return replace(fit, cells=cells, choice=choice)


def of_pairs(
    system: System, features: FeatureMap, chosen: Selection, target: Target, offsets: FloatArray, beyond: FloatArray,
    support: silence.Support,
) -> Fit:  # fmt: skip
    """The fit of a system of pairs with chosen settings."""
    folds, first = select.weights(system, chosen)
    weights = [first, *(select.weights(system, chosen, side)[1] for side in range(1, len(system.rewards)))]
    tops = offsets[0] * (1.0 - beyond)
    beyond = beyond if len(weights) > 1 else np.zeros(beyond.size)
    return Fit(
        "joint", system, features, chosen, folds, weights, target, offsets, tops, beyond, None, False, (support,)
    )


# --- parts of it ----------------------------------------------------------------------------------------------------


def action_steps(log: Log, gamma: float, target: Target) -> Steps:
    """The steps of a log; of a policy that is a table, those whose next state is in it."""
    if target.table is None:
        return steps_of(log, gamma)
    last = log.episodes[1:] - 1
    known = np.ones(len(log), dtype=np.bool_)
    known[last[~log.terminated[last]]] = False
    return steps_of(log, gamma, distinct=False, known=known)


def chances_of(target: Target, steps: Steps, n_rows: int, n_actions: int) -> FloatArray:
    """π(a|s) of every row of features, (n_rows, n_actions)."""
    chances = np.zeros((n_rows, n_actions))
    if target.table is not None:
        chances[: len(steps.log), : target.table.shape[1]] = target.table
        return chances
    for a in range(0, n_rows, BLOCK):
        chances[a : a + BLOCK] = target.probabilities(steps.states[a : a + BLOCK], n_actions)
    return chances


def set_rewards(system: ActionSystem, offsets: FloatArray, chances: FloatArray) -> None:
    """Rewards less constants; and, where the log lacks actions, what their probability brings."""
    steps, kept = system.steps, system.chances
    following = steps.discounts * (kept @ offsets)[steps.after]
    system.rewards = [steps.rewards - offsets[system.actions] + following]
    beyond = chances.sum(axis=1) - kept.sum(axis=1)
    if (kept != chances).any():
        system.rewards.append(steps.discounts * beyond[steps.after])


def set_pair_rewards(system: PairSystem, offsets: FloatArray) -> None:
    """Rewards less a constant; and, where the log lacks actions, what their probability brings."""
    steps, after = system.steps, system.steps.after
    following = steps.discounts * (1.0 - system.beyond[after])
    system.rewards = [steps.rewards - offsets[0] * (1.0 - following)]
    if system.beyond.any():
        system.rewards.append(steps.discounts * system.beyond[after])


def constants(steps: Steps, actions: IntArray, chances: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The system (A, b) of LSTDQ with a constant for each action as its features."""
    size = chances.shape[1]
    A = np.zeros((size, size))
    following = chances[steps.after] * steps.discounts[:, None]
    for a in range(size):
        taken = np.flatnonzero(actions == a)
        A[a] = -following[taken].sum(axis=0)
        A[a, a] += taken.size
    return A, np.bincount(actions, steps.rewards, size).astype(np.float64)


def pair_constants(steps: Steps, beyond: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The same with one constant for all actions."""
    following = steps.discounts * (1.0 - beyond[steps.after])
    return np.array([[float((1.0 - following).sum())]]), np.array([float(steps.rewards.sum())])


def solved_constants(A: FloatArray, b: FloatArray) -> FloatArray:
    """A value c_a for each action. An action that was never taken has the value of the best constant for all."""
    ends, size = float(A.sum()), b.size
    if not ends > 1e-9 * float(np.abs(A).sum()):
        return np.zeros(size)
    c = np.full(size, float(b.sum()) / ends)
    taken = np.flatnonzero(A.diagonal())
    c[taken] += np.linalg.lstsq(A[np.ix_(taken, taken)], (b - A @ c)[taken], rcond=SMALLEST)[0]
    return c


def pair_rows(log: Log, features: FeatureMap, gamma: float) -> tuple[Steps, Rows]:
    """The steps of a log, and the features of state and action side by side of each of them."""
    steps = steps_of(log, gamma, distinct=False)
    assert log.actions is not None
    states = columns(steps.states)
    return steps, Rows.of(features, np.hstack([states[steps.here], log.actions[steps.kept]]))


class Draw(NamedTuple):
    """What a policy does in states: continuous actions (M, A), with their weights (M,), 0 where the log has none."""

    actions: FloatArray
    weights: FloatArray


def drawn_under(
    cells: FeatureMap, target: Target, observations: NDArray[Any], size: int, support: silence.Support
) -> tuple[list[Draw], FloatArray]:
    """What the policy does in some states, and what share of it is unlike all logged pairs."""
    states, beyond, found = columns(observations), np.zeros(len(observations)), []
    drawn = target.draws(observations, size)
    for actions in drawn:
        rows = Rows.of(cells, np.hstack([states, actions])).over(support.ids)
        known = support.has(rows, np.arange(rows.size)).astype(np.float64) / len(drawn)
        beyond += 1.0 / len(drawn) - known
        found.append(Draw(actions, known))
    beyond[beyond < 1e-9] = 0.0
    return found, beyond


def mean_rows(features: FeatureMap, states: FloatArray, drawn: Sequence[Draw], ids: IntArray) -> Rows:
    """Features (M, d) of states and the actions that a policy draws there, weighted; what the log lacks counts as 0."""
    total: list[Any] = []
    for each in drawn:
        rows = Rows.of(features, np.hstack([states, each.actions])).over(ids)
        blocks, start = [], 0
        for block in rows.blocks:
            share = each.weights[start : start + block.shape[0]]
            start += block.shape[0]
            weighted = sp.diags_array(share) @ block if sp.issparse(block) else share[:, None] * block
            blocks.append(sp.csr_array(weighted) if sp.issparse(weighted) else weighted)
        total = blocks if not total else [a + b for a, b in zip(total, blocks, strict=True)]
    return Rows(total, ids, features.n_features)


def pair_system(steps: Steps, rows: Rows, features: FeatureMap, target: Target, support: silence.Support) -> PairSystem:
    """The system of a policy with continuous actions: of what it draws, the pairs that are like logged ones."""
    assert steps.log.actions is not None
    drawn, beyond = drawn_under(features, target, steps.states, steps.log.actions.shape[1], support)
    return PairSystem(steps, rows, mean_rows(features, columns(steps.states), drawn, rows.ids), beyond)


def _known(steps: Steps) -> Steps:
    if not len(steps):
        raise InvalidInputError("the log has no step whose next observation is known: nothing can be learned")
    return steps


def _offer(features: Offered) -> Offer:
    return features if isinstance(features, Offer) else Offer.given(features)


def _encoded(family: Family, steps: Steps, kept: Kept | None) -> Rows:
    """The features of the states of steps, kept for the next time."""
    kept, key = {} if kept is None else kept, (id(family.features), len(steps.states))
    if key not in kept:
        kept[key] = family.features, family.rows(steps)
    return kept[key][1]
