"""The discrete Picard condition: does b shrink faster than the singular values of A?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import logsumexp

from tlstd.core import parameters
from tlstd.core.arrays import FloatArray, as_floats, as_matrix, locked
from tlstd.core.figures import new_figure
from tlstd.errors import InvalidInputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RCOND = 1e-12
"""Singular values at or below this share of the largest count as zero, unless the caller says otherwise."""
ROUNDING = 1e-12
"""Relative distance up to which two ends of an interval, or a residual and zero, are the same."""
NOISE = 1e-9
"""Coefficients below this share of the largest may be rounding errors and do not enter a trend."""
LARGEST_EXPONENT = 1024.0
"""Where a search for an exponent gives up."""


@dataclass(frozen=True, slots=True)
class Exponents:
    """The exponents p > 1 with low <= p <= high; ``p in exponents`` asks for one of them.

    >>> 1.5 in Exponents(1.0, 2.0), 1.0 in Exponents(1.0, 2.0), Exponents(3.0, 2.0).empty
    (True, False, True)
    """

    low: float
    high: float

    @property
    def empty(self) -> bool:
        """Whether no exponent satisfies the condition."""
        return not (self.low <= self.high and self.high > 1.0)

    def __contains__(self, p: float) -> bool:
        return p > 1.0 and self.low <= p <= self.high


NO_EXPONENT = Exponents(np.inf, -np.inf)


class Trend(NamedTuple):
    """The line log|uᵢᵀb| ≈ log constant + p log σᵢ of least squares, and the standard deviation around it."""

    p: float
    constant: float
    deviation: float


@dataclass(frozen=True, slots=True, eq=False)
class Picard:
    """What the discrete Picard condition |uᵢᵀb| <= C σᵢᵖ is about: made by :func:`picard`.

    Attributes
    ----------
    singular_values : (k,)
        σᵢ that are not numerically zero, in falling order; k is the numerical rank.
    coefficients : (k,)
        |uᵢᵀb|.
    outside : float
        Length of the part of b that A does not reach. The condition asks |uᵢᵀb| <= C σ_kᵖ for the left singular vectors
        of zero; their basis is arbitrary, and this length is the largest that it can give.
    """

    singular_values: FloatArray
    coefficients: FloatArray
    outside: float

    def exponents(self, constant: float = 1.0) -> Exponents:
        """All p > 1 with |uᵢᵀb| <= ``constant`` · σᵢᵖ for every i; ``constant=1`` is the condition as stated.

        A singular value below one bounds p from above, one above one from below.

        >>> picard(np.diag([4.0, 0.25]), [8.0, 0.0625]).exponents()
        Exponents(low=1.5, high=2.0)
        """
        slopes, heights = self._lines(constant)
        low, high = 1.0, np.inf
        if heights[slopes == 0.0].max(initial=-np.inf) > ROUNDING:
            return NO_EXPONENT
        with np.errstate(over="ignore"):
            low = max(low, (heights[slopes > 0.0] / slopes[slopes > 0.0]).max(initial=-np.inf))
            high = (heights[slopes < 0.0] / slopes[slopes < 0.0]).min(initial=np.inf)
        if high < low <= high * (1.0 + ROUNDING):
            low = high
        return Exponents(float(low), float(high)) if low <= high and high > 1.0 else NO_EXPONENT

    def constant(self, p: float) -> float:
        """Smallest C with |uᵢᵀb| <= C σᵢᵖ for every i; infinite where it is beyond the largest number.

        >>> round(picard(np.diag([4.0, 0.25]), [8.0, 0.0625]).constant(1.0), 9)
        2.0
        """
        return float(self.constants(np.array([parameters.real("p", p)]))[0])

    def constants(self, p: FloatArray) -> FloatArray:
        """Smallest constants for many exponents."""
        slopes, heights = self._lines(1.0)
        with np.errstate(over="ignore"):
            smallest: FloatArray = np.exp((heights - p[:, None] * slopes).max(axis=1, initial=-np.inf))
        return smallest

    def average(self, p: float) -> tuple[float, float]:
        """Mean and standard deviation over i <= k of the ratios |uᵢᵀb| / σᵢᵖ, for the condition "on average".

        >>> mean, deviation = picard(np.diag([2.0, 1.0]), [2.0, 3.0]).average(1.0)
        >>> round(mean, 9), round(deviation, 9)
        (2.0, 1.0)
        """
        exponent = parameters.real("p", p)
        if not self.singular_values.size:
            return 0.0, 0.0
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            ratios = np.exp(np.log(self.coefficients) - exponent * np.log(self.singular_values))
            return float(ratios.mean()), float(ratios.std())

    def average_exponents(self, constant: float = 1.0) -> Exponents:
        """All p > 1 for which the *mean* over i <= k of |uᵢᵀb| / σᵢᵖ is at most ``constant``.

        The paper's second remark proposes such a condition without a formula. The mean is a convex function of p, so
        the exponents form an interval.

        >>> picard(np.diag([0.5, 0.25]), [0.5, 0.0]).average_exponents()  # the mean is 2ᵖ / 4
        Exponents(low=1.0, high=2.0)
        """
        n = self.singular_values.size
        slopes, heights = self._lines(constant, outside=False)
        if not heights.size:
            return Exponents(1.0, np.inf)

        def excess(p: float) -> float:
            return float(logsumexp(heights - p * slopes) - np.log(n))

        def rise(p: float) -> float:
            shares = np.exp(heights - p * slopes - logsumexp(heights - p * slopes))
            return float(-(shares * slopes).sum())

        best = 1.0
        if rise(1.0) < 0.0:
            best = brentq(rise, 1.0, LARGEST_EXPONENT) if rise(LARGEST_EXPONENT) > 0.0 else LARGEST_EXPONENT
        if excess(best) > ROUNDING:
            return NO_EXPONENT
        low = 1.0 if excess(1.0) <= 0.0 else brentq(excess, 1.0, best) if excess(best) < 0.0 else best
        high = np.inf
        if excess(LARGEST_EXPONENT) > 0.0:
            high = brentq(excess, best, LARGEST_EXPONENT, xtol=1e-14) if excess(best) < 0.0 else best
        found = Exponents(float(low), float(high))
        return NO_EXPONENT if found.empty else found

    def trend(self) -> Trend:
        """The power law through the points (σᵢ, |uᵢᵀb|), by least squares of the logarithms.

        Coefficients below 10⁻⁹ of the largest may be rounding errors and are left out. NaN with fewer than two
        different σᵢ.

        >>> trend = picard(np.diag([1.0, 0.1, 0.01]), [2.0, 0.02, 0.0002]).trend()
        >>> round(trend.p, 9), round(trend.constant, 9)
        (2.0, 2.0)
        """
        used = self.coefficients > NOISE * self.coefficients.max(initial=0.0)
        x, y = np.log(self.singular_values[used]), np.log(self.coefficients[used])
        spread = x - x.mean() if x.size else x
        if not (spread**2).sum() > ROUNDING:
            return Trend(np.nan, np.nan, np.nan)
        p = float((spread * y).sum() / (spread**2).sum())
        rest = y - p * x
        return Trend(p, float(np.exp(rest.mean())), float(rest.std()))

    def _lines(self, constant: float, *, outside: bool = True) -> tuple[FloatArray, FloatArray]:
        """Slopes log σᵢ and heights log(|uᵢᵀb| / C): the condition is heights <= p · slopes. Zeros say nothing."""
        C = parameters.positive("constant", constant)
        sigma, c = self.singular_values, self.coefficients
        if outside and self.outside > 0.0:
            if not sigma.size:
                return np.zeros(1), np.array([np.inf])  # A = 0, b ≠ 0: no power of nothing is enough
            sigma, c = np.append(sigma, sigma[-1]), np.append(c, self.outside)
        used = c > 0.0
        slopes = np.log(sigma[used])
        slopes[np.abs(slopes) <= ROUNDING] = 0.0  # the powers of one say nothing about p
        return slopes, np.log(c[used]) - np.log(C)


def picard(A: ArrayLike | Any, b: ArrayLike, *, rcond: float = RCOND) -> Picard:
    """Compare the coefficients |uᵢᵀb| of b with the singular values σᵢ of A.

    Assumption 1 of the paper asks |uᵢᵀb| <= σᵢᵖ for some p > 1. That is a condition on smoothness *and* on scale: where
    σᵢ < 1 it implies |vᵢᵀw*| < 1 for the solution w*, so multiplying all rewards by ten may break it. With a free
    constant, |uᵢᵀb| <= C σᵢᵖ, every system whose b is in the range of A satisfies it, and C is what counts.

    Where singular values are equal, the vectors uᵢ and so the coefficients are not unique.

    Parameters
    ----------
    A : (m, n), dense or scipy.sparse
    b : (m,)
    rcond : float in [0, 1)
        Singular values at or below ``rcond`` times the largest count as zero.

    Returns
    -------
    Picard

    References
    ----------
    Hansen: The discrete Picard condition for discrete ill-posed problems. BIT 30, 1990.

    Example
    -------
    >>> condition = picard(np.diag([0.5, 0.1, 0.0]), [0.3, 0.02, 0.0])
    >>> condition.singular_values
    array([0.5, 0.1])
    >>> p = condition.exponents()
    >>> round(p.low, 3), round(p.high, 3)
    (1.0, 1.699)
    >>> condition.exponents(constant=0.1).empty
    True
    >>> round(condition.constant(2.0), 9)
    2.0
    """
    matrix, right = checked_system(A, b)
    parameters.real("rcond", rcond, low=0.0, high=1.0, open_high=True)
    U, sigma, _ = np.linalg.svd(matrix, full_matrices=False)
    return coefficients_of(U, sigma, right, rcond)


def coefficients_of(U: FloatArray, sigma: FloatArray, b: FloatArray, rcond: float) -> Picard:
    """The same from a decomposition."""
    k = numerical_rank(sigma, rcond)
    inside = U[:, :k].T @ b
    outside = float(np.linalg.norm(b - U[:, :k] @ inside))
    if outside <= ROUNDING * np.linalg.norm(b):
        outside = 0.0
    return Picard(locked(sigma[:k].copy()), locked(np.abs(inside)), outside)


def numerical_rank(sigma: FloatArray, rcond: float) -> int:
    """Number of singular values above ``rcond`` times the largest."""
    return int(np.count_nonzero(sigma > rcond * sigma.max(initial=0.0)))


def checked_system(
    A: ArrayLike | Any, b: ArrayLike, names: tuple[str, str] = ("A", "b")
) -> tuple[FloatArray, FloatArray]:
    """A dense matrix and a right-hand side that fits it."""
    matrix = as_matrix(A, names[0])
    if min(matrix.shape) == 0:
        raise InvalidInputError(f"{names[0]} has shape {matrix.shape}: pass a matrix with at least one row and column")
    right = as_floats(b, names[1], 1)
    if right.shape[0] != matrix.shape[0]:
        raise InvalidInputError(
            f"{names[1]} has {right.shape[0]} entries where {names[0]} has {matrix.shape[0]} rows: pass one for each"
        )
    return matrix if isinstance(matrix, np.ndarray) else matrix.toarray(), right


def plot_picard(condition: Picard, axis: Axes | None = None, *, colour: str = "#0072B2", label: str = "") -> Axes:
    """Draw |uᵢᵀb| against σᵢ, the law of :meth:`Picard.trend`, and the line |uᵢᵀb| = σᵢ above which p > 1 fails.

    Parameters
    ----------
    condition : Picard
    axis : matplotlib Axes, optional
        A new figure's if left out; ``axis.figure.savefig(path)`` writes it.
    colour, label : str

    Returns
    -------
    Axes
        Both scales are logarithmic. The line |uᵢᵀb| = σᵢ (p = 1) is drawn once per axis. Coefficients below 10⁻⁹ of the
        largest, which may be rounding errors, are not drawn.

    Example
    -------
    >>> axis = plot_picard(picard(np.diag([1.0, 0.1]), [0.5, 0.001]))
    >>> axis.get_xlabel()
    'σᵢ'
    """
    if axis is None:
        axis = new_figure(3.6, 3.0).subplots()
    used = condition.coefficients > NOISE * condition.coefficients.max(initial=0.0)
    sigma, c = condition.singular_values[used], condition.coefficients[used]
    axis.set(xscale="log", yscale="log", xlabel="σᵢ", ylabel="|uᵢᵀb|")
    axis.plot(sigma, c, "o", markersize=4, color=colour, label=label or "_points")
    trend = condition.trend()
    if np.isfinite(trend.p):
        axis.plot(sigma, trend.constant * sigma**trend.p, "-", linewidth=1, color=colour)
    if sigma.size and not any(line.get_gid() == "p=1" for line in axis.lines):
        middle = np.sqrt(sigma[0] * sigma[-1])
        ends = (middle, middle), (2.0 * middle, 2.0 * middle)
        axis.axline(*ends, color="0.5", linewidth=1, linestyle="--", gid="p=1", label="|uᵢᵀb| = σᵢ")
    return axis
