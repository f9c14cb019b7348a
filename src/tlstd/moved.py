"""Where modules and names of version 0.2 are now.

What has moved inside the library can still be imported by its old name, with a warning, until version 0.5. What has
left for the laboratory cannot; the error says where it is.
"""

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

LEFT = {
    "diagnostics.bounds": "theorem.bounds",
    "diagnostics.proof": "theorem.proof",
    **{
        f"diagnostics.{name}": f"theorem.{name}"
        for name in ("Bound", "Comparison", "Corrected", "Reading", "Step", "bound", "compare", "proof_steps")
    },
    "domains.cache": "cache",
    "domains.energy_programme": "energy_programme",
    "domains.garnet_off_policy": "processes.garnet_off_policy",
    **{f"{place}{name}": f"processes.{name}" for place in ("", "domains.") for name in ("garnet", "spiral")},
}
"""Modules and public names that the laboratory has: from their old names, below ``tlstd``, to those below its own."""


def where(name: str) -> str | None:
    """Say where a name is that has left the library.

    Example
    -------
    >>> where("tlstd.garnet")
    'tlstd.garnet is tlstd_lab.processes.garnet since version 0.3: install tlstd-lab, the laboratory'
    """
    new = LEFT.get(name.removeprefix("tlstd."))
    return new and f"{name} is tlstd_lab.{new} since version 0.3: install tlstd-lab, the laboratory"


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
        if not name.startswith("tlstd."):
            return None
        if gone := where(name):
            raise ModuleNotFoundError(gone)  # without the name: ``from tlstd import name`` raises it too
        new = MOVED.get(name.removeprefix("tlstd."))
        return None if new is None else ModuleSpec(name, _MovedModule(f"tlstd.{new}"))


def keep_old_names() -> None:
    """Let the old names be imported. The finder is asked last, for names that nothing else knows."""
    sys.meta_path.append(_Finder())
