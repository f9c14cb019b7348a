"""The smoothness task by hand, and its claims on made-up results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tlstd_lab import statistics
from tlstd_lab.panel import Results
from tlstd_lab.problems import problem, stream
from tlstd_lab.questions import panel
from tlstd_lab.questions.smoothness import task
from tlstd_lab.store import Store

from tlstd.classic.td import TD
from tlstd.core.arrays import FloatArray
from tlstd.domains import boyan_chain
from tlstd.truncated.tlstd import TLSTD


def test_summary_by_hand() -> None:
    there_and_back = np.array([[2.0, 0.0], [2.0, 3.0], [2.0, 0.0], [2.0, 1.0]])
    columns = task.summary(there_and_back, np.array([2.0, 0.0]))
    size = np.sqrt(5.0 / 2.0)
    changes = np.array([3.0, 3.0, 1.0]) / np.sqrt(2.0)
    assert columns["change"] == pytest.approx(changes.mean() / size)
    assert columns["jump"] == pytest.approx(changes.max() / size)
    assert columns["wander"] == pytest.approx(7.0)
    assert columns["rmse"] == pytest.approx(4.0 / np.sqrt(2.0) / 4.0)
    assert columns["wobble"] == pytest.approx((3.0 + 3.0 + 1.0) / 3.0)
    averaged = task.summary(there_and_back, np.array([2.0, 0.0]), averaged=True)
    means = np.array([0.0, 1.5, 1.0, 1.0])
    assert averaged["wander"] == pytest.approx(np.abs(np.diff(means)).sum() / 1.0)


def test_divergence_is_infinite() -> None:
    columns = task.summary(np.array([[1.0], [np.inf]]), np.zeros(1))
    assert all(column[0] == np.inf for column in columns.values())


def test_damping_is_tikhonov() -> None:
    chain = boyan_chain(25)
    n = chain.X.shape[1]
    model = TLSTD(n, n, lambda_=0.5, rcond=0.0)
    steps = chain.sample(2000, np.random.default_rng(0))
    model.update_many(steps)
    z, A, b = np.zeros(n), np.zeros((n, n)), np.zeros(n)
    for step in steps:
        x, x_next = np.asarray(step.x), np.asarray(step.x_next)
        z = step.trace_discount * 0.5 * z + x
        A += np.outer(z, x - step.discount * x_next) / 2000
        b += z * float(step.reward) / 2000
    eta = (0.1 * np.linalg.norm(A, 2)) ** 2
    expected = chain.X @ np.linalg.solve(A.T @ A + eta * np.eye(n), A.T @ b)
    assert_allclose(task.predictions(model, chain.X, 0.1), expected, atol=1e-8)


def test_task_by_hand() -> None:
    made, steps = problem("car-tiles"), stream("car-tiles", 60, 2)
    settings = {
        "problem": "car-tiles",
        "estimator": {"class": "TD", "lambda_": 0.9, "step_size": 0.02},
        "start": 50,
        "stop": 60,
    }
    model = TD(1000, lambda_=0.9, step_size=0.02)
    model.update_many(steps[:50])
    states = np.arange(0, 400, 2)
    values = [model.predict(made.X)[states]]
    for t in range(50, 60):
        model.update(steps[t])
        values.append(model.predict(made.X)[states])
    for every, read in ((1, values), (5, [values[0]] * 5 + [values[5]] * 5 + [values[10]])):
        columns = task.smoothness(settings | {"every": every}, seed=2)
        expected = task.summary(np.array(read), made.truth[states])
        for name, column in expected.items():
            assert_allclose(columns[name], column, rtol=1e-6)


class MadeUp(Results):
    """Changes and errors by variant; the best step size is the second."""

    def __init__(self, folder: Any, changes: dict[str, float], errors: dict[str, float]) -> None:
        super().__init__(Store(folder), "paper")
        self.changes, self.errors = changes, errors

    def load(self, specs: Any) -> None:
        """There is nothing to read."""

    def column(self, specs: Any, name: str) -> FloatArray:
        settings = specs[0].plain_settings()
        kind = settings["estimator"]["class"]
        if kind == "TLSTD":
            kind = "averaged" if settings.get("averaged") else "damped" if settings.get("damping") else "plain"
        value = self.errors.get(kind, 1.0) if name == "rmse" else self.changes.get(kind, 1.0)
        return np.full((len(specs), 1), value)


def test_claims(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "RESAMPLES", 100)
    claims = {claim.name.removeprefix("smoothness-energy-"): claim for claim in panel("smoothness-energy").claims()}
    results = MadeUp(
        tmp_path, {"TD": 0.2, "ILSTD": 2.0, "averaged": 0.3, "damped": 0.4, "ATD": 1.0}, {"damped": 1.1, "ATD": 1.0}
    )
    verdicts = {name: claim.judge(results).verdict for name, claim in claims.items()}
    assert verdicts == {
        "rougher-TD": "reproduced",
        "rougher-iLSTD": "not",
        "smoother": "reproduced",
        "averaged": "reproduced",
        "damped": "partly",
    }
    assert claims["rougher-TD"].where != claims["smoother"].where
    found = claims["smoother"].judge(results)
    assert found.number.value == pytest.approx(0.3)
