"""Checks of constructor arguments; every message names the value and the remedy. ``why`` is said at its end."""

from __future__ import annotations

from contextlib import suppress
from math import inf
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np

from tlstd.errors import CapacityError, InvalidParameterError

Seed: TypeAlias = int | np.random.SeedSequence | np.random.Generator
"""What determines a stream. A generator is drawn from, so that each call makes another stream."""

Trace: TypeAlias = Literal["accumulating", "replacing"]
"""How an eligibility trace grows where a feature is active again."""

OnError: TypeAlias = Literal["stop", "skip"]
"""What to do with a file that cannot be used."""

Word = TypeVar("Word", bound=str)

MAX_INTEGER = 2**63 - 1
"""Largest integer that arrays and saved models hold."""

MOST_BYTES = 8 << 30
"""Memory in bytes that parameters alone may ask for; as much as ``memory_limit`` of the estimators that have one."""


def check_memory(given: str, n_bytes: int, what: str, *, remedy: str) -> None:
    """Raise :class:`CapacityError` before parameters alone make an estimator allocate more than ``MOST_BYTES``.

    >>> check_memory("rank is 10", 1600, "its factors", remedy="use a smaller rank")
    """
    if n_bytes > MOST_BYTES:
        raise CapacityError(
            f"{given}: {what} would take {n_bytes / 1e9:,.0f} GB, over the limit of {MOST_BYTES / 1e9:.1f} GB: {remedy}"
        )


def integer(name: str, value: object, *, low: int = 1, high: int | None = MAX_INTEGER, why: str = "") -> int:
    """Return ``value`` as an int within [low, high]; without a limit if ``high`` is None."""
    whole = int(value) if isinstance(value, (int, np.integer)) and not isinstance(value, bool) else None
    too_large = whole is not None and high is not None and whole > high
    if whole is None or whole < low or too_large:
        limits = f"from {low} to {high}" if too_large or high not in (None, MAX_INTEGER) else f">= {low}"
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


def flag(name: str, value: Any, *, error: type[Exception] = InvalidParameterError) -> bool:
    """Return ``value`` as a bool: True, False, 0 or 1, of Python or NumPy, also as an array without dimensions."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    whole = value
    if hasattr(value, "__array__") and not np.ma.is_masked(value):
        with suppress(Exception):  # whatever the conversion of a foreign object raises
            array = np.asarray(value)
            whole = array.item() if array.ndim == 0 and array.dtype.kind in "biu" else None
    if isinstance(whole, int) and whole in (0, 1):
        return bool(whole)
    raise error(f"{name} is {value!r}: pass True or False")


def generator(name: str, value: object) -> np.random.Generator:
    """Return ``value`` if it is a random generator."""
    if not isinstance(value, np.random.Generator):
        raise InvalidParameterError(f"{name} is {value!r}: pass a generator, np.random.default_rng(seed)")
    return value


def positive(name: str, value: object, *, high: float = inf, why: str = "") -> float:
    """Return ``value`` as a float in (0, high)."""
    return real(name, value, low=0.0, high=high, open_low=True, open_high=True, why=why)


def choice(name: str, value: object, options: tuple[Word, ...], *, why: str = "") -> Word:
    """Return the one of ``options`` that ``value`` is; ``get_args`` of the parameter's ``Literal`` are its options."""
    for option in options if isinstance(value, str) else ():
        if value == option:
            return option
    raise InvalidParameterError(f"{name} is {value!r}: it must be one of {', '.join(map(repr, options))}{why}")


def seed_sequence(seed: Seed) -> np.random.SeedSequence:
    """The seed as the root of a tree of seeds, without changing it (a generator is drawn from)."""
    if isinstance(seed, np.random.SeedSequence):
        return np.random.SeedSequence(seed.entropy, spawn_key=seed.spawn_key, pool_size=seed.pool_size)
    if isinstance(seed, np.random.Generator):
        return np.random.SeedSequence(seed.integers(0, 2**63, size=4).tolist())
    return np.random.SeedSequence(integer("seed", seed, low=0, high=None, why=", a SeedSequence or a Generator"))
