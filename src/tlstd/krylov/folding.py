"""What is kept of samples that leave: their system, exact on a Krylov basis of everything that is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from tlstd.core.arrays import FloatArray
from tlstd.core.threads import one_thread
from tlstd.data import held_out
from tlstd.krylov.arnoldi import Arnoldi, KrylovPath
from tlstd.krylov.choice import fixed_dimension
from tlstd.krylov.operator import SampleOperator, constant_features, mean_square
from tlstd.krylov.samples import DimensionScores, FoldedSamples, Samples

LAST = 0.25
"""Share of the basis, its last vectors, whose qᵀA_old q say what A_old is taken for outside of the basis."""
BEYOND = 0.5
"""What A_old is taken for there, as a share of their mean: it falls along the basis, and goes on falling."""


class Folding:
    """Folds samples: of their matrix A_old only A_old Q is kept, Q an orthonormal basis of the Krylov space then.

    Q is that of the whole system at this moment, in which the solution is looked for: K_m(A, b), and for several
    targets a joint basis of all their spaces. Outside of it A_old is taken for a multiple of the identity:

        A_old ≈ (A_old Q) Qᵀ + τ (I - QQᵀ)

    with τ half of the mean of qᵀA_old q over the last quarter of the vectors, which are nearest to what is outside
    (0 if it is negative). So old samples go on opposing directions that only few of the kept samples speak for;
    without τ these would be fitted to the kept samples alone. At the next folding the same is done with A_old +
    A_leaving, where A_old is what had been kept. The right-hand side and the eligibility trace are exact always, and
    A_old is while no more features were seen than Q may have vectors (Q = I).

    Cost: m products with the system (a column for each target) and one with as many columns as Q has.

    Parameters
    ----------
    operator : callable
        ``operator(samples)`` is the system that is solved, with its ridge.
    dimension : int
        m, vectors of the basis for each target.
    choosing : bool
        Keep how well solutions of each dimension up to m - 1 have predicted later samples
        (:mod:`tlstd.krylov.folding`), for a choice by them.
    """

    def __init__(
        self, operator: Callable[[Samples], SampleOperator], dimension: int, *, choosing: bool = False
    ) -> None:
        self.operator, self.dimension = operator, dimension
        self.n_forecasts = dimension - 1 if choosing else 0

    def __call__(self, samples: Samples, n_chunks: int) -> FoldedSamples:
        """What is to be kept of the first chunks, which are full, and of what had left before."""
        whole = self.operator(samples)
        leaving = SampleOperator(
            samples._replace(
                chunks=samples.chunks[:n_chunks], n_samples=samples.n_left + n_chunks * samples.chunk_size
            ),
            lambda_=whole.lambda_,
            beta=whole.beta,
            n_targets=whole.n_targets,
        )
        Q, last, paths = self.basis(whole)
        AQ = leaving.matvec(Q)
        beyond = float(np.einsum("ij,ij->j", Q[:, last], AQ[:, last]).mean()) if last.any() else 0.0
        return FoldedSamples(
            left=AQ,
            right=Q,
            beyond=max(0.0, BEYOND * beyond),
            b=leaving.b(),
            square=mean_square(leaving.samples, leaving.weights),
            constant=constant_features(leaving.samples),
            forecasts=self._forecasts(samples, n_chunks, Q, paths) if self.n_forecasts else None,
        )

    def basis(self, operator: SampleOperator) -> tuple[FloatArray, NDArray[np.bool_], list[KrylovPath]]:
        """Q (n, k), which of its columns are the last ones of a Krylov space, and the path of each target.

        k is m for each target. Where their spaces end before, as they do while all rewards are 0, that of a reward
        which is always 1 is added. If n <= k, Q is the identity, and there are no last columns; paths are made only if
        there is to be a choice.
        """
        n, k = operator.n, self.dimension * operator.n_targets
        if n <= k:
            paths = self._paths(operator, operator.b()) if self.n_forecasts else []
            return np.eye(n), np.zeros(n, dtype=np.bool_), paths
        paths = self._paths(operator, operator.b())
        spaces = [path.Q for path in paths]
        if sum(map(len, spaces)) < k:
            spaces += [path.Q for path in self._paths(operator, operator.sum_of_traces()[:, None])]
        last = [np.arange(len(space)) >= (1.0 - LAST) * len(space) for space in spaces]
        Q = np.concatenate(spaces)[:k].T
        if len(spaces) > 1:
            with one_thread():
                Q = np.linalg.qr(Q)[0]
        return np.ascontiguousarray(Q), np.concatenate(last)[:k], paths

    def _paths(self, operator: SampleOperator, B: FloatArray) -> list[KrylovPath]:
        arnoldi = Arnoldi(lambda V, columns: operator.matvec(V), B)
        arnoldi.extend(self.dimension - 1)  # a path has one vector more than dimensions
        return arnoldi.paths

    def _forecasts(self, samples: Samples, n_chunks: int, Q: FloatArray, paths: list[KrylovPath]) -> DimensionScores:
        """The solutions now, and the errors of those of the last folding for the samples since, which do not leave."""
        solutions, old = in_basis(Q, paths, self.n_forecasts), samples.old
        if old is None or old.forecasts is None:
            return DimensionScores.empty(*solutions.shape)._replace(solutions=solutions)
        known = samples.n_left + n_chunks * samples.chunk_size
        since = self.operator(samples._replace(chunks=samples.chunks[n_chunks:], n_left=known, old=None))
        sums = compared(old.forecasts, old.right, since, known, fixed_dimension(known))
        return DimensionScores(solutions, *sums)


GROUPS = 5
"""Folds by whose number the length of blocks is set, where samples have no episodes: as in the choice by folds."""

_LARGEST = 1e140  # of an error that is added up: its square, and the sum of many, are finite


def in_basis(Q: FloatArray, paths: Sequence[KrylovPath], n_dimensions: int) -> FloatArray:
    """The solutions of dimension 1, …, M of each path in a basis Q (n, k) of a space that has them, (k, paths, M)."""
    out = np.zeros((Q.shape[1], len(paths), n_dimensions))
    with one_thread():
        for i, path in enumerate(paths):
            Y = np.zeros((path.Q.shape[0], n_dimensions))
            for m in range(n_dimensions):
                y = path.coordinates(m + 1)
                Y[: y.size, m] = y
            out[:, i] = (Q.T @ path.Q.T) @ Y
    return out


def compared(
    forecasts: DimensionScores, Q: FloatArray, operator: SampleOperator, known: int, reference: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Errors, sizes and squares with the samples of ``operator`` added, none of which the solutions know.

    Parameters
    ----------
    Q : (n₀, k)
        The basis of the solutions, over the features that were seen then.
    known : int
        Samples that they were made of.
    reference : int
        Dimension of the solution that completes returns which are not seen to their end.
    """
    samples, beta = operator.samples, operator.beta
    rewards, discounts, trace_discounts, rhos = samples.columns()
    n_targets, n_dimensions = forecasts.errors.shape[1:]
    weights, forgotten = np.full(samples.n_kept, float(known)), 1.0
    if beta is not None:
        weights = (1.0 - beta) ** np.arange(samples.n_kept - 1.0, -1.0, -1.0)
        forgotten = (1.0 - beta) ** samples.n_kept
    V = np.zeros((operator.n, Q.shape[1]))
    V[: Q.shape[0]] = Q
    on_x, on_next = operator.values(V)
    folds = held_out.make_folds(discounts, trace_discounts, GROUPS, weights)
    with one_thread():
        v0 = None
        if held_out.needs_reference(discounts, rhos, folds, weights):
            y = forecasts.solutions[:, :, min(reference, n_dimensions) - 1]
            v0 = held_out.Reference(on_x @ y, on_next @ y)
        predictions = np.tensordot(on_x, forecasts.solutions, axes=1)
    targets = held_out.held_out_targets(rewards, discounts, rhos, folds, weights, reference=v0)
    s = np.bincount(folds.group, targets.weights, folds.n_groups)
    used = s > 0.0
    n_states = np.count_nonzero(targets.weights)
    sizes = np.array([s.sum(), (s**2).sum(), targets.n_effective, np.count_nonzero(used), n_states])
    errors = np.zeros(forecasts.errors.shape)
    for target in range(n_targets):
        e = held_out.group_errors(
            predictions[:, target], targets.values[:, target], targets.weights, folds.group, folds.n_groups
        )
        e = np.minimum(e[used], _LARGEST)
        errors[:, target] = e.sum(axis=0), (e**2).sum(axis=0), (e * s[used, None]).sum(axis=0)
    squares = targets.weights @ np.minimum(targets.values**2, _LARGEST)
    once, twice = forgotten, forgotten**2  # squares of sums are forgotten twice as fast
    return (
        np.array([once, twice, twice])[:, None, None] * forecasts.errors + errors,
        np.array([once, twice, once, once, once]) * forecasts.sizes + sizes,
        once * forecasts.squares + squares,
    )
