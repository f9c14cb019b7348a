"""The figures and the numbers of ``docs/domains.md``."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from matplotlib.image import imread
from tlstd_lab.pictures import domains as domain_pictures
from tlstd_lab.pictures.domains import FIGURES, MEASURES, draw_mountain_car

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of this run, shared by its workers: what is kept for the user could be older than the code."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TLSTD_CACHE", str(folder / "tlstd-cache"))
        yield


@pytest.mark.long
def test_command_draws_what_the_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(domain_pictures, "MEASURES", ())
    lines: list[str] = []
    domain_pictures.main(["--out", str(tmp_path / "new" / "folder")], report=lines.append)
    page = (DOCS / "domains.md").read_text()
    assert len(lines) == len(FIGURES) == 3
    for name in FIGURES:
        path = tmp_path / "new" / "folder" / name
        assert path.read_bytes().startswith(b"\x89PNG")
        assert 100_000 < path.stat().st_size < 300_000
        assert f"](figures/{name})" in page
        assert imread(path).shape == imread(DOCS / "figures" / name).shape


def test_figures_do_not_depend_on_the_run(tmp_path: Path) -> None:
    for name in ("once", "again"):
        draw_mountain_car(tmp_path / f"{name}.png", resolution=10)
    assert (tmp_path / "once.png").read_bytes() == (tmp_path / "again.png").read_bytes()


@pytest.mark.long
@pytest.mark.parametrize("measure", MEASURES)
def test_page_says_what_was_measured(measure: Callable[[], list[str]]) -> None:
    page = (DOCS / "domains.md").read_text()
    for line in measure():
        for number in re.findall(r"\d[\d,]*(?:\.\d+)?", line):
            assert re.search(rf"(?<![\d.,]){re.escape(number)}(?![\d]|[.,]\d)", page), f"{number}: {line}"
