"""Tiles whose widths come from data: what ``features="auto"`` makes of the columns of a log."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, combinations, pairwise

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from tlstd.core import parameters
from tlstd.core.arrays import FloatArray, IntArray, as_real, locked
from tlstd.data.vectors import SparseVector
from tlstd.errors import InvalidParameterError
from tlstd.features.base import EqualByArguments, Factory
from tlstd.features.standardised import observed
from tlstd.features.states import as_box, as_row, as_states, binary_rows, compiled, not_a_number

N_KNOTS = 65
"""Quantiles that a scale is made of."""
ACTIVE = 32
"""Active features aimed at: there are so many tilings of each single column and pair that it is about this."""
MOST_TILINGS = 8
FEWEST_TILES, MOST_TILES = 4, 32
"""Tiles per dimension: twice the sixth root of the number of observations, within these limits."""
ALL_PAIRS = 16
"""Columns up to which every pair is tiled; of more columns only neighbours."""
HASHED = 1 << 16
"""Tiles beyond which they are hashed, into so many features."""


class AutoTiles(EqualByArguments):
    """Tilings of every single column and of pairs of columns, on scales on which data lie evenly.

    Each column has a *scale*, a rising piecewise linear function from its values to [0, 1]: halfway between the rank
    among the observations that it was made from (quantiles) and the position between the least and the largest of the
    middle 98% of them. So tiles are narrow where there are many data, and rare far values still have tiles of
    their own. Columns with few different values have a tile for each of them. On these scales every column by itself
    and every pair of columns (beyond ``ALL_PAIRS`` columns: every pair of neighbours) is tiled as by
    :class:`~tlstd.TileCoder`; a constant column is left out. A bias comes last.

    :meth:`fit` makes it from observations, with nothing to choose. The same observations give the same map, and
    a state outside of them counts as on the edge.

    Parameters
    ----------
    scales : D arrays (K, 2)
        Values of a column, rising, and their places in [0, 1], rising. One row: the column is left out.
    tiles : D ints
        Tiles of each column.
    tilings : int >= 1
        Of each single column and of each pair.
    hash_size : int >= 1, optional
        Hash the tiles into this many features.

    Attributes
    ----------
    n_features : int
    n_active : int
        Active features of every state, the bias included.

    Notes
    -----
    ``encode`` takes O(D log K + n_active) time, and for hashed tiles a sort; it is one compiled call. The first call in
    a process loads numba, and the first call ever compiles. ``indices`` and ``encode_many`` are NumPy and give the
    same indices.

    Example
    -------
    >>> rng = np.random.default_rng(0)
    >>> seen = np.column_stack([rng.standard_normal(1_000), rng.exponential(size=1_000), np.arange(1_000) % 2])
    >>> tiles = AutoTiles.fit(seen)
    >>> tiles
    AutoTiles(5 tilings of 6, 6, 3 tiles and their pairs: 436 features)
    >>> tiles.encode([0.1, 0.5, 1.0]).nnz
    31
    """

    _makes_sound_rows = True  # see ``encoded_once``

    def __init__(
        self, scales: Sequence[ArrayLike], *, tiles: Sequence[int], tilings: int, hash_size: int | None = None
    ) -> None:
        self.scales = tuple(_scale(scale, i) for i, scale in enumerate(scales))
        if not self.scales or len(tiles) != len(self.scales):
            raise InvalidParameterError(
                f"there are {len(self.scales)} scales and {len(tiles)} tiles: pass one for each column"
            )
        self.tiles = tuple(parameters.integer(f"tiles[{i}]", n, high=2**20) for i, n in enumerate(tiles))
        self.tilings = parameters.integer("tilings", tilings, high=2**20)
        self.hash_size = None if hash_size is None else parameters.integer("hash_size", hash_size, high=2**62)
        used = [i for i, scale in enumerate(self.scales) if len(scale) > 1]
        pairs = list(combinations(used, 2)) if len(used) <= ALL_PAIRS else list(pairwise(used))
        groups = [(i, i) for i in used] + pairs  # a column by itself is a pair with itself
        sizes = [self.tilings * math.prod(self.tiles[i] for i in set(group)) for group in groups]
        self.n_features = (sum(sizes) if self.hash_size is None else self.hash_size) + 1
        self.n_active = self.tilings * len(groups) + 1
        if self.n_features >= 2**63:
            raise InvalidParameterError(
                f"the tiles make {self.n_features} features, more than 64-bit indices can count: pass hash_size"
            )
        # rows for the kernel: where the scale of a column begins and ends, and its tiles; a group and its first index
        spans = pairwise(accumulate(map(len, self.scales), initial=0))
        firsts = np.cumsum([0, *sizes], dtype=np.int64)[:-1]
        self._knots = np.concatenate(self.scales)
        self._columns = np.array([(*span, n) for span, n in zip(spans, self.tiles, strict=True)], dtype=np.int64)
        self._groups = np.column_stack([np.array(groups, dtype=np.int64).reshape(-1, 2), firsts])

    @classmethod
    def fit(cls, observations: ArrayLike, *, n: int | None = None) -> AutoTiles:
        """The map for observations (N, D), N >= 1; O(D N log N) time.

        ``n`` is the number of steps of the whole log where the observations are a sample of it: the number of tiles per
        dimension follows ``n``, and the scales follow the sample. Left out, it is N.
        """
        array = observed(observations)
        n = np.shape(observations)[0] if n is None else parameters.integer("n", n)
        most = int(np.clip(round(2.0 * n ** (1 / 6)), FEWEST_TILES, MOST_TILES))
        scales, tiles = zip(*(_fitted(column, most) for column in array.T), strict=True)
        n_used = sum(len(scale) > 1 for scale in scales)
        n_groups = n_used + (n_used * (n_used - 1) // 2 if n_used <= ALL_PAIRS else n_used - 1)
        tilings = int(np.clip(round(ACTIVE / max(1, n_groups)), 1, MOST_TILINGS))
        plain = cls(scales, tiles=tiles, tilings=tilings)
        return plain if plain.n_features <= HASHED else cls(scales, tiles=tiles, tilings=tilings, hash_size=HASHED)

    def indices(self, states: ArrayLike) -> IntArray:
        """Indices of the active features, (N, n_active); they rise along a row unless they are hashed."""
        array = as_states(states, len(self.scales))
        tilings = np.arange(self.tilings)
        cells: dict[int, IntArray] = {}
        for i in np.unique(self._groups[:, :2]).tolist():
            scale, n = self.scales[i], self.tiles[i]
            place = np.minimum(np.interp(array[:, i], scale[:, 0], scale[:, 1]), 1.0)  # inf between values 1e-309 apart
            cells[i] = np.floor((place[:, None] + tilings / (self.tilings * n)) * (n - 1)).astype(np.int64)
        index = np.empty((len(array), self.n_active), dtype=np.int64)
        for g, (a, b, first) in enumerate(self._groups.tolist()):
            found = tilings * self.tiles[a] + cells[a]
            if b != a:
                found = found * self.tiles[b] + cells[b]
            index[:, g * self.tilings : (g + 1) * self.tilings] = found + first
        if self.hash_size is not None:
            index = _hashed(index, self.hash_size)
        index[:, -1] = self.n_features - 1
        return index

    def encode(self, state: ArrayLike) -> SparseVector:
        """Features of one state (D,)."""
        row = as_row(state, len(self.scales))
        index, values = np.empty(self.n_active, dtype=np.int64), np.empty(self.n_active)
        is_hashed = self.hash_size is not None
        arguments = self._knots, self._columns, self._groups, self.tilings, self.n_features, is_hashed
        n = compiled("tiles").auto_tiles(row, *arguments, index, values)
        if not n:
            raise not_a_number(row[None], 0)
        return SparseVector._trusted(index[:n], values[:n], self.n_features)

    def encode_many(self, states: ArrayLike) -> sp.csr_array:
        """Features of states (N, D), as a canonical csr_array of shape (N, n_features) with 64-bit indices."""
        return binary_rows(self.indices(states), self.n_features, rising=self.hash_size is None)

    def __repr__(self) -> str:
        tiles = ", ".join(str(n) for n, scale in zip(self.tiles, self.scales, strict=True) if len(scale) > 1) or "no"
        pairs = f" and their pairs{'' if len(self.scales) <= ALL_PAIRS else ' of neighbours'}" * (len(self._groups) > 1)
        hashed = "" if self.hash_size is None else f", hash_size={self.hash_size}"
        return f"AutoTiles({self.tilings} tilings of {tiles} tiles{pairs}{hashed}: {self.n_features} features)"


def _scale(scale: ArrayLike, i: int) -> FloatArray:
    array = as_real(scale, f"scales[{i}]", InvalidParameterError).copy()
    if array.ndim != 2 or array.shape[1] != 2 or not len(array) or not np.isfinite(array).all():
        raise InvalidParameterError(f"scales[{i}] has shape {array.shape}: pass (K, 2) finite numbers, K >= 1")
    if (np.diff(array, axis=0) <= 0.0).any() or array[0, 1] < 0.0 or array[-1, 1] > 1.0:
        raise InvalidParameterError(f"scales[{i}] does not rise, or leaves [0, 1]: pass rising values and places")
    return locked(array)


def _fitted(column: FloatArray, most: int) -> tuple[FloatArray, int]:
    """The scale of a column and its number of tiles."""
    values = np.unique(column[:: max(1, column.size // 1000)])
    if values.size <= most:  # it may have few values
        values = np.unique(column)
    k = values.size
    if k == 1:
        return np.array([[values[0], 0.0]]), 1
    if k <= most:  # each value in the middle of a tile: shifted tilings have one tile more
        return np.column_stack([values, (np.arange(k) + 0.5) / k]), k + 1
    levels = np.linspace(0.0, 1.0, N_KNOTS)
    column = np.sort(column)  # once: NumPy finds many quantiles of sorted numbers about ten times faster
    *quantiles, low, high = np.quantile(column, np.append(levels, [0.01, 0.99]))
    knots, which = np.unique(quantiles, return_inverse=True)
    ranks = np.bincount(which, levels) / np.bincount(which)  # of a value that is many, its middle rank
    if not high > low:
        low, high = knots[0], knots[-1]
    position = (knots.clip(low, high) - low) / (high - low)
    places = 0.5 * (ranks + position)
    rising = np.concatenate([[True], np.diff(places) > 0.0]) & np.concatenate([[True], np.diff(knots) > 0.0])
    return np.column_stack([knots, places])[rising], most


def _hashed(index: IntArray, size: int) -> IntArray:
    """The output function of SplitMix64 (:mod:`tlstd.features.kernels.tiles`), modulo ``size``."""
    bits = index.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((bits ^ (bits >> np.uint64(31))) % np.uint64(size)).astype(np.int64)


EXAMPLES: dict[str, Factory] = {
    "AutoTiles": lambda low, high: AutoTiles.fit(np.linspace(*as_box(low, high), 50)),
    "AutoTiles (hashed)": lambda low, high: AutoTiles(
        AutoTiles.fit(np.linspace(*as_box(low, high), 50)).scales, tiles=[9] * len(low), tilings=2, hash_size=128
    ),
}
