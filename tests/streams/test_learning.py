"""LSTD on the recorded stream of each domain approaches its true values, and does not if the stream is wrong.

The tolerances are the errors that the features allow, from three seeds, with some room: well below what any of the
broken streams reaches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tlstd_lab.energy_programme import exact_values, optimal_policy

from tlstd.classic.lstd import LSTD
from tlstd.core.arrays import FloatArray
from tlstd.data.transitions import Transitions
from tlstd.domains.base import Domain
from tlstd.domains.energy_storage import EnergyStorage
from tlstd.domains.mountain_car import MountainCar
from tlstd.domains.pendulum import Pendulum
from tlstd.domains.policies import EpsilonGreedy, Policy
from tlstd.evaluation import rollout_values, true_values
from tlstd.features.base import FeatureMap
from tlstd.features.rbf import RBF
from tlstd.features.tile_coding import TileCoder
from tlstd.streams import Trajectory, encode, trajectory


@dataclass(frozen=True)
class Problem:
    domain: Domain
    features: FeatureMap
    states: FloatArray  # to compare values in
    truth: FloatArray
    n_steps: int
    episode_cap: int
    tolerance: float
    policy: Policy | None = None  # the domain's own

    def path(self, seed: int) -> Trajectory:
        return trajectory(self.domain, self.policy, n_steps=self.n_steps, seed=seed, episode_cap=self.episode_cap)

    def error(self, steps: Transitions) -> float:
        """RMSE of LSTD(1)."""
        model = LSTD(self.features.n_features, lambda_=1.0)
        model.update_many(steps)
        values = model.predict(self.features.encode_many(self.domain.observe(self.states)))
        return float(np.sqrt(np.mean((values - self.truth) ** 2)))


def car() -> Problem:
    domain = MountainCar()
    features = RBF(domain.low, domain.high, grid=4, width=0.3)
    return Problem(domain, features, domain.grid(), true_values(domain, domain.grid()), 10_000, 20, tolerance=8.9)


def pendulum() -> Problem:
    domain = Pendulum()
    visited = trajectory(domain, n_steps=20_000, seed=50).states
    states = visited[visited[:, 2] == 0.0][::10]
    features = RBF(domain.low, domain.high, grid=6, width=0.2)
    return Problem(domain, features, states, true_values(domain, states), 20_000, 40, tolerance=45.0)


def storage() -> Problem:
    domain = EnergyStorage()
    policy = optimal_policy(domain)
    states = trajectory(domain, policy, n_steps=3000, seed=99).states
    features = TileCoder(domain.low, domain.high, tiles=4, tilings=1)
    truth = exact_values(domain, policy, states)
    return Problem(domain, features, states, truth, 20_000, 10, tolerance=235.0, policy=policy)


PROBLEMS: dict[str, Callable[[], Problem]] = {f.__name__: cache(f) for f in (car, pendulum, storage)}


def changed(steps: Transitions, discounts: FloatArray, trace_discounts: FloatArray) -> Transitions:
    columns = {"discounts": discounts, "trace_discounts": trace_discounts}
    return Transitions.from_rows(steps.store, steps.rows, steps.rewards, steps.next_rows, **columns)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", PROBLEMS)
def test_approaches_the_true_values(name: str, seed: int) -> None:
    problem = PROBLEMS[name]()
    steps = encode(problem.path(seed), problem.features, problem.domain)
    assert problem.error(steps) < problem.tolerance < 0.55 * float(np.sqrt(np.mean(problem.truth**2)))


@pytest.mark.parametrize("name", PROBLEMS)
def test_notices_a_broken_stream(name: str) -> None:
    problem = PROBLEMS[name]()
    path, gamma = problem.path(1), problem.domain.gamma
    steps = encode(path, problem.features, problem.domain)
    broken = {
        "truncation like termination": changed(
            steps, np.where(path.terminated | path.truncated, 0.0, gamma), steps.trace_discounts
        ),
        "no traces": changed(steps, steps.discounts, np.zeros(len(steps))),
    }
    if not problem.domain.continuing:
        broken["termination like truncation"] = changed(steps, np.full(len(steps), gamma), steps.trace_discounts)
    for what, wrong in broken.items():
        assert problem.error(wrong) > 1.03 * problem.tolerance, what


@pytest.mark.parametrize("name", ["car", "pendulum"])
def test_whole_episodes_give_the_regression_of_returns(name: str) -> None:
    """LSTD(1) solves the normal equations of observed returns; traces that run on into the next episode do not."""
    problem = PROBLEMS[name]()
    domain, features = problem.domain, problem.features
    path = trajectory(domain, problem.policy, n_steps=5000, seed=3)
    last = int(np.flatnonzero(path.terminated)[-1]) + 1
    assert not path.truncated[:last].any()
    returns, G = np.zeros(last), 0.0
    for t in reversed(range(last)):
        G = path.rewards[t] + (0.0 if path.terminated[t] else domain.gamma * G)
        returns[t] = G
    steps = encode(path, features, domain)[:last]
    X = np.asarray(steps.X)
    expected = X @ np.linalg.lstsq(X, returns)[0]
    uncut = np.full(last, domain.gamma)
    uncut[0] = 0.0
    values = []
    for stream in (steps, changed(steps, steps.discounts, uncut)):
        model = LSTD(features.n_features, lambda_=1.0, rcond=1e-14)
        model.update_many(stream)
        values.append(model.predict(X))
    scale = float(np.abs(expected).max())
    assert_allclose(values[0], expected, atol=1e-7 * scale)
    assert np.abs(values[1] - expected).max() > 1e-3 * scale


@pytest.mark.parametrize("name", PROBLEMS)
def test_capped_episodes_give_the_regression_of_bootstrapped_returns(name: str) -> None:
    """LSTD(1) without traces: x_t is regressed on rewards to come, and on γⁿ w·x_T where the episode is truncated."""
    problem = PROBLEMS[name]()
    domain, features = problem.domain, problem.features
    path = trajectory(domain, problem.policy, n_steps=3000, seed=3, episode_cap=problem.episode_cap)
    steps = encode(path, features, domain)
    X, X_next = (np.asarray(M.toarray() if hasattr(M, "toarray") else M) for M in (steps.X, steps.X_next))
    A, b = np.zeros((X.shape[1],) * 2), np.zeros(X.shape[1])
    ends = np.flatnonzero(path.terminated | path.truncated)
    for first, last in zip((0, *(ends[:-1] + 1)), ends, strict=True):
        G, weight = 0.0, 0.0 if path.terminated[last] else 1.0
        for t in range(last, first - 1, -1):
            G, weight = path.rewards[t] + domain.gamma * G, domain.gamma * weight
            A += np.outer(X[t], X[t] - weight * X_next[last])
            b += X[t] * G
    expected = X @ np.linalg.lstsq(A, b, rcond=1e-10)[0]
    uncut = np.where(path.terminated, 0.0, domain.gamma)
    ratio = {}
    for what, trace_discounts in (("right", steps.trace_discounts), ("uncut", np.append(0.0, uncut[:-1]))):
        model = LSTD(features.n_features, lambda_=1.0, rcond=1e-10)
        model.update_many(changed(steps, steps.discounts, trace_discounts))
        ratio[what] = float(np.abs(model.predict(X) - expected).max() / np.abs(expected).max())
    assert ratio["right"] < 1e-7
    assert ratio["uncut"] > 1e-3  # traces that run on over truncations


def test_off_policy_streams_evaluate_the_target() -> None:
    """With the ratios, LSTD on a careless driver's stream finds the values of energy pumping; without, its own."""
    problem = PROBLEMS["car"]()
    car, features = problem.domain, RBF(problem.domain.low, problem.domain.high, grid=8, width=0.2)
    careless = EpsilonGreedy(car.policy(), [-1, 0, 1], epsilon=0.5)
    path = trajectory(car, n_steps=40_000, seed=0, behaviour=careless)
    X = features.encode_many(problem.states)
    theirs = rollout_values(car, problem.states, n_rollouts=200, rng=np.random.default_rng(0), policy=careless).mean
    errors = {}
    for name, rhos in (("with", path.rhos), ("without", np.ones(len(path.rows)))):
        model = LSTD(features.n_features, lambda_=0.0)
        model.update_many(encode(path._replace(rhos=rhos), features, car))
        errors[name] = [float(np.sqrt(np.mean((model.predict(X) - values) ** 2))) for values in (problem.truth, theirs)]
    assert errors["with"][0] < 8.0 < 1.2 * errors["with"][1]
    assert errors["without"][1] < 8.0 < 1.2 * errors["without"][0]
