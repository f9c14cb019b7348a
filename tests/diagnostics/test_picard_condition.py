from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tlstd.core.arrays import FloatArray
from tlstd.diagnostics import Exponents, picard, plot_picard
from tlstd.domains import boyan_chain
from tlstd.errors import InvalidInputError, InvalidParameterError


def rotated(sigma: FloatArray, coefficients: FloatArray, seed: int) -> tuple[FloatArray, FloatArray]:
    """A system with these singular values and these uᵢᵀb, in random orthonormal bases."""
    rng = np.random.default_rng(seed)
    U, V = (np.linalg.qr(rng.standard_normal((sigma.size, sigma.size)))[0] for _ in range(2))
    return (U * sigma) @ V.T, U @ coefficients


def test_interval_is_known_by_construction() -> None:
    """σ > 1 bounds p from below, σ < 1 from above, σ = 1 and uᵢᵀb = 0 do not."""
    A, b = rotated(np.array([4.0, 2.0, 1.0, 0.5, 0.1]), np.array([4.0**1.5, 2.0**1.2, 1.0, 0.5**3.0, 0.0]), 0)
    interval = picard(A, b).exponents()
    assert_allclose([interval.low, interval.high], [1.5, 3.0], rtol=1e-12)


def test_one_exponent_fits_exactly() -> None:
    sigma = np.array([5.0, 2.0, 0.3, 0.02])
    condition = picard(*rotated(sigma, sigma**1.7, 1))
    interval = condition.exponents()
    assert not interval.empty
    assert_allclose([interval.low, interval.high], 1.7, rtol=1e-10)
    assert_allclose([condition.constant(1.7), *condition.trend()[:2]], [1.0, 1.7, 1.0], rtol=1e-10)
    assert_allclose(condition.average(1.7), [1.0, 0.0], atol=1e-10)


@pytest.mark.parametrize("seed", range(30))
def test_interval_against_trying_out(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sigma = np.sort(np.exp(rng.normal(0.0, 1.0, 4)))[::-1]
    coefficients = sigma ** rng.uniform(0.8, 4.0, 4)
    constant = float(np.exp(rng.normal()))
    condition = picard(*rotated(sigma, coefficients, seed))
    strict, average = condition.exponents(constant), condition.average_exponents(constant)
    exponents = np.linspace(1.001, 12.0, 500)
    ratios = coefficients / sigma ** exponents[:, None]
    for p, largest, mean in zip(exponents, ratios.max(axis=1), ratios.mean(axis=1), strict=True):
        if abs(largest / constant - 1.0) > 1e-9:
            assert (p in strict) == (largest < constant)
        if abs(mean / constant - 1.0) > 1e-9:
            assert (p in average) == (mean < constant)
    some = slice(None, None, 10)
    assert_allclose([condition.constant(float(p)) for p in exponents[some]], ratios[some].max(axis=1), rtol=1e-9)
    means = np.column_stack([ratios.mean(axis=1), ratios.std(axis=1)])
    assert_allclose([condition.average(float(p)) for p in exponents[some]], means[some], rtol=1e-8)


def test_scale_decides_about_the_condition_as_stated() -> None:
    """|vᵢᵀw*| must be below one: ten times the rewards, and the condition is broken; the constant takes it up."""
    A, b = rotated(np.array([0.5, 0.1, 0.01]), np.array([0.3, 0.03, 0.001]), 2)
    assert 1.01 in picard(A, b).exponents()
    assert picard(A, 10.0 * b).exponents().empty
    assert_allclose(picard(A, 10.0 * b).exponents(10.0).high, picard(A, b).exponents().high, rtol=1e-9)


def test_only_p_above_one_counts() -> None:
    assert picard([[0.5]], [0.5]).exponents().empty
    assert picard([[0.5]], [0.5]).exponents(2.0) == Exponents(1.0, pytest.approx(2.0))  # type: ignore[arg-type]
    assert picard([[2.0]], [1.0]).exponents() == Exponents(1.0, np.inf)
    assert picard([[1.0]], [1.0]).exponents() == Exponents(1.0, np.inf)
    assert picard([[1.0]], [1.1]).exponents().empty
    assert picard([[1.0]], [1.1]).average_exponents().empty
    assert picard([[2.0]], [8.0]).average_exponents() == Exponents(pytest.approx(3.0), np.inf)  # type: ignore[arg-type]


def test_null_directions() -> None:
    """What is numerically zero is no singular value; the part of b outside A's range meets the smallest one."""
    A = np.diag([0.5, 0.2, 1e-14])
    condition = picard(A, [0.1, 0.02, 0.01])
    assert condition.singular_values.size == 2
    assert condition.outside == pytest.approx(0.01)
    assert_allclose(condition.exponents().high, np.log(0.02) / np.log(0.2))
    assert_allclose(picard(A, [0.1, 0.02, 0.03]).exponents().high, np.log(0.03) / np.log(0.2))
    assert picard(A, [0.1, 0.02, 1e-16]).outside == 0.0
    assert picard(A, [0.1, 0.02, 0.0], rcond=0.0).singular_values.size == 3
    assert picard(np.zeros((2, 2)), [0.0, 0.0]).exponents() == Exponents(1.0, np.inf)
    assert picard(np.zeros((2, 2)), [0.0, 1.0]).exponents().empty


def test_trend_needs_two_singular_values() -> None:
    assert np.isnan(picard(np.eye(3), [1.0, 2.0, 3.0]).trend().p)
    assert np.isnan(picard(np.eye(2), [0.0, 0.0]).trend().p)


def test_lambda_decides_about_boyan_chain() -> None:
    assert picard(*boyan_chain(101).system(0.0)).trend().p < -1.0
    assert picard(*boyan_chain(101).system(1.0)).trend().p > 2.0


def test_plot_shows_points_trend_and_the_line_of_one() -> None:
    sigma = np.array([1.0, 0.1, 0.01])
    axis = plot_picard(picard(*rotated(sigma, sigma**2, 4)), label="one")
    points, trend, line = axis.lines
    for drawn in (points, trend):
        assert_allclose(np.asarray(drawn.get_xydata(), dtype=np.float64), np.column_stack([sigma, sigma**2]), rtol=1e-9)
    assert line.get_gid() == "p=1"
    assert (axis.get_xscale(), axis.get_yscale()) == ("log", "log")
    assert len(plot_picard(picard(np.diag([1.0, 0.5]), [1.0, 1e-13]), axis).lines) == 4  # rounding, one point: no trend


def test_matplotlib_is_imported_by_the_plot_only() -> None:
    code = "import sys, tlstd.diagnostics; print({'matplotlib', 'numba'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set()"


@pytest.mark.parametrize(
    ("A", "b", "message"),
    [
        (np.eye(2), [1.0], "b has 1 entries where A has 2 rows"),
        (np.zeros((0, 0)), [], r"A has shape \(0, 0\)"),
        (np.eye(2), [1.0, np.inf], "b contains inf"),
        ([[1j]], [1.0], "A has values of type complex"),
    ],
)
def test_bad_system(A: Any, b: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        picard(A, b)


def test_bad_parameters() -> None:
    condition = picard(np.eye(2), [1.0, 1.0])
    for call in (condition.exponents, condition.average_exponents):
        with pytest.raises(InvalidParameterError, match="constant is 0"):
            call(0.0)
    with pytest.raises(InvalidParameterError, match="p is nan"):
        condition.constant(np.nan)
    with pytest.raises(InvalidParameterError, match="rcond is 1"):
        picard(np.eye(2), [1.0, 1.0], rcond=1.0)
