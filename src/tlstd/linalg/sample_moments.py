"""What ridge regression has to know of stored samples."""

from __future__ import annotations

import numpy as np

from tlstd.kernels import krylov as kernels
from tlstd.linalg.chunk_products import scatter
from tlstd.linalg.sample_weights import SampleWeights
from tlstd.linalg.samples import Samples
from tlstd.types import FloatArray


def mean_square(samples: Samples, weights: SampleWeights) -> float:
    """The (weighted) mean of ‖x_t‖²."""
    total = weight = 0.0
    for c, chunk in enumerate(samples.chunks):
        count = samples.count(c)
        rows, own = chunk.row[:count], weights.of_chunk[c]
        squares = np.empty(count)
        if chunk.X is not None:
            squares = np.einsum("ij,ij->i", chunk.X[rows], chunk.X[rows])
        else:
            kernels.row_squares(chunk.ptr, chunk.val, rows, squares)
        total += float(own @ squares)
        weight += float(own.sum())
    if samples.old is not None:
        total += weights.old_weight * samples.old.square
        weight += weights.old_weight
    return total / weight if weight > 0.0 else 0.0


def feature_squares(samples: Samples) -> FloatArray:
    """Σ x_i² of each feature over the rows of the samples, those of next states included, (n,)."""
    total = np.zeros(samples.n)
    for c, chunk in enumerate(samples.chunks):
        n_rows = chunk.n_rows(samples.count(c))
        if chunk.X is not None:
            total += np.einsum("ij,ij->j", chunk.X[:n_rows], chunk.X[:n_rows])
            continue
        stop = int(chunk.ptr[n_rows])
        squares = None if chunk.val is None else chunk.val[:stop] ** 2
        total += np.bincount(chunk.pos[:stop], squares, samples.n)
    return total


def constant_features(samples: Samples) -> FloatArray:
    """The value that each feature has in every x_t, or 0 if they differ, (n,)."""
    if not samples.n_kept:
        return np.zeros(samples.n)
    first = samples.chunks[0]
    reference, counts = np.zeros((samples.n, 1)), np.zeros(samples.n, dtype=np.int64)
    if samples.old is None:
        scatter(first, first.row[:1], np.ones((1, 1)), reference)
    else:
        reference[: samples.old.constant.size, 0] = samples.old.constant
    for c, chunk in enumerate(samples.chunks):
        rows = chunk.row[: samples.count(c)]
        if chunk.X is not None:
            counts += (chunk.X[rows] == reference[:, 0]).sum(axis=0)
        else:
            kernels.count_equal(chunk.ptr, chunk.pos, chunk.val, rows, reference[:, 0], counts)
    return np.where(counts == samples.n_kept, reference[:, 0], 0.0)
