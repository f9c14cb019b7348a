"""From a log to an answer: against exact values and rollouts, and what is said on the way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tlstd_lab.energy_programme import optimal_policy

from tests.evaluation.logs import lake, mean_return, play, pole_log, pole_policy, random_decisions, simulated
from tlstd import KrylovLSTD, Log, OneHot, TileCoder
from tlstd.core.arrays import FloatArray
from tlstd.domains.energy_storage import EnergyStorage
from tlstd.domains.mountain_car import MountainCar
from tlstd.errors import InvalidInputError, InvalidParameterError, StateError
from tlstd.evaluation import Report, ValueFunction, evaluate, rollout_values, true_values
from tlstd.evaluation import evaluate as evaluate_function
from tlstd.evaluation.question import Probabilities
from tlstd.streams import trajectory


def names(evaluation: Report) -> list[str]:
    return [row.name for row in evaluation.rows]


ON_POLICY = ["mean of returns", "KrylovLSTD", "LSTD", "t-LSTD", "TD"]
WITH_RATIOS = ["KrylovLSTD with ratios", "LSTD with ratios", "t-LSTD with ratios", "TD with ratios"]
RATIOS = [*WITH_RATIOS[:1], "weighted IS", *WITH_RATIOS[1:]]


@pytest.fixture(scope="module")
def frozen() -> Log:
    """A slippery lake, random actions with known probabilities."""
    process, _ = lake()
    log = play("FrozenLake-v1", lambda s: np.full((len(s), 4), 0.25), 1_500, known=True, limit=100, seed=0)
    assert process.P.shape == (16, 4, 16)
    return log


def lake_values(policy: FloatArray, gamma: float) -> FloatArray:
    process, _ = lake()
    values: FloatArray = (policy * process.action_values(policy, gamma)).sum(axis=1)
    return values


def test_frozen_lake_on_policy(frozen: Log) -> None:
    """One feature per state: every estimator has the exact value of the start, 0.0078, within the noise of the data.

    Three standard errors of the mean return are 0.0064: an answer of 0 fails.
    """
    truth = lake_values(np.full((16, 4), 0.25), 0.95)
    _, error = mean_return(frozen, 0.95)
    assert 3 * error < truth[0]
    evaluation = evaluate(frozen, gamma=0.95, estimators=[name for name in ON_POLICY if name != "t-LSTD"])
    assert names(evaluation) == [name for name in ON_POLICY if name != "t-LSTD"]
    assert names(evaluate(frozen, gamma=0.95)) == ON_POLICY[:2]
    small = frozen.select(np.arange(40))
    assert names(evaluate(small, gamma=0.95, compare=True)) == [*ON_POLICY, "fitted trees"]
    assert isinstance(evaluation.model.features, OneHot)
    for row in evaluation.rows:
        assert row.value == pytest.approx(truth[0], abs=3 * error), row
    visited = np.bincount(frozen.observations, minlength=16) > 50
    errors = evaluation.predict(np.arange(16))[visited] - truth[visited]
    assert np.sqrt(np.mean(errors**2)) < 0.04  # values up to 0.41; 0.035 when written


def test_frozen_lake_another_policy(frozen: Log) -> None:
    """Down and right half of the time each: the answer and LSTDQ find its value, 0.025, from random actions.

    No logged episode that ends well has only these actions: means of returns with ratios have nothing to go by. The
    tolerance is two standard errors of the answer's interval, which is too far from 0 to hold it.
    """
    policy = np.tile([0.0, 0.5, 0.5, 0.0], (16, 1))
    truth = lake_values(policy, 0.95)[0]
    evaluation = evaluate(frozen, gamma=0.95, policy=lambda s: policy[s], compare=True)
    assert names(evaluation) == ["LSTDQ", *RATIOS[:1], "doubly robust", *RATIOS[1:], "fitted trees"]
    assert evaluation.case.effective < 10  # so that weights are not what it stands on
    assert evaluation.rows[1].value == pytest.approx(truth, abs=0.01)
    assert evaluation.value == pytest.approx(truth, abs=0.01)
    interval = evaluation.rows[0].interval
    assert interval is not None
    assert truth in interval
    assert 0.0 not in interval
    as_table = evaluate(frozen, gamma=0.95, policy=policy[frozen.observations], estimators="LSTDQ")
    assert as_table.value == pytest.approx(truth, abs=0.01)
    with pytest.raises(InvalidInputError, match="as a table"):
        as_table.predict([0])


def test_pole_small() -> None:
    """CartPole, 40 episodes: two policies that did not act, with and without probabilities.

    Against new episodes: three standard errors of these, and 0.03 for the log's own noise (one standard error of the
    answer's interval is 0.02 and 0.04).
    """
    log, gamma = pole_log(0.6, 40, known=True, limit=40), 0.8
    few = TileCoder(log.observations.min(axis=0), log.observations.max(axis=0), tiles=4, tilings=3, bias=True)
    for epsilon, features in ((0.3, "auto"), (1.0, few)):
        truth, error = mean_return(pole_log(epsilon, 60, known=False, limit=40, seed=1), gamma)
        asked: dict[str, Any] = {"features": features, "estimators": ["LSTDQ", "KrylovLSTD", "doubly robust"]}
        found = evaluate(log, gamma=gamma, policy=pole_policy(epsilon), **asked)
        for row in found.rows:
            assert row.value == pytest.approx(truth, abs=0.03 + 3 * error), row


@pytest.mark.long
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("epsilon", [0.1, 0.4, 0.8])
def test_pole(epsilon: float, known: bool) -> None:
    """500 episodes of an ε-greedy policy, three target policies, against rollouts."""
    log, gamma = pole_log(0.5, 500, known=known), 0.95
    truth, error = mean_return(pole_log(epsilon, 500, known=False, seed=1), gamma)
    asked: list[str] = ["LSTDQ", "KrylovLSTD", "doubly robust"]
    chances: Probabilities = "logged" if known else "estimate"
    found = evaluate(log, gamma=gamma, policy=pole_policy(epsilon), estimators=asked, probabilities=chances)
    assert len(found.rows) == 3
    for row in found.rows:
        assert row.value == pytest.approx(truth, abs=0.5 + 3 * error), row


@pytest.mark.long
@pytest.mark.parametrize(("name", "n_actions", "limit"), [("Taxi-v4", 6, 100), ("Acrobot-v1", 3, 200)])
def test_other_environments(name: str, n_actions: int, limit: int) -> None:
    """Random actions in two more environments, and a policy that prefers the first action, against new episodes."""
    gamma = 0.95

    def random(seen: Any) -> FloatArray:
        return np.full((len(seen), n_actions), 1.0 / n_actions)

    def first(seen: Any) -> FloatArray:
        return 0.5 * random(seen) + 0.5 * np.eye(n_actions)[np.zeros(len(seen), dtype=int)]

    log = play(name, random, 150, known=True, limit=limit, seed=0)
    for policy, asked in ((None, ["KrylovLSTD"]), (first, ["KrylovLSTD", "doubly robust", "LSTDQ"])):
        truth, error = mean_return(play(name, policy or random, 150, known=False, limit=limit, seed=1), gamma)
        evaluation = evaluate(log, gamma=gamma, policy=policy, estimators=asked)
        for row in evaluation.rows:
            assert row.value == pytest.approx(truth, abs=0.1 * abs(truth) + 3 * error), row


def domain_log(domain: Any, n_steps: int, **options: Any) -> Log:
    path = trajectory(domain, n_steps=n_steps, seed=0, **options)
    seen = domain.observe(path.states)
    return Log.from_arrays(
        seen[path.rows],
        path.rewards,
        actions=path.actions[:, None],
        terminated=path.terminated,
        truncated=path.truncated,
        next_observations=seen[path.rows + 1],
    )


def test_mountain_car_small() -> None:
    car = MountainCar()
    log = domain_log(car, 3_000)
    evaluation = evaluate(log, gamma=0.99)
    starts = log.observations[log.start_rows]
    truth = true_values(car, starts)
    assert evaluation.value == pytest.approx(truth.mean(), abs=1.0)  # of -35; the truth is that of the same starts
    assert np.sqrt(np.mean((evaluation.predict(starts) - truth) ** 2)) < 5.0  # their spread is 20
    assert evaluation.model.features == evaluation.features


@pytest.mark.long
def test_mountain_car() -> None:
    car = MountainCar()
    evaluation = evaluate(domain_log(car, 20_000), gamma=0.99)
    truth = true_values(car, car.grid())
    assert np.sqrt(np.mean((evaluation.predict(car.grid()) - truth) ** 2)) < 7.0


@pytest.mark.long
def test_energy_storage() -> None:
    """States of the log against rollouts."""
    domain = EnergyStorage()
    policy = optimal_policy(domain)
    log = domain_log(domain, 10_000, policy=policy)
    evaluation = evaluate(log, gamma=domain.gamma, estimators=["KrylovLSTD", "TD"])
    path = trajectory(domain, policy, n_steps=10_000, seed=0)
    some = path.states[path.rows[::200]]
    truth = rollout_values(domain, some, n_rollouts=20, rng=np.random.default_rng(1), policy=policy, tolerance=1.0).mean
    found = evaluation.predict(domain.observe(some))
    spread = truth.std()
    assert np.sqrt(np.mean((found - truth) ** 2)) < 0.6 * spread


def test_a_stream_without_end() -> None:
    rng = np.random.default_rng(0)
    states = rng.integers(0, 3, 1_000)
    log = Log.from_arrays(states, (states == 2).astype(float), discrete=True)
    evaluation = evaluate(log, gamma=0.5)
    assert list(evaluation.rows[0].values) == ["all states", "first state"]
    assert evaluation.value == pytest.approx(2.0 / 3.0, abs=0.05)
    assert any("no ends" in note for note in evaluation.notes)
    given = evaluate(log, gamma=0.5, start=[2, 2], estimators=["KrylovLSTD"])
    assert given.value == pytest.approx(1.0 + 1.0 / 3.0, abs=0.05)
    assert "all states" in evaluate(log, gamma=0.5, start="all", estimators=["KrylovLSTD"]).rows[0].values


def few_steps() -> Log:
    rng = np.random.default_rng(7)
    return simulated(random_decisions(rng, 6, 4, 2, 0.1), np.full((6, 4), 0.25), rng, 600, 30, known=True)


def test_answer_as_table_and_json() -> None:
    log = few_steps()
    evaluation = evaluate(log, gamma=0.9, estimators=["KrylovLSTD", "TD"])
    lines = evaluation.table.splitlines()
    assert lines[0].split() == ["estimator", "start", "states", "95%", "interval", "seconds"]
    assert [line.split()[0] for line in lines[1:]] == ["KrylovLSTD", "TD"]
    whole = json.loads(evaluation.to_json())
    assert whole["value"] == evaluation.value
    assert [row["name"] for row in whole["estimators"]] == ["KrylovLSTD", "TD"]
    assert whole["interval"] == whole["estimators"][0]["interval"] == evaluation.interval().to_dict()
    assert whole["estimators"][1]["interval"] is None
    assert str(evaluation).startswith(evaluation.table)
    told: list[float] = []
    evaluate(log, gamma=0.9, estimators=["TD"], report=lambda text, share: told.append(share))
    assert told == sorted(told)
    assert told[-1] == 1.0


@pytest.mark.parametrize("features", ["auto", "columns", TileCoder([0.0] * 4, [1.0] * 4, tiles=3, tilings=2)])
def test_saved_and_asked_again(features: Any, tmp_path: Path) -> None:
    log = pole_log(0.5, 10, known=False, limit=30)
    evaluation = evaluate(log, gamma=0.9, features=features, estimators=["KrylovLSTD"])
    evaluation.save(tmp_path / "values")
    same = ValueFunction.load(tmp_path / "values")
    assert_array_equal(same.predict(log.observations), evaluation.model.predict(log.observations))
    assert_allclose(same.predict(log.observations), evaluation.predict(log.observations), rtol=1e-9)
    more = pole_log(0.5, 5, known=False, limit=30, seed=2)
    before = same.model.n_updates
    same.update(more)
    evaluation.model.update(more)
    assert same.model.n_updates == before + len(more)
    assert_array_equal(same.predict(log.observations), evaluation.model.predict(log.observations))


def test_action_values_saved(tmp_path: Path) -> None:
    log = few_steps()

    def policy(states: Any) -> FloatArray:
        return np.tile([0.0, 0.5, 0.5, 0.0], (len(states), 1))

    evaluation = evaluate(log, gamma=0.9, policy=policy, estimators="LSTDQ")
    evaluation.save(tmp_path / "values")
    same = ValueFunction.load(tmp_path / "values")
    assert same.predict([0, 1]).shape == (2, 4)
    assert_allclose(same.predict([0], policy=policy), evaluation.predict([0]))
    with pytest.raises(InvalidInputError, match="pass the policy"):
        same.update(log)
    same.update(log, policy=policy)
    assert same.model.n_updates == 2 * evaluation.model.model.n_updates


def test_files_that_are_no_value_function(tmp_path: Path) -> None:
    KrylovLSTD(2, lambda_=0.5).save(tmp_path / "model")
    with pytest.raises(StateError, match=r"holds a KrylovLSTD, which tlstd\.load reads"):
        ValueFunction.load(tmp_path / "model")
    log = Log.from_arrays([0, 1], [1.0, 0.0], terminated=[0, 1], discrete=True)
    evaluate(log, gamma=0.9, estimators=["KrylovLSTD"]).save(tmp_path / "values")
    whole = (tmp_path / "values").read_bytes()
    (tmp_path / "damaged").write_bytes(whole[:-3] + b"abc")
    with pytest.raises(StateError, match="cannot be loaded"):
        ValueFunction.load(tmp_path / "damaged")

    class Mine(OneHot):
        pass

    own = evaluate(log, gamma=0.9, features=Mine([0], [1]), estimators=["KrylovLSTD"])
    with pytest.raises(StateError, match="Mine is not one of the library"):
        own.save(tmp_path / "own")


def small(**changes: Any) -> Log:
    columns: dict[str, Any] = {"actions": [0, 1, 0, 1], "terminated": [0, 1, 0, 1], "discrete": True} | changes
    return Log.from_arrays([0, 1, 0, 1], [1.0, 0.0, 1.0, 0.0], **columns)


@pytest.mark.parametrize(
    ("log", "options", "message"),
    [
        (small(), {"gamma": 1.5}, "gamma is 1.5"),
        (small(terminated=[0, 0, 0, 0]), {"gamma": 1.0}, "no episode of the log terminates"),
        (small(), {"features": "stripes"}, "features is 'stripes'"),
        (small(), {"features": 3}, "no n_features"),
        (small(), {"start": "last"}, "start is 'last'"),
        (small(), {"start": [[1.0, 2.0]]}, "start has shape"),
        (small(), {"estimators": ["LSDT"]}, "estimators is 'LSDT'"),
        (small(), {"estimators": []}, "estimators is empty"),
        (small(), {"policy": "module:function"}, "command line only"),
        (small(actions=None), {"policy": lambda s: s}, "no actions"),
        (small(), {"policy": np.ones((3, 2)) / 2}, "policy has shape"),
        (small(), {"policy": np.ones((4, 2))}, "row 0 of policy"),
        (small(), {"policy": np.full(4, 2.0)}, "outside"),
        (small(), {"policy": np.full(4, 0.5)}, "none of the logged policy"),
        (small(), {"policy": lambda s: np.full(len(s), 7)}, "returned action 7"),
        (small(), {"policy": lambda s: np.ones((len(s), 2))}, "add up to 1"),
        (small(), {"policy": lambda s: [][len(s)]}, "shape \\(2,\\): IndexError: list index .* of .*test_evaluate.py"),
        (small(actions=["a", "b", "a", "b"]), {"policy": lambda s: ["c"] * len(s)}, "action 'c': the log has 'a', 'b'"),
        (small(), {"policy": lambda s: np.ones(1)}, "probabilities have shape"),
        (small(actions=[[0.0], [1.0], [0.5], [0.1]]), {"policy": lambda s: np.ones(1)}, "one draw for each"),
        (small(actions=[[0.0], [1.0], [0.5], [0.1]]), {"policy": np.ones(4)}, "pass a function"),
        (small(), {"policy": lambda s: s.astype(int), "probabilities": "guess"}, "probabilities is 'guess'"),
        ("log.parquet.gz", {}, "log"),
    ],
)
def test_mistakes(log: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises((InvalidInputError, InvalidParameterError), match=message):
        evaluate_function(log, **({"gamma": 0.9} | options))


def test_policy_in_columns() -> None:
    """Probabilities of the logged actions, or of all: the same answer as the function's; precedence as documented."""
    rng = np.random.default_rng(7)
    process = random_decisions(rng, 6, 2, 2, 0.1)
    log = simulated(process, np.full((6, 2), 0.5), rng, 1_000, 30, known=True)
    policy = rng.dirichlet(np.ones(2), 6)
    table: dict[str, Any] = {"obs": log.observations, "action": log.actions, "reward": log.rewards}
    table |= {"terminated": log.terminated, "truncated": log.truncated, "probability": log.probabilities}
    table |= {"next_obs": np.append(log.observations[1:], 0)}
    table["next_obs"][log.episodes[1:] - 1] = log.final
    taken = policy[log.observations, log.actions]
    asked = ["KrylovLSTD", "weighted IS"]
    of_function = evaluate(table, gamma=0.9, policy=lambda s: policy[s], estimators=asked)
    one = Log.from_frame(table | {"pi": taken}, {"policy": "pi"})
    assert_array_equal(one.select([3, 1]).policy, np.concatenate([taken[one.rows_of(np.array([i]))] for i in (3, 1)]))
    both = Log.from_frame(
        table | {"pi_0": policy[log.observations, 0], "pi_1": policy[log.observations, 1]}, {"policy": "pi"}
    )
    of_logged = evaluate(log, gamma=0.9, estimators="mean of returns").value
    for other in (one, both):
        found = evaluate(other, gamma=0.9, estimators=asked)
        assert [row.value for row in found.rows] == [row.value for row in of_function.rows]
        assert any("in the log's columns" in note for note in found.notes)
        acted = evaluate(other, gamma=0.9, policy="logged", estimators=asked)
        assert names(acted) == ["KrylovLSTD"]
        given = evaluate(other, gamma=0.9, policy=lambda s: np.full((len(s), 2), 0.5), estimators=asked)
        assert given.rows[1].value == pytest.approx(of_logged, abs=0.05)  # ratios of 1: the mean of returns
    assert evaluate(both, gamma=0.9, estimators="LSTDQ").rows[0].name == "LSTDQ"


def test_what_one_process_does_is_refused_with_a_cluster() -> None:
    with pytest.raises(InvalidParameterError, match="with a cluster is for one process"):
        evaluate("log.csv", gamma=0.9, cluster=object(), probabilities="estimate")


def test_all_states_of_a_log_with_ends() -> None:
    """Two steps an episode, the second one pays 1: its state is worth 1, the first one γ = ½."""
    log = Log.from_arrays([0, 1] * 20, [0.0, 1.0] * 20, terminated=[False, True] * 20, n_observations=2)
    for start, value in (("first", 0.5), ("all", 0.75)):
        assert evaluate(log, gamma=0.5, start=start).value == pytest.approx(value)
