"""``tlstd evaluate``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_args

import typer

from tlstd.cli.outputs import Force

if TYPE_CHECKING:
    from tlstd.cluster.plan import Plan
    from tlstd.evaluation.report import Report
    from tlstd.logs.log import Log

SHORT_HELP = "Evaluate a policy from a log of steps."
EXAMPLES = (
    "tlstd evaluate 'logs/*.parquet' --gamma 0.99",
    "tlstd evaluate log.csv --gamma 0.9 --map reward=r --out page.html",
    "tlstd evaluate log.csv --gamma 0.9 --policy my_policies:careful --json",
    "tlstd evaluate logs/ --gamma 0.99 --workers 4 --plan",
)

Told = Callable[[str, float], None]
"""Progress callback: (message, fraction)."""


# what can be asked, in the order in which --help has it

Logs = Annotated[
    list[str], typer.Argument(metavar="LOG...", help="Files, folders or patterns: Parquet, CSV, Arrow, npz.")
]
Gamma = Annotated[float, typer.Option(min=0.0, max=1.0, metavar="NUMBER", help="Discount.")]
Policy = Annotated[
    str | None,
    typer.Option(
        metavar="MODULE:FUNCTION or column:NAME",
        help="The target policy: a function from observations to probabilities (or actions), or a column with "
        "its probabilities of the logged actions (column:NAME,NAME,...: of all actions); the logged policy, if "
        "left out. The module is imported from the current folder or from where Python finds it.",
    ),
]
Against = Annotated[
    str | None,
    typer.Option(
        metavar="MODULE:FUNCTION, column:NAME or logged",
        help="Another policy, to say how much more the target policy is worth; logged: the logged policy.",
    ),
]
Cost = Annotated[
    bool, typer.Option("--cost", help="The rewards are costs: smaller is better. Numbers stay as they are.")
]
Map = Annotated[
    list[str] | None,
    typer.Option(
        "--map",
        metavar="WHAT=COLUMN",
        help="Name of a column, e.g. reward=r or observation=x,y, or none: probability=; repeat.",
    ),
]
ClusterBy = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN", help="Column of which episodes belong together, e.g. user; short for --map cluster=COLUMN."
    ),
]
Preset = Annotated[
    str | None, typer.Option(metavar="NAME", help="Names of columns of: minari, lerobot, rllib, d4rl, flat.")
]
TimeLimit = Annotated[
    int | None,
    typer.Option(min=1, metavar="STEPS", help="Where done is the only flag: steps after which it is a time limit."),
]
Ends = Annotated[
    str | None,
    typer.Option(metavar="HOW", help="Where there are no flags: how episodes end, terminated or truncated."),
]
DropNan = Annotated[
    bool, typer.Option("--drop-nan", help="Drop episodes in which numbers are missing; else they are an error.")
]
Start = Annotated[
    str | None, typer.Option(metavar="STATE", help="first, all, or numbers of a state: 0.1,0.2; several with ;")
]
Features = Annotated[
    str, typer.Option(metavar="NAME", help="auto, tiles, mixed, quadratic, linear, smooth, leaves or columns.")
]
Estimate = Annotated[
    bool, typer.Option("--estimate", help="Estimate probabilities of the actions where the log has none.")
]
Compare = Annotated[
    bool,
    typer.Option("--compare", help="Show LSTD, t-LSTD, TD and fitted trees beside the answer too, which take longer."),
]
All = Annotated[bool, typer.Option("--all", help="The same as --compare.")]
Level = Annotated[float, typer.Option(metavar="SHARE", help="Of logs whose interval covers the true value.")]
Returns = Annotated[
    tuple[float, float] | None,
    typer.Option(
        metavar="LOW HIGH",
        help="Range of discounted returns from any step on: what actions that the log does not have are worth.",
    ),
]
Rewards = Annotated[
    tuple[float, float] | None,
    typer.Option(metavar="LOW HIGH", help="The same by the range of single rewards, summed over the horizon."),
]
Workers = Annotated[
    int, typer.Option(min=0, metavar="N", help="Let N processes of this machine read and keep the files.")
]
Cluster = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="Let the workers of a Dask scheduler do it: tcp://host:8786.")
]
OnError = Annotated[
    str, typer.Option(metavar="WHAT", help="With workers: stop at a file that cannot be used, or skip it.")
]
Checkpoint = Annotated[
    Path | None, typer.Option(metavar="FOLDER", help="With workers: keep rounds there, to go on after a stop.")
]
Spill = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", help="With workers: keep samples in files there, on their disks, not in memory."),
]
PlanOnly = Annotated[bool, typer.Option("--plan", help="Say what many files will take, from one of them, and stop.")]
Storage = Annotated[
    list[str] | None,
    typer.Option("--storage-option", metavar="NAME=VALUE", help="For addresses (s3://...): an option of polars."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Out = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE",
        help="Where to save the values for tlstd predict and tlstd inspect; if the name ends with .html, the page "
        "with the answer and why to trust it. Repeat for both. A file that tlstd did not write is not replaced.",
    ),
]


def command(
    logs: Logs,
    gamma: Gamma,
    policy: Policy = None,
    against: Against = None,
    cost: Cost = False,
    map_: Map = None,
    cluster_by: ClusterBy = None,
    preset: Preset = None,
    time_limit: TimeLimit = None,
    ends: Ends = None,
    drop_nan: DropNan = False,
    start: Start = None,
    features: Features = "auto",
    estimate: Estimate = False,
    compare: Compare = False,
    all_: All = False,
    level: Level = 0.95,
    returns: Returns = None,
    rewards: Rewards = None,
    workers: Workers = 0,
    cluster: Cluster = None,
    on_error: OnError = "stop",
    checkpoint: Checkpoint = None,
    spill: Spill = None,
    plan: PlanOnly = False,
    storage: Storage = None,
    json_: Json = False,
    out: Out = None,
    force: Force = False,
) -> None:
    """Evaluate a policy from a log of steps: the value of its start states, by several estimators side by side."""
    from tlstd.cli.asking import fail, kept_rounds, progress
    from tlstd.cli.outputs import check_outputs
    from tlstd.core import parameters
    from tlstd.errors import TlstdError

    try:
        paths = check_outputs(
            "--out", out or [], ("model", "page"), inputs=_local_files(logs) if out else (), force=force
        )
        parameters.choice("--on-error", on_error, get_args(parameters.OnError))
        if workers and cluster is not None:
            _refuse_both(workers)
        if not workers and cluster is None:
            _refuse_without_workers(
                {"--on-error skip": on_error == "skip", "--checkpoint": checkpoint, "--spill": spill}
            )
        named = _columns(map_ or [], cluster_by)
        asked = _asked("--policy", policy, named)
        other = None if against is None else _asked("--against", against, named)
        reading = {"on_nan": "drop" if drop_nan else "refuse", "time_limit": time_limit, "ends": ends}
        source = _Source(logs, asked.columns, preset, reading, _options(storage or []))
        question: dict[str, Any] = {"gamma": gamma, "features": features}
        if plan:
            typer.echo(_shown(_plan(source, _n_workers(workers, cluster), question), json_))
            return
        question |= {"policy": asked.policy, "start": start, "level": level, "cost": cost, "compare": compare or all_}
        with progress() as report, kept_rounds(checkpoint):
            question |= {"returns": returns, "reward_range": rewards}
            if workers or cluster is not None:
                _refuse_with_workers({"--estimate": estimate})
                files = {"on_error": on_error, "checkpoint": checkpoint, "spill": spill}
                found = _on_workers(source, asked, other, workers, cluster, question, files, report)
            else:
                question |= {"probabilities": "estimate" if estimate else "logged"}
                found = _here(source, asked, other, question, report)
            shown = _shown(found, json_)
    except (TlstdError, OSError) as error:
        fail(error)
    try:
        typer.echo(shown)
    finally:  # also if nobody reads the answer
        if paths:
            _save(found, paths)


def _shown(found: Report | Plan, as_json: bool) -> str:
    from tlstd.core.file_format import printable

    return found.to_json() if as_json else "\n".join(map(printable, str(found).splitlines()))


def _save(found: Report, paths: list[Path]) -> None:
    from tlstd.cli.outputs import write_outputs
    from tlstd.page import write_page

    pages = {path for path in paths if path.suffix.lower() in (".html", ".htm")}
    write_outputs(
        (path, "the page", lambda path: write_page(found, path))
        if path in pages
        else (path, "the values, for tlstd predict", found.save)
        for path in paths
    )


def _local_files(logs: list[str]) -> list[str]:
    """The files of a log that are on this machine."""
    from tlstd.logs.addresses import is_address
    from tlstd.logs.readers import file_names

    here = [name for name in logs if not is_address(name)]
    return file_names(here) if here else []


class _Source(NamedTuple):
    """A log as it is named on the command line."""

    logs: list[str]
    columns: dict[str, Any] | None
    preset: Any
    """As it was typed; checked where the log is read."""
    options: dict[str, Any]
    storage: dict[str, str] | None


class _Asked(NamedTuple):
    """A policy as it is named on the command line: in columns of the log, or a function."""

    name: str
    columns: dict[str, Any] | None
    policy: Any

    def named(self, report: Report) -> Report:
        """An answer about it, with the name of a function as it was given."""
        return replace(report, policy_name=self.name) if callable(self.policy) else report


def _asked(option: str, name: str | None, columns: dict[str, Any]) -> _Asked:
    from tlstd.cli.asking import as_policy
    from tlstd.errors import InvalidParameterError

    if name is None or name == "logged":
        return _Asked("the logged policy", columns or None, name)
    if name.startswith("column:"):
        if option == "--policy" and columns.get("policy"):
            raise InvalidParameterError(f"--map policy= and --policy {name} both name columns: leave one of them out")
        return _Asked(name, columns | _columns([f"policy={name.removeprefix('column:')}"]), None)
    return _Asked(name, columns or None, as_policy(name, option))


def _read(source: _Source, report: Told) -> Log:
    from tlstd.logs.log import Log

    report("reading", 0.0)
    return Log.from_frame(
        source.logs if len(source.logs) > 1 else source.logs[0],
        columns=source.columns,
        preset=source.preset,
        storage=source.storage,
        report=lambda text, share: report(text, 0.1 * share),
        **source.options,
    )


def _here(source: _Source, asked: _Asked, other: _Asked | None, question: dict[str, Any], report: Told) -> Report:
    """Evaluate in this process; another policy too, if there is one."""
    from tlstd.evaluation.evaluate import answers
    from tlstd.evaluation.question import Question

    log = _read(source, report)
    start = _start(question.pop("start"), log.discrete)
    gamma, policy = question.pop("gamma"), question.pop("policy")
    in_columns = other is not None and other.policy is None
    policies = (policy,) if other is None or in_columns else (policy, other.policy)
    one = Question(gammas=(gamma,), policies=policies, starts=(start,), **question)
    found = list(answers(one, log, lambda text, share: report(text, 0.1 + 0.8 * share)))
    if other is None:
        return asked.named(found[0])
    if in_columns:  # which a log has for one policy only
        log = _read(source._replace(columns=other.columns), report)
        two = replace(one, policies=(other.policy,))
        found += answers(two, log, lambda text, share: report(f"{other.name}: {text}", 0.9))
    return asked.named(found[0]).compared(other.named(found[1]), level=question["level"])


def _refuse_without_workers(given: dict[str, Any]) -> None:
    from tlstd.errors import InvalidParameterError

    for option in (name for name, value in given.items() if value):
        raise InvalidParameterError(
            f"{option} is for workers, which read a log file by file: add --workers 1, or leave it out"
        )


def _refuse_both(workers: int) -> None:
    from tlstd.errors import InvalidParameterError

    raise InvalidParameterError(
        f"--workers {workers} beside --cluster: --workers starts processes of this machine, and --cluster uses the "
        "workers that a Dask scheduler has: leave one of the two out"
    )


def _refuse_with_workers(given: dict[str, bool]) -> None:
    from tlstd.errors import InvalidParameterError

    for option in (name for name, value in given.items() if value):
        raise InvalidParameterError(
            f"{option} is for one process, which holds the whole log: leave it out, or leave out --workers, --cluster"
        )


def _on_workers(
    source: _Source,
    asked: _Asked,
    other: _Asked | None,
    workers: int,
    cluster: str | None,
    question: dict[str, Any],
    files: dict[str, Any],
    report: Told,
) -> Report:
    """Evaluate on processes of this machine, or on a cluster; another policy too, if there is one."""
    from tlstd.cluster.clients import connected, local_workers
    from tlstd.cluster.evaluate import answers_of_files
    from tlstd.errors import InvalidParameterError
    from tlstd.evaluation.question import Question

    report("waiting for workers", 0.0)
    one_reading = other is not None and other.columns == source.columns
    if other is not None and not one_reading and files["checkpoint"] is not None:
        raise InvalidParameterError(
            "--against names other columns than --policy, which is another reading and another question: leave out "
            "--checkpoint, or give one policy as a function"
        )
    everything = Question(
        gammas=(question["gamma"],),
        policies=(asked.policy, other.policy) if other is not None and one_reading else (asked.policy,),
        starts=(_start(question["start"], discrete=False),),
        **{name: question[name] for name in ("features", "level", "cost", "compare", "returns", "reward_range")},
    )
    with connected(cluster) if cluster is not None else local_workers(workers) as client:

        def answers(question: Question, columns: dict[str, Any] | None) -> tuple[Report, ...]:
            return answers_of_files(
                source.logs,
                question=question,
                client=client,
                columns=columns,
                preset=source.preset,
                options=source.options,
                storage=source.storage,
                report=lambda text, share: report(text, 0.9 * share),
                **files,
            )

        found = answers(everything, source.columns)
        if other is not None and not one_reading:
            found += answers(replace(everything, policies=(other.policy,)), other.columns)
    first = asked.named(found[0])
    return first if other is None else first.compared(other.named(found[1]), level=question["level"])


def _n_workers(workers: int, cluster: str | None) -> int:
    """How many there are, or will be."""
    if cluster is None:
        return max(1, workers)
    from tlstd.cluster.clients import connected

    with connected(cluster) as client:
        n = len(client.nthreads())
    if n == 0:
        typer.echo("the scheduler has no workers yet: the plan is for one", err=True)
    return max(1, n)


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
    options: dict[str, str] = {}
    for pair in pairs:
        name, value = pair.split("=", 1)
        if options.setdefault(name, value) != value:
            raise InvalidParameterError(f"--storage-option {name} is given twice: leave one of them out")
    return options or None


def _columns(pairs: list[str], cluster_by: str | None = None) -> dict[str, Any]:
    from tlstd.errors import InvalidParameterError

    columns: dict[str, Any] = {}
    for pair in pairs:
        what, equals, names = pair.partition("=")
        if not equals or not what:
            raise InvalidParameterError(f"--map {pair!r} is not WHAT=COLUMN: write e.g. --map reward=r")
        if what in columns:
            other = columns[what]
            before = f"{what}={','.join(other) if isinstance(other, list) else other or ''}"
            raise InvalidParameterError(f"--map {before} and --map {pair} are for one column: leave one of them out")
        parts = names.split(",")
        columns[what] = parts if len(parts) > 1 else parts[0] or None
    if cluster_by is not None:
        if "cluster" in columns:
            raise InvalidParameterError(
                f"--map cluster={columns['cluster'] or ''} and --cluster-by {cluster_by} are for one column: leave one "
                "of them out"
            )
        columns["cluster"] = cluster_by
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
