"""Checks of an answer against the returns in the log: which rest on no features."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tlstd.evaluation.influence import standard_error
from tlstd.evaluation.log_intervals import learned_rows
from tlstd.evaluation.trust.evidence import CERTAIN, LIKELY, TRIFLE, Evidence, Mean
from tlstd.evaluation.trust.predictions import unchecked
from tlstd.evaluation.trust.verdict import Check, graded
from tlstd.evaluation.whole_episodes import episodes_of_groups

SOME, ALL = 0.25, 1.0
"""Half-widths by which the value by least squares is off the mean of returns: an interval that covers 95% covers 92%
and 50% where its middle is off by as much."""
ALL_BUT_FEW = 0.98
"""Share of start states with a usable return, below which those with one are not like the others."""


def agreement(evidence: Evidence) -> Check:
    """Whether least squares comes to the mean of returns, by what each episode adds to their difference.

    J. A. Hausman, "Specification tests in econometrics", Econometrica 46, 1978.
    """
    name, title = "agreement", "Least squares and returns"
    what = "the mean of returns" if evidence.on_policy else "the doubly robust value"
    found = _off_returns(evidence)
    if found is None:
        return unchecked(name, title, "There is no mean of returns of the same states to compare with.")
    off, half = found
    effect, chance = abs(off.value) / half if half > 0.0 else 0.0, off.chance(scale=evidence.unit)
    if abs(off.value) <= TRIFLE * evidence.size:
        effect = 0.0
    state = graded(effect > SOME and chance < LIKELY, effect > ALL and chance < CERTAIN)
    sentence = (
        f"The value by least squares is off {what} by {off.value:.3g} ± {2 * off.error:.2g}, "
        f"{effect:.2g} half-widths of its interval"
    )
    if state != "green":
        sentence += ": the features cannot represent the values. Try other features"
    return Check(
        name,
        title,
        state,
        effect,
        f"distance of the value by least squares from {what}, in half-widths of its interval",
        f"more than {SOME:g}, by 3 standard errors of the difference",
        f"more than {ALL:g}, by 4 standard errors of the difference",
        "The mean of returns rests on no features, and the doubly robust value hardly. Both values come from the same "
        "episodes, so that their difference is known better than each of them (Hausman, 1978).",
        f"{sentence}.",
        {"difference": off.value, "standard_error": off.error, "half_width": half},
    )


def _off_returns(evidence: Evidence) -> tuple[Mean, float] | None:
    """The value by least squares less the mean of returns, and the half-width of the first; None without either."""
    returned, found, log = evidence.returned, evidence.answer.influence, evidence.whole
    if returned is None or found is None:
        return _of_sample(evidence)
    episode = episodes_of_groups(log, learned_rows(replace(evidence.sample, log=log)), found.groups)
    moved = np.bincount(episode, found.contributions, log.n_episodes) - returned.by_episode()
    error = standard_error(moved - moved.mean())
    own = evidence.answer.interval
    half = 2.0 * found.standard_error if own is None else own.half_width
    return Mean(found.value - returned.found.value, error, log.n_episodes), half


def _of_sample(evidence: Evidence) -> tuple[Mean, float] | None:
    """The same by the returns of the sample."""
    rows, first = evidence.starts.rows, evidence.first_steps
    if not evidence.on_policy or rows is None or rows.size != evidence.log.start_rows.size or first.size < 4:
        return None
    found, n = evidence.influence, evidence.folds.n_groups
    if found.groups.n_groups != n or first.size < ALL_BUT_FEW * rows.size or found.groups.n_blocks:
        return None
    returns = evidence.returns[first]
    by_group = np.bincount(evidence.folds.group[first], (returns - returns.mean()) / first.size, n)
    moved = found.contributions - by_group
    off = Mean(found.value - float(returns.mean()), standard_error(moved - moved.mean()), n)
    return off, 2.0 * found.standard_error


def inside(evidence: Evidence) -> Check:
    """Whether the answer is within the returns of the log, completed where they were cut off."""
    name, title = "inside", "Answer and range of returns"
    value, usable = evidence.answer.value, evidence.returns[evidence.weights > 0.0]
    told, limits = evidence.answer.limits is not None, evidence.answer.limits
    if value is None or (limits is None and not usable.size):
        return unchecked(name, title, "There are no returns to compare the answer with.")
    low, high = limits[:2] if limits is not None else (float(usable.min()), float(usable.max()))
    where = "range of returns that was given" if told else "range of returns in the log"
    beyond = max(low - value, value - high, 0.0)
    out = beyond > TRIFLE * evidence.size
    state = graded(out, out and (told or evidence.on_policy))
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
        "distance of the answer from the range of logged returns, in standard deviations of returns",
        "any (0.1% of a usual return), for another policy than the logged one",
        "any (0.1% of a usual return), for the logged policy or where the range was given",
        "A value is a mean of returns. That of the logged policy cannot be outside of them. That of another policy "
        "can, if it does what was never done over a whole episode.",
        f"{sentence}.",
        {"low": low, "high": high},
    )
