"""Samples of a batch written to a chunk."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tlstd.errors import CapacityError
from tlstd.kernels import krylov as kernels
from tlstd.linalg.batch import Batch
from tlstd.linalg.samples import MAX_INT32, Chunk
from tlstd.linalg.seen import SeenFeatures
from tlstd.types import FloatArray, IntArray

_AT_ONCE = 1 << 12  # entries that are copied and looked up together, about: they stay in a cache
_NO_ROW = np.zeros(2, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0)


def write(chunk: Chunk, filled: int, part: Batch, seen: SeenFeatures, limit: int) -> None:
    """Write the samples of ``part`` behind the ``filled`` ones of a chunk of at most ``limit``, in place."""
    stop = filled + len(part)
    n_rows = chunk.n_rows(filled)
    last = int(chunk.next_row[filled - 1]) if filled else -1
    copy = _copy_sparse if chunk.X is None else _copy_dense
    shared = copy(chunk, part, n_rows, last, stop, limit, seen)
    columns = (chunk.row, chunk.next_row, chunk.rewards, chunk.discounts, chunk.trace_discounts)
    given = (part.rewards, part.discounts, part.trace_discounts, part.rhos)
    ones = kernels.write_columns(shared, given, n_rows, last, columns, filled)
    if chunk.rhos is None and not ones:
        chunk.rhos = np.ones(chunk.row.size)
    if chunk.rhos is not None:
        chunk.rhos[filled:stop] = part.rhos
    if stop == limit:
        chunk.trim(stop)


def _copy_sparse(
    chunk: Chunk, part: Batch, n_rows: int, last: int, stop: int, limit: int, seen: SeenFeatures
) -> NDArray[np.bool_]:
    """Copy the rows of samples to a chunk, in place; returns whose x is the next row of the sample before."""
    x, rows, x_next, next_rows = part.sparse()
    start, shared = int(chunk.ptr[n_rows]), np.empty(len(part), dtype=np.bool_)
    tail = _NO_ROW if last < 0 else _stored_row(chunk, last, seen)
    n_new, n_entries = kernels.plan_sparse(
        x, rows, x_next, next_rows, x is x_next, part.discounts, tail, min(last, 0), shared
    )
    chunk.room(stop, n_rows + n_new, start + n_entries, limit)
    ids, vals = np.empty(n_entries, dtype=np.int64), np.empty(n_entries)
    at_once = max(1, _AT_ONCE * len(part) // max(1, n_entries))
    for first in range(0, len(part), at_once):
        s = slice(first, first + at_once)
        n_rows, n_copied, ones = kernels.copy_sparse(
            x, rows[s], x_next, next_rows[s], shared[s], part.discounts[s], chunk.ptr, n_rows, ids, vals
        )
        end = start + n_copied
        chunk.pos[start:end] = _positions(ids[:n_copied], seen)
        if not ones and chunk.val is None:
            chunk.val = np.ones(chunk.pos.size)
        if chunk.val is not None:
            chunk.val[start:end] = vals[:n_copied]
        start = end
    return shared


def _copy_dense(
    chunk: Chunk, part: Batch, n_rows: int, last: int, stop: int, limit: int, seen: SeenFeatures
) -> NDArray[np.bool_]:
    """Copy the rows of samples to a chunk, in place; returns whose x is the next row of the sample before."""
    assert chunk.X is not None
    if not len(seen):
        seen.insert(np.arange(seen.n_features))
    if isinstance(part.x, np.ndarray) and isinstance(part.x_next, np.ndarray):
        X, rows, X_next, next_rows = part.x, part.rows, part.x_next, part.next_rows
    else:
        X, X_next = part.dense(seen.ids)
        rows = next_rows = np.arange(len(part))
    tail, shared = chunk.X[last] if last >= 0 else np.zeros(seen.n_features), np.empty(len(part), dtype=np.bool_)
    n_new, _ = kernels.plan_dense(X, rows, X_next, next_rows, X is X_next, part.discounts, tail, min(last, 0), shared)
    chunk.room(stop, n_rows + n_new, 0, limit)
    kernels.copy_dense(X, rows, X_next, next_rows, shared, part.discounts, chunk.X, n_rows)
    return shared


def _stored_row(chunk: Chunk, r: int, seen: SeenFeatures) -> tuple[IntArray, IntArray, FloatArray]:
    """A row of a chunk with feature ids, as a CSR matrix of one row."""
    entries = slice(chunk.ptr[r], chunk.ptr[r + 1])
    ids = seen.all_ids[chunk.pos[entries]]
    vals = np.ones(ids.size) if chunk.val is None else chunk.val[entries]
    return np.array([0, ids.size]), ids, vals


def _positions(ids: IntArray, seen: SeenFeatures) -> IntArray:
    """Positions of features, which are given one if they have none."""
    positions = seen.find(ids)
    missing = positions < 0
    if missing.any():
        new = ids[missing]
        seen.insert(new)
        positions[missing] = seen.find(new)
        if len(seen) > MAX_INT32:
            raise CapacityError(f"{len(seen)} features were seen: at most 2³¹-1 can be kept")
    return positions
