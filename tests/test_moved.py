"""Modules that have moved can be imported by their old names, with a warning that says where they are."""

import subprocess
import sys
from importlib import import_module

import pytest

import tlstd
from tlstd.moved import LEFT, MOVED


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


@pytest.mark.parametrize("old", LEFT)
def test_what_has_left_is_in_the_laboratory(old: str) -> None:
    package, _, name = LEFT[old].rpartition(".")
    home = import_module(f"tlstd_lab.{package}".removesuffix("."))
    assert hasattr(home, name) or import_module(f"tlstd_lab.{LEFT[old]}")
    place, _, last = f"tlstd.{old}".rpartition(".")
    for line in (f"import tlstd.{old}", f"from {place} import {last}"):
        with pytest.raises(ImportError, match=rf"^tlstd\.{old} is tlstd_lab\.{LEFT[old]} since version 0\.3: install"):
            exec(line)


@pytest.mark.parametrize("name", ["garnet", "spiral"])
def test_a_public_name_that_has_left(name: str) -> None:
    with pytest.raises(AttributeError, match=rf"^tlstd\.{name} is tlstd_lab\.processes\.{name} since version 0\.3"):
        getattr(tlstd, name)
    assert name not in dir(tlstd)


def test_other_names_are_unknown() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"tlstd\.tyeps"):
        import_module("tlstd.tyeps")
