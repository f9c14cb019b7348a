"""Checks of constructor arguments; every message names the value and the remedy."""

from __future__ import annotations

import numpy as np

from tlstd.errors import InvalidParameterError


def integer(name: str, value: object, *, low: int = 1, high: int | None = None, why: str = "") -> int:
    """Return ``value`` as an int within [low, high]."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise InvalidParameterError(f"{name} is {value!r}: it must be an integer")
    if value < low or (high is not None and value > high):
        limits = f"at least {low}" if high is None else f"between {low} and {high}"
        raise InvalidParameterError(f"{name} is {value}: it must be {limits}{why}")
    return int(value)


def real(
    name: str, value: object, *, low: float, high: float, open_ends: bool = False, open_high: bool = False
) -> float:
    """Return ``value`` as a float within [low, high], (low, high) if the ends are open, or [low, high)."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise InvalidParameterError(f"{name} is {value!r}: it must be a number")
    try:
        number = float(value)
    except OverflowError:  # an int beyond the largest float
        number = np.inf if value > 0 else -np.inf
    above = number > low if open_ends else number >= low
    below = number < high if open_ends or open_high else number <= high
    if not (above and below):
        brackets = f"{'(' if open_ends else '['}{low:g}, {high:g}{')' if open_ends or open_high else ']'}"
        raise InvalidParameterError(f"{name} is {number}: it must lie in {brackets}")
    return number


def choice(name: str, value: object, options: tuple[str, ...]) -> str:
    """Return ``value`` if it is one of ``options``."""
    if not isinstance(value, str) or value not in options:
        raise InvalidParameterError(f"{name} is {value!r}: it must be one of {', '.join(map(repr, options))}")
    return value
