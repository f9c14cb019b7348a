"""Running rows, and what comes out: a table for the terminal, and JSON with every single time."""

from __future__ import annotations

import json
import math
import os
import platform
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from threadpoolctl import threadpool_info

from tlstd.core.threads import one_thread
from tlstd.errors import InvalidParameterError
from tlstd_lab.bench.registry import ROWS
from tlstd_lab.bench.row import Bench, title

if TYPE_CHECKING:
    from rich.table import Table

Report = dict[str, Any]


def check_names(names: Sequence[str]) -> list[str]:
    """The rows to run, in the order of the table: those named, all if none is.

    >>> check_names(["td", "atd"])
    ['td', 'atd']
    """
    for name in names:
        if name not in ROWS:
            raise InvalidParameterError(f"there is no row {name!r}: tlstd bench --list names them all")
    return [name for name in ROWS if not names or name in names]


def run(names: Sequence[str], *, quick: bool = False, progress: Callable[[str], None] = lambda _: None) -> Report:
    """Measure rows, with one BLAS thread unless a row says otherwise; returns what ``bench.json`` holds."""
    chosen = check_names(names)
    rows = {}
    with one_thread():
        for i, name in enumerate(chosen):
            progress(f"{name} ({i + 1} of {len(chosen)})")
            bench, begin, cpu = Bench(quick), time.perf_counter(), time.process_time()
            lines = ROWS[name](bench)
            total = time.process_time() - cpu
            rows[name] = {
                "title": title(ROWS[name]),
                "lines": [line.plain() for line in lines],
                "data": bench.data,
                "timed_cpu_seconds": bench.timed,
                "set_up_cpu_seconds": max(0.0, total - bench.timed),
                "wall_seconds": time.perf_counter() - begin,
            }
    command = " ".join(["uv run tlstd bench", *names, *(["--quick"] if quick else [])])
    return {"command": command, "quick": quick, "repeats": Bench(quick).repeats, "machine": machine(), "rows": rows}


def machine() -> dict[str, Any]:
    """What the times depend on: nothing that tells whose machine it is."""
    blas = sorted(
        {f"{info['internal_api']} {info['version']}" for info in threadpool_info() if info["user_api"] == "blas"}
    )
    return {
        "processor": platform.machine(),
        "cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "python": platform.python_version(),
        **{package: version(package) for package in ("numpy", "scipy", "numba")},
        "blas": blas,
    }


def write(report: Report, folder: Path) -> Path:
    """Write ``bench.json`` into the folder."""
    path = folder / "bench.json"
    path.write_text(json.dumps(_finite(report), indent=1, allow_nan=False) + "\n")
    return path


def _finite(value: Any) -> Any:
    """The same with None for numbers that JSON does not have: what has diverged is kept as diverged."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def table(report: Report) -> Table:
    """The report as a table for the terminal."""
    from rich.table import Table

    facts = report["machine"]
    excluded = sum(row["set_up_cpu_seconds"] for row in report["rows"].values())
    out = Table(
        caption=(
            f"{report['command']}\nratios of CPU time per step, median of {report['repeats']} interleaved repeats "
            f"(lowest to highest), one BLAS thread\nset-up, warm-up and compilation: {excluded:.0f} s of CPU time, not "
            f"counted\n{facts['cpus']} CPUs, Python {facts['python']}, NumPy {facts['numpy']}, SciPy {facts['scipy']}, "
            f"numba {facts['numba']}, {', '.join(facts['blas'])}"
        ),
        caption_justify="left",
    )
    out.add_column("row", no_wrap=True)
    out.add_column("measured / against")
    out.add_column("ratio", justify="right", no_wrap=True)
    out.add_column("lowest to highest", justify="right")
    out.add_column("target", justify="right", no_wrap=True)
    out.add_column("reached")
    out.add_column("CPU time per step, remarks")
    for name, row in report["rows"].items():
        for i, line in enumerate(row["lines"]):
            out.add_row(
                "" if i else name,
                f"{line['what']} / {line['against']}" if line["against"] else line["what"],
                f"{number(line['median'])}{_suffix(line['unit'])}",
                f"{number(line['low'])} to {number(line['high'])}" if len(line["values"]) > 1 else "",
                target(line),
                # tiny sizes say nothing about targets
                "" if report["quick"] else {True: "yes", False: "[bold]no[/]", None: ""}[line["reached"]],
                line["note"],
                end_section=i + 1 == len(row["lines"]),
            )
    return out


def number(value: float) -> str:
    """Three digits, without an exponent.

    >>> number(12.345), number(0.0171), number(1234.5), number(-0.004)
    ('12.3', '0.017', '1234', '-0.00')
    """
    if abs(value) >= 100.0:
        return f"{value:.0f}"
    return (
        f"{value:.1f}" if abs(value) >= 10.0 else f"{value:.2f}" if abs(value) >= 0.1 or value < 0 else f"{value:.3f}"
    )


def target(line: dict[str, Any]) -> str:
    """A line's target in words."""
    if line["target"] is None:
        return ""
    sign, bound = line["target"]
    return f"{'≥' if sign == '>=' else '≤'} {bound:g}{_suffix(line['unit'])}"


def _suffix(unit: str) -> str:
    return {"×": "×", "GB": " GB"}.get(unit, "")
