"""The first screen of the page: what the policy is worth, how sure that is, and the light."""

from __future__ import annotations

import numpy as np

from tlstd.evaluation.comparison import Comparison, sentence
from tlstd.evaluation.evaluation import Evaluation
from tlstd.evaluation.intervals import Interval
from tlstd.evaluation.rungs import REFUSAL
from tlstd.evaluation.trust import Trust
from tlstd.logs.messages import count_of
from tlstd.page.markup import Html, element, join
from tlstd.page.numbers import EXACT, number, rounded, signed
from tlstd.page.parts import symbol

VERDICTS = {
    "green": "No check found a reason to doubt this number",
    "amber": "Use this number with care",
    "red": "Do not rely on this number yet",
    "unchecked": "This number was not checked",
}
OF_TWO = {
    "green": "No check found a reason to doubt these numbers",
    "amber": "Use these numbers with care",
    "red": "Do not rely on these numbers yet",
    "unchecked": "These numbers were not checked",
}


def headline(evaluation: Evaluation) -> str:
    """The value as it is shown."""
    interval = evaluation.interval_or_none
    if evaluation.rung == REFUSAL.name:
        return "No value"
    return number(evaluation.value) if interval is None else rounded(evaluation.value, interval.half_width)


def answer(evaluation: Evaluation) -> Html:
    """What the policy is worth, how sure that is, and the light."""
    interval = evaluation.interval_or_none
    about: object = ""
    says = [element("p", _what(evaluation), class_="says")]
    if interval is not None and np.isfinite(interval.half_width):
        if evaluation.rung != REFUSAL.name:
            about = join(" ", element("span", _about(interval), class_="about"))
        low, high = (rounded(end, interval.half_width) for end in (interval.low, interval.high))
        head = element("strong", f"{interval.level:.0%} interval: {low} to {high}.")
        says.append(element("p", head, f" It covers {interval.covers}."))
    says.append(element("p", element("strong", f"By {evaluation.rung}."), f" Assumed: {evaluation.assumption}"))
    if evaluation.comparison is not None:
        says.append(_compared(evaluation.comparison))
    big = element("p", headline(evaluation), about, class_="value")
    title = "What the policy costs" if evaluation.cost else "What the policy is worth"
    left = element("div", element("h1", title), big, *says)
    return element(
        "section",
        element("div", left, _light(evaluation), class_="answer"),
        _facts(evaluation),
        id="answer",
        aria_label="The answer",
    )


def _what(evaluation: Evaluation) -> str:
    name = next(iter(evaluation.rows[0].values), "start states")
    who = evaluation.policy_name
    if evaluation.policy is not None:
        who += ", another policy than the one that acted"
    fitted = evaluation.fitted
    where = f"the {name}"
    if fitted is not None and name in fitted.starts:
        count = count_of(len(fitted.starts[name].observations), name.removeprefix("all ").removesuffix("s"))
        where = f"all {count}" if name.startswith("all ") else f"the {count}"
    what = "cost" if evaluation.cost else "reward"
    return f"Mean discounted {what} from {where} on (γ = {evaluation.gamma:g}), of {who}."


def _about(interval: Interval) -> str:
    """Half of the interval's width."""
    least = EXACT * abs(interval.value)
    if interval.half_width < least:
        return f"± less than {number(10.0 ** np.ceil(np.log10(least)), 1)}"
    return f"± {number(interval.half_width, 2)}"


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


def _light(evaluation: Evaluation) -> Html:
    """The light with its reasons; of a comparison the worse of two, and whose reasons they are."""
    state, comparison = evaluation.light, evaluation.comparison
    words = VERDICTS if comparison is None else OF_TWO
    head = element("h2", symbol(state), element("span", words[state]))
    if evaluation.trust is None:
        return element("div", head, class_="light unchecked")
    named: list[tuple[str, Trust | None]] = [(evaluation.policy_name, evaluation.trust)]
    if comparison is not None:
        named.append((comparison.name, comparison.other.trust))
    said: list[Html] = []
    for name, trust in named:
        if trust is None:
            continue
        own = f" is {trust.light}" if trust.light == state else f" is {trust.light}, not {state}"
        if comparison is not None:
            said.append(
                element("p", element("strong", sentence(name)), f"{own}:" if _shown(trust, state) else f"{own}.")
            )
        said += _shown(trust, state)
    link = "all of them" if comparison is None else f"all checks of {evaluation.policy_name}"
    more = element(
        "p", _counts(evaluation.trust, state, comparison is not None), element("a", link, href="#checks"), "."
    )
    return element("div", head, *said, more, class_=f"light {state}", role="group", aria_label=f"Trust: {state}")


def _shown(trust: Trust, state: str) -> list[Html]:
    """The reasons for a state, as a list; none for green."""
    shown = [check for check in trust.of_answer if check.state == state] if state != "green" else []
    return [element("ul", *(element("li", signed(check.sentence)) for check in shown))] if shown else []


def _counts(trust: Trust, state: str, of_two: bool) -> str:
    if of_two:
        return "Both policies were checked: "
    others = sum(check.state == "amber" for check in trust.of_answer) if state == "red" else 0
    n = sum(check.state != "unchecked" for check in trust.of_answer)
    return (
        f"{n} checks were made" + (f"; {others} more {'is' if others == 1 else 'are'} amber" if others else "") + ": "
    )


def _facts(evaluation: Evaluation) -> Html:
    facts: list[tuple[str, object]] = [("Log", evaluation.source)]
    if evaluation.fitted is not None:
        log = evaluation.fitted.log
        ended, size = int(log.terminated.sum()), f"{len(log):,} steps"
        size = f"{len(log):,} of {evaluation.n_steps:,} steps" if evaluation.n_steps > len(log) else size
        of_which = f" in {count_of(log.n_episodes, 'episode')}, of which {ended:,} ended"
        facts.append(("Size", size + (of_which if log.has_ends else ", one stream without an end")))
    facts.append(("Estimator", signed(f"{evaluation.rows[0].name}, {evaluation.rows[0].note}")))
    facts.append(("Features", repr(evaluation.model.features)))
    return element("dl", *(element("div", element("dt", n), element("dd", w)) for n, w in facts), class_="facts")
