"""What is committed: the packed runs, and the page of claims that was made from them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tlstd_lab import drawing, statistics
from tlstd_lab.claims import MIN_RUNS
from tlstd_lab.panel import Results
from tlstd_lab.questions import PANELS, panel
from tlstd_lab.report import claims_page
from tlstd_lab.store import Store

from tlstd.core.figures import new_figure

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "claims.md").read_text(encoding="utf-8")
CHEAP = ["A.4", "printed", "planning-groups"]
"""Panels of both scales that are decided in seconds."""


def test_all_panels_can_be_redrawn_from_the_packed_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every run is there; every chart is drawn and every claim decided."""
    monkeypatch.setattr(statistics, "RESAMPLES", 20)
    store = Store(tmp_path, [ROOT / "results" / "quick.parquet"])
    stored, results = store.keys(), Results(store, "quick")
    for name in PANELS:
        made = panel(name)
        specs = [*made.tuning("quick"), *made.runs(results)]
        wanted = {spec.key for spec in specs}
        assert wanted <= stored, f"{name}: {len(wanted - stored)} runs are not packed"
        results.load(specs)
        axes = new_figure(*made.size).add_subplot()
        drawing.draw(made.chart(results), axes)
        assert axes.has_data()
        for claim in made.claims():
            found = claim.judge(results)
            assert (found.verdict == "unjudged") == (found.number.runs < MIN_RUNS), found


@pytest.mark.parametrize("names", [CHEAP, pytest.param(list(PANELS), marks=pytest.mark.long)], ids=["cheap", "all"])
def test_the_page_is_what_follows_from_the_packed_runs(names: list[str]) -> None:
    panels = claims_page.committed(names)
    assert [shown.panel.name for shown in panels] == names
    assert {shown.results.scale for shown in panels} == {"quick", "paper"}
    for shown in panels:
        assert claims_page.section(shown) in PAGE
    if names == list(PANELS):
        assert claims_page.page(panels) == PAGE


def test_every_panel_and_claim_is_on_the_page_once() -> None:
    sections = dict(part.split("\n", 1) for part in PAGE.split("\n## ")[1:])
    assert list(sections) == list(PANELS)
    for name, text in sections.items():
        assert f"    uv run tlstd reproduce {name} --scale " in text
        for claim in panel(name).claims():
            row = f"| **{claim.name}** ({claim.where}) | {claim.statement} |"
            assert row in text
            assert PAGE.count(row) == 1
