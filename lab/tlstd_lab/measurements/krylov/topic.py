"""What a topic is, and what all of them share: λ, streams, and Krylov LSTD against the best dimension in hindsight."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from tlstd import KrylovLSTD, Transitions
from tlstd.streams.simulated import record
from tlstd_lab.problems import Problem

LAMBDA = 0.9
DIMENSION = 8
"""Of the runs in which it is given, on energy."""
STREAMS, CAR_STREAMS, REPEATS = 10, 5, 5
ENERGY_SAMPLES = (1_000, 4_000, 10_000)
LONGEST = 300
"""Dimensions among which the best in hindsight is looked for."""
KRYLOV_COLOUR, BATCH_COLOUR = "#009E73", "#000000"

Data = dict[str, Any]
"""As JSON holds it."""


class Picture(NamedTuple):
    """A figure of the page."""

    file: str
    draw: Callable[[Data, Path], None]


class Topic(NamedTuple):
    """One measurement."""

    name: str
    """On the command line, in ``krylov.json``, and in the mark of its table."""
    measure: Callable[[], Data]
    table: Callable[[Data], str]
    picture: Picture | None = None


def sample(made: Problem, n: int, seed: int) -> Transitions:
    return record(made.domain, made.policy, made.features, n_steps=n, seed=seed)


def path_errors(model: KrylovLSTD, made: Problem) -> list[float]:
    """RMSE of the dimensions 1, 2, … of one path."""
    operator = model.operator()
    arnoldi = operator.arnoldi()
    arnoldi.extend(LONGEST)
    (path,), ids = arnoldi.paths, model.seen_ids
    X = made.X if isinstance(made.X, np.ndarray) else sp.csc_array(made.X)
    on_basis = X[:, ids] @ path.Q.T  # (states, m + 1)
    coordinates = [path.coordinates(m) for m in range(1, path.dimension + 1)]
    return [made.rmse(on_basis[:, : y.size] @ y) for y in coordinates]


def auto_against_hindsight(made: Problem, streams: Sequence[Transitions]) -> Data:
    found: dict[str, list[Any]] = {name: [] for name in ("auto", "dimensions", "best", "best_dimensions", "notes")}
    for stream in streams:
        model = KrylovLSTD(made.features.n_features, lambda_=LAMBDA)
        model.update_many(stream)
        errors = path_errors(model, made)
        best = int(np.argmin(errors))
        found["auto"].append(made.rmse(model.predict(made.X)))
        found["dimensions"].append(model.chosen_dimension)
        found["best"].append(errors[best])
        found["best_dimensions"].append(best + 1)
        found["notes"].append(model.choices[0].note)
    return found
