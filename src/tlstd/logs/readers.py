"""Tables from files and frames, whole or in chunks, as arrays by column.

Arrays, pandas frames and ``.npz`` files need no extra; polars reads the others.
"""

from __future__ import annotations

import glob
import math
import os
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tlstd.core.extras import needs
from tlstd.errors import CapacityError, InvalidInputError, InvalidParameterError
from tlstd.logs import addresses
from tlstd.logs.addresses import Storage
from tlstd.logs.draft import as_column
from tlstd.logs.messages import name_rows

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
TYPED_ROWS = 10_000
"""Rows of a CSV file that tell the types of its columns."""

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


class Parts(NamedTuple):
    """The parts of a source, what to call it, and what there is to note about it."""

    parts: list[Part]
    name: str
    notes: tuple[str, ...] = ()


def open_parts(source: Any, storage: Storage | None = None) -> Parts:
    """The parts of anything that holds a table; nothing but names of columns is read."""
    kind = type(source).__module__.partition(".")[0]
    if isinstance(source, Mapping):
        return Parts([_of_mapping(source, "")], "arrays")
    if kind == "pandas":
        return Parts([_of_pandas(source)], "a pandas frame")
    if kind == "polars":
        return Parts([_of_polars(source.lazy(), "")], "a polars frame")
    if kind == "pyarrow":
        with needs("polars"):
            import polars as pl
        frame: Any = pl.from_arrow(source)
        return Parts([_of_polars(frame.lazy(), "")], "an Arrow table")
    names, notes = named_files(source, storage)
    called = addresses.shown(names[0]) if len(names) == 1 else f"{len(names):,} files"
    return Parts([_of_file(name, storage) for name in names], called, notes)


# --- files ----------------------------------------------------------------------------------------------------------


def named_files(source: Any, storage: Storage | None = None) -> tuple[list[str], tuple[str, ...]]:
    """Files by their names, folders, patterns and addresses, in natural order (2 before 10), and notes about them.

    Each file is there once, whatever other paths, links and patterns lead to it.
    """
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
        addresses.refuse_others(item)
        found += sorted(
            addresses.listed(item, storage) if addresses.is_address(item) else _matching(item), key=_natural
        )
    for name in found:
        if _format(name) is None:
            remedy = "minari.load_dataset and Log.from_minari, or h5py and a dict of arrays"
            suffix = Path(name).suffix
            raise InvalidInputError(
                f"{addresses.shown(name)} ends with {suffix or 'nothing'}: {', '.join(FORMATS)} are read"
                + (f"; for HDF5 use {remedy}" if suffix in (".hdf5", ".h5") else "")
            )
    return _once(found)


def file_names(source: Any, storage: Storage | None = None) -> list[str]:
    """The files of :func:`named_files`."""
    return named_files(source, storage)[0]


def _once(found: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """The names without those of files that an earlier name stands for, and a note about these."""
    first: dict[Any, str] = {}
    again: list[tuple[str, str]] = []
    for name in found:
        key: Any = name
        if not addresses.is_address(name):
            with suppress(OSError):
                status = os.stat(name)
                key = status.st_dev, status.st_ino
        if key in first:
            again.append((name, first[key]))
        else:
            first[key] = name
    if not again:
        return list(first.values()), ()
    name, other = map(addresses.shown, again[0])
    which = f"{name} is named twice" if name == other else f"{name} is the same file as {other}"
    more = f" So are {len(again) - 1:,} more." if len(again) > 1 else ""
    return list(first.values()), (f"{which}: it is read once.{more}",)


def _matching(item: str | Path) -> list[str]:
    """The files of this machine that a name, a folder or a pattern stands for."""
    try:
        path = Path(item).expanduser()
    except RuntimeError as error:
        raise InvalidInputError(
            f"{addresses.shown(str(item))!r} names no home folder of this machine: write the whole path"
        ) from error
    if path.is_dir():
        inside = [str(file) for file in path.rglob("*") if _format(str(file)) and file.is_file()]
        if not inside:
            raise InvalidInputError(
                f"the folder {addresses.shown(str(path))} has no file that ends with {', '.join(FORMATS)}"
            )
        return inside
    if path.is_file():
        return [str(path)]
    matching = glob.glob(str(path), recursive=True)
    if not matching:
        raise InvalidInputError(f"there is no file {addresses.shown(str(path))}: check the name or the pattern")
    return matching


def _format(name: str) -> str | None:
    name = Path(name).name.lower()
    return FORMATS.get(Path(name.removesuffix(".gz") if name.endswith(".csv.gz") else name).suffix)


def _natural(name: str) -> list[Any]:
    return [(0, int(word), "") if word.isdecimal() else (1, 0, word) for word in re.split(r"(\d+)", name) if word]


def _of_file(path: str, storage: Storage | None) -> Part:
    kind, away, name = _format(path), addresses.is_address(path), addresses.shown(path)
    if not away and os.path.exists(path) and not os.path.isfile(path):
        raise InvalidInputError(f"{path} is a pipe or a device: copy what it gives into a file")
    if kind == "npz":
        if away:
            raise InvalidInputError(f"{name} is an address: {', '.join(addresses.KINDS)} are read there")
        with _readable(path):
            return _of_mapping(_npz_arrays(path), path)
    with needs("polars"):
        import polars as pl
    options: dict[str, Any] = {"glob": False, "storage_options": dict(storage or {}) if away else None}
    with _readable(path, storage):
        if not away and Path(path).stat().st_size == 0:
            raise InvalidInputError(f"{path} is empty: there is nothing to read")
        if kind == "csv":
            return _of_csv(path, options, storage)
        scan = pl.scan_parquet if kind == "parquet" else pl.scan_ipc
        return _of_polars(scan(path, hive_partitioning=False, **options), path, storage)


def _of_csv(path: str, options: dict[str, Any], storage: Storage | None) -> Part:
    """A CSV file. Its first rows tell the types; where later rows refute them, all rows are looked at."""
    import polars as pl

    separator = "\t" if ".tsv" in Path(path).suffixes else ","

    def scan(rows: int | None) -> pl.LazyFrame:
        frame = pl.scan_csv(path, separator=separator, infer_schema_length=rows, **options)
        huge = {name: pl.String for name, dtype in frame.collect_schema().items() if dtype == pl.Int128}
        if huge:  # as text: ids of any length stay what they are
            frame = pl.scan_csv(path, separator=separator, infer_schema_length=rows, schema_overrides=huge, **options)
        return frame

    frame = scan(TYPED_ROWS)
    names = frame.collect_schema().names()
    if len(names) == 1 and ";" in names[0]:
        separator = ";"
        frame = scan(TYPED_ROWS)
    _check_header(frame.collect_schema().names(), path)
    return _of_polars(frame, path, storage, lambda: scan(None))


def _npz_arrays(path: str) -> Columns:
    """The arrays of an npz file; none is made that is larger than what the file holds."""
    with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
        for entry in archive.zip.infolist():
            with archive.zip.open(entry) as member:
                version = np.lib.format.read_magic(member)
                read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
                shape, _, dtype = read(member)
                if math.prod(shape) * dtype.itemsize > entry.file_size:
                    raise InvalidInputError(
                        f"{path} declares {math.prod(shape):,} numbers in {entry.filename} and holds "
                        f"{entry.file_size:,} bytes of them: is it whole?"
                    )
        return {name: archive[name] for name in archive.files}


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
    except (InvalidInputError, ImportError):
        raise
    except BaseException as error:  # what NumPy and polars raise at damaged files; a panic is no Exception
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        if addresses.is_address(path):
            raise addresses.unreadable(path, error, storage) from None
        if isinstance(error, MemoryError):
            raise CapacityError(f"{path or 'the frame'} does not fit into memory: read it in chunks") from error
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
    kind = getattr(series.dtype, "kind", "O")
    if kind in "mM":
        return series.to_numpy(dtype=f"{kind}8[ns]")
    if kind in "biuf":
        return series.to_numpy(dtype=np.float64, na_value=np.nan) if missing.any() else series.to_numpy()
    objects = np.empty(len(series), dtype=object)
    objects[:] = [None if gone is True else value for value, gone in zip(series, missing.tolist(), strict=True)]
    return objects


def _of_polars(
    frame: pl.LazyFrame,
    path: str,
    storage: Storage | None = None,
    retyped: Callable[[], pl.LazyFrame] | None = None,
) -> Part:
    """A lazy frame; ``retyped`` has the same rows with types that fit all of them, for a frame whose may not."""
    name = addresses.shown(path)
    with _readable(path, storage):
        columns = frame.collect_schema().names()

    def read(names: Sequence[str]) -> Columns:
        import polars as pl

        with _readable(path, storage):
            try:
                table = frame.select(names).collect()
            except pl.exceptions.ComputeError:
                if retyped is None:
                    raise
                table = retyped().select(names).collect()
            return _arrays(table, name, 0)

    def chunks(names: Sequence[str], rows: int) -> Iterator[Columns]:
        import polars as pl

        source, start, again = frame, 0, retyped
        batches: Any = None
        while True:
            with _readable(path, storage):
                try:
                    if batches is None:
                        chosen = source.select(names).slice(start)
                        batches = chosen.collect_batches(chunk_size=rows, maintain_order=True)
                    batch = next(batches, None)
                except pl.exceptions.ComputeError:
                    if again is None:
                        raise
                    source, again, batches = again(), None, None
                    continue
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
        if len(lengths) and not lengths[0]:
            raise InvalidInputError(f"{column.name} has empty lists in {name or 'the frame'}: pass at least one number")
        inner = _of_column(column.explode(empty_as_null=False), name, start) if len(column) else np.zeros(0)
        return inner.reshape(len(column), -1, *inner.shape[1:])
    if isinstance(dtype, (pl.Struct, pl.Binary, pl.Object)):
        raise InvalidInputError(
            f"{column.name} has values of type {dtype} in {name or 'the frame'}: images and structures are not read; "
            "encode them as numbers first"
        )
    if dtype == pl.Time:
        column = column.cast(pl.Duration("ns"))
    elif dtype.is_decimal():
        column = column.cast(pl.Float64)
    elif isinstance(dtype, (pl.Categorical, pl.Enum)) or dtype in (pl.Int128, pl.UInt128):
        column = column.cast(pl.String)
    array = column.to_numpy()
    return array if array.flags.writeable or array.dtype.kind != "b" else array.copy()
