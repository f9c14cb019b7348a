"""What TD and true-online TD share: weights and one eligibility trace over the features seen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlstd.classic.kernels import td as kernels
from tlstd.core import parameters
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.file_format import Saved, State
from tlstd.data.batch import Batch, vector_arrays
from tlstd.data.feature_index import FeatureIndex, RowArray
from tlstd.data.loop_vectors import Vectors, end_of_part, rows_of, vectors_of
from tlstd.data.transitions import Transition
from tlstd.data.vectors import SparseVector, Vector
from tlstd.estimators.base import synchronized
from tlstd.estimators.step_sizes import Function, StepSize
from tlstd.estimators.stepping import SteppingEstimator

Picked = tuple[FloatArray, IntArray, FloatArray, IntArray]
"""Dense x and x', each as a matrix and the row of every sample in it."""


class TDFamily(SteppingEstimator):
    """Base of TD and its relatives: weights and one eligibility trace over the features seen.

    A subclass chooses the algorithm by ``_true_online`` and ``_replacing``; :mod:`tlstd.classic.kernels.td` has the
    loops and says in which form the weights are held. One with a second set of weights says so in ``_sets``, and has
    its own ``_learn_sparse`` and ``_dense_loop``; what the loops take beside α, γ, λ and ρ comes from ``_fifth_line``.
    """

    _true_online = False
    _sets = 1

    def __init__(self, n_features: int, *, step_size: StepSize, lambda_: float, n_targets: int) -> None:
        super().__init__(n_features, step_size=step_size, lambda_=lambda_, n_targets=n_targets)
        self._columns = self._sets * self.n_targets
        n_numbers = 2 + 2 * self._columns + (1 + kernels.EPOCHS) * (1 + self._columns)
        parameters.check_memory(
            f"n_targets is {self.n_targets}", 8 * n_numbers, "what each of them needs", remedy="use fewer targets"
        )
        self._seen = FeatureIndex(self.n_features)
        self._is_special = self.n_targets > 1 or isinstance(self.step_size, Function)  # which is called once a sample
        self._is_dense: bool | None = None
        # dense: W in Fortran's order and z
        self._W: FloatArray = np.zeros((0, self._columns))
        self._z: FloatArray = np.zeros(0)
        # sparse: see tlstd.classic.kernels.td
        self._cells: FloatArray = np.zeros(1 + self._columns)
        self._stamps: NDArray[np.uint8] = np.zeros(1, dtype=np.uint8)
        self._active: RowArray = np.zeros(1, dtype=np.uint32)
        self._counts: IntArray = np.array([0, 1, 0])  # active features, epoch, samples
        self._numbers: FloatArray = np.zeros(n_numbers)
        self._scale[0] = self._epochs[1, 0] = 1.0

    def _count(self) -> int:
        return self._counts.item(2)

    # views of what the kernels have in one array

    @property
    def _table(self) -> FloatArray:
        return self._cells.reshape(-1, 1 + self._columns)

    @property
    def _scale(self) -> FloatArray:
        return self._numbers[:2]

    @property
    def _S(self) -> FloatArray:
        return self._numbers[2 : 2 + self._columns]

    @property
    def _v_old(self) -> FloatArray:
        return self._numbers[2 + self._columns : 2 + 2 * self._columns]

    @property
    def _epochs(self) -> FloatArray:
        return self._numbers[2 + 2 * self._columns :].reshape(-1, 1 + self._columns)

    @property
    @synchronized
    def n_seen(self) -> int:
        """Number of distinct features that were active at the start of a step (each has a weight)."""
        return len(self._seen)

    def _begin(self, ids: IntArray, values: FloatArray) -> None:
        seen = FeatureIndex(self.n_features, np.unique(ids))
        table, rows = np.zeros((1 + len(seen), 1 + self._columns)), np.zeros(1 + len(seen))
        table[seen.places(ids)[0], 1 : 1 + self.n_targets] = values
        self.__dict__.update(
            _seen=seen,
            _cells=table.reshape(-1),
            _stamps=rows.astype(np.uint8),
            _active=rows.astype(np.uint32),
            _is_dense=None,
        )

    # --- learning ---------------------------------------------------------------------------------------------------

    def _learn(self, batch: Batch) -> None:
        self._run(batch, np.zeros((0, self.n_targets)))

    def _learn_and_predict(self, batch: Batch, values: FloatArray) -> None:
        self._run(batch, values)

    def _run(self, batch: Batch, values: FloatArray) -> None:
        """Learn; the value of each x_next after its step goes to ``values``, if that has rows."""
        alphas = self.step_size.values(self._count() + 1, len(batch))  # may raise: before anything changes
        if self._is_dense is None:
            self._start(batch.part(0, 1))
        learn = self._learn_dense if self._is_dense else self._learn_sparse
        start = 0
        while start < len(batch):
            stop = end_of_part(batch, start, self.n_features, as_dense=bool(self._is_dense))
            part = batch.part(start, stop)
            steps = np.empty((5, stop - start))
            steps[0], steps[1], steps[3] = alphas[start:stop], part.discounts, part.rhos
            np.multiply(part.trace_discounts, self.lambda_, out=steps[2])
            steps[4] = self._fifth_line(part, alphas[start:stop])
            # C-ordered and writable, so that the loops compile once
            learn(part, steps, np.array(part.rewards), values[start:stop])
            start = stop

    def _fifth_line(self, part: Batch, alphas: FloatArray) -> FloatArray | float:
        """The emphasis of each step of a part that is about to be learned from."""
        return 1.0

    def _start(self, first: Batch) -> None:
        """Choose dense or sparse storage by the first sample's features, as all estimators do."""
        d = self.n_features
        if self._replacing or not first.is_dense(d):
            self._is_dense = False
            return
        W, seen = np.zeros((d, self._columns), order="F"), FeatureIndex(d, np.arange(d))
        W[self._seen.ids] = self._table[1 : 1 + len(self._seen), 1:]
        rows = {
            "_cells": self._cells[: 1 + self._columns].copy(),
            "_stamps": self._stamps[:1],
            "_active": self._active[:1],
        }
        self.__dict__.update(rows, _W=W, _z=np.zeros(d), _seen=seen, _is_dense=True)

    def _learn_dense(self, batch: Batch, steps: FloatArray, rewards: FloatArray, values: FloatArray) -> None:
        X, X_next, rows, next_rows = batch.x, batch.x_next, np.array(batch.rows), np.array(batch.next_rows)
        if isinstance(X, tuple) or isinstance(X_next, tuple):
            X, X_next = batch.dense(self._seen.ids)
            rows = next_rows = np.arange(len(batch))
        self._dense_loop((X, rows, X_next, next_rows), steps, rewards, values)

    def _dense_loop(self, samples: Picked, steps: FloatArray, rewards: FloatArray, values: FloatArray) -> None:
        held = (self._W.T, self._z, self._v_old, self._counts)
        kernels.learn_dense(*samples, steps, rewards, *held, self._true_online, values)

    @property
    def _targets(self) -> tuple[int] | IntArray:
        """For kernels that know one target when they are compiled."""
        return (0,) if self.n_targets == 1 else np.arange(self.n_targets)

    def _learn_sparse(self, batch: Batch, steps: FloatArray, rewards: FloatArray, values: FloatArray) -> None:
        vectors = vectors_of(batch)
        in_rows = (vectors.indptr, self._rows(vectors), vectors.values, vectors.first, vectors.second)
        lazy = (self._cells, self._stamps, self._active, self._counts, self._numbers)
        kernels.learn(in_rows, steps, rewards, lazy, self._replacing, self._true_online, values, self._targets)

    def _learn_one(self, t: Transition) -> bool:
        own, x, x_next = self.__dict__, t.x, t.x_next
        if (
            own["_is_dense"] is not False  # or nothing was learned yet
            or type(x) is not SparseVector
            or type(x_next) is not SparseVector
            or x.size != own["n_features"]
            or type(t.reward) is not float
            or own["_is_special"]
            or (self._true_online and t.rho != 1.0)
            or (self._replacing and x.indices.size > max(1, x.size // 2))
        ):
            return False
        index, hashed = own["_seen"].table
        return kernels.learn_one(  # type: ignore[no-any-return]
            x.indices,
            x.values,
            x_next.indices,
            x_next.values,
            index,
            own["_cells"],
            own["_stamps"],
            own["_active"],
            own["_counts"],
            own["_numbers"],
            own["_bound"],
            hashed,
            t.reward,
            own["step_size"].at(own["_counts"].item(2) + 1),
            t.discount,
            t.trace_discount,
            t.rho,
            own["lambda_"],
            self._replacing,
            self._true_online,
        )

    def _rows(self, vectors: Vectors, also: IntArray | None = None) -> RowArray:
        """Rows of the features of all vectors; those of the vectors x (and ``also`` others) that have none get one."""
        rows = rows_of(vectors, self._seen, also)
        self._grow()
        return rows

    def _grow(self) -> None:
        """Make room for all rows."""
        capacity, needed = self._stamps.size, 1 + len(self._seen)
        if needed > capacity:
            more = max(needed, min(capacity * 3 // 2, 1 + self.n_features)) - capacity
            self.__dict__.update(
                _cells=np.concatenate([self._cells, np.zeros(more * (1 + self._columns))]),
                _stamps=np.concatenate([self._stamps, np.zeros(more, dtype=np.uint8)]),
                _active=np.concatenate([self._active, np.zeros(more, dtype=np.uint32)]),
            )

    def _mend(self) -> None:
        self._before = None  # what was learned up to now is in the arrays
        super()._mend()
        self._seen.mend()
        if not self._is_dense:
            self._grow()
        if self._count() == 0:  # storage is chosen by the first sample
            self._begin(*self._solve())

    # --- saving -----------------------------------------------------------------------------------------------------

    @classmethod
    def _check_sizes(cls, parameters: Mapping[str, Any], saved: Saved) -> None:
        n_targets = parameters.get("n_targets")
        if not isinstance(n_targets, int) or saved.shape("S") != (cls._sets * n_targets,):
            raise saved.error("S", "does not have n_targets entries")

    def _state(self) -> State:
        n, epoch = len(self._seen), int(self._counts[1])
        state: State = {
            "seen": self._seen.state(),
            "storage": "none" if self._is_dense is None else "dense" if self._is_dense else "sparse",
            "S": self._S,
            "v_old": self._v_old,
        }
        if self._is_dense:
            return {**state, "W": self._W, "z": self._z}
        active = self._active[: self._counts[0]]
        return {
            **state,
            "U": self._table[1 : 1 + n, 1:],
            "y": self._table[1 : 1 + n, 0],
            "active": active.astype(np.int64) - 1,
            "stamps": self._stamps[active].astype(np.int64),
            "epochs": self._epochs[1 : 1 + epoch],
            "scale": self._scale,
        }

    def _restore(self, saved: Saved) -> None:
        self._seen.restore(saved.part("seen"))
        self._counts[2] = self._n_updates
        n, m = len(self._seen), self._columns
        storage = saved.word("storage", ("none", "sparse", "dense"))
        dense = storage == "dense"
        never = self._replacing or n != self.n_features
        if (storage == "none") != (self._count() == 0) or (dense and never):
            raise saved.error("storage", f"is {storage} after {self._count()} updates with {n} features seen")
        self._is_dense = None if storage == "none" else dense
        self._S[:], self._v_old[:] = saved.floats("S", m), saved.floats("v_old", m)
        if dense:
            self._W, self._z = np.asfortranarray(saved.floats("W", n, m)), saved.floats("z", n)
            return
        self._grow()
        self._table[1 : 1 + n, 1:] = saved.floats("U", n, m)
        self._table[1 : 1 + n, 0] = saved.floats("y", n)
        self._scale[:] = saved.floats("scale", 2, low=0.0)
        if not 1.0 / 64.0 <= self._scale[0] <= 64.0:
            raise saved.error("scale", f"begins with {self._scale[0]}, outside [1/64, 64]")
        epochs = saved.floats("epochs", None, 1 + m)
        epoch = epochs.shape[0]
        if not 1 <= epoch <= kernels.EPOCHS:
            raise saved.error("epochs", f"has {epoch} rows instead of 1 to {kernels.EPOCHS}")
        if (epochs[:, 0] < 0.0).any() or epochs[-1, 0] != 1.0 or epochs[-1, 1:].any():
            raise saved.error("epochs", "has negative factors, or does not end with an epoch that has just begun")
        self._epochs[1 : 1 + epoch] = epochs
        active = 1 + saved.integers("active", None, low=0, high=n - 1)
        self._stamps[active] = saved.integers("stamps", active.size, low=1, high=epoch)
        if np.count_nonzero(self._stamps) != active.size:
            raise saved.error("active", "is not a list of different rows on the trace")
        if self._table[self._stamps == 0, 0].any():
            raise saved.error("y", "has entries outside active")
        self._active[: active.size] = active
        self._counts[:2] = active.size, epoch

    # --- reading ----------------------------------------------------------------------------------------------------

    def _solve(self) -> tuple[IntArray, FloatArray]:
        ids = self._seen.ids.copy()
        if self._is_dense:
            return ids, self._W[:, : self.n_targets].copy()
        return ids, self._weights(slice(1, 1 + len(self._seen)))[:, : self.n_targets]

    def _weights(self, rows: slice | RowArray) -> FloatArray:
        """W = U + y (C + D S), with all its columns, in some rows of sparse storage."""
        y, U, epochs = self._table[rows, :1], self._table[rows, 1:], self._epochs[self._stamps[rows]]
        weights: FloatArray = U + y * (epochs[:, 1:] + epochs[:, :1] * self._S)
        return weights

    def _value(self, x: SparseVector) -> Any:
        own = self.__dict__
        if own["_is_dense"] or own["_columns"] != 1:
            return None
        index, hashed = own["_seen"].table
        return kernels.value(x.indices, x.values, index, hashed, own["_cells"], own["_stamps"], own["_numbers"])

    def _predict_vector(self, x: Vector) -> FloatArray:
        indices, values = vector_arrays(x)
        rows = self._seen.places(indices)[0]
        if self._is_dense:
            result: FloatArray = values @ self._W[indices][:, : self.n_targets]
        else:
            result = values[rows > 0] @ self._weights(rows[rows > 0])[:, : self.n_targets]
        return result
