"""Step sizes: numbers, schedules and functions of the update's number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tlstd.core import parameters
from tlstd.core.arrays import FloatArray
from tlstd.errors import InvalidParameterError, StateError

_LARGEST = 1e100
"""Largest step size accepted, as for features and rewards."""


@dataclass(frozen=True, slots=True)
class Constant:
    """α_t = α. What a plain number becomes.

    Example
    -------
    >>> Constant(0.1).values(first=5, count=3)
    array([0.1, 0.1, 0.1])
    """

    alpha: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", parameters.positive("step_size", self.alpha, high=_LARGEST))

    def at(self, t: int) -> float:
        """α_t."""
        return self.alpha

    def values(self, first: int, count: int) -> FloatArray:
        """α of ``count`` updates, (count,)."""
        alphas = np.empty(count)
        alphas.fill(self.alpha)
        return alphas


@dataclass(frozen=True, slots=True)
class Decay:
    """α_t = α₀ (N₀ + 1) / (N₀ + t) for t = 1, 2, …: the schedule of the paper's experiments.

    It starts at α₀, is half of that after about N₀ steps, and then falls as 1/t, so that its sum diverges and that of
    its squares does not. ``Decay(1.0, 0)`` is 1/t.

    Parameters
    ----------
    alpha0 : float > 0
        The first step size.
    n0 : float >= 0
        Number of updates that are about as large as the first. The paper tries 10, 100 and 1000.

    References
    ----------
    Geramifard, Bowling, Zinkevich, Sutton: iLSTD: Eligibility traces and convergence analysis. NIPS 2006.

    Example
    -------
    >>> Decay(0.5, 4).values(first=1, count=6)
    array([0.5       , 0.41666667, 0.35714286, 0.3125    , 0.27777778,
           0.25      ])
    """

    alpha0: float
    n0: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha0", parameters.positive("alpha0", self.alpha0, high=_LARGEST))
        object.__setattr__(self, "n0", parameters.real("n0", self.n0, low=0.0, high=_LARGEST))

    def at(self, t: int) -> float:
        """α_t."""
        return self.alpha0 * ((self.n0 + 1.0) / (self.n0 + t))

    def values(self, first: int, count: int) -> FloatArray:
        """α of the updates ``first``, ``first + 1``, …, (count,)."""
        t = np.arange(first, first + count, dtype=np.float64)
        alphas: FloatArray = self.alpha0 * ((self.n0 + 1.0) / (self.n0 + t))
        return alphas


@dataclass(frozen=True, slots=True)
class Function:
    """α_t = function(t). What a callable becomes; it is called once per update, in order, and its answer checked.

    Example
    -------
    >>> Function(lambda t: 1 / t**0.7).values(first=1, count=3).round(3)
    array([1.   , 0.616, 0.463])
    """

    function: Callable[[int], float]

    def values(self, first: int, count: int) -> FloatArray:
        """α of the updates ``first``, ``first + 1``, …, (count,); raises if one of them cannot be used."""
        alphas = np.empty(count)
        for i in range(count):
            alpha = self.function(first + i)
            alphas[i] = parameters.real(f"step_size({first + i})", alpha, low=0.0, high=_LARGEST)
        return alphas


Schedule: TypeAlias = Constant | Decay | Function
"""Step sizes α_t for t = 1, 2, …, the number of the update: ``values(first, count)``."""

StepSize: TypeAlias = float | Schedule | Callable[[int], float]
"""What users pass: a number, :class:`Decay`, or a function of the update's number."""


def as_schedule(step_size: StepSize) -> Schedule:
    """Return a number, a schedule or a function of t as a schedule, checked.

    Example
    -------
    >>> as_schedule(0.1)
    Constant(alpha=0.1)
    >>> as_schedule(-0.1)
    Traceback (most recent call last):
        ...
    tlstd.errors.InvalidParameterError: step_size is -0.1: it must lie in (0, 1e+100)
    """
    if isinstance(step_size, (Constant, Decay, Function)):
        return step_size
    if isinstance(step_size, (int, float, np.integer, np.floating)):
        return Constant(step_size)
    if isinstance(step_size, type) or not callable(step_size):
        raise InvalidParameterError(
            f"step_size is {step_size!r}: pass a number, Decay(alpha0, n0) or a function of the update's number"
        )
    return Function(step_size)


def as_given(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments with the schedule ``step_size`` as users write it: the number or the function, or a Decay."""
    schedule = arguments["step_size"]
    plain = schedule.alpha if isinstance(schedule, Constant) else getattr(schedule, "function", schedule)
    return {**arguments, "step_size": plain}


def plain_step_size(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters with the schedule ``step_size`` as JSON can hold it: a number, or Decay's two as a list."""
    schedule = parameters["step_size"]
    if isinstance(schedule, Constant):
        return {**parameters, "step_size": schedule.alpha}
    if isinstance(schedule, Decay):
        return {**parameters, "step_size": [schedule.alpha0, schedule.n0]}
    raise StateError("the step size is a function, which cannot be saved: use a number or Decay(alpha0, n0)")


def with_schedule(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that :func:`plain_step_size` was given."""
    step_size = parameters.get("step_size")
    return {**parameters, "step_size": Decay(*step_size) if isinstance(step_size, list) else step_size}
