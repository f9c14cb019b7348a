"""Samples kept in chunks, each feature row once: what the LSTD system is multiplied from."""

from __future__ import annotations

from math import ceil, log1p
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from tlstd.container import Saved, State
from tlstd.errors import CapacityError
from tlstd.kernels import krylov as kernels
from tlstd.kernels.sparse import append_sample
from tlstd.linalg.batch import Batch
from tlstd.linalg.old_part import OldPart
from tlstd.linalg.seen import SeenFeatures
from tlstd.linalg.threads import one_thread
from tlstd.types import MAX_MAGNITUDE, FloatArray, IntArray, SparseVector, Transition

Int32Array: TypeAlias = NDArray[np.int32]
Number = TypeVar("Number", np.float64, np.int32)

CHUNK_SIZE = 4096
"""Samples in a chunk of sparse rows."""
DENSE_BYTES = 1 << 21
"""Bytes that the rows of a chunk of dense samples take, about: it is to stay in a cache between two products."""
NEGLIGIBLE = 2.0**-60
"""Share of the total weight below which forgotten samples leave: 2⁻⁸ of what rounding takes from it."""

_AT_ONCE = 1 << 12  # entries that are copied and looked up together, about: they stay in a cache
_MAX_INT32 = (1 << 31) - 1
_NO_VALUES: FloatArray = np.zeros(0)
_NO_ROW = np.zeros(2, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0)


class Chunk:
    """Consecutive samples. Arrays may have room at their ends; what is in use follows from the number of samples.

    ``ptr``, ``pos``, ``val``: the rows, as in :mod:`tlstd.kernels.krylov`; ``X`` instead if rows are dense.
    ``row``, ``next_row``: of each sample; ``rewards`` (N, n_targets), ``discounts``, ``trace_discounts``, and ``rhos``
    or None while all are 1. Appending writes behind what is in use and replaces arrays that are too short by longer
    copies, so that whoever holds an array goes on seeing the samples that it had.
    """

    __slots__ = ("X", "discounts", "next_row", "pos", "ptr", "rewards", "rhos", "row", "trace_discounts", "val")

    def __init__(self, n_targets: int, n_features: int | None) -> None:
        """An empty chunk, of dense rows if ``n_features`` is their length."""
        self.X: FloatArray | None = None if n_features is None else np.empty((0, n_features))
        self.ptr: Int32Array = np.zeros(1, dtype=np.int32)
        self.pos: Int32Array = np.empty(0, dtype=np.int32)
        self.val: FloatArray | None = None
        self.row: Int32Array = np.empty(0, dtype=np.int32)
        self.next_row: Int32Array = np.empty(0, dtype=np.int32)
        self.rewards: FloatArray = np.empty((0, n_targets))
        self.discounts: FloatArray = np.empty(0)
        self.trace_discounts: FloatArray = np.empty(0)
        self.rhos: FloatArray | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays, with the room at their ends."""
        arrays = (getattr(self, name) for name in self.__slots__)
        return sum(0 if array is None else array.nbytes for array in arrays)

    def n_rows(self, n_samples: int) -> int:
        """Number of rows that the first ``n_samples`` use."""
        last = n_samples - 1
        return 0 if last < 0 else max(int(self.row[last]), int(self.next_row[last])) + 1

    def room(self, n_samples: int, n_rows: int, n_entries: int, limit: int) -> None:
        """Make room for so many in all; at most ``limit`` samples will ever come."""
        if n_entries > _MAX_INT32:
            raise CapacityError(f"{limit} samples would have {n_entries} non-zero features: at most 2³¹-1 can be kept")
        for name in ("row", "next_row", "rewards", "discounts", "trace_discounts", "rhos"):
            column = getattr(self, name)  # each by its own length: an interruption may have left them different
            if column is not None and n_samples > column.shape[0]:
                setattr(self, name, _resized(column, min(limit, _roomy(n_samples, column.shape[0]))))
        if self.X is not None:
            if n_rows > self.X.shape[0]:
                self.X = _resized(self.X, min(2 * limit, _roomy(n_rows, self.X.shape[0])))
            return
        if n_rows >= self.ptr.size:
            self.ptr = _resized(self.ptr, min(2 * limit, _roomy(n_rows, self.ptr.size)) + 1)
        if self.val is not None and n_entries > self.val.size:
            self.val = _resized(self.val, _roomy(n_entries, self.val.size))
        if n_entries > self.pos.size:
            self.pos = _resized(self.pos, _roomy(n_entries, self.pos.size))

    def trim(self, n_samples: int) -> None:
        """Give back the room behind the first ``n_samples``."""
        n_rows = self.n_rows(n_samples)
        if self.X is not None:
            self.X = _resized(self.X, n_rows)
            return
        n_entries = int(self.ptr[n_rows])
        self.ptr = _resized(self.ptr, n_rows + 1)
        if self.val is not None:
            self.val = _resized(self.val, n_entries)
        self.pos = _resized(self.pos, n_entries)


def _roomy(needed: int, size: int) -> int:
    """A new size that leaves a sixteenth of the old one over."""
    return max(needed, size + size // 16 + 16)


def _resized(array: NDArray[Number], size: int) -> NDArray[Number]:
    """A copy with another length; the array itself if it has it."""
    if array.shape[0] == size:
        return array
    copy = np.empty((size, *array.shape[1:]), dtype=array.dtype)
    kept = min(size, array.shape[0])
    copy[:kept] = array[:kept]
    return copy


class Fold(Protocol):
    """``fold(samples, n_chunks)``: what is to be kept of the first chunks and of what had left before."""

    n_forecasts: int
    """Dimensions of its ``forecasts``; 0 if it makes none."""

    def __call__(self, samples: Samples, n_chunks: int) -> OldPart:
        """What is kept."""


class Samples(NamedTuple):
    """What a store holds at one moment; later appends do not change it."""

    chunks: tuple[Chunk, ...]
    is_dense: bool | None
    """Whether rows are dense; None before the first sample."""
    chunk_size: int
    """Samples in every chunk but the last."""
    n_samples: int
    """Samples ever appended."""
    n_left: int
    """Of these, the first ones that have left."""
    n: int
    """Features seen."""
    border: FloatArray
    """The trace after the samples that have left; as long as the features that they had."""
    old: OldPart | None = None
    """Their system, if they were folded."""

    @property
    def n_kept(self) -> int:
        """Number of samples that are there."""
        return self.n_samples - self.n_left

    def columns(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Rewards (N, n_targets), discounts, trace discounts and ratios of the samples that are there; copies."""
        parts = [(chunk, self.count(c)) for c, chunk in enumerate(self.chunks)]
        rhos = [np.ones(count) if chunk.rhos is None else chunk.rhos[:count] for chunk, count in parts]
        return (
            np.concatenate([chunk.rewards[:count] for chunk, count in parts]),
            np.concatenate([chunk.discounts[:count] for chunk, count in parts]),
            np.concatenate([chunk.trace_discounts[:count] for chunk, count in parts]),
            np.concatenate(rhos),
        )

    def count(self, c: int) -> int:
        """Number of samples in chunk ``c``."""
        return min(self.chunk_size, self.n_kept - c * self.chunk_size)


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
        """Ids of the features seen, by position."""
        return self.first_ids(self._samples.n)

    def first_ids(self, n: int) -> IntArray:
        """Ids of the features that were seen first; a view."""
        return self._seen.all_ids[:n]

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
            self._fill(samples, filled, batch.part(start, stop))
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
        longest, row, next_row = append_sample(
            *(x.indices, x.values, x_next.indices, x_next.values, *self._seen.arrays, chunk.ptr, chunk.pos),
            *(_NO_VALUES if chunk.val is None else chunk.val, chunk.row, chunk.next_row, chunk.rewards),
            *(chunk.discounts, chunk.trace_discounts, at, t.reward, t.discount, t.trace_discount, t.rho),
            *(self.lambda_, before, MAX_MAGNITUDE),
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

    def _fill(self, samples: Samples, filled: int, part: Batch) -> None:
        """Write the samples of ``part`` to the last chunk, behind the ``filled`` samples that it has."""
        chunk, stop = samples.chunks[-1], filled + len(part)
        n_rows = chunk.n_rows(filled)
        last = int(chunk.next_row[filled - 1]) if filled else -1
        shared = np.empty(len(part), dtype=np.bool_)
        if samples.is_dense:
            self._copy_dense(chunk, part, n_rows, last, shared, stop, samples.chunk_size)
        else:
            self._copy_sparse(chunk, part, n_rows, last, shared, stop, samples.chunk_size)
        columns = (chunk.row, chunk.next_row, chunk.rewards, chunk.discounts, chunk.trace_discounts)
        given = (part.rewards, part.discounts, part.trace_discounts, part.rhos)
        ones = kernels.write_columns(shared, given, n_rows, last, columns, filled)
        if chunk.rhos is None and not ones:
            chunk.rhos = np.ones(chunk.row.size)
        if chunk.rhos is not None:
            chunk.rhos[filled:stop] = part.rhos
        if stop == samples.chunk_size:
            chunk.trim(stop)

    def _copy_sparse(
        self, chunk: Chunk, part: Batch, n_rows: int, last: int, shared: NDArray[np.bool_], stop: int, limit: int
    ) -> None:
        x, rows, x_next, next_rows = part.sparse()
        start = int(chunk.ptr[n_rows])
        tail = _NO_ROW if last < 0 else self._stored_row(chunk, last)
        n_new, n_entries = kernels.plan_sparse(
            x, rows, x_next, next_rows, part.one_store, part.discounts, tail, min(last, 0), shared
        )
        chunk.room(stop, n_rows + n_new, start + n_entries, limit)
        ids, vals = np.empty(n_entries, dtype=np.int64), np.empty(n_entries)
        at_once = max(1, _AT_ONCE * len(part) // max(1, n_entries))
        for first in range(0, len(part), at_once):
            s = slice(first, first + at_once)
            n_rows, n_copied, ones = kernels.copy_sparse(
                x, rows[s], x_next, next_rows[s], shared[s], part.discounts[s], chunk.ptr, n_rows, ids, vals
            )
            end = start + n_copied
            chunk.pos[start:end] = self._positions(ids[:n_copied])
            if not ones and chunk.val is None:
                chunk.val = np.ones(chunk.pos.size)
            if chunk.val is not None:
                chunk.val[start:end] = vals[:n_copied]
            start = end

    def _stored_row(self, chunk: Chunk, r: int) -> tuple[IntArray, IntArray, FloatArray]:
        """A row of a chunk with feature ids, as a CSR matrix of one row."""
        entries = slice(chunk.ptr[r], chunk.ptr[r + 1])
        ids = self._seen.all_ids[chunk.pos[entries]]
        vals = np.ones(ids.size) if chunk.val is None else chunk.val[entries]
        return np.array([0, ids.size]), ids, vals

    def _positions(self, ids: IntArray) -> IntArray:
        """Positions of features, which are given one if they have none."""
        positions = self._seen.find(ids)
        missing = positions < 0
        if missing.any():
            new = ids[missing]
            self._seen.insert(new)
            positions[missing] = self._seen.find(new)
            if len(self._seen) > _MAX_INT32:
                raise CapacityError(f"{len(self._seen)} features were seen: at most 2³¹-1 can be kept")
        return positions

    def _copy_dense(
        self, chunk: Chunk, part: Batch, n_rows: int, last: int, shared: NDArray[np.bool_], stop: int, limit: int
    ) -> None:
        assert chunk.X is not None
        if not len(self._seen):
            self._seen.insert(np.arange(self.n_features))
        if isinstance(part.x, np.ndarray) and isinstance(part.x_next, np.ndarray):
            X, rows, X_next, next_rows = part.x, part.rows, part.x_next, part.next_rows
        else:
            X, X_next = part.dense(self._seen.ids)
            rows = next_rows = np.arange(len(part))
        tail = chunk.X[last] if last >= 0 else np.zeros(self.n_features)
        n_new, _ = kernels.plan_dense(
            X, rows, X_next, next_rows, X is X_next, part.discounts, tail, min(last, 0), shared
        )
        chunk.room(stop, n_rows + n_new, 0, limit)
        kernels.copy_dense(X, rows, X_next, next_rows, shared, part.discounts, chunk.X, n_rows)

    # --- leaving ----------------------------------------------------------------------------------------------------

    def leave(self, n_chunks: int) -> None:
        """Let the first chunks go, which are full; the trace after them stays."""
        samples = self._samples
        for _ in range(n_chunks):
            samples = self._without_first(samples)
        self._samples = samples

    def _shortened(self, samples: Samples) -> Samples:
        """The samples without the chunks that are to be folded, or whose weight has become negligible."""
        if self._half is not None:
            n_chunks = self._half // samples.chunk_size
            if len(samples.chunks) < 2 * n_chunks or samples.count(2 * n_chunks - 1) < samples.chunk_size:
                return samples
            assert self._fold is not None
            old = self._fold(samples, n_chunks)
            for _ in range(n_chunks):
                samples = self._without_first(samples)
            return samples._replace(old=old)
        while self.window is not None and samples.n_kept - samples.chunk_size >= self.window:
            samples = self._without_first(samples)
        return samples

    def _without_first(self, samples: Samples) -> Samples:
        first, size = samples.chunks[0], samples.chunk_size
        border = trace_after(first, size, self.lambda_, samples.border)
        return samples._replace(chunks=samples.chunks[1:], n_left=samples.n_left + size, border=border)

    # --- saving -----------------------------------------------------------------------------------------------------

    def state(self) -> State:
        """What :meth:`restore` takes: a copy of all samples, with 8 bytes for each number."""
        samples = self._samples
        parts = [_columns(chunk, samples.count(c)) for c, chunk in enumerate(samples.chunks)]
        width = self.n_features if samples.is_dense else 0
        nothing = {
            "shared": np.zeros(0, dtype=np.int64),
            "lengths": np.zeros(0, dtype=np.int64),
            "positions": np.zeros(0, dtype=np.int64),
            "values": np.zeros(0),
            "X": np.zeros((0, width)),
            "rewards": np.zeros((0, self.n_targets)),
            "discounts": np.zeros(0),
            "trace_discounts": np.zeros(0),
            "rhos": np.zeros(0),
        }
        columns = {name: np.concatenate([none, *(part[name] for part in parts)]) for name, none in nothing.items()}
        for name, used in (("values", "val"), ("rhos", "rhos")):  # left out if they are all 1
            if all(getattr(chunk, used) is None for chunk in samples.chunks):
                columns[name] = np.zeros(0)
        return {
            "seen": {"ids": self.ids},
            "storage": "none" if samples.is_dense is None else "dense" if samples.is_dense else "sparse",
            "n_samples": samples.n_samples,
            "n_left": samples.n_left,
            "border": samples.border,
            **({} if samples.old is None else {"old": samples.old.state()}),
            **columns,
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
        at_once = size if self._half is None else self._half // size * size
        can_leave = self.window is not None or self._half is not None
        if n_left % at_once or (n_left and not can_leave):
            raise saved.error("n_left", f"is {n_left}, which is not a number of samples that can have left")
        if self._half is not None and n_samples - n_left >= 2 * at_once:
            raise saved.error("n_samples", f"is {n_samples}, of which {n_left} left: the oldest should have left too")
        border = saved.floats("border", None, low=-MAX_MAGNITUDE, high=MAX_MAGNITUDE)
        if border.size > (n if n_left else 0):
            raise saved.error("border", f"has {border.size} entries with {n} features seen")
        old = None
        if n_left and self._half is not None and self._fold is not None:
            old = OldPart.restored(saved.part("old"), n, self.n_targets, self._fold.n_forecasts)
        width = self.n_features if storage == "dense" else None
        columns = _Columns(saved, n_samples - n_left, n, self.n_targets, width)
        is_dense = None if storage == "none" else storage == "dense"
        self._samples = Samples((), is_dense, size, n_left, n_left, n, border, old)
        for start in range(0, n_samples - n_left, size):
            self.append(columns.batch(start, start + size, self._seen.ids))
        if (self._samples.n_samples, self._samples.n_left, self._samples.n) != (n_samples, n_left, n):
            raise saved.error("n_samples", f"is {n_samples}, of which {n_left} left: they do not fit the samples kept")


def trace_after(chunk: Chunk, n_samples: int, lambda_: float, before: FloatArray) -> FloatArray:
    """The trace after the first samples of a chunk, given the one before; as long as the features that occurred."""
    factors = np.empty(n_samples)
    rhos = np.ones(n_samples) if chunk.rhos is None else chunk.rhos
    factor = kernels.trace_factors(chunk.trace_discounts, rhos, lambda_, factors)
    rows = chunk.row[:n_samples]
    if chunk.X is not None:
        with one_thread():
            z: FloatArray = factors @ chunk.X[rows]
        z[: before.size] += factor * before
        return z
    n_entries = chunk.ptr[chunk.n_rows(n_samples)]
    z = np.zeros(max(before.size, int(chunk.pos[:n_entries].max(initial=-1)) + 1))
    z[: before.size] = factor * before
    kernels.scatter(chunk.ptr, chunk.pos, chunk.val, rows, factors[:, None], 0, (0,), z[:, None])
    return z


def _columns(chunk: Chunk, count: int) -> dict[str, NDArray[np.generic]]:
    """The first ``count`` samples of a chunk as columns; ``shared`` says whose x is the next row of the one before."""
    n_rows = chunk.n_rows(count)
    shared = np.zeros(count, dtype=np.int64)
    shared[1:] = chunk.row[1:count] == chunk.next_row[: count - 1]
    n_entries = int(chunk.ptr[n_rows]) if chunk.X is None else 0
    return {
        "shared": shared,
        "lengths": np.diff(chunk.ptr[: n_rows + 1]) if chunk.X is None else np.zeros(0, dtype=np.int32),
        "positions": chunk.pos[:n_entries],
        "values": np.ones(n_entries) if chunk.val is None else chunk.val[:n_entries],
        "X": np.zeros((0, 0)) if chunk.X is None else chunk.X[:n_rows],
        "rewards": chunk.rewards[:count],
        "discounts": chunk.discounts[:count],
        "trace_discounts": chunk.trace_discounts[:count],
        "rhos": np.ones(count) if chunk.rhos is None else chunk.rhos[:count],
    }


class _Columns:
    """The columns of a saved state, checked, from which the samples can be appended again."""

    def __init__(self, saved: Saved, n_kept: int, n: int, n_targets: int, n_dense: int | None) -> None:
        biggest = MAX_MAGNITUDE
        self.rewards = saved.floats("rewards", n_kept, n_targets, low=-biggest, high=biggest)
        self.discounts = saved.floats("discounts", n_kept, low=0.0, high=1.0)
        self.trace_discounts = saved.floats("trace_discounts", n_kept, low=0.0, high=1.0)
        ratios = n_kept if saved.shape("rhos") != (0,) else 0
        self.rhos = saved.floats("rhos", ratios, low=0.0, high=biggest) if n_kept else saved.floats("rhos", 0)
        if not ratios:
            self.rhos = np.ones(n_kept)
        shared = saved.integers("shared", n_kept, low=0, high=1).astype(np.bool_)
        if shared[:1].any() or (shared[1:] & (self.discounts[:-1] == 0.0)).any():
            raise saved.error("shared", "says that a sample begins in a row that is not there")
        self.rows, self.next_rows = np.empty(n_kept, dtype=np.int64), np.empty(n_kept, dtype=np.int64)
        n_rows = int(kernels.place_rows(shared, self.discounts, 0, -1, self.rows, self.next_rows))
        self.lengths = saved.integers("lengths", 0 if n_dense else n_rows, low=0, high=_MAX_INT32)
        self.ends = np.concatenate([[0], np.cumsum(self.lengths, dtype=np.int64)])
        n_entries = int(self.ends[-1])
        self.positions = saved.integers("positions", n_entries, low=0, high=n - 1)
        n_values = n_entries if saved.shape("values") != (0,) else 0
        self.values = saved.floats("values", n_values, low=-biggest, high=biggest)
        self.X = saved.floats("X", n_rows if n_dense else 0, n_dense or 0, low=-biggest, high=biggest)

    def batch(self, start: int, stop: int, ids: IntArray) -> Batch:
        """The samples from ``start`` to ``stop``; ``ids`` has the features by position."""
        s = slice(start, stop)
        rows, next_rows = self.rows[s], self.next_rows[s]
        columns = (self.rewards[s], self.discounts[s], self.trace_discounts[s], self.rhos[s])
        if self.X.size:
            return Batch(self.X, rows, self.X, next_rows, *columns)
        first, last = int(rows[0]), max(int(rows[-1]), int(next_rows[-1])) + 1
        entries = slice(self.ends[first], self.ends[last])
        indices = ids[self.positions[entries]]
        values = self.values[entries] if self.values.size else np.ones(indices.size)
        x = (self.ends[first : last + 1] - self.ends[first], indices, values)
        return Batch(x, rows - first, x, next_rows - first, *columns)
