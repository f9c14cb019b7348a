"""The task with noise features by hand, and the claims on selection and sketches with made-up errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tlstd_lab.questions import panel
from tlstd_lab.questions.selection.task import chain, selection
from tlstd_lab.spec import RunSpec

from tests.lab.synthetic import Synthetic


def test_the_chain_by_hand() -> None:
    """Symmetric; from an end the next reward comes at once with probability 0.9, and the values solve Bellman's."""
    process = chain()
    values = process.values()
    np.testing.assert_allclose(values, values[::-1])
    np.testing.assert_allclose(values[0], 1.0 + 0.9 * (0.9 * values[0] + 0.1 * values[1]))
    np.testing.assert_allclose(values[5], 0.9 * (0.9 * values[4] + 0.1 * values[6]))


def test_the_task_sees_what_it_should() -> None:
    """Without noise LSTD is near the truth; noise costs it much, and LARS-TD less, of which it takes few."""
    settings: dict[str, Any] = {"samples": 400, "noise": (0, 300), "estimator": {"class": "LSTD", "lambda_": 0.0}}
    lstd = selection(settings, seed=1)
    sparse = selection(settings | {"estimator": {"class": "LARSTD", "lambda_": 0.0, "penalty": 0.03}}, seed=1)
    assert lstd["rmse"][0] < 0.5
    assert lstd["rmse"][0] < sparse["rmse"][1] < 0.8 * lstd["rmse"][1]
    assert lstd["n_weights"].tolist() == [6, 306]
    assert sparse["n_weights"][1] < 100


@pytest.mark.parametrize(
    ("name", "errors", "verdicts"),
    [
        ("selection", {"LARSTD": 1.0, "LSTD": 3.0, "KrylovLSTD": 1.5}, {"l1": "reproduced", "krylov": "partly"}),
        ("selection", {"LARSTD": 1.0, "LSTD": 1.0, "KrylovLSTD": 0.5}, {"l1": "not", "krylov": "not"}),
        (
            "sketches-car-tiles",
            {"ProjectedLSTD": 3.0, "SketchedLSTD": 1.0, "TLSTD": 1.0},
            {"left": "reproduced", "data": "reproduced"},
        ),
        ("sketches-car-rbf", {"ProjectedLSTD": 1.0, "SketchedLSTD": 2.0, "TLSTD": 4.0}, {"left": "not", "data": "not"}),
    ],
)
def test_claims(name: str, errors: dict[str, float], verdicts: dict[str, str]) -> None:
    def columns(spec: RunSpec) -> dict[str, Any]:
        settings: Any = spec.plain_settings()
        points = settings.get("noise", settings["samples"])
        return {"rmse": np.full(len(points), errors[settings["estimator"]["class"]] + 1e-3 * spec.seed)}

    results = Synthetic("quick", columns)
    for claim in panel(name).claims():
        assert claim.judge(results).verdict == verdicts[claim.name.removeprefix(f"{name}-")]
