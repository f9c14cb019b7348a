"""What the benchmark writes."""

import json
import math
from pathlib import Path

import pytest
from rich.console import Console
from tlstd_lab.bench import figures
from tlstd_lab.bench.registry import ROWS
from tlstd_lab.bench.report import check_names, machine, run, table, write

from tlstd.errors import InvalidParameterError

NAMES = ["tlstd-tiles", "growth-active", "growth-buffer", "trade-off-car"]


@pytest.fixture(scope="module")
def report() -> dict[str, object]:
    return run(NAMES, quick=True)


def test_json_is_complete(report: dict[str, object], tmp_path: Path) -> None:
    found = json.loads(write(report, tmp_path).read_text())
    assert found["command"] == f"uv run tlstd bench {' '.join(NAMES)} --quick"
    assert list(found["rows"]) == NAMES
    for row in found["rows"].values():
        assert set(row) == {
            "title",
            "lines",
            "data",
            "timed_cpu_seconds",
            "set_up_cpu_seconds",
            "wall_seconds",
        }
        for line in row["lines"]:
            assert {"what", "against", "unit", "median", "low", "high", "values", "target", "reached"} <= set(line)
    reference, hurried = found["rows"]["tlstd-tiles"]["lines"]
    for line in (reference, hurried):
        assert [len(times["cpu"]) for times in line["times"]] == [found["repeats"]] * 2
    assert reference["times"][0] == hurried["times"][0]  # all three in turns


def test_what_diverged_is_null_in_json(tmp_path: Path) -> None:
    assert json.loads(write({"rows": {"a": (math.nan, 1.0)}}, tmp_path).read_text()) == {"rows": {"a": [None, 1.0]}}


def test_machine_facts_name_no_host_and_no_path() -> None:
    facts = machine()
    assert {"cpus", "python", "numpy", "scipy", "numba", "blas"} <= set(facts)
    assert facts["cpus"] >= 1
    text = json.dumps(facts)
    assert "/" not in text
    assert "\\" not in text


def test_table_has_every_line_and_the_command(report: dict[str, object]) -> None:
    console = Console(width=200, record=True, file=None, quiet=False)
    with console.capture() as captured:
        console.print(table(report))
    text = captured.get()
    for name in NAMES:
        assert name in text
    assert "uv run tlstd bench" in text
    assert "≥ 4×" in text
    assert "not counted" in text


def test_figures_are_drawn_from_the_json(report: dict[str, object], tmp_path: Path) -> None:
    found = json.loads(write(report, tmp_path).read_text())
    paths = figures.draw(found, tmp_path)
    assert [path.name for path in paths] == ["bench.png", "bench_growth.png", "bench_trade_off.png"]
    for path in paths:
        assert path.read_bytes().startswith(b"\x89PNG")


def test_rows_are_run_in_the_order_of_the_table() -> None:
    assert check_names([]) == list(ROWS)
    assert check_names(["td", "tlstd-rbf"]) == ["tlstd-rbf", "td"]
    with pytest.raises(InvalidParameterError, match="--list"):
        check_names(["td", "no-such-row"])
