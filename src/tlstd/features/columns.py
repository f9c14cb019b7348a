"""The columns of the state as they are."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tlstd.core import parameters
from tlstd.core.arrays import FloatArray
from tlstd.features.base import EqualByArguments
from tlstd.features.states import as_state, as_states


class Columns(EqualByArguments):
    """The state itself and a constant 1: values that are linear in the columns of a log, or features made elsewhere.

    There is no box: numbers are taken as they are. Scale them to about the same size.

    Parameters
    ----------
    n_columns : int >= 1
    bias : bool
        Whether there is one more feature that is always 1, the last.

    Attributes
    ----------
    n_features : int
        ``n_columns`` (+ 1).

    Example
    -------
    >>> Columns(2).encode([0.5, -1.0])
    array([ 0.5, -1. ,  1. ])
    """

    def __init__(self, n_columns: int, *, bias: bool = True) -> None:
        self.n_columns = parameters.integer("n_columns", n_columns)
        self.bias = parameters.flag("bias", bias)
        self.n_features = self.n_columns + self.bias

    def encode(self, state: ArrayLike) -> FloatArray:
        """Features of one state (n_columns,)."""
        x: FloatArray = self.encode_many(as_state(state, self.n_columns))[0]
        return x

    def encode_many(self, states: ArrayLike) -> FloatArray:
        """Features of states (N, n_columns), shape (N, n_features)."""
        array = as_states(states, self.n_columns)
        if not self.bias:
            return np.ascontiguousarray(array)
        return np.concatenate([array, np.ones((len(array), 1))], axis=1)

    def __repr__(self) -> str:
        return f"Columns({self.n_columns}, bias={self.bias}: {self.n_features} features)"
