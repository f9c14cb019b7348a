from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.data.feature_index import FeatureIndex
from tlstd.data.kernels import sparse as kernels

NASTY_IDS = {
    "consecutive": np.arange(300),
    "multiples of 2**20": np.arange(300) << 20,
    "multiples of 2**40": np.arange(300) << 40,
    "few and far": np.array([0, 1, 2**31, 2**62, 2**62 + 1, 2**63 - 1, 2**63 - 2]),
    "powers of two": 1 << np.arange(63),
    "random": np.random.default_rng(0).integers(0, 2**63 - 1, 300),
    "one": np.array([5]),
    "none": np.zeros(0, dtype=np.int64),
}


Index: TypeAlias = tuple[NDArray[np.uint32], NDArray[np.uint64], IntArray, IntArray]


def index(size: int) -> Index:
    """An empty index with ``size`` slots."""
    slots = np.zeros(2 * size, dtype=np.uint64)
    return np.zeros(0, dtype=np.uint32), slots, np.full(size, -7), np.zeros(1, dtype=np.int64)


def rows_of(index: Index, ids: IntArray) -> IntArray:
    out = np.full(ids.size, -9)
    assert kernels.find_ids(index[0], index[1], ids, 1, out) == np.count_nonzero(out == -1)
    return out


def vectors(rng: np.random.Generator, n: int, k: int) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """k sparse vectors of n entries, some empty, as indptr, rows (in no order), values, and as a dense (k, n)."""
    indptr, rows, vals = [0], [], []
    S = np.zeros((k, n))
    for i in range(k):
        support = rng.permutation(n)[: rng.integers(0, n + 1) if i % 3 else 0]
        values = rng.standard_normal(support.size) * (i != 1)
        S[i, support] = values
        rows.extend(support.tolist())
        vals.extend(values.tolist())
        indptr.append(len(rows))
    return np.array(indptr), np.array(rows, dtype=np.int64), np.array(vals, dtype=np.float64), S


class TestIds:
    @pytest.mark.parametrize("name", NASTY_IDS)
    def test_insert_and_find(self, name: str) -> None:
        given = NASTY_IDS[name]
        seen = index(1024)
        kernels.insert_ids(seen, np.concatenate([given, given[::-1]]), 0)
        assert seen[3][0] == given.size
        assert_array_equal(seen[2][: given.size], given)
        assert (seen[2][given.size :] == -7).all()
        assert_array_equal(rows_of(seen, given), np.arange(given.size))
        absent = np.setdiff1d(np.array([3, 12345678901, 2**61, 1000 << 40, 2**63 - 4]), given)
        assert (rows_of(seen, absent) == -1).all()

    def test_insert_against_a_dictionary(self) -> None:
        rng = np.random.default_rng(1)
        seen, rows = index(256), dict[int, int]()
        direct = np.zeros(100, dtype=np.uint32), seen[1][:0], np.full(100, -7), np.zeros(1, dtype=np.int64)
        for _ in range(40):
            new = rng.integers(0, 100, rng.integers(0, 8))
            for key in new.tolist():
                rows.setdefault(key, len(rows))
            kernels.insert_ids(seen, new << 20, 0)
            kernels.insert_ids(direct, new, 0)
            assert seen[3][0] == direct[3][0] == len(rows)
        ids = np.array(list(rows))
        assert_array_equal(rows_of(seen, ids << 20), list(rows.values()))
        assert_array_equal(rows_of(direct, np.arange(100)), [rows.get(key, -1) for key in range(100)])

    @pytest.mark.parametrize("direct", [False, True])
    def test_insert_stops_where_there_is_no_room(self, direct: bool) -> None:
        table, slots = np.zeros(100 if direct else 0, dtype=np.uint32), np.zeros(0 if direct else 16, dtype=np.uint64)
        seen = table, slots, np.zeros(4, dtype=np.int64), np.zeros(1, dtype=np.int64)
        given = np.array([9, 7, 9, 5, 7, 3, 5, 5, 1, 3])
        assert kernels.insert_ids(seen, given, 0) == 8  # what is known needs none
        assert_array_equal(rows_of(seen, given[:8]), [0, 1, 0, 2, 1, 3, 2, 2])
        assert kernels.insert_ids(seen, given, 8) == 8
        assert_array_equal(rows_of(seen, given[8:]), [-1, 3])


class Buffers:
    """The arguments of append_transitions, and what they hold afterwards."""

    def __init__(self, n_ids: int, capacity: int, replacing: bool) -> None:
        self.seen = index(1 << (4 * n_ids).bit_length())
        nnz = 2 * capacity * n_ids
        self.left, self.right = (
            (np.zeros(capacity + 1, dtype=np.int64), np.zeros(nnz, dtype=np.int64), np.zeros(nnz), np.zeros(capacity))
            for _ in range(2)
        )
        self.trace = (replacing, np.zeros(n_ids), np.zeros(n_ids), np.array([1.0, 1.0]))

    def append(self, X: FloatArray, X_next: FloatArray, discounts: Any, decays: Any, rhos: Any, first: int) -> None:
        every = np.arange(X.shape[0])
        kernels.append_transitions(
            kernels.dense_to_csr(X, every),
            every,
            kernels.dense_to_csr(X_next, every),
            every,
            discounts,
            decays,
            rhos,
            self.seen,
            self.left,
            self.right,
            first,
            self.trace,
            np.zeros(1, dtype=np.int64),
        )

    def vector(self, block: tuple[IntArray, IntArray, FloatArray, FloatArray], i: int, d: int) -> FloatArray:
        """Vector i of a block with its length, in feature coordinates."""
        indptr, rows, vals, norms = block
        entries = slice(indptr[i], indptr[i + 1])
        assert np.unique(rows[entries]).size == rows[entries].size
        x = np.zeros(d)
        x[self.seen[2][rows[entries]]] = vals[entries] * norms[i]
        if norms[i] > 0.0:
            assert_allclose(np.linalg.norm(vals[entries]), 1.0, rtol=1e-14)
        return x


class TestAppendTransitions:
    def test_x_and_d(self) -> None:
        rng = np.random.default_rng(0)
        d, k = 7, 30
        X, X_next = (rng.standard_normal((k, d)) * (rng.random((k, d)) < 0.5) for _ in range(2))
        X[3] = X_next[4] = X[5] = X_next[5] = 0.0
        X_next[6] = 2.0 * X[6]  # with γ = 0.5: d = 0
        X_next[7, :3] = X[7, :3]
        discounts = rng.choice([0.0, 0.5, 1.0], k)
        discounts[6] = 0.5
        buffers = Buffers(d, k, replacing=False)
        for part in (slice(0, 1), slice(1, 12), slice(12, 12), slice(12, k)):
            ones = np.ones(X[part].shape[0])
            buffers.append(X[part], X_next[part], discounts[part], ones, ones, part.start)
        for i in range(k):
            assert_allclose(buffers.vector(buffers.left, i, d), X[i], rtol=1e-14)
            assert_allclose(buffers.vector(buffers.right, i, d), X[i] - discounts[i] * X_next[i], rtol=1e-14)
        assert buffers.left[3][3] == buffers.right[3][5] == buffers.right[3][6] == 0.0
        n_seen = buffers.seen[3][0]
        seen = set(buffers.seen[2][:n_seen].tolist())
        assert seen == set(
            np.flatnonzero((X != 0).any(axis=0) | ((X_next != 0) & (discounts[:, None] > 0)).any(axis=0))
        )

    def test_features_after_termination_get_no_row(self) -> None:
        buffers = Buffers(2, 1, replacing=False)
        buffers.append(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]]), np.zeros(1), np.ones(1), np.ones(1), 0)
        assert buffers.seen[3][0] == 1

    @pytest.mark.parametrize("scale", [1e-160, 1e-149, 1e100])
    def test_extreme_lengths(self, scale: float) -> None:
        buffers = Buffers(2, 1, replacing=False)
        X = np.array([[3.0, 4.0]]) * scale
        buffers.append(X, np.zeros((1, 2)), np.ones(1), np.ones(1), np.ones(1), 0)
        expected = X[0] if scale > 1e-150 else np.zeros(2)
        assert_allclose(buffers.vector(buffers.left, 0, 2), expected, rtol=1e-14)
        assert_allclose(buffers.left[3][0], 5.0 * scale if scale > 1e-150 else 0.0, rtol=1e-14)

    @pytest.mark.parametrize("seed", range(6))
    def test_replacing_traces(self, seed: int) -> None:
        """ρ (decay z + x̃) with the stored x̃ is the replacing trace, through resets, ρ = 0 and 400 decades of decay."""
        rng = np.random.default_rng(seed)
        d, k = 6, 80
        X = rng.standard_normal((k, d)) * (rng.random((k, d)) < 0.3)
        decays = rng.choice([0.0, 0.5, 1.0, 1e-20, 1e-3] if seed % 2 else [0.9, 0.5, 1e-30], k)
        rhos = rng.choice([0.0, 0.5, 1.0, 2.0] if seed % 3 else [1.0, 0.7], k)
        buffers = Buffers(d, k, replacing=True)
        cut = int(rng.integers(1, k))
        for part in (slice(0, cut), slice(cut, k)):
            zeros = np.zeros(X[part].shape[0])
            buffers.append(X[part], np.zeros_like(X[part]), zeros, decays[part], rhos[part], part.start)
        z, from_stored = np.zeros(d), np.zeros(d)
        for t in range(k):
            z = rhos[t] * np.where(X[t] != 0.0, X[t], decays[t] * z)
            x_tilde = buffers.vector(buffers.left, t, d)
            assert (x_tilde[X[t] == 0.0] == 0.0).all()
            from_stored = rhos[t] * (decays[t] * from_stored + x_tilde)
            assert_allclose(from_stored, z, rtol=1e-12, atol=1e-12)
            assert_allclose(buffers.vector(buffers.right, t, d), X[t], rtol=1e-14)

    @pytest.mark.parametrize(("decay", "rho"), [(0.5, 0.7), (0.6, 0.9), (0.1, 1.0)])
    def test_replacing_traces_for_a_long_time(self, decay: float, rho: float) -> None:
        """What all traces have decayed by since the first step is far beyond the smallest number."""
        rng = np.random.default_rng(0)
        d, k = 6, 1300
        X = rng.standard_normal((k, d)) * (rng.random((k, d)) < 0.3)
        buffers = Buffers(d, k, replacing=True)
        buffers.append(X, np.zeros_like(X), np.zeros(k), np.full(k, decay), np.full(k, rho), 0)
        indptr, rows, vals, norms = buffers.left
        z, found, expected = np.zeros(d), np.zeros((k, d)), np.zeros((k, d))
        for t in range(k):
            entries = slice(indptr[t], indptr[t + 1])
            found[t, buffers.seen[2][rows[entries]]] = vals[entries] * norms[t]
            expected[t] = np.where(X[t] != 0.0, X[t] - decay * z, 0.0)
            z = rho * np.where(X[t] != 0.0, X[t], decay * z)
        assert_allclose(found, expected, rtol=1e-11, atol=1e-14)


class TestTraces:
    @pytest.mark.parametrize("has_head", [False, True])
    @pytest.mark.parametrize("k", [0, 1, 2, 9])
    def test_chain(self, has_head: bool, k: int) -> None:
        rng = np.random.default_rng(k)
        S, decays, rhos = rng.standard_normal((5, k)), rng.random(k), rng.uniform(0.0, 2.0, k)
        if k > 4:
            decays[3], rhos[4] = 0.0, 0.0
        Z = S.T.copy()
        kernels.traces_from_features(decays, rhos, has_head, Z)
        z = np.zeros(5)
        for j in range(k):
            z = S[:, 0] if j == 0 and has_head else rhos[j] * (decays[j] * z + S[:, j])
            assert_allclose(Z[j], z, rtol=1e-13, atol=1e-14)
        on_traces = rng.standard_normal((k, 3))
        on_vectors = on_traces.copy()
        kernels.traces_from_features_adjoint(decays, rhos, has_head, on_vectors)
        assert_allclose(S @ on_vectors, Z.T @ on_traces, rtol=1e-12, atol=1e-13)


class TestProducts:
    n, k = 9, 12

    @pytest.mark.parametrize("seed", range(4))
    def test_gram_in_pieces(self, seed: int) -> None:
        indptr, rows, vals, S = vectors(np.random.default_rng(seed), self.n, self.k)
        same_as = np.arange(self.k)
        for j, i in ((4, 1), (5, 0), (7, 1), (11, 9)):  # repeated vectors
            same_as[j] = i
            S[j] = S[i]
        G = np.full((self.k, self.k), np.nan)
        lists = np.full(self.n, -1), np.zeros(rows.size, dtype=np.int64), np.zeros(rows.size, dtype=np.int64)
        for first, last in ((0, 0), (0, 1), (1, 5), (5, self.k)):
            kernels.gram((indptr, rows, vals), same_as, first, last, lists, G)
            assert_allclose(G[:last, :last], S[:last] @ S[:last].T, rtol=1e-13, atol=1e-14)

    @pytest.mark.parametrize("n_rows", [0, 4, 9])
    def test_dots(self, n_rows: int) -> None:
        rng = np.random.default_rng(1)
        indptr, rows, vals, S = vectors(rng, self.n, self.k)
        B, out = rng.standard_normal((self.n, 5)), np.full((self.k, 5), -1.0)
        kernels.dots(indptr, rows, vals, 2, self.k, B, n_rows, 3, out)
        assert_allclose(out[2:, :3], S[2:, :n_rows] @ B[:n_rows, :3], rtol=1e-13, atol=1e-14)
        assert (out[:2] == -1.0).all()
        assert (out[:, 3:] == -1.0).all()

    @pytest.mark.parametrize("picked", [[], [0], [3, 1, 3], list(range(12))])
    def test_scatter(self, picked: list[int]) -> None:
        rng = np.random.default_rng(2)
        indptr, rows, vals, S = vectors(rng, self.n, self.k)
        M, Y = rng.standard_normal((len(picked), 4)), rng.standard_normal((self.n, 4))
        expected = Y.copy()
        for i, p in enumerate(picked):
            expected[:, :3] += np.outer(S[p], M[i, :3])
        kernels.scatter(indptr, rows, vals, np.array(picked, dtype=np.int64), M, 3, Y)
        assert_allclose(Y, expected, rtol=1e-13, atol=1e-14)

    @pytest.mark.parametrize(("nnz", "n_features"), [(0, 40), (1, 1 << 40), (9, 40), (9, 1 << 40)])
    def test_values_of_a_vector(self, nnz: int, n_features: int) -> None:
        rng = np.random.default_rng(3)
        indptr, rows, vals, S = vectors(rng, self.n, self.k)
        seen = FeatureIndex(n_features)
        seen.insert(rng.choice(n_features, self.n, replace=False))
        x_rows, x_vals = rng.permutation(self.n)[:nnz], rng.standard_normal(nnz)
        x = np.zeros(self.n)
        x[x_rows] = x_vals
        unseen = np.setdiff1d(np.arange(self.n + 2), seen.ids)[:2]
        ids, values = np.append(seen.ids[x_rows], unseen), np.append(x_vals, [7.0, 8.0])
        ids.flags.writeable = values.flags.writeable = False  # as those of a SparseVector
        B, C, scratch = rng.standard_normal((self.n, 4)), rng.standard_normal((4, 2)), np.zeros(self.n)
        W = rng.standard_normal((self.n, 2))
        picked, M = rng.permutation(self.k)[:10], rng.standard_normal((10, 2))
        for n_rows in (self.n, 5, 0):  # features that came later have no row in B
            out = np.array([1.0, 2.0])
            kernels.add_weights(*seen.lookup(ids, values), W[:n_rows], out)
            assert_allclose(out, [1.0, 2.0] + x[:n_rows] @ W[:n_rows], rtol=1e-13, atol=1e-14)
            kernels.add_factored(*seen.lookup(ids, values), B[:n_rows], C, out)
            assert_allclose(out, [1.0, 2.0] + x[:n_rows] @ (W[:n_rows] + B[:n_rows] @ C), rtol=1e-12, atol=1e-13)
            for head in (np.zeros(0), rng.standard_normal(n_rows)):
                vector = S.copy()
                if head.size:
                    vector[0] = np.append(head, np.zeros(self.n - n_rows))
                out = np.array([1.0, 2.0])
                kernels.add_combined(*seen.lookup(ids, values), indptr, rows, vals, head, picked, M, scratch, out)
                assert_allclose(out, [1.0, 2.0] + (vector[picked] @ x) @ M, rtol=1e-12, atol=1e-13)
                assert (scratch == 0.0).all()

    @pytest.mark.parametrize("n_known", [0, 1, 7, 30])
    def test_values_by_lists_of_ids(self, n_known: int) -> None:
        rng = np.random.default_rng(4)
        X = np.where(rng.random((9, 30)) < 0.3, rng.standard_normal((9, 30)), 0.0)
        X[3] = 0.0
        known = np.sort(rng.choice(30, n_known, replace=False))
        W = rng.standard_normal((n_known, 2))
        indptr, ids, values = kernels.dense_to_csr(X, np.arange(9))
        out = np.full((9, 2), np.nan)
        kernels.listed_values(indptr, ids, values, known, W, out)
        assert_allclose(out, X[:, known] @ W, rtol=1e-13, atol=1e-14)
        for i, x in enumerate(X):
            one = np.zeros(2)
            kernels.add_listed(np.flatnonzero(x), x[x != 0.0], known, W, one)
            assert_array_equal(one, out[i])

    @pytest.mark.parametrize("picked", [[], [0], [2, 0, 2, 1], [3]])
    def test_dense_to_csr(self, picked: list[int]) -> None:
        X = np.array([[0.0, 1.0, -0.0], [5e-324, 0.0, 2.0], [0.0, 0.0, 0.0], [1.0, 2.0, 3.0]])
        indptr, indices, data = kernels.dense_to_csr(X, np.array(picked, dtype=np.int64))
        rows = [[(j, v) for j, v in enumerate(X[i]) if v != 0.0] for i in picked]
        assert_array_equal(indptr, np.cumsum([0] + [len(row) for row in rows]))
        assert_array_equal(indices, [j for row in rows for j, _ in row])
        assert_array_equal(data, [v for row in rows for _, v in row])
