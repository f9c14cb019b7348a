"""The logs and samples of these tests, and how they are cut.

Workers of a cluster import this module to read their parts: what only the tests need is not imported here.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl

from tests.helpers import random_transitions
from tlstd import Transitions
from tlstd.cluster.shard import Shard

N = 200
WHOLE = random_transitions(
    np.random.default_rng(0), n_features=N, n_steps=300, density=0.02, off_policy=True, sparse=True
)


def cut(whole: Transitions, n_shards: int) -> list[Transitions]:
    """Into parts of about the same length, wherever episodes are."""
    ends = np.linspace(0, len(whole), n_shards + 1).astype(int)
    return [whole[a:b] for a, b in pairwise(ends)]


PARTS = cut(WHOLE, 7)


def load(i: int) -> Shard:
    """One of the shards."""
    return Shard.of([PARTS[i]], N, lambda_=0.7)


def walk(n_episodes: int = 120, seed: int = 0) -> pl.DataFrame:
    """A walk of two numbers with noise; episodes of different length, some cut off; actions with probabilities."""
    rng = np.random.default_rng(seed)
    rows = []
    for episode in range(n_episodes):
        x, y = rng.uniform(-1.0, 1.0, 2)
        for step in range(int(rng.integers(3, 25))):
            action = int(rng.random() < 0.5)
            after = 0.8 * x + (0.3 if action else -0.3) + 0.1 * rng.standard_normal()
            rows.append((f"e{episode}", step, x, y, action, 0.5, x - 0.1 * y, False))
            x, y = after, 0.9 * y + 0.1 * rng.standard_normal()
        rows[-1] = (*rows[-1][:-1], episode % 4 != 0)
    names = ["episode", "step", "obs_0", "obs_1", "action", "probability", "reward", "terminated"]
    return pl.DataFrame(rows, schema=names, orient="row")


LOG = walk()


def in_files(log: pl.DataFrame, folder: Path, n_files: int) -> str:
    """Written to files of about as many rows, wherever episodes are; the pattern of their names."""
    ends = np.linspace(0, log.height, n_files + 1).astype(int)
    for i, (a, b) in enumerate(pairwise(ends)):
        log[a:b].write_parquet(folder / f"part-{i}.parquet")
    return str(folder / "*.parquet")


def mostly_right(states: np.ndarray) -> np.ndarray:
    """The other action nine times in ten."""
    return np.tile([0.1, 0.9], (len(states), 1))
