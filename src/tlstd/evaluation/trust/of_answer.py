"""Checks of what the answer stands on: episodes, weights, tails, and the rungs below it."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import betaincc

from tlstd.core.arrays import FloatArray
from tlstd.core.units import power_of_two
from tlstd.evaluation.episode_values import EpisodeValue, effective_number
from tlstd.evaluation.intervals import skewness_of
from tlstd.evaluation.ladder import by_block, by_episode, unit_names
from tlstd.evaluation.rungs import ACTION_VALUES, DOUBLY_ROBUST, MEAN_OF_RETURNS, REFUSAL, WITH_RATIOS
from tlstd.evaluation.silence import REFUSED
from tlstd.evaluation.trust.evidence import TRIFLE, Evidence
from tlstd.evaluation.trust.of_log import ENOUGH, FEW
from tlstd.evaluation.trust.verdict import CERTAIN, LIKELY, Check, chance, graded, not_applicable, percent

LARGE, DOMINANT = 0.25, 0.5
"""Shares of the variance of the answer that come from one episode."""
RARE = 0.01
"""A chance: of ten blocks one has a quarter of the variance more often than not."""
LISTED = 5
"""Episodes that are listed."""
SKEWED = 1.0 / 3.0
"""Skewness of the answer from which its tail rests on fewer than about nine episodes."""
UNEVEN = 0.9
"""Share of the number of episodes: blocks of a stream that differ by a few steps are worth a little less than their
number, which the check of episodes is about."""
WRONG, VERY_WRONG = 0.05, 0.1
"""Differences of the mean ratio from 1."""
SOME, ALL = 0.1, 1.0
"""Half-widths by which two answers differ: less does not matter, and more is amber; more than one is red."""


def effective(evidence: Evidence) -> Check:
    """How many equally important episodes would say as much."""
    name, title, found = "effective", "Effective sample size", evidence.answer.middle
    if found is None or not found.contributions.size:
        return not_applicable(name, title, "It is not known what each episode adds to the answer.")
    groups = float(found.contributions.size)
    worth = min(found.degrees + 1.0, groups)
    weights = evidence.rung == DOUBLY_ROBUST.name
    enough = float(ENOUGH if not weights else 40)
    state = graded(worth < min(enough, UNEVEN * groups), worth < FEW)
    sentence = f"The {groups:,.0f} episodes (or blocks) are worth {worth:,.0f} equally important ones"
    if state != "green":
        sentence += (
            ": few steps are where the policy would be. Log a policy that is closer to it, or more of this one"
            if not evidence.on_policy
            else ": most steps say little about what is asked. Log more"
        )
    data: dict[str, Any] = {"episodes": groups}
    by_model = (
        evidence.case.by_state if evidence.case.by_state is not None else next(iter(evidence.case.by_action), None)
    )
    if by_model is not None:
        ratios = by_model.density_ratios
        levels = (0.0, 0.05, 0.5, 0.95, 0.99, 1.0)
        quantiles = np.quantile(ratios, levels).tolist() if ratios.size else [0.0] * len(levels)
        data |= {
            "effective_steps": effective_number(ratios),
            "steps": ratios.size,
            "density_ratios": {f"{q:g}": v for q, v in zip(levels, quantiles, strict=True)},
        }
    return Check(
        name,
        title,
        state,
        worth,
        "episodes, counted by what each adds to the variance of the answer",
        f"below {ENOUGH}",
        f"below {FEW}",
        "What is asked may rest on a small part of the log. Counted like that, the thresholds are those of the number "
        "of episodes.",
        f"{sentence}.",
        data,
    )


def influence(evidence: Evidence) -> Check:
    """The share of the answer's variance that comes from one episode, and how skewed the answer is."""
    name, title, found = "influence", "Influence of single episodes", evidence.answer.middle
    if found is None or found.contributions.size < 2:
        return not_applicable(name, title, "It is not known what each episode adds to the answer.")
    moves, log, steps = found.contributions, evidence.log, evidence.case.steps_of(found)
    blocks = moves.size != log.n_episodes or (steps.n_blocks > 0 and moves.size == steps.n_groups)
    names = unit_names(evidence.case, found)
    relative = moves / power_of_two(moves)
    total = max(float(relative @ relative), 1e-300)
    share = float((relative**2).max()) / total
    skew = max(skewness_of(found))
    matters = float(np.abs(moves).max()) > TRIFLE * evidence.size
    notable = matters and (not blocks or _chance(share, moves.size) < RARE)
    same = bool(found.standard_error <= 1e-9 * max(abs(found.value), 1e-300))
    state = graded(
        (share > LARGE and notable) or (skew > SKEWED and matters and not blocks),
        share > DOMINANT and matters and not blocks,
    )
    order = np.argsort(-np.abs(moves), kind="stable")[:LISTED].tolist()
    listed = [
        {"episode": str(names[g]), "moves_the_value_by": float(moves[g]), "share": float(relative[g] ** 2 / total)}
        for g in order
    ]
    data: dict[str, Any] = {
        "episodes": listed,
        "blocks": blocks,
        "standard_error": found.standard_error,
        "skewness": skew,
    }
    word = "block" if blocks else "episode"
    called = f"({names[order[0]]})" if blocks else f", {names[order[0]]},"
    sentence = f"The most influential {word}{' ' * blocks}{called} has {percent(share)} of the answer's variance"
    if share > LARGE and notable:
        data |= {"with": found.value, "without": found.value - float(moves[order[0]])}
        sentence += f"; without it the answer is {data['without']:.4g} and not {data['with']:.4g}"
        sentence += f". Look at that {word}, and collect more: what happens once cannot be averaged"
    elif state != "green":
        sentence += (
            f". The answer is skewed ({skew:.2f}): few {word}s make its long tail, and the interval may miss values "
            "that are rarely far from the rest. Collect more"
        )
    elif same and moves.size and evidence.size > 0.0:
        sentence = "All episodes say the same: a log cannot reveal what it never recorded"
    return Check(
        name,
        title,
        state,
        share,
        "share of the variance of the answer that comes from one episode",
        f"more than {percent(LARGE)}, of blocks of a stream also more than chance gives; or a skewness above 1/3",
        f"more than {percent(DOMINANT)}, not of blocks",
        "An average is near to normal, and an interval what it says, if no single term has much of the variance "
        "(Lindeberg's condition). From one half on one episode outweighs all others.",
        f"{sentence}.",
        data,
    )


def _chance(share: float, n: int) -> float:
    """At most how likely the largest of n squared normal numbers has such a share of their sum, if all are alike.

    Each share is distributed as Beta(1/2, (n - 1)/2).

    >>> [round(_chance(share, 10), 3) for share in (0.3, 0.75)]
    [0.811, 0.006]
    """
    return min(1.0, n * float(betaincc(0.5, (n - 1) / 2.0, min(share, 1.0)))) if n > 1 else 1.0


def inside(evidence: Evidence) -> Check:
    """Whether the answer is within the range of returns."""
    name, title, limits = "inside", "Range of returns", evidence.case.limits
    value, usable = evidence.answer.value, evidence.to_go if evidence.on_policy else evidence.to_go[evidence.seen]
    if evidence.rung == REFUSAL.name or (limits is None and (not usable.size or evidence.rung == MEAN_OF_RETURNS.name)):
        return not_applicable(name, title, "There is no range of returns that could contradict the answer.")
    if limits is not None:
        low, high = limits[:2]
    else:
        every = evidence.returns[evidence.usable]
        low, high = float(min(usable.min(), every.min())), float(max(usable.max(), every.max()))
    where = "range of returns that was given" if limits is not None else "range of returns in the log"
    beyond = max(low - value, value - high, 0.0)
    out = beyond > TRIFLE * evidence.size
    state = graded(out, out and (limits is not None or evidence.on_policy))
    sentence = f"The answer is within the {where}, {low:.4g} to {high:.4g}"
    if out:
        sentence = (
            f"The answer, {value:.4g}, is outside of the {where}, {low:.4g} to {high:.4g}: no mixture of "
            "such returns gives it. Check end flags and γ, and try other features"
        )
    return Check(
        name,
        title,
        state,
        beyond / evidence.spread if evidence.spread > 0.0 else 0.0,
        "distance of the answer from the range of returns, in standard deviations of returns",
        "any (0.1% of a usual return), for another policy than the logged one",
        "any (0.1% of a usual return), for the logged policy or where the range was given",
        "A value is a mean of returns. That of the logged policy cannot be outside of them. That of another policy "
        "can, if it does what was never done over a whole episode.",
        f"{sentence}.",
        {"low": low, "high": high},
    )


def tails(evidence: Evidence) -> Check:
    """Whether values behind cuts are right on average, by cutting complete episodes at the same lengths."""
    name, title, found = "tails", "Values behind cut-off episodes", evidence.case.tails
    if found is None or evidence.answer.rung.name not in ("returns with tails", "mean of returns"):
        return not_applicable(name, title, "The answer does not rest on returns that were completed.")
    if not found.matter:
        return Check(
            name, title, "green", found.size, "mean share of a return behind its cut", "", "",
            "What moves returns by less than a tenth of the half-width on average does not matter.",
            f"What lies behind cuts moves returns by {found.size:.2g} on average, which does not matter.", {},
        )  # fmt: skip
    if found.bias is None:
        sentence = (
            f"Behind the cuts lie {found.added:.3g} of the answer, by the model. No complete episode is long enough to "
            "test that: bias unchecked"
        )
        return Check(name, title, "unchecked", None, "", "", "", "", f"{sentence}.", {"added": found.added})
    bias, error, half = found.bias.value, found.bias.standard_error, evidence.half_width
    effect = abs(bias) / half if half > 0.0 else 0.0
    p = chance(bias, error, found.bias.degrees, evidence.size)
    weak = not 2.0 * error <= half
    state = graded(effect > 0.25 and p < LIKELY, effect > ALL and p < CERTAIN)
    state = "unchecked" if state == "green" and weak else state
    sentence = (
        f"Complete episodes that are cut at the same lengths are completed with an error of {bias:.3g} ± "
        f"{2 * error:.2g} in the answer, {effect:.2g} half-widths of its interval"
    )
    if state == "unchecked":
        sentence += ". They are too few to see an error that matters: bias unchecked"
    elif state != "green":
        sentence += ": values behind cuts are not what comes. Log longer episodes, or try other features"
    return Check(
        name,
        title,
        state,
        effect,
        "error of values behind cuts, in half-widths of the answer's interval",
        "more than 0.25, by 3 standard errors",
        f"more than {ALL:g}, by 4 standard errors",
        "The return of a complete episode is known, and so is what the model would have said if it had been cut.",
        f"{sentence}.",
        {"bias": bias, "standard_error": error, "added": found.added},
    )


def agreement(evidence: Evidence) -> Check:
    """Whether what assumes more comes to the same as what assumes less, by what each episode adds to their difference.

    J. A. Hausman, "Specification tests in econometrics", Econometrica 46, 1978.
    """
    name, title, model = "agreement", "Least squares and what assumes less", evidence.of_model
    lower = _lower(evidence)
    about = "answer" if evidence.by_model else "state values"
    if model is None or model.interval is None:
        return not_applicable(name, title, "There is no value by least squares.")
    half = model.interval.half_width
    if lower is None:
        sentence = (
            "The answer rests on features, and nothing that assumes less can test it: bias unchecked. Log the "
            "probabilities of the actions, or try other features and compare"
        )
        if about != "answer":
            return not_applicable(name, title, "There are no returns of the same states to compare with.")
        if evidence.on_policy:
            sentence = "Values of given states have no returns to be tested by: bias unchecked"
            if not evidence.single:
                sentence = "There are too few returns of the same states to test it by: bias unchecked. Collect more"
        return Check(name, title, "unchecked", None, "", "", "", "", f"{sentence}.", {})
    what, difference = lower
    effect = abs(difference.value) / half if half > 0.0 else 0.0
    error = difference.standard_error
    p = chance(difference.value, error, difference.degrees, evidence.size)
    if abs(difference.value) <= TRIFLE * evidence.size:
        effect = 0.0
    state = graded(effect > SOME and p < LIKELY, effect > ALL and p < CERTAIN)
    weak = not 2.0 * error <= half and not evidence.on_policy
    if state == "green" and about == "answer" and weak:
        state = "unchecked"
    sentence = (
        f"The value by least squares is off {what} by {difference.value:.3g} ± {2 * error:.2g}, "
        f"{effect:.2g} half-widths of its interval"
    )
    if state == "unchecked":
        sentence += ". That is too rough a test to see an error that matters: bias unchecked"
    elif state != "green":
        sentence += ": the features cannot represent the values. Try other features"
    return Check(
        name,
        title,
        state,
        effect,
        f"distance of the value by least squares from {what}, in half-widths of its interval",
        f"more than {SOME:g}, by 3 standard errors of the difference",
        f"more than {ALL:g}, by 4 standard errors of the difference",
        "Returns rest on no features, and the doubly robust value hardly. Both values come from the same episodes, so "
        "that their difference is known better than each of them (Hausman, 1978).",
        f"{sentence}.",
        {"difference": difference.value, "standard_error": error, "half_width": half},
        about,
    )


def _lower(evidence: Evidence) -> tuple[str, EpisodeValue] | None:
    """What assumes less than least squares, and the difference of the two values."""
    case, model = evidence.case, evidence.of_model
    names = {"mean of returns", "returns with tails"} if evidence.on_policy else {"doubly robust"}
    lower = next((row for row in case.rows if row.name in names), None)
    if lower is None or model is None or lower.middle is None or model.middle is None or not case.known:
        return None
    if not evidence.on_policy and case.effective < FEW:
        return None
    above, below = model.middle, lower.middle
    if case.blocks is not None and above.contributions.size == case.blocks.size != below.contributions.size:
        above = by_block(above, case.blocks)
    if above.contributions.size != below.contributions.size:
        above, below = (by_episode(each, evidence.steps, case.log) for each in (above, below))
    if above.contributions.size != below.contributions.size or above.contributions.size < 4:
        return None
    return f"the {lower.name}", above.minus(below)


def ratios(evidence: Evidence) -> Check:
    """Whether the importance ratios average to 1, as they must."""
    rhos, name, title = evidence.case.ratios, "ratios", "Logged probabilities"
    if rhos is None or evidence.rung in (ACTION_VALUES.name, REFUSAL.name):
        return not_applicable(name, title, "The answer does not rest on probabilities of the logged actions.")
    steps = evidence.steps
    every = np.ones(len(steps), dtype=np.bool_)
    mean = evidence.mean(rhos[steps.kept], every)
    off, p = abs(mean.value - 1.0), chance(mean.value - 1.0, mean.standard_error, mean.degrees)
    state = graded(off > WRONG and p < LIKELY, off > VERY_WRONG and p < CERTAIN)
    sentence = f"The ratios are {mean.value:.3f} on average, where 1 is right"
    if state != "green":
        sentence += (
            ": the logged probabilities are not those of the logged policy, or the target policy does what was "
            "never done. Check the column of probabilities"
        )
    return Check(
        name,
        title,
        state,
        mean.value,
        "mean importance ratio",
        f"off by {WRONG:g}, and by 3 standard errors",
        f"off by {VERY_WRONG:g}, and by 4 standard errors",
        "Over actions of the logged policy, the mean of π(a|s)/b(a|s) is 1 in every state.",
        f"{sentence}.",
        {"standard_error": mean.standard_error, "largest": float(rhos.max(initial=0.0))},
    )


def silence(evidence: Evidence) -> Check:
    """How much of the answer is the worth of actions that the log does not have."""
    found, name, title = evidence.case.silence, "silence", "Actions that the log does not have"
    if evidence.rung not in (ACTION_VALUES.name, REFUSAL.name):
        return not_applicable(name, title, "The answer does not rest on action values.")
    if found is None:
        state, sentence = "green", "The log has every action that the policy takes"
    else:
        state = graded(not found.limits.given, found.refuses)
        sentence = found.sentence
        if found.refuses:
            sentence += ". No value can stand on that: log these actions, or ask about a policy that takes them less"
        elif not found.limits.given:
            sentence += (
                f". They count as worth {found.limits}, the range of returns in the log, which is an assumption: give "
                "the range (returns=, --returns)"
            )
    return Check(
        name,
        title,
        state,
        0.0 if found is None else found.mass,
        "discounted probability that the policy takes an action that the log does not have",
        "any, where the range of returns was not given",
        f"an interval wider than {percent(REFUSED)} of the range of returns because of them",
        "What was never logged is worth anything in the range of returns, and the interval has room for all of it. The "
        "range in the log may be too narrow for actions that it does not have.",
        f"{sentence}.",
        {} if found is None else found.to_dict(),
    )


def ratio_rungs(evidence: Evidence) -> bool:
    """Whether the answer rests on ratios."""
    return evidence.rung in (DOUBLY_ROBUST.name, WITH_RATIOS.name)


__all__ = ["FloatArray", "agreement", "effective", "influence", "inside", "ratios", "silence", "tails"]
