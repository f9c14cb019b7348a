"""What every registered feature map keeps, in one dimension and in five."""

from __future__ import annotations

import copy
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from tlstd.core.arrays import FloatArray, TrustedMatrix, as_matrix
from tlstd.data.vectors import SparseVector, Vector
from tlstd.errors import InvalidInputError, InvalidParameterError
from tlstd.features import FEATURE_MAPS, Concatenate, FeatureMap, StateAction, TileCoder
from tlstd.features.states import encoded_once

EACH = pytest.mark.parametrize(
    ("features", "low", "high"),
    [
        pytest.param(make(low, high), low, high, id=f"{name}, D={low.size}")
        for name, make in FEATURE_MAPS.items()
        for low, high in (
            (np.array([-1.0]), np.array([2.0])),
            (np.array([-1.0, 0.0, 5.0, -0.07, 0.0]), np.array([2.0, 0.1, 9.0, 0.07, 1.0])),
        )
    ],
)


def toarray(x: Vector) -> FloatArray:
    return x.toarray() if isinstance(x, SparseVector) else x


def dense(X: Any) -> FloatArray:
    array: FloatArray = X.toarray() if sp.issparse(X) else X
    return array


@EACH
def test_encode_many_is_encode_by_rows(features: FeatureMap, low: FloatArray, high: FloatArray) -> None:
    states = np.random.default_rng(0).uniform(low - 0.2, high + 0.2, size=(30, low.size))
    X = features.encode_many(states)
    assert X.shape == (30, features.n_features)
    assert X.dtype == np.float64
    for row, state in zip(dense(X), states, strict=True):
        x = features.encode(state)
        assert isinstance(x, SparseVector) == sp.issparse(X)
        assert_allclose(toarray(x), row, rtol=1e-14, atol=1e-15)


@EACH
def test_rows_that_are_not_looked_at_again_are_sound(features: FeatureMap, low: FloatArray, high: FloatArray) -> None:
    """Of a map that says so; not of a subclass, which may make anything."""
    rng = np.random.default_rng(2)
    states = np.concatenate([rng.uniform(low - 1.0, high + 1.0, size=(50, low.size)), [low, high]])
    states[rng.random(states.shape) < 0.2] = rng.choice([np.inf, -np.inf, 1e300, -1e300, -0.0])
    says_so = "_makes_sound_rows" in vars(type(features))
    assert says_so == (type(features).__name__ in ("TileCoder", "AutoTiles", "Leaves"))
    if says_so:
        made = encoded_once(features, states)
        assert isinstance(made, TrustedMatrix)
        checked: Any = as_matrix(made.matrix)
        for part in ("data", "indices", "indptr"):
            array = getattr(made.matrix, part)
            assert array.flags.carray
            assert array.dtype == getattr(checked, part).dtype
            assert_array_equal(array, getattr(checked, part), strict=True)
            assert np.shares_memory(array, getattr(checked, part))  # it had to change nothing
        bare = copy.copy(features)
        bare.__class__ = type("Mine", (type(features),), {})
        assert not isinstance(encoded_once(bare, states), TrustedMatrix)


@EACH
def test_estimators_take_it_as_it_is(features: FeatureMap, low: FloatArray, high: FloatArray) -> None:
    X = features.encode_many(np.random.default_rng(1).uniform(low, high, size=(30, low.size)))
    if sp.issparse(X):
        assert isinstance(X, sp.csr_array)
        assert X.has_canonical_format
        rows = np.repeat(np.arange(30), np.diff(X.indptr))
        assert (np.diff(rows * features.n_features + X.indices) > 0).all()  # what the flag says, looked at
        assert (X.data != 0.0).all()
        assert np.shares_memory(as_matrix(X).data, X.data)
    else:
        assert np.shares_memory(as_matrix(X), X)


@EACH
def test_states_outside_count_as_on_the_edge(features: FeatureMap, low: FloatArray, high: FloatArray) -> None:
    rng = np.random.default_rng(2)
    states = rng.uniform(2 * low - high, 2 * high - low, size=(50, low.size))
    states[0], states[1] = np.inf, -np.inf
    assert_array_equal(dense(features.encode_many(states)), dense(features.encode_many(states.clip(low, high))))
    assert_array_equal(toarray(features.encode(states[0])), toarray(features.encode(high)))


@EACH
def test_any_kind_of_numbers(features: FeatureMap, low: FloatArray, high: FloatArray) -> None:
    states = np.random.default_rng(3).uniform(low, high, size=(6, low.size)).astype(np.float32)
    expected = dense(features.encode_many(states.astype(np.float64)))
    read_only = states.astype(np.float64)
    read_only.flags.writeable = False
    variants: list[Any] = [
        states,
        states.tolist(),
        [tuple(row) for row in states.tolist()],
        np.asfortranarray(states.astype(np.float64)),
        np.repeat(states, 2, axis=0)[::2],
        read_only,
    ]
    for variant in variants:
        assert_array_equal(dense(features.encode_many(variant)), expected)
        assert_allclose(toarray(features.encode(variant[0])), expected[0], rtol=1e-14, atol=1e-15)
    whole = np.rint(states).astype(np.int64)
    assert_array_equal(dense(features.encode_many(whole)), dense(features.encode_many(whole.astype(np.float64))))
    assert_array_equal(read_only, states)  # nothing was written into what was passed


@EACH
def test_no_states(features: FeatureMap, low: FloatArray, high: FloatArray) -> None:
    X = features.encode_many(np.zeros((0, low.size)))
    assert X.shape == (0, features.n_features)
    assert sp.issparse(X) == sp.issparse(features.encode_many(low[None]))


@EACH
def test_states_that_cannot_be_used(features: FeatureMap, low: FloatArray, high: FloatArray) -> None:
    states = np.tile(low, (3, 1))
    states[1, 0] = states[2, 0] = np.nan
    with pytest.raises(InvalidInputError, match=r"state 1 is \[nan"):
        features.encode_many(states)
    with pytest.raises(InvalidInputError, match=r"state 0 is \[nan"):
        features.encode(states[2])
    shapes: list[tuple[int, ...]] = [(3, low.size + 1), (low.size,), (2, 2, low.size)]
    for shape in shapes:
        with pytest.raises(InvalidInputError, match=r"states have shape .*: pass"):
            features.encode_many(np.zeros(shape))
    shapes = [(low.size + 1,), (1, low.size), ()]
    for shape in shapes:
        with pytest.raises(InvalidInputError, match=r"the state has shape .*: pass"):
            features.encode(np.zeros(shape))


@pytest.mark.parametrize("name", FEATURE_MAPS)
def test_boxes_that_cannot_be_used(name: str) -> None:
    for low, high in (([1.0], [1.0]), ([0.0], [np.inf]), ([np.nan], [1.0])):
        with pytest.raises(InvalidParameterError, match=r"low\[0\] is .* and high\[0\] is .*: the box needs"):
            FEATURE_MAPS[name](np.array(low), np.array(high))


@EACH
def test_they_say_what_they_are(features: FeatureMap, low: FloatArray, high: FloatArray) -> None:
    assert f"{features.n_features} features)" in repr(features)


def test_equal_maps_compare_equal() -> None:
    low, high = np.array([-1.0, 0.0]), np.array([2.0, 0.1])
    first, second = ([make(low, high) for make in FEATURE_MAPS.values()] for _ in range(2))
    for i, features in enumerate(first):
        assert [features == other for other in second] == [i == j for j in range(len(second))]
        assert hash(features) == hash(second[i])
        assert features != FEATURE_MAPS[list(FEATURE_MAPS)[i]](low, high + 1.0)
        assert features.__eq__(repr(features)) is NotImplemented
    assert len({*first, *second}) == len(first)
    tiles = TileCoder(low, high, tiles=3, tilings=2)
    assert tiles == TileCoder(low.tolist(), high.tolist(), tiles=(3, 3), tilings=np.int64(2))  # type: ignore[arg-type]
    assert StateAction(tiles, 2) == StateAction(copy.deepcopy(tiles), 2) != StateAction(tiles, 3)
    assert Concatenate([tiles]) != Concatenate([(tiles, [0, 1])])


class OneTiling(TileCoder):
    """Somebody's own map, which does not keep its argument."""

    def __init__(self, n: int) -> None:
        super().__init__([0.0], [1.0], tiles=n, tilings=1)


def test_a_map_that_does_not_say_how_it_was_made_equals_only_itself() -> None:
    one, other = OneTiling(3), OneTiling(3)
    assert one == one
    assert one != other
    assert len({one, other}) == 2


def test_importing_and_making_maps_does_not_load_numba() -> None:
    code = (
        "import sys; from tlstd.features import FEATURE_MAPS; import numpy as np; "
        "[make(np.zeros(2), np.ones(2)) for make in FEATURE_MAPS.values()]; print('numba' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"
