"""LSTDQ against closed forms: of the samples, and of the process itself."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

import tlstd
from tests.evaluation.logs import random_decisions, simulated
from tlstd import AutoTiles, KrylovLSTD, Log, OneHot
from tlstd.core.arrays import FloatArray
from tlstd.data.held_out import make_folds
from tlstd.evaluation import action_values
from tlstd.evaluation.action_values import action_transitions, choose_dimension, constants, joint_transitions
from tlstd.evaluation.policies import Target, as_target


def splits(rng: np.random.Generator, n: int, n_actions: int) -> FloatArray:
    return rng.dirichlet(np.ones(n_actions), size=n)


@pytest.mark.parametrize("as_table", [False, True])
def test_garnet_of_the_samples(as_table: bool) -> None:
    """With one feature a state and action LSTDQ has the values of the process that the samples show, to rounding."""
    rng = np.random.default_rng(0)
    n, n_actions, gamma = 12, 3, 0.9
    process = random_decisions(rng, n, n_actions, 3, 0.05)
    log = simulated(process, 0.5 * (splits(rng, n, n_actions) + 1.0 / n_actions), rng, 3_000, 30)
    policy = splits(rng, n, n_actions)
    target = as_target(policy[log.observations] if as_table else lambda s: policy[s], log)
    steps = action_transitions(log, OneHot([0], [n - 1]), target, gamma, n_actions)
    model = KrylovLSTD(n * n_actions, lambda_=0.0, dimension=n * n_actions)
    model.update_many(steps)
    states, actions = (np.asarray(column, dtype=np.int64) for column in (log.observations, log.actions))
    pair = states * n_actions + actions
    counts, P, r = np.zeros(n * n_actions), np.zeros((n * n_actions, n)), np.zeros(n * n_actions)
    following = np.append(states[1:], 0)
    following[log.episodes[1:] - 1] = log.final
    used = ~(log.truncated & as_table)  # a table does not have the state after a cut
    np.add.at(counts, pair[used], 1.0)
    np.add.at(r, pair[used], log.rewards[used])
    go_on = used & ~log.terminated
    np.add.at(P, (pair[go_on], following[go_on]), 1.0)
    assert (counts > 0).all()
    to_pairs = np.einsum("it,tb->itb", P, policy).reshape(n * n_actions, -1)
    truth = np.linalg.solve(np.eye(n * n_actions) - gamma * to_pairs / counts[:, None], r / counts)
    found = model.weights.reshape(n_actions, n).T.ravel()
    assert_allclose(found, truth, rtol=1e-9, atol=1e-9)


def test_garnet_itself() -> None:
    """Where nothing is random but the policies, the values are the closed form's, with the dimension that is chosen."""
    rng = np.random.default_rng(1)
    n, n_actions, gamma = 8, 2, 0.8
    process = random_decisions(rng, n, n_actions, 1, 0.0)
    log = simulated(process, np.full((n, n_actions), 0.5), rng, 2_000, 5)
    policy = splits(rng, n, n_actions)
    evaluation = tlstd.evaluate(log, gamma=gamma, policy=lambda s: policy[s.astype(int)], estimators=["LSTDQ"])
    truth = process.action_values(policy, gamma)
    assert_allclose(evaluation.model.predict(np.arange(n)), truth, atol=1e-7)
    assert_allclose(evaluation.predict(np.arange(n)), (policy * truth).sum(axis=1), atol=1e-7)
    chosen = evaluation.model.predict(np.arange(n), actions=np.ones(n, dtype=int))
    assert_allclose(chosen, truth[:, 1], atol=1e-7)


def test_residuals_by_a_dense_computation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores are ‖b_k - A_k w‖² in the norm of the covariance; with many features by conjugate gradients."""
    rng = np.random.default_rng(2)
    log = simulated(random_decisions(rng, 6, 2, 2, 0.1), np.full((6, 2), 0.5), rng, 400, 20)
    steps = action_transitions(log, OneHot([0], [5]), Target(function=lambda s: np.full((len(s), 2), 0.5)), 0.9, 2)
    found = choose_dimension(steps)
    X, X_next = sp.csr_array(steps.X).toarray(), sp.csr_array(steps.X_next).toarray()
    D = X - steps.discounts[:, None] * X_next
    C = X.T @ X / len(X) + 1e-3 * np.eye(12)
    folds = make_folds(steps.discounts, steps.trace_discounts, 5).fold
    total = 0.0
    for k in range(5):
        mine, rest = folds == k, folds != k
        A, b = X[rest].T @ D[rest] / rest.sum(), X[rest].T @ steps.rewards[rest] / rest.sum()
        K = np.column_stack([b, A @ b])  # two dimensions: least residual
        w = K @ np.linalg.lstsq(A @ K, b, rcond=None)[0]
        g = X[mine].T @ (steps.rewards[mine] - D[mine] @ w) / mine.sum()
        total += float(g @ np.linalg.solve(C, g)) / 5
    assert_allclose(found.scores[1], total, rtol=1e-8)
    monkeypatch.setattr(action_values, "DENSE", 1)
    assert_allclose(choose_dimension(steps).scores, found.scores, rtol=1e-2)


def test_too_few_episodes() -> None:
    log = Log.from_arrays([0, 1], [0.0, 1.0], actions=[0, 1], terminated=[0, 1], discrete=True)
    evaluation = tlstd.evaluate(log, gamma=0.9, policy=lambda s: s.astype(int), estimators="LSTDQ")
    assert any("Nothing was chosen" in note for note in evaluation.notes)


def test_continuous_actions() -> None:
    """Going by a in [-1, 1] from 0 pays a: the value of always taking c is c / (1 - γ), whatever was done."""
    rng = np.random.default_rng(3)
    n = 1_000
    actions = rng.uniform(-1.0, 1.0, (n, 1))
    log = Log.from_arrays(
        np.zeros((n, 1)),
        actions[:, 0],
        actions=actions,
        terminated=np.zeros(n),
        truncated=np.arange(n) % 10 == 9,
        next_observations=np.zeros((n, 1)),
    )
    for policy, value in ((lambda s: np.full((len(s), 1), 0.5), 1.0), (lambda s: rng.uniform(-1, 1, (len(s), 1)), 0.0)):
        evaluation = tlstd.evaluate(log, gamma=0.5, policy=policy)
        assert evaluation.value == pytest.approx(value, abs=0.1)
        assert [row.name for row in evaluation.rows] == ["LSTDQ"]
    steps = joint_transitions(log, AutoTiles.fit(np.hstack([log.states, actions])), Target(function=policy), 0.5)
    assert len(steps) == n


def test_constants_are_lstdq_with_one_feature_an_action() -> None:
    """Against the sums written out; an action that was never taken has the best constant for all."""
    rng = np.random.default_rng(3)
    log = simulated(random_decisions(rng, 6, 2, 2, 0.1), np.full((6, 2), 0.5), rng, 500, 20)
    policy, gamma = splits(rng, 6, 2), 0.9
    found = constants(log, as_target(lambda s: policy[s], log), gamma, 2)
    A, b = np.zeros((2, 2)), np.zeros(2)
    actions, following = np.asarray(log.actions), np.append(log.observations[1:], 0)
    following[log.episodes[1:] - 1] = log.final
    for action, reward, after, ended in zip(actions, log.rewards, following, log.terminated, strict=True):
        A[action] += np.eye(2)[action] - (0.0 if ended else gamma) * policy[after]
        b[action] += reward
    assert_allclose(found, np.linalg.solve(A, b), rtol=1e-9)
    three = constants(log, as_target(lambda s: np.hstack([policy[s], 0.0 * s[:, None]]), log), gamma, 3)
    assert_allclose(three[:2], found, rtol=1e-9)
    assert three[2] == pytest.approx(log.rewards.sum() / (1.0 - gamma * ~log.terminated).sum())


@pytest.mark.parametrize("reward", [-1.0, 5.0])
def test_few_steps_do_not_lean_towards_zero(reward: float) -> None:
    """The same reward everywhere, six steps a feature: exact, whatever dimension is chosen, and near it with noise."""
    rng = np.random.default_rng(4)
    n, n_actions, gamma = 60, 4, 0.95
    process = random_decisions(rng, n, n_actions, 3, 0.0)
    noise = process.rewards
    policy = splits(rng, n, n_actions)
    for size, tolerance in ((0.0, 1e-6), (0.3, 0.15)):
        made = process._replace(rewards=reward + size * noise)
        log = simulated(made, np.full((n, n_actions), 0.25), np.random.default_rng(5), 1_200, 50)
        evaluation = tlstd.evaluate(log, gamma=gamma, policy=lambda s: policy[s], estimators="LSTDQ")
        truth = (policy * made.action_values(policy, gamma)).sum(axis=1)[log.observations[log.start_rows]].mean()
        assert evaluation.value == pytest.approx(truth, rel=tolerance)
        assert any("one constant for each action" in note for note in evaluation.notes)


def test_continuous_actions_that_end() -> None:
    """Each action pays 1 + a, and ends every second time: the value of always taking ½ is 1.5 / (1 - γ/2) = 2."""
    rng = np.random.default_rng(3)
    n = 2_000
    actions = rng.uniform(-1.0, 1.0, (n, 1))
    log = Log.from_arrays(np.zeros((n, 1)), 1.0 + actions[:, 0], actions=actions, terminated=rng.random(n) < 0.5)
    evaluation = tlstd.evaluate(log, gamma=0.5, policy=lambda s: np.full((len(s), 1), 0.5))
    assert evaluation.value == pytest.approx(2.0, abs=0.1)
