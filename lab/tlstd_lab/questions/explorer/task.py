"""Tasks of the rank explorer: what a model has learned after several numbers of samples, and the truth beside it."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlstd.classic.lstd import LSTD
from tlstd.core.arrays import FloatArray
from tlstd.diagnostics import spectrum
from tlstd_lab.learning import make
from tlstd_lab.problems import problem, stream
from tlstd_lab.questions.explorer.settings import view
from tlstd_lab.questions.figure_3.task import warm_up


def explore(settings: dict[str, Any], seed: int) -> dict[str, Any]:
    """Values on the problem's view, singular values, error, memory and CPU time after each of ``samples`` samples.

    Settings: ``problem``, ``estimator`` (TLSTD or LSTD), ``samples`` (rising). Columns of one length, with as many rows
    for each number of ``samples`` as there are states or singular values: ``value`` and ``sigma`` (missing ones NaN),
    and, the same in all rows of a number of samples, ``rmse`` (on the problem's own states), ``nbytes``, ``learning``
    (CPU seconds per sample so far, reading not counted) and ``reading`` (CPU seconds for one solution).
    """
    name, samples = settings["problem"], settings["samples"]
    made, shown = problem(name), view(name)
    steps = stream(name, samples[-1], seed)
    warm_up(name, settings["estimator"])
    model = make(settings["estimator"], made.features.n_features)
    found: list[tuple[FloatArray, FloatArray, dict[str, float]]] = []
    learning, start = 0.0, 0
    for stop in samples:
        begin = time.process_time()
        model.update_many(steps[start:stop])
        learned = time.process_time()
        model.sparse_weights  # noqa: B018 - solved when read
        read = time.process_time()
        learning, start = learning + learned - begin, stop
        numbers = {
            "rmse": made.rmse(model.predict(made.X)),
            "nbytes": float(model.nbytes),
            "learning": learning / stop,
            "reading": read - learned,
        }
        sigma = spectrum(model.system()[1] if isinstance(model, LSTD) else model)
        found.append((model.predict(shown.X), sigma, numbers))
    rows = max(len(array) for value, sigma, _ in found for array in (value, sigma))
    columns = {
        "samples": np.repeat(samples, rows),
        "value": np.concatenate([_padded(value, rows) for value, _, _ in found]),
        "sigma": np.concatenate([_padded(sigma, rows) for _, sigma, _ in found]),
    }
    return columns | {key: np.repeat([numbers[key] for _, _, numbers in found], rows) for key in found[0][2]}


def truth(settings: dict[str, Any], seed: int) -> dict[str, FloatArray]:
    """True values on the view of a ``problem`` and the coordinates of its states; the seed does not matter."""
    shown = view(settings["problem"])
    return {"x": np.repeat(shown.x, shown.y.size), "y": np.tile(shown.y, shown.x.size), "truth": shown.truth}


def _padded(array: FloatArray, rows: int) -> NDArray[np.float32]:
    """As many rows of float32, those that are missing NaN."""
    full = np.full(rows, np.nan, dtype=np.float32)
    full[: len(array)] = array
    return full
