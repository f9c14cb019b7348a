"""Tiles from data: scales, tiles and indices by hand, and what is refused."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tlstd import AutoTiles, TileCoder
from tlstd.core.arrays import FloatArray
from tlstd.errors import InvalidInputError, InvalidParameterError
from tlstd.features import auto_tiles


def test_indices_by_hand() -> None:
    """Two columns of 2 and 3 tiles, one tiling: 2 + 3 + 6 tiles and the bias."""
    tiles = AutoTiles([[[0.0, 0.0], [10.0, 1.0]], [[0.0, 0.0], [1.0, 0.5], [9.0, 1.0]]], tiles=[2, 3], tilings=1)
    assert (tiles.n_features, tiles.n_active) == (12, 4)
    # 10 is at 1, tile 1 of 2; 5 is at 0.75, which times 2 is 1.5: tile 1 of 3; of the pair 1·3 + 1
    assert tiles.indices([[10.0, 5.0]]).tolist() == [[1, 2 + 1, 5 + 4, 11]]
    assert tiles.indices([[9.0, -3.0]]).tolist() == [[0, 2, 5, 11]]


def test_on_a_plain_scale_they_are_those_of_the_tile_coder() -> None:
    states = np.random.default_rng(0).random((50, 2))
    plain = [[0.0, 0.0], [1.0, 1.0]]
    mine = AutoTiles([plain, plain], tiles=[5, 7], tilings=3).indices(states)
    coder = TileCoder([0, 0], [1, 1], tiles=(5, 7), tilings=3)
    assert_array_equal(mine[:, 6:9] - 3 * 12, coder.indices(states))


def test_scales_are_between_rank_and_position() -> None:
    column = np.concatenate([np.linspace(0.0, 1.0, 901), np.linspace(9.0, 10.0, 100)])  # few far away
    (scale,) = AutoTiles.fit(column[:, None]).scales
    places = np.interp([0.0, 0.5, 1.0, 9.5, 10.0], scale[:, 0], scale[:, 1])
    low, high = np.quantile(column, [0.01, 0.99])
    expected = 0.5 * (
        np.array([0.0, 0.45, 0.9, 0.95, 1.0]) + np.clip((np.array([0, 0.5, 1, 9.5, 10]) - low) / (high - low), 0, 1)
    )
    assert_allclose(places, expected, atol=0.02)


def test_few_values_have_a_tile_each() -> None:
    flags = np.random.default_rng(1).integers(0, 3, 200)
    values = np.array([-5.0, 0.1, 70.0])
    tiles = AutoTiles.fit(values[flags][:, None])
    X = tiles.encode_many(values[:, None]).toarray()
    assert (np.full((3, 3), 1.0) + tiles.tilings * np.eye(3) == X @ X.T).all()  # they share nothing but the bias


def test_constant_columns_are_left_out() -> None:
    rng = np.random.default_rng(2)
    column = rng.standard_normal((300, 1))
    with_constant = AutoTiles.fit(np.hstack([column, np.full((300, 1), 7.0)]))
    assert with_constant.n_features == AutoTiles.fit(column).n_features
    assert AutoTiles.fit(np.ones((4, 2))).encode([0.0, 0.0]).indices.tolist() == [0]


def test_it_is_a_function_of_the_observations() -> None:
    seen = np.random.default_rng(3).standard_normal((500, 3))
    a, b = AutoTiles.fit(seen), AutoTiles.fit(seen.copy())
    assert_array_equal(a.indices(seen), b.indices(seen))


def two_calls(column: FloatArray, most: int) -> tuple[FloatArray, int]:
    """A scale as its definition says, with a call of ``np.quantile`` for knots and one for the middle 98%."""
    levels = np.linspace(0.0, 1.0, auto_tiles.N_KNOTS)
    knots, which = np.unique(np.quantile(column, levels), return_inverse=True)
    ranks = np.bincount(which, levels) / np.bincount(which)
    low, high = np.quantile(column, [0.01, 0.99])
    if not high > low:
        low, high = knots[0], knots[-1]
    places = 0.5 * (ranks + (knots.clip(low, high) - low) / (high - low))
    rising = np.append(True, (np.diff(places) > 0.0) & (np.diff(knots) > 0.0))
    return np.column_stack([knots, places])[rising], most


@pytest.mark.parametrize("n", [40, 1_000, 4_099])
def test_sorting_once_changes_no_bit(n: int) -> None:
    rng = np.random.default_rng(6)
    columns = [
        rng.standard_normal(n),
        rng.exponential(size=n) ** 9,
        rng.standard_normal(n).round(1),
        np.where(rng.random(n) < 0.995, 3.0, rng.standard_normal(n)),
        rng.standard_normal(n) * 1e-300,
        np.sort(rng.random(n)),
    ]
    for column in columns:
        if np.unique(column).size > 7:
            found, expected = auto_tiles._fitted(column, 7), two_calls(column, 7)
            assert found[0].tobytes() == expected[0].tobytes()
            assert found[1] == expected[1]


def test_the_observations_stay_as_they_are() -> None:
    seen = np.random.default_rng(7).random((100, 2))
    before = seen.copy()
    AutoTiles.fit(seen)
    assert_array_equal(seen, before)


def test_tiles_of_a_sample_follow_the_number_of_steps_of_the_whole() -> None:
    seen = np.random.default_rng(8).standard_normal((64_000, 2))
    whole, part = AutoTiles.fit(seen), seen[::1_000]
    assert whole.tiles == (13, 13)  # 2 · 64,000^(1/6) = 12.6
    assert AutoTiles.fit(part).tiles == (4, 4)  # 2 · 64^(1/6) = 4
    sample = AutoTiles.fit(part, n=64_000)
    assert sample.tiles == whole.tiles
    assert sample.n_features == whole.n_features
    for mine, other in zip(sample.scales, AutoTiles.fit(part).scales, strict=True):
        assert_array_equal(mine, other)
    assert AutoTiles.fit(seen, n=len(seen)) == whole
    few = np.arange(64.0)[:, None] % 11
    assert AutoTiles.fit(few).tiles == (4,)  # eleven values are too many for a tile each
    assert AutoTiles.fit(few, n=64_000).tiles == (12,)


@pytest.mark.parametrize("n", [0, -1, 2.5, True])
def test_number_of_steps_that_cannot_be(n: Any) -> None:
    with pytest.raises(InvalidParameterError, match="n is"):
        AutoTiles.fit([[1.0], [2.0]], n=n)


@pytest.mark.parametrize(("n_columns", "n_active"), [(1, 8), (2, 24), (4, 30), (16, 136), (20, 39)])
def test_number_of_active_features(n_columns: int, n_active: int) -> None:
    tiles = AutoTiles.fit(np.random.default_rng(4).random((100, n_columns)))
    assert tiles.n_active == n_active + 1


def test_many_tiles_are_hashed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auto_tiles, "HASHED", 200)
    seen = np.random.default_rng(5).random((1000, 4))
    tiles = AutoTiles.fit(seen)
    assert (tiles.hash_size, tiles.n_features) == (200, 201)
    X = tiles.encode_many(seen)
    assert_allclose(X.sum(axis=1), tiles.n_active)
    assert (X[:, [200]].toarray() == 1.0).all()
    assert np.unique(X.indices).size > 190


@pytest.mark.parametrize(
    ("observations", "message"),
    [(np.zeros(3), "shape"), (np.zeros((0, 2)), "at least one"), ([[1.0], [np.inf]], "observation 1 is")],
)
def test_observations_that_cannot_be_used(observations: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        AutoTiles.fit(observations)


@pytest.mark.parametrize("scale", [[[0.0, 0.0], [0.0, 1.0]], [[0.0, 0.0], [1.0, 2.0]], [[0.0, np.nan]], [1.0, 2.0]])
def test_scales_that_cannot_be_used(scale: Any) -> None:
    with pytest.raises(InvalidParameterError, match=r"scales\[0\]"):
        AutoTiles([scale], tiles=[3], tilings=1)
    with pytest.raises(InvalidParameterError, match="one for each column"):
        AutoTiles([[[0.0, 0.0]]], tiles=[3, 3], tilings=1)


def scales_of_any_kind(n_columns: int, rng: np.random.Generator) -> list[FloatArray]:
    """Scales of one knot and of up to 70, in several units; some have places such as 3/256, others any."""
    scales = []
    for _ in range(n_columns):
        k = int(rng.choice([1, 2, 3, 5, 65, 70]))
        knots = np.unique(rng.standard_normal(k) * 10.0 ** rng.integers(-300, 300, 1))
        places = np.sort(rng.choice(257, knots.size, replace=False)) / 256
        if k == 65:
            places = np.sort(rng.random(k))
        if k > 1 and rng.random() < 0.5:
            places[[0, -1]] = 0.0, 1.0
        scales.append(np.column_stack([knots, places]))
    return scales


def states_that_test(tiles: AutoTiles, n: int, rng: np.random.Generator) -> FloatArray:
    """Knots, borders of tiles, the numbers next to them, values between knots, values outside, and infinite ones."""
    columns = []
    for scale, n_tiles in zip(tiles.scales, tiles.tiles, strict=True):
        values, places = scale.T
        j, k = rng.integers(0, tiles.tilings, n), rng.integers(0, n_tiles + 1, n)
        borders = np.interp(k / max(1, n_tiles - 1) - j / (tiles.tilings * n_tiles), places, values)
        column = np.where(rng.random(n) < 0.5, borders, rng.choice(values, n))
        beside = rng.random(n) < 0.5
        column[beside] = np.nextafter(column, rng.choice([-np.inf, np.inf], n))[beside]
        anywhere = rng.uniform(1.5 * values[0] - 0.5 * values[-1], 1.5 * values[-1] - 0.5 * values[0], n)
        column = np.where(rng.random(n) < 0.3, anywhere, column)
        column[rng.random(n) < 0.03] = rng.choice([np.inf, -np.inf, 0.0, -0.0])
        columns.append(column)
    return np.column_stack(columns)


def check_one_by_one(tiles: AutoTiles | TileCoder, states: FloatArray) -> None:
    """``encode`` has the entries of ``indices``, added up, and those of ``encode_many``, in this order."""
    X = tiles.encode_many(states)
    for i, (state, row) in enumerate(zip(states, tiles.indices(states), strict=True)):
        x = tiles.encode(state)
        indices, counts = np.unique(row, return_counts=True)
        part = slice(X.indptr[i], X.indptr[i + 1])
        assert x.indices.tolist() == indices.tolist() == X.indices[part].tolist(), (tiles, state.tolist())
        assert x.values.tolist() == counts.tolist() == X.data[part].tolist()
        assert x.size == tiles.n_features


@pytest.mark.parametrize("seed", range(24))
def test_encode_is_indices_bit_for_bit(seed: int) -> None:
    """200 states of each map, 1 to 20 columns: with more than 16 only neighbours are pairs."""
    rng = np.random.default_rng(seed)
    n_columns = int(rng.choice([1, 2, 3, 5, 12, 17, 20]))
    scales = scales_of_any_kind(n_columns, rng)
    counts, tilings = rng.integers(1, 34, n_columns).tolist(), int(rng.integers(1, 9))
    for hash_size in (None, 65_536, int(rng.integers(1, 100))):
        tiles = AutoTiles(scales, tiles=counts, tilings=tilings, hash_size=hash_size)
        check_one_by_one(tiles, states_that_test(tiles, 200, rng))


@pytest.mark.parametrize("n_columns", [1, 4, 12, 20])
def test_encode_of_a_fitted_map_is_indices_bit_for_bit(n_columns: int) -> None:
    rng = np.random.default_rng(n_columns)
    seen = rng.standard_normal((2_000, n_columns))
    seen[:, ::3] = rng.integers(0, 5, seen[:, ::3].shape)
    seen[:, 1::4] = np.exp(5.0 * seen[:, 1::4])
    tiles = AutoTiles.fit(seen)
    check_one_by_one(tiles, np.concatenate([seen[:500], states_that_test(tiles, 1_500, rng)]))


@pytest.mark.parametrize("counts", [[1, 5], [4, 1], [9, 9]])
def test_scales_beyond_floating_point(counts: list[int]) -> None:
    """A slope of 1e323, and a range of 3e308: places are within [0, 1]."""
    tiny, huge = [[0.0, 0.0], [1e-323, 0.5], [1e-322, 1.0]], [[-1.6e308, 0.25], [1.4e308, 0.5], [1.5e308, 1.0]]
    with np.errstate(over="ignore"):
        tiles = AutoTiles([tiny, huge], tiles=counts, tilings=3)
    states = np.array([[a, b] for a in (0.0, 5e-324, 1e-323, 2e-323, 1.0) for b in (-1e308, 0.0, 1e308, 1.45e308)])
    indices = tiles.indices(states)
    assert indices.min() >= 0
    assert indices.max() < tiles.n_features
    assert (np.diff(indices) > 0).all()
    check_one_by_one(tiles, states)


def test_a_column_that_is_left_out_is_a_number_too() -> None:
    tiles = AutoTiles.fit([[1.0, 7.0], [2.0, 7.0], [3.0, 7.0]])
    assert tiles.encode([1.0, -np.inf]).indices.tolist() == tiles.indices([[1.0, np.inf]])[0].tolist()
    for refuse in (tiles.encode, lambda state: tiles.indices([state])):
        with pytest.raises(InvalidInputError, match=r"state 0 is \[1.0, nan\]"):
            refuse([1.0, np.nan])


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda tiles: pickle.loads(pickle.dumps(tiles))])
def test_copies_encode_alike(again: Any) -> None:
    tiles = AutoTiles.fit(np.random.default_rng(9).random((100, 3)))
    other = again(tiles)
    assert other == tiles
    assert hash(other) == hash(tiles)
    assert_array_equal(other.encode([0.2, 0.9, 0.4]).indices, tiles.indices([[0.2, 0.9, 0.4]])[0])


def test_more_features_than_can_be_counted() -> None:
    plain: Any = [[[0.0, 0.0], [1.0, 1.0]]] * 6
    with pytest.raises(InvalidParameterError, match="more than 64-bit indices can count: pass hash_size"):
        AutoTiles(plain, tiles=[2**20] * 6, tilings=2**20)
    tiles = AutoTiles(plain, tiles=[2**20] * 6, tilings=4, hash_size=2**62)
    check_one_by_one(tiles, np.random.default_rng(10).random((50, 6)))
