"""The stored runs that a report is made from, and the best scale of each panel that is complete among them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tlstd.core.file_format import printable
from tlstd.errors import InvalidParameterError, StateError, TlstdError
from tlstd_lab.claims import Claim, Finding
from tlstd_lab.panel import SCALES, Panel, Results, Scale
from tlstd_lab.questions import PANELS, panel
from tlstd_lab.spec import RunSpec
from tlstd_lab.store import Run, Store

FOLDER = Path("tlstd-reproduction") / "runs"
BUNDLES = "results"
"""Where results are looked for if none are named, under the current folder."""

KEY = re.compile("[0-9a-f]{32}")


class Sources(Store):
    """Runs of several folders, of bundles and of the bundles in these folders, read only."""

    def __init__(self, paths: Sequence[Path]) -> None:
        for path in paths:
            if not path.exists():
                raise InvalidParameterError(f"there is no {path}: name packed runs (.parquet) or a folder of runs")
        folders = [path for path in paths if path.is_dir()]
        bundles = [path for path in paths if not path.is_dir()]
        for folder in folders:  # packed runs have names, runs of their own have keys
            bundles += sorted(path for path in folder.glob("*.parquet") if not KEY.fullmatch(path.stem))
        super().__init__(folders[0] if folders else Path("no folder of runs"), bundles)
        self.paths = tuple(paths)
        self._more = [Store(folder) for folder in folders[1:]]

    def has(self, key: str) -> bool:
        """Tell whether the run is stored somewhere."""
        return super().has(key) or any(store.has(key) for store in self._more)

    def read(self, key: str) -> Run:
        """Return a run."""
        for store in self._more:
            if not super().has(key) and store.has(key):
                return store.read(key)
        return super().read(key)

    def keys(self) -> set[str]:
        """Return the keys of all stored runs."""
        found = super().keys().union(*(store.keys() for store in self._more))
        return {key for key in found if KEY.fullmatch(key)}


def default_paths(folder: Path = Path()) -> list[Path]:
    """What is there of the runs of ``tlstd reproduce`` and of the packed runs in ``results``."""
    found = [folder / FOLDER] if (folder / FOLDER).is_dir() else []
    return found + sorted((folder / BUNDLES).glob("*.parquet"))


@dataclass
class Shown:
    """A panel at the scale that is shown: its runs, sweeps, and decided claims."""

    panel: Panel
    results: Results
    tuning: list[RunSpec]
    runs: list[RunSpec]
    judged: list[tuple[Claim, Finding]]


@contextmanager
def blaming_runs(what: str) -> Iterator[None]:
    """Say what cannot be shown if stored runs are not as their task makes them: columns missing, nothing finite."""
    try:
        yield
    except (TlstdError, OSError, MemoryError):
        raise
    except Exception as error:
        why = printable(f"{type(error).__name__}: {error}"[:200])
        raise StateError(
            f"{what} cannot be shown from its stored runs ({why}): leave out the file they are in, or compute them "
            "again with tlstd reproduce"
        ) from error


def best(name: str, by_scale: Mapping[Scale, Results]) -> Shown | None:
    """A panel with its claims decided at the best scale of which all runs are stored; None if there is no such one."""
    made = panel(name)
    for scale in reversed(SCALES):
        results = by_scale[scale]
        tuning = made.tuning(scale)
        if not all(results.store.has(spec.key) for spec in tuning):
            continue
        with blaming_runs(f"panel {name}"):
            runs = made.runs(results)
            if all(results.store.has(spec.key) for spec in runs):
                results.load([*tuning, *runs])
                return Shown(made, results, tuning, runs, [(claim, claim.judge(results)) for claim in made.claims()])
    return None


def gather(store: Store, names: Sequence[str] | None = None) -> dict[str, Shown | None]:
    """All panels that can be shown, in their order; None for those that cannot."""
    by_scale = {scale: Results(store, scale) for scale in SCALES}
    return {name: best(name, by_scale) for name in (PANELS if names is None else names)}
