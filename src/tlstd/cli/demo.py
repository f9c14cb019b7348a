"""``tlstd demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

SHORT_HELP = "Learn the values of Mountain Car: a table and a figure."
EXAMPLES = (
    "tlstd demo",
    "tlstd demo --seed 7 --out somewhere",
)


def command(
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the figure.")] = Path("tlstd-demo"),
    seed: Annotated[int, typer.Option(min=0, metavar="INTEGER", help="Seed of the stream.")] = 0,
) -> None:
    """Learn the values of Mountain Car with TD, true-online TD, iLSTD, ATD, t-LSTD and LSTD: a table and a figure."""
    from rich.console import Console

    from tlstd import demo as experiment

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
