"""100 general value functions of 5 discounts from one stream: a horde beside 100 models, and whether they agree.

uv run python -m tlstd_lab.measurements.horde          about five minutes
uv run python -m tlstd_lab.measurements.horde steps    what one step from Python takes, predictions read

SwiftTD is measured if this version has it.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys
from collections.abc import Callable
from functools import partial

import numpy as np

import tlstd
from tlstd import (
    LSTD,
    RBF,
    TD,
    TLSTD,
    FeatureMap,
    Horde,
    KrylovLSTD,
    Question,
    Steps,
    TileCoder,
    Transition,
    TrueOnlineTD,
)
from tlstd.core.arrays import FloatArray
from tlstd.domains.mountain_car import MountainCar
from tlstd.estimators.base import LinearEstimator
from tlstd.streams import trajectory
from tlstd_lab.bench.timing import timed

CAR = MountainCar()
DISCOUNTS = (0.0, 0.5, 0.9, 0.97, 0.99)
PLACES = np.linspace(-1.2, 0.6, 20)
N_STEPS, REPEATS = 4_000, 3
SLOW = ("t-LSTD", "LSTD", "Krylov")
"""Measured once, and of the single models a fifth, as many of each discount."""
MODELS: dict[str, Callable[[int], LinearEstimator]] = {
    "TD": lambda d: TD(d, step_size=0.01, lambda_=0.9),
    "true-online TD": lambda d: TrueOnlineTD(d, step_size=0.01, lambda_=0.9),
    "t-LSTD, rank 50": lambda d: TLSTD(d, 50, lambda_=0.9),
    "LSTD": lambda d: LSTD(d, lambda_=0.9),
    "Krylov LSTD, dimension 20": lambda d: KrylovLSTD(d, lambda_=0.9, dimension=20),
}
if hasattr(tlstd, "SwiftTD"):
    MODELS["SwiftTD"] = lambda d: getattr(tlstd, "SwiftTD")(d, lambda_=0.9)  # noqa: B009 - not in every version


def questions() -> list[Question]:
    """How often the car will be near each of 20 places, for each discount."""
    return [Question(f"near {i}", gamma) for gamma in DISCOUNTS for i in range(PLACES.size)]


def stream(n_steps: int) -> Steps:
    path = trajectory(CAR, n_steps=n_steps, seed=0)
    after = path.states[path.rows + 1]
    near = (np.abs(after[:, :1] - PLACES) < 0.1).astype(float)
    return Steps(
        path.states[path.rows],
        after,
        terminated=path.terminated,
        truncated=path.truncated,
        columns={f"near {i}": near[:, i] for i in range(PLACES.size)},
    )


def one_by_one(features: FeatureMap, make: Callable[[int], LinearEstimator], asked: list[Question]) -> list[Horde]:
    return [Horde(features, [question], make(features.n_features)) for question in asked]


def learned(hordes: list[Horde], steps: Steps) -> FloatArray:
    """Weights of all, (d, predictions)."""
    for horde in hordes:
        horde.update_many(steps)
    return np.concatenate([horde.weights for horde in hordes], axis=1)


def batches() -> None:
    maps: dict[str, FeatureMap] = {
        "1,000 tiles": TileCoder(CAR.low, CAR.high, tiles=10, tilings=10),
        "256 RBFs": RBF(CAR.low, CAR.high, grid=16, width=0.12),
    }
    steps, asked = stream(N_STEPS), questions()
    print(f"{'':12} {'':26} {'horde':>12} {'100 models':>12} {'ratio':>6} {'largest difference':>19}")
    for kind, features in maps.items():
        for name, make in MODELS.items():
            learned([Horde(features, asked, make(features.n_features))], steps[:500])  # compiles
            learned(one_by_one(features, make, asked[:1]), steps[:500])
            times, differences = [], []
            slow = name.startswith(SLOW)
            for _ in range(1 if slow else REPEATS):
                together = [Horde(features, asked, make(features.n_features))]
                horde, weights = timed(partial(learned, together, steps))
                some = asked[::5] if slow else asked
                apart = one_by_one(features, make, some)
                alone, others = timed(partial(learned, apart, steps))
                times.append((horde, alone * len(asked) / len(some)))
                same = weights[:, :: len(asked) // len(some)]
                differences.append(np.abs(same - others).max() / np.abs(others).max())
            one, many = 1e6 * np.median(times, axis=0) / N_STEPS
            print(
                f"{kind:12} {name:26} {one:9.1f} µs {many:9.0f} µs {many / one:6.1f} {max(differences):19.1e}",
                flush=True,
            )


def step_by_step(horde: Horde, steps: Steps) -> None:
    for t in range(len(steps)):
        horde.update(
            steps.observations[t],
            steps.next_observations[t],
            terminated=steps.terminated[t],
            truncated=steps.truncated[t],
            columns={name: values[t] for name, values in steps.columns.items()},
        )
        horde.predict(steps.next_observations[t])


def models_step_by_step(models: list[tuple[LinearEstimator, int, float]], features: FeatureMap, steps: Steps) -> None:
    """The same by hand: 100 models, each with its own transition, and what they say; features encoded once."""
    x = features.encode(steps.observations[0])
    for t in range(len(steps)):
        x_next = features.encode(steps.next_observations[t])
        for model, place, gamma in models:
            discount = 0.0 if steps.terminated[t] else gamma
            reward = steps.columns[f"near {place}"][t]
            model.update(Transition(x, reward, x_next, discount=discount, trace_discount=gamma))
            model.predict(x_next)
        x = x_next


def single_steps() -> None:
    features = TileCoder(CAR.low, CAR.high, tiles=10, tilings=10)
    steps = stream(700)
    print(f"{'':26} {'horde':>12} {'100 models':>12}")
    for name in ("TD", "true-online TD", "SwiftTD"):
        if name in MODELS:
            horde = Horde(features, questions(), MODELS[name](features.n_features))
            models = [(MODELS[name](features.n_features), i, gamma) for gamma in DISCOUNTS for i in range(PLACES.size)]
            step_by_step(horde, steps[:100])
            models_step_by_step(models, features, steps[:100])
            times = []
            for first in (100, 300, 500):
                part = steps[first : first + 200]
                together = timed(partial(step_by_step, horde, part))[0]
                times.append((together, timed(partial(models_step_by_step, models, features, part))[0]))
            one, many = 1e6 * np.median(times, axis=0) / 200
            print(f"{name:26} {one:9.0f} µs {many:9.0f} µs", flush=True)


if __name__ == "__main__":
    single_steps() if sys.argv[1:] == ["steps"] else batches()
