"""What is kept of samples that leave: their system, exact on a Krylov basis of everything that is known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tlstd.linalg.forecasts import compared, in_basis
from tlstd.linalg.krylov import Arnoldi, KrylovPath
from tlstd.linalg.krylov_choice import fixed_dimension
from tlstd.linalg.old_part import Forecasts, OldPart
from tlstd.linalg.sample_moments import constant_features, mean_square
from tlstd.linalg.sample_operator import SampleOperator
from tlstd.linalg.samples import Samples
from tlstd.linalg.threads import one_thread
from tlstd.types import FloatArray

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
        (:mod:`tlstd.linalg.forecasts`), for a choice by them.
    """

    def __init__(
        self, operator: Callable[[Samples], SampleOperator], dimension: int, *, choosing: bool = False
    ) -> None:
        self.operator, self.dimension = operator, dimension
        self.n_forecasts = dimension - 1 if choosing else 0

    def __call__(self, samples: Samples, n_chunks: int) -> OldPart:
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
        return OldPart(
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

    def _forecasts(self, samples: Samples, n_chunks: int, Q: FloatArray, paths: list[KrylovPath]) -> Forecasts:
        """The solutions now, and the errors of those of the last folding for the samples since, which do not leave."""
        solutions, old = in_basis(Q, paths, self.n_forecasts), samples.old
        if old is None or old.forecasts is None:
            return Forecasts.empty(*solutions.shape)._replace(solutions=solutions)
        known = samples.n_left + n_chunks * samples.chunk_size
        since = self.operator(samples._replace(chunks=samples.chunks[n_chunks:], n_left=known, old=None))
        sums = compared(old.forecasts, old.right, since, known, fixed_dimension(known))
        return Forecasts(solutions, *sums)
