from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tlstd_lab.processes import garnet, garnet_off_policy

from tlstd.core.arrays import FloatArray
from tlstd.data.transitions import Transitions
from tlstd.domains import MarkovRewardProcess, OffPolicyProcess, boyan_chain, random_walk
from tlstd.errors import InvalidParameterError

N_BATCHES = 40


def episodic() -> MarkovRewardProcess:
    """Three states, everything uneven: rewards by transition, termination from two states, noise."""
    return MarkovRewardProcess(
        [[0.1, 0.6, 0.3], [0.5, 0.0, 0.2], [0.0, 0.7, 0.1]],
        [[1.0, -2.0, 0.5], [3.0, 0.0, 1.0], [0.0, -1.0, 2.0]],
        [[1.0, 0.3], [-0.5, 1.0], [2.0, 1.0]],
        gamma=0.9,
        start=[0.7, 0.0, 0.3],
        termination_rewards=[0.0, 4.0, -3.0],
        reward_noise=0.5,
        name="uneven",
    )


def two_states(**changes: Any) -> MarkovRewardProcess:
    parameters: dict[str, Any] = {"P": [[0.0, 0.5], [0.5, 0.0]], "rewards": [1.0, 2.0], "X": np.eye(2), "gamma": 0.9}
    return MarkovRewardProcess(**(parameters | changes))


@cache
def long_stream(name: str) -> Transitions:
    make, n_steps = PROCESSES[name]
    return make().sample(n_steps, np.random.default_rng(5))


@cache
def batch_averages(name: str, lambda_: float) -> tuple[FloatArray, FloatArray]:
    """Means and standard errors of (A, b) side by side, (d, d + 1), from the means over consecutive batches.

    z_t = ρ_t (γ_t λ z_{t−1} + x_t), step by step as an estimator does it.
    """
    stream = long_stream(name)
    X, X_next = np.asarray(stream.X), np.asarray(stream.X_next)
    Z = stream.rhos[:, None] * X
    decays = (stream.rhos * lambda_ * stream.trace_discounts).tolist()
    for c in range(Z.shape[1]):  # plain floats are quicker than rows of an array
        z, column = 0.0, Z[:, c].tolist()
        for t, decay in enumerate(decays):
            column[t] = z = column[t] + decay * z
        Z[:, c] = column
    right = np.column_stack([X - stream.discounts[:, None] * X_next, stream.rewards])
    size = len(stream) // N_BATCHES
    Z, right = (a[: size * N_BATCHES].reshape(N_BATCHES, size, -1) for a in (Z, right))
    batches = Z.transpose(0, 2, 1) @ right / size
    return batches.mean(axis=0), batches.std(axis=0, ddof=1) / np.sqrt(N_BATCHES)


PROCESSES = {
    "uneven": (episodic, 100_000),
    "boyan": (boyan_chain, 100_000),
    "walk": (lambda: random_walk(5, features="dependent", gamma=0.95), 100_000),
    "garnet": (lambda: garnet(10, 2, 3, 3, np.random.default_rng(1), gamma=0.9), 100_000),
    "garnet, episodes": (
        lambda: garnet(10, 2, 3, 3, np.random.default_rng(2), gamma=1.0, termination=0.2, features="binary", active=1),
        100_000,
    ),
    "off-policy": (
        lambda: garnet_off_policy(8, 2, 3, 3, np.random.default_rng(3), gamma=0.9, behaviour="random"),
        300_000,
    ),
    "off-policy, episodes": (
        lambda: garnet_off_policy(8, 2, 3, 3, np.random.default_rng(4), gamma=0.9, termination=0.2, reward_noise=0.3),
        200_000,
    ),
}


@pytest.mark.parametrize("lambda_", [0.0, 0.6])
@pytest.mark.parametrize("name", PROCESSES)
def test_system_is_the_limit_of_the_averages(name: str, lambda_: float) -> None:
    process = PROCESSES[name][0]()
    mean, error = batch_averages(name, lambda_)
    exact = np.column_stack(process.system(lambda_))
    assert np.all(np.abs(mean - exact) <= 4.5 * error + 1e-12)
    # and the simulation is long enough to tell something
    assert error.max() < 0.05 * np.abs(exact).max()


def test_simulation_tells_wrong_systems_apart() -> None:
    """A trace that runs on across restarts, or the target's state distribution, would not have passed above."""
    process = episodic()
    mean, error = batch_averages("uneven", 0.6)
    D, Q = np.diag(process.state_distribution()), process.P + np.outer(process.termination, process.start)
    X, right = process.X, (np.eye(3) - 0.9 * process.P) @ process.X
    right = np.column_stack([right, process.expected_rewards])
    uncut = X.T @ D @ np.linalg.solve(np.eye(3) - 0.9 * 0.6 * Q, right)
    assert np.max(np.abs(mean - uncut) / error) > 20.0

    off = PROCESSES["off-policy"][0]()
    mean, error = batch_averages("off-policy", 0.6)
    on = MarkovRewardProcess(off.P, off.expected_rewards, off.X, gamma=0.9)  # D of the target policy
    assert np.max(np.abs(mean - np.column_stack(on.system(0.6))) / error) > 10.0


def test_system_by_hand() -> None:
    """One state that stays with probability ½: D = 1, (I − γλP)⁻¹ = 1 / (1 − 0.4 λ), I − γP = 0.6 (γ = 0.8)."""
    process = MarkovRewardProcess([[0.5]], [3.0], [[2.0]], gamma=0.8)
    A, b = process.system(0.5)
    assert_allclose(A, [[2.0 * 0.6 / 0.8 * 2.0]], rtol=1e-14)
    assert_allclose(b, [2.0 * 3.0 / 0.8], rtol=1e-14)
    assert_allclose(process.solution(0.5), [2.5], rtol=1e-14)
    assert_allclose(process.values(), [5.0], rtol=1e-14)


def test_values_satisfy_bellman_by_iteration() -> None:
    process = episodic()
    V = np.zeros(3)
    for _ in range(600):
        V = process.expected_rewards + process.gamma * process.P @ V
    assert_allclose(process.values(), V, rtol=1e-12)


def test_expected_rewards_by_hand() -> None:
    assert_allclose(episodic().expected_rewards, [0.1 - 1.2 + 0.15, 1.5 + 0.2 + 1.2, -0.7 + 0.2 - 0.6], atol=1e-15)
    assert_array_equal(two_states().expected_rewards, [1.0, 2.0])
    assert_array_equal(two_states(termination_rewards=[0.0, 4.0]).expected_rewards, [0.5, 3.0])


def test_state_distribution_of_a_restarting_stream() -> None:
    """0 → 1 → end, always starting at 0: half the steps leave each state; state 2 is never met."""
    P = [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.5, 0.5, 0.0]]
    process = MarkovRewardProcess(P, np.zeros(3), np.eye(3), gamma=1.0, start=[1, 0, 0])
    assert_allclose(process.state_distribution(), [0.5, 0.5, 0.0], atol=1e-15)


def test_state_distribution_matches_frequencies() -> None:
    process = episodic()
    states = process.trajectory(100_000, np.random.default_rng(0)).states
    batches = (states.reshape(N_BATCHES, -1, 1) == np.arange(3)).mean(axis=1)
    error = batches.std(axis=0, ddof=1) / np.sqrt(N_BATCHES)
    assert np.all(np.abs(batches.mean(axis=0) - process.state_distribution()) <= 4.5 * error)
    D = process.state_distribution()
    assert_allclose(D @ (process.P + np.outer(process.termination, process.start)), D, atol=1e-15)


def test_state_distribution_of_a_periodic_chain_with_a_transient_state() -> None:
    P = [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]
    process = MarkovRewardProcess(P, np.zeros(3), np.eye(3), gamma=0.5)
    assert_allclose(process.state_distribution(), [0.5, 0.5, 0.0], atol=1e-15)


def test_state_distribution_refuses_to_be_arbitrary() -> None:
    split = MarkovRewardProcess(np.eye(2), np.zeros(2), np.eye(2), gamma=0.5, name="split")
    with pytest.raises(InvalidParameterError, match=r"'split' can end up in 2 separate sets"):
        split.state_distribution()
    started = MarkovRewardProcess(np.eye(2), np.zeros(2), np.eye(2), gamma=0.5, start=[0.0, 1.0])
    assert_array_equal(started.state_distribution(), [0.0, 1.0])


@pytest.mark.parametrize("lambda_", [0.0, 0.5, 1.0])
def test_solution_with_tabular_features_is_the_value_function(lambda_: float) -> None:
    process = random_walk(7, gamma=0.95)
    assert_allclose(process.solution(lambda_), process.values(), atol=1e-12)


def test_solution_at_lambda_one_is_the_weighted_least_squares_fit() -> None:
    process = episodic()
    weight = np.sqrt(process.state_distribution())
    fit = np.linalg.lstsq(weight[:, None] * process.X, weight * process.values(), rcond=None)[0]
    assert_allclose(process.solution(1.0), fit, rtol=1e-12)


def test_solution_with_dependent_columns_is_the_shortest() -> None:
    process = episodic()
    w = process.solution(0.3)
    doubled = MarkovRewardProcess(
        process.P,
        process.expected_rewards,
        np.column_stack([process.X, process.X]),
        gamma=process.gamma,
        start=process.start,
    )
    assert_allclose(doubled.solution(0.3), np.tile(w / 2.0, 2), rtol=1e-10)


class TestSample:
    @pytest.mark.parametrize("truncate_after", [None, 4])
    def test_stream_follows_the_trajectory(self, truncate_after: int | None) -> None:
        process = episodic()
        path = process.trajectory(2000, np.random.default_rng(0), truncate_after=truncate_after)
        stream = process.sample(2000, np.random.default_rng(0), truncate_after=truncate_after)
        assert len(stream) == 2000
        X = np.vstack([process.X, [0.0, 0.0]])
        length = 0
        for t in range(2000):
            assert_array_equal(stream[t].x, X[path.states[t]])
            assert_array_equal(stream[t].x_next, X[path.next_states[t]])
            assert stream.discounts[t] == (0.0 if path.next_states[t] == 3 else 0.9)
            assert stream.trace_discounts[t] == (0.0 if length == 0 else 0.9)
            if length > 0:
                assert path.states[t] == path.next_states[t - 1]
            else:
                assert path.states[t] in (0, 2)  # never starts in state 1
            length += 1
            over = length == truncate_after and not path.terminated[t]
            assert path.truncated[t] == (over or (t == 1999 and not path.terminated[t]))
            if path.terminated[t] or over:
                length = 0
        assert path.terminated.sum() > 200
        assert (path.truncated.sum() > 50) == (truncate_after is not None)

    def test_restarts_follow_the_start_distribution(self) -> None:
        path = episodic().trajectory(100_000, np.random.default_rng(0))
        starts = path.states[1:][path.terminated[:-1]]
        error = np.sqrt(0.7 * 0.3 / starts.size)
        assert abs((starts == 0).mean() - 0.7) < 4.0 * error

    def test_rewards_belong_to_their_transition(self) -> None:
        process = episodic()
        path = process.trajectory(50_000, np.random.default_rng(0))
        taken = (path.states == 1) & (path.next_states == 0)
        ended = (path.states == 2) & path.terminated
        for chosen, mean in ((taken, 3.0), (ended, -3.0)):
            rewards = path.rewards[chosen]
            assert abs(rewards.mean() - mean) < 4.5 * 0.5 / np.sqrt(rewards.size)
            assert abs(rewards.std() - 0.5) < 4.5 * 0.5 / np.sqrt(2 * rewards.size)

    @pytest.mark.parametrize("n_steps", [1, 5000, 8192, 8193])
    def test_a_longer_stream_begins_with_the_shorter(self, n_steps: int) -> None:
        long = episodic().trajectory(10_000, np.random.default_rng(0))
        short = episodic().trajectory(n_steps, np.random.default_rng(0))
        for a, b in zip(short[:4], long[:4], strict=True):
            assert_array_equal(a, b[:n_steps])

    def test_sparse_and_dense_are_the_same_stream(self) -> None:
        process = boyan_chain()
        dense = process.sample(300, np.random.default_rng(0))
        sparse = process.sample(300, np.random.default_rng(0), sparse=True)
        assert sparse.is_sparse
        assert not dense.is_sparse
        assert_array_equal(sparse.X.toarray(), dense.X)  # type: ignore[union-attr]
        assert_array_equal(sparse.X_next.toarray(), dense.X_next)  # type: ignore[union-attr]
        assert_array_equal(sparse.trace_discounts, dense.trace_discounts)

    def test_features_are_stored_once_per_state(self) -> None:
        stream = boyan_chain().sample(10_000, np.random.default_rng(0))
        assert stream.store.shape == (14, 4)
        assert stream.next_store is stream.store

    def test_the_last_step_bootstraps(self) -> None:
        stream = boyan_chain().sample(3, np.random.default_rng(0))
        assert stream.discounts[-1] == 1.0
        assert np.asarray(stream.X_next)[-1].any()

    def test_off_policy_ratios(self) -> None:
        process = PROCESSES["off-policy"][0]()
        assert isinstance(process, OffPolicyProcess)
        rhos = process.sample(40_000, np.random.default_rng(0)).rhos
        allowed = process.target / process.behaviour
        assert np.isin(rhos, allowed).all()
        batches = rhos.reshape(N_BATCHES, -1).mean(axis=1)
        assert abs(rhos.mean() - 1.0) < 4.5 * batches.std(ddof=1) / np.sqrt(N_BATCHES)


def test_off_policy_with_equal_policies_is_on_policy() -> None:
    off = garnet_off_policy(12, 3, 2, 4, np.random.default_rng(0), gamma=0.9, behaviour="uniform", target="uniform")
    on = garnet(12, 3, 2, 4, np.random.default_rng(0), gamma=0.9, policy="uniform")
    assert_allclose(off.values(), on.values(), rtol=1e-12)
    for ours, theirs in zip(off.system(0.7), on.system(0.7), strict=True):
        assert_allclose(ours, theirs, atol=1e-14)
    assert_array_equal(off.sample(100, np.random.default_rng(0)).rhos, 1.0)


def test_arrays_are_read_only_copies() -> None:
    P = np.full((2, 2), 0.25)
    process = two_states(P=P)
    P[0, 0] = 0.5
    assert process.P[0, 0] == 0.25
    with pytest.raises(ValueError, match="read-only"):
        process.P[0, 0] = 0.5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"P": [[0.5, 0.6], [0.0, 0.0]]}, r"P has a row that adds up to 1\.1"),
        ({"P": [[0.5, -0.1], [0.0, 0.0]]}, r"P contains -0\.1: probabilities"),
        ({"P": [[0.5, np.nan], [0.0, 0.0]]}, "P contains nan"),
        ({"P": [[0.5, 0.5]]}, r"P has shape \(1, 2\)"),
        ({"P": [0.5]}, r"P has shape \(1,\)"),
        ({"rewards": [1.0]}, r"rewards have shape \(1,\)"),
        ({"rewards": [np.inf, 0.0]}, "rewards contains inf"),
        ({"termination_rewards": [1.0]}, r"termination_rewards have shape \(1,\)"),
        ({"X": np.eye(3)}, r"X has shape \(3, 3\)"),
        ({"gamma": 1.5}, r"gamma is 1\.5"),
        ({"gamma": np.nan}, "gamma is nan"),
        ({"gamma": 1.0, "P": [[0.5, 0.0], [0.0, 1.0]]}, "gamma is 1 but state 1 of .* never terminates"),
        ({"start": [0.5, 0.4]}, r"start adds up to 0\.9"),
        ({"start": [1.0]}, r"start has shape \(1,\)"),
        ({"reward_noise": -1.0}, r"reward_noise is -1\.0"),
    ],
)
def test_bad_parameters(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameterError, match=message):
        two_states(**changes)


def test_bad_arguments() -> None:
    process, rng = two_states(), np.random.default_rng(0)
    with pytest.raises(InvalidParameterError, match=r"lambda_ is 1\.1"):
        process.system(1.1)
    with pytest.raises(InvalidParameterError, match="n_steps is 0"):
        process.sample(0, rng)
    with pytest.raises(InvalidParameterError, match="n_steps is True"):
        process.sample(True, rng)
    with pytest.raises(InvalidParameterError, match="truncate_after is 0"):
        process.sample(5, rng, truncate_after=0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"P": np.full((1, 2, 2), 0.1)}, r"P has shape \(1, 2, 2\)"),
        ({"rewards": [[1.0]]}, r"rewards have shape \(1, 1\)"),
        ({"target": [[0.5, 0.4]]}, r"target adds up to 0\.9"),
        ({"behaviour": [[1.0, 0.0]]}, r"behaviour\[0, 1\] is 0 but target\[0, 1\] is 0\.5"),
    ],
)
def test_bad_off_policy_parameters(changes: dict[str, Any], message: str) -> None:
    parameters: dict[str, Any] = {
        "P": np.full((1, 2, 1), 0.5),
        "rewards": [[0.0, 1.0]],
        "X": [[1.0]],
        "target": [[0.5, 0.5]],
        "behaviour": [[0.5, 0.5]],
        "gamma": 0.9,
    }
    with pytest.raises(InvalidParameterError, match=message):
        OffPolicyProcess(**(parameters | changes))
