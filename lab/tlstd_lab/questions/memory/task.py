"""Task: error and size of a model after a stream."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd.core.threads import one_thread
from tlstd_lab.learning import make
from tlstd_lab.problems import problem, stream
from tlstd_lab.questions.contest.methods import scaled


def memory(settings: dict[str, Any], seed: int) -> dict[str, FloatArray]:
    """RMSE after ``n_samples``, and the megabytes that a copy of the model takes (its pickle).

    Settings: ``problem``, ``estimator`` (step sizes are divided by the mean of ‖x‖²), ``n_samples``.
    """
    made = problem(settings["problem"])
    model = make(scaled(settings["estimator"], made.square_length), made.features.n_features)
    with one_thread():
        model.update_many(stream(settings["problem"], settings["n_samples"], seed))
        error = made.rmse(model.predict(made.X))
    return {"rmse": np.array([error]), "megabytes": np.array([len(pickle.dumps(model)) / 1e6])}
