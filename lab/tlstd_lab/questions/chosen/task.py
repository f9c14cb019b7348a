"""Tasks: the error of every candidate, and the one that held-out data choose."""

from __future__ import annotations

from typing import Any

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd.core.threads import one_thread
from tlstd.estimators.base import LinearEstimator
from tlstd.evaluation import choose
from tlstd.krylov.krylov_lstd import KrylovLSTD
from tlstd_lab.learning import make
from tlstd_lab.problems import problem, stream, visited
from tlstd_lab.questions.dimension.task import columns, path_of, rmse
from tlstd_lab.shared_lstd import sharing


def chosen(settings: dict[str, Any], seed: int) -> dict[str, FloatArray]:
    """RMSE of each candidate, learned from all samples, and which one :func:`tlstd.evaluation.choose` takes.

    Settings: ``problem``, ``n_samples``, ``estimator`` (without the parameter), ``parameter``, ``values``. Columns:
    ``values``; ``rmse`` at the problem's states, ``visited`` at states of another stream; ``chosen``, 1 for the one
    chosen and 0 for others; ``decided``, 0 if the data could not tell.
    """
    name, values = settings["problem"], settings["values"]
    made, there, steps = problem(name), visited(name), stream(name, settings["n_samples"], seed)

    estimator, parameter, n = settings["estimator"], settings["parameter"], made.features.n_features
    shared = sharing(estimator, n) if estimator["class"] == "LSTD" else None

    def model(value: float) -> LinearEstimator:
        return shared(**{parameter: value}) if shared else make(estimator | {parameter: value}, n)

    errors = []
    with one_thread():
        choice = choose(model, values, steps)
        for value in values:
            learned = model(value)
            learned.update_many(steps)
            errors.append((made.rmse(learned.predict(made.X)), there.rmse(learned.predict(there.X))))
    rmses, there_too = np.array(errors).T
    return {
        "values": np.array(values, dtype=np.float64),
        "rmse": rmses,
        "visited": there_too,
        "chosen": np.array([float(value == choice.value) for value in values]),
        "decided": np.full(len(values), float(choice.decided)),
    }


def dimension(settings: dict[str, Any], seed: int) -> dict[str, FloatArray]:
    """The same for the dimension that ``KrylovLSTD`` takes by itself, among all up to ``longest``.

    Settings: ``problem``, ``n_samples``, ``lambda_``, ``longest``.
    """
    name = settings["problem"]
    made, there, steps = problem(name), visited(name), stream(name, settings["n_samples"], seed)
    model = KrylovLSTD(made.features.n_features, lambda_=settings["lambda_"])
    model.update_many(steps)
    model.sparse_weights  # noqa: B018 - the dimension is chosen when it is read
    path = path_of(model, max(settings["longest"], model.chosen_dimension))
    dimensions = np.arange(1, path.dimension + 1)
    found = {"values": dimensions.astype(np.float64)}
    for column, where in (("rmse", made), ("visited", there)):
        on_basis = columns(where, model) @ path.Q.T
        found[column] = np.array([rmse(where, on_basis, path.coordinates(m)) for m in dimensions.tolist()])
    taken = min(model.chosen_dimension, path.dimension)
    found["chosen"] = (dimensions == taken).astype(np.float64)
    return found | {"decided": np.full(dimensions.size, float(model.choices[0].decided))}
