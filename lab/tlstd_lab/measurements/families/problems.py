"""The problems: a log per seed, and states whose true values are known.

They were chosen before anything was measured, and are not changed afterwards. True values are closed forms, dense
solves of finite processes or fine grids; ``exact`` says which, and how large their error can be.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from tlstd import Log
from tlstd.core.arrays import FloatArray
from tlstd.domains import MarkovRewardProcess, boyan_chain, random_walk
from tlstd.domains.mountain_car import MountainCar, energy_pumping
from tlstd.evaluation import true_values
from tlstd.streams import trajectory
from tlstd_lab.measurements.answers.problems import discounted
from tlstd_lab.measurements.answers.processes import LONGEST, of_table, rolled
from tlstd_lab.measurements.families import worlds
from tlstd_lab.measurements.families.worlds import Seen, still
from tlstd_lab.problems import EVALUATION_SEED, visited

COMPARISON = "problems of the comparison, raw observations"
LOGGED = "logged policy"
OTHER = "another policy, without probabilities"
GROUPS = (COMPARISON, LOGGED, OTHER)

MOST_STATES = 500
"""States at which new problems are evaluated: visited ones of logs that no seed has."""
CLOSED, SOLVED = "closed form", "finite process, solved"

Policy = Callable[[FloatArray], FloatArray]
"""From observations (M, D) to probabilities (M, n_actions)."""


class Problem(NamedTuple):
    """Logs by seed, a discount, a target policy, and states with true values."""

    name: str
    words: str
    group: str
    log: Callable[[int], Log]
    """The log of a seed: the same one each time."""
    gamma: float
    states: FloatArray
    """(M, D) observations at which values are compared."""
    truth: FloatArray
    """(M,): their values under the target policy."""
    exact: str
    """Where the true values come from, with their error if there is one."""
    rollouts: Callable[[np.random.Generator], FloatArray] | None = None
    """The return of one rollout from each of the states, under the target policy: their mean is the truth.

    None where other tests have the true values.
    """
    policy: Policy | None = None
    """The target policy; None: the logged one."""
    n_actions: int = 0

    def rmse(self, values: Any) -> float:
        """Root of the mean squared error."""
        return float(np.sqrt(np.mean((np.asarray(values, dtype=np.float64) - self.truth) ** 2)))


# --- the comparison -------------------------------------------------------------------------------------------------


def _path_log(observations: Any, path: Any) -> Log:
    """A log of a path of a domain; ``observations`` are of all its states."""
    return Log.from_arrays(
        observations[path.rows], path.rewards, terminated=path.terminated, truncated=path.truncated,
        next_observations=observations[path.rows + 1],
    )  # fmt: skip


def _line(name: str, words: str, process: MarkovRewardProcess, n_steps: int) -> Problem:
    """A process whose states lie on a line: one column, the place."""

    def log(seed: int) -> Log:
        path = process.trajectory(n_steps, np.random.default_rng(seed))
        after = np.where(path.terminated, path.states, path.next_states)  # what follows an end does not matter
        return Log.from_arrays(
            path.states[:, None].astype(float), path.rewards, terminated=path.terminated, truncated=path.truncated,
            next_observations=after[:, None].astype(float),
        )  # fmt: skip

    places = np.arange(process.n_states, dtype=np.float64)[:, None]
    return Problem(name, words, COMPARISON, log, process.gamma, places, process.values(), CLOSED)


def _domain(name: str, words: str, of: str, n_steps: int) -> Problem:
    """A domain of the figures; its states are those of another path of it."""
    made = visited(of)
    domain, policy = made.domain, made.policy  # type: ignore[union-attr]
    if domain.continuing:
        states, exact = trajectory(domain, policy, n_steps=10_000, seed=EVALUATION_SEED).states[::10], SOLVED
    else:
        states = trajectory(domain, policy, n_steps=5_000, seed=EVALUATION_SEED).states[::10]
        exact = "rollouts without chance"

    def log(seed: int) -> Log:
        path = trajectory(domain, policy, n_steps=max(n_steps, 10_000) if domain.continuing else n_steps, seed=seed)
        if not domain.continuing:
            return _path_log(domain.observe(path.states), path)
        seen, rows = domain.observe(path.states), path.rows[:n_steps]
        return Log.from_arrays(seen[rows], path.rewards[:n_steps], next_observations=seen[rows + 1])

    return Problem(name, words, COMPARISON, log, domain.gamma, domain.observe(states), made.truth, exact)


# --- rollouts -------------------------------------------------------------------------------------------------------


class _From(NamedTuple):
    """A world whose episodes begin in given states."""

    world: Any
    states: Any

    def start(self, n: int, rng: np.random.Generator) -> Any:
        return self.states

    def move(self, states: Any, actions: Any, rng: np.random.Generator) -> tuple[Any, FloatArray, Any]:
        found: tuple[Any, FloatArray, Any] = self.world.move(states, actions, rng)
        return found


def _rollouts(world: Any, act: Any, states: Any, gamma: float) -> Callable[[np.random.Generator], FloatArray]:
    return lambda rng: discounted(rolled(_From(world, states), act, len(states), rng), gamma)


def _drawing(policy: Policy) -> Any:
    """Draws actions by their probabilities."""

    def act(states: Any, rng: np.random.Generator) -> tuple[Any, FloatArray]:
        chances = policy(states)
        actions = (chances.cumsum(axis=1)[:, :-1] <= rng.random((len(chances), 1))).sum(axis=1)
        return actions, chances[np.arange(len(chances)), actions]

    return act


# --- worlds ---------------------------------------------------------------------------------------------------------


def _evaluated(number: int, roll: Callable[[Any], Any]) -> Any:
    """Evenly spaced states of a log that no seed has."""
    states = roll(np.random.default_rng([number, EVALUATION_SEED])).states
    return states[:: max(1, len(states) // MOST_STATES)][:MOST_STATES]


def _columns(
    number: int, name: str, words: str, world: Any, gamma: float, n: int, exact: str = CLOSED,
    act: Any = still, policy: Policy | None = None, n_actions: int = 0, limit: int = LONGEST,
) -> Problem:  # fmt: skip
    """Episodes of a world whose states are columns of numbers."""
    roll = partial(rolled, world, act, n, limit=limit)

    def log(seed: int) -> Log:
        steps = roll(np.random.default_rng([number, seed]))
        return steps.log(actions=steps.actions) if policy else steps.log()

    states = _evaluated(number, roll)
    truth, group = world.values(states, gamma), OTHER if policy else LOGGED
    check = _rollouts(world, _drawing(policy) if policy else act, states, gamma)
    return Problem(name, words, group, log, gamma, states, truth, exact, check, policy, n_actions)


def _finite(
    number: int, name: str, words: str, seen: Seen, gamma: float, n: int, *, other: bool = False,
    limit: int = LONGEST, idle: Callable[[Any], FloatArray] | None = None,
) -> Problem:  # fmt: skip
    """Episodes of a finite process that is seen as columns; ``idle``: a column per episode that does not matter."""
    roll = partial(rolled, seen.process, of_table(seen.logged), n, limit=limit)

    def log(seed: int) -> Log:
        rng = np.random.default_rng([number, seed])
        steps = roll(rng)
        more = np.zeros((len(steps.episodes), 0)) if idle is None else idle(rng)[steps.episodes][:, None]
        actions = {"actions": steps.actions} if other else {}
        return steps.log(lambda states: np.hstack([seen.see(states), more]), **actions)

    states = _evaluated(number, roll)
    observed = seen.see(states)
    if idle is not None:
        drawn = idle(np.random.default_rng([number, EVALUATION_SEED, 1]))
        observed = np.hstack([observed, drawn[np.arange(len(states)) % n][:, None]])
    evaluated = seen.target if other else seen.logged
    truth = seen.process.values(evaluated, gamma)[states]
    check = _rollouts(seen.process, of_table(evaluated), states, gamma)
    policy, n_actions = (seen.policy, seen.logged.shape[1]) if other else (None, 0)
    group = OTHER if other else LOGGED
    return Problem(name, words, group, log, gamma, observed, truth, SOLVED, check, policy, n_actions)


class _Sensors(NamedTuple):
    """A stream in the form of ``rolled``."""

    states: FloatArray


def _sensors(number: int) -> Problem:
    world, gamma, n = worlds.Sensors(), 0.9, 2_000

    def log(seed: int) -> Log:
        states, rewards = world.stream(n, np.random.default_rng([number, seed]))
        return Log.from_arrays(states[:-1], rewards, next_observations=states[1:])

    def check(rng: np.random.Generator) -> FloatArray:
        found = [world.stream(100, rng, state)[1] @ gamma ** np.arange(100) for state in states]
        return np.array(found)

    states = _evaluated(number, lambda rng: _Sensors(world.stream(n, rng)[0]))
    words = "twelve sensors, of which two matter; a stream"
    return Problem("sensors", words, LOGGED, log, gamma, states, world.values(states, gamma), CLOSED, check)


# --- Mountain Car with another policy -------------------------------------------------------------------------------


class _Driven:
    """Mountain Car with actions 0, 1, 2."""

    car = MountainCar()

    def start(self, n: int, rng: np.random.Generator) -> FloatArray:
        return self.car.start(n, rng)

    def move(self, states: Any, actions: Any, rng: np.random.Generator) -> tuple[Any, FloatArray, Any]:
        step = self.car.step(states, actions - 1.0)
        return step.states, step.rewards, step.terminated

    def values(self, states: FloatArray, gamma: float) -> FloatArray:
        """Of energy pumping, without chance."""
        return true_values(self.car, states, gamma=gamma)


def _pumping(states: FloatArray) -> FloatArray:
    found: FloatArray = np.eye(3)[energy_pumping(states).astype(int) + 1]
    return found


def _driving(states: FloatArray) -> FloatArray:
    """Six of ten steps pump energy, the others are random."""
    found: FloatArray = 0.6 * _pumping(states) + 0.4 / 3
    return found


def _pushing(states: FloatArray) -> FloatArray:
    return np.full((len(states), 3), 1.0 / 3)


# --- all of them ----------------------------------------------------------------------------------------------------


def _ages(n: int) -> Callable[[np.random.Generator], FloatArray]:
    return lambda rng: rng.normal(45.0, 15.0, n)


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "walk": lambda: _line("walk", "random walk of 19 states", random_walk(19), 2_000),
    "boyan": lambda: _line("boyan", "Boyan's chain", boyan_chain(), 1_000),
    "car": lambda: _domain("car", "Mountain Car", "car-tiles", 2_000),
    "car-valley": lambda: _domain("car-valley", "Mountain Car, starts at rest", "car-tiles-valley", 2_000),
    "pendulum": lambda: _domain("pendulum", "Pendulum", "pendulum-tiles", 2_000),
    "energy-1000": lambda: _domain("energy-1000", "energy, 1,000 samples (README)", "energy", 1_000),
    "energy-10000": lambda: _domain("energy-10000", "energy, 10,000 samples (README)", "energy", 10_000),
    "energy-flat": lambda: _domain("energy-flat", "energy, even demand", "energy-flat", 1_000),
    "energy-day": lambda: _domain("energy-day", "energy, demand by the day", "energy-day", 1_000),
    "energy-calm": lambda: _domain("energy-calm", "energy, calm prices", "energy-calm", 1_000),
    "energy-jumps": lambda: _domain("energy-jumps", "energy, jumping prices", "energy-jumps", 1_000),
    "energy-small": lambda: _domain("energy-small", "energy, small storage", "energy-small", 1_000),
    "quadratic": lambda: _columns(
        1, "quadratic", "ten columns, linear dynamics, quadratic cost", worlds.Quadratic(10, 10), 0.95, 100
    ),
    "pixels": lambda: _finite(2, "pixels", "64 binary pixels (Catch), sparse reward", worlds.catch(), 0.95, 150),
    "inventory": lambda: _finite(3, "inventory", "inventory, whole numbers, cut off", worlds.shop(), 0.9, 60, limit=20),
    "journeys": lambda: _finite(
        4, "journeys", "customer journeys, categories, heavy tails", worlds.journeys(), 0.95, 150, idle=_ages(150)
    ),
    "step": lambda: _columns(5, "step", "walk of one column, steps", worlds.StepWalk(), 0.9, 50, "grid, ± 10⁻⁵"),
    "smooth": lambda: _columns(6, "smooth", "four columns, smooth bumps", worlds.Bumps(), 0.95, 100),
    "sensors": lambda: _sensors(7),
    "crossed": lambda: _finite(8, "crossed", "three crossed categories", worlds.crossed(), 0.9, 120),
    "rooms": lambda: _finite(9, "rooms", "four rooms with walls", worlds.rooms(), 0.95, 80, limit=60),
    "epidemic": lambda: _finite(10, "epidemic", "epidemic, counts", worlds.epidemic(), 0.95, 60),
    "pushed-other": lambda: _columns(
        11, "pushed-other", "six columns, three actions", worlds.Pushed(), 0.9, 120, "grid, ± 10⁻⁵",
        _drawing(_pushing), worlds.Pushed.target, 3,
    ),
    "pixels-other": lambda: _finite(12, "pixels-other", "64 pixels (Catch)", worlds.catch(), 0.95, 150, other=True),
    "inventory-other": lambda: _finite(
        13, "inventory-other", "inventory, orders", worlds.shop(), 0.9, 60, other=True, limit=20
    ),
    "ward-other": lambda: _finite(
        14, "ward-other", "clinic, five columns, treatments", worlds.ward(), 0.95, 150, other=True
    ),
    "rooms-other": lambda: _finite(15, "rooms-other", "four rooms", worlds.rooms(), 0.95, 80, other=True, limit=60),
    "car-other": lambda: _columns(
        16, "car-other", "Mountain Car, starts anywhere", _Driven(), 0.97, 50, "rollouts without chance",
        _drawing(_driving), _pumping, 3, limit=60,
    ),
}  # fmt: skip


@cache
def problem(name: str) -> Problem:
    """The problem of this name, made once per process.

    Example
    -------
    >>> made = problem("boyan")
    >>> made.states.shape, float(made.truth[-1]), len(made.log(0))
    ((13, 1), -24.0, 1000)
    """
    return PROBLEMS[name]()
