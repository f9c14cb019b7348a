"""LSTD(λ) with a left-sided sketch: r random combinations of LSTD's equations, all of its unknowns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tlstd.classic.merged_systems import Rows
from tlstd.core import parameters
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.file_format import Saved, State
from tlstd.core.growing import enlarged
from tlstd.core.svd import solve_truncated
from tlstd.core.threads import one_thread
from tlstd.data.batch import Batch, entries
from tlstd.data.feature_index import FeatureIndex
from tlstd.errors import CapacityError
from tlstd.estimators.base import Factory, LinearEstimator, synchronized
from tlstd.zoo.kernels.sketch import accumulate_left
from tlstd.zoo.sketch import Sketch

_STEPS = 1024  # between two moments at which learning can be interrupted


class SketchedLSTD(LinearEstimator):
    """LSTD(λ) from r random combinations of its equations: the shortest w of least ‖S b - S A w‖, for S (r × d).

    Where :class:`~tlstd.ProjectedLSTD` projects the features, and so decides what can be represented, this one keeps
    all of them and asks for fewer equations, of which the shortest solution is taken: w = (SA)⁺ S b. If no more
    features were seen than r it is LSTD.

    Parameters
    ----------
    n_features : int
        Number of features d. Only features that were seen take memory.
    dimension : int
        r, the number of equations.
    lambda_ : float in [0, 1]
        Trace parameter; traces accumulate.
    nonzeros : int, optional
        s, the non-zeros in each column of S, ±1/√s, from 1 to ``dimension``; 4 by default.
    seed : int >= 0
        Of S, which is computed from feature ids by a hash and never stored.
    rcond : float in [0, 1)
        Singular values of SA at or below ``rcond`` times the largest are not inverted.
    n_targets : int
        Number of reward signals.
    memory_limit : int
        Bytes that SA may take before :class:`~tlstd.CapacityError` is raised and nothing has changed.

    Notes
    -----
    O(nnz·(r + s)) per sample and 8·n·r bytes, n the features seen; O(n·r²) per solution, when weights are read. The
    publication updates the pseudo-inverse of SA from sample to sample, at O(n·r) each, and uses it as a preconditioner
    for steps along the TD error too; for that see :class:`~tlstd.ATD`.

    References
    ----------
    Pan, Sadeqi Azer, White: Effective sketching methods for value function approximation. UAI 2017.

    Example
    -------
    >>> import numpy as np
    >>> from tlstd import SketchedLSTD, boyan_chain
    >>> chain = boyan_chain()
    >>> model = SketchedLSTD(4, dimension=8, lambda_=0.0)
    >>> model.update_many(chain.sample(20_000, np.random.default_rng(0)))
    >>> bool(np.abs(model.weights - [-24, -16, -8, 0]).max() < 0.5)
    True
    """

    def __init__(
        self,
        n_features: int,
        dimension: int,
        *,
        lambda_: float,
        nonzeros: int | None = None,
        seed: int = 0,
        rcond: float = 1e-4,
        n_targets: int = 1,
        memory_limit: int = 8 << 30,
    ) -> None:
        super().__init__(n_features, lambda_=lambda_, n_targets=n_targets)
        self._sketch = Sketch.checked(dimension, nonzeros, seed)
        self.dimension, _, self.seed = self._sketch
        self.nonzeros = None if nonzeros is None else self._sketch.nonzeros
        self.rcond = parameters.real("rcond", rcond, low=0.0, high=1.0, open_high=True)
        self.memory_limit = parameters.integer("memory_limit", memory_limit)
        parameters.check_memory(
            f"dimension is {self.dimension} with n_targets={self.n_targets}",
            8 * self.dimension * self.n_targets,
            "the right side of its system",
            remedy="use a smaller dimension or fewer targets",
        )
        self._seen = FeatureIndex(self.n_features)
        self._M: FloatArray = np.zeros((0, self.dimension))  # (SA)ᵀ, with room below
        self._b: FloatArray = np.zeros((self.dimension, self.n_targets))
        self._z: FloatArray = np.zeros(self.dimension)
        self._progress: IntArray = np.zeros(1, dtype=np.int64)  # samples that these hold

    def _count(self) -> int:
        return int(self._progress[0])

    @property
    @synchronized
    def n_seen(self) -> int:
        """Number of distinct features seen so far."""
        return len(self._seen)

    @synchronized
    def system(self) -> tuple[IntArray, FloatArray, FloatArray]:
        """Ids of the features seen, the averaged SA (r, n) over them and Sb (r, n_targets), as copies."""
        factor, n = 1.0 / max(1, self._count()), len(self._seen)
        return self._seen.ids.copy(), factor * self._M[:n].T, factor * self._b

    def _check_batch(self, batch: Batch) -> None:
        n = self._seen.count_with(batch.ids())
        if 8 * n * self.dimension > self.memory_limit:
            raise CapacityError(
                f"{n} distinct features need {8e-9 * n * self.dimension:.1f} GB for SA, over the limit of "
                f"{1e-9 * self.memory_limit:.1f} GB: lower dimension, or raise memory_limit"
            )

    def _learn(self, batch: Batch) -> None:
        x, rows, x_next, next_rows = batch.sparse()
        decays = batch.trace_discounts * self.lambda_
        for start in range(0, len(batch), _STEPS):
            part = slice(start, start + _STEPS)
            ids, next_ids = entries(x, rows[part]), entries(x_next, next_rows[part])
            self._seen.insert(ids)
            self._seen.insert(entries(x_next, next_rows[part][batch.discounts[part] != 0.0]))
            self._grow()
            accumulate_left(
                *(x, rows[part], self._seen.find(ids), x_next, next_rows[part], self._seen.find(next_ids)),
                (batch.discounts[part], decays[part], batch.rhos[part], batch.rewards[part]),
                *(self.seed, self._sketch.nonzeros, self._z, self._M, self._b, self._progress),
            )

    def _grow(self) -> None:
        n, capacity = len(self._seen), self._M.shape[0]
        if n > capacity:
            room = min(capacity * 3 // 2, self.n_features, self.memory_limit // (8 * self.dimension))
            self._M = enlarged(self._M, max(n, room))

    def _mend(self) -> None:
        self._before = None  # what was learned up to now is in the arrays
        super()._mend()
        self._seen.mend()
        self._grow()

    def _solve(self) -> tuple[IntArray, FloatArray]:
        n = len(self._seen)
        with one_thread(4.0 * n * self.dimension**2):
            return self._seen.ids.copy(), solve_truncated(self._M[:n].T, self._b, rcond=self.rcond)

    def _merged_state(self, other: SketchedLSTD) -> State:
        first, second = self._state(), other._state()
        rows = Rows(self._seen.ids, other._seen.ids)
        M, z = rows.lengthened(first["M"]) + rows.widened(second["M"]), second["z"] if other.n_updates else first["z"]
        return {"seen": {"ids": rows.ids}, "M": M, "b": first["b"] + second["b"], "z": z}

    @classmethod
    def _check_sizes(cls, parameters: Mapping[str, Any], saved: Saved) -> None:
        if saved.shape("b") != (parameters.get("dimension"), parameters.get("n_targets")):
            raise saved.error("b", "does not have the sizes that the parameters say")

    def _state(self) -> State:
        return {"seen": self._seen.state(), "M": self._M[: len(self._seen)], "b": self._b, "z": self._z}

    def _restore(self, saved: Saved) -> None:
        self._seen.restore(saved.part("seen"))
        n = len(self._seen)
        self._M = saved.floats("M", n, self.dimension)
        self._b = saved.floats("b", self.dimension, self.n_targets)
        self._z = saved.floats("z", self.dimension)
        self._progress[0] = self._n_updates
        if n and not self._n_updates:
            raise saved.error("seen", f"has {n} features where there were no samples")


EXAMPLES: dict[str, Factory] = {
    "SketchedLSTD": lambda n_features, **options: SketchedLSTD(n_features, 8, lambda_=0.7, **options),
}
