"""One log after the other: the answer, the mean of returns beside it, and the file that keeps them."""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np

import tlstd
from tlstd import Log
from tlstd.core.arrays import FloatArray
from tlstd.evaluation import mean_interval
from tlstd_lab.measurements.answers import problems as all_problems
from tlstd_lab.measurements.answers import processes
from tlstd_lab.measurements.answers.problems import Problem, problems, togo

BLOCKS = 20
"""Pieces of a stream whose means of returns are compared."""
SECONDS = 0.15
"""CPU seconds per log, where none has been measured."""


class Cell(NamedTuple):
    """Logs of one problem and one size."""

    problem: str
    size: int


Key = tuple[str, str, int, int]
"""The code, the problem, the size and the number of a log."""


def cells(word: str = "", largest: bool = True) -> list[Cell]:
    """All cells of problems with this word in their name; ``largest``: also the slowest cells."""
    found = []
    for name, problem in problems().items():
        if word in name:
            sizes = problem.sizes if largest or not problem.slow else problem.sizes[:-1]
            found += [Cell(name, size) for size in sizes]
    return found


@cache
def digest() -> str:
    """Of the library's code and of the problems."""
    found = hashlib.sha256()
    library = sorted(Path(tlstd.__file__).parent.rglob("*.py"))
    for path in [*library, Path(processes.__file__), Path(all_problems.__file__)]:
        found.update(path.read_bytes())
    return found.hexdigest()[:12]


# --- one log --------------------------------------------------------------------------------------------------------


def measured(problem: Problem, size: int, number: int) -> dict[str, Any]:
    """The answer to one log, and the mean of returns beside it."""
    log, options = problem.make(size, np.random.default_rng([problem.number, size, number]))
    kept: dict[str, Any] = {"returns": mean_of_returns(log, options), "rows": {}}
    began = process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = tlstd.evaluate(log, **options)
            answered = process_time()
            light, checked = str(found.light), process_time()
            own = found.interval()
    except Exception as error:  # a fault of the library is a result of this measurement
        nothing = {"answer": None, "low": None, "high": None, "best_estimate": None, "light": "unchecked"}
        return kept | nothing | {"rung": "error", "error": f"{type(error).__name__}: {error}", "seconds": None}
    best = getattr(found, "best_estimate", None)
    kept |= {
        "answer": float(found.value),
        "low": float(own.low),
        "high": float(own.high),
        "rung": str(found.rung),
        "light": light,
        "best_estimate": float(found.value if best is None else best),
        "effective": float(found.case.effective),
        "seconds": [answered - began, checked - answered],
    }
    for row in found.rows:
        of = row.interval
        kept["rows"][row.name] = [float(row.value)] if of is None else [float(row.value), float(of.low), float(of.high)]
    return kept


def mean_of_returns(log: Log, options: dict[str, Any]) -> list[float]:
    """The mean of logged returns up to ends and cuts, and its 95% interval, by plain formulas.

    Of all states where these are asked for: per episode, and per block of a stream.
    """
    gamma, starts = options["gamma"], [int(row) for row in log.episodes]
    if len(starts) > 2 and options.get("start") != "all":
        returns = [log.rewards[a:b] @ gamma ** np.arange(b - a) for a, b in pairwise(starts)]
        found = mean_interval(np.array(returns))
        return [float(found.value), float(found.low), float(found.high)]
    values = togo(log.rewards, starts, gamma)
    if len(starts) == 2:  # a stream: the last returns are not seen to their end
        values = values[: len(values) - math.ceil(math.log(0.02) / math.log(gamma))]
        starts = np.linspace(0, len(values), BLOCKS + 1).astype(int).tolist()
    return _ratio(np.add.reduceat(values, starts[:-1]), np.diff(starts).astype(np.float64))


def _ratio(sums: FloatArray, counts: FloatArray) -> list[float]:
    """Sum over count, with an interval by independent pieces."""
    value = float(sums.sum() / counts.sum())
    around = mean_interval((sums - value * counts) / counts.mean())
    return [value, value - float(around.half_width), value + float(around.half_width)]


# --- all logs -------------------------------------------------------------------------------------------------------


def read(path: Path) -> dict[Key, dict[str, Any]]:
    """What FILE keeps; a line that was cut short is left out."""
    kept = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            one = json.loads(line)
        except json.JSONDecodeError:
            continue
        kept[one["version"], one["problem"], one["size"], one["number"]] = one
    return kept


def missing(kept: dict[Key, dict[str, Any]], of: Iterable[Cell], n_logs: int) -> list[Key]:
    """Logs that are not kept: the first ones of all cells before the second ones."""
    some = list(of)
    keys = [(digest(), cell.problem, cell.size, number) for number in range(n_logs) for cell in some]
    return [key for key in keys if key not in kept]


def estimate(kept: dict[Key, dict[str, Any]], todo: Iterable[Key]) -> float:
    """CPU seconds that these logs will take, by what the kept ones of any code took."""
    took: dict[tuple[str, int], list[float]] = {}
    for (_, problem, size, _), one in kept.items():
        if one["seconds"] is not None:
            took.setdefault((problem, size), []).append(sum(one["seconds"]))
    typical = {cell: float(np.median(seconds)) for cell, seconds in took.items()}
    return sum(typical.get((problem, size), SECONDS) for _, problem, size, _ in todo)


def run(path: Path, todo: list[Key], workers: int = 1) -> Iterator[dict[str, Any]]:
    """Measure these logs, and append each one to FILE as soon as it is there."""
    if path.exists() and not path.read_text().endswith("\n") and path.stat().st_size:
        with path.open("a") as file:
            file.write("\n")  # after a line that was cut short
    with path.open("a") as file:
        for one in _measured(todo, workers):
            file.write(json.dumps(one) + "\n")
            file.flush()
            yield one


def _measured(todo: list[Key], workers: int) -> Iterator[dict[str, Any]]:
    if workers <= 1:
        yield from map(_one, todo)
        return
    with get_context("spawn").Pool(workers) as pool:
        yield from pool.imap_unordered(_one, todo)


def _one(key: Key) -> dict[str, Any]:
    version, name, size, number = key
    found = measured(problems()[name], size, number)
    return {"version": version, "problem": name, "size": size, "number": number, **found}
