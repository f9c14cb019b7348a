"""Pieces of a log as one log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlstd.core.arrays import IntArray
from tlstd.errors import InvalidInputError
from tlstd.logs.log import Log


def concatenate(logs: Sequence[Log]) -> Log:
    """One log of the steps of several; an episode that goes on from one to the next is one episode.

    An episode whose next piece is not there was cut off; one whose piece before is not there has no first state.

    Example
    -------
    >>> log = Log.from_arrays(np.arange(6.0), np.ones(6), episodes=[0, 0, 0, 0, 1, 1], terminated=[0, 0, 0, 1, 0, 1])
    >>> again = concatenate([log[:2], log[2:5], log[5:]])
    >>> again.episodes, again.ids, bool((again.terminated == log.terminated).all())
    (array([0, 4, 6]), [0, 1], True)
    >>> concatenate([log[:2], log[4:]]).truncated
    array([False,  True, False, False])
    """
    logs = [log for log in logs if len(log)]
    if not logs:
        raise InvalidInputError("there are no steps to put together: pass logs that have some")
    goes_on = [a.goes_on and b.continues and a.ids[-1] == b.ids[0] for a, b in pairwise(logs)]
    truncated = [log.truncated.copy() for log in logs]
    for flags, log, more in zip(truncated[:-1], logs[:-1], goes_on, strict=True):
        flags[-1] |= log.goes_on and not more
    starts = [0, *goes_on]  # 1 where the first episode of a log is the last one of the log before
    offsets = np.cumsum([0, *(len(log) for log in logs)])
    first = logs[0]
    if any(log.action_names != first.action_names for log in logs):
        raise InvalidInputError(
            "the logs have different words for actions, so that their numbers mean different ones: make one log of all "
            "files, or write numbers in place of the words"
        )
    clusters, cluster_names = _clusters(logs)
    whole = Log(
        observations=_joined([log.observations for log in logs]),
        actions=None if first.actions is None else _joined([log.actions for log in logs]),
        rewards=np.concatenate([log.rewards for log in logs]),
        terminated=np.concatenate([log.terminated for log in logs]),
        truncated=np.concatenate(truncated),
        final=_joined([log.final[: len(log.final) - more] for log, more in zip(logs, [*goes_on, 0], strict=True)]),
        has_final=np.concatenate(
            [log.has_final[: len(log.final) - more] for log, more in zip(logs, [*goes_on, 0], strict=True)]
        ),
        episodes=np.append(
            np.concatenate([log.episodes[s:-1] + at for log, s, at in zip(logs, starts, offsets[:-1], strict=True)]),
            offsets[-1],
        ),
        ids=[name for log, start in zip(logs, starts, strict=True) for name in log.ids[start:]],
        probabilities=None if first.probabilities is None else _joined([log.probabilities for log in logs]),
        begins=np.concatenate([log.begins[start:] for log, start in zip(logs, starts, strict=True)]),
        has_ends=any(log.has_ends for log in logs),
        has_episodes=any(log.has_episodes for log in logs),
        n_observations=None if first.n_observations is None else max(log.n_observations or 0 for log in logs),
        columns=first.columns,
        notes=tuple(dict.fromkeys(note for log in logs for note in log.notes)),
        continues=first.continues,
        goes_on=logs[-1].goes_on,
        policy=None if first.policy is None else _joined([log.policy for log in logs]),
        action_names=first.action_names,
        roles=first.roles,
        n_dropped=sum(log.n_dropped for log in logs),
        row_clusters=clusters,
        row_cluster_names=cluster_names,
    )
    if whole.n_episodes == len(whole) > len(set(whole.ids)):  # rows by themselves, counted in each file from 0
        whole = replace(whole, ids=list(range(len(whole))))
    return replace(whole, source=first.source if len(logs) == 1 else f"{len(logs):,} pieces")


def _clusters(logs: Sequence[Log]) -> tuple[IntArray | None, tuple[Any, ...]]:
    """The clusters of all rows; those of one name are one cluster."""
    having = [log.row_clusters for log in logs if log.row_clusters is not None]
    if not having:
        return None, ()
    if len(having) < len(logs):
        raise InvalidInputError("some of the logs have clusters and others do not: name the column for all of them")
    number: dict[str, int] = {}
    names: list[Any] = []
    rows = []
    for log, codes in zip(logs, having, strict=True):
        for name in log.row_cluster_names:
            if number.setdefault(str(name), len(names)) == len(names):
                names.append(name)
        rows.append(np.array([number[str(name)] for name in log.row_cluster_names], dtype=np.int64)[codes])
    return np.concatenate(rows), tuple(names)


def _joined(arrays: Sequence[Any]) -> NDArray[Any]:
    shapes = {(None if array is None else array.shape[1:]) for array in arrays}
    if len(shapes) > 1:
        raise InvalidInputError(f"the logs have columns of shapes {sorted(map(str, shapes))}: all need the same")
    return np.concatenate(arrays)
