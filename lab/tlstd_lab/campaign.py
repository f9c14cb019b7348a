"""The checks of reliability in numbers that find rare failures, for every estimator, with bounds-checked kernels.

    uv run tlstd campaign                                         # all estimators
    uv run python -m tlstd_lab.campaign TD files 2000 0 --only 17      # one try of it again

Each estimator has a process of its own, in which Numba checks every index (``NUMBA_BOUNDSCHECK``), and each part
runs in children of that process.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tlstd.errors import InvalidParameterError
from tlstd_lab import crafted_values

if TYPE_CHECKING:
    from rich.table import Table

    from tlstd.checks.children import Outcome

COUNTS: dict[str, int] = {"interrupts": 200, "exceptions": 200, "reads": 100_000, "files": 2_000, "inputs": 20_000}
"""What is done to each estimator, and how often."""


@dataclass
class Result:
    """What became of one part for one estimator.

    Attributes
    ----------
    done : int
        Interrupts, exceptions, reads, files or inputs.
    tally : dict
        What the tries that did not fail said.
    failures : list of dict
        With the number of the try, what happened, and the command that does it again.
    """

    estimator: str
    part: str
    done: int
    seconds: float
    tally: dict[str, int] = field(default_factory=dict)
    failures: list[dict[str, Any]] = field(default_factory=list)


def bounds_checked() -> dict[str, str]:
    """The environment in which kernels check their indices, with a cache of their machine code of its own."""
    from tlstd.domains.cache import cache_folder

    environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1"}
    folder = cache_folder()
    if folder is not None:
        environment["NUMBA_CACHE_DIR"] = str(folder / "bounds-checked")
    return environment


def check_names(names: Sequence[str]) -> list[str]:
    """The estimators to try, in the registry's order: those named, all if none is."""
    from tlstd.estimators.registry import ESTIMATORS

    known = [*ESTIMATORS, crafted_values.NAME]
    for name in names:
        if name not in known:
            raise InvalidParameterError(f"there is no estimator {name!r}: choose from {', '.join(known)}")
    return [name for name in known if not names or name in names]


def run(
    names: Sequence[str],
    counts: Mapping[str, int],
    out: Path,
    *,
    seed: int = 0,
    checked: bool = True,
    jobs: int = 1,
    progress: Callable[[str], None] = lambda _: None,
) -> list[Result]:
    """Try estimators part by part; failures are also written to ``out/failures.jsonl``, crafted files beside it.

    Parameters
    ----------
    names : sequence of str
        From the registry; all if there are none.
    counts : mapping
        As :data:`COUNTS`; a part with 0 is left out.
    out : Path
        Folder, which must exist.
    seed : int
    checked : bool
        Whether kernels check their indices.
    jobs : int
        How many parts are done at the same time.
    progress : callable
        Is told what has been done.
    """
    parts = [
        (name, part)
        for name in check_names(names)
        for part in COUNTS
        if counts.get(part) and (part == "files" or name != crafted_values.NAME)
    ]
    results: list[Result] = []
    with (
        (out / "failures.jsonl").open("w", encoding="utf-8") as log,
        ThreadPoolExecutor(jobs, thread_name_prefix="campaign") as pool,
    ):
        tasks = [pool.submit(_run_process, name, part, counts[part], seed, out, checked) for name, part in parts]
        try:
            for (name, part), task in zip(parts, tasks, strict=True):
                progress(f"{len(results)} of {len(parts)} parts done; {name}: {counts[part]:,} {part}")
                result = task.result()
                results.append(result)
                for failure in result.failures:
                    log.write(json.dumps({"estimator": name, "part": part, **failure}) + "\n")
                log.flush()
        finally:  # after Ctrl-C nothing further is begun
            pool.shutdown(cancel_futures=True)
    return results


def _run_process(name: str, part: str, count: int, seed: int, out: Path, checked: bool) -> Result:
    arguments = ["-m", "tlstd_lab.campaign", name, part, str(count), str(seed)]
    environment = bounds_checked() if checked else dict(os.environ)
    start = time.perf_counter()
    process = subprocess.run(
        [sys.executable, *arguments, "--out", str(out)], env=environment, capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - start
    try:
        return Result(name, part, seconds=seconds, **json.loads(process.stdout.splitlines()[-1]))
    except (IndexError, ValueError):
        last = (process.stderr.strip().splitlines() or ["nothing was said"])[-1]
        words = f"the process ended with code {process.returncode}: {last}"
        return Result(
            name,
            part,
            0,
            seconds,
            failures=[{"number": -1, "words": words, "again": shlex.join(["python", *arguments])}],
        )


def try_part(name: str, part: str, count: int, seed: int, only: range | None, out: Path | None) -> dict[str, Any]:
    """Do one part of the campaign in this process; what :class:`Result` holds."""
    from tlstd.checks import files, inputs, reliability
    from tlstd.estimators.ilstd import ILSTD
    from tlstd.estimators.lstd import LSTD
    from tlstd.estimators.registry import ESTIMATORS
    from tlstd.estimators.tlstd import TLSTD

    factory = ESTIMATORS["KrylovLSTD" if name == crafted_values.NAME else name]
    model, each = factory(8), 1
    wide, finite = isinstance(model, ILSTD), isinstance(model, (LSTD, TLSTD))
    outcomes: list[Outcome]
    if name == crafted_values.NAME:
        outcomes = crafted_values.try_files(count, seed=seed, only=only)
    elif part == "interrupts":
        outcomes = reliability.try_interrupts(factory, count, seed=seed, only=only)
    elif part == "exceptions":
        outcomes = reliability.try_exceptions(factory, count, seed=seed, only=only)
    elif part == "reads":  # odd tries are those beside a writer
        each = reliability.N_READERS * reliability.READS
        tries = -(-count // each)
        both = only or range(tries)
        outcomes = []
        for writer in (False, True):
            numbers = range(both.start + (both.start % 2 != writer), both.stop, 2)
            outcomes += reliability.try_reads(factory, tries, writer=writer, seed=seed, only=numbers) if numbers else []
    elif part == "files":
        outcomes = files.try_files(factory, count, seed=seed, only=only, wide=wide)
    else:
        each = inputs.INPUTS
        outcomes = inputs.try_inputs(factory, -(-count // each), seed=seed, only=only, finite=finite)
    failures: list[dict[str, Any]] = []
    for outcome in outcomes:
        if outcome.failed:
            again = ["uv", "run", "python", "-m", "tlstd_lab.campaign", name, part, str(count), str(seed)]
            again += ["--only", str(outcome.number)]
            failures.append({"number": outcome.number, "words": outcome.words, "again": shlex.join(again)})
    if part == "files" and failures and out is not None:
        own = name == crafted_values.NAME
        sound = crafted_values.sound_files() if own else files.sound_files(factory, wide=wide)
        for failure in failures:
            what, data = files.crafted(sound, seed, failure["number"])
            path = out / f"{name}-{seed}-{failure['number']}.tlstd".replace(" ", "-")
            path.write_bytes(data)
            failure.update(file=path.name, changed=what)
    tally = Counter(outcome.words for outcome in outcomes if not outcome.failed) if part != "inputs" else Counter()
    if part == "inputs":
        tally["refused"] = sum(int(outcome.words.split()[0]) for outcome in outcomes if not outcome.failed)
    return {"done": each * len(outcomes), "tally": dict(tally), "failures": failures}


def table(results: Sequence[Result]) -> Table:
    """The results as a table for the terminal: what was done, and how much of it failed."""
    from rich.table import Table

    out = Table(title="Failures among what was tried")
    parts = [part for part in COUNTS if any(result.part == part for result in results)]
    for heading in ("estimator", *parts, "time"):
        out.add_column(heading, justify="left" if heading == "estimator" else "right")
    for name in dict.fromkeys(result.estimator for result in results):
        own = {result.part: result for result in results if result.estimator == name}
        cells = [f"{len(own[part].failures)} of {own[part].done:,}" if part in own else "" for part in parts]
        out.add_row(name, *cells, f"{sum(result.seconds for result in own.values()):.0f} s")
    return out


def main(arguments: Sequence[str] | None = None) -> int:
    """Do one part, print it as JSON, and return 1 if something failed."""
    import argparse

    parser = argparse.ArgumentParser(description="One part of tlstd campaign, in this process.")
    parser.add_argument("estimator")
    parser.add_argument("part", choices=list(COUNTS))
    parser.add_argument("count", type=int)
    parser.add_argument("seed", type=int)
    parser.add_argument("--only", type=int, help="number of the one try to do")
    parser.add_argument("--out", type=Path, help="folder for crafted files that fail")
    chosen = parser.parse_args(arguments)
    (name,) = check_names([chosen.estimator])
    only = None if chosen.only is None else range(chosen.only, chosen.only + 1)
    result = try_part(name, chosen.part, chosen.count, chosen.seed, only, chosen.out)
    print(json.dumps(result))
    return 1 if result["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
