"""Feature maps as numbers and words: what is made again is the same map, and nothing else can be made."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from tlstd import FEATURE_MAPS, Columns, Concatenate, OneHot, StateAction, TileCoder
from tlstd.core.file_format import Saved
from tlstd.errors import StateError
from tlstd.features.saving import description, restored

LOW, HIGH = np.array([-1.0, 0.0]), np.array([2.0, 0.1])
TILES = TileCoder(LOW, HIGH, tiles=(2, 3), tilings=2, bias=True)


@pytest.mark.parametrize("name", FEATURE_MAPS)
def test_every_map_can_be_made_again(name: str) -> None:
    features = FEATURE_MAPS[name](LOW, HIGH)
    described, arrays = description(features)
    same = restored(json.loads(json.dumps(described)), Saved.of(arrays))
    assert same == features
    assert hash(same) == hash(features)
    states = np.random.default_rng(0).uniform(LOW, HIGH, (50, 2))
    first, second = (X.toarray() if sp.issparse(X) else X for X in map(_encode(states), (features, same)))
    assert_array_equal(first, second)


def _encode(states: Any) -> Any:
    return lambda features: features.encode_many(states)


def test_maps_of_maps() -> None:
    auto = FEATURE_MAPS["AutoTiles"](LOW, HIGH)
    nested: Any = Concatenate([(OneHot([0], [3]), [1]), auto, Columns(2, bias=False), Concatenate([auto])])
    described, arrays = description(nested)
    same = restored(json.loads(json.dumps(described)), Saved.of(arrays))
    states = np.random.default_rng(1).uniform(LOW, HIGH, (20, 2))
    assert_array_equal(same.encode_many(states).toarray(), nested.encode_many(states).toarray())
    both: Any = StateAction(TILES, 3)
    assert same == nested
    again: Any = restored(description(both)[0], Saved.of({}))
    assert again == both
    assert again.encode([0.5, 0.05], 2).indices.tolist() == both.encode([0.5, 0.05], 2).indices.tolist()


@pytest.mark.parametrize(
    "described",
    [
        None,
        {"kind": "LSTD", "n_features": 3, "lambda_": 0.0},
        {"kind": "load", "path": "/etc/passwd"},
        {"kind": "OneHot", "low": [0], "high": [1], "more": 1},
        {"kind": "OneHot", "low": "a", "high": [1]},
        {"kind": "TileCoder", "low": [0], "high": [1], "tiles": [-1], "tilings": 1, "bias": False, "hash_size": None},
        {"kind": "AutoTiles", "n_columns": 2, "tiles": [2, 2], "tilings": 1, "hash_size": None},
        {"kind": "AutoTiles", "n_columns": 10**9, "tiles": [2], "tilings": 1, "hash_size": None},
        {"kind": "Leaves", "n_columns": 1, "base": 0.0},
        {"kind": "StateAction", "features": {"kind": "Columns", "n_columns": 1, "bias": True}, "n_actions": 0},
        {"kind": "Concatenate", "maps": []},
        {"kind": "Concatenate", "maps": 3},
        {},
    ],
    ids=str,
)
def test_what_is_no_map_is_refused(described: Any) -> None:
    with pytest.raises(StateError):
        restored(described, Saved.of({"scale0": np.array([[0.0, 0.0], [1.0, 1.0]])}))


def test_deep_nesting_is_refused() -> None:
    described: Any = description(TILES)[0]
    for _ in range(20):
        described = {"kind": "StateAction", "features": described, "n_actions": 1}
    with pytest.raises(StateError, match="not described"):
        restored(described, Saved.of({}))


def test_scales_that_are_left_over_are_refused() -> None:
    with pytest.raises(StateError, match="should not be"):
        restored(description(TILES)[0], Saved.of({"scale0": np.zeros((1, 2))}))
