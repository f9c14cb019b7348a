"""A log in files against the same log in one."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tlstd.evaluation.evaluation import Evaluation

import tlstd
from tests.cluster.logs import SHORT, in_files
from tests.cluster.parts import mostly_right
from tlstd import Log
from tlstd.cluster.evaluate import evaluate_files
from tlstd.cluster.files import prepare
from tlstd.cluster.log_shard import LogFile
from tlstd.cluster.shard_pool import InProcess
from tlstd.errors import InvalidInputError, StateError
from tlstd.evaluation.value_function import ValueFunction
from tlstd.logs.messages import joined_note
from tlstd.logs.readers import file_names

FEW = ("KrylovLSTD", "LSTDQ")


@cache
def on_one_machine(how: str, rows: tuple[str, ...] = FEW) -> Evaluation:
    """What the files are compared with."""
    log = SHORT if how != "no probabilities" else SHORT.drop("probability")
    return tlstd.evaluate(log, gamma=0.9, policy=None if how == "logged policy" else mostly_right, estimators=rows)


@pytest.mark.parametrize(
    ("n_files", "how"),
    [
        (1, "logged policy"),
        (2, "ratios"),
        (7, "no probabilities"),
        (7, "logged policy"),
        (32, "ratios"),
        (32, "no probabilities"),
    ],
)
def test_as_on_one_machine(n_files: int, how: str, tmp_path: Path) -> None:
    """The answer, the values of all states and what was chosen; episodes go on from file to file."""
    log = SHORT if how != "no probabilities" else SHORT.drop("probability")
    policy = None if how == "logged policy" else mostly_right
    rows = ("KrylovLSTD",) if how == "ratios" else ("KrylovLSTD", "TD") if n_files == 1 else FEW
    whole = on_one_machine(how, rows)
    found = evaluate_files(in_files(log, tmp_path, n_files), gamma=0.9, policy=policy, estimators=rows)
    assert [row.name for row in found.rows] == [row.name for row in whole.rows]
    assert found.rows[0].note == whole.rows[0].note
    assert abs(found.value - whole.value) < 1e-10 * max(1.0, abs(whole.value))
    states = log.select("obs_0", "obs_1").to_numpy()
    np.testing.assert_allclose(found.predict(states), whole.predict(states), rtol=0.0, atol=1e-10)
    if n_files > 1:
        assert any("in the next one: joined" in note for note in found.notes)
    found.save(tmp_path / "values")
    saved = ValueFunction.load(tmp_path / "values")
    again = saved.predict(states) if policy is None or how == "ratios" else saved.predict(states, policy=policy)
    assert (again == found.predict(states)).all()


def test_what_is_said_of_joined_episodes(tmp_path: Path) -> None:
    """Not that they were cut off, or have no beginning: that is how they look in one file."""
    steps = np.tile(np.arange(12), 5)
    log = pl.DataFrame({"episode": np.repeat(np.arange(5), 12), "step": steps, "obs": steps * 0.5, "reward": 1.0})
    log = log.with_columns(terminated=pl.col("step") == 11)
    files = [LogFile(name) for name in file_names(in_files(log, tmp_path, 4))]
    overview = prepare(InProcess([file() for file in files]), files)
    assert (overview.n_episodes, overview.n_starts) == (5, 5)
    _, *said = Log.from_frame(log).notes
    assert [note for note in overview.notes[1:] if note not in said] == [joined_note(3)]


def test_the_cluster_is_one_of_the_contents_of_an_episode(tmp_path: Path) -> None:
    """As rows that repeat others are compared: by the cluster's name, whatever type a file stores it as."""
    log = SHORT.with_columns(user=pl.col("episode").rank("dense").cast(pl.Int64) % 3)
    words = log.with_columns(pl.col("user").cast(pl.String))
    tables = {"a": log, "b": words, "c": log.with_columns(user=pl.col("user") + 1)}
    found = {}
    for name, table in tables.items():
        table.write_parquet(tmp_path / f"{name}.parquet")
        episodes = LogFile(str(tmp_path / f"{name}.parquet"), columns={"cluster": "user"})().summary().episodes
        assert episodes is not None
        found[name] = episodes.contents
    assert (found["a"] == found["b"]).all()
    assert (found["a"] != found["c"]).all()


def test_without_names(tmp_path: Path) -> None:
    """An episode ends where a flag says so, in whatever file."""
    log = SHORT.drop("episode", "step")
    whole = tlstd.evaluate(log, gamma=0.9, estimators=FEW)
    found = evaluate_files(in_files(log, tmp_path, 5), gamma=0.9, estimators=FEW)
    assert abs(found.value - whole.value) < 1e-10


def test_a_stream_without_ends(tmp_path: Path) -> None:
    """One episode through all files: the trace goes with it, and all states are asked for."""
    rng = np.random.default_rng(1)
    x = np.cumsum(rng.standard_normal(1_000)) % 7.0
    log = pl.DataFrame({"episode": 0, "step": np.arange(1_000), "obs": x, "reward": np.sin(x)})
    whole = tlstd.evaluate(log, gamma=0.9, estimators=FEW)
    found = evaluate_files(in_files(log, tmp_path, 6), gamma=0.9, estimators=FEW)
    assert found.rows[0].values.keys() == {"all states", "first state"}
    for name, value in whole.rows[0].values.items():
        assert abs(found.rows[0].values[name] - value) < 1e-10
    without = evaluate_files([str(tmp_path / f"part-{i}.parquet") for i in (0, 2, 4)], gamma=0.9, estimators=FEW)
    assert abs(without.value - whole.value) > 1e-6


def damage(folder: Path, kind: str) -> str:
    """Spoil one of the files."""
    path = folder / "part-3.parquet"
    if kind == "cut off":
        path.write_bytes(path.read_bytes()[:-40])
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "other columns":
        pl.read_parquet(path).drop("reward").write_parquet(path)
    elif kind == "other shapes":
        pl.read_parquet(path).with_columns(obs_2=0.0).write_parquet(path)
    else:
        pl.read_parquet(folder / "part-1.parquet").with_columns(pl.col("reward") + 1.0).write_parquet(path)
    return path.name


@pytest.fixture(scope="module")
def value_of_the_others(tmp_path_factory: pytest.TempPathFactory) -> float:
    """By the files that are not damaged."""
    folder = tmp_path_factory.mktemp("others")
    in_files(SHORT, folder, 6)
    others = [str(folder / f"part-{i}.parquet") for i in range(6) if i != 3]
    return evaluate_files(others, gamma=0.9, estimators=FEW).value


@pytest.mark.parametrize("kind", ["cut off", "empty", "other columns", "other shapes", "other contents"])
def test_files_that_cannot_be_used(kind: str, value_of_the_others: float, tmp_path: Path) -> None:
    """Named; left out if that was asked for."""
    pattern = in_files(SHORT, tmp_path, 6)
    name = damage(tmp_path, kind)
    with pytest.raises(InvalidInputError, match=name):
        evaluate_files(pattern, gamma=0.9, estimators=FEW)
    found = evaluate_files(pattern, gamma=0.9, on_error="skip", estimators=FEW)
    assert found.notes[0].startswith("Left out: ")
    assert name in found.notes[0]
    assert found.left_out[:2] == (1, 6)
    assert found.value == value_of_the_others


def test_words_for_actions(tmp_path: Path) -> None:
    """A policy may return them; a file in which fewer words occur would number them in another way, and is refused."""
    log = SHORT.with_columns(
        pl.when(pl.col("action") == 1).then(pl.lit("right")).otherwise(pl.lit("left")).alias("action")
    )
    pattern, asked = in_files(log, tmp_path, 2), ["KrylovLSTD"]
    found = evaluate_files(pattern, gamma=0.9, policy=lambda x: np.full(len(x), "right"), estimators=asked)
    one = tlstd.evaluate(SHORT, gamma=0.9, policy=lambda x: np.ones(len(x), dtype=int), estimators=asked)
    assert abs(found.value - one.value) < 1e-10 * max(1.0, abs(one.value))
    path = tmp_path / "part-1.parquet"
    pl.read_parquet(path).with_columns(action=pl.lit("right")).write_parquet(path)
    with pytest.raises(InvalidInputError, match=r"part-1\.parquet has other columns, shapes or words for actions"):
        evaluate_files(pattern, gamma=0.9, estimators=asked)


def test_checkpoint(tmp_path: Path) -> None:
    """What was computed is not computed again; another question is refused."""
    pattern, folder = in_files(SHORT, tmp_path, 3), tmp_path / "rounds"
    said: list[str] = []

    def stop(text: str, share: float) -> None:
        said.append(text)
        if text.startswith("round 2"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate_files(pattern, gamma=0.9, checkpoint=folder, report=stop, estimators=FEW)
    kept = {path.name: path.stat().st_mtime_ns for path in folder.glob("round-*")}
    assert len(kept) == 2
    found = evaluate_files(pattern, gamma=0.9, checkpoint=folder, estimators=FEW)
    assert found.notes[-1].startswith("2 rounds of before, kept in ")
    assert found.value == evaluate_files(pattern, gamma=0.9, estimators=FEW).value
    assert all((folder / name).stat().st_mtime_ns == when for name, when in kept.items())
    with pytest.raises(StateError, match="another question"):
        evaluate_files(pattern, gamma=0.8, checkpoint=folder, estimators=FEW)


@pytest.mark.parametrize("named", [True, False])
def test_episodes_have_the_names_of_one_machine(named: bool, tmp_path: Path) -> None:
    """Those of the log; where it has none they are counted over all files."""
    log = SHORT.with_columns(terminated=pl.col("step") == pl.col("step").max().over("episode"))
    log = log if named else log.drop("episode", "step")
    ends = np.flatnonzero(log["terminated"].to_numpy()) + 1
    log[: ends[9]].write_parquet(tmp_path / "1.parquet")
    log[ends[9] :].write_parquet(tmp_path / "2.parquet")
    found = evaluate_files(tmp_path, gamma=0.9, estimators=("KrylovLSTD",)).fitted
    assert found is not None
    assert found.log.ids == Log.from_frame(log).ids
