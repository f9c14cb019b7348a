from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tlstd_lab import energy_programme
from tlstd_lab.energy_programme import aliasing_floor, exact_values, greedy, never_store, optimal_policy, stationary

from tlstd.core.arrays import FloatArray
from tlstd.domains.energy_storage import EnergyStorage, StoragePolicy
from tlstd.errors import InvalidInputError, InvalidParameterError

Z99 = 2.5758293035489004


def small(**changes: object) -> EnergyStorage:
    parameters: dict[str, object] = {
        "capacity": 3,
        "max_flow": 2,
        "renewable": (0, 2),
        "price": (1, 4),
        "demand": (0, 2),
        "period": 4,
        "price_walk": (1.0, 1),
        "jump_probability": 0.1,
        "jump": (2.0, 3),
        "demand_wave": (1.0, 1.0),
        "demand_noise": (1.0, 1),
    }
    return EnergyStorage(**{**parameters, **changes})  # type: ignore[arg-type]


def moves(value: int, noise: FloatArray, axis: range) -> list[tuple[int, float]]:
    """Where a noise takes a value, and with what probability."""
    half = len(noise) // 2
    return [(min(max(value + k - half, axis[0]), axis[-1]), float(p)) for k, p in enumerate(noise)]


class Slow:
    """A small instance as a finite process, one state, action and outcome at a time."""

    def __init__(self, domain: EnergyStorage) -> None:
        axes = [range(int(low), int(high) + 1) for low, high in zip(domain.low, domain.high, strict=True)]
        self.states = [(*s, t) for t in range(domain.period) for s in itertools.product(*axes)]
        index = {state: i for i, state in enumerate(self.states)}
        self.actions = list(range(-domain.max_flow, domain.max_flow + 1))
        n = len(self.states)
        self.P = np.zeros((len(self.actions), n, n))
        self.r = np.zeros((len(self.actions), n))
        for (a, x), (i, (R, E, P, D, t)) in itertools.product(enumerate(self.actions), enumerate(self.states)):
            c = min(max(x, 0), (domain.capacity - R) / domain.charge_efficiency)
            q = min(max(-x, 0), R)
            self.r[a, i] = P * (domain.discharge_efficiency * q - c + min(E, D + c))
            level = min(max(R + domain.charge_efficiency * c - q, 0.0), float(domain.capacity))
            floor = min(int(level), domain.capacity - 1)
            later = (t + 1) % domain.period
            for (e, pe), (p, pp), (d, pd) in itertools.product(
                moves(E, domain.renewable_noise, axes[1]),
                moves(P, domain.price_noise, axes[2]),
                moves(int(domain.demand_means[later]), domain.demand_noise, axes[3]),
            ):
                self.P[a, i, index[floor, e, p, d, later]] += pe * pp * pd * (1 - (level - floor))
                self.P[a, i, index[floor + 1, e, p, d, later]] += pe * pp * pd * (level - floor)

    def under(self, policy: StoragePolicy) -> tuple[FloatArray, FloatArray]:
        """Transition matrix and mean rewards of a policy."""
        low = policy.domain.low.astype(int)
        chosen = [
            self.actions.index(policy.table[t, R - low[0], E - low[1], P - low[2], D - low[3]])
            for R, E, P, D, t in self.states
        ]
        return self.rows(chosen)

    def rows(self, chosen: list[int]) -> tuple[FloatArray, FloatArray]:
        everywhere = np.arange(len(self.states))
        return self.P[chosen, everywhere], self.r[chosen, everywhere]

    def gain(self, P: FloatArray, r: FloatArray) -> tuple[float, FloatArray]:
        """Mean reward per step g and relative values h: g + h = r + P h, h(first) = 0."""
        system = np.eye(len(r)) - P
        system[:, 0] = 1.0  # g in the place of h(first)
        h = np.linalg.solve(system, r).astype(np.float64)
        g, h[0] = float(h[0]), 0.0
        return g, h

    def best(self) -> tuple[float, FloatArray]:
        """The largest mean reward per step by policy iteration, and what each action is worth then."""
        chosen = [self.actions.index(-min(2, state[0])) for state in self.states]
        while True:
            g, h = self.gain(*self.rows(chosen))
            worth: FloatArray = self.r + self.P @ h
            everywhere = np.arange(len(self.states))
            better = worth.max(axis=0) > worth[chosen, everywhere] + 1e-9
            if not better.any():
                return g, worth
            chosen = [int(worth[:, i].argmax()) if better[i] else a for i, a in enumerate(chosen)]


def random_table(domain: EnergyStorage, seed: int) -> StoragePolicy:
    flow = domain.max_flow
    return StoragePolicy(domain, np.random.default_rng(seed).integers(-flow, flow + 1, domain.table_shape))


def states_of(slow: Slow) -> FloatArray:
    return np.array(slow.states, dtype=np.float64)


# --- against the slow reference -------------------------------------------------------------------------------------

INSTANCES = {
    "usual": small(),
    "lossy": small(charge_efficiency=0.7, discharge_efficiency=0.8),
    "one phase": small(period=1, demand_wave=(1.0, 0.0)),
}


@pytest.fixture(scope="module", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of this run, shared by its workers: what is kept for the user could be older than the code."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TLSTD_CACHE", str(folder / "tlstd-cache"))
        yield


@cache
def slow_one(name: str) -> Slow:
    return Slow(INSTANCES[name])


@pytest.fixture(scope="module", params=INSTANCES)
def instance(request: pytest.FixtureRequest) -> tuple[EnergyStorage, Slow]:
    return INSTANCES[request.param], slow_one(request.param)


def test_the_reference_is_a_process(instance: tuple[EnergyStorage, Slow]) -> None:
    assert_allclose(instance[1].P.sum(axis=2), 1.0, atol=1e-12)


def test_policy_is_optimal(instance: tuple[EnergyStorage, Slow]) -> None:
    domain, slow = instance
    best, worth = slow.best()
    policy = optimal_policy(domain, tolerance=1e-9, cache=False)
    mean, _ = slow.gain(*slow.under(policy))
    assert_allclose(mean, best, atol=1e-9)
    low = domain.low.astype(int)
    table = [policy.table[t, R, E - low[1], P - low[2], D - low[3]] for R, E, P, D, t in slow.states]
    chosen = [slow.actions.index(x) for x in table]
    assert_allclose(worth[chosen, np.arange(len(chosen))], worth.max(axis=0), atol=1e-7)


def test_wind_that_never_changes_is_refused_soon() -> None:
    """Each wind then has a best reward of its own, which no sweep brings together."""
    with pytest.raises(InvalidParameterError, match=r"sweeps bound .*renewable_step"):
        optimal_policy(small(renewable_step=0), cache=False)


def test_one_sweep_is_not_enough() -> None:
    """It sells everything in the last phase, as if nothing came after."""
    domain, slow = INSTANCES["usual"], slow_one("usual")
    once = optimal_policy(domain, tolerance=1e9, cache=False)
    last = states_of(slow)[-144:]
    assert (domain.flows(last[:, 0], once.act(last, np.zeros(144)))[1] == np.minimum(last[:, 0], 2)).all()
    mean, _ = slow.gain(*slow.under(once))
    best, _ = slow.best()
    assert mean < best - 0.01


@pytest.mark.parametrize("gamma", [0.0, 0.8, 0.97])
def test_values_solve_the_linear_system(instance: tuple[EnergyStorage, Slow], gamma: float) -> None:
    domain, slow = instance
    for policy in (random_table(domain, 0), greedy(domain), never_store(domain)):
        P, r = slow.under(policy)
        expected = np.linalg.solve(np.eye(len(r)) - gamma * P, r)
        values = exact_values(domain, policy, states_of(slow), gamma=gamma, cache=False)
        assert_allclose(values, expected, atol=2e-9)


def test_stationary_distribution(instance: tuple[EnergyStorage, Slow]) -> None:
    domain, slow = instance
    policy = random_table(domain, 1)
    P, _ = slow.under(policy)
    n = len(P)
    expected = np.linalg.lstsq(np.vstack([P.T - np.eye(n), np.ones(n)]), np.append(np.zeros(n), 1.0), rcond=None)[0]
    assert_allclose(stationary(domain, policy).ravel(), expected, atol=1e-11)


def test_floor_by_loops(instance: tuple[EnergyStorage, Slow]) -> None:
    domain, slow = instance
    policy = random_table(domain, 2)
    shares = stationary(domain, policy).ravel()
    values = exact_values(domain, policy, states_of(slow), cache=False)
    floor = aliasing_floor(domain, policy, cache=False)
    error = 0.0
    for observed in {state[:4] for state in slow.states}:
        rows = [i for i, state in enumerate(slow.states) if state[:4] == observed]
        if shares[rows].sum() > 0.0:
            best = np.average(values[rows], weights=shares[rows])
            error += float(shares[rows] @ (values[rows] - best) ** 2)
            index = tuple(np.subtract(observed, domain.low).astype(int))
            assert_allclose(floor.predictor[index], best, atol=1e-9)
    assert_allclose(floor.rmse, np.sqrt(error), atol=1e-9)
    assert_allclose(floor.mean, shares @ values)
    assert_allclose(floor.sd, np.sqrt(shares @ (values - shares @ values) ** 2))
    if domain.period == 1:
        assert floor.rmse < 1e-9


def test_greedy_is_myopic(instance: tuple[EnergyStorage, Slow]) -> None:
    domain, slow = instance
    _, r = slow.under(greedy(domain))
    assert_allclose(r, slow.r.max(axis=0), atol=1e-8)


# --- the usual instance ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def domain() -> EnergyStorage:
    return EnergyStorage()


@pytest.fixture(scope="module")
def policy(domain: EnergyStorage) -> StoragePolicy:
    return optimal_policy(domain)


@pytest.mark.long
def test_policy_beats_simple_ones(domain: EnergyStorage, policy: StoragePolicy) -> None:
    """Same starts, same noise: the 99% interval of the gain in mean reward per step is far above 0."""
    rng, runs, n_steps = np.random.default_rng(0), 100, 1000
    starts = domain.start(runs, rng)
    noise = rng.random((runs, n_steps, 3))
    means = {
        name: np.array([domain.simulate(starts[i], rule, noise[i], np.zeros(n_steps))[2].mean() for i in range(runs)])
        for name, rule in (
            ("best", policy),
            ("own", domain.policy()),
            ("greedy", greedy(domain)),
            ("never", never_store(domain)),
        )
    }
    for other, least in (("own", 9.0), ("greedy", 14.0), ("never", 55.0)):
        gain = means["best"] - means[other]
        half = Z99 * gain.std(ddof=1) / np.sqrt(runs)
        assert gain.mean() - half > least, f"{other}: {gain.mean():.2f} ± {half:.2f}"


@pytest.mark.long
def test_values_agree_with_rollouts(domain: EnergyStorage, policy: StoragePolicy) -> None:
    """Exact values lie in the 99% intervals of rollouts at 97% of random states or more."""
    rng, n_states, n_rollouts, gamma = np.random.default_rng(1), 200, 500, 0.8
    horizon = int(np.ceil(np.log(1e-3 * (1 - gamma) / domain.reward_bound) / np.log(gamma)))
    starts = domain.start(n_states, rng)
    states = np.repeat(starts, n_rollouts, axis=0)
    returns = np.zeros(len(states))
    for t in range(horizon):
        step = domain.step(states, policy.act(states, np.zeros(len(states))), rng)
        returns += gamma**t * step.rewards
        states = step.states
    sample = returns.reshape(n_states, n_rollouts)
    half = Z99 * sample.std(axis=1, ddof=1) / np.sqrt(n_rollouts) + 1e-3
    inside = np.abs(sample.mean(axis=1) - exact_values(domain, policy, starts)) <= half
    assert inside.mean() >= 0.97


def test_values_are_bellman_consistent(domain: EnergyStorage) -> None:
    """V(s) is the reward and γ times the mean of V over every outcome of a step, whatever the policy."""
    policy = greedy(domain)
    rng = np.random.default_rng(2)
    starts = domain.start(5, rng)

    def middles(probabilities: FloatArray) -> FloatArray:
        ends = np.cumsum(probabilities)
        return ends - 0.5 * probabilities

    noises = (domain.renewable_noise, domain.price_noise, domain.demand_noise)
    outcomes = np.array(list(itertools.product(*(middles(noise) for noise in noises))))
    weights = np.array([np.prod(p) for p in itertools.product(*noises)])
    for start in starts:
        states = np.tile(start, (len(outcomes), 1))
        step = domain._step(states, policy.act(states, np.zeros(len(states))), outcomes)
        expected = step.rewards[0] + 0.8 * weights @ exact_values(domain, policy, step.states)
        assert_allclose(exact_values(domain, policy, start[None])[0], expected, atol=1e-8)


@pytest.mark.long
def test_floor_on_a_path(domain: EnergyStorage, policy: StoragePolicy) -> None:
    """On states the policy visits, the best predictor has the floor's error; recorded means seem to do better."""
    floor = aliasing_floor(domain, policy)
    assert 95.0 < floor.rmse < 115.0
    assert 465.0 < floor.sd < 485.0
    rng, n_steps = np.random.default_rng(3), 200_000
    path, _, _ = domain.simulate(domain.start(1, rng)[0], policy, rng.random((n_steps, 3)), np.zeros(n_steps))
    path = path[1000:]
    values = exact_values(domain, policy, path)
    index = np.ravel_multi_index(tuple((path[:, :4] - domain.low).astype(int).T), domain.table_shape[1:])
    error = np.sqrt(np.mean((values - floor.predictor.ravel()[index]) ** 2))
    assert_allclose(error, floor.rmse, rtol=0.03)
    assert_allclose(values.std(), floor.sd, rtol=0.03)
    sums, counts = np.bincount(index, values, minlength=floor.predictor.size), np.bincount(index)
    recorded = sums[index] / counts[index]
    assert np.sqrt(np.mean((values - recorded) ** 2)) < 0.95 * error


@pytest.mark.long
def test_lossy_storage() -> None:
    """Off the grid, interpolated values are close to rollouts."""
    lossy = EnergyStorage(charge_efficiency=0.9, discharge_efficiency=0.95, period=20)
    policy = optimal_policy(lossy)
    rng, n_rollouts = np.random.default_rng(4), 800
    starts = lossy.start(50, rng)
    starts[:, 0] = rng.uniform(0.0, 30.0, 50)
    states = np.repeat(starts, n_rollouts, axis=0)
    returns = np.zeros(len(states))
    for t in range(50):
        step = lossy.step(states, policy.act(states, np.zeros(len(states))), rng)
        returns += 0.8**t * step.rewards
        states = step.states
    sample = returns.reshape(50, n_rollouts)
    error = sample.mean(axis=1) - exact_values(lossy, policy, starts)
    assert abs(error.mean()) < 10.0  # of values around 850; that of the rollouts is about 2
    assert np.sqrt(np.mean(error**2)) < 25.0


# --- kept results ---------------------------------------------------------------------------------------------------


def test_results_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TLSTD_CACHE", str(tmp_path))
    domain = small()
    states = domain.start(20, np.random.default_rng(0))

    def everything() -> tuple[StoragePolicy, FloatArray, energy_programme.AliasingFloor]:
        policy = optimal_policy(domain)
        return policy, exact_values(domain, policy, states), aliasing_floor(domain, policy)

    first = everything()
    assert len(list(tmp_path.iterdir())) == 3
    monkeypatch.setattr(energy_programme, "_Grid", None)  # from here on nothing can be computed
    again = everything()
    assert_array_equal(first[0].table, again[0].table)
    assert_array_equal(first[1], again[1])
    assert first[2][:3] == again[2][:3]
    assert_array_equal(first[2].predictor, again[2].predictor)
    with pytest.raises(TypeError):
        exact_values(domain, first[0], states, gamma=0.7)


def test_results_do_not_depend_on_the_run() -> None:
    domain = small()
    first, again = (optimal_policy(domain, cache=False) for _ in range(2))
    assert_array_equal(first.table, again.table)
    states = domain.start(50, np.random.default_rng(0))
    assert_array_equal(
        exact_values(domain, first, states, cache=False), exact_values(domain, again, states, cache=False)
    )


def test_misuse() -> None:
    domain = small()
    policy = never_store(domain)
    with pytest.raises(InvalidParameterError, match="the task never ends"):
        exact_values(domain, policy, domain.start(1, np.random.default_rng(0)), gamma=1.0, cache=False)
    with pytest.raises(InvalidInputError, match=r"1\.5"):
        exact_values(domain, policy, [[1.0, 1.5, 2.0, 1.0, 0.0]], cache=False)
    with pytest.raises(InvalidParameterError, match="pass one of this domain"):
        exact_values(small(capacity=2), policy, [[1.0, 1.0, 2.0, 1.0, 0.0]], cache=False)
    with pytest.raises(InvalidParameterError, match="pass one of this domain"):
        stationary(small(charge_efficiency=0.5), policy)
    with pytest.raises(InvalidParameterError, match="tolerance"):
        optimal_policy(domain, tolerance=0.0, cache=False)
