"""Settings of the whole test run, and where its time goes (``uv run pytest --cpu``)."""

import os
from collections import defaultdict
from collections.abc import Generator

import pytest

# One BLAS thread per worker: the problems are small, and two workers share two cores.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

LONGEST = (
    "test_quality.py::test_tool_finds_nothing[types]",
    "test_docs.py::test_site",
    "test_bounds_checked.py::test_nothing_is_out_of_bounds[quick]",
    "test_docs.py::test_tutorial_is_up_to_date[ten_minutes]",
)
"""Single tests of many seconds. They come first, so that at the end no worker waits for the other."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest tests where two workers begin: at the start, and in the middle."""
    longest = [item for name in LONGEST for item in items if item.nodeid.endswith(name)]
    rest = [item for item in items if item not in longest]
    middle = len(rest) // 2
    items[:] = [*longest[::2], *rest[:middle], *longest[1::2], *rest[middle:]]


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
