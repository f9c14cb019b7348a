"""A Dask scheduler that has no workers yet, or is gone; real processes throughout."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.cluster.logs import LOG, SHORT, ask, in_files
from tlstd.cli.app import app
from tlstd.cluster.clients import connected
from tlstd.errors import ClusterError

DASK = (sys.executable, "-m", "dask")
FEW = ("KrylovLSTD",)


class Cluster:
    """A scheduler, to which workers can be added."""

    def __init__(self, folder: Path) -> None:
        told = folder / "scheduler.json"
        words = ["scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(told)]
        self.processes = [subprocess.Popen([*DASK, *words], stderr=subprocess.DEVNULL)]
        while not told.exists():
            time.sleep(0.1)
        self.address: str = json.loads(told.read_text())["address"]

    @property
    def scheduler(self) -> int:
        """Its process."""
        return self.processes[0].pid

    def add_worker(self) -> None:
        words = ["worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
        self.processes.append(subprocess.Popen([*DASK, *words], stderr=subprocess.DEVNULL))


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    found = Cluster(tmp_path)
    yield found
    for process in found.processes:
        process.kill()
        process.wait()


def test_no_workers(cluster: Cluster, tmp_path: Path) -> None:
    """It is said what is waited for, and how to get it; then it goes on."""
    words = ["evaluate", in_files(SHORT, tmp_path, 2), "--gamma", "0.9", "--json", "--cluster", cluster.address]
    asked = subprocess.Popen(
        [sys.executable, "-m", "tlstd", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert asked.stderr is not None
    said = asked.stderr.readline()
    assert said.startswith(f"{cluster.address} has no workers. Waiting for one since ")
    assert f"start it with dask worker {cluster.address} --nthreads 1, or stop with Ctrl-C." in said
    cluster.add_worker()
    out, _ = asked.communicate(timeout=120)
    assert asked.returncode == 0
    assert json.loads(out)["estimators"]


def test_a_scheduler_that_dies_while_a_command_computes(cluster: Cluster, tmp_path: Path) -> None:
    """One sentence and exit code 1. It dies when the policy is first called, in the process of the command."""
    cluster.add_worker()
    (tmp_path / "deadly.py").write_text(
        "import os\n\nimport tlstd.cluster.evaluate as of_files\n\n"
        "of_files.GATHERED, of_files.SAMPLE = 500, 400  # a log that stays with the workers\n\n"
        "def acts(states):\n"
        f"    if os.getpid() != {cluster.processes[1].pid}:\n"
        f"        os.kill({cluster.scheduler}, {int(signal.SIGKILL)})\n"
        "    return [1] * len(states)\n"
    )
    words = ["evaluate", in_files(LOG, tmp_path, 2), "--gamma", "0.9", "--cluster", cluster.address]
    words += ["--policy", "deadly:acts", "--checkpoint", "rounds"]
    asked = [sys.executable, "-B", "-m", "tlstd", *words]
    found = subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert (found.returncode, found.stdout) == (1, "")
    said = [line for line in found.stderr.splitlines() if "%: " not in line]
    (sentence,) = [line for line in said if not line.startswith(("rounds keeps", "no round was done"))]
    assert sentence.startswith(f"the Dask scheduler at {cluster.address} does not answer any more: start it and")


@pytest.mark.parametrize("stage", ["read ", "round 2"])
def test_a_scheduler_that_dies_leaves_the_rounds(
    cluster: Cluster, stage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was kept before is not computed again."""
    monkeypatch.setattr("tlstd.cluster.evaluate.GATHERED", 500)
    monkeypatch.setattr("tlstd.cluster.evaluate.SAMPLE", 400)
    cluster.add_worker()
    pattern, folder = in_files(LOG, tmp_path, 4), tmp_path / "rounds"

    def report(text: str, share: float) -> None:
        if text.startswith(stage):
            os.kill(cluster.scheduler, signal.SIGKILL)

    with (
        connected(cluster.address) as client,
        pytest.raises(ClusterError, match="does not answer any more: start it"),
    ):
        ask(pattern, estimators=FEW, client=client, checkpoint=folder, report=report)
    n_kept = len(list(folder.glob("*.npy")))
    assert (n_kept >= 2) == (stage == "round 2")
    found = ask(pattern, estimators=FEW, checkpoint=folder)
    assert (f"{n_kept} rounds of before" in found.notes[-1]) == (n_kept > 0)
    assert found.value == ask(pattern, estimators=FEW).value


def test_workers_beside_a_cluster() -> None:
    """Both are named, and what to do."""
    found = CliRunner().invoke(
        app, ["evaluate", "log.csv", "--gamma", "0.9", "--workers", "2", "--cluster", "tcp://me:secret@host:1"]
    )
    assert found.exit_code == 1
    assert "--workers 2 beside --cluster" in found.output
    assert "leave one of the two out" in found.output
