"""The files of a log as shards: read, compared, and joined where an episode goes on in the next file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple, get_args

import numpy as np

from tlstd.cluster.log_shard import LogFile, Summary
from tlstd.cluster.shard_pool import ShardPool
from tlstd.core import parameters
from tlstd.core.parameters import OnError
from tlstd.errors import InvalidInputError
from tlstd.evaluation.trust import LeftOut
from tlstd.logs.messages import count_of, joined_note

SHORTEST = 10
"""Steps of an episode on average from which the same one in two files is taken for a copy."""


class Overview(NamedTuple):
    """What is known of a log in files before anything is learned from it."""

    n_steps: int
    n_episodes: int
    n_starts: int
    n_actions: int
    has_ends: bool
    notes: list[str]
    nbytes: int
    left_out: LeftOut


def prepare(
    pool: ShardPool, files: Sequence[LogFile], on_error: OnError = "stop", *, gamma: float | None = None
) -> Overview:
    """Look at all files, leave out or refuse what cannot be used, and join episodes; the pool's shards are changed.

    Parameters
    ----------
    pool : ShardPool
        Of :class:`~tlstd.cluster.log_shard.LogShard`, one for each of the files.
    on_error : "stop" or "skip"
        What to do with a file that cannot be read, has other columns than the first, or contradicts another.
    gamma : float, optional
        The discount, if it is known. With 0 the rows of files without episodes are episodes of one step.
    """
    parameters.choice("on_error", on_error, get_args(OnError))
    summaries: list[Summary] = pool.each("summary")
    problems = _problems(files, summaries)
    repeated = _repeated(files, summaries, problems)
    if problems and (on_error == "stop" or len(problems) == len(files)):
        shown = "; ".join(list(problems.values())[:5]) + ("; …" if len(problems) > 5 else "")
        raise InvalidInputError(
            f"{len(problems)} of {len(files)} files cannot be used: {shown}. Mend them, or leave them out "
            '(on_error="skip", --on-error skip)'
        )
    kept = [i for i in range(len(files)) if i not in problems and i not in repeated]
    pool.keep(kept)
    summaries = [summaries[i] for i in kept]
    if gamma == 0.0 and not any(each.has_episodes for each in summaries):
        pool.change("as_decisions", [()] * len(kept))
        summaries = pool.each("summary")
        n_joined = 0
    else:
        n_joined = _join(pool, summaries)
    read = pool.each("joined_summary")
    n_episodes = sum(each.n_episodes for each in summaries) - n_joined
    n_dropped = sum(each.n_dropped for each in read)
    notes = [f"Left out: {problem}{'' if problem.endswith(('.', '?')) else '.'}" for problem in problems.values()]
    notes += [*repeated.values(), *_together([each.notes for each in read])]
    if n_joined:
        notes.append(joined_note(n_joined))
    return Overview(
        n_steps=sum(each.n_steps for each in summaries),
        n_episodes=n_episodes,
        n_starts=sum(each.n_starts for each in read),
        n_actions=max(each.n_actions for each in summaries),
        has_ends=any(each.has_ends for each in summaries),
        notes=notes,
        nbytes=sum(each.nbytes for each in summaries),
        left_out=LeftOut(len(problems), len(files) - len(repeated), n_dropped, n_episodes + n_dropped),
    )


def _problems(files: Sequence[LogFile], summaries: Sequence[Summary]) -> dict[int, str]:
    """What is wrong with files, by their number."""
    found = {i: _named(files[i], each.problem) for i, each in enumerate(summaries) if each.problem}
    sound = [i for i in range(len(files)) if i not in found]
    if not sound:
        return found
    first = sound[0]
    seen: dict[int, int] = {}
    for i in sound:
        each = summaries[i]
        if each.kind != summaries[first].kind:
            found[i] = f"{files[i].name} has other columns, shapes or words for actions than {files[first].name}"
        elif each.episodes and each.episodes.spans is None and each.n_steps >= SHORTEST * each.n_episodes:
            contents = each.episodes.contents.tolist()
            twice = next((h for h in contents if h in seen), None)
            if twice is not None:
                found[i] = f"{files[i].name} has an episode that {files[seen[twice]].name} has too, step by step"
            else:
                seen |= dict.fromkeys(contents, i)
    return found


def _repeated(files: Sequence[LogFile], summaries: Sequence[Summary], problems: dict[int, str]) -> dict[int, str]:
    """Notes about files of which others have all rows, by their number; ``problems`` learns of those that differ.

    Two files have the same rows if these have the same ids, a name of an episode and a step, and the same contents.
    """
    found: dict[int, str] = {}
    known_ids = {i: each.episodes for i, each in enumerate(summaries) if i not in problems and each.episodes}
    if not known_ids:
        return found
    names, counts = np.unique(np.concatenate([np.unique(ids.names) for ids in known_ids.values()]), return_counts=True)
    shared = names[counts > 1]
    known: dict[int, list[tuple[Any, Any, int, int]]] = {}
    for i, ids in known_ids.items():
        if ids.spans is None:
            continue
        n_again, differs, new = 0, None, []
        for e in np.flatnonzero(np.isin(ids.names, shared)).tolist():
            name, (low, high), contents = int(ids.names[e]), ids.spans[e].tolist(), int(ids.contents[e])
            overlapping = [of for of in known.get(name, []) if low <= of[1] and of[0] <= high]
            if (low, high, contents) in [of[:3] for of in overlapping]:
                n_again += 1
            elif overlapping:
                differs = overlapping[0][3]
            else:
                new.append((name, (low, high, contents, i)))
        if n_again == ids.names.size:
            n_rows = count_of(summaries[i].n_steps, "row")
            found[i] = f"{files[i].name} repeats other files: its {n_rows} are left out."
            continue
        if differs is not None:
            problems[i] = (
                f"{files[i].name} has steps of episodes that {files[differs].name} has with other contents, or in "
                "part: leave them out of one, or, if names of episodes are used anew, leave the names out "
                "(columns={'episode': None}, --map episode=)"
            )
            continue
        if n_again:
            problems[i] = (
                f"{files[i].name} repeats {count_of(n_again, 'episode')} of other files: leave them out, or "
                "evaluate without workers"
            )
            continue
        for name, span in new:
            known.setdefault(name, []).append(span)
    return found


def _named(file: LogFile, problem: str) -> str:
    return problem if file.name in problem else f"{file.name}: {problem}"


def _join(pool: ShardPool, summaries: Sequence[Summary]) -> int:
    """Tell every shard which of its episodes go on from the file before and in the next one; how many do."""
    borders = [each.border for each in summaries]
    assert all(border is not None for border in borders)
    goes_on = [a.goes_on_in(b) for a, b in pairwise(borders) if a is not None and b is not None]
    lengths = pool.each("last_length") if any(goes_on) else [0] * len(borders)
    n_observations = max(each.n_observations for each in summaries) or None
    arguments, length, first_id, n_before = [], 0, 0, 0
    for i in range(len(borders)):
        before = borders[i - 1] if i and goes_on[i - 1] else None
        after = borders[i + 1] if i < len(goes_on) and goes_on[i] else None
        arguments.append((before, after, length, first_id, n_before, n_observations))
        n_before += summaries[i].n_steps
        first_id += summaries[i].n_episodes - (after is not None)
        inside = before is not None and summaries[i].n_episodes == 1
        length = lengths[i] + (length if inside else 0) if after is not None else 0
    pool.change("joined", arguments)
    return sum(goes_on)


def _together(notes: Sequence[Sequence[str]]) -> list[str]:
    """Notes of all files; those that differ in numbers and names only are said once."""
    found: dict[str, list[str]] = {}
    for own in notes:
        for note in own:
            found.setdefault(re.sub(r"\d[\d,.]*|\([^)]*\)", "#", note), []).append(note)
    return [
        same[0] if len(set(same)) == 1 else f"{same[0]} So or similarly in {len(same):,} files."
        for same in found.values()
    ]
