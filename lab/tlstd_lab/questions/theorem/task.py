"""Tasks: Theorem 1 on systems whose limit is known, one family at a time, and along streams of growing length."""

from __future__ import annotations

from typing import Any

import numpy as np

from tlstd.diagnostics import compare
from tlstd.types import FloatArray
from tlstd_lab.questions.theorem.bounds import epsilon, measure
from tlstd_lab.questions.theorem.systems import of_family
from tlstd_lab.questions.theorem.tikhonov import if_comparable
from tlstd_lab.questions.theorem.trade_off import CURVES, curves


def cases(settings: dict[str, Any], seed: int) -> dict[str, Any]:
    """Bounds and errors of ``cases`` systems of a ``family``, a row for each rank that is looked at.

    Columns: bound over error by reading, whether it fails, whether Assumption 1 holds as stated, whether the bound is
    infinite, and Tikhonov's error over truncation's at equal variance (nan where there is nothing to compare).
    """
    columns: dict[str, list[float]] = {
        name: []
        for name in ("norm", "squared", "ours", "fails_norm", "fails_squared", "fails_ours", "assumption", "void")
    }
    columns["tikhonov"] = []
    for number, (case, ranks) in enumerate(of_family(settings["family"], settings["cases"], seed)):
        c = compare(*case)
        for row in measure(settings["family"], number, case, ranks):
            columns["norm"].append(row.free["norm"])
            columns["squared"].append(row.free["squared"])
            columns["ours"].append(row.free["ours, Picard"])
            columns["fails_norm"].append("norm" in row.fails)
            columns["fails_squared"].append("squared" in row.fails)
            columns["fails_ours"].append("ours" in row.fails or "ours, Picard" in row.fails)
            columns["assumption"].append(row.stated)
            columns["void"].append(row.void)
            pair = if_comparable(c, row.rank)
            columns["tikhonov"].append(np.nan if pair is None else pair[3] / pair[1])
    return {name: np.array(values, dtype=np.float64) for name, values in columns.items()}


def trade_off(settings: dict[str, Any], seed: int) -> dict[str, FloatArray]:
    """Error, its two parts and the bounds for each rank, of one stream of ``samples`` from an ``oracle``."""
    found = curves(settings["oracle"], settings["samples"], np.random.default_rng(seed))
    return {"rank": np.arange(1.0, found.shape[1] + 1.0)} | dict(zip(CURVES, found, strict=True))


def vanishing(settings: dict[str, Any], seed: int) -> dict[str, Any]:
    """ε(t) of a process after each of ``samples``: ``cycle`` (its σ come in pairs) or ``walk`` (all different)."""
    return {"samples": np.array(settings["samples"]), **epsilon(settings["process"], settings["samples"], seed)}
