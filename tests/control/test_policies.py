"""Greedy and ε-greedy policies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tlstd import RBF, OneHot, StateAction, TileCoder
from tlstd.control import GreedyPolicy
from tlstd.domains.mountain_car import MountainCar
from tlstd.domains.pendulum import Pendulum
from tlstd.errors import InvalidInputError, InvalidParameterError
from tlstd.evaluation import Target
from tlstd.streams import record


@pytest.mark.parametrize(
    "inner", [RBF([0.0, 0.0], [1.0, 1.0], grid=3, width=0.4), TileCoder([0, 0], [1, 1], tiles=3, tilings=2)]
)
def test_values_are_those_of_single_states(inner: RBF | TileCoder) -> None:
    features = StateAction(inner, 3)
    rng = np.random.default_rng(0)
    policy = GreedyPolicy(features, rng.normal(size=features.n_features), epsilon=0.25)
    states = rng.random((20, 2))
    values = policy.values(states)
    one_by_one = [[features.encode(s, a).toarray() @ policy.weights for a in range(3)] for s in states]
    np.testing.assert_allclose(values, one_by_one, atol=1e-12)
    assert (policy.greedy(states) == values.argmax(axis=1)).all()
    probabilities = policy(states)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_allclose(probabilities[np.arange(20), values.argmax(axis=1)], 0.75 + 0.25 / 3)
    assert (policy.with_epsilon(0.0)(states) == values.argmax(axis=1)).all()


def test_one_action_at_a_time() -> None:
    features = StateAction(OneHot([0], [2]), 2)
    policy = GreedyPolicy(features, [0.0, 1.0, 0.0, 1.0, 0.0, 0.0], actions=[-5.0, 5.0])
    assert [policy.act(s) for s in range(3)] == [5.0, -5.0, -5.0]  # equal values: the first
    random = policy.with_epsilon(1.0)
    with pytest.raises(InvalidInputError, match="pass rng"):
        random.act(0)
    rng = np.random.default_rng(0)
    drawn = [random.act(0, rng) for _ in range(400)]
    assert 150 < drawn.count(5.0) < 250


def test_in_a_domain_it_is_one_of_its_policies() -> None:
    car = MountainCar()
    features = StateAction(RBF(car.low, car.high, grid=3, width=0.4), 3)
    policy = GreedyPolicy(features, np.random.default_rng(1).normal(size=27))
    states = car.start(30, np.random.default_rng(2))
    assert (policy.on(car).act(states, np.zeros(30)) == np.array([-1, 0, 1])[policy.greedy(states)]).all()
    steps = record(car, policy.with_epsilon(0.5).on(car), features.features, n_steps=40, seed=0)
    assert len(steps) == 40
    pendulum = Pendulum()
    tiles = StateAction(TileCoder(pendulum.low, pendulum.high, tiles=3, tilings=2), 3)
    with pytest.raises(InvalidParameterError, match="make it with actions="):
        GreedyPolicy(tiles, np.zeros(tiles.n_features)).on(pendulum)
    given = GreedyPolicy(tiles, np.zeros(tiles.n_features), actions=[-2.0, 0.0, 2.0])
    assert given.on(pendulum).act(np.zeros((2, 3)), np.zeros(2)).tolist() == [-2.0, -2.0]


def test_evaluate_takes_it() -> None:
    """Whether actions or probabilities, as the policies that are evaluated from logs."""
    right = GreedyPolicy(StateAction(OneHot([0], [2]), 2), [0.0, 0.0, 0.0, 1.0, 1.0, 1.0])
    for policy, expected in ((right, [0.0, 1.0]), (right.with_epsilon(0.5), [0.25, 0.75])):
        probabilities = Target(function=policy).probabilities(np.arange(3), 2)
        np.testing.assert_allclose(probabilities, [expected] * 3)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((OneHot([0], [2]), [0.0] * 3), "StateAction"),
        ((StateAction(OneHot([0], [2]), 2), [0.0] * 5), r"needs \(6,\)"),
    ],
)
def test_bad_policies_are_refused(arguments: tuple[Any, ...], words: str) -> None:
    with pytest.raises(InvalidParameterError, match=words):
        GreedyPolicy(*arguments)
