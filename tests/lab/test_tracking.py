"""The tracking task by hand, and its claims on made-up errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tlstd_lab.panel import Results
from tlstd_lab.questions import panel
from tlstd_lab.questions.tracking import task
from tlstd_lab.store import Store

from tlstd.classic.lstd import LSTD
from tlstd.core.arrays import FloatArray
from tlstd.domains.mountain_car import MountainCar, energy_pumping
from tlstd.errors import InvalidParameterError
from tlstd.features.rbf import RBF
from tlstd.streams.simulated import record


def test_changed_rewards_by_hand() -> None:
    _, values = task.world("rewards")
    x, v = MountainCar().grid()[33]
    total, weight = 0.0, 1.0
    while x < 0.5:
        v = np.clip(v + 0.001 * (1 if v >= 0.0 else -1) - 0.0025 * np.cos(3.0 * x), -0.07, 0.07)
        x = np.clip(x + v, -1.2, 0.6)
        v = 0.0 if x <= -1.2 and v < 0.0 else v
        total += weight * (-2.0 if x < -0.5 else 0.0)
        weight *= 0.99
    assert values[33] == pytest.approx(total)


def test_changes_are_changes() -> None:
    _, truth = task.world("none")
    for change in ("rewards", "dynamics"):
        _, other = task.world(change)
        assert 5.0 < np.sqrt(np.mean((other - truth) ** 2)) < 20.0
    with pytest.raises(InvalidParameterError, match="there is no change 'weather'"):
        task.world("weather")


@pytest.mark.parametrize("change", ["rewards", "dynamics"])
def test_task_by_hand(change: str) -> None:
    settings = {
        "change": change,
        "estimator": {"class": "LSTD", "lambda_": 0.9, "rcond": 1e-3, "beta": 0.01},
        "half": 200,
        "points": 2,
    }
    columns = task.tracking(settings, seed=5)
    assert columns["samples"].tolist() == [100, 200, 300, 400]
    old, new = MountainCar(), task.CHANGES[change]()
    features = RBF(old.low, old.high, grid=16, width=0.12)
    first, second = np.random.SeedSequence(5).spawn(2)
    model = LSTD(256, lambda_=0.9, rcond=1e-3, beta=0.01)
    model.update_many(record(old, energy_pumping, features, n_steps=200, seed=first))
    X = features.encode_many(old.grid())
    errors = [np.sqrt(np.mean((model.predict(X) - task.world("none")[1]) ** 2))]
    model.update_many(record(new, energy_pumping, features, n_steps=200, seed=second))
    errors.append(np.sqrt(np.mean((model.predict(X) - task.world(change)[1]) ** 2)))
    assert_allclose(columns["rmse"][[1, 3]], errors, rtol=1e-6)


class MadeUp(Results):
    """Errors that depend on whether β is constant; the best β is 0.001."""

    def __init__(self, folder: Any, **after: float) -> None:
        super().__init__(Store(folder), "quick")
        self.after = after

    def load(self, specs: Any) -> None:
        """There is nothing to read."""

    def column(self, specs: Any, name: str) -> FloatArray:
        estimator = specs[0].plain_settings()["estimator"]
        kind = "TD" if "step_size" in estimator else "constant" if "beta" in estimator else "average"
        off = abs(np.log10(estimator.get("beta", 0.001)) + 3.0) + abs(estimator.get("step_size", 0.1) - 0.1)
        before = {"TD": 2.0, "constant": 1.2, "average": 1.0}[kind]
        row = [before + off] * 10 + [self.after[kind] + off] * 10
        return np.tile(row, (len(specs), 1))


@pytest.mark.parametrize(
    ("constant", "average", "verdict"), [(1.2, 4.0, "reproduced"), (1.2, 1.4, "partly"), (4.0, 4.0, "not")]
)
def test_follows(constant: float, average: float, verdict: str, tmp_path: Any) -> None:
    results = MadeUp(tmp_path, constant=constant, average=average, TD=2.0)
    claims = {claim.name.removeprefix("tracking-rewards-"): claim for claim in panel("tracking-rewards").claims()}
    for method in ("LSTD", "t-LSTD"):
        found = claims[method].judge(results)
        assert found.verdict == verdict
        assert found.number.value == pytest.approx(average / constant)
        assert "β=0.001" in found.note
    assert claims["cost"].judge(results).number.value == pytest.approx(1.2)
    assert claims["rank"].judge(results).verdict == "reproduced"
    assert claims["TD"].judge(results).verdict == ("reproduced" if constant < 2.0 else "not")
