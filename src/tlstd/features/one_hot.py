"""One feature for each state of a discrete space."""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.data.vectors import SparseVector
from tlstd.errors import InvalidParameterError
from tlstd.features.base import EqualByArguments, Factory
from tlstd.features.states import as_box, as_state, as_states


class OneHot(EqualByArguments):
    """One feature for every state of whole numbers in a box: weights are then a table of values.

    A state (k_1, …, k_D) has a one at its position among all of them, the last dimension running fastest, and zeros
    elsewhere. A number that is not whole counts as the nearest one, and one outside the box as on its edge.

    Parameters
    ----------
    low, high : (D,)
        Smallest and largest state, e.g. ``[0], [15]`` for Gymnasium's ``Discrete(16)``.

    Attributes
    ----------
    n_features : int
        Product of the numbers of states per dimension; only those that occur take memory in an estimator.

    Notes
    -----
    O(D) per state. For one block of features a dimension, instead of one for all, use
    :class:`~tlstd.Concatenate` with the columns of each.

    Example
    -------
    >>> lake = OneHot([0], [15])
    >>> lake.n_features, lake.encode([5]).indices
    (16, array([5]))
    >>> OneHot([0, 1], [2, 4]).encode_many([[1, 1], [2, 4]]).indices
    array([ 4, 11])
    """

    def __init__(self, low: ArrayLike, high: ArrayLike) -> None:
        self.low, self.high = as_box(low, high)
        self._sizes = [int(b) - int(a) + 1 for a, b in zip(np.rint(self.low), np.rint(self.high), strict=True)]
        self.n_features = math.prod(self._sizes)
        if self.n_features >= 2**63 or max(map(abs, (*self.low, *self.high))) > 2**53:
            raise InvalidParameterError(
                f"low={self.low.tolist()} and high={self.high.tolist()} make {self.n_features} states, more than "
                "64-bit indices can count: use TileCoder with hash_size"
            )

    def _indices(self, states: FloatArray) -> IntArray:
        cells = (np.rint(states.clip(self.low, self.high)) - np.rint(self.low)).astype(np.int64)
        index = np.zeros(len(states), dtype=np.int64)
        for i, size in enumerate(self._sizes):
            index = index * size + cells[:, i]
        return index

    def encode(self, state: ArrayLike) -> SparseVector:
        """Features of one state (D,)."""
        return SparseVector(
            self._indices(as_states(as_state(state, self.low.size), self.low.size)), [1.0], self.n_features
        )

    def encode_many(self, states: ArrayLike) -> sp.csr_array:
        """Features of states (N, D), as a canonical csr_array of shape (N, n_features) with 64-bit indices."""
        index = self._indices(as_states(states, self.low.size))
        X = sp.csr_array((len(index), self.n_features), dtype=np.float64)
        X.indptr, X.indices, X.data = np.arange(index.size + 1), index, np.ones(index.size)
        X.has_canonical_format = True
        return X

    def __repr__(self) -> str:
        return f"OneHot({'×'.join(map(str, self._sizes))}: {self.n_features} features)"


EXAMPLES: dict[str, Factory] = {"OneHot": OneHot}
