"""The data of the rank explorer: values, spectra and numbers of all its runs that are stored."""

from __future__ import annotations

import base64
import inspect
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tlstd.core.arrays import FloatArray
from tlstd.truncated.tlstd import TLSTD
from tlstd_lab.panel import Scale
from tlstd_lab.questions.explorer.settings import CHOICES, FULL, SAMPLES, SEED, learning_spec, truth_spec
from tlstd_lab.report.colours import colour_map
from tlstd_lab.store import Run, Store

MAPS = {"value": "viridis", "error": "RdBu_r"}
"""Matplotlib's names: even in brightness; red and blue, which the colour-blind can tell apart."""


class About(NamedTuple):
    """How a problem is called: domain, features, what they are, and the axes of its pictures."""

    domain: str
    features: str
    words: str
    x: str
    y: str
    cells: bool = True
    """Whether states are the middles of cells, so that the axes end half a cell further out."""


ABOUT = {
    "car-tiles": About("Mountain Car", "tiles", "1,000 features: 10 tilings of 10×10 tiles", "position", "velocity"),
    "car-rbf": About("Mountain Car", "RBFs", "1,024 RBFs of width 0.12", "position", "velocity"),
    "pendulum-tiles": About("Pendulum", "tiles", "1,000 features: 10 tilings of 10×10 tiles", "angle", "velocity"),
    "pendulum-rbf": About("Pendulum", "RBFs", "1,024 RBFs of width 0.12", "angle", "velocity"),
    "energy": About(
        "Energy storage",
        "tiles",
        "40,001 features: 32 tilings of the four dimensions and a bias. The pictures are a slice, with wind and demand "
        "in the middle, and the true values in them are means over the time of day, which features do not see; the "
        "RMSE is that of 1,000 states of a path. LSTD's matrix would take gigabytes",
        "storage",
        "price",
        cells=False,
    ),
}

WIDEST = 0.5
"""The error's colours reach up to this share of the range of the true values, in both directions."""


def data(store: Store) -> dict[str, Any] | None:
    """Return what the page's script draws from, as JSON can hold it; None if no run is stored."""
    for scale in ("paper", "smoke"):
        problems = [made for choice in CHOICES[scale] if (made := _problem(store, scale, choice.problem)) is not None]
        if problems:
            return {
                "problems": problems,
                "maps": {use: colour_map(name) for use, name in MAPS.items()},
                "cutoff": inspect.signature(TLSTD).parameters["rcond"].default,
                "seed": SEED,
            }
    return None


def _problem(store: Store, scale: Scale, name: str) -> dict[str, Any] | None:
    """A problem with all its runs that are stored; None if there are none."""
    (choice,) = (choice for choice in CHOICES[scale] if choice.problem == name)
    if not store.has(truth_spec(name).key):
        return None
    columns = store.read(truth_spec(name).key).columns
    x, y, truth = np.unique(columns["x"]), np.unique(columns["y"]), columns["truth"]
    runs: dict[str, dict[str, Any]] = {}
    for lambda_ in choice.lambdas:
        specs = {str(rank): learning_spec(scale, name, rank, lambda_) for rank in choice.ranks}
        stored = {rank: _run(store.read(spec.key), truth.size) for rank, spec in specs.items() if store.has(spec.key)}
        if stored:
            runs[f"{lambda_:g}"] = stored
    if not runs:
        return None
    about = ABOUT[name]
    low, high = float(truth.min()), float(truth.max())
    return {
        "name": name,
        "domain": about.domain,
        "features": about.features,
        "about": about.words,
        "x": _axis(about.x, x, about.cells),
        "y": _axis(about.y, y, about.cells),
        "truth": packed(truth),
        "range": [low, high],
        "error": WIDEST * (high - low),
        "lambdas": [f"{lambda_:g}" for lambda_ in choice.lambdas],
        "samples": list(SAMPLES[scale]),
        "ranks": [str(rank) for rank in choice.ranks if rank != FULL] + ([FULL] if FULL in choice.ranks else []),
        "runs": runs,
    }


def _run(run: Run, n_states: int) -> dict[str, Any]:
    """A run by numbers of samples."""
    columns = run.columns
    n_samples = np.unique(columns["samples"]).size
    parts = {key: column.reshape(n_samples, -1) for key, column in columns.items()}
    firsts = {key: [_finite(float(v)) for v in parts[key][:, 0]] for key in ("rmse", "nbytes", "learning", "reading")}
    return firsts | {
        "value": [packed(row[:n_states]) for row in parts["value"]],
        "sigma": [packed(row[np.isfinite(row)]) for row in parts["sigma"]],
    }


def _axis(label: str, places: FloatArray, cells: bool) -> dict[str, Any]:
    """An axis of the pictures: how many places it has, and its ends."""
    half = 0.5 * float(places[1] - places[0]) if cells else 0.0
    return {"label": label, "n": places.size, "low": float(places[0]) - half, "high": float(places[-1]) + half}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def packed(array: ArrayLike) -> str:
    """Return base64 of the numbers as little-endian float32."""
    return base64.b64encode(np.asarray(array, dtype="<f4").tobytes()).decode()
