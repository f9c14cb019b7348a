"""The LSTD matrix A and right-hand side b of stored samples, as an operator: nothing of size n × n is ever formed."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlstd.errors import InvalidInputError
from tlstd.kernels import krylov as kernels
from tlstd.linalg.chunk_products import gather, sample_values, scatter
from tlstd.linalg.moments import ridge_diagonal
from tlstd.linalg.sample_moments import constant_features, mean_square
from tlstd.linalg.sample_weights import HeldOut, Masks, SampleWeights
from tlstd.linalg.samples import Samples
from tlstd.linalg.threads import one_thread
from tlstd.types import FloatArray


class SampleOperator:
    """A = Σ ω_t z_t d_tᵀ and b = Σ ω_t z_t r_{t+1} over the features seen, as products (see the kernels' header).

    The weights ω_t are 1/T, or β(1-β)^{T-1-t}. It is a snapshot: later samples do not change it. Sums are taken in a
    fixed order, so that a product is a function of the samples to the bit. What is kept of samples that were folded
    (``samples.old``) is added with the weight that these have now, in every fold's system.

    A product with k vectors takes one pass over the entries of the samples, O(k·entries), and memory O(k·(n + N)), for
    dense rows O(k·n); with m vectors in the basis of an old part O(k·m·n) time more.

    Parameters
    ----------
    samples : Samples
    lambda_ : float
    beta : float, optional
    folds : HeldOut, optional
        Makes the products of several systems in one pass: ``systems`` says for each column of a product in which
        fold's system it is taken; -1 is the system in which nothing is held out (but traces are cut). Each is
        scaled so that its samples weigh as much as all of them, those in the old part included.
    shift : (n,) array, optional
        A diagonal that is added to A, for ridge regression.

    Example
    -------
    >>> from tlstd import LSTD, KrylovLSTD, boyan_chain
    >>> steps = boyan_chain().sample(50, np.random.default_rng(0))
    >>> model, lstd = KrylovLSTD(4, lambda_=0.5, dimension=4), LSTD(4, lambda_=0.5)
    >>> model.update_many(steps), lstd.update_many(steps)
    (None, None)
    >>> A, (ids, M, b) = model.operator(), lstd.system()
    >>> v = np.ones(4)
    >>> np.abs(A.matvec(v) - M @ v).max() < 1e-15, np.abs(A.rmatvec(v) - M.T @ v).max() < 1e-15
    (np.True_, np.True_)
    """

    def __init__(
        self,
        samples: Samples,
        *,
        lambda_: float,
        beta: float | None = None,
        n_targets: int = 1,
        folds: HeldOut | None = None,
        shift: FloatArray | None = None,
    ) -> None:
        self.samples, self.lambda_, self.beta, self.n_targets = samples, lambda_, beta, n_targets
        self.shift = shift
        self._ones = np.ones(min(samples.chunk_size, samples.n_kept))
        self.weights = SampleWeights(samples, beta, folds)

    def shifted(self, shift: FloatArray) -> SampleOperator:
        """The same with another diagonal ``shift``."""
        other = copy(self)
        other.shift = shift
        return other

    def held_out(self, folds: HeldOut) -> SampleOperator:
        """The systems of several folds, with the same diagonal."""
        other = copy(self)
        other.weights = SampleWeights(self.samples, self.beta, folds)
        return other

    @property
    def n(self) -> int:
        """Number of features seen."""
        return self.samples.n

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        return self.n, self.n

    # --- products ---------------------------------------------------------------------------------------------------

    def matvec(
        self, V: FloatArray, *, systems: NDArray[np.integer[Any]] | None = None, values: FloatArray | None = None
    ) -> FloatArray:
        """A V for a vector (n,) or the columns of (n, k). x_tᵀV goes to ``values`` (N, k), at no further cost."""
        columns = self._columns(V)
        k = columns.shape[1]
        out, carry = np.zeros((self.n, k)), np.zeros(k)
        masks = self.weights.masks(systems, k)
        n_chunks = len(self.samples.chunks)
        # Dense rows stay in a cache from their gather to their scatter. Sparse ones do not, but V does while all are
        # gathered, and then the result while all are scattered.
        together = 1 if self.samples.is_dense else max(1, n_chunks)
        with self._threads():
            for stop in range(n_chunks, 0, -together):
                group = range(max(0, stop - together), stop)
                brought = {c: self._differences(c, columns, values) for c in group}
                for c in reversed(group):
                    self._add_traces(c, brought[c], masks, carry, out)
            self._add_border(carry, out)
            self._add_rest(columns, masks, out)
        return out[:, 0] if V.ndim == 1 else out

    def values(self, V: FloatArray) -> tuple[FloatArray, FloatArray]:
        """x_tᵀV and x_{t+1}ᵀV (0 after a termination) of every kept sample, (N, k) each, for V (n, k)."""
        with self._threads():
            return sample_values(self.samples, self._columns(V))

    def rmatvec(self, H: FloatArray, *, systems: NDArray[np.integer[Any]] | None = None) -> FloatArray:
        """Aᵀ H for a vector (n,) or the columns of (n, k)."""
        columns = self._columns(H)
        k = columns.shape[1]
        out, border = np.zeros((self.n, k)), self.samples.border
        masks = self.weights.masks(systems, k)
        with self._threads():
            carry = np.zeros(k)
            if border.size:
                with one_thread():
                    carry += border @ columns[: border.size]
            for c, chunk in enumerate(self.samples.chunks):
                count = self.samples.count(c)
                P = gather(chunk, count, columns)
                C = np.zeros_like(P)
                rhos = self._ones if chunk.rhos is None else chunk.rhos
                kernels.follow_forward(
                    *(P, chunk.row[:count], chunk.next_row, chunk.discounts, chunk.trace_discounts, rhos),
                    *(self.weights.of_chunk[c], self.lambda_, self.weights.part(masks, c, count), carry, C),
                )
                scatter(chunk, np.arange(P.shape[0], dtype=np.int32), C, out)
            self._add_rest(columns, masks, out, adjoint=True)
        return out[:, 0] if H.ndim == 1 else out

    def b(self, *, systems: NDArray[np.integer[Any]] | None = None) -> FloatArray:
        """The right-hand sides (n, n_targets); with ``systems`` (n, n_targets·k), those of one target together."""
        copies = 1 if systems is None else systems.size
        k = self.n_targets * copies
        masks = self.weights.masks(None if systems is None else np.tile(systems, self.n_targets), k)
        kept = [chunk.rewards[: self.samples.count(c)] for c, chunk in enumerate(self.samples.chunks)]
        rewards = (np.repeat(part, copies, axis=1) for part in reversed(kept))
        out = self._weighted_traces(rewards, k, masks)
        old = self.samples.old
        if old is not None:
            out[: old.b.shape[0]] += self.weights.old_scales(masks) * np.repeat(old.b, copies, axis=1)
        return out

    def sum_of_traces(self) -> FloatArray:
        """Σ ω_t z_t over the kept samples, (n,): b of a reward that is always 1."""
        ones = (self._ones[:, None] for _ in self.samples.chunks)
        return self._weighted_traces(ones, 1, self.weights.masks(None, 1))[:, 0]

    def _weighted_traces(self, factors: Iterable[FloatArray], k: int, masks: Masks) -> FloatArray:
        """Σ ω_t z_t times row t of the factors (k columns), which are given chunk by chunk, the last one first."""
        out, carry = np.zeros((self.n, k)), np.zeros(k)
        with self._threads():
            for c, factor in zip(range(len(self.samples.chunks) - 1, -1, -1), factors, strict=True):
                self._add_traces(c, factor[: self.samples.count(c)].copy(), masks, carry, out)
            self._add_border(carry, out)
        return out

    def toarray(self) -> FloatArray:
        """A as an (n, n) array; for small n."""
        return self.matvec(np.eye(self.n))

    def _threads(self) -> AbstractContextManager[Any]:
        """One BLAS thread, if BLAS is used at all."""
        return one_thread() if self.samples.is_dense or self.samples.old is not None else nullcontext()

    # --- their parts ------------------------------------------------------------------------------------------------

    def _columns(self, V: FloatArray) -> FloatArray:
        V = np.asarray(V, dtype=np.float64)
        if V.ndim not in (1, 2) or V.shape[0] != self.n:
            raise InvalidInputError(f"the vectors have shape {V.shape}: they need {self.n} rows, one a feature seen")
        return np.ascontiguousarray(V[:, None] if V.ndim == 1 else V)

    def _differences(self, c: int, V: FloatArray, values: FloatArray | None) -> FloatArray:
        """d_tᵀV of the samples of chunk ``c``; x_tᵀV goes to ``values`` if there are any."""
        chunk, count, start = self.samples.chunks[c], self.samples.count(c), c * self.samples.chunk_size
        P = gather(chunk, count, V)
        if values is not None:
            values[start : start + count] = P[chunk.row[:count]]
        D = np.empty((count, V.shape[1]))
        kernels.differences(P, chunk.row[:count], chunk.next_row, chunk.discounts, D)
        return D

    def _add_traces(self, c: int, D: FloatArray, masks: Masks, carry: FloatArray, out: FloatArray) -> None:
        """Add Σ ω_t z_t D[t] of the samples of chunk ``c``, in place (D too); ``carry`` is of the chunks behind it."""
        chunk, count = self.samples.chunks[c], D.shape[0]
        rhos = self._ones if chunk.rhos is None else chunk.rhos
        part = self.weights.part(masks, c, count)
        kernels.follow_back(D, chunk.trace_discounts, rhos, self.weights.of_chunk[c], self.lambda_, part, carry)
        scatter(chunk, chunk.row[:count], D, out)

    def _add_border(self, carry: FloatArray, out: FloatArray) -> None:
        """What the trace at the border adds: z₀ g λ s of the first kept sample."""
        border = self.samples.border
        if border.size:
            out[: border.size] += border[:, None] * carry

    def _add_rest(self, V: FloatArray, masks: Masks, out: FloatArray, *, adjoint: bool = False) -> None:
        """Add what samples that were folded and the diagonal contribute to the product with V; in place."""
        old = self.samples.old
        if old is not None:
            rows = old.right.shape[0]
            out[:rows] += self.weights.old_scales(masks) * old.product(V[:rows], adjoint=adjoint)
        if self.shift is not None:
            out += self.shift[:, None] * V


def with_ridge(operator: SampleOperator, ridge: float) -> SampleOperator:
    """The operator A + ηD, η = ``ridge`` times the mean ‖x‖², D the identity but 0 for features that are constant."""
    if ridge == 0.0:
        return operator
    is_constant = constant_features(operator.samples) != 0.0
    return operator.shifted(ridge_diagonal(ridge, mean_square(operator.samples, operator.weights), is_constant))
