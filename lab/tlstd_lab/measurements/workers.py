"""What an evaluation of a log in many files costs on workers of this machine, and that it survives them.

uv run python -m tlstd_lab.measurements.workers            # seconds of ten million steps: here, on 1 and 2 workers
uv run python -m tlstd_lab.measurements.workers equality   # the same bits on 1 to 4 workers
uv run python -m tlstd_lab.measurements.workers kills      # a worker killed every ten seconds
uv run python -m tlstd_lab.measurements.workers memory     # samples in memory and on a disk; fewer files
uv run python -m tlstd_lab.measurements.workers resident   # memory of the asking process and of workers
uv run python -m tlstd_lab.measurements.workers large FOLDER   # 10⁸ steps, 10⁶ hashed features; 5 GB of files there
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tlstd import TileCoder
from tlstd.cluster.clients import local_workers
from tlstd.cluster.evaluate import evaluate_files
from tlstd.evaluation.question import Question
from tlstd_lab.measurements.large_log import STEPS, true_start_value, write
from tlstd_lab.tables import table

STAGES = {
    "reading": "reading",
    "choosing": "choosing and encoding",
    "round 1": "weights",
    "least squares: interval": "interval",
    "how far": "checks",
}
"""What a report begins with, and what is then done."""


class Stages:
    """Seconds of each stage of an evaluation, by its reports."""

    def __init__(self) -> None:
        self.began: list[tuple[str, float]] = []

    def __call__(self, text: str, share: float) -> None:
        stage = next((words for start, words in STAGES.items() if text.startswith(start)), None)
        if stage is not None and stage not in [name for name, _ in self.began]:
            self.began.append((stage, time.perf_counter()))

    def seconds(self) -> dict[str, float]:
        """Of each stage, the last until now."""
        ends = [*(start for _, start in self.began[1:]), time.perf_counter()]
        return {stage: end - start for (stage, start), end in zip(self.began, ends, strict=True)}


def timed(pattern: str | list[str], n_workers: int, **options: Any) -> tuple[dict[str, float], str]:
    """Seconds of each stage, and the answer."""
    stages = Stages()
    with local_workers(n_workers) if n_workers else nullcontext() as client:
        if client is not None:
            client.gather(client.map(_warm, range(n_workers), pure=False))
        found = evaluate_files(pattern, question=Question(gammas=(0.99,)), client=client, report=stages, **options)
        seconds = stages.seconds()
    return seconds, str(found.rows[0].interval)


def _warm(i: int) -> None:
    """Import what a worker will need."""
    import tlstd.cluster.evaluate  # noqa: F401

    time.sleep(0.5)


def times(n_steps: int = STEPS) -> None:
    """Seconds here, on one worker and on two."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        write(Path(name), n_steps)
        for n_workers in (0, 1, 2):
            seconds, answer = timed(str(Path(name) / "*.parquet"), n_workers)
            who = f"{n_workers} worker{'s' * (n_workers > 1)}" if n_workers else "this process"
            rows.append([who, *(f"{seconds[stage]:.1f}" for stage in STAGES.values()), f"{sum(seconds.values()):.1f}"])
            rows[-1].append(answer)
    print(table(["seconds", *STAGES.values(), "all", "value"], rows))


# --- workers that die -----------------------------------------------------------------------------------------------


def equality() -> None:
    """The same bits on 1 to 4 workers as without workers, of a log of more than a million steps."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        write(Path(name), 1_200_000, 7)
        pattern = str(Path(name) / "*.parquet")
        here = _numbers(pattern, None)
        for n_workers in (1, 2, 3, 4):
            with local_workers(n_workers) as client:
                there = _numbers(pattern, client)
            rows.append([str(n_workers), "same bits" if there == here else "OTHER NUMBERS"])
            print(rows[-1], flush=True)
    print(table(["workers", "beside this process"], rows))


def _numbers(pattern: str, client: Any) -> list[bytes]:
    found = evaluate_files(pattern, question=Question(gammas=(0.99,)), client=client)
    return [W.tobytes() for W in found.fit.weights] + [repr((row.value, row.interval)).encode() for row in found.rows]


def kills(every: int = 10, n_workers: int = 3) -> None:
    """One evaluation while a worker is killed every so often; and without workers."""
    with tempfile.TemporaryDirectory() as name:
        write(Path(name), 1_200_000, 12)
        pattern = str(Path(name) / "*.parquet")
        with local_workers(n_workers) as client:
            stop, killed = threading.Event(), [0]
            killer = threading.Thread(target=_killer, args=(client, every, stop, killed), daemon=True)
            began = time.perf_counter()
            killer.start()
            found = _numbers(pattern, client)
            lasted = time.perf_counter() - began
            stop.set()
            killer.join()
        same = found == _numbers(pattern, None)
    print(f"{lasted:.0f} s, {killed[0]} workers killed; {'the same bits' if same else 'OTHER NUMBERS'} without workers")


def _killer(client: Any, every: float, stop: threading.Event, killed: list[int]) -> None:
    chosen = random.Random(0)
    pids: dict[str, int] = {}
    while not stop.wait(every):
        alive = list(client.scheduler_info()["workers"])
        if not alive:
            continue
        try:
            pids = client.run(os.getpid, workers=[chosen.choice(alive)], on_error="ignore")
            for pid in pids.values():
                os.kill(pid, signal.SIGKILL)
                killed[0] += 1
        except (OSError, ValueError):  # it was gone already
            continue


# --- memory and traffic ---------------------------------------------------------------------------------------------


def memory(n_steps: int = 3_000_000, n_files: int = 20) -> None:
    """Samples in memory and in files; and half, a third of the log, still of more than a million steps."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, n_steps, n_files)
        names = [str(path) for path in sorted(folder.glob("*.parquet"))]
        cases: dict[str, tuple[list[str], dict[str, Any]]] = {
            "in memory": (names, {}),
            "on a disk (spill)": (names, {"spill": folder / "spill"}),
            "half of the files": (names[::2], {}),
            "a third of the files": (names[::3], {}),
        }
        for case, (chosen, options) in cases.items():
            seconds, most, answer = _in_process_of_its_own(partial(timed, chosen, 0, **options))
            rounds = seconds["weights"] + seconds["interval"]
            rows.append(
                [case, f"{sum(seconds.values()):.0f}", f"{seconds['choosing and encoding']:.1f}", f"{rounds:.1f}"]
            )
            rows[-1] += [f"{most / 1e9:.2f}", answer]
            print(rows[-1], flush=True)
    print(table(["", "seconds", "choosing and encoding", "weights and interval", "GB at most", "value"], rows))


def _in_process_of_its_own(run: Callable[[], tuple[dict[str, float], str]]) -> tuple[dict[str, float], float, str]:
    """What a call returns, and the most memory of its own that the process had."""
    with get_context("spawn").Pool(1) as pool:  # not forked: polars has threads
        return pool.apply(_watched, (run,))


def _watched(run: Callable[[], tuple[dict[str, float], str]]) -> tuple[dict[str, float], float, str]:
    done, most = threading.Event(), [0.0]
    threading.Thread(target=_watch, args=([os.getpid()], done, most), daemon=True).start()
    seconds, answer = run()
    done.set()
    return seconds, most[0], answer


def _own_bytes(pid: int) -> float:
    """Memory of a process that is not a copy of a file."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return 1024.0 * sum(int(line.split()[1]) for line in lines if line.startswith(("RssAnon", "RssShmem")))


def _resident_bytes(pid: int) -> float:
    try:
        return 4096.0 * int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0.0


def _watch(pids: list[int], done: threading.Event, most: list[float]) -> None:
    """Note the most memory that processes have together: their own, and all that is resident."""
    while not done.wait(0.2):
        most[0] = max(most[0], sum(map(_own_bytes, pids)))
        if len(most) > 1:
            most[1] = max(most[1], sum(map(_resident_bytes, pids)))


def resident(n_steps: int = 2_000_000, n_files: int = 8) -> None:
    """Resident memory at most of this process and of each of two workers."""
    with tempfile.TemporaryDirectory() as name:
        write(Path(name), n_steps, n_files)
        with local_workers(2) as client:
            pids, done = [os.getpid(), *client.run(os.getpid).values()], threading.Event()
            most = [[0.0, 0.0] for _ in pids]
            for pid, own in zip(pids, most, strict=True):
                threading.Thread(target=_watch, args=([pid], done, own), daemon=True).start()
            evaluate_files(str(Path(name) / "*.parquet"), question=Question(gammas=(0.99,)), client=client)
            done.set()
    names = ["this process", *(f"worker {i}" for i in range(1, len(pids)))]
    print(table(["", "GB"], [[who, f"{own[1] / 1e9:.2f}"] for who, own in zip(names, most, strict=True)]))


# --- large ----------------------------------------------------------------------------------------------------------


def large(folder: Path, n_files: int = 100) -> None:
    """A million steps in each file, ten active ones of a million hashed features, two workers, samples on a disk."""
    if not list(folder.glob("*.parquet")):
        folder.mkdir(parents=True, exist_ok=True)
        write(folder, 1_000_000 * n_files, n_files)
    tiles = TileCoder([-6.0] * 4, [6.0] * 4, tiles=24, tilings=9, hash_size=1_000_000, bias=True)
    stages, done, most = Stages(), threading.Event(), [0.0, 0.0]
    last = [0.0]

    def report(text: str, share: float) -> None:
        stages(text, share)
        if time.perf_counter() - last[0] > 20.0:
            last[0] = time.perf_counter()
            print(f"{text}; {most[0] / 1e9:.1f} GB", flush=True)

    with local_workers(2) as client:
        pids = [os.getpid(), *client.run(os.getpid).values()]
        threading.Thread(target=_watch, args=(pids, done, most), daemon=True).start()
        names = [str(path) for path in sorted(folder.glob("*.parquet"))[:n_files]]
        spill = folder / "spill"
        found = evaluate_files(
            names, question=Question(gammas=(0.99,), features=tiles), client=client, spill=spill, report=report
        )
        seconds = stages.seconds()
        done.set()
    print(found.table, found.rows[0].interval, *found.notes, sep="\n")
    print(f"true value: {true_start_value(0.99):.4f}")
    print(f"{found.model.model.sparse_weights.indices.size:,} features seen")
    print(f"at most {most[0] / 1e9:.1f} GB in the client and two workers ({most[1] / 1e9:.1f} with pages of files)")
    print(table([*seconds, "all"], [[f"{each:.0f}" for each in [*seconds.values(), sum(seconds.values())]]]))


COMMANDS = {
    "equality": equality,
    "kills": kills,
    "memory": memory,
    "resident": resident,
}


def main(words: list[str]) -> None:
    """What was asked for."""
    if not words:
        times()
    elif words[0] == "large":
        large(Path(words[1]), *map(int, words[2:]))
    else:
        COMMANDS[words[0]](*map(int, words[1:]))


if __name__ == "__main__":
    main(sys.argv[1:])
