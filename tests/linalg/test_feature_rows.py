from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tlstd.container import Saved
from tlstd.errors import CapacityError, StateError
from tlstd.linalg import feature_rows
from tlstd.linalg.feature_rows import FeatureRows
from tlstd.types import IntArray


def nbytes(rows: FeatureRows) -> int:
    return rows._ids.nbytes + rows._slots.nbytes + (0 if rows._row_of is None else rows._row_of.nbytes)


@pytest.mark.parametrize("n_features", [1, 50, 2**14, 2**14 + 1, 100_000, 2**31, 2**32, 2**32 + 1, 2**62])
@pytest.mark.parametrize("seed", range(3))
def test_against_a_dict(n_features: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, expected = FeatureRows(n_features), dict[int, int]()
    for size in (0, 1, 3, 200, 5_000, 20_000, 10):
        ids = rng.integers(0, n_features, size)
        if seed == 1:
            ids = np.append(ids, [0, n_features - 1])
        rows.insert(ids)
        for key in np.unique(ids).tolist():
            expected.setdefault(key, len(expected) + 1)
        assert len(rows) == len(expected)
        assert_array_equal(rows.ids, list(expected))
        asked = np.append(ids, rng.integers(0, n_features, 100))
        found, missing = rows.find(asked)
        wanted = [expected.get(key, 0) for key in asked.tolist()]
        assert found.dtype == np.uint32
        assert_array_equal(found, wanted)
        assert missing == wanted.count(0)


@pytest.mark.parametrize("stride", [1, 2, 64, 2**12, 2**20, 2**40, 7919, 2**31 - 1])
def test_regular_ids_are_found_quickly(stride: int) -> None:
    """Multiples of a number do not fill the hash table in one place."""
    rows = FeatureRows(2**62)
    ids = np.arange(20_000) * stride
    rows.insert(ids)
    assert rows._row_of is None
    slots = rows._slots.reshape(-1, 2)
    assert_array_equal(rows.find(ids)[0], np.arange(1, 20_001))
    taken = np.append(slots[:, 1] != 0, False)
    runs = np.diff(np.flatnonzero(~taken)) - 1
    assert runs.max() < 200


@pytest.mark.parametrize(("n_features", "bytes_per_feature"), [(2**31, 8 + 4 + 33), (2**62, 8 + 4 + 65)])
def test_memory_follows_the_features_seen(n_features: int, bytes_per_feature: int) -> None:
    rows = FeatureRows(n_features)
    for start in range(0, 100_000, 1_000):
        rows.insert(np.arange(start, start + 1_000) * 7919)
        assert nbytes(rows) < bytes_per_feature * len(rows) + 1_100


@pytest.mark.parametrize("n_features", [1, 100, 2**14])
def test_few_features_have_a_table(n_features: int) -> None:
    rows = FeatureRows(n_features)
    assert rows._row_of is not None
    assert rows._slots.size == 0
    assert nbytes(rows) == 4 * n_features + 256


def test_changes_to_a_table_where_that_is_not_larger() -> None:
    rng = np.random.default_rng(0)
    rows, forms = FeatureRows(100_000), set()
    for _ in range(100):
        rows.insert(rng.integers(0, 100_000, 500))
        forms.add(rows._row_of is None)
        assert nbytes(rows) <= 8 * 1.5 * len(rows) + 32 * len(rows) + 1_000
        assert_array_equal(rows.find(rows.ids)[0], np.arange(1, len(rows) + 1))
    assert forms == {True, False}


def test_repeats_take_no_room() -> None:
    rows = FeatureRows(2**40)
    for _ in range(3):
        rows.insert(np.tile(np.array([5, 3, 9]), 100_000))
    assert_array_equal(rows.ids, [3, 5, 9])
    assert nbytes(rows) < 3_000


def test_too_many_rows_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feature_rows, "_MAX_ROWS", 10)
    rows = FeatureRows(2**31)
    rows.insert(np.arange(10))
    with pytest.raises(CapacityError, match="11 features"):
        rows.insert(np.array([3, 99]))
    assert len(rows) == 10


class TestState:
    @pytest.mark.parametrize("n_features", [500, 30_000, 2**40])
    @pytest.mark.parametrize("n", [0, 1, 400])
    def test_keeps_rows(self, n_features: int, n: int) -> None:
        rng = np.random.default_rng(n)
        first, second = FeatureRows(n_features), FeatureRows(n_features)
        for part in np.array_split(rng.integers(0, n_features, n), 3):
            first.insert(part)
        second.restore(Saved({"ids": first.state()["ids"]}))
        assert_array_equal(second.ids, first.ids)
        asked = rng.integers(0, n_features, 300)
        for ids in (first.ids, asked):
            assert_array_equal(second.find(ids)[0], first.find(ids)[0])
        for rows in (first, second):
            rows.insert(asked)
        assert_array_equal(second.ids, first.ids)

    @pytest.mark.parametrize(("ids", "message"), [([1, 2, 1], "twice"), ([-1], "outside"), ([500], "outside")])
    def test_refused(self, ids: list[int], message: str) -> None:
        with pytest.raises(StateError, match=message):
            FeatureRows(500).restore(Saved({"ids": as_ids(ids)}))


def as_ids(ids: list[int]) -> IntArray:
    return np.array(ids, dtype=np.int64)
