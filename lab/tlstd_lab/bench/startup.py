"""Rows of what a new process waits for: imports, and compiling."""

from __future__ import annotations

import os
import subprocess
import sys
from statistics import median
from tempfile import TemporaryDirectory

from tlstd_lab.bench.row import Bench, Line, Target, cost, duration
from tlstd_lab.bench.timing import Times

HEAVY = ("numba", "matplotlib", "gymnasium")
"""Modules that ``import tlstd`` leaves alone."""

_IMPORT = """
import sys, time
begin, cpu = time.perf_counter(), time.process_time()
{statement}
print(time.process_time() - cpu, time.perf_counter() - begin, *(name for name in {heavy} if name in sys.modules))
"""

_FIRST_UPDATE = """
import time
import numpy as np
from tlstd import {estimator}, SparseVector, Transition
x = SparseVector([1, 5], [1.0, 1.0], 10)
begin, cpu = time.perf_counter(), time.process_time()
model = {estimator}(10, {parameters}, lambda_=0.9)
for _ in range(3):
    model.update(Transition(x, 1.0, x, discount=0.9, trace_discount=0.9))
model.predict(x)
print(time.process_time() - cpu, time.perf_counter() - begin)
"""


def imports(bench: Bench) -> list[Line]:
    """``import tlstd`` against ``import scipy.sparse``, in new processes."""
    statements = {
        "import tlstd": "import tlstd",
        "import scipy.sparse": "import scipy.sparse",
        "from tlstd import TLSTD": "from tlstd import TLSTD",
    }
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in statements}
    loaded: dict[str, list[str]] = {}
    for repeat in range(bench.size(8, 2) + 1):
        for name, statement in statements.items():
            cpu, wall, *heavy = _python(_IMPORT.format(statement=statement, heavy=HEAVY)).split()
            loaded[name] = heavy
            if repeat:  # the first one fills the file system's cache
                times[name].append((float(cpu), float(wall)))
    ours, theirs, first_name = (
        Times(name, 1, tuple(c for c, _ in seconds), tuple(w for _, w in seconds)) for name, seconds in times.items()
    )
    bench.data = {"loaded": loaded}
    count = Line(
        f"import tlstd, of {', '.join(HEAVY)}",
        "",
        (float(len(loaded["import tlstd"])),),
        Target("<=", 0.0),
        unit="modules",
    )
    return [cost(ours, theirs, 1.5), count, cost(first_name, theirs)]


def compiling(bench: Bench) -> list[Line]:
    """The first updates of a process that has to compile, against one that finds the compiled code in the cache."""
    estimator, parameters = bench.size(("TLSTD", "3"), ("TD", "step_size=0.1"))
    code = _FIRST_UPDATE.format(estimator=estimator, parameters=parameters)
    with TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        runs = [tuple(float(s) for s in _python(code, environment).split()) for _ in range(1 + bench.size(3, 1))]
    compiled, cached = runs[0], runs[1:]
    bench.data = {"compiled": compiled, "cached": cached}
    again = median(cpu for cpu, _ in cached)
    return [
        Line(
            f"first updates of {estimator}, compiled",
            "in the next process, from the cache",
            tuple(compiled[0] / cpu for cpu, _ in cached),
            note=f"{duration(compiled[0])} against {duration(again)}",
        )
    ]


def _python(code: str, environment: dict[str, str] | None = None) -> str:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
