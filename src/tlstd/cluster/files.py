"""The files of a log as shards: read, compared, and joined where an episode goes on in the next file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from tlstd import parameters
from tlstd.cluster.crews import Crew
from tlstd.cluster.log_shard import LogFile, Summary
from tlstd.errors import InvalidInputError
from tlstd.evaluation.fitted import LeftOut
from tlstd.logs.words import joined_note

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


def prepare(crew: Crew, files: Sequence[LogFile], on_error: str = "stop") -> Overview:
    """Look at all files, leave out or refuse what cannot be used, and join episodes; the crew's shards are changed.

    Parameters
    ----------
    crew : Crew
        Of :class:`~tlstd.cluster.log_shard.LogShard`, one for each of the files.
    on_error : "stop" or "skip"
        What to do with a file that cannot be read, has other columns than the first, or is a copy of another.
    """
    parameters.choice("on_error", on_error, ("stop", "skip"))
    summaries: list[Summary] = crew.each("summary")
    problems = _problems(files, summaries)
    if problems and (on_error == "stop" or len(problems) == len(files)):
        shown = "; ".join(list(problems.values())[:5]) + ("; …" if len(problems) > 5 else "")
        raise InvalidInputError(
            f"{len(problems)} of {len(files)} files cannot be used: {shown}. Mend them, or leave them out "
            '(on_error="skip", --on-error skip)'
        )
    kept = [i for i in range(len(files)) if i not in problems]
    crew.keep(kept)
    summaries = [summaries[i] for i in kept]
    n_joined = _join(crew, summaries)
    read = crew.each("joined_summary")
    n_episodes = sum(each.n_episodes for each in summaries) - n_joined
    n_dropped = sum(each.n_dropped for each in read)
    notes = [
        f"Left out: {problem}{'' if problem.endswith(('.', '?')) else '.'}" for problem in problems.values()
    ] + _together([each.notes for each in read])
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
        left_out=LeftOut(len(problems), len(files), n_dropped, n_episodes + n_dropped),
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
        if summaries[i].kind != summaries[first].kind:
            found[i] = f"{files[i].path} has other columns, shapes or words for actions than {files[first].path}"
            continue
        hashes = summaries[i].hashes
        if hashes is None or summaries[i].n_steps < SHORTEST * summaries[i].n_episodes:
            continue
        twice = next((h for h in hashes.tolist() if h in seen), None)
        if twice is not None:
            found[i] = f"{files[i].path} has an episode that {files[seen[twice]].path} has too, step by step"
        else:
            seen |= dict.fromkeys(hashes.tolist(), i)
    return found


def _named(file: LogFile, problem: str) -> str:
    return problem if file.path in problem else f"{file.path}: {problem}"


def _join(crew: Crew, summaries: Sequence[Summary]) -> int:
    """Tell every shard which of its episodes go on from the file before and in the next one; how many do."""
    borders = [each.border for each in summaries]
    assert all(border is not None for border in borders)
    goes_on = [a.goes_on_in(b) for a, b in pairwise(borders) if a is not None and b is not None]
    lengths = crew.each("last_length") if any(goes_on) else [0] * len(borders)
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
    crew.change("joined", arguments)
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
