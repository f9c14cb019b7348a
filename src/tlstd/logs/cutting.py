"""Episodes are cut at gaps and where next observations differ, and everything is put together."""

from __future__ import annotations

from typing import Any

import numpy as np

from tlstd.core.arrays import MAX_MAGNITUDE, IntArray, locked
from tlstd.errors import InvalidInputError
from tlstd.logs.draft import Draft, as_rows
from tlstd.logs.messages import LOST_NOTE, count_of
from tlstd.logs.table import AnyArray, BoolArray, Checked


def cut(draft: Draft, terminated: BoolArray, truncated: BoolArray) -> Checked:
    """Cut episodes at gaps, and put everything together."""
    observations, following = draft.columns["observation"], draft.columns.get("next_observation")
    starts, last = draft.firsts, draft.lasts
    gap = _gaps(draft, starts)
    if following is not None:
        gap |= _next(draft, following, observations, last | gap)
    cuts = starts.copy()
    cuts[1:] |= gap[:-1]
    ends = last | gap
    truncated = truncated | (gap & ~last)
    begins = starts[cuts]
    episodes = np.append(np.flatnonzero(cuts), starts.size)
    begins[0] &= draft.table.begins and not draft.table.continues
    final, known = _finals(draft, last, ends)
    _beginnings(draft, begins, episodes)
    _say_lost(draft, truncated[ends], known)
    discrete = draft.n_observations is not None
    kind: Any = np.int64 if discrete else np.float64
    actions, probability, policy, clusters = (
        draft.columns.get(role) for role in ("action", "probability", "policy", "cluster")
    )
    return Checked(
        observations=_read_only(np.ascontiguousarray(observations, dtype=kind)),
        rewards=_read_only(draft.columns["reward"]),
        final=_read_only(final.astype(kind)),
        actions=None if actions is None else _read_only(actions),
        probabilities=None if probability is None else _read_only(probability),
        policy=None if policy is None else _read_only(policy),
        row_clusters=None if clusters is None else _read_only(clusters),
        row_cluster_names=draft.cluster_names,
        terminated=_read_only(terminated),
        truncated=_read_only(truncated),
        has_final=_read_only(known),
        episodes=_read_only(episodes),
        ids=[draft.ids[c] for c in draft.code[cuts].tolist()],
        begins=_read_only(begins),
        has_ends=draft.has_ends,
        has_episodes=draft.has_episodes,
        n_observations=draft.n_observations,
        columns=draft.table.columns or (),
        notes=tuple(draft.notes),
        n_dropped=draft.n_dropped,
        continues=draft.table.continues,
        goes_on=draft.table.more and not (terminated[-1] or truncated[-1]),
        rows=draft.rows,
        steps=draft.columns.get("step"),
        named=draft.named,
        flagged=(terminated | (truncated & ~draft.silent))[ends],
        action_names=draft.action_names,
        times=tuple(draft.times),
        usual=draft.usual,
        least=draft.least,
    )


def _finals(draft: Draft, last: BoolArray, ends: BoolArray) -> tuple[AnyArray, BoolArray]:
    """The observations after the last steps of episodes and pieces of them, and where they are known."""
    observations, following = draft.columns["observation"], draft.columns.get("next_observation")
    n = int(ends.sum())
    final = np.zeros((n, *observations.shape[1:]))
    known = np.zeros(n, dtype=np.bool_)
    of_end = last[ends]  # the last piece of each episode
    which = draft.code[ends][of_end]
    final[of_end], known[of_end] = draft.final_values[which], draft.final_known[which]
    if following is not None:
        given = following[ends]
        sound = (np.abs(as_rows(given)) <= MAX_MAGNITUDE).all(axis=1)
        final[sound], known[sound] = given[sound], True
    return final, known


def _say_lost(draft: Draft, truncated: BoolArray, known: BoolArray) -> None:
    """Say which steps cannot be learned from."""
    lost, n = truncated & ~known, draft.code.size
    if not lost.any():
        return
    count = int(lost.sum())
    draft.say(
        f"After {count:,} of {count_of(int(truncated.sum()), 'cut-off episode')} {LOST_NOTE}: "
        f"{'its last step is' if count == 1 else 'their last steps are'} left out of transitions."
    )
    if count == n and draft.table.may_sort:
        raise InvalidInputError(
            f"none of the {n:,} steps has a next observation: every episode is one row that was cut off; pass "
            "next observations, or name the episodes that rows belong to"
        )


def _gaps(draft: Draft, starts: BoolArray) -> BoolArray:
    """After which rows steps are missing."""
    gap = np.zeros(starts.size, dtype=np.bool_)
    step = draft.columns.get("step")
    if step is None or (step.dtype.kind == "f" and (step != np.floor(step)).any()):
        return gap
    jumps = np.diff(step)
    inside = ~starts[1:]
    if not inside.any():
        return gap
    usual = draft.usual
    if usual is None:
        sizes, counts = np.unique(jumps[inside], return_counts=True)
        usual = draft.usual = sizes[np.argmax(counts)] if counts.max() * 2 >= counts.sum() else 0
    if not usual:
        draft.say(f"{draft.name('step')} has no usual distance between rows: rows are sorted by it, gaps are not seen.")
        return gap
    if usual != 1:
        draft.say(f"{draft.name('step')} goes up by {draft.step_shown(usual)} from row to row: taken for one step.")
    gap[:-1] = inside & (jumps > usual)
    if gap.any():
        rows = np.flatnonzero(gap)
        draft.say(
            f"{count_of(rows.size, 'gap')} in {draft.name('step')} (first after {draft.where(rows[:1])}): the episode "
            "is cut off there, and what follows is no start."
        )
    return gap


def _next(draft: Draft, following: AnyArray, observations: AnyArray, ends: BoolArray) -> BoolArray:
    """After which rows the given next observation is not that of the following row."""
    n = len(observations)
    other = np.zeros(n, dtype=np.bool_)
    inside = np.flatnonzero(~ends[:-1])
    a, b = (as_rows(array) for array in (following[inside], observations[inside + 1]))
    missing = ~(np.abs(a) <= MAX_MAGNITUDE).all(axis=1)
    if missing.any():
        draft.say(
            f"{draft.name('next_observation')} is missing in {count_of(int(missing.sum()), 'row')} within episodes: "
            "taken from the next rows."
        )
    different = ~missing & (a != b).any(axis=1)
    count = int(different.sum())
    if count * 2 > inside.size and inside.size:
        rows = inside[different]
        raise InvalidInputError(
            f"{draft.name('next_observation')} is not the {draft.name('observation')} of the next row in {count:,} "
            f"of {inside.size:,} steps ({draft.where(rows)}): rows are not in the order of their episodes; name the "
            "columns of episode and step"
        )
    if count:
        rows = inside[different]
        other[rows] = True
        draft.say(
            f"In {count_of(count, 'step')} {draft.name('next_observation')} is not the {draft.name('observation')} of "
            f"the next row (first {draft.where(rows[:1])}): the episode is cut off there; what follows is no start."
        )
    return other


def _beginnings(draft: Draft, begins: BoolArray, episodes: IntArray) -> None:
    """Episodes whose first step is later than that of others have no beginning; changes ``begins`` in place."""
    step = draft.columns.get("step")
    if step is None or not begins.any():
        return
    first = step[episodes[:-1]]
    least = draft.least
    if least is None:
        least = first[begins].min()
        common, n_starts = np.count_nonzero(first[begins] == least), np.count_nonzero(begins)
        if n_starts < 2 or (step.dtype.kind == "f" and (step != np.floor(step)).any()) or common * 2 < n_starts:
            return  # a time that runs on
        draft.least = least
    late = np.flatnonzero(begins & (first > least))
    if late.size:
        draft.say(
            f"{count_of(late.size, 'episode')} begin{'s' * (late.size == 1)} later than with step "
            f"{draft.step_shown(least)} (first in {draft.where(episodes[late[:1]])}): the first row is no start."
        )
        begins[late] = False


def _read_only(array: Any) -> Any:
    """A read-only view: the array itself may be the caller's."""
    return locked(array.view())
