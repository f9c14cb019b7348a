"""Which tests a mutant has to pass: those of its room, and those that import its module, the nearest first."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

PARTS = ("src", "lab", "tests")


@dataclass(frozen=True)
class Imports:
    """Files of a tree, by their paths, the files that import each of them, and the files with tests."""

    importers: Mapping[str, set[str]]
    tests: frozenset[str]

    def distances(self, file: str) -> dict[str, int]:
        """Over how many imports each file reaches this one."""
        found, waiting = {file: 0}, [file]
        for one in waiting:
            for importer in sorted(self.importers.get(one, ())):
                if importer not in found:
                    found[importer] = found[one] + 1
                    waiting.append(importer)
        return found

    def nearest_tests(self, file: str) -> list[str]:
        """Files with tests: those of the file itself, of its package or that import it, and then over more imports."""
        package = Path(file).parts[2].removesuffix(".py")
        rooms = f"tests/{package}/", f"tests/test_{package}.", f"tests/test_{package}_"
        distances = self.distances(file)
        ranks = {}
        for test in self.tests:
            same_name = Path(test).stem == f"test_{Path(file).stem}"
            own = same_name or test.startswith(rooms)
            if own or test in distances:
                distance = distances.get(test, len(distances))
                ranks[test] = (min(distance, 1) if own else distance, not own, not same_name, distance, test)
        return sorted(ranks, key=ranks.__getitem__)


def imports(root: Path) -> Imports:
    """Read the imports of all modules; those of names go to the module that the stubs (``.pyi``) name."""
    files = {}
    for part in PARTS:
        base = root if part == "tests" else root / part
        for path in sorted((root / part).rglob("*.py")):
            inside = path.relative_to(base).with_suffix("").parts
            files[".".join(inside[:-1] if inside[-1] == "__init__" else inside)] = path
    stubs = {name: path.with_suffix(".pyi") for name, path in files.items() if path.with_suffix(".pyi").is_file()}
    homes = {name: _homes(name, stubs) for name in stubs}
    importers: dict[str, set[str]] = {}
    tests = set()
    for path in files.values():
        file, text = path.relative_to(root).as_posix(), path.read_text("utf-8")
        if path.name.startswith("test_") if file.startswith("tests/") else ">>> " in text:
            tests.add(file)
        for module, name in _names(ast.parse(text)):
            public = homes.get(module, {})
            for home in public.values() if name == "*" and public else [public.get(name, module)]:
                target = files.get(f"{home}.{name}", files.get(home))
                if target is not None:
                    importers.setdefault(target.relative_to(root).as_posix(), set()).add(file)
    return Imports(importers, frozenset(tests))


def _homes(package: str, stubs: Mapping[str, Path]) -> dict[str, str]:
    """The module of each name in the stub of a package."""
    found: dict[str, str] = {}
    for module, name in _names(ast.parse(stubs[package].read_text("utf-8"))):
        found |= {name: module} if name != "*" else _homes(module, stubs) if module in stubs else {}
    return found


def _names(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Modules and the names that are taken from them: by imports, as attributes, by texts with a dot."""
    modules = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                modules[alias.asname or alias.name] = alias.name
                yield alias.name, ""
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "." in node.value:
            yield node.value, "*"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            yield modules[node.value.id], node.attr
