"""Rows of t-LSTD against the BLAS and LAPACK calls that it cannot avoid, with the same shapes and nothing between them.

For each compression, with n features seen, rank r, k samples and a core of p × q:

- forming the core, (p × k)(k × q);
- its r leading singular triplets: the quickest of LAPACK's ways, which is looked for beforehand;
- both factors times r × r matrices: (n × r)(r × r);
- dense features: the residuals of both blocks, S - U (UᵀS), their QR (n × k), and Q's share in the new factors,
  (n × k)(k × r).

Sparse inner products, Gram matrices, pivoting, second projections and repairs are not in it. Read at every step, the
core of r + j vectors is formed and decomposed after sample j of a buffer.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np
import scipy.linalg
from scipy.linalg.lapack import dgesdd

from tlstd.core.arrays import FloatArray
from tlstd_lab.bench import problems
from tlstd_lab.bench.problems import Problem, Warm, warmed, whole
from tlstd_lab.bench.row import Bench, Line, cost
from tlstd_lab.bench.timing import Side

TARGET = 2.0


def energy(bench: Bench) -> list[Line]:
    """t-LSTD on the energy-like stream, update_many, against the bare calls."""
    return [_against_bare(bench, problems.energy(bench.quick), dense=False)]


def tiles(bench: Bench) -> list[Line]:
    """t-LSTD on Mountain Car's tiles, update_many, against the bare calls."""
    return [_against_bare(bench, problems.tiles(bench.quick), dense=False)]


def rbf(bench: Bench) -> list[Line]:
    """t-LSTD on Mountain Car's RBFs, update_many, against the bare calls."""
    return [_against_bare(bench, problems.rbf(bench.quick), dense=True)]


def energy_read(bench: Bench) -> list[Line]:
    """t-LSTD on the energy-like stream, read at every step, against the bare calls."""
    problem = problems.energy(bench.quick)
    warm = warmed(problem, buffer_size=problem.rank)
    r, k, n = problem.rank, warm.buffer, warm.model.n_seen
    part = problem.stream[warm.start : warm.start + bench.size(4, 1) * k]
    ours = problems.stepwise(f"t-LSTD, {problem.name}, update and predict", warm.model, part, read=True)
    cores = [_core(r, r + j, r + j, j) for j in range(1, k + 1)]
    leading = quickest(cores[k // 2][2], r)
    tall = _tall(n, r)

    def calls() -> None:
        for Z, D, K in cores:
            np.matmul(Z, D, out=K)
            leading(K, r)
        tall()

    bench.data = {"n": n, "rank": r, "decomposition": leading.__name__}
    return [cost(*bench.compare(ours, Side("bare calls", k, lambda: calls)), TARGET)]


def _against_bare(bench: Bench, problem: Problem, *, dense: bool) -> Line:
    warm = warmed(problem)
    part = problem.stream[warm.start : warm.start + whole(problem.part, warm.buffer)]
    ours = problems.many(f"t-LSTD, {problem.name}, update_many", warm.model, part)
    p, q = problems.core_shape(warm, problem)
    calls = _compression(bench, problem, warm, p, q, dense=dense)
    buffers = bench.size(3, 1)

    def bare() -> None:
        for _ in range(buffers):
            calls()

    note = f"core {p} × {q}, {bench.data['decomposition']}"
    return cost(*bench.compare(ours, Side("bare calls", buffers * warm.buffer, lambda: bare)), TARGET, note=note)


def _compression(bench: Bench, problem: Problem, warm: Warm, p: int, q: int, *, dense: bool) -> Callable[[], None]:
    """The calls of one compression, and their shapes into the row's data."""
    r, k, n = problem.rank, warm.buffer, warm.model.n_seen
    Z, D, K = _core(r, p, q, k)
    leading = quickest(K, r)
    parts = [_tall(n, r)] + [_residuals(n, r, k)] * 2 * dense
    bench.data = {"n": n, "rank": r, "buffer": k, "core": [p, q], "decomposition": leading.__name__}

    def calls() -> None:
        np.matmul(Z, D, out=K)
        leading(K, r)
        for part in parts:
            part()

    return calls


def _core(r: int, p: int, q: int, k: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Z (p, k), D (k, q) and room for K; their product has a decaying spectrum."""
    rng = np.random.default_rng(0)
    Z, D = rng.standard_normal((p, k)), rng.standard_normal((k, q))
    Z[r:] *= 0.1
    D[:, r:] *= 0.1
    return Z, D, Z @ D


def _tall(n: int, r: int) -> Callable[[], None]:
    """Both factors times r × r matrices."""
    U, M, room = np.ones((n, r)), np.eye(r), np.zeros((n, r))

    def product() -> None:
        np.matmul(U, M, out=room)
        np.matmul(U, M, out=room)

    return product


def _residuals(n: int, r: int, k: int) -> Callable[[], None]:
    """One side's dense block: residuals against U, their QR, and Q's share in the new factor."""
    rng = np.random.default_rng(0)
    U = np.linalg.qr(rng.standard_normal((n, r)))[0]
    S, M = np.asfortranarray(rng.standard_normal((n, k))), rng.standard_normal((k, r))

    def calls() -> None:
        X = S - U @ (U.T @ S)
        Q, _ = scipy.linalg.qr(X, mode="economic", overwrite_a=True, check_finite=False)
        Q @ M

    return calls


# --- the r leading triplets, by LAPACK ------------------------------------------------------------------------------


def dgesdd_of_K(K: FloatArray, rank: int) -> None:
    """All triplets by divide and conquer."""
    dgesdd(K, full_matrices=0)


def dsyevd_of_KKt(K: FloatArray, rank: int) -> None:
    """Left vectors as all eigenvectors of K Kᵀ, right ones by a product."""
    _, L = scipy.linalg.eigh(K @ K.T, driver="evd", overwrite_a=True, check_finite=False)
    K.T @ L[:, -rank:]


def dsyevr_of_KKt(K: FloatArray, rank: int) -> None:
    """The same with the leading eigenvectors only."""
    last = K.shape[0] - 1
    wanted = [max(0, last + 1 - rank), last]
    _, L = scipy.linalg.eigh(K @ K.T, subset_by_index=wanted, driver="evr", overwrite_a=True, check_finite=False)
    K.T @ L


def quickest(K: FloatArray, rank: int) -> Callable[[FloatArray, int], None]:
    """The way that takes least CPU time for this K (the best of three)."""

    def seconds(way: Callable[[FloatArray, int], None]) -> float:
        best = np.inf
        for _ in range(3):
            begin = time.process_time()
            partial(way, K, rank)()
            best = min(best, time.process_time() - begin)
        return best

    return min((dgesdd_of_K, dsyevd_of_KKt, dsyevr_of_KKt), key=seconds)
