"""Answers of ``tlstd.evaluate`` beside the true values, on logs of known environments.

uv run python -m tlstd_lab.measurements.log_truth         # about two minutes; writes a table of docs/logs.md
uv run python -m tlstd_lab.measurements.log_truth Taxi    # only logs with this word, printed and not written
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from numpy.typing import NDArray

from tlstd import Log, evaluate
from tlstd.core.arrays import FloatArray
from tlstd.domains.energy_storage import EnergyStorage
from tlstd.streams import trajectory
from tlstd_lab.energy_programme import optimal_policy
from tlstd_lab.questions.coverage import episodes
from tlstd_lab.questions.coverage.episodes import Episodes, mean_return, play
from tlstd_lab.tables import DOCS, table, write_tables

Policy = Callable[[NDArray[Any]], FloatArray]
"""From observations to probabilities (M, n_actions)."""


class Case(NamedTuple):
    """A log, a question, and the true answer with its standard error."""

    words: str
    policy: str
    log: Log
    options: dict[str, Any]
    truth: float
    error: float = 0.0


def as_log(found: Episodes, **more: Any) -> Log:
    """Episodes as a log; what did not end was cut off."""
    cut = np.zeros(found.rewards.size, dtype=np.bool_)
    cut[found.last] = ~found.terminated[found.last]
    return Log.from_arrays(
        found.states, found.rewards, terminated=found.terminated, truncated=cut, next_observations=found.next_states,
        actions=found.actions, **more,
    )  # fmt: skip


# --- CartPole -------------------------------------------------------------------------------------------------------


def leaning(epsilon: float) -> Callable[[NDArray[Any]], FloatArray]:
    """The probability of a push to the right: to where the pole falls, but for a random one with probability ε."""

    def right(seen: NDArray[Any]) -> FloatArray:
        towards = (seen[:, 2] + 0.5 * seen[:, 3] > 0.0).astype(np.float64)
        chances: FloatArray = epsilon / 2 + (1.0 - epsilon) * towards
        return chances

    return right


def pole() -> Iterator[Case]:
    """500 episodes of an ε-greedy policy, cut off after 60 steps; three others asked for."""
    gamma, acted = 0.95, leaning(0.5)
    found = play(episodes.pole_starts, episodes.pole_step(acted), 500, 60, np.random.default_rng(0))
    right = acted(found.states)
    known = as_log(found, probabilities=np.where(found.actions == 1, right, 1.0 - right))
    for epsilon in (0.5, 0.1, 0.4, 0.8):
        asked = leaning(epsilon)
        step = episodes.pole_step(asked)
        means = [mean_return(episodes.pole_starts, step, 2_000, gamma, np.random.default_rng(n), 400) for n in range(8)]
        truth = (float(np.mean(means)), float(np.std(means) / np.sqrt(7)))
        if epsilon == 0.5:
            yield Case("CartPole, ε = 0.5", "the same", known, {"gamma": gamma}, *truth)
            continue
        options = {"gamma": gamma, "policy": _both(asked)}
        for log in (known, as_log(found)):
            yield Case("CartPole, ε = 0.5", f"ε = {epsilon:g}", log, options, *truth)


def _both(right: Callable[[NDArray[Any]], FloatArray]) -> Policy:
    return lambda seen: np.column_stack([1.0 - right(seen), right(seen)])


# --- Gymnasium ------------------------------------------------------------------------------------------------------


def recorded(name: str, policy: Policy, n_episodes: int, limit: int, seed: int, known: bool) -> Log:
    """Episodes of an environment with discrete actions."""
    env, rng, rows = gymnasium.make(name, max_episode_steps=limit), np.random.default_rng(seed), []
    for episode in range(n_episodes):
        seen, _ = env.reset(seed=seed * 100_003 + episode)
        ended = cut = False
        while not (ended or cut):
            chances = policy(np.asarray(seen)[None])[0]
            action = int(rng.choice(chances.size, p=chances))
            before = seen
            seen, reward, ended, cut, _ = env.step(action)
            rows.append((episode, before, action, float(reward), ended, cut, seen, chances[action]))
    names, states, actions, rewards, ends, cuts, after, taken = map(np.array, zip(*rows, strict=True))
    return Log.from_arrays(
        states, rewards, actions=actions, terminated=ends, truncated=cuts, episodes=names, next_observations=after,
        probabilities=taken if known else None, discrete=states.ndim == 1,
    )  # fmt: skip


def returned(log: Log, gamma: float) -> tuple[float, float]:
    """Mean discounted return of a log's episodes, and its standard error."""
    t = np.arange(len(log)) - np.repeat(log.episodes[:-1], np.diff(log.episodes))
    returns = np.add.reduceat(log.rewards * gamma**t, log.episodes[:-1])
    return float(returns.mean()), float(returns.std() / np.sqrt(returns.size))


def lake() -> Iterator[Case]:
    """FrozenLake: one state a number, values in closed form."""
    outcomes = gymnasium.make("FrozenLake-v1").unwrapped.P  # type: ignore[attr-defined]
    P, rewards, gamma = np.zeros((16, 4, 16)), np.zeros((16, 4)), 0.95
    for s, actions in outcomes.items():
        for a, found in actions.items():
            for chance, after, reward, ended in found:
                rewards[s, a] += chance * reward
                P[s, a, after] += chance * (not ended)

    def truth(policy: FloatArray) -> float:
        moves, earned = np.einsum("a,sat->st", policy, P), rewards @ policy
        return float(np.linalg.solve(np.eye(16) - gamma * moves, earned)[0])

    random, careful = np.full(4, 0.25), np.array([0.1, 0.4, 0.4, 0.1])
    for known in (True, False):
        log = recorded("FrozenLake-v1", _always(random), 1_500, 100, 0, known)
        if known:
            yield Case("FrozenLake, random actions", "the same", log, {"gamma": gamma}, truth(random))
        options = {"gamma": gamma, "policy": _always(careful)}
        yield Case("FrozenLake, random actions", "down and right", log, options, truth(careful))


def _always(chances: FloatArray) -> Policy:
    return lambda seen: np.tile(chances, (len(seen), 1))


def random_actions(name: str, n_actions: int, n_episodes: int, limit: int = 100) -> Iterator[Case]:
    """An environment with random actions; another policy prefers the first action."""
    gamma, random = 0.95, np.full(n_actions, 1.0 / n_actions)
    first = 0.5 * random + 0.5 * (np.arange(n_actions) == 0)
    known, unknown = (recorded(name, _always(random), n_episodes, limit, 0, known) for known in (True, False))
    words = f"{name.partition('-')[0]}, random actions"
    truth = returned(recorded(name, _always(random), 3 * n_episodes, limit, 1, False), gamma)
    yield Case(words, "the same", known, {"gamma": gamma}, *truth)
    truth = returned(recorded(name, _always(first), 3 * n_episodes, limit, 1, False), gamma)
    for log in (known, unknown):
        yield Case(words, "mostly the first", log, {"gamma": gamma, "policy": _always(first)}, *truth)


# --- the domains of this library ------------------------------------------------------------------------------------


def car() -> Iterator[Case]:
    """Mountain Car with slips."""
    log = as_log(play(episodes.car_starts, episodes.car_step, 100, 300, np.random.default_rng(0)))
    means = [
        mean_return(episodes.car_starts, episodes.car_step, 5_000, 0.99, np.random.default_rng(n)) for n in range(8)
    ]
    truth = (float(np.mean(means)), float(np.std(means) / np.sqrt(7)))
    yield Case("Mountain Car with slips", "the same", log, {"gamma": 0.99}, *truth)


def energy() -> Iterator[Case]:
    """Energy storage, a stream without end: the mean over all states is that of the rewards, over 1 - γ."""
    domain = EnergyStorage()
    policy = optimal_policy(domain)
    path = trajectory(domain, policy, n_steps=10_000, seed=0)
    seen = domain.observe(path.states)
    log = Log.from_arrays(seen[path.rows], path.rewards, next_observations=seen[path.rows + 1])
    blocks = trajectory(domain, policy, n_steps=100_000, seed=1).rewards.reshape(20, -1).mean(axis=1) / (
        1.0 - domain.gamma
    )
    truth = (float(blocks.mean()), float(blocks.std() / np.sqrt(19)))
    yield Case("energy storage, a stream", "the same", log, {"gamma": domain.gamma}, *truth)


CASES: dict[str, Callable[[], Iterator[Case]]] = {
    "CartPole": pole,
    "FrozenLake": lake,
    "Taxi": lambda: random_actions("Taxi-v4", 6, 150),
    "CliffWalking": lambda: random_actions("CliffWalking-v1", 4, 150),
    "Mountain Car": car,
    "energy": energy,
}

# --- the table ------------------------------------------------------------------------------------------------------


def line(case: Case) -> list[str]:
    """One question: truth, answer, interval and light."""
    found = evaluate(case.log, **case.options)
    interval = found.interval()
    error = f" ± {2 * case.error:.2g}" if case.error else ""
    inside = interval.low - 2 * case.error <= case.truth <= interval.high + 2 * case.error
    reasons = [check.name for check in found.trust.of_answer if check.state in ("red", "amber", "unchecked")]
    light = found.light + (f" ({', '.join(reasons)})" if reasons else "")
    known = "yes" if case.log.probabilities is not None else "no"
    shown = [f"{case.truth:.4g}{error}", f"{found.value:.4g}", f"[{interval.low:.4g}, {interval.high:.4g}]"]
    return [case.words, case.policy, known, found.rung, *shown, "yes" if inside else "**no**", light]


def main(word: str) -> None:
    """Print and write the table."""
    lines = []
    for name, cases in CASES.items():
        for case in cases() if word in name else ():
            lines.append(line(case))
            print(lines[-1], flush=True)
    head = ["log", "target policy", "probabilities", "rung", "true value", "answer", "95% interval", "inside", "light"]
    if not word:
        write_tables(DOCS / "logs.md", {"truth": table(head, lines)})


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
