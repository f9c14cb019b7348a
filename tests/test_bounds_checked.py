"""Kernel tests, random inputs and crafted files once more, with kernels that check every index.

In a process of its own, because Numba decides when it compiles, with a cache of its own that is kept from run to run.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from tlstd_lab.campaign.processes import bounds_checked

ROOT = Path(__file__).parents[1]
CHECKED = os.environ.get("NUMBA_BOUNDSCHECK") == "1"
QUICK = [  # what compiles within seconds
    "tests/test_bounds_checked.py",
    "tests/data/test_transition_kernels.py",
    "tests/estimators/test_crafted_files.py::test_crafted_files[TD]",
    "tests/estimators/test_fuzz.py::test_random_inputs[TD]",
]
ALL = [
    "tests/test_bounds_checked.py",
    "tests/classic",
    "tests/data",
    "tests/krylov/test_products.py",
    "tests/zoo/test_ilstd_kernels.py",
    "tests/estimators/test_crafted_files.py",
    "tests/estimators/test_fuzz.py",
]


@pytest.mark.skipif(not CHECKED, reason="run by the test below")
def test_indices_are_checked() -> None:
    @numba.njit  # type: ignore[untyped-decorator]
    def read(array: np.ndarray, at: int) -> float:
        return float(array[at])

    assert read(np.ones(3), 2) == 1.0
    with pytest.raises(IndexError):
        read(np.ones(3), 3)


@pytest.mark.skipif(CHECKED, reason="is what runs")
@pytest.mark.parametrize(
    "selection", [pytest.param(QUICK, id="quick"), pytest.param(ALL, id="all", marks=pytest.mark.long)]
)
def test_nothing_is_out_of_bounds(selection: list[str]) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *selection]
    environment = bounds_checked()
    if selection is QUICK and "NUMBA_CACHE_DIR" in environment:  # few passes over the code: it runs for a moment only
        environment |= {"NUMBA_OPT": "1", "NUMBA_CACHE_DIR": environment["NUMBA_CACHE_DIR"] + "-quick"}
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout[-5000:] + result.stderr
