"""Where modules of version 0.2 are now: their old names can still be imported, with a warning, until version 0.5."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

MOVED = {
    "container": "core.file_format",
    "merging": "estimators.merging",
    "parameters": "core.parameters",
    "state": "estimators.loading",
    "types": "data",
    "validation": "core.arrays",
    "warming": "warmup",
    "estimators.krylov_lstd": "krylov.krylov_lstd",
    "estimators.tlstd": "truncated.tlstd",
    **{f"estimators.{name}": f"classic.{name}" for name in ("lstd", "td", "td_family", "true_online_td")},
    **{
        f"estimators.{name}": f"zoo.{name}"
        for name in (
            *("atd", "emphatic_td", "forgetful_lstd", "gradient_td", "handover", "ilstd", "lars_td", "linear_dyna"),
            *("lstd_sa", "projected_lstd", "replay", "sketched_lstd", "swift_td"),
        )
    },
}
"""Modules that define public names, by their old names, below ``tlstd``."""


class _MovedModule(Loader):
    """Gives an old name the module itself."""

    def __init__(self, new: str) -> None:
        self.new = new

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        warnings.warn(f"{spec.name} is {self.new} since version 0.3", DeprecationWarning, stacklevel=2)
        module = import_module(self.new)
        self.own_spec = module.__spec__  # the import system is about to replace it
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.own_spec


class _Finder(MetaPathFinder):
    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        new = MOVED.get(name.removeprefix("tlstd.")) if name.startswith("tlstd.") else None
        return None if new is None else ModuleSpec(name, _MovedModule(f"tlstd.{new}"))


def keep_old_names() -> None:
    """Let the old names be imported. The finder is asked last, for names that nothing else knows."""
    sys.meta_path.append(_Finder())
