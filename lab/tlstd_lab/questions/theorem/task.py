"""Tasks: Theorem 1 on systems whose limit is known, one family at a time, and along streams of growing length."""

from __future__ import annotations

from typing import Any

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd_lab.questions.theorem import trade_off as trade_offs
from tlstd_lab.questions.theorem.bounds import READINGS, epsilon, fails, measure
from tlstd_lab.questions.theorem.tikhonov import PAIR, tikhonov_curves


def rows(settings: dict[str, Any], seed: int) -> dict[str, FloatArray]:
    """Everything about ``cases`` systems of a ``family``, a row for each rank that is looked at (see ``measure``)."""
    return measure(settings["family"], settings["cases"], seed)


def cases(settings: dict[str, Any], seed: int) -> dict[str, FloatArray]:
    """Of the same what the claims need.

    Columns: bound over error by reading, whether it fails, whether Assumption 1 holds as stated, whether the bound is
    infinite, and Tikhonov's error over truncation's at equal variance (nan where there is nothing to compare).
    """
    found = rows(settings, seed)
    ours = np.maximum(found[fails("ours")], found[fails("ours, Picard")])
    return {
        **{reading: found[reading] for reading in READINGS},
        "ours": found["ours, Picard"],
        **{f"fails_{reading}": found[fails(reading)] for reading in READINGS},
        "fails_ours": ours,
        "assumption": found["stated"],
        "void": found["void"],
        "tikhonov": found[PAIR[3]] / found[PAIR[1]],
    }


def trade_off(settings: dict[str, Any], seed: int) -> dict[str, FloatArray]:
    """Error, its two parts and the bounds for each rank, of one stream of ``samples`` from an ``oracle``."""
    found = trade_offs.curves(settings["oracle"], settings["samples"], np.random.default_rng(seed))
    return {"rank": np.arange(1.0, found.shape[1] + 1.0)} | dict(zip(trade_offs.CURVES, found, strict=True))


def vanishing(settings: dict[str, Any], seed: int) -> dict[str, Any]:
    """ε(t) of a process after each of ``samples``: ``cycle`` (its σ come in pairs) or ``walk`` (all different)."""
    return {"samples": np.array(settings["samples"]), **epsilon(settings["process"], settings["samples"], seed)}


def trade_off_medians(settings: dict[str, Any], seed: int) -> dict[str, FloatArray]:
    """The same, medians over many ``streams``; the regret of each curve beside it, at every rank."""
    medians, regrets = trade_offs.trade_off(settings["oracle"], settings["samples"], settings["streams"], seed)
    found: dict[str, FloatArray] = {}
    for curve, values, number in zip(trade_offs.CURVES, medians, regrets, strict=True):
        found |= {curve: values, trade_offs.regret(curve): np.full(values.size, number)}
    return found


def tikhonov(settings: dict[str, Any], seed: int) -> dict[str, FloatArray]:
    """Bias and error of truncation and of Tikhonov's solution for each rank, medians over ``streams``."""
    return dict(zip(PAIR, tikhonov_curves(settings["oracle"], settings["streams"], seed).T, strict=True))
