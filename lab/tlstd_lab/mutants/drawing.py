"""The mutants of a tree: drawn by seed from all of its packages, and written by hand."""

from __future__ import annotations

import ast
import random
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tlstd_lab.mutants.operators import Change, changes

WRITTEN = Path("lab/tlstd_lab/mutants/written")
AT_LEAST = 4


@dataclass(frozen=True)
class Mutant:
    """A change of one file; a stale one (None) does not fit the file any more."""

    file: str
    change: Change | None
    name: str = ""
    why: str = ""

    @property
    def package(self) -> str:
        """The folder below the library; files beside the folders go by the library's name."""
        parts = Path(self.file).parts
        return parts[2 if len(parts) > 3 else 1]

    @property
    def place(self) -> str:
        """The file and line."""
        return f"{self.file}:{self.change.line if self.change else '?'}"

    @property
    def is_written(self) -> bool:
        """Whether a person wrote it."""
        return bool(self.name)


def sources(root: Path) -> dict[str, list[Path]]:
    """The files of each package."""
    found = defaultdict(list)
    for path in sorted((root / "src").glob("*/**/*.py")):
        found[Mutant(path.relative_to(root).as_posix(), None).package].append(path)
    return dict(found)


def code_lines(source: bytes) -> int:
    """Lines on which something other than a docstring begins."""
    nodes = list(ast.walk(ast.parse(source)))
    docstrings = [node for node in nodes if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)]
    texts = {*docstrings, *(node.value for node in docstrings)}
    return len({node.lineno for node in nodes if isinstance(node, ast.expr | ast.stmt) and node not in texts})


def shares(lines: Mapping[str, int], n: int) -> dict[str, int]:
    """How many of n mutants each package gets: at least four where there are enough, the others by lines of code."""
    least = min(AT_LEAST, n // len(lines))
    rest, total = n - least * len(lines), sum(lines.values())
    exact = {package: rest * count / total for package, count in lines.items()}
    found = {package: least + int(share) for package, share in exact.items()}
    by_remainder = sorted(exact, key=lambda package: int(exact[package]) - exact[package])
    for package in by_remainder[: n - sum(found.values())]:
        found[package] += 1
    return found


def drawn(root: Path, n: int, seed: int) -> list[Mutant]:
    """Mutants of all packages: first an operator, then one of its places, so that constants do not prevail."""
    packages = sources(root)
    lines = {package: sum(code_lines(path.read_bytes()) for path in paths) for package, paths in packages.items()}
    found: list[Mutant] = []
    for package, share in shares(lines, n).items():
        rng = random.Random(f"{seed} {package}")
        places = defaultdict(list)
        for path in packages[package]:
            for change in changes(path.read_bytes()):
                places[change.operator].append((path, change))
        last = len(found) + share
        while places and len(found) < last:
            operator = rng.choice(sorted(places))
            path, change = places[operator].pop(rng.randrange(len(places[operator])))
            if not places[operator]:
                del places[operator]
            if change.fits(path.read_bytes()):
                found.append(Mutant(path.relative_to(root).as_posix(), change))
    random.Random(seed).shuffle(found)  # so that a run that was broken off is a sample of all packages
    return found


def written(root: Path) -> list[Mutant]:
    """The mutants in the folder ``written``, whose README says how they are written."""
    files: Iterable[Path] = sorted((root / WRITTEN).glob("*.toml"))
    return [_read(root, entry) for path in files for entry in tomllib.loads(path.read_text("utf-8"))["mutant"]]


def _read(root: Path, entry: Mapping[str, str]) -> Mutant:
    path, old, new = root / entry["file"], entry["old"].encode(), entry["new"].encode()
    source = path.read_bytes() if path.is_file() else b""
    change = None
    if source.count(old) == 1:
        start = source.index(old)
        change = Change("written", source[:start].count(b"\n") + 1, start, old, new)
    return Mutant(entry["file"], change, entry["name"], entry["why"])
