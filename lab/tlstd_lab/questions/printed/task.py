"""Task: the paper's algorithms in dense matrices, as printed or corrected."""

from __future__ import annotations

from typing import Any

import numpy as np

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.data.vectors import SparseVector, Vector
from tlstd_lab.problems import problem, stream
from tlstd_lab.reference import ReferenceTLSTD


def curve(settings: dict[str, Any], seed: int) -> dict[str, IntArray | FloatArray]:
    """RMSE and loss of orthogonality max|UᵀU - I| after each of ``samples``.

    Settings: ``problem``, ``rank``, ``lambda_``, ``rcond``, ``mini_batch`` (k = r, otherwise k = 1), ``as_printed``.
    """
    made, samples = problem(settings["problem"]), settings["samples"]
    options = {name: settings[name] for name in ("lambda_", "rcond", "mini_batch", "as_printed")}
    model = ReferenceTLSTD(made.features.n_features, settings["rank"], **options)
    errors, losses, done = [], [], 0
    for stop in samples:
        for t in stream(settings["problem"], samples[-1], seed)[done:stop]:
            model.update(
                _array(t.x), float(t.reward), _array(t.x_next), discount=t.discount, trace_discount=t.trace_discount
            )
        done = stop
        errors.append(made.rmse(made.X @ model.weights))
        losses.append(float(np.abs(model.U.T @ model.U - np.eye(model.U.shape[1])).max(initial=0.0)))
    return {"samples": np.array(samples), "rmse": np.array(errors), "orthogonality": np.array(losses)}


def _array(x: Vector) -> FloatArray:
    return x.toarray() if isinstance(x, SparseVector) else np.asarray(x)
