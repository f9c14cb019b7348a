"""Samples at one moment, in chunks: each feature row once."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from tlstd.errors import CapacityError
from tlstd.kernels import krylov as kernels
from tlstd.linalg.old_part import OldPart
from tlstd.linalg.threads import one_thread
from tlstd.types import FloatArray

Int32Array: TypeAlias = NDArray[np.int32]
Number = TypeVar("Number", np.float64, np.int32)

MAX_INT32 = (1 << 31) - 1
"""Largest number of entries, and of features, that can be kept."""


class Chunk:
    """Consecutive samples. Arrays may have room at their ends; what is in use follows from the number of samples.

    ``ptr``, ``pos``, ``val``: the rows, as in :mod:`tlstd.kernels.krylov`; ``X`` instead if rows are dense.
    ``row``, ``next_row``: of each sample; ``rewards`` (N, n_targets), ``discounts``, ``trace_discounts``, and ``rhos``
    or None while all are 1. Appending writes behind what is in use and replaces arrays that are too short by longer
    copies, so that whoever holds an array goes on seeing the samples that it had.
    """

    __slots__ = ("X", "discounts", "next_row", "pos", "ptr", "rewards", "rhos", "row", "trace_discounts", "val")

    def __init__(self, n_targets: int, n_features: int | None) -> None:
        """An empty chunk, of dense rows if ``n_features`` is their length."""
        self.X: FloatArray | None = None if n_features is None else np.empty((0, n_features))
        self.ptr: Int32Array = np.zeros(1, dtype=np.int32)
        self.pos: Int32Array = np.empty(0, dtype=np.int32)
        self.val: FloatArray | None = None
        self.row: Int32Array = np.empty(0, dtype=np.int32)
        self.next_row: Int32Array = np.empty(0, dtype=np.int32)
        self.rewards: FloatArray = np.empty((0, n_targets))
        self.discounts: FloatArray = np.empty(0)
        self.trace_discounts: FloatArray = np.empty(0)
        self.rhos: FloatArray | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays, with the room at their ends."""
        arrays = (getattr(self, name) for name in self.__slots__)
        return sum(0 if array is None else array.nbytes for array in arrays)

    def ratios(self, n_samples: int) -> FloatArray:
        """Importance ratios of the first ``n_samples``."""
        return np.ones(n_samples) if self.rhos is None else self.rhos[:n_samples]

    def n_rows(self, n_samples: int) -> int:
        """Number of rows that the first ``n_samples`` use."""
        last = n_samples - 1
        return 0 if last < 0 else max(int(self.row[last]), int(self.next_row[last])) + 1

    def room(self, n_samples: int, n_rows: int, n_entries: int, limit: int) -> None:
        """Make room for so many in all; at most ``limit`` samples will ever come."""
        if n_entries > MAX_INT32:
            raise CapacityError(f"{limit} samples would have {n_entries} non-zero features: at most 2³¹-1 can be kept")
        for name in ("row", "next_row", "rewards", "discounts", "trace_discounts", "rhos"):
            column = getattr(self, name)  # each by its own length: an interruption may have left them different
            if column is not None and n_samples > column.shape[0]:
                setattr(self, name, _resized(column, min(limit, _roomy(n_samples, column.shape[0]))))
        if self.X is not None:
            if n_rows > self.X.shape[0]:
                self.X = _resized(self.X, min(2 * limit, _roomy(n_rows, self.X.shape[0])))
            return
        if n_rows >= self.ptr.size:
            self.ptr = _resized(self.ptr, min(2 * limit, _roomy(n_rows, self.ptr.size)) + 1)
        if self.val is not None and n_entries > self.val.size:
            self.val = _resized(self.val, _roomy(n_entries, self.val.size))
        if n_entries > self.pos.size:
            self.pos = _resized(self.pos, _roomy(n_entries, self.pos.size))

    def trim(self, n_samples: int) -> None:
        """Give back the room behind the first ``n_samples``."""
        n_rows = self.n_rows(n_samples)
        if self.X is not None:
            self.X = _resized(self.X, n_rows)
            return
        n_entries = int(self.ptr[n_rows])
        self.ptr = _resized(self.ptr, n_rows + 1)
        if self.val is not None:
            self.val = _resized(self.val, n_entries)
        self.pos = _resized(self.pos, n_entries)


def _roomy(needed: int, size: int) -> int:
    """A new size that leaves a sixteenth of the old one over."""
    return max(needed, size + size // 16 + 16)


def _resized(array: NDArray[Number], size: int) -> NDArray[Number]:
    """A copy with another length; the array itself if it has it."""
    if array.shape[0] == size:
        return array
    copy = np.empty((size, *array.shape[1:]), dtype=array.dtype)
    kept = min(size, array.shape[0])
    copy[:kept] = array[:kept]
    return copy


class Samples(NamedTuple):
    """What a store holds at one moment; later appends do not change it."""

    chunks: tuple[Chunk, ...]
    is_dense: bool | None
    """Whether rows are dense; None before the first sample."""
    chunk_size: int
    """Samples in every chunk but the last."""
    n_samples: int
    """Samples ever appended."""
    n_left: int
    """Of these, the first ones that have left."""
    n: int
    """Features seen."""
    border: FloatArray
    """The trace after the samples that have left; as long as the features that they had."""
    old: OldPart | None = None
    """Their system, if they were folded."""

    @property
    def n_kept(self) -> int:
        """Number of samples that are there."""
        return self.n_samples - self.n_left

    def columns(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Rewards (N, n_targets), discounts, trace discounts and ratios of the samples that are there; copies."""
        parts = [(chunk, self.count(c)) for c, chunk in enumerate(self.chunks)]
        rewards: FloatArray = np.concatenate([chunk.rewards[:count] for chunk, count in parts])
        rhos: FloatArray = np.concatenate([chunk.ratios(count) for chunk, count in parts])
        return rewards, *self.discounts(), rhos

    def discounts(self) -> tuple[FloatArray, FloatArray]:
        """Discounts and trace discounts of the samples that are there; copies."""
        parts = [(chunk, self.count(c)) for c, chunk in enumerate(self.chunks)]
        discounts: FloatArray = np.concatenate([chunk.discounts[:count] for chunk, count in parts])
        traces: FloatArray = np.concatenate([chunk.trace_discounts[:count] for chunk, count in parts])
        return discounts, traces

    def count(self, c: int) -> int:
        """Number of samples in chunk ``c``."""
        return min(self.chunk_size, self.n_kept - c * self.chunk_size)

    def without(self, n_chunks: int, lambda_: float) -> Samples:
        """The samples after the first chunks, which are full, have left; the trace after them stays."""
        border = self.border
        for chunk in self.chunks[:n_chunks]:
            border = trace_after(chunk, self.chunk_size, lambda_, border)
        n_left = self.n_left + n_chunks * self.chunk_size
        return self._replace(chunks=self.chunks[n_chunks:], n_left=n_left, border=border)


def trace_after(chunk: Chunk, n_samples: int, lambda_: float, before: FloatArray) -> FloatArray:
    """The trace after the first samples of a chunk, given the one before; as long as the features that occurred."""
    factors = np.empty(n_samples)
    factor = kernels.trace_factors(chunk.trace_discounts, chunk.ratios(n_samples), lambda_, factors)
    rows = chunk.row[:n_samples]
    if chunk.X is not None:
        with one_thread():
            z: FloatArray = factors @ chunk.X[rows]
        z[: before.size] += factor * before
        return z
    n_entries = chunk.ptr[chunk.n_rows(n_samples)]
    z = np.zeros(max(before.size, int(chunk.pos[:n_entries].max(initial=-1)) + 1))
    z[: before.size] = factor * before
    kernels.scatter(chunk.ptr, chunk.pos, chunk.val, rows, factors[:, None], 0, (0,), z[:, None])
    return z
