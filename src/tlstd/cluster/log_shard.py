"""A file of a log, where it was read: what the others have to know of it, and the samples that it holds."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlstd.cluster.spill import Mapped
from tlstd.errors import InvalidInputError, TlstdError
from tlstd.logs.addresses import shown
from tlstd.logs.checking import check
from tlstd.logs.columns import Preset
from tlstd.logs.log import Log
from tlstd.logs.messages import plain
from tlstd.logs.reading import Source

UInt64Array = NDArray[np.uint64]


class Border(NamedTuple):
    """How a file begins and ends, for the question whether an episode goes on in the next one."""

    first_id: Any
    last_id: Any
    first_step: Any
    last_step: Any
    ended: bool
    """Whether a flag says that the last episode ends in the last row."""
    named: bool
    """Whether episodes have names."""
    observation: NDArray[Any]
    """In the first row."""
    spans: NDArray[Any] | None = None
    """(E, 2): the first and last step of each episode, where rows have ids: names of episodes, and steps."""

    def goes_on_in(self, after: Border) -> bool:
        """Whether the last episode goes on in another file: by the rule for the files of one log."""
        if self.ended or (self.named and str(self.last_id) != str(after.first_id)):
            return False
        return self.last_step is None or after.first_step is None or bool(after.first_step > self.last_step)


class EpisodeIds(NamedTuple):
    """By what episodes of different files are compared."""

    names: UInt64Array
    """(E,): hashes of their names."""
    contents: UInt64Array
    """(E,): hashes of their names and of all that is in them."""
    spans: NDArray[Any] | None
    """(E, 2): their first and last steps, where the log has steps."""


class Summary(NamedTuple):
    """What the others have to know of a file."""

    problem: str
    """Why it cannot be read; nothing else is then known."""
    n_steps: int = 0
    n_episodes: int = 0
    has_ends: bool = False
    has_episodes: bool = False
    border: Border | None = None
    episodes: EpisodeIds | None = None
    """Its episodes, where they have names."""
    kind: tuple[Any, ...] = ()
    """What has to be the same in all files: shapes, types, which columns there are."""
    n_observations: int = 0
    n_actions: int = 0
    nbytes: int = 0


class Joined(NamedTuple):
    """What is known of a file once its first and last episodes were joined with those of its neighbours."""

    n_starts: int
    n_dropped: int
    notes: tuple[str, ...]


@dataclass(frozen=True)
class LogFile:
    """A file of a log and how to read it; calling it reads it. It is small, and can be sent to a worker."""

    path: str
    columns: Any = None
    preset: Preset | None = None
    options: dict[str, Any] = field(default_factory=dict)
    """Of :meth:`tlstd.Log.from_frame`."""
    storage: dict[str, str] | None = field(default=None, repr=False)
    """Options of polars for addresses: secrets, which are never shown."""
    spill: str | None = None
    """A folder of the worker in which to keep what was read; None: in memory."""

    @property
    def name(self) -> str:
        """The path, or the address without credentials."""
        return shown(self.path)

    def __call__(self) -> LogShard:
        """Read; what is wrong with the file is kept, not raised."""
        try:
            return self.read()
        except (TlstdError, OSError) as error:
            return LogShard(self, None, None, problem=str(error))

    def read(self, **options: Any) -> LogShard:
        """Read and check; ``options`` are those of a piece of a log."""
        source = Source(self.path, self.columns, self.preset, self.storage)
        table = source.table(notes=source.mapped.notes, **self.options, **options)
        checked = check(table)
        log = Log._of(checked, source=source.name, roles=source.mapped.columns)
        steps, ends = checked.steps, checked.episodes
        named = table.episode is not None
        border = Border(
            first_id=plain(log.ids[0]),
            last_id=plain(log.ids[-1]),
            first_step=None if steps is None else steps[0],
            last_step=None if steps is None else steps[-1],
            ended=bool(checked.flagged[-1]),
            named=named,
            observation=log.observations[0].copy(),
            spans=np.stack([steps[ends[:-1]], steps[ends[1:] - 1]], axis=1) if steps is not None and named else None,
        )
        return LogShard(self, log, border, checked.times).spilled()


@dataclass(frozen=True, eq=False)
class LogShard:
    """The steps of a file in memory."""

    file: LogFile
    log: Log | None
    border: Border | None
    times: tuple[str, ...] = ()
    """Columns that have times."""
    problem: str = ""
    n_before: int = 0
    """Steps in files before."""
    mapped: Mapped | None = None

    def __reduce__(self) -> Any:
        return _unpickled, (self.file, self.log, self.border, self.times, self.problem, self.n_before)

    def spilled(self) -> LogShard:
        """The same with its columns in a file, if its :class:`LogFile` says so."""
        if self.file.spill is None or self.log is None:
            return self
        columns: dict[str, Any] = {each.name: getattr(self.log, each.name) for each in fields(self.log)}
        arrays: dict[str, Any] = {
            name: of for name, of in columns.items() if isinstance(of, np.ndarray) and of.dtype != object
        }
        mapped = Mapped(self.file.spill, list(arrays.values()))
        moved: dict[str, Any] = dict(zip(arrays, mapped.arrays, strict=True))
        return replace(self, log=replace(self.log, **moved), mapped=mapped)

    def rest(self) -> None:
        """Give memory back that can be had again."""
        if self.mapped is not None:
            self.mapped.rest()

    @property
    def _log(self) -> Log:
        if self.log is None:
            raise InvalidInputError(self.problem)
        return self.log

    def __sizeof__(self) -> int:
        # so that a scheduler knows what moving it would cost
        return 1_000 if self.log is None else 1_000 + 4 * self.log.observations.nbytes

    def summary(self) -> Summary:
        """What the others have to know."""
        if self.log is None:
            return Summary(self.problem)
        log, actions = self.log, self.log.actions
        kind = (
            log.discrete,
            log.observations.shape[1:],
            log.columns,
            None if actions is None else (actions.ndim, actions.shape[1:]),
            log.probabilities is not None,
            log.action_names,
            self.times,
        )
        assert self.border is not None
        named = self.border.named
        return Summary(
            "",
            n_steps=len(log),
            n_episodes=log.n_episodes,
            has_ends=log.has_ends,
            has_episodes=log.has_episodes,
            border=self.border,
            episodes=EpisodeIds(_hashes(log.ids), _contents(log), self.border.spans) if named else None,
            kind=kind,
            n_observations=log.n_observations or 0,
            n_actions=0 if actions is None or actions.ndim > 1 else int(actions.max(initial=-1)) + 1,
            nbytes=log.observations.nbytes + log.rewards.nbytes,
        )

    def joined(
        self,
        before: Border | None,
        after: Border | None,
        length: int,
        first_id: int,
        n_before: int,
        n_observations: int | None,
    ) -> LogShard:
        """The same file with the episodes that go on from the file before and in the next one.

        ``length`` steps of the first episode were in files before; episodes without names are numbers from
        ``first_id`` on; ``n_before`` steps are in files before; discrete observations are one of ``n_observations``.
        """
        if before is None and after is None:
            log = replace(self._log, n_observations=n_observations)
            if self.border is not None and not self.border.named:
                log = replace(log, ids=list(range(first_id, first_id + log.n_episodes)))
            return replace(self, log=log, n_before=n_before)
        options: dict[str, Any] = {"continues": before is not None, "begins": before is None, "before": length}
        options |= {"first_id": first_id}
        if n_observations is not None and "n_observations" not in self.file.options:
            options |= {"n_observations": n_observations}
        read = self.file.read(more=after is not None, **options)
        log = read._log
        if after is not None:
            final, has_final = log.final.copy(), log.has_final.copy()
            final[-1], has_final[-1] = after.observation, True
            truncated = log.truncated.copy()
            truncated[-1] = False
            log = replace(log, final=final, has_final=has_final, truncated=truncated, goes_on=True)
        return replace(read, log=log, n_before=n_before)

    def as_decisions(self) -> LogShard:
        """The same file, whose rows are episodes of one step."""
        return replace(self, log=self._log.as_decisions(), mapped=None).spilled()

    def joined_summary(self) -> Joined:
        """What there is to say after it was joined: before, an episode that goes on seemed to be cut off."""
        return Joined(int(self._log.start_rows.size), self._log.n_dropped, self._log.notes)

    def last_length(self) -> int:
        """Steps of the last episode in this file."""
        return int(self._log.episodes[-1] - self._log.episodes[-2])

    def sample(self, share: float) -> Log:
        """The episodes whose name has a hash below a share of all hashes; all of them for a share of 1."""
        log = self._log
        if share >= 1.0:
            return log
        salt = "" if self.border is not None and self.border.named else self.file.path
        return log.select(np.flatnonzero(_hashes(log.ids, salt) < np.uint64(share * 2.0**64)))

    def first_steps(self, n: int) -> Log:
        """Those of the first ``n`` steps of all files that are in this one."""
        return self._log[: max(0, n - self.n_before)]

    def thin(self) -> Log:
        """The log without what features are made of: enough for returns, episodes and ratios."""
        log = self._log
        if log.discrete:
            return log
        return replace(log, observations=np.zeros((len(log), 0)), final=np.zeros((log.n_episodes, 0)), columns=())

    def as_part(self, number: int) -> Any:
        """The same as a :class:`~tlstd.cluster.part.Part` of systems of least squares, by its place among them."""
        from tlstd.cluster.part import Part  # which is made of this

        return Part(self, number)


def _unpickled(*fields_: Any) -> LogShard:
    return LogShard(*fields_).spilled()


def _hashes(names: list[Any], salt: str = "") -> UInt64Array:
    """A stable hash of each episode's name."""
    return _numbers(f"{salt}:{plain(name)}".encode() for name in names)


def _contents(log: Log) -> UInt64Array:
    """A hash of each episode's name and cluster, of all its rows, and of the observation after its last step."""
    columns = [log.observations, log.rewards, log.terminated, log.truncated]
    columns += [each for each in (log.actions, log.probabilities, log.policy) if each is not None]
    final = np.where(log.has_final.reshape(-1, *[1] * (log.final.ndim - 1)), log.final, 0)

    clusters = log.clusters

    def contents(e: int) -> bytes:
        a, b = log.episodes[e : e + 2]
        parts = [column[a:b] for column in columns] + [final[e], log.has_final[e]]
        return b"".join((part + np.zeros(1, part.dtype)).tobytes() for part in parts)  # 0 is -0 too

    def cluster(e: int) -> str:
        return "" if clusters is None else f":{log.cluster_names[clusters[e]]}"

    return _numbers(f"{plain(name)}{cluster(e)}".encode() + contents(e) for e, name in enumerate(log.ids))


def _numbers(texts: Iterable[bytes]) -> UInt64Array:
    digests = b"".join(hashlib.blake2b(text, digest_size=8).digest() for text in texts)
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)
