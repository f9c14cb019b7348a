"""The page: claims, figures and rank explorer in one HTML file that needs nothing else and asks nobody."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import tlstd
from tlstd.errors import InvalidParameterError
from tlstd.page.markup import Html, element, join
from tlstd_lab.claims import BEYOND
from tlstd_lab.report import charts, explorer, explorer_view
from tlstd_lab.report.colours import Palette
from tlstd_lab.report.questions_view import VERDICTS, Row, anchor, figure, questions, rows_of, symbol, verdict_in_words
from tlstd_lab.report.sources import Shown, Sources, blaming_runs, gather

TITLE = "Incremental truncated LSTD: what was measured"

HEADLINES = (
    "2a-td",
    "B.4-large-enough",
    "3b-outperforms",
    "smooth-3b-level-cutoff",
    "2b-run-time",
    "theorem-norm",
    "contest-energy-td",
    "contest-energy-replay",
    "coverage-low",
    "memory-energy-rank",
    "contest-energy-time-wins",
    "control-logs-krylov",
)
"""Claims on the first screen, if they are decided: what the paper is known for, and the answers that go beyond it."""


def build(paths: Sequence[Path]) -> str:
    """Return the page made from packed runs and folders of runs.

    Raises InvalidParameterError if they hold no complete panel and nothing for the explorer.
    """
    store = Sources(paths)
    panels = gather(store)
    with blaming_runs("the rank explorer"):
        exploring = explorer.data(store)
    if exploring is None and not any(panels.values()):
        named = ", ".join(map(str, paths)) or "the current folder"
        raise InvalidParameterError(
            f"there are no results of a whole panel in {named}: make some with tlstd reproduce, or name others"
        )
    return render(panels, exploring, [str(path) for path in paths])


def render(panels: Mapping[str, Shown | None], exploring: dict[str, Any] | None, origins: Sequence[str]) -> str:
    """Return the page that shows panels, and says which cannot be shown."""
    palette, drawn = Palette(), {}
    shown = {name: found for name, found in panels.items() if found is not None}
    figures: dict[str, Html] = {}
    for name, found in shown.items():
        with blaming_runs(f"panel {name}"):
            chart = found.panel.chart(found.results)
            drawn[name] = charts.data(chart)
            figures[name] = figure(name, found, chart, palette)
    with blaming_runs("the page"):
        data = [data_block("chart-data", drawn)]
        if exploring is not None:
            data.append(data_block("explorer-data", exploring))
    style = _file("page.css") + palette.css()
    script = _file("page.js")
    parts = {
        "policy": policy(style, script),
        "title": TITLE,
        "lead": _lead(shown),
        "style": Html(style),
        "script": Html(script),
        "answers": _answers(rows_of(shown)),
        "questions": questions(shown, figures, [name for name, found in panels.items() if found is None]),
        "explorer": explorer_view.explorer(exploring),
        "about": _about(shown, origins),
        "data": join(*data),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: join(parts[match[1]]), _file("page.html"))


def policy(style: str, script: str) -> str:
    """Return the content-security policy: nothing may be loaded, and only this style and script are applied."""
    return (
        f"default-src 'none'; script-src '{digest(script)}'; style-src '{digest(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    )


def digest(content: str) -> str:
    """Return the source expression for an inline element with this content."""
    return f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}"


def _file(name: str) -> str:
    return files("tlstd_lab.report").joinpath(name).read_text(encoding="utf-8")


# --- the first screen -----------------------------------------------------------------------------------------------


def _answers(rows: Sequence[Row]) -> Html:
    """What the paper claims and what goes beyond it: how many of each verdict, and the best known of them."""
    made = []
    for title, own in (("Claims of the paper", False), ("Beyond the paper", True)):
        chosen = [row for row in rows if (row[0].where == BEYOND) == own]
        counts = Counter(finding.verdict for _, finding, _ in chosen)
        if not counts:
            continue
        total, start, bars = counts.total(), 0.0, []
        for verdict in VERDICTS:
            width = 100.0 * counts[verdict] / total
            bars.append(element("rect", class_=verdict, x=f"{start:.2f}", y=0, width=f"{width:.2f}", height=8))
            start += width
        entries = [
            element("li", element("strong", counts[verdict]), " ", verdict_in_words(verdict))
            for verdict in VERDICTS
            if counts[verdict] or verdict != "unjudged"
        ]
        bar = element("svg", *bars, class_="bar", viewBox="0 0 100 8", preserveAspectRatio="none", aria_hidden="true")
        best = sorted((row for row in chosen if row[0].name in HEADLINES), key=lambda row: HEADLINES.index(row[0].name))
        made.append(
            element(
                "div",
                element("h2", f"{title}: {total}"),
                bar,
                element("ul", *entries),
                element("ul", *map(_headline, best), class_="headlines") if best else "",
                class_="tally",
            )
        )
    return element("div", *made, class_="tallies")


def _headline(row: Row) -> Html:
    claim, finding, _ = row
    words = element("span", f"{VERDICTS[finding.verdict]}: ", class_="unseen")
    sign = element("span", symbol(finding.verdict), class_=f"verdict {finding.verdict}")
    link = element("a", claim.statement, href=f"#{anchor('claim', claim.name)}")
    return element("li", sign, element("span", words, link))


def _lead(shown: Mapping[str, Shown]) -> str:
    scales = Counter(found.results.scale for found in shown.values())
    parts = [f"{count} at {scale} scale" for scale, count in scales.items()]
    return (
        "The claims of Gehring, Pan and White (IJCAI 2016), what holds, and answers beyond them, from stored runs: "
        f"{len(shown)} figures" + (f" ({', '.join(parts)})." if parts else ".")
    )


def _about(shown: Mapping[str, Shown], origins: Sequence[str]) -> Html:
    specs = {spec.key for found in shown.values() for spec in [*found.runs, *found.tuning]}
    return join(
        element(
            "p",
            f"Made by tlstd {tlstd.__version__} with ",
            element("code", "uv run tlstd report"),
            f" from {len(specs):,} stored runs in: {', '.join(origins)}. Nothing was computed anew but intervals.",
        ),
        element(
            "p",
            "Lines are means over runs, bands 95% bootstrap intervals of the mean. Point at a figure, or move along it "
            "with the arrow keys, for values; press an entry of the legend to hide its line. Scales: smoke (does it "
            "run), quick (few runs), paper (as published).",
        ),
        element("p", "The file is whole: it loads nothing, sends nothing and keeps nothing."),
    )


def data_block(name: str, value: Any) -> Html:
    """Return JSON for a script to read; nothing in it can end the block or begin a comment.

    Example
    -------
    >>> data_block("x", ["</script>"])
    '<script type="application/json" id="x">["\\\\u003c/script>"]</script>'
    """
    inside = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return Html(f'<script type="application/json" id="{escape(name)}">{inside}</script>')
