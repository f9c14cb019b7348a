"""ATD(λ): accelerated TD, which steps along the truncated inverse of A and along the trace."""

from __future__ import annotations

from typing import Any

import numpy as np

from tlstd.core import parameters
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.file_format import Saved, State
from tlstd.core.parameters import Trace
from tlstd.core.threads import one_thread
from tlstd.data.batch import Batch, vector_arrays
from tlstd.data.vectors import SparseVector, Vector
from tlstd.estimators.base import Factory
from tlstd.estimators.step_sizes import Decay, StepSize
from tlstd.estimators.stepping import SteppingEstimator
from tlstd.truncated.truncation import TruncatedEstimator
from tlstd.zoo.moving_weights import MovingWeights


class ATD(TruncatedEstimator, SteppingEstimator):
    """Policy evaluation by preconditioned TD: w ← w + (α_t A_r⁺ + η I) δ_t z_t.

    A_r is t-LSTD's truncated approximation of A, from the same buffers and factors as :class:`~tlstd.TLSTD`. The
    first part learns as fast as least squares in the leading ``rank`` directions, the second as TD everywhere else, so
    that the truncation leaves no bias. With ``step_size`` = 1/t (``Decay(1.0, 0)``), η = 0 and full rank it solves
    LSTD's system at every step; with ``rank=0`` it is TD(λ) with step size η.

    Parameters
    ----------
    n_features : int
    rank : int
        Rank of A's approximation, from 0 to ``n_features``; beyond about 60 million only with ``buffer_size``.
    step_size : float, :class:`~tlstd.Decay` or callable t -> α_t
        α of the least-squares part.
    lambda_ : float in [0, 1]
    eta : float >= 0
        η, the (small, constant) step size of the TD part.
    buffer_size : int, optional
        Samples between compressions; ``rank``, and at least 8, if left out.
    rcond, beta, trace, n_targets : as in :class:`~tlstd.TLSTD`

    Notes
    -----
    Every step reads the factorisation: O(nnz·(rank + buffer) + (rank + buffer)³). The weights are kept in factored form
    between compressions; nothing of their size is touched per step with sparse features. With too large a step the
    weights may diverge, as TD's.

    References
    ----------
    Pan, White, White: Accelerated Gradient Temporal Difference Learning. AAAI 2017.

    Example
    -------
    >>> from tlstd import ATD, Decay, boyan_chain
    >>> chain = boyan_chain()
    >>> model = ATD(4, rank=2, step_size=Decay(1.0, 0), lambda_=0.5, eta=0.05)
    >>> model.update_many(chain.sample(1_000, np.random.default_rng(0)))
    >>> bool(np.abs(model.predict(chain.X) - chain.values()).max() < 1.5)
    True
    """

    def __init__(
        self,
        n_features: int,
        rank: int,
        *,
        step_size: StepSize,
        lambda_: float,
        eta: float,
        buffer_size: int | None = None,
        rcond: float = 1e-4,
        beta: float | None = None,
        trace: Trace = "accumulating",
        n_targets: int = 1,
    ) -> None:
        super().__init__(n_features, step_size=step_size, lambda_=lambda_, n_targets=n_targets)
        self.eta = parameters.real("eta", eta, low=0.0, high=1e100)
        self._truncate(
            rank,
            smallest_rank=0,
            buffer_size=buffer_size,
            read_at_every_step=True,
            rcond=rcond,
            beta=beta,
            trace=trace,
        )
        self._weights = MovingWeights(self._system, self.n_targets)

    def _begin(self, ids: IntArray, values: FloatArray) -> None:
        self._weights.begin(ids, values)

    def _learn(self, batch: Batch) -> None:
        self._run(batch, np.zeros((0, self.n_targets)))

    def _learn_and_predict(self, batch: Batch, values: FloatArray) -> None:
        self._run(batch, values)

    def _run(self, batch: Batch, values: FloatArray) -> None:
        """Learn; the value of each x_next after its step goes to ``values``, if that has rows."""
        (x_indptr, x_ids, x_vals), rows, (n_indptr, n_ids, n_vals), next_rows = batch.sparse()
        alphas = self.step_size.values(self._count() + 1, len(batch))
        # a run that diverges is data, not an error; threads are limited once, not at every step
        with np.errstate(over="ignore", invalid="ignore"), one_thread(self._system.operations()):
            for t, (row, next_row) in enumerate(zip(rows, next_rows, strict=True)):
                x, x_next = slice(x_indptr[row], x_indptr[row + 1]), slice(n_indptr[next_row], n_indptr[next_row + 1])
                value = self._weights.predict(x_ids[x], x_vals[x])
                next_value = self._weights.predict(n_ids[x_next], n_vals[x_next]) if batch.discounts[t] else 0.0
                delta = batch.rewards[t] + batch.discounts[t] * next_value - value
                self._compress_if_full()  # once more if that was interrupted
                self._system.append_one(batch.part(t, t + 1))
                self._weights.move(alphas[t] * delta, self.eta * delta, self.rcond)
                self._compress_if_full()
                if values.size:
                    values[t] = self._weights.predict(n_ids[x_next], n_vals[x_next])

    def _compress_if_full(self) -> None:
        if self._system.is_full:
            self._weights.fold()
            self._system.compress()

    def _count(self) -> int:
        """Number of transitions that have moved the weights."""
        return self._weights.n_moves

    def _mend(self) -> None:
        super()._mend()
        if self._system.n_samples > self._weights.n_moves:
            self._system.retract()

    def _solve(self) -> tuple[IntArray, FloatArray]:
        return self._system.seen.ids.copy(), self._weights.dense()

    def _predict_vector(self, x: Vector) -> FloatArray:
        return self._weights.predict(*vector_arrays(x))

    def _value(self, x: SparseVector) -> Any:
        value = self._weights.predict(x.indices, x.values)
        return value.item() if value.size == 1 else value

    def _state(self) -> State:
        return {**super()._state(), "weights": self._weights.state()}

    def _restore(self, saved: Saved) -> None:
        super()._restore(saved)
        self._weights.restore(saved.part("weights"))
        self._weights.n_moves = self._system.n_samples


EXAMPLES: dict[str, Factory] = {
    "ATD": lambda n_features, **options: ATD(
        n_features, n_features // 2, step_size=Decay(1.0, 10), lambda_=0.7, eta=0.01, **options
    ),
}
