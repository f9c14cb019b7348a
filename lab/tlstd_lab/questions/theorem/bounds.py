"""Does the bound hold? Every case at several ranks, the counts over them, and the term ε(t) along streams."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tlstd.diagnostics import Comparison, compare, proof_steps
from tlstd.domains import random_walk
from tlstd_lab.questions.theorem.systems import Case, cycle, sampled


@dataclass(frozen=True, slots=True)
class Row:
    """One case at one rank. Totals are divided by the error, so that a bound holds where its ratio is at least one."""

    family: str
    case: int
    n_features: int
    rank: int
    error: float
    void: bool
    """A_t has fewer than ``rank`` singular values: the stated bound is infinite."""
    stated: bool
    """Assumption 1 holds as stated, with C = 1."""
    as_stated: dict[str, float]
    """Totals with C = 1, by reading, whether or not the assumption holds."""
    free: dict[str, float]
    """Totals with the smallest C, for which the assumption always holds: by reading, vectors unaligned, and ours."""
    fails: list[str]
    """Which of them are below the error by more than rounding."""
    negative: bool
    """ε of the squared reading is negative."""
    flat: bool
    """The best exponent of the stated bound is below 1.01: its bias term does not depend on the rank."""
    capped: bool
    """ε(t) of the stated bound is its first argument, which does not depend on the samples."""
    steps: list[str]
    """Steps of the proof that do not hold: for the norm as they are, for the squared norm with "² " before them."""


def measure(family: str, number: int, case: Case, ranks: Sequence[int]) -> list[Row]:
    """All that is recorded of one case."""
    aligned, raw = compare(*case), compare(*case, alignment="none")
    return [_row(family, number, aligned, raw, rank) for rank in ranks]


def _row(family: str, number: int, aligned: Comparison, raw: Comparison, rank: int) -> Row:
    stated, free = aligned.bound(rank), aligned.bound(rank, constant=None)
    totals = {
        "norm": free.norm.total,
        "squared": free.squared.total,
        "unaligned": raw.bound(rank, constant=None).norm.total,
        "ours, Picard": free.corrected_picard.total,
        "ours": free.corrected.total,
    }
    if family == "repeated σ":  # by construction |uᵢᵀb| = σᵢ² in one basis; the bound is in another
        totals["other basis"] = aligned.bound(rank, p=2.0).norm.total
    at_one = {"norm": stated.norm.total, "squared": stated.squared.total}
    void = bool(np.isinf(free.noise))
    steps: list[str] = []
    if not void:
        p, C = free.norm.p, free.norm.constant
        steps = [s.name for s in proof_steps(aligned, rank, p=p, constant=C) if not s.holds]
        p, C = free.squared.p, free.squared.constant
        steps += ["² " + s.name for s in proof_steps(aligned, rank, p=p, constant=C, squared=True) if not s.holds]
    error = free.error
    return Row(
        family=family,
        case=number,
        n_features=aligned.n_features,
        rank=rank,
        error=error,
        void=void,
        stated=stated.assumption_holds,
        as_stated={name: _ratio(total, error) for name, total in at_one.items()},
        free={name: _ratio(total, error) for name, total in totals.items()},
        fails=[name for name, total in totals.items() if not free.holds(total)]
        + [f"C=1 {name}" for name, total in at_one.items() if not stated.holds(total)],
        negative=min(free.squared.cap, free.squared.difference) < 0.0,
        flat=free.norm.p < 1.01,
        capped=free.norm.cap < free.norm.difference,
        steps=steps,
    )


def _ratio(total: float, error: float) -> float:
    return total / error if error > 1e-9 else np.inf


def summary(rows: Sequence[Row]) -> dict[str, Any]:
    """Counts of what holds and fails, and the middle 90% of bound / error where both are finite."""
    fails = Counter(name for row in rows for name in row.fails)
    kept = Counter(name for row in rows if row.stated for name in row.fails)
    finite = [row for row in rows if np.isfinite(row.free["norm"])]
    return {
        "cases": len({(row.family, row.case) for row in rows}),
        "cases × ranks": len(rows),
        "void": sum(row.void for row in rows),
        "assumption holds as stated": sum(row.stated for row in rows),
        "fails with C=1 though the assumption holds": {n: kept[f"C=1 {n}"] for n in ("norm", "squared")},
        "fails with C=1 where the assumption does not": {
            n: fails[f"C=1 {n}"] - kept[f"C=1 {n}"] for n in ("norm", "squared")
        },
        "fails with the smallest C": {
            n: fails[n] for n in ("norm", "squared", "unaligned", "ours, Picard", "ours", "other basis")
        },
        "squared fails with ε < 0": sum(row.negative for row in rows if "squared" in row.fails),
        "best p < 1.01": sum(row.flat for row in rows),
        "ε is its cap": sum(row.capped for row in rows),
        "steps that fail": dict(Counter(step for row in rows for step in row.steps).most_common()),
        "bound / error, 5%, 50%, 95%": {
            n: [float(f"{q:.4g}") for q in np.quantile([row.free[n] for row in finite], (0.05, 0.5, 0.95))]
            for n in ("norm", "unaligned", "ours, Picard", "ours")
            if finite
        },
    }


def epsilon(process: str, samples: Sequence[int], seed: int = 0) -> dict[str, list[float]]:
    """ε(t) of a ``"cycle"`` or a random ``"walk"``: A's vectors fixed but for signs, or chosen anew for each t."""
    made = cycle() if process == "cycle" else random_walk(11, gamma=0.9)
    A, b = made.system(0.0)
    out: dict[str, list[float]] = {"signs": [], "rotations": []}
    for n in samples:
        A_t, b_t = sampled(made, 0.0, n, np.random.default_rng(seed))
        fixed, chosen = compare(A, b, A_t, b_t, alignment="signs"), compare(A, b, A_t, b_t)
        for name, c in (("signs", fixed), ("rotations", chosen)):
            out[name].append(float(c.bound(b.size // 2, p=1.5).norm.difference))
    return out


def convergence(n_states: int = 10, turns: Sequence[int] = (1, 10, 100, 1000, 10_000)) -> dict[str, Any]:
    """ε(t) along the cycle, rounded."""
    steps = [n_states * turn + n_states // 3 for turn in turns]
    found = epsilon("cycle", steps)
    return {"samples": steps} | {name: [float(f"{x:.3g}") for x in values] for name, values in found.items()}
