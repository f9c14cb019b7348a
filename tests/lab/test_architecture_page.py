"""The page on the architecture has the imports of today, and names files and functions that are there."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from tlstd_lab.pictures import architecture

PAGE = architecture.PAGE.read_text(encoding="utf-8")
COMMAND = "uv run python -m tlstd_lab.pictures.architecture"


def test_the_imports_are_those_of_the_source() -> None:
    table = architecture.imports_table(architecture.imports(architecture.SOURCES))
    assert table in PAGE, f"imports have changed: {COMMAND}"


def test_imports_of_a_small_package(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "__init__.py").write_text("from one.a import f")
    (tmp_path / "a.py").write_text("if TYPE_CHECKING:\n    import one.b\ndef f():\n    from one import inner, name\n")
    (tmp_path / "b.py").write_text("import numpy, one.a\nimport one")
    (tmp_path / "inner" / "c.py").write_text("from one.inner import d\nfrom one.b import x")
    graph = architecture.imports({"one": tmp_path})
    assert graph == {"one.a": {"one", "one.inner"}, "one.b": {"one", "one.a"}, "one.inner": {"one.b"}}
    assert architecture.circles({part: found - {"one"} for part, found in graph.items()})


def test_the_walk_passes_through_as_many_files_as_the_page_says() -> None:
    """Calls are not compared: they differ with the state of the caches and BLAS."""
    calls = architecture.walk()
    for stage, found in calls.items():
        (files,) = re.findall(rf"^\| `{stage}` \| \d+ \| \d+ \| (\d+) \|$", PAGE, flags=re.MULTILINE)
        assert int(files) == len({file for file, _ in found}), f"{stage}: {COMMAND}"


def test_every_step_of_the_walk_is_in_its_file() -> None:
    steps = re.findall(r"^\| \d+ \| `([\w/]+\.py)`: (`\w+`(?:, `\w+`)*) \|", PAGE, flags=re.MULTILINE)
    assert len(steps) == 14
    for file, functions in steps:
        source = (architecture.SOURCES["tlstd"] / file).read_text(encoding="utf-8")
        for function in functions.replace("`", "").split(", "):
            assert f"def {function}(" in source, f"{function} is not in {file}"


def test_the_tree_names_every_part() -> None:
    """All files and folders, in the tables of library and laboratory."""
    named = set(re.findall(r"`([\w/]+?(?:/|\.py))`", PAGE.partition("## Who imports whom")[0]))
    for folder in architecture.SOURCES.values():
        parts = {f"{path.name}/" for path in folder.iterdir() if (path / "__init__.py").is_file()}
        parts |= {path.name for path in folder.glob("*.py") if path.name not in ("__main__.py", "__init__.py")}
        assert parts <= named, f"{folder.name}: {sorted(parts - named)}"


def test_the_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["architecture", "--out", str(tmp_path)])
    monkeypatch.setattr(architecture, "PAGE", tmp_path / "page.md")
    graph = {"tlstd.a": {"tlstd.b", "tlstd.c"}, "tlstd.b": {"tlstd.c"}, "tlstd.c": set(), "tlstd_lab.d": {"tlstd.a"}}
    monkeypatch.setattr(architecture, "imports", lambda _: graph)
    monkeypatch.setattr(architecture, "walk", lambda: {"predict": [("a.py", "f")]})
    (tmp_path / "page.md").write_text(
        "<!-- table: imports -->\n\n<!-- end -->\n<!-- table: walk -->\n\nwhat was there\n\n<!-- end -->"
    )
    said: list[str] = []
    architecture.main(said.append)
    written = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert (tmp_path / "imports.png").read_bytes().startswith(b"\x89PNG")
    assert "| `predict` | 1 | 1 | 1 |" in written
    assert "| `tlstd.a` | `tlstd.b`, `tlstd.c` |" in written
    assert "what was there" not in written
    assert len(said) == 1
