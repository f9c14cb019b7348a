"""The same on a real Dask cluster: the same bits with any number of workers, also when one is killed.

What is compared with is computed first, in this process: the workers then find what it has compiled.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.cluster.logs import LOG, SHORT, ask, in_files, numbers
from tests.cluster.parts import Deadly, Mortal, die_once, mostly_right
from tlstd.cli.app import app
from tlstd.cluster.clients import local_workers
from tlstd.cluster.shard_pool import OnDask


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Of two workers, in processes of their own."""
    with local_workers(2) as client:
        yield client


@pytest.fixture
def few_steps_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than 500 steps are a large log, of which 400 are a sample."""
    monkeypatch.setattr("tlstd.cluster.evaluate.GATHERED", 500)
    monkeypatch.setattr("tlstd.cluster.evaluate.SAMPLE", 400)


def test_a_plan_counts_the_workers_of_the_cluster(client: Any, tmp_path: Path) -> None:
    address = client.scheduler.address
    asked = ["evaluate", in_files(SHORT, tmp_path, 4), "--gamma", "0.9", "--plan", "--cluster", address]
    said = CliRunner().invoke(app, asked)
    assert said.exit_code == 0, said.output
    assert "2 workers" in said.output


@pytest.mark.usefixtures("few_steps_are_many")
@pytest.mark.parametrize("policy", [None, mostly_right])
def test_bits_of_one_process(client: Any, policy: Any, tmp_path: Path) -> None:
    """Two workers, no worker; a function without a name goes to the workers too."""
    pattern = in_files(LOG, tmp_path, 5)
    expected = ask(pattern, policy=policy)
    own = policy if policy is None else lambda states: np.tile([0.1, 0.9], (len(states), 1))
    assert numbers(ask(pattern, policy=own, client=client)) == numbers(expected)


@pytest.mark.usefixtures("few_steps_are_many")
@pytest.mark.parametrize("n_workers", [1, pytest.param(3, marks=pytest.mark.long)])
def test_other_numbers_of_workers(n_workers: int, tmp_path: Path) -> None:
    pattern = in_files(LOG, tmp_path, 5)
    expected = ask(pattern)
    with local_workers(n_workers) as client:
        assert numbers(ask(pattern, client=client)) == numbers(expected)


def test_killed_worker(client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One dies while it computes: its shards are read, and changed, again; who comes in its place gets some."""
    mortals = OnDask(client, [partial(Mortal, np.array([1.0 + i, 0.1])) for i in range(7)])
    mortals.change("times", [(10.0**i,) for i in range(7)])
    assert mortals.total("last_words", str(tmp_path / "died"))[0] == 7_654_321.0
    assert (tmp_path / "died").exists()
    client.wait_for_workers(2)
    monkeypatch.setattr("tlstd.cluster.shard_pool.SPREAD", 0.0)
    assert mortals.total("last_words", str(tmp_path / "died"))[0] == 7_654_321.0
    held = Counter(worker for workers in client.who_has(mortals._shards).values() for worker in workers)
    assert sorted(held.values()) == [3, 4]
    assert min(days_until_it_is_given_up(client)) > 100.0


def days_until_it_is_given_up(client: Any) -> list[float]:
    """When Dask will close workers that have died, for good if they have then just died again."""
    loop = client.loop.asyncio_loop
    planned = [timer for timer in loop._scheduled if "_update_worker_status" in repr(timer)]
    return [(timer.when() - loop.time()) / 86_400.0 for timer in planned]


@pytest.mark.usefixtures("few_steps_are_many")
def test_files_on_workers_that_die(client: Any, tmp_path: Path) -> None:
    """The same bits as in one process: one worker dies when its parts are made, another one between two rounds."""
    pattern = in_files(LOG, tmp_path, 5)
    expected = ask(pattern, policy=mostly_right)
    said: list[str] = []

    def report(text: str, share: float) -> None:
        said.append(text)
        if text == "round 9":
            client.submit(die_once, str(tmp_path / "between"), pure=False).result()

    deadly = Deadly(str(tmp_path / "died"), os.getpid())
    found = ask(pattern, policy=deadly, client=client, report=report)
    assert numbers(found) == numbers(expected)
    assert any(text.startswith("read 5 of 5 files") for text in said)
    assert (tmp_path / "died").exists()
    assert (tmp_path / "between").exists()


@pytest.mark.usefixtures("few_steps_are_many")
def test_command(client: Any, tmp_path: Path) -> None:
    """``tlstd evaluate --cluster``: the same answer as in this process, and a file that is left out on request."""
    pattern = in_files(LOG, tmp_path, 3)
    (tmp_path / "part-9.parquet").write_bytes(b"PAR1")
    arguments = ["evaluate", pattern, "--gamma", "0.9", "--json", "--cluster", client.scheduler.address]
    arguments += ["--out", str(tmp_path / "page.html"), "--out", str(tmp_path / "values")]
    found = CliRunner().invoke(app, [*arguments, "--on-error", "skip", "--checkpoint", str(tmp_path / "rounds")])
    assert found.exit_code == 0, found.output
    answer = json.loads(found.stdout)
    assert any("part-9.parquet" in note for note in answer["notes"])
    names = [str(tmp_path / f"part-{i}.parquet") for i in range(3)]
    assert answer["value"] == ask(names).value
    assert list((tmp_path / "rounds").glob("*.npy"))
    assert (tmp_path / "page.html").exists()
    assert (tmp_path / "values").exists()
