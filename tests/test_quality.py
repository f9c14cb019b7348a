"""The tools that keep the code base in shape, as tests: formatting, lint, types, the direction of imports."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import LONGEST

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


def test_types_of_the_code_and_of_printed_scripts(tmp_path: Path) -> None:
    """What the README and the section on Gymnasium print is, as a script of a user, checked like the code itself."""
    scripts: list[Path] = []
    for page in ("README.md", "docs/data.md"):
        section = (ROOT / page).read_text().partition("\n## Learn from your own arrays")[0]
        code = "\n".join(re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL))
        scripts.append(tmp_path / f"printed_{len(scripts)}.py")
        scripts[-1].write_text(code + WHAT_PREDICT_RETURNS * (page == "README.md"))
    result = run([sys.executable, "-m", "mypy", "src", "lab", "tests", *map(str, scripts)])
    assert result.returncode == 0, result.stdout + result.stderr


WHAT_PREDICT_RETURNS = """
from fractions import Fraction
import numpy as np
from tlstd import SparseVector, TransitionBuilder

def value(x: SparseVector) -> float:
    return model.predict(x)

build = TransitionBuilder(gamma=0.9)
model.update(build.step(Fraction(1, 2), [1.0], terminated=np.bool_(True)))
"""


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
    assert result.stdout.splitlines() == ["tlstd", "tlstd tlstd.public"], result.stdout + result.stderr
    result = run([sys.executable, "-c", f"{begin} from tlstd.cli.app import app; {loads}"])
    heavy = {"numpy", "scipy", "numba", "llvmlite", "matplotlib", "polars", "gymnasium", "distributed", "rich"}
    assert "typer" in result.stdout.split(), result.stderr
    assert not heavy & set(result.stdout.split()), result.stdout


@pytest.mark.parametrize("name", [name for names in LONGEST for name in names])
def test_the_longest_tests_have_these_names(name: str) -> None:
    function = name.rpartition("::")[2].partition("[")[0]
    assert any(f"def {function}" in path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
