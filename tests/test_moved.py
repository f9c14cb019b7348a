"""Modules that have moved can be imported by their old names, with a warning that says where they are."""

import subprocess
import sys
from importlib import import_module

import pytest

from tlstd.moved import MOVED


@pytest.mark.parametrize("old", MOVED)
def test_an_old_name_is_the_module_itself(old: str) -> None:
    sys.modules.pop(f"tlstd.{old}", None)
    with pytest.warns(DeprecationWarning, match=f"tlstd.{old} is tlstd.{MOVED[old]} since") as warned:
        module = import_module(f"tlstd.{old}")
    assert module is import_module(f"tlstd.{MOVED[old]}")
    assert module.__spec__ is not None
    assert module.__spec__.name == module.__name__ == f"tlstd.{MOVED[old]}"
    assert len(warned) == 1


def test_the_warning_names_the_line_that_imports() -> None:
    code = "from tlstd.types import SparseVector\nfrom tlstd.estimators.tlstd import TLSTD\nprint(SparseVector, TLSTD)"
    result = subprocess.run([sys.executable, "-W", "always", "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "<string>:1: DeprecationWarning: tlstd.types is tlstd.data" in result.stderr
    assert "<string>:2: DeprecationWarning: tlstd.estimators.tlstd is tlstd.truncated.tlstd" in result.stderr


def test_other_names_are_unknown() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"tlstd\.tyeps"):
        import_module("tlstd.tyeps")
