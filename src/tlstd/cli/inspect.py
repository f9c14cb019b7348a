"""``tlstd inspect``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

SHORT_HELP = "Show what is in a saved model."
EXAMPLES = (
    "tlstd inspect model.tlstd",
    "tlstd inspect model.tlstd --json | python -m json.tool",
)


def command(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="File that model.save() wrote.")],
    json_: Annotated[
        bool, typer.Option("--json", help="Print JSON, for programs; docs/state.md has its keys.")
    ] = False,
) -> None:
    """Show what is in a saved model: parameters, samples, spectrum, and whether its rank fits."""
    import json

    from rich.console import Console

    from tlstd import inspection
    from tlstd.cli.asking import fail
    from tlstd.errors import StateError

    try:
        found = inspection.examine_file(model)
    except StateError as error:
        fail(error)
    if json_:
        typer.echo(json.dumps(found.plain(), allow_nan=False))
        return
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=100)
    unicode = console.is_terminal and not console.options.ascii_only
    console.print(inspection.render(found, width=console.width, unicode=unicode), crop=False)
