"""Values from whole episodes: one formula against loops, its special cases, its influence, and known truths."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tests.evaluation.logs import random_decisions, simulated
from tlstd import Log, TileCoder
from tlstd.core.arrays import FloatArray, IntArray
from tlstd.evaluation.episode_values import (
    EpisodeValue,
    degrees,
    discounts_until,
    effective_number,
    episode_value,
    running_weights,
    standard_error,
    visited_value,
)
from tlstd.evaluation.fits import fit_actions
from tlstd.evaluation.intervals import interval_of
from tlstd.evaluation.policies import Target
from tlstd.features.one_hot import OneHot

SIZES = [(0, 2), (1, 3), (2, 8), (3, 30)]


def episodes(seed: int, n: int, gamma: float = 0.9) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
    """Ends, rewards, discounts and ratios of random episodes, some of which were cut off."""
    rng = np.random.default_rng(seed)
    ends = np.cumsum(rng.integers(1, 9, n))
    discounts = np.full(int(ends[-1]), gamma)
    discounts[ends[rng.random(n) < 0.6] - 1] = 0.0
    return ends, rng.standard_normal(discounts.size), discounts, rng.choice([0.0, 0.5, 1.0, 1.7], discounts.size)


def models(seed: int, n: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """v(s_t), v(s_{t+1}) and q(s_t, a_t) of no model in particular."""
    v, v_next, q = np.random.default_rng(seed + 50).standard_normal((3, n))
    return v, v_next, q


def by_loops(
    ends: IntArray,
    rewards: FloatArray,
    discounts: FloatArray,
    v: FloatArray,
    v_next: FloatArray,
    q: FloatArray,
    rhos: FloatArray,
    counts: FloatArray | None = None,
) -> float:
    """V = mean v(s_0) + Σ_t (1/N_t) Σ_i γᵗ W_t (r + γ v' - q), as the module writes it; episode i counts counts_i."""
    begins = np.append(0, ends[:-1])
    c = np.ones(ends.size) if counts is None else counts
    value = sum(c[i] * v[begins[i]] for i in range(ends.size)) / c.sum()
    for t in range(int((ends - begins).max())):
        above = N = 0.0
        for i in range(ends.size):
            weight, discount, running = 1.0, 1.0, True
            for s in range(t + 1):
                at = begins[i] + s
                running = at < ends[i]
                if running:
                    weight *= rhos[at]
                    discount *= discounts[at - 1] if s else 1.0
            N += c[i] * weight  # of an episode that has ended, its last one
            if running:
                at = begins[i] + t
                after = discounts[at] * v_next[at] if discounts[at] > 0.0 else 0.0
                above += c[i] * discount * weight * (rewards[at] + after - q[at])
        value += above / N if N > 0.0 else 0.0
    return float(value)


def returns_by_hand(ends: IntArray, rewards: FloatArray, discounts: FloatArray, tails: FloatArray) -> FloatArray:
    """The return of each episode up to its end, plus γᵀ v(s_T) where it was cut off."""
    found, start = [], 0
    for end, tail in zip(ends.tolist(), tails.tolist(), strict=True):
        total, discount = 0.0, 1.0
        for t in range(start, end):
            total += discount * rewards[t]
            discount *= discounts[t]
        found.append(total + discount * tail)
        start = end
    return np.array(found)


# --- equalities -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seed", "n"), SIZES)
def test_the_logged_policy_has_its_returns_with_tails(seed: int, n: int) -> None:
    """Whatever v says of states on the way: it telescopes. Standard error and interval are those of the mean."""
    ends, rewards, discounts, _ = episodes(seed, n)
    rng = np.random.default_rng(seed + 1)
    values, tails = rng.standard_normal(rewards.size), rng.standard_normal(n)
    next_values = np.append(values[1:], 0.0)
    next_values[ends - 1] = tails
    found = episode_value(ends, rewards, discounts, values, next_values)
    each = returns_by_hand(ends, rewards, discounts, tails)
    assert found.value == pytest.approx(each.mean(), abs=1e-12)
    assert_allclose(found.contributions, (each - each.mean()) / n, atol=1e-12)
    assert found.standard_error == pytest.approx(each.std(ddof=1) / np.sqrt(n), abs=1e-12)
    assert (found.effective, found.shares) == (n, None)
    with_ones = episode_value(ends, rewards, discounts, values, next_values, values, np.ones(rewards.size))
    assert with_ones.value == pytest.approx(each.mean(), abs=1e-12)


@pytest.mark.parametrize(("seed", "n"), SIZES)
def test_returns_that_are_seen_to_their_end_are_their_mean(seed: int, n: int) -> None:
    ends, rewards, discounts, _ = episodes(seed, n)
    discounts[ends - 1] = 0.0
    v = np.random.default_rng(seed).standard_normal(rewards.size)
    found = episode_value(ends, rewards, discounts, v, np.append(v[1:], 0.0))
    assert found.value == pytest.approx(returns_by_hand(ends, rewards, discounts, np.zeros(n)).mean(), abs=1e-12)


@pytest.mark.parametrize(("seed", "n"), [(0, 1), *SIZES])
def test_without_values_it_is_weighted_importance_sampling(seed: int, n: int) -> None:
    """Per decision; an episode that has ended stays in the normaliser with its last weight."""
    ends, rewards, discounts, rhos = episodes(seed, n)
    nothing = np.zeros(rewards.size)
    found = episode_value(ends, rewards, discounts, nothing, nothing, nothing, rhos)
    assert found.value == pytest.approx(by_loops(ends, rewards, discounts, nothing, nothing, nothing, rhos), abs=1e-12)


@pytest.mark.parametrize(("seed", "n"), [(0, 1), *SIZES])
def test_the_whole_formula(seed: int, n: int) -> None:
    ends, rewards, discounts, rhos = episodes(seed, n)
    v, v_next, q = models(seed, rewards.size)
    found = episode_value(ends, rewards, discounts, v, v_next, q, rhos)
    assert found.value == pytest.approx(by_loops(ends, rewards, discounts, v, v_next, q, rhos), abs=1e-12)


def test_two_episodes_by_hand() -> None:
    """Weights 2 and 1 at time 0; at time 1 they are 1 and, of the episode that has ended, 1. Rewards 1, 2; 4; γ = ½."""
    rhos, nothing = np.array([2.0, 0.5, 1.0]), np.zeros(3)
    ends, rewards = np.array([2, 3]), np.array([1.0, 2.0, 4.0])
    found = episode_value(ends, rewards, np.array([0.5, 0.0, 0.0]), nothing, nothing, rhos=rhos)
    assert found.value == pytest.approx((2.0 * 1.0 + 1.0 * 4.0) / 3.0 + 0.5 * 1.0 * 2.0 / 2.0)
    assert found.effective == pytest.approx(2.0)
    assert found.shares is not None
    assert_allclose(found.shares, 0.5)


def test_after_a_termination_nothing_counts() -> None:
    """Whatever is said there, also what is not a number."""
    v_next = np.array([2.0, np.nan])
    found = episode_value(np.array([2]), np.array([1.0, 3.0]), np.array([0.5, 0.0]), np.array([1.0, 2.0]), v_next)
    assert found.value == 1.0 + 0.5 * 3.0


# --- influence --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seed", "n"), SIZES)
def test_contributions_are_derivatives_by_how_often_an_episode_counts(seed: int, n: int) -> None:
    """The normalisers' part included; each over one less the episode's share in the last weights, about their mean."""
    ends, rewards, discounts, rhos = episodes(seed, n)
    rhos = np.maximum(rhos, 0.1)
    v, v_next, q = models(seed, rewards.size)
    found = episode_value(ends, rewards, discounts, v, v_next, q, rhos)
    last = np.array([np.prod(rhos[a:b]) for a, b in zip(np.append(0, ends[:-1]), ends, strict=True)])
    assert found.shares is not None
    assert_allclose(found.shares, last / last.sum(), atol=1e-12)
    assert found.effective == pytest.approx(last.sum() ** 2 / (last**2).sum())
    derivatives = np.zeros(n)
    for i in range(n):
        step = 1e-5 * np.eye(n)[i]
        above, below = (
            by_loops(ends, rewards, discounts, v, v_next, q, rhos, np.ones(n) + sign * step) for sign in (1.0, -1.0)
        )
        derivatives[i] = (above - below) / 2e-5
    assert derivatives.sum() == pytest.approx(0.0, abs=1e-8)
    expected = derivatives / (1.0 - found.shares)
    assert_allclose(found.contributions, expected - expected.mean(), atol=1e-7)


def test_of_one_step_they_are_what_the_value_loses_without_the_episode() -> None:
    """A ratio of sums: value less that of the others."""
    rng = np.random.default_rng(0)
    n, rewards, rhos = 12, rng.standard_normal(12), rng.random(12)
    nothing = np.zeros(n)
    found = episode_value(np.arange(1, n + 1), rewards, nothing, nothing, nothing, rhos=rhos)
    each = np.array([found.value - np.average(np.delete(rewards, i), weights=np.delete(rhos, i)) for i in range(n)])
    assert_allclose(found.contributions, each - each.mean(), atol=1e-12)


def test_exact_values_leave_no_noise() -> None:
    """With q and v of the target policy every correction is 0 on average of the rewards, here exactly."""
    rhos, ends = np.array([2.0, 0.0, 0.5, 1.0]), np.array([2, 4])
    v, v_next = np.array([2.0, 1.0, 2.0, 1.0]), np.array([1.0, 0.0, 1.0, 0.0])
    found = episode_value(ends, np.array([1.5, 1.0, 1.5, 1.0]), np.array([0.5, 0.0, 0.5, 0.0]), v, v_next, v, rhos)
    assert found.value == 2.0
    assert_array_equal(found.contributions, 0.0)


def test_weights_that_are_all_zero() -> None:
    """Nothing that the target policy does was logged: no effective episode, and the value is that of v."""
    found = episode_value(np.array([1, 2]), np.ones(2), np.zeros(2), np.full(2, 3.0), np.zeros(2), rhos=np.zeros(2))
    assert (found.value, found.effective) == (3.0, 0.0)
    assert np.isfinite(interval_of(found).half_width)


@pytest.mark.parametrize("seed", range(3))
def test_visited_states_by_loops(seed: int) -> None:
    """A ratio of sums: value and derivative by how often a group counts."""
    rng = np.random.default_rng(seed)
    group = np.sort(rng.integers(0, 6, 40))
    returns = rng.standard_normal(40)

    def value(counts: FloatArray) -> float:
        above = sum(counts[g] * returns[i] for i, g in enumerate(group))
        return float(above / sum(counts[g] for g in group))

    found = visited_value(group, 6, returns)
    assert found.value == pytest.approx(value(np.ones(6)), abs=1e-12)
    for g in range(6):
        step = 1e-5 * np.eye(6)[g]
        derivative = (value(np.ones(6) + step) - value(np.ones(6) - step)) / 2e-5
        assert found.contributions[g] == pytest.approx(derivative, abs=1e-8)
    sizes = np.array([(group == g).sum() for g in range(6)])
    assert found.effective == pytest.approx(sizes.sum() ** 2 / (sizes**2).sum())


def test_running_products_by_loops() -> None:
    ends, _, discounts, rhos = episodes(5, 20)
    begins = np.append(0, ends[:-1])
    D, W = np.zeros(discounts.size), np.zeros(discounts.size)
    for a, b in zip(begins, ends, strict=True):
        for t in range(a, b):
            D[t], W[t] = np.prod(discounts[a:t]), np.prod(rhos[a : t + 1])
    assert_allclose(discounts_until(discounts, begins), D, atol=1e-14)
    assert_allclose(running_weights(rhos, begins), W, atol=1e-14)


def test_standard_errors_and_degrees() -> None:
    c = np.array([0.3, -0.1, -0.2])
    assert standard_error(c) == pytest.approx(np.sqrt(1.5 * (c**2).sum()))
    assert standard_error(1e-200 * c) == pytest.approx(1e-200 * standard_error(c))
    assert standard_error(1e200 * c) == pytest.approx(1e200 * standard_error(c))
    assert standard_error(np.zeros(1)) == np.inf
    assert degrees(np.zeros(5)) == 4.0
    assert degrees(np.array([4.0, 1.0])) == pytest.approx(1.0)  # 25/17 - 1 is less than 1
    assert degrees(np.array([3.0, 3.0, 1.0])) == pytest.approx(49.0 / 19.0 - 1.0)
    assert effective_number(1e200 * np.array([1.0, 1.0])) == 2.0
    assert effective_number(np.zeros(3)) == 0.0
    a = EpisodeValue(3.0, c, 3.0)
    both = a.minus(EpisodeValue(1.0, np.array([0.1, -0.1, 0.0]), 2.0))
    assert (both.value, both.effective, both.degrees) == (2.0, 2.0, 1.0)
    assert_allclose(both.contributions, [0.2, 0.0, -0.2], atol=1e-15)


# --- known truths -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("biased", [False, True])
def test_coverage_of_another_policy(biased: bool) -> None:
    """A random walk that went right half of the time, asked about 0.6: with q = v = 0, and with a v that is off."""
    n_states, right, rng = 5, 0.6, np.random.default_rng(0)
    odds = (1.0 - right) / right  # gambler's ruin: the walk starts in the middle, and the right end pays 1
    truth = (1.0 - odds**3) / (1.0 - odds**6)
    covered, n_logs = 0, 200
    for _ in range(n_logs):
        rewards, rhos, states, ends = [], [], [], []
        for _ in range(100):
            state = 3
            while 0 < state <= n_states:
                goes_right = rng.random() < 0.5
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
        covered += truth in interval_of(found)
    assert 0.92 <= covered / n_logs <= 0.985, covered / n_logs


@pytest.mark.parametrize("gamma", [0.0, 0.8])
def test_doubly_robust_is_unbiased_where_the_log_lacks_actions(gamma: float) -> None:
    """400 small logs in which many pairs of state and action are missing: the mean error is chance.

    v has to be over all actions of the policy. Over those alone that the log has it depends on what was done in the
    step itself, and is wrong on average where the step is weighted.
    """
    rng = np.random.default_rng(0)
    n, n_actions = 5, 4
    process = random_decisions(rng, n, n_actions, 2, 0.4)
    process = process._replace(rewards=process.rewards + 3.0)
    behaviour, policy = rng.dirichlet(np.full(n_actions, 2.0), n), rng.dirichlet(np.full(n_actions, 2.0), n)
    truth = float((policy * process.action_values(policy, gamma)).sum(axis=1).mean())
    target, errors, missing = Target(function=lambda s: policy[s]), [], 0
    for seed in range(400):
        log = simulated(process, behaviour, np.random.default_rng(seed), 40, 1_000, known=True)
        fit = fit_actions(log, OneHot([0], [n - 1]), gamma, target)
        missing += fit.silent
        q, v, v_next = fit.doubly(0.0)
        steps = fit.steps
        assert log.actions is not None
        rhos = (policy / behaviour)[log.observations, log.actions]
        found = episode_value(log.episodes[1:], steps.rewards, steps.discounts, v, v_next, q, rhos)
        errors.append(found.value - truth)
    assert missing > 300
    assert abs(np.mean(errors)) < 3.0 * np.std(errors) / np.sqrt(400)


def test_values_behind_doubly_robust_ones_are_over_all_actions() -> None:
    """With features that overlap: q, v and v of the next state by the weights of the other folds, action by action."""
    rng = np.random.default_rng(0)
    states = rng.random((400, 1))
    actions = np.where(states[:, 0] < 0.5, 0, rng.integers(0, 2, 400))  # action 1 is not logged below one half
    log = Log.from_arrays(states, states[:, 0] + actions, actions=actions, terminated=np.arange(400) % 4 == 3)
    coder, gamma, worth = TileCoder([0.0], [1.0], tiles=6, tilings=3), 0.8, -2.0
    policy = Target(function=lambda s: np.column_stack([0.3 + 0.2 * s[:, 0], 0.7 - 0.2 * s[:, 0]]))
    fit = fit_actions(log, coder, gamma, policy)
    assert fit.silent
    q, v, v_next = fit.doubly(worth)
    Phi = coder.encode_many(states).toarray()[:, fit.system.ids]
    d = Phi.shape[1]
    for t in range(0, 400, 7):
        column = fit.folds.tolist().index(fit.steps.fold[t])
        W = (fit.weights[0] + worth * fit.weights[1])[:, column].reshape(2, d)
        every = Phi @ W.T + fit.offsets
        chances = policy.probabilities(states, 2)
        assert q[t] == pytest.approx(every[t, actions[t]])
        assert v[t] == pytest.approx(chances[t] @ every[t])
        if not log.terminated[t]:
            assert v_next[t] == pytest.approx(chances[t + 1] @ every[t + 1])
