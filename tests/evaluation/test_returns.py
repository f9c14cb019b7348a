"""Returns and scores: the unseen rest of cut-off episodes is neither taken for zero nor a reason to leave them out."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tlstd_lab.processes.garnet import garnet_off_policy

from tlstd import LSTD, InvalidInputError, Transitions, random_walk
from tlstd.core.arrays import FloatArray
from tlstd.evaluation import returns, score


def lifetimes(n_episodes: int, stay: float, limit: int, gamma: float, seed: int) -> Transitions:
    """A reward of 1 a step, from one state, which is left with probability 1 - ``stay``; cut off after ``limit``."""
    rng = np.random.default_rng(seed)
    lengths = rng.geometric(1.0 - stay, n_episodes)
    return Transitions.from_episodes(
        [(np.ones((min(n, limit) + 1, 1)), np.ones(min(n, limit)), bool(n <= limit)) for n in lengths], gamma=gamma
    )


def by_hand(steps: Transitions) -> FloatArray:
    out = np.zeros(len(steps))
    for t in reversed(range(len(steps))):
        ends = t + 1 == len(steps) or steps.trace_discounts[t + 1] == 0.0
        out[t] = steps.rewards[t] + (0.0 if ends else steps.discounts[t] * out[t + 1])
    return out


def test_of_terminated_episodes() -> None:
    steps = random_walk(7, gamma=0.9).sample(500, np.random.default_rng(0))
    seen = returns(steps)
    assert_allclose(seen.values, by_hand(steps), rtol=1e-12)
    assert seen.kind == "returns"
    last = np.flatnonzero(steps.discounts == 0.0)[-1]
    assert seen.usable[: last + 1].all()


@pytest.mark.parametrize("limit", [5, 20])
def test_time_limits_do_not_bias(limit: int) -> None:
    """The mean return is the value; without the cut-off episodes, or with 0 for what follows, it is far below."""
    gamma, stay = 0.95, 0.97
    truth = 1.0 / (1.0 - gamma * stay)
    steps = lifetimes(3_000, stay, limit, gamma, seed=1)
    seen = returns(steps)
    starts = steps.trace_discounts == 0.0
    assert seen.kind == "bootstrapped"
    assert_allclose(seen.values[starts & seen.usable].mean(), truth, rtol=0.05)
    ended = np.repeat(
        np.add.reduceat(steps.discounts == 0.0, np.flatnonzero(starts)) > 0,
        np.diff(np.append(np.flatnonzero(starts), len(steps))),
    )
    assert by_hand(steps)[starts].mean() < 0.85 * truth
    assert by_hand(steps)[starts & ended].mean() < 0.6 * truth


def test_only_the_last_steps_of_few_cut_off_episodes_are_left_out() -> None:
    steps = lifetimes(200, 0.95, 60, 0.9, seed=2)
    seen = returns(steps)
    assert seen.kind == "returns"
    unused = np.flatnonzero(~seen.usable)
    assert unused.size
    starts = np.flatnonzero(steps.trace_discounts == 0.0)
    ends = np.append(starts[1:], len(steps)) - 1
    cut = ends[steps.discounts[ends] > 0.0]
    expected = {int(end) - back for end in cut for back in range(37)}  # 0.9^38 is the first below 2%
    assert set(unused.tolist()) == expected
    assert "of the others more than 2% is not seen" in seen.note


def test_off_policy_returns_have_the_mean_of_the_target_policy() -> None:
    """State by state, where the mean of the rewards that were seen has that of the policy that acted."""
    rng = np.random.default_rng(3)
    process = garnet_off_policy(6, 2, 3, 6, rng, gamma=0.8, termination=0.1)
    steps = process.sample(30_000, rng)
    seen = returns(steps)
    truth = process.values()
    means = [np.array([values[steps.rows == s].mean() for s in range(6)]) for values in (seen.values, by_hand(steps))]
    assert seen.kind == "bootstrapped"
    assert np.abs(means[0] - truth).max() < 0.35 * np.abs(means[1] - truth).max()


def test_one_stream_is_cut_into_blocks_only_where_it_has_to_be() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(401, 3))
    steps = Transitions.from_arrays(
        X[:-1], rng.normal(size=400), X[1:], terminated=np.zeros(400, bool), truncated=np.zeros(400, bool), gamma=0.9
    )
    seen = returns(steps)
    assert (seen.kind, int(seen.usable.sum())) == ("returns", 400 - 37)  # 0.9^38 is the first below 2%
    long = Transitions.from_arrays(
        X[:-1], rng.normal(size=400), X[1:], terminated=np.zeros(400, bool), truncated=np.zeros(400, bool), gamma=0.99
    )
    assert returns(long).kind == "bootstrapped"


def test_score_is_the_error_on_usable_returns() -> None:
    walk, rng = random_walk(9, gamma=0.95), np.random.default_rng(0)
    model = LSTD(9, lambda_=0.5)
    model.update_many(walk.sample(3_000, rng))
    held_out = walk.sample(2_000, rng)
    result, seen = score(model, held_out), returns(held_out)
    errors = (model.predict(held_out.X) - seen.values)[seen.usable]
    assert_allclose(result.mse, (errors**2).mean(), rtol=1e-12)
    assert_allclose(result.rmse**2, result.mse, rtol=1e-12)
    assert_allclose(result.spread, seen.values[seen.usable].std(), rtol=1e-12)
    assert 0.0 < result.standard_error < result.mse
    assert result.n_scored == seen.usable.sum()


def test_several_targets_are_averaged() -> None:
    walk, rng = random_walk(9, gamma=0.95), np.random.default_rng(0)
    one = walk.sample(1_000, rng)
    two = Transitions.from_rows(
        one.store,
        one.rows,
        np.stack([one.rewards, one.rewards], axis=1),
        one.next_rows,
        discounts=one.discounts,
        trace_discounts=one.trace_discounts,
    )
    models = LSTD(9, lambda_=0.5), LSTD(9, lambda_=0.5, n_targets=2)
    for model, steps in zip(models, (one, two), strict=True):
        model.update_many(steps)
    assert returns(two).values.shape == (1_000, 2)
    assert_allclose(score(models[1], two).mse, score(models[0], one).mse, rtol=1e-9)


def test_what_cannot_be_scored_is_refused() -> None:
    steps = lifetimes(1, 0.99999, 5, 0.99, seed=0)
    assert not returns(steps).usable.any()
    model = LSTD(1, lambda_=0.0)
    with pytest.raises(InvalidInputError, match="none of the 5 steps has a return that is seen to its end"):
        score(model, steps)
    with pytest.raises(InvalidInputError, match="pass Transitions"):
        returns(np.eye(3))  # type: ignore[arg-type]


def test_ratios_need_other_episodes() -> None:
    steps = lifetimes(1, 0.99999, 5, 0.99, seed=0)
    steps.rhos = np.full(len(steps), 0.5)
    with pytest.raises(InvalidInputError, match=r"importance ratios, but .*pass more of them"):
        returns(steps)
