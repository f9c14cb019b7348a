"""λ and dimension by held-out episodes: against models that are fitted again without each fold."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tests.evaluation.logs import random_decisions, simulated
from tests.evaluation.plain import dense_rows, expected_blocks, in_blocks, whole
from tlstd import KrylovLSTD, Log, OneHot, TileCoder
from tlstd.core.arrays import FloatArray
from tlstd.evaluation import selection as module
from tlstd.evaluation.fits import Fit, fit_actions, fit_states
from tlstd.evaluation.policies import Target
from tlstd.evaluation.selection import DIMENSIONS, LAMBDAS, Selection, Setting, choose, thinned, weights
from tlstd.evaluation.steps import HIDDEN, Rows, steps_of
from tlstd.evaluation.systems import WHOLE, ActionSystem, StateSystem
from tlstd.krylov.search import fixed_dimension

N, GAMMA = 12, 0.9
BEHAVIOUR = np.random.default_rng(9).dirichlet(np.full(2, 4.0), N)
POLICY = np.random.default_rng(8).dirichlet(np.full(2, 4.0), N)


def logged(seed: int = 0, n_steps: int = 900, limit: int = 40, termination: float = 0.1) -> Log:
    process = random_decisions(np.random.default_rng(100), N, 2, 3, termination)
    return simulated(process, BEHAVIOUR, np.random.default_rng(seed), n_steps, limit, known=True)


def ratios(log: Log) -> FloatArray:
    assert log.actions is not None
    found: FloatArray = (POLICY / BEHAVIOUR)[log.observations, log.actions]
    return found


KINDS: dict[str, dict[str, Any]] = {
    "returns": {"termination": 0.2},
    "some cut off": {"termination": 0.2, "limit": 15},
    "cut off": {"limit": 6},
    "ratios": {"termination": 0.2},
    "few": {"n_steps": 60},
}


def fitted(kind: str) -> Fit:
    log = logged(**KINDS[kind])
    return fit_states(log, OneHot([0], [N - 1]), GAMMA, ratios(log) if kind == "ratios" else None)


def refit(fit: Fit, setting: Setting, fold: int) -> FloatArray:
    """The weights of :class:`KrylovLSTD` on the transitions of all episodes without a fold."""
    steps, log = fit.steps, fit.steps.log
    places = np.unique(steps.episode[steps.fold != fold])
    some = log.select(places)
    transitions = some.transitions(fit.features, GAMMA, rhos=None if fit.rhos is None else ratios(some))
    model = KrylovLSTD(fit.features.n_features, lambda_=setting.lambda_, dimension=setting.dimension)
    model.update_many(transitions)
    return model.weights[fit.system.ids]


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_those_of_the_estimator(kind: str) -> None:
    """Of all episodes, and without each fold, at the λ and the dimension of each."""
    fit = fitted(kind)
    assert fit.selection.decided == (kind != "few")
    assert_array_equal(fit.folds, [*fit.steps.folds, WHOLE])
    for column, fold in enumerate(fit.folds.tolist()):
        setting = fit.selection.whole if fold == WHOLE else fit.selection.of_fold[fold]
        expected = refit(fit, setting, fold)
        assert np.abs(fit.weights[0][:, column] - expected).max() <= 1e-9 * np.abs(expected).max()


def targets(fit: Fit) -> tuple[FloatArray, FloatArray]:
    """Returns in a loop, and which of them count; completed by the reference of the same fold where they have to be."""
    steps, rhos = fit.steps, fit.system.rhos
    seen = steps.tails <= HIDDEN
    completed = rhos is not None or seen.mean() < (0.75 if (steps.discounts == 0.0).any() else 0.5)
    X, found = dense_rows(fit.system.rows), np.zeros(len(steps))  # type: ignore[attr-defined]
    careful = Setting(0.0 if rhos is not None else LAMBDAS[-2], fixed_dimension(len(steps)))
    reference = {fold: refit(fit, careful, fold) for fold in steps.folds.tolist()} if completed else {}
    G = 0.0
    for t in reversed(range(len(steps))):
        v = reference.get(int(steps.fold[t]), np.zeros(X.shape[1]))
        if steps.ends[t]:
            G = float(X[steps.after[t]] @ v)
        rho = 1.0 if rhos is None else float(rhos[t])
        G = rho * (steps.rewards[t] + steps.discounts[t] * G) + (1.0 - rho) * float(X[steps.here[t]] @ v)
        found[t] = G
    return found, np.ones(len(steps)) if completed else seen.astype(float)


def held_out_squares(fit: Fit, setting: Setting) -> FloatArray:
    """(N,): the squared error of each step's return by a model of the other folds; 0 where it does not count."""
    steps, X = fit.steps, dense_rows(fit.system.rows)  # type: ignore[attr-defined]
    values, counts = targets(fit)
    out = np.zeros(len(steps))
    for fold in steps.folds.tolist():
        mine = steps.fold == fold
        out[mine] = counts[mine] * (X[steps.here[mine]] @ refit(fit, setting, fold) - values[mine]) ** 2
    return out


@pytest.mark.parametrize("kind", ["returns", "some cut off", "cut off", "ratios"])
def test_scores_are_errors_of_models_that_are_fitted_again(kind: str) -> None:
    """Of the best dimension of each λ, and no other dimension nearby is better; "whole" is the best of all."""
    fit = fitted(kind)
    found, counts = fit.selection, targets(fit)[1]
    assert ("completed" in found.note) == (kind in ("cut off", "ratios"))
    assert kind != "some cut off" or 0.75 < counts.mean() < 1.0
    for setting, score in found.scores.items():
        assert score == pytest.approx(held_out_squares(fit, setting).sum() / counts.sum(), rel=1e-9)
        for dimension in {max(1, setting.dimension - 1), setting.dimension + 1}:
            other = held_out_squares(fit, Setting(setting.lambda_, dimension)).sum() / counts.sum()
            assert other >= score * (1.0 - 1e-5)
    assert found.scores[found.whole] <= min(found.scores.values()) * (1.0 + 1e-5)
    assert len({setting.lambda_ for setting in found.scores}) == (3 if kind == "ratios" else 5)


@pytest.mark.parametrize("kind", ["returns", "ratios"])
def test_the_setting_of_a_fold_is_the_best_in_the_others(kind: str) -> None:
    fit = fitted(kind)
    candidates = {*fit.selection.scores, *fit.selection.of_fold.values()}
    squares = {setting: held_out_squares(fit, setting) for setting in candidates}
    for fold, chosen in fit.selection.of_fold.items():
        others = fit.steps.fold != fold
        means = {setting: float(own[others].sum()) for setting, own in squares.items()}
        assert means[chosen] <= min(means.values()) * (1.0 + 1e-5)


def test_what_a_fold_is_predicted_by_has_not_learned_from_it() -> None:
    """At a given λ and dimension, other rewards in a fold change the weights of all columns but its own."""
    fit = fitted("returns")
    steps, rng = fit.steps, np.random.default_rng(0)
    fold = int(steps.folds[1])
    rewards = steps.log.rewards.copy()
    rewards[steps.kept[steps.fold == fold]] = rng.standard_normal(int((steps.fold == fold).sum()))
    other = StateSystem(steps_of(replace(steps.log, rewards=rewards), GAMMA), fit.system.rows)  # type: ignore[attr-defined]
    _, moved = weights(other, replace(fit.selection, paths={}))
    same = np.abs(moved - fit.weights[0]).max(axis=0) < 1e-12
    assert_array_equal(same, fit.folds == fold)


@pytest.mark.parametrize("limit", [40, 8])
def test_what_is_chosen_is_nearly_best(limit: int) -> None:
    """The error of known values over logs with noisy rewards: hardly above that of the best λ and dimension of all."""
    process = random_decisions(np.random.default_rng(100), N, 2, 3, 0.1)
    truth = (BEHAVIOUR * process.action_values(BEHAVIOUR, GAMMA)).sum(axis=1)
    settings = [Setting(lambda_, m) for lambda_ in LAMBDAS for m in (1, 2, 3, 5, 8, 12)]
    chosen, every = [], []
    for seed in range(12):
        log = logged(seed, 2_400, limit=limit)
        noisy = replace(log, rewards=log.rewards + np.random.default_rng(seed).standard_normal(len(log)))
        fit = fit_states(noisy, OneHot([0], [N - 1]), GAMMA)
        visits = np.bincount(log.observations, minlength=N) / len(log)
        assert fit.selection.decided
        chosen.append(np.sqrt(visits @ (fit.weights[0][:, -1] - truth) ** 2))
        every.append([np.sqrt(visits @ (refit(fit, setting, WHOLE) - truth) ** 2) for setting in settings])
    means = np.mean(every, axis=0)
    assert np.mean(chosen) < 1.2 * means.min()
    assert np.mean(chosen) < 0.9 * np.median(means)


# --- too little to choose by ------------------------------------------------------------------------------------------


def single(log: Log) -> StateSystem:
    steps = steps_of(log, GAMMA)
    return StateSystem(steps, Rows.of(OneHot([0], [N - 1]), steps.states[:, None].astype(float)))


def test_nothing_is_chosen_where_too_little_counts() -> None:
    few = choose(single(logged(n_steps=60)))
    assert few.note.startswith("Nothing was chosen: ")
    assert "held-out states count as" in few.note
    assert few.whole == Setting(LAMBDAS[-2], fixed_dimension(len(steps_of(logged(n_steps=60), GAMMA))))
    assert set(few.of_fold.values()) == {few.whole}
    log = logged(n_steps=900)
    steps = steps_of(log, GAMMA)
    together = log.select(np.unique(steps.episode[steps.fold == steps.fold[0]]))
    assert "too few episodes" in choose(single(together)).note
    log = logged(n_steps=400)
    steps = steps_of(log, GAMMA)
    heavy = np.where(np.arange(len(steps)) == 5, 1e6, 1e-6)
    rows = Rows.of(OneHot([0], [N - 1]), steps.states[:, None].astype(float))
    assert "by their importance ratios" in choose(StateSystem(steps, rows, heavy)).note


def test_without_a_discount_there_is_no_trace() -> None:
    log = logged(n_steps=600)
    steps = steps_of(log, 0.0)
    found = choose(StateSystem(steps, Rows.of(OneHot([0], [N - 1]), steps.states[:, None].astype(float))))
    assert found.whole.lambda_ == 0.0
    assert {setting.lambda_ for setting in found.scores} == {0.0}


# --- large logs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["states", "ratios", "actions"])
def test_a_thinned_system_is_that_of_some_whole_episodes(kind: str) -> None:
    log = logged(n_steps=2_000)
    steps = steps_of(log, GAMMA)
    rows = Rows.of(OneHot([0], [N - 1]), steps.states[:, None].astype(float))
    assert log.actions is not None
    system: Any = StateSystem(steps, rows, ratios(log)[steps.kept] if kind == "ratios" else None)
    if kind == "actions":
        system = ActionSystem(steps, rows, log.actions[steps.kept].astype(np.int64), POLICY[steps.states])
    small = thinned(system, 500)
    assert 300 < len(small.steps) < 700
    assert thinned(system, 2_500) is system
    kept = np.isin(steps.kept, small.steps.kept)
    assert_array_equal(np.unique(steps.group[kept]).size, small.steps.n_groups)
    assert_array_equal(small.steps.fold, steps.fold[kept])
    for group in np.unique(steps.group[kept]):
        assert kept[steps.group == group].all()
    V = np.random.default_rng(0).standard_normal((system.n, 2))
    for ours, theirs in zip(small.on(V), system.on(V), strict=True):
        assert_allclose(ours, theirs[kept], atol=1e-12)
    assert_array_equal(small.rewards[0], steps.rewards[kept])
    if kind == "ratios":
        assert_array_equal(small.rhos, system.rhos[kept])


def test_large_logs_have_weights_of_all_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever part of the log the setting was chosen on."""
    monkeypatch.setattr(module, "COMPARED", 300)
    monkeypatch.setattr(module, "MOST", 500)
    fit = fit_states(logged(n_steps=2_000, termination=0.2), OneHot([0], [N - 1]), GAMMA)
    assert fit.selection.decided
    for column, fold in enumerate(fit.folds.tolist()):
        setting = fit.selection.whole if fold == WHOLE else fit.selection.of_fold[fold]
        assert_allclose(fit.weights[0][:, column], refit(fit, setting, fold), atol=1e-9)


def test_a_part_that_decides_where_the_whole_does_not_lends_no_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """One ratio that outweighs all others is not in the part on which λ was chosen: weights are of all steps."""
    monkeypatch.setattr(module, "COMPARED", 600)
    log = logged(n_steps=2_000, termination=0.2)
    steps = steps_of(log, GAMMA)
    rows = Rows.of(OneHot([0], [N - 1]), steps.states[:, None].astype(float))
    small = thinned(StateSystem(steps, rows), 600)
    left_out = int(np.flatnonzero(~np.isin(steps.kept, small.steps.kept))[40])
    system = StateSystem(steps, rows, np.where(np.arange(len(steps)) == left_out, 1e5, 1.0))
    found = choose(system)
    assert found.decided
    folds, own = weights(system, found)
    for column, fold in enumerate(folds[:-1].tolist()):
        setting = found.of_fold[fold]
        places = np.unique(steps.episode[steps.fold != fold])
        rhos = np.ones(len(log))
        rhos[steps.kept] = system.rhos
        model = KrylovLSTD(N, lambda_=setting.lambda_, dimension=setting.dimension)
        some = log.select(places)
        model.update_many(some.transitions(OneHot([0], [N - 1]), GAMMA, rhos=rhos[log.rows_of(places)]))
        assert_allclose(own[:, column], model.weights[rows.ids], rtol=1e-8, atol=1e-9)


# --- action values ----------------------------------------------------------------------------------------------------


def dense_choice(fit: Fit, dimension: int) -> FloatArray:
    """‖b_k - A_k w‖² of each fold k in the norm of the inverse covariance, w of least residual in the Krylov space."""
    system, steps = fit.system, fit.steps
    assert isinstance(system, ActionSystem)
    Phi = dense_rows(system.rows)
    X, X_next = in_blocks(Phi[steps.here], system.actions, 2), expected_blocks(Phi, system.chances)[steps.after]
    D, r = X - steps.discounts[:, None] * X_next, system.rewards[0]
    C = X.T @ X / len(X) + 1e-3 * (Phi**2).sum() / len(Phi) * np.eye(system.n)
    out = []
    for fold in steps.folds.tolist():
        mine = steps.fold == fold
        found = whole(steps, X, X_next, 0.0, None, fold, r)
        K = np.column_stack([np.linalg.matrix_power(found.A, i) @ found.b for i in range(dimension)])
        w = K @ np.linalg.lstsq(found.A @ K, found.b, rcond=None)[0]
        g = X[mine].T @ (r[mine] - D[mine] @ w) / mine.sum()
        out.append(float(g @ np.linalg.solve(C, g)))
    return np.array(out)


@pytest.mark.parametrize("features", ["table", "tiles"])
def test_residuals_by_a_dense_computation(features: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores of small dimensions; with many features by conjugate gradients."""
    log = logged(n_steps=500)
    coder: Any = OneHot([0], [N - 1]) if features == "table" else TileCoder([0.0], [float(N)], tiles=3, tilings=2)
    target = Target(function=lambda s: POLICY[s])
    fit = fit_actions(log, coder, GAMMA, target)
    scores = fit.selection.scores
    for dimension in (1, 2, 3, 4):
        expected = dense_choice(fit, dimension)
        assert scores[Setting(0.0, dimension)] == pytest.approx(expected.mean(), rel=1e-6)
    monkeypatch.setattr(module, "DENSE", 1)
    again = fit_actions(log, coder, GAMMA, target).selection.scores
    assert_allclose(list(again.values()), list(scores.values()), rtol=2e-2)


def test_the_largest_within_one_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all folds, and for each fold by the errors in the others."""
    monkeypatch.setattr(module, "AT_LEAST", 1)
    fit = fit_actions(logged(n_steps=500), OneHot([0], [N - 1]), GAMMA, Target(function=lambda s: POLICY[s]))
    compared = [setting.dimension for setting in fit.selection.scores]
    assert compared == list(DIMENSIONS[: len(compared)])
    table = np.array([dense_choice(fit, min(m, 2 * N)) for m in compared if m <= 6])
    assert 6 in compared

    def chosen(columns: list[int]) -> int:
        own = table[:, columns]
        best = int(own.sum(axis=1).argmin())
        within = []
        for i in range(len(own)):
            apart = own[i] - own[best]
            if apart.mean() <= apart.std(ddof=1) / np.sqrt(apart.size):
                within.append(i)
        return compared[within[-1]]

    folds = fit.steps.folds.tolist()
    found = {fold: fit.selection.of_fold[fold].dimension for fold in folds} | {WHOLE: fit.selection.whole.dimension}
    if max(found.values()) <= 6:
        assert found[WHOLE] == chosen(list(range(len(folds))))
        for j, fold in enumerate(folds):
            assert found[fold] == chosen([i for i in range(len(folds)) if i != j])


def test_too_few_episodes_for_actions() -> None:
    log = Log.from_arrays([0, 1], [0.0, 1.0], actions=[0, 1], terminated=[0, 1], discrete=True)
    found = fit_actions(log, OneHot([0], [1]), GAMMA, Target(function=lambda s: np.eye(2)[s.astype(int)]))
    assert "Nothing was chosen" in found.selection.note
    assert isinstance(found.selection, Selection)
    assert found.weights[0].shape == (4, found.folds.size)
