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


@app.command()
def reproduce(
    figures: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FIGURE]...", help='Panels such as 2a, or "A" for A.1 to A.8; all if none.'),
    ] = None,
    scale: Annotated[
        str, typer.Option(help="smoke (2 minutes), quick (20 minutes) or paper (hours, as published).")
    ] = "quick",
    out: Annotated[Path, typer.Option(help="Folder for figures and claims.")] = Path("tlstd-reproduction"),
    store: Annotated[Path | None, typer.Option(help="Folder of the runs; OUT/runs if left out.")] = None,
    bundle: Annotated[list[Path] | None, typer.Option(help="Packed runs that need not be computed.")] = None,
    workers: Annotated[
        int | None, typer.Option(min=0, help="Processes; all cores if left out, 0 for this one.")
    ] = None,
    cluster: Annotated[str | None, typer.Option(metavar="ADDRESS", help="Dask scheduler to send the runs to.")] = None,
    claims: Annotated[bool, typer.Option("--claims", help="Print the table of claims.")] = False,
    pack: Annotated[Path | None, typer.Option(help="File to pack all runs into.")] = None,
    list_: Annotated[bool, typer.Option("--list", help="Name the panels and stop.")] = False,
) -> None:
    """Reproduce the paper's figures and decide its claims; stopped and started again it goes on where it was."""

    from rich.console import Console

    from tlstd.errors import TlstdError
    from tlstd.experiments import panels
    from tlstd.experiments import reproduce as experiment
    from tlstd.experiments.panel import check_scale
    from tlstd.experiments.runner import choose_executor, show_progress
    from tlstd.experiments.store import Store

    if list_:
        for name in panels.PANELS:
            typer.echo(f"{name:22} {panels.panel(name).title}")
        return
    try:
        names = panels.names(figures or [])
        runs = Store(store or out / "runs", bundle or [])
        executor = choose_executor(cluster, workers)
        with show_progress() as progress:
            results, report = experiment.run(names, check_scale(scale), runs, executor, progress)
        if not report.complete:
            typer.echo(str(report), err=True)
            raise typer.Exit(report.exit_code)
        paths = experiment.draw(names, results, out)
        judged = experiment.judge(names, results)
        experiment.write_claims(judged, scale, out / "claims.json")
        (out / "claims.md").write_text(experiment.claims_page(judged, scale), encoding="utf-8")
        if pack is not None:
            experiment.pack(names, results, pack)
    except TlstdError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    console = Console()
    if not console.is_terminal:
        console = Console(width=160)
    if claims:
        console.print(experiment.claims_table(judged))
    console.print(experiment.counts(judged))
    console.print(f"written: {len(paths)} figures, claims.json and claims.md in {out}")
