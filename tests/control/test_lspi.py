"""Policy iteration from steps, against exact policy iteration and a literal transcription."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from tests.control.references import exact_iteration, literal_lspi, random_table
from tlstd import LSTD, RBF, TLSTD, KrylovLSTD, Log, OneHot, StateAction, Transitions
from tlstd.control import GreedyPolicy, PolicyIteration, policy_iteration
from tlstd.control.lspi import RIDGES
from tlstd.control.steps import action_steps, constant_value
from tlstd.domains.mountain_car import MountainCar
from tlstd.domains.policies import EpsilonGreedy
from tlstd.errors import InvalidInputError, InvalidParameterError
from tlstd.streams import record

PLAIN: dict[str, Any] = {"center": False, "judge": "last", "tolerance": 0.0}


def full(n: int) -> LSTD:
    return LSTD(n, lambda_=0.0, rcond=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_with_a_feature_for_each_state_it_is_exact_policy_iteration(seed: int) -> None:
    """On the empirical model; pairs that were never seen (of few steps) have the value 0 with the smallest ridge."""
    rng = np.random.default_rng(seed)
    n_states, n_actions = 7, 3
    table = random_table(rng, n_states, n_actions, 25 if seed % 2 else 400)
    features = StateAction(OneHot([0], [n_states - 1]), n_actions)
    start = rng.normal(size=features.n_features)
    first = start.reshape(n_actions, n_states).argmax(axis=0)
    make, atol = (full, 1e-9) if seed % 2 == 0 else (partial(LSTD, lambda_=0.0, ridge=1e-12), 1e-7)
    found = policy_iteration(table.log(n_states), features, make, gamma=0.9, start=start, **PLAIN)
    assert found.stopped == "converged"
    exact = exact_iteration(table, n_states, n_actions, 0.9, first, len(found.history))
    for entry, Q in zip(found.history, exact, strict=True):
        np.testing.assert_allclose(entry.weights.reshape(n_actions, n_states).T, Q, atol=atol)
    assert (found.policy(np.arange(n_states)) == exact[-1].argmax(axis=1)).all()


def two_columns(n: int = 60) -> tuple[Log, Any]:
    """Episodes of unequal lengths that terminate or are cut, over two numbers."""
    rng = np.random.default_rng(3)
    states, after = rng.random((n, 2)), rng.random((n, 2))
    ended, cut = rng.random(n) < 0.15, rng.random(n) < 0.1
    cut &= ~ended
    cut[-1], ended[-1] = True, False
    inside = np.flatnonzero(~(ended | cut))
    after[inside] = states[inside + 1]
    actions, rewards = rng.integers(0, 2, n), rng.normal(size=n)
    log = Log.from_arrays(
        states, rewards, actions=actions, next_observations=after, terminated=ended, truncated=cut, discrete=False
    )
    return log, (states, actions, rewards, after, ended)


def test_with_any_features_it_is_the_published_algorithm() -> None:
    log, (states, actions, rewards, after, ended) = two_columns()
    rbf = RBF([0.0, 0.0], [1.0, 1.0], grid=2, width=0.5)
    features = StateAction(rbf, 2)
    start = np.random.default_rng(0).normal(size=features.n_features)
    found = policy_iteration(log, features, full, gamma=0.8, start=start, max_iterations=6, **PLAIN)
    literal = literal_lspi(
        rbf.encode_many(states), actions, rewards, rbf.encode_many(after), ended, 2, 0.8, start, len(found.history)
    )
    assert len(found.history) >= 3
    evaluated = found.history[: -1 if found.cycle > 1 else None]  # the mean of a cycle is not in the publication
    for entry, w in zip(evaluated, literal, strict=False):
        np.testing.assert_allclose(entry.weights, w, atol=1e-8 * np.abs(w).max())


def test_every_estimator_finds_the_same_where_nothing_is_cut() -> None:
    table = random_table(np.random.default_rng(1), 5, 2, 300)
    features = StateAction(OneHot([0], [4]), 2)
    found = [
        policy_iteration(table.log(5), features, make, gamma=0.9, **PLAIN)
        for make in (
            full,
            lambda n: TLSTD(n, rank=n, lambda_=0.0, rcond=0.0),
            lambda n: KrylovLSTD(n, lambda_=0.0, dimension=n),
        )
    ]
    for other in found[1:]:
        np.testing.assert_allclose(other.weights, found[0].weights, atol=1e-9)


def test_values_about_a_constant_are_the_same_values() -> None:
    table = random_table(np.random.default_rng(2), 5, 2, 300)
    features = StateAction(OneHot([0], [4]), 2)
    plain, about = (
        policy_iteration(table.log(5), features, full, gamma=0.9, center=center, tolerance=0.0)
        for center in (False, True)
    )
    c = constant_value([action_steps(table.log(5), features, 0.9, None)])
    gammas = np.where(table.ended, 0.0, 0.9)
    assert c == pytest.approx(table.r.sum() / (1.0 - gammas).sum())
    np.testing.assert_allclose(about.weights + c, plain.weights, atol=1e-9)
    assert about.value == pytest.approx(plain.value)
    starts = plain.history[plain.chosen].weights.reshape(2, 5)[plain.policy(table.s), table.s]
    assert plain.value == pytest.approx(starts.mean())  # each step is an episode


def test_epsilon_greedy_policies_are_evaluated_by_expected_next_features() -> None:
    log, (states, actions, _, after, ended) = two_columns(20)
    features = StateAction(RBF([0.0, 0.0], [1.0, 1.0], grid=2, width=0.5), 2)
    steps = action_steps(log, features, 0.8, None)
    w = np.random.default_rng(5).normal(size=features.n_features)
    policy = GreedyPolicy(features, w, epsilon=0.3)
    made = steps.transitions(steps.greedy(w), 0.3)
    X, X_next = (sp.csr_array(matrix).toarray() for matrix in (made.X, made.X_next))
    for t in range(len(log)):
        np.testing.assert_allclose(X[t], features.encode(states[t], actions[t]).toarray())
        if not ended[t]:
            probabilities = policy(after[t][None])[0]
            expected = sum(p * features.encode(after[t], a).toarray() for a, p in enumerate(probabilities))
            np.testing.assert_allclose(X_next[t], expected, atol=1e-12)
    uniform = sp.csr_array(steps.transitions(None).X_next).toarray()
    np.testing.assert_allclose(uniform, np.hstack([steps.X_next.toarray() / 2.0] * 2))


def car_steps() -> tuple[Transitions, StateAction, MountainCar]:
    car = MountainCar()
    rbf = RBF(car.low, car.high, grid=8, width=0.2)
    acting = EpsilonGreedy(car.policy(), [-1, 0, 1], 1.0)
    return record(car, acting, rbf, n_steps=2000, seed=0, episode_cap=50), StateAction(rbf, 3), car


@pytest.fixture(scope="module")
def mountain_car() -> tuple[PolicyIteration, MountainCar]:
    steps, features, car = car_steps()
    return policy_iteration(steps, features, actions=car.actions), car


def test_a_mountain_car_from_random_actions(mountain_car: tuple[PolicyIteration, MountainCar]) -> None:
    """From most of the box the goal is reached, and what was done is said."""
    found, car = mountain_car
    assert found.stopped == "converged"
    assert found.notes[0].startswith("Estimator ")
    assert f"of {len(RIDGES)}: <LSTD(" in found.notes[0]
    states, acting = car.start(50, np.random.default_rng(1)), found.policy.on(car)
    for _ in range(300):
        step = car.step(states, acting.act(states, np.zeros(len(states))))
        states = step.states[~step.terminated]
    assert len(states) <= 2


def test_the_result_can_be_read(mountain_car: tuple[PolicyIteration, MountainCar]) -> None:
    found, _ = mountain_car
    lines = str(found).splitlines()
    assert lines[0] == "converged; the best by its own estimate:"
    assert sum(line.startswith("*") for line in lines) == 1
    assert found.weights is found.policy.weights
    assert found.value == found.history[found.chosen].value == max(entry.value for entry in found.history[1:])


def test_the_judge_decides() -> None:
    """A function that likes small weights; the last policy; and held-out action values, which are what they say."""
    table = random_table(np.random.default_rng(4), 6, 3, 60)
    features = StateAction(OneHot([0], [5]), 3)
    options: dict[str, Any] = {"gamma": 0.9, "center": False}
    liked = policy_iteration(table.log(6), features, full, judge=lambda p: -np.abs(p.weights).sum(), **options)
    sizes = [np.abs(entry.policy).sum() for entry in liked.history if entry.policy is not None]
    assert np.abs(liked.weights).sum() == min(sizes)
    assert liked.judged_by == "the function given"
    last = policy_iteration(table.log(6), features, full, judge="last", **options)
    assert last.chosen == len(last.history) - 1
    assert np.isnan(last.value)
    held = policy_iteration(table.log(6), features, full, judge="held-out", **options)
    assert held.judged_by == "held-out action values of 15 steps"
    assert held.value == max(entry.value for entry in held.history[1:])
    assert held.value != held.history[held.chosen].weights.max()


def test_held_out_action_values_are_learned_from_other_steps() -> None:
    """Each policy is found from 45 of 60 steps, and judged by a model of the other 15."""
    made: list[LSTD] = []

    def make(n: int) -> LSTD:
        made.append(full(n))
        return made[-1]

    table, features = random_table(np.random.default_rng(4), 6, 3, 60), StateAction(OneHot([0], [5]), 3)
    policy_iteration(table.log(6), features, make, gamma=0.9, judge="held-out")
    assert {model.n_updates for model in made if model.n_updates} == {45, 15}


def test_impossible_values_are_said_and_not_chosen() -> None:
    """A model whose values are beyond all rewards, but for one policy."""

    class Mad(LSTD):
        @property
        def weights(self) -> Any:
            return np.array([1e6, 1e6 + self.n_updates % 2])

    features = StateAction(OneHot([0], [1]), 1)
    log = Log.from_arrays([0, 1, 0], [0.0, 1.0, 0.0], actions=[0, 0, 0], n_observations=2)
    found = policy_iteration(log, features, lambda n: Mad(n, lambda_=0.0), gamma=0.5)
    assert "values that these rewards do not allow (0 to 2)" in found.notes[-1]


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"features": OneHot([0], [4])}, InvalidParameterError, "StateAction"),
        ({"gamma": None}, InvalidParameterError, "gamma is None"),
        ({"gamma": 1.5}, InvalidInputError, "1.5"),
        ({"estimator": lambda n: LSTD(n, lambda_=0.5)}, InvalidParameterError, "lambda_=0.5"),
        ({"estimator": lambda n: KrylovLSTD(n, lambda_=0.0)}, InvalidParameterError, 'dimension="auto"'),
        ({"estimator": lambda n: LSTD(n + 1, lambda_=0.0)}, InvalidParameterError, "11 features: make 10"),
        ({"estimator": lambda n: n}, InvalidParameterError, "estimator returned 10"),
        ({"estimator": []}, InvalidParameterError, "empty"),
        ({"estimator": [3]}, InvalidParameterError, "estimator is 3"),
        ({"judge": "best"}, InvalidParameterError, "judge is 'best'"),
        ({"judge": lambda policy: "good"}, InvalidInputError, "judge returned 'good'"),
        ({"start": [1.0]}, InvalidParameterError, r"\(10,\)"),
        ({"epsilon": 2.0}, InvalidParameterError, "epsilon is 2.0"),
        ({"actions": [1.0, 1.0]}, InvalidParameterError, "different numbers"),
        ({"actions": [5.0, 6.0]}, InvalidInputError, "step 0 has the action"),
        ({"max_iterations": 0}, InvalidParameterError, "max_iterations is 0"),
        ({"features": StateAction(OneHot([0], [4]), 1)}, InvalidInputError, "has the action 1"),
        ({"data": [1, 2]}, InvalidInputError, "data is a list"),
        ({"data": Log.from_arrays([0, 1], [0.0, 0.0])}, InvalidInputError, "has no actions"),
    ],
)
def test_bad_input_is_refused_by_name(changes: dict[str, Any], error: type[Exception], words: str) -> None:
    table = random_table(np.random.default_rng(0), 5, 2, 30)
    arguments: dict[str, Any] = {
        "data": table.log(5),
        "features": StateAction(OneHot([0], [4]), 2),
        "gamma": 0.9,
    } | changes
    with pytest.raises(error, match=words):
        policy_iteration(
            arguments.pop("data"), arguments.pop("features"), arguments.pop("estimator", full), **arguments
        )


def test_transitions_need_features_of_states_and_actions() -> None:
    steps, features, car = car_steps()
    with pytest.raises(InvalidInputError, match=r"record them with features\.features"):
        policy_iteration(steps, StateAction(OneHot([0], [4]), 3), full, actions=car.actions)
    with pytest.raises(InvalidParameterError, match="leave it out"):
        policy_iteration(steps, features, full, gamma=0.9)
    with pytest.raises(InvalidInputError, match="has the action -1"):
        policy_iteration(steps, features, full)
    without = Transitions(
        steps.X, steps.rewards, steps.X_next, discounts=steps.discounts, trace_discounts=steps.trace_discounts
    )
    with pytest.raises(InvalidInputError, match="have no actions"):
        policy_iteration(without, features, full)
