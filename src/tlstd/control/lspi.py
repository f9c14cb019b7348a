"""Least-squares policy iteration: action values of each policy from the same steps, by any estimator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from tlstd.classic.lstd import LSTD
from tlstd.control.iteration import Iteration, Judge, Loop, PolicyIteration, start_weights
from tlstd.control.policies import GreedyPolicy, as_meanings
from tlstd.control.steps import ActionSteps, action_steps, constant_value
from tlstd.core import parameters
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.data.held_out import make_folds
from tlstd.data.transitions import Transitions
from tlstd.errors import InvalidInputError, InvalidParameterError
from tlstd.estimators.base import Estimator
from tlstd.features.combine import StateAction
from tlstd.logs.log import Log

RIDGES = (1e-12, 1e-9, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
"""Of the estimator that is used by default: they are tried in turn."""
HELD_FOLDS = 4
"""One fold of so many is held out."""
Judging: TypeAlias = Literal["held-out", "estimate", "last"]

Maker: TypeAlias = Callable[[int], Estimator]
"""From a number of features to a new estimator."""


def policy_iteration(
    data: Log | Transitions,
    features: StateAction,
    estimator: Callable[[int], Estimator] | Sequence[Callable[[int], Estimator]] | None = None,
    *,
    gamma: float | None = None,
    start: ArrayLike | GreedyPolicy | None = None,
    epsilon: float = 0.0,
    actions: ArrayLike | None = None,
    center: bool = True,
    judge: Judging | Callable[[GreedyPolicy], float] = "estimate",
    max_iterations: int = 20,
    tolerance: float = 1e-9,
    on_iteration: Callable[[Iteration], None] | None = None,
) -> PolicyIteration:
    """Find a good policy from steps that any policy may have taken (LSPI).

    Each iteration learns the action values of the present policy, from x = φ(s, a) to x′ = Σ_a′ π(a′|s′) φ(s′, a′)
    (LSTDQ, λ = 0), and the next policy is greedy, or ε-greedy, in them. No probabilities of the policy that acted are
    needed. It ends at a policy that comes back, and the policy returned is the best
    of all that occurred, not the last: policy values go up and down.

    Parameters
    ----------
    data : Log, or Transitions with ``actions``
        Of transitions the features are those of *states*, ``features.features``. Importance ratios are not used.
    features : StateAction
    estimator : function from n_features to an estimator, or several of them, optional
        Called once an iteration, e.g. ``lambda n: TLSTD(n, rank=50, lambda_=0.0)``. λ has to be 0, and a dimension or
        rank given: what is chosen by logged returns is chosen for the policy that acted. Several are tried in turn, the
        least regularised first, until the iteration converges to values that are possible; if it never does, the last
        one counts. Left out, they are ``LSTD`` with the ridges of ``RIDGES``.
    gamma : float in [0, 1]
        For a log; transitions have their discounts.
    start : weights, GreedyPolicy or None
        The first policy is greedy in these weights; None: it takes every action with the same probability.
    epsilon : float in [0, 1]
        Of the policies that are evaluated, and of the one returned.
    actions : (n_actions,), optional
        What the actions 0, 1, … stand for, if the data have other numbers than these.
    center : bool
        Learn values about c = Σr / Σ(1 - γ), the best constant, which does not depend on the policy: regularised values
        then lean towards c, and not towards 0.
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
    if parameters.flag("center", center):
        steps = steps.about(constant_value([steps]))
    options = Options(
        features,
        start_weights(start, features),
        parameters.real("epsilon", epsilon, low=0.0, high=1.0),
        None if actions is None else as_meanings(actions, features.n_actions),
        judge
        if callable(judge)
        else parameters.choice("judge", judge, get_args(Judging), why=", or a function of a policy"),
        parameters.integer("max_iterations", max_iterations),
        parameters.real("tolerance", tolerance, low=0.0, high=1.0),
        on_iteration,
    )
    makers = _makers(estimator, features.n_features)
    for place, make in enumerate(makers):
        loop, judged_by = _iterate(steps, make, options, picky=place + 1 < len(makers))
        if loop.sound or loop.stopped == "interrupted" or place + 1 == len(makers):
            break
    found = loop.result(features, judged_by, options.epsilon, options.actions)
    note = f"Estimator {place + 1} of {len(makers)}: {make(features.n_features)!r}."
    return replace(found, notes=(note, *found.notes))


def _makers(estimator: Maker | Sequence[Maker] | None, n_features: int) -> list[Maker]:
    """The functions that make estimators, each tried once."""
    if estimator is None:
        return [partial(LSTD, lambda_=0.0, ridge=ridge) for ridge in RIDGES]
    makers = [estimator] if callable(estimator) else list(estimator)
    if not makers:
        raise InvalidParameterError("estimator is an empty list: pass at least one function, or leave it out")
    for make in makers:
        if not callable(make):
            raise InvalidParameterError(f"estimator is {make!r}: pass a function, e.g. lambda n: LSTD(n, lambda_=0.0)")
        check_estimator(make(n_features), n_features)
    return makers


class Options(NamedTuple):
    """What was asked for, checked."""

    features: StateAction
    start: FloatArray | None
    epsilon: float
    actions: FloatArray | None
    judge: Judging | Callable[[GreedyPolicy], float]
    max_iterations: int
    tolerance: float
    on_iteration: Callable[[Iteration], None] | None


def _iterate(steps: ActionSteps, make: Maker, options: Options, *, picky: bool) -> tuple[Loop, str]:
    """Policy iteration with one estimator, and what "best" means in it."""
    epsilon, judge, possible = options.epsilon, options.judge, steps.possible()
    learned = steps
    value: Judge
    if judge == "held-out":
        learned, held = _dealt(steps)
        value, judged_by = HeldOut(Samples(held, make, epsilon)), f"held-out action values of {len(held):,} steps"
    elif judge == "last":
        value, judged_by = _nobody, "nobody: it is the last"
    elif callable(judge):
        value = Tried(judge, options.features, epsilon, options.actions)
        judged_by, possible = "the function given", (-np.inf, np.inf)
    else:
        value, judged_by = Estimated(steps, epsilon), "its own estimate"
    samples = Samples(learned, make, epsilon)
    loop = Loop(samples, value, options.max_iterations, options.tolerance, options.on_iteration, possible, picky)
    loop.run(options.start)
    return loop, judged_by


def _nobody(policy: FloatArray | None, weights: FloatArray) -> float:
    """No value."""
    return np.nan


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
    make: Maker
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
class Estimated:
    """The value of a policy by the action values that the iteration has found."""

    steps: ActionSteps
    epsilon: float

    def __call__(self, policy: FloatArray | None, weights: FloatArray) -> float:
        """The mean over start states."""
        return self.steps.start_value(weights, policy, self.epsilon)


@dataclass(frozen=True, eq=False)
class HeldOut:
    """The value of a policy by action values learned from steps that it was not found from."""

    samples: Samples

    def __call__(self, policy: FloatArray | None, weights: FloatArray) -> float:
        """Learn them."""
        chosen = None if policy is None else self.samples.asked(policy)
        return self.samples.steps.start_value(self.samples.fit(chosen), policy, self.samples.epsilon)


@dataclass(frozen=True, eq=False)
class Tried:
    """The value of a policy by the function given."""

    function: Callable[[GreedyPolicy], float]
    features: StateAction
    epsilon: float
    actions: FloatArray | None

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
