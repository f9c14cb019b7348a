"""The light where intervals do not cover: the cells of the coverage table outside of its range, as logs.

uv run python -m tlstd_lab.measurements.coverage_light          # five minutes; writes a table of docs/trust.md
uv run python -m tlstd_lab.measurements.coverage_light garnet   # only problems with this word, printed and not written
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tlstd import Concatenate, Log, TileCoder, evaluate
from tlstd.core.arrays import FloatArray
from tlstd_lab.processes import garnet
from tlstd_lab.questions.coverage import episodes
from tlstd_lab.questions.coverage.episodes import Episodes, Step, mean_return, play
from tlstd_lab.questions.coverage.problems import (
    BRANCHING,
    GAMMA,
    NOISE,
    STATES,
    STREAM,
    TERMINATION,
    monomials,
    problem,
)
from tlstd_lab.tables import DOCS, table, write_tables

SETS = {10: 20, 50: 20, 200: 20, 2_000: 5}
"""Data sets of a cell, by the number of episodes."""


class Rows:
    """The features of numbered states by a table: a feature map."""

    def __init__(self, X: FloatArray) -> None:
        self.X, self.n_features = X, X.shape[1]

    def encode(self, state: ArrayLike) -> FloatArray:
        """Features of one state."""
        row: FloatArray = self.X[int(np.ravel(state)[0])]
        return row

    def encode_many(self, states: ArrayLike) -> FloatArray:
        """Features of states (N, 1)."""
        rows: FloatArray = self.X[np.asarray(states).reshape(-1).astype(np.int64)]
        return rows

    def __repr__(self) -> str:
        return f"Rows({self.n_features} features)"


class Monomials:
    """The features of CartPole's states with which ratios come close to the values: a feature map."""

    n_features = 28

    def encode(self, state: ArrayLike) -> FloatArray:
        """Features of one state."""
        row: FloatArray = self.encode_many(np.asarray(state)[None])[0]
        return row

    def encode_many(self, states: ArrayLike) -> FloatArray:
        """Features of states (N, 4)."""
        return monomials(np.asarray(states, dtype=np.float64))

    def __repr__(self) -> str:
        return "Monomials()"


class Question(NamedTuple):
    """A log, and what is asked of it."""

    log: Log
    options: dict[str, Any]
    state: Any
    """The single state, for ``start``."""
    truths: tuple[float, float]
    """Of the start states and of the single one."""


def asked_of_garnet(name: str, n_episodes: int, number: int) -> Question:
    """The Garnets with too few features, and those without an end."""
    stream, seed = name == "garnet-stream", number // 2
    made = problem(name, seed)
    process = garnet(
        STATES, 2, BRANCHING, STATES if stream else 8, np.random.default_rng([seed, 1, 0]),
        gamma=GAMMA, termination=0.0 if stream else TERMINATION, reward_noise=NOISE,
    )  # fmt: skip
    rng = np.random.default_rng([seed, 0, number])
    path = process.trajectory(STREAM * n_episodes * (1 if stream else 2), rng)
    last = len(path.rewards) if stream else int(np.flatnonzero(path.terminated)[n_episodes - 1]) + 1
    after = np.where(path.terminated, path.states, path.next_states)
    log = Log.from_arrays(
        path.states[:last], path.rewards[:last], terminated=None if stream else path.terminated[:last],
        next_observations=after[:last], n_observations=STATES,
    )  # fmt: skip
    return Question(log, {"gamma": GAMMA, "features": Rows(process.X)}, [STATES // 3], (made.start, made.value))


def as_log(found: Episodes, **more: Any) -> Log:
    """Episodes as a log; what did not end was cut off."""
    cut = np.zeros(found.rewards.size, dtype=np.bool_)
    cut[found.last] = ~found.terminated[found.last]
    return Log.from_arrays(
        found.states, found.rewards, terminated=found.terminated, truncated=cut, next_observations=found.next_states,
        actions=found.actions, **more,
    )  # fmt: skip


def asked_of_car(name: str, n_episodes: int, number: int) -> Question:
    """Mountain Car with slips."""
    made, rng = problem("car", 0), np.random.default_rng([7, number])
    log = as_log(play(episodes.car_starts, episodes.car_step, n_episodes, 300, rng))
    tiles = TileCoder([-1.2, -0.07], [0.6, 0.07], tiles=8, tilings=4)
    return Question(log, {"gamma": 0.99, "features": tiles}, [[-0.5, 0.0]], (made.start, made.value))


def asked_of_pole(name: str, n_episodes: int, number: int) -> Question:
    """CartPole with tiles or monomials of the pole alone, another policy, probabilities known."""
    made, rng = problem(name, 0), np.random.default_rng([8, number])
    behaviour, target = episodes.pole_policy(2.0), episodes.pole_policy(4.0)
    step: Step = episodes.pole_step(behaviour)
    found = play(episodes.pole_starts, step, n_episodes, 100, rng)
    right = behaviour(found.states)
    log = as_log(found, probabilities=np.where(found.actions == 1, right, 1.0 - right))
    tiles = Concatenate([(TileCoder([-0.21, -2.0], [0.21, 2.0], tiles=6, tilings=4), [2, 3])])
    features = tiles if name == "pole-coarse" else Monomials()

    def policy(states: FloatArray) -> FloatArray:
        return np.column_stack([1.0 - target(states), target(states)])

    options = {"gamma": 0.95, "features": features, "policy": policy}
    return Question(log, options, [[0.0, 0.0, 0.05, 0.0]], (made.start, made.value))


def asked_of_few(name: str, n_episodes: int, number: int) -> Question:
    """CartPole by LSTDQ with tiles of its own choice: with ten episodes there are more features than steps."""
    acted, asked = leaning(0.5), leaning(0.8)
    rng = np.random.default_rng([9, number])
    log = as_log(play(episodes.pole_starts, episodes.pole_step(acted), n_episodes, 60, rng))

    def policy(states: FloatArray) -> FloatArray:
        return np.column_stack([1.0 - asked(states), asked(states)])

    step = episodes.pole_step(asked)
    truth = mean_return(episodes.pole_starts, step, 10_000, 0.95, np.random.default_rng(0), 400)
    options = {"gamma": 0.95, "policy": policy, "estimators": ["LSTDQ"]}
    return Question(log, options, None, (truth, np.nan))


def leaning(epsilon: float) -> Callable[[NDArray[Any]], FloatArray]:
    """The probability of a push to the right: to where the pole falls, but for a random one with probability ε."""

    def right(seen: NDArray[Any]) -> FloatArray:
        towards = (seen[:, 2] + 0.5 * seen[:, 3] > 0.0).astype(np.float64)
        chances: FloatArray = epsilon / 2 + (1.0 - epsilon) * towards
        return chances

    return right


Make = Callable[[str, int, int], Question]
CELLS: tuple[tuple[str, str, Make, tuple[tuple[int, bool], ...]], ...] = (
    ("garnet-stream", "Garnet, one stream without end", asked_of_garnet, ((50, True), (200, False))),
    ("car", "Mountain Car, tiles *", asked_of_car, ((50, True), (200, True), (2_000, True))),
    ("pole-off", "CartPole, monomials, ratios", asked_of_pole, ((2_000, False), (2_000, True))),
    ("pole-coarse", "CartPole, tiles, ratios *", asked_of_pole,
     ((200, False), (200, True), (2_000, False), (2_000, True))),
    ("pole-few", "CartPole, LSTDQ, more features than steps *", asked_of_few, ((10, False),)),
    ("garnet-few", "Garnet, too few features *", asked_of_garnet,
     ((50, False), (50, True), (200, False), (200, True), (2_000, False), (2_000, True))),
)  # fmt: skip
"""Names, words, how they are made, and the cells: numbers of episodes, and whether a single state is asked for."""


def line(name: str, words: str, make: Make, n_episodes: int, single: bool) -> list[str]:
    """How often the interval covered and the light was what, and why it was red."""
    covered, lights, why = 0, Counter[str](), Counter[str]()
    sets = SETS[n_episodes]
    for number in range(sets):
        asked = make(name, n_episodes, number)
        start = asked.state if single else None
        found = evaluate(asked.log, start=start, **({"estimators": ["KrylovLSTD"]} | asked.options))
        interval, trust = found.interval_or_none, found.trust
        assert trust is not None
        covered += interval is not None and asked.truths[single] in interval
        lights[trust.light] += 1
        why.update(check.name for check in trust.checks if check.state == "red")
    reasons = ", ".join(f"`{check}` {n}" for check, n in why.most_common(3))
    colours = [str(lights[colour]) for colour in ("red", "amber", "green")]
    return [
        words,
        "one state" if single else "start states",
        f"{n_episodes:,}",
        f"{sets}",
        f"{covered / sets:.2f}",
        *colours,
        reasons,
    ]


def main(word: str) -> None:
    """Print and write the table."""
    lines = []
    for name, words, make, cells in CELLS:
        if word not in name:
            continue
        for n_episodes, single in cells:
            lines.append(line(name, words, make, n_episodes, single))
            print(lines[-1], flush=True)
    head = ["problem", "value of", "episodes", "data sets", "covered", "red", "amber", "green", "red for"]
    if not word:
        write_tables(DOCS / "trust.md", {"light": table(head, lines)})


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
