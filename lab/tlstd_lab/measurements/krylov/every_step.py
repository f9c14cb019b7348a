"""10,000 samples of energy storage with a prediction at every step: errors and CPU time, t-LSTD (rank 40) too."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tlstd import TLSTD, KrylovLSTD
from tlstd.domains.energy_storage import EnergyStorage
from tlstd.estimators.base import LinearEstimator
from tlstd.krylov.krylov_lstd import Auto
from tlstd.streams.simulated import encode, trajectory
from tlstd_lab.bench.timing import timed
from tlstd_lab.energy_programme import exact_values, optimal_policy
from tlstd_lab.measurements.krylov.topic import DIMENSION, ENERGY_SAMPLES, LAMBDA, REPEATS, Data, Topic
from tlstd_lab.measurements.krylov.tuned_td import LARGEST
from tlstd_lab.problems import Problem, problem
from tlstd_lab.tables import table, verdict


class Learner(NamedTuple):
    """A line of the table."""

    name: str
    make: Callable[[Problem], LinearEstimator]
    repeats: int = REPEATS
    judged: bool = False
    """Whether it has targets against t-LSTD."""


def krylov(made: Problem, dimension: int | Auto) -> KrylovLSTD:
    return KrylovLSTD(made.features.n_features, lambda_=LAMBDA, dimension=dimension, reads="stream")


T_LSTD = Learner("t-LSTD, rank 40", lambda made: TLSTD(made.features.n_features, 40, lambda_=LAMBDA, buffer_size=40), 1)
LEARNERS = (
    Learner("Krylov LSTD, stream, dimension 8", lambda made: krylov(made, DIMENSION), judged=True),
    Learner("Krylov LSTD, stream, auto", lambda made: krylov(made, "auto"), judged=True),
    Learner("TD, α=0.5/active", LARGEST.model),
    T_LSTD,
)


def measure() -> Data:
    made, n, domain = problem("energy"), ENERGY_SAMPLES[-1], EnergyStorage()
    policy = optimal_policy(domain)
    path = trajectory(domain, policy, n_steps=n, seed=0)
    stream = encode(path, made.features, domain)
    truth = exact_values(domain, policy, path.states[path.rows + 1])
    found = {}
    for learner in LEARNERS:
        learner.make(made).update_and_predict(stream[:50])  # compiles
        times = []
        for _ in range(learner.repeats):
            model = learner.make(made)
            seconds, values = timed(lambda model=model: model.update_and_predict(stream))  # type: ignore[misc]
            times.append(seconds)
        wrong = values - truth
        found[learner.name] = {
            "seconds": float(np.median(times)),
            "rmse": made.rmse(model.predict(made.X)),
            "rmse_of_predictions": float(np.sqrt(np.mean(wrong**2))),
            "rmse_of_later_predictions": float(np.sqrt(np.mean(wrong[n // 2 :] ** 2))),
        }
    return found


def in_words(data: Data) -> str:
    theirs = data[T_LSTD.name]
    rows = []
    for learner in LEARNERS:
        row, ratios = data[learner.name], ["", ""]
        if learner.judged:
            ratios = [verdict(row["rmse"] / theirs["rmse"], 0.5), verdict(row["seconds"] / theirs["seconds"], 0.02, 3)]
        rows.append([learner.name, f"{row['rmse']:.0f}", ratios[0], f"{row['rmse_of_predictions']:.0f}",
                     f"{row['rmse_of_later_predictions']:.0f}", f"{row['seconds']:.3g} s", ratios[1]])  # fmt: skip
    head = ["", "RMSE at the end", "/ t-LSTD", "of the 10,000 predictions", "of the last 5,000", "CPU time", "/ t-LSTD"]
    return table(head, rows)


TOPIC = Topic("every-step", measure, in_words)
