"""Rows are dealt into episodes and put in order; repeated ones and those after last steps are taken out."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from tlstd.core.arrays import IntArray
from tlstd.errors import CapacityError, InvalidInputError
from tlstd.logs.draft import Draft, missing_in
from tlstd.logs.messages import FILES_NOTE, count_of, joined_note, plain, two_clusters
from tlstd.logs.table import FLAGS, AnyArray, BoolArray


def number_episodes(draft: Draft, ends: BoolArray | None) -> None:
    """Number the episodes: ``code`` of each row, ``ids`` of each number."""
    step = draft.columns.get("step")
    if step is not None and step.dtype.kind == "f" and not np.isfinite(step).all():
        rows = np.flatnonzero(~np.isfinite(step))
        what = "missing" if np.isnan(step[rows[0]]) else f"{step[rows[0]]:g}"
        raise InvalidInputError(f"{draft.name('step')} is {what} in {draft.where(rows)}: every row needs its time")
    draft.named = "episode" in draft.columns
    if draft.named:
        _by_names(draft, draft.columns.pop("episode"), ends)
    else:
        _by_ends(draft, ends)
    draft.has_episodes = draft.named or (ends is not None and bool(ends.any())) or draft.has_episodes


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
        draft.has_episodes = bool(back.size)
        if new.size:
            draft.say(
                f"There are no episode names: {count_of(new.size, 'episode')} begin{'s' * (new.size == 1)} where "
                f"{draft.name('step')} goes back without an end flag (first in {draft.where(new[:1])})."
            )
    if ends is None and step is None and files is not None:
        starts[1:] |= files[1:] != files[:-1]
        draft.say(FILES_NOTE)
    starts[0] = False
    draft.code = np.cumsum(starts)
    draft.ids = list(range(draft.table.first_id, draft.table.first_id + int(draft.code[-1]) + 1))


def _by_names(draft: Draft, episode: AnyArray, ends: BoolArray | None) -> None:
    """By their names; a name may be used again in another file, or after an end, with other steps."""
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
        inverse = inverse.reshape(-1) + names.size * files[stretches]
        names, first, inverse = np.unique(inverse, return_index=True, return_inverse=True)
    again = stretches.size > first.size
    if again and ends is not None and _after_ends(inverse, ends[np.append(stretches[1:], starts.size) - 1]):
        draft.code, draft.ids = stretch, [plain(name) for name in episode[stretches]]
    else:
        rank = np.empty(names.size, dtype=np.int64)
        order = np.argsort(first, kind="stable")
        rank[order] = np.arange(names.size)
        draft.code = rank[inverse.reshape(-1)][stretch]
        draft.ids = [plain(episode[stretches[i]]) for i in first[order]]
    reused = _reused(draft)
    if reused and step is not None:
        _unite(draft, step, reused)
        reused = _reused(draft)
    if reused:
        count, row = len(draft.ids) - len(set(draft.ids)), np.flatnonzero(draft.code == min(reused))[:1]
        where = "in another file" if files is not None else "after an end"
        draft.say(
            f"{count_of(count, 'episode name')} {'is' if count == 1 else 'are'} used again {where} (first "
            f"{draft.ids[min(reused)]!r} in {draft.where(row)}): taken for other episodes."
        )


def _reused(draft: Draft) -> dict[int, int]:
    """Episodes that have the name of an earlier one: their numbers, with that of the first of the name."""
    first: dict[Any, int] = {}
    return {c: first[name] for c, name in enumerate(draft.ids) if first.setdefault(name, c) != c}


def _unite(draft: Draft, step: AnyArray, reused: dict[int, int]) -> None:
    """Make one episode of those that have one name and a step in common: their rows repeat or contradict each other."""
    group = np.arange(len(draft.ids))
    group[list(reused)] = list(reused.values())
    shared = np.isin(group, list(reused.values()))
    rows = np.flatnonzero(shared[draft.code])
    rows = rows[np.lexsort((step[rows], group[draft.code[rows]]))]
    code = draft.code[rows]
    same = (group[code[1:]] == group[code[:-1]]) & (step[rows[1:]] == step[rows[:-1]])
    from scipy.sparse.csgraph import connected_components  # a tenth of a second that most logs do not need

    links = sp.coo_array((np.ones(same.sum()), (code[:-1][same], code[1:][same])), shape=(group.size, group.size))
    _, label = connected_components(links, directed=False)
    first: IntArray = np.unique(label, return_index=True)[1]
    kept, number = np.unique(first[label], return_inverse=True)
    draft.code = number[draft.code]
    draft.ids = [draft.ids[c] for c in kept.tolist()]


def _after_ends(names: IntArray, ended: BoolArray) -> bool:
    """Whether each stretch that has the name of an earlier one comes after an end of the last such one."""
    latest: dict[int, bool] = {}
    for name, end in zip(names.reshape(-1).tolist(), ended.tolist(), strict=True):
        if not latest.get(name, True):
            return False
        latest[name] = end
    return True


def check_clusters(draft: Draft) -> None:
    """Refuse an episode with rows of two clusters. A log without episodes may still become single decisions."""
    clusters, code = draft.columns.get("cluster"), draft.code
    if clusters is None or not draft.has_episodes:
        return
    first = np.empty(len(draft.ids), dtype=np.int64)
    first[code[::-1]] = np.arange(code.size - 1, -1, -1)
    other = np.flatnonzero(clusters != clusters[first[code]])
    if other.size:
        i = int(other[0])
        a, b = (draft.cluster_names[clusters[row]] for row in (first[code[i]], i))
        where = draft.where([first[code[i]]]), draft.where([i])
        raise two_clusters(draft.name("cluster"), draft.ids[code[i]], (a, b), where, named=draft.named)


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
    """Leave out rows that repeat the step of an episode, where episodes have names; two that differ are refused."""
    step, code = draft.columns.get("step"), draft.code
    if step is None or not draft.named:
        return
    if ((code[1:] > code[:-1]) | ((code[1:] == code[:-1]) & (step[1:] > step[:-1]))).all():
        return
    order = np.lexsort((step, code))
    same = np.flatnonzero((code[order[1:]] == code[order[:-1]]) & (step[order[1:]] == step[order[:-1]]))
    earlier, later = order[same], order[same + 1]
    if not later.size:
        return
    for role, column in draft.columns.items():
        a, b = column[earlier], column[later]
        equal = ((a == b) | ((a != a) & (b != b))).reshape(later.size, -1).all(axis=1)
        if not equal.all():
            i = int(np.flatnonzero(~equal)[0])
            raise InvalidInputError(
                f"episode {draft.ids[code[later[i]]]!r} has step {draft.step_shown(step[later[i]])} twice with "
                f"different {draft.name(role)}, in {draft.where([earlier[i]])} and {draft.where([later[i]])}: leave "
                "one out, or, if names of episodes are used anew, leave the names out (columns={'episode': None}, "
                "--map episode=)"
            )
    later = np.sort(later)
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
