"""What the checks look at: a sample of the log, and held-out predictions of the returns in it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtr

from tlstd.core.arrays import FloatArray, IntArray, Matrix
from tlstd.core.units import deviation, power_of_two
from tlstd.data import held_out
from tlstd.data.held_out import Folds, Targets
from tlstd.data.transitions import Transitions
from tlstd.estimators.base import LinearEstimator
from tlstd.evaluation.fitted import Fitted, LeftOut, Starts
from tlstd.evaluation.importance import starts_of
from tlstd.evaluation.influence import Influence
from tlstd.evaluation.intervals import Interval
from tlstd.evaluation.log_intervals import influence_on
from tlstd.evaluation.policies import Target
from tlstd.evaluation.reference import part, reference_values
from tlstd.evaluation.silence import Limits, Silence
from tlstd.evaluation.value_function import ValueFunction
from tlstd.evaluation.whole_episodes import WholeEpisodes
from tlstd.features.auto_tiles import AutoTiles
from tlstd.features.states import encoded
from tlstd.krylov.krylov_lstd import KrylovLSTD
from tlstd.logs.log import Log

MOST_STEPS = 20_000
"""Steps on which the checks are made: of a longer log, evenly spaced episodes."""
FOLDS = 5
LIKELY, CERTAIN = 2.7e-3, 6.3e-5
"""Probabilities, by chance alone, of what counts as found (amber) and as certain (red): 3 and 4 standard errors."""
SMALL, MEDIUM = 0.2, 0.5
"""Effects in standard deviations of returns that matter (amber) and that matter much (red).

J. Cohen, "Statistical power analysis for the behavioral sciences", 1988: a small and a medium effect.
"""

PRACTICAL = 0.1
"""Of the mean absolute return: standard deviations count as at least this much, so that a small effect is 2% of it."""


TRIFLE = 1e-3
"""Of the mean absolute return: what moves the answer by less matters to nobody."""


class Answer(NamedTuple):
    """What is known of the answer beside the model that it came from."""

    interval: Interval | None = None
    """The model's, of all steps; None if it is too wide to be known, or was not asked for."""
    plain: float | None = None
    """The mean of the model's values, from which the middle of the interval was debiased."""
    value: float | None = None
    """The answer."""
    rung: str = ""
    """What the answer stands on."""
    returned: WholeEpisodes | None = None
    """The value from returns of all start states, on-policy."""
    influence: Influence | None = None
    """The model's, of all steps, where it is known."""
    left_out: LeftOut = LeftOut()
    n_steps: int = 0
    """Of the log that is asked about, where the model's may be a part of it."""
    limits: Limits | None = None
    """The range of discounted returns, where it was told."""
    silence: Silence | None = None
    """What the log does not have of the policy's actions, where the answer is made of their values."""


class Mean(NamedTuple):
    """A mean over groups of samples that depend on each other, and its standard error."""

    value: float
    error: float
    n_groups: int

    def chance(self, expected: float = 0.0, scale: float = 1.0) -> float:
        """Probability of so large a difference from ``expected`` by chance, by Student's distribution.

        ``scale`` is the size of the numbers that were averaged, for telling a difference from rounding.
        """
        difference = abs(self.value - expected)
        if self.n_groups < 2 or not np.isfinite(difference):
            return 1.0
        if self.error <= 1e-12 * max(difference, abs(self.value)):
            return 0.0 if difference > 1e-9 * max(scale, abs(self.value)) else 1.0
        return float(2.0 * stdtr(self.n_groups - 1, -difference / self.error))

    def minus(self, other: Mean) -> Mean:
        """The difference of two independent means."""
        n = min(self.n_groups, other.n_groups)
        return Mean(self.value - other.value, float(np.hypot(self.error, other.error)), n)


def clustered(values: FloatArray, weights: FloatArray, group: IntArray) -> Mean:
    """Weighted mean of values (N,), with a standard error over groups.

    Example
    -------
    >>> clustered(np.array([1.0, 1.0, 3.0, 3.0]), np.ones(4), np.array([0, 0, 1, 1]))
    Mean(value=2.0, error=1.0, n_groups=2)
    """
    _, index = np.unique(group, return_inverse=True)
    sizes: FloatArray = np.bincount(index, weights).astype(np.float64)
    sums: FloatArray = np.bincount(index, weights * values).astype(np.float64)
    used = sizes > 0.0
    if not used.any():
        return Mean(float("nan"), float("inf"), 0)
    unit = power_of_two(sums)
    mean, error = held_out.scores(sums[used, None] / unit, sizes[used])
    return Mean(unit * float(mean[0]), unit * float(error[0]), int(used.sum()))


class Fit(NamedTuple):
    """Values of every step of the sample by models that have not seen its fold."""

    values: FloatArray
    next_values: FloatArray


@dataclass(frozen=True, eq=False)
class Evidence:
    """A log, the answer from it, and what is computed once for several checks.

    The returns are those of the policy that acted, whatever was asked for: whether the log is what it seems and whether
    the features see what matters can be checked on them, and on nothing else.
    """

    whole: Log
    sample: Fitted
    """The answer's, with the part of the log that is looked at, its ratios and start states; the model is of all."""
    n_actions: int
    """Discrete actions of log and target; 0 on-policy, and where they are continuous."""
    answer: Answer

    @property
    def log(self) -> Log:
        """The sample."""
        return self.sample.log

    @property
    def n_steps(self) -> int:
        """Of the log that is asked about."""
        return self.answer.n_steps or len(self.whole)

    @property
    def returned(self) -> WholeEpisodes | None:
        """The value from returns of all start states, whether it is the answer or stands beside it."""
        return self.answer.returned

    @property
    def by_returns(self) -> WholeEpisodes | None:
        """The value from returns, if that is the answer."""
        found = self.returned
        return found if found is not None and found.name == self.answer.rung else None

    @property
    def model_s(self) -> str:
        """What the model's value is called in sentences."""
        return "The answer" if self.by_returns is None else "The value by least squares"

    @property
    def gamma(self) -> float:
        """Discount."""
        return self.sample.values.gamma

    @property
    def target(self) -> Target | None:
        """The policy asked for, for the sample; None if it is the one that acted."""
        return self.sample.target

    @property
    def starts(self) -> Starts:
        """States whose mean value is the answer, with their rows in the sample."""
        return next(iter(self.sample.starts.values()))

    @property
    def on_policy(self) -> bool:
        """Whether the answer is about the policy that acted."""
        return self.target is None

    @cached_property
    def features(self) -> Any:
        """Of states; action values for continuous actions have none."""
        return AutoTiles.fit(self.log.states) if self.sample.values.kind == "joint" else self.sample.values.features

    @cached_property
    def steps(self) -> Transitions:
        """The sample as the policy that acted made it."""
        return self.log.transitions(self.features, self.gamma)

    @cached_property
    def settings(self) -> tuple[float, int]:
        """λ and dimension for the policy that acted: the answer's, or chosen."""
        if self.on_policy:
            return self.sample.lambda_, self.sample.dimension
        found = KrylovLSTD(self.steps.n_features, lambda_=0.9)
        found.update_many(self.steps)
        dimension = found.chosen_dimension
        assert isinstance(dimension, int)
        return 0.9, dimension

    def make(self, n_features: int | None = None) -> LinearEstimator:
        """A fresh estimator with these settings."""
        lambda_, dimension = self.settings
        return KrylovLSTD(n_features or self.steps.n_features, lambda_=lambda_, dimension=dimension)

    @cached_property
    def folds(self) -> Folds:
        """Which steps are held out together."""
        return held_out.make_folds(self.steps.discounts, self.steps.trace_discounts, FOLDS)

    @cached_property
    def targets(self) -> Targets:
        """Returns of every step of the sample, as :func:`tlstd.evaluation.returns` makes them.

        Where they are not seen to their end, they are completed by the answer's own kind of model of other folds.
        """
        discounts, rhos, folds = self.steps.discounts, self.steps.rhos, self.folds
        reference = None
        if held_out.needs_reference(discounts, rhos, folds):
            reference = reference_values(self.steps, folds, self.make)
        return held_out.held_out_targets(self.steps.rewards[:, None], discounts, rhos, folds, reference=reference)

    @property
    def returns(self) -> FloatArray:
        """(N,) returns."""
        values: FloatArray = self.targets.values[:, 0]
        return values

    @property
    def weights(self) -> FloatArray:
        """1 where there is a usable return, else 0."""
        return self.targets.weights

    @property
    def can_hold_out(self) -> bool:
        """Whether there is enough to learn from one part and look at another."""
        groups = np.unique(self.folds.group[self.weights > 0.0])
        return self.folds.n_folds >= 2 and groups.size >= held_out.FEWEST_GROUPS

    @cached_property
    def fit(self) -> Fit:
        """Held-out values by the answer's features and settings."""
        return self.held_out_fit(self.steps, self.make)

    @cached_property
    def constant(self) -> FloatArray:
        """For every step the mean return in the other folds: what predicts without looking at the state."""
        n = self.folds.n_folds
        sizes = np.bincount(self.folds.fold, self.weights, n)
        sums = np.bincount(self.folds.fold, self.weights * self.returns, n)
        others = np.maximum(sizes.sum() - sizes, 1.0)
        constant: FloatArray = ((sums.sum() - sums) / others)[self.folds.fold]
        return constant

    def held_out_fit(self, steps: Transitions, make: Any) -> Fit:
        """Values of the sample's steps, encoded in whatever way, by models of the other folds."""
        values, next_values = np.zeros(len(steps)), np.zeros(len(steps))
        for fold in np.unique(self.folds.fold).tolist():
            mine = self.folds.fold == fold
            model = make(steps.n_features)
            model.update_many(part(steps, ~mine, self.folds.cut))
            held = part(steps, mine, self.folds.cut)
            values[mine], next_values[mine] = model.predict(held.X), model.predict(held.X_next)
        return Fit(values, next_values)

    @cached_property
    def unit(self) -> float:
        """A power of two: the largest return is at least one such unit, and less than two."""
        return power_of_two(self.returns)

    def squared_errors(self, values: FloatArray) -> FloatArray:
        """Of predictions of the returns, in units of ``unit``²."""
        squares: FloatArray = ((self.returns - values) / self.unit) ** 2
        return squares

    def mean(self, values: FloatArray) -> Mean:
        """Mean over the steps with usable returns."""
        return clustered(values, self.weights, self.folds.group)

    @cached_property
    def first_steps(self) -> IntArray:
        """Transitions that leave a start state and have a usable return."""
        found = starts_of(self.steps, self.log.start_rows)
        return found[self.weights[found] > 0.0]

    @cached_property
    def spread(self) -> float:
        """Standard deviation of the returns of start states (of all, where these are few or all the same).

        At least ``PRACTICAL`` of their mean size: where all returns are nearly the same, what moves the answer by less
        does not matter.
        """
        some = self.returns[self.first_steps]
        spread = deviation(some) if some.size >= 4 else 0.0
        every = self.returns[self.weights > 0.0]
        if not spread > 1e-9 * max(self.unit, float(np.abs(some).max(initial=0.0))):
            spread = deviation(every)
        return max(spread, PRACTICAL * self.size)

    @property
    def size(self) -> float:
        """Mean absolute return."""
        every = np.abs(self.returns[self.weights > 0.0])
        return float(every.mean()) if every.size else 0.0

    @cached_property
    def standard_error(self) -> float:
        """Of the mean return of the start states of the whole log; of the mean over groups where there are none."""
        n = int(self.whole.begins.sum())
        if self.first_steps.size >= 4:
            return float(deviation(self.returns[self.first_steps]) / np.sqrt(n))
        return self.mean(self.returns).error

    @property
    def horizon(self) -> float:
        """Mean discounted length of an episode, Σ γ^t: how many steps the value of a start state is made of."""
        lengths = np.diff(self.whole.episodes).astype(np.float64)
        ended = self.whole.terminated[self.whole.episodes[1:] - 1]
        if self.gamma == 1.0:
            return float(lengths.mean())
        seen = (1.0 - self.gamma**lengths) / (1.0 - self.gamma)
        return float(np.where(ended, seen, 1.0 / (1.0 - self.gamma)).mean())

    @cached_property
    def influence(self) -> Influence:
        """What each step and episode of the sample has moved the answer by."""
        if len(self.log) == len(self.whole):
            return influence_on(self.sample) if self.answer.influence is None else self.answer.influence
        values = self.sample.values
        own = ValueFunction(
            self._refitted,
            values.features,
            self.gamma,
            kind=values.kind,
            n_actions=values.n_actions,
            offsets=values.offsets,
        )
        return influence_on(replace(self.sample, values=own))

    def value_of_sample(self) -> float:
        """The mean of the regularised values, from the sample."""
        X, offsets = self.sample.encode(self.starts)
        return float(np.mean(self._refitted.predict(X) + offsets))

    @cached_property
    def _refitted(self) -> LinearEstimator:
        """The answer's model, of the sample alone."""
        sample = self.sample
        model = KrylovLSTD(sample.values.model.n_features, lambda_=sample.lambda_, dimension=sample.dimension)
        model.update_many(sample.pieces())
        return model

    def learned(self, log: Log) -> LinearEstimator:
        """A model of the policy that acted, by the same settings from a changed log."""
        model = self.make()
        model.update_many(log.transitions(self.features, self.gamma))
        return model

    def value_by(self, model: LinearEstimator, features: Any = None) -> float:
        """Mean value of the start states (of the log's own, off-policy) by a model of states."""
        seen = self.starts.observations
        states = seen.reshape(len(seen), -1).astype(np.float64)
        X: Matrix = encoded(self.features if features is None else features, states)
        return float(np.mean(model.predict(X)))


def _of_rows(target: Target | None, rows: IntArray) -> Target | None:
    if target is None:
        return None
    table, logged = (None if a is None else a[rows] for a in (target.table, target.logged))
    return replace(target, table=table, logged=logged)


def gather(fitted: Fitted, answer: Answer | None = None) -> Evidence:
    """Evidence about an answer, on a sample of its log: evenly spaced episodes, or the first steps of a long one."""
    log = fitted.log
    n_actions, answer = 0, answer or Answer()
    if fitted.target is not None and log.actions is not None and log.actions.ndim == 1:
        n_actions = max(fitted.values.n_actions, fitted.target.n_actions(log))
    if len(log) <= MOST_STEPS:
        return Evidence(log, fitted, n_actions, answer)
    chosen = np.unique(np.linspace(0, log.n_episodes - 1, max(1, log.n_episodes * MOST_STEPS // len(log))).astype(int))
    if np.diff(log.episodes)[chosen].sum() > 2 * MOST_STEPS:
        part, rows = log[:MOST_STEPS], np.arange(MOST_STEPS)
    else:
        part, rows = log.select(chosen), log.rows_of(chosen)
    target = _of_rows(fitted.target, rows)
    name, starts = next(iter(fitted.starts.items()))
    if starts.rows is not None:
        own = part.start_rows if starts.rows.size < len(log) else np.arange(len(part))
        table = None if target is None else target.table
        starts = Starts(part.observations[own], own, None if table is None else table[own])
    rhos = None if fitted.rhos is None else fitted.rhos[rows]
    sample = replace(fitted, log=part, target=target, rhos=rhos, starts={name: starts})
    return Evidence(log, sample, n_actions, answer)
