"""The one way in which arrays grow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T", bound=np.generic)


def enlarged(array: NDArray[T], *shape: int, fill: int = 0) -> NDArray[T]:
    """The array in the corner of one of at least this shape, ``fill`` elsewhere; itself if it is as large as that.

    Further axes stay as they are.

    >>> enlarged(np.array([[1, 2], [3, 4]]), 3)
    array([[1, 2],
           [3, 4],
           [0, 0]])
    """
    wanted = (*map(max, array.shape, shape), *array.shape[len(shape) :])
    if wanted == array.shape:
        return array
    larger = np.zeros(wanted, dtype=array.dtype) if fill == 0 else np.full(wanted, fill, dtype=array.dtype)
    larger[tuple(map(slice, array.shape))] = array
    return larger


def with_room(array: NDArray[T], length: int) -> NDArray[T]:
    """The array itself if it has ``length`` entries, otherwise one of at least half as many again as it has."""
    return array if array.size >= length else enlarged(array, max(length, array.size * 3 // 2))


def slices(n: int, size: int) -> Iterator[slice]:
    """Rows 0 to n in slices that stay in the processor's cache."""
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))
