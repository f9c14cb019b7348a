"""What can be shown of an answer: values along episodes, and over pairs of observed numbers."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.core.units import power_of_two
from tlstd.evaluation.fits import Starts
from tlstd.evaluation.ladder import Case

MOST_ROWS = 20_000
"""Logged states whose values are averaged in the cells of maps: of more, evenly spaced ones."""
CELLS = 16
"""Of a map, in each direction."""
MAPS = 3
"""Pairs of columns that are shown: those over which values vary most."""
MOST_COLUMNS = 12
"""Columns whose pairs are compared: those along which values vary most."""
EPISODES = 3
MOST_STEPS = 200
"""Of an episode that are kept: of more, evenly spaced ones."""
MOST_STATES = 40
"""Discrete states that are listed, the most visited ones."""


@dataclass(frozen=True, eq=False)
class EpisodeTrace:
    """Values along an episode."""

    episode: str
    length: int
    steps: IntArray
    """Places within the episode."""
    values: FloatArray
    returns: FloatArray | None
    """The discounted return from each of these steps on; None if it was cut off, or the target is another policy."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "episode": self.episode,
            "length": self.length,
            "steps": self.steps.tolist(),
            "values": finite(self.values),
            "returns": None if self.returns is None else finite(self.returns),
        }


@dataclass(frozen=True, eq=False)
class Map:
    """Mean values of the logged states over two observed numbers; the last cells hold what lies beyond."""

    columns: tuple[str, str]
    edges: tuple[FloatArray, FloatArray]
    """(CELLS + 1,) each."""
    values: FloatArray
    """(CELLS, CELLS), the first column's cells first; NaN where nothing was logged."""
    counts: IntArray
    share: float
    """Of the variance of the values that lies between cells."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "columns": list(self.columns),
            "edges": [edge.tolist() for edge in self.edges],
            "values": [finite(row) for row in self.values],
            "counts": self.counts.tolist(),
            "share": self.share,
        }


@dataclass(frozen=True, eq=False)
class Views:
    """Values along some episodes, and over pairs of columns or discrete states."""

    episodes: tuple[EpisodeTrace, ...]
    maps: tuple[Map, ...]
    states: tuple[tuple[int, int, float], ...]
    """Of discrete observations: number, visits and value of the most visited."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "episodes": [one.to_dict() for one in self.episodes],
            "maps": [one.to_dict() for one in self.maps],
            "states": [{"state": s, "visits": n, "value": v if np.isfinite(v) else None} for s, n, v in self.states],
        }


def finite(values: FloatArray) -> list[float | None]:
    """Numbers for JSON, None where they are not finite."""
    return [value if np.isfinite(value) else None for value in values.tolist()]


def views(case: Case) -> Views:
    """Values along a short, a usual and a long episode, and over the pairs of columns that matter most.

    Cost: the values of at most ``MOST_ROWS`` states of the log.
    """
    log = case.seen
    rows = _spaced(np.arange(len(log)), MOST_ROWS)
    values = _values(case, rows)
    along = tuple(_along(case, e) for e in _chosen(np.diff(log.episodes)))
    if log.discrete:
        return Views(along, (), _by_state(log.observations[rows], values))
    return Views(along, _maps(case, rows, values), ())


def _values(case: Case, rows: IntArray) -> FloatArray:
    """Values of logged states."""
    log, table = case.seen, None if case.target is None else case.target.table
    if table is not None and log is not case.log:
        table = log.policy
    return case.model.regularised(Starts("", log.observations[rows], None, None if table is None else table[rows]))


def _spaced(rows: IntArray, most: int) -> IntArray:
    return rows if rows.size <= most else rows[np.linspace(0, rows.size - 1, most).astype(np.int64)]


def _chosen(lengths: IntArray) -> list[int]:
    """Episodes of the first tenth, the middle and the last tenth of the lengths."""
    order = np.argsort(lengths, kind="stable")
    places = [round(q * (lengths.size - 1)) for q in (0.1, 0.5, 0.9)][:EPISODES]
    return list(dict.fromkeys(int(order[place]) for place in places))


def _along(case: Case, episode: int) -> EpisodeTrace:
    log, gamma = case.seen, case.gamma
    a, b = int(log.episodes[episode]), int(log.episodes[episode + 1])
    rows = _spaced(np.arange(a, b), MOST_STEPS)
    returns = None
    if case.target is None and log.terminated[b - 1]:
        every, after = np.zeros(b - a), 0.0
        for t in range(b - a - 1, -1, -1):
            every[t] = after = log.rewards[a + t] + gamma * after
        returns = every[rows - a]
    return EpisodeTrace(str(log.ids[episode]), b - a, rows - a, _values(case, rows), returns)


def _by_state(states: IntArray, values: FloatArray) -> tuple[tuple[int, int, float], ...]:
    seen, first, visits = np.unique(states, return_index=True, return_counts=True)
    order = np.argsort(-visits, kind="stable")[:MOST_STATES]
    return tuple((int(seen[i]), int(visits[i]), float(values[first[i]])) for i in np.sort(order).tolist())


# --- maps -----------------------------------------------------------------------------------------------------------


def _maps(case: Case, rows: IntArray, values: FloatArray) -> tuple[Map, ...]:
    log = case.seen
    observed = log.observations[rows].astype(np.float64)
    names = log.columns if len(log.columns) == observed.shape[1] else ()
    cells = {}
    for i in range(observed.shape[1]):
        edges = _edges(observed[:, i])
        if edges is not None:
            inside = np.clip(np.searchsorted(edges, observed[:, i], side="right") - 1, 0, CELLS - 1)
            cells[i] = edges, inside
    alone = sorted(cells, key=lambda i: -_share(cells[i][1], CELLS, values))[:MOST_COLUMNS]
    pairs = sorted(combinations(sorted(alone), 2), key=lambda p: -_pair_share(cells, p, values))[:MAPS]
    return tuple(_map(cells, pair, values, names) for pair in pairs)


def _edges(column: FloatArray) -> FloatArray | None:
    """Equal cells over the middle 98% of a column; None if it does not vary."""
    low, high = np.quantile(column, [0.01, 0.99])
    if not high > low:
        low, high = column.min(), column.max()
    return np.linspace(low, high, CELLS + 1) if high > low else None


def _share(cell: IntArray, n: int, values: FloatArray) -> float:
    """Of the variance of values, between cells."""
    values = values / power_of_two(values)
    counts = np.bincount(cell, minlength=n)
    sums = np.bincount(cell, values - values.mean(), n)
    variance = float(values.var()) * values.size
    return float((sums**2 / np.maximum(counts, 1)).sum() / variance) if variance > 0.0 else 0.0


def _pair_share(cells: dict[int, Any], pair: tuple[int, int], values: FloatArray) -> float:
    return _share(cells[pair[0]][1] * CELLS + cells[pair[1]][1], CELLS * CELLS, values)


def _map(cells: dict[int, Any], pair: tuple[int, int], values: FloatArray, names: tuple[str, ...]) -> Map:
    (edges_x, x), (edges_y, y) = cells[pair[0]], cells[pair[1]]
    counts = np.bincount(x * CELLS + y, minlength=CELLS * CELLS)
    sums = np.bincount(x * CELLS + y, values, CELLS * CELLS)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan).reshape(CELLS, CELLS)
    words = tuple(names[i] if names else f"observation {i}" for i in pair)
    share = _pair_share(cells, pair, values)
    return Map((words[0], words[1]), (edges_x, edges_y), means, counts.reshape(CELLS, CELLS), share)
