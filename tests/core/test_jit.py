"""Kernels where nothing can be kept: they are compiled in memory, and the user hears once how to keep them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tlstd

pytestmark = pytest.mark.skipif(not os.path.exists("/dev/null"), reason="it stands for folders that cannot be made")

CODE = """
import sys
import tlstd
assert tlstd.__file__.startswith(sys.argv[1])
print(tlstd.TileCoder([0.0], [1.0], tiles=4, tilings=1).encode([0.6]).toarray().tolist())
"""


@pytest.fixture
def unwritable(tmp_path: Path) -> dict[str, str]:
    """An environment with a copy of the package that nobody, root neither, can keep compiled code for.

    Files stand where folders for it would be.
    """
    package = tmp_path / "site" / "tlstd"
    shutil.copytree(Path(tlstd.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in package.rglob("kernels"):
        (folder / "__pycache__").touch()
    changes = {"HOME": "/dev/null/home", "XDG_CACHE_HOME": "/dev/null/cache", "PYTHONPATH": str(package.parent)}
    kept = {name: value for name, value in os.environ.items() if name not in ("NUMBA_CACHE_DIR", "TLSTD_CACHE")}
    return kept | changes | {"PYTHONDONTWRITEBYTECODE": "1"}


def run(environment: dict[str, str], *command: str) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, "-W", "error", *command)
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def test_no_folder_for_compiled_code(unwritable: dict[str, str]) -> None:
    """The result is as usual, warnings as errors do not matter, and one line on stderr says what to do."""
    result = run(unwritable, "-c", CODE, unwritable["PYTHONPATH"])
    assert (result.returncode, result.stdout) == (0, "[0.0, 1.0, 0.0, 0.0]\n"), result.stderr
    (line,) = result.stderr.splitlines()
    assert "NUMBA_CACHE_DIR" in line


def test_a_folder_that_was_named(unwritable: dict[str, str], tmp_path: Path) -> None:
    result = run(unwritable | {"NUMBA_CACHE_DIR": str(tmp_path / "kept")}, "-c", CODE, unwritable["PYTHONPATH"])
    assert (result.returncode, result.stderr) == (0, "")
    assert list((tmp_path / "kept").rglob("*.nbi"))


def test_the_command_line(unwritable: dict[str, str], tmp_path: Path) -> None:
    """What it prints stays JSON."""
    tlstd.TD(3, step_size=0.5, lambda_=0.0).save(tmp_path / "model")
    result = run(unwritable, "-m", "tlstd", "inspect", str(tmp_path / "model"), "--json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["class"] == "TD"
    (line,) = result.stderr.splitlines()
    assert "NUMBA_CACHE_DIR" in line
