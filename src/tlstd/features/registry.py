"""The feature maps by name: the ``EXAMPLES`` of the files that the package's ``__init__.pyi`` lists."""

from __future__ import annotations

from importlib import import_module

from tlstd.core.public import homes
from tlstd.features.base import Factory

_FILES = [import_module(home) for home in dict.fromkeys(homes("tlstd.features").values())]

FEATURE_MAPS: dict[str, Factory] = {
    name: make for file in _FILES for name, make in getattr(file, "EXAMPLES", {}).items()
}
"""Typical instances, made from the corners of a box; the contract of feature maps is tested on each of them.

:class:`StateAction` is not among them: it encodes actions too.
"""
