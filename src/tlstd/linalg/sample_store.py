"""Samples kept in chunks, each feature row once: what the LSTD system is multiplied from."""

from __future__ import annotations

from math import ceil, log1p
from typing import Protocol

import numpy as np

from tlstd.container import Saved, State
from tlstd.kernels.sparse import append_sample
from tlstd.linalg.batch import Batch
from tlstd.linalg.chunk_writer import write
from tlstd.linalg.old_part import OldPart
from tlstd.linalg.samples import Chunk, Samples, trace_after
from tlstd.linalg.saved_samples import SavedColumns, columns_of
from tlstd.linalg.seen import SeenFeatures
from tlstd.types import MAX_MAGNITUDE, FloatArray, IntArray, SparseVector, Transition

CHUNK_SIZE = 4096
"""Samples in a chunk of sparse rows."""
DENSE_BYTES = 1 << 21
"""Bytes that the rows of a chunk of dense samples take, about: it is to stay in a cache between two products."""
NEGLIGIBLE = 2.0**-60
"""Share of the total weight below which forgotten samples leave: 2⁻⁸ of what rounding takes from it."""

_NO_VALUES: FloatArray = np.zeros(0)


class Fold(Protocol):
    """``fold(samples, n_chunks)``: what is to be kept of the first chunks and of what had left before."""

    n_forecasts: int
    """Dimensions of its ``forecasts``; 0 if it makes none."""

    def __call__(self, samples: Samples, n_chunks: int) -> OldPart:
        """What is kept."""


class SampleStore:
    """The samples of a stream in the order in which they came, in chunks.

    Every x_t is kept once: a next row that is the following sample's x (the same entries, whatever arrays they came
    in) is not stored again, except where a chunk begins. Next rows of terminated samples (discount 0) are not stored,
    and their features do not count as seen. Values are left out of a chunk while all are exactly 1, importance ratios
    too.

    Memory for each sample with nnz non-zeros of value 1 and one target, int32 positions of the features seen: 4·nnz +
    36 bytes on a trajectory; twice 4·nnz + 4 and 32 if next rows are not the following rows. Other values take 8 bytes
    each, ratios 8 a sample, further targets 8 each a sample, dense rows 8 bytes a feature. The last chunk has up to a
    sixteenth more room than it needs; the features seen take about 50 bytes each.

    Appending is atomic: everything is written behind what is in use, and one last assignment publishes it. An
    exception anywhere before leaves the samples as they were.

    Parameters
    ----------
    n_features, lambda_, beta, n_targets : as in ``KrylovLSTD``
    chunk_size : int, optional
        Samples in a chunk, at most. By default ``CHUNK_SIZE``, fewer for dense rows (``DENSE_BYTES``) and where
        ``beta`` or ``max_samples`` makes samples leave early. Samples leave in whole chunks.
    max_samples : int >= 2, optional
        When so many are there (one less if the number is odd, or a few if a half is several chunks), the older half is
        folded: it leaves, and ``fold`` says what is kept of it. Not used where ``beta`` forgets samples sooner.
    fold : callable
        See ``Fold``; needed with ``max_samples``.

    Example
    -------
    >>> from tlstd import boyan_chain
    >>> store = SampleStore(4, lambda_=0.5)
    >>> steps = boyan_chain().sample(100, np.random.default_rng(0))
    >>> store.append(Batch.from_transitions(steps))
    >>> store.samples.n_samples, store.samples.n
    (100, 4)
    """

    def __init__(
        self,
        n_features: int,
        *,
        lambda_: float,
        beta: float | None = None,
        n_targets: int = 1,
        chunk_size: int | None = None,
        max_samples: int | None = None,
        fold: Fold | None = None,
    ) -> None:
        self.n_features, self.lambda_, self.beta, self.n_targets = n_features, lambda_, beta, n_targets
        self.window = None if beta is None else ceil(min(float(np.log(NEGLIGIBLE)) / log1p(-beta), 2.0**62))
        folding = max_samples is not None and (self.window is None or max_samples <= self.window)
        self._half = max_samples // 2 if folding and max_samples is not None else None
        self._fold = fold
        self._wanted_size = chunk_size
        self._seen = SeenFeatures(n_features)
        self._appending = False
        self._samples = Samples((), None, self._chunk_size(False), 0, 0, 0, np.zeros(0))

    def _chunk_size(self, is_dense: bool) -> int:
        size = self._wanted_size
        if size is None:
            size = min(CHUNK_SIZE, max(16, DENSE_BYTES // (8 * self.n_features))) if is_dense else CHUNK_SIZE
        if self._half is not None:
            return self._half // ceil(self._half / size)
        return size if self.window is None else min(size, max(16, self.window // 4))

    @property
    def fold_size(self) -> int | None:
        """Samples that are folded at a time, whenever there are twice as many; None if samples are never folded."""
        return None if self._half is None else self._half // self._samples.chunk_size * self._samples.chunk_size

    @property
    def samples(self) -> Samples:
        """What is stored now."""
        return self._samples

    @property
    def ids(self) -> IntArray:
        """Ids of the features seen, by position; a view."""
        return self._seen.all_ids[: self._samples.n]

    def find(self, ids: IntArray) -> IntArray:
        """Positions of features; -1 for those that were not seen."""
        positions = self._seen.find(ids)
        positions[positions >= self._samples.n] = -1
        return positions

    @property
    def index(self) -> SeenFeatures:
        """The positions of features; those that an interrupted append was given are in it too."""
        return self._seen

    @property
    def nbytes(self) -> int:
        """Bytes of the samples, without those of the features seen."""
        return sum(chunk.nbytes for chunk in self._samples.chunks)

    # --- appending --------------------------------------------------------------------------------------------------

    def append(self, batch: Batch) -> None:
        """Add a checked batch. O(entries), and O(features seen) where samples leave."""
        if not len(batch):
            return
        samples = self._samples
        if self._appending:  # an append was interrupted: what it gave a position is forgotten
            self._forget_features(samples.n)
        self._appending = True
        if samples.is_dense is None:
            is_dense = batch.is_dense(self.n_features)
            samples = samples._replace(is_dense=is_dense, chunk_size=self._chunk_size(is_dense))
        start = 0
        while start < len(batch):
            filled = samples.count(len(samples.chunks) - 1) if samples.chunks else 0
            if not samples.chunks or filled == samples.chunk_size:
                chunk, filled = Chunk(self.n_targets, self.n_features if samples.is_dense else None), 0
                samples = samples._replace(chunks=(*samples.chunks, chunk))
            stop = min(len(batch), start + samples.chunk_size - filled)
            write(samples.chunks[-1], filled, batch.part(start, stop), self._seen, samples.chunk_size)
            n_samples, n = samples.n_samples + stop - start, int(self._seen.counter[0])
            samples = self._shortened(samples._replace(n_samples=n_samples, n=n))
            start = stop
        self._samples = samples
        self._appending = False

    def append_one(self, t: Transition, bound: FloatArray) -> tuple[int, int] | None:
        """Add one transition with sparse vectors and one reward by one compiled call; its rows in the last chunk.

        ``bound`` (1,) is that of the trace's length, and follows. None, with nothing changed, where :meth:`append` has
        to make room, where samples leave, and where something is not as usual.
        """
        samples, x, x_next = self._samples, t.x, t.x_next
        chunks, _, size, n_samples, n_left, _, border, old = samples
        at = n_samples - n_left - (len(chunks) - 1) * size
        if (
            not (type(x) is SparseVector and type(x_next) is SparseVector)
            or not 0 < at < size - 1
            or self._appending
            or t.rho != 1.0
            or samples.is_dense is not False
            or (self.window is not None and n_samples + 1 - n_left - size >= self.window)
        ):
            return None
        chunk, before = chunks[-1], bound.item()
        if chunk.rhos is not None:
            return None
        self._appending = True
        rows = chunk.ptr, chunk.pos, _NO_VALUES if chunk.val is None else chunk.val
        columns = chunk.row, chunk.next_row, chunk.rewards, chunk.discounts, chunk.trace_discounts
        longest, row, next_row = append_sample(
            *(x.indices, x.values, x_next.indices, x_next.values, self._seen.arrays, rows, columns, at),
            *((t.reward, t.discount, t.trace_discount, t.rho), self.lambda_, before, MAX_MAGNITUDE),
        )
        if longest >= 0.0:
            bound[0] = max(before, longest)
            n = self._seen.counter.item()
            self._samples = Samples(chunks, False, size, n_samples + 1, n_left, n, border, old)
            bound[0] = longest
        self._appending = False
        return None if longest < 0.0 else (row, next_row)

    def _forget_features(self, n: int) -> None:
        ids = self._seen.all_ids[:n].copy()
        seen = SeenFeatures(self.n_features)
        seen.insert(ids)
        self._seen = seen

    # --- leaving ----------------------------------------------------------------------------------------------------

    def leave(self, n_chunks: int) -> None:
        """Let the first chunks go, which are full; the trace after them stays."""
        self._samples = self._without(self._samples, n_chunks)

    def _shortened(self, samples: Samples) -> Samples:
        """The samples without the chunks that are to be folded, or whose weight has become negligible."""
        if self._half is not None:
            n_chunks = self._half // samples.chunk_size
            if len(samples.chunks) < 2 * n_chunks or samples.count(2 * n_chunks - 1) < samples.chunk_size:
                return samples
            assert self._fold is not None
            old = self._fold(samples, n_chunks)
            return self._without(samples, n_chunks)._replace(old=old)
        while self.window is not None and samples.n_kept - samples.chunk_size >= self.window:
            samples = self._without(samples, 1)
        return samples

    def _without(self, samples: Samples, n_chunks: int) -> Samples:
        border, size = samples.border, samples.chunk_size
        for chunk in samples.chunks[:n_chunks]:
            border = trace_after(chunk, size, self.lambda_, border)
        n_left = samples.n_left + n_chunks * size
        return samples._replace(chunks=samples.chunks[n_chunks:], n_left=n_left, border=border)

    # --- saving -----------------------------------------------------------------------------------------------------

    def state(self) -> State:
        """What :meth:`restore` takes: a copy of all samples, with 8 bytes for each number."""
        samples = self._samples
        return {
            "seen": {"ids": self.ids},
            "storage": "none" if samples.is_dense is None else "dense" if samples.is_dense else "sparse",
            "n_samples": samples.n_samples,
            "n_left": samples.n_left,
            "border": samples.border,
            **({} if samples.old is None else {"old": samples.old.state()}),
            **columns_of(samples, self.n_features, self.n_targets),
        }

    def restore(self, saved: Saved) -> None:
        """Take over a saved state, if it can be one of these parameters; only of fresh objects."""
        self._seen.restore(saved.part("seen"))
        n = len(self._seen)
        storage = saved.word("storage", ("none", "sparse", "dense"))
        n_samples = saved.integer("n_samples", low=int(storage != "none"))
        if (storage == "none" and n + n_samples) or (storage == "dense" and n < self.n_features):
            raise saved.error("storage", f"is {storage} with {n} of {self.n_features} features seen")
        size = self._chunk_size(storage == "dense")
        n_left = saved.integer("n_left", high=n_samples)
        if n_left and self._half is None and (self.window is None or n_left % size):
            raise saved.error("n_left", f"is {n_left}, which is not a number of samples that can have left")
        if self._half is not None and n_samples - n_left >= 2 * (self._half // size * size):
            raise saved.error("n_samples", f"is {n_samples}, of which {n_left} left: the oldest should have left too")
        border = saved.floats("border", None, low=-MAX_MAGNITUDE, high=MAX_MAGNITUDE)
        if border.size > (n if n_left else 0):
            raise saved.error("border", f"has {border.size} entries with {n} features seen")
        old = None
        if n_left and self._half is not None and self._fold is not None:
            old = OldPart.restored(saved.part("old"), n, self.n_targets, self._fold.n_forecasts)
        width = self.n_features if storage == "dense" else None
        columns = SavedColumns(saved, n_samples - n_left, n, self.n_targets, width)
        is_dense = None if storage == "none" else storage == "dense"
        self._samples = Samples((), is_dense, size, n_left, n_left, n, border, old)
        for start in range(0, n_samples - n_left, size):
            self.append(columns.batch(start, start + size, self._seen.ids))
        if (self._samples.n_samples, self._samples.n_left, self._samples.n) != (n_samples, n_left, n):
            raise saved.error("n_samples", f"is {n_samples}, of which {n_left} left: they do not fit the samples kept")
