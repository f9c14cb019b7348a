"""Crafted files: saved models with one or two values changed behind a valid checksum, loaded and then used.

The format is written out here a second time, from its description in ``docs/state.md``: what
``tlstd.core.file_format`` does is what is tested.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import struct
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from tlstd.checks import children
from tlstd.checks.data import Factory, as_sparse, explained, loaded, stream, temporary_folder
from tlstd.data.transitions import Transitions
from tlstd.errors import StateError, TlstdError

Header: TypeAlias = dict[str, Any]
Arrays: TypeAlias = dict[str, Any]

SECONDS = 10.0
"""After which loading and using a file counts as hanging."""

MEGABYTES = 500
"""Memory that a file of some kilobytes may take."""


# --- the format -----------------------------------------------------------------------------------------------------


def unpack(data: bytes) -> tuple[Header, Arrays]:
    """Header and arrays of a sound file."""
    header_length, _ = struct.unpack_from("<QQ", data, 44)
    header = json.loads(data[60 : 60 + header_length])
    arrays = {}
    for entry in header["arrays"]:
        count = int(np.prod(entry["shape"]))
        start = 60 + header_length + entry["offset"]
        arrays[entry["name"]] = np.frombuffer(data, entry["dtype"], count, start).reshape(entry["shape"]).copy()
    return header, arrays


def sealed(header: bytes, payload: bytes, version: int = 1) -> bytes:
    """A file with a valid checksum, whatever is in it."""
    body = struct.pack("<QQ", len(header), len(payload)) + header + payload
    return b"\x89TLSTD\r\n" + struct.pack("<I", version) + hashlib.sha256(body).digest() + body


def text(header: Header) -> bytes:
    """A header as it is written."""
    return json.dumps(header, sort_keys=True, separators=(",", ":")).encode()


def pack(header: Header, arrays: Arrays) -> bytes:
    """Put arrays that were edited back behind a header that says so."""
    table, offset = [], 0
    for name, array in arrays.items():
        table.append({"name": name, "dtype": array.dtype.str, "shape": list(array.shape), "offset": offset})
        offset += array.nbytes
    header = {**header, "arrays": table}
    return sealed(text(header), b"".join(array.tobytes() for array in arrays.values()))


# --- changes --------------------------------------------------------------------------------------------------------


def craft(rng: np.random.Generator, files: list[bytes]) -> tuple[str, bytes]:
    """One of some sound files with one value changed, sometimes two; and what was changed."""
    header, arrays = unpack(files[rng.integers(len(files))])
    changes = []
    if rng.random() < 0.1:
        changes.append(_transplant(rng, arrays, unpack(files[rng.integers(len(files))])[1]))
    for _ in range(1 + (rng.random() < 0.25)):
        kind = rng.random()
        if kind < 0.6 and arrays:
            changes.append(_change_array(rng, arrays))
        elif kind < 0.8:
            changes.append(_change_leaf(rng, header["counters"]))
        elif kind < 0.9:
            changes.append(_change_leaf(rng, header["parameters"]))
        else:
            changes.append(_shorten_all(rng, header["counters"], arrays))
    return ", ".join(changes), pack(header, arrays)


def _change_array(rng: np.random.Generator, arrays: Arrays) -> str:
    name = list(arrays)[rng.integers(len(arrays))]
    array = arrays[name]
    edits = [*_SHAPES, *(_ENTRIES["f" if array.dtype.kind == "f" else "i"] * 2)] if array.size else _SHAPES
    edit, change = edits[rng.integers(len(edits))]
    arrays[name] = np.ascontiguousarray(change(rng, array))
    return f"{name}: {edit}"


def _entry(value: Callable[[Any], Any]) -> Callable[[np.random.Generator, Any], Any]:
    """A change of one random entry by a function of it."""

    def change(rng: np.random.Generator, array: Any) -> Any:
        at = rng.integers(array.size)
        array.flat[at] = value(array.flat[at])
        return array

    return change


def _always(size: float) -> Callable[[np.random.Generator, Any], Any]:
    return _entry(lambda value: size)


def _scaled(factor: float) -> Callable[[np.random.Generator, Any], Any]:
    return lambda rng, array: array * factor


def _swapped(rng: np.random.Generator, array: Any) -> Any:
    i, j = rng.integers(array.size, size=2)
    array.flat[[i, j]] = array.flat[[j, i]]
    return array


def _permuted(rng: np.random.Generator, array: Any) -> Any:
    return rng.permuted(array.ravel()).reshape(array.shape)


def _repeated(rng: np.random.Generator, array: Any) -> Any:
    i, j = rng.integers(array.size, size=2)
    array.flat[i] = array.flat[j]
    return array


def _lengthened(rng: np.random.Generator, array: Any) -> Any:
    return np.concatenate([array, array[-1:] if len(array) else np.zeros((1, *array.shape[1:]), array.dtype)])


_Edit: TypeAlias = tuple[str, Callable[[np.random.Generator, Any], Any]]
_SHAPES: list[_Edit] = [
    ("shortened", lambda rng, array: array[:-1]),
    ("lengthened", _lengthened),
    ("emptied", lambda rng, array: array[:0]),
    ("transposed", lambda rng, array: array.T if array.ndim == 2 else array[:, None]),
    ("of another type", lambda rng, array: array.astype("<i8" if array.dtype.kind == "f" else "<f8")),
]
_ALL: list[_Edit] = [
    ("swapped", _swapped),
    ("permuted", _permuted),
    ("repeated", _repeated),
    ("reversed", lambda rng, array: array[::-1]),
    ("all zero", lambda rng, array: np.zeros_like(array)),
    ("zero", _entry(lambda value: 0)),
    ("negative", _entry(lambda value: -value)),
    ("one more", _entry(lambda value: value + 1)),
    ("one less", _entry(lambda value: value - 1)),
]
_ENTRIES: dict[str, list[_Edit]] = {
    "f": [
        *_ALL,
        ("NaN", _entry(lambda value: np.nan)),
        ("infinite", _entry(lambda value: -np.inf)),
        *((f"{size:g}", _always(size)) for size in (1e300, -1e155, 1e100, 1e-300, 5e-324)),
        *((f"times {factor:g}", _scaled(factor)) for factor in (1e150, 1e-200, 1 + 1e-9)),
    ],
    "i": [
        *_ALL,
        *((f"{size}", _always(size)) for size in (-1, 1, 1 << 20, 1 << 40, 1 << 62, -(1 << 62))),
        ("the length", lambda rng, array: _always(array.size)(rng, array)),
    ],
}


def _change_leaf(rng: np.random.Generator, values: Any) -> str:
    """Change a number, flag or word, in place, however deep it lies."""
    name: Any = list(values)[rng.integers(len(values))] if isinstance(values, dict) else int(rng.integers(len(values)))
    value = values[name]
    if isinstance(value, (dict, list)) and value:
        return f"{name}.{_change_leaf(rng, value)}"
    choices: list[Any] = [0, -1, 1, 2, 1 << 20, 1 << 40, 1 << 62, (1 << 63) - 1, 1 << 70, 0.0, 0.5, None, True, "x", []]
    if type(value) is int:
        choices += [value + 1, value - 1, value * 2, value // 2, -value, float(value)] * 3
    if type(value) is float:
        choices += [-value, value / 2, value * 1e10, value * 1e-300, 1e300, 1.0, 1e-320] * 3
    if type(value) is bool:
        choices += [not value] * 20
    if type(value) is str:
        choices += ["none", "dense", "sparse", "accumulating", "replacing", "direct", "recursive", "LSTD", "TD"]
    values[name] = choices[rng.integers(len(choices))]
    return f"{name} = {values[name]!r}"


def _shorten_all(rng: np.random.Generator, counters: dict[str, Any], arrays: Arrays) -> str:
    """Take the last entry away wherever a length occurs, and count one less."""
    lengths = sorted({length for array in arrays.values() for length in array.shape if length})
    if not lengths:
        return "nothing"
    n = lengths[rng.integers(len(lengths))]
    for name, array in arrays.items():
        for axis, length in enumerate(array.shape):
            if length == n:
                array = np.ascontiguousarray(np.delete(array, n - 1, axis=axis))
        arrays[name] = array
    for name, value in counters.items():
        if type(value) is int and value == n:
            counters[name] = n - 1
    return f"{n} becomes {n - 1} throughout"


def _transplant(rng: np.random.Generator, arrays: Arrays, others: Arrays) -> str:
    """Take the arrays of one part over from another file; half of the time with indices that fit."""
    parts = sorted({name.rpartition(".")[0] for name in arrays} & {name.rpartition(".")[0] for name in others})
    if not parts:
        return "nothing"
    part, fit = parts[rng.integers(len(parts))], rng.random() < 0.5
    n = min((array.size for name, array in arrays.items() if name.endswith("ids")), default=0)
    for name, other in others.items():
        if name.rpartition(".")[0] == part:
            arrays[name] = (
                np.minimum(other, n - 1) if fit and other.dtype.kind == "i" and "start" not in name else other
            )
    return f"{part} of another file{', made to fit' if fit else ''}"


# --- use ------------------------------------------------------------------------------------------------------------


def sound_files(factory: Factory, *, wide: bool = False) -> list[bytes]:
    """Saved models of a kind: new, in mid-buffer, with more features, with two targets if it can.

    ``wide`` adds one that has seen more than 1,024 features, which iLSTD stores in another way.
    """
    sizes = [(12, 37, 1), (12, 90, 1), (40, 60, 1), (12, 50, 2), (12, 0, 1)]
    streams = [(d, m, stream(n, seed=3, n_features=d, n_targets=m)) for d, n, m in sizes]
    if wide:
        streams.append((20_000, 1, _steps(20_000, 1, n_rows=16, n_active=100, n_used=20_000)))
    files = []
    with temporary_folder() as folder:
        path = os.path.join(folder, "model")
        for number, (n_features, n_targets, steps) in enumerate(streams):
            try:
                model = factory(n_features) if n_targets == 1 else factory(n_features, n_targets=n_targets)
            except (TypeError, TlstdError):
                continue
            model.update_many(as_sparse(steps) if number % 2 == 0 and n_features < 100 else steps)
            model.save(path)
            with open(path, "rb") as file:
                files.append(file.read())
    return files


def use(data: bytes, cls: type) -> str:
    """Load a file and use the model: learn, read, copy, save, load. Returns "refused" or "used".

    StateError on loading and any TlstdError afterwards are the library's right; everything else is raised.
    """
    with temporary_folder() as folder:
        path = os.path.join(folder, "model")
        with open(path, "wb") as file:
            file.write(data)
        try:
            model = loaded(path, cls)
        except StateError:
            return "refused"
        for action in _actions(model):
            with suppress(TlstdError):
                action(model)
        try:
            model.save(path)
        except TlstdError:
            return "used"
        loaded(path, cls).n_updates  # noqa: B018 - what was saved can be loaded
    return "used"


def _actions(model: Any) -> list[Callable[[Any], object]]:
    """What is done with a model, whatever its size."""
    n, n_targets = model.n_features, getattr(model, "n_targets", 1)
    steps: Any = _steps(n, min(n_targets, 100))
    x = steps[0].x
    actions: list[Callable[[Any], object]] = [
        lambda model: model.predict(x),
        lambda model: model.update_many(steps[:20]),
        lambda model: model.predict(x),
        lambda model: model.sparse_weights,
        lambda model: model.update(steps[20]),
        lambda model: model.update_many(steps[21:]),
        lambda model: model.predict(steps.X),
        repr,
        lambda model: copy.deepcopy(model).update(steps[3]),
    ]
    if n * n_targets < 1_000_000:
        actions.append(lambda model: model.weights)
    if n < 100:
        dense = Transitions(
            steps.X.toarray(),
            steps.rewards,
            steps.X_next.toarray(),
            discounts=steps.discounts,
            trace_discounts=steps.trace_discounts,
        )
        actions[4:4] = [lambda model: model.update_many(dense)]
    return actions


@lru_cache(8)
def _steps(n_features: int, n_targets: int, *, n_rows: int = 61, n_active: int = 3, n_used: int = 12) -> Transitions:
    """Transitions between rows with some of the first features active, or of as many as there are."""
    rng, n = np.random.default_rng(5), n_rows - 1
    rows = [np.unique(rng.integers(0, min(n_features, n_used), n_active)) for _ in range(n_rows)]
    indptr = np.cumsum([0, *(row.size for row in rows)])
    X = sp.csr_array((rng.uniform(0.5, 1.5, indptr[-1]), np.concatenate(rows), indptr), shape=(n_rows, n_features))
    rewards = rng.standard_normal(n if n_targets == 1 else (n, n_targets))
    ends = rng.random(n) < 0.1
    return Transitions.from_arrays(X[:-1], rewards, X[1:], terminated=ends, truncated=np.zeros(n, bool), gamma=0.9)


def file_task(factory: Factory, *, seed: int = 0, wide: bool = False) -> children.Task:
    """Craft files from saved models, load and use them. What was changed is said where something fails."""
    cls = type(factory(12))
    return crafting(sound_files(factory, wide=wide), lambda data: use(data, cls), seed)


def crafting(files: list[bytes], use: Callable[[bytes], str], seed: int) -> children.Task:
    """Let a function use files that are crafted from sound ones; it says "used" of those."""
    for data in files:
        assert use(data) == "used", "a sound file was refused"

    def task(i: int) -> str:
        what, data = crafted(files, seed, i)
        with explained(what):
            return use(data)

    return task


def try_files(factory: Factory, tries: int, *, seed: int = 0, wide: bool = False) -> list[children.Outcome]:
    """Do so to ``tries`` files."""
    task = file_task(factory, seed=seed, wide=wide)
    return children.run(task, range(tries), seconds=SECONDS, megabytes=MEGABYTES)


def crafted(files: list[bytes], seed: int, number: int) -> tuple[str, bytes]:
    """The file that :func:`file_task` makes from sound ones as its number so and so; and what was changed."""
    with np.errstate(all="ignore"):
        return craft(np.random.default_rng([seed, number]), files)
