"""Intervals for estimated values: how far the value would move with another log of the same kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri, stdtrit

from tlstd.core import parameters
from tlstd.core.arrays import FloatArray
from tlstd.core.units import power_of_two
from tlstd.evaluation.episode_values import EpisodeValue

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
    skewness: tuple[float, float]
    """Of the sum of contributions, below and above: by how much either side is longer, see :func:`skewness_of`."""

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
        about = self.kind, self.n_groups, self.covers, self.skewness
        return _made(self.value, self.standard_error, self.degrees, level, *about)

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


def interval_of(
    found: EpisodeValue,
    level: float = 0.95,
    kind: str = "episodes",
    *,
    with_starts: bool = True,
    limits: str = NOT_COVERED,
) -> Interval:
    """The interval of a value from what each episode has moved it by.

    value ± q·√(G/(G-1) Σ c_g²), with contributions c_g of G episodes or blocks about their mean, and the quantile q of
    Student's t with :attr:`EpisodeValue.degrees`. Where the contributions are skewed, the side of the long tail is
    longer (:func:`skewness_of`).

    ``with_starts``: start states are those of the log, so that their choice is part of the noise. ``limits`` says what
    the interval does not cover.
    """
    covers = f"{NOISE.format(' and start states' if with_starts else '')}; {limits}"
    error, n = found.standard_error, found.contributions.size
    return _made(found.value, error, found.degrees, level, kind, n, covers, skewness_of(found))


def difference_of(a: EpisodeValue, b: EpisodeValue, level: float = 0.95, kind: str = "episodes") -> Interval:
    """The interval of the first value less the second, both from the same episodes: what these add is subtracted."""
    found = a.minus(b)
    covers = f"{NOISE.format('')}, the same ones for both; {NOT_COVERED}"
    about = kind, found.contributions.size, covers, skewness_of(found)
    return _made(found.value, found.standard_error, found.degrees, level, *about)


def skewness_of(found: EpisodeValue) -> tuple[float, float]:
    """Skewness below and above of a value, in [0, 1] each: of its sum of contributions, and of its weights.

    k = Σ c³ / (Σ c²)^{3/2} is the skewness of the mean of contributions. A weighted mean is skewed by its weights too,
    and r = k - (8/3) Σ c u / (Σ c²)^{1/2} has that, with the shares u in all weights. A side of the interval is longer
    by (1 + 2z²)/3 standard errors for a skewness of 1, twice the shift of Johnson's modified t: one such shift covers
    too little for heavy tails. No side is ever shorter than by Student's t, since a large value that the log does not
    hold cannot be seen in it.

    N. J. Johnson, "Modified t tests and confidence intervals for asymmetrical populations", JASA 73, 1978.
    """
    c = found.contributions / power_of_two(found.contributions)
    size = float(np.sqrt(c @ c))
    if not size > 1e-9:
        return 0.0, 0.0
    k = float(np.sum((c / size) ** 3))
    r = k if found.shares is None else k - 8.0 / 3.0 * float(c @ found.shares) / size
    return min(1.0, max(0.0, -k, -r)), min(1.0, max(0.0, k, r))


def mean_interval(values: FloatArray, level: float = 0.95) -> Interval:
    """The interval of a mean of independent numbers (n,): of returns, one per episode."""
    n, mean = values.size, float(values.mean()) if values.size else float("nan")
    found = EpisodeValue(mean, (values - mean) / max(1, n), float(n))
    return interval_of(found, level, "returns", limits=NOT_A_CHANGE)


def _made(
    value: float,
    error: float,
    freedom: float,
    level: float,
    kind: str,
    n_groups: int,
    covers: str,
    skewness: tuple[float, float] = (0.0, 0.0),
) -> Interval:
    level = parameters.positive("level", level, high=1.0)
    share = (1.0 + level) / 2.0
    normal = float(ndtri(share))
    quantile = normal if np.isinf(freedom) else float(stdtrit(freedom, share))
    longer, least = (1.0 + 2.0 * normal**2) / 3.0, ROUNDING * abs(value)
    below, above = (max((quantile + longer * side) * error if error > 0.0 else 0.0, least) for side in skewness)
    about = float(error), float(freedom), kind, n_groups, covers
    return Interval(value, value - below, value + above, level, *about, skewness)
