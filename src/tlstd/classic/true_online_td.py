"""True-online TD(λ): TD whose weights are at every step those of the online λ-return algorithm."""

from __future__ import annotations

import numpy as np

from tlstd.classic.td_family import TDFamily
from tlstd.data.batch import Batch
from tlstd.errors import InvalidInputError
from tlstd.estimators.base import Factory
from tlstd.estimators.step_sizes import StepSize


class TrueOnlineTD(TDFamily):
    """TD with a dutch trace: at every step the weights of the forward view with all λ-returns up to that step.

    With v = w·x_t and v' = w·x_{t+1}, both before the update,

        z_t = γ_t λ (z_{t-1} - α_t (z_{t-1}·x_t) x_t) + α_t x_t
        w ← w + (r_{t+1} + γ_{t+1} v' - v_old) z_t - α_t (v - v_old) x_t,    then v_old ← v'.

    This is the form of the first paper (2014), with the step size inside the trace. The later one (2016) takes it out,
    which is the same for a constant step size only: for z_t each x_k has to be weighted by its own α_k, and this form
    does that. The two discounts are kept apart: γ_t decays the trace, γ_{t+1} weighs the bootstrap. Where an episode
    starts (γ_t = 0) v_old cancels from the update.

    Parameters
    ----------
    n_features : int
        Number of features d; may be as large as 2**31 when features are sparse.
    step_size : float, :class:`~tlstd.Decay` or callable t -> α_t
        α. Values below 1 / ‖x‖² are safe: with tile coding, 1 / tilings is the largest sensible one.
    lambda_ : float in [0, 1]
        Trace parameter. At 0 this is TD(0).
    n_targets : int
        Number of reward signals predicted from one stream; they share the trace.

    Notes
    -----
    Time and memory are those of :class:`~tlstd.TD`. On-policy only: a transition with ``rho`` other than 1 is refused
    (its off-policy relatives are other algorithms; use ``TD`` or ``TLSTD``). Diverges like TD when steps are too large.

    References
    ----------
    van Seijen, Sutton: True online TD(λ). ICML 2014.
    van Seijen, Mahmood, Pilarski, Machado, Sutton: True online temporal-difference learning. JMLR 17, 2016.

    Example
    -------
    >>> from tlstd import random_walk
    >>> from tlstd.estimators.step_sizes import Decay
    >>> walk = random_walk(n_states=5, gamma=0.9)
    >>> model = TrueOnlineTD(n_features=5, step_size=Decay(0.1, 1000), lambda_=0.9)
    >>> model.update_many(walk.sample(20_000, np.random.default_rng(0)))
    >>> bool(np.abs(model.predict(walk.X) - walk.values()).max() < 0.1)
    True
    """

    _true_online = True

    def __init__(self, n_features: int, *, step_size: StepSize, lambda_: float, n_targets: int = 1) -> None:
        super().__init__(n_features, step_size=step_size, lambda_=lambda_, n_targets=n_targets)

    def _check_batch(self, batch: Batch) -> None:
        ratios = np.flatnonzero(batch.rhos != 1.0)
        if ratios.size:
            raise InvalidInputError(
                f"rho is {batch.rhos[ratios[0]]} at step {ratios[0]} of this call: true-online TD is on-policy, so rho "
                "must be 1; use TD, LSTD or TLSTD for off-policy data"
            )


EXAMPLES: dict[str, Factory] = {
    "TrueOnlineTD": lambda n_features, **options: TrueOnlineTD(n_features, step_size=0.05, lambda_=0.7, **options),
}
