"""Settings of the whole test run."""

import os

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
    """Put every second of the longest tests before the first half of all and the others before the second half.

    These are what two workers start with.
    """
    first = [item for name in LONGEST for item in items if item.nodeid.endswith(name)]
    rest = [item for item in items if item not in first]
    middle = len(rest) // 2
    items[:] = [*first[::2], *rest[:middle], *first[1::2], *rest[middle:]]
