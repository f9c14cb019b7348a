"""The light: red on logs that were made to mislead, for the right reason, and not red on sound ones."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.evaluation.logs import random_decisions, simulated
from tests.evaluation.trust_logs import FAILURES, SOUND, Case, boyan, few, first_part, garnet_off, stream
from tlstd import Log
from tlstd.evaluation import EpisodeValue, Report, evaluate, interval_of
from tlstd.evaluation.trust import CHECKS, Evidence, LeftOut, Trust, evidence
from tlstd.evaluation.trust.of_log import left_out
from tlstd.evaluation.trust.of_values import regularisation
from tlstd.evaluation.trust.verdict import Check, chance
from tlstd.features.constant import Constant
from tlstd.krylov.arnoldi import Arnoldi
from tlstd.page import write_page

FEW, MANY = range(5), range(20)
"""Seeds."""


def answered(case: Case) -> Report:
    return evaluate(case.log, **case.options)


@cache
def of_boyan() -> Report:
    """What several tests look at."""
    return answered(boyan(0))


@cache
def of_few() -> Report:
    """What several tests look at."""
    return answered(few(0))


def trust_in(case: Case) -> Trust:
    return lit(answered(case))


def lit(evaluation: Report) -> Trust:
    return evaluation.trust


def right_reason(found: Trust, why: str) -> bool:
    """Red or amber."""
    return any(found[name].state in ("red", "amber") for name in why.split())


def light_for(found: Trust, why: str) -> str:
    """The light of what these checks are about."""
    of_answer = any(found[name].about == "answer" for name in why.split())
    return found.light if of_answer else found.values_light


@pytest.mark.parametrize("name", SOUND)
@pytest.mark.parametrize("seeds", [FEW, pytest.param(MANY, marks=pytest.mark.long)], ids=["few", "many"])
def test_false_alarms(name: str, seeds: range) -> None:
    """No seed of five is red, and at most two of twenty."""
    reds = Counter[str]()
    for seed in seeds:
        found = trust_in(SOUND[name](seed))
        assert len(found.checks) == len(CHECKS)
        reds.update({check.name for check in found.checks if check.state == "red"})
        reds["any"] += found.values_light == "red"
    print(f"{name}: red in {reds['any']} of {len(seeds)}: {dict(reds)}")
    assert reds["any"] <= 2 * (len(seeds) == len(MANY)), reds


@pytest.mark.parametrize("name", FAILURES)
@pytest.mark.parametrize("seeds", [FEW, pytest.param(MANY, marks=pytest.mark.long)], ids=["few", "many"])
def test_misses(name: str, seeds: range) -> None:
    """Every seed of five is red or amber by a named check, and at least 18 of 20."""
    why, make = FAILURES[name]
    found = [trust_in(make(seed)) for seed in seeds]
    right = sum(right_reason(each, why) for each in found)
    red = sum(light_for(each, why) == "red" for each in found)
    print(f"{name}: red in {red}, red or amber for {why} in {right} of {len(seeds)}")
    assert right >= len(seeds) - 2 * (len(seeds) == len(MANY))
    assert any(found[0][name].sentence in str(found[0]) for name in why.split())


def test_what_a_check_says() -> None:
    found = lit(of_few())
    check = found["episodes"]
    assert (check.value, check.state, check.red) == (6.0, "red", "below 10")
    assert found.ordered[0].state == "red"
    assert str(found).startswith("Trust: red (")
    assert f"- {check.sentence}" in str(found)
    for each in found.checks:
        assert each.sentence.endswith(".")
        assert each.state in ("unchecked", "not applicable") or (each.reason and each.measured)
    with pytest.raises(KeyError, match="there is no check 'nothing'"):
        found["nothing"]


def test_the_light_is_in_what_is_printed_and_in_json() -> None:
    evaluation = of_boyan()
    assert "Trust: green (" in str(evaluation)
    found = json.loads(evaluation.to_json())
    assert found["schema"] == 3
    assert found["trust"]["light"] == "green"
    assert [check["name"] for check in found["trust"]["checks"]] == [check.name for check in evaluation.trust.checks]


def test_a_long_log_is_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Similar states are looked for in evenly spaced episodes, or in a stream's first steps."""
    monkeypatch.setattr(evidence, "MOST_STEPS", 1_000)
    found = answered(first_part(garnet_off(0), 0.5))
    whole, sample = found.log, Evidence(found.case, LeftOut()).sample
    assert 500 <= len(sample) <= 1_500
    chosen = np.isin(whole.ids, sample.ids)
    np.testing.assert_array_equal(whole.rewards[whole.rows_of(np.flatnonzero(chosen))], sample.rewards)
    assert "evenly spaced" in found.trust.note
    assert found.trust["episodes"].value == whole.n_episodes
    long = answered(stream(0, 2_500))
    assert "the first ones" in long.trust.note
    assert len(Evidence(long.case, LeftOut()).sample) == 1_000


def test_blocks_of_nearly_the_same_length_are_even() -> None:
    """A stream of 33 blocks is not amber because one of them is a step longer."""
    case = SOUND["stream"](0)
    check = evaluate(case.log, **case.options).trust["effective"]
    assert check.data["episodes"] < 40
    assert check.value is not None
    assert 0.9 * check.data["episodes"] < check.value < check.data["episodes"]
    assert check.state == "green"


def test_student() -> None:
    """By hand: a difference of two standard errors with 5 groups has chance 0.116 by Student's t with 4 degrees."""
    assert chance(2.0, 1.0, 4.0) == pytest.approx(0.1161, abs=1e-4)
    assert chance(2.0, 0.0, 4.0) == 0.0
    assert chance(1e-12, 0.0, 4.0) == 1.0
    assert chance(2.0, float("inf"), 4.0) == 1.0


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
    log = one_feature(400, 0.4).log
    found = evaluate(log, gamma=0.9, features=Constant(), estimators="KrylovLSTD")
    trust = lit(found)
    assert (found.rung, [row.name for row in found.rows]) == ("least squares", ["KrylovLSTD"])
    assert (trust["agreement"].about, trust.light) == ("answer", "red")
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


def with_answer(found: Report, answer: float, error: float, model: float) -> Evidence:
    """The evidence of a report whose row of least squares has these numbers, with returns that spread by 30."""
    row = found.of_model
    moved = np.array([1.0, -1.0]) * error / 2.0
    interval = replace(interval_of(EpisodeValue(answer, moved, 2.0)), standard_error=error)
    made = replace(row, values={"start states": answer}, plain=model, interval=interval)
    case = replace(found.case, rows=[made])
    some = Evidence(case, LeftOut())
    vars(some)["spread"] = 30.0
    return some


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
    check = regularisation(with_answer(of_boyan(), answer, error, model))
    assert check.state == state
    assert f"{answer:.4g} ± " in check.sentence
    assert f"debiased from {model:.4g}, " in check.sentence


def test_what_was_left_out_is_amber_or_red() -> None:
    case = of_few().case
    for out, state in ((LeftOut(), "green"), (LeftOut(1, 10, 0, 50), "amber"), (LeftOut(3, 10, 0, 50), "red")):
        check = left_out(Evidence(case, out))
        assert check.state == state
        assert (f"{out.files} of 10 files" in check.sentence) == bool(out.files)
    assert LeftOut(1, 10, 5, 50).share == pytest.approx(1.0 - 0.9 * 0.9)


# --- bias that nothing tests ----------------------------------------------------------------------------------------


def decisions(known: bool, seed: int = 0) -> Log:
    rng = np.random.default_rng(seed)
    return simulated(random_decisions(rng, 6, 2, 2, 0.2), np.full((6, 2), 0.5), rng, 2_000, 50, known=known)


def target(states: Any) -> Any:
    return np.tile([0.6, 0.4], (len(states), 1))


def test_unchecked_where_nothing_assumes_less() -> None:
    """Action values without probabilities, and values of given states, have nothing to be tested by."""
    alone = evaluate(decisions(known=False), gamma=0.9, policy=target)
    assert (alone.rung, alone.trust["agreement"].state, alone.light) == ("action values", "unchecked", "unchecked")
    assert "bias unchecked" in alone.trust["agreement"].sentence
    assert alone.trust["agreement"].sentence in alone.trust.reasons
    assert "Trust: unchecked (" in str(alone)
    beside = evaluate(decisions(known=True), gamma=0.9, policy=target)
    assert (beside.rung, beside.trust["agreement"].about) == ("doubly robust", "state values")
    assert beside.light == "green"
    given = evaluate(decisions(known=False), gamma=0.9, start=[0, 1])
    assert (given.rung, given.trust["agreement"].state) == ("least squares", "unchecked")


def test_estimated_probabilities_test_nothing() -> None:
    """They are a second opinion: action values stay the answer, and unchecked."""
    found = evaluate(decisions(known=False), gamma=0.9, policy=target, probabilities="estimate")
    assert found.rows[0].name == "LSTDQ"
    assert {"doubly robust", "KrylovLSTD with ratios"} < {row.name for row in found.rows}
    assert found.trust["agreement"].state == "unchecked"
    assert any("estimated by softmax regression" in note for note in found.notes)


def test_residuals_with_ratios_are_weighted() -> None:
    """What a single action brings is no error of a state's value: only their mean over the policy is."""
    rng = np.random.default_rng(0)
    states, actions = rng.uniform(-1.0, 1.0, (2_000, 1)), rng.integers(0, 2, 2_000)
    log = Log.from_arrays(
        states, states[:, 0] * (2 * actions - 1), actions=actions, probabilities=np.full(2_000, 0.5),
        terminated=np.ones(2_000, dtype=np.bool_),
    )  # fmt: skip
    found = evaluate(log, gamma=0.0, policy=lambda x: np.tile([0.2, 0.8], (len(x), 1)), estimators="KrylovLSTD")
    assert found.rung == "least squares with ratios"
    assert found.trust["residuals"].state == "green"


# --- values behind cuts ---------------------------------------------------------------------------------------------


LATE, ENDS = 20, 0.03


def machines(seed: int, hidden: bool, n: int = 300) -> Log:
    """Machines that pay 1 per step from their twentieth step on; a half of them is cut off after 8 to 12 steps.

    Each step ends with probability 0.03. What is seen: the age, or noise.
    """
    rng, rows = np.random.default_rng(seed), []
    for e in range(n):
        limit = int(rng.integers(8, 13)) if rng.random() < 0.5 else 10_000
        for t in range(limit):
            ended = bool(rng.random() < ENDS)
            seen = rng.standard_normal() if hidden else float(min(t, LATE))
            rows.append((e, seen, float(t >= LATE), ended, t == limit - 1 and not ended, float(min(t + 1, LATE))))
            if ended:
                break
    episodes, states, rewards, terminated, cut, age = map(np.array, zip(*rows, strict=True))
    following = np.append(states[1:], 0.0)
    last = np.append(np.diff(episodes) != 0, True)
    following[last] = rng.standard_normal(n) if hidden else age[last]
    return Log.from_arrays(
        states[:, None], rewards, episodes=episodes, terminated=terminated, truncated=cut,
        next_observations=following[:, None],
    )  # fmt: skip


def test_values_behind_cuts_are_tested_by_cutting_complete_episodes() -> None:
    """Where the age is hidden, values behind cuts are those of all ages: amber or red, and said why."""
    step = 0.95 * (1.0 - ENDS)
    truth = step**LATE / (1.0 - step)
    for seed in range(3):
        sound = evaluate(machines(seed, hidden=False), gamma=0.95)
        assert sound.rung == "returns with tails"
        assert sound.trust["tails"].state in ("green", "unchecked")
        assert truth in sound.interval(level=0.999)
        wrong = evaluate(machines(seed, hidden=True), gamma=0.95)
        assert wrong.rung == "returns with tails"
        assert wrong.trust["tails"].state in ("amber", "red")
        assert wrong.light in ("amber", "red")
        assert "values behind cuts are not what comes" in wrong.trust["tails"].sentence


# --- the report only reads ------------------------------------------------------------------------------------------


def test_printing_json_and_the_page_run_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = evaluate(decisions(known=True), gamma=0.9, policy=target, compare=True)
    text, whole = str(found), found.to_json()

    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("something was computed")

    for place in ("fits.fit_states", "fits.fit_actions", "fits.least_squares", "least_squares.least_squares"):
        monkeypatch.setattr(f"tlstd.evaluation.{place}", never)
    monkeypatch.setattr(Arnoldi, "extend", never)
    monkeypatch.setattr("tlstd.evaluation.trust.assess", never)
    assert str(found) == text
    assert repr(found) == repr(found)
    assert found.to_json() == whole
    assert [str(found.interval(level=0.5)), found.light] == [str(found.interval(level=0.5)), found.trust.light]
    write_page(found, tmp_path / "a.html")
    write_page(found, tmp_path / "b.html")
    assert (tmp_path / "a.html").read_text() == (tmp_path / "b.html").read_text()
