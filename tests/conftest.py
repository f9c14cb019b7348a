"""Settings of the whole test run, and where its time goes (``uv run pytest --cpu``)."""

import atexit
import gc
import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Generator
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from typer import testing
from typer.main import get_command

from tests import types_of_the_code

# One BLAS thread per worker: the problems are small, and two workers share two cores.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

# Workers and the many processes that tests start share bytecode: without it each compiles all that it imports.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Files of tests are in memory where there is room: a disk takes milliseconds for each one that has to be on it.
MEMORY = "/dev/shm"
if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 4 << 30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", MEMORY)

gc.disable()  # until the tests begin: hardly anything that is made before goes away again

FIRST = (
    (
        "test_docs.py::test_site",
        "test_bounds_checked.py::test_nothing_is_out_of_bounds[quick]",
        "lab/report/test_browser.py",
        "lab/test_results.py",
        "lab/test_executors.py",
        "lab/test_runner.py",
        "test_one_line.py",
        "test_extras.py",
    ),
    (
        "test_docs.py::test_tutorial_is_up_to_date[ten_minutes]",
        "test_cli.py::test_demo",
        "test_cli.py::test_bench_prints_a_table",
        "lab/test_reproduce.py::test_smoke",
    ),
)
"""What each of two workers begins with: one with the longest tests, which compile most of the kernels that both need,
the other with tests that need none. So few kernels are compiled twice, and at the end no worker waits for the other."""

LAST = ("test_quality.py::test_types_of_the_code",)
"""What is begun before all tests (:mod:`tests.types_of_the_code`)."""

TYPES = pytest.StashKey[subprocess.Popen[bytes]]()


def all_are_run(config: pytest.Config) -> bool:
    """Whether these are all tests but the long ones."""
    option = config.option
    chosen = option.keyword or option.collectonly or option.markexpr != "not long"
    return config.args == config.getini("testpaths") and not chosen


def pytest_configure(config: pytest.Config) -> None:
    """Let workers end at once when all is said and done: to take apart what they have imported takes seconds."""
    if hasattr(config, "workerinput"):
        atexit.register(os._exit, 0)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Begin what takes longest before the workers are started."""
    if "PYTEST_XDIST_WORKER" not in os.environ and all_are_run(session.config):
        folder = tempfile.TemporaryDirectory()
        session.config.add_cleanup(folder.cleanup)
        session.config.stash[TYPES] = types_of_the_code.begin(folder.name)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if TYPES in session.config.stash:  # it has ended, unless the tests were broken off
        session.config.stash[TYPES].terminate()
        session.config.stash[TYPES].wait()


def pytest_collection(session: pytest.Session) -> None:
    """One of two workers imports all test modules from the last to the first, and so finds what the other compiled."""
    config = session.config
    if os.environ.get("PYTEST_XDIST_WORKER") == "gw1" and all_are_run(config):
        for path in sorted(Path(__file__).parent.rglob("test_*.py"), reverse=True):
            with suppress(Exception):  # said when it is collected
                import_module(".".join(path.relative_to(config.rootpath).with_suffix("").parts))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put what comes first where two workers begin: at the start, and in the middle of those that are not left out."""
    first, second, last = (
        [item for name in names for item in items if name in item.nodeid] for names in (*FIRST, LAST)
    )
    placed = {*first, *second, *last}
    rest = [item for item in items if item not in placed]
    middle = max(0, len(items) // 2 - len(first))
    items[:] = [*first, *rest[:middle], *second, *rest[middle:], *last]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Nothing of what is there now goes away: the garbage collector need not look at it again and again.

    And to look at what is new every 700 objects takes a tenth of the time that kernels take to compile; long tests
    leave gigabytes meanwhile. The command line is put together once, as for its users, not by each of 300 tests.
    """
    vars(testing)["_get_command"] = cache(get_command)
    gc.freeze()
    if all_are_run(session.config):
        gc.set_threshold(200_000, 20, 100)
    gc.enable()


# --- where the time goes, in processor seconds: a busy machine matters less to them than to the clock -----------------

BEGIN = pytest.StashKey[float]()
spent: defaultdict[str, float] = defaultdict(float)
"""Processor seconds by folder or file of the tests, in the process that gets the reports."""


def seconds() -> float:
    """Processor time of this process and of the children that it has waited for."""
    return sum(os.times()[:4])


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cpu", action="store_true", help="say at the end how many processor seconds the tests took")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, None, None]:
    item.stash[BEGIN] = seconds()
    yield


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    yield
    item.user_properties.append(("cpu", seconds() - item.stash[BEGIN]))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    for name, value in report.user_properties if report.when == "teardown" else []:
        if name == "cpu" and isinstance(value, float):
            path = report.nodeid.partition("::")[0]
            spent[path if path.count("/") == 1 else path.rpartition("/")[0]] += value


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.getoption("--cpu"):
        terminalreporter.section(f"processor seconds: {sum(spent.values()):.0f} in tests, {seconds():.0f} in all")
        for path, value in sorted(spent.items(), key=lambda item: -item[1])[:30]:
            terminalreporter.line(f"{value:7.1f}  {path}")
