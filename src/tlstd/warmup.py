"""Everything compiled before the first step: a new model that learns from made-up vectors like those that will come."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import scipy.sparse as sp

from tlstd.core.arrays import FloatArray, as_real
from tlstd.data.transitions import Transitions
from tlstd.data.vectors import SparseVector, Vector, as_vector
from tlstd.errors import InvalidInputError
from tlstd.estimators.base import LinearEstimator
from tlstd.features.states import encoded
from tlstd.horde import Horde

_N_STEPS = 96
_AT_MOST = {
    "rank": 3,
    "buffer_size": 24,
    "dimension": 4,
    "max_samples": 32,
    "passes": 2,
    "after": 20,
    "patience": 10,
    "n_targets": 2,
}
"""Of parameters that say how much is computed, and not by which functions."""
_DENSE_FEATURES = 32


def warm_up(model: LinearEstimator | Horde, x: Any) -> None:
    """Compile, or load from numba's cache, what this model needs to learn from and predict vectors like ``x``.

    Without it the first steps do that, one function after the other. The model is not changed: a small clone of it
    learns from made-up transitions, one by one, many at once and with importance ratios, and is asked.

    Parameters
    ----------
    model : estimator of this library, or a :class:`Horde`
    x : 1-D array or SparseVector
        A feature vector as the model will get them, e.g. ``features.encode(state)``; for a horde an observation.

    Example
    -------
    >>> from tlstd import TD, TileCoder, warm_up
    >>> features = TileCoder([0.0], [1.0], tiles=10, tilings=8)
    >>> model = TD(features.n_features, step_size=0.1, lambda_=0.9)
    >>> warm_up(model, features.encode([0.5]))
    >>> model.n_updates
    0
    """
    if isinstance(model, Horde):
        _warm_up_horde(model, x)
        return
    if not isinstance(model, LinearEstimator):
        raise InvalidInputError(f"model is {type(model).__name__}: pass an estimator of this library or a Horde")
    vector = as_vector(x)
    if vector.size != model.n_features:
        raise InvalidInputError(
            f"x has {vector.size} features but the model has n_features={model.n_features}: encode it with the map "
            "that the model was made for"
        )
    _compile(model, vector)


def _warm_up_horde(horde: Horde, observation: Any) -> None:
    """Of models that differ in the number of several targets one is enough."""
    state = as_real(observation, "x")
    encoded(horde.features, np.stack([state, state]))  # checks it
    vector = as_vector(horde.features.encode(state))
    different = {}
    for group in horde.groups:
        different[group.model.n_targets > 1, group.model.get_params(deep=False).get("lambda_")] = group.model
    for model in different.values():
        _compile(model, vector)


def _compile(model: LinearEstimator, vector: Vector) -> None:
    """Let a small clone learn and predict in every way."""
    if isinstance(vector, np.ndarray):
        vector = vector[:_DENSE_FEATURES]
    small = _small(model, vector.size)
    steps = _stream(vector, small.n_targets)
    half = _N_STEPS // 2
    for t in range(half):
        small.update(steps[t])
        small.predict(steps[t].x)
    small.update_many(steps[half:])
    _ = small.predict(steps.X[:2]), small.predict(steps[0].x), small.sparse_weights
    small.update_and_predict(steps[:half])
    with suppress(InvalidInputError):  # true-online TD refuses them
        steps.rhos[:] = 0.5
        small.update_many(steps)
        small.update(steps[0])
        small.predict(steps[0].x)


def _small(model: LinearEstimator, n_features: int) -> LinearEstimator:
    """A clone that computes by the same functions, on less."""
    changes: dict[str, Any] = {}
    for name, value in model.get_params(deep=False).items():
        if isinstance(value, LinearEstimator):
            changes[name] = _small(value, n_features)
        elif name == "n_features":
            changes[name] = n_features
        elif name in _AT_MOST and isinstance(value, int):
            changes[name] = min(value, _AT_MOST[name], n_features if name == "rank" else value)
        elif name == "max_samples":
            changes[name] = _AT_MOST[name] if getattr(model, "reads", None) == "stream" else None
    return model.clone(**changes)


def _stream(x: Vector, n_targets: int) -> Transitions:
    """Made-up episodes of vectors like this one: its entries, at other places."""
    rng = np.random.default_rng(0)
    n = _N_STEPS + 1
    shifts = rng.integers(0, 8, n)
    store: Any
    if isinstance(x, SparseVector):
        indices = np.sort((x.indices[None] + shifts[:, None]) % x.size, axis=1)
        indptr = np.arange(n + 1) * x.nnz
        store = sp.csr_array((np.tile(x.values, n), indices.ravel(), indptr), shape=(n, x.size))
    else:
        store = np.stack([np.roll(x, shift) for shift in shifts])
    ends = np.arange(_N_STEPS) % 12 == 11
    rewards: FloatArray = rng.standard_normal((_N_STEPS, n_targets) if n_targets > 1 else _N_STEPS)
    return Transitions.from_rows(
        store,
        np.arange(_N_STEPS),
        rewards,
        np.arange(1, n),
        discounts=np.where(ends, 0.0, 0.9),
        trace_discounts=np.concatenate([[0.0], np.where(ends, 0.0, 0.9)[:-1]]),
        rhos=np.ones(_N_STEPS),
    )
