"""LSTD(λ) with random projections: least squares over r random combinations of the features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tlstd.classic.kernels.lstd import traces
from tlstd.classic.merged_systems import Rows
from tlstd.core import parameters
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.file_format import Saved, State
from tlstd.core.svd import solve_truncated
from tlstd.core.threads import one_thread
from tlstd.data.batch import Batch
from tlstd.data.feature_index import FeatureIndex
from tlstd.estimators.base import Factory, LinearEstimator, synchronized
from tlstd.zoo.sketch import Sketch

_BLOCK = 256


class ProjectedLSTD(LinearEstimator):
    """LSTD(λ) on the features Sx, for a random S (r × d): solves (S A Sᵀ) y = S b, and has the weights w = Sᵀy.

    The system is as small as r, whatever the number of features. What is lost is bias: only value functions of the form
    yᵀSx can be represented, and what features collide in is decided by chance, not by the data (as the subspace of
    :class:`~tlstd.TLSTD` is). :class:`~tlstd.SketchedLSTD` projects the equations only.

    Parameters
    ----------
    n_features : int
        Number of features d; may be as large as 2**62 when features are sparse.
    dimension : int
        r, the number of random features.
    lambda_ : float in [0, 1]
        Trace parameter; traces accumulate, which is the same before and after the projection.
    nonzeros : int, optional
        s, the non-zeros in each column of S, ±1/√s, from 1 to ``dimension``; 4 by default. With ``dimension`` of them
        all entries are ±1/√r.
    seed : int >= 0
        Of S, which is computed from feature ids by a hash and never stored.
    rcond : float in [0, 1)
        Singular values of S A Sᵀ at or below ``rcond`` times the largest are not inverted.
    beta : float in (0, 1), optional
        Constant weight of a new sample, for tracking; by default all samples weigh the same.
    n_targets : int
        Number of reward signals.

    Notes
    -----
    O(nnz·s + r²) per sample, the second by matrix products of blocks; O(r³ + n·s) per solution, n the features seen.
    Memory 8·r² bytes, and about 50 for each feature seen: only these have a weight, though Sᵀy has one for all.

    Departures from the publication, which analyses batches with λ=0: λ, forgetting, ratios; sparse signs in place of a
    Gaussian matrix, so that a sample does not cost O(nnz·r) random numbers; and singular values are cut off.

    References
    ----------
    Ghavamzadeh, Lazaric, Maillard, Munos: LSTD with random projections. NIPS 2010.
    Kane, Nelson: Sparser Johnson–Lindenstrauss transforms. Journal of the ACM 61, 2014.

    Example
    -------
    >>> import numpy as np
    >>> from tlstd import ProjectedLSTD, boyan_chain
    >>> chain = boyan_chain()
    >>> model = ProjectedLSTD(4, dimension=20, lambda_=0.0)
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
        beta: float | None = None,
        n_targets: int = 1,
    ) -> None:
        super().__init__(n_features, lambda_=lambda_, n_targets=n_targets)
        self._sketch = Sketch.checked(dimension, nonzeros, seed)
        self.dimension, _, self.seed = self._sketch
        self.nonzeros = None if nonzeros is None else self._sketch.nonzeros
        parameters.check_memory(
            f"dimension is {self.dimension}",
            8 * self.dimension * (self.dimension + self.n_targets),
            "its system",
            remedy="use a smaller dimension",
        )
        self.rcond = parameters.real("rcond", rcond, low=0.0, high=1.0, open_high=True)
        self.beta = None if beta is None else parameters.positive("beta", beta, high=1.0)
        self._seen = FeatureIndex(self.n_features)
        self._n_seen = 0  # of which these are of samples that have been learned from
        self._A: FloatArray = np.zeros((self.dimension, self.dimension))
        self._b: FloatArray = np.zeros((self.dimension, self.n_targets))
        self._z: FloatArray = np.zeros(self.dimension)

    @property
    @synchronized
    def n_seen(self) -> int:
        """Number of distinct features seen so far."""
        return self._n_seen

    @synchronized
    def system(self) -> tuple[FloatArray, FloatArray]:
        """S A Sᵀ (r, r) and S b (r, n_targets) of the averaged (or exponentially weighted) system, as copies."""
        factor = 1.0 / max(1, self._count()) if self.beta is None else 1.0
        return self._A * factor, self._b * factor

    def _learn(self, batch: Batch) -> None:
        x, rows, x_next, next_rows = batch.sparse()
        self._seen.insert(batch.ids())
        A, b, z = self._A, self._b, self._z.copy()
        decays = batch.trace_discounts * self.lambda_
        for start in range(0, len(batch), _BLOCK):
            part = slice(start, start + _BLOCK)
            X, X_next = self._sketch.project(x, rows[part]), self._sketch.project(x_next, next_rows[part])
            Z = np.empty(X.shape)
            traces(X, decays[part], batch.rhos[part], z, Z)
            D = X - batch.discounts[part, None] * X_next
            kept = 1.0
            if self.beta is not None:
                weights = self.beta * (1.0 - self.beta) ** np.arange(len(X) - 1.0, -1.0, -1.0)
                kept, Z = (1.0 - self.beta) ** len(X), weights[:, None] * Z
            with one_thread(2.0 * self.dimension**2 * len(X)):
                A, b = kept * A + Z.T @ D, kept * b + Z.T @ batch.rewards[part]
        self.__dict__.update(_A=A, _b=b, _z=z, _n_seen=len(self._seen))

    def _mend(self) -> None:
        super()._mend()
        self._seen.counter[0] = self._n_seen  # features of samples that were not learned from have no weight
        self._seen.mend()

    def _solve(self) -> tuple[IntArray, FloatArray]:
        ids = self._seen.ids[: self._n_seen].copy()
        return ids, self._sketch.lift(ids, solve_truncated(self._A, self._b, rcond=self.rcond))

    def _merged_state(self, other: ProjectedLSTD) -> State:
        self._refuse_to_merge_with_beta(self.beta)
        first, second = self._state(), other._state()
        ids = Rows(self._seen.ids, other._seen.ids).ids
        z = second["z"] if other.n_updates else first["z"]
        return {"seen": {"ids": ids}, "A": first["A"] + second["A"], "b": first["b"] + second["b"], "z": z}

    @classmethod
    def _check_sizes(cls, parameters: Mapping[str, Any], saved: Saved) -> None:
        dimension = parameters.get("dimension")
        if saved.shape("A") != (dimension, dimension) or saved.shape("b") != (dimension, parameters.get("n_targets")):
            raise saved.error("A", "does not have the sizes that the parameters say")

    def _state(self) -> State:
        return {"seen": self._seen.state(), "A": self._A, "b": self._b, "z": self._z}

    def _restore(self, saved: Saved) -> None:
        self._seen.restore(saved.part("seen"))
        self._n_seen = len(self._seen)
        self._A = saved.floats("A", self.dimension, self.dimension)
        self._b = saved.floats("b", self.dimension, self.n_targets)
        self._z = saved.floats("z", self.dimension)
        if self._n_seen and not self._count():
            raise saved.error("seen", f"has {self._n_seen} features where there were no samples")


EXAMPLES: dict[str, Factory] = {
    "ProjectedLSTD": lambda n_features, **options: ProjectedLSTD(n_features, 8, lambda_=0.7, **options),
}
