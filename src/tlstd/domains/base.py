"""What simulated domains share: vectorised dynamics that can start anywhere, with all randomness passed in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tlstd.core import parameters
from tlstd.core.arrays import FloatArray, as_real
from tlstd.domains.policies import Policy
from tlstd.errors import InvalidInputError, InvalidParameterError

Picture = NDArray[np.uint8]
"""An image (height, width, 3)."""


class Step(NamedTuple):
    """What N simultaneous steps lead to."""

    states: FloatArray
    """(N, state_size)"""
    rewards: FloatArray
    """(N,)"""
    terminated: NDArray[np.bool_]
    """(N,)"""


def check_domain(value: object) -> None:
    """Raise unless it is a domain."""
    if not isinstance(value, Domain):
        raise InvalidParameterError(f"the domain is {value!r}: pass one, e.g. tlstd.domains.DOMAINS['MountainCar']()")


class Domain(ABC):
    """A simulated problem: states (N, state_size) and actions (N,) in, next states, rewards and endings out.

    The state is all that the future depends on; features see :meth:`observe` of it, whose box is ``low`` to ``high``
    (Pendulum hides how long it has been upright, EnergyStorage hides the time). A domain holds parameters only, no
    state: all functions are pure. What is random in a step is a function of ``noise_size`` uniform numbers, so that a
    stream is fully determined by the numbers drawn for it, however its steps are grouped.

    A subclass has the class attributes below, and ``low``, ``high`` and ``reward_bound`` by its constructor, and says
    ``_step``, ``_start`` and ``policy``; unless it has no picture, ``draw``.
    """

    name: ClassVar[str]
    """As in the registry, e.g. "MountainCar"."""
    state_names: ClassVar[tuple[str, ...]]
    """Names of the entries of a state; the first ``len(low)`` of them are observed."""
    gamma: ClassVar[float]
    """The discount of the paper's experiments."""
    noise_size: ClassVar[int] = 0
    """Uniform numbers that one step takes."""
    start_noise_size: ClassVar[int] = 0
    """Uniform numbers that one random start takes."""
    continuing: ClassVar[bool] = False
    """Whether the task never ends."""

    low: FloatArray
    high: FloatArray
    reward_bound: float
    """Largest absolute reward of one step: with γ it bounds what a cut rollout leaves out."""
    actions: FloatArray | None = None
    """The actions, where they are finitely many."""
    action_bounds: tuple[float, float]
    """Smallest and largest action."""
    episode_cap: int | None = None
    """Steps after which an episode is truncated by convention (which bootstraps), if there is one."""

    @property
    def state_size(self) -> int:
        """Number of entries of a state."""
        return len(self.state_names)

    @abstractmethod
    def policy(self) -> Policy:
        """The domain's own policy, which streams follow unless told otherwise."""

    def step(self, states: ArrayLike, actions: ArrayLike, rng: np.random.Generator | None = None) -> Step:
        """Move N states by one step each; what happens to one does not depend on the others.

        Parameters
        ----------
        states : (N, state_size)
        actions : (N,)
        rng : np.random.Generator
            May be left out where dynamics are deterministic (``noise_size`` = 0).
        """
        checked = self.check_states(states)
        thrust = self.check_actions(actions, len(checked))
        if self.noise_size and rng is None:
            raise InvalidInputError(f"{self.name} has random steps: pass rng=np.random.default_rng(seed)")
        shape = len(checked), self.noise_size
        noise = np.zeros(shape) if rng is None else parameters.generator("rng", rng).random(shape)
        return self._step(checked, thrust, noise)

    def step_with_noise(self, states: FloatArray, actions: FloatArray, noise: FloatArray) -> Step:
        """:meth:`step` as a function of what is random in it, (N, noise_size) uniform on [0, 1). Nothing is checked."""
        return self._step(states, actions, noise)

    def start(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw ``n`` states at which episodes start, (n, state_size); a longer draw begins with the shorter one."""
        count, rng = parameters.integer("n", n, low=0), parameters.generator("rng", rng)
        return self._start(rng.random((count, self.start_noise_size)))

    def simulate(
        self, start: FloatArray, policy: Policy, noise: FloatArray, uniforms: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Follow a policy from one state for as many steps as there is noise, whether an episode ends or not.

        Single steps; a domain that can do the same faster overrides it.

        Parameters
        ----------
        start : (state_size,)
        policy : Policy
        noise : (T, noise_size), uniform on [0, 1)
        uniforms : (T,), uniform on [0, 1)
            For random policies.

        Returns
        -------
        states : (T + 1, state_size), actions : (T,), rewards : (T,)
        """
        n_steps = len(noise)
        states, actions, rewards = np.empty((n_steps + 1, self.state_size)), np.empty(n_steps), np.empty(n_steps)
        states[:1] = self.check_states([start])
        for t in range(n_steps):
            here, now = states[t : t + 1], slice(t, t + 1)
            actions[now] = self.check_actions(policy.act(here, uniforms[now]), 1)
            states[t + 1 : t + 2], rewards[now], _ = self._step(here, actions[now], noise[now])
        return states, actions, rewards

    def observe(self, states: FloatArray) -> FloatArray:
        """What features see of states: (N, state_size) to (N, len(low))."""
        return states[:, : self.low.size]

    def draw(self, state: FloatArray) -> Picture:
        """Draw one state (state_size,)."""
        raise InvalidInputError(f"{self.name} has no picture: give it a method draw(state)")

    @abstractmethod
    def _step(self, states: FloatArray, actions: FloatArray, noise: FloatArray) -> Step:
        """:meth:`step`, unchecked; ``noise`` (N, noise_size) is uniform on [0, 1)."""

    @abstractmethod
    def _start(self, noise: FloatArray) -> FloatArray:
        """:meth:`start` from uniform numbers (N, start_noise_size)."""

    # --- checks -----------------------------------------------------------------------------------------------------

    def check_states(self, states: ArrayLike) -> FloatArray:
        """States as a finite array (N, state_size), or an error."""
        array = as_real(states, "states")
        if array.ndim != 2 or array.shape[1] != self.state_size:
            names = ", ".join(self.state_names)
            raise InvalidInputError(f"states have shape {array.shape}: pass (N, {self.state_size}), {names}")
        if not np.isfinite(array).all():
            raise InvalidInputError(f"states contain {array[~np.isfinite(array)][0]}: pass finite numbers")
        return array

    def check_actions(self, actions: ArrayLike, n: int) -> FloatArray:
        """Actions as an array (n,) of known or possible ones, or an error."""
        array = as_real(actions, "actions")
        if array.shape != (n,):
            raise InvalidInputError(f"actions have shape {array.shape}: pass one for each of {n} states")
        low, high = self.action_bounds
        good = (array >= low) & (array <= high) if self.actions is None else np.isin(array, self.actions)
        if not good.all():
            known = f"lie in [{low:g}, {high:g}]" if self.actions is None else f"are {self.actions.tolist()}"
            raise InvalidInputError(f"actions contain {array[~good][0]}: they {known}")
        return array
