"""Garnets: random decision processes of a given size, for tests over many problems."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from tlstd.core import parameters
from tlstd.core.arrays import FloatArray, as_real
from tlstd.domains.mdp import MarkovRewardProcess, OffPolicyProcess
from tlstd.errors import InvalidParameterError

Features: TypeAlias = Literal["gaussian", "binary"]
Policy: TypeAlias = Literal["random", "uniform"]


def garnet(
    n_states: int,
    n_actions: int,
    branching: int,
    n_features: int,
    rng: np.random.Generator,
    *,
    gamma: float,
    policy: ArrayLike | Policy = "random",
    features: Features = "gaussian",
    active: int | None = None,
    termination: float = 0.0,
    reward_noise: float = 0.0,
) -> MarkovRewardProcess:
    """A Garnet (generic average reward non-stationary environment test-bench) under a policy.

    Every action of every state leads to ``branching`` different states, drawn without replacement, with probabilities
    that split the unit interval at random; its reward is standard normal. Where needed, one successor of action 0 is
    replaced so that action 0 can follow a random cycle through all states: a policy that takes it everywhere with some
    probability, as the built-in ones do, then visits every state for ever.

    Folding the policy in averages over actions: a sampled reward is the mean of its state (plus ``reward_noise``).
    :func:`garnet_off_policy` samples the actions themselves.

    Parameters
    ----------
    n_states, n_actions, n_features : int >= 1
    branching : int in [1, n_states]
    rng : np.random.Generator
        Draws the process, not the stream.
    gamma : float in [0, 1]
        One needs ``termination`` > 0.
    policy : (n_states, n_actions) or "random" or "uniform"
        Action probabilities; "random" splits the unit interval at random in every state.
    features : "gaussian" or "binary"
        Independent standard normal entries, or ``active`` ones per state at random places.
    active : int in [1, n_features], optional
        Ones per state of binary features; a quarter of them (at least one) if left out.
    termination : float in [0, 1)
        Probability that a step terminates, the same in all states; episodes start uniformly. 0 makes a continuing
        process.
    reward_noise : float >= 0

    Returns
    -------
    MarkovRewardProcess

    References
    ----------
    S. Bhatnagar, R. S. Sutton, M. Ghavamzadeh, M. Lee, "Natural actor-critic algorithms", Automatica 45, 2009,
    after T. W. Archibald, K. I. M. McKinnon, L. C. Thomas, 1995.

    Example
    -------
    >>> process = garnet(30, 2, 3, 8, np.random.default_rng(0), gamma=0.95)
    >>> process
    MarkovRewardProcess('Garnet(30, 2, 3)', 30 states, 8 features, gamma=0.95)
    >>> bool((process.state_distribution() > 0).all())
    True
    """
    P, rewards, X = _draw(n_states, n_actions, branching, n_features, rng, features, active, termination)
    pi = _policy(policy, "policy", n_states, n_actions, rng)
    return MarkovRewardProcess(
        np.einsum("sa,sat->st", pi, P),
        (pi * rewards).sum(axis=1),
        X,
        gamma=gamma,
        reward_noise=reward_noise,
        name=f"Garnet({n_states}, {n_actions}, {branching})",
    )


def garnet_off_policy(
    n_states: int,
    n_actions: int,
    branching: int,
    n_features: int,
    rng: np.random.Generator,
    *,
    gamma: float,
    target: ArrayLike | Policy = "random",
    behaviour: ArrayLike | Policy = "uniform",
    features: Features = "gaussian",
    active: int | None = None,
    termination: float = 0.0,
    reward_noise: float = 0.0,
) -> OffPolicyProcess:
    """A Garnet whose stream follows ``behaviour`` and whose values are those of ``target``.

    Drawn like :func:`garnet` (the same generator state gives the same process and, as target, the same policy).
    With the default uniform behaviour, importance ratios are at most ``n_actions``.

    Parameters
    ----------
    target, behaviour : (n_states, n_actions) or "random" or "uniform"
        The behaviour must take every action that the target takes.

    The other parameters are those of :func:`garnet`.

    Returns
    -------
    OffPolicyProcess
        Its ``sample`` carries importance ratios, and its ``system`` accounts for them.

    Example
    -------
    >>> process = garnet_off_policy(20, 2, 3, 5, np.random.default_rng(0), gamma=0.9)
    >>> stream = process.sample(1000, np.random.default_rng(1))
    >>> bool(stream.rhos.min() < 1.0 < stream.rhos.max() <= 2.0)
    True
    """
    P, rewards, X = _draw(n_states, n_actions, branching, n_features, rng, features, active, termination)
    return OffPolicyProcess(
        P,
        rewards,
        X,
        target=_policy(target, "target", n_states, n_actions, rng),
        behaviour=_policy(behaviour, "behaviour", n_states, n_actions, rng),
        gamma=gamma,
        reward_noise=reward_noise,
        name=f"off-policy Garnet({n_states}, {n_actions}, {branching})",
    )


def _draw(
    n_states: int,
    n_actions: int,
    branching: int,
    n_features: int,
    rng: np.random.Generator,
    features: Features,
    active: int | None,
    termination: float,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return P (n, n_actions, n), rewards (n, n_actions) and X (n, d)."""
    parameters.generator("rng", rng)
    for name, count in (("n_states", n_states), ("n_actions", n_actions), ("n_features", n_features)):
        parameters.integer(name, count)
    parameters.integer("branching", branching, high=n_states)
    parameters.real("termination", termination, low=0.0, high=1.0, open_high=True)

    order = rng.random((n_states, n_actions, n_states)).argsort(axis=2)  # a random permutation for each action
    successors = order[:, :, :branching]
    tour = rng.permutation(n_states)
    follower = np.empty_like(tour)
    follower[tour] = np.roll(tour, -1)
    missing = ~(successors[:, 0] == follower[:, None]).any(axis=1)
    successors[missing, 0, 0] = follower[missing]
    P = np.zeros((n_states, n_actions, n_states))
    np.put_along_axis(P, successors, (1.0 - termination) * _splits(rng, (n_states, n_actions), branching), axis=2)

    rewards = rng.standard_normal((n_states, n_actions))
    return P, rewards, _features(features, n_states, n_features, active, rng)


def _features(
    kind: Features, n_states: int, n_features: int, active: int | None, rng: np.random.Generator
) -> FloatArray:
    parameters.choice("features", kind, get_args(Features))
    if kind == "gaussian":
        if active is not None:
            raise InvalidParameterError(f"active is {active!r} but the features are Gaussian: leave it out")
        return rng.standard_normal((n_states, n_features))
    ones = max(1, n_features // 4) if active is None else parameters.integer("active", active, high=n_features)
    places = rng.random((n_states, n_features)).argsort(axis=1)[:, :ones]
    X = np.zeros((n_states, n_features))
    np.put_along_axis(X, places, 1.0, axis=1)
    return X


def _policy(policy: ArrayLike | str, name: str, n_states: int, n_actions: int, rng: np.random.Generator) -> FloatArray:
    if isinstance(policy, str):
        if parameters.choice(name, policy, get_args(Policy), why=", or probabilities") == "random":
            return _splits(rng, (n_states,), n_actions)
        return np.full((n_states, n_actions), 1.0 / n_actions)
    given = as_real(policy, name, InvalidParameterError)
    if given.shape != (n_states, n_actions):
        raise InvalidParameterError(f"{name} has shape {given.shape}: pass ({n_states}, {n_actions}) probabilities")
    if not (given.min() >= 0.0 and np.abs(given.sum(axis=1) - 1.0).max() <= 1e-9):
        raise InvalidParameterError(f"{name} has a row that is no distribution: rows are >= 0 and add up to 1")
    return given


def _splits(rng: np.random.Generator, shape: tuple[int, ...], parts: int) -> FloatArray:
    """Return lengths of ``parts`` intervals into which uniform points split the unit interval."""
    points = np.sort(rng.random((*shape, parts - 1)), axis=-1)
    return np.diff(points, axis=-1, prepend=0.0, append=1.0)
