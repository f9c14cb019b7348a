"""Weights that were solved for elsewhere: they can be asked, saved and loaded, and learn nothing more."""

from __future__ import annotations

import numpy as np

from tlstd.core import parameters
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.file_format import Saved, State
from tlstd.data.batch import Batch
from tlstd.errors import InvalidInputError
from tlstd.estimators.base import LinearEstimator


class FixedWeights(LinearEstimator):
    """What :func:`tlstd.evaluate` on a cluster returns: the samples have stayed with the workers.

    Parameters
    ----------
    n_features : int
    lambda_ : float in [0, 1]
        With which the weights were found.
    n_targets : int
    """

    def __init__(self, n_features: int, *, lambda_: float, n_targets: int = 1) -> None:
        super().__init__(n_features, lambda_=lambda_, n_targets=n_targets)
        self._ids: IntArray = np.zeros(0, dtype=np.int64)
        self._weights: FloatArray = np.zeros((0, self.n_targets))

    @classmethod
    def of(cls, n_features: int, lambda_: float, ids: IntArray, weights: FloatArray, n_samples: int) -> FixedWeights:
        """Weights (n, n_targets) of the features ``ids``, in rising order, found from so many samples."""
        model = cls(n_features, lambda_=lambda_, n_targets=weights.shape[1])
        model._ids, model._weights = ids.copy(), weights.copy()
        model._n_updates = parameters.integer("n_samples", n_samples)
        return model

    def _check_batch(self, batch: Batch) -> None:
        raise InvalidInputError(
            "these weights were solved for on a cluster, and the samples have stayed there: evaluate the old files and "
            "the new ones together"
        )

    def _learn(self, batch: Batch) -> None:
        raise AssertionError("nothing is admitted")

    def _solve(self) -> tuple[IntArray, FloatArray]:
        return self._ids, self._weights

    def _state(self) -> State:
        return {"ids": self._ids, "weights": self._weights}

    def _restore(self, saved: Saved) -> None:
        ids = saved.integers("ids", None, low=0, high=self.n_features - 1)
        if (ids[1:] <= ids[:-1]).any():
            raise saved.error("ids", "do not rise")
        self._ids, self._weights = ids, saved.floats("weights", ids.size, self.n_targets)
