"""Gradient TD(λ), which does not diverge off-policy where TD may: GTD2, TDC, and TDC with regularised corrections."""

from __future__ import annotations

from typing import Any

import numpy as np

from tlstd.classic.kernels import td as kernels
from tlstd.classic.td_family import Picked, TDFamily
from tlstd.core import parameters
from tlstd.core.arrays import FloatArray
from tlstd.core.file_format import Saved, State
from tlstd.data.batch import Batch
from tlstd.data.loop_vectors import vectors_of
from tlstd.data.transitions import Transition
from tlstd.data.vectors import SparseVector
from tlstd.estimators.base import Factory
from tlstd.estimators.step_sizes import StepSize
from tlstd.zoo.kernels import gradient_td


class _GradientTD(TDFamily):
    """Base of the three: weights w, a second set h, and one trace."""

    _sets = 2
    _second = False  # GTD2's form

    def __init__(
        self,
        n_features: int,
        *,
        step_size: StepSize,
        lambda_: float,
        step_size_ratio: float = 1.0,
        n_targets: int = 1,
    ) -> None:
        super().__init__(n_features, step_size=step_size, lambda_=lambda_, n_targets=n_targets)
        self.step_size_ratio = parameters.positive("step_size_ratio", step_size_ratio, high=1e100)
        self._regularization = 0.0  # κ
        self._more: FloatArray = np.zeros(2 + self.n_targets)  # see tlstd.classic.kernels.td
        self._more[0] = 1.0

    def _fifth_line(self, part: Batch, alphas: FloatArray) -> FloatArray | float:
        return self.step_size_ratio * alphas

    def _learn_sparse(self, batch: Batch, steps: FloatArray, rewards: FloatArray, values: FloatArray) -> None:
        vectors = vectors_of(batch)
        rows = self._rows(vectors, vectors.second[batch.discounts != 0.0])
        in_rows = (vectors.indptr, rows, vectors.values, vectors.first, vectors.second)
        lazy = (self._cells, self._stamps, self._active, self._counts, self._numbers)
        how = (self._more, self.lambda_, self._regularization, self._second)
        kernels.learn_gradient(in_rows, steps, rewards, lazy, *how, values, self._targets)

    def _dense_loop(self, samples: Picked, steps: FloatArray, rewards: FloatArray, values: FloatArray) -> None:
        held, how = (self._W.T, self._z, self._counts), (self.lambda_, self._regularization, self._second)
        gradient_td.learn(*samples, steps, rewards, *held, *how, values)

    def _learn_one(self, t: Transition) -> bool:
        own, x, x_next = self.__dict__, t.x, t.x_next
        if (
            own["_is_dense"] is not False  # or nothing was learned yet
            or type(x) is not SparseVector
            or type(x_next) is not SparseVector
            or x.size != own["n_features"]
            or type(t.reward) is not float
            or own["_is_special"]
        ):
            return False
        index, hashed = own["_seen"].table
        alpha = own["step_size"].at(own["_counts"].item(2) + 1)
        return kernels.learn_gradient_one(  # type: ignore[no-any-return]
            x.indices,
            x.values,
            x_next.indices,
            x_next.values,
            index,
            own["_cells"],
            own["_stamps"],
            own["_active"],
            own["_counts"],
            own["_numbers"],
            own["_bound"],
            hashed,
            t.reward,
            (alpha, t.discount, t.trace_discount * own["lambda_"], t.rho, own["step_size_ratio"] * alpha),
            own["lambda_"],
            own["_more"],
            own["_regularization"],
            self._second,
        )

    def _state(self) -> State:
        return {**super()._state(), "more": self._more}

    def _restore(self, saved: Saved) -> None:
        super()._restore(saved)
        self._more[:] = saved.floats("more", 2 + self.n_targets)
        if not 1e-60 <= abs(self._more[0]) <= 1e60:
            raise saved.error("more", f"begins with {self._more[0]}, whose size is outside [1e-60, 1e60]")


class TDC(_GradientTD):
    """TD(λ) with gradient correction: a second set of weights h takes out of the step what makes TD diverge off-policy.

    With δ = r_{t+1} + γ_{t+1} w·x_{t+1} - w·x_t and z_t = ρ_t (γ_t λ z_{t-1} + x_t), all from before the step,

        w ← w + α (δ z - γ_{t+1} (1 - λ) (z·h) x_{t+1})
        h ← h + β (δ z - (h·x_t) x_t)

    h estimates (E[x xᵀ])⁻¹ E[δ z]: the first line then descends the gradient of the mean squared projected Bellman
    error. It ends where :class:`~tlstd.LSTD` does.

    Parameters
    ----------
    n_features : int
        Number of features d; may be as large as 2**31 when features are sparse.
    step_size : float, :class:`~tlstd.Decay` or callable t -> α_t
        α of the weights w.
    lambda_ : float in [0, 1]
        Trace parameter.
    step_size_ratio : float > 0
        β / α. It has to be found for each problem; :class:`~tlstd.TDRC` does without.
    n_targets : int
        Number of reward signals predicted from one stream; they share the trace.

    Notes
    -----
    O(nnz·n_targets) per sample however long the trace is: z·h is followed, not summed up
    (:mod:`tlstd.classic.kernels.td`); O(d·n_targets) with dense features. Memory is that of :class:`~tlstd.TD` and 8
    bytes more for each feature and target. Features of x_{t+1} have weights too.

    References
    ----------
    Sutton, Maei, Precup, Bhatnagar, Silver, Szepesvári, Wiewiora: Fast gradient-descent methods for temporal-difference
    learning with linear function approximation. ICML 2009. With λ: Maei: Gradient temporal-difference learning
    algorithms. PhD thesis, University of Alberta, 2011 (as GTD(λ)).

    Example
    -------
    >>> from tlstd import boyan_chain
    >>> model = TDC(4, step_size=0.1, lambda_=0.5)
    >>> model.update_many(boyan_chain().sample(20_000, np.random.default_rng(0)))
    >>> bool(np.abs(model.weights - [-24, -16, -8, 0]).max() < 1.0)
    True
    """


class GTD2(TDC):
    """The older form of gradient TD(λ), whose weights move by h alone; see :class:`~tlstd.TDC`.

        w ← w + α ((h·x_t) x_t - γ_{t+1} (1 - λ) (z·h) x_{t+1})
        h ← h + β (δ z - (h·x_t) x_t)

    Slower than TDC where TD is stable, because w waits for h.

    Parameters
    ----------
    n_features, step_size, lambda_, step_size_ratio, n_targets
        As for :class:`~tlstd.TDC`.

    Notes
    -----
    Costs what :class:`~tlstd.TDC` does.

    References
    ----------
    Sutton et al., ICML 2009, as for TDC.

    Example
    -------
    >>> from tlstd import boyan_chain
    >>> model = GTD2(4, step_size=0.2, lambda_=0.5)
    >>> model.update_many(boyan_chain().sample(20_000, np.random.default_rng(0)))
    >>> bool(np.abs(model.weights - [-24, -16, -8, 0]).max() < 1.0)
    True
    """

    _second = True


class TDRC(_GradientTD):
    """TD(λ) with regularised corrections: :class:`~tlstd.TDC` whose h is drawn towards 0, which leaves one step size.

        w ← w + α (δ z - γ_{t+1} (1 - λ) (z·h) x_{t+1})
        h ← h + β (δ z - (h·x_t) x_t - κ h)

    Between TD (κ = ∞) and TDC (κ = 0): nearly as fast as TD where that is stable, and stable where TDC is. The paper
    takes κ = 1 and β = α for everything.

    Parameters
    ----------
    n_features, step_size, lambda_, n_targets
        As for :class:`~tlstd.TDC`.
    regularization : float >= 0
        κ; the unit is that of ‖x‖²/d, so that 1 is for features of about that size.
    step_size_ratio : float > 0
        β / α.

    Notes
    -----
    Costs what :class:`~tlstd.TDC` does.

    References
    ----------
    Ghiassian, Patterson, Garg, Gupta, White, White: Gradient temporal-difference learning with regularized corrections.
    ICML 2020.

    Example
    -------
    >>> from tlstd import boyan_chain
    >>> model = TDRC(4, step_size=0.1, lambda_=0.5)
    >>> model.update_many(boyan_chain().sample(20_000, np.random.default_rng(0)))
    >>> bool(np.abs(model.weights - [-24, -16, -8, 0]).max() < 1.0)
    True
    """

    def __init__(
        self,
        n_features: int,
        *,
        step_size: StepSize,
        lambda_: float,
        regularization: float = 1.0,
        step_size_ratio: float = 1.0,
        n_targets: int = 1,
    ) -> None:
        options: dict[str, Any] = {"step_size_ratio": step_size_ratio, "n_targets": n_targets}
        super().__init__(n_features, step_size=step_size, lambda_=lambda_, **options)
        self._regularization = parameters.real("regularization", regularization, low=0.0, high=1e100)

    @property
    def regularization(self) -> float:
        """κ of the constructor."""
        return self._regularization


EXAMPLES: dict[str, Factory] = {
    "GTD2": lambda n_features, **options: GTD2(n_features, step_size=0.05, lambda_=0.7, **options),
    "TDC": lambda n_features, **options: TDC(n_features, step_size=0.05, lambda_=0.7, step_size_ratio=0.5, **options),
    "TDRC": lambda n_features, **options: TDRC(n_features, step_size=0.05, lambda_=0.7, **options),
}
