from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tlstd.errors import InvalidInputError, InvalidParameterError
from tlstd.features import RBF


def test_by_hand() -> None:
    """Widths ½ · 1 and ¼ · 2, centres {0, 1} × {0, 1, 2}; from (¼, 1½) the squares are {¼, 2¼} and {9, 1, 1}."""
    rbf = RBF([0.0, 0.0], [1.0, 2.0], grid=(2, 3), width=(0.5, 0.25), bias=True)
    assert rbf.n_features == 7
    assert_array_equal(rbf.centres, [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]])
    expected = [*np.exp([-9.25, -1.25, -1.25, -11.25, -3.25, -3.25]), 1.0]
    assert_allclose(rbf.encode([0.25, 1.5]), expected, rtol=1e-14)


def test_paper_sizes() -> None:
    rbf = RBF([-1.2, -0.07], [0.6, 0.07], grid=32, width=0.12)
    assert rbf.n_features == 1024
    # one grid step to the right of a centre is range/31: exp(−(1 / (31 · 0.12))²)
    assert_allclose(rbf.encode([-1.2, -0.07])[[0, 1, 32, 33]], np.exp(-np.array([0, 1, 1, 2]) / 3.72**2), rtol=1e-12)


def test_both_conventions_by_hand() -> None:
    """One width from the centre: exp(−1) without the ½, exp(−½) with it. Two widths: exp(−4) and exp(−2)."""
    for convention, exponents in (("paper", [0, -1, -4]), ("gaussian", [0, -0.5, -2])):
        rbf = RBF([0.0], [4.0], grid=3, width=0.5, convention=convention)  # type: ignore[arg-type]
        assert rbf.convention == convention
        assert_allclose(rbf.encode([0.0]), np.exp(exponents), rtol=1e-15)


OPTIONS: list[dict[str, Any]] = [
    {"width": 0.3},
    {"width": 0.3, "convention": "paper"},
    {"width": 0.3 * np.sqrt(2.0)},
    {"width": 0.3, "convention": "gaussian"},
]


def test_the_paper_convention_is_the_default_and_root_two_relates_them() -> None:
    states = np.random.default_rng(1).uniform(size=(50, 2))
    default, paper, wide, gaussian = (
        RBF([0.0, 0.0], [1.0, 1.0], grid=(4, 3), **options).encode_many(states) for options in OPTIONS
    )
    assert_array_equal(default, paper)
    assert_allclose(gaussian, wide, rtol=1e-13)
    assert_allclose(gaussian**2, paper, rtol=1e-13)


@pytest.mark.parametrize("bias", [False, True])
def test_encode_many_is_encode_by_rows_and_the_formula(bias: bool) -> None:
    low, high, width = np.array([-1.0, 0.0, 5.0]), np.array([2.0, 0.1, 9.0]), np.array([0.3, 0.2, 0.5])
    rbf = RBF(low, high, grid=(3, 4, 2), width=width.tolist(), bias=bias)
    states = np.random.default_rng(0).uniform(low, high, size=(20, 3))
    encoded = rbf.encode_many(states)
    assert encoded.shape == (20, 24 + bias)
    assert encoded.flags.c_contiguous
    scaled = (states[:, None] - rbf.centres) / (width * (high - low))
    assert_allclose(encoded[:, :24], np.exp(-(scaled**2).sum(axis=2)), rtol=1e-12)
    assert_array_equal(encoded[:, 24:], 1.0)
    for row, state in zip(encoded, states, strict=True):
        assert_allclose(rbf.encode(state), row, rtol=1e-15)


def test_states_outside_count_as_on_the_edge() -> None:
    rbf = RBF([0.0, 0.0], [1.0, 1.0], grid=4, width=0.2)
    assert_array_equal(rbf.encode([-3.0, np.inf]), rbf.encode([0.0, 1.0]))


def test_no_states() -> None:
    assert RBF([0.0], [1.0], grid=3, width=0.5).encode_many(np.zeros((0, 1))).shape == (0, 3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"low": [0.0]}, r"low and high have shapes \(1,\) and \(2,\)"),
        ({"low": [0.0, 1.0]}, r"low\[1\] is 1\.0 and high\[1\] is 1\.0"),
        ({"grid": 1}, "grid is 1: it must be an integer >= 2"),
        ({"grid": (3, 4, 5)}, r"grid is \(3, 4, 5\)"),
        ({"grid": 3.0}, r"grid is 3\.0"),
        ({"width": 0.0}, r"width is 0\.0"),
        ({"width": [0.1, -0.1]}, r"width is \[0\.1, -0\.1\]"),
        ({"width": [0.1, 0.1, 0.1]}, r"width is \[0\.1, 0\.1, 0\.1\]: .* or 2 of them"),
        ({"width": np.nan}, "width is nan"),
        ({"convention": "normal"}, "convention is 'normal': it must be one of 'paper', 'gaussian'"),
    ],
)
def test_bad_parameters(changes: dict[str, Any], message: str) -> None:
    parameters: dict[str, Any] = {"low": [0.0, 0.0], "high": [1.0, 1.0], "grid": 4, "width": 0.2}
    with pytest.raises(InvalidParameterError, match=message):
        RBF(**(parameters | changes))


def test_bad_states() -> None:
    rbf = RBF([0.0, 0.0], [1.0, 1.0], grid=4, width=0.2)
    with pytest.raises(InvalidInputError, match=r"the state has shape \(3,\)"):
        rbf.encode([0.0, 0.0, 0.0])
    with pytest.raises(InvalidInputError, match=r"states have shape \(2,\)"):
        rbf.encode_many([0.0, 0.0])
    with pytest.raises(InvalidInputError, match=r"state 1 is \[0\.5, nan\]"):
        rbf.encode_many([[0.0, 0.0], [0.5, np.nan]])
