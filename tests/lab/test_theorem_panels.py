"""The tasks on Theorem 1 against the module that they call, and what the claims make of made-up results."""

from __future__ import annotations

import numpy as np
import pytest
from tlstd_lab import statistics
from tlstd_lab.questions.theorem import task as tasks
from tlstd_lab.questions.theorem.bounds import fails, joined, measure, summary, violations
from tlstd_lab.questions.theorem.panel import Bound, TradeOff
from tlstd_lab.questions.theorem.systems import of_family
from tlstd_lab.spec import RunSpec

from tests.lab.synthetic import Columns, Synthetic


@pytest.fixture(autouse=True)
def _fewer_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "RESAMPLES", 100)


def test_cases_are_those_of_all_columns() -> None:
    settings = {"family": "random walk", "cases": 2}
    columns, everything = tasks.cases(settings, 3), measure("random walk", 2, 3)
    ranks = [rank for _, ranks in of_family("random walk", 2, 3) for rank in ranks]
    np.testing.assert_array_equal(everything["rank"], ranks)
    np.testing.assert_array_equal(columns["norm"], everything["norm"])
    np.testing.assert_array_equal(columns["fails_squared"], everything["squared"] < 1.0)
    assert np.isfinite(columns["tikhonov"]).any()
    assert (everything["norm"] >= 1.0).all()


def test_families_are_numbered_on_and_counted() -> None:
    families = {family: measure(family, 2, 2016) for family in ("Boyan chain", "repeated σ")}
    together = joined(families)
    assert np.unique(together["case"]).tolist() == [0, 1, 2, 3]
    for key in ("cases", "cases × ranks", "void", "assumption holds as stated"):
        assert summary(together)[key] == sum(summary(columns)[key] for columns in families.values())
    families["repeated σ"][fails("squared")][0] = 1.0  # a failure that is not there
    (found,) = [one for one in violations(families) if one["family"] == "repeated σ" and one["case"] == 2]
    assert "squared" in found["fails"]


def bounds(*, squared: float = 0.0, ours: float = 2.0, tikhonov: float = 0.9) -> Synthetic:
    def columns(spec: RunSpec) -> Columns:
        n = 7 + spec.seed  # runs differ in length
        fails = np.zeros(n)
        fails[0] = squared if spec.settings["family"] == "cycle" else 0.0
        return {
            "norm": np.full(n, 10.0),
            "ours": np.full(n, ours),
            "fails_norm": np.zeros(n),
            "fails_squared": fails,
            "fails_ours": np.zeros(n),
            "assumption": np.arange(n) % 2.0,
            "tikhonov": np.where(np.arange(n) % 3, tikhonov, np.nan),
        }

    return Synthetic("paper", columns)


def test_bound() -> None:
    def verdicts(results: Synthetic) -> dict[str, str]:
        return {claim.name: claim.judge(results).verdict for claim in Bound().claims()}

    assert verdicts(bounds()) == {
        "theorem-norm": "reproduced",
        "theorem-squared": "reproduced",
        "theorem-assumption": "partly",
        "theorem-ours": "reproduced",
        "theorem-tikhonov": "reproduced",
    }
    assert verdicts(bounds(squared=1.0))["theorem-squared"] == "not"
    assert verdicts(bounds(ours=20.0))["theorem-ours"] == "not"
    assert verdicts(bounds(tikhonov=np.nan))["theorem-tikhonov"] == "not"  # nothing to compare, and no warning


@pytest.mark.parametrize(
    ("full", "cycle", "expected"),
    [(5.0, 0.01, ("reproduced", "reproduced")), (1.0, 0.9, ("not", "partly"))],
)
def test_trade_off(full: float, cycle: float, expected: tuple[str, str]) -> None:
    """Errors with their least at rank 2 of 4 (few samples) or 3 (many); ε that falls, or stays on the cycle."""

    def columns(spec: RunSpec) -> Columns:
        settings = spec.plain_settings()
        if spec.task == "vanishing":
            left = cycle if settings["process"] == "cycle" else 0.01
            return {"signs": [1.0, left], "rotations": [1.0, 0.01]}
        few = settings["samples"] == 300
        return {"error": [full, 1.0, 2.0, full] if few else [full, 2.0, 0.5, full]}

    results = Synthetic("paper", columns)
    assert tuple(claim.judge(results).verdict for claim in TradeOff().claims()) == expected
