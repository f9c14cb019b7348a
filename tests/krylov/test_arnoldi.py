"""Least residuals over Krylov spaces against least squares over a basis that is written out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import scipy.linalg

from tlstd.core.arrays import FloatArray
from tlstd.krylov.arnoldi import Arnoldi, KrylovPath, norm


def solved(A: FloatArray, B: FloatArray, dimension: int) -> Arnoldi:
    arnoldi = Arnoldi(lambda V, columns: A @ V, B)
    arnoldi.extend(dimension)
    return arnoldi


def explicit(A: FloatArray, b: FloatArray, m: int) -> FloatArray:
    """argmin ‖b - A w‖ over the span of b, Ab, …, A^{m-1}b, by an orthonormal basis of each power and lstsq."""
    basis = [b / np.linalg.norm(b)]
    for _ in range(m - 1):
        q = A @ basis[-1]
        K = np.stack(basis, axis=1)
        for _ in range(3):
            q = q - K @ (K.T @ q)
        basis.append(q / np.linalg.norm(q))
    K = np.stack(basis, axis=1)
    y = scipy.linalg.lstsq(A @ K, b)[0]
    return np.asarray(K @ y)


def test_every_dimension_is_of_least_residual() -> None:
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((40, 40)) / 6 + np.eye(40), rng.standard_normal((40, 1))
    path = solved(A, b, 25).paths[0]
    for m in (1, 2, 7, 24, 25):
        w = path.solution(m)
        np.testing.assert_allclose(w, explicit(A, b[:, 0], m), atol=1e-12)
        assert path.residuals[m] == pytest.approx(np.linalg.norm(b[:, 0] - A @ w), rel=1e-12)
    np.testing.assert_allclose(A @ path.Q[:25].T, path.Q.T @ path.H, atol=1e-13)
    assert np.abs(path.Q @ path.Q.T - np.eye(26)).max() < 1e-14
    assert path.residuals[0] == norm(b[:, 0])


def test_a_path_can_be_extended() -> None:
    rng = np.random.default_rng(1)
    A, B = rng.standard_normal((60, 60)), rng.standard_normal((60, 2))
    once, twice = solved(A, B, 50), solved(A, B, 3)
    twice.extend(20)
    twice.extend(4)
    twice.extend(50)
    for m in (3, 20, 50):
        np.testing.assert_array_equal(once.solutions(m), twice.solutions(m))


def test_systems_in_lock_step_are_systems_alone() -> None:
    rng = np.random.default_rng(2)
    matrices = [rng.standard_normal((20, 20)) for _ in range(3)]
    B = rng.standard_normal((20, 3))
    B[:, 1] = 0.0
    matrices[2] = np.diag(np.repeat([1.0, 2.0, 5.0], [5, 5, 10]))  # ends after three dimensions
    asked = []

    def product(V: FloatArray, columns: Sequence[int]) -> FloatArray:
        asked.append(list(columns))
        return np.stack([matrices[c] @ V[:, i] for i, c in enumerate(columns)], axis=1)

    arnoldi = Arnoldi(product, B)
    arnoldi.extend(8)
    assert [path.dimension for path in arnoldi.paths] == [8, 0, 3]
    assert asked == [[0, 2]] * 3 + [[0]] * 5
    for c in (0, 2):
        alone = solved(matrices[c], B[:, [c]], 8).paths[0]
        np.testing.assert_allclose(arnoldi.paths[c].solution(8), alone.solution(8), atol=1e-12)
    np.testing.assert_array_equal(arnoldi.paths[1].solution(8), np.zeros(20))


def test_a_breakdown_is_the_exact_solution_and_never_a_direction() -> None:
    A = np.diag(np.repeat([0.5, 1.0, 3.0, 4.0], [10, 10, 10, 20]))
    b = np.random.default_rng(3).standard_normal((50, 1))
    path = solved(A, b, 30).paths[0]
    assert path.finished
    assert path.dimension == 4
    assert path.Q.shape == (4, 50)
    np.testing.assert_allclose(A @ path.solution(30), b[:, 0], atol=1e-13)


def test_directions_that_are_rounding_do_no_harm() -> None:
    """The same in another basis: products have errors of more than 10ε, and A is 0 on half of the space."""
    rng = np.random.default_rng(3)
    U = np.linalg.qr(rng.standard_normal((200, 200)))[0][:, :100]
    eigenvalues = np.repeat([0.5, 1.0, 3.0, 4.0], 25)
    A, b = U @ np.diag(eigenvalues) @ U.T, U @ rng.standard_normal((100, 1))
    path = solved(A, b, 60).paths[0]
    for dimension in (4, 5, 6, 10, 60):
        w = path.solution(dimension)
        np.testing.assert_allclose(w, U @ ((U.T @ b[:, 0]) / eigenvalues), atol=1e-11)


def test_singular_matrices_give_the_least_residual() -> None:
    # nilpotent: A e₁ = e₂, A e₂ = 0; b = e₁ has no solution, and w = 0 is the best in the space
    A = np.array([[0.0, 0.0], [1.0, 0.0]])
    path = solved(A, np.array([[1.0], [0.0]]), 5).paths[0]
    assert path.finished
    np.testing.assert_array_equal(path.solution(5), [0.0, 0.0])
    zero = solved(np.zeros((3, 3)), np.ones((3, 1)), 5).paths[0]
    assert zero.finished
    np.testing.assert_array_equal(zero.solution(5), np.zeros(3))
    assert zero.residuals[-1] == pytest.approx(np.sqrt(3.0))
    # singular, but b lies in an invariant space on which it is not
    rng = np.random.default_rng(4)
    M = rng.standard_normal((6, 6))
    A = np.zeros((10, 10))
    A[:6, :6] = M
    b = np.zeros((10, 1))
    b[:6, 0] = rng.standard_normal(6)
    np.testing.assert_allclose(solved(A, b, 10).solutions(10)[:6, 0], np.linalg.solve(M, b[:6, 0]), rtol=1e-9)


def test_full_dimension_solves_badly_conditioned_systems() -> None:
    rng = np.random.default_rng(5)
    U, V = (np.linalg.qr(rng.standard_normal((60, 60)))[0] for _ in range(2))
    A = U @ np.diag(np.logspace(0, -5, 60)) @ V.T
    w = rng.standard_normal(60)
    path = solved(A, (A @ w)[:, None], 60).paths[0]
    np.testing.assert_allclose(path.solution(60), w, atol=1e-9)
    assert np.abs(path.Q @ path.Q.T - np.eye(path.Q.shape[0])).max() < 1e-13


def test_galerkin_coordinates_leave_an_orthogonal_residual() -> None:
    rng = np.random.default_rng(6)
    A, b = rng.standard_normal((30, 30)) / 5 + np.eye(30), rng.standard_normal((30, 1))
    path = solved(A, b, 12).paths[0]
    w = path.galerkin(7) @ path.Q[:7]
    assert np.abs(path.Q[:7] @ (b[:, 0] - A @ w)).max() < 1e-13
    turn = solved(np.array([[0.0, 1.0], [-1.0, 0.0]]), np.array([[1.0], [0.0]]), 1).paths[0]
    assert np.isnan(turn.galerkin(1)).all()  # there is none
    np.testing.assert_array_equal(turn.solution(1), [0.0, 0.0])


@pytest.mark.parametrize("scale", [1e-160, 1e-100, 1e150, 1e200])
def test_scales_whose_squares_overflow_or_vanish(scale: float) -> None:
    rng = np.random.default_rng(7)
    A, b = rng.standard_normal((8, 8)), rng.standard_normal((8, 1))
    expected = solved(A, b, 8).solutions(8)
    np.testing.assert_allclose(solved(A * scale, b * scale, 8).solutions(8), expected, rtol=1e-10)
    assert norm(np.full(4, scale)) == pytest.approx(2 * scale)


def test_nothing_to_solve() -> None:
    path = KrylovPath(np.zeros(0))
    assert path.finished
    assert path.solution(3).shape == (0,)
