"""What is asked of a log in files, in one place: rounds that are kept belong to one question."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from tlstd.core.parameters import OnError
from tlstd.evaluation.task import Features, Start
from tlstd.logs.columns import Preset


@dataclass(frozen=True, kw_only=True)
class Question:
    """Every argument of :func:`~tlstd.cluster.evaluate.evaluate_files` that the answer may depend on.

    The evaluation reads its arguments from here, and all fields are part of :meth:`described`. So a new argument cannot
    be left out of what identifies kept rounds.
    """

    files: tuple[str, ...]
    """Their names, without credentials."""
    gamma: float
    features: Features
    policy: Any
    start: Start | None
    estimators: tuple[str, ...] | str | None
    columns: Mapping[str, Any] | None
    preset: Preset | None
    options: Mapping[str, Any]
    on_error: OnError
    level: float
    cost: bool
    compare: bool

    def described(self) -> dict[str, Any]:
        """As JSON has it. Functions are described by their names and the contents of the files that define them."""
        asked = {each.name: _described(getattr(self, each.name)) for each in fields(self)}
        return asked | {"version": import_module("tlstd").__version__}


def _described(value: Any) -> Any:
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, float, np.number)):
        return float(value)
    if isinstance(value, Mapping):
        return {str(key): _described(of) for key, of in value.items()}
    if isinstance(value, (list, tuple)):
        return [_described(each) for each in value]
    if hasattr(value, "__array__"):
        array = np.asarray(value)
        data = repr(array.tolist()).encode() if array.dtype.hasobject else array.tobytes()
        return {"shape": list(array.shape), "type": str(array.dtype), "contents": _digest(data)}
    return _defined(value)


def _defined(value: Any) -> dict[str, str | None]:
    """A function, or an object of some class. What it makes of the log is compared where the files are encoded."""
    named = value if hasattr(value, "__qualname__") else type(value)
    file = getattr(sys.modules.get(named.__module__), "__file__", None)
    contents = _digest(Path(file).read_bytes()) if file is not None and Path(file).is_file() else None
    described = {"name": f"{named.__module__}:{named.__qualname__}", "contents": contents}
    return described if named is value else described | {"parameters": re.sub(r" at 0x[0-9a-f]+", "", repr(value))}


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()
