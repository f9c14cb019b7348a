"""``tlstd evaluate`` and ``tlstd predict``, as a user meets them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner, Result

import tlstd
from tlstd import Log
from tlstd.cli.app import app
from tlstd.cli.asking import kept_rounds, progress
from tlstd.cluster.checkpoint import Checkpoint
from tlstd.evaluation import difference
from tlstd.evaluation.trust.verdict import worst

Capture = pytest.CaptureFixture[str]

POLICY = '''"""A policy."""

import numpy as np


def right(states):
    """Always to the right."""
    return np.ones(len(states), dtype=int)


def wrong(states):
    """Asks for a column that is not there."""
    return states[:, 7]


def moves(states):
    """In the words of the log."""
    return np.where(states >= 0, "right", "left")


nothing = 3
'''


def table(n_episodes: int = 60) -> pl.DataFrame:
    """Five states in a row, the last one pays and ends; who acted goes right half of the time."""
    rng, rows = np.random.default_rng(0), []
    for episode in range(n_episodes):
        state, t = 0, 0
        while state < 5:
            action = int(rng.random() < 0.5)
            after = state + 1 if action else max(0, state - 1)
            rows.append((episode, t, state, action, float(after == 5), after == 5))
            state, t = after, t + 1
    names = ["episode", "step", "obs", "action", "reward", "terminated"]
    return pl.DataFrame(rows, schema=names, orient="row")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    table().write_parquet(tmp_path / "steps.parquet")
    (tmp_path / "my_policy.py").write_text(POLICY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str, **options: str) -> Result:
    return CliRunner().invoke(app, list(arguments), **options)  # type: ignore[arg-type]


def test_one_command(folder: Path) -> None:
    result = run("evaluate", "*.parquet", "--gamma", "0.9", "--level", "0.9", "--compare")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].split()[0] == "estimator"
    assert "90% interval" in lines[0]
    assert [line.split("  ")[0] for line in lines[1:7]] == [
        "mean of returns",
        "KrylovLSTD",
        "LSTD",
        "t-LSTD",
        "TD",
        "fitted trees",
    ]


def test_another_policy_saved_and_asked(folder: Path) -> None:
    asked = ("--gamma", "0.9", "--policy", "my_policy:right", "--json", "--out", "values")
    result = run("evaluate", "steps.parquet", *asked)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["schema"] == 3
    assert found["value"] == pytest.approx(0.9**4, abs=1e-3)
    (folder / "states.csv").write_text("state\n0\n4\n")
    values = run("predict", "values", "states.csv", "--policy", "my_policy:right")
    assert [float(line) for line in values.stdout.split()] == pytest.approx([0.9**4, 1.0], abs=1e-3)
    actions = run("predict", "values", "-", "--json", input="4\n")
    assert json.loads(actions.stdout)[0][1] == pytest.approx(1.0, abs=1e-3)
    inspected = run("inspect", "values")
    assert "KrylovLSTD" in inspected.stdout
    np.save(folder / "states.npy", np.array([[0.0], [4.0]]))
    assert run("predict", "values", "states.npy").exit_code == 0
    pl.DataFrame({"state": [0, 4]}).write_parquet(folder / "states.parquet")
    again = run("predict", "values", "states.parquet", "--policy", "my_policy:right")
    assert again.stdout == values.stdout
    pl.DataFrame({"state": ["a"]}).write_parquet(folder / "states.parquet")
    assert "no numbers" in run("predict", "values", "states.parquet").output


def test_the_page_and_the_model(folder: Path) -> None:
    """A name that ends with .html is the page; both may be asked for at once."""
    result = run("evaluate", "steps.parquet", "--gamma", "0.9", "--out", "page.html", "--out", "values")
    assert result.exit_code == 0, result.output
    assert "Trust: " in result.stdout
    assert "95% interval" in result.stdout
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "steps.parquet" in page
    assert run("predict", "values", "-", input="4\n").exit_code == 0
    assert sorted(os.listdir(folder)) == ["my_policy.py", "page.html", "steps.parquet", "values"]


def test_policy_in_columns_and_dropped_episodes(folder: Path) -> None:
    """``column:NAME`` is the target policy; ``--drop-nan`` and a column left out."""
    frame = table().with_columns(p=pl.lit(0.5), right=pl.col("action").cast(float), left=1.0 - pl.col("action"))
    frame = frame.with_columns(pl.when(pl.col("episode") == 3).then(None).otherwise(pl.col("reward")).alias("reward"))
    frame.write_parquet(folder / "steps.parquet")
    words = ("evaluate", "steps.parquet", "--gamma", "0.9", "--map", "probability=p", "--json")
    refused = run(*words)
    assert (refused.exit_code, "--drop-nan" in refused.output) == (1, True)
    found = json.loads(run(*words, "--drop-nan", "--policy", "column:right").stdout)
    assert found["value"] == pytest.approx(0.9**4, abs=0.2)  # few episodes go right all the time
    assert any("1 episode of 60 dropped" in note for note in found["notes"])
    assert "KrylovLSTD with ratios" in [row["name"] for row in found["estimators"]]
    of_all = (*words[:-3], "--map", "probability=", "--json", "--drop-nan", "--policy", "column:0,1")
    renamed = table().with_columns((1.0 - pl.col("action")).alias("0"), pl.col("action").cast(float).alias("1"))
    renamed.write_parquet(folder / "steps.parquet")
    answer = json.loads(run(*of_all).stdout)
    assert [row["name"] for row in answer["estimators"]] == ["LSTDQ"]


def test_a_policy_against_another(folder: Path) -> None:
    """The difference in JSON, in words and on the page; policies by function, by columns and the logged one."""
    frame = table().with_columns(
        pl.col("action").replace_strict({0: "left", 1: "right"}), p=pl.lit(0.5), pi=pl.lit(0.5)
    )
    frame.write_parquet(folder / "steps.parquet")
    words = ("evaluate", "steps.parquet", "--gamma", "0.9", "--map", "probability=p")
    asked = run(*words, "--policy", "my_policy:moves", "--level", "0.9", "--json", "--against", "logged")
    found = json.loads(asked.stdout)
    log = Log.from_frame("steps.parquet", {"probability": "p"})
    right = tlstd.evaluate(log, gamma=0.9, policy=lambda states: np.ones(len(states), dtype=int))
    acted = tlstd.evaluate(log, gamma=0.9)
    assert found["comparison"]["difference"] == difference(right, acted, level=0.9).to_dict()
    assert (found["value"], found["comparison"]["value"]) == (right.value, acted.value)
    assert found["comparison"]["light"] == acted.trust.light
    assert (found["policy"], found["comparison"]["policy"]) == ("my_policy:moves", "the logged policy")
    assert found["comparison"]["better"] == "my_policy:moves"
    assert found["light"] == worst([found["trust"]["light"], found["comparison"]["light"]])
    shown = run(*words, "--policy", "column:pi", "--against", "my_policy:moves", "--cost", "--out", "page.html").stdout
    assert "column:pi compared with my_policy:moves, which costs " in shown
    assert "By these values column:pi is better: smaller costs." in shown
    assert "The rewards are costs, as told" in shown
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert page.count('href="#compared"') == 2
    assert "the first less the second" in page
    assert "What the policy costs" in page
    assert "By these values column:pi is better" in page
    assert re.search("read as policy</th><td>pi</td>", page)


def test_two_policies_are_answered_together(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The states of the log are encoded once, and its files read once; not where each has columns of its own."""
    import tlstd.cli.evaluate as cli

    table().with_columns(p=pl.lit(0.5)).write_parquet("steps.parquet")
    reads, read = [], cli._read

    def counted(*given: Any) -> Any:
        reads.append(given)
        return read(*given)

    monkeypatch.setattr(cli, "_read", counted)
    words = ("evaluate", "steps.parquet", "--gamma", "0.9", "--json", "--map", "probability=p")
    both = json.loads(run(*words, "--policy", "my_policy:right", "--against", "logged").stdout)
    assert len(reads) == 1
    alone = [json.loads(run(*words, *said).stdout) for said in (("--policy", "my_policy:right"), ())]
    assert (both["value"], both["comparison"]["value"]) == (alone[0]["value"], alone[1]["value"])
    del reads[:]
    assert run(*words, "--policy", "column:action", "--against", "column:p").exit_code == 0
    assert len(reads) == 2


def test_a_csv_is_evaluated_without_compiled_code(folder: Path) -> None:
    """Neither compiler, nor cluster, nor what only terminals need is loaded: that takes longer than the answer."""
    table().write_csv("steps.csv")
    words = "import sys; from tlstd.cli.app import app\n"
    words += "app(['evaluate', 'steps.csv', '--gamma', '0.9'], standalone_mode=False)\n"
    words += "print(*sorted(set(sys.modules) & {'numba', 'llvmlite', 'dask', 'distributed', 'rich', 'tlstd.page'}))"
    done = process("-c", words)
    assert done.returncode == 0, done.stderr
    assert "Trust: " in done.stdout
    assert done.stdout.splitlines()[-1] == ""


def test_all_is_compare(folder: Path) -> None:
    words = ("evaluate", "steps.parquet", "--gamma", "0.9", "--json")
    names = [
        [row["name"] for row in json.loads(run(*words, said).stdout)["estimators"]] for said in ("--all", "--compare")
    ]
    assert names[0] == names[1] == ["mean of returns", "KrylovLSTD", "LSTD", "t-LSTD", "TD", "fitted trees"]


def test_time_limits_and_ends(folder: Path) -> None:
    """What a log with done only, or without flags, does not say."""
    frame = table(20)
    frame.rename({"terminated": "done"}).write_parquet(folder / "done.parquet")
    words = ("--gamma", "0.9", "--json")
    limited = json.loads(run("evaluate", "done.parquet", *words, "--time-limit", "9").stdout)
    assert any("steps or more: cut off by the time limit" in note for note in limited["notes"])
    frame.drop("terminated").write_parquet(folder / "bare.parquet")
    notes = json.loads(run("evaluate", "bare.parquet", *words).stdout)["notes"]
    assert any("taken for cut off" in note for note in notes)
    ended = json.loads(run("evaluate", "bare.parquet", *words, "--ends", "terminated").stdout)
    assert ended["value"] == pytest.approx(json.loads(run("evaluate", "done.parquet", *words).stdout)["value"])


def test_columns_by_name_and_start(folder: Path) -> None:
    table().rename({"obs": "where", "reward": "gain"}).write_csv(folder / "other.csv")
    maps = ("--map", "observation=where", "--map", "reward=gain")
    result = run("evaluate", "other.csv", "--gamma", "0.9", *maps, "--start", "4", "--json")
    assert result.exit_code == 0, result.output
    assert list(json.loads(result.stdout)["estimators"][0]["values"]) == ["given states"]


def test_cluster_by_is_short_for_a_map(folder: Path) -> None:
    table().with_columns(user=pl.col("episode") % 7).write_parquet(folder / "users.parquet")
    words = ("evaluate", "users.parquet", "--gamma", "0.9", "--json")
    found = [json.loads(run(*words, *said).stdout) for said in (("--map", "cluster=user"), ("--cluster-by", "user"))]
    assert found[0]["columns"] == found[1]["columns"]
    assert found[0]["columns"]["cluster"] == ["user"]
    missing = run(*words, "--cluster-by", "person")
    assert missing.exit_code == 1
    assert "no column 'person' for the cluster" in missing.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.parquet", "--gamma", "0.9"], "missing.parquet"),
        (["steps.parquet", "--gamma", "1.5"], "Invalid value"),
        (["steps.parquet"], "Missing option"),
        (["steps.parquet", "--gamma", "0.9", "--policy", "my_policy"], "MODULE:FUNCTION"),
        (["steps.parquet", "--gamma", "0.9", "--policy", "no_such:right"], "cannot be imported"),
        (["steps.parquet", "--gamma", "0.9", "--policy", "my_policy:nothing"], "there is no function"),
        (["steps.parquet", "--gamma", "0.9", "--policy", "column:pi"], "no column 'pi' for the policy"),
        (["steps.parquet", "--gamma", "0.9", "--policy", "my_policy:wrong"], "IndexError: too many indices for array"),
        (["steps.parquet", "--gamma", "0.9", "--policy", "my_policy:moves"], "the policy returned ['right']"),
        (["steps.parquet", "--gamma", "0.9", "--against", "my_policy"], "--against 'my_policy' is not MODULE"),
        (["steps.parquet", "--gamma", "0.9", "--estimate", "--workers", "2"], "leave out --workers"),
        (["steps.parquet", "--gamma", "0.9", "--storage-option", "secret"], "is not NAME=VALUE"),
        (["steps.parquet", "--gamma", "0.9", "--cluster", "nowhere"], "no Dask scheduler answers at 'nowhere'"),
        (["steps.parquet", "--gamma", "0.9", "--map", "reward"], "WHAT=COLUMN"),
        (["steps.parquet", "--gamma", "0.9", "--start", "here"], "--start"),
        (["steps.parquet", "--gamma", "0.9", "--features", "stripes"], "features is 'stripes'"),
        (["steps.parquet", "--gamma", "0.9", "--preset", "mine"], "preset"),
        (["steps.parquet", "--gamma", "0.9", "--out", "."], "folder"),
    ],
)
def test_mistakes_are_a_sentence(folder: Path, arguments: list[str], message: str) -> None:
    result = run("evaluate", *arguments)
    assert result.exit_code in (1, 2)
    assert message in result.output
    assert "Traceback" not in result.output
    assert isinstance(result.exception, SystemExit)


@pytest.mark.parametrize("address", ["tcp://me:secret@[::1", "me:secret@[::1", "tcp://me:se/cret@x?token=secret"])
def test_credentials_in_the_address_of_a_scheduler_are_not_shown(folder: Path, address: str) -> None:
    result = run("evaluate", "steps.parquet", "--gamma", "0.9", "--cluster", address)
    assert result.exit_code == 1
    assert "no Dask scheduler answers at" in result.output
    assert "***@" in result.output
    assert "cret" not in result.output


def test_states_that_cannot_be_used(folder: Path) -> None:
    assert run("evaluate", "steps.parquet", "--gamma", "0.9", "--out", "values").exit_code == 0
    for text, message in (("0\nx\n", "line 2"), ("0\n1,2\n", "2 numbers"), ("\n", "no states"), ("1,2\n", "shape")):
        result = run("predict", "values", "-", input=text)
        assert (result.exit_code, message in result.output) == (1, True), result.output
    assert "cannot be loaded" in run("predict", "steps.parquet", "-", input="0").output
    assert "cannot be used" in run("predict", "missing", "-", input="0").output


def test_interrupted_nothing_is_half_written(folder: Path) -> None:
    """Ctrl-C while it computes, which a policy tells: the old file is there, and no other."""
    assert run("evaluate", "steps.parquet", "--gamma", "0.5", "--out", "values").exit_code == 0
    old = (folder / "values").read_bytes()
    (folder / "my_policy.py").write_text(
        "import time\ndef slow(states):\n    print('computing', flush=True)\n    time.sleep(60)\n"
    )
    words = [sys.executable, "-B", "-m", "tlstd", "evaluate", "steps.parquet", "--gamma", "0.9", "--out", "values"]
    process = subprocess.Popen([*words, "--policy", "my_policy:slow"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"computing\n"
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=50)
    assert (process.returncode, said) == (130, b"stopped\n")
    assert (folder / "values").read_bytes() == old
    assert sorted(os.listdir(folder)) == ["my_policy.py", "steps.parquet", "values"]


def test_lines_about_progress_and_rounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    """Without a terminal a line every ten seconds; of kept rounds one at the start and one at a stop."""
    now = 0.0
    monkeypatch.setattr("tlstd.cli.asking.time.monotonic", lambda: now)
    with progress() as report:
        for now in (1.0, 9.0, 10.5, 15.0, 30.0):
            report(f"at {now:g}", now / 100.0)
    assert capsys.readouterr() == ("", "10 s, 10%: at 10.5\n30 s, 30%: at 30\n")
    folder = tmp_path / "rounds"

    def stop(n: int) -> None:
        with kept_rounds(folder):
            Checkpoint(folder, {}).remember(f"round-{n}", lambda: np.ones(1))
            raise KeyboardInterrupt

    def stopped(n: int) -> str:
        with pytest.raises(KeyboardInterrupt):
            stop(n)
        return capsys.readouterr().err

    assert stopped(1) == f"{folder} keeps 1 round; the same command goes on from there\n"
    assert stopped(2).startswith(f"{folder} keeps 1 round of before.\n{folder} keeps 2 rounds; ")


def test_five_lines_of_python(folder: Path) -> None:
    """What took 42 lines by hand."""
    evaluation = tlstd.evaluate("steps.parquet", gamma=0.9)
    log = Log.from_frame("steps.parquet")
    starts = [float(log.rewards[a:b] @ 0.9 ** np.arange(b - a)) for a, b in pairwise(log.episodes)]
    assert evaluation.value == pytest.approx(np.mean(starts), rel=1e-12)


def test_mistakes_are_noticed_before_the_work(folder: Path) -> None:
    asked = ("evaluate", "steps.parquet", "--gamma", "0.9")
    for more, words in (
        (
            ("--out", "none/page.html"),
            f"there is no folder {folder / 'none'} for page.html: make it or choose another name",
        ),
        (("--on-error", "nix"), "--on-error is 'nix': it must be one of 'stop', 'skip'"),
        (
            ("--on-error", "skip"),
            "--on-error skip is for workers, which read a log file by file: add --workers 1, or leave it out",
        ),
    ):
        result = run(*asked, *more)
        assert (result.exit_code, result.output) == (1, words + "\n")


def test_a_plan_for_programs(folder: Path) -> None:
    asked = ("evaluate", "steps.parquet", "--gamma", "0.9", "--plan", "--workers", "3")
    found = json.loads(run(*asked, "--json").stdout)
    assert (found["schema"], found["n_files"], found["n_workers"]) == (1, 1, 3)
    assert found["worker_bytes"] > found["bytes_per_step"] > 0.0
    assert found["seconds"] > 0.0


def test_what_is_printed_has_no_raw_escapes(folder: Path) -> None:
    """Names of files in JSON, in the plan and in mistakes: control characters and changes of direction."""
    name = "\x9b31m\u202e\x1b]0;x\x07.parquet"
    (folder / "steps.parquet").rename(folder / name)
    for options in (["--json"], ["--plan"], ["--plan", "--json"]):
        found = run("evaluate", name, "--gamma", "0.9", *options)
        assert found.exit_code == 0, found.output
        assert all(c.isprintable() or c == "\n" for c in found.output)
        if "--json" in options:
            answer = json.loads(found.stdout)
            assert name in (answer["file"] if "--plan" in options else answer["source"])
    found = run("inspect", "a", "\u202e\U000e0041")
    assert found.exit_code == 2
    assert r"(\u202e\U000e0041)" in found.output


def test_states_that_cannot_be_read_are_a_sentence(folder: Path) -> None:
    """Arrays that are empty, cut off, of another kind, or none; and a pipe for a log, which would wait for ever."""
    assert run("evaluate", "steps.parquet", "--gamma", "0.9", "--out", "values").exit_code == 0
    np.save(folder / "none.npy", np.ones(0))
    np.save(folder / "whole.npy", np.arange(5))
    whole = (folder / "whole.npy").read_bytes()
    (folder / "empty.npy").write_bytes(b"")
    (folder / "zip.npy").write_bytes(b"PK\x03\x04 and more")
    (folder / "cut.npy").write_bytes(whole[:70])
    (folder / "open.npy").write_bytes(whole.replace(b"(5,)", b"(5, "))
    for name in ("none", "empty", "zip", "cut", "open"):
        found = run("predict", "values", f"{name}.npy")
        assert (found.exit_code, found.stdout) == (1, "")
        assert re.search("cannot be read|pass at least one", found.stderr)
        assert isinstance(found.exception, SystemExit)
    assert len(run("predict", "values", "whole.npy").stdout.splitlines()) == 5
    os.mkfifo(folder / "pipe.npz")
    found = run("evaluate", "pipe.npz", "--gamma", "0.9")
    assert found.exit_code == 1
    assert "pipe.npz is a pipe or a device: copy what it gives into a file" in found.stderr


# --- files that are written -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("out", ["steps.parquet", "./steps.parquet", "link", "hard", "folder/../steps.parquet"])
@pytest.mark.parametrize("log", ["steps.parquet", "*.parquet", "."])
def test_the_log_is_never_replaced(folder: Path, log: str, out: str) -> None:
    """Whatever the names of log and output are, and with ``--force``."""
    (folder / "folder").mkdir()
    (folder / "link").symlink_to("steps.parquet")
    os.link(folder / "steps.parquet", folder / "hard")
    before = (folder / "steps.parquet").read_bytes()
    result = run("evaluate", log, "--gamma", "0.9", "--force", "--out", out)
    assert result.exit_code == 1
    assert "is a file that is read: choose another name" in result.output
    assert (folder / "steps.parquet").read_bytes() == before
    assert (folder / "link").is_symlink()


def test_files_of_others_are_replaced_on_request_only(folder: Path) -> None:
    """Models, pages and empty files are replaced; any other file needs ``--force``, and nothing is written without."""
    asked = ("evaluate", "steps.parquet", "--gamma", "0.9")
    (folder / "empty").touch()
    outs = ("--out", "values", "--out", "page.html", "--out", "empty")
    for _ in range(2):
        assert run(*asked, *outs).exit_code == 0
    (folder / "notes.html").write_text("<!doctype html><p>tlstd is mentioned")
    before = (folder / "my_policy.py").read_bytes()
    for name in ("my_policy.py", "notes.html"):
        result = run(*asked, "--out", "new", "--out", name)
        assert result.exit_code == 1
        assert (
            f"{name} is there, and is no model or page of tlstd: choose another name, or add --force" in result.output
        )
    assert (folder / "my_policy.py").read_bytes() == before
    assert not (folder / "new").exists()
    assert run(*asked, "--out", "notes.html", "--out", "my_policy.py", "--force").exit_code == 0
    assert run("predict", "my_policy.py", "-", input="4\n").exit_code == 0
    same = run(*asked, "--out", "new", "--out", str(folder / "new"))
    assert (same.exit_code, "are one file" in same.output) == (1, True)


def test_files_are_named_when_they_are_written(folder: Path) -> None:
    result = run("evaluate", "steps.parquet", "--gamma", "0.9", "--json", "--out", "values", "--out", "page.html")
    json.loads(result.stdout)
    said = [line for line in result.stderr.splitlines() if line.startswith("written")]
    assert said == [
        f"written: {folder / 'values'} (the values, for tlstd predict)",
        f"written: {folder / 'page.html'} (the page)",
    ]


SMALL = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512))
from tlstd.cli import main
sys.argv = ["tlstd", *sys.argv[1:]]
main()
"""


def process(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=300, check=False, **options)


def test_a_full_disk_takes_the_file_and_not_the_answer(folder: Path) -> None:
    """No file may grow beyond 512 bytes, which a write refuses as a full disk does."""
    asked = ("evaluate", "steps.parquet", "--gamma", "0.9", "--json", "--out", "values", "--out", "page.html")
    done = process("-B", "-c", SMALL, *asked)
    assert done.returncode == 1
    assert json.loads(done.stdout)["value"] > 0.0
    for name in ("values", "page.html"):
        assert f"{folder / name} cannot be used (File too large)" in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(os.listdir(folder)) == ["my_policy.py", "steps.parquet"]


def test_a_reader_that_went_away_does_not_take_the_file(folder: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    asked = ("-m", "tlstd", "evaluate", "steps.parquet", "--gamma", "0.9", "--out", "values")
    done = subprocess.run([sys.executable, *asked], stdout=writing, stderr=subprocess.PIPE, timeout=300, check=False)
    os.close(writing)
    assert done.returncode == 1
    assert b"Traceback" not in done.stderr
    assert run("predict", "values", "-", input="4\n").exit_code == 0


def test_without_a_standard_output_there_is_no_success(folder: Path) -> None:
    words = f"{sys.executable} -m tlstd evaluate steps.parquet --gamma 0.9 >&-"
    done = subprocess.run(["sh", "-c", words], stderr=subprocess.PIPE, text=True, timeout=300, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("standard output is closed")


# --- modules of policies ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def f(:", "SyntaxError: invalid syntax"),
        ("import sys\nsys.exit(0)", "(SystemExit: 0): correct line 2 of "),
        ("x = 1 / 0", "(ZeroDivisionError: division by zero): correct line 1 of "),
        ("class Odd(BaseException):\n    pass\nraise Odd('no')", "(Odd: no): correct line 3 of "),
        ("import sys\ndef f(states):\n    sys.exit(0)", "SystemExit: 0 (line 3 of "),
        ("class Odd(BaseException):\n    pass\ndef f(states):\n    raise Odd('no')", "Odd: no (line 4 of "),
    ],
)
def test_modules_that_fail_are_a_sentence(folder: Path, text: str, words: str) -> None:
    (folder / "broken.py").write_text(text)
    done = process("-B", "-m", "tlstd", "evaluate", "steps.parquet", "--gamma", "0.9", "--policy", "broken:f")
    assert (done.returncode, done.stdout) == (1, "")
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("name", ["..broken:f", ".:f"])
def test_modules_have_whole_names(folder: Path, name: str) -> None:
    result = run("evaluate", "steps.parquet", "--gamma", "0.9", "--policy", name)
    assert (result.exit_code, f"--policy '{name}' is not MODULE:FUNCTION" in result.output) == (1, True)


def test_a_policy_that_closes_the_output_is_a_sentence(folder: Path) -> None:
    (folder / "closing.py").write_text(
        "import sys\nimport numpy as np\ndef f(states):\n    sys.stdout.close()\n    return np.ones(len(states), int)\n"
    )
    done = process("-B", "-m", "tlstd", "evaluate", "steps.parquet", "--gamma", "0.9", "--policy", "closing:f")
    assert done.returncode == 1
    assert done.stderr.startswith("a policy has closed standard output")
    assert len(done.stderr.splitlines()) == 1


def test_modules_may_change_the_folder(folder: Path) -> None:
    """Names of logs and outputs mean what they meant when the command began."""
    (folder / "elsewhere").mkdir()
    lines = ["import os", "import numpy as np", "os.chdir('elsewhere')", "def f(states):"]
    lines += [f"    os.chdir({str(folder / 'elsewhere')!r})", "    return np.ones(len(states), dtype=int)"]
    (folder / "moving.py").write_text("\n".join(lines))
    words = ("evaluate", "steps.parquet", "--gamma", "0.9", "--policy", "moving:f", "--out", "values")
    done = process("-B", "-m", "tlstd", *words)
    assert done.returncode == 0, done.stderr
    assert (folder / "values").is_file()
    assert not os.listdir(folder / "elsewhere")


def test_interrupted_while_it_imports() -> None:
    """Ctrl-C before there is a command is one line, and the exit code of an interruption."""
    words = "import sys, importlib.abc, os, signal\n"
    words += "class Stop(importlib.abc.MetaPathFinder):\n    def find_spec(self, name, path, target=None):\n"
    words += "        if name == 'typer':\n            os.kill(os.getpid(), signal.SIGINT)\n"
    words += "sys.meta_path.insert(0, Stop())\nfrom tlstd.cli import main\nmain()\n"
    done = process("-c", words)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "stopped\n")


@pytest.mark.parametrize("delay", [0.0, 0.4, 1.0])
def test_interrupted_while_workers_start(folder: Path, delay: float) -> None:
    """A terminal sends Ctrl-C to the workers too; none of them says what it was importing."""
    words = [sys.executable, "-B", "-m", "tlstd", "evaluate", "steps.parquet", "--gamma", "0.9", "--workers", "2"]
    started = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, start_new_session=True)
    children = Path(f"/proc/{started.pid}/task/{started.pid}/children")
    while not any(path.read_text() for path in children.parent.parent.glob("*/children")):
        time.sleep(0.01)
    time.sleep(delay)
    os.killpg(started.pid, signal.SIGINT)
    _, said = started.communicate(timeout=120)
    assert (started.returncode, said) == (130, "stopped\n")


# --- options that workers do not have ---------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["--estimate"])
def test_what_one_process_does_is_refused_with_workers(folder: Path, option: str) -> None:
    result = run("evaluate", "steps.parquet", "--gamma", "0.9", "--workers", "1", option)
    assert result.exit_code == 1
    assert f"{option} is for one process" in result.output


@pytest.mark.parametrize("option", ["--checkpoint", "--map", "--start", "--cluster", "--workers", "--out"])
def test_credentials_are_shown_of_no_option(folder: Path, option: str) -> None:
    address = "s3://user:secret@bucket/log.parquet?sig=secret"
    words = ("evaluate", address, "--gamma", "0.9", "--storage-option", "aws_endpoint_url=http://127.0.0.1:9")
    result = run(*words, "--storage-option", "max_retries=0", option, address)
    assert result.exit_code in (1, 2)
    assert "secret" not in result.output


# --- options that are given twice -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--map", "reward=obs", "--map", "reward=reward"], "--map reward=obs and --map reward=reward are for one"),
        (["--map", "policy=p", "--policy", "column:q"], "--map policy= and --policy column:q both name columns"),
        (["--map", "cluster=a", "--cluster-by", "b"], "--map cluster=a and --cluster-by b are for one column"),
        (["--storage-option", "key=abcdef", "--storage-option", "key=fedcba"], "--storage-option key is given twice"),
        (["--gamma", "0.5"], "Invalid value for '--gamma': it is given 2 times: give it once"),
    ],
)
def test_what_is_given_twice_is_refused(folder: Path, options: list[str], words: str) -> None:
    result = run("evaluate", "steps.parquet", "--gamma", "0.9", *options)
    assert result.exit_code in (1, 2)
    assert words in result.output
    assert "abcdef" not in result.output


# --- two policies in columns ------------------------------------------------------------------------------------------


def test_a_policy_in_columns_against_another_in_columns(folder: Path) -> None:
    """Each is read from its own column: always to the right, and to the left nine times of ten."""
    right = pl.col("action").cast(float)
    table().with_columns(p=pl.lit(0.5), right=right, left=0.9 - 0.8 * right).write_parquet(folder / "steps.parquet")
    words = ("evaluate", "steps.parquet", "--gamma", "0.9", "--map", "probability=p", "--json")
    found = json.loads(run(*words, "--policy", "column:right", "--against", "column:left").stdout)
    alone = json.loads(run(*words, "--policy", "column:left").stdout)
    assert (found["policy"], found["comparison"]["policy"]) == ("column:right", "column:left")
    assert found["comparison"]["value"] == alone["value"] != found["value"]
