"""fLSTD-SA: LSTD by stochastic approximation, TD steps for samples drawn at random from those stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tlstd.classic import merged_systems
from tlstd.core import parameters
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.file_format import Saved, State
from tlstd.data.batch import Batch
from tlstd.estimators.base import Factory, LinearEstimator
from tlstd.estimators.step_sizes import StepSize, as_schedule, plain_step_size, with_schedule
from tlstd.krylov.sample_keeper import SampleKeeper
from tlstd.krylov.samples import SampleStore
from tlstd.zoo.kernels.sampled import sampled_steps
from tlstd.zoo.stored_batches import recorded

MAX_PASSES = 1_000
"""More passes are refused: a file that asks for a billion would never answer."""


class LSTDSA(SampleKeeper):
    """fLSTD-SA: w ← w + α_n (r_i + γ_i w·x_i′ - w·x_i) x_i for samples i drawn uniformly, and the average of the w.

    The samples are kept. When weights are read, ``passes`` steps for each of them are taken from w = 0. The mean of
    such a step is α (b - A w) with the A and b of all samples, so the weights tend to LSTD's solution with λ=0, at
    O(nnz) a step and without a matrix; drawing makes steps independent, which the order of a trajectory does not.
    :class:`~tlstd.Replay` goes through the samples in order and has λ.

    Parameters
    ----------
    n_features : int
        Number of features d. Only features that were seen take memory.
    step_size : float, :class:`~tlstd.Decay` or callable n -> α_n
        α of step n = 1, 2, … of a read. Below 2/‖x‖²; the publication has (1-γ)/2 · (c/(c+n))^a with 1/2 < a < 1 for
        averages.
    passes : int from 1 to ``MAX_PASSES``
        Steps for each sample.
    average : float in (0, 1]
        Share of the steps, the last ones, of whose weights the average is the result; 1 as published, and almost 0 for
        the last weights.
    seed : int >= 0
        Of the draws.
    n_targets : int
        Number of reward signals.

    Notes
    -----
    An update stores the sample, as :class:`~tlstd.KrylovLSTD` does. The first read after an update takes
    O(passes · entries stored), so this is for recorded streams, not for a prediction at every step.

    Departures: half of the steps are averaged by default, so that the way from 0 is forgotten; the weights are not
    projected on a ball; ratios multiply the step. With too large a step the weights diverge, as TD's.

    References
    ----------
    Prashanth, Korda, Munos: Fast LSTD using stochastic approximation: finite time analysis and application to traffic
    control. ECML PKDD 2014.

    Example
    -------
    >>> from tlstd import LSTD, LSTDSA, boyan_chain
    >>> steps = boyan_chain().sample(2_000, np.random.default_rng(0))
    >>> model, lstd = LSTDSA(4, step_size=0.2, passes=30), LSTD(4, lambda_=0.0)
    >>> model.update_many(steps), lstd.update_many(steps)
    (None, None)
    >>> bool(np.abs(model.weights - lstd.weights).max() < 0.5)
    True
    """

    def __init__(
        self,
        n_features: int,
        *,
        step_size: StepSize,
        passes: int = 10,
        average: float = 0.5,
        seed: int = 0,
        n_targets: int = 1,
    ) -> None:
        super().__init__(n_features, lambda_=0.0, n_targets=n_targets)
        self.step_size = as_schedule(step_size)
        self.passes = parameters.integer("passes", passes, high=MAX_PASSES)
        self.average = parameters.real("average", average, low=0.0, high=1.0, open_low=True)
        self.seed = parameters.integer("seed", seed, low=0)
        self._store = SampleStore(self.n_features, lambda_=0.0, n_targets=self.n_targets)

    def _learn(self, batch: Batch) -> None:
        self._store.append(batch)

    def _solve(self) -> tuple[IntArray, FloatArray]:
        ids, n_samples = self._store.ids.copy(), self._count()
        w, mean = np.zeros((ids.size, self.n_targets)), np.zeros((ids.size, self.n_targets))
        if not n_samples:
            return ids, mean
        batch = recorded(self._store.samples, np.arange(ids.size))
        x, rows, x_next, next_rows = batch.sparse()
        columns, last = (batch.discounts, batch.rhos, batch.rewards), self.passes * n_samples
        first = min(last - 1, round((1.0 - self.average) * last))
        for number in range(self.passes):
            drawn = np.random.default_rng([self.seed, number]).integers(0, n_samples, n_samples)
            n = number * n_samples + 1
            alphas = self.step_size.values(n, n_samples)
            sampled_steps(x, rows, x_next, next_rows, columns, drawn, alphas, n, first, last, w, mean)
        return ids, mean

    def _merged_state(self, other: LSTDSA) -> State:
        return {"samples": merged_systems.kept_samples(self._store.state(), other._store.state(), self.n_features)}

    def _parameters(self) -> dict[str, Any]:
        return plain_step_size(super()._parameters())

    @classmethod
    def _made(cls, parameters: Mapping[str, Any]) -> LinearEstimator:
        return super()._made(with_schedule(parameters))

    def _state(self) -> State:
        return {"samples": self._store.state()}

    def _restore(self, saved: Saved) -> None:
        self._store.restore(saved.part("samples"))


EXAMPLES: dict[str, Factory] = {
    "LSTDSA": lambda n_features, **options: LSTDSA(n_features, step_size=0.05, passes=3, **options),
}
