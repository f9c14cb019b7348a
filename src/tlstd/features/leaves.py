"""Leaves of boosted trees: features of states that are grown on what is to be predicted."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from tlstd.core import parameters
from tlstd.core.arrays import FloatArray, IntArray, as_array, as_floats, as_real, locked
from tlstd.core.units import power_of_two
from tlstd.data.vectors import SparseVector
from tlstd.errors import InvalidInputError, InvalidParameterError
from tlstd.features.base import EqualByArguments, Factory
from tlstd.features.states import as_box, as_observations, as_row, as_states, binary_rows, compiled, not_a_number

N_TREES, DEPTH, RATE, RIDGE, N_BINS = 80, 3, 0.2, 10.0, 32
DEEPEST, MOST_BINS = 16, 256
NOTHING = 2.0**-40
"""Residuals that are smaller than this, in units of the largest target, are rounding errors."""
BLOCK = 1 << 16
"""Bins of rows that are counted at a time, and"""
ROWS = 512
"""states that are encoded at a time, so that what is made on the way stays in the processor's cache."""


class Leaves(EqualByArguments):
    """The leaves of boosted trees, one active per tree, and a constant 1.

    Every level of a tree asks one question of all states, whether a column is above a threshold (a *symmetric* tree).
    The answers are the bits of the leaf's number, those of the first level first. :meth:`fit` grows the trees by
    gradient boosting of squared errors. Such features follow what the targets depend on, and many columns that act
    together.

    Parameters
    ----------
    columns : (T, depth) integers
        The column that each level of each tree asks about.
    thresholds : (T, depth)
        The answer is 1 where the column is larger. A state outside of all thresholds counts as on the edge.
    leaf_values : (T, 2**depth)
        The contribution of each leaf to :meth:`values`.
    n_columns : int
        Columns of a state, D.
    base : float
        The value of a state before any tree.

    Attributes
    ----------
    n_features : int
        T · 2**depth + 1.
    n_active : int
        T + 1.

    Notes
    -----
    O(T · depth) time per state; encoding one state is one compiled call.

    The trees are shaped like those of CatBoost and grown on histograms as LightGBM does it. There is no random number.

    References
    ----------
    J. H. Friedman, "Greedy function approximation: a gradient boosting machine", Annals of Statistics 29, 2001.
    G. Ke et al., "LightGBM: a highly efficient gradient boosting decision tree", NeurIPS 2017.
    L. Prokhorenkova et al., "CatBoost: unbiased boosting with categorical features", NeurIPS 2018.

    Example
    -------
    >>> rng = np.random.default_rng(0)
    >>> seen = rng.uniform(-1.0, 1.0, (2_000, 3))
    >>> targets = np.where(seen[:, 0] > 0.5, seen[:, 1] > 0.0, 0.3) + 0.1 * rng.standard_normal(2_000)
    >>> trees = Leaves.fit(seen, targets, n_trees=40, depth=2)
    >>> trees
    Leaves(40 trees of depth 2, 3 columns: 161 features)
    >>> trees.encode([0.9, 0.2, 0.0]).indices[:3], trees.values([[0.9, 0.2, 0.0], [0.9, -0.2, 0.0]]).round(1)
    (array([ 3,  7, 11]), array([1., 0.]))
    """

    _makes_sound_rows = True  # see ``encoded_once``

    def __init__(
        self, columns: ArrayLike, thresholds: ArrayLike, leaf_values: ArrayLike, *, n_columns: int, base: float
    ) -> None:
        self.n_columns = parameters.integer("n_columns", n_columns)
        self.base = parameters.real("base", base, open_low=True, open_high=True)
        asked = as_array(columns, "columns")
        self.thresholds, self.leaf_values = (
            locked(as_real(given, name, InvalidParameterError).copy())
            for given, name in ((thresholds, "thresholds"), (leaf_values, "leaf_values"))
        )
        if asked.ndim != 2 or asked.dtype.kind not in "iu" or not 1 <= asked.shape[1] <= DEEPEST:
            raise InvalidParameterError(
                f"columns have type {asked.dtype} and shape {asked.shape}: pass integers (T, depth), depth from 1 to "
                f"{DEEPEST}"
            )
        if asked.size and not 0 <= asked.min() <= asked.max() < self.n_columns:
            raise InvalidParameterError(f"columns go from {asked.min()} to {asked.max()}: they lie in [0, {n_columns})")
        n_trees, self.depth = asked.shape
        for array, name, shape in (
            (self.thresholds, "thresholds", (n_trees, self.depth)),
            (self.leaf_values, "leaf_values", (n_trees, 2**self.depth)),
        ):
            if array.shape != shape or not np.isfinite(array).all():
                raise InvalidParameterError(f"{name} have shape {array.shape}: pass finite numbers {shape}")
        self.columns = locked(asked.astype(np.int64))
        self._levels = [(c.copy(), t.copy()) for c, t in zip(self.columns.T, self.thresholds.T, strict=True)]
        self.n_features, self.n_active = n_trees * 2**self.depth + 1, n_trees + 1
        self._ones = locked(np.ones(self.n_active))

    @classmethod
    def fit(
        cls,
        observations: ArrayLike,
        targets: ArrayLike,
        *,
        weights: ArrayLike | None = None,
        n_trees: int = N_TREES,
        depth: int = DEPTH,
        rate: float = RATE,
        ridge: float = RIDGE,
        n_bins: int = N_BINS,
    ) -> Leaves:
        """Trees grown on targets (N,) of observations (N, D), N >= 1, by gradient boosting of squared errors.

        Nothing is drawn at random, and the order of the rows does not matter. There are fewer trees where no further
        question reduces the error.

        Parameters
        ----------
        observations : (N, D)
        targets : (N,)
        weights : (N,), optional
            Of the squared errors, at least 0. A common factor does not matter.
        n_trees, depth : int
            At most so many trees, and the questions of each.
        rate : float in (0, 1]
            The share of the remaining error that each tree corrects (shrinkage).
        ridge : float > 0
            A leaf's mean is shrunk as by so many further rows with no error left, each of average weight.
        n_bins : int from 2 to 256
            A column with more values is divided into so many bins, halfway between equal counts and equal widths.

        Returns
        -------
        Leaves
            O(N D log N + n_trees · depth · N · D) time; 17 bytes per observation and column.
        """
        array = as_observations(observations)
        y, w = as_floats(targets, "targets", 1), None if weights is None else as_floats(weights, "weights", 1)
        for given, name in ((y, "targets"), (w, "weights")):
            if given is not None and given.shape != (len(array),):
                raise InvalidInputError(f"{name} have shape {given.shape}: pass one per observation, ({len(array)},)")
        if w is not None:
            if not (w >= 0.0).all() or not w.any():
                raise InvalidInputError("weights must be at least 0, and one of them larger: they weigh squared errors")
            array, y, w = array[w > 0.0], y[w > 0.0], w[w > 0.0]
        n_trees = parameters.integer("n_trees", n_trees, low=0, high=2**20)
        rate = parameters.real("rate", rate, low=0.0, high=1.0, open_low=True)
        unit = power_of_two(y)
        grower = Grower(array, w, depth=depth, ridge=ridge, n_bins=n_bins)
        base = grower.mean(y / unit)
        residuals = y / unit - base
        trees: list[Tree] = []
        while len(trees) < n_trees and (tree := grower.tree(residuals)) is not None:
            trees.append(tree.times(rate))
            residuals -= trees[-1].means[tree.leaf]
        return of_trees(trees, grower.depth, n_columns=array.shape[1], base=base, unit=unit)

    def indices(self, states: ArrayLike) -> IntArray:
        """Indices of the active features, (N, n_active), rising along each row."""
        array = as_states(states, self.n_columns)
        index = np.empty((len(array), self.n_active), dtype=np.int64)
        index[:, -1] = self.n_features - 1
        for start in range(0, len(array), ROWS):
            part = array[start : start + ROWS]
            leaf = np.tile(np.arange(self.n_active - 1), (len(part), 1))
            for columns, thresholds in self._levels:
                leaf += leaf
                leaf += part[:, columns] > thresholds
            index[start : start + ROWS, :-1] = leaf
        return index

    def encode(self, state: ArrayLike) -> SparseVector:
        """Features of one state (D,)."""
        row, index = as_row(state, self.n_columns), np.empty(self.n_active, dtype=np.int64)
        if not compiled("online").leaves(row, self.columns, self.thresholds, index):
            raise not_a_number(row[None], 0)
        index[-1] = self.n_features - 1
        return SparseVector._trusted(index, self._ones, self.n_features)

    def encode_many(self, states: ArrayLike) -> sp.csr_array:
        """Features of states (N, D), as a canonical csr_array of shape (N, n_features) with 64-bit indices."""
        return binary_rows(self.indices(states), self.n_features, rising=True)

    def values(self, states: ArrayLike) -> FloatArray:
        """What the trees themselves predict for states (N, D): ``base`` and the values of the leaves, added up."""
        found: FloatArray = np.append(self.leaf_values, self.base)[self.indices(states)].sum(axis=1)
        return found

    def __repr__(self) -> str:
        return (
            f"Leaves({self.n_active - 1} trees of depth {self.depth}, {self.n_columns} columns: "
            f"{self.n_features} features)"
        )


class Tree(NamedTuple):
    """A symmetric tree, and where the rows that it was grown on lie in it."""

    columns: list[int]
    thresholds: list[float]
    means: FloatArray
    """(2**depth,): of the residuals in each leaf."""
    leaf: IntArray
    """(N,)"""

    def of(self, states: FloatArray) -> FloatArray:
        """The means of the leaves that other states (M, D) lie in."""
        leaf = np.zeros(len(states), dtype=np.int64)
        for column, threshold in zip(self.columns, self.thresholds, strict=True):
            leaf += leaf
            leaf += states[:, column] > threshold
        return self.means[leaf]

    def times(self, rate: float) -> Tree:
        """The tree with smaller means."""
        return self._replace(means=rate * self.means)


def of_trees(trees: list[Tree], depth: int, *, n_columns: int, base: float, unit: float) -> Leaves:
    """The map of grown trees."""
    return Leaves(
        np.array([tree.columns for tree in trees], dtype=np.int64).reshape(-1, depth),
        np.array([tree.thresholds for tree in trees]).reshape(-1, depth),
        unit * np.array([tree.means for tree in trees]).reshape(-1, 2**depth),
        n_columns=n_columns,
        base=unit * base,
    )


class Grower:
    """Grows symmetric trees on the same observations again and again.

    Columns are kept as the numbers of their bins. Sums over rows are exact (see ``_summable``), so that trees do
    not depend on the order of rows, and ties are ties: the first column and the lowest threshold win.
    """

    def __init__(
        self, observations: FloatArray, weights: FloatArray | None, *, depth: int, ridge: float, n_bins: int
    ) -> None:
        self.depth = parameters.integer("depth", depth, high=DEEPEST)
        self.ridge = parameters.positive("ridge", ridge)
        n_bins = parameters.integer("n_bins", n_bins, low=2, high=MOST_BINS)
        cuts = [_cuts(column, n_bins) for column in observations.T]
        self._used = [i for i, cut in enumerate(cuts) if cut.size]
        self._cuts = [cuts[i] for i in self._used]
        self._codes = [
            np.searchsorted(cut, observations[:, i]).astype(np.uint8)  # the number of thresholds below
            for i, cut in zip(self._used, self._cuts, strict=True)
        ]
        self._starts = np.cumsum([0] + [cut.size + 1 for cut in self._cuts])
        self._n = len(observations)
        self._weights = None if weights is None else self._summable(weights * (self._n / math.fsum(weights)))
        self._blocks = self._in_blocks([_rare(codes) for codes in self._codes])

    def mean(self, targets: FloatArray) -> float:
        """The weighted mean of targets (N,)."""
        w = self._weights
        return math.fsum(targets) / self._n if w is None else math.fsum(w * targets) / math.fsum(w)

    def tree(self, residuals: FloatArray) -> Tree | None:
        """A tree grown on residuals (N,) in units of the targets; None if no question reduces their squares."""
        if not self._used or np.abs(residuals).max() < NOTHING:
            return None
        w = self._weights
        g = self._summable(residuals if w is None else w * residuals)
        leaf = np.zeros(self._n, dtype=np.int64)
        columns: list[int] = []
        thresholds: list[float] = []
        question: tuple[int, int] | None = None
        for level in range(self.depth):
            question = self._question(leaf, 1 << level, g) or question  # or the last one again, which changes nothing
            if question is None:
                return None
            i, k = question
            columns.append(self._used[i])
            thresholds.append(float(self._cuts[i][k]))
            leaf += leaf
            leaf += self._codes[i] > k
        sums, sizes = (np.bincount(leaf, each, 1 << self.depth) for each in (g, w))
        return Tree(columns, thresholds, sums / (sizes + self.ridge), leaf)

    def _summable(self, numbers: FloatArray) -> FloatArray:
        """Numbers (N,) on a grid so coarse that floating-point sums over rows and columns are exact."""
        bits = (self._n * (len(self._cuts) + 1)).bit_length()
        exponent = math.frexp(float(np.abs(numbers).max()))[1] + bits - 52
        return np.ldexp(np.rint(np.ldexp(numbers, -exponent)), exponent)

    def _in_blocks(self, rare: list[tuple[IntArray, int]]) -> list[Block]:
        """Columns in blocks of about ``BLOCK`` entries, so that sums stay in the processor's cache."""
        sizes = np.cumsum([rows.size for rows, _ in rare])
        ends = np.flatnonzero(np.diff(sizes // BLOCK, append=-1)) + 1
        blocks = []
        for a, b in pairwise([0, *ends.tolist()]):
            starts = self._starts[a:b] - self._starts[a]
            parts = [self._codes[i][rare[i][0]] + starts[i - a] for i in range(a, b)]
            common = starts + [bin for _, bin in rare[a:b]]
            before = np.repeat(np.arange(b - a), np.diff(self._starts[a : b + 1]))
            rows = np.concatenate([rows for rows, _ in rare[a:b]])
            place = slice(int(self._starts[a]), int(self._starts[b]))
            blocks.append(Block(rows, np.concatenate(parts), common, starts, before, place))
        return blocks

    def _question(self, leaf: IntArray, n: int, g: FloatArray) -> tuple[int, int] | None:
        """The column (among those used) and the threshold that reduce the error most, in all n leaves together."""
        w = self._weights
        G, H = np.bincount(leaf, g, n)[:, None], np.bincount(leaf, w, n)[:, None]
        below, sizes = (np.empty((n, self._starts[-1])) for _ in range(2))  # up to and with each bin
        for block in self._blocks:
            size = block.place.stop - block.place.start
            key = leaf[block.rows] * size + block.codes
            for out, each, total in ((below, g[block.rows], G), (sizes, None if w is None else w[block.rows], H)):
                sums = np.bincount(key, each, n * size).reshape(n, size).astype(np.float64, copy=False)
                sums[:, block.common] += total - np.add.reduceat(sums, block.starts, axis=1)
                out[:, block.place] = np.cumsum(sums, axis=1) - total * block.before
        gains = (below**2 / (sizes + self.ridge) + (G - below) ** 2 / (H - sizes + self.ridge)).sum(axis=0)
        best = int(gains.argmax())
        if not gains[best] > (1.0 + 1e-9) * float((G**2 / (H + self.ridge)).sum()):
            return None
        i = int(np.searchsorted(self._starts, best, side="right")) - 1
        return i, best - int(self._starts[i])


class Block(NamedTuple):
    """Some columns, whose sums are found together: the bins that rows lie in, but for the commonest of each column."""

    rows: IntArray
    codes: IntArray
    """The bin of each row, counted through all columns of the block."""
    common: IntArray
    """The commonest bin of each column."""
    starts: IntArray
    """The first bin of each column."""
    before: IntArray
    """For each bin, the number of columns before its own."""
    place: slice
    """The block's bins among all."""


def _cuts(column: FloatArray, n_bins: int) -> FloatArray:
    """Thresholds of a column: between all of its values, or on an even scale if there are more than ``n_bins``.

    The scale is halfway between rank and position. Ranks alone would put rare extreme values, which often matter most,
    into one bin.
    """
    ordered = np.sort(column)
    first = 1 + np.flatnonzero(ordered[1:] > ordered[:-1])  # of each value but the least
    if first.size >= n_bins:
        position = 0.5 * ordered - 0.5 * ordered[0]  # halves, which cannot overflow
        scale = 0.5 * np.arange(ordered.size) / ordered.size + 0.5 * position / position[-1]
        middle = np.searchsorted(scale, np.arange(1, n_bins) / n_bins).clip(max=ordered.size - 1)
        first, end = (np.searchsorted(ordered, ordered[middle], side) for side in ("left", "right"))
        first = np.unique(np.where(middle - first <= end - middle, first, end))  # the nearer end of a value
        first = first[(first > 0) & (first < ordered.size)]
    low, high = ordered[first - 1], ordered[first]
    threshold = 0.5 * low + 0.5 * high
    return np.where(threshold < high, threshold, low)


def _rare(codes: NDArray[np.uint8]) -> tuple[IntArray, int]:
    """Rows outside of a column's commonest bin, of which alone sums are taken, and this bin."""
    common = int(np.bincount(codes).argmax())
    return np.flatnonzero(codes != common), common


EXAMPLES: dict[str, Factory] = {
    "Leaves": lambda low, high: Leaves.fit(
        np.linspace(*as_box(low, high), 50), np.sin(np.arange(50.0)), n_trees=5, depth=2, ridge=1.0
    ),
}
