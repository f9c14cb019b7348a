"""The public names of a package: the lines of its ``__init__.pyi``, each imported when it is first used.

Type checkers and editors read these stubs by themselves; :func:`lazy` gives the package the same names when it runs, so
that ``import tlstd`` stays quick and a name is listed once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

from tlstd.moved import where


def homes(package: str) -> dict[str, str]:
    """The module in which each public name of a package is defined, in the order of the stub. Imports nothing.

    ``from module import name as name`` makes a name public; ``from package import *`` those of another package.

    Example
    -------
    >>> homes("tlstd.features")["Fourier"], homes("tlstd")["Fourier"]
    ('tlstd.features.fourier', 'tlstd.features.fourier')
    """
    stub = os.path.join(os.path.dirname(os.path.dirname(__file__)), *package.split(".")[1:], "__init__.pyi")
    found: dict[str, str] = {}
    with open(stub, encoding="utf-8") as lines:
        for line in lines:
            match line.split():
                case ["from", other, "import", "*"]:
                    found |= homes(other)
                case ["from", module, "import", name, "as", same] if name == same:
                    found[name] = module
                case ["from", *_]:
                    raise ImportError(f"{stub} has the line {line!r}: write 'from module import name as name'")
    return found


def lazy(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package whose public names are imported on first use.

    A public name that is also that of its module (``choose`` in ``choose.py``) stays the public one, whoever imports
    the module.
    """
    found = homes(package)

    class Package(ModuleType):
        def __setattr__(self, name: str, value: Any) -> None:
            if isinstance(value, ModuleType) and found.get(name) == value.__name__ == f"{package}.{name}":
                value = getattr(value, name)  # the import of a module sets it in its package
            super().__setattr__(name, value)

    sys.modules[package].__class__ = Package

    def get(name: str) -> Any:
        if name not in found:
            raise AttributeError(where(f"{package}.{name}") or f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(found[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        """For completion: public names, and imported packages that list public names of their own; no helpers."""
        own = vars(sys.modules[package])
        return sorted({name for name in own if name.startswith("__") or hasattr(own[name], "__all__")} | found.keys())

    return get, names, sorted(found)
