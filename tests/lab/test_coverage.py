"""The question of coverage: what its cells are made of, and how runs are put together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tlstd_lab.questions.coverage import panel
from tlstd_lab.questions.coverage.panel import Cell, Coverage
from tlstd_lab.questions.coverage.task import KINDS, TARGETS, coverage


def test_large_cells_without_closed_form_have_500_data_sets_and_100_of_them_bootstrapped() -> None:
    runs = [spec.settings for spec in Coverage().cell_runs("paper", "car", 2_000)]
    assert sum(run["n_sets"] for run in runs) == 500
    assert sum(run["n_bootstrapped"] for run in runs) == 100
    assert {run["rollouts"] for run in runs} == {panel.LARGE_ROLLOUTS}
    small = [spec.settings for spec in Coverage().cell_runs("paper", "car", 200)]
    assert sum(run["n_bootstrapped"] for run in small) == 100
    assert not any("rollouts" in run for run in small)


def test_runs_with_and_without_bootstrap_are_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kinds stand in other rows where there is no bootstrap."""
    settings = {"problem": "walk", "n_episodes": 8, "n_sets": 3, "level": 0.95}
    columns = [coverage(settings | {"n_bootstrapped": n}, seed) for seed, n in enumerate((2, 0))]

    class Stored:
        scale = "smoke"

        def __getitem__(self, run: int) -> Any:
            return type("Run", (), {"columns": columns[run]})

    monkeypatch.setattr(Coverage, "cells", lambda self, scale: [("walk", 8)])
    monkeypatch.setattr(Coverage, "cell_runs", lambda self, scale, problem, n: [0, 1])
    found = Coverage().measured(Stored())  # type: ignore[arg-type]
    for target, name in enumerate(TARGETS):
        kinds = found[Cell("walk", name, 8)]
        assert kinds["bootstrap"].sets == 2
        for kind in ("sandwich", "debiased"):
            here = [(c["target"] == target) & (c["kind"] == KINDS.index(kind)) for c in columns]
            assert kinds[kind].sets == 6
            assert kinds[kind].covered == sum(float(c["covered"][at][0]) for c, at in zip(columns, here, strict=True))
            assert kinds[kind].width == pytest.approx(
                np.mean([c["width"][at][0] for c, at in zip(columns, here, strict=True)])
            )
