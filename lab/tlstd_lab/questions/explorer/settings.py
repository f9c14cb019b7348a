"""The runs behind the report's rank explorer, and where on a plane of states its pictures show values."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from tlstd.core.arrays import FloatArray, Matrix
from tlstd.domains.energy_storage import EnergyStorage
from tlstd.domains.mountain_car import MountainCar
from tlstd.domains.pendulum import Pendulum
from tlstd.errors import InvalidParameterError
from tlstd_lab.energy_programme import aliasing_floor, optimal_policy
from tlstd_lab.panel import Scale, pick
from tlstd_lab.problems import problem
from tlstd_lab.spec import RunSpec

SEED = 0
"""Of the stream that all runs learn from."""

FULL = "full"
"""The rank of LSTD."""


class Choice(NamedTuple):
    """One problem of the explorer: what can be chosen."""

    problem: str
    lambdas: tuple[float, ...]
    ranks: tuple[int | str, ...]


CHOICES: dict[str, tuple[Choice, ...]] = {
    "smoke": (Choice("car-tiles", (0.0, 1.0), (2, 5, FULL)),),
    "paper": (
        *(
            Choice(name, (0.0, 0.9, 1.0), (2, 5, 10, 20, 30, 50, 75, 100, 150, 200, 300, FULL))
            for name in ("car-tiles", "car-rbf", "pendulum-tiles", "pendulum-rbf")
        ),
        Choice("energy", (0.9, 1.0), (5, 10, 20, 40, 60, 100)),
    ),
}
"""By scale. On energy storage LSTD's matrix would take gigabytes."""

SAMPLES = {"smoke": (50, 100), "paper": (500, 1000, 2000, 5000)}


class View(NamedTuple):
    """States on a plane, ``y`` running fastest, their features and true values, and what the axes are."""

    X: Matrix
    truth: FloatArray
    x: FloatArray
    y: FloatArray


def estimator(rank: int | str, lambda_: float) -> dict[str, Any]:
    """Settings of t-LSTD of this rank, or of LSTD."""
    if rank == FULL:
        return {"class": "LSTD", "lambda_": lambda_}
    return {"class": "TLSTD", "rank": rank, "lambda_": lambda_}


def learning_spec(scale: Scale, name: str, rank: int | str, lambda_: float) -> RunSpec:
    """The run of one problem, rank and λ, read after several numbers of samples."""
    settings = {"problem": name, "estimator": estimator(rank, lambda_), "samples": pick(SAMPLES, scale)}
    return RunSpec("explore", settings, SEED, timed=True)


def truth_spec(name: str) -> RunSpec:
    """The run that holds the true values of a problem."""
    return RunSpec("explore-truth", {"problem": name}, SEED)


def specs(scale: Scale) -> list[RunSpec]:
    """All runs of the explorer.

    Example
    -------
    >>> len(specs("paper")), len(specs("smoke"))
    (161, 7)
    """
    wanted = [truth_spec(choice.problem) for choice in pick(CHOICES, scale)]
    for choice in pick(CHOICES, scale):
        wanted += [
            learning_spec(scale, choice.problem, rank, lambda_) for lambda_ in choice.lambdas for rank in choice.ranks
        ]
    return wanted


@lru_cache(maxsize=8)
def view(name: str) -> View:
    """The states at which the explorer shows the values of a problem.

    Mountain Car and Pendulum: the grid on which errors are measured. Energy storage: storage and price, with wind and
    demand in the middle; since features do not see the phase, the truth is the mean over phases, as often as they go
    with the observation (:func:`~tlstd_lab.energy_programme.aliasing_floor`).

    Example
    -------
    >>> made = view("car-tiles")
    >>> made.truth.shape, made.x.shape, made.y.shape
    ((400,), (20,), (20,))
    """
    made = problem(name)
    domain = made.domain
    if isinstance(domain, (MountainCar, Pendulum)):
        states = domain.grid()
        return View(made.X, made.truth, np.unique(states[:, 0]), np.unique(states[:, 1]))
    if not isinstance(domain, EnergyStorage):
        raise InvalidParameterError(f"there is no view of {name!r}: choose a problem of two dimensions, or energy")
    storage, price = np.arange(domain.capacity + 1.0), np.arange(domain.low[2], domain.high[2] + 1.0, 2.0)
    wind, demand = np.floor(0.5 * (domain.low + domain.high))[[1, 3]]
    observations = np.column_stack(
        [
            np.repeat(storage, price.size),
            np.full(storage.size * price.size, wind),
            np.tile(price, storage.size),
            np.full(storage.size * price.size, demand),
        ]
    )
    predictor = aliasing_floor(domain, optimal_policy(domain)).predictor
    index = tuple((observations - domain.low).astype(np.int64).T)
    return View(made.features.encode_many(observations), predictor[index], storage, price)
