"""Task: how much the predictions change from step to step."""

from __future__ import annotations

from typing import Any

import numpy as np

from tlstd.core.arrays import FloatArray, Matrix
from tlstd.estimators.base import LinearEstimator
from tlstd.truncated.tlstd import TLSTD
from tlstd_lab.learning import make
from tlstd_lab.problems import problem, stream

MOST_STATES = 200
"""States at which predictions are compared; a regular choice of the problem's, if it has more."""


def smoothness(settings: dict[str, Any], seed: int) -> dict[str, FloatArray]:
    """Change of the predictions per step, and their error, over the steps ``start`` to ``stop`` of a stream.

    Settings: ``problem``, ``estimator``, ``start``, ``stop``; and perhaps ``every``, the steps between two reads (the
    predictions stay in between; 1 if left out), ``damping``, the h in σ²/(σ²+(hσ₁)²) by which a t-LSTD model's
    solution is multiplied in each singular direction, and ``averaged``: the mean of all weights read since ``start``.

    Columns of one number: ``change``, the mean over steps of the root mean square (over states) change of the
    predictions, over the root mean square of the last predictions; ``wander``, the sum of these changes over the change
    from ``start`` to ``stop`` (1 on a straight line); ``jump``, the largest change as ``change`` has the mean;
    ``rmse``, the mean error; and ``wobble``, the mean absolute change of the error per step, over the mean error.
    """
    made = problem(settings["problem"])
    steps = stream(settings["problem"], settings["stop"], seed)
    chosen = np.arange(0, made.X.shape[0], max(1, made.X.shape[0] // MOST_STATES))
    X, truth = made.X[chosen], made.truth[chosen]
    model = make(settings["estimator"], made.features.n_features)
    model.update_many(steps[: settings["start"]])
    values = [predictions(model, X, settings.get("damping", 0.0))]
    for stop in range(settings["start"] + 1, settings["stop"] + 1):
        model.update_many(steps[stop - 1 : stop])
        read = (stop - settings["start"]) % settings.get("every", 1) == 0
        values.append(predictions(model, X, settings.get("damping", 0.0)) if read else values[-1])
    return summary(np.array(values), truth, averaged=settings.get("averaged", False))


def predictions(model: LinearEstimator, X: Matrix, damping: float) -> FloatArray:
    """Values of the rows of X, with a t-LSTD model's singular directions damped.

    With w = Σ vᵢ (uᵢᵀb/σᵢ), the damped solution Σ vᵢ uᵢᵀb σᵢ/(σᵢ²+η) is Σ vᵢ (vᵢᵀw) σᵢ²/(σᵢ²+η).
    """
    if damping == 0.0:
        values: FloatArray = model.predict(X)
        return values
    assert isinstance(model, TLSTD)
    ids, _, sigma, V = model.factors()
    factors = sigma**2 / (sigma**2 + (damping * sigma[0]) ** 2)
    weights = np.zeros(model.n_features)
    weights[ids] = V @ (factors * (V.T @ model.weights[ids]))
    return np.asarray(X @ weights)


def summary(values: FloatArray, truth: FloatArray, *, averaged: bool = False) -> dict[str, FloatArray]:
    """The columns of :func:`smoothness` from predictions (reads, states).

    Example
    -------
    >>> straight = np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0], [4.0, 4.0]])
    >>> {name: float(column[0]) for name, column in summary(straight, np.zeros(2)).items()}
    {'change': 0.25, 'wander': 1.0, 'jump': 0.25, 'rmse': 2.5, 'wobble': 0.4}
    """
    if averaged:  # predictions are linear in the weights
        values = np.cumsum(values, axis=0) / np.arange(1, len(values) + 1)[:, None]
    with np.errstate(all="ignore"):
        changes = np.sqrt(np.mean(np.diff(values, axis=0) ** 2, axis=1))
        size = np.sqrt(np.mean(values[-1] ** 2))
        errors = np.sqrt(np.mean((values - truth) ** 2, axis=1))
        columns = {
            "change": changes.mean() / size,
            "wander": changes.sum() / np.sqrt(np.mean((values[-1] - values[0]) ** 2)),
            "jump": changes.max() / size,
            "rmse": errors.mean(),
            "wobble": np.abs(np.diff(errors)).mean() / errors.mean(),
        }
    return {name: np.array([value if np.isfinite(value) else np.inf]) for name, value in columns.items()}
