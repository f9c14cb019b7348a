from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tlstd.core.arrays import FloatArray
from tlstd.data.feature_index import FeatureIndex
from tlstd.truncated.basis import Basis, GrowingBasis, dense_basis, sparse_basis
from tlstd.truncated.pending_vectors import DenseVectors, PendingVectors, SparseVectors


def orthonormal(rng: np.random.Generator, n: int, r: int) -> FloatArray:
    return np.linalg.qr(rng.standard_normal((n, r)))[0]


def sparse_block(S: FloatArray, head: FloatArray | None = None) -> SparseVectors:
    """A block with the columns of S, the first of them as a dense head if given."""
    block = SparseVectors(max(S.shape[1], 1))
    for j, s in enumerate(S.T):
        rows, norm = np.flatnonzero(s), float(np.linalg.norm(s))
        block.reserve(rows.size)
        start = block.indptr[j]
        block.rows[start : start + rows.size] = rows
        block.vals[start : start + rows.size] = s[rows] / norm if norm > 0.0 else s[rows]
        block.norms[j] = norm
        block.indptr[j + 1] = start + rows.size
        block.count += 1
        if j == 0 and head is not None:
            block.set_head(head)
    return block


def dense_block(S: FloatArray, head: FloatArray | None = None) -> DenseVectors:
    block = DenseVectors(max(S.shape[1], 1), S.shape[0])
    for j, s in enumerate(S.T):
        block.append(s[None, :])
        if j == 0 and head is not None:
            block.set_head(head)
    return block


def extend(U: FloatArray, S: FloatArray, kind: str, head: FloatArray | None = None) -> tuple[Basis, FloatArray]:
    """A basis of [U, S] and, as the truth, S with unit columns."""
    n = S.shape[0]
    S = S.copy()
    if kind == "sparse":
        basis = sparse_basis(U, sparse_block(S, head), np.zeros(n), n)
    elif kind == "growing":
        basis = GrowingBasis(U, sparse_block(S, head)).basis(np.zeros(n), n)
    else:
        basis = dense_basis(U, dense_block(S, head), n, chunk=max(S.shape[1], 1))
    if head is not None:
        S[: head.size, 0], S[head.size :, 0] = head, 0.0
    norms = np.linalg.norm(S, axis=0)
    S[:, norms > 0.0] /= norms[norms > 0.0]
    return basis, S


def check(basis: Basis, S: FloatArray) -> None:
    """What a basis promises, for the unit vectors S.

    Explicit directions are orthonormal to rounding; those found through the Gram matrix to a few ε/δ², which
    ``Factors`` mends after a compression.
    """
    n, size = basis.n, basis.size
    assert size <= n
    assert basis.coordinates.shape == (size, S.shape[1])
    B = basis.expand(np.eye(size))
    assert_allclose(B.T @ B, np.eye(size), rtol=0.0, atol=1e-11 if basis.picked.size else 1e-13)
    assert_allclose(B @ basis.coordinates, S, rtol=0.0, atol=1e-13)
    rank_of_U = basis.U.shape[1]
    assert_allclose(B[: basis.U.shape[0], :rank_of_U], basis.U, rtol=0.0, atol=1e-15)
    rng = np.random.default_rng(0)
    C = rng.standard_normal((size, 3))
    assert_allclose(basis.project(basis.expand(C)), C, rtol=0.0, atol=1e-10)
    X = rng.standard_normal((n, 3))
    assert_allclose(basis.project(X), B.T @ X, rtol=0.0, atol=1e-10)
    on_U, on_S, on_E = basis.split(C)
    Y = basis.E @ on_E
    Y[: basis.U.shape[0]] += basis.U @ on_U
    Y += S[:, basis.picked] @ on_S
    assert_allclose(Y, B @ C, rtol=0.0, atol=1e-10)


KINDS = pytest.mark.parametrize("kind", ["sparse", "growing", "dense"])
HEADS = pytest.mark.parametrize("with_head", [False, True], ids=["", "head"])


def random_S(rng: np.random.Generator, n: int, k: int, density: float = 0.3) -> FloatArray:
    S: FloatArray = rng.standard_normal((n, k)) * (rng.random((n, k)) < density)
    return S * 10.0 ** rng.uniform(-3, 3, k)


@KINDS
@HEADS
class TestExtend:
    @pytest.mark.parametrize(("n", "n_U", "r", "k"), [(40, 40, 6, 10), (40, 25, 6, 10), (40, 0, 0, 10), (30, 30, 0, 1)])
    def test_random(self, kind: str, with_head: bool, n: int, n_U: int, r: int, k: int) -> None:
        for seed in range(5):
            rng = np.random.default_rng(seed)
            U = orthonormal(rng, n_U, r)
            head = rng.standard_normal(n if kind == "dense" else n - 3) if with_head else None
            basis, S = extend(U, random_S(rng, n, k), kind, head)
            check(basis, S)
            assert basis.size == np.linalg.matrix_rank(np.hstack([np.vstack([U, np.zeros((n - n_U, r))]), S]))

    def test_nothing(self, kind: str, with_head: bool) -> None:
        U = orthonormal(np.random.default_rng(0), 7, 3)
        basis, S = extend(U, np.zeros((7, 0)), kind)
        assert basis.size == 3
        check(basis, S)

    @pytest.mark.parametrize("factor", [1.0, -1.0, 3.0, 1e-80])
    def test_duplicates(self, kind: str, with_head: bool, factor: float) -> None:
        rng = np.random.default_rng(1)
        S = random_S(rng, 30, 5)
        S = np.hstack([S, factor * S, S[:, :1]])
        head = rng.standard_normal(30) if with_head else None
        basis, S = extend(orthonormal(rng, 30, 4), S, kind, head)
        check(basis, S)
        assert basis.size == 4 + np.linalg.matrix_rank(S)

    @pytest.mark.parametrize("exponent", range(1, 16))
    def test_near_duplicates(self, kind: str, with_head: bool, exponent: int) -> None:
        """Copies with small relative changes, each in one entry and all over."""
        for seed in range(3):
            rng = np.random.default_rng(seed)
            n, k = 40, 6
            S = random_S(rng, n, k, density=0.4)
            noise = rng.standard_normal((n, k)) * np.abs(S).max(axis=0)
            one = np.zeros((n, k))
            one[rng.integers(0, n, k), np.arange(k)] = np.abs(S).max(axis=0)
            S = np.hstack([S, S + 10.0**-exponent * noise, S + 10.0**-exponent * one, S * (1 + 10.0**-exponent)])
            head = S[:, 1] + 10.0**-exponent * noise[:, 0] if with_head else None
            check(*extend(orthonormal(rng, n, 5), S, kind, head))

    @pytest.mark.parametrize("exponent", [0, 1, 2, 3, 5, 8, 11, 13, 15])
    def test_chains_of_near_duplicates(self, kind: str, with_head: bool, exponent: int) -> None:
        """Residuals that shrink step by step: x, x + δ a, x + δ a + δ² b, …"""
        for seed in range(3):
            rng = np.random.default_rng(seed)
            S = np.cumsum(random_S(rng, 30, 8, 1.0) / 1e3 * 10.0 ** (-exponent * np.arange(8.0)), axis=1)
            head = S[:, 0] + 10.0**-exponent * rng.standard_normal(30) if with_head else None
            check(*extend(orthonormal(rng, 30, 5), S, kind, head))

    @pytest.mark.parametrize("exponent", [1, 2, 4, 6, 9, 12, 14, 16, 30])
    def test_almost_inside_the_span_of_U(self, kind: str, with_head: bool, exponent: int) -> None:
        for seed in range(3):
            rng = np.random.default_rng(seed)
            U = orthonormal(rng, 30, 6)
            S = U @ rng.standard_normal((6, 8)) + 10.0**-exponent * rng.standard_normal((30, 8))
            head = U @ rng.standard_normal(6) if with_head else None
            basis, S = extend(U, S, kind, head)
            check(basis, S)
            if exponent >= 16:
                assert basis.size == 6

    def test_zero_vectors(self, kind: str, with_head: bool) -> None:
        rng = np.random.default_rng(2)
        for zeros in ([0], [1, 4], [0, 1, 2, 3, 4, 5]):
            S = random_S(rng, 20, 6)
            S[:, zeros] = 0.0
            head = rng.standard_normal(20) if with_head else None
            basis, S = extend(orthonormal(rng, 20, 3), S, kind, head)
            check(basis, S)
            assert basis.size == 3 + np.linalg.matrix_rank(S)

    def test_U_spans_everything(self, kind: str, with_head: bool) -> None:
        rng = np.random.default_rng(3)
        head = rng.standard_normal(8) if with_head else None
        basis, S = extend(orthonormal(rng, 8, 8), random_S(rng, 8, 5), kind, head)
        assert basis.size == 8
        check(basis, S)

    @pytest.mark.parametrize(("n_U", "r"), [(8, 0), (8, 3), (8, 7), (5, 4), (5, 5)])
    def test_more_vectors_than_dimensions(self, kind: str, with_head: bool, n_U: int, r: int) -> None:
        for seed in range(5):
            rng = np.random.default_rng(seed)
            head = rng.standard_normal(8) if with_head else None
            basis, S = extend(orthonormal(rng, n_U, r), random_S(rng, 8, 30, 0.6), kind, head)
            assert basis.size == 8
            check(basis, S)

    def test_one_feature(self, kind: str, with_head: bool) -> None:
        head = np.array([-2.0]) if with_head else None
        for r in (0, 1):
            basis, S = extend(np.ones((1, r)), np.array([[3.0, -1.0, 0.0]]), kind, head)
            assert basis.size == 1
            check(basis, S)

    def test_scales_do_not_matter(self, kind: str, with_head: bool) -> None:
        rng = np.random.default_rng(4)
        U, S = orthonormal(rng, 20, 3), random_S(rng, 20, 5)
        S *= np.array([1e-140, 1.0, 1e90, 1e-60, 1e30])
        head = 1e80 * rng.standard_normal(20) if with_head else None
        basis, S = extend(U, S, kind, head)
        check(basis, S)
        assert basis.size == 8


@HEADS
@pytest.mark.parametrize("chunk", [1, 4, 5, 12, 20])
def test_dense_basis_in_chunks(with_head: bool, chunk: int) -> None:
    """Going on from an earlier basis leaves that one alone and gives the same to the bit."""
    rng = np.random.default_rng(0)
    n, k = 25, 12
    U, S = orthonormal(rng, n, 4), random_S(rng, n, k, 1.0)
    S[:, 5] = S[:, 2] * (1 + 1e-9)
    S[:, 7] = U[:, 0]
    S[:, 9] = 0.0
    head = rng.standard_normal(n) if with_head else None
    block = dense_block(S, head)
    if head is not None:
        S[:, 0] = head
    S /= np.where(np.linalg.norm(S, axis=0) > 0.0, np.linalg.norm(S, axis=0), 1.0)
    whole = dense_basis(U, block, n, chunk=chunk)
    check(whole, S)
    start = None
    for count in range(0, k, chunk):
        block.count = count
        start = dense_basis(U, block, n, chunk=chunk, start=start)
        check(start, S[:, :count])
        block.count = k
        again = dense_basis(U, block, n, chunk=chunk, start=start)
        assert np.array_equal(again.coordinates, whole.coordinates)
        assert np.array_equal(again.E, whole.E)
        check(start, S[:, :count])


def test_vectors_that_depend_are_told_by_their_residuals() -> None:
    """In the span of U, and of U and another vector of the block: no tall vectors have to be projected for them."""
    rng, n = np.random.default_rng(0), 30
    U, s = orthonormal(rng, n, 4), rng.standard_normal(n)
    block = sparse_block(np.column_stack([s, U @ rng.standard_normal(4), U @ rng.standard_normal(4) - 2.0 * s]))
    basis = sparse_basis(U, block, np.zeros(n), n)
    assert basis.size == 5
    assert basis.depends(np.arange(3), np.zeros(n)).all()


@HEADS
def test_sparse_basis_while_the_block_grows(with_head: bool) -> None:
    """Gram matrix and projections are kept from call to call; the head comes with the first vector."""
    rng = np.random.default_rng(0)
    n, k = 25, 12
    U, S = orthonormal(rng, 20, 4), random_S(rng, n, k)
    S[:, 5] = S[:, 2] * (1 + 1e-9)
    head = rng.standard_normal(22) if with_head else None
    whole = sparse_block(S, head)
    block = SparseVectors(k)
    block.indptr, block.rows, block.vals, block.norms, block.head = (
        whole.indptr,
        whole.rows,
        whole.vals,
        whole.norms,
        whole.head,
    )
    if head is not None:
        S[:22, 0], S[22:, 0] = head, 0.0
    S /= np.linalg.norm(S, axis=0)
    for count in (1, 2, 7, 7, 12):
        block.count = count
        check(sparse_basis(U, block, np.zeros(n), n), S[:, :count])


class TestBlocks:
    @staticmethod
    def blocks(S: FloatArray, head: FloatArray | None) -> list[PendingVectors]:
        return [sparse_block(S, head), dense_block(S, head)]

    @HEADS
    def test_products(self, with_head: bool) -> None:
        rng = np.random.default_rng(5)
        S = random_S(rng, 15, 6)
        S[:, 3] = 0.0
        head = rng.standard_normal(15) if with_head else None
        unit = S.copy()
        if head is not None:
            unit[:, 0] = head
        lengths = np.linalg.norm(unit, axis=0)
        unit[:, lengths > 0] /= lengths[lengths > 0]
        B, M = rng.standard_normal((15, 4)), rng.standard_normal((4, 2))
        picked = np.array([2, 0, 5, 3])
        for block in self.blocks(S, head):
            assert_allclose(block.norms, lengths, rtol=1e-14)
            assert_allclose(block.dots(B), unit.T @ B, rtol=1e-12, atol=1e-13)
            assert_allclose(block.dots(B[:9]), unit[:9].T @ B[:9], rtol=1e-12, atol=1e-13)
            assert_allclose(block.columns(picked, 15), unit[:, picked], rtol=1e-13, atol=1e-15)
            Y = np.ones((15, 2))
            block.add_to(Y, picked, M)
            assert_allclose(Y, 1.0 + unit[:, picked] @ M, rtol=1e-12, atol=1e-13)
            block = block.emptied()
            assert block.count == 0
            assert block.dots(B).shape == (0, 4)

    def test_first_vector_as_it_was(self) -> None:
        S = random_S(np.random.default_rng(6), 9, 2)
        for block in self.blocks(S, None):
            assert_allclose(block.first_vector(9), S[:, 0], rtol=1e-14)

    def test_gram_and_projections_are_computed_once(self) -> None:
        rng = np.random.default_rng(7)
        S, U = random_S(rng, 12, 6, 0.8), orthonormal(rng, 12, 3)
        block = sparse_block(S)
        S /= np.linalg.norm(S, axis=0)
        assert_allclose(block.gram.of(block, 12)[0], S.T @ S, rtol=1e-12, atol=1e-14)
        assert_allclose(block.products("factor", U), S.T @ U, rtol=1e-12, atol=1e-14)
        block.vals[:] = np.nan
        assert_allclose(block.gram.of(block, 12)[0], S.T @ S, rtol=1e-12, atol=1e-14)
        assert_allclose(block.products("factor", U), S.T @ U, rtol=1e-12, atol=1e-14)

    def test_values_of_combinations(self) -> None:
        rng = np.random.default_rng(8)
        S = random_S(rng, 12, 6, 0.8)
        head = rng.standard_normal(12)
        block = sparse_block(S, head)
        S[:, 0] = head
        x = rng.standard_normal(12) * (rng.random(12) < 0.5)
        seen = FeatureIndex(20)
        seen.insert(np.arange(12))
        ids, values = np.append(np.flatnonzero(x), 15), np.append(x[x != 0.0], 5.0)
        ids.flags.writeable = values.flags.writeable = False  # as those of a SparseVector
        vector = seen.lookup(ids, values)
        scratch = np.zeros(12)
        S /= np.linalg.norm(S, axis=0)
        for picked in ([], [0], [4, 0, 2], range(6)):
            M, out = rng.standard_normal((len(picked), 2)), np.ones(2)
            block.add_value(vector, np.array(picked, dtype=np.int64), M, scratch, out)
            assert_allclose(out, 1.0 + x @ S[:, list(picked)] @ M, rtol=1e-12, atol=1e-14)
        assert not scratch.any()

    def test_an_emptied_block_starts_afresh(self) -> None:
        rng = np.random.default_rng(9)
        block = sparse_block(random_S(rng, 10, 4), rng.standard_normal(10))
        U = orthonormal(rng, 10, 2)
        block.gram.of(block, 10)
        block.products("factor", U)
        block = block.emptied()
        S = random_S(rng, 10, 3)
        fresh = sparse_block(S)
        block.reserve(int(fresh.indptr[3]))
        block.indptr[:4], block.norms[:3], block.count = fresh.indptr[:4], fresh.norms[:3], 3
        block.rows[: fresh.indptr[3]], block.vals[: fresh.indptr[3]] = (
            fresh.rows[: fresh.indptr[3]],
            fresh.vals[: fresh.indptr[3]],
        )
        basis = sparse_basis(orthonormal(rng, 10, 3), block, np.zeros(10), 10)
        check(basis, S / np.linalg.norm(S, axis=0))


def test_a_growing_basis_seldom_needs_more_room() -> None:
    """Read after every vector, it is not copied after every vector: room is doubled when there is none left."""
    block = sparse_block(np.eye(200))
    growing, rooms = GrowingBasis(np.zeros((200, 0)), block), set()
    for block.count in range(1, 201):
        basis = growing.basis(np.zeros(200), 200)
        rooms.add(growing._on_Q.shape)
    assert sorted(rooms) == [(64, 64), (130, 130), (200, 200)]
    check(basis, np.eye(200))
