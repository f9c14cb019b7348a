"""The command line: ``tlstd demo`` and whatever else the library does from a terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="Incremental truncated LSTD: value functions from streams and logs of experience.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.callback()
def main() -> None:
    """Incremental truncated LSTD: value functions from streams and logs of experience."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the figure.")] = Path("tlstd-demo"),
    seed: Annotated[int, typer.Option(min=0, help="Seed of the stream.")] = 0,
) -> None:
    """Learn the values of Mountain Car with TD, true-online TD, iLSTD, ATD, t-LSTD and LSTD: a table and a figure."""
    from rich.console import Console

    from tlstd.experiments import demo as experiment

    path = out / "mountain_car.png"
    try:  # before a minute's work, not after
        out.mkdir(parents=True, exist_ok=True)
        path.touch()
    except OSError as error:
        typer.echo(f"cannot write {path} ({error.strerror}): choose another folder with --out", err=True)
        raise typer.Exit(1) from None
    console = Console()
    with console.status("starting") as status:
        results, truth = experiment.run(seed=seed, report=status.update)
        status.update("drawing")
        experiment.draw(results, truth, path)
    console.print(experiment.table(results))
    console.print(f"figure: {path}")


@app.command()
def bench(
    rows: Annotated[list[str] | None, typer.Argument(metavar="[ROW]...", help="Rows to measure; all if none.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for bench.json and the figures.")] = Path("tlstd-bench"),
    quick: Annotated[bool, typer.Option("--quick", help="Tiny sizes: whether it runs, not how fast.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="Name the rows and stop.")] = False,
) -> None:
    """Measure what the estimators cost against other ways of doing the same: a table, JSON and figures."""
    from rich.console import Console

    from tlstd.bench import figures, report
    from tlstd.bench.registry import ROWS
    from tlstd.bench.row import title
    from tlstd.errors import InvalidParameterError

    if list_:
        for name, row in ROWS.items():
            typer.echo(f"{name:18} {title(row)}")
        return
    try:  # before minutes of work, not after
        names = report.check_names(rows or [])
        out.mkdir(parents=True, exist_ok=True)
        (out / "bench.json").touch()
    except InvalidParameterError as error:
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
