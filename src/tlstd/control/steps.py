"""What policy iteration learns from: steps (s, a, r, s′), encoded once, with the next action left open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from tlstd.control.policies import action_values, as_meanings, check_features, mixture
from tlstd.core.arrays import FloatArray, IntArray, as_array
from tlstd.data.transitions import Transitions
from tlstd.errors import InvalidInputError, InvalidParameterError
from tlstd.evaluation.action_values import expected, shifted
from tlstd.features.combine import StateAction
from tlstd.logs.log import Log


@dataclass(frozen=True, eq=False)
class ActionSteps:
    """Steps in columns: x_t = φ(s_t, a_t), r_t, the discount, and the features of the next *state*, for any policy."""

    X: sp.csr_array
    """(N, n_actions · d)"""
    rewards: FloatArray
    X_next: sp.csr_array
    """(N, d): of states; where the discount is 0 it does not matter."""
    discounts: FloatArray
    trace_discounts: FloatArray
    starts: sp.csr_array
    """(S, d): states in which episodes start; all states where there are no starts."""
    n_actions: int
    offset: float = 0.0
    """c, which is taken off the values: the rewards are r - (1 - γ) c."""

    def __len__(self) -> int:
        return self.rewards.size

    def select(self, rows: IntArray) -> ActionSteps:
        """Some of the steps, with all start states."""
        columns = ("X", "rewards", "X_next", "discounts", "trace_discounts")
        return replace(self, **{name: getattr(self, name)[rows] for name in columns})

    def about(self, offset: float) -> ActionSteps:
        """The same with values about another c."""
        return replace(self, rewards=self.rewards - (1.0 - self.discounts) * (offset - self.offset), offset=offset)

    def possible(self) -> tuple[float, float]:
        """The least and the largest value that rewards such as these can add up to."""
        rewards, gamma = self.about(0.0).rewards, float(self.discounts.max())
        ends = np.array([rewards.min(), rewards.max()])
        with np.errstate(divide="ignore", invalid="ignore"):
            all_over = np.where(ends == 0.0, 0.0, ends / (1.0 - gamma))
        return float(min(ends[0], all_over[0])), float(max(ends[1], all_over[1]))

    def greedy(self, weights: FloatArray) -> IntArray:
        """The greedy actions (N,) in the next states; 0 where nothing follows."""
        chosen = action_values(weights, self.X_next, self.n_actions).argmax(axis=1)
        return np.where(self.discounts > 0.0, chosen, 0)

    def transitions(self, chosen: IntArray | None, epsilon: float = 0.0) -> Transitions:
        """With x′ = Σ_a π(a|s′) φ(s′, a) of the ε-greedy policy with these actions; None: all actions alike."""
        if chosen is not None and epsilon == 0.0:
            X_next = shifted(self.X_next, chosen, self.n_actions)
        else:
            nobody = np.zeros(len(self), dtype=np.int64)
            share = (nobody, 1.0) if chosen is None else (chosen, epsilon)
            X_next = expected(self.X_next, mixture(share[0], self.n_actions, share[1]))
        return Transitions(self.X, self.rewards, X_next, discounts=self.discounts, trace_discounts=self.trace_discounts)

    def start_value(self, values: FloatArray, policy: FloatArray | None, epsilon: float) -> float:
        """The mean value of the start states, Σ_a π(a|s) wᵀφ(s, a); ``policy`` as its weights, None: all alike."""
        Q = action_values(values, self.starts, self.n_actions)
        if policy is None:
            return self.offset + float(Q.mean())
        chosen = action_values(policy, self.starts, self.n_actions).argmax(axis=1)
        return self.offset + float((Q * mixture(chosen, self.n_actions, epsilon)).sum(axis=1).mean())


def constant_value(steps: Sequence[ActionSteps]) -> float:
    """The value c = Σr / Σ(1 - γ), the same for all states, that fits the steps best, for any policy; 0 without an end.

    It is LSTD with one constant feature.
    """
    ends = sum(float((1.0 - some.discounts).sum()) for some in steps)
    return sum(float(some.about(0.0).rewards.sum()) for some in steps) / ends if ends > 0.0 else 0.0


def action_steps(
    data: Log | Transitions, features: StateAction, gamma: float | None, actions: ArrayLike | None
) -> ActionSteps:
    """Steps of a log, or of transitions whose features are those of states and which have kept their actions."""
    check_features(features)
    if isinstance(data, Log):
        if gamma is None:
            raise InvalidParameterError("gamma is None: a log needs a discount, e.g. gamma=0.99")
        if data.actions is None:
            raise InvalidInputError("the log has no actions: name their column, e.g. columns={'action': 'a'}")
        steps = data.transitions(features.features, gamma)
        done, begins = data.actions[steps.rows], data.start_rows
    elif isinstance(data, Transitions):
        if gamma is not None:
            raise InvalidParameterError(f"gamma is {gamma}: transitions have their discounts, leave it out")
        if data.actions is None:
            raise InvalidInputError("the transitions have no actions: record(…) and from_gymnasium(…) keep them")
        d = features.features.n_features
        if data.n_features != d or data.n_targets != 1:
            raise InvalidInputError(
                f"the transitions have {data.n_features} features and {data.n_targets} targets: record them with "
                f"features.features, the map of states, which has {d}, and one reward"
            )
        steps, done = data, data.actions
        begins = steps.rows[steps.trace_discounts == 0.0]
    else:
        raise InvalidInputError(f"data is a {type(data).__name__}: pass a Log, or Transitions with actions")
    if len(steps) == 0:
        raise InvalidInputError("there are no steps: pass at least one")
    store, following = sp.csr_array(steps.store), sp.csr_array(steps.next_store)
    numbers = _numbers(done, features.n_actions, actions)
    return ActionSteps(
        shifted(store[steps.rows], numbers, features.n_actions),
        steps.rewards,
        following[steps.next_rows],
        steps.discounts,
        steps.trace_discounts,
        store[begins if len(begins) else steps.rows],
        features.n_actions,
    )


def _numbers(done: NDArray[Any], n_actions: int, meanings: ArrayLike | None) -> IntArray:
    """Actions as numbers 0, …, n_actions - 1."""
    array = as_array(done, "actions")
    array = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    if array.ndim != 1:
        raise InvalidInputError(
            f"actions have shape {array.shape}: policy iteration needs one of finitely many actions a step"
        )
    if meanings is not None:
        known = as_meanings(meanings, n_actions)
        order = np.argsort(known)
        place = order[np.searchsorted(known[order], array).clip(0, n_actions - 1)]
        bad = known[place] != array
        remedy = f"they are said to be {known.tolist()}"
    else:
        with np.errstate(invalid="ignore"):
            place = array.astype(np.int64)
        bad = (place != array) | (place < 0) | (place >= n_actions)
        remedy = f"they lie in 0, …, {n_actions - 1}, or pass what they stand for, actions=[…]"
    if bad.any():
        raise InvalidInputError(f"step {int(np.flatnonzero(bad)[0])} has the action {array[bad][0]}: {remedy}")
    numbers: IntArray = place.astype(np.int64)
    return numbers
