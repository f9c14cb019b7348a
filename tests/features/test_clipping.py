"""Columns of states outside of the box of a feature map, by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tlstd.errors import InvalidInputError
from tlstd.features import FEATURE_MAPS, RBF, AutoTiles, Columns, Concatenate, Fourier, OneHot, StateAction, TileCoder
from tlstd.features.clipping import clipped, clipped_note

LOW, HIGH = np.array([0.0, -1.0]), np.array([1.0, 2.0])
TILES = TileCoder(LOW, HIGH, tiles=3, tilings=2)


def states(first: list[float], second: list[float]) -> Any:
    return np.column_stack([first, second])


@pytest.mark.parametrize(
    "features",
    [
        TILES,
        TileCoder(LOW, HIGH, tiles=3, tilings=2, hash_size=64),
        RBF(LOW, HIGH, grid=2, width=0.5),
        Fourier(LOW, HIGH, order=1),
        Concatenate([Columns(2), TILES]),
        StateAction(TILES, 3),
    ],
)
def test_shares_by_hand(features: Any) -> None:
    """Edges are inside; two of four are outside in the first column, one in the second."""
    seen = states([0.0, 1.0, 1.1, -0.1], [-1.0, 2.0, 0.0, np.inf])
    assert clipped(features, seen) == [(0, 0.5), (1, 0.25)]
    assert clipped(features, seen[:2]) == []
    assert clipped(features, seen[:0]) == []


def test_one_percent_is_not_named() -> None:
    seen = np.full((1_000, 2), 0.5)
    seen[:10, 0] = 7.0
    assert clipped(TILES, seen) == []
    assert clipped_note(TILES, seen, ["a", "b"]) == ""
    seen[:11, 0] = 7.0
    assert clipped(TILES, seen) == [(0, 0.011)]


@pytest.mark.parametrize("features", [Columns(2), AutoTiles.fit([[0.0, 0.0], [1.0, 1.0]]), StateAction(Columns(2), 2)])
def test_maps_without_a_box(features: Any) -> None:
    seen = np.full((5, 2), 1e6)
    assert clipped(features, seen) == []
    assert clipped_note(features, seen) == ""


@pytest.mark.parametrize("name", FEATURE_MAPS)
def test_inside_of_the_box_of_any_map_nothing_is_clipped(name: str) -> None:
    low, high = np.zeros(2), np.full(2, 4.0)
    seen = np.random.default_rng(0).uniform(low, high, size=(200, 2))
    assert clipped(FEATURE_MAPS[name](low, high), seen) == []


def test_a_dimension_with_one_tile_is_ignored() -> None:
    features = TileCoder(LOW, HIGH, tiles=(1, 3), tilings=2)
    assert clipped(features, states([9.0, 9.0], [9.0, 0.0])) == [(1, 0.5)]


def test_one_hot_rounds() -> None:
    lake = OneHot([0], [3])
    assert clipped(lake, [[0.0], [3.4], [-0.4], [1.6]]) == []
    assert clipped(lake, [[0.0], [3.6], [-0.6], [4.0]]) == [(0, 0.75)]


def test_parts_see_their_own_columns() -> None:
    narrow, wide = TileCoder([0.0], [1.0], tiles=3, tilings=2), TileCoder([0.0], [5.0], tiles=3, tilings=2)
    seen = np.column_stack([np.full(4, 0.5), [0.5, 2.0, 3.0, 6.0], np.full(4, 0.5)])
    assert clipped(Concatenate([(narrow, [1]), (wide, [1]), (narrow, [2])]), seen) == [(1, 0.75)]
    nested = Concatenate([(Concatenate([(narrow, [1])]), [2, 1])])
    assert clipped(nested, seen) == [(1, 0.75)]
    assert clipped_note(nested, seen) == (
        "75% of column 1 lies outside of the box [0, 1] of the features, and counts as its edge: give a wider box."
    )


def test_the_sentences() -> None:
    seen = states([7.0, 7.0, 0.5, 0.5], [9.0, 0.0, 0.0, 0.0])
    assert clipped_note(TILES, seen[:, :2], ["speed", "height"]) == (
        "States outside of the box of the features count as its edge: 50% of speed (outside of [0, 1]), 25% of height "
        "(outside of [-1, 2]). Give a wider box."
    )
    many = TileCoder([0.0] * 7, [1.0] * 7, tiles=2, tilings=1)
    assert clipped_note(many, np.full((3, 7), 2.0)).endswith(
        "100% of column 4 (outside of [0, 1]) and 2 more columns. Give a wider box."
    )


class Own:
    """A map of somebody's own, with anything in its attributes."""

    n_features = 1

    def __init__(self, low: Any, high: Any) -> None:
        self.low, self.high = low, high

    def encode(self, state: Any) -> Any:
        return np.ones(1)

    def encode_many(self, states: Any) -> Any:
        return np.ones((len(states), 1))


def test_maps_of_ones_own() -> None:
    seen = states([7.0, 0.5], [0.0, 0.0])
    assert clipped(Own([0, 0], [1, 1]), seen) == [(0, 0.5)]
    for low, high in ((0.0, 1.0), ("a", "b"), ([0.0], [1.0]), (None, None), ([0, 0], [1])):
        assert clipped(Own(low, high), seen) == []


def test_states_are_rows() -> None:
    with pytest.raises(InvalidInputError, match="states have shape"):
        clipped(TILES, [0.0, 1.0])
