"""The command line: ``tlstd demo`` and whatever else the library does from a terminal.

``tlstd --install-completion`` makes the shell complete commands, options, panels and rows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="Incremental truncated LSTD: value functions from streams and logs of experience.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # the same help in a terminal and in a pipe
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from tlstd import __version__

        typer.echo(f"tlstd {__version__}")
        raise typer.Exit


def _panels() -> list[str]:
    """The panels' names, for the shell's completion."""
    from tlstd.experiments.panels import PANELS

    return list(PANELS)


def _rows() -> list[str]:
    """The rows' names, for the shell's completion."""
    from tlstd.bench.registry import ROWS

    return list(ROWS)


def _estimators() -> list[str]:
    """The estimators' names, for the shell's completion."""
    from tlstd.estimators.registry import ESTIMATORS

    return list(ESTIMATORS)


def _scales() -> list[str]:
    """The scales' names, for the shell's completion."""
    from tlstd.experiments.panel import SCALES

    return list(SCALES)


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Incremental truncated LSTD: value functions from streams and logs of experience."""


@app.command(short_help="Learn the values of Mountain Car: a table and a figure.")
def demo(
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the figure.")] = Path("tlstd-demo"),
    seed: Annotated[int, typer.Option(min=0, metavar="INTEGER", help="Seed of the stream.")] = 0,
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


@app.command(short_help="Measure what every estimator costs, as ratios.")
def bench(
    rows: Annotated[
        list[str] | None, typer.Argument(metavar="ROW", help="Rows to measure; all if none.", autocompletion=_rows)
    ] = None,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for bench.json and the figures.")] = Path(
        "tlstd-bench"
    ),
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


@app.command(short_help="Reproduce the paper's figures and decide its claims.")
def reproduce(
    figures: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FIGURE", help='Panels such as 2a, or "A" for A.1 to A.8; all if none.', autocompletion=_panels
        ),
    ] = None,
    scale: Annotated[
        str,
        typer.Option(
            metavar="SCALE",
            autocompletion=_scales,
            help="smoke (2 minutes), quick (17 minutes on 2 cores) or paper (hours, as published).",
        ),
    ] = "quick",
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for figures and claims.")] = Path(
        "tlstd-reproduction"
    ),
    store: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder of the runs; OUT/runs if left out.")
    ] = None,
    bundle: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Packed runs that need not be computed.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Processes; all cores if left out, 0 for this one.")
    ] = None,
    cluster: Annotated[str | None, typer.Option(metavar="ADDRESS", help="Dask scheduler to send the runs to.")] = None,
    claims: Annotated[bool, typer.Option("--claims", help="Print the table of claims.")] = False,
    pack: Annotated[Path | None, typer.Option(metavar="FILE", help="File to pack all runs into.")] = None,
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
            typer.echo(f"{name:24} {panels.panel(name).title}")
        return
    try:
        names = panels.names(figures or [])
        check_scale(scale)
        try:  # before hours of work, not after
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TlstdError(f"cannot write to {out} ({error.strerror}): choose another folder with --out") from error
        runs = Store(store or out / "runs", bundle or [])
        executor = choose_executor(cluster, workers)
        with show_progress() as progress:
            results, report = experiment.run(names, scale, runs, executor, progress)
        if not report.complete:
            typer.echo(str(report), err=True)
            raise typer.Exit(report.exit_code)
        experiment.draw(names, results, out)
        judged = experiment.judge(names, results)
        experiment.write_claims(judged, scale, out / "claims.json")
        (out / "figures.md").write_text(experiment.captions(names, scale), encoding="utf-8")
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
    console.print(
        f"written: {len(names)} figures (PNG and PDF), their captions (figures.md), claims.json and claims.md in {out}"
    )


@app.command(short_help="Make one HTML page of stored results.")
def report(
    results: Annotated[
        list[Path] | None,
        typer.Argument(metavar="RESULTS", help="Packed runs or folders of runs; if none, what is here."),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The page.")] = Path("tlstd-report.html"),
    explore: Annotated[
        bool, typer.Option("--explore", help="Compute what the rank explorer lacks (5 minutes).")
    ] = False,
    store: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder of the runs that --explore computes.")] = Path(
        "tlstd-reproduction/runs"
    ),
    workers: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Processes; all cores if left out, 0 for this one.")
    ] = None,
    pack: Annotated[Path | None, typer.Option(metavar="FILE", help="File to pack the explorer's runs into.")] = None,
) -> None:
    """Turn stored results into one self-contained HTML page: claims, figures and the rank explorer.

    If none are named, tlstd-reproduction/runs and results/*.parquet are taken.
    """
    from rich.console import Console

    from tlstd.errors import TlstdError
    from tlstd.experiments import explorer
    from tlstd.experiments.runner import choose_executor, run_all, show_progress
    from tlstd.experiments.store import Store
    from tlstd.report import page, sources

    if pack is not None and not explore:
        typer.echo("--pack is for what --explore computes: give both", err=True)
        raise typer.Exit(1)
    try:
        paths = list(results or sources.default_paths())
        try:  # before minutes of work, not after
            there = out.exists() or out.is_symlink()
            out.parent.mkdir(parents=True, exist_ok=True)
            with out.open("ab"):
                pass
            if not there:
                out.unlink()  # nothing is left behind if nothing comes
        except OSError as error:
            raise TlstdError(f"cannot write {out} ({error.strerror}): choose another file with --out") from error
        if explore:
            runs = Store(store, [path for path in paths if path.is_file()])
            with show_progress() as progress:
                done = run_all(explorer.specs("paper"), runs, choose_executor(None, workers), progress)
            if not done.complete:
                typer.echo(str(done), err=True)
                raise typer.Exit(done.exit_code)
            if pack is not None:
                runs.pack([spec.key for spec in explorer.specs("paper")], pack)
            paths += [store] if store.is_dir() and store not in paths else []
        with Console(stderr=True).status("drawing and deciding"):
            html = page.build(paths)
        out.write_text(html, encoding="utf-8")
    except OSError as error:
        typer.echo(f"{error.filename or out}: {error.strerror}", err=True)
        raise typer.Exit(1) from None
    except TlstdError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    typer.echo(f"written: {out} ({len(html.encode()) / 1e6:.1f} MB)")


@app.command(short_help="Interrupt, share, copy and feed estimators until one breaks.")
def campaign(
    estimator: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Estimator to try; all if none.", autocompletion=_estimators),
    ] = None,
    interrupts: Annotated[int, typer.Option(min=0, metavar="N", help="Signals at random moments.")] = 200,
    exceptions: Annotated[int, typer.Option(min=0, metavar="N", help="Exceptions raised at lines of a run.")] = 200,
    reads: Annotated[int, typer.Option(min=0, metavar="N", help="Reads from several threads.")] = 100_000,
    files: Annotated[int, typer.Option(min=0, metavar="N", help="Crafted files, loaded and used.")] = 2_000,
    inputs: Annotated[int, typer.Option(min=0, metavar="N", help="Random inputs, valid and not.")] = 20_000,
    seed: Annotated[int, typer.Option(min=0, metavar="INTEGER", help="Seed of all of it.")] = 0,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for what fails.")] = Path("tlstd-campaign"),
    unchecked: Annotated[
        bool, typer.Option("--unchecked", help="Kernels as they are used, without bounds checks.")
    ] = False,
) -> None:
    """Interrupt, share, copy and feed estimators until one breaks: a table; the exit code is 1 if something fails.

    Kernels check every index. Each failure is a line of FOLDER/failures.jsonl with the command that repeats it.
    """
    from rich.console import Console

    from tlstd.errors import TlstdError
    from tlstd.experiments import campaign as experiment

    counts = {
        "interrupts": interrupts,
        "exceptions": exceptions,
        "reads": reads,
        "files": files,
        "inputs": inputs,
    }
    try:
        names = experiment.check_names(estimator or [])
        try:  # before hours of work, not after
            out.mkdir(parents=True, exist_ok=True)
            (out / "failures.jsonl").touch()
        except OSError as error:
            raise TlstdError(f"cannot write to {out} ({error.strerror}): choose another folder with --out") from error
    except TlstdError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    console = Console()
    if not console.is_terminal:
        console = Console(width=120)
    with console.status("starting") as status:
        results = experiment.run(names, counts, out, seed=seed, checked=not unchecked, progress=status.update)
    console.print(experiment.table(results))
    failures = [failure for result in results for failure in result.failures]
    if failures:
        console.print(f"{len(failures)} failures, in {out / 'failures.jsonl'}; the first: {failures[0]['words']}")
        raise typer.Exit(1)


@app.command(short_help="Show what is in a saved model.")
def inspect(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="File that model.save() wrote.")],
    json_: Annotated[
        bool, typer.Option("--json", help="Print JSON, for programs; docs/state.md has its keys.")
    ] = False,
) -> None:
    """Show what is in a saved model: parameters, samples, spectrum, and whether its rank fits."""
    import json

    from rich.console import Console

    from tlstd import inspection
    from tlstd.errors import StateError

    try:
        found = inspection.examine_file(model)
    except StateError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    if json_:
        typer.echo(json.dumps(found.plain(), allow_nan=False))
        return
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=100)
    unicode = console.is_terminal and not console.options.ascii_only
    console.print(inspection.render(found, width=console.width, unicode=unicode), crop=False)
