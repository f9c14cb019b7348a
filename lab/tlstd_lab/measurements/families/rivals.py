"""Fitted value iteration and fitted Q evaluation with regressions of scikit-learn, and a constant.

A sweep regresses r + γ V(s′) on what is seen. The first targets are the logged returns where episodes end, else the
rewards. Inputs and targets are standardised. Action values see the action one-hot beside the columns.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import numpy as np

from tlstd import Log
from tlstd.core.arrays import FloatArray
from tlstd_lab.measurements.answers.problems import togo
from tlstd_lab.measurements.families.problems import Policy, Problem

SETTLED = 0.01
"""Sweeps are enough when the discount has brought what the first targets lack down to this."""
FROM_RETURNS, FROM_REWARDS = 40, 100
"""Most sweeps, when the first targets are returns, and when they are rewards."""

Values = Callable[[FloatArray], FloatArray]
"""From observations to values."""


def sweeps(gamma: float, from_returns: bool) -> int:
    """How many sweeps follow the first regression."""
    most = FROM_RETURNS if from_returns else FROM_REWARDS
    return most if gamma >= 1.0 else min(most, math.ceil(math.log(SETTLED) / math.log(gamma)))


class Regression(Protocol):
    """What is fitted in each sweep."""

    def begin(self, X: FloatArray, y: FloatArray) -> None:
        """The first fit."""
        ...

    def fit(self, X: FloatArray, y: FloatArray) -> None: ...

    def predict(self, X: FloatArray) -> FloatArray: ...

    def sweeps(self, gamma: float, from_returns: bool) -> int:
        """How many fits follow the first one."""
        ...


class Trees:
    """Gradient boosting with its defaults, fitted anew in each sweep."""

    def __init__(self, seed: int) -> None:
        from sklearn.ensemble import HistGradientBoostingRegressor

        self.make: Any = partial(HistGradientBoostingRegressor, random_state=seed)

    def fit(self, X: FloatArray, y: FloatArray) -> None:
        self.model = self.make().fit(X, y)

    begin = fit

    def sweeps(self, gamma: float, from_returns: bool) -> int:
        return sweeps(gamma, from_returns)

    def predict(self, X: FloatArray) -> FloatArray:
        found: FloatArray = self.model.predict(X)
        return found


class Network:
    """Two layers of 64, which go on from sweep to sweep, ten passes each; a hundred on the first targets."""

    passes, first = 10, 10

    def __init__(self, seed: int) -> None:
        from sklearn.neural_network import MLPRegressor

        self.model: Any = MLPRegressor(
            hidden_layer_sizes=(64, 64), max_iter=self.passes, warm_start=True, n_iter_no_change=1_000,
            random_state=seed,
        )  # fmt: skip

    def begin(self, X: FloatArray, y: FloatArray) -> None:
        for _ in range(self.first):
            self.fit(X, y)

    def fit(self, X: FloatArray, y: FloatArray) -> None:
        self.model.fit(X, y)

    def sweeps(self, gamma: float, from_returns: bool) -> int:
        """At least 40: each of them also is ten passes."""
        return max(FROM_RETURNS, sweeps(gamma, from_returns))

    def predict(self, X: FloatArray) -> FloatArray:
        found: FloatArray = self.model.predict(X)
        return found


def fitted(make: Callable[[int], Regression], made: Problem, log: Log, seed: int) -> Values:
    """The value function after the last sweep."""
    after, known = following(log)
    rewards, ended = log.rewards[known], log.terminated[known]
    inputs = _Inputs(log, made.policy, made.n_actions)
    X, ahead = inputs.taken[known], inputs.read(after[known])
    returns, complete = realised(log, made.gamma)
    from_returns = bool(complete.any())
    first = complete[known] if from_returns else np.ones(len(X), dtype=bool)
    targets = returns[known][first] if from_returns else rewards
    model = make(seed)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Stochastic Optimizer")  # ten passes are not meant to converge
        regression = _regressed(model, model.begin, X[first], targets)
        for _ in range(model.sweeps(made.gamma, from_returns)):
            targets = rewards + made.gamma * np.where(ended, 0.0, ahead(regression))
            regression = _regressed(model, model.fit, X, targets)
    return lambda states: inputs.read(states)(regression)


def _regressed(
    model: Regression, fit: Callable[[FloatArray, FloatArray], None], X: FloatArray, targets: FloatArray
) -> Values:
    """The model after a fit to targets that are brought to mean 0 and deviation 1."""
    centre, scale = float(targets.mean()), float(targets.std()) or 1.0
    fit(X, (targets - centre) / scale)
    return lambda seen: centre + scale * model.predict(seen)


class _Inputs:
    """What a regression sees: columns with mean 0 and deviation 1, and the action one-hot beside them."""

    def __init__(self, log: Log, policy: Policy | None, n_actions: int) -> None:
        self.policy, self.n_actions = policy, n_actions
        self.middle, width = log.states.mean(axis=0), log.states.std(axis=0)
        self.width = np.where(width > 0.0, width, 1.0)
        scaled = self._scaled(log.states)
        self.taken = scaled if policy is None else np.hstack([scaled, np.eye(n_actions)[log.actions]])

    def _scaled(self, states: FloatArray) -> FloatArray:
        found: FloatArray = (states - self.middle) / self.width
        return found

    def read(self, states: FloatArray) -> Callable[[Values], FloatArray]:
        """From a regression to values of these states: means over the actions of the target policy."""
        scaled = self._scaled(states)
        if self.policy is None:
            return lambda regression: regression(scaled)
        chances = self.policy(states)
        pairs = np.hstack(
            [np.repeat(scaled, self.n_actions, axis=0), np.tile(np.eye(self.n_actions), (len(states), 1))]
        )
        return lambda regression: (chances * regression(pairs).reshape(chances.shape)).sum(axis=1)


def following(log: Log) -> tuple[FloatArray, Any]:
    """The observation after each step, and whether it is known or does not matter."""
    after, last = np.empty(log.states.shape), log.episodes[1:] - 1
    after[:-1] = log.states[1:]
    after[last] = log.final
    known = np.ones(len(log), dtype=bool)
    known[last] = log.has_final | log.terminated[last]
    return after, known


def realised(log: Log, gamma: float) -> tuple[FloatArray, Any]:
    """The return from each step to the end of its episode, and whether that end is seen."""
    complete = np.repeat(log.terminated[log.episodes[1:] - 1], np.diff(log.episodes))
    return togo(log.rewards, log.episodes.tolist(), gamma), complete


def constant(made: Problem, log: Log, seed: int) -> Values:
    """The mean return of complete episodes' steps; where none is complete, that of the mean reward for ever."""
    returns, complete = realised(log, made.gamma)
    value = returns[complete].mean() if complete.any() else log.rewards.mean() / (1.0 - made.gamma)
    return lambda states: np.full(len(states), value)


RIVALS: dict[str, Callable[[Problem, Log, int], Values]] = {
    "trees": partial(fitted, Trees),
    "network": partial(fitted, Network),
    "constant": constant,
}
