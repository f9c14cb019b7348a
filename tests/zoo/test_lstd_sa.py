"""fLSTD-SA against a literal loop over dense vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.helpers import dense
from tests.krylov.literal_system import random_steps
from tlstd import LSTDSA, Decay, Transition, Transitions
from tlstd.core.arrays import FloatArray
from tlstd.errors import InvalidParameterError


def literal(steps: Transitions, alpha: Any, passes: int, average: float, seed: int, n_targets: int) -> FloatArray:
    """All iterates, and the mean of the last ones."""
    rows, w, iterates = list(steps), np.zeros((steps.n_features, n_targets)), []
    draws = [np.random.default_rng([seed, k]).integers(0, len(rows), len(rows)) for k in range(passes)]
    for n, i in enumerate(np.concatenate(draws), 1):
        t = rows[i]
        x, x_next = dense(t.x), dense(t.x_next)
        w = w + alpha(n) * t.rho * np.outer(x, t.reward + t.discount * x_next @ w - x @ w)
        iterates.append(w)
    mean: FloatArray = np.mean(iterates[min(len(iterates) - 1, round((1.0 - average) * len(iterates))) :], axis=0)
    return mean


@pytest.mark.parametrize(
    ("kind", "ratios", "passes", "average"),
    [("binary", False, 1, 1.0), ("valued", True, 4, 0.3), ("dense", True, 2, 1e-9)],
)
def test_against_a_literal_loop(kind: str, ratios: bool, passes: int, average: float) -> None:
    steps = random_steps(np.random.default_rng([3, passes]), 120, kind=kind, ratios=ratios, n_targets=2, n_features=15)
    decay = Decay(0.05, 100)
    model = LSTDSA(15, step_size=decay, passes=passes, average=average, seed=5, n_targets=2)
    model.update_many(steps[:50])
    for t in steps[50:60]:
        model.update(t)
    model.update_many(steps[60:])
    expected = literal(steps, decay.at, passes, average, 5, 2)
    assert_allclose(model.weights, expected, rtol=1e-10, atol=1e-12)


def test_one_sample_by_hand() -> None:
    """x = 2, r = 3 at an end and α = 0.1: w goes to 0.6, 0.96, 1.176 by w += 0.2 (3 - 2 w), and the mean is 0.912."""
    step = Transition([2.0, 0.0], 3.0, [0.0, 1.0], discount=0.0, trace_discount=0.0)
    for average, expected in ((1.0, (0.6 + 0.96 + 1.176) / 3), (2 / 3, (0.96 + 1.176) / 2), (0.01, 1.176)):
        model = LSTDSA(2, step_size=0.1, passes=3, average=average)
        model.update(step)
        assert_allclose(model.weights, [expected, 0.0])


def test_parameters_are_checked() -> None:
    with pytest.raises(InvalidParameterError, match=r"average is 0\.0: it must lie in"):
        LSTDSA(2, step_size=0.1, average=0.0)
    with pytest.raises(InvalidParameterError, match="passes is 2000"):
        LSTDSA(2, step_size=0.1, passes=2_000)
