"""Limits of the search for a dimension."""

from __future__ import annotations

import math

FEWEST_MORE, MOST_MORE = 5, 10
"""Limits of the dimensions beyond the best one that are tried before the search ends."""
MAX_DIMENSION = 300
"""Where the search ends in any case."""


def fixed_dimension(n_samples: int) -> int:
    """The dimension used where nothing can be chosen: the cube root of the number of samples, at most 20.

    >>> [fixed_dimension(n) for n in (1, 50, 1_000, 10**6)]
    [1, 4, 10, 20]
    """
    return max(1, min(20, round(math.cbrt(n_samples))))


def patience(best: int) -> int:
    """Dimensions beyond the best one so far that are tried before the search ends: half as many as that has.

    >>> [patience(m) for m in (1, 9, 14, 100)]
    [5, 5, 7, 10]
    """
    return min(MOST_MORE, max(FEWEST_MORE, (best + 1) // 2))
