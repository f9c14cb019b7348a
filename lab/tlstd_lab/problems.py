"""The learning problems of the experiments by name: a domain, its features, and states with their true values."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tlstd.core.arrays import FloatArray, Matrix
from tlstd.data.transitions import Transitions
from tlstd.domains import MarkovRewardProcess, OffPolicyProcess, baird, boyan_chain, random_walk
from tlstd.domains.baird import START as BAIRD_START
from tlstd.domains.base import Domain
from tlstd.domains.energy_storage import EnergyStorage, StoragePolicy
from tlstd.domains.mountain_car import MountainCar
from tlstd.domains.pendulum import Pendulum
from tlstd.domains.policies import Policy
from tlstd.errors import InvalidParameterError
from tlstd.evaluation import true_values
from tlstd.features.base import FeatureMap
from tlstd.features.random_fourier import RandomFourier
from tlstd.features.rbf import RBF
from tlstd.features.tile_coding import TileCoder
from tlstd.streams.simulated import record, trajectory
from tlstd_lab.energy_programme import exact_values, optimal_policy
from tlstd_lab.processes import spiral
from tlstd_lab.processes.spiral import START as SPIRAL_START

EVALUATION_SEED = 10**6
"""Of the path whose states EnergyStorage is evaluated at; no run has it."""
FEATURE_SEED = 2 * 10**6
"""Of the path whose observations random Fourier features are fitted to; no run has it."""


class Problem(NamedTuple):
    """What is to be learned, and the truth that it is compared with."""

    title: str
    domain: Domain
    policy: Policy
    """The one that is evaluated."""
    features: FeatureMap
    X: Matrix
    """Features of the states where errors are measured."""
    truth: FloatArray
    """Their values."""
    square_length: float
    """Mean of ‖x‖² over these states: their number if features are 0 or 1. Step sizes are divided by it."""

    @property
    def n_features(self) -> int:
        """Number of features d."""
        return int(self.features.n_features)

    def rmse(self, values: FloatArray) -> float:
        """Root of the mean squared error; infinite if the values are not numbers."""
        return _rmse(values, self.truth)


class KnownProcess(NamedTuple):
    """A small process whose values are known: as much of a :class:`Problem` as it takes to learn and to measure."""

    title: str
    process: MarkovRewardProcess
    X: FloatArray
    """Features of its states."""
    truth: FloatArray
    square_length: float

    @property
    def n_features(self) -> int:
        """Number of features d."""
        return int(self.process.n_features)

    def rmse(self, values: FloatArray) -> float:
        """Root of the mean squared error over the states; infinite if the values are not numbers."""
        return _rmse(values, self.truth)


def _rmse(values: FloatArray, truth: FloatArray) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        error = float(np.sqrt(np.mean((values - truth) ** 2)))
    return error if np.isfinite(error) else np.inf


def _problem(
    title: str, domain: Domain, policy: Policy, features: FeatureMap, states: FloatArray, truth: FloatArray
) -> Problem:
    X = features.encode_many(domain.observe(states))
    squares = (X**2).sum(axis=1) if isinstance(X, np.ndarray) else X.multiply(X).sum(axis=1)
    return Problem(title, domain, policy, features, X, truth, float(np.mean(squares)))


def _car(features: Callable[[MountainCar], FeatureMap], kind: str, car: MountainCar | None = None) -> Problem:
    car = car or MountainCar()
    states = car.grid()
    return _problem(f"Mountain Car, {kind}", car, car.policy(), features(car), states, true_values(car, states))


def _pendulum(features: Callable[[Pendulum], FeatureMap], kind: str) -> Problem:
    pendulum = Pendulum()
    states = pendulum.grid()
    truth = true_values(pendulum, states)
    return _problem(f"Pendulum, {kind}", pendulum, pendulum.policy(), features(pendulum), states, truth)


def _energy(kind: str = "", **parameters: Any) -> Problem:
    domain = EnergyStorage(**parameters)
    features = TileCoder(domain.low, domain.high, tiles=[5, 5, 10, 5], tilings=32, bias=True)
    return _energy_with(features, f"{kind}, tiles", domain, optimal_policy(domain))


class PlainCosines:
    """Random Fourier features as cosines between −1 and 1: the constant is one of them.

    :class:`~tlstd.features.RandomFourier` makes the cosines smaller, so that all of them together have the size of the
    constant. Here it is one feature of 500, as the paper's bias unit is one of 33 active ones.
    """

    def __init__(self, waves: RandomFourier) -> None:
        self.waves, self.n_features = waves, waves.n_features
        self._size = np.full(self.n_features, np.sqrt(waves.phases.size / 2.0))
        self._size[-1] = 1.0

    def encode(self, state: ArrayLike) -> FloatArray:
        """Features of one state (D,), shape (n_features,)."""
        x: FloatArray = self.waves.encode(state) * self._size
        return x

    def encode_many(self, states: ArrayLike) -> FloatArray:
        """Features of states (N, D), shape (N, n_features)."""
        X = self.waves.encode_many(states)
        X *= self._size
        return X


def _energy_fourier(kind: str, change: Callable[[RandomFourier], FeatureMap]) -> Problem:
    """One map for all runs, fitted to 1,000 observations that no run has and no error is measured at."""
    domain = EnergyStorage()
    policy = optimal_policy(domain)
    seen = domain.observe(trajectory(domain, policy, n_steps=1_000, seed=FEATURE_SEED).states[:-1])
    return _energy_with(change(RandomFourier.fit(seen, n_features=500)), kind, domain, policy)


def _energy_with(features: FeatureMap, kind: str, domain: EnergyStorage, policy: StoragePolicy) -> Problem:
    states = trajectory(domain, policy, n_steps=10_000, seed=EVALUATION_SEED).states[::10]
    return _problem(f"Energy storage{kind}", domain, policy, features, states, exact_values(domain, policy, states))


def _car_tiles(car: MountainCar) -> TileCoder:
    return TileCoder(car.low, car.high, tiles=10, tilings=10)


def _car_rbf(car: MountainCar) -> RBF:
    return RBF(car.low, car.high, grid=32, width=0.12)


def _valley() -> MountainCar:
    """Starts at rest near the bottom, as Gymnasium's; the same states are evaluated."""
    return MountainCar(start_low=(-0.6, 0.0), start_high=(-0.4, 0.0))


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "car-tiles": lambda: _car(_car_tiles, "tiles"),
    "car-rbf": lambda: _car(_car_rbf, "RBFs"),
    "car-tiles-valley": lambda: _car(_car_tiles, "tiles, starts at rest", _valley()),
    "car-rbf-valley": lambda: _car(_car_rbf, "RBFs, starts at rest", _valley()),
    "pendulum-tiles": lambda: _pendulum(lambda p: TileCoder(p.low, p.high, tiles=10, tilings=10), "tiles"),
    "pendulum-rbf": lambda: _pendulum(lambda p: RBF(p.low, p.high, grid=32, width=0.12), "RBFs"),
    "energy": _energy,
    "energy-fourier": partial(_energy_fourier, ", random Fourier features", PlainCosines),
    "energy-fourier-unit": partial(_energy_fourier, ", random Fourier features of size 1", lambda waves: waves),
    "energy-flat": lambda: _energy(", even demand", period=1, demand_wave=(3.0, 0.0)),
    "energy-day": lambda: _energy(", demand by the day", period=24),
    "energy-calm": lambda: _energy(", calm prices", period=24, price_walk=(1.0, 3), jump_probability=0.0),
    "energy-jumps": lambda: _energy(", jumping prices", period=24, jump_probability=0.15),
    "energy-small": lambda: _energy(", small storage", period=24, capacity=10, max_flow=2),
}


def off_policy_walk(features: Any) -> OffPolicyProcess:
    """The random walk of five states: the target goes right 6 times in 10, the behaviour 5 times.

    Example
    -------
    >>> off_policy_walk("tabular").values().round(2)
    array([-0.27,  0.22,  0.54,  0.76,  0.9 ])
    """
    walk = random_walk(5, features=features)
    P, rewards = np.zeros((5, 2, 5)), np.zeros((5, 2))
    P[np.arange(1, 5), 0, np.arange(4)] = P[np.arange(4), 1, np.arange(1, 5)] = 1.0
    rewards[0, 0], rewards[4, 1] = -1.0, 1.0
    return OffPolicyProcess(
        P,
        rewards,
        walk.X,
        target=np.tile([0.4, 0.6], (5, 1)),
        behaviour=np.full((5, 2), 0.5),
        gamma=1.0,
        start=walk.start,
        name="off-policy walk",
    )


PROCESSES: dict[str, Callable[[], MarkovRewardProcess]] = {
    "baird": lambda: baird(weights=-np.array(BAIRD_START)),
    "spiral": lambda: spiral(weights=-np.array(SPIRAL_START)),
    "walk-tabular": partial(off_policy_walk, "tabular"),
    "walk-inverted": partial(off_policy_walk, "inverted"),
    "walk-dependent": partial(off_policy_walk, "dependent"),
    "walk": partial(random_walk, 19),
    "boyan": boyan_chain,
}
"""The first two with rewards such that estimators, which begin at 0, begin where the literature does."""


@lru_cache(maxsize=8)
def process_of(name: str) -> MarkovRewardProcess:
    """The process of this name."""
    if name not in PROCESSES:
        raise InvalidParameterError(f"there is no process {name!r}: choose one of {', '.join(PROCESSES)}")
    return PROCESSES[name]()


@lru_cache(maxsize=8)
def problem(name: str) -> Problem:
    """The problem of this name, made once per process.

    Example
    -------
    >>> problem("car-tiles").truth.shape, problem("car-tiles").square_length
    ((400,), 10.0)
    """
    if name not in PROBLEMS:
        raise InvalidParameterError(f"there is no problem {name!r}: choose one of {', '.join(PROBLEMS)}")
    return PROBLEMS[name]()


@lru_cache(maxsize=8)
def measured(name: str) -> Problem | KnownProcess:
    """The problem or process of this name.

    Example
    -------
    >>> measured("walk").n_features, measured("car-tiles").n_features
    (19, 1000)
    """
    if name not in PROCESSES:
        return problem(name)
    process = process_of(name)
    X = process.X
    return KnownProcess(process.name, process, X, process.values(), float(np.mean((X**2).sum(axis=1))))


@lru_cache(maxsize=8)
def visited(name: str) -> Problem | KnownProcess:
    """The same problem with errors measured where a stream goes: at states of a path that no run has.

    The states of a process are all that there are.

    Example
    -------
    >>> visited("car-tiles").truth.shape
    (509,)
    """
    made = measured(name)
    if isinstance(made, KnownProcess) or isinstance(made.domain, EnergyStorage):  # their states are such ones
        return made
    states = trajectory(made.domain, made.policy, n_steps=5_000, seed=EVALUATION_SEED).states[::10]
    return made._replace(
        X=made.features.encode_many(made.domain.observe(states)), truth=true_values(made.domain, states)
    )


@lru_cache(maxsize=2)
def stream(name: str, n_steps: int, seed: int) -> Transitions:
    """``n_steps`` transitions of the problem's policy; the last two are kept."""
    if name in PROCESSES:
        return process_of(name).sample(n_steps, np.random.default_rng(seed))
    made = problem(name)
    return record(made.domain, made.policy, made.features, n_steps=n_steps, seed=seed)
