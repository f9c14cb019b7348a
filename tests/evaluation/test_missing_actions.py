"""What the log does not have of a policy: support against dense formulas, bounds by trying all values, ranges."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

import tlstd
from tests.evaluation.logs import random_decisions, simulated
from tlstd import InvalidParameterError, Log
from tlstd.core.arrays import FloatArray
from tlstd.evaluation.fits import fit_actions
from tlstd.evaluation.policies import Target
from tlstd.evaluation.silence import (
    Limits,
    Support,
    given_limits,
    is_table,
    merged,
    seen_limits,
    supported,
    supports_of,
)
from tlstd.evaluation.steps import Rows, steps_of

N, N_ACTIONS, GAMMA = 10, 3, 0.9


def partly_logged(seed: int, n_steps: int = 1_500) -> tuple[Log, FloatArray]:
    """A log that lacks action 2 in state 3, all but one action in state 7 and nothing else; and a policy."""
    rng = np.random.default_rng(seed)
    behaviour = np.full((N, N_ACTIONS), 1.0 / N_ACTIONS)
    behaviour[3], behaviour[7] = [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]
    log = simulated(random_decisions(rng, N, N_ACTIONS, 3, 0.05), behaviour, rng, n_steps, 25)
    return log, 0.7 * behaviour + 0.3 * rng.dirichlet(np.ones(N_ACTIONS), size=N)


# --- support ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pieces", [1, 3])
def test_leverage_by_a_dense_computation(pieces: int) -> None:
    """φᵀ(ΦᵀΦ + ηI)⁻¹φ <= 1, η half of the mean ‖φ‖²; nothing is there where nothing was logged."""
    rng = np.random.default_rng(10)
    d, n = 12, 60
    states = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.3)
    states[:, 0] = 1.0
    asked = 3.0 * rng.standard_normal((400, d)) * (rng.random((400, d)) < 0.3)
    logged = rng.integers(0, 3, n).astype(float)
    size = n // pieces
    rows = Rows([sp.csr_array(states[i : i + size]) for i in range(0, n, size)], np.arange(d), d)
    others = Rows([sp.csr_array(asked)], np.arange(d), d)
    ridge = 0.5 * (states**2).sum() / n
    gram = sum((logged[i] * np.outer(states[i], states[i]) for i in range(n)), ridge * np.eye(d))
    leverages = np.array([row @ np.linalg.solve(gram, row) for row in asked])
    some = rng.permutation(400)[:300]
    assert 40 < (leverages > 1.0).sum() < 360
    assert_array_equal(Support.of(rows, logged, False).has(others, some), leverages[some] <= 1.0)
    assert not Support.of(rows, np.zeros(n), False).has(others, some).any()
    dense_blocks = Rows([states], np.arange(d), d)
    assert_array_equal(Support.of(dense_blocks, logged, False).has(others, some), leverages[some] <= 1.0)
    if pieces > 1:  # each of them has some of the steps
        parts = [
            Support.of(Rows([block], rows.ids, d), logged[i * size : (i + 1) * size], False)
            for i, block in enumerate(rows.blocks)
        ]
        assert_array_equal(merged(parts, False).has(others, some), leverages[some] <= 1.0)


def test_many_features_count_by_their_share() -> None:
    """Beyond 1,000 features an action is there if at least half of ‖φ‖² lies on features that it had."""
    d = 1_200
    n = 1_100
    rows = Rows([sp.csr_array(np.eye(n, d) + np.eye(n, d, 1))], np.arange(d), d)  # two neighbouring features each
    asked = sp.csr_array(np.eye(d)[[0, 1_150, 50]] + 0.9 * np.eye(d)[[1_199, 3, 1_180]])
    found = Support.of(rows, np.ones(n), False).has(Rows([asked], np.arange(d), d), np.arange(3))
    assert_array_equal(found, [True, False, True])


@pytest.mark.parametrize("seed", range(3))
def test_in_tables_support_is_a_visit(seed: int) -> None:
    """Probabilities of actions without a visit are gaps where the policy is asked for them, and 0 in what is kept."""
    log, policy = partly_logged(seed, 300)
    steps = steps_of(log, GAMMA)
    rows = Rows.of(tlstd.OneHot([0], [N - 1]), steps.states[:, None].astype(float))
    assert is_table(rows)
    assert log.actions is not None
    actions = log.actions[steps.kept].astype(np.int64)
    chances = policy[steps.states]
    kept, gaps = supported(supports_of(rows, steps, actions, N_ACTIONS), rows, steps, chances)
    asked = {int(steps.states[row]) for row in steps.after[steps.discounts > 0.0]}
    asked |= set(np.asarray(log.observations)[log.start_rows].tolist())
    visited = {(int(s), int(a)) for s, a in zip(np.asarray(log.observations)[steps.kept], actions, strict=True)}
    expected, missing = chances.copy(), set()
    for i, state in enumerate(steps.states.tolist()):
        for action in range(N_ACTIONS):
            if state in asked and chances[i, action] > 0.0 and (state, action) not in visited:
                missing.add((state, action, chances[i, action]))
                expected[i, action] = 0.0
    found = set(zip(steps.states[gaps.rows].tolist(), gaps.actions.tolist(), gaps.weights.tolist(), strict=True))
    assert found == missing
    assert len(missing) >= 3
    assert_array_equal(kept, expected)


# --- bounds -----------------------------------------------------------------------------------------------------------


def test_the_value_is_linear_in_what_missing_actions_are_worth() -> None:
    log, policy = partly_logged(0)
    pairs = [(-3.0, -3.0), (0.0, 1.0), (2.0, 9.0)]
    values = {}
    for low, high in pairs:
        found = tlstd.evaluate(log, gamma=GAMMA, policy=lambda states: policy[states], returns=(low, high))
        assert found.silence is not None
        values[low], values[high] = (
            each.value for each in (found.silence.interval.lower, found.silence.interval.upper)
        )
    slope = values[1.0] - values[0.0]
    assert 0.0 < slope < 1.0
    for worth, value in values.items():
        assert value == pytest.approx(values[0.0] + slope * worth, abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_every_assignment_of_values_is_within_the_bounds(seed: int) -> None:
    """A small table whose steps are not random: each missing action is worth LOW, HIGH or between, all combinations."""
    rng = np.random.default_rng(seed)
    n, n_actions, limits = 4, 2, (-2.0, 5.0)
    process = random_decisions(rng, n, n_actions, 1, 0.0)  # no randomness: the log shows the process itself
    behaviour = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0], [1.0, 0.0]])
    policy = rng.dirichlet(np.ones(n_actions), n)
    log = simulated(process, behaviour, rng, 400, 8)
    found = tlstd.evaluate(log, gamma=GAMMA, policy=lambda states: policy[states], returns=limits, estimators=["LSTDQ"])
    silence = found.silence
    assert silence is not None
    L, U = silence.interval.lower.value, silence.interval.upper.value
    missing = [(s, a) for s in range(n) for a in range(n_actions) if behaviour[s, a] == 0.0]
    assert {(one.state, one.action) for one in silence.missing} <= {(f"state {s}", f"{a}") for s, a in missing}
    first = np.bincount(log.observations[log.start_rows], minlength=n) / log.n_episodes
    values = []
    for worth in product((*limits, 1.3), repeat=len(missing)):
        # q of a missing pair is its worth; of the others r + γ v(next)
        A, b = np.eye(n * n_actions), process.rewards.ravel().copy()
        for s, a in product(range(n), range(n_actions)):
            if (s, a) in missing:
                b[s * n_actions + a] = worth[missing.index((s, a))]
            else:
                A[s * n_actions + a] -= GAMMA * (process.P[s, a][:, None] * policy).ravel()
        q = np.linalg.solve(A, b).reshape(n, n_actions)
        values.append(float(first @ (policy * q).sum(axis=1)))
    assert min(values) == pytest.approx(L, abs=1e-6)
    assert max(values) == pytest.approx(U, abs=1e-6)
    assert all(L - 1e-6 <= value <= U + 1e-6 for value in values)
    assert U - L > 0.5


def test_mass_of_single_states_by_the_weights_of_what_is_missing() -> None:
    """The second side of the system is the discounted probability of a missing action, state by state."""
    log, policy = partly_logged(0)
    fit = fit_actions(log, tlstd.OneHot([0], [N - 1]), GAMMA, Target(function=lambda states: policy[states]))
    assert fit.silent
    visited = np.zeros((N, N_ACTIONS), dtype=bool)
    visited[log.observations, np.asarray(log.actions, dtype=np.int64)] = True
    assert_allclose(fit.beyond[np.argsort(fit.steps.states)], (policy * ~visited).sum(axis=1), atol=1e-12)
    assert_allclose(fit.system.rewards[1], fit.steps.discounts * fit.beyond[fit.steps.after], atol=1e-12)


# --- ranges of returns ------------------------------------------------------------------------------------------------


def test_ranges_that_are_told() -> None:
    assert given_limits(None, None, 0.9, True) is None
    assert given_limits((-1, 2), None, 1.0, True) == Limits(-1.0, 2.0)
    for rewards, gamma, terminates, expected in (
        ((1.0, 2.0), 0.5, False, (2.0, 4.0)),
        ((1.0, 2.0), 0.5, True, (1.0, 4.0)),  # it may end at once
        ((-2.0, -1.0), 0.5, True, (-4.0, -1.0)),
        ((-1.0, 3.0), 0.0, False, (-1.0, 3.0)),
    ):
        found = given_limits(None, rewards, gamma, terminates)
        assert found is not None
        assert found.given
        assert (found.low, found.high) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("returns", "rewards", "gamma", "words"),
    [
        ((1.0, 0.0), None, 0.9, "the lower number first"),
        ((0.0, np.nan), None, 0.9, "two finite numbers"),
        ((0.0, 1.0, 2.0), None, 0.9, "two finite numbers"),
        (("a", "b"), None, 0.9, "two finite numbers"),
        (None, (0.0,), 0.9, "two finite numbers"),
        (None, (0.0, 1.0), 1.0, r"pass returns=\(LOW, HIGH\)"),
        ((0.0, 1.0), (0.0, 1.0), 0.9, "pass one"),
    ],
)
def test_ranges_that_cannot_be(returns: Any, rewards: Any, gamma: float, words: str) -> None:
    with pytest.raises(InvalidParameterError, match=words):
        given_limits(returns, rewards, gamma, True)


def test_ranges_that_are_seen() -> None:
    log, _ = partly_logged(0, 200)
    steps = steps_of(log, GAMMA)
    assert seen_limits(steps, np.array([3.0, -1.0, 2.0])) == Limits(-1.0, 3.0, False)
    by_rewards = seen_limits(steps, np.zeros(0))
    assert_allclose(by_rewards[:2], (10.0 * min(0.0, log.rewards.min()), 10.0 * max(0.0, log.rewards.max())))
