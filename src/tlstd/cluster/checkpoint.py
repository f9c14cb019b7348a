"""Rounds of a computation kept in a folder, so that the same command goes on where it was stopped."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd.core.file_format import replace_file
from tlstd.errors import StateError

QUESTION = "question.json"


class Checkpoint:
    """Arrays by name, each in a file that is written whole or not at all.

    Parameters
    ----------
    folder : path or None
        None keeps nothing.
    question : JSON-like
        What is being computed. A folder of another question is refused.

    Example
    -------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rounds = Checkpoint(folder, {"files": 3})
    ...     first = rounds.remember("b", lambda: np.ones(2))
    ...     second = Checkpoint(folder, {"files": 3}).remember("b", lambda: np.zeros(2))
    >>> second
    array([1., 1.])
    """

    def __init__(self, folder: str | Path | None, question: Any) -> None:
        self.folder = None if folder is None else Path(folder)
        self.n_known = 0
        if self.folder is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(question, sort_keys=True, indent=1)
        path = self.folder / QUESTION
        if path.exists():
            if path.read_text(encoding="utf-8") != text:
                raise StateError(
                    f"the folder {self.folder} keeps rounds of another question (other files, parameters or version): "
                    "name another folder, or delete this one"
                )
        else:
            replace_file(path, lambda file: file.write(text.encode()))

    def remember(self, name: str, compute: Callable[[], FloatArray]) -> FloatArray:
        """What was kept under a name, or what is computed now."""
        if self.folder is None:
            return compute()
        path = self.folder / f"{name}.npy"
        known = _read(path)
        if known is not None:
            self.n_known += 1
            return known
        made = compute()
        array = np.ascontiguousarray(made)
        head = json.dumps({"shape": list(array.shape)}).encode()
        body = len(head).to_bytes(8, "little") + head + array.tobytes()
        data = hashlib.blake2b(body, digest_size=32).digest() + body
        replace_file(path, lambda file: file.write(data))
        return made


def n_kept(folder: str | Path) -> int:
    """How many rounds a folder keeps; none if there is no such folder."""
    return sum(1 for _ in Path(folder).glob("*.npy"))


def _read(path: Path) -> FloatArray | None:
    """The array in a file; None if there is none, or a damaged one, which is computed again."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    if hashlib.blake2b(data[32:], digest_size=32).digest() != data[:32]:
        return None
    size = int.from_bytes(data[32:40], "little")
    shape = json.loads(data[40 : 40 + size])["shape"]
    return np.frombuffer(data[40 + size :], dtype=np.float64).reshape(shape).copy()
