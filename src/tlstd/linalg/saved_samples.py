"""The columns in which samples are saved, and samples from them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tlstd.container import Saved
from tlstd.kernels import krylov as kernels
from tlstd.linalg.batch import Batch
from tlstd.linalg.samples import MAX_INT32, Chunk, Samples
from tlstd.types import MAX_MAGNITUDE, IntArray


def columns_of(samples: Samples, n_features: int, n_targets: int) -> dict[str, NDArray[np.generic]]:
    """Copies of all samples that are there, as columns; ratios and values are left out if they are all 1."""
    parts = [_columns(chunk, samples.count(c)) for c, chunk in enumerate(samples.chunks)]
    width = n_features if samples.is_dense else 0
    nothing = {
        "shared": np.zeros(0, dtype=np.int64),
        "lengths": np.zeros(0, dtype=np.int64),
        "positions": np.zeros(0, dtype=np.int64),
        "values": np.zeros(0),
        "X": np.zeros((0, width)),
        "rewards": np.zeros((0, n_targets)),
        "discounts": np.zeros(0),
        "trace_discounts": np.zeros(0),
        "rhos": np.zeros(0),
    }
    columns = {name: np.concatenate([none, *(part[name] for part in parts)]) for name, none in nothing.items()}
    for name, used in (("values", "val"), ("rhos", "rhos")):  # left out if they are all 1
        if all(getattr(chunk, used) is None for chunk in samples.chunks):
            columns[name] = np.zeros(0)
    return columns


def _columns(chunk: Chunk, count: int) -> dict[str, NDArray[np.generic]]:
    """The first ``count`` samples of a chunk as columns; ``shared`` says whose x is the next row of the one before."""
    n_rows = chunk.n_rows(count)
    shared = np.zeros(count, dtype=np.int64)
    shared[1:] = chunk.row[1:count] == chunk.next_row[: count - 1]
    n_entries = int(chunk.ptr[n_rows]) if chunk.X is None else 0
    return {
        "shared": shared,
        "lengths": np.diff(chunk.ptr[: n_rows + 1]) if chunk.X is None else np.zeros(0, dtype=np.int32),
        "positions": chunk.pos[:n_entries],
        "values": np.ones(n_entries) if chunk.val is None else chunk.val[:n_entries],
        "X": np.zeros((0, 0)) if chunk.X is None else chunk.X[:n_rows],
        "rewards": chunk.rewards[:count],
        "discounts": chunk.discounts[:count],
        "trace_discounts": chunk.trace_discounts[:count],
        "rhos": chunk.ratios(count),
    }


class SavedColumns:
    """The columns of a saved state, checked, from which the samples can be appended again."""

    def __init__(self, saved: Saved, n_kept: int, n: int, n_targets: int, n_dense: int | None) -> None:
        biggest = MAX_MAGNITUDE
        self.rewards = saved.floats("rewards", n_kept, n_targets, low=-biggest, high=biggest)
        self.discounts = saved.floats("discounts", n_kept, low=0.0, high=1.0)
        self.trace_discounts = saved.floats("trace_discounts", n_kept, low=0.0, high=1.0)
        ratios = n_kept if saved.shape("rhos") != (0,) else 0
        self.rhos = saved.floats("rhos", ratios, low=0.0, high=biggest) if n_kept else saved.floats("rhos", 0)
        if not ratios:
            self.rhos = np.ones(n_kept)
        shared = saved.integers("shared", n_kept, low=0, high=1).astype(np.bool_)
        if shared[:1].any() or (shared[1:] & (self.discounts[:-1] == 0.0)).any():
            raise saved.error("shared", "says that a sample begins in a row that is not there")
        self.rows, self.next_rows = np.empty(n_kept, dtype=np.int64), np.empty(n_kept, dtype=np.int64)
        n_rows = int(kernels.place_rows(shared, self.discounts, 0, -1, self.rows, self.next_rows))
        self.lengths = saved.integers("lengths", 0 if n_dense else n_rows, low=0, high=MAX_INT32)
        self.ends = np.concatenate([[0], np.cumsum(self.lengths, dtype=np.int64)])
        n_entries = int(self.ends[-1])
        self.positions = saved.integers("positions", n_entries, low=0, high=n - 1)
        n_values = n_entries if saved.shape("values") != (0,) else 0
        self.values = saved.floats("values", n_values, low=-biggest, high=biggest)
        self.X = saved.floats("X", n_rows if n_dense else 0, n_dense or 0, low=-biggest, high=biggest)

    def batch(self, start: int, stop: int, ids: IntArray) -> Batch:
        """The samples from ``start`` to ``stop``; ``ids`` has the features by position."""
        s = slice(start, stop)
        rows, next_rows = self.rows[s], self.next_rows[s]
        columns = (self.rewards[s], self.discounts[s], self.trace_discounts[s], self.rhos[s])
        if self.X.size:
            return Batch(self.X, rows, self.X, next_rows, *columns)
        first, last = int(rows[0]), max(int(rows[-1]), int(next_rows[-1])) + 1
        entries = slice(self.ends[first], self.ends[last])
        indices = ids[self.positions[entries]]
        values = self.values[entries] if self.values.size else np.ones(indices.size)
        x = (self.ends[first : last + 1] - self.ends[first], indices, values)
        return Batch(x, rows - first, x, next_rows - first, *columns)
