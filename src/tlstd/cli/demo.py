"""``tlstd demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tlstd.cli.outputs import Force

SHORT_HELP = "Learn Mountain Car with nine methods, and evaluate a log of it."
EXAMPLES = (
    "tlstd demo",
    "tlstd demo --seed 7 --out somewhere",
)


def command(
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for figure and log.")] = Path("tlstd-demo"),
    seed: Annotated[int, typer.Option(min=0, metavar="INTEGER", help="Seed of the stream.")] = 0,
    force: Force = False,
) -> None:
    """Learn the values of Mountain Car with nine methods (a table, a figure), and evaluate a driver from a log."""
    from rich.console import Console

    from tlstd import demo as experiment
    from tlstd.cli.asking import fail
    from tlstd.cli.outputs import check_outputs
    from tlstd.errors import TlstdError

    path, log = out / "mountain_car.png", out / "drives.csv"
    try:  # before a minute's work, not after
        out.mkdir(parents=True, exist_ok=True)
        check_outputs("--out", [path, log], ("figure", "demo"), force=force)
        path.touch()
    except TlstdError as error:
        fail(error)
    except OSError as error:
        typer.echo(f"cannot write {path} ({error.strerror}): choose another folder with --out", err=True)
        raise typer.Exit(1) from None
    console = Console()
    with console.status("starting") as status:
        results, truth = experiment.run(seed=seed, report=status.update)
        status.update("drawing")
        experiment.draw(results, truth, path)
        status.update("a log")
        found = experiment.answer(experiment.write_log(log, seed=seed))
    console.print(experiment.table(results))
    console.print(f"figure: {path}", soft_wrap=True, highlight=False)
    interval = found.interval_or_none
    if interval is not None:
        words = f"{found.value:.2f}, 95% interval [{interval.low:.2f}, {interval.high:.2f}], trust {found.light}"
        console.print(f"A careless driver, from {experiment.LOGGED:,} logged steps: {words}.", soft_wrap=True)
    again = f"tlstd evaluate {log} --gamma {experiment.GAMMA} --out {out / 'answer.html'}"
    console.print(
        "RMSE: against the true values of a grid of states; how to read it is in docs/index.md.", highlight=False
    )
    console.print(
        f"The log is {log}. Ask it yourself, and see the page (in a clone with uv run before it):\n    {again}",
        soft_wrap=True,
        highlight=False,
    )
