"""From the columns of a table, one row a step, to a sound log: what is mended, counted and said, and what is refused.

In this order: columns become arrays of one length; rows are dealt into episodes, sorted where they are out of order,
and repeated ones left out; rows that hold nothing but the observation after a last step are taken out; numbers are
checked; ends, gaps and next observations say where an episode is cut. Every error names rows as they are in the source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlstd import parameters
from tlstd.errors import CapacityError, InvalidInputError, InvalidParameterError
from tlstd.validation import MAX_MAGNITUDE, FloatArray, IntArray, locked

BoolArray = NDArray[np.bool_]
AnyArray = NDArray[Any]

MEMORY = 2 * 2**30
"""Bytes that sorting may take unless told otherwise."""
MOST_STATES = 1_000
"""Integers below this count as discrete observations, and also those below the number of rows."""
MOST_NUMBERS = 1_000
"""Numbers in an observation above which it is taken for an image."""

FLAGS = ("terminated", "truncated", "done")
ENDS = ("terminated", "truncated")
_WORDS = {"true": True, "false": False, "1": True, "0": False, "t": True, "f": False, "yes": True, "no": False}


def name_rows(rows: Sequence[int]) -> str:
    """Some rows in words.

    Example
    -------
    >>> name_rows([3]), name_rows(range(12))
    ('row 3', 'rows 0, 1, 2, 3, 4, … (12 in all)')
    """
    text = f"row{'s' * (len(rows) > 1)} " + ", ".join(map(str, rows[:5]))
    return text if len(rows) <= 5 else f"{text}, … ({len(rows):,} in all)"


@dataclass
class Table:
    """The columns of a log by what they are, as they come, and what the caller says about them."""

    observation: Any
    reward: Any
    action: Any = None
    terminated: Any = None
    truncated: Any = None
    done: Any = None
    episode: Any = None
    step: Any = None
    next_observation: Any = None
    probability: Any = None
    discrete: bool | None = None
    n_observations: int | None = None
    time_limit: int | None = None
    ends: str | None = None
    columns: tuple[str, ...] | None = None
    memory: int = MEMORY
    names: dict[str, str] = field(default_factory=dict)
    """What the columns are called in the source, by what they are."""
    where: Callable[[Sequence[int]], str] = name_rows
    """Names rows of the source."""
    files: IntArray | None = None
    """The number of the file that each row is from, if there are several."""
    final_rows_expected: bool = False
    """Whether rows without a reward are how this source has final observations, and not worth a note."""
    continues: bool = False
    """Whether the first row goes on with an episode of which earlier rows have been seen."""
    before: int = 0
    """How many of them."""
    begins: bool = True
    """Whether the first row can be the start of an episode."""
    first_id: int = 0
    """What the first episode is called where they have no names."""
    usual: Any = None
    """The distance of steps from row to row, if it is known."""
    least: Any = None
    """The first step of an episode, if it is known."""
    more: bool = False
    """Whether more rows follow: nothing is said about how the last episode ends."""
    may_sort: bool = True
    notes: tuple[str, ...] = ()
    """What was said before."""


@dataclass
class Checked:
    """The parts of a :class:`Log`."""

    observations: FloatArray | IntArray
    actions: IntArray | FloatArray | None
    rewards: FloatArray
    terminated: BoolArray
    truncated: BoolArray
    final: FloatArray | IntArray
    has_final: BoolArray
    episodes: IntArray
    ids: list[Any]
    probabilities: FloatArray | None
    begins: BoolArray
    has_ends: bool
    n_observations: int | None
    columns: tuple[str, ...]
    notes: tuple[str, ...]
    continues: bool
    goes_on: bool
    rows: IntArray
    """(N,): the row of the source that each is."""
    flagged: BoolArray
    """(E,): whether a flag says that the episode ends there."""
    usual: Any
    least: Any


def check(table: Table) -> Checked:
    """Make a log of a table, or refuse it."""
    return _Check(table).run()


class _Check:
    """The columns on their way; all of one length at any time, with the row of the source for each."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.notes: list[str] = list(table.notes)
        self.columns: dict[str, AnyArray] = {}
        self.n_observations: int | None = None
        self.rows: IntArray = np.zeros(0, dtype=np.int64)
        self.code: IntArray = self.rows
        self.ids: list[Any] = []
        self.usual, self.least = table.usual, table.least

    def run(self) -> Checked:
        """Do everything in turn."""
        self._options()
        self._convert()
        ends = self._flags()
        self._episodes(ends)
        self._order()
        self._repeated()
        self._final_rows()
        self._check_numbers()
        terminated, truncated = self._ends()
        return self._cut(terminated, truncated)

    # --- words ------------------------------------------------------------------------------------------------------

    def name(self, role: str) -> str:
        """What a column is called in the source."""
        return self.table.names.get(role, role)

    def where(self, rows: Iterable[int]) -> str:
        """Names some rows as they are in the source: 'row 3', 'rows 3, 7, … (12 in all)'."""
        return self.table.where([int(self.rows[i]) for i in rows])

    def say(self, text: str) -> None:
        """Add a note."""
        self.notes.append(text)

    # --- columns ----------------------------------------------------------------------------------------------------

    def _options(self) -> None:
        table = self.table
        if table.ends is not None:
            parameters.choice("ends", table.ends, ENDS)
        if table.time_limit is not None:
            parameters.integer("time_limit", table.time_limit)
        if table.n_observations is not None:
            parameters.integer("n_observations", table.n_observations)
        parameters.integer("memory", table.memory, low=0)
        if table.done is not None and (table.terminated is not None or table.truncated is not None):
            raise InvalidParameterError(
                "there are both done and terminated or truncated: done says less, so leave it out"
            )
        flags = [flag for flag in FLAGS if getattr(table, flag) is not None]
        if table.time_limit is not None and flags != ["done"]:
            raise InvalidParameterError(f"time_limit={table.time_limit} is for logs with done only: leave it out")
        if table.ends is not None and flags:
            raise InvalidParameterError(f"ends={table.ends!r} is for logs without end flags: leave it out")

    def _convert(self) -> None:
        table = self.table
        observations = self._observation(table.observation, "observation")
        n = len(observations)
        if n == 0:
            raise InvalidInputError("the log has no rows: pass at least one step")
        self.rows = np.arange(n)
        columns = {"observation": observations, "reward": self._numbers(table.reward, "reward")}
        if table.next_observation is not None:
            columns["next_observation"] = self._observation(table.next_observation, "next_observation")
        if table.action is not None:
            columns["action"] = self._action(table.action)
        if table.probability is not None:
            columns["probability"] = self._numbers(table.probability, "probability")
        if table.step is not None:
            columns["step"] = self._numbers(table.step, "step", keep=True)
        if table.episode is not None:
            columns["episode"] = as_column(table.episode, self.name("episode"))
        for flag in FLAGS:
            if getattr(table, flag) is not None:
                columns[flag] = as_column(getattr(table, flag), self.name(flag))
        for role, column in columns.items():
            if len(column) != n:
                raise InvalidInputError(
                    f"{self.name(role)} has {len(column)} rows and {self.name('observation')} {n}: each step needs one"
                )
            if column.ndim != 1 and role not in ("observation", "next_observation", "action"):
                raise InvalidInputError(f"{self.name(role)} has shape {column.shape}: pass one value for each step")
        self.columns = columns
        self._as_discrete()

    def _observation(self, value: Any, role: str) -> AnyArray:
        array, name = as_column(value, self.name(role)), self.name(role)
        if array.ndim == 0:
            raise InvalidInputError(f"{name} is {array}, a single value: pass one observation for each step")
        if array.ndim > 2 or (array.ndim == 2 and array.shape[1] > MOST_NUMBERS):
            raise InvalidInputError(
                f"{name} has observations of shape {array.shape[1:]}: images are not read; encode them first and pass "
                f"at most {MOST_NUMBERS} numbers a step"
            )
        if array.dtype.kind not in "fiub":
            raise InvalidInputError(
                f"{name} has values of type {_type(array)}, the first {_first(array)!r}: pass numbers, one column for "
                "each (or a column of lists, in parquet)"
            )
        return array.astype(np.float64) if array.dtype.kind == "b" else array

    def _numbers(self, value: Any, role: str, *, keep: bool = False) -> AnyArray:
        array, name = as_column(value, self.name(role)), self.name(role)
        if array.dtype.kind not in "fiub":
            raise InvalidInputError(
                f"{name} has values of type {_type(array)}, the first {_first(array)!r}: pass numbers"
            )
        return array if keep and array.dtype.kind in "iu" else array.astype(np.float64, copy=False)

    def _action(self, value: Any) -> AnyArray:
        array, name = as_column(value, self.name("action")), self.name("action")
        if array.ndim > 2 or array.ndim == 0:
            raise InvalidInputError(f"{name} has shape {array.shape}: pass (N,) or (N, A)")
        if array.ndim == 2 and array.shape[1] == 1 and array.dtype.kind in "iub":
            array = array[:, 0]
        if array.dtype.kind in "biu" and array.ndim == 1:
            return array.astype(np.int64)
        if array.dtype.kind in "fiu":
            return array.astype(np.float64, copy=False).reshape(len(array), -1)
        if array.ndim != 1 or not all(isinstance(a, str) for a in array):
            raise InvalidInputError(f"{name} has values of type {_type(array)}: pass integers, numbers or words")
        if not self.table.may_sort:
            raise InvalidInputError(
                f"{name} has words: in a log that is read in chunks actions are integers or numbers"
            )
        words, codes = np.unique(array.astype(str), return_inverse=True)
        self.say(f"Actions are words: {', '.join(f'{i} is {word!r}' for i, word in enumerate(words[:20].tolist()))}.")
        return codes.astype(np.int64)

    def _as_discrete(self) -> None:
        """Decide whether observations are numbers of states, and bring them into their form."""
        table, observations = self.table, self.columns["observation"]
        one, name = observations.ndim == 1, self.name("observation")
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
                    self.say(f"{name} has integers from {low} to {high}: taken for discrete states.")
                else:
                    self.say(f"{name} has integers from {low} to {high}: taken for a number, not for discrete states.")
        if not discrete:
            for role in ("observation", "next_observation"):
                if role in self.columns:
                    array = self.columns[role].astype(np.float64, copy=False)
                    self.columns[role] = array.reshape(len(array), -1)
            self._check_shapes()
            return
        if not one:
            raise InvalidInputError(
                f"{name} has shape {observations.shape}: discrete observations are one integer a step"
            )
        for role in ("observation", "next_observation"):
            if role in self.columns:
                self.columns[role] = self._states(self.columns[role], role)
        self._check_shapes()

    def _check_shapes(self) -> None:
        observation, following = self.columns["observation"], self.columns.get("next_observation")
        if following is not None and following.shape[1:] != observation.shape[1:]:
            raise InvalidInputError(
                f"{self.name('observation')} has shape {observation.shape} and {self.name('next_observation')} "
                f"{following.shape}: observations before and after a step are alike"
            )

    def _states(self, array: AnyArray, role: str) -> AnyArray:
        """Discrete observations as float64 (they may have NaN after a last step), whole and in range."""
        numbers = array.astype(np.float64)
        known = ~np.isnan(numbers)
        most = self.table.n_observations
        bad = known & ((numbers != np.floor(numbers)) | (numbers < 0) | (numbers >= (2**53 if most is None else most)))
        if bad.any():
            i = int(np.flatnonzero(bad)[0])
            limit = "" if most is None else f" below n_observations={most}"
            raise InvalidInputError(
                f"{self.name(role)} is {numbers[i]:g} in {self.where([i])}: discrete observations are integers from 0"
                f"{limit}"
            )
        if most is None:
            largest = int(numbers[known].max(initial=0)) + 1
            self.n_observations = max(self.n_observations or 1, largest)
        else:
            self.n_observations = most
        return numbers

    def _flags(self) -> BoolArray | None:
        """Bring the flags into their form; where any of them is set, or None if there are none."""
        ends = None
        for flag in FLAGS:
            if flag in self.columns:
                self.columns[flag] = self._flag(self.columns[flag], flag)
                ends = self.columns[flag] if ends is None else ends | self.columns[flag]
        return ends

    def _flag(self, array: AnyArray, role: str) -> BoolArray:
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
                f"{self.name(role)} is {_plain(array[rows[0]])!r} in {self.where(rows)}: pass True or False, or 1 or 0"
            )
        return result

    # --- rows -------------------------------------------------------------------------------------------------------

    def _keep(self, chosen: BoolArray | IntArray) -> None:
        self.columns = {role: column[chosen] for role, column in self.columns.items()}
        self.rows, self.code = self.rows[chosen], self.code[chosen]

    def _episodes(self, ends: BoolArray | None) -> None:
        """Number the episodes: ``code`` of each row, ``ids`` of each number."""
        n = self.rows.size
        step = self.columns.get("step")
        if step is not None and step.dtype.kind == "f" and np.isnan(step).any():
            rows = np.flatnonzero(np.isnan(step))
            raise InvalidInputError(f"{self.name('step')} is missing in {self.where(rows)}: every row needs its time")
        if "episode" not in self.columns:
            starts = np.zeros(n, dtype=np.bool_)
            if ends is not None:
                starts[1:] = ends[:-1]
            if step is not None:
                back = np.flatnonzero(step[1:] < step[:-1]) + 1
                new = back[~starts[back]]
                starts[back] = True
                if new.size:
                    self.say(
                        f"There are no episode names: {_count(new.size, 'episode')} begin{'s' * (new.size == 1)} where "
                        f"{self.name('step')} goes back without an end flag (first in {self.where(new[:1])})."
                    )
            files = self.table.files
            if ends is None and step is None and files is not None:
                starts[1:] |= files[1:] != files[:-1]
                self.say(
                    "There are no names of episodes, no end flags and no steps: each file is taken for an episode."
                )
            starts[0] = False
            self.code = np.cumsum(starts)
            self.ids = list(range(self.table.first_id, self.table.first_id + int(self.code[-1]) + 1))
            return
        episode = self.columns.pop("episode")
        missing = _missing(episode)
        if missing.any():
            rows = np.flatnonzero(missing)
            raise InvalidInputError(f"{self.name('episode')} is missing in {self.where(rows)}: every row needs a name")
        starts = np.append(True, episode[1:] != episode[:-1])
        files = self.table.files
        if files is not None:  # a file may go on with the episode of the one before
            border = np.flatnonzero(files[1:] != files[:-1]) + 1
            after = np.ones(border.size, dtype=np.bool_) if ends is None else ~ends[border - 1]
            starts[border] |= ~after if step is None else step[border] <= step[border - 1]
        stretches = np.flatnonzero(starts)
        names, first, inverse = np.unique(_comparable(episode[stretches]), return_index=True, return_inverse=True)
        stretch = np.cumsum(starts) - 1
        if files is not None:
            inverse, n_names = inverse.reshape(-1) + names.size * files[stretches], names.size
            names, first, inverse = np.unique(inverse, return_index=True, return_inverse=True)
            if names.size > n_names:
                self.say("Names of episodes occur in several files: taken for different episodes.")
        if names.size < stretches.size:
            last = np.append(stretches[1:], n) - 1
            again = np.setdiff1d(np.arange(stretches.size), first)
            ended = np.zeros(stretches.size, dtype=np.bool_) if ends is None else ends[last]
            before = np.zeros(stretches.size, dtype=np.bool_)  # whether the stretch of this name before it has ended
            latest: dict[int, int] = {}
            for s, name in enumerate(inverse.tolist()):
                if name in latest:
                    before[s] = ended[latest[name]]
                latest[name] = s
            if before[again].all():
                self.say(
                    f"{_count(again.size, 'episode name')} {'is' if again.size == 1 else 'are'} used again after an "
                    f"end (first {_plain(episode[stretches[again[0]]])!r} in {self.where(stretches[again[:1]])}): "
                    "taken for other episodes."
                )
                self.code, self.ids = stretch, [_plain(name) for name in episode[stretches]]
                return
        rank = np.empty(names.size, dtype=np.int64)
        order = np.argsort(first, kind="stable")
        rank[order] = np.arange(names.size)
        self.code = rank[inverse.reshape(-1)][stretch]
        self.ids = [_plain(episode[stretches[i]]) for i in first[order]]

    def _order(self) -> None:
        """Sort rows by episode and step, if they are not."""
        step, code = self.columns.get("step"), self.code
        back = code[1:] < code[:-1]
        if step is not None:
            back |= (code[1:] == code[:-1]) & (step[1:] < step[:-1])
        if not back.any():
            return
        first = np.flatnonzero(back)[:1] + 1
        if not self.table.may_sort:
            raise InvalidInputError(
                f"rows are out of order from {self.where(first)} on: a log that is read in chunks is not sorted; sort "
                "it by episode and step, or read it whole"
            )
        needed = sum(column.nbytes for column in self.columns.values()) + 3 * 8 * code.size
        if needed > self.table.memory:
            raise CapacityError(
                f"rows are out of order from {self.where(first)} on, and sorting them takes {needed / 1e6:,.0f} MB "
                f"where memory={self.table.memory:,} allows {self.table.memory / 1e6:,.0f}: sort the log, or allow more"
            )
        order = np.argsort(code, kind="stable") if step is None else np.lexsort((step, code))
        self._keep(order)
        by = "episode" if step is None else "episode and step"
        self.say(f"Rows are out of order (first in {self.table.where(first.tolist())}): sorted by {by}.")

    def _repeated(self) -> None:
        """Leave out rows that say the same again; two that differ cannot both be right."""
        step, code = self.columns.get("step"), self.code
        if step is None:
            return
        same = (code[1:] == code[:-1]) & (step[1:] == step[:-1])
        if not same.any():
            return
        later = np.flatnonzero(same) + 1
        for role, column in self.columns.items():
            a, b = column[later - 1], column[later]
            equal = (a == b) | ((a != a) & (b != b))
            equal = equal.reshape(later.size, -1).all(axis=1)
            if not equal.all():
                i = int(later[np.flatnonzero(~equal)[0]])
                raise InvalidInputError(
                    f"episode {self.ids[code[i]]!r} has step {_plain(step[i])} twice with different "
                    f"{self.name(role)}, in {self.where([i - 1])} and {self.where([i])}: leave one out, or give "
                    "different episodes different names"
                )
        self.say(f"{_count(later.size, 'row')} repeated (first {self.where(later[:1])}): left out.")
        kept = np.ones(code.size, dtype=np.bool_)
        kept[later] = False
        self._keep(kept)

    def _final_rows(self) -> None:
        """Take out rows without a reward that end an episode: they hold the observation after its last step."""
        rewards, code = self.columns["reward"], self.code
        n = code.size
        missing = np.isnan(rewards)
        self.final_values = np.zeros((len(self.ids), *self.columns["observation"].shape[1:]))
        self.final_known = np.zeros(len(self.ids), dtype=np.bool_)
        if not missing.any():
            return
        last = np.append(code[1:] != code[:-1], True)
        first = np.append(True, code[1:] != code[:-1])
        if self.table.continues:
            first[0] = False
        bad = missing & (~last | first)
        if bad.any():
            raise InvalidInputError(
                f"{self.name('reward')} is missing in {self.where(np.flatnonzero(bad))}: every step needs a reward "
                "(only the last row of an episode may be without, if it is the observation after the last step)"
            )
        rows = np.flatnonzero(missing)
        self.final_values[code[rows]] = self.columns["observation"][rows]
        self.final_known[code[rows]] = True
        for flag in FLAGS:
            if flag in self.columns:
                self.columns[flag][rows - 1] |= self.columns[flag][rows]
        if not self.table.final_rows_expected:
            self.say(
                f"{_count(rows.size, 'episode')} end{'s' * (rows.size == 1)} with a row without a reward: taken for "
                "the observation after the last step."
            )
        self._keep(~missing)
        if n == rows.size:
            raise InvalidInputError("no row has a reward: pass the column of rewards")

    # --- numbers ----------------------------------------------------------------------------------------------------

    def _check_numbers(self) -> None:
        observations = self.columns["observation"]
        self._refuse_bad(observations, "observation", "clean the log, or leave these episodes out")
        self._refuse_bad(self.columns["reward"], "reward", "clean the log")
        if "action" in self.columns:
            self._refuse_bad(self.columns["action"], "action", "clean the log, or leave the actions out")
        probability = self.columns.get("probability")
        if probability is not None:
            continuous = "action" in self.columns and self.columns["action"].dtype.kind == "f"
            bad = ~(probability > 0.0) | ~np.isfinite(probability) | ((probability > 1.0) & (not continuous))
            if bad.any():
                rows = np.flatnonzero(bad)
                raise InvalidInputError(
                    f"{self.name('probability')} is {probability[rows[0]]:g} in {self.where(rows)}: what was done had "
                    "a probability in (0, 1]; log-probabilities have to be exponentiated"
                )
        constant = []
        if observations.ndim == 2 and len(observations) > 1 and not self.table.continues:
            constant = np.flatnonzero((observations == observations[0]).all(axis=0)).tolist()
        if constant:
            names = [f"{self._column(i)} is always {observations[0, i]:g}" for i in constant[:5]]
            more = "" if len(constant) <= 5 else f", … ({len(constant)} in all)"
            self.say(f"Columns that say nothing: {', '.join(names)}{more}.")
        unknown = ~np.isfinite(self.final_values.reshape(len(self.ids), -1)).all(axis=1)
        self.final_values[unknown], self.final_known[unknown] = 0.0, False

    def _column(self, i: int) -> str:
        columns = self.table.columns
        return columns[i] if columns is not None and i < len(columns) else f"{self.name('observation')}[{i}]"

    def _refuse_bad(self, array: AnyArray, role: str, remedy: str) -> None:
        if array.dtype.kind != "f":
            return
        if array.size and array.max() <= MAX_MAGNITUDE and array.min() >= -MAX_MAGNITUDE:
            return
        bad = ~(np.abs(array) <= MAX_MAGNITUDE)
        rows = np.flatnonzero(bad.reshape(len(array), -1).any(axis=1))
        value, name = array[rows[0]], self.name(role)
        if array.ndim == 2:
            i = int(np.flatnonzero(bad[rows[0]])[0])
            value = value[i]
            name = self._column(i) if role == "observation" else f"{name}[{i}]"
        what = "missing" if np.isnan(value) else f"{value:g}"
        raise InvalidInputError(f"{name} is {what} in {self.where(rows)}: {remedy}")

    # --- ends -------------------------------------------------------------------------------------------------------

    def _ends(self) -> tuple[BoolArray, BoolArray]:
        """Which steps end an episode, and which cut it off, by the flags."""
        code = self.code
        n = code.size
        last = np.append(code[1:] != code[:-1], True)
        decided = last.copy()
        if self.table.more:
            decided[-1] = False  # it may go on
        columns = self.columns
        terminated, truncated = (
            columns[flag] if flag in columns else np.zeros(n, dtype=np.bool_) for flag in ("terminated", "truncated")
        )
        flagged = any(flag in columns for flag in FLAGS)
        if "done" in columns:
            terminated = columns["done"].copy()
            self._time_limit(terminated, truncated, last)
        within = (terminated | truncated) & ~last
        if within.any():
            i = int(np.flatnonzero(within)[0])
            raise InvalidInputError(
                f"{self._flag_of(i)} is set in {self.where(np.flatnonzero(within))}, but episode "
                f"{self.ids[code[i]]!r} goes on in {self.where([i + 1])}: mend the flags, or leave the names of "
                "episodes out, so that the flags alone say where one ends"
            )
        both = terminated & truncated
        if both.any():
            self.say(f"{_count(int(both.sum()), 'step')} both terminated and truncated: taken for terminated.")
            truncated = truncated & ~terminated
        silent = self.silent = decided & ~terminated & ~truncated
        if not flagged and self.table.ends == "terminated":
            terminated = decided
        elif silent.any():
            truncated = truncated | silent
            self._say_silent(silent, flagged)
        self.has_ends = bool(terminated.any() or (truncated & ~silent).any() or len(self.ids) > 1)
        return terminated, truncated

    def _flag_of(self, i: int) -> str:
        return next(self.name(flag) for flag in FLAGS if flag in self.columns and self.columns[flag][i])

    def _say_silent(self, silent: BoolArray, flagged: bool) -> None:
        n_episodes, count = len(self.ids), int(silent.sum())
        names = ", ".join(repr(self.ids[c]) for c in self.code[silent][:5].tolist()) + ", …" * (count > 5)
        if not self.table.may_sort:  # a piece does not know what the others have
            self.say(
                "Episodes without an end flag in their last row are taken for cut off, not for ended."
                if flagged
                else "There are no end flags: episodes are taken for cut off, not for ended (ends='terminated' says "
                "otherwise)."
            )
        elif n_episodes == 1:
            self.say(
                "The log is one stream without an end: the mean over all states and the value of the first state stand "
                "for the start states."
            )
        elif flagged:
            self.say(
                f"{count:,} of {n_episodes:,} episodes {'has' if count == 1 else 'have'} no end flag in "
                f"{'its' if count == 1 else 'their'} last row ({names}): taken for cut off, not for ended."
            )
        else:
            self.say(
                f"There are no end flags: all {n_episodes:,} episodes are taken for cut off, not for ended (ends="
                "'terminated' says otherwise)."
            )

    def _time_limit(self, terminated: BoolArray, truncated: BoolArray, last: BoolArray) -> None:
        """Tell ends from time limits where the log does not; changes the flags in place."""
        ends = np.flatnonzero(terminated & last)
        starts = np.flatnonzero(np.append(True, self.code[1:] != self.code[:-1]))
        lengths = ends - starts[self.code[ends]] + 1
        lengths[self.code[ends] == 0] += self.table.before
        limit = self.table.time_limit
        name = self.name("done")
        if limit is not None:
            cut = ends[lengths >= limit]
            terminated[cut], truncated[cut] = False, True
            self.say(
                f"{name} is taken for termination, but for {_count(cut.size, 'episode')} of {limit:,} steps or more: "
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
                    f"that is a time limit, say time_limit={longest}."
                )
        self.say(text)

    def _cut(self, terminated: BoolArray, truncated: BoolArray) -> Checked:
        """Cut episodes at gaps, and put everything together."""
        code, columns = self.code, self.columns
        observations = columns["observation"]
        n = code.size
        starts = np.append(True, code[1:] != code[:-1])
        gap = self._gaps(starts)
        following = columns.get("next_observation")
        last = np.append(starts[1:], True)
        if following is not None:
            gap |= self._next(following, observations, last | gap)
        cuts = starts.copy()
        cuts[1:] |= gap[:-1]
        ends = last | gap
        truncated = truncated | (gap & ~last)
        begins = starts[cuts]
        episodes = np.append(np.flatnonzero(cuts), n)
        begins[0] &= self.table.begins and not self.table.continues
        goes_on = self.table.more and not (terminated[-1] or truncated[-1])
        final = np.zeros((episodes.size - 1, *observations.shape[1:]))
        known = np.zeros(episodes.size - 1, dtype=np.bool_)
        of_end = last[ends]  # the last piece of each episode
        which = code[ends][of_end]
        final[of_end], known[of_end] = self.final_values[which], self.final_known[which]
        if following is not None:
            given = following[ends]
            sound = (np.abs(_rows(given)) <= MAX_MAGNITUDE).all(axis=1)
            final[sound], known[sound] = given[sound], True
        self._beginnings(begins, episodes)
        lost = truncated[ends] & ~known
        if lost.any():
            count, cut = int(lost.sum()), int(truncated[ends].sum())
            self.say(
                f"After {count:,} of {_count(cut, 'cut-off episode')} the next observation is not in the log: "
                f"{'its last step is' if count == 1 else 'their last steps are'} left out of transitions."
            )
            if count == n and self.table.may_sort:
                raise InvalidInputError(
                    f"none of the {n:,} steps has a next observation: every episode is one row that was cut off; pass "
                    "next observations, or name the episodes that rows belong to"
                )
        discrete = self.n_observations is not None
        kind: Any = np.int64 if discrete else np.float64
        arrays = {
            "observations": np.ascontiguousarray(observations, dtype=kind),
            "rewards": columns["reward"],
            "final": final.astype(kind),
        }
        actions, probability = columns.get("action"), columns.get("probability")
        return Checked(
            **{name: _view(array) for name, array in arrays.items()},
            actions=None if actions is None else _view(actions),
            probabilities=None if probability is None else _view(probability),
            terminated=_view(terminated),
            truncated=_view(truncated),
            has_final=_view(known),
            episodes=_view(episodes),
            ids=[self.ids[c] for c in code[cuts].tolist()],
            begins=_view(begins),
            has_ends=self.has_ends,
            n_observations=self.n_observations,
            columns=self.table.columns or (),
            notes=tuple(self.notes),
            continues=self.table.continues,
            goes_on=goes_on,
            rows=self.rows,
            flagged=(terminated | (truncated & ~self.silent))[ends],
            usual=self.usual,
            least=self.least,
        )

    def _gaps(self, starts: BoolArray) -> BoolArray:
        """After which rows steps are missing."""
        gap = np.zeros(starts.size, dtype=np.bool_)
        step = self.columns.get("step")
        if step is None or (step.dtype.kind == "f" and (step != np.floor(step)).any()):
            return gap
        jumps = np.diff(step)
        inside = ~starts[1:]
        if not inside.any():
            return gap
        usual = self.usual
        if usual is None:
            sizes, counts = np.unique(jumps[inside], return_counts=True)
            usual = self.usual = sizes[np.argmax(counts)] if counts.max() * 2 >= counts.sum() else 0
        if not usual:
            self.say(
                f"{self.name('step')} has no usual distance between rows: rows are sorted by it, gaps are not seen."
            )
            return gap
        if usual != 1:
            self.say(f"{self.name('step')} goes up by {_plain(usual)} from row to row: taken for one step.")
        gap[:-1] = inside & (jumps > usual)
        if gap.any():
            rows = np.flatnonzero(gap)
            self.say(
                f"{_count(rows.size, 'gap')} in {self.name('step')} (first after {self.where(rows[:1])}): the episode "
                "is cut off there, and what follows is no start."
            )
        return gap

    def _next(self, following: AnyArray, observations: AnyArray, ends: BoolArray) -> BoolArray:
        """After which rows the given next observation is not that of the following row."""
        n = len(observations)
        other = np.zeros(n, dtype=np.bool_)
        inside = np.flatnonzero(~ends[:-1])
        a, b = (_rows(array) for array in (following[inside], observations[inside + 1]))
        missing = ~(np.abs(a) <= MAX_MAGNITUDE).all(axis=1)
        if missing.any():
            self.say(
                f"{self.name('next_observation')} is missing in {_count(int(missing.sum()), 'row')} within episodes: "
                "taken from the next rows."
            )
        different = ~missing & (a != b).any(axis=1)
        count = int(different.sum())
        if count * 2 > inside.size and inside.size:
            rows = inside[different]
            raise InvalidInputError(
                f"{self.name('next_observation')} is not the {self.name('observation')} of the next row in {count:,} "
                f"of {inside.size:,} steps ({self.where(rows)}): rows are not in the order of their episodes; name the "
                "columns of episode and step"
            )
        if count:
            rows = inside[different]
            other[rows] = True
            self.say(
                f"In {_count(count, 'step')} {self.name('next_observation')} is not the {self.name('observation')} of "
                f"the next row (first {self.where(rows[:1])}): the episode is cut off there; what follows is no start."
            )
        return other

    def _beginnings(self, begins: BoolArray, episodes: IntArray) -> None:
        """Episodes whose first step is later than that of others have no beginning; changes ``begins`` in place."""
        step = self.columns.get("step")
        if step is None or not begins.any():
            return
        first = step[episodes[:-1]]
        least = self.least
        if least is None:
            least = first[begins].min()
            common, n_starts = np.count_nonzero(first[begins] == least), np.count_nonzero(begins)
            if n_starts < 2 or (step.dtype.kind == "f" and (step != np.floor(step)).any()) or common * 2 < n_starts:
                return  # a time that runs on
            self.least = least
        late = np.flatnonzero(begins & (first > least))
        if late.size:
            self.say(
                f"{_count(late.size, 'episode')} begin{'s' * (late.size == 1)} later than with step {_plain(least)} "
                f"(first in {self.where(episodes[late[:1]])}): the first row is no start."
            )
            begins[late] = False


# --- small things ---------------------------------------------------------------------------------------------------


def as_column(value: Any, name: str) -> AnyArray:
    """The column as an array; lists of equal length become rows."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise InvalidInputError(f"{name} has masked entries: fill them or leave them out")
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise InvalidInputError(f"{name} cannot be read ({error}): every row needs as many values") from error
    if array.dtype.kind != "O" or array.ndim != 1 or not array.size:
        return array
    first = array[0]
    if isinstance(first, (list, tuple, np.ndarray)):
        sizes = [np.shape(row) if isinstance(row, (list, tuple, np.ndarray)) else None for row in array]
        odd = next((i for i, size in enumerate(sizes) if size != sizes[0]), None)
        if odd is not None:
            raise InvalidInputError(
                f"{name} has shape {sizes[0]} in row 0 and {sizes[odd]} in row {odd}: every row needs as many values"
            )
        return np.stack([np.asarray(row) for row in array])
    if all(value is None or isinstance(value, (int, float, np.number, np.bool_)) for value in array):
        return np.array([np.nan if value is None else value for value in array])
    return array


def _rows(array: AnyArray) -> AnyArray:
    """(N, D), also of (N,) and of no rows."""
    return array if array.ndim == 2 else array[:, None]


def _missing(array: AnyArray) -> BoolArray:
    if array.dtype.kind == "f":
        missing: BoolArray = np.isnan(array)
        return missing
    if array.dtype.kind == "O":
        return np.array([value is None or value != value for value in array], dtype=np.bool_)
    return np.zeros(array.shape, dtype=np.bool_)


def _comparable(array: AnyArray) -> AnyArray:
    return array.astype(str) if array.dtype.kind == "O" else array


def _plain(value: Any) -> Any:
    """A Python number or word."""
    value = value.item() if isinstance(value, np.generic) else value
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value


def _type(array: AnyArray) -> str:
    return (
        "text"
        if array.dtype.kind in "US"
        else type(_first(array)).__name__
        if array.dtype.kind == "O"
        else str(array.dtype)
    )


def _first(array: AnyArray) -> Any:
    value = _plain(array.ravel()[0]) if array.size else None
    return value if len(repr(value)) <= 40 else repr(value)[:37] + "…"


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'s' * (n != 1)}"


def _view(array: Any) -> Any:
    """A read-only view: the array itself may be the caller's."""
    return locked(array.view())
