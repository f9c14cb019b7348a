"""The command line, as a user meets it."""

import re
from pathlib import Path

from typer.testing import CliRunner

from tlstd.cli import app
from tlstd.experiments import demo

README = (Path(__file__).parents[1] / "README.md").read_text()


def test_demo_makes_the_readmes_table_and_figure(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "new" / "folder")])
    assert result.exit_code == 0, result.output
    for name in demo.METHODS:
        # method, RMSE at 1,000, RMSE at 4,000, CPU time, memory; the README leaves out the time
        (row,) = (line for line in result.output.splitlines() if re.search(rf"│ {name} +│", line))
        cells = [cell.strip() for cell in row.strip("│ ").split("│")]
        assert f"| {' | '.join([*cells[:3], cells[4]])} |" in README
    figure = tmp_path / "new" / "folder" / "mountain_car.png"
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert figure.stat().st_size > 20_000


def test_demo_says_where_it_cannot_write(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")
    result = CliRunner().invoke(app, ["demo", "--out", str(blocker)])
    assert result.exit_code == 1
    assert "--out" in result.output
    assert "Traceback" not in result.output


def test_help_names_the_commands() -> None:
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    assert "demo" in result.output
