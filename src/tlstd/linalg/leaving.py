"""When samples leave a store, and how many a chunk has: they leave in whole chunks."""

from __future__ import annotations

from math import ceil, log1p
from typing import Protocol

import numpy as np

from tlstd.container import Saved
from tlstd.linalg.old_part import OldPart
from tlstd.linalg.samples import Samples

CHUNK_SIZE = 4096
"""Samples in a chunk of sparse rows."""
DENSE_BYTES = 1 << 21
"""Bytes that the rows of a chunk of dense samples take, about: it is to stay in a cache between two products."""
NEGLIGIBLE = 2.0**-60
"""Share of the total weight below which forgotten samples leave: 2⁻⁸ of what rounding takes from it."""


class Fold(Protocol):
    """``fold(samples, n_chunks)``: what is to be kept of the first chunks and of what had left before."""

    n_forecasts: int
    """Dimensions of its ``forecasts``; 0 if it makes none."""

    def __call__(self, samples: Samples, n_chunks: int) -> OldPart:
        """What is kept."""


class Leaving:
    """Samples are forgotten (``beta``), or folded (``max_samples``), or stay.

    Parameters
    ----------
    n_features, lambda_, beta, chunk_size, max_samples, fold : as in :class:`~tlstd.linalg.sample_store.SampleStore`

    Attributes
    ----------
    window : int or None
        With ``beta``: samples older than that many have a negligible weight.
    """

    def __init__(
        self,
        n_features: int,
        lambda_: float,
        beta: float | None,
        chunk_size: int | None,
        max_samples: int | None,
        fold: Fold | None,
    ) -> None:
        self.n_features, self.lambda_, self.wanted_size, self.fold = n_features, lambda_, chunk_size, fold
        self.window = None if beta is None else ceil(min(float(np.log(NEGLIGIBLE)) / log1p(-beta), 2.0**62))
        folding = max_samples is not None and (self.window is None or max_samples <= self.window)
        self.half = max_samples // 2 if folding and max_samples is not None else None

    def chunk_size(self, is_dense: bool) -> int:
        """Samples in a chunk."""
        size = self.wanted_size
        if size is None:
            size = min(CHUNK_SIZE, max(16, DENSE_BYTES // (8 * self.n_features))) if is_dense else CHUNK_SIZE
        if self.half is not None:
            return self.half // ceil(self.half / size)
        return size if self.window is None else min(size, max(16, self.window // 4))

    def fold_size(self, chunk_size: int) -> int | None:
        """Samples that are folded at a time, whenever there are twice as many; None if samples are never folded."""
        return None if self.half is None else self.half // chunk_size * chunk_size

    def shortened(self, samples: Samples) -> Samples:
        """The samples without the chunks that are to be folded, or whose weight has become negligible."""
        if self.half is not None:
            n_chunks = self.half // samples.chunk_size
            if len(samples.chunks) < 2 * n_chunks or samples.count(2 * n_chunks - 1) < samples.chunk_size:
                return samples
            assert self.fold is not None
            old = self.fold(samples, n_chunks)
            return samples.without(n_chunks, self.lambda_)._replace(old=old)
        while self.window is not None and samples.n_kept - samples.chunk_size >= self.window:
            samples = samples.without(1, self.lambda_)
        return samples

    def restored(self, saved: Saved, n_samples: int, n_left: int, size: int, n: int, n_targets: int) -> OldPart | None:
        """What was saved of samples that have left, if so many can have, in chunks of ``size``; n features seen."""
        if n_left and self.half is None and (self.window is None or n_left % size):
            raise saved.error("n_left", f"is {n_left}, which is not a number of samples that can have left")
        if self.half is not None and n_samples - n_left >= 2 * (self.half // size * size):
            raise saved.error("n_samples", f"is {n_samples}, of which {n_left} left: the oldest should have left too")
        if not n_left or self.half is None or self.fold is None:
            return None
        return OldPart.restored(saved.part("old"), n, n_targets, self.fold.n_forecasts)
