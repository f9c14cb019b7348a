"""Arrays in a file on a local disk instead of in memory."""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlstd.errors import ClusterError
from tlstd.krylov.samples import Chunk, Samples

ALIGNED = 64
"""Bytes at a multiple of which an array begins."""


class Mapped:
    """Copies of arrays in one file, of which the operating system reads what is used, and keeps what there is room for.

    The file has no name, where the system has such files: its space is free again when nobody uses the arrays or the
    process ends, in whatever way.

    Example
    -------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mapped = Mapped(folder, [np.arange(3), np.ones((2, 2))])
    ...     mapped.rest()
    ...     print(*mapped.arrays, os.listdir(folder))
    [0 1 2] [[1. 1.]
     [1. 1.]] []
    """

    def __init__(self, folder: str, arrays: Sequence[NDArray[Any]]) -> None:
        places, size = [], 0
        for array in arrays:
            places.append(size)
            size += -(-array.nbytes // ALIGNED) * ALIGNED
        try:
            os.makedirs(folder, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder) as file:
                for place, array in zip(places, arrays, strict=True):
                    file.seek(place)
                    file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
                file.truncate(max(size, 1))
                self._map = mmap.mmap(file.fileno(), max(size, 1))
        except OSError as error:
            raise ClusterError(
                f"{size:,} bytes cannot be kept in {folder} ({error.strerror}): name a folder with room on a local disk"
            ) from error
        self.arrays = [self._array(place, array) for place, array in zip(places, arrays, strict=True)]

    def _array(self, place: int, like: NDArray[Any]) -> NDArray[Any]:
        array = np.frombuffer(self._map, like.dtype, like.size, place).reshape(like.shape)
        array.flags.writeable = like.flags.writeable  # kernels are compiled for one or the other
        return array

    def rest(self) -> None:
        """Do not count as memory of this process what was read; it may be read again."""
        if hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)


def spilled(samples: Samples, folder: str) -> tuple[Samples, Mapped]:
    """The same samples with their arrays in a file."""
    names = [(c, name) for c in range(len(samples.chunks)) for name in Chunk.__slots__]
    there = [(c, name) for c, name in names if getattr(samples.chunks[c], name) is not None]
    mapped = Mapped(folder, [getattr(samples.chunks[c], name) for c, name in there])
    chunks = [Chunk(0, None) for _ in samples.chunks]
    for c, name in names:
        setattr(chunks[c], name, None)
    for (c, name), array in zip(there, mapped.arrays, strict=True):
        setattr(chunks[c], name, array)
    return samples._replace(chunks=tuple(chunks)), mapped
