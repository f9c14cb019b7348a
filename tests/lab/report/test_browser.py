"""The page in a real browser, as those who look, listen, type and print meet it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

import matplotlib as mpl
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from numpy.typing import NDArray
from selenium.common.exceptions import JavascriptException
from selenium.webdriver import Chrome, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from tlstd_lab.questions import panel
from tlstd_lab.questions.explorer import settings as explorer
from tlstd_lab.report import explorer as exploring
from tlstd_lab.report.charts import above, across, number, spread
from tlstd_lab.report.page import render

from tests.browser import CONTRAST, Look
from tests.lab.report.pages import NASTY, PANELS, gathered, sources

WIDTHS = (380, 820, 1400)


@pytest.fixture(scope="module")
def looking(chrome: Chrome, page: Path) -> Look:
    return Look(chrome, page)


@pytest.fixture
def unopened(looking: Look) -> Iterator[Look]:
    """For tests that open the page themselves; whatever they do, nothing is logged and nothing requested."""
    looking.console()
    looking.requests()
    looking.untouched = False
    yield from looking.watched()


@pytest.fixture
def look(unopened: Look) -> Look:
    """The page just opened and unfolded."""
    unopened.open()
    unopened.run("document.querySelector('#unfold').click()")
    return unopened


@pytest.fixture
def shown(looking: Look) -> Iterator[Look]:
    """The page unfolded, for tests that look at it in several ways and change nothing: opened once for all of them."""
    if not looking.untouched:
        looking.console()
        looking.requests()
        looking.open()
        looking.run("document.querySelector('#unfold').click()")
        looking.untouched = True
    looking.media()
    yield from looking.watched()


# --- explorer -------------------------------------------------------------------------------------------------------


def pixels(values: NDArray[Any], low: float, high: float, name: str, shape: tuple[int, int]) -> NDArray[Any]:
    """The picture as it should be: (rows, columns, 3), the second coordinate upwards."""
    colours = mpl.colormaps[name](np.arange(256), bytes=True)[:, :3]
    share = (values.astype(np.float64) - low) / (high - low)
    picture = colours[np.clip(np.floor(256 * share), 0, 255).astype(int)]
    made: NDArray[Any] = picture.reshape(*shape, 3).transpose(1, 0, 2)[::-1]
    return made


def painted(width: int, height: int, data: list[int]) -> NDArray[Any]:
    """A picture as it is."""
    picture = np.array(data).reshape(height, width, 4)
    assert (picture[..., 3] == 255).all()
    return picture[..., :3]


VIEW = """
const part = (name) => document.getElementById(`ex-${name}`);
const parts = (names, read) => Object.fromEntries(names.map((name) => [name, read(part(name))]));
return {
  pictures: parts(["truth", "estimate", "error"],
    (c) => [c.width, c.height, [...c.getContext("2d").getImageData(0, 0, c.width, c.height).data]]),
  values: parts(["rmse", "memory", "learning", "reading", "inverted"], (e) => e.dataset.value),
  texts: parts(["rmse", "rank-shown"], (e) => (e.checkVisibility({ visibilityProperty: true }) ? e.innerText : "")),
  rank: part("rank").getAttribute("aria-valuetext"),
  estimate: part("estimate").getAttribute("aria-label"),
  cuts: [...part("spectrum").querySelectorAll(".cut")].map((line) => line.dataset.rank),
};
"""


def check_view(look: Look, name: str, lambda_: float, samples: int, rank: int | str) -> None:
    """Pictures and numbers are those of the stored run."""
    store = sources()
    columns = store.read(explorer.learning_spec("paper", name, rank, lambda_).key).columns
    known = store.read(explorer.truth_spec(name).key).columns
    truth = known["truth"].astype(np.float32)
    shape = (np.unique(known["x"]).size, np.unique(known["y"]).size)
    rows = columns["samples"] == samples
    estimate = columns["value"][rows][: truth.size]
    low, high = float(known["truth"].min()), float(known["truth"].max())
    half = exploring.WIDEST * (high - low)
    view = look.run(VIEW)
    pictures = {name: painted(*picture) for name, picture in view["pictures"].items()}
    assert_array_equal(pictures["truth"], pixels(truth, low, high, "viridis", shape))
    assert_array_equal(pictures["estimate"], pixels(estimate, low, high, "viridis", shape))
    assert_array_equal(pictures["error"], pixels(estimate - truth, -half, half, "RdBu_r", shape))
    for place, key in (("rmse", "rmse"), ("memory", "nbytes"), ("learning", "learning"), ("reading", "reading")):
        assert float(view["values"][place]) == columns[key][rows][0]
    assert view["texts"]["rmse"] == f"{columns['rmse'][rows][0]:.4g}"
    sigma = columns["sigma"][rows]
    sigma = sigma[np.isfinite(sigma)].astype(np.float64)
    inverted = int((sigma > 1e-4 * sigma[0]).sum())
    assert view["values"]["inverted"] == str(inverted)
    words = "full: LSTD" if rank == explorer.FULL else f"rank {rank}"
    assert view["texts"]["rank-shown"] == words
    assert view["rank"] == words
    assert view["cuts"] == ([] if rank == explorer.FULL else [str(rank)])
    shown = f"{estimate.min():.3g}".replace("-", "−")
    assert f"from {shown} to" in view["estimate"]


def choose(look: Look, name: str, value: object) -> None:
    look.one(f'input[name="ex-{name}"][value="{value}"]').click()


def test_the_slider_changes_pictures_and_numbers_by_keyboard(look: Look) -> None:
    check_view(look, "car-tiles", 1.0, 5000, 50)
    slider = look.one("#ex-rank")
    slider.send_keys(Keys.ARROW_RIGHT)
    check_view(look, "car-tiles", 1.0, 5000, 75)
    slider.send_keys(Keys.HOME)
    check_view(look, "car-tiles", 1.0, 5000, 2)
    slider.send_keys(Keys.END)
    check_view(look, "car-tiles", 1.0, 5000, explorer.FULL)
    status = look.one("#ex-status")
    look.until(lambda: "full: LSTD: RMSE" in status.text)
    assert status.get_attribute("role") == "status"


def test_every_control_of_the_explorer_leads_to_its_run(look: Look) -> None:
    choose(look, "features", "RBFs")
    check_view(look, "car-rbf", 1.0, 5000, 50)
    choose(look, "lambda", "0.9")
    check_view(look, "car-rbf", 0.9, 5000, 50)
    choose(look, "samples", 500)
    check_view(look, "car-rbf", 0.9, 500, 50)
    look.one("#ex-domain").send_keys("P")
    check_view(look, "pendulum-rbf", 0.9, 500, 50)
    look.run(
        "const s = document.getElementById('ex-rank'); s.value = 3;s.dispatchEvent(new Event('input', {bubbles: true}))"
    )
    check_view(look, "pendulum-rbf", 0.9, 500, 20)


def test_what_was_not_computed_cannot_be_chosen(look: Look) -> None:
    choose(look, "lambda", "0")
    choose(look, "features", "RBFs")
    look.one("#ex-domain").send_keys("E")
    check_view(look, "energy", 0.9, 5000, 40)
    disabled = {radio.get_attribute("value") for radio in look.all("#ex-form input[type=radio]:disabled")}
    assert disabled == {"RBFs", "0"}
    assert look.one("#ex-ratio").text == "–"
    look.one("#ex-rank").send_keys(Keys.END)
    check_view(look, "energy", 0.9, 5000, 100)


def test_a_view_can_be_shared_by_its_address(look: Look) -> None:
    choose(look, "samples", 1000)
    look.one("#ex-rank").send_keys(Keys.ARROW_LEFT)
    look.until(lambda: look.chrome.current_url.endswith("/1/1000/30"))
    look.open("#" + look.chrome.current_url.partition("#")[2])
    check_view(look, "car-tiles", 1.0, 1000, 30)
    for fragment in ("#explore/" + "/".join(map(quote, ("Pendulum", "no such", "7", "x", "31"))), "#explore/%/1/2/3/4"):
        look.open(fragment)
        assert look.one("#ex-rmse").text


def test_addresses_that_mean_nothing_change_nothing(look: Look) -> None:
    check_view(look, "car-tiles", 1.0, 5000, 50)
    for fragment in ("#%", "#explore/Pendulum/%/1/2/3", "#claim-%E0"):
        look.go(fragment)
        assert look.chrome.current_url.endswith(fragment)
    look.one("#ex-rank").send_keys(Keys.ARROW_RIGHT)
    check_view(look, "car-tiles", 1.0, 5000, 75)


def test_a_drag_is_noted_once(look: Look) -> None:
    """Browsers stop pages that note hundreds of addresses in a moment, and some of them with an error."""
    slider = look.one("#ex-rank")
    look.run(
        "window.noted = 0; const note = history.replaceState.bind(history);"
        "history.replaceState = (...view) => { window.noted += 1; note(...view); }"
    )
    look.run(
        "for (let i = 0; i < 36; i += 1) {"
        "arguments[0].value = i % 12; arguments[0].dispatchEvent(new Event('input', {bubbles: true}))}",
        slider,
    )
    look.until(lambda: look.chrome.current_url.endswith("/1/5000/full"))
    assert look.run("return window.noted") == 1


def test_what_the_colours_do_not_reach_is_said(unopened: Look) -> None:
    unopened.open("#explore/Mountain%20Car/tiles/0/500/2")
    [said] = unopened.texts("figure:has(#ex-estimate)")
    assert "400 of 400 states beyond the colours" in said
    for name in ("Mountain Car", "Pendulum", "Energy storage"):
        unopened.go(f"#explore/{quote(name)}/tiles/1/5000/20")
        assert unopened.run("return document.getElementById('ex-domain').value") == name
        [said] = unopened.texts("figure:has(#ex-truth)")
        assert said
        assert "beyond" not in said


def test_lstd_alone_and_what_diverged_can_be_explored(unopened: Look, tmp_path: Path) -> None:
    data = exploring.data(sources())
    assert data is not None
    problem, other = data["problems"] = data["problems"][:2]
    for runs in problem["runs"].values():
        for rank in [rank for rank in runs if rank != explorer.FULL]:
            del runs[rank]
    for runs in other["runs"].values():
        for run in runs.values():
            run["rmse"] = [None, *run["rmse"][1:]]
    own = Look(unopened.chrome, tmp_path / "page.html")
    own.page.write_text(render({}, data, []), encoding="utf-8")
    for view, ratio in (("tiles/1/5000/full", "1"), ("RBFs/1/500/20", "–"), ("RBFs/1/1000/full", "1")):
        own.open(f"#explore/Mountain%20Car/{view}")
        assert own.one("#ex-ratio").text == ratio
        assert own.one("#ex-by-rank").get_attribute("aria-label") != "by-rank"
        assert own.one("#ex-rmse").text == "diverged" or ratio == "1"
    unopened.requests()


# --- claims and figures ---------------------------------------------------------------------------------------------


def shown_claims(look: Look) -> list[str]:
    rows: list[str] = look.run(
        "const rows = [...document.querySelectorAll('.claims tbody tr')];"
        "return rows.filter(row => row.checkVisibility()).map(row => row.dataset.verdict)"
    )
    return rows


def test_claims_are_filtered_by_verdict_and_words(look: Look) -> None:
    everything = shown_claims(look)
    for verdict in ("reproduced", "partly", "not"):
        button = look.one(f'.choice[data-verdict="{verdict}"]')
        button.click()
        assert button.get_attribute("aria-pressed") == "true"
        assert shown_claims(look) == [verdict] * everything.count(verdict)
        assert str(everything.count(verdict)) in button.text
    look.one('.choice[data-verdict=""]').click()
    assert shown_claims(look) == [], "all are folded away again"
    assert look.one("#found").text == f"{len(everything)} of {len(everything)} claims, {len(PANELS) + 1} figures."
    search = look.one("#search")
    search.send_keys("assumption picard")
    assert len(shown_claims(look)) == 1
    search.send_keys(" no such word")
    assert shown_claims(look) == []
    assert look.one("#nothing").is_displayed()
    assert not look.one("#asked-paper").is_displayed()
    look.go("#claim-theorem-norm")
    assert look.one("#claim-theorem-norm").is_displayed()
    assert len(look.all("details.question[open]")) == 1, "its question, and no other"


def test_questions_are_folded_and_links_unfold_them(unopened: Look) -> None:
    unopened.open()
    assert unopened.all("details.question[open]") == []
    assert shown_claims(unopened) == []
    height = "return document.documentElement.scrollHeight"
    for width in (390, 1280):
        unopened.media(width=width)
        folded = unopened.run(height)
        unopened.one("#unfold").click()
        assert unopened.one("#unfold").text == "Fold all"
        assert unopened.run(height) > 1.5 * folded
        unopened.one("#unfold").click()
        assert unopened.run(height) == folded
    unopened.media(width=390)
    assert unopened.run("return document.querySelector('.tallies').getBoundingClientRect().bottom") < 844, "the answers"
    unopened.open("#figure-bias")
    figure = unopened.one("#figure-bias")
    assert figure.is_displayed()
    assert figure.find_elements(By.CSS_SELECTOR, ".scrub"), "it can be read"
    assert not unopened.all("#figure-A\\.2 .scrub"), "folded ones are made readable later"


def test_the_legend_hides_and_shows_lines(look: Look) -> None:
    figure = look.one("#figure-cutoff-tiles")
    key = figure.find_element(By.CSS_SELECTOR, ".key")
    look.show(key)
    wanted = key.get_attribute("data-series")
    parts = figure.find_elements(By.CSS_SELECTOR, f'svg.chart [data-series="{wanted}"]')
    assert any(part.find_elements(By.CSS_SELECTOR, ".band") for part in parts)
    key.click()
    assert key.get_attribute("aria-pressed") == "false"
    assert not any(part.is_displayed() for part in parts)
    others = figure.find_elements(By.CSS_SELECTOR, f'g.series:not([data-series="{wanted}"])')
    assert others
    assert all(part.is_displayed() for part in others)
    scrub = figure.find_element(By.CSS_SELECTOR, ".scrub")
    scrub.send_keys(Keys.ARROW_RIGHT)
    assert f". {key.text}: " not in (scrub.get_attribute("aria-valuetext") or "")
    key.send_keys(Keys.SPACE)
    assert key.get_attribute("aria-pressed") == "true"
    assert all(part.is_displayed() for part in parts)
    scrub.send_keys(Keys.ARROW_RIGHT)
    assert f". {key.text}: " in (scrub.get_attribute("aria-valuetext") or "")


def test_values_are_shown_at_the_pointer_and_by_keys(look: Look) -> None:
    shown = gathered()["bias"]
    assert shown is not None
    chart = shown.panel.chart(shown.results)
    figure = look.one("#figure-bias")
    scrub = figure.find_element(By.CSS_SELECTOR, ".scrub")
    values = figure.find_element(By.CSS_SELECTOR, ".values")
    look.show(figure)
    assert not values.is_displayed()
    scrub.send_keys(Keys.ARROW_RIGHT + Keys.ARROW_RIGHT)
    places = sorted({point.x for one in chart.series for point in one.points})
    steps: list[tuple[float, Callable[[], object]]] = [
        (places[1], lambda: None),
        (places[-1], lambda: scrub.send_keys(Keys.END)),
        (places[0], lambda: scrub.send_keys(Keys.HOME)),
        (places[2], lambda: hover(look, figure, across(chart, places[2]))),
    ]
    for place, act in steps:
        act()
        assert values.is_displayed()
        said, spoken = values.text, scrub.get_attribute("aria-valuetext") or ""
        assert said.splitlines()[0] == f"{chart.x.label}: {number(place)}"
        for one in chart.series:
            for point in one.points:
                if point.x == place:
                    words = f"{one.name}: {number(point.y)}{spread(point.low, point.high)}"
                    assert words in said
                    assert words in spoken
    scrub.send_keys(Keys.ESCAPE)
    assert not values.is_displayed()


def hover(look: Look, figure: WebElement, x: float) -> None:
    svg = figure.find_element(By.CSS_SELECTOR, "svg.chart")
    width = svg.size["width"]
    look.acts().move_to_element_with_offset(svg, round((x / 480 - 0.5) * width), 0).perform()


def test_cases_are_read_one_below_the_other(look: Look) -> None:
    shown = gathered()["theorem-bound"]
    assert shown is not None
    chart = shown.panel.chart(shown.results)
    scrub, values = (look.one(f"#figure-theorem-bound {selector}") for selector in (".scrub", ".values"))
    look.show(scrub)
    assert scrub.get_attribute("aria-orientation") == "vertical"
    for i, (_, case) in enumerate(chart.y.ticks):
        scrub.send_keys(Keys.ARROW_DOWN)
        said = [
            f"{one.name}: {number(one.points[i].x)}{spread(one.points[i].x_low, one.points[i].x_high)}"
            for one in chart.series
        ]
        assert values.text.splitlines() == [case, *said]
        assert scrub.get_attribute("aria-valuetext") == f"{case}. {'; '.join(said)}"
    height = scrub.size["height"]
    offset = round((above(chart, chart.y.ticks[2][0]) / 320 - 0.5) * height)
    look.acts().move_to_element_with_offset(scrub, 0, offset).perform()
    assert values.text.splitlines()[0] == chart.y.ticks[2][1]


def test_a_tap_shows_values_until_another_place_is_tapped(unopened: Look) -> None:
    unopened.chrome.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})
    try:
        unopened.open("#figure-bias", width=380)
        plot, values = unopened.one("#figure-bias .plot"), unopened.one("#figure-bias .values")
        unopened.show(plot)
        x, y, below = unopened.run(
            "const b = arguments[0].getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2, b.bottom]",
            plot,
        )
        tap(unopened, x, y)
        unopened.until(values.is_displayed)
        assert "t-LSTD: " in values.text
        assert unopened.run("return arguments[0].getBoundingClientRect().top", values) >= below, (
            "the figure is not hidden"
        )
        caption = unopened.one("#figure-bias h5")
        tap(unopened, caption.rect["x"] + 5, unopened.run("return arguments[0].getBoundingClientRect().y + 5", caption))
        unopened.until(lambda: not values.is_displayed())
    finally:
        unopened.chrome.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})


def tap(look: Look, x: float, y: float) -> None:
    for kind, points in (("touchStart", [{"x": x, "y": y}]), ("touchEnd", [])):
        look.chrome.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})


def test_hostile_text_is_text(look: Look) -> None:
    assert f"title {NASTY}" in look.texts("article h5")
    assert len(look.all("script")) == 3
    assert look.all("img") == []
    key = look.all(".key")[look.texts(".key").index(f"line {NASTY}")]
    look.show(key)
    key.click()
    assert key.get_attribute("aria-pressed") == "false"


def test_settings_and_numbers_open(look: Look) -> None:
    figure = look.one("#figure-bias")
    for summary in figure.find_elements(By.CSS_SELECTOR, "summary"):
        look.show(summary)
        assert summary.find_element(By.XPATH, "following-sibling::*").is_displayed() is False
        summary.send_keys(Keys.ENTER)
        assert summary.find_element(By.XPATH, "following-sibling::*").is_displayed()
    assert "uv run tlstd reproduce bias --scale paper" in figure.text
    assert figure.find_elements(By.CSS_SELECTOR, "table.numbers caption")


# --- closed to the world --------------------------------------------------------------------------------------------


def test_the_policy_stops_what_would_load_or_run(looking: Look) -> None:
    looking.open()
    stopped = looking.chrome.execute_async_script(
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
        looking.run("document.body.innerHTML = '<p>'")
    looking.console()


# --- looks ----------------------------------------------------------------------------------------------------------


def test_without_scripts_claims_and_figures_are_there(unopened: Look) -> None:
    unopened.chrome.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        unopened.open()
        assert len(unopened.all("article svg.chart")) == len(PANELS) + 1
        assert len(unopened.all(".claims tbody tr")) > 10
        assert not unopened.one(".controls").is_displayed()
        assert "needs JavaScript" in unopened.one("noscript").text
    finally:
        unopened.chrome.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_the_theme_can_be_switched(look: Look) -> None:
    button = look.one("#theme")
    colours = []
    for name in ("Switch to dark colours", "Switch to light colours"):
        assert button.accessible_name == name
        colours.append(look.run("return getComputedStyle(document.body).color"))
        button.click()
    assert colours[0] != colours[1]
    assert look.run("return getComputedStyle(document.body).color") == colours[0]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_can_be_read_in_both_themes_at_all_widths(shown: Look, theme: str) -> None:
    for width in WIDTHS:
        shown.media(width=width, theme=theme)
        seen, poor = shown.run(CONTRAST)
        assert seen > 300
        assert poor == []
        assert shown.run("return document.documentElement.scrollWidth") <= width
    ground = shown.run("return getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(247, 247, 245)") == (theme == "light")


def test_claims_are_cards_on_a_phone_and_a_table_on_a_desk(shown: Look) -> None:
    shape = "return getComputedStyle(document.querySelector('.claims tbody tr')).display"
    assert shown.run(shape) == "table-row"
    shown.media(width=380)
    assert shown.run(shape) == "block"
    boxes = shown.run(
        "const boxes = [...document.querySelectorAll('.axes canvas')].map(canvas => canvas.getBoundingClientRect());"
        "return boxes.map(box => [box.top, box.right])"
    )
    assert boxes[0][0] == boxes[1][0], "truth and estimate are side by side"
    assert all(right <= 380 for _, right in boxes)
    shown.media(width=700)  # also a desk's page at twice its size
    tops = shown.run("return [...document.querySelectorAll('.axes canvas')].map(c => c.getBoundingClientRect().top)")
    assert len(set(tops)) == 1, "all three are side by side"


def test_it_prints(shown: Look) -> None:
    shown.media(theme="dark", kind="print")
    assert shown.run("return getComputedStyle(document.body).color") == "rgb(28, 32, 36)", "dark on white"
    for selector in (".top", ".controls", "#ex-form", ".figure details"):
        assert not shown.one(selector).is_displayed()
    assert shown.one(".claims").is_displayed()
    assert shown.run("return document.querySelector('.claims details p').checkVisibility()"), "remarks are printed"
    assert shown.run("return getComputedStyle(document.querySelector('.figure')).breakInside") == "avoid"
    shown.media()


# --- keyboard and screen reader -------------------------------------------------------------------------------------


def test_structure_for_screen_readers(shown: Look) -> None:
    levels = [
        int(tag[1]) for tag in shown.run("return [...document.querySelectorAll('h1,h2,h3,h4')].map(h => h.tagName)")
    ]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert shown.one("html").get_attribute("lang") == "en"
    for tag in ("main", "header", "nav"):
        assert shown.all(tag)
    unnamed = shown.run(
        "return [...document.querySelectorAll('svg:not([aria-hidden]), canvas:not([aria-hidden])')]"
        ".filter(e => e.getAttribute('role') !== 'img' || !e.getAttribute('aria-label')).length"
    )
    assert unnamed == 0
    headless = shown.run(
        "return [...document.querySelectorAll('table')].filter(t => !t.querySelector('thead th[scope=col]')).length"
    )
    assert headless == 0
    assert shown.run("return [...document.querySelectorAll('[tabindex]')].filter(e => e.tabIndex > 0).length") == 0


def test_every_control_has_a_name_and_a_role(shown: Look) -> None:
    roles = {"button", "link", "slider", "combobox", "radio", "searchbox", "DisclosureTriangle", "region", "option"}
    nodes = shown.chrome.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    focusable = [
        node
        for node in nodes
        if any(p["name"] == "focusable" and p["value"]["value"] for p in node.get("properties", []))
        and node["role"]["value"] != "RootWebArea"
    ]
    assert len(focusable) > 60
    assert {node["role"]["value"] for node in focusable} <= roles
    assert all(node["name"]["value"].strip() for node in focusable)
    images = [node for node in nodes if node["role"]["value"] == "image"]
    assert len(images) >= len(PANELS) + 1 + 5
    assert all(node["name"]["value"].strip() for node in images)


def test_axe_finds_nothing(look: Look) -> None:
    for summary in look.all("#figure-bias summary"):
        look.show(summary)
        summary.click()
    assert look.axe() > 40


def test_all_can_be_reached_with_the_tab_key(look: Look) -> None:
    visited = look.tabbed(30, "e.id || e.className || e.textContent")
    assert visited[0] == "skip"
    assert visited.index("theme") < visited.index("choice") < visited.index("search")
    assert len(set(visited)) > 6
    reached = look.run(
        "const wanted = ['ex-domain', 'ex-rank']; return wanted.every(id => document.getElementById(id).tabIndex === 0)"
    )
    assert reached


def test_the_panels_chosen_for_this_are_varied() -> None:
    """Lines with bands, marks, bars, rules, categories: each is on the page that these tests look at."""
    made = gathered()
    drawn = [shown.panel.chart(shown.results) for shown in made.values() if shown is not None]
    assert [panel(name).name for name in PANELS] == [shown.panel.name for shown in made.values() if shown is not None]
    assert any(one.marks for chart in drawn for one in chart.series)
    assert any(point.x_low is not None for chart in drawn for one in chart.series for point in one.points)
    assert any(chart.rules for chart in drawn)
    assert any(chart.y.wordy for chart in drawn)
