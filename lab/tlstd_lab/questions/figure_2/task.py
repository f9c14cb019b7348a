"""Task: what each number of samples costs, and what error it buys."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from tlstd.core.arrays import FloatArray, IntArray
from tlstd_lab.learning import make
from tlstd_lab.problems import problem, stream

WARM_UP = 400
"""Samples learned from before the clock starts: compilation is not learning."""


def anew(settings: dict[str, Any], seed: int) -> dict[str, IntArray | FloatArray]:
    """RMSE, and CPU seconds, of learning from the first n samples and finding the weights once.

    A new estimator for each n of ``samples`` (rising), so that no n pays for the solutions of others, as it would on
    one learning curve. Other settings: ``problem``, ``estimator`` (see :func:`tlstd_lab.learning.make`), and
    ``length`` of the stream if it is not the last n. Recording and predicting are not timed.
    """
    made, samples = problem(settings["problem"]), settings["samples"]
    steps = stream(settings["problem"], settings.get("length", samples[-1]), seed)
    errors, seconds = [], []
    for n in (WARM_UP, *samples):
        model, part = make(settings["estimator"], made.features.n_features), steps[:n]
        begin = time.process_time()
        model.update_many(part)
        model.sparse_weights  # noqa: B018 - solved when read
        seconds.append(time.process_time() - begin)
        errors.append(made.rmse(model.predict(made.X)))
    return {"samples": np.array(samples), "rmse": np.array(errors[1:]), "seconds": np.array(seconds[1:])}
