"""The tools that keep the code base in shape, as tests: formatting, lint, types, the direction of imports."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import types_of_the_code
from tests.conftest import FIRST, LAST

ROOT = Path(__file__).parents[1]
TOOLS = {
    "format": ["ruff", "format", "--check", "."],
    "lint": ["ruff", "check", "."],
}


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("tool", TOOLS)
def test_tool_finds_nothing(tool: str) -> None:
    result = run([sys.executable, "-m", *TOOLS[tool]])
    assert result.returncode == 0, result.stdout + result.stderr


def test_types_of_the_code_and_of_printed_scripts() -> None:
    """What the README and the section on Gymnasium print is, as a script of a user, checked like the code itself."""
    said = types_of_the_code.answer()
    assert re.fullmatch(r"Success: no issues found in \d{3,} source files\n+", said), said


def _lines(node: ast.ClassDef | ast.FunctionDef) -> int:
    """Lines of a class; of a function those of its body, without the docstring."""
    if isinstance(node, ast.ClassDef):
        return (node.end_lineno or 0) - node.lineno + 1
    body = node.body[1:] if ast.get_docstring(node) else node.body
    return (node.end_lineno or 0) - body[0].lineno + 1 if body else 0


def test_functions_and_the_classes_of_the_mathematics_are_short() -> None:
    """No function of the library has a body of more than 50 lines, no class of ``linalg`` more than 200 with all."""
    too_long, n_seen = [], 0
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) or (isinstance(node, ast.ClassDef) and path.parent.name == "linalg"):
                n_seen += 1
                if _lines(node) > (50 if isinstance(node, ast.FunctionDef) else 200):
                    too_long.append(f"{path.name}: {node.name} has {_lines(node)}")
    assert not too_long
    assert n_seen > 2_000


def test_imports_flow_one_way() -> None:
    result = run([str(Path(sys.executable).with_name("lint-imports")), "--no-cache"])
    assert result.returncode == 0, result.stdout + result.stderr


def test_imports_are_light() -> None:
    """``import tlstd`` loads two modules of its own, and the command line's help nothing that computes or draws.

    Modules are counted, not seconds: numpy, numba and the rest come with the first name that needs them.
    """
    loads = "print(*sorted({name.partition('.')[0] for name in set(sys.modules) - before} - sys.stdlib_module_names))"
    count = "print(*sorted(name for name in sys.modules if name.startswith('tlstd')))"
    begin = "import sys; before = set(sys.modules);"
    result = run([sys.executable, "-c", f"{begin} import tlstd; {loads}; {count}"])
    assert result.stdout.splitlines() == ["tlstd", "tlstd tlstd.core.public"], result.stdout + result.stderr
    result = run([sys.executable, "-c", f"{begin} from tlstd.cli.app import app; {loads}"])
    heavy = {"numpy", "scipy", "numba", "llvmlite", "matplotlib", "polars", "gymnasium", "distributed", "rich"}
    assert "typer" in result.stdout.split(), result.stderr
    assert not heavy & set(result.stdout.split()), result.stdout


@pytest.mark.parametrize("name", [name for names in (*FIRST, LAST) for name in names])
def test_what_comes_first_and_last_has_these_names(name: str) -> None:
    place, _, function = name.partition("::")
    path = ROOT / "tests" / place
    assert path.exists()
    assert not function or f"def {function.partition('[')[0]}" in path.read_text(encoding="utf-8")
