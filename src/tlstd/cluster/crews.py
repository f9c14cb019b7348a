"""Who keeps the shards and computes with them: this process, or the workers of a Dask cluster.

A shard is any object; a crew calls methods of it by their names, and then ``rest``, if it has it. It may become another
one (:meth:`Crew.change`): a file that was read, then its samples, then its samples in the numbering of all.

Sums over shards are taken pairwise along their order: ((0+1)+(2+3))+(4+…). So they are the same to the bit wherever
each shard is, and however many workers there are.
"""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from time import perf_counter, sleep
from typing import Any, Protocol, TypeVar

import numpy as np

from tlstd.errors import ClusterError
from tlstd.extras import needs
from tlstd.types import FloatArray, IntArray

T = TypeVar("T")

Load = Callable[[], Any]
"""Reads a shard; calling it again gives the same one."""

Progress = Callable[[int], None]
"""Told how many of the shards something has been done to."""

POLL = 0.02
"""Seconds between two looks at shards that are being made."""
MOST_LOSSES = 100
"""How often in a row a step may fail because workers died before the computation is given up."""


class Crew(Protocol):
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

    def union(self, method: str) -> IntArray:
        """Every integer once, in rising order, that a method of any shard returns."""
        ...

    def map(self, function: Callable[..., T], common: tuple[Any, ...], values: Sequence[Any]) -> list[T]:
        """``function(*common, value)`` of each value, which has nothing to do with the shards."""
        ...


def pairwise_sum(parts: Iterable[T], add: Callable[[T, T], T]) -> T:
    """The sum of one part or more, pairwise along their order, holding few of them at a time.

    >>> pairwise_sum("abcde", lambda a, b: f"({a}{b})")
    '(((ab)(cd))e)'
    """
    waiting: list[tuple[int, T]] = []  # sums of 2^k parts, the longest first
    for part in parts:
        size = 1
        while waiting and waiting[-1][0] == size:
            part, size = add(waiting.pop()[1], part), 2 * size
        waiting.append((size, part))
    total = waiting.pop()[1]
    while waiting:
        total = add(waiting.pop()[1], total)
    return total


class InProcess:
    """Shards in the memory of this process.

    Example
    -------
    >>> import numpy as np
    >>> from tlstd import boyan_chain
    >>> from tlstd.cluster.shard import Shard
    >>> steps = [boyan_chain().sample(50, np.random.default_rng(seed)) for seed in range(3)]
    >>> crew = InProcess([Shard.of([part], 4, lambda_=0.5) for part in steps])
    >>> crew.each("__len__")
    [50, 50, 50]
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
        return pairwise_sum(parts, _add)

    def union(self, method: str) -> IntArray:
        """Pairwise."""
        return np.unique(pairwise_sum((_call(shard, method) for shard in self.shards), np.union1d))

    def map(self, function: Callable[..., T], common: tuple[Any, ...], values: Sequence[Any]) -> list[T]:
        """One after the other."""
        return [function(*common, value) for value in values]


class OnDask:
    """Shards in the memory of the workers of a Dask cluster, which read them themselves.

    A worker that dies takes its shards with it, and they are read again, elsewhere; nothing else is lost. Arguments and
    results travel, shards do not.

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
        self._made: list[list[tuple[Any, ...]]] = [[(_load, load)] for load in loads]
        places = self._neighbours(len(loads))
        self._shards = [self._submit_shard(i, place) for i, place in enumerate(places)]
        self._wait_for_all(set(places), progress)

    def __len__(self) -> int:
        return len(self._shards)

    def change(self, method: str, arguments: Sequence[tuple[Any, ...]], progress: Progress | None = None) -> None:
        """Replace every shard, where it is."""
        sent: dict[int, Any] = {}
        for i, own in enumerate(arguments):
            self._made[i].append((_call, method, *own))
            given = [self._given(argument, sent) for argument in own]
            self._shards[i] = self._submit(f"shard-{i}", _call, self._shards[i], method, *given)
        if progress is not None:
            self._wait_for_all(set(), progress)

    def keep(self, kept: Sequence[int]) -> None:
        """Forget all others, and let their workers do so."""
        self._made, self._shards = [self._made[i] for i in kept], [self._shards[i] for i in kept]

    def each(self, method: str, *arguments: Any) -> list[Any]:
        """At once."""

        def ask() -> list[Any]:
            given = [self._given(argument, {}) for argument in arguments]
            futures = [self._submit(method, _call, shard, method, *given) for shard in self._shards]
            return list(self.client.gather(futures))

        return self._insisting(ask)

    def total(self, method: str, *arguments: Any) -> FloatArray:
        """Pairwise, where the parts are."""
        # a copy: what arrives may lie at an odd address, and NumPy adds up in another order there
        return np.array(self._combined(_add, method, *arguments))

    def union(self, method: str) -> IntArray:
        """Pairwise, where the parts are."""
        return np.unique(self._combined(np.union1d, method))

    def map(self, function: Callable[..., T], common: tuple[Any, ...], values: Sequence[Any]) -> list[T]:
        """At once."""

        def ask() -> list[T]:
            given = [self._sent(argument) for argument in common]
            return list(self.client.gather([self._submit("map", function, *given, value) for value in values]))

        return self._insisting(ask)

    def _combined(self, how: Callable[[Any, Any], Any], method: str, *arguments: Any) -> Any:
        def ask() -> Any:
            given = [self._given(argument, {}) for argument in arguments]
            parts = (self._submit(method, _call, shard, method, *given) for shard in self._shards)
            return pairwise_sum(parts, lambda a, b: self._submit("sum", how, a, b)).result()

        return self._insisting(ask)

    # --- futures ----------------------------------------------------------------------------------------------------

    def _neighbours(self, n: int) -> list[str | None]:
        """A worker for each shard, the same one for shards that follow one another: most sums are then taken there."""
        workers = self._workers()
        return [workers[i * len(workers) // n] if workers else None for i in range(n)]

    def _workers(self) -> list[str]:
        return sorted(self.client.scheduler_info()["workers"])

    def _submit(self, name: str, function: Callable[..., Any], *arguments: Any, place: str | None = None) -> Any:
        self._round += 1
        key = f"tlstd-{name.strip('_')}-{self._token}-{self._round}"
        where = {} if place is None else {"workers": [place], "allow_other_workers": True}
        return self.client.submit(function, *arguments, key=key, pure=False, **where)

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

    def _submit_shard(self, i: int, place: str | None = None) -> Any:
        """A shard from its file, with everything that was done to it since."""
        (load, *first), *changes = self._made[i]
        shard = self._submit(f"shard-{i}", load, *first, place=place)
        for call, method, *own in changes:
            given = [self._given(argument, {}) for argument in own]
            shard = self._submit(f"shard-{i}", call, shard, method, *given)
        return shard

    def _wait_for_all(self, places: set[str | None], progress: Progress | None) -> None:
        """Until all shards are there, or are known not to come.

        ``places`` are workers that some of them wait for. If one of these is gone, or when all are there, they may be
        made anywhere: a scheduler whose workers have all died does not do that by itself.
        """
        looked, told = perf_counter(), 0
        while True:
            done = sum(shard.done() for shard in self._shards)
            if progress is not None and done > told:
                progress(done)
                told = done
            all_there = done == len(self._shards)
            if places and (all_there or perf_counter() - looked > 1.0):
                looked = perf_counter()
                if all_there or not places.issubset(self._workers()):
                    self._free()
                    places = set()
            if all_there:
                return
            sleep(POLL)

    def _free(self) -> None:
        """Let shards be made by any worker from now on."""
        anywhere: dict[str, list[str]] = {shard.key: [] for shard in self._shards}
        self.client.sync(self.client.scheduler.set_restrictions, worker=anywhere)

    def _insisting(self, ask: Callable[[], T]) -> T:
        """Ask again where the scheduler gave up because a task's workers died, and read those shards anew."""
        d, losses = self._distributed, 0
        while True:
            try:
                return ask()
            except (d.KilledWorker, d.client.FutureCancelledError, d.scheduler.KilledWorker) as error:
                losses += 1
                if losses > MOST_LOSSES:
                    raise ClusterError(
                        f"workers have died {losses} times in a row while they computed the same thing, at last: "
                        f"{error}: is there enough memory for a shard? Make shards smaller, or workers larger"
                    ) from error
                for i, shard in enumerate(self._shards):
                    if shard.status in ("error", "lost", "cancelled"):
                        self._shards[i] = self._submit_shard(i)


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


def _add(a: FloatArray, b: FloatArray) -> FloatArray:
    return a + b
