"""Transitions from any Gymnasium environment, single or vectorised."""

from __future__ import annotations

import warnings
from array import array
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tlstd.core import parameters
from tlstd.core.arrays import FloatArray, as_flag, as_flags, as_ratio, as_real
from tlstd.core.extras import needs
from tlstd.core.parameters import Seed, seed_sequence
from tlstd.data.transitions import Transitions, trace_discounts
from tlstd.errors import InvalidInputError, InvalidParameterError, TlstdError
from tlstd.features.base import FeatureMap
from tlstd.features.states import encoded, encoded_once

if TYPE_CHECKING:
    from gymnasium import Env
    from gymnasium.vector import VectorEnv

_MODES = ("NextStep", "SameStep", "Disabled")  # the values of Gymnasium's AutoresetMode, which 1.0 does not have


def from_gymnasium(
    env: Env[Any, Any] | VectorEnv[Any, Any, Any],
    policy: Callable[[Any], Any] | None,
    features: FeatureMap,
    *,
    n_steps: int,
    gamma: float,
    seed: Seed | None = None,
    ratio: Callable[[Any, Any], Any] | None = None,
) -> Transitions:
    """Step an environment and record exactly ``n_steps`` transitions, ready for ``update_many``.

    The environment is reset first. Termination does not bootstrap; truncation, by a time limit or by the end of the
    recording, does. Of a vector environment, the steps of each sub-environment are laid one after another, with the
    trace cut where they join; rows by which environments reset themselves are dropped (all of Gymnasium's autoreset
    modes are understood; an environment that states none is taken for ``NEXT_STEP``, as in Gymnasium 1.0).

    Parameters
    ----------
    env : gymnasium.Env or gymnasium.vector.VectorEnv
        With observations that are arrays or numbers (for others use ``gymnasium.wrappers.FlattenObservation``).
    policy : function from an observation to an action, or None for random actions
        Of a vector environment, from all observations to all actions.
    features : FeatureMap
        Encodes observations, flattened to float64; a number becomes an array of one.
    n_steps : int >= 1
        Of all sub-environments together.
    gamma : float in [0, 1]
    seed : int >= 0, SeedSequence or Generator, optional
        An integer is passed to the first ``reset`` of a single environment. Vector environments get a number derived
        from it, because Gymnasium gives them seed, seed + 1, …, which would be those of the next runs too. Random
        actions are drawn from yet another one: with the same, they would repeat the numbers of the environment.
    ratio : function from observation and action to the importance ratio, optional
        For off-policy evaluation: the probability of the action under the policy to evaluate, divided by that under
        ``policy``, which acts. Of a vector environment, an array of them.

    Returns
    -------
    Transitions
        Each observation is encoded and its features are stored once; ``actions`` are kept if they are numbers.

    Notes
    -----
    Costs a few microseconds per step on top of the environment. Observations wait as float64 until the end, when all of
    them are encoded at once.

    Environments may write all their observations into one array. Only a vector environment of such in the mode
    ``SAME_STEP`` is of no use: in it Gymnasium itself overwrites the final observation of an episode by the first of
    the next.

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
    Env, VectorEnv = _classes()
    if not isinstance(env, (Env, VectorEnv)):
        raise InvalidParameterError(f"env is {env!r}: pass a Gymnasium environment, e.g. gymnasium.make('CartPole-v1')")
    many = isinstance(env, VectorEnv)
    _check_space(getattr(env, "single_observation_space" if many else "observation_space", None), many)
    if policy is not None and not callable(policy):
        raise InvalidParameterError(f"policy is {policy!r}: pass a function from an observation to an action, or None")
    if not callable(getattr(features, "encode_many", None)):
        raise InvalidParameterError(f"features is {features!r}: pass a feature map, e.g. tlstd.TileCoder(...)")
    n_steps = parameters.integer("n_steps", n_steps)
    if not isinstance(gamma, (int, float, np.integer, np.floating)) or not 0.0 <= gamma <= 1.0:
        raise InvalidParameterError(f"gamma is {gamma!r}: the discount lies in [0, 1]")
    root = None if seed is None else seed_sequence(seed)
    if ratio is not None and not callable(ratio):
        raise InvalidParameterError(f"ratio is {ratio!r}: pass a function of observation and action, or None")

    act = _random(env, None if root is None else _derived(root, 0)) if policy is None else policy
    if isinstance(seed, (int, np.integer)) and not many:
        start: int | None = int(seed)
    else:
        start = None if root is None else _derived(root, 1)
    logs = (_from_many if many else _from_one)(env, act, features, n_steps, start, ratio)
    return _join(logs, features, float(gamma))


@cache
def _classes() -> Any:
    """``Env`` and ``VectorEnv`` of Gymnasium."""
    with needs("gymnasium"):
        from gymnasium import Env
        from gymnasium.vector import VectorEnv
    return Env, VectorEnv


class _Log:
    """What one environment did: its observations end to end, those of each episode with the final one."""

    def __init__(self) -> None:
        self.size: int | None = None  # of an observation, which the first one says
        self.observations = array("d")
        self.rewards = array("d")
        self.rhos = array("d")
        self.actions: array[float] | None = array("d")  # None if they are not numbers of one shape
        self.action_shape: tuple[int, ...] = ()
        self.whole = True  # all actions are integers
        self.terminated = bytearray()
        self.ends = bytearray()
        self._inside = False

    def check(self, features: FeatureMap) -> None:
        """Encode the first observation, so that features that do not fit fail before all the steps."""
        encoded(features, np.array(self.observations)[np.newaxis])

    def begin(self, observation: Any) -> None:
        """An episode starts here, unless one is under way."""
        if not self._inside:
            self._see(observation)
            self._inside = True

    def step(self, action: Any, observation: Any, reward: Any, terminated: bool, truncated: bool, rho: float) -> None:
        """The action led to ``observation``."""
        self._keep(action)
        self._see(observation)
        self.rewards.append(_number(reward, "the reward"))
        self.rhos.append(rho)
        self.terminated.append(terminated)
        self.ends.append(terminated or truncated)
        self._inside = not self.ends[-1]

    def _keep(self, action: Any) -> None:
        if self.actions is None:
            return
        if isinstance(action, int) and not self.action_shape:  # what it mostly is
            self.actions.append(action)
        elif action is None or (self.actions and action.shape != self.action_shape):
            self.actions = None
        else:
            self.action_shape, self.whole = action.shape, self.whole and action.dtype.kind != "f"
            self.actions.frombytes(action.astype(np.float64).tobytes())

    def _see(self, observation: Any) -> None:
        flat = _flat(observation)
        if self.size is None:
            self.size = flat.size
        if flat.size != self.size:
            raise InvalidInputError(
                f"an observation has {flat.size} numbers and the first one had {self.size}: the observations of an "
                "environment have one shape"
            )
        self.observations.frombytes(flat.tobytes())


def _derived(root: np.random.SeedSequence, branch: int) -> int:
    """A seed for Gymnasium, far from those of other roots and branches."""
    child = np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, branch))
    return int(child.generate_state(1)[0])


def _random(env: Env[Any, Any] | VectorEnv[Any, Any, Any], seed: int | None) -> Callable[[Any], Any]:
    """The policy of random actions, whose space is seeded only if there is a seed."""
    if seed is not None:
        env.action_space.seed(seed)
    return lambda _: env.action_space.sample()


def _from_one(
    env: Env[Any, Any],
    policy: Callable[[Any], Any],
    features: FeatureMap,
    n_steps: int,
    seed: int | None,
    ratio: Callable[[Any, Any], Any] | None,
) -> list[_Log]:
    observation, _ = _parts(env.reset(seed=seed), 2, "reset()")
    log, ended = _Log(), False
    log.begin(observation)
    log.check(features)
    for _ in range(n_steps):
        if ended:
            observation, _ = _parts(env.reset(), 2, "reset()")
        log.begin(observation)  # before others see it: they may change it
        action = policy(observation)
        taken = _numbers(action)  # before others see it
        rho = 1.0 if ratio is None else as_ratio(_number(ratio(observation, action), "the importance ratio"))
        observation, reward, *flags, _ = _step(env, action)
        terminated, truncated = (
            as_flag(flag, f"{name} of the environment")
            for flag, name in zip(flags, ("terminated", "truncated"), strict=True)
        )
        log.step(taken, observation, reward, terminated, truncated, rho)
        ended = terminated or truncated
    return [log]


def _from_many(
    env: VectorEnv[Any, Any, Any],
    policy: Callable[[Any], Any],
    features: FeatureMap,
    n_steps: int,
    seed: int | None,
    ratio: Callable[[Any, Any], Any] | None,
) -> list[_Log]:
    mode, n = _autoreset_mode(env), env.num_envs
    observations, _ = _parts(env.reset(seed=seed), 2, "reset()")
    logs = [_Log() for _ in range(n)]
    logs[0].begin(observations[0])
    logs[0].check(features)
    for log in logs:
        log.size = logs[0].size
    ended = np.zeros(n, dtype=np.bool_)
    count = 0
    while count < n_steps:
        steps = np.ones(n, dtype=np.bool_) if mode in ("SameStep", "Disabled") else ~ended  # others only reset
        if mode == "Disabled" and ended.any():
            observations, _ = _parts(env.reset(options={"reset_mask": ended}), 2, "reset()")
        recorded = np.flatnonzero(steps)[: n_steps - count].tolist()
        for i in recorded:
            logs[i].begin(observations[i])
        actions = policy(observations)
        taken = _numbers(actions)
        rhos = np.ones(n) if ratio is None else _ratios(ratio(observations, actions), steps)
        observations, rewards, *flags, infos = _step(env, actions)
        terminated, truncated = (
            as_flags(flag, f"{name} of the environment", n)
            for flag, name in zip(flags, ("terminated", "truncated"), strict=True)
        )
        ended = terminated | truncated
        if mode is None and not infos.keys().isdisjoint(("final_obs", "final_observation")):
            raise InvalidInputError(
                f"{env} has final observations in its infos, but its metadata has no autoreset_mode: set "
                "env.metadata['autoreset_mode'] = gymnasium.vector.AutoresetMode.SAME_STEP if that is what it does"
            )
        for i in recorded:
            after = _final(infos, i) if mode == "SameStep" and ended[i] else observations[i]
            logs[i].step(
                None if taken is None else taken[i], after, rewards[i], bool(terminated[i]), bool(truncated[i]), rhos[i]
            )
        count += len(recorded)
    return [log for log in logs if log.rewards]


def _join(logs: list[_Log], features: FeatureMap, gamma: float) -> Transitions:
    """The steps of one environment after those of another."""
    for log in logs:
        log.ends[-1] = True
    ends, terminated = (
        np.concatenate([np.frombuffer(getattr(log, name), dtype=np.bool_) for log in logs])
        for name in ("ends", "terminated")
    )
    observations, rewards, rhos = (
        np.concatenate([np.frombuffer(getattr(log, name)) for log in logs])
        for name in ("observations", "rewards", "rhos")
    )
    rows = np.arange(len(ends)) + np.cumsum(ends) - ends  # each episode has one observation more than steps
    return Transitions.from_rows(
        encoded_once(features, observations.reshape(len(ends) + np.count_nonzero(ends), -1)),
        rows,
        rewards,
        rows + 1,
        discounts=np.where(terminated, 0.0, gamma),
        trace_discounts=trace_discounts(ends, gamma),
        rhos=rhos,
        actions=_actions(logs),
    )


def _actions(logs: list[_Log]) -> NDArray[Any] | None:
    kept = [log.actions for log in logs if log.actions is not None]
    if len(kept) < len(logs) or len({log.action_shape for log in logs}) > 1:
        return None
    joined = np.concatenate([np.frombuffer(actions) for actions in kept]).reshape(-1, *logs[0].action_shape)
    return joined.astype(np.int64) if all(log.whole for log in logs) else joined


# --- checks -----------------------------------------------------------------------------------------------------------


def _check_space(space: Any, many: bool) -> None:
    """Refuse spaces of other things than arrays and numbers, which have no shape."""
    if getattr(space, "shape", None) is None:
        wrapper = f"gymnasium.wrappers.{'vector.' if many else ''}FlattenObservation"
        raise InvalidInputError(
            f"the observation space is {space!r}, not one of arrays or numbers: wrap the environment in {wrapper}"
        )


def _step(env: Env[Any, Any] | VectorEnv[Any, Any, Any], action: Any) -> Any:
    """What ``env.step`` returns; what it raises, if it is the action that is to blame, says so."""
    try:
        result = env.step(action)
    except TlstdError:
        raise
    except Exception as error:
        if _in_space(action, env.action_space):
            raise
        raise InvalidInputError(
            f"the policy returned {action!r}, which the environment refused ({type(error).__name__}): return an action "
            f"of {env.action_space}, of its type and shape"
        ) from error
    return _parts(result, 5, "step()")


def _in_space(action: Any, space: Any) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Gymnasium's about types
        try:
            return bool(space.contains(action))
        except Exception:  # not even comparable
            return False


def _parts(result: Any, n: int, method: str) -> Any:
    """What a method of the environment returns, if it has the parts that Gymnasium asks for."""
    if not isinstance(result, (tuple, list)) or len(result) != n:
        given = f"{len(result)} values" if isinstance(result, (tuple, list)) else type(result).__name__
        what = "observation, info" if n == 2 else "observation, reward, terminated, truncated, info"
        raise InvalidInputError(
            f"the environment's {method} returned {given} instead of {what}: it follows another interface than "
            "Gymnasium's; wrap it"
        )
    return result


def _autoreset_mode(env: VectorEnv[Any, Any, Any]) -> str | None:
    """The mode by its value; None if the environment does not say, which means ``NEXT_STEP``.

    Its own attribute first: until Gymnasium 1.3 all environments of one class share their metadata.
    """
    stated = getattr(env.unwrapped, "autoreset_mode", None) or env.metadata.get("autoreset_mode")
    if stated is None:
        return None
    mode = getattr(stated, "value", stated)
    if mode not in _MODES:
        raise InvalidInputError(f"the autoreset mode of {env} is {stated!r}: one of {', '.join(_MODES)} is understood")
    return str(mode)


def _final(infos: Mapping[str, Any], i: int) -> Any:
    """The final observation of sub-environment ``i``, which was reset in the same step."""
    given = infos.get("final_obs")
    if given is None or given[i] is None or not infos.get("_final_obs", {i: True})[i]:
        raise InvalidInputError(
            f"sub-environment {i} ended an episode without infos['final_obs']: an environment in the mode SAME_STEP "
            "has to give it; use NEXT_STEP or DISABLED"
        )
    return given[i]


def _ratios(ratios: Any, steps: NDArray[np.bool_]) -> list[float]:
    """One importance ratio for each sub-environment, checked for those that take a step."""
    rhos = as_real(ratios, "what ratio returned")
    if rhos.shape != steps.shape:
        raise InvalidInputError(
            f"ratio returned shape {rhos.shape} for {steps.size} sub-environments: return one number for each"
        )
    return [as_ratio(rho) if step else 1.0 for rho, step in zip(rhos.tolist(), steps.tolist(), strict=True)]


def _number(value: Any, what: str) -> float:
    if isinstance(value, float):  # what it mostly is
        return float(value)
    try:
        number = as_real(value, what)
    except InvalidInputError:
        number = np.empty(0)
    if number.size != 1:
        raise InvalidInputError(f"{what} is {value!r}: it has to be one number")
    return float(number.item())


def _numbers(action: Any) -> Any:
    """A copy of an action or of the actions of all sub-environments; None if it is not made of numbers."""
    if isinstance(action, int):  # what it mostly is
        return action
    try:
        numbers = np.array(action)
    except Exception:  # a dictionary, a tuple of different things
        return None
    return numbers if numbers.dtype.kind in "iufb" else None


def _flat(observation: Any) -> FloatArray:
    try:
        return as_real(observation, "an observation").ravel()
    except InvalidInputError as error:
        raise InvalidInputError(
            f"an observation is a {type(observation).__name__} that is no array of numbers: wrap the environment in "
            "gymnasium.wrappers.FlattenObservation"
        ) from error
