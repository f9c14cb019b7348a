"""Task: learn on a small process that is known exactly, and measure the error of values and the projected error."""

from __future__ import annotations

from typing import Any

import numpy as np

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.data.transitions import Transitions
from tlstd.domains import MarkovRewardProcess
from tlstd_lab.learning import make
from tlstd_lab.problems import process_of
from tlstd_lab.processes.spiral import START as SPIRAL_START
from tlstd_lab.processes.spiral import spiral_weights


def stability(settings: dict[str, Any], seed: int) -> dict[str, IntArray | FloatArray]:
    """Errors at the start and after each of ``samples`` samples.

    ``rmsve`` is the root of the mean squared error of values, ``rmspbe`` that of the mean squared projected Bellman
    error, both weighted by how often the stream visits the states, at λ = 0. Settings: ``process`` (one of
    ``problems.PROCESSES``), ``estimator`` (its class may be "spiral": TD on the curve), ``samples``.
    """
    process, samples = process_of(settings["process"]), settings["samples"]
    steps = process.sample(samples[-1], np.random.default_rng(seed))
    estimator = dict(settings["estimator"])
    if estimator["class"] == "spiral":
        weights = td_on_the_curve(steps, estimator["step_size"], samples)
    else:
        model, weights, start = make(estimator, process.n_features), [np.zeros(process.n_features)], 0
        for stop in samples:
            model.update_many(steps[start:stop])
            weights.append(model.weights)
            start = stop
    measured = np.array([_errors(process, w) for w in weights])
    return {"samples": np.array([0, *samples]), "rmsve": measured[:, 0], "rmspbe": measured[:, 1]}


def projected_area(settings: dict[str, Any], seed: int) -> dict[str, IntArray | FloatArray]:
    """``rmspbe`` of :func:`stability` at the start, in the mean over the stream (``area``) and at the end.

    Settings: ``process`` and ``estimator`` as there, ``steps``, and ``every`` how many of them it is measured.
    """
    samples = list(range(settings["every"], settings["steps"] + 1, settings["every"]))
    errors = stability({**settings, "samples": samples}, seed)["rmspbe"]
    return {"start": errors[:1], "area": errors.mean(keepdims=True), "end": errors[-1:]}


def td_on_the_curve(steps: Transitions, step_size: float, samples: list[int]) -> list[FloatArray]:
    """TD(0) of the one parameter θ of the spiral: weights, moved as the rewards are, at the start and at ``samples``.

    A step moves the values by at most a tenth of the circle, so that it follows the curve.
    """
    X, X_next = np.asarray(steps.X), np.asarray(steps.X_next)
    theta, found, origin = 0.0, [np.zeros(2)], np.array(SPIRAL_START)
    for t in range(len(steps)):
        point, tangent = spiral_weights(theta)
        w = point - origin
        delta = steps.rewards[t] + steps.discounts[t] * (X_next[t] @ w) - X[t] @ w
        theta += float(np.clip(step_size * delta * (X[t] @ tangent), -0.6, 0.6))
        if t + 1 in samples:
            found.append(spiral_weights(theta)[0] - origin)
    return found


def _errors(process: MarkovRewardProcess, weights: FloatArray) -> tuple[float, float]:
    frequency, X = process.state_distribution(), process.X
    A, b = process.system(0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        value = float(np.sqrt(frequency @ (X @ weights - process.values()) ** 2))
        left = b - A @ weights
        square = float(left @ np.linalg.pinv(X.T @ (frequency[:, None] * X)) @ left)
        projected = float(np.sqrt(max(square, 0.0)))  # NaN stays NaN
    return _finite(value), _finite(projected)


def _finite(number: float) -> float:
    return number if np.isfinite(number) else np.inf
