"""Samples kept in chunks, each feature row once: what the LSTD system is multiplied from."""

from __future__ import annotations

import numpy as np

from tlstd.container import Saved, State
from tlstd.kernels.sparse import append_sample
from tlstd.linalg.batch import Batch
from tlstd.linalg.chunk_writer import write
from tlstd.linalg.leaving import Fold, Leaving
from tlstd.linalg.samples import Chunk, Samples
from tlstd.linalg.saved_samples import SavedColumns, columns_of
from tlstd.linalg.seen import SeenFeatures
from tlstd.types import MAX_MAGNITUDE, FloatArray, IntArray, SparseVector, Transition

_NO_VALUES: FloatArray = np.zeros(0)


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
        Samples in a chunk, at most. By default 4096, fewer for dense rows and where ``beta`` or ``max_samples`` makes
        samples leave early (:class:`~tlstd.linalg.leaving.Leaving`). Samples leave in whole chunks.
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
        self.leaving = Leaving(n_features, lambda_, beta, chunk_size, max_samples, fold)
        self._seen = SeenFeatures(n_features)
        self._appending = False
        self._samples = Samples((), None, self.leaving.chunk_size(False), 0, 0, 0, np.zeros(0))

    @property
    def fold_size(self) -> int | None:
        """Samples that are folded at a time, whenever there are twice as many; None if samples are never folded."""
        return self.leaving.fold_size(self._samples.chunk_size)

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
            self._seen = SeenFeatures(self.n_features, self.ids)
        self._appending = True
        if samples.is_dense is None:
            is_dense = batch.is_dense(self.n_features)
            samples = samples._replace(is_dense=is_dense, chunk_size=self.leaving.chunk_size(is_dense))
        start = 0
        while start < len(batch):
            filled = samples.count(len(samples.chunks) - 1) if samples.chunks else 0
            if not samples.chunks or filled == samples.chunk_size:
                chunk, filled = Chunk(self.n_targets, self.n_features if samples.is_dense else None), 0
                samples = samples._replace(chunks=(*samples.chunks, chunk))
            stop = min(len(batch), start + samples.chunk_size - filled)
            write(samples.chunks[-1], filled, batch.part(start, stop), self._seen, samples.chunk_size)
            n_samples, n = samples.n_samples + stop - start, int(self._seen.counter[0])
            samples = self.leaving.shortened(samples._replace(n_samples=n_samples, n=n))
            start = stop
        self._samples = samples
        self._appending = False

    def append_one(self, t: Transition, bound: FloatArray) -> tuple[int, int] | None:
        """Add one transition with sparse vectors and one reward by one compiled call; its rows in the last chunk.

        ``bound`` (1,) is that of the trace's length, and follows. None, with nothing changed, where :meth:`append` has
        to make room, where samples leave, and where something is not as usual.
        """
        samples, window, x, x_next = self._samples, self.leaving.window, t.x, t.x_next
        chunks, _, size, n_samples, n_left, _, border, old = samples
        at = n_samples - n_left - (len(chunks) - 1) * size
        if (
            not (type(x) is SparseVector and type(x_next) is SparseVector)
            or not 0 < at < size - 1
            or self._appending
            or t.rho != 1.0
            or samples.is_dense is not False
            or (window is not None and n_samples + 1 - n_left - size >= window)
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
        size = self.leaving.chunk_size(storage == "dense")
        n_left = saved.integer("n_left", high=n_samples)
        old = self.leaving.restored(saved, n_samples, n_left, size, n, self.n_targets)
        border = saved.floats("border", None, low=-MAX_MAGNITUDE, high=MAX_MAGNITUDE)
        if border.size > (n if n_left else 0):
            raise saved.error("border", f"has {border.size} entries with {n} features seen")
        width = self.n_features if storage == "dense" else None
        columns = SavedColumns(saved, n_samples - n_left, n, self.n_targets, width)
        is_dense = None if storage == "none" else storage == "dense"
        self._samples = Samples((), is_dense, size, n_left, n_left, n, border, old)
        for start in range(0, n_samples - n_left, size):
            self.append(columns.batch(start, start + size, self._seen.ids))
        if (self._samples.n_samples, self._samples.n_left, self._samples.n) != (n_samples, n_left, n):
            raise saved.error("n_samples", f"is {n_samples}, of which {n_left} left: they do not fit the samples kept")
