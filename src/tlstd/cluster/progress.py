"""How far a computation is, how quickly it goes, and how long it will take."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

Report = Callable[[str, float], None]
"""Told what is being done, and how much of all is done."""


class Pace:
    """Reports of things that are done one after the other.

    Parameters
    ----------
    say : function of a text and a share
    text : str
        With a place for how many are done: ``"read {} of 10 files"``.
    total : int
        How many there will be.
    share : (low, high)
        How much of everything is done before the first and after the last of them.
    steps : int
        Steps that each of them works on; 0 if that says nothing.
    exactly : bool
        Whether there will be exactly so many; else the time that is left is not known.

    Example
    -------
    >>> pace = Pace(lambda text, share: print(text.split(",")[0], share), "round {} of 4", 4, (0.5, 0.9))
    >>> pace(1)
    round 1 of 4 0.6
    """

    def __init__(
        self, say: Report, text: str, total: int, share: tuple[float, float], steps: int = 0, exactly: bool = True
    ) -> None:
        self._say, self._text, self._total, self._steps, self._exactly = say, text, total, steps, exactly
        self._low, self._high = share
        self._began = perf_counter()
        self._known = 0

    def known(self, done: int) -> None:
        """So many were there already: they say nothing about time."""
        self._began, self._known = perf_counter(), done

    def __call__(self, done: int) -> None:
        """So many are done."""
        seconds, new = perf_counter() - self._began, done - self._known
        words = self._text.format(f"{done:,}")
        if new > 0 and seconds > 0.0:
            rate = new / seconds
            often = f"{rate * self._steps / 1e6:.3g} million steps" if self._steps else f"{rate:.2g}"
            words += f", {often} a second"
            if self._exactly:
                words += f", {duration((self._total - done) / rate)} left"
        self._say(words, self._low + (self._high - self._low) * min(1.0, done / max(1, self._total)))


def duration(seconds: float) -> str:
    """A time in words.

    >>> duration(40.0), duration(300.0), duration(7300.0)
    ('40 s', '5 minutes', '2.0 hours')
    """
    if seconds < 120.0:
        return f"{seconds:.0f} s"
    return f"{seconds / 60.0:.0f} minutes" if seconds < 7200.0 else f"{seconds / 3600.0:.1f} hours"
