"""Checks by held-out returns: a constant, what the features miss, and whether the log changes with time.

All are about the policy that acted: its returns are in the log.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from tlstd.core.arrays import FloatArray
from tlstd.data.transitions import Transitions
from tlstd.evaluation.trust.evidence import CERTAIN, LIKELY, MEDIUM, SMALL, Evidence, Mean, clustered
from tlstd.evaluation.trust.verdict import ORDER, Check, graded, percent
from tlstd.features.auto_tiles import AutoTiles
from tlstd.krylov.krylov_lstd import KrylovLSTD

MISSED, MOSTLY_MISSED = 0.2, 0.5
"""Shares of what could be predicted that the features miss."""


def unchecked(name: str, title: str, why: str) -> Check:
    """A check that could not be made."""
    return Check(name, title, "unchecked", None, "", "", "", "", why, {})


TOO_LITTLE = "There are too few episodes with returns to hold some of them out."

# --- against a constant ---------------------------------------------------------------------------------------------


def score(evidence: Evidence) -> Check:
    """Whether held-out returns are predicted better than by their mean."""
    name, title = "score", "Better than a constant"
    if not evidence.can_hold_out:
        return unchecked(name, title, TOO_LITTLE)
    constant, model = (evidence.squared_errors(v) for v in (evidence.constant, evidence.fit.values))
    gain, whole = evidence.mean(constant - model), evidence.mean(constant)
    skill = gain.value / whole.value if whole.value > 0.0 else 0.0
    worse = gain.value < 0.0 and gain.chance() < CERTAIN and skill < -0.05
    better = gain.value > 0.0 and gain.chance() < 0.05
    nothing = whole.value <= 1e-12 * max(1.0, float(np.square(evidence.returns / evidence.unit).mean()))
    single = evidence.starts.rows is None  # over the log's own states what is wrong about single ones averages out
    state = graded(not (better or nothing), worse and single)
    sentence = f"Held-out returns are predicted with {percent(abs(skill))} less squared error than by their mean"
    if nothing:
        sentence = "All returns are the same: there is nothing to predict"
    elif worse:
        sentence = (
            f"Held-out returns are predicted with {percent(-skill)} more squared error than by their mean: the model "
            "has learned noise. Use fewer features, or collect more data"
        )
    elif not better:
        sentence = (
            "Held-out returns are not predicted better than by their mean: values of single states say nothing. The "
            "mean over the logged start states may still be right. Use features that matter, or collect more data"
        )
    return Check(
        name,
        title,
        state,
        skill,
        "share of the squared error of a constant that is saved on held-out returns",
        "not better than the constant (5% level, over episodes)",
        "worse than it, by 4 standard errors and 5%, where the value of given states is asked for",
        "A model that predicts held-out returns worse than their mean cannot be right about states.",
        f"{sentence}.",
        {"standard_error": gain.error / whole.value if whole.value > 0.0 else None, "episodes": gain.n_groups},
    )


# --- what the features miss -----------------------------------------------------------------------------------------


def features(evidence: Evidence) -> Check:
    """Whether the past of an episode, or tiles of the observations, predict what the features do not."""
    name, title = "features", "Features see what matters"
    if not evidence.can_hold_out:
        return unchecked(name, title, TOO_LITTLE)
    lambda_, _ = evidence.settings
    rival = _with_the_past(evidence)
    model = KrylovLSTD(rival.n_features, lambda_=lambda_)
    model.update_many(rival)
    dimension = model.chosen_dimension
    assert isinstance(dimension, int)
    fit = evidence.held_out_fit(rival, lambda n: KrylovLSTD(n, lambda_=lambda_, dimension=dimension))
    own, other, constant = (
        evidence.squared_errors(values) for values in (evidence.fit.values, fit.values, evidence.constant)
    )
    gain, possible = evidence.mean(own - other), evidence.mean(constant - other).value
    missed = gain.value / possible if possible > 0.0 and gain.value > 0.0 else 0.0
    state = graded(
        missed > MISSED and gain.chance() < LIKELY,
        missed > MOSTLY_MISSED and gain.chance() < CERTAIN,
    )
    sentence = f"The features miss {percent(min(missed, 1.0))} of what can be predicted of held-out returns"
    if state == "green" and missed > MISSED:
        sentence += ", but so few episodes cannot tell it from chance"
    if state != "green":
        sentence += (
            ": the step before and the time within the episode tell more. Add what is hidden to the observations (a "
            "speed, a mode, earlier observations), or use finer features"
        )
    return Check(
        name,
        title,
        state,
        min(missed, 1.0),
        "share of the predictable part of held-out returns that the features miss and the past shows",
        f"more than {percent(MISSED)}, by 3 standard errors",
        f"more than {percent(MOSTLY_MISSED)}, by 4 standard errors",
        "If the features are a state, the past adds nothing once the present is known. Compared is a model of tiles of "
        "the observations, their last changes, the last reward and the time since the start.",
        f"{sentence}.",
        {"dimension": dimension},
    )


def _with_the_past(evidence: Evidence) -> Transitions:
    """The sample with features of the observation, its last change, the last reward and the time."""
    log, steps = evidence.log, evidence.steps
    n, m = len(log), steps.store.shape[0]
    lengths = np.diff(log.episodes)
    before = np.maximum(np.arange(m) - 1, 0)
    before[log.episodes[:-1]] = log.episodes[:-1]
    time = np.zeros(m)
    time[:n] = np.arange(n) - np.repeat(log.episodes[:-1], lengths)
    needed = np.flatnonzero(~log.terminated[log.episodes[1:] - 1] & log.has_final)
    before[n:], time[n:] = log.episodes[1:][needed] - 1, lengths[needed]
    first = np.zeros(m, dtype=np.bool_)
    first[log.episodes[:-1]] = True
    reward = np.where(first, 0.0, log.rewards[np.minimum(before, n - 1)])
    store: Any
    if log.discrete:
        X, own = sp.csr_array(steps.store), AutoTiles.fit(np.column_stack([reward, time]))
        past = sp.csr_array(X[before] * np.where(first, 0.0, 1.0)[:, None])
        store = sp.csr_array(sp.hstack([X, past, own.encode_many(np.column_stack([reward, time]))], format="csr"))
    else:
        seen = np.concatenate([log.observations, log.final[needed]]).astype(np.float64)
        columns = np.column_stack([seen, seen - seen[before], reward, time])
        store = AutoTiles.fit(columns).encode_many(columns)
    return Transitions.from_rows(
        store,
        steps.rows,
        steps.rewards,
        steps.next_rows,
        discounts=steps.discounts,
        trace_discounts=steps.trace_discounts,
    )


# --- time -----------------------------------------------------------------------------------------------------------


def stationarity(evidence: Evidence) -> Check:
    """Whether the second half of the log is like the first: returns of start states, rewards, and surprises."""
    name, title = "stationarity", "The log does not change"
    if not evidence.can_hold_out or evidence.folds.n_groups < 2 * 4:
        return unchecked(name, title, "There are too few episodes to compare one half of the log with the other.")
    steps, fit, group = evidence.steps, evidence.fit, evidence.folds.group
    late = group >= np.median(np.unique(group))
    surprises = steps.rewards + steps.discounts * fit.next_values - fit.values
    everywhere = np.ones(len(steps))
    differences: dict[str, Mean] = {"surprise": _halves(surprises, everywhere, group, late)}
    first = evidence.first_steps
    if first.size >= 8:
        value = evidence.returns[first]
        differences["return of start states"] = _halves(value, np.ones(first.size), group[first], late[first])
    else:
        differences["reward"] = _halves(steps.rewards, everywhere, group, late)
    units = {key: evidence.spread / (1.0 if "start" in key else evidence.horizon) for key in differences}
    effects = {key: abs(d.value) / units[key] if units[key] > 0.0 else 0.0 for key, d in differences.items()}
    chances = {key: d.chance(scale=evidence.unit) for key, d in differences.items()}
    states: dict[str, str] = {
        key: graded(chance < LIKELY and effects[key] > SMALL, chance < CERTAIN and effects[key] > MEDIUM)
        for key, chance in chances.items()
    }
    key = min(differences, key=lambda k: (ORDER.index(states[k]), -effects[k]))
    sentence = f"Between the halves of the log the {key} changes by {effects[key]:.2g} standard deviations"
    if states[key] == "green":
        sentence += ", which chance explains" if effects[key] > SMALL else ""
    else:
        sentence += (
            " (of returns): it is not one policy in one world, and the answer is a mixture. Evaluate the part that is "
            "like the present"
        )
    return Check(
        name,
        title,
        states[key],
        effects[key],
        "change between the halves of the log, in standard deviations of returns",
        f"more than {SMALL:g}, by 3 standard errors",
        f"more than {MEDIUM:g}, by 4 standard errors",
        "A value is defined for a policy and a world that stay the same. Compared are returns of start states (rewards "
        "of a stream) and surprises r + γv(s′) - v(s) of held-out steps, over a horizon.",
        f"{sentence}.",
        {k: {"difference": d.value, "standard_error": d.error} for k, d in differences.items()},
    )


def _halves(values: FloatArray, weights: FloatArray, group: Any, late: Any) -> Mean:
    return clustered(values[late], weights[late], group[late]).minus(
        clustered(values[~late], weights[~late], group[~late])
    )
