"""Action values from few steps: LSTDQ with constants that are not regularised, and without them, against closed forms.

uv run python -m tlstd_lab.measurements.action_values      # about five minutes of one core
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tlstd import KrylovLSTD, Log, OneHot
from tlstd.core.arrays import FloatArray
from tlstd.evaluation.action_values import action_transitions, choose_dimension, constants
from tlstd.evaluation.policies import as_target
from tlstd_lab.tables import table

GAMMA = 0.95
LIMIT = 100
"""Steps after which an episode is cut off."""
TERMINATION = 0.02
BRANCHING = 3
SEEDS = range(10, 18)
SIZES = ((20, 3, 500), (60, 4, 1_200), (30, 3, 6_000))
"""States, actions, steps: about 9, 6 and 67 steps for each state and action."""
Rewards = Callable[[FloatArray, np.random.Generator], FloatArray]
REWARDS: dict[str, Rewards] = {
    "around 0": lambda noise, rng: noise,
    "-1, with noise": lambda noise, rng: -1.0 + 0.3 * noise,
    "1, with noise": lambda noise, rng: 1.0 + noise,
    "1 in one pair of ten": lambda noise, rng: (noise >= np.quantile(noise, 0.9)).astype(np.float64),
}


def process(n: int, k: int, rng: np.random.Generator) -> FloatArray:
    """P (n, k, n) of a Garnet; what is missing in a row terminates."""
    P = np.zeros((n, k, n))
    for s in range(n):
        for a in range(k):
            P[s, a, rng.permutation(n)[:BRANCHING]] = (1.0 - TERMINATION) * rng.dirichlet(np.ones(BRANCHING))
    return P


def play(P: FloatArray, rewards: FloatArray, behaviour: FloatArray, steps: int, rng: np.random.Generator) -> Log:
    """Episodes from random states."""
    n, k = rewards.shape
    rows: list[tuple[int, int, int, float, bool, int]] = []
    episode = 0
    while len(rows) < steps:
        state = int(rng.integers(n))
        for _ in range(LIMIT):
            action = int(rng.choice(k, p=behaviour[state]))
            chances = np.append(P[state, action], 1.0 - P[state, action].sum())
            after = int(rng.choice(n + 1, p=chances / chances.sum()))
            following = state if after == n else after
            rows.append((episode, state, action, float(rewards[state, action]), after == n, following))
            state = following
            if after == n:
                break
        episode += 1
    episodes, states, actions, earned, terminated, following_states = map(np.array, zip(*rows, strict=True))
    return Log.from_arrays(
        states, earned, actions=actions, terminated=terminated, episodes=episodes,
        next_observations=following_states, n_observations=n,
    )  # fmt: skip


def errors(size: tuple[int, int, int], make: Rewards, seed: int) -> tuple[float, float]:
    """Relative errors of the mean start value, without constants and with them."""
    n, k, steps = size
    rng = np.random.default_rng(seed)
    P = process(n, k, rng)
    rewards = make(rng.standard_normal((n, k)), rng)
    behaviour, policy = rng.dirichlet(np.full(k, 2.0), n), rng.dirichlet(np.full(k, 0.5), n)
    log = play(P, rewards, behaviour, steps, rng)
    P_policy, earned = np.einsum("sa,sat->st", policy, P), (policy * rewards).sum(axis=1)
    values = np.linalg.solve(np.eye(n) - GAMMA * P_policy, earned)
    starts = log.observations[log.start_rows]
    scale = max(np.abs(values).mean(), values.std())
    target, map_ = as_target(lambda s: policy[s], log), OneHot([0], [n - 1])
    found = []
    for offsets in (np.zeros(k), constants(log, target, GAMMA, k)):
        learned = action_transitions(log, map_, target, GAMMA, k, offsets)
        model = KrylovLSTD(n * k, lambda_=0.0, dimension=choose_dimension(learned).dimension)
        model.update_many(learned)
        Q = model.weights.reshape(k, n).T + offsets
        found.append(abs((policy * Q).sum(axis=1)[starts].mean() - values[starts].mean()) / scale)
    return found[0], found[1]


def main() -> None:
    """Print the table."""
    lines = []
    for name, make in REWARDS.items():
        for size in SIZES:
            found = np.array([errors(size, make, seed) for seed in SEEDS])
            medians, worst = np.median(found, axis=0), found.max(axis=0)
            visits = size[2] / (size[0] * size[1])
            cells = [f"{m:.2f} ({w:.2f})" for m, w in zip(medians, worst, strict=True)]
            lines.append([name, f"{visits:.0f}", *cells])
            print(lines[-1], flush=True)
    print(table(["rewards", "steps for each state and action", "without constants", "with constants"], lines))


if __name__ == "__main__":
    main()
