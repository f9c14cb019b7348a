"""Sparse transitions as the loops of TD and its relatives take them: vectors, and the rows of their features."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.data.batch import Batch, plain, row_arrays
from tlstd.data.feature_index import FeatureIndex, RowArray
from tlstd.data.kernels import transitions as checks

_CHUNK = 1 << 18
"""Feature entries, of x and x_next together, that are translated into rows at once."""


class Vectors(NamedTuple):
    """Sparse vectors, and which of them are x_t (``first``) and x_{t+1} (``second``) at each step."""

    indptr: IntArray
    ids: IntArray
    values: FloatArray
    first: IntArray
    second: IntArray


def vectors_of(batch: Batch) -> Vectors:
    """The vectors of a batch. Ids and values of a recorded trajectory are views; all arrays are writable."""
    x, rows, x_next, next_rows = batch.sparse()
    if rows.size == 1:
        (x_ids, x_values), (next_ids, next_values) = row_arrays(x, rows[0]), row_arrays(x_next, next_rows[0])
        indptr = np.array([0, x_ids.size, x_ids.size + next_ids.size])
        ids, values = np.concatenate((x_ids, next_ids)), np.concatenate((x_values, next_values))
        return Vectors(indptr, ids, values, np.array([0]), np.array([1]))
    if x is x_next:
        low, high = min(rows.min(), next_rows.min()), max(rows.max(), next_rows.max()) + 1
        if high - low <= 2 * rows.size:
            first, second = rows - low, next_rows - low
            used = np.zeros(high - low, dtype=np.bool_)
            used[first] = used[second] = True
            if used.all():  # what lies between rows in use has not been checked
                start, stop = x[0][low], x[0][high]
                indptr = x[0][low : high + 1] - start
                return Vectors(indptr, plain(x[1][start:stop]), plain(x[2][start:stop]), first, second)
    n = rows.size
    size = int(checks.entries(x[0], rows) + checks.entries(x_next[0], next_rows))
    indptr, ids, values = np.zeros(2 * n + 1, dtype=np.int64), np.empty(size, dtype=np.int64), np.empty(size)
    checks.copy_picked(*x, rows, indptr, ids, values, 0)
    checks.copy_picked(*x_next, next_rows, indptr, ids, values, n)
    return Vectors(indptr, ids, values, np.arange(n), np.arange(n, 2 * n))


def end_of_part(batch: Batch, start: int, n_features: int, *, as_dense: bool = False) -> int:
    """Up to where to hand transitions to the loops at once, so that copies of their features stay small."""
    if len(batch) == 1:
        return 1
    if as_dense or not (isinstance(batch.x, tuple) and isinstance(batch.x_next, tuple)):
        return min(len(batch), start + max(1, _CHUNK // (2 * n_features)))
    return int(checks.steps_within(batch.x[0], batch.rows, batch.x_next[0], batch.next_rows, start, _CHUNK))


def rows_of(vectors: Vectors, seen: FeatureIndex, also: IntArray | None = None) -> RowArray:
    """Rows, from 1 on, of the features of all vectors, 0 where there is none.

    Those of the vectors x, and of those with the numbers ``also``, get one if they have none.
    """
    rows, missing = seen.places(vectors.ids)
    if not missing:
        return rows
    wanted = np.zeros(vectors.indptr.size - 1, dtype=np.bool_)
    wanted[vectors.first] = True
    if also is not None:
        wanted[also] = True
    new = np.empty(missing, dtype=np.int64)
    count = checks.ids_without_row(vectors.indptr, vectors.ids, rows, wanted, new)
    if count:
        new = np.sort(FeatureIndex(seen.n_features, new[:count]).ids)  # each once, much faster than by np.unique
        seen.reserve(new.size)
        seen.insert(new)
        rows, _ = seen.places(vectors.ids)
    return rows
