"""Where t-LSTD's time goes on the benchmark's streams, by function.

uv run python -m tlstd_lab.bench.profile
"""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tlstd.core.threads import one_thread
from tlstd_lab.bench import problems
from tlstd_lab.bench.problems import Problem, warmed, whole


class Share(NamedTuple):
    """One function's part of a run."""

    function: str
    calls: float
    """Per buffer."""
    share: float
    """Of the time, without that of the functions it calls."""


def profile(problem: Problem, *, read: bool = False) -> list[Share]:
    """Own time of every function while t-LSTD learns, warm; with ``read``, sample by sample with a read after each.

    Compiled kernels, BLAS and LAPACK count to the Python function that calls them, as far as the profiler sees it.
    """
    warm = warmed(problem, buffer_size=problem.rank if read else None)
    part = problem.stream[warm.start : warm.start + whole(problem.part // (8 if read else 1), warm.buffer)]
    side = problems.stepwise("", warm.model, part, read=True) if read else problems.many("", warm.model, part)
    with one_thread():
        side.prepare()()
        shares = _shares(side.prepare())
    return [share._replace(calls=share.calls * warm.buffer / len(part)) for share in shares]


def _shares(action: Callable[[], object]) -> list[Share]:
    profiler = cProfile.Profile()
    profiler.runcall(action)
    entries = pstats.Stats(profiler).stats  # type: ignore[attr-defined]
    total = sum(own for _, _, own, _, _ in entries.values())
    found = [
        Share(f"{Path(file).stem}.{name}" if line else name, calls, own / total)
        for (file, line, name), (_, calls, own, _, _) in entries.items()
    ]
    return sorted(found, key=lambda share: -share.share)


def main() -> None:
    """Print the largest shares on the three streams, as tables in Markdown."""
    runs = {
        "energy-like, update_many": (problems.energy(False), False),
        "energy-like, read at every step": (problems.energy(False), True),
        "Mountain Car's tiles, update_many": (problems.tiles(False), False),
        "Mountain Car's RBFs, update_many": (problems.rbf(False), False),
    }
    for name, (problem, read) in runs.items():
        print(f"\n{name}:\n\n| function | calls per buffer | own time |\n|---|---|---|")
        for share in profile(problem, read=read)[:8]:
            print(f"| `{share.function}` | {share.calls:.0f} | {share.share:.0%} |")


if __name__ == "__main__":
    main()
