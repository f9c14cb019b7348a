"""Measured accuracy of t-LSTD: the numbers behind the tolerances of the test suite.

uv run python -m tlstd_lab.measurements.numerics            10⁴ steps per stream, about a minute
uv run python -m tlstd_lab.measurements.numerics --long     10⁵ steps per stream
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys
import tracemalloc
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))  # the test streams are used here too

import numpy as np
import scipy.sparse as sp

from tests.helpers import batch_lstd, dense, random_transitions
from tests.truncated.test_tlstd import gapped_stream, small_cases
from tests.truncated.test_tlstd_numerics import CAR, EPS, STREAMS, TILES, lapack_ratio, model_matrix
from tlstd.classic.lstd import LSTD
from tlstd.data.transitions import Transitions
from tlstd.domains.boyan_chain import boyan_chain
from tlstd.domains.random_walk import random_walk
from tlstd.features.rbf import RBF
from tlstd.streams.simulated import record
from tlstd.truncated.tlstd import TLSTD
from tlstd_lab.reference import ReferenceTLSTD


def full_rank() -> None:
    worst = 0.0
    for case in small_cases():
        steps, model = case.transitions(), case.model()
        model.update_many(steps)
        A, b = batch_lstd(steps, case.lambda_, beta=case.beta)
        if np.linalg.cond(A) < 1e5:
            X = steps.X if isinstance(steps.X, np.ndarray) else steps.X.toarray()
            expected = X @ np.linalg.solve(A, b)
            worst = max(
                worst, float(np.abs(model.predict(X).reshape(expected.shape) - expected).max() / np.abs(expected).max())
            )
    print(f"full rank against batch LSTD, {len(small_cases())} streams: worst relative error {worst:.1e}")


def truncated() -> None:
    for every_step in (False, True):
        worst, count = 0.0, 0
        for sparse in (False, True):
            d, rank = (120, 8) if sparse else (50, 6)
            steps = gapped_stream(3, n_features=d, n_steps=25 * rank, rank=rank, sparse=sparse)
            model = TLSTD(d, rank, lambda_=0.8, buffer_size=rank, rcond=1e-6)
            reference = ReferenceTLSTD(d, rank, lambda_=0.8, rcond=1e-6, mini_batch=not every_step)
            for i, t in enumerate(steps):
                model.update(t)
                columns = {"discount": t.discount, "trace_discount": t.trace_discount}
                reference.update(dense(t.x), float(t.reward), dense(t.x_next), **columns)
                if every_step or (i + 1) % rank == 0:
                    w = reference.weights
                    worst = max(worst, float(np.abs(model.weights - w).max() / max(np.abs(w).max(), 1e-12)))
            count += int(np.isfinite(reference.truncation_gaps).sum())
        print(
            f"truncated against the dense reference, k={'1' if every_step else 'r'}, {count} truncations: {worst:.1e}"
        )


def orthogonality(n_steps: int) -> None:
    for name, (make, rank, lambda_) in STREAMS.items():
        steps = make(n_steps)
        model, worst = TLSTD(steps.n_features, rank, lambda_=lambda_), 0.0
        for start in range(0, n_steps, 1000):
            model.update_many(steps[start : start + 1000])
            worst = max(worst, model.orthogonality_error())
        print(f"orthogonality over {n_steps} steps, {name}: worst of {n_steps // 1000} readings {worst:.1e}")


def eckart_young() -> None:
    """Distance to A over the best possible at rank 50, Mountain Car tiles, λ=0, 10⁴ steps, six seeds."""
    d, rank = TILES.n_features, 50
    ratios: dict[int | None, list[float]] = {50: [], 160: [], None: []}
    for seed in range(6):
        steps = record(CAR, None, TILES, n_steps=10_000, seed=seed)
        exact = LSTD(d, lambda_=0.0)
        exact.update_many(steps)
        ids, A, _ = exact.system()
        full = np.zeros((d, d))
        full[np.ix_(ids, ids)] = A
        best = np.sqrt((np.linalg.svd(A, compute_uv=False)[rank:] ** 2).sum())
        for buffer_size, found in ratios.items():
            model = TLSTD(d, rank, lambda_=0.0, buffer_size=buffer_size)
            model.update_many(steps)
            found.append(float(np.linalg.norm(full - model_matrix(model, d)) / best))
    for buffer_size, found in ratios.items():
        print(
            f"distance to A over the best, tiles, buffer {buffer_size}: {min(found):.3f} to {max(found):.3f}, 6 seeds"
        )


def lapack() -> None:
    rng = np.random.default_rng(5)
    streams = {
        "sparse": random_transitions(rng, n_features=60, n_steps=500, density=0.08, sparse=True),
        "dense": random_transitions(rng, n_features=40, n_steps=400),
    }
    for name, steps in streams.items():
        print(f"‖A - UΣVᵀ‖/(‖A‖nε), {name}: {max(lapack_ratio(steps, 0.9, k) for k in (5, None)):.2f}")
    features = RBF(CAR.low, CAR.high, grid=10, width=0.2)
    steps = record(CAR, None, features, n_steps=1500, seed=3)
    print(f"‖A - UΣVᵀ‖/‖A‖, RBFs: {max(lapack_ratio(steps, 0.5, k) for k in (5, None)) * 100 * EPS:.1e}")


def memory() -> None:
    rng = np.random.default_rng(0)
    d, rank = 2**31, 20
    ids = np.sort(rng.integers(0, d, (2_601, 40)), axis=1)
    X = sp.csr_array((np.ones(ids.size), ids.ravel(), np.arange(0, ids.size + 1, 40)), shape=(ids.shape[0], d))
    steps = Transitions.from_episodes([(X, rng.standard_normal(2_600), False)], gamma=0.9)
    TLSTD(d, rank, lambda_=0.9).update_many(steps[:100])  # compiles
    tracemalloc.start()
    model = TLSTD(d, rank, lambda_=0.9)
    for start in range(0, 2_600, 200):
        model.update_many(steps[start : start + 200])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    factors = 16 * model.n_seen * rank
    print(f"d=2³¹, {model.n_seen} features seen, rank {rank}: peak memory {peak / factors:.2f} × the two factors")


def slope() -> None:
    lengths = np.array([1_000, 4_000, 16_000, 64_000])
    for chain in (boyan_chain(), random_walk(9, gamma=0.95)):
        errors = np.zeros((60, lengths.size))
        for run in range(errors.shape[0]):
            steps = chain.sample(int(lengths[-1]), np.random.default_rng(run))
            model, start = LSTD(chain.n_features, lambda_=0.5), 0
            for i, stop in enumerate(lengths):
                model.update_many(steps[start : int(stop)])
                errors[run, i] = np.sqrt(np.mean((model.predict(chain.X) - chain.values()) ** 2))
                start = int(stop)
        fit = np.polyfit(np.log(lengths), np.log(np.sqrt((errors**2).mean(axis=0))), 1)[0]
        print(f"LSTD's error to the exact values, {chain.name}: slope {fit:.3f} in log T (60 runs)")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--long", action="store_true", help="10⁵ steps per stream")
    n_steps = 100_000 if parser.parse_args().long else 10_000
    print(f"tiles: d={TILES.n_features}")
    full_rank()
    truncated()
    orthogonality(n_steps)
    eckart_young()
    lapack()
    memory()
    slope()


if __name__ == "__main__":
    main()
