"""Tikhonov's regularisation against truncation, at equal variance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from scipy.optimize import brentq

from tlstd.core.arrays import FloatArray
from tlstd_lab.questions.theorem.systems import ORACLES, sampled
from tlstd_lab.theorem import Comparison, compare

Pair: TypeAlias = tuple[float, float, float, float]
PAIR = ("truncation's bias", "truncation's error", "Tikhonov's bias", "Tikhonov's error")
"""What the numbers of a pair are."""


def tikhonov_of(sigma: FloatArray, rank: int) -> float:
    """The η for which Σ (σᵢ/(σᵢ²+η))² = Σ_{i<=r} σᵢ⁻²: white noise in b has the same effect on the weights.

    >>> round(tikhonov_of(np.array([1.0, 1.0]), 1), 6)  # 2 / (1 + η)² = 1
    0.414214
    """
    kept = sigma[sigma > 1e-12 * sigma[0]]
    wanted = (kept[:rank] ** -2.0).sum()

    def excess(log_eta: float) -> float:
        return float(np.log(((kept / (kept**2 + np.exp(log_eta))) ** 2).sum() / wanted))

    low, high = 2.0 * np.log(kept[-1]) - 40.0, 2.0 * np.log(kept[0]) + 40.0
    return float(np.exp(brentq(excess, low, high))) if rank < kept.size and excess(low) > 0.0 else 0.0


def filtered(c: Comparison, factors: FloatArray) -> tuple[float, float]:
    """Bias ‖w* − V̂ f Û ᵀA_t w*‖ and error ‖w* − V̂ f Ûᵀb_t‖ of the solution with these inverse factors f."""
    weights = c.V_t.T @ c.weights
    bias = (1.0 - factors * c.sigma_t) * weights
    return float(np.linalg.norm(bias)), float(np.linalg.norm(bias - factors * (c.U_t.T @ c.residual)))


def against_tikhonov(c: Comparison, rank: int) -> Pair:
    """Bias and error of truncation at this rank, then of Tikhonov's solution with the same variance."""
    inverse = np.zeros(c.n_features)
    inverse[:rank] = 1.0 / c.sigma_t[:rank]
    smooth = c.sigma_t / (c.sigma_t**2 + tikhonov_of(c.sigma_t, rank))
    return *filtered(c, inverse), *filtered(c, smooth)


def if_comparable(c: Comparison, rank: int) -> Pair | None:
    """The same, if A_t has a further singular value to cut and no number is rounding."""
    pair = against_tikhonov(c, rank) if rank < c.rank_t else None
    return pair if pair is not None and min(pair) > 1e-9 else None


def tikhonov_summary(columns: Mapping[str, FloatArray]) -> dict[str, Any]:
    """Median of Tikhonov's bias and error over truncation's, and how often each error is the smaller."""
    found = np.isfinite(columns[PAIR[0]])
    bias, error, its_bias, its_error = (columns[name][found] for name in PAIR)

    def quantiles(ratios: FloatArray) -> list[float]:
        return [float(f"{q:.4g}") for q in np.quantile(ratios, (0.05, 0.5, 0.95))]

    return {
        "n": bias.size,
        "bias ratio, 5%, 50%, 95%": quantiles(its_bias / bias),
        "error ratio, 5%, 50%, 95%": quantiles(its_error / error),
        "Tikhonov has the smaller error": float(f"{(its_error < error).mean():.3f}"),
    }


def tikhonov_curves(oracle: str, n_repeats: int, seed: int) -> FloatArray:
    """Medians over streams of 3,000 samples: (rank, numbers of a pair)."""
    process, lambda_ = ORACLES[oracle]
    A, b = process.system(lambda_)
    rng = np.random.default_rng([seed, 7])
    runs = []
    for _ in range(n_repeats):
        c = compare(A, b, *sampled(process, lambda_, 3_000, rng))
        runs.append([against_tikhonov(c, rank) for rank in range(1, b.size)])
    medians: FloatArray = np.median(np.array(runs), axis=0)
    return medians
