"""Linear Dyna: TD, and planning with a linear model of the next features and of the reward."""

from __future__ import annotations

import numpy as np

from tlstd.core import parameters
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.file_format import Saved, State
from tlstd.data.batch import Batch, CSRArrays
from tlstd.estimators.base import Factory, synchronized
from tlstd.estimators.step_sizes import StepSize
from tlstd.zoo.kernels.planning import dyna
from tlstd.zoo.planning import PlanningEstimator


class LinearDyna(PlanningEstimator):
    """TD(0) that also learns a linear model and takes TD steps from transitions which the model makes up.

    A sample takes a TD step, w ← w + α δ x, and a gradient step of the model, F ← F + β x (γx′ - Fᵀx)ᵀ and
    b ← b + β (r - bᵀx) x. Then ``planning_steps`` times a feature i is drawn, of all d alike, and
    w_i ← w_i + α (b_i + F_i w - w_i): a TD step for the unit vector of i, whose next features and reward the model
    tells. With small steps it ends where :class:`~tlstd.LSTD` with λ=0 does.

    Parameters
    ----------
    n_features : int
        Number of features d. Only features that were seen take memory.
    step_size : float, :class:`~tlstd.Decay` or callable t -> α_t
        α of the weights, for real and made-up transitions. At most about 1 for planning, and below 2/‖x‖² for TD.
    beta : float > 0
        β of the model; below 2/‖x‖².
    planning_steps : int
        p, made-up transitions for each sample.
    seed : int >= 0
        Of the features drawn.
    n_targets : int
        Number of reward signals; they share F.
    memory_limit : int
        Bytes that F may take before :class:`~tlstd.CapacityError` is raised and nothing has changed.

    Notes
    -----
    O(n·(nnz + p)) per sample, 8·n² bytes, n the features seen. There is no λ: :class:`~tlstd.ForgetfulLSTD` has it, and
    plans for all features at once. Prioritised sweeping, for which the publication changes the order of planning, is
    not here.

    Nothing is planned for a feature that was never seen: where most of d were not, most draws are lost.

    Departures: γ is part of F, so that it may differ from step to step; β may differ from α; after ``start_from`` b
    begins at the weights, so that planning leaves alone what nothing is known about; and with importance ratios both
    kinds of steps from the sample are multiplied by ρ. A run that diverges ends in infinite weights or NaN.

    References
    ----------
    Sutton, Szepesvári, Geramifard, Bowling: Dyna-style planning with linear function approximation and prioritized
    sweeping. UAI 2008. Algorithm 1.

    Example
    -------
    >>> from tlstd import LinearDyna, boyan_chain
    >>> chain = boyan_chain()
    >>> model = LinearDyna(4, step_size=0.05, beta=0.05, planning_steps=5)
    >>> model.update_many(chain.sample(20_000, np.random.default_rng(0)))
    >>> bool(np.abs(model.weights - [-24, -16, -8, 0]).max() < 2.0)
    True
    """

    _MATRIX = "_F"
    _F: FloatArray

    def __init__(
        self,
        n_features: int,
        *,
        step_size: StepSize,
        beta: float,
        planning_steps: int = 1,
        seed: int = 0,
        n_targets: int = 1,
        memory_limit: int = 8 << 30,
    ) -> None:
        super().__init__(
            n_features,
            step_size=step_size,
            beta=beta,
            planning_steps=planning_steps,
            lambda_=0.0,
            n_targets=n_targets,
            memory_limit=memory_limit,
        )
        self.seed = parameters.integer("seed", seed, low=0)

    @synchronized
    def model(self) -> tuple[IntArray, FloatArray, FloatArray]:
        """Ids of the features seen, F (n, n), whose row i is the expected γx′ after feature i, and b; as copies."""
        n = len(self._seen)
        return self._seen.ids.copy(), self._F[:n, :n].copy(), self._b[:n].copy()

    def _diagonal(self) -> float:
        return 0.0

    def _begin(self, ids: IntArray, values: FloatArray) -> None:
        super()._begin(ids, values)
        self._b = self._w.copy()

    def _run(self, x: CSRArrays, x_next: CSRArrays, batch: Batch, alphas: FloatArray, values: FloatArray) -> None:
        columns = alphas, batch.discounts, batch.rhos, batch.rewards
        blocks = -(-self.planning_steps // 4)  # the generator makes four numbers for each value of its counter
        generator = np.random.Philox(key=self.seed, counter=self._count() * blocks)
        ids = generator.random_raw((len(batch), 4 * blocks))[:, : self.planning_steps] % np.uint64(self.n_features)
        drawn = self._seen.find(ids.astype(np.int64).ravel()).reshape(ids.shape)
        dyna(x, x_next, columns, self.beta, drawn, self._F, self._b, self._w, len(self._seen), self._progress, values)

    def _state(self) -> State:
        n = len(self._seen)
        return {"seen": self._seen.state(), "F": self._F[:n, :n], "b": self._b[:n], "w": self._w[:n]}

    def _restore(self, saved: Saved) -> None:
        self._seen.restore(saved.part("seen"))
        n = len(self._seen)
        self._progress[:] = self._n_updates, n
        self._F = saved.floats("F", n, n)
        self._b, self._w = saved.floats("b", n, self.n_targets), saved.floats("w", n, self.n_targets)


EXAMPLES: dict[str, Factory] = {
    "LinearDyna": lambda n_features, **options: LinearDyna(
        n_features, step_size=0.05, beta=0.05, planning_steps=3, **options
    ),
}
