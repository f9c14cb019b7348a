"""Tile coding: binary features, one active per tiling."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from tlstd.errors import InvalidInputError, InvalidParameterError
from tlstd.types import FloatArray, IntArray, SparseVector


class TileCoder:
    """Overlapping grids over a box; each grid (tiling) has exactly one active tile.

    With n tiles in a dimension, a tile is range/(n − 1) wide, so that the n tiles overhang the box by one tile.
    Tiling j of N lies j/(N n) of the range *below* the first, in every dimension alike. Hence, for a state s,

    1. u_i = (s_i − low_i) / (high_i − low_i), clipped to [0, 1]: states outside the box count as on its edge;
    2. in tiling j, the coordinate is k_i = ⌊(u_i + j / (N n_i)) (n_i − 1)⌋, from 0 to n_i − 1 (the largest shift is
       below one tile width, so clipping it changes nothing but rounding);
    3. the feature's index is j·(n_1 ⋯ n_D) plus the position of (k_1, …, k_D) with the last dimension running fastest.

    The bias, if any, has the last index. Dimensions with one tile are ignored. Tiles are closed below, open above;
    where a state lies on a boundary up to rounding, rounding decides. All tilings are shifted along one diagonal.

    Parameters
    ----------
    low, high : (D,)
        Corners of the box.
    tiles : int or D ints, each >= 1
        Tiles per dimension, the same in all dimensions if one number.
    tilings : int >= 1
    bias : bool
        Whether there is one more feature that is always active.

    Attributes
    ----------
    n_features : int
        ``tilings`` × product of ``tiles`` (+ 1).
    n_active : int
        Non-zeros of every vector: ``tilings`` (+ 1).

    Notes
    -----
    O(D · tilings) time per state, no memory beyond the result. Gehring, Pan & White (2016) print only the counts
    (10 tilings of 10×10); width and shift are those of the first author's older code [G], the direction of the shift is
    our choice [OC]: downwards, the n tiles of every tiling cover the box.

    References
    ----------
    R. S. Sutton, A. G. Barto, "Reinforcement Learning", 2nd edition, section 9.5.4.

    Example
    -------
    >>> coder = TileCoder([-1.2, -0.07], [0.6, 0.07], tiles=10, tilings=10)
    >>> coder.n_features
    1000
    >>> coder.encode([-0.5, 0.0]).indices
    array([ 34, 134, 234, 334, 434, 534, 645, 745, 845, 945])
    >>> coder.encode_many([[-0.5, 0.0], [0.6, 0.07]]).shape
    (2, 1000)
    """

    def __init__(
        self, low: ArrayLike, high: ArrayLike, *, tiles: int | Sequence[int], tilings: int, bias: bool = False
    ) -> None:
        self.low, self.high = _box(low, high)
        self.tiles = _per_dimension(tiles, "tiles", self.low.size)
        if not _is_count(tilings):
            raise InvalidParameterError(f"tilings is {tilings!r}: pass an integer >= 1")
        self.tilings = int(tilings)
        self.bias = bool(bias)
        tiles_per_tiling = math.prod(self.tiles)
        self.n_active = self.tilings + self.bias
        self.n_features = self.tilings * tiles_per_tiling + self.bias
        if self.n_features >= 2**63:
            raise InvalidParameterError(
                f"tiles={tiles!r} and tilings={tilings!r} make {self.n_features} features, more than 64-bit indices "
                "can count: use fewer tiles or dimensions"
            )
        self._first = np.arange(self.tilings, dtype=np.int64) * tiles_per_tiling

    def indices(self, states: ArrayLike) -> IntArray:
        """Indices of the active features, (N, n_active), rising along each row."""
        u = (_as_states(states, self.low.size).clip(self.low, self.high) - self.low) / (self.high - self.low)
        index = np.zeros((len(u), self.tilings), dtype=np.int64)
        for i, n in enumerate(self.tiles):
            shift = np.arange(self.tilings) / (self.tilings * n)
            tile = ((u[:, i, None] + shift) * (n - 1)).astype(np.int64)  # non-negative: truncation is the floor
            np.minimum(tile, n - 1, out=tile)
            index *= n
            index += tile
        index += self._first
        if not self.bias:
            return index
        return np.column_stack([index, np.full(len(u), self.n_features - 1)])

    def encode(self, state: ArrayLike) -> SparseVector:
        """Features of one state (D,)."""
        index = self.indices(_as_state(state, self.low.size))[0]
        return SparseVector(index, np.ones(self.n_active), self.n_features)

    def encode_many(self, states: ArrayLike) -> sp.csr_array:
        """Features of states (N, D), as a canonical csr_array of shape (N, n_features)."""
        index = self.indices(states)
        indptr = np.arange(0, index.size + 1, self.n_active)
        return sp.csr_array((np.ones(index.size), index.ravel(), indptr), shape=(len(index), self.n_features))

    def __repr__(self) -> str:
        tiles = "×".join(str(n) for n in self.tiles)
        return f"TileCoder({self.tilings} tilings of {tiles}, bias={self.bias}: {self.n_features} features)"


def _box(low: ArrayLike, high: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return read-only copies of the corners, checked."""
    bottom, top = np.array(low, dtype=np.float64), np.array(high, dtype=np.float64)
    if bottom.ndim != 1 or bottom.size == 0 or bottom.shape != top.shape:
        raise InvalidParameterError(f"low and high have shapes {bottom.shape} and {top.shape}: pass (D,) for both")
    good = np.isfinite(bottom) & np.isfinite(top) & (bottom < top)
    if not good.all():
        i = int(np.flatnonzero(~good)[0])
        raise InvalidParameterError(
            f"low[{i}] is {bottom[i]} and high[{i}] is {top[i]}: the box needs finite bounds with low < high"
        )
    bottom.flags.writeable = top.flags.writeable = False
    return bottom, top


def _per_dimension(value: int | Sequence[int], name: str, n_dimensions: int) -> tuple[int, ...]:
    counts = tuple(value) if isinstance(value, (Sequence, np.ndarray)) else (value,) * n_dimensions
    if len(counts) != n_dimensions or not all(_is_count(count) for count in counts):
        raise InvalidParameterError(f"{name} is {value!r}: pass an integer >= 1, or {n_dimensions} of them")
    return tuple(int(count) for count in counts)


def _is_count(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_)) and bool(value >= 1)


def _as_state(state: ArrayLike, n_dimensions: int) -> FloatArray:
    array = np.asarray(state, dtype=np.float64)
    if array.shape != (n_dimensions,):
        raise InvalidInputError(f"the state has shape {array.shape}: pass ({n_dimensions},), or use encode_many")
    return array[None]


def _as_states(states: ArrayLike, n_dimensions: int) -> FloatArray:
    array = np.asarray(states, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != n_dimensions:
        raise InvalidInputError(f"states have shape {array.shape}: pass (N, {n_dimensions})")
    if np.isnan(array).any():
        row = int(np.flatnonzero(np.isnan(array).any(axis=1))[0])
        raise InvalidInputError(f"state {row} is {array[row].tolist()}: a state that is not a number has no tile")
    return array
