from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tlstd.core.arrays import FloatArray, IntArray
from tlstd.errors import InvalidInputError, InvalidParameterError
from tlstd.features import TileCoder


def coordinates_one_by_one(coder: TileCoder, state: FloatArray) -> IntArray:
    """(tilings, D): the tile of one state in each tiling and dimension, by the definition, in NumPy."""
    u = (np.clip(state, coder.low, coder.high) - coder.low) / (coder.high - coder.low)
    tiles = np.array(coder.tiles)
    j = np.arange(coder.tilings)[:, None]
    k: IntArray = np.minimum(np.floor((u + j / (coder.tilings * tiles)) * (tiles - 1)), tiles - 1).astype(np.int64)
    return k


def indices_one_by_one(coder: TileCoder, states: FloatArray) -> IntArray:
    """(N, n_active) without hashing: where tile (k_1, …, k_D) of tiling j stands in an array of all of them."""
    shape = (coder.tilings, *coder.tiles)
    rows = np.empty((len(states), coder.n_active), dtype=np.int64)
    rows[:, coder.tilings :] = coder.n_features - 1
    for row, state in zip(rows, states, strict=True):
        k = coordinates_one_by_one(coder, state)
        row[: coder.tilings] = np.ravel_multi_index((np.arange(coder.tilings), *k.T), shape)
    return rows


def mix(bits: int) -> int:
    """The output function of SplitMix64, in whole numbers of Python."""
    bits = (bits + 0x9E3779B97F4A7C15) % 2**64
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB % 2**64
    return bits ^ (bits >> 31)


def hashed_one_by_one(coder: TileCoder, states: FloatArray) -> IntArray:
    """(N, tilings): the documented hash of (tiling, coordinates)."""
    assert coder.hash_size is not None
    rows = np.empty((len(states), coder.tilings), dtype=np.int64)
    for row, state in zip(rows, states, strict=True):
        for j, tile in enumerate(coordinates_one_by_one(coder, state).tolist()):
            bits = mix(j)
            for k in tile:
                bits = mix(bits ^ k)
            row[j] = bits % coder.hash_size
    return rows


def states_on_borders(coder: TileCoder, n: int, rng: np.random.Generator) -> FloatArray:
    """Corners of tiles of all tilings, as close as rounding gets, and their neighbours in floating point."""
    tiles = np.array(coder.tiles)
    j = rng.integers(0, coder.tilings, size=(n, 1))
    k = rng.integers(0, tiles + 1, size=(n, tiles.size))
    u = k / np.maximum(tiles - 1, 1) - j / (coder.tilings * tiles)
    corners: FloatArray = coder.low + u * (coder.high - coder.low)
    beside = rng.random(u.shape) < 0.5
    corners[beside] = np.nextafter(corners, rng.choice([-np.inf, np.inf], u.shape))[beside]
    return corners


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


@pytest.mark.parametrize(
    ("low", "high", "tiles", "tilings"),
    [
        ([0.0], [1.0], 5, 4),
        ([-1.2, -0.07], [0.6, 0.07], 10, 10),
        ([0.0, 0.0], [7.0, 4.0], (8, 5), 3),  # borders of tiling 0 at whole numbers
        ([0.0, 1.0, 30.0, 0.0], [30.0, 7.0, 70.0, 7.0], (5, 5, 10, 5), 32),
        ([-1.0, 0.0, 5.0, -0.07, 0.0], [2.0, 0.1, 9.0, 0.07, 1.0], (3, 1, 4, 2, 7), 6),
    ],
)
def test_the_kernel_is_the_one_by_one_definition(low: Any, high: Any, tiles: Any, tilings: int) -> None:
    """10⁴ states: inside, outside and on the borders of tiles."""
    coder = TileCoder(low, high, tiles=tiles, tilings=tilings, bias=True)
    rng = np.random.default_rng(0)
    margin = 0.1 * (coder.high - coder.low)
    inside = rng.uniform(coder.low - margin, coder.high + margin, size=(7_000, len(low)))
    states = np.concatenate([inside, states_on_borders(coder, 3_000, rng)])
    assert_array_equal(coder.indices(states), indices_one_by_one(coder, states))


def test_borders_by_hand() -> None:
    """Tiles are closed below, open above: at 1 of 0 … 4 the second of five tiles begins."""
    coder = TileCoder([0.0], [4.0], tiles=5, tilings=1)
    states = [0.0, np.nextafter(1.0, 0.0), 1.0, np.nextafter(2.0, 0.0), 2.0, 3.0, np.nextafter(4.0, 0.0), 4.0]
    assert_array_equal(coder.indices(np.array(states)[:, None]).ravel(), [0, 0, 1, 1, 2, 3, 3, 4])


def test_the_active_tile_holds_the_state() -> None:
    """The picture of docs/features.md: in tiling j, tile k begins at k/(n − 1) − j/(N n) and is 1/(n − 1) wide."""
    coder = TileCoder([0.0, 0.0], [1.0, 1.0], tiles=(4, 3), tilings=2)
    assert_array_equal(coder.indices([[0.6, 0.4]]), [[3, 19]])
    states = np.random.default_rng(0).uniform(size=(100, 2))
    for state, row in zip(states, coder.indices(states), strict=True):
        for j, index in enumerate(row):
            k = np.array(divmod(index - 12 * j, 3))
            begin = k / np.array([3, 2]) - j / np.array([8, 6])
            assert (begin <= state).all()
            assert (state < begin + 1 / np.array([3, 2])).all()


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


@pytest.mark.parametrize("seed", range(60))
def test_encode_many_is_encode_by_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tiles: list[int] = rng.integers(1, 13, size=1 + seed % 3).tolist()
    tilings, bias = int(rng.integers(1, 10)), bool(rng.integers(2))
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
        ({"tiles": (3, 4, 5)}, r"tiles is \(3, 4, 5\): it must be an integer >= 1, or 2 of them"),
        ({"tiles": 2.5}, r"tiles is 2\.5"),
        ({"tiles": (3, 0)}, r"tiles\[1\] is 0: it must be an integer >= 1"),
        ({"tilings": 0}, "tilings is 0"),
        ({"tilings": True}, "tilings is True"),
        ({"tiles": 2**32}, "make .* features, more than 64-bit .* or hash them into hash_size"),
        ({"low": [-1e308, 0.0], "high": [1e308, 1.0]}, r"low\[0\] is -1e\+308 .*: the box needs a finite range"),
        ({"hash_size": 0}, "hash_size is 0: it must be an integer from 1 to 9223372036854775806"),
        ({"hash_size": 2.0**20}, r"hash_size is 1048576\.0"),
        ({"hash_size": True}, "hash_size is True"),
        ({"hash_size": 2**63 - 1}, "hash_size is 9223372036854775807"),
        ({"hash_size": 100, "tiles": (2**53, 2)}, r"divide a range finer .*: keep .* within 2\*\*53"),
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


class TestHashing:
    def test_the_documented_function(self) -> None:
        assert mix(0) == 0xE220A8397B1DCDAF  # what SplitMix64 gives first from seeds 0 and 1
        assert mix(1) == 0x910A2DEC89025CC1

    def test_literal_indices(self) -> None:
        """(0.6, 0.4) is in tile (1, 0) of tiling 0 and in (2, 1) of tiling 1; the bias comes after all hashed ones."""
        assert mix(mix(mix(0) ^ 1) ^ 0) == 0x44E5B98100C67FB0
        assert mix(mix(mix(1) ^ 2) ^ 1) == 0xB815246F417CADE2
        coder = TileCoder([0.0, 0.0], [1.0, 1.0], tiles=(4, 3), tilings=2, hash_size=1000, bias=True)
        assert coder.n_features == 1001
        assert_array_equal(coder.indices([[0.6, 0.4]]), [[0x44E5B98100C67FB0 % 1000, 0xB815246F417CADE2 % 1000, 1000]])
        assert_array_equal(
            coder.indices([[0.6, 0.4], [0.0, 0.0], [1.0, 1.0]])[:, :2], [[432, 810], [433, 595], [420, 433]]
        )
        coder = TileCoder([-1.2, -0.07], [0.6, 0.07], tiles=10, tilings=10, hash_size=512)
        assert_array_equal(coder.indices([[-0.5, 0.0]]), [[469, 332, 263, 194, 351, 35, 153, 44, 327, 495]])

    def test_more_tiles_than_can_be_counted(self) -> None:
        coder = TileCoder([0.0] * 10, [1.0] * 10, tiles=100, tilings=4, hash_size=2**20)
        expected = [[611767, 410465, 531192, 427449], [730848, 774056, 212047, 833477]]
        assert_array_equal(coder.indices(np.array([[0.5] * 10, np.arange(10) / 10])), expected)
        coder = TileCoder([0.0], [1.0], tiles=100, tilings=3, hash_size=2**62)
        assert_array_equal(coder.indices([[0.5]]), [[3467002992455276205, 708944818530635382, 2274021616151721321]])
        largest = TileCoder([0.0] * 3, [1.0] * 3, tiles=2**51, tilings=4, hash_size=2**63 - 2, bias=True)
        assert largest.encode([0.1, 0.2, 0.3]).size == largest.encode_many([[0.1, 0.2, 0.3]]).shape[1] == 2**63 - 1

    @pytest.mark.parametrize("hash_size", [1, 7, 4096, 2**62 + 1])
    @pytest.mark.parametrize(("tiles", "tilings"), [((10,), 3), ((100, 7), 10), ((3, 1, 4, 200, 7), 6)])
    def test_the_kernel_is_the_one_by_one_definition(
        self, tiles: tuple[int, ...], tilings: int, hash_size: int
    ) -> None:
        low, high = np.linspace(-2.0, 1.0, len(tiles)), np.linspace(1.5, 3.0, len(tiles))
        coder = TileCoder(low, high, tiles=tiles, tilings=tilings, hash_size=hash_size)
        rng = np.random.default_rng(0)
        states = np.concatenate(
            [rng.uniform(low - 0.1, high + 0.1, (300, len(tiles))), states_on_borders(coder, 200, rng)]
        )
        indices = coder.indices(states)
        assert_array_equal(indices, hashed_one_by_one(coder, states))
        assert indices.min() >= 0
        assert indices.max() < hash_size

    @pytest.mark.parametrize("hash_size", [64, 100, 1024, 4096])
    @pytest.mark.parametrize(("tiles", "tilings"), [((10_000,), 8), ((100, 100), 8), ((6, 6, 6, 6, 6), 10)])
    def test_tiles_are_spread_evenly(self, tiles: tuple[int, ...], tilings: int, hash_size: int) -> None:
        """Chi-square over all tiles that differ: within four standard deviations of its mean."""
        box: dict[str, Any] = {
            "low": [0.0] * len(tiles),
            "high": [1.0] * len(tiles),
            "tiles": tiles,
            "tilings": tilings,
        }
        axes = [np.linspace(0.0, 1.0, n) for n in tiles]
        states = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, len(tiles))
        _, distinct = np.unique(TileCoder(**box).indices(states), return_index=True)
        hashed = TileCoder(**box, hash_size=hash_size).indices(states).ravel()[distinct]
        counts = np.bincount(hashed, minlength=hash_size)
        mean = hashed.size / hash_size
        chi_square = ((counts - mean) ** 2 / mean).sum()
        assert abs(chi_square - (hash_size - 1)) < 4 * np.sqrt(2 * (hash_size - 1))

    def test_collisions_within_a_state_add_up(self) -> None:
        """Four tilings into five features: at 0 their indices are 0, 3, 1, 0, at 1 they are 2, 2, 3, 0; bias 5."""
        coder = TileCoder([0.0], [1.0], tiles=3, tilings=4, hash_size=5, bias=True)
        assert_array_equal(coder.indices([[0.0], [1.0]]), [[0, 3, 1, 0, 5], [2, 2, 3, 0, 5]])
        x = coder.encode([0.0])
        assert_array_equal(x.indices, [0, 1, 3, 5])
        assert_array_equal(x.values, [2, 1, 1, 1])
        X = coder.encode_many([[0.0], [1.0]])
        assert X.has_canonical_format
        assert_array_equal(X.indptr, [0, 4, 8])
        assert_array_equal(X.indices, [0, 1, 3, 5, 0, 2, 3, 5])
        assert_array_equal(X.data, [2, 1, 1, 1, 1, 2, 1, 1])

    @pytest.mark.parametrize(
        ("tiles", "tilings", "hash_size"),
        [
            ((10,), 1, 2),
            ((10,), 3, 2**62 + 1),
            ((100, 7), 10, 40),
            ((3, 1, 4, 200, 7), 33, 5_000),
            ((9,), 3_000, 2_000),
        ],
    )
    @pytest.mark.parametrize("bias", [False, True])
    def test_one_state_is_a_row_of_many(self, tiles: tuple[int, ...], tilings: int, hash_size: int, bias: bool) -> None:
        coder = TileCoder(
            [-1.0] * len(tiles), [2.0] * len(tiles), tiles=tiles, tilings=tilings, hash_size=hash_size, bias=bias
        )
        rng = np.random.default_rng(0)
        states = np.concatenate([rng.uniform(-1.5, 2.5, (200, len(tiles))), states_on_borders(coder, 300, rng)])
        states[rng.random(states.shape) < 0.02] = np.inf
        states[rng.random(states.shape) < 0.02] = -np.inf
        for state, row in zip(states, coder.indices(states), strict=True):
            x = coder.encode(state)
            indices, counts = np.unique(row, return_counts=True)
            assert x.indices.tolist() == indices.tolist()
            assert x.values.tolist() == counts.tolist()
            assert x.size == coder.n_features

    def test_one_feature_takes_all(self) -> None:
        coder = TileCoder([0.0, 0.0], [1.0, 1.0], tiles=5, tilings=7, hash_size=1)
        assert_array_equal(
            coder.encode_many(np.random.default_rng(0).uniform(size=(9, 2))).toarray(), np.full((9, 1), 7)
        )


@pytest.mark.parametrize("seed", range(6))
def test_the_quick_kernel_is_the_plain_one(seed: int) -> None:
    """Boundaries of tiles, corners, states outside and infinite ones, up to indices of 53 bits."""
    from tlstd.features.kernels import tiles as kernels

    rng = np.random.default_rng(seed)
    for counts, tilings in (([1], 1), ([7, 1, 3], 5), ([10, 10], 10), ([5, 5, 10, 5], 32), ([2**20, 2**20, 2**10], 8)):
        tiles = np.array(counts)
        low = rng.uniform(-2.0, 0.0, tiles.size)
        high = low + rng.uniform(0.1, 3.0, tiles.size)
        parts = rng.integers(-1, 2 * tilings + 2, (200, tiles.size)) / (2 * tilings)
        states = np.concatenate([low + parts * (high - low), rng.normal(0.0, 2.0, (200, tiles.size))])
        states[rng.random(states.shape) < 0.02] = np.inf
        states[rng.random(states.shape) < 0.02] = -np.inf
        plain, quick = np.full((400, tilings), -1), np.full((400, tilings + 1), -1)
        assert kernels.tile_indices(states, low, high, tiles, tilings, plain) == -1
        assert kernels.short_tile_indices(states, low, high, tiles, tilings, quick) == -1
        np.testing.assert_array_equal(quick[:, :tilings], plain)
        assert (quick[:, tilings] == tilings * tiles.prod()).all()
        states[[17, 30], -1] = np.nan
        assert kernels.short_tile_indices(states, low, high, tiles, tilings, quick) == 17


def test_indices_of_more_than_53_bits() -> None:
    """Counted in integers: the last tile of all is the last feature but the bias."""
    for tiles in (2**26, 2**27, 2**30):
        coder = TileCoder([0.0, 0.0], [1.0, 1.0], tiles=tiles, tilings=3, bias=True)
        assert coder.indices([[1.0, 1.0]])[0, -2:].tolist() == [3 * tiles**2 - 1, 3 * tiles**2]
