"""From columns as they come to arrays of one length: numbers, discrete states, actions, flags."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np

from tlstd.core import parameters
from tlstd.core.arrays import IntArray
from tlstd.errors import InvalidInputError, InvalidParameterError
from tlstd.logs.draft import EXACT, Draft, as_column, missing_in, nanoseconds, time_kind
from tlstd.logs.messages import first_value, plain, type_name
from tlstd.logs.table import FLAGS, AnyArray, BoolArray, Ends, OnNan

MOST_STATES = 1_000
"""Integers below this count as discrete observations, and also those below the number of rows."""
MOST_NUMBERS = 1_000
"""Numbers in an observation above which it is taken for an image."""
_WORDS = {"true": True, "false": False, "1": True, "0": False, "t": True, "f": False, "yes": True, "no": False}


def check_options(draft: Draft) -> None:
    """What the caller says fits together."""
    table = draft.table
    if table.ends is not None:
        parameters.choice("ends", table.ends, get_args(Ends))
    parameters.choice("on_nan", table.on_nan, get_args(OnNan))
    if table.time_limit is not None:
        parameters.integer("time_limit", table.time_limit)
    if table.n_observations is not None:
        parameters.integer("n_observations", table.n_observations)
    parameters.integer("memory", table.memory, low=0)
    if table.done is not None and (table.terminated is not None or table.truncated is not None):
        raise InvalidParameterError("there are both done and terminated or truncated: done says less, so leave it out")
    flags = [flag for flag in FLAGS if getattr(table, flag) is not None]
    if table.time_limit is not None and flags != ["done"]:
        raise InvalidParameterError(f"time_limit={table.time_limit} is for logs with done only: leave it out")
    if table.ends is not None and flags:
        raise InvalidParameterError(f"ends={table.ends!r} is for logs without end flags: leave it out")


def convert(draft: Draft) -> None:
    """Make arrays of the columns."""
    table = draft.table
    observations = _observation(draft, table.observation, "observation")
    n = len(observations)
    if n == 0:
        raise InvalidInputError("the log has no rows: pass at least one step")
    draft.rows = np.arange(n)
    columns = {"observation": observations, "reward": _numbers(draft, table.reward, "reward")}
    if table.next_observation is not None:
        columns["next_observation"] = _observation(draft, table.next_observation, "next_observation")
    if table.action is not None:
        columns["action"] = _action(draft, table.action)
    if table.probability is not None:
        columns["probability"] = _numbers(draft, table.probability, "probability")
    if table.policy is not None:
        columns["policy"] = _numbers(draft, table.policy, "policy")
    if table.step is not None:
        columns["step"] = _step(draft, table.step)
    if table.episode is not None:
        columns["episode"] = _names(draft, table.episode, "episode")
    if table.cluster is not None:
        columns["cluster"] = _names(draft, table.cluster, "cluster")
    for flag in FLAGS:
        if getattr(table, flag) is not None:
            columns[flag] = as_column(getattr(table, flag), draft.name(flag))
    for role, column in columns.items():
        if len(column) != n:
            raise InvalidInputError(
                f"{draft.name(role)} has {len(column)} rows and {draft.name('observation')} {n}: each step needs one"
            )
        if column.ndim != 1 and role not in ("observation", "next_observation", "action", "policy"):
            raise InvalidInputError(f"{draft.name(role)} has shape {column.shape}: pass one value for each step")
    if "cluster" in columns:
        columns["cluster"] = _clusters(draft, columns["cluster"])
    draft.columns = columns
    if draft.times:
        draft.say(f"Times are in seconds: {', '.join(f'{name} ({kind})' for name, kind in draft.times.items())}.")
    _as_discrete(draft)


def _observation(draft: Draft, value: Any, role: str) -> AnyArray:
    array, name = draft.as_numbers(value, role), draft.name(role)
    if array.ndim == 0:
        raise InvalidInputError(f"{name} is {array}, a single value: pass one observation for each step")
    if array.ndim == 2 and not array.shape[1]:
        raise InvalidInputError(f"{name} has observations of no numbers: pass at least one for each step")
    if array.ndim > 2 or (array.ndim == 2 and array.shape[1] > MOST_NUMBERS):
        raise InvalidInputError(
            f"{name} has observations of shape {array.shape[1:]}: images are not read; encode them first and pass "
            f"at most {MOST_NUMBERS} numbers a step"
        )
    if array.dtype.kind not in "fiub":
        raise InvalidInputError(
            f"{name} has values of type {type_name(array)}, the first {first_value(array)!r}: pass numbers, one column "
            "for each (or a column of lists, in parquet)"
        )
    return array.astype(np.float64) if array.dtype.kind == "b" else array


def _numbers(draft: Draft, value: Any, role: str, *, keep: bool = False) -> AnyArray:
    array, name = draft.as_numbers(value, role), draft.name(role)
    if array.dtype.kind not in "fiub":
        raise InvalidInputError(
            f"{name} has values of type {type_name(array)}, the first {first_value(array)!r}: pass numbers"
        )
    return array if keep and array.dtype.kind in "iu" else array.astype(np.float64, copy=False)


def _step(draft: Draft, value: Any) -> AnyArray:
    """Steps as numbers; times as integers of nanoseconds, whatever their unit."""
    array, name = as_column(value, draft.name("step")), draft.name("step")
    if array.dtype.kind not in "mM":
        return _numbers(draft, array, "step", keep=True)
    draft.times[name] = time_kind(array)
    return nanoseconds(array, name)


def _names(draft: Draft, value: Any, role: str) -> AnyArray:
    """Names; times as integers of nanoseconds, and no numbers of which several look the same."""
    array, name = as_column(value, draft.name(role)), draft.name(role)
    if array.dtype.kind in "mM":
        return nanoseconds(array, name)
    if array.dtype.kind == "f" and (inexact := np.abs(array) >= EXACT).any():
        rows = np.flatnonzero(inexact)
        raise InvalidInputError(
            f"{name} is {array[rows[0]]:.17g} in {draft.where(rows)}, a floating-point number: beyond 2^53 different "
            "names become the same; store names as integers or as text"
        )
    return array


def _clusters(draft: Draft, array: AnyArray) -> IntArray:
    """The clusters of rows as numbers, in order of first appearance."""
    missing = missing_in(array)
    if missing.any():
        rows = np.flatnonzero(missing)
        raise InvalidInputError(
            f"{draft.name('cluster')} is missing in {draft.where(rows)}: every row needs the name of its cluster"
        )
    starts = np.append(True, array[1:] != array[:-1])  # names are compared by stretches of equal rows
    values = array[starts].tolist()
    number: dict[str, int] = {}
    names: list[Any] = []
    codes = np.empty(len(values), dtype=np.int64)
    for i, name in enumerate(values):
        word = name if type(name) is str else str(plain(name))  # a number and its word are one name
        codes[i] = number.setdefault(word, len(names))
        if codes[i] == len(names):
            names.append(plain(name))
    draft.cluster_names = tuple(names)
    of_rows: IntArray = codes[np.cumsum(starts) - 1]
    return of_rows


def _action(draft: Draft, value: Any) -> AnyArray:
    array, name = as_column(value, draft.name("action")), draft.name("action")
    if array.dtype.kind in "mM":
        raise InvalidInputError(f"{name} has times: pass integers, numbers or words")
    if array.ndim > 2 or array.ndim == 0:
        raise InvalidInputError(f"{name} has shape {array.shape}: pass (N,) or (N, A)")
    if array.ndim == 2 and array.shape[1] == 1 and array.dtype.kind in "iub":
        array = array[:, 0]
    if array.dtype.kind in "biu" and array.ndim == 1:
        return array.astype(np.int64)
    if array.dtype.kind in "fiu":
        return array.astype(np.float64, copy=False).reshape(len(array), -1)
    if array.ndim != 1 or not all(isinstance(a, str) for a in array):
        raise InvalidInputError(f"{name} has values of type {type_name(array)}: pass integers, numbers or words")
    if not draft.table.may_sort:
        raise InvalidInputError(
            f"{name} has words: in a log that is read in chunks actions are integers or numbers. Read it whole, or "
            "write numbers in place of the words"
        )
    told = array.tolist()
    words = sorted(set(told))  # not as an array of words: each would take the room of the longest one
    code = {word: i for i, word in enumerate(words)}
    draft.say(f"Actions are words: {', '.join(f'{i} is {str(word)!r}' for i, word in enumerate(words[:20]))}.")
    draft.action_names = tuple(map(str, words))
    return np.fromiter(map(code.__getitem__, told), dtype=np.int64, count=len(told))


def _as_discrete(draft: Draft) -> None:
    """Decide whether observations are numbers of states, and bring them into their form."""
    table, observations = draft.table, draft.columns["observation"]
    one, name = observations.ndim == 1, draft.name("observation")
    kind = observations.dtype.kind
    discrete = table.discrete
    if table.n_observations is not None and discrete is None:
        discrete = True
    if discrete is None:
        discrete = False
        if one and kind in "iu":
            low, high = int(observations.min()), int(observations.max())
            discrete = low >= 0 and high < max(MOST_STATES, len(observations))
            if discrete:
                draft.say(f"{name} has integers from {low} to {high}: taken for discrete states.")
            else:
                draft.say(f"{name} has integers from {low} to {high}: taken for a number, not for discrete states.")
    if not discrete:
        for role in ("observation", "next_observation"):
            if role in draft.columns:
                array = draft.columns[role].astype(np.float64, copy=False)
                draft.columns[role] = array.reshape(len(array), -1)
        _check_shapes(draft)
        return
    if not one:
        raise InvalidInputError(f"{name} has shape {observations.shape}: discrete observations are one integer a step")
    for role in ("observation", "next_observation"):
        if role in draft.columns:
            draft.columns[role] = _states(draft, draft.columns[role], role)
    _check_shapes(draft)


def _check_shapes(draft: Draft) -> None:
    observation, following = draft.columns["observation"], draft.columns.get("next_observation")
    if following is not None and following.shape[1:] != observation.shape[1:]:
        raise InvalidInputError(
            f"{draft.name('observation')} has shape {observation.shape} and {draft.name('next_observation')} "
            f"{following.shape}: observations before and after a step are alike"
        )


def _states(draft: Draft, array: AnyArray, role: str) -> AnyArray:
    """Discrete observations as float64 (they may have NaN after a last step), whole and in range."""
    numbers = array.astype(np.float64)
    known = ~np.isnan(numbers)
    most = draft.table.n_observations
    bad = known & ((numbers != np.floor(numbers)) | (numbers < 0) | (numbers >= (2**53 if most is None else most)))
    if bad.any():
        i = int(np.flatnonzero(bad)[0])
        limit = "" if most is None else f" below n_observations={most}"
        raise InvalidInputError(
            f"{draft.name(role)} is {numbers[i]:g} in {draft.where([i])}: discrete observations are integers from 0"
            f"{limit}"
        )
    if most is None:
        largest = int(numbers[known].max(initial=0)) + 1
        draft.n_observations = max(draft.n_observations or 1, largest)
    else:
        draft.n_observations = most
    return numbers


def convert_flags(draft: Draft) -> BoolArray | None:
    """Bring the flags into their form; where any of them is set, or None if there are none."""
    ends = None
    for flag in FLAGS:
        if flag in draft.columns:
            draft.columns[flag] = _flag(draft, draft.columns[flag], flag)
            ends = draft.columns[flag] if ends is None else ends | draft.columns[flag]
    return ends


def _flag(draft: Draft, array: AnyArray, role: str) -> BoolArray:
    if array.dtype.kind == "b":
        return array.astype(np.bool_)
    if array.dtype.kind in "iuf":
        bad = ~((array == 0) | (array == 1))
        result: BoolArray = array == 1
    else:
        words = [_WORDS.get(str(value).strip().lower()) for value in array]
        bad = np.array([word is None for word in words], dtype=np.bool_)
        result = np.array([bool(word) for word in words], dtype=np.bool_)
    if bad.any():
        rows = np.flatnonzero(bad)
        raise InvalidInputError(
            f"{draft.name(role)} is {plain(array[rows[0]])!r} in {draft.where(rows)}: pass True or False, or 1 or 0"
        )
    return result
