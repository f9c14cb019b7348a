"""The task against the definition of its numbers, and what the claims make of made-up results."""

from __future__ import annotations

import numpy as np
import pytest
from tlstd_lab import statistics
from tlstd_lab.problems import problem, stream
from tlstd_lab.questions.reorientation.panel import Reorientation
from tlstd_lab.questions.reorientation.task import BOTTOM, compare, distance, halves
from tlstd_lab.spec import RunSpec

from tests.lab.synthetic import Columns, Synthetic
from tlstd.classic.lstd import LSTD
from tlstd.data.transitions import Transitions
from tlstd.truncated.tlstd import TLSTD


@pytest.fixture(autouse=True)
def _fewer_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "RESAMPLES", 100)


def test_halves_share_hardly_any_feature() -> None:
    steps = halves("car-tiles", 400, 100, 0)
    assert isinstance(steps, Transitions)
    used = [
        set(np.flatnonzero(np.asarray(steps[part].X.sum(axis=0)).ravel())) for part in (slice(100), slice(100, 400))
    ]
    assert len(used[0] & used[1]) < 0.2 * len(used[0])
    assert pytest.approx(-0.5236, abs=1e-4) == BOTTOM


def test_a_single_cut_is_the_best() -> None:
    steps = stream("car-tiles", 60, 0)
    exact, model = LSTD(1000, lambda_=0.0), TLSTD(1000, 20, lambda_=0.0, buffer_size=60)
    exact.update_many(steps)
    model.update_many(steps)
    ids, A, _ = exact.system()
    ratio, overlap = compare(ids, A, model)  # a single cut at the end: Eckart–Young itself
    assert ratio == pytest.approx(1.0, abs=1e-9)
    assert overlap == pytest.approx(1.0, abs=1e-6)


def test_task() -> None:
    settings = {"problem": "car-tiles", "rank": 10, "beta": None, "steps": 200, "points": 4, "change_at": 50}
    columns = distance(settings, 0)
    assert columns["samples"].tolist() == [50, 100, 150, 200]
    assert (columns["ratio"] >= 1.0 - 1e-9).all()
    assert problem("car-tiles").features.n_features == 1000


@pytest.mark.parametrize(
    ("average", "beta", "expected"), [(1.05, 1.0, "reproduced"), (1.6, 1.02, "partly"), (1.6, 1.3, "not")]
)
def test_verdicts(average: float, beta: float, expected: str) -> None:
    def columns(spec: RunSpec) -> Columns:
        return {"ratio": [1.0, average if spec.settings["beta"] is None else beta]}

    found = {claim.name: claim.judge(Synthetic("paper", columns)).verdict for claim in Reorientation().claims()}
    assert found["reorientation-changes"] == expected
