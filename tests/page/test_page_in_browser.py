"""The page in a real browser, on a phone and on a desk, light and dark."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from selenium.common.exceptions import JavascriptException
from selenium.webdriver import Chrome

from tests.browser import CONTRAST, Look
from tests.page.conftest import NASTY

WIDTHS = (390, 1280)


@pytest.fixture(scope="module")
def looking(chrome: Chrome, page: Path) -> Look:
    return Look(chrome, page)


@pytest.fixture
def look(looking: Look) -> Iterator[Look]:
    """The page just opened; whatever the test does, nothing is logged and nothing requested."""
    looking.console()
    looking.requests()
    looking.open()
    yield from looking.watched()


@pytest.fixture
def shown(looking: Look) -> Iterator[Look]:
    """The page for tests that look at it in several ways and change nothing: opened once for all of them."""
    if not looking.untouched:
        looking.console()
        looking.requests()
        looking.open()
        looking.untouched = True
    looking.media()
    yield from looking.watched()


OVERLAPS = """
const found = [];
for (const svg of document.querySelectorAll("svg.chart")) {
  const boxes = [...svg.querySelectorAll("text")].map(t => [t.textContent, t.getBoundingClientRect()])
    .filter(([, box]) => box.width > 0);
  const whole = svg.getBoundingClientRect();
  for (const [words, box] of boxes) {
    if (box.left < whole.left - 1 || box.right > whole.right + 1) found.push(["outside", words]);
  }
  for (let i = 0; i < boxes.length; i += 1) for (let j = i + 1; j < boxes.length; j += 1) {
    const [a, b] = [boxes[i][1], boxes[j][1]];
    const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (wide > 1 && high > 3) found.push([boxes[i][0], boxes[j][0]]);
  }
}
return found;
"""


@pytest.mark.parametrize(
    ("width", "theme"),
    [
        (390, "light"),
        (1280, "dark"),
        pytest.param(390, "dark", marks=pytest.mark.long),
        pytest.param(1280, "light", marks=pytest.mark.long),
    ],
)
def test_it_can_be_read(shown: Look, theme: str, width: int) -> None:
    """Contrast of all text, no scrolling to the side, no words over others."""
    shown.media(width=width, theme=theme)
    seen, poor = shown.run(CONTRAST)
    assert seen > 150
    assert poor == []
    assert shown.run("return document.documentElement.scrollWidth") <= width
    assert shown.run(OVERLAPS) == []


@pytest.mark.parametrize("width", WIDTHS)
def test_the_first_screen_has_value_interval_and_light(shown: Look, width: int) -> None:
    shown.media(width=width)
    for selector in (".value", ".light h2"):
        assert shown.run("return arguments[0].getBoundingClientRect().bottom", shown.one(selector)) < 900
    assert "95% interval" in shown.one("#answer").text
    assert shown.one(".light h2").text == "Do not rely on this number yet"


def test_it_prints_dark_on_white(shown: Look) -> None:
    shown.media(theme="dark", kind="print")
    assert shown.run("return getComputedStyle(document.body).color") == "rgb(27, 31, 35)"
    assert not shown.one(".top").is_displayed()
    shown.media()


def test_structure_for_screen_readers(shown: Look) -> None:
    levels = [int(t[1]) for t in shown.run("return [...document.querySelectorAll('h1,h2,h3,h4')].map(h => h.tagName)")]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    for tag in ("main", "header", "nav", "footer"):
        assert shown.all(tag)
    unnamed = shown.run(
        "return [...document.querySelectorAll('svg:not([aria-hidden])')]"
        ".filter(e => e.getAttribute('role') !== 'img' || !e.getAttribute('aria-label')).length"
    )
    assert unnamed == 0
    for part in ("caption", "thead th[scope=col]", "tbody th[scope=row]"):
        assert all(table.find_elements("css selector", part) for table in shown.all("table"))


def test_hostile_text_is_text(shown: Look) -> None:
    assert shown.all("script") == []
    assert shown.all("img") == []
    assert f"{NASTY}.parquet" in shown.run("return document.body.textContent")
    assert NASTY in shown.run("return document.title")


@pytest.mark.parametrize("width", WIDTHS)
def test_figures_can_be_pointed_at(look: Look, width: int) -> None:
    """A step of an episode and a cell of a map say their numbers, within the drawing and over no other words."""
    look.media(width=width)
    for section, words in (("#episodes", "step "), ("#maps", " states"), ("#rungs", "returns: ")):
        place = look.all(f"{section} .at")[-1 if section == "#maps" else 0]
        said = place.find_element("css selector", ".said")
        look.show(place)
        assert not said.is_displayed()
        look.acts().move_to_element(place.find_element("css selector", "rect, circle")).perform()
        assert said.is_displayed()
        assert words in said.text
        assert look.run(OVERLAPS) == []


def test_the_policy_stops_what_would_load_or_run(look: Look) -> None:
    stopped = look.chrome.execute_async_script(
        """
        const done = arguments[0], found = [];
        addEventListener("securitypolicyviolation", (event) => {
          found.push(event.effectiveDirective);
          if (found.length === 3) done(found.sort());
        });
        const image = new Image();
        image.src = "https://example.invalid/x.png";
        fetch("https://example.invalid/x").catch(() => {});
        const styled = document.createElement("p");
        styled.setAttribute("style", "color: red");
        document.body.append(styled);
        """
    )
    assert stopped == ["connect-src", "img-src", "style-src-attr"]
    with pytest.raises(JavascriptException, match="TrustedHTML"):
        look.run("document.body.innerHTML = '<p>'")
    with pytest.raises(JavascriptException, match="TrustedScript"):
        look.run("document.createElement('script').text = 'window.ran = 1'")
    look.console()
    look.requests()


def test_axe_finds_nothing(look: Look) -> None:
    for summary in (*look.all(".fold > summary"), *look.all(".checks summary")[:3]):
        look.show(summary)
        summary.click()
    assert look.axe() > 25


def test_all_can_be_reached_with_the_tab_key(look: Look) -> None:
    visited = look.tabbed(16, "e.className || e.textContent")
    assert visited[0] == "skip"
    assert "all of them" in visited
    assert "Number, thresholds, reason" in visited
