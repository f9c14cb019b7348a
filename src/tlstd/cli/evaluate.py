"""``tlstd evaluate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

SHORT_HELP = "Evaluate a policy from a log of steps."


def command(
    logs: Annotated[
        list[str], typer.Argument(metavar="LOG...", help="Files, folders or patterns: Parquet, CSV, Arrow, npz.")
    ],
    gamma: Annotated[float, typer.Option(min=0.0, max=1.0, metavar="NUMBER", help="Discount.")],
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:FUNCTION or column:NAME",
            help="The policy asked for, a function from observations to probabilities (or actions), or a column with "
            "its probabilities of the logged actions (column:NAME,NAME,...: of all actions); the one that acted, if "
            "left out. The module is imported from the current folder or from where Python finds it.",
        ),
    ] = None,
    map_: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            metavar="WHAT=COLUMN",
            help="Name of a column, e.g. reward=r or observation=x,y, or none: probability=; repeat.",
        ),
    ] = None,
    preset: Annotated[
        str | None, typer.Option(metavar="NAME", help="Names of columns of: minari, lerobot, rllib, d4rl, flat.")
    ] = None,
    time_limit: Annotated[
        int | None,
        typer.Option(min=1, metavar="STEPS", help="Where done is the only flag: steps after which it is a time limit."),
    ] = None,
    ends: Annotated[
        str | None,
        typer.Option(metavar="HOW", help="Where there are no flags: how episodes end, terminated or truncated."),
    ] = None,
    drop_nan: Annotated[
        bool, typer.Option("--drop-nan", help="Drop episodes in which numbers are missing; else they are an error.")
    ] = False,
    start: Annotated[
        str | None, typer.Option(metavar="STATE", help="first, all, or numbers of a state: 0.1,0.2; several with ;")
    ] = None,
    features: Annotated[str, typer.Option(metavar="NAME", help="auto, or columns: as they are.")] = "auto",
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Estimate probabilities of the actions where the log has none.")
    ] = False,
    all_: Annotated[bool, typer.Option("--all", help="Leave no estimator out that takes long.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
    out: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Where to save the values for tlstd predict and tlstd inspect; if the name ends with .html, the page "
            "with the answer and why to trust it. Repeat for both.",
        ),
    ] = None,
) -> None:
    """Evaluate a policy from a log of steps: the value of its start states, by several estimators side by side."""
    from tlstd.cli.asking import as_policy, fail, progress
    from tlstd.container import printable, replaceable
    from tlstd.errors import TlstdError
    from tlstd.evaluation import evaluate
    from tlstd.logs import Log
    from tlstd.page import write_page

    try:
        for path in out or []:
            replaceable(path)  # before minutes of work, not after
        columns, target = _columns(map_ or []), None
        if policy is not None and policy.startswith("column:"):
            columns = (columns or {}) | _columns([f"policy={policy.removeprefix('column:')}"])
        elif policy is not None:
            target = as_policy(policy)
        with progress() as report:
            report("reading", 0.0)
            log = Log.from_frame(
                logs if len(logs) > 1 else logs[0],
                columns=columns or None,
                preset=preset,
                time_limit=time_limit,
                ends=ends,
                on_nan="drop" if drop_nan else "refuse",
                report=lambda text, share: report(text, 0.1 * share),
            )
            found = evaluate(
                log,
                gamma=gamma,
                features=features,
                policy=target,
                start=_start(start, log.discrete),
                probabilities="estimate" if estimate else "logged",
                all=all_,
                report=lambda text, share: report(text, 0.1 + 0.8 * share),
            )
            report("how far to trust it", 0.95)
            shown = found.to_json() if json_ else "\n".join(printable(line) for line in str(found).splitlines())
        for path in out or []:
            if path.suffix.lower() in (".html", ".htm"):
                write_page(found, path)
            else:
                found.save(path)
    except (TlstdError, OSError) as error:
        fail(error)
    typer.echo(shown)


def _columns(pairs: list[str]) -> dict[str, Any]:
    from tlstd.errors import InvalidParameterError

    columns: dict[str, Any] = {}
    for pair in pairs:
        what, equals, names = pair.partition("=")
        if not equals or not what:
            raise InvalidParameterError(f"--map {pair!r} is not WHAT=COLUMN: write e.g. --map reward=r")
        parts = names.split(",")
        columns[what] = parts if len(parts) > 1 else parts[0] or None
    return columns


def _start(start: str | None, discrete: bool) -> Any:
    from tlstd.errors import InvalidParameterError

    if start is None or start in ("first", "all"):
        return start
    try:
        states = [[float(number) for number in state.split(",")] for state in start.split(";")]
    except ValueError:
        raise InvalidParameterError(f"--start {start!r} is not first, all or numbers: write e.g. 0.1,0.2") from None
    return [state[0] for state in states] if discrete and all(len(state) == 1 for state in states) else states
