"""Actions that the log does not have: bounds against dense linear algebra, coverage, refusals and options."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from typer.testing import CliRunner

import tlstd
from tests.evaluation.logs import random_decisions, simulated
from tlstd import InvalidParameterError, Log, TileCoder
from tlstd.cli.app import app
from tlstd.core.arrays import FloatArray
from tlstd.evaluation import Report, difference
from tlstd.evaluation.fits import fit_actions
from tlstd.evaluation.intervals import interval_of
from tlstd.evaluation.policies import Target
from tlstd.evaluation.silence import Limits, Support, given_limits, is_table, seen_limits, supported, supports_of
from tlstd.evaluation.steps import Rows, steps_of

N, N_ACTIONS, GAMMA = 10, 3, 0.9


def partly_logged(seed: int, n_steps: int = 1_500) -> tuple[Log, FloatArray]:
    """A log that lacks action 2 in state 3, all but one action in state 7 and nothing else; and a policy."""
    rng = np.random.default_rng(seed)
    behaviour = np.full((N, N_ACTIONS), 1.0 / N_ACTIONS)
    behaviour[3], behaviour[7] = [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]
    log = simulated(random_decisions(rng, N, N_ACTIONS, 3, 0.05), behaviour, rng, n_steps, 25)
    return log, 0.7 * behaviour + 0.3 * rng.dirichlet(np.ones(N_ACTIONS), size=N)


def unheard() -> FloatArray:
    """A policy that takes what those logs do not have."""
    policy = np.eye(N_ACTIONS)[np.zeros(N, dtype=int)]
    policy[3], policy[7] = [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]
    return policy


def fully_logged(seed: int) -> tuple[Log, FloatArray]:
    rng = np.random.default_rng(seed)
    behaviour = np.full((N, N_ACTIONS), 1.0 / N_ACTIONS)
    log = simulated(random_decisions(rng, N, N_ACTIONS, 3, 0.05), behaviour, rng, 1_500, 25)
    return log, rng.dirichlet(np.ones(N_ACTIONS), size=N)


def counted(log: Log, policy: FloatArray, with_finals: bool) -> tuple[float, float]:
    """V₀ and M of the process that the log shows, by counting and a dense solution."""
    size = N * N_ACTIONS
    states, actions = np.asarray(log.observations), np.asarray(log.actions, dtype=np.int64)
    pair = states * N_ACTIONS + actions
    following = np.append(states[1:], 0)
    following[log.episodes[1:] - 1] = log.final
    used = np.ones(len(log), dtype=bool) if with_finals else ~log.truncated
    counts, P, r = np.zeros(size), np.zeros((size, N)), np.zeros(size)
    np.add.at(counts, pair[used], 1.0)
    np.add.at(r, pair[used], log.rewards[used])
    go_on = used & ~log.terminated
    np.add.at(P, (pair[go_on], following[go_on]), 1.0)
    visited = counts.reshape(N, N_ACTIONS) > 0
    known, unknown = policy * visited, policy * ~visited
    seen = np.flatnonzero(counts)
    P, r = P[seen] / counts[seen, None], r[seen] / counts[seen]
    to_pairs = np.einsum("it,tb->itb", P, known).reshape(len(seen), -1)[:, seen]
    A = np.eye(len(seen)) - GAMMA * to_pairs
    starts = np.bincount(states[log.episodes[:-1]], minlength=N) / log.n_episodes
    first = (starts[:, None] * known).ravel()[seen]
    values, masses = np.linalg.solve(A, r), np.linalg.solve(A, GAMMA * P @ unknown.sum(axis=1))
    return float(first @ values), float(first @ masses + starts @ unknown.sum(axis=1))


@pytest.mark.parametrize("as_table", [False, True])
def test_both_ends_are_those_of_the_counted_process(as_table: bool) -> None:
    log, policy = partly_logged(0)
    asked: Any = policy[log.observations] if as_table else lambda states: policy[states]
    found = tlstd.evaluate(log, gamma=GAMMA, policy=asked, returns=(-3.0, 8.0))
    silence, (without, mass) = found.silence, counted(log, policy, with_finals=not as_table)
    assert silence is not None
    assert 0.02 < mass < 0.5
    assert_allclose(silence.mass, mass, rtol=1e-8)
    assert_allclose(silence.interval.lower.value, without - 3.0 * mass, atol=1e-8)
    assert_allclose(silence.interval.upper.value, without + 8.0 * mass, atol=1e-8)
    assert_allclose(found.value, without + 2.5 * mass, atol=1e-8)
    assert silence.is_bound
    assert {(one.state, one.action) for one in silence.missing} == {
        ("state 3", "2"),
        ("state 7", "0"),
        ("state 7", "1"),
    }
    assert_allclose(sum(one.mass for one in silence.missing), mass, rtol=0.02)  # by an adjoint that has settled


def test_the_interval_has_both_parts_at_every_level() -> None:
    log, policy = partly_logged(1)
    found = tlstd.evaluate(log, gamma=GAMMA, policy=lambda states: policy[states], returns=(-10.0, 10.0))
    interval, silence = found.interval(), found.silence
    assert silence is not None
    assert interval.low == silence.interval.lower.low
    assert interval.high == silence.interval.upper.high
    assert_allclose(silence.interval.silence, 10.0 * silence.mass, rtol=1e-8)
    narrow = found.interval(level=0.5)
    assert narrow.half_width > silence.interval.silence
    assert narrow.half_width - silence.interval.silence < 0.5 * silence.interval.sampling
    shown = json.loads(found.to_json())
    assert_allclose(shown["interval"]["half_widths"]["silence"], silence.interval.silence)
    assert shown["silence"]["returns"] == {"low": -10.0, "high": 10.0, "given": True}
    assert "is chance" in str(found)
    # what a policy is worth by its middle is what episodes say of it
    assert_allclose(found.influence().value, found.value)


def test_sparse_logs_are_covered_with_it_and_not_without() -> None:
    """40 logs with about a half of the pairs that the policy takes; nominal 95%."""
    with_it = without = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n, n_actions = 30, 4
        process = random_decisions(rng, n, n_actions, 3, 0.1)
        behaviour, other = (rng.dirichlet(np.full(n_actions, 0.5), size=n) for _ in range(2))
        policy = (behaviour + other) / 2.0
        log, Q = simulated(process, behaviour, rng, 500, 30), process.action_values(policy, GAMMA)
        truth = float((policy * Q).sum(axis=1).mean())
        limits = (float(Q.min()), float(Q.max()))
        found = tlstd.evaluate(
            log, gamma=GAMMA, policy=lambda states, policy=policy: policy[states], returns=limits, estimators=["LSTDQ"]
        )
        with_it += truth in found.interval()
        fit = found.fit
        without += truth in interval_of(fit.value(fit.query(found.case.sets[0]))[0].found)
    assert with_it >= 0.93 * 40
    assert without <= 0.75 * 40


def test_nothing_changes_where_the_log_has_all_actions() -> None:
    log, policy = fully_logged(2)
    plain = tlstd.evaluate(log, gamma=GAMMA, policy=lambda states: policy[states])
    told = tlstd.evaluate(log, gamma=GAMMA, policy=lambda states: policy[states], returns=(-50.0, 50.0))
    assert plain.silence is told.silence is None
    (found,) = plain.fit.value(plain.fit.query(plain.case.sets[0]))
    assert plain.interval() == told.interval()
    assert plain.interval().half_width == interval_of(found.found).half_width
    assert plain.trust["silence"].state == "green"


def test_the_range_seen_is_an_assumption_and_never_green() -> None:
    log, policy = partly_logged(3)
    seen = tlstd.evaluate(log, gamma=GAMMA, policy=lambda states: policy[states])
    assert seen.silence is not None
    assert not seen.silence.limits.given
    assert seen.trust is not None
    assert seen.trust["silence"].state in ("amber", "red")
    assert "an assumption" in str(seen)
    told = tlstd.evaluate(
        log, gamma=GAMMA, policy=lambda states: policy[states], returns=tuple(seen.silence.limits[:2])
    )
    assert told.rows[0].interval == seen.rows[0].interval
    assert told.trust is not None
    assert told.trust["silence"].state == "green"


def test_rewards_are_summed_over_the_horizon() -> None:
    log, policy = partly_logged(4)
    by_rewards = tlstd.evaluate(log, gamma=GAMMA, policy=lambda states: policy[states], rewards=(-1.0, 0.5))
    assert by_rewards.silence is not None
    assert_allclose(by_rewards.silence.limits[:2], (-10.0, 5.0))
    positive = tlstd.evaluate(log, gamma=GAMMA, policy=lambda states: policy[states], rewards=(0.2, 0.5))
    assert positive.silence is not None
    assert_allclose(positive.silence.limits[:2], (0.2, 5.0))  # an episode may end at once


def test_an_answer_outside_of_the_given_range_is_red() -> None:
    log, policy = fully_logged(5)
    for asked in (None, lambda states: policy[states]):
        value = tlstd.evaluate(log, gamma=GAMMA, policy=asked).value
        found = tlstd.evaluate(log, gamma=GAMMA, policy=asked, returns=(value + 1.0, value + 2.0))
        assert found.trust is not None
        assert found.trust["inside"].state == "red"
        assert found.light == "red"


def test_a_refusal_names_what_is_missing() -> None:
    log, policy = partly_logged(6)
    missed = unheard()
    found = tlstd.evaluate(log, gamma=GAMMA, policy=lambda states: missed[states], returns=(-5.0, 5.0))
    assert found.rung == "refusal"
    assert np.isnan(found.value)
    assert found.light == "red"
    assert found.interval().half_width > 2.5
    assert found.trust is not None
    assert "action 2 in state 3" in found.trust["silence"].sentence
    shown = json.loads(found.to_json())
    assert (shown["value"], shown["rung"], shown["silence"]["refusal"]) == (None, "refusal", True)
    assert {one["state"] for one in shown["silence"]["missing"]} == {"state 3", "state 7"}
    beside = tlstd.evaluate(log, gamma=GAMMA, policy=lambda states: policy[states], returns=(-5.0, 5.0))
    assert "whose value is not known" in str(beside.compared(found))


def test_a_difference_has_room_for_both_silences() -> None:
    log, policy = partly_logged(7)
    other = np.full((N, N_ACTIONS), 1.0 / N_ACTIONS)
    ask: dict[str, Any] = {"gamma": GAMMA, "returns": (-4.0, 4.0)}
    a, b = (tlstd.evaluate(log, policy=lambda states, p=p: p[states], **ask) for p in (policy, other))
    logged = tlstd.evaluate(log, **ask)
    for one, two in ((a, b), (a, logged), (logged, a)):
        found = difference(one, two)
        low, high = ends(one)[0] - ends(two)[1], ends(one)[1] - ends(two)[0]
        assert found.low < low < high < found.high


def ends(evaluation: Report) -> tuple[float, float]:
    """L and U."""
    if evaluation.silence is None:
        return evaluation.value, evaluation.value
    return evaluation.silence.interval.lower.value, evaluation.silence.interval.upper.value


def line(seed: int, low: float) -> Log:
    """Points in [0, 1] that drift; action 1 is only logged above ``low``."""
    rng = np.random.default_rng(seed)
    states = rng.random(4_000)
    actions = ((states > low) & (rng.random(4_000) < 0.5)).astype(int)
    rewards = states + 0.2 * actions + 0.1 * rng.standard_normal(4_000)
    ended = np.arange(4_000) % 4 == 3
    return Log.from_arrays(states[:, None], rewards, actions=actions, terminated=ended, episodes=np.arange(4_000) // 4)


def test_with_overlapping_features_it_is_a_sensitivity() -> None:
    coder = TileCoder([0.0], [1.0], tiles=10, tilings=4)
    always = lambda states: np.ones(len(states), dtype=int)  # noqa: E731
    ask: dict[str, Any] = {"gamma": 0.5, "policy": always, "features": coder, "returns": (0.0, 4.0)}
    everywhere, above = tlstd.evaluate(line(0, -1.0), **ask), tlstd.evaluate(line(0, 0.5), **ask)
    assert everywhere.silence is None
    silence = above.silence
    assert silence is not None
    assert not silence.is_bound
    below = 0.42  # down to where at least half of a state's tiles reach beyond 0.5
    assert_allclose(silence.mass, below * sum((0.5 * (1.0 - below)) ** k for k in range(4)), rtol=0.1)
    assert silence.missing[0].state.startswith("states like (0.")
    assert silence.missing[0].action == "1"


def test_an_answer_by_weights_does_not_rest_on_missing_actions() -> None:
    rng = np.random.default_rng(12)
    behaviour = np.tile([0.6, 0.3, 0.1], (N, 1))
    behaviour[3] = [0.5, 0.5, 0.0]
    log = simulated(random_decisions(rng, N, N_ACTIONS, 3, 0.3), behaviour, rng, 1_500, 25, known=True)
    policy = 0.9 * behaviour + 0.1 / N_ACTIONS
    ask: dict[str, Any] = {"gamma": GAMMA, "policy": lambda states: policy[states], "returns": (-5.0, 5.0)}
    found = tlstd.evaluate(log, **ask)
    beside = next(row for row in found.rows if row.name == "LSTDQ")
    assert found.rung != "action values"
    assert found.silence is None
    assert found.trust is not None
    assert found.trust["silence"].state == "not applicable"
    assert beside.interval is not None
    alone = tlstd.evaluate(log, estimators=["LSTDQ"], **ask)
    assert alone.silence is not None
    assert alone.rows[0].interval == beside.interval
    weighted = tlstd.evaluate(log, estimators=["doubly robust", "LSTDQ"], **ask)
    assert weighted.trust is not None
    assert (weighted.rung == "action values") == (weighted.trust["silence"].state != "not applicable")


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
        ends = found.silence.interval
        values[low], values[high] = ends.lower.value, ends.upper.value
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


def limits_of(*given: Any) -> tuple[float, float, float]:
    """LOW and HIGH, and whether they were told."""
    found = given_limits(*given)
    assert found is not None
    return found.low, found.high, float(found.given)


def test_ranges_that_are_told() -> None:
    assert given_limits(None, None, 0.9, True) is None
    assert given_limits((-1, 2), None, 1.0, True) == Limits(-1.0, 2.0)
    assert_allclose(limits_of(None, (1.0, 2.0), 0.5, False), (2.0, 4.0, 1.0))
    assert_allclose(limits_of(None, (1.0, 2.0), 0.5, True), (1.0, 4.0, 1.0))  # it may end at once
    assert_allclose(limits_of(None, (-2.0, -1.0), 0.5, True), (-4.0, -1.0, 1.0))
    assert_allclose(limits_of(None, (-1.0, 3.0), 0.0, False), (-1.0, 3.0, 1.0))


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


# --- single decisions, and options ------------------------------------------------------------------------------------


def test_single_decisions() -> None:
    """Without a future only the first action counts."""
    rng = np.random.default_rng(11)
    contexts, actions = rng.integers(0, 4, 800), rng.integers(0, 2, 800)
    log = Log.from_arrays(contexts, contexts + actions + 0.0, actions=actions, discrete=True)
    policy = np.tile([0.5, 0.3, 0.2], (4, 1))
    found = tlstd.evaluate(log, gamma=0.0, policy=lambda states: policy[states], rewards=(0.0, 10.0))
    assert found.silence is not None
    assert_allclose(found.silence.mass, 0.2, rtol=1e-8)
    assert_allclose(found.silence.interval.lower.value, 0.8 * contexts.mean() + 0.3, atol=1e-6)
    assert {one.action for one in found.silence.missing} == {"2"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"returns": (1.0, 0.0)}, "the lower number first"),
        ({"returns": (0.0, float("inf"))}, "two finite numbers"),
        ({"rewards": (0.0,)}, "two finite numbers"),
        ({"returns": (0.0, 1.0), "rewards": (0.0, 1.0)}, "pass one"),
        ({"rewards": (0.0, 1.0), "gamma": 1.0}, r"pass returns=\(LOW, HIGH\)"),
    ],
)
def test_ranges_that_are_refused(given: dict[str, Any], words: str) -> None:
    log, _ = partly_logged(8)
    with pytest.raises(InvalidParameterError, match=words):
        tlstd.evaluate(log, **({"gamma": GAMMA} | given))


def test_options_of_the_command(tmp_path: Path) -> None:
    log, policy = partly_logged(9)[0], unheard()
    episode = np.repeat(np.arange(log.n_episodes), np.diff(log.episodes))
    pl.DataFrame(
        {
            "episode": episode,
            "observation": np.asarray(log.observations),
            "action": np.asarray(log.actions),
            "reward": log.rewards,
            "terminated": log.terminated,
            "truncated": log.truncated,
            **{f"p{a}": policy[log.observations, a] for a in range(N_ACTIONS)},
        }
    ).write_parquet(tmp_path / "log.parquet")
    asked = ["evaluate", str(tmp_path / "log.parquet"), "--gamma", "0.9", "--policy", "column:p0,p1,p2", "--json"]
    run = CliRunner().invoke
    told = run(app, [*asked, "--returns", "-100", "100"])
    assert told.exit_code == 0, told.output
    shown = json.loads(told.stdout)
    assert shown["silence"]["returns"] == {"low": -100.0, "high": 100.0, "given": True}
    assert (shown["rung"], shown["light"], shown["value"]) == ("refusal", "red", None)
    by_rewards = json.loads(run(app, [*asked, "--rewards", "-1", "2"]).stdout)
    assert_allclose(by_rewards["silence"]["returns"]["high"], 20.0)
    both = run(app, [*asked, "--returns", "0", "1", "--rewards", "0", "1"])
    assert both.exit_code == 1
    shards = run(app, [*asked, "--returns", "0", "1", "--workers", "1"])
    assert shards.exit_code == 1
    assert "--returns is for one process" in shards.stderr
