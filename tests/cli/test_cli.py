"""The command line, as a user meets it."""

import io
import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tlstd_lab.bench.registry import ROWS
from typer.testing import CliRunner

import tlstd
from tlstd import demo
from tlstd.cli import main
from tlstd.cli.app import app

ROOT = Path(__file__).parents[2]


def run_demo(folder: Path) -> dict[str, list[str]]:
    """The cells of the demo's table by method: RMSE, RMSE, CPU time, memory."""
    result = CliRunner().invoke(app, ["demo", "--out", str(folder)])
    assert result.exit_code == 0, result.output
    rows = {}
    for name in demo.METHODS:
        (row,) = (line for line in result.output.splitlines() if re.search(rf"│ {name} +│", line))
        rows[name] = [cell.strip() for cell in row.strip("│ ").split("│")][1:]
    figure = folder / "mountain_car.png"
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert figure.stat().st_size > 20_000
    (answer,) = re.findall(r"logged steps: (-[\d.]+), 95% interval \[(-[\d.]+), (-[\d.]+)\], trust \w+", result.output)
    value, low, high = map(float, answer)
    assert low < value < high < -20.0
    assert tlstd.Log.from_frame(folder / "drives.csv").rewards.size == demo.LOGGED
    return rows


def test_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "GRID", 20)
    monkeypatch.setattr(demo, "CHECKPOINTS", (30, 60, 100, 150))
    monkeypatch.setattr(demo, "LOGGED", 1_000)
    rows = run_demo(tmp_path / "new" / "folder")
    assert all(0.0 < float(row[1]) < 60.0 for row in rows.values())
    assert float(rows["LSTD"][3].split()[0]) > 2.0 * float(rows["t-LSTD, rank 20"][3].split()[0]) > 0.0


@pytest.mark.long
def test_demo_makes_the_table_of_the_docs(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for name, (early, late, _, memory) in run_demo(tmp_path).items():
        assert f"| {name} | {early} | {late} | {memory} |" in page


def test_files_of_others_are_replaced_on_request_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By every command that writes files; those that it has written itself are replaced."""
    monkeypatch.setattr(demo, "GRID", 20)
    monkeypatch.setattr(demo, "CHECKPOINTS", (30, 60, 100, 150))
    monkeypatch.setattr(demo, "LOGGED", 1_000)
    commands = {
        "mountain_car.png": ["demo", "--out", str(tmp_path)],
        "drives.csv": ["demo", "--out", str(tmp_path)],
        "bench.json": ["bench", "td", "--quick", "--out", str(tmp_path)],
        "packed.parquet": ["reproduce", "2a", "--scale", "smoke", "--pack", str(tmp_path / "packed.parquet")],
        "page.html": ["report", str(ROOT / "results" / "quick.parquet"), "--out", str(tmp_path / "page.html")],
    }
    for name, command in commands.items():
        (tmp_path / name).write_text("mine")
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 1
        assert f"{tmp_path / name} is there, and is no " in result.output
        assert (tmp_path / name).read_text() == "mine"
        (tmp_path / name).unlink()
    (tmp_path / "drives.csv").write_text("mine")
    for more in (["--force"], []):
        assert CliRunner().invoke(app, [*commands["drives.csv"], *more]).exit_code == 0


def test_demo_says_where_it_cannot_write(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")
    result = CliRunner().invoke(app, ["demo", "--out", str(blocker)])
    assert result.exit_code == 1
    assert "--out" in result.output
    assert "Traceback" not in result.output


COMMANDS = ("evaluate", "predict", "demo", "bench", "reproduce", "report", "campaign", "inspect")


def test_help_names_the_commands() -> None:
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    for command in COMMANDS:
        assert re.search(rf"^  {command} +[A-Z][^\n]+\.$", result.output, flags=re.MULTILINE)
    assert "..." not in result.output.split("Commands:")[1], "a summary was cut"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command_is_plain_and_fits(command: str) -> None:
    result = CliRunner().invoke(app, [command, "--help"], env={"FORCE_COLOR": "1"})
    assert result.exit_code == 0
    assert result.output.isascii()
    assert "\x1b" not in result.output
    assert max(map(len, result.output.splitlines())) <= 80
    assert "TEXT" not in result.output
    assert "PATH" not in result.output
    examples = [shlex.split(line) for line in result.output.split("Examples:\n")[1].splitlines()]
    assert len(examples) > 1
    for words in examples:  # options that there are
        own = words[words.index("tlstd") :]
        options = [word for word in own[: own.index("|") if "|" in own else None] if word.startswith("--")]
        assert own[1] == command
        assert all(re.search(rf"^  {option}\b", result.output, re.MULTILINE) for option in options)


def test_version() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.output) == (0, f"tlstd {tlstd.__version__}\n")
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert project["version"] == tlstd.__version__
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {tlstd.__version__}\n" in cited


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("tlstd in", ["inspect"]),
        ("tlstd bench tlstd-r", ["tlstd-rbf"]),
        ("tlstd reproduce 2", ["2a", "2b"]),
        ("tlstd reproduce --scale q", ["quick"]),
        ("tlstd campaign --estimator True", ["TrueOnlineTD"]),
    ],
)
def test_shells_complete(words: str, wanted: list[str]) -> None:
    words_before = len(words.split()) - 1
    environment = {"_TLSTD_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words_before)}
    result = CliRunner().invoke(app, [], prog_name="tlstd", env=environment)
    assert result.output.split() == wanted
    assert "--install-completion" in CliRunner().invoke(app, ["--help"]).output


def test_mistakes_are_a_sentence() -> None:
    for arguments in (["nothing"], ["inspect"], ["demo", "--seed", "-1"], ["bench", "--fast"]):
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 2
        assert re.search(r"^Error: [^\n]+\.?$", result.output, flags=re.MULTILINE)
        assert "Traceback" not in result.output


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_are_told_how_to_complete(shell: str) -> None:
    environment = {"_TLSTD_COMPLETE": f"source_{shell}"}
    result = CliRunner().invoke(app, [], prog_name="tlstd", env=environment)
    assert result.exit_code == 0
    assert "_TLSTD_COMPLETE" in result.output
    assert f"complete_{shell}" in result.output


def test_pack_is_refused_before_the_runs(tmp_path: Path) -> None:
    arguments = ["reproduce", "1a", "--out", str(tmp_path / "out"), "--pack", str(tmp_path / "none" / "x.parquet")]
    result = CliRunner().invoke(app, [*arguments, "--workers", "0"])
    assert result.exit_code == 1
    assert result.output == f"there is no folder {tmp_path / 'none'} for x.parquet: make it or choose another name\n"
    assert not (tmp_path / "out").exists()


def test_bench_prints_a_table_and_writes_json_and_figure(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    result = CliRunner().invoke(app, ["bench", "td", "lstd", "--quick", "--out", str(folder)])
    assert result.exit_code == 0, result.output
    assert "NumPy: A += outer(z, d)" in result.output
    assert "uv run tlstd bench td lstd --quick" in result.output
    assert sorted(path.name for path in folder.iterdir()) == ["bench.json", "bench.png"]
    assert list(json.loads((folder / "bench.json").read_text())["rows"]) == ["td", "lstd"]


def test_bench_lists_its_rows() -> None:
    result = CliRunner().invoke(app, ["bench", "--list"])
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert [line.split()[0] for line in lines] == list(ROWS)
    assert all(len(line.split()) > 3 for line in lines)


def test_bench_does_not_know_every_row(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["bench", "tdd", "--out", str(tmp_path / "bench")])
    assert result.exit_code == 1
    assert result.output == "there is no row 'tdd': tlstd bench --list names them all\n"
    assert not (tmp_path / "bench").exists()


def test_bench_says_where_it_cannot_write(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")
    result = CliRunner().invoke(app, ["bench", "td", "--quick", "--out", str(blocker)])
    assert result.exit_code == 1
    assert "--out" in result.output
    assert "Traceback" not in result.output


def test_reproduce_says_where_it_cannot_write_before_it_runs(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")
    arguments = ["reproduce", "1a", "--out", str(blocker), "--store", str(tmp_path / "runs"), "--workers", "0"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1
    assert result.output == f"cannot write to {blocker} (File exists): choose another folder with --out\n"
    assert not (tmp_path / "runs").exists()


def test_output_that_cannot_be_written_is_a_sentence() -> None:
    """On a full disk; a closed pipe is nobody's mistake."""
    command = [sys.executable, "-c", "from tlstd.cli import main; main()", "--version"]
    with open("/dev/full", "w") as full:
        found = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert found.returncode == 1
    assert found.stderr == "the output cannot be written (No space left on device)\n"


def test_output_in_a_code_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it does not have is written by its number: ⁷ in a row's name."""
    output = io.TextIOWrapper(io.BytesIO(), encoding="cp1252")
    monkeypatch.setattr(sys, "stdout", output)
    monkeypatch.setattr(sys, "argv", ["tlstd", "bench", "--list"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    assert b"10\\u2077" in output.detach().getvalue()
