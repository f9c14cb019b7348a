"""Observations that feature maps are fitted to."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tlstd.core.arrays import FloatArray
from tlstd.core.units import safe_unit
from tlstd.features.states import as_observations

MOST_ROWS = 1_000_000
"""Observations that a map is fitted to: of more, evenly spaced ones."""


def observed(observations: ArrayLike) -> FloatArray:
    """Observations (N, D), checked: finite numbers, at least one row and one column."""
    array = as_observations(observations)
    return array[:: -(-len(array) // MOST_ROWS)]


def middle_and_width(array: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of each column; the deviation of a column with one value is 1."""
    unit = np.array([safe_unit(column) for column in array.T])
    scaled = array / unit
    width = scaled.std(axis=0) * unit
    same = np.ptp(array, axis=0) == 0.0
    return np.where(same, array[0], scaled.mean(axis=0) * unit), np.where(same | ~(width > 0.0), 1.0, width)
