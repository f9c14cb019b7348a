"""Least-squares policy iteration: action values of each policy from the same steps, by any estimator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tlstd import parameters
from tlstd.control.iteration import Iteration, Judge, Loop, PolicyIteration, start_weights
from tlstd.control.policies import GreedyPolicy
from tlstd.control.steps import ActionSteps, action_steps
from tlstd.errors import InvalidInputError, InvalidParameterError
from tlstd.estimators.base import Estimator
from tlstd.estimators.lstd import LSTD
from tlstd.features.combine import StateAction
from tlstd.linalg.held_out import make_folds
from tlstd.logs.log import Log
from tlstd.types import FloatArray, IntArray, Transitions

RIDGE = 1e-6
"""Of the estimator that is used by default."""
HELD_FOLDS = 4
"""One fold of so many is held out."""
JUDGES = ("held-out", "estimate", "last")


def policy_iteration(
    data: Log | Transitions,
    features: StateAction,
    estimator: Callable[[int], Estimator] | None = None,
    *,
    gamma: float | None = None,
    start: ArrayLike | GreedyPolicy | None = None,
    epsilon: float = 0.0,
    actions: ArrayLike | None = None,
    judge: str | Callable[[GreedyPolicy], float] = "estimate",
    max_iterations: int = 20,
    tolerance: float = 1e-9,
    on_iteration: Callable[[Iteration], None] | None = None,
) -> PolicyIteration:
    """Find a good policy from steps that any policy may have taken (LSPI).

    Each iteration learns the action values of the present policy, from x = φ(s, a) to x′ = Σ_a′ π(a′|s′) φ(s′, a′)
    (LSTDQ, λ = 0), and the next policy is greedy, or ε-greedy, in them. No probabilities of the policy that acted are
    needed. It ends at a policy that comes back (:mod:`tlstd.control.iteration`), and the policy returned is the best
    of all that occurred, not the last: policy values go up and down.

    Parameters
    ----------
    data : Log, or Transitions with ``actions``
        Of transitions the features are those of *states*, ``features.features``. Importance ratios are not used.
    features : StateAction
    estimator : function from n_features to an estimator, optional
        Called once an iteration, e.g. ``lambda n: TLSTD(n, rank=50, lambda_=0.0)``. λ has to be 0, and a dimension or
        rank given: what is chosen by logged returns is chosen for the policy that acted. Left out, ``LSTD`` with a
        ridge of ``RIDGE``.
    gamma : float in [0, 1]
        For a log; transitions have their discounts.
    start : weights, GreedyPolicy or None
        The first policy is greedy in these weights; None: it takes every action with the same probability.
    epsilon : float in [0, 1]
        Of the policies that are evaluated, and of the one returned.
    actions : (n_actions,), optional
        What the actions 0, 1, … stand for, if the data have other numbers than these.
    judge : "estimate", "held-out", "last", or a function from a policy to a number
        What the best policy is. "estimate": the mean of the action values of start states, as the iteration itself
        has estimated them. "held-out": by action values that the same estimator learns from a quarter of the episodes,
        and policies are found from the others. "last": none, the last policy is taken. A function is called with every
        policy, and may try it in an environment.
    max_iterations : int >= 1
        Improvements.
    tolerance : float >= 0
        Relative change of the weights that counts as none.
    on_iteration : function, optional
        Called with every :class:`Iteration`.

    Returns
    -------
    PolicyIteration
        After Ctrl-C too, with what has been found so far, if there is an improved policy (``stopped``).
        Cost: an estimator's learning and solution for each iteration (twice with "held-out").

    References
    ----------
    Lagoudakis, Parr: Least-squares policy iteration. Journal of Machine Learning Research 4, 2003.

    Example
    -------
    The chain of four states of that publication: rewards in the two in the middle, actions left and right.

    >>> from tlstd import Log, OneHot, StateAction
    >>> rng = np.random.default_rng(0)
    >>> places, moves, place = [], rng.integers(0, 2, 500), 0
    >>> for move in moves:
    ...     places.append(place)
    ...     step = 2 * move - 1 if rng.random() < 0.9 else 1 - 2 * move
    ...     place = min(max(place + step, 0), 3)
    >>> log = Log.from_arrays(places, np.isin(places, [1, 2]).astype(float), actions=moves, n_observations=4)
    >>> found = policy_iteration(log, StateAction(OneHot([0], [3]), 2), gamma=0.9)
    >>> found.stopped, found.policy(np.arange(4))
    ('converged', array([1, 1, 0, 0]))
    """
    steps = action_steps(data, features, gamma, actions)
    epsilon = parameters.real("epsilon", epsilon, low=0.0, high=1.0)
    first = start_weights(start, features)
    make = estimator if estimator is not None else _default
    check_estimator(make(features.n_features), features.n_features)
    if not callable(judge):
        parameters.choice("judge", judge, JUDGES, why=", or a function from a policy to a number")
    learned, judged_by = steps, str(judge)
    value: Judge = lambda policy, weights: learned.start_value(weights, policy, epsilon)  # noqa: E731
    if judge == "held-out":
        learned, held = _dealt(steps)
        value = HeldOut(Samples(held, make, epsilon), epsilon)
        judged_by = f"held-out action values of {len(held):,} steps"
    elif judge == "last":
        value = lambda policy, weights: np.nan  # noqa: E731
        judged_by = "nobody: it is the last"
    elif callable(judge):
        value = Tried(judge, features, epsilon, actions)
        judged_by = "the function given"
    else:
        judged_by = "its own estimate"
    loop = Loop(
        Samples(learned, make, epsilon),
        value,
        parameters.integer("max_iterations", max_iterations),
        parameters.real("tolerance", tolerance, low=0.0, high=1.0),
        on_iteration,
    )
    loop.run(first)
    return loop.result(features, judged_by, epsilon, actions)


def _default(n_features: int) -> LSTD:
    return LSTD(n_features, lambda_=0.0, ridge=RIDGE)


def check_estimator(model: Any, n_features: int) -> None:
    """Raise unless it can learn action values of a policy that did not act."""
    if not (hasattr(model, "update_many") and hasattr(model, "weights")):
        raise InvalidParameterError(
            f"estimator returned {model!r}: return an estimator, e.g. lambda n: LSTD(n, lambda_=0.0)"
        )
    if getattr(model, "n_updates", 0):
        raise InvalidParameterError(f"estimator returned a model with {model.n_updates} updates: return a new one")
    if model.n_features != n_features:
        raise InvalidParameterError(f"estimator returned a model of {model.n_features} features: make {n_features}")
    if getattr(model, "lambda_", 0.0) != 0.0:
        raise InvalidParameterError(
            f"the estimator has lambda_={model.lambda_}: traces are those of the policy that acted, pass lambda_=0.0"
        )
    if getattr(model, "dimension", None) == "auto":
        raise InvalidParameterError(
            'the estimator has dimension="auto", chosen by returns of the policy that acted: pass a number'
        )


@dataclass(frozen=True, eq=False)
class Samples:
    """Action values by an estimator that learns from all steps."""

    steps: ActionSteps
    make: Callable[[int], Estimator]
    epsilon: float

    def asked(self, weights: FloatArray) -> IntArray:
        """The greedy actions in the next states."""
        return self.steps.greedy(weights)

    def fit(self, chosen: IntArray | None) -> FloatArray:
        """Learn, and return the weights."""
        model = self.make(self.steps.X.shape[1])
        model.update_many(self.steps.transitions(chosen, self.epsilon))
        return model.weights


@dataclass(frozen=True, eq=False)
class HeldOut:
    """The value of a policy by action values learned from steps that it was not found from."""

    samples: Samples
    epsilon: float

    def __call__(self, policy: FloatArray | None, weights: FloatArray) -> float:
        """Learn them."""
        chosen = None if policy is None else self.samples.asked(policy)
        return self.samples.steps.start_value(self.samples.fit(chosen), policy, self.epsilon)


@dataclass(frozen=True, eq=False)
class Tried:
    """The value of a policy by the function given."""

    function: Callable[[GreedyPolicy], float]
    features: StateAction
    epsilon: float
    actions: ArrayLike | None

    def __call__(self, policy: FloatArray | None, weights: FloatArray) -> float:
        """Try it; the uniform policy is not tried."""
        if policy is None:
            return np.nan
        value = self.function(GreedyPolicy(self.features, policy, epsilon=self.epsilon, actions=self.actions))
        try:
            return float(value)
        except (TypeError, ValueError) as error:
            raise InvalidInputError(f"judge returned {value!r}: return a number, the larger the better") from error


def _dealt(steps: ActionSteps) -> tuple[ActionSteps, ActionSteps]:
    """Steps to learn from, and a fold of episodes held out."""
    dealt = make_folds(steps.discounts, steps.trace_discounts, HELD_FOLDS)
    held = dealt.fold == 0
    if dealt.n_folds < HELD_FOLDS:
        raise InvalidInputError(
            f'judge is "held-out", but {len(steps)} steps make only {dealt.n_folds} folds: use judge="estimate"'
        )
    return steps.select(np.flatnonzero(~held)), steps.select(np.flatnonzero(held))
