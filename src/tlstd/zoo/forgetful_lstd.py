"""Forgetful LSTD(λ): LSTD's system with forgetting along the features, followed by a few gradient steps each time."""

from __future__ import annotations

from typing import Any

import numpy as np

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.file_format import Saved, State
from tlstd.core.growing import enlarged
from tlstd.data.batch import Batch, CSRArrays
from tlstd.estimators.base import Factory, synchronized
from tlstd.estimators.step_sizes import StepSize
from tlstd.zoo.kernels.planning import forgetful
from tlstd.zoo.planning import PlanningEstimator


class ForgetfulLSTD(PlanningEstimator):
    """LSTD(λ) that forgets along the features it sees, and steps towards its solution instead of solving.

    With e the trace, d_t = x_t - γ_{t+1} x_{t+1} and A = I/β, b = 0 at first, every sample does

        e ← γ_t λ (I - β x_t x_tᵀ) e + x_t
        A ← (I - β x_t x_tᵀ) A + e d_tᵀ
        b ← (I - β x_t x_tᵀ) b + e r_{t+1}

    and then ``planning_steps`` times w ← w + α (b - A w). Forgetting is not in time, as with ``LSTD(beta=)``: what is
    known about features stays until *they* are seen again. With λ=0 it is planning with the model of linear Dyna,
    A = (I - F)/β where row i of F is the expected γx′ after feature i (:class:`~tlstd.LinearDyna`), so that α = β is a
    sweep w ← b̄ + F w; λ makes the model a multi-step one. With one planning step the first sample is a TD step.

    Parameters
    ----------
    n_features : int
        Number of features d. Only features that were seen take memory.
    step_size : float, :class:`~tlstd.Decay` or callable t -> α_t
        α of the gradient steps. β is a good choice; A is of the size of 1/β, and with α much larger the weights
        diverge.
    beta : float > 0
        β, how fast the model changes; below 1/‖x‖², as a step size of TD.
    lambda_ : float in [0, 1]
        Trace parameter.
    planning_steps : int
        k, gradient steps after each sample.
    n_targets : int
    memory_limit : int
        Bytes that A may take before :class:`~tlstd.CapacityError` is raised and nothing has changed.

    Notes
    -----
    O(n·(nnz + k·n)) per sample, 8·n² bytes, n the features seen.

    Beyond the publication: importance ratios, by which the forgetting is weighted too (βρ_t in place of β, and e is
    ρ_t (γ_t λ (I - βρ_t x_t x_tᵀ) e + x_t)), and α_t. A run that diverges ends in infinite weights or NaN.

    References
    ----------
    van Seijen, Sutton: A deeper look at planning as learning from replay. ICML 2015.

    Example
    -------
    >>> from tlstd import ForgetfulLSTD, boyan_chain
    >>> chain = boyan_chain()
    >>> model = ForgetfulLSTD(4, step_size=0.01, beta=0.01, lambda_=0.5)
    >>> model.update_many(chain.sample(20_000, np.random.default_rng(0)))
    >>> bool(np.abs(model.weights - [-24, -16, -8, 0]).max() < 1.0)
    True
    """

    _MATRIX = "_A"
    _A: FloatArray

    def __init__(
        self,
        n_features: int,
        *,
        step_size: StepSize,
        beta: float,
        lambda_: float,
        planning_steps: int = 1,
        n_targets: int = 1,
        memory_limit: int = 8 << 30,
    ) -> None:
        options: dict[str, Any] = {"lambda_": lambda_, "n_targets": n_targets, "memory_limit": memory_limit}
        super().__init__(n_features, step_size=step_size, beta=beta, planning_steps=planning_steps, **options)
        self._e: FloatArray = np.zeros((0, 1))

    @synchronized
    def system(self) -> tuple[IntArray, FloatArray, FloatArray]:
        """The ids of the features seen and A (n, n) and b (n, n_targets) over them, as copies."""
        n = len(self._seen)
        return self._seen.ids.copy(), self._A[:n, :n].copy(), self._b[:n].copy()

    def _diagonal(self) -> float:
        return 1.0 / self.beta

    def _more_room(self, size: int) -> dict[str, Any]:
        return {"_e": enlarged(self._e, size) if size else np.zeros((0, 1))}

    def _begin(self, ids: IntArray, values: FloatArray) -> None:
        super()._begin(ids, values)
        self._b = self._w / self.beta  # w is the solution

    def _run(self, x: CSRArrays, x_next: CSRArrays, batch: Batch, alphas: FloatArray, values: FloatArray) -> None:
        columns = alphas, batch.discounts, batch.trace_discounts * self.lambda_, batch.rhos, batch.rewards
        arrays = self._A, self._b, self._e, self._w, len(self._seen)
        forgetful(x, x_next, columns, self.beta, self.planning_steps, *arrays, self._progress, values)

    def _state(self) -> State:
        n = len(self._seen)
        arrays = {"A": self._A[:n, :n], "b": self._b[:n], "e": self._e[:n], "w": self._w[:n]}
        return {"seen": self._seen.state(), **arrays}

    def _restore(self, saved: Saved) -> None:
        self._seen.restore(saved.part("seen"))
        n = len(self._seen)
        self._progress[:] = self._n_updates, n
        self._A = saved.floats("A", n, n)
        self._b, self._w = saved.floats("b", n, self.n_targets), saved.floats("w", n, self.n_targets)
        self._e = saved.floats("e", n, 1)


EXAMPLES: dict[str, Factory] = {
    "ForgetfulLSTD": lambda n_features, **options: ForgetfulLSTD(
        n_features, step_size=0.02, beta=0.02, lambda_=0.7, planning_steps=2, **options
    ),
}
