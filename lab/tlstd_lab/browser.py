"""A headless Chromium with logs of its console and its requests, for pages that are to be looked at."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from selenium.common.exceptions import WebDriverException
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

from tlstd.errors import TlstdError

ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-smooth-scrolling",
    "--disable-features=BackForwardCache,MediaRouter,OptimizationHints,PaintHolding,Translate",  # what takes its time
    "--hide-scrollbars",
    "--window-size=1400,1000",
    "--app=data:,",  # without a page for new tabs and without tabs: a quarter of its processor time
)

HARMLESS = ("chrome://", "data:", "about:", "devtools://")
"""Beginnings of addresses that are the browser's own."""


def started(profile: Path) -> Chrome:
    """The browser, with its files in a folder; raises TlstdError where there is none."""
    browser, driver = (shutil.which(name) for name in ("chromium", "chromedriver"))
    if browser is None or driver is None:
        raise TlstdError("there is no chromium with chromedriver: install Debian's chromium and chromium-driver")
    options = ChromeOptions()
    options.binary_location = browser
    for argument in (*ARGUMENTS, f"--user-data-dir={profile}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    try:
        made = Chrome(options=options, service=Service(driver))
    except WebDriverException as error:
        raise TlstdError(f"chromium does not start: {error.msg}") from error
    made.set_script_timeout(20)
    return made


def console(chrome: Chrome) -> list[dict[str, Any]]:
    """What pages have logged since this was asked for last."""
    entries: list[dict[str, Any]] = chrome.get_log("browser")  # type: ignore[no-untyped-call]
    return entries


def requests(chrome: Chrome) -> list[str]:
    """Addresses that pages have asked for since this was asked for last."""
    entries: list[dict[str, Any]] = chrome.get_log("performance")  # type: ignore[no-untyped-call]
    messages = [json.loads(entry["message"])["message"] for entry in entries]
    return [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
