"""Time of an evaluation of ten million steps in ten files, in this process and on one and two workers.

uv run python -m tlstd_lab.measurements.workers    # about three minutes
"""

from __future__ import annotations

import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

from tlstd.cluster.clients import local_workers
from tlstd.cluster.evaluate import evaluate_files
from tlstd_lab.measurements.large_log import STEPS, write
from tlstd_lab.tables import table

STAGES = {"reading": "reading", "choosing": "choosing, by the client", "encoding": "encoding", "round 0 ": "rounds"}
"""What a report begins with, and what is then done."""


def timed(pattern: str, n_workers: int) -> tuple[dict[str, float], float]:
    """Seconds of each stage, and the value."""
    began: list[tuple[str, float]] = []

    def report(text: str, share: float) -> None:
        stage = next((words for start, words in STAGES.items() if text.startswith(start)), None)
        if stage is not None:
            began.append((stage, time.perf_counter()))

    with local_workers(n_workers) if n_workers else nullcontext() as client:
        found = evaluate_files(pattern, gamma=0.99, client=client, report=report, estimators=("KrylovLSTD",))
        ends = [*(start for _, start in began[1:]), time.perf_counter()]
    return {stage: end - start for (stage, start), end in zip(began, ends, strict=True)}, found.value


def main() -> None:
    """Print the table."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        write(Path(name), STEPS)
        for n_workers in (0, 1, 2):
            seconds, value = timed(str(Path(name) / "*.parquet"), n_workers)
            who = f"{n_workers} worker{'s' * (n_workers > 1)}" if n_workers else "this process"
            rows.append([who, *(f"{seconds[stage]:.1f}" for stage in STAGES.values()), f"{sum(seconds.values()):.1f}"])
            rows[-1].append(repr(value))
    print(table(["seconds", *STAGES.values(), "all", "value"], rows))


if __name__ == "__main__":
    main()
