"""What a step of TD's relatives costs: CPU time over that of TD for the same samples, in one process, in turn.

uv run python -m tlstd_lab.measurements.td_relatives    # about a minute of one core
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from statistics import median

import numpy as np
import scipy.sparse as sp

from tlstd import GTD2, TD, TDC, TDRC, EmphaticTD, SwiftTD, Transition, Transitions, TrueOnlineTD, random_walk
from tlstd.estimators.base import LinearEstimator
from tlstd_lab.bench.timing import Side, interleaved
from tlstd_lab.problems import stream
from tlstd_lab.tables import table

STEPS, SINGLE, REPEATS = 20_000, 1_500, 9
METHODS: dict[str, Callable[[int, float], LinearEstimator]] = {
    "TD": lambda n, lambda_: TD(n, step_size=0.01, lambda_=lambda_),
    "TrueOnlineTD": lambda n, lambda_: TrueOnlineTD(n, step_size=0.01, lambda_=lambda_),
    "EmphaticTD": lambda n, lambda_: EmphaticTD(n, step_size=0.001, lambda_=lambda_),
    "TDRC": lambda n, lambda_: TDRC(n, step_size=0.01, lambda_=lambda_),
    "TDC": lambda n, lambda_: TDC(n, step_size=0.01, lambda_=lambda_),
    "GTD2": lambda n, lambda_: GTD2(n, step_size=0.01, lambda_=lambda_),
    "SwiftTD": lambda n, lambda_: SwiftTD(n, lambda_=lambda_),
}


def streams() -> Iterator[tuple[str, Transitions]]:
    """A walk with one active feature, Mountain Car's tiles (10 of 1,000) and RBFs, and 10 of 100,000 at random."""
    yield "walk, 19 states", random_walk(19, gamma=0.99).sample(STEPS, np.random.default_rng(0), sparse=True)
    yield "Mountain Car, 1,000 tiles", stream("car-tiles", STEPS, 0)
    yield "Mountain Car, 1,024 RBFs, dense", stream("car-rbf", STEPS // 10, 0)
    rng = np.random.default_rng(0)
    indices = np.sort(rng.integers(0, 10_000, (STEPS + 1, 10)) + 10_000 * np.arange(10), axis=1).ravel()
    X = sp.csr_array((np.ones(indices.size), indices, np.arange(0, indices.size + 1, 10)), shape=(STEPS + 1, 100_000))
    ended, never = rng.random(STEPS) < 0.005, np.zeros(STEPS, dtype=np.bool_)
    rewards = rng.standard_normal(STEPS)
    yield (
        "10 of 100,000",
        Transitions.from_arrays(X[:-1], rewards, X[1:], terminated=ended, truncated=never, gamma=0.99),
    )


def one_by_one(model: LinearEstimator, steps: list[Transition]) -> None:
    """Learn by ``update``."""
    for step in steps:
        model.update(step)


def ratios(steps: Transitions, lambda_: float, *, single: bool) -> list[str]:
    """TD's nanoseconds a step, then the others' over TD's."""
    sides, listed = [], list(steps[:SINGLE]) if single else []
    for name, make in METHODS.items():
        fresh = partial(make, steps.n_features, lambda_)
        if single:
            sides.append(Side(name, SINGLE, lambda fresh=fresh: partial(one_by_one, fresh(), listed)))  # type: ignore[misc]
        else:
            sides.append(Side(name, len(steps), lambda fresh=fresh: partial(fresh().update_many, steps)))  # type: ignore[misc]
    times = interleaved(sides, REPEATS)
    td, *others = (found.cpu for found in times)
    per_step = median(td) / (SINGLE if single else len(steps))
    relative = [median(a / b for a, b in zip(other, td, strict=True)) for other in others]
    return [f"{1e9 * per_step:,.0f} ns", *(f"{ratio:.2f}" for ratio in relative)]


def main() -> None:
    """Print the table."""
    rows = []
    for name, steps in streams():
        rows += [[name, f"{x:g}", "`update_many`", *ratios(steps, x, single=False)] for x in (0.0, 0.5, 0.9)]
        rows.append([name, "0.9", "`update`", *ratios(steps, 0.9, single=True)])
    print(table(["", "λ", "by", *METHODS], rows))


if __name__ == "__main__":
    main()
