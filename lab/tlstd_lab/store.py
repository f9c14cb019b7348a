"""Results on disk: one parquet file per run, whole or not there, never overwritten; and many runs in one file.

A file holds one row per run: ``run.key``, ``run.spec`` (JSON), ``run.made_with`` (JSON: versions and platform),
``run.seconds``, and a list column for each column of the result. A run's own file has one row; a *bundle* has many.
Any reader of parquet can open both.

The footer of a file carries the SHA-256 of its bytes (taken with the digest's own 64 characters as zeros), checked
before anything else is read: a parquet reader given damaged bytes may do worse than raise. The key is the hash of the
spec, so that a run cannot pass for another one, whatever its file is called.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import secrets
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import tlstd
from tlstd.core.file_format import replaceable, sync_folder
from tlstd.errors import InvalidInputError, InvalidParameterError, StateError, TlstdError
from tlstd_lab.spec import RunSpec, key_of

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import ArrayLike, NDArray

OWN = "run."
"""What the names of the store's own columns begin with."""

_MARK = b"sha256:"
_ZEROS = b"0" * 64
_HOUR = 3600.0


class MissingRunError(TlstdError, LookupError):
    """A run is asked for that is not stored."""


@dataclass(frozen=True, eq=False)
class Run:
    """A stored run: its spec, its columns, how long it took, and what it was made with."""

    spec: RunSpec
    columns: dict[str, NDArray[Any]]
    seconds: float
    made_with: dict[str, str]

    def frame(self) -> pl.DataFrame:
        """Return the columns as a polars frame."""
        import polars as pl

        return pl.DataFrame(self.columns)


class Store:
    """Runs in a folder, by key.

    Several processes and commands may use a folder at once. A file is written beside its place, synced, and linked to
    its name if that is free: the first to store a run wins, and a crash leaves nothing half-written. A file that is
    damaged nevertheless, or holds another run than its name says, is renamed to ``*.damaged`` with a warning, and its
    run counts as missing.

    Parameters
    ----------
    root : path
        The folder; made when something is written.
    bundles : paths, optional
        Files made by :meth:`pack`, read for what the folder does not have, never written. They are loaded at once.

    Cost: a file is read for each run of a folder, one for all runs of a bundle. Asking for a run again reads its file
    and its digest, not its columns.

    Example
    -------
    >>> import tempfile
    >>> spec = RunSpec("package.module:function", {"rank": 20}, seed=3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store(folder)
    ...     _ = store.write(spec, {"step": [10, 20], "rmse": [0.5, 0.25]}, seconds=1.5)
    ...     run = store.read(spec.key)
    >>> run.columns["rmse"]
    array([0.5 , 0.25])
    >>> run.spec == spec, run.seconds
    (True, 1.5)
    """

    def __init__(self, root: str | Path, bundles: Sequence[str | Path] = ()) -> None:
        self.root = Path(root)
        self._known: dict[str, str] = {}  # digests of files that hold the run of their name
        self._bundled: dict[str, tuple[pl.DataFrame, int]] = {}
        for path in map(Path, bundles):
            for frame in _without_gaps(_bundle(path)):
                for row, key in enumerate(frame[OWN + "key"]):
                    self._bundled.setdefault(key, (frame, row))

    def has(self, key: str) -> bool:
        """Tell whether the run is stored, in a file that is sound and holds no other run."""
        return self._bytes(key) is not None or key in self._bundled

    def keys(self) -> set[str]:
        """Return the keys of all stored runs; their files are not looked at."""
        return {path.stem for path in self.root.glob("*.parquet")} | set(self._bundled)

    def read(self, key: str) -> Run:
        """Return a run."""
        return _run(*self._row(key))

    def read_many(self, keys: Iterable[str]) -> dict[str, Run]:
        """Return runs by key, in the order asked for; several files are read at once."""
        wanted = list(dict.fromkeys(keys))
        files = [key for key in wanted if key not in self._bundled]
        if not files:
            return {key: self.read(key) for key in wanted}
        with ThreadPoolExecutor(8) as threads:  # which start with the first file
            found = dict(zip(files, threads.map(self.read, files), strict=True))
        return {key: found[key] if key in found else self.read(key) for key in wanted}

    def specs(self) -> dict[str, RunSpec]:
        """Return the specs of all stored runs by key; what is damaged is left out."""
        specs = {}
        for key in sorted(self.keys()):
            with suppress(MissingRunError):
                frame, row = self._row(key)
                specs[key] = RunSpec.from_json(frame[OWN + "spec"][row])
        return specs

    def write(
        self,
        spec: RunSpec,
        columns: Mapping[str, ArrayLike],
        *,
        seconds: float,
        made_with: Mapping[str, str] | None = None,
    ) -> bool:
        """Store a run unless it is stored already; return whether it was written.

        ``columns`` are 1-D arrays of equal length: booleans, integers (kept with 64 bits), floats (kept with 32 or 64)
        or text. ``made_with`` is :func:`versions` of the process that made them, this one by default.
        """
        frame = _frame(spec, columns, seconds, versions() if made_with is None else made_with)
        if self._bytes(spec.key) is not None:  # also moves a damaged file out of the way
            return False
        return _put(self._path(spec.key), _to_bytes(frame), replace=False)

    def pack(self, keys: Iterable[str], path: str | Path) -> None:
        """Write runs into one small file, to be opened with ``Store(root, bundles=[path])``; replaces the file.

        Columns of one name must have one type in all of them.
        """
        import polars as pl

        frames = [frame.slice(row, 1) for frame, row in map(self._row, dict.fromkeys(keys))]
        if not frames:
            raise InvalidParameterError(f"there are no runs to pack into {path}: name some keys")
        types: dict[str, pl.DataType] = {}
        for frame in frames:
            present = {name: dtype for name, dtype in frame.schema.items() if frame[name].null_count() == 0}
            for name, dtype in present.items():
                if types.setdefault(name, dtype) != dtype:
                    raise InvalidInputError(
                        f"the column {name!r} is of type {types[name]} in some runs and {dtype} in others: "
                        "pack them into separate bundles"
                    )
        rows = [frame.select(name for name in frame.columns if name in types) for frame in frames]
        target, _ = replaceable(path)
        _put(Path(target), _to_bytes(pl.concat(rows, how="diagonal_relaxed"), level=19), replace=True)

    def remove_leftovers(self) -> None:
        """Delete what writers killed more than an hour ago have left half-written."""
        for path in self.root.glob(".*.tmp"):
            with suppress(OSError):
                if time.time() - path.stat().st_mtime > _HOUR:
                    path.unlink()

    def _path(self, key: str) -> Path:
        return self.root / f"{key}.parquet"

    def _bytes(self, key: str) -> bytes | None:
        """The content of a run's file; None if it is not there, damaged, or another run's."""
        path = self._path(key)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        digest = _digest(data)
        if digest is not None and self._known.get(key) == digest:
            return data
        problem = "is damaged" if digest is None else _misplaced(key, data)
        if not problem and digest is not None:
            self._known[key] = digest
            return data
        with suppress(OSError):
            os.replace(path, path.with_name(f"{key}-{secrets.token_hex(4)}.damaged"))
        warnings.warn(f"{path} {problem} and was renamed to *.damaged: its run counts as missing", stacklevel=3)
        return None

    def _row(self, key: str) -> tuple[pl.DataFrame, int]:
        """A frame and the row in it that holds the run."""
        data = self._bytes(key)
        if data is not None:
            return _from_bytes(data), 0
        if key in self._bundled:
            return self._bundled[key]
        raise MissingRunError(f"there is no run {key} in {self.root} or its bundles: run its spec first")


@cache
def versions() -> Mapping[str, str]:
    """Return the versions of what this process computes with, and its platform."""
    packages = {name: version(name) for name in ("numba", "numpy", "scipy")}
    return {
        "tlstd": tlstd.__version__,
        **packages,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
    }


def _frame(
    spec: RunSpec, columns: Mapping[str, ArrayLike], seconds: float, made_with: Mapping[str, str]
) -> pl.DataFrame:
    """One row that holds a run."""
    import polars as pl

    arrays = _checked(columns)
    own = {
        OWN + "key": [spec.key],
        OWN + "spec": [spec.to_json()],
        OWN + "made_with": [json.dumps(dict(made_with), sort_keys=True)],
        OWN + "seconds": [float(seconds)],
    }
    return pl.DataFrame(own).hstack(pl.DataFrame(arrays).select(pl.all().implode()))


def _run(frame: pl.DataFrame, row: int) -> Run:
    """The run that a row holds."""
    columns = {}
    for name in frame.columns:
        values = None if name.startswith(OWN) else frame[name][row]
        if values is not None:  # other runs of the bundle have this column
            if values.null_count():
                raise StateError(f"the run {frame[OWN + 'key'][row]} has gaps in its column {name!r}: run it again")
            array = values.to_numpy()
            columns[name] = array.astype(str) if array.dtype.hasobject else array
    if len({len(array) for array in columns.values()}) != 1:
        raise StateError(f"the run {frame[OWN + 'key'][row]} has no columns, or of several lengths: run it again")
    return Run(
        RunSpec.from_json(frame[OWN + "spec"][row]),
        columns,
        frame[OWN + "seconds"][row],
        _words(frame[OWN + "made_with"][row]),
    )


def _words(text: str) -> dict[str, str]:
    """A JSON object of words."""
    try:
        words = json.loads(text)
    except (ValueError, RecursionError):
        words = None
    if not isinstance(words, dict) or not all(isinstance(word, str) for word in words.values()):
        raise StateError(f"a run was made with {text[:80]!r}, which says no versions: run it again")
    return words


def _checked(columns: Mapping[str, ArrayLike]) -> dict[str, NDArray[Any]]:
    """Arrays of the few types that are kept."""
    if not isinstance(columns, Mapping) or not columns:
        raise InvalidInputError(f"the columns are {columns!r}: give at least one array by name")
    arrays = {}
    for name, values in columns.items():
        if not isinstance(name, str) or not name or name.startswith(OWN):
            raise InvalidInputError(f"a column is named {name!r}: use text that does not begin with {OWN!r}")
        array = np.asarray(values)
        if array.ndim != 1 or array.dtype.kind not in "biufU":
            raise InvalidInputError(
                f"the column {name!r} has shape {array.shape} and type {array.dtype}: give 1-D numbers or text"
            )
        if array.dtype.kind in "iu":
            array = array.astype(np.int64)
        elif array.dtype.kind == "f" and array.dtype != np.float32:
            array = array.astype(np.float64)
        arrays[name] = array
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise InvalidInputError(f"the columns have lengths {lengths}: make them equal")
    return arrays


def _to_bytes(frame: pl.DataFrame, level: int = 3) -> bytes:
    """A parquet file with its digest."""
    buffer = io.BytesIO()
    frame.write_parquet(
        buffer, compression="zstd", compression_level=level, metadata={"digest": (_MARK + _ZEROS).decode()}
    )
    data = buffer.getvalue()
    start = data.rindex(_MARK + _ZEROS) + len(_MARK)
    return data[:start] + hashlib.sha256(data).hexdigest().encode() + data[start + len(_ZEROS) :]


def _digest(data: bytes) -> str | None:
    """The digest in a file, if its bytes are those that were written."""
    start = data.rfind(_MARK) + len(_MARK)
    end = start + len(_ZEROS)
    digest = hashlib.sha256(data[:start] + _ZEROS + data[end:]).hexdigest()
    return digest if digest.encode() == data[start:end] else None


def _from_bytes(data: bytes) -> pl.DataFrame:
    """The rows of a file whose digest is right; raises StateError unless each is a run under its own key."""
    import polars as pl

    try:
        frame = pl.read_parquet(io.BytesIO(data))
    except (Exception, pl.exceptions.PanicException) as error:
        raise StateError("is not a table of parquet") from error
    own = {OWN + "key": pl.String, OWN + "spec": pl.String, OWN + "made_with": pl.String, OWN + "seconds": pl.Float64}
    kept = (pl.Boolean, pl.Int64, pl.Float32, pl.Float64, pl.String)
    for name, wanted in own.items():
        if frame.schema.get(name) != wanted or frame[name].null_count():
            raise StateError(f"has no column {name!r} of type {wanted}, or gaps in it")
    for name, dtype in frame.schema.items():
        if name not in own and not (isinstance(dtype, pl.List) and dtype.inner in kept):
            raise StateError(f"has a column {name!r} of type {dtype}, which no run has")
    for key, spec in zip(frame[OWN + "key"], frame[OWN + "spec"], strict=True):
        if key_of(spec) != key:
            raise StateError(f"has under the key {key[:40]!r} another run, that of {spec[:200]!r}")
    return frame


def _misplaced(key: str, data: bytes) -> str:
    """What is wrong with the file of a run whose digest is right; nothing if it holds that run."""
    try:
        frame = _from_bytes(data)
    except StateError as error:
        return str(error)
    return "" if frame[OWN + "key"].to_list() == [key] else "holds another run than its name says"


def _bundle(path: Path) -> pl.DataFrame:
    """The content of a bundle."""
    if not path.is_file():
        raise InvalidParameterError(
            f"there is no bundle {path}: name a file made by `tlstd reproduce --pack` or Store.pack"
        )
    data = path.read_bytes()
    if _digest(data) is None:
        raise StateError(f"{path} is damaged, or not a bundle: fetch or pack it again, or leave it out")
    try:
        return _from_bytes(data)
    except StateError as error:
        raise StateError(f"{path} {error}: fetch or pack it again, or leave it out") from error


def _without_gaps(frame: pl.DataFrame) -> list[pl.DataFrame]:
    """The rows of a table by the columns that they have, each with no others."""
    import polars as pl

    alike: dict[bytes, list[int]] = {}
    for row, present in enumerate(frame.select(pl.all().is_not_null()).to_numpy()):
        alike.setdefault(present.tobytes(), []).append(row)
    return [frame[rows, np.flatnonzero(np.frombuffer(present, dtype=bool))] for present, rows in alike.items()]


def _put(path: Path, data: bytes, *, replace: bool) -> bool:
    """Put a file in place at once and whole; unless it may replace another, only where there is none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}-{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        written = _rename(temporary, path) if replace else _link(temporary, path)
    finally:
        with suppress(OSError):
            temporary.unlink()
    sync_folder(path.parent)
    return written


def _rename(temporary: Path, path: Path) -> bool:
    os.replace(temporary, path)
    return True


def _link(temporary: Path, path: Path) -> bool:
    """Give a file its name unless that is taken."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        return False
    except OSError:  # a file system without links
        return not path.exists() and _rename(temporary, path)
    return True
