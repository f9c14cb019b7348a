"""How well held-out data choose: the error of what :func:`tlstd.evaluation.choose` takes over the best in hindsight.

uv run python -m tlstd_lab.measurements.choosing           # about twenty minutes of one core
uv run python -m tlstd_lab.measurements.choosing walk      # only the lines with this word
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tlstd import LSTD, TD, TLSTD, Transitions, random_walk
from tlstd.core.arrays import FloatArray
from tlstd.domains.mdp import MarkovRewardProcess
from tlstd.estimators.base import LinearEstimator
from tlstd.evaluation import choose
from tlstd.streams import record
from tlstd_lab.problems import problem
from tlstd_lab.processes.garnet import garnet, garnet_off_policy
from tlstd_lab.tables import row, table

CUTOFFS = (0.1, 0.01, 3e-3, 1e-3, 1e-4, 1e-5, 1e-6, 0.0)
LAMBDAS = (0.0, 0.6, 0.9, 1.0)
STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
SEEDS = (0, 1)
MOST_FOR_LSTD = 10_000
"""Features for which LSTD's n × n matrix is decomposed again and again."""


class Source(NamedTuple):
    """A stream by its seed, and the error of a model."""

    n_features: int
    sample: Callable[[int], Transitions]
    error: Callable[[LinearEstimator], float]
    square_length: float


def of_problem(name: str, n: int, cap: int | None = None) -> Source:
    made = problem(name)

    def sample(seed: int) -> Transitions:
        return record(made.domain, made.policy, made.features, n_steps=n, seed=seed, episode_cap=cap)

    return Source(made.features.n_features, sample, lambda m: made.rmse(m.predict(made.X)), made.square_length)


def of_process(process: MarkovRewardProcess, n: int, cap: int | None = None) -> Source:
    share, truth = process.state_distribution(), process.values()

    def error(model: LinearEstimator) -> float:
        with np.errstate(all="ignore"):
            found = float(np.sqrt(share @ (model.predict(process.X) - truth) ** 2))
        return found if np.isfinite(found) else np.inf

    length = float(share @ (process.X**2).sum(axis=1))
    return Source(
        process.n_features, lambda s: process.sample(n, np.random.default_rng(s), truncate_after=cap), error, length
    )


def sparse_garnet(gamma: float, **options: Any) -> MarkovRewardProcess:
    return garnet(
        200, 3, 5, 120, np.random.default_rng(7), gamma=gamma, features="binary", active=8, reward_noise=1.0, **options
    )


def off_policy(mix: float) -> MarkovRewardProcess:
    """The target takes the first of two actions, and the behaviour does so with probability 1/2 + ``mix``/2."""
    n = 100
    target = np.tile([0.9, 0.1], (n, 1))
    behaviour = np.tile([0.5 + 0.4 * mix, 0.5 - 0.4 * mix], (n, 1))
    return garnet_off_policy(
        n, 2, 5, 60, np.random.default_rng(3), gamma=0.9, target=target, behaviour=behaviour, features="binary",
        active=6, reward_noise=0.5,
    )  # fmt: skip


SOURCES: dict[str, Callable[[], Source]] = {
    "Mountain Car tiles, 1,000": lambda: of_problem("car-tiles", 1_000),
    "Mountain Car tiles, 5,000": lambda: of_problem("car-tiles", 5_000),
    "Mountain Car tiles, 5,000, limit 20": lambda: of_problem("car-tiles", 5_000, 20),
    "Mountain Car RBFs, 1,000": lambda: of_problem("car-rbf", 1_000),
    "Mountain Car RBFs, 5,000": lambda: of_problem("car-rbf", 5_000),
    "energy, 4,000": lambda: of_problem("energy", 4_000),
    "random walk 19, 1,000": lambda: of_process(random_walk(19), 1_000),
    "random walk 19, 1,000, limit 30": lambda: of_process(random_walk(19), 1_000, 30),
    "Garnet, γ=0.9, 3,000": lambda: of_process(sparse_garnet(0.9), 3_000),
    "Garnet, γ=0.99, 3,000": lambda: of_process(sparse_garnet(0.99), 3_000),
    "Garnet off-policy, near, 3,000": lambda: of_process(off_policy(0.7), 3_000),
    "Garnet off-policy, far, 3,000": lambda: of_process(off_policy(0.0), 3_000),
}


def factories(source: Source) -> dict[str, tuple[Callable[[Any], LinearEstimator], tuple[Any, ...]]]:
    d = source.n_features
    ranks = tuple(rank for rank in (5, 10, 20, 40, 80, 160, 320) if rank <= d)
    made: dict[str, tuple[Callable[[Any], LinearEstimator], tuple[Any, ...]]] = {
        "TLSTD rank": (lambda rank: TLSTD(d, rank, lambda_=0.9), ranks),
        "LSTD rcond": (lambda rcond: LSTD(d, lambda_=0.9, rcond=rcond), CUTOFFS),
        "LSTD λ": (lambda lambda_: LSTD(d, lambda_=lambda_), LAMBDAS),
        "TD step": (lambda a: TD(d, step_size=a / source.square_length, lambda_=0.9), STEPS),
    }
    if d > MOST_FOR_LSTD:
        del made["LSTD rcond"], made["LSTD λ"]
        made["TLSTD rank"] = made["TLSTD rank"][0], ranks[:6]
    return made


def main(word: str = "") -> None:
    head = ["", "parameter", "best in hindsight", "chosen", "its error over the best", "one standard error", "note"]
    print(table(head, []))
    for name, make in SOURCES.items():
        if word not in name:
            continue
        source = make()
        for parameter, (factory, values) in factories(source).items():
            for seed in SEEDS:
                steps = source.sample(seed)
                errors: list[float] = []
                for value in values:
                    model = factory(value)
                    model.update_many(steps)
                    errors.append(source.error(model))
                choice = choose(factory, values, steps)
                of: FloatArray = np.array(errors)
                best, least = values[int(of.argmin())], of.min()
                ratio, careful = (of[values.index(v)] / least for v in (choice.value, choice.simplest))
                cells = [f"{best:g}: {least:.4g}", f"{choice.value:g}", f"{ratio:.3f}", f"{careful:.3f}", choice.note]
                print(row([name, parameter, *cells]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
