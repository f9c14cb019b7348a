"""Parts of the page, one function each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tlstd.evaluation.evaluation import Evaluation
from tlstd.evaluation.trust import Check
from tlstd.logs.columns import ROLES
from tlstd.logs.table import FLAGS
from tlstd.page import charts
from tlstd.page.charts import Bar
from tlstd.page.markup import Html, element
from tlstd.page.numbers import number, signed

SHAPES = {
    "green": ("M12 1a11 11 0 1 0 0 22a11 11 0 0 0 0-22z", "M7 12.5l3.4 3.4L17 9"),
    "amber": ("M12 1.5L23.5 22H.5z", "M12 9v6M12 18.4v.2"),
    "red": ("M7 1h10l6 6v10l-6 6H7l-6-6V7z", "M8 8l8 8M16 8l-8 8"),
    "unchecked": ("M12 3a9 9 0 1 0 0 18a9 9 0 0 0 0-18z", "M8 12h8"),
}
"""A disc, a triangle, an octagon: told apart without colours."""


VISIBLE = 0.1
"""Of the answer's half-width: what figures are off by less is not spoken of."""


class Section(NamedTuple):
    """A part of the page below the answer."""

    name: str
    short: str
    title: str
    content: list[Html]


class Numbering:
    """Numbers of figures and tables, in order."""

    def __init__(self) -> None:
        self.figures = self.tables = 0

    def figure(self, chart: Html, title: str, see: str, *more: object, class_: str = "single") -> Html:
        """A numbered figure with a caption that says what to see."""
        self.figures += 1
        name = element("strong", f"Figure {self.figures}. {title}.")
        caption = element("figcaption", name, " ", see)
        return element("figure", chart, *more, caption, id=f"figure-{self.figures}", class_=class_)

    def table(self, title: str, head: Sequence[tuple[str, bool]], rows: Sequence[Sequence[object]]) -> Html:
        """A numbered table; ``head`` says which columns are numbers, and the first row is the answer's."""
        self.tables += 1
        caption = element("caption", f"Table {self.tables}. {title}")
        top = element(
            "tr", *(element("th", n, scope="col", class_="number" if is_number else None) for n, is_number in head)
        )
        made = []
        for row in rows:
            cells: list[Html] = [element("th", row[0], scope="row")]
            for (_, is_number), cell in zip(head[1:], row[1:], strict=True):
                cells.append(element("td", cell, class_="number" if is_number else None))
            made.append(element("tr", *cells))
        table = element("table", caption, element("thead", top), element("tbody", *made))
        return element("div", table, class_="scroll", tabindex="0", role="region", aria_label=f"Table {self.tables}")


def symbol(state: str) -> Html:
    """The light as a shape."""
    shape, mark = SHAPES[state]
    parts = element("path", d=shape, class_="shape"), element("path", d=mark, class_="mark")
    return element("svg", *parts, class_="symbol", viewBox="0 0 24 24", aria_hidden="true")


# --- the checks -----------------------------------------------------------------------------------------------------


def checks(evaluation: Evaluation, numbers: Numbering) -> Section | None:
    """All checks, the worst first."""
    trust = evaluation.trust
    if trust is None:
        return None
    made = [element("ul", *map(_check, trust.of_answer), class_="checks")]
    if trust.of_values:
        words = "The answer does not rest on the model's values of states. These checks are about them, not about it."
        made += [element("h3", "Values of states"), element("p", words)]
        made.append(element("ul", *map(_check, trust.of_values), class_="checks"))
    intro = (
        "Each check has a measured number, two thresholds and a reason for them. The light above is the worst of them"
    )
    if evaluation.comparison is not None:
        intro += f" and of those of {evaluation.comparison.name}; these are about {evaluation.policy_name}"
    return Section(
        "checks",
        "Checks",
        "Why to trust it, or not",
        [element("p", f"{intro}."), *made, element("p", trust.note, class_="small")],
    )


def _check(check: Check) -> Html:
    state = element("span", symbol(check.state), check.state, class_=f"state {check.state}")
    head = element("div", element("h3", check.title), state, class_="head")
    parts = [head, element("p", signed(check.sentence))]
    if check.value is not None:
        thresholds = element("p", f"Amber: {check.amber}. Red: {check.red}.")
        measured = element("p", f"Measured: {number(check.value, 3)}, the {check.measured}.")
        why = element("p", check.reason)
        parts.append(element("details", element("summary", "Number, thresholds, reason"), measured, thresholds, why))
    return element("li", *parts, class_=f"check {check.state}", id=f"check-{check.name}")


# --- another policy -------------------------------------------------------------------------------------------------


def compared(evaluation: Evaluation, numbers: Numbering) -> Section | None:
    """The policy beside another one."""
    comparison = evaluation.comparison
    if comparison is None:
        return None
    both = [(evaluation.policy_name, evaluation), (comparison.name, comparison.other)]
    bars, rows = [], []
    for i, (name, one) in enumerate(both):
        found = one.interval_or_none
        low, high = (None, None) if found is None else (found.low, found.high)
        bars.append(Bar(name, one.value, low, high, strong=i == 0))
        light = "unchecked" if one.trust is None else one.trust.light
        rows.append([name, *map(number, (one.value, low, high)), one.rows[0].name, light])
    found = comparison.difference
    rows.append(["the first less the second", *map(number, (found.value, found.low, found.high)), "", ""])
    see = (
        "What an episode adds to one value it adds in part to the other, so that the difference is known better than "
        "the two intervals say."
    )
    figure = numbers.figure(charts.listed(bars, "Both policies", "value"), "Both policies", see, class_="")
    head = [("policy", False), ("value", True), ("low", True), ("high", True), ("estimator", False), ("light", False)]
    table = numbers.table(f"Values and their difference, with {found.level:.0%} intervals", head, rows)
    content: list[Html] = [element("p", comparison.verdict), element("div", figure, table, class_="pair")]
    trust = comparison.other.trust
    if trust is not None and trust.reasons:
        listed = element("ul", *(element("li", signed(reason)) for reason in trust.reasons))
        content += [element("p", f"Reasons to doubt the value of {comparison.name}:"), listed]
    return Section("compared", "Compared", "Beside another policy", content)


# --- estimators -----------------------------------------------------------------------------------------------------


def estimators(evaluation: Evaluation, numbers: Numbering) -> Section | None:
    """The table of estimators, and its first column as a figure."""
    sets = list(evaluation.rows[0].values)
    bars = []
    for i, row in enumerate(evaluation.rows):
        found = evaluation.interval_or_none if i == 0 else row.interval
        low, high = (None, None) if found is None else (found.low, found.high)
        bars.append(Bar(row.name, row.value, low, high, strong=i == 0))
    see = "The first one is the answer, with its interval. Estimators that rest on different assumptions should agree."
    if any(row.name.endswith(" IS") for row in evaluation.rows):
        see += " Importance sampling is noisy: its rows may be far off without anything being wrong."
    chart = charts.listed(bars, "Values by estimator", "value")
    head = [("estimator", False), *((name, True) for name in sets), ("seconds", True), ("settings", False)]
    rows = [
        [row.name, *(number(row.values.get(s)) for s in sets), f"{row.seconds:.2f}", row.note]
        for row in evaluation.rows
    ]
    figure = numbers.figure(chart, "Estimators side by side", see, class_="")
    table = numbers.table("Values of each estimator, and what it took", head, rows)
    return Section(
        "estimators", "Estimators", "Estimators side by side", [element("div", figure, table, class_="pair")]
    )


# --- calibration ----------------------------------------------------------------------------------------------------


def calibration(evaluation: Evaluation, numbers: Numbering) -> Section | None:
    """Predicted against realised returns."""
    check = _of(evaluation, "calibration")
    if check is None or not check.data.get("parts"):
        return None
    chart = charts.calibration(check.data["parts"], "Predicted values and what came")
    see = (
        "Each dot is a tenth of the logged states, in the order of their predicted values; the bar is ± 2 standard "
        "errors over episodes. On the dashed line what was predicted came. Predictions are of episodes that the model "
        "had not seen."
    )
    if evaluation.policy is not None:
        see += " They are about the policy that acted, whose returns are in the log."
    figure = numbers.figure(chart, "Predicted and realised", see, class_="")
    words = [element("p", signed(check.sentence)), element("p", check.reason, class_="small")]
    content = [element("div", figure, element("div", *words, class_="beside"), class_="pair")]
    return Section("calibration", "Calibration", "Do predictions come true?", content)


def _of(evaluation: Evaluation, name: str) -> Check | None:
    if evaluation.trust is None:
        return None
    check = evaluation.trust[name]
    return None if check.state == "unchecked" else check


# --- values ---------------------------------------------------------------------------------------------------------


def _uncorrected(evaluation: Evaluation) -> str:
    """For captions: how far the model that figures show is from the answer; empty where nobody would see it."""
    plain, interval = evaluation.of_model.plain, evaluation.interval_or_none
    if plain is None or interval is None or not np.isfinite(evaluation.value):
        return ""
    off = plain - evaluation.value
    if abs(off) < VISIBLE * interval.half_width:
        return ""
    return f" Uncorrected model, on average {number(abs(off), 2)} {'below' if off < 0.0 else 'above'} the answer."


def _what_is_drawn(evaluation: Evaluation) -> list[Html]:
    """Before figures of the model: that it is not the answer, where it is not."""
    plain = evaluation.of_model.plain
    if plain is None or not _uncorrected(evaluation):
        return []
    check = None if evaluation.trust is None else evaluation.trust["regularisation"]
    words = (
        f"What is shown here are the values of the model before debiasing: {number(plain)} on average over the start "
        f"states, where the answer is {number(evaluation.value)}."
    )
    if check is None or check.state not in ("amber", "red"):
        return [element("p", words)]
    warned = f"{words} They are not the answer: do not read single values from these figures."
    return [element("p", element("strong", warned))]


def episodes(evaluation: Evaluation, numbers: Numbering) -> Section | None:
    """Values along some episodes."""
    views = evaluation.views
    if views is None or not views.episodes:
        return None
    figures = []
    for one in views.episodes:
        title = f"Values along episode {one.episode}"
        see = f"{one.length:,} steps."
        if one.returns is not None:
            see += " Values should run through the middle of what came, over many episodes."
        see += _uncorrected(evaluation)
        figures.append(numbers.figure(charts.along(one, title), title, see, class_=""))
    keys = [_key("strong", "value by the model")]
    if any(one.returns is not None for one in views.episodes):
        keys.append(_key("second", "what came from there on, discounted"))
    intro = element(
        "p",
        ("A short, a usual and a long episode of the log." if len(figures) == 3 else "Episodes of the log.")
        + " Point at a step, or touch it, for its numbers.",
    )
    content = [
        intro,
        *_what_is_drawn(evaluation),
        element("ul", *keys, class_="keys"),
        element("div", *figures, class_="many"),
    ]
    return Section("episodes", "Episodes", "Values along episodes", content)


def _key(kind: str, words: str) -> Html:
    return element("li", element("span", class_=f"key {kind}", aria_hidden="true"), element("span", words))


def maps(evaluation: Evaluation, numbers: Numbering) -> Section | None:
    """Heat maps of pairs of columns, or the values of discrete states."""
    views = evaluation.views
    if views is None or not (views.maps or views.states):
        return None
    if views.states:
        rows = [[str(s), f"{n:,}", number(v)] for s, n, v in views.states]
        title = (
            "Values of the states that were visited most"
            if len(rows) >= 40
            else "Values of the states that were visited"
        )
        title += f".{_uncorrected(evaluation)}"
        table = numbers.table(title, [("state", False), ("visits", True), ("value", True)], rows)
        content = [*_what_is_drawn(evaluation), element("div", table, class_="single")]
        return Section("maps", "States", "Values of states", content)
    known = np.concatenate([one.values[np.isfinite(one.values)] for one in views.maps])
    low, high = (float(q) for q in np.quantile(known, [0.02, 0.98])) if known.size else (0.0, 1.0)
    worse, better = (high, low) if evaluation.cost else (low, high)
    figures = []
    for one in views.maps:
        title = f"Value over {one.columns[0]} and {one.columns[1]}"
        see = f"{one.share:.0%} of the variation of values lies between these cells. Empty: nothing was logged there."
        see += _uncorrected(evaluation)
        figures.append(numbers.figure(charts.heat(one, worse, better, title), title, see, class_=""))
    intro = (
        "Mean value of the logged states in each cell, for the pairs of columns over which values vary most. Point at "
        "a cell, or touch it, for its numbers. All have the same colours"
        f"{', bright where costs are small' if evaluation.cost else ''}:"
    )
    legend = element("div", charts.legend(worse, better), class_="legend")
    return Section(
        "maps",
        "Maps",
        "Values over pairs of columns",
        [element("p", intro), *_what_is_drawn(evaluation), legend, element("div", *figures, class_="many")],
    )


# --- influence and sensitivity --------------------------------------------------------------------------------------


def influence(evaluation: Evaluation, numbers: Numbering) -> Section | None:
    """The episodes that the answer depends on most."""
    check = _of(evaluation, "influence")
    if check is None or not check.data.get("episodes"):
        return None
    listed = check.data["episodes"]
    word, name = ("", "block") if check.data.get("blocks") else ("episode ", "episode")
    entries = [(f"{word}{one['episode']}", one["share"], f"{one['share']:.1%}") for one in listed]
    chart = charts.shares(entries, f"The most influential {name}s", "share of the variance of the answer")
    see = f"If one bar is long, one {name} decides. The numbers are the log's names of the episodes."
    rows = [[one["episode"], number(one["moves_the_value_by"], 3), f"{one['share']:.1%}"] for one in listed]
    head = [(name, False), ("moves the value by", True), ("share of variance", True)]
    figure = numbers.figure(chart, f"The most influential {name}s", see, class_="")
    table = numbers.table("What they move the value by", head, rows)
    content = [element("p", signed(check.sentence)), element("div", figure, table, class_="pair")]
    return Section("influence", "Influence", "Which episodes matter", content)


def sensitivity(evaluation: Evaluation, numbers: Numbering) -> Section | None:
    """The answer under other choices."""
    check = _of(evaluation, "sensitivity")
    if check is None or not check.data.get("choices"):
        return None
    rows = check.data["choices"]
    bars = [Bar("as chosen", check.data["answer"], strong=True)]
    bars += [Bar(row["choice"], row["value"], faint=not row["counts"]) for row in rows]
    interval = evaluation.of_model.interval
    band = (interval.low, interval.high) if interval is not None and evaluation.policy is None else None
    what = "answer" if evaluation.by_returns is None else "value by least squares"
    chart = charts.listed(bars, f"The {what} under other choices", "value", band=band)
    see = (
        "Filled dots are choices that predict held-out returns as well; hollow ones predict worse, or change the "
        "question (γ)."
    )
    see += f" The band is the interval of the {what}." if band is not None else ""
    note = "" if evaluation.policy is None else "About the policy that acted, on which choices can be compared."
    head = [("choice", False), ("value", True), ("held-out returns", False)]
    cells = [[row["choice"], number(row["value"]), row["held_out"] or "another question"] for row in rows]
    table = numbers.table("Values under other choices", head, cells)
    content = [
        element("p", f"{signed(check.sentence)} {note}"),
        element("div", numbers.figure(chart, "Other choices", see, class_=""), table, class_="pair"),
    ]
    return Section("sensitivity", "Sensitivity", "What if others had chosen?", content)


# --- assumptions ----------------------------------------------------------------------------------------------------


def assumed(evaluation: Evaluation, numbers: Numbering) -> Section | None:
    """What was asked, which columns were read as what, what was assumed, and how parameters were chosen."""
    better = "costs: smaller is better" if evaluation.cost else "rewards: larger is better"
    rows = [["policy", evaluation.policy_name], ["γ", f"{evaluation.gamma:g}"], ["numbers are", better]]
    roles = {} if evaluation.fitted is None else evaluation.fitted.log.roles
    rows += [[f"read as {role.replace('_', ' ')}", ", ".join(roles[role])] for role in ROLES if role in roles]
    if roles and not any(flag in roles for flag in FLAGS):
        rows.append(["read as end", "no column"])
    table = numbers.table("What was asked, and read as what", [("what", False), ("here", False)], rows)
    notes = element("ul", *(element("li", signed(note)) for note in evaluation.notes), class_="notes")
    content = [element("div", table, class_="single")]
    content += [element("p", "About the log, and for the choice of parameters:"), notes]
    return Section("assumed", "Assumed", "What was assumed", content)


SECTIONS: tuple[Callable[[Evaluation, Numbering], Section | None], ...] = (
    checks,
    compared,
    estimators,
    calibration,
    episodes,
    maps,
    influence,
    sensitivity,
    assumed,
)
