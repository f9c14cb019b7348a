"""The rows by name: the one line to add for a new one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module

from tlstd.errors import InvalidParameterError
from tlstd_lab.campaign.row import Row

PLACES: dict[str, str] = {
    "orthogonality": "orthogonality:LONG",
    "orthogonality-nasty": "orthogonality:NASTY",
    "kills": "kills:ROW",
    "interrupts": "interrupts:INTERRUPTS",
    "exceptions": "interrupts:EXCEPTIONS",
    "damaged": "files:DAMAGED",
    "crafted": "files:CRAFTED",
    "inputs": "inputs:ROW",
    "reads": "reads:ROW",
    "memory": "memory:ROW",
    "workers": "workers:ROW",
    "writes": "writes:CALLS",
    "full-disk": "writes:FULL_DISK",
    "logs": "logs:ROW",
    "file-names": "log_files:NAMES",
    "units": "log_files:UNITS_ROW",
    "checkpoints": "checkpoints:ROW",
    "terminal": "terminal:ROW",
    "page": "page:ROW",
}
"""Where each row is, ``"module:name"`` in ``rows/``, in the order of the table."""


@cache
def row(name: str) -> Row:
    """A row by its name, imported."""
    module, _, attribute = PLACES[name].partition(":")
    found: Row = getattr(import_module(f"tlstd_lab.campaign.rows.{module}"), attribute)
    return found


def chosen(only: Sequence[str], names: Sequence[str]) -> dict[str, list[str]]:
    """Rows with their subjects: those named, all if none is; with estimators named, the rows that try estimators."""
    for kind, given, known in (("promise", only, list(PLACES)), ("estimator", names, _subjects())):
        for name in given:
            if name not in known:
                raise InvalidParameterError(f"there is no {kind} {name!r}: choose from {', '.join(known)}")
    found = {}
    for name in PLACES:
        if not only or name in only:
            subjects = [subject for subject in row(name).subjects() if not names or subject in names]
            if subjects:
                found[name] = subjects
    return found


def _subjects() -> list[str]:
    """Estimators, and what is tried in the same rows."""
    return list(dict.fromkeys([*row("crafted").subjects(), *row("writes").subjects()]))
