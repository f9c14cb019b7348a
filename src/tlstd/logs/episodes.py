"""Rows are dealt into episodes and put in order; repeated ones and those after last steps are taken out."""

from __future__ import annotations

import numpy as np

from tlstd.errors import CapacityError, InvalidInputError
from tlstd.logs.draft import Draft, missing_in
from tlstd.logs.table import FLAGS, AnyArray, BoolArray
from tlstd.logs.words import count_of, joined_note, plain
from tlstd.validation import IntArray


def number_episodes(draft: Draft, ends: BoolArray | None) -> None:
    """Number the episodes: ``code`` of each row, ``ids`` of each number."""
    step = draft.columns.get("step")
    if step is not None and step.dtype.kind == "f" and not np.isfinite(step).all():
        rows = np.flatnonzero(~np.isfinite(step))
        what = "missing" if np.isnan(step[rows[0]]) else f"{step[rows[0]]:g}"
        raise InvalidInputError(f"{draft.name('step')} is {what} in {draft.where(rows)}: every row needs its time")
    if "episode" in draft.columns:
        _by_names(draft, draft.columns.pop("episode"), ends)
    else:
        _by_ends(draft, ends)


def _by_ends(draft: Draft, ends: BoolArray | None) -> None:
    """Without names: a new episode after each end flag, where steps go back, or in each file."""
    step, files = draft.columns.get("step"), draft.table.files
    starts = np.zeros(draft.rows.size, dtype=np.bool_)
    if ends is not None:
        starts[1:] = ends[:-1]
    if step is not None:
        back = np.flatnonzero(step[1:] < step[:-1]) + 1
        new = back[~starts[back]]
        starts[back] = True
        if new.size:
            draft.say(
                f"There are no episode names: {count_of(new.size, 'episode')} begin{'s' * (new.size == 1)} where "
                f"{draft.name('step')} goes back without an end flag (first in {draft.where(new[:1])})."
            )
    if ends is None and step is None and files is not None:
        starts[1:] |= files[1:] != files[:-1]
        draft.say("There are no names of episodes, no end flags and no steps: each file is taken for an episode.")
    starts[0] = False
    draft.code = np.cumsum(starts)
    draft.ids = list(range(draft.table.first_id, draft.table.first_id + int(draft.code[-1]) + 1))


def _by_names(draft: Draft, episode: AnyArray, ends: BoolArray | None) -> None:
    """By their names; a name may come again in another file, or after an end."""
    missing = missing_in(episode)
    if missing.any():
        rows = np.flatnonzero(missing)
        raise InvalidInputError(f"{draft.name('episode')} is missing in {draft.where(rows)}: every row needs a name")
    starts = np.append(True, episode[1:] != episode[:-1])
    step, files = draft.columns.get("step"), draft.table.files
    if files is not None:  # a file may go on with the episode of the one before
        border = np.flatnonzero(files[1:] != files[:-1]) + 1
        after = np.ones(border.size, dtype=np.bool_) if ends is None else ~ends[border - 1]
        starts[border] |= ~after if step is None else step[border] <= step[border - 1]
        if not starts[border].all():
            draft.say(joined_note(int((~starts[border]).sum())))
    stretches = np.flatnonzero(starts)
    stretch = np.cumsum(starts) - 1
    called = episode[stretches].astype(str) if episode.dtype.kind == "O" else episode[stretches]
    names, first, inverse = np.unique(called, return_index=True, return_inverse=True)
    if files is not None:
        inverse, n_names = inverse.reshape(-1) + names.size * files[stretches], names.size
        names, first, inverse = np.unique(inverse, return_index=True, return_inverse=True)
        if names.size > n_names:
            draft.say("Names of episodes occur in several files: taken for different episodes.")
    again = np.setdiff1d(np.arange(stretches.size), first)
    if again.size and ends is not None and _after_ends(inverse, again, ends[np.append(stretches[1:], starts.size) - 1]):
        draft.say(
            f"{count_of(again.size, 'episode name')} {'is' if again.size == 1 else 'are'} used again after an "
            f"end (first {plain(episode[stretches[again[0]]])!r} in {draft.where(stretches[again[:1]])}): "
            "taken for other episodes."
        )
        draft.code, draft.ids = stretch, [plain(name) for name in episode[stretches]]
        return
    rank = np.empty(names.size, dtype=np.int64)
    order = np.argsort(first, kind="stable")
    rank[order] = np.arange(names.size)
    draft.code = rank[inverse.reshape(-1)][stretch]
    draft.ids = [plain(episode[stretches[i]]) for i in first[order]]


def _after_ends(names: IntArray, again: IntArray, ended: BoolArray) -> bool:
    """Whether each stretch that has the name of an earlier one comes after an end of the last such one."""
    before = np.zeros(names.size, dtype=np.bool_)
    latest: dict[int, int] = {}
    for s, name in enumerate(names.reshape(-1).tolist()):
        if name in latest:
            before[s] = ended[latest[name]]
        latest[name] = s
    return bool(before[again].all())


def put_in_order(draft: Draft) -> None:
    """Sort rows by episode and step, if they are not."""
    step, code = draft.columns.get("step"), draft.code
    back = code[1:] < code[:-1]
    if step is not None:
        back |= (code[1:] == code[:-1]) & (step[1:] < step[:-1])
    if not back.any():
        return
    first = np.flatnonzero(back)[:1] + 1
    if not draft.table.may_sort:
        raise InvalidInputError(
            f"rows are out of order from {draft.where(first)} on: a log that is read in chunks is not sorted; sort "
            "it by episode and step, or read it whole"
        )
    needed = sum(column.nbytes for column in draft.columns.values()) + 3 * 8 * code.size
    if needed > draft.table.memory:
        raise CapacityError(
            f"rows are out of order from {draft.where(first)} on, and sorting them takes {needed / 1e6:,.0f} MB "
            f"where memory={draft.table.memory:,} allows {draft.table.memory / 1e6:,.0f}: sort the log, or allow more"
        )
    order = np.argsort(code, kind="stable") if step is None else np.lexsort((step, code))
    draft.keep(order)
    by = "episode" if step is None else "episode and step"
    draft.say(f"Rows are out of order (first in {draft.table.where(first.tolist())}): sorted by {by}.")


def leave_out_repeated(draft: Draft) -> None:
    """Leave out rows that say the same again; two that differ cannot both be right."""
    step, code = draft.columns.get("step"), draft.code
    if step is None:
        return
    same = (code[1:] == code[:-1]) & (step[1:] == step[:-1])
    if not same.any():
        return
    later = np.flatnonzero(same) + 1
    for role, column in draft.columns.items():
        a, b = column[later - 1], column[later]
        equal = (a == b) | ((a != a) & (b != b))
        equal = equal.reshape(later.size, -1).all(axis=1)
        if not equal.all():
            i = int(later[np.flatnonzero(~equal)[0]])
            raise InvalidInputError(
                f"episode {draft.ids[code[i]]!r} has step {plain(step[i])} twice with different "
                f"{draft.name(role)}, in {draft.where([i - 1])} and {draft.where([i])}: leave one out, or give "
                "different episodes different names"
            )
    draft.say(f"{count_of(later.size, 'row')} repeated (first {draft.where(later[:1])}): left out.")
    kept = np.ones(code.size, dtype=np.bool_)
    kept[later] = False
    draft.keep(kept)


def take_final_rows(draft: Draft) -> None:
    """Take out rows without a reward that end an episode: they hold the observation after its last step."""
    rewards, code = draft.columns["reward"], draft.code
    n = code.size
    missing = np.isnan(rewards)
    draft.final_values = np.zeros((len(draft.ids), *draft.columns["observation"].shape[1:]))
    draft.final_known = np.zeros(len(draft.ids), dtype=np.bool_)
    if not missing.any():
        return
    last = np.append(code[1:] != code[:-1], True)
    first = np.append(True, code[1:] != code[:-1])
    if draft.table.continues:
        first[0] = False
    bad = missing & (~last | first)
    if bad.any():
        raise InvalidInputError(
            f"{draft.name('reward')} is missing in {draft.where(np.flatnonzero(bad))}: every step needs a reward "
            "(only the last row of an episode may be without, if it is the observation after the last step); "
            "on_nan='drop' (--drop-nan) drops these episodes"
        )
    rows = np.flatnonzero(missing)
    draft.final_values[code[rows]] = draft.columns["observation"][rows]
    draft.final_known[code[rows]] = True
    for flag in FLAGS:
        if flag in draft.columns:
            draft.columns[flag][rows - 1] |= draft.columns[flag][rows]
    if not draft.table.final_rows_expected:
        draft.say(
            f"{count_of(rows.size, 'episode')} end{'s' * (rows.size == 1)} with a row without a reward: taken for "
            "the observation after the last step."
        )
    draft.keep(~missing)
    if n == rows.size:
        raise InvalidInputError("no row has a reward: pass the column of rewards")
