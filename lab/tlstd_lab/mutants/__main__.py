"""Measure what the tests catch: change the library in small ways, and see which tests fail.

uv run python -m tlstd_lab.mutants                        # 200 drawn mutants and those written by hand
uv run python -m tlstd_lab.mutants --write docs/mutants.md
uv run python -m tlstd_lab.mutants --only linalg --n 100  # those of one package among the 100
uv run python -m tlstd_lab.mutants --list

The working tree is never changed: each mutant is tried in a copy below the folder ``--out``. A run that was broken
off goes on when it is started again; results count for one state of the library and its tests.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from tlstd_lab.mutants import page
from tlstd_lab.mutants.drawing import Mutant, drawn, written
from tlstd_lab.mutants.trials import Trials


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options of the command."""
    parser = argparse.ArgumentParser(
        prog="python -m tlstd_lab.mutants", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--n", type=int, default=200, help="how many mutants are drawn; default: 200")
    parser.add_argument("--seed", type=int, default=0, help="of the drawing; default: 0")
    parser.add_argument("--only", metavar="PACKAGE", help="mutants of this package only")
    parser.add_argument("--workers", type=int, default=2, help="mutants tried at the same time; default: 2")
    parser.add_argument("--budget", type=float, default=90.0, help="seconds of unmutated tests per mutant; default: 90")
    parser.add_argument("--out", type=Path, default=Path("tlstd-mutants"), help="folder of results and copies")
    parser.add_argument("--list", action="store_true", help="print the mutants and try none")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="write the results into this page")
    parser.add_argument("--root", type=Path, default=Path.cwd(), help="the tree; default: the current folder")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Try all mutants, print the score by package and return 1 if one by hand is stale."""
    given = parsed(arguments)
    root, out = given.root.resolve(), given.out.resolve()
    mutants = [one for one in [*written(root), *drawn(root, given.n, given.seed)] if given.only in (None, one.package)]
    stale = [one for one in mutants if one.change is None]
    if given.list:
        for one in mutants:
            print(f"{one.place}  {one.package}: {page.change_of(one)}")
        return int(bool(stale))
    out.mkdir(parents=True, exist_ok=True)
    with (out / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SystemExit(f"another run uses {out}: wait for it, or choose another folder with --out") from None
        state = commit(root)  # before the tree can change
        trials = Trials(root, out, given.workers, given.budget)
        results = tried([one for one in mutants if one.change], trials, out / "results.jsonl")
    for one in stale:
        print(f"stale: {one.name}: {one.file} does not have its old text exactly once")
    print(page.scores(results))
    if given.write:
        words = ["uv run python -m tlstd_lab.mutants", f"--n {given.n} --seed {given.seed} --budget {given.budget:g}"]
        facts = {
            "budget": given.budget,
            "command": " ".join([*words, *([f"--only {given.only}"] if given.only else []), f"--write {given.write}"]),
            "commit": state,
            "workers": given.workers,
        }
        given.write.write_text(page.page(mutants, results, trials.times.failing, facts), encoding="utf-8")
    return int(bool(stale))


def commit(root: Path) -> str:
    """The commit of a tree, and whether the tree differs from it."""
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    told = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    return told.stdout.strip() or "unknown"


def tried(mutants: Sequence[Mutant], trials: Trials, file: Path) -> dict[Mutant, dict[str, Any]]:
    """The results of these mutants, from the file of results or from new trials, which are added to it."""
    lines = file.read_text("utf-8").splitlines(keepends=True) if file.exists() else []
    whole = [line for line in lines if line.endswith("\n")]  # the last one may have been broken off
    file.write_text("".join(whole), "utf-8")
    keys = {f"{trials.digest} {trials.budget:g} {one.file} {one.change}": one for one in mutants}
    results = {keys[row["key"]]: row for row in map(json.loads, whole) if row["key"] in keys}
    left = {key: one for key, one in keys.items() if one not in results}
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with ThreadPoolExecutor(trials.workers) as pool, file.open("a", encoding="utf-8") as log:
        try:
            trials.measure(list(left.values()))
            waiting = {pool.submit(trials.outcome, one): key for key, one in left.items()}
            for number, ended in enumerate(as_completed(waiting), 1):
                key, row = waiting[ended], ended.result()
                results[left[key]] = row
                log.write(json.dumps({"key": key, **row}) + "\n")
                log.flush()
                told = f"{row['result']:8} {row['seconds']:6.1f} s  {left[key].place}  {page.change_of(left[key])}"
                print(f"{number}/{len(left)}  {told}", flush=True)
        except BaseException:
            trials.stopped = True
            pool.shutdown(cancel_futures=True)
            raise
    return {one: results[one] for one in mutants}


if __name__ == "__main__":
    sys.exit(main())
