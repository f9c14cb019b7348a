"""What an evaluation of a log in many files costs on workers of this machine, and that it survives them.

uv run python -m tlstd_lab.measurements.workers            # seconds of ten million steps: here, on 1 and 2 workers
uv run python -m tlstd_lab.measurements.workers equality   # the same numbers from 1 to 64 files and 1 to 4 workers
uv run python -m tlstd_lab.measurements.workers kills      # a worker killed every ten seconds for ten minutes
uv run python -m tlstd_lab.measurements.workers memory     # samples in memory and on a disk; fewer files
uv run python -m tlstd_lab.measurements.workers resident   # memory of the asking process and of workers
uv run python -m tlstd_lab.measurements.workers traffic    # bytes of a round, measured and predicted
uv run python -m tlstd_lab.measurements.workers tasks      # what a task costs the scheduler
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
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from tlstd import Log, TileCoder, evaluate
from tlstd.cluster import evaluate as of_files
from tlstd.cluster.clients import local_workers
from tlstd.cluster.evaluate import evaluate_files
from tlstd.cluster.shard_pool import OnDask
from tlstd.core.arrays import FloatArray
from tlstd.evaluation import Question, Report
from tlstd_lab.measurements.large_log import STEPS, true_start_value, write
from tlstd_lab.tables import table

QUESTION = Question(gammas=(0.99,))
MODEL = Question(gammas=(0.99,), estimators=("KrylovLSTD",))
STAGES = {"read": "reading", "choosing": "choosing", "round": "rounds", "how far": "checks"}
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


@contextmanager
def never_gathered() -> Iterator[None]:
    """Leave small logs on the workers, too."""
    before, of_files.GATHERED = of_files.GATHERED, 0
    try:
        yield
    finally:
        of_files.GATHERED = before


def timed(
    pattern: str | list[str], n_workers: int, question: Question = QUESTION, **options: Any
) -> tuple[dict[str, float], str]:
    """Seconds of each stage, and the answer."""
    stages = Stages()
    with local_workers(n_workers) if n_workers else nullcontext() as client:
        if client is not None:
            client.gather(client.map(_warm, range(n_workers), pure=False))
        found = evaluate_files(pattern, question=question, client=client, report=stages, **options)
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
            every = [seconds.get(stage, 0.0) for stage in STAGES.values()]
            rows.append([who, *(f"{each:.1f}" for each in every), f"{sum(seconds.values()):.1f}"])
            rows[-1].append(answer)
    print(table(["seconds", *STAGES.values(), "all", "value"], rows))


# --- the same numbers -----------------------------------------------------------------------------------------------


def equality(n_steps: int = 30_000) -> None:
    """Largest difference of predictions to one process, in units of the largest, and bits on workers."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        for n_files in (1, 2, 7, 64):
            folder = Path(name) / str(n_files)
            folder.mkdir()
            write(folder, n_steps, n_files)
            pattern = str(folder / "*.parquet")
            log = Log.from_frame(pattern)
            states = log.observations[:1_000]
            truth = evaluate(log, gamma=0.99, estimators=["KrylovLSTD"]).predict(states)
            here = _numbers(_kept(pattern, None), states)
            away = float(np.abs(here[2:] - truth).max() / np.abs(truth).max())
            same = []
            for n_workers in (1, 2, 3, 4):
                with local_workers(n_workers) as client:
                    there = _numbers(_kept(pattern, client), states)
                same.append("same bits" if (there == here).all() else f"{np.abs(there - here).max():.1e}")
            rows.append([str(n_files), f"{away:.1e}", *same])
            print(rows[-1], flush=True)
    print(table(["files", "away from one process", *(f"{n} workers" for n in (1, 2, 3, 4))], rows))


def _kept(pattern: str, client: Any) -> Report:
    """The answer of a log that stays where it is."""
    with never_gathered():
        return evaluate_files(pattern, question=MODEL, client=client)


def _numbers(found: Report, states: FloatArray) -> FloatArray:
    """The interval, and values of states."""
    interval = found.interval()
    return np.concatenate([[interval.low, interval.high], found.predict(states)])


# --- workers that die -----------------------------------------------------------------------------------------------


def kills(seconds: int = 600, every: int = 10, n_workers: int = 3) -> None:
    """Evaluations of 300,000 steps, for so long, while a worker is killed every so often; and without workers."""
    with tempfile.TemporaryDirectory() as name:
        write(Path(name), 300_000, 12)
        pattern = str(Path(name) / "*.parquet")
        states = np.random.default_rng(0).normal(size=(100, 4))
        expected, answers = _numbers(_kept(pattern, None), states), []
        with local_workers(n_workers) as client:
            stop, killed = threading.Event(), [0]
            killer = threading.Thread(target=_killer, args=(client, every, stop, killed), daemon=True)
            began = time.perf_counter()
            killer.start()
            while time.perf_counter() - began < seconds:
                answers.append(_numbers(_kept(pattern, client), states))
                print(f"{time.perf_counter() - began:.0f} s, {killed[0]} killed, {len(answers)} answers", flush=True)
            lasted = time.perf_counter() - began
            stop.set()
            killer.join()
    same = all((answer == expected).all() for answer in answers)
    print(
        f"{lasted:.0f} s, {killed[0]} workers killed, {len(answers)} answers from 12 files; without workers "
        f"{'the same bits' if same else 'OTHER NUMBERS'}"
    )


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
            seconds, most, answer = _in_process_of_its_own(partial(timed, chosen, 0, MODEL, **options))
            rows.append([case, f"{sum(seconds.values()):.0f}", f"{seconds['rounds']:.1f}"])
            rows[-1] += [f"{most / 1e9:.2f}", answer]
            print(rows[-1], flush=True)
    print(table(["", "seconds", "rounds", "GB at most", "value"], rows))


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
            of_files.evaluate_files(str(Path(name) / "*.parquet"), question=QUESTION, client=client)
            done.set()
    names = ["this process", *(f"worker {i}" for i in range(1, len(pids)))]
    print(table(["", "GB"], [[who, f"{own[1] / 1e9:.2f}"] for who, own in zip(names, most, strict=True)]))


def traffic(n_steps: int = 1_000_000) -> None:
    """Bytes that workers have sent per round, to each other and the sum to the client, and what ``--plan`` says."""
    from tlstd.cluster.log_shard import LogFile
    from tlstd.cluster.plan import plan

    rows = []
    with tempfile.TemporaryDirectory() as name:
        write(Path(name), n_steps, 32)
        pattern = str(Path(name) / "*.parquet")
        files = [LogFile(str(path)) for path in sorted(Path(name).glob("*.parquet"))]
        for n_workers in (1, 2, 4):
            said = plan(files, gamma=0.99, n_workers=n_workers)
            sent: list[int] = []
            with local_workers(n_workers) as client, never_gathered():

                def report(text: str, share: float, sent: list[int] = sent, client: Any = client) -> None:
                    if text.startswith("round"):
                        sent.append(sum(client.run(_sent).values()))

                found = evaluate_files(pattern, question=MODEL, client=client, report=report)
            n, between = found.fit.system.n, float(np.median(np.diff(sent)))
            rows.append([str(n_workers), f"{n:,}", f"{8 * n / 1e3:.0f}", f"{between / 1e3:.0f}"])
            rows[-1].append(f"{(said.between_workers + said.to_client) / 1e3:.0f}")
            print(rows[-1], flush=True)
    print(table(["workers", "features", "a vector, kB", "sent by workers in a round, kB", "predicted"], rows))


def _sent(dask_worker: Any) -> int:
    return int(dask_worker.transfer_outgoing_bytes_total)


class _Tiny:
    """A shard that costs nothing, so that what is measured is the pool."""

    def changed(self) -> _Tiny:
        return self

    def ids(self) -> Any:
        return np.arange(3)

    def product(self, V: FloatArray) -> FloatArray:
        return V


def tasks(n_shards: int = 1_000, n_workers: int = 2) -> None:
    """What a shard costs the client and the scheduler, which are one process here, beside what workers do."""
    began: list[tuple[str, float, float]] = []

    def now(what: str) -> None:
        began.append((what, time.perf_counter(), time.process_time()))

    with local_workers(n_workers) as client:
        client.gather(client.map(_warm, range(n_workers), pure=False))
        now("reading (one task a shard)")
        pool = OnDask(client, [_Tiny] * n_shards)
        now("changing (one task a shard)")
        pool.change("changed", [()] * n_shards, lambda done: None)
        now("a question (one task a worker)")
        pool.union("ids")
        now("ten rounds (one task a worker)")
        for _ in range(10):
            pool.total("product", np.ones((3, 1)))
        now("")
    per = 1e3 / n_shards
    rows = [[a[0], f"{per * (b[1] - a[1]):.2f}", f"{per * (b[2] - a[2]):.2f}"] for a, b in pairwise(began)]
    print(table([f"{n_shards:,} shards, {n_workers} workers", "ms a shard", "CPU ms a shard"], rows))


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
        question = Question(gammas=(0.99,), features=tiles)
        found = evaluate_files(names, question=question, client=client, spill=spill, report=report)
        seconds = stages.seconds()
        done.set()
    print(found.table, found.rows[0].interval, *found.notes, sep="\n")
    print(f"true value: {true_start_value(0.99):.4f}")
    print(f"{found.model.model.sparse_weights.indices.size:,} features seen")
    print(f"at most {most[0] / 1e9:.1f} GB in the client and two workers ({most[1] / 1e9:.1f} with pages of files)")
    print(table([*seconds, "all"], [[f"{each:.0f}" for each in [*seconds.values(), sum(seconds.values())]]]))


COMMANDS: dict[str, Callable[..., None]] = {
    "equality": equality,
    "kills": kills,
    "memory": memory,
    "resident": resident,
    "traffic": traffic,
    "tasks": tasks,
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
