"""Tasks: learn from a stream and measure the error on the way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tlstd.classic.lstd import LSTD
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.svd import inverse_factors, svd
from tlstd.errors import InvalidParameterError
from tlstd.estimators.base import LinearEstimator
from tlstd.estimators.registry import CLASSES
from tlstd.estimators.step_sizes import Decay
from tlstd_lab.problems import problem, stream


def make(estimator: Mapping[str, Any], n_features: int) -> LinearEstimator:
    """An estimator from settings: its class under ``"class"``, the other settings its constructor's arguments.

    A step size that is a pair is ``Decay(alpha0, n0)``; an argument with a ``"class"`` is an estimator itself.

    Example
    -------
    >>> make({"class": "TD", "lambda_": 0.9, "step_size": [0.1, 100]}, n_features=4).step_size
    Decay(alpha0=0.1, n0=100.0)
    """
    arguments = dict(estimator)
    name = arguments.pop("class", None)
    if name not in CLASSES:
        raise InvalidParameterError(f"there is no estimator {name!r}: choose one of {', '.join(CLASSES)}")
    for key, value in arguments.items():
        if key == "step_size" and isinstance(value, (list, tuple)):
            arguments[key] = Decay(*value)
        elif isinstance(value, Mapping) and "class" in value:
            arguments[key] = make(value, n_features)
    if any(isinstance(value, LinearEstimator) for value in arguments.values()):  # its parts know their features
        return CLASSES[name](**arguments)
    return CLASSES[name](n_features, **arguments)


def curve(settings: dict[str, Any], seed: int) -> dict[str, IntArray | FloatArray]:
    """RMSE after each of ``samples`` samples of a problem.

    Settings: ``problem``, ``estimator`` (see :func:`make`), ``samples`` (rising), and ``length`` of the stream if it is
    not the last of them.
    """
    made, samples = problem(settings["problem"]), settings["samples"]
    steps = stream(settings["problem"], settings.get("length", samples[-1]), seed)
    model = make(settings["estimator"], made.features.n_features)
    errors, start = [], 0
    for stop in samples:
        model.update_many(steps[start:stop])
        errors.append(made.rmse(model.predict(made.X)))
        start = stop
    return {"samples": np.array(samples), "rmse": np.array(errors)}


def cut_once(settings: dict[str, Any], seed: int) -> dict[str, IntArray | FloatArray]:
    """RMSE after each of ``samples`` of the exact A with only its ``rank`` leading singular values inverted."""
    made, samples = problem(settings["problem"]), settings["samples"]
    model, errors, start = LSTD(made.features.n_features, lambda_=settings["lambda_"]), [], 0
    for stop in samples:
        model.update_many(stream(settings["problem"], samples[-1], seed)[start:stop])
        ids, A, b = model.system()
        U, sigma, Vt = svd(A)
        weights = np.zeros((made.features.n_features, 1))
        inverse = inverse_factors(sigma, rcond=model.rcond, rank=settings["rank"])
        weights[ids] = Vt.T @ (inverse[:, None] * (U.T @ b))
        errors.append(made.rmse(np.asarray(made.X @ weights)[:, 0]))
        start = stop
    return {"samples": np.array(samples), "rmse": np.array(errors)}
