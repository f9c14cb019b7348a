"""The interval of a value from all shards: Aᵀh = x solved over them, and what every episode has moved the value by."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import NamedTuple, Protocol

import numpy as np

from tlstd.cluster.group_sums import Spread, Stretches, spread
from tlstd.cluster.operator import ShardedOperator
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.units import safe_unit
from tlstd.data.held_out import block_length, blocks_of
from tlstd.evaluation.influence import FOLDS, RIDGE, is_calm, is_steady
from tlstd.evaluation.intervals import Interval, interval_about
from tlstd.krylov.arnoldi import Arnoldi, norm

DIMENSIONS = (4, 8, 12, 16, 24, 32, 48, 64, 96, 128)
"""Rounds after which it is seen whether the value still moves; there are no more than the last of these."""

UNEXPLAINED = 0.01
"""‖S(x - Aᵀh)‖ over ‖S x‖ below which h counts as solved. The value alone does not say so: with weights that solve
A w = b it does not move at all, whatever h is."""


class Remember(Protocol):
    """Keeps what functions return."""

    def __call__(self, name: str, function: Callable[..., FloatArray], /, *arguments: FloatArray) -> FloatArray:
        """What was kept under a name for the same arguments, or what is computed now."""
        ...


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


class Settled(NamedTuple):
    """An interval, and how it was come by."""

    interval: Interval
    n_rounds: int
    moved: float
    """Standard errors by which the value has moved at the last look."""
    unexplained: float
    """What is left of Aᵀh = x, as a share of x."""
    settled: bool

    @property
    def note(self) -> str:
        """What has to be said; nothing, if it has settled."""
        if self.settled:
            return ""
        return (
            f"The interval has not settled after {self.n_rounds:,} rounds, and no more were made: its middle still "
            f"moved by {self.moved:.2g} standard errors at the last look, and its width may be off "
            f"({self.unexplained:.0%} of the start states' features are not explained). Take fewer or coarser features."
        )


def sharded_interval(
    operator: ShardedOperator,
    weights: FloatArray,
    asked: AskedMean,
    guess: Guess,
    level: float,
    remember: Remember,
) -> Settled:
    """The interval of the mean value of states, about xᵀw + hᵀ(b - A w), episode by episode.

    h is the sample's and a correction by the shards: from Aᵀ(h - h₀) = x - Aᵀh₀, in Krylov spaces of growing dimension
    (:class:`_Adjoint`), until the value moves by no more than ``SETTLED`` standard errors from one of ``DIMENSIONS`` to
    the next, twice in a row, no more than ``UNEXPLAINED`` is left of the equation, and the standard error has moved by
    no more than ``STEADY`` of itself since it was last known. As on one machine the system has a ridge of 10⁻⁹ mean
    ‖x‖². Errors δ_t are those of the weights given, which have seen all episodes: of more than a million steps that
    makes little difference.

    Parameters
    ----------
    operator : ShardedOperator
        Without a ridge.
    weights : (n, 1)
    asked : AskedMean
    guess : Guess
    level : float
    remember : function
        Keeps rounds.
    """
    residual = operator.b() - remember("residual", operator.matvec, weights)
    operator = operator.with_ridge(RIDGE)
    mean = float(asked.x @ weights[:, 0]) + asked.offset
    cuts = _cuts(operator)
    n_asked = 0 if asked.name is None else asked.n_states

    unit = safe_unit([guess.standard_error, mean])

    def measured(h: FloatArray) -> Spread:
        given = np.hstack([h, weights]), mean, asked.n_states, cuts, unit
        return spread(operator.pool.each("group_sums", asked.name, *given), sum(operator.counts), n_asked, unit)

    adjoint = _Adjoint(operator, asked.x, guess, remember)
    value, error, calm, settled = adjoint.value(residual, 0), guess.standard_error, 0, False
    for dimension in DIMENSIONS:
        before, value = value, adjoint.value(residual, dimension)
        calm = calm + 1 if is_calm(before, value, error) else 0
        solved = adjoint.finished or (calm >= 2 and adjoint.unexplained <= UNEXPLAINED)
        if not solved and dimension < DIMENSIONS[-1]:
            continue
        last, found = error, measured(adjoint.h)
        error = found.standard_error
        settled = adjoint.finished or (solved and is_calm(before, value, error) and is_steady(last, error))
        if settled:
            break
    made = (found.standard_error, found.degrees, level, "sharded", found.n_groups, asked.name is not None)
    moved = abs(value - before) / error if error > 0.0 else 0.0
    return Settled(interval_about(mean + value, *made), adjoint.n_rounds, moved, adjoint.unexplained, settled)


class _Adjoint:
    """h with Aᵀh = x over all shards, nearer with every round.

    What is solved is S AᵀS g = S (x - αAᵀh₀), h = αh₀ + S g, with the diagonal S of :func:`even_scales` and the α of
    least residual: a sample may have seen too few of the features for its h₀ to be of use.
    """

    def __init__(self, operator: ShardedOperator, x: FloatArray, guess: Guess, remember: Remember) -> None:
        self.n_rounds = 0

        def product(V: FloatArray) -> FloatArray:
            self.n_rounds += 1
            return remember(f"transposed-{self.n_rounds:04d}", operator.rmatvec, V)

        S = self._scales = operator.scales()
        h0 = guess.over(operator.ids)
        image, wanted = S * product(h0), S * x[:, None]
        square = float((image * image).sum())
        share = float((image * wanted).sum()) / square if square > 0.0 else 0.0
        self._start = self.h = share * h0
        self._length = norm(wanted[:, 0])
        self._arnoldi = Arnoldi(lambda V, columns: S * product(S * V), wanted - share * image)

    @property
    def finished(self) -> bool:
        """Whether the solution is exact but for rounding."""
        return self._arnoldi.paths[0].finished

    @property
    def unexplained(self) -> float:
        """‖S(x - Aᵀh)‖ / ‖S x‖."""
        return float(self._arnoldi.paths[0].residuals[-1]) / self._length if self._length else 0.0

    def value(self, residual: FloatArray, dimension: int) -> float:
        """hᵀ(b - A w) with h of this dimension, which :attr:`h` is then."""
        self._arnoldi.extend(dimension)
        self.h = self._start + self._scales * self._arnoldi.solutions(dimension)
        return float(self.h[:, 0] @ residual[:, 0])


def _cuts(operator: ShardedOperator) -> tuple[int, ...]:
    """Samples with which the blocks of long episodes begin, counted over all shards: as :func:`make_folds` cuts them.

    An episode is long if it has more than 1/5 of all samples.
    """
    total = sum(operator.counts)
    parts: list[Stretches] = operator.pool.each("stretches", total / FOLDS)
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
