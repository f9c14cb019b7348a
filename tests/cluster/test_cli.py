"""``tlstd evaluate`` with workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tlstd.cluster.shard import Shard
from typer.testing import CliRunner

from tests.cluster.logs import LOG, in_files
from tlstd.cli.app import app
from tlstd.cluster.log_shard import LogFile, LogShard
from tlstd.cluster.plan import plan
from tlstd.errors import InvalidInputError
from tlstd.logs.readers import file_names


def test_plan(tmp_path: Path) -> None:
    """Sizes from one file: steps as there are, memory and traffic as they will be."""
    pattern = in_files(LOG, tmp_path, 4)
    said = CliRunner().invoke(app, ["evaluate", pattern, "--gamma", "0.9", "--plan", "--workers", "2"])
    assert said.exit_code == 0, said.output
    assert "4 files" in said.output
    found = plan([LogFile(name) for name in file_names(pattern)], gamma=0.9, n_workers=2, dimension=10)
    assert abs(found.n_steps - LOG.height) < 0.1 * LOG.height
    assert found.worker_bytes > found.n_steps / 2 * found.bytes_per_step
    assert found.round_bytes == 8 * found.n_features
    assert found.between_workers == found.round_bytes  # 0, 0, 1, 1: the vector to the second
    assert found.to_client == 2 * found.round_bytes  # the sum of each
    assert "10 rounds" in str(found)
    with pytest.raises(InvalidInputError, match="no files"):
        plan([], gamma=0.9)


def test_a_plan_tells_what_is_done_once_from_what_is_done_for_every_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock that stands still but for what is encoded: a minute the first time, then a second a step."""
    now, first = 0.0, True

    def encoded(shard: LogShard, *rest: Any) -> Shard:
        nonlocal now, first
        now, first = now + (60.0 if first else len(shard._log)), False
        return whole(shard, *rest)

    whole = LogShard.encoded
    monkeypatch.setattr(LogShard, "encoded", encoded)
    monkeypatch.setattr("tlstd.cluster.plan.perf_counter", lambda: now)
    files = [LogFile(name) for name in file_names(in_files(LOG, tmp_path, 4))]
    found = plan(files, gamma=0.9, n_workers=2)
    assert (found.seconds_to_start, found.seconds_to_read, found.seconds_to_multiply) == (60.0, 1.0, 0.0)
    assert found.seconds == 60.0 + found.n_steps / 2
    assert "60.0 s to start" in str(found)
