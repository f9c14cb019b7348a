"""Charts as data, and that matplotlib draws these numbers and no others."""

from __future__ import annotations

import math
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tlstd_lab import drawing
from tlstd_lab.chart import (
    DASHED,
    Axis,
    Chart,
    Legend,
    Mark,
    Note,
    Point,
    Rule,
    Series,
    cases,
    curve,
    linear_ticks,
    log_ticks,
    points,
)
from tlstd_lab.statistics import mean_band

from tlstd.core.figures import new_figure

RUNS = np.array([[4.0, 2.0, 1.0], [6.0, 3.0, 1.5], [5.0, 2.0, np.inf]])


def test_a_curve_is_means_and_bands() -> None:
    one, two = curve([10, 20, 50], RUNS, "one", "#0072B2", dash=DASHED), curve([10, 20, 50], RUNS[:1], "two", "#000000")
    middle, low, high = mean_band(RUNS)
    assert [point.x for point in one.points] == [10, 20]  # a diverged point is left out
    found = np.array([[p.y, p.low, p.high] for p in one.points], dtype=np.float64)
    assert_array_equal(found, np.column_stack([middle, low, high])[:2])
    assert two.points == (Point(10.0, 4.0), Point(20.0, 2.0), Point(50.0, 1.0))
    assert (one.marker, one.has_intervals, two.has_intervals) == ("o", True, False)


def test_limits_have_a_margin_around_all_that_is_shown() -> None:
    line = Series("", "#000000", points([0.0, 10.0], [1.0, 2.0], [0.5, 1.0], [2.0, 4.0]), marks=[Mark("*", 20.0, 1.0)])
    chart = Chart([line], Axis("x"), Axis("y"), [Rule("y", -1.0)], [Note("elsewhere", 0.5, 100.0)])
    assert (chart.x.low, chart.x.high) == (-1.0, 21.0)
    assert (chart.y.low, chart.y.high) == (-1.25, 4.25)
    chart = Chart([line], Axis("x", low=0.0), Axis("y", log=True, high=8.0))
    assert (chart.x.low, chart.x.high) == (0.0, 21.0)
    assert_allclose([chart.y.low, chart.y.high], [0.5 * 8.0**-0.05, 8.0])
    assert [chart.y.at(value) for value in (chart.y.low, chart.y.high)] == [0.0, 1.0]
    assert math.isnan(chart.y.at(0.0))


@pytest.mark.parametrize("values", [[], [math.nan], [0.0], [3.0], [-2.0, -2.0], [1e300]])
@pytest.mark.parametrize("log", [False, True])
def test_axes_of_little_can_be_drawn(values: list[float], log: bool) -> None:
    axis = Axis("", log=log).fitted(values)
    assert axis.low < axis.high
    assert axis.ticks or log


def test_ticks_are_the_finest_that_fit() -> None:
    rng = np.random.default_rng(0)
    for low, width in zip(
        rng.normal(size=300) * 10.0 ** rng.integers(-6, 7, 300), 10.0 ** rng.uniform(-4, 6, 300), strict=True
    ):
        values = np.array([value for value, _ in linear_ticks(low, low + width)])
        assert 2 <= values.size <= 7
        assert low - 1e-8 * width <= values[0] <= values[-1] <= low + (1 + 1e-8) * width
        (step,) = set(np.round(np.diff(values) / np.diff(values)[0], 4))
        assert step == 1.0
        digit = f"{np.diff(values)[0]:.1e}"[0:3]
        assert digit in ("1.0", "2.0", "5.0")
    for low, decades in zip(10.0 ** rng.uniform(-8, 6, 300), rng.uniform(0.05, 14.0, 300), strict=True):
        high = low * 10.0**decades
        ticks = log_ticks(low, high)
        assert 2 <= len(ticks) <= 9
        assert len({words for _, words in ticks}) == len(ticks)
        assert all(0.999 * low <= value <= 1.001 * high for value, _ in ticks)


def test_cases_begin_at_the_top() -> None:
    chart = Chart([Series("", "#000000", points([1.0, 2.0], [0.0, 1.0]))], Axis(""), cases([0.0, 1.0], ["a", "b"]))
    assert chart.y.wordy
    assert not chart.x.wordy
    assert chart.y.at(0.0) > chart.y.at(1.0)


def test_the_legend_has_lines_of_a_label_and_of_a_kind() -> None:
    series = [
        curve([1, 2, 3], RUNS[:1], label, "#0072B2", dash=dash, kind=kind)
        for kind, dash in (("slow", ()), ("fast", DASHED))
        for label in ("TD", "LSTD")
    ]
    chart = Chart([*series, *[curve([1], RUNS[:1, :1], "same", "#000000")] * 2], Axis(""), Axis(""))
    assert [(key.label, key.series) for key in chart.keys] == [
        ("TD", (0, 2)),
        ("LSTD", (1, 3)),
        ("same", (4,)),
        ("same", (5,)),
        ("slow", (0, 1)),
        ("fast", (2, 3)),
    ]
    assert [one.name for one in series] == ["TD, slow", "LSTD, slow", "TD, fast", "LSTD, fast"]
    assert chart.keys[-1].look.dash == DASHED


def drawn(chart: Chart) -> Any:
    with mpl.rc_context(drawing.STYLE):
        axes = new_figure(3.4, 2.7).add_subplot()
        drawing.draw(chart, axes)
        axes.get_figure().canvas.draw()  # type: ignore[union-attr]
    return axes


def test_matplotlib_draws_the_numbers_of_the_chart() -> None:
    line = curve([1, 10, 100], RUNS[:2], "line", "#0072B2", marks=[Mark("*", 2.0, 3.0)], rules=[Rule("y", 2.5)])
    bars = points([2.0, 50.0], [3.0, 4.0], x_low=[1.5, 40.0], x_high=[3.0, 60.0])
    series = [line, Series("dots", "#D55E00", bars, marker="D", joined=False)]
    chart = Chart(series, Axis("x", log=True), Axis("y"), [Rule("x", 7.0)], [Note("words", 0.5, 2.0)], Legend("below"))
    axes = drawn(chart)
    first, own, dots, free = (np.asarray(found.get_xydata()) for found in axes.lines)
    assert_array_equal(first, [[p.x, p.y] for p in line.points])
    assert_array_equal(dots, [[2.0, 3.0], [50.0, 4.0]])
    assert set(own[:, 1]) == {2.5}
    assert set(free[:, 0]) == {7.0}
    band, star, _, bars_drawn = axes.collections
    corners = band.get_paths()[0].vertices
    assert {tuple(corner) for corner in corners} == {(p.x, end) for p in line.points for end in (p.low, p.high)}
    assert_array_equal(star.get_offsets(), [[2.0, 3.0]])
    assert_array_equal(bars_drawn.get_segments(), [[[1.5, 3.0], [3.0, 3.0]], [[40.0, 4.0], [60.0, 4.0]]])
    assert (axes.get_xlim(), axes.get_ylim()) == ((chart.x.low, chart.x.high), (chart.y.low, chart.y.high))
    assert (axes.get_xscale(), axes.get_yscale(), axes.get_xlabel()) == ("log", "linear", "x")
    assert [(x, words.get_text()) for x, words in zip(axes.get_xticks(), axes.get_xticklabels(), strict=True)] == list(
        chart.x.ticks
    )
    assert [text.get_text() for text in (*axes.texts, *axes.get_legend().get_texts())] == ["words", "line", "dots"]
