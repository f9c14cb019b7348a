"""What the commands about logs share: policies by name, states from files, progress, and mistakes as a sentence."""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from traceback import extract_tb
from typing import Any, NoReturn

import numpy as np
import typer

from tlstd.core.arrays import FloatArray
from tlstd.core.file_format import printable, without_credentials
from tlstd.errors import ClusterError, InvalidInputError, InvalidParameterError
from tlstd.logs.messages import count_of

LINE_EVERY = 10.0
"""Seconds between lines about what is being done, where there is no terminal."""


def fail(error: Exception) -> NoReturn:
    """Say what is wrong, and end."""
    say(error)
    raise typer.Exit(1) from None


def say(error: Exception) -> None:
    """Say what is wrong on standard error, without credentials, whatever option they were given to."""
    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        name = "a file" if error.filename is None else os.fsdecode(error.filename)
        text = f"{name} cannot be used ({error.strerror})"
    typer.echo("\n".join(printable(line) for line in without_credentials(text).splitlines()), err=True)


def as_policy(name: str, option: str = "--policy") -> Callable[[Any], Any]:
    """The function ``module:function``; only ever a name from the command line, given to an option.

    The working folder is the same afterwards, whatever the module does when it is imported.
    """
    module, _, function = name.partition(":")
    if not module or not function or module.startswith("."):
        raise InvalidParameterError(
            f"{option} {name!r} is not MODULE:FUNCTION: write e.g. my_policies:careful, column:NAME or logged"
        )
    folder = os.getcwd()
    sys.path.insert(0, folder)
    try:
        found = getattr(importlib.import_module(module), function, None)
    except KeyboardInterrupt:
        raise
    except ImportError as error:
        raise InvalidParameterError(f"{option} {name!r} cannot be imported ({error}): run from its folder") from error
    except BaseException as error:  # whatever its lines raise, sys.exit() too
        raise InvalidParameterError(
            f"{option} {name!r} cannot be imported ({type(error).__name__}: {error}): correct {_place(error, module)}"
        ) from error
    finally:
        os.chdir(folder)
        with suppress(ValueError):  # the module took it away
            sys.path.remove(folder)
    if not callable(found):
        raise InvalidParameterError(f"{option} {name!r}: there is no function {function!r} in {module!r}")
    policy: Callable[[Any], Any] = found
    return policy


def _place(error: BaseException, module: str) -> str:
    """The line that raised an error, or that cannot be read."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"line {error.lineno} of {error.filename}"
    at = extract_tb(error.__traceback__)[-1]
    return f"line {at.lineno} of {at.filename}" if os.path.isfile(at.filename) else f"the module {module!r}"


def read_states(name: str) -> FloatArray:
    """States (M, D) from a file: ``.npy``, or numbers separated by commas or spaces, with or without a header.

    Of Parquet, Arrow and npz all columns are the state, in their order.
    """
    if name.endswith(".npy"):
        with open(name, "rb") as file:
            try:
                array = np.lib.format.read_array(file, allow_pickle=False)
            except Exception as error:  # whatever NumPy raises at damaged files
                raise InvalidInputError(f"{name} cannot be read ({error}): pass an array of numbers") from error
        states: FloatArray = np.atleast_1d(array)
        return states
    if name.endswith((".parquet", ".pq", ".arrow", ".feather", ".ipc", ".npz")):
        return _columns_of(name)
    if name == "-":
        lines = sys.stdin.read().splitlines()
    else:
        with open(name, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    rows: list[list[float]] = []
    for number, line in enumerate(lines, 1):
        words = line.replace(",", " ").split()
        if not words:
            continue
        try:
            rows.append([float(word) for word in words])
        except ValueError:
            if number == 1:  # names of columns
                continue
            raise InvalidInputError(
                f"line {number} of {name} is {line[:60]!r}: pass numbers, one state a line"
            ) from None
        if len(rows[-1]) != len(rows[0]):
            raise InvalidInputError(f"line {number} of {name} has {len(rows[-1])} numbers, and others {len(rows[0])}")
    if not rows:
        raise InvalidInputError(f"{name} has no states: pass one on each line")
    return np.array(rows)


def _columns_of(name: str) -> FloatArray:
    from tlstd.logs.readers import open_parts

    part = open_parts(name).parts[0]
    columns = [np.asarray(column) for column in part.read(part.columns).values()]
    if any(column.dtype.kind not in "iufb" for column in columns):
        raise InvalidInputError(f"{name} has columns that are no numbers: pass one column for each number of a state")
    return np.column_stack([column.reshape(len(column), -1) for column in columns]).astype(np.float64)


@contextmanager
def progress() -> Iterator[Callable[[str, float], None]]:
    """A bar on standard error, which is gone at the end; where that is no terminal, a line now and then."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield _lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting", total=1.0)
        yield lambda text, share: bar.update(task, description=text, completed=share)


def _lines() -> Callable[[str, float], None]:
    """Say what is being done on a line of its own, at most every ``LINE_EVERY`` seconds; nothing if all is quick."""
    began = last = time.monotonic()

    def show(text: str, share: float) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= LINE_EVERY:
            last = now
            typer.echo(printable(f"{now - began:.0f} s, {share:.0%}: {text}"), err=True)

    return show


@contextmanager
def kept_rounds(folder: Path | None) -> Iterator[None]:
    """Say how many rounds a folder keeps from before, and how many after a stop or a failure of the cluster."""
    if folder is None:
        yield
        return
    from tlstd.cluster.checkpoint import n_kept

    if n := n_kept(folder):
        typer.echo(printable(f"{folder} keeps {count_of(n, 'round')} of before."), err=True)
    try:
        yield
    except (KeyboardInterrupt, ClusterError):
        n = n_kept(folder)
        said = (
            f"{folder} keeps {count_of(n, 'round')}; the same command goes on from there" if n else "no round was done"
        )
        typer.echo(printable(said), err=True)
        raise
