"""The interval of a value from all shards: Aᵀh = x solved over them, and what every episode has moved the value by."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from tlstd.cluster.group_sums import Stretches, spread
from tlstd.cluster.operator import ShardedOperator
from tlstd.evaluation.influence import FOLDS, RIDGE, SETTLED
from tlstd.evaluation.intervals import Interval, interval_about
from tlstd.linalg.held_out import block_length, blocks_of
from tlstd.linalg.krylov import Arnoldi
from tlstd.types import FloatArray, IntArray

DIMENSIONS = (4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
"""Rounds after which it is seen whether the value still moves."""

Remember = Callable[[str, Callable[[], FloatArray]], FloatArray]
"""What was kept under a name, or what is computed now."""


class AskedMean(NamedTuple):
    """States whose mean value is asked for, over the features of all shards."""

    name: str | None
    """Of the set; None if the states were given."""
    x: FloatArray
    """(n,): the mean of their features."""
    offset: float
    """The mean of what comes on top of features times weights."""
    n_states: int


class Guess(NamedTuple):
    """h of a sample of the episodes, which the solution for all begins with."""

    ids: IntArray
    h: FloatArray
    standard_error: float
    """That the value of all will have, about."""

    def over(self, ids: IntArray) -> FloatArray:
        """h (n, 1) of the features ``ids``, in rising order; 0 for those that the sample has not seen."""
        h = np.zeros((ids.size, 1))
        at = np.minimum(np.searchsorted(ids, self.ids), ids.size - 1)
        known = ids[at] == self.ids
        h[at[known], 0] = self.h[known]
        return h


def sharded_interval(
    operator: ShardedOperator,
    weights: FloatArray,
    asked: AskedMean,
    guess: Guess,
    level: float,
    remember: Remember,
) -> Interval:
    """The interval of the mean value of states, about xᵀw + hᵀ(b - A w), episode by episode.

    h is the sample's and a correction by the shards: from Aᵀ(h - h₀) = x - Aᵀh₀, in Krylov spaces of growing dimension
    until the value moves by no more than ``SETTLED`` standard errors from one of ``DIMENSIONS`` to the next, twice in a
    row. As on one machine the system has a ridge of 10⁻⁹ mean ‖x‖². Errors δ_t are those of the weights given, which
    have seen all episodes: of more than a million steps that makes little difference.

    Parameters
    ----------
    operator : ShardedOperator
        Without a ridge; it has one afterwards.
    weights : (n, 1)
    asked : AskedMean
    guess : Guess
    level : float
    remember : function
        Keeps rounds.
    """
    residual = operator.b() - remember("residual", lambda: operator.matvec(weights))
    operator.with_ridge(RIDGE)
    mean = float(asked.x @ weights[:, 0]) + asked.offset
    h = _adjoint(operator, asked.x, residual, guess, remember)
    value = mean + float(h[:, 0] @ residual[:, 0])
    cuts = _cuts(operator)
    parts = operator.crew.each("group_sums", asked.name, np.hstack([h, weights]), mean, asked.n_states, cuts)
    n_asked = 0 if asked.name is None else asked.n_states
    found = spread(parts, sum(operator.counts), n_asked)
    with_starts = asked.name is not None
    return interval_about(value, found.standard_error, found.degrees, level, "sharded", found.n_groups, with_starts)


def _adjoint(
    operator: ShardedOperator, x: FloatArray, residual: FloatArray, guess: Guess, remember: Remember
) -> FloatArray:
    """h (n, 1) with Aᵀh = x, as far as the value is concerned."""
    h0, done = guess.over(operator.ids), 0

    def product(V: FloatArray) -> FloatArray:
        nonlocal done
        done += 1
        return remember(f"adjoint-{done:04d}", lambda: operator.rmatvec(V))

    arnoldi = Arnoldi(lambda V, columns: product(V), x[:, None] - product(h0))
    value, calm, found = float(h0[:, 0] @ residual[:, 0]), 0, h0
    for dimension in DIMENSIONS:
        arnoldi.extend(dimension)
        found = h0 + arnoldi.solutions(dimension)
        before, value = value, float(found[:, 0] @ residual[:, 0])
        calm = calm + 1 if abs(value - before) <= SETTLED * guess.standard_error else 0
        if calm >= 2 or arnoldi.paths[0].finished:
            break
    return found


def _cuts(operator: ShardedOperator) -> tuple[int, ...]:
    """Samples with which the blocks of long episodes begin, counted over all shards: as :func:`make_folds` cuts them.

    An episode is long if it has more than 1/5 of all samples.
    """
    total = sum(operator.counts)
    parts: list[Stretches] = operator.crew.each("stretches", total / FOLDS)
    firsts = list(accumulate((part.n_samples for part in parts), initial=0))
    episodes: list[tuple[int, int]] = []  # first sample and length of those that are long, or cross a border
    began = 0
    for part, first in zip(parts, firsts, strict=False):
        if part.first == part.n_samples:  # nothing begins here
            continue
        episodes.append((began, first + part.first - began))
        episodes += [(first + start, length) for start, length in part.long]
        began = first + part.last
    episodes.append((began, total - began))
    length = block_length(-sum(part.log_discount for part in parts) / total, total, FOLDS)
    long = [(start, size) for start, size in episodes if size > total / FOLDS and size > length]
    return tuple(int(cut) for start, size in long for cut in blocks_of(start, size, length, FOLDS))
