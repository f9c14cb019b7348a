"""Models from files; ``save`` is a method of every estimator, the file's format is in ``docs/state.md``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tlstd.core import file_format
from tlstd.errors import StateError
from tlstd.estimators.base import LinearEstimator
from tlstd.estimators.registry import LOADABLE


def load(path: file_format.Path, classes: Iterable[type[LinearEstimator]] = ()) -> LinearEstimator:
    """Return the model that was saved: continued, it is the model that was never stopped, bit for bit.

    Anything but an undamaged file of a known version raises :class:`~tlstd.StateError`. Nothing in a file can run, and
    reading it takes no more memory than a small multiple of its size. ``OSError`` is raised as by ``open``. A model of
    a class of your own is read if ``classes`` names it.

    Example
    -------
    >>> import numpy as np, os, tempfile, tlstd
    >>> chain = tlstd.boyan_chain()
    >>> model = tlstd.TLSTD(4, rank=2, lambda_=0.5)
    >>> model.update_many(chain.sample(100, np.random.default_rng(0)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(os.path.join(folder, "model"))
    ...     same = tlstd.load(os.path.join(folder, "model"))
    >>> bool((same.weights == model.weights).all())
    True
    """
    try:
        contents = file_format.read(path)
        known = LOADABLE | {cls.__name__: cls for cls in classes}
        return _class_named(contents.class_name, known)._loaded(contents, known)
    except StateError as error:
        remedy = "" if isinstance(error, UnknownClassError) else ": restore it from a copy or save the model again"
        found = f"{path!s} cannot be loaded ({error}){remedy}"
        raise StateError(file_format.printable(found)) from error


class UnknownClassError(StateError):
    """A sound file of another class."""


def _class_named(name: str, known: Mapping[str, type[LinearEstimator]]) -> type[LinearEstimator]:
    if name == "Horde":
        raise UnknownClassError("it has many models: use Horde.load")
    if name not in known:
        raise UnknownClassError(f"its class {name[:40]!r} is none of the library: name it in classes=[...]")
    return known[name]


def packed(model: LinearEstimator) -> tuple[dict[str, Any], file_format.State]:
    """A model as a part of another file: what JSON can hold of it, and its state; for :func:`unpacked`."""
    return model._packed()


def unpacked(
    described: Any, saved: file_format.Saved, classes: Iterable[type[LinearEstimator]] = ()
) -> LinearEstimator:
    """The model of :func:`packed`; ``saved`` has its state and nothing else. Raises :class:`~tlstd.StateError`."""
    if not isinstance(described, dict) or not isinstance(described.get("parameters"), dict):
        raise StateError("its model is not described as this library does")
    known = LOADABLE | {cls.__name__: cls for cls in classes}
    contents = file_format.Contents(str(described.get("class")), described["parameters"], saved)
    return _class_named(contents.class_name, known)._loaded(contents, known)
