"""What is kept of samples that leave: their system, exact on a Krylov basis of everything that is known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tlstd.linalg.krylov import Arnoldi
from tlstd.linalg.sample_operator import SampleOperator
from tlstd.linalg.sample_store import OldPart, Samples
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
    """

    def __init__(self, operator: Callable[[Samples], SampleOperator], dimension: int) -> None:
        self.operator, self.dimension = operator, dimension

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
        Q, last = self.basis(whole)
        AQ = leaving.matvec(Q)
        beyond = float(np.einsum("ij,ij->j", Q[:, last], AQ[:, last]).mean()) if last.any() else 0.0
        return OldPart(
            left=AQ,
            right=Q,
            beyond=max(0.0, BEYOND * beyond),
            b=leaving.b(),
            square=leaving.mean_square(),
            constant=leaving.constant_features(),
        )

    def basis(self, operator: SampleOperator) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Q (n, k) and which of its columns are the last ones of a Krylov space (none if Q is the identity).

        k is m for each target. Where their spaces end before, as they do while all rewards are 0, that of a reward
        which is always 1 is added.
        """
        n, k = operator.n, self.dimension * operator.n_targets
        if n <= k:
            return np.eye(n), np.zeros(n, dtype=np.bool_)
        spaces = self._spaces(operator, operator.b())
        if sum(map(len, spaces)) < k:
            spaces += self._spaces(operator, operator.sum_of_traces()[:, None])
        last = [np.arange(len(space)) >= (1.0 - LAST) * len(space) for space in spaces]
        Q = np.concatenate(spaces)[:k].T
        if len(spaces) > 1:
            with one_thread():
                Q = np.linalg.qr(Q)[0]
        return np.ascontiguousarray(Q), np.concatenate(last)[:k]

    def _spaces(self, operator: SampleOperator, B: FloatArray) -> list[FloatArray]:
        """Krylov bases, a vector a row."""
        arnoldi = Arnoldi(lambda V, columns: operator.matvec(V), B)
        arnoldi.extend(self.dimension - 1)  # a path has one vector more than dimensions
        return [path.Q for path in arnoldi.paths]
