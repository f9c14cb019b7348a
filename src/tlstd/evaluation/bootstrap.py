"""Bootstrap over episodes, without going through the log again: a slow reference for the other intervals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tlstd.core import parameters
from tlstd.core.arrays import FloatArray
from tlstd.core.units import deviation
from tlstd.data.held_out import Folds, make_folds
from tlstd.evaluation.influence import FOLDS, RIDGE, Asked, asked_set, operator_of
from tlstd.evaluation.intervals import NOISE, NOT_COVERED, Interval
from tlstd.krylov.adjoint import trace_values
from tlstd.krylov.arnoldi import Arnoldi
from tlstd.krylov.krylov_lstd import KrylovLSTD
from tlstd.krylov.operator import SampleOperator

DIMENSION = 60
"""Of the Krylov space to which the system is reduced where there are more features."""
REPLICATES = 500
TOGETHER = 256
"""Groups whose small systems are in memory at once."""


class _Projected(NamedTuple):
    """The system in a basis Q (m, n) of the weights and an orthonormal basis W (n, m) of A Q."""

    Q: FloatArray
    on_traces: FloatArray
    """(N, m): z_tᵀW."""
    on_differences: FloatArray
    """(N, m): d_tᵀQ."""
    ridge: FloatArray
    """(m, m): of ηD."""


def bootstrap_interval(
    model: KrylovLSTD,
    asked: Asked,
    *,
    level: float = 0.95,
    replicates: int = REPLICATES,
    rng: np.random.Generator | None = None,
) -> Interval:
    """The interval between the quantiles of values from episodes drawn with replacement.

    The system Σ_g v_g A_g w = Σ_g v_g b_g, with v_g the number of times that episode (or block) g was drawn, is solved
    in a Krylov space of the whole system, of all its dimensions up to ``DIMENSION``, where each A_g is a small matrix;
    start states are drawn with their episodes.

    After B. Hao et al., "Bootstrapping fitted Q-evaluation for off-policy inference", ICML 2021, with Krylov LSTD in
    place of fitted Q-evaluation.

    Parameters
    ----------
    model, asked : as in :func:`influences`
    level : float in (0, 1)
    replicates : int >= 20
    rng : np.random.Generator, optional
        Draws the episodes; one with the seed 0 if left out.

    Returns
    -------
    Interval
        Cost: O(N m²) for the small systems, O(replicates · (G m² + m³)) for the rest.
    """
    level = parameters.positive("level", level, high=1.0)
    count = parameters.integer("replicates", replicates, low=20)
    generator = np.random.default_rng(0) if rng is None else parameters.generator("rng", rng)
    operator = operator_of(model)
    _, discounts, traces, _ = operator.samples.columns()
    groups = make_folds(discounts, traces, FOLDS)
    G = groups.n_groups
    drawn = generator.multinomial(G, np.full(G, 1.0 / G), size=count).astype(np.float64)
    values = _values(operator.with_ridge(RIDGE), groups, model, asked, np.vstack([np.ones(G), drawn]))
    low, high = np.quantile(values[1:], [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    spread = deviation(values[1:], ddof=1)
    if G < 2:
        low, high, spread = -np.inf, np.inf, np.inf
    with_starts = "" if asked.drawn is None else " and start states"
    covers = f"{NOISE.format(with_starts)}; {NOT_COVERED}"
    return Interval(
        float(values[0]), float(low), float(high), level, spread, np.inf, "bootstrap", G, covers, (0.0, 0.0)
    )


def _values(operator: SampleOperator, groups: Folds, model: KrylovLSTD, asked: Asked, times: FloatArray) -> FloatArray:
    """Values (B,) of the states where group g counts ``times`` (B, G)."""
    small, rewards = _projected(operator, groups), operator.samples.columns()[0][:, 0]
    m = small.Q.shape[0]
    A = np.zeros((times.shape[0], m * m))
    b = np.zeros((times.shape[0], m))
    for some in _slices(groups):
        sums = [(small.on_traces[s].T @ small.on_differences[s]).ravel() for s in some.samples]
        A += times[:, some.first : some.first + len(sums)] @ np.array(sums)
        b += times[:, some.first : some.first + len(sums)] @ [rewards[s] @ small.on_traces[s] for s in some.samples]
    steps = times @ np.bincount(groups.group, None, groups.n_groups)
    scaled = A.reshape(-1, m, m) / np.maximum(steps, 1.0)[:, None, None] + small.ridge
    weights = _solved(scaled, b / np.maximum(steps, 1.0)[:, None])
    asked_of = asked_set(asked, model, groups)
    X = np.asarray(asked_of.X @ small.Q.T)
    counts = np.ones((1, len(X))) if asked_of.group is None else times[:, asked_of.group]
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    values: FloatArray = ((shares @ X) * weights).sum(axis=1) + (shares @ asked_of.offsets)[:, 0]
    return values


def _projected(operator: SampleOperator, groups: Folds) -> _Projected:
    arnoldi = Arnoldi(lambda V, columns: operator.matvec(V), operator.b()[:, :1])
    arnoldi.extend(DIMENSION)
    Q, Y, R, _ = arnoldi.paths[0].projection(DIMENSION)
    m = R.shape[0]
    W, basis = Q.T @ Y, Q[:m]
    on_x, on_next = operator.values(np.ascontiguousarray(basis.T))
    discounts = operator.samples.columns()[1]
    shift = np.zeros(operator.n) if operator.shift is None else operator.shift
    ridge = W.T @ (shift[:, None] * basis.T)
    return _Projected(basis, trace_values(operator, W, groups.cut), on_x - discounts[:, None] * on_next, ridge)


class _Slices(NamedTuple):
    first: int
    samples: list[slice]


def _slices(groups: Folds) -> Iterator[_Slices]:
    """The samples of every group, some groups at a time."""
    begins = np.append(np.flatnonzero(groups.cut), groups.group.size).tolist()
    for first in range(0, groups.n_groups, TOGETHER):
        last = min(first + TOGETHER, groups.n_groups)
        yield _Slices(first, [slice(begins[g], begins[g + 1]) for g in range(first, last)])


def _solved(A: FloatArray, b: FloatArray) -> FloatArray:
    """Solutions (B, m) of least squares where a matrix is singular: a replicate may not have seen all directions."""
    try:
        return np.linalg.solve(A, b[:, :, None])[:, :, 0].astype(np.float64, copy=False)
    except np.linalg.LinAlgError:
        return np.array([np.linalg.lstsq(M, y, rcond=None)[0] for M, y in zip(A, b, strict=True)], dtype=np.float64)
