from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tlstd_lab.processes import ORACLES, garnet, garnet_off_policy, spiral
from tlstd_lab.processes.spiral import spiral_weights

from tlstd.domains import MarkovRewardProcess
from tlstd.errors import InvalidParameterError


@pytest.mark.parametrize("name", ORACLES)
def test_registry(name: str) -> None:
    arguments = () if name == "spiral" else (5, 2, 2, 3, np.random.default_rng(0))
    process = ORACLES[name](*arguments, gamma=0.9)
    assert isinstance(process, MarkovRewardProcess)
    assert process.gamma == 0.9


class TestGarnet:
    def test_shapes_and_branching(self) -> None:
        process = garnet_off_policy(20, 3, 4, 6, np.random.default_rng(0), gamma=0.9)
        assert process.X.shape == (20, 6)
        assert_array_equal((process._action_P > 0.0).sum(axis=2), 4)
        assert_allclose(process._action_P.sum(axis=2), 1.0, rtol=1e-14)

    @pytest.mark.parametrize("seed", range(20))
    def test_every_state_is_visited(self, seed: int) -> None:
        """Even with one action and one successor, where a random map would rarely be a cycle."""
        process = garnet(7, 1, 1, 2, np.random.default_rng(seed), gamma=0.9)
        assert_allclose(process.state_distribution(), 1 / 7, rtol=1e-13)

    def test_termination(self) -> None:
        process = garnet(6, 2, 2, 3, np.random.default_rng(0), gamma=1.0, termination=0.25)
        assert_allclose(process.termination, 0.25, rtol=1e-14)
        path = process.trajectory(40_000, np.random.default_rng(0))
        assert abs(path.terminated.mean() - 0.25) < 4.0 * np.sqrt(0.25 * 0.75 / 40_000)

    def test_features(self) -> None:
        rng = np.random.default_rng(0)
        X = garnet(30, 2, 2, 8, rng, gamma=0.9, features="binary", active=3).X
        assert_array_equal(np.unique(X), [0.0, 1.0])
        assert_array_equal(X.sum(axis=1), 3.0)
        assert_array_equal(garnet(30, 2, 2, 8, rng, gamma=0.9, features="binary").X.sum(axis=1), 2.0)

    def test_policy(self) -> None:
        given = np.tile([0.25, 0.75], (6, 1))
        process = garnet_off_policy(6, 2, 2, 3, np.random.default_rng(0), gamma=0.9, target=given)
        assert_array_equal(process.target, given)
        folded = garnet(6, 2, 2, 3, np.random.default_rng(0), gamma=0.9, policy=given)
        assert_allclose(folded.P, 0.25 * process._action_P[:, 0] + 0.75 * process._action_P[:, 1], rtol=1e-15)
        assert_allclose(folded.values(), process.values(), rtol=1e-13)

    def test_same_seed_same_process(self) -> None:
        first, second = (garnet(6, 2, 2, 3, np.random.default_rng(7), gamma=0.9) for _ in range(2))
        assert_array_equal(first.P, second.P)
        assert_array_equal(first.X, second.X)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"n_states": 0}, "n_states is 0"),
            ({"n_actions": 1.0}, r"n_actions is 1\.0"),
            ({"branching": 7}, "branching is 7: it must be an integer from 1 to 6"),
            ({"n_features": 0}, "n_features is 0"),
            ({"termination": 1.0}, r"termination is 1\.0"),
            ({"gamma": 1.0}, "gamma is 1 but state 0"),
            ({"policy": "greedy"}, "policy is 'greedy'"),
            ({"policy": np.ones((6, 3))}, r"policy has shape \(6, 3\)"),
            ({"policy": np.ones((6, 2))}, "policy has a row"),
            ({"features": "onehot"}, "features is 'onehot'"),
            ({"active": 2}, "active is 2 but the features are Gaussian"),
            ({"features": "binary", "active": 5}, "active is 5: it must be an integer from 1 to 3"),
        ],
    )
    def test_bad_parameters(self, changes: dict[str, Any], message: str) -> None:
        parameters: dict[str, Any] = {"n_states": 6, "n_actions": 2, "branching": 2, "n_features": 3, "gamma": 0.9}
        with pytest.raises(InvalidParameterError, match=message):
            garnet(rng=np.random.default_rng(0), **(parameters | changes))


class TestSpiral:
    def test_the_curve_solves_what_makes_it_diverge(self) -> None:
        """TD's mean step of θ leads outwards from everywhere."""
        A, _ = spiral().system(0.0)
        for theta in np.linspace(-20.0, 60.0, 200):
            point, tangent = spiral_weights(theta)
            assert -tangent @ A @ point > 0.0

    def test_values_and_tangent(self) -> None:
        process = spiral(weights=[100.0, 0.0])
        assert_allclose(process.values(), [100.0, -70.0, -30.0])
        assert_allclose(process.solution(0.3), [100.0, 0.0], atol=1e-9)
        point, tangent = spiral_weights(2.0)
        assert_allclose((spiral_weights(2.0 + 1e-6)[0] - point) / 1e-6, tangent, atol=1e-3)
        with pytest.raises(InvalidParameterError, match="two numbers"):
            spiral(weights=[1.0])
