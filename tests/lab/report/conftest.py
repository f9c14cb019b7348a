"""The page, and a browser to look at it with."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.common.exceptions import WebDriverException
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

from tests.lab.report.pages import write_page

REQUIRED = "TLSTD_BROWSER"
"""Set this variable to "required" where a missing browser is a failure."""

ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--window-size=1400,1000",
)


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page as a file."""
    return write_page(tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="session")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    """A headless chromium with logs of its console and its requests."""
    browser, driver = (shutil.which(name) for name in ("chromium", "chromedriver"))
    if browser is None or driver is None:
        say = pytest.fail if os.environ.get(REQUIRED) == "required" else pytest.skip
        say("there is no chromium with chromedriver: install Debian's chromium and chromium-driver")
    options = ChromeOptions()
    options.binary_location = browser
    for argument in (*ARGUMENTS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    try:
        made = Chrome(options=options, service=Service(driver))
    except WebDriverException as error:
        say = pytest.fail if os.environ.get(REQUIRED) == "required" else pytest.skip
        say(f"chromium does not start: {error.msg}")
    made.set_script_timeout(20)
    yield made
    made.quit()
