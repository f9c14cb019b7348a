"""The LSTD system A w = b in factored form, with samples folded in a buffer at a time: Algorithm 1 of the paper.

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

from tlstd.core.arrays import FloatArray
from tlstd.core.file_format import Saved, State
from tlstd.core.svd import EPS, inverse_factors, leading_svd
from tlstd.core.threads import one_thread
from tlstd.data.batch import Batch
from tlstd.data.feature_index import FeatureIndex, Lookup
from tlstd.data.kernels import sparse as kernels
from tlstd.data.transitions import Transition
from tlstd.truncated.basis import Basis
from tlstd.truncated.buffer import Buffer, BufferFactory
from tlstd.truncated.factors import Factors
from tlstd.truncated.pending_vectors import SparseVectors
from tlstd.truncated.subspace_lambda import ProjectedEquations, Projection
from tlstd.truncated.traces import AccumulatingTrace, ReplacingTrace


@dataclass(frozen=True, slots=True, eq=False)
class Core:
    """The small matrix K of Algorithms 2 and 3, in the coordinates of [U, Q_Z] and [V, Q_D], by its SVD.

    The system as of now: A = left · L diag(sigma) Rt · rightᵀ, and b and z on the left unit vectors."""

    left: Basis
    right: Basis
    L: FloatArray
    sigma: FloatArray
    Rt: FloatArray
    rank: int
    weights: FloatArray  # (k,), of the buffered samples
    decay: float  # weight of what was before them
    b_coefficients: FloatArray  # (k, m), of b - decay·b₀
    z_coefficients: FloatArray  # (k, 1), of the last trace
    projection: Projection | None  # the equations of another λ on the leading singular vectors

    def truncated(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """L, σ and R cut to the rank: Algorithm 3, line 21."""
        kept = n_kept(self.sigma, self.rank)
        return self.L[:, :kept], self.sigma[:kept], self.Rt[:kept].T

    def apply_inverse(self, b: FloatArray, rcond: float) -> FloatArray:
        """R Σ⁺ Lᵀ b for b (size, m) in coordinates, with at most ``rank`` singular values inverted: Algorithm 4."""
        inverse = inverse_factors(self.sigma, rcond=rcond, rank=self.rank)  # lines 4 to 12
        y: FloatArray = self.Rt.T @ (inverse[:, None] * (self.L.T @ b))  # lines 3 and 13, U and V left out
        return y

    def step(self, rcond: float) -> FloatArray:
        """Coordinates (size of the right basis,) of A⁺z for the trace z of the last sample."""
        return self.apply_inverse(self.left.coordinates @ self.z_coefficients, rcond)[:, 0]


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """w = V on_V + (right vectors) on_D + E on_E, without w having been formed."""

    right: Basis
    coordinates: FloatArray
    on_V: FloatArray
    on_D: FloatArray
    on_E: FloatArray

    def weights(self) -> FloatArray:
        """w (n, m)."""
        return self.right.expand(self.coordinates)

    def value(self, x: Lookup, scratch: FloatArray) -> FloatArray:
        """wᵀx (m,) of a sparse x by compiled sums; O(nnz (r + k)). ``scratch`` is and stays zero."""
        right, out = self.right, np.zeros(self.on_V.shape[1])
        kernels.add_factored(*x, right.U, self.on_V, out)
        if right.picked.size and isinstance(right.block, SparseVectors):
            right.block.add_value(x, right.picked, self.on_D, scratch, out)
        if right.E.shape[1]:
            kernels.add_factored(*x, right.E, self.on_E, out)
        return out


class TruncatedSystem:
    """A, b and the trace z of LSTD(λ), A cut back to rank ``rank`` at the end of every buffer.

    Parameters
    ----------
    n_features, rank, lambda_, n_targets : as in ``TLSTD``
    buffer_size : int or None for :func:`~tlstd.truncated.buffer.default_buffer_size`
    beta : float or None
        Constant forgetting factor; None for the running average.
    replacing : bool
        Replacing instead of accumulating traces.
    equations_lambda : float or None
        λ of other equations, projected onto these factors, that are solved instead; see ``subspace_lambda``.
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
        self.beta, self.n_targets = beta, n_targets
        self.trace = ReplacingTrace() if replacing else AccumulatingTrace()
        self._empty = BufferFactory(n_features, n_targets, rank, buffer_size, may_be_dense=self.trace.may_be_dense)
        self.equations = None if equations_lambda is None else ProjectedEquations(equations_lambda, n_targets)
        # Algorithm 1: U ← [], V ← [], Σ ← 0, b ← 0, z ← 0, i ← 0
        self.seen = FeatureIndex(n_features)
        self.factors = Factors(rank)
        self.b: FloatArray = np.zeros((0, n_targets))
        self.z: FloatArray = np.zeros(0)
        self.n_compressed = 0  # samples already in the factors
        self.buffer = self._empty.nothing()
        self._core: Core | None = None
        self._Utb: FloatArray | None = None

    # --- taking samples in ------------------------------------------------------------------------------------------

    @property
    def n_samples(self) -> int:
        """Samples taken in so far."""
        return self.n_compressed + self.buffer.count

    @property
    def is_full(self) -> bool:
        """Whether the buffer is to be compressed."""
        return 0 < self.buffer.capacity == self.buffer.count or self.trace.ends(self.buffer)

    def append(self, batch: Batch) -> None:
        """Take in a checked batch, compressing whenever the buffer is full."""
        start, n = 0, batch.rows.size
        while start < n:
            stop = start + self.make_room(batch, start)
            self._fill(batch.part(start, stop))
            start = stop
            if self.is_full:
                self.compress()

    def make_room(self, batch: Batch, start: int) -> int:
        """How many samples of the batch from ``start`` on can be taken in before the next compression, at least 1."""
        if self.buffer.capacity == 0:
            self.buffer = self._empty.first(batch.part(start, start + 1), self.seen)
        if self.is_full:  # a compression was interrupted
            self.compress()
        return min(batch.rows.size - start, self.trace.room(self.buffer, batch, start, self.lambda_))

    def take(self, t: Transition, bound: FloatArray) -> bool:
        """Take in one transition with sparse vectors and one reward by one compiled call, if it is an everyday one.

        ``bound`` (1,) is that of the trace's length, and follows. False, with nothing changed, at both ends of a buffer
        and where :meth:`append` has to make room.
        """
        if self.equations is not None or type(self.trace) is not AccumulatingTrace:
            return False
        taken = self.buffer.take(t, self.lambda_, self.seen, bound)
        if taken:
            self._core = None
        return taken

    def append_one(self, sample: Batch) -> None:
        """Take in one checked sample. When the buffer is then full, the caller has to call :meth:`compress`."""
        if self.buffer.capacity == 0:
            self.buffer = self._empty.first(sample, self.seen)
        self._fill(sample, may_be_retracted=True)

    def _fill(self, batch: Batch, *, may_be_retracted: bool = False) -> None:
        """Algorithm 1: z ← γλ z + x, d ← x - γx′, both into the buffer, i ← i + 1."""
        self._core = None
        buffer, seen, first = self.buffer, self.seen, self.buffer.count
        undo_to = self.n_compressed + first if first == 0 or may_be_retracted else None
        buffer.append(batch, batch.trace_discounts * self.lambda_, seen, self.trace, undo_to)
        if self.equations is not None:
            self.equations.append(batch, buffer, len(seen))
        if first == 0:
            buffer.begin(self.z, len(seen))
        buffer.count = first + batch.rows.size

    def retract(self) -> None:
        """Take back the last sample, which came by :meth:`append_one`; in place."""
        self.mend(self.buffer.count - 1)

    def mend(self, n_buffered: int | None = None) -> None:
        """Put everything in order after an interruption; samples that were not counted are gone."""
        self.__dict__.update(_core=None, _Utb=None)
        self.seen.mend()
        self.buffer.mend(n_buffered)
        if self.equations is not None:
            self.equations.mend(self.buffer.count)
        if self.n_samples == 0:
            self.buffer = self._empty.nothing()
        self.trace.mend(self.n_samples)

    # --- update-svd -------------------------------------------------------------------------------------------------

    def core(self) -> Core:
        """The SVD of the system in coordinates, as of the last sample; computed at most once per sample."""
        if self._core is None:
            with one_thread(self.operations()):
                U, sigma, V = self.factors.U, self.factors.sigma, self.factors.V
                left, right = self.buffer.bases(U, V, len(self.seen), last=self.is_full)  # Algorithm 2, lines 1 and 2
                weights = sample_weights(self.n_compressed, left.coordinates.shape[1], self.beta)
                self._core = core_svd(left, right, self.buffer, sigma, *weights, self.rank, self.equations)
        return self._core

    def operations(self) -> float:
        """About how many operations a compression takes."""
        size = self.factors.sigma.size + self.buffer.count
        return 4.0 * len(self.seen) * size * self.rank + 20.0 * size**3

    def compress(self) -> None:
        """Fold the buffer into the factors and cut them back to ``rank``. O(n r²)."""
        buffer, equations, n = self.buffer, self.equations, len(self.seen)
        if not buffer.count:
            return
        with one_thread(self.operations()):
            core, b = self.core(), np.zeros((n, self.n_targets))
            b[: self.b.shape[0]] = core.decay * self.b  # Algorithm 1: b ← (1-β) b + β z r
            buffer.left.add_to(b, np.arange(buffer.count), core.b_coefficients)
            z = self.trace.after(buffer.left, core.z_coefficients, n)
            z[np.abs(z) < 1e-40 * np.abs(z).max(initial=0.0)] = 0.0  # spares later steps subnormal numbers
            factors, rotations = self.factors.replaced(core.left, core.right, *core.truncated())
            if equations is not None and core.projection is not None:
                G = core.projection.rotated(rotations)
                equations = equations.compressed(buffer, core.weights, core.decay, n, G)
        empty = self._empty.after(buffer, self.seen)
        changes: dict[str, Any] = {"factors": factors, "b": b, "z": z[:, 0], "equations": equations, "buffer": empty}
        changes |= {"n_compressed": self.n_compressed + buffer.count, "_core": None, "_Utb": None}
        self.__dict__.update(changes)  # all of it or nothing

    # --- reading ----------------------------------------------------------------------------------------------------

    def solve(self, rcond: float) -> Solution:
        """Coordinates of w = A⁺ b with at most ``rank`` singular values inverted. O((r + k)³)."""
        core = self.core()
        if core.projection is not None:
            y: FloatArray = core.Rt[: core.projection.h.shape[0]].T @ core.projection.solve(rcond)
        else:
            if self._Utb is None:
                self._Utb = self.factors.U.T @ self.b[: self.factors.U.shape[0]]
            b = core.decay * core.left.assemble(self._Utb, self.buffer.left.products("b", self.b), self.b)
            y = core.apply_inverse(b + core.left.coordinates @ core.b_coefficients, rcond)
        return Solution(core.right, y, *core.right.split(y))

    # --- saving -----------------------------------------------------------------------------------------------------

    def state(self) -> State:
        """What :meth:`restore` takes: no caches, no room for more."""
        k = self.buffer.count
        return {
            "seen": self.seen.state(),
            "factors": self.factors.state(),
            "n_compressed": self.n_compressed,
            "n_buffered": k,
            "b": self.b,
            "z": self.z,
            **self.buffer.state(),
            **({} if self.equations is None else {"second": self.equations.state(k)}),
            **self.trace.state(len(self.seen)),
            **self._empty.state(),
        }

    def restore(self, saved: Saved) -> None:
        """Take over a saved state, if it can be one of these parameters; only of fresh objects."""
        self.seen.restore(saved.part("seen"))
        n = len(self.seen)
        self.factors.restore(saved.part("factors"), n)
        rows = self.factors.U.shape[0]
        self.n_compressed = saved.integer("n_compressed", low=1 if rows else 0)
        self.b = saved.floats("b", rows, self.n_targets)
        self.z = saved.floats("z", rows)
        self.buffer = self._empty.restored(saved, n, self.n_compressed)
        if self.equations is not None:
            self.equations.restore(saved.part("second"), self.buffer.count, self.factors.sigma.size, rows, n)
        self.trace.restore(saved, n)


def core_svd(
    left: Basis,
    right: Basis,
    buffer: Buffer,
    sigma: FloatArray,
    weights: FloatArray,
    decay: float,
    rank: int,
    equations: ProjectedEquations | None,
) -> Core:
    """K = decay · diag(σ) ⊕ 0 + Σ ω_i z_i d_iᵀ and the leading ``rank`` triplets of its SVD. O((r + k)³)."""
    k, r = weights.size, sigma.size
    Z = buffer.traces(left)  # [UᵀZ; R_Z]ᵀ
    Z *= (weights * buffer.right.norms[:k])[:, None]
    K = Z.T @ right.coordinates.T  # Algorithm 2, line 3; right.coordinates are [VᵀD; R_D] of unit vectors
    K.flat[: r * (K.shape[1] + 1) : K.shape[1] + 1] += decay * sigma  # on the diagonal
    L, sigma, Rt = leading_svd(K, rank)  # line 4
    on_traces = np.zeros((k, buffer.rewards.shape[1] + 1))
    on_traces[:, :-1] = weights[:, None] * buffer.rewards[:k]  # Algorithm 1: b ← (1-β) b + β z r
    on_traces[k - 1 :, -1] = 1.0
    on_vectors = buffer.on_vectors(on_traces)
    projection = None
    if equations is not None:
        q = n_kept(sigma, rank)
        projection = equations.project(left, right, buffer, weights, decay, L[:, :q], Rt[:q])
    return Core(left, right, L, sigma, Rt, rank, weights, decay, on_vectors[:, :-1], on_vectors[:, -1:], projection)


def sample_weights(n_before: int, k: int, beta: float | None) -> tuple[FloatArray, float]:
    """Weight of each of k samples, and of all ``n_before`` before them: A ← (1-β) A + β z dᵀ, k times (section 4).

    β = 1/(t+1), the running average, if it is None (``docs/numerics.md``, 1).

    >>> sample_weights(6, 2, None), sample_weights(6, 2, 0.5)
    ((array([0.125, 0.125]), 0.75), (array([0.25, 0.5 ]), 0.25))
    """
    if beta is None:
        total = n_before + k
        return np.full(k, 1.0 / max(total, 1)), n_before / max(total, 1)
    keep = 1.0 - beta
    weights: FloatArray = beta * keep ** np.arange(k - 1, -1, -1.0)
    return weights, keep**k


def n_kept(sigma: FloatArray, rank: int) -> int:
    """How many singular values survive: at most ``rank``, and none that is rounding. (NaN do: they are news.)"""
    if np.isnan(sigma).any():
        return min(rank, sigma.size)
    if not (sigma.size and sigma[0] > 0.0):
        return 0
    return min(rank, int(np.count_nonzero(sigma > EPS * sigma[0])))
