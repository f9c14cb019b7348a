"""A stored run comes back as it was, or not at all."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from tlstd_lab.spec import RunSpec
from tlstd_lab.store import OWN, MissingRunError, Store, _digest, _to_bytes, versions

from tlstd.errors import InvalidInputError, InvalidParameterError, StateError

COLUMNS: dict[str, Any] = {
    "step": np.arange(3),
    "rmse": np.array([np.nan, np.inf, 0.1]),
    "small": np.array([0.1, 0.2, -0.0], dtype=np.float32),
    "diverged": np.array([True, False, True]),
    "method": np.array(["TD", "t-LSTD", "λ"]),
}


def spec(seed: int = 0, **settings: Any) -> RunSpec:
    return RunSpec("module:function", settings, seed)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "results")


def test_a_run_comes_back(store: Store) -> None:
    assert not store.has(spec().key)
    assert store.write(spec(), COLUMNS, seconds=1.5)
    run = store.read(spec().key)
    assert store.has(spec().key)
    assert run.spec == spec()
    assert run.seconds == 1.5
    assert run.made_with == versions()
    assert {"tlstd", "numpy", "numba", "python", "platform"} <= set(run.made_with)
    assert list(run.columns) == list(COLUMNS)
    for name, column in COLUMNS.items():
        assert_array_equal(run.columns[name], column, strict=name != "method")
    assert run.frame().height == 3


def test_an_empty_run_comes_back(store: Store) -> None:
    store.write(spec(), {"step": np.zeros(0, dtype=np.int64), "method": np.zeros(0, dtype=str)}, seconds=0)
    assert {name: len(column) for name, column in store.read(spec().key).columns.items()} == {"step": 0, "method": 0}


def test_nothing_is_overwritten(store: Store) -> None:
    store.write(spec(), {"step": [1]}, seconds=1)
    assert not store.write(spec(), {"step": [2]}, seconds=2)
    assert_array_equal(store.read(spec().key).columns["step"], [1])
    assert [path.name for path in store.root.iterdir()] == [f"{spec().key}.parquet"]


def test_a_race_has_one_winner(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    link = os.link

    def overtaken(source: Path, target: Path) -> None:
        monkeypatch.setattr(os, "link", link)
        assert store.write(spec(), {"step": [2]}, seconds=2)
        link(source, target)

    monkeypatch.setattr(os, "link", overtaken)
    assert not store.write(spec(), {"step": [1]}, seconds=1)
    assert store.read(spec().key).seconds == 2
    assert len(list(store.root.iterdir())) == 1


def test_without_links_files_are_renamed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: Path, target: Path) -> None:
        raise PermissionError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    assert store.write(spec(), {"step": [1]}, seconds=1)
    assert not store.write(spec(), {"step": [2]}, seconds=2)
    assert store.read(spec().key).seconds == 1


def test_a_crash_in_mid_write_leaves_nothing_that_counts(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(source: Path, target: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "link", crash)
    with pytest.raises(KeyboardInterrupt):
        store.write(spec(), {"step": [1]}, seconds=1)
    assert list(store.root.iterdir()) == []


def test_old_leftovers_are_removed(store: Store) -> None:
    store.write(spec(), {"step": [1]}, seconds=1)
    old, young = store.root / ".a.parquet-1.tmp", store.root / ".b.parquet-2.tmp"
    old.touch()
    young.touch()
    os.utime(old, (0, 0))
    store.remove_leftovers()
    assert not old.exists()
    assert young.exists()
    assert store.keys() == {spec().key}


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "truncated": lambda data: data[: len(data) // 2],
    "a byte short": lambda data: data[:-1],
    "empty": lambda data: b"",
    "zeros": lambda data: bytes(len(data)),
    "a bit": lambda data: data[:200] + bytes([data[200] ^ 1]) + data[201:],
    "something else": lambda data: b"sha256:" + b"f" * 64,
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_file_is_moved_aside(store: Store, damage: Callable[[bytes], bytes]) -> None:
    store.write(spec(), COLUMNS, seconds=1)
    store.write(spec(1), COLUMNS, seconds=1)
    path = store.root / f"{spec().key}.parquet"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.warns(UserWarning, match="is damaged"):
        assert not store.has(spec().key)
    with pytest.raises(MissingRunError, match=spec().key):
        store.read(spec().key)
    assert set(store.specs()) == {spec(1).key}
    assert store.write(spec(), COLUMNS, seconds=2)
    assert store.read(spec().key).seconds == 2
    assert len(list(store.root.glob("*.damaged"))) == 1


def test_any_flipped_byte_is_noticed(store: Store) -> None:
    store.write(spec(note="sha256:" + "0" * 64), COLUMNS, seconds=1)
    data = next(store.root.iterdir()).read_bytes()
    assert _digest(data)
    for place in range(0, len(data), 7):
        assert not _digest(data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({}, "at least one"),
        ([1, 2], "at least one"),
        ({"run.key": [1]}, "named 'run.key'"),
        ({"a": [[1, 2]]}, r"'a' has shape \(1, 2\)"),
        ({"a": 1.0}, r"'a' has shape \(\)"),
        ({"a": [1], "b": [1, 2]}, "{'a': 1, 'b': 2}"),
        ({"a": [1j]}, "complex128"),
        ({"a": np.array([None])}, "object"),
    ],
)
def test_what_is_no_table_is_refused(store: Store, columns: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        store.write(spec(), columns, seconds=1)
    assert store.keys() == set()


def test_many_runs_are_read_in_the_order_asked_for(store: Store) -> None:
    specs = [spec(seed) for seed in range(20)]
    for each in specs:
        store.write(each, {"seed": [each.seed]}, seconds=1)
    keys = [each.key for each in reversed(specs)]
    runs = store.read_many(keys)
    assert list(runs) == keys
    assert [int(run.columns["seed"][0]) for run in runs.values()] == list(range(19, -1, -1))
    assert store.keys() == set(keys)
    assert store.specs() == {each.key: each for each in specs}


def test_a_bundle_stands_in_for_the_files(store: Store, tmp_path: Path) -> None:
    tables: list[dict[str, Any]] = [COLUMNS, {"step": [1], "other": [2.5]}, {"rmse": np.zeros(0)}]
    specs = [spec(seed) for seed in range(len(tables))]
    for each, columns in zip(specs, tables, strict=True):
        store.write(each, columns, seconds=each.seed)
    bundle = tmp_path / "bundles" / "all.parquet"
    store.pack([each.key for each in specs], bundle)
    again = Store(tmp_path / "elsewhere", [bundle])
    assert again.keys() == store.keys()
    for each in specs:
        before, after = store.read(each.key), again.read(each.key)
        assert again.has(each.key)
        assert (after.spec, after.seconds, after.made_with) == (before.spec, before.seconds, before.made_with)
        assert sorted(after.columns) == sorted(before.columns)
        for name, column in before.columns.items():
            assert_array_equal(after.columns[name], column, strict=True)
    assert not again.root.exists()
    assert pl.read_parquet(bundle).height == 3

    again.pack([specs[1].key], bundle)  # of a bundle, in its own place
    assert Store(tmp_path / "elsewhere", [bundle]).keys() == {specs[1].key}


def test_a_bundle_has_one_type_per_column(store: Store, tmp_path: Path) -> None:
    store.write(spec(0), {"a": [1]}, seconds=1)
    store.write(spec(1), {"a": [1.5]}, seconds=1)
    with pytest.raises(InvalidInputError, match="column 'a'"):
        store.pack(store.keys(), tmp_path / "bundle.parquet")
    with pytest.raises(InvalidParameterError, match="no runs to pack"):
        store.pack([], tmp_path / "bundle.parquet")
    with pytest.raises(MissingRunError):
        store.pack(["nothing"], tmp_path / "bundle.parquet")
    assert not (tmp_path / "bundle.parquet").exists()


def test_a_bad_bundle_is_refused_at_once(store: Store, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.parquet"
    with pytest.raises(InvalidParameterError, match="there is no bundle"):
        Store(tmp_path, [bundle])
    store.write(spec(), {"a": [1]}, seconds=1)
    store.pack([spec().key], bundle)
    bundle.write_bytes(bundle.read_bytes()[:-5])
    with pytest.raises(StateError, match="is damaged"):
        Store(tmp_path, [bundle])


# --- runs under other names -------------------------------------------------------------------------------------------


def forged(path: Path, **columns: Any) -> bytes:
    """A file with some of its columns replaced (dropped if None), and a digest that is right."""
    frame = pl.read_parquet(path)
    for name, values in columns.items():
        column = name.replace("run_", OWN)
        frame = frame.drop(column) if values is None else frame.with_columns(pl.Series(column, values))
    return _to_bytes(frame)


def test_a_run_under_the_key_of_another_is_not_believed(store: Store) -> None:
    store.write(spec(1), {"step": [1]}, seconds=1)
    path = store.root / f"{spec(2).key}.parquet"
    path.write_bytes((store.root / f"{spec(1).key}.parquet").read_bytes())
    with pytest.warns(UserWarning, match="another run than its name says .* counts as missing"):
        assert not store.has(spec(2).key)
    assert not path.exists()
    assert len(list(store.root.glob("*.damaged"))) == 1
    assert store.has(spec(1).key)
    assert store.write(spec(2), {"step": [2]}, seconds=1)
    assert_array_equal(store.read(spec(2).key).columns["step"], [2])


def test_a_run_that_was_known_is_looked_at_again(store: Store) -> None:
    store.write(spec(1), {"step": [1]}, seconds=1)
    store.write(spec(2), {"step": [2]}, seconds=1)
    assert store.has(spec(2).key)
    (store.root / f"{spec(2).key}.parquet").write_bytes((store.root / f"{spec(1).key}.parquet").read_bytes())
    with (
        pytest.warns(UserWarning, match="another run"),
        pytest.raises(MissingRunError),
    ):
        store.read(spec(2).key)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"run_key": [spec(2).key]}, "another run"),
        ({"run_spec": [spec(2).to_json()]}, "another run"),
        ({"run_spec": None}, "run.spec"),
        ({"run_key": None}, "run.key"),
        ({"run_seconds": None}, "run.seconds"),
        ({"run_seconds": ["long"]}, "run.seconds"),
        ({"run_made_with": [None]}, "run.made_with"),
        ({"step": [1]}, "column 'step' of type Int64"),
        ({"step": [[[1]]]}, "column 'step' of type List"),
    ],
    ids=str,
)
def test_forged_runs_are_not_believed(store: Store, tmp_path: Path, columns: dict[str, Any], message: str) -> None:
    """With a right digest: whoever can write a file can write that too."""
    store.write(spec(1), {"step": [1]}, seconds=1)
    path = store.root / f"{spec(1).key}.parquet"
    data = forged(path, **columns)
    bundle = tmp_path / "bundle.parquet"
    bundle.write_bytes(data)
    with pytest.raises(StateError, match=f"bundle.parquet .*{message}.*pack it again"):
        Store(tmp_path / "other", [bundle])
    path.write_bytes(data)
    with pytest.warns(UserWarning, match="counts as missing"):
        assert not store.has(spec(1).key)


@pytest.mark.parametrize(
    "columns",
    [
        {"step": [[1, None]]},
        {"more": [[1, 2, 3]]},
        {"step": None},
        {"run_made_with": ["[]"]},
        {"run_made_with": ["no JSON"]},
        {"run_made_with": ['{"numpy": 2}']},
        {"run_made_with": ["[" * 100_000]},
    ],
    ids=lambda columns: str(columns)[:40],
)
def test_forged_columns_are_refused(store: Store, columns: dict[str, Any]) -> None:
    store.write(spec(1), {"step": [1]}, seconds=1)
    path = store.root / f"{spec(1).key}.parquet"
    path.write_bytes(forged(path, **columns))
    with pytest.raises(StateError, match="run it again"):
        store.read(spec(1).key)


def test_a_right_digest_over_something_else(store: Store, tmp_path: Path) -> None:
    data = b"sha256:" + b"0" * 64 + b" and no parquet"
    data = data.replace(b"0" * 64, hashlib.sha256(data).hexdigest().encode())
    (tmp_path / "bundle").write_bytes(data)
    with pytest.raises(StateError, match="not a table"):
        Store(tmp_path / "other", [tmp_path / "bundle"])
    store.root.mkdir()
    (store.root / f"{spec().key}.parquet").write_bytes(data)
    with pytest.warns(UserWarning, match="not a table"):
        assert not store.has(spec().key)


def test_committed_bundles_hold_the_runs_they_name() -> None:
    for path in (Path(__file__).parents[2] / "results").glob("*.parquet"):
        store = Store("no folder", [path])
        for key in list(store.keys())[::200]:
            assert store.read(key).spec.key == key


def test_packing_does_not_replace_a_read_only_file(store: Store, tmp_path: Path) -> None:
    store.write(spec(), {"step": [1]}, seconds=1)
    path = tmp_path / "bundle"
    store.pack([spec().key], path)
    path.chmod(0o444)
    with pytest.raises(StateError, match="read-only"):
        store.pack([spec().key], path)
