"""Pages with hostile names and contents, in a real browser: nothing runs, nothing is asked for, nothing is hidden."""

from __future__ import annotations

import random
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from selenium.common.exceptions import NoAlertPresentException
from selenium.webdriver import Chrome

from tlstd import Log, evaluate
from tlstd.core.file_format import printable
from tlstd.evaluation import Report
from tlstd.page import write_page
from tlstd_lab.browser import HARMLESS, console, requests, started
from tlstd_lab.campaign.faults import Task, explained
from tlstd_lab.campaign.hostile import word
from tlstd_lab.campaign.row import Row

LOOK = """
const own = '<link rel="icon" href="data:,">';
const all = [...document.querySelectorAll("*")].filter(e => e.outerHTML !== own);
return {
  ran: window.ran === undefined ? "" : String(window.ran),
  bad: all.filter(e => /^(script|iframe|img|object|embed|form|base|link|input|textarea|frame)$/i.test(e.tagName))
    .map(e => e.outerHTML.slice(0, 80)),
  handlers: all.flatMap(e => [...e.attributes].filter(a => /^on/i.test(a.name)
    || /^\\s*javascript:/i.test(a.value)).map(a => a.name + "=" + a.value.slice(0, 60))),
  away: all.flatMap(e => ["href", "src", "action"].map(n => e.getAttribute(n)).filter(v => v && !v.startsWith("#"))),
  styles: document.querySelectorAll("style").length,
  text: document.title + document.documentElement.textContent,
  shown: document.querySelector("#answer").checkVisibility(),
};
"""


@cache
def _numbers() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    n = 120
    ends = np.arange(n) % 6 == 5
    return {"observations": rng.random((n, 2)), "rewards": rng.random(n), "terminated": ends}


def hostile(choices: random.Random) -> tuple[Report, list[str]]:
    """A report whose columns, episodes, actions and file have hostile names; and those that a page must show."""
    n = len(_numbers()["rewards"])
    columns = [f"{i} {word(choices)}" for i in range(2)]
    actions = [word(choices, surrogates=False), word(choices, surrogates=False)]
    names = [f"{i // 6} {word(random.Random(i // 6))}" for i in range(n)]
    log = Log.from_arrays(
        **_numbers(),
        actions=np.array([actions[i % 2] for i in range(n)], dtype=object),
        episodes=names,
        columns=columns,
    )
    source = f"{word(choices)}.parquet"
    return evaluate(replace(log, source=source), gamma=0.9, estimators=["mean of returns"]), [source, *columns]


class _Pages:
    """Pages one after the other in one browser."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.folder = tempfile.TemporaryDirectory()
        self.chrome = started(Path(self.folder.name) / "profile")

    def __call__(self, number: int) -> str:
        report, words = hostile(random.Random(f"{self.seed} {number}"))
        with explained(repr(words)):
            path = Path(self.folder.name) / "page.html"
            write_page(report, path)
            look(self.chrome, path, words)
        return "shown as text"

    def close(self) -> None:
        """End the browser."""
        self.chrome.quit()
        self.folder.cleanup()


def look(chrome: Chrome, path: Path, words: list[str]) -> None:
    """Raise unless a page shows words and nothing else came of them."""
    console(chrome), requests(chrome)
    chrome.get(path.as_uri())
    try:
        raise AssertionError(f"a dialogue is open: {chrome.switch_to.alert.text!r}")
    except NoAlertPresentException:
        pass
    found = chrome.execute_script(LOOK)
    for name in ("ran", "bad", "handlers", "away"):
        assert not found[name], f"{name}: {found[name]}"
    assert found["styles"] == 1, f"there are {found['styles']} styles"
    assert found["shown"], "the answer is hidden"
    for name in words:
        assert printable(name) in found["text"], f"{name!r} is not on the page"
    asked = {url.split("#")[0] for url in requests(chrome) if not url.startswith(HARMLESS)}
    assert asked <= {path.as_uri()}, f"it asks for {asked}"
    logged = console(chrome)
    assert not logged, f"the browser says {logged[0]['message']}"


def _task(subject: str, seed: int, folder: Path) -> Task:
    return _Pages(seed)


ROW = Row(
    promise="no page runs, loads or hides anything because of names or contents",
    unit="pages",
    target=500,
    subjects=lambda: ["evaluation"],
    task=_task,
    seconds=120.0,
    checked=False,
    alone=True,
)
