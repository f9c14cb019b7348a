"""The process in which tries are made: it is told rows and subjects on its input, and answers in batches.

Each batch runs in children of this process, unless the row is to be alone.
"""

from __future__ import annotations

import base64
import ctypes
import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from tlstd_lab.campaign import registry
from tlstd_lab.campaign.faults import children
from tlstd_lab.campaign.row import Row

BATCH = 5.0
"""Seconds that a batch is to take: what is lost when it is cut off."""

MAX_FAILURES = 10
"""After which a subject is tried no further."""

MAX_WORDS = 3
"""Different words that a tally has, besides all others."""


def batches(row: Row, order: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Make the tries from ``first`` to before ``limit`` until the time is over, at least one; what became of them."""
    subject, seed, folder = order["subject"], order["seed"], Path(order["folder"])
    folder.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    task = row.task(subject, seed, folder)
    try:
        first, size, n_failures = order["first"], 1, 0
        deadline = time.perf_counter() + order["seconds"]
        while first < order["limit"] and (time.perf_counter() < deadline or first == order["first"]):
            numbers = range(first, min(first + size, order["limit"]))
            begun = time.perf_counter()
            outcomes = _made(row, task, numbers)
            took = time.perf_counter() - begun
            first += len(outcomes)
            failures = [_failure(row, subject, seed, folder, outcome) for outcome in outcomes if outcome.failed]
            n_failures += len(failures)
            tally = Counter(outcome.words for outcome in outcomes if not outcome.failed)
            if len(tally) > MAX_WORDS:  # numbers: what they add up to
                tally = Counter(dict(tally.most_common(MAX_WORDS)))
            ended = n_failures >= (1 if row.chain else MAX_FAILURES)
            seconds, start = time.perf_counter() - start, time.perf_counter()
            yield {
                "tries": len(outcomes),
                "seconds": round(seconds, 3),
                "tally": tally,
                "failures": failures,
                "ended": ended,
            }
            if ended:
                return
            left = max(0.1, min(BATCH, deadline - time.perf_counter()))
            size = max(1, min(4 * size, int(left * len(outcomes) / max(took, 1e-6))))
    finally:
        close = getattr(task, "close", None)
        if close is not None:
            close()


def _made(row: Row, task: children.Task, numbers: range) -> list[children.Outcome]:
    if row.alone:
        return [children.attempt(task, number) for number in numbers]
    if row.chain:
        numbers = numbers[:1]
    return children.run(task, numbers, seconds=row.seconds, megabytes=row.megabytes)


def _failure(row: Row, subject: str, seed: int, folder: Path, outcome: children.Outcome) -> dict[str, Any]:
    files: dict[str, bytes] = {}
    with suppress(Exception):  # what shall be repeated can be repeated without it, mostly
        if row.evidence is not None:
            files = row.evidence(subject, seed, outcome.number)
        elif row.chain:
            files = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    texts = {name: base64.b64encode(data).decode("ascii") for name, data in files.items() if len(data) < 1 << 24}
    return {"number": outcome.number, "words": outcome.words, "files": texts}


def serve(orders: TextIO, answers: TextIO) -> None:
    """Answer orders until there are no more."""
    for text in orders:
        order = json.loads(text)
        for batch in batches(registry.row(order["row"]), order):
            answers.write(json.dumps(batch) + "\n")
            answers.flush()
        answers.write("{}\n")
        answers.flush()


def main() -> None:
    """Serve this process's input; what tries print goes to standard error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    with suppress(AttributeError):  # and so does its death, on Linux
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)
        serve(sys.stdin, answers)


if __name__ == "__main__":
    main()
