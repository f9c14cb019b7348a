"""Policies: from states and uniform random numbers to actions, with the probability of each action."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tlstd.core import parameters
from tlstd.core.arrays import FloatArray, as_real
from tlstd.errors import InvalidInputError, InvalidParameterError

PolicyFunction: TypeAlias = Callable[[FloatArray], ArrayLike]
"""From states (N, state_size) to actions (N,)."""


class Policy(ABC):
    """A rule for acting. It gets its randomness as one uniform number per state, so that it is a pure function."""

    is_random: bool = False
    """Whether actions depend on the uniform numbers."""

    @abstractmethod
    def act(self, states: FloatArray, uniforms: FloatArray) -> FloatArray:
        """Actions (N,) in states (N, state_size); ``uniforms`` (N,) lie in [0, 1)."""

    @abstractmethod
    def probability(self, states: FloatArray, actions: FloatArray) -> FloatArray:
        """Probability (N,) of each of the given actions."""


class Deterministic(Policy):
    """The policy of a function from states to actions. What a plain function becomes.

    Example
    -------
    >>> forward = Deterministic(lambda states: np.ones(len(states)))
    >>> forward.act(np.zeros((2, 1)), np.zeros(2))
    array([1., 1.])
    >>> forward.probability(np.zeros((2, 1)), np.array([1.0, -1.0]))
    array([1., 0.])
    """

    def __init__(self, function: PolicyFunction) -> None:
        self.function = function

    def act(self, states: FloatArray, uniforms: FloatArray) -> FloatArray:
        """Actions (N,); the uniform numbers are not used."""
        actions = as_real(self.function(states), "what the policy returned")
        if actions.shape != (len(states),):
            raise InvalidInputError(
                f"the policy returned actions of shape {actions.shape} for {len(states)} states: return one for each"
            )
        return actions

    def probability(self, states: FloatArray, actions: FloatArray) -> FloatArray:
        """1 for the policy's own actions, 0 for others."""
        same: NDArray[np.bool_] = self.act(states, np.zeros(len(states))) == actions
        return same.astype(np.float64)


class EpsilonGreedy(Policy):
    """With probability ε one of the given actions at random, otherwise another policy's action.

    Parameters
    ----------
    policy : Policy or function from states to actions
        Deterministic.
    actions : (K,)
        The actions to choose from at random, each with probability ε/K; the policy's own may be among them or not.
    epsilon : float in [0, 1]

    Example
    -------
    >>> policy = EpsilonGreedy(lambda states: np.ones(len(states)), [-1, 0, 1], epsilon=0.3)
    >>> policy.probability(np.zeros((3, 1)), np.array([-1.0, 0.0, 1.0])).round(3)
    array([0.1, 0.1, 0.8])
    """

    is_random = True

    def __init__(self, policy: Policy | PolicyFunction, actions: ArrayLike, epsilon: float) -> None:
        self.policy = as_policy(policy)
        if self.policy.is_random:
            raise InvalidParameterError("the policy of EpsilonGreedy is random itself: pass a deterministic one")
        self.actions = as_real(actions, "actions", InvalidParameterError).copy()
        if self.actions.ndim != 1 or self.actions.size == 0 or np.unique(self.actions).size != self.actions.size:
            raise InvalidParameterError(f"actions is {actions!r}: pass a list of different actions")
        self.epsilon = parameters.real("epsilon", epsilon, low=0.0, high=1.0)

    def act(self, states: FloatArray, uniforms: FloatArray) -> FloatArray:
        """Actions (N,): those with a uniform number below ε are random ones."""
        actions = self.policy.act(states, uniforms)
        explores = uniforms < self.epsilon
        if explores.any():
            chosen = uniforms[explores] / self.epsilon * self.actions.size
            actions = actions.copy()
            actions[explores] = self.actions[np.minimum(chosen.astype(np.int64), self.actions.size - 1)]
        return actions

    def probability(self, states: FloatArray, actions: FloatArray) -> FloatArray:
        """ε/K for every listed action, and 1 − ε more for the policy's own."""
        listed = np.isin(actions, self.actions) * (self.epsilon / self.actions.size)
        result: FloatArray = listed + (1.0 - self.epsilon) * self.policy.probability(states, actions)
        return result


def as_policy(policy: Policy | PolicyFunction) -> Policy:
    """Return a policy, or a function from states to actions, as a policy.

    Example
    -------
    >>> as_policy(lambda states: states[:, 0]).is_random
    False
    """
    if isinstance(policy, Policy):
        return policy
    if isinstance(policy, type) or not callable(policy):
        raise InvalidParameterError(f"the policy is {policy!r}: pass a Policy or a function from states to actions")
    return Deterministic(policy)
