"""SwiftTD: true-online TD(λ) that adapts a step size for every feature."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tlstd.core import parameters
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.file_format import Saved, State
from tlstd.core.growing import enlarged
from tlstd.data.batch import Batch, vector_arrays
from tlstd.data.feature_index import FeatureIndex, RowArray
from tlstd.data.loop_vectors import end_of_part, rows_of, vectors_of
from tlstd.data.transitions import Transition
from tlstd.data.vectors import SparseVector, Vector
from tlstd.errors import InvalidInputError, InvalidParameterError
from tlstd.estimators.base import Factory, LinearEstimator, synchronized
from tlstd.zoo.kernels import swift_td as kernels


class SwiftTD(LinearEstimator):
    """True-online TD(λ) with a step size α_i for every feature, which follow the gradient of the squared error.

    With v = w·x_t and v' = w·x_{t+1} before the update, v_old the v' of the step before, g = γ_t λ, E = Σ α_i x_i² and
    a = min(1, η/E), a step is, for every feature i,

        z^δ = a α x,   T = g z·x,   z ← g z + z^δ (1 - T),   p ← g p + h_old x,   z̄ ← g z̄ + z^δ (1 - T - g z̄ x)
        δ = r_{t+1} + γ_{t+1} v' - v_old,   w ← w + δ z - z^δ (v - v_old)
        α ← min(η, α exp(θ (δ - v + v_old) p / α))
        (h_old, h) ← (h, h - h_old x (z - z^δ) - h z^δ x + δ z̄ - z^δ (v - v_old))

    where h = ∂w/∂ln α and z̄ = ∂z/∂ln α; where a trace starts (g = 0) v_old is v and h_old is h. Where E > η (a step
    would overshoot), α_i decays by ε^(x_i²) before it is adapted, and h, h_old and z̄ of the active features become 0.

    Parameters
    ----------
    n_features : int
        Number of features d; may be as large as 2**31 when features are sparse.
    lambda_ : float in [0, 1]
        Trace parameter.
    initial_step_size : float in [1e-10, rate_bound]
        α_i of a feature that was never active.
    meta_step_size : float >= 0
        θ. The unit is that of 1 / (reward)²: with rewards 10 times as large, take θ 100 times smaller. With 0 step
        sizes only decay.
    rate_bound : float in (0, 1]
        η: a step brings the value of its features no closer to the target than by this share of the error.
    step_size_decay : float in (0, 1]
        ε.
    trace_cutoff : float in [0, 1)
        A feature leaves the trace when it has decayed by this factor since it was last active.

    Notes
    -----
    Time O(nnz + trace) per sample, where the trace has the features that were active within ln(trace_cutoff) / ln(γλ)
    steps; memory in the features seen, 60 to 100 bytes each. Dense features are taken as sparse ones.

    One target: targets could not share traces that have the step sizes in them. On-policy only, as
    :class:`~tlstd.TrueOnlineTD`: a transition with ``rho`` other than 1 is refused.

    The order of h and h_old, and a smallest step size (1e-10), are those of the authors' package ``swifttd`` 0.2.0. It
    differs from its own first version, where h was one step late; and for features other than 0 and 1 its sparse class
    has a factor x outside the bracket of z̄, where the derivative, and its dense class, have it inside. When the bound
    is met its sparse classes forget h before x is added to p and z̄, its dense class, as here, after; but that forgets
    the h of all features. ``docs/estimators.md`` says what was compared.

    References
    ----------
    Javed, Sharifnassab, Sutton: SwiftTD: a fast and robust algorithm for temporal difference learning. Reinforcement
    Learning Journal 2, 2024.

    Example
    -------
    >>> from tlstd import random_walk
    >>> walk = random_walk(n_states=5, gamma=0.9)
    >>> model = SwiftTD(n_features=5, lambda_=0.5)
    >>> model.update_many(walk.sample(20_000, np.random.default_rng(0)))
    >>> bool(np.abs(model.predict(walk.X) - walk.values()).max() < 0.1)
    True
    """

    def __init__(
        self,
        n_features: int,
        *,
        lambda_: float,
        initial_step_size: float = 0.01,
        meta_step_size: float = 1e-3,
        rate_bound: float = 0.1,
        step_size_decay: float = 0.99,
        trace_cutoff: float = 1e-3,
    ) -> None:
        super().__init__(n_features, lambda_=lambda_, n_targets=1)
        self.initial_step_size = parameters.real("initial_step_size", initial_step_size, low=kernels.SMALLEST, high=1.0)
        self.meta_step_size = parameters.real("meta_step_size", meta_step_size, low=0.0, high=1e100)
        self.rate_bound = parameters.real("rate_bound", rate_bound, low=kernels.SMALLEST, high=1.0)
        self.step_size_decay = parameters.real("step_size_decay", step_size_decay, low=0.0, high=1.0, open_low=True)
        self.trace_cutoff = parameters.real("trace_cutoff", trace_cutoff, low=0.0, high=0.999)
        if self.initial_step_size > self.rate_bound:
            raise InvalidParameterError(
                f"initial_step_size is {initial_step_size} but rate_bound is {rate_bound}: step sizes stay below the "
                "bound, so begin below it"
            )
        self._seen = FeatureIndex(self.n_features)
        self._rows: FloatArray = np.array([[0.0, self.initial_step_size, 0.0]])
        self._slot_of: IntArray = np.full(1, -1)
        self._slots: FloatArray = np.zeros((kernels.LINES, 16))
        self._row_of: IntArray = np.zeros(16, dtype=np.int64)
        self._counts: IntArray = np.array([0, 0])  # slots in use, samples
        self._numbers: FloatArray = np.array([1.0, 0.0])  # P, v_old

    def _count(self) -> int:
        return self._counts.item(1)

    @property
    @synchronized
    def n_seen(self) -> int:
        """Number of distinct features that were active at the start of a step (each has a weight and a step size)."""
        return len(self._seen)

    @property
    @synchronized
    def step_sizes(self) -> SparseVector:
        """The step sizes α_i of the features seen; all others have ``initial_step_size``.

        Example
        -------
        >>> model = SwiftTD(100, lambda_=0.9, meta_step_size=0.0)
        >>> x, x_next = SparseVector([7], [1.0], 100), SparseVector([8], [1.0], 100)
        >>> model.update(Transition(x, 1.0, x_next, discount=0.9, trace_discount=0.9))
        >>> model.step_sizes
        SparseVector(nnz=1, size=100)
        """
        ids = self._seen.ids
        order = np.argsort(ids)
        return SparseVector._trusted(ids[order], self._read(self._every_row(), 1)[order], self.n_features)

    @property
    def _settings(self) -> tuple[float, float, float, float, float]:
        cutoff = max(self.trace_cutoff, 1e-200)  # beyond, products would be subnormal: slow, and worth nothing
        decay = math.log(self.step_size_decay)
        return self.meta_step_size, self.rate_bound, decay, self.initial_step_size, cutoff

    # --- learning ---------------------------------------------------------------------------------------------------

    def _check_batch(self, batch: Batch) -> None:
        ratios = np.flatnonzero(batch.rhos != 1.0)
        if ratios.size:
            raise InvalidInputError(
                f"rho is {batch.rhos[ratios[0]]} at step {ratios[0]} of this call: SwiftTD is on-policy, so rho must "
                "be 1; use TDRC, LSTD or KrylovLSTD for off-policy data"
            )

    def _learn(self, batch: Batch) -> None:
        self._learn_and_predict(batch, np.zeros((0, 1)))

    def _learn_and_predict(self, batch: Batch, values: FloatArray) -> None:
        start = 0
        while start < len(batch):
            stop = end_of_part(batch, start, self.n_features)
            self._learn_part(batch.part(start, stop), values[start:stop])
            start = stop

    def _learn_part(self, part: Batch, values: FloatArray) -> None:
        vectors = vectors_of(part)
        ids = rows_of(vectors, self._seen)
        self._grow()
        in_rows = (vectors.indptr, ids, vectors.values, vectors.first, vectors.second)
        steps = np.stack([part.discounts, part.trace_discounts * self.lambda_])
        rewards, begin = np.array(part.rewards), 0
        while begin < len(part):
            state = (self._slots, self._rows, self._slot_of, self._row_of, self._counts, self._numbers)
            begin = kernels.learn(in_rows, steps, rewards, *state, self._settings, values, begin)
            if begin < len(part):
                most = int(np.diff(vectors.indptr).max())
                self._add_slots(max(most, self._row_of.size // 2))

    def _learn_one(self, t: Transition) -> bool:
        x, x_next = t.x, t.x_next
        if (
            type(x) is not SparseVector
            or type(x_next) is not SparseVector
            or x.size != self.n_features
            or type(t.reward) is not float
            or t.rho != 1.0
        ):
            return False
        rows, missing = self._seen.places(x.indices)
        if missing:
            return False
        return kernels.learn_one(  # type: ignore[no-any-return]
            rows,
            x.values,
            self._seen.places(x_next.indices)[0],
            x_next.values,
            self._slots,
            self._rows,
            self._slot_of,
            self._row_of,
            self._counts,
            self._numbers,
            self._settings,
            self._bound,
            t.reward,
            t.discount,
            t.trace_discount * self.lambda_,
        )

    def _grow(self) -> None:
        """Make room for all rows."""
        capacity, needed = self._slot_of.size, 1 + len(self._seen)
        if needed > capacity:
            size = max(needed, min(capacity * 3 // 2, 1 + self.n_features))
            rows, slot_of = enlarged(self._rows, size), enlarged(self._slot_of, size)
            rows[capacity:], slot_of[capacity:] = (0.0, self.initial_step_size, 0.0), -1
            self.__dict__.update(_rows=rows, _slot_of=slot_of)

    def _add_slots(self, more: int) -> None:
        size = self._row_of.size + more
        slots: FloatArray = np.zeros((kernels.LINES, size))
        slots[:, : self._row_of.size] = self._slots
        self.__dict__.update(_slots=slots, _row_of=enlarged(self._row_of, size))

    def _mend(self) -> None:
        self._before = None  # what was learned up to now is in the arrays
        super()._mend()
        self._seen.mend()
        self._grow()

    # --- saving -----------------------------------------------------------------------------------------------------

    def _state(self) -> State:
        every, n = self._every_row(), self._counts[0]
        y, q, y_bar, _, _, _, h_old, fade, _ = self._slots[:, :n].copy()
        return {
            "seen": self._seen.state(),
            "w": self._read(every, 0),
            "alpha": self._read(every, 1),
            "h": self._read(every, 2),
            "active": self._row_of[:n] - 1,
            "traces": np.stack([y, q, y_bar, h_old, fade]),
            "numbers": self._numbers,
        }

    def _restore(self, saved: Saved) -> None:
        self._seen.restore(saved.part("seen"))
        self._counts[1] = self._n_updates
        n = len(self._seen)
        self._grow()
        w, h = saved.floats("w", n), saved.floats("h", n)
        alpha = saved.floats("alpha", n, low=kernels.SMALLEST, high=self.rate_bound)
        self._rows[1 : 1 + n] = np.stack([w, alpha, h], axis=1)
        active = 1 + saved.integers("active", None, low=0, high=n - 1)
        if np.unique(active).size != active.size:
            raise saved.error("active", "has a feature twice")
        traces, numbers = saved.floats("traces", 5, active.size), saved.floats("numbers", 2)
        if not 1.0 / 64.0 <= numbers[0] <= 1.0:
            raise saved.error("numbers", f"begins with {numbers[0]}, outside [1/64, 1]")
        self._add_slots(active.size)
        self._slots[[0, 1, 2, 6, 7], : active.size] = traces
        self._slots[3:6, : active.size] = self._rows[active].T
        self._row_of[: active.size] = active
        self._slot_of[active] = np.arange(active.size)
        self._counts[0] = active.size
        self._numbers[:] = numbers

    # --- reading ----------------------------------------------------------------------------------------------------

    def _every_row(self) -> RowArray:
        return np.arange(1, 1 + len(self._seen), dtype=np.uint32)

    def _read(self, rows: RowArray, line: int) -> FloatArray:
        """w (line 0), α (1) or h (2) of rows."""
        out = np.empty(rows.size)
        kernels.weights(rows, self._slots, self._rows, self._slot_of, line, out)
        return out

    def _solve(self) -> tuple[IntArray, FloatArray]:
        return self._seen.ids.copy(), self._read(self._every_row(), 0)[:, None]

    def _predict_vector(self, x: Vector) -> FloatArray:
        indices, values = vector_arrays(x)
        total: NDArray[np.float64] = np.array([values @ self._read(self._seen.places(indices)[0], 0)])
        return total


EXAMPLES: dict[str, Factory] = {
    "SwiftTD": lambda n_features, **options: SwiftTD(n_features, lambda_=0.7, **options),
}
