"""What a panel draws is what the page shows, in the drawing and in numbers."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tlstd_lab import drawing
from tlstd_lab.panel import Results
from tlstd_lab.questions import PANELS, panel
from tlstd_lab.report import charts
from tlstd_lab.report.charts import Chart, Point
from tlstd_lab.report.colours import CONTRAST, DARK, LIGHT, Palette, contrast, on_dark, visible
from tlstd_lab.report.page import draw
from tlstd_lab.report.sources import Shown
from tlstd_lab.statistics import mean_band

from tests.lab.report.pages import sources
from tlstd.figures import new_figure

RUNS = np.array([[4.0, 2.0, 1.0], [6.0, 3.0, 1.5], [5.0, 2.0, np.inf]])


def axes() -> Any:
    return new_figure(3.4, 2.7).add_subplot()


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


def test_lines_and_bands_are_read_back() -> None:
    drawn = axes()
    drawing.curve(drawn, [10, 20, 50], RUNS, "one", color="#0072B2", ls="--", marker="s")
    drawing.curve(drawn, [10, 20, 50], RUNS[:1], "two", color="#000000", marker="", mfc="white")
    drawing.logarithmic(drawn, "xy")
    drawn.set_xlabel("rank")
    chart = charts.read(drawn)
    one, two = chart.series
    middle, low, high = mean_band(RUNS)
    assert [point.x for point in one.points] == [10, 20]  # a diverged point is left out
    found = np.array([[p.y, p.low, p.high] for p in one.points], dtype=np.float64)
    assert_allclose(found, np.column_stack([middle, low, high])[:2])
    assert two.points == [Point(10.0, 4.0), Point(20.0, 2.0), Point(50.0, 1.0)]
    assert (one.name, one.colour, one.marker, one.dash, two.dash) == ("one", "#0072b2", "s", (3.7, 1.6), ())
    assert two.marker == ""
    assert (chart.x.label, chart.x.scale, chart.y.scale) == ("rank", "log", "log")
    assert (50.0, "50") in chart.x.ticks


def test_the_drawing_has_the_points_where_they_belong() -> None:
    drawn = axes()
    drawing.curve(drawn, [10, 20, 50], RUNS[:2], "one", color="#0072B2")
    drawing.logarithmic(drawn, "x")
    chart = charts.read(drawn)
    svg = charts.svg(chart, "n", "title", Palette())
    (path,) = re.findall(r'<path class="line" d="M([^"]+)"', svg)
    xy = np.array([[float(number) for number in pair.split()] for pair in path.split("L")])
    share = (xy[:, 0] - charts.LEFT) / (charts.WIDTH - charts.LEFT - charts.RIGHT)
    assert_allclose(chart.x.low * (chart.x.high / chart.x.low) ** share, [10, 20, 50], rtol=2e-3)
    share = (charts.HEIGHT - charts.BOTTOM - xy[:, 1]) / (charts.HEIGHT - charts.TOP - charts.BOTTOM)
    assert_allclose(chart.y.low + share * (chart.y.high - chart.y.low), [5.0, 2.5, 1.25], atol=0.01)
    assert svg.count('class="dot"') == 3
    assert svg.count('class="band"') == 1


def test_rules_marks_bars_and_text_are_read_back() -> None:
    drawn = axes()
    drawing.curve(drawn, [1, 2, 3], RUNS[:1], "line", color="#0072B2")
    drawn.axhline(2.5, color="#0072B2", ls=":")
    drawn.axvline(1.5, color="#555555")
    drawn.scatter([2.0], [3.0], c="white", marker="*", edgecolors="#0072B2")
    drawn.plot(1.0, 4.0, ls="", marker="o", color="#0072B2")
    drawn.errorbar(
        [2.0], [3.0], xerr=[[0.5], [1.0]], yerr=[[1.0], [2.0]], color="#D55E00", marker="<", ls="", label="b"
    )
    drawn.plot([1.0, 2.0], [1.0, 2.0], ls="", marker="D", color="#009E73", label="c")
    drawn.hlines([1.0, 2.0], [0.5, 1.5], [1.5, 2.75], color="#009E73")
    drawn.text(0.5, 0.25, "words", ha="center", transform=drawn.transAxes)
    chart = charts.read(drawn)
    line, b, c = chart.series
    assert [(rule.axis, rule.value, rule.series) for rule in chart.rules] == [("y", 2.5, 0), ("x", 1.5, None)]
    assert [(mark.marker, mark.x, mark.y, mark.hollow) for mark in line.marks] == [
        ("*", 2.0, 3.0, True),
        ("o", 1.0, 4.0, False),
    ]
    assert (b.name, b.marker, b.points) == ("b", "<", [Point(2.0, 3.0, 2.0, 5.0, 1.5, 3.0)])
    assert [(p.x, p.x_low, p.x_high) for p in c.points] == [(1.0, 0.5, 1.5), (2.0, 1.5, 2.75)]
    assert [(n.words, round(n.across, 6), round(n.up, 6), n.anchor) for n in chart.notes] == [
        ("words", 0.5, 0.25, "middle")
    ]
    svg = charts.svg(chart, "n", "t", Palette())
    assert svg.count('class="whisker"') == 4
    assert "★ of line: 2, 3" in charts.table(chart, "t")


def test_the_legend_toggles_lines_of_a_label_and_of_dashes() -> None:
    drawn = axes()
    for dashes, hidden in (("-", ""), ("--", "_")):
        for label in ("TD", "LSTD"):
            drawing.curve(drawn, [1, 2, 3], RUNS[:1], hidden + label, color="#0072B2", ls=dashes)
        drawn.plot([], [], color="#555555", ls=dashes, label=f"rate {dashes}")
    chart = charts.read(drawn)
    assert [(key.label, key.series) for key in chart.keys] == [
        ("TD", (0, 2)),
        ("LSTD", (1, 3)),
        ("rate -", (0, 1)),
        ("rate --", (2, 3)),
    ]
    assert [one.name for one in chart.series] == ["TD, rate -", "LSTD, rate -", "TD, rate --", "LSTD, rate --"]


def test_cases_are_told_apart_and_read_one_by_one() -> None:
    drawn = axes()
    labels = ["as printed, λ=1", "λ=0", "at rest, λ=1", "λ=0"]
    drawn.plot([2.0, 5.0, 3.0, 5.0], [0.1, 1.1, 2.1, 3.1], ls="", marker="D", color="#000000", label="LSTD")
    drawn.hlines([0.1, 1.1, 2.1, 3.1], [1.0] * 4, [6.0] * 4, color="#000000")
    drawn.set_yticks(range(4), labels=labels)
    drawn.invert_yaxis()
    drawn.set_xlabel("RMSE")
    chart = charts.read(drawn)
    assert [words for _, words in chart.y.ticks] == labels
    full = ["as printed, λ=1", "as printed, λ=0", "at rest, λ=1", "at rest, λ=0"]
    assert [row[0] for row in Cells(charts.table(chart, "t")).rows[1:]] == full
    data = charts.data(chart)
    (one,) = data["series"]
    assert data["along"] == "y"
    assert [point[1:] for point in one["points"]] == [
        [case, f"{x} [1, 6]"] for case, x in zip(full, (2, 5, 3, 5), strict=True)
    ]
    places = [point[0] for point in one["points"]]
    assert_allclose(places, [chart.above(i) for i in range(4)], atol=0.05)


def test_what_stands_for_zero_is_called_zero() -> None:
    drawn = axes()
    drawing.curve(drawn, [1e-9, 1e-6, 1e-2], RUNS[:1], "one", color="#0072B2")
    drawn.scatter([1e-9], [4.0], c="#0072B2", marker="x")
    drawing.logarithmic(drawn, "x")
    drawn.set_xticks([1e-9, 1e-6, 1e-2], ["0", "10⁻⁶", "0.01"])
    chart = charts.read(drawn)
    table = charts.table(chart, "t")
    assert [row[0] for row in Cells(table).rows[1:]] == ["0", "1e-06", "0.01"]
    assert "× of one: 0, 4" in table
    assert charts.data(chart)["series"][0]["points"][0][1:] == ["0", "4"]


def test_no_line_is_under_the_band_of_another() -> None:
    drawn = axes()
    for label, colour in (("one", "#0072B2"), ("two", "#000000")):
        drawing.curve(drawn, [1, 2], RUNS[:, :2], label, color=colour, markersize=6)
    svg = charts.svg(charts.read(drawn), "n", "t", Palette())
    assert svg.count('class="band"') == svg.count('class="line"') == 2
    assert svg.rindex('class="band"') < svg.index('class="line"')
    assert "a6.2 6.2 0 1 0" in svg, "markers are twice as large"


def test_the_table_has_the_numbers() -> None:
    drawn = axes()
    drawing.curve(drawn, [10, 20, 5000], RUNS[:1], "one", color="#0072B2")
    drawing.curve(drawn, [10, 20, 5000], RUNS[:2], "two", color="#0072B2")
    drawn.set_xlabel("samples")
    rows = Cells(charts.table(charts.read(drawn), "t")).rows
    assert rows[0] == ["samples", "one", "two"]
    assert rows[1] == ["10", "4", "5 [4, 6]"]
    assert rows[3] == ["5,000", "1", "1.25 [1, 1.5]"]


def test_categories_are_words_in_table_and_margin() -> None:
    drawn = axes()
    drawn.plot([3.0, 4.0], [-0.1, 0.9], ls="", marker="o", color="#0072B2", label="one")
    drawn.set_yticks([0.0, 1.0], labels=["a long category", "another"])
    drawn.invert_yaxis()
    chart = charts.read(drawn)
    assert chart.left > charts.LEFT
    assert chart.above(0.0) < chart.above(1.0)
    assert Cells(charts.table(chart, "t")).rows[1:] == [["a long category", "3"], ["another", "4"]]


def test_a_panels_numbers_are_those_of_its_results() -> None:
    made = panel("A.4")
    results = Results(sources(), "paper")
    chart = draw(Shown(made, results, [], made.runs(results), []))
    for lambda_, series in zip((0.0, 0.9), chart.series, strict=True):
        counted = made.counted(results, lambda_)  # type: ignore[attr-defined]
        assert_allclose([point.y for point in series.points], counted.mean(axis=0))
    rows = Cells(charts.table(chart, "t")).rows
    assert rows[1][1].startswith(charts.number(chart.series[0].points[0].y))


@pytest.mark.long
@pytest.mark.parametrize("name", PANELS)
def test_every_panel_can_be_shown(name: str) -> None:
    made, results = panel(name), Results(sources(), "quick")
    chart = draw(Shown(made, results, [], made.runs(results), []))
    check(chart)


def check(chart: Chart) -> None:
    """A chart has lines with names and places, and a legend that covers them."""
    assert chart.series
    assert chart.x.ticks
    assert chart.y.ticks
    covered = {i for key in chart.keys for i in key.series}
    for i, one in enumerate(chart.series):
        assert one.points
        assert one.name or i not in covered
        assert all(np.isfinite([point.x, point.y]).all() for point in one.points)
        assert any(0.0 <= chart.x.at(point.x) <= 1.0 for point in one.points)
    svg = charts.svg(chart, "n", "t", Palette())
    assert "nan" not in svg
    assert "inf" not in svg


@pytest.mark.parametrize("colour", [*drawing.COLOURS.values(), *drawing.SEQUENCE, "#999999", "#555555"])
def test_lines_stand_out_in_light_and_dark(colour: str) -> None:
    assert contrast(visible(colour, LIGHT), LIGHT) >= CONTRAST
    assert contrast(on_dark(colour), DARK) >= CONTRAST
