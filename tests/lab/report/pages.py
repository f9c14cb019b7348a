"""A page for tests: some real panels, one whose every text is hostile, one that is not computed, and the explorer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from tlstd_lab.chart import DASHED, Axis, Chart, Note, Rule, curve
from tlstd_lab.claims import BEYOND, Claim, Finding
from tlstd_lab.panel import Panel, Results
from tlstd_lab.report import explorer
from tlstd_lab.report.page import render
from tlstd_lab.report.sources import Shown, Sources, gather
from tlstd_lab.spec import RunSpec
from tlstd_lab.statistics import OverRuns
from tlstd_lab.store import Store

ROOT = Path(__file__).parents[3]
BUNDLES = [ROOT / "results" / name for name in ("quick.parquet", "paper.parquet", "explorer.parquet")]
PANELS = ("A.2", "cutoff-tiles", "theorem-bound", "bias", "planning-groups")
MISSING = "1a"
NASTY = "</script><script>alert('x')</script>\"'><img src=x onerror=alert(1)>&amp;{{data}}"


class Hostile(Panel):
    """A panel of made-up results."""

    name = "z" + NASTY
    title = "title " + NASTY
    caption = "caption " + NASTY

    def runs(self, results: Results) -> list[RunSpec]:
        return [RunSpec("no:task", {"problem": NASTY, "estimator": {NASTY: [1, 2]}}, seed) for seed in range(2)]

    def chart(self, results: Results) -> Chart:
        errors = results.column(self.runs(results), "rmse")
        series = [
            curve([1.0, 10.0, 100.0], errors, "line " + NASTY, "#D55E00", dash=DASHED),
            curve([1.0, 10.0, 100.0], 2.0 * errors, "other", "#000000", marker="s", rules=(Rule("y", 1.5),)),
        ]
        x, y = Axis("x " + NASTY, log=True), Axis("y " + NASTY, log=True)
        return Chart(series, x, y, notes=(Note("text " + NASTY, 0.5, 2.0),))

    def claims(self) -> Sequence[Claim]:
        def judge(results: Results) -> Finding:
            return Finding("partly", OverRuns(1.0, 0.5, 2.0, 2), "what " + NASTY, "note " + NASTY)

        return (
            Claim("claim " + NASTY, "where " + NASTY, "statement " + NASTY, judge),
            Claim("own", BEYOND, "an own statement", judge),
        )


@cache
def sources() -> Sources:
    """The committed runs, read once."""
    return Sources(BUNDLES)


@cache
def gathered() -> Mapping[str, Shown | None]:
    """The panels with their claims decided, once."""
    return gather(sources(), PANELS)


def hostile(folder: Path) -> Shown:
    """The hostile panel with its runs stored in a folder."""
    store, panel = Store(folder), Hostile()
    results = Results(store, "smoke")
    runs = panel.runs(results)
    for spec in runs:
        columns = {"rmse": np.array([4.0, 2.0, 1.0]) + spec.seed}
        store.write(spec, columns, seconds=1.0, made_with={"tlstd": NASTY})
    return Shown(panel, results, [], runs, [(claim, claim.judge(results)) for claim in panel.claims()])


def write_page(folder: Path) -> Path:
    """Write the page, and return where it is."""
    made: dict[str, Shown | None] = dict(gathered())
    made |= {"z" + NASTY: hostile(folder / "runs"), MISSING: None}
    path = folder / "page.html"
    path.write_text(render(made, explorer.data(sources()), [NASTY]), encoding="utf-8")
    return path
