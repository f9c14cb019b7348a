"""Solutions of A w = b and of Aᵀh = x side by side, and what every sample adds to xᵀw.

With Aᵀh = x the value xᵀw is hᵀb = Σ ω_t (hᵀz_t) r_{t+1}, and for any w

    xᵀw + Σ ω_t (hᵀz_t) δ_t,    δ_t = r_{t+1} + γ_{t+1} x_{t+1}ᵀw - x_tᵀw,

differs from the exact xᵀA⁻¹b by (x - Aᵀh)ᵀ(w - A⁻¹b) only: a product of two errors.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd.data.held_out import BoolArray, Folds
from tlstd.krylov.arnoldi import Arnoldi, weakly
from tlstd.krylov.kernels import products as kernels
from tlstd.krylov.operator import HeldOut, SampleOperator, gather, values

WHOLE = -1
"""The system in which nothing is held out."""


class AdjointSystem:
    """Krylov paths of A w = b, with nothing and with each fold held out, and of Aᵀh = x for several x.

    Parameters
    ----------
    operator : SampleOperator
        Of all samples, none of which has left; its diagonal is kept.
    folds : Folds
        Of these samples. Traces are cut where a group begins.
    X : (n, k) array
        The right-hand sides of the adjoint systems, over the features seen.
    systems : (k,) integers
        In which fold's system each of them is solved; ``WHOLE`` for none.

    Cost: a dimension is one pass over the samples with ``n_folds`` + 1 vectors, and one with k.

    Example
    -------
    >>> from tlstd import KrylovLSTD, boyan_chain
    >>> from tlstd.data.held_out import make_folds
    >>> steps = boyan_chain().sample(500, np.random.default_rng(0))
    >>> model = KrylovLSTD(4, lambda_=0.5, dimension=4)
    >>> model.update_many(steps)
    >>> folds = make_folds(steps.discounts, steps.trace_discounts, 5)
    >>> system = AdjointSystem(model.operator(), folds, np.eye(4)[:, :1], [WHOLE])
    >>> system.extend(4)
    >>> w, h = system.weights()[:, -1], system.adjoints()[:, 0]
    >>> bool(abs(w[0] - h @ model.operator().b()[:, 0]) < 1e-9)
    True
    """

    def __init__(self, operator: SampleOperator, folds: Folds, X: FloatArray, systems: Sequence[int]) -> None:
        self.folds, self.n_folds = folds, folds.n_folds if folds.n_folds > 1 else 0
        self.operator = operator.held_out(HeldOut(folds.fold, folds.cut))
        self.samples, self.lambda_ = operator.samples, operator.lambda_
        self._primal_systems = np.append(np.arange(self.n_folds), WHOLE)
        self._adjoint_systems = np.asarray(systems, dtype=np.int64)
        self._primal = Arnoldi(weakly(self._product), self.operator.b(systems=self._primal_systems))
        self._adjoint = Arnoldi(weakly(self._transposed_product), X)

    def _product(self, V: FloatArray, columns: Sequence[int]) -> FloatArray:
        return self.operator.matvec(V, systems=self._primal_systems[list(columns)])

    def _transposed_product(self, V: FloatArray, columns: Sequence[int]) -> FloatArray:
        return self.operator.rmatvec(V, systems=self._adjoint_systems[list(columns)])

    def extend(self, dimension: int) -> None:
        """Make all paths so long, unless they finish before."""
        self._primal.extend(dimension)
        self._adjoint.extend(dimension)
        self.dimension = dimension

    @property
    def finished(self) -> bool:
        """Whether all systems are solved but for rounding."""
        return all(path.finished for path in [*self._primal.paths, *self._adjoint.paths])

    def weights(self) -> FloatArray:
        """(n, n_folds + 1): w without each fold, and in the last column of all samples."""
        return self._primal.solutions(self.dimension)

    def adjoints(self) -> FloatArray:
        """(n, k): h of each x."""
        return self._adjoint.solutions(self.dimension)

    def trace_values(self, H: FloatArray) -> FloatArray:
        """(N, k): z_tᵀH of every sample, for H (n, k)."""
        return trace_values(self.operator, H, self.folds.cut)

    def errors(self, W: FloatArray) -> FloatArray:
        """(N, k): δ_t of every sample by each of the weights W (n, k)."""
        return td_errors(self.operator, W)

    def own(self, by_fold: FloatArray) -> FloatArray:
        """(N,): of (N, n_folds + 1) numbers those of the column that has not seen the sample."""
        if not self.n_folds:
            return by_fold[:, -1]
        chosen: FloatArray = by_fold[np.arange(by_fold.shape[0]), self.folds.fold]
        return chosen


def trace_values(
    operator: SampleOperator, H: FloatArray, cut: BoolArray, before: FloatArray | None = None
) -> FloatArray:
    """z_tᵀH (N, k) of every sample, with traces that start empty where ``cut`` is true; ``before`` is z_{-1}ᵀH (k,)."""
    samples, carry = operator.samples, np.zeros(H.shape[1])
    if before is not None:
        carry += before
    out = np.empty((samples.n_kept, H.shape[1]))
    columns = np.ascontiguousarray(H)
    for c, chunk in enumerate(samples.chunks):
        count, start = samples.count(c), c * samples.chunk_size
        rhos = chunk.ratios(count)
        kernels.follow_traces(
            *(gather(chunk, count, columns), chunk.row[:count], chunk.trace_discounts, rhos, operator.lambda_),
            *(cut[start : start + count], carry, out[start : start + count]),
        )
    return out


def td_errors(operator: SampleOperator, W: FloatArray) -> FloatArray:
    """δ_t (N, k) = r_{t+1} + γ_{t+1} x_{t+1}ᵀW - x_tᵀW of every sample, of the first target."""
    samples = operator.samples
    errors, columns = np.empty((samples.n_kept, W.shape[1])), np.ascontiguousarray(W)
    for c, chunk in enumerate(samples.chunks):  # one chunk at a time: there may be many samples
        count, start = samples.count(c), c * samples.chunk_size
        on_x, on_next = values(chunk, count, columns)
        errors[start : start + count] = chunk.rewards[:count, :1] + chunk.discounts[:count, None] * on_next - on_x
    return errors
