from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from tlstd_lab.theorem import Bound, bound, compare, proof_steps

from tlstd.core.arrays import FloatArray
from tlstd.diagnostics import picard
from tlstd.errors import InvalidInputError, InvalidParameterError


class Case(NamedTuple):
    A: FloatArray
    b: FloatArray
    A_t: FloatArray
    b_t: FloatArray


def random_cases(n: int, seed: int) -> Iterator[Case]:
    """Systems of any size, spectrum, rank and closeness; every third with b_t = A_t w*, every fifth with repeated σ."""
    rng = np.random.default_rng(seed)
    for i in range(n):
        d = int(rng.integers(2, 9))
        sigma = np.sort(np.exp(rng.normal(0.0, 2.0, d)))[::-1]
        if i % 5 == 0:
            sigma = np.repeat(sigma[::2], 2)[:d]
        if i % 4 == 0:
            sigma[d - int(rng.integers(0, d)) :] = 0.0
        U, V = (np.linalg.qr(rng.standard_normal((d, d)))[0] for _ in range(2))
        A = (U * sigma) @ V.T
        w = V @ (sigma ** rng.uniform(0.0, 2.0) * rng.standard_normal(d))
        A_t = A + 10.0 ** rng.uniform(-6.0, 1.0) * rng.standard_normal((d, d)) * (sigma if i % 7 == 0 else 1.0)
        noise = 0.0 if i % 3 == 0 else 10.0 ** rng.uniform(-6.0, 0.0)
        yield Case(A, A @ w, A_t, A_t @ w + noise * rng.standard_normal(d))


def literal(case: Case, rank: int, p: float, *, squared: bool) -> float:
    """The theorem's right-hand side as it is printed, in loops; signs of singular vectors matched."""
    U, sigma, Vt = np.linalg.svd(case.A)
    _, sigma_t, Vt_t = np.linalg.svd(case.A_t)
    k = int(np.linalg.matrix_rank(case.A, tol=1e-12 * sigma[0]))
    d = sigma.size
    w = sum((Vt[j] * (U[:, j] @ case.b) / sigma[j] for j in range(k)), start=np.zeros(d))
    distances = 0.0
    for j in range(k):
        sign = 1.0 if Vt[j] @ Vt_t[j] >= 0.0 else -1.0
        distance = float(np.linalg.norm(Vt[j] * sigma[j] ** (p - 1.0) - sign * Vt_t[j] * sigma_t[j] ** (p - 1.0)))
        distances += distance**2 if squared else distance
    last = sigma[rank - 1] if rank <= k else 0.0
    epsilon = min(k * sigma[0] ** (p - 1.0), distances + sigma_t[rank - 1] ** (p - 1.0) - last ** (p - 1.0))
    noise = np.linalg.norm(case.b_t - case.A_t @ w) / sigma_t[rank - 1]
    return float(noise + (d - rank) * epsilon + (d - rank) * last ** (p - 1.0))


def true_error(case: Case, rank: int) -> float:
    """‖w_{t,r} − w*‖ by pseudo-inverses."""
    U, sigma, Vt = np.linalg.svd(case.A_t)
    cut = (U[:, :rank] * sigma[:rank]) @ Vt[:rank]
    w_t = np.linalg.pinv(cut, rcond=1e-12) @ case.b_t
    return float(np.linalg.norm(w_t - np.linalg.pinv(case.A, rcond=1e-12) @ case.b))


def turned(theta: float, s: float = 0.01) -> tuple[Case, FloatArray]:
    """A = diag(1, s, s/2) and A turned by θ in the plane of axes 1 and 3; |uᵢᵀb| = σᵢ² and b_t = A_t w*."""
    A = np.diag([1.0, s, s / 2])
    turn = np.eye(3)
    turn[np.ix_([0, 2], [0, 2])] = [[np.cos(theta), np.sin(theta)], [-np.sin(theta), np.cos(theta)]]
    w = np.array([1.0, s, s / 2])
    return Case(A, A @ w, A @ turn, A @ turn @ w), w


def test_terms_are_those_of_the_formula() -> None:
    rng = np.random.default_rng(0)
    for case in random_cases(40, 1):
        rank = int(rng.integers(1, case.b.size + 1))
        p = float(rng.uniform(1.0, 4.0))
        result = bound(*case, rank, p=p, alignment="signs")
        if not np.isfinite(result.noise):
            continue
        assert_allclose(result.norm.total, literal(case, rank, p, squared=False), rtol=1e-6, atol=1e-9)
        assert_allclose(result.squared.total, literal(case, rank, p, squared=True), rtol=1e-6, atol=1e-9)
        assert_allclose(result.error, true_error(case, rank), rtol=1e-6, atol=result.tolerance)


def test_error_is_made_of_two_orthogonal_parts() -> None:
    for case in random_cases(40, 2):
        for rank in range(1, case.b.size + 1):
            result = bound(*case, rank)
            parts = np.hypot(result.noise_part, result.bias_part)
            assert_allclose(result.error, parts, rtol=1e-9, atol=result.tolerance)


def test_diagonal_case_by_hand() -> None:
    """A_t = A, b_t = b: what is left is the bias |w₂| = 0.2; p = 2, so σᵣᵖ⁻¹ = 1 and ε = 0."""
    A = np.diag([1.0, 0.5])
    result = bound(A, [0.3, 0.1], A, [0.3, 0.1], 1, p=2.0)
    assert result.assumption_holds
    assert_allclose([result.error, result.noise, result.norm.drift, result.norm.bias], [0.2, 0.0, 0.0, 1.0], atol=1e-15)
    assert_allclose([result.corrected.total, result.corrected.split], [0.2, 1])
    assert_allclose(result.corrected_picard.total, 0.5)  # σ₂ᵖ⁻¹


@pytest.mark.parametrize("alignment", ["rotations", "signs", "none"])
def test_norm_reading_and_ours_hold_in_all_cases(alignment: Any) -> None:
    n = 0
    for case in random_cases(110, 3):  # more than 105: every pair of kinds
        comparison = compare(*case, alignment=alignment)
        for rank in range(1, case.b.size + 1):
            result = comparison.bound(rank, constant=None)
            assert result.assumption_holds
            assert result.holds(result.norm.total), result
            assert result.holds(result.corrected.total), result
            assert result.holds(result.corrected_picard.total), result
            assert min(result.norm.cap, result.norm.difference) >= -1e-9 * result.norm.cap
            n += 1
    assert n > 500


def test_steps_of_the_proof_hold_for_norms() -> None:
    for case in random_cases(60, 4):
        comparison = compare(*case)
        for rank in range(1, comparison.rank_t + 1):
            reading = comparison.bound(rank, constant=None).norm
            steps = proof_steps(comparison, rank, p=reading.p, constant=reading.constant)
            assert [step for step in steps[:-1] if not step.holds] == []


def test_last_line_of_the_proof_fails_for_a_large_bias() -> None:
    """10 = |w₂| is below the bound 10, its square is not."""
    A = np.diag([1.0, 1.0 - 1e-6])
    comparison = compare(A, [0.0, 10.0], A, [0.0, 10.0])
    steps = {step.name: step for step in proof_steps(comparison, 1, p=1.5, constant=10.1)}
    assert [name for name, step in steps.items() if not step.holds] == ["last line"]


def test_squared_reading_fails_in_closed_form() -> None:
    theta, s = 0.1, 0.01
    case, w = turned(theta, s)
    result = bound(*case, 2, p=2.0)
    assert result.assumption_holds
    assert_allclose(result.error, abs(np.sin(theta) * w[0] - np.cos(theta) * w[2]), rtol=1e-12)
    squares = (1.0 + (s / 2) ** 2) * (2.0 - 2.0 * np.cos(theta))
    assert_allclose(result.squared.total, squares + s, rtol=1e-10)
    assert not result.holds(result.squared.total)
    assert result.holds(result.norm.total)
    assert result.holds(result.corrected.total)


def test_squared_reading_fails_at_every_small_angle() -> None:
    """The bias is of first order in θ, the squared reading of second."""
    for theta in (0.2, 0.02, 0.002):
        case, _ = turned(theta, s=theta**2)
        result = bound(*case, 2, p=2.0)
        assert result.assumption_holds
        assert not result.holds(result.squared.total)
        assert result.holds(result.norm.total)


def test_broken_steps_of_the_squared_reading() -> None:
    comparison = compare(*turned(0.1)[0])
    broken = [step.name for step in proof_steps(comparison, 2, p=2.0, squared=True) if not step.holds]
    assert broken[0].startswith("split")
    assert all(step.holds for step in proof_steps(comparison, 2, p=2.0))


def test_assumption_in_another_basis() -> None:
    """A = σI: Assumption 1 holds on the axes but not on the diagonals, where A_t's vectors are."""
    s, p, t = 0.5, 2.0, 1e-6
    A, b = s * np.eye(2), s**p * np.ones(2)
    assert p in picard(A, b).exponents()
    A_t = A - t * np.ones((2, 2)) / 2  # the smaller singular value belongs to (1, 1)
    b_t = A_t @ np.full(2, s ** (p - 1.0))
    chosen, fixed = (bound(A, b, A_t, b_t, 1, p=p, alignment=a) for a in ("rotations", "signs"))
    assert_allclose(chosen.error, np.sqrt(2.0) * s ** (p - 1.0), rtol=1e-9)
    assert_allclose(chosen.norm.total, s ** (p - 1.0), rtol=1e-5)
    assert [chosen.assumption_holds, chosen.holds(chosen.norm.total)] == [False, False]
    assert [fixed.assumption_holds, fixed.holds(fixed.norm.total)] == [True, True]
    assert chosen.norm.difference < 1e-5  # ε(t) → 0
    assert fixed.norm.difference > 0.5
    assert_allclose(chosen.corrected.total, chosen.error, rtol=1e-9)


def test_signs_change_the_stated_bound_and_not_ours() -> None:
    case = next(random_cases(2, 5))
    flipped = compare(*case, alignment="none")
    signs = np.where(np.arange(case.b.size) % 2 == 0, 1.0, -1.0)
    for array in (flipped.U, flipped.V):
        array *= signs
    aligned, raw = compare(*case).bound(1, p=1.5), flipped.bound(1, p=1.5)
    assert raw.norm.difference > aligned.norm.difference
    assert_allclose([raw.error, raw.corrected.total], [aligned.error, aligned.corrected.total], rtol=1e-9)


def test_fewer_singular_values_than_the_rank() -> None:
    A, A_t = np.diag([1.0, 0.5, 0.25]), np.diag([1.0, 0.5, 0.0])
    result = bound(A, [1.0, 0.5, 0.25], A_t, [1.0, 0.5, 0.0], 3)
    assert (result.effective_rank, result.noise, result.norm.total) == (2, np.inf, np.inf)
    assert_allclose(result.error, 1.0)
    assert_allclose(result.corrected.total, np.sqrt(2.0) + 0.25)  # s = 1: ‖E‖ / (σ₁ − 0) = ¼
    nothing = bound(A, [1.0, 0.5, 0.25], np.zeros((3, 3)), np.zeros(3), 1)
    assert nothing.effective_rank == 0
    assert_allclose([nothing.error, nothing.corrected.total], np.sqrt(3.0))


def test_bias_term_of_redundant_features_is_not_needed() -> None:
    """r = rank(A) < d: nothing is cut off, but the stated bias is (d − r) σᵣᵖ⁻¹."""
    A = np.diag([1.0, 0.5, 0.0, 0.0])
    result = bound(A, [0.5, 0.2, 0.0, 0.0], A, [0.5, 0.2, 0.0, 0.0], 2, p=1.3)
    assert_allclose(result.norm.bias, 2 * 0.5**0.3)
    assert_allclose([result.error, result.corrected.total], 0.0, atol=1e-15)


def test_best_exponent_is_within_the_interval_and_no_worse_than_others() -> None:
    A = np.diag([0.9, 0.3, 0.1, 0.02])
    b = np.diag(A) ** 2.5
    A_t = A + 1e-3
    interval = picard(A, b).exponents()
    best = bound(A, b, A_t, b, 2)
    assert best.assumption_holds
    assert best.norm.p <= interval.high
    for p in np.linspace(1.01, interval.high, 30):
        assert best.norm.total <= bound(A, b, A_t, b, 2, p=float(p)).norm.total * 1.01


def test_no_exponent_satisfies() -> None:
    result = bound(np.diag([0.5, 0.1]), [5.0, 1.0], np.diag([0.5, 0.1]), [5.0, 1.0], 1)
    assert not result.assumption_holds
    assert result.norm.p == 1.0


def test_scaling_the_rewards_scales_everything() -> None:
    case = list(random_cases(3, 6))[1]
    once = bound(*case, 1, constant=None)
    ten = bound(case.A, 10.0 * case.b, case.A_t, 10.0 * case.b_t, 1, constant=None)
    for name in ("norm", "squared", "corrected", "corrected_picard"):
        assert_allclose(getattr(ten, name).total, 10.0 * getattr(once, name).total, rtol=1e-9)


def test_zero_system() -> None:
    result = bound(np.zeros((2, 2)), [0.0, 0.0], np.eye(2), [1.0, 0.0], 1)
    assert_allclose([result.error, result.noise, result.corrected.total], 1.0)


def test_sparse_matrices() -> None:
    case = next(random_cases(1, 7))
    dense, sparse = bound(*case, 1), bound(sp.csr_array(case.A), case.b, sp.csr_array(case.A_t), case.b_t, 1)
    assert isinstance(sparse, Bound)
    assert sparse.norm == dense.norm


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((np.eye(2), [1, 1], np.eye(2), [1, 1], 3), {}, "rank is 3: it must be an integer from 1 to 2"),
        ((np.eye(2), [1, 1], np.eye(2), [1, 1], 0), {}, "rank is 0"),
        ((np.eye(2), [1, 1], np.eye(2), [1, 1], 1), {"p": 0.5}, "p is 0.5"),
        ((np.eye(2), [1, 1], np.eye(2), [1, 1], 1), {"constant": -1.0}, "constant is -1"),
        ((np.eye(2), [1, 1], np.eye(2), [1, 1], 1), {"alignment": "both"}, "alignment is 'both'"),
    ],
)
def test_bad_parameters(arguments: Any, options: Any, message: str) -> None:
    with pytest.raises(InvalidParameterError, match=message):
        bound(*arguments, **options)


def test_bad_input() -> None:
    with pytest.raises(InvalidInputError, match=r"A has shape \(2, 2\) and A_t \(3, 3\)"):
        bound(np.eye(2), [1, 1], np.eye(3), [1, 1, 1], 1)
    with pytest.raises(InvalidInputError, match=r"pass two square matrices"):
        bound(np.ones((2, 3)), [1, 1], np.ones((2, 3)), [1, 1], 1)
    with pytest.raises(InvalidInputError, match="b_t has 3 entries where A_t has 2 rows"):
        bound(np.eye(2), [1, 1], np.eye(2), [1, 1, 1], 1)
