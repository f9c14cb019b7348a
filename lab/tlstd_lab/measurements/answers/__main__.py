"""How often the answers of ``tlstd.evaluate`` are right: coverage, width, error, light and CPU time of each problem.

uv run python -m tlstd_lab.measurements.answers FILE                        # the quick form, under 20 minutes of a core
uv run python -m tlstd_lab.measurements.answers FILE --logs 200 --workers 2 # the full table, in two processes
uv run python -m tlstd_lab.measurements.answers FILE --only bandit          # problems with this word in their name
uv run python -m tlstd_lab.measurements.answers FILE --table                # measures nothing: prints what FILE keeps
uv run python -m tlstd_lab.measurements.answers FILE --logs 200 --write     # writes the tables of ``docs/trust.md`` too

FILE keeps one line of JSON per log, with a digest of the code: a run that was stopped goes on there. The first logs of
all cells come before the second ones, so that a part of a run has all cells.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tlstd_lab.measurements.answers.cells import cells, digest, estimate, missing, read, run
from tlstd_lab.measurements.answers.tables import by_cell, tables
from tlstd_lab.tables import DOCS, write_tables

FULL = 200
"""Logs of the full table."""
QUICK = 24
"""Logs of the quick form, which leaves out the slowest cells: largest sizes that take two seconds per log."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is missing, and print the tables."""
    parser = argparse.ArgumentParser(prog="tlstd_lab.measurements.answers", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("file", type=Path, help="keeps one line of JSON per log")
    parser.add_argument("--logs", type=int, help=f"per cell: {QUICK} if left out, {FULL} for the full table")
    parser.add_argument("--only", default="", metavar="WORD", help="problems with this word in their name")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--table", action="store_true", help="measure nothing")
    parser.add_argument("--version", default="", metavar="DIGEST", help="with --table: the logs of other code")
    parser.add_argument("--write", action="store_true", help="write the tables of docs/trust.md")
    options = parser.parse_args(arguments)
    if options.version and not options.table:
        parser.error("--version shows the logs of other code: use it with --table")
    if options.write and options.only:
        parser.error("--write is for all problems: leave out --only")
    kept, version = read(options.file), options.version or digest()
    n_logs = options.logs or QUICK
    if options.table:
        n_logs = options.logs or 1 + max((key[-1] for key in kept), default=0)
    else:
        todo = missing(kept, cells(options.only, largest=n_logs > QUICK), n_logs)
        _measure(options.file, todo, options.workers, estimate(kept, todo))
        kept = read(options.file)
    measured = by_cell(kept, version, n_logs, options.only)
    if not measured:
        versions = Counter(key[0] for key in kept)
        said = ", ".join(f"{name} ({n:,} logs)" for name, n in versions.items()) or "nothing"
        sys.exit(f"{options.file} has no logs of the code {version}; it has: {said}")
    made = tables(measured)
    print("\n\n".join(made.values()))
    errors = Counter(one["error"] for logs in measured.values() for one in logs if "error" in one)
    for error, n in errors.most_common():
        print(f"{n:,} logs failed: {error}", file=sys.stderr)
    if options.write:
        write_tables(DOCS / "trust.md", made)


def _measure(file: Path, todo: list[tuple[str, str, int, int]], workers: int, seconds: float) -> None:
    """Measure logs, and say how far it is about twice a minute."""
    if not todo:
        return
    print(f"{len(todo):,} logs, about {seconds / 60:.0f} CPU minutes", file=sys.stderr, flush=True)
    told = began = time.monotonic()
    for n, _ in enumerate(run(file, todo, workers), 1):
        now = time.monotonic()
        if now - told > 30.0:
            left = (now - began) / n * (len(todo) - n)
            print(f"{n:,} of {len(todo):,}, {left / 60:.0f} minutes left", file=sys.stderr, flush=True)
            told = now


if __name__ == "__main__":
    main()
