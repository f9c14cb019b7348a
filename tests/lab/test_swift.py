"""The claims on SwiftTD's parameters and parts, with made-up errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tlstd_lab import statistics
from tlstd_lab.learning import make
from tlstd_lab.questions import panel
from tlstd_lab.questions.swift.panel import DECADES, GRIDS, PARTS, USUAL, loss
from tlstd_lab.spec import RunSpec

from tests.lab.synthetic import Synthetic


def test_the_grids_are_decades_of_what_they_are_called_and_can_be_made() -> None:
    for name, key in (("meta step size", "meta_step_size"), ("initial step size", "initial_step_size")):
        values = [getattr(make(setting, 3), key) for setting in GRIDS[name]]
        np.testing.assert_allclose(np.diff(np.log10(values)), 1.0)
        assert len(values) == len(DECADES)
    assert all(make(USUAL | dict(part), 3).get_params() != make(USUAL, 3).get_params() for part in PARTS.values())


def made_up(flat: bool, bound_helps: bool) -> Synthetic:
    """TD's error doubles with every decade from the usual; SwiftTD's too, or it has none of that."""

    def columns(spec: RunSpec) -> dict[str, Any]:
        estimator: Any = spec.plain_settings()["estimator"]
        decades = 0.0
        if estimator["class"] == "TrueOnlineTD":
            decades = np.log10(estimator["step_size"]) + 1.0
        elif not flat:
            decades = np.log10(estimator.get("meta_step_size", 1e-3) or 1e-3) + 3.0
            decades += np.log10(estimator.get("initial_step_size", 1e-4)) + 4.0
        error = 0.1 * 2.0 ** abs(decades) + 1e-4 * spec.seed
        if estimator.get("meta_step_size") == 0.0 or "step_size_decay" in estimator:
            error *= 2.0
        if "rate_bound" in estimator:
            error *= 2.0 if bound_helps else 0.9
        return {"rmse": [error], "zero": [1.0]}

    return Synthetic("quick", columns)


@pytest.mark.parametrize(
    ("flat", "bound_helps", "verdicts"),
    [(True, True, ("reproduced", "reproduced", "reproduced")), (False, False, ("not", "not", "not"))],
)
def test_claims(flat: bool, bound_helps: bool, verdicts: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "RESAMPLES", 30)
    found = [claim.judge(made_up(flat, bound_helps)) for claim in panel("swift").claims()]
    assert tuple(finding.verdict for finding in found) == verdicts
    assert "no bound" in found[2].what or bound_helps


def test_a_diverged_run_counts_as_twice_the_error_of_zero() -> None:
    results = Synthetic("quick", lambda spec: {"rmse": [np.inf], "zero": [3.0]})
    np.testing.assert_array_equal(panel("swift").errors(results, "walk", USUAL), 2.0)  # type: ignore[attr-defined]
    assert loss(np.full((4, 7), 2.0)) == pytest.approx(1.0)
