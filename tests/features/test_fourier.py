from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tlstd.errors import CapacityError, InvalidInputError, InvalidParameterError
from tlstd.features import Fourier


def test_one_dimension_by_hand() -> None:
    """u = ¼: cos 0, cos π/4, cos π/2, cos 3π/4."""
    root = np.sqrt(0.5)
    basis = Fourier([-1.0], [3.0], order=3)
    assert basis.n_features == 4
    assert_allclose(basis.encode([0.0]), [1.0, root, 0.0, -root], atol=1e-15)
    assert_array_equal(basis.encode([-1.0]), [1, 1, 1, 1])
    assert_allclose(basis.encode([3.0]), [1, -1, 1, -1], rtol=1e-15)
    assert_array_equal(basis.encode([7.0]), basis.encode([3.0]))


def test_two_dimensions_by_hand() -> None:
    """u = (½, ⅓): c·u = 0, ⅓, ⅔ for c₁ = 0; ½, ⅚, 7/6 for c₁ = 1."""
    basis = Fourier([0.0, 0.0], [2.0, 3.0], order=(1, 2))
    assert_array_equal(basis.coefficients, [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]])
    root = np.sqrt(0.75)
    assert_allclose(basis.encode([1.0, 1.0]), [1.0, 0.5, -0.5, 0.0, -root, -root], atol=1e-15)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("max_coupling", [None, 1, 2, 3, 4])
def test_the_formula(max_coupling: int | None, bias: bool) -> None:
    low, high, order = np.array([-1.0, 0.0, 5.0, 2.0]), np.array([2.0, 0.1, 9.0, 3.0]), (2, 1, 3, 2)
    basis = Fourier(low, high, order=order, max_coupling=max_coupling, bias=bias)
    kept = [
        c
        for c in product(*(range(n + 1) for n in order))  # sorted like words
        if np.count_nonzero(c) <= (4 if max_coupling is None else max_coupling) and (bias or any(c))
    ]
    assert basis.n_features == len(kept)
    assert_array_equal(basis.coefficients, kept)
    states = np.random.default_rng(0).uniform(low, high, size=(20, 4))
    u = (states - low) / (high - low)
    assert_allclose(basis.encode_many(states), np.cos(np.pi * u @ np.array(kept).T), rtol=1e-12, atol=1e-14)


def test_the_features_are_orthogonal() -> None:
    """In one dimension, ∫ φ_c φ_c' over the box is 0 for c ≠ c', 1 for the constant, else ½; midpoints are exact."""
    X = Fourier([0.0], [1.0], order=5).encode_many((np.arange(20)[:, None] + 0.5) / 20)
    assert_allclose(X.T @ X / 20, np.diag([1.0, 0.5, 0.5, 0.5, 0.5, 0.5]), atol=1e-14)


def test_many_dimensions_need_a_limit_on_the_coupling() -> None:
    box: dict[str, Any] = {"low": [0.0] * 30, "high": [1.0] * 30}
    with pytest.raises(CapacityError, match=r"order=3 in 30 dimensions .* makes 1152921504606846976 features"):
        Fourier(**box, order=3)
    basis = Fourier(**box, order=3, max_coupling=2)
    assert basis.n_features == 1 + 30 * 3 + 435 * 9
    assert basis.coefficients[0].max() == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"low": [0.0]}, r"low and high have shapes \(1,\) and \(2,\)"),
        ({"low": [], "high": []}, r"low and high have shapes \(0,\) and \(0,\)"),
        ({"low": [0.0, 1.0]}, r"low\[1\] is 1\.0 and high\[1\] is 1\.0"),
        ({"low": [-1e308, 0.0], "high": [1e308, 1.0]}, r"low\[0\] is -1e\+308 .*: the box needs a finite range"),
        ({"order": 0}, "order is 0: it must be an integer >= 1, or 2 of them"),
        ({"order": (3, 4, 5)}, r"order is \(3, 4, 5\)"),
        ({"order": 3.0}, r"order is 3\.0"),
        ({"order": True}, "order is True"),
        ({"max_coupling": 0}, "max_coupling is 0: it must be an integer from 1 to 2"),
        ({"max_coupling": 3}, "max_coupling is 3"),
        ({"max_coupling": 1.5}, r"max_coupling is 1\.5"),
    ],
)
def test_bad_parameters(changes: dict[str, Any], message: str) -> None:
    parameters: dict[str, Any] = {"low": [0.0, 0.0], "high": [1.0, 1.0], "order": 4}
    with pytest.raises(InvalidParameterError, match=message):
        Fourier(**(parameters | changes))


def test_bad_states() -> None:
    basis = Fourier([0.0, 0.0], [1.0, 1.0], order=4)
    with pytest.raises(InvalidInputError, match=r"the state has shape \(3,\): pass \(2,\), or use encode_many"):
        basis.encode([0.0, 0.0, 0.0])
    with pytest.raises(InvalidInputError, match=r"state 1 is \[0\.5, nan\]: clean or drop"):
        basis.encode_many([[0.0, 0.0], [0.5, np.nan]])
