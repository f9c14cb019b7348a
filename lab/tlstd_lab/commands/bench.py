"""``tlstd bench``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tlstd.cli.outputs import Force

SHORT_HELP = "Measure what every estimator costs, as ratios."
EXAMPLES = (
    "tlstd bench --list",
    "tlstd bench td lstd",
    "tlstd bench td --quick",
)


def _rows() -> list[str]:
    """The rows' names, for the shell's completion."""
    from tlstd_lab.bench.registry import ROWS

    return list(ROWS)


def command(
    rows: Annotated[
        list[str] | None, typer.Argument(metavar="ROW", help="Rows to measure; all if none.", autocompletion=_rows)
    ] = None,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for bench.json and the figures.")] = Path(
        "tlstd-bench"
    ),
    quick: Annotated[bool, typer.Option("--quick", help="Tiny sizes: whether it runs, not how fast.")] = False,
    force: Force = False,
    list_: Annotated[bool, typer.Option("--list", help="Name the rows and stop.")] = False,
) -> None:
    """Measure what the estimators cost against other ways of doing the same: a table, JSON and figures."""
    from rich.console import Console

    from tlstd.cli.outputs import check_outputs
    from tlstd.errors import TlstdError
    from tlstd_lab.bench import figures, report
    from tlstd_lab.bench.registry import ROWS
    from tlstd_lab.bench.row import title

    if list_:
        for name, row in ROWS.items():
            typer.echo(f"{name:18} {title(row)}")
        return
    try:  # before minutes of work, not after
        names = report.check_names(rows or [])
        out.mkdir(parents=True, exist_ok=True)
        files = [out / "bench.json", *(out / name for name in figures.NAMES)]
        check_outputs("--out", files, ("bench", "figure"), force=force)
        (out / "bench.json").touch()
    except TlstdError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    except OSError as error:
        typer.echo(f"cannot write to {out} ({error.strerror}): choose another folder with --out", err=True)
        raise typer.Exit(1) from None
    console = Console()
    if not console.is_terminal:
        console = Console(width=180)
    with console.status("starting") as status:
        results = report.run(names if rows else [], quick=quick, progress=status.update)
        status.update("drawing")
        paths = [report.write(results, out), *figures.draw(results, out)]
    console.print(report.table(results))
    console.print(f"written: {', '.join(map(str, paths))}")
