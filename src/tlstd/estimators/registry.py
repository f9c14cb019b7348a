"""The estimators by name: what the package's ``__init__.pyi`` lists, with what their files say about them."""

from __future__ import annotations

from importlib import import_module

from tlstd.core.public import homes
from tlstd.estimators.base import Factory, LinearEstimator

_LISTED = [getattr(import_module(home), name) for name, home in homes("tlstd.estimators").items()]

CLASSES: dict[str, type[LinearEstimator]] = {
    found.__name__: found for found in _LISTED if isinstance(found, type) and issubclass(found, LinearEstimator)
}
"""The public classes by name."""

LOADABLE: dict[str, type[LinearEstimator]] = {
    **CLASSES,
    "FixedWeights": import_module("tlstd.estimators.fixed_weights").FixedWeights,
}
"""The classes whose saved models :func:`tlstd.load` can read, by the name in the file."""

ESTIMATORS: dict[str, Factory] = {
    name: make for cls in CLASSES.values() for name, make in import_module(cls.__module__).EXAMPLES.items()
}
"""Typical instances, made from the number of features: the ``EXAMPLES`` of their files.

The contract suite runs on each of them.
"""
