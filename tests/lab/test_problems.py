from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tlstd_lab import learning as learn
from tlstd_lab.problems import PROBLEMS, problem, stream
from tlstd_lab.questions.printed import task as printed

from tlstd import LSTD, TLSTD, InvalidParameterError, TrueOnlineTD
from tlstd.zoo.handover import Handover

INSTANCES = [name for name in PROBLEMS if name.startswith("energy-")]
"""Each has a policy by dynamic programming, half a minute of work."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long) if name in INSTANCES else name for name in PROBLEMS]
)
def test_problems(name: str) -> None:
    made = problem(name)
    assert made.X.shape == (made.truth.size, made.features.n_features)
    assert np.isfinite(made.truth).all()
    assert made.rmse(made.truth) == 0.0
    assert made.rmse(made.truth + 3.0) == pytest.approx(3.0)
    assert made.rmse(np.full(made.truth.size, np.nan)) == np.inf
    assert {"tiles": 10.0, "nergy": 33.0}.get(name[-5:], made.square_length) == pytest.approx(made.square_length)


def test_unknown_names() -> None:
    with pytest.raises(InvalidParameterError, match="no problem 'x': choose one of car-tiles"):
        problem("x")
    with pytest.raises(InvalidParameterError, match="no estimator 'SARSA'"):
        learn.make({"class": "SARSA"}, 3)


def test_estimators_from_settings() -> None:
    assert isinstance(learn.make({"class": "TrueOnlineTD", "lambda_": 0.5, "step_size": 0.1}, 3), TrueOnlineTD)
    first = {"class": "TLSTD", "rank": 2, "lambda_": 1}
    model = learn.make(
        {"class": "Handover", "first": first, "second": {"class": "TD", "lambda_": 1, "step_size": 0.1}, "after": 5}, 3
    )
    assert isinstance(model, Handover)
    assert isinstance(model._first, TLSTD)


def test_curve_is_what_one_gets_by_hand() -> None:
    settings = {"problem": "car-tiles", "estimator": {"class": "LSTD", "lambda_": 0.5}, "samples": [100, 300]}
    columns = learn.curve(settings, 7)
    made, model = problem("car-tiles"), LSTD(1000, lambda_=0.5)
    errors = []
    for part in (slice(0, 100), slice(100, 300)):
        model.update_many(stream("car-tiles", 300, 7)[part])
        errors.append(float(np.sqrt(np.mean((model.predict(made.X) - made.truth) ** 2))))
    assert_allclose(columns["rmse"], errors, rtol=1e-9)
    assert list(columns) == ["samples", "rmse"]


def test_printed_and_corrected() -> None:
    settings = {"problem": "car-rbf", "rank": 5, "lambda_": 0, "rcond": 0.01, "mini_batch": True, "samples": [20, 40]}
    wrong = printed.curve(settings | {"as_printed": True}, 0)
    right = printed.curve(settings | {"as_printed": False}, 0)
    assert right["orthogonality"].max() < 1e-12 < wrong["orthogonality"].max()
