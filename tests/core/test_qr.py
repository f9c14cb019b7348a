from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose

from tlstd.core.qr import orthonormalised, pivoted_qr


class TestPivotedQR:
    @pytest.mark.parametrize("shape", [(50, 7), (7, 7), (5, 9), (300, 40), (4, 0), (0, 0)])
    def test_factors(self, shape: tuple[int, int]) -> None:
        X = np.random.default_rng(0).standard_normal(shape)
        before = X.copy()
        Q, R = pivoted_qr(X, 1e-14, min(shape))
        assert_allclose(X, before, atol=0.0)
        assert Q.shape == (shape[0], min(shape))
        assert_allclose(Q @ R, X, atol=1e-13)
        assert_allclose(Q.T @ Q, np.eye(min(shape)), atol=1e-14)

    def test_leaves_out_what_vanishes(self) -> None:
        rng = np.random.default_rng(0)
        X = rng.standard_normal((100, 5)) @ rng.standard_normal((5, 30))
        Q, R = pivoted_qr(X, 1e-10, 30)
        assert Q.shape == (100, 5)
        assert_allclose(Q @ R, X, atol=1e-12)
        assert pivoted_qr(np.zeros((10, 3)), 1e-14, 3)[0].shape == (10, 0)

    def test_stops_at_the_largest_that_are_left(self) -> None:
        """As pivoting the tall matrix does."""
        X = np.random.default_rng(0).standard_normal((80, 12)) * np.logspace(0, -12, 12)[::-1]
        for most in (0, 3, 7, 12):
            Q, R = pivoted_qr(X, 1e-14, most)
            T = scipy.linalg.qr(X, mode="r", pivoting=True)[0]
            assert Q.shape[1] == most
            expected = np.linalg.norm(T[most:]) if most < 12 else 0.0
            assert_allclose(np.linalg.norm(X - Q @ R), expected, rtol=1e-6, atol=1e-13)


@pytest.mark.parametrize("noise", [0.0, 1e-10, 1e-3, 0.3, 10.0])
def test_orthonormalised(noise: float) -> None:
    rng = np.random.default_rng(0)
    X = np.linalg.qr(rng.standard_normal((200, 20)))[0] + noise * rng.standard_normal((200, 20))
    Q, R = orthonormalised(X)
    assert_allclose(Q.T @ Q, np.eye(20), atol=5e-15)
    assert_allclose(Q @ R, X, atol=1e-14 * max(1.0, noise))
    assert_allclose(R, np.triu(R))
