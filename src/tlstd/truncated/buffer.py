"""The mini-batch of Algorithm 1: samples that wait to be folded into the factors.

Algorithm 1 collects Z = [z₁ … z_k] and D = [d₁ … d_k]. Here the left side has z₁, x₂, …, x_k: the other traces follow
from these (and are nearly parallel to each other when γλ is near 1, as the x's are not). How the vectors are stored
is a subclass, :class:`SparseBuffer` or :class:`DenseBuffer`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np

from tlstd.core.arrays import MAX_MAGNITUDE, FloatArray, IntArray
from tlstd.core.file_format import Saved, State
from tlstd.core.growing import enlarged
from tlstd.data.batch import DENSE_FRACTION, Batch
from tlstd.data.feature_index import FeatureIndex
from tlstd.data.kernels import sparse as kernels
from tlstd.data.kernels import transitions as checks
from tlstd.data.transitions import Transition
from tlstd.data.vectors import SparseVector
from tlstd.errors import CapacityError
from tlstd.truncated.basis import Basis, GrowingBasis, dense_basis, sparse_basis
from tlstd.truncated.pending_vectors import DenseVectors, PendingVectors, SparseVectors
from tlstd.truncated.traces import AccumulatingTrace

_CHUNK = 8  # dense vectors that are orthonormalised together when the solution is read in mid-buffer


class Buffer(ABC):
    """Up to ``capacity`` samples: x (left) and d = x - γx′ (right) as unit vectors, γλ, ρ and rewards.

    Where a trace z₀ reaches into the buffer, its first left vector is the *head*, the whole of z₁ = ρ₁ (γ₁λ z₀ + x₁).
    One object lives from one compression to the next, while U and V stay as they are.
    """

    storage: ClassVar[str]
    left: PendingVectors
    right: PendingVectors

    def __init__(self, capacity: int, n_targets: int) -> None:
        self.capacity = capacity
        self.decays: FloatArray = np.zeros(capacity)  # γ_i λ
        self.rhos: FloatArray = np.zeros(capacity)
        self.rewards: FloatArray = np.zeros((capacity, n_targets))
        self.has_head = False
        self._count: IntArray = np.zeros(1, dtype=np.int64)
        self._kept_bases: tuple[Any, Any] = (None, None)  # from read to read
        self._scratch: FloatArray = np.zeros(0)

    @property
    def count(self) -> int:
        """Samples in the buffer, k. Raised last: an interruption before that leaves no sample."""
        return self._count.item()

    @count.setter
    def count(self, count: int) -> None:
        self._count[0] = count

    # --- taking samples in ------------------------------------------------------------------------------------------

    def append(
        self, batch: Batch, decays: FloatArray, seen: FeatureIndex, trace: AccumulatingTrace, undo_to: int | None
    ) -> None:
        """Write samples into the buffer, which has room for them; they count when the caller sets :attr:`count`.

        ``undo_to`` is how many samples the system has without them, if they may have to be taken back.
        """
        if self.rhos.size < self.capacity:  # restored, with no room
            self._widen()
        first = self.count
        new = slice(first, first + batch.rows.size)
        self.decays[new], self.rhos[new], self.rewards[new] = decays, batch.rhos, batch.rewards
        self._append_vectors(batch, decays, seen, trace, undo_to)

    def take(self, t: Transition, lambda_: float, seen: FeatureIndex, bound: FloatArray) -> bool:
        """Have one sample more, by one compiled call, or return False; ``bound`` is that of the trace's length."""
        return False

    @abstractmethod
    def _append_vectors(
        self, batch: Batch, decays: FloatArray, seen: FeatureIndex, trace: AccumulatingTrace, undo_to: int | None
    ) -> None:
        """Append x to the left and d = x - γx′ to the right vectors."""

    def begin(self, z: FloatArray, n: int) -> None:
        """Give the first sample, before it counts, its head from the trace z before it. n rows."""
        decay, rho = self.decays[0], self.rhos[0]
        self.has_head = bool(decay * rho != 0.0 and z.any())
        if self.has_head:
            head = rho * self.left.first_vector(n)
            head[: z.size] += rho * decay * z  # Algorithm 1: z ← γλ z + x
            self.left.set_head(head)

    def _widen(self) -> None:
        """Give everything its full length."""
        self.left.widen(self.capacity)
        self.right.widen(self.capacity)
        decays, rhos = enlarged(self.decays, self.capacity), enlarged(self.rhos, self.capacity)
        rewards = enlarged(self.rewards, self.capacity)
        self.__dict__.update(decays=decays, rhos=rhos, rewards=rewards)

    def mend(self, count: int | None = None) -> None:
        """Put everything in order, with the first ``count`` samples or all that were counted."""
        self.count = self.count if count is None else count
        self._kept_bases, self._scratch = (None, None), np.zeros(self._scratch.size)
        self.left.mend(self.count)
        self.right.mend(self.count)

    def emptied(self) -> Self:
        """An empty buffer with the same memory; this one must not be used any more."""
        other = copy(self)
        other.left, other.right = self.left.emptied(), self.right.emptied()
        other._count, other._kept_bases = np.zeros(1, dtype=np.int64), (None, None)
        return other

    def scratch(self, n: int) -> FloatArray:
        """What kernels for sparse vectors over n rows need: zeros, which they leave. Dense vectors need nothing."""
        return self._scratch

    # --- what it adds to A, b and z ---------------------------------------------------------------------------------

    @abstractmethod
    def bases(self, U: FloatArray, V: FloatArray, n: int, *, last: bool) -> tuple[Basis, Basis]:
        """Orthonormal bases of [U, x…] and [V, d…] over n rows, whatever was read before; ``last``: of this buffer."""

    def traces(self, left: Basis) -> FloatArray:
        """Coordinates (k, size) of the traces z₁, …, z_k in the basis of the left side."""
        k = left.coordinates.shape[1]
        Z: FloatArray = self.left.norms[:k, None] * left.coordinates.T  # of z₁, x₂, …, x_k
        kernels.traces_from_features(self.decays[:k], self.rhos[:k], self.has_head, Z)
        return Z

    def on_vectors(self, on_traces: FloatArray) -> FloatArray:
        """Coefficients (k, m) on the left unit vectors from those on the traces, in place."""
        k = on_traces.shape[0]
        kernels.traces_from_features_adjoint(self.decays[:k], self.rhos[:k], self.has_head, on_traces)
        on_traces *= self.left.norms[:k, None]
        return on_traces

    @abstractmethod
    def should_switch(self, n_features: int) -> bool:
        """Whether the vectors are better stored the other way: dense ones as rows, sparse ones as lists of entries."""

    # --- saving -----------------------------------------------------------------------------------------------------

    def state(self) -> State:
        """What :meth:`restore` takes."""
        k = self.count
        columns = {"decays": self.decays[:k], "rhos": self.rhos[:k], "rewards": self.rewards[:k]}
        if self.capacity == 0:
            return {**columns, "storage": "none"}
        head = {"storage": self.storage, "has_head": self.has_head and k > 0}
        return {**columns, **head, "left": self.left.state(), "right": self.right.state()}

    def restore(self, saved: Saved, count: int, capacity: int, n: int, *, has_trace: bool) -> None:
        """Take over ``count`` samples that were saved, over n rows, with no room for more; only of fresh objects."""
        self.capacity, self.count = capacity, count
        self.decays = saved.floats("decays", count, low=0.0, high=1.0)
        self.rhos = saved.floats("rhos", count, low=0.0, high=MAX_MAGNITUDE)
        m = self.rewards.shape[1]
        self.rewards = saved.floats("rewards", count, m, low=-MAX_MAGNITUDE, high=MAX_MAGNITUDE)
        if self.capacity:
            self.has_head = saved.flag("has_head")
            if self.has_head and not (count and has_trace):
                raise saved.error("has_head", "is true where no trace reaches into the buffer")
            self._restore_vectors(saved, n)

    @abstractmethod
    def _restore_vectors(self, saved: Saved, n: int) -> None:
        """Take over the vectors that were saved."""


class SparseBuffer(Buffer):
    """Vectors as lists of entries in the rows of features that were seen."""

    storage = "sparse"
    left: SparseVectors
    right: SparseVectors

    def __init__(self, capacity: int, n_targets: int) -> None:
        super().__init__(capacity, n_targets)
        self.left, self.right = SparseVectors(capacity), SparseVectors(capacity)

    def scratch(self, n: int) -> FloatArray:
        """At least n zeros."""
        if self._scratch.size < n:
            self._scratch = np.zeros(n + n // 3)
        return self._scratch

    def _append_vectors(
        self, batch: Batch, decays: FloatArray, seen: FeatureIndex, trace: AccumulatingTrace, undo_to: int | None
    ) -> None:
        x, rows, x_next, next_rows = batch.sparse()
        nnz, next_nnz = checks.entries(x[0], rows), checks.entries(x_next[0], next_rows)
        self.left.reserve(nnz)
        self.right.reserve(nnz + next_nnz)
        seen.reserve(nnz + next_nnz)
        trace_arrays = trace.arrays(seen.all_ids.size, undo_to)
        kernels.append_transitions(
            *(x, rows, x_next, next_rows, batch.discounts, decays, batch.rhos, seen.arrays),
            *(self.left.arrays, self.right.arrays, self.left.count, trace_arrays, self._count),
        )
        self.left.count += rows.size
        self.right.count += rows.size

    def take(self, t: Transition, lambda_: float, seen: FeatureIndex, bound: FloatArray) -> bool:
        """Have one sample more, by one compiled call."""
        x, x_next, at, before = t.x, t.x_next, self._count.item(), bound.item()
        if (
            not 0 < at < self.capacity - 1
            or self.rhos.size < self.capacity
            or type(x) is not SparseVector
            or type(x_next) is not SparseVector
        ):
            return False
        left, right = self.left, self.right
        longest = kernels.append_one(
            *(x.indices, x.values, x_next.indices, x_next.values, seen.arrays, left.arrays, right.arrays),
            *((self.decays, self.rhos, self.rewards), at, (t.reward, t.discount, t.trace_discount, t.rho)),
            *(lambda_, before, MAX_MAGNITUDE),
        )
        if longest < 0.0:
            return False
        bound[0] = max(before, longest)
        left.count = right.count = at + 1
        self._count[0] = at + 1
        bound[0] = longest
        return True

    def bases(self, U: FloatArray, V: FloatArray, n: int, *, last: bool) -> tuple[Basis, Basis]:
        """Through the Gram matrix; while the buffer fills, one vector after the other."""
        scratch = self.scratch(n)
        if last:
            self._kept_bases = None, None  # frees memory
            return sparse_basis(U, self.left, scratch, n), sparse_basis(V, self.right, scratch, n)
        if self._kept_bases[0] is None:
            self._kept_bases = GrowingBasis(U, self.left), GrowingBasis(V, self.right)
        left, right = self._kept_bases
        return left.basis(scratch, n), right.basis(scratch, n)

    def should_switch(self, n_features: int) -> bool:
        """Whether the vectors are better stored as dense rows."""
        return self.left.nnz() >= DENSE_FRACTION * n_features * self.count

    def _restore_vectors(self, saved: Saved, n: int) -> None:
        self.left = SparseVectors.restore(saved.part("left"), self.count, n, has_head=self.has_head)
        self.right = SparseVectors.restore(saved.part("right"), self.count, n)


class DenseBuffer(Buffer):
    """Vectors as rows of two arrays; all features have to be seen."""

    storage = "dense"
    left: DenseVectors
    right: DenseVectors

    def __init__(self, capacity: int, n_targets: int, n_features: int) -> None:
        super().__init__(capacity, n_targets)
        self.left, self.right = DenseVectors(capacity, n_features), DenseVectors(capacity, n_features)

    def _append_vectors(
        self, batch: Batch, decays: FloatArray, seen: FeatureIndex, trace: AccumulatingTrace, undo_to: int | None
    ) -> None:
        X, X_next = batch.dense(seen.ids)
        self.left.append(X)
        self.right.append(X - batch.discounts[:, None] * X_next)

    def bases(self, U: FloatArray, V: FloatArray, n: int, *, last: bool) -> tuple[Basis, Basis]:
        """By explicit vectors, all at once or, while the buffer fills, a few at a time."""
        if last:
            k = self.count
            return dense_basis(U, self.left, n, chunk=k), dense_basis(V, self.right, n, chunk=k)
        # read in mid-buffer: whole chunks are kept for the next read
        whole = self.count - self.count % _CHUNK
        left = dense_basis(U, self.left, n, chunk=_CHUNK, count=whole, start=self._kept_bases[0])
        right = dense_basis(V, self.right, n, chunk=_CHUNK, count=whole, start=self._kept_bases[1])
        self._kept_bases = left, right
        return (
            dense_basis(U, self.left, n, chunk=_CHUNK, start=left),
            dense_basis(V, self.right, n, chunk=_CHUNK, start=right),
        )

    def should_switch(self, n_features: int) -> bool:
        """Whether the vectors are better stored as lists of entries: not at once where it is a close call."""
        return self.left.nnz() < 0.5 * DENSE_FRACTION * n_features * self.count

    def _restore_vectors(self, saved: Saved, n: int) -> None:
        self.left = DenseVectors.restore(saved.part("left"), self.count, n)
        self.right = DenseVectors.restore(saved.part("right"), self.count, n)


MAX_ENTRIES = 33 * 320
"""Non-zero entries in each side of a default buffer of sparse vectors, unless the rank asks for more."""


def default_buffer_size(rank: int, dense: bool, active: int = 0) -> int:
    """How many samples are folded in at once unless the user says otherwise.

    A longer buffer saves tall n·r² products and truncates less often, and makes the core problem, (r + k)³, larger.
    Sparse features: eight times the rank up to 320 samples (``docs/numerics.md``, 5, has what it gains), and no more
    than ``MAX_ENTRIES`` with ``active`` features each; dense ones: four times up to 40; never less than the rank.
    Depends on nothing but its arguments: results do not depend on the machine.

    >>> default_buffer_size(40, dense=False), default_buffer_size(40, dense=True), default_buffer_size(200, dense=True)
    (320, 40, 200)
    >>> [default_buffer_size(40, dense=False, active=active) for active in (33, 64, 128, 1000)]
    [320, 165, 82, 40]
    """
    return max(1, rank, min(4 * rank, 40) if dense else min(8 * rank, 320, MAX_ENTRIES // max(active, 1)))


def empty_buffer(capacity: int, n_targets: int, n_features: int, *, dense: bool) -> Buffer:
    """A buffer with room for ``capacity`` samples."""
    try:
        return DenseBuffer(capacity, n_targets, n_features) if dense else SparseBuffer(capacity, n_targets)
    except MemoryError as error:
        raise CapacityError(
            f"a buffer of {capacity} samples of {n_features} features does not fit into memory: use a smaller "
            "buffer_size or rank"
        ) from error


class BufferFactory:
    """The buffers that a system begins with, one after the other: how long, and how their vectors are stored.

    Parameters
    ----------
    n_features, n_targets, rank : as in ``TLSTD``
    size : int or None for :func:`default_buffer_size`
    may_be_dense : bool
        Whether vectors with many non-zeros are stored as dense rows.
    """

    def __init__(self, n_features: int, n_targets: int, rank: int, size: int | None, *, may_be_dense: bool) -> None:
        self.n_features, self.n_targets, self.rank = n_features, n_targets, rank
        self.size, self.may_be_dense = size, may_be_dense
        self._first_active = 0  # non-zero features of the first sample, where they make the default buffer shorter

    def nothing(self) -> Buffer:
        """What there is before the first sample."""
        return SparseBuffer(0, self.n_targets)

    def first(self, sample: Batch, seen: FeatureIndex) -> Buffer:
        """With dense or sparse storage by the first sample's features."""
        dense = self.may_be_dense and sample.is_dense(self.n_features)
        active = 0 if dense or self.size else sample.most_active()
        if default_buffer_size(self.rank, dense, active) < default_buffer_size(self.rank, dense):
            self._first_active = active
        return self._made(seen, dense=dense)

    def after(self, buffer: Buffer, seen: FeatureIndex) -> Buffer:
        """In the memory of a buffer that was compressed, unless its vectors are better stored the other way."""
        if self.may_be_dense and buffer.should_switch(self.n_features):
            return self._made(seen, dense=buffer.storage == "sparse")
        return buffer.emptied()

    def _made(self, seen: FeatureIndex, *, dense: bool) -> Buffer:
        if dense:
            seen.insert(np.arange(self.n_features))
        return empty_buffer(self._capacity(dense=dense), self.n_targets, self.n_features, dense=dense)

    def _capacity(self, *, dense: bool) -> int:
        return self.size or default_buffer_size(self.rank, dense, self._first_active)

    def state(self) -> State:
        """What :meth:`restored` takes, beside the state of a buffer."""
        return {"first_active": self._first_active} if self._first_active else {}

    def restored(self, saved: Saved, n: int, n_compressed: int) -> Buffer:
        """The buffer that was saved, where n features were seen and some samples are in the factors."""
        storage, k = saved.word("storage", ("none", "sparse", "dense")), saved.integer("n_buffered")
        dense, n_samples = storage == "dense", n_compressed + k
        if (storage == "none") != (n_samples == 0):
            raise saved.error("storage", f"is {storage} with {n_samples} samples seen")
        if dense and not (self.may_be_dense and n == self.n_features):
            raise saved.error("storage", f"is {storage} with {n} of {self.n_features} features seen")
        if saved.has("first_active"):  # files of before have none, and go on with the longer buffer
            self._first_active = saved.integer("first_active", low=1, high=self.n_features)
        capacity = 0 if storage == "none" else self._capacity(dense=dense)
        if k > capacity:
            raise saved.error("n_buffered", f"is {k} where a buffer holds {capacity}")
        buffer = empty_buffer(0, self.n_targets, self.n_features, dense=dense)
        buffer.restore(saved, k, capacity, n, has_trace=n_compressed > 0)
        return buffer
