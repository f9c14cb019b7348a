"""The same on a real Dask cluster: the same bits with any number of workers, also when one is killed.

What is compared with is computed first, in this process: the workers then find what it has compiled.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from tlstd.cluster.operator import ShardedOperator
from typer.testing import CliRunner

from tests.cluster.logs import SHORT, in_files
from tests.cluster.parts import PARTS, Mortal, die_once, load, mostly_right
from tlstd.cli.app import app
from tlstd.cluster.clients import local_workers
from tlstd.cluster.evaluate import evaluate_files
from tlstd.cluster.shard_pool import InProcess, OnDask

LOADS = [partial(load, i) for i in range(len(PARTS))]


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Of two workers, in processes of their own."""
    with local_workers(2) as client:
        yield client


@pytest.fixture(scope="module")
def here() -> ShardedOperator:
    """The shards in this process."""
    return ShardedOperator(InProcess([made() for made in LOADS]))


class There(NamedTuple):
    """The shards on the workers, from the first test to the last."""

    pool: OnDask
    operator: ShardedOperator
    told: list[int]


@pytest.fixture(scope="module")
def there(client: Any) -> There:
    told: list[int] = []
    pool = OnDask(client, LOADS, told.append)
    return There(pool, ShardedOperator(pool), told)


def test_a_plan_counts_the_workers_of_the_cluster(client: Any, tmp_path: Path) -> None:
    address = client.scheduler.address
    asked = ["evaluate", in_files(SHORT, tmp_path, 4), "--gamma", "0.9", "--plan", "--cluster", address]
    said = CliRunner().invoke(app, asked)
    assert said.exit_code == 0, said.output
    assert "2 workers" in said.output


def test_bits_of_one_process(here: ShardedOperator, there: There) -> None:
    """Two workers, no worker."""
    expected = here.ids, here.solve(5)
    ids, weights = there.operator.ids, there.operator.solve(5)
    assert there.told == sorted(set(there.told))
    assert there.told[-1] == 7
    assert (ids == expected[0]).all()
    assert (weights == expected[1]).all()


def test_killed_worker(
    client: Any, here: ShardedOperator, there: There, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One dies while it computes: its shards are read, and changed, again; who comes in its place gets some."""
    mortals = OnDask(client, [partial(Mortal, np.array([1.0 + i, 0.1])) for i in range(4)])
    mortals.change("times", [(10.0**i,) for i in range(4)])
    assert mortals.total("last_words", str(tmp_path / "died"))[0] == 4_321.0
    assert (tmp_path / "died").exists()
    assert (there.operator.b() == here.b()).all()
    V = np.ones((here.n, 2))
    assert (there.operator.matvec(V) == here.matvec(V)).all()
    client.wait_for_workers(2)
    monkeypatch.setattr("tlstd.cluster.shard_pool.SPREAD", 0.0)
    assert (there.operator.rmatvec(V) == here.rmatvec(V)).all()
    held = Counter(worker for workers in client.who_has(there.pool._shards).values() for worker in workers)
    assert sorted(held.values()) == [3, 4]
    assert min(days_until_it_is_given_up(client)) > 100.0


def days_until_it_is_given_up(client: Any) -> list[float]:
    """When Dask will close workers that have died, for good if they have then just died again."""
    loop = client.loop.asyncio_loop
    planned = [timer for timer in loop._scheduled if "_update_worker_status" in repr(timer)]
    return [(timer.when() - loop.time()) / 86_400.0 for timer in planned]


def kill_when_solving(client: Any, marker: Path, said: list[str], text: str, share: float) -> None:
    """Let a worker die in the first round, by a task that another one then repeats."""
    said.append(text)
    if text.startswith("round 1 "):
        client.submit(die_once, str(marker), pure=False).result()
        assert marker.exists()


def test_files_on_workers_that_die(client: Any, here: ShardedOperator, there: There, tmp_path: Path) -> None:
    """The same bits as in one process, with another policy, and with a worker that is killed on the way.

    Shards of before go through this too, some of them for the second time.
    """
    log = SHORT.head(250)
    pattern = in_files(log, tmp_path, 5)
    options: dict[str, Any] = {"gamma": 0.9, "policy": mostly_right, "estimators": ("KrylovLSTD",)}
    expected = evaluate_files(pattern, **options)
    expected_b = here.b()
    assert (there.operator.b() == expected_b).all()
    said: list[str] = []
    report = partial(kill_when_solving, client, tmp_path / "died", said)
    found = evaluate_files(pattern, client=client, report=report, **options)
    states = log.select("obs_0", "obs_1").to_numpy()
    assert found.value == expected.value
    assert (found.predict(states) == expected.predict(states)).all()
    assert any(text.startswith("read 5 of 5 files") for text in said)
    assert (tmp_path / "died").exists()
    assert (there.operator.b() == expected_b).all()


def test_command(client: Any, tmp_path: Path) -> None:
    """``tlstd evaluate --cluster``: the same answer as in this process, and a file that is left out on request."""
    pattern = in_files(SHORT.head(200), tmp_path, 3)
    (tmp_path / "part-9.parquet").write_bytes(b"PAR1")
    arguments = ["evaluate", pattern, "--gamma", "0.9", "--json"]
    arguments += ["--cluster", client.scheduler.address]
    found = CliRunner().invoke(app, [*arguments, "--on-error", "skip", "--checkpoint", str(tmp_path / "rounds")])
    assert found.exit_code == 0, found.output
    answer = json.loads(found.stdout)
    assert any("part-9.parquet" in note for note in answer["notes"])
    names = [str(tmp_path / f"part-{i}.parquet") for i in range(3)]
    here = evaluate_files(names, gamma=0.9)
    assert answer["value"] == here.value
    assert list((tmp_path / "rounds").glob("round-*"))
