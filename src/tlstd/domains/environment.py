"""A domain as a Gymnasium environment: one state, which the environment keeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd.core.extras import needs
from tlstd.domains import DOMAINS
from tlstd.domains.base import Domain, Picture
from tlstd.errors import InvalidInputError, InvalidParameterError, TlstdError

with needs("gymnasium"):
    import gymnasium
    from gymnasium import spaces

ROUNDING = 1e-6
"""Actions that lie beyond a bound by less than this part of their range are cut to it, not refused.

Wrappers and agents round: 0.3 in single precision is larger than 0.3."""


class ResetNeededError(TlstdError, gymnasium.error.ResetNeeded):
    """There is no episode under way: call ``reset()``."""


class DomainEnv(gymnasium.Env[FloatArray, Any]):
    """A Gymnasium environment around a domain; the same steps, bit for bit.

    Observations are what features see, :meth:`Domain.observe`; the full state is ``info["state"]``. Where a domain has
    finitely many actions an action is an index into ``domain.actions``; otherwise it is an array of one number from −1
    to 1, the range that Gymnasium recommends, which stands for the range ``domain.action_bounds``. Starts and noise are
    drawn from ``np_random``, in that order, so that ``reset(seed=s)`` does what the domain does with
    ``np.random.default_rng(s)``. An episode is truncated after ``domain.episode_cap`` steps, unless it terminates just
    then.

    :mod:`tlstd.envs` makes it known to ``gymnasium.make``.

    Parameters
    ----------
    domain : Domain or str
        A name is looked up in :data:`tlstd.domains.DOMAINS`.
    render_mode : "rgb_array", optional
        With it, ``render()`` returns the picture of the state.
    scale_actions : bool
        False: actions that are not indices are in the domain's own unit (Gymnasium's ``check_env`` then recommends "a
        symmetric and normalized space").
    **parameters
        Of the domain, if it is given by its name.

    Notes
    -----
    An action a from −1 to 1 means (low + high)/2 + a (high − low)/2, which is a·high where the bounds are ±high.

    A step takes tens of microseconds; long streams are quicker from the domain itself, which moves many states at once.

    Example
    -------
    >>> env = DomainEnv("MountainCar", force=0.002)
    >>> observation, info = env.reset(options={"state": [-0.5, 0.0]})
    >>> observation, reward, terminated, truncated, info = env.step(2)      # the last of −1, 0 and 1
    >>> observation.round(5), reward, terminated, truncated
    (array([-0.49818, 0.00182]), -1.0, False, False)

    Full torque, in the unit of agents and in that of the domain:

    >>> for env, action in (DomainEnv("Pendulum"), 1.0), (DomainEnv("Pendulum", scale_actions=False), 2.0):
    ...     observation, info = env.reset(options={"state": [0.0, 0.0, 0.0]})
    ...     print(env.action_space, env.step([action])[0].round(3))
    Box(-1.0, 1.0, (1,), float64) [0.003 0.099]
    Box(-2.0, 2.0, (1,), float64) [0.003 0.099]
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}  # noqa: RUF012 - Gymnasium's type; Pendulum's real time

    def __init__(
        self, domain: Domain | str, *, render_mode: str | None = None, scale_actions: bool = True, **parameters: Any
    ) -> None:
        self.domain = _domain(domain, parameters)
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise InvalidParameterError(f"render_mode is {render_mode!r}: pass 'rgb_array' or None")
        self.render_mode = render_mode
        self.observation_space = spaces.Box(self.domain.low, self.domain.high, dtype=np.float64)
        self.action_space: spaces.Space[Any]
        self._bounds = (-1.0, 1.0) if scale_actions else self.domain.action_bounds
        if self.domain.actions is None:
            if scale_actions and not np.isfinite(self.domain.action_bounds).all():
                raise InvalidParameterError(
                    f"actions of {self.domain.name} lie in {self.domain.action_bounds}: pass scale_actions=False"
                )
            self.action_space = spaces.Box(*self._bounds, shape=(1,), dtype=np.float64)
        else:
            self.action_space = spaces.Discrete(len(self.domain.actions))
        self._state: FloatArray | None = None
        self._n_steps = 0
        self._ended = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[FloatArray, dict[str, Any]]:
        """Start an episode, at random or in ``options["state"]``, a full state (state_size,) within the box.

        Returns
        -------
        observation : (len(domain.low),)
        info : dict
            ``state`` is the full state.
        """
        given = self._given_state(options)
        super().reset(seed=seed)
        self._state = self.domain.start(1, self.np_random)[0] if given is None else given
        self._n_steps = 0
        self._ended = False
        return self._seen(self._state)

    def step(self, action: Any) -> tuple[FloatArray, float, bool, bool, dict[str, Any]]:
        """Take one step.

        Returns
        -------
        observation, reward, terminated, truncated, info
            As for :meth:`reset` and ``gymnasium.Env.step``.
        """
        state = self._current("step()")
        if self._ended:
            raise ResetNeededError("the episode has ended: call reset() before the next step()")
        states, rewards, ends = self.domain.step(state[np.newaxis], [self._meaning(action)], self.np_random)
        self._state = states[0]
        self._n_steps += 1
        terminated = bool(ends[0])
        cap = self.domain.episode_cap
        truncated = cap is not None and self._n_steps >= cap and not terminated
        self._ended = terminated or truncated
        observation, info = self._seen(self._state)
        return observation, float(rewards[0]), terminated, truncated, info

    def render(self) -> Picture | None:
        """Return the picture of the state (height, width, 3); None, with a warning, if there is no ``render_mode``."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() draws nothing without a render mode: pass render_mode='rgb_array' to make")
            return None
        return self.domain.draw(self._current("render()"))

    def _current(self, caller: str) -> FloatArray:
        if self._state is None:
            raise ResetNeededError(f"{caller} was called before there is a state: call reset() first")
        return self._state

    def _seen(self, state: FloatArray) -> tuple[FloatArray, dict[str, Any]]:
        """Observation and info of a state, in memory of their own."""
        return self.domain.observe(state[np.newaxis])[0].copy(), {"state": state.copy()}

    def _meaning(self, action: Any) -> float:
        """The domain's action, or an error."""
        if self.domain.actions is not None:
            if not self.action_space.contains(action):
                known = self.domain.actions.tolist()
                raise InvalidInputError(f"the action is {action!r}: pass the index, 0 to {len(known) - 1}, of {known}")
            return float(self.domain.actions[int(action)])
        low, high = self._bounds
        try:
            value = np.asarray(action, dtype=np.float64)
        except (TypeError, ValueError):
            value = np.empty(0)
        slack = ROUNDING * (high - low)
        if value.shape != (1,) or not low - slack <= value[0] <= high + slack:
            raise InvalidInputError(f"the action is {action!r}: pass an array of one number in [{low:g}, {high:g}]")
        within = min(max(float(value[0]), low), high)
        bottom, top = self.domain.action_bounds
        if (low, high) == (bottom, top):
            return within
        return min(max(0.5 * (bottom + top) + within * (0.5 * (top - bottom)), bottom), top)

    def _given_state(self, options: Mapping[str, Any] | None) -> FloatArray | None:
        """The state to start in, None for a random one, or an error."""
        if options is None:
            return None
        names = ", ".join(self.domain.state_names)
        if not isinstance(options, Mapping) or not options.keys() <= {"state"}:
            raise InvalidInputError(f'options is {options!r}: pass {{"state": [{names}]}} or None')
        if options.get("state") is None:
            return None
        try:
            state = np.array(options["state"], dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidInputError(f'options["state"] is {options["state"]!r}: pass [{names}]') from error
        if state.shape != (self.domain.state_size,):
            raise InvalidInputError(f'options["state"] has shape {state.shape}: pass [{names}]')
        observed = self.domain.observe(self.domain.check_states(state[np.newaxis]))[0]
        low, high = self.domain.low, self.domain.high
        outside = np.flatnonzero((observed < low) | (observed > high))
        if outside.size:
            i = int(outside[0])
            raise InvalidInputError(
                f'options["state"] has the {self.domain.state_names[i]} {observed[i]:g}: '
                f"it lies in [{low[i]:g}, {high[i]:g}]"
            )
        return state


def _domain(domain: Domain | str, parameters: dict[str, Any]) -> Domain:
    """The domain itself, or made by its name, or an error."""
    if isinstance(domain, Domain):
        if parameters:
            raise InvalidParameterError(
                f"a {domain.name} was given together with {', '.join(parameters)}: pass parameters to its constructor"
            )
        return domain
    if not isinstance(domain, str) or domain not in DOMAINS:
        raise InvalidParameterError(f"the domain is {domain!r}: pass a Domain or one of {', '.join(sorted(DOMAINS))}")
    return DOMAINS[domain](**parameters)
