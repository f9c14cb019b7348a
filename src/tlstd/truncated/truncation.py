"""What estimators share that keep t-LSTD's truncated system: its options, and the system itself."""

from __future__ import annotations

from typing import get_args

import numpy as np

from tlstd.core import parameters
from tlstd.core.arrays import FloatArray
from tlstd.core.file_format import Saved, State
from tlstd.core.parameters import Trace
from tlstd.core.svd import inverse_factors, svd
from tlstd.errors import InvalidParameterError
from tlstd.estimators.base import LinearEstimator, synchronized
from tlstd.truncated.truncated_system import TruncatedSystem

SHORTEST_BUFFER = 8
"""Least number of samples between compressions of an estimator that reads at every step, unless the user says so."""


MAX_BUFFER = 1 << 16
"""Samples between compressions beyond which no machine gets to the end of one."""
BYTES = 128
"""Of a sample in the buffer, which holds at least ``rank`` of them, and of a read; beside rewards and features."""


class TruncatedEstimator(LinearEstimator):
    """Base of the estimators with a rank. A subclass calls ``_truncate`` in its constructor."""

    def _truncate(
        self,
        rank: int,
        *,
        smallest_rank: int = 1,
        buffer_size: int | None,
        read_at_every_step: bool = False,
        rcond: float,
        beta: float | None,
        trace: Trace,
        subspace_lambda: float | None = None,
    ) -> None:
        """Check and keep the options, and make the system."""
        self.rank = parameters.integer(
            "rank", rank, low=smallest_rank, high=self.n_features, why=" (the number of features)"
        )
        parameters.check_memory(  # before a buffer of that length is made; factors grow with the features that are seen
            f"rank is {self.rank}",
            (BYTES + 8 * self.n_targets) * (self.rank if buffer_size is None else 1),
            "the buffer, as long as the rank unless buffer_size is given,",
            remedy="use a smaller rank, or pass buffer_size",
        )
        if buffer_size is not None:
            why = " (a read takes its third power)"
            buffer_size = parameters.integer("buffer_size", buffer_size, high=MAX_BUFFER, why=why)
        self.buffer_size = buffer_size
        self.rcond = parameters.real("rcond", rcond, low=0.0, high=1.0, open_high=True)
        self.beta = None if beta is None else parameters.positive("beta", beta, high=1.0)
        self.trace: Trace = parameters.choice("trace", trace, get_args(Trace))
        self._replacing = self.trace == "replacing"
        if subspace_lambda is not None:
            subspace_lambda = parameters.real("subspace_lambda", subspace_lambda, low=0.0, high=1.0)
            if self._replacing:
                raise InvalidParameterError(
                    f'subspace_lambda is {subspace_lambda} with trace="replacing": use accumulating traces'
                )
        self.subspace_lambda = subspace_lambda
        short = max(SHORTEST_BUFFER, self.rank)  # a long buffer would make every read expensive
        self._system = TruncatedSystem(
            self.n_features,
            self.rank,
            lambda_=self.lambda_ if self.subspace_lambda is None else self.subspace_lambda,
            equations_lambda=None if self.subspace_lambda is None else self.lambda_,
            buffer_size=short if read_at_every_step and buffer_size is None else self.buffer_size,
            beta=self.beta,
            replacing=self._replacing,
            n_targets=self.n_targets,
        )
        self._longest_lambda = max(self.lambda_, self._system.lambda_)

    def _count(self) -> int:
        return self._system.n_samples

    @property
    @synchronized
    def n_seen(self) -> int:
        """Number of distinct features seen so far (each has a row in both factors)."""
        return len(self._system.seen)

    @property
    @synchronized
    def n_buffered(self) -> int:
        """Number of samples that wait in the buffer."""
        return self._system.buffer.count

    @property
    @synchronized
    def buffer_capacity(self) -> int:
        """Samples in a full buffer: ``buffer_size`` or the default for the features at hand; 0 before the first."""
        return self._system.buffer.capacity

    @property
    @synchronized
    def singular_values(self) -> FloatArray:
        """The leading singular values (at most ``rank``) of the current approximation of A, in falling order."""
        if self._is_empty:
            return np.zeros(0)
        return self._system.core().sigma[: self.rank].copy()

    @property
    @synchronized
    def n_inverted(self) -> int:
        """Number of singular values above ``rcond`` times the largest: those that a solution uses.

        With ``subspace_lambda`` those of the equations of ``lambda_``, projected onto the factors.
        """
        if self._is_empty:
            return 0
        core = self._system.core()
        sigma = core.sigma[: self.rank] if core.projection is None else svd(core.projection.G)[1]
        return int(np.count_nonzero(inverse_factors(sigma, rcond=self.rcond)))

    @property
    @synchronized
    def core_shape(self) -> tuple[int, int]:
        """Rows and columns of the core matrix, of which a read takes the SVD: stored factors and what waits."""
        if self._is_empty:
            return 0, 0
        core = self._system.core()
        return core.left.size, core.right.size

    @synchronized
    def orthogonality_error(self) -> float:
        """max(max|UᵀU - I|, max|VᵀV - I|) of the stored factors. O(seen·rank²)."""
        return self._system.factors.orthogonality_error()

    @property
    def _is_empty(self) -> bool:
        """Whether there is no core: rank 0, or nothing learned."""
        return self.rank == 0 or self._system.n_samples == 0

    def _mend(self) -> None:
        super()._mend()
        self._system.mend()

    def _state(self) -> State:
        return {"system": self._system.state()}

    def _restore(self, saved: Saved) -> None:
        self._system.restore(saved.part("system"))
