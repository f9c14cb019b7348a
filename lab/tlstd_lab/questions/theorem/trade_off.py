"""The trade-off: error, its two parts and the bounds against the rank, along streams of two lengths."""

from __future__ import annotations

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd_lab.questions.theorem.systems import ORACLES, sampled
from tlstd_lab.theorem import compare

SAMPLES = (300, 30_000)
CURVES = ("error", "noise part", "bias part", "stated", "ours")
"""For each rank: error, its two parts, the stated bound and ours, both with the smallest C."""


def regret(curve: str) -> str:
    """The column of a curve's regret."""
    return f"regret of {curve}"


def curves(oracle: str, n_steps: int, rng: np.random.Generator) -> FloatArray:
    """``CURVES`` (a row each) against the rank, of one stream."""
    process, lambda_ = ORACLES[oracle]
    A, b = process.system(lambda_)
    c = compare(A, b, *sampled(process, lambda_, n_steps, rng))
    results = [c.bound(rank, constant=None) for rank in range(1, b.size + 1)]
    return np.array(
        [
            [x.error for x in results],
            [x.noise_part for x in results],
            [x.bias_part for x in results],
            [x.norm.total for x in results],
            [x.corrected_picard.total for x in results],
        ]
    )


def trade_off(oracle: str, n_steps: int, n_repeats: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """Medians over streams of ``CURVES`` for each rank, and the regret of each curve.

    The regret is the error at the rank where a curve is smallest over the smallest error.
    """
    rng = np.random.default_rng([seed, n_steps])
    every = np.array([curves(oracle, n_steps, rng) for _ in range(n_repeats)])
    best = every[:, 0].min(axis=1)
    at = [every[np.arange(n_repeats), 0, every[:, i].argmin(axis=1)] for i in range(len(CURVES))]
    return np.median(every, axis=0), np.median(np.array(at) / best, axis=1)
