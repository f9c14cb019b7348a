"""Does the bound hold? Every case at several ranks, the counts over them, and the term ε(t) along streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tlstd.core.arrays import FloatArray
from tlstd.domains import random_walk
from tlstd_lab.questions.theorem.systems import cycle, of_family, sampled
from tlstd_lab.questions.theorem.tikhonov import PAIR, if_comparable
from tlstd_lab.theorem import Comparison, compare, proof_steps

Columns = Mapping[str, FloatArray]
"""A number for each case and rank, by name."""
READINGS = ("norm", "squared")
"""Of the undefined norm in the stated bound."""
OTHER_BASIS = "other basis"
BOUNDS = (*READINGS, "unaligned", "ours, Picard", "ours", OTHER_BASIS)
"""With the smallest C, for which the assumption always holds: by reading, vectors unaligned, and ours. The last one is
looked at in one family only, where |uᵢᵀb| = σᵢ² in one basis by construction, and the bound is in another.

A column of this name is the bound over the error, so that it holds where it is at least one."""
_PLAIN = np.eye(2), np.ones(2)
STEPS = tuple(step.name for step in proof_steps(compare(*_PLAIN, *_PLAIN), 1, p=1.5))


def fails(bound: str, *, at_one: bool = False) -> str:
    """The column that says whether a bound is below the error by more than rounding; with C = 1, or the smallest C."""
    return f"{'C=1 ' if at_one else ''}{bound} fails"


def step_fails(step: str, reading: str) -> str:
    """The column that says whether a step of the proof does not hold."""
    return f"{'² ' if reading == 'squared' else ''}{step}"


def measure(family: str, n: int, seed: int) -> dict[str, FloatArray]:
    """All that is recorded of ``n`` cases of a family, each at several ranks.

    Columns besides those of ``BOUNDS``, ``STEPS`` and ``PAIR``: ``case`` and ``rank``; ``void`` (A_t has fewer than
    ``rank`` singular values: the stated bound is infinite), ``stated`` (Assumption 1 holds as stated, with C = 1),
    ``negative`` (ε of the squared reading is), ``flat`` (the best exponent of the stated bound is below 1.01: its bias
    term does not depend on the rank), ``capped`` (ε(t) of the stated bound is its first argument, which does not depend
    on the samples), ``p`` (exponent of the trend of |uᵢᵀb|).
    """
    rows: list[dict[str, float]] = []
    for number, (case, ranks) in enumerate(of_family(family, n, seed)):
        aligned, raw = compare(*case), compare(*case, alignment="none")
        about = {"case": number, "n_features": aligned.n_features, "p": aligned.condition.trend().p}
        rows += [about | {"rank": rank} | _row(family, aligned, raw, rank) for rank in ranks]
    return {name: np.array([row[name] for row in rows], dtype=np.float64) for name in rows[0]}


def _row(family: str, aligned: Comparison, raw: Comparison, rank: int) -> dict[str, float]:
    stated, free = aligned.bound(rank), aligned.bound(rank, constant=None)
    other = aligned.bound(rank, p=2.0).norm.total if family == "repeated σ" else np.inf
    totals = (
        free.norm.total,
        free.squared.total,
        raw.bound(rank, constant=None).norm.total,
        free.corrected_picard.total,
        free.corrected.total,
        other,
    )
    row: dict[str, float] = {
        "void": bool(np.isinf(free.noise)),
        "stated": stated.assumption_holds,
        "negative": min(free.squared.cap, free.squared.difference) < 0.0,
        "flat": free.norm.p < 1.01,
        "capped": free.norm.cap < free.norm.difference,
    }
    for bound, total in zip(BOUNDS, totals, strict=True):
        row[bound] = total / free.error if free.error > 1e-9 else np.inf
        row[fails(bound)] = not free.holds(total)
    for reading, at_one, best in zip(READINGS, (stated.norm, stated.squared), (free.norm, free.squared), strict=True):
        row[fails(reading, at_one=True)] = not stated.holds(at_one.total)
        row |= dict.fromkeys((step_fails(step, reading) for step in STEPS), False)
        if not row["void"]:
            for step in proof_steps(aligned, rank, p=best.p, constant=best.constant, squared=reading == "squared"):
                row[step_fails(step.name, reading)] = not step.holds
    return row | dict(zip(PAIR, if_comparable(aligned, rank) or (np.nan,) * len(PAIR), strict=True))


def joined(families: Mapping[str, Columns]) -> dict[str, FloatArray]:
    """The columns of all families, with cases numbered on."""
    parts: list[Columns] = []
    for columns in families.values():
        start = parts[-1]["case"].max() + 1.0 if parts else 0.0
        parts.append({**columns, "case": columns["case"] + start})
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def summary(columns: Columns) -> dict[str, Any]:
    """Counts of what holds and fails, and the middle 90% of bound / error where both are finite."""

    def count(name: str, among: FloatArray | float = 1.0) -> int:
        return int((columns[name] * among).sum())

    stated, finite = columns["stated"], np.isfinite(columns["norm"])
    steps = {name: count(name) for reading in READINGS for step in STEPS for name in [step_fails(step, reading)]}
    return {
        "cases": np.unique(columns["case"]).size,
        "cases × ranks": columns["case"].size,
        "void": count("void"),
        "assumption holds as stated": count("stated"),
        "fails with C=1 though the assumption holds": {n: count(fails(n, at_one=True), stated) for n in READINGS},
        "fails with C=1 where the assumption does not": {
            n: count(fails(n, at_one=True), 1.0 - stated) for n in READINGS
        },
        "fails with the smallest C": {n: count(fails(n)) for n in BOUNDS},
        "squared fails with ε < 0": count("negative", columns[fails("squared")]),
        "best p < 1.01": count("flat"),
        "ε is its cap": count("capped"),
        "steps that fail": {n: steps[n] for n in sorted(steps, key=lambda n: -steps[n]) if steps[n]},
        "bound / error, 5%, 50%, 95%": {
            n: [float(f"{q:.4g}") for q in np.quantile(columns[n][finite], (0.05, 0.5, 0.95))]
            for n in ("norm", "unaligned", "ours, Picard", "ours")
            if finite.any()
        },
    }


def violations(families: Mapping[str, Columns]) -> list[dict[str, Any]]:
    """The cases in which a bound with the smallest C is below the error."""
    columns = joined(families)
    names = np.repeat(list(families), [part["case"].size for part in families.values()])
    every = {fails(n): n for n in BOUNDS} | {fails(n, at_one=True): f"C=1 {n}" for n in READINGS}
    found = []
    for i in np.flatnonzero(np.any([columns[fails(n)] for n in BOUNDS], axis=0)):
        about = {key: int(columns[key][i]) for key in ("case", "n_features", "rank")}
        wrong = {"fails": [words for name, words in every.items() if columns[name][i]]}
        ratios = {n: float(f"{columns[n][i]:.4g}") for n in BOUNDS if columns[fails(n)][i]}
        found.append({"family": str(names[i])} | about | wrong | {"bound / error": ratios})
    return found


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
