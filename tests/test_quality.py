"""The tools that keep the code base in shape, as tests: formatting, lint, types, the direction of imports."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TOOLS = {
    "format": ["ruff", "format", "--check", "."],
    "lint": ["ruff", "check", "."],
    "types": ["mypy"],
}


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("tool", TOOLS)
def test_tool_finds_nothing(tool: str) -> None:
    result = run([sys.executable, "-m", *TOOLS[tool]])
    assert result.returncode == 0, result.stdout + result.stderr


def test_imports_flow_one_way() -> None:
    result = run([str(Path(sys.executable).with_name("lint-imports")), "--no-cache"])
    assert result.returncode == 0, result.stdout + result.stderr


def test_import_is_light() -> None:
    """``import tlstd`` loads neither numba nor matplotlib nor scipy: they come with the first name that needs them."""
    code = "import sys, tlstd; print(sorted({'numba', 'matplotlib', 'scipy', 'rich'} & set(sys.modules)))"
    result = run([sys.executable, "-c", code])
    assert result.stdout.strip() == "[]", result.stdout + result.stderr
