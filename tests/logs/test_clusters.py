"""Episodes that belong together: the column, its names, and every part of a log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tlstd import InvalidInputError, Log
from tlstd.logs import read_chunks
from tlstd.logs.joining import concatenate

USERS = ["eve", "bob", "eve", "ann", "bob"]


def frame(users: list[Any] | None = None, length: int = 3) -> dict[str, Any]:
    """Five episodes of three steps, the users of which come again."""
    users = USERS if users is None else users
    n = len(users) * length
    return {
        "episode": np.repeat(np.arange(len(users)), length),
        "t": np.tile(np.arange(length), len(users)),
        "obs": np.arange(n) / 10.0,
        "reward": np.ones(n),
        "done": np.tile([False] * (length - 1) + [True], len(users)),
        "user": np.repeat(np.array(users, dtype=object), length),
    }


def read(columns: dict[str, Any], **options: Any) -> Log:
    return Log.from_frame(columns, columns={"cluster": "user"}, **options)


def named(log: Log) -> list[Any]:
    """The name of the cluster of each episode; its numbers are those of first appearance."""
    assert log.clusters is not None
    numbers = log.clusters.tolist()
    assert list(dict.fromkeys(numbers)) == list(range(len(log.cluster_names)))
    return [log.cluster_names[k] for k in numbers]


def test_numbers_follow_first_appearance() -> None:
    log = read(frame())
    assert log.clusters is not None
    assert log.clusters.tolist() == [0, 1, 0, 2, 1]
    assert log.cluster_names == ("eve", "bob", "ann")
    assert not log.clusters.flags.writeable
    assert "cluster is user" in log.notes[0]


def test_without_a_column_there_are_none() -> None:
    log = Log.from_frame(frame())
    assert log.clusters is None
    assert log.cluster_names == ()
    assert "Not used: user" in log.notes[0]
    assert log[2:].clusters is None
    assert concatenate([log[:4], log[4:]]).clusters is None


@pytest.mark.parametrize("name", ["cluster", "clusters", "user", "patient"])
def test_it_is_never_guessed(name: str) -> None:
    columns = frame()
    columns[name] = columns.pop("user")
    assert Log.from_frame(columns).clusters is None


@pytest.mark.parametrize(
    ("users", "names"),
    [
        ([7, 3, 7, 9, 3], (7, 3, 9)),
        ([7.0, 3.0, 7.0, 9.0, 3.0], (7, 3, 9)),
        ([2**53 + 1, 2**53, 2**53 + 1, 5, 5], (2**53 + 1, 2**53, 5)),
        (["1", 2, "1", 2, 1], ("1", 2)),  # as for episodes: a number and its word are one name
    ],
)
def test_names(users: list[Any], names: tuple[Any, ...]) -> None:
    assert read(frame(users)).cluster_names == names


def test_from_arrays_takes_integers_and_words() -> None:
    for clusters in (np.array(["b", "b", "a"]), ["b", "b", "a"], [5, 5, 1]):
        log = Log.from_arrays([0.5, 1.5, 2.5], np.ones(3), episodes=[0, 0, 1], clusters=clusters)
        assert log.clusters is not None
        assert log.clusters.tolist() == [0, 1]
        assert log.cluster_names == (clusters[0], clusters[2])


def test_parts_have_their_own_numbers() -> None:
    log = read(frame())
    assert named(log.select([3, 1, 4])) == ["ann", "bob", "bob"]
    assert named(log.select([3, 3])) == ["ann", "ann"]
    assert named(log[4:11]) == ["bob", "eve", "ann"]
    assert named(log[4:5]) == ["bob"]
    assert [name for piece in log.pieces(4) for name in named(piece)] == [
        *["eve", "bob"],  # the second piece begins within the second episode
        *["bob", "eve"],
        *["eve", "ann"],
        *["bob"],
    ]
    assert named(log[3:3]) == []


def test_rows_out_of_order_and_gaps() -> None:
    columns = frame()
    columns["t"][4:6] += 3  # a gap in the second episode
    order = np.random.default_rng(0).permutation(15)
    log = read({name: column[order] for name, column in columns.items()})
    assert log.n_episodes == 6
    by_episode = dict(zip(range(5), USERS, strict=True))
    assert named(log) == [by_episode[e] for e in log.ids]


def test_dropped_episodes_take_their_cluster_with_them() -> None:
    columns = frame()
    columns["obs"][10] = np.nan  # of ann
    log = read(columns, on_nan="drop")
    assert named(log) == ["eve", "bob", "eve", "bob"]
    assert log.cluster_names == ("eve", "bob")


def test_rows_with_final_observations() -> None:
    columns = frame()
    columns["reward"][2::3] = np.nan
    columns["done"][1::3] = True
    columns["done"][2::3] = False
    columns["done"] = columns["done"] | np.isnan(columns["reward"])
    columns["done"][1::3] = False
    log = read(columns)
    assert len(log) == 10
    assert named(log) == USERS


@pytest.mark.parametrize("rows", [1, 2, 4, 7, 100])
def test_pieces_of_a_log_read_in_chunks(rows: int) -> None:
    whole, pieces = read(frame()), list(read_chunks(frame(), columns={"cluster": "user"}, rows=rows))
    again = concatenate(pieces)
    assert named(again) == named(whole)
    assert again.cluster_names == whole.cluster_names
    assert_array_equal(again.clusters, whole.clusters)
    for piece in pieces:
        assert named(piece) == [USERS[e] for e in piece.ids]


def test_two_clusters_across_chunks() -> None:
    columns = frame()
    columns["user"][5] = "ann"
    with pytest.raises(InvalidInputError, match="episode 1 has user 'bob' in row 4 and user 'ann' in row 5"):
        list(read_chunks(columns, columns={"cluster": "user"}, rows=5))


def test_several_files_are_one_log(tmp_path: Path) -> None:
    pl = pytest.importorskip("polars")
    users = [7, 3, 7, 9, 3]
    columns = frame(users)
    columns["user"] = columns["user"].astype(np.int64)
    table = pl.DataFrame(columns)
    table[:7].write_parquet(tmp_path / "a.parquet")
    words = table[7:].with_columns(pl.col("user").cast(pl.String))  # in this file they are words
    words.write_parquet(tmp_path / "b.parquet")
    log = read(str(tmp_path / "*.parquet"))  # type: ignore[arg-type]
    assert named(log) == [str(user) for user in users]
    both = [
        Log.from_frame(tmp_path / name, columns={"cluster": "user"}, time_limit=None)
        for name in ("a.parquet", "b.parquet")
    ]
    joined = concatenate(both)
    assert list(map(str, named(joined))) == list(map(str, [7, 3, 7, 7, 9, 3]))
    assert len(joined.cluster_names) == 3


def test_single_decisions_keep_the_cluster_of_their_row() -> None:
    users = ["eve", "bob", "eve", "eve"]
    log = Log.from_arrays(np.arange(4.0), np.ones(4), clusters=users)
    with pytest.raises(InvalidInputError, match=r"episode 0 has cluster 'eve' and cluster 'bob'.*name the column of"):
        _ = log.clusters
    assert named(log.as_decisions()) == users
    same = Log.from_arrays(np.arange(4.0), np.ones(4), clusters=["eve"] * 4)
    assert named(same) == ["eve"]
    assert named(same.as_decisions()[1:3]) == ["eve", "eve"]


def test_some_with_and_some_without() -> None:
    with pytest.raises(InvalidInputError, match="some of the logs have clusters"):
        concatenate([read(frame()), Log.from_frame(frame())])


def changed(row: int, value: Any, role: str = "user") -> dict[str, Any]:
    columns = frame()
    columns[role] = columns[role].astype(object)
    columns[role][row] = value
    return columns


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (changed(4, "ann"), r"episode 1 has user 'bob' in row 3 and user 'ann' in row 4: .*leave it out \(columns="),
        (changed(4, None), "user is missing in row 4: every row needs the name of its cluster"),
        ({**frame(), "user": np.where(np.arange(15) == 4, np.nan, 1.0)}, "user is missing in row 4"),
        ({**frame(), "user": np.full(15, 2.0**53)}, "store names as integers or as text"),
        ({**frame(), "user": np.ones((15, 2))}, "user has shape"),
        ({**frame(), "user": np.ones(14)}, "user has 14 rows"),
    ],
)
def test_what_is_refused(columns: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        read(columns)


def test_flags_tell_episodes_apart() -> None:
    columns = changed(4, "ann")
    del columns["episode"]
    with pytest.raises(InvalidInputError, match=r"episode 1 has user .* name the column of episodes \(columns="):
        read(columns)
