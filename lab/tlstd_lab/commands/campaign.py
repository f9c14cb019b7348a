"""``tlstd campaign``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

SHORT_HELP = "Interrupt, share, copy and feed estimators until one breaks."
EXAMPLES = (
    "tlstd campaign --estimator TD --reads 1000",
    "tlstd campaign --estimator TLSTD --seed 7 --jobs 2",
)


def _estimators() -> list[str]:
    """The estimators' names, for the shell's completion."""
    from tlstd.estimators.registry import ESTIMATORS

    return list(ESTIMATORS)


def command(
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
    jobs: Annotated[int, typer.Option(min=1, metavar="N", help="Parts that are done at the same time.")] = 1,
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
    from tlstd_lab import campaign as experiment

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
        results = experiment.run(
            names, counts, out, seed=seed, checked=not unchecked, jobs=jobs, progress=status.update
        )
    console.print(experiment.table(results))
    failures = [failure for result in results for failure in result.failures]
    if failures:
        console.print(f"{len(failures)} failures, in {out / 'failures.jsonl'}; the first: {failures[0]['words']}")
        raise typer.Exit(1)
