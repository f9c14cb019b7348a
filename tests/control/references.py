"""Policy iteration in other words: dense, state by state and sample by sample."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlstd import Log

Array = NDArray[Any]


class Table(NamedTuple):
    """Steps of a finite problem, each an episode of its own."""

    s: Array
    a: Array
    r: Array
    s_next: Array
    ended: Array

    def log(self, n_states: int) -> Log:
        """The same as a log."""
        return Log.from_arrays(
            self.s,
            self.r,
            actions=self.a,
            next_observations=self.s_next,
            terminated=self.ended,
            truncated=~self.ended,
            n_observations=n_states,
        )


def random_table(rng: np.random.Generator, n_states: int, n_actions: int, n: int) -> Table:
    """Random steps of a random problem, in which one step in twelve ends."""
    P = rng.dirichlet(np.full(n_states, 0.3), (n_states, n_actions))
    R = rng.normal(size=(n_states, n_actions))
    s, a = rng.integers(n_states, size=n), rng.integers(n_actions, size=n)
    s_next = np.array([rng.choice(n_states, p=P[i, j]) for i, j in zip(s, a, strict=True)])
    return Table(s, a, R[s, a] + rng.normal(size=n), s_next, rng.random(n) < 1 / 12)


def exact_iteration(
    table: Table, n_states: int, n_actions: int, gamma: float, policy: Array, iterations: int
) -> list[Array]:
    """Action values (n_states, n_actions) of each policy in turn, by the empirical model; 0 for pairs never seen."""
    count = np.zeros((n_states, n_actions))
    P, R = np.zeros((n_states, n_actions, n_states)), np.zeros((n_states, n_actions))
    for s, a, r, s_next, ended in zip(*table, strict=True):
        count[s, a] += 1
        R[s, a] += r
        P[s, a, s_next] += not ended
    seen = count > 0
    R[seen] /= count[seen]
    P[seen] /= count[seen][:, None]
    found = []
    for _ in range(iterations):
        follow = np.zeros((n_states * n_actions,) * 2)
        for s in range(n_states):
            for a in range(n_actions):
                for s_next in range(n_states):
                    follow[s * n_actions + a, s_next * n_actions + policy[s_next]] += P[s, a, s_next]
        Q = np.linalg.solve(np.eye(n_states * n_actions) - gamma * follow, R.ravel()).reshape(n_states, n_actions)
        found.append(Q)
        policy = Q.argmax(axis=1)
    return found


def literal_lspi(
    X: Array, a: Array, r: Array, X_next: Array, ended: Array, n_actions: int, gamma: float, w: Array, iterations: int
) -> list[Array]:
    """LSTDQ sample by sample, and the greedy policy: figures 5 and 8 of Lagoudakis and Parr (2003)."""
    d = X.shape[1]

    def phi(x: Array, action: int) -> Array:
        block = np.zeros(n_actions * d)
        block[action * d : (action + 1) * d] = x
        return block

    found = []
    for _ in range(iterations):
        A, b = np.zeros((n_actions * d, n_actions * d)), np.zeros(n_actions * d)
        for x, action, reward, x_next, end in zip(X, a, r, X_next, ended, strict=True):
            best = int(np.argmax([phi(x_next, other) @ w for other in range(n_actions)]))
            here = phi(x, action)
            there = np.zeros(n_actions * d) if end else phi(x_next, best)
            A += np.outer(here, here - gamma * there)
            b += here * reward
        w = np.linalg.lstsq(A, b, rcond=1e-12)[0]
        found.append(w)
    return found
