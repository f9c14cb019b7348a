"""Shares of a vector in the first directions, against closed forms; and what the task's columns are."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from numpy.testing import assert_allclose
from tlstd_lab.problems import problem, stream
from tlstd_lab.questions.directions.task import directions, krylov_basis, shares

from tlstd import LSTD


def test_krylov_basis_spans_the_powers() -> None:
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((12, 12)), rng.standard_normal(12)
    Q = krylov_basis(A, b, 4)
    powers = np.column_stack([np.linalg.matrix_power(A, k) @ b for k in range(4)])
    assert_allclose(Q.T @ Q, np.eye(4), atol=1e-14)
    assert_allclose(Q @ (Q.T @ powers), powers, rtol=1e-10, atol=1e-10)
    assert krylov_basis(np.eye(5), np.arange(5.0), 3).shape == (5, 1)  # the space ends


def test_shares_of_dependent_columns() -> None:
    M = np.array([[1.0, 2.0, 1.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    assert_allclose(shares(M, np.array([1.0, 2.0, 2.0]), [1, 2, 3, 9]), [1 / 9, 1 / 9, 5 / 9, 5 / 9], atol=1e-12)


def test_columns_are_those_of_the_dense_system() -> None:
    settings: dict[str, Any] = {"problem": "car-tiles", "n_samples": 400, "lambda_": 0.9, "dimensions": [1, 5, 40]}
    found = directions(settings, seed=3)
    made: Any = problem("car-tiles")
    steps: Any = stream("car-tiles", 400, 3)
    X, X_next = steps.X.toarray(), steps.X_next.toarray()
    Z, z = np.zeros((400, 1000)), np.zeros(1000)
    for t in range(400):
        Z[t] = z = steps.trace_discounts[t] * 0.9 * z + X[t]
    A, b = Z.T @ (X - steps.discounts[:, None] * X_next), Z.T @ steps.rewards
    _, _, Vt = scipy.linalg.svd(A)
    states = made.X.toarray()
    spaces = {"singular": Vt[:40].T, "krylov": krylov_basis(A, b, 40)}
    model = LSTD(1000, lambda_=0.9, rcond=1e-4)
    model.update_many(steps)
    for name, Q in spaces.items():
        for i, r in enumerate(settings["dimensions"]):
            for what, M, y in (("b", A, b), ("truth", states, made.truth), ("solution", states, model.predict(made.X))):
                basis = scipy.linalg.orth(M @ Q[:, :r], rcond=1e-11)
                expected = np.sum((basis.T @ y) ** 2) / np.sum(y**2)
                assert_allclose(found[f"{name}_{what}"][i], expected, atol=2e-5, err_msg=f"{name} {what} {r}")
