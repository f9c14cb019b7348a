"""What an evaluation of many files will take, estimated from one of them before anything starts."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from time import perf_counter
from typing import TypeVar

import numpy as np

from tlstd.cluster.evaluate import SAMPLE
from tlstd.cluster.log_shard import LogFile, LogShard
from tlstd.cluster.part import Part
from tlstd.cluster.progress import duration
from tlstd.cluster.shard_pool import AT_ONCE
from tlstd.cluster.tree_sums import joined, tree_sums
from tlstd.errors import InvalidInputError
from tlstd.evaluation.question import Features, Question, offered
from tlstd.evaluation.systems import WHOLE
from tlstd.features.base import FeatureMap
from tlstd.logs.messages import count_of
from tlstd.logs.reading import Source

T = TypeVar("T")

DIMENSION = 30
"""Of the Krylov space, as long as none has been chosen."""
LAMBDA = 0.9


@dataclass(frozen=True)
class Plan:
    """Estimates; ``print`` shows them with what they are made of."""

    n_files: int
    n_workers: int
    n_steps: int
    n_features: int
    """Seen by the file that was looked at; the others may see more."""
    dimension: int
    bytes_per_step: float
    """Of samples, as workers keep them."""
    seconds_to_read: float
    """A step: reading, checking and encoding, by one worker."""
    seconds_to_multiply: float
    """A step in one round, by one worker."""
    seconds_to_start: float
    """Once in every process, whatever there is to do: imports."""
    file: str

    @property
    def worker_bytes(self) -> float:
        """That the samples take at each worker, with one file that is being encoded."""
        steps = self.n_steps / self.n_workers + 2 * self.n_steps / self.n_files
        return self.bytes_per_step * steps + 2 * self.round_bytes

    @property
    def client_bytes(self) -> float:
        """At the client: a Krylov basis, and the sample on which parameters are chosen."""
        return 8.0 * self.n_features * (2 * self.dimension + 10) + 20 * self.bytes_per_step * min(self.n_steps, SAMPLE)

    @property
    def round_bytes(self) -> float:
        """A vector over the features seen, as it goes out."""
        return 8.0 * self.n_features

    @property
    def between_workers(self) -> float:
        """Bytes that workers send each other in a round."""
        return self.round_bytes * self._vectors[0]

    @property
    def to_client(self) -> float:
        """Bytes that workers send to the client in a round."""
        return self.round_bytes * self._vectors[1]

    @cached_property
    def _vectors(self) -> tuple[int, int]:
        """Vectors that workers send in a round: to each other, the one given and sums; and to the client, sums."""
        n, groups = self.n_files, defaultdict(list)
        for i in range(n):
            groups[i * self.n_workers // n].append(((0, i), 0))
        sums = [tree_sums(own, n, max) for own in groups.values()]
        moved = len(sums) - 1
        while len(sums) > AT_ONCE:
            several = [sums[i : i + AT_ONCE] for i in range(0, len(sums), AT_ONCE)]
            moved += sum(sum(map(len, some)) - max(map(len, some)) for some in several)
            sums = [joined(n, max, some) for some in several]
        return moved, sum(map(len, sums))

    @property
    def seconds(self) -> float:
        """Starting, reading once, and a round for each dimension; without choosing parameters."""
        a_worker = self.n_steps / self.n_workers
        return self.seconds_to_start + a_worker * (self.seconds_to_read + self.dimension * self.seconds_to_multiply)

    def to_json(self) -> str:
        """The estimates by name, those that follow from others too."""
        followed = ("worker_bytes", "client_bytes", "round_bytes", "between_workers", "seconds")
        return json.dumps({"schema": 1, **asdict(self), **{name: getattr(self, name) for name in followed}})

    def __str__(self) -> str:
        workers = count_of(self.n_workers, "worker")
        lines = [
            f"{count_of(self.n_files, 'file')}, about {self.n_steps:,} steps, {workers} (from {self.file}):",
            f"  memory   {_size(self.worker_bytes)} at each worker ({self.bytes_per_step:.0f} bytes a step), "
            f"{_size(self.client_bytes)} here",
            f"  traffic  {_size(self.round_bytes)} from here and {_size(self.to_client)} back in a round, "
            f"{_size(self.between_workers)} between workers, {self.dimension} rounds ({self.n_features:,} features "
            "seen)",
            f"  time     about {duration(self.seconds)}: {self.seconds_to_start:.1f} s to start (imports), "
            f"{1e6 * self.seconds_to_read:.1f} µs a step to read and encode, {1e6 * self.seconds_to_multiply:.2f} µs a "
            "step and round",
        ]
        return "\n".join(lines)


def plan(
    files: Sequence[LogFile],
    *,
    gamma: float,
    features: Features = "auto",
    n_workers: int = 1,
    dimension: int = DIMENSION,
) -> Plan:
    """Read, encode and multiply one file, the largest, and say what all of them will take.

    Parameters
    ----------
    files : LogFile
    gamma, features : as in :func:`tlstd.evaluate`
    n_workers : int
    dimension : int
        Of the Krylov space: the number of rounds.
    """
    if not files:
        raise InvalidInputError("there are no files: name some")
    sizes = np.array([_bytes(file.path) for file in files], dtype=np.float64)
    largest = int(sizes.argmax())
    file = files[largest]
    _, opening = _timed(lambda: Source(file.path, file.columns, file.preset, file.storage))  # imports what reads it
    shard, reading = _timed(file.read)
    log = shard._log
    map_ = offered(Question(gammas=(gamma,), features=features), log).cells
    part, encoding = _timed(lambda: _encoded(shard, map_, gamma))
    _, multiplying = _timed(lambda: _multiplied(part))
    steps = len(log)
    share = sizes.sum() / sizes[largest] if sizes[largest] else len(files)
    return Plan(
        n_files=len(files),
        n_workers=n_workers,
        n_steps=round(steps * share),
        n_features=part.seen_ids("states").size,
        dimension=dimension,
        bytes_per_step=part.nbytes / steps,
        seconds_to_read=(reading + encoding) / steps,
        seconds_to_multiply=multiplying / steps,
        seconds_to_start=opening,
        file=file.name,
    )


def _encoded(shard: LogShard, features: FeatureMap, gamma: float) -> Part:
    part = Part(shard, 0).encoded("states", features, gamma, None)
    steps = part.steps["states"]
    return part.of_states(part.seen_ids("states"), steps.group, steps.fold, False)


def _multiplied(part: Part) -> None:
    part.products("states", np.ones((part.seen_ids("states").size, 1)), [WHOLE], [LAMBDA])


def _timed(make: Callable[[], T]) -> tuple[T, float]:
    """What a function returns, and the seconds that it took."""
    began = perf_counter()
    return make(), perf_counter() - began


def _bytes(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:  # in a bucket: as if all were equally large
        return 1


def _size(n: float) -> str:
    """A number of bytes in words.

    >>> _size(1234), _size(5.6e9)
    ('1.23 kB', '5.6 GB')
    """
    for unit in ("bytes", "kB", "MB", "GB"):
        if n < 1000.0:
            return f"{n:.3g} {unit}"
        n /= 1000.0
    return f"{n:.3g} TB"
