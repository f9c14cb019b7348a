"""Rows of state values in the table of ``evaluate``: Krylov LSTD, LSTD, t-LSTD and TD, on-policy or with ratios."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from tlstd.classic.lstd import LSTD
from tlstd.classic.td import TD
from tlstd.core.arrays import FloatArray
from tlstd.data import held_out
from tlstd.data.transitions import Transitions
from tlstd.errors import InvalidInputError
from tlstd.estimators.base import LinearEstimator
from tlstd.evaluation.choose import choose
from tlstd.evaluation.fitted import Fitted
from tlstd.evaluation.table_returns import add_weighted_returns
from tlstd.evaluation.task import EvaluationTask
from tlstd.evaluation.value_function import ValueFunction
from tlstd.features.base import FeatureMap
from tlstd.krylov.choice import FOLDS, DimensionChoice
from tlstd.krylov.krylov_lstd import KrylovLSTD
from tlstd.truncated.tlstd import TLSTD

LAMBDAS = (0.0, 0.5, 0.8, 0.95, 1.0)
"""Trace parameters that are compared on-policy."""
OFF_POLICY_LAMBDAS = (0.0, 0.5, 0.9)
"""With ratios, which multiply along the trace."""
RIDGES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
STEP_SIZES = (0.01, 0.03, 0.1, 0.3, 1.0)
"""Of TD, divided by the mean ‖x‖²."""
RANKS = (10, 20, 40, 80)
"""Of t-LSTD, that are compared."""
RANK_STEPS = 2_000
"""Steps on which they are, about: each is as expensive as what it is chosen for."""
RANK_WORK = 400_000
"""Steps times features seen up to which it is chosen on more."""
MOST_FOR_LSTD = 1_000
"""Features seen up to which LSTD is in the table."""


def add_state_values(run: EvaluationTask, rhos: FloatArray | None) -> Fitted:
    """Fit values of states, on-policy or with ratios, add the rows, and return the first one's."""
    features = run.feature_map()
    run.report("features", 0.4)
    sample = run.sample
    sample_rhos = rhos if rhos is None or sample.rows is None else rhos[sample.rows]
    steps = sample.log.transitions(features, run.gamma, rhos=sample_rhos)
    if not len(steps):
        raise InvalidInputError("the log has no step whose next observation is known: nothing can be learned")
    run.report("choosing λ and dimension", 0.45)
    began = perf_counter()
    rows = _Rows(run, features, steps, rhos)
    lambda_, dimension = rows.choose_lambda()
    model = KrylovLSTD(features.n_features, lambda_=lambda_, dimension=dimension)
    fitted = Fitted(rows.learned(model, 0.5, 0.6), run.log, run.target, rhos, lambda_, dimension, run.starts)
    if run.wants("KrylovLSTD"):
        rows.add("KrylovLSTD", began, fitted.values, f"λ={lambda_:g}, dimension {dimension}")
    if run.wants("LSTD"):
        rows.add_lstd(lambda_)
    if run.wants("t-LSTD"):
        rows.add_truncated(lambda_)
    if run.wants("TD"):
        rows.add_td(lambda_)
    if rhos is not None:
        add_weighted_returns(run, fitted)
    return fitted


@dataclass
class _Rows:
    """The estimators on one log, with parameters chosen on some of its steps."""

    run: EvaluationTask
    features: FeatureMap
    steps: Transitions
    """What parameters are chosen on."""
    rhos: FloatArray | None
    reference: Callable[[], LinearEstimator] | None = None
    """Completes returns that are not seen to their end."""

    @property
    def n_seen(self) -> int:
        """Features that occur in the sample."""
        X = self.steps.X
        return self.features.n_features if isinstance(X, np.ndarray) else int(np.unique(X.indices).size)

    def learned(self, model: LinearEstimator, low: float, high: float) -> ValueFunction:
        """The model, after all steps of the log; ``low`` and ``high`` are how much of all is done before and after."""
        run, values = self.run, ValueFunction(model, self.features, self.run.gamma)
        name = type(model).__name__
        values.update(
            run.log, rhos=self.rhos, report=lambda share: run.report(f"{name}: learning", low + (high - low) * share)
        )
        run.report(f"{name}: solving", high)
        return values

    def add(self, name: str, began: float, values: ValueFunction, note: str) -> None:
        """A row of the table."""
        means = {name: float(np.mean(values.predict(starts.observations))) for name, starts in self.run.starts.items()}
        self.run.add(name + " with ratios" * (self.rhos is not None), began, means, note)

    def choose_lambda(self) -> tuple[float, int]:
        """λ and dimension: for each λ the dimension of least held-out error, and then the best of these."""
        off_policy, n = self.rhos is not None, self.features.n_features
        lambdas = OFF_POLICY_LAMBDAS if off_policy else LAMBDAS
        found: list[DimensionChoice] = self.run.each(_dimension, (n, self.steps), lambdas)
        candidates = [(lambda_, choice.dimension) for lambda_, choice in zip(lambdas, found, strict=True)]
        careful = candidates[0] if off_policy else candidates[-2]
        self.reference = lambda: KrylovLSTD(n, lambda_=careful[0], dimension=careful[1])
        if self._same_returns and all(choice.decided for choice in found):
            scores = np.array([choice.scores[choice.dimension - 1] for choice in found])
            self.run.notes.append(f"KrylovLSTD: {found[0].note}")
            return candidates[held_out.least(scores, max(float(choice.scores.max()) for choice in found))]
        choice = choose(
            lambda c: KrylovLSTD(n, lambda_=c[0], dimension=c[1]),
            candidates,
            self.steps,
            otherwise=careful,
            reference=self.reference,
            each=self.run.each,
        )
        self.run.notes.append(f"KrylovLSTD: {choice.note}")
        return choice.value

    @property
    def _same_returns(self) -> bool:
        """Whether the dimension of every λ was chosen by the same returns, which no reference completes.

        Their scores can then be compared, and nothing has to be fitted again.
        """
        steps = self.steps
        folds = held_out.make_folds(steps.discounts, steps.trace_discounts, FOLDS)
        return not held_out.needs_reference(steps.discounts, steps.rhos, folds)

    def chosen(self, make: Callable[[Any], LinearEstimator], values: Sequence[Any], otherwise: Any) -> Any:
        """One of the values, by held-out returns."""
        return choose(make, values, self.steps, otherwise=otherwise, reference=self.reference).value

    def add_lstd(self, lambda_: float) -> None:
        """LSTD with a ridge."""
        if self.n_seen > MOST_FOR_LSTD:
            self.run.notes.append(
                f"LSTD was left out: {self.n_seen:,} features were seen, more than {MOST_FOR_LSTD:,}."
            )
            return
        self.run.report("LSTD", 0.6)
        began, n = perf_counter(), self.features.n_features
        ridge = self.chosen(lambda r: LSTD(n, lambda_=lambda_, ridge=r), RIDGES, 1e-4)
        values = self.learned(LSTD(n, lambda_=lambda_, ridge=ridge), 0.62, 0.68)
        self.add("LSTD", began, values, f"λ={lambda_:g}, ridge {ridge:g}")

    def add_truncated(self, lambda_: float) -> None:
        """t-LSTD, or how long it would take."""
        self.run.report("t-LSTD", 0.7)
        began, n, steps = perf_counter(), self.features.n_features, len(self.run.log)
        if self.run.large and not self.run.everything:
            part = self.steps[: min(len(self.steps), 4_000)]
            TLSTD(n, min(RANKS[-1], self.n_seen), lambda_=lambda_).update_many(part)
            minutes = (perf_counter() - began) / len(part) * steps / 60
            self.run.notes.append(f"t-LSTD was left out: it would take about {minutes:.0f} minutes (all=True, --all).")
            return
        ranks = sorted({min(rank, self.n_seen) for rank in RANKS})
        some = self.steps[: min(len(self.steps), max(RANK_STEPS, RANK_WORK // self.n_seen))]
        rank = choose(
            lambda r: TLSTD(n, r, lambda_=lambda_), ranks, some, otherwise=ranks[-1], reference=self.reference
        ).value
        values = self.learned(TLSTD(n, rank, lambda_=lambda_), 0.72, 0.88)
        self.add("t-LSTD", began, values, f"λ={lambda_:g}, rank {rank}")

    def add_td(self, lambda_: float) -> None:
        """TD with a constant step size."""
        self.run.report("TD", 0.9)
        began, n, X = perf_counter(), self.features.n_features, self.steps.X
        square = float((X**2).sum() / X.shape[0])
        sizes = [size / square for size in STEP_SIZES]
        size = self.chosen(lambda a: TD(n, step_size=a, lambda_=lambda_), sizes, sizes[1])
        values = self.learned(TD(n, step_size=size, lambda_=lambda_), 0.9, 0.94)
        self.add("TD", began, values, f"λ={lambda_:g}, step size {size:.2g}")


def _dimension(n: int, steps: Transitions, lambda_: float) -> DimensionChoice:
    """The dimension that Krylov LSTD chooses, and by which scores."""
    model = KrylovLSTD(n, lambda_=lambda_)
    model.update_many(steps)
    return model.choices[0]
