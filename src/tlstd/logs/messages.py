"""How rows, counts and values are named in notes and errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlstd.errors import InvalidInputError

FILES_NOTE = "There are no names of episodes, no end flags and no steps: each file is taken for an episode."
STREAM_NOTE = (
    "The log is one stream without an end: the mean over all states and the value of the first state stand for the "
    "start states."
)
CUT_OFF_NOTE = "taken for cut off, not for ended"
"""Part of the notes about episodes without an end flag."""
LOST_NOTE = "the next observation is not in the log"
"""Part of the note about last steps that are left out."""


def name_rows(rows: Sequence[int]) -> str:
    """Some rows in words.

    Example
    -------
    >>> name_rows([3]), name_rows(range(12))
    ('row 3', 'rows 0, 1, 2, 3, 4, … (12 in all)')
    """
    text = f"row{'s' * (len(rows) > 1)} " + ", ".join(map(str, rows[:5]))
    return text if len(rows) <= 5 else f"{text}, … ({len(rows):,} in all)"


def count_of(n: int, noun: str) -> str:
    """A number and its noun: 1 row, 2 rows."""
    return f"{n:,} {noun}{'s' * (n != 1)}"


def joined_note(n: int) -> str:
    """What is said where episodes go on from file to file.

    >>> joined_note(1)
    '1 episode of a file goes on in the next one: joined.'
    """
    return f"{count_of(n, 'episode')} of a file go{'es' * (n == 1)} on in the next one: joined."


def two_clusters(
    name: str, episode: Any, values: tuple[Any, Any], where: tuple[str, str] | None = None, *, named: bool
) -> InvalidInputError:
    """The error that an episode has rows of two clusters.

    >>> str(two_clusters("user", 3, ("a", "b"), ("row 0", "row 7"), named=True)).partition(";")[0]
    "episode 3 has user 'a' in row 0 and user 'b' in row 7: all rows of an episode have the same one"
    """
    a, b = ("", "") if where is None else (f" in {where[0]}", f" in {where[1]}")
    names = "" if named else "name the column of episodes (columns={'episode': ...}, --map episode=...), or "
    return InvalidInputError(
        f"episode {episode!r} has {name} {values[0]!r}{a} and {name} {values[1]!r}{b}: all rows of an episode have the "
        f"same one; {names}correct the column, or leave it out (columns={{'cluster': None}}, --map cluster=)"
    )


def plain(value: Any) -> Any:
    """A Python number or word."""
    value = value.item() if isinstance(value, np.generic) else value
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value


def type_name(array: NDArray[Any]) -> str:
    """What kind of values a column has."""
    return (
        "text"
        if array.dtype.kind in "US"
        else type(first_value(array)).__name__
        if array.dtype.kind == "O"
        else str(array.dtype)
    )


def first_value(array: NDArray[Any]) -> Any:
    """The first value of a column, shortened."""
    value = plain(array.ravel()[0]) if array.size else None
    return value if len(repr(value)) <= 40 else repr(value)[:37] + "…"
