from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from tlstd.errors import InvalidInputError, InvalidParameterError
from tlstd.features import TileCoder


@pytest.mark.parametrize(
    ("state", "indices"),
    [
        # three tiles of width ½; tiling 1 lies 1/6 lower, so its boundaries are at 1/3 and 5/6
        (0.0, [0, 3]),
        (0.3, [0, 3]),
        (0.4, [0, 4]),
        (0.5, [1, 4]),
        (0.8, [1, 4]),
        (0.9, [1, 5]),
        (1.0, [2, 5]),
        (-7.0, [0, 3]),  # outside: as on the edge
        (7.0, [2, 5]),
        (np.inf, [2, 5]),
    ],
)
def test_one_dimension_by_hand(state: float, indices: list[int]) -> None:
    coder = TileCoder([0.0], [1.0], tiles=3, tilings=2)
    assert_array_equal(coder.encode([state]).indices, indices)


@pytest.mark.parametrize(
    ("state", "indices"),
    [
        # tiles 2 × 3: widths 1 and ½; tiling 1 lies ¼ and 1/6 lower; index = 6 j + 3 k₁ + k₂; bias 12
        ((0.8, 0.9), [1, 11, 12]),
        ((0.0, 0.0), [0, 6, 12]),
        ((0.7, 0.3), [0, 6, 12]),
        ((0.76, 0.3), [0, 9, 12]),
        ((0.76, 0.5), [1, 10, 12]),
        ((1.0, 1.0), [5, 11, 12]),
    ],
)
def test_two_dimensions_by_hand(state: tuple[float, float], indices: list[int]) -> None:
    coder = TileCoder([0.0, 0.0], [1.0, 1.0], tiles=(2, 3), tilings=2, bias=True)
    assert coder.n_features == 13
    assert coder.n_active == 3
    x = coder.encode(state)
    assert_array_equal(x.indices, indices)
    assert_array_equal(x.values, 1.0)
    assert x.size == 13


def test_mountain_car_indices() -> None:
    """(−0.5, 0): u = (0.38889, 0.5); 9 u = (3.5, 4.5); tiling j adds 0.09 j: both reach the next tile at j = 6."""
    coder = TileCoder([-1.2, -0.07], [0.6, 0.07], tiles=10, tilings=10)
    assert coder.n_features == 1000
    expected = [34, 134, 234, 334, 434, 534, 645, 745, 845, 945]
    assert_array_equal(coder.encode([-0.5, 0.0]).indices, expected)


def test_energy_sizes() -> None:
    assert TileCoder([0] * 4, [1] * 4, tiles=(5, 5, 10, 5), tilings=32, bias=True).n_features == 40_001


def test_one_tile_ignores_the_dimension() -> None:
    coder = TileCoder([0.0, 0.0], [1.0, 1.0], tiles=(1, 4), tilings=3)
    states = np.array([[0.0, 0.6], [0.5, 0.6], [1.0, 0.6]])
    assert_array_equal(coder.indices(states), coder.indices(states[:1]).repeat(3, axis=0))
    assert coder.n_features == 12


def test_every_tile_of_every_tiling_can_be_met() -> None:
    coder = TileCoder([-1.0, 2.0], [1.0, 5.0], tiles=(3, 4), tilings=5)
    axes = [np.linspace(a, b, 200) for a, b in zip(coder.low, coder.high, strict=True)]
    states = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    assert_array_equal(np.unique(coder.indices(states)), np.arange(coder.n_features))


@given(
    tiles=st.lists(st.integers(1, 12), min_size=1, max_size=3),
    tilings=st.integers(1, 9),
    bias=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_encode_many_is_encode_by_rows(tiles: list[int], tilings: int, bias: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    low = rng.normal(size=len(tiles))
    high = low + rng.uniform(0.1, 10.0, size=len(tiles))
    coder = TileCoder(low, high, tiles=tiles, tilings=tilings, bias=bias)
    states = rng.uniform(low - 1.0, high + 1.0, size=(4, len(tiles)))
    states = np.vstack([states, low, high])
    X = coder.encode_many(states)
    assert X.shape == (6, coder.n_features)
    assert X.has_canonical_format
    for i, state in enumerate(states):
        x = coder.encode(state)
        assert x.nnz == coder.n_active == tilings + bias
        assert_array_equal(X[[i]].toarray()[0], x.toarray())
        # the formula of the docstring, in scalars
        for j in range(tilings):
            index = 0
            for s, a, b, n in zip(state, low, high, tiles, strict=True):
                u = (min(max(s, a), b) - a) / (b - a)
                index = index * n + min(math.floor((u + j / (tilings * n)) * (n - 1)), n - 1)
            assert x.indices[j] == j * math.prod(tiles) + index


def test_no_states() -> None:
    assert TileCoder([0.0], [1.0], tiles=3, tilings=2).encode_many(np.zeros((0, 1))).shape == (0, 6)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"low": [0.0]}, r"low and high have shapes \(1,\) and \(2,\)"),
        ({"low": [0.0, 2.0]}, r"low\[1\] is 2\.0 and high\[1\] is 1\.0"),
        ({"high": [1.0, np.inf]}, r"low\[1\] is 0\.0 and high\[1\] is inf"),
        ({"tiles": 0}, "tiles is 0"),
        ({"tiles": (3, 4, 5)}, r"tiles is \(3, 4, 5\): pass an integer >= 1, or 2 of them"),
        ({"tiles": 2.5}, r"tiles is 2\.5"),
        ({"tilings": 0}, "tilings is 0"),
        ({"tilings": True}, "tilings is True"),
        ({"tiles": 2**32}, "make .* features, more than 64-bit"),
    ],
)
def test_bad_parameters(changes: dict[str, Any], message: str) -> None:
    parameters: dict[str, Any] = {"low": [0.0, 0.0], "high": [1.0, 1.0], "tiles": 4, "tilings": 3}
    with pytest.raises(InvalidParameterError, match=message):
        TileCoder(**(parameters | changes))


def test_bad_states() -> None:
    coder = TileCoder([0.0, 0.0], [1.0, 1.0], tiles=4, tilings=3)
    with pytest.raises(InvalidInputError, match=r"the state has shape \(3,\)"):
        coder.encode([0.0, 0.0, 0.0])
    with pytest.raises(InvalidInputError, match=r"states have shape \(2,\)"):
        coder.encode_many([0.0, 0.0])
    with pytest.raises(InvalidInputError, match=r"state 1 is \[0\.5, nan\]"):
        coder.encode_many([[0.0, 0.0], [0.5, np.nan]])
