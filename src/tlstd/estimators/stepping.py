"""Shared code of the step-size estimators: a step size, and weights to start from."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from tlstd.core.arrays import FloatArray, IntArray, as_matrix
from tlstd.data.vectors import SparseVector, as_vector
from tlstd.errors import InvalidInputError
from tlstd.estimators.base import LinearEstimator, synchronized
from tlstd.estimators.step_sizes import StepSize, as_given, as_schedule, plain_step_size, with_schedule


class SteppingEstimator(LinearEstimator):
    """Base of the estimators with a step size. A subclass takes given weights over in ``_begin``."""

    def __init__(self, n_features: int, *, step_size: StepSize, lambda_: float, n_targets: int) -> None:
        super().__init__(n_features, lambda_=lambda_, n_targets=n_targets)
        self.step_size = as_schedule(step_size)

    @synchronized
    def start_from(self, weights: Any) -> None:
        """Begin at the given weights instead of zero, e.g. at another estimator's ``sparse_weights``.

        Parameters
        ----------
        weights : (d,) or (d, n_targets) array, SparseVector, or scipy.sparse array (d, n_targets)
            Copied. Only before the first update: the trace and whatever else was learned belong to the
            weights they were learned with.

        Example
        -------
        >>> from tlstd import TD
        >>> model = TD(3, step_size=0.1, lambda_=0.9)
        >>> model.start_from([1.0, 0.0, 2.0])
        >>> model.weights
        array([1., 0., 2.])
        """
        if self._count():
            raise InvalidInputError(
                f"start_from() was called after {self._count()} updates: call it on a new model, before any update"
            )
        ids, values, size = _weight_arrays(weights)
        if (size, values.shape[1]) != (self.n_features, self.n_targets):
            raise InvalidInputError(
                f"the weights are for {size} features and {values.shape[1]} target(s) but this model has n_features="
                f"{self.n_features} and n_targets={self.n_targets}"
            )
        self._begin(ids, values)
        self._solved = None

    @abstractmethod
    def _begin(self, ids: IntArray, values: FloatArray) -> None:
        """Set the weights of the features ``ids`` to ``values`` (n, n_targets), all others to 0; no update came yet."""

    def _arguments(self) -> dict[str, Any]:
        return as_given(super()._arguments())

    def _parameters(self) -> dict[str, Any]:
        return plain_step_size(super()._parameters())

    @classmethod
    def _made(cls, parameters: Mapping[str, Any]) -> LinearEstimator:
        return super()._made(with_schedule(parameters))


def _weight_arrays(weights: Any) -> tuple[IntArray, FloatArray, int]:
    """Ids (k,) and values (k, m) of the features with a weight, and the number of features."""
    if isinstance(weights, SparseVector):
        ids, values, size = weights.indices, weights.values[:, None], weights.size
    elif sp.issparse(weights):
        columns: Any = as_matrix(weights.T, "the transposed weights")  # (m, d): cheap at any d
        ids, at = np.unique(np.asarray(columns.indices), return_inverse=True)
        values, size = np.zeros((ids.size, columns.shape[0])), columns.shape[1]
        values[at, np.repeat(np.arange(columns.shape[0]), np.diff(columns.indptr))] = columns.data
    else:
        dense: Any = as_matrix(weights, "weights") if np.ndim(weights) == 2 else as_vector(weights, "weights")
        ids = np.flatnonzero(dense if dense.ndim == 1 else dense.any(axis=1))
        values, size = dense.reshape(dense.shape[0], -1)[ids], dense.shape[0]
    if not np.isfinite(values).all():
        raise InvalidInputError("the weights are not all finite: start from a model that has not diverged")
    return ids, values, size
