"""Numbers that are missing or infinite are refused, columns that never change are named."""

from __future__ import annotations

import numpy as np

from tlstd.errors import InvalidInputError
from tlstd.logs.draft import Draft
from tlstd.logs.table import AnyArray
from tlstd.validation import MAX_MAGNITUDE


def check_numbers(draft: Draft) -> None:
    """Refuse what cannot be learned from."""
    observations = draft.columns["observation"]
    _refuse_bad(draft, observations, "observation", "clean the log, or leave these episodes out")
    _refuse_bad(draft, draft.columns["reward"], "reward", "clean the log")
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
