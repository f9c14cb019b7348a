"""CPU time of the first step of a model, with and without ``warm_up``, and with and without a cache of compiled code.

uv run python -m tlstd_lab.measurements.first_step          about three minutes: each case is a new process
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

import numpy as np

from tlstd import TD, TLSTD, KrylovLSTD, TileCoder, TransitionBuilder, warm_up
from tlstd.estimators.base import LinearEstimator

FEATURES = TileCoder([0.0, 0.0], [1.0, 1.0], tiles=10, tilings=8)
N_STEPS = 1_000


def made(name: str) -> LinearEstimator:
    d = FEATURES.n_features
    if name == "TD":
        return TD(d, step_size=0.01, lambda_=0.9)
    return (
        KrylovLSTD(d, lambda_=0.9, reads="stream", dimension=8) if name == "KrylovLSTD" else TLSTD(d, 10, lambda_=0.9)
    )


def child(name: str, warm: bool) -> None:
    """One process: the seconds of ``warm_up``, of the first step, and of all further ones together."""
    states = np.random.default_rng(0).random((N_STEPS + 1, 2))
    model, build = made(name), TransitionBuilder(0.9)
    build.reset(FEATURES.encode(states[0]))
    start = time.process_time()
    if warm:
        warm_up(model, FEATURES.encode(states[0]))
    times = [time.process_time() - start]
    for state in states[1:]:
        start = time.process_time()
        x = FEATURES.encode(state)
        model.update(build.step(1.0, x))
        model.predict(x)
        times.append(time.process_time() - start)
    print(times[0], times[1], sum(times[2:]))


def main() -> None:
    if len(sys.argv) > 1:
        child(sys.argv[1], sys.argv[2] == "warm")
        return
    print(f"{'':11} {'cache':6} {'':16} {'warm_up':>9} {'first step':>11} {f'{N_STEPS - 1} further':>12}")
    for name in ("TD", "KrylovLSTD", "TLSTD"):
        for how in ("without", "warm"):
            with tempfile.TemporaryDirectory() as cache:
                for state in ("empty", "full"):
                    command = [sys.executable, "-m", "tlstd_lab.measurements.first_step", name, how]
                    found = subprocess.run(
                        command,
                        env={**os.environ, "NUMBA_CACHE_DIR": cache},
                        capture_output=True,
                        text=True,
                        check=True,
                    )
                    prepared, first, rest = map(float, found.stdout.split())
                    shown = f"{prepared:8.2f}s {1e3 * first:9.1f}ms {1e3 * rest:10.1f}ms"
                    print(
                        f"{name:11} {state:6} {how + ' warm_up' if how == 'without' else 'with warm_up':16} {shown}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
