"""A checked log of steps, and the transitions that it holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from tlstd.core import parameters
from tlstd.core.arrays import FloatArray, IntArray, as_floats, as_unit, locked
from tlstd.data.transitions import Transitions
from tlstd.errors import InvalidInputError, InvalidParameterError
from tlstd.features.base import FeatureMap
from tlstd.features.states import encoded_once
from tlstd.logs import minari
from tlstd.logs.checking import check
from tlstd.logs.columns import Names, Preset
from tlstd.logs.messages import CUT_OFF_NOTE, FILES_NOTE, LOST_NOTE, STREAM_NOTE, two_clusters
from tlstd.logs.reading import Source
from tlstd.logs.table import MEMORY, Checked, Ends, OnNan, Table

BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class Log:
    """Steps of experience in arrays: episodes one after the other, the steps of each in order.

    Made by :meth:`from_arrays` or :meth:`from_frame`, which check everything; the constructor checks nothing. What they
    have assumed, guessed, mended and counted is in ``notes``. A slice ``log[a:b]`` is a piece of the log, without
    copies, that knows whether its first and last episode go on beyond it.

    Example
    -------
    Two episodes of three and two steps. The second was cut off, and what came after its last step was not logged:

    >>> log = Log.from_arrays([[0.0], [1.0], [2.0], [0.0], [1.0]], [0.0, 0.0, 1.0, 0.0, 0.0],
    ...                       episodes=[7, 7, 7, 8, 8], terminated=[0, 0, 1, 0, 0])
    >>> log
    <Log: 5 steps in 2 episodes (1 terminated, 1 cut off), observations of 1 number>
    >>> log.episodes, log.ids, log.truncated
    (array([0, 3, 5]), [7, 8], array([False, False, False, False,  True]))
    >>> print(*log.notes, sep="\\n")
    1 of 2 episodes has no end flag in its last row (8): taken for cut off, not for ended.
    After 1 of 1 cut-off episode the next observation is not in the log: its last step is left out of transitions.
    >>> log.transitions(None, gamma=0.9).discounts
    array([0.9, 0.9, 0. , 0.9])
    """

    observations: NDArray[Any]
    """(N, D) numbers, or (N,) integers in [0, ``n_observations``) where ``discrete``."""
    actions: NDArray[Any] | None
    """(N,) integers, (N, A) numbers, or None."""
    rewards: FloatArray
    """(N,)."""
    terminated: BoolArray
    """(N,): the episode ended with this step. Only the last step of an episode has this flag or the next one."""
    truncated: BoolArray
    """(N,): the episode was cut off after this step, by a time limit, a gap or the end of the data."""
    final: NDArray[Any]
    """(E, D) or (E,): the observation after the last step of each episode; 0 where it is not known."""
    has_final: BoolArray
    """(E,): whether that observation is known."""
    episodes: IntArray
    """(E + 1,): the row in which each episode begins, and N."""
    ids: list[Any]
    """(E,): the episodes' names in the log; numbers from 0 if it has none."""
    probabilities: NDArray[Any] | None
    """(N,): of the logged actions under the policy that acted (densities, if actions are continuous), or None."""
    begins: BoolArray
    """(E,): whether the first row is where an episode began, and not what followed a gap or a missing beginning."""
    has_ends: bool
    """Whether any episode ends before the data do; otherwise the log is one stream without end."""
    has_episodes: bool = True
    """Whether names, flags or steps that go back tell episodes apart; otherwise each file is one, or all are one."""
    n_observations: int | None = None
    """Number of discrete observations; None if they are numbers."""
    columns: tuple[str, ...] = ()
    """Names of the D observed numbers, if the log has them."""
    notes: tuple[str, ...] = ()
    """What was assumed, guessed, mended and counted, in words."""
    n_dropped: int = 0
    """Episodes that were left out, because numbers are missing in them."""
    continues: bool = False
    """Whether the first episode began in the piece before this one."""
    goes_on: bool = False
    """Whether the last episode goes on in the piece after this one; ``final`` is then its first observation."""
    source: str = field(default="arrays")
    """Where it comes from."""
    policy: FloatArray | None = None
    """(N,) probabilities of the logged actions under the policy asked for, or (N, n_actions) of all; None if the log
    does not have it."""
    action_names: tuple[str, ...] | None = None
    """What the log calls the actions 0, 1, …, in the order of the alphabet; None if they are numbers there too."""
    roles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The columns of the table that were read as observation, action, reward and so on; empty if it had no names."""
    row_clusters: IntArray | None = None
    """(N,): the cluster of each row, a place in ``row_cluster_names``; None if the log does not have any."""
    row_cluster_names: tuple[Any, ...] = ()
    """Names of the clusters of the log that was read. A part of it may not have all of them."""

    @classmethod
    def from_arrays(
        cls,
        observations: Any,
        rewards: ArrayLike,
        *,
        actions: ArrayLike | None = None,
        terminated: ArrayLike | None = None,
        truncated: ArrayLike | None = None,
        done: ArrayLike | None = None,
        episodes: ArrayLike | None = None,
        steps: ArrayLike | None = None,
        next_observations: Any = None,
        probabilities: ArrayLike | None = None,
        policy: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
        discrete: bool | None = None,
        n_observations: int | None = None,
        time_limit: int | None = None,
        ends: Ends | None = None,
        columns: Sequence[str] | None = None,
        memory: int = MEMORY,
        on_nan: OnNan = "refuse",
    ) -> Log:
        """A log from columns, one row a step; ``docs/logs.md`` says what is mended and what is refused.

        Parameters
        ----------
        observations : (N, D) numbers, or (N,) numbers or integers
            Before each step. A last row of an episode whose reward is NaN is the observation after its last step.
        rewards : (N,)
        actions : (N,) integers or words, or (N,) or (N, A) numbers, optional
        terminated, truncated : (N,) flags, optional
        done : (N,) flags, optional
            In place of the two: the episode ended in one way or the other. Taken for ``terminated``, but for episodes
            of ``time_limit`` steps.
        episodes : (N,) integers or words, optional
            The episode of each row. Left out, episodes end where the flags say so, or where ``steps`` begin anew.
        steps : (N,) numbers, optional
            The time of each row within its episode: rows are sorted by it, repeated rows left out, gaps found.
        next_observations : as ``observations``, optional
            After each step. Left out, they are the next rows.
        probabilities : (N,), optional
            Of the actions, under the policy that acted.
        policy : (N,) or (N, n_actions), optional
            Probabilities of the actions, or of all actions, under another policy: the one that :func:`tlstd.evaluate`
            is to evaluate.
        clusters : (N,) integers or words, optional
            Which episodes belong together: the user, patient or machine of each row. All rows of an episode have the
            same one.
        discrete : bool, optional
            Whether (N,) observations are the numbers of states; left out, integers are if they are small enough.
        n_observations : int, optional
            Number of discrete observations; left out, as many as the largest one needs.
        time_limit : int, optional
            Steps after which ``done`` means that the episode was cut off.
        ends : "terminated" or "truncated", optional
            What the end of an episode means where there are no flags at all; cut off if left out.
        columns : D words, optional
            Names of the observed numbers, for messages.
        memory : int
            Bytes that sorting may take; rows out of order that need more are refused.
        on_nan : "refuse" or "drop"
            Whether a log with numbers that are missing or infinite is refused, or the episodes that have them dropped.

        Returns
        -------
        Log
            O(N) time, O(N log N) if rows have to be sorted. Arrays are not copied where they can be used as they are.
        """
        table = Table(
            observation=observations,
            reward=rewards,
            action=actions,
            terminated=terminated,
            truncated=truncated,
            done=done,
            episode=episodes,
            step=steps,
            next_observation=next_observations,
            probability=probabilities,
            policy=policy,
            cluster=clusters,
            discrete=discrete,
            n_observations=n_observations,
            time_limit=time_limit,
            ends=ends,
            columns=None if columns is None else tuple(columns),
            memory=memory,
            on_nan=on_nan,
        )
        return cls._of(check(table))

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        columns: Mapping[str, Names] | None = None,
        preset: Preset | None = None,
        *,
        discrete: bool | None = None,
        n_observations: int | None = None,
        time_limit: int | None = None,
        ends: Ends | None = None,
        memory: int = MEMORY,
        on_nan: OnNan = "refuse",
        storage: Mapping[str, str] | None = None,
        report: Callable[[str, float], None] | None = None,
    ) -> Log:
        """A log from files or a frame, in memory; :func:`read_chunks` reads what is larger.

        Files other than ``.npz`` take the extra ``logs`` (polars). ``docs/logs.md`` has the columns that are known by
        their names, and the presets.

        Parameters
        ----------
        frame : path, folder, pattern, list of paths, pandas or polars frame, Arrow table, or dict of arrays
            Parquet, CSV, Arrow and Feather files, and ``.npz``. Files are read in the order of their names (2 before
            10), and may go on with the episode of the file before.
        columns : dict, optional
            From what a column is (``observation``, ``action``, ``reward``, ``terminated``, ``truncated``, ``done``,
            ``episode``, ``step``, ``next_observation``, ``probability``, ``log_probability``, ``policy``,
            ``cluster``) to its name. Several names together are one observation, action or policy; None says that
            there is none. What is left out is guessed by names, and ``notes`` says how.
        preset : "minari", "lerobot", "rllib", "d4rl" or "flat", optional
            Names that these use.
        discrete, n_observations, time_limit, ends, memory, on_nan
            As in :meth:`from_arrays`.
        storage : dict, optional
            Options of polars for addresses (``s3://bucket/logs/*.parquet``), such as keys; they are never shown. What
            polars finds by itself need not be given.
        report : function of a text and a share, optional
            Called as rows are read from files.

        Example
        -------
        >>> log = Log.from_frame({"episode": [0, 0, 1], "obs_0": [0.0, 1.0, 5.0], "obs_1": [1.0, 2.0, 3.0],
        ...                       "r": [0.0, 1.0, 1.0], "done": [False, True, True]}, columns={"reward": "r"})
        >>> log
        <Log: 3 steps in 2 episodes (2 terminated), observations of 2 numbers>
        >>> print(*log.notes, sep="\\n")
        Columns, by their names: observation is obs_0, obs_1; done is done; episode is episode. As told: reward is r.
        done is the only end flag: taken for termination, not for a time limit.
        """
        source = Source(frame, columns, preset, storage)
        table = source.table(
            report,
            discrete=discrete,
            n_observations=n_observations,
            time_limit=time_limit,
            ends=ends,
            memory=memory,
            on_nan=on_nan,
            notes=source.mapped.notes,
        )
        return cls._of(check(table), source=source.name, roles=source.mapped.columns)

    @classmethod
    def from_minari(cls, dataset: Any) -> Log:
        """A log from a data set of Minari; takes the extra ``minari``.

        Parameters
        ----------
        dataset : minari.MinariDataset, or the name of one that is on this machine, or its folder
            With observations that are arrays or discrete. Final observations are in it, so that no step is lost.
        """
        table, name = minari.table(dataset)
        return cls._of(check(table), source=name)

    @classmethod
    def _of(cls, checked: Checked, **others: Any) -> Log:
        names = {entry.name for entry in fields(cls)} & {entry.name for entry in fields(checked)}
        return cls(**{name: getattr(checked, name) for name in names}, **others)

    # --- what is in it ----------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return self.rewards.size

    @property
    def n_episodes(self) -> int:
        """Number of episodes, E; a gap makes two of one."""
        return len(self.ids)

    @property
    def discrete(self) -> bool:
        """Whether observations are numbers of states."""
        return self.n_observations is not None

    @property
    def start_rows(self) -> IntArray:
        """Rows in which an episode begins; none in a piece that lies within one."""
        return self.episodes[:-1][self.begins]

    @property
    def starts(self) -> dict[str, NDArray[Any]]:
        """Sets of rows, by name, of which the mean value is "the value of the policy".

        The start states. In a log without ends there are none to speak of, and two sets say so: all states, and the
        first one.
        """
        if self.has_ends:
            return {"start states": self.start_rows}
        return {"all states": np.arange(len(self)), "first state": self.start_rows}

    @property
    def states(self) -> FloatArray:
        """(N, D) numbers, as feature maps take them: discrete observations are one column."""
        return _as_states(self.observations)

    @property
    def clusters(self) -> IntArray | None:
        """(E,): the cluster of each episode, which other episodes may have too; None if the log does not have any.

        Clusters are numbered from 0 in the order of their first appearance in this log, also in a part of a log.
        ``cluster_names`` has their names.

        Example
        -------
        >>> users = ["eve", "eve", "bob", "eve"]
        >>> log = Log.from_arrays(np.arange(4.0), np.ones(4), episodes=[0, 0, 1, 2], clusters=users)
        >>> log.clusters, log.cluster_names
        (array([0, 1, 0]), ('eve', 'bob'))
        >>> log[2:].clusters, log[2:].cluster_names
        (array([0, 1]), ('bob', 'eve'))
        """
        return self._clusters[0]

    @property
    def cluster_names(self) -> tuple[Any, ...]:
        """The names of the clusters 0, 1, …, as the log has them; empty if it does not have any."""
        return self._clusters[1]

    @cached_property
    def _clusters(self) -> tuple[IntArray | None, tuple[Any, ...]]:
        rows = self.row_clusters
        if rows is None:
            return None, ()
        firsts = rows[self.episodes[:-1]]
        other = np.flatnonzero(rows != np.repeat(firsts, np.diff(self.episodes)))
        if other.size:  # of pieces that were put together, or in a stream, which is refused only if it stays one
            e = int(np.searchsorted(self.episodes, other[0], side="right")) - 1
            a, b = (self.row_cluster_names[code] for code in (firsts[e], rows[other[0]]))
            name = ", ".join(self.roles.get("cluster", ("cluster",)))
            raise two_clusters(name, self.ids[e], (a, b), named=False)
        codes, first, inverse = np.unique(firsts, return_index=True, return_inverse=True)
        order = np.argsort(first)
        rank = np.empty(codes.size, dtype=np.int64)
        rank[order] = np.arange(codes.size)
        return locked(rank[inverse.reshape(-1)]), tuple(self.row_cluster_names[code] for code in codes[order])

    def as_decisions(self) -> Log:
        """The same rows, each an episode of one step: what they are where nothing later counts (a discount of 0)."""
        n = len(self)
        said = "There are no episodes and the discount is 0: each row is an episode of one step."
        notes = [
            note
            for note in self.notes
            if note not in (STREAM_NOTE, FILES_NOTE) and LOST_NOTE not in note and CUT_OFF_NOTE not in note
        ]
        return replace(
            self,
            terminated=np.ones(n, dtype=np.bool_),
            truncated=np.zeros(n, dtype=np.bool_),
            final=np.zeros((n, *self.observations.shape[1:]), dtype=self.observations.dtype),
            has_final=np.zeros(n, dtype=np.bool_),
            episodes=np.arange(n + 1),
            ids=list(range(n)),
            begins=np.ones(n, dtype=np.bool_),
            has_ends=True,
            has_episodes=True,
            continues=False,
            goes_on=False,
            notes=(*notes, said),
        )

    def __getitem__(self, key: slice) -> Log:
        if not isinstance(key, slice) or key.step not in (None, 1):
            raise InvalidParameterError(f"log[{key!r}]: a log is cut by slices of consecutive rows, log[a:b]")
        a, b, _ = key.indices(len(self))
        b = max(a, b)
        first = max(int(np.searchsorted(self.episodes, a, side="right")) - 1, 0)
        last = max(int(np.searchsorted(self.episodes, b, side="left")), first) if b > a else first
        some = self._of_rows(slice(a, b), slice(first, last), np.clip(self.episodes[first : last + 1], a, b) - a)
        changes: dict[str, Any] = {"continues": self.continues and a == 0, "goes_on": self.goes_on and b == len(self)}
        if b > a and a > self.episodes[first]:
            changes |= {"continues": True, "begins": np.append(False, some.begins[1:])}
        if b > a and b < self.episodes[last]:
            final = np.concatenate([some.final[:-1], self.observations[b : b + 1]])
            changes |= {"goes_on": True, "final": final, "has_final": np.append(some.has_final[:-1], True)}
        return replace(some, **changes)

    def select(self, episodes: ArrayLike) -> Log:
        """The log of some episodes, by their places in ``ids``, in the order given; it copies their rows."""
        chosen = np.asarray(episodes)
        n = self.n_episodes
        if (
            chosen.ndim != 1
            or chosen.dtype.kind not in "iu"
            or (chosen.size and not 0 <= chosen.min() <= chosen.max() < n)
        ):
            raise InvalidInputError(f"episodes are {episodes!r}: pass integers from 0 to {n - 1}")
        lengths = np.diff(self.episodes)[chosen]
        begins = np.concatenate([[0], np.cumsum(lengths)])
        some = self._of_rows(self.rows_of(chosen), chosen, begins)
        return replace(
            some,
            continues=self.continues and bool(chosen.size and chosen[0] == 0),
            goes_on=self.goes_on and bool(chosen.size and chosen[-1] == n - 1),
        )

    def rows_of(self, episodes: IntArray) -> IntArray:
        """The rows of some episodes, one after the other."""
        begins, lengths = self.episodes[:-1][episodes], np.diff(self.episodes)[episodes]
        before = np.cumsum(lengths) - lengths
        rows: IntArray = np.arange(lengths.sum()) + np.repeat(begins - before, lengths)
        return rows

    def _of_rows(self, rows: slice | IntArray, episodes: slice | IntArray, begins: IntArray) -> Log:
        return replace(
            self,
            observations=self.observations[rows],
            actions=None if self.actions is None else self.actions[rows],
            rewards=self.rewards[rows],
            terminated=self.terminated[rows],
            truncated=self.truncated[rows],
            probabilities=None if self.probabilities is None else self.probabilities[rows],
            policy=None if self.policy is None else self.policy[rows],
            row_clusters=None if self.row_clusters is None else self.row_clusters[rows],
            final=self.final[episodes],
            has_final=self.has_final[episodes],
            begins=self.begins[episodes],
            ids=self.ids[episodes] if isinstance(episodes, slice) else [self.ids[e] for e in episodes.tolist()],
            episodes=begins,
        )

    def pieces(self, rows: int) -> Iterator[Log]:
        """The log in pieces of at most ``rows`` steps, whose transitions are together those of the log."""
        rows = parameters.integer("rows", rows)
        return (self[start : start + rows] for start in range(0, len(self), rows))

    # --- what is learned from it ------------------------------------------------------------------------------------

    def transitions(self, features: FeatureMap | None, gamma: float, *, rhos: ArrayLike | None = None) -> Transitions:
        """The steps as transitions, each observation encoded and stored once.

        The next row of a step is the following row. A terminated step does not bootstrap; a cut-off one does, from
        ``final``, and is left out where that is not known. The first step of a piece that ``continues`` has the trace
        of the piece before.

        Parameters
        ----------
        features : FeatureMap, or None
            Gets ``states``. None: the columns as they are, or one feature for each discrete observation.
        gamma : float in [0, 1]
        rhos : (N,), optional
            Importance ratios, one for each step of the log.
        """
        gamma = as_unit(gamma, "gamma")
        n = len(self)
        ratios = None if rhos is None else as_floats(rhos, "rhos", 1)
        if ratios is not None and ratios.size != n:
            raise InvalidInputError(f"rhos has {ratios.size} numbers: the log has {n} steps, and each needs one")
        last = self.episodes[1:] - 1
        open_end = ~self.terminated[last]
        needed = np.flatnonzero(open_end & self.has_final)
        store = self._encoded(features, needed)
        rows = np.arange(n)
        next_rows = rows + 1
        next_rows[last] = last  # of a terminated step: any row, the discount is 0
        next_rows[last[needed]] = n + np.arange(needed.size)
        traces = np.full(n, gamma)
        traces[self.episodes[:-1]] = 0.0
        if n and self.continues:
            traces[0] = gamma
        kept: slice | IntArray = slice(None)
        unknown = last[open_end & ~self.has_final]
        if unknown.size:
            kept = np.delete(rows, unknown)
        return Transitions.from_rows(
            store,
            rows[kept],
            self.rewards[kept],
            next_rows[kept],
            discounts=np.where(self.terminated, 0.0, gamma)[kept],
            trace_discounts=traces[kept],
            rhos=None if ratios is None else ratios[kept],
        )

    def _encoded(self, features: FeatureMap | None, needed: IntArray) -> Any:
        """Features of all observations, and after them of the final ones that are needed."""
        observations = self.observations
        if needed.size:
            observations = np.concatenate([observations, self.final[needed]])
        if features is not None:
            return encoded_once(features, _as_states(observations))
        if self.n_observations is None:
            return observations
        n = len(observations)
        return sp.csr_array((np.ones(n), observations, np.arange(n + 1)), shape=(n, self.n_observations))

    def __repr__(self) -> str:
        n = self.n_episodes
        ended, cut = int(self.terminated.sum()), int(self.truncated.sum())
        how = ", ".join(f"{count:,} {word}" for count, word in ((ended, "terminated"), (cut, "cut off")) if count)
        seen = (
            f"{self.n_observations:,} discrete observations"
            if self.n_observations is not None
            else f"observations of {self.observations.shape[1]:,} number{'s' * (self.observations.shape[1] != 1)}"
        )
        where = "" if self.source == "arrays" else f" of {self.source}"
        return f"<Log{where}: {len(self):,} steps in {n:,} episode{'s' * (n != 1)} ({how}), {seen}>"


def _as_states(observations: FloatArray | IntArray) -> FloatArray:
    rows = observations if observations.ndim == 2 else observations[:, None]
    return rows.astype(np.float64, copy=False)
