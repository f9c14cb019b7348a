"""Logs in files as they may come: an answer with finite numbers, or an error that names the remedy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.cluster.logs import LOG, ask, chain, in_files
from tests.cluster.parts import always_right, mostly_right
from tests.cluster.test_evaluate import continuous, stream
from tlstd.errors import TlstdError

LAST = pl.col("step") == pl.col("step").max().over("episode")
ODD: dict[str, Callable[[], list[pl.DataFrame]]] = {
    "an empty file first": lambda: [LOG.head(0), LOG],
    "an empty file between": lambda: [LOG[:300], LOG.head(0), LOG[300:]],
    "nothing but empty files": lambda: [LOG.head(0), LOG.head(0)],
    "one file": lambda: [LOG],
    "one row": lambda: [LOG[:1]],
    "a row per file": lambda: [LOG[i : i + 1] for i in range(8)],
    "one episode": lambda: [LOG.filter(pl.col("episode") == "e3")],
    "one episode over three files": lambda: [stream(900)[a : a + 300] for a in (0, 300, 600)],
    "one episode that ends, over three files": lambda: [
        stream(900).with_columns(terminated=pl.col("step") == 899)[a : a + 300] for a in (0, 300, 600)
    ],
    "an episode per file": lambda: [part for _, part in LOG.head(60).group_by("episode", maintain_order=True)],
    "rewards are all 0": lambda: [LOG.with_columns(reward=0.0)[:700], LOG.with_columns(reward=0.0)[700:]],
    "rewards are huge": lambda: [LOG.with_columns(pl.col("reward") * 1e200)[:700]],
    "observations are constant": lambda: [LOG.with_columns(obs_0=1.0, obs_1=2.0)],
    "observations are infinite": lambda: [LOG.with_columns(obs_0=float("inf"))],
    "numbers are missing": lambda: [LOG.with_columns(obs_0=pl.lit(None, pl.Float64))],
    "every row ends": lambda: [LOG.with_columns(terminated=True)[:500], LOG.with_columns(terminated=True)[500:]],
    "every row is the last of its episode": lambda: [
        LOG.with_columns(episode=pl.int_range(pl.len()), step=0, terminated=False)
    ],
    "no row ends": lambda: [LOG.with_columns(terminated=False)[:500], LOG.with_columns(terminated=False)[500:]],
    "one action": lambda: [LOG.with_columns(action=0)],
    "no actions": lambda: [LOG.drop("action", "probability")],
    "discrete, one state": lambda: [chain(30).with_columns(observation=0)],
    "discrete, states differ per file": lambda: [chain(30), chain(30, 1).with_columns(pl.col("observation") + 9)],
    "continuous actions": lambda: [continuous(LOG)],
    "the same file twice": lambda: [LOG, LOG],
    "shuffled rows": lambda: [LOG.sample(fraction=1.0, shuffle=True, seed=0)],
    "one probability is 0": lambda: [LOG.with_columns(probability=pl.when(LAST).then(0.0).otherwise(0.5))],
}


@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("odd", ODD)
def test_an_answer_or_a_remedy(odd: str, pooled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the logged policy, of another one, and of another one's actions."""
    if pooled:
        monkeypatch.setattr("tlstd.cluster.evaluate.GATHERED", 0)
        monkeypatch.setattr("tlstd.cluster.evaluate.SAMPLE", 200)
    for i, part in enumerate(ODD[odd]()):
        part.write_parquet(tmp_path / f"{i:03d}.parquet")
    said: list[str] = []
    for policy in (None, mostly_right, always_right):
        try:
            found = ask(str(tmp_path / "*.parquet"), policy=policy)
        except TlstdError as error:
            said.append(str(error))
            continue
        assert str(found)
        assert found.to_json()
        assert np.isfinite(found.value) or found.rung == "refusal", found.rung
    assert all(len(error) > 20 for error in said)


def test_files_of_many_episodes(tmp_path: Path) -> None:
    """More files than rows of some episodes."""
    assert np.isfinite(ask(in_files(LOG.head(200), tmp_path, 60)).value)
