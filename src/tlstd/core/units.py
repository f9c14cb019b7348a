"""Units in which squares of very small and very large numbers neither vanish nor overflow.

A unit is a power of two: numbers in units, and results that are multiplied by them again, keep every bit.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from tlstd.core.arrays import FloatArray

_USUAL: Final = (2.0**-100, 2.0**100)
"""Sizes whose fourth powers, and those of their rounding errors, are floats."""


def power_of_two(*numbers: ArrayLike) -> float:
    """The unit in which the largest of all numbers is at least 1 and less than 2; 1 if there is none.

    >>> power_of_two([3.0, -5.0]), power_of_two([0.0]), power_of_two([np.inf])
    (4.0, 1.0, 1.0)
    """
    largest = max((float(np.abs(np.asarray(part)).max(initial=0.0)) for part in numbers), default=0.0)
    return math.ldexp(1.0, math.frexp(largest)[1] - 1) if 0.0 < largest < math.inf else 1.0


def safe_unit(*numbers: ArrayLike) -> float:
    """:func:`power_of_two` of very small or large numbers, and 1 for usual ones, which stay as they are.

    >>> safe_unit([3.0, -5.0]), safe_unit([2.0**-300])
    (1.0, 4.909093465297727e-91)
    """
    unit = power_of_two(*numbers)
    return 1.0 if _USUAL[0] <= unit <= _USUAL[1] else unit


def deviation(numbers: FloatArray, ddof: int = 0) -> float:
    """The standard deviation, also where squares would vanish or overflow.

    >>> deviation(np.array([1e-200, 3e-200])), deviation(np.array([1.0, 3.0]))
    (1e-200, 1.0)
    """
    unit = power_of_two(numbers)
    return unit * float((numbers / unit).std(ddof=ddof))
