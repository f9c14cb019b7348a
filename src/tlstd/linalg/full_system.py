"""The LSTD system A w = b held in full, over the features seen."""

from __future__ import annotations

from math import isqrt, log, log1p

import numpy as np

from tlstd.container import Saved, State
from tlstd.errors import CapacityError
from tlstd.kernels import lstd as kernels
from tlstd.linalg.batch import Batch, entries
from tlstd.linalg.moments import Moments, ridge_diagonal
from tlstd.linalg.seen import SeenFeatures
from tlstd.linalg.threads import one_thread
from tlstd.types import FloatArray, IntArray

_BLOCK = 128


class FullSystem:
    """A = Σ ω z dᵀ and b = Σ ω z r, with running-average or exponentially forgetting weights.

    What is stored is ``scale``⁻¹ times the system, so that forgetting costs nothing per entry. Sparse transitions are
    added over the non-zeros of z and d; dense ones wait in a block and are added by one matrix product.

    Parameters
    ----------
    n_features, lambda_, beta, replacing, n_targets : as in ``LSTD``
    memory_limit : int
        Bytes that A may take; beyond that :class:`CapacityError` is raised and nothing changes.
    with_moments : bool
        Whether to follow what :meth:`ridge_diagonal` needs.
    """

    def __init__(
        self,
        n_features: int,
        *,
        lambda_: float,
        beta: float | None,
        replacing: bool,
        n_targets: int,
        memory_limit: int,
        with_moments: bool = False,
    ) -> None:
        self.n_features, self.lambda_, self.beta, self.replacing = n_features, lambda_, beta, replacing
        self.memory_limit, self.with_moments = memory_limit, with_moments
        self.seen = SeenFeatures(n_features)
        self._scale: FloatArray = np.ones(1)
        self._progress: IntArray = np.zeros(2, dtype=np.int64)  # samples, and active entries of the trace
        self.z: FloatArray = np.zeros(0)
        self._A: FloatArray = np.zeros((0, 0))
        self._b: FloatArray = np.zeros((0, n_targets))
        self._active: IntArray = np.zeros(0, dtype=np.int64)
        self._scratch: FloatArray = np.zeros(0)
        self._is_dense: bool | None = None
        self._Z: FloatArray = np.zeros((0, 0))
        self._D: FloatArray = np.zeros((0, 0))
        self._n_waiting = 0
        self._moments = {0: Moments()}  # by the number of samples: before and after what is being added
        # within one block forgetting must not span more than the 50 decades that ``scale`` is allowed
        self._block = _BLOCK if beta is None else max(1, int(min(_BLOCK, -50.0 * log(10.0) / log1p(-beta))))

    @property
    def n(self) -> int:
        """Number of features seen."""
        return len(self.seen)

    @property
    def n_samples(self) -> int:
        """Number of samples in the system."""
        return int(self._progress[0])

    @property
    def scale(self) -> float:
        """What the stored sums have to be multiplied by."""
        return float(self._scale[0])

    @property
    def A(self) -> FloatArray:
        """The stored matrix (n, n): A / scale. Not to be written to."""
        A = self._A[: self.n, : self.n]
        return A + self._waiting() if self._n_waiting else A

    @property
    def b(self) -> FloatArray:
        """The stored right-hand side (n, m): b / scale. A view."""
        return self._b[: self.n]

    def averaged(self) -> tuple[FloatArray, FloatArray]:
        """A and b as the paper has them: averages over the samples, or exponentially weighted sums."""
        factor = self.scale / max(self.n_samples, 1) if self.beta is None else self.scale
        return self.A * factor, self.b * factor

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
                self._Z, self._D = np.zeros((self._block, self.n)), np.zeros((self._block, self.n))
            self._is_dense = dense
        decays = batch.trace_discounts * self.lambda_
        for start in range(0, len(batch), self._block):
            stop = start + self._block
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
            stop = min(len(batch), start + self._block - self._n_waiting)
            self._rescale(stop - start)
            rows = slice(self._n_waiting, self._n_waiting + stop - start)
            part = slice(start, stop)
            z = self.z.copy()
            kernels.traces(X[part], decays[part], batch.rhos[part], z, self._Z[rows])
            weights, scale = self._weights(stop - start)
            self._D[rows] = weights[:, None] * (X[part] - batch.discounts[part, None] * X_next[part])
            b = self._b + self._Z[rows].T @ (weights[:, None] * batch.rewards[part])
            progress, scales = np.array([self.n_samples + stop - start, 0]), np.array([scale])
            self._follow_moments(batch.part(start, stop))
            self.__dict__.update(z=z, _b=b, _n_waiting=rows.stop, _progress=progress, _scale=scales)
            if self._n_waiting == self._block:
                self._flush()
            start = stop

    def _waiting(self) -> FloatArray:
        """What the waiting dense samples add to A."""
        with one_thread(2.0 * self.n**2 * self._n_waiting):
            total: FloatArray = self._Z[: self._n_waiting].T @ self._D[: self._n_waiting]
        return total

    def _flush(self) -> None:
        """Add the waiting samples. Reads do not: the state must not depend on when somebody looked."""
        if self._n_waiting:
            A = self._waiting()
            A += self._A
            self.__dict__.update(_A=A, _n_waiting=0)

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
            x,
            self.seen.find(ids),
            rows,
            x_next,
            self.seen.find(next_ids),
            next_rows,
            batch.discounts,
            decays,
            batch.rhos,
            batch.rewards,
            weights,
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
        A, b = np.zeros((size, size)), np.zeros((size, self._b.shape[1]))
        A[:capacity, :capacity], b[:capacity] = self._A, self._b
        z = np.concatenate([self.z, np.zeros(size - self.z.size)])
        active = np.concatenate([self._active, np.zeros(size - self._active.size, dtype=np.int64)])
        self.__dict__.update(_A=A, _b=b, z=z, _active=active, _scratch=np.zeros(size))

    def mend(self) -> None:
        """Put everything in order after an interruption."""
        self.seen.mend()
        if self.n_samples == 0:
            self.__init__(  # type: ignore[misc]
                self.n_features,
                lambda_=self.lambda_,
                beta=self.beta,
                replacing=self.replacing,
                n_targets=self._b.shape[1],
                memory_limit=self.memory_limit,
                with_moments=self.with_moments,
            )
        self._grow()
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
            "Z": self._Z[: self._n_waiting],
            "D": self._D[: self._n_waiting],
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
        self._b = saved.floats("b", n, self._b.shape[1])
        self.z = saved.floats("z", n)
        self._restore_trace(saved)
        self._restore_waiting(saved)
        if self.with_moments:
            moments = Moments.restored(saved.part("moments"), self.n_features)
            if (self.seen.find(moments.constant_ids) < 0).any():
                raise saved.error("moments", "has features that were not seen")
            self._moments = {self.n_samples: moments}
        self._scratch = np.zeros(n)

    def _restore_trace(self, saved: Saved) -> None:
        """The list of rows on the trace; a row in it twice would let a kernel write past its end."""
        active = saved.integers("active", None, low=0, high=self.n - 1)
        if np.unique(active).size != active.size or (self._is_dense and active.size):
            raise saved.error("active", "is not a list of different rows on the trace")
        off = np.ones(self.n, dtype=np.bool_)
        off[active] = False
        if not self._is_dense and self.z[off].any():
            raise saved.error("z", "has entries outside active")
        self._active = np.zeros(self.n, dtype=np.int64)
        self._progress[1] = active.size
        self._active[: active.size] = active

    def _restore_waiting(self, saved: Saved) -> None:
        width = self.n if self._is_dense else 0
        Z = saved.floats("Z", None, width)
        D = saved.floats("D", Z.shape[0], width)
        if Z.shape[0] > min(self.n_samples, self._block - 1 if self._is_dense else 0):
            raise saved.error("Z", f"has {Z.shape[0]} rows, too many to be waiting")
        self._n_waiting = Z.shape[0]
        if self._is_dense:
            self._Z, self._D = np.zeros((self._block, width)), np.zeros((self._block, width))
            self._Z[: self._n_waiting], self._D[: self._n_waiting] = Z, D


def check_memory(n: int, matrices: int, limit: int) -> None:
    """Raise :class:`CapacityError` if so many n × n matrices need more than ``limit`` bytes."""
    if 8 * n * n * matrices > limit:
        raise CapacityError(
            f"{n} distinct features need {8e-9 * n * n * matrices:.1f} GB for LSTD's matrices, over the limit of "
            f"{1e-9 * limit:.1f} GB: use TLSTD, which needs 16·{n}·rank bytes, or raise memory_limit"
        )
