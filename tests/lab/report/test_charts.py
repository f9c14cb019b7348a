"""What a panel draws is what the page shows, in the drawing and in numbers."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tlstd_lab.chart import (
    COLOURS,
    GREY,
    LIGHT_GREY,
    SEQUENCE,
    Axis,
    Chart,
    Mark,
    Note,
    Rule,
    Series,
    cases,
    curve,
    points,
)
from tlstd_lab.panel import Results
from tlstd_lab.questions import PANELS, panel
from tlstd_lab.report import charts
from tlstd_lab.report.colours import CONTRAST, DARK, LIGHT, Palette, contrast, on_dark, visible

from tests.lab.report.pages import sources

RUNS = np.array([[4.0, 2.0, 1.0], [6.0, 3.0, 1.5], [5.0, 2.0, np.inf]])


class Cells(HTMLParser):
    """The rows of a table."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.inside = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
        self.inside = tag in ("td", "th")

    def handle_endtag(self, tag: str) -> None:
        self.inside = False

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.rows[-1][-1] += data


def test_the_drawing_has_the_points_where_they_belong() -> None:
    chart = Chart([curve([10, 20, 50], RUNS[:2], "one", "#0072B2")], Axis("", log=True), Axis(""))
    svg = charts.svg(chart, "n", "title", Palette())
    (path,) = re.findall(r'<path class="line" d="M([^"]+)"', svg)
    xy = np.array([[float(number) for number in pair.split()] for pair in path.split("L")])
    share = (xy[:, 0] - charts.LEFT) / (charts.WIDTH - charts.LEFT - charts.RIGHT)
    assert_allclose(chart.x.low * (chart.x.high / chart.x.low) ** share, [10, 20, 50], rtol=2e-3)
    share = (charts.HEIGHT - charts.BOTTOM - xy[:, 1]) / (charts.HEIGHT - charts.TOP - charts.BOTTOM)
    assert_allclose(chart.y.low + share * (chart.y.high - chart.y.low), [5.0, 2.5, 1.25], atol=0.01)
    assert svg.count('class="dot"') == 3
    assert svg.count('class="band"') == 1


def test_rules_marks_bars_and_notes_are_shown() -> None:
    marks = (Mark("*", 2.0, 3.0, hollow=True), Mark("o", 1.0, 4.0))
    line = curve([1, 2, 3], RUNS[:1], "line", "#0072B2", marks=marks, rules=(Rule("y", 2.5),))
    both = Series("b", "#D55E00", points(2.0, 3.0, 2.0, 5.0, 1.5, 3.0), marker="<", joined=False)
    across = points([1.0, 2.0], [1.0, 2.0], x_low=[0.5, 1.5], x_high=[1.5, 2.75])
    series = [line, both, Series("c", "#009E73", across, marker="D", joined=False)]
    chart = Chart(series, Axis("x"), Axis("y"), [Rule("x", 1.5)], [Note("words", 0.5, 2.0, "middle")])
    svg, table = charts.svg(chart, "n", "t", Palette()), charts.table(chart, "t")
    assert svg.count('class="whisker"') == 4
    assert len(re.findall(r'class="rule k\d"[^>]*data-series="0"', svg)) == 1
    assert svg.count('class="rule') == 2
    (place,) = re.findall(r'<text class="note" x="([\d.]+)" y="([\d.]+)" text-anchor="middle">words', svg)
    middle = 0.5 * (charts.LEFT + charts.WIDTH - charts.RIGHT)
    assert_allclose([float(number) for number in place], [middle, charts.above(chart, 2.0)], atol=0.05)
    for words in ("★ of line: 2, 3", "o of line: 1, 4", "at y: 2.5 (with line).", "at x: 1.5."):
        assert words in table


def test_cases_are_told_apart_and_read_one_by_one() -> None:
    labels = ["as printed, λ=1", "λ=0", "at rest, λ=1", "λ=0"]
    found = points([2.0, 5.0, 3.0, 5.0], [0.1, 1.1, 2.1, 3.1], x_low=[1.0] * 4, x_high=[6.0] * 4)
    full = ["as printed, λ=1", "as printed, λ=0", "at rest, λ=1", "at rest, λ=0"]
    series = Series("LSTD", "#000000", found, marker="D", joined=False)
    chart = Chart([series], Axis("RMSE"), cases(range(4), labels, full))
    assert [row[0] for row in Cells(charts.table(chart, "t")).rows[1:]] == full
    data = charts.data(chart)
    (one,) = data["series"]
    assert data["along"] == "y"
    assert [point[1:] for point in one["points"]] == [
        [case, f"{x} [1, 6]"] for case, x in zip(full, (2, 5, 3, 5), strict=True)
    ]
    places = [point[0] for point in one["points"]]
    assert_allclose(places, [charts.above(chart, i) for i in range(4)], atol=0.05)


def test_what_stands_for_zero_is_called_zero() -> None:
    x = Axis("", log=True, ticks=[(1e-9, "0"), (1e-6, "10⁻⁶"), (1e-2, "0.01")])
    line = curve([1e-9, 1e-6, 1e-2], RUNS[:1], "one", "#0072B2", marks=[Mark("x", 1e-9, 4.0)])
    chart = Chart([line], x, Axis(""))
    table = charts.table(chart, "t")
    assert [row[0] for row in Cells(table).rows[1:]] == ["0", "1e-06", "0.01"]
    assert "× of one: 0, 4" in table
    assert charts.data(chart)["series"][0]["points"][0][1:] == ["0", "4"]


def test_no_line_is_under_the_band_of_another() -> None:
    lines = [curve([1, 2], RUNS[:, :2], *look, size=6.0) for look in (("one", "#0072B2"), ("two", "#000000"))]
    svg = charts.svg(Chart(lines, Axis(""), Axis("")), "n", "t", Palette())
    assert svg.count('class="band"') == svg.count('class="line"') == 2
    assert svg.rindex('class="band"') < svg.index('class="line"')
    assert "a6.2 6.2 0 1 0" in svg, "markers are twice as large"


def test_the_table_has_the_numbers() -> None:
    lines = [curve([10, 20, 5000], RUNS[:n], label, "#0072B2") for n, label in ((1, "one"), (2, "two"))]
    rows = Cells(charts.table(Chart(lines, Axis("samples"), Axis("")), "t")).rows
    assert rows[0] == ["samples", "one", "two"]
    assert rows[1] == ["10", "4", "5 [4, 6]"]
    assert rows[3] == ["5,000", "1", "1.25 [1, 1.5]"]


def test_categories_are_words_in_table_and_margin() -> None:
    line = Series("one", "#0072B2", points([3.0, 4.0], [-0.1, 0.9]), marker="o", joined=False)
    chart = Chart([line], Axis(""), cases([0.0, 1.0], ["a long category", "another"]))
    assert charts.left(chart) > charts.LEFT
    assert charts.above(chart, 0.0) < charts.above(chart, 1.0)
    assert Cells(charts.table(chart, "t")).rows[1:] == [["a long category", "3"], ["another", "4"]]


def test_a_panels_numbers_are_those_of_its_results() -> None:
    made, results = panel("A.4"), Results(sources(), "paper")
    chart = made.chart(results)
    for lambda_, series in zip((0.0, 0.9), chart.series, strict=True):
        counted = made.counted(results, lambda_)  # type: ignore[attr-defined]
        assert_allclose([point.y for point in series.points], counted.mean(axis=0))
    rows = Cells(charts.table(chart, "t")).rows
    assert rows[1][1].startswith(charts.number(chart.series[0].points[0].y))


@pytest.mark.long
@pytest.mark.parametrize("name", PANELS)
def test_every_panel_can_be_shown(name: str) -> None:
    check(panel(name).chart(Results(sources(), "quick")))


def check(chart: Chart) -> None:
    """A chart has lines with names and places, and a legend that covers them."""
    assert chart.series
    assert chart.x.ticks
    assert chart.y.ticks
    assert {i for key in chart.keys for i in key.series} == set(range(len(chart.series)))
    for one in chart.series:
        assert one.points
        assert one.name
        assert all(np.isfinite([point.x, point.y]).all() for point in one.points)
        assert any(0.0 <= chart.x.at(point.x) <= 1.0 for point in one.points)
    svg = charts.svg(chart, "n", "t", Palette())
    assert "nan" not in svg
    assert "inf" not in svg


@pytest.mark.parametrize("colour", [*COLOURS.values(), *SEQUENCE, GREY, LIGHT_GREY])
def test_lines_stand_out_in_light_and_dark(colour: str) -> None:
    assert contrast(visible(colour, LIGHT), LIGHT) >= CONTRAST
    assert contrast(on_dark(colour), DARK) >= CONTRAST
