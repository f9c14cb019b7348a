"""Samples kept in chunks, each feature row once, and what is kept of those that have left."""

from __future__ import annotations

from math import ceil, log1p
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from tlstd.core.arrays import MAX_MAGNITUDE, FloatArray, IntArray
from tlstd.core.file_format import Saved, State
from tlstd.core.threads import one_thread
from tlstd.data.batch import Batch
from tlstd.data.feature_index import FeatureIndex
from tlstd.data.held_out import FEWEST_EFFECTIVE, FEWEST_GROUPS
from tlstd.data.kernels.sparse import append_sample
from tlstd.data.transitions import Transition
from tlstd.data.vectors import SparseVector
from tlstd.errors import CapacityError
from tlstd.krylov.kernels import products as kernels

Int32Array: TypeAlias = NDArray[np.int32]
Number = TypeVar("Number", np.float64, np.int32)

MAX_INT32 = (1 << 31) - 1
"""Largest number of entries, and of features, that can be kept."""


class Chunk:
    """Consecutive samples. Arrays may have room at their ends; what is in use follows from the number of samples.

    ``ptr``, ``pos``, ``val``: the rows, as in :mod:`tlstd.krylov.kernels.products`; ``X`` instead if rows are dense.
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

    def ratios(self, n_samples: int) -> FloatArray:
        """Importance ratios of the first ``n_samples``."""
        return np.ones(n_samples) if self.rhos is None else self.rhos[:n_samples]

    def n_rows(self, n_samples: int) -> int:
        """Number of rows that the first ``n_samples`` use."""
        last = n_samples - 1
        return 0 if last < 0 else max(int(self.row[last]), int(self.next_row[last])) + 1

    def room(self, n_samples: int, n_rows: int, n_entries: int, limit: int) -> None:
        """Make room for so many in all; at most ``limit`` samples will ever come."""
        if n_entries > MAX_INT32:
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
    old: FoldedSamples | None = None
    """Their system, if they were folded."""

    @property
    def n_kept(self) -> int:
        """Number of samples that are there."""
        return self.n_samples - self.n_left

    def columns(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Rewards (N, n_targets), discounts, trace discounts and ratios of the samples that are there; copies."""
        parts = [(chunk, self.count(c)) for c, chunk in enumerate(self.chunks)]
        rewards: FloatArray = np.concatenate([chunk.rewards[:count] for chunk, count in parts])
        rhos: FloatArray = np.concatenate([chunk.ratios(count) for chunk, count in parts])
        return rewards, *self.discounts(), rhos

    def discounts(self) -> tuple[FloatArray, FloatArray]:
        """Discounts and trace discounts of the samples that are there; copies."""
        parts = [(chunk, self.count(c)) for c, chunk in enumerate(self.chunks)]
        discounts: FloatArray = np.concatenate([chunk.discounts[:count] for chunk, count in parts])
        traces: FloatArray = np.concatenate([chunk.trace_discounts[:count] for chunk, count in parts])
        return discounts, traces

    def count(self, c: int) -> int:
        """Number of samples in chunk ``c``."""
        return min(self.chunk_size, self.n_kept - c * self.chunk_size)

    def without(self, n_chunks: int, lambda_: float) -> Samples:
        """The samples after the first chunks, which are full, have left; the trace after them stays."""
        border = self.border
        for chunk in self.chunks[:n_chunks]:
            border = trace_after(chunk, self.chunk_size, lambda_, border)
        n_left = self.n_left + n_chunks * self.chunk_size
        return self._replace(chunks=self.chunks[n_chunks:], n_left=n_left, border=border)


def trace_after(chunk: Chunk, n_samples: int, lambda_: float, before: FloatArray) -> FloatArray:
    """The trace after the first samples of a chunk, given the one before; as long as the features that occurred."""
    factors = np.empty(n_samples)
    factor = kernels.trace_factors(chunk.trace_discounts, chunk.ratios(n_samples), lambda_, factors)
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


_AT_ONCE = 1 << 12  # entries that are copied and looked up together, about: they stay in a cache
_NO_ROW = np.zeros(2, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0)


def write(chunk: Chunk, filled: int, part: Batch, seen: FeatureIndex, limit: int) -> None:
    """Write the samples of ``part`` behind the ``filled`` ones of a chunk of at most ``limit``, in place."""
    stop = filled + len(part)
    n_rows = chunk.n_rows(filled)
    last = int(chunk.next_row[filled - 1]) if filled else -1
    copy = _copy_sparse if chunk.X is None else _copy_dense
    shared = copy(chunk, part, n_rows, last, stop, limit, seen)
    columns = (chunk.row, chunk.next_row, chunk.rewards, chunk.discounts, chunk.trace_discounts)
    given = (part.rewards, part.discounts, part.trace_discounts, part.rhos)
    ones = kernels.write_columns(shared, given, n_rows, last, columns, filled)
    if chunk.rhos is None and not ones:
        chunk.rhos = np.ones(chunk.row.size)
    if chunk.rhos is not None:
        chunk.rhos[filled:stop] = part.rhos
    if stop == limit:
        chunk.trim(stop)


def _copy_sparse(
    chunk: Chunk, part: Batch, n_rows: int, last: int, stop: int, limit: int, seen: FeatureIndex
) -> NDArray[np.bool_]:
    """Copy the rows of samples to a chunk, in place; returns whose x is the next row of the sample before."""
    x, rows, x_next, next_rows = part.sparse()
    start, shared = int(chunk.ptr[n_rows]), np.empty(len(part), dtype=np.bool_)
    tail = _NO_ROW if last < 0 else _stored_row(chunk, last, seen)
    n_new, n_entries = kernels.plan_sparse(
        x, rows, x_next, next_rows, x is x_next, part.discounts, tail, min(last, 0), shared
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
        chunk.pos[start:end] = _positions(ids[:n_copied], seen)
        if not ones and chunk.val is None:
            chunk.val = np.ones(chunk.pos.size)
        if chunk.val is not None:
            chunk.val[start:end] = vals[:n_copied]
        start = end
    return shared


def _copy_dense(
    chunk: Chunk, part: Batch, n_rows: int, last: int, stop: int, limit: int, seen: FeatureIndex
) -> NDArray[np.bool_]:
    """Copy the rows of samples to a chunk, in place; returns whose x is the next row of the sample before."""
    assert chunk.X is not None
    if not len(seen):
        seen.insert(np.arange(seen.n_features))
    if isinstance(part.x, np.ndarray) and isinstance(part.x_next, np.ndarray):
        X, rows, X_next, next_rows = part.x, part.rows, part.x_next, part.next_rows
    else:
        X, X_next = part.dense(seen.ids)
        rows = next_rows = np.arange(len(part))
    tail, shared = chunk.X[last] if last >= 0 else np.zeros(seen.n_features), np.empty(len(part), dtype=np.bool_)
    n_new, _ = kernels.plan_dense(X, rows, X_next, next_rows, X is X_next, part.discounts, tail, min(last, 0), shared)
    chunk.room(stop, n_rows + n_new, 0, limit)
    kernels.copy_dense(X, rows, X_next, next_rows, shared, part.discounts, chunk.X, n_rows)
    return shared


def _stored_row(chunk: Chunk, r: int, seen: FeatureIndex) -> tuple[IntArray, IntArray, FloatArray]:
    """A row of a chunk with feature ids, as a CSR matrix of one row."""
    entries = slice(chunk.ptr[r], chunk.ptr[r + 1])
    ids = seen.all_ids[chunk.pos[entries]]
    vals = np.ones(ids.size) if chunk.val is None else chunk.val[entries]
    return np.array([0, ids.size]), ids, vals


def _positions(ids: IntArray, seen: FeatureIndex) -> IntArray:
    """Positions of features, which are given one if they have none."""
    positions = seen.find(ids)
    missing = positions < 0
    if missing.any():
        new = ids[missing]
        seen.insert(new)
        positions[missing] = seen.find(new)
        if len(seen) > MAX_INT32:
            raise CapacityError(f"{len(seen)} features were seen: at most 2³¹-1 can be kept")
    return positions


_LARGEST = float(np.finfo(np.float64).max)


class DimensionScores(NamedTuple):
    """Solutions at the last folding, and the errors of those of earlier foldings for what came after them.

    e_g is the squared error summed over a group of samples (an episode or a block), s_g the sum of their weights: the
    number of samples that were known when they were predicted, so that later errors, of better solutions, count more.
    """

    solutions: FloatArray
    """(k, n_targets, M): in the basis of the old part, the solutions of dimension 1, …, M."""
    errors: FloatArray
    """(3, n_targets, M): Σ e_g, Σ e_g² and Σ e_g s_g."""
    sizes: FloatArray
    """(5,): Σ s_g, Σ s_g², states (as many equal ones as tell as much), groups, and states."""
    squares: FloatArray
    """(n_targets,): the squared returns, weighted as the errors."""

    @classmethod
    def empty(cls, n_vectors: int, n_targets: int, n_dimensions: int) -> DimensionScores:
        """Nothing predicted so far."""
        nothing = np.zeros((3, n_targets, n_dimensions)), np.zeros(5), np.zeros(n_targets)
        return cls(np.zeros((n_vectors, n_targets, n_dimensions)), *nothing)

    @property
    def enough(self) -> bool:
        """Whether there are enough to choose by."""
        return bool(self.sizes[0] > 0.0 and self.sizes[2] >= FEWEST_EFFECTIVE and self.sizes[3] >= FEWEST_GROUPS)

    def scores(self, target: int) -> tuple[FloatArray, FloatArray, float]:
        """Mean squared error of each dimension, its standard error over groups, and the mean square of the returns."""
        total, squares, n = self.sizes[0], self.sizes[1], self.sizes[3]
        means = self.errors[0, target] / total
        spread = self.errors[1, target] - 2.0 * means * self.errors[2, target] + means**2 * squares
        return means, np.sqrt(np.maximum(spread, 0.0) * n / (n - 1.0)) / total, float(self.squares[target] / total)

    def state(self) -> State:
        """What :meth:`restored` takes; files have no arrays of three axes."""
        rows, errors = self.solutions.shape[0], self.errors
        return self._asdict() | {
            "solutions": self.solutions.reshape(rows, errors[0].size),
            "errors": errors.reshape(3, errors[0].size),
        }

    @classmethod
    def restored(cls, saved: Saved, n_vectors: int, n_targets: int, n_dimensions: int) -> DimensionScores:
        """What was saved, if it can be of these sizes."""
        return cls(
            saved.floats("solutions", n_vectors, n_targets * n_dimensions).reshape(-1, n_targets, n_dimensions),
            saved.floats("errors", 3, n_targets * n_dimensions, low=0.0, high=_LARGEST).reshape(3, n_targets, -1),
            saved.floats("sizes", 5, low=0.0, high=_LARGEST),
            saved.floats("squares", n_targets, low=0.0, high=_LARGEST),
        )


class FoldedSamples(NamedTuple):
    """What is kept of the system of samples that have left, over the n₀ features that were seen when the last did.

    A_old ≈ C Qᵀ + τ (I - Q Qᵀ) with C = ``left``, Q = ``right`` and τ = ``beyond``. Everything is weighted as the
    samples were when the last of them was the newest.
    """

    left: FloatArray
    """C = A_old Q, (n₀, k)."""
    right: FloatArray
    """An orthonormal basis Q of the space in which A_old is known, (n₀, k)."""
    beyond: float
    """What A_old is taken for outside of it, as a multiple of the identity."""
    b: FloatArray
    """(n₀, n_targets), exact."""
    square: float
    """Mean of ‖x‖², exact."""
    constant: FloatArray
    """The value that a feature had in every x, or 0 if they differed, (n₀,)."""
    forecasts: DimensionScores | None = None
    """Errors for samples that came later, by dimension; None where nothing is to be chosen."""

    def product(self, V: FloatArray, *, adjoint: bool = False) -> FloatArray:
        """A_old V, or A_oldᵀ V, for V (n₀, m)."""
        C, Q = (self.right, self.left) if adjoint else (self.left, self.right)
        on_Q = Q.T @ V
        product: FloatArray = C @ on_Q
        if self.beyond > 0.0:
            product += self.beyond * V
            product -= self.right @ (self.beyond * (self.right.T @ V if adjoint else on_Q))
        return product

    def state(self) -> State:
        """What :meth:`restored` takes."""
        state = {name: value for name, value in self._asdict().items() if name != "forecasts"}
        return state if self.forecasts is None else {**state, "forecasts": self.forecasts.state()}

    @classmethod
    def restored(cls, saved: Saved, n: int, n_targets: int, n_forecasts: int) -> FoldedSamples:
        """What was saved, if it can be of a store with n features; ``n_forecasts`` dimensions are to be chosen from."""
        shape = saved.shape("right")
        rows, k = shape if len(shape) == 2 else (0, 0)
        if rows > n:
            raise saved.error("right", f"has {rows} rows for {n} features")
        forecasts = None
        if n_forecasts and saved.part("forecasts").shape("solutions"):  # files of version 0.1 have none
            forecasts = DimensionScores.restored(saved.part("forecasts"), k, n_targets, n_forecasts)
        return cls(
            left=saved.floats("left", rows, k),
            right=saved.floats("right", rows, k, low=-2.0, high=2.0),
            beyond=saved.real("beyond", low=0.0, high=_LARGEST),
            b=saved.floats("b", rows, n_targets),
            square=saved.real("square", low=0.0, high=_LARGEST),
            constant=saved.floats("constant", rows, low=-MAX_MAGNITUDE, high=MAX_MAGNITUDE),
            forecasts=forecasts,
        )


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

    def __call__(self, samples: Samples, n_chunks: int) -> FoldedSamples:
        """What is kept."""


class Retention:
    """Samples are forgotten (``beta``), or folded (``max_samples``), or stay.

    Parameters
    ----------
    n_features, lambda_, beta, chunk_size, max_samples, fold : as in :class:`~tlstd.krylov.samples.SampleStore`

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

    def restored(
        self, saved: Saved, n_samples: int, n_left: int, size: int, n: int, n_targets: int
    ) -> FoldedSamples | None:
        """What was saved of samples that have left, if so many can have, in chunks of ``size``; n features seen."""
        if n_left and self.half is None and (self.window is None or n_left % size):
            raise saved.error("n_left", f"is {n_left}, which is not a number of samples that can have left")
        if self.half is not None and n_samples - n_left >= 2 * (self.half // size * size):
            raise saved.error("n_samples", f"is {n_samples}, of which {n_left} left: the oldest should have left too")
        if not n_left or self.half is None or self.fold is None:
            return None
        return FoldedSamples.restored(saved.part("old"), n, n_targets, self.fold.n_forecasts)


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
        samples leave early (:class:`~tlstd.krylov.samples.Retention`). Samples leave in whole chunks.
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
        self.retention = Retention(n_features, lambda_, beta, chunk_size, max_samples, fold)
        self._seen = FeatureIndex(n_features)
        self._appending = False
        self._samples = Samples((), None, self.retention.chunk_size(False), 0, 0, 0, np.zeros(0))

    @property
    def fold_size(self) -> int | None:
        """Samples that are folded at a time, whenever there are twice as many; None if samples are never folded."""
        return self.retention.fold_size(self._samples.chunk_size)

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
    def index(self) -> FeatureIndex:
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
            self._seen = FeatureIndex(self.n_features, self.ids)
        self._appending = True
        if samples.is_dense is None:
            is_dense = batch.is_dense(self.n_features)
            samples = samples._replace(is_dense=is_dense, chunk_size=self.retention.chunk_size(is_dense))
        start = 0
        while start < len(batch):
            filled = samples.count(len(samples.chunks) - 1) if samples.chunks else 0
            if not samples.chunks or filled == samples.chunk_size:
                chunk, filled = Chunk(self.n_targets, self.n_features if samples.is_dense else None), 0
                samples = samples._replace(chunks=(*samples.chunks, chunk))
            stop = min(len(batch), start + samples.chunk_size - filled)
            write(samples.chunks[-1], filled, batch.part(start, stop), self._seen, samples.chunk_size)
            n_samples, n = samples.n_samples + stop - start, int(self._seen.counter[0])
            samples = self.retention.shortened(samples._replace(n_samples=n_samples, n=n))
            start = stop
        self._samples = samples
        self._appending = False

    def append_one(self, t: Transition, bound: FloatArray) -> tuple[int, int] | None:
        """Add one transition with sparse vectors and one reward by one compiled call; its rows in the last chunk.

        ``bound`` (1,) is that of the trace's length, and follows. None, with nothing changed, where :meth:`append` has
        to make room, where samples leave, and where something is not as usual.
        """
        samples, window, x, x_next = self._samples, self.retention.window, t.x, t.x_next
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
        size = self.retention.chunk_size(storage == "dense")
        n_left = saved.integer("n_left", high=n_samples)
        old = self.retention.restored(saved, n_samples, n_left, size, n, self.n_targets)
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


def columns_of(samples: Samples, n_features: int, n_targets: int) -> dict[str, NDArray[np.generic]]:
    """Copies of all samples that are there, as columns; ratios and values are left out if they are all 1."""
    parts = [_columns(chunk, samples.count(c)) for c, chunk in enumerate(samples.chunks)]
    width = n_features if samples.is_dense else 0
    nothing = {
        "shared": np.zeros(0, dtype=np.int64),
        "lengths": np.zeros(0, dtype=np.int64),
        "positions": np.zeros(0, dtype=np.int64),
        "values": np.zeros(0),
        "X": np.zeros((0, width)),
        "rewards": np.zeros((0, n_targets)),
        "discounts": np.zeros(0),
        "trace_discounts": np.zeros(0),
        "rhos": np.zeros(0),
    }
    columns = {name: np.concatenate([none, *(part[name] for part in parts)]) for name, none in nothing.items()}
    for name, used in (("values", "val"), ("rhos", "rhos")):  # left out if they are all 1
        if all(getattr(chunk, used) is None for chunk in samples.chunks):
            columns[name] = np.zeros(0)
    return columns


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
        "rhos": chunk.ratios(count),
    }


class SavedColumns:
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
        self.lengths = saved.integers("lengths", 0 if n_dense else n_rows, low=0, high=MAX_INT32)
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
