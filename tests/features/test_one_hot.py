"""One-hot features against positions counted by hand."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tlstd import LSTD, Columns, OneHot, TransitionBuilder
from tlstd.errors import InvalidParameterError


def test_positions_by_hand() -> None:
    grid = OneHot([-1, 2], [1, 5])  # 3 × 4
    assert grid.n_features == 12
    assert grid.encode([-1, 2]).indices.tolist() == [0]
    assert grid.encode([0, 4]).indices.tolist() == [4 + 2]
    assert_array_equal(grid.encode_many([[1, 5], [9, -9]]).toarray(), np.eye(12)[[11, 8]])
    assert grid.encode([0.4, 3.6]).indices.tolist() == [4 + 2]  # the nearest


def test_values_are_a_table() -> None:
    states, build, model = OneHot([0], [2]), TransitionBuilder(gamma=0.5), LSTD(3, lambda_=0.0)
    build.reset(states.encode([0]))
    model.update(build.step(1.0, states.encode([1])))
    model.update(build.step(1.0, states.encode([2])))
    model.update(build.step(4.0, states.encode([2]), terminated=True))
    np.testing.assert_allclose(model.weights, [2.5, 3.0, 4.0])


def test_more_states_than_indices() -> None:
    with pytest.raises(InvalidParameterError, match="hash_size"):
        OneHot([0] * 5, [10**6] * 5)


def test_columns_are_as_they_are() -> None:
    assert_array_equal(Columns(2).encode_many([[3.0, 1e9]]), [[3.0, 1e9, 1.0]])
    assert_array_equal(Columns(2, bias=False).encode([3.0, -1.0]), [3.0, -1.0])
