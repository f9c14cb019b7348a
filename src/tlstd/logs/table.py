"""The columns of a log by what they are, before and after they are checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.logs.messages import name_rows

Ends: TypeAlias = Literal["terminated", "truncated"]
OnNan: TypeAlias = Literal["refuse", "drop"]
BoolArray = NDArray[np.bool_]
AnyArray = NDArray[Any]

MEMORY = 2 * 2**30
"""Bytes that sorting may take unless told otherwise."""
FLAGS = ("terminated", "truncated", "done")


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
    policy: Any = None
    cluster: Any = None
    discrete: bool | None = None
    n_observations: int | None = None
    time_limit: int | None = None
    ends: Ends | None = None
    columns: tuple[str, ...] | None = None
    memory: int = MEMORY
    on_nan: OnNan = "refuse"
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
    times: dict[str, str] = field(default_factory=dict)
    """Columns of the source that had times and are in seconds now, and which kind of times."""
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
    policy: FloatArray | None
    row_clusters: IntArray | None
    row_cluster_names: tuple[Any, ...]
    begins: BoolArray
    has_ends: bool
    has_episodes: bool
    n_observations: int | None
    columns: tuple[str, ...]
    notes: tuple[str, ...]
    n_dropped: int
    continues: bool
    goes_on: bool
    rows: IntArray
    """(N,): the row of the source that each is."""
    steps: AnyArray | None
    """(N,): the column of steps; times are nanoseconds."""
    named: bool
    """Whether the source names the episodes."""
    flagged: BoolArray
    """(E,): whether a flag says that the episode ends there."""
    action_names: tuple[str, ...] | None
    times: tuple[str, ...]
    """Columns that have times."""
    usual: Any
    least: Any
