"""Values from whole episodes: the special cases of one formula, its influence, and its coverage with known truths."""

from __future__ import annotations

import numpy as np
import pytest

from tlstd import Transitions
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.evaluation.episode_values import episode_value
from tlstd.evaluation.importance import per_decision


def episodes(seed: int, n: int, gamma: float = 0.9) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
    """Ends, rewards, discounts and ratios of random episodes, some of which were cut off."""
    rng = np.random.default_rng(seed)
    ends = np.cumsum(rng.integers(1, 9, n))
    discounts = np.full(int(ends[-1]), gamma)
    discounts[ends[rng.random(n) < 0.6] - 1] = 0.0
    return ends, rng.standard_normal(discounts.size), discounts, rng.choice([0.0, 0.5, 1.0, 1.7], discounts.size)


def returns_by_hand(ends: IntArray, rewards: FloatArray, discounts: FloatArray, next_values: FloatArray) -> FloatArray:
    """The return of each episode up to its end, plus γᵀ v(s_T) where it was cut off."""
    found, start = [], 0
    for end in ends.tolist():
        total, discount = 0.0, 1.0
        for t in range(start, end):
            total += discount * rewards[t]
            discount *= discounts[t]
        found.append(total + discount * next_values[end - 1])
        start = end
    return np.array(found)


@pytest.mark.parametrize(("seed", "n"), [(0, 2), (1, 3), (2, 8), (3, 30)])
def test_the_logged_policy_has_its_returns_with_tails(seed: int, n: int) -> None:
    """Whatever v says of states on the way: it telescopes. Standard error and interval are those of the mean."""
    ends, rewards, discounts, _ = episodes(seed, n)
    rng = np.random.default_rng(seed + 1)
    values = rng.standard_normal(rewards.size)
    next_values = np.append(values[1:], 0.0)
    next_values[ends - 1] = rng.standard_normal(n)
    found = episode_value(ends, rewards, discounts, values, next_values)
    each = returns_by_hand(ends, rewards, discounts, next_values)
    assert found.value == pytest.approx(each.mean(), abs=1e-12)
    np.testing.assert_allclose(found.contributions, (each - each.mean()) / n, atol=1e-12)
    assert found.standard_error == pytest.approx(each.std(ddof=1) / np.sqrt(n), abs=1e-12)
    assert found.effective == pytest.approx(n)


@pytest.mark.parametrize(("seed", "n"), [(0, 1), (1, 2), (2, 8), (3, 30)])
def test_without_values_it_is_weighted_importance_sampling(seed: int, n: int) -> None:
    ends, rewards, discounts, rhos = episodes(seed, n)
    begins = np.append(0, ends[:-1])
    traces = np.append(0.0, np.where(np.isin(np.arange(1, rewards.size), begins), 0.0, 0.9))
    rows = np.arange(rewards.size)
    steps = Transitions.from_rows(
        np.ones((rewards.size + 1, 1)), rows, rewards, rows + 1, discounts=discounts, trace_discounts=traces, rhos=rhos
    )
    nothing = np.zeros(rewards.size)
    found = episode_value(ends, rewards, discounts, nothing, nothing, rhos=rhos)
    assert found.value == pytest.approx(per_decision(steps, begins, nothing)[1], abs=1e-12)


@pytest.mark.parametrize(("seed", "n"), [(0, 3), (1, 5), (2, 12)])
def test_contributions_are_the_derivative_by_how_often_an_episode_counts(seed: int, n: int) -> None:
    """The normaliser's part included: against a log in which every episode is there a thousand times, one once more."""
    ends, rewards, discounts, rhos = episodes(seed, n)
    rhos = np.maximum(rhos, 0.1)
    rng = np.random.default_rng(seed + 1)
    v, v_next, q = rng.standard_normal((3, rewards.size))
    found = episode_value(ends, rewards, discounts, v, v_next, q, rhos)
    assert found.contributions.sum() == pytest.approx(0.0, abs=1e-12)
    begins = np.append(0, ends[:-1])
    for i in range(min(n, 3)):
        chosen = np.append(np.repeat(np.arange(n), 1000), i)
        rows = np.concatenate([np.arange(begins[j], ends[j]) for j in chosen])
        lengths = (ends - begins)[chosen]
        more = episode_value(np.cumsum(lengths), *(a[rows] for a in (rewards, discounts, v, v_next, q, rhos)))
        assert (more.value - found.value) * 1000 * n == pytest.approx(found.contributions[i] * n, rel=2e-2, abs=2e-3)


def test_exact_values_leave_no_noise() -> None:
    """With q and v of the target policy every correction is 0 on average of the rewards, here exactly."""
    rhos, ends = np.array([2.0, 0.0, 0.5, 1.0]), np.array([2, 4])
    v, v_next = np.array([2.0, 1.0, 2.0, 1.0]), np.array([1.0, 0.0, 1.0, 0.0])
    found = episode_value(ends, np.array([1.5, 1.0, 1.5, 1.0]), np.array([0.5, 0.0, 0.5, 0.0]), v, v_next, v, rhos)
    assert found.value == 2.0
    np.testing.assert_array_equal(found.contributions, 0.0)


def test_weights_that_are_all_zero() -> None:
    """Nothing that the target policy does was logged: no effective episode, and the value is that of v."""
    found = episode_value(np.array([1, 2]), np.ones(2), np.zeros(2), np.full(2, 3.0), np.zeros(2), rhos=np.zeros(2))
    assert (found.value, found.effective) == (3.0, 0.0)
    assert np.isfinite(found.interval().half_width)


@pytest.mark.parametrize("biased", [False, True])
def test_coverage_of_another_policy(biased: bool) -> None:
    """A random walk that went right half of the time, asked about 0.6: with q = v = 0, and with a v that is off."""
    n_states, right, truth_rng = 5, 0.6, np.random.default_rng(0)
    odds = (1.0 - right) / right  # gambler's ruin: the walk starts in the middle, and the right end pays 1
    truth = (1.0 - odds**3) / (1.0 - odds**6)
    covered, n_logs = 0, 300
    for _ in range(n_logs):
        rewards, rhos, states, ends = [], [], [], []
        for _ in range(100):
            state = 3
            while 0 < state <= n_states:
                goes_right = truth_rng.random() < 0.5
                states.append(state)
                rhos.append((right if goes_right else 1.0 - right) / 0.5)
                state += 1 if goes_right else -1
                rewards.append(float(state > n_states))
            ends.append(len(rewards))
        last = np.array(ends) - 1
        discounts = np.ones(len(rewards))
        discounts[last] = 0.0
        v = np.array(states) / 10.0 * biased
        v_next = np.append(v[1:], 0.0)
        found = episode_value(np.array(ends), np.array(rewards), discounts, v, v_next, v, np.array(rhos))
        covered += truth in found.interval()
    low, high = (0.90, 0.98)
    assert low <= covered / n_logs <= high, covered / n_logs
