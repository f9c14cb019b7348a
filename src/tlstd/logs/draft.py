"""A log in the making: its columns on their way through the stages of checking."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tlstd.errors import InvalidInputError
from tlstd.logs.table import AnyArray, BoolArray, Table
from tlstd.validation import IntArray


class Draft:
    """The columns, all of one length at any time, with the row of the source and the episode of each."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.notes: list[str] = list(table.notes)
        self.columns: dict[str, AnyArray] = {}
        self.n_observations: int | None = None
        self.action_names: tuple[str, ...] | None = None
        self.rows: IntArray = np.zeros(0, dtype=np.int64)
        """(N,): the row of the source that each is."""
        self.code: IntArray = self.rows
        """(N,): the episode of each row, a place in ``ids``."""
        self.ids: list[Any] = []
        self.usual, self.least = table.usual, table.least
        self.final_values: AnyArray = np.zeros(0)
        """(E, ...): observations after the last steps, where rows without a reward had them."""
        self.final_known: BoolArray = np.zeros(0, dtype=np.bool_)
        self.silent: BoolArray = np.zeros(0, dtype=np.bool_)
        """(N,): last steps that no flag says anything about."""
        self.has_ends = False
        self.n_dropped = 0
        """Episodes that were left out."""

    def name(self, role: str) -> str:
        """What a column is called in the source."""
        return self.table.names.get(role, role)

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
    """The column as an array; lists of equal length become rows."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise InvalidInputError(f"{name} has masked entries: fill them or leave them out")
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise InvalidInputError(f"{name} cannot be read ({error}): every row needs as many values") from error
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
        return np.array([np.nan if value is None else value for value in array])
    return array


def as_rows(array: AnyArray) -> AnyArray:
    """(N, D), also of (N,) and of no rows."""
    return array if array.ndim == 2 else array[:, None]


def missing_in(array: AnyArray) -> BoolArray:
    """Where a column has no value."""
    if array.dtype.kind == "f":
        missing: BoolArray = np.isnan(array)
        return missing
    if array.dtype.kind == "O":
        return np.array([value is None or value != value for value in array], dtype=np.bool_)
    return np.zeros(array.shape, dtype=np.bool_)
