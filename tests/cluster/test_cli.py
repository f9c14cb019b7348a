"""``tlstd evaluate`` with workers."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.cluster.parts import LOG, in_files
from tlstd.cli.app import app
from tlstd.cluster.log_shard import LogFile
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
