"""What is committed: the packed runs, and the page of claims that was made from them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tlstd_lab.panel import Results
from tlstd_lab.questions import PANELS, panel
from tlstd_lab.store import Store

ROOT = Path(__file__).parents[2]


def test_all_panels_can_be_redrawn_from_the_packed_runs(tmp_path: Path) -> None:
    store = Store(tmp_path, [ROOT / "results" / "quick.parquet"])
    stored, results = store.keys(), Results(store, "quick")
    for name in PANELS:
        made = panel(name)
        wanted = {spec.key for spec in (*made.tuning("quick"), *made.runs(results))}
        assert wanted <= stored, f"{name}: {len(wanted - stored)} runs are not packed"
        assert (ROOT / "docs" / "figures" / "reproduction" / f"figure_{name}.png").exists()


@pytest.mark.parametrize("name", ["1a", "3b"])
def test_claims_come_out_as_committed(name: str, tmp_path: Path) -> None:
    results = Results(Store(tmp_path, [ROOT / "results" / "quick.parquet"]), "quick")
    written = json.loads((ROOT / "results" / "claims_quick.json").read_text(encoding="utf-8"))["claims"]
    by_name = {claim["name"]: claim for claim in written}
    page = (ROOT / "docs" / "claims.md").read_text(encoding="utf-8")
    for claim in panel(name).claims():
        finding = claim.judge(results)
        assert finding.verdict == by_name[claim.name]["verdict"]
        assert finding.number == pytest.approx(tuple(by_name[claim.name]["number"]))
        assert f"**{claim.name}**" in page


def test_every_claim_is_on_the_page() -> None:
    page = (ROOT / "docs" / "claims.md").read_text(encoding="utf-8")
    for name in PANELS:
        for claim in panel(name).claims():
            assert f"| **{claim.name}** ({claim.where}) | {claim.statement} |" in page
