"""What a campaign has reached, as a table and for programs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tlstd_lab.campaign import registry
from tlstd_lab.campaign.engine import Progress, State
from tlstd_lab.campaign.store import code

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

EVERY = 15.0
"""Seconds between two lines where there is no terminal."""


def plain(state: State, seed: int) -> dict[str, Any]:
    """All numbers, for JSON."""
    rows = []
    for name, subjects in state.rows.items():
        row = registry.row(name)
        counts = {subject: row.each * state.of(name, subject).tries for subject in subjects}
        rows.append(
            {
                "row": name,
                "promise": row.promise,
                "unit": row.unit,
                "target": row.each * state.limits[name] * len(subjects),
                "reached": sum(counts.values()),
                "failures": sum(state.of(name, subject).failures for subject in subjects),
                "seconds": round(state.spent(name), 1),
                "subjects": {
                    subject: {
                        "reached": counts[subject],
                        "failures": state.of(name, subject).failures,
                        "seconds": round(state.of(name, subject).seconds, 1),
                        "tally": dict(state.of(name, subject).tally),
                    }
                    for subject in subjects
                },
            }
        )
    return {"seed": seed, "code": code(), "seconds": round(state.spent(), 1), "rows": rows}


def table(state: State) -> Table:
    """Promise, target, reached, failures and time."""
    from rich.table import Table

    out = Table(title="What was tried, and what failed")
    for heading in ("promise", "target", "reached", "failures", "time"):
        out.add_column(heading, justify="left" if heading == "promise" else "right")
    for line in plain(state, 0)["rows"]:
        n, counts = len(line["subjects"]), [each["reached"] for each in line["subjects"].values()]
        target, reached = f"{line['target']:,} {line['unit']}", f"{line['reached']:,}"
        if n > 1:
            target = f"{n} × {line['target'] // n:,} {line['unit']}"
            if min(counts) < line["target"] // n:
                reached += f" ({min(counts):,} to {max(counts):,} each)"
        out.add_row(line["promise"], target, reached, f"{line['failures']}", _time(line["seconds"]))
    return out


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


@contextmanager
def shown() -> Iterator[Progress]:
    """Show how far it is: a bar in a terminal, else a line now and then; on standard error."""
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines(console)
        return
    with Bar(BarColumn(), TimeRemainingColumn(), TextColumn("{task.description}"), console=console) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda state: bar.update(task, total=state.seconds, completed=state.spent(), description=_now(state))


def _now(state: State) -> str:
    failures = sum(done.failures for done in state.done.values())
    return state.now + (f" ({failures} failures so far)" if failures else "")


def _lines(console: Console) -> Progress:
    last = -EVERY

    def show(state: State) -> None:
        nonlocal last
        if time.monotonic() - last >= EVERY:
            last = time.monotonic()
            console.print(f"{state.spent():.0f} of {state.seconds:.0f} s; {_now(state)}", soft_wrap=True, markup=False)

    return show
