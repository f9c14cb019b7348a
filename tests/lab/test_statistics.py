from __future__ import annotations

import numpy as np
import pytest
from tlstd_lab.claims import BEYOND, Claim, Finding, above, below
from tlstd_lab.panel import Results
from tlstd_lab.statistics import OverRuns, bootstrap, interval, ratio_of_means
from tlstd_lab.store import Store


def test_interval_covers_the_mean_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(40):
        _, low, high = bootstrap(lambda x: x.mean(), rng.exponential(size=40))
        covered += bool(low <= 1.0 <= high)
    assert 32 <= covered <= 40  # 38 expected; percentile intervals of skewed means are a little short


def test_pairs_stay_together() -> None:
    noise = np.random.default_rng(1).uniform(1.0, 100.0, 30)
    paired = ratio_of_means(2.0 * noise, noise)
    assert paired.low == pytest.approx(2.0) == paired.high
    apart = interval(lambda a, b: float(a.mean() / b.mean()), 2.0 * noise, noise, paired=False)
    assert apart.low < 1.9 < 2.1 < apart.high


def test_the_same_numbers_every_time() -> None:
    values = np.random.default_rng(2).standard_normal(20)
    assert interval(lambda x: x.mean(), values) == interval(lambda x: x.mean(), values)


@pytest.mark.parametrize(
    ("number", "expected"),
    [((0.8, 0.7, 0.9), "reproduced"), ((0.9, 0.8, 1.2), "partly"), ((1.2, 1.1, 1.3), "partly"), ((2, 1, 3), "not")],
)
def test_verdicts(number: tuple[float, float, float], expected: str) -> None:
    assert below(OverRuns(*number), 1.0, partly=1.5) == expected
    mirrored = OverRuns(-number[0], -number[2], -number[1])
    assert above(mirrored, -1.0, partly=-1.5) == expected


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        (0, "reproduced"),  # chance has no part in it
        (1, "not judged: 1 run, at least 3 needed"),
        (2, "not judged: 2 runs, at least 3 needed"),
        (3, "reproduced"),
    ],
)
def test_verdicts_need_three_random_runs(runs: int, expected: str) -> None:
    found = Finding("reproduced", OverRuns(0.5, 0.4, 0.6, runs), "a ratio")
    claim = Claim("name", BEYOND, "It is less.", lambda results: found)
    assert claim.judge(Results(Store("nowhere"), "paper")).words == expected
