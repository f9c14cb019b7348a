"""TD(λ): steps along the eligibility trace."""

from __future__ import annotations

from typing import get_args

from tlstd.classic.td_family import TDFamily
from tlstd.core import parameters
from tlstd.core.parameters import Trace
from tlstd.estimators.base import Factory
from tlstd.estimators.step_sizes import StepSize


class TD(TDFamily):
    """Temporal-difference learning: w ← w + α_t δ_t z_t with δ_t = r_{t+1} + γ_{t+1} w·x_{t+1} - w·x_t.

    z_t = ρ_t (γ_t λ z_{t-1} + x_t) is the eligibility trace. The cheapest method here, and the one that needs the most
    samples: its expected update is α (b - A w) with LSTD's A and b, so that with small steps it ends where
    :class:`~tlstd.LSTD` does.

    Parameters
    ----------
    n_features : int
        Number of features d; may be as large as 2**31 when features are sparse.
    step_size : float, :class:`~tlstd.Decay` or callable t -> α_t
        α. Divide it by the (mean squared) length of the feature vectors: with tile coding, by the number of tilings.
    lambda_ : float in [0, 1]
        Trace parameter.
    trace : "accumulating" or "replacing"
        Replacing traces (an active feature's trace becomes ρ_t times its value) are for sparse features.
    n_targets : int
        Number of reward signals predicted from one stream; they share the trace.

    Notes
    -----
    Sparse features: O(nnz·n_targets) per sample however long the trace is, and memory in the features seen (about 50
    bytes each, and 8 for each target). Dense ones (a quarter of the first sample's features or more): O(d·n_targets).
    Both give the weights of the equations above to rounding; :mod:`tlstd.classic.kernels.td` says how.

    With too large a step size, or off-policy, TD may diverge. That is part of the method, so nothing is raised: the
    weights grow until they are infinite or NaN.

    References
    ----------
    Sutton: Learning to predict by the methods of temporal differences. Machine Learning 3, 1988.
    Singh, Sutton: Reinforcement learning with replacing eligibility traces. Machine Learning 22, 1996.

    Example
    -------
    >>> import numpy as np
    >>> from tlstd import boyan_chain
    >>> from tlstd.estimators.step_sizes import Decay
    >>> chain = boyan_chain()
    >>> model = TD(n_features=4, step_size=Decay(0.3, 1000), lambda_=0.5)
    >>> model.update_many(chain.sample(50_000, np.random.default_rng(0)))
    >>> bool(np.abs(model.weights - [-24, -16, -8, 0]).max() < 0.5)
    True
    """

    def __init__(
        self,
        n_features: int,
        *,
        step_size: StepSize,
        lambda_: float,
        trace: Trace = "accumulating",
        n_targets: int = 1,
    ) -> None:
        super().__init__(n_features, step_size=step_size, lambda_=lambda_, n_targets=n_targets)
        self.trace: Trace = parameters.choice("trace", trace, get_args(Trace))
        self._replacing = self.trace == "replacing"


EXAMPLES: dict[str, Factory] = {
    "TD": lambda n_features, **options: TD(n_features, step_size=0.05, lambda_=0.7, **options),
    "TD (replacing)": lambda n_features, **options: TD(
        n_features, step_size=0.05, lambda_=0.7, trace="replacing", **options
    ),
}
