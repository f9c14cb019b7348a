"""Feature maps made of feature maps: side by side, and one block per action."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

import tlstd
from tlstd.core import parameters
from tlstd.core.arrays import FloatArray, IntArray, Matrix, as_array, as_real
from tlstd.data.vectors import SparseVector, Vector
from tlstd.errors import InvalidInputError, InvalidParameterError
from tlstd.features.base import EqualByArguments, Factory, FeatureMap, check_map


class Concatenate(EqualByArguments):
    """The features of several maps, one after another.

    Each map sees the whole state, or the columns of it that are stated with it. Dense maps together are dense; as soon
    as one of them is sparse, so is the result.

    Parameters
    ----------
    maps : sequence of maps and of pairs (map, columns)
        ``columns`` is a sequence of whole numbers >= 0: the map sees ``state[columns]``, in that order.

    Attributes
    ----------
    n_features : int
        Sum over the maps.

    Notes
    -----
    Costs what the maps cost, plus one copy of their features. Every map that has a bias brings it along: one of them is
    enough.

    Example
    -------
    Tiles over position and velocity, and a Fourier basis over position alone:

    >>> from tlstd.features import Fourier, TileCoder
    >>> coder = TileCoder([0.0, 0.0], [1.0, 1.0], tiles=(2, 3), tilings=2)
    >>> both = Concatenate([coder, (Fourier([0.0], [1.0], order=1), [0])])
    >>> both.n_features
    14
    >>> x = both.encode([0.8, 0.9])
    >>> x.indices, x.values.round(4)         # tiles 1 and 11 of 12; 1, cos(0.8π)
    (array([ 1, 11, 12, 13]), array([ 1. , 1. , 1. , -0.809]))
    """

    def __init__(self, maps: Sequence[FeatureMap | tuple[FeatureMap, Sequence[int]]]) -> None:
        try:
            parts = iter(maps)
        except TypeError as error:
            raise InvalidParameterError(f"maps is {maps!r}: pass a list of feature maps") from error
        self.maps: tuple[tuple[FeatureMap, IntArray | None], ...] = tuple(_with_columns(part) for part in parts)
        if not self.maps:
            raise InvalidParameterError("maps is empty: pass at least one feature map")
        self.n_features = _checked_size(sum(m.n_features for m, _ in self.maps), "the maps together")

    def encode(self, state: ArrayLike) -> Vector:
        """Features of one state (D,): a SparseVector if any map is sparse, else a dense (n_features,)."""
        array = as_real(state, "the state")
        if array.ndim != 1:
            raise InvalidInputError(f"the state has shape {array.shape}: pass (D,), or use encode_many")
        parts = [m.encode(_seen(array, columns)) for m, columns in self.maps]
        dense = [part for part in parts if isinstance(part, np.ndarray)]
        if len(dense) == len(parts):
            return np.concatenate(dense)
        sparse = [part if isinstance(part, SparseVector) else SparseVector.from_dense(part) for part in parts]
        offset = np.cumsum([0] + [part.size for part in sparse[:-1]])
        indices = np.concatenate([part.indices + first for part, first in zip(sparse, offset, strict=True)])
        return SparseVector(indices, np.concatenate([part.values for part in sparse]), self.n_features)

    def encode_many(self, states: ArrayLike) -> Matrix:
        """Features of states (N, D), (N, n_features): a canonical csr_array if any map is sparse, else dense."""
        array = as_real(states, "states")
        if array.ndim != 2:
            raise InvalidInputError(f"states have shape {array.shape}: pass (N, D)")
        parts = [m.encode_many(_seen(array, columns)) for m, columns in self.maps]
        if any(sp.issparse(part) for part in parts):
            return sp.hstack([sp.csr_array(part) for part in parts], format="csr")
        stacked: FloatArray = np.concatenate(parts, axis=1)
        return stacked

    def __repr__(self) -> str:
        parts = [repr(m) if columns is None else f"({m!r}, {columns.tolist()})" for m, columns in self.maps]
        return f"Concatenate([{', '.join(parts)}]: {self.n_features} features)"


class StateAction(EqualByArguments):
    """Features of states and actions: those of the state, in the block of the action; all other blocks are zero.

    With d features of the state, those of action a have the indices a·d, …, a·d + d − 1. Every action gets weights of
    its own, so that action values are learnt as state values are: from x = (s, a) to x_next = (s', a'), where a' is
    the action that the policy takes in s'. Always sparse, for dense maps too: one block in n_actions is not zero.

    Parameters
    ----------
    features : feature map
        Of states.
    n_actions : int >= 1
        Actions are 0, …, n_actions − 1.

    Attributes
    ----------
    n_features : int
        n_actions · d.

    Notes
    -----
    Costs what the map costs, plus one copy of its features. The bias of the map, if any, becomes one per action.

    Example
    -------
    >>> from tlstd.features import TileCoder
    >>> q = StateAction(TileCoder([0.0], [1.0], tiles=3, tilings=2), n_actions=2)
    >>> q.n_features
    12
    >>> q.encode([0.4], 0).indices, q.encode([0.4], 1).indices
    (array([0, 4]), array([ 6, 10]))
    >>> q.encode_many([[0.4], [0.4]], [0, 1]).indices
    array([ 0,  4,  6, 10])
    """

    def __init__(self, features: FeatureMap, n_actions: int) -> None:
        check_map(features)
        self.features = features
        self.n_actions = parameters.integer("n_actions", n_actions)
        self.n_features = _checked_size(self.n_actions * features.n_features, f"n_actions={n_actions!r}")

    def encode(self, state: ArrayLike, action: int) -> SparseVector:
        """Features of one state (D,) with one action."""
        (block,) = _as_actions([action], 1, self.n_actions)
        x = self.features.encode(state)
        if isinstance(x, np.ndarray):
            x = SparseVector.from_dense(x)
        return SparseVector(x.indices + block * self.features.n_features, x.values, self.n_features)

    def encode_many(self, states: ArrayLike, actions: ArrayLike) -> sp.csr_array:
        """Features of states (N, D) with actions (N,), as a canonical csr_array of shape (N, n_features)."""
        X = sp.csr_array(self.features.encode_many(states))
        block = _as_actions(actions, X.shape[0], self.n_actions)
        offset = np.repeat(block * self.features.n_features, np.diff(X.indptr))
        return sp.csr_array((X.data, X.indices + offset, X.indptr), shape=(X.shape[0], self.n_features))

    def __repr__(self) -> str:
        return f"StateAction({self.features!r}, {self.n_actions} actions: {self.n_features} features)"


def _with_columns(part: FeatureMap | tuple[FeatureMap, Sequence[int]]) -> tuple[FeatureMap, IntArray | None]:
    """Split what was passed for one map into the map and its columns, None for all of them."""
    if not isinstance(part, tuple):
        check_map(part)
        return part, None
    if len(part) != 2:
        raise InvalidParameterError(f"maps contains a tuple of {len(part)}: pass a map, or a pair (map, columns)")
    features, columns = part
    check_map(features)
    try:
        index = as_array(columns, "columns")
    except InvalidInputError as error:
        raise InvalidParameterError(str(error)) from error
    if index.ndim != 1 or index.size == 0 or index.dtype.kind not in "iu" or index.min() < 0:
        raise InvalidParameterError(f"columns are {columns!r}: pass a sequence of integers >= 0, e.g. [0, 1]")
    return features, index.astype(np.int64)


def _checked_size(n_features: int, origin: str) -> int:
    if n_features >= 2**63:
        raise InvalidParameterError(
            f"{origin} make {n_features} features, more than 64-bit indices can count: use smaller maps"
        )
    return n_features


def _seen(states: FloatArray, columns: IntArray | None) -> FloatArray:
    """The part of a state (D,), or of states (N, D), that a map sees."""
    if columns is None:
        return states
    if columns.max() >= states.shape[-1]:
        raise InvalidInputError(
            f"states have shape {states.shape}, but a map sees column {columns.max()}: pass all columns"
        )
    return states[..., columns]


def _as_actions(actions: ArrayLike, n: int, n_actions: int) -> IntArray:
    array = as_array(actions, "actions")
    if array.shape != (n,):
        raise InvalidInputError(f"actions have shape {array.shape}: pass one for each of {n} states")
    if n and array.dtype.kind not in "iu":
        raise InvalidInputError(f"actions are of type {array.dtype}: pass integers from 0 to {n_actions - 1}")
    bad = (array < 0) | (array >= n_actions)
    if bad.any():
        raise InvalidInputError(f"actions contain {array[bad][0]}: they lie in 0, …, {n_actions - 1}")
    return array.astype(np.int64)


EXAMPLES: dict[str, Factory] = {
    "Concatenate": lambda low, high: Concatenate(
        [tlstd.TileCoder(low, high, tiles=2, tilings=4), (tlstd.Fourier(low[:1], high[:1], order=3), [0])]
    ),
}
