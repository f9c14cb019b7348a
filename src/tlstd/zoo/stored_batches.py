"""Stored samples as a batch again, in the order in which they came or with their episodes shuffled."""

from __future__ import annotations

import numpy as np

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.data.batch import Batch, CSRArrays
from tlstd.krylov.samples import Chunk, Samples


def recorded(samples: Samples, ids: IntArray) -> Batch:
    """All samples of a store, as one batch with one store of rows; the first one begins with an empty trace.

    Parameters
    ----------
    samples : Samples
        Of a :class:`~tlstd.krylov.samples.SampleStore` that lets none leave.
    ids : (n,)
        Ids of the features by position.

    Returns
    -------
    Batch
        Next rows of terminated samples, which are not stored, are zero. O(entries) time and memory, all copies.

    Example
    -------
    >>> from tlstd import boyan_chain
    >>> from tlstd.krylov.samples import SampleStore
    >>> steps = boyan_chain().sample(100, np.random.default_rng(0))
    >>> store = SampleStore(4, lambda_=0.5)
    >>> store.append(Batch.from_transitions(steps))
    >>> again = recorded(store.samples, store.ids)
    >>> bool(np.array_equal(again.rewards[:, 0], steps.rewards)), again.x is again.x_next
    (True, True)
    """
    counts = [samples.count(c) for c in range(len(samples.chunks))]
    heights = [chunk.n_rows(count) for chunk, count in zip(samples.chunks, counts, strict=True)]
    firsts = np.concatenate([[0], np.cumsum(heights, dtype=np.int64)])
    nothing = int(firsts[-1])  # the row behind all others, which is zero
    parts = list(zip(samples.chunks, counts, firsts, strict=False))
    rows = [chunk.row[:count] + first for chunk, count, first in parts]
    next_rows = [
        np.where(chunk.next_row[:count] < 0, nothing, chunk.next_row[:count] + first) for chunk, count, first in parts
    ]
    rewards, discounts, trace_discounts, rhos = samples.columns()
    trace_discounts[:1] = 0.0
    store = _dense(samples.chunks, heights) if samples.is_dense else _sparse(samples.chunks, heights, ids)
    columns = (rewards, discounts, trace_discounts, rhos)
    return Batch(store, np.concatenate(rows), store, np.concatenate(next_rows), *columns)


def shuffled(batch: Batch, rng: np.random.Generator) -> Batch:
    """The batch with its episodes, from one empty trace to the next, in a random order. Rows are not copied.

    Example
    -------
    >>> x, rows, traces = np.eye(6), np.arange(6), np.array([0.0, 0.9, 0.0, 0.9, 0.9, 0.0])
    >>> made = Batch(x, rows, x, rows, np.zeros((6, 1)), np.full(6, 0.9), traces, np.ones(6))
    >>> shuffled(made, np.random.default_rng(0)).rows
    array([5, 0, 1, 2, 3, 4])
    """
    starts = np.flatnonzero(batch.trace_discounts == 0.0)
    lengths = np.diff(starts, append=len(batch))
    order = rng.permutation(starts.size)
    ends = np.cumsum(lengths[order])
    new = np.repeat(starts[order] - ends + lengths[order], lengths[order]) + np.arange(len(batch))
    columns = (batch.rewards[new], batch.discounts[new], batch.trace_discounts[new], batch.rhos[new])
    return Batch(batch.x, batch.rows[new], batch.x_next, batch.next_rows[new], *columns)


def _sparse(chunks: tuple[Chunk, ...], heights: list[int], ids: IntArray) -> CSRArrays:
    """The rows of all chunks and an empty one, with feature ids."""
    lengths = [np.diff(chunk.ptr[: height + 1]) for chunk, height in zip(chunks, heights, strict=True)]
    indptr = np.concatenate([[0], np.cumsum(np.concatenate([*lengths, [0]]), dtype=np.int64)])
    used = [int(length.sum()) for length in lengths]
    positions = np.concatenate([chunk.pos[:size] for chunk, size in zip(chunks, used, strict=True)])
    values = [
        np.ones(size) if chunk.val is None else chunk.val[:size] for chunk, size in zip(chunks, used, strict=True)
    ]
    return indptr, ids[positions], np.concatenate(values)


def _dense(chunks: tuple[Chunk, ...], heights: list[int]) -> FloatArray:
    """The rows of all chunks and a zero one."""
    tables = [chunk.X[:height] for chunk, height in zip(chunks, heights, strict=True) if chunk.X is not None]
    return np.concatenate([*tables, np.zeros((1, tables[0].shape[1]))])
