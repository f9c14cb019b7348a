"""The task of planning by hand, and its claims on made-up errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tlstd_lab.questions import panel
from tlstd_lab.questions.planning.task import planning
from tlstd_lab.spec import RunSpec

from tests.lab.synthetic import Synthetic
from tlstd import ForgetfulLSTD, random_walk


def test_task_by_hand() -> None:
    estimator = {"class": "ForgetfulLSTD", "lambda_": 0.9, "step_size": 0.05, "beta": 0.05, "planning_steps": 2}
    columns = planning({"states": 7, "group": 3, "samples": (40, 90), "estimator": estimator}, seed=3)
    chain = random_walk(7)
    model = ForgetfulLSTD(3, lambda_=0.9, step_size=0.05, beta=0.05, planning_steps=2)
    errors = []
    for t in chain.sample(90, np.random.default_rng(3)):
        x, x_next = (np.add.reduceat(np.asarray(side), [0, 3, 6]) for side in (t.x, t.x_next))
        model.update(type(t)(x, t.reward, x_next, discount=t.discount, trace_discount=t.trace_discount))
        errors.append(np.sqrt(np.mean((model.weights[[0, 0, 0, 1, 1, 1, 2]] - chain.values()) ** 2)))
    assert columns["samples"].tolist() == [40, 90]
    assert_allclose(columns["rmse"], [errors[39], errors[89]])


GOOD = {"LinearDyna": 1.0, "ForgetfulLSTD": 0.6, "LSTD": 0.55, "TD": 1.0}


@pytest.mark.parametrize(
    ("name", "errors", "verdicts"),
    [
        ("planning-groups", GOOD, {"multistep": "reproduced", "lstd": "reproduced"}),
        ("planning-groups", GOOD | {"ForgetfulLSTD": 0.9}, {"multistep": "partly", "lstd": "not"}),
        ("planning-groups", GOOD | {"ForgetfulLSTD": 1.2}, {"multistep": "not", "lstd": "not"}),
        ("planning-tabular", GOOD | {"one": 0.9}, {"multistep": "reproduced", "steps": "reproduced"}),
        ("planning-tabular", GOOD | {"ForgetfulLSTD": 1.4, "one": 1.1}, {"multistep": "not", "steps": "not"}),
    ],
)
def test_claims(name: str, errors: dict[str, float], verdicts: dict[str, str]) -> None:
    def columns(spec: RunSpec) -> dict[str, Any]:
        settings: Any = spec.plain_settings()
        estimator = settings["estimator"]
        error = errors[estimator["class"]]
        if estimator.get("planning_steps") == 1:
            error = errors.get("one", error)
        return {"samples": settings["samples"], "rmse": np.full(len(settings["samples"]), error + 1e-3 * spec.seed)}

    results = Synthetic("quick", columns)
    for claim in panel(name).claims():
        assert claim.judge(results).verdict == verdicts[claim.name.removeprefix(f"{name}-")]
