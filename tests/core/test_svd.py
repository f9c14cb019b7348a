from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tlstd.core import svd as svd_module
from tlstd.core.arrays import FloatArray
from tlstd.core.svd import inverse_factors, leading_svd, solve_triangle, solve_truncated, svd


def matrix(rng: np.random.Generator, sigma: list[float]) -> tuple[FloatArray, FloatArray, FloatArray]:
    n = len(sigma)
    U, V = (np.linalg.qr(rng.standard_normal((n, n)))[0] for _ in range(2))
    return (U * np.array(sigma)) @ V.T, U, V


class TestSVD:
    @pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (1, 1), (5, 3), (3, 5), (40, 40)])
    def test_factors(self, shape: tuple[int, int]) -> None:
        K = np.random.default_rng(0).standard_normal(shape)
        L, sigma, Rt = svd(K)
        k = min(shape)
        assert (L.shape, sigma.shape, Rt.shape) == ((shape[0], k), (k,), (k, shape[1]))
        assert_allclose((L * sigma) @ Rt, K, atol=1e-13)
        assert_allclose(L.T @ L, np.eye(k), atol=1e-13)
        assert_allclose(Rt @ Rt.T, np.eye(k), atol=1e-13)
        assert (np.diff(sigma) <= 0.0).all()

    def test_answers_when_divide_and_conquer_does_not_converge(self, monkeypatch: pytest.MonkeyPatch) -> None:
        calls = []

        def failing(K: Any, **options: Any) -> Any:
            calls.append(options)
            return np.zeros_like(K), np.zeros(4), np.zeros_like(K), 1

        monkeypatch.setattr(svd_module, "dgesdd", failing)
        K = np.random.default_rng(0).standard_normal((4, 4))
        L, sigma, Rt = svd(K)
        assert len(calls) == 1
        assert_allclose((L * sigma) @ Rt, K, atol=1e-13)

    def test_does_not_change_its_argument(self) -> None:
        K = np.asfortranarray(np.random.default_rng(0).standard_normal((6, 6)))
        before = K.copy()
        svd(K)
        assert_array_equal(K, before)


class TestLeadingSVD:
    @pytest.mark.parametrize("smallest", [1.0, 1e-2, 2e-3, 1e-6, 0.0])
    @pytest.mark.parametrize("shape", [(150, 150), (150, 170), (200, 130), (300, 300)])
    def test_is_the_leading_part(self, shape: tuple[int, int], smallest: float) -> None:
        """Below 1e-3 the square is not used; above, the product is as close to K's best as LAPACK's."""
        rng, rank = np.random.default_rng(0), 40
        U, V = (np.linalg.qr(rng.standard_normal((n, min(shape))))[0] for n in shape)
        spectrum = np.concatenate([np.linspace(1.0, smallest, rank), 0.5 * smallest * rng.random(min(shape) - rank)])
        K = (U * spectrum) @ V.T
        L, sigma, Rt = leading_svd(K, rank)
        assert L.shape[1] == sigma.size == Rt.shape[0] >= rank
        assert_allclose(sigma[:rank], spectrum[:rank], atol=1e-14)
        assert_allclose(L.T @ L, np.eye(sigma.size), atol=1e-13)
        assert_allclose(Rt @ Rt.T, np.eye(sigma.size), atol=1e-13)
        product = (L[:, :rank] * sigma[:rank]) @ Rt[:rank]
        assert_allclose(product, (U[:, :rank] * spectrum[:rank]) @ V[:, :rank].T, atol=1e-11 if smallest else 1e-13)

    def test_multiple_singular_values(self) -> None:
        K = np.diag(np.concatenate([np.full(60, 2.0), np.full(140, 1.0)]))
        L, sigma, Rt = leading_svd(K, 50)  # cuts through equal ones
        assert_allclose(sigma[:50], 2.0, rtol=1e-14)
        assert_allclose(L.T @ L, np.eye(sigma.size), atol=1e-13)
        assert_allclose(L.T @ K, sigma[:, None] * Rt, atol=1e-13)

    @pytest.mark.parametrize("rank", [0, 1, 74, 76, 150])
    def test_any_rank(self, rank: int) -> None:
        K = np.random.default_rng(0).standard_normal((150, 150))
        _, sigma, _ = leading_svd(K, rank)
        assert_allclose(sigma[:rank], svd(K)[1][:rank], rtol=1e-12)

    def test_zero(self) -> None:
        assert_array_equal(leading_svd(np.zeros((130, 130)), 5)[1], 0.0)

    @pytest.mark.parametrize("scale", [1e-170, 1e-80, 1e90, 1e150])
    def test_any_scale(self, scale: float) -> None:
        K = np.random.default_rng(0).standard_normal((150, 150))
        L, sigma, Rt = leading_svd(scale * K, 20)
        expected = leading_svd(K, 20)
        assert_allclose(sigma / scale, expected[1], rtol=1e-13)
        assert_allclose((L * (sigma / scale)) @ Rt, (expected[0] * expected[1]) @ expected[2], atol=1e-11)


def test_triangles() -> None:
    rng = np.random.default_rng(0)
    R, B = np.triu(rng.standard_normal((6, 6))) + 3.0 * np.eye(6), rng.standard_normal((6, 2))
    assert_allclose(R @ solve_triangle(R, B), B, atol=1e-13)
    assert_allclose(R.T @ solve_triangle(R, B, transposed=True), B, atol=1e-13)
    assert solve_triangle(np.zeros((0, 0)), np.zeros((0, 2))).shape == (0, 2)


class TestInverseFactors:
    def test_cut_off_is_strict(self) -> None:
        sigma = np.array([8.0, 4.0, 2.0, 1.0, 0.0])
        assert_array_equal(inverse_factors(sigma, rcond=0.25), [1 / 8, 1 / 4, 0, 0, 0])
        assert_array_equal(inverse_factors(sigma, rcond=0.2499), [1 / 8, 1 / 4, 1 / 2, 0, 0])
        assert_array_equal(inverse_factors(sigma, rcond=0.0), [1 / 8, 1 / 4, 1 / 2, 1, 0])

    @pytest.mark.parametrize(("rank", "kept"), [(0, 0), (1, 1), (3, 3), (4, 3), (100, 3), (None, 3)])
    def test_rank(self, rank: int | None, kept: int) -> None:
        factors = inverse_factors(np.array([4.0, 2.0, 1.0, 1e-9]), rcond=1e-4, rank=rank)
        assert np.count_nonzero(factors) == kept

    @pytest.mark.parametrize("sigma", [[], [0.0], [0.0, 0.0]])
    def test_nothing_to_invert(self, sigma: list[float]) -> None:
        assert_array_equal(inverse_factors(np.array(sigma), rcond=0.0, tikhonov=1.0), np.zeros(len(sigma)))

    @pytest.mark.parametrize("scale", [1e-290, 1e-160, 1e-5, 1.0, 1e150, 1e300])
    @pytest.mark.parametrize("relative", [0.0, 1e-30, 1e-3, 1.0, 1e20])
    def test_tikhonov_at_any_scale(self, scale: float, relative: float) -> None:
        """σ/(σ² + η), compared with the same after a rescaling in exact powers."""
        sigma = np.array([1.0, 0.5, 1e-3, 1e-15])
        eta = relative * scale * scale
        factors = inverse_factors(sigma * scale, rcond=0.0, tikhonov=eta)
        if 1e-300 < eta < 1e300 or relative == 0.0:
            assert_allclose(factors * scale, sigma / (sigma**2 + relative), rtol=1e-12)
        assert np.isfinite(factors).all()

    def test_what_would_overflow_is_not_inverted(self) -> None:
        factors = inverse_factors(np.array([1.0, 1e-307, 1e-310, 5e-324]), rcond=0.0)
        assert_allclose(factors[:2], [1.0, 1e307], rtol=1e-12)
        assert_array_equal(factors[2:], [0.0, 0.0])
        assert_array_equal(inverse_factors(np.array([1e-310]), rcond=0.0), [0.0])
        assert_array_equal(inverse_factors(np.array([1e-250]), rcond=0.0, tikhonov=1e100), [0.0])


class TestSolveTruncated:
    def test_regular(self) -> None:
        rng = np.random.default_rng(0)
        A, b = rng.standard_normal((6, 6)), rng.standard_normal((6, 3))
        before = A.copy(), b.copy()
        assert_allclose(solve_truncated(A, b, rcond=1e-8), np.linalg.solve(A, b), rtol=1e-10)
        assert_array_equal(A, before[0])
        assert_array_equal(b, before[1])

    def test_cut_off(self) -> None:
        rng = np.random.default_rng(1)
        A, U, V = matrix(rng, [3.0, 1.0, 2e-4, 1e-4])
        b = rng.standard_normal((4, 2))
        for rcond, kept in ((1e-8, 4), (5e-5, 3), (1e-3, 2), (0.5, 1)):
            sigma = np.array([3.0, 1.0, 2e-4, 1e-4])[:kept]
            expected = V[:, :kept] @ ((U[:, :kept].T @ b) / sigma[:, None])
            assert_allclose(solve_truncated(A, b, rcond=rcond), expected, rtol=1e-9, atol=1e-9)

    @pytest.mark.parametrize("eta", [1e-6, 1e-2, 1.0, 1e4])
    def test_tikhonov(self, eta: float) -> None:
        rng = np.random.default_rng(2)
        for sigma in ([3.0, 1.0, 0.5], [1.0, 1e-3, 0.0], [0.0, 0.0, 0.0]):
            A, _, _ = matrix(rng, sigma)
            b = rng.standard_normal((3, 2))
            expected = np.linalg.solve(A.T @ A + eta * np.eye(3), A.T @ b)
            assert_allclose(solve_truncated(A, b, rcond=0.0, tikhonov=eta), expected, rtol=1e-8, atol=1e-9)

    @pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e-100, 1e100, 1e200])
    def test_scales(self, scale: float) -> None:
        rng = np.random.default_rng(3)
        A, b = rng.standard_normal((5, 5)), rng.standard_normal((5, 1))
        assert_allclose(solve_truncated(scale * A, scale * b, rcond=1e-6), np.linalg.solve(A, b), rtol=1e-9)

    def test_degenerate(self) -> None:
        assert solve_truncated(np.zeros((0, 0)), np.zeros((0, 2)), rcond=0.1).shape == (0, 2)
        assert_array_equal(solve_truncated(np.zeros((2, 2)), np.ones((2, 1)), rcond=0.0), np.zeros((2, 1)))
        singular = solve_truncated(np.ones((2, 2)), np.ones((2, 1)), rcond=1e-10)
        assert_allclose(singular, [[0.5], [0.5]], rtol=1e-12)
        subnormal = solve_truncated(np.full((2, 2), 1e-320), np.full((2, 1), 1e-160), rcond=0.0)
        assert_array_equal(subnormal, np.zeros((2, 1)))


class TestNotFinite:
    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
    @pytest.mark.parametrize("shape", [(1, 1), (5, 3), (130, 140)])
    def test_all_is_nan(self, bad: float, shape: tuple[int, int]) -> None:
        K = np.random.default_rng(0).standard_normal(shape)
        K[-1, 0] = bad
        for factors in (svd(K), leading_svd(K, 1)):
            assert all(np.isnan(part).all() for part in factors)
        assert np.isnan(solve_truncated(K[: shape[1], : shape[1]] * bad, np.ones((min(shape), 1)), rcond=0.1)).all()
