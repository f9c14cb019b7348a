"""The check of features: what the answer would be with other ones that predict as well."""

from __future__ import annotations

import numpy as np

from tlstd.evaluation.episode_values import EpisodeValue
from tlstd.evaluation.families import BEHIND, MOST_COLUMNS, Choice, Family, Offer, smooth
from tlstd.evaluation.fits import Fit, Starts, fit_actions, fit_pairs, fit_states
from tlstd.evaluation.selection import HeldOut, can_hold_out, errors_of_residuals
from tlstd.evaluation.systems import MOST_DENSE
from tlstd.evaluation.trust.evidence import MEDIUM, Evidence
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
    if choice is None or (evidence.fit.kind == "states" and len({each.family.name for each in choice.tried}) < 2):
        return not_applicable(name, title, "There was no choice of features.")
    target, sample = evidence.case.target, evidence.sample
    bound = target is not None and (target.function is None or evidence.fit.kind == "states")
    if bound and sample is not evidence.log:
        return not_applicable(
            name, title, "The policy is a table, and the log too large to learn from it several times."
        )
    others = _others(evidence, choice)
    if not others:
        return not_applicable(name, title, "There was no choice of features, or there are too many weights.")
    fit = evidence.fit if sample is evidence.log else _fit(evidence, sample, choice.family)
    own = evidence.answer.middle if sample is evidence.log else None
    own = _value(evidence, fit, sample) if own is None else own
    half, values = evidence.half_width, {}
    worst: tuple[Family, EpisodeValue] | None = None
    for family in others:
        other = _fit(evidence, sample, family)
        if evidence.fit.kind != "states" and not _level(other, fit):
            continue
        apart = _value(evidence, other, sample).minus(own)
        values[family.label] = evidence.answer.value + apart.value
        if worst is None or abs(apart.value) > abs(worst[1].value):
            worst = family, apart
    if worst is None:
        return not_applicable(name, title, "All other features predict held-out data clearly worse.")
    family, apart = worst
    effect = abs(apart.value) / half if half > 0.0 else 0.0
    p = chance(apart.value, apart.standard_error, apart.degrees, evidence.size)
    much = abs(apart.value) > MEDIUM * evidence.spread
    state = graded(effect > APART and p < BY_CHANCE, effect > FAR_APART and p < HARDLY and much)
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
        f"more than {FAR_APART:g}, by 3 standard errors, and {MEDIUM:g} standard deviations of returns",
        "Features that predict the log equally well and disagree about the answer do so where the log says little. At "
        "least one of them is wrong there, and held-out errors of the logged policy cannot tell which.",
        f"{sentence}.",
        {"values": values, "difference": apart.value, "standard_error": apart.standard_error, "steps": len(sample)},
    )


def _others(evidence: Evidence, choice: Choice) -> list[Family]:
    """The best of each other family that is not clearly behind; of action values smooth features, if they fit."""
    if evidence.fit.kind == "states":
        found: dict[str, Family] = {}
        for each in choice.tried:
            if each.level and each.family.name != choice.family.name:
                found.setdefault(each.family.name, each.family)
        return list(found.values())
    log, actions = evidence.sample, evidence.sample.actions
    if choice.family.name != "mixed" or actions is None:
        return []
    states = np.hstack([log.states, actions]) if evidence.fit.kind == "joint" else log.states
    degree = 2 if states.shape[1] <= MOST_COLUMNS else 1
    waves = Family("smooth", "smooth features", smooth(states, degree, 1.0))
    blocks = evidence.fit.offsets.size
    return [waves] if waves.features.n_features * blocks <= MOST_DENSE else []


def _fit(evidence: Evidence, log: Log, family: Family) -> Fit:
    """The model with a family of features, learned from a log that is all of the case's or a part."""
    case, kind, target = evidence.case, evidence.fit.kind, evidence.case.target
    if kind == "states":
        return fit_states(log, Offer((family,)), case.gamma, case.ratios)
    assert target is not None
    if kind == "actions":
        return fit_actions(log, Offer((family,)), case.gamma, target, case.cells)
    return fit_pairs(log, Offer((family,)), case.gamma, target, case.fits.cells(case, True))


def _level(other: Fit, own: Fit) -> bool:
    """Whether action values are not clearly behind others, by their TD errors."""
    steps = own.steps
    if not can_hold_out(steps):
        return False
    found = []
    for each in (own, other):
        now, after = each.held_out()
        found.append(HeldOut(now, steps.rewards + steps.discounts * after))
    errors = errors_of_residuals(steps, found)
    more, unsure = errors[1].over(errors[0])
    return more <= BEHIND * unsure


def _value(evidence: Evidence, fit: Fit, log: Log) -> EpisodeValue:
    """The debiased value of a model that was learned from a log."""
    sets = evidence.case.sets[0]
    if sets.rows is not None and log is not evidence.log:
        rows = log.start_rows if sets.name == "start states" else np.arange(len(log))
        sets = Starts(sets.name, log.observations[rows], rows)
    parts = fit.value(fit.query(sets))
    found = parts[0] if len(parts) == 1 else parts[0].mixed(parts[1], evidence.fit.worth)
    return found.found
