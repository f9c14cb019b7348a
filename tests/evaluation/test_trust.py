"""The light: red on logs that were made to mislead, for the right reason, and not red on sound ones."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest

from tests.evaluation.trust_logs import FAILURES, SOUND, Case, boyan, few, garnet_off, stream
from tlstd import Log
from tlstd.evaluation import Evaluation, evaluate
from tlstd.evaluation.trust import CHECKS, Trust, evidence
from tlstd.evaluation.trust.evidence import Mean, gather
from tlstd.evaluation.trust.verdict import Check
from tlstd.features.constant import Constant

QUICK_SOUND = (
    "random walk",
    "Boyan's chain",
    "Garnet",
    "Garnet, another policy, ratios",
    "Garnet, another policy, action values",
    "Mountain Car",
    "FrozenLake",
    "stream",
)
QUICK_FAILURES = (
    "unsupported actions",
    "wrong probabilities",
    "time limits taken for ends",
    "ends taken for time limits",
    "one episode carries everything",
    "far start states",
    "γ beyond the episodes",
    "rewards that change",
    "hidden mode",
    "too few episodes",
)
SEEDS = 20


def answered(case: Case) -> Evaluation:
    answer = "LSTDQ" if "policy" in case.options and case.log.probabilities is None else "KrylovLSTD"
    return evaluate(case.log, estimators=[answer], **case.options)


def trust_in(case: Case) -> Trust:
    found = answered(case).trust
    assert found is not None
    return found


def right_reason(found: Trust, why: str) -> bool:
    return any(found[name].state == "red" for name in why.split())


@pytest.mark.parametrize("name", QUICK_SOUND)
def test_a_sound_log_is_not_red(name: str) -> None:
    found = trust_in(SOUND[name](0))
    assert found.light != "red", found
    assert len(found.checks) == len(CHECKS)


@pytest.mark.parametrize("name", QUICK_FAILURES)
def test_a_failure_is_red_for_its_reason(name: str) -> None:
    why, make = FAILURES[name]
    found = trust_in(make(0))
    assert found.light == "red"
    assert right_reason(found, why), found
    assert any(found[name].sentence in found.reasons for name in why.split())


@pytest.mark.long
@pytest.mark.parametrize("name", SOUND)
def test_false_alarms(name: str) -> None:
    """At most one seed in twenty is red."""
    reds = Counter[str]()
    for seed in range(SEEDS):
        found = trust_in(SOUND[name](seed))
        reds.update({check.name for check in found.checks if check.state == "red"})
        reds["any"] += found.light == "red"
    print(f"{name}: red in {reds['any']} of {SEEDS}: {dict(reds)}")
    assert reds["any"] <= 1, reds


@pytest.mark.long
@pytest.mark.parametrize("name", FAILURES)
def test_misses(name: str) -> None:
    """Every seed is red, and at least 18 of 20 for the right reason."""
    why, make = FAILURES[name]
    found = [trust_in(make(seed)) for seed in range(SEEDS)]
    right = sum(right_reason(each, why) for each in found)
    print(f"{name}: red in {sum(each.light == 'red' for each in found)}, for {why} in {right} of {SEEDS}")
    assert all(each.light == "red" for each in found)
    assert right >= 18


def test_what_a_check_says() -> None:
    found = trust_in(few(0))
    check = found["episodes"]
    assert (check.value, check.state, check.red) == (6.0, "red", "below 10")
    assert found.ordered[0].state == "red"
    assert str(found).startswith("Trust: red (")
    assert f"- {check.sentence}" in str(found)
    for each in found.checks:
        assert each.sentence.endswith(".")
        assert each.state == "unchecked" or (each.amber and each.red and each.reason and each.measured)
    with pytest.raises(KeyError, match="there is no check 'nothing'"):
        found["nothing"]


def test_the_light_is_in_what_is_printed_and_in_json() -> None:
    evaluation = answered(boyan(0))
    assert "Trust: green (" in str(evaluation)
    found = json.loads(evaluation.to_json())
    assert found["schema"] == 2
    assert found["trust"]["light"] == "green"
    assert [check["name"] for check in found["trust"]["checks"]] == [check.name for check in evaluation.trust.checks]  # type: ignore[union-attr]


def test_a_long_log_is_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Evenly spaced episodes, with their ratios; a stream's first steps. Counts stay those of the whole log."""
    monkeypatch.setattr(evidence, "MOST_STEPS", 1_000)
    evaluation = answered(garnet_off(0))
    assert evaluation.fitted is not None
    found = gather(evaluation.fitted)
    assert 500 <= len(found.log) <= 1_500
    assert found.sample.rhos is not None
    assert len(found.sample.rhos) == len(found.log)
    assert found.starts.rows is not None
    np.testing.assert_array_equal(found.starts.observations, found.log.observations[found.starts.rows])
    whole = evaluation.fitted.log
    chosen = np.isin(whole.ids, found.log.ids)
    np.testing.assert_array_equal(whole.rewards[whole.rows_of(np.flatnonzero(chosen))], found.log.rewards)
    trust = evaluation.trust
    assert trust is not None
    assert "evenly spaced" in trust.note
    assert trust["episodes"].value == whole.n_episodes
    long = answered(stream(0))
    assert long.fitted is not None
    assert len(gather(long.fitted).log) == 1_000


def test_student() -> None:
    """By hand: a difference of two standard errors with 5 groups has chance 0.116 by Student's t with 4 degrees."""
    assert Mean(2.0, 1.0, 5).chance() == pytest.approx(0.1161, abs=1e-4)
    assert Mean(2.0, 0.0, 5).chance() == 0.0
    assert Mean(2.0, 0.0, 5).chance(2.0) == 1.0
    assert Mean(2.0, 1.0, 1).chance() == 1.0


def test_json_has_no_infinite_numbers() -> None:
    check = Check("a", "A", "green", float("inf"), "", "", "", "", "", {"x": np.array([1.0, np.nan]), "n": np.int64(2)})
    assert json.dumps(check.to_dict(), allow_nan=False)
    assert check.to_dict()["data"] == {"x": [1.0, None], "n": 2}


def test_an_answer_far_from_the_mean_of_returns_is_red() -> None:
    """One feature for all states, and start states that are better: by 0.8, where returns deviate by 3."""
    rng = np.random.default_rng(0)
    n, length = 400, 5
    rewards = np.zeros((n, length))
    rewards[:, 0] = 1.0 + 3.0 * rng.standard_normal(n)
    ends = np.tile(np.arange(length) == length - 1, n)
    log = Log.from_arrays(rng.standard_normal((n * length, 1)), rewards.ravel(), terminated=ends)
    found = evaluate(log, gamma=0.9, features=Constant(), estimators=["KrylovLSTD", "Monte Carlo"])
    assert found.trust is not None
    check = found.trust["calibration"]
    difference = found.value - found.rows[1].value
    assert difference < -0.6
    assert check.data["answer_error"] == pytest.approx(difference)
    assert 0.5 * 3.0 / np.sqrt(n) < check.data["answer_error_error"] < 1.5 * 3.0 / np.sqrt(n)
    assert check.state == "red"
    assert "off the mean of returns" in check.sentence
