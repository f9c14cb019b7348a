"""The rules that choose a cut-off, where the answer is known, and the claims on made-up results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tlstd_lab.panel import Results
from tlstd_lab.problems import problem, stream
from tlstd_lab.questions import panel
from tlstd_lab.questions.cutoff import task
from tlstd_lab.questions.cutoff.panel import CUTOFFS
from tlstd_lab.store import Run, Store

from tlstd.classic.lstd import LSTD
from tlstd.core.arrays import FloatArray
from tlstd.data.transitions import Transitions
from tlstd.truncated.tlstd import TLSTD

N, T = 30, 400
GRID = np.array(CUTOFFS)


def regression(noise: float, seed: int = 0) -> tuple[Transitions, FloatArray, FloatArray]:
    """Episodes of one step, so that LSTD is least squares; features whose directions fade, rewards with known noise.

    Returns the transitions, the true weights and the covariance of the features.
    """
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.standard_normal((N, N)))[0]
    scales = 10.0 ** np.linspace(0.0, -3.0, N)
    X = rng.standard_normal((T, N)) * scales @ Q.T
    w = Q @ np.linspace(1.0, 0.5, N)  # as large along small directions as along large ones
    rewards = X @ w + noise * rng.standard_normal(T)
    return Transitions(X, rewards, X, discounts=np.zeros(T), trace_discounts=np.zeros(T)), w, Q * scales**2 @ Q.T


def learned(steps: Transitions) -> task.Factors:
    model = LSTD(N, lambda_=0.0)
    model.update_many(steps)
    return task.factorise(model)


def risks(factors: task.Factors, w: FloatArray, covariance: FloatArray, cutoffs: FloatArray) -> FloatArray:
    errors = factors.weights(N, cutoffs) - w[:, None]
    return np.asarray(np.einsum("ic,ij,jc->c", errors, covariance, errors))


def held_out(steps: Transitions) -> float:
    """The rule with its two folds, by hand."""
    even = np.arange(T) % 2 == 0
    errors = np.zeros((T, GRID.size))
    for mine in (even, ~even):
        weights = learned(task.select(steps, ~mine)).weights(N, GRID)
        errors[mine] = (steps.X[mine] @ weights - steps.rewards[mine, None]) ** 2
    return task.held_out_cutoff(errors, GRID)


@pytest.mark.parametrize("noise", [1e-4, 0.01, 0.3])
def test_noise_rule_finds_nearly_the_least_risk(noise: float) -> None:
    ratios = []
    for seed in range(5):
        steps, w, covariance = regression(noise, seed)
        factors = learned(steps)
        every = np.concatenate([factors.sigma / factors.sigma[0] * (1 - 1e-12), [1.0]])
        choice = task.noise_cutoff(factors, steps, lambda_=0.0)
        (risk,) = risks(factors, w, covariance, np.array([choice]))
        ratios.append(risk / risks(factors, w, covariance, every).min())
    assert np.mean(ratios) < 1.5


def test_rules_keep_more_with_less_noise() -> None:
    choices = []
    for noise in (1e-4, 0.01, 0.3):
        steps, *_ = regression(noise)
        choices.append((task.noise_cutoff(learned(steps), steps, 0.0), held_out(steps)))
    by_noise, by_held_out = np.array(choices).T
    assert (np.diff(by_noise) > 0.0).all()
    assert (np.diff(by_held_out) > 0.0).all()


def test_held_out_rule_is_near_the_best() -> None:
    for noise in (0.01, 0.3):
        steps, w, covariance = regression(noise)
        all_risks = risks(learned(steps), w, covariance, np.append(GRID, held_out(steps))) + noise**2
        assert all_risks[-1] < 1.1 * all_risks.min()


def test_too_few_episodes() -> None:
    assert task.held_out_cutoff(np.ones((1, 3)), np.array([0.1, 0.01, 0.0])) == task.FALLBACK


def test_weights_are_those_of_the_estimators() -> None:
    steps, made = stream("car-tiles", 300, 0), problem("car-tiles")
    n = made.features.n_features
    whole = task.factorise(_learned(LSTD(n, lambda_=0.9), steps))
    cut = task.factorise(_learned(TLSTD(n, 30, lambda_=0.9, rcond=0.0), steps))
    for rcond in (0.1, 1e-2, 1e-3):
        expected = _learned(LSTD(n, lambda_=0.9, rcond=rcond), steps).weights
        assert_allclose(whole.weights(n, np.array([rcond]))[:, 0], expected, atol=1e-8)
        expected = _learned(TLSTD(n, 30, lambda_=0.9, rcond=rcond), steps).weights
        assert_allclose(cut.weights(n, np.array([rcond]))[:, 0], expected, atol=1e-8)


def _learned(model: Any, steps: Transitions) -> Any:
    model.update_many(steps)
    return model


def test_task() -> None:
    settings: dict[str, Any] = {
        "problem": "car-tiles",
        "estimator": {"class": "LSTD", "lambda_": 0.9},
        "samples": [150, 300],
        "cutoffs": [0.1, 0.01, 1e-3],
    }
    columns = task.cutoffs(settings, seed=0)
    assert columns["samples"].tolist() == [150, 300]
    made, steps = problem("car-tiles"), stream("car-tiles", 300, 0)
    for row, count in enumerate((150, 300)):
        for i, rcond in enumerate(settings["cutoffs"]):
            model = _learned(LSTD(1000, lambda_=0.9, rcond=rcond), steps[:count])
            assert columns[f"fixed_{i}"][row] == pytest.approx(made.rmse(model.predict(made.X)))
        chosen = settings["cutoffs"].index(columns["held_out_cutoff"][row])
        assert columns["held_out"][row] == columns[f"fixed_{chosen}"][row]
        assert 0.0 < columns["noise_cutoff"][row] < 1.0


def test_episodes_of_a_fold_keep_their_traces() -> None:
    steps = stream("car-tiles", 400, 1)
    number = task.episode_numbers(steps)
    part = task.select(steps, number % 2 == 1)
    assert (part.trace_discounts == 0.0).sum() == np.unique(number[number % 2 == 1]).size
    longer = task.numbered_folds(stream("car-tiles", 500, 1))
    for short, long in zip(task.numbered_folds(steps)[:3], longer[:3], strict=True):
        assert np.array_equal(short, long[:400])


class MadeUp(Results):
    """Errors of fixed cut-offs with a valley, and of rules at given ratios to it."""

    def __init__(self, folder: Any, *, held_out: float, noise: float, default: float, first: int, last: int) -> None:
        super().__init__(Store(folder), "quick")
        self.ratios, self.default, self.valleys = {"held_out": held_out, "noise": noise}, default, (first, first, last)

    def column(self, specs: Any, name: str) -> FloatArray:
        if name in self.ratios:
            return np.full((len(specs), 3), self.ratios[name])
        i = int(name.partition("_")[2])
        errors = [1.0 if i == valley else 2.0 + abs(i - valley) for valley in self.valleys]
        return np.tile([self.default] * 3 if i == CUTOFFS.index(1e-4) else errors, (len(specs), 1))

    def __getitem__(self, spec: Any) -> Run:
        class Columns:
            columns = {"samples": np.array([500, 2000, 5000])}  # noqa: RUF012

        return Columns()  # type: ignore[return-value]


def test_claims(tmp_path: Any) -> None:
    claims = {claim.name.removeprefix("cutoff-rbf-"): claim for claim in panel("cutoff-rbf").claims()}
    good = MadeUp(tmp_path, held_out=1.05, noise=9.0, default=1.4, first=2, last=8)
    verdicts = {name: claim.judge(good).verdict for name, claim in claims.items()}
    assert verdicts == {
        "falls": "reproduced",
        "default": "partly",
        "held-out": "reproduced",
        "noise": "not",
        "better": "reproduced",
    }
    bad = MadeUp(tmp_path, held_out=2.0, noise=1.1, default=1.1, first=8, last=2)
    verdicts = {name: claim.judge(bad).verdict for name, claim in claims.items()}
    assert verdicts == {
        "falls": "not",
        "default": "reproduced",
        "held-out": "not",
        "noise": "reproduced",
        "better": "not",
    }
