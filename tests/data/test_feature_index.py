from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tests.data.test_sparse import NASTY_IDS
from tlstd.core.arrays import IntArray
from tlstd.core.file_format import Saved
from tlstd.data import feature_index as seen_module
from tlstd.data.feature_index import FeatureIndex
from tlstd.errors import CapacityError, StateError


@pytest.mark.parametrize("name", NASTY_IDS)
@pytest.mark.parametrize("step", [1, 7, 1000])
def test_rows_in_order_of_first_appearance(name: str, step: int) -> None:
    ids = NASTY_IDS[name]
    seen = FeatureIndex(2**63)
    for start in range(0, ids.size, step):
        seen.insert(ids[: start + step][::-1])  # what is known comes again
    expected: dict[int, int] = {}
    for start in range(0, ids.size, step):
        for key in ids[: start + step][::-1].tolist():
            expected.setdefault(key, len(expected))
    assert len(seen) == ids.size
    assert_array_equal(seen.ids, list(expected))
    assert_array_equal(seen.find(ids), [expected[key] for key in ids.tolist()])


def test_growth_against_a_dictionary() -> None:
    rng = np.random.default_rng(0)
    seen, rows = FeatureIndex(2**63), dict[int, int]()
    for _ in range(200):
        new = rng.integers(0, 2**63 - 1, rng.integers(0, 60)) >> rng.integers(0, 62)
        for key in new.tolist():
            rows.setdefault(key, len(rows))
        assert seen.count_with(new) == len(rows)
        assert len(seen) <= len(rows)
        seen.insert(new)
        assert len(seen) == len(rows)
        assert 4 * len(seen) <= seen._slots.size
    assert_array_equal(seen.ids, list(rows))
    wanted = rng.integers(0, 2**20, 500)
    assert_array_equal(seen.find(wanted), [rows.get(key, -1) for key in wanted.tolist()])


def test_empty() -> None:
    seen, none = FeatureIndex(2**63), np.zeros(0, dtype=np.int64)
    seen.insert(none)
    assert len(seen) == seen.ids.size == seen.find(none).size == seen.count_with(none) == 0
    assert_array_equal(seen.find(np.array([0, 2**62])), [-1, -1])


def test_counting_and_finding_change_nothing() -> None:
    seen = FeatureIndex(2**63)
    seen.insert(np.array([3, 1]))
    before = [a.copy() for a in seen.arrays]
    assert seen.count_with(np.array([1, 2, 2, 3, 4])) == 4
    seen.find(np.array([1, 2]))
    for now, then in zip(seen.arrays, before, strict=True):
        assert_array_equal(now, then)


@pytest.mark.parametrize("n_new", [0, 1, 32, 33, 1000])
def test_reserve_makes_room_and_keeps_what_is_there(n_new: int) -> None:
    seen = FeatureIndex(2**63)
    seen.insert(np.arange(20) << 30)
    seen.reserve(n_new)
    assert seen.all_ids.size >= 20 + n_new
    assert seen._slots.size >= 4 * (20 + n_new)
    assert seen._slots.size & (seen._slots.size - 1) == 0
    assert_array_equal(seen.find(np.arange(20) << 30), np.arange(20))


def nbytes(rows: FeatureIndex) -> int:
    return rows.all_ids.nbytes + rows._slots.nbytes + rows._table.nbytes


@pytest.mark.parametrize("n_features", [1, 50, 2**14, 2**14 + 1, 100_000, 2**31, 2**32, 2**32 + 1, 2**62])
@pytest.mark.parametrize("seed", range(3))
def test_against_a_dict(n_features: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, expected = FeatureIndex(n_features), dict[int, int]()
    for size in (0, 1, 3, 200, 5_000, 20_000, 10):
        ids = rng.integers(0, n_features, size)
        if seed == 1:
            ids = np.append(ids, [0, n_features - 1])
        rows.insert(ids)
        for key in ids.tolist():
            expected.setdefault(key, len(expected) + 1)
        assert len(rows) == len(expected)
        assert_array_equal(rows.ids, list(expected))
        asked = np.append(ids, rng.integers(0, n_features, 100))
        found, missing = rows.places(asked)
        wanted = [expected.get(key, 0) for key in asked.tolist()]
        assert found.dtype == np.uint32
        assert_array_equal(found, wanted)
        assert missing == wanted.count(0)
        assert_array_equal(rows.find(asked), np.array(wanted) - 1)


@pytest.mark.parametrize("stride", [1, 2, 64, 2**12, 2**20, 2**40, 7919, 2**31 - 1])
def test_regular_ids_are_found_quickly(stride: int) -> None:
    """Multiples of a number do not fill the hash table in one place."""
    rows = FeatureIndex(2**62)
    ids = np.arange(20_000) * stride
    rows.insert(ids)
    assert rows._table.size == 0
    slots = rows._slots.reshape(-1, 2)
    assert_array_equal(rows.find(ids), np.arange(20_000))
    taken = np.append(slots[:, 1] != 0, False)
    runs = np.diff(np.flatnonzero(~taken)) - 1
    assert runs.max() < 200


@pytest.mark.parametrize(("n_features", "bytes_per_feature"), [(2**31, 8 + 4 + 33), (2**62, 8 + 4 + 65)])
def test_memory_follows_the_features_seen(n_features: int, bytes_per_feature: int) -> None:
    rows = FeatureIndex(n_features)
    for start in range(0, 100_000, 1_000):
        rows.insert(np.arange(start, start + 1_000) * 7919)
        assert nbytes(rows) < bytes_per_feature * len(rows) + 1_100


@pytest.mark.parametrize("n_features", [1, 100, 2**14])
def test_few_features_have_a_table(n_features: int) -> None:
    rows = FeatureIndex(n_features)
    assert rows._table.size == n_features
    assert rows._slots.size == 0
    assert nbytes(rows) == 4 * n_features + 256


def test_changes_to_a_table_where_that_is_not_larger() -> None:
    rng = np.random.default_rng(0)
    rows, forms = FeatureIndex(100_000), set()
    for _ in range(100):
        rows.insert(rng.integers(0, 100_000, 500))
        forms.add(rows._table.size == 0)
        assert nbytes(rows) <= 8 * 1.5 * len(rows) + 32 * len(rows) + 1_000
        assert_array_equal(rows.find(rows.ids), np.arange(len(rows)))
    assert forms == {True, False}


def test_repeats_take_no_room() -> None:
    rows = FeatureIndex(2**40)
    for _ in range(3):
        rows.insert(np.tile(np.array([5, 3, 9]), 100_000))
    assert_array_equal(rows.ids, [5, 3, 9])
    assert nbytes(rows) < 3_000


def test_too_many_rows_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen_module, "_MAX_ROWS", 40)
    rows = FeatureIndex(2**31)
    rows.insert(np.arange(40))
    with pytest.raises(CapacityError, match="41 features"):
        rows.insert(np.array([3, 99]))
    assert len(rows) == 40


class TestState:
    @pytest.mark.parametrize("n_features", [500, 30_000, 2**40])
    @pytest.mark.parametrize("n", [0, 1, 400])
    def test_keeps_rows(self, n_features: int, n: int) -> None:
        rng = np.random.default_rng(n)
        first, second = FeatureIndex(n_features), FeatureIndex(n_features)
        for part in np.array_split(rng.integers(0, n_features, n), 3):
            first.insert(part)
        second.restore(Saved({"ids": first.state()["ids"]}))
        assert_array_equal(second.ids, first.ids)
        asked = rng.integers(0, n_features, 300)
        for ids in (first.ids, asked):
            assert_array_equal(second.find(ids), first.find(ids))
        for rows in (first, second):
            rows.insert(asked)
        assert_array_equal(second.ids, first.ids)

    @pytest.mark.parametrize(("ids", "message"), [([1, 2, 1], "twice"), ([-1], "outside"), ([500], "outside")])
    def test_refused(self, ids: list[int], message: str) -> None:
        with pytest.raises(StateError, match=message):
            FeatureIndex(500).restore(Saved({"ids": as_ids(ids)}))


def as_ids(ids: list[int]) -> IntArray:
    return np.array(ids, dtype=np.int64)
