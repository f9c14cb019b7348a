"""Policies that act by action values: greedy, and ε-greedy."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from tlstd.core import parameters
from tlstd.core.arrays import FloatArray, IntArray, as_array, as_floats, locked
from tlstd.domains.base import Domain
from tlstd.domains.policies import Deterministic, EpsilonGreedy, Policy
from tlstd.errors import InvalidInputError, InvalidParameterError
from tlstd.features.combine import StateAction
from tlstd.features.states import encoded


class GreedyPolicy:
    """Takes the action of the largest value wᵀφ(s, a), the first of them where several are equal.

    Parameters
    ----------
    features : StateAction
        φ, a block of features for each action.
    weights : (features.n_features,)
        w; a state none of whose features has a weight gets action 0.
    epsilon : float in [0, 1]
        Probability with which an action is drawn from all of them instead.
    actions : (n_actions,), optional
        What the actions 0, 1, … stand for, e.g. torques; in :meth:`act` and :meth:`on`. Left out: their numbers.

    Example
    -------
    >>> from tlstd.features import OneHot, StateAction
    >>> policy = GreedyPolicy(StateAction(OneHot([0], [2]), 2), [0.0, 5.0, 0.0, 1.0, 2.0, 0.0])
    >>> policy.values([[0], [1]])
    array([[0., 1.],
           [5., 2.]])
    >>> policy([[0], [1]])
    array([1, 0])
    >>> policy.with_epsilon(0.1)([[0]]).round(2)
    array([[0.05, 0.95]])
    """

    def __init__(
        self, features: StateAction, weights: ArrayLike, *, epsilon: float = 0.0, actions: ArrayLike | None = None
    ) -> None:
        check_features(features)
        self.features = features
        self.weights = locked(as_floats(weights, "weights", 1).copy())
        if self.weights.shape != (features.n_features,):
            raise InvalidParameterError(
                f"weights have shape {self.weights.shape}: {features} needs ({features.n_features},)"
            )
        self.epsilon = parameters.real("epsilon", epsilon, low=0.0, high=1.0)
        self.actions = None if actions is None else as_meanings(actions, features.n_actions)

    @property
    def n_actions(self) -> int:
        """Number of actions."""
        return self.features.n_actions

    def with_epsilon(self, epsilon: float) -> GreedyPolicy:
        """The same policy with another ε."""
        return GreedyPolicy(self.features, self.weights, epsilon=epsilon, actions=self.actions)

    def values(self, observations: ArrayLike) -> FloatArray:
        """Action values (M, n_actions) in observations (M, D), or (M,) numbers of states."""
        return action_values(self.weights, encoded(self.features.features, as_states(observations)), self.n_actions)

    def greedy(self, observations: ArrayLike) -> IntArray:
        """The numbers (M,) of the actions with the largest values."""
        chosen: IntArray = self.values(observations).argmax(axis=1)
        return chosen

    def __call__(self, observations: NDArray[Any]) -> FloatArray | IntArray:
        """As :func:`tlstd.evaluate` takes policies: actions (M,), or with ε > 0 probabilities (M, n_actions)."""
        chosen = self.greedy(observations)
        return mixture(chosen, self.n_actions, self.epsilon) if self.epsilon > 0.0 else chosen

    def act(self, observation: ArrayLike, rng: np.random.Generator | None = None) -> Any:
        """The action in one observation (D,), or in one numbered state: for a loop over an environment.

        ``rng`` is needed with ε > 0.
        """
        if self.epsilon > 0.0 and rng is None:
            raise InvalidInputError(f"epsilon is {self.epsilon}: pass rng=np.random.default_rng(seed)")
        if rng is not None and self.epsilon > 0.0 and rng.random() < self.epsilon:
            number = int(rng.integers(self.n_actions))
        else:
            number = int(self.greedy(np.atleast_1d(as_array(observation, "the observation"))[None])[0])
        return number if self.actions is None else self.actions[number]

    def on(self, domain: Domain) -> Policy:
        """The same policy for states of a domain, as :func:`tlstd.streams.record` and rollouts take it.

        Actions are those of the domain if it has finitely many, otherwise what ``actions`` says.
        """
        meanings = domain.actions if self.actions is None else self.actions
        if meanings is None or len(meanings) != self.n_actions:
            raise InvalidParameterError(
                f"{domain.name} has actions in {domain.action_bounds}, and the policy {self.n_actions} of them: "
                "make it with actions=, e.g. actions=[-2.0, 0.0, 2.0]"
            )
        greedy = Deterministic(lambda states: meanings[self.greedy(domain.observe(states))])
        return EpsilonGreedy(greedy, meanings, self.epsilon) if self.epsilon > 0.0 else greedy

    def __repr__(self) -> str:
        return f"GreedyPolicy({self.features!r}, epsilon={self.epsilon:g})"


def action_values(weights: FloatArray, X: Any, n_actions: int) -> FloatArray:
    """Values (M, n_actions) for features of states (M, d)."""
    values = X @ weights.reshape(n_actions, -1).T
    return np.asarray(values.toarray() if sp.issparse(values) else values)


def mixture(chosen: IntArray, n_actions: int, epsilon: float) -> FloatArray:
    """Probabilities (M, n_actions) of an ε-greedy policy with these greedy actions."""
    probabilities = np.full((chosen.size, n_actions), epsilon / n_actions)
    probabilities[np.arange(chosen.size), chosen] += 1.0 - epsilon
    return probabilities


def as_states(observations: ArrayLike) -> FloatArray:
    """Observations as feature maps take them; numbers of states become one column."""
    array = as_array(observations, "observations")
    return (array[:, None] if array.ndim == 1 else array).astype(np.float64, copy=False)


def check_features(features: object) -> None:
    """Raise unless it is a map of states and actions."""
    if not isinstance(features, StateAction):
        raise InvalidParameterError(
            f"features is {features!r}: pass features of states and actions, StateAction(map of states, n_actions)"
        )


def as_meanings(actions: ArrayLike, n_actions: int) -> FloatArray:
    """What the actions stand for, checked: one different number for each."""
    array = as_floats(actions, "actions", 1)
    if array.shape != (n_actions,) or np.unique(array).size != n_actions:
        raise InvalidParameterError(f"actions is {actions!r}: pass {n_actions} different numbers, one for each action")
    return locked(array.copy())
