"""The LSTD system A w = b held in full, over the features seen."""

from __future__ import annotations

from math import isqrt, log, log1p
from typing import Any, NamedTuple

import numpy as np

from tlstd.classic.kernels import lstd as kernels
from tlstd.classic.lstd_system import LSTDSystem, check_memory
from tlstd.classic.ridge import Moments, ridge_diagonal
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.file_format import Saved, State
from tlstd.core.growing import enlarged
from tlstd.core.threads import one_thread
from tlstd.data.batch import Batch, entries

_BLOCK = 128
_SPARSE_BLOCK = 1024


class WaitingSamples(NamedTuple):
    """Dense samples that are to be added to A by one matrix product, Σ ω z dᵀ = Zᵀ D."""

    Z: FloatArray
    """(size, features), traces."""
    D: FloatArray
    """The same of ω (x - γx′)."""
    n: int = 0

    @classmethod
    def room_for(cls, size: int, n_features: int) -> WaitingSamples:
        """None, with room for ``size``."""
        return cls(np.zeros((size, n_features)), np.zeros((size, n_features)))

    def total(self) -> FloatArray:
        """What they add to A."""
        with one_thread(2.0 * self.Z.shape[1] ** 2 * self.n):
            total: FloatArray = self.Z[: self.n].T @ self.D[: self.n]
        return total

    def restored(self, saved: Saved, n_samples: int) -> WaitingSamples:
        """Those that were saved, of ``n_samples`` in all, in the room that there is."""
        size, width = self.Z.shape
        Z = saved.floats("Z", None, width)
        D = saved.floats("D", Z.shape[0], width)
        if Z.shape[0] > min(n_samples, max(size - 1, 0)):
            raise saved.error("Z", f"has {Z.shape[0]} rows, too many to be waiting")
        self.Z[: Z.shape[0]], self.D[: Z.shape[0]] = Z, D
        return self._replace(n=Z.shape[0])


class FullSystem(LSTDSystem):
    """The system itself. Sparse samples are added over the non-zeros of z and d, dense ones by blocks.

    Parameters
    ----------
    with_moments : bool
        Whether to follow what :meth:`ridge_diagonal` needs.
    """

    def __init__(self, n_features: int, *, beta: float | None, with_moments: bool = False, **options: Any) -> None:
        self.with_moments = with_moments
        # within one block forgetting must not span more than the 50 decades that ``scale`` is allowed
        self._block = _BLOCK if beta is None else max(1, int(min(_BLOCK, -50.0 * log(10.0) / log1p(-beta))))
        super().__init__(n_features, beta=beta, **options)

    def _begin(self) -> None:
        super()._begin()
        self._A: FloatArray = np.zeros((0, 0))
        self._active: IntArray = np.zeros(0, dtype=np.int64)  # rows on the trace, ``_progress[1]`` of them
        self._scratch: FloatArray = np.zeros(0)
        self._is_dense: bool | None = None
        self._waiting = WaitingSamples.room_for(0, 0)
        self._moments = {0: Moments()}  # by the number of samples: before and after what is being added

    @property
    def A(self) -> FloatArray:
        """The stored matrix, with the samples that wait."""
        A = self._A[: self.n, : self.n]
        return A + self._waiting.total() if self._waiting.n else A

    def ridge_diagonal(self, ridge: float) -> FloatArray:
        """What is added to the averaged A's diagonal (n,) for a ridge."""
        moments = self._moments[self.n_samples]
        constant = np.zeros(self.n, dtype=np.bool_)
        constant[self.seen.find(moments.constant_ids)] = True
        return ridge_diagonal(ridge, moments.mean_square(self.n_samples, self.beta), constant)

    def check_capacity(self, batch: Batch) -> None:
        """Raise :class:`CapacityError` if the batch would make the system too large."""
        n = self.n_features if self._dense_for(batch) else self.seen.count_with(batch.ids())
        check_memory(n, 1, self.memory_limit)

    def append(self, batch: Batch) -> None:
        """Add a checked batch."""
        if self._is_dense is None:
            dense = self._dense_for(batch)
            if dense:
                self.seen.insert(np.arange(self.n_features))
                self._grow()
                self._waiting = WaitingSamples.room_for(self._block, self.n)
            self._is_dense = dense
        decays = batch.trace_discounts * self.lambda_
        size = self._block if self._is_dense or self.beta is not None else _SPARSE_BLOCK
        for start in range(0, len(batch), size):
            stop = start + size
            if self._is_dense:
                self._append_dense(batch.part(start, stop), decays[start:stop])
            else:
                self._append_sparse(batch.part(start, stop), decays[start:stop])

    def _follow_moments(self, batch: Batch) -> None:
        """Get the moments ready for when the samples of the batch are counted."""
        if self.with_moments:
            n = self.n_samples
            now = self._moments[n]
            self._moments = {n: now, n + len(batch): now.after(batch, n, self.beta)}

    def _dense_for(self, batch: Batch) -> bool:
        if self._is_dense is not None or not len(batch):
            return bool(self._is_dense)
        return not self.replacing and batch.is_dense(self.n_features)

    def _weights(self, count: int) -> tuple[FloatArray, float]:
        """Weights of the next ``count`` samples against the stored, unscaled sums, and the scale after them."""
        if self.beta is None:
            return np.ones(count), 1.0
        keep = 1.0 - self.beta
        weights: FloatArray = self.beta / (self.scale * keep ** np.arange(1.0, count + 1.0))
        return weights, self.scale * keep**count

    def _rescale(self, count: int) -> None:
        """Multiply the scale out before ``count`` more steps could make it tiny."""
        if self.beta is not None and self.scale * (1.0 - self.beta) ** count < 1e-50:
            self._flush()
            kernels.multiply_out(self._A, self._b, self._scale)

    def _append_dense(self, batch: Batch, decays: FloatArray) -> None:
        X, X_next = batch.dense(self.seen.ids)
        start = 0
        while start < len(batch):
            Z, D, count = self._waiting
            stop = min(len(batch), start + self._block - count)
            self._rescale(stop - start)
            Z, D, count = self._waiting
            rows, part = slice(count, count + stop - start), slice(start, stop)
            z = self.z.copy()
            kernels.traces(X[part], decays[part], batch.rhos[part], z, Z[rows])
            weights, scale = self._weights(stop - start)
            D[rows] = weights[:, None] * (X[part] - batch.discounts[part, None] * X_next[part])
            b = self._b + Z[rows].T @ (weights[:, None] * batch.rewards[part])
            progress, scales = np.array([self.n_samples + stop - start, 0]), np.array([scale])
            self._follow_moments(batch.part(start, stop))
            waiting = WaitingSamples(Z, D, rows.stop)
            self.__dict__.update(z=z, _b=b, _waiting=waiting, _progress=progress, _scale=scales)
            if rows.stop == self._block:
                self._flush()
            start = stop

    def _flush(self) -> None:
        """Add the waiting samples. Reads do not: the state must not depend on when somebody looked."""
        if self._waiting.n:
            A = self._waiting.total()
            A += self._A
            self.__dict__.update(_A=A, _waiting=self._waiting._replace(n=0))

    def _append_sparse(self, batch: Batch, decays: FloatArray) -> None:
        x, rows, x_next, next_rows = batch.sparse()
        ids, next_ids = entries(x, rows), entries(x_next, next_rows)
        self.seen.insert(ids)
        self.seen.insert(entries(x_next, next_rows[batch.discounts != 0.0]))
        self._grow()
        self._rescale(len(batch))
        width = ids.size + next_ids.size
        weights, scale = self._weights(len(batch))
        self._follow_moments(batch)
        kernels.accumulate_many(
            *(x, self.seen.find(ids), rows, x_next, self.seen.find(next_ids), next_rows),
            *(batch.discounts, decays, batch.rhos, batch.rewards, weights),
            (self._A, self._b, self.z, self._active, self.replacing, self._progress, self._scale, scale),
            (self._scratch, np.zeros(width, dtype=np.int64), np.zeros(width)),
        )

    def _grow(self) -> None:
        n, capacity = self.n, self._A.shape[0]
        if n <= capacity:
            return
        size = n
        if capacity and not self._is_dense:
            size = max(n, min(capacity * 3 // 2, self.n_features, isqrt(self.memory_limit // 8)))
        A, b = enlarged(self._A, size, size), enlarged(self._b, size)
        z, active = enlarged(self.z, size), enlarged(self._active, size)
        self.__dict__.update(_A=A, _b=b, z=z, _active=active, _scratch=np.zeros(size))

    def mend(self) -> None:
        """Put everything in order after an interruption."""
        super().mend()
        self._scratch = np.zeros(self._scratch.size)

    def state(self) -> State:
        """What :meth:`restore` takes."""
        moments = {"moments": self._moments[self.n_samples].state()} if self.with_moments else {}
        return {
            **moments,
            "seen": self.seen.state(),
            "storage": "none" if self._is_dense is None else "dense" if self._is_dense else "sparse",
            "scale": self.scale,
            "n_samples": self.n_samples,
            "A": self._A[: self.n, : self.n],
            "b": self.b,
            "z": self.z[: self.n],
            "active": self._active[: self._progress[1]],
            "Z": self._waiting.Z[: self._waiting.n],
            "D": self._waiting.D[: self._waiting.n],
        }

    def restore(self, saved: Saved) -> None:
        """Take over a saved state, if it can be one of these parameters; only of fresh objects."""
        self.seen.restore(saved.part("seen"))
        n = self.n
        storage = saved.word("storage", ("none", "sparse", "dense"))
        self._is_dense = None if storage == "none" else storage == "dense"
        self._scale = np.array([saved.real("scale", low=1e-51 if self.beta is not None else 1.0, high=1.0)])
        self._progress[0] = saved.integer("n_samples", low=int(storage != "none"))
        dense = storage == "dense"
        if (storage == "none" and self.n_samples + n) or (dense and (self.replacing or n < self.n_features)):
            raise saved.error("storage", f"is {storage} with {n} of {self.n_features} features seen")
        self._A = saved.floats("A", n, n)
        self._b = saved.floats("b", n, self.n_targets)
        self.z = saved.floats("z", n)
        self._restore_trace(saved)
        room = WaitingSamples.room_for(self._block if dense else 0, n if dense else 0)
        self._waiting = room.restored(saved, self.n_samples)
        if self.with_moments:
            moments = Moments.restored(saved.part("moments"), self.n_features)
            if (self.seen.find(moments.constant_ids) < 0).any():
                raise saved.error("moments", "has features that were not seen")
            self._moments = {self.n_samples: moments}
        self._scratch = np.zeros(n)

    def _restore_trace(self, saved: Saved) -> None:
        """The list of rows on the trace; a row in it twice would let a kernel write past its end."""
        active = saved.integers("active", None, low=0, high=self.n - 1)
        listed = np.bincount(active, minlength=self.n)
        if (listed > 1).any() or (self._is_dense and active.size):
            raise saved.error("active", "is not a list of different rows on the trace")
        if not self._is_dense and self.z[listed == 0].any():
            raise saved.error("z", "has entries outside active")
        self._progress[1] = active.size
        self._active = enlarged(active, self.n)
