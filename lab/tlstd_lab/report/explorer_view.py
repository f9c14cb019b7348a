"""The rank explorer's controls and empty pictures, which the script fills."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tlstd.page.markup import Html, element, join
from tlstd_lab.report import charts


def explorer(exploring: dict[str, Any] | None) -> Html:
    """Controls, readings, pictures and plots; or how to compute what they need."""
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
