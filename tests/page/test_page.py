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

from tests.evaluation.trust_logs import few, garnet_off, stream, walk
from tests.page.conftest import NASTY
from tlstd.errors import StateError
from tlstd.evaluation import Evaluation, Trust, evaluate
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


def test_the_answer_comes_first(reading: Reading, evaluation: Evaluation) -> None:
    trust, interval = evaluation.trust, evaluation.interval_or_none
    assert trust is not None
    assert interval is not None
    shown = "".join(reading.text)
    assert trust.light == "red"
    assert "Do not rely on this number yet" in shown
    order = [
        shown.index(words) for words in ("What the policy is worth", "95% interval", "Do not rely", "Why to trust it")
    ]
    assert order == sorted(order)
    assert "checks were made" in shown  # and not that both of two policies were checked
    for check in trust.checks:
        assert check.title in shown
    for note in evaluation.notes:
        assert note.replace("-", "")[:40] in shown.replace("−", "").replace("-", "")
    for row in evaluation.rows:
        assert number(row.value) in shown


def test_figures_and_tables_are_numbered_and_say_what_to_see(reading: Reading) -> None:
    shown = "".join(reading.text)
    figures = [int(n) for n in re.findall(r"Figure (\d+)\.", shown)]
    tables = [int(n) for n in re.findall(r"Table (\d+)\.", shown)]
    assert figures == list(range(1, len(figures) + 1))
    assert tables == list(range(1, len(tables) + 1))
    assert len(figures) >= 8  # estimators, calibration, three episodes, three maps, influence, sensitivity
    assert len([1 for tag, _ in reading.tags if tag == "figcaption"]) == len(figures)


def test_json_has_what_the_page_has(evaluation: Evaluation) -> None:
    found = json.loads(evaluation.to_json())
    assert found["interval"]["level"] == 0.95
    assert found["interval"]["low"] < found["interval"]["high"]
    assert len(found["views"]["maps"]) == 3
    assert len(found["views"]["episodes"]) == 3
    assert found["trust"]["light"] == "red"
    by_name = {check["name"]: check for check in found["trust"]["checks"]}
    assert len(by_name["calibration"]["data"]["parts"]) == 10
    assert len(by_name["influence"]["data"]["episodes"]) == 5
    assert by_name["sensitivity"]["data"]["choices"]
    one = found["views"]["maps"][0]
    counts, values = np.array(one["counts"]), np.array(one["values"], dtype=float)
    assert ((counts > 0) == np.isfinite(values)).all()
    assert counts.sum() == evaluation.fitted.log.rewards.size  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "make", [walk, garnet_off, partial(stream, n=1_500), few], ids=["walk", "off", "stream", "few"]
)
def test_pages_of_other_logs(make: object) -> None:
    """Discrete states, another policy, one stream, and next to nothing."""
    case = make(0)  # type: ignore[operator]
    page = render(evaluate(case.log, estimators=["KrylovLSTD"], **case.options))
    assert Reading(page).open == []
    assert "{{" not in page
    assert "nan" not in re.sub(r"<style>.*?</style>", "", page, flags=re.S)


def test_figures_say_that_they_show_the_model_before_debiasing(evaluation: Evaluation) -> None:
    """In every caption, and by how much it differs; not where nobody would see it. Strong if a check warns."""
    row = evaluation.rows[0]
    assert row.interval is not None
    assert evaluation.trust is not None
    names = ("episodes", "maps")

    def shown(plain: float, name: str, trust: Trust | None = evaluation.trust) -> tuple[str, int]:
        made = replace(evaluation, rows=(replace(row, plain=plain), *evaluation.rows[1:]))
        vars(made)["trust"], vars(made)["views"] = trust, evaluation.views  # as they were
        section = getattr(parts, name)(made, parts.Numbering())
        text = "".join(section.content)
        return text, text.count("<figcaption>")

    for name in names:
        text, figures = shown(row.value - 8.0 * row.interval.half_width, name)
        off = number(8.0 * row.interval.half_width, 2)
        assert text.count(f"Uncorrected model, on average {off} below the answer.") == figures == 3
        assert f"where the answer is {number(row.value)}" in text
        assert "Uncorrected" not in shown(row.value, name)[0]
    check, far = evaluation.trust["regularisation"], row.value - 8.0 * row.interval.half_width
    for state in ("unchecked", "green", "amber", "red"):
        text, _ = shown(far, "maps", Trust((replace(check, state=state),), ""))
        assert ("<p><strong>" in text) == (state in ("amber", "red"))
    assert "<p><strong>" not in shown(far, "maps", None)[0]


def test_what_was_asked_and_read_as_what(evaluation: Evaluation) -> None:
    assert evaluation.fitted is not None
    log = replace(evaluation.fitted.log, roles={"observation": ("a", "b"), "reward": (NASTY,)})
    made = replace(evaluation, fitted=replace(evaluation.fitted, log=log), policy_name=NASTY, cost=True)
    section = parts.assumed(made, parts.Numbering())
    assert section is not None
    text = Reading("".join(section.content)).text
    for name, value in (("policy", NASTY), ("read as reward", NASTY), ("read as end", "no column")):
        assert text[text.index(name) + 1] == value
    assert "costs: smaller is better" in text


def test_a_file_is_replaced_whole(evaluation: Evaluation, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text("old")
    write_page(evaluation, path)
    assert path.read_text(encoding="utf-8") == render(evaluation)
    assert os.listdir(tmp_path) == ["page.html"]
    with pytest.raises((StateError, OSError)):
        write_page(evaluation, tmp_path)


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-37.2, -30.9), (1e-9, 3e-9), (-1e6, 2e7), (5.0, 5.0001)])
@pytest.mark.parametrize("count", [3, 4, 5])
def test_ticks(low: float, high: float, count: int) -> None:
    """At least three, evenly spaced, within the axis, not too many."""
    ticks = Scale(low, high, 0.0, 1.0).ticks(count)
    assert 3 <= len(ticks) <= 11
    steps = np.diff(ticks)
    assert steps == pytest.approx(np.full(steps.size, steps[0]), rel=1e-6)
    assert low - 1e-6 * (high - low) <= ticks[0] < ticks[-1] <= high + 1e-6 * (high - low)


def test_a_page_is_text_whatever_names_are(evaluation: Evaluation, tmp_path: Path) -> None:
    """Half a character, as in a file's name that is no UTF-8, cannot be written; others turn the text around."""
    name, link = "\udcff\u202e\x9b.csv", tmp_path / "link.html"
    link.symlink_to(tmp_path / "page.html")
    write_page(replace(evaluation, source=name), link)
    assert r"\udcff\u202e\x9b.csv" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert link.is_symlink()
