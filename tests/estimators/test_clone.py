"""Parameters, clones, and everything compiled beforehand."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from tests.helpers import random_transitions
from tlstd import (
    ATD,
    ILSTD,
    LSTD,
    TD,
    TLSTD,
    Decay,
    Handover,
    Horde,
    Question,
    Replay,
    SparseVector,
    Steps,
    TileCoder,
    Transition,
    warm_up,
)
from tlstd.errors import InvalidInputError, InvalidParameterError, StateError
from tlstd.estimators.base import LinearEstimator
from tlstd.estimators.registry import ESTIMATORS


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_clone_is_as_new(name: str) -> None:
    model: Any = ESTIMATORS[name](20)
    stream = random_transitions(np.random.default_rng(0), n_steps=60, n_features=20, density=0.1, sparse=True)
    model.update_many(stream)
    clone = model.clone()
    assert type(clone) is type(model)
    assert (clone.n_updates, clone.parameters) == (0, model.parameters)
    again = type(model)(**model.get_params(deep=False))
    for other in (clone, again):
        other.update_many(stream)
        assert_array_equal(other.weights, model.weights)


def test_parameters_are_as_the_constructor_takes_them() -> None:
    def rate(t: int) -> float:
        return 1.0 / t

    for step_size in (0.25, Decay(0.5, 10), rate):
        assert TD(3, step_size=step_size, lambda_=0.9).get_params()["step_size"] is step_size
    with pytest.raises(StateError):
        _ = TD(3, step_size=rate, lambda_=0.9).parameters  # a file cannot hold a function, a clone can
    assert TD(3, step_size=rate, lambda_=0.9).clone().step_size == TD(3, step_size=rate, lambda_=0.9).step_size


def test_changes() -> None:
    model = TLSTD(8, rank=3, lambda_=0.9, n_targets=2)
    other = model.clone(rank=5, n_targets=1)
    assert (other.rank, other.n_targets, other.lambda_) == (5, 1, 0.9)
    with pytest.raises(InvalidParameterError, match=r"^TLSTD has no parameter 'depth': it has n_features, rank, "):
        model.clone(depth=3)
    with pytest.raises(InvalidParameterError, match="rank is 9"):
        model.clone(rank=9)


def test_parts_are_new_ones() -> None:
    model = Handover(LSTD(6, lambda_=0.5), TD(6, step_size=0.1, lambda_=0.9), after=10)
    model.update_many(random_transitions(np.random.default_rng(1), n_steps=40, n_features=6))
    found = model.get_params()
    assert (found["first"].n_updates, found["second"].n_updates) == (0, 0)
    assert (found["first__lambda_"], found["second__step_size"], found["after"]) == (0.5, 0.1, 10)
    assert model.get_params(deep=False).keys() == {"first", "second", "after", "settled", "patience"}
    clone = model.clone(second=ATD(6, 2, step_size=1.0, lambda_=0.9, eta=0.1))
    assert isinstance(clone.get_params()["second"], ATD)
    started = TD(6, step_size=0.1, lambda_=0.9)
    started.start_from(np.ones(6))
    assert not Replay(started, passes=2).clone().weights.any()  # weights are not parameters


class Forgetful(LSTD):
    """Does not keep its argument."""

    def __init__(self, size: int) -> None:
        super().__init__(size, lambda_=0.0)


def test_who_does_not_keep_an_argument_is_told() -> None:
    with pytest.raises(StateError, match="the argument size of Forgetful is kept nowhere: keep it in an attribute"):
        Forgetful(3).clone()


@pytest.mark.parametrize("name", ESTIMATORS)
def test_warm_up_changes_nothing(name: str) -> None:
    model = ESTIMATORS[name](20)
    stream = random_transitions(np.random.default_rng(2), n_steps=30, n_features=20, density=0.1, sparse=True)
    model.update_many(stream)
    before = np.array(model.weights)
    warm_up(model, SparseVector([3, 8], [1.0, 0.5], 20))
    assert model.n_updates == 30
    assert_array_equal(model.weights, before)


def test_after_warm_up_nothing_is_compiled() -> None:
    """Of TD and t-LSTD with sparse vectors: no kernel gets a further specialisation, and a compression was among it."""
    from tlstd.classic.kernels import lstd, td
    from tlstd.data.kernels import sparse, transitions

    def compiled() -> int:
        kernels = [kernel for file in (lstd, sparse, td, transitions) for kernel in vars(file).values()]
        return sum(len(kernel.signatures) for kernel in kernels if hasattr(kernel, "signatures"))

    features = TileCoder([0.0], [1.0], tiles=250, tilings=2, bias=True)
    questions = [Question(1.0, 0.9), Question("light", 0.9), Question(1.0, 0.5)]  # two targets, and one
    for each in (TD(features.n_features, step_size=0.1, lambda_=0.9), TLSTD(features.n_features, rank=5, lambda_=0.9)):
        horde = Horde(features, questions, each)
        warm_up(horde, [0.5])
        before = compiled()
        path = np.random.default_rng(4).random((61, 1))
        horde.update_many(Steps.along(path, columns={"light": path[1:, 0]}))
        for t in range(20):
            horde.update(path[t], path[t + 1], columns={"light": 1.0})
            horde.predict(path[t])
        assert compiled() == before > 0
        assert horde.n_updates == 80

    rng = np.random.default_rng(3)
    makers: list[LinearEstimator] = [TD(500, step_size=0.1, lambda_=0.9), TLSTD(500, rank=5, lambda_=0.9)]
    for model in makers:
        x = SparseVector([3, 400], [1.0, 1.0], 500)
        warm_up(model, x)
        before = compiled()
        for _ in range(90):
            x_next = SparseVector(rng.integers(0, 500, 2), [1.0, 1.0], 500)
            model.update(Transition(x, 1.0, x_next, discount=0.9, trace_discount=0.9))
            x = x_next
            model.predict(x)
        assert compiled() == before > 0
    assert len(makers[1].factors()[0]) > 50  # type: ignore[attr-defined]


def test_warm_up_says_what_does_not_fit() -> None:
    model = ILSTD(4, step_size=Decay(0.1, 100), lambda_=0.0)
    with pytest.raises(InvalidInputError, match="x has 3 features but the model has n_features=4"):
        warm_up(model, np.ones(3))
    with pytest.raises(InvalidInputError, match="model is dict"):
        warm_up({}, np.ones(3))  # type: ignore[arg-type]
    horde = Horde(TileCoder([0.0], [1.0], tiles=4, tilings=1), [Question(1.0, 0.5)], TD(4, step_size=0.1, lambda_=0.0))
    with pytest.raises(InvalidInputError, match="pass"):
        warm_up(horde, [0.5, 0.5])
    assert horde.n_updates == 0


def test_factors_and_sparse_weights_are_in_one_order() -> None:
    rng = np.random.default_rng(4)
    model = TLSTD(1000, rank=30, lambda_=0.5)
    for _ in range(20):
        x, x_next = (SparseVector(rng.integers(0, 1000, 3), rng.standard_normal(3), 1000) for _ in range(2))
        model.update(Transition(x, rng.standard_normal(), x_next, discount=0.9, trace_discount=0.5))
    ids, U, sigma, V = model.factors()
    assert (np.diff(ids) > 0).all()
    weights: Any = model.sparse_weights
    kept = np.isin(ids, weights.indices)
    assert_array_equal(ids[kept], weights.indices)
    # the rows are still those of their features: the solution lies in the span of V
    assert U.shape == V.shape == (ids.size, sigma.size)
    assert np.abs(V.T @ V - np.eye(sigma.size)).max() < 1e-12
    in_V = V @ (V.T @ weights.toarray()[ids])
    assert np.abs(in_V - weights.toarray()[ids]).max() < 1e-10 * np.abs(weights.values).max()


@pytest.mark.parametrize("reward", [Fraction(1, 4), np.float32(0.25), np.array(0.25), np.array([0.25])])
def test_rewards_that_can_be_floats(reward: Any) -> None:
    assert Transition([1.0], reward, [0.0], discount=0.9, trace_discount=0.0).reward == 0.25


def test_rewards_that_cannot() -> None:
    class Odd:
        def __float__(self) -> float:
            raise ValueError("no")

    for reward in (Odd(), Fraction(10**200), "1"):
        with pytest.raises(InvalidInputError, match="reward"):
            Transition([1.0], reward, [0.0], discount=0.9, trace_discount=0.0)
