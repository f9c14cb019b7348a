"""The log of these tests, and how it is cut into files."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl


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
SHORT = walk(45)
"""The first episodes of it: nothing but the number of steps is different."""


def in_files(log: pl.DataFrame, folder: Path, n_files: int) -> str:
    """Written to files of about as many rows, wherever episodes are; the pattern of their names."""
    ends = np.linspace(0, log.height, n_files + 1).astype(int)
    for i, (a, b) in enumerate(pairwise(ends)):
        log[a:b].write_parquet(folder / f"part-{i}.parquet")
    return str(folder / "*.parquet")
