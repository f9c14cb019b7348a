"""The question who diverges: its task, and its claims on made-up results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tlstd_lab import statistics
from tlstd_lab.problems import process_of
from tlstd_lab.processes.spiral import START, spiral_weights
from tlstd_lab.questions import panel
from tlstd_lab.questions.divergence.task import projected_area, stability, td_on_the_curve
from tlstd_lab.spec import RunSpec

from tests.lab.synthetic import Columns, Synthetic
from tlstd.errors import InvalidParameterError


@pytest.fixture(autouse=True)
def _fewer_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "RESAMPLES", 100)


def test_errors_are_those_of_the_values_and_of_the_projection() -> None:
    found = stability(
        {"process": "walk-tabular", "estimator": {"class": "LSTD", "lambda_": 0.0}, "samples": [20_000]}, 0
    )
    process = process_of("walk-tabular")
    assert found["samples"].tolist() == [0, 20_000]
    values, frequency = process.values(), process.state_distribution()
    assert_allclose(found["rmsve"][0], np.sqrt(frequency @ values**2))
    # with tabular features the projected error at 0 is the Bellman error: the expected rewards
    assert_allclose(found["rmspbe"][0], np.sqrt(frequency @ process.expected_rewards**2))
    assert found["rmsve"][1] < 0.1 * found["rmsve"][0]
    assert found["rmspbe"][1] < 0.1 * found["rmspbe"][0]


def test_the_area_is_the_mean_over_the_stream() -> None:
    common = {"process": "boyan", "estimator": {"class": "TDRC", "lambda_": 0.0, "step_size": 0.1}}
    errors = stability({**common, "samples": [50, 100, 150]}, 3)["rmspbe"]
    area = projected_area({**common, "steps": 150, "every": 50}, 3)
    assert_allclose([area["start"][0], area["area"][0], area["end"][0]], [errors[0], errors.mean(), errors[3]])


def test_td_on_the_curve_stays_on_it_and_leaves() -> None:
    steps = process_of("spiral").sample(3_000, np.random.default_rng(0))
    first, *_, last = td_on_the_curve(steps, 2e-6, [1, 3_000])
    assert_allclose(first, 0.0)
    assert np.linalg.norm(last + START) > 1.5 * np.linalg.norm(spiral_weights(0.0)[0])


def test_unknown_process() -> None:
    with pytest.raises(InvalidParameterError, match="there is no process 'x'"):
        process_of("x")


def made_up(ends: dict[str, float]) -> Any:
    """Errors that begin at 1 and end at these numbers, by class."""

    def columns(spec: RunSpec) -> Columns:
        settings = spec.plain_settings()
        n, end = len(settings.get("samples", [0])), ends.get(settings["estimator"]["class"], 1e-3)
        if "every" in settings:
            return {"start": [1.0], "area": [end], "end": [end]}
        errors = np.concatenate([[1.0], np.full(n, end)])
        return {"samples": np.arange(n + 1), "rmsve": errors, "rmspbe": errors}

    return columns


def verdicts(name: str, ends: dict[str, float]) -> dict[str, str]:
    results = Synthetic("quick", made_up(ends))
    return {claim.name: claim.judge(results).verdict for claim in panel(name).claims()}


def test_verdicts() -> None:
    right = {"TD": 1e9, "EmphaticTD": 3.0}
    assert set(verdicts("diverging-baird", right).values()) == {"reproduced"}
    wrong = verdicts("diverging-baird", {"TD": 0.1, "TDC": 2.0, "KrylovLSTD": 1.0, "EmphaticTD": 0.1})
    assert set(wrong.values()) == {"not"}
    assert set(verdicts("diverging-spiral", {"spiral": 1e9}).values()) == {"reproduced"}
    assert set(verdicts("diverging-spiral", {"spiral": 1.0, "SwiftTD": 1.0}).values()) == {"not"}
    fine = verdicts("tdrc-simple", {"TD": 1e-3, "GTD2": 2e-3})
    assert fine == {"tdrc-simple-td": "reproduced", "tdrc-simple-gradient": "reproduced", "tdrc-simple-baird": "not"}
    assert verdicts("tdrc-simple", {"TD": 1e9, "GTD2": 1e-4, "TDRC": 1.0, "TDC": 0.1})["tdrc-simple-gradient"] == "not"
