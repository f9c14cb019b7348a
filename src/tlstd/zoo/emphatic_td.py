"""Emphatic TD(λ): TD that weighs its steps so that it is stable off-policy."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np

from tlstd.classic.kernels import td as kernels
from tlstd.classic.td_family import TDFamily
from tlstd.core import parameters
from tlstd.core.arrays import MAX_MAGNITUDE, FloatArray
from tlstd.core.file_format import Saved, State
from tlstd.data.batch import Batch
from tlstd.data.transitions import Transition
from tlstd.errors import InvalidInputError
from tlstd.estimators.base import Factory
from tlstd.estimators.step_sizes import StepSize

Interest: TypeAlias = Literal["all", "starts"]


class EmphaticTD(TDFamily):
    """TD(λ) with the emphasis M_t on each step: how much the values that matter depend on the value of that state.

        F_t = ρ_{t-1} γ_t F_{t-1} + i_t        M_t = λ i_t + (1 - λ) F_t
        z_t = ρ_t (γ_t λ z_{t-1} + M_t x_t)    w ← w + α_t δ_t z_t

    with δ_t = r_{t+1} + γ_{t+1} w·x_{t+1} - w·x_t. F is the follow-on trace, and i_t the interest in the value of the
    state at time t. Its expected step contracts for any behaviour. It ends at another solution than
    :class:`~tlstd.LSTD`: that of the emphatic weighting of states, which is nearer to the values where the behaviour is
    far from the target policy.

    Parameters
    ----------
    n_features : int
        Number of features d; may be as large as 2**31 when features are sparse.
    step_size : float, :class:`~tlstd.Decay` or callable t -> α_t
        α. Emphases grow to 1 / (1 - γ) and more, so take a step size smaller than TD's by that factor.
    lambda_ : float in [0, 1]
        Trace parameter. At 1, and with an interest in all states, this is TD(1).
    interest : "all" or "starts"
        i_t = 1 at every step, or only where an episode starts (γ_t = 0), when only the values of starts are wanted.
    n_targets : int
        Number of reward signals predicted from one stream; they share the trace.

    Notes
    -----
    Time and memory are those of :class:`~tlstd.TD`. The variance of F is infinite where γ² E[ρ²] exceeds 1: then
    steps of any size are interrupted by jumps, and on a long stream the weights need not settle.
    :meth:`~tlstd.Transitions.clip_ratios` bounds it, at the cost of another solution.

    References
    ----------
    Sutton, Mahmood, White: An emphatic approach to the problem of off-policy temporal-difference learning. JMLR 17,
    2016.

    Example
    -------
    >>> from tlstd import boyan_chain
    >>> from tlstd.estimators.step_sizes import Decay
    >>> model = EmphaticTD(4, step_size=Decay(0.05, 1000), lambda_=0.5)
    >>> model.update_many(boyan_chain().sample(20_000, np.random.default_rng(0)))
    >>> bool(np.abs(model.weights - [-24, -16, -8, 0]).max() < 1.0)
    True
    """

    def __init__(
        self, n_features: int, *, step_size: StepSize, lambda_: float, interest: Interest = "all", n_targets: int = 1
    ) -> None:
        super().__init__(n_features, step_size=step_size, lambda_=lambda_, n_targets=n_targets)
        self.interest: Interest = parameters.choice("interest", interest, get_args(Interest))
        # the number of samples before a part that is learned from, and F and ρ before it and after each of its steps
        self._history: tuple[int, FloatArray] = (0, np.zeros((2, 1)))

    @property
    def _follow(self) -> FloatArray:
        """F and ρ of the last step."""
        start, history = self._history
        return history[:, self._count() - start]

    def _interests(self, batch: Batch) -> FloatArray:
        return np.ones(len(batch)) if self.interest == "all" else (batch.trace_discounts == 0.0).astype(np.float64)

    def _followed(self, batch: Batch) -> FloatArray:
        """F and ρ before the batch and after each of its steps, (2, N + 1)."""
        history: FloatArray = np.empty((2, len(batch) + 1))
        F, rho = self._follow.tolist()
        kernels.follow_on(batch.trace_discounts, batch.rhos, self._interests(batch), F, rho, history)
        return history

    def _emphases(self, batch: Batch, history: FloatArray) -> FloatArray:
        emphases: FloatArray = self.lambda_ * self._interests(batch) + (1.0 - self.lambda_) * history[0, 1:]
        return emphases

    def _bounded_trace(self, batch: Batch, lengths: FloatArray | None) -> tuple[float, float]:
        history = self._followed(batch)
        large = np.flatnonzero(~(history[0] <= MAX_MAGNITUDE))
        if large.size:
            raise InvalidInputError(
                f"the follow-on trace would reach {history[0, large[0]]:.1e} at step {large[0] - 1} of this call, over "
                f"the limit of {MAX_MAGNITUDE:g}: clip the ratios (Transitions.clip_ratios)"
            )
        lengths = batch.lengths() if lengths is None else lengths
        return super()._bounded_trace(batch, lengths * self._emphases(batch, history))

    def _fifth_line(self, part: Batch, alphas: FloatArray) -> FloatArray | float:
        self._history = (self._count(), self._followed(part))
        return self._emphases(part, self._history[1])

    def _learn_one(self, t: Transition) -> bool:
        return False

    def _state(self) -> State:
        return {**super()._state(), "follow_on": self._follow}

    def _restore(self, saved: Saved) -> None:
        super()._restore(saved)
        self._history = (self._count(), saved.floats("follow_on", 2, low=0.0, high=MAX_MAGNITUDE)[:, None].copy())


EXAMPLES: dict[str, Factory] = {
    "EmphaticTD": lambda n_features, **options: EmphaticTD(n_features, step_size=0.01, lambda_=0.7, **options),
}
