"""The page: claims, figures and rank explorer in one HTML file that needs nothing else and asks nobody."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import tlstd
from tlstd.errors import InvalidParameterError
from tlstd.page.markup import Html, data_block, element, join
from tlstd_lab.chart import Chart
from tlstd_lab.claims import BEYOND, Claim, Finding, Verdict
from tlstd_lab.panel import Scale
from tlstd_lab.questions import PARTS, panel
from tlstd_lab.report import charts, explorer, settings
from tlstd_lab.report.colours import Palette
from tlstd_lab.report.sources import Shown, Sources, blaming_runs, gather

TITLE = "Incremental truncated LSTD: what was measured"

VERDICTS: dict[Verdict, str] = {"reproduced": "reproduced", "partly": "partly", "not": "not reproduced"}
"""As they are called on the page."""

Row = tuple[Claim, Finding, Shown]


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
            figures[name] = _figure(name, found, chart, palette)
    rows = [(claim, finding, found) for found in shown.values() for claim, finding in found.judged]
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
        "tallies": _tallies(rows),
        "claims": _claims(rows),
        "explorer": _explorer(exploring),
        "figures": _figures(figures, [name for name, found in panels.items() if found is None]),
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


def anchor(kind: str, name: str) -> str:
    """Return the id of something by its name.

    Example
    -------
    >>> anchor("figure", "A.1"), anchor("claim", 'a "b"')
    ('figure-A.1', 'claim-a-b-')
    """
    return re.sub(r"[^\w.-]+", "-", f"{kind}-{name}")


def _file(name: str) -> str:
    return files("tlstd_lab.report").joinpath(name).read_text(encoding="utf-8")


# --- claims ---------------------------------------------------------------------------------------------------------


def _symbol(verdict: Verdict) -> Html:
    """A full, a half or an empty disc."""
    ring = element("circle", cx=8, cy=8, r=6, class_="ring")
    inside = {"reproduced": "M8 2a6 6 0 0 1 0 12a6 6 0 0 1 0-12z", "partly": "M8 2a6 6 0 0 0 0 12z"}.get(verdict)
    disc = element("path", d=inside, class_="disc") if inside else Html()
    return element("svg", ring, disc, class_="verdict-symbol", viewBox="0 0 16 16", aria_hidden="true")


def _verdict(verdict: Verdict) -> Html:
    return element("span", _symbol(verdict), VERDICTS[verdict], class_=f"verdict {verdict}")


def _tallies(rows: Sequence[Row]) -> Html:
    """How many claims have each verdict, those of the paper and those beyond it."""
    made = []
    for title, own in (("Claims of the paper", False), ("Beyond the paper", True)):
        counts = Counter(finding.verdict for claim, finding, _ in rows if (claim.where == BEYOND) == own)
        if not counts:
            continue
        total, start, bars = counts.total(), 0.0, []
        for verdict in VERDICTS:
            width = 100.0 * counts[verdict] / total
            bars.append(element("rect", class_=verdict, x=f"{start:.2f}", y=0, width=f"{width:.2f}", height=8))
            start += width
        entries = [element("li", element("strong", counts[verdict]), " ", _verdict(verdict)) for verdict in VERDICTS]
        bar = element("svg", *bars, class_="bar", viewBox="0 0 100 8", preserveAspectRatio="none", aria_hidden="true")
        made.append(element("div", element("h2", f"{title}: {total}"), bar, element("ul", *entries), class_="tally"))
    return element("div", *made, class_="tallies")


def _claims(rows: Sequence[Row]) -> Html:
    if not rows:
        return element("p", "No claim can be decided from these results.")
    counts = Counter(finding.verdict for _, finding, _ in rows)
    buttons = [
        element("button", f"All {len(rows)}", type="button", class_="choice", data_verdict="", aria_pressed="true")
    ]
    buttons += [
        element(
            "button",
            _symbol(verdict),
            f"{words} {counts[verdict]}",
            type="button",
            class_=f"choice {verdict}",
            data_verdict=verdict,
            aria_pressed="false",
        )
        for verdict, words in VERDICTS.items()
    ]
    controls = element(
        "div",
        element("div", *buttons, role="group", aria_label="Verdicts to show", class_="choices"),
        element("label", "Search ", element("input", type="search", id="search")),
        element("p", f"{len(rows)} of {len(rows)} claims are shown.", id="found", role="status"),
        class_="controls needs-script",
    )
    intro = element(
        "p",
        "A claim is decided by one number with its 95% interval over runs: reproduced only if the whole interval is on "
        "the claim's side, partly if the number alone is. With few runs intervals are wide.",
    )
    parts = [intro, controls]
    for title, own in (("Of the paper", False), ("Beyond the paper", True)):
        chosen = [row for row in rows if (row[0].where == BEYOND) == own]
        if chosen:
            name = "claims-own" if own else "claims-paper"
            parts += [element("h3", title, id=name), _claims_table(chosen, name)]
    parts.append(element("p", "No claim fits.", id="nothing", hidden=True))
    return join(*parts)


def _claims_table(rows: Sequence[Row], labelled_by: str) -> Html:
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
        aria_labelledby=labelled_by,
    )


def _claim(claim: Claim, finding: Finding, shown: Shown) -> Html:
    """One row; roles are named because cards on a phone are no table to some browsers."""
    number = finding.number
    found = [
        element("strong", f"{number.value:.3g}"),
        f" [{number.low:.3g}, {number.high:.3g}], {number.runs} runs: {finding.what}",
    ]
    if finding.note:
        found.append(element("details", element("summary", "Remarks"), element("p", finding.note)))
    name = shown.panel.name
    figure = join(
        element("a", f"Figure {name}" if _is_printed(name) else name, href=f"#{anchor('figure', name)}"),
        element("span", shown.results.scale, class_="scale"),
    )
    statement = join(
        element("p", claim.statement), element("p", f"{claim.where} · ", element("code", claim.name), class_="small")
    )
    cells = (("Verdict", _verdict(finding.verdict)), ("Claim", statement), ("Found", join(*found)), ("Figure", figure))
    return element(
        "tr",
        *(element("td", cell, role="cell", data_label=label) for label, cell in cells),
        role="row",
        id=anchor("claim", claim.name),
        data_verdict=finding.verdict,
    )


def _is_printed(name: str) -> bool:
    """Whether the paper has a figure of this name."""
    return name in PARTS


# --- figures --------------------------------------------------------------------------------------------------------


def command(name: str, scale: Scale) -> str:
    """Return what makes a panel's runs."""
    return f"uv run tlstd reproduce {name} --scale {scale}"


def _figures(made: Mapping[str, Html], missing: Sequence[str]) -> Html:
    index = element(
        "nav",
        element("ul", *(element("li", element("a", name, href=f"#{anchor('figure', name)}")) for name in made)),
        aria_label="Figures",
        class_="index",
    )
    parts = [index] if made else [element("p", "No panel is complete in these results.")]
    for part in (*dict.fromkeys(PARTS.values()), "Beyond the paper"):
        chosen = [figure for name, figure in made.items() if PARTS.get(name, "Beyond the paper") == part]
        if chosen:
            parts += [element("h3", part), element("div", *chosen, class_="cards")]
    if missing:
        entries = [
            element("li", f"{name}: {panel(name).title}. ", element("code", command(name, "quick"))) for name in missing
        ]
        parts += [element("h3", "Not computed"), element("ul", *entries, id="missing")]
    return join(*parts)


def _figure(name: str, shown: Shown, chart: Chart, palette: Palette) -> Html:
    made, scale = shown.panel, shown.results.scale
    title = f"{name}  {made.title}" if _is_printed(name) else made.title
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
    chips = [
        element(
            "li",
            element(
                "a",
                _verdict(finding.verdict),
                element("span", claim.statement),
                href=f"#{anchor('claim', claim.name)}",
            ),
        )
        for claim, finding in shown.judged
    ]
    numbers = element(
        "div",
        charts.table(chart, made.title),
        class_="scroll",
        tabindex="0",
        role="region",
        aria_label=f"Numbers of figure {name}",
    )
    return element(
        "article",
        element("h4", title, id=anchor("title", name)),
        element("div", charts.svg(chart, anchor("clip", name), made.title, palette), class_="plot", data_chart=name),
        element("div", *legend, class_="legend", role="group", aria_label="Lines to show"),
        element("p", made.caption, class_="caption"),
        element("p", behind, class_="small"),
        element("ul", *chips, class_="chips", aria_label="Claims") if chips else "",
        element(
            "details", element("summary", "Settings"), settings.describe(shown, command(name, scale)), class_="settings"
        ),
        element("details", element("summary", "Numbers"), numbers),
        class_="figure",
        id=anchor("figure", name),
        aria_labelledby=anchor("title", name),
    )


# --- explorer -------------------------------------------------------------------------------------------------------


def _explorer(exploring: dict[str, Any] | None) -> Html:
    if exploring is None:
        return element(
            "p", "Not computed. ", element("code", "uv run tlstd report --explore"), " computes it in some minutes."
        )
    problems = exploring["problems"]
    domains = dict.fromkeys(problem["domain"] for problem in problems)
    options = [element("option", domain, value=domain) for domain in domains]
    choices = {
        "features": ("Features", list(dict.fromkeys(problem["features"] for problem in problems))),
        "lambda": ("λ", sorted({v for problem in problems for v in problem["lambdas"]}, key=float)),
        "samples": ("Samples", sorted({v for problem in problems for v in problem["samples"]})),
    }
    controls = [
        element("label", element("span", "Domain"), element("select", *options, id="ex-domain"), class_="field"),
        *(_radios(name, *found) for name, found in choices.items()),
        element(
            "div",
            element("label", "Rank", for_="ex-rank"),
            element("input", type="range", id="ex-rank", min="0", max="1", step="1", value="0"),
            element("output", "", id="ex-rank-shown", for_="ex-rank"),
            class_="field rank",
        ),
    ]
    pictures = [
        _picture("truth", "True values"),
        _picture("estimate", "Estimate"),
        _picture("error", "Error: estimate less truth"),
    ]
    numbers = [
        element("div", element("dt", words), element("dd", "", id=f"ex-{name}"))
        for name, words in (
            ("rmse", "RMSE"),
            ("ratio", "RMSE over LSTD’s"),
            ("inverted", "Singular values used"),
            ("memory", "Memory"),
            ("learning", "CPU time per step"),
            ("reading", "CPU time to solve"),
        )
    ]
    plots = [
        element("figure", element("figcaption", "Spectrum: singular values over the largest"), _empty_plot("spectrum")),
        element("figure", element("figcaption", "RMSE against rank, with these settings"), _empty_plot("by-rank")),
    ]
    return join(
        element(
            "p",
            "What t-LSTD makes of one stream, for every rank. All pictures of a domain have the same colours for the "
            "same values, so that they can be compared.",
        ),
        element("noscript", element("p", "The explorer needs JavaScript.")),
        element(
            "div",
            element("form", *controls, class_="panel", id="ex-form", aria_label="What to show"),
            element("p", "", id="ex-status", role="status"),
            element("dl", *numbers, class_="readings"),
            element("div", *pictures, class_="pictures"),
            element("div", *plots, class_="plots"),
            element("p", "", id="ex-about", class_="small"),
            class_="needs-script explorer",
        ),
    )


def _radios(name: str, title: str, values: Sequence[object]) -> Html:
    entries = [
        element("label", element("input", type="radio", name=f"ex-{name}", value=value), element("span", _shown(value)))
        for value in values
    ]
    return element("fieldset", element("legend", title), element("div", *entries, class_="radios"))


def _shown(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _picture(name: str, title: str) -> Html:
    """A picture with its axes and its colours; the script fills it."""
    plot = element(
        "div",
        element("span", class_="y-label"),
        element("span", class_="y-high"),
        element("span", class_="y-low"),
        element("canvas", width=20, height=20, id=f"ex-{name}", role="img", aria_label=title),
        element("span", class_="x-low"),
        element("span", class_="x-label"),
        element("span", class_="x-high"),
        class_="axes",
        aria_hidden=False,
    )
    bar = element(
        "div",
        element("span", class_="low"),
        element("canvas", width=256, height=1, aria_hidden="true"),
        element("span", class_="high"),
        class_="colours",
    )
    extent = element("p", "", class_="extent", aria_hidden="true")  # also in the picture's name
    return element("figure", element("figcaption", title), plot, bar, extent, class_="picture")


def _empty_plot(name: str) -> Html:
    box = f"0 0 {charts.WIDTH} {charts.HEIGHT}"
    return element("svg", class_="chart", viewBox=box, id=f"ex-{name}", role="img", aria_label=name)


# --- the rest -------------------------------------------------------------------------------------------------------


def _lead(shown: Mapping[str, Shown]) -> str:
    scales = Counter(found.results.scale for found in shown.values())
    parts = [f"{count} at {scale} scale" for scale, count in scales.items()]
    return (
        "Gehring, Pan and White, IJCAI 2016: policy evaluation with a truncated singular value decomposition that is "
        f"kept up to date. Their figures and claims, and some beyond them, from stored runs: {len(shown)} figures"
        + (f" ({', '.join(parts)})." if parts else ".")
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
