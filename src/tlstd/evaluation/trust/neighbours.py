"""Which logged rows are near to something: by standardised columns, or by being the same discrete state."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.evaluation.trust.evidence import thinned

MOST_POINTS = 20_000
"""Rows that are searched: of more, evenly spaced ones."""
MOST_QUERIES = 2_000
TYPICAL = 0.99
"""Quantile of the distances within the log that others are compared with."""
BEYOND = 2.0
"""So many times that distance is far."""
SEARCHED = 32
"""Neighbours among which the nearest one of another group is looked for."""


class Neighbours:
    """Points of a log (N, D) and which group, episode or block, each is from.

    Columns are divided by their standard deviation; a column that never varies is left as it is, so that another value
    in it is far. O(N D log N) time, N at most ``MOST_POINTS``.

    Example
    -------
    >>> near = Neighbours(np.arange(100.0)[:, None], np.arange(100) // 10)
    >>> near.far(np.array([[50.5], [300.0]]))
    array([False,  True])
    """

    def __init__(self, points: FloatArray, groups: IntArray) -> None:
        from scipy.spatial import cKDTree  # here: it takes long to import, and workers of a cluster never get here

        self.rows = thinned(len(points), MOST_POINTS)
        spread = points.std(axis=0)
        self.scale = np.where(spread > 1e-12 * np.abs(points).max(axis=0, initial=0.0), spread, 1.0)
        self.groups = groups[self.rows]
        self.tree = cKDTree(points[self.rows] / self.scale)
        self._typical: float | None = None

    @property
    def typical(self) -> float:
        """The 99% quantile of the distance from a logged point to the nearest one of another group."""
        if self._typical is None:
            some = thinned(len(self.rows), MOST_QUERIES // 2)
            distances, found = self.tree.query(self.tree.data[some], k=min(SEARCHED, len(self.rows)))
            distances, found = distances.reshape(some.size, -1), found.reshape(some.size, -1)
            other = self.groups[found] != self.groups[some][:, None]
            first = np.where(other.any(axis=1), other.argmax(axis=1), found.shape[1] - 1)
            self._typical = float(np.quantile(distances[np.arange(some.size), first], TYPICAL))
        return self._typical

    def far(self, points: FloatArray) -> NDArray[np.bool_]:
        """Whether each point is further from the log than ``BEYOND`` times what is typical within it."""
        distances, _ = self.tree.query(points / self.scale)
        far: NDArray[np.bool_] = distances > max(BEYOND * self.typical, 1e-6)
        return far

    def nearest(self, points: FloatArray, k: int) -> IntArray:
        """Rows of the log (M, k) that are nearest to each point."""
        _, found = self.tree.query(points / self.scale, k=k)
        rows: IntArray = self.rows[np.asarray(found).reshape(len(points), -1)]
        return rows
