"""The picture of docs/features.md can be drawn again."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tlstd_lab.pictures import features as feature_pictures


def test_the_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["feature_pictures", "--out", str(tmp_path / "figures")])
    said: list[str] = []
    feature_pictures.main(said.append)
    assert said[0].endswith("the state (0.6, 0.4) has the active tiles [3, 19]")
    drawn = (tmp_path / "figures" / "tile_coding.png").read_bytes()
    assert drawn.startswith(b"\x89PNG")
    assert len(drawn) > 20_000
