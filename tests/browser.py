"""A real browser for tests of pages."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import ActionChains, Chrome, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait
from tlstd_lab.browser import HARMLESS, console, requests, started

from tlstd.errors import TlstdError

__all__ = ["CONTRAST", "HARMLESS", "REQUIRED", "Look", "chrome"]

REQUIRED = "TLSTD_BROWSER"
"""Set this variable to "required" where a missing browser is a failure."""


RUNNING: list[Chrome] = []
"""The browser of this process: several folders have the fixture."""

EMULATED: dict[str, dict[str, Any]] = {}
"""What that browser was told last by each command of :meth:`Look.media`, which takes as long when nothing changes."""


@pytest.fixture(scope="session")
def chrome(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Chrome:
    """A headless chromium with logs of its console and its requests."""
    if not RUNNING:
        try:
            made = started(tmp_path_factory.mktemp("profile"))
        except TlstdError as error:
            say = pytest.fail if os.environ.get(REQUIRED) == "required" else pytest.skip
            say(str(error))
        request.config.add_cleanup(made.quit)
        RUNNING.append(made)
    return RUNNING[0]


class Look:
    """The page in the browser."""

    def __init__(self, chrome: Chrome, page: Path) -> None:
        self.chrome, self.page = chrome, page
        self.untouched = False
        """The page is as it was opened: tests have looked at it, and changed nothing."""
        self._opened = 0

    def open(self, fragment: str = "", *, width: int = 1400, theme: str = "light") -> None:
        self.media(width=width, theme=theme)
        self.untouched = False
        self._opened += 1  # another address: a fragment alone would not load the page again
        self.chrome.get(f"{self.page.as_uri()}?{self._opened}{fragment}")

    def watched(self) -> Iterator[Look]:
        """For fixtures: whatever a test does, nothing is logged, and nothing but the page is requested."""
        yield self
        assert self.console() == []
        asked = {url.split("#")[0].split("?")[0] for url in self.requests() if not url.startswith(HARMLESS)}
        assert asked <= {self.page.as_uri()}

    def media(self, *, width: int = 1400, theme: str = "light", kind: str = "") -> None:
        size = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
        features = [("prefers-color-scheme", theme), ("prefers-reduced-motion", "reduce")]
        media = {"media": kind, "features": [{"name": name, "value": value} for name, value in features]}
        for command, wanted in (("setDeviceMetricsOverride", size), ("setEmulatedMedia", media)):
            if EMULATED.get(command) != wanted:
                self.chrome.execute_cdp_cmd(f"Emulation.{command}", wanted)
                EMULATED[command] = wanted

    def one(self, selector: str) -> WebElement:
        return self.chrome.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[WebElement]:
        return self.chrome.find_elements(By.CSS_SELECTOR, selector)

    def run(self, script: str, *arguments: object) -> Any:
        return self.chrome.execute_script(script, *arguments)

    def show(self, element: WebElement) -> None:
        self.run("arguments[0].scrollIntoView({block: 'center'})", element)

    def texts(self, selector: str) -> list[str]:
        """What is to be read in each of these elements: nothing where it is hidden."""
        texts: list[str] = self.run(TEXTS, selector)
        return texts

    def acts(self) -> ActionChains:
        """What pointer and keys are to do; the pointer is moved at once, not within a quarter of a second."""
        return ActionChains(self.chrome, duration=0)

    def go(self, fragment: str) -> None:
        """Change the end of the address, and wait until the page has heard of it."""
        self.chrome.execute_async_script(
            "const [fragment, done] = arguments;"
            "addEventListener('hashchange', () => done(), {once: true}); location.hash = fragment",
            fragment,
        )

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait for something that the page does a little later."""
        WebDriverWait(self.chrome, 5, poll_frequency=0.02).until(lambda _: holds())

    def tabbed(self, n: int, name: str) -> list[str]:
        """Press the tab key n times; names, by an expression, of what got the focus, all of which show that."""
        self.run(FOCUSED.replace("NAME", name))
        self.acts().send_keys(Keys.TAB * n).perform()
        found = self.run("return window.focused")
        assert len(found) == n
        assert [word for word, outline in found if outline == "none"] == [], (
            "these do not show that they have the focus"
        )
        return [word for word, _ in found]

    def axe(self) -> int:
        """How many of axe's rules hold; fails if one does not."""
        self.run(files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8"))
        # Otherwise it copies the source of each element, which for the outermost is the page with all its data.
        self.run("axe.configure({noHtml: true})")
        found = self.chrome.execute_async_script("axe.run({resultTypes: ['violations']}).then(arguments[0])")
        assert [(rule["id"], [node["target"] for node in rule["nodes"]]) for rule in found["violations"]] == []
        return len(found["passes"])

    def console(self) -> list[dict[str, Any]]:
        """What the page has logged since this was asked for last."""
        return console(self.chrome)

    def requests(self) -> list[str]:
        """Addresses that the page has asked for since this was asked for last."""
        return requests(self.chrome)


TEXTS = """
return [...document.querySelectorAll(arguments[0])].map(
  (e) => (e.checkVisibility({ opacityProperty: true, visibilityProperty: true }) ? e.innerText.trim() : ""));
"""

FOCUSED = """
window.focused = [];
addEventListener("focusin", ({ target: e }) => focused.push([NAME, getComputedStyle(e).outlineStyle]));
"""

CONTRAST = """
const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
const linear = (c) => (c <= 10.31475 ? c / 3294.6 : ((c / 255 + 0.055) / 1.055) ** 2.4);
const luminance = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
const ground = (element) => {
  for (let e = element; e; e = e.parentElement) {
    const colour = parse(getComputedStyle(e).backgroundColor);
    if (colour.length === 3 || colour[3] === 1) return colour;
  }
  return [255, 255, 255];
};
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const poor = [];
let n = 0;
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  if (!walker.currentNode.data.trim() || !element.checkVisibility({ visibilityProperty: true })) continue;
  if (["SCRIPT", "STYLE", "title", "OPTION"].includes(element.tagName)) continue;
  const style = getComputedStyle(element);
  const colour = parse(element.ownerSVGElement ? style.fill : style.color);
  const [low, high] = [luminance(colour), luminance(ground(element))].sort((a, b) => a - b);
  n += 1;
  const ratio = (high + 0.05) / (low + 0.05);
  const disabled = element.previousElementSibling && element.previousElementSibling.disabled;
  if (ratio < 4.5 && !disabled) poor.push([element.tagName, walker.currentNode.data.slice(0, 40), ratio]);
}
return [n, poor];
"""
"""Text whose contrast to its ground is below 4.5, and how much text there is; for :meth:`Look.run`."""
