"""LARS-TD: LSTD(λ) with an ℓ1 penalty, which selects features."""

from __future__ import annotations

import numpy as np

from tlstd.classic import merged_systems
from tlstd.core import parameters
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.file_format import Saved, State
from tlstd.core.threads import one_thread
from tlstd.data.batch import Batch
from tlstd.estimators.base import Factory, synchronized
from tlstd.krylov.operator import SampleOperator
from tlstd.krylov.sample_keeper import SampleKeeper
from tlstd.krylov.samples import SampleStore
from tlstd.zoo.lars_path import LarsPath, lars


class LARSTD(SampleKeeper):
    """LSTD(λ) with an ℓ1 penalty: the w that is the lasso's answer for the targets r + γ w·x′ which it makes itself.

    That is, b - A w = μ sign(w) where w is not 0, and |b - A w| <= μ for all other features. The samples are kept, and
    when weights are read the solutions are followed from μ = max |b|, where w = 0, down to the penalty: least-angle
    regression, in which features become active and inactive one at a time. A is only multiplied with, so that tens of
    thousands of features, of which some hundreds become active, are no difficulty.

    Parameters
    ----------
    n_features : int
        Number of features d. Only features that were seen take memory.
    penalty : float in [0, 1]
        μ as a share of max |b|, for each target: 1 leaves no feature, and 0 is LSTD, if the path gets there.
        ``evaluation.choose`` chooses among several by held-out data.
    lambda_ : float in [0, 1]
        Trace parameter. Traces accumulate.
    max_features : int
        The path ends when so many features are active.
    n_targets : int
        Number of reward signals. Each has its own path.

    Notes
    -----
    An update stores the sample, as :class:`~tlstd.KrylovLSTD` does. The first read after an update takes one pass over
    the entries stored and O(n·k + k²) for each knot of the path, n features seen and k active, and 8·n·k bytes.

    Where it fails: the path is known to go through, with one solution for each μ, if A is a P-matrix (all principal
    minors are positive), as on-policy with λ=0 and enough samples. Off-policy, with few samples or features that depend
    on each other it may end early; the weights are then those of the last μ reached, and :attr:`paths` says why. Of
    features that are always equal one is taken. All features are penalised, a constant one too, by the size of their
    values: scale them alike.

    Departures from the publication, which has λ=0: λ and ratios; and after a violation of the P-matrix property the
    path ends, where the authors propose an ℓ2 penalty as well.

    References
    ----------
    Kolter, Ng: Regularization and feature selection in least-squares temporal difference learning. ICML 2009.
    Ghavamzadeh, Lazaric, Munos, Hoffman: Finite-sample analysis of Lasso-TD. ICML 2011.

    Example
    -------
    >>> import numpy as np
    >>> from tlstd import LARSTD, Transitions, random_walk
    >>> rng, chain = np.random.default_rng(0), random_walk(n_states=5, gamma=0.9)
    >>> steps = chain.sample(2_000, rng)
    >>> noise = rng.standard_normal((2, 2_000, 100))  # features that say nothing, beside the five states
    >>> steps = Transitions(
    ...     np.hstack([steps.X, noise[0]]), steps.rewards, np.hstack([steps.X_next, noise[1]]),
    ...     discounts=steps.discounts, trace_discounts=steps.trace_discounts,
    ... )
    >>> model = LARSTD(105, penalty=0.5, lambda_=0.0)
    >>> model.update_many(steps)
    >>> model.sparse_weights.indices, model.paths[0].ended
    (array([0, 4]), 'penalty')
    """

    def __init__(
        self,
        n_features: int,
        *,
        penalty: float,
        lambda_: float,
        max_features: int = 500,
        n_targets: int = 1,
    ) -> None:
        super().__init__(n_features, lambda_=lambda_, n_targets=n_targets)
        self.penalty = parameters.real("penalty", penalty, low=0.0, high=1.0)
        self.max_features = parameters.integer("max_features", max_features)
        self._store = SampleStore(self.n_features, lambda_=self.lambda_, n_targets=self.n_targets)

    def _learn(self, batch: Batch) -> None:
        self._store.append(batch)

    @property
    @synchronized
    def paths(self) -> tuple[LarsPath, ...]:
        """For each target the path from w = 0 to the penalty; positions are those of :attr:`seen_ids`."""
        return self._paths()

    @property
    @synchronized
    def seen_ids(self) -> IntArray:
        """Ids of the features seen, by position; a copy."""
        return self._store.ids.copy()

    def _paths(self) -> tuple[LarsPath, ...]:
        if self._reading is None:
            operator = SampleOperator(self._store.samples, lambda_=self.lambda_, n_targets=self.n_targets)

            def column(j: int) -> FloatArray:
                unit = np.zeros(operator.n)
                unit[j] = 1.0
                return operator.matvec(unit)

            right = np.ascontiguousarray(operator.b().T)
            with one_thread():
                self._reading = tuple(
                    lars(column, b, self.penalty * float(np.abs(b).max(initial=0.0)), self.max_features) for b in right
                )
        paths: tuple[LarsPath, ...] = self._reading
        return paths

    def _solve(self) -> tuple[IntArray, FloatArray]:
        ids = self._store.ids.copy()
        weights = np.zeros((ids.size, self.n_targets))
        for c, path in enumerate(self._paths()):
            weights[path.active, c] = path.weights
        return ids, weights

    def _merged_state(self, other: LARSTD) -> State:
        return {"samples": merged_systems.kept_samples(self._store.state(), other._store.state(), self.n_features)}

    def _state(self) -> State:
        return {"samples": self._store.state()}

    def _restore(self, saved: Saved) -> None:
        self._store.restore(saved.part("samples"))


EXAMPLES: dict[str, Factory] = {
    "LARSTD": lambda n_features, **options: LARSTD(n_features, penalty=0.2, lambda_=0.7, **options),
}
