from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tests.truncated.test_basis import dense_block, orthonormal, random_S, sparse_block
from tlstd.core.arrays import FloatArray
from tlstd.truncated.basis import Basis, dense_basis, sparse_basis
from tlstd.truncated.factors import Factors


def low_rank(U: FloatArray, sigma: FloatArray, V: FloatArray, rank: int | None = None) -> Factors:
    factors = Factors(rank or U.shape[1])
    factors.U, factors.sigma, factors.V = U.copy(), sigma, V.copy()
    return factors


def product(factors: Factors) -> FloatArray:
    return (factors.U * factors.sigma) @ factors.V.T


def check_orthonormalised(U: FloatArray, sigma: FloatArray, V: FloatArray, tolerance: float = 1e-13) -> None:
    before: FloatArray = (U * sigma) @ V.T
    factors = low_rank(U, sigma, V)
    factors.orthonormalise()
    assert factors.orthogonality_error() <= 1e-13
    assert_allclose(product(factors), before, rtol=0.0, atol=tolerance * np.abs(before).max(initial=1e-300))
    assert (np.diff(factors.sigma) <= 0.0).all()


class TestOrthonormalise:
    @pytest.mark.parametrize("deviation", [1e-12, 1e-9, 1e-6, 1e-4, 1e-2, 0.3])
    @pytest.mark.parametrize("spread", [0, 3, 9])
    def test_restores_without_changing_the_product(self, deviation: float, spread: int) -> None:
        for seed in range(5):
            rng = np.random.default_rng(seed)
            n, r = 50, 8
            U, V = (orthonormal(rng, n, r) + deviation * rng.standard_normal((n, r)) / np.sqrt(n) for _ in range(2))
            check_orthonormalised(U, np.sort(10.0 ** rng.uniform(-spread, 0, r))[::-1], V)

    def test_leaves_orthonormal_factors_alone(self) -> None:
        rng = np.random.default_rng(0)
        U, V, sigma = orthonormal(rng, 30, 5), orthonormal(rng, 30, 5), np.arange(5.0, 0.0, -1.0)
        factors = low_rank(U, sigma, V)
        factors.orthonormalise()
        assert_array_equal(factors.U, U)
        assert_array_equal(factors.V, V)

    @pytest.mark.parametrize("deviation", [1e-6, 1e-2])
    def test_one_side_only(self, deviation: float) -> None:
        rng = np.random.default_rng(1)
        good, bad = orthonormal(rng, 30, 5), orthonormal(rng, 30, 5) + deviation * rng.standard_normal((30, 5))
        for U, V in ((good, bad), (bad, good)):
            check_orthonormalised(U, np.arange(5.0, 0.0, -1.0), V)

    @pytest.mark.parametrize("both", [False, True])
    @pytest.mark.parametrize("noise", [0.0, 1e-16, 1e-12, 1e-9, 1e-8, 1e-7, 1e-5])
    def test_rank_deficient_factors(self, noise: float, both: bool) -> None:
        """Two equal columns, up to noise: the Gram matrix is singular.

        Where it is only nearly so, its Cholesky factor is used and costs ε times the condition of U.
        """
        for seed in range(5):
            rng = np.random.default_rng(seed)
            U, V = orthonormal(rng, 40, 6), orthonormal(rng, 40, 6)
            U[:, 3] = U[:, 1] + noise * rng.standard_normal(40)
            if both:
                V[:, 0] = V[:, 5] + noise * rng.standard_normal(40)
            check_orthonormalised(U, np.arange(6.0, 0.0, -1.0), V, 1e-13 if noise < 1e-15 else 1e-8)

    def test_zero_columns(self) -> None:
        rng = np.random.default_rng(2)
        U, V = orthonormal(rng, 20, 4), orthonormal(rng, 20, 4)
        U[:, 1] = V[:, 2] = 0.0
        check_orthonormalised(U, np.array([4.0, 3.0, 2.0, 1.0]), V)

    def test_zero_singular_values(self) -> None:
        rng = np.random.default_rng(3)
        U, V = (orthonormal(rng, 20, 4) + 1e-3 * rng.standard_normal((20, 4)) for _ in range(2))
        check_orthonormalised(U, np.array([1.0, 0.5, 0.0, 0.0]), V)

    @pytest.mark.parametrize("scale", [1e-150, 1e150])
    def test_scales(self, scale: float) -> None:
        rng = np.random.default_rng(4)
        U, V = (orthonormal(rng, 20, 4) + 1e-3 * rng.standard_normal((20, 4)) for _ in range(2))
        check_orthonormalised(U, scale * np.array([1.0, 0.5, 0.1, 1e-6]), V)

    def test_square(self) -> None:
        rng = np.random.default_rng(5)
        U, V = (orthonormal(rng, 6, 6) + 1e-2 * rng.standard_normal((6, 6)) for _ in range(2))
        check_orthonormalised(U, np.arange(6.0, 0.0, -1.0), V)

    def test_empty(self) -> None:
        factors = Factors(3)
        factors.orthonormalise()
        assert factors.orthogonality_error() == 0.0
        assert factors.U.shape == (0, 0)


class TestReplace:
    @pytest.mark.parametrize("kind", ["sparse", "dense"])
    def test_becomes_what_the_coordinates_say(self, kind: str) -> None:
        for seed in range(6):
            rng = np.random.default_rng(seed)
            n_U, n, r, k = 12, 12 if kind == "dense" else 20, 3, 7
            U, V, sigma = orthonormal(rng, n_U, r), orthonormal(rng, n_U, r), np.array([3.0, 2.0, 1.0])
            factors = low_rank(U, sigma, V, rank=6)
            bases = [self.basis(M, random_S(rng, n, k), kind, n) for M in (factors.U, factors.V)]
            for kept in (0, 2, 6):
                factors = low_rank(U, sigma, V, rank=6)
                left, right = (
                    self.basis(M, e.block.columns(np.arange(k), n), kind, n)
                    for M, e in zip((factors.U, factors.V), bases, strict=True)
                )
                L, R = orthonormal(rng, left.size, kept), orthonormal(rng, right.size, kept)
                new_sigma = np.sort(rng.random(kept))[::-1]
                expected = (left.expand(L) * new_sigma) @ right.expand(R).T
                factors, _ = factors.replaced(left, right, L, new_sigma, R)
                assert factors.U.shape == factors.V.shape == (n, kept)
                assert factors.orthogonality_error() <= 1e-13
                assert_allclose(product(factors), expected, atol=1e-13)

    @staticmethod
    def basis(U: FloatArray, S: FloatArray, kind: str, n: int) -> Basis:
        if kind == "sparse":
            return sparse_basis(U, sparse_block(S), np.zeros(n), n)
        return dense_basis(U, dense_block(S), n, chunk=3)


def test_rows_grow_with_zeros() -> None:
    U = np.random.default_rng(0).standard_normal((5, 3))
    for n in (5, 6, 7, 30, 31):
        basis = Basis(U, sparse_block(np.zeros((n, 1))), np.zeros(0, dtype=np.int64), np.zeros((3, 1)), n)
        longer = basis.expand(np.eye(3))
        assert longer.shape == (n, 3)
        assert_array_equal(longer[:5], U)
        assert not longer[5:].any()


@pytest.mark.parametrize("n", [0, 1, 511, 512, 513, 1300])
def test_expanded_in_slices(n: int) -> None:
    rng = np.random.default_rng(n)
    for r, c in ((3, 3), (3, 1), (1, 0), (0, 0)):
        U, C = rng.standard_normal((n, r)), rng.standard_normal((r, c))
        basis = Basis(U, sparse_block(np.zeros((n, 1))), np.zeros(0, dtype=np.int64), np.zeros((r, 1)), n)
        assert_allclose(basis.expand(C), U @ C, atol=1e-13)
