"""The light: red on logs that were made to mislead, for the right reason, and not red on sound ones."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache

import numpy as np
import pytest

from tests.evaluation.logs import random_decisions, simulated
from tests.evaluation.trust_logs import FAILURES, SOUND, Case, Maker, boyan, few, first_part, garnet_off, stream
from tlstd import Log
from tlstd.evaluation import Report, evaluate
from tlstd.evaluation.evaluate import answers
from tlstd.evaluation.intervals import Interval
from tlstd.evaluation.question import Question
from tlstd.evaluation.trust import CHECKS, Evidence, LeftOut, Trust, evidence
from tlstd.evaluation.trust.of_log import left_out
from tlstd.evaluation.trust.of_values import regularisation
from tlstd.evaluation.trust.verdict import Check, chance
from tlstd.features.constant import Constant
from tlstd.page import write_page

THIRD = 1.0 / 3.0
QUICK_SOUND = {  # the share of the log that shows it
    "random walk": THIRD,
    "Boyan's chain": 1.0,
    "Garnet": THIRD,
    "Garnet, another policy, ratios": THIRD,
    "Garnet, another policy, action values": THIRD,
    "Mountain Car": 0.2,
    "FrozenLake": THIRD,
    "stream": THIRD,
}
QUICK_FAILURES = {
    "unsupported actions": THIRD,
    "wrong probabilities": THIRD,
    "time limits taken for ends": THIRD,
    "ends taken for time limits": THIRD,
    "one episode carries everything": 0.5,
    "far start states": THIRD,
    "γ beyond the episodes": THIRD,
    "rewards that change": 1.0,
    "hidden mode": THIRD,
    "too few episodes": 1.0,
}
SEEDS = 20


def answered(case: Case) -> Report:
    answer = "LSTDQ" if "policy" in case.options and case.log.probabilities is None else "KrylovLSTD"
    return evaluate(case.log, estimators=[answer, "mean of returns"], **case.options)


@cache
def of_boyan() -> Report:
    """What several tests look at."""
    return answered(boyan(0))


@cache
def of_few() -> Report:
    """What several tests look at."""
    return answered(few(0))


KEPT = {boyan: of_boyan, few: of_few}


def trust_in(case: Case) -> Trust:
    return lit(answered(case))


def lit(evaluation: Report) -> Trust:
    found = evaluation.trust
    assert found is not None
    return found


def right_reason(found: Trust, why: str) -> bool:
    return any(found[name].state == "red" for name in why.split())


def light_for(found: Trust, why: str) -> str:
    """The light of what these checks are about."""
    of_answer = any(found[name].about == "answer" for name in why.split())
    return found.light if of_answer else found.values_light


def quick_trust(make: Maker, share: float) -> Trust:
    return lit(KEPT[make]()) if make in KEPT else trust_in(first_part(make(0), share))


@pytest.mark.parametrize("name", QUICK_SOUND)
def test_a_sound_log_is_not_red(name: str) -> None:
    found = quick_trust(SOUND[name], QUICK_SOUND[name])
    assert found.light != "red", found
    assert found.values_light != "red", found
    assert len(found.checks) == len(CHECKS)


@pytest.mark.parametrize("name", QUICK_FAILURES)
def test_a_failure_is_red_for_its_reason(name: str) -> None:
    why, make = FAILURES[name]
    found = quick_trust(make, QUICK_FAILURES[name])
    assert light_for(found, why) == "red"
    assert right_reason(found, why), found
    assert any(found[name].sentence in str(found) for name in why.split())


@pytest.mark.long
@pytest.mark.parametrize("name", SOUND)
def test_false_alarms(name: str) -> None:
    """At most one seed in twenty is red."""
    reds = Counter[str]()
    for seed in range(SEEDS):
        found = trust_in(SOUND[name](seed))
        reds.update({check.name for check in found.checks if check.state == "red"})
        reds["any"] += found.values_light == "red"
    print(f"{name}: red in {reds['any']} of {SEEDS}: {dict(reds)}")
    assert reds["any"] <= 1, reds


@pytest.mark.long
@pytest.mark.parametrize("name", FAILURES)
def test_misses(name: str) -> None:
    """Every seed is red, and at least 18 of 20 for the right reason."""
    why, make = FAILURES[name]
    found = [trust_in(make(seed)) for seed in range(SEEDS)]
    right = sum(right_reason(each, why) for each in found)
    print(f"{name}: red in {sum(light_for(each, why) == 'red' for each in found)}, for {why} in {right} of {SEEDS}")
    assert all(light_for(each, why) == "red" for each in found)
    assert right >= 18


def test_what_a_check_says() -> None:
    found = lit(of_few())
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
    evaluation = of_boyan()
    assert "Trust: green (" in str(evaluation)
    found = json.loads(evaluation.to_json())
    assert found["schema"] == 3
    assert found["trust"]["light"] == "green"
    assert [check["name"] for check in found["trust"]["checks"]] == [check.name for check in evaluation.trust.checks]  # type: ignore[union-attr]


def test_a_long_log_is_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Evenly spaced episodes, with their ratios; a stream's first steps. Counts stay those of the whole log."""
    monkeypatch.setattr(evidence, "MOST_STEPS", 1_000)
    evaluation = answered(first_part(garnet_off(0), 0.5))
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
    n = f"By a sample of {len(found.log):,} steps: "
    assert {check.name for check in trust.checks if check.sentence.startswith(n)} >= {"influence", "ratios", "score"}
    assert not any(trust[name].sentence.startswith("By") for name in ("left_out", "episodes", "regularisation"))
    long = answered(stream(0, 2_500))
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


def one_feature(n: int, better: float) -> Report:
    """One feature for all states, and start states that are better by so many standard deviations of returns."""
    rng = np.random.default_rng(0)
    length = 5
    rewards = np.zeros((n, length))
    rewards[:, 0] = 3.0 * better + 3.0 * rng.standard_normal(n)
    ends = np.tile(np.arange(length) == length - 1, n)
    log = Log.from_arrays(rng.standard_normal((n * length, 1)), rewards.ravel(), terminated=ends)
    return evaluate(log, gamma=0.9, features=Constant(), estimators=["KrylovLSTD", "mean of returns"])


@pytest.mark.parametrize(("n", "better", "state"), [(400, 0.4, "red"), (4_000, 0.1, "red"), (50, 0.02, "green")])
def test_least_squares_off_the_mean_of_returns(n: int, better: float, state: str) -> None:
    """What counts is the half-width, however small it is beside the spread of returns."""
    found = one_feature(n, better)
    trust = lit(found)
    check = trust["agreement"]
    assert check.state == state
    assert check.about == "state values"
    assert check not in trust.of_answer
    assert check.sentence not in trust.reasons
    difference = found.of_model.value - found.value
    assert check.data["difference"] == pytest.approx(difference)
    assert check.data["standard_error"] < 1.5 * 3.0 / np.sqrt(n)
    own = found.of_model.interval
    assert own is not None
    if state == "red":
        assert own.high < found.interval().low
        assert trust.values_light == "red"
        assert check.sentence in str(trust)
    assert check.value == pytest.approx(abs(difference) / own.half_width)


def test_least_squares_as_the_answer_is_red() -> None:
    """Where only that was asked for, the light shows what the returns say against it."""
    log = one_feature(400, 0.4).fitted
    assert log is not None
    found = evaluate(log.log, gamma=0.9, features=Constant(), estimators="KrylovLSTD")
    trust = lit(found)
    assert (found.rung, trust["agreement"].about, trust.light) == ("least squares", "answer", "red")
    assert trust["agreement"].sentence in trust.reasons


def test_an_answer_outside_of_all_returns_is_red() -> None:
    """Lines through the states, asked far beyond them."""
    x = np.linspace(0.0, 1.0, 200)
    log = Log.from_arrays(x[:, None], x, terminated=np.ones(200, dtype=np.bool_))
    inside, outside = (evaluate(log, gamma=0.9, features="columns", start=[[s]]) for s in (0.5, 3.0))
    assert lit(inside)["inside"].state == "green"
    check = lit(outside)["inside"]
    assert (check.state, outside.rung) == ("red", "least squares")
    assert "outside of the range of returns in the log, 0 to 1" in check.sentence


@pytest.mark.parametrize(
    ("answer", "error", "model", "state"),
    [
        (38.0, 2.0, 3.5, "red"),  # certain, and most of the spread
        (38.0, 200.0, 3.5, "red"),  # nobody knows: the correction is as large as the spread
        (25.0, 50.0, 3.5, "amber"),
        (12.0, 50.0, 3.5, "green"),  # well within its error
        (9.0, 1.0, 3.5, "red"),  # certain, and more than double
        (9.0, 2.0, 3.5, "amber"),
        (3.6, 0.001, 3.5, "green"),  # certain, and nobody cares
        (1_000.0, 50.0, 960.0, "green"),  # a tenth of the answer counts as a spread
        (-4.0, 0.5, 3.5, "red"),  # another sign
    ],
)
def test_a_correction_larger_than_what_is_corrected(answer: float, error: float, model: float, state: str) -> None:
    """Returns spread by 30."""
    unit = max(30.0, 0.1 * abs(answer))
    assert Correction(answer, error, model, abs(answer - model) / unit).state == state


def test_an_answer_that_is_mostly_correction_is_red() -> None:
    """In words, with both numbers, and of all steps."""
    found = of_boyan()
    row = found.of_model
    assert found.fitted is not None
    assert row.interval is not None
    assert row.plain == pytest.approx(found.fitted.mean("start states"))
    check = regularisation(gather(found.fitted, Answer(row.interval, row.interval.value / 10.0)))
    assert check.state == "red"
    assert f"The answer, {row.value:.4g} ± " in check.sentence
    assert f"debiased from {row.value / 10.0:.4g}, " in check.sentence
    assert regularisation(gather(found.fitted)).state == "green"


def test_what_was_left_out_is_amber_or_red() -> None:
    fitted = of_few().fitted
    assert fitted is not None
    for out, state in ((LeftOut(), "green"), (LeftOut(1, 10, 0, 50), "amber"), (LeftOut(3, 10, 0, 50), "red")):
        check = left_out(gather(fitted, Answer(left_out=out)))
        assert check.state == state
        assert (f"{out.files} of 10 files" in check.sentence) == bool(out.files)
    assert LeftOut(1, 10, 5, 50).share == pytest.approx(1.0 - 0.9 * 0.9)
