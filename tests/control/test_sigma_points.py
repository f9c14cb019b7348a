"""Sigma points: exact moments, exact for tables, and the same from pieces."""

from __future__ import annotations

import numpy as np
import pytest

from tests.control.references import random_table
from tests.control.test_lspi import full, two_columns
from tlstd import RBF, OneHot, StateAction, Transitions
from tlstd.control import policy_iteration, sigma_point_policy_iteration
from tlstd.control import sigma_points as module
from tlstd.control.sigma_points import About, SigmaPoints
from tlstd.control.steps import action_steps
from tlstd.errors import CapacityError, InvalidParameterError


@pytest.mark.parametrize("seed", range(4))
def test_with_a_feature_for_each_state_it_is_lspi(seed: int) -> None:
    table = random_table(np.random.default_rng(seed), 6, 3, 30 if seed % 2 else 500)
    features = StateAction(OneHot([0], [8]), 3)  # three states never occur
    start = np.random.default_rng(seed + 9).normal(size=features.n_features)
    points = sigma_point_policy_iteration(
        table.log(9), features, gamma=0.9, about="zero", ridge=0.0, rcond=1e-12, start=start, tolerance=0.0
    )
    steps = policy_iteration(table.log(9), features, full, gamma=0.9, start=start, tolerance=0.0)
    assert points.stopped == steps.stopped == "converged"
    for one, other in zip(points.history, steps.history, strict=True):
        np.testing.assert_allclose(one.weights, other.weights, atol=1e-8)
        assert one.value == pytest.approx(other.value)


@pytest.mark.parametrize("about", ["zero", "mean"])
@pytest.mark.parametrize("grid", [2, 5])
def test_the_points_have_the_moments_of_the_steps(about: About, grid: int) -> None:
    """The 25 functions of the second map are more than the rank of 20 steps."""
    log, _ = two_columns(20)
    features = StateAction(RBF([0.0, 0.0], [1.0, 1.0], grid=grid, width=0.5), 2)
    steps = action_steps(log, features, 0.8, None)
    X, F, gamma = steps.X.toarray(), steps.X_next.toarray(), steps.discounts
    moments = module._of_pieces([steps])
    points = SigmaPoints(moments, about, 0.0, 1e-10)
    C = (X * gamma[:, None]).T @ F / len(steps)
    columns = (np.arange(2)[:, None] * grid**2 + moments.used).ravel()
    np.testing.assert_allclose(points.X @ points.U.T, C[np.ix_(columns, moments.used)], atol=1e-7)
    # a policy that always does the same is linear, so that its matrix is exact
    W = np.zeros((2, grid**2))
    same = points.asked(np.vstack([W[0] - 1.0, W[1]]).ravel())
    if about == "mean":  # all features are positive near the mean, not at every point of the second moments
        assert set(same.tolist()) <= {0, 1}
    A = X.T @ X / len(steps) - np.hstack([np.zeros_like(C), C])
    w = points.fit(np.ones(points.U.shape[1], dtype=np.int64))
    np.testing.assert_allclose((A @ w)[columns], (X.T @ steps.rewards / len(steps))[columns], atol=1e-6)


def test_pieces_are_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    log, _ = two_columns(60)
    features = StateAction(RBF([0.0, 0.0], [1.0, 1.0], grid=2, width=0.5), 2)
    whole = sigma_point_policy_iteration(log, features, gamma=0.8)
    monkeypatch.setattr(module, "PIECE", 7)
    pieces = sigma_point_policy_iteration(log, features, gamma=0.8)
    np.testing.assert_allclose(pieces.weights, whole.weights, atol=1e-9)
    assert pieces.stopped == whole.stopped


def test_it_takes_transitions_too_and_steps_without_a_next() -> None:
    """All steps end: the values are the mean rewards."""
    X = np.eye(2)[[0, 0, 1, 1]]
    steps = Transitions.from_rows(
        X,
        np.arange(4),
        [1.0, 2.0, 3.0, 5.0],
        np.arange(4),
        discounts=np.zeros(4),
        trace_discounts=np.zeros(4),
        actions=[0, 1, 0, 1],
    )
    for about in ("zero", "mean"):
        found = sigma_point_policy_iteration(
            steps, StateAction(OneHot([0], [1]), 2), about=about, ridge=0.0, center=False
        )
        np.testing.assert_allclose(found.weights, [1.0, 3.0, 2.0, 5.0], atol=1e-12)


def test_too_many_features_and_bad_words_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    log, _ = two_columns(20)
    features = StateAction(RBF([0.0, 0.0], [1.0, 1.0], grid=2, width=0.5), 2)
    with pytest.raises(InvalidParameterError, match="about is 'median'"):
        sigma_point_policy_iteration(log, features, gamma=0.8, about="median")  # type: ignore[arg-type]
    monkeypatch.setattr(module, "LARGEST", 7)
    with pytest.raises(CapacityError, match="8 features of states and actions occur, more than 7"):
        sigma_point_policy_iteration(log, features, gamma=0.8)
