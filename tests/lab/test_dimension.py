"""Errors by Krylov dimension and rank against dense algebra; what is chosen against what is best."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tlstd_lab import statistics
from tlstd_lab.problems import problem, stream
from tlstd_lab.processes.garnet import garnet_off_policy
from tlstd_lab.questions import panel
from tlstd_lab.questions.chosen.task import chosen
from tlstd_lab.questions.chosen.task import dimension as chosen_dimension
from tlstd_lab.questions.dimension.task import dimension, garnet
from tlstd_lab.questions.directions.task import krylov_basis
from tlstd_lab.questions.memory.task import memory
from tlstd_lab.spec import RunSpec

from tests.lab.synthetic import Synthetic
from tlstd import TLSTD, KrylovLSTD


def system(steps: Any, lambda_: float) -> tuple[Any, Any]:
    X, X_next = (M if isinstance(M, np.ndarray) else M.toarray() for M in (steps.X, steps.X_next))
    A, b, z = np.zeros((X.shape[1],) * 2), np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for t in range(len(X)):
        z = steps.rhos[t] * (steps.trace_discounts[t] * lambda_ * z + X[t])
        A += np.outer(z, X[t] - steps.discounts[t] * X_next[t])
        b += z * steps.rewards[t]
    return A, b


def solutions(A: Any, b: Any, m: int) -> tuple[Any, Any]:
    Q = krylov_basis(A, b, m)
    return Q @ np.linalg.lstsq(A @ Q, b, rcond=None)[0], Q @ np.linalg.solve(Q.T @ A @ Q, Q.T @ b)


def test_by_dimension() -> None:
    found = dimension({"problem": "car-tiles", "n_samples": 300, "lambda_": 0.9, "dimensions": [1, 4, 9]}, 1)
    made: Any = problem("car-tiles")
    A, b = system(stream("car-tiles", 300, 1), 0.9)
    for at, m in enumerate((1, 4, 9)):
        for name, w in zip(("residual", "galerkin"), solutions(A, b, m), strict=True):
            assert_allclose(found[name][at], made.rmse(made.X @ w), rtol=1e-7)


def test_off_policy() -> None:
    settings = {"n_states": 60, "n_features": 30, "n_samples": 800, "lambda_": 0.0, "dimensions": [1, 3, 8]}
    found = garnet(settings, 4)
    process = garnet_off_policy(60, 4, 5, 30, np.random.default_rng(4), gamma=0.95, features="binary")
    A, b = system(process.sample(800, np.random.default_rng([4, 1])), 0.0)
    U, sigma, Vt = np.linalg.svd(A)
    values = process.values()
    for at, m in enumerate((1, 3, 8)):
        cut = Vt[:m].T @ ((U[:, :m].T @ b) / sigma[:m])
        for name, w in zip(("residual", "galerkin", "rank"), (*solutions(A, b, m), cut), strict=True):
            error = np.sqrt(np.mean((process.X @ w - values) ** 2) / np.mean(values**2))
            assert_allclose(found[name][at], error, rtol=1e-7)


def test_the_chosen_dimension_is_the_models() -> None:
    found = chosen_dimension({"problem": "car-tiles", "n_samples": 600, "lambda_": 0.9, "longest": 40}, 0)
    model, made = KrylovLSTD(1000, lambda_=0.9), problem("car-tiles")
    model.update_many(stream("car-tiles", 600, 0))
    error = made.rmse(model.predict(made.X))
    (taken,) = np.flatnonzero(found["chosen"])
    assert found["values"][taken] == model.chosen_dimension
    assert_allclose(found["rmse"][taken], error, rtol=1e-8)
    assert found["decided"][0] == 1.0


def test_one_candidate_is_chosen_and_all_are_measured() -> None:
    settings: dict[str, Any] = {"problem": "car-tiles", "n_samples": 400, "parameter": "rank", "values": [3, 30]}
    settings["estimator"] = {"class": "TLSTD", "lambda_": 1.0, "rcond": 0.01}
    found, made = chosen(settings, 0), problem("car-tiles")
    for at, rank in enumerate((3, 30)):
        model = TLSTD(1000, rank, lambda_=1.0, rcond=0.01)
        model.update_many(stream("car-tiles", 400, 0))
        assert_allclose(found["rmse"][at], made.rmse(model.predict(made.X)))
    assert sorted(found["chosen"]) == [0.0, 1.0]


def test_memory_is_that_of_the_model() -> None:
    sizes = {}
    for kept, n in product((200, None), (2_000, 4_000)):
        estimator = {"class": "KrylovLSTD", "lambda_": 0.9} | ({"max_samples": kept} if kept else {})
        found = memory({"problem": "car-tiles", "estimator": estimator, "n_samples": n}, 0)
        sizes[kept, n] = found["megabytes"][0]
    assert sizes[200, 4_000] < 1.2 * sizes[200, 2_000]
    assert sizes[None, 4_000] > 1.7 * sizes[None, 2_000]


@pytest.fixture(autouse=True)
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "RESAMPLES", 100)


def test_claims_on_dimension_and_rank() -> None:
    def columns(spec: RunSpec) -> dict[str, Any]:
        if spec.task == "curve":  # best at rank 200
            return {"rmse": [300.0 - spec.settings["estimator"]["rank"] + spec.seed]}
        m = np.array(spec.settings["dimensions"], dtype=np.float64)
        return {"residual": 90.0 + np.abs(m - 20.0) + spec.seed, "galerkin": np.where(m == 12, 900.0, 95.0)}

    verdicts = {c.name: c.judge(Synthetic("paper", columns)) for c in panel("dimension-energy").claims()}
    found = {name.rpartition("-")[2]: finding for name, finding in verdicts.items()}
    expected = {"best": "reproduced", "fewer": "reproduced", "residual": "not", "safe": "reproduced"}
    assert {name: finding.verdict for name, finding in found.items()} == expected
    assert found["best"].number.value == pytest.approx(92.0 / 102.0, rel=1e-2)
    assert found["fewer"].number.value == pytest.approx(12.0 / 200.0)
    assert verdicts["dimension-energy-safe"].note.startswith("at dimension 12")


@pytest.mark.parametrize(("good", "verdict"), [(True, "reproduced"), (False, "not")])
def test_claims_on_what_was_chosen(good: bool, verdict: str) -> None:
    def columns(spec: RunSpec) -> dict[str, Any]:
        best = np.array([0.0, 1.0] if good else [1.0, 0.0])
        values = np.array([1e-1, 1e-4])
        return {"values": values, "rmse": [8.0 + spec.seed, 4.0], "visited": [8.0, 4.0], "chosen": best}

    for claim in panel("chosen").claims():
        finding = claim.judge(Synthetic("paper", columns))
        assert finding.verdict == ("reproduced" if claim.name == "chosen-default-cutoff" else verdict)
        if not claim.name.endswith("visited") and claim.name != "chosen-default-cutoff":
            assert finding.number.value == pytest.approx(1.0 if good else 10.0 / 4.0)
