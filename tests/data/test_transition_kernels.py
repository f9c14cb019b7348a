from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.data.kernels import transitions as kernels


def matrix(seed: int, n: int = 12, d: int = 9) -> tuple[IntArray, IntArray, FloatArray]:
    X = sp.random_array((n, d), density=0.4, format="csr", rng=np.random.default_rng(seed))
    return X.indptr.astype(np.int64), X.indices.astype(np.int64), X.data.copy()


def sound(csr: Any, rows: Any, n_features: int = 9) -> bool:
    rows = np.array(rows, dtype=np.int64)
    return bool(kernels.rows_are_sound(csr, rows, n_features, np.empty(rows.size)))


class TestRows:
    @pytest.mark.parametrize("seed", range(5))
    def test_lengths(self, seed: int) -> None:
        csr = matrix(seed)
        rows = np.random.default_rng(seed).integers(0, 12, 30)
        lengths = np.empty(30)
        assert kernels.rows_are_sound(csr, rows, 9, lengths)
        dense = sp.csr_array((csr[2], csr[1], csr[0]), shape=(12, 9)).toarray()
        assert_allclose(lengths, np.linalg.norm(dense[rows], axis=1), rtol=1e-14)
        assert sound(csr, [])

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, np.nextafter(1e100, np.inf), -1e101, 1e300])
    def test_values(self, value: float) -> None:
        csr = matrix(0)
        row = int(np.flatnonzero(np.diff(csr[0]) > 1)[0])
        for e in (csr[0][row], csr[0][row + 1] - 1):
            before = csr[2][e]
            csr[2][e] = value
            assert not sound(csr, [row])
            assert sound(csr, [i for i in range(12) if i != row])  # what is not used does not matter
            csr[2][e] = before
            assert sound(csr, range(12))

    @pytest.mark.parametrize("index", [-1, -(2**62), 9, 2**62])
    def test_indices_out_of_range(self, index: int) -> None:
        csr = matrix(1)
        for e in range(csr[1].size):
            changed = csr[0], csr[1].copy(), csr[2]
            changed[1][e] = index
            row = int(np.searchsorted(csr[0], e, side="right") - 1)
            assert not sound(changed, [row])
            assert sound(changed, [i for i in range(12) if i != row])

    def test_indices_that_do_not_rise(self) -> None:
        indptr = np.array([0, 3, 3, 5])
        for indices, good in (([0, 1, 2, 0, 8], True), ([0, 0, 2, 0, 8], False), ([0, 1, 2, 8, 0], False)):
            assert sound((indptr, np.array(indices), np.ones(5)), [0, 1, 2]) == good

    @pytest.mark.parametrize("broken", [[0, -1, 5], [0, 6, 5], [-2, 3, 5], [0, 3, 2], [0, 3, 6], [0, 2**62, 5]])
    def test_broken_indptr(self, broken: list[int]) -> None:
        assert not sound((np.array(broken), np.arange(5), np.ones(5)), [0, 1])

    def test_fewer_values_than_indices(self) -> None:
        assert not sound((np.array([0, 3]), np.arange(3), np.ones(2)), [0])
        assert not sound((np.array([0, 3]), np.arange(2), np.ones(3)), [0])

    @pytest.mark.parametrize("row", [-1, 12, -(2**62), 2**62])
    def test_rows_out_of_range(self, row: int) -> None:
        assert not sound(matrix(2), [0, row, 1])


@pytest.mark.parametrize("name", ["rewards", "discounts", "trace_discounts", "rhos"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -1e101, 1e101, -0.5, 1.5, 0.0, 1.0, 1e100])
def test_columns(name: str, value: float) -> None:
    columns = {"rewards": np.zeros((9, 2)), "discounts": np.ones(9), "trace_discounts": np.ones(9), "rhos": np.ones(9)}
    ranges = {"rewards": (-1e100, 1e100), "rhos": (0.0, 1e100)}
    low, high = ranges.get(name, (0.0, 1.0))
    for t in (0, 4, 8):
        changed = {key: column.copy() for key, column in columns.items()}
        changed[name].reshape(9, -1)[t, -1] = value
        assert bool(kernels.columns_are_sound(*changed.values())) == (low <= value <= high)


def test_not_repeated() -> None:
    rng = np.random.default_rng(0)
    for n in (0, 1, 2, 50):
        rows, next_rows = rng.integers(0, 3, n), rng.integers(0, 3, n)
        expected = [b for t, b in enumerate(next_rows) if t == n - 1 or rows[t + 1] != b]
        assert_array_equal(kernels.not_repeated(rows, next_rows), expected)


@pytest.mark.parametrize("one_store", [True, False])
@pytest.mark.parametrize("broken", [None, "column", "x", "x_next", "end"])
def test_whole_transitions(broken: str | None, one_store: bool) -> None:
    x = matrix(0)
    x_next = x if one_store else matrix(1)
    rows, next_rows, lengths = np.arange(8), np.arange(1, 9), np.empty(8)
    columns = np.zeros((8, 1)), np.ones(8), np.ones(8), np.ones(8)
    if broken == "column":
        columns[0][3] = np.nan
    elif broken is not None:
        of, row = {"x": (x, 3), "x_next": (x_next, 4), "end": (x_next, 8)}[broken]
        of[2][of[0][row]] = np.nan
    sound = kernels.are_sound(x, rows, x_next, next_rows, one_store, columns, 9, lengths)
    assert bool(sound) == (broken is None)
    if sound:
        assert_allclose(lengths, [np.linalg.norm(x[2][x[0][i] : x[0][i + 1]]) for i in rows], rtol=1e-14)


@pytest.mark.parametrize("limit", [0, 1, 7, 30, 10**6])
def test_steps_within(limit: int) -> None:
    rng = np.random.default_rng(limit)
    x, x_next = matrix(3)[0], matrix(4)[0]
    rows, next_rows = rng.integers(0, 12, (2, 40))
    lengths = np.diff(x)[rows] + np.diff(x_next)[next_rows]
    start = 0
    while start < 40:
        stop = kernels.steps_within(x, rows, x_next, next_rows, start, limit)
        assert start < stop <= 40
        assert lengths[start:stop].sum() <= limit or stop == start + 1
        assert stop == 40 or lengths[start : stop + 1].sum() > limit
        start = stop


def test_copies_and_counts() -> None:
    csr = matrix(5)
    picked = np.array([3, 3, 0, 11, 7])
    X = sp.csr_array((csr[2], csr[1], csr[0]), shape=(12, 9))
    assert kernels.entries(csr[0], picked) == X[picked].nnz
    assert kernels.entries(csr[0], picked[:0]) == 0
    indptr, ids, vals = np.zeros(11, dtype=np.int64), np.zeros(99, dtype=np.int64), np.zeros(99)
    kernels.copy_picked(*csr, picked, indptr, ids, vals, 0)
    kernels.copy_picked(*csr, picked[::-1].copy(), indptr, ids, vals, 5)
    copied = sp.csr_array((vals[: indptr[-1]], ids[: indptr[-1]], indptr), shape=(10, 9))
    assert_array_equal(copied.toarray(), X[np.append(picked, picked[::-1])].toarray())


def test_ids_without_row() -> None:
    indptr, ids = np.array([0, 2, 2, 5]), np.array([4, 8, 1, 4, 6])
    rows, out = np.array([0, 3, 0, 0, 2], dtype=np.uint32), np.zeros(3, dtype=np.int64)
    for wanted, expected in (([1, 1, 1], [4, 1, 4]), ([0, 1, 0], []), ([0, 0, 1], [1, 4])):
        count = kernels.ids_without_row(indptr, ids, rows, np.array(wanted, dtype=np.bool_), out)
        assert_array_equal(out[:count], expected)


def test_follow_lengths() -> None:
    lengths, decays, rhos = np.array([1.0, 2.0, 3.0]), np.array([0.5, 0.0, 1.0]), np.array([1.0, 2.0, 0.5])
    assert kernels.follow_lengths(lengths, decays, rhos, 4.0, 1e9) == (-1, 3.5, 4.0)  # 3, 4, 3.5
    assert kernels.follow_lengths(lengths, decays, rhos, 4.0, 3.9) == (1, 4.0, 4.0)
    assert kernels.follow_lengths(lengths, decays, np.array([1.0, np.nan, 1.0]), 4.0, 9.0)[0] == 1


@pytest.mark.parametrize("limit", [np.inf, 5.0])
def test_bounds_of_the_trace(limit: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 4)) * (rng.random((20, 4)) < 0.5)
    rows, decays, rhos = rng.integers(0, 20, 50), rng.random(50), rng.uniform(0.0, 2.0, 50)
    bound, expected, z = 0.7, -1, np.array([0.7, 0.0, 0.0, 0.0])
    for t in range(50):
        bound = rhos[t] * (decays[t] * bound + np.linalg.norm(X[rows[t]]))
        z = rhos[t] * (decays[t] * z + X[rows[t]])
        assert np.linalg.norm(z) <= bound * (1 + 1e-12)
        if bound > limit:
            expected = t
            break
    assert (expected == -1) == (limit == np.inf)
    csr, sparse, dense = sp.csr_array(X), np.empty(50), np.empty(50)
    kernels.sparse_lengths(csr.indptr.astype(np.int64), csr.data, rows, sparse)
    kernels.dense_lengths(X, rows, dense)
    assert_array_equal(sparse, dense)
    step, value, _ = kernels.follow_lengths(dense, decays, rhos, 0.7, limit)
    assert step == expected
    assert abs(value - bound) <= 1e-13 * bound


def test_bound_of_nan_is_too_large() -> None:
    one = np.ones(1)
    assert kernels.follow_lengths(np.array([np.nan]), one, one, 0.0, 1e100)[0] == 0
