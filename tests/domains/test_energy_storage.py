from __future__ import annotations

import math
import time

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linprog

from tlstd.core.arrays import FloatArray
from tlstd.domains.energy_storage import EnergyStorage, StoragePolicy, contribution
from tlstd.domains.policies import Deterministic, EpsilonGreedy
from tlstd.errors import InvalidInputError, InvalidParameterError

SMALL = EnergyStorage(
    capacity=3,
    max_flow=2,
    renewable=(0, 2),
    price=(1, 4),
    demand=(0, 2),
    period=4,
    price_walk=(1.0, 1),
    jump_probability=0.1,
    jump=(2.0, 3),
    demand_wave=(1.0, 1.0),
    demand_noise=(1.0, 1),
)


def best_allocation(E: float, P: float, D: float, charge: float, discharge: float, efficiency: float) -> float:
    """The largest revenue over the six flows, by a solver that knows nothing of the formula."""
    wd, ws, gd, gs, sd, sg = np.eye(6)
    profit = P * (efficiency * sg - gs - gd)
    result = linprog(
        -profit,
        A_ub=np.array([wd + ws]),
        b_ub=[E],
        A_eq=np.array([wd + gd + efficiency * sd, ws + gs, sd + sg]),
        b_eq=[D, charge, discharge],
        bounds=(0.0, None),
        method="highs-ds",
    )
    assert result.status == 0, result.message
    return float(P * D - result.fun)


def random_table(domain: EnergyStorage, seed: int) -> StoragePolicy:
    flow = domain.max_flow
    return StoragePolicy(domain, np.random.default_rng(seed).integers(-flow, flow + 1, domain.table_shape))


def by_hand(domain: EnergyStorage, state: FloatArray, action: float, noise: FloatArray) -> tuple[list[float], float]:
    """One step in plain Python, from the description."""
    storage, renewable, price, demand, phase = (float(x) for x in state)
    charge = min(max(action, 0.0), (domain.capacity - storage) / domain.charge_efficiency)
    discharge = min(max(-action, 0.0), storage)
    reward = price * (domain.discharge_efficiency * discharge - charge + min(renewable, demand + charge))

    def draw(probabilities: FloatArray, u: float) -> int:
        total = 0.0
        for k, p in enumerate(probabilities):
            total += p
            if u < total:
                return k - len(probabilities) // 2
        raise AssertionError

    def cut(x: float, i: int) -> float:
        return min(max(x, float(domain.low[i])), float(domain.high[i]))

    phase = (phase + 1) % domain.period
    mean, amplitude = domain.parameters["demand_wave"]
    wave = round(mean - amplitude * math.sin(2 * math.pi * phase / domain.period))
    return [
        cut(storage + domain.charge_efficiency * charge - discharge, 0),
        cut(renewable + draw(domain.renewable_noise, noise[0]), 1),
        cut(price + draw(domain.price_noise, noise[1]), 2),
        cut(wave + draw(domain.demand_noise, noise[2]), 3),
        phase,
    ], reward


# --- the contribution -----------------------------------------------------------------------------------------------


def test_contribution_is_the_best_allocation() -> None:
    rng = np.random.default_rng(0)
    for k in range(150):
        eta_c, eta_d = (1.0, 1.0) if k % 10 == 0 else rng.uniform(0.5, 1.0, 2)
        domain = EnergyStorage(charge_efficiency=eta_c, discharge_efficiency=eta_d)
        state = domain.start(1, rng)
        if k % 2:  # off the grid too
            state[0, :4] = rng.uniform(domain.low, domain.high)
        action = rng.uniform(-5.0, 5.0, 1)
        charge, discharge = domain.flows(state[:, 0], action)
        E, P, D = state[0, 1:4]
        best = best_allocation(E, P, D, charge[0], discharge[0], eta_d)
        formula = contribution(E, P, D, charge[0], discharge[0], discharge_efficiency=eta_d)
        assert abs(formula - best) <= 1e-8
        assert domain.step(state, action, rng).rewards[0] == formula


def test_contribution_with_both_charge_and_discharge() -> None:
    """The formula holds for both at once as well, though the domain's actions never do both."""
    rng = np.random.default_rng(1)
    for _ in range(100):
        E, P, D, c, q = rng.uniform([0, 0, 0, 0, 0], [9, 70, 9, 9, 9])
        efficiency = rng.uniform(0.5, 1.0)
        best = best_allocation(E, P, D, c, q, efficiency)
        assert abs(contribution(E, P, D, c, q, discharge_efficiency=efficiency) - best) <= 1e-8


@pytest.mark.parametrize(
    ("E", "P", "D", "charge", "discharge", "reward"),
    [
        (5, 40, 3, 0, 0, 120),  # the demand pays, two units of wind are lost
        (5, 40, 3, 2, 0, 120),  # these two are stored for nothing
        (5, 40, 3, 3, 0, 80),  # one is bought
        (2, 40, 3, 0, 0, 80),  # one is bought for the demand and paid for by it
        (2, 40, 3, 0, 5, 280),  # five are sold
        (0, 40, 0, 5, 0, -200),
    ],
)
def test_contribution_by_hand(E: int, P: int, D: int, charge: int, discharge: int, reward: int) -> None:
    assert contribution(E, P, D, charge, discharge) == reward


# --- one step -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("domain", [EnergyStorage(), SMALL, EnergyStorage(charge_efficiency=0.9, period=12)])
def test_step_is_as_described(domain: EnergyStorage) -> None:
    rng = np.random.default_rng(2)
    states = domain.start(500, rng)
    actions, noise = rng.uniform(*domain.action_bounds, 500), rng.random((500, 3))
    step = domain._step(states, actions, noise)
    for n in range(500):
        expected, reward = by_hand(domain, states[n], actions[n], noise[n])
        assert_array_equal(step.states[n], expected)
        assert step.rewards[n] == reward
    assert not step.terminated.any()


def test_step_does_not_depend_on_company_nor_change_what_it_gets() -> None:
    domain, rng = EnergyStorage(), np.random.default_rng(3)
    states, actions, noise = domain.start(50, rng), rng.uniform(-5, 5, 50), rng.random((50, 3))
    for array in (states, actions, noise):
        array.flags.writeable = False
    together = domain._step(states, actions, noise)
    for n in range(50):
        alone = domain._step(states[n : n + 1], actions[n : n + 1], noise[n : n + 1])
        assert_array_equal(alone.states[0], together.states[n])
        assert alone.rewards[0] == together.rewards[n]


def test_noises_have_the_stated_distributions() -> None:
    domain, n = EnergyStorage(), 400_000
    rng = np.random.default_rng(4)
    start = np.tile([15.0, 4.0, 50.0, 3.0, 0.0], (n, 1))
    step = domain.step(start, np.zeros(n), rng)
    moves = step.states[:, 1] - 4.0
    assert_allclose([np.mean(moves == k) for k in (-1, 0, 1)], 1 / 3, atol=0.003)

    def normal(sd: float, cut: int) -> FloatArray:
        weights = np.array([math.exp(-(k**2) / (2 * sd**2)) for k in range(-cut, cut + 1)])
        shares: FloatArray = weights / weights.sum()
        return shares

    walk, leap = normal(2.5, 8), normal(50.0, 40)
    expected = np.zeros(97)
    for i, p in enumerate(walk):
        expected[i + 40] += (1 - 0.031) * p
        for j, q in enumerate(leap):
            expected[i + j] += 0.031 * p * q
    clipped = np.zeros(41)
    for move, p in enumerate(expected):
        clipped[min(max(move - 48, -20), 20) + 20] += p
    assert_allclose(np.bincount((step.states[:, 2] - 30).astype(int), minlength=41) / n, clipped, atol=0.003)

    demand = np.bincount(step.states[:, 3].astype(int), minlength=8) / n  # 3 − 4 sin(2π/100) = 2.75 is 3
    assert_allclose(demand[1:6], normal(1.0, 2), atol=0.003)


@pytest.mark.parametrize("u", [0.0, np.nextafter(1.0, 0.0)])
def test_extreme_uniform_numbers(u: float) -> None:
    """Even where probabilities underflow, the extreme numbers give moves that can happen."""
    domain = EnergyStorage(price_walk=(0.01, 30), jump_probability=0.0, demand_noise=(0.01, 7))
    step = domain._step(np.array([[15.0, 4.0, 50.0, 3.0, 0.0]]), np.zeros(1), np.full((1, 3), u))
    assert_array_equal(step.states, [[15.0, 3.0 if u == 0.0 else 5.0, 50.0, 3.0, 1.0]])
    start = domain._start(np.full((1, 5), u))
    assert_array_equal(domain.check_states(start), start)


def test_storage_never_leaves_its_bounds() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        eta_c, eta_d = rng.uniform(0.5, 1.0, 2)
        domain = EnergyStorage(charge_efficiency=eta_c, discharge_efficiency=eta_d)
        states = domain.start(500, rng)
        for _ in range(50):
            actions = np.where(rng.random(500) < 0.3, rng.choice([-5.0, 5.0], 500), rng.uniform(-5.0, 5.0, 500))
            before = states
            step = domain.step(states, actions, rng)
            states = step.states
            assert (states[:, :4] >= domain.low).all()
            assert (states[:, :4] <= domain.high).all()
            assert (np.abs(step.rewards) <= domain.reward_bound).all()
            charge, discharge = domain.flows(before[:, 0], actions)
            assert_allclose(states[:, 0], before[:, 0] + eta_c * charge - discharge, atol=1e-12)
    assert (states[:, 0] != np.floor(states[:, 0])).any()


def test_storage_stays_whole_with_full_efficiency() -> None:
    domain, rng = EnergyStorage(), np.random.default_rng(6)
    path, _, _ = domain.simulate(
        domain.start(1, rng)[0], random_table(domain, 0), rng.random((2000, 3)), rng.random(2000)
    )
    assert_array_equal(path, np.floor(path))


# --- starts ---------------------------------------------------------------------------------------------------------


def test_starts() -> None:
    domain = EnergyStorage()
    states = domain.start(100_000, np.random.default_rng(7))
    assert_array_equal(domain.check_states(states), states)
    assert_array_equal(states, np.floor(states))
    for column, n in ((0, 31), (1, 7), (2, 41), (4, 100)):
        counts = np.unique(states[:, column], return_counts=True)[1]
        assert counts.size == n
        assert_allclose(counts / 100_000, 1 / n, atol=0.005)
    reached = np.abs(states[:, 3] - np.clip(domain.demand_means, 0, 7)[states[:, 4].astype(int)])
    assert reached.max() == 2.0
    assert_array_equal(domain.start(10, np.random.default_rng(7)), states[:10])


# --- the domain's own policy ----------------------------------------------------------------------------------------


def test_own_policy_by_hand() -> None:
    """Prices from 30 to 70 (middle 50), capacity 30 (half 15), flows of at most 5."""
    domain = EnergyStorage()
    cases = {
        (9.0, 5.0, 49.0, 3.0): 2.0,  # a low price: what the demand leaves of the wind is stored
        (9.0, 3.0, 49.0, 5.0): 0.0,  # nothing is left, and nothing is bought to store
        (15.0, 7.0, 30.0, 0.0): 5.0,  # 7 are left: the largest charge is 5
        (15.5, 7.0, 30.0, 0.0): 0.0,  # halfway between 5 and -5
        (16.0, 7.0, 30.0, 0.0): -5.0,  # more than half full: sold at any price
        (9.0, 5.0, 50.0, 3.0): -5.0,  # a high price
        (2.0, 5.0, 70.0, 3.0): -2.0,  # no more than there is
        (0.0, 5.0, 70.0, 3.0): 2.0,  # nothing to sell
    }
    states = np.array([[*state, phase] for state in cases for phase in (0.0, 57.0)])
    assert_array_equal(domain.policy().act(states, np.zeros(len(states))), np.repeat(list(cases.values()), 2))


def test_own_policy_earns_more_than_selling_at_once() -> None:
    """Same starts, same noise, against selling whatever there is, and storing wind only when there is nothing."""
    domain, rng, runs, n_steps = EnergyStorage(), np.random.default_rng(11), 100, 1000

    def at_once(states: FloatArray) -> FloatArray:
        return np.where(states[:, 0] > 0.0, -5.0, np.maximum(states[:, 1] - states[:, 3], 0.0))

    states, others = [np.array(domain.start(runs, np.random.default_rng(12))) for _ in range(2)]
    policy, gain = domain.policy(), np.zeros(runs)
    for _ in range(n_steps):
        noise = rng.random((runs, domain.noise_size))
        ours = domain.step_with_noise(states, policy.act(states, np.zeros(runs)), noise)
        theirs = domain.step_with_noise(others, np.minimum(at_once(others), 5.0), noise)
        gain += (ours.rewards - theirs.rewards) / n_steps
        states, others = ours.states, theirs.states
    assert gain.mean() - 2.6 * gain.std(ddof=1) / np.sqrt(runs) > 3.0


# --- paths ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("domain", [EnergyStorage(), EnergyStorage(charge_efficiency=0.83, discharge_efficiency=0.9)])
def test_path_is_what_single_steps_give(domain: EnergyStorage) -> None:
    """One loop, or step() again and again with the same generator: the same bits."""
    n_steps, start = 3000, domain.start(1, np.random.default_rng(8))
    policy = random_table(domain, 1)
    noise = np.random.default_rng(9).random((n_steps, 3))
    states, actions, rewards = domain.simulate(start[0], policy, noise, np.zeros(n_steps))
    rng, here = np.random.default_rng(9), start
    for t in range(n_steps):
        assert_array_equal(states[t], here[0])
        action = policy.act(here, np.zeros(1))
        step = domain.step(here, action, rng)
        assert (actions[t], rewards[t]) == (action[0], step.rewards[0])
        here = step.states
    assert_array_equal(states[-1], here[0])


def test_path_of_any_policy() -> None:
    domain, rng = EnergyStorage(charge_efficiency=0.7), np.random.default_rng(10)
    table = random_table(domain, 2)
    start, noise, uniforms = domain.start(1, rng)[0], rng.random((1000, 3)), rng.random(1000)
    fast = domain.simulate(start, table, noise, uniforms)
    slow = domain.simulate(
        start, Deterministic(lambda states: table.act(states, np.zeros(len(states)))), noise, uniforms
    )
    for one, other in zip(fast, slow, strict=True):
        assert_array_equal(one, other)
    elsewhere = random_table(EnergyStorage(charge_efficiency=0.6), 2)  # made for another domain: followed as it says
    states, actions, _ = domain.simulate(start, elsewhere, noise, uniforms)
    assert_array_equal(actions, elsewhere.act(states[:-1], uniforms))
    exploring = EpsilonGreedy(table, [-5.0, 0.0, 5.0], epsilon=0.5)
    states, actions, _ = domain.simulate(start, exploring, noise, uniforms)
    assert_array_equal(actions, exploring.act(states[:-1], uniforms))
    with pytest.raises(InvalidInputError, match="7"):
        domain.simulate(start, Deterministic(lambda states: np.full(len(states), 7.0)), noise, uniforms)


def test_a_longer_path_begins_with_the_shorter_one() -> None:
    domain, policy = EnergyStorage(), random_table(EnergyStorage(), 3)
    start = domain.start(1, np.random.default_rng(11))[0]
    long = domain.simulate(start, policy, np.random.default_rng(12).random((500, 3)), np.zeros(500))
    short = domain.simulate(start, policy, np.random.default_rng(12).random((200, 3)), np.zeros(200))
    assert_array_equal(long[0][:201], short[0])
    assert_array_equal(long[2][:200], short[2])


def test_long_paths_are_fast() -> None:
    domain, policy, rng = EnergyStorage(), random_table(EnergyStorage(), 4), np.random.default_rng(13)
    noise, start = rng.random((100_000, 3)), domain.start(1, rng)[0]
    domain.simulate(start, policy, noise[:10], np.zeros(10))  # compiles
    began = time.process_time()
    domain.simulate(start, policy, noise, np.zeros(100_000))
    assert time.process_time() - began < 0.5  # 0.03 s on the machine it was written on


# --- policies by table ----------------------------------------------------------------------------------------------


def test_table_is_interpolated_in_storage_only() -> None:
    domain = SMALL
    table = np.zeros(domain.table_shape, dtype=np.int64)
    table[2, 1, 1, 3, 0], table[2, 2, 1, 3, 0] = 2, -1
    policy = StoragePolicy(domain, table)
    level = np.array([1.0, 1.25, 1.5, 2.0, 1.5, 1.5, 1.5])
    states = np.column_stack([level, np.full(7, 1.0), np.full(7, 4.0), np.zeros(7), np.full(7, 2.0)])
    states[4, 4] = 1.0  # another phase
    states[5, 1:4] = 1.4, 3.6, 0.4  # rounded to the grid
    states[6, 3] = 1.0  # another demand
    assert_array_equal(policy.act(states, np.zeros(7)), [2.0, 1.25, 0.5, -1.0, 0.0, 0.5, 0.0])
    assert_array_equal(
        policy.probability(states, np.array([2.0, 1.0, 0.5, -1.0, 0.0, 0.5, 0.0])), [1, 0, 1, 1, 1, 1, 1]
    )
    assert not policy.is_random


def test_table_is_cut_to_what_storage_permits() -> None:
    domain = EnergyStorage(charge_efficiency=0.5)
    fill, sell = (StoragePolicy(domain, np.full(domain.table_shape, x)) for x in (5, -5))
    states = np.array([[level, 4.0, 50.0, 3.0, 0.0] for level in (0.0, 2.5, 28.0, 29.5, 30.0)])
    assert_array_equal(fill.act(states, np.zeros(5)), [5.0, 5.0, 4.0, 1.0, 0.0])
    assert_array_equal(sell.act(states, np.zeros(5)), [0.0, -2.5, -5.0, -5.0, -5.0])


def test_table_is_kept_apart() -> None:
    table = np.zeros(SMALL.table_shape, dtype=np.int8)
    policy = StoragePolicy(SMALL, table)
    table[:] = 1
    assert not policy.table.any()
    with pytest.raises(ValueError, match="read-only"):
        policy.table[:] = 1


# --- pictures -------------------------------------------------------------------------------------------------------


def test_picture() -> None:
    domain = EnergyStorage()
    empty, full = (
        domain.draw(np.array([0.0, 4.0, 50.0, 3.0, 10.0])),
        domain.draw(np.array([30.0, 4.0, 50.0, 3.0, 10.0])),
    )
    assert empty.shape == full.shape == (320, 640, 3)
    assert empty.dtype == np.uint8

    def green(picture: np.ndarray) -> int:
        return int((picture == np.array([0x2A, 0x9D, 0x5C])).all(axis=2).sum())

    assert green(empty) == 0
    assert green(full) > 5_000
    assert_array_equal(full, domain.draw(np.array([30.0, 4.0, 50.0, 3.0, 10.0])))


# --- misuse ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"capacity": 0}, "capacity is 0"),
        ({"capacity": 2.5}, "capacity is 2.5"),
        ({"max_flow": 0}, "max_flow is 0"),
        ({"max_flow": 200}, "max_flow is 200: it must be an integer from 1 to 127"),
        ({"charge_efficiency": 0.0}, "charge_efficiency is 0.0"),
        ({"discharge_efficiency": 1.1}, "discharge_efficiency is 1.1"),
        ({"discharge_efficiency": math.nan}, "discharge_efficiency is nan"),
        ({"price": (-5, 70)}, "smallest price is -5"),
        ({"price": (70, 30)}, "above the smallest"),
        ({"demand": 7}, "pass \\(smallest, largest\\)"),
        ({"period": 0}, "period is 0"),
        ({"renewable_step": -1}, "renewable_step"),
        ({"price_walk": (0.0, 8)}, r"the standard deviation of price_walk is 0\.0"),
        ({"price_walk": 3.0}, "pass \\(sd, cut\\)"),
        ({"jump": (1.0, 2.5)}, "cut of jump"),
        ({"jump_probability": 1.5}, "jump_probability is 1.5"),
        ({"demand_wave": (math.inf, 1.0)}, "demand_wave"),
    ],
)
def test_bad_parameters(parameters: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidParameterError, match=message):
        EnergyStorage(**parameters)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ([-1.0, 4.0, 50.0, 3.0, 0.0], "storage of -1"),
        ([5.0, 4.0, 71.0, 3.0, 0.0], "price of 71"),
        ([5.0, 4.0, 50.0, 3.0, 100.0], "phase of 100"),
        ([5.0, 4.0, 50.0, 3.0, 0.5], "phase of 0.5"),
        ([5.0, 4.0, 50.0, math.nan, 0.0], "nan"),
        ([5.0, 4.0, 50.0, 3.0], "phase"),
    ],
)
def test_bad_states(state: list[float], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        EnergyStorage().step([state], [0.0], np.random.default_rng(0))


def test_bad_calls() -> None:
    domain = EnergyStorage()
    start = np.array([5.0, 4.0, 50.0, 3.0, 0.0])
    with pytest.raises(InvalidInputError, match="rng"):
        domain.step([start], [0.0])
    with pytest.raises(InvalidInputError, match=r"5\.5"):
        domain.step([start], [5.5], np.random.default_rng(0))
    with pytest.raises(InvalidInputError, match=r"\(T, 3\)"):
        domain.simulate(start, random_table(domain, 0), np.zeros((4, 2)), np.zeros(4))
    with pytest.raises(InvalidInputError, match="uniforms"):
        domain.simulate(start, random_table(domain, 0), np.zeros((4, 3)), np.zeros(5))
    with pytest.raises(InvalidParameterError, match="shape"):
        StoragePolicy(domain, np.zeros((3, 3), dtype=np.int8))
    with pytest.raises(InvalidParameterError, match="type float64"):
        StoragePolicy(domain, np.zeros(domain.table_shape))
    with pytest.raises(InvalidParameterError, match="contains 6"):
        StoragePolicy(domain, np.full(domain.table_shape, 6))


def test_what_it_says_of_itself() -> None:
    domain = EnergyStorage()
    assert repr(domain) == "EnergyStorage()"
    assert repr(EnergyStorage(capacity=10, price=(1, 5))) == "EnergyStorage(capacity=10, price=(1, 5))"
    assert domain.table_shape == (100, 31, 7, 41, 8)
    assert domain.state_size == 5
    assert_array_equal(domain.low, [0, 1, 30, 0])
    assert_array_equal(domain.high, [30, 7, 70, 7])
    assert domain.reward_bound == 70 * 12
    assert_array_equal(domain.observe(np.arange(10.0).reshape(2, 5)), [[0, 1, 2, 3], [5, 6, 7, 8]])
