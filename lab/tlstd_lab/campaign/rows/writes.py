"""Whatever the system refuses while a file is replaced, and wherever the disk is full: the old file is whole.

Every call in turn fails (opening, writing, flushing, renaming), or a file may not grow beyond some byte. The full disk
is a real one, a file system in memory of a few pages, where this process may mount one.
"""

from __future__ import annotations

import builtins
import ctypes
import errno
import io
import os
import resource
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tlstd import Horde, Log, evaluate
from tlstd.checks.data import loaded, stream
from tlstd.cluster.checkpoint import Checkpoint
from tlstd.errors import TlstdError
from tlstd.estimators.registry import ESTIMATORS
from tlstd.evaluation import ValueFunction
from tlstd.page import write_page
from tlstd_lab.campaign import hordes, values
from tlstd_lab.campaign.faults import Task, explained
from tlstd_lab.campaign.row import Row, estimators

ERRORS = (errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EINTR)
_CALLS = ("open", "fsync", "replace", "rename", "link", "chmod")


class Files(NamedTuple):
    """Two functions that put another file in one place, and one that raises unless one of theirs is there."""

    old: Callable[[str], object]
    new: Callable[[str], object]
    read: Callable[[str], object]


# --- what is written ------------------------------------------------------------------------------------------------


def subjects() -> list[str]:
    """Everything that replaces files."""
    return [*estimators(), *_MADE]


def _of_estimator(name: str) -> Files:
    first, second = ESTIMATORS[name](60), ESTIMATORS[name](60)
    steps = stream(80, n_features=60)
    first.update_many(steps[:30])
    second.update_many(steps)
    return Files(first.save, second.save, lambda path: loaded(path, type(first)))


def _of_saved(found: list[bytes], load: Callable[[Any], Any]) -> Files:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        made = []
        for data in (found[0], found[-1]):
            path.write_bytes(data)
            made.append(load(path))
    return Files(made[0].save, made[1].save, load)


def _page() -> Files:
    rng = np.random.default_rng(0)
    made = []
    for n in (60, 80):
        log = Log.from_arrays(rng.random((n, 2)), rng.random(n), terminated=np.arange(n) % 10 == 9)
        made.append(evaluate(log, gamma=0.9, estimators=["mean of returns"]))
    old, new = (lambda path, found=found: write_page(found, path) for found in made)
    return Files(old, new, lambda path: _ends_with(path, b"</html>"))


def _ends_with(path: str, end: bytes) -> None:
    assert Path(path).read_bytes().strip().endswith(end), "the file is cut off"


def _rounds() -> Files:
    """Rounds of a cluster's computation: never replaced, so that there is no old one."""

    def keep(path: str, n: int) -> None:
        Checkpoint(os.path.dirname(path), {"n": 1}).remember(os.path.basename(path)[: -len(".npy")], lambda: np.ones(n))

    return Files(lambda path: None, lambda path: keep(path, 3_000), lambda path: keep(path, 3_000))


_MADE: dict[str, Callable[[], Files]] = {
    "ValueFunction": lambda: _of_saved(values.sound_files(), ValueFunction.load),
    "Horde": lambda: _of_saved(hordes.sound_files(), Horde.load),
    "page": _page,
    "rounds of a cluster": _rounds,
}


@cache
def _files(subject: str) -> Files:
    return _MADE[subject]() if subject in _MADE else _of_estimator(subject)


# --- calls that fail --------------------------------------------------------------------------------------------------


class _Refusing:
    """A file whose methods are counted as calls."""

    def __init__(self, file: Any, faults: Faults) -> None:
        self._file, self._faults = file, faults

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._file, name)
        return self._faults.counted(found, name) if name in ("write", "flush", "seek", "close") else found

    def __enter__(self) -> _Refusing:
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self._faults.counted(self._file.close, "close")()
        finally:
            self._file.close()


class Faults:
    """Lets the n-th of the calls that write fail, or it and all that follow."""

    def __init__(self, at: int | None = None, code: int = errno.ENOSPC, *, on: bool = False) -> None:
        self.at, self.code, self.on = at, code, on
        self.names: list[str] = []

    def counted(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        """The function as a call that may fail."""

        def call(*arguments: Any, **named: Any) -> Any:
            self.names.append(name)
            n = len(self.names)
            if self.at is not None and (n == self.at or (self.on and n > self.at)):
                raise OSError(self.code, os.strerror(self.code), str(arguments[0]) if arguments else None)
            return function(*arguments, **named)

        return call

    @contextmanager
    def there(self) -> Iterator[None]:
        """Count within this block."""
        before = {name: getattr(os, name) for name in _CALLS}
        opened = builtins.open

        def opening(file: Any, mode: str = "r", *arguments: Any, **named: Any) -> Any:
            if not set(mode) & set("wxa+"):
                return opened(file, mode, *arguments, **named)
            return _Refusing(self.counted(opened, "open")(file, mode, *arguments, **named), self)

        for name, function in before.items():
            setattr(os, name, self.counted(function, name))
        builtins.open = io.open = opening
        try:
            yield
        finally:
            builtins.open = io.open = opened
            for name, function in before.items():
                setattr(os, name, function)


def _attempted(files: Files, path: str, within: Callable[[], Any]) -> str:
    """Write the new file while something fails; raise unless the old or the new one is there, whole and alone."""
    content = _content(path)
    error: BaseException | None = None
    try:
        with within():
            files.new(path)
    except (OSError, TlstdError) as raised:
        error = raised
    after = _content(path)
    if error is not None:
        assert after == content, f"it raises {type(error).__name__} ({error}), and the file is another one"
    if after is not None:
        files.read(path)
    left = sorted(set(os.listdir(os.path.dirname(path))) - {os.path.basename(path), "question.json"})
    assert not left, f"{left} are left behind"
    files.new(path)
    files.read(path)
    return "refused" if error is not None else "written"


def _content(path: str) -> bytes | None:
    return Path(path).read_bytes() if os.path.exists(path) else None


@contextmanager
def _limited(size: int) -> Iterator[None]:
    """No file grows beyond so many bytes. (The process has the signal for it ignored, as Python does.)"""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def _calls(subject: str, seed: int, folder: Path) -> Task:
    files = _files(subject)
    with tempfile.TemporaryDirectory() as place:
        path = os.path.join(place, "file.npy")
        files.old(path)
        counter = Faults()
        with counter.there():
            files.new(path)
        n, size = len(counter.names), os.path.getsize(path)

    def task(number: int) -> str:
        with tempfile.TemporaryDirectory() as place:
            path = os.path.join(place, "file.npy")
            files.old(path)
            if number % 4 == 3:
                at = int(np.random.default_rng([seed, number]).integers(size))
                with explained(f"no file may grow beyond {at} bytes"):
                    return _attempted(files, path, lambda: _limited(at))
            turn, at = divmod(number - number // 4, n)
            faults = Faults(at + 1, ERRORS[turn % len(ERRORS)], on=turn % 2 == 1)
            with explained(f"call {at + 1} of {n} ({counter.names[at]}) raises {errno.errorcode[faults.code]}"):
                return _attempted(files, path, faults.there)

    return task


CALLS = Row(
    promise="a call that fails while a file is replaced leaves the old one",
    unit="failing calls",
    target=300,
    subjects=subjects,
    task=_calls,
    checked=False,
)


# --- the full disk ----------------------------------------------------------------------------------------------------

PAGE = 4096
_NEW_NAMESPACE, _PRIVATE = 0x20000, (1 << 18) | (1 << 14)


def _mount(place: str, pages: int) -> None:
    """A file system of so many pages, seen by this process alone."""
    libc = ctypes.CDLL(None, use_errno=True)
    options = f"size={pages * PAGE},mode=755".encode()
    steps: list[Callable[[], int]] = [
        lambda: libc.unshare(_NEW_NAMESPACE),
        lambda: libc.mount(b"none", b"/", None, _PRIVATE, None),
        lambda: libc.mount(b"none", place.encode(), b"tmpfs", 0, options),
    ]
    for step in steps:
        if step():
            raise OSError(ctypes.get_errno(), "no file system can be mounted")


def _full(subject: str, seed: int, folder: Path) -> Task:
    files = _files(subject)
    with tempfile.TemporaryDirectory() as place:
        path = os.path.join(place, "file.npy")
        files.old(path)
        old = -(-os.path.getsize(path) // PAGE) if os.path.exists(path) else 0
        files.new(path)
        new = -(-os.path.getsize(path) // PAGE)

    def task(number: int) -> str:
        room = number % (new + 1)
        with tempfile.TemporaryDirectory() as place:
            disk = os.path.join(place, "disk")
            os.mkdir(disk)
            libc = ctypes.CDLL(None, use_errno=True)
            try:
                _mount(disk, old + 2 * new + 4)
            except OSError:
                return "not tried: this process may not mount a file system"
            try:
                path, filling = os.path.join(disk, "file.npy"), os.path.join(place, "filling")
                files.old(path)
                with explained(f"{room} pages of 4,096 bytes left, where {new} are needed"):
                    return _attempted(files, path, lambda: _filled(disk, room, filling))
            finally:
                libc.umount2(disk.encode(), 2)

    return task


@contextmanager
def _filled(disk: str, room: int, name: str) -> Iterator[None]:
    """All but some pages of a file system taken by a file, in a folder of its own."""
    inside = os.path.join(disk, os.path.basename(name))
    free = os.statvfs(disk).f_bavail
    with open(inside, "wb") as file:
        file.write(bytes(max(0, free - room) * PAGE))
    try:
        yield
    finally:
        os.unlink(inside)


FULL_DISK = Row(
    promise="so does a disk that is full",
    unit="saves",
    target=100,
    subjects=subjects,
    task=_full,
    checked=False,
)
