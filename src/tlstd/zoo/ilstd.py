"""iLSTD(λ): LSTD's system in full, descended by a few coordinates per step instead of being solved."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tlstd.core import parameters
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.file_format import Saved, State
from tlstd.core.growing import enlarged
from tlstd.data.batch import Batch, CSRArrays, packed, vector_arrays
from tlstd.data.feature_index import FeatureIndex
from tlstd.data.kernels.sparse import add_weights
from tlstd.data.vectors import Vector
from tlstd.errors import CapacityError
from tlstd.estimators.base import Factory, synchronized
from tlstd.estimators.step_sizes import Decay, StepSize
from tlstd.estimators.stepping import SteppingEstimator
from tlstd.zoo.kernels import ilstd as kernels
from tlstd.zoo.kernels.ilstd import PAGE
from tlstd.zoo.paged_columns import PagedColumns
from tlstd.zoo.step_history import StepHistory

Array = TypeVar("Array", bound=NDArray[Any])

_MOVES = 256  # of coordinates, before every block of μ has to follow


class ILSTD(SteppingEstimator):
    """Incremental least squares: keeps A = Σ z_t d_tᵀ and μ = b - A w, and moves w where μ is largest.

    Every step adds its sample to the *sums* A = Σ z_t d_tᵀ and b = Σ z_t r_{t+1} (z the whole trace), so that
    μ += z (r - dᵀw), and then ``coordinates_per_step`` times takes the largest |μ_j| and does w_j += α_t μ_j,
    μ -= α_t μ_j A e_j. Nothing is solved: w follows LSTD's solution at a lag that falls with α, m and time. μ and A are
    kept across episodes; only the trace is cut.

    Parameters
    ----------
    n_features : int
        Number of features d; may be as large as 2**31 when features are sparse. Only features seen take memory.
    step_size : float, :class:`~tlstd.Decay` or callable t -> α_t
        Use ``Decay(alpha0, n0)``. The papers leave the normalisation open: A and μ are sums, not averages, so they grow
        with t, and α must fall about as 1/t. ``Decay`` tends to α₀ (N₀ + 1) / t. That a coordinate by itself contracts
        (α_t A_jj < 2) is necessary and not sufficient: a move of w_j adds up to α_t |A_ij| |μ_j| to every other |μ_i|.
        Keep α₀ (N₀ + 1) times the largest Σ_i |A_ij| of a column of the *averaged* A at or below 1, with N₀ >= 100 (see
        ``docs/estimators.md``). With larger steps, and sooner or later with a constant one, the weights may diverge.
        That is a result like any other: they become infinite or NaN and nothing is raised.
    lambda_ : float in [0, 1]
        Trace parameter; traces accumulate.
    coordinates_per_step : int
        The papers' m: how many coordinates are moved per step, at most 10,000. One may be taken several times.
    memory_limit : int
        Bytes that A, written out, may take before :class:`~tlstd.CapacityError` is raised and nothing has changed. What
        is held is usually far less.

    Notes
    -----
    Of equal |μ_j| the one with the lowest feature id is taken. ρ is supported, on the whole trace:
    z_t = ρ_t (γ_t λ z_{t-1} + x_t). There is one reward signal only: the coordinates are chosen by its residual, so a
    second one would need w, μ and choices of its own and could share A alone.

    An entry leaves the trace when it has decayed to 1e-16 of the largest value it had on it, about what rounding costs
    A anyway; otherwise A would fill up with numbers that mean nothing. A is stored in pages of its columns, see
    :class:`~tlstd.zoo.paged_columns.PagedColumns` for its fill.

    A column of A is read only when its coordinate is moved, and few coordinates ever are. With more than 1,024 features
    seen, what a step adds to a column that was not moved lately is therefore noted (32 bytes) and added when the
    column is wanted, or when there are n²/32 notes and entries of x, n features seen. Likewise μ is changed only where
    it may be largest, and everywhere at the end of a step. See :mod:`tlstd.zoo.kernels.ilstd`.

    Per step O(nnz(z) + nnz(d)) and, for the columns moved lately, O(nnz(z)) each; per coordinate O(n / 32) to find it
    and O(stored entries of its column) to move it. Dense features take O(n²) per step. ``docs/performance.md`` has what
    that comes to.

    References
    ----------
    Geramifard, Bowling, Sutton: Incremental Least-Squares Temporal Difference Learning. AAAI 2006.
    Geramifard, Bowling, Zinkevich, Sutton: iLSTD: Eligibility Traces and Convergence Analysis. NIPS 2006 (2007).

    Example
    -------
    >>> from tlstd import random_walk
    >>> from tlstd.estimators.step_sizes import Decay
    >>> chain = random_walk(n_states=5, gamma=0.9)
    >>> model = ILSTD(n_features=5, step_size=Decay(0.2, 10), lambda_=0.9, coordinates_per_step=2)
    >>> model.update_many(chain.sample(20_000, np.random.default_rng(0)))
    >>> bool(np.abs(model.predict(chain.X) - chain.values()).max() < 0.05)
    True
    """

    def __init__(
        self,
        n_features: int,
        *,
        step_size: StepSize,
        lambda_: float,
        coordinates_per_step: int = 1,
        memory_limit: int = 8 << 30,
    ) -> None:
        super().__init__(n_features, step_size=step_size, lambda_=lambda_, n_targets=1)
        self.coordinates_per_step = parameters.integer("coordinates_per_step", coordinates_per_step, high=10_000)
        self.memory_limit = parameters.integer("memory_limit", memory_limit)
        self._seen = FeatureIndex(self.n_features)
        self._A = PagedColumns(self.memory_limit)
        self._history = StepHistory()
        self._moved: IntArray = np.zeros(0, dtype=np.int64)  # the step at which each coordinate was moved last
        self._w: FloatArray = np.zeros(0)
        self._mu: FloatArray = np.zeros((0, PAGE))
        self._largest: FloatArray = np.zeros(0)  # |μ|, of each block of PAGE rows
        self._z: FloatArray = np.zeros((0, PAGE))
        self._tops: FloatArray = np.zeros((0, PAGE))  # the largest |z| since an entry joined the trace
        self._blocks: IntArray = np.zeros(0, dtype=np.int64)  # of the trace
        self._n_blocks: IntArray = np.zeros(1, dtype=np.int64)
        self._listed = np.zeros(0, dtype=np.bool_)
        self._scratch: IntArray = np.zeros(0, dtype=np.int64)
        self._progress: IntArray = np.zeros(2, dtype=np.int64)  # samples, and rows that they have reached

    def _count(self) -> int:
        return int(self._progress[0])

    @property
    @synchronized
    def n_seen(self) -> int:
        """Number of distinct features seen so far."""
        return len(self._seen)

    @synchronized
    def system(self) -> tuple[IntArray, FloatArray, FloatArray]:
        """The ids of the features seen, the *summed* A (n, n) over them and μ = b - A w (n,), as copies."""
        n, gather = len(self._seen), self._gather()
        A, history = copy.deepcopy((self._A, self._history))
        for j in range(n):
            A.make_room(n, 1)
            kernels.catch_up(j, history.arrays, A.arrays, gather)
        return self._seen.ids.copy(), A.toarray(n), self._mu.ravel()[:n].copy()

    def _begin(self, ids: IntArray, values: FloatArray) -> None:
        self._A.check(ids.size)
        self._seen, self._progress = FeatureIndex(self.n_features, ids), np.array([0, ids.size])
        self._grow()
        w = np.zeros(self._w.size)
        w[: ids.size] = values[:, 0]
        self._w = w

    def _learn(self, batch: Batch) -> None:
        self._run(batch, np.zeros((0, 1)))

    def _learn_and_predict(self, batch: Batch, values: FloatArray) -> None:
        self._run(batch, values)

    def _run(self, batch: Batch, values: FloatArray) -> None:
        """Learn; the value of each x_next after its step goes to ``values``, if that has rows."""
        # what may still be refused comes first: a step size, then the memory
        alphas = self.step_size.values(self._count() + 1, len(batch))
        x, x_next = self._make_room(batch)
        columns = np.array(batch.rewards[:, 0]), *self._discounting(batch), alphas
        moves = np.zeros(_MOVES, dtype=np.int64), np.zeros(_MOVES)
        work = self._work(x, x_next), self._gather(), moves, self._progress
        settled = np.zeros(len(self._mu), dtype=np.int64)
        step, why = 0, -1
        while why != kernels.DONE:
            step, why = kernels.run(
                step,
                x,
                x_next,
                columns,
                self.coordinates_per_step,
                self._trace(),
                (self._mu, self._largest, settled),
                self._w,
                self._seen.ids,
                self._A.arrays,
                self._history.arrays,
                self._moved,
                work,
                values,
            )
            if why != kernels.DONE:
                n_x, n_next = (int(v[0][step + 1] - v[0][step]) for v in (x, x_next))
                if why == kernels.MORE_PAGES:
                    self._A.make_room(len(self._seen), n_x + n_next + self.coordinates_per_step)
                else:
                    self._history.make_room(n_x + PAGE * int(self._n_blocks[0]), n_x + n_next)

    def _make_room(self, batch: Batch) -> tuple[CSRArrays, CSRArrays]:
        """Rows and pages for all that the batch will touch, or CapacityError and nothing changed.

        Returns x and x_next in row coordinates, one vector per transition.
        """
        x, rows, x_next, next_rows = batch.sparse()
        (indptr, ids, values), (next_indptr, next_ids, next_values) = packed(x, rows), packed(x_next, next_rows)
        # step by step, so that rows, and with them the memory, do not depend on how the stream is cut
        steps = np.concatenate([np.repeat(np.arange(len(batch)), c) for c in (np.diff(indptr), np.diff(next_indptr))])
        in_order = np.concatenate([ids, next_ids])[np.argsort(steps, kind="stable")]
        self._A.check(self._seen.count_with(in_order))
        n_known = len(self._seen)
        self._seen.insert(in_order)
        self._grow()
        in_rows = (indptr, self._seen.find(ids), values), (next_indptr, self._seen.find(next_ids), next_values)
        try:
            self._A.reserve(len(self._seen), *in_rows, *self._discounting(batch), self._trace(), self._work(*in_rows))
        except CapacityError:
            self._seen = FeatureIndex(self.n_features, self._seen.ids[:n_known])
            raise
        return in_rows

    def _grow(self) -> None:
        n, capacity = len(self._seen), self._w.size
        self._A.grow(n)
        if n <= capacity:
            return
        n_blocks = -(-max(n, capacity * 3 // 2) // PAGE)
        by_row, by_block = ("_w", "_scratch"), ("_mu", "_largest", "_z", "_tops", "_blocks", "_listed")
        longer = {name: enlarged(getattr(self, name), n_blocks * PAGE) for name in by_row}
        longer |= {name: enlarged(getattr(self, name), n_blocks) for name in by_block}
        self._history.grow(n_blocks * PAGE)
        moved = enlarged(self._moved, n_blocks * PAGE, fill=-kernels.RECENT)
        self.__dict__.update(longer, _moved=moved)

    def _mend(self) -> None:
        self._before = None  # what was learned up to now is in the arrays
        super()._mend()
        self._seen = FeatureIndex(
            self.n_features, self._seen.ids[: self._progress[1]]
        )  # rows come in the order of the samples
        self._A.mend()
        self._grow()
        self._scratch = np.zeros(self._scratch.size, dtype=np.int64)

    def _discounting(self, batch: Batch) -> tuple[FloatArray, FloatArray, FloatArray]:
        """γ_{t+1}, γ_t λ and ρ_t: copies, contiguous and writable, so that the kernels are compiled only once."""
        return np.array(batch.discounts), batch.trace_discounts * self.lambda_, np.array(batch.rhos)

    def _trace(self) -> tuple[Any, ...]:
        return self._z, self._tops, self._blocks, self._n_blocks, self._listed

    def _work(self, x: CSRArrays, x_next: CSRArrays) -> tuple[IntArray, IntArray, FloatArray]:
        width = int(np.diff(x[0]).max() + np.diff(x_next[0]).max())
        return self._scratch, np.zeros(width, dtype=np.int64), np.zeros(width)

    def _gather(self) -> tuple[FloatArray, NDArray[np.bool_], IntArray]:
        n_blocks = len(self._mu)
        return np.zeros((n_blocks, PAGE)), np.zeros(n_blocks, dtype=np.bool_), np.zeros(n_blocks, dtype=np.int64)

    def _solve(self) -> tuple[IntArray, FloatArray]:
        return self._seen.ids.copy(), self._w[: len(self._seen), None].copy()

    def _predict_vector(self, x: Vector) -> FloatArray:
        out = np.zeros(1)
        add_weights(*self._seen.lookup(*vector_arrays(x)), self._w[:, None], out)
        return out

    def _is_solved(self) -> bool:
        return True

    def _state(self) -> State:
        n = len(self._seen)
        return {
            "n_samples": self._count(),
            "seen": self._seen.state(),
            "A": self._A.state(n),
            "history": self._history.state(),
            "moved": self._moved[:n],
            "w": self._w[:n],
            "mu": self._mu.ravel()[:n],
            "z": self._z.ravel()[:n],
            "tops": self._tops.ravel()[:n],
            "blocks": self._blocks[: self._n_blocks[0]],
        }

    def _restore(self, saved: Saved) -> None:
        self._seen.restore(saved.part("seen"))
        n = len(self._seen)
        self._progress[:] = saved.integer("n_samples"), n
        self._A.restore(saved.part("A"), n)
        self._history.restore(saved.part("history"), n)
        self._grow()
        n_blocks = -(-n // PAGE)
        self._moved[:n] = saved.integers("moved", n, low=-kernels.RECENT, high=self._count())
        self._w[:n], self._mu.ravel()[:n] = saved.floats("w", n), saved.floats("mu", n)
        self._largest[:n_blocks] = np.abs(self._mu[:n_blocks]).max(axis=1)
        self._z.ravel()[:n], self._tops.ravel()[:n] = saved.floats("z", n), saved.floats("tops", n, low=0.0)
        blocks = saved.integers("blocks", None, low=0, high=n_blocks - 1)
        self._listed[blocks] = True
        if self._listed.sum() != blocks.size:  # a block listed twice would let a kernel write past the end
            raise saved.error("blocks", "has a block twice")
        if (np.abs(self._z) > self._tops).any() or self._tops[~self._listed].any():
            raise saved.error("tops", "does not fit the trace")
        self._blocks[: blocks.size] = blocks
        self._n_blocks[0] = blocks.size


EXAMPLES: dict[str, Factory] = {
    "ILSTD": lambda n_features, **options: ILSTD(
        n_features, step_size=Decay(0.1, 10), lambda_=0.7, coordinates_per_step=2, **options
    ),
}
