"""The campaign: every row finds what is broken on purpose, and the engine shares its time, goes on and repeats."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest
from tlstd_lab.campaign import engine, registry, summary
from tlstd_lab.campaign.engine import Campaign
from tlstd_lab.campaign.row import Row
from tlstd_lab.campaign.rows import checkpoints, kills, log_files, logs, orthogonality, page, terminal, workers, writes
from tlstd_lab.campaign.rows import files as file_rows
from tlstd_lab.campaign.store import Folder
from tlstd_lab.executors import InProcess, Outcome
from typer.testing import CliRunner

from tests.estimators.plain import Plain, State
from tests.faults import children
from tests.page.conftest import chrome
from tlstd.cli.app import app
from tlstd.cluster.checkpoint import Checkpoint
from tlstd.core import file_format
from tlstd.data.transitions import Transition
from tlstd.errors import InvalidParameterError
from tlstd.estimators.registry import ESTIMATORS
from tlstd.truncated.tlstd import TLSTD

__all__ = ["chrome"]


class Forgetful(Plain):
    """Uses a number from its file as an index, and forgets what it has learned when it is cut off."""

    def learn(self, steps: list[Transition]) -> None:
        if self.n_updates > 10_000:
            raise IndexError(self.n_updates)
        state, self.state = self.state, Plain(self.n_features).state
        for t in steps:
            state = self.after(state, t)
        self.state = state


class Dozing(Forgetful):
    """Takes its time meanwhile."""

    def after(self, state: State, t: Transition) -> State:
        time.sleep(1e-3)
        return super().after(state, t)


class Hasty(Plain):
    """Changes before it has looked at everything, step by step."""

    def learn(self, steps: list[Transition]) -> None:
        for t in steps:
            self.state = self.state._replace(n=self.state.n + 1)
            self.state = self.after(self.state._replace(n=self.state.n - 1), t)


class Unlocked(Hasty):
    """Lets others read meanwhile."""

    def after(self, state: State, t: Transition) -> State:
        time.sleep(1e-4)
        return super().after(state, t)


class Careless(Plain):
    """Removes its old file before it writes the new one, and keeps what it was given."""

    def __init__(self, n_features: int, *, n_targets: int = 1) -> None:
        super().__init__(n_features, n_targets=n_targets)
        self.kept: list[int] = []

    def learn(self, steps: list[Transition]) -> None:
        super().learn(steps)
        self.kept += range(len(steps))

    def save(self, path: str | os.PathLike[str]) -> None:
        if os.path.exists(path):
            os.unlink(path)
        super().save(path)


class Reckless(Plain):
    """Does not look whether all could be written."""

    def save(self, path: str | os.PathLike[str]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            super().save(f"{folder}/model")
            data = Path(f"{folder}/model").read_bytes()
        with suppress(OSError):
            Path(f"{path}.new").write_bytes(data)
        os.replace(f"{path}.new", path)


def tried(row: Row, subject: str, folder: Path, tries: int, first: int = 0) -> list[children.Outcome]:
    task = row.task(subject, 0, folder)
    numbers = range(first, first + tries)
    if row.alone:
        return [children.attempt(task, number) for number in numbers]
    return children.run(task, numbers, seconds=row.seconds, megabytes=row.megabytes)


@pytest.mark.parametrize(
    ("name", "tries", "broken", "message"),
    [
        ("interrupts", 6, Dozing, "n_updates is 0"),
        ("exceptions", 12, Forgetful, "n_updates is 0"),
        ("crafted", 40, Forgetful, "IndexError"),
        ("inputs", 25, Hasty, "a refused input changed"),
        ("reads", 2, Unlocked, "is that of no whole update"),
        ("kills", 12, Careless, "FileNotFoundError"),
        ("writes", 12, Careless, "the file is another one"),
        ("full-disk", 2, Reckless, "StateError"),
        ("damaged", 40, None, ""),
    ],
)
def test_a_sound_and_a_broken_estimator(
    name: str, tries: int, broken: type[Plain] | None, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for label, factory in {"plain": Plain, "broken": broken}.items():
        monkeypatch.setitem(ESTIMATORS, label, factory)
    outcomes = tried(registry.row(name), "plain", tmp_path, tries)
    assert [outcome for outcome in outcomes if outcome.failed] == []
    if any("not tried" in outcome.words for outcome in outcomes):
        pytest.skip("this process may not mount a file system")
    writes._files.cache_clear()
    if broken is not None:
        outcomes = tried(registry.row(name), "broken", tmp_path, tries)
        assert any(message in outcome.words for outcome in outcomes if outcome.failed), outcomes


def test_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ESTIMATORS, "broken", Careless)
    row = registry.row("memory")
    assert [tried(row, "TD", tmp_path, 1, number)[0].words for number in (0, 1)] == ["flat", "flat"]
    model = Careless(12)  # which is not in its file what it is in memory
    monkeypatch.setattr("tlstd_lab.campaign.rows.memory.STEPS", 2_000)
    monkeypatch.setattr("tlstd_lab.campaign.rows.memory.loaded", lambda path, cls: model)
    assert "it holds" in tried_here(row, "broken", tmp_path, [0, 1, 2])[-1].words


def tried_here(row: Row, subject: str, folder: Path, numbers: list[int]) -> list[children.Outcome]:
    task = row.task(subject, 0, folder)
    return [children.attempt(task, number) for number in numbers]


def test_orthogonality(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orthogonality, "STEPS", 1_000)
    monkeypatch.setattr(orthogonality, "EVERY", 500)
    subject = "Hilbert, forgetting"
    assert [outcome.failed for outcome in tried(orthogonality.NASTY, subject, tmp_path, 2)] == [False, False]
    monkeypatch.setattr(TLSTD, "orthogonality_error", lambda self: 1e-11)
    (outcome,) = tried(orthogonality.NASTY, subject, tmp_path, 1)
    assert "1.0e-11 from orthonormal after 500 steps" in outcome.words


def test_damaged_files_that_are_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_rows, "user", lambda kind: lambda data: "used")
    outcomes = tried(file_rows.DAMAGED, "TD", tmp_path, 3)
    assert any("it is accepted" in outcome.words for outcome in outcomes)


def test_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process: the children of one that has used polars hang."""
    assert [outcome for outcome in tried_here(logs.ROW, "whole", tmp_path, list(range(60))) if outcome.failed] == []
    assert [
        outcome for outcome in tried_here(logs.ROW, "in chunks", tmp_path, list(range(60, 90))) if outcome.failed
    ] == []
    answer = logs.answer
    monkeypatch.setattr(logs, "answer", lambda *given: (answer(*given)[0], set()))
    task = logs.ROW.task("whole", 0, tmp_path)
    found = (children.attempt(task, number).words for number in range(60))  # until there is one
    assert any("the answer is different, where it may be" in words for words in found)


@pytest.mark.parametrize("subject", log_files.SUBJECTS)
def test_files_of_logs(subject: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for row in (log_files.NAMES, log_files.UNITS_ROW):
        outcomes = tried_here(row, subject, tmp_path, list(range(12)))
        assert [outcome.words for outcome in outcomes if outcome.failed] == []
    monkeypatch.setattr(log_files, "_found", lambda source, subject: (np.zeros(0), len(source)))  # counts names
    outcomes = tried_here(log_files.NAMES, subject, tmp_path, list(range(3)))
    assert all("steps where there are" in outcome.words for outcome in outcomes)


@pytest.mark.parametrize("subject", checkpoints.SUBJECTS)
def test_checkpoints(subject: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = tried_here(checkpoints.ROW, subject, tmp_path, list(range(12)))
    assert [outcome.words for outcome in outcomes if outcome.failed] == []
    monkeypatch.setattr("tlstd.cluster.checkpoint._key", lambda name, question, arguments: name)
    monkeypatch.setattr(Checkpoint, "_compare", lambda self, kept, unknown: None)
    outcomes = tried_here(checkpoints.ROW, subject, tmp_path, list(range(12)))
    assert any("the answer of another question" in outcome.words for outcome in outcomes)


@pytest.mark.parametrize("subject", ["inspect", "predict", "options"])
def test_terminal(subject: str, tmp_path: Path) -> None:
    assert [outcome for outcome in tried_here(terminal.ROW, subject, tmp_path, list(range(6))) if outcome.failed] == []


def test_terminal_finds_raw_escapes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_format, "printable", lambda text: text)
    with pytest.raises(AssertionError, match="standard error has"):
        terminal.check(["inspect", "one", "\u202ered"], as_json=False)


def test_page(chrome: Any, tmp_path: Path) -> None:
    path, name = tmp_path / "page.html", "<b>\u202e.csv"
    whole = "<style></style><title>{}</title><p id=answer>{}</p>"
    path.write_text(whole.format("&lt;b&gt;\\u202e.csv", ""))
    page.look(chrome, path, [name])
    for bad, message in {
        "<script>window.ran=1</script>": "ran: 1",
        "<p onclick='window.ran=1'>": "handlers: ",
        "<style>#answer{display:none}</style>": "there are 2 styles",
        "<a href=https://example.invalid>": "away: ",
        "": "is not on the page",
    }.items():
        path.write_text(whole.format("&lt;b&gt;\\u202e.csv" if bad else "", bad))
        with pytest.raises(AssertionError, match=message):
            page.look(chrome, path, [name])


class Losing(InProcess):
    """Loses the last run."""

    def run(self, specs: Any, store: Any) -> Any:
        yield from super().run(specs[:-1], store)


class GivingUp(InProcess):
    """Says that it could not."""

    def run(self, specs: Any, store: Any) -> Any:
        yield from (Outcome(spec.key, error="its worker died") for spec in specs)


def test_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "LASTS", 0.0)
    for executor, message in ((InProcess(), "0 killed"), (Losing(), "a run was lost"), (GivingUp(), "given up")):
        assert message in children.attempt(workers._Runs(executor, list, 0), 0).words


def test_a_worker_is_killed_when_it_is_long_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    now: list[float] = [0.0]
    killed: list[int] = []
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    monkeypatch.setattr("os.kill", lambda process, _: killed.append(process))
    killer = workers.Killer(lambda: [7], chance=0.0)
    killer.begin("0")
    for now[0] in (1.0, 5.5, 6.0, 12.0, 18.0, 24.0):
        killer()
    assert killed == [7] * workers.KILLS  # at 5.5 and at 12
    assert killer.counted() == "2 killed, at most 12 s apart"
    assert killer.counted() == "0 killed, at most 0 s apart"


def test_a_model_that_is_saved_otherwise_than_it_was_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found where a file goes no further because its bytes were seen before."""
    saver, path = kills.Saver(Plain), str(tmp_path / "model")
    saver.go(saver.begin(path), path)
    final = Path(path).read_bytes()
    saver.learn(final)
    assert len(saver.known) == 7
    saver.begin(path)
    assert saver.verify(path, final, short=True) == saver.first
    assert Path(path).read_bytes() == saver.before  # and no further
    assert saver.verify(path, final) == saver.first
    assert Path(path).read_bytes() == final
    saver.begin(path)
    monkeypatch.setattr(Plain, "save", lambda self, path: Path(path).write_bytes(b"other"))
    with pytest.raises(AssertionError, match="it has other bits"):
        saver.verify(path, final, short=True)


def test_a_file_is_on_the_disk_before_it_has_its_name(tmp_path: Path) -> None:
    """What a loss of power would need is not tried, but the order of calls is what it has to be."""
    model, calls = Plain(12), writes.Faults()
    with calls.there():
        model.save(tmp_path / "model")
    assert calls.names[:2] == ["open", "write"]
    assert calls.names[-6:] == ["flush", "fsync", "close", "replace", "open", "fsync"]  # then the folder
    assert "write" not in calls.names[-6:]


def test_writes_of_everything_else(tmp_path: Path) -> None:
    for subject in ("Horde", "rounds of a cluster"):
        outcomes = tried(writes.CALLS, subject, tmp_path, 10)
        assert [outcome for outcome in outcomes if outcome.failed] == []


# --- the engine -------------------------------------------------------------------------------------------------------


class Pretended:
    """A process that makes ten tries a second, of which number 7 of TD fails."""

    orders: ClassVar[list[dict[str, Any]]] = []

    def __init__(self, checked: bool) -> None:
        self.alive = True

    def batches(self, order: dict[str, Any]) -> Iterator[dict[str, Any]]:
        self.orders.append(order)
        first, end = order["first"], order["first"] + max(1, int(10 * order["seconds"]))
        for number in range(first, min(order["limit"], end)):
            failed = number == 7 and order["subject"] == "TD"
            failures = [{"number": 7, "words": "it breaks", "files": {}}] if failed else []
            yield {"tries": 1, "seconds": 0.1, "tally": {"fine": 1 - failed}, "failures": failures, "ended": False}

    def kill(self) -> None:
        self.alive = False


@pytest.fixture
def pretended(monkeypatch: pytest.MonkeyPatch) -> type[Pretended]:
    monkeypatch.setattr(engine, "Process", Pretended)
    monkeypatch.setattr(Pretended, "orders", [])
    return Pretended


def test_time_is_shared_and_the_same_command_goes_on(tmp_path: Path, pretended: type[Pretended]) -> None:
    rows = {"interrupts": ["TD", "LSTD"], "kills": ["TD"], "page": ["evaluation"]}
    state = Campaign(rows, Folder(tmp_path, 0), 30.0).run()
    assert state.spent() == pytest.approx(30.0, abs=1.0)
    for name in rows:
        assert state.spent(name) == pytest.approx(10.0, abs=1.0)
    assert state.of("interrupts", "TD").tries == pytest.approx(50, abs=5)
    assert len(state.failures) == 2
    with (tmp_path / "progress.jsonl").open("a") as file:
        file.write('{"row": "cut o')
    pretended.orders.clear()
    again = Campaign(rows, Folder(tmp_path, 0), 60.0).run()
    assert pretended.orders[0]["first"] > 40  # not from the beginning
    assert again.spent() == pytest.approx(60.0, abs=2.0)
    assert again.of("kills", "TD").tries == pytest.approx(200, abs=10)
    pretended.orders.clear()
    Campaign(rows, Folder(tmp_path, 0), 60.0).run()
    assert pretended.orders == []  # the time is over
    other = Campaign(rows, Folder(tmp_path, 1), 60.0)
    assert other.n_others > 0
    assert other.state.spent() == 0.0


def test_what_is_reached_early_leaves_time_to_others(tmp_path: Path, pretended: type[Pretended]) -> None:
    rows = {"full-disk": ["TD"], "kills": ["TD"]}
    state = Campaign(rows, Folder(tmp_path, 0), 60.0, jobs=2).run()
    assert state.of("full-disk", "TD").tries == 100
    assert state.of("kills", "TD").tries == pytest.approx(500, abs=30)
    found = summary.plain(state, 0)["rows"]
    assert (found[0]["reached"], found[0]["target"], found[0]["failures"]) == (100, 100, 1)
    assert Campaign(rows, Folder(tmp_path / "2", 0), 60.0, at_most=3).run().of("kills", "TD").tries == 3


def test_what_is_left_goes_to_all_that_need_it(tmp_path: Path, pretended: type[Pretended]) -> None:
    rows = {"kills": ["TD"], "full-disk": ["TD"], "interrupts": ["TD"]}
    state = Campaign(rows, Folder(tmp_path, 0), 90.0).run()
    assert state.of("full-disk", "TD").tries == 100
    assert state.spent("kills") == pytest.approx(40.0, abs=3.0)
    assert state.spent("interrupts") == pytest.approx(40.0, abs=3.0)
    assert [order["limit"] for order in pretended.orders[:3]] == [0, 0, 0]  # compiling


def test_one_campaign_at_a_time(tmp_path: Path, pretended: type[Pretended]) -> None:
    folder = Folder(tmp_path, 0)
    campaign = Campaign({"kills": ["TD"]}, Folder(tmp_path, 0), 1.0)
    with folder.locked(), pytest.raises(InvalidParameterError, match=r"another campaign is at work in .* with --out"):
        campaign.run()
    assert campaign.run().spent() > 0.0


def test_command(tmp_path: Path) -> None:
    """A table; what fails is a file that repeats it; the exit code is 1."""
    arguments = ["campaign", "--estimator", "TD", "--unchecked", "--out", str(tmp_path), "--only", "damaged"]
    result = CliRunner().invoke(app, [*arguments, "--hours", "0.01", "--at-most", "20", "--json"])
    assert result.exit_code == 0, result.output
    (row,) = json.loads(result.stdout)["rows"]
    assert (row["row"], row["target"], row["reached"], row["failures"]) == ("damaged", 20, 20, 0)
    failure = {"row": "damaged", "subject": "TD", "seed": 0, "number": 3, "words": "it was accepted"}
    (tmp_path / "failures" / "x.json").write_text(json.dumps(failure))
    result = CliRunner().invoke(app, ["campaign", "--unchecked", "--replay", str(tmp_path / "failures" / "x.json")])
    assert result.exit_code == 0
    assert "damaged, TD, number 3: does not fail any more; it was: it was accepted" in result.output
    line = (tmp_path / "progress.jsonl").read_text().splitlines()[-1]
    failed = json.loads(line) | {"tries": 0, "failures": ["x.json"]}
    with (tmp_path / "progress.jsonl").open("a") as file:
        file.write(json.dumps(failed) + "\n")
    result = CliRunner().invoke(app, [*arguments, "--hours", "0.01", "--at-most", "20"])
    assert result.exit_code == 1
    assert "a damaged file is refused" in result.output
    assert "1 failures" in result.output


def test_a_process_that_dies_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")
    state = Campaign({"damaged": ["TD"]}, Folder(tmp_path, 0), 5.0).run()
    (path,) = state.failures
    assert "the process ended with code 1" in json.loads(path.read_text())["words"]


def test_mistakes_are_named(tmp_path: Path) -> None:
    for words, message in (
        (["--estimator", "TDD"], "there is no estimator 'TDD': choose from LSTD,"),
        (["--only", "TD"], "there is no promise 'TD': choose from orthogonality,"),
        (["--replay", str(tmp_path / "x")], "is no failure of a campaign"),
        (["--out", str(tmp_path / "file")], "--out"),
    ):
        (tmp_path / "file").write_text("")
        result = CliRunner().invoke(app, ["campaign", *words])
        assert result.exit_code == 1
        assert message in result.output
    with pytest.raises(InvalidParameterError):
        registry.chosen(["nothing"], [])


def test_every_row_is_listed() -> None:
    result = CliRunner().invoke(app, ["campaign", "--list"])
    assert [line.split()[0] for line in result.output.splitlines()] == list(registry.PLACES)
    assert registry.chosen([], ["TD"]).keys() > {"kills", "reads", "memory", "writes"}
    assert np.isfinite([registry.row(name).tries() for name in registry.PLACES]).all()
    assert isinstance(logs.sound(True), pl.DataFrame)


def test_without_a_clone_it_is_a_sentence(tmp_path: Path) -> None:
    """The laboratory somewhere else, without the tests beside it."""
    lab = Path(registry.__file__).parents[1]
    shutil.copytree(lab, tmp_path / "lab" / "tlstd_lab", ignore=shutil.ignore_patterns("__pycache__"))
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "lab")}
    command = [sys.executable, "-m", "tlstd", "campaign", "--list"]
    result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert result.stderr == f"tlstd campaign needs a clone of the repository: {tmp_path} has no folder tests/faults\n"
