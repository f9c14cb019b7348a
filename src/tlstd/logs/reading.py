"""From files and frames to tables by what their columns are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tlstd.errors import InvalidInputError
from tlstd.logs.columns import Names, Preset, find
from tlstd.logs.draft import EXACT, as_numbers, missing_in, time_kind
from tlstd.logs.messages import plain
from tlstd.logs.readers import Columns, Part, Places, open_parts
from tlstd.logs.table import AnyArray, Table

ROWS = 500_000
"""Rows that are read at once."""


class Source:
    """A log that can be read: its parts, and which of their columns is what.

    Parameters
    ----------
    source : file, folder, pattern, list of these, frame, or dict of arrays
    columns : dict from what a column is to its name, optional
    preset : str, optional
    storage : dict, optional
        Options of polars for addresses, such as keys.
    """

    def __init__(
        self,
        source: Any,
        columns: Mapping[str, Names] | None,
        preset: Preset | None,
        storage: Mapping[str, str] | None = None,
    ) -> None:
        self.parts, self.name, notes = open_parts(source, storage)
        mapped = find(self.parts[0].columns, columns, preset, self._called(self.parts[0]))
        self.mapped = mapped._replace(notes=mapped.notes + notes)
        needed = set(self.names)
        for part in self.parts[1:]:
            absent = sorted(needed - set(part.columns))
            if absent:
                raise InvalidInputError(
                    f"{part.name} has no column {', '.join(absent)}, which {self.parts[0].name} has: all files of a "
                    "log have the same columns"
                )

    @property
    def names(self) -> list[str]:
        """The columns that are read."""
        return list(dict.fromkeys(name for group in self.mapped.columns.values() for name in group))

    def _called(self, part: Part) -> str:
        return part.name or "the table"

    def table(self, report: Callable[[str, float], None] | None = None, **options: Any) -> Table:
        """Everything, in memory; ``report`` is told how many rows have been read, and what share of the files."""
        places, read = Places(), []
        start = 0
        for i, part in enumerate(self.parts):
            places.add(start, part.name)
            for chunk in [part.read(self.names)] if report is None else part.chunks(self.names, ROWS):
                read.append(chunk)
                start += _height(chunk)
                if report is not None:
                    report(f"reading: {start:,} rows", i / len(self.parts))
        if not read:
            read.append(self.parts[0].read(self.names))
        return self.made(read, places, **options)

    def chunks(self, rows: int, places: Places) -> Iterator[Columns]:
        """The columns in chunks; ``places`` learns where files begin."""
        start = 0
        for part in self.parts:
            places.add(start, part.name)
            for chunk in part.chunks(self.names, rows):
                start += _height(chunk)
                yield chunk

    def made(self, read: Sequence[Columns], places: Places, first_row: int = 0, **options: Any) -> Table:
        """A table of chunks that follow one another, the first of which begins at ``first_row`` of all rows."""
        roles: dict[str, Any] = {}
        times: dict[str, str] = {}
        for role, group in self.mapped.columns.items():
            parts = [_together([chunk[name] for name in group], group, role, times) for chunk in read]
            roles[role] = parts[0] if len(parts) == 1 else joined(parts, _named(group), role)
        if "log_probability" in roles:
            logarithms = np.asarray(roles.pop("log_probability"), dtype=np.float64)
            with np.errstate(over="ignore"):
                roles["probability"] = np.exp(logarithms)
        n = sum(map(_height, read))
        files = None
        if len(places.starts) > 1:
            files = np.searchsorted(places.starts, np.arange(first_row, first_row + n), side="right") - 1
        group = self.mapped.columns["observation"]
        return Table(
            **roles,
            columns=group if len(group) > 1 else None,
            names={role: _named(names) for role, names in self.mapped.columns.items()},
            where=lambda rows: places([first_row + row for row in rows]),
            files=files,
            times=times,
            **options,
        )


def _named(group: Sequence[str]) -> str:
    return group[0] if len(group) == 1 else f"{group[0]}…{group[-1]}"


def _height(columns: Columns) -> int:
    return len(next(iter(columns.values())))


def _together(arrays: Sequence[Any], names: Sequence[str], role: str, times: dict[str, str]) -> Any:
    """Columns of numbers side by side; ``times`` learns which of them had times, which are seconds then."""
    if len(arrays) == 1:
        return arrays[0]
    columns = [np.asarray(array) for array in arrays]
    times |= {name: time_kind(each) for name, each in zip(names, columns, strict=True) if each.dtype.kind in "mM"}
    columns = [as_numbers(column) for column in columns]
    for name, column in zip(names, columns, strict=True):
        if column.ndim != 1 or column.dtype.kind not in "fiub":
            first = column.ravel()[0] if column.size else None
            raise InvalidInputError(f"{name} has values like {first!r}: the {role} is made of columns of numbers")
    return np.stack([column.astype(np.float64, copy=False) for column in columns], axis=1)


def joined(parts: Sequence[Any], name: str, role: str) -> Any:
    """A column of which parts are in different files or pieces; names and steps that are integers stay exact.

    Names that are words in one file and numbers in another are words in all.
    """
    arrays = [np.asarray(part) for part in parts]
    shapes = {array.shape[1:] for array in arrays}
    if len(shapes) > 1:
        raise InvalidInputError(
            f"{name} has rows of shapes {' and '.join(map(str, sorted(shapes)))} in different files: all need the same"
        )
    arrays = [array for array in arrays if len(array)] or arrays[:1]
    kinds = {array.dtype.kind for array in arrays}
    if kinds & set("mM") and len(kinds) > 1:
        types = " and ".join(sorted({str(array.dtype) for array in arrays}))
        raise InvalidInputError(f"{name} has values of types {types} in different files: all need the same kind")
    if role in ("episode", "cluster") and any(_has_words(array) for array in arrays):
        arrays = [_as_words(array) for array in arrays]
    if role in ("episode", "step", "cluster") and kinds <= set("iuf") and np.result_type(*arrays).kind == "f":
        arrays = [_exact(array) for array in arrays]
    return np.concatenate(arrays)


def _has_words(array: AnyArray) -> bool:
    return array.dtype.kind == "U" or (array.dtype.kind == "O" and any(isinstance(each, str) for each in array))


def _as_words(array: AnyArray) -> AnyArray:
    if array.dtype.kind == "O" and all(name is None or type(name) is str for name in array):
        return array  # what it mostly is
    words = np.array([str(plain(name)) for name in array], dtype=object)
    words[missing_in(array)] = None
    return words


def _exact(array: AnyArray) -> AnyArray:
    """Numbers as int64, or as Python's integers, where they are whole and known exactly."""
    if array.dtype.kind == "f":
        whole = bool((array == np.floor(array)).all() and (np.abs(array) < EXACT).all())
        return array.astype(np.int64) if whole else array
    large = array.dtype.kind == "u" and array.max() >= 2**63
    return array.astype(object if large else np.int64)
