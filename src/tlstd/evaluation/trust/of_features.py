"""The check of features: what the answer would be with other ones that predict as well."""

from __future__ import annotations

import numpy as np

from tlstd.evaluation.episode_values import EpisodeValue
from tlstd.evaluation.families import Family, Offer
from tlstd.evaluation.fits import Starts, fit_actions, fit_pairs, fit_states
from tlstd.evaluation.trust.evidence import Evidence
from tlstd.evaluation.trust.verdict import Check, chance, graded, not_applicable, short
from tlstd.logs.log import Log

APART, FAR_APART = 1.0, 2.0
"""Half-widths of the answer by which two families of features disagree."""
BY_CHANCE, HARDLY = 0.05, 2.7e-3
"""Probabilities of such a difference by chance: 2 and 3 standard errors of the difference."""


def families(evidence: Evidence) -> Check:
    """How far the answers of other families of features are from the answer, those that predict about as well."""
    name, title, choice = "families", "Values with other features", evidence.fit.choice
    if not evidence.by_model:
        return not_applicable(name, title, "The answer does not rest on features.")
    if choice is None or len({each.family.name for each in choice.tried}) < 2:
        return not_applicable(name, title, "There was no choice of features.")
    others: dict[str, Family] = {}
    for each in choice.tried:
        if each.level and each.family.name != choice.family.name:
            others.setdefault(each.family.name, each.family)
    if not others:
        return not_applicable(name, title, "All other features predict held-out data clearly worse.")
    sample = evidence.sample
    target = evidence.case.target
    bound = target is not None and (target.function is None or evidence.fit.kind == "states")
    if bound and sample is not evidence.log:
        return not_applicable(
            name, title, "The policy is a table, and the log too large to learn from it several times."
        )
    own = _value(evidence, sample, choice.family)
    half, values, worst = evidence.half_width, {}, None
    for family in others.values():
        value = _value(evidence, sample, family)
        apart = value.minus(own)
        values[family.label] = evidence.answer.value + apart.value
        if worst is None or abs(apart.value) > abs(worst[1].value):
            worst = family, apart
    assert worst is not None
    family, apart = worst
    effect = abs(apart.value) / half if half > 0.0 else 0.0
    p = chance(apart.value, apart.standard_error, apart.degrees, evidence.size)
    state = graded(effect > APART and p < BY_CHANCE, effect > FAR_APART and p < HARDLY)
    sentence = (
        f"With {family.label}, which predict held-out data about as well as {choice.family.label}, the value is "
        f"{values[family.label]:.4g} in place of {evidence.answer.value:.4g} ({effect:.2g} half-widths, "
        f"± {short(2.0 * apart.standard_error)})"
    )
    if state != "green":
        sentence += ": the log does not tell which is right. Log a policy that is closer to the target policy"
    return Check(
        name,
        title,
        state,
        effect,
        "largest distance of the answers with other features, in half-widths of the answer",
        f"more than {APART:g}, by 2 standard errors of the difference",
        f"more than {FAR_APART:g}, by 3 standard errors of the difference",
        "Features that predict the log equally well and disagree about the answer do so where the log says little. At "
        "least one of them is wrong there, and held-out errors of the logged policy cannot tell which.",
        f"{sentence}.",
        {"values": values, "difference": apart.value, "standard_error": apart.standard_error, "steps": len(sample)},
    )


def _value(evidence: Evidence, log: Log, family: Family) -> EpisodeValue:
    """The debiased value with a family of features, learned from a log that is all of the case's or a part."""
    case, kind, target = evidence.case, evidence.fit.kind, evidence.case.target
    if kind == "states":
        fit = fit_states(log, Offer((family,)), case.gamma, case.ratios)
    elif kind == "actions":
        assert target is not None
        fit = fit_actions(log, Offer((family,)), case.gamma, target, case.cells)
    else:
        assert target is not None
        fit = fit_pairs(log, Offer((family,)), case.gamma, target, case.fits.cells(case, True))
    sets = case.sets[0]
    if sets.rows is not None and log is not case.log:
        rows = log.start_rows if sets.name == "start states" else np.arange(len(log))
        sets = Starts(sets.name, log.observations[rows], rows)
    parts = fit.value(fit.query(sets))
    found = parts[0] if len(parts) == 1 else parts[0].mixed(parts[1], evidence.fit.worth)
    return found.found
