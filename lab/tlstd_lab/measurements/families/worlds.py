"""Processes of the measurement, many episodes at once, and the true values of all their states."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.interpolate import RectBivariateSpline
from scipy.linalg import solve_discrete_lyapunov
from scipy.special import ndtr
from scipy.stats import binom, poisson

from tlstd.core.arrays import FloatArray
from tlstd_lab.measurements.answers.processes import Finite, Outcomes, heavy

# --- columns of numbers, linear dynamics ----------------------------------------------------------------------------


def still(states: Any, rng: np.random.Generator) -> tuple[Any, FloatArray]:
    """The policy of a process without actions."""
    return np.zeros(len(states), dtype=np.int64), np.ones(len(states))


def rotation(D: int, seed: int) -> FloatArray:
    found: FloatArray = np.linalg.qr(np.random.default_rng(seed).standard_normal((D, D)))[0]
    return found


class Drift:
    """Columns with linear dynamics and Gaussian noise: x′ = Ax + noise; an episode ends with a fixed probability."""

    def __init__(self, A: FloatArray, noise: float, ends: float) -> None:
        self.A, self.noise, self.ends = A, noise, ends

    def start(self, n: int, rng: np.random.Generator) -> FloatArray:
        return rng.standard_normal((n, len(self.A)))

    def move(self, x: FloatArray, actions: Any, rng: np.random.Generator) -> tuple[Any, FloatArray, Any]:
        after = x @ self.A.T + self.noise * rng.standard_normal(x.shape)
        return after, self.reward(x), rng.random(len(x)) < self.ends

    def reward(self, x: FloatArray) -> FloatArray:
        raise NotImplementedError


class Quadratic(Drift):
    """The cost is xᵀQx, with Q full, so that products of columns matter."""

    def __init__(self, D: int, seed: int, noise: float = 0.3, ends: float = 0.1) -> None:
        super().__init__(0.9 * rotation(D, seed), noise, ends)
        factor = np.random.default_rng(seed + 1).standard_normal((D, D // 2))
        self.Q = factor @ factor.T / D

    def reward(self, x: FloatArray) -> FloatArray:
        found: FloatArray = -np.einsum("ni,ij,nj->n", x, self.Q, x)
        return found

    def values(self, x: FloatArray, gamma: float) -> FloatArray:
        """−(xᵀPx + c), with P = Q + γ′AᵀPA and c = γ′ (σ² tr P + c), γ′ = γ (1 − ends)."""
        kept = gamma * (1.0 - self.ends)
        P = solve_discrete_lyapunov(np.sqrt(kept) * self.A.T, self.Q)
        c = kept * self.noise**2 * np.trace(P) / (1.0 - kept)
        found: FloatArray = -np.einsum("ni,ij,nj->n", x, P, x) - c
        return found


class Bumps(Drift):
    """Two coupled oscillators in four columns; Gaussian bumps of reward, some good and some bad."""

    def __init__(self, noise: float = 0.25, ends: float = 0.1) -> None:
        turn = np.array([[0.92, 0.35], [-0.35, 0.92]])
        A = np.zeros((4, 4))
        A[:2, :2] = A[2:, 2:] = 0.97 * turn
        A[0, 2] = A[2, 0] = 0.1
        super().__init__(A / 1.05, noise, ends)
        self.middles = np.array([[1.0, 0.0, 0.5, 0.0], [-0.5, 0.5, -1.0, 0.0], [0.0, -1.0, 0.0, 1.0], [0.0] * 4])
        self.widths, self.heights = np.array([0.8, 0.7, 0.9, 0.6]), np.array([2.0, -2.0, 1.5, -1.0])

    def reward(self, x: FloatArray) -> FloatArray:
        return self._mean(x, np.zeros((4, 4)))

    def _mean(self, means: FloatArray, spread: FloatArray) -> FloatArray:
        """The mean reward of Gaussian states with these means and this covariance."""
        found = np.zeros(len(means))
        for middle, width, height in zip(self.middles, self.widths, self.heights, strict=True):
            wider = np.eye(4) + spread / width**2
            apart = (means - middle) / width
            squares = np.einsum("ni,ij,nj->n", apart, np.linalg.inv(wider), apart)
            found += height / np.sqrt(np.linalg.det(wider)) * np.exp(-0.5 * squares)
        return found

    def values(self, x: FloatArray, gamma: float) -> FloatArray:
        """The series of mean rewards, until what is left is below 10⁻¹⁰."""
        found, spread, kept = np.zeros(len(x)), np.zeros((4, 4)), 1.0
        while kept > 1e-11:
            found += kept * self._mean(x, spread)
            x, spread = x @ self.A.T, self.A @ spread @ self.A.T + self.noise**2 * np.eye(4)
            kept *= gamma * (1.0 - self.ends)
        return found


class Sensors:
    """A stream of twelve sensors in units of their own, each by itself; the reward is of the first two."""

    memory = np.array([0.9, 0.8, 0.95, 0.9, 0.7, 0.5, 0.0, 0.95, 0.99, 0.85, 0.3, 0.6])
    units = np.array([1.0, 5.0, 0.1, 1.0, 20.0, 1.0, 3.0, 1.0, 100.0, 0.01, 1.0, 7.0])
    level = 0.8
    """Of the first sensor, above which there is a reward of 1."""

    def stream(self, n: int, rng: np.random.Generator, first: Any = None) -> tuple[FloatArray, FloatArray]:
        """n + 1 states and n rewards; the first state is given, or as the stream has them."""
        z = np.empty((n + 1, 12))
        z[0] = rng.standard_normal(12) if first is None else first / self.units
        shocks = np.sqrt(1.0 - self.memory**2) * rng.standard_normal((n, 12))
        for t in range(n):
            z[t + 1] = self.memory * z[t] + shocks[t]
        rewards = z[:-1, 0] * z[:-1, 1] + (z[:-1, 0] > self.level) + 0.3 * rng.standard_normal(n)
        return z * self.units, rewards

    def values(self, x: FloatArray, gamma: float) -> FloatArray:
        """The series of E[z₁z₂] and of the probability that z₁ is above the level: both are closed forms."""
        first, second = (x / self.units)[:, :2].T
        found: FloatArray = np.zeros(len(x))
        kept = 1.0
        for t in range(10_000):
            a, b = self.memory[:2] ** t
            width = np.sqrt(1.0 - a**2)
            above = (first > self.level).astype(float) if t == 0 else ndtr((a * first - self.level) / width)
            found += kept * (a * first * b * second + above)
            kept *= gamma
            if kept < 1e-11:
                break
        return found


class StepWalk:
    """One column in [0, 1], a reflected walk; the reward is 1 from 0.6 on, and −1 between 0.2 and 0.3."""

    noise, ends, blur = 0.08, 0.05, 0.5

    def start(self, n: int, rng: np.random.Generator) -> FloatArray:
        return rng.random((n, 1))

    def move(self, x: FloatArray, actions: Any, rng: np.random.Generator) -> tuple[Any, FloatArray, Any]:
        beyond = np.abs(x + self.noise * rng.standard_normal(x.shape))
        after = np.where(beyond > 1.0, 2.0 - beyond, beyond)
        rewards = self.mean(x[:, 0]) + self.blur * rng.standard_normal(len(x))
        return after, rewards, rng.random(len(x)) < self.ends

    def mean(self, x: FloatArray) -> FloatArray:
        return np.select([x >= 0.6, (x >= 0.2) & (x < 0.3)], [np.ones(len(x)), -np.ones(len(x))], 0.0)

    def values(self, x: FloatArray, gamma: float, n: int = 1_000) -> FloatArray:
        """By a grid of n cells, whose edges the steps are on; the error falls with n², and is about 10⁻⁶."""
        grid = (np.arange(n) + 0.5) / n
        kept = gamma * (1.0 - self.ends)
        inside = np.linalg.solve(np.eye(n) - kept * self._kernel(grid, grid), self.mean(grid))
        found: FloatArray = self.mean(x[:, 0]) + kept * self._kernel(x[:, 0], grid) @ inside
        return found

    def _kernel(self, x: FloatArray, grid: FloatArray) -> FloatArray:
        found: FloatArray = np.zeros((len(x), len(grid)))
        for images in (grid, -grid, 2.0 - grid):
            z = (images - x[:, None]) / self.noise
            found += np.exp(-0.5 * z**2)
        found /= len(grid) * np.sqrt(2.0 * np.pi) * self.noise
        return found


class Pushed:
    """Six columns: a cart (place, speed) that one of three actions pushes, and four columns that move by themselves."""

    A = np.array([[1.0, 0.3], [-0.1, 0.85]])
    push, noise, ends = 0.4, 0.15, 0.1

    def __init__(self) -> None:
        self.others = Quadratic(4, 20, ends=self.ends)

    def start(self, n: int, rng: np.random.Generator) -> FloatArray:
        return rng.standard_normal((n, 6))

    def move(self, x: FloatArray, actions: Any, rng: np.random.Generator) -> tuple[Any, FloatArray, Any]:
        force = actions - 1.0
        cart = x[:, :2] @ self.A.T + self.noise * rng.standard_normal((len(x), 2))
        cart[:, 1] += self.push * force
        rest, paid, ended = self.others.move(x[:, 2:], actions, rng)
        return np.hstack([cart, rest]), self._paid(x[:, :2], force) + 0.3 * paid, ended

    def _paid(self, cart: FloatArray, force: Any) -> FloatArray:
        found: FloatArray = -(cart[:, 0] ** 2 + 0.2 * cart[:, 1] ** 2 + 0.1 * force**2)
        return found

    @staticmethod
    def target(x: FloatArray) -> FloatArray:
        """Pushes back, the surer the farther: probabilities (M, 3)."""
        back = np.column_stack([x[:, 0] + x[:, 1], np.zeros(len(x)), -x[:, 0] - x[:, 1]])
        chances = np.exp(2.0 * (back - back.max(axis=1, keepdims=True)))
        found: FloatArray = chances / chances.sum(axis=1, keepdims=True)
        return found

    def values(self, x: FloatArray, gamma: float, n: int = 161, width: float = 8.0) -> FloatArray:
        """Of the target policy: the other columns in closed form, the cart on a grid, accurate to about 10⁻⁵.

        What is smoothed by the noise is read by splines; what is beyond the grid counts as on its edge.
        """
        grid = np.linspace(-width, width, n)
        h = grid[1] - grid[0]
        blur = np.exp(-0.5 * ((grid - grid[:, None]) / self.noise) ** 2)
        blur /= blur.sum(axis=1, keepdims=True)
        assert h < self.noise, "the trapezium rule needs a finer grid"
        cart = np.column_stack([np.repeat(grid, n), np.tile(grid, n)])
        kept, at = gamma * (1.0 - self.ends), np.zeros(n * n)

        def backed_up(cart: FloatArray, smooth: RectBivariateSpline) -> FloatArray:
            chances, found = self.target(cart), np.zeros(len(cart))
            for action in range(3):
                means = (cart @ self.A.T + [0.0, self.push * (action - 1.0)]).clip(-width, width)
                found += chances[:, action] * (self._paid(cart, action - 1.0) + kept * smooth(*means.T, grid=False))
            return found

        for _ in range(round(np.log(1e-7) / np.log(kept))):
            at = backed_up(cart, RectBivariateSpline(grid, grid, blur @ at.reshape(n, n) @ blur.T))
        smooth = RectBivariateSpline(grid, grid, blur @ at.reshape(n, n) @ blur.T)
        return backed_up(x[:, :2], smooth) + 0.3 * self.others.values(x[:, 2:], gamma)


# --- finite processes that are seen as columns ----------------------------------------------------------------------


class Seen(NamedTuple):
    """A finite process, its policies, and what is observed of its states."""

    process: Finite
    logged: FloatArray
    """(n, n_actions): the policy that acts."""
    target: FloatArray
    """(n, n_actions): another policy."""
    columns: FloatArray
    """(n, D): what is observed of each state, all rows different."""

    def see(self, states: Any) -> FloatArray:
        found: FloatArray = self.columns[states]
        return found

    def numbers(self, observations: FloatArray) -> Any:
        """The states of observations."""
        place = _places(self.columns.tobytes(), self.columns.shape)
        return np.array([place[row.tobytes()] for row in np.ascontiguousarray(observations, dtype=np.float64)], int)

    def policy(self, observations: FloatArray) -> FloatArray:
        """The probabilities of the target policy, (M, n_actions)."""
        found: FloatArray = self.target[self.numbers(observations)]
        return found


@cache
def _places(columns: bytes, shape: tuple[int, int]) -> dict[bytes, int]:
    table = np.frombuffer(columns).reshape(shape)
    return {row.tobytes(): s for s, row in enumerate(table)}


BOARD = 8


def catch() -> Seen:
    """Catch on 8 × 8 pixels: a ball falls and drifts, a paddle moves on the bottom row; 1 for a ball that is caught."""
    rows = BOARD - 1
    n = rows * BOARD * BOARD
    P, success = np.zeros((n, 3, n)), np.zeros((n, 3))
    logged, target = np.full((n, 3), 0.5 / 3), np.full((n, 3), 0.1 / 3)
    columns = np.zeros((n, BOARD, BOARD))
    for row in range(rows):
        for ball in range(BOARD):
            for paddle in range(BOARD):
                s = (row * BOARD + ball) * BOARD + paddle
                columns[s, row, ball] = columns[s, rows, paddle] = 1.0
                towards = 1 + int(np.sign(ball - paddle))
                logged[s, towards] += 0.5
                target[s, towards] += 0.9
                for action in range(3):
                    moved = min(max(paddle + action - 1, 0), rows)
                    for drift, chance in ((-1, 0.15), (0, 0.7), (1, 0.15)):
                        fell = min(max(ball + drift, 0), rows)
                        if row == rows - 1:
                            success[s, action] += chance * (fell == moved)
                        else:
                            P[s, action, ((row + 1) * BOARD + fell) * BOARD + moved] += chance
    first = np.zeros(n)
    first[: BOARD * BOARD] = 1.0 / BOARD**2
    process = Outcomes(P, success)
    process.first = first
    return Seen(process, logged, target, columns.reshape(n, -1))


class Stock(Finite):
    """A shop: stock of 0 to 40, the day of the week, and whether the season is calm, usual or busy.

    Each day some are asked for (Poisson), then 0, 8, 16 or 24 are ordered, which come over night.
    """

    most = 40
    orders = (0, 8, 16, 24)
    by_day = np.array([4.0, 4.0, 5.0, 6.0, 9.0, 11.0, 2.0])
    by_season = np.array([0.6, 1.0, 1.5])
    seasons = np.array([[0.9, 0.1, 0.0], [0.05, 0.9, 0.05], [0.0, 0.1, 0.9]])

    def __init__(self) -> None:
        stock, day, season = np.meshgrid(np.arange(self.most + 1), np.arange(7), np.arange(3), indexing="ij")
        self.columns = np.column_stack([stock.ravel(), day.ravel(), season.ravel()]).astype(np.float64)
        n = len(self.columns)
        P, rewards = np.zeros((n, len(self.orders), n)), np.zeros((n, len(self.orders)))
        for s, (have, today, now) in enumerate(self.columns.astype(int).tolist()):
            sold = np.arange(have + 1)
            chances = poisson.pmf(sold, self.wanted(today, now))
            chances[-1] = 1.0 - chances[:-1].sum()  # at least as many are asked for as there are
            for action in range(len(self.orders)):
                left = have - sold
                rewards[s, action] = chances @ self.earned(sold, left, action)
                stocked = np.minimum(left + self.orders[action], self.most)
                for later, chance in enumerate(self.seasons[now]):
                    np.add.at(P[s, action], self.number(stocked, (today + 1) % 7, later), chance * chances)
        super().__init__(P, rewards)

    def wanted(self, day: Any, season: Any) -> Any:
        return self.by_day[day] * self.by_season[season]

    def number(self, stock: Any, day: Any, season: Any) -> Any:
        return (stock * 7 + day) * 3 + season

    def earned(self, sold: Any, left: Any, actions: Any) -> FloatArray:
        """Sales, the cost of keeping, and a fixed and a proportional cost of an order."""
        ordered = np.asarray(self.orders)[actions]
        found: FloatArray = 3.0 * sold - 0.1 * left - 1.0 * ordered - 4.0 * (ordered > 0)
        return found

    def move(self, states: Any, actions: Any, rng: np.random.Generator) -> tuple[Any, FloatArray, Any]:
        stock, day, season = self.columns[states].astype(int).T
        sold = np.minimum(rng.poisson(self.wanted(day, season)), stock)
        left = stock - sold
        later = (self.seasons.cumsum(axis=1)[season] <= rng.random((len(states), 1))).sum(axis=1)
        after = self.number(np.minimum(left + np.asarray(self.orders)[actions], self.most), (day + 1) % 7, later)
        return after, self.earned(sold, left, actions), np.zeros(len(states), dtype=bool)


def shop() -> Seen:
    """Orders by stock, with much chance; the target orders up to 32 as soon as fewer than 16 are there."""
    process = Stock()
    stock = process.columns[:, 0]
    logged = np.where(stock[:, None] < 14, [[0.2, 0.2, 0.3, 0.3]], [[0.6, 0.2, 0.15, 0.05]])
    wanted = np.clip(np.round((32.0 - stock) / 8.0), 0, 3).astype(int)
    target = 0.1 * logged
    target[np.arange(len(stock)), np.where(stock < 16, wanted, 0)] += 0.9
    return Seen(process, logged, target, process.columns)


CHANNELS, SEGMENTS, STAGES = 4, 3, 6


def journeys() -> Seen:
    """Customers by channel, segment and stage; who goes on depends on both; purchases have heavy tails.

    The codes of channels and stages are in no order.
    """
    rng = np.random.default_rng(31)
    shape = (CHANNELS, SEGMENTS, STAGES)
    n = int(np.prod(shape))
    P, rewards = np.zeros((n, 1, n)), np.zeros((n, 1))
    on = 0.25 + 0.5 * rng.random((CHANNELS, SEGMENTS))
    channel_of, stage_of = rng.permutation(CHANNELS), rng.permutation(STAGES)
    columns = np.zeros((n, 3))
    for channel, segment, stage in np.ndindex(*shape):
        s = int(np.ravel_multi_index((channel, segment, stage), shape))
        columns[s] = channel_of[channel], segment, stage_of[stage]

        def to(stage: int, channel: int = channel, segment: int = segment) -> int:
            return int(np.ravel_multi_index((channel, segment, stage), shape))

        if stage == STAGES - 1:  # bought; some come back, by another channel
            rewards[s] = (8.0, 25.0, 60.0)[segment] * (1.0 + 0.5 * (channel == 2))
            for other in range(CHANNELS):
                P[s, 0, to(0, channel=other)] += (0.2 + 0.15 * segment) / CHANNELS
        else:
            P[s, 0, to(stage + 1)] = on[channel, segment]
            P[s, 0, to(max(stage - 1, 0))] += 0.6 * (0.95 - on[channel, segment])
            P[s, 0, s] += 0.4 * (0.95 - on[channel, segment])
    first = np.zeros(shape)
    first[:, :, 0] = np.outer([0.4, 0.3, 0.2, 0.1], [0.6, 0.3, 0.1])
    everything = np.ones((n, 1))
    return Seen(Finite(P, rewards, heavy, first.ravel()), everything, everything, columns)


def crossed() -> Seen:
    """Three columns of categories (6, 5, 4) that move each by itself; the reward is of pairs of them."""
    rng, shape = np.random.default_rng(32), (6, 5, 4)
    n = int(np.prod(shape))
    moves = [0.6 * np.eye(size) + 0.4 * rng.dirichlet(np.ones(size), size) for size in shape]
    P = 0.9 * np.kron(np.kron(moves[0], moves[1]), moves[2])
    columns = np.array(list(np.ndindex(*shape)))
    pairs = [rng.standard_normal((shape[i], shape[j])) for i, j in ((0, 1), (1, 2), (0, 2))]
    main = rng.standard_normal(shape[0])
    a, b, c = columns.T
    rewards = 0.5 * main[a] + pairs[0][a, b] + pairs[1][b, c] + pairs[2][a, c]
    process = Finite(P[:, None], rewards[:, None], lambda rng, means: means + rng.standard_normal(len(means)))
    return Seen(process, np.ones((n, 1)), np.ones((n, 1)), columns.astype(np.float64))


ROOMS = (
    ".....#.....",
    ".....#.....",
    "...........",
    ".....#.....",
    ".....#.....",
    "#.####.....",
    ".....###.##",
    ".....#.....",
    ".....#.....",
    "...........",
    ".....#....G",
)


def rooms() -> Seen:
    """Four rooms with doors; 1 at the goal. Half of the logged steps are on a shortest way, of the target's 0.9."""
    free = [(i, j) for i, line in enumerate(ROOMS) for j, kind in enumerate(line) if kind != "#"]
    place = {cell: s for s, cell in enumerate(free)}
    goal = next(s for cell, s in place.items() if ROOMS[cell[0]][cell[1]] == "G")
    n, moves = len(free), ((-1, 0), (1, 0), (0, -1), (0, 1))
    after = np.array([[place.get((i + u, j + v), place[i, j]) for u, v in moves] for i, j in free])
    far = np.full(n, np.inf)
    far[goal] = 0.0
    for _ in range(n):
        far = np.minimum(far, 1.0 + far[after].min(axis=1))
    best = far[after] == far[after].min(axis=1, keepdims=True)
    straight = best / best.sum(axis=1, keepdims=True)
    P, rewards = np.zeros((n, 4, n)), np.zeros((n, 4))
    for action in range(4):
        P[np.arange(n), action, after[:, action]] = 1.0
    P[goal], rewards[goal] = 0.0, 1.0
    process = Finite(P, rewards)
    return Seen(process, 0.5 * straight + 0.125, 0.9 * straight + 0.025, np.array(free, dtype=np.float64))


class Epidemic(Finite):
    """Susceptible and infected among at most 50; each infected one costs 0.1 per step; it ends with the last one."""

    people, infects, recovers = 50, 0.5, 0.25

    def __init__(self) -> None:
        N = self.people
        self.columns = np.array([(s, i) for s in range(N + 1) for i in range(1, N + 1 - s)], dtype=np.float64)
        self.place = np.full((N + 1, N + 1), -1)
        susceptible, infected = self.columns.astype(int).T
        n = len(susceptible)
        self.place[susceptible, infected] = np.arange(n)
        P = np.zeros((n, 1, n))
        for s, (S, i) in enumerate(zip(susceptible.tolist(), infected.tolist(), strict=True)):
            new, cured = np.arange(S + 1), np.arange(i + 1)
            chances = np.outer(binom.pmf(new, S, self.risk(i)), binom.pmf(cured, i, self.recovers))
            later = self.place[(S - new)[:, None], i + new[:, None] - cured]
            P[s, 0, later[later >= 0]] = chances[later >= 0]  # each pair leads to another state
        super().__init__(P, -0.1 * infected[:, None])

    def risk(self, infected: Any) -> Any:
        return 1.0 - np.exp(-self.infects * infected / self.people)

    def start(self, n: int, rng: np.random.Generator) -> Any:
        infected = rng.integers(1, 9, size=n)
        immune = rng.integers(0, 26, size=n)
        return self.place[self.people - infected - immune, infected]

    def move(self, states: Any, actions: Any, rng: np.random.Generator) -> tuple[Any, FloatArray, Any]:
        susceptible, infected = self.columns[states].astype(int).T
        new = rng.binomial(susceptible, self.risk(infected))
        later = infected + new - rng.binomial(infected, self.recovers)
        ended = later == 0
        return np.where(ended, states, self.place[susceptible - new, later]), -0.1 * infected, ended


def epidemic() -> Seen:
    process = Epidemic()
    everything = np.ones((len(process.columns), 1))
    return Seen(process, everything, everything, process.columns)


def ward() -> Seen:
    """A clinic: heart rate and blood pressure (3 levels each), oxygen (2), sugar (4), diabetes (2); four treatments.

    Vital signs go back to normal more often with the treatment that is for them (bits: antibiotic, vasopressor).
    Stays end with probability 0.1 per step; patients with few abnormal signs are then discharged well (1) more often.
    """
    shape = (3, 3, 2, 4, 2)
    columns = np.array(list(np.ndindex(*shape)))
    n = len(columns)
    normal = np.array([1, 1, 1, 1])
    heart, pressure, oxygen, _, diabetic = columns.T
    abnormal = (columns[:, :4] != normal).sum(axis=1)
    P, success = np.zeros((n, 4, n)), np.zeros((n, 4))
    for action in range(4):
        antibiotic, pressor = action % 2, action // 2
        better = [0.15 + 0.45 * antibiotic, 0.15 + 0.5 * pressor, 0.2 + 0.3 * antibiotic, 0.3 - 0.1 * pressor]
        worse = [0.12 + 0.1 * pressor, 0.15 - 0.05 * pressor, 0.1, 0.12]
        for s in range(n):
            row: FloatArray = np.ones(1)
            for i, size in enumerate(shape[:4]):
                odd = worse[i] * (2.0 if i == 3 and diabetic[s] else 1.0)
                row = np.asarray(np.kron(row, _sign(int(columns[s, i]), size, better[i], odd)), dtype=np.float64)
            P[s, action] = 0.9 * np.kron(row, np.eye(2)[diabetic[s]])
        success[:, action] = np.clip(0.95 - 0.25 * abnormal - 0.1 * diabetic * (abnormal > 1), 0.02, 0.98)
    first = np.zeros(n)
    first[(abnormal >= 2) & (abnormal <= 3)] = 1.0
    first *= np.where(diabetic == 1, 0.2, 0.8)
    needs = (heart != 1) | (oxygen != 1)
    logged, target = np.zeros((n, 4)), np.zeros((n, 4))
    for s in range(n):
        give, press = (0.6, 0.2)[1 - int(needs[s])], (0.5, 0.15)[1 - int(pressure[s] != 1)]
        sure, firm = (0.95, 0.05)[1 - int(needs[s])], (0.9, 0.05)[1 - int(pressure[s] != 1)]
        for table, a, b in ((logged, give, press), (target, sure, firm)):
            table[s] = [(1 - a) * (1 - b), a * (1 - b), (1 - a) * b, a * b]
    process = Outcomes(P, success)
    process.first = first / first.sum()
    return Seen(process, logged, target, columns.astype(np.float64))


def _sign(level: int, size: int, better: float, worse: float) -> FloatArray:
    """Where a sign goes: towards level 1 with probability ``better`` if it is not there, else away with ``worse``."""
    found = np.zeros(size)
    if level == 1:
        others = [other for other in (0, 2) if other < size]
        found[others] = worse / len(others)
        found[1] = 1.0 - worse
        return found
    found[level + int(np.sign(1 - level))] = better
    further = level + 1 if 1 < level < size - 1 else level
    found[further] += worse * (further != level)
    found[level] += 1.0 - found.sum()
    return found
