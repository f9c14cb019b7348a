"""The same on a real Dask cluster: the same bits with any number of workers, also when one is killed.

What is compared with is computed first, in this process: the workers then find what it has compiled.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.cluster.parts import LOG, PARTS, in_files, load, mostly_right
from tlstd.cli.app import app
from tlstd.cluster.clients import local_workers
from tlstd.cluster.crews import InProcess, OnDask
from tlstd.cluster.evaluate import evaluate_files
from tlstd.cluster.operator import ShardedOperator


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Of two workers, in processes of their own."""
    with local_workers(2) as client:
        yield client


def test_a_plan_counts_the_workers_of_the_cluster(client: Any, tmp_path: Path) -> None:
    address = client.scheduler.address
    asked = ["evaluate", in_files(LOG, tmp_path, 4), "--gamma", "0.9", "--plan", "--cluster", address]
    said = CliRunner().invoke(app, asked)
    assert said.exit_code == 0, said.output
    assert "2 workers" in said.output


def test_bits_of_one_process(client: Any) -> None:
    """Two workers, one worker, no worker."""
    loads = [partial(load, i) for i in range(len(PARTS))]
    done: list[int] = []
    here = ShardedOperator(InProcess([made() for made in loads])).solve(5)
    ids, weights = ShardedOperator(OnDask(client, loads, done.append)).solve(5)
    assert done == sorted(set(done))
    assert done[-1] == 7
    assert (ids == here[0]).all()
    assert (weights == here[1]).all()


def test_killed_worker(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its shards are read again: the same bits, and the computation goes on; who comes in its place gets some."""
    loads = [partial(load, i) for i in range(len(PARTS))]
    operator = ShardedOperator(OnDask(client, loads))
    expected = operator.b()
    os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)  # below, one after the other
    assert (operator.b() == expected).all()
    V = np.ones((operator.n, 2))
    here = ShardedOperator(InProcess([made() for made in loads]))
    assert (operator.matvec(V) == here.matvec(V)).all()
    client.wait_for_workers(2)
    monkeypatch.setattr("tlstd.cluster.crews.SPREAD", 0.0)
    assert (operator.rmatvec(V) == here.rmatvec(V)).all()
    held = [sum("shard" in key for key in keys) for keys in client.has_what().values()]
    assert sorted(held) == [3, 4]


def kill_when_solving(client: Any, said: list[str], text: str, share: float) -> None:
    """Kill a worker in some of the rounds."""
    said.append(text)
    if text.startswith("round") and len([each for each in said if each.startswith("round")]) in (1, 3):
        os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)


def test_files_on_workers_that_die(client: Any, tmp_path: Path) -> None:
    """The same bits as in one process, with another policy, and with workers that are killed on the way."""
    pattern = in_files(LOG, tmp_path, 5)
    options: dict[str, Any] = {"gamma": 0.9, "policy": mostly_right, "estimators": ("KrylovLSTD",)}
    said: list[str] = []
    here = evaluate_files(pattern, **options)
    there = evaluate_files(pattern, client=client, report=partial(kill_when_solving, client, said), **options)
    states = LOG.select("obs_0", "obs_1").to_numpy()
    assert there.value == here.value
    assert (there.predict(states) == here.predict(states)).all()
    assert any(text.startswith("read 5 of 5 files") for text in said)


def test_command(client: Any, tmp_path: Path) -> None:
    """``tlstd evaluate --cluster``: the same answer as in this process, and a file that is left out on request."""
    pattern = in_files(LOG.head(400), tmp_path, 3)
    (tmp_path / "part-9.parquet").write_bytes(b"PAR1")
    arguments = ["evaluate", pattern, "--gamma", "0.9", "--json"]
    arguments += ["--cluster", client.scheduler.address]
    found = CliRunner().invoke(app, [*arguments, "--on-error", "skip", "--checkpoint", str(tmp_path / "rounds")])
    assert found.exit_code == 0, found.output
    answer = json.loads(found.stdout)
    assert any("part-9.parquet" in note for note in answer["notes"])
    names = [str(tmp_path / f"part-{i}.parquet") for i in range(3)]
    here = evaluate_files(names, gamma=0.9, estimators=("KrylovLSTD",))
    assert answer["value"] == here.value
    assert list((tmp_path / "rounds").glob("round-*"))
