"""Shared code of the estimators that keep a model of the features in full and plan with it at every step."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from tlstd.core import parameters
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.growing import enlarged
from tlstd.data.batch import Batch, CSRArrays, packed
from tlstd.data.feature_index import FeatureIndex
from tlstd.errors import CapacityError
from tlstd.estimators.base import synchronized
from tlstd.estimators.step_sizes import StepSize
from tlstd.estimators.stepping import SteppingEstimator

MAX_PLANS = 10_000
"""More planning steps a sample are refused: a file that asks for a million would take minutes a sample."""

_WORK = 1 << 26  # entries of the matrix, read once for each step of planning, between two moments for an interruption


class PlanningEstimator(SteppingEstimator):
    """Base of the estimators with a model (n, n), a vector of the rewards (n, m) and weights, over the features seen.

    ``_MATRIX`` is the attribute of the model. A subclass runs samples in one compiled call (``_run``) and says what is
    on the diagonal of a model that knows nothing of a feature (``_diagonal``).
    """

    _MATRIX: ClassVar[str]

    def __init__(
        self,
        n_features: int,
        *,
        step_size: StepSize,
        beta: float,
        planning_steps: int,
        lambda_: float,
        n_targets: int,
        memory_limit: int,
    ) -> None:
        super().__init__(n_features, step_size=step_size, lambda_=lambda_, n_targets=n_targets)
        self.beta = parameters.real("beta", beta, low=1e-100, high=1e100)
        self.planning_steps = parameters.integer("planning_steps", planning_steps, high=MAX_PLANS)
        self.memory_limit = parameters.integer("memory_limit", memory_limit)
        self._seen = FeatureIndex(self.n_features)
        self._progress: IntArray = np.zeros(2, dtype=np.int64)  # samples, and rows that they have reached
        setattr(self, self._MATRIX, np.zeros((0, 0)))
        self._b: FloatArray = np.zeros((0, self.n_targets))
        self._w: FloatArray = np.zeros((0, self.n_targets))

    def _count(self) -> int:
        return int(self._progress[0])

    @property
    @synchronized
    def n_seen(self) -> int:
        """Number of distinct features seen so far."""
        return len(self._seen)

    @abstractmethod
    def _diagonal(self) -> float:
        """What is on the model's diagonal for a feature that was not seen."""

    @abstractmethod
    def _run(self, x: CSRArrays, x_next: CSRArrays, batch: Batch, alphas: FloatArray, values: FloatArray) -> None:
        """Learn from a batch whose vectors are given in row coordinates, in one compiled call."""

    def _check_batch(self, batch: Batch) -> None:
        self._check_memory(self._seen.count_with(batch.ids()))

    def _check_memory(self, n: int) -> None:
        if 8 * n * n > self.memory_limit:
            raise CapacityError(
                f"{n} distinct features need {8e-9 * n * n:.1f} GB for the model, over the limit of "
                f"{1e-9 * self.memory_limit:.1f} GB: use TD or TLSTD, or raise memory_limit"
            )

    def _learn(self, batch: Batch) -> None:
        self._learn_and_predict(batch, np.zeros((0, self.n_targets)))

    def _learn_and_predict(self, batch: Batch, values: FloatArray) -> None:
        alphas = self.step_size.values(self._count() + 1, len(batch))  # a function's may still be refused
        x, rows, x_next, next_rows = batch.sparse()
        self._seen.insert(batch.ids_in_order())
        self._grow()
        n_steps = max(1, _WORK // ((10 + len(self._seen)) ** 2 * (1 + self.planning_steps)))
        for start in range(0, len(batch), n_steps):
            part = batch.part(start, start + n_steps)
            s = slice(start, start + n_steps)
            now, then = self._in_rows(x, rows[s]), self._in_rows(x_next, next_rows[s])
            self._run(now, then, part, alphas[s], values[s] if values.size else values)

    def _in_rows(self, csr: CSRArrays, picked: IntArray) -> CSRArrays:
        """The picked vectors in row coordinates; of terminal next rows, which may have others, nothing is used."""
        indptr, ids, vals = packed(csr, picked)
        rows = self._seen.find(ids)
        if (rows < 0).any():  # an entry that has no weight
            vals, rows = np.where(rows < 0, 0.0, vals), np.maximum(rows, 0)
        return indptr, rows, vals

    def _grow(self) -> None:
        n, matrix = len(self._seen), getattr(self, self._MATRIX)
        capacity = matrix.shape[0]
        if n > capacity:
            size = max(n, min(capacity * 5 // 4, self.n_features, int((self.memory_limit / 8) ** 0.5)))
            larger = enlarged(matrix, size, size)
            larger[range(capacity, size), range(capacity, size)] = self._diagonal()
            b, w = enlarged(self._b, size), enlarged(self._w, size)
            self.__dict__.update({self._MATRIX: larger, "_b": b, "_w": w}, **self._more_room(size))

    def _more_room(self, size: int) -> dict[str, Any]:
        """Other attributes that grow along."""
        return {}

    def _begin(self, ids: IntArray, values: FloatArray) -> None:
        self._check_memory(ids.size)
        fresh = {"_b": np.zeros((0, self.n_targets)), "_w": np.zeros((0, self.n_targets)), **self._more_room(0)}
        self.__dict__.update(
            {
                self._MATRIX: np.zeros((0, 0)),
                "_seen": FeatureIndex(self.n_features, ids),
                "_progress": np.array([0, ids.size]),
                **fresh,
            }
        )
        self._grow()
        w = self._w.copy()
        w[: ids.size] = values
        self._w = w

    def _mend(self) -> None:
        self._before = None  # what was learned up to now is in the arrays
        super()._mend()
        self._seen = FeatureIndex(
            self.n_features, self._seen.ids[: self._progress[1]]
        )  # rows come in the order of the samples
        self._grow()

    def _solve(self) -> tuple[IntArray, FloatArray]:
        n = len(self._seen)
        return self._seen.ids.copy(), self._w[:n].copy()
