"""Values of a policy by rolling it out: to a stated error if nothing is random, otherwise as means."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tlstd.core import parameters
from tlstd.core.arrays import FloatArray
from tlstd.domains.base import Domain, check_domain
from tlstd.domains.policies import Policy, PolicyFunction, as_policy
from tlstd.errors import InvalidParameterError

UNDISCOUNTED_STEPS = 10_000
"""Steps within which rollouts at γ = 1 have to end."""
SIDE_BY_SIDE = 1 << 16
"""Rollouts that are simulated at once. It bounds the memory, and fixes which random numbers each rollout gets."""


class Estimate(NamedTuple):
    """Values as means over rollouts."""

    mean: FloatArray
    """(N,)"""
    standard_error: FloatArray
    """(N,), of ``mean``"""
    n_rollouts: int
    """Rollouts from each state."""
    truncation_error: float
    """Bound of what the horizon adds to the error of a mean; 0 if all rollouts have terminated."""


def true_values(
    domain: Domain,
    states: ArrayLike,
    *,
    policy: Policy | PolicyFunction | None = None,
    gamma: float | None = None,
    tolerance: float = 1e-10,
) -> FloatArray:
    """Discounted return from each state, where neither domain nor policy are random.

    Rollouts that terminate are exact. The others are cut after H steps, the first H with
    γ^H · ``domain.reward_bound`` / (1 − γ) <= ``tolerance``, which bounds what the cut leaves out. A domain's
    ``episode_cap`` is a truncation, which estimators bootstrap from: it does not end a rollout.

    Parameters
    ----------
    domain : Domain
    states : (N, state_size)
        Whole states: with Pendulum the value also depends on ``held``, 0 at the start of an episode.
    policy : Policy or function from states to actions, optional
        Deterministic; the domain's own if left out.
    gamma : float in [0, 1], optional
        The domain's if left out. At 1 every rollout has to terminate, within 10⁴ steps.
    tolerance : float > 0
        Largest absolute error, rounding apart.

    Returns
    -------
    (N,)
        Cost: at most H vectorised steps.

    Example
    -------
    The goal is two steps away from the first state; the second is beyond it.

    >>> from tlstd.domains.mountain_car import MountainCar
    >>> true_values(MountainCar(), [[0.4, 0.06], [0.55, 0.0]], gamma=0.9)
    array([-1.9, -1. ])
    """
    rule, discount, horizon = _settings(domain, policy, gamma, tolerance)
    if domain.noise_size or rule.is_random:
        who = f"the domain {domain.name} has random steps" if domain.noise_size else "the policy is random"
        raise InvalidParameterError(f"{who}: use rollout_values, which says how exact its means are")
    return _returns(domain, rule, discount, domain.check_states(states), horizon, None)[0]


def rollout_values(
    domain: Domain,
    states: ArrayLike,
    *,
    n_rollouts: int,
    rng: np.random.Generator,
    policy: Policy | PolicyFunction | None = None,
    gamma: float | None = None,
    tolerance: float = 1e-6,
) -> Estimate:
    """Mean discounted return from each state over independent rollouts, with its standard error.

    Parameters
    ----------
    domain : Domain
    states : (N, state_size)
    n_rollouts : int >= 2
        Rollouts from each state.
    rng : np.random.Generator
    policy, gamma
        As for :func:`true_values`; the policy may be random.
    tolerance : float > 0
        Largest absolute error of the means by cutting rollouts, as for :func:`true_values`. Standard errors are
        usually far larger.

    Returns
    -------
    Estimate
        Cost: N · n_rollouts rollouts, 65,536 at a time, which bounds the memory.

    Example
    -------
    A car that pushes at random now and then takes longer:

    >>> from tlstd.domains.mountain_car import MountainCar
    >>> from tlstd.domains.policies import EpsilonGreedy
    >>> car, start = MountainCar(), [[-0.5, 0.0]]
    >>> careless = EpsilonGreedy(car.policy(), [-1, 0, 1], epsilon=0.3)
    >>> estimate = rollout_values(car, start, n_rollouts=1000, rng=np.random.default_rng(0), policy=careless)
    >>> estimate.mean.round(1), true_values(car, start).round(1)
    (array([-82.8]), array([-71.2]))
    >>> bool(estimate.standard_error[0] < 0.2)
    True
    """
    rule, discount, horizon = _settings(domain, policy, gamma, tolerance)
    parameters.integer("n_rollouts", n_rollouts, low=2, why=", for a standard error")
    parameters.generator("rng", rng)
    checked = domain.check_states(states)
    mean, square = np.zeros(len(checked)), np.zeros(len(checked))  # square: sum of squared deviations from the mean
    n_cut = 0
    for first in range(0, len(checked), SIDE_BY_SIDE):
        block = slice(first, first + SIDE_BY_SIDE)
        at_once = SIDE_BY_SIDE // len(checked[block])
        for done in range(0, int(n_rollouts), at_once):
            m = min(at_once, int(n_rollouts) - done)
            returns, cut = _returns(domain, rule, discount, np.repeat(checked[block], m, axis=0), horizon, rng)
            n_cut += cut
            new = returns.reshape(-1, m)
            new_mean = new.mean(axis=1)
            # two sets of samples into one (Chan, Golub and LeVeque 1979)
            delta = new_mean - mean[block]
            square[block] += ((new - new_mean[:, np.newaxis]) ** 2).sum(axis=1) + delta**2 * (done * m / (done + m))
            mean[block] += delta * (m / (done + m))
    truncation = discount**horizon * domain.reward_bound / (1.0 - discount) if n_cut else 0.0
    return Estimate(mean, np.sqrt(square / (n_rollouts - 1) / n_rollouts), int(n_rollouts), truncation)


def _settings(
    domain: Domain, policy: Policy | PolicyFunction | None, gamma: float | None, tolerance: float
) -> tuple[Policy, float, int]:
    """Policy, discount and number of steps, checked."""
    check_domain(domain)
    rule = domain.policy() if policy is None else as_policy(policy)
    discount = parameters.real("gamma", domain.gamma if gamma is None else gamma, low=0.0, high=1.0)
    tolerance = parameters.real("tolerance", tolerance, low=0.0, open_low=True)
    if discount == 1.0:
        if domain.continuing:
            raise InvalidParameterError(f"gamma is 1 but {domain.name} never ends: use gamma < 1")
        return rule, 1.0, UNDISCOUNTED_STEPS
    share = tolerance * (1.0 - discount) / domain.reward_bound if domain.reward_bound > 0.0 else 1.0
    horizon = 1 if discount == 0.0 or share >= 1.0 else max(1, math.ceil(math.log(share) / math.log(discount)))
    return rule, discount, horizon


def _returns(
    domain: Domain,
    policy: Policy,
    gamma: float,
    states: FloatArray,
    horizon: int,
    rng: np.random.Generator | None,
) -> tuple[FloatArray, int]:
    """One rollout from each state: discounted returns (N,), and how many rollouts were cut at the horizon."""
    returns = np.zeros(len(states))
    running = np.arange(len(states))
    weight = 1.0
    for _ in range(horizon):
        if running.size == 0:
            break
        uniforms = rng.random(running.size) if rng is not None and policy.is_random else np.zeros(running.size)
        states, rewards, terminated = domain.step(states, policy.act(states, uniforms), rng)
        returns[running] += weight * rewards
        weight *= gamma
        if terminated.any():
            states, running = states[~terminated], running[~terminated]
    if gamma == 1.0 and running.size:
        raise InvalidParameterError(
            f"gamma is 1 but {running.size} of {returns.size} rollouts do not terminate within {horizon} steps: "
            "use gamma < 1"
        )
    return returns, running.size
