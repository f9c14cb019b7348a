"""Tables from files and frames, whole or in chunks, as arrays by column.

Arrays, pandas frames and ``.npz`` files need no extra; polars reads the others.
"""

from __future__ import annotations

import glob
import os
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tlstd.errors import InvalidInputError, InvalidParameterError
from tlstd.extras import needs
from tlstd.logs import addresses
from tlstd.logs.addresses import Storage
from tlstd.logs.draft import as_column
from tlstd.logs.words import name_rows

if TYPE_CHECKING:
    import polars as pl

FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".arrow": "ipc",
    ".feather": "ipc",
    ".ipc": "ipc",
    ".npz": "npz",
}
"""What is read, by the ends of files' names."""

Columns = dict[str, Any]
"""Arrays by column, all of one length."""


class Part:
    """One file, or one table in memory: its columns' names, and its rows, whole or in chunks."""

    def __init__(
        self,
        name: str,
        columns: Sequence[str],
        read: Callable[[Sequence[str]], Columns],
        chunks: Callable[[Sequence[str], int], Iterator[Columns]] | None = None,
    ) -> None:
        self.name = name
        self.columns = list(columns)
        self.read = read
        self._chunks = chunks

    def chunks(self, names: Sequence[str], rows: int) -> Iterator[Columns]:
        """Some columns, in chunks of about ``rows`` rows."""
        if self._chunks is not None:
            yield from self._chunks(names, rows)
            return
        whole = self.read(names)
        n = len(next(iter(whole.values())))
        for start in range(0, n, rows):
            yield {name: column[start : start + rows] for name, column in whole.items()}


class Places:
    """Names rows of several files: the first row of each file, and the file."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.names: list[str] = []

    def add(self, first_row: int, name: str) -> None:
        """A file begins at this row of all rows."""
        self.starts.append(first_row)
        self.names.append(name)

    def __call__(self, rows: Sequence[int]) -> str:
        """The files and the rows in them, both counted from 0."""
        shown: dict[int, list[int]] = {}
        for row in rows[:5]:
            i = bisect_right(self.starts, row) - 1
            shown.setdefault(i, []).append(row - self.starts[i])
        parts = [(f"{self.names[i]}, " if self.names[i] else "") + name_rows(inside) for i, inside in shown.items()]
        return "; ".join(parts) + (f", … ({len(rows):,} in all)" if len(rows) > 5 else "")


def open_parts(source: Any, storage: Storage | None = None) -> tuple[list[Part], str]:
    """The parts of anything that holds a table, and what to call it; nothing but names of columns is read."""
    kind = type(source).__module__.partition(".")[0]
    if isinstance(source, Mapping):
        return [_of_mapping(source, "")], "arrays"
    if kind == "pandas":
        return [_of_pandas(source)], "a pandas frame"
    if kind == "polars":
        return [_of_polars(source.lazy(), "")], "a polars frame"
    if kind == "pyarrow":
        with needs("polars"):
            import polars as pl
        frame: Any = pl.from_arrow(source)
        return [_of_polars(frame.lazy(), "")], "an Arrow table"
    names = file_names(source, storage)
    return [_of_file(name, storage) for name in names], names[0] if len(names) == 1 else f"{len(names):,} files"


# --- files ----------------------------------------------------------------------------------------------------------


def file_names(source: Any, storage: Storage | None = None) -> list[str]:
    """Files by their names, folders, patterns and addresses, in natural order: 2 before 10."""
    if isinstance(source, (str, Path)):
        source = [source]
    if not isinstance(source, Sequence) or not all(isinstance(item, (str, Path)) for item in source):
        raise InvalidParameterError(
            f"the log is {type(source).__name__}: pass a file, a folder, a pattern, a list of them, a frame, or a dict "
            "of arrays"
        )
    if not source:
        raise InvalidInputError("there are no files to read: the list is empty")
    found: list[str] = []
    for item in source:
        found += sorted(
            addresses.listed(item, storage) if addresses.is_address(item) else _matching(item), key=_natural
        )
    twice = next((name for name, count in Counter(found).items() if count > 1), None)
    if twice is not None:
        raise InvalidInputError(f"{twice} is named twice: its steps would count twice")
    for name in found:
        if _format(name) is None:
            remedy = "minari.load_dataset and Log.from_minari, or h5py and a dict of arrays"
            suffix = Path(name).suffix
            raise InvalidInputError(
                f"{name} ends with {suffix or 'nothing'}: {', '.join(FORMATS)} are read"
                + (f"; for HDF5 use {remedy}" if suffix in (".hdf5", ".h5") else "")
            )
    return found


def _matching(item: str | Path) -> list[str]:
    """The files of this machine that a name, a folder or a pattern stands for."""
    path = Path(item).expanduser()
    if path.is_dir():
        inside = [str(file) for file in path.rglob("*") if _format(str(file)) and file.is_file()]
        if not inside:
            raise InvalidInputError(f"the folder {path} has no file that ends with {', '.join(FORMATS)}")
        return inside
    if path.is_file():
        return [str(path)]
    matching = glob.glob(str(path), recursive=True)
    if not matching:
        raise InvalidInputError(f"there is no file {path}: check the name or the pattern")
    return matching


def _format(name: str) -> str | None:
    name = Path(name).name.lower()
    return FORMATS.get(Path(name.removesuffix(".gz") if name.endswith(".csv.gz") else name).suffix)


def _natural(name: str) -> list[Any]:
    return [(0, int(word), "") if word.isdigit() else (1, 0, word) for word in re.split(r"(\d+)", name) if word]


def _of_file(path: str, storage: Storage | None) -> Part:
    kind, away = _format(path), addresses.is_address(path)
    if not away and os.path.exists(path) and not os.path.isfile(path):
        raise InvalidInputError(f"{path} is a pipe or a device: copy what it gives into a file")
    if kind == "npz":
        with _readable(path):
            if away:
                raise InvalidInputError(f"{path} is an address: {', '.join(addresses.KINDS)} are read there")
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
                return _of_mapping({name: archive[name] for name in archive.files}, path)
    with needs("polars"):
        import polars as pl
    options: dict[str, Any] = {"glob": False, "storage_options": dict(storage or {}) if away else None}
    with _readable(path, storage):
        if not away and Path(path).stat().st_size == 0:
            raise InvalidInputError(f"{path} is empty: there is nothing to read")
        if kind == "csv":
            separator = "\t" if ".tsv" in Path(path).suffixes else ","
            frame = pl.scan_csv(path, separator=separator, infer_schema_length=10_000, **options)
            names = frame.collect_schema().names()
            if len(names) == 1 and ";" in names[0]:
                frame = pl.scan_csv(path, separator=";", infer_schema_length=10_000, **options)
            _check_header(frame.collect_schema().names(), path)
        elif kind == "parquet":
            frame = pl.scan_parquet(path, hive_partitioning=False, **options)
        else:
            frame = pl.scan_ipc(path, hive_partitioning=False, **options)
        return _of_polars(frame, path, storage)


def _check_header(names: Sequence[str], path: str) -> None:
    """Refuse names that polars makes of a repeated one, and what is no text: a column would be left out silently."""
    for name in names:
        first, repeated, _ = name.rpartition("_duplicated_")
        if repeated and first in names:
            raise InvalidInputError(f"{path} has the column {first} twice: give columns different names")
        if "\0" in name:
            raise InvalidInputError(f"{path} has the column {name!r}: is it whole, and text?")


@contextmanager
def _readable(path: str, storage: Storage | None = None) -> Iterator[None]:
    """What cannot be read is said with the name of the file, and without secrets."""
    try:
        yield
    except (InvalidInputError, ImportError, MemoryError):
        raise
    except BaseException as error:  # what NumPy and polars raise at damaged files; a panic is no Exception
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        if addresses.is_address(path):
            raise addresses.unreadable(path, error, storage) from None
        reason = str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
        raise InvalidInputError(
            f"{path or 'the frame'} cannot be read ({reason}): is it whole, and what its name says?"
        ) from error


# --- tables ---------------------------------------------------------------------------------------------------------


def _of_mapping(source: Mapping[Any, Any], name: str) -> Part:
    columns = {str(key): value for key, value in source.items()}
    return Part(name, list(columns), lambda names: {key: as_column(columns[key], key) for key in names})


def _of_pandas(frame: Any) -> Part:
    repeated = [str(name) for name in frame.columns[frame.columns.duplicated()]]
    if repeated:
        raise InvalidInputError(f"the frame has the column {repeated[0]} twice: give columns different names")
    columns = {str(name): name for name in frame.columns}
    return Part(
        "", list(columns), lambda names: {name: as_column(_of_series(frame[columns[name]]), name) for name in names}
    )


def _of_series(series: Any) -> Any:
    """A pandas column: numbers with missing ones as NaN, anything else as objects."""
    missing = series.isna()
    if getattr(series.dtype, "kind", "O") in "biuf":
        return series.to_numpy(dtype=np.float64, na_value=np.nan) if missing.any() else series.to_numpy()
    objects = np.empty(len(series), dtype=object)
    objects[:] = [None if gone is True else value for value, gone in zip(series, missing.tolist(), strict=True)]
    return objects


def _of_polars(frame: pl.LazyFrame, name: str, storage: Storage | None = None) -> Part:
    with _readable(name, storage):
        columns = frame.collect_schema().names()

    def read(names: Sequence[str]) -> Columns:
        with _readable(name, storage):
            return _arrays(frame.select(names).collect(), name, 0)

    def chunks(names: Sequence[str], rows: int) -> Iterator[Columns]:
        with _readable(name, storage):
            batches = frame.select(names).collect_batches(chunk_size=rows, maintain_order=True)
        start = 0
        while True:
            with _readable(name, storage):
                batch = next(batches, None)
                if batch is None:
                    return
                arrays = _arrays(batch, name, start)
            start += batch.height
            if batch.height:
                yield arrays

    return Part(name, columns, read, chunks)


def _arrays(frame: pl.DataFrame, name: str, start: int) -> Columns:
    return {column.name: _of_column(column, name, start) for column in frame.get_columns()}


def _of_column(column: pl.Series, name: str, start: int) -> Any:
    """A polars column as an array; lists of equal length become rows."""
    import polars as pl

    dtype, where = column.dtype, f"{name}, row" if name else "row"
    if isinstance(dtype, pl.List):
        lengths = column.list.len().to_numpy()
        odd = np.flatnonzero(~(lengths == lengths[0])) if len(lengths) else np.zeros(0)
        if odd.size or (len(lengths) and np.isnan(lengths[0])):
            row = int(odd[0]) if odd.size else 0
            given = "missing" if np.isnan(lengths[row]) else f"{lengths[row]:.0f} values"
            raise InvalidInputError(
                f"{column.name} has {lengths[0]:.0f} values at first and {given} in {where} {start + row}: every row "
                "needs as many"
            )
        inner = _of_column(column.explode(empty_as_null=False), name, start) if len(column) else np.zeros(0)
        return inner.reshape(len(column), -1, *inner.shape[1:])
    if isinstance(dtype, (pl.Struct, pl.Binary, pl.Object)):
        raise InvalidInputError(
            f"{column.name} has values of type {dtype} in {name or 'the frame'}: images and structures are not read; "
            "encode them as numbers first"
        )
    if dtype.is_temporal():
        column = column.to_physical()
    elif isinstance(dtype, (pl.Categorical, pl.Enum)):
        column = column.cast(pl.String)
    array = column.to_numpy()
    return array if array.flags.writeable or array.dtype.kind != "b" else array.copy()
