"""``tlstd reproduce --scale smoke``, in parts: every panel is run and drawn, every claim decided."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from numpy.testing import assert_array_equal
from tlstd_lab import drawing, problems, reproduce, statistics
from tlstd_lab.executors import LocalProcesses
from tlstd_lab.panel import Results
from tlstd_lab.questions import PANELS, names, panel
from tlstd_lab.questions.figure_2.curves import candidates
from tlstd_lab.questions.figure_3.settings import SIZES
from tlstd_lab.spec import RunSpec
from tlstd_lab.store import Store
from typer.testing import CliRunner

from tlstd.cli.app import app
from tlstd.domains.mountain_car import MountainCar
from tlstd.features import RBF

PARTS = (
    ["1", "2", "B.3", "B.5", "B.6"],  # the last three have the runs of 2a, 1a and 1b
    ["B.1", "B.2", "B.4"],
    ["3", "B.7"],
    ["A"],
    [name for name in PANELS if len(name) > 3],
)


def test_the_parts_are_the_whole() -> None:
    assert sorted(name for part in PARTS for name in names(part)) == sorted(PANELS)


QUICK = (["1a", "2b", "B.1"], ["3", "B.7"])
"""Every task of the paper's panels but that of A, which is run below. Other panels are the same tasks with other
settings, on problems that take longer; ``test_results.py`` draws and judges all of them from stored runs."""


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes time and is not looked at."""
    monkeypatch.setattr(statistics, "RESAMPLES", 100)
    monkeypatch.setitem(drawing.STYLE, "pdf.fonttype", 3)  # without fonts cut to size, the slow part of a PDF


@pytest.fixture
def small(part: list[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Less of everything in the quick parts.

    A quarter of Mountain Car's RBFs, still more than twice the largest rank: with all of them the decompositions of
    LSTD take half of the time. And on the energy domain fewer samples than at the scale ``smoke``.
    """
    caches = (problems.problem, problems.stream, candidates)
    if part in QUICK:
        car = problems.problem("car-rbf")
        features = RBF(car.domain.low, car.domain.high, grid=16, width=0.12)
        X = features.encode_many(MountainCar().grid())
        fewer = car._replace(features=features, X=X, square_length=float((X**2).sum(axis=1).mean()))
        monkeypatch.setitem(problems.PROBLEMS, "car-rbf", lambda: fewer)
        seconds = {rate: time / 2.0 for rate, time in SIZES["smoke"].seconds.items()}
        less = SIZES["smoke"]._replace(samples=(75, 150, 225, 300), n_ilstd=225, short=100, seconds=seconds)
        monkeypatch.setitem(SIZES, "smoke", less)
        for function in caches:
            function.cache_clear()
    yield
    for function in caches:
        function.cache_clear()


@pytest.mark.parametrize(
    "part", [*QUICK, *(pytest.param(part, marks=pytest.mark.long) for part in PARTS)], ids="-".join
)
@pytest.mark.usefixtures("small", "quick")
def test_smoke(part: list[str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = ["reproduce", *part, "--scale", "smoke", "--out", str(out), "--workers", "0", "--claims"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    wanted = names(part)
    assert sorted(path.stem for path in out.glob("*.png")) == sorted(f"figure_{name}" for name in wanted)
    assert all(path.stat().st_size > 5000 for path in out.glob("figure_*"))
    written = json.loads((out / "claims.json").read_text(encoding="utf-8"))
    expected = [claim.name for name in wanted for claim in panel(name).claims()]
    assert [claim["name"] for claim in written["claims"]] == expected
    assert all(name in result.output for name in expected)


@pytest.mark.usefixtures("quick")
def test_few_runs_judge_no_claim(tmp_path: Path) -> None:
    """One run has no spread: neither the terminal nor the files nor the page say that a claim holds or does not."""
    out, packed, page = tmp_path / "out", tmp_path / "packed.parquet", tmp_path / "page.html"
    command = ["reproduce", "A.3", "--scale", "smoke", "--out", str(out), "--workers", "0", "--claims"]
    result = CliRunner().invoke(app, [*command, "--pack", str(packed)])
    assert result.exit_code == 0, result.output
    assert "2 claims of the paper: 0 reproduced, 0 partly, 0 not, 2 not judged (fewer than 3 runs)" in result.output
    said = "not judged: 1 run, at least 3 needed"
    written = json.loads((out / "claims.json").read_text(encoding="utf-8"))
    assert [claim["verdict"] for claim in written["claims"]] == [said, said]
    assert (out / "claims.md").read_text(encoding="utf-8").count(f"| {said} |") == 2
    result = CliRunner().invoke(app, ["report", str(packed), "--out", str(page)])
    assert result.exit_code == 0, result.output
    assert page.read_text(encoding="utf-8").count(said) == 2


@pytest.mark.usefixtures("quick")
def test_redrawn_from_packed_runs(tmp_path: Path) -> None:
    """Nothing is computed, and everything comes out the same."""
    packed = tmp_path / "packed.parquet"
    command = ["reproduce", "A.3", "--scale", "smoke", "--workers", "0", "--out"]
    for out, more in (("one", ["--pack", str(packed)]), ("two", ["--bundle", str(packed)])):
        result = CliRunner().invoke(app, [*command, str(tmp_path / out), *more])
        assert result.exit_code == 0, result.output
    assert not list((tmp_path / "two" / "runs").glob("*.parquet"))
    one, two = (json.loads((tmp_path / out / "claims.json").read_text(encoding="utf-8")) for out in ("one", "two"))
    assert one == two


def test_a_second_command_adds_to_the_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an earlier one of the same scale has decided stays, as long as its runs are stored."""
    results = Results(Store(tmp_path / "runs"), "smoke")
    assert reproduce.beside(["A.4"], results, tmp_path) == (["A.4"], "")
    reproduce.write_claims(["A.3"], [], "smoke", tmp_path / "claims.json")
    lost = "; A.3 of before left the pages, because the runs are not in this store"
    assert reproduce.beside(["A.4"], results, tmp_path) == (["A.4"], lost)
    monkeypatch.setattr(Store, "has", lambda self, key: True)
    assert reproduce.beside(["A.4"], results, tmp_path) == (["A.3", "A.4"], "; the pages also have A.3 of before")
    assert reproduce.beside(["A.3"], results, tmp_path) == (["A.3"], "")
    larger = Results(results.store, "quick")
    assert reproduce.beside(["A.4"], larger, tmp_path) == (["A.4"], "; the pages of scale smoke were replaced")
    (tmp_path / "claims.json").write_text("[")
    assert reproduce.beside(["A.4"], results, tmp_path) == (["A.4"], "")


@pytest.mark.long
def test_one_or_two_workers_give_the_same_numbers(tmp_path: Path) -> None:
    one, _ = reproduce.run(["1a"], "smoke", Store(tmp_path / "one"))
    two, report = reproduce.run(["1a"], "smoke", Store(tmp_path / "two"), LocalProcesses(2))
    assert report.n_new > 0
    for spec in all_runs(one):
        for name, column in one[spec].columns.items():
            assert_array_equal(column, two[spec].columns[name])


def all_runs(results: Results) -> list[RunSpec]:
    return panel("1a").runs(results)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["Z9"], "there is no figure 'Z9': `tlstd reproduce --list` names them all"),
        (["1a", "--scale", "huge"], "scale is 'huge': choose one of smoke, quick, paper"),
        (["1a", "--bundle", "no-such-file"], "no-such-file"),
    ],
)
def test_mistakes(arguments: list[str], message: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["reproduce", *arguments, "--out", str(tmp_path)])
    assert result.exit_code == 1
    assert message in result.output
    assert "Traceback" not in result.output


def test_list() -> None:
    result = CliRunner().invoke(app, ["reproduce", "--list"])
    assert result.exit_code == 0
    assert [line.split()[0] for line in result.output.splitlines()] == list(PANELS)
