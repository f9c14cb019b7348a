"""Members of a family that share A and its SVD are LSTD models to the bit."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_equal
from tlstd_lab.shared_lstd import sharing

from tlstd import LSTD, random_walk
from tlstd.evaluation import choose

WALK = random_walk(9, gamma=0.9)
STEPS = WALK.sample(600, np.random.default_rng(1))


@pytest.mark.parametrize("parameter", ["rcond", "ridge"])
def test_a_choice_is_the_same(parameter: str) -> None:
    values = [0.3, 1e-2, 1e-8]
    make = sharing({"class": "LSTD", "lambda_": 0.4}, 9)
    ours = choose(lambda value: make(**{parameter: value}), values, STEPS)
    alone: Callable[..., LSTD] = partial(LSTD, 9, lambda_=0.4)
    theirs = choose(lambda value: alone(**{parameter: value}), values, STEPS)
    assert_equal(ours.scores, theirs.scores)
    assert len(set(ours.scores)) > 1


def test_what_comes_after_other_transitions_is_learned_anew() -> None:
    make, alone = sharing({"class": "LSTD", "lambda_": 0.4}, 9), LSTD(9, lambda_=0.4)
    first, second, third = make(), make(), make()
    first.update_many(STEPS[:300])
    second.update_many(STEPS[:300])  # an equal object, not the same
    third.update_many(STEPS)
    alone.update_many(STEPS[:300])
    for model in (first, second):
        assert_equal(model.weights, alone.weights)
    alone.update_many(STEPS[300:])
    second.update_many(STEPS[300:])
    for model in (second, third):
        assert_equal(model.weights, alone.weights)
    assert first.n_updates == 300
