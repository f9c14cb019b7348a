"""The page on the architecture shows the rooms of today, and names files and functions that exist."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from tlstd_lab.pictures import architecture

PAGE = architecture.PAGE.read_text(encoding="utf-8")
COMMAND = "uv run python -m tlstd_lab.pictures.architecture"


def test_every_room_is_in_the_table_and_in_the_picture() -> None:
    """Counts may be of yesterday, rooms and purposes not."""
    names = {name.strip("`/") for name, purpose, *_ in architecture.rooms() if "/" in name}
    for name, purpose, *_ in architecture.rooms():
        assert f"| {name} | {purpose} |" in PAGE, f"{name}: {COMMAND}"
    drawn = {name for row in architecture.layers() for name in row}
    assert names <= drawn


def test_every_part_of_the_laboratory_is_in_the_table() -> None:
    folder = Path(str(sys.modules["tlstd_lab"].__file__)).parent
    parts = {f"{path.name}/" for path in folder.iterdir() if (path / "__init__.py").is_file()}
    parts |= {path.name for path in folder.glob("*.py") if path.name != "__init__.py"}
    named = set(re.findall(r"`([\w/]+?(?:/|\.py))`", PAGE.partition("## The laboratory")[2]))
    assert parts <= named, sorted(parts - named)


def test_every_step_of_the_walks_is_in_its_file() -> None:
    steps = re.findall(r"^\| \d+ \| `([\w/]+\.py)`: (`\w+`(?:, `\w+`)*) \|", PAGE, flags=re.MULTILINE)
    assert len(steps) == 26
    for file, functions in steps:
        source = (architecture.LIBRARY / file).read_text(encoding="utf-8")
        for function in functions.replace("`", "").split(", "):
            assert f"def {function}(" in source, f"{function} is not in {file}"


def test_lines_of_code_of_a_small_tree(tmp_path: Path) -> None:
    (tmp_path / "room").mkdir()
    (tmp_path / "__init__.py").write_text("x = 1\n")
    (tmp_path / "room" / "__init__.py").write_text('"""A ``room``.\n\nMore.\n"""\n')
    (tmp_path / "room" / "file.py").write_text('# no\n\ndef f():\n    """No."""\n    return """yes\n    yes"""\n')
    assert architecture.rooms(tmp_path) == [
        ["`room/`", "A `room`.", "2", "3"],
        ["", "Beside the rooms.", "1", "1"],
        ["all", "", "3", "4"],
    ]


def test_a_walk_counts_functions_and_files() -> None:
    from tlstd import TileCoder

    features = TileCoder([0.0], [1.0], tiles=4, tilings=1)
    features.encode([0.5])
    x, calls = architecture.traced(lambda: features.encode([0.5]))
    assert x.size == features.n_features
    assert calls[0] == ("features/tile_coding.py", "TileCoder.encode")
    assert f"| `encode` | {len(set(calls))} |" in architecture.walk_table({"encode": calls})


def test_the_picture(tmp_path: Path) -> None:
    architecture.draw([["top"], ["left", "right"], ["bottom"]], tmp_path / "rooms.png")
    assert (tmp_path / "rooms.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.long
def test_walks_pass_through_as_many_files_as_the_page_says() -> None:
    for calls in (architecture.walk_of_a_transition(), architecture.walk_of_a_log()):
        assert architecture.walk_table(calls) in PAGE, COMMAND
