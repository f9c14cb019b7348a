"""``tlstd campaign``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

SHORT_HELP = "Try every promise until one breaks, for some hours."
EXAMPLES = (
    "tlstd campaign --hours 1 --jobs 2",
    "tlstd campaign --only kills --estimator TLSTD --hours 0.1",
)


def _estimators() -> list[str]:
    """The estimators' names, for the shell's completion."""
    from tlstd.estimators.registry import ESTIMATORS

    return list(ESTIMATORS)


def _promises() -> list[str]:
    """The rows' names, for the shell's completion."""
    from tlstd_lab.campaign.registry import PLACES

    return list(PLACES)


def command(
    hours: Annotated[float, typer.Option(min=0.0, metavar="HOURS", help="Time for all of it, shared by all.")] = 1.0,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="PROMISE", help="Promise to try, see --list; all if none.", autocompletion=_promises),
    ] = None,
    estimator: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Estimator to try; all if none.", autocompletion=_estimators),
    ] = None,
    at_most: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="As many of each and no more, where the target is higher.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="INTEGER", help="Seed of all of it.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, metavar="N", help="Processes at the same time.")] = 1,
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Folder for what was done and what fails; the same goes on.")
    ] = Path("tlstd-campaign"),
    unchecked: Annotated[
        bool, typer.Option("--unchecked", help="Kernels as they are used, without bounds checks.")
    ] = False,
    replay: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Make the try of one failure again, and stop.")
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="Name the promises and stop.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Try every promise until one breaks, for some hours: a table; the exit code is 1 if something fails.

    Stopped and started again it goes on where it was. Each failure is a file in FOLDER/failures, for --replay.
    """
    import json

    from rich.console import Console

    from tlstd.errors import TlstdError

    try:
        from tlstd_lab.campaign import registry, summary
        from tlstd_lab.campaign.engine import Campaign
        from tlstd_lab.campaign.store import Folder

        if list_:
            for name in registry.PLACES:
                typer.echo(f"{name:20} {registry.row(name).promise}")
            return
        if replay is not None:
            raise typer.Exit(_replayed(replay, checked=not unchecked))
        rows = registry.chosen(only or [], estimator or [])
        folder = Folder(out, seed)
        with summary.shown() as progress:
            campaign = Campaign(
                rows,
                folder,
                3600.0 * hours * jobs,
                at_most=at_most,
                checked=not unchecked,
                jobs=jobs,
                progress=progress,
            )
            if campaign.n_others:
                typer.echo(f"not counted in {out}: {campaign.n_others} lines of other code or another seed", err=True)
            code = 0
            try:
                campaign.run()
            except KeyboardInterrupt:
                typer.echo("stopped; the same command goes on", err=True)
                code = 130
    except TlstdError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    state = campaign.state
    if json_:
        typer.echo(json.dumps(summary.plain(state, seed)))
    else:
        console = Console()
        if not console.is_terminal:
            console = Console(width=160)
        console.print(summary.table(state))
    failures = sum(done.failures for done in state.done.values())
    if failures:
        typer.echo(f"{failures} failures, in {out / 'failures'}; once more: tlstd campaign --replay FILE", err=True)
    raise typer.Exit(code or int(failures > 0))


def _replayed(path: Path, *, checked: bool) -> int:
    from tlstd_lab.campaign.engine import replay

    failure, words = replay(path, checked=checked)
    said = f"{failure['row']}, {failure['subject']}, number {failure['number']}"
    if words is None:
        typer.echo(f"{said}: does not fail any more; it was: {failure['words']}")
        return 0
    typer.echo(f"{said}: {words}")
    return 1
