"""Processes that make logs, many episodes at once, and their true values in closed form or by a dense solve."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from tlstd import Log
from tlstd.core.arrays import FloatArray

LONGEST = 400
"""Steps after which an episode is cut off in any case."""

Policy: TypeAlias = Callable[[Any, np.random.Generator], tuple[Any, FloatArray]]
"""From states to actions, and to the probabilities or densities of these actions."""


class World(Protocol):
    """Where episodes begin, and what a step does."""

    def start(self, n: int, rng: np.random.Generator) -> Any: ...

    def move(self, states: Any, actions: Any, rng: np.random.Generator) -> tuple[Any, FloatArray, Any]:
        """The next states, the rewards, and whether the episodes end."""
        ...


class Steps(NamedTuple):
    """The rows of a log, by episode and time."""

    episodes: Any
    states: Any
    actions: Any
    rewards: FloatArray
    ended: Any
    cut: Any
    following: Any
    chances: FloatArray

    def log(self, seen: Callable[[Any], Any] | None = None, known: bool = False, **options: Any) -> Log:
        """The log of these steps; ``seen`` gives observations of states, ``known`` logs the probabilities."""
        see = seen or (lambda states: states)
        return Log.from_arrays(
            see(self.states), self.rewards, terminated=self.ended, truncated=self.cut, episodes=self.episodes,
            next_observations=see(self.following), probabilities=self.chances if known else None, **options,
        )  # fmt: skip


def rolled(world: World, policy: Policy, n: int, rng: np.random.Generator, limit: Any = LONGEST) -> Steps:
    """So many episodes, cut off after ``limit`` steps: one number, or one per episode."""
    states, names, limits = world.start(n, rng), np.arange(n), np.broadcast_to(limit, n)
    parts: list[tuple[Any, ...]] = []
    while names.size:
        actions, chances = policy(states, rng)
        after, rewards, ended = world.move(states, actions, rng)
        cut = ~ended & (limits[names] <= len(parts) + 1)
        parts.append((names, states, actions, rewards, ended, cut, after, chances))
        going = ~(ended | cut)
        states, names = after[going], names[going]
    columns = [np.concatenate(each) for each in zip(*parts, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    return Steps(*(column[order] for column in columns))


# --- numbered states ------------------------------------------------------------------------------------------------


class Finite:
    """A finite decision process; episodes begin in all of its states alike, if ``first`` is not given."""

    def __init__(
        self, P: FloatArray, rewards: FloatArray, noise: Callable[..., FloatArray] | None = None, first: Any = None
    ) -> None:
        self.P = P
        """(n, n_actions, n): the rest of a row ends the episode."""
        self.rewards = rewards
        """(n, n_actions): means."""
        self.noise = noise
        """From a generator and means to rewards."""
        self.first = np.full(len(P), 1.0 / len(P)) if first is None else first
        self._leads = P.cumsum(axis=2)

    def start(self, n: int, rng: np.random.Generator) -> Any:
        return rng.choice(len(self.P), size=n, p=self.first)

    def move(self, states: Any, actions: Any, rng: np.random.Generator) -> tuple[Any, FloatArray, Any]:
        after = (self._leads[states, actions] <= rng.random((len(states), 1))).sum(axis=1)
        ended = after == len(self.P)
        return np.where(ended, states, after), self.paid(states, actions, ended, rng), ended

    def paid(self, states: Any, actions: Any, ended: Any, rng: np.random.Generator) -> FloatArray:
        """The rewards of a step."""
        means: FloatArray = self.rewards[states, actions]
        return means if self.noise is None else self.noise(rng, means)

    def values(self, policy: FloatArray, gamma: float) -> FloatArray:
        """Of all states, by a dense solve."""
        mean = (policy * self.rewards).sum(axis=1)
        found: FloatArray = np.linalg.solve(np.eye(len(self.P)) - gamma * self.chain(policy), mean)
        return found

    def value(self, policy: FloatArray, gamma: float) -> float:
        """Of the first states."""
        return float(self.first @ self.values(policy, gamma))

    def chain(self, policy: FloatArray) -> FloatArray:
        """The probabilities of the next state."""
        found: FloatArray = np.einsum("sa,sat->st", policy, self.P)
        return found

    def visited(self, policy: FloatArray) -> FloatArray:
        """The share of each state among all states of whole episodes."""
        counts: FloatArray = np.linalg.solve(np.eye(len(self.P)) - self.chain(policy).T, self.first)
        share: FloatArray = counts / counts.sum()
        return share

    def stationary(self, policy: FloatArray) -> FloatArray:
        """The share of each state in a stream that never ends."""
        matrix = np.vstack([self.chain(policy).T - np.eye(len(self.P)), np.ones(len(self.P))])
        found: FloatArray = np.linalg.pinv(matrix)[:, -1].clip(min=0.0)
        share: FloatArray = found / found.sum()
        return share


class Outcomes(Finite):
    """The reward is 1 or 0 and comes with the end of the episode; ``success``: the probability of 1, at an end."""

    def __init__(self, P: FloatArray, success: FloatArray) -> None:
        super().__init__(P, success * (1.0 - P.sum(axis=2)))
        self.success = success

    def paid(self, states: Any, actions: Any, ended: Any, rng: np.random.Generator) -> FloatArray:
        found: FloatArray = (ended & (rng.random(len(states)) < self.success[states, actions])).astype(np.float64)
        return found


def of_table(chances: FloatArray) -> Policy:
    """The policy with these probabilities (n, n_actions) of actions in numbered states."""
    upto = chances.cumsum(axis=1)[:, :-1]

    def act(states: Any, rng: np.random.Generator) -> tuple[Any, FloatArray]:
        actions = (upto[states] <= rng.random((len(states), 1))).sum(axis=1)
        return actions, chances[states, actions]

    return act


def heavy(rng: np.random.Generator, means: FloatArray) -> FloatArray:
    """Log-normal rewards; their standard deviation is 1.8 times their mean."""
    rewards: FloatArray = means * rng.lognormal(-0.72, 1.2, len(means))
    return rewards


def rare_losses(rng: np.random.Generator, means: FloatArray) -> FloatArray:
    """A reward of 1, or rarely a loss of 24, so often that the means are these."""
    lost = rng.random(len(means)) < (1.0 - means) / 25.0
    return np.where(lost, -24.0, 1.0)


def random_process(
    seed: int, n: int, noise: Any = None, ends: float = 0.1, n_actions: int = 2, positive: bool = False
) -> Finite:
    """Every action leads to three states."""
    rng = np.random.default_rng(seed)
    P = np.zeros((n, n_actions, n))
    for s in range(n):
        for a in range(n_actions):
            P[s, a, rng.permutation(n)[:3]] = (1.0 - ends) * rng.dirichlet(np.ones(3))
    rewards = rng.standard_normal((n, n_actions))
    return Finite(P, np.abs(rewards) if positive else rewards, noise)


def losses() -> Finite:
    """Steps pay 1; in some states 0.4%, in others 4% of them lose 24."""
    process = random_process(7, 12)
    share = np.linspace(0.004, 0.04, 12)[:, None] * np.array([0.6, 1.4])
    return Finite(process.P, 1.0 - 25.0 * share, rare_losses)


def pixels() -> Finite:
    """A walk on 8 × 8 places; one corner pays and ends."""
    P, rewards = np.zeros((64, 1, 64)), np.zeros((64, 1))
    for s in range(64):
        x, y = divmod(s, 8)
        for u, v in ((x - 1, y), (x + 1, y), (x, y - 1), (x, y + 1)):
            P[s, 0, 8 * min(max(u, 0), 7) + min(max(v, 0), 7)] += 0.95 / 4
    P[63], rewards[63] = 0.0, 1.0
    return Finite(P, rewards)


STOCK, SEASONS, CONDITIONS = 8, 3, 4


def inventory() -> Finite:
    """A shop with a stock of 0 to 7, three seasons of demand, and a cold store in four conditions."""
    n = STOCK * SEASONS * CONDITIONS
    P, rewards = np.zeros((n, 1, n)), np.zeros((n, 1))
    for stock in range(STOCK):
        for season in range(SEASONS):
            for condition in range(CONDITIONS):
                s = (stock * SEASONS + season) * CONDITIONS + condition
                wanted = np.array([[0.6, 0.3, 0.1, 0.0], [0.3, 0.3, 0.3, 0.1], [0.1, 0.2, 0.3, 0.4]])[season]
                spoiled = 0.1 * condition
                for demand, chance in enumerate(wanted):
                    sold = min(stock, demand)
                    left = stock - sold if stock - sold > 2 else STOCK - 1  # ordered up to the full stock
                    ordered = 0.0 if stock - sold > 2 else 2.0
                    rewards[s, 0] += chance * (3.0 * sold - 0.2 * stock - ordered - spoiled * stock)
                    for later, of_season in ((season, 0.8), ((season + 1) % SEASONS, 0.2)):
                        worn = 0 if condition == CONDITIONS - 1 else condition + 1
                        for state, of_condition in ((condition, 0.7), (worn, 0.3)):
                            t = (left * SEASONS + later) * CONDITIONS + state
                            P[s, 0, t] += 0.9 * chance * of_season * of_condition
    return Finite(P, rewards, lambda rng, means: means + rng.standard_normal(len(means)))


def in_columns(states: Any) -> FloatArray:
    """Stock, season and condition: three columns of whole numbers."""
    rest, condition = np.divmod(states, CONDITIONS)
    stock, season = np.divmod(rest, SEASONS)
    return np.column_stack([stock, season, condition]).astype(np.float64)


STAGES, LOYALTIES = 5, 3


def journeys() -> Finite:
    """Customers look, choose, fill a basket, pay, and may come back; what they pay has heavy tails."""
    n = STAGES * LOYALTIES
    P, rewards = np.zeros((n, 1, n)), np.zeros((n, 1))
    on, leave = (0.7, 0.6, 0.5, 0.7), (0.15, 0.1, 0.1, 0.1)
    for stage in range(STAGES):
        for loyalty in range(LOYALTIES):
            s = stage * LOYALTIES + loyalty
            if stage == STAGES - 1:  # paid: customers come back, often more loyal
                rewards[s] = 10.0 * (1 + loyalty)
                more = min(loyalty + 1, LOYALTIES - 1)
                back = 0.4 + 0.15 * loyalty
                P[s, 0, loyalty] += 0.5 * back
                P[s, 0, more] += 0.5 * back
                continue
            P[s, 0, s + LOYALTIES] = on[stage]
            P[s, 0, max(stage - 1, 0) * LOYALTIES + loyalty] += 1.0 - on[stage] - leave[stage]
    first = np.zeros(n)
    first[:LOYALTIES] = [0.6, 0.3, 0.1]
    return Finite(P, rewards, lambda rng, means: means * rng.lognormal(-0.32, 0.8, len(means)), first)


def clinic() -> tuple[Outcomes, FloatArray, FloatArray]:
    """A hundred states and 24 treatments; the logged policy, which has five treatments per state, and another one.

    The other policy follows the logged one half of the time, and else prefers the best two of four treatments.
    """
    rng, n, n_actions = np.random.default_rng(11), 100, 24
    severity = np.linspace(0.0, 1.0, n)
    P, success = np.zeros((n, n_actions, n)), np.zeros((n, n_actions))
    effect = rng.normal(0.0, 0.12, (n, n_actions))
    for s in range(n):
        for a in range(n_actions):
            near = np.clip(s + rng.integers(-15, 16, size=3) - int(60 * effect[s, a]), 0, n - 1)
            np.add.at(P[s, a], near, 0.82 * rng.dirichlet(np.ones(3)))
            success[s, a] = np.clip(0.95 - 0.8 * severity[s] + effect[s, a], 0.02, 0.98)
    logged, asked = np.zeros((n, n_actions)), np.zeros((n, n_actions))
    for s in range(n):
        usual = rng.permutation(n_actions)[:5]
        logged[s, usual] = rng.dirichlet(np.ones(5))
        best = usual[np.argsort(-effect[s, usual])[:2]]
        asked[s] = 0.5 * logged[s]
        asked[s, best] += 0.25
    return Outcomes(P, success), logged, asked


# --- columns of numbers ---------------------------------------------------------------------------------------------


class Gain(NamedTuple):
    """The policy u = −Kx + noise."""

    K: FloatArray
    noise: float = 0.0

    def act(self, states: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        actions = self(states) + self.noise * rng.standard_normal((len(states), len(self.K)))
        return actions, self.density(states, actions)

    def __call__(self, states: FloatArray) -> FloatArray:
        """The mean action, (M, A)."""
        found: FloatArray = -states @ self.K.T
        return found

    def density(self, states: FloatArray, actions: FloatArray) -> FloatArray:
        """(M,) of these actions; 1 without noise."""
        if not self.noise:
            return np.ones(len(states))
        z = (actions - self(states)) / self.noise
        found: FloatArray = np.exp(-0.5 * z**2).prod(axis=1) / (np.sqrt(2.0 * np.pi) * self.noise) ** z.shape[1]
        return found


class Linear:
    """x′ = Ax + Bu + noise, and the reward −(xᵀx + uᵀu/2)/D; episodes begin in N(0, I) and end at random."""

    def __init__(self, A: FloatArray, B: FloatArray, ends: float, noise: float) -> None:
        self.A, self.B, self.ends, self.noise = A, B, ends, noise

    def start(self, n: int, rng: np.random.Generator) -> FloatArray:
        return rng.standard_normal((n, len(self.A)))

    def move(self, x: FloatArray, u: FloatArray, rng: np.random.Generator) -> tuple[Any, FloatArray, Any]:
        after = x @ self.A.T + u @ self.B.T + self.noise * rng.standard_normal(x.shape)
        rewards = -((x**2).sum(axis=1) + 0.5 * (u**2).sum(axis=1)) / len(self.A)
        return after, rewards, rng.random(len(x)) < self.ends

    def value(self, policy: Gain, gamma: float, spread: FloatArray | None = None) -> float:
        """Of states of mean 0 with this covariance, by −(xᵀPx + c); those of the first states, if None."""
        D, kept = len(self.A), gamma * (1.0 - self.ends)
        A, W = self._closed(policy)
        cost = (np.eye(D) + 0.5 * policy.K.T @ policy.K) / D
        flat = np.linalg.solve(np.eye(D * D) - kept * np.kron(A.T, A.T), cost.ravel())
        P = flat.reshape(D, D)
        c = (0.5 * policy.noise**2 * len(policy.K) / D + kept * np.trace(P @ W)) / (1.0 - kept)
        return -float(np.trace(P @ (np.eye(D) if spread is None else spread)) + c)

    def visited(self, policy: Gain) -> FloatArray:
        """The covariance of all states of whole episodes."""
        A, W = self._closed(policy)
        D, kept = len(A), 1.0 - self.ends
        flat: Any = np.linalg.solve(np.eye(D * D) - kept * np.kron(A, A), (self.ends * np.eye(D) + kept * W).ravel())
        found: FloatArray = flat.reshape(D, D)
        return found

    def stationary(self, policy: Gain) -> FloatArray:
        """The covariance of the states of a stream that never ends."""
        A, W = self._closed(policy)
        D = len(A)
        flat: Any = np.linalg.solve(np.eye(D * D) - np.kron(A, A), W.ravel())
        found: FloatArray = flat.reshape(D, D)
        return found

    def _closed(self, policy: Gain) -> tuple[FloatArray, FloatArray]:
        """The dynamics under a policy, and the covariance of their noise."""
        W = self.noise**2 * np.eye(len(self.A)) + policy.noise**2 * self.B @ self.B.T
        return self.A - self.B @ policy.K, W


def turning(D: int, ends: float = 0.1, shrink: float = 0.9) -> Linear:
    """D columns that turn into each other and shrink; no actions."""
    rotation = np.linalg.qr(np.random.default_rng(0).standard_normal((D, D)))[0]
    return Linear(shrink * rotation, np.zeros((D, 1)), ends, 0.3)


def no_action(D: int) -> Gain:
    """The policy of a process without actions."""
    return Gain(np.zeros((1, D)))


class Steered:
    """Three columns; one of two actions pushes the first one up or down, and it should be near 0.

    The other columns move by themselves and add to the reward, on average nothing.
    """

    ends, kept, push, noise = 0.1, 0.8, 0.6, 0.4

    def start(self, n: int, rng: np.random.Generator) -> FloatArray:
        return rng.standard_normal((n, 3))

    def move(self, x: FloatArray, actions: Any, rng: np.random.Generator) -> tuple[Any, FloatArray, Any]:
        after = np.array([self.kept, 0.9, 0.9]) * x
        after[:, 0] += self.push * (2.0 * actions - 1.0)
        after += np.array([self.noise, 0.4, 0.4]) * rng.standard_normal(x.shape)
        rewards = -(x[:, 0] ** 2) + 0.3 * x[:, 1] + 0.2 * x[:, 2]
        return after, rewards, rng.random(len(x)) < self.ends

    def value(self, steering: float, gamma: float, n: int = 1201, width: float = 7.0) -> float:
        """Of the first states, by a dense solve on a grid of the first column.

        The trapezium rule is exact to rounding for kernels as smooth as these.
        """
        grid = np.linspace(-width, width, n)
        chances, h = steered(steering)(grid[:, None]), grid[1] - grid[0]
        P = np.zeros((n, n))
        for action in (0, 1):
            means = self.kept * grid + self.push * (2.0 * action - 1.0)
            kernel: FloatArray = (
                np.exp(-0.5 * ((grid - means[:, None]) / self.noise) ** 2) * h / (np.sqrt(2 * np.pi) * self.noise)
            )
            P += chances[:, [action]] * kernel
        values = np.linalg.solve(np.eye(n) - gamma * (1.0 - self.ends) * P, -(grid**2))
        return float(np.exp(-0.5 * grid**2) @ values * h / np.sqrt(2.0 * np.pi))


def steered(steering: float) -> Callable[[FloatArray], FloatArray]:
    """Probabilities (M, 2): the larger ``steering``, the more often back to 0."""

    def policy(x: FloatArray) -> FloatArray:
        up = 1.0 / (1.0 + np.exp(steering * x[:, 0]))
        return np.column_stack([1.0 - up, up])

    return policy


def acting(policy: Callable[[FloatArray], FloatArray]) -> Policy:
    """Draws actions by the probabilities of two actions."""

    def act(x: FloatArray, rng: np.random.Generator) -> tuple[Any, FloatArray]:
        chances = policy(x)
        actions = (rng.random(len(x)) < chances[:, 1]).astype(np.int64)
        return actions, chances[np.arange(len(x)), actions]

    return act


class Offers:
    """One step: five columns and two offers, each of which pays by all of the columns."""

    slopes = np.array([[0.3, -0.2, 0.0, 0.1, 0.0], [-0.1, 0.5, 0.3, 0.0, 0.2]])
    levels = np.array([1.0, 1.2])

    def start(self, n: int, rng: np.random.Generator) -> FloatArray:
        return rng.standard_normal((n, 5))

    def move(self, x: FloatArray, actions: Any, rng: np.random.Generator) -> tuple[Any, FloatArray, Any]:
        means = self.levels[actions] + (x * self.slopes[actions]).sum(axis=1)
        return x, means + rng.standard_normal(len(x)), np.ones(len(x), dtype=bool)

    def value(self, theta: FloatArray) -> float:
        """Of the policy that makes the second offer with probability 1/(1 + exp(−θᵀx)), by quadrature."""
        z, weights = np.polynomial.hermite_e.hermegauss(120)
        weights, size = weights / weights.sum(), float(np.linalg.norm(theta))
        chance = 1.0 / (1.0 + np.exp(-size * z))
        better, steeper = self.levels[1] - self.levels[0], (self.slopes[1] - self.slopes[0]) @ theta / size
        return float(self.levels[0] + weights @ (chance * (better + steeper * z)))


def offering(theta: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Probabilities (M, 2) of the policy with this θ."""

    def policy(x: FloatArray) -> FloatArray:
        second = 1.0 / (1.0 + np.exp(-x @ theta))
        return np.column_stack([1.0 - second, second])

    return policy


# --- streams --------------------------------------------------------------------------------------------------------


def stream_of_states(process: Finite, policy: FloatArray, n: int, rng: np.random.Generator) -> tuple[Any, FloatArray]:
    """n + 1 states and n rewards of one stream without end, from a state as the stream has them."""
    leads = process.chain(policy).cumsum(axis=1)[:, :-1].tolist()
    draws = rng.random(n).tolist()
    states = [int(rng.choice(len(leads), p=process.stationary(policy)))]
    for draw in draws:
        states.append(bisect_right(leads[states[-1]], draw))
    found = np.array(states)
    means = (policy * process.rewards).sum(axis=1)[found[:-1]]
    return found, means + rng.standard_normal(n)


def stream_of_columns(process: Linear, n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """n + 1 states and n rewards of one stream without end and without actions."""
    policy = no_action(len(process.A))
    states = np.empty((n + 1, len(process.A)))
    states[0] = rng.multivariate_normal(np.zeros(len(process.A)), process.stationary(policy))
    noise = process.noise * rng.standard_normal((n, len(process.A)))
    for t in range(n):
        states[t + 1] = process.A @ states[t] + noise[t]
    return states, -(states[:-1] ** 2).mean(axis=1)
