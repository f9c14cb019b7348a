"""The choice of parameters: near the best where the truth is known, blind to what is held out, open about failures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from tlstd_lab.processes.garnet import garnet, garnet_off_policy

from tests.helpers import random_transitions
from tlstd import (
    LSTD,
    TD,
    TLSTD,
    InvalidInputError,
    InvalidParameterError,
    KrylovLSTD,
    Transitions,
    TrueOnlineTD,
    random_walk,
)
from tlstd.core.arrays import FloatArray
from tlstd.data.held_out import make_folds
from tlstd.domains.mdp import MarkovRewardProcess
from tlstd.estimators.base import LinearEstimator
from tlstd.evaluation import Choice, choose
from tlstd.evaluation.reference import reference_model, reference_values

CUTOFFS = [0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 1e-4, 0.0]


def regret(
    process: MarkovRewardProcess,
    factory: Callable[[Any], LinearEstimator],
    values: list[Any],
    n: int,
    seed: int,
    **options: Any,
) -> tuple[float, float, Choice[Any]]:
    """Error of the chosen and of the worst candidate, over that of the best."""
    steps = process.sample(n, np.random.default_rng(seed), **options)
    share, truth = process.state_distribution(), process.values()
    errors = []
    for value in values:
        model = factory(value)
        model.update_many(steps)
        errors.append(float(np.sqrt(share @ (model.predict(process.X) - truth) ** 2)))
    choice = choose(factory, values, steps)
    assert choice.decided
    return errors[values.index(choice.value)] / min(errors), max(errors) / min(errors), choice


# --- is the choice good? --------------------------------------------------------------------------------------------


def noisy_garnet(gamma: float = 0.9) -> MarkovRewardProcess:
    rng = np.random.default_rng(7)
    return garnet(100, 3, 5, 80, rng, gamma=gamma, features="binary", active=8, reward_noise=0.3)


@pytest.mark.parametrize(
    ("factory", "values", "worst"),
    [
        (lambda rcond: LSTD(80, lambda_=0.5, rcond=rcond), CUTOFFS, 1.4),
        (lambda rank: TLSTD(80, rank, lambda_=0.5, rcond=0.0), [5, 20, 80], 1.8),
        (lambda a: TD(80, step_size=a, lambda_=0.8), [1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1], 1.5),
        (lambda a: TrueOnlineTD(80, step_size=a, lambda_=0.8), [1e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1], 1.5),
        (lambda lambda_: LSTD(80, lambda_=lambda_), [0.0, 0.5, 0.8, 0.9, 0.95, 1.0], 1.03),
    ],
)
def test_garnet(factory: Callable[[Any], LinearEstimator], values: list[Any], worst: float) -> None:
    of_choice, of_worst, _ = regret(noisy_garnet(0.8), factory, values, 2000, 0)
    assert of_choice < 1.02
    assert of_worst > worst  # there was something to choose


def test_time_limits_are_bootstrapped() -> None:
    """Returns alone, cut off after ten steps, would take half of each value for all of it."""
    process = noisy_garnet(0.95)
    found = []
    for seed in range(2):
        of_choice, of_worst, choice = regret(
            process, lambda rcond: LSTD(80, lambda_=0.5, rcond=rcond), CUTOFFS, 2000, seed, truncate_after=10
        )
        assert "completed by a reference" in choice.note
        found.append((of_choice, of_worst))
    assert np.mean(found, axis=0)[0] < 1.05
    assert np.mean(found, axis=0)[1] > 1.3


def test_off_policy() -> None:
    n = 100
    process = garnet_off_policy(
        n, 2, 5, 60, np.random.default_rng(3), gamma=0.8, target=np.tile([0.8, 0.2], (n, 1)), features="binary",
        active=6, reward_noise=0.3,
    )  # fmt: skip
    found = [
        regret(process, lambda rcond: LSTD(60, lambda_=0.3, rcond=rcond), CUTOFFS, 3000, seed)[:2] for seed in range(2)
    ]
    of_choice, of_worst = np.mean(found, axis=0)
    assert of_choice < 1.05
    assert of_worst > 1.2


def test_regression_with_known_risk() -> None:
    """Episodes of one step make LSTD least squares; with noise² added the score is an estimate of the risk."""
    rng = np.random.default_rng(1)
    n, d, noise = 400, 30, 0.3
    Q = np.linalg.qr(rng.standard_normal((d, d)))[0]
    scales = 10.0 ** np.linspace(0.0, -3.0, d)
    X = rng.standard_normal((n, d)) * scales @ Q.T
    w = Q @ np.linspace(1.0, 0.5, d)
    steps = Transitions(
        X, X @ w + noise * rng.standard_normal(n), X, discounts=np.zeros(n), trace_discounts=np.zeros(n)
    )
    cutoffs = [0.3, 0.1, 0.03, 0.01, 1e-3, 1e-6]
    choice = choose(lambda rcond: LSTD(d, lambda_=0.0, rcond=rcond), cutoffs, steps)
    covariance, risks = Q * scales**2 @ Q.T, []
    for cutoff in cutoffs:
        model = LSTD(d, lambda_=0.0, rcond=cutoff)
        model.update_many(steps)
        miss = model.weights - w
        risks.append(miss @ covariance @ miss + noise**2)
    assert risks[cutoffs.index(choice.value)] < 1.1 * min(risks)
    assert_allclose(choice.scores, risks, rtol=0.2)
    assert (np.abs(choice.scores - risks) < 4.0 * choice.standard_errors).all()


# --- the numbers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("terminate", [0.0, 0.1])
def test_scores_by_hand(sparse: bool, terminate: float) -> None:
    """Two folds by literal loops over the samples, one by one."""
    steps = random_transitions(
        np.random.default_rng(0), n_features=4, n_steps=300, gamma=0.5, terminate=terminate, truncate=0.0, sparse=sparse
    )
    candidates = [0.0, 0.5]
    choice = choose(lambda lambda_: LSTD(4, lambda_=lambda_, rcond=0.0), candidates, steps, folds=2)
    folds, rows = make_folds(steps.discounts, steps.trace_discounts, 2), list(steps)
    assert_array_equal(choice.folds.fold, folds.fold)
    X, X_next = (np.asarray(M if isinstance(M, np.ndarray) else M.todense()) for M in (steps.X, steps.X_next))
    for column, lambda_ in enumerate(candidates):
        squares = []
        for fold in (0, 1):
            A, b, z = np.zeros((4, 4)), np.zeros(4), np.zeros(4)
            for t, row in enumerate(rows):
                if folds.fold[t] != fold:
                    z = (0.0 if folds.cut[t] else row.trace_discount * lambda_) * z + X[t]
                    A, b = A + np.outer(z, X[t] - row.discount * X_next[t]), b + z * row.reward
            w = np.linalg.solve(A, b)
            for t in np.flatnonzero(folds.fold == fold).tolist():
                value, tail, k = 0.0, 1.0, t
                while k < 300 and folds.group[k] == folds.group[t]:
                    value, tail, k = value + tail * steps.rewards[k], tail * steps.discounts[k], k + 1
                if tail <= 0.02:
                    squares.append((X[t] @ w - value) ** 2)
        assert choice.scores[column] == pytest.approx(np.mean(squares), rel=1e-9)
        assert choice.n_scored == len(squares)
    assert choice.value == candidates[int(np.argmin(choice.scores))]


def test_beta_weighs_the_scores() -> None:
    """The world changes for the last fifth: with forgetting, the scores are those of the last fifth."""
    rng = np.random.default_rng(0)
    n = 5000
    X = rng.standard_normal((n, 3))
    late = np.arange(n) > 4000
    rewards = np.where(late, X[:, 0], 5.0 * X[:, 1]) + 0.1 * rng.standard_normal(n)
    steps = Transitions(X, rewards, X, discounts=np.zeros(n), trace_discounts=np.zeros(n))
    forgetting = choose(lambda r: LSTD(3, lambda_=0.0, rcond=r, beta=0.01), [0.9, 0.0], steps)
    assert forgetting.value == 0.0
    assert forgetting.scores[1] < 0.05
    averaging = choose(lambda r: LSTD(3, lambda_=0.0, rcond=r), [0.9, 0.0], steps)
    assert averaging.scores[1] > 1.0
    with pytest.raises(InvalidParameterError, match="different beta"):
        choose(lambda beta: LSTD(3, lambda_=0.0, beta=beta), [0.01, 0.1], steps)


def test_several_targets_count_alike() -> None:
    """A target in other units does not change the choice; one target scores as if alone, but for its units."""
    rng = np.random.default_rng(3)
    steps = random_transitions(rng, n_features=6, n_steps=600, n_targets=2, terminate=0.2, truncate=0.0)

    def scores(columns: FloatArray) -> FloatArray:
        part = steps[:]
        part.rewards = columns
        part.n_targets = 1 if columns.ndim == 1 else columns.shape[1]
        return choose(lambda r: LSTD(6, lambda_=0.5, rcond=r, n_targets=part.n_targets), [0.5, 0.1, 0.0], part).scores

    both = scores(steps.rewards)
    assert_allclose(scores(steps.rewards * [1.0, 1000.0]), both, rtol=1e-6)
    single = [scores(np.ascontiguousarray(steps.rewards[:, c])) for c in (0, 1)]
    variances = []
    for c in (0, 1):
        value, returns = 0.0, []
        for t in range(599, -1, -1):
            value = steps.rewards[t, c] + steps.discounts[t] * value
            returns.append(value)
        ended = int(np.flatnonzero(steps.discounts == 0.0)[-1])
        variances.append(np.var(returns[599 - ended :]))
    assert_allclose(both, (single[0] / variances[0] + single[1] / variances[1]) / 2, rtol=1e-6)


# --- nothing leaks --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("off_policy", [False, True])
@pytest.mark.parametrize("end", [0.0, 0.1])
def test_models_never_see_what_they_are_judged_on(end: float, off_policy: bool) -> None:
    steps = random_transitions(
        np.random.default_rng(0), n_features=5, n_steps=500, terminate=end, truncate=end, off_policy=off_policy
    )
    folds = make_folds(steps.discounts, steps.trace_discounts, 5)

    def learned(part: Transitions) -> list[FloatArray]:
        made: list[LinearEstimator] = []

        def factory(lambda_: float) -> LinearEstimator:
            made.append(LSTD(5, lambda_=lambda_, rcond=0.0))
            return made[-1]

        choose(factory, [0.0, 0.7], part)
        return [model.weights for model in made if model.n_updates]

    before, reference = learned(steps), reference_values(steps, folds)
    assert len(before) == 10  # fold by fold, two candidates each
    for fold in (0, 3):
        mine = folds.fold == fold
        poisoned = steps[:]
        poisoned.rewards = np.where(mine, 1e6, steps.rewards)
        for k, (old, new) in enumerate(zip(before, learned(poisoned), strict=True)):
            assert np.array_equal(old, new) == (k // 2 == fold)
        changed = reference_values(poisoned, folds)
        assert_array_equal(changed.values[mine], reference.values[mine])
        assert_array_equal(changed.next_values[mine], reference.next_values[mine])
        assert off_policy or not reference.values.any()
        assert not np.array_equal(changed.next_values[~mine], reference.next_values[~mine])


def test_the_data_are_left_alone() -> None:
    steps = random_transitions(np.random.default_rng(0), n_features=5, n_steps=150, sparse=True)
    before = [getattr(steps, name).copy() for name in ("rewards", "discounts", "trace_discounts", "rhos", "rows")]
    choices = [choose(lambda r: TLSTD(5, r, lambda_=0.5), [1, 3, 5], steps) for _ in range(2)]
    for name, old in zip(("rewards", "discounts", "trace_discounts", "rhos", "rows"), before, strict=True):
        assert_array_equal(getattr(steps, name), old)
    assert choices[0].decided
    assert_array_equal(choices[0].scores, choices[1].scores)


# --- failures -------------------------------------------------------------------------------------------------------


def test_candidates_that_fail() -> None:
    steps = random_walk(7).sample(800, np.random.default_rng(0))
    choice = choose(lambda rank: TLSTD(7, rank, lambda_=0.5), [3, 7, 8], steps)
    assert choice.value in (3, 7)
    assert choice.scores[2] == np.inf
    assert "Failed: 8 (rank is 8" in choice.note
    steep = choose(lambda a: TD(7, step_size=a, lambda_=0.9), [0.1, 1e5], steps)
    assert (steep.value, steep.scores[1]) == (0.1, np.inf)
    assert "100000.0 (not finite)" in steep.note
    with pytest.raises(InvalidParameterError, match=r"every one of the 2 values failed.* rank is 8"):
        choose(lambda rank: TLSTD(7, rank, lambda_=0.5), [8, 9], steps)


def test_misuse() -> None:
    steps = random_walk(7).sample(500, np.random.default_rng(0))
    with pytest.raises(InvalidParameterError, match="no values"):
        choose(lambda rank: TLSTD(7, rank, lambda_=0.5), [], steps)
    with pytest.raises(InvalidParameterError, match="folds is 1"):
        choose(lambda rank: TLSTD(7, rank, lambda_=0.5), [3], steps, folds=1)
    with pytest.raises(InvalidInputError, match="pass Transitions"):
        choose(lambda rank: TLSTD(7, rank, lambda_=0.5), [3], list(steps))  # type: ignore[arg-type]
    one = LSTD(7, lambda_=0.5)
    with pytest.raises(InvalidParameterError, match="return a new one at each call"):
        choose(lambda rcond: one, [0.1, 0.0], steps)
    with pytest.raises(TypeError):  # a mistake in the factory is not a candidate that failed
        choose(lambda rank: TLSTD(7, rank, gamma=0.5), [3], steps)  # type: ignore[call-arg]


def test_too_little_data_choose_nothing() -> None:
    steps = random_walk(7).sample(60, np.random.default_rng(0))
    choice = choose(lambda rank: TLSTD(7, rank, lambda_=0.5), [1, 3, 7], steps)
    assert (choice.value, choice.decided) == (1, False)
    assert np.isnan(choice.scores).all()
    assert "Nothing was chosen" in repr(choice)
    assert "first" in choice.note
    assert "Nothing was chosen" in str(choice)
    choice = choose(lambda rank: TLSTD(7, rank, lambda_=0.5), [1, 3, 7], steps, otherwise=3)
    assert (choice.value, choice.simplest) == (3, 3)


def test_edges_are_pointed_out() -> None:
    steps = noisy_garnet().sample(2000, np.random.default_rng(0))
    values = [1e-5, 1e-4, 3e-3]
    choice = choose(lambda a: TD(80, step_size=a, lambda_=0.8), values, steps)
    assert choice.value == 3e-3
    assert "The best is the last candidate" in choice.note
    assert "The best" not in choose(lambda a: TD(80, step_size=a, lambda_=0.8), [1e-4, 3e-3, 0.3], steps).note
    words = {"slow": 1e-5, "slower": 1e-4, "good": 3e-3}
    assert "The best" not in choose(lambda a: TD(80, step_size=words[a], lambda_=0.8), words, steps).note


def test_plot() -> None:
    from matplotlib.figure import Figure

    steps = random_walk(7).sample(1500, np.random.default_rng(0))
    choice = choose(lambda a: TD(7, step_size=a, lambda_=0.9), [0.01, 0.1, 0.5, 1e5], steps)
    axes = Figure().subplots()
    choice.plot(axes)
    line = axes.lines[0]
    assert_array_equal(line.get_xdata(), [0.01, 0.1, 0.5])
    assert_array_equal(line.get_ydata(), choice.scores[:3])
    assert_array_equal(axes.lines[-1].get_xdata(), [choice.value] * 2)


def test_the_reference_with_many_features() -> None:
    """Beyond 2,000 features seen returns are completed by Krylov LSTD, whose bias takes up what all states share."""
    n = 3_000
    rng = np.random.default_rng(0)
    ids = np.stack([np.zeros(n + 1, dtype=np.int64), 1 + rng.integers(0, 39_999, n + 1)], axis=1)
    X = sp.csr_array((np.ones(ids.size), ids.ravel(), np.arange(0, ids.size + 1, 2)), shape=(n + 1, 40_000))
    columns = {"terminated": np.zeros(n, dtype=bool), "truncated": np.arange(n) % 10 == 9}
    steps = Transitions.from_arrays(X[:-1], 1.0 + rng.standard_normal(n), X[1:], gamma=0.95, **columns)
    choice = choose(lambda a: TD(40_000, step_size=a, lambda_=0.5), [0.001, 0.01, 0.1], steps)
    assert choice.decided
    assert "completed by a reference" in choice.note
    model = reference_model(steps)
    assert isinstance(model, KrylovLSTD)
    assert abs(np.mean(model.predict(X)) - 20.0) < 4.0  # 1 / (1 - 0.95)


def test_another_reference() -> None:
    """Returns that are cut off are completed by the model that was asked for."""
    steps = random_transitions(np.random.default_rng(5), n_features=3, n_steps=400, terminate=0.0, truncate=0.2)
    made: list[LSTD] = []

    def reference() -> LSTD:
        made.append(LSTD(3, lambda_=0.3))
        return made[-1]

    found = choose(lambda a: TD(3, step_size=a, lambda_=0.5), [0.01, 0.1], steps, reference=reference)
    assert len(made) == 5
    assert all(model.n_updates > 200 for model in made)
    assert "completed by a reference" in found.note
