"""The LSTD matrix A and right-hand side b of stored samples, as an operator: nothing of size n × n is ever formed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from dataclasses import dataclass
from functools import cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tlstd.classic.ridge import ridge_diagonal
from tlstd.core.arrays import FloatArray
from tlstd.core.threads import one_thread
from tlstd.data.kernels.sparse import row_squares
from tlstd.errors import InvalidInputError
from tlstd.krylov.arnoldi import Arnoldi
from tlstd.krylov.kernels import products as kernels
from tlstd.krylov.samples import Chunk, Samples

Masks = tuple[NDArray[np.int16], NDArray[np.int16], FloatArray, NDArray[np.bool_]]


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """Which samples are held out from which systems, and where traces are cut.

    Parameters
    ----------
    fold : (N,) integers
        The number >= 0 of each kept sample's fold. In the system of fold f the samples of fold f weigh nothing.
    cut : (N,) bool
        Where the trace does not carry over from the sample before, in all systems.
    """

    fold: NDArray[np.integer[Any]]
    cut: NDArray[np.bool_]


class SampleWeights:
    """ω_t of the samples and of the old part; and, with folds, which weigh nothing in which system.

    Parameters
    ----------
    samples, beta, folds : as in :class:`~tlstd.krylov.operator.SampleOperator`

    Attributes
    ----------
    of_chunk : list of arrays
        ω_t of the samples, chunk by chunk: 1/T, or β(1-β)^{T-1-t}.
    old_weight : float
        The sum of the weights of the samples that were folded.
    """

    def __init__(self, samples: Samples, beta: float | None, folds: HeldOut | None) -> None:
        self.samples, self.beta, self.folds = samples, beta, folds
        self._old_scale, self.old_weight = self._weigh_old()
        size = min(samples.chunk_size, samples.n_kept)
        self.of_chunk = self._all_weights(np.full(size, 1.0 / max(1, samples.n_samples)))
        if folds is not None:
            self._fold = folds.fold.astype(np.int16)
            self._fold_weights = self._weigh_folds(folds)

    def _all_weights(self, equal: FloatArray) -> list[FloatArray]:
        """ω_t of the samples, chunk by chunk; ``equal`` are those of a whole chunk without forgetting."""
        samples = self.samples
        counts = [samples.count(c) for c in range(len(samples.chunks))]
        if self.beta is None:
            return [equal[:count] for count in counts]
        oldest = [samples.n_kept - 1 - c * samples.chunk_size for c in range(len(counts))]
        ages = (first - np.arange(float(count)) for first, count in zip(oldest, counts, strict=True))
        return [self.beta * (1.0 - self.beta) ** age for age in ages]

    def _weigh_old(self) -> tuple[float, float]:
        """By what an old part is multiplied, and the sum of its samples' weights."""
        samples, beta = self.samples, self.beta
        if samples.old is None:
            return 0.0, 0.0
        if beta is None:
            return samples.n_left / samples.n_samples, samples.n_left / samples.n_samples
        scale = (1.0 - beta) ** samples.n_kept
        return scale, scale - (1.0 - beta) ** samples.n_samples

    def _weigh_folds(self, folds: HeldOut) -> FloatArray:
        """Σ ω_t of each fold."""
        n_kept = self.samples.n_kept
        if folds.fold.shape != (n_kept,) or folds.cut.shape != (n_kept,) or (n_kept and folds.fold.min() < 0):
            raise InvalidInputError(
                f"folds have shapes {folds.fold.shape} and {folds.cut.shape}: they need one number >= 0 for each of "
                f"the {n_kept} samples kept"
            )
        weights = np.concatenate([np.zeros(0), *self.of_chunk])
        return np.bincount(folds.fold, weights=weights).astype(np.float64, copy=False)

    def masks(self, systems: NDArray[np.integer[Any]] | None, k: int) -> Masks:
        """What the kernels take, for all samples."""
        no_fold, no_cut = np.zeros(0, dtype=np.int16), np.zeros(0, dtype=np.bool_)
        if (systems is None) != (self.folds is None) or (systems is not None and len(systems) != k):
            raise InvalidInputError(
                f"systems is {systems} with {k} column(s): name one fold a column if, and only if, there are folds"
            )
        if self.folds is None or systems is None:
            return no_fold, no_fold, np.zeros(0), no_cut
        numbers = np.asarray(systems, dtype=np.int16)
        total = self._fold_weights.sum() + self.old_weight
        held_out = np.array([self._fold_weights[f] if f >= 0 else 0.0 for f in numbers])
        scales = total / np.where(held_out < total, total - held_out, total)
        return self._fold, numbers, scales, self.folds.cut

    def part(self, masks: Masks, c: int, count: int) -> Masks:
        """The masks of chunk ``c``."""
        fold, numbers, scales, cut = masks
        start = c * self.samples.chunk_size
        return fold[start : start + count], numbers, scales, cut[start : start + count]

    def old_scales(self, masks: Masks) -> float | FloatArray:
        """By what the old part is multiplied in each column."""
        scales = masks[2]
        return self._old_scale * scales if scales.size else self._old_scale


_WIDTHS = (8, 5, 2, 1)  # numbers of columns for which there is a compiled loop: each takes seconds to compile


def gather(chunk: Chunk, count: int, V: FloatArray) -> FloatArray:
    """xᵀV of the rows of a chunk that are in use."""
    n_rows = chunk.n_rows(count)
    if chunk.X is not None:
        products: FloatArray = chunk.X[:n_rows] @ V
        return products
    P = np.empty((n_rows, V.shape[1]))
    for first, width in _column_blocks(V.shape[1]):
        kernels.gather(chunk.ptr, chunk.pos, chunk.val, V, first, width, P)
    return P


def values(chunk: Chunk, count: int, V: FloatArray) -> tuple[FloatArray, FloatArray]:
    """x_tᵀV and x_{t+1}ᵀV (0 after a termination) of the first ``count`` samples of a chunk, (count, k) each."""
    P, next_row = gather(chunk, count, V), chunk.next_row[:count]
    return P[chunk.row[:count]], np.where(next_row[:, None] >= 0, P[next_row], 0.0)


def sample_values(samples: Samples, V: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The same of all samples that are there."""
    on_x, on_next = (np.empty((samples.n_kept, V.shape[1])) for _ in range(2))
    for c, chunk in enumerate(samples.chunks):
        mine = slice(c * samples.chunk_size, c * samples.chunk_size + samples.count(c))
        on_x[mine], on_next[mine] = values(chunk, samples.count(c), V)
    return on_x, on_next


def scatter(chunk: Chunk, rows: NDArray[np.int32], S: FloatArray, out: FloatArray) -> None:
    """Add Σ_i x_{rows[i]} S[i] to ``out``, in place."""
    if chunk.X is not None:
        n_rows = int(rows[-1]) + 1
        coefficients = S
        if rows.size < n_rows:
            coefficients = np.zeros((n_rows, S.shape[1]))
            coefficients[rows] = S
        out += chunk.X[:n_rows].T @ coefficients
        return
    for first, width in _column_blocks(S.shape[1]):
        kernels.scatter(chunk.ptr, chunk.pos, chunk.val, rows, S, first, width, out)


@cache
def _column_blocks(k: int) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """k columns cut into blocks of ``_WIDTHS``: where each begins, and a tuple as long as it is wide."""
    blocks, first = [], 0
    while first < k:
        width = next(width for width in _WIDTHS if width <= k - first)
        blocks.append((first, (0,) * width))
        first += width
    return tuple(blocks)


def mean_square(samples: Samples, weights: SampleWeights) -> float:
    """The (weighted) mean of ‖x_t‖²."""
    total = weight = 0.0
    for c, chunk in enumerate(samples.chunks):
        count = samples.count(c)
        rows, own = chunk.row[:count], weights.of_chunk[c]
        squares = np.empty(count)
        if chunk.X is not None:
            squares = np.einsum("ij,ij->i", chunk.X[rows], chunk.X[rows])
        else:
            row_squares(chunk.ptr, chunk.val, rows, squares)
        total += float(own @ squares)
        weight += float(own.sum())
    if samples.old is not None:
        total += weights.old_weight * samples.old.square
        weight += weights.old_weight
    return total / weight if weight > 0.0 else 0.0


def feature_squares(samples: Samples) -> FloatArray:
    """Σ x_i² of each feature over the rows of the samples, those of next states included, (n,)."""
    total = np.zeros(samples.n)
    for c, chunk in enumerate(samples.chunks):
        n_rows = chunk.n_rows(samples.count(c))
        if chunk.X is not None:
            total += np.einsum("ij,ij->j", chunk.X[:n_rows], chunk.X[:n_rows])
            continue
        stop = int(chunk.ptr[n_rows])
        squares = None if chunk.val is None else chunk.val[:stop] ** 2
        total += np.bincount(chunk.pos[:stop], squares, samples.n)
    return total


def constant_features(samples: Samples) -> FloatArray:
    """The value that each feature has in every x_t, or 0 if they differ, (n,)."""
    if not samples.n_kept:
        return np.zeros(samples.n)
    first = samples.chunks[0]
    reference, counts = np.zeros((samples.n, 1)), np.zeros(samples.n, dtype=np.int64)
    if samples.old is None:
        scatter(first, first.row[:1], np.ones((1, 1)), reference)
    else:
        reference[: samples.old.constant.size, 0] = samples.old.constant
    for c, chunk in enumerate(samples.chunks):
        rows = chunk.row[: samples.count(c)]
        if chunk.X is not None:
            counts += (chunk.X[rows] == reference[:, 0]).sum(axis=0)
        else:
            kernels.count_equal(chunk.ptr, chunk.pos, chunk.val, rows, reference[:, 0], counts)
    return np.where(counts == samples.n_kept, reference[:, 0], 0.0)


class Operator(ABC):
    """The LSTD system A w = b over the features seen, as three functions: A V, AᵀH and b.

    Krylov LSTD, intervals and bounds ask for no more. Where the samples are and who computes is the business of the
    subclasses: :class:`SampleOperator` has them in memory.
    """

    shift: FloatArray | None = None
    """A diagonal (n,) that is added to A, for ridge regression."""

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of features seen."""

    @abstractmethod
    def matvec(self, V: FloatArray) -> FloatArray:
        """A V for the columns of V (n, k)."""

    @abstractmethod
    def rmatvec(self, H: FloatArray) -> FloatArray:
        """AᵀH for the columns of H (n, k)."""

    @abstractmethod
    def b(self) -> FloatArray:
        """The right-hand sides (n, n_targets)."""

    @abstractmethod
    def moments(self) -> tuple[float, NDArray[np.bool_]]:
        """The mean ‖x‖², and which features have one value, not 0, in all samples: what a ridge needs to know."""

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        return self.n, self.n

    def shifted(self, shift: FloatArray) -> Self:
        """The same with another diagonal ``shift``."""
        other = copy(self)
        other.shift = shift
        return other

    def with_ridge(self, ridge: float) -> Self:
        """A + ηD: η = ``ridge`` times the mean ‖x‖², D the identity but 0 for constant features. In place of a
        shift."""
        return self if ridge == 0.0 else self.shifted(ridge_diagonal(ridge, *self.moments()))

    def arnoldi(self) -> Arnoldi:
        """The Krylov paths of A w = b, one for each right-hand side; they have no dimension yet."""
        return Arnoldi(lambda V, columns: self.matvec(V), self.b())

    def solve(self, dimension: int | Sequence[int]) -> FloatArray:
        """The weights (n, n_targets) of least ‖b - A w‖ in Krylov spaces of a dimension, or of one for each target."""
        paths = self.arnoldi()
        paths.extend(dimension if isinstance(dimension, int) else max(dimension))
        return paths.solutions(dimension)

    def toarray(self) -> FloatArray:
        """A as an (n, n) array; for small n."""
        return self.matvec(np.eye(self.n))


class SampleOperator(Operator):
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

    def held_out(self, folds: HeldOut) -> SampleOperator:
        """The systems of several folds, with the same diagonal."""
        other = copy(self)
        other.weights = SampleWeights(self.samples, self.beta, folds)
        return other

    @property
    def n(self) -> int:
        """Number of features seen."""
        return self.samples.n

    def moments(self) -> tuple[float, NDArray[np.bool_]]:
        """The mean ‖x‖², and which features have one value, not 0, in all samples."""
        return mean_square(self.samples, self.weights), constant_features(self.samples) != 0.0

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
