"""The trade-off: error, its two parts and the bounds against the rank, along streams of two lengths."""

from __future__ import annotations

from typing import Any

import numpy as np

from tlstd.diagnostics import compare
from tlstd.types import FloatArray
from tlstd_lab.questions.theorem.systems import ORACLES, SEED, sampled

SAMPLES = (300, 30_000)
CURVES = ("error", "noise part", "bias part", "stated", "ours")
"""For each rank: error, its two parts, the stated bound and ours, both with the smallest C."""


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


def trade_off(n_repeats: int) -> dict[str, Any]:
    """Medians over streams of error, its two parts and the bounds (with the smallest C) for each rank, and regrets.

    The regret is the error at the rank where a bound is smallest over the smallest error.
    """
    out: dict[str, Any] = {}
    for name in ORACLES:
        for n_steps in SAMPLES:
            rng = np.random.default_rng([SEED, n_steps])
            every = np.array([curves(name, n_steps, rng) for _ in range(n_repeats)])
            best = every[:, 0].min(axis=1)
            regret = {
                curve: float(np.median(every[np.arange(n_repeats), 0, every[:, i].argmin(axis=1)] / best))
                for i, curve in enumerate(CURVES)
                if i > 2
            }
            medians = np.median(every, axis=0)
            out[f"{name}, {n_steps} samples"] = {
                **{curve: [float(f"{x:.4g}") for x in medians[i]] for i, curve in enumerate(CURVES)},
                "regret": {curve: float(f"{x:.4g}") for curve, x in regret.items()},
            }
    return out
