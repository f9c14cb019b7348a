from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tlstd.errors import CapacityError
from tlstd.kernels import ilstd as kernels
from tlstd.kernels.ilstd import PAGE
from tlstd.linalg.paged_columns import PagedColumns
from tlstd.types import FloatArray, IntArray

N = 5 * PAGE
NONE = (np.zeros(0, dtype=np.int64), np.zeros(0))


def sparse(x: FloatArray) -> tuple[IntArray, FloatArray]:
    rows = np.flatnonzero(x)
    return rows, x[rows]


class Trace:
    """The arrays of a trace over N rows."""

    def __init__(self) -> None:
        self.z, self.tops = np.zeros((5, PAGE)), np.zeros((5, PAGE))
        self.blocks, self.listed = np.full(5, -1), np.zeros(5, dtype=np.bool_)
        self.count = 0

    def advance(self, rows: IntArray, vals: FloatArray, decay: float, rho: float = 1.0) -> None:
        self.count = kernels.advance_trace(
            self.z, self.tops, self.blocks, self.count, self.listed, rows, vals, decay, rho
        )


class TestAdvanceTrace:
    @pytest.mark.parametrize("seed", range(5))
    def test_against_the_dense_formula(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        trace, expected = Trace(), np.zeros(N)
        for _ in range(80):
            x = rng.choice([1.0, -1.0, 0.5], N) * (rng.random(N) < 0.02)
            decay, rho = rng.choice([0.0, 0.5, 1.0, 1e-200]), rng.choice([0.0, 0.7, 1.0, 2.0], p=[0.1, 0.2, 0.5, 0.2])
            trace.advance(*sparse(x), decay, rho)
            expected = rho * (decay * expected + x)
            assert_allclose(trace.z.ravel(), expected, rtol=1e-13, atol=1e-13 * max(1.0, np.abs(expected).max()))
            blocks = trace.blocks[: trace.count]
            assert np.unique(blocks).size == trace.count
            assert_array_equal(np.sort(blocks), np.flatnonzero(trace.listed))
            assert set(np.flatnonzero(trace.z.any(axis=1))) <= set(blocks.tolist())
            assert (trace.z[~trace.listed] == 0.0).all()
            assert (trace.tops.ravel() >= np.abs(trace.z.ravel())).all()

    @pytest.mark.parametrize("scale", [1.0, 1e-30, 1e30])
    def test_an_entry_leaves_at_1e_16_of_its_own_largest_value(self, scale: float) -> None:
        """Whatever the scale of its feature: 15 tenths are kept, the seventeenth is not."""
        trace = Trace()
        trace.advance(np.array([3, 4]), np.array([scale, 1.0]), 0.0)
        for _ in range(15):
            trace.advance(*NONE, 0.1)
        assert_allclose(trace.z[0, 3:5], [1e-15 * scale, 1e-15], rtol=1e-13)
        for _ in range(2):
            trace.advance(*NONE, 0.1)
        assert trace.count == 0
        assert not trace.z.any()
        assert not trace.tops.any()


@pytest.mark.parametrize("discount", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("seed", range(5))
def test_difference(seed: int, discount: float) -> None:
    rng = np.random.default_rng(seed)
    for density in (0.0, 0.3, 1.0):
        x, x_next = (rng.choice([1.0, 2.0], 7) * (rng.random(7) < density) for _ in range(2))
        scratch, rows, vals = np.zeros(7, dtype=np.int64), np.full(14, -1), np.full(14, np.nan)
        count = kernels.difference(*sparse(x), *sparse(x_next), discount, scratch, rows, vals)
        assert_array_equal(np.sort(rows[:count]), np.flatnonzero(x - discount * x_next))
        d = np.zeros(7)
        d[rows[:count]] = vals[:count]
        assert_allclose(d, x - discount * x_next, rtol=1e-15)
        assert (scratch == 0).all()


class TestReserve:
    @staticmethod
    def data(seed: int) -> tuple[tuple[IntArray, IntArray, FloatArray], ...]:
        rng = np.random.default_rng(seed)
        sides = []
        for _ in range(2):
            rows = np.concatenate([np.sort(rng.permutation(N)[:2]) for _ in range(30)])
            sides.append((np.arange(0, 61, 2), rows, rng.choice([0.5, 1.0], 60)))
        return tuple(sides)

    @pytest.mark.parametrize("seed", range(4))
    def test_numbers_exactly_the_pages_of_the_sum(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        x, x_next = self.data(seed)
        discounts, decays, rhos = rng.choice([0.0, 0.5, 1.0], 30), rng.choice([0.0, 0.4], 30), np.ones(30)
        trace = Trace()
        trace.advance(np.array([1, PAGE]), np.array([1.0, 2.0]), 0.0)
        count = np.array([trace.count])
        arrays = (trace.z, trace.tops, trace.blocks, count, trace.listed)
        before = [a.copy() for a in arrays]
        columns = PagedColumns(1 << 20)
        columns.grow(N)
        work = (np.zeros(N, dtype=np.int64), np.zeros(4, dtype=np.int64), np.zeros(4))
        columns.reserve(N, x, x_next, discounts, decays, rhos, arrays, work)

        touched, z = np.zeros((N, 5), dtype=np.bool_), trace.z.ravel().copy()
        for t in range(30):
            here, there = np.zeros(N), np.zeros(N)
            here[x[1][2 * t : 2 * t + 2]] = x[2][2 * t : 2 * t + 2]
            there[x_next[1][2 * t : 2 * t + 2]] = x_next[2][2 * t : 2 * t + 2]
            z = decays[t] * z + here
            touched |= np.outer(here - discounts[t] * there != 0.0, z.reshape(5, PAGE).any(axis=1))
        assert_array_equal(columns.table[:, :5] != 0, touched)
        numbers = columns.table[columns.table != 0]
        assert_array_equal(np.sort(numbers), np.arange(1, columns.n_pages))
        assert len(columns.pages) >= columns.n_pages
        assert_array_equal(trace.listed, before[4])
        assert_array_equal(np.sort(trace.blocks[: trace.count]), np.sort(before[2][: trace.count]))
        for array, old in zip((trace.z, trace.tops, count), (before[0], before[1], before[3]), strict=True):
            assert_array_equal(array, old)

    def test_too_many_pages_leave_the_table_as_it_was(self) -> None:
        x, x_next = self.data(0)
        discounts, decays, rhos = np.full(30, 0.5), np.full(30, 0.4), np.ones(30)
        work = (np.zeros(N, dtype=np.int64), np.zeros(4, dtype=np.int64), np.zeros(4))
        trace = Trace()
        arrays = (trace.z, trace.tops, trace.blocks, np.zeros(1, dtype=np.int64), trace.listed)
        table_bytes = 4 * N * 5
        free = PagedColumns(1 << 20)
        free.grow(N)
        free.reserve(N, x, x_next, discounts, decays, rhos, arrays, work)
        exact = table_bytes + 8 * PAGE * (free.n_pages - 1)
        for limit, fits in ((exact, True), (exact - 1, False), (table_bytes, False)):
            columns = PagedColumns(limit)
            columns.check(N)
            columns.grow(N)
            if fits:
                columns.reserve(N, x, x_next, discounts, decays, rhos, arrays, work)
                assert columns.n_pages == free.n_pages
                continue
            with pytest.raises(CapacityError, match="memory_limit"):
                columns.reserve(N, x, x_next, discounts, decays, rhos, arrays, work)
            assert columns.n_pages == 1
            assert not columns.table.any()
            assert not trace.z.any()
        with pytest.raises(CapacityError, match=f"{N} distinct features"):
            PagedColumns(table_bytes - 1).check(N)


class TestLargestEntry:
    @staticmethod
    def find(mu: FloatArray, ids: IntArray) -> int:
        by_block = mu.reshape(-1, PAGE)
        with np.errstate(invalid="ignore"):
            largest = np.fmax.reduce(np.abs(by_block), axis=1)
        return int(kernels.largest_entry(by_block, np.nan_to_num(largest, nan=0.0, posinf=np.inf), ids, 5))

    def test_ties_go_to_the_lowest_id(self) -> None:
        mu, ids = np.zeros(N), np.random.default_rng(0).permutation(N)
        mu[[3, 10, PAGE + 1, 2 * PAGE]] = 2.0, -2.0, 2.0, 1.0
        rows = np.array([3, 10, PAGE + 1])
        assert self.find(mu, ids) == rows[ids[rows].argmin()]

    def test_zero_and_not_a_number_are_not_found(self) -> None:
        mu, ids = np.zeros(N), np.arange(N)
        assert self.find(mu, ids) == -1
        mu[7] = np.nan
        assert self.find(mu, ids) == -1
        mu[[8, 70]] = 1.0, -np.inf
        assert self.find(mu, ids) == 70


@pytest.mark.parametrize("seed", range(4))
def test_descend(seed: int) -> None:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((N, N)) * np.repeat(rng.random((5, N)) < 0.4, PAGE, axis=0)
    columns = PagedColumns(1 << 20)
    columns.grow(N)
    pages = [np.zeros(PAGE)]
    for j, b in np.argwhere(A.T.reshape(N, 5, PAGE).any(axis=2)):
        columns.table[j, b] = len(pages)
        pages.append(A[b * PAGE : (b + 1) * PAGE, j])
    columns.pages = np.array(pages)
    assert_array_equal(columns.toarray(N), A)
    w, mu = rng.standard_normal(N), rng.standard_normal(N)
    expected_w, expected_mu = w.copy(), mu.copy()
    for _ in range(20):
        j = np.abs(expected_mu).argmax()
        step = 0.1 * expected_mu[j]
        expected_w[j] += step
        expected_mu -= step * A[:, j]
    by_block = mu.reshape(5, PAGE)
    largest = np.abs(by_block).max(axis=1)
    kernels.descend(w, by_block, largest, np.arange(N), 5, columns.pages, columns.table, 0.1, 20)
    assert_allclose(w, expected_w, rtol=1e-12, atol=1e-14)
    assert_allclose(mu, expected_mu, rtol=1e-11, atol=1e-13)
    assert_array_equal(largest, np.abs(by_block).max(axis=1))
