"""Logs whose answers are known: a Garnet, a lake, a pole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from numpy.typing import NDArray

from tlstd import Log
from tlstd.core.arrays import FloatArray, IntArray


class Decisions(NamedTuple):
    """A finite decision process: P (n, n_actions, n), the rest of a row terminates, and rewards (n, n_actions)."""

    P: FloatArray
    rewards: FloatArray

    def action_values(self, policy: FloatArray, gamma: float) -> FloatArray:
        """Q (n, n_actions) = r + γ P V, V = (I - γ P_π)⁻¹ r_π."""
        P_pi, r_pi = np.einsum("sa,sat->st", policy, self.P), (policy * self.rewards).sum(axis=1)
        values = np.linalg.solve(np.eye(len(P_pi)) - gamma * P_pi, r_pi)
        Q: FloatArray = self.rewards + gamma * self.P @ values
        return Q


def random_decisions(rng: np.random.Generator, n: int, n_actions: int, branching: int, termination: float) -> Decisions:
    """A Garnet: every action leads to ``branching`` states."""
    P = np.zeros((n, n_actions, n))
    for s in range(n):
        for a in range(n_actions):
            P[s, a, rng.permutation(n)[:branching]] = (1.0 - termination) * rng.dirichlet(np.ones(branching))
    return Decisions(P, rng.standard_normal((n, n_actions)))


def simulated(
    process: Decisions,
    behaviour: FloatArray,
    rng: np.random.Generator,
    n_steps: int,
    limit: int,
    *,
    known: bool = False,
) -> Log:
    """A log of numbers of states, episodes from random states; ``known``: with probabilities of the actions."""
    n = len(process.rewards)
    choices, leads = cumulated(behaviour), cumulated(np.dstack([process.P, 1.0 - process.P.sum(axis=2)]))
    rows: list[tuple[int, int, int, float, bool, bool, int, float]] = []
    episode = 0
    while len(rows) < n_steps:
        state = int(rng.integers(n))
        for t in range(limit):
            action = int(choices[state].searchsorted(rng.random(), side="right"))
            after = int(leads[state, action].searchsorted(rng.random(), side="right"))
            ended = after == n
            following = state if ended else after
            reward, chance = float(process.rewards[state, action]), float(behaviour[state, action])
            rows.append((episode, state, action, reward, ended, t == limit - 1 and not ended, following, chance))
            state = following
            if ended:
                break
        episode += 1
    return as_log(rows, known=known)


def cumulated(chances: FloatArray) -> FloatArray:
    """Sums of probabilities, in which a uniform number finds its place."""
    sums = np.maximum(chances, 0.0).cumsum(axis=-1)
    found: FloatArray = sums / sums[..., -1:]
    return found


def as_log(rows: list[Any], *, known: bool = False) -> Log:
    """The log of (episode, state, action, reward, terminated, truncated, next state, probability)."""
    episodes, states, actions, rewards, terminated, truncated, following, chances = map(
        np.array, zip(*rows, strict=True)
    )
    return Log.from_arrays(
        states,
        rewards,
        actions=actions,
        terminated=terminated,
        truncated=truncated,
        episodes=episodes,
        next_observations=following,
        probabilities=chances if known else None,
        discrete=states.ndim == 1,
    )


Pole = Callable[[NDArray[Any]], FloatArray]


def pole_policy(epsilon: float) -> Pole:
    """CartPole: towards where the pole falls, but for a random action with probability ε."""

    def probabilities(seen: NDArray[Any]) -> FloatArray:
        towards = (seen[:, 2] + 0.5 * seen[:, 3] > 0.0).astype(int)
        chances: FloatArray = epsilon / 2 + (1.0 - epsilon) * np.eye(2)[towards]
        return chances

    return probabilities


def pole_log(epsilon: float, n_episodes: int, *, known: bool, limit: int = 500, seed: int = 0) -> Log:
    """Episodes of CartPole under :func:`pole_policy`."""
    return play("CartPole-v1", pole_policy(epsilon), n_episodes, known=known, limit=limit, seed=seed)


def play(name: str, policy: Pole, n_episodes: int, *, known: bool, limit: int, seed: int, **options: Any) -> Log:
    """Episodes of a Gymnasium environment of discrete actions."""
    env, rng, rows = gymnasium.make(name, max_episode_steps=limit, **options), np.random.default_rng(seed), []
    for episode in range(n_episodes):
        observation, _ = env.reset(seed=seed * 100_003 + episode)
        ended = cut = False
        while not (ended or cut):
            chances = policy(np.asarray(observation)[None])[0]
            action = int(rng.choice(len(chances), p=chances))
            before = observation
            observation, reward, ended, cut, _ = env.step(action)
            rows.append((episode, before, action, float(reward), ended, cut, observation, chances[action]))
    return as_log([(e, _number(s), a, r, te, tr, _number(f), c) for e, s, a, r, te, tr, f, c in rows], known=known)


def _number(observation: Any) -> Any:
    return observation if np.ndim(observation) else int(observation)


def mean_return(log: Log, gamma: float) -> tuple[float, float]:
    """Mean discounted return of the episodes, and its standard error."""
    returns = []
    for a, b in zip(log.episodes[:-1], log.episodes[1:], strict=True):
        returns.append(float((log.rewards[a:b] * gamma ** np.arange(b - a)).sum()))
    return float(np.mean(returns)), float(np.std(returns) / np.sqrt(len(returns)))


def lake(is_slippery: bool = True) -> tuple[Decisions, IntArray]:
    """FrozenLake's process (terminal states lead nowhere), and its start states."""
    table = gymnasium.make("FrozenLake-v1", is_slippery=is_slippery).unwrapped.P  # type: ignore[attr-defined]
    P, rewards = np.zeros((16, 4, 16)), np.zeros((16, 4))
    for s, actions in table.items():
        for a, outcomes in actions.items():
            for chance, after, reward, ended in outcomes:
                rewards[s, a] += chance * reward
                if not ended:
                    P[s, a, after] += chance
    return Decisions(P, rewards), np.array([0])
