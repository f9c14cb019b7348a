"""What the checks look at, computed once for several of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.units import deviation
from tlstd.evaluation.episode_values import EpisodeValue
from tlstd.evaluation.fits import Fit
from tlstd.evaluation.ladder import Case, Row, returns_to_go
from tlstd.evaluation.rungs import ACTION_VALUES, LEAST_SQUARES, REFUSAL, WITH_RATIOS
from tlstd.evaluation.selection import completed_returns
from tlstd.evaluation.steps import HIDDEN, BoolArray, Steps
from tlstd.logs.log import Log

MOST_STEPS = 20_000
"""Steps on which checks look for similar states: of a longer log, evenly spaced episodes."""
SMALL, MEDIUM = 0.2, 0.5
"""Effects in standard deviations of returns that matter (amber) and that matter much (red).

J. Cohen, "Statistical power analysis for the behavioral sciences", 1988: a small and a medium effect.
"""
PRACTICAL = 0.1
"""Of the mean absolute return: standard deviations count as at least this much, so that a small effect is 2% of it."""
TRIFLE = 1e-3
"""Of the mean absolute return: what moves the answer by less matters to nobody."""
BY_MODELS = frozenset({LEAST_SQUARES.name, WITH_RATIOS.name, ACTION_VALUES.name, REFUSAL.name})
"""Rungs that rest on features."""


class LeftOut(NamedTuple):
    """What of a log an answer does not rest on: files that could not be used, and episodes in which numbers miss."""

    files: int = 0
    of_files: int = 0
    episodes: int = 0
    of_episodes: int = 0

    @property
    def share(self) -> float:
        """Of the log, as far as it can be told: files count alike, and so do episodes."""
        kept = (1.0 - self.files / max(1, self.of_files)) * (1.0 - self.episodes / max(1, self.of_episodes))
        return 1.0 - kept


@dataclass(frozen=True, eq=False)
class Evidence:
    """A case with its answer."""

    case: Case
    left_out: LeftOut

    @property
    def log(self) -> Log:
        """All of it."""
        return self.case.log

    @property
    def answer(self) -> Row:
        """The first row."""
        return self.case.rows[0]

    @property
    def rung(self) -> str:
        """What the answer stands on."""
        silence = self.case.silence
        refused = silence is not None and silence.refuses and self.answer.name == "LSTDQ"
        return REFUSAL.name if refused else self.answer.rung.name

    @property
    def by_model(self) -> bool:
        """Whether the answer rests on features."""
        return self.rung in BY_MODELS

    @property
    def on_policy(self) -> bool:
        """Whether the answer is about the logged policy."""
        return self.case.target is None

    @property
    def starts(self) -> NDArray[Any]:
        """Start states; of a log whose observations are elsewhere, those of the sample."""
        own, sample = self.case.sets[0], self.case.sample
        if own.rows is None or sample is None:
            return own.observations
        return sample.observations[sample.start_rows] if own.name != "all states" else sample.observations

    @property
    def single(self) -> bool:
        """Whether states were given."""
        return self.case.sets[0].rows is None

    @property
    def of_model(self) -> Row | None:
        """The row of least squares that assumes least."""
        return next((row for row in self.case.rows if row.rung.name in BY_MODELS), None)

    @property
    def fit(self) -> Fit:
        """The model behind that row, or behind single values."""
        row = self.of_model
        if row is not None and row.name == "LSTDQ" and self.case.actions is not None:
            return self.case.actions
        return self.case.model

    @property
    def steps(self) -> Steps:
        """Of the model."""
        return self.fit.steps

    @property
    def half_width(self) -> float:
        """Of the answer's interval."""
        return float("inf") if self.answer.interval is None else self.answer.interval.half_width

    @cached_property
    def held_out(self) -> tuple[FloatArray, FloatArray]:
        """Values of each step's x and x' by models of other episodes."""
        return self.fit.held_out()

    @cached_property
    def seen(self) -> BoolArray:
        """Steps whose logged return is seen to its end, but for ``HIDDEN``."""
        return self.steps.tails <= HIDDEN

    @cached_property
    def returns(self) -> FloatArray:
        """(N,) returns of the logged policy; on-policy they are completed where they are not seen."""
        if self.on_policy:
            return completed_returns(self.steps, *self.held_out)
        return self.steps.returns

    @cached_property
    def usable(self) -> BoolArray:
        """Where these can be used."""
        return np.ones(len(self.steps), dtype=np.bool_) if self.on_policy else self.seen

    @cached_property
    def to_go(self) -> FloatArray:
        """What was logged from each step to the end of its episode."""
        return returns_to_go(self.steps)

    @cached_property
    def size(self) -> float:
        """Mean absolute return."""
        every = np.abs(self.returns[self.usable])
        return float(every.mean()) if every.size else 0.0

    @cached_property
    def spread(self) -> float:
        """Standard deviation of the returns of start states (of all, where these are few or all the same).

        At least ``PRACTICAL`` of their mean size.
        """
        starts = self.steps.starts
        some = self.returns[starts[self.usable[starts]]]
        spread = deviation(some) if some.size >= 4 else 0.0
        if not spread > 1e-9 * float(np.abs(some).max(initial=0.0)):
            every = self.returns[self.usable]
            spread = deviation(every) if every.size else 0.0
        return max(spread, PRACTICAL * self.size)

    @property
    def horizon(self) -> float:
        """Mean discounted length of an episode: how many steps the value of a start state is made of."""
        gamma, log = self.case.gamma, self.log
        lengths = np.diff(log.episodes).astype(np.float64)
        if gamma == 1.0:
            return float(lengths.mean())
        seen = (1.0 - gamma**lengths) / (1.0 - gamma)
        return float(np.where(log.terminated[log.episodes[1:] - 1], seen, 1.0 / (1.0 - gamma)).mean())

    def mean(self, values: FloatArray, usable: BoolArray | None = None) -> EpisodeValue:
        """Mean over steps, with what each group moves it by."""
        steps, used = self.steps, self.usable if usable is None else usable
        sizes = steps.sums(used.astype(np.float64))
        sums, total = steps.sums(np.where(used, values, 0.0)), max(1.0, float(sizes.sum()))
        value = float(sums.sum()) / total
        groups = sizes > 0.0
        return EpisodeValue(value, ((sums - value * sizes) / total)[groups], float(groups.sum()))

    @cached_property
    def sample(self) -> Log:
        """About ``MOST_STEPS`` steps of the log in evenly spaced episodes; the first steps, where episodes are long."""
        log = self.case.seen
        if len(log) <= MOST_STEPS:
            return log
        wanted = max(1, int(log.n_episodes * MOST_STEPS / len(log)))
        chosen = thinned(log.n_episodes, wanted)
        if np.diff(log.episodes)[chosen].sum() > 2 * MOST_STEPS:
            return log[:MOST_STEPS]
        return log.select(chosen)


def thinned(n: int, most: int) -> IntArray:
    """At most so many of n places, evenly spaced.

    Example
    -------
    >>> thinned(5, 10), thinned(10, 3)
    (array([0, 1, 2, 3, 4]), array([0, 4, 9]))
    """
    return np.arange(n) if n <= most else np.linspace(0, n - 1, most).astype(np.int64)
