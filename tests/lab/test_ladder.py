"""The measurement of what answers stand on: its problems have the truths that it says, and it goes on."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from tlstd_lab.measurements import ladder


@pytest.mark.parametrize("name", ["garnet", "tails", "pixels", "columns"])
def test_true_values_are_means_of_returns(name: str) -> None:
    problem = ladder.problems()[name]
    log, gamma = problem.make(2_000, np.random.default_rng(5)), problem.options["gamma"]
    returns = [log.rewards[a:b] @ gamma ** np.arange(b - a) for a, b in pairwise(log.episodes.tolist())]
    assert log.n_episodes == 2_000
    assert abs(np.mean(returns) - problem.truth) < 4.0 * np.std(returns) / np.sqrt(2_000)


def test_weighted_returns_have_the_other_policy_s_value() -> None:
    problem = ladder.problems()["bandit"]
    log = problem.make(4_000, np.random.default_rng(5))
    assert log.probabilities is not None
    wanted = problem.options["policy"](log.observations)[np.arange(len(log)), log.actions]
    weighted = log.rewards * wanted / log.probabilities
    assert abs(weighted.mean() - problem.truth) < 4.0 * weighted.std() / np.sqrt(4_000)


def test_it_goes_on_where_it_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "ladder.jsonl"
    ladder.main(kept, 1, "bandit")
    first, shown = kept.read_text(), capsys.readouterr().out
    assert first.count("\n") == 2
    ladder.main(kept, 1, "bandit")
    assert kept.read_text() == first
    assert capsys.readouterr().out == shown
    ladder.main(kept, 2, "bandit")
    assert kept.read_text().startswith(first)
    assert kept.read_text().count("\n") == 4
