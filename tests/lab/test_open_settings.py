"""What the panels on open settings say of made-up errors."""

from __future__ import annotations

import pytest
from tlstd_lab import statistics
from tlstd_lab.problems import problem
from tlstd_lab.questions.open_settings.panel import OpenRBF, OpenTiles
from tlstd_lab.spec import RunSpec

from tests.lab.synthetic import Columns, Synthetic


@pytest.fixture(autouse=True)
def _fewer_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "RESAMPLES", 100)


def errors(*, at_rest: float = 1.0, small: float = 2.0) -> Synthetic:
    """LSTD has 1, the large rank 1 or (starts at rest, λ=0) more, the small one ``small`` times that."""

    def columns(spec: RunSpec) -> Columns:
        settings = spec.plain_settings()
        estimator, value = settings["estimator"], 1.0 + 0.001 * spec.seed
        if estimator["class"] == "TLSTD":
            value *= small if estimator["rank"] == 50 else 1.0
            value *= at_rest if settings["problem"].endswith("valley") and estimator["lambda_"] == 0 else 1.0
        return {"rmse": [value]}

    return Synthetic("paper", columns)


def verdicts(results: Synthetic) -> dict[str, str]:
    return {claim.name: claim.judge(results).verdict for claim in OpenTiles().claims()}


def test_verdicts() -> None:
    assert verdicts(errors()) == {"open-tiles-always": "reproduced", "open-tiles-levels": "not"}
    assert verdicts(errors(at_rest=1.5)) == {"open-tiles-always": "partly", "open-tiles-levels": "not"}
    assert verdicts(errors(small=1.0))["open-tiles-levels"] == "reproduced"


def test_number_is_that_of_the_worst_setting() -> None:
    found = OpenTiles().claims()[0].judge(errors(at_rest=1.5))
    assert found.number.value == pytest.approx(1.5)
    assert "starts at rest, λ=0: 1.5" in found.note


def test_rbfs_have_no_replacing_traces() -> None:
    specs = OpenRBF().runs(errors())
    assert not any("trace" in spec.settings["estimator"] for spec in specs)
    assert any(spec.settings["problem"] == "car-rbf-valley" for spec in specs)


def test_valley_differs_in_its_starts_only() -> None:
    box, valley = problem("car-tiles"), problem("car-tiles-valley")
    assert (box.truth == valley.truth).all()
    assert (box.X != valley.X).nnz == 0
