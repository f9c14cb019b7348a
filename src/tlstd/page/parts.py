"""Parts of the page, one function each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tlstd.evaluation.intervals import Interval
from tlstd.evaluation.ladder import Row
from tlstd.evaluation.report import Report
from tlstd.evaluation.rungs import REFUSAL, RETURNS_WITH_TAILS
from tlstd.evaluation.trust import Check
from tlstd.logs.columns import ROLES
from tlstd.logs.messages import count_of
from tlstd.logs.table import FLAGS
from tlstd.page import charts
from tlstd.page.charts import Bar
from tlstd.page.markup import Html, element
from tlstd.page.numbers import number, signed

SHAPES = {
    "green": ("M12 1a11 11 0 1 0 0 22a11 11 0 0 0 0-22z", "M7 12.5l3.4 3.4L17 9"),
    "unchecked": (
        "M5 1h14q4 0 4 4v14q0 4-4 4H5q-4 0-4-4V5q0-4 4-4z",
        "M8.6 8.8a3.5 3.4 0 1 1 4.8 3.1q-1.4.6-1.4 2.2M12 18v.2",
    ),
    "amber": ("M12 1.5L23.5 22H.5z", "M12 9v6M12 18.4v.2"),
    "red": ("M7 1h10l6 6v10l-6 6H7l-6-6V7z", "M8 8l8 8M16 8l-8 8"),
    "not applicable": ("M12 3a9 9 0 1 0 0 18a9 9 0 0 0 0-18z", "M8 12h8"),
}
"""A disc, a square, a triangle, an octagon and a ring, told apart without colours."""

VISIBLE = 0.1
"""Of the answer's half-width: smaller discrepancies between figures and the answer are not mentioned."""


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

    def table(
        self,
        title: str,
        head: Sequence[tuple[str, bool]],
        rows: Sequence[Sequence[object]],
        class_: str | None = None,
    ) -> Html:
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
        table = element("table", caption, element("thead", top), element("tbody", *made), class_=class_)
        return element("div", table, class_="scroll", tabindex="0", role="region", aria_label=f"Table {self.tables}")


def class_of(state: str) -> str:
    """A state as a class of the style sheet."""
    return state.replace(" ", "-")


def symbol(state: str) -> Html:
    """The light as a shape."""
    shape, mark = SHAPES[state]
    parts = element("path", d=shape, class_="shape"), element("path", d=mark, class_="mark")
    return element("svg", *parts, class_="symbol", viewBox="0 0 24 24", aria_hidden="true")


# --- the checks -----------------------------------------------------------------------------------------------------


def checks(report: Report, numbers: Numbering) -> Section | None:
    """The checks: open where there is a doubt, and folded where they passed or do not apply."""
    trust = report.trust
    intro = (
        "Each check has a measured number, two thresholds and a reason for them. The light above is the worst of the "
        "checks of the answer"
    )
    if report.comparison is not None:
        intro += f", and of those of {report.comparison.name}. These are about {report.policy_name}"
    made = [element("p", f"{intro}."), *_groups(trust.of_answer, "h3")]
    if trust.of_values:
        words = "The answer does not rest on the model's values of states. These checks are about them, not about it."
        made += [element("h3", "Values of states"), element("p", words), *_groups(trust.of_values, "h4")]
    return Section("checks", "Checks", "Reasons to trust it, or not", [*made, element("p", trust.note, class_="small")])


def _groups(checks: Sequence[Check], level: str) -> list[Html]:
    """Checks with a doubt, those that passed, and those that do not apply."""
    passed, beside = ([check for check in checks if check.state == state] for state in ("green", "not applicable"))
    doubts = [check for check in checks if check not in passed and check not in beside]
    made = [_listed(doubts, level)] if doubts else []
    if passed:
        made.append(_folded(f"{count_of(len(passed), 'check')} passed", _listed(passed, level)))
    if beside:
        words = f"{count_of(len(beside), 'check')} {'does' if len(beside) == 1 else 'do'} not apply here"
        made.append(_folded(words, _listed(beside, level)))
    return made


def _folded(title: str, *content: Html) -> Html:
    return element("details", element("summary", title), *content, class_="fold")


def _listed(checks: Sequence[Check], level: str) -> Html:
    return element("ul", *(_check(check, level) for check in checks), class_="checks")


def _check(check: Check, level: str) -> Html:
    kind = class_of(check.state)
    state = element("span", symbol(check.state), check.state, class_=f"state {kind}")
    head = element("div", element(level, check.title), state, class_="head")
    parts = [head, element("p", signed(check.sentence))]
    if check.value is not None:
        more = [element("p", f"Measured: {number(check.value, 3)}, the {check.measured}.")]
        if check.amber or check.red:
            more.append(element("p", f"Amber: {check.amber}. Red: {check.red}."))
        more.append(element("p", check.reason))
        parts.append(element("details", element("summary", "Number, thresholds, reason"), *more))
    return element("li", *parts, class_=f"check {kind}", id=f"check-{check.name}")


# --- another policy -------------------------------------------------------------------------------------------------


def compared(report: Report, numbers: Numbering) -> Section | None:
    """The policy beside another one."""
    comparison = report.comparison
    if comparison is None:
        return None
    bars, rows = [], []
    for i, (name, one) in enumerate(((report.policy_name, report), (comparison.name, comparison.other))):
        own = one.interval_or_none
        bars.append(_bar(name, one.value, own, strong=i == 0))
        rows.append([name, number(one.value), _between(own), one.rung, one.trust.light])
    found = comparison.difference
    rows.append(["the first less the second", number(found.value), _between(found), "", ""])
    see = (
        "What an episode adds to one value it adds in part to the other. So the difference is known better than the "
        "two intervals say."
    )
    figure = numbers.figure(charts.listed(bars, "Both policies", "value"), "Both policies", see)
    head = [("policy", False), ("value", True), (f"{found.level:.0%} interval", True), ("rung", False)]
    table = numbers.table("Values and their difference", [*head, ("light", False)], rows)
    content: list[Html] = [element("p", comparison.verdict), figure, table]
    reasons = comparison.other.trust.reasons
    if reasons:
        listed = element("ul", *(element("li", signed(reason)) for reason in reasons))
        content += [element("p", f"Reasons to doubt the value of {comparison.name}:"), listed]
    return Section("compared", "Compared", "Comparison with another policy", content)


# --- answers --------------------------------------------------------------------------------------------------------


def rungs(report: Report, numbers: Numbering) -> Section | None:
    """What each rung says, and what it assumes."""
    level = next((f"{row.interval.level:.0%} " for row in report.rows if row.interval is not None), "")
    sets = list(report.rows[0].values)
    bars, rows, costs = [], [], []
    for i, row in enumerate(report.rows):
        value = report.value if i == 0 else row.value
        rung, assumption = (report.rung, report.assumption) if i == 0 else row.rung
        bars.append(_bar(row.name, value, row.interval, strong=i == 0))
        others = [number(row.values.get(name)) for name in sets[1:]]
        rows.append([row.name, rung, number(value), _between(row.interval), *others, assumption])
        costs.append([row.name, f"{row.seconds:.2f}", signed(row.note)])
    see = "The first one is the answer. The others should agree with it as far as their intervals allow."
    if any(row.name.endswith(" IS") for row in report.rows):
        see += " Importance sampling is noisy: its rows may be far off without anything being wrong."
    figure = numbers.figure(charts.listed(bars, "Answers side by side", "value"), "Answers side by side", see)
    head = [("answer", False), ("rung", False), ("value", True), (f"{level}interval", True)]
    head += [*((name, True) for name in sets[1:]), ("what it assumes", False)]
    table = numbers.table("Answers and assumptions", head, rows, class_="words")
    times = numbers.table("Settings and seconds", [("answer", False), ("seconds", True), ("settings", False)], costs)
    content = [element("p", _which(report)), figure, table, _folded("Settings and time", times)]
    return Section("rungs", "Answers", "Answers by what they assume", content)


def _bar(name: str, value: float, interval: Interval | None, *, strong: bool) -> Bar:
    low, high = (None, None) if interval is None else (interval.low, interval.high)
    return Bar(name, value, low, high, strong=strong)


def _between(interval: Interval | None) -> str:
    """An interval in a table."""
    if interval is None or not np.isfinite(interval.half_width):
        return "–"
    return f"{number(interval.low)} to {number(interval.high)}"


def _which(report: Report) -> str:
    words = "Each rung has the value in another way. The answer assumes least of those that the log can carry."
    if report.rung == REFUSAL.name:
        words = "Each rung has the value in another way. The log can carry none of them: the first line has no value."
    if report.best_by == report.rows[0].name:
        return words
    return (
        f"{words} The best estimate is {number(report.best_estimate)}, by {report.best_by}: it has the least estimated "
        "squared error, and assumes more."
    )


# --- what the log does not have -------------------------------------------------------------------------------------


def silence(report: Report, numbers: Numbering) -> Section | None:
    """The two parts of an interval where the log does not have the policy's actions, and which are missing."""
    found = report.silence
    if found is None:
        return None
    interval, limits = found.interval, found.limits
    low, high = interval.lower, interval.upper
    bars = [
        Bar("the interval", report.value, interval.low, interval.high, strong=True),
        Bar(f"if worth {number(limits.low)}", low.value, low.low, low.high),
        Bar(f"if worth {number(limits.high)}", high.value, high.low, high.high),
    ]
    see = (
        "The value if missing actions are worth the least, and the most, that returns allow. The band, from L to U, is "
        "what the log does not have: a longer log of the same policy does not make it narrower. The rest is chance."
    )
    chart = charts.listed(bars, "Parts of the interval", "value", band=(low.value, high.value))
    figure = numbers.figure(chart, "Parts of the interval", see, class_="")
    given = "as given" if limits.given else "the range in the log, an assumption"
    kind = "a bound" if found.is_bound else "a sensitivity, because features overlap"
    parts = [
        ["half-width", number(interval.half_width)],
        ["of it chance", number(interval.sampling)],
        ["of it what the log does not have", number(interval.silence)],
        [f"L, if missing actions are worth {number(limits.low)}", number(low.value)],
        [f"U, if they are worth {number(limits.high)}", number(high.value)],
        ["discounted probability of a missing action", number(found.mass)],
    ]
    table = numbers.table("Parts of the interval", [("what", False), ("value", True)], parts)
    rows = [[one.action, one.state, number(one.mass, 2)] for one in found.missing]
    head = [("action", False), ("where", False), ("discounted probability", True)]
    missing = numbers.table("Actions that the log does not have", head, rows)
    words = (
        f"The policy takes actions that the log does not have. Each counts as worth {number(limits.low)} to "
        f"{number(limits.high)} ({given}). What is between L and U is {kind}."
    )
    if found.refuses:
        words += " The interval is too wide, because of them, for a value."
    content = [element("p", words), element("div", figure, element("div", table, missing), class_="pair")]
    return Section("silence", "Silence", "Where the log is silent", content)


def tails(report: Report, numbers: Numbering) -> Section | None:
    """What lies behind the cuts of episodes, and whether values there are right."""
    check, found = _of(report, "tails"), report.case.tails
    if check is None or found is None or report.rung != RETURNS_WITH_TAILS.name:
        return None
    rows = [
        ["added to the value", number(found.added, 3)],
        ["added to a return, mean absolute amount", number(found.size, 3)],
    ]
    if found.bias is not None:
        error = f"{number(found.bias.value, 3)} ± {number(2.0 * found.bias.standard_error, 2)}"
        rows.append(["error of the value, by cutting complete episodes", error])
    table = numbers.table("What lies behind the cuts, by the model", [("what", False), ("amount", True)], rows)
    words = "Episodes that were cut off go on. What lies behind the cut is completed by the model's values."
    content = [element("p", words), element("div", table, class_="single"), element("p", signed(check.sentence))]
    return Section("tails", "Tails", "Returns behind cut-off episodes", content)


# --- calibration ----------------------------------------------------------------------------------------------------


def calibration(report: Report, numbers: Numbering) -> Section | None:
    """Predicted against realised returns."""
    check = _of(report, "calibration")
    if check is None or not check.data.get("parts"):
        return None
    chart = charts.calibration(check.data["parts"], "Predicted values and returns")
    see = (
        "Each dot is a tenth of the logged states, in the order of their predicted values; the bar is ± 2 standard "
        "errors over episodes. On the dashed line returns are as predicted. Predictions are of episodes that the model "
        "had not seen."
    )
    figure = numbers.figure(chart, "Predicted and realised", see, class_="")
    words = [element("p", signed(check.sentence)), element("p", check.reason, class_="small")]
    content = [element("div", figure, element("div", *words, class_="beside"), class_="pair")]
    return Section("calibration", "Calibration", "Predictions and returns", content)


def _of(report: Report, name: str) -> Check | None:
    check = report.trust[name]
    return None if check.state == "not applicable" else check


# --- values ---------------------------------------------------------------------------------------------------------


def _drawn(report: Report) -> Row | None:
    """The row of the model whose values figures show, if it is in the table."""
    return next((row for row in report.rows if row.name == report.fit.name), None)


def _uncorrected(report: Report) -> str:
    """For captions: how far the model that figures show is from the answer; empty where nobody would see it."""
    row, interval = _drawn(report), report.interval_or_none
    if row is None or row.plain is None or interval is None or not np.isfinite(report.value):
        return ""
    off = row.plain - report.value
    if abs(off) < VISIBLE * interval.half_width:
        return ""
    return f" Uncorrected model, on average {number(abs(off), 2)} {'below' if off < 0.0 else 'above'} the answer."


def _what_is_drawn(report: Report) -> list[Html]:
    """Before figures of the model: that it is not the answer, where it is not."""
    row, words, warned = _drawn(report), [], False
    if report.fit.silent:
        worth = number(report.fit.worth)
        words.append(f"Actions that the log does not have count as worth {worth} here, the middle of their range.")
    if report.rung == REFUSAL.name:
        words.append("There is no value, so do not read single values from these figures.")
        warned = True
    elif row is not None and row.plain is not None and _uncorrected(report):
        words.append(
            f"The values here are those of the model before debiasing: {number(row.plain)} on average over the start "
            f"states. The answer is {number(report.value)}."
        )
        if report.trust["regularisation"].state in ("amber", "red"):
            words.append("They are not the answer: do not read single values from these figures.")
            warned = True
    shown = element("strong", " ".join(words)) if warned else " ".join(words)
    return [element("p", shown)] if words else []


def episodes(report: Report, numbers: Numbering) -> Section | None:
    """Values along some episodes."""
    views = report.views
    if not views.episodes:
        return None
    figures = []
    for one in views.episodes:
        title = f"Values along episode {one.episode}"
        see = f"{one.length:,} steps."
        if one.returns is not None:
            see += " Over many episodes, returns should lie around the values on both sides."
        see += _uncorrected(report)
        figures.append(numbers.figure(charts.along(one, title), title, see, class_=""))
    keys = [_key("strong", f"value by {report.fit.name}")]
    if any(one.returns is not None for one in views.episodes):
        keys.append(_key("second", "discounted return from there on"))
    intro = element(
        "p",
        ("A short, a usual and a long episode of the log." if len(figures) == 3 else "Episodes of the log.")
        + " Point at a step, or touch it, for its numbers.",
    )
    content = [
        intro,
        *_what_is_drawn(report),
        element("ul", *keys, class_="keys"),
        element("div", *figures, class_="many"),
    ]
    return Section("episodes", "Episodes", "Values along episodes", content)


def _key(kind: str, words: str) -> Html:
    return element("li", element("span", class_=f"key {kind}", aria_hidden="true"), element("span", words))


def maps(report: Report, numbers: Numbering) -> Section | None:
    """Heat maps of pairs of columns, or the values of discrete states."""
    views = report.views
    if not (views.maps or views.states):
        return None
    if views.states:
        rows = [[str(s), f"{n:,}", number(v)] for s, n, v in views.states]
        title = (
            "Values of the states that were visited most"
            if len(rows) >= 40
            else "Values of the states that were visited"
        )
        title += f".{_uncorrected(report)}"
        table = numbers.table(title, [("state", False), ("visits", True), ("value", True)], rows)
        content = [*_what_is_drawn(report), element("div", table, class_="single")]
        return Section("maps", "States", "Values of states", content)
    known = np.concatenate([one.values[np.isfinite(one.values)] for one in views.maps])
    low, high = (float(q) for q in np.quantile(known, [0.02, 0.98])) if known.size else (0.0, 1.0)
    worse, better = (high, low) if report.cost else (low, high)
    figures = []
    for one in views.maps:
        title = f"Value over {one.columns[0]} and {one.columns[1]}"
        see = f"{one.share:.0%} of the variation of values lies between these cells. Empty: nothing was logged there."
        see += _uncorrected(report)
        figures.append(numbers.figure(charts.heat(one, worse, better, title), title, see, class_=""))
    intro = (
        "Mean value of the logged states in each cell, for the pairs of columns over which values vary most. Point at "
        "a cell, or touch it, for its numbers. All have the same colours"
        f"{', bright where costs are small' if report.cost else ''}:"
    )
    legend = element("div", charts.legend(worse, better), class_="legend")
    return Section(
        "maps",
        "Maps",
        "Values over pairs of columns",
        [element("p", intro), *_what_is_drawn(report), legend, element("div", *figures, class_="many")],
    )


# --- influence ------------------------------------------------------------------------------------------------------


def influence(report: Report, numbers: Numbering) -> Section | None:
    """The episodes that the answer depends on most."""
    check = _of(report, "influence")
    if check is None or not check.data.get("episodes"):
        return None
    listed = check.data["episodes"]
    word, name = ("", "block") if check.data.get("blocks") else ("episode ", "episode")
    entries = [(f"{word}{one['episode']}", one["share"], f"{one['share']:.1%}") for one in listed]
    chart = charts.shares(entries, f"The most influential {name}s", "share of the variance of the answer")
    see = f"If one bar is long, one {name} decides the answer." + (" Names are those of the log." if word else "")
    rows = [[one["episode"], number(one["moves_the_value_by"], 3), f"{one['share']:.1%}"] for one in listed]
    head = [(name, False), ("moves the value by", True), ("share of variance", True)]
    figure = numbers.figure(chart, f"The most influential {name}s", see, class_="")
    table = numbers.table("What they move the value by", head, rows)
    content = [element("p", signed(check.sentence)), element("div", figure, table, class_="pair")]
    return Section("influence", "Influence", "Influence of single episodes", content)


# --- assumptions ----------------------------------------------------------------------------------------------------


def assumed(report: Report, numbers: Numbering) -> Section | None:
    """What was asked, which columns were read as what, what was assumed, and how parameters were chosen."""
    better = "costs: smaller is better" if report.cost else "rewards: larger is better"
    rows = [["policy", report.policy_name], ["γ", f"{report.gamma:g}"], ["numbers are", better]]
    roles = report.log.roles
    rows += [[f"read as {role.replace('_', ' ')}", ", ".join(roles[role])] for role in ROLES if role in roles]
    if roles and not any(flag in roles for flag in FLAGS):
        rows.append(["read as end", "no column"])
    table = numbers.table("What was asked, and read as what", [("what", False), ("here", False)], rows)
    notes = element("ul", *(element("li", signed(note)) for note in report.notes), class_="notes")
    content = [element("div", table, class_="single")]
    content += [element("p", "Notes about the log and the choice of parameters:"), notes]
    return Section("assumed", "Assumed", "Question and assumptions", content)


SECTIONS: tuple[Callable[[Report, Numbering], Section | None], ...] = (
    checks,
    compared,
    rungs,
    silence,
    tails,
    calibration,
    episodes,
    maps,
    influence,
    assumed,
)
