"""TD that goes through its samples several times."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np

import tlstd
from tlstd.classic.td_family import TDFamily
from tlstd.core import parameters
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.file_format import Saved, State
from tlstd.data.batch import Batch
from tlstd.errors import InvalidParameterError
from tlstd.estimators.base import Factory, LinearEstimator
from tlstd.estimators.composite import fresh_part, made_from
from tlstd.krylov.sample_keeper import SampleKeeper
from tlstd.krylov.samples import SampleStore
from tlstd.zoo.stored_batches import recorded, shuffled

MAX_PASSES = 1_000
"""More passes are refused: a file that asks for a billion would never answer."""


class Replay(SampleKeeper):
    """TD or true-online TD that learns from its samples several times: experience replay over a recorded stream.

    The paper's remark that TD can use its samples again. The samples are kept. When weights are read, the learner
    begins anew and goes through all of them ``passes`` times: first in the order in which they came, then with whole
    episodes in random orders, traces starting empty with each. A stream without episodes is repeated in order. Step
    sizes count every visit.

    Parameters
    ----------
    learner : TD or TrueOnlineTD
        A new one; it says features, targets, λ and step sizes.
    passes : int from 1 to ``MAX_PASSES``
        How often each sample is learned from; with 1 this is the learner itself.
    seed : int >= 0
        Of the orders of the episodes.

    Notes
    -----
    An update stores the sample, as :class:`~tlstd.KrylovLSTD` does. The first read after an update costs ``passes``
    times what TD costs for all samples, so this is for recorded streams, not for a prediction at every step.

    References
    ----------
    Lin: Self-improving reactive agents based on reinforcement learning, planning and teaching. Machine Learning 8,
    1992.

    Example
    -------
    >>> from tlstd import TD, Replay, boyan_chain
    >>> chain = boyan_chain()
    >>> once = TD(4, step_size=0.02, lambda_=0.5)
    >>> often = Replay(TD(4, step_size=0.02, lambda_=0.5), passes=10)
    >>> for model in (once, often):
    ...     model.update_many(chain.sample(200, np.random.default_rng(0)))
    ...     print(f"{np.abs(model.predict(chain.X) - chain.values()).max():.1f}")
    18.8
    0.7
    """

    def __init__(self, learner: TDFamily, *, passes: int, seed: int = 0) -> None:
        if not isinstance(learner, TDFamily):
            raise InvalidParameterError(
                f"learner is {type(learner).__name__}: pass TD or TrueOnlineTD; who solves a system of equations gains "
                "nothing from seeing a sample again"
            )
        if learner.n_updates:
            raise InvalidParameterError(
                f"learner has learned from {learner.n_updates} samples: pass a new estimator, which this one then owns"
            )
        super().__init__(learner.n_features, lambda_=learner.lambda_, n_targets=learner.n_targets)
        self.passes = parameters.integer("passes", passes, high=MAX_PASSES)
        self.seed = parameters.integer("seed", seed, low=0)
        self._learner = copy.deepcopy(learner)
        self._store = SampleStore(self.n_features, lambda_=self.lambda_, n_targets=self.n_targets)

    def _check_batch(self, batch: Batch) -> None:
        self._learner._check_batch(batch)

    def _learn(self, batch: Batch) -> None:
        self._store.append(batch)

    def _learn_and_predict(self, batch: Batch, values: FloatArray) -> None:
        learner, n_before = self._after_first_pass(), self._count()
        self._learn(batch)
        if self.passes == 1:
            learner._learn_and_predict(batch, values)
            return
        stream = recorded(self._store.samples, self._store.ids)
        for t in range(len(batch)):  # the first pass goes on from step to step, the others begin anew
            step = batch.part(t, t + 1)
            learner._learn(step)
            model = copy.deepcopy(learner)
            self._repeat(model, stream.part(0, n_before + t + 1))
            values[t] = model._predict_vector(step.next_vector(self.n_features))

    def _solve(self) -> tuple[IntArray, FloatArray]:
        learner = self._after_first_pass()
        if self.passes > 1 and self._count():
            self._repeat(learner, recorded(self._store.samples, self._store.ids))
        return learner._solve()

    def _after_first_pass(self) -> TDFamily:
        """A new learner that has gone through all samples once, in order."""
        learner = copy.deepcopy(self._learner)
        if self._count():
            learner._learn(recorded(self._store.samples, self._store.ids))
        return learner

    def _repeat(self, learner: TDFamily, stream: Batch) -> None:
        """All passes but the first; changes the learner."""
        for number in range(1, self.passes):
            learner._learn(shuffled(stream, np.random.default_rng([self.seed, number])))

    # --- saving -----------------------------------------------------------------------------------------------------

    def _parameters(self) -> dict[str, Any]:
        return {"learner": made_from(self._learner), "passes": self.passes, "seed": self.seed}

    def _part_classes(self) -> dict[str, type[LinearEstimator]]:
        return {type(self._learner).__name__: type(self._learner)}

    @classmethod
    def _with_parts(
        cls, parameters: Mapping[str, Any], saved: Saved, classes: Mapping[str, type[LinearEstimator]]
    ) -> Mapping[str, Any]:
        return {**parameters, "learner": fresh_part(cls, "learner", parameters, saved.part("learner"), classes)}

    def _state(self) -> State:
        return {"learner": self._learner._state(), "samples": self._store.state()}

    def _restore(self, saved: Saved) -> None:
        self._learner._restore(saved.part("learner"))
        self._store.restore(saved.part("samples"))


EXAMPLES: dict[str, Factory] = {
    "Replay": lambda n_features, **options: Replay(
        tlstd.TD(n_features, step_size=0.05, lambda_=0.7, **options), passes=3
    ),
}
