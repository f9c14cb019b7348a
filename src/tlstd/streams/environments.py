"""Transitions from any Gymnasium environment, single or vectorised."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tlstd.errors import InvalidInputError, InvalidParameterError
from tlstd.features.combine import FeatureMap
from tlstd.streams.simulated import trace_discounts
from tlstd.types import FloatArray, Transitions

if TYPE_CHECKING:
    from gymnasium import Env
    from gymnasium.vector import VectorEnv


def from_gymnasium(
    env: Env[Any, Any] | VectorEnv[Any, Any, Any],
    policy: Callable[[Any], Any] | None,
    features: FeatureMap,
    *,
    n_steps: int,
    gamma: float,
    seed: int | None = None,
    ratio: Callable[[Any, Any], Any] | None = None,
) -> Transitions:
    """Step an environment and record exactly ``n_steps`` transitions, ready for ``update_many``.

    Termination does not bootstrap; truncation, by a time limit or by the end of the recording, does. Of a vector
    environment, the steps of each sub-environment are laid one after another, with the trace cut where they join; rows
    by which environments reset themselves are dropped (all of Gymnasium's autoreset modes are understood).

    Parameters
    ----------
    env : gymnasium.Env or gymnasium.vector.VectorEnv
        With observations that are arrays or numbers (for others use ``gymnasium.wrappers.FlattenObservation``).
    policy : function from an observation to an action, or None for random actions
        Of a vector environment, from all observations to all actions.
    features : FeatureMap
        Encodes observations, flattened to float64.
    n_steps : int >= 1
        Of all sub-environments together.
    gamma : float in [0, 1]
    seed : int, optional
        Passed to the first ``reset``, and to the action space if it is the policy.
    ratio : function from observation and action to the importance ratio, optional
        For off-policy evaluation: the probability of the action under the policy to evaluate, divided by that under
        ``policy``, which acts. Of a vector environment, an array of them.

    Returns
    -------
    Transitions
        Memory: one feature vector per observation.

    Example
    -------
    >>> import gymnasium
    >>> from tlstd import LSTD, TileCoder
    >>> env = gymnasium.make("CartPole-v1")
    >>> tiles = TileCoder([-2.4, -3, -0.2, -3], [2.4, 3, 0.2, 3], tiles=4, tilings=8)
    >>> steps = from_gymnasium(env, lambda s: int(s[2] > 0), tiles, n_steps=500, gamma=0.99, seed=0)
    >>> model = LSTD(tiles.n_features, lambda_=0.9)
    >>> model.update_many(steps)
    >>> model.n_updates
    500
    """
    from gymnasium.vector import VectorEnv

    if isinstance(n_steps, (bool, np.bool_)) or not isinstance(n_steps, (int, np.integer)) or n_steps < 1:
        raise InvalidParameterError(f"n_steps is {n_steps!r}: pass an integer >= 1")
    if not 0.0 <= gamma <= 1.0:
        raise InvalidParameterError(f"gamma is {gamma!r}: the discount lies in [0, 1]")
    if policy is None:
        env.action_space.seed(seed)
    if isinstance(env, VectorEnv):
        logs = _from_many(env, policy or (lambda _: env.action_space.sample()), int(n_steps), seed, ratio)
    else:
        logs = [_from_one(env, policy or (lambda _: env.action_space.sample()), int(n_steps), seed, ratio)]
    return _join(logs, features, float(gamma))


class _Log:
    """What one environment did."""

    def __init__(self) -> None:
        self.states: list[FloatArray] = []
        self.rows: list[int] = []
        self.rewards: list[float] = []
        self.terminated: list[bool] = []
        self.ends: list[bool] = []
        self.rhos: list[float] = []
        self._begins = True

    def begin(self, observation: Any) -> None:
        """An episode starts here."""
        if not self._begins:
            return
        self.states.append(_flat(observation))
        self._begins = False

    def step(self, observation: Any, reward: Any, terminated: Any, truncated: Any, rho: Any) -> None:
        """A step led to ``observation``."""
        self.rows.append(len(self.states) - 1)
        self.states.append(_flat(observation))
        self.rewards.append(float(reward))
        self.terminated.append(bool(terminated))
        self.ends.append(bool(terminated or truncated))
        self.rhos.append(float(rho))
        self._begins = self.ends[-1]


def _from_one(
    env: Env[Any, Any],
    policy: Callable[[Any], Any],
    n_steps: int,
    seed: int | None,
    ratio: Callable[[Any, Any], Any] | None,
) -> _Log:
    log = _Log()
    observation, _ = env.reset(seed=seed)
    for _ in range(n_steps):
        log.begin(observation)
        action = policy(observation)
        rho = 1.0 if ratio is None else ratio(observation, action)
        observation, reward, terminated, truncated, _ = env.step(action)
        log.step(observation, reward, terminated, truncated, rho)
        if terminated or truncated:
            observation, _ = env.reset()
    return log


def _from_many(
    env: VectorEnv[Any, Any, Any],
    policy: Callable[[Any], Any],
    n_steps: int,
    seed: int | None,
    ratio: Callable[[Any, Any], Any] | None,
) -> list[_Log]:
    from gymnasium.vector import AutoresetMode

    mode = AutoresetMode(env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP))  # Gymnasium 1.0 does not say
    n = env.num_envs
    logs = [_Log() for _ in range(n)]
    observations, _ = env.reset(seed=seed)
    resets = np.zeros(n, dtype=np.bool_)  # the next step of these only resets
    count = 0
    while count < n_steps:
        here = np.array(observations)  # environments may reuse the array
        actions = policy(observations)
        rhos = np.ones(n) if ratio is None else np.broadcast_to(ratio(observations, actions), (n,))
        observations, rewards, terminated, truncated, infos = env.step(actions)
        ended = np.asarray(terminated) | np.asarray(truncated)
        final = infos.get("final_obs") if mode is AutoresetMode.SAME_STEP else None
        for i in np.flatnonzero(~resets)[: n_steps - count]:
            logs[i].begin(here[i])
            after = observations[i] if final is None or not ended[i] else final[i]
            logs[i].step(after, rewards[i], terminated[i], truncated[i], rhos[i])
            count += 1
        if mode is AutoresetMode.NEXT_STEP:
            resets = ended
        elif mode is AutoresetMode.DISABLED and ended.any():
            observations, _ = env.reset(options={"reset_mask": ended})
    return [log for log in logs if log.rows]


def _join(logs: list[_Log], features: FeatureMap, gamma: float) -> Transitions:
    """The steps of one environment after those of another."""
    offsets = np.cumsum([0, *(len(log.states) for log in logs)])
    rows = np.concatenate([np.array(log.rows) + offset for log, offset in zip(logs, offsets, strict=False)])
    for log in logs:
        log.ends[-1] = True
    terminated, ends, rewards, rhos = (
        np.concatenate([getattr(log, name) for log in logs]) for name in ("terminated", "ends", "rewards", "rhos")
    )
    return Transitions.from_rows(
        features.encode_many(np.array([state for log in logs for state in log.states])),
        rows,
        rewards,
        rows + 1,
        discounts=np.where(terminated, 0.0, gamma),
        trace_discounts=trace_discounts(ends, gamma),
        rhos=rhos,
    )


def _flat(observation: Any) -> FloatArray:
    try:
        return np.array(observation, dtype=np.float64).ravel()
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"an observation is a {type(observation).__name__} that is no array of numbers: wrap the environment in "
            "gymnasium.wrappers.FlattenObservation"
        ) from error
