"""The control question: its problems against independent ones, its tasks by hand, its claims on made-up results."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest
import scipy.integrate
from tlstd_lab import statistics
from tlstd_lab.panel import Panel
from tlstd_lab.questions import panel
from tlstd_lab.questions.control import task
from tlstd_lab.questions.control.domains import CartPole, Chain, InvertedPendulum
from tlstd_lab.questions.control.problems import PROBLEMS, bumps
from tlstd_lab.spec import RunSpec

from tests.lab.synthetic import Columns, Synthetic
from tlstd.control import GreedyPolicy


@pytest.fixture(autouse=True)
def _fewer_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "RESAMPLES", 100)


@pytest.mark.parametrize(("n", "rewarded"), [(4, (1, 2)), (5, (0, 4)), (6, (3,))])
def test_the_best_policy_of_a_chain_by_trying_all(n: int, rewarded: tuple[int, ...]) -> None:
    chain = Chain(n, rewarded)
    totals = {policy: chain.values(np.array(policy)).sum() for policy in itertools.product((0, 1), repeat=n)}
    assert totals[tuple(chain.best().tolist())] == pytest.approx(max(totals.values()))
    assert chain.P.sum(axis=2) == pytest.approx(np.ones((2, n)))


def test_the_published_best_policies() -> None:
    assert Chain(4, (1, 2)).best().tolist() == [1, 1, 0, 0]
    assert Chain(20, (0, 19)).best().tolist() == [0] * 10 + [1] * 10
    assert Chain(50, (9, 40)).best().tolist() == [1] * 9 + [0] * 16 + [1] * 16 + [0] * 9


def test_a_walk_has_the_chain_s_probabilities() -> None:
    chain = Chain(4, (1, 2))
    log = chain.walk(4000, np.random.default_rng(0))
    here, after = log.observations[:-1], log.observations[1:]
    assert log.actions is not None
    seen = np.zeros((2, 4, 4))
    np.add.at(seen, (log.actions[:-1], here, after), 1.0)
    np.testing.assert_allclose(seen / seen.sum(axis=2, keepdims=True), chain.P, atol=0.05)
    np.testing.assert_array_equal(log.rewards, chain.rewards[log.observations])


def test_cart_pole_is_gymnasium_s() -> None:
    env, cart = gymnasium.make("CartPole-v1"), CartPole()
    rng = np.random.default_rng(0)
    observation, _ = env.reset(seed=0)
    state = np.asarray(env.unwrapped.state, dtype=np.float64)  # type: ignore[attr-defined]
    for _ in range(60):
        action = int(rng.integers(2))
        step = cart.step(state[None], [float(action)])
        observation, reward, ended, _, _ = env.step(action)
        np.testing.assert_allclose(step.states[0], observation, atol=1e-6)
        assert (bool(step.terminated[0]), float(step.rewards[0])) == (ended, reward)
        state = step.states[0]
        if ended:
            env.reset(seed=int(rng.integers(100)))
            state = np.asarray(env.unwrapped.state, dtype=np.float64)  # type: ignore[attr-defined]


def test_the_inverted_pendulum_follows_its_equation() -> None:
    """Against a solver of SciPy, with the publication's formula written out again."""

    def falling(t: float, y: Any, u: float) -> list[float]:
        m, big, length, g = 2.0, 8.0, 0.5, 9.8
        a = 1.0 / (m + big)
        top = g * np.sin(y[0]) - a * m * length * y[1] ** 2 * np.sin(2 * y[0]) / 2 - a * np.cos(y[0]) * u
        return [y[1], top / (4 * length / 3 - a * m * length * np.cos(y[0]) ** 2)]

    pole, rng = InvertedPendulum(), np.random.default_rng(0)
    states, noise = rng.uniform(-1, 1, (5, 2)), rng.random((5, 1))
    actions = np.array([-50.0, 0.0, 50.0, 50.0, -50.0])
    step = pole.step_with_noise(states, actions, noise)
    for start, u, end in zip(states, actions + 20.0 * noise[:, 0] - 10.0, step.states, strict=True):
        exact = scipy.integrate.solve_ivp(falling, (0.0, 0.1), start, args=(u,), rtol=1e-10, atol=1e-12).y[:, -1]
        np.testing.assert_allclose(end, exact, atol=2e-4)
    fallen = pole.step_with_noise(np.array([[1.57, 3.0]]), np.zeros(1), np.full((1, 1), 0.5))
    assert fallen.terminated[0]
    assert fallen.rewards[0] == -1.0


def test_features_are_those_of_the_publication() -> None:
    s = np.array([[3.0]])
    centres = np.linspace(0.0, 49.0, 10)
    np.testing.assert_allclose(bumps(50, 10, 4.0).encode_many(s)[0, 1:], np.exp(-((3.0 - centres) ** 2) / 32.0))
    state = np.array([0.3, -0.7])
    pole = PROBLEMS["inverted pendulum"]().features
    centre = np.array([[a, b] for a in (-np.pi / 4, 0, np.pi / 4) for b in (-1, 0, 1)])
    by_hand = [1.0, *np.exp(-((state - centre) ** 2).sum(axis=1) / 2.0)]
    np.testing.assert_allclose(pole.encode_many(state[None])[0], by_hand)


@pytest.mark.parametrize("name", ["Mountain Car", "CartPole"])
def test_a_trial_by_hand(name: str) -> None:
    problem = PROBLEMS[name]()
    features = problem.state_action
    policy = GreedyPolicy(features, np.random.default_rng(3).normal(size=features.n_features), actions=problem.actions)
    starts = problem.domain.start(4, np.random.default_rng(1))
    trial = problem.trial(policy, starts, np.random.default_rng(0))
    for start, success, steps in zip(starts, *trial, strict=True):
        state, ended, count = start, False, 0
        while not ended and count < problem.trial_steps:
            step = problem.domain.step(state[None], [policy.act(problem.domain.observe(state[None])[0])])
            state, ended, count = step.states[0], bool(step.terminated[0]), count + 1
        assert steps == count
        assert success == (ended if name == "Mountain Car" else not ended)


def test_lspi_finds_the_best_policy_of_the_chain_of_four() -> None:
    method = {"estimators": [{"class": "LSTD", "lambda_": 0.0, "rcond": 1e-10}]}
    columns = task.chain({"chain": "4 states", "method": method, "samples": 10.0}, 0)
    assert (columns["loss"][0], columns["same"][0], columns["converged"][0]) == (0.0, 1.0, 1.0)


def test_a_policy_improves_while_it_acts() -> None:
    estimator = {"class": "LSTD", "lambda_": 0.0, "ridge": 1e-6}
    settings = {"estimator": estimator, "force": 0.001, "rounds": 4, "steps": 500, "epsilon": 0.1, "starts": 20}
    columns = task.improvement(settings, 0)
    assert columns["samples"].tolist() == [500, 1000, 1500, 2000]
    assert columns["mean_steps"][-1] < 80.0 < 300.0


def verdicts(made: Panel, columns: Callable[[RunSpec], Columns]) -> dict[str, str]:
    results = Synthetic("quick", columns)
    made.chart(results)
    return {claim.name: claim.judge(results).verdict for claim in made.claims()}


def _class(spec: RunSpec) -> str:
    method = spec.plain_settings().get("method", {})
    return str(method["estimators"][0]["class"]) if "estimators" in method else str(method.get("about"))


def _logs(spec: RunSpec, bad: str) -> Columns:
    value = 0.1 * (spec.seed % 2) if _class(spec) == bad else 1.0
    seconds = 3.0 if _class(spec) == "TLSTD" else 1.0
    return {"success": [value], "fixed": [value], "seconds": [seconds + 0.01 * spec.seed]}


def test_claims_of_logs() -> None:
    found = verdicts(panel("control-logs"), lambda spec: _logs(spec, "nobody"))
    assert set(found.values()) == {"reproduced"}
    found = verdicts(panel("control-logs"), lambda spec: _logs(spec, "TLSTD"))
    assert {name for name, verdict in found.items() if verdict == "not"} == {"control-logs-t-LSTD"}
    found = verdicts(panel("control-logs"), lambda spec: _logs(spec, "LSTD"))
    assert found["control-logs-cartpole"] == "not"
    assert found["control-logs-krylov"] == "reproduced"


def _chains(spec: RunSpec, loss: float) -> Columns:
    chain = spec.plain_settings()["chain"]
    found = 0.5 if chain == "50 states, polynomials" else loss
    return {"loss": [found], "same": [0.9], "converged": [1.0], "iterations": [5.0]}


def test_claims_of_chains() -> None:
    assert set(verdicts(panel("control-chain"), lambda spec: _chains(spec, 0.0)).values()) == {"reproduced"}
    found = verdicts(panel("control-chain"), lambda spec: _chains(spec, 0.3))
    assert found["control-chain-4"] == found["control-chain-20"] == "not"
    assert found["control-chain-sigma"] == "reproduced"
    worse = verdicts(panel("control-chain"), lambda spec: _chains(spec, 0.3 if _class(spec) == "mean" else 0.0))
    assert worse["control-chain-sigma"] == "not"


def _pole(steps: float, spec: RunSpec) -> Columns:
    return {"balanced": [steps], "seconds": [1.0]}


def test_claims_of_the_pole_and_of_beta() -> None:
    for steps, verdict in ((2900.0, "reproduced"), (100.0, "not")):
        assert set(verdicts(panel("control-pole"), partial(_pole, steps)).values()) == {verdict}

    def online(spec: RunSpec, gain: float) -> Columns:
        forgets = "beta" in spec.plain_settings()["estimator"]
        return {
            "samples": np.arange(8.0),
            "mean_steps": np.full(8, (50.0 if forgets else 50.0 * gain) + 0.1 * spec.seed),
        }

    assert set(verdicts(panel("control-beta"), lambda spec: online(spec, 2.0)).values()) == {"reproduced"}
    assert set(verdicts(panel("control-beta"), lambda spec: online(spec, 1.0)).values()) == {"not"}
