"""A random projection of sparse vectors whose matrix is computed from feature ids and never stored."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tlstd.core import parameters
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.data.batch import CSRArrays
from tlstd.errors import InvalidParameterError
from tlstd.zoo.kernels import sketch as kernels

NONZEROS = 4
"""Non-zeros in a column of S by default."""


class Sketch(NamedTuple):
    """S (r, d) with ``nonzeros`` entries ±1/√s a column, at hashed places: see :mod:`tlstd.zoo.kernels.sketch`.

    Over seeds, lengths and inner products are kept in the mean, with a standard deviation of about √(1/r).

    Example
    -------
    >>> S = Sketch(rows=6, nonzeros=2, seed=0)
    >>> x = np.array([0, 1]), np.array([3]), np.array([2.0])  # one vector, with 2 at feature 3
    >>> S.project(x, np.array([0])).round(3) ** 2
    array([[0.      , 0.      , 1.999396, 0.      , 0.      , 1.999396]])
    """

    rows: int
    nonzeros: int
    seed: int

    @classmethod
    def checked(cls, rows: int, nonzeros: int | None, seed: int) -> Sketch:
        """From constructor arguments; ``NONZEROS`` of them, or as many as there are rows, by default."""
        rows, seed = parameters.integer("dimension", rows), parameters.integer("seed", seed, low=0)
        if nonzeros is None:
            return cls(rows, min(NONZEROS, rows), seed)
        if parameters.integer("nonzeros", nonzeros) > rows:
            raise InvalidParameterError(f"nonzeros is {nonzeros} with dimension={rows}: it must be at most that")
        return cls(rows, nonzeros, seed)

    def project(self, vectors: CSRArrays, picked: IntArray) -> FloatArray:
        """S x for each of the picked rows, (N, r). O(nonzeros) for each of their entries."""
        out = np.empty((picked.size, self.rows))
        kernels.project(*vectors, picked, self.seed, self.nonzeros, out)
        return out

    def lift(self, ids: IntArray, Y: FloatArray) -> FloatArray:
        """The rows ``ids`` of SᵀY, (n, m), for Y (r, m). O(nonzeros·m) for each."""
        out = np.empty((ids.size, Y.shape[1]))
        kernels.lift(ids, self.seed, self.nonzeros, Y, out)
        return out
