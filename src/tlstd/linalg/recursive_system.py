"""The LSTD system with its inverse followed from sample to sample."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tlstd.container import Saved, State
from tlstd.linalg.arrays import enlarged
from tlstd.linalg.batch import Batch, CSRArrays, packed, row_arrays
from tlstd.linalg.full_system import check_memory
from tlstd.linalg.recursive_inverse import RecursiveInverse
from tlstd.linalg.seen import SeenFeatures
from tlstd.types import FloatArray, IntArray

_WORK = 1 << 26  # entries of A, one for each sample, after which the loop comes back so that it can be interrupted


class RecursiveSystem:
    """A = ε I + Σ ω z dᵀ with its inverse, and b = Σ ω z r; parameters as in ``LSTD``.

    As in :class:`~tlstd.linalg.full_system.FullSystem`, what is stored is ``scale``⁻¹ times the system.
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
        initial_diagonal: float,
    ) -> None:
        self._options = {name: value for name, value in locals().items() if name != "self"}
        self.n_features, self.lambda_, self.beta, self.replacing = n_features, lambda_, beta, replacing
        self.memory_limit = memory_limit
        self.seen = SeenFeatures(n_features)
        self.inverse = RecursiveInverse(initial_diagonal)
        self._scale: FloatArray = np.ones(1)
        self.z: FloatArray = np.zeros(0)
        self.b: FloatArray = np.zeros((0, n_targets))

    @property
    def n_samples(self) -> int:
        """Number of samples in the system."""
        return int(self.inverse.progress[0])

    @property
    def scale(self) -> float:
        """What the stored sums have to be multiplied by."""
        return float(self._scale[0])

    def check_capacity(self, batch: Batch) -> None:
        """Raise :class:`CapacityError` if the batch would make the system too large."""
        check_memory(self.seen.count_with(batch.ids()), 2, self.memory_limit)

    def append(self, batch: Batch, values: FloatArray | None = None, rcond: float = 0.0) -> None:
        """Add a checked batch, sample by sample. O(n²) each.

        The value of each x_next after its step goes to ``values`` (N, m), if they are wanted; ``rcond`` is as in
        :meth:`solve`.
        """
        x, rows, x_next, next_rows = batch.sparse()
        fades = batch.rhos * batch.trace_discounts * self.lambda_
        start, length = 0, min(64, len(batch))
        while start < len(batch):
            n = self.z.size
            if length == 1:
                ids = row_arrays(x, rows[start])[0]
                if batch.discounts[start] != 0.0:
                    ids = np.concatenate((ids, row_arrays(x_next, next_rows[start])[0]))
                self.seen.insert(ids)
                self._grow()
            part = slice(start, start + length)
            now, then = self._in_rows(x, rows[part]), self._in_rows(x_next, next_rows[part])
            n_known = min(_first_unknown(now), _first_unknown(then, batch.discounts[part] != 0.0))
            if n_known == 0:
                length = 1
                continue
            part = slice(start, start + min(n_known, max(1, _WORK // (10 + self.z.size) ** 2)))
            # copies, contiguous and writable, so that the kernel is compiled only once
            given = np.array(batch.rewards[part]), np.array(batch.discounts[part])
            columns = *given, fades[part], batch.rhos[part].copy()
            done, solved = self.inverse.follow(
                *(now, then, columns, self.b, self.z, self._scale),
                beta=self.beta,
                replacing=self.replacing,
                values=np.zeros((0, self.b.shape[1])) if values is None else values[part],
            )
            # where a step had new features, the next one may have some
            start, length = start + done, 1 if self.z.size > n else 2 * done
            if values is not None and not solved:
                at, vals = row_arrays(then, done - 1)
                values[start - 1] = vals[at >= 0] @ self.solve(rcond)[at[at >= 0]]

    def _in_rows(self, csr: CSRArrays, picked: IntArray) -> CSRArrays:
        """The picked vectors in row coordinates, -1 for features that were never seen."""
        if picked.size == 1:
            ids, vals = row_arrays(csr, picked[0])
            return np.array([0, ids.size]), self.seen.find(ids), vals.copy()
        indptr, ids, vals = packed(csr, picked)
        return indptr, self.seen.find(ids), vals

    def _grow(self) -> None:
        n = len(self.seen)
        if n > self.z.size:
            self.inverse.grow(n, self.scale)
            self.__dict__.update(b=enlarged(self.b, n), z=enlarged(self.z, n))

    def mend(self) -> None:
        """Put everything in order after an interruption."""
        self.seen.mend()
        if self.n_samples == 0:
            self.__dict__.update(type(self)(**self._options).__dict__)
        self._grow()

    def averaged(self) -> tuple[FloatArray, FloatArray]:
        """A (with its initial diagonal) and b, averaged over the samples or exponentially weighted."""
        factor = self.scale / max(self.n_samples, 1) if self.beta is None else self.scale
        return self.inverse.A * factor, self.b * factor

    def solve(self, rcond: float) -> FloatArray:
        """The weights, (n, m)."""
        return self.inverse.solve(self.b, rcond)

    def state(self) -> State:
        """What :meth:`restore` takes."""
        return {
            "seen": self.seen.state(),
            "inverse": self.inverse.state(),
            "scale": self.scale,
            "n_samples": self.n_samples,
            "z": self.z,
            "b": self.b,
        }

    def restore(self, saved: Saved) -> None:
        """Take over a saved state, if it can be one of these parameters; only of fresh objects."""
        self.seen.restore(saved.part("seen"))
        n = len(self.seen)
        self.inverse.restore(saved.part("inverse"), n)
        self._scale = np.array([saved.real("scale", low=1e-50 if self.beta is not None else 1.0, high=1.0)])
        self.inverse.progress[0] = saved.integer("n_samples")
        self.z = saved.floats("z", n)
        self.b = saved.floats("b", n, self.b.shape[1])
        if n and not self.n_samples:
            raise saved.error("n_samples", f"is 0 where {n} features were seen")


def _first_unknown(vectors: CSRArrays, counting: NDArray[np.bool_] | None = None) -> int:
    """The first of the vectors (of those that count) with a feature that was never seen, or their number."""
    indptr, rows, _ = vectors
    if rows.min(initial=0) >= 0:
        return indptr.size - 1
    unknown = np.searchsorted(indptr, np.flatnonzero(rows < 0), side="right") - 1
    if counting is not None:
        unknown = unknown[counting[unknown]]
    return int(unknown[0]) if unknown.size else indptr.size - 1
