"""Problems of control that the library does not have: the chains and the pendulum of LSPI's publication, and CartPole.

M. G. Lagoudakis, R. Parr, "Least-squares policy iteration", Journal of Machine Learning Research 4, 2003 [L].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.domains.base import Domain, Step
from tlstd.domains.policies import Deterministic
from tlstd.logs.log import Log


@dataclass(frozen=True)
class Chain:
    """A row of states with the actions left and right, which fail one time in ten (section 9.1 of [L]).

    An action that fails goes the other way; a step beyond an end stays there. The reward is that of the state in which
    one acts.

    Example
    -------
    >>> Chain(4, (1, 2)).best()
    array([1, 1, 0, 0])
    """

    n_states: int
    rewarded: tuple[int, ...]
    """States, from 0, with a reward of 1."""
    gamma: float = 0.9
    fails: float = 0.1

    @property
    def P(self) -> FloatArray:
        """(2, n, n): probabilities of the next state, for left and for right."""
        here = np.arange(self.n_states)
        left, right = np.maximum(here - 1, 0), np.minimum(here + 1, self.n_states - 1)
        P = np.zeros((2, self.n_states, self.n_states))
        for action, (meant, other) in enumerate(((left, right), (right, left))):
            np.add.at(P[action], (here, meant), 1.0 - self.fails)
            np.add.at(P[action], (here, other), self.fails)
        return P

    @property
    def rewards(self) -> FloatArray:
        """(n,)"""
        return np.isin(np.arange(self.n_states), self.rewarded).astype(np.float64)

    def values(self, policy: IntArray) -> FloatArray:
        """The true values (n,) of a policy: (I − γP_π)⁻¹ r."""
        P = self.P[policy, np.arange(self.n_states)]
        values: FloatArray = np.linalg.solve(np.eye(self.n_states) - self.gamma * P, self.rewards).astype(np.float64)
        return values

    def best(self) -> IntArray:
        """The optimal policy (n,), by policy iteration with the true model; left where both are as good."""
        policy = np.zeros(self.n_states, dtype=np.int64)
        while True:
            Q = self.P @ self.values(policy)
            better = np.where(Q[1] > Q[0] + 1e-12, 1, 0)
            if (better == policy).all():
                return policy
            policy = better

    def walk(self, n_steps: int, rng: np.random.Generator) -> Log:
        """One random walk: both actions with the same probability, the start anywhere."""
        actions = rng.integers(0, 2, n_steps)
        towards = np.where(rng.random(n_steps) < self.fails, 1 - actions, actions) * 2 - 1
        places = np.empty(n_steps + 1, dtype=np.int64)
        places[0] = rng.integers(self.n_states)
        for t in range(n_steps):
            places[t + 1] = min(max(places[t] + towards[t], 0), self.n_states - 1)
        return Log.from_arrays(
            places[:-1],
            self.rewards[places[:-1]],
            actions=actions,
            next_observations=places[1:],
            truncated=np.arange(n_steps) == n_steps - 1,
            n_observations=self.n_states,
            discrete=True,
        )


class InvertedPendulum(Domain):
    """Balance a pole on a cart of unlimited track (section 9.2 of [L]).

    θ̈ = (g sin θ − α m l θ̇² sin(2θ)/2 − α cos θ u) / (4l/3 − α m l cos² θ) with α = 1/(m + M), m = 2, M = 8, l = 0.5;
    u is −50, 0 or 50 with noise uniform on ±10, for 0.1 s. An angle beyond ±π/2 ends the episode with the reward −1,
    all others are 0. The publication does not say how it integrates, nor how far from the equilibrium episodes start:
    here by Runge and Kutta's method (with Euler's, LSPI balanced for 26 and 70 steps in two runs), and uniform on ±0.1
    in both numbers [OC]. Random episodes take 9 steps then, where the publication has about 6.

    Example
    -------
    >>> pole = InvertedPendulum()
    >>> pole.step([[0.0, 0.0], [1.5, 1.0]], [50.0, 0.0], np.random.default_rng(0)).terminated
    array([False,  True])
    """

    name = "InvertedPendulum"
    state_names = ("angle", "velocity")
    gamma = 0.95
    noise_size = 1
    start_noise_size = 2
    episode_cap = 3000

    def __init__(self) -> None:
        self.low, self.high = np.array([-np.pi / 2, -5.0]), np.array([np.pi / 2, 5.0])
        self.actions, self.action_bounds, self.reward_bound = np.array([-50.0, 0.0, 50.0]), (-50.0, 50.0), 1.0

    def policy(self) -> Deterministic:
        """Push the cart under the pole."""
        return Deterministic(lambda states: np.where(states[:, 0] + 0.3 * states[:, 1] > 0.0, 50.0, -50.0))

    def _step(self, states: FloatArray, actions: FloatArray, noise: FloatArray) -> Step:
        u = actions + 20.0 * noise[:, 0] - 10.0
        after = states
        for _ in range(2):  # Runge and Kutta's steps of 0.05 s
            k1 = _falling(after, u)
            k2 = _falling(after + 0.025 * k1, u)
            k3 = _falling(after + 0.025 * k2, u)
            k4 = _falling(after + 0.05 * k3, u)
            after = after + 0.05 / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        fallen = np.abs(after[:, 0]) > np.pi / 2
        return Step(after, -fallen.astype(np.float64), fallen)

    def _start(self, noise: FloatArray) -> FloatArray:
        return 0.2 * noise - 0.1


def _falling(states: FloatArray, u: FloatArray) -> FloatArray:
    """The derivatives of angle and velocity."""
    angle, speed = states.T
    g, m, length, alpha = 9.8, 2.0, 0.5, 0.1
    top = g * np.sin(angle) - alpha * m * length * speed**2 * np.sin(2.0 * angle) / 2.0 - alpha * np.cos(angle) * u
    return np.column_stack([speed, top / (4.0 * length / 3.0 - alpha * m * length * np.cos(angle) ** 2)])


class CartPole(Domain):
    """Gymnasium's CartPole-v1, many at a time: balance a pole on a cart for 500 steps, a reward of 1 for each.

    Example
    -------
    >>> CartPole().step([[0.0, 0.0, 0.0, 0.0], [2.39, 1.0, 0.0, 0.0]], [1.0, 0.0]).terminated
    array([False,  True])
    """

    name = "CartPole"
    state_names = ("position", "velocity", "angle", "angular velocity")
    gamma = 0.99
    start_noise_size = 4
    episode_cap = 500

    def __init__(self) -> None:
        self.low, self.high = np.array([-2.4, -3.0, -0.21, -3.5]), np.array([2.4, 3.0, 0.21, 3.5])
        self.actions, self.action_bounds, self.reward_bound = np.array([0.0, 1.0]), (0.0, 1.0), 1.0

    def policy(self) -> Deterministic:
        """Push to the side to which the pole falls."""
        return Deterministic(lambda states: np.where(states[:, 2] + 0.2 * states[:, 3] > 0.0, 1.0, 0.0))

    def _step(self, states: FloatArray, actions: FloatArray, noise: FloatArray) -> Step:
        x, x_dot, theta, theta_dot = states.T
        force = np.where(actions == 1.0, 10.0, -10.0)
        cos, sin = np.cos(theta), np.sin(theta)
        temp = (force + 0.05 * theta_dot**2 * sin) / 1.1
        theta_acc = (9.8 * sin - cos * temp) / (0.5 * (4.0 / 3.0 - 0.1 * cos**2 / 1.1))
        x_acc = temp - 0.05 * theta_acc * cos / 1.1
        after = np.column_stack(
            [x + 0.02 * x_dot, x_dot + 0.02 * x_acc, theta + 0.02 * theta_dot, theta_dot + 0.02 * theta_acc]
        )
        limit = 12.0 * 2.0 * np.pi / 360.0
        fallen = (np.abs(after[:, 0]) > 2.4) | (np.abs(after[:, 2]) > limit)
        return Step(after, np.ones(len(states)), fallen)

    def _start(self, noise: FloatArray) -> FloatArray:
        return 0.1 * noise - 0.05
