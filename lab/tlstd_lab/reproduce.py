"""Run the panels of the paper, draw them, and say claim by claim what holds: ``tlstd reproduce``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from tlstd.figures import new_figure
from tlstd_lab import drawing
from tlstd_lab.claims import BEYOND, Claim, Finding
from tlstd_lab.executors import Executor
from tlstd_lab.panel import Panel, Results, Scale
from tlstd_lab.questions import PARTS, panel
from tlstd_lab.runner import Progress, Report, run_all
from tlstd_lab.spec import RunSpec
from tlstd_lab.store import Store, versions

if TYPE_CHECKING:
    from rich.table import Table

Judged = tuple[Claim, Finding]


def run(
    names: Sequence[str], scale: Scale, store: Store, executor: Executor | None = None, progress: Progress | None = None
) -> tuple[Results, Report]:
    """Run what the panels need and is not stored: first all sweeps, then the runs with what they chose."""
    panels = [panel(name) for name in names]
    results = Results(store, scale)
    report = run_all([spec for p in panels for spec in p.tuning(scale)], store, executor, progress)
    if report.complete:
        report = run_all([spec for p in panels for spec in p.runs(results)], store, executor, progress)
    return results, report


def draw(names: Sequence[str], results: Results, folder: Path) -> list[Path]:
    """Draw each panel as PNG and PDF."""
    import matplotlib as mpl

    paths = []
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        made = panel(name)
        results.load(made.runs(results))
        with mpl.rc_context(drawing.STYLE):
            figure = new_figure(*made.size)
            axes = figure.add_subplot()
            drawing.draw(made.chart(results), axes)
            axes.set_title(f"{made.name}  {made.title}" if name in PARTS else made.title, loc="left")
            for suffix in ("png", "pdf"):
                path = folder / f"figure_{made.name}.{suffix}"
                figure.savefig(path, dpi=200, metadata={"CreationDate": None} if suffix == "pdf" else None)
                figure.set_layout_engine("none")  # found once
                paths.append(path)
    return paths


def captions(names: Sequence[str], scale: Scale) -> str:
    """Return a page in Markdown with every panel and what it shows."""
    lines = [f"# Figures, scale {scale}", ""]
    for name in names:
        made = panel(name)
        lines += [f"## {made.name}: {made.title}", "", f"![{made.name}](figure_{made.name}.png)", "", made.caption, ""]
    return "\n".join(lines)


def judge(names: Sequence[str], results: Results) -> list[Judged]:
    """Decide the claims of the panels."""
    return [(claim, claim.judge(results)) for name in names for claim in panel(name).claims()]


def write_claims(judged: Sequence[Judged], scale: Scale, path: Path) -> None:
    """Write the claims as JSON."""
    rows = [
        {"name": claim.name, "where": claim.where, "statement": claim.statement} | asdict(finding)
        for claim, finding in judged
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"scale": scale, "made_with": versions(), "claims": rows}, indent=1, ensure_ascii=False))


def claims_page(judged: Sequence[Judged], scale: Scale) -> str:
    """Return the claims of one scale as a page in Markdown."""
    heading = f"# Claims, scale {scale}\n\n{counts(judged)}\n"
    return "\n".join([heading, *claims_rows(judged), ""])


def claims_rows(judged: Sequence[Judged]) -> list[str]:
    """Return the claims as a table in Markdown, line by line."""
    lines = ["| claim | statement | verdict | number [95% interval] | remarks |", "|---|---|---|---|---|"]
    for claim, finding in judged:
        cells = (
            f"**{claim.name}** ({claim.where})",
            claim.statement,
            finding.verdict,
            f"{finding.number}, {finding.number.runs} runs: {finding.what}",
            finding.note,
        )
        lines.append("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |")
    return lines


def counts(judged: Sequence[Judged]) -> str:
    """Return how many claims have each verdict, those of the paper and those that go beyond it."""
    texts = []
    for of, own in (("of the paper", False), ("beyond it", True)):
        verdicts = [finding.verdict for claim, finding in judged if (claim.where == BEYOND) == own]
        numbers = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in ("reproduced", "partly", "not"))
        texts += [f"{len(verdicts)} claim{'s' * (len(verdicts) != 1)} {of}: {numbers}"] if verdicts else []
    return "; ".join(texts)


def claims_table(judged: Sequence[Judged]) -> Table:
    """Return the claims as a table for the terminal."""
    from rich.table import Table

    table = Table(title="Claims", show_lines=True)
    for heading in ("claim", "statement", "verdict", "number [95% interval]", "note"):
        table.add_column(heading, overflow="fold")
    colours: Mapping[str, str] = {"reproduced": "green", "partly": "yellow", "not": "red"}
    for claim, finding in judged:
        verdict = f"[{colours[finding.verdict]}]{finding.verdict}[/]"
        number = f"{finding.number}, {finding.number.runs} runs\n{finding.what}"
        table.add_row(f"{claim.name}\n{claim.where}", claim.statement, verdict, number, finding.note)
    return table


def pack(names: Sequence[str], results: Results, path: Path) -> None:
    """Write all runs of the panels, sweeps included, into one file that can be committed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    keys = {spec.key for name in names for spec in _all(panel(name), results)}
    results.store.pack(sorted(keys), path)


def _all(made: Panel, results: Results) -> list[RunSpec]:
    return [*made.tuning(results.scale), *made.runs(results)]
