"""``tlstd reproduce``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tlstd.cli.outputs import Force

SHORT_HELP = "Reproduce the paper's figures and decide its claims."
EXAMPLES = (
    "tlstd reproduce --list",
    "tlstd reproduce 2a --scale smoke",
    "tlstd reproduce --scale quick --claims",
)


def _panels() -> list[str]:
    """The panels' names, for the shell's completion."""
    from tlstd_lab.questions import PANELS

    return list(PANELS)


def _scales() -> list[str]:
    """The scales' names, for the shell's completion."""
    from tlstd_lab.panel import SCALES

    return list(SCALES)


def command(
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
            help="smoke (2 minutes, no verdicts), quick (40 minutes on 2 cores) or paper (hours, as published).",
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
    force: Force = False,
    list_: Annotated[bool, typer.Option("--list", help="Name the panels and stop.")] = False,
) -> None:
    """Reproduce the paper's figures and decide its claims.

    The results are committed with the code (results/*.parquet): `tlstd report` shows them without computing. A claim
    needs three runs for a verdict; the scale smoke has fewer. A command that was stopped continues where it was.
    """
    from rich.console import Console

    from tlstd.cli.outputs import check_outputs
    from tlstd.errors import TlstdError
    from tlstd_lab import questions
    from tlstd_lab import reproduce as experiment
    from tlstd_lab.panel import check_scale
    from tlstd_lab.runner import choose_executor, show_progress
    from tlstd_lab.store import Store

    if list_:
        for name in questions.PANELS:
            typer.echo(f"{name:24} {questions.panel(name).title}")
        return
    try:
        if pack is not None:
            check_outputs("--pack", [pack], ("runs",), inputs=bundle or [], force=force)
        names = questions.names(figures or [])
        size = check_scale(scale)
        try:  # before hours of work, not after
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TlstdError(f"cannot write to {out} ({error.strerror}): choose another folder with --out") from error
        runs = Store(store or out / "runs", bundle or [])
        executor = choose_executor(cluster, workers)
        with show_progress() as progress:
            results, report = experiment.run(names, size, runs, executor, progress)
        if not report.complete:
            typer.echo(str(report), err=True)
            raise typer.Exit(report.exit_code)
        experiment.draw(names, results, out)
        shown, said = experiment.beside(names, results, out)
        judged = experiment.judge(shown, results)
        experiment.write_claims(shown, judged, size, out / experiment.CLAIMS)
        (out / "figures.md").write_text(experiment.captions(shown, size), encoding="utf-8")
        (out / "claims.md").write_text(experiment.claims_page(judged, size), encoding="utf-8")
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
        f"{said}",
        soft_wrap=True,
    )
