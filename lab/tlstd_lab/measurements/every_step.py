"""What a value at every step costs: CPU time of ``update_and_predict``, and how much of it is not the reads.

uv run python -m tlstd_lab.measurements.every_step          # about two and a half minutes of one core
uv run python -m tlstd_lab.measurements.every_step tlstd    # only exact and projected reads of t-LSTD: seconds
uv run python -m tlstd_lab.measurements.every_step long     # only long streams of Krylov LSTD: half a minute
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from itertools import product
from statistics import fmean, median
from time import process_time
from typing import Any

from tlstd import ATD, ILSTD, LSTD, TD, TLSTD, Decay, Handover, KrylovLSTD, Replay, Transitions, TrueOnlineTD
from tlstd.estimators.base import LinearEstimator
from tlstd_lab.bench.timing import Side, interleaved
from tlstd_lab.problems import problem, stream
from tlstd_lab.tables import row, table

WARM, STEPS, FEWER, REPEATS = 1_000, 1_000, 20, 3
"""Samples before, samples that are timed, as many where each takes a solution, and how often."""


def loops(n: int) -> dict[str, Callable[[], LinearEstimator]]:
    """Estimators with a compiled loop."""
    return {
        "TD": lambda: TD(n, step_size=0.02, lambda_=0.9),
        "true-online TD": lambda: TrueOnlineTD(n, step_size=0.02, lambda_=0.9),
        "iLSTD": lambda: ILSTD(n, step_size=Decay(0.01, 1_000), lambda_=0.9),
        "LSTD, recursive": lambda: LSTD(n, lambda_=0.9, solver="recursive"),
        "Krylov LSTD, stream, dimension 8": lambda: KrylovLSTD(n, lambda_=0.9, dimension=8, reads="stream"),
        "t-LSTD, rank 40, projected": lambda: TLSTD(n, 40, lambda_=0.9, reads="projected"),
        "Handover to TD": lambda: Handover(
            KrylovLSTD(n, lambda_=0.9, dimension=8, reads="stream"), TD(n, step_size=0.02, lambda_=0.9), after=1_500
        ),
        "Replay, 1 pass": lambda: Replay(TD(n, step_size=0.02, lambda_=0.9), passes=1),
    }


def solving_updates(n: int) -> dict[str, Callable[[], LinearEstimator]]:
    """Estimators that take a solution in ``update``, so that reads are no share of their own."""
    return {"ATD, rank 40": lambda: ATD(n, 40, step_size=Decay(1.0, 10), lambda_=0.9, eta=0.001)}


def solutions(n: int) -> dict[str, Callable[[], LinearEstimator]]:
    """Estimators whose values take a solution each."""
    return {
        "t-LSTD, rank 40": lambda: TLSTD(n, 40, lambda_=0.9),
        "t-LSTD, rank 40, buffer 40": lambda: TLSTD(n, 40, lambda_=0.9, buffer_size=40),
        "LSTD": lambda: LSTD(n, lambda_=0.9),
        "LSTD, ridge": lambda: LSTD(n, lambda_=0.9, ridge=0.01),
        "Krylov LSTD, batch, dimension 8": lambda: KrylovLSTD(n, lambda_=0.9, dimension=8),
        'Krylov LSTD, batch, "auto"': lambda: KrylovLSTD(n, lambda_=0.9),
        "Replay, 3 passes": lambda: Replay(TD(n, step_size=0.02, lambda_=0.9), passes=3),
    }


def per_step(make: Callable[[], LinearEstimator], all_steps: Transitions, steps: int) -> tuple[float, float]:
    """Median CPU time of a step in microseconds: with a value each, and by ``update`` alone."""
    model, part = make(), all_steps[WARM : WARM + steps]
    model.update_many(all_steps[:WARM])
    sides = [
        Side("with values", steps, lambda: partial(deepcopy(model).update_and_predict, part)),
        Side("without", steps, lambda: partial(_one_by_one, deepcopy(model), part)),
    ]
    both, alone = (1e6 * median(times.cpu) / steps for times in interleaved(sides, REPEATS))
    return both, alone


def _one_by_one(model: LinearEstimator, part: Transitions) -> None:
    for transition in part:
        model.update(transition)


def tlstd_reads() -> None:
    """Exact and projected reads of t-LSTD: time of a step, and error of the values at moments all over the buffer."""
    print(table(["", "error, exact", "projected", "a step, µs, exact", "projected"], []))
    for name in ("car-tiles", "car-rbf"):
        made = problem(name)
        steps = stream(name, 4_000, 0)
        moments, errors, times = range(500, 4_001, 35), [], []
        for reads in ("exact", "projected"):
            make = partial(TLSTD, made.features.n_features, 40, lambda_=0.9, reads=reads)
            model, found = make(), []
            for moment in moments:
                model.update_many(steps[model.n_updates : moment])
                found.append(made.rmse(model.predict(made.X)))
            errors.append(fmean(found))
            times.append(per_step(make, steps, FEWER if reads == "exact" else STEPS)[0])
        print(row([made.title, *(f"{number:.3g}" for number in (*errors, *times))]), flush=True)


def long_streams() -> None:
    """``update_and_predict`` before and after samples are folded, energy storage: time of a step, error, memory."""
    made = problem("energy")
    n = made.features.n_features
    steps = stream("energy", 50_000, 0)
    models: dict[str, Callable[[], LinearEstimator]] = {"TD": lambda: TD(n, step_size=0.5 / 33, lambda_=0.9)}
    for dimension, kept in product((8, "auto"), (8_192, 16_384)):
        options: dict[str, Any] = {"lambda_": 0.9, "dimension": dimension, "reads": "stream", "max_samples": kept}
        models[f"dimension {dimension}, {kept:,} kept"] = partial(KrylovLSTD, n, **options)
    print(table(["", "µs a step, to 10,000", "from there to 50,000", "RMSE", "MB"], []))
    for name, make in models.items():
        make().update_and_predict(steps[:20_000])  # compiles
        model, times = make(), []
        for part in (steps[:10_000], steps[10_000:]):
            start = process_time()
            model.update_and_predict(part)
            times.append(1e6 * (process_time() - start) / len(part))
        error = made.rmse(model.predict(made.X))
        numbers = (f"{times[0]:.3g}", f"{times[1]:.3g}", f"{error:.1f}", f"{1e-6 * model.nbytes:.1f}")
        print(row([name, *numbers]), flush=True)


def main() -> None:
    """Measure and print the tables."""
    parts: dict[str, Callable[[], None]] = {"costs": costs, "tlstd": tlstd_reads, "long": long_streams}
    for name in sys.argv[1:] or parts:
        parts[name]()


def costs() -> None:
    """What a step with a value costs each estimator."""
    n = problem("car-tiles").features.n_features
    steps = stream("car-tiles", WARM + STEPS, 0)
    print(table(["", "a step, µs", "without reads, from Python, µs", "share"], []))
    for made, n_steps, shares in (
        (loops(n), STEPS, False),
        (solving_updates(n), FEWER, False),
        (solutions(n), FEWER, True),
    ):
        for name, make in made.items():
            both, alone = per_step(make, steps, n_steps)
            print(row([name, f"{both:.3g}", f"{alone:.3g}", f"{alone / both:.1%}" if shares else ""]), flush=True)


if __name__ == "__main__":
    main()
