"""Numbers as they are shown, and places on axes."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

DIGITS = 4
EXACT = 1e-4
"""Of a value: smaller errors are no reason for more digits."""


def number(value: float | None, digits: int = DIGITS) -> str:
    """A number with so many significant digits, and a true minus sign.

    Example
    -------
    >>> number(-1234.5678), number(0.000012345), number(0.25), number(None), number(99999.6, 3)
    ('−1,235', '1.234e−05', '0.25', '–', '100,000')
    """
    if value is None or not math.isfinite(value):
        return "–"
    few = abs(value) < 10.0**digits - 0.5
    text = f"{value:,.{digits}g}" if few or abs(value) >= 1e15 else f"{value:,.0f}"
    return text.replace("-", "−")


def rounded(value: float, error: float) -> str:
    """A value with as many digits as its error allows: two of the error, and at most about six of the value.

    Example
    -------
    >>> rounded(-24.1234, 0.83), rounded(0.4, 0.0021), rounded(1234.5, 210.0), rounded(2.0, 0.0), rounded(0.12345, 1e-9)
    ('−24.12', '0.4000', '1,230', '2', '0.123450')
    """
    if not (math.isfinite(error) and error > 0.0 and math.isfinite(value)):
        return number(value)
    error = max(error, EXACT * abs(value))
    places = 1 - math.floor(math.log10(error))
    if not -12 <= places <= 9:
        return number(value)
    return f"{round(value, places):,.{max(0, places)}f}".replace("-", "−")


def signed(text: str) -> str:
    """A text with true minus signs before its numbers.

    Example
    -------
    >>> signed("-3.5 to +2, in 2026-11-17, λ=-1")
    '−3.5 to +2, in 2026-11-17, λ=−1'
    """
    return re.sub(r"(?<![\w.])-(?=\d)", "−", text)


@dataclass(frozen=True)
class Scale:
    """From numbers to places in a drawing."""

    low: float
    high: float
    start: float
    end: float

    @classmethod
    def over(cls, values: Iterable[float], start: float, end: float, margin: float = 0.06) -> Scale:
        """A scale that holds all finite values, with some room at both ends."""
        known = [value for value in values if math.isfinite(value)] or [0.0]
        low, high = min(known), max(known)
        room = margin * (high - low) or max(abs(low) * 0.1, 0.5)
        return cls(low - room, high + room, start, end)

    def at(self, value: float) -> float:
        """Where a value stands; what lies beyond stands at the end."""
        share = (value - self.low) / (self.high - self.low)
        return self.start + min(max(share, 0.0), 1.0) * (self.end - self.start)

    def ticks(self, count: int = 5) -> list[float]:
        """Round numbers within the scale.

        Example
        -------
        >>> Scale(0.0, 10.0, 0.0, 1.0).ticks(), Scale(-0.03, 0.11, 0.0, 1.0).ticks(3)
        ([0.0, 5.0, 10.0], [0.0, 0.05, 0.1])
        """
        power = 10.0 ** (math.floor(math.log10((self.high - self.low) / count)) + 1)
        for step in (m * power for m in (1.0, 0.5, 0.2, 0.1, 0.05, 0.02)):
            first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
            if last - first >= min(2, count - 1) and last - first >= count // 2:
                break
        digits = max(0, 1 - math.floor(math.log10(step)))
        return [round(i * step, digits) + 0.0 for i in range(first, last + 1)]
