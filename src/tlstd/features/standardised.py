"""What maps that are fitted to observations share: a box, and columns in units of their own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tlstd.core.arrays import FloatArray, as_real, locked
from tlstd.core.units import safe_unit
from tlstd.errors import InvalidParameterError
from tlstd.features.base import EqualByArguments
from tlstd.features.states import as_box, as_observations, as_states

MOST_ROWS = 1_000_000
"""Observations that a map is fitted to: of more, evenly spaced ones."""


class Standardised(EqualByArguments):
    """Base of maps that see u_j = (s_j − centre_j) / scale_j, where s is clipped to a box."""

    def __init__(self, low: ArrayLike, high: ArrayLike, centre: ArrayLike, scale: ArrayLike) -> None:
        self.low, self.high = as_box(low, high)
        self.centre = finite("centre", centre, self.low.shape)
        self.scale = finite("scale", scale, self.low.shape)
        if not (self.scale > 0.0).all():
            raise InvalidParameterError(f"scale is {self.scale.tolist()}: pass numbers > 0")

    def _units(self, states: ArrayLike) -> FloatArray:
        """u (N, D) of states (N, D)."""
        u: FloatArray = (as_states(states, self.low.size).clip(self.low, self.high) - self.centre) / self.scale
        return u


class Scaling(NamedTuple):
    """Arguments of :class:`Standardised`."""

    low: FloatArray
    high: FloatArray
    centre: FloatArray
    scale: FloatArray


def observed(observations: ArrayLike) -> FloatArray:
    """Observations (N, D), checked; evenly spaced ones of many."""
    array = as_observations(observations)
    return array[:: -(-len(array) // MOST_ROWS)]


def scaling(array: FloatArray) -> Scaling:
    """The range, mean and standard deviation of each column.

    A column with one value has a box of no width, next to nothing in its unit: other values count as that one.
    """
    unit = np.array([safe_unit(column) for column in array.T])
    scaled, low, high = array / unit, array.min(axis=0), array.max(axis=0)
    width = scaled.std(axis=0) * unit
    same = (low == high) | ~(width > 0.0)
    centre = np.where(same, array[0], scaled.mean(axis=0) * unit)
    scale = np.where(same, np.maximum(1.0, np.abs(array[0])), width)
    return Scaling(low, np.where(high > low, high, np.nextafter(low, np.inf)), centre, scale)


def finite(name: str, value: ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    """An argument of finite numbers of this shape, as a read-only copy."""
    array = as_real(value, name, InvalidParameterError).copy()
    if array.shape != shape or not np.isfinite(array).all():
        raise InvalidParameterError(f"{name} has shape {array.shape}: pass {shape} finite numbers")
    return locked(array)
