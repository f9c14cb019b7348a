"""``update_many`` of several pieces: the same as one call for each, and the model is whole in between."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_allclose, assert_array_equal

from tests.helpers import random_transitions
from tests.strategies import cuts, pieces
from tlstd import InvalidInputError, Transitions
from tlstd.estimators.registry import ESTIMATORS


@cache
def steps() -> Transitions:
    return random_transitions(np.random.default_rng(0), n_features=12, n_steps=60, density=0.1, sparse=True)


@pytest.mark.parametrize("name", ESTIMATORS)
@given(at=cuts(60))
def test_lists_and_iterators_of_pieces(name: str, at: list[int]) -> None:
    cut = pieces(steps(), at)
    expected, listed, iterated, whole = (ESTIMATORS[name](12) for _ in range(4))
    for piece in cut:
        expected.update_many(piece)
    listed.update_many(cut)
    iterated.update_many(piece for piece in cut)
    whole.update_many(steps())
    for model in (listed, iterated):
        assert model.n_updates == 60
        assert_array_equal(model.weights, expected.weights)
    assert_allclose(listed.weights, whole.weights, rtol=0.0, atol=1e-9 * np.abs(whole.weights).max())


def test_between_two_pieces_the_model_can_be_used() -> None:
    data, model, seen = steps(), ESTIMATORS["TD"](12), []

    def in_turn() -> Iterator[Transitions]:
        for start in range(0, 60, 20):
            seen.append((model.n_updates, bool(np.isfinite(model.predict(data[0].x)))))
            yield data[start : start + 20]

    model.update_many(in_turn())
    assert seen == [(0, True), (20, True), (40, True)]


def test_what_comes_before_a_refused_piece_is_learned() -> None:
    data, model, other = steps(), ESTIMATORS["LSTD"](12), ESTIMATORS["LSTD"](12)
    with pytest.raises(InvalidInputError, match=r"update_many\(\) was given ndarray: pass Transitions"):
        model.update_many([data[:20], np.eye(3), data[20:]])  # type: ignore[list-item]
    other.update_many(data[:20])
    assert model.n_updates == 20
    assert_array_equal(model.weights, other.weights)
    for wrong in (data[0], np.eye(12), "steps", 3):
        with pytest.raises(InvalidInputError, match="pass Transitions"):
            model.update_many(wrong)  # type: ignore[arg-type]
