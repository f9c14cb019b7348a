"""Rows of TD, true-online TD and iLSTD."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.linalg.blas import dger

from tlstd.classic.td import TD
from tlstd.classic.true_online_td import TrueOnlineTD
from tlstd.core.arrays import Matrix
from tlstd.data.batch import CSRArrays
from tlstd.data.transitions import Transitions
from tlstd.data.vectors import SparseVector
from tlstd.domains.energy_storage import EnergyStorage
from tlstd.estimators.step_sizes import Decay
from tlstd.features.tile_coding import TileCoder
from tlstd.streams.simulated import record
from tlstd.zoo.ilstd import ILSTD
from tlstd_lab.bench import loops
from tlstd_lab.bench.problems import scattered
from tlstd_lab.bench.row import Bench, Line, Target, cost, duration, speed_up
from tlstd_lab.bench.timing import Side
from tlstd_lab.energy_programme import optimal_policy

FLAT = 1.5
"""Largest over smallest ratio that counts as flat from d = 10³ to 10⁷."""


def td(bench: Bench) -> list[Line]:
    """TD, update_many, 10 active of 10³ to 10⁷ features, against a loop that only touches the same entries."""
    return _against_loop(bench, TD)


def true_online_td(bench: Bench) -> list[Line]:
    """True-online TD, update_many, 10 active of 10³ to 10⁷ features, against the same loop."""
    return _against_loop(bench, TrueOnlineTD)


def _against_loop(bench: Bench, estimator: type[TD] | type[TrueOnlineTD]) -> list[Line]:
    """Features are random over all d, so that the memory that is touched grows with d; all have been seen before."""
    n_steps = bench.size(50_000, 500)
    sizes = [10**i for i in bench.size((3, 4, 5, 6, 7), (3, 5))]
    lines, first = [], []
    for d in sizes:
        stream = scattered(d, n_steps, active=10, seen=d)
        model = estimator(d, step_size=0.01, lambda_=0.9)
        begin = bench.cpu()
        model.update_many(stream)  # gives its features their rows; at the first d it may compile too
        first.append((bench.cpu() - begin) / n_steps)
        learn = partial(model.update_many, stream)
        touch = partial(
            loops.touch,
            csr(stream.X),
            csr(stream.X_next),
            np.array(stream.rewards),
            1e-9,
            0.9,
            np.zeros(d),
            np.zeros(d),
        )
        ours = Side(f"{estimator.__name__}, d={d:,}, update_many", n_steps, partial(_same, learn))
        lines.append(cost(*bench.compare(ours, Side("a bare loop", n_steps, partial(_same, touch))), 1.5))
    medians = [line.median for line in lines]
    bench.data = {
        "d": sizes,
        "ratio": medians,
        "per_step": [line.times[0].per_step for line in lines],
        "per_step_of_the_first_pass": first,
    }
    flatness = (max(medians) / min(medians),)
    flat = Line(f"{estimator.__name__}, largest of these ratios", "the smallest", flatness, Target("<=", FLAT))
    return [*lines, flat]


def _same(action: Callable[[], object]) -> Callable[[], object]:
    """What is to be done needs no preparation."""
    return action


def csr(X: Matrix) -> CSRArrays:
    """The arrays of a sparse matrix, such that kernels compile for one type only."""
    assert not isinstance(X, np.ndarray)
    return np.array(X.indptr, dtype=np.int64), np.array(X.indices, dtype=np.int64), np.array(X.data)


# --- iLSTD ----------------------------------------------------------------------------------------------------------

COORDINATES = 50
LAMBDA = 1.0
STEP_SIZE = Decay(0.001, 1000)
"""Small enough not to diverge within 10⁴ steps: coordinate steps stop at NaN, and would cost nothing."""


def energy_stream(tiles: list[int], tilings: int, n_steps: int) -> Transitions:
    """EnergyStorage under its near-optimal policy."""
    domain = EnergyStorage()
    coder = TileCoder(domain.low, domain.high, tiles=tiles, tilings=tilings, bias=True)
    return record(domain, optimal_policy(domain), coder, n_steps=n_steps, seed=0)


def ilstd(bench: Bench) -> list[Line]:
    """ILSTD, 50 coordinates per step, against itself with A as a full array (d=18,433: 2.7 GB)."""
    tiles, tilings = bench.size(([4, 4, 9, 4], 32), ([2, 2, 3, 2], 4))
    warm, part, few = bench.size((2_000, 200, 2), (100, 50, 10))
    stream = energy_stream(tiles, tilings, warm + 2 * (bench.repeats + 1) * part)
    model = ILSTD(stream.n_features, step_size=STEP_SIZE, lambda_=LAMBDA, coordinates_per_step=COORDINATES)
    full = DenseILSTD(stream.n_features)
    model.update_many(stream[:warm])
    full.learn(stream[:warm])
    name = f"ILSTD, energy-like, d={stream.n_features:,}, update_many"
    ours, theirs = bench.compare(
        _onward(name, model.update_many, stream[warm:], part),
        _onward("full A, compiled, d's columns only", full.learn, stream[warm:], part),
    )
    difference = float(np.abs(model.weights - full.w).max() / np.abs(full.w).max())
    note = f"{model.n_seen:,} seen; weights differ by {difference:.0e}"
    further = stream[model.n_updates :]
    again, literal = bench.compare(
        _onward(name, model.update_many, further, part),
        _onward("full A, BLAS: A += z dᵀ", full.learn_literally, further, few),
    )
    return [speed_up(ours, theirs, 5.0, note=note), speed_up(again, literal, 5.0)]


def _onward(name: str, learn: Callable[[Transitions], None], stream: Transitions, part: int) -> Side:
    """Learn a further ``part`` of the stream in every repeat."""
    starts = iter(range(0, len(stream), part))

    def prepare() -> Callable[[], None]:
        start = next(starts)
        return partial(learn, stream[start : start + part])

    return Side(name, part, prepare)


class DenseILSTD:
    """The same algorithm as :class:`~tlstd.ILSTD`, on full arrays."""

    def __init__(self, n_features: int) -> None:
        self.At = np.zeros((n_features, n_features))
        self.z, self.d, self.w, self.mu = np.zeros((4, n_features))
        self.n_updates = 0

    def learn(self, part: Transitions) -> None:
        """Learn from many transitions, compiled; of A only the columns where d is not zero are touched."""
        alphas = STEP_SIZE.values(self.n_updates + 1, len(part))
        columns = np.array([part.rewards, part.discounts, part.trace_discounts * LAMBDA])
        vectors = self.z, self.d, self.w, self.mu
        loops.ilstd_dense(csr(part.X), csr(part.X_next), columns, alphas, COORDINATES, self.At, *vectors)
        self.n_updates += len(part)

    def learn_literally(self, part: Transitions) -> None:
        """The same with full vectors, by NumPy and BLAS: O(n²) per step."""
        alphas = STEP_SIZE.values(self.n_updates + 1, len(part))
        for t, alpha in zip(part, alphas, strict=True):
            assert isinstance(t.x, SparseVector) and isinstance(t.x_next, SparseVector)
            x, x_next = t.x.toarray(), t.x_next.toarray()
            self.z *= t.trace_discount * LAMBDA
            self.z += x
            d = x - t.discount * x_next
            dger(1.0, self.z, d, a=self.At.T, overwrite_x=0, overwrite_y=0, overwrite_a=1)
            self.mu += (float(t.reward) - d @ self.w) * self.z
            for _ in range(COORDINATES):
                j = int(np.abs(self.mu).argmax())
                change = alpha * self.mu[j]
                self.w[j] += change
                self.mu -= change * self.At[j]
        self.n_updates += len(part)


def ilstd_memory(bench: Bench) -> list[Line]:
    """ILSTD, 50 coordinates per step, 10⁴ steps of the energy-like stream with 40,001 features: peak memory."""
    n_steps = bench.size(10_000, 100)
    code = f"from tlstd_lab.bench.stepping import long_run; long_run({n_steps})"
    output = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    bench.data = json.loads(output)
    note = f"{duration(bench.data['cpu'])} CPU, {bench.data['n_seen']:,} seen; of the whole process"
    name = f"ILSTD, energy-like, d={bench.data['n_features']:,}, {n_steps:,} steps, peak"
    return [Line(name, "", (1e-9 * bench.data["peak_bytes"],), Target("<=", 8.0), unit="GB", note=note)]


def long_run(n_steps: int) -> None:
    """Learn in a process of its own, and print time and peak memory as JSON."""
    import resource
    import time

    stream = energy_stream([5, 5, 10, 5], 32, n_steps)
    model = ILSTD(stream.n_features, step_size=STEP_SIZE, lambda_=LAMBDA, coordinates_per_step=COORDINATES)
    model.update_many(stream[:10])
    begin = time.process_time()
    model.update_many(stream[10:])
    cpu = time.process_time() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    print(json.dumps({"n_features": model.n_features, "n_seen": model.n_seen, "cpu": cpu, "peak_bytes": peak}))
