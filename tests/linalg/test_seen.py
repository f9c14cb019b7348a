from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tests.kernels.test_sparse import NASTY_IDS
from tlstd.linalg.seen import SeenFeatures


@pytest.mark.parametrize("name", NASTY_IDS)
@pytest.mark.parametrize("step", [1, 7, 1000])
def test_rows_in_order_of_first_appearance(name: str, step: int) -> None:
    ids = NASTY_IDS[name]
    seen = SeenFeatures()
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
    seen, rows = SeenFeatures(), dict[int, int]()
    for _ in range(200):
        new = rng.integers(0, 2**63 - 1, rng.integers(0, 60)) >> rng.integers(0, 62)
        for key in new.tolist():
            rows.setdefault(key, len(rows))
        assert seen.count_with(new) == len(rows)
        assert len(seen) <= len(rows)
        seen.insert(new)
        assert len(seen) == len(rows)
        assert 2 * len(seen) <= seen.keys.size
    assert_array_equal(seen.ids, list(rows))
    wanted = rng.integers(0, 2**20, 500)
    assert_array_equal(seen.find(wanted), [rows.get(key, -1) for key in wanted.tolist()])


def test_empty() -> None:
    seen, none = SeenFeatures(), np.zeros(0, dtype=np.int64)
    seen.insert(none)
    assert len(seen) == seen.ids.size == seen.find(none).size == seen.count_with(none) == 0
    assert_array_equal(seen.find(np.array([0, 2**62])), [-1, -1])


def test_counting_and_finding_change_nothing() -> None:
    seen = SeenFeatures()
    seen.insert(np.array([3, 1]))
    before = [a.copy() for a in seen.arrays]
    assert seen.count_with(np.array([1, 2, 2, 3, 4])) == 4
    seen.find(np.array([1, 2]))
    for now, then in zip(seen.arrays, before, strict=True):
        assert_array_equal(now, then)


@pytest.mark.parametrize("n_new", [0, 1, 32, 33, 1000])
def test_reserve_makes_room_and_keeps_what_is_there(n_new: int) -> None:
    seen = SeenFeatures()
    seen.insert(np.arange(20) << 30)
    seen.reserve(n_new)
    assert seen.all_ids.size >= 20 + n_new
    assert seen.keys.size >= 2 * (20 + n_new)
    assert seen.keys.size == seen.table_rows.size
    assert seen.keys.size & (seen.keys.size - 1) == 0
    assert_array_equal(seen.find(np.arange(20) << 30), np.arange(20))


def test_count() -> None:
    """Repeats count each time: an upper bound, of which enough room can be made."""
    seen = SeenFeatures()
    seen.insert(np.array([5, 150]))
    csr = np.array([0, 100, 300]), np.arange(300), np.ones(300)
    for picked, count in (([], 0), ([0], 99), ([1], 199), ([0, 1], 298), ([1, 1], 398)):
        entries = sum((100, 200)[row] for row in picked)
        assert seen.count(csr, np.array(picked, dtype=np.int64)) == (entries, count)


def test_few_bytes_per_feature() -> None:
    seen = SeenFeatures()
    for start in range(0, 100_000, 5_000):
        seen.insert(np.arange(start, start + 5_000) * 7919)
    assert sum(a.nbytes for a in seen.arrays) < 80 * len(seen)


def test_repeated_features_take_no_room() -> None:
    seen = SeenFeatures()
    seen.insert(np.tile(np.array([5, 3, 9]), 100_000))
    assert_array_equal(seen.ids, [5, 3, 9])
    assert sum(array.nbytes for array in seen.arrays) < 5000
