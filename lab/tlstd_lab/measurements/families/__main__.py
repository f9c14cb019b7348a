"""RMSE of state values by family of features, beside fitted value iteration: 28 problems whose values are known.

uv run --with scikit-learn python -m tlstd_lab.measurements.families FILE             # 20 seeds, an hour of a core
uv run python -m tlstd_lab.measurements.families FILE --methods auto --workers 2      # one method, in two processes
uv run python -m tlstd_lab.measurements.families FILE --only energy --seeds 3         # problems with this word
uv run python -m tlstd_lab.measurements.families FILE --table                         # prints what FILE keeps
uv run python -m tlstd_lab.measurements.families FILE --write                         # writes docs/features.md too

FILE keeps one line of JSON per problem, method and seed, with a digest of the problem's data and of the code of such
methods: a run that was stopped goes on there, and a change of the library does not measure the rivals again.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from tlstd_lab.measurements.families.cells import METHODS, Key, estimate, named, read, run, wanted
from tlstd_lab.measurements.families.problems import PROBLEMS
from tlstd_lab.measurements.families.rivals import RIVALS
from tlstd_lab.measurements.families.tables import by_problem, refusals, tables
from tlstd_lab.tables import DOCS, write_tables

SEEDS = 20


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is missing, and print the tables."""
    parser = argparse.ArgumentParser(prog="tlstd_lab.measurements.families", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("file", type=Path, help="keeps one line of JSON per problem, method and seed")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"per problem and method: {SEEDS} if left out")
    parser.add_argument("--only", default="", metavar="WORD", help="problems with this word in their name")
    parser.add_argument("--methods", default="", metavar="WORD", help=f"separated by commas, of {', '.join(METHODS)}")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--table", action="store_true", help="measure nothing")
    parser.add_argument("--write", action="store_true", help="write the table of docs/features.md")
    options = parser.parse_args(arguments)
    names, methods = named(options.only, PROBLEMS), named(options.methods, METHODS)
    if not names or not methods:
        parser.error(f"nothing has this word; problems: {', '.join(PROBLEMS)}; methods: {', '.join(METHODS)}")
    if options.write and options.only:
        parser.error("--write is for all problems: leave out --only")
    kept = read(options.file)
    if not options.table:
        todo = [key for key in wanted(options.only, options.methods, options.seeds) if key not in kept]
        if any(key.method in RIVALS and key.method != "constant" for key in todo) and find_spec("sklearn") is None:
            parser.error("trees and network need scikit-learn: uv run --with scikit-learn python -m ..., or --methods")
        _measure(options.file, todo, options.workers, estimate(kept, todo))
        kept = read(options.file)
    measured = by_problem(kept, names, options.seeds)
    if not measured:
        sys.exit(f"{options.file} has nothing of the code as it is now: leave out --table")
    made = tables(measured)
    print("\n\n".join(made.values()))
    for text in refusals(measured):
        print(text, file=sys.stderr)
    if options.write:
        write_tables(DOCS / "features.md", made)


def _measure(file: Path, todo: list[Key], workers: int, seconds: float) -> None:
    """Measure, and say how far it is about twice a minute."""
    if not todo:
        return
    print(f"{len(todo):,} runs, about {seconds / 60:.0f} CPU minutes", file=sys.stderr, flush=True)
    told = began = time.monotonic()
    for n, _ in enumerate(run(file, todo, workers), 1):
        now = time.monotonic()
        if now - told > 30.0:
            left = (now - began) / n * (len(todo) - n)
            print(f"{n:,} of {len(todo):,}, {left / 60:.0f} minutes left", file=sys.stderr, flush=True)
            told = now


if __name__ == "__main__":
    main()
