"""LSTD(λ): the whole least-squares system, solved directly or by following its inverse."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np

from tlstd.classic import merged_systems
from tlstd.classic.full_system import FullSystem
from tlstd.classic.recursive_system import RecursiveSystem
from tlstd.core import parameters
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.file_format import Saved, State
from tlstd.core.lu import solve_lu
from tlstd.core.parameters import Trace
from tlstd.core.svd import solve_truncated
from tlstd.data.batch import Batch
from tlstd.errors import InvalidParameterError
from tlstd.estimators.base import Factory, LinearEstimator, synchronized

Solver: TypeAlias = Literal["direct", "recursive"]


class LSTD(LinearEstimator):
    """Least-squares temporal differences: solves A w = b for A = (1/T) Σ z_t d_tᵀ and b = (1/T) Σ z_t r_{t+1}.

    Parameters
    ----------
    n_features : int
        Number of features d. Only features that were seen take memory.
    lambda_ : float in [0, 1]
        Trace parameter.
    solver : "direct" or "recursive"
        Direct: A is accumulated (sparsely for sparse features, by blocks for dense ones) and decomposed when the
        weights are read. Recursive: A⁻¹ is followed by the Sherman–Morrison formula, so that every read is cheap.
    rcond : float in [0, 1)
        Direct: singular values at or below ``rcond`` times the largest are not inverted. Recursive: the same, but used
        only where the recursion has no answer.
    tikhonov : float >= 0
        η of the solution (AᵀA + ηI)⁻¹Aᵀb of the *averaged* system (section 3 of the paper), on top of the cut-off (set
        ``rcond=0`` for η alone). Direct only.
    ridge : float >= 0
        η in units of the mean ‖x‖²: solves (A + ηD) w = b for the averaged system, where D is the identity except for
        features that have the same value, not 0, in every x (a bias), which are not penalised. By LU, which takes a
        small part of the time of the SVD; ``rcond`` is used only where A + ηD is singular to rounding. Direct only,
        and instead of ``tikhonov``.
    initial_diagonal : float > 0
        Recursive only: what is on A's diagonal before the first sample (of the sum, not of the average).
    beta : float in (0, 1), optional
        Constant weight of a new sample, for tracking; by default all samples weigh the same.
    trace : "accumulating" or "replacing"
    n_targets : int
        Number of reward signals.
    memory_limit : int
        Bytes that the n × n matrices may take before :class:`~tlstd.CapacityError` is raised.

    Notes
    -----
    Direct: O(nnz(z)·nnz(d)) per sample, O(n³) per solution; recursive: O(n²) for both. Memory O(n²), n features seen.

    References
    ----------
    Bradtke, Barto: Linear least-squares algorithms for temporal difference learning. Machine Learning 22, 1996.
    Boyan: Least-squares temporal difference learning. ICML 1999.

    Example
    -------
    >>> import numpy as np
    >>> from tlstd import LSTD, boyan_chain
    >>> chain = boyan_chain()
    >>> model = LSTD(n_features=4, lambda_=0.0)
    >>> model.update_many(chain.sample(20_000, np.random.default_rng(0)))
    >>> bool(np.abs(model.weights - [-24, -16, -8, 0]).max() < 0.5)
    True
    """

    _ADDED: ClassVar[dict[str, Any]] = {"ridge": 0.0}

    def __init__(
        self,
        n_features: int,
        *,
        lambda_: float,
        solver: Solver = "direct",
        rcond: float = 1e-4,
        tikhonov: float = 0.0,
        ridge: float = 0.0,
        initial_diagonal: float = 1.0,
        beta: float | None = None,
        trace: Trace = "accumulating",
        n_targets: int = 1,
        memory_limit: int = 8 << 30,
    ) -> None:
        super().__init__(n_features, lambda_=lambda_, n_targets=n_targets)
        self.solver: Solver = parameters.choice("solver", solver, get_args(Solver))
        self.rcond = parameters.real("rcond", rcond, low=0.0, high=1.0, open_high=True)
        self.tikhonov = parameters.real("tikhonov", tikhonov, low=0.0, high=1e100)
        self.ridge = parameters.real("ridge", ridge, low=0.0, high=1e100)
        self.initial_diagonal = parameters.real("initial_diagonal", initial_diagonal, low=1e-100, high=1e100)
        self.beta = None if beta is None else parameters.positive("beta", beta, high=1.0)
        self.trace: Trace = parameters.choice("trace", trace, get_args(Trace))
        self.memory_limit = parameters.integer("memory_limit", memory_limit)
        for name, value in (("tikhonov", self.tikhonov), ("ridge", self.ridge)):
            if self.solver == "recursive" and value > 0.0:
                raise InvalidParameterError(
                    f'{name} is {value} with solver="recursive": use solver="direct", or initial_diagonal'
                )
        if self.tikhonov > 0.0 and self.ridge > 0.0:
            raise InvalidParameterError(f"tikhonov is {self.tikhonov} and ridge is {self.ridge}: give one of them")
        self._replacing = self.trace == "replacing"
        options: dict[str, Any] = {
            "lambda_": self.lambda_,
            "beta": self.beta,
            "replacing": self._replacing,
            "n_targets": self.n_targets,
            "memory_limit": self.memory_limit,
        }
        self._system: FullSystem | RecursiveSystem
        if self.solver == "direct":
            self._system = FullSystem(self.n_features, with_moments=self.ridge > 0.0, **options)
        else:
            self._system = RecursiveSystem(self.n_features, initial_diagonal=self.initial_diagonal, **options)

    def _count(self) -> int:
        return self._system.n_samples

    @property
    @synchronized
    def n_seen(self) -> int:
        """Number of distinct features seen so far."""
        return len(self._system.seen)

    @synchronized
    def system(self) -> tuple[IntArray, FloatArray, FloatArray]:
        """The ids of the features seen and the averaged A (n, n) and b (n, n_targets) over them, as copies."""
        A, b = self._system.averaged()
        return self._system.seen.ids.copy(), A, b

    def _check_batch(self, batch: Batch) -> None:
        super()._check_batch(batch)
        self._system.check_capacity(batch)

    def _learn(self, batch: Batch) -> None:
        self._system.append(batch)

    def _learn_and_predict(self, batch: Batch, values: FloatArray) -> None:
        if isinstance(self._system, RecursiveSystem):
            self._system.append(batch, values, self.rcond)
        else:
            super()._learn_and_predict(batch, values)

    def _solve(self) -> tuple[IntArray, FloatArray]:
        ids = self._system.seen.ids.copy()
        if isinstance(self._system, RecursiveSystem):
            return ids, self._system.solve(self.rcond)
        A, b = self._system.averaged()
        if self.ridge > 0.0:
            A[np.diag_indices_from(A)] += self._system.ridge_diagonal(self.ridge)
            w = solve_lu(A, b)
            if w is not None:
                return ids, w
        return ids, solve_truncated(A, b, rcond=self.rcond, tikhonov=self.tikhonov)

    def _mend(self) -> None:
        super()._mend()
        self._system.mend()

    def _merged_state(self, other: LSTD) -> State:
        self._refuse_to_merge_with_beta(self.beta)
        states = self._system.state(), other._system.state()
        if isinstance(self._system, RecursiveSystem):
            return {"system": merged_systems.recursive_systems(*states, self.initial_diagonal)}
        return {"system": merged_systems.full_systems(*states)}

    def _state(self) -> State:
        return {"system": self._system.state()}

    def _restore(self, saved: Saved) -> None:
        self._system.restore(saved.part("system"))


EXAMPLES: dict[str, Factory] = {
    "LSTD": lambda n_features, **options: LSTD(n_features, lambda_=0.7, **options),
    "LSTD (ridge)": lambda n_features, **options: LSTD(n_features, lambda_=0.7, ridge=0.01, **options),
    "LSTD (recursive)": lambda n_features, **options: LSTD(n_features, lambda_=0.7, solver="recursive", **options),
}
