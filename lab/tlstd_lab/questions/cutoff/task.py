"""Task: fixed cut-offs of the singular values, and two rules that choose one from the samples without tuning.

All cut-offs are evaluated from one decomposition. Folds, returns and the choice are those of
:mod:`tlstd.data.held_out`, with two folds and the one-standard-error rule.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlstd.classic.lstd import LSTD
from tlstd.core.arrays import FloatArray, IntArray, Matrix
from tlstd.core.svd import svd
from tlstd.data import held_out
from tlstd.data.transitions import Transitions
from tlstd.estimators.base import LinearEstimator
from tlstd.truncated.tlstd import TLSTD
from tlstd_lab.learning import make
from tlstd_lab.problems import problem, stream

ROUNDING = 1e-14
"""Singular values up to this share of the largest are rounding errors."""
FOLDS = 2
FALLBACK = 1e-4
"""LSTD's default, where there are too few episodes to choose by."""
TURNS = 6
"""Times that the noise is estimated anew with the weights it has led to."""


class Factors(NamedTuple):
    """A = U diag(sigma) Vᵀ over the features ``ids``, and the solution's coefficients uᵢᵀb/σᵢ along V's columns."""

    ids: IntArray
    U: FloatArray
    sigma: FloatArray
    V: FloatArray
    coefficients: FloatArray

    def weights(self, n_features: int, cutoffs: FloatArray) -> FloatArray:
        """Weights (n_features, len(cutoffs)), one column for each cut-off."""
        weights = np.zeros((n_features, len(cutoffs)))
        for column, cutoff in enumerate(cutoffs):
            kept = int(np.count_nonzero(self.sigma > cutoff * self.sigma[0]))
            weights[self.ids, column] = self.V[:, :kept] @ self.coefficients[:kept]
        return weights


def factorise(model: LinearEstimator) -> Factors:
    """Decompose what an LSTD model holds, or take over the factors of a t-LSTD model (made with ``rcond=0``)."""
    if isinstance(model, TLSTD):
        ids, U, sigma, V = model.factors()
        return _cleaned(ids, U, sigma, V, V.T @ model.weights[ids])
    assert isinstance(model, LSTD)
    ids, A, b = model.system()
    return decompose(A, b[:, 0], ids)


def decompose(A: FloatArray, b: FloatArray, ids: IntArray | None = None) -> Factors:
    """The SVD of A and the solution of A w = b along its right singular vectors.

    Example
    -------
    >>> factors = decompose(np.diag([4.0, 2.0, 0.0]), np.array([4.0, 1.0, 1.0]))
    >>> factors.weights(3, np.array([0.9, 0.0])).T
    array([[1. , 0. , 0. ],
           [1. , 0.5, 0. ]])
    """
    U, sigma, Vt = svd(A)
    with np.errstate(divide="ignore", invalid="ignore"):
        coefficients = (U.T @ b) / sigma
    return _cleaned(np.arange(len(A)) if ids is None else ids, U, sigma, Vt.T, coefficients)


def _cleaned(ids: IntArray, U: FloatArray, sigma: FloatArray, V: FloatArray, coefficients: FloatArray) -> Factors:
    kept = int(np.count_nonzero(sigma > ROUNDING * sigma[0]))
    return Factors(ids, U[:, :kept], sigma[:kept], V[:, :kept], coefficients[:kept])


# --- the rules ------------------------------------------------------------------------------------------------------


def held_out_cutoff(errors: FloatArray, cutoffs: FloatArray) -> float:
    """The largest cut-off whose held-out error is within one standard error of the least.

    Parameters
    ----------
    errors : (episodes, cutoffs)
        Squared error of each held-out episode: of predictions, made by weights that have not seen it, against its
        discounted returns.
    cutoffs : (cutoffs,), falling

    Example
    -------
    >>> held_out_cutoff(np.array([[9.0, 2.0, 1.0], [9.0, 0.5, 1.0], [9.0, 1.0, 1.0]]), np.array([0.1, 0.01, 0.001]))
    0.01
    """
    if len(errors) < 2:
        return FALLBACK
    return float(cutoffs[held_out.within_one_standard_error(errors)])


def noise_cutoff(factors: Factors, steps: Transitions, lambda_: float) -> float:
    """The cut-off with the least estimated risk, from the noise of uᵢᵀb in the stream itself.

    A direction's coefficient uᵢᵀb/σᵢ has the variance of uᵢᵀ Σ z_t δ_t / (T σᵢ), estimated from the sums over single
    episodes, with δ_t = r_{t+1} − d_tᵀw by the weights w of the current choice. Keeping directions 1 to k is worth
    Σ mᵢ (coefficient² − 2 variance), with mᵢ the mean of (vᵢᵀx)²: this would be an unbiased estimate if σᵢ, uᵢ and vᵢ
    did not come from the same samples. Repeated until the choice stays.
    """
    sigma, T = factors.sigma, len(steps)
    XU, XV, X_next_V = _projected(steps.X, factors, "U"), _projected(steps.X, factors, "V"), _next(steps, factors)
    traces = np.empty_like(XU)
    z = np.zeros(XU.shape[1])
    for t, decay in enumerate((lambda_ * steps.trace_discounts).tolist()):
        z = decay * z + XU[t]
        traces[t] = z
    D = XV - steps.discounts[:, None] * X_next_V
    importance = (XV**2).mean(axis=0)
    first = np.flatnonzero(steps.trace_discounts == 0.0)
    kept = 0
    for _ in range(TURNS):
        delta = steps.rewards - D[:, :kept] @ factors.coefficients[:kept]
        sums = np.add.reduceat(traces * delta[:, None], first, axis=0)
        variance = sums.var(axis=0) * len(first) / (T * sigma) ** 2
        worth = np.cumsum(importance * (factors.coefficients**2 - 2.0 * variance))
        before, kept = kept, int(np.argmax(worth)) + 1
        if kept == before:
            break
    return float(sigma[kept - 1] / sigma[0]) * (1.0 - 1e-12)


def _projected(X: Matrix, factors: Factors, side: str) -> FloatArray:
    projected: FloatArray = X[:, factors.ids] @ (factors.U if side == "U" else factors.V)
    return projected


def _next(steps: Transitions, factors: Factors) -> FloatArray:
    return _projected(steps.X_next, factors, "V")


# --- the stream by episodes -----------------------------------------------------------------------------------------


def episode_numbers(steps: Transitions) -> IntArray:
    """The number of the episode that each step belongs to."""
    return np.cumsum(steps.trace_discounts == 0.0) - 1


def numbered_folds(steps: Transitions) -> held_out.Folds:
    """Folds by the number of an episode alone, so that those of a longer stream begin with those of a shorter one."""
    number = episode_numbers(steps)
    cut = steps.trace_discounts == 0.0
    return held_out.Folds(number % FOLDS, number, cut, FOLDS, int(number[-1]) + 1, 0)


def select(steps: Transitions, chosen: NDArray[np.bool_]) -> Transitions:
    """The chosen steps; whole episodes keep their traces."""
    return Transitions.from_rows(
        steps.store,
        steps.rows[chosen],
        steps.rewards[chosen],
        steps.next_rows[chosen],
        discounts=steps.discounts[chosen],
        trace_discounts=steps.trace_discounts[chosen],
        rhos=steps.rhos[chosen],
    )


def cutoffs(settings: dict[str, Any], seed: int) -> dict[str, IntArray | FloatArray]:
    """RMSE after each of ``samples`` samples with each of ``cutoffs`` (falling), and with what the two rules choose.

    Settings: ``problem``, ``estimator`` (LSTD or TLSTD, without ``rcond``), ``samples`` (rising), ``cutoffs``. Columns:
    ``samples``; ``fixed_0``, ``fixed_1``, …; ``held_out`` and ``noise``, and their choices ``held_out_cutoff``,
    ``noise_cutoff``.
    """
    made, grid = problem(settings["problem"]), np.array(settings["cutoffs"], dtype=np.float64)
    n_features, samples = made.features.n_features, settings["samples"]
    steps = stream(settings["problem"], samples[-1], seed)
    estimator = settings["estimator"] | {"rcond": 0.0}
    number = episode_numbers(steps)
    whole = make(estimator, n_features)
    parts = [make(estimator, n_features) for _ in range(FOLDS)]  # each learns from all episodes but every FOLDS-th
    rows: list[dict[str, float]] = []
    start = 0
    for stop in samples:
        whole.update_many(steps[start:stop])
        for fold, model in enumerate(parts):
            model.update_many(select(steps[start:stop], number[start:stop] % FOLDS != fold))
        factors, past = factorise(whole), steps[:stop]
        choices = {
            "held_out": held_out_cutoff(_held_out_errors(parts, past, grid), grid),
            "noise": noise_cutoff(factors, past, settings["estimator"]["lambda_"]),
        }
        values = made.X @ factors.weights(n_features, np.concatenate([grid, list(choices.values())]))
        errors = [made.rmse(column) for column in values.T]
        row = {"samples": stop} | {f"fixed_{i}": errors[i] for i in range(len(grid))}
        for i, (rule, choice) in enumerate(choices.items()):
            row |= {rule: errors[len(grid) + i], f"{rule}_cutoff": choice}
        rows.append(row)
        start = stop
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def _held_out_errors(parts: list[LinearEstimator], steps: Transitions, grid: FloatArray) -> FloatArray:
    """Squared errors of the finished episodes, each by the model that has not seen it: (episodes, cutoffs)."""
    folds = numbered_folds(steps)
    targets = held_out.held_out_targets(steps.rewards[:, None], steps.discounts, steps.rhos, folds, largest_tail=0.0)
    errors = np.zeros((folds.n_groups, len(grid)))
    for fold, model in enumerate(parts):
        mine = (targets.weights > 0.0) & (folds.fold == fold)
        if not mine.any() or model.n_updates == 0:
            continue
        values = select(steps, mine).X @ factorise(model).weights(model.n_features, grid)
        errors += held_out.group_errors(
            values, targets.values[mine, 0], np.ones(len(values)), folds.group[mine], folds.n_groups
        )
    return errors[np.unique(folds.group[targets.weights > 0.0])]
