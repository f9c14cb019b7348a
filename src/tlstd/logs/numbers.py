"""Numbers that are missing or infinite are refused, or their episodes dropped; columns that never change are named."""

from __future__ import annotations

import numpy as np

from tlstd.core.arrays import MAX_MAGNITUDE
from tlstd.errors import InvalidInputError
from tlstd.logs.draft import Draft
from tlstd.logs.messages import count_of
from tlstd.logs.table import AnyArray

ROUNDING = 1e-6
"""Error accepted in sums of probabilities."""


def drop_bad_episodes(draft: Draft) -> None:
    """Leave out whole episodes in which a number is missing or infinite, if that is asked for.

    A last row without a reward is no step: nothing has to be known there.
    """
    if draft.table.on_nan != "drop":
        return
    code, rewards = draft.code, draft.columns["reward"]
    after = np.isnan(rewards) & draft.lasts & ~draft.firsts
    bad = ~(np.abs(rewards) <= MAX_MAGNITUDE)
    for role in ("observation", "action", "probability", "policy"):
        column = draft.columns.get(role)
        if column is not None and column.dtype.kind == "f":
            bad |= ~(np.abs(column.reshape(len(column), -1)) <= MAX_MAGNITUDE).all(axis=1)
    bad &= ~after
    if not bad.any():
        return
    rows, dropped = np.flatnonzero(bad), np.unique(code[bad])
    if dropped.size == len(draft.ids):
        raise InvalidInputError(
            f"numbers are missing or infinite in all {dropped.size:,} episodes ({draft.where(rows)}): clean the log"
        )
    draft.say(
        f"{count_of(dropped.size, 'episode')} of {len(draft.ids):,} dropped, because numbers are missing or infinite "
        f"in {draft.where(rows)}."
    )
    draft.n_dropped = dropped.size
    draft.keep(~np.isin(code, dropped))
    kept, draft.code = np.unique(draft.code, return_inverse=True)
    draft.ids = [draft.ids[c] for c in kept.tolist()]


def _check_policy(draft: Draft) -> None:
    """The policy asked for, where it is in columns: probabilities of the logged actions, or of all."""
    policy = draft.columns.get("policy")
    if policy is None:
        return
    _refuse_bad(draft, policy, "policy", "every step needs its probabilities")
    wide = policy.reshape(len(policy), -1)
    bad = ((wide < -ROUNDING) | (wide > 1.0 + ROUNDING)).any(axis=1)
    if wide.shape[1] > 1:
        bad |= np.abs(wide.sum(axis=1) - 1.0) > ROUNDING
    if bad.any():
        rows = np.flatnonzero(bad)
        total = " that add up to 1" * (wide.shape[1] > 1)
        raise InvalidInputError(
            f"{draft.name('policy')} is {wide[rows[0]].tolist()} in {draft.where(rows)}: pass probabilities{total}"
        )


def check_numbers(draft: Draft) -> None:
    """Refuse what cannot be learned from."""
    observations = draft.columns["observation"]
    _refuse_bad(draft, observations, "observation", "clean the log, or drop these episodes (on_nan='drop', --drop-nan)")
    _refuse_bad(
        draft, draft.columns["reward"], "reward", "clean the log, or drop these episodes (on_nan='drop', --drop-nan)"
    )
    if "action" in draft.columns:
        _refuse_bad(draft, draft.columns["action"], "action", "clean the log, or leave the actions out")
    probability = draft.columns.get("probability")
    if probability is not None:
        continuous = "action" in draft.columns and draft.columns["action"].dtype.kind == "f"
        bad = ~(probability > 0.0) | ~np.isfinite(probability) | ((probability > 1.0) & (not continuous))
        if bad.any():
            rows = np.flatnonzero(bad)
            raise InvalidInputError(
                f"{draft.name('probability')} is {probability[rows[0]]:g} in {draft.where(rows)}: what was done had "
                "a probability in (0, 1]; log-probabilities have to be exponentiated"
            )
    _check_policy(draft)
    constant = []
    if observations.ndim == 2 and len(observations) > 1 and not draft.table.continues:
        constant = np.flatnonzero((observations == observations[0]).all(axis=0)).tolist()
    if constant:
        names = [f"{draft.column(i)} is always {observations[0, i]:g}" for i in constant[:5]]
        more = "" if len(constant) <= 5 else f", … ({len(constant)} in all)"
        draft.say(f"Columns that say nothing: {', '.join(names)}{more}.")
    unknown = ~np.isfinite(draft.final_values.reshape(len(draft.ids), -1)).all(axis=1)
    draft.final_values[unknown], draft.final_known[unknown] = 0.0, False


def _refuse_bad(draft: Draft, array: AnyArray, role: str, remedy: str) -> None:
    if array.dtype.kind != "f":
        return
    if array.size and array.max() <= MAX_MAGNITUDE and array.min() >= -MAX_MAGNITUDE:
        return
    bad = ~(np.abs(array) <= MAX_MAGNITUDE)
    rows = np.flatnonzero(bad.reshape(len(array), -1).any(axis=1))
    value, name = array[rows[0]], draft.name(role)
    if array.ndim == 2:
        i = int(np.flatnonzero(bad[rows[0]])[0])
        value = value[i]
        name = draft.column(i) if role == "observation" else f"{name}[{i}]"
    what = "missing" if np.isnan(value) else f"{value:g}"
    raise InvalidInputError(f"{name} is {what} in {draft.where(rows)}: {remedy}")
