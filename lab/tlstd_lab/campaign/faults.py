"""The fault injection of the tests, ``tests/faults`` of the clone that this file is in."""

from __future__ import annotations

import sys
from pathlib import Path

from tlstd.errors import StateError

CLONE = Path(__file__).parents[3]

if not (CLONE / "tests" / "faults").is_dir():
    raise StateError(f"tlstd campaign needs a clone of the repository: {CLONE} has no folder tests/faults")
if str(CLONE) not in sys.path:
    sys.path.insert(0, str(CLONE))

from tests.faults import children, files, inputs, reliability  # noqa: E402 - found through the line above
from tests.faults.children import Task, explained  # noqa: E402

__all__ = ["CLONE", "Task", "children", "explained", "files", "inputs", "reliability"]
