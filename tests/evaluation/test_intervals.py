"""Intervals: Student's t, and longer on the side of a long tail."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import ndtri, stdtrit

from tlstd.core.arrays import FloatArray
from tlstd.errors import InvalidParameterError
from tlstd.evaluation.episode_values import EpisodeValue
from tlstd.evaluation.intervals import ROUNDING, Interval, difference_of, interval_of, mean_interval, skewness_of


def students(values: FloatArray, level: float = 0.95) -> float:
    """Half of the width of Student's interval for a mean."""
    quantile = stdtrit(values.size - 1.0, (1.0 + level) / 2.0)
    return float(quantile * values.std(ddof=1) / np.sqrt(values.size))


def sides(interval: Interval) -> tuple[float, float]:
    return interval.value - interval.low, interval.high - interval.value


samples = st.lists(st.floats(-100.0, 100.0).map(lambda x: round(x, 3)), min_size=2, max_size=30).map(np.array)


@given(samples, st.sampled_from([0.5, 0.9, 0.95, 0.999]))
def test_no_side_is_shorter_than_students_and_none_is_much_longer(values: FloatArray, level: float) -> None:
    interval = mean_interval(values, level)
    least = students(values, level)
    z = float(ndtri((1.0 + level) / 2.0))
    most = least + (1.0 + 2.0 * z**2) / 3.0 * values.std(ddof=1) / np.sqrt(values.size)
    rounding = 1e-8 * (1.0 + np.abs(values).max())
    for side in sides(interval):
        assert least - rounding <= side <= most + rounding
    assert min(sides(interval)) == pytest.approx(least, abs=rounding)  # only the long tail's side is longer
    assert all(0.0 <= each <= 1.0 for each in interval.skewness)
    assert interval.value == pytest.approx(values.mean(), abs=rounding)
    assert values.mean() in interval


@given(samples, st.floats(-50.0, 50.0))
def test_symmetric_numbers_have_students_interval(values: FloatArray, centre: float) -> None:
    both = np.concatenate([centre + values, centre - values])
    interval = mean_interval(both)
    expected = max(students(both), ROUNDING * abs(interval.value))
    assert_allclose(sides(interval), expected, rtol=1e-9, atol=1e-9 * (1.0 + np.abs(both).max()))


@given(samples, st.sampled_from([1e-6, 0.3, 7.0, 1e9]), st.booleans())
def test_another_unit_and_another_sign(values: FloatArray, scale: float, turned: bool) -> None:
    factor = -scale if turned else scale
    plain, other = mean_interval(values), mean_interval(factor * values)
    below, above = sides(plain)[::-1] if turned else sides(plain)
    tolerance = 1e-7 * scale * (1.0 + np.abs(values).max())
    assert_allclose(sides(other), (scale * below, scale * above), rtol=1e-7, atol=tolerance)


def test_the_long_tail_has_the_longer_side() -> None:
    values = np.array([0.0, 0.0, 0.0, 0.0, 5.0])
    below, above = sides(mean_interval(values))
    assert above > below == pytest.approx(students(values))
    assert sides(mean_interval(-values)) == pytest.approx((above, below))
    c = values - 1.0
    k = float((c**3).sum() / (c**2).sum() ** 1.5)
    assert mean_interval(values).skewness == pytest.approx((0.0, k))
    longer = (1.0 + 2.0 * ndtri(0.975) ** 2) / 3.0 * k * values.std(ddof=1) / np.sqrt(5)
    assert above == pytest.approx(below + longer)


@pytest.mark.parametrize(("kind", "least"), [("exponential", 0.94), ("normal", 0.935), ("rare", 0.93)])
def test_coverage_of_skewed_numbers(kind: str, least: float) -> None:
    """2,000 means of 50 numbers; Student's t alone covers fewer where they are skewed."""
    rng = np.random.default_rng(0)
    made = {
        "exponential": (rng.exponential(size=(2_000, 50)), 1.0),
        "normal": (rng.standard_normal((2_000, 50)), 0.0),
        "rare": ((rng.random((2_000, 50)) < 0.1).astype(float), 0.1),
    }
    values, truth = made[kind]
    inside = np.mean([truth in mean_interval(row) for row in values])
    alone = np.mean([abs(row.mean() - truth) <= students(row) for row in values])
    assert inside >= least
    assert inside > alone or kind == "normal"
    assert inside <= 0.985


def test_weights_that_are_skewed_count_too() -> None:
    """r = k - (8/3) Σ c u / √Σ c², with the shares u in all weights; the larger of both on each side."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        c, shares = rng.standard_normal(12), rng.dirichlet(np.full(12, 0.3))
        c -= c.mean()
        size = np.sqrt((c**2).sum())
        k = (c**3).sum() / size**3
        r = k - 8.0 / 3.0 * (c @ shares) / size
        below, above = skewness_of(EpisodeValue(0.0, c, 12.0, shares))
        assert above == pytest.approx(min(1.0, max(0.0, k, r)))
        assert below == pytest.approx(min(1.0, max(0.0, -k, -r)))
    assert skewness_of(EpisodeValue(0.0, np.zeros(3), 3.0, np.ones(3) / 3)) == (0.0, 0.0)


def test_weighted_means_are_covered() -> None:
    """2,000 ratios Σ w x / Σ w of 40 pairs in which large weights come with large numbers."""
    rng = np.random.default_rng(1)
    inside, n = 0, 40
    for _ in range(2_000):
        w = rng.lognormal(0.0, 0.7, n)
        x = 0.5 * np.log(w) + rng.standard_normal(n)
        value, shares = float((w * x).sum() / w.sum()), w / w.sum()
        c = shares * (x - value) / (1.0 - shares)
        found = EpisodeValue(value, c - c.mean(), float(w.sum() ** 2 / (w**2).sum()), shares)
        inside += 0.5 * 0.7**2 in interval_of(found)  # E[w log w] / E[w] = σ²
    assert 0.93 <= inside / 2_000 <= 0.985


def test_a_difference_is_that_of_the_contributions() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 9))
    first, second = EpisodeValue(3.0, a - a.mean(), 9.0), EpisodeValue(1.0, b - b.mean(), 5.0)
    found = difference_of(first, second, 0.9)
    c = a - b - (a - b).mean()
    assert (found.value, found.degrees, found.level) == (2.0, 4.0, 0.9)
    assert found.standard_error == pytest.approx(np.sqrt(9 / 8 * (c**2).sum()))
    assert difference_of(first, first).half_width == 0.0


def test_other_levels_and_what_cannot_be_known() -> None:
    values = np.random.default_rng(0).exponential(size=20)
    found = mean_interval(values)
    assert found.at(0.8) == mean_interval(values, 0.8)
    assert found.at(0.95) is found
    assert found.at(0.8).half_width < found.half_width
    single = mean_interval(values[:1])
    assert single.half_width == np.inf
    assert single.to_dict()["low"] is None
    same = mean_interval(np.full(9, 2.5))
    assert same.half_width == pytest.approx(2.5 * ROUNDING)
    with pytest.raises(InvalidParameterError, match="level"):
        mean_interval(values, 1.0)
