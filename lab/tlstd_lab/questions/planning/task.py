"""Errors on a random walk whose features may hide the state."""

from __future__ import annotations

from typing import Any

import numpy as np

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.data.transitions import Transitions
from tlstd.domains.random_walk import random_walk
from tlstd_lab.learning import make


def planning(settings: dict[str, Any], seed: int) -> dict[str, IntArray | FloatArray]:
    """RMSE over the states of a random walk, γ=1, after each of ``samples`` (rising) samples.

    Settings: ``states`` of the walk, ``group``, how many neighbouring states have one feature together, ``estimator``
    (see :func:`tlstd_lab.learning.make`) and ``samples``.
    """
    chain = random_walk(settings["states"])
    of_state = np.arange(chain.n_states) // settings["group"]
    features = np.eye(of_state[-1] + 1)[of_state]
    steps = chain.sample(settings["samples"][-1], np.random.default_rng(seed))
    steps = Transitions(
        np.asarray(steps.X) @ features,
        steps.rewards,
        np.asarray(steps.X_next) @ features,
        discounts=steps.discounts,
        trace_discounts=steps.trace_discounts,
    )
    model, errors, start = make(settings["estimator"], features.shape[1]), [], 0
    for stop in settings["samples"]:
        model.update_many(steps[start:stop])
        with np.errstate(over="ignore", invalid="ignore"):
            error = float(np.sqrt(np.mean((model.predict(features) - chain.values()) ** 2)))
        errors.append(error if np.isfinite(error) else np.inf)
        start = stop
    return {"samples": np.array(settings["samples"]), "rmse": np.array(errors)}
