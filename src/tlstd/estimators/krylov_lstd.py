"""Krylov LSTD(λ): least squares over the stored samples, at a price near TD's and without a step size."""

from __future__ import annotations

import numpy as np

from tlstd import parameters
from tlstd.container import Saved, State
from tlstd.errors import InvalidParameterError
from tlstd.estimators.base import LinearEstimator
from tlstd.linalg.batch import Batch, vector_arrays
from tlstd.linalg.krylov import Arnoldi
from tlstd.linalg.krylov_stream import KrylovStream
from tlstd.linalg.sample_operator import SampleOperator, with_ridge
from tlstd.linalg.sample_store import Samples, SampleStore
from tlstd.types import FloatArray, IntArray, Transitions, Vector


class KrylovLSTD(LinearEstimator):
    """LSTD(λ) solved in the Krylov space of (A, b): A = (1/T) Σ z_t d_tᵀ is only multiplied with, never formed.

    The samples are kept. When weights are read, an orthonormal basis of b, A b, A²b, … is made by one pass over the
    samples for each dimension (Arnoldi), and the weights are those of least residual ‖b - A w‖ in it (GMRES). The
    dimension regularises: small ones are smooth, and with as many dimensions as features it is LSTD.

    Parameters
    ----------
    n_features : int
        Number of features d. Only features that were seen take memory.
    lambda_ : float in [0, 1]
        Trace parameter. Traces accumulate.
    dimension : int
        Dimension of the Krylov space.
    reads : "batch" or "stream"
        Batch: updates only store; the first read after an update solves over all samples. Stream: for a prediction at
        every step. A basis Q of the Krylov space is made at the first sample and whenever the samples have grown by a
        third (with ``beta``, by a third of 1/β at most); in between the system WᵀA_tQ y = Wᵀb_t, W an orthonormal
        basis of AQ then, is updated and solved with every sample. At these moments the weights are those of
        ``"batch"``. Features that were first seen since then have no weight yet.
    ridge : float >= 0
        η in units of the mean ‖x‖²: solves (A + ηD) w = b, where D is the identity except for features that have the
        same value, not 0, in every x (a bias), which are not penalised. The Krylov space is that of A + ηD.
    beta : float in (0, 1), optional
        Constant weight of a new sample, for tracking; by default all samples weigh the same. Samples whose weight has
        fallen below rounding leave.
    n_targets : int
        Number of reward signals. Each has its own Krylov space.

    Notes
    -----
    An update stores the sample: 4·nnz + 36 bytes for one with nnz features of value 1 on a trajectory (see
    :class:`tlstd.linalg.sample_store.SampleStore` for others). The first read after an update takes O(dimension ·
    (entries stored + features seen · dimension)); further reads are free.

    References
    ----------
    Saad, Schultz: GMRES. SIAM Journal on Scientific and Statistical Computing 7, 1986.
    Petrik: An analysis of Laplacian methods for value function approximation in MDPs. IJCAI 2007.

    Example
    -------
    >>> import numpy as np
    >>> from tlstd import KrylovLSTD, boyan_chain
    >>> chain = boyan_chain()
    >>> model = KrylovLSTD(n_features=4, lambda_=0.0, dimension=4)
    >>> model.update_many(chain.sample(20_000, np.random.default_rng(0)))
    >>> bool(np.abs(model.weights - [-24, -16, -8, 0]).max() < 0.5)
    True
    """

    def __init__(
        self,
        n_features: int,
        *,
        lambda_: float,
        dimension: int,
        reads: str = "batch",
        ridge: float = 0.0,
        beta: float | None = None,
        n_targets: int = 1,
    ) -> None:
        super().__init__(n_features, lambda_=lambda_, n_targets=n_targets)
        self._n_solved = 0
        self.dimension = parameters.integer("dimension", dimension)
        self.reads = parameters.choice("reads", reads, ("batch", "stream"))
        self.ridge = parameters.real("ridge", ridge, low=0.0, high=1e100)
        self.beta = None if beta is None else parameters.positive("beta", beta, high=1.0)
        self._store = SampleStore(self.n_features, lambda_=self.lambda_, beta=self.beta, n_targets=self.n_targets)
        self._stream = None
        if self.reads == "stream":
            self._stream = KrylovStream(self._store, self.dimension, self._operator)
        self._values: FloatArray | None = None

    @property
    def n_seen(self) -> int:
        """Number of distinct features seen so far."""
        return self._store.samples.n

    @property
    def bytes_per_sample(self) -> float:
        """Bytes that a further sample takes, room at the end included: what those that are kept take, and an eighth."""
        return 1.125 * self._store.nbytes / max(1, self._store.samples.n_kept)

    @property
    def n_updates(self) -> int:
        """Number of transitions learned from: those that were stored, also if an update was interrupted."""
        return self._store.samples.n_samples

    @n_updates.setter
    def n_updates(self, count: int) -> None:
        self._n_expected = count  # what a file says, to be compared with the samples in it

    def operator(self) -> SampleOperator:
        """A + ηD and b of the samples so far, over the features seen; :attr:`seen_ids` says which these are."""
        return self._operator(self._store.samples)

    def _operator(self, samples: Samples) -> SampleOperator:
        plain = SampleOperator(samples, lambda_=self.lambda_, beta=self.beta, n_targets=self.n_targets)
        return with_ridge(plain, self.ridge)

    @property
    def seen_ids(self) -> IntArray:
        """Ids of the features seen, in the order of the operator's rows; a copy."""
        return self._store.ids.copy()

    def _learn(self, batch: Batch) -> None:
        if self._stream is None:
            self._store.append(batch)
        else:
            self._stream.append(batch, self._values)

    def update_and_predict(self, transitions: Transitions) -> FloatArray:
        """Learn from transitions one by one; returns the value of each x_next right after its step.

        (N,) or (N, n_targets); for ``reads="stream"``. The same as ``update`` and ``predict`` in turn, in compiled
        loops.
        """
        if self._stream is None:
            raise InvalidParameterError(f'reads is {self.reads!r}: for values at every step use reads="stream"')
        values = np.zeros((len(transitions), self.n_targets))
        self._values = values
        try:
            self.update_many(transitions)
        finally:
            self._values = None
        return values[:, 0] if self.n_targets == 1 else values

    def _solve(self) -> tuple[IntArray, FloatArray]:
        if self._stream is not None:
            weights = self._stream.weights()
        else:
            operator = self.operator()
            arnoldi = Arnoldi(lambda V, columns: operator.matvec(V), operator.b())
            arnoldi.extend(self.dimension)
            weights = arnoldi.solutions(self.dimension)
        return self._store.first_ids(weights.shape[0]).copy(), weights

    def _solution(self) -> tuple[IntArray, FloatArray]:
        self._forget_old_solution()
        return super()._solution()

    def _forget_old_solution(self) -> None:
        """Drop the cached solution if samples were stored since, by an update that was interrupted perhaps."""
        if self._n_solved != self.n_updates:
            self._solved = None
            self._n_solved = self.n_updates

    def _predict_vector(self, x: Vector) -> FloatArray:
        self._forget_old_solution()
        if self._stream is None or self._solved is not None:
            return super()._predict_vector(x)
        return self._stream.predict(*vector_arrays(x))

    def _state(self) -> State:
        if self._stream is None:
            return {"samples": self._store.state()}
        return {"stream": self._stream.state(), "samples": self._store.state()}

    def _restore(self, saved: Saved) -> None:
        self._store.restore(saved.part("samples"))
        if self.n_updates != self._n_expected:
            raise saved.error("samples", f"are {self.n_updates} where the model has {self._n_expected} updates")
        if self._stream is not None:
            self._stream.restore(saved.part("stream"))
