"""One problem, method and seed after the other, and the file that keeps what was found."""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np

import tlstd
from tlstd.errors import InvalidInputError, InvalidParameterError
from tlstd_lab.measurements.families import library, rivals
from tlstd_lab.measurements.families.library import LIBRARY
from tlstd_lab.measurements.families.problems import PROBLEMS, Problem, problem
from tlstd_lab.measurements.families.rivals import RIVALS

METHODS = (*LIBRARY, *RIVALS)
ABOVE = ("__main__.py", "cli", "cluster", "control", "demo.py", "inspection", "page")
"""Of the library, what lies above ``evaluate`` and cannot change its numbers."""
SECONDS = 1.0
"""CPU seconds of a method, where none have been measured."""


class Key(NamedTuple):
    """A problem, a method and a seed; ``version``: a digest of the problem's data and of the code of such methods."""

    version: str
    problem: str
    method: str
    seed: int


Kept = dict[Key, dict[str, Any]]


def named(words: str, names: Iterable[str]) -> list[str]:
    """The names that are one of the words (separated by commas), or that have a word in them which is no name.

    >>> named("auto,net", ["auto", "auto of 0.2", "network", "trees"])
    ['auto', 'network']
    """
    every = list(names)
    asked = [word.strip() for word in words.split(",")]
    return [name for name in every if any(name == word if word in every else word in name for word in asked)]


# --- digests --------------------------------------------------------------------------------------------------------


def _of_code(paths: Iterable[Path]) -> bytes:
    """Of what the files do: comments, docstrings and formatting do not count."""
    found = hashlib.sha256()
    for path in paths:
        tree = ast.parse(path.read_bytes())
        for node in ast.walk(tree):
            body = getattr(node, "body", None)
            if isinstance(body, list):
                node.body = [  # type: ignore[attr-defined]
                    one for one in body
                    if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
                ]  # fmt: skip
        found.update(ast.dump(tree).encode())
    return found.digest()


@cache
def of_methods(method: str) -> bytes:
    """Of the code of the library, or of the rivals and the version of scikit-learn."""
    if method in RIVALS:
        return _of_code([Path(rivals.__file__)]) + (b"" if method == "constant" else _scikit_learn())
    root = Path(tlstd.__file__).parent
    paths = (path for path in sorted(root.rglob("*.py")) if path.relative_to(root).parts[0] not in ABOVE)
    return _of_code([*paths, Path(library.__file__)])


def _scikit_learn() -> bytes:
    try:
        import sklearn
    except ImportError:
        return b""
    return str(sklearn.__version__).encode()


@cache
def _of_data(name: str) -> bytes:
    """Of the first log, and of the states with their values: to the accuracy of 32 bits."""
    made = problem(name)
    log = made.log(0)
    arrays = [log.states, log.rewards, log.terminated, log.truncated, log.final, log.episodes, made.states, made.truth]
    arrays += [] if log.actions is None else [log.actions]
    arrays += [] if made.policy is None else [made.policy(made.states)]
    found = hashlib.sha256(str(made.gamma).encode())
    for array in arrays:
        found.update(np.asarray(array, dtype=np.float32).tobytes())
    return found.digest()


@cache
def version(name: str, method: str) -> str:
    """Of the data of a problem and the code of such methods."""
    return hashlib.sha256(_of_data(name) + of_methods(method)).hexdigest()[:12]


# --- one of them ----------------------------------------------------------------------------------------------------


def measured(name: str, method: str, seed: int) -> dict[str, Any]:
    """RMSE, mean error and CPU seconds; or why there are none."""
    made = problem(name)
    log = made.log(seed)
    try:
        if method in LIBRARY:
            _warm(name, method)
        began = process_time()
        values, features = _values(made, method, log, seed)
        seconds = process_time() - began
    except (InvalidParameterError, InvalidInputError) as error:
        return {"refused": str(error)}
    except Exception as error:  # a fault is a result of this measurement
        return {"error": f"{type(error).__name__}: {error}"}
    bias = float(np.mean(values - made.truth))
    return {"rmse": made.rmse(values), "bias": bias, "seconds": round(seconds, 4), "features": features}


def _values(made: Problem, method: str, log: Any, seed: int) -> tuple[Any, str]:
    if method in RIVALS:
        return RIVALS[method](made, log, seed)(made.states), ""
    predict, features = LIBRARY[method](made, log, seed)
    return predict(made.states), features[:200]


@cache
def _warm(name: str, method: str) -> None:
    """Compile what this method needs for this problem, outside of what is timed."""
    made = problem(name)
    _values(made, method, made.log(10**6), 10**6)


# --- all of them ----------------------------------------------------------------------------------------------------


def read(path: Path) -> Kept:
    """What FILE keeps; a line that was cut short is left out."""
    kept: Kept = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            one = json.loads(line)
        except json.JSONDecodeError:
            continue
        kept[Key(one["version"], one["problem"], one["method"], one["seed"])] = one
    return kept


def wanted(problems: str, methods: str, n_seeds: int) -> list[Key]:
    """All of the first seed before those of the second one."""
    return [
        Key(version(name, method), name, method, seed)
        for seed in range(n_seeds)
        for name in named(problems, PROBLEMS)
        for method in named(methods, METHODS)
    ]


def estimate(kept: Kept, todo: Iterable[Key]) -> float:
    """CPU seconds that these will take, by what the kept ones of any code took."""
    took: dict[tuple[str, str], list[float]] = {}
    for key, one in kept.items():
        took.setdefault((key.problem, key.method), []).append(one.get("seconds", 0.0))
    typical = {cell: float(np.median(seconds)) for cell, seconds in took.items()}
    return sum(typical.get((key.problem, key.method), SECONDS) for key in todo)


def run(path: Path, todo: list[Key], workers: int = 1) -> Iterator[dict[str, Any]]:
    """Measure these, and append each one to FILE as soon as it is there."""
    if path.exists() and not path.read_text().endswith("\n") and path.stat().st_size:
        with path.open("a") as file:
            file.write("\n")  # after a line that was cut short
    with path.open("a") as file:
        for one in _each(_one, todo, workers):
            file.write(json.dumps(one) + "\n")
            file.flush()
            yield one


def _each(function: Callable[[Key], dict[str, Any]], todo: list[Key], workers: int) -> Iterator[dict[str, Any]]:
    if workers <= 1:
        yield from map(function, todo)
        return
    with get_context("spawn").Pool(workers) as pool:
        yield from pool.imap_unordered(function, todo)


def _one(key: Key) -> dict[str, Any]:
    return key._asdict() | measured(key.problem, key.method, key.seed)
