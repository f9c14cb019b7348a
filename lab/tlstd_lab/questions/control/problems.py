"""The control problems of the tasks: domain, features, log of a random policy, and what success is."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tlstd.control import GreedyPolicy
from tlstd.core.arrays import FloatArray
from tlstd.data.transitions import Transitions
from tlstd.domains.base import Domain
from tlstd.domains.mountain_car import MountainCar
from tlstd.domains.pendulum import Pendulum
from tlstd.domains.policies import EpsilonGreedy
from tlstd.features import RBF, Columns, Concatenate, FeatureMap, Fourier, StateAction
from tlstd.streams import record
from tlstd_lab.questions.control.domains import CartPole, InvertedPendulum


class Mapped:
    """A feature map that sees a function of the states."""

    def __init__(self, seen: Callable[[FloatArray], FloatArray], features: FeatureMap) -> None:
        self.seen, self.features, self.n_features = seen, features, features.n_features

    def encode(self, state: ArrayLike) -> Any:
        """Features of one state."""
        return self.features.encode(self.seen(np.asarray(state, dtype=np.float64)[None])[0])

    def encode_many(self, states: ArrayLike) -> Any:
        """Features of states (N, D)."""
        return self.features.encode_many(self.seen(np.asarray(states, dtype=np.float64)))


class Powers:
    """1, u, …, u^degree of a numbered state, u from −1 to 1: the polynomials of LSPI's chains, on a scale of their own.

    Example
    -------
    >>> Powers(3, 2).encode_many([[0], [1], [2]])
    array([[ 1., -1.,  1.],
           [ 1.,  0.,  0.],
           [ 1.,  1.,  1.]])
    """

    def __init__(self, n_states: int, degree: int) -> None:
        self.n_states, self.n_features = n_states, degree + 1

    def encode(self, state: ArrayLike) -> FloatArray:
        """Features of one state."""
        x: FloatArray = self.encode_many([state])[0]
        return x

    def encode_many(self, states: Any) -> FloatArray:
        """Features of states (N, 1)."""
        u = 2.0 * np.asarray(states, dtype=np.float64)[:, 0] / (self.n_states - 1) - 1.0
        powers: FloatArray = np.vander(u, self.n_features, increasing=True)
        return powers


def bumps(n_states: int, count: int, sigma: float) -> FeatureMap:
    """A constant and Gaussians exp(−(s − μ)²/(2σ²)), μ spread evenly over numbered states from 1 to n."""
    width = math.sqrt(2.0) * sigma / (n_states - 1)
    rbf = RBF([0.0], [n_states - 1.0], grid=count, width=width)
    return Concatenate([Mapped(lambda states: np.ones((len(states), 1)), Columns(1, bias=False)), rbf])


def pole_features() -> FeatureMap:
    """A constant and nine Gaussians with σ = 1 at {−π/4, 0, π/4} × {−1, 0, 1}, as in LSPI's publication."""
    corner = np.array([np.pi / 4, 1.0])

    class _Pole:
        n_features = 10
        centres = np.array([[a, b] for a in (-corner[0], 0.0, corner[0]) for b in (-1.0, 0.0, 1.0)])

        def encode(self, state: ArrayLike) -> FloatArray:
            x: FloatArray = self.encode_many([state])[0]
            return x

        def encode_many(self, states: Any) -> FloatArray:
            far = np.asarray(states, dtype=np.float64)[:, None, :] - self.centres
            near: FloatArray = np.exp(-(far**2).sum(axis=2) / 2.0)
            return np.hstack([np.ones((len(far), 1)), near])

    return _Pole()


class Trial(NamedTuple):
    """How a policy does, one entry for each start."""

    success: FloatArray
    """1 or 0."""
    steps: FloatArray
    """Until the end, or as many as were allowed."""


@dataclass(frozen=True)
class Problem:
    """A problem of control from a log of random actions."""

    domain: Domain
    features: FeatureMap
    gamma: float
    actions: FloatArray
    episode_cap: int | None
    """Of the log's episodes."""
    trial_steps: int
    goal: str
    """What success is: "reach" (terminate in time), "last" (not terminate) or "hold" (upright in the last second)."""
    fixed_start: FloatArray
    """A start of its own interest: the valley, hanging at rest."""

    @property
    def state_action(self) -> StateAction:
        """Features of states and actions."""
        return StateAction(self.features, len(self.actions))

    def log(self, n_steps: int, seed: int) -> Transitions:
        """Steps of a policy that takes all actions alike."""
        first = self.actions[0]
        acting = EpsilonGreedy(lambda states: np.full(len(states), first), self.actions, 1.0)
        return record(
            self.domain,
            acting,
            self.features,
            n_steps=n_steps,
            seed=seed,
            gamma=self.gamma,
            episode_cap=self.episode_cap,
        )

    def trial(self, policy: GreedyPolicy, starts: FloatArray, rng: np.random.Generator) -> Trial:
        """Follow a policy from each of the starts."""
        n, acting, states = len(starts), policy.on(self.domain), starts
        running, steps, held = np.arange(n), np.full(n, float(self.trial_steps)), np.zeros(n)
        ended = np.zeros(n, dtype=np.bool_)
        for t in range(self.trial_steps):
            uniforms = rng.random(len(states))
            step = self.domain.step(states, acting.act(states, uniforms), rng)
            states = step.states
            if self.goal == "hold":
                up = np.abs(np.abs(states[:, 0]) - np.pi) < np.pi / 8
                held[running] = np.where(up, held[running] + 1.0, 0.0)
            if step.terminated.any():
                steps[running[step.terminated]], ended[running[step.terminated]] = t + 1, True
                running, states = running[~step.terminated], states[~step.terminated]
                if not running.size:
                    break
        success = {"reach": ended, "last": ~ended, "hold": held >= 20.0}[self.goal]
        return Trial(success.astype(np.float64), steps)


def _from_upright(states: FloatArray) -> FloatArray:
    """Angle and velocity of Pendulum with the angle 0 upright."""
    return np.column_stack([np.mod(states[:, 0], 2.0 * np.pi) - np.pi, states[:, 1]])


def _car() -> Problem:
    car = MountainCar()
    rbf = RBF(car.low, car.high, grid=8, width=0.2)
    assert car.actions is not None
    return Problem(car, rbf, 0.99, car.actions, 50, 300, "reach", np.array([[-0.5, 0.0]]))


def _swing_up() -> Problem:
    pendulum = Pendulum(hold_time=math.inf, max_torque=5.0)
    rbf = RBF([-np.pi, -8.0], [np.pi, 8.0], grid=[11, 9], width=0.12)
    actions = np.array([-5.0, 0.0, 5.0])
    return Problem(pendulum, Mapped(_from_upright, rbf), 0.98, actions, 40, 400, "hold", np.zeros((1, 3)))


def _cart_pole() -> Problem:
    cart = CartPole()
    assert cart.actions is not None
    high = np.array([2.4, 2.5, 0.21, 3.0])
    return Problem(cart, Fourier(-high, high, order=2), 0.99, cart.actions, None, 500, "last", np.zeros((1, 4)))


def _pole() -> Problem:
    pole = InvertedPendulum()
    assert pole.actions is not None
    return Problem(pole, pole_features(), pole.gamma, pole.actions, None, 3000, "last", np.zeros((1, 2)))


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "Mountain Car": _car,
    "Pendulum": _swing_up,
    "CartPole": _cart_pole,
    "inverted pendulum": _pole,
}
"""By name; never change what a name that has been run stands for."""
