"""Checks of constructor arguments; every message names the value and the remedy. ``why`` is said at its end."""

from __future__ import annotations

from math import inf

import numpy as np

from tlstd.errors import InvalidParameterError


def integer(name: str, value: object, *, low: int = 1, high: int | None = None, why: str = "") -> int:
    """Return ``value`` as an int within [low, high]."""
    whole = int(value) if isinstance(value, (int, np.integer)) and not isinstance(value, bool) else None
    if whole is None or whole < low or (high is not None and whole > high):
        limits = f">= {low}" if high is None else f"from {low} to {high}"
        raise InvalidParameterError(f"{name} is {value!r}: it must be an integer {limits}{why}")
    return whole


def real(
    name: str,
    value: object,
    *,
    low: float = -inf,
    high: float = inf,
    open_low: bool = False,
    open_high: bool = False,
    why: str = "",
) -> float:
    """Return ``value`` as a float between low and high; the ends count unless they are open."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise InvalidParameterError(f"{name} is {value!r}: it must be a number{why}")
    try:
        number = float(value)
    except OverflowError:  # an int beyond the largest float
        number = inf if value > 0 else -inf
    above = number > low if open_low else number >= low
    below = number < high if open_high else number <= high
    if not (above and below):
        brackets = f"{'(' if open_low else '['}{low:g}, {high:g}{')' if open_high else ']'}"
        raise InvalidParameterError(f"{name} is {number}: it must lie in {brackets}{why}")
    return number


def positive(name: str, value: object, *, high: float = inf, why: str = "") -> float:
    """Return ``value`` as a float in (0, high)."""
    return real(name, value, low=0.0, high=high, open_low=True, open_high=True, why=why)


def choice(name: str, value: object, options: tuple[str, ...], *, why: str = "") -> str:
    """Return ``value`` if it is one of ``options``."""
    if not isinstance(value, str) or value not in options:
        raise InvalidParameterError(f"{name} is {value!r}: it must be one of {', '.join(map(repr, options))}{why}")
    return value
