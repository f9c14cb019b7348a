"""What TD and true-online TD share: weights and one eligibility trace over the features seen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlstd.container import Saved, State
from tlstd.estimators.step_sizes import StepSize
from tlstd.estimators.stepping import SteppingEstimator
from tlstd.kernels import sparse as sparse_kernels
from tlstd.kernels import td as kernels
from tlstd.linalg.batch import Batch, CSRArrays, entries, vector_arrays
from tlstd.linalg.seen import SeenFeatures
from tlstd.types import FloatArray, IntArray, Matrix, Vector

DENSE_FRACTION = 0.25
"""Share of non-zero features from which weights and trace are dense arrays."""

_CHUNK = 1 << 16
"""Feature entries that are translated into rows at once."""


class TDFamily(SteppingEstimator):
    """Base of TD and its relatives: weights and one eligibility trace over the features seen.

    A subclass chooses the algorithm by ``_true_online`` and ``_replacing``; :mod:`tlstd.kernels.td` has the loops and
    says in which form the weights are held.
    """

    _true_online = False
    _replacing = False

    def __init__(self, n_features: int, *, step_size: StepSize, lambda_: float, n_targets: int) -> None:
        super().__init__(n_features, step_size=step_size, lambda_=lambda_, n_targets=n_targets)
        self._seen = SeenFeatures()
        self._is_dense: bool | None = None
        # W = U + y Sᵀ, z = P y; dense: W = U, z = y, and U in Fortran's order
        self._U: FloatArray = np.zeros((0, self.n_targets))
        self._S: FloatArray = np.zeros(self.n_targets)
        self._y: FloatArray = np.zeros(0)
        self._listed: NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)
        self._active: IntArray = np.zeros(0, dtype=np.int64)
        self._n_active: IntArray = np.zeros(1, dtype=np.int64)
        self._scale: FloatArray = np.array([1.0, 0.0])
        self._v_old: FloatArray = np.zeros(self.n_targets)

    @property
    def n_seen(self) -> int:
        """Number of distinct features that were active at the start of a step (each has a weight)."""
        return len(self._seen)

    def _begin(self, ids: IntArray, values: FloatArray) -> None:
        self._seen, self._U = SeenFeatures(), np.zeros((0, self.n_targets))
        rows = self._rows(ids)
        self._U[rows] = values

    # --- learning ---------------------------------------------------------------------------------------------------

    def _learn(self, batch: Batch) -> None:
        alphas = self.step_size.values(self.n_updates + 1, len(batch))  # may raise: before anything changes
        steps = np.array([alphas, batch.discounts, batch.trace_discounts * self.lambda_, batch.rhos])
        rewards = np.array(batch.rewards)  # what the loops get is C-ordered and writable, so that they compile once
        if self._is_dense is None:
            self._start(batch.part(0, 1))
        learn = self._learn_dense if self._is_dense else self._learn_sparse
        size = self._chunk(batch)
        for start in range(0, len(batch), size):
            chunk = slice(start, start + size)
            learn(batch.part(start, start + size), np.ascontiguousarray(steps[:, chunk]), rewards[chunk])

    def _start(self, first: Batch) -> None:
        """Choose dense or sparse storage by the first sample's features, as all estimators do."""
        nnz = first.most_active()
        self._is_dense = not self._replacing and nnz >= max(2.0, DENSE_FRACTION * self.n_features)
        if self._is_dense:
            U = np.zeros((self.n_features, self.n_targets), order="F")
            U[self._seen.ids] = self._U[: self.n_seen]
            self._U, self._y = U, np.zeros(self.n_features)
            self._seen = SeenFeatures()
            self._seen.insert(np.arange(self.n_features))

    def _chunk(self, batch: Batch) -> int:
        """How many transitions to hand to the loops at once, so that copies of their features stay small."""
        if len(batch) == 1:
            return 1
        if not (isinstance(batch.x, tuple) and isinstance(batch.x_next, tuple)):
            return max(1, _CHUNK // self.n_features)
        longest = max(_lengths(batch.x, batch.rows).max(), _lengths(batch.x_next, batch.next_rows).max())
        return max(1, _CHUNK // max(1, self.n_features if self._is_dense else int(longest)))

    def _learn_dense(self, batch: Batch, steps: FloatArray, rewards: FloatArray) -> None:
        X, X_next, rows, next_rows = batch.x, batch.x_next, np.array(batch.rows), np.array(batch.next_rows)
        if isinstance(X, tuple) or isinstance(X_next, tuple) or not (X.flags.writeable and X_next.flags.writeable):
            X, X_next = batch.dense(self._seen.ids)
            rows = next_rows = np.arange(len(batch))
        kernels.learn_dense(
            X, rows, X_next, next_rows, steps, rewards, self._U.T, self._y, self._v_old, self._true_online
        )

    def _learn_sparse(self, batch: Batch, steps: FloatArray, rewards: FloatArray) -> None:
        x, rows, x_next, next_rows = batch.sparse()
        indptr, ids, vals = _picked(x, rows)
        next_indptr, next_ids, next_vals = _picked(x_next, next_rows)
        here = (indptr, self._rows(ids), vals)
        there = (next_indptr, self._seen.find(next_ids), next_vals)
        lazy = (self._U, self._S, self._y, self._listed, self._active, self._n_active, self._scale)
        kernels.learn_sparse(here, there, steps, rewards, lazy, self._v_old, self._replacing, self._true_online)

    def _rows(self, ids: IntArray) -> IntArray:
        """Rows of the features ``ids``; those that have none get one."""
        rows = self._seen.find(ids)
        new = rows < 0
        if new.any():
            self._seen.insert(np.unique(ids[new]))
            self._grow()
            rows[new] = self._seen.find(ids[new])
        return rows

    def _grow(self) -> None:
        capacity = self._U.shape[0]
        if self.n_seen > capacity:
            more = max(self.n_seen, min(capacity * 3 // 2, self.n_features)) - capacity
            self._U = np.concatenate([self._U, np.zeros((more, self.n_targets))])
            self._y = np.concatenate([self._y, np.zeros(more)])
            self._listed = np.concatenate([self._listed, np.zeros(more, dtype=np.bool_)])
            self._active = np.concatenate([self._active, np.zeros(more, dtype=np.int64)])

    # --- saving -----------------------------------------------------------------------------------------------------

    @classmethod
    def _check_sizes(cls, parameters: Mapping[str, Any], saved: Saved) -> None:
        if saved.shape("S") != (parameters.get("n_targets"),):
            raise saved.error("S", "does not have n_targets entries")

    def _state(self) -> State:
        n = self.n_seen
        return {
            "seen": self._seen.state(),
            "storage": "none" if self._is_dense is None else "dense" if self._is_dense else "sparse",
            "U": self._U[:n],
            "S": self._S,
            "y": self._y[:n],
            "active": self._active[: self._n_active[0]],
            "scale": self._scale,
            "v_old": self._v_old,
        }

    def _restore(self, saved: Saved) -> None:
        self._seen.restore(saved.part("seen"), self.n_features)
        n, m = self.n_seen, self.n_targets
        storage = saved.word("storage", ("none", "sparse", "dense"))
        dense = storage == "dense"
        if (storage == "none") != (self.n_updates == 0) or (dense and (self._replacing or n != self.n_features)):
            raise saved.error("storage", f"is {storage} after {self.n_updates} updates with {n} features seen")
        self._is_dense = None if storage == "none" else dense
        U = saved.floats("U", n, m)
        self._U = np.asfortranarray(U) if dense else U
        self._S, self._v_old = saved.floats("S", m), saved.floats("v_old", m)
        self._y = saved.floats("y", n)
        self._scale = saved.floats("scale", 2, low=0.0)
        if not 1.0 / 64.0 <= self._scale[0] <= 64.0:
            raise saved.error("scale", f"begins with {self._scale[0]}, outside [1/64, 64]")
        active = saved.integers("active", None, low=0, high=n - 1)
        self._listed = np.zeros(n, dtype=np.bool_)
        self._listed[active] = True
        if np.count_nonzero(self._listed) != active.size or (dense and active.size):
            raise saved.error("active", "is not a list of different rows on the trace")
        if not dense and self._y[~self._listed].any():
            raise saved.error("y", "has entries outside active")
        self._active = np.zeros(n, dtype=np.int64)
        self._active[: active.size] = active
        self._n_active[0] = active.size

    # --- reading ----------------------------------------------------------------------------------------------------

    def _solve(self) -> tuple[IntArray, FloatArray]:
        weights = self._U[: self.n_seen].copy()
        active = self._active[: self._n_active[0]]
        with np.errstate(over="ignore", invalid="ignore"):  # a run that diverges is data, not an error
            weights[active] += self._y[active, None] * self._S
        return self._seen.ids.copy(), weights

    def _predict_vector(self, x: Vector) -> FloatArray:
        indices, values = vector_arrays(x)
        rows = self._seen.find(indices)
        values, rows = values[rows >= 0], rows[rows >= 0]
        with np.errstate(over="ignore", invalid="ignore"):
            result: FloatArray = values @ self._U[rows] + (values @ self._y[rows]) * self._S
        return result

    def _predict_matrix(self, X: Matrix) -> FloatArray:
        with np.errstate(over="ignore", invalid="ignore"):
            return super()._predict_matrix(X)


def _lengths(csr: CSRArrays, rows: IntArray) -> IntArray:
    return csr[0][rows + 1] - csr[0][rows]


def _picked(csr: CSRArrays, rows: IntArray) -> CSRArrays:
    """The picked rows of CSR arrays as CSR arrays of their own. The ids may be a view."""
    first, n = rows[0], rows.size
    if n == 1 or (rows[-1] - first == n - 1 and (np.diff(rows) == 1).all()):
        start, stop = csr[0][first], csr[0][first + n]
        return csr[0][first : first + n + 1] - start, csr[1][start:stop], np.array(csr[2][start:stop])
    indptr = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(_lengths(csr, rows), out=indptr[1:])
    vals = np.empty(indptr[-1])
    sparse_kernels.picked_entries(csr[0], csr[2], rows, vals)
    return indptr, entries(csr, rows), vals
