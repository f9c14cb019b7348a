"""Write the table of ``docs/least_squares.md``: how often intervals cover the true value.

uv run python -m tlstd_lab.measurements.coverage                   # from the committed runs; computes none
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from tlstd_lab.panel import Results, Scale
from tlstd_lab.questions.coverage.panel import HIGH, LOW, PROBLEMS, Cell, Coverage, Measured
from tlstd_lab.questions.coverage.task import KINDS
from tlstd_lab.store import Store
from tlstd_lab.tables import DOCS, table, write_tables

PAGE = DOCS / "least_squares.md"
HEAD = {
    "sandwich": "default",
    "plug-in": "plug-in",
    "debiased": "debiased",
    "returns": "returns",
    "bootstrap": "bootstrap",
}


def cells(panel: Coverage, results: Results) -> str:
    """The table, one line for each problem, target and number of episodes; those that hold first."""
    measured = panel.measured(results)
    sets = max(kinds["sandwich"].sets for kinds in measured.values())
    drawn = max(kinds["bootstrap"].sets for kinds in measured.values())
    head = ["problem", "value of", "episodes", *(HEAD[kind] for kind in KINDS), "half-width", "degrees"]
    lines = [_line(cell, measured[cell]) for cell in sorted(measured, key=lambda cell: not cell.holds)]
    note = (
        f"Scale `{results.scale}`: {sets} data sets a cell, {drawn} for the bootstrap; a true 0.95 is measured within "
    )
    margin = 1.96 * (0.95 * 0.05 / sets) ** 0.5
    return f"{table(head, lines)}\n\n{note}±{margin:.2f} of it."


def _line(cell: Cell, kinds: dict[str, Measured]) -> list[str]:
    shares = []
    for kind in KINDS:
        if kind not in kinds:
            shares.append("")
            continue
        value = f"{kinds[kind].share.value:.3f}"
        bad = kind == "sandwich" and not LOW <= kinds[kind].share.value <= HIGH
        shares.append(f"**{value}**" if bad else value)
    words = PROBLEMS[cell.problem].words + ("" if cell.holds else " *")
    default = kinds["sandwich"]
    return [words, cell.target, f"{cell.n_episodes:,}", *shares, f"{default.width:.2g}", f"{default.degrees:.0f}"]


def committed(panel: Coverage, folder: str) -> Results:
    """The committed runs, of the larger scale of which there are all."""
    scales: tuple[Scale, ...] = ("paper", "quick")
    for scale in scales:
        store = Store(Path(folder), [DOCS.parent / "results" / f"{scale}.parquet"])
        results = Results(store, scale)
        if {spec.key for spec in panel.runs(results)} <= store.keys():
            break
    return results


def main() -> None:
    """Write the table."""
    panel = Coverage()
    with TemporaryDirectory() as folder:
        results = committed(panel, folder)
        results.load(panel.runs(results))
        write_tables(PAGE, {"coverage": cells(panel, results)})


if __name__ == "__main__":
    main()
