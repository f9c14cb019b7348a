"""What answers stand on, measured: coverage, width, error, light and CPU time on logs with known true values.

uv run python -m tlstd_lab.measurements.ladder FILE               # the quick form: 40 logs per cell, four minutes
uv run python -m tlstd_lab.measurements.ladder FILE 200           # more logs per cell
uv run python -m tlstd_lab.measurements.ladder FILE 200 bandit    # problems with this word, not written

FILE keeps a line of JSON for every log, with a digest of the library's code: a command that was stopped goes on there.
Of at least 40 logs of all problems the table of ``docs/trust.md`` is written.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np

import tlstd
from tlstd import Log, evaluate
from tlstd.core.arrays import FloatArray
from tlstd.evaluation import mean_interval
from tlstd_lab.tables import DOCS, table, write_tables

EPISODES = (50, 200)
QUICK = 40
LONGEST = 400
"""Steps after which an episode that goes on is cut off."""


class Process(NamedTuple):
    """A finite decision process; episodes begin in all of its states alike."""

    P: FloatArray
    """(n, n_actions, n): the rest of a row ends the episode."""
    rewards: FloatArray
    """(n, n_actions): means."""
    noise: Callable[[np.random.Generator, int], FloatArray]
    """Factors of mean 1 that rewards are multiplied by."""
    seen: FloatArray | None = None
    """(n, columns): what is observed; the number of the state, if None."""

    def value(self, policy: FloatArray, gamma: float) -> float:
        """The mean value of the start states."""
        P, r = np.einsum("sa,sat->st", policy, self.P), (policy * self.rewards).sum(axis=1)
        return float(np.linalg.solve(np.eye(len(P)) - gamma * P, r).mean())

    def log(
        self, policy: FloatArray, n: int, rng: np.random.Generator, limit: int = LONGEST, known: bool = True
    ) -> Log:
        """So many episodes; ``known``: with the probabilities of the actions."""
        states, names = rng.integers(len(self.P), size=n), np.arange(n)
        parts: list[tuple[Any, ...]] = []
        for t in range(limit):
            actions = _drawn(policy[states], rng)
            leads = np.concatenate([self.P[states, actions], np.zeros((states.size, 1))], axis=1)
            leads[:, -1] = 1.0 - leads.sum(axis=1)
            after = _drawn(leads, rng)
            ended = after == len(self.P)
            rewards = self.rewards[states, actions] * self.noise(rng, states.size)
            following = np.where(ended, states, after)
            cut = ~ended & (t == limit - 1)
            parts.append((names, states, actions, rewards, ended, cut, following, policy[states, actions]))
            states, names = after[~ended], names[~ended]
            if not states.size:
                break
        columns = [np.concatenate(each) for each in zip(*parts, strict=True)]
        order = np.argsort(columns[0], kind="stable")
        episodes, at, actions, rewards, ended, cut, following, chances = (column[order] for column in columns)
        seen = (at, following) if self.seen is None else (self.seen[at], self.seen[following])
        return Log.from_arrays(
            seen[0], rewards, actions=actions, terminated=ended, truncated=cut, episodes=episodes,
            next_observations=seen[1], probabilities=chances if known else None,
            n_observations=len(self.P) if self.seen is None else None,
        )  # fmt: skip


def _drawn(chances: FloatArray, rng: np.random.Generator) -> Any:
    """One column per row, with these chances."""
    return (chances.cumsum(axis=1) < rng.random((len(chances), 1))).sum(axis=1).clip(max=chances.shape[1] - 1)


def exactly(rng: np.random.Generator, n: int) -> FloatArray:
    """Rewards without noise."""
    return np.ones(n)


def heavy(rng: np.random.Generator, n: int) -> FloatArray:
    """Log-normal factors of mean 1, with a standard deviation of 2.3."""
    return rng.lognormal(-0.92, 1.36, n)


def random_process(seed: int, n: int, noise: Any = exactly, ends: float = 0.1, positive: bool = False) -> Process:
    """Every action leads to three states."""
    rng = np.random.default_rng(seed)
    P = np.zeros((n, 2, n))
    for s in range(n):
        for a in range(2):
            P[s, a, rng.permutation(n)[:3]] = (1.0 - ends) * rng.dirichlet(np.ones(3))
    rewards = rng.standard_normal((n, 2))
    return Process(P, np.abs(rewards) if positive else rewards, noise)


def pixels() -> Process:
    """A walk on 8 × 8 places, seen as 64 pixels of which one is lit; one corner pays and ends."""
    P, rewards = np.zeros((64, 2, 64)), np.zeros((64, 2))
    for s in range(64):
        x, y = divmod(s, 8)
        for a in range(2):  # mostly along one of the axes, to either side
            for along, share in ((a, 0.7), (1 - a, 0.3)):
                for step in (-1, 1):
                    u, v = (x + step, y) if along == 0 else (x, y + step)
                    P[s, a, 8 * min(max(u, 0), 7) + min(max(v, 0), 7)] += 0.49 * share
    P[63], rewards[63] = 0.0, 1.0
    return Process(P, rewards, exactly, np.eye(64))


COLUMNS = 10


def ten_columns(n: int, rng: np.random.Generator) -> Log:
    """Ten columns that turn into each other and shrink; the reward is minus the sum of their squares."""
    rotation = np.linalg.qr(np.random.default_rng(0).standard_normal((COLUMNS, COLUMNS)))[0]
    x, names = rng.standard_normal((n, COLUMNS)), np.arange(n)
    parts: list[tuple[Any, ...]] = []
    while names.size:
        after = 0.9 * x @ rotation + 0.3 * rng.standard_normal(x.shape)
        ended = rng.random(names.size) < 0.1
        parts.append((names, x, -(x**2).sum(axis=1), ended, after))
        x, names = after[~ended], names[~ended]
    episodes, seen, rewards, done, following = (np.concatenate(each) for each in zip(*parts, strict=True))
    order = np.argsort(episodes, kind="stable")
    return Log.from_arrays(
        seen[order], rewards[order], terminated=done[order], episodes=episodes[order],
        next_observations=following[order],
    )  # fmt: skip


def ten_columns_value(gamma: float) -> float:
    """By the mean square m of a column: m′ = 0.81 m + 0.09, from 1."""
    total, m, weight = 0.0, 1.0, 1.0
    for _ in range(2_000):
        total, m, weight = total - COLUMNS * m * weight, 0.81 * m + 0.09, weight * 0.9 * gamma
    return total


class Problem(NamedTuple):
    """Logs, what is asked of them, and the true answer."""

    words: str
    make: Callable[[int, np.random.Generator], Log]
    options: dict[str, Any]
    truth: float


def _of(policy: FloatArray) -> Callable[[Any], FloatArray]:
    return lambda states: policy[states]


def problems() -> dict[str, Problem]:
    """All of them, by name."""
    half, gamma = np.full((64, 2), 0.5), 0.9
    garnet, tails, walk = random_process(1, 12), random_process(2, 12, heavy, positive=True), pixels()
    mild, strong = np.tile([0.65, 0.35], (12, 1)), np.tile([0.95, 0.05], (12, 1))
    asked = {"gamma": gamma}
    bandit = random_process(3, 12, heavy, ends=1.0, positive=True)
    return {
        "garnet": Problem("12 states", lambda n, rng: garnet.log(half, n, rng), asked, garnet.value(half[:12], gamma)),
        "tails": Problem(
            "12 states, heavy tails", lambda n, rng: tails.log(half, n, rng), asked, tails.value(half[:12], gamma)
        ),
        "limit": Problem(
            "12 states, time limit of 6",
            lambda n, rng: garnet.log(half, n, rng, 6), asked, garnet.value(half[:12], gamma),
        ),
        "pixels": Problem("64 pixels", lambda n, rng: walk.log(half, n, rng), {"gamma": 0.95}, walk.value(half, 0.95)),
        "columns": Problem("ten columns", ten_columns, {"gamma": 0.95}, ten_columns_value(0.95)),
        "mild": Problem(
            "12 states, another policy, close",
            lambda n, rng: garnet.log(half, n, rng), asked | {"policy": _of(mild)}, garnet.value(mild, gamma),
        ),
        "strong": Problem(
            "12 states, another policy, far",
            lambda n, rng: garnet.log(half, n, rng), asked | {"policy": _of(strong)}, garnet.value(strong, gamma),
        ),
        "unknown": Problem(
            "12 states, another policy, no probabilities",
            lambda n, rng: garnet.log(half, n, rng, known=False), asked | {"policy": _of(mild)},
            garnet.value(mild, gamma),
        ),
        "bandit": Problem(
            "12 contexts, one step, another policy",
            lambda n, rng: bandit.log(half, n, rng), {"gamma": 0.0, "policy": _of(mild)}, bandit.value(mild, 0.0),
        ),
    }  # fmt: skip


def measured(problem: Problem, n_episodes: int, seed: list[int]) -> dict[str, Any]:
    """One log: the answer, least squares beside it, and the mean of returns up to ends and cuts."""
    log = problem.make(n_episodes, np.random.default_rng(seed))
    began = process_time()
    found = evaluate(log, **problem.options)
    answered, light, values_light = process_time(), found.light, "unchecked"
    if found.trust is not None:
        values_light = found.trust.values_light
    checked = process_time()
    gamma = problem.options["gamma"]
    returns = np.array([log.rewards[a:b] @ gamma ** np.arange(b - a) for a, b in pairwise(log.episodes.tolist())])
    plain, own = mean_interval(returns), found.interval()
    kept: dict[str, Any] = {
        "rung": found.rung, "light": light, "values_light": values_light,
        "answer": [found.value, own.low, own.high], "returns": [plain.value, plain.low, plain.high],
        "seconds": answered - began, "seconds_of_checks": checked - answered,
    }  # fmt: skip
    model = found.of_model.interval
    kept["least_squares"] = None if model is None else [model.value, model.low, model.high]
    return kept


def digest() -> str:
    """Of the library's code."""
    found = hashlib.sha256()
    for path in sorted(Path(tlstd.__file__).parent.rglob("*.py")):
        found.update(path.read_bytes())
    return found.hexdigest()[:12]


def lines(kept: dict[str, dict[str, Any]], version: str, n_logs: int) -> list[list[str]]:
    """The table of all cells of which there are logs, by the first ``n_logs``."""
    rows = []
    for name, problem in problems().items():
        for n in EPISODES:
            keys = [f"{version} {name} {n} {number}" for number in range(n_logs)]
            some = [kept[key] for key in keys if key in kept]
            if some:
                rows.append([problem.words, str(n), *_cells(some, problem)])
    return rows


def _cells(some: list[dict[str, Any]], problem: Problem) -> list[str]:
    shown, on_policy = [], "policy" not in problem.options
    rungs = Counter(one["rung"] for one in some)
    names = ["answer", "least_squares", *(["returns"] if on_policy else [])]
    found = {name: np.array([one[name] for one in some if one[name] is not None]) for name in names}
    plain = np.array([one["returns"] for one in some])
    unit = float(np.median(plain[:, 2] - plain[:, 1]))
    for name in ("answer", "least_squares"):
        value, low, high = found[name].T
        inside = np.mean((low <= problem.truth) & (problem.truth <= high))
        error = np.sqrt(np.mean((value - problem.truth) ** 2))
        shown.append(f"{inside:.2f}, {np.median(high - low) / unit:.2f}, {error:.3g}")
    returned = np.sqrt(np.mean((plain[:, 0] - problem.truth) ** 2))
    shown.append(f"{returned:.3g}" if on_policy else "")
    lights = Counter(one["light"] for one in some)
    colours = ", ".join(str(lights[colour]) for colour in ("green", "amber", "red"))
    seconds = np.median([[one["seconds"], one["seconds_of_checks"]] for one in some], axis=0)
    words = ", ".join(f"{rung} {count}" if len(rungs) > 1 else rung for rung, count in rungs.most_common())
    return [words, *shown, colours, f"{seconds[0]:.2f}, {seconds[1]:.2f}"]


HEAD = [
    "problem",
    "episodes",
    "rung",
    "answer: coverage, width, RMSE",
    "least squares: coverage, width, RMSE",
    "RMSE of the mean of returns",
    "green, amber, red",
    "CPU seconds: answer, checks",
]


def main(path: Path, n_logs: int, word: str = "") -> None:
    """Measure what is missing, and print the table; write it, if there is enough of every cell."""
    version = digest()
    kept = {}
    if path.exists():
        kept = {one["key"]: one for one in map(json.loads, path.read_text().splitlines())}
    for number in range(n_logs):
        for i, (name, problem) in enumerate(problems().items()):
            for n in EPISODES if word in name else ():
                key = f"{version} {name} {n} {number}"
                if key in kept:
                    continue
                kept[key] = {"key": key, **measured(problem, n, [i, n, number])}
                with path.open("a") as file:
                    file.write(json.dumps(kept[key]) + "\n")
    made = table(HEAD, lines(kept, version, n_logs))
    print(made)
    if n_logs >= QUICK and not word:
        write_tables(DOCS / "trust.md", {"ladder": made})


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else QUICK, *sys.argv[3:4])
