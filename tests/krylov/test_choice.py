"""The dimension chosen by held-out data: the scores by other means, and what happens where data cannot tell."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tlstd_lab.processes import spiral

from tests.helpers import random_transitions
from tests.krylov.literal_system import dense_rows, literal_system
from tlstd import KrylovLSTD, Transitions, load
from tlstd.core.arrays import FloatArray
from tlstd.core.file_format import Saved
from tlstd.data.held_out import (
    EXACT,
    FEWEST_EFFECTIVE,
    LARGEST_TAIL,
    TIE,
    Reference,
    held_out_targets,
    make_folds,
    needs_reference,
    scores,
)
from tlstd.errors import StateError
from tlstd.evaluation import choose
from tlstd.krylov.adjoint import WHOLE, AdjointSystem
from tlstd.krylov.arnoldi import Arnoldi, KrylovPath
from tlstd.krylov.choice import FOLDS, DimensionChoice, fixed_dimension, patience
from tlstd.krylov.krylov_lstd import FOLD_DIMENSION

D = 12


def linear_steps(seed: int, n_steps: int, **options: Any) -> Transitions:
    """Episodes whose rewards are linear in the features, with noise, so that several dimensions are of use."""
    rng = np.random.default_rng(seed)
    options = {"gamma": 0.7, "terminate": 0.0, "truncate": 0.0} | options
    steps = random_transitions(rng, n_features=D, n_steps=n_steps, **options)
    scales = np.geomspace(1.0, 0.1, D)
    shape = D if steps.n_targets == 1 else (D, steps.n_targets)
    rewards = dense_rows(steps.X) @ (rng.standard_normal(shape).T / scales).T + steps.rewards
    columns = {name: getattr(steps, name) for name in ("discounts", "trace_discounts", "rhos")}
    scaled, scaled_next = (dense_rows(X) * scales for X in (steps.X, steps.X_next))
    return Transitions(scaled, rewards, scaled_next, **columns)


def model_of(steps: Transitions, lambda_: float = 0.6, **options: Any) -> KrylovLSTD:
    model = KrylovLSTD(steps.n_features, lambda_=lambda_, n_targets=steps.n_targets, **options)
    model.update_many(steps)
    return model


def krylov_solution(A: FloatArray, b: FloatArray, dimension: int) -> FloatArray:
    """The w of least residual in the Krylov space, by dense algebra."""
    Q = np.zeros((b.size, 0))
    q = b
    for _ in range(min(dimension, b.size)):
        for _ in range(3):
            q = q - Q @ (Q.T @ q)
        Q = np.column_stack([Q, q / np.linalg.norm(q)])
        q = A @ Q[:, -1]
    solution: FloatArray = Q @ np.linalg.lstsq(A @ Q, b)[0]
    return solution


def literal_scores(
    steps: Transitions, target: int, n_dimensions: int, lambda_: float, beta: float | None
) -> FloatArray:
    """Held-out errors of dimensions 1, 2, …, sum by sum: dense systems, returns followed one by one."""
    n = len(steps)
    weights = np.ones(n) if beta is None else (1.0 - beta) ** np.arange(n - 1.0, -1.0, -1.0)
    folds = make_folds(steps.discounts, steps.trace_discounts, FOLDS, None if beta is None else weights)
    X, X_next = dense_rows(steps.X), dense_rows(steps.X_next)
    rewards = steps.rewards.reshape(n, -1)[:, target]
    bootstrapped = needs_reference(steps.discounts, steps.rhos, folds, weights)
    squares, total = np.zeros(n_dimensions), 0.0
    for fold in range(folds.n_folds):
        A, b = literal_system(steps, lambda_, beta=beta, fold=folds.fold.astype(np.int16), number=fold, cut=folds.cut)
        w0 = krylov_solution(A, b[:, target], fixed_dimension(n))
        solutions = [krylov_solution(A, b[:, target], m) for m in range(1, n_dimensions + 1)]
        mine = np.flatnonzero(folds.fold == fold)
        value, tail = 0.0, 1.0
        for t in mine[::-1].tolist():
            if t == n - 1 or folds.group[t + 1] != folds.group[t]:
                value, tail = (float(X_next[t] @ w0) if bootstrapped else 0.0), 1.0
            rho = float(steps.rhos[t])
            value = rho * (rewards[t] + steps.discounts[t] * value)
            value += (1.0 - rho) * float(X[t] @ w0) if bootstrapped else 0.0
            tail *= steps.discounts[t]
            if bootstrapped or tail <= LARGEST_TAIL:
                total += weights[t]
                squares += [weights[t] * (float(X[t] @ w) - value) ** 2 for w in solutions]
    return squares / total


def check_choice(choice: DimensionChoice, expected: FloatArray) -> None:
    assert choice.decided
    assert_allclose(choice.scores, expected, rtol=1e-8)
    least = choice.scores.min() * (1.0 + TIE)
    assert choice.dimension == 1 + np.flatnonzero(choice.scores <= least)[0]
    best = int(np.argmin(choice.scores)) + 1
    assert choice.scores.size <= best + patience(best)


EPISODES: dict[str, Any] = {"terminate": 0.1}
STREAM: dict[str, Any] = {}
CUT_OFF: dict[str, Any] = {"truncate": 0.3, "gamma": 0.95}


@pytest.mark.parametrize("kind", [EPISODES, STREAM], ids=["episodes", "stream"])
@pytest.mark.parametrize("lambda_", [0.0, 0.8])
def test_scores_are_those_of_choose(kind: dict[str, Any], lambda_: float) -> None:
    """Five separate models a dimension, each without one fold."""
    steps = linear_steps(0, 500, **kind)
    model = model_of(steps, lambda_)
    (choice,) = model.choices
    dimensions = range(1, choice.scores.size + 1)
    by_models = choose(lambda m: KrylovLSTD(D, lambda_=lambda_, dimension=m), dimensions, steps)
    check_choice(choice, by_models.scores)
    assert choice.dimension == by_models.value == model.chosen_dimension
    assert_allclose(choice.standard_errors, by_models.standard_errors, rtol=1e-7)
    assert_array_equal(model.weights, model_of(steps, lambda_, dimension=choice.dimension).weights)
    assert choice.note.startswith("Returns of")
    assert str(by_models.folds) in choice.note
    assert ("blocks" in choice.note) == (kind is STREAM)


@pytest.mark.parametrize(
    "kind",
    [
        EPISODES,
        STREAM,
        CUT_OFF,
        {"off_policy": True, "terminate": 0.2},
        {"n_targets": 2, "terminate": 0.1},
        {"n_targets": 2, **CUT_OFF},
    ],
    ids=["episodes", "stream", "cut off", "off-policy", "two targets", "two targets, cut off"],
)
@pytest.mark.parametrize("beta", [None, 0.003])
def test_scores_by_hand(kind: dict[str, Any], beta: float | None) -> None:
    steps = linear_steps(1, 500, **kind)
    choices = model_of(steps, beta=beta).choices
    assert len(choices) == steps.n_targets
    for target, choice in enumerate(choices):
        check_choice(choice, literal_scores(steps, target, choice.scores.size, 0.6, beta))
        assert ("completed by a reference" in choice.note) == ("truncate" in kind or "off_policy" in kind)


def test_each_target_has_its_own_dimension() -> None:
    """One target is linear in a single direction, the other needs many; each as if it were alone."""
    steps = linear_steps(2, 800, terminate=0.1, n_targets=2)
    easy = 3.0 * dense_rows(steps.X)[:, 0] + np.random.default_rng(0).standard_normal(800)
    rewards = np.column_stack([easy, steps.rewards[:, 1]])
    columns = {"discounts": steps.discounts, "trace_discounts": steps.trace_discounts}
    both = model_of(Transitions(steps.X, rewards, steps.X_next, **columns))
    assert isinstance(both.chosen_dimension, tuple)
    assert both.chosen_dimension[0] < both.chosen_dimension[1]
    for target in (0, 1):
        alone = model_of(Transitions(steps.X, np.ascontiguousarray(rewards[:, target]), steps.X_next, **columns))
        assert alone.chosen_dimension == both.chosen_dimension[target]
        shared = both.choices[target].scores
        assert_allclose(alone.choices[0].scores, shared, rtol=1e-9)
        assert_allclose(alone.weights, both.weights[:, target], atol=1e-9 * np.abs(alone.weights).max())


@pytest.mark.parametrize("n_steps", [1, 3, 60])
def test_too_few_samples_take_the_fixed_rule(n_steps: int) -> None:
    model = model_of(linear_steps(3, n_steps))
    (choice,) = model.choices
    assert not choice.decided
    assert choice.note.startswith("Nothing was chosen: ")
    assert model.chosen_dimension == choice.dimension == max(1, round(n_steps ** (1 / 3)))
    assert choice.scores.size == 0
    assert_array_equal(model.weights, model_of(linear_steps(3, n_steps), dimension=choice.dimension).weights)


def test_uneven_ratios_take_the_fixed_rule() -> None:
    steps = linear_steps(4, 600)
    rhos = np.exp(3.0 * np.random.default_rng(0).standard_normal(600))
    columns = {"discounts": steps.discounts, "trace_discounts": steps.trace_discounts, "rhos": rhos}
    (choice,) = model_of(Transitions(steps.X, steps.rewards, steps.X_next, **columns)).choices
    assert (choice.decided, choice.dimension) == (False, fixed_dimension(600))
    assert "importance ratios" in choice.note
    assert f"fewer than {FEWEST_EFFECTIVE:.0f}" in choice.note


def test_no_reward() -> None:
    steps = linear_steps(5, 300, terminate=0.1)
    steps.rewards = np.zeros(300)
    model = model_of(steps)
    assert (model.weights == 0.0).all()
    assert model.chosen_dimension == 1
    assert (model.choices[0].scores == 0.0).all()


def test_an_exact_solution_ends_the_search() -> None:
    """Rewards without noise, γ=0: from dimension 12 on errors are rounding, and such ties go to the first."""
    steps = linear_steps(6, 400, terminate=1.0)
    rewards = dense_rows(steps.X) @ np.ones(D)
    model = model_of(
        Transitions(steps.X, rewards, steps.X_next, discounts=np.zeros(400), trace_discounts=np.zeros(400))
    )
    (choice,) = model.choices
    exact = choice.scores <= EXACT * np.mean(rewards**2)
    assert choice.dimension == 1 + np.flatnonzero(exact)[0] <= D
    assert choice.scores.size <= D + 1


def test_a_reference_of_all_dimensions_does_not_end_the_search() -> None:
    """With fewer features than the reference has dimensions its paths are finished before the search begins."""
    steps = linear_steps(7, 2_000, **CUT_OFF)
    fixed = fixed_dimension(len(steps))
    assert fixed > D
    (choice,) = model_of(steps, 0.5).choices
    by_models = choose(
        lambda m: KrylovLSTD(D, lambda_=0.5, dimension=m),
        range(1, choice.scores.size + 1),
        steps,
        reference=lambda: KrylovLSTD(D, lambda_=0.5, dimension=fixed),
    )
    assert "completed by a reference" in choice.note
    assert choice.scores.size > 5
    check_choice(choice, by_models.scores)
    assert choice.dimension == by_models.value > 1


def test_a_space_that_the_reference_has_exhausted_is_searched_all_the_same() -> None:
    """Two features and returns that have to be completed: the reference's space is all there is, and so is searched."""
    process = spiral(weights=[-3.0, 2.0])  # its rewards have no noise
    for n_steps in (100, 300):
        steps = process.sample(n_steps, np.random.default_rng(n_steps))
        folds = make_folds(steps.discounts, steps.trace_discounts, FOLDS)
        assert needs_reference(steps.discounts, steps.rhos, folds)
        model = model_of(steps, lambda_=0.0)
        (choice,) = model.choices
        assert (choice.decided, choice.dimension, choice.scores.size) == (True, 2, 2)
        assert_allclose(model.weights, [-3.0, 2.0], rtol=1e-9)


def test_nothing_is_chosen_without_samples_or_with_a_given_dimension() -> None:
    assert KrylovLSTD(3, lambda_=0.5).chosen_dimension == 0
    assert KrylovLSTD(3, lambda_=0.5, n_targets=2).chosen_dimension == (0, 0)
    assert KrylovLSTD(3, lambda_=0.5).choices == ()
    given = model_of(linear_steps(7, 100), dimension=4)
    assert (given.choices, given.chosen_dimension) == ((), 4)


# --- samples that were folded ---------------------------------------------------------------------------------------


def literal_forecasts(steps: Transitions, kept: int, n_dimensions: int, beta: float | None) -> list[FloatArray]:
    """For each target: errors of models of the first T samples for the next kept/2, one by one."""
    squares, total = np.zeros((steps.n_targets, n_dimensions)), 0.0
    for known in range(kept, len(steps) - kept // 2 + 1, kept // 2):
        since = steps[known : known + kept // 2]
        rewards = since.rewards.reshape(len(since), -1)
        ages = len(steps) // (kept // 2) * (kept // 2) - 1.0 - np.arange(known, known + len(since))
        weights = np.full(len(since), float(known))
        if beta is not None:
            weights = (1.0 - beta) ** ages
        folds = make_folds(since.discounts, since.trace_discounts, FOLDS, weights)
        options: dict[str, Any] = {"lambda_": 0.6, "beta": beta, "n_targets": steps.n_targets}
        models = [KrylovLSTD(D, dimension=m, **options) for m in range(1, n_dimensions + 1)]
        reference = None
        for m, model in enumerate(models, start=1):
            model.update_many(steps[:known])
            if m == fixed_dimension(known) and needs_reference(since.discounts, since.rhos, folds, weights):
                of_x, of_next = (model.predict(X).reshape(rewards.shape) for X in (since.X, since.X_next))
                reference = Reference(of_x, np.where(since.discounts[:, None] == 0.0, 0.0, of_next))
        targets = held_out_targets(rewards, since.discounts, since.rhos, folds, weights, reference=reference)
        total += targets.weights.sum()
        for m, model in enumerate(models):
            wrong = model.predict(since.X).reshape(rewards.shape) - targets.values
            squares[:, m] += targets.weights @ wrong**2
    return list(squares / total)


@pytest.mark.parametrize(
    "kind",
    [EPISODES, STREAM, CUT_OFF, {"off_policy": True, "terminate": 0.2}, {"n_targets": 2, "terminate": 0.1}],
    ids=["episodes", "stream", "cut off", "off-policy", "two targets"],
)
@pytest.mark.parametrize("beta", [None, 0.003])
def test_folded_samples_are_chosen_by_what_was_predicted_before_it_came(
    kind: dict[str, Any], beta: float | None
) -> None:
    """Twelve features: folding is exact, so that other models know the same. The last samples do not count yet."""
    steps, kept, n_dimensions = linear_steps(10, 630, **kind), 200, FOLD_DIMENSION - 1
    choices = model_of(steps, beta=beta, max_samples=kept).choices
    expected = literal_forecasts(steps, kept, D, beta)
    assert len(choices) == len(expected)
    for choice, curve in zip(choices, expected, strict=True):
        assert choice.decided
        assert choice.scores.size == n_dimensions
        assert_allclose(choice.scores[:D], curve, rtol=1e-6)
        assert_allclose(choice.scores[D:], curve[-1], rtol=1e-6)  # there are no more dimensions
        assert choice.dimension == 1 + np.flatnonzero(choice.scores <= choice.scores.min() * (1.0 + TIE))[0]
        assert (choice.standard_errors > 0.0).all()
        assert "predicted before they came" in choice.note


def test_standard_errors_of_forecasts_are_those_over_groups() -> None:
    """Three foldings of episodes of two samples, which are never cut: as if all groups had been kept."""
    discounts, rng = np.tile([0.9, 0.0], 200), np.random.default_rng(0)
    X = rng.standard_normal((401, D))
    columns = {"discounts": discounts, "trace_discounts": np.tile([0.0, 0.9], 200)}
    steps = Transitions(X[:-1], rng.standard_normal(400) + X[:-1, 0], X[1:], **columns)
    (choice,) = model_of(steps, max_samples=200).choices
    errors, sizes = [], []
    for known in (200, 300):
        model = KrylovLSTD(D, lambda_=0.6, dimension=1)
        model.update_many(steps[:known])
        r = steps.rewards[known : known + 100].reshape(-1, 2)
        returns = np.column_stack([r[:, 0] + 0.9 * r[:, 1], r[:, 1]])
        wrong = model.predict(steps.X[known : known + 100]).reshape(-1, 2) - returns
        errors.append(known * (wrong**2).sum(axis=1))
        sizes.append(np.full(50, 2.0 * known))
    mean, spread = scores(np.concatenate(errors)[:, None], np.concatenate(sizes))
    assert_allclose(choice.scores[0], mean[0], rtol=1e-10)
    assert_allclose(choice.standard_errors[0], spread[0], rtol=1e-10)


def test_too_few_forecasts_leave_the_choice_to_the_samples_kept() -> None:
    steps = linear_steps(11, 700, terminate=0.1)
    (choice,) = model_of(steps, max_samples=500).choices  # folded once, nothing predicted yet
    assert choice.decided
    assert " in 5 folds" in choice.note
    (choice,) = model_of(steps, max_samples=20).choices
    assert "predicted before they came" in choice.note
    (choice,) = model_of(steps[:80], max_samples=20).choices
    assert not choice.decided


@pytest.mark.parametrize(
    ("name", "what"), [("errors", "outside"), ("sizes", "outside"), ("squares", "outside"), ("solutions", "shape")]
)
def test_damaged_forecasts_are_refused(name: str, what: str) -> None:
    model = model_of(linear_steps(12, 300, terminate=0.1), max_samples=100)
    state = dict(Saved.of(model._store.state())._values)
    key = f"old.forecasts.{name}"
    state[key] = state[key][:, :-1] if what == "shape" else -1.0 - state[key]
    with pytest.raises(StateError, match=name):
        KrylovLSTD(D, lambda_=0.6, max_samples=100)._store.restore(Saved(state))


# --- streams --------------------------------------------------------------------------------------------------------


def test_streams_choose_when_samples_have_doubled() -> None:
    steps = linear_steps(8, 700, terminate=0.1)
    model = KrylovLSTD(D, lambda_=0.6, reads="stream")
    chosen, last = [], None
    for n, step in enumerate(steps, start=1):
        model.update(step)
        if model.choices[0] is not last:
            last = model.choices[0]
            chosen.append(n)
            # what batch reads choose at this moment
            batch = model_of(steps[:n]).choices[0]
            assert (last.dimension, last.note) == (batch.dimension, batch.note)
            assert_allclose(last.scores, batch.scores, rtol=1e-9)
    assert chosen[0] == 1
    growth = np.array(chosen[1:]) / np.array(chosen[:-1])
    assert (growth >= 2.0).all()
    assert (growth[3:] < 2.0 * 4.0 / 3.0 + 0.01).all()  # at the first refresh after doubling
    whole = KrylovLSTD(D, lambda_=0.6, reads="stream")
    whole.update_many(steps)
    assert whole.chosen_dimension == model.chosen_dimension


@pytest.mark.parametrize("max_samples", [None, 120])
@pytest.mark.parametrize("reads", ["batch", "stream"])
def test_a_saved_model_keeps_its_dimension(reads: str, max_samples: int | None, tmp_path: Path) -> None:
    steps = linear_steps(9, 900, terminate=0.1, n_targets=2)
    model = model_of(steps[:500], reads=reads, max_samples=max_samples)
    model.save(tmp_path / "model")
    twin = load(tmp_path / "model")
    assert isinstance(twin, KrylovLSTD)
    assert twin.chosen_dimension == model.chosen_dimension
    assert [choice.decided for choice in twin.choices] == [True, True]
    assert_array_equal(twin.weights, model.weights)
    for m in (model, twin):
        m.update_many(steps[500:])  # a stream chooses anew on the way
    assert twin.chosen_dimension == model.chosen_dimension
    assert_array_equal(twin.weights, model.weights)


def test_the_curve_of_scores_can_be_drawn() -> None:
    from matplotlib.figure import Figure

    model = KrylovLSTD(D, lambda_=0.5)
    model.update_many(linear_steps(10, 400))
    choice, axes = model.choices[0], Figure().subplots()
    choice.plot(axes)
    assert_array_equal(axes.lines[0].get_xdata(), np.arange(1, choice.scores.size + 1))
    assert_array_equal(axes.lines[0].get_ydata(), choice.scores)
    assert_array_equal(axes.lines[-1].get_xdata(), [model.chosen_dimension] * 2)
    assert choice.scores.size >= choice.dimension


def test_nothing_large_waits_for_the_garbage_collector() -> None:
    """It comes by the number of objects, not by their size: with 10⁵ samples each read left 50 MB behind."""
    steps = random_transitions(np.random.default_rng(0), n_features=20, n_steps=300)
    folds = make_folds(steps.discounts, steps.trace_discounts, 5)

    def reads() -> None:
        model = KrylovLSTD(20, lambda_=0.5)
        model.update_many(steps)
        model.predict(steps.X[0])
        AdjointSystem(model.operator(), folds, np.eye(20)[:, :1], [WHOLE]).extend(4)

    reads()  # compiles, which leaves garbage of its own
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        reads()
        gc.collect()
        holders = (Arnoldi, KrylovPath)  # of the arrays, which the collector does not see
        left = [thing for thing in gc.garbage if type(thing) in holders]  # by type: others' dead proxies raise
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert left == []
