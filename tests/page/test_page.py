"""The page as text: what it says, that numbers are the evaluation's, that nothing in a log becomes markup."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from tests.evaluation.trust_logs import Maker, few, garnet_off, regulator_on, stream, unsupported, walk
from tests.page.conftest import NASTY
from tlstd.errors import StateError
from tlstd.evaluation import Report, Trust, evaluate
from tlstd.page import parts, render, write_page
from tlstd.page.numbers import Scale, number

VOID = {"meta", "link", "path", "rect", "circle", "line"}


class Reading(HTMLParser):
    """Elements and text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.fixture(scope="module")
def reading(page: Path) -> Reading:
    return Reading(page.read_text(encoding="utf-8"))


def test_hostile_names_are_text(reading: Reading) -> None:
    """Names of columns, episodes and files: as they are, and neither elements nor attributes."""
    assert reading.open == []
    names = {tag for tag, _ in reading.tags}
    assert not names & {"script", "img", "iframe", "object", "embed", "form", "base"}
    assert not any(name.startswith("on") or name == "style" for _, attributes in reading.tags for name in attributes)
    shown = "".join(reading.text)
    assert f"a {NASTY}" in shown  # a column
    assert f"{NASTY}.parquet" in shown  # the source
    assert re.search(r"\d+ " + re.escape(NASTY), shown)  # an episode
    assert len([tag for tag, _ in reading.tags if tag == "style"]) == 1


def test_nothing_is_asked_of_anybody(reading: Reading) -> None:
    policy = next(a["content"] for t, a in reading.tags if t == "meta" and a.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    addresses = [a[name] for _, a in reading.tags for name in ("href", "src") if name in a]
    assert all(address is not None and (address.startswith("#") or address == "data:,") for address in addresses)
    ids = [a["id"] for _, a in reading.tags if "id" in a]
    assert len(set(ids)) == len(ids)
    assert {address[1:] for address in addresses if address and address.startswith("#")} <= set(ids)


def test_the_answer_comes_first(reading: Reading, report: Report) -> None:
    shown = "".join(reading.text)
    assert report.light == "red"
    assert "Do not rely on this number yet" in shown
    heads = ("What the policy is worth", "95% interval", "Rung: ", "Do not rely", "Reasons to trust it")
    order = [shown.index(words) for words in heads]
    assert order == sorted(order)
    assert f"Rung: {report.rung}. Assumption: {report.assumption}" in shown
    assert "checks of this number (" in shown  # and not that both of two policies were checked
    for check in report.trust.checks:
        assert check.title in shown
    for note in report.notes:
        assert note.replace("-", "")[:40] in shown.replace("−", "").replace("-", "")
    for row in report.rows:
        assert number(row.value) in shown
        assert row.rung.assumption in shown


def test_checks_with_a_doubt_are_open(report: Report) -> None:
    """Checks that passed and those that do not apply are folded, apart from each other."""
    section = parts.checks(report, parts.Numbering())
    assert section is not None
    places: dict[str, set[int]] = {}
    for check in report.trust.of_answer:
        (place,) = (i for i, part in enumerate(section.content) if f'id="check-{check.name}"' in part)
        places.setdefault(check.state, set()).add(place)
    assert {"red", "green", "not applicable"} <= set(places)
    assert all(len(found) == 1 for found in places.values())
    kinds = {state: re.findall(r"^<(\w+)", section.content[found.pop()])[0] for state, found in places.items()}
    assert {state for state, kind in kinds.items() if kind == "details"} == {"green", "not applicable"}
    n = sum(check.state == "not applicable" for check in report.trust.of_answer)
    assert f"{n} checks do not apply here" in words_of(section)


def test_figures_and_tables_are_numbered_and_say_what_to_see(reading: Reading) -> None:
    shown = "".join(reading.text)
    figures = [int(n) for n in re.findall(r"Figure (\d+)\.", shown)]
    tables = [int(n) for n in re.findall(r"Table (\d+)\.", shown)]
    assert figures == list(range(1, len(figures) + 1))
    assert tables == list(range(1, len(tables) + 1))
    assert len(figures) >= 8  # answers, calibration, three episodes, three maps, influence
    assert len([1 for tag, _ in reading.tags if tag == "figcaption"]) == len(figures)


def test_json_has_what_the_page_has(report: Report) -> None:
    found = json.loads(report.to_json())
    assert found["interval"]["level"] == 0.95
    assert found["interval"]["low"] < found["interval"]["high"]
    assert len(found["views"]["maps"]) == 3
    assert len(found["views"]["episodes"]) == 3
    assert found["trust"]["light"] == "red"
    by_name = {check["name"]: check for check in found["trust"]["checks"]}
    assert len(by_name["calibration"]["data"]["parts"]) == 10
    assert len(by_name["influence"]["data"]["episodes"]) == 5
    one = found["views"]["maps"][0]
    counts, values = np.array(one["counts"]), np.array(one["values"], dtype=float)
    assert ((counts > 0) == np.isfinite(values)).all()
    assert counts.sum() == report.log.rewards.size


LOGS: dict[str, Maker] = {
    "walk": walk,
    "off": garnet_off,
    "stream": partial(stream, n=1_500),
    "tails": regulator_on,
    "few": few,
    "refusal": unsupported,
}


@pytest.mark.parametrize("name", LOGS)
def test_pages_of_other_logs(name: str) -> None:
    """Discrete states, another policy, one stream, cut-off episodes, next to nothing, and a refusal."""
    case = LOGS[name](0)
    made = evaluate(case.log, **case.options)
    page = render(made)
    assert Reading(page).open == []
    assert "{{" not in page
    assert "nan" not in re.sub(r"<style>.*?</style>", "", page, flags=re.S)
    assert ('id="tails"' in page) == (made.rung == "returns with tails")
    assert ('id="silence"' in page) == (made.silence is not None)
    assert ("No value" in page) == (made.rung == "refusal") == (name == "refusal")


@pytest.fixture(scope="module")
def silent() -> Report:
    """Of a policy that now and then takes an action that half of the states never had."""
    log = unsupported(0).log

    def careful(states: np.ndarray) -> np.ndarray:
        return np.where((states % 2 == 0)[:, None], [0.5, 0.49, 0.01], [0.4, 0.3, 0.3])

    return evaluate(log, gamma=0.9, policy=careful, returns=(-5.0, 5.0))


def words_of(section: parts.Section | None) -> str:
    assert section is not None
    return "".join(Reading("".join(section.content)).text)


def test_both_parts_of_an_interval_are_shown(silent: Report) -> None:
    found = silent.silence
    assert found is not None
    interval = found.interval
    assert interval.silence > 0.0 < interval.sampling
    first = "".join(Reading(render(silent)).text)
    whole, chance, rest = (number(part, 2) for part in (interval.half_width, interval.sampling, interval.silence))
    assert f"Of its half-width {whole}, {chance} is chance, and {rest} is what the log does not have." in first
    shown = words_of(parts.silence(silent, parts.Numbering()))
    for value in (interval.lower.value, interval.upper.value, interval.sampling, interval.silence, found.mass):
        assert number(value) in shown
    assert "(as given)" in shown
    assert "is a bound" in shown
    for one in found.missing:
        assert one.state in shown


def test_a_number_that_nothing_can_test_is_not_green(silent: Report) -> None:
    """A light of its own, with words and a colour of its own."""
    assert silent.light == "unchecked"
    reading = Reading(render(silent))
    lights = [attributes for _, attributes in reading.tags if "light" in (attributes.get("class") or "").split()]
    assert [light["class"] for light in lights] == ["light unchecked"]
    assert lights[0]["aria-label"] == "Trust: unchecked"
    assert "Nothing in the log can test this number for bias" in "".join(reading.text)
    style = re.search(r"<style>(.*?)</style>", render(silent), flags=re.S)
    assert style is not None
    colours = {state: re.search(rf"--{state}: ([^;]+);", style[1]) for state in ("unchecked", "green", "amber", "red")}
    assert len({found[1] for found in colours.values() if found is not None}) == 4


def test_the_best_estimate_is_shown_where_it_is_another_row(report: Report) -> None:
    first = report.rows[0]
    for row in report.rows:
        made = replace(report, best_by=row.name, best_estimate=row.value)
        text = "".join(Reading(render(made)).text)
        assert (f"by {row.name}. It has the least estimated squared error" in text) == (row is not first)


def test_a_refusal_has_no_value_anywhere() -> None:
    """Neither in the title, nor in the picture, nor in the table; its interval is there."""
    case = unsupported(0)
    made = evaluate(case.log, **case.options)
    interval = made.interval_or_none
    assert interval is not None
    page = render(made)
    assert "<title>No value" in page
    table = words_of(parts.rungs(made, parts.Numbering()))
    assert number(made.rows[0].value) not in table
    assert f"{number(interval.low)} to {number(interval.high)}" in table
    assert made.assumption in table
    section = parts.rungs(made, parts.Numbering())
    assert section is not None
    marks = re.findall(r'<circle class="dot"', "".join(section.content))
    assert len(marks) == len(made.rows) - 1
    assert "do not read single values" in words_of(parts.episodes(made, parts.Numbering()))
    assert json.loads(made.to_json())["best_estimate"] == {"value": None, "by": "LSTDQ"}


def test_figures_say_that_they_show_the_model_before_debiasing(report: Report) -> None:
    """In every caption, and by how much it differs; not where nobody would see it. Strong if a check warns."""
    place = next(i for i, row in enumerate(report.rows) if row.name == report.fit.name)
    row, interval = report.rows[place], report.interval_or_none
    assert interval is not None

    def shown(plain: float, name: str, trust: Trust = report.trust) -> tuple[str, int]:
        rows = list(report.rows)
        rows[place] = replace(row, plain=plain)
        section = getattr(parts, name)(replace(report, rows=tuple(rows), trust=trust), parts.Numbering())
        text = "".join(section.content)
        return text, text.count("<figcaption>")

    far = report.value - 8.0 * interval.half_width
    for name in ("episodes", "maps"):
        text, figures = shown(far, name)
        off = number(8.0 * interval.half_width, 2)
        assert text.count(f"Uncorrected model, on average {off} below the answer.") == figures == 3
        assert f"The answer is {number(report.value)}" in text
        assert "Uncorrected" not in shown(report.value, name)[0]
    check = report.trust["regularisation"]
    for state in ("not applicable", "green", "amber", "red"):
        text, _ = shown(far, "maps", Trust((replace(check, state=state),), ""))
        assert ("<p><strong>" in text) == (state in ("amber", "red"))


def test_what_was_asked_and_read_as_what(report: Report) -> None:
    log = replace(report.log, roles={"observation": ("a", "b"), "reward": (NASTY,)})
    question = replace(report.case.question, cost=True)
    made = replace(report, case=replace(report.case, log=log, question=question), policy_name=NASTY)
    section = parts.assumed(made, parts.Numbering())
    assert section is not None
    text = Reading("".join(section.content)).text
    for name, value in (("policy", NASTY), ("read as reward", NASTY), ("read as end", "no column")):
        assert text[text.index(name) + 1] == value
    assert "costs: smaller is better" in text


def test_a_file_is_replaced_whole(report: Report, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text("old")
    write_page(report, path)
    assert path.read_text(encoding="utf-8") == render(report)
    assert os.listdir(tmp_path) == ["page.html"]
    with pytest.raises((StateError, OSError)):
        write_page(report, tmp_path)


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-37.2, -30.9), (1e-9, 3e-9), (-1e6, 2e7), (5.0, 5.0001)])
@pytest.mark.parametrize("count", [3, 4, 5])
def test_ticks(low: float, high: float, count: int) -> None:
    """At least three, evenly spaced, within the axis, not too many."""
    ticks = Scale(low, high, 0.0, 1.0).ticks(count)
    assert 3 <= len(ticks) <= 11
    steps = np.diff(ticks)
    assert steps == pytest.approx(np.full(steps.size, steps[0]), rel=1e-6)
    assert low - 1e-6 * (high - low) <= ticks[0] < ticks[-1] <= high + 1e-6 * (high - low)


def test_a_page_is_text_whatever_names_are(report: Report, tmp_path: Path) -> None:
    """Half a character, as in a file's name that is no UTF-8, cannot be written; others turn the text around."""
    name, link = "\udcff\u202e\x9b.csv", tmp_path / "link.html"
    link.symlink_to(tmp_path / "page.html")
    write_page(replace(report, source=name), link)
    assert r"\udcff\u202e\x9b.csv" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert link.is_symlink()
