"""Run the panels of the paper, draw them, and say claim by claim what holds: ``tlstd reproduce``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from tlstd.core.figures import new_figure
from tlstd_lab import drawing
from tlstd_lab.claims import BEYOND, MIN_RUNS, Claim, Finding
from tlstd_lab.executors import Executor
from tlstd_lab.panel import Panel, Results, Scale
from tlstd_lab.questions import PANELS, PARTS, panel
from tlstd_lab.runner import Progress, Report, run_all
from tlstd_lab.spec import RunSpec
from tlstd_lab.store import Store, versions

if TYPE_CHECKING:
    from rich.table import Table

Judged = tuple[Claim, Finding]

CLAIMS = "claims.json"
"""In the folder of a reproduction: the claims of all its panels."""


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
                figure.set_layout_engine(None)  # found once
                paths.append(path)
    return paths


def beside(names: Sequence[str], results: Results, folder: Path) -> tuple[list[str], str]:
    """The panels asked for and those that earlier commands left in a folder, and what is to be said about the latter.

    Pages of the same scale are made anew with all panels whose runs are stored; those of another one are replaced.
    """
    try:
        old = json.loads((folder / CLAIMS).read_text(encoding="utf-8"))
        others = [name for name in old["panels"] if name in PANELS and name not in names]
        scale = str(old["scale"])
    except (OSError, ValueError, LookupError, TypeError):
        return list(names), ""
    if scale != results.scale:
        return list(names), f"; the pages of scale {scale} were replaced" if others else ""
    kept = [name for name in others if _stored(panel(name), results)]
    lost = [name for name in others if name not in kept]
    said = f"; the pages also have {', '.join(kept)} of before" if kept else ""
    said += f"; {', '.join(lost)} of before left the pages, because the runs are not in this store" if lost else ""
    return [name for name in PANELS if name in kept or name in names], said


def _stored(made: Panel, results: Results) -> bool:
    has = results.store.has
    return all(has(s.key) for s in made.tuning(results.scale)) and all(has(s.key) for s in made.runs(results))


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


def write_claims(names: Sequence[str], judged: Sequence[Judged], scale: Scale, path: Path) -> None:
    """Write the claims of panels as JSON."""
    rows = [
        {"name": claim.name, "where": claim.where, "statement": claim.statement}
        | asdict(finding)
        | {"verdict": finding.words}
        for claim, finding in judged
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = {"scale": scale, "made_with": versions(), "panels": list(names), "claims": rows}
    path.write_text(json.dumps(whole, indent=1, ensure_ascii=False), encoding="utf-8")


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
            finding.words,
            finding.measured,
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
        unjudged = verdicts.count("unjudged")
        numbers += f", {unjudged} not judged (fewer than {MIN_RUNS} runs)" if unjudged else ""
        texts += [f"{len(verdicts)} claim{'s' * (len(verdicts) != 1)} {of}: {numbers}"] if verdicts else []
    return "; ".join(texts)


def claims_table(judged: Sequence[Judged]) -> Table:
    """Return the claims as a table for the terminal."""
    from rich.table import Table

    table = Table(title="Claims", show_lines=True)
    for heading in ("claim", "statement", "verdict", "number [95% interval]", "note"):
        table.add_column(heading, overflow="fold")
    colours: Mapping[str, str] = {"reproduced": "green", "partly": "yellow", "not": "red", "unjudged": "dim"}
    for claim, finding in judged:
        verdict = f"[{colours[finding.verdict]}]{finding.words}[/]"
        table.add_row(f"{claim.name}\n{claim.where}", claim.statement, verdict, finding.measured, finding.note)
    return table


def pack(names: Sequence[str], results: Results, path: Path) -> None:
    """Write all runs of the panels, sweeps included, into one file that can be committed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    keys = {spec.key for name in names for spec in _all(panel(name), results)}
    results.store.pack(sorted(keys), path)


def _all(made: Panel, results: Results) -> list[RunSpec]:
    return [*made.tuning(results.scale), *made.runs(results)]
