"""Arrays that take long to compute, kept in the user's cache folder.

A file is named by what it depends on, written beside its place, synced and renamed, and read back only if its checksum
is right. So a file is whole or it is not used; several processes may compute the same arrays at once (the last rename
wins, with the same content); a folder that cannot be written only means that nothing is kept. Nothing in the folder is
ever needed: it may be deleted at any time.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import secrets
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from tlstd.core.file_format import canonical
from tlstd.errors import InvalidParameterError

MAGIC = b"\x89TLSTDc\n"
VERSION = 1
"""Of the format; part of every file's name."""

_DIGEST = hashlib.sha256().digest_size
_KEY = "__key__"


def cache_folder() -> Path | None:
    """Return the folder that :func:`cached_arrays` uses, which may not exist; None if the user has no home.

    ``TLSTD_CACHE`` if that is set, else ``tlstd`` in the system's place for caches: ``XDG_CACHE_HOME`` or ``~/.cache``
    (Linux and others), ``~/Library/Caches`` (macOS), ``LOCALAPPDATA`` or ``~/AppData/Local`` (Windows).

    Example
    -------
    >>> import os
    >>> os.environ["TLSTD_CACHE"] = "somewhere"
    >>> cache_folder().name
    'somewhere'
    >>> del os.environ["TLSTD_CACHE"]
    """
    chosen = os.environ.get("TLSTD_CACHE")
    if chosen:
        return Path(chosen)
    variable, parts = {
        "win32": ("LOCALAPPDATA", ("AppData", "Local")),
        "darwin": ("", ("Library", "Caches")),
    }.get(sys.platform, ("XDG_CACHE_HOME", (".cache",)))
    base = Path(os.environ.get(variable, ""))
    if not base.is_absolute():  # unset; a relative one is to be ignored, says the XDG specification
        try:
            base = Path.home().joinpath(*parts)
        except RuntimeError:
            return None
    return base / "tlstd"


def cached_arrays(
    name: str, key: Mapping[str, Any], compute: Callable[[], Mapping[str, NDArray[Any]]], folder: Path | None = None
) -> dict[str, NDArray[Any]]:
    """Return the arrays that ``compute()`` returns, from the cache if they are there.

    Parameters
    ----------
    name : str of letters, digits, "-" and "_"
        What the arrays are; the file's name begins with it.
    key : mapping that JSON can hold
        All that the arrays depend on, a version number of the computation included.
    compute : function without arguments
        Returns arrays by name; no objects.
    folder : Path, optional
        Instead of :func:`cache_folder`.

    Returns
    -------
    dict of arrays

    Example
    -------
    >>> import tempfile
    >>> def compute():
    ...     print("computing")
    ...     return {"squares": np.arange(4) ** 2}
    >>> with tempfile.TemporaryDirectory() as place:
    ...     for _ in range(2):
    ...         arrays = cached_arrays("squares", {"n": 4, "version": 1}, compute, folder=Path(place))
    computing
    >>> arrays["squares"]
    array([0, 1, 4, 9])
    """
    if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
        raise InvalidParameterError(f"name is {name!r}: use letters, digits, - and _")
    text = canonical({"format": VERSION, "key": key, "name": name})
    place = cache_folder() if folder is None else folder
    path = None if place is None else place / f"{name}-{hashlib.sha256(text).hexdigest()[:32]}.cache"
    if path is not None:
        stored = _read(path, text)
        if stored is not None:
            return stored
    arrays = {label: np.asarray(array) for label, array in compute().items()}
    for label, array in arrays.items():
        if array.dtype.hasobject or label == _KEY:
            raise InvalidParameterError(f"the array {label!r} of type {array.dtype} cannot be kept: use plain numbers")
    if path is not None:
        with suppress(OSError):  # no place, no room, no permission: go on without
            _write(path, text, arrays)
    return arrays


def _write(path: Path, text: bytes, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Put a file in place at once and whole."""
    buffer = io.BytesIO()
    np.savez(buffer, **{_KEY: np.frombuffer(text, dtype=np.uint8)}, **arrays)  # type: ignore[arg-type]
    payload = buffer.getbuffer()
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}-{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(MAGIC + hashlib.sha256(payload).digest())
            file.write(payload)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def _read(path: Path, text: bytes) -> dict[str, NDArray[Any]] | None:
    """The arrays of a file, or None if it is not there or not sound to the last bit."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    start = len(MAGIC) + _DIGEST
    if data[: len(MAGIC)] != MAGIC or hashlib.sha256(data[start:]).digest() != data[len(MAGIC) : start]:
        return None
    try:
        with np.load(io.BytesIO(data[start:]), allow_pickle=False) as archive:
            arrays = {label: archive[label] for label in archive.files}
    except (ValueError, KeyError, OSError, BadZipFile):  # a right checksum over something else
        return None
    if arrays.pop(_KEY, np.zeros(0, dtype=np.uint8)).tobytes() != text:
        return None
    return arrays
