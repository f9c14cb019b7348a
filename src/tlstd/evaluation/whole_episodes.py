"""The value of the logged policy from whole episodes of a log: mean of returns, or returns with tails."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.units import safe_unit
from tlstd.data import held_out
from tlstd.data.held_out import Folds
from tlstd.data.transitions import Transitions
from tlstd.evaluation.episode_values import EpisodeValue, episode_value
from tlstd.evaluation.fitted import Fitted
from tlstd.evaluation.importance import episode_folds, starts_of
from tlstd.evaluation.influence import Asked, Influence, degrees
from tlstd.evaluation.intervals import NOT_A_CHANGE, NOT_COVERED, Interval
from tlstd.evaluation.reference import reference_values
from tlstd.evaluation.rungs import MEAN_OF_RETURNS, RETURNS_WITH_TAILS
from tlstd.features.constant import Constant
from tlstd.krylov.krylov_lstd import KrylovLSTD
from tlstd.logs.log import Log

MATTERS = 0.1
"""Of the half-width: tails that move returns by less on average need no influence of the model's weights."""


@dataclass(frozen=True, eq=False)
class WholeEpisodes:
    """A value from returns, with what each episode has moved it by."""

    found: EpisodeValue
    episodes: IntArray
    """(G,): the places in the log of the episodes that have moved it."""
    n_episodes: int
    """Of the log."""
    name: str
    """Of the row and its rung."""
    note: str
    carries: bool
    """Whether the answer can stand on it: two episodes or more, none of which is without a known step."""
    behind: float = 0.0
    """What the states behind the cuts add to the value."""
    size: float = 0.0
    """The mean of what each of them adds to or takes from a return."""
    cuts: Asked | None = None
    """Features of the states behind the cuts, discounted; their mean times the weights is ``behind``."""

    @property
    def rests_on_model(self) -> bool:
        """Whether what lies behind the cuts matters: more than ``MATTERS`` of the half-width."""
        return self.cuts is not None and not self.size < MATTERS * self.found.interval().half_width

    def interval(self, level: float) -> Interval:
        """By episodes."""
        kind = "returns" if self.name == MEAN_OF_RETURNS.name else self.name
        return self.found.interval(level, kind, NOT_COVERED if self.rests_on_model else NOT_A_CHANGE)

    def by_episode(self) -> FloatArray:
        """(n_episodes,): what each episode of the log moves the value by."""
        moved = np.zeros(self.n_episodes)
        moved[self.episodes] = self.found.contributions
        return moved

    def with_influence(self, behind: Influence, log: Log, rows: IntArray) -> WholeEpisodes:
        """The same with what each episode moves the weights by, and through them the values behind the cuts.

        ``behind`` is the influence on ``cuts``, of a model that has learned from these rows of the log.
        """
        own, n = self.by_episode(), self.n_episodes
        episode = episodes_of_groups(log, rows, behind.groups)
        moved = own + np.bincount(episode, behind.contributions, n)
        unit = safe_unit(own, np.sqrt(behind.spread) * behind.unit)
        spread: FloatArray = np.bincount(episode, behind.spread * (behind.unit / unit) ** 2, n).astype(np.float64)
        spread[self.episodes] += float(np.square(own / unit).mean())
        value = self.found.value - self.behind + behind.value
        found = EpisodeValue(value, moved, degrees(spread) + 1.0)
        return replace(self, found=found, episodes=np.arange(n), behind=behind.value)


def whole_episodes(fitted: Fitted, large: bool = False) -> WholeEpisodes | None:
    """The mean return of the first states of episodes; where they were cut off, values of other episodes' models.

    ``large``: values by the model itself, to which an episode adds little. None if no step leaves a first state.
    """
    log, features, gamma = fitted.log, fitted.values.features, fitted.values.gamma
    steps = log.transitions(Constant() if large else features, gamma)
    starts = starts_of(steps, log.start_rows)
    if not starts.size:
        return None
    begins, ends = of_starts(steps, starts)
    rows = between(begins, ends)
    behind_last = np.cumsum(ends - begins)
    first = behind_last - (ends - begins)
    discounts = steps.discounts[rows]
    tails = np.multiply.reduceat(discounts, first)
    cut = np.flatnonzero(tails > 0.0)
    next_values, asked = np.zeros(rows.size), None
    if cut.size:
        last = ends[cut] - 1
        encoded = fitted.values.encode(_seen_next(log, steps, last))
        X = encoded.X
        weights = tails[cut] * (cut.size / starts.size)
        asked = Asked(X * weights[:, None] if isinstance(X, np.ndarray) else sp.csr_array(X * weights[:, None]))
        behind = fitted.values.values_of(encoded) if large else _of_others(fitted, steps, last)
        next_values[behind_last[cut] - 1] = behind
    found = episode_value(behind_last, steps.rewards[rows], discounts, np.zeros(rows.size), next_values)
    episodes = np.searchsorted(log.episodes, steps.rows[starts], side="right") - 1
    carries = starts.size >= 2 and starts.size == log.start_rows.size
    each = tails[cut] * next_values[behind_last[cut] - 1]
    added, size = float(each.sum()) / starts.size, float(np.abs(each).sum()) / starts.size
    complete = not cut.size or float(tails.max()) <= held_out.LARGEST_TAIL
    name = (MEAN_OF_RETURNS if complete else RETURNS_WITH_TAILS).name
    note = f"{starts.size:,} returns, seen to the end"
    if cut.size:
        note = f"{starts.size:,} returns, {cut.size:,} of them cut off; what lies behind adds {added:.3g}"
    return WholeEpisodes(found, episodes, log.n_episodes, name, note, carries, added, size, asked)


def episodes_of_groups(log: Log, rows: IntArray, groups: Folds) -> IntArray:
    """(groups,): the episode of the log that each group of the steps that leave these rows belongs to."""
    found: IntArray = np.searchsorted(log.episodes, rows[np.flatnonzero(groups.cut)], side="right") - 1
    return found


def of_starts(steps: Transitions, starts: IntArray) -> tuple[IntArray, IntArray]:
    """Where the episodes of these first steps begin, and where they end."""
    cut = steps.trace_discounts == 0.0
    cut[:1] = True
    ends = np.append(np.flatnonzero(cut)[1:], len(steps))
    return starts, ends[np.searchsorted(ends, starts, side="right")]


def between(begins: IntArray, ends: IntArray) -> IntArray:
    """The steps of these episodes, one after the other."""
    lengths = ends - begins
    before = np.cumsum(lengths) - lengths
    rows: IntArray = np.arange(lengths.sum()) + np.repeat(begins - before, lengths)
    return rows


def _seen_next(log: Log, steps: Transitions, last: IntArray) -> FloatArray:
    """The observations after these steps."""
    following, n = steps.next_rows[last], len(log)
    final = log.final[np.flatnonzero(~log.terminated[log.episodes[1:] - 1] & log.has_final)]
    seen = log.observations[np.minimum(following, n - 1)].copy()
    beyond = following >= n
    seen[beyond] = final[following[beyond] - n]
    return seen


def _of_others(fitted: Fitted, steps: Transitions, last: IntArray) -> FloatArray:
    """Values of the states after these steps by models of other episodes."""
    n, lambda_, dimension = fitted.values.features.n_features, fitted.lambda_, fitted.dimension
    folds = episode_folds(steps)
    found = reference_values(steps, folds, lambda: KrylovLSTD(n, lambda_=lambda_, dimension=dimension))
    values: FloatArray = found.next_values[last, 0]
    return values
