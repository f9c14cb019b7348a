"""Task: learn from a stream that changes half-way, and measure the error against what is true at the time."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.domains.base import Step
from tlstd.domains.mountain_car import MountainCar
from tlstd.errors import InvalidParameterError
from tlstd.evaluation import true_values
from tlstd.features.rbf import RBF
from tlstd.streams.simulated import record
from tlstd_lab.learning import make

GRID, WIDTH = 16, 0.12
"""Of the RBFs: fewer than in the paper's figures, so that LSTD can be solved at many points."""


class ExpensiveLeft(MountainCar):
    """Mountain Car where a step costs 2 if it ends left of the valley and nothing elsewhere: about as much in all.

    Example
    -------
    >>> ExpensiveLeft().step([[-0.9, 0.0], [0.0, 0.0]], [1, 1]).rewards
    array([-2.,  0.])
    """

    name = "ExpensiveLeft"

    def __init__(self) -> None:
        super().__init__()
        self.reward_bound = 2.0

    def _step(self, states: FloatArray, actions: FloatArray, noise: FloatArray) -> Step:
        step = super()._step(states, actions, noise)
        return step._replace(rewards=np.where(step.states[:, 0] < -0.5, -2.0, 0.0))


CHANGES: dict[str, Callable[[], MountainCar]] = {
    "none": MountainCar,
    "rewards": ExpensiveLeft,
    "dynamics": lambda: MountainCar(force=0.0005),
}
"""What Mountain Car becomes. In the last the engine has half its force, and the car needs more swings."""


@lru_cache(maxsize=4)
def world(change: str) -> tuple[MountainCar, FloatArray]:
    """The domain after a change, and its true values on the 20×20 grid.

    Example
    -------
    >>> [round(float(world(change)[1].mean()), 1) for change in CHANGES]
    [-37.9, -35.6, -47.4]
    """
    if change not in CHANGES:
        raise InvalidParameterError(f"there is no change {change!r}: choose one of {', '.join(CHANGES)}")
    car = CHANGES[change]()
    return car, true_values(car, car.grid())


def tracking(settings: dict[str, Any], seed: int) -> dict[str, IntArray | FloatArray]:
    """RMSE against the current truth along a stream whose second half comes from a changed domain.

    Settings: ``change`` (see ``CHANGES``), ``estimator`` (a step size is divided by the mean of ‖x‖² over the grid),
    ``half`` (samples before the change, and after it), ``points`` (measurements in each half, evenly spaced).
    """
    half, points = settings["half"], settings["points"]
    old, _ = world("none")
    features = RBF(old.low, old.high, grid=GRID, width=WIDTH)
    X = features.encode_many(old.grid())
    estimator = dict(settings["estimator"])
    if "step_size" in estimator:
        estimator["step_size"] = estimator["step_size"] / float((X**2).sum(axis=1).mean())
    model = make(estimator, features.n_features)
    samples: list[int] = []
    errors: list[float] = []
    for number, (change, child) in enumerate(
        zip(("none", settings["change"]), np.random.SeedSequence(seed).spawn(2), strict=True)
    ):
        domain, truth = world(change)
        steps = record(domain, None, features, n_steps=half, seed=child)
        start = 0
        for stop in np.linspace(0, half, points + 1).round().astype(int)[1:].tolist():
            model.update_many(steps[start:stop])
            samples.append(number * half + stop)
            errors.append(_rmse(model.predict(X) - truth))
            start = stop
    return {"samples": np.array(samples), "rmse": np.array(errors)}


def _rmse(error: FloatArray) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        value = float(np.sqrt(np.mean(error**2)))
    return value if np.isfinite(value) else np.inf
