"""What 100 reward signals cost compared with one, from the same stream.

uv run python -m tlstd_lab.measurements.many_predictions          about a minute; learning and one solution are timed
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from collections.abc import Callable

import numpy as np

from tlstd import LSTD, RBF, TD, TLSTD, TileCoder, Transitions, TrueOnlineTD
from tlstd.domains.mountain_car import MountainCar
from tlstd.estimators.base import LinearEstimator
from tlstd.streams import encode, trajectory
from tlstd_lab.bench.timing import timed

CAR = MountainCar()
N_STEPS, REPEATS = 10_000, 5
MODELS: dict[str, Callable[[int, int], LinearEstimator]] = {
    "TD": lambda d, m: TD(d, step_size=0.01, lambda_=0.9, n_targets=m),
    "TrueOnlineTD": lambda d, m: TrueOnlineTD(d, step_size=0.01, lambda_=0.9, n_targets=m),
    "t-LSTD, rank 50": lambda d, m: TLSTD(d, 50, lambda_=0.9, n_targets=m),
    "LSTD": lambda d, m: LSTD(d, lambda_=0.9, n_targets=m),
}


def seconds(model: LinearEstimator, stream: Transitions) -> float:
    def learn_and_read() -> object:
        model.update_many(stream)
        return model.sparse_weights

    return timed(learn_and_read)[0]


def streams(features: TileCoder | RBF) -> dict[int, Transitions]:
    """One stream with its own reward, and with 100: is the car within 0.1 of one of 100 positions?"""
    path = trajectory(CAR, n_steps=N_STEPS, seed=0)
    x = path.states[path.rows + 1, 0]
    near = (np.abs(x[:, None] - np.linspace(-1.2, 0.6, 100)) < 0.1).astype(float)
    return {m: encode(path._replace(rewards=rewards), features, CAR) for m, rewards in ((1, path.rewards), (100, near))}


def main() -> None:
    maps: dict[str, TileCoder | RBF] = {
        "1,000 tiles": TileCoder(CAR.low, CAR.high, tiles=10, tilings=10),
        "1,024 RBFs": RBF(CAR.low, CAR.high, grid=32, width=0.12),
    }
    print(f"{'':12} {'':16} {'1 target':>12} {'100 targets':>12} {'ratio':>6}")
    for kind, features in maps.items():
        data = streams(features)
        for name, make in MODELS.items():
            seconds(make(features.n_features, 1), data[1][:500])  # compiles
            seconds(make(features.n_features, 100), data[100][:500])
            times = np.array(
                [[seconds(make(features.n_features, m), data[m]) for m in (1, 100)] for _ in range(REPEATS)]
            )
            ratios = times[:, 1] / times[:, 0]
            one, many = 1e6 * np.median(times, axis=0) / N_STEPS
            spread = f"({ratios.min():.2f} to {ratios.max():.2f})"
            print(f"{kind:12} {name:16} {one:9.1f} µs {many:9.1f} µs {np.median(ratios):6.2f} {spread}")


if __name__ == "__main__":
    main()
