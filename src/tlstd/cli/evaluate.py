"""``tlstd evaluate``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

if TYPE_CHECKING:
    from tlstd.cluster.plan import Plan
    from tlstd.evaluation import Evaluation

SHORT_HELP = "Evaluate a policy from a log of steps."

Report = Callable[[str, float], None]


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
    level: Annotated[float, typer.Option(metavar="SHARE", help="Of logs whose interval covers the true value.")] = 0.95,
    workers: Annotated[
        int, typer.Option(min=0, metavar="N", help="Let N processes of this machine read and keep the files.")
    ] = 0,
    cluster: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Let the workers of a Dask scheduler do it: tcp://host:8786.")
    ] = None,
    on_error: Annotated[
        str, typer.Option(metavar="WHAT", help="With workers: stop at a file that cannot be used, or skip it.")
    ] = "stop",
    checkpoint: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="With workers: keep rounds there, to go on after a stop.")
    ] = None,
    spill: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="With workers: keep samples in files there, on their disks, not in memory."
        ),
    ] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Say what many files will take, from one of them, and stop.")
    ] = False,
    storage: Annotated[
        list[str] | None,
        typer.Option("--storage-option", metavar="NAME=VALUE", help="For addresses (s3://...): an option of polars."),
    ] = None,
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
    from tlstd.page import write_page

    try:
        for path in out or []:
            replaceable(path)  # before minutes of work, not after
        columns, target = _columns(map_ or []), None
        if policy is not None and policy.startswith("column:"):
            columns = (columns or {}) | _columns([f"policy={policy.removeprefix('column:')}"])
        elif policy is not None:
            target = as_policy(policy)
        log_options: dict[str, Any] = {"on_nan": "drop" if drop_nan else "refuse"}
        log_options |= {"time_limit": time_limit, "ends": ends}
        source = _Source(logs, columns or None, preset, log_options, _options(storage or []))
        question: dict[str, Any] = {"gamma": gamma, "features": features}
        if plan:
            found_plan = _plan(source, max(1, workers), question)
            typer.echo(found_plan.to_json() if json_ else "\n".join(map(printable, str(found_plan).splitlines())))
            return
        question |= {"policy": target, "start": start, "level": level}
        with progress() as report:
            if workers or cluster is not None:
                how = {"on_error": on_error, "checkpoint": checkpoint, "spill": spill}
                found = _on_workers(source, workers, cluster, question | how, report)
            else:
                question |= {"probabilities": "estimate" if estimate else "logged", "all": all_}
                found = _here(source, question, report)
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


class _Source(NamedTuple):
    """A log as it is named on the command line."""

    logs: list[str]
    columns: dict[str, Any] | None
    preset: str | None
    options: dict[str, Any]
    storage: dict[str, str] | None


def _here(source: _Source, question: dict[str, Any], report: Report) -> Evaluation:
    """Evaluate in this process."""
    from tlstd.evaluation import evaluate
    from tlstd.logs import Log

    report("reading", 0.0)
    log = Log.from_frame(
        source.logs if len(source.logs) > 1 else source.logs[0],
        columns=source.columns,
        preset=source.preset,
        storage=source.storage,
        report=lambda text, share: report(text, 0.1 * share),
        **source.options,
    )
    question |= {"start": _start(question["start"], log.discrete)}
    return evaluate(log, report=lambda text, share: report(text, 0.1 + 0.8 * share), **question)


def _on_workers(
    source: _Source,
    workers: int,
    cluster: str | None,
    question: dict[str, Any],
    report: Report,
) -> Evaluation:
    """Evaluate on processes of this machine, or on a cluster."""
    from tlstd.cluster.clients import connected, local_workers
    from tlstd.cluster.evaluate import evaluate_files

    report("waiting for workers", 0.0)
    question |= {"start": _start(question["start"], discrete=False)}
    with connected(cluster) if cluster is not None else local_workers(workers) as client:
        return evaluate_files(
            source.logs,
            client=client,
            columns=source.columns,
            preset=source.preset,
            options=source.options,
            storage=source.storage,
            report=lambda text, share: report(text, 0.9 * share),
            **question,
        )


def _plan(source: _Source, workers: int, question: dict[str, Any]) -> Plan:
    """What many files will take."""
    from tlstd.cluster.log_shard import LogFile
    from tlstd.cluster.plan import plan
    from tlstd.logs.readers import file_names

    names = file_names(source.logs, source.storage)
    files = [LogFile(name, source.columns, source.preset, source.options, source.storage) for name in names]
    return plan(files, n_workers=workers, **question)


def _options(pairs: list[str]) -> dict[str, str] | None:
    from tlstd.errors import InvalidParameterError

    for pair in pairs:
        if "=" not in pair:  # the pair may be a secret, and is not shown
            raise InvalidParameterError("--storage-option is not NAME=VALUE: write e.g. aws_region=eu-west-1")
    return dict(pair.split("=", 1) for pair in pairs) or None


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
