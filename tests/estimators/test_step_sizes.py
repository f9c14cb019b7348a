from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tests.helpers import random_transitions
from tlstd.classic.td import TD
from tlstd.core.arrays import FloatArray
from tlstd.errors import InvalidParameterError
from tlstd.estimators.step_sizes import Constant, Decay, Function, as_schedule


class TestValues:
    def test_constant(self) -> None:
        numbers: list[Any] = [0.25, np.float64(0.25), np.float32(0.25)]
        for given in numbers:
            assert as_schedule(given) == Constant(0.25)
        assert_array_equal(as_schedule(1).values(7, 3), [1.0, 1.0, 1.0])

    def test_decay_by_hand(self) -> None:
        """0.3 · 11 / (10 + t): 0.3 at t=1, half of it at t=12, 0.3·11/110 = 0.03 at t=100."""
        schedule = Decay(0.3, 10)
        assert_allclose(schedule.values(1, 1), [0.3], rtol=1e-15)
        assert_allclose(schedule.values(12, 1), [0.15], rtol=1e-15)
        assert_allclose(schedule.values(100, 1), [0.03], rtol=1e-15)
        assert_allclose(Decay(1.0, 0).values(1, 4), [1.0, 1 / 2, 1 / 3, 1 / 4], rtol=1e-15)

    @pytest.mark.parametrize("schedule", [Constant(0.2), Decay(0.3, 10), Function(lambda t: 1.0 / t)])
    def test_parts_are_the_whole(self, schedule: Any) -> None:
        parts = [schedule.values(1, 4), schedule.values(5, 0), schedule.values(5, 6)]
        assert_array_equal(np.concatenate(parts), schedule.values(1, 10))

    def test_function(self) -> None:
        asked: list[int] = []

        def alpha(t: int) -> float:
            asked.append(t)
            return 1 / t

        assert_array_equal(as_schedule(alpha).values(3, 3), [1 / 3, 1 / 4, 1 / 5])
        assert asked == [3, 4, 5]
        assert_array_equal(as_schedule(lambda t: 0).values(1, 2), [0.0, 0.0])

    def test_schedules_stay_as_they_are(self) -> None:
        for schedule in (Constant(0.1), Decay(0.1, 5), Function(abs)):
            assert as_schedule(schedule) is schedule
        with pytest.raises(dataclasses.FrozenInstanceError):
            Decay(0.1, 5).alpha0 = 3.0  # type: ignore[misc]
        assert Decay(0.1, 5) == Decay(0.1, 5.0) != Decay(0.1, 6)


class TestRefused:
    @pytest.mark.parametrize("value", [0, 0.0, -0.1, np.nan, np.inf, 1e101, 10**400, True, "0.1", None, [0.1], Decay])
    def test_step_size(self, value: Any) -> None:
        with pytest.raises(InvalidParameterError, match="step_size is") as caught:
            as_schedule(value)
        assert "must" in str(caught.value) or "pass" in str(caught.value)

    @pytest.mark.parametrize(("alpha0", "n0"), [(0.0, 1), (-1, 1), (np.nan, 1), (0.1, -1), (0.1, np.inf), ("a", 1)])
    def test_decay(self, alpha0: Any, n0: Any) -> None:
        with pytest.raises(InvalidParameterError, match=r"alpha0 is|n0 is"):
            Decay(alpha0, n0)

    @pytest.mark.parametrize("answer", [-0.1, np.nan, np.inf, 1e101, None, "x", True, np.ones(2)])
    def test_answer_of_a_function(self, answer: Any) -> None:
        schedule = as_schedule(lambda t: answer if t == 7 else 0.1)
        assert_array_equal(schedule.values(1, 6), 0.1)
        with pytest.raises(InvalidParameterError, match=r"step_size\(7\) is"):
            schedule.values(5, 4)


def dense_td(X: FloatArray, X_next: FloatArray, rewards: FloatArray, alphas: FloatArray) -> FloatArray:
    """TD(0) with γ = 0.9 on one endless episode."""
    w = np.zeros(X.shape[1])
    for x, x_next, r, alpha in zip(X, X_next, rewards, alphas, strict=True):
        w = w + alpha * (r + 0.9 * w @ x_next - w @ x) * x
    return w


class TestInAnEstimator:
    @pytest.mark.parametrize("density", [0.1, 1.0])
    def test_t_counts_the_updates(self, density: float) -> None:
        rng = np.random.default_rng(0)
        options: dict[str, Any] = {"density": density, "terminate": 0.0, "truncate": 0.0}
        steps = random_transitions(rng, n_features=12, n_steps=80, **options)
        expected = dense_td(steps.X, steps.X_next, steps.rewards, 0.1 * 6.0 / (5.0 + np.arange(1.0, 81.0)))
        for schedule in (Decay(0.1, 5), lambda t: 0.1 * 6.0 / (5.0 + t)):
            model = TD(12, step_size=schedule, lambda_=0.0)
            for t in steps[:20]:
                model.update(t)
            model.update_many(steps[20:70])
            model.update_many(steps[70:])
            assert_allclose(model.weights, expected, rtol=1e-12, atol=1e-14)

    @pytest.mark.parametrize("density", [0.1, 1.0])
    def test_a_function_that_fails_changes_nothing(self, density: float) -> None:
        class Trouble(Exception):
            pass

        def late_trouble(t: int) -> float:
            if t == 45:
                raise Trouble
            return -1.0 if t == 35 else 0.05

        steps = random_transitions(np.random.default_rng(1), n_features=12, n_steps=60, density=density)
        model, twin = (TD(12, step_size=late_trouble, lambda_=0.8) for _ in range(2))
        model.update_many(steps[:30])
        twin.update_many(steps[:30])
        with pytest.raises(InvalidParameterError, match=r"step_size\(35\) is -1.0"):
            model.update_many(steps[30:40])
        assert model.n_updates == 30
        for m in (model, twin):
            m.__dict__.update(step_size=Function(lambda t: 0.05 if t < 45 else late_trouble(t)))
        with pytest.raises(Trouble):
            model.update_many(steps[30:60])
        for each in (model, twin):
            each.update_many(steps[30:44])
        assert_array_equal(model.weights, twin.weights)
        assert model.n_updates == twin.n_updates == 44
