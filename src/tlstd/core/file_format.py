"""The file that a model is saved in: numbers and arrays behind a checksum, nothing that could run (``docs/state.md``).

:func:`write` replaces a file atomically. :func:`read` trusts nothing: it allocates no more than the file is long, and
hands out a :class:`Saved`, from which every value is taken with its type, shape and range checked.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import secrets
import stat
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tlstd.errors import StateError

if TYPE_CHECKING:
    from tlstd.core.arrays import FloatArray, IntArray

MAGIC = b"\x89TLSTD\r\n"
VERSION = 1
MAX_HEADER = 1 << 16
"""Longest header in bytes; a model needs about 3,000."""

Path: TypeAlias = "str | os.PathLike[str]"
State: TypeAlias = Mapping[str, Any]
"""What a model is made of, by name: numbers, flags, words, float64 and int64 arrays, or a State of its own."""

_PREFIX = struct.Struct("<8sI32s")  # magic, version, SHA-256 of everything that follows
_LENGTHS = struct.Struct("<QQ")  # of the header and of the arrays
_START = _PREFIX.size + _LENGTHS.size
_DTYPES = {"<f8": np.float64, "<i8": np.int64}
_CHUNK = 1 << 20
_MAX_DIMENSION = 1 << 48
_KEYS = {"arrays": list, "class": str, "counters": dict, "library": str, "parameters": dict}


# --- writing --------------------------------------------------------------------------------------------------------


def write(path: Path, class_name: str, parameters: Mapping[str, Any], state: State) -> None:
    """Save a model: the file at ``path`` is the old one until the new one is complete and on the disk.

    Raises :class:`StateError` for what :func:`read` would refuse and for a place that is not a regular, writable file
    (a folder, a pipe, a device), and ``OSError`` as the system does; in all cases what was there is whole and nothing
    else is left behind.
    """
    counters: dict[str, Any] = {}
    arrays: dict[str, NDArray[Any]] = {}
    _flatten(state, "", counters, arrays)
    table, offset = [], 0
    for name, array in arrays.items():
        dtype = "<f8" if array.dtype == np.float64 else "<i8"
        table.append({"name": name, "dtype": dtype, "shape": list(array.shape), "offset": offset})
        offset += array.nbytes
    header = canonical(
        {
            "arrays": table,
            "class": class_name,
            "counters": counters,
            "library": import_module("tlstd").__version__,
            "parameters": dict(parameters),
        }
    )
    if len(header) > MAX_HEADER:
        raise StateError(f"the parameters take {len(header)} bytes, over the limit of {MAX_HEADER}: save fewer")
    replace_file(path, lambda file: _write_contents(file, header, arrays, offset))


def replace_file(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Let a function write a file that takes the place of another once it is whole and on the disk.

    Whatever is raised, what was there is whole, and nothing else is left behind. An ``OSError`` has the file's name.
    """
    target, mode = replaceable(path)
    if not os.path.isdir(os.path.dirname(target)):
        raise FileNotFoundError(errno.ENOENT, "there is no such folder: make it first", os.path.dirname(target))
    temporary = os.path.join(os.path.dirname(target), f".tlstd-{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            if mode is not None:
                os.chmod(temporary, mode)
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.errno is not None:  # a full disk names no file
            error.filename, error.filename2 = target, None
        raise
    sync_folder(os.path.dirname(target))


def replaceable(path: Path) -> tuple[str, int | None]:
    """Where a file is to be put, behind links, and the permissions of the one that is there.

    Raises :class:`StateError` for anything but a regular file that may be written: renaming a new file over it would
    succeed, for whatever the old one is.
    """
    target = os.path.realpath(file_name(path))  # a link stays a link
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        return target, None
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "a pipe, a device or a socket"
        raise StateError(f"{target} is {kind}, not a regular file: choose another name")
    if not mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH) or not os.access(target, os.W_OK):  # root may, always
        raise StateError(f"{target} is read-only: make it writable or choose another name")
    return target, stat.S_IMODE(mode)


def check_writable(path: Path) -> None:
    """Raise :class:`StateError` unless a file can be put there: asked before the work whose result it is."""
    target, _ = replaceable(path)
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise StateError(f"there is no folder {folder} for {os.path.basename(target)}: make it or choose another name")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise StateError(f"the folder {folder} may not be written to: choose another name")


def file_name(path: Path) -> str:
    """The name of a file as text; raises :class:`StateError` for what is none (a number would be an open file)."""
    if not isinstance(path, (str, bytes, os.PathLike)) or "\0" in (name := os.fsdecode(path)) or not name:
        raise StateError(f"{path!r} is not the name of a file: pass text or a path")
    return name


def canonical(value: object) -> bytes:
    """The one JSON text of a value."""
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")
    except (TypeError, ValueError) as error:
        raise StateError(f"{_short(value)} cannot be saved ({error}): use plain numbers and words") from error


def _flatten(state: State, prefix: str, counters: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Sort the values of a nested state into numbers and arrays, in place, under dotted names."""
    for key, value in state.items():
        name = prefix + key
        if isinstance(value, Mapping):
            _flatten(value, name + ".", counters, arrays)
        elif isinstance(value, np.ndarray):
            if value.dtype not in (np.float64, np.int64):
                raise StateError(f"{name} has type {value.dtype}: only float64 and int64 arrays can be saved")
            arrays[name] = value
        else:
            counters[name] = value.item() if isinstance(value, np.generic) else value


def _write_contents(file: BinaryIO, header: bytes, arrays: Mapping[str, NDArray[Any]], payload: int) -> None:
    digest = hashlib.sha256()
    lengths = _LENGTHS.pack(len(header), payload)
    file.write(_PREFIX.pack(MAGIC, VERSION, bytes(32)))
    for part in (lengths, header):
        digest.update(part)
        file.write(part)
    for name, array in arrays.items():
        for rows in _slices(array):
            if rows.dtype.kind == "f" and not np.isfinite(rows).all():
                raise StateError(f"the model's {name} is not finite any more: a diverged model cannot be saved")
            part = rows.astype(rows.dtype.newbyteorder("<"), copy=False).tobytes()
            digest.update(part)
            file.write(part)
    file.seek(0)
    file.write(_PREFIX.pack(MAGIC, VERSION, digest.digest()))


def _slices(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """The array in slices of about a megabyte, so that none is ever copied as a whole."""
    step = max(1, _CHUNK // max(1, 8 * int(np.prod(array.shape[1:]))))
    for start in range(0, array.shape[0], step):
        yield array[start : start + step]


def sync_folder(folder: Path) -> None:
    """Make a rename last, where a folder may be opened: not on every system, nor in one that may not be listed."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


# --- reading --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """What a file holds, each part of it sound in itself; whether it makes a model is for the class to say."""

    class_name: str
    parameters: dict[str, Any]
    saved: Saved


def read(path: Path) -> Contents:
    """Read a file of :func:`write`; raises :class:`StateError` if it is not one, to the last bit."""
    name = file_name(path)
    if not stat.S_ISREG(os.stat(name).st_mode):
        raise StateError("it is not a regular file")
    with open(name, "rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        header_length = _check_frame(file, size)
        header = _parse(_exactly(file, header_length))
        table = _check_table(header["arrays"], size - _START - header_length)
        values = _check_counters(header["counters"])
        for array, (dtype, shape) in table.items():
            if array in values:
                raise StateError(f"{_short(array)} is there twice")
            values[array] = _read_array(file, dtype, shape)
    return Contents(header["class"], header["parameters"], Saved(values))


def _check_frame(file: BinaryIO, size: int) -> int:
    """Check everything but the meaning of the header, and stop before it; returns its length."""
    if size < _START:
        raise StateError(f"it has {size} bytes, fewer than any saved model")
    magic, version, expected = _PREFIX.unpack(_exactly(file, _PREFIX.size))
    if magic != MAGIC:
        raise StateError("it does not begin like a saved model")
    if version != VERSION:
        raise StateError(f"it has format version {version} and this library reads version {VERSION}")
    lengths = _exactly(file, _LENGTHS.size)
    header_length, payload = _LENGTHS.unpack(lengths)
    if header_length > MAX_HEADER:
        raise StateError(f"its header claims {header_length} bytes, over the limit of {MAX_HEADER}")
    if _START + header_length + payload != size:
        raise StateError(f"it has {size} bytes where its lengths add up to {_START + header_length + payload}")
    digest = hashlib.sha256(lengths)
    buffer = memoryview(bytearray(min(_CHUNK, size - _START)))
    while count := file.readinto(buffer):  # type: ignore[attr-defined]
        digest.update(buffer[:count])
    if digest.digest() != expected:
        raise StateError("its checksum does not match: it was damaged")
    file.seek(_START)
    return int(header_length)


def _exactly(file: BinaryIO, count: int) -> bytes:
    data = file.read(count)
    if len(data) != count:
        raise StateError("it became shorter while it was read")
    return data


def _refuse_constant(name: str) -> None:
    raise StateError(f"its header has {name} for a number")


def _parse(text: bytes) -> dict[str, Any]:
    try:
        header = json.loads(text, parse_constant=_refuse_constant)
        if not isinstance(header, dict) or canonical(header) != text:
            raise StateError("its header is not written as this library writes it")
    except (ValueError, RecursionError) as error:
        if isinstance(error, StateError):
            raise
        raise StateError("its header is not JSON") from error
    if header.keys() != _KEYS.keys():
        raise StateError(f"its header has the entries {sorted(header)} instead of {sorted(_KEYS)}")
    for key, kind in _KEYS.items():
        if not isinstance(header[key], kind):
            raise StateError(f"its header has a {type(header[key]).__name__} as {key!r}")
    return header


def _check_table(table: list[Any], payload: int) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Types and shapes of the arrays by name, known to fill the payload exactly, one after the other."""
    known: dict[str, tuple[str, tuple[int, ...]]] = {}
    end = 0
    for entry in table:
        if not isinstance(entry, dict) or entry.keys() != {"name", "dtype", "shape", "offset"}:
            raise StateError("its header has a broken list of arrays")
        name, dtype, shape, offset = (entry[key] for key in ("name", "dtype", "shape", "offset"))
        if not isinstance(name, str) or name in known:
            raise StateError(f"an array's name is {_short(name)}, which is no name or there twice")
        if not isinstance(dtype, str) or dtype not in _DTYPES:
            raise StateError(f"{_short(name)} has type {_short(dtype)}, not one of {sorted(_DTYPES)}")
        if (
            not isinstance(shape, list)
            or not 1 <= len(shape) <= 2
            or not all(type(length) is int and 0 <= length < _MAX_DIMENSION for length in shape)
        ):
            raise StateError(f"{_short(name)} has the impossible shape {_short(shape)}")
        if type(offset) is not int or offset != end:
            raise StateError(f"{_short(name)} begins at {_short(offset)} instead of {end}")
        end += 8 * shape[0] * (shape[1] if len(shape) == 2 else 1)
        if end > payload:
            raise StateError(f"{_short(name)} of shape {shape} is longer than the file")
        known[name] = dtype, tuple(shape)
    if end != payload:
        raise StateError(f"its arrays take {end} of {payload} bytes")
    return known


def _check_counters(counters: dict[str, Any]) -> dict[str, Any]:
    for name, value in counters.items():
        if value is not None and not isinstance(value, (bool, int, float, str)):
            raise StateError(f"{_short(name)} is {_short(value)}, not a number or a word")
    return counters


def _read_array(file: BinaryIO, dtype: str, shape: tuple[int, ...]) -> NDArray[Any]:
    array = np.empty(shape, dtype=dtype)
    view = array.reshape(-1).view(np.uint8)
    done = 0
    while done < array.nbytes:
        count = file.readinto(view[done:])  # type: ignore[attr-defined]
        if not count:
            raise StateError("it became shorter while it was read")
        done += count
    return array.astype(_DTYPES[dtype], copy=False)


def printable(text: str) -> str:
    """The text with everything escaped that a terminal would act on: control characters, directions, surrogates.

    >>> print(printable("TD\\x1b[31m λ"))
    TD\\x1b[31m λ
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


_USERINFO = re.compile(r"(?<=[\w+.-]{2}:/)(/*)(?:[^/?#\s]*|[^/?#\s:]*:(?!\d+[/?#])\S*)@")  # the second: / in a password
_QUERY_VALUE = re.compile(r"([?&#][^=&#/\s]+=)[^&#\s]*")


def without_credentials(address: str) -> str:
    """An address, or a text with addresses, in which '***' stands for user, password and the values of a query.

    >>> without_credentials("tcp://user:secret@host:8786")
    'tcp://***@host:8786'
    >>> without_credentials("s3://bucket/part-?.parquet?sig=secret&v=1")
    's3://bucket/part-?.parquet?sig=***&v=***'
    >>> without_credentials("s3:/user:secret@bucket"), without_credentials("file:///user:secret@x")
    ('s3:/***@bucket', 'file:///***@x')
    """
    return _QUERY_VALUE.sub(r"\1***", _USERINFO.sub(r"\1***@", address))


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) < 80 else f"{text[:77]}..."


class Saved:
    """The values of a file; each is taken once, with what is known about it, and none may be left over.

    Every method raises :class:`StateError` if the value is missing or not as described.

    Example
    -------
    >>> saved = Saved({"count": 3, "factors.sigma": np.array([2.0, 1.0])})
    >>> saved.integer("count", high=5), saved.part("factors").floats("sigma", None)
    (3, array([2., 1.]))
    >>> saved.finish()
    """

    def __init__(self, values: dict[str, Any], prefix: str = "") -> None:
        self._values = values
        self._prefix = prefix

    @classmethod
    def of(cls, state: State) -> Saved:
        """The values of a state as a file would give them back; its arrays are not copied."""
        counters: dict[str, Any] = {}
        arrays: dict[str, NDArray[Any]] = {}
        _flatten(state, "", counters, arrays)
        return cls({**counters, **arrays})

    def part(self, name: str) -> Saved:
        """The values of a nested state."""
        return Saved(self._values, f"{self._prefix}{name}.")

    def apart(self, name: str) -> Saved:
        """The values of a nested state, taken out of these: they finish by themselves."""
        start = f"{self._prefix}{name}."
        return Saved(
            {key.removeprefix(start): self._values.pop(key) for key in list(self._values) if key.startswith(start)}
        )

    def has(self, name: str) -> bool:
        """Whether there is a value of this name, not yet taken."""
        return self._prefix + name in self._values

    def integer(self, name: str, *, low: int = 0, high: int = 2**63 - 1) -> int:
        """An int within [low, high]."""
        value = self._take(name, int)
        if not low <= value <= high:
            raise self.error(name, f"is {_short(value)}, outside [{low}, {high}]")
        return int(value)

    def real(self, name: str, *, low: float, high: float) -> float:
        """A float within [low, high]."""
        value = self._take(name, float)
        if not low <= value <= high:
            raise self.error(name, f"is {value}, outside [{low:g}, {high:g}]")
        return float(value)

    def flag(self, name: str) -> bool:
        """A bool."""
        return bool(self._take(name, bool))

    def word(self, name: str, options: tuple[str, ...]) -> str:
        """One of some words."""
        value = self._take(name, str)
        if value not in options:
            raise self.error(name, f"is {_short(value)}, not one of {options}")
        return str(value)

    def floats(
        self, name: str, *shape: int | None, low: float = -np.finfo(float).max, high: float = np.finfo(float).max
    ) -> FloatArray:
        """A finite float64 array of some shape (None for any length), with entries within [low, high]."""
        array: FloatArray = self._array(name, np.float64, shape)
        if array.size and not (array.min() >= low and array.max() <= high):  # a NaN makes both false
            limits = "that are not finite" if low == -high == -np.finfo(float).max else f"outside [{low:g}, {high:g}]"
            raise self.error(name, f"has entries {limits}")
        return array

    def integers(self, name: str, *shape: int | None, low: int, high: int) -> IntArray:
        """An int64 array of some shape (None for any length), with entries within [low, high]."""
        array: IntArray = self._array(name, np.int64, shape)
        if array.size and not (array.min() >= low and array.max() <= high):
            raise self.error(name, f"has entries outside [{low}, {high}]")
        return array

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of an array, which is not taken; () if it is not there."""
        value = self._values.get(self._prefix + name)
        return value.shape if isinstance(value, np.ndarray) else ()

    def error(self, name: str, what: str) -> StateError:
        """An exception to raise about one of the values."""
        return StateError(f"{self._prefix}{name} {what}")

    def finish(self) -> None:
        """Raise if something was never taken."""
        if self._values:
            raise StateError(f"{_short(sorted(self._values)[0])} is there and should not be")

    def _take(self, name: str, kind: type) -> Any:
        if self._prefix + name not in self._values:
            raise self.error(name, "is missing")
        value = self._values.pop(self._prefix + name)
        if type(value) is not kind:
            raise self.error(name, f"is of type {type(value).__name__}, not {kind.__name__}")
        return value

    def _array(self, name: str, dtype: type, shape: tuple[int | None, ...]) -> Any:
        array = self._take(name, np.ndarray)
        fits = array.ndim == len(shape) and all(
            wanted is None or wanted == length for wanted, length in zip(shape, array.shape, strict=True)
        )
        if array.dtype != dtype or not fits:
            wanted = ", ".join("any" if length is None else str(length) for length in shape)
            raise self.error(name, f"has type {array.dtype} and shape {array.shape}, not {dtype.__name__} ({wanted})")
        return array
