"""t-LSTD(λ): LSTD with an incremental, truncated SVD of its matrix."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np

from tlstd.classic import merged_systems
from tlstd.core import parameters
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.file_format import Saved, State
from tlstd.core.parameters import Trace
from tlstd.data.batch import Batch, vector_arrays
from tlstd.data.transitions import Transition
from tlstd.data.vectors import Vector
from tlstd.errors import InvalidInputError, InvalidParameterError
from tlstd.estimators.base import Factory, synchronized
from tlstd.truncated.factor_stream import FactorStream
from tlstd.truncated.truncated_system import Solution
from tlstd.truncated.truncation import TruncatedEstimator

Reads: TypeAlias = Literal["exact", "projected"]


class TLSTD(TruncatedEstimator):
    """Least-squares policy evaluation in O(d·rank) memory: the paper's Algorithm 1, corrected and deferred.

    Keeps A ≈ U diag(σ) Vᵀ of the averaged LSTD(λ) matrix A = (1/T) Σ z_t d_tᵀ over the features seen so far, and all of
    b = (1/T) Σ z_t r_{t+1}. Samples wait in a buffer; when it is full they are folded in exactly and the factors
    are cut back to ``rank`` (``docs/numerics.md`` says where and why this departs from the paper). The weights are
    up to date at every step: a read takes the SVD of a small core matrix and inverts at most the leading ``rank``
    singular values.

    Parameters
    ----------
    n_features : int
        Number of features d; may be as large as 2**31 when features are sparse.
    rank : int
        Number of singular values that survive a full buffer; at most ``n_features``. From about 60 million on
        ``buffer_size`` has to be given.
    lambda_ : float in [0, 1]
        Trace parameter. It decides whether a small rank suffices with tile coding: prefer values near 1 there.
    buffer_size : int, optional
        Samples folded in at once. The default is a function of the rank and of the active features of the first sample
        only: eight times the rank up to 320, less with more than 33 active features, for dense features four times up
        to 40, never less than the rank. ``buffer_size=rank`` is the paper's mini-batch algorithm, and, read at every
        step, also its fully incremental one.
    rcond : float in [0, 1)
        Singular values at or below ``rcond`` times the largest are not inverted. The paper uses 0.01.
    subspace_lambda : float in [0, 1], optional
        Take the rank-``rank`` subspaces from the LSTD matrix of this λ, and the equations, projected onto them, from
        that of ``lambda_``. With tile coding and a small rank 1.0 is far better than the subspaces of a small
        ``lambda_`` itself (see ``docs/experiments.md``). Singular values and factors are then those of this λ. What
        of the equations lies outside the subspaces at the end of a buffer is lost, so even at full rank the solution is
        LSTD's only if the first buffer spans the features. Off-policy a large λ may do harm: traces grow with the
        products of the ratios. Compare with the plain solution there.
    beta : float in (0, 1), optional
        Constant weight of a new sample, for tracking; by default all samples weigh the same.
    trace : "accumulating" or "replacing"
        Replacing traces (an active feature's trace becomes its value) are for sparse features.
    reads : "exact" or "projected"
        Exact: a read takes the SVD of the core, O((rank + buffer)³), and counts every sample in full. Projected: for a
        prediction at every step. From the first compression on, the system projected on the factors of the last
        compression, UᵀA_tV y = Uᵀb_t, is updated and solved with every sample in O(nnz·rank + rank²). Singular values
        at or below ``rcond`` times the largest are left out at the compression. It knows no directions that the samples
        since then have brought, and features first seen since then have no weight yet. Until the first compression
        reads are exact. Accumulating traces only.
    n_targets : int
        Number of reward signals predicted from one stream; they share the factorisation.

    Notes
    -----
    Per sample O(nnz·(rank + buffer)) and amortised O(seen·rank²/buffer + (rank + buffer)³/buffer); memory
    2·8·seen·rank bytes plus the buffer, twice that with projected reads. Only features that were seen have rows.

    References
    ----------
    Gehring, Pan, White: Incremental Truncated LSTD. IJCAI 2016.

    Example
    -------
    >>> from tlstd import TLSTD, random_walk
    >>> chain = random_walk(n_states=5, gamma=0.9)
    >>> model = TLSTD(n_features=5, rank=5, lambda_=0.9)
    >>> model.update_many(chain.sample(20_000, np.random.default_rng(0)))
    >>> bool(np.abs(model.predict(chain.X) - chain.values()).max() < 0.05)
    True
    """

    _ADDED: ClassVar[dict[str, Any]] = {"reads": "exact"}

    def __init__(
        self,
        n_features: int,
        rank: int,
        *,
        lambda_: float,
        buffer_size: int | None = None,
        rcond: float = 1e-4,
        beta: float | None = None,
        trace: Trace = "accumulating",
        subspace_lambda: float | None = None,
        reads: Reads = "exact",
        n_targets: int = 1,
    ) -> None:
        super().__init__(n_features, lambda_=lambda_, n_targets=n_targets)
        self._truncate(
            rank, buffer_size=buffer_size, rcond=rcond, beta=beta, trace=trace, subspace_lambda=subspace_lambda
        )
        self.reads: Reads = parameters.choice("reads", reads, get_args(Reads))
        self._stream = None
        if self.reads == "projected":
            if self.trace == "replacing":
                raise InvalidParameterError('reads is "projected" with trace="replacing": use accumulating traces')
            self._stream = FactorStream(self._system, self.rcond)

    @synchronized
    def factors(self) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
        """Feature ids (n,), U (n, r), σ (r,) and V (n, r): the leading ``rank`` singular triplets of A as of now.

        Row i belongs to feature ``ids[i]``; ids rise, as those of ``sparse_weights`` do. Copies;
        O(n·rank·(rank + buffer)).
        """
        if self._count() == 0:
            empty = np.zeros((0, 0))
            return np.zeros(0, dtype=np.int64), empty, np.zeros(0), empty.copy()
        core = self._system.core()
        sigma = core.sigma[: self.rank].copy()
        U, V = core.left.expand(core.L[:, : sigma.size]), core.right.expand(core.Rt[: sigma.size].T)
        order = np.argsort(self._system.seen.ids)
        return self._system.seen.ids[order], U[order], sigma, V[order]

    def _learn(self, batch: Batch) -> None:
        if self._stream is None:
            self._system.append(batch)
        else:
            self._stream.append(batch)

    def _learn_one(self, t: Transition) -> bool:
        own = self.__dict__
        if (
            own["_stream"] is not None
            or type(t.reward) is not float
            or own["n_targets"] != 1
            or t.x.size != own["n_features"]
        ):
            return False
        return own["_system"].take(t, own["_bound"])  # type: ignore[no-any-return]

    def _learn_and_predict(self, batch: Batch, values: FloatArray) -> None:
        if self._stream is None:
            super()._learn_and_predict(batch, values)
            return
        start = 0
        while start < len(batch):
            start += self._stream.append(batch.part(start, len(batch)), values[start:])
            if start < len(batch):  # nothing to follow
                super()._learn_and_predict(batch.part(start, start + 1), values[start : start + 1])
                start += 1

    def _read(self) -> FactorStream | Solution | None:
        """What weights and values are read from; None before the first sample."""
        if self._stream is not None and self._stream.current:
            return self._stream
        if self._reading is None and self._system.n_samples:
            self.__dict__["_reading"] = self._system.solve(self.rcond)
        solution: Solution | None = self._reading
        return solution

    def _solve(self) -> tuple[IntArray, FloatArray]:
        read = self._read()
        if read is None:
            return np.zeros(0, dtype=np.int64), np.zeros((0, self.n_targets))
        return self._system.seen.ids.copy(), read.weights()

    def _predict_vector(self, x: Vector) -> FloatArray:
        read = self._read()
        if read is None:
            return np.zeros(self.n_targets)
        indices, values = vector_arrays(x)
        if isinstance(read, FactorStream):
            return read.predict(indices, values)
        seen, buffer = self._system.seen, self._system.buffer
        return read.value(seen.lookup(indices, values), buffer.scratch(len(seen)))

    def _is_solved(self) -> bool:
        return self._stream is None and self._reading is not None

    def _mend(self) -> None:
        super()._mend()
        if self._stream is not None and self._system.is_full:  # its weights are those after the compression
            self._system.compress()

    def _merged_state(self, other: TLSTD) -> State:
        self._refuse_to_merge_with_beta(self.beta)
        if self.subspace_lambda is not None:
            raise InvalidInputError(
                f"models with subspace_lambda={self.subspace_lambda} cannot be merged, because each knows its "
                "equations in its own subspaces only: merge models without it"
            )
        for model in (self, other):
            model._system.compress()
        merged = merged_systems.truncated_systems(self._system.state(), other._system.state(), self.rank)
        return {"system": merged} if self._stream is None else {"system": merged, "stream": {}}

    def _state(self) -> State:
        return super()._state() if self._stream is None else {**super()._state(), "stream": self._stream.state()}

    def _restore(self, saved: Saved) -> None:
        super()._restore(saved)
        if self._stream is not None:
            self._stream.restore(saved.part("stream"))


EXAMPLES: dict[str, Factory] = {
    "TLSTD": lambda n_features, **options: TLSTD(n_features, max(1, n_features // 2), lambda_=0.7, **options),
    "TLSTD (projected)": lambda n_features, **options: TLSTD(
        n_features, max(1, n_features // 2), lambda_=0.7, buffer_size=16, reads="projected", **options
    ),
    "TLSTD (full rank)": lambda n_features, **options: TLSTD(n_features, n_features, lambda_=0.7, **options),
    "TLSTD (replacing)": lambda n_features, **options: TLSTD(
        n_features, n_features, lambda_=0.7, trace="replacing", **options
    ),
    "TLSTD (subspace)": lambda n_features, **options: TLSTD(
        n_features, n_features, lambda_=0.7, subspace_lambda=1.0, **options
    ),
}
