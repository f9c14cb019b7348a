"""Tile coding: binary features, one active per tiling."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from tlstd.core import parameters
from tlstd.core.arrays import FloatArray, IntArray, locked
from tlstd.data.vectors import SparseVector
from tlstd.errors import InvalidParameterError
from tlstd.features.base import EqualByArguments, Factory
from tlstd.features.states import as_box, as_counts, as_row, as_states, binary_rows, compiled, not_a_number


class TileCoder(EqualByArguments):
    """Overlapping grids over a box; each grid (tiling) has exactly one active tile.

    With n tiles in a dimension, a tile is range/(n − 1) wide, so that the n tiles overhang the box by one tile.
    Tiling j of N lies j/(N n) of the range *below* the first, in every dimension alike. Hence, for a state s,

    1. u_i = (s_i − low_i) / (high_i − low_i), clipped to [0, 1]: states outside the box count as on its edge;
    2. in tiling j, the coordinate is k_i = ⌊(u_i + j / (N n_i)) (n_i − 1)⌋, from 0 to n_i − 1 (the largest shift is
       below one tile width, so clipping it changes nothing but rounding);
    3. the feature's index is j·(n_1 ⋯ n_D) plus the position of (k_1, …, k_D) with the last dimension running fastest;
       or, with ``hash_size``, a hash of (j, k_1, …, k_D) in [0, hash_size).

    The bias, if any, has the last index. Dimensions with one tile are ignored. Tiles are closed below, open above;
    where a state lies on a boundary up to rounding, rounding decides. All tilings are shifted along one diagonal.
    ``docs/features.md`` has a picture.

    Parameters
    ----------
    low, high : (D,)
        Corners of the box.
    tiles : int or D ints, each >= 1
        Tiles per dimension, the same in all dimensions if one number.
    tilings : int >= 1
    bias : bool
        Whether there is one more feature that is always active. It is never hashed.
    hash_size : int >= 1, optional
        Hash the tiles into this many features. The number of tiles then has no limit: 10 dimensions of 100 tiles are
        fine. Left out, every tile has an index of its own.

    Attributes
    ----------
    n_features : int
        ``tilings`` × product of ``tiles``, or ``hash_size`` (+ 1).
    n_active : int
        Active features of every state: ``tilings`` (+ 1).

    Notes
    -----
    O(D · tilings) time per state, compiled; no memory beyond the result. The first call in a process loads numba, and
    the first call ever compiles.

    Hashing: with mix the output function of SplitMix64 on 64 bits without sign, h = mix(j), then h ← mix(h xor k_i) for
    i = 1, …, D, and the index is h modulo ``hash_size``. It depends on nothing else, so it is the same on every
    machine and in every run. Tiles that share an index cannot be told apart. Two active tiles of *one* state
    collide with probability about 1/hash_size per pair; then their ones add up, so that the features of every state
    sum to ``n_active`` but fewer than that may be non-zero.

    Gehring, Pan & White (2016) print only the counts (10 tilings of 10×10); width and shift are those of the first
    author's older code [G], the direction of the shift is our choice [OC]: downwards, the n tiles of every tiling
    cover the box. The hash is our choice [OC].

    References
    ----------
    R. S. Sutton, A. G. Barto, "Reinforcement Learning", 2nd edition, section 9.5.4.
    G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014 (SplitMix64).

    Example
    -------
    >>> coder = TileCoder([-1.2, -0.07], [0.6, 0.07], tiles=10, tilings=10)
    >>> coder.n_features
    1000
    >>> coder.encode([-0.5, 0.0]).indices
    array([ 34, 134, 234, 334, 434, 534, 645, 745, 845, 945])
    >>> coder.encode_many([[-0.5, 0.0], [0.6, 0.07]]).shape
    (2, 1000)

    Ten dimensions of 100 tiles, hashed:

    >>> coder = TileCoder([0.0] * 10, [1.0] * 10, tiles=100, tilings=4, hash_size=2**20, bias=True)
    >>> coder.indices([[0.5] * 10])
    array([[ 611767,  410465,  531192,  427449, 1048576]])
    """

    _makes_sound_rows = True  # see ``encoded_once``

    def __init__(
        self,
        low: ArrayLike,
        high: ArrayLike,
        *,
        tiles: int | Sequence[int],
        tilings: int,
        bias: bool = False,
        hash_size: int | None = None,
    ) -> None:
        self.low, self.high = as_box(low, high)
        self.tiles = as_counts("tiles", tiles, self.low.size)
        self.tilings = parameters.integer("tilings", tilings)
        self.bias = parameters.flag("bias", bias)
        self.hash_size = None if hash_size is None else parameters.integer("hash_size", hash_size, high=2**63 - 2)
        self.n_active = self.tilings + self.bias
        if self.hash_size is None:
            self.n_features = self.tilings * math.prod(self.tiles) + self.bias
            if self.n_features >= 2**63:
                raise InvalidParameterError(
                    f"tiles={tiles!r} and tilings={tilings!r} make {self.n_features} features, more than 64-bit "
                    "indices can count: use fewer tiles or dimensions, or hash them into hash_size features"
                )
        else:
            self.n_features = self.hash_size + self.bias
            if self.tilings * max(self.tiles) > 2**53:
                raise InvalidParameterError(
                    f"tiles={tiles!r} and tilings={tilings!r} divide a range finer than floating-point numbers can "
                    "tell apart: keep tilings times tiles per dimension within 2**53"
                )
        self._counts = np.array(self.tiles, dtype=np.int64)
        self._is_short = self.hash_size is None and self.n_features <= 2**53
        self._box = np.array([self.low, self.high])
        self._ones = locked(np.ones(self.n_active))  # the values of all vectors without hashing

    def indices(self, states: ArrayLike) -> IntArray:
        """Indices of the active features, (N, n_active): tiling by tiling, then the bias.

        They rise along each row, except when hashing: then they come in any order and may repeat.
        """
        return self._indices(as_states(states, self.low.size, with_nan=True))

    def _indices(self, array: FloatArray) -> IntArray:
        """As :meth:`indices`, of an array (N, D)."""
        kernels = compiled("tiles")
        flags = array.flags  # C-ordered and writeable, the one kind that is compiled for
        if not (flags.c_contiguous and flags.writeable):
            array = array.copy()
        index = np.empty((len(array), self.n_active), dtype=np.int64)
        arguments = array, self._box[0], self._box[1], self._counts, self.tilings
        if self._is_short:
            bad = kernels.short_tile_indices(*arguments, index)
        else:
            index[:, self.tilings :] = self.n_features - 1
            if self.hash_size is None:
                bad = kernels.tile_indices(*arguments, index)
            else:
                bad = kernels.hashed_tile_indices(*arguments, self.hash_size, index)
        if bad >= 0:  # the kernels look for NaN on their way
            raise not_a_number(array, bad)
        return index

    def encode(self, state: ArrayLike) -> SparseVector:
        """Features of one state (D,)."""
        row = as_row(state, self.low.size)
        index = np.empty(self.n_active, dtype=np.int64)
        arguments = row, self._box, self._counts, self.tilings
        if self._is_short:
            if compiled("tiles").short_tile_index(*arguments, index):
                return SparseVector._trusted(index, self._ones, self.n_features)
        elif self.hash_size is None:
            return SparseVector._trusted(self._indices(row[None])[0], self._ones, self.n_features)
        else:
            values = np.empty(self.n_active)
            if n := compiled("tiles").hashed_tiles(*arguments, self.hash_size, index, values):
                return SparseVector._trusted(index[:n], values[:n], self.n_features)
        raise not_a_number(row[None], 0)

    def encode_many(self, states: ArrayLike) -> sp.csr_array:
        """Features of states (N, D), as a canonical csr_array of shape (N, n_features) with 64-bit indices."""
        index = self._indices(as_states(states, self.low.size, with_nan=True))
        return binary_rows(index, self.n_features, rising=self.hash_size is None)

    def __repr__(self) -> str:
        tiles = "×".join(str(n) for n in self.tiles)
        hashed = "" if self.hash_size is None else f", hash_size={self.hash_size}"
        return f"TileCoder({self.tilings} tilings of {tiles}{hashed}, bias={self.bias}: {self.n_features} features)"


EXAMPLES: dict[str, Factory] = {
    "TileCoder": lambda low, high: TileCoder(low, high, tiles=4, tilings=8, bias=True),
    "TileCoder (hashed)": lambda low, high: TileCoder(low, high, tiles=100, tilings=8, hash_size=512, bias=True),
}
