"""Krylov LSTD(λ): least squares over the stored samples, at a price near TD's and without a step size."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

from tlstd.classic import merged_systems
from tlstd.core import parameters
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.file_format import Saved, State
from tlstd.data.batch import Batch, vector_arrays
from tlstd.data.transitions import Transition
from tlstd.data.vectors import SparseVector, Vector
from tlstd.errors import InvalidInputError
from tlstd.estimators.base import Factory, synchronized
from tlstd.krylov.choice import DimensionChoice, choose_dimensions
from tlstd.krylov.folding import Folding
from tlstd.krylov.operator import SampleOperator
from tlstd.krylov.sample_keeper import SampleKeeper
from tlstd.krylov.samples import Samples, SampleStore
from tlstd.krylov.stream import KrylovStream

STREAM_SAMPLES = 16_384
"""Samples that ``reads="stream"`` keeps by default."""
FOLD_DIMENSION = 60
"""Dimension of the space on which folded samples are exact where the solution's is chosen."""

Auto: TypeAlias = Literal["auto"]
Reads: TypeAlias = Literal["batch", "stream"]


class KrylovLSTD(SampleKeeper):
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
    dimension : "auto" or int
        Dimension of the Krylov space. By default it is chosen by the errors for held-out data, with five folds of
        episodes (or blocks of a stream): when weights are read, and with ``reads="stream"`` whenever samples have
        doubled. Once samples have been folded (``max_samples``), by how well each dimension has predicted samples that
        came later. ``choices`` has the scores. Where the data cannot tell (too few samples or episodes, ratios too
        uneven) it is the cube root of the number of samples, at most 20, and ``choices`` says so. A given dimension is
        used as it is.
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
    max_samples : int >= 2, optional
        Number of samples that are kept. Whenever so many are there, the older half of them is *folded*: of their
        matrix only the products with a basis of the Krylov space are kept, on which it is exact (see
        :class:`tlstd.krylov.folding.Folding`). That bounds memory, by the samples and O(features seen · dimension).
        By default ``"batch"`` keeps all samples and ``"stream"`` keeps ``STREAM_SAMPLES``.
    n_targets : int
        Number of reward signals. Each has its own Krylov space.

    Notes
    -----
    An update stores the sample: 4·nnz + 36 bytes for one with nnz features of value 1 on a trajectory (see
    :class:`tlstd.krylov.samples.SampleStore` for others). The first read after an update takes O(dimension ·
    (entries stored + features seen · dimension)); further reads are free.

    Folding is on a basis of max(32, 2 · dimension) vectors for each target (``FOLD_DIMENSION`` with "auto"). It keeps
    two numbers for each of them and feature seen, and takes, once in max_samples/2 updates, as long as a read of that
    dimension.

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
        dimension: int | Auto = "auto",
        reads: Reads = "batch",
        ridge: float = 0.0,
        beta: float | None = None,
        max_samples: int | None = None,
        n_targets: int = 1,
    ) -> None:
        super().__init__(n_features, lambda_=lambda_, n_targets=n_targets)
        self._fixed: int | None = None
        if isinstance(dimension, str):
            parameters.choice("dimension", dimension, get_args(Auto), why=" or an integer >= 1")
        else:
            self._fixed = dimension = parameters.integer("dimension", dimension, why=' or "auto"')
        self.dimension: int | Auto = dimension
        self.reads: Reads = parameters.choice("reads", reads, get_args(Reads))
        self.ridge = parameters.real("ridge", ridge, low=0.0, high=1e100)
        self.beta = None if beta is None else parameters.positive("beta", beta, high=1.0)
        self.max_samples = None if max_samples is None else parameters.integer("max_samples", max_samples, low=2)
        self._store = SampleStore(
            self.n_features,
            lambda_=self.lambda_,
            beta=self.beta,
            n_targets=self.n_targets,
            max_samples=STREAM_SAMPLES if self.max_samples is None and self.reads == "stream" else self.max_samples,
            fold=Folding(
                self._operator,
                FOLD_DIMENSION if self._fixed is None else max(32, 2 * self._fixed),
                choosing=self._fixed is None,
            ),
        )
        self._stream = None
        if self.reads == "stream":
            self._stream = KrylovStream(self._store, self._fixed, self._operator)

    @synchronized
    def operator(self) -> SampleOperator:
        """A + ηD and b of the samples so far, over the features seen; :attr:`seen_ids` says which these are."""
        return self._operator(self._store.samples)

    def _operator(self, samples: Samples) -> SampleOperator:
        plain = SampleOperator(samples, lambda_=self.lambda_, beta=self.beta, n_targets=self.n_targets)
        return plain.with_ridge(self.ridge)

    @property
    @synchronized
    def seen_ids(self) -> IntArray:
        """Ids of the features seen, in the order of the operator's rows; a copy."""
        return self._store.ids.copy()

    def _learn(self, batch: Batch) -> None:
        if self._stream is None:
            self._store.append(batch)
        else:
            self._stream.append(batch)

    def _learn_one(self, t: Transition) -> bool:
        own, stream = self.__dict__, self._stream
        if stream is None or type(t.reward) is not float or own["n_targets"] != 1 or t.x.size != own["n_features"]:
            return False
        return stream.append_one(t, own["_bound"])

    def _learn_and_predict(self, batch: Batch, values: FloatArray) -> None:
        if self._stream is None:
            super()._learn_and_predict(batch, values)
        else:
            self._stream.append(batch, values)

    def _solve(self) -> tuple[IntArray, FloatArray]:
        if self._stream is not None:
            weights = self._stream.weights()
            return self._store.ids.copy(), weights
        operator = self._operator(self._store.samples)
        dimensions = self._dimensions(operator)
        return self._store.ids.copy(), operator.solve(dimensions)

    def _dimensions(self, operator: SampleOperator) -> list[int]:
        """The dimension for each target."""
        if self._fixed is not None:
            return [self._fixed] * self.n_targets
        self._reading = choose_dimensions(operator)
        return [choice.dimension for choice in self._reading]

    @property
    @synchronized
    def choices(self) -> tuple[DimensionChoice, ...]:
        """For each target what ``dimension="auto"`` has chosen, with the scores; empty for a given dimension.

        ``model.choices[0].plot(axes)`` draws the curve of scores.
        """
        if self._fixed is not None or not self._count():
            return ()
        if self._stream is not None:
            self._stream.catch_up()
            return self._stream.choices
        if self._reading is None:
            self._dimensions(self._operator(self._store.samples))
        chosen: tuple[DimensionChoice, ...] = self._reading
        return chosen

    @property
    def chosen_dimension(self) -> int | tuple[int, ...]:
        """The dimension in use, for several targets one each; 0 before the first sample of a model that chooses."""
        if self._fixed is not None:
            return self._fixed
        dimensions = tuple(choice.dimension for choice in self.choices) or (0,) * self.n_targets
        return dimensions[0] if self.n_targets == 1 else dimensions

    def _value(self, x: SparseVector) -> Any:
        stream, own = self._stream, self.__dict__
        return stream.value(x) if stream is not None and own["n_targets"] == 1 else super()._value(x)

    def _is_solved(self) -> bool:
        return self._stream is None and self._solved is not None

    def _predict_vector(self, x: Vector) -> FloatArray:
        return super()._predict_vector(x) if self._stream is None else self._stream.predict(*vector_arrays(x))

    def _merged_state(self, other: KrylovLSTD) -> State:
        self._refuse_to_merge_with_beta(self.beta)
        if self._stream is not None or self.max_samples is not None:
            raise InvalidInputError(
                'models with reads="stream" or max_samples cannot be merged, because of samples that were folded only '
                "products are left: merge models that keep all samples"
            )
        return {"samples": merged_systems.kept_samples(self._store.state(), other._store.state(), self.n_features)}

    def _state(self) -> State:
        if self._stream is None:
            return {"samples": self._store.state()}
        return {"stream": self._stream.state(), "samples": self._store.state()}

    def _restore(self, saved: Saved) -> None:
        self._store.restore(saved.part("samples"))
        if self._stream is not None:
            self._stream.restore(saved.part("stream"))


EXAMPLES: dict[str, Factory] = {
    "KrylovLSTD": lambda n_features, **options: KrylovLSTD(n_features, lambda_=0.7, **options),
    "KrylovLSTD (stream)": lambda n_features, **options: KrylovLSTD(
        n_features, lambda_=0.7, dimension=8, reads="stream", **options
    ),
    "KrylovLSTD (max_samples)": lambda n_features, **options: KrylovLSTD(
        n_features, lambda_=0.7, max_samples=32, **options
    ),
}
