"""Means over runs, and how sure one can be of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tlstd.core.arrays import FloatArray

RESAMPLES = 1000


class OverRuns(NamedTuple):
    """A number and its 95% bootstrap interval over runs."""

    value: float
    low: float
    high: float
    runs: int = 0
    """Independent runs behind it; 0 if it does not depend on chance."""

    def __str__(self) -> str:
        return f"{self.value:.3g}{self.ends}"

    @property
    def ends(self) -> str:
        """The interval as it follows the number; a single run has none."""
        return "" if self.runs == 1 else f" [{self.low:.3g}, {self.high:.3g}]"


def bootstrap(
    statistic: Callable[..., float | FloatArray], *samples: FloatArray, paired: bool = True, level: float = 0.95
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A statistic of runs and its percentile interval, by drawing whole runs with replacement (fixed seed).

    ``samples`` have a row per run. If ``paired``, row i of all of them is from the same seed, and they are drawn alike.
    Percentile intervals of few runs are too short (of 4 runs they cover 77% instead of 95%): both sides are stretched
    by √(n/(n−1)) t/1.96, with the quantile t of Student's distribution, which makes up for that where means are normal.

    Example
    -------
    >>> value, low, high = bootstrap(lambda x: x.mean(), np.arange(100.0))
    >>> float(value), bool(40 < low < 46), bool(53 < high < 59)   # as for a normal mean
    (49.5, True, True)
    """
    rng = np.random.default_rng(0)
    sizes = [len(sample) for sample in samples]
    paired = paired and len(set(sizes)) == 1
    draws = []
    for _ in range(RESAMPLES):
        first = rng.integers(0, sizes[0], sizes[0])
        rows = [first if paired or i == 0 else rng.integers(0, size, size) for i, size in enumerate(sizes)]
        draws.append(statistic(*(np.asarray(sample)[row] for sample, row in zip(samples, rows, strict=True))))
    tail = 50.0 * (1.0 - level)
    value = np.asarray(statistic(*map(np.asarray, samples)), dtype=np.float64)
    with np.errstate(invalid="ignore"):
        low, high = np.percentile(np.asarray(draws), [tail, 100.0 - tail], axis=0)
    return _stretched(value, low, high, min(sizes), level)


def _stretched(
    value: FloatArray, low: FloatArray, high: FloatArray, n: int, level: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The interval made as much longer as n runs ask for; of positive numbers by factors: they stay positive."""
    from scipy.special import ndtri, stdtrit  # scipy.stats, which has them as norm and t, takes half a second to import

    if n < 2:
        return value, low, high
    tail = 0.5 * (1.0 - level)
    factor = float(np.sqrt(n / (n - 1)) * stdtrit(n - 1, tail) / ndtri(tail))
    positive = (low > 0.0) & np.isfinite(high)
    with np.errstate(all="ignore"):
        shorter = np.where(positive, value * (low / value) ** factor, value - factor * (value - low))
        longer = np.where(positive, value * (high / value) ** factor, value + factor * (high - value))
    return value, shorter, longer


def mean_band(runs: FloatArray, level: float = 0.95) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The mean of (runs, points) and its percentile band, all draws at once: for drawing, not stretched for few runs.

    Example
    -------
    >>> middle, low, high = mean_band(np.array([[1.0, 5.0], [3.0, 5.0]]))
    >>> middle, low, high
    (array([2., 5.]), array([1., 5.]), array([3., 5.]))
    """
    n = len(runs)
    if n == 1:
        return runs[0], runs[0], runs[0]
    counts = np.random.default_rng(0).multinomial(n, np.full(n, 1.0 / n), size=RESAMPLES)  # how often each is drawn
    with np.errstate(invalid="ignore"):
        means = counts @ np.where(np.isfinite(runs), runs, np.nan) / n  # a diverged run leaves no band
        tail = 50.0 * (1.0 - level)
        low, high = np.percentile(means, [tail, 100.0 - tail], axis=0)
    return runs.mean(axis=0), low, high


def interval(statistic: Callable[..., float], *samples: FloatArray, paired: bool = True) -> OverRuns:
    """As :func:`bootstrap`, of one number.

    Example
    -------
    >>> print(interval(lambda x: x.mean(), np.array([1.0, 1.0, 1.0])))
    1 [1, 1]
    """
    value, low, high = bootstrap(statistic, *samples, paired=paired)
    return OverRuns(float(value), float(low), float(high), min(map(len, samples)))


def ratio_of_means(above: FloatArray, below: FloatArray) -> OverRuns:
    """Mean of one sample over that of another, run by run from the same seeds.

    Example
    -------
    >>> print(ratio_of_means(np.array([2.0, 4.0]), np.array([1.0, 2.0])))
    2 [2, 2]
    """
    return interval(lambda a, b: float(a.mean() / b.mean()), above, below)
