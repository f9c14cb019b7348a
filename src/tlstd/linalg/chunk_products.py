"""Products of the rows of samples with several vectors at once."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from tlstd.kernels import krylov as kernels
from tlstd.linalg.samples import Chunk, Samples
from tlstd.types import FloatArray

_WIDTHS = (8, 5, 2, 1)  # numbers of columns for which there is a compiled loop: each takes seconds to compile


def gather(chunk: Chunk, count: int, V: FloatArray) -> FloatArray:
    """xᵀV of the rows of a chunk that are in use."""
    n_rows = chunk.n_rows(count)
    if chunk.X is not None:
        products: FloatArray = chunk.X[:n_rows] @ V
        return products
    P = np.empty((n_rows, V.shape[1]))
    for first, width in _column_blocks(V.shape[1]):
        kernels.gather(chunk.ptr, chunk.pos, chunk.val, V, first, width, P)
    return P


def values(chunk: Chunk, count: int, V: FloatArray) -> tuple[FloatArray, FloatArray]:
    """x_tᵀV and x_{t+1}ᵀV (0 after a termination) of the first ``count`` samples of a chunk, (count, k) each."""
    P, next_row = gather(chunk, count, V), chunk.next_row[:count]
    return P[chunk.row[:count]], np.where(next_row[:, None] >= 0, P[next_row], 0.0)


def sample_values(samples: Samples, V: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The same of all samples that are there."""
    on_x, on_next = (np.empty((samples.n_kept, V.shape[1])) for _ in range(2))
    for c, chunk in enumerate(samples.chunks):
        mine = slice(c * samples.chunk_size, c * samples.chunk_size + samples.count(c))
        on_x[mine], on_next[mine] = values(chunk, samples.count(c), V)
    return on_x, on_next


def scatter(chunk: Chunk, rows: NDArray[np.int32], S: FloatArray, out: FloatArray) -> None:
    """Add Σ_i x_{rows[i]} S[i] to ``out``, in place."""
    if chunk.X is not None:
        n_rows = int(rows[-1]) + 1
        coefficients = S
        if rows.size < n_rows:
            coefficients = np.zeros((n_rows, S.shape[1]))
            coefficients[rows] = S
        out += chunk.X[:n_rows].T @ coefficients
        return
    for first, width in _column_blocks(S.shape[1]):
        kernels.scatter(chunk.ptr, chunk.pos, chunk.val, rows, S, first, width, out)


@cache
def _column_blocks(k: int) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """k columns cut into blocks of ``_WIDTHS``: where each begins, and a tuple as long as it is wide."""
    blocks, first = [], 0
    while first < k:
        width = next(width for width in _WIDTHS if width <= k - first)
        blocks.append((first, (0,) * width))
        first += width
    return tuple(blocks)
