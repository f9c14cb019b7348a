"""The command, with real processes: stopped in any way, it continues; what is stored is not computed again."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from rich.console import Console
from tlstd_lab.executors import LocalProcesses, Outcome
from tlstd_lab.runner import Report, Tally, main, read_specs, run_all, show_progress
from tlstd_lab.spec import RunSpec
from tlstd_lab.store import Store

from tests.lab import toy
from tlstd.errors import InvalidParameterError

ROOT = Path(__file__).parents[2]
MODULE = ["-m", "tlstd_lab.runner"]
INTERRUPTIBLE = [  # also where the tests run in the background, with Ctrl-C ignored
    "-c",
    "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from tlstd_lab.runner import main; sys.exit(main())",
]


def command(folder: Path, *options: str, start: list[str] = MODULE) -> subprocess.Popen[str]:
    """Start the command in a process group of its own, as a terminal does."""
    return subprocess.Popen(
        [sys.executable, *start, str(folder / "specs.json"), "--store", str(folder / "results"), *options],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def write_specs(folder: Path, specs: list[RunSpec]) -> None:
    (folder / "specs.json").write_text(json.dumps([json.loads(spec.to_json()) for spec in specs]))


def alive(process: int) -> bool:
    """Whether a process of another parent still runs; one that nobody has collected yet does not."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{process}/stat")
    try:
        return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("how", ["kill -9", pytest.param("Ctrl-C", marks=pytest.mark.long)])
def test_a_stopped_command_continues(how: str, tmp_path: Path) -> None:
    specs = toy.specs(tmp_path, 8, hold=3, stubborn=sys.platform == "linux")
    write_specs(tmp_path, specs)
    store = Store(tmp_path / "results")

    first = command(tmp_path, "--workers", "2", start=INTERRUPTIBLE if how == "Ctrl-C" else MODULE)
    toy.until(lambda: len(store.keys()) == 3 and len(toy.running(tmp_path)) == 2)
    workers = [process for _, process in toy.running(tmp_path)]
    if how == "Ctrl-C":
        os.killpg(first.pid, signal.SIGINT)
        out, err = first.communicate(timeout=toy.DEADLINE)
        assert first.returncode == 130, err
        assert "stopped: 3 of 8 runs are stored" in out
        assert "the same command continues" in out
        assert "Traceback" not in err
    else:
        first.kill()
        first.communicate(timeout=toy.DEADLINE)
    toy.until(lambda: not any(map(alive, workers)))
    stored = {path: path.stat().st_mtime_ns for path in store.root.glob("*.parquet")}
    assert len(stored) == 3

    (tmp_path / "gate").touch()
    second = command(tmp_path, "--workers", "2")
    out, err = second.communicate(timeout=toy.DEADLINE)
    assert second.returncode == 0, err
    assert "8 of 8 runs are stored" in out
    assert "5 of them new" in out
    assert store.keys() == {spec.key for spec in specs}
    assert set(store.specs().values()) == set(specs)
    assert {path: path.stat().st_mtime_ns for path in stored} == stored
    assert toy.ended(tmp_path) == Counter(range(8))
    assert toy.begun(tmp_path) == Counter([*range(8), 3, 4])  # those that were under way

    assert main([str(tmp_path / "specs.json"), "--store", str(store.root), "--workers", "0"]) == 0
    assert toy.begun(tmp_path) == Counter([*range(8), 3, 4])


@pytest.mark.long
def test_two_commands_at_once_share_a_store(tmp_path: Path) -> None:
    write_specs(tmp_path, toy.specs(tmp_path, 6))
    commands = [command(tmp_path, "--workers", "0") for _ in range(2)]
    for each in commands:
        out, err = each.communicate(timeout=toy.DEADLINE)
        assert each.returncode == 0, err
        assert "6 of 6 runs are stored" in out
    assert len(Store(tmp_path / "results").specs()) == 6
    assert len(list((tmp_path / "results").iterdir())) == 6


@pytest.mark.long
def test_dask_loses_nothing(tmp_path: Path) -> None:
    """On a real cluster: Ctrl-C, the same command again, a worker killed, a run that fails."""
    from distributed import LocalCluster

    specs, store, gate = toy.specs(tmp_path, 6, hold=2, fail=[5]), Store(tmp_path / "results"), tmp_path / "gate"
    write_specs(tmp_path, specs)
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with LocalCluster(**options) as cluster:
        first = command(tmp_path, "--cluster", cluster.scheduler_address, start=INTERRUPTIBLE)
        toy.until(lambda: len(store.keys()) == 2 and len(toy.running(tmp_path)) == 2)
        os.killpg(first.pid, signal.SIGINT)
        out, err = first.communicate(timeout=toy.DEADLINE)
        assert first.returncode == 130, err
        assert "stopped: 2 of 6 runs are stored" in out
        assert "Traceback" not in err
        gate.touch()
        toy.until(lambda: not toy.running(tmp_path))  # the workers end for nothing what they have begun
        gate.unlink()

        second = command(tmp_path, "--cluster", cluster.scheduler_address)
        toy.until(lambda: len(toy.running(tmp_path)) == 2)
        (seed, worker), _ = toy.running(tmp_path)
        before = toy.begun(tmp_path)[seed]
        os.kill(worker, signal.SIGKILL)
        gate.touch()
        out, err = second.communicate(timeout=toy.DEADLINE)
    assert second.returncode == 1, err
    assert "5 of 6 runs are stored" in out
    assert "3 of them new; 1 failed" in out
    assert "ValueError: seed 5 does not like it" in out
    begun = toy.begun(tmp_path)
    assert (begun[0], begun[1], begun[seed]) == (1, 1, before + 1)
    again = Store(tmp_path / "again")
    run_all(specs[:5], again)
    assert toy.contents(store) == toy.contents(again)


def test_timed_runs_come_last_and_alone(tmp_path: Path) -> None:
    timed, untimed = toy.specs(tmp_path, 3, timed=True), toy.specs(tmp_path, 8)[3:]
    report = run_all([*timed, *untimed], Store(tmp_path / "results"), LocalProcesses(2))
    assert report.failures == ()
    assert report.complete
    begun = [seed for seed, _ in toy.lines(tmp_path, "begin")]
    assert begun[-3:] == [0, 1, 2]
    assert len({process for _, process in toy.lines(tmp_path, "begin")[-3:]}) == 1
    log = (tmp_path / "log").read_text().splitlines()
    assert [line.split()[0] for line in log[-6:]] == ["begin", "end"] * 3


def test_duplicates_and_failures(tmp_path: Path) -> None:
    specs = toy.specs(tmp_path, 4, fail=[1])
    store = Store(tmp_path / "results")
    store.write(specs[3], {"weight": [0.0]}, seconds=1)
    report = run_all([*specs, *specs], store)
    assert (report.total, report.n_before, report.n_new, report.exit_code) == (4, 1, 2, 1)
    assert [failure.spec for failure in report.failures] == [specs[1]]
    assert specs[1].to_json() in str(report)
    assert "ValueError: seed 1 does not like it" in str(report)
    assert toy.begun(tmp_path) == Counter([0, 1, 2])
    again = run_all(specs, store)
    assert (again.n_before, again.n_new, len(again.failures)) == (3, 0, 1)
    assert toy.begun(tmp_path) == Counter([0, 1, 2, 1])


def test_a_damaged_run_is_computed_again(tmp_path: Path) -> None:
    specs = toy.specs(tmp_path, 2)
    store = Store(tmp_path / "results")
    run_all(specs, store)
    path = store.root / f"{specs[0].key}.parquet"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.warns(UserWarning, match="is damaged"):
        report = run_all(specs, store)
    assert (report.n_before, report.n_new) == (1, 1)
    assert toy.begun(tmp_path) == Counter([0, 0, 1])


def test_what_a_bundle_has_is_not_run(tmp_path: Path) -> None:
    specs = toy.specs(tmp_path, 3)
    store, bundle = Store(tmp_path / "results"), tmp_path / "bundle.parquet"
    run_all(specs[:2], store)
    store.pack(store.keys(), bundle)
    write_specs(tmp_path, specs)
    options = ["--store", str(tmp_path / "other"), "--bundle", str(bundle), "--workers", "0"]
    assert main([str(tmp_path / "specs.json"), *options]) == 0
    assert toy.begun(tmp_path) == Counter(range(3))
    assert Store(tmp_path / "other").keys() == {specs[2].key}


def test_only_the_first_failures_are_shown(tmp_path: Path) -> None:
    report = run_all(toy.specs(tmp_path, 7, fail=list(range(7))), Store(tmp_path / "results"))
    assert str(report).count("Traceback") == 5
    assert str(report).endswith("... and 2 more")


def test_the_estimate_knows_what_runs_cost() -> None:
    now = 0.0
    specs = [RunSpec("module:slow", {}, seed) for seed in range(4)]
    specs += [RunSpec("module:quick", {"rank": rank}, seed) for rank in (1, 2) for seed in range(4)]
    specs.append(RunSpec("module:slow", {}, 0, timed=True))
    tally = Tally(specs, n_before=3, clock=lambda: now)
    assert tally.seconds_left is None
    now = 12.0  # two at once: 24 seconds of work
    for spec, seconds in ((specs[0], 11.0), (specs[1], 11.0), (specs[4], 1.0), (specs[5], 1.0)):
        tally.add(spec, Outcome(spec.key, seconds))
    # slow 2 x 11 and quick 6 x 1, two at once; the timed one alone, as its task
    assert tally.seconds_left == pytest.approx((2 * 11 + 6 * 1) / 2 + 11)
    assert str(tally) == "7/16 runs, 0.33 per second, 0:00:25 left"
    tally.add(specs[2], Outcome(specs[2].key, error="no"))
    assert "1 failed" in str(tally)


def test_progress_without_a_terminal_is_lines() -> None:
    out = io.StringIO()
    specs = [RunSpec("module:function", {}, seed) for seed in range(100)]
    with show_progress(Console(file=out)) as progress:
        tally = Tally(specs)
        progress(tally)
        for spec in specs:
            tally.add(spec, Outcome(spec.key, seconds=0.0))
            progress(tally)
    lines = out.getvalue().splitlines()
    assert lines[0] == "0/100 runs"
    assert lines[-1].startswith("100/100 runs, ")
    assert len(lines) < 50
    assert "\x1b" not in out.getvalue()


def test_progress_in_a_terminal_is_a_bar() -> None:
    out = io.StringIO()
    with show_progress(Console(file=out, force_terminal=True, width=100)) as progress:
        progress(Tally([RunSpec("module:function")], n_before=2))
    assert "2/3 runs" in out.getvalue()
    assert "━" in out.getvalue()


def test_ctrl_c_in_this_process(tmp_path: Path) -> None:
    def interrupt(tally: Tally) -> None:
        if tally.n_done == 2:
            raise KeyboardInterrupt

    report = run_all(toy.specs(tmp_path, 4), Store(tmp_path / "results"), progress=interrupt)
    assert (report.n_new, report.interrupted, report.exit_code, report.complete) == (2, True, 130, False)
    assert str(report).startswith("stopped: 2 of 4 runs are stored in ")


def test_bad_input_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "specs.json").write_text("{}")
    assert main([str(tmp_path / "specs.json"), "--store", str(tmp_path / "results")]) == 1
    assert "give a JSON list of runs" in capsys.readouterr().err
    (tmp_path / "specs.json").write_text("[")
    with pytest.raises(InvalidParameterError, match="cannot read runs"):
        read_specs(tmp_path / "specs.json")
    with pytest.raises(InvalidParameterError, match="cannot make the folder"):
        run_all([], Store(tmp_path / "specs.json"))
    assert Report(tmp_path, 0, 0, 0).exit_code == 0


def test_importing_it_is_light() -> None:
    heavy = {"distributed", "numba", "polars", "rich", "scipy"}
    code = f"import sys, tlstd_lab.runner; print(sorted({heavy} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.stdout.strip() == "[]", result.stderr
