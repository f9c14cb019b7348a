"""What was asked: each question folded away, with the claims that decide it and the figures that show it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import NamedTuple

from tlstd.page.markup import Html, element, join
from tlstd_lab.chart import Chart
from tlstd_lab.claims import BEYOND, MIN_RUNS, Claim, Finding, Verdict, runs_in_words
from tlstd_lab.panel import Scale
from tlstd_lab.questions import PARTS, QUESTIONS, panel, question
from tlstd_lab.report import charts, settings
from tlstd_lab.report.colours import Palette
from tlstd_lab.report.sources import Shown

VERDICTS: dict[Verdict, str] = {
    "reproduced": "reproduced",
    "partly": "partly",
    "not": "not reproduced",
    "unjudged": "not judged",
}
"""As they are called on the page."""

Row = tuple[Claim, Finding, Shown]


class _Asked(NamedTuple):
    """A question with what there is to show of it."""

    name: str
    title: str
    of_paper: bool
    panels: list[str]


def anchor(kind: str, name: str) -> str:
    """Return the id of something by its name.

    Example
    -------
    >>> anchor("figure", "A.1"), anchor("claim", 'a "b"')
    ('figure-A.1', 'claim-a-b-')
    """
    return re.sub(r"[^\w.-]+", "-", f"{kind}-{name}")


def command(name: str, scale: Scale) -> str:
    """Return what makes a panel's runs."""
    return f"uv run tlstd reproduce {name} --scale {scale}"


def rows_of(shown: Mapping[str, Shown]) -> list[Row]:
    """All claims that were decided, panel by panel."""
    return [(claim, finding, found) for found in shown.values() for claim, finding in found.judged]


def questions(shown: Mapping[str, Shown], figures: Mapping[str, Html], missing: Sequence[str]) -> Html:
    """The questions of the paper and those beyond it, and what of them is not computed."""
    if not shown:
        parts = [element("p", "No claim can be decided from these results: no panel is complete in them.")]
    else:
        parts = [element("p", _INTRO), _controls(rows_of(shown), len(shown))]
    for title, name, of_paper in (("Of the paper", "asked-paper", True), ("Beyond the paper", "asked-beyond", False)):
        folds = [_fold(asked, shown, figures) for asked in _asked(shown) if asked.of_paper == of_paper]
        if folds:
            parts.append(element("div", element("h3", title, id=name), *folds, class_="folds"))
    parts.append(element("p", "No claim fits.", id="nothing", hidden=True))
    if missing:
        entries = [
            element("li", f"{name}: {panel(name).title}. ", element("code", command(name, "quick"))) for name in missing
        ]
        parts += [element("h3", "Not computed"), element("ul", *entries, id="missing")]
    return join(*parts)


_INTRO = (
    "A claim is decided by one number with its 95% interval over runs: reproduced only if the whole interval is on the "
    "claim's side, partly if the number alone is. With few runs intervals are wide; fewer than "
    f"{MIN_RUNS} random runs judge no claim."
)


def _asked(shown: Mapping[str, Shown]) -> list[_Asked]:
    """The questions that these panels answer, in order; a question's title is the first line of its folder."""
    found, names = [], list(shown)
    for folder in QUESTIONS:
        panels = [name for name in question(folder).panels if name in names]
        if panels:
            words = (import_module(f"tlstd_lab.questions.{folder}").__doc__ or folder).strip().splitlines()[0]
            words = words.removeprefix("Beyond the paper: ")
            decided = [claim.where != BEYOND for name in panels for claim, _ in shown[name].judged]
            of_paper = question(folder).part is not None or any(decided)
            found.append(_Asked(folder, words[:1].upper() + words[1:], of_paper, panels))
    others = [name for name in names if not any(name in asked.panels for asked in found)]
    return [*found, _Asked("others", "Others", False, others)] if others else found


def _fold(asked: _Asked, shown: Mapping[str, Shown], figures: Mapping[str, Html]) -> Html:
    rows = rows_of({name: shown[name] for name in asked.panels})
    counts = Counter(finding.verdict for _, finding, _ in rows)
    tallies = [
        element(
            "span", symbol(verdict), counts[verdict], element("span", f" {words}, ", class_="unseen"), class_=verdict
        )
        for verdict, words in VERDICTS.items()
        if counts[verdict]
    ]
    n = len(asked.panels)
    summary = element(
        "summary",
        element("h4", asked.title),
        element("span", *tallies, element("span", f"{n} figure{'s' * (n > 1)}"), class_="counts"),
    )
    cards = element("div", *(figures[name] for name in asked.panels), class_="cards")
    table = _claims_table(rows, asked.title) if rows else ""
    return element("details", summary, table, cards, class_="question", id=anchor("question", asked.name))


# --- claims ---------------------------------------------------------------------------------------------------------


def symbol(verdict: Verdict) -> Html:
    """A full, a half or an empty disc; its ring is dashed if nothing was judged."""
    ring = element("circle", cx=8, cy=8, r=6, class_="ring")
    inside = {"reproduced": "M8 2a6 6 0 0 1 0 12a6 6 0 0 1 0-12z", "partly": "M8 2a6 6 0 0 0 0 12z"}.get(verdict)
    disc = element("path", d=inside, class_="disc") if inside else Html()
    return element("svg", ring, disc, class_="verdict-symbol", viewBox="0 0 16 16", aria_hidden="true")


def verdict_in_words(verdict: Verdict) -> Html:
    """Symbol and word."""
    return element("span", symbol(verdict), VERDICTS[verdict], class_=f"verdict {verdict}")


def _controls(rows: Sequence[Row], n_figures: int) -> Html:
    counts = Counter(finding.verdict for _, finding, _ in rows)
    buttons = [
        element("button", f"All {len(rows)}", type="button", class_="choice", data_verdict="", aria_pressed="true")
    ]
    buttons += [
        element(
            "button",
            symbol(verdict),
            f"{words} {counts[verdict]}",
            type="button",
            class_=f"choice {verdict}",
            data_verdict=verdict,
            aria_pressed="false",
        )
        for verdict, words in VERDICTS.items()
        if counts[verdict] or verdict != "unjudged"
    ]
    return element(
        "div",
        element("div", *buttons, role="group", aria_label="Verdicts to show", class_="choices"),
        element("label", "Search ", element("input", type="search", id="search")),
        element("button", "Unfold all", type="button", id="unfold", class_="plain", aria_expanded="false"),
        element("p", f"{len(rows)} of {len(rows)} claims, {n_figures} figures.", id="found", role="status"),
        class_="controls needs-script",
    )


def _claims_table(rows: Sequence[Row], label: str) -> Html:
    head = [
        element("th", words, scope="col", role="columnheader")
        for words in ("Verdict", "Claim", "What was found", "Figure")
    ]
    return element(
        "table",
        element("thead", element("tr", *head, role="row"), role="rowgroup"),
        element("tbody", *(_claim(*row) for row in rows), role="rowgroup"),
        class_="claims",
        role="table",
        aria_label=f"Claims: {label}",
    )


def _claim(claim: Claim, finding: Finding, shown: Shown) -> Html:
    """One row; roles are named because cards on a phone are no table to some browsers."""
    number = finding.number
    found = [
        element("strong", f"{number.value:.3g}"),
        f"{number.ends}, {runs_in_words(number.runs)}: {finding.what}",
    ]
    if finding.note:
        found.append(element("details", element("summary", "Remarks"), element("p", finding.note)))
    words = finding.words if finding.verdict == "unjudged" else VERDICTS[finding.verdict]
    name = shown.panel.name
    figure = join(
        element("a", f"Figure {name}" if name in PARTS else name, href=f"#{anchor('figure', name)}"),
        element("span", shown.results.scale, class_="scale"),
    )
    statement = join(
        element("p", claim.statement), element("p", f"{claim.where} · ", element("code", claim.name), class_="small")
    )
    cells = (
        ("Verdict", element("span", symbol(finding.verdict), words, class_=f"verdict {finding.verdict}")),
        ("Claim", statement),
        ("Found", join(*found)),
        ("Figure", figure),
    )
    return element(
        "tr",
        *(element("td", cell, role="cell", data_label=label) for label, cell in cells),
        role="row",
        id=anchor("claim", claim.name),
        data_verdict=finding.verdict,
    )


# --- figures --------------------------------------------------------------------------------------------------------


def figure(name: str, shown: Shown, chart: Chart, palette: Palette) -> Html:
    """A panel: chart, legend, caption, and behind folds its settings and numbers."""
    made, scale = shown.panel, shown.results.scale
    title = f"{name}  {made.title}" if name in PARTS else made.title
    runs = list(dict.fromkeys(shown.runs))
    behind = f"{scale} scale · {len(runs):,} runs · seeds {settings.spans(spec.seed for spec in runs)}"
    legend = [
        element(
            "button",
            charts.swatch(key.look, palette),
            key.label,
            type="button",
            class_="key",
            aria_pressed="true",
            data_series=" ".join(map(str, key.series)),
        )
        for key in chart.keys
    ]
    numbers = element(
        "div",
        charts.table(chart, made.title),
        class_="scroll",
        tabindex="0",
        role="region",
        aria_label=f"Numbers of figure {name}",
    )
    described = settings.describe(shown, command(name, scale))
    return element(
        "article",
        element("h5", title, id=anchor("title", name)),
        element("div", charts.svg(chart, anchor("clip", name), made.title, palette), class_="plot", data_chart=name),
        element("div", *legend, class_="legend", role="group", aria_label="Lines to show"),
        element("p", made.caption, class_="caption"),
        element("p", behind, class_="small"),
        element("details", element("summary", "Settings"), described, class_="settings"),
        element("details", element("summary", "Numbers"), numbers),
        class_="figure",
        id=anchor("figure", name),
        aria_labelledby=anchor("title", name),
    )
