"""Files that commands write: checked before the work, and never in the place of somebody's own file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

Force = Annotated[
    bool, typer.Option("--force", help="Replace a file that tlstd did not write; never one that is being read.")
]

_SIGNS = {
    "model": [(b"\x89TLSTD\r\n", b"")],
    "page": [
        (b"<!doctype html>", b'<meta name="generator" content="tlstd">'),
        (b"<!doctype html>", b'<span class="brand">tlstd'),  # of 0.2
    ],
    "figure": [(b"\x89PNG", b"Software\0tlstd")],
    "demo": [(b"episode,obs_0,obs_1,action,reward,next_obs_0,next_obs_1,terminated,truncated\r\n", b"")],
    "bench": [(b"{", b'"command": "uv run tlstd bench')],
    "runs": [(b"PAR1", b"run.key")],
}
"""By kind: how files of tlstd begin, and what is near their beginning or end."""

_NEAR = 1 << 17
"""Bytes; a page's style comes before its brand."""


def check_outputs(
    option: str, paths: Iterable[Path], kinds: tuple[str, ...], *, inputs: Iterable[str | Path] = (), force: bool
) -> list[Path]:
    """The places of files to be written, wherever the working folder is by then; asked before the work.

    Raises for a place that cannot be written, a file that is read (by whatever name), a file named twice, and, without
    ``force``, an existing file that is not of one of these kinds. Empty files may be replaced.
    """
    from tlstd.core.file_format import check_writable
    from tlstd.errors import InvalidParameterError

    read = {found for found in map(_identity, inputs) if found is not None}
    named: dict[str, Path] = {}
    for path in paths:
        check_writable(path)
        found = _identity(path)
        if found is not None and found in read:
            raise InvalidParameterError(f"{option} {path} is a file that is read: choose another name")
        other = named.setdefault(os.path.realpath(path), path)
        if other is not path:
            raise InvalidParameterError(f"{option} {other} and {option} {path} are one file: choose another name")
        if found is not None and not force and not _is_ours(path, kinds):
            raise InvalidParameterError(
                f"{option} {path} is there, and is no {' or '.join(kinds)} of tlstd: choose another name, or add "
                "--force to replace it (also where an earlier version wrote it, without a mark)"
            )
    return [path.absolute() for path in named.values()]


def write_outputs(writers: Iterable[tuple[Path, str, Callable[[Path], object]]]) -> None:
    """Write files, each (path, what it is, function), and say so on standard error; those that fail do not stop others.

    Ends the command if one has failed.
    """
    from tlstd.cli.asking import say
    from tlstd.core.file_format import printable
    from tlstd.errors import TlstdError

    failed = False
    for path, what, write in writers:
        try:
            write(path)
        except (TlstdError, OSError) as error:
            say(error)
            failed = True
        else:
            typer.echo(printable(f"written: {path} ({what})"), err=True)
    if failed:
        raise typer.Exit(1)


def _identity(path: str | Path) -> tuple[int, int] | None:
    """What tells a file from all others, whatever its names; None where there is none."""
    with suppress(OSError, ValueError):
        status = os.stat(path)
        return status.st_dev, status.st_ino
    return None


def _is_ours(path: Path, kinds: tuple[str, ...]) -> bool:
    with open(path, "rb") as file:
        beginning = file.read(_NEAR)
        file.seek(max(file.tell(), os.path.getsize(path) - _NEAR))
        near = beginning + file.read()
    signs = [sign for kind in kinds for sign in _SIGNS[kind]]
    return not near or any(near.startswith(first) and sign in near for first, sign in signs)
