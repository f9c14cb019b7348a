"""Folds, held-out returns and scores against literal loops, enumeration and hand-made numbers."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tests.helpers import random_transitions
from tlstd.core.arrays import FloatArray
from tlstd.data import held_out
from tlstd.data.held_out import Folds, Reference, are_too_few, held_out_targets, make_folds, needs_reference


def episodes(lengths: Any, gamma: float = 0.9, terminated: bool = True) -> tuple[FloatArray, FloatArray]:
    """Discounts and trace discounts of episodes of these lengths."""
    discounts, traces = np.full(sum(lengths), gamma), np.full(sum(lengths), gamma)
    ends = np.cumsum(lengths)
    traces[ends - lengths] = 0.0
    if terminated:
        discounts[ends - 1] = 0.0
    return discounts, traces


def check(folds: Folds, traces: FloatArray, n_folds: int) -> None:
    """What holds for every division: groups are stretches, in one fold each, and episodes are not mixed."""
    n = traces.size
    assert_array_equal(np.cumsum(folds.cut) - 1, folds.group)
    assert folds.cut[traces == 0.0].all()
    assert folds.n_groups == folds.group[-1] + 1
    assert all(np.unique(folds.fold[folds.group == g]).size == 1 for g in range(folds.n_groups))
    assert folds.n_folds <= min(n_folds, n)
    assert 0 <= folds.fold.min() <= folds.fold.max() < n_folds


# --- folds ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lengths", "worst"),
    [
        ([10] * 50, 1.01),
        ([30] * 7, 2.0),  # 2, 2, 1, 1, 1
        ([1] * 1000, 1.01),
        ([1000] + [3] * 3000, 1.01),  # one long episode is no more than a fold
        ([3] * 3000 + [1000], 1.01),  # wherever it is
        ([9000] + [3] * 3000, 1.15),  # longer than a fold: it is cut
        ([4000, 5000, 3000], 1.35),
        ([100_000], 1.02),
        ([7], 2.0),
        ([1], 1.0),
        ([1, 1, 1], 1.0),
        (np.random.default_rng(0).geometric(0.02, 300), 1.02),
        ((200 * np.random.default_rng(1).pareto(1.5, 200)).astype(int) + 1, 1.2),
    ],
)
def test_folds_are_balanced_whatever_the_lengths(lengths: Any, worst: float) -> None:
    discounts, traces = episodes(np.array(lengths))
    folds = make_folds(discounts, traces, 5)
    check(folds, traces, 5)
    sizes = np.bincount(folds.fold)
    if discounts.size >= 5:
        assert folds.n_folds == 5
        assert sizes.max() <= worst * sizes.min() + 1
    again = make_folds(discounts, traces, 5)
    assert_array_equal(folds.fold, again.fold)


def test_whole_episodes_are_whole() -> None:
    discounts, traces = episodes(np.array([50, 20, 70, 10, 40, 30, 60, 60, 20, 40]))
    folds = make_folds(discounts, traces, 5)
    assert_array_equal(folds.cut, traces == 0.0)
    assert folds.n_blocks == 0
    assert str(folds) == "10 episodes in 5 folds"


def test_a_continuing_stream_is_dealt_in_blocks_as_long_as_returns() -> None:
    for gamma, blocks in ((0.5, 50), (0.8, 50), (0.97, 15), (0.99, 10), (1.0, 10)):
        never = np.full(10_000, gamma)
        folds = make_folds(never, np.append(0.0, never[1:]), 5)
        check(folds, np.append(0.0, never[1:]), 5)
        assert (folds.n_groups, folds.n_blocks) == (blocks, blocks)
        turns = np.sort(folds.fold[folds.cut].reshape(-1, 5), axis=1)
        assert (turns == np.arange(5)).all()  # interleaved
        lengths = np.bincount(folds.group)
        assert lengths.max() - lengths.min() <= 1


def test_only_what_is_longer_than_a_fold_is_cut() -> None:
    discounts, traces = episodes(np.array([1000, 90, 90, 90, 90]))
    folds = make_folds(discounts, traces, 5)
    assert folds.n_groups == folds.n_blocks + 4
    assert_array_equal(folds.cut[1000:], traces[1000:] == 0.0)
    assert np.bincount(folds.fold).max() < 1.4 * np.bincount(folds.fold).min()
    assert str(folds) == f"4 episodes and {folds.n_blocks} blocks of a stream in 5 folds"


def test_weights_are_balanced_instead_of_samples() -> None:
    """With β most of the weight is at the end; every fold needs its share of that."""
    n, beta = 20_000, 0.005
    weights = (1.0 - beta) ** np.arange(n - 1, -1, -1.0)
    for lengths in ([n], [20] * 1000):
        discounts, traces = episodes(np.array(lengths))
        folds = make_folds(discounts, traces, 5, weights)
        check(folds, traces, 5)
        shares = np.bincount(folds.fold, weights=weights)
        assert shares.max() < 1.25 * shares.min()


def test_nothing() -> None:
    folds = make_folds(np.zeros(0), np.zeros(0), 5)
    targets = held_out_targets(np.zeros((0, 1)), np.zeros(0), np.zeros(0), folds)
    assert targets.why is not None


# --- targets --------------------------------------------------------------------------------------------------------


def by_forward_loops(
    rewards: FloatArray, discounts: FloatArray, rhos: FloatArray, folds: Folds, reference: Reference | None
) -> tuple[FloatArray, FloatArray]:
    """Each return on its own, summed forwards from its state to the end of its group; and its tail."""
    n, m = rewards.shape
    returns, tails = np.zeros((n, m)), np.zeros(n)
    for t in range(n):
        weight, tail = 1.0, 1.0
        k = t
        while True:
            returns[t] += weight * rhos[k] * rewards[k]
            if reference is not None:
                returns[t] += weight * (1.0 - rhos[k]) * reference.values[k]
            weight *= rhos[k] * discounts[k]
            tail *= discounts[k]
            if k + 1 == n or folds.group[k + 1] != folds.group[k]:
                break
            k += 1
        if reference is not None:
            returns[t] += weight * reference.next_values[k]
        tails[t] = tail
    return returns, tails


@pytest.mark.parametrize("off_policy", [False, True])
@pytest.mark.parametrize("end", [0.0, 0.05])
def test_targets_against_forward_loops(off_policy: bool, end: float) -> None:
    rng = np.random.default_rng(2)
    steps = random_transitions(
        rng, n_features=3, n_steps=400, n_targets=2, off_policy=off_policy, terminate=end, truncate=end, gamma=0.6
    )
    folds = make_folds(steps.discounts, steps.trace_discounts, 3)
    reference = Reference(rng.standard_normal((400, 2)), rng.standard_normal((400, 2)))
    columns = (steps.rewards, steps.discounts, steps.rhos, folds)
    expected, tails = by_forward_loops(*columns, reference)
    found = held_out_targets(*columns, reference=reference)
    assert_allclose(found.values, expected, atol=1e-12)
    assert found.kind == "bootstrapped"
    assert (found.weights == 1.0).all()
    if off_policy:
        assert needs_reference(steps.discounts, steps.rhos, folds)
        return
    plain = held_out_targets(*columns)
    assert_allclose(plain.values, by_forward_loops(*columns, None)[0], atol=1e-12)
    assert_array_equal(plain.weights, (tails <= 0.02).astype(float))
    assert plain.kind == "returns"
    close = (tails <= 0.02)[:, None]  # what is left out is small where it counts
    assert np.abs((plain.values - found.values) * close).max() <= 0.02 * np.abs(reference.next_values).max()


@pytest.mark.parametrize("broken", ["ratios", "terminations", "borders", "reference"])
def test_streams_can_tell_what_is_broken(broken: str) -> None:
    """Each part of the rule changes the numbers of the test above by far more than rounding."""
    rng = np.random.default_rng(2)
    steps = random_transitions(rng, n_features=3, n_steps=400, off_policy=True, gamma=0.6)
    folds = make_folds(steps.discounts, steps.trace_discounts, 3)
    reference = Reference(rng.standard_normal((400, 1)), rng.standard_normal((400, 1)))
    rewards, discounts, rhos = steps.rewards[:, None], steps.discounts, steps.rhos
    sound = held_out_targets(rewards, discounts, rhos, folds, reference=reference).values
    if broken == "ratios":
        rhos = np.ones(400)
    elif broken == "terminations":
        discounts = np.full(400, 0.6)
    elif broken == "borders":
        folds = folds._replace(cut=np.zeros(400, dtype=np.bool_))
    else:
        reference = Reference(np.zeros((400, 1)), reference.next_values)
    wrong = held_out_targets(rewards, discounts, rhos, folds, reference=reference).values
    assert np.sqrt(np.mean((wrong - sound) ** 2)) > 0.1


def test_off_policy_targets_are_unbiased() -> None:
    """All paths of a small process, by enumeration: the mean target of a state is its value, whatever v₀ says."""
    rng = np.random.default_rng(3)
    n_states, horizon, gamma = 2, 3, 0.8
    behaviour, target = rng.dirichlet([1, 1], n_states), rng.dirichlet([1, 1], n_states)
    rewards = rng.standard_normal((horizon, n_states, 2))
    P = rng.dirichlet([1, 1], (n_states, 2))
    v0 = 3.0 * rng.standard_normal((horizon, n_states))
    values = np.zeros((horizon + 1, n_states))  # ends after the last step
    for t in range(horizon - 1, -1, -1):
        values[t] = (target * (rewards[t] + gamma * P @ values[t + 1])).sum(axis=1)

    sums, mass = np.zeros((horizon, n_states)), np.zeros((horizon, n_states))
    discounts, traces = episodes([horizon], gamma)
    folds = make_folds(discounts, traces, 1)
    folds = folds._replace(cut=traces == 0.0, group=np.zeros(horizon, dtype=np.int64))
    for states in itertools.product(range(n_states), repeat=horizon):
        for actions in itertools.product(range(2), repeat=horizon):
            probability = 1.0 / n_states
            for t in range(horizon):
                probability *= behaviour[states[t], actions[t]]
                probability *= P[states[t], actions[t], states[t + 1]] if t + 1 < horizon else 1.0
            r = np.array([[rewards[t, s, a]] for t, (s, a) in enumerate(zip(states, actions, strict=True))])
            rhos = np.array([target[s, a] / behaviour[s, a] for s, a in zip(states, actions, strict=True)])
            reference = Reference(np.array([[v0[t, s]] for t, s in enumerate(states)]), np.full((horizon, 1), 1e9))
            found = held_out_targets(r, discounts, rhos, folds, reference=reference).values[:, 0]
            for t, s in enumerate(states):
                sums[t, s] += probability * found[t]
                mass[t, s] += probability
    assert_allclose(sums / mass, values[:-1], atol=1e-12)


def test_when_a_reference_is_needed() -> None:
    def needed(lengths: Any, gamma: float, terminated: bool) -> bool:
        discounts, traces = episodes(np.array(lengths), gamma, terminated)
        return needs_reference(discounts, np.ones(discounts.size), make_folds(discounts, traces, 5))

    assert needed([200] * 50, 0.99, False)  # a limit of 200 steps: no return is seen to its end
    assert not needed([200] * 50, 0.99, True)
    assert not needed([200] * 50, 0.8, False)
    assert not needed([10_000], 0.8, False)
    assert needed([1000], 0.999, False)
    assert needed([1] * 1000, 0.9, False)  # steps of a shuffled log
    assert not needed([1] * 1000, 0.0, False)
    discounts, traces = episodes(np.full(50, 40), 0.99)
    discounts[39::120] = 0.99  # each third episode is cut off: leaving it out would favour the others
    assert needs_reference(discounts, np.ones(2000), make_folds(discounts, traces, 5))


def test_too_little_to_choose_by() -> None:
    def why(n: int, rhos: FloatArray | None = None, weights: FloatArray | None = None) -> str | None:
        discounts, traces = episodes(np.full(n // 5, 5))
        ratios = np.ones(n) if rhos is None else rhos
        folds = make_folds(discounts, traces, 5, weights)
        reference = None if rhos is None else Reference(np.zeros((n, 1)), np.zeros((n, 1)))
        return held_out_targets(np.ones((n, 1)), discounts, ratios, folds, weights, reference=reference).why

    assert why(1000) is None
    assert "fewer than 100" in str(why(90))
    assert "fewer than 4" in str(why(15))
    rng = np.random.default_rng(0)
    assert why(1000, rng.choice([0.8, 1.2], 1000)) is None
    far = np.where(rng.random(1000) < 0.05, 20.0, 0.0)
    assert "by their importance ratios, fewer than 100" in str(why(1000, far))
    assert "count as" in str(why(1000, weights=0.5 ** np.arange(999, -1, -1.0)))


@pytest.mark.parametrize(("n", "length", "too_few"), [(15, 5, True), (99, 3, True), (100, 5, False), (150, 50, True)])
def test_too_few_whatever_they_are(n: int, length: int, too_few: bool) -> None:
    """Then there is a reason not to choose for all ratios, weights and references, and it says the same."""
    rng = np.random.default_rng(n)
    discounts, traces = episodes(np.full(n // length, length), 0.01 if length == 50 else 0.9, terminated=False)
    for weights in (None, 0.99 ** np.arange(n - 1, -1, -1.0)):
        folds = make_folds(discounts, traces, 5, weights)
        if length == 50:  # three long episodes that are not cut
            folds = folds._replace(n_groups=3, group=np.repeat(np.arange(3), 50))
        assert are_too_few(folds) == too_few
        for rhos in (np.ones(n), rng.uniform(0.5, 1.5, n)):
            reasons = set()
            for size in (0.0, 1.0, 1e6):
                reference = Reference(*(size * rng.standard_normal((2, n, 1))))
                targets = held_out_targets(rng.random((n, 1)), discounts, rhos, folds, weights, reference=reference)
                reasons.add(targets.why)
            assert len(reasons) == 1
            assert not too_few or None not in reasons
            assert too_few or weights is not None or (rhos != 1.0).any() or reasons == {None}


# --- scores ---------------------------------------------------------------------------------------------------------


def test_scores_are_weighted_means() -> None:
    rng = np.random.default_rng(4)
    predictions, targets, weights = rng.standard_normal((60, 3)), rng.standard_normal(60), rng.random(60)
    weights[::7] = 0.0
    group = np.repeat(np.arange(12), 5)
    whole = held_out.group_errors(predictions, targets, weights, group, 12)
    parts = sum(
        held_out.group_errors(predictions[p], targets[p], weights[p], group[p], 12)
        for p in (np.arange(60) % 2 == 0, np.arange(60) % 2 == 1)
    )
    assert_allclose(whole, parts)
    means, _ = held_out.scores(whole, np.bincount(group, weights=weights).astype(np.float64))
    expected = [np.average((predictions[:, c] - targets) ** 2, weights=weights) for c in range(3)]
    assert_allclose(means, expected)


def test_standard_errors_are_those_of_many_repetitions() -> None:
    """Episodes of random length whose errors share a part: the spread of scores over many streams is the truth."""
    rng = np.random.default_rng(5)
    found, errors = [], []
    for _ in range(400):
        lengths = rng.integers(1, 20, 60)
        group = np.repeat(np.arange(60), lengths)
        miss = np.repeat(rng.standard_normal(60), lengths) + 0.3 * rng.standard_normal(group.size)
        whole = held_out.group_errors(miss[:, None], np.zeros(group.size), np.ones(group.size), group, 60)
        mean, error = held_out.scores(whole, lengths.astype(float))
        found.append(mean[0])
        errors.append(error[0])
    assert np.mean(errors) == pytest.approx(np.std(found), rel=0.1)


def test_what_is_not_finite_scores_infinity() -> None:
    predictions = np.array([[1.0, np.nan, np.inf, 1e200], [1.0, 1.0, 1.0, 1.0]])
    errors = held_out.group_errors(predictions, np.zeros(2), np.ones(2), np.arange(2), 2)
    means, spread = held_out.scores(errors, np.ones(2))
    assert_array_equal(means, [1.0, np.inf, np.inf, np.inf])
    assert_array_equal(spread, [0.0, np.inf, np.inf, np.inf])
    assert held_out.least(means) == 0
    assert held_out.within_one_standard_error(errors[:, ::-1]) == 3


def test_ties_go_to_the_first() -> None:
    assert held_out.least(np.array([2.0, 1.0 + 9e-7, 1.0, 3.0])) == 1
    assert held_out.least(np.array([2.0, 1.0 + 2e-6, 1.0, 3.0])) == 2
    assert held_out.least(np.array([1.0, 1e-29, 1e-31]), scale=4.0) == 1  # exact but for rounding
    assert held_out.least(np.array([1.0, 1e-29, 1e-31])) == 2


def test_one_standard_error_is_of_the_difference() -> None:
    """A second candidate that is better in every group by little is better, however much groups differ."""
    levels = np.array([1.0, 100.0, 10.0, 1000.0])[:, None]
    assert held_out.within_one_standard_error(levels + np.array([[0.5, 0.0]])) == 1
    noisy = levels + np.array([[0.5, 0.0], [-0.7, 0.0], [0.9, 0.0], [-0.3, 0.0]])
    assert held_out.within_one_standard_error(noisy) == 0
    assert held_out.within_one_standard_error(np.array([[2.0, 1.0]])) == 1


@pytest.mark.parametrize("rho", [1e30, 1e90])
def test_returns_that_overflow_do_not_count(rho: float) -> None:
    rng = np.random.default_rng(0)
    discounts, traces = np.full(2000, 0.9), np.full(2000, 0.9)
    rhos, nothing = np.where(rng.random(2000) < 0.1, rho, 1.0), np.zeros((2000, 1))
    folds = held_out.make_folds(discounts, traces, 5)
    targets = held_out.held_out_targets(
        np.ones((2000, 1)), discounts, rhos, folds, reference=held_out.Reference(nothing, nothing)
    )
    assert np.isfinite(targets.values**2).all()
    assert targets.why is not None


def test_a_candidate_that_has_nearly_diverged_is_not_within_a_standard_error() -> None:
    """Squares of its errors overflow: no warning, and it is not chosen."""
    errors = np.array([[1e200, 1.0, 2.0], [3e200, 1.0, 2.1]])
    assert held_out.within_one_standard_error(errors) == 1
