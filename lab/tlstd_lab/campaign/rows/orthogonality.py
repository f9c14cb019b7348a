"""t-LSTD's factors stay orthonormal to 10⁻¹² over long streams, and over nasty ones.

A try is 10,000 further steps of the stream; the model goes on from the file that the try before has saved.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from tlstd import load
from tlstd.core.arrays import FloatArray
from tlstd.data.transitions import Transitions
from tlstd.domains.mountain_car import MountainCar
from tlstd.features.rbf import RBF
from tlstd.features.tile_coding import TileCoder
from tlstd.streams.simulated import record
from tlstd.truncated.tlstd import TLSTD
from tlstd_lab.campaign.faults import Task
from tlstd_lab.campaign.row import Row

STEPS = 10_000
"""Of one try."""
EVERY = 1_000
BOUND = 1e-12


class Stream(NamedTuple):
    """Blocks of steps, and the options of the model that learns them."""

    block: Callable[[int, np.random.Generator], Transitions]
    rank: int
    options: dict[str, Any]


def _task(streams: dict[str, Stream]) -> Callable[[str, int, Path], Task]:
    def make(subject: str, seed: int, folder: Path) -> Task:
        stream, path = streams[subject], folder / "model.tlstd"
        _warm(stream)

        def task(number: int) -> str:
            rng = np.random.default_rng([seed, number, list(streams).index(subject)])
            steps = stream.block(STEPS, rng)
            model = load(path) if number else TLSTD(steps.n_features, stream.rank, **stream.options)
            assert isinstance(model, TLSTD)
            worst = 0.0
            for start in range(0, STEPS, EVERY):
                model.update_many(steps[start : start + EVERY])
                error = model.orthogonality_error()
                assert error <= BOUND, f"the factors are {error:.1e} from orthonormal after {model.n_updates:,} steps"
                worst = max(worst, error)
            assert np.isfinite(model.predict(steps.X[:50])).all(), "predictions are not finite"
            model.save(path)
            return f"below 1e{int(np.ceil(np.log10(max(worst, 1e-17))))}"

        return task

    return make


def _warm(stream: Stream) -> None:
    """Have all that is compiled loaded, once and not in the child of every try."""
    steps = stream.block(EVERY, np.random.default_rng(0))
    model = TLSTD(steps.n_features, stream.rank, **stream.options)
    model.update_many(steps)
    model.orthogonality_error(), model.predict(steps.X[:2])
    with tempfile.TemporaryDirectory() as place:
        model.save(f"{place}/model")
        load(f"{place}/model")


# --- the streams of the figures ---------------------------------------------------------------------------------------

_CAR = MountainCar()
_TILES = TileCoder(_CAR.low, _CAR.high, tiles=10, tilings=10)
_RBFS = RBF(_CAR.low, _CAR.high, grid=32, width=0.12)
_SMALL = RBF(_CAR.low, _CAR.high, grid=8, width=0.2)


def _car(features: Any, twice: bool = False) -> Callable[[int, np.random.Generator], Transitions]:
    def block(n: int, rng: np.random.Generator) -> Transitions:
        steps = record(_CAR, None, features, n_steps=n, seed=rng)
        return _mapped(steps, lambda X: np.hstack([X, X])) if twice else steps

    return block


def _mapped(steps: Transitions, change: Callable[[Any], Any]) -> Transitions:
    return Transitions.from_rows(
        change(steps.store),
        steps.rows,
        steps.rewards,
        steps.next_rows,
        discounts=steps.discounts,
        trace_discounts=steps.trace_discounts,
        rhos=steps.rhos,
    )


def _low_rank(n: int, rng: np.random.Generator) -> Transitions:
    """80 features that span 12 dimensions, always the same."""
    fixed = np.random.default_rng(2)
    X = fixed.standard_normal((500, 12)) @ fixed.standard_normal((12, 80))
    return _wander(X, n, rng)


def _wander(
    X: Any, n: int, rng: np.random.Generator, *, gamma: float = 0.95, end: float = 0.02, ratios: bool = False
) -> Transitions:
    """Random steps between given rows."""
    rows = rng.integers(0, X.shape[0], n + 1)
    discounts = np.where(rng.random(n) < end, 0.0, gamma)
    return Transitions.from_rows(
        X,
        rows[:-1],
        rng.standard_normal(n),
        rows[1:],
        discounts=discounts,
        trace_discounts=np.concatenate([[0.0], discounts[:-1]]),
        rhos=rng.uniform(0.0, 2.0, n) if ratios else None,
    )


_LONG = {
    "tiles": Stream(_car(_TILES), 50, {"lambda_": 0.0}),
    "RBFs": Stream(_car(_RBFS), 50, {"lambda_": 0.0}),
    "duplicated features": Stream(_car(_SMALL, twice=True), 30, {"lambda_": 0.5}),
    "true rank below r": Stream(_low_rank, 20, {"lambda_": 0.5}),
    "tiles, lambda 1": Stream(_car(_TILES), 50, {"lambda_": 1.0}),
}


# --- nasty ones -------------------------------------------------------------------------------------------------------


def _fixed(make: Callable[[np.random.Generator], Any], **options: Any) -> Callable[..., Transitions]:
    """Steps between rows that are the same in all blocks."""
    return lambda n, rng: _wander(make(np.random.default_rng(1)), n, rng, **options)


def _normal(rng: np.random.Generator) -> FloatArray:
    return rng.standard_normal((300, 40))


def _nearly_equal(rng: np.random.Generator) -> FloatArray:
    return np.ones((300, 40)) + 1e-9 * rng.standard_normal((300, 40))


def _pairs(rng: np.random.Generator) -> FloatArray:
    X = rng.standard_normal((300, 20))
    return np.hstack([X, X + 1e-12 * rng.standard_normal(X.shape)])


def _graded(rng: np.random.Generator) -> FloatArray:
    scales: FloatArray = np.logspace(0, -30, 40)
    return rng.standard_normal((300, 40)) * scales


def _sizes(rng: np.random.Generator) -> FloatArray:
    """Rows of very different length."""
    return rng.standard_normal((300, 40)) * 10.0 ** rng.uniform(-40.0, 40.0, (300, 1))


def _one_hot(rng: np.random.Generator) -> Any:
    return sp.csr_array(np.eye(300))


def _with_zeros(rng: np.random.Generator) -> FloatArray:
    X = rng.standard_normal((300, 40))
    X[rng.random(300) < 0.7] = 0.0
    return X


def _vandermonde(rng: np.random.Generator) -> FloatArray:
    return np.vander(np.linspace(-1.0, 1.0, 300), 40)


def _hilbert(rng: np.random.Generator) -> FloatArray:
    X: FloatArray = 1.0 / (np.arange(300.0)[:, None] + np.arange(40.0) + 1.0)
    return X


def _subnormal(rng: np.random.Generator) -> FloatArray:
    return rng.standard_normal((300, 40)) * np.where(np.arange(40) % 2, 1e-160, 1.0)


_SHAPES: dict[str, Callable[[np.random.Generator], Any]] = {
    "normal": _normal,
    "nearly equal rows": _nearly_equal,
    "nearly equal columns": _pairs,
    "graded columns": _graded,
    "rows from 1e-40 to 1e40": _sizes,
    "one-hot": _one_hot,
    "mostly zero rows": _with_zeros,
    "Vandermonde": _vandermonde,
    "Hilbert": _hilbert,
    "columns of 1e-160": _subnormal,
}
_SETTINGS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "one long episode": ({"gamma": 1.0, "end": 0.0}, {"lambda_": 0.9, "buffer_size": 10}),
    "off-policy": ({"ratios": True}, {"lambda_": 0.5}),
    "forgetting": ({"end": 0.3}, {"lambda_": 0.8, "beta": 0.01, "buffer_size": 25}),
}
_NASTY = {
    f"{shape}, {setting}": Stream(_fixed(make, **kind), 10, options)
    for shape, make in _SHAPES.items()
    for setting, (kind, options) in _SETTINGS.items()
}


LONG = Row(
    promise="factors orthonormal to 1e-12 over long streams",
    unit="steps",
    target=1_000_000,
    subjects=lambda: list(_LONG),
    task=_task(_LONG),
    each=STEPS,
    seconds=120.0,
    checked=False,
    chain=True,
)
NASTY = Row(
    promise="the same over nasty ones",
    unit="steps",
    target=100_000,
    subjects=lambda: list(_NASTY),
    task=_task(_NASTY),
    each=STEPS,
    seconds=120.0,
    checked=False,
    chain=True,
)
