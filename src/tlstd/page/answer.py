"""The first screen of the page: what the policy is worth, how sure that is, and the light."""

from __future__ import annotations

import numpy as np

from tlstd.evaluation.comparison import Comparison, sentence
from tlstd.evaluation.intervals import Interval
from tlstd.evaluation.report import Report
from tlstd.evaluation.rungs import REFUSAL
from tlstd.evaluation.silence import SilentInterval
from tlstd.evaluation.trust import Trust
from tlstd.evaluation.trust.verdict import ORDER
from tlstd.logs.messages import count_of
from tlstd.page.markup import Html, element, join
from tlstd.page.numbers import EXACT, number, rounded, signed
from tlstd.page.parts import class_of, symbol

VERDICTS = {
    "green": "No check found a reason to doubt this number",
    "unchecked": "Nothing in the log can test this number for bias",
    "amber": "Use this number with care",
    "red": "Do not rely on this number yet",
    "not applicable": "No check applies to this number",
}
OF_TWO = {
    "green": "No check found a reason to doubt these numbers",
    "unchecked": "Nothing in the log can test these numbers for bias",
    "amber": "Use these numbers with care",
    "red": "Do not rely on these numbers yet",
    "not applicable": "No check applies to these numbers",
}


NO_VALUE = "The log does not have enough of this policy for a value"


def title(report: Report) -> str:
    """What the page is called."""
    return headline(report) if report.rung == REFUSAL.name else f"Value {headline(report)}"


def headline(report: Report) -> str:
    """The value as it is shown."""
    interval = report.interval_or_none
    if report.rung == REFUSAL.name:
        return "No value"
    return number(report.value) if interval is None else rounded(report.value, interval.half_width)


def answer(report: Report) -> Html:
    """What the policy is worth, how sure that is, what it assumes, and the light."""
    interval = report.interval_or_none
    about: object = ""
    says = [element("p", _what(report), class_="says")]
    if interval is not None:
        if report.rung != REFUSAL.name:
            about = join(" ", element("span", _about(interval), class_="about"))
        low, high = (rounded(end, interval.half_width) for end in (interval.low, interval.high))
        known = element("strong", f"{interval.level:.0%} interval: {low} to {high}.")
        says.append(element("p", known, f" It covers {interval.covers}."))
        says += _two_parts(interval)
    says.append(element("p", element("strong", f"Rung: {report.rung}."), f" Assumption: {report.assumption}"))
    says += _best(report)
    if report.comparison is not None:
        says.append(_compared(report.comparison))
    big = element("p", headline(report), about, class_="value")
    head = "What the policy costs" if report.cost else "What the policy is worth"
    left = element("div", element("h1", head), big, *says)
    return element(
        "section",
        element("div", left, _light(report), class_="answer"),
        _facts(report),
        id="answer",
        aria_label="The answer",
    )


def _what(report: Report) -> str:
    starts = report.case.sets[0]
    name, n = starts.name, len(starts.observations)
    count = count_of(n, name.removeprefix("all ").removesuffix("s"))
    where = f"all {count}" if name.startswith("all ") else f"the {count}"
    what = "cost" if report.cost else "reward"
    of = report.policy_name
    if report.policy is not None and not of.startswith("the "):
        of = f"the target policy, {of}"
    return f"Mean discounted {what} from {where} on (γ = {report.gamma:g}), of {of}."


def _about(interval: Interval) -> str:
    """Half of the interval's width."""
    least = EXACT * abs(interval.value)
    if interval.half_width < least:
        return f"± less than {number(10.0 ** np.ceil(np.log10(least)), 1)}"
    return f"± {number(interval.half_width, 2)}"


def _two_parts(interval: Interval) -> list[Html]:
    """Of an interval where the log is silent: what is chance, and what the log does not have."""
    if not isinstance(interval, SilentInterval):
        return []
    parts = (
        f"Of its half-width {number(interval.half_width, 2)}, {number(interval.sampling, 2)} is chance, and "
        f"{number(interval.silence, 2)} is what the log does not have. "
    )
    return [element("p", parts, element("a", "Where the log is silent", href="#silence"), ".")]


def _best(report: Report) -> list[Html]:
    """The best estimate, where it is not the answer."""
    row = next(row for row in report.rows if row.name == report.best_by)
    if row is report.rows[0]:
        return []
    found = row.interval
    value = number(report.best_estimate) if found is None else rounded(report.best_estimate, found.half_width)
    words = f" It has the least estimated squared error. Assumption: {row.rung.assumption} "
    link = element("a", "Answers side by side", href="#rungs")
    return [element("p", element("strong", f"Best estimate: {value}, by {row.name}."), words, link, ".")]


def _compared(comparison: Comparison) -> Html:
    """How much more the policy is worth than another one."""
    found, name = comparison.difference, comparison.name
    if not np.isfinite(found.half_width):
        return element("p", f"No interval can be given of the difference from {name}.")
    low, high, size = (rounded(one, found.half_width) for one in (found.low, found.high, abs(found.value)))
    more = "more" if found.value >= 0.0 else "less"
    return element(
        "p",
        element("strong", f"That is {size} {more} than {name}. "),
        f"{found.level:.0%} interval of the difference: {low} to {high}. {comparison.verdict} ",
        element("a", "Both side by side", href="#compared"),
        ".",
    )


def _light(report: Report) -> Html:
    """The light with its reasons; of a comparison the worse of two, and whose reasons they are."""
    state, comparison = report.light, report.comparison
    words = (VERDICTS if comparison is None else OF_TWO)[state]
    if comparison is None and report.rung == REFUSAL.name:
        words = NO_VALUE
    head = element("h2", symbol(state), element("span", words))
    said = _shown(report.trust, state)
    if comparison is not None:
        said = []
        for name, trust in ((report.policy_name, report.trust), (comparison.name, comparison.other.trust)):
            reasons = _shown(trust, state)
            own = f" is {trust.light}" if trust.light == state else f" is {trust.light}, not {state}"
            said += [element("p", element("strong", sentence(name)), own, ":" if reasons else "."), *reasons]
    counts, link = f"{_counted(report.trust)}: ", "all of them"
    if comparison is not None:
        counts, link = "Both policies were checked: ", f"all checks of {report.policy_name}"
    more = element("p", counts, element("a", link, href="#checks"), ".")
    kind = class_of(state)
    return element("div", head, *said, more, class_=f"light {kind}", role="group", aria_label=f"Trust: {state}")


def _shown(trust: Trust, state: str) -> list[Html]:
    """The reasons for a state, as a list; none for green."""
    if state in ("green", "not applicable"):
        return []
    shown = [check for check in trust.of_answer if check.state == state]
    return [element("ul", *(element("li", signed(check.sentence)) for check in shown))] if shown else []


def _counted(trust: Trust) -> str:
    """How many checks apply to the answer, and how many of them have each state."""
    states = [check.state for check in trust.of_answer if check.state != "not applicable"]
    counts = [f"{states.count(state)} {state}" for state in ORDER if state in states]
    return f"{count_of(len(states), 'check')} of this number ({', '.join(counts)})"


def _facts(report: Report) -> Html:
    log = report.log
    ended, size = int(log.terminated.sum()), f"{len(log):,} steps"
    size = f"{len(log):,} of {report.n_steps:,} steps" if report.n_steps > len(log) else size
    of_which = f" in {count_of(log.n_episodes, 'episode')}, of which {ended:,} terminated"
    facts = [
        ("Log", report.source),
        ("Size", size + (of_which if log.has_ends else ", one stream without an end")),
        ("Estimator", signed(f"{report.rows[0].name}, {report.rows[0].note}")),
        ("Features", repr(report.features)),
    ]
    return element("dl", *(element("div", element("dt", n), element("dd", w)) for n, w in facts), class_="facts")
