"""A log in the making: its columns on their way through the stages of checking."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.errors import InvalidInputError
from tlstd.logs.messages import plain
from tlstd.logs.table import AnyArray, BoolArray, Table

EXACT = 2.0**53
"""Integers below it are exact as floating-point numbers."""
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


class Draft:
    """The columns, all of one length at any time, with the row of the source and the episode of each."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.notes: list[str] = list(table.notes)
        self.columns: dict[str, AnyArray] = {}
        self.n_observations: int | None = None
        self.action_names: tuple[str, ...] | None = None
        self.cluster_names: tuple[Any, ...] = ()
        """The names of the clusters, which are numbers in ``columns``."""
        self.rows: IntArray = np.zeros(0, dtype=np.int64)
        """(N,): the row of the source that each is."""
        self.code: IntArray = self.rows
        """(N,): the episode of each row, a place in ``ids``."""
        self.ids: list[Any] = []
        self.named = False
        """Whether the source names the episodes."""
        self.usual, self.least = table.usual, table.least
        self.final_values: AnyArray = np.zeros(0)
        """(E, ...): observations after the last steps, where rows without a reward had them."""
        self.final_known: BoolArray = np.zeros(0, dtype=np.bool_)
        self.silent: BoolArray = np.zeros(0, dtype=np.bool_)
        """(N,): last steps that no flag says anything about."""
        self.has_ends = False
        self.has_episodes = False
        """Whether names, flags or steps that go back tell episodes apart."""
        self.times: dict[str, str] = dict(table.times)
        """Columns that have times: their names, and which kind of times."""
        self.n_dropped = 0
        """Episodes that were left out."""

    def name(self, role: str) -> str:
        """What a column is called in the source."""
        return self.table.names.get(role, role)

    def as_numbers(self, value: Any, role: str) -> AnyArray:
        """A column of numbers; times become seconds."""
        array, name = as_column(value, self.name(role)), self.name(role)
        if array.dtype.kind in "mM":
            self.times[name] = time_kind(array)
        return as_numbers(array)

    def step_shown(self, value: Any) -> str:
        """A value of ``step``, or the distance of two, as people see it."""
        return f"{value / 1e9:g} s" if self.name("step") in self.times else str(plain(value))

    def column(self, i: int) -> str:
        """What number i of the observation is called."""
        columns = self.table.columns
        return columns[i] if columns is not None and i < len(columns) else f"{self.name('observation')}[{i}]"

    def where(self, rows: Iterable[int]) -> str:
        """Names some rows as they are in the source: 'row 3', 'rows 3, 7, … (12 in all)'."""
        return self.table.where([int(self.rows[i]) for i in rows])

    def say(self, text: str) -> None:
        """Add a note."""
        self.notes.append(text)

    def keep(self, chosen: BoolArray | IntArray) -> None:
        """Only these rows, in this order."""
        self.columns = {role: column[chosen] for role, column in self.columns.items()}
        self.rows, self.code = self.rows[chosen], self.code[chosen]

    @property
    def firsts(self) -> BoolArray:
        """(N,): whether a row is the first of its episode."""
        return np.append(True, self.code[1:] != self.code[:-1])

    @property
    def lasts(self) -> BoolArray:
        """(N,): whether a row is the last of its episode."""
        return np.append(self.code[1:] != self.code[:-1], True)


def as_column(value: Any, name: str) -> AnyArray:
    """The column as an array; lists of equal length become rows, and integers of any size stay exact."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise InvalidInputError(f"{name} has masked entries: fill them or leave them out")
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise InvalidInputError(f"{name} cannot be read ({error}): every row needs as many values") from error
    if array.dtype.kind == "f" and isinstance(value, (list, tuple)) and (np.abs(array) >= EXACT).any():
        whole = np.array(value, dtype=object)
        return whole if all(isinstance(each, int) for each in whole.ravel()) else array
    if array.dtype.kind != "O" or array.ndim != 1 or not array.size:
        return array
    first = array[0]
    if isinstance(first, (list, tuple, np.ndarray)):
        sizes = [np.shape(row) if isinstance(row, (list, tuple, np.ndarray)) else None for row in array]
        odd = next((i for i, size in enumerate(sizes) if size != sizes[0]), None)
        if odd is not None:
            raise InvalidInputError(
                f"{name} has shape {sizes[0]} in row 0 and {sizes[odd]} in row {odd}: every row needs as many values"
            )
        return np.stack([np.asarray(row) for row in array])
    if all(value is None or isinstance(value, (int, float, np.number, np.bool_)) for value in array):
        numbers = np.array([np.nan if value is None else value for value in array])
        exact = numbers.dtype.kind != "f" or not (np.abs(numbers) >= EXACT).any()
        return numbers if exact else array
    return array


def as_numbers(array: AnyArray) -> AnyArray:
    """Times as seconds, and numbers that are text as float64; anything else as it is.

    A column with an integer that fits no machine type is text, with all that is in it.
    """
    if array.dtype.kind in "mM":
        return seconds(array)
    if array.dtype.kind in "OU" and array.size and array.ndim == 1:
        numbers = [isinstance(each, int) or (isinstance(each, str) and NUMBER.fullmatch(each)) for each in array]
        missing = missing_in(array)
        if (missing | np.array(numbers, dtype=np.bool_)).all() and not missing.all():
            return np.array([np.nan if gone else float(each) for each, gone in zip(array, missing, strict=True)])
    return array


def time_kind(array: AnyArray) -> str:
    """What times are called in notes."""
    return "timestamps, since 1970 UTC" if array.dtype.kind == "M" else "durations"


def seconds(array: AnyArray) -> FloatArray:
    """Durations in seconds, and timestamps in seconds since 1970 (UTC); NaN where there is none.

    >>> seconds(np.array([1500, 2000], dtype="m8[ms]")), seconds(np.array(["1970-01-02"], dtype="M8[D]"))
    (array([1.5, 2. ]), array([86400.]))
    """
    numbers = array.astype(np.int64).astype(np.float64)
    times, per = _per_second(array)
    numbers = numbers * times / per
    numbers[np.isnat(array)] = np.nan
    return numbers


def nanoseconds(array: AnyArray, name: str) -> AnyArray:
    """Durations and timestamps as int64 nanoseconds, ordered whatever their unit; seconds if some are missing."""
    if np.isnat(array).any():
        return seconds(array)
    times, per = _per_second(array)
    numbers = array.astype(np.int64)
    factor = times * 1_000_000_000 // per
    if numbers.size and max(abs(int(numbers.min())), abs(int(numbers.max()))) * factor >= 2**63:
        raise InvalidInputError(f"{name} has times more than 292 years from 1970: pass numbers in place of times")
    return numbers * factor


def _per_second(array: AnyArray) -> tuple[int, int]:
    """A unit of the array in seconds, as a fraction."""
    unit, count = np.datetime_data(array.dtype)
    long = {"W": 604_800, "D": 86_400, "h": 3_600, "m": 60, "s": 1}
    short = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
    if unit not in long and unit not in short:
        raise InvalidInputError(f"times have the unit {unit!r}: pass them in {', '.join([*long, *short])}")
    return count * long.get(unit, 1), short.get(unit, 1)


def as_rows(array: AnyArray) -> AnyArray:
    """(N, D), also of (N,) and of no rows."""
    return array if array.ndim == 2 else array[:, None]


def missing_in(array: AnyArray) -> BoolArray:
    """Where a column has no value."""
    if array.dtype.kind == "f":
        missing: BoolArray = np.isnan(array)
        return missing
    if array.dtype.kind in "mM":
        gone: BoolArray = np.isnat(array)
        return gone
    if array.dtype.kind == "O":
        return np.array([value is None or value != value for value in array], dtype=np.bool_)
    return np.zeros(array.shape, dtype=np.bool_)
