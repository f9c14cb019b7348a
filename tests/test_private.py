"""Who looks at a library from outside uses its public names: no private attribute of another object, no private import.

This holds for the laboratory and for those parts of the library that only use models, types and domains.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LIBRARY = ROOT / "src" / "tlstd"
OUTSIDE = [
    *sorted((ROOT / "lab" / "tlstd_lab").rglob("*.py")),
    *(LIBRARY / f"{name}.py" for name in ("demo", "envs")),
    *(
        path
        for name in ("cli", "diagnostics", "evaluation", "inspection", "streams")
        for path in sorted((LIBRARY / name).glob("*.py"))
    ),
]
NAMED_TUPLES = {"_asdict", "_fields", "_make", "_replace"}
"""Public in spite of their names."""
BY_NAME = {"getattr", "setattr", "attrgetter"}
EXCEPTIONS = {
    "os._exit": "the only way to end a worker at once",
}


def private_names(tree: ast.Module) -> Iterator[str]:
    """Private attributes of anything but ``self``, ``cls`` and ``super()``, unless the file itself defines the name."""
    nodes = list(ast.walk(tree))
    own = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    own |= {node.attr for node in nodes if isinstance(node, ast.Attribute) and is_own(node.value)}
    for node in nodes:
        if isinstance(node, ast.Attribute) and is_private(node.attr) and not is_own(node.value):
            if node.attr not in own and ast.unparse(node) not in EXCEPTIONS:
                yield f"{node.lineno}: {ast.unparse(node)}"
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.lineno}: import of {name.name}" for name in node.names if is_private(name.name))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in BY_NAME:
            constants = [word.value for word in node.args if isinstance(word, ast.Constant)]
            words = [word for word in constants if isinstance(word, str) and is_private(word)]
            yield from (f"{node.lineno}: {word!r} by name" for word in words if word not in EXCEPTIONS)


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in NAMED_TUPLES


def is_own(node: ast.expr) -> bool:
    if isinstance(node, ast.Call) and not node.args and not node.keywords:
        return isinstance(node.func, ast.Name) and node.func.id == "super"
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


@pytest.mark.parametrize("path", OUTSIDE, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_public_names(path: Path) -> None:
    assert not list(private_names(ast.parse(path.read_text(encoding="utf-8"))))


@pytest.mark.parametrize(
    "code",
    [
        "model._system.core()",
        "def f(m): return m.active._n_updates",
        "from tlstd.data.transitions import _COLUMNS",
        "getattr(model, '_system')",
        "class A:\n    def f(self, other): return other._rank",
    ],
)
def test_private_names_are_found(code: str) -> None:
    assert len(list(private_names(ast.parse(code)))) == 1


@pytest.mark.parametrize(
    "code",
    ["self._x = self._f()", "point._replace(x=1)", "class A:\n    def f(self, other): return self._a + other._a"],
)
def test_ones_own_are_not(code: str) -> None:
    assert not list(private_names(ast.parse(code)))
