from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tlstd.classic.td import TD
from tlstd.domains import ORACLES, MarkovRewardProcess, baird, boyan_chain, random_walk
from tlstd.domains.baird import START
from tlstd.errors import InvalidParameterError


@pytest.mark.parametrize("name", ORACLES)
def test_registry(name: str) -> None:
    process = ORACLES[name](gamma=0.9)
    assert isinstance(process, MarkovRewardProcess)
    assert process.gamma == 0.9


class TestBoyanChain:
    def test_values_and_weights(self) -> None:
        chain = boyan_chain()
        assert_allclose(
            chain.values(), [0, -2, -4, -6, -8, -10, -12, -14, -16, -18, -20, -22, -24], rtol=1e-13, atol=1e-13
        )
        for lambda_ in (0.0, 0.4, 1.0):
            assert_allclose(chain.solution(lambda_), [-24, -16, -8, 0], rtol=1e-11, atol=1e-11)

    def test_features(self) -> None:
        X = boyan_chain().X
        assert_array_equal(X[12], [1, 0, 0, 0])
        assert_array_equal(X[10], [0.5, 0.5, 0, 0])
        assert_array_equal(X[7], [0, 0.75, 0.25, 0])
        assert_array_equal(X[1], [0, 0, 0.25, 0.75])
        assert_array_equal(X[0], [0, 0, 0, 1])

    def test_transitions(self) -> None:
        chain = boyan_chain()
        assert chain.P[12, 11] == chain.P[12, 10] == chain.P[2, 1] == chain.P[2, 0] == 0.5
        assert chain.P[1, 0] == 1.0
        assert_array_equal(chain.termination, [1.0] + [0.0] * 12)
        assert_array_equal(chain.start, [0.0] * 12 + [1.0])
        assert_array_equal(chain.expected_rewards, [0.0, -2.0] + [-3.0] * 11)

    def test_any_size(self) -> None:
        chain = boyan_chain(101)
        assert chain.n_features == 26
        assert_allclose(chain.values(), -2.0 * np.arange(101), atol=1e-11)
        assert_allclose(chain.X.sum(axis=1), 1.0)
        assert_allclose(chain.X @ chain.solution(0.0), chain.values(), atol=1e-9)

    @pytest.mark.parametrize("n_states", [1, 12, 14, 13.0, True])
    def test_bad_size(self, n_states: Any) -> None:
        with pytest.raises(InvalidParameterError, match=f"n_states is {n_states}"):
            boyan_chain(n_states)


class TestRandomWalk:
    def test_values(self) -> None:
        values = random_walk(5, rewards=(0.0, 1.0)).values()
        assert_allclose(values, [1 / 6, 2 / 6, 3 / 6, 4 / 6, 5 / 6], rtol=1e-14)
        assert_allclose(random_walk().values(), np.arange(-9, 10) / 10, atol=1e-14)

    def test_state_distribution(self) -> None:
        assert_allclose(random_walk(5).state_distribution(), np.array([1, 2, 3, 2, 1]) / 9, rtol=1e-14)

    def test_features(self) -> None:
        assert_array_equal(random_walk(3).X, np.eye(3))
        assert_array_equal(random_walk(5, features="inverted").X[1], [0.5, 0.0, 0.5, 0.5, 0.5])
        h, t = 1 / np.sqrt(2), 1 / np.sqrt(3)
        expected = [[1, 0, 0], [h, h, 0], [t, t, t], [0, h, h], [0, 0, 1]]
        assert_allclose(random_walk(5, features="dependent").X, expected, rtol=1e-15)
        assert random_walk(19, features="dependent").X.shape == (19, 10)

    def test_inverted_features_represent_the_values(self) -> None:
        walk = random_walk(5, features="inverted")
        assert_allclose(walk.X @ walk.solution(0.2), walk.values(), atol=1e-13)

    @pytest.mark.parametrize("n_states", [1, 4, -3, 5.0])
    def test_bad_size(self, n_states: Any) -> None:
        with pytest.raises(InvalidParameterError, match=f"n_states is {n_states}"):
            random_walk(n_states)

    def test_bad_features(self) -> None:
        with pytest.raises(InvalidParameterError, match="features is 'fourier'"):
            random_walk(features="fourier")  # type: ignore[arg-type]


class TestBaird:
    def test_the_literature_s_numbers(self) -> None:
        process = baird()
        assert_array_equal(process.X[0], [2, 0, 0, 0, 0, 0, 0, 1])
        assert_array_equal(process.X[6], [0, 0, 0, 0, 0, 0, 1, 2])
        assert_allclose(process.state_distribution(), np.full(7, 1 / 7))
        assert_array_equal(process.values(), np.zeros(7))
        steps = process.sample(1_000, np.random.default_rng(0))
        assert set(steps.rhos) == {0.0, 7.0}
        assert_array_equal(steps.rhos == 7.0, steps.next_rows == 6)

    def test_moved_rewards_are_the_original_from_another_start(self) -> None:
        moved, original = TD(8, step_size=0.01, lambda_=0.0), TD(8, step_size=0.01, lambda_=0.0)
        original.start_from(START)
        original.update_many(baird().sample(500, np.random.default_rng(0)))
        process = baird(weights=-np.array(START))
        moved.update_many(process.sample(500, np.random.default_rng(0)))
        assert_allclose(process.values(), -process.X @ START)
        assert_allclose(moved.weights + START, original.weights, rtol=1e-9)
        assert np.abs(original.weights).max() > 20.0  # on its way to infinity

    def test_refuses(self) -> None:
        with pytest.raises(InvalidParameterError, match="eight numbers"):
            baird(weights=[1.0])
