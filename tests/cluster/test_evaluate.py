"""A log in files that comes to one process: the answer is that of the same log in one, to the bit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import tlstd
from tests.cluster.logs import SHORT, ask, chain, in_files, numbers
from tests.cluster.parts import always_right, mostly_right, pushing
from tlstd import Log
from tlstd.cluster.evaluate import answers_of_files
from tlstd.cluster.files import prepare
from tlstd.cluster.log_shard import LogFile
from tlstd.cluster.shard_pool import InProcess
from tlstd.errors import InvalidInputError, InvalidParameterError
from tlstd.evaluation.question import Question
from tlstd.evaluation.value_function import ValueFunction
from tlstd.logs.messages import joined_note
from tlstd.logs.readers import file_names

FEW = ("KrylovLSTD", "LSTDQ")


def stream(n: int = 1_000) -> pl.DataFrame:
    """One episode without an end."""
    rng = np.random.default_rng(1)
    x = np.cumsum(rng.standard_normal(n)) % 7.0
    return pl.DataFrame({"episode": 0, "step": np.arange(n), "obs": x, "reward": np.sin(x) + rng.standard_normal(n)})


def continuous(log: pl.DataFrame = SHORT) -> pl.DataFrame:
    """With actions that are numbers."""
    rng = np.random.default_rng(2)
    return log.drop("probability").with_columns(action=pl.Series(rng.standard_normal(log.height)))


LOGS: dict[str, tuple[Callable[[], pl.DataFrame], dict[str, Any]]] = {
    "logged policy": (lambda: SHORT, {}),
    "all states": (lambda: SHORT, {"start": "all"}),
    "given states": (lambda: SHORT, {"start": [[0.1, 0.2], [0.5, 0.0]]}),
    "ratios": (lambda: SHORT, {"policy": mostly_right}),
    "numbers of actions": (lambda: SHORT, {"policy": always_right}),
    "no probabilities": (lambda: SHORT.drop("probability"), {"policy": mostly_right}),
    "ranges": (lambda: SHORT, {"policy": always_right, "returns": (-20.0, 20.0), "estimators": "LSTDQ"}),
    "discrete": (chain, {"policy": mostly_right}),
    "continuous actions": (continuous, {"policy": pushing}),
    "without names": (lambda: SHORT.drop("episode", "step"), {}),
    "stream": (stream, {}),
    "columns": (lambda: SHORT.with_columns(policy_0=pl.lit(0.3), policy_1=pl.lit(0.7)), {}),
    "compared": (lambda: SHORT, {"estimators": ("KrylovLSTD", "LSTD", "TD")}),
    "costs": (lambda: SHORT, {"cost": True, "level": 0.9}),
    "one step": (lambda: SHORT, {"gamma": 0.0}),
}
COLUMNS = {"columns": {"policy": ["policy_0", "policy_1"]}}


@pytest.mark.parametrize("how", LOGS)
def test_bits_of_one_machine(how: str, tmp_path: Path) -> None:
    """The answer, all rows, settings, weights, and what every episode moves; episodes go on from file to file."""
    make, asked = LOGS[how]
    log = make()
    columns: dict[str, Any] = COLUMNS if how == "columns" else {}
    options = {"gamma": 0.9} | asked
    rows = {name: of for name, of in options.items() if name != "reward_range"}
    whole = tlstd.evaluate(Log.from_frame(log, **columns), **rows)
    found = ask(in_files(log, tmp_path, 5), **options, **columns)
    assert numbers(found) == numbers(whole)
    assert found.trust.to_dict()["light"] == whole.trust.to_dict()["light"]
    assert found.n_steps == log.height
    assert found.log.ids == whole.log.ids
    if how not in ("stream", "without names"):
        assert any("in the next one" in note for note in found.notes)


@pytest.mark.parametrize("n_files", [1, 2, 7, 32])
def test_any_number_of_files(n_files: int, tmp_path: Path) -> None:
    """The same bits, and the same predictions; what is saved predicts them too."""
    whole = tlstd.evaluate(SHORT, gamma=0.9, policy=mostly_right)
    found = ask(in_files(SHORT, tmp_path, n_files), policy=mostly_right)
    assert numbers(found) == numbers(whole)
    states = SHORT.select("obs_0", "obs_1").to_numpy()
    assert (found.predict(states) == whole.predict(states)).all()
    found.save(tmp_path / "values")
    assert np.isfinite(ValueFunction.load(tmp_path / "values").predict(states)).all()


def test_several_questions_in_one_reading(tmp_path: Path) -> None:
    """All policies, discounts and starts; each has the bits that it has alone."""
    pattern = in_files(SHORT, tmp_path, 3)
    asked = Question(gammas=(0.9, 0.5), policies=(None, mostly_right), starts=(None, "all"))
    found = answers_of_files(pattern, question=asked)
    assert len(found) == 8
    for i, (policy, gamma, start) in enumerate(
        [(p, g, s) for p in (None, mostly_right) for g in (0.9, 0.5) for s in (None, "all")]
    ):
        assert numbers(found[i]) == numbers(tlstd.evaluate(SHORT, gamma=gamma, policy=policy, start=start))


def test_what_is_refused(tmp_path: Path) -> None:
    """With the remedy."""
    pattern = in_files(SHORT, tmp_path, 3)
    with pytest.raises(InvalidInputError, match=r"the policy is an array.*pass a function from observations"):
        ask(pattern, policy=np.full((SHORT.height, 2), 0.5))
    with pytest.raises(InvalidParameterError, match="one process, which holds the whole log: leave it out"):
        ask(pattern, policy=mostly_right, probabilities="estimate")
    with pytest.raises(InvalidParameterError, match="pass a function"):
        ask(pattern, policy="module:function")
    asked = Question(gammas=(0.9,), rewards=(np.ones(SHORT.height),))
    with pytest.raises(InvalidInputError, match="no file holds: name another"):
        answers_of_files(pattern, question=asked)
    with pytest.raises(InvalidInputError, match="start has shape"):
        ask(pattern, start=[[1.0, 2.0, 3.0]])


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
    return ask(others, estimators=FEW).value


@pytest.mark.parametrize("kind", ["cut off", "empty", "other columns", "other shapes", "other contents"])
def test_files_that_cannot_be_used(kind: str, value_of_the_others: float, tmp_path: Path) -> None:
    """Named; left out if that was asked for."""
    pattern = in_files(SHORT, tmp_path, 6)
    name = damage(tmp_path, kind)
    with pytest.raises(InvalidInputError, match=name):
        ask(pattern, estimators=FEW)
    found = ask(pattern, on_error="skip", estimators=FEW)
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
    found = ask(pattern, policy=lambda x: np.full(len(x), "right"), estimators=asked)
    one = tlstd.evaluate(SHORT, gamma=0.9, policy=lambda x: np.ones(len(x), dtype=int), estimators=asked)
    assert found.value == one.value
    path = tmp_path / "part-1.parquet"
    pl.read_parquet(path).with_columns(action=pl.lit("right")).write_parquet(path)
    with pytest.raises(InvalidInputError, match=r"part-1\.parquet has other columns, shapes or words for actions"):
        ask(pattern, estimators=asked)


@pytest.mark.parametrize("named", [True, False])
def test_episodes_have_the_names_of_one_machine(named: bool, tmp_path: Path) -> None:
    """Those of the log; where it has none they are counted over all files."""
    log = SHORT.with_columns(terminated=pl.col("step") == pl.col("step").max().over("episode"))
    log = log if named else log.drop("episode", "step")
    ends = np.flatnonzero(log["terminated"].to_numpy()) + 1
    log[: ends[9]].write_parquet(tmp_path / "1.parquet")
    log[ends[9] :].write_parquet(tmp_path / "2.parquet")
    found = ask(tmp_path, estimators=("KrylovLSTD",))
    assert found.log.ids == Log.from_frame(log).ids
