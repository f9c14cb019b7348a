"""The LSTD system A w = b in factored form, with samples folded in a block at a time.

Between compressions the system is

    A = decay · U diag(σ) Vᵀ + Σ_i ω_i z_i d_iᵀ,        b = decay · b₀ + Σ_i ω_i z_i r_i

over the buffered samples i. Every trace z_i is a combination of the first one and of buffered feature vectors, so all
of it is a small dense problem in the coordinates of bases of [U, left] and [V, right] (see ``basis``). Nothing is
computed until the solution is read or the buffer is full. Rows exist only for features that were seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tlstd.container import Saved, State
from tlstd.errors import CapacityError
from tlstd.kernels import sparse as kernels
from tlstd.linalg.basis import Basis, dense_basis, sparse_basis
from tlstd.linalg.batch import Batch
from tlstd.linalg.buffered_vectors import DenseVectors, SparseVectors
from tlstd.linalg.factors import Factors
from tlstd.linalg.growing_basis import GrowingBasis
from tlstd.linalg.seen import SeenFeatures
from tlstd.linalg.subspace_lambda import ProjectedEquations, Projection
from tlstd.linalg.svd import EPS, inverse_factors, leading_svd
from tlstd.linalg.threads import one_thread
from tlstd.types import MAX_MAGNITUDE, FloatArray, IntArray

DENSE_FRACTION = 0.25
"""Share of non-zero features from which vectors are kept as dense rows."""

MAX_AMPLIFICATION = 100.0  # by which ratios may multiply rounding errors of a replacing trace within a buffer
_CHUNK = 8  # dense vectors that are orthonormalised together when the solution is read in mid-buffer


def default_buffer_size(rank: int, dense: bool) -> int:
    """How many samples are folded in at once unless the user says otherwise.

    A longer buffer saves tall n·r² products and truncates less often, and makes the core problem, (r + k)³, larger.
    Sparse features: eight times the rank up to 320 samples (``docs/deviations.md``, 5, has what it gains); dense ones:
    four times up to 40; never less than the rank.
    Depends on nothing but its arguments: results do not depend on the machine.

    >>> default_buffer_size(40, dense=False), default_buffer_size(40, dense=True), default_buffer_size(200, dense=True)
    (320, 40, 200)
    """
    return max(1, rank, min(4 * rank, 40) if dense else min(8 * rank, 320))


@dataclass(frozen=True, slots=True, eq=False)
class Core:
    """The system as of now, in the coordinates of two bases: A = left · L diag(sigma) Rt · rightᵀ."""

    left: Basis
    right: Basis
    L: FloatArray
    sigma: FloatArray
    Rt: FloatArray
    decay: float
    b_coefficients: FloatArray  # (k, m), of b - decay·b₀ on the left block's unit vectors
    z_coefficients: FloatArray  # (k, 1), of the last trace on them
    projection: Projection | None  # the second system on the leading singular vectors


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """w = V on_V + (right block) on_D + E on_E, without w having been formed."""

    right: Basis
    coordinates: FloatArray
    on_V: FloatArray
    on_D: FloatArray
    on_E: FloatArray


class TruncatedSystem:
    """A, b and the trace z of LSTD(λ), A cut back to rank ``rank`` at the end of every buffer.

    Parameters
    ----------
    n_features, rank, lambda_, n_targets : as in ``TLSTD``
    buffer_size : int or None for :func:`default_buffer_size`
    beta : float or None
        Constant forgetting factor; None for the running average.
    replacing : bool
        Replacing instead of accumulating traces.
    equations_lambda : float or None
        λ of a second system, projected onto these factors, that is solved instead; see ``subspace_lambda``.
    """

    def __init__(
        self,
        n_features: int,
        rank: int,
        *,
        lambda_: float,
        buffer_size: int | None,
        beta: float | None,
        replacing: bool,
        n_targets: int,
        equations_lambda: float | None = None,
    ) -> None:
        self.n_features, self.rank, self.lambda_ = n_features, rank, lambda_
        self.equations = None if equations_lambda is None else ProjectedEquations(equations_lambda, n_targets)
        self.buffer_size, self.beta, self.replacing = buffer_size, beta, replacing
        self.n_compressed = 0  # samples already in the factors
        self.seen = SeenFeatures()
        self.factors = Factors(rank)
        self.b: FloatArray = np.zeros((0, n_targets))
        self.z: FloatArray = np.zeros(0)
        self.left: SparseVectors | DenseVectors | None = None
        self.right: SparseVectors | DenseVectors | None = None
        self._n_targets = n_targets
        self._capacity = 0  # samples that the buffer holds when it is full
        self._decays = self._rhos = np.zeros(0)
        self._rewards: FloatArray = np.zeros((0, n_targets))
        self._has_head = False
        self._n_buffered: IntArray = np.zeros(1, dtype=np.int64)
        # a replacing trace that :meth:`mend` may have to go back to, and after how many samples it was that
        self._trace_before: tuple[int, FloatArray, FloatArray, FloatArray] | None = None
        self._trace: FloatArray = np.zeros(0)
        self._stamps: FloatArray = np.zeros(0)
        self._clock = np.array([1.0, 1.0])
        self._scratch: FloatArray = np.zeros(0)
        self._core: Core | None = None
        self._chunks: tuple[Basis, Basis] | None = None
        self._growing: tuple[GrowingBasis, GrowingBasis] | None = None
        self._Utb: FloatArray | None = None

    # --- taking samples in ------------------------------------------------------------------------------------------

    @property
    def capacity(self) -> int:
        """Samples in a full buffer; 0 before the first sample."""
        return self._capacity

    @property
    def n_buffered(self) -> int:
        """Samples waiting in the buffer. This number is raised last: an interruption before that leaves no sample."""
        return int(self._n_buffered[0])

    @property
    def n_samples(self) -> int:
        """Samples taken in so far."""
        return self.n_compressed + self.n_buffered

    def append(self, batch: Batch) -> None:
        """Take in a checked batch, compressing whenever the buffer is full."""
        start = 0
        while start < len(batch):
            stop = start + self.make_room(batch, start)
            self._fill(batch.part(start, stop))
            start = stop
            if self.is_full:
                self.compress()

    def make_room(self, batch: Batch, start: int) -> int:
        """How many samples of the batch from ``start`` on can be taken in before the next compression, at least 1."""
        if self.left is None:
            self._start_buffers(batch.part(start, start + 1))
        if self.is_full:  # a compression was interrupted
            self.compress()
        return min(len(batch) - start, self._room(batch, start))

    def append_one(self, sample: Batch) -> None:
        """Take in one checked sample. When the buffer is then full, the caller has to call :meth:`compress`."""
        if self.left is None:
            self._start_buffers(sample)
        self._fill(sample, may_be_retracted=True)

    def retract(self) -> None:
        """Take back the last sample, which came by :meth:`append_one`; in place."""
        self._n_buffered[0] -= 1
        self.mend()

    def mend(self) -> None:
        """Put everything in order after an interruption; samples that were not counted are gone."""
        k = self.n_buffered
        self.__dict__.update(_core=None, _Utb=None, _chunks=None, _growing=None)
        self._scratch = np.zeros(self._scratch.size)
        self.seen.mend()
        for block in (self.left, self.right):
            if block is not None:
                block.mend(k)
        if self.equations is not None:
            self.equations.mend(k)
        if self.n_samples == 0:
            self.__dict__.update(left=None, right=None, _capacity=0)
        if self._trace_before is not None and self._trace_before[0] == self.n_samples:
            trace, stamps, clock = (part.copy() for part in self._trace_before[1:])
            self.__dict__.update(_trace=trace, _stamps=stamps, _clock=clock)

    @property
    def is_full(self) -> bool:
        """Whether the buffer is to be compressed."""
        k = self.n_buffered
        if self.left is not None and k == self._capacity:
            return True
        return self.replacing and bool(
            (_amplification(self._decays[:k] * self._rhos[:k])[-1:] > MAX_AMPLIFICATION).any()
        )

    def _room(self, batch: Batch, start: int) -> int:
        """How many samples of the batch can be taken in before a compression.

        Replacing traces are kept twice, entry by entry and through the buffered vectors. Ratios above 1 multiply the
        rounding difference of the two, so the buffer ends early where they do so by more than ``MAX_AMPLIFICATION``.
        """
        room = self._capacity - self.n_buffered
        if self.replacing:
            new = slice(start, start + room)
            before = self._decays[: self.n_buffered] * self._rhos[: self.n_buffered]
            growth = np.concatenate([before, batch.trace_discounts[new] * self.lambda_ * batch.rhos[new]])
            over = np.flatnonzero(_amplification(growth)[self.n_buffered :] > MAX_AMPLIFICATION)
            room = int(over[0]) + 1 if over.size else room
        return room

    def _start_buffers(self, first: Batch) -> None:
        """Choose dense or sparse storage by the first sample's features, and the buffer's length."""
        csr, rows, _, _ = first.sparse()
        nnz = int(csr[0][rows[0] + 1] - csr[0][rows[0]])
        self._allocate(dense=not self.replacing and nnz >= max(2.0, DENSE_FRACTION * self.n_features))

    def _allocate(self, dense: bool) -> None:
        if dense:
            self.seen.insert(np.arange(self.n_features))
        self.__dict__.update(self._empty_buffers(dense))

    def _empty_buffers(self, dense: bool) -> dict[str, Any]:
        """The attributes that make up an empty buffer."""
        size = self.buffer_size or default_buffer_size(self.rank, dense)
        try:
            blocks = [DenseVectors(size, self.n_features) if dense else SparseVectors(size) for _ in range(2)]
        except MemoryError as error:
            raise CapacityError(
                f"a buffer of {size} samples of {self.n_features} features does not fit into memory: use a smaller "
                "buffer_size or rank"
            ) from error
        return {
            "left": blocks[0],
            "right": blocks[1],
            "_capacity": size,
            "_decays": np.zeros(size),
            "_rhos": np.zeros(size),
            "_rewards": np.zeros((size, self._n_targets)),
        }

    def _fill(self, batch: Batch, *, may_be_retracted: bool = False) -> None:
        assert self.left is not None and self.right is not None
        self._core = None
        if self._rhos.size < self._capacity:
            self._widen(self.left, self.right)
        first = self.n_buffered
        target = slice(first, first + len(batch))
        self._trace_before = None
        decays = batch.trace_discounts * self.lambda_
        self._decays[target], self._rhos[target], self._rewards[target] = decays, batch.rhos, batch.rewards
        if isinstance(self.left, SparseVectors):
            assert isinstance(self.right, SparseVectors)
            self._fill_sparse(batch, decays, self.left, self.right, first == 0 or may_be_retracted)
        else:
            assert isinstance(self.right, DenseVectors)
            X, X_next = batch.dense(self.seen.ids)
            self.left.append(X)
            self.right.append(X - batch.discounts[:, None] * X_next)
        if self.equations is not None:
            second = batch.trace_discounts * self.equations.lambda_
            if first == 0:
                x = self.left.first_vector(len(self.seen))
                self.equations.begin(x, second[0], batch.rhos[0], self._capacity)
            self.equations.fill(first, second)
        if first == 0:
            self._has_head = bool(decays[0] * batch.rhos[0] != 0.0 and self.z.any())
            if self._has_head:
                self._set_head(decays[0], batch.rhos[0])
        self._n_buffered[0] = target.stop

    def _fill_sparse(
        self, batch: Batch, decays: FloatArray, left: SparseVectors, right: SparseVectors, may_be_undone: bool
    ) -> None:
        x, rows, x_next, next_rows = batch.sparse()
        (nnz, new), (next_nnz, next_new) = self.seen.count(x, rows), self.seen.count(x_next, next_rows)
        left.reserve(nnz)
        right.reserve(nnz + next_nnz)
        self.seen.reserve(new + next_new)
        size = self.seen.all_ids.size
        if self.replacing and self._trace.size < size:
            self.__dict__.update(_trace=_grown(self._trace, size), _stamps=_grown(self._stamps, size))
        if self.replacing and may_be_undone:  # the trace is changed in place before the head is made or weights move
            self._trace_before = self.n_samples, self._trace.copy(), self._stamps.copy(), self._clock.copy()
        kernels.append_transitions(
            x,
            rows,
            x_next,
            next_rows,
            batch.discounts,
            decays,
            batch.rhos,
            self.seen.arrays,
            left.arrays,
            right.arrays,
            left.count,
            (self.replacing, self._trace, self._stamps, self._clock),
            self._n_buffered,
        )
        left.count += len(batch)
        right.count += len(batch)

    def _widen(self, left: SparseVectors | DenseVectors, right: SparseVectors | DenseVectors) -> None:
        """Give the buffers of a restored system their full length."""
        left.widen(self._capacity)
        right.widen(self._capacity)
        rewards = np.zeros((self._capacity, self._n_targets))
        rewards[: left.count] = self._rewards[: left.count]
        decays, rhos = _grown(self._decays, self._capacity), _grown(self._rhos, self._capacity)
        self.__dict__.update(_rewards=rewards, _decays=decays, _rhos=rhos)

    def _set_head(self, decay: float, rho: float) -> None:
        """Make the block's first left vector the whole trace: z = ρ (decay z₀ + x)."""
        assert self.left is not None
        n = len(self.seen)
        head = rho * self.left.first_vector(n)
        head[: self.z.size] += rho * decay * self.z
        self.left.set_head(head)

    # --- the small problem ------------------------------------------------------------------------------------------

    def core(self) -> Core:
        """The SVD of the system in coordinates, as of the last sample; computed at most once per sample."""
        if self._core is None:
            with one_thread(self._operations()):
                self._core = self._core_svd(*self._bases())
        return self._core

    def _operations(self) -> float:
        """About how many operations a compression takes."""
        size = self.factors.sigma.size + self.n_buffered
        return 4.0 * len(self.seen) * size * self.rank + 20.0 * size**3

    def _core_svd(self, left: Basis, right: Basis) -> Core:
        k = left.block.count
        weights, decay = self._weights(k)
        norms, traces = left.block.norms[:k, None], (self._decays[:k], self._rhos[:k], self._has_head)
        Z = norms * left.coordinates.T  # coordinates of the vectors, then of the traces
        kernels.traces_from_features(*traces, Z)
        Z *= (weights * right.block.norms[:k])[:, None]
        K = Z.T @ right.coordinates.T
        r = self.factors.sigma.size
        K[range(r), range(r)] += decay * self.factors.sigma
        L, sigma, Rt = leading_svd(K, self.rank)
        on_vectors = np.zeros((k, self._n_targets + 1))  # b's part of the block, and the last trace
        on_vectors[:, :-1] = weights[:, None] * self._rewards[:k]
        on_vectors[k - 1 :, -1] = 1.0
        kernels.traces_from_features_adjoint(*traces, on_vectors)
        on_vectors *= norms
        projection = None
        if self.equations is not None:
            q = self._kept(sigma)
            samples = self._rhos[:k], weights, self._rewards[:k], decay
            projection = self.equations.project(left, right, *samples, L[:, :q], Rt[:q])
        return Core(left, right, L, sigma, Rt, decay, on_vectors[:, :-1], on_vectors[:, -1:], projection)

    def _kept(self, sigma: FloatArray) -> int:
        """How many singular values survive: at most ``rank``, and none that is rounding. (NaN do: they are news.)"""
        if np.isnan(sigma).any():
            return min(self.rank, sigma.size)
        if not (sigma.size and sigma[0] > 0.0):
            return 0
        return min(self.rank, int(np.count_nonzero(sigma > EPS * sigma[0])))

    def _weights(self, k: int) -> tuple[FloatArray, float]:
        """Weight of each of the k buffered samples, and of everything before them."""
        if self.beta is None:
            total = self.n_compressed + k
            return np.full(k, 1.0 / max(total, 1)), self.n_compressed / max(total, 1)
        keep = 1.0 - self.beta
        weights: FloatArray = self.beta * keep ** np.arange(k - 1, -1, -1.0)
        return weights, keep**k

    def _bases(self) -> tuple[Basis, Basis]:
        """Bases of [U, left block] and [V, right block]: a function of the state, whatever was read before."""
        n, U, V = len(self.seen), self.factors.U, self.factors.V
        full = self.is_full  # about to be compressed
        if isinstance(self.left, SparseVectors) and isinstance(self.right, SparseVectors):
            scratch = self.scratch()
            if full:
                self._growing = None  # frees memory
                return sparse_basis(U, self.left, scratch, n), sparse_basis(V, self.right, scratch, n)
            if self._growing is None:
                self._growing = GrowingBasis(U, self.left), GrowingBasis(V, self.right)
            left_steps, right_steps = self._growing
            return left_steps.basis(scratch, n), right_steps.basis(scratch, n)
        assert isinstance(self.left, DenseVectors) and isinstance(self.right, DenseVectors)
        if full:
            size = self.left.count
            return dense_basis(U, self.left, n, chunk=size), dense_basis(V, self.right, n, chunk=size)
        # read in mid-buffer: whole chunks are kept for the next read
        whole = self.left.count - self.left.count % _CHUNK
        left, right = self._chunks or (None, None)
        left = dense_basis(U, self.left, n, chunk=_CHUNK, count=whole, start=left)
        right = dense_basis(V, self.right, n, chunk=_CHUNK, count=whole, start=right)
        self._chunks = left, right
        return (
            dense_basis(U, self.left, n, chunk=_CHUNK, start=left),
            dense_basis(V, self.right, n, chunk=_CHUNK, start=right),
        )

    def scratch(self) -> FloatArray:
        """An array of zeros, one per row; whoever uses it leaves zeros."""
        if self._scratch.size < len(self.seen):
            self._scratch = np.zeros(len(self.seen) + len(self.seen) // 3)
        return self._scratch

    def compress(self) -> None:
        """Fold the buffer into the factors and cut them back to ``rank``. O(n r²)."""
        if self.n_buffered == 0:
            return
        with one_thread(self._operations()):
            self._compress()

    def _compress(self) -> None:
        assert self.left is not None and self.right is not None
        core = self.core()
        n, every = len(self.seen), np.arange(self.left.count)
        b = np.zeros((n, self._n_targets))
        b[: self.b.shape[0]] = core.decay * self.b
        self.left.add_to(b, every, core.b_coefficients)
        z = np.zeros((n, 1))
        if self.replacing:  # the trace kept entry by entry is exact
            alive = self._stamps[:n] == self._clock[0]
            z[alive, 0] = self._clock[1] * self._trace[:n][alive]
        else:
            self.left.add_to(z, every, core.z_coefficients)
        z[np.abs(z) < 1e-40 * np.abs(z).max(initial=0.0)] = 0.0  # spares later steps subnormal numbers
        kept, k = self._kept(core.sigma), self.left.count
        factors, rotations = self.factors.replaced(
            core.left, core.L[:, :kept], core.sigma[:kept], core.right, core.Rt[:kept].T
        )
        changes: dict[str, Any] = {"factors": factors, "b": b, "z": z[:, 0], "n_compressed": self.n_compressed + k}
        if self.equations is not None and core.projection is not None:
            G = core.projection.G
            for on_left, on_right in rotations:
                G = on_left @ G @ on_right.T
            samples = self._rhos[:k], self._weights(k)[0], self._rewards[:k], core.decay
            changes["equations"] = self.equations.compressed(self.left, *samples, n, G)
        if self._should_switch():
            dense = isinstance(self.left, SparseVectors)
            if dense:
                self.seen.insert(np.arange(self.n_features))
            changes |= self._empty_buffers(dense)
        else:
            changes |= {"left": self.left.emptied(), "right": self.right.emptied()}
        changes |= {"_n_buffered": np.zeros(1, dtype=np.int64), "_trace_before": None}
        self.__dict__.update(changes, _core=None, _Utb=None, _chunks=None, _growing=None)  # all of it or nothing

    def _should_switch(self) -> bool:
        """Whether the vectors are better stored the other way: dense ones as rows, sparse ones as lists of entries."""
        if isinstance(self.left, SparseVectors):
            nnz = float(self.left.indptr[self.left.count])
            return not self.replacing and nnz >= DENSE_FRACTION * self.n_features * self.left.count
        assert self.left is not None
        nnz = float(np.count_nonzero(self.left.matrix[: self.left.count]))
        return nnz < 0.5 * DENSE_FRACTION * self.n_features * self.left.count

    # --- reading ----------------------------------------------------------------------------------------------------

    def solve(self, rcond: float) -> Solution:
        """Coordinates of w = A⁺ b with at most ``rank`` singular values inverted. O((r + k)³)."""
        core = self.core()
        if core.projection is not None:
            y: FloatArray = core.Rt[: core.projection.h.shape[0]].T @ core.projection.solve(rcond)
            return Solution(core.right, y, *core.right.split(y))
        if self._Utb is None:
            self._Utb = self.factors.U.T @ self.b[: self.factors.U.shape[0]]
        assert self.left is not None
        b = core.decay * core.left.assemble(self._Utb, self.left.products("b", self.b), self.b)
        b += core.left.coordinates @ core.b_coefficients
        inverse = inverse_factors(core.sigma, rcond=rcond, rank=self.rank)
        y = core.Rt.T @ (inverse[:, None] * (core.L.T @ b))
        return Solution(core.right, y, *core.right.split(y))

    def step(self, rcond: float) -> FloatArray:
        """Coordinates (size of the right basis,) of A⁺z for the trace z of the last sample."""
        core = self.core()
        inverse = inverse_factors(core.sigma, rcond=rcond, rank=self.rank)
        z = core.left.coordinates @ core.z_coefficients[:, 0]
        y: FloatArray = core.Rt.T @ (inverse * (core.L.T @ z))
        return y

    def predict(self, solution: Solution, ids: IntArray, values: FloatArray) -> FloatArray:
        """Bᵀx for one sparse x, (m,), in O(nnz (r + k)), without forming w."""
        rows = self.seen.find(ids)
        V, right = self.factors.V, solution.right
        coordinates = np.zeros(V.shape[1])
        kernels.gather(rows, values, V, V.shape[0], V.shape[1], coordinates)
        out: FloatArray = coordinates @ solution.on_V
        if isinstance(right.block, SparseVectors) and right.picked.size:
            out += right.block.overlaps(right.picked, rows, values, self.scratch()) @ solution.on_D
        if right.E.shape[1]:
            coordinates = np.zeros(right.E.shape[1])
            kernels.gather(rows, values, right.E, right.E.shape[0], right.E.shape[1], coordinates)
            out += coordinates @ solution.on_E
        return out

    # --- saving -----------------------------------------------------------------------------------------------------

    def state(self) -> State:
        """What :meth:`restore` takes: no caches, no room for more."""
        k, n = self.n_buffered, len(self.seen)
        state = {
            "seen": self.seen.state(),
            "factors": self.factors.state(),
            "n_compressed": self.n_compressed,
            "n_buffered": k,
            "b": self.b,
            "z": self.z,
            "decays": self._decays[:k],
            "rhos": self._rhos[:k],
            "rewards": self._rewards[:k],
            "storage": "none",
        }
        if self.left is not None and self.right is not None:
            state["storage"] = "sparse" if isinstance(self.left, SparseVectors) else "dense"
            state["has_head"] = self._has_head and k > 0
            state["left"], state["right"] = self.left.state(), self.right.state()
        if self.equations is not None:
            state["second"] = self.equations.state(k)
        if self.replacing:
            alive = self._stamps[:n] == self._clock[0]
            trace = np.zeros(n)  # longer than what there is if features came with weights to start from
            trace[: alive.size] = np.where(alive, self._trace[:n], 0.0) + 0.0  # no −0.0
            state["trace"], state["trace_scale"] = trace, float(self._clock[1])
        return state

    def restore(self, saved: Saved) -> None:
        """Take over a saved state, if it can be one of these parameters; only of fresh objects."""
        self.seen.restore(saved.part("seen"), self.n_features)
        n = len(self.seen)
        self.factors.restore(saved.part("factors"), n)
        rows = self.factors.U.shape[0]
        self.n_compressed = saved.integer("n_compressed", low=1 if rows else 0)
        self.b = saved.floats("b", rows, self._n_targets)
        self.z = saved.floats("z", rows)
        k = saved.integer("n_buffered")
        self._n_buffered[0] = k
        self._decays = saved.floats("decays", k, low=0.0, high=1.0)
        self._rhos = saved.floats("rhos", k, low=0.0, high=MAX_MAGNITUDE)
        self._rewards = saved.floats("rewards", k, self._n_targets, low=-MAX_MAGNITUDE, high=MAX_MAGNITUDE)
        self._restore_blocks(saved, k, n)
        if self.equations is not None:
            self.equations.restore(saved.part("second"), k, self.factors.sigma.size, rows, n)
        if self.replacing:
            self._trace = saved.floats("trace", n)
            self._stamps = (self._trace != 0.0).astype(np.float64)
            self._clock = np.array([1.0, saved.real("trace_scale", low=1e-100, high=1e100)])

    def _restore_blocks(self, saved: Saved, k: int, n: int) -> None:
        storage = saved.word("storage", ("none", "sparse", "dense"))
        dense = storage == "dense"
        if storage == "none":
            if k or self.n_compressed:
                raise saved.error("storage", f"is none with {k + self.n_compressed} samples seen")
            return
        if k + self.n_compressed == 0 or (dense and (self.replacing or n != self.n_features)):
            raise saved.error("storage", f"is {storage} with {n} of {self.n_features} features seen")
        self._capacity = self.buffer_size or default_buffer_size(self.rank, dense)
        if k > self._capacity:
            raise saved.error("n_buffered", f"is {k} where a buffer holds {self._capacity}")
        self._has_head = saved.flag("has_head")
        if self._has_head and not (k and self.n_compressed):
            raise saved.error("has_head", "is true where no trace reaches into the buffer")
        if dense:
            self.left, self.right = (
                DenseVectors.restore(saved.part("left"), k, n),
                DenseVectors.restore(saved.part("right"), k, n),
            )
        else:
            self.left = SparseVectors.restore(saved.part("left"), k, n, has_head=self._has_head)
            self.right = SparseVectors.restore(saved.part("right"), k, n)


def _grown(array: FloatArray, size: int) -> FloatArray:
    grown = np.zeros(size)
    grown[: array.size] = array
    return grown


def _amplification(growth: FloatArray) -> FloatArray:
    """q_j = g_j max(1, q_{j-1}): how far an error made at any step has been multiplied by step j."""
    q = np.zeros(growth.size)
    if (growth > 1.0).any():
        last = 0.0
        for j, g in enumerate(growth):
            last = q[j] = g * max(1.0, last)
    return q
