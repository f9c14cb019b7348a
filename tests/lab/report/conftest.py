"""The page, and a browser to look at it with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser import chrome
from tests.lab.report.pages import write_page

__all__ = ["chrome", "page"]


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page as a file."""
    return write_page(tmp_path_factory.mktemp("page"))
