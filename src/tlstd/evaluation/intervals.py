"""Intervals for estimated values: how far the value would move with another log of the same kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri, stdtrit

from tlstd.core import parameters
from tlstd.core.arrays import FloatArray
from tlstd.errors import InvalidInputError
from tlstd.evaluation.influence import Influence, degrees, standard_error

NOISE = "chance: which episodes{} the log happens to hold"
ROUNDING = 1e-9
"""Of the value: no half-width is smaller. Where nothing is noisy, rounding and the ridge are what is left."""
NOT_A_CHANGE = "not a log of other dynamics"
"""What no interval covers."""
NOT_COVERED = "not features that cannot represent the values, nor a log of other dynamics"


@dataclass(frozen=True)
class Interval:
    """A value with the interval that covers the true one in ``level`` of all logs, as far as ``covers`` goes.

    Example
    -------
    >>> print(mean_interval(np.array([1.0, 2.0, 3.0, 2.0])))
    2 ± 1.3  [0.701, 3.3]
    """

    value: float
    """The middle. It is less regularised than an answer made for prediction, and may differ from it."""
    low: float
    high: float
    level: float
    standard_error: float
    degrees: float
    """Degrees of freedom of the standard error; infinite where the quantile is a normal one's."""
    kind: str
    n_groups: int
    """Episodes, or blocks of a long one, that the standard error was taken over."""
    covers: str
    """What the interval covers, and what it does not."""

    @property
    def half_width(self) -> float:
        """Half of ``high`` - ``low``."""
        return (self.high - self.low) / 2.0

    def at(self, level: float) -> Interval:
        """The same at another level.

        Example
        -------
        >>> print(mean_interval(np.array([1.0, 2.0, 3.0, 2.0])).at(0.5))
        2 ± 0.31  [1.69, 2.31]
        """
        if level == self.level:
            return self
        return _made(self.value, self.standard_error, self.degrees, level, self.kind, self.n_groups, self.covers)

    def __contains__(self, value: float) -> bool:
        return bool(self.low <= value <= self.high)

    def to_dict(self) -> dict[str, Any]:
        """The fields for JSON: a number that is not finite is None."""
        numbers = {
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "level": self.level,
            "standard_error": self.standard_error,
            "degrees": self.degrees,
        }
        finite = {name: number if np.isfinite(number) else None for name, number in numbers.items()}
        return {**finite, "kind": self.kind, "groups": self.n_groups, "covers": self.covers}

    def __str__(self) -> str:
        return f"{self.value:.5g} ± {self.half_width:.2g}  [{self.low:.3g}, {self.high:.3g}]"


def interval_of(influence: Influence, level: float = 0.95) -> Interval:
    """The interval of a value from what each episode has moved it by.

    value ± q·√(G/(G-1) Σ c_g²), with contributions c_g of G episodes or blocks about their mean, and the quantile q of
    Student's t. Its degrees of freedom are :attr:`Influence.degrees`: G - 1 if all episodes count alike, and fewer if
    the value rests on some of them. Of kind "plug-in" q is the normal quantile.
    """
    n, with_starts = influence.groups.n_groups, bool(influence.starts.any())
    freedom = np.inf if influence.kind == "plug-in" else influence.degrees
    return interval_about(influence.value, influence.standard_error, freedom, level, influence.kind, n, with_starts)


def interval_about(
    value: float,
    error: float,
    freedom: float,
    level: float,
    kind: str,
    n_groups: int,
    with_starts: bool,
    limits: str = NOT_COVERED,
) -> Interval:
    """The interval about a value whose standard error, with its degrees of freedom, is known.

    ``with_starts``: start states are those of the log, so that their choice is part of the noise. ``limits`` says what
    the interval does not cover.
    """
    covers = f"{NOISE.format(' and start states' if with_starts else '')}; {limits}"
    return _made(value, error, freedom, level, kind, n_groups, covers)


def difference_interval(a: Influence, b: Influence, level: float = 0.95) -> Interval:
    """The interval of the first value less the second, both from the same log: what episodes add is subtracted."""
    if not _same_groups(a, b):
        raise InvalidInputError(
            f"the values come from {a.groups.n_groups:,} and {b.groups.n_groups:,} groups of steps that are not the "
            "same: a difference is taken of two policies on one log, with the same gamma (of more than a million "
            "steps LSTDQ learns from a part, unless all=True, --all)"
        )
    both = a.contributions - b.contributions
    unit = max(a.unit, b.unit)
    freedom = degrees(a.spread * (a.unit / unit) ** 2 + b.spread * (b.unit / unit) ** 2)
    covers = f"{NOISE.format('')}, the same ones for both; {NOT_COVERED}"
    return _made(a.value - b.value, standard_error(both), freedom, level, a.kind, both.size, covers)


def _same_groups(a: Influence, b: Influence) -> bool:
    """Whether both are over the same blocks, or over the same episodes, of which one may have left out last steps."""
    if np.array_equal(a.groups.group, b.groups.group):
        return True
    return a.names is not None and a.names == b.names and not (a.groups.n_blocks or b.groups.n_blocks)


def mean_interval(values: FloatArray, level: float = 0.95) -> Interval:
    """The interval of a mean of independent numbers (n,), by Student's t: of returns, one an episode."""
    covers = f"{NOISE.format(' and start states')}; {NOT_A_CHANGE}"
    centred = values - values.mean() if values.size else values
    mean = float(values.mean()) if values.size else float("nan")
    error = standard_error(centred / max(1, values.size))
    return _made(mean, error, max(1.0, values.size - 1.0), level, "returns", values.size, covers)


def _made(value: float, error: float, freedom: float, level: float, kind: str, n_groups: int, covers: str) -> Interval:
    level = parameters.positive("level", level, high=1.0)
    share = (1.0 + level) / 2.0
    quantile = ndtri(share) if np.isinf(freedom) else stdtrit(freedom, share)
    half = max(float(quantile * error) if error > 0.0 else 0.0, ROUNDING * abs(value))
    return Interval(value, value - half, value + half, level, float(error), float(freedom), kind, n_groups, covers)
