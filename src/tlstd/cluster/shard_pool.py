"""Who keeps the shards and computes with them: this process, or the workers of a Dask cluster.

A shard is any object; a pool calls methods of it by their names, and then ``rest``, if it has it. It may become another
one (:meth:`ShardPool.change`): a file that was read, then its samples, then its samples in the numbering of all.

Sums over shards are taken pairwise along their order: ((0+1)+(2+3))+(4+…). So they are the same to the bit wherever
each shard is, and however many workers there are.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import wait
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from time import perf_counter, sleep
from typing import Any, Protocol, TypeVar

import numpy as np

from tlstd.cluster.progress import duration
from tlstd.cluster.tree_sums import Node, joined, pairwise_sum, tree_sums
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.extras import needs
from tlstd.errors import ClusterError

T = TypeVar("T")

Load = Callable[[], Any]
"""Reads a shard; calling it again gives the same one."""

Progress = Callable[[int], None]
"""Told how many of the shards something has been done to."""

POLL = 0.02
"""Seconds between two looks at shards that are being made."""
LOOK = 0.5
"""Seconds between two looks at the workers, while something is waited for."""
SPREAD = 10.0
"""Seconds after which workers that have no shards get some."""
AT_ONCE = 8
"""Results of so many workers come to the client; those of more are first joined by workers, so many at a time."""
NOTICE = 3.0
"""Seconds without workers after which it is said what is waited for."""
AGAIN = 60.0
"""Seconds after which it is said again."""
ANSWER = 5.0
"""Seconds that a scheduler has to answer after an error; else it is gone."""
MOST_LOSSES = 100
"""How often in a row a step may fail because workers died before the computation is given up."""


class ShardPool(Protocol):
    """Keeps shards, in a fixed order."""

    def __len__(self) -> int:
        """Number of shards."""
        ...

    def change(self, method: str, arguments: Sequence[tuple[Any, ...]], progress: Progress | None = None) -> None:
        """Replace every shard by what a method of it returns, with arguments of its own.

        ``progress`` is called with how many have been replaced; without it they may be replaced later, when needed.
        """
        ...

    def keep(self, kept: Sequence[int]) -> None:
        """Forget all shards but these."""
        ...

    def each(self, method: str, *arguments: Any) -> list[Any]:
        """What a method of every shard returns, in the order of the shards."""
        ...

    def total(self, method: str, *arguments: Any) -> FloatArray:
        """The sum of what a method of every shard returns."""
        ...

    def union(self, method: str, *arguments: Any) -> IntArray:
        """Every integer once, in rising order, that a method of any shard returns."""
        ...

    def map(self, function: Callable[..., T], common: tuple[Any, ...], values: Sequence[Any]) -> list[T]:
        """``function(*common, value)`` of each value, which has nothing to do with the shards."""
        ...


class InProcess:
    """Shards in the memory of this process.

    Example
    -------
    >>> import numpy as np
    >>> pool = InProcess([np.arange(3.0), np.ones(3)])
    >>> pool.each("sum"), pool.total("copy")
    ([np.float64(3.0), np.float64(3.0)], array([1., 2., 3.]))
    """

    def __init__(self, shards: Sequence[Any]) -> None:
        self.shards = list(shards)

    def __len__(self) -> int:
        return len(self.shards)

    def change(self, method: str, arguments: Sequence[tuple[Any, ...]], progress: Progress | None = None) -> None:
        """Replace every shard."""
        for i, own in enumerate(arguments):  # one at a time: the old one goes before the next one comes
            self.shards[i] = _call(self.shards[i], method, *own)
            if progress is not None:
                progress(i + 1)

    def keep(self, kept: Sequence[int]) -> None:
        """Forget all others."""
        self.shards = [self.shards[i] for i in kept]

    def each(self, method: str, *arguments: Any) -> list[Any]:
        """One after the other."""
        return [_call(shard, method, *arguments) for shard in self.shards]

    def total(self, method: str, *arguments: Any) -> FloatArray:
        """Pairwise."""
        parts: Iterable[FloatArray] = (_call(shard, method, *arguments) for shard in self.shards)
        return pairwise_sum(parts, len(self), _add)

    def union(self, method: str, *arguments: Any) -> IntArray:
        """Pairwise."""
        parts = (_call(shard, method, *arguments) for shard in self.shards)
        return np.unique(pairwise_sum(parts, len(self), np.union1d))

    def map(self, function: Callable[..., T], common: tuple[Any, ...], values: Sequence[Any]) -> list[T]:
        """One after the other."""
        return [function(*common, value) for value in values]


class OnDask:
    """Shards in the memory of the workers of a Dask cluster, which read them themselves.

    Each shard has a place, the worker that reads and keeps it, and a call is one task for each worker, about all shards
    that it has. Arguments, and sums of a worker's shards, travel; shards do not. A worker that dies takes its shards
    with it, and they are read again by others; nothing else is lost. A worker that comes later gets some of them. Where
    there is no worker, the first one is waited for, and the log "tlstd" says so. Without its scheduler nothing goes on:
    that is a :class:`~tlstd.errors.ClusterError`.

    Parameters
    ----------
    client : distributed.Client
    loads : functions
        One for each shard, in their order; they have to be picklable.
    progress : function of a number, optional
        Called with how many shards have been read.
    """

    def __init__(self, client: Any, loads: Sequence[Load], progress: Progress | None = None) -> None:
        with needs("distributed"):
            self._distributed: Any = import_module("distributed")
        self.client = client
        self._token = secrets.token_hex(4)  # keys of another computation are not this one's
        self._round = 0
        self._address = client.scheduler.address
        self._made: list[list[tuple[Any, ...]]] = [[(_load, load)] for load in loads]
        with self._scheduler():
            workers, n = self._workers(), len(loads)
            # neighbours have the same place: few sums are then left to be taken elsewhere
            self._places = [workers[i * len(workers) // n] for i in range(n)]
            self._shards = [self._submit_shard(i, {}) for i in range(n)]
            self._spread = perf_counter()
            self._settle(progress)

    def __len__(self) -> int:
        return len(self._shards)

    def change(self, method: str, arguments: Sequence[tuple[Any, ...]], progress: Progress | None = None) -> None:
        """Replace every shard, where it is."""
        with self._scheduler():
            self._settle()
            sent: dict[int, Any] = {}
            for i, own in enumerate(arguments):
                self._made[i].append((_call, method, *own))
                given = [self._given(argument, sent) for argument in own]
                changed = self._submit(f"shard-{i}", _call, self._shards[i], method, *given, place=self._places[i])
                self._shards[i] = changed
            if progress is not None:
                self._settle(progress)

    def keep(self, kept: Sequence[int]) -> None:
        """Forget all others, and let their workers do so."""
        self._made, self._shards = [self._made[i] for i in kept], [self._shards[i] for i in kept]
        self._places = [self._places[i] for i in kept]

    def each(self, method: str, *arguments: Any) -> list[Any]:
        """At once."""
        found = {i: part for parts in self._asked(_each, method, arguments) for i, part in parts}
        return [found[i] for i in range(len(self))]

    def total(self, method: str, *arguments: Any) -> FloatArray:
        """Pairwise, of a worker's shards where they are."""
        # a copy: what arrives may lie at an odd address, and NumPy adds up in another order there
        return np.array(self._combined(_add, method, arguments))

    def union(self, method: str, *arguments: Any) -> IntArray:
        """Pairwise, of a worker's shards where they are."""
        return np.unique(self._combined(np.union1d, method, arguments))

    def map(self, function: Callable[..., T], common: tuple[Any, ...], values: Sequence[Any]) -> list[T]:
        """At once."""

        def ask() -> list[T]:
            given = [self._sent(argument) for argument in common]
            return self._results([self._submit("map", function, *given, value) for value in values], set())

        return self._insisting(ask)

    def _combined(self, add: Callable[[Any, Any], Any], method: str, arguments: tuple[Any, ...]) -> Any:
        n = len(self)
        parts = self._asked(partial(_sums, n, add), method, arguments, partial(joined, n, add))
        (total,) = joined(n, add, parts).values()
        return total

    def _asked(
        self,
        function: Callable[..., T],
        method: str,
        arguments: tuple[Any, ...],
        join: Callable[[list[T]], T] | None = None,
    ) -> list[T]:
        """What a function of each worker's shards returns; joined by workers, if there are more than a few."""

        def ask() -> list[T]:
            groups = self._groups()
            given = [self._given(argument, {}) for argument in arguments]
            futures = [
                self._submit(method, function, own, [self._shards[i] for i in own], method, given, place=place)
                for place, own in groups.items()
            ]
            while join is not None and len(futures) > AT_ONCE:
                several = [futures[i : i + AT_ONCE] for i in range(0, len(futures), AT_ONCE)]
                futures = [self._submit("sum", join, some) for some in several]
            return self._results(futures, set(groups))

        return self._insisting(ask)

    # --- places -----------------------------------------------------------------------------------------------------

    def _workers(self) -> list[str]:
        """One or more: it is waited for the first."""
        began, said = perf_counter(), 0.0
        while not (alive := sorted(self.client.nthreads())):
            waited = perf_counter() - began
            if waited >= (said + AGAIN if said else NOTICE):
                logging.getLogger("tlstd").warning(
                    "%s has no workers. Waiting for one since %s: start it with dask worker %s --nthreads 1, or stop "
                    "with Ctrl-C.",
                    *(self._address, duration(waited), self._address),
                )
                said = waited
            sleep(LOOK)
        return alive

    @contextmanager
    def _scheduler(self) -> Iterator[None]:
        """Of an error where the scheduler does not answer any more, say that; a closed client raises many kinds."""
        try:
            yield
        except Exception as error:
            if self._answers():
                raise
            raise ClusterError(
                f"the Dask scheduler at {self._address} does not answer any more: start it and its workers again, and "
                "repeat the command; rounds that a checkpoint keeps are not computed again"
            ) from error

    def _answers(self) -> bool:
        try:
            self.client.sync(self.client.scheduler.ncores, callback_timeout=ANSWER)
        except Exception:  # of a connection or a client that was closed
            return False
        return True

    def _settle(self, progress: Progress | None = None) -> None:
        """Wait until all shards are there, or are known not to come; those of workers that are gone are made anew."""
        looked, told = perf_counter(), 0
        while True:
            done = sum(shard.done() for shard in self._shards)
            if progress is not None and done > told:
                progress(done)
                told = done
            if done == len(self._shards):
                return
            if perf_counter() - looked > LOOK:
                self._replace([i for i, shard in enumerate(self._shards) if not shard.done()])
                looked = perf_counter()
            sleep(POLL)

    def _replace(self, missing: Sequence[int], anyway: bool = False) -> None:
        """Read shards again, by others, whose workers are gone; or all that are missing."""
        alive = self._workers()
        held = Counter(self._places)
        sent: dict[int, Any] = {}
        for i in missing:
            if anyway or self._places[i] not in alive:
                self._places[i] = min(alive, key=lambda each: held[each])
                held[self._places[i]] += 1
                self._shards[i] = self._submit_shard(i, sent)

    def _spread_out(self) -> None:
        """Give shards to workers that have none, as one that came later."""
        alive, held = self._workers(), Counter(self._places)
        idle = [each for each in alive if not held[each]]
        most = len(self) // len(alive)
        for place in idle:
            for i in range(len(self)):
                if held[place] < most and held[self._places[i]] > most:
                    held[self._places[i]] -= 1
                    held[place] += 1
                    self._places[i] = place
                    self._shards[i] = self._submit_shard(i, {})

    def _groups(self) -> dict[str, list[int]]:
        """The workers, and the shards that each of them has."""
        self._settle()
        if perf_counter() - self._spread > SPREAD:
            self._spread_out()
            self._settle()
            self._spread = perf_counter()
        for shard in self._shards:
            if shard.status in ("error", "cancelled"):
                shard.result()  # raises
        has = self.client.who_has(self._shards)
        missing, groups = [], defaultdict(list)
        for i, shard in enumerate(self._shards):
            there = has[shard.key]
            if not there:
                missing.append(i)
                continue
            if self._places[i] not in there:  # somebody has moved it
                self._places[i] = min(there)
            groups[self._places[i]].append(i)
        if missing:
            self._replace(missing)
            sleep(LOOK)
            raise _WorkerGone("a worker is gone")
        return groups

    def _results(self, futures: Sequence[Any], places: set[str]) -> list[Any]:
        """Of tasks that wait for some workers; it is seen whether one of these is gone."""
        done = False
        while not done:
            try:
                with self.client.as_current():
                    self._distributed.wait(futures, timeout=LOOK)
                done = True
            except TimeoutError:
                self._check(places)
        gathering = self.client.gather(futures, asynchronous=True)
        waiting = asyncio.run_coroutine_threadsafe(gathering, self.client.loop.asyncio_loop)
        try:
            while not wait([waiting], timeout=LOOK).done:
                self._check(places)
            return list(waiting.result())
        finally:
            waiting.cancel()

    def _check(self, places: set[str]) -> None:
        if not places.issubset(self.client.nthreads()):
            raise _WorkerGone("a worker is gone")

    def _insisting(self, ask: Callable[[], T]) -> T:
        """Ask again where workers have died, and read shards anew where the scheduler gave them up for that."""
        with self._scheduler():
            return self._repeated(ask)

    def _repeated(self, ask: Callable[[], T]) -> T:
        d, losses = self._distributed, 0
        lost = (_WorkerGone, d.KilledWorker, d.client.FutureCancelledError, d.client.FuturesCancelledError)
        while True:
            try:
                return ask()
            except lost as error:
                losses += 1
                if losses > MOST_LOSSES:
                    raise ClusterError(
                        f"workers have died {losses} times in a row while they computed the same thing, at last: "
                        f"{error}: is there enough memory for a shard? Make shards smaller, or workers larger"
                    ) from error
                self._replace(
                    [i for i, shard in enumerate(self._shards) if shard.status in ("error", "cancelled")], True
                )
                sleep(POLL)

    # --- futures ----------------------------------------------------------------------------------------------------

    def _submit(self, name: str, function: Callable[..., Any], *arguments: Any, place: str | None = None) -> Any:
        """A task; one with a place waits for that worker, and for no other."""
        self._round += 1
        key = f"tlstd-{name.strip('_')}-{self._token}-{self._round}"
        where = {} if place is None else {"workers": [place], "allow_other_workers": False}
        return self.client.submit(function, *arguments, key=key, pure=False, **where)

    def _submit_shard(self, i: int, sent: dict[int, Any]) -> Any:
        """A shard from its file, with everything that was done to it since, at its place."""
        place = self._places[i]
        (load, *first), *changes = self._made[i]
        shard = self._submit(f"shard-{i}", load, *first, place=place)
        for call, method, *own in changes:
            given = [self._given(argument, sent) for argument in own]
            shard = self._submit(f"shard-{i}", call, shard, method, *given, place=place)
        return shard

    def _given(self, argument: Any, sent: dict[int, Any]) -> Any:
        """An argument of all shards; arrays are sent once."""
        if not hasattr(argument, "nbytes"):
            return argument
        if id(argument) not in sent:
            sent[id(argument)] = self._sent(argument)
        return sent[id(argument)]

    def _sent(self, argument: Any) -> Any:
        """Sent to one worker, from which the others fetch it.

        Not scattered: what is scattered is gone when its worker dies, where a task is repeated.
        """
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sending large graph", category=UserWarning)
            return self._submit("argument", _same, argument)


class _WorkerGone(Exception):
    """One that something was to be done by."""


def _load(load: Load) -> Any:
    return load()


def _same(argument: T) -> T:
    return argument


def _call(shard: Any, method: str, *arguments: Any) -> Any:
    found = getattr(shard, method)(*arguments)
    rest = getattr(shard, "rest", None)  # of shards on a disk
    if rest is not None:
        rest()
    return found


def _each(own: Sequence[int], shards: Sequence[Any], method: str, arguments: Sequence[Any]) -> list[tuple[int, Any]]:
    """What a method of some shards returns, with their numbers."""
    return [(i, _call(shard, method, *arguments)) for i, shard in zip(own, shards, strict=True)]


def _sums(
    n: int,
    add: Callable[[T, T], T],
    own: Sequence[int],
    shards: Sequence[Any],
    method: str,
    arguments: Sequence[Any],
) -> dict[Node, T]:
    """Sums of what a method of some of n shards returns, as far as these can be taken without the others."""
    parts = (((0, i), _call(shard, method, *arguments)) for i, shard in zip(own, shards, strict=True))
    return tree_sums(parts, n, add)


def _add(a: FloatArray, b: FloatArray) -> FloatArray:
    return a + b
