"""The LSTD system with its inverse followed from sample to sample."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlstd.classic.lstd_system import LSTDSystem, check_memory
from tlstd.classic.recursive_inverse import RecursiveInverse
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.file_format import Saved, State
from tlstd.core.growing import enlarged
from tlstd.data.batch import Batch, CSRArrays, packed, row_arrays

_WORK = 1 << 26  # entries of A, one for each sample, after which the loop comes back so that it can be interrupted


class RecursiveSystem(LSTDSystem):
    """ε I + A with its inverse, and b; ``initial_diagonal`` is ε."""

    def __init__(self, n_features: int, *, initial_diagonal: float, **options: Any) -> None:
        self.initial_diagonal = initial_diagonal
        super().__init__(n_features, **options)

    def _begin(self) -> None:
        super()._begin()
        self.inverse = RecursiveInverse(self.initial_diagonal)
        self._progress = self.inverse.progress

    @property
    def A(self) -> FloatArray:
        """The stored matrix, with its initial diagonal; a view."""
        return self.inverse.A

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
                *(now, then, columns, self._b, self.z, self._scale),
                beta=self.beta,
                replacing=self.replacing,
                values=np.zeros((0, self.n_targets)) if values is None else values[part],
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
            self.__dict__.update(_b=enlarged(self._b, n), z=enlarged(self.z, n))

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
        self._progress[0] = saved.integer("n_samples")
        self.z = saved.floats("z", n)
        self._b = saved.floats("b", n, self.n_targets)
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
