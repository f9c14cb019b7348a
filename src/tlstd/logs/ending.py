"""Which steps end an episode, and which cut it off: by the flags, and by what is known about time limits."""

from __future__ import annotations

import numpy as np

from tlstd.errors import InvalidInputError
from tlstd.logs.draft import Draft
from tlstd.logs.messages import CUT_OFF_NOTE, STREAM_NOTE, count_of
from tlstd.logs.table import FLAGS, BoolArray


def find_ends(draft: Draft) -> tuple[BoolArray, BoolArray]:
    """Which steps end an episode, and which cut it off, by the flags."""
    code = draft.code
    n = code.size
    last = np.append(code[1:] != code[:-1], True)
    decided = last.copy()
    if draft.table.more:
        decided[-1] = False  # it may go on
    columns = draft.columns
    terminated, truncated = (
        columns[flag] if flag in columns else np.zeros(n, dtype=np.bool_) for flag in ("terminated", "truncated")
    )
    flagged = any(flag in columns for flag in FLAGS)
    if "done" in columns:
        terminated = columns["done"].copy()
        _time_limit(draft, terminated, truncated, last)
    within = (terminated | truncated) & ~last
    if within.any():
        i = int(np.flatnonzero(within)[0])
        raise InvalidInputError(
            f"{_flag_of(draft, i)} is set in {draft.where(np.flatnonzero(within))}, but episode "
            f"{draft.ids[code[i]]!r} goes on in {draft.where([i + 1])}: mend the flags, or leave the names of "
            "episodes out, so that the flags alone say where one ends"
        )
    both = terminated & truncated
    if both.any():
        draft.say(f"{count_of(int(both.sum()), 'step')} both terminated and truncated: taken for terminated.")
        truncated = truncated & ~terminated
    silent = draft.silent = decided & ~terminated & ~truncated
    if not flagged and draft.table.ends == "terminated":
        terminated = decided
    elif silent.any():
        truncated = truncated | silent
        _say_silent(draft, silent, flagged)
    draft.has_ends = bool(terminated.any() or (truncated & ~silent).any() or len(draft.ids) > 1)
    return terminated, truncated


def _flag_of(draft: Draft, i: int) -> str:
    return next(draft.name(flag) for flag in FLAGS if flag in draft.columns and draft.columns[flag][i])


def _say_silent(draft: Draft, silent: BoolArray, flagged: bool) -> None:
    n_episodes, count = len(draft.ids), int(silent.sum())
    names = ", ".join(repr(draft.ids[c]) for c in draft.code[silent][:5].tolist()) + ", …" * (count > 5)
    if not draft.table.may_sort:  # a piece does not know what the others have
        draft.say(
            f"Episodes without an end flag in their last row are {CUT_OFF_NOTE}."
            if flagged
            else f"There are no end flags: episodes are {CUT_OFF_NOTE} (ends='terminated' says otherwise)."
        )
    elif n_episodes == 1:
        draft.say(STREAM_NOTE)
    elif flagged:
        draft.say(
            f"{count:,} of {n_episodes:,} episodes {'has' if count == 1 else 'have'} no end flag in "
            f"{'its' if count == 1 else 'their'} last row ({names}): {CUT_OFF_NOTE}."
        )
    else:
        draft.say(
            f"There are no end flags: all {n_episodes:,} episodes are {CUT_OFF_NOTE} (ends="
            "'terminated' says otherwise)."
        )


def _time_limit(draft: Draft, terminated: BoolArray, truncated: BoolArray, last: BoolArray) -> None:
    """Tell ends from time limits where the log does not; changes the flags in place."""
    ends = np.flatnonzero(terminated & last)
    starts = np.flatnonzero(np.append(True, draft.code[1:] != draft.code[:-1]))
    lengths = ends - starts[draft.code[ends]] + 1
    lengths[draft.code[ends] == 0] += draft.table.before
    limit = draft.table.time_limit
    name = draft.name("done")
    if limit is not None:
        cut = ends[lengths >= limit]
        terminated[cut], truncated[cut] = False, True
        draft.say(
            f"{name} is taken for termination, but for {count_of(cut.size, 'episode')} of {limit:,} steps or more: "
            "cut off by the time limit."
        )
        return
    text = f"{name} is the only end flag: taken for termination, not for a time limit."
    if lengths.size > 1:
        longest = int(lengths.max())
        count = int((lengths == longest).sum())
        if count > 1 and longest > 1:
            text += (
                f" {count:,} of {lengths.size:,} episodes have exactly {longest:,} steps, the most there are: if "
                f"that is a time limit, say time_limit={longest} (--time-limit {longest})."
            )
    draft.say(text)
