"""The measurement of answers: its true values are right, its tests are exact, and it continues after a stop."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tlstd_lab.measurements.answers import cells
from tlstd_lab.measurements.answers.__main__ import main
from tlstd_lab.measurements.answers.cells import Cell, mean_of_returns
from tlstd_lab.measurements.answers.problems import COMPLETE, problems
from tlstd_lab.measurements.answers.verdicts import at_least, at_most, holm, misses_by_light, rmse, verdicts

import tlstd

MOST_ROWS = 40_000


@pytest.mark.parametrize("name", sorted(problems()))
def test_true_values_are_means_of_independent_rollouts(name: str) -> None:
    problem = problems()[name]
    values = problem.check(1_500, np.random.default_rng(5))
    assert abs(values.mean() - problem.truth) < 4.5 * values.std() / np.sqrt(len(values))


@pytest.mark.parametrize("name", ["bandit-strong", "bandit-mild"])
def test_weighted_rewards_of_the_log_have_the_true_value(name: str) -> None:
    problem = problems()[name]
    log, options = problem.make(20_000, np.random.default_rng(5))
    assert log.probabilities is not None
    wanted = options["policy"](log.observations)[np.arange(len(log)), log.actions]
    weighted = log.rewards * wanted / log.probabilities
    assert abs(weighted.mean() - problem.truth) < 4.5 * weighted.std() / np.sqrt(len(weighted))


def test_problems_have_numbers_of_their_own_and_logs_of_bounded_size() -> None:
    assert len({problem.number for problem in problems().values()}) == len(problems())
    for problem in problems().values():
        size = problem.sizes[-1]
        log, _ = problem.make(size, np.random.default_rng([problem.number, size, 0]))
        assert len(log) <= MOST_ROWS


def test_a_log_is_the_same_for_the_same_seed() -> None:
    for name in ("gains-random", "exported", "stream"):
        first, second = (problems()[name].make(60, np.random.default_rng([1, 2, 3]))[0] for _ in range(2))
        np.testing.assert_array_equal(first.rewards, second.rewards)


def test_the_mean_over_all_states_is_that_of_their_returns() -> None:
    log, options = problems()["all-numbers"].make(3, np.random.default_rng(0))
    returns, ends = [], log.episodes[1:].tolist()
    for row in range(len(log)):
        end = next(end for end in ends if end > row)
        returns.append(log.rewards[row:end] @ options["gamma"] ** np.arange(end - row))
    value, low, high = mean_of_returns(log, options)
    assert value == pytest.approx(np.mean(returns))
    assert low < value < high


def test_holm_by_hand() -> None:
    assert holm([0.012, 0.04, 0.017, 0.3]) == [True, False, False, False]  # 0.05/4 = 0.0125; 0.05/3 = 0.0167
    assert holm([0.012, 0.02, 0.016, 0.3]) == [True, True, True, False]  # 0.05/2 = 0.025; 0.05
    assert holm([]) == []


def test_binomial_tails_by_hand() -> None:
    assert at_most(1, 2, 0.9) == pytest.approx(0.19)
    assert at_least(1, 2, 0.1) == pytest.approx(0.19)
    assert at_least(0, 2, 0.1) == at_most(0, 0, 0.9) == 1.0


def _log(answer: float, half: float, light: str = "green", rung: str = "mean of returns") -> dict[str, Any]:
    truth = problems()["numbers"].truth
    low, high = truth + answer - half, truth + answer + half
    return {"answer": truth + answer, "low": low, "high": high, "light": light, "rung": rung, "returns": [truth + 1.0]}


def test_verdicts_of_made_up_logs() -> None:
    cell = Cell("numbers", 50)
    good = {cell: [_log(0.0, 1.0)] * 95 + [_log(2.0, 1.0, "amber")] * 5}
    assert rmse(good[cell], "answer", problems()["numbers"].truth) == pytest.approx(np.sqrt(0.2))
    assert misses_by_light(good, COMPLETE) == {"green": (0, 95), "amber": (5, 5)}
    judged = verdicts(good)
    assert [one.holds for one in judged if one.holds is not None] == [True] * 7
    bad = {cell: [_log(0.0, 1.0)] * 70 + [_log(2.0, 1.0)] * 20 + [_log(3.0, 1.0, "red")] * 10}
    held = {one.promise[0]: one.holds for one in verdicts(bad)}
    assert held == {"1": False, "2": False, "3": False, "4": None, "5": False, "6": None, "7": False}


def test_a_fault_of_the_library_is_a_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise ValueError("made up")

    monkeypatch.setattr(tlstd, "evaluate", fails)
    found = cells.measured(problems()["bandit-tails"], 20, 0)
    assert (found["rung"], found["error"]) == ("error", "ValueError: made up")
    held = verdicts({Cell("bandit-tails", 50): [found] * 200})
    assert held[0].holds is False


def test_it_continues_where_it_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "answers.jsonl"
    main([str(kept), "--logs", "1", "--only", "bandit-tails"])
    first, shown = kept.read_text(), capsys.readouterr().out
    assert [json.loads(line)["size"] for line in first.splitlines()] == [50, 200, 2000]
    main([str(kept), "--logs", "1", "--only", "bandit-tails"])
    assert kept.read_text() == first
    assert capsys.readouterr().out == shown
    lines = first.splitlines()
    kept.write_text("\n".join([lines[0], lines[1], lines[2][:40]]))  # killed while it wrote
    main([str(kept), "--logs", "1", "--only", "bandit-tails"])
    again = [json.loads(line) for line in kept.read_text().splitlines() if line != lines[2][:40]]
    before = json.loads(lines[2])
    assert [one["size"] for one in again] == [50, 200, 2000]
    assert {**again[2], "seconds": None} == {**before, "seconds": None}
    capsys.readouterr()
    main([str(kept), "--table", "--only", "bandit"])
    assert "bandit-tails" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="has no logs of the code 0000"):
        main([str(kept), "--table", "--version", "0000"])
