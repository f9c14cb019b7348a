"""Whether the draw of random Fourier features matters on energy storage: other frequencies, the same streams.

uv run python -m tlstd_lab.measurements.smooth_maps     # one or two minutes; prints a table, writes nothing

Five maps, each fitted to the observations of the question ``smooth``; the first is the one of its panels. Six streams.
TD has the settings that were tuned for the first map and 10,000 samples.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tlstd.core.threads import one_thread
from tlstd.features.random_fourier import RandomFourier
from tlstd.streams import trajectory
from tlstd.streams.simulated import Trajectory, encode
from tlstd_lab.learning import make
from tlstd_lab.problems import EVALUATION_SEED, FEATURE_SEED, PlainCosines, problem
from tlstd_lab.questions.smooth.settings import METHODS, OURS, PAPERS, name_of
from tlstd_lab.tables import table

MAPS, STREAMS, SAMPLES = 5, 6, (1_000, 10_000)
SHOWN = (name_of(40, PAPERS), name_of(40, OURS), "LSTD", "Krylov LSTD")
ALPHA, N0 = 4.0, 100
"""TD's: in units of 1/‖x‖²."""


def errors(seed: int) -> dict[str, list[float]]:
    """Mean error over the streams after each number of samples, by method, for one draw of the map."""
    made = problem("energy-fourier")

    def path(n: int, seed: int) -> Trajectory:
        return trajectory(made.domain, made.policy, n_steps=n, seed=seed)

    seen = made.domain.observe(path(1_000, FEATURE_SEED).states[:-1])
    features = PlainCosines(RandomFourier.fit(seen, n_features=500, seed=seed))
    X = features.encode_many(made.domain.observe(path(10_000, EVALUATION_SEED).states[::10]))
    settings: dict[str, Mapping[str, Any]] = {name: METHODS[name].estimator for name in SHOWN}
    step_size = [ALPHA / float((X**2).sum(axis=1).mean()), N0]
    settings["TD, tuned for 10,000"] = {"class": "TD", "lambda_": 0.2, "step_size": step_size}
    found: dict[str, list[list[float]]] = {name: [] for name in settings}
    for stream in range(STREAMS):
        steps = encode(path(SAMPLES[-1], stream), features, made.domain)
        for name, estimator in settings.items():
            model, start, row = make(estimator, features.n_features), 0, []
            for n in SAMPLES:
                model.update_many(steps[start:n])
                row.append(made.rmse(model.predict(X)))
                start = n
            found[name].append(row)
    return {name: np.mean(rows, axis=0).tolist() for name, rows in found.items()}


def main() -> None:
    """Print a row per map."""
    with one_thread(), np.errstate(all="ignore"):
        rows = [errors(seed) for seed in range(MAPS)]
    cells = [[str(i), *(" · ".join(f"{e:.0f}" for e in by_n) for by_n in row.values())] for i, row in enumerate(rows)]
    print(table(["map", *rows[0]], cells))


if __name__ == "__main__":
    main()
