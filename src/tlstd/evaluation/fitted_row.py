"""The row "fitted trees": fitted evaluation by boosted trees, a second opinion beside the answer."""

from __future__ import annotations

from time import perf_counter

import numpy as np

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.evaluation.fits import Starts, action_steps, chances_of
from tlstd.evaluation.fitted_trees import fitted_trees
from tlstd.evaluation.ladder import Case, Row
from tlstd.evaluation.policies import Target
from tlstd.evaluation.rungs import FITTED
from tlstd.evaluation.steps import HIDDEN, columns
from tlstd.features.leaves import Leaves

MOST_STEPS = 100_000
"""Steps on which the trees are grown: of a longer log a random sample."""
ACTION_TREES = 640
"""Trees of action values. They do not start from returns, which are another policy's, and so settle later."""
SEEN = 0.75
"""Share of returns that are seen to their end, from which the first trees are grown on returns."""


def add_fitted_trees(case: Case) -> None:
    """Add the row, or a note that says why there is none."""
    target = case.target
    why = "the steps of the log are not in one process" if case.sample is not None else None
    if why is None and target is not None:
        why = _missing(case, target)
    if why is not None:
        case.notes.append(f"Fitted trees were left out: {why}.")
        return
    case.report("fitted trees", 0.96)
    began = perf_counter()
    values, note = _of_states(case) if target is None else _of_actions(case, target)
    case.add(Row("fitted trees", FITTED, values, perf_counter() - began, note))


def _missing(case: Case, target: Target) -> str | None:
    """Why there are no action values of a policy; None if there are."""
    if case.continuous:
        return "the actions are continuous"
    if target.logged is not None:
        return "the policy is given by probabilities of the logged actions alone"
    if target.function is None and any(own.chances is None for own in case.sets):
        return "the policy is a table, which does not say what it does in the given states"
    if not len(action_steps(case.log, case.gamma, target)):
        return "no step has a next state in which the policy is known"
    return None


def _of_states(case: Case) -> tuple[dict[str, float], str]:
    """Mean value of each set under the logged policy, and a note."""
    steps = case.model.steps
    some, about = _sample(len(steps))
    here, after = (columns(steps.states)[rows[some]] for rows in (steps.here, steps.after))
    seen = float(np.mean(steps.tails <= HIDDEN)) >= SEEN
    start = steps.returns[some] if seen else None
    trees = fitted_trees(here, steps.rewards[some], after, steps.discounts[some], start=start)
    values = {own.name: float(trees.values(columns(own.observations)).mean()) for own in case.sets}
    return values, _note(trees) + about


def _of_actions(case: Case, target: Target) -> tuple[dict[str, float], str]:
    """The same under another policy, by action values of discrete actions."""
    assert case.log.actions is not None
    n_actions = target.n_actions(case.log)
    steps = action_steps(case.log, case.gamma, target)
    some, about = _sample(len(steps))
    chances = chances_of(target, steps, len(steps.states), n_actions)[steps.after[some]]
    here, after = (columns(steps.states)[rows[some]] for rows in (steps.here, steps.after))
    taken = np.eye(n_actions)[case.log.actions[steps.kept[some]].astype(np.int64)]
    trees = fitted_trees(
        np.hstack([here, taken]),
        steps.rewards[some],
        np.stack([_beside(after, a, n_actions) for a in range(n_actions)]),
        steps.discounts[some],
        next_weights=chances.T,
        n_trees=ACTION_TREES,
    )
    values = {own.name: _mean(trees, own, target, n_actions) for own in case.sets}
    return values, _note(trees) + about


def _mean(trees: Leaves, own: Starts, target: Target, n_actions: int) -> float:
    """The mean over states of Σ_a π(a|s) q(s, a)."""
    states, chances = columns(own.observations), own.chances
    if chances is None:
        chances = target.probabilities(own.observations, n_actions)
    values = [chance * trees.values(_beside(states, a, n_actions)) for a, chance in enumerate(chances.T)]
    return float(np.sum(values, axis=0).mean())


def _beside(states: FloatArray, a: int, n_actions: int) -> FloatArray:
    """States (M, D) with an action as a one-hot row beside each of them."""
    return np.hstack([states, np.tile(np.eye(n_actions)[a], (len(states), 1))])


def _sample(n: int) -> tuple[IntArray, str]:
    """At most ``MOST_STEPS`` of n places, the same ones in every call, and words for the note if there are more."""
    if n <= MOST_STEPS:
        return np.arange(n), ""
    return np.sort(np.random.default_rng(0).choice(n, MOST_STEPS, replace=False)), f" on {MOST_STEPS:,} steps"


def _note(trees: Leaves) -> str:
    return f"{trees.n_active - 1} trees"
