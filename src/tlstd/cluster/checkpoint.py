"""Rounds of a computation kept in a folder, so that the same command goes on where it was stopped."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd.core.file_format import replace_file
from tlstd.errors import StateError

QUESTION = "question.json"


class Checkpoint:
    """Arrays by name, each in a file that is written whole or not at all, with what it was computed from.

    Parameters
    ----------
    folder : path or None
        None keeps nothing.
    question : dict, JSON-like
        What is being computed. A folder with rounds of another question is refused.

    Example
    -------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rounds = Checkpoint(folder, {"gamma": 0.9})
    ...     first = rounds.remember("b", lambda: np.ones(2))
    ...     second = Checkpoint(folder, {"gamma": 0.9}).remember("b", lambda: np.zeros(2))
    >>> second
    array([1., 1.])
    """

    def __init__(self, folder: str | Path | None, question: Mapping[str, Any]) -> None:
        self.folder = None if folder is None else Path(folder)
        self.n_known = 0
        self._question: dict[str, Any] = json.loads(json.dumps(question))
        if self.folder is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        if not n_kept(self.folder):
            self._write(self._question)
            return
        kept = _question_of(self.folder)
        self._compare(kept, [name for name in self._question if name not in kept])

    def add(self, question: Mapping[str, Any]) -> None:
        """What else is asked, as far as it is known only now; rounds before it was known do not depend on it."""
        self._question |= json.loads(json.dumps(question))
        if self.folder is None:
            return
        kept = _question_of(self.folder) if n_kept(self.folder) else {}
        self._compare(kept, [])
        if kept != (every := {**kept, **self._question}):
            self._write(every)

    def _compare(self, kept: Mapping[str, Any], unknown: Sequence[str]) -> None:
        others = [*unknown, *(name for name, value in self._question.items() if kept.get(name, value) != value)]
        if others:
            raise StateError(
                f"the folder {self.folder} keeps rounds of another question ({', '.join(others)}): "
                "name another folder, or delete this one"
            )

    def _write(self, question: Mapping[str, Any]) -> None:
        assert self.folder is not None
        data = json.dumps(question, sort_keys=True, indent=1).encode()
        replace_file(self.folder / QUESTION, lambda file: file.write(data))

    def _text(self) -> bytes:
        return json.dumps(self._question, sort_keys=True, indent=1).encode()

    def remember(self, name: str, function: Callable[..., FloatArray], *arguments: FloatArray) -> FloatArray:
        """What a function returns, which is kept under a name: computed now, if not known for the same arguments."""
        if self.folder is None:
            return function(*arguments)
        path = self.folder / f"{name}.npy"
        key = _key(name, self._text(), arguments)
        known = _read(path, key)
        if known is not None:
            self.n_known += 1
            return known
        made = function(*arguments)
        array = np.ascontiguousarray(made)
        head = json.dumps({"shape": list(array.shape), "key": key}).encode()
        body = len(head).to_bytes(8, "little") + head + array.tobytes()
        data = hashlib.blake2b(body, digest_size=32).digest() + body
        replace_file(path, lambda file: file.write(data))
        return made


def n_kept(folder: str | Path) -> int:
    """How many rounds a folder keeps; none if there is no such folder."""
    return sum(1 for _ in Path(folder).glob("*.npy"))


def _question_of(folder: Path) -> dict[str, Any]:
    """What the rounds in a folder are of; nothing, if that cannot be read."""
    try:
        found = json.loads((folder / QUESTION).read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _key(name: str, question: bytes, arguments: Sequence[FloatArray]) -> str:
    """A hash of all that an array is computed from."""
    found = hashlib.blake2b(name.encode() + b"\0" + question, digest_size=32)
    for array in arguments:
        found.update(repr(array.shape).encode())
        found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()


def _read(path: Path, key: str) -> FloatArray | None:
    """The array in a file; None if there is none, or a damaged or another one, which is computed again."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    if hashlib.blake2b(data[32:], digest_size=32).digest() != data[:32]:
        return None
    size = int.from_bytes(data[32:40], "little")
    head = json.loads(data[40 : 40 + size])
    if head.get("key") != key:
        return None
    return np.frombuffer(data[40 + size :], dtype=np.float64).reshape(head["shape"]).copy()
