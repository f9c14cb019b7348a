from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.errors import CapacityError
from tlstd.zoo.kernels import ilstd as kernels
from tlstd.zoo.kernels.ilstd import PAGE
from tlstd.zoo.paged_columns import PagedColumns
from tlstd.zoo.step_history import StepHistory

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
    def test_marks_exactly_the_pages_of_the_sum(self, seed: int) -> None:
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
        assert columns.n_reserved == touched.sum()
        assert (columns.table <= 0).all()
        assert len(columns.pages) == 1
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
        exact = table_bytes + 8 * PAGE * free.n_reserved
        for limit, fits in ((exact, True), (exact - 1, False), (table_bytes, False)):
            columns = PagedColumns(limit)
            columns.check(N)
            columns.grow(N)
            if fits:
                columns.reserve(N, x, x_next, discounts, decays, rhos, arrays, work)
                assert columns.n_reserved == free.n_reserved
                continue
            with pytest.raises(CapacityError, match="memory_limit"):
                columns.reserve(N, x, x_next, discounts, decays, rhos, arrays, work)
            assert columns.n_reserved == 0
            assert not columns.table.any()
            assert not trace.z.any()
        with pytest.raises(CapacityError, match=f"{N} distinct features"):
            PagedColumns(table_bytes - 1).check(N)

    def test_a_refusal_keeps_what_was_reserved_before(self) -> None:
        x, x_next = self.data(0)
        discounts, decays, rhos = np.full(30, 0.5), np.full(30, 0.4), np.ones(30)
        work = (np.zeros(N, dtype=np.int64), np.zeros(4, dtype=np.int64), np.zeros(4))
        trace = Trace()
        arrays = (trace.z, trace.tops, trace.blocks, np.zeros(1, dtype=np.int64), trace.listed)
        columns = PagedColumns(4 * N * 5 + 8 * PAGE * 40)
        columns.grow(N)
        columns.reserve(N, x, x_next, discounts[:2], decays[:2], rhos[:2], arrays, work)
        before, n_reserved = columns.table != 0, columns.n_reserved
        assert n_reserved > 0
        columns._mark = -(np.iinfo(np.int32).max - 1)  # marks start again
        for _ in range(3):
            with pytest.raises(CapacityError):
                columns.reserve(N, x, x_next, discounts, decays, rhos, arrays, work)
            assert_array_equal(columns.table != 0, before)
            assert columns.n_reserved == n_reserved


def scratch(n_blocks: int) -> tuple[FloatArray, np.ndarray, IntArray]:
    return np.zeros((n_blocks, PAGE)), np.zeros(n_blocks, dtype=np.bool_), np.zeros(n_blocks, dtype=np.int64)


class TestCatchUp:
    """Columns that are added to late, in any order, against Σ d zᵀ."""

    @pytest.mark.parametrize("restart", [None, 7, 40])
    @pytest.mark.parametrize("seed", range(8))
    def test_against_the_sum(self, seed: int, restart: int | None) -> None:
        rng = np.random.default_rng(seed)
        history, columns = StepHistory(), PagedColumns(1 << 24)
        history.grow(N)
        columns.grow(N)
        trace, z, A, gather = Trace(), np.zeros(N), np.zeros((N, N)), scratch(5)
        for t in range(60):
            if t == restart:
                self.catch_up(range(N), history, columns, gather)
                kernels.begin_history(history.arrays, trace.z, trace.blocks, trace.count)
                assert history.sizes.tolist() == [1, 0]
            x = rng.choice([1.0, -1.0, 0.5], N) * (rng.random(N) < 0.03)
            d = rng.standard_normal(N) * (rng.random(N) < 0.03)
            decay = rng.choice([0.0, 0.5, 1.0, 1e-9, 1e-200], p=[0.05, 0.5, 0.35, 0.05, 0.05])
            rho = rng.choice([0.0, 0.7, 1.0, 2.0], p=[0.05, 0.2, 0.55, 0.2])
            rows, vals = sparse(x)
            trace.advance(rows, vals, decay, rho)
            z = rho * (decay * z + x)
            A += np.outer(z, d)
            history.make_room(rows.size + N, N)
            kernels.note_step(history.arrays, rows, vals, decay, rho)
            for j in np.flatnonzero(d):
                kernels.note_entry(history.arrays, j, d[j])
            self.catch_up(rng.permutation(N)[:2], history, columns, gather)
        self.catch_up(rng.permutation(N), history, columns, gather)
        assert (history.latest == -1).all()
        assert (history.columns[: history.sizes[1]] == -1).all()
        assert not gather[0].any()
        assert not gather[1].any()
        assert_allclose(columns.toarray(N), A, rtol=1e-12, atol=1e-13 * np.abs(A).max())

    @staticmethod
    def catch_up(which: object, history: StepHistory, columns: PagedColumns, gather: tuple[object, ...]) -> None:
        for j in which:  # type: ignore[attr-defined]
            columns.make_room(N, 1)
            kernels.catch_up(j, history.arrays, columns.arrays, gather)

    def test_steps_beyond_the_cut_are_not_visited(self) -> None:
        """A decay of 1e-17, however far back x was, and a decay of 0 across which nothing is seen."""
        for decay in (0.0, 1e-17):
            history, columns = StepHistory(), PagedColumns(1 << 24)
            history.grow(N)
            columns.grow(N)
            columns.make_room(N, 1)
            history.make_room(10, 1)
            kernels.note_step(history.arrays, np.array([3]), np.array([1.0]), 0.5, 1.0)
            history.make_room(10, 1)
            kernels.note_step(history.arrays, np.array([40]), np.array([2.0]), decay, 1.0)
            kernels.note_entry(history.arrays, 9, 3.0)
            kernels.catch_up(9, history.arrays, columns.arrays, scratch(5))
            expected = np.zeros((N, N))
            expected[40, 9] = 6.0
            assert_array_equal(columns.toarray(N), expected)


class TestLargestEntry:
    @staticmethod
    def find(mu: FloatArray, ids: IntArray) -> int:
        by_block = mu.reshape(-1, PAGE)
        with np.errstate(invalid="ignore"):
            largest = np.fmax.reduce(np.abs(by_block), axis=1)
        largest = np.nan_to_num(largest, nan=0.0, posinf=np.inf)
        return int(kernels.largest_entry(by_block, largest, ids, 5, largest.max()))

    def test_ties_go_to_the_lowest_id(self) -> None:
        mu, ids = np.zeros(N), np.random.default_rng(0).permutation(N)
        mu[[3, 10, PAGE + 1, 2 * PAGE]] = 2.0, -2.0, 2.0, 1.0
        rows = np.array([3, 10, PAGE + 1])
        assert self.find(mu, ids) == rows[ids[rows].argmin()]

    def test_not_a_number_is_not_found(self) -> None:
        mu, ids = np.zeros(N), np.arange(N)
        mu[[7, 8, 70]] = np.nan, 1.0, -np.inf
        assert self.find(mu, ids) == 70


def plain_descent(A: FloatArray, w: FloatArray, mu: FloatArray, alpha: float, m: int) -> tuple[FloatArray, FloatArray]:
    w, mu = w.copy(), mu.copy()
    with np.errstate(all="ignore"):
        for _ in range(m):
            j = np.abs(np.nan_to_num(mu, nan=0.0, posinf=np.inf, neginf=-np.inf)).argmax()
            step = alpha * mu[j]
            w[j] += step
            stored = np.repeat(A[:, j].reshape(-1, PAGE).any(axis=1), PAGE)
            mu[stored] -= step * A[stored, j]
    return w, mu


class TestDescend:
    @staticmethod
    def run(A: FloatArray, w: FloatArray, mu: FloatArray, alpha: float, m: int, n_moves: int) -> None:
        """In place, and every entry bit by bit as if all of mu were changed at once."""
        columns, history = PagedColumns(1 << 24), StepHistory()
        columns.grow(N)
        history.grow(N)
        pages = [np.zeros(PAGE)]
        for j, b in np.argwhere(A.T.reshape(N, 5, PAGE).any(axis=2)):
            columns.table[j, b] = len(pages)
            pages.append(A[b * PAGE : (b + 1) * PAGE, j])
        columns.pages, columns.peaks = np.array(pages), np.full(len(pages), -1.0)
        assert_array_equal(columns.toarray(N), A)
        expected_w, expected_mu = plain_descent(A, w, mu, alpha, m)
        by_block = mu.reshape(5, PAGE)
        largest = np.nan_to_num(np.fmax.reduce(np.abs(by_block), axis=1), nan=0.0, posinf=np.inf)
        residual = (by_block, largest, np.zeros(5, dtype=np.int64))
        moves, moved = (np.zeros(n_moves, dtype=np.int64), np.zeros(n_moves)), np.full(N, -1)
        kernels.descend(
            w, residual, np.arange(N), 5, columns.arrays, history.arrays, scratch(5), moved, 7, moves, alpha, m
        )
        assert_array_equal(w, expected_w)
        assert_array_equal(mu, expected_mu)
        assert_array_equal(largest, np.nan_to_num(np.fmax.reduce(np.abs(by_block), axis=1), nan=0.0, posinf=np.inf))
        known = columns.peaks >= 0.0
        assert_array_equal(columns.peaks[known], np.abs(columns.pages[known]).max(axis=1))

    @pytest.mark.parametrize("n_moves", [1, 3, 256])
    @pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0])
    @pytest.mark.parametrize("seed", range(4))
    def test_against_changing_all_at_once(self, seed: int, scale: float, n_moves: int) -> None:
        """From steps that never change the order of the blocks to ones that always do; some blocks are left out."""
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((N, N)) * np.repeat(rng.random((5, N)) < 0.4, PAGE, axis=0)
        w, mu = rng.standard_normal(N), rng.standard_normal(N) * np.repeat(10.0 ** rng.integers(-3, 2, 5), PAGE)
        for m in (1, 2, 20, 60):
            self.run(A, w, mu, 0.01 * scale, m, n_moves)

    @pytest.mark.parametrize("n_moves", [2, 256])
    def test_twins_stay_equal(self, n_moves: int) -> None:
        """Rows of one feature's twins, in different blocks: the lowest moves, whichever block was settled when."""
        rng = np.random.default_rng(0)
        half = rng.standard_normal((N // 2, N))
        A, mu = np.concatenate([half, half]), np.tile(rng.standard_normal(N // 2), 2)
        w = np.zeros(N)
        self.run(A, w, mu, 0.01, 50, n_moves)
        assert not w[N // 2 :].any()
        assert_array_equal(mu[: N // 2], mu[N // 2 :])

    @pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 1e308])
    def test_diverged(self, value: float) -> None:
        rng = np.random.default_rng(1)
        A = rng.standard_normal((N, N)) * np.repeat(rng.random((5, N)) < 0.5, PAGE, axis=0)
        w, mu = np.zeros(N), rng.standard_normal(N)
        mu[37] = value
        self.run(A, w, mu, 0.5, 12, 256)
