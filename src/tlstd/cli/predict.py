"""``tlstd predict``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

SHORT_HELP = "Predict the values of states by a saved evaluation."
EXAMPLES = (
    "tlstd predict values states.csv",
    "echo 0.1,0.2 | tlstd predict values - --json",
)


def command(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="File that tlstd evaluate --out wrote.")],
    states: Annotated[
        str,
        typer.Argument(
            metavar="STATES", help="A file with a row of numbers for each state (CSV, Parquet, npy), or - for input."
        ),
    ],
    policy: Annotated[
        str | None,
        typer.Option(metavar="MODULE:FUNCTION", help="Of action values: the policy; else one column an action."),
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Predict the values of states by a saved evaluation: one line per state."""
    import json

    from tlstd.cli.asking import as_policy, fail, read_states
    from tlstd.errors import TlstdError
    from tlstd.evaluation.value_function import ValueFunction

    try:
        values = ValueFunction.load(model)
        target = None if policy is None else as_policy(policy)
        found = values.predict(read_states(states), policy=target)
    except (TlstdError, OSError) as error:
        fail(error)
    if json_:
        typer.echo(json.dumps(found.tolist()))
        return
    for row in found.reshape(len(found), -1).tolist():
        typer.echo(" ".join(f"{number:.10g}" for number in row))
